/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* B-scans on the GPU: means, Z by one of the two strategies, ranks where they
 * are asked for, images. Each step is launched once for any number of jobs. */
#include <new>

#include "octbscan/octbscan-operator.cuh"
#include "octbscan/octbscan-transforms.cuh"

struct Cuda {
  Arguments arguments; /* all but the number of jobs */
  ImkType type;
  uint32_t max_jobs;
  ImkOctbscanBackground background_mode;
  ImkOctbscanStrategy strategy;
  Operator op; /* one of the two */
  Transforms transforms;
  void *memory; /* on the device, all of it */
  Job *jobs;
  float2 *products;
  float *scales;
  cudaEvent_t done;
};

static ImkStatus
run_strategy (
    const Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  return s->strategy == IMK_OCTBSCAN_STRATEGY_FFT
             ? transforms_run (s->transforms, s->type, a, stream, error)
             : operator_run (s->op, s->type, a, stream, error);
}

/* Work on this object may still run on another stream, and uses the same
 * memory. */
static ImkStatus
cuda_process (void *state, const ImkOctbscanJob *jobs, uint32_t n_jobs,
    void *stream, ImkError *error)
{
  Cuda *s = (Cuda *) state;
  const cudaStream_t on = (cudaStream_t) stream;
  Arguments a = s->arguments;
  ImkStatus status = IMK_CUDA (error, cudaStreamWaitEvent (on, s->done, 0));

  a.n_jobs = n_jobs;
  if (status == IMK_OK)
    status = launch_jobs (jobs, n_jobs, s->jobs, on, error);
  if (status == IMK_OK)
    status = launch_means (s->type, a, on, error);
  if (status == IMK_OK)
    status = run_strategy (s, a, on, error);
  if (status == IMK_OK)
    status = launch_finish (a, on, error);
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaEventRecord (s->done, on));
  return status;
}

static ImkStatus
cuda_update (void *state, const ImkOctbscanParams *params, ImkError *error)
{
  (void) error;
  ((Cuda *) state)->arguments.params = *params;
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
cut_memory (Cuda *s, Cutter *c, bool has_background)
{
  Arguments &a = s->arguments;
  size_t rows = (size_t) a.n_cameras * s->max_jobs * a.camera_rows;
  float *background = nullptr;

  c->cut (&s->products, rows * a.n_depths);
  c->cut (&s->scales, rows);
  c->cut (&s->jobs, s->max_jobs);
  cut_finish (&a, s->max_jobs, c);
  if (s->background_mode == IMK_OCTBSCAN_BACKGROUND_MEAN)
    c->cut (&a.means, (size_t) s->max_jobs * a.n_cameras * a.width);
  if (has_background)
    c->cut (&background, (size_t) a.n_cameras * a.width);
  if (s->strategy == IMK_OCTBSCAN_STRATEGY_FFT)
    transforms_cut (&s->transforms, a, c);
  else
    operator_cut (&s->op, a, s->max_jobs, c);
  a.background = background;
  a.jobs = s->jobs;
  a.products = s->op.products = s->transforms.lines.products = s->products;
  a.scales = s->op.scales = s->scales;
}

static ImkStatus
allocate (Cuda *s, const ImkOctbscanPlan *plan, ImkError *error)
{
  Cutter c = {nullptr, 0};
  ImkStatus status;

  cut_memory (s, &c, plan->background != nullptr);
  status = IMK_CUDA (error, cudaMalloc (&s->memory, c.used));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaMemset (s->memory, 0, c.used));
  if (status == IMK_OK) {
    c = {(uint8_t *) s->memory, 0};
    cut_memory (s, &c, plan->background != nullptr);
    status = IMK_CUDA (
        error, cudaEventCreateWithFlags (&s->done, cudaEventDisableTiming));
  }
  return status;
}

static ImkStatus
fill (Cuda *s, const ImkOctbscanPlan *plan, ImkError *error)
{
  const Arguments &a = s->arguments;
  size_t rows = (size_t) a.n_cameras * s->max_jobs * a.camera_rows;
  ImkStatus status = IMK_OK;

  if (plan->background)
    status = upload ((float *) a.background, plan->background,
        (size_t) a.n_cameras * a.width, error);
  if (status != IMK_OK)
    return status;
  return s->strategy == IMK_OCTBSCAN_STRATEGY_FFT
             ? transforms_open (&s->transforms, a, s->scales, rows, error)
             : operator_open (&s->op, a, plan, error);
}

static void
describe (Cuda *s, const ImkOctbscanPlan *plan, const ImkOctbscanParams *params)
{
  const ImkOctbscanConfig *c = plan->config;
  Arguments &a = s->arguments;

  s->type = c->type;
  s->max_jobs = c->max_jobs;
  s->background_mode = c->background_mode;
  s->strategy = c->strategy;
  a.width = c->width;
  a.height = c->height;
  a.n_cameras = c->n_cameras;
  a.n_depths = plan->n_depths;
  a.camera_rows = imk_div_up (c->height, c->n_cameras);
  a.depth_down = c->orientation == IMK_OCTBSCAN_ORIENTATION_DEPTH_DOWN;
  a.params = *params;
  s->op.padded = imk_div_up (c->width, ALIGNMENT) * ALIGNMENT;
  if (s->strategy == IMK_OCTBSCAN_STRATEGY_FFT)
    transforms_init (&s->transforms, a, plan);
}

static ImkStatus
cuda_create (const ImkOctbscanPlan *plan, const ImkOctbscanParams *params,
    void **state, ImkError *error)
{
  Cuda *s = new (std::nothrow) Cuda{};
  ImkStatus status;

  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for CUDA B-scans.");
  describe (s, plan, params);
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
    .destroy = cuda_destroy,
};
