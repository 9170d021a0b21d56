/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octangio/octangio-backend.h"

#include "mock-object.h"

static ImkStatus
create (const ImkOctangioPlan *plan, void **state, ImkError *error)
{
  ImkOctangioPlan p = *plan;
  MockObject *o;
  ImkStatus status =
      mock_object_new ("octangio", imk_octangio_cpu.destroy, &o, error);

  if (status != IMK_OK)
    return status;
  p.config.n_threads = 1; /* many streams would start many times many threads */
  return mock_object_made (
      o, imk_octangio_cpu.create (&p, &o->state, error), state);
}

static ImkStatus
run (MockObjectJob *job, ImkError *error)
{
  return imk_octangio_cpu.process (
      job->object->state, job->in, MOCK_MAX_INPUTS, &job->out[0], NULL, error);
}

static ImkStatus
process (void *state, const ImkImage *bscans, uint32_t n_bscans,
    const ImkImage *flow, void *stream, ImkError *error)
{
  MockRequest request = {.verb = "process", .run = run, .out = {flow}};

  for (uint32_t r = 0; r < n_bscans; r++)
    request.in[r] = &bscans[r];
  return mock_object_submit (state, &request, stream, error);
}

/* Waits, as the real one does. */
static ImkStatus
find_brightest (void *state, uint32_t first, uint32_t *depths, void *stream,
    ImkError *error)
{
  MockObject *o = state;
  ImkStatus status = mock_object_begin (o, "surface", error);

  if (status != IMK_OK)
    return status;
  mock_object_wait (o);
  pthread_mutex_lock (&o->busy);
  status =
      imk_octangio_cpu.find_brightest (o->state, first, depths, stream, error);
  pthread_mutex_unlock (&o->busy);
  return status;
}

const ImkOctangioBackend imk_octangio_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = create,
    .process = process,
    .find_brightest = find_brightest,
    .destroy = mock_object_destroy,
};
