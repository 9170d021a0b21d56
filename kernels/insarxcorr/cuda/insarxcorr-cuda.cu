/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bands are on the device: a line is copied there once, as it comes. A row
 * of patches is worked on in batches, each step for all patches of a batch at a
 * time: amplitudes, one transform of both sides, the transform of their product
 * back, and a block a patch for the rest. The usual plans keep the amplitudes
 * of lines that the next row has as well. */
#include "core/cuda/cuda-launch.h"
#include "insarxcorr/cuda/insarxcorr-compat-registers.cuh"
#include "insarxcorr/cuda/insarxcorr-cuda-memory.cuh"
#include "insarxcorr/cuda/insarxcorr-cuda-peak.cuh"
#include "insarxcorr/cuda/insarxcorr-precise.cuh"

using namespace insar;

enum {
  NORMALISE_BLOCKS = 32,   /* for each patch */
  GOOD_SHARED = 48 * 1024, /* more needs cudaFuncSetAttribute () */
};

/* ------------------------------------------------------------------------
 * Launches. */

/* All that there is, whatever @size: another object, with patches of another
 * size, may set the same of the same kernel before this one launches it. None
 * of the kernels has shared memory of its own. */
template <typename Kernel>
static ImkStatus
allow_shared (Kernel kernel, size_t size, ImkError *error)
{
  int most = 0;

  if (size <= GOOD_SHARED)
    return IMK_OK;
  IMK_TRY (get_most_shared (&most, error));
  return IMK_CUDA (
      error, cudaFuncSetAttribute ((const void *) kernel,
                 cudaFuncAttributeMaxDynamicSharedMemorySize, most));
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
      grid (dim3 (imk_div_up (n_lines, block.y), n), block, stream, shared);

  IMK_TRY (allow_shared (transform<backward, columns, Job>, shared, error));
  return IMK_CUDA_LAUNCH (
      error, launch, (transform<backward, columns, Job>), f, n_lines, job);
}

/* Calls @launch with a usual length as a constant. */
template <typename Launch>
static ImkStatus
launch_for (uint32_t n, const Launch &launch)
{
  switch (n) {
  case 256:
    return launch (std::integral_constant<int, 256> ());
  case 512:
    return launch (std::integral_constant<int, 512> ());
  default:
    return launch (std::integral_constant<int, 1024> ());
  }
}

static bool
is_usual (uint32_t n)
{
  return n == 256 || n == 512 || n == 1024;
}

/* Whether insarxcorr-compat-registers.cuh can do it. */
static bool
is_usual_plan (const ImkInsarxcorrPlan *plan)
{
  return plan->config.mode == IMK_INSARXCORR_COMPAT &&
         plan->config.method == IMK_INSARXCORR_FREQ &&
         plan->fine.interp_x == 2 && is_usual (plan->fine.fft_width) &&
         is_usual (plan->fine.fft_height);
}

template <ImkType type>
static ImkStatus
launch_usual_amplitudes (const Cuda *s, const Arguments &a, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  return launch_for (a.fine.fft_width, [&] (auto length) {
    using L = Lines<length.value>;
    cudaLaunchConfig_t launch =
        grid (dim3 (imk_div_up (s->n_fresh, L::COUNT), n, N_SIDES),
            dim3 (L::THREADS), stream);

    return IMK_CUDA_LAUNCH (
        error, launch, (detect_usual_lines<type, length.value>), s->lines, a);
  });
}

