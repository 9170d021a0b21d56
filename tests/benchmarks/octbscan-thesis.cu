/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan-thesis.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cufft.h>
#include <vector>

enum { THREADS = 256, N_STREAMS = 3 };
static const int REPEATS = 20;

static void
check (cudaError_t result, const char *what)
{
  if (result == cudaSuccess)
    return;
  fprintf (
      stderr, "octbscan-thesis: %s: %s\n", what, cudaGetErrorString (result));
  exit (1);
}

static void
check (cufftResult result, const char *what)
{
  if (result == CUFFT_SUCCESS)
    return;
  fprintf (stderr, "octbscan-thesis: %s: error %d\n", what, (int) result);
  exit (1);
}

#define CHECK(...) check ((__VA_ARGS__), #__VA_ARGS__)

/* Sizes of a batch. */
struct Sizes {
  unsigned n, m, padded, depths, lines; /* lines of all B-scans */
  unsigned a_bscan;                     /* lines of one */
};

/* Tables and memory of one batch. */
struct Batch {
  Sizes s;
  bool both;
  cudaStream_t stream;
  uint16_t *host_in, *in;
  uint8_t *host_out[2], *out[2];
  float *mean, *a, *u, *db, *intensity;
  float2 *f, *wide, *z, *bins, *phase;
  unsigned *index;
  float *weight;
  unsigned *ends; /* least and largest of dB and of the intensity */
  cufftHandle narrow, back, last;
};

static __global__ void
find_means (Sizes s, const uint16_t *in, float *mean)
{
  unsigned x = blockIdx.x * THREADS + threadIdx.x;
  const uint16_t *from = in + (size_t) blockIdx.y * s.a_bscan * s.n + x;
  unsigned sum = 0;

  if (x >= s.n)
    return;
  for (unsigned i = 0; i < s.a_bscan; i++)
    sum += from[(size_t) i * s.n];
  mean[blockIdx.y * s.n + x] = (float) sum / s.a_bscan;
}

static __global__ void
subtract (Sizes s, const uint16_t *in, const float *mean, float *a)
{
  unsigned x = blockIdx.x * THREADS + threadIdx.x;
  size_t at = (size_t) blockIdx.y * s.n + x;

  if (x < s.n)
    a[at] = in[at] - mean[blockIdx.y / s.a_bscan * s.n + x];
}

/* Zeros above the highest bin. */
static __global__ void
pad_bins (Sizes s, const float2 *f, float2 *wide)
{
  unsigned k = blockIdx.x * THREADS + threadIdx.x;
  float2 v = make_float2 (0, 0);

  if (k > s.m / 2)
    return;
  if (k <= s.n / 2)
    v = f[(size_t) blockIdx.y * (s.n / 2 + 1) + k];
  wide[(size_t) blockIdx.y * (s.m / 2 + 1) + k] = v;
}

/* To wavenumbers, with the phase, and zeros behind. */
static __global__ void
interpolate (Sizes s, const float *u, const unsigned *index,
    const float *weight, const float2 *phase, float2 *z)
{
  unsigned i = blockIdx.x * THREADS + threadIdx.x;
  const float *from = u + (size_t) blockIdx.y * s.m;
  float2 v = make_float2 (0, 0);

  if (i >= s.padded)
    return;
  if (i < s.m) {
    unsigned j = index[i];
    float y = from[j] + weight[i] * (from[j + 1] - from[j]);

    v = make_float2 (y * phase[i].x, y * phase[i].y);
  }
  z[(size_t) blockIdx.y * s.padded + i] = v;
}

static __global__ void
take_intensity (Sizes s, const float2 *bins, float *intensity, float *db)
{
  unsigned q = blockIdx.x * THREADS + threadIdx.x;
  size_t at = (size_t) blockIdx.y * s.depths + q;
  float2 v;
  float i;

  if (q >= s.depths)
    return;
  v = bins[(size_t) blockIdx.y * s.padded + q];
  i = v.x * v.x + v.y * v.y;
  if (intensity)
    intensity[at] = i;
  db[at] = 10 * log10f (i + 1e-20f);
}

