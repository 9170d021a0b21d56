/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-backends.h"

#include "mock-object.h"

static ImkStatus
create (const ImkShcentroidPlan *plan, const ImkShcentroidParams *params,
    void **state, ImkError *error)
{
  ImkShcentroidPlan p = *plan;
  MockObject *o;
  ImkStatus status =
      mock_object_new ("shcentroid", imk_shcentroid_cpu.destroy, &o, error);

  if (status != IMK_OK)
    return status;
  p.n_threads = 1; /* many streams would start many times many threads */
  return mock_object_made (
      o, imk_shcentroid_cpu.create (&p, params, &o->state, error), state);
}

static ImkStatus
update (void *state, const ImkShcentroidParams *params, ImkError *error)
{
  return mock_object_update (state, params, sizeof (*params), error);
}

static ImkStatus
run (MockObjectJob *job, ImkError *error)
{
  void *state = job->object->state;
  ImkStatus status = IMK_OK;

  if (job->params)
    status = imk_shcentroid_cpu.update (state, job->params, error);
  return status == IMK_OK ? imk_shcentroid_cpu.process (
                                state, &job->in[0], &job->out[0], NULL, error)
                          : status;
}

static ImkStatus
process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  MockRequest request = {.verb = "process",
      .run = run,
      .in = {in},
      .out = {out},
      .takes_params = true};

  return mock_object_submit (state, &request, stream, error);
}

static ImkStatus
run_reset (MockObjectJob *job, ImkError *error)
{
  return imk_shcentroid_cpu.reset (job->object->state, NULL, error);
}

static ImkStatus
reset (void *state, void *stream, ImkError *error)
{
  MockRequest request = {.verb = "reset", .run = run_reset};

  return mock_object_submit (state, &request, stream, error);
}

const ImkShcentroidBackend mock_shcentroid = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = create,
    .update = update,
    .process = process,
    .reset = reset,
    .destroy = mock_object_destroy,
};
