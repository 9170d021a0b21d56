/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-backends.h"

#include <stdlib.h>

#include "mock-object.h"

/* About what a real one has a pixel: samples of up to 32 lights, their sums, a
 * solution in the making */
enum { PIXEL_SIZE = 200 };

enum { N_OUTPUTS = 4 };

/* Pictures that do not fit the device wait in the caller's memory. The CPU
 * solves whole pictures, of which a band is taken. */
typedef struct State {
  void *cpu;
  uint32_t width, height, first_row, n_rows;
  bool keeps_frames;
  ImkImage frames[IMK_PHOTOSTEREO_MAX_LIGHTS];
} State;

typedef struct Solve {
  ImkPhotostereoOutputs outputs;
  ImkPhotostereoRow *rows;
  bool compare;
  uint32_t n;
  uint32_t lights[IMK_PHOTOSTEREO_MAX_LIGHTS];
} Solve;

static void
destroy_state (void *state)
{
  State *s = state;

  imk_photostereo_cpu.destroy (s->cpu);
  free (s);
}

static ImkStatus
create_state (const ImkPhotostereoPlan *plan,
    const ImkPhotostereoParams *params, void **state, ImkError *error)
{
  State *s = calloc (1, sizeof (*s));
  ImkPhotostereoPlan p = *plan;
  ImkStatus status;

  if (!s)
    return mock_no_memory (error);
  s->width = p.width;
  s->height = p.height;
  s->first_row = p.first_row;
  s->n_rows = p.n_rows;
  s->keeps_frames = p.memory_limit &&
                    (size_t) p.width * p.n_rows * PIXEL_SIZE > p.memory_limit;
  p.first_row = 0;
  p.n_rows = p.height;
  p.memory_limit = 0;
  p.n_threads = 1; /* many streams would start many times many threads */
  status = imk_photostereo_cpu.create (&p, params, &s->cpu, error);
  if (status == IMK_OK)
    *state = s;
  else
    free (s);
  return status;
}

static ImkStatus
create (const ImkPhotostereoPlan *plan, const ImkPhotostereoParams *params,
    void **state, ImkError *error)
{
  MockObject *o;
  ImkStatus status = mock_object_new ("photostereo", destroy_state, &o, error);

  if (status != IMK_OK)
    return status;
  return mock_object_made (
      o, create_state (plan, params, &o->state, error), state);
}

static ImkStatus
update (void *state, const ImkPhotostereoParams *params, ImkError *error)
{
  return mock_object_update (state, params, sizeof (*params), error);
}

static State *
state_of (void *object)
{
  return ((MockObject *) object)->state;
}

static bool
keeps_frames (void *state)
{
  return state_of (state)->keeps_frames;
}

/* Asks nothing of the device. */
static void
reset (void *state)
{
  mock_handle_check (state, MOCK_OBJECT, "photostereo reset");
}

static ImkStatus
run_add (MockObjectJob *job, ImkError *error)
{
  const uint32_t *light = job->call;

  return imk_photostereo_cpu.add (
      state_of (job->object)->cpu, &job->in[0], *light, NULL, error);
}

static ImkStatus
submit_add (void *state, const ImkImage *frame, uint32_t light, void *stream,
    ImkError *error)
{
  MockRequest request = {.verb = "add",
      .run = run_add,
      .in = {frame},
      .call = &light,
      .call_size = sizeof (light),
      .copies_input = true};

  return mock_object_submit (state, &request, stream, error);
}

static ImkStatus
add (void *state, const ImkImage *frame, uint32_t light, void *stream,
    ImkError *error)
{
  State *s = state_of (state);

  if (!s->keeps_frames)
    return submit_add (state, frame, light, stream, error);
  s->frames[light] = *frame;
  return IMK_OK;
}

/* A whole picture for each output. */
static bool
make_whole (const State *s, const ImkImage *out, ImkImage *whole)
{
  for (int i = 0; i < N_OUTPUTS; i++) {
    whole[i] = out[i];
    if (!out[i].data)
      continue;
    whole[i].height = s->height;
    whole[i].stride = imk_image_row_size (&out[i]);
    whole[i].data = malloc (s->height * whole[i].stride);
    if (!whole[i].data)
      return false;
  }
  return true;
}