/* Lines of both sides, their columns to the product's, and lines of lags. */
static ImkStatus
launch_usual_surface (const Cuda *s, const Arguments &a, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  const ImkInsarxcorrFine &f = a.fine;

  IMK_TRY (launch_for (f.fft_width, [&] (auto length) {
    using L = Lines<length.value>;
    cudaLaunchConfig_t launch = grid (
        dim3 (f.fft_height / 4 * 3 / L::COUNT, n), dim3 (L::THREADS), stream);

    return IMK_CUDA_LAUNCH (
        error, launch, transform_usual_lines<length.value>, s->lag_lines, a);
  }));
  IMK_TRY (launch_for (f.fft_height, [&] (auto length) {
    using C = ColumnsOf<length.value>;
    cudaLaunchConfig_t launch =
        grid (dim3 (imk_div_up (f.fft_width / 2 + 1, C::COUNT), n),
            dim3 (C::THREADS), stream);

    return IMK_CUDA_LAUNCH (error, launch,
        correlate_usual_columns<length.value>, s->lag_columns, a);
  }));
  return launch_for (f.fft_width, [&] (auto length) {
    using L = Lines<length.value>;
    cudaLaunchConfig_t launch =
        grid (dim3 (f.n_lags_y / 2 / L::COUNT, n), dim3 (L::THREADS), stream);

    return IMK_CUDA_LAUNCH (
        error, launch, make_usual_lags<length.value>, s->lag_lines, a);
  });
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
          stream, shared);

  IMK_TRY (allow_shared (detect_lines<type>, shared, error));
  return IMK_CUDA_LAUNCH (error, launch, detect_lines<type>, s->lines, a);
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

  IMK_TRY (launch_transform<false, false> (
      s->patch_lines[side], height, n, samples, stream, error));
  IMK_TRY (launch_transform<false, true> (
      s->patch_columns[side], width, n, columns, stream, error));
  IMK_TRY (launch_transform<true, true> (
      s->wide_columns[side], width, n, wide_columns, stream, error));
  return launch_transform<true, false> (
      s->wide_lines[side], a.fine.height[side], n, wide_lines, stream, error);
}

template <ImkType type>
static ImkStatus
launch_amplitudes (const Cuda *s, const Arguments &a, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  const uint32_t height = max (a.fine.height[0], a.fine.height[1]);
  cudaLaunchConfig_t one_each = grid (dim3 (n), dim3 (BLOCK), stream);
  cudaLaunchConfig_t lines =
      grid (dim3 (imk_div_up (height, BLOCK / WARP), n, N_SIDES), dim3 (BLOCK),
          stream);

  if (s->is_usual) {
    IMK_TRY (launch_usual_amplitudes<type> (s, a, n, stream, error));
  } else if (s->plan->config.mode == IMK_INSARXCORR_COMPAT) {
    IMK_TRY (launch_compat_lines<type> (s, a, n, stream, error));
  } else {
    IMK_TRY (IMK_CUDA_LAUNCH (error, one_each, find_centres<type>, a));
    for (int side = 0; side < N_SIDES; side++)
      IMK_TRY (launch_precise_side<type> (s, a, side, n, stream, error));
  }
  if (!s->is_usual)
    IMK_TRY (IMK_CUDA_LAUNCH (error, lines, find_line_levels, a));
  return IMK_CUDA_LAUNCH (error, one_each, find_levels, a);
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

  IMK_TRY (launch_transform<false, false> (
      s->lag_lines, f.fft_height, n, lines, stream, error));
  IMK_TRY (launch_transform<false, true> (
      s->lag_columns, f.fft_width, n, columns, stream, error));
  IMK_TRY (launch_transform<true, true> (
      s->lag_columns, f.fft_width / 2 + 1, n, products, stream, error));
  return launch_transform<true, false> (
      s->lag_lines, imk_div_up (f.n_lags_y, 2), n, lags, stream, error);
}

static ImkStatus
launch_normalisation (const Cuda *s, const Arguments &a, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  const ImkInsarxcorrFine &f = a.fine;
  const size_t shared = f.width[1] * sizeof (double2);
  cudaLaunchConfig_t sums = grid (
      dim3 (imk_div_up (f.width[1], BLOCK), imk_div_up (f.n_lags_y, STRIP), n),
      dim3 (BLOCK), stream);
  cudaLaunchConfig_t lines =
      grid (dim3 (NORMALISE_BLOCKS, n), dim3 (BLOCK), stream, shared);

  IMK_TRY (IMK_CUDA_LAUNCH (error, sums, sum_columns, a));
  IMK_TRY (allow_shared (normalise_lines, shared, error));
  return IMK_CUDA_LAUNCH (error, lines, normalise_lines, a);
}

