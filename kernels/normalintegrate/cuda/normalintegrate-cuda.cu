/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The object: its memory and its calls. */
#include <new>

#include "core/cuda/cuda-check.h"
#include "normalintegrate/cuda/normalintegrate-solve.cuh"

static ImkStatus
cuda_find_range (void *state, const ImkNormalintegrateScale *scale,
    ImkNormalintegrateRange *range, void *stream, ImkError *error)
{
  Cuda *s = (Cuda *) state;
  const cudaStream_t on = (cudaStream_t) stream;
  const Arguments &a = s->arguments;
  cudaLaunchConfig_t all = pixels (on);

  IMK_TRY (IMK_CUDA_LAUNCH (error, all, find_range, a, *scale));
  IMK_TRY (imk_cuda_read (
      s->host_ranges, a.ranges, BLOCKS * sizeof (float2), on, error));
  *range = {INFINITY, -INFINITY};
  for (int i = 0; i < BLOCKS; i++) {
    range->lowest = fminf (range->lowest, s->host_ranges[i].x);
    range->highest = fmaxf (range->highest, s->host_ranges[i].y);
  }
  return IMK_OK;
}

/* @there: room on the device for the indices and the heights */
static ImkStatus
gather_all (const Arguments &a, uint32_t *there, const uint32_t *at, uint32_t n,
    float *z, cudaStream_t on, ImkError *error)
{
  float *found = (float *) (there + n);
  cudaLaunchConfig_t some =
      grid (dim3 (imk_div_up (n, THREADS)), dim3 (THREADS), on);

  IMK_TRY (IMK_CUDA (error, cudaMemcpyAsync (there, at, n * sizeof (*at),
                                cudaMemcpyHostToDevice, on)));
  IMK_TRY (IMK_CUDA_LAUNCH (error, some, gather_heights, a, there, n, found));
  return imk_cuda_read (z, found, n * sizeof (*z), on, error);
}

static ImkStatus
cuda_gather (void *state, const uint32_t *at, uint32_t n, float *z,
    void *stream, ImkError *error)
{
  Cuda *s = (Cuda *) state;
  uint32_t *there = NULL;
  ImkStatus status = IMK_CUDA (
      error, cudaMalloc ((void **) &there, n * (sizeof (*at) + sizeof (*z))));

  if (status == IMK_OK)
    status = gather_all (
        s->arguments, there, at, n, z, (cudaStream_t) stream, error);
  cudaFree (there);
  return status;
}

static ImkStatus
cuda_store (void *state, const ImkNormalintegrateScale *scale,
    ImkNormalintegrateOutputs *outputs, void *stream, ImkError *error)
{
  Cuda *s = (Cuda *) state;
  const cudaStream_t on = (cudaStream_t) stream;
  cudaLaunchConfig_t all = pixels (on);

  IMK_TRY (IMK_CUDA_LAUNCH (error, all, store, s->arguments, *scale, *outputs));
  return IMK_CUDA (error, cudaStreamSynchronize (on));
}

static ImkStatus
cuda_integrate (void *state, const ImkNormalintegrateParams *params,
    const ImkImage *in, ImkNormalintegrateSummary *summary, void *stream,
    ImkError *error)
{
  Cuda *s = (Cuda *) state;
  const cudaStream_t on = (cudaStream_t) stream;
  cudaLaunchConfig_t all = pixels (on);
  Arguments a = s->arguments;

  a.params = *params;
  a.in = *in;
  IMK_TRY (fft_set_stream (s->fft, on, error));
  if (params->method == IMK_NORMALINTEGRATE_FRANKOT_CHELLAPPA) {
    summary->n_iterations = 1;
    IMK_TRY (frankot_chellappa (s->fft, a, on, error));
    return count_valid (s, summary, on, error);
  }
  IMK_TRY (IMK_CUDA_LAUNCH (error, all, load_normals, a));
  IMK_TRY (count_valid (s, summary, on, error));
  if (summary->n_valid == 0)
    return IMK_OK;
  return params->method == IMK_NORMALINTEGRATE_BILATERAL
             ? bilateral (s, a, summary, on, error)
             : solve (s, a, summary, on, error);
}

/* ------------------------------------------------------------------------
 * The object. */

