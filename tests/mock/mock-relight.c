/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-backends.h"

#include "mock-object.h"

typedef struct Call {
  ImkRelightParams params;
  ImkRelightSource normals, albedo;
} Call;

static ImkStatus
create (uint32_t n_threads, void **state, ImkError *error)
{
  MockObject *o;
  ImkStatus status =
      mock_object_new ("relight", imk_relight_cpu.destroy, &o, error);

  if (status != IMK_OK)
    return status;
  /* many streams would start many times many threads */
  return mock_object_made (
      o, imk_relight_cpu.create (1, &o->state, error), state);
}

static ImkStatus
run (MockObjectJob *job, ImkError *error)
{
  Call *call = job->call;

  call->normals.image = job->in[0];
  call->albedo.image = job->in[1];
  return imk_relight_cpu.process (job->object->state, &call->params,
      &call->normals, &call->albedo, &job->out[0], NULL, error);
}

static ImkStatus
process (void *state, const ImkRelightParams *params,
    const ImkRelightSource *normals, const ImkRelightSource *albedo,
    ImkImage *out, void *stream, ImkError *error)
{
  Call call = {*params, *normals, *albedo};
  MockRequest request = {.verb = "process",
      .run = run,
      .in = {&normals->image, mock_image_or_none (&albedo->image)},
      .out = {out},
      .call = &call,
      .call_size = sizeof (call)};

  return mock_object_submit (state, &request, stream, error);
}

const ImkRelightBackend mock_relight = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = create,
    .process = process,
    .destroy = mock_object_destroy,
};
