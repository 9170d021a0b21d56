/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The strategy fft on the GPU: the chain of octbscan-chain.h with cuFFT. What
 * stands between the transforms is one kernel each:
 *
 *   load: mean off, taper; two spectra of one camera are one complex one, as on
 *     the CPU, unless a camera turns its spectra
 *   widen: bins of N to bins of G
 *   band: a thread makes one point of the spectra of a few pairs, so that a
 *     weight is read once for all of them
 *   take: the depths of the crop, and no others
 *
 * Transforms are out of place, so that the zeros between the bins and behind
 * the points, which are written once, stay. Few B-scans at a time go through
 * all steps, so that what one step writes the next finds in the cache. */
#pragma once

#include <memory>
#include <new>

#include "core/cuda/cuda-fft.h"
#include "octbscan/octbscan-chain.h"
#include "octbscan/cuda/octbscan-input.cuh"

enum {
  LINE_THREADS = 256,
  BAND_THREADS = 128,
  BAND_LINES = 4, /* pairs, or rotated spectra, computed by a thread */
};

/* Bytes that the lines of some B-scans take between two steps. */
#define CHUNK_SIZE ((size_t) 128 << 20)

enum { NARROW, WIDE, LAST, N_TRANSFORMS };

/* The weights of a camera, tap by tap: the rows of one are neighbours. */
struct Band {
  uint32_t n_taps;
  const uint32_t *first; /* [n_rows] */
  const float2 *weights; /* [n_taps][n_rows] */
  const float2 *turn;    /* [N] taper and phase, or NULL */
};

/* What the kernels are given. A line is a pair, or a turned spectrum. */
struct Lines {
  uint32_t n_samples, n_points, n_rows, first_point, first_bin;
  bool upsamples, turns;
  uint32_t camera_lines;  /* lines of a camera in a job */
  uint32_t camera_groups; /* groups of BAND_LINES lines */
  uint32_t first_job;     /* of the chunk */
  float *taper, *widen, *finish;
  Band *bands;     /* [C] */
  float2 *spectra; /* [jobs][C][camera_lines][N] */
  float2 *bins;    /* the same layout; transforms of spectra */
  float2 *wide;    /* [..][G] */
  float2 *samples; /* [..][G], or N without upsampling */
  float2 *points;  /* [jobs][C][camera_rows][P] */
  float2 *depths;  /* likewise */
};

struct Transforms {
  Lines lines;
  uint32_t chunk;                     /* jobs */
  cufftHandle plans[2][N_TRANSFORMS]; /* for one job and for a chunk */
  bool planned[2][N_TRANSFORMS];
  size_t work_size;
  void *work;
  /* Host tables, valid until they are uploaded. */
  const ImkOctbscanChain *chain;
  uint32_t *first;
  float2 *weights, *turns;
  float2 *tuned; /* newer weights in host memory, or NULL */
  size_t n_weights;
};

/* ------------------------------------------------------------------------
 * Kernels. blockIdx.x is a line of the chunk, or some of them. */

/* Where line @y of the chunk is from. */
struct LinePlace {
  uint32_t job, camera, line;
};

static __device__ LinePlace
line_place (const Arguments &a, uint32_t y, uint32_t a_camera)
{
  LinePlace p;

  p.line = y % a_camera;
  p.camera = y / a_camera % a.config.n_cameras;
  p.job = y / a_camera / a.config.n_cameras;
  return p;
}

/* The spectrum that is the @i th of its camera, 0 when there is none. */
template <typename Sample>
static __device__ float
load_sample (
    const Arguments &a, uint32_t j, uint32_t camera, uint32_t i, uint32_t x)
{
  const Job &job = a.jobs[j];
  uint32_t row = imk_octbscan_rows_of (camera, a.config.n_cameras,
                     job.first_camera, a.config.height)
                     .first +
                 i * a.config.n_cameras;

  if (row >= a.config.height || !job.in.data || is_bad (a, j, row))
    return 0;
  return sample_at<Sample> (
      job.in.row<Sample> (row), mean_of (a, j, camera, row), x, a.config.width);
}

