/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bands are on the device: a line is copied there once, as it comes. A row
 * of patches is worked on in batches, each step for all patches of a batch at a
 * time: amplitudes, one transform of both sides, the transform of their product
 * back, and a block a patch for the rest. */
#include <cstring>
#include <new>

#include "insarxcorr/insarxcorr-compat.cuh"
#include "insarxcorr/insarxcorr-precise.cuh"

using namespace insar;

enum {
  WINDOW = IMK_INSARXCORR_WINDOW,
  MAX_BATCH = 32768,       /* blockIdx.y goes to 65535 */
  NORMALISE_BLOCKS = 32,   /* a patch */
  GOOD_WORK = 256 << 20,   /* bytes, where memory is not limited */
  GOOD_SHARED = 48 * 1024, /* more has to be asked for */
  N_SIDES = IMK_INSARXCORR_N_SIDES,
};

struct Cuda {
  const ImkInsarxcorrPlan *plan;
  const ImkInsarxcorrPart *part;
  Arguments arguments; /* all but items and out of the batch */
  uint32_t max_batch;
  void *memory; /* on the device, all of it */
  Item *items;
  Item *host_items; /* page-locked */
  float2 *turns;    /* on the device, of all lengths */
  Fft lines, lag_lines, lag_columns;
  /* PRECISE: of a side, and finer */
  Fft patch_lines[N_SIDES], patch_columns[N_SIDES];
  Fft wide_lines[N_SIDES], wide_columns[N_SIDES];
  cudaEvent_t copied;
  cudaStream_t uploads[N_SIDES];
};

/* ------------------------------------------------------------------------
 * The peak, a block a patch. */

/* The first of the largest has the largest key. */
static __device__ __forceinline__ unsigned long long
key_of (uint32_t rank, uint32_t i)
{
  return (unsigned long long) rank << 32 | (0xffffffffu - i);
}

