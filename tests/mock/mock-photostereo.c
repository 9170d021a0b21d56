/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-backends.h"

#include <stdlib.h>

#include "mock-object.h"

/* About what a real one has a pixel: samples of up to 32 lights, their sums, a
 * solution in the making */
enum { PIXEL_SIZE = 200 };

/* Pictures that do not fit the device wait in the caller's memory. */
typedef struct State {
  void *cpu;
  bool keeps_frames;
  uint32_t bands;
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
  s->keeps_frames = p.memory_limit &&
                    (size_t) p.width * p.height * PIXEL_SIZE > p.memory_limit;
  s->bands = p.bands;
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
      .call_size = sizeof (call)};

  return mock_object_submit (state, &request, stream, error);
}

static ImkStatus
add (void *state, const ImkImage *frame, uint32_t light, uint32_t band,
    void *stream, ImkError *error)
{
  State *s = state_of (state);

  if (!s->keeps_frames)
    return submit_add (state, frame, light, band, stream, error);
  s->frames[light][band] = *frame;
  return IMK_OK;
}

/* What waited in the caller's memory; anew for each solution. */
static ImkStatus
submit_all (void *state, const uint32_t *lights, uint32_t n, void *stream,
    ImkError *error)
{
  State *s = state_of (state);
  ImkStatus status = IMK_OK;

  reset (state);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t band = 0; band < s->bands && status == IMK_OK; band++)
      status = submit_add (
          state, &s->frames[lights[i]][band], lights[i], band, stream, error);
  return status;
}

static ImkStatus
run_solve (MockObjectJob *job, ImkError *error)
{
  void *cpu = state_of (job->object)->cpu;
  Solve *call = job->call;
  ImkStatus status = IMK_OK;

  call->outputs = (ImkPhotostereoOutputs){
      job->out[0], job->out[1], job->out[2], job->out[3]};
  if (job->params)
    status = imk_photostereo_cpu.update (cpu, job->params, error);
  return status == IMK_OK
             ? imk_photostereo_cpu.solve (cpu, call->lights, call->n,
                   call->compare, &call->outputs, call->rows, NULL, error)
             : status;
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

  if (s->keeps_frames)
    status = submit_all (state, lights, n, stream, error);
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
  ImkStatus status = mock_object_begin (state, "probe", error);

  if (status != IMK_OK)
    return status;
  mock_object_wait (state);
  return imk_photostereo_cpu.probe (
      state_of (state)->cpu, step_x, step_y, normals, NULL, error);
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