template <typename Sample>
static __global__ void
load_lines (
    const __grid_constant__ Arguments a, const __grid_constant__ Lines l)
{
  const LinePlace p = line_place (a, blockIdx.x, l.camera_lines);
  float2 *to = (l.upsamples ? l.spectra : l.samples) +
               (size_t) blockIdx.x * a.config.width;
  uint32_t x = blockIdx.y * LINE_THREADS + threadIdx.x;
  uint32_t j = l.first_job + p.job;
  const float2 *turn = l.bands[p.camera].turn;

  if (x >= a.config.width)
    return;
  if (l.turns) {
    float v = load_sample<Sample> (a, j, p.camera, p.line, x);
    float2 by = turn ? turn[x] : make_float2 (l.taper[x], 0);

    to[x] = make_float2 (v * by.x, v * by.y);
  } else {
    float v0 = load_sample<Sample> (a, j, p.camera, 2 * p.line, x);
    float v1 = load_sample<Sample> (a, j, p.camera, 2 * p.line + 1, x);

    to[x] = make_float2 (v0 * l.taper[x], v1 * l.taper[x]);
  }
}

/* The highest bin of an even N is two: N / 2 and -N / 2. */
static __global__ void
widen_lines (
    const __grid_constant__ Arguments a, const __grid_constant__ Lines l)
{
  const float2 *from = l.bins + (size_t) blockIdx.x * a.config.width;
  float2 *to = l.wide + (size_t) blockIdx.x * l.n_samples;
  uint32_t f = blockIdx.y * LINE_THREADS + threadIdx.x,
           half = a.config.width / 2;

  if (f <= half)
    to[f] = make_float2 (from[f].x * l.widen[f], from[f].y * l.widen[f]);
  if (f >= 1 && f <= half) {
    float2 v = from[a.config.width - f];

    to[l.n_samples - f] = make_float2 (v.x * l.widen[f], v.y * l.widen[f]);
  }
}

/* Adds row @r of the band to the points of some lines. */
template <bool Turns>
static __device__ void
add_row (const Lines &l, const Band &b, uint32_t r, const float2 *samples,
    float4 sums[BAND_LINES])
{
  uint32_t at = b.first[r];

  for (uint32_t t = 0; t < b.n_taps; t++) {
    const float2 w = b.weights[(size_t) t * l.n_rows + r];

    for (int k = 0; k < BAND_LINES; k++) {
      const float2 u = samples[(size_t) k * l.n_samples + at];
      float4 &s = sums[k];

      s.x = fmaf (w.x, u.x, s.x);
      s.y = fmaf (w.y, u.x, s.y);
      if (Turns) {
        s.x = fmaf (-w.y, u.y, s.x);
        s.y = fmaf (w.x, u.y, s.y);
      } else {
        s.z = fmaf (w.x, u.y, s.z);
        s.w = fmaf (w.y, u.y, s.w);
      }
    }
    /* The spectrum is periodic. */
    at = at + 1 < l.n_samples ? at + 1 : 0;
  }
}