/* Returns: an integer of the same order as @value */
static __device__ __forceinline__ uint32_t
order_of (float value)
{
  uint32_t bits = __float_as_uint (value);

  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* By the whole block. Returns: the key of the largest lag */
static __device__ unsigned long long
find_largest (const float *surface, uint32_t n, double *squares)
{
  unsigned long long best = 0;
  double sum = 0;

#pragma unroll 8
  for (uint32_t i = threadIdx.x; i < n; i += BLOCK) {
    float value = surface[i];

    best = max (best, key_of (imk_insarxcorr_rank (value), i));
    sum += (double) value * value;
  }
  *squares = block_sum (sum);
  return block_max (best);
}

/* By the whole block: the largest of the finer window. */
static __device__ void
refine (const Arguments &a, const ImkInsarxcorrWindow window, double *rows,
    uint32_t v, uint32_t u, ImkInsarxcorrPeak *peak)
{
  const ImkInsarxcorrZoom zoom =
      imk_insarxcorr_zoom_over (a.plan->config.interp, a.zoom);
  const uint32_t n_fine = WINDOW * zoom.interp;
  const double alternating = imk_insarxcorr_zoom_alternating (window);
  unsigned long long best = 0;
  uint32_t at, g, h;
  double fine[3][3];

  for (uint32_t i = threadIdx.x; i < WINDOW * n_fine; i += BLOCK)
    rows[i] = imk_insarxcorr_zoom_row (&zoom, window, i / n_fine, i % n_fine);
  __syncthreads ();
  for (uint32_t i = threadIdx.x; i < n_fine * n_fine; i += BLOCK) {
    float value = (float) imk_insarxcorr_zoom_at (
        &zoom, alternating, rows, i % n_fine, i / n_fine);

    best = max (best, key_of (order_of (value), i));
  }
  at = 0xffffffffu - (uint32_t) block_max (best);
  g = at / n_fine;
  h = at % n_fine;
  if (threadIdx.x > 0)
    return;
  for (uint32_t i = 0; i < 3; i++)
    for (uint32_t j = 0; j < 3; j++)
      fine[i][j] = imk_insarxcorr_zoom_at (&zoom, alternating, rows,
          imk_insarxcorr_beside (h, j, n_fine),
          imk_insarxcorr_beside (g, i, n_fine));
  imk_insarxcorr_refine (a.plan, v, u, h, g, fine, peak);
}

/* By the whole block: what is known of a patch whose largest lag is (@v, @u).
 */
static __device__ void
measure (const Arguments &a, double *rows, float largest, double squares,
    uint32_t v, uint32_t u, ImkInsarxcorrPeak *peak)
{
  __shared__ ImkInsarxcorrWindow samples, window;
  const ImkInsarxcorrConfig *c = &a.plan->config;
  const uint32_t width = a.fine.n_lags_x, height = a.fine.n_lags_y;
  const uint32_t item = blockIdx.x, i = threadIdx.x / WINDOW % WINDOW;
  const uint32_t j = threadIdx.x % WINDOW;

  if (c->mode == IMK_INSARXCORR_PRECISE)
    peak->correlation = 100 * (double) largest;
  else if (c->method == IMK_INSARXCORR_FREQ)
    peak->correlation = correlation_at (a, item, v, u);
  else
    peak->correlation = largest;
  if (threadIdx.x < WINDOW * WINDOW) {
    /* below 0 they wrap to large numbers */
    uint32_t y = u + i - WINDOW / 2, x = v + j - WINDOW / 2;

    samples[i][j] = y < height && x < width
                        ? a.surface[((size_t) item * height + y) * width + x]
                        : 0;
    window[i][j] = imk_insarxcorr_weigh (c, samples[i][j], largest);
  }
  __syncthreads ();
  if (threadIdx.x == 0)
    imk_insarxcorr_qualify (a.plan, v, u, squares, samples, peak);
  refine (a, window, rows, v, u, peak);
}

static __global__ void
find_peaks (const __grid_constant__ Arguments a)
{
  extern __shared__ double rows[]; /* [8][8 F] */
  const Item &item = a.items[blockIdx.x];
  const uint32_t n = a.fine.n_lags_x * a.fine.n_lags_y;
  double *out = (double *) (a.out + item.row * a.out_stride);
  ImkInsarxcorrPeak peak = {};
  double squares;
  uint32_t at;
  float largest;

  if (item.patch.flags & IMK_INSARXCORR_MASKED) {
    if (threadIdx.x == 0)
      imk_insarxcorr_finish_masked (a.plan, &item.patch, out);
    return;
  }
  at = 0xffffffffu - (uint32_t) find_largest (
                         a.surface + (size_t) blockIdx.x * n, n, &squares);
  largest = a.surface[(size_t) blockIdx.x * n + at];
  if (a.levels[blockIdx.x].is_flat || !(largest > 0) || !isfinite (largest))
    imk_insarxcorr_no_peak (&a.plan->config, &peak);
  else
    measure (a, rows, largest, squares, at % a.fine.n_lags_x,
        at / a.fine.n_lags_x, &peak);
  if (threadIdx.x > 0)
    return;
  peak.valid = 1;
  for (int s = 0; s < N_SIDES; s++) {
    double size = (double) a.plan->patch_width[s] * a.plan->patch_height[s];

    peak.valid = fmin (peak.valid, a.n_valid[2 * blockIdx.x + s] / size);
  }
  imk_insarxcorr_finish (a.plan, &item.patch, &peak, out);
}

/* ------------------------------------------------------------------------
 * Launches. */

static cudaLaunchConfig_t
grid (dim3 blocks, dim3 threads, size_t shared, cudaStream_t stream)
{
  cudaLaunchConfig_t launch = {};

  launch.gridDim = blocks;
  launch.blockDim = threads;
  launch.dynamicSmemBytes = shared;
  launch.stream = stream;
  return launch;
}

template <typename Kernel>
static ImkStatus
allow_shared (Kernel kernel, size_t size, ImkError *error)
{
  if (size <= GOOD_SHARED)
    return IMK_OK;
  return IMK_CUDA (
      error, cudaFuncSetAttribute ((const void *) kernel,
                 cudaFuncAttributeMaxDynamicSharedMemorySize, (int) size));
}

/* @n_lines lines of @n patches. */
template <bool backward, bool columns, typename Job>
static ImkStatus
launch_transform (const Fft &f, uint32_t n_lines, uint32_t n, const Job &job,
    cudaStream_t stream, ImkError *error)
{
  const dim3 block = block_for (f.n);
  const size_t shared = shared_for (f.n, 2);
  cudaLaunchConfig_t launch =
      grid (dim3 (imk_div_up (n_lines, block.y), n), block, shared, stream);
  ImkStatus status =
      allow_shared (transform<backward, columns, Job>, shared, error);

  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (
        error, launch, (transform<backward, columns, Job>), f, n_lines, job);
  return status;
}

template <ImkType type>
static ImkStatus
launch_compat_lines (const Cuda *s, const Arguments &a, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  const dim3 block = block_for (s->lines.n);
  const size_t shared = shared_for (s->lines.n, a.fine.interp_x > 2 ? 3 : 2);
  cudaLaunchConfig_t launch =
      grid (dim3 (imk_div_up (a.fine.height[0], block.y), n, N_SIDES), block,
          shared, stream);
  ImkStatus status = allow_shared (detect_lines<type>, shared, error);

  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, launch, detect_lines<type>, s->lines, a);
  return status;
}

