/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/octbscan-backend.h"

#include "mock-object.h"

enum {
  N_IMAGES = 5,
  N_BAD = N_IMAGES, /* the places of their words among the outputs */
  ENDS
};

static ImkStatus
create (const ImkOctbscanPlan *plan, void **state, ImkError *error)
{
  ImkOctbscanConfig config = *plan->config;
  ImkOctbscanPlan p = *plan;
  MockObject *o;
  ImkStatus status =
      mock_object_new ("octbscan", imk_octbscan_cpu.destroy, &o, error);

  if (status != IMK_OK)
    return status;
  config.n_threads = 1; /* many streams would start many times many threads */
  p.config = &config;
  return mock_object_made (
      o, imk_octbscan_cpu.create (&p, &o->state, error), state);
}

static ImkStatus
update (void *state, const ImkOctbscanConfig *config, ImkError *error)
{
  ImkOctbscanConfig own = *config;

  own.n_threads = 1;
  return mock_object_update (state, &own, sizeof (own), error);
}

static ImkStatus
run (MockObjectJob *job, ImkError *error)
{
  void *state = job->object->state;
  ImkOctbscanJob *bscan = job->call;
  ImkImage **images[] = {&bscan->db, &bscan->linear, &bscan->complex,
      &bscan->enface, &bscan->track};
  ImkStatus status = IMK_OK;

  if (bscan->in)
    bscan->in = &job->in[0];
  for (int i = 0; i < N_IMAGES; i++)
    if (*images[i])
      *images[i] = &job->out[i];
  if (bscan->ends)
    bscan->ends = job->out[ENDS].data;
  if (bscan->n_bad)
    bscan->n_bad = job->out[N_BAD].data;
  if (job->params)
    status = imk_octbscan_cpu.update (state, job->params, error);
  if (status == IMK_OK)
    status = imk_octbscan_cpu.process (state, bscan, 1, NULL, error);
  return status;
}

/* B-scans remember those before them, whatever stream these are on. */
static ImkStatus
process (void *state, const ImkOctbscanJob *jobs, uint32_t n_jobs, void *stream,
    ImkError *error)
{
  ImkStatus status = IMK_OK;

  for (uint32_t i = 0; i < n_jobs && status == IMK_OK; i++) {
    const ImkOctbscanJob *j = &jobs[i];
    const ImkImage n_bad = {j->n_bad, sizeof (*j->n_bad), 1, 1, 1, IMK_TYPE_F32,
        IMK_LOCATION_HOST_MAPPED};
    const ImkImage ends = {j->ends, 4 * sizeof (*j->ends), 4, 1, 1,
        IMK_TYPE_F32, IMK_LOCATION_HOST_MAPPED};
    MockRequest request = {.verb = "process",
        .run = run,
        .in = {j->in},
        .out = {j->db, j->linear, j->complex, j->enface, j->track,
            j->n_bad ? &n_bad : NULL, j->ends ? &ends : NULL},
        .call = j,
        .call_size = sizeof (*j),
        .takes_params = true,
        .in_turn = true};

    status = mock_object_submit (state, &request, stream, error);
  }
  return status;
}

/* The chain is for a card; the CPU has its own. */
static ImkStatus
tune (void *state, const struct ImkOctbscanChain *chain, const double *live,
    ImkError *error)
{
  MockObject *o = state;
  ImkStatus status = mock_object_begin (o, "tune", error);

  if (status != IMK_OK)
    return status;
  mock_object_wait (o);
  pthread_mutex_lock (&o->busy);
  status = imk_octbscan_cpu.tune (o->state, chain, live, error);
  pthread_mutex_unlock (&o->busy);
  return status;
}

static ImkStatus
get_pattern (void *state, float *pattern, ImkError *error)
{
  MockObject *o = state;
  ImkStatus status = mock_object_begin (o, "pattern", error);

  if (status != IMK_OK)
    return status;
  mock_object_wait (o);
  pthread_mutex_lock (&o->busy);
  status = imk_octbscan_cpu.get_pattern (o->state, pattern, error);
  pthread_mutex_unlock (&o->busy);
  return status;
}

static ImkStatus
get_background (void *state, double *background, ImkError *error)
{
  MockObject *o = state;
  ImkStatus status = mock_object_begin (o, "background", error);

  if (status != IMK_OK)
    return status;
  mock_object_wait (o);
  pthread_mutex_lock (&o->busy);
  status = imk_octbscan_cpu.get_background (o->state, background, error);
  pthread_mutex_unlock (&o->busy);
  return status;
}

const ImkOctbscanBackend imk_octbscan_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = create,
    .update = update,
    .process = process,
    .tune = tune,
    .get_pattern = get_pattern,
    .get_background = get_background,
    .destroy = mock_object_destroy,
};
