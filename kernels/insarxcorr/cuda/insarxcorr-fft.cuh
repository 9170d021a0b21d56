/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fourier transforms of lines in shared memory, any length: a block takes some
 * lines through all passes (Stockham's order, so that nothing is turned round
 * at the end) between a loader and a storer that kernels bring. So a transform
 * is fused with what comes before and after it, and nothing has to be planned
 * or loaded, which takes cuFFT longer than all the work on a pair of images. */
#pragma once

#include <cstdint>

#include "core/cuda/cuda-check.h"
#include "imk/image.h"

namespace insar
{

enum {
  MAX_PASSES = 16, /* 2^16 is longer than any line */
  FFT_THREADS = 256,
};

/* The FFT plan for one length. */
struct Fft {
  uint32_t n;
  uint32_t n_passes;
  uint16_t radices[MAX_PASSES];
  const float2 *roots; /* [n]: exp (-i 2 pi k / n) */
  const float2 *turns; /* [n - 1]: for a pass of radix r, after others whose
                        * product is d, from d - 1 on [r - 1][d]:
                        * exp (-i 2 pi t k / (r d)), t = 1..r - 1 */
};

/* Where element @i is in shared memory: without the gaps, threads that store
 * eight apart would all meet in two banks. */
static __device__ __forceinline__ uint32_t
padded (uint32_t i)
{
  return i + (i >> 3);
}

/* Returns: elements that a line of @n takes in shared memory */
static __host__ __device__ __forceinline__ uint32_t
padded_length (uint32_t n)
{
  return n + (n >> 3) + 1;
}

static __device__ __forceinline__ float2
add (float2 a, float2 b)
{
  return make_float2 (a.x + b.x, a.y + b.y);
}

static __device__ __forceinline__ float2
subtract (float2 a, float2 b)
{
  return make_float2 (a.x - b.x, a.y - b.y);
}

/* Fused: nothing here has to round as on the CPU. */
static __device__ __forceinline__ float2
multiply (float2 a, float2 b)
{
  return make_float2 (
      fmaf (a.x, b.x, -(a.y * b.y)), fmaf (a.x, b.y, a.y * b.x));
}

/* Times -i forward, +i backward. */
template <bool backward>
static __device__ __forceinline__ float2
quarter (float2 a)
{
  return backward ? make_float2 (-a.y, a.x) : make_float2 (a.y, -a.x);
}

template <bool backward>
static __device__ __forceinline__ float2
turn_of (const float2 *turns, uint32_t k)
{
  float2 t = __ldg (turns + k);

  if (backward)
    t.y = -t.y;
  return t;
}

static __device__ __forceinline__ void
butterfly2 (float2 *v)
{
  float2 a = v[0];

  v[0] = add (a, v[1]);
  v[1] = subtract (a, v[1]);
}

template <bool backward>
static __device__ __forceinline__ void
butterfly4 (float2 &a, float2 &b, float2 &c, float2 &d)
{
  float2 even0 = add (a, c), even1 = subtract (a, c);
  float2 odd0 = add (b, d), odd1 = quarter<backward> (subtract (b, d));

  a = add (even0, odd0);
  b = add (even1, odd1);
  c = subtract (even0, odd0);
  d = subtract (even1, odd1);
}

template <bool backward>
static __device__ __forceinline__ void
butterfly8 (float2 *v)
{
  const float half = 0.70710678118654752440f;
  float2 odd[4] = {v[1], v[3], v[5], v[7]};
  float2 q;

  butterfly4<backward> (v[0], v[2], v[4], v[6]);
  butterfly4<backward> (odd[0], odd[1], odd[2], odd[3]);
  /* Multiply by exp (-+ i pi / 4) to the power 1, 2 and 3. */
  q = quarter<backward> (odd[1]);
  odd[1] = make_float2 ((odd[1].x + q.x) * half, (odd[1].y + q.y) * half);
  odd[2] = quarter<backward> (odd[2]);
  q = quarter<backward> (odd[3]);
  odd[3] = make_float2 ((q.x - odd[3].x) * half, (q.y - odd[3].y) * half);
  float2 even[4] = {v[0], v[2], v[4], v[6]};

#pragma unroll
  for (int i = 0; i < 4; i++) {
    v[i] = add (even[i], odd[i]);
    v[i + 4] = subtract (even[i], odd[i]);
  }
}

template <int radix, bool backward>
static __device__ __forceinline__ void
butterfly (float2 *v)
{
  if (radix == 2)
    butterfly2 (v);
  else if (radix == 4)
    butterfly4<backward> (v[0], v[1], v[2], v[3]);
  else
    butterfly8<backward> (v);
}

/* One pass over a line: of the @done last radices' product. The threads of the
 * line are threadIdx.x. */
template <int radix, bool backward>
static __device__ __forceinline__ void
pass_of (const Fft &f, const float2 *in, float2 *out, uint32_t done)
{
  const uint32_t n = f.n / radix;
  const float2 *turns = f.turns + done - 1;
  /* Divisions would double the time. */
  const bool by_mask = (done & (done - 1)) == 0;

  for (uint32_t j = threadIdx.x; j < n; j += blockDim.x) {
    uint32_t k = by_mask ? j & (done - 1) : j % done;
    uint32_t to = (j - k) * radix + k;
    float2 v[radix];

#pragma unroll
    for (int t = 0; t < radix; t++)
      v[t] = in[padded (j + t * n)];
    if (done > 1) {
#pragma unroll
      for (int t = 1; t < radix; t++)
        v[t] = multiply (v[t], turn_of<backward> (turns, (t - 1) * done + k));
    }
    butterfly<radix, backward> (v);
#pragma unroll
    for (int t = 0; t < radix; t++)
      out[padded (to + t * done)] = v[t];
  }
}

/* The same for any radix, by the sum of the definition. */
template <bool backward>
static __device__ void
pass_of_any (
    const Fft &f, const float2 *in, float2 *out, uint32_t done, uint32_t radix)
{
  const uint32_t n = f.n / radix, step = n / done;

  for (uint32_t i = threadIdx.x; i < f.n; i += blockDim.x) {
    uint32_t t = i / n, j = i % n, k = j % done;
    uint32_t by = (uint32_t) (((uint64_t) k * step + (uint64_t) t * n) % f.n);
    uint32_t at = 0;
    float2 sum = make_float2 (0, 0);

    for (uint32_t s = 0; s < radix; s++) {
      sum = add (sum,
          multiply (in[padded (j + s * n)], turn_of<backward> (f.roots, at)));
      at += by;
      at = at >= f.n ? at - f.n : at;
    }
    out[padded ((j - k) * radix + k + t * done)] = sum;
  }
}

/* Transforms the line in @x, with @y to go over to; all threads of the block
 * call it. Returns: whichever of the two it is in */
template <bool backward>
static __device__ float2 *
transform_line (const Fft &f, float2 *x, float2 *y)
{
  uint32_t done = 1;

  for (uint32_t p = 0; p < f.n_passes; p++) {
    uint32_t radix = f.radices[p];
    float2 *swap = x;

    __syncthreads ();
    if (radix == 8)
      pass_of<8, backward> (f, x, y, done);
    else if (radix == 4)
      pass_of<4, backward> (f, x, y, done);
    else if (radix == 2)
      pass_of<2, backward> (f, x, y, done);
    else
      pass_of_any<backward> (f, x, y, done, radix);
    done *= radix;
    x = y;
    y = swap;
  }
  __syncthreads ();
  return x;
}

/* The lines of a block in shared memory: blockDim.y of them, twice. */
static __device__ __forceinline__ float2 *
line_at (float2 *shared, uint32_t n, uint32_t line, uint32_t copy)
{
  return shared + (size_t) (copy * blockDim.y + line) * padded_length (n);
}

/* Transforms lines. blockIdx.y is the item (a patch, or one side of it),
 * threadIdx.y a line of the block. @Job has
 *   float2 load (item, line, i), void store (item, line, i, value)
 * for i < n. With @columns, neighbouring lines are neighbours in memory, and
 * threads go through them first. */
template <bool backward, bool columns, typename Job>
static __global__ void
transform (const __grid_constant__ Fft f, uint32_t n_lines,
    const __grid_constant__ Job job)
{
  extern __shared__ float2 shared[];
  const uint32_t item = blockIdx.y, first = blockIdx.x * blockDim.y;
  const uint32_t here = min (blockDim.y, n_lines - first);
  const uint32_t thread = threadIdx.y * blockDim.x + threadIdx.x;
  float2 *line = line_at (shared, f.n, threadIdx.y, 0);

  if (columns) {
    uint32_t l = thread % blockDim.y; /* no remainder: threads are a multiple */

    for (uint32_t i = thread / blockDim.y; i < f.n; i += blockDim.x)
      line_at (shared, f.n, l, 0)[padded (i)] =
          l < here ? job.load (item, first + l, i) : make_float2 (0, 0);
  } else {
    for (uint32_t i = threadIdx.x; i < f.n; i += blockDim.x)
      line[padded (i)] = threadIdx.y < here
                             ? job.load (item, first + threadIdx.y, i)
                             : make_float2 (0, 0);
  }
  line =
      transform_line<backward> (f, line, line_at (shared, f.n, threadIdx.y, 1));
  if (columns) {
    uint32_t l = thread % blockDim.y;
    uint32_t copy = f.n_passes % 2;

    if (l < here)
      for (uint32_t i = thread / blockDim.y; i < f.n; i += blockDim.x)
        job.store (
            item, first + l, i, line_at (shared, f.n, l, copy)[padded (i)]);
  } else if (threadIdx.y < here) {
    for (uint32_t i = threadIdx.x; i < f.n; i += blockDim.x)
      job.store (item, first + threadIdx.y, i, line[padded (i)]);
  }
}

/* Fills in radices, as large as they can be. */
static inline void
plan_fft (Fft *f, uint32_t n)
{
  uint32_t rest = n;

  f->n = n;
  f->n_passes = 0;
  while (rest > 1) {
    uint32_t radix = rest % 8 == 0   ? 8
                     : rest % 4 == 0 ? 4
                     : rest % 2 == 0 ? 2
                                     : 3;

    while (rest % radix)
      radix += 2;
    f->radices[f->n_passes++] = (uint16_t) radix;
    rest /= radix;
  }
}

/* The block for lines of @n: threads a line, lines. */
static inline dim3
block_for (uint32_t n)
{
  uint32_t threads = 8;

  while (threads < FFT_THREADS && threads * 8 < n)
    threads *= 2;
  return dim3 (threads, FFT_THREADS / threads);
}

static inline size_t
shared_for (uint32_t n, uint32_t copies)
{
  return (size_t) copies * block_for (n).y * padded_length (n) *
         sizeof (float2);
}

} // namespace insar