template <ImkType type>
static ImkStatus
launch_precise_side (const Cuda *s, const Arguments &a, int side, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  const uint32_t width = s->plan->patch_width[side];
  const uint32_t height = s->plan->patch_height[side];
  const SampleLines<type> samples = {a, side, width, height};
  const Columns columns = {a.samples, width, height};
  const WideColumns wide_columns = {a, side, width, height,
      height * a.fine.interp_y,
      imk_insarxcorr_fine_start (s->plan, side, false), a.fine.height[side]};
  const WideLines wide_lines = {a, side, width, width * a.fine.interp_x,
      imk_insarxcorr_fine_start (s->plan, side, true),
      imk_insarxcorr_fine_scale (s->plan, side)};
  ImkStatus status = launch_transform<false, false> (
      s->patch_lines[side], height, n, samples, stream, error);

  if (status == IMK_OK)
    status = launch_transform<false, true> (
        s->patch_columns[side], width, n, columns, stream, error);
  if (status == IMK_OK)
    status = launch_transform<true, true> (
        s->wide_columns[side], width, n, wide_columns, stream, error);
  if (status == IMK_OK)
    status = launch_transform<true, false> (
        s->wide_lines[side], a.fine.height[side], n, wide_lines, stream, error);
  return status;
}

template <ImkType type>
static ImkStatus
launch_amplitudes (const Cuda *s, const Arguments &a, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  const uint32_t height = max (a.fine.height[0], a.fine.height[1]);
  cudaLaunchConfig_t one_each = grid (dim3 (n), dim3 (BLOCK), 0, stream);
  cudaLaunchConfig_t lines =
      grid (dim3 (imk_div_up (height, BLOCK / WARP), n, N_SIDES), dim3 (BLOCK),
          0, stream);
  ImkStatus status;

  if (s->plan->config.mode == IMK_INSARXCORR_COMPAT) {
    status = launch_compat_lines<type> (s, a, n, stream, error);
  } else {
    status = IMK_CUDA_LAUNCH (error, one_each, find_centres<type>, a);
    for (int side = 0; side < N_SIDES && status == IMK_OK; side++)
      status = launch_precise_side<type> (s, a, side, n, stream, error);
  }
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, lines, find_line_levels, a);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, one_each, find_levels, a);
  return status;
}

