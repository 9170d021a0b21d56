/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-backends.h"

#include "mock-object.h"

static ImkStatus
create (const ImkLapsharpenConfig *config, void **state, ImkError *error)
{
  ImkLapsharpenConfig c = *config;
  MockObject *o;
  ImkStatus status =
      mock_object_new ("lapsharpen", imk_lapsharpen_cpu.destroy, &o, error);

  if (status != IMK_OK)
    return status;
  c.n_threads = 1; /* many streams would start many times many threads */
  return mock_object_made (
      o, imk_lapsharpen_cpu.create (&c, &o->state, error), state);
}

static ImkStatus
update (void *state, const ImkLapsharpenConfig *config, ImkError *error)
{
  ImkLapsharpenConfig c = *config;

  c.n_threads = 1;
  return mock_object_update (state, &c, sizeof (c), error);
}

static ImkStatus
run (MockObjectJob *job, ImkError *error)
{
  void *state = job->object->state;
  ImkStatus status = IMK_OK;

  if (job->params)
    status = imk_lapsharpen_cpu.update (state, job->params, error);
  return status == IMK_OK ? imk_lapsharpen_cpu.process (
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
get_sums (void *state, ImkLapsharpenSums *sums, ImkError *error)
{
  MockObject *o = state;
  ImkStatus status = mock_object_begin (o, "get_sums", error);

  if (status != IMK_OK)
    return status;
  mock_object_wait (o);
  return imk_lapsharpen_cpu.get_sums (o->state, sums, error);
}

const ImkLapsharpenBackend mock_lapsharpen = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = create,
    .update = update,
    .process = process,
    .get_sums = get_sums,
    .destroy = mock_object_destroy,
};
