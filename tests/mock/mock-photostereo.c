/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "photostereo/photostereo-backend.h"

#include <stdlib.h>

#include "mock-object.h"

/* About what a real one has a pixel: samples of up to 32 lights, their sums, a
 * solution in the making */
enum { PIXEL_SIZE = 200 };

enum { N_OUTPUTS = 6 };

/* Pictures that do not fit the device wait in the caller's memory. The CPU
 * solves whole pictures, of which the device's rows are taken. */
typedef struct State {
  void *cpu;
  uint32_t width, height, first_row, n_rows, n_lights;
  bool keeps_frames;
  uint32_t bands;
  void *stream; /* of the last picture that waits */
  ImkImage frames[IMK_PHOTOSTEREO_MAX_LIGHTS][IMK_PHOTOSTEREO_MAX_BANDS];
} State;

typedef struct Add {
  uint32_t light, band;
} Add;

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
  s->n_lights = p.n_lights;
  s->keeps_frames =
      (p.strip_rows && p.strip_rows < p.n_rows) ||
      (p.memory_limit &&
          (size_t) p.width * p.n_rows * PIXEL_SIZE > p.memory_limit);
  s->bands = p.bands;
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

/* Asks nothing of the device; but the CPU's state may be in use until its
 * thread is through. */
static void
reset (void *state)
{
  mock_handle_check (state, MOCK_OBJECT, "photostereo reset");
  mock_object_wait (state);
  imk_photostereo_cpu.reset (state_of (state)->cpu);
}

static ImkStatus
run_add (MockObjectJob *job, ImkError *error)
{
  const Add *call = job->call;

  return imk_photostereo_cpu.add (state_of (job->object)->cpu, &job->in[0],
      call->light, call->band, NULL, error);
}

static ImkStatus
submit_add (void *state, const ImkImage *frame, uint32_t light, uint32_t band,
    void *stream, ImkError *error)
{
  Add call = {light, band};
  MockRequest request = {.verb = "add",
      .run = run_add,
      .in = {frame},
      .call = &call,
      .call_size = sizeof (call),
      .copies_input = true};

  return mock_object_submit (state, &request, stream, error);
}

static ImkStatus
add (void *state, const ImkImage *frame, uint32_t light, uint32_t band,
    void *stream, ImkError *error)
{
  State *s = state_of (state);
  ImkStatus status = IMK_OK;

  if (!s->keeps_frames)
    return submit_add (state, frame, light, band, stream, error);
  if (s->stream && s->stream != stream)
    status = mock_stream_synchronize (s->stream, error);
  s->stream = stream;
  s->frames[light][band] = *frame;
  return status;
}

/* What waited in the caller's memory; anew for each solution. */
static ImkStatus
submit_all (void *state, const uint32_t *bands, void *stream, ImkError *error)
{
  State *s = state_of (state);
  ImkStatus status =
      s->stream ? mock_stream_synchronize (s->stream, error) : IMK_OK;

  reset (state);
  for (uint32_t i = 0; i < s->n_lights; i++)
    for (uint32_t band = 0; band < s->bands && status == IMK_OK; band++)
      if (bands[i] >> band & 1)
        status =
            submit_add (state, &s->frames[i][band], i, band, stream, error);
  return status;
}

/* Returns: how many bands are below each other in the output @i */
static uint32_t
n_stacked (const State *s, const ImkImage *out, int i)
{
  bool colours = i == 1 || i == 2;

  return colours && s->bands > out[i].channels ? s->bands : 1;
}

/* A whole picture for each output. */
static bool
make_whole (const State *s, const ImkImage *out, ImkImage *whole)
{
  for (int i = 0; i < N_OUTPUTS; i++) {
    whole[i] = out[i];
    if (!out[i].data)
      continue;
    whole[i].height = s->height * n_stacked (s, out, i);
    whole[i].stride = imk_image_row_size (&out[i]);
    whole[i].data = malloc (whole[i].height * whole[i].stride);
    if (!whole[i].data)
      return false;
  }
  return true;
}

static void
take_rows (const State *s, const ImkImage *out, const ImkImage *whole, int i)
{
  uint32_t n = n_stacked (s, out, i);

  for (uint32_t band = 0; band < n; band++)
    for (uint32_t y = 0; y < s->n_rows; y++) {
      uint32_t to = band * (out[i].height / n) + y;
      uint32_t from = band * s->height + s->first_row + y;

      memcpy ((uint8_t *) out[i].data + to * out[i].stride,
          (uint8_t *) whole[i].data + from * whole[i].stride, whole[i].stride);
    }
}

static ImkStatus
run_solve (MockObjectJob *job, ImkError *error)
{
  State *s = state_of (job->object);
  Solve *call = job->call;
  ImkPhotostereoSet set = {call->lights, call->n, NULL};
  ImkPhotostereoRow *rows = calloc (s->height, sizeof (*rows));
  ImkImage whole[N_OUTPUTS] = {{0}};
  ImkStatus status = IMK_OK;

  if (!rows || !make_whole (s, job->out, whole))
    status = mock_no_memory (error);
  if (status == IMK_OK && job->params)
    status = imk_photostereo_cpu.update (s->cpu, job->params, error);
  call->outputs = (ImkPhotostereoOutputs){
      whole[0], whole[1], whole[2], whole[3], whole[4], whole[5]};
  if (status == IMK_OK)
    status = imk_photostereo_cpu.solve (
        s->cpu, &set, call->compare, &call->outputs, rows, NULL, error);
  for (int i = 0; i < N_OUTPUTS && status == IMK_OK; i++)
    if (job->out[i].data)
      take_rows (s, job->out, whole, i);
  if (status == IMK_OK && call->rows)
    memcpy (call->rows, rows + s->first_row, s->n_rows * sizeof (*rows));
  for (int i = 0; i < N_OUTPUTS; i++)
    free (whole[i].data);
  free (rows);
  return status;
}

static ImkStatus
solve (void *state, const ImkPhotostereoSet *set, bool compare,
    ImkPhotostereoOutputs *outputs, ImkPhotostereoRow *rows, void *stream,
    ImkError *error)
{
  State *s = state_of (state);
  Solve call = {*outputs, rows, compare, set->n_lights, {0}};
  MockRequest request = {.verb = "solve",
      .run = run_solve,
      .out = {mock_image_or_none (&outputs->normal),
          mock_image_or_none (&outputs->albedo),
          mock_image_or_none (&outputs->ambient),
          mock_image_or_none (&outputs->quality),
          mock_image_or_none (&outputs->confidence),
          mock_image_or_none (&outputs->mask)},
      .call = &call,
      .call_size = sizeof (call),
      .takes_params = true};
  ImkStatus status = IMK_OK;

  if (s->keeps_frames)
    status = submit_all (state, set->bands, stream, error);
  if (status != IMK_OK)
    return status;
  memcpy (call.lights, set->lights, set->n_lights * sizeof (*set->lights));
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

const ImkPhotostereoBackend imk_photostereo_cuda = {
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