static ImkStatus
launch_amplitudes_of (const Cuda *s, const Arguments &a, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  switch (s->plan->config.type) {
  case IMK_TYPE_CI16:
    return launch_amplitudes<IMK_TYPE_CI16> (s, a, n, stream, error);
  case IMK_TYPE_CF32:
    return launch_amplitudes<IMK_TYPE_CF32> (s, a, n, stream, error);
  default:
    return launch_amplitudes<IMK_TYPE_F32> (s, a, n, stream, error);
  }
}

/* By FFT. COMPAT: lags from -n_lags / 2 on, of what is under the secondary's
 * template; PRECISE: from 0 on, the first being -n_lags / 2 as patches lie. */
static ImkStatus
launch_correlation (const Cuda *s, const Arguments &a, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  const ImkInsarxcorrFine &f = a.fine;
  const bool precise = s->plan->config.mode == IMK_INSARXCORR_PRECISE;
  const Rect template_ = {f.width[1] / 4, f.height[1] / 4, 3 * (f.width[1] / 4),
      3 * (f.height[1] / 4)};
  const Rect all[] = {
      {0, 0, f.width[0], f.height[0]}, {0, 0, f.width[1], f.height[1]}};
  const PackedLines lines = {a, {all[0], precise ? all[1] : template_}};
  const Columns columns = {a.spectra, f.fft_width, f.fft_height};
  const ProductColumns products = {
      a, precise ? 0 : f.fft_height - f.fft_height / 4, precise};
  const LagLines lags = {
      a, precise ? 0 : f.fft_width - f.fft_width / 4, !precise};
  ImkStatus status = launch_transform<false, false> (
      s->lag_lines, f.fft_height, n, lines, stream, error);

  if (status == IMK_OK)
    status = launch_transform<false, true> (
        s->lag_columns, f.fft_width, n, columns, stream, error);
  if (status == IMK_OK)
    status = launch_transform<true, true> (
        s->lag_columns, f.fft_width / 2 + 1, n, products, stream, error);
  if (status == IMK_OK)
    status = launch_transform<true, false> (
        s->lag_lines, imk_div_up (f.n_lags_y, 2), n, lags, stream, error);
  return status;
}

static ImkStatus
launch_normalisation (
    const Arguments &a, uint32_t n, cudaStream_t stream, ImkError *error)
{
  const ImkInsarxcorrFine &f = a.fine;
  const size_t shared = f.width[1] * sizeof (double2);
  cudaLaunchConfig_t sums = grid (
      dim3 (imk_div_up (f.width[1], BLOCK), imk_div_up (f.n_lags_y, STRIP), n),
      dim3 (BLOCK), 0, stream);
  cudaLaunchConfig_t lines =
      grid (dim3 (NORMALISE_BLOCKS, n), dim3 (BLOCK), shared, stream);
  ImkStatus status = IMK_CUDA_LAUNCH (error, sums, sum_columns, a);

  if (status == IMK_OK)
    status = allow_shared (normalise_lines, shared, error);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, lines, normalise_lines, a);
  return status;
}

static ImkStatus
launch_surface (const Cuda *s, const Arguments &a, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  const ImkInsarxcorrConfig *c = &s->plan->config;
  const uint32_t n_lags = a.fine.n_lags_x * a.fine.n_lags_y;
  cudaLaunchConfig_t time =
      grid (dim3 (imk_div_up (n_lags, BLOCK), n), dim3 (BLOCK), 0, stream);
  ImkStatus status;

  if (c->mode == IMK_INSARXCORR_COMPAT && c->method != IMK_INSARXCORR_FREQ)
    return IMK_CUDA_LAUNCH (
        error, time, correlate_in_time, a, c->method == IMK_INSARXCORR_TIME4);
  status = launch_correlation (s, a, n, stream, error);
  if (status == IMK_OK && c->mode == IMK_INSARXCORR_PRECISE)
    status = launch_normalisation (a, n, stream, error);
  return status;
}

/* ------------------------------------------------------------------------
 * A row. */

