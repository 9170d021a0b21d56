/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shreconstruct/shreconstruct-backend.h"

#include "mock-object.h"

static ImkStatus
create (const ImkShreconstructConfig *config, const float *inverse,
    void **state, ImkError *error)
{
  ImkShreconstructConfig c = *config;
  MockObject *o;
  ImkStatus status = mock_object_new (
      "shreconstruct", imk_shreconstruct_cpu.destroy, &o, error);

  if (status != IMK_OK)
    return status;
  c.n_threads = 1; /* every stream of the mock is a thread already */
  return mock_object_made (
      o, imk_shreconstruct_cpu.create (&c, inverse, &o->state, error), state);
}

static ImkStatus
update (void *state, const ImkShreconstructConfig *config, const float *inverse,
    ImkError *error)
{
  MockObject *o = state;
  ImkStatus status = mock_object_begin (o, "update", error);

  if (status != IMK_OK)
    return status;
  mock_object_wait (o);
  return imk_shreconstruct_cpu.update (o->state, config, inverse, error);
}

enum { SLOPES, FLAGS };

static ImkStatus
run (MockObjectJob *job, ImkError *error)
{
  ImkShreconstructFrame frame = *(ImkShreconstructFrame *) job->call;

  frame.slopes = job->in[SLOPES];
  frame.flags = job->in[FLAGS];
  for (int i = 0; i < IMK_SHRECONSTRUCT_N_PARTS; i++)
    frame.state[i] = job->out[i];
  return imk_shreconstruct_cpu.process (
      job->object->state, &frame, NULL, error);
}

static ImkStatus
process (void *state, const ImkShreconstructFrame *frame, void *stream,
    ImkError *error)
{
  MockRequest request = {.verb = "process",
      .run = run,
      .call = frame,
      .call_size = sizeof (*frame),
      .in = {[SLOPES] = &frame->slopes,
          [FLAGS] = mock_image_or_none (&frame->flags)}};

  for (int i = 0; i < IMK_SHRECONSTRUCT_N_PARTS; i++)
    request.out[i] = &frame->state[i];
  return mock_object_submit (state, &request, stream, error);
}

const ImkShreconstructBackend imk_shreconstruct_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = create,
    .update = update,
    .process = process,
    .destroy = mock_object_destroy,
};