/* Rows beyond P wrap around onto the first ones. */
template <bool Turns>
static __global__ void
apply_band (
    const __grid_constant__ Arguments a, const __grid_constant__ Lines l)
{
  const LinePlace p = line_place (a, blockIdx.x, l.camera_groups);
  const uint32_t line0 = p.line * BAND_LINES;
  const size_t camera = (size_t) p.job * a.config.n_cameras + p.camera;
  const float2 *samples =
      l.samples + (camera * l.camera_lines + line0) * l.n_samples;
  const Band &b = l.bands[p.camera];
  uint32_t row = blockIdx.y * BAND_THREADS + threadIdx.x;
  float4 sums[BAND_LINES] = {};
  uint32_t at;

  if (row >= l.n_rows || row >= l.n_points)
    return;
  for (uint32_t r = row; r < l.n_rows; r += l.n_points)
    add_row<Turns> (l, b, r, samples, sums);
  at = (l.first_point + row) % l.n_points;
  for (uint32_t k = 0; k < BAND_LINES; k++) {
    uint32_t i = (Turns ? 1 : 2) * (line0 + k);
    float2 *to = l.points + (camera * a.z.camera_rows + i) * l.n_points + at;

    if (i < a.z.camera_rows)
      to[0] = make_float2 (sums[k].x, sums[k].y);
    if (!Turns && i + 1 < a.z.camera_rows)
      to[l.n_points] = make_float2 (sums[k].z, sums[k].w);
  }
}

static __global__ void
take_depths (
    const __grid_constant__ Arguments a, const __grid_constant__ Lines l)
{
  const LinePlace p = line_place (a, blockIdx.x, a.z.camera_rows);
  const float2 *from = l.depths + (size_t) blockIdx.x * l.n_points;
  const size_t row =
      ((size_t) p.camera * a.n_jobs + l.first_job + p.job) * a.z.camera_rows +
      p.line;
  uint32_t q = blockIdx.y * LINE_THREADS + threadIdx.x;
  uint32_t at = l.first_bin + q;

  if (q >= a.n_depths)
    return;
  at -= at >= l.n_points ? l.n_points : 0;
  a.z.products[row * a.n_depths + q] =
      make_float2 (from[at].x * l.finish[q], from[at].y * l.finish[q]);
}

/* ------------------------------------------------------------------------
 * cuFFT. */

static ImkStatus
plan_transform (Transforms *t, int set, int which, uint32_t n, size_t n_lines,
    ImkError *error)
{
  cufftHandle *plan = &t->plans[set][which];
  int size = (int) n;
  size_t work = 0;
  ImkStatus status;

  IMK_TRY (IMK_CUFFT (error, cufftCreate (plan)));
  t->planned[set][which] = true;
  status = IMK_CUFFT (error, cufftSetAutoAllocation (*plan, 0));
  if (status == IMK_OK)
    status = IMK_CUFFT (
        error, cufftMakePlanMany (*plan, 1, &size, nullptr, 1, size, nullptr, 1,
                   size, CUFFT_C2C, (int) n_lines, &work));
  if (work > t->work_size)
    t->work_size = work;
  return status;
}

static ImkStatus
plan_all (Transforms *t, const Arguments &a, ImkError *error)
{
  const Lines &l = t->lines;

  for (int set = 0; set < 2; set++) {
    size_t cameras = (size_t) (set ? t->chunk : 1) * a.config.n_cameras;

    if (l.upsamples)
      IMK_TRY (plan_transform (
          t, set, NARROW, a.config.width, cameras * l.camera_lines, error));
    if (l.upsamples)
      IMK_TRY (plan_transform (
          t, set, WIDE, l.n_samples, cameras * l.camera_lines, error));
    IMK_TRY (plan_transform (
        t, set, LAST, l.n_points, cameras * a.z.camera_rows, error));
  }
  return IMK_OK;
}

static ImkStatus
transform (const Transforms *t, int set, int which, float2 *from, float2 *to,
    int direction, cudaStream_t stream, ImkError *error)
{
  cufftHandle plan = t->plans[set][which];

  IMK_TRY (IMK_CUFFT (error, cufftSetStream (plan, stream)));
  return IMK_CUFFT (error, cufftExecC2C (plan, (cufftComplex *) from,
                               (cufftComplex *) to, direction));
}

/* ------------------------------------------------------------------------
 * The strategy. */

/* A block for some of the @n of each of @n_lines lines. */
static cudaLaunchConfig_t
line_grid (uint32_t n, uint32_t threads, size_t n_lines, cudaStream_t stream)
{
  return grid (dim3 ((unsigned) n_lines, imk_div_up (n, threads)),
      dim3 (threads), stream);
}