/* Those that are measured first. Returns: how many they are */
static uint32_t
sort_items (const Cuda *s, uint32_t row, uint32_t first, uint32_t n)
{
  const ImkInsarxcorrPatch *patches = s->plan->patches +
                                      (size_t) row * s->plan->config.nx +
                                      s->part->first + first;
  uint32_t front = 0, back = n;

  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = patches[i].flags & IMK_INSARXCORR_MASKED ? --back : front++;

    s->host_items[at] = {patches[i], s->part->first + first + i};
  }
  return front;
}

/* The last items must have been copied before there are new ones. */
static ImkStatus
send_items (Cuda *s, uint32_t row, uint32_t first, uint32_t n,
    uint32_t *n_measured, cudaStream_t stream, ImkError *error)
{
  ImkStatus status = IMK_CUDA (error, cudaEventSynchronize (s->copied));

  if (status != IMK_OK)
    return status;
  *n_measured = sort_items (s, row, first, n);
  status =
      IMK_CUDA (error, cudaMemcpyAsync (s->items, s->host_items,
                           n * sizeof (Item), cudaMemcpyHostToDevice, stream));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaEventRecord (s->copied, stream));
  if (status == IMK_OK)
    status =
        IMK_CUDA (error, cudaMemsetAsync (s->arguments.n_valid, 0,
                             (size_t) n * N_SIDES * sizeof (uint32_t), stream));
  return status;
}

static ImkStatus
process_batch (Cuda *s, uint32_t row, uint32_t first, uint32_t n,
    const ImkImage *out, cudaStream_t stream, ImkError *error)
{
  const size_t rows =
      (size_t) WINDOW * WINDOW * s->plan->config.interp * sizeof (double);
  cudaLaunchConfig_t peaks = grid (dim3 (n), dim3 (BLOCK), rows, stream);
  Arguments a = s->arguments;
  uint32_t n_measured = 0;
  ImkStatus status = send_items (s, row, first, n, &n_measured, stream, error);

  a.out = (uint8_t *) out->data;
  a.out_stride = out->stride;
  if (status == IMK_OK && n_measured)
    status = launch_amplitudes_of (s, a, n_measured, stream, error);
  if (status == IMK_OK && n_measured)
    status = launch_surface (s, a, n_measured, stream, error);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, peaks, find_peaks, a);
  return status;
}

static ImkStatus
cuda_process (
    void *state, uint32_t row, ImkImage *out, void *stream, ImkError *error)
{
  Cuda *s = (Cuda *) state;
  ImkStatus status = IMK_OK;

  for (uint32_t first = 0; first < s->part->n && status == IMK_OK;
       first += s->max_batch)
    status =
        process_batch (s, row, first, min (s->max_batch, s->part->n - first),
            out, (cudaStream_t) stream, error);
  return status;
}

/* ------------------------------------------------------------------------
 * Lines. */

/* Returns: the end of the lines from @line on that follow each other in the
 * band, at most @end */
static uint32_t
band_end (const ImkInsarxcorrBand *band, uint32_t line, uint32_t end)
{
  uint32_t wrap = line - line % band->n_lines + band->n_lines;

  return wrap < end ? wrap : end;
}

static ImkStatus
cuda_push (void *state, ImkInsarxcorrSide side, uint32_t line,
    const ImkImage *lines, ImkError *error)
{
  Cuda *s = (Cuda *) state;
  const ImkInsarxcorrBand *band = &s->part->bands[side];
  const Band &to = s->arguments.bands[side];
  const size_t size = imk_type_size (lines->type);
  const uint32_t end = line + lines->height;
  ImkStatus status = IMK_OK;

  for (uint32_t from = line, next; from < end && status == IMK_OK;
       from = next) {
    next = band_end (band, from, end);
    for (uint32_t j = 0; j < band->n_spans && status == IMK_OK; j++) {
      const ImkInsarxcorrSpan *span = &band->spans[j];

      status = IMK_CUDA (
          error, cudaMemcpy2DAsync ((uint8_t *) to.data +
                                        from % band->n_lines * to.stride +
                                        span->at * size,
                     to.stride,
                     (const uint8_t *) lines->data +
                         (from - line) * lines->stride + span->column * size,
                     lines->stride, span->width * size, next - from,
                     cudaMemcpyHostToDevice, s->uploads[side]));
    }
  }
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaStreamSynchronize (s->uploads[side]));
  return status;
}

