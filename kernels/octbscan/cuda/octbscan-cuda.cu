/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* B-scans on the GPU: means, Z by one of the two strategies, ranks where they
 * are asked for, images. Each step is launched once for any number of jobs. */
#include <memory>
#include <new>

#include "octbscan/cuda/octbscan-operator.cuh"
#include "octbscan/cuda/octbscan-transforms.cuh"

struct Cuda {
  Arguments arguments; /* all but the number of jobs */
  History history;
  uint32_t last_pattern; /* index into patterns */
  uint32_t last_means;   /* index into means */
  Operator op;           /* used if the strategy is operator */
  Transforms transforms;
  void *memory; /* all device memory of the object */
  Job *jobs;
  cudaEvent_t done;
};

/* Work on this object may still run on another stream, and uses the same
 * memory. */
static ImkStatus
cuda_process (void *state, const ImkOctbscanJob *jobs, uint32_t n_jobs,
    void *stream, ImkError *error)
{
  Cuda *s = (Cuda *) state;
  const cudaStream_t on = (cudaStream_t) stream;
  Arguments a = s->arguments;

  a.n_jobs = n_jobs;
  IMK_TRY (IMK_CUDA (error, cudaStreamWaitEvent (on, s->done, 0)));
  IMK_TRY (transforms_take_tuned (&s->transforms, on, error));
  IMK_TRY (
      launch_jobs (jobs, n_jobs, a.config, &s->history, s->jobs, on, error));
  IMK_TRY (launch_bad (a, on, error));
  IMK_TRY (launch_means (a, on, error));
  IMK_TRY (a.config.strategy == IMK_OCTBSCAN_STRATEGY_FFT
               ? transforms_run (s->transforms, a, on, error)
               : operator_run (s->op, a, on, error));
  IMK_TRY (launch_finish (a, jobs, on, error));
  IMK_TRY (IMK_CUDA (error, cudaEventRecord (s->done, on)));
  s->last_pattern = a.config.fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_MINVAR
                        ? n_jobs - 1
                        : a.config.max_jobs;
  for (uint32_t i = 0; i < n_jobs; i++)
    if (jobs[i].in)
      s->last_means = i;
  return IMK_OK;
}

static ImkStatus
cuda_update (void *state, const ImkOctbscanConfig *config, ImkError *error)
{
  Cuda *s = (Cuda *) state;

  (void) error;
  if (config->history != s->arguments.config.history)
    s->history = {};
  update_finish (&s->arguments, *config);
  return IMK_OK;
}

static ImkStatus
cuda_tune (void *state, const ImkOctbscanChain *chain, const double *live,
    ImkError *error)
{
  (void) live;
  return transforms_tune (&((Cuda *) state)->transforms, chain, error);
}

static ImkStatus
cuda_get_pattern (void *state, float *pattern, ImkError *error)
{
  const Cuda *s = (const Cuda *) state;
  const Arguments &a = s->arguments;
  size_t n = (size_t) a.config.n_cameras * a.n_depths;

  IMK_TRY (IMK_CUDA (error, cudaEventSynchronize (s->done)));
  return IMK_CUDA (error, cudaMemcpy (pattern, a.patterns + s->last_pattern * n,
                              n * sizeof (float2), cudaMemcpyDeviceToHost));
}