static ImkStatus
launch_load (const Arguments &a, const Lines &l, size_t n_lines,
    cudaStream_t stream, ImkError *error)
{
  const auto kernel = instance (
      [] (auto type) { return load_lines<SampleOf<type>>; }, sample_type (a));
  cudaLaunchConfig_t launch =
      line_grid (a.config.width, LINE_THREADS, n_lines, stream);

  return IMK_CUDA_LAUNCH (error, launch, kernel, a, l);
}

static ImkStatus
launch_band (const Arguments &a, const Lines &l, size_t n_cameras,
    cudaStream_t stream, ImkError *error)
{
  uint32_t n = l.n_rows < l.n_points ? l.n_rows : l.n_points;
  cudaLaunchConfig_t launch =
      line_grid (n, BAND_THREADS, n_cameras * l.camera_groups, stream);

  return l.turns ? IMK_CUDA_LAUNCH (error, launch, apply_band<true>, a, l)
                 : IMK_CUDA_LAUNCH (error, launch, apply_band<false>, a, l);
}

/* Jobs from @first on: one, or a chunk. */
static ImkStatus
run_chunk (const Transforms *t, int set, uint32_t first, const Arguments &a,
    cudaStream_t stream, ImkError *error)
{
  Lines l = t->lines;
  size_t n_cameras = (size_t) (set ? t->chunk : 1) * a.config.n_cameras;
  size_t n_lines = n_cameras * l.camera_lines;
  size_t n_rows = n_cameras * a.z.camera_rows;
  cudaLaunchConfig_t bins =
      line_grid (a.config.width / 2 + 1, LINE_THREADS, n_lines, stream);
  cudaLaunchConfig_t depths =
      line_grid (a.n_depths, LINE_THREADS, n_rows, stream);

  l.first_job = first;
  IMK_TRY (launch_load (a, l, n_lines, stream, error));
  if (l.upsamples) {
    IMK_TRY (transform (
        t, set, NARROW, l.spectra, l.bins, CUFFT_FORWARD, stream, error));
    IMK_TRY (IMK_CUDA_LAUNCH (error, bins, widen_lines, a, l));
    IMK_TRY (transform (
        t, set, WIDE, l.wide, l.samples, CUFFT_INVERSE, stream, error));
  }
  IMK_TRY (launch_band (a, l, n_cameras, stream, error));
  IMK_TRY (transform (
      t, set, LAST, l.points, l.depths, CUFFT_FORWARD, stream, error));
  return IMK_CUDA_LAUNCH (error, depths, take_depths, a, l);
}