static void
cuda_destroy (void *state)
{
  Cuda *s = (Cuda *) state;
  Arguments &a = s->arguments;
  void *blocks[] = {a.z, a.r, a.p, a.q, a.valid, a.real, a.spectrum, a.along_y,
      a.sums, a.ranges, a.progress, s->tables};

  for (size_t i = 0; i < sizeof (blocks) / sizeof (*blocks); i++)
    cudaFree (blocks[i]);
  if (s->weighted)
    cudaFree (s->weighted->memory);
  delete s->weighted;
  cudaFreeHost (s->host_progress);
  cudaFreeHost (s->host_sums);
  cudaFreeHost (s->host_ranges);
  fft_close (&s->fft);
  delete s;
}

template <typename T>
static ImkStatus
allocate (T **block, size_t n, ImkError *error)
{
  return IMK_CUDA (error, cudaMalloc ((void **) block, n * sizeof (T)));
}

template <typename T>
static ImkStatus
allocate_host (T **block, size_t n, ImkError *error)
{
  return IMK_CUDA (error, cudaMallocHost ((void **) block, n * sizeof (T)));
}

static ImkStatus
allocate_all (Cuda *s, ImkError *error)
{
  Arguments &a = s->arguments;
  size_t n = (size_t) a.plan.width * a.plan.height;
  size_t n_bins = (size_t) (a.plan.width / 2 + 1) * a.plan.height;

  IMK_TRY (allocate (&a.z, n, error));
  IMK_TRY (allocate (&a.r, n, error));
  IMK_TRY (allocate (&a.p, n, error));
  IMK_TRY (allocate (&a.q, n, error));
  IMK_TRY (allocate (&a.valid, n, error));
  IMK_TRY (allocate (&a.real, n, error));
  IMK_TRY (allocate (&a.spectrum, n_bins, error));
  IMK_TRY (allocate (&a.along_y, n_bins, error));
  IMK_TRY (allocate (&a.sums, BLOCKS, error));
  IMK_TRY (allocate (&a.ranges, BLOCKS, error));
  IMK_TRY (allocate (&a.progress, 1, error));
  IMK_TRY (allocate_host (&s->host_progress, 1, error));
  IMK_TRY (allocate_host (&s->host_sums, BLOCKS, error));
  return allocate_host (&s->host_ranges, BLOCKS, error);
}

/* @to: (inout): where this axis begins, and where the next one does */
static ImkStatus
upload_axis (ImkNormalintegrateAxis *axis, float **to, ImkError *error)
{
  struct {
    const float **table;
    size_t n;
  } parts[] = {
      {(const float **) &axis->turn, 2 * (size_t) (axis->n / 2 + 1)},
      {&axis->lambda, axis->n + (size_t) 1},
      {&axis->wave, axis->n},
  };

  for (size_t i = 0; i < 3; i++) {
    IMK_TRY (IMK_CUDA (
        error, cudaMemcpy (*to, *parts[i].table, parts[i].n * sizeof (float),
                   cudaMemcpyHostToDevice)));
    *parts[i].table = *to;
    *to += parts[i].n + parts[i].n % 2; /* pairs stay aligned */
  }
  return IMK_OK;
}

static ImkStatus
upload_tables (Cuda *s, ImkError *error)
{
  ImkNormalintegratePlan *p = &s->arguments.plan;
  size_t n = 3 * ((size_t) p->width + p->height) + 16;
  float *to;

  IMK_TRY (allocate (&s->tables, n, error));
  to = s->tables;
  IMK_TRY (upload_axis (&p->x, &to, error));
  return upload_axis (&p->y, &to, error);
}

static ImkStatus
cuda_create (const ImkNormalintegratePlan *plan, void **state, ImkError *error)
{
  Cuda *s = new (std::nothrow) Cuda{};
  ImkStatus status;

  if (!s)
    return IMK_NO_MEMORY (error, "for the object.");
  s->arguments.plan = *plan;
  status = allocate_all (s, error);
  if (status == IMK_OK)
    status = upload_tables (s, error);
  if (status == IMK_OK)
    status = fft_open (&s->fft, s->arguments, error);
  if (status == IMK_OK)
    *state = s;
  else
    cuda_destroy (s);
  return status;
}

const ImkNormalintegrateBackend imk_normalintegrate_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .integrate = cuda_integrate,
    .find_range = cuda_find_range,
    .gather = cuda_gather,
    .store = cuda_store,
    .destroy = cuda_destroy,
};