/* ------------------------------------------------------------------------
 * The object. */

static void
cuda_destroy (void *state)
{
  Cuda *s = (Cuda *) state;

  cudaFree (s->memory); /* waits for kernels that use it */
  cudaFreeHost (s->host_items);
  if (s->copied)
    cudaEventDestroy (s->copied);
  for (int side = 0; side < N_SIDES; side++)
    if (s->uploads[side])
      cudaStreamDestroy (s->uploads[side]);
  delete s;
}

/* Cuts one block of memory into parts; with a NULL block it only adds up. */
struct Cutter {
  uint8_t *block;
  size_t used;

  template <typename T>
  void
  cut (T **part, size_t n)
  {
    *part = block ? (T *) (block + used) : nullptr;
    used += (n * sizeof (T) + 255) / 256 * 256;
  }
};

/* What @n patches take at a time. */
static void
cut_work (Cuda *s, Cutter *c, size_t n)
{
  const ImkInsarxcorrPlan *plan = s->plan;
  const ImkInsarxcorrFine &f = plan->fine;
  const bool precise = plan->config.mode == IMK_INSARXCORR_PRECISE;
  const bool by_fft = precise || plan->config.method == IMK_INSARXCORR_FREQ;
  Arguments &a = s->arguments;
  size_t samples = 0, wide = 0;

  for (int side = 0; side < N_SIDES; side++) {
    size_t width = plan->patch_width[side], height = plan->patch_height[side];

    samples = width * height > samples ? width * height : samples;
    wide = width * f.height[side] > wide ? width * f.height[side] : wide;
    c->cut (&a.line_levels[side], n * f.height[side]);
    c->cut (&a.amplitudes[side], n * f.width[side] * f.height[side]);
  }
  c->cut (&s->items, n);
  c->cut (&a.n_valid, N_SIDES * n);
  c->cut (&a.centres, N_SIDES * n);
  c->cut (&a.levels, n);
  c->cut (&a.samples, precise ? n * samples : 0);
  c->cut (&a.wide, precise ? n * wide : 0);
  c->cut (&a.spectra, by_fft ? n * f.fft_width * f.fft_height : 0);
  c->cut (&a.products, by_fft ? n * (f.fft_width / 2 + 1) * f.n_lags_y : 0);
  c->cut (&a.sums, precise ? n * f.width[1] * f.n_lags_y : 0);
  c->cut (&a.surface, n * f.n_lags_x * f.n_lags_y);
  a.items = s->items;
}

/* Every length that is transformed, and what is done with it. */
static uint32_t
list_ffts (Cuda *s, Fft **ffts)
{
  const ImkInsarxcorrPlan *plan = s->plan;
  const ImkInsarxcorrFine &f = plan->fine;
  uint32_t n = 0;

  plan_fft (ffts[n++] = &s->lines, plan->patch_width[0]);
  plan_fft (ffts[n++] = &s->lag_lines, f.fft_width);
  plan_fft (ffts[n++] = &s->lag_columns, f.fft_height);
  for (int side = 0; side < N_SIDES; side++) {
    uint32_t width = plan->patch_width[side];
    uint32_t height = plan->patch_height[side];

    plan_fft (ffts[n++] = &s->patch_lines[side], width);
    plan_fft (ffts[n++] = &s->patch_columns[side], height);
    plan_fft (ffts[n++] = &s->wide_lines[side], width * f.interp_x);
    plan_fft (ffts[n++] = &s->wide_columns[side], height * f.interp_y);
  }
  return n;
}

enum { MAX_FFTS = 3 + 4 * N_SIDES };

/* Tables, which hold whatever patches there are. */
struct Tables {
  ImkInsarxcorrPlan *plan;
  double *zoom;
  float2 *phases, *turns;
};