static ImkStatus
transforms_run (const Transforms &t, const Arguments &a, cudaStream_t stream,
    ImkError *error)
{
  uint32_t first = 0;

  while (first < a.n_jobs) {
    int set = t.chunk > 1 && a.n_jobs - first >= t.chunk;

    IMK_TRY (run_chunk (&t, set, first, a, stream, error));
    first += set ? t.chunk : 1;
  }
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The object. */

/* Bytes between two steps, at most, of one job. */
static size_t
job_size (const Lines &l, const Arguments &a)
{
  size_t lines = (size_t) a.config.n_cameras * l.camera_lines;
  size_t first = lines * (a.config.width + l.n_samples), last;

  last = (size_t) a.config.n_cameras * a.z.camera_rows * 2 * l.n_points;
  return sizeof (float2) * (first > last ? first : last);
}

static void
transforms_init (Transforms *t, const Arguments &a, const ImkOctbscanPlan *plan)
{
  const ImkOctbscanChain *c = plan->chain;
  uint32_t max_jobs = plan->config->max_jobs;
  Lines &l = t->lines;
  size_t n;

  t->chain = c;
  l.n_samples = c->n_samples;
  l.n_points = c->n_points;
  l.n_rows = c->n_rows;
  l.first_point = c->first_point;
  l.first_bin = c->first_bin % c->n_points;
  l.upsamples = c->upsamples;
  for (uint32_t i = 0; i < c->n_cameras; i++)
    l.turns = l.turns || c->bands[i].turn_re;
  l.camera_lines = l.turns ? a.z.camera_rows : imk_div_up (a.z.camera_rows, 2);
  l.camera_groups = imk_div_up (l.camera_lines, BAND_LINES);
  n = CHUNK_SIZE / job_size (l, a);
  t->chunk = n < 1 ? 1 : n < max_jobs ? (uint32_t) n : max_jobs;
}

static void
transforms_cut (Transforms *t, const Arguments &a, Cutter *c)
{
  const ImkOctbscanChain *chain = t->chain;
  Lines &l = t->lines;
  size_t cameras = (size_t) t->chunk * a.config.n_cameras;
  /* The last group of a camera may read beyond its lines. */
  size_t lines = cameras * l.camera_lines, spare = BAND_LINES;
  size_t weights = 0;

  for (uint32_t i = 0; i < chain->n_cameras; i++)
    weights += chain->bands[i].n_taps;
  c->cut (&l.taper, a.config.width);
  c->cut (&l.widen, a.config.width / 2 + 1);
  c->cut (&l.finish, a.n_depths);
  c->cut (&l.bands, chain->n_cameras);
  c->cut (&t->first, (size_t) chain->n_cameras * l.n_rows);
  c->cut (&t->weights, weights * l.n_rows);
  t->n_weights = weights * l.n_rows;
  if (l.turns)
    c->cut (&t->turns, (size_t) chain->n_cameras * a.config.width);
  c->cut (&l.samples, (lines + spare) * l.n_samples);
  c->cut (&l.points, cameras * a.z.camera_rows * l.n_points);
  c->cut (&l.depths, cameras * a.z.camera_rows * l.n_points);
  if (l.upsamples) {
    c->cut (&l.spectra, lines * a.config.width);
    c->cut (&l.bins, lines * a.config.width);
    c->cut (&l.wide, lines * l.n_samples);
  }
}

/* Tap by tap, as the device has them. */
static void
lay_out_weights (
    const ImkOctbscanChain *c, const ImkOctbscanBand *b, float2 *to)
{
  for (uint32_t j = 0; j < c->n_rows; j++)
    for (uint32_t k = 0; k < b->n_taps; k++)
      to[(size_t) k * c->n_rows + j] = make_float2 (
          b->re[(size_t) j * b->n_taps + k], b->im[(size_t) j * b->n_taps + k]);
}

/* The weights of @c come with the next B-scans. */
static ImkStatus
transforms_tune (Transforms *t, const ImkOctbscanChain *c, ImkError *error)
{
  float2 *to;

  if (!t->tuned)
    t->tuned = new (std::nothrow) float2[t->n_weights];
  to = t->tuned;
  if (!to)
    return IMK_NO_MEMORY (error, "for the weights of another dispersion.");
  for (uint32_t i = 0; i < c->n_cameras; i++) {
    lay_out_weights (c, &c->bands[i], to);
    to += (size_t) c->n_rows * c->bands[i].n_taps;
  }
  return IMK_OK;
}

/* Behind the work that uses those before. The copy is from ordinary memory, so
 * that it has been read when this returns. */
static ImkStatus
transforms_take_tuned (Transforms *t, cudaStream_t stream, ImkError *error)
{
  if (!t->tuned)
    return IMK_OK;
  IMK_TRY (IMK_CUDA (error,
      cudaMemcpyAsync (t->weights, t->tuned, t->n_weights * sizeof (float2),
          cudaMemcpyHostToDevice, stream)));
  delete[] t->tuned;
  t->tuned = nullptr;
  return IMK_OK;
}

/* @device: the same on the device, from then on */
static ImkStatus
upload_band (const Transforms *t, uint32_t camera, size_t weights_before,
    Band *device, ImkError *error)
{
  const ImkOctbscanChain *c = t->chain;
  const ImkOctbscanBand *b = &c->bands[camera];
  size_t n = (size_t) c->n_rows * b->n_taps;
  float2 *weights = t->weights + weights_before * c->n_rows;
  uint32_t *first = t->first + (size_t) camera * c->n_rows;
  std::unique_ptr<float2[]> host (
      new (std::nothrow) float2[n > c->width ? n : c->width]);

  if (!host)
    return IMK_NO_MEMORY (error, "for the weights of camera %u.", camera);
  lay_out_weights (c, b, host.get ());
  IMK_TRY (upload (weights, host.get (), n, error));
  IMK_TRY (upload (first, (const uint32_t *) b->first, c->n_rows, error));
  *device = {b->n_taps, first, weights, nullptr};
  if (b->turn_re) {
    float2 *turn = t->turns + (size_t) camera * c->width;

    for (uint32_t i = 0; i < c->width; i++)
      host[i] = make_float2 (b->turn_re[i], b->turn_im[i]);
    IMK_TRY (upload (turn, host.get (), c->width, error));
    device->turn = turn;
  }
  return IMK_OK;
}

static ImkStatus
transforms_upload (Transforms *t, const Arguments &a, ImkError *error)
{
  const ImkOctbscanChain *c = t->chain;
  Band bands[IMK_OCTBSCAN_MAX_CAMERAS];
  size_t weights = 0;

  IMK_TRY (upload (t->lines.taper, c->taper, a.config.width, error));
  IMK_TRY (upload (t->lines.widen, c->widen, a.config.width / 2 + 1, error));
  IMK_TRY (upload (t->lines.finish, c->finish, a.n_depths, error));
  for (uint32_t i = 0; i < c->n_cameras; i++) {
    IMK_TRY (upload_band (t, i, weights, &bands[i], error));
    weights += c->bands[i].n_taps;
  }
  t->chain = nullptr;
  return upload (t->lines.bands, bands, c->n_cameras, error);
}

/* 1 for each row, as what comes out is Z itself. */
static __global__ void
fill_ones (float *to, size_t n)
{
  size_t i = (size_t) blockIdx.x * LINE_THREADS + threadIdx.x;

  if (i < n)
    to[i] = 1;
}

/* Memory has been cut. */
static ImkStatus
transforms_open (Transforms *t, const Arguments &a, ImkError *error)
{
  size_t n = n_rows (a);
  cudaLaunchConfig_t ones =
      grid (dim3 ((unsigned) ((n + LINE_THREADS - 1) / LINE_THREADS)),
          dim3 (LINE_THREADS), nullptr);

  IMK_TRY (transforms_upload (t, a, error));
  IMK_TRY (IMK_CUDA_LAUNCH (error, ones, fill_ones, a.z.scales, n));
  IMK_TRY (plan_all (t, a, error));
  if (t->work_size > 0)
    IMK_TRY (IMK_CUDA (error, cudaMalloc (&t->work, t->work_size)));
  for (int i = 0; i < 2 * N_TRANSFORMS; i++) {
    int set = i / N_TRANSFORMS, which = i % N_TRANSFORMS;

    if (t->planned[set][which] && t->work)
      IMK_TRY (
          IMK_CUFFT (error, cufftSetWorkArea (t->plans[set][which], t->work)));
  }
  return IMK_CUDA (error, cudaStreamSynchronize (nullptr));
}

static void
transforms_close (Transforms *t)
{
  for (int i = 0; i < 2 * N_TRANSFORMS; i++)
    if (t->planned[i / N_TRANSFORMS][i % N_TRANSFORMS])
      cufftDestroy (t->plans[i / N_TRANSFORMS][i % N_TRANSFORMS]);
  cudaFree (t->work);
  delete[] t->tuned;
}