static void
take_band (const State *s, const ImkImage *out, const ImkImage *whole)
{
  for (int i = 0; i < N_OUTPUTS; i++)
    for (uint32_t y = 0; out[i].data && y < s->n_rows; y++)
      memcpy ((uint8_t *) out[i].data + y * out[i].stride,
          (uint8_t *) whole[i].data + (s->first_row + y) * whole[i].stride,
          whole[i].stride);
}

static ImkStatus
run_solve (MockObjectJob *job, ImkError *error)
{
  State *s = state_of (job->object);
  Solve *call = job->call;
  ImkPhotostereoRow *rows = calloc (s->height, sizeof (*rows));
  ImkImage whole[N_OUTPUTS] = {{0}};
  ImkStatus status = IMK_OK;

  if (!rows || !make_whole (s, job->out, whole))
    status = mock_no_memory (error);
  if (status == IMK_OK && job->params)
    status = imk_photostereo_cpu.update (s->cpu, job->params, error);
  call->outputs =
      (ImkPhotostereoOutputs){whole[0], whole[1], whole[2], whole[3]};
  if (status == IMK_OK)
    status = imk_photostereo_cpu.solve (s->cpu, call->lights, call->n,
        call->compare, &call->outputs, rows, NULL, error);
  if (status == IMK_OK)
    take_band (s, job->out, whole);
  if (status == IMK_OK && call->rows)
    memcpy (call->rows, rows + s->first_row, s->n_rows * sizeof (*rows));
  for (int i = 0; i < N_OUTPUTS; i++)
    free (whole[i].data);
  free (rows);
  return status;
}

static ImkStatus
solve (void *state, const uint32_t *lights, uint32_t n, bool compare,
    ImkPhotostereoOutputs *outputs, ImkPhotostereoRow *rows, void *stream,
    ImkError *error)
{
  State *s = state_of (state);
  Solve call = {*outputs, rows, compare, n, {0}};
  MockRequest request = {.verb = "solve",
      .run = run_solve,
      .out = {mock_image_or_none (&outputs->normal),
          mock_image_or_none (&outputs->albedo),
          mock_image_or_none (&outputs->ambient),
          mock_image_or_none (&outputs->quality)},
      .call = &call,
      .call_size = sizeof (call),
      .takes_params = true};
  ImkStatus status = IMK_OK;

  for (uint32_t i = 0; i < n && s->keeps_frames && status == IMK_OK; i++)
    status =
        submit_add (state, &s->frames[lights[i]], lights[i], stream, error);
  if (status != IMK_OK)
    return status;
  memcpy (call.lights, lights, n * sizeof (*lights));
  status = mock_object_submit (state, &request, stream, error);
  if (rows)
    mock_object_wait (state);
  return status;
}

static ImkStatus
probe (void *state, uint32_t step_x, uint32_t step_y, float *normals,
    void *stream, ImkError *error)
{
  State *s = state_of (state);
  size_t row_size =
      3 * imk_div_up (s->width - step_x / 2, step_x) * sizeof (*normals);
  uint32_t first = imk_photostereo_probes_before (s->first_row, step_y);
  uint32_t end =
      imk_photostereo_probes_before (s->first_row + s->n_rows, step_y);
  ImkStatus status = mock_object_begin (state, "probe", error);
  float *all;

  if (status != IMK_OK)
    return status;
  mock_object_wait (state);
  all = malloc (s->height * row_size);
  if (!all)
    return mock_no_memory (error);
  status = imk_photostereo_cpu.probe (s->cpu, step_x, step_y, all, NULL, error);
  memcpy (
      normals, (uint8_t *) all + first * row_size, (end - first) * row_size);
  free (all);
  return status;
}

const ImkPhotostereoBackend mock_photostereo = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = create,
    .update = update,
    .keeps_frames = keeps_frames,
    .add = add,
    .solve = solve,
    .reset = reset,
    .probe = probe,
    .destroy = mock_object_destroy,
};