static size_t
count_turns (Cuda *s)
{
  Fft *ffts[MAX_FFTS];
  uint32_t n = list_ffts (s, ffts);
  size_t sum = 0;

  for (uint32_t i = 0; i < n; i++)
    sum += ffts[i]->n;
  return sum;
}

static void
cut_tables (Cuda *s, Cutter *c, Tables *t)
{
  const ImkInsarxcorrPlan *plan = s->plan;

  c->cut (&t->plan, 1);
  c->cut (&t->zoom,
      imk_insarxcorr_zoom_size (plan->config.interp) / sizeof (double));
  c->cut (&t->phases, (size_t) plan->fine.interp_x * plan->patch_width[0]);
  c->cut (&t->turns, count_turns (s));
}

static void
cut_bands (Cuda *s, Cutter *c)
{
  for (int side = 0; side < N_SIDES; side++) {
    const ImkInsarxcorrBand *band = &s->part->bands[side];
    Band &b = s->arguments.bands[side];

    b.stride =
        (band->width * imk_type_size (s->plan->config.type) + 255) / 256 * 256;
    b.width = (int32_t) band->width;
    b.n_lines = (int32_t) band->n_lines;
    b.image_height = (int32_t) band->image_height;
    c->cut (&b.data, b.stride * band->n_lines);
  }
}

/* Bins from n / 2 on are negative frequencies; the transform back divides by
 * nothing. */
static void
fill_phases (float2 *phases, uint32_t interp, uint32_t n)
{
  const double pi = 3.14159265358979323846;

  for (uint32_t m = 0; m < interp; m++)
    for (uint32_t k = 0; k < n; k++) {
      double frequency = k < n / 2 ? (double) k : (double) k - n;
      double angle = 2 * pi * frequency * m / ((double) interp * n);

      phases[(size_t) m * n + k] =
          make_float2 ((float) (cos (angle) / n), (float) (sin (angle) / n));
    }
}

static void
fill_turns (Cuda *s, float2 *turns, float2 *device)
{
  const double pi = 3.14159265358979323846;
  Fft *ffts[MAX_FFTS];
  uint32_t n = list_ffts (s, ffts);
  size_t at = 0;

  for (uint32_t i = 0; i < n; i++) {
    ffts[i]->turns = device + at;
    for (uint32_t k = 0; k < ffts[i]->n; k++) {
      double angle = -2 * pi * k / ffts[i]->n;

      turns[at++] = make_float2 ((float) cos (angle), (float) sin (angle));
    }
  }
}

static ImkStatus
upload_tables (Cuda *s, ImkError *error)
{
  Cutter sizes = {nullptr, 0}, host, device = {(uint8_t *) s->memory, 0};
  Tables t, d;
  ImkStatus status;

  cut_tables (s, &sizes, &t);
  host = {new (std::nothrow) uint8_t[sizes.used], 0};
  if (!host.block)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for tables of %zu bytes.", sizes.used);
  cut_tables (s, &host, &t);
  cut_tables (s, &device, &d);
  *t.plan = *s->plan;
  imk_insarxcorr_zoom_fill (s->plan->config.interp, t.zoom);
  fill_phases (t.phases, s->plan->fine.interp_x, s->plan->patch_width[0]);
  fill_turns (s, t.turns, d.turns);
  s->arguments.plan = d.plan;
  s->arguments.zoom = d.zoom;
  s->arguments.phases = d.phases;
  s->arguments.fine = s->plan->fine;
  status = IMK_CUDA (error,
      cudaMemcpy (s->memory, host.block, sizes.used, cudaMemcpyHostToDevice));
  delete[] host.block;
  return status;
}