static ImkStatus
launch_surface (const Cuda *s, const Arguments &a, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  const ImkInsarxcorrConfig *c = &s->plan->config;
  const uint32_t n_lags = a.fine.n_lags_x * a.fine.n_lags_y;
  cudaLaunchConfig_t time =
      grid (dim3 (imk_div_up (n_lags, BLOCK), n), dim3 (BLOCK), stream);

  if (c->mode == IMK_INSARXCORR_COMPAT && c->method != IMK_INSARXCORR_FREQ)
    return IMK_CUDA_LAUNCH (
        error, time, correlate_in_time, a, c->method == IMK_INSARXCORR_TIME4);
  IMK_TRY (launch_correlation (s, a, n, stream, error));
  if (c->mode == IMK_INSARXCORR_PRECISE)
    IMK_TRY (launch_normalisation (s, a, n, stream, error));
  return IMK_OK;
}

/* Of patches with amplitudes: all but the last step. */
static ImkStatus
launch_lags (const Cuda *s, const Arguments &a, uint32_t n, cudaStream_t stream,
    ImkError *error)
{
  const ImkInsarxcorrConfig *c = &s->plan->config;
  cudaLaunchConfig_t lines =
      grid (dim3 (imk_div_up (a.fine.n_lags_y, BLOCK / WARP), n), dim3 (BLOCK),
          stream);
  cudaLaunchConfig_t parts =
      grid (dim3 (CORRELATION_PARTS, n), dim3 (BLOCK), stream);

  IMK_TRY (s->is_usual ? launch_usual_surface (s, a, n, stream, error)
                       : launch_surface (s, a, n, stream, error));
  if (!s->is_usual)
    IMK_TRY (IMK_CUDA_LAUNCH (error, lines, find_line_peaks, a));
  if (c->mode == IMK_INSARXCORR_COMPAT && c->method == IMK_INSARXCORR_FREQ)
    IMK_TRY (IMK_CUDA_LAUNCH (error, parts, multiply_at_peaks, a));
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * A row. */

/* Lines of amplitudes depend on nothing but the columns of their patch.
 * Returns: how many of @patch the row before has left in its slot */
static uint32_t
count_kept (const Cuda *s, const ImkInsarxcorrPatch *patch, int side)
{
  const ImkInsarxcorrPatch *last = patch - s->plan->config.nx;
  const int64_t height = s->plan->patch_height[side];
  const int64_t step = (int64_t) patch->line[side] - last->line[side];

  return last->flags & IMK_INSARXCORR_MASKED ||
                 last->column[side] != patch->column[side] || step < 0 ||
                 step > height
             ? 0
             : (uint32_t) (height - step);
}

/* Patch @i of a batch, whose patches begin with @first of the part. */
static Item
make_item (const Cuda *s, const ImkInsarxcorrPatch *patch, uint32_t first,
    uint32_t i, bool keeps)
{
  Item item = {*patch, s->part->first + first + i, i};

  for (int side = 0; side < N_SIDES; side++) {
    const int64_t height = s->plan->patch_height[side];

    item.turn[side] =
        (uint32_t) ((patch->line[side] % height + height) % height);
    item.kept[side] = keeps ? count_kept (s, patch, side) : 0;
  }
  return item;
}

/* Those that are measured first. Returns: how many they are */
static uint32_t
sort_items (Cuda *s, uint32_t row, uint32_t first, uint32_t n)
{
  const ImkInsarxcorrPatch *patches = s->plan->patches +
                                      (size_t) row * s->plan->config.nx +
                                      s->part->first + first;
  const bool keeps = row > 0 && row == s->next_row && n == s->part->n;
  uint32_t front = 0, back = n;

  s->n_fresh = 1; /* a launch has a block at least */
  for (uint32_t i = 0; i < n; i++) {
    const bool is_masked = patches[i].flags & IMK_INSARXCORR_MASKED;
    const uint32_t at = is_masked ? --back : front++;
    Item item = make_item (s, &patches[i], first, i, keeps);

    for (int side = 0; side < N_SIDES && !is_masked; side++)
      s->n_fresh =
          max (s->n_fresh, s->plan->patch_height[side] - item.kept[side]);
    if (!s->is_usual) {
      /* its kernels have amplitudes in the order of items, from line 0 on */
      item.slot = at;
      item.turn[0] = item.turn[1] = 0;
    }
    s->host_items[at] = item;
  }
  return front;
}

/* The last items must have been copied before there are new ones. */
static ImkStatus
send_items (Cuda *s, uint32_t row, uint32_t first, uint32_t n,
    uint32_t *n_measured, cudaStream_t stream, ImkError *error)
{
  IMK_TRY (IMK_CUDA (error, cudaEventSynchronize (s->copied)));
  *n_measured = sort_items (s, row, first, n);
  IMK_TRY (
      IMK_CUDA (error, cudaMemcpyAsync (s->items, s->host_items,
                           n * sizeof (Item), cudaMemcpyHostToDevice, stream)));
  IMK_TRY (IMK_CUDA (error, cudaEventRecord (s->copied, stream)));
  return IMK_CUDA (
      error, cudaMemsetAsync (s->arguments.n_valid, 0,
                 (size_t) n * N_SIDES * sizeof (uint32_t), stream));
}

static ImkStatus
process_batch (Cuda *s, uint32_t row, uint32_t first, uint32_t n,
    const ImkImage *out, cudaStream_t stream, ImkError *error)
{
  const size_t rows =
      (size_t) WINDOW * WINDOW * s->plan->config.interp * sizeof (double);
  cudaLaunchConfig_t peaks = grid (dim3 (n), dim3 (BLOCK), stream, rows);
  Arguments a = s->arguments;
  uint32_t n_measured = 0;
  ImkStatus status = send_items (s, row, first, n, &n_measured, stream, error);

  a.out = (uint8_t *) out->data;
  a.out_stride = out->stride;
  IMK_TRY (status);
  if (n_measured)
    IMK_TRY (launch_amplitudes_of (s, a, n_measured, stream, error));
  if (n_measured)
    IMK_TRY (launch_lags (s, a, n_measured, stream, error));
  return IMK_CUDA_LAUNCH (error, peaks, find_peaks, a);
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
  s->next_row = status == IMK_OK ? row + 1 : 0;
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

  for (uint32_t from = line, next; from < end; from = next) {
    next = band_end (band, from, end);
    for (uint32_t j = 0; j < band->n_spans; j++) {
      const ImkInsarxcorrSpan *span = &band->spans[j];

      IMK_TRY (IMK_CUDA (
          error, cudaMemcpy2DAsync ((uint8_t *) to.data +
                                        from % band->n_lines * to.stride +
                                        span->at * size,
                     to.stride,
                     (const uint8_t *) lines->data +
                         (from - line) * lines->stride + span->column * size,
                     lines->stride, span->width * size, next - from,
                     cudaMemcpyHostToDevice, s->uploads[side])));
    }
  }
  return IMK_CUDA (error, cudaStreamSynchronize (s->uploads[side]));
}

/* ------------------------------------------------------------------------
 * The object. */

static void
cuda_destroy (void *state)
{
  Cuda *s = (Cuda *) state;

  cudaFree (s->memory); /* blocks until kernels that use it are done */
  cudaFreeHost (s->host_items);
  if (s->copied)
    cudaEventDestroy (s->copied);
  for (int side = 0; side < N_SIDES; side++)
    if (s->uploads[side])
      cudaStreamDestroy (s->uploads[side]);
  delete s;
}

static ImkStatus
create_order (Cuda *s, ImkError *error)
{
  IMK_TRY (IMK_CUDA (
      error, cudaEventCreateWithFlags (&s->copied, cudaEventDisableTiming)));
  for (int side = 0; side < N_SIDES; side++)
    IMK_TRY (IMK_CUDA (error,
        cudaStreamCreateWithFlags (&s->uploads[side], cudaStreamNonBlocking)));
  return IMK_OK;
}

static ImkStatus
cuda_create (
    const ImkInsarxcorrPlan *plan, uint32_t part, void **state, ImkError *error)
{
  Cuda *s = new (std::nothrow) Cuda{};
  ImkStatus status;

  if (!s)
    return IMK_NO_MEMORY (error, "for CUDA correlation.");
  s->plan = plan;
  s->part = &plan->parts[part];
  s->is_usual = is_usual_plan (plan);
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
