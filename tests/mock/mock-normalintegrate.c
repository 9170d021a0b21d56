/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "normalintegrate/normalintegrate-backend.h"

#include "mock-object.h"

typedef struct Call {
  ImkNormalintegrateParams params;
  ImkNormalintegrateSummary *summary;
} Call;

static ImkStatus
create (const ImkNormalintegratePlan *plan, void **state, ImkError *error)
{
  ImkNormalintegratePlan p = *plan;
  MockObject *o;
  ImkStatus status = mock_object_new (
      "normalintegrate", imk_normalintegrate_cpu.destroy, &o, error);

  if (status != IMK_OK)
    return status;
  p.n_threads = 1; /* many streams would start many times many threads */
  return mock_object_made (
      o, imk_normalintegrate_cpu.create (&p, &o->state, error), state);
}

static ImkStatus
run_integrate (MockObjectJob *job, ImkError *error)
{
  Call *call = job->call;

  return imk_normalintegrate_cpu.integrate (job->object->state, &call->params,
      &job->in[0], call->summary, NULL, error);
}

static ImkStatus
run_store (MockObjectJob *job, ImkError *error)
{
  ImkNormalintegrateOutputs outputs = {job->out[0], job->out[1]};

  return imk_normalintegrate_cpu.store (
      job->object->state, job->call, &outputs, NULL, error);
}

/* Waits, as the real ones do. */
static ImkStatus
submit (void *state, const MockRequest *request, void *stream, ImkError *error)
{
  ImkStatus status = mock_object_submit (state, request, stream, error);

  mock_object_wait (state);
  return status;
}

static ImkStatus
integrate (void *state, const ImkNormalintegrateParams *params,
    const ImkImage *in, ImkNormalintegrateSummary *summary, void *stream,
    ImkError *error)
{
  Call call = {*params, summary};
  MockRequest request = {.verb = "integrate",
      .run = run_integrate,
      .in = {in},
      .call = &call,
      .call_size = sizeof (call)};

  return submit (state, &request, stream, error);
}

static ImkStatus
store (void *state, const ImkNormalintegrateScale *scale,
    ImkNormalintegrateOutputs *outputs, void *stream, ImkError *error)
{
  MockRequest request = {.verb = "store",
      .run = run_store,
      .out = {mock_image_or_none (&outputs->height),
          mock_image_or_none (&outputs->grey)},
      .call = scale,
      .call_size = sizeof (*scale)};

  return submit (state, &request, stream, error);
}

/* Nothing is queued for these two, as all wait. */
static ImkStatus
find_range (void *state, const ImkNormalintegrateScale *scale,
    ImkNormalintegrateRange *range, void *stream, ImkError *error)
{
  MockObject *o = state;
  ImkStatus status = mock_object_begin (o, "find_range", error);

  return status != IMK_OK ? status
                          : imk_normalintegrate_cpu.find_range (
                                o->state, scale, range, NULL, error);
}

static ImkStatus
gather (void *state, const uint32_t *at, uint32_t n, float *z, void *stream,
    ImkError *error)
{
  MockObject *o = state;
  ImkStatus status = mock_object_begin (o, "gather", error);

  return status != IMK_OK
             ? status
             : imk_normalintegrate_cpu.gather (o->state, at, n, z, NULL, error);
}

const ImkNormalintegrateBackend imk_normalintegrate_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = create,
    .integrate = integrate,
    .find_range = find_range,
    .gather = gather,
    .store = store,
    .destroy = mock_object_destroy,
};