/* Bits that are in the order of the values. */
static __device__ unsigned
ordered (float v)
{
  unsigned bits = __float_as_uint (v);

  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ float
unordered (unsigned bits)
{
  return __uint_as_float (bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

static __global__ void
find_ends (const float *v, size_t n, unsigned *ends)
{
  unsigned least = 0xffffffffu, largest = 0;

  for (size_t i = blockIdx.x * (size_t) THREADS + threadIdx.x; i < n;
       i += (size_t) gridDim.x * THREADS) {
    unsigned bits = ordered (v[i]);

    least = min (least, bits);
    largest = max (largest, bits);
  }
  for (int step = 16; step; step /= 2) {
    least = min (least, __shfl_xor_sync (0xffffffffu, least, step));
    largest = max (largest, __shfl_xor_sync (0xffffffffu, largest, step));
  }
  if (threadIdx.x % 32 == 0) {
    atomicMin (&ends[0], least);
    atomicMax (&ends[1], largest);
  }
}

static __global__ void
normalise (const float *v, size_t n, const unsigned *ends, uint8_t *out)
{
  size_t i = 4 * (blockIdx.x * (size_t) THREADS + threadIdx.x);
  float low = unordered (ends[0]), high = unordered (ends[1]);
  float by = high > low ? 255 / (high - low) : 0;
  uchar4 four;
  float4 f;

  if (i >= n)
    return;
  f = *(const float4 *) (v + i);
  four.x = (uint8_t) ((f.x - low) * by + 0.5f);
  four.y = (uint8_t) ((f.y - low) * by + 0.5f);
  four.z = (uint8_t) ((f.z - low) * by + 0.5f);
  four.w = (uint8_t) ((f.w - low) * by + 0.5f);
  *(uchar4 *) (out + i) = four;
}

/* --- a batch -------------------------------------------------------------- */

template <typename T>
static void
allocate (T **to, size_t n)
{
  CHECK (cudaMalloc ((void **) to, n * sizeof (T)));
}

template <typename T>
static void
allocate_host (T **to, size_t n)
{
  CHECK (cudaHostAlloc ((void **) to, n * sizeof (T), cudaHostAllocPortable));
}

static void
fill_tables (Batch *b)
{
  const double range[] = {806, 675};
  unsigned m = b->s.m;
  std::vector<unsigned> index (m);
  std::vector<float> weight (m);
  std::vector<float2> phase (m);

  for (unsigned i = 0; i < m; i++) {
    double along = i / (m - 1.0), u = 2 * along - 1;
    double wanted = 1 / ((1 - along) / range[0] + along / range[1]);
    double at = (wanted - range[0]) / (range[1] - range[0]) * (m - 1);

    index[i] = (unsigned) fmin (at, m - 2);
    weight[i] = (float) (at - index[i]);
    phase[i] =
        make_float2 ((float) cos (-12 * u * u), (float) sin (-12 * u * u));
  }
  CHECK (cudaMemcpy (
      b->index, index.data (), m * sizeof (unsigned), cudaMemcpyHostToDevice));
  CHECK (cudaMemcpy (
      b->weight, weight.data (), m * sizeof (float), cudaMemcpyHostToDevice));
  CHECK (cudaMemcpy (
      b->phase, phase.data (), m * sizeof (float2), cudaMemcpyHostToDevice));
}

static void
plan (cufftHandle *p, unsigned n, cufftType type, unsigned lines,
    cudaStream_t stream)
{
  int size = (int) n;

  CHECK (cufftPlanMany (
      p, 1, &size, nullptr, 1, 0, nullptr, 1, 0, type, (int) lines));
  CHECK (cufftSetStream (*p, stream));
}

static void
open (Batch *b, const ThesisConfig *c)
{
  Sizes &s = b->s;
  size_t pixels;

  s.n = c->width;
  s.m = c->upsample;
  s.padded = c->upsample * c->scale;
  s.depths = c->width * c->scale / 2;
  s.a_bscan = c->lines;
  s.lines = c->lines * c->n_bscans;
  b->both = c->both;
  pixels = (size_t) s.lines * s.depths;
  CHECK (cudaStreamCreateWithFlags (&b->stream, cudaStreamNonBlocking));
  allocate_host (&b->host_in, (size_t) s.lines * s.n);
  for (size_t i = 0; i < (size_t) s.lines * s.n; i++)
    b->host_in[i] = (uint16_t) (2000 + i * 7919 % 1009);
  allocate (&b->in, (size_t) s.lines * s.n);
  allocate (&b->mean, (size_t) c->n_bscans * s.n);
  allocate (&b->a, (size_t) s.lines * s.n);
  allocate (&b->f, (size_t) s.lines * (s.n / 2 + 1));
  allocate (&b->wide, (size_t) s.lines * (s.m / 2 + 1));
  allocate (&b->u, (size_t) s.lines * s.m);
  allocate (&b->z, (size_t) s.lines * s.padded);
  allocate (&b->bins, (size_t) s.lines * s.padded);
  allocate (&b->db, pixels);
  allocate (&b->index, s.m);
  allocate (&b->weight, s.m);
  allocate (&b->phase, s.m);
  allocate (&b->ends, 4);
  b->intensity = nullptr;
  if (b->both)
    allocate (&b->intensity, pixels);
  for (int i = 0; i <= c->both; i++) {
    allocate (&b->out[i], pixels);
    allocate_host (&b->host_out[i], pixels);
  }
  fill_tables (b);
  plan (&b->narrow, s.n, CUFFT_R2C, s.lines, b->stream);
  plan (&b->back, s.m, CUFFT_C2R, s.lines, b->stream);
  plan (&b->last, s.padded, CUFFT_C2C, s.lines, b->stream);
}

static void
close (Batch *b)
{
  void *blocks[] = {b->in, b->mean, b->a, b->f, b->wide, b->u, b->z, b->bins,
      b->db, b->intensity, b->index, b->weight, b->phase, b->ends, b->out[0]};

  for (void *block : blocks)
    cudaFree (block);
  cudaFreeHost (b->host_in);
  cudaFreeHost (b->host_out[0]);
  if (b->both) {
    cudaFree (b->out[1]);
    cudaFreeHost (b->host_out[1]);
  }
  cufftDestroy (b->narrow);
  cufftDestroy (b->back);
  cufftDestroy (b->last);
  cudaStreamDestroy (b->stream);
}

static dim3
blocks (const Sizes &s, unsigned n)
{
  return dim3 ((n + THREADS - 1) / THREADS, s.lines);
}

enum {
  UPLOAD,
  MEANS,
  SUBTRACT,
  NARROW,
  PAD,
  BACK,
  INTERPOLATE,
  LAST,
  INTENSITY,
  ENDS,
  NORMALISE,
  DOWNLOAD,
  N_STEPS
};

static const char *const names[N_STEPS] = {"upload", "means", "subtract", "R2C",
    "pad", "C2R", "interpolate, phase, pad", "C2C", "crop, intensity, dB",
    "least and largest", "8 bits", "download"};

static void
reduce (Batch *b, const float *v, unsigned *ends)
{
  size_t pixels = (size_t) b->s.lines * b->s.depths;

  CHECK (cudaMemsetAsync (ends, 0xff, 4, b->stream));
  CHECK (cudaMemsetAsync (ends + 1, 0, 4, b->stream));
  find_ends<<<132 * 8, THREADS, 0, b->stream>>> (v, pixels, ends);
}

static void
run_step (Batch *b, int step)
{
  const Sizes &s = b->s;
  size_t pixels = (size_t) s.lines * s.depths;
  unsigned quads = (unsigned) ((pixels / 4 + THREADS - 1) / THREADS);
  cudaStream_t on = b->stream;

  switch (step) {
  case UPLOAD:
    CHECK (cudaMemcpyAsync (b->in, b->host_in, (size_t) s.lines * s.n * 2,
        cudaMemcpyHostToDevice, on));
    break;
  case MEANS:
    find_means<<<dim3 ((s.n + THREADS - 1) / THREADS, s.lines / s.a_bscan),
        THREADS, 0, on>>> (s, b->in, b->mean);
    break;
  case SUBTRACT:
    subtract<<<blocks (s, s.n), THREADS, 0, on>>> (s, b->in, b->mean, b->a);
    break;
  case NARROW:
    CHECK (cufftExecR2C (b->narrow, b->a, (cufftComplex *) b->f));
    break;
  case PAD:
    pad_bins<<<blocks (s, s.m / 2 + 1), THREADS, 0, on>>> (s, b->f, b->wide);
    break;
  case BACK:
    CHECK (cufftExecC2R (b->back, (cufftComplex *) b->wide, b->u));
    break;
  case INTERPOLATE:
    interpolate<<<blocks (s, s.padded), THREADS, 0, on>>> (
        s, b->u, b->index, b->weight, b->phase, b->z);
    break;
  case LAST:
    CHECK (cufftExecC2C (b->last, (cufftComplex *) b->z,
        (cufftComplex *) b->bins, CUFFT_FORWARD));
    break;
  case INTENSITY:
    take_intensity<<<blocks (s, s.depths), THREADS, 0, on>>> (
        s, b->bins, b->intensity, b->db);
    break;
  case ENDS:
    reduce (b, b->db, b->ends);
    if (b->both)
      reduce (b, b->intensity, b->ends + 2);
    break;
  case NORMALISE:
    normalise<<<quads, THREADS, 0, on>>> (b->db, pixels, b->ends, b->out[0]);
    if (b->both)
      normalise<<<quads, THREADS, 0, on>>> (
          b->intensity, pixels, b->ends + 2, b->out[1]);
    break;
  default:
    for (int i = 0; i <= b->both; i++)
      CHECK (cudaMemcpyAsync (
          b->host_out[i], b->out[i], pixels, cudaMemcpyDeviceToHost, on));
    break;
  }
  CHECK (cudaGetLastError ());
}

/* What a step has to read and write, once. */
static double
bytes_of (const Batch *b, int step)
{
  const Sizes &s = b->s;
  double n = s.n, m = s.m, p = s.padded, q = s.depths, images = 1 + b->both;
  double a_line;

  switch (step) {
  case UPLOAD:
    a_line = 2 * n;
    break;
  case MEANS:
    a_line = 2 * n;
    break;
  case SUBTRACT:
    a_line = 6 * n;
    break;
  case NARROW:
    a_line = 8 * n;
    break;
  case PAD:
    a_line = 4 * n + 4 * m;
    break;
  case BACK:
    a_line = 8 * m;
    break;
  case INTERPOLATE:
    a_line = 4 * m + 8 * p;
    break;
  case LAST:
    a_line = 16 * p;
    break;
  case INTENSITY:
    a_line = 8 * q + 4 * q * images;
    break;
  case ENDS:
    a_line = 4 * q * images;
    break;
  case NORMALISE:
    a_line = 5 * q * images;
    break;
  default:
    a_line = q * images;
    break;
  }
  return a_line * s.lines;
}

/* --- what is asked for ---------------------------------------------------- */

static double
now (void)
{
  return std::chrono::duration<double> (
      std::chrono::steady_clock::now ().time_since_epoch ())
      .count ();
}

double
thesis_run (const ThesisConfig *config, unsigned n_batches)
{
  Batch batches[N_STREAMS] = {};
  double start = 0;
  int n_devices;

  if (cudaGetDeviceCount (&n_devices) != cudaSuccess || n_devices == 0)
    return -1;
  for (Batch &b : batches)
    open (&b, config);
  for (int warm = 1; warm >= 0; warm--) {
    CHECK (cudaDeviceSynchronize ());
    start = now ();
    for (unsigned i = 0; i < (warm ? N_STREAMS : n_batches); i++) {
      Batch *b = &batches[i % N_STREAMS];

      CHECK (cudaStreamSynchronize (b->stream));
      for (int step = 0; step < N_STEPS; step++)
        run_step (b, step);
    }
    CHECK (cudaDeviceSynchronize ());
  }
  start = now () - start;
  for (Batch &b : batches)
    close (&b);
  return start;
}

unsigned
thesis_steps (const ThesisConfig *config, ThesisStep steps[THESIS_MAX_STEPS])
{
  Batch b = {};
  cudaEvent_t begin, end;

  open (&b, config);
  CHECK (cudaEventCreate (&begin));
  CHECK (cudaEventCreate (&end));
  for (int step = 0; step < N_STEPS; step++) {
    float ms;

    run_step (&b, step);
    CHECK (cudaEventRecord (begin, b.stream));
    for (int i = 0; i < REPEATS; i++)
      run_step (&b, step);
    CHECK (cudaEventRecord (end, b.stream));
    CHECK (cudaEventSynchronize (end));
    CHECK (cudaEventElapsedTime (&ms, begin, end));
    steps[step] = {names[step], ms * 1e3 / REPEATS, bytes_of (&b, step)};
  }
  cudaEventDestroy (begin);
  cudaEventDestroy (end);
  close (&b);
  return N_STEPS;
}
