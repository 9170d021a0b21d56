/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insarxcorr/insarxcorr-backend.h"

#include "mock-object.h"

static ImkStatus
create (
    const ImkInsarxcorrPlan *plan, uint32_t part, void **state, ImkError *error)
{
  MockObject *o;
  ImkStatus status =
      mock_object_new ("insarxcorr", imk_insarxcorr_cpu.destroy, &o, error);

  if (status != IMK_OK)
    return status;
  return mock_object_made (
      o, imk_insarxcorr_cpu.create (plan, part, &o->state, error), state);
}

/* Waited for, as the real one is; a row may be at work, on other lines. */
static ImkStatus
push (void *state, ImkInsarxcorrSide side, uint32_t line, const ImkImage *lines,
    ImkError *error)
{
  MockObject *o = state;
  ImkStatus status = mock_object_begin (o, "push", error);

  if (status == IMK_OK)
    status = mock_begin ("a copy", error);
  return status == IMK_OK
             ? imk_insarxcorr_cpu.push (o->state, side, line, lines, error)
             : status;
}

static ImkStatus
run (MockObjectJob *job, ImkError *error)
{
  const uint32_t *row = job->call;

  return imk_insarxcorr_cpu.process (
      job->object->state, *row, &job->out[0], NULL, error);
}

static ImkStatus
process (
    void *state, uint32_t row, ImkImage *out, void *stream, ImkError *error)
{
  MockRequest request = {.verb = "process",
      .run = run,
      .out = {out},
      .call = &row,
      .call_size = sizeof (row)};

  return mock_object_submit (state, &request, stream, error);
}

const ImkInsarxcorrBackend imk_insarxcorr_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = create,
    .push = push,
    .process = process,
    .destroy = mock_object_destroy,
};
