/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "normalintegrate/normalintegrate-backend.h"

#include "mock-object.h"

typedef struct Call {
  ImkNormalintegrateParams params;
  ImkNormalintegrateOutputs outputs;
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
run (MockObjectJob *job, ImkError *error)
{
  Call *call = job->call;

  call->outputs.height = job->out[0];
  call->outputs.grey = job->out[1];
  return imk_normalintegrate_cpu.process (job->object->state, &call->params,
      &job->in[0], &call->outputs, call->summary, NULL, error);
}

/* Waits, as the real one does. */
static ImkStatus
process (void *state, const ImkNormalintegrateParams *params,
    const ImkImage *in, ImkNormalintegrateOutputs *outputs,
    ImkNormalintegrateSummary *summary, void *stream, ImkError *error)
{
  Call call = {*params, *outputs, summary};
  MockRequest request = {.verb = "process",
      .run = run,
      .in = {in},
      .out = {mock_image_or_none (&outputs->height),
          mock_image_or_none (&outputs->grey)},
      .call = &call,
      .call_size = sizeof (call)};
  ImkStatus status = mock_object_submit (state, &request, stream, error);

  mock_object_wait (state);
  return status;
}

const ImkNormalintegrateBackend imk_normalintegrate_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = create,
    .process = process,
    .destroy = mock_object_destroy,
};