static ImkStatus
cuda_get_background (void *state, double *background, ImkError *error)
{
  const Cuda *s = (const Cuda *) state;
  const Arguments &a = s->arguments;
  size_t n = (size_t) a.config.n_cameras * a.config.width;
  const float2 *from = a.means ? a.means + s->last_means * n : a.background;

  static_assert (sizeof (float2) == sizeof (double), "parts are replaced");
  IMK_TRY (IMK_CUDA (error, cudaEventSynchronize (s->done)));
  IMK_TRY (IMK_CUDA (error, cudaMemcpy (background, from, n * sizeof (float2),
                                cudaMemcpyDeviceToHost)));
  for (size_t i = 0; i < n; i++) {
    float2 parts;

    memcpy (&parts, &background[i], sizeof (parts));
    background[i] = (double) parts.x + parts.y;
  }
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The object. */

static void
cuda_destroy (void *state)
{
  Cuda *s = (Cuda *) state;

  cudaFree (s->memory); /* waits for kernels that use it */
  if (s->done)
    cudaEventDestroy (s->done);
  operator_close (&s->op);
  transforms_close (&s->transforms);
  delete s;
}

static void
cut_means (Cuda *s, Cutter *c)
{
  Arguments &a = s->arguments;
  size_t spectra = (size_t) a.config.n_cameras * a.config.width,
         jobs = a.config.max_jobs;

  switch (a.config.background_mode) {
  case IMK_OCTBSCAN_BACKGROUND_RUNNING:
  case IMK_OCTBSCAN_BACKGROUND_FIRST:
    c->cut (&a.bscan_means, jobs * spectra);
    c->cut (&a.followed, spectra);
    c->cut (&a.n_followed, spectra);
    c->cut (&a.means, jobs * spectra);
    break;
  case IMK_OCTBSCAN_BACKGROUND_MEAN:
    c->cut (&a.means, jobs * spectra);
    break;
  case IMK_OCTBSCAN_BACKGROUND_ROLLING:
    c->cut (&a.means, jobs * a.config.height * a.config.width);
    break;
  default:
    break;
  }
}

static void
cut_memory (Cuda *s, Cutter *c, const ImkOctbscanPlan *plan)
{
  Arguments &a = s->arguments;
  size_t rows = n_rows (a);
  float2 *background = nullptr;

  c->cut (&a.z.products, rows * a.n_depths);
  c->cut (&a.z.scales, rows);
  c->cut (&s->jobs, a.config.max_jobs);
  cut_finish (&a, plan->lateral, c);
  cut_means (s, c);
  if (a.config.background_mode == IMK_OCTBSCAN_BACKGROUND_FILE)
    c->cut (&background, (size_t) a.config.n_cameras * a.config.width);
  if (a.config.strategy == IMK_OCTBSCAN_STRATEGY_FFT)
    transforms_cut (&s->transforms, a, c);
  else
    operator_cut (&s->op, a, c);
  a.background = background;
  a.jobs = s->jobs;
}

static ImkStatus
allocate (Cuda *s, const ImkOctbscanPlan *plan, ImkError *error)
{
  Cutter c = {nullptr, 0};

  cut_memory (s, &c, plan);
  IMK_TRY (IMK_CUDA (error, cudaMalloc (&s->memory, c.used)));
  IMK_TRY (IMK_CUDA (error, cudaMemset (s->memory, 0, c.used)));
  c = {(uint8_t *) s->memory, 0};
  cut_memory (s, &c, plan);
  return IMK_CUDA (
      error, cudaEventCreateWithFlags (&s->done, cudaEventDisableTiming));
}

static ImkStatus
upload_background (
    const Arguments &a, const double *background, ImkError *error)
{
  size_t n = (size_t) a.config.n_cameras * a.config.width;
  std::unique_ptr<float2[]> parts (new (std::nothrow) float2[n]);

  if (!parts)
    return IMK_NO_MEMORY (error, "for the background.");
  for (size_t i = 0; i < n; i++)
    imk_octbscan_split (background[i], &parts[i].x, &parts[i].y);
  return upload ((float2 *) a.background, parts.get (), n, error);
}

static ImkStatus
fill (Cuda *s, const ImkOctbscanPlan *plan, ImkError *error)
{
  const Arguments &a = s->arguments;

  IMK_TRY (upload_finish (a, plan, error));
  if (a.background)
    IMK_TRY (upload_background (a, plan->config->background, error));
  return a.config.strategy == IMK_OCTBSCAN_STRATEGY_FFT
             ? transforms_open (&s->transforms, a, error)
             : operator_open (&s->op, a, plan, error);
}

static void
describe (Cuda *s, const ImkOctbscanPlan *plan)
{
  const ImkOctbscanConfig *c = plan->config;
  Arguments &a = s->arguments;

  set_finish (&a, plan);
  s->op.padded = imk_div_up (c->width, ALIGNMENT) * ALIGNMENT;
  if (a.config.strategy == IMK_OCTBSCAN_STRATEGY_FFT)
    transforms_init (&s->transforms, a, plan);
}

static ImkStatus
cuda_create (const ImkOctbscanPlan *plan, void **state, ImkError *error)
{
  Cuda *s = new (std::nothrow) Cuda{};
  ImkStatus status;

  if (!s)
    return IMK_NO_MEMORY (error, "for CUDA B-scans.");
  describe (s, plan);
  status = allocate (s, plan, error);
  if (status == IMK_OK)
    status = fill (s, plan, error);
  if (status == IMK_OK)
    *state = s;
  else
    cuda_destroy (s);
  return status;
}

const ImkOctbscanBackend imk_octbscan_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .update = cuda_update,
    .process = cuda_process,
    .tune = cuda_tune,
    .get_pattern = cuda_get_pattern,
    .get_background = cuda_get_background,
    .destroy = cuda_destroy,
};