/* As many patches at a time as memory is allowed for. */
static ImkStatus
choose_batch (Cuda *s, size_t tables, ImkError *error)
{
  const ImkInsarxcorrPlan *plan = s->plan;
  uint64_t limit = plan->work_limit ? plan->work_limit : GOOD_WORK;
  Cutter one = {nullptr, 0}, many = {nullptr, 0};
  uint64_t n;

  cut_work (s, &one, 1);
  if (plan->work_limit && tables + one.used > limit)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "memory-limit leaves %llu bytes for the work on patches of %u x %u "
        "samples, which takes %zu at least. Raise it, or take a smaller "
        "search.",
        (unsigned long long) limit, plan->patch_width[1], plan->patch_height[1],
        tables + one.used);
  cut_work (s, &many, 256); /* rounding up counts less */
  n = limit > tables ? (limit - tables) * 256 / many.used : 1;
  n = n > MAX_BATCH ? MAX_BATCH : n < 1 ? 1 : n;
  s->max_batch = n < s->part->n ? (uint32_t) n : s->part->n;
  return IMK_OK;
}

static ImkStatus
allocate (Cuda *s, ImkError *error)
{
  Cutter c = {nullptr, 0};
  Tables t;
  ImkStatus status;

  cut_tables (s, &c, &t);
  status = choose_batch (s, c.used, error);
  if (status != IMK_OK)
    return status;
  cut_bands (s, &c);
  cut_work (s, &c, s->max_batch);
  status = IMK_CUDA (error, cudaMalloc (&s->memory, c.used));
  if (status != IMK_OK)
    return status;
  c = {(uint8_t *) s->memory, 0};
  cut_tables (s, &c, &t);
  cut_bands (s, &c);
  cut_work (s, &c, s->max_batch);
  return IMK_CUDA (
      error, cudaHostAlloc ((void **) &s->host_items,
                 s->max_batch * sizeof (Item), cudaHostAllocPortable));
}

static ImkStatus
create_order (Cuda *s, ImkError *error)
{
  ImkStatus status = IMK_CUDA (
      error, cudaEventCreateWithFlags (&s->copied, cudaEventDisableTiming));

  for (int side = 0; side < N_SIDES && status == IMK_OK; side++)
    status = IMK_CUDA (error,
        cudaStreamCreateWithFlags (&s->uploads[side], cudaStreamNonBlocking));
  return status;
}

/* A line has to fit the shared memory of a block. */
static ImkStatus
check_shared (Cuda *s, ImkError *error)
{
  Fft *ffts[MAX_FFTS];
  uint32_t n = list_ffts (s, ffts);
  const bool compat = s->plan->config.mode == IMK_INSARXCORR_COMPAT;
  uint32_t copies = compat && s->plan->fine.interp_x > 2 ? 3 : 2;
  size_t largest = 0;
  int device = 0, most = 0;
  ImkStatus status = IMK_CUDA (error, cudaGetDevice (&device));

  if (status == IMK_OK)
    status =
        IMK_CUDA (error, cudaDeviceGetAttribute (&most,
                             cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  for (uint32_t i = 0; i < (compat ? 3 : n); i++) {
    size_t size = shared_for (ffts[i]->n, copies);

    largest = size > largest ? size : largest;
  }
  if (status == IMK_OK && largest > (size_t) most)
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "Lines of these patches take %zu bytes of the GPU's shared memory, and "
        "it has %d. Take a smaller search or window, or use backend=cpu.",
        largest, most);
  return status;
}

static ImkStatus
cuda_create (
    const ImkInsarxcorrPlan *plan, uint32_t part, void **state, ImkError *error)
{
  Cuda *s = new (std::nothrow) Cuda{};
  ImkStatus status;

  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for CUDA correlation.");
  s->plan = plan;
  s->part = &plan->parts[part];
  status = check_shared (s, error);
  if (status == IMK_OK)
    status = allocate (s, error);
  if (status == IMK_OK)
    status = upload_tables (s, error);
  if (status == IMK_OK)
    status = create_order (s, error);
  if (status == IMK_OK)
    *state = s;
  else
    cuda_destroy (s);
  return status;
}

const ImkInsarxcorrBackend imk_insarxcorr_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .push = cuda_push,
    .process = cuda_process,
    .destroy = cuda_destroy,
};
