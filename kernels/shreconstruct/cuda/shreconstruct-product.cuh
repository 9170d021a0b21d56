/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A product with what becomes of it, in one kernel: a controller is diagonal,
 * so each block needs the products of its own rows alone. */
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "core/cuda/early-begin.cuh"
#include "shreconstruct/cuda/shreconstruct-cuda.cuh"

/* --- slopes --------------------------------------------------------------- */

/* A cell a thread. */
static __global__ void
take_slopes (const __grid_constant__ Slopes s)
{
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x, n = s.n_cells;
  bool valid = false;
  int n_valid;

  let_next_kernel_begin ();
  wait_for_last_kernel ();
  if (i < n) {
    const float dx = s.slopes[i], dy = s.slopes[n + i];
    const uint8_t flags = s.flags ? s.flags[i] : 0;

    valid = imk_shreconstruct_is_valid (dx, dy, flags);
    s.vector[i] = valid ? dx - s.offsets[i] : s.hold ? s.before[i] : 0.0f;
    s.vector[n + i] = valid    ? dy - s.offsets[n + i]
                      : s.hold ? s.before[n + i]
                               : 0.0f;
  }
  n_valid = __syncthreads_count (valid);
  if (threadIdx.x == 0)
    s.n_valid[blockIdx.x] = s.n_valid_host[blockIdx.x] = (uint32_t) n_valid;
}

/* Of all threads. Returns: @value of all of them together, to each */
static __device__ uint32_t
add_up (uint32_t value)
{
  __shared__ uint32_t sums[WARPS];
  uint32_t sum = 0;

  for (int step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync (~0u, value, step);
  if (threadIdx.x % 32 == 0)
    sums[threadIdx.x / 32] = value;
  __syncthreads ();
  for (int i = 0; i < WARPS; i++)
    sum += sums[i];
  __syncthreads ();
  return sum;
}

static __device__ bool
is_dark (const Product &p)
{
  return add_up (threadIdx.x < p.n_valid_parts ? p.n_valid[threadIdx.x] : 0) <
         p.least_valid;
}

/* --- the product ---------------------------------------------------------- */

/* Of a matrix that is larger than the caches: it shall not push the vector out
 * of the nearest one. */
static __device__ __forceinline__ uint4
load_once (const uint4 *at)
{
  uint4 v;

  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}

/* What 16 bytes of a matrix add to a sum. */
template <typename Stored> struct Piece;

template <> struct Piece<float> {
  enum { N = 4 };
  static __device__ __forceinline__ float
  add (float sum, const uint4 &v, const float *s)
  {
    sum = __fmaf_rn (__uint_as_float (v.x), s[0], sum);
    sum = __fmaf_rn (__uint_as_float (v.y), s[1], sum);
    sum = __fmaf_rn (__uint_as_float (v.z), s[2], sum);
    return __fmaf_rn (__uint_as_float (v.w), s[3], sum);
  }
};

template <> struct Piece<__half> {
  enum { N = 8 };
  static __device__ __forceinline__ float
  add (float sum, const uint4 &v, const float *s)
  {
    const uint32_t words[] = {v.x, v.y, v.z, v.w};

    for (int i = 0; i < 4; i++) {
      const float2 pair =
          __half22float2 (*reinterpret_cast<const __half2 *> (&words[i]));

      sum = __fmaf_rn (pair.x, s[2 * i], sum);
      sum = __fmaf_rn (pair.y, s[2 * i + 1], sum);
    }
    return sum;
  }
};

template <> struct Piece<__nv_bfloat16> {
  enum { N = 8 };
  static __device__ __forceinline__ float
  add (float sum, const uint4 &v, const float *s)
  {
    const uint32_t words[] = {v.x, v.y, v.z, v.w};

    for (int i = 0; i < 4; i++) {
      sum = __fmaf_rn (__uint_as_float (words[i] << 16), s[2 * i], sum);
      sum = __fmaf_rn (
          __uint_as_float (words[i] & 0xffff0000), s[2 * i + 1], sum);
    }
    return sum;
  }
};

/* Rows @row and the ROWS - 1 after it, of which those from @end on are not
 * there. Each thread has every THREADS-th piece of a row; the sums of threads
 * are added up in a fixed order. Returns: to thread i that of row @row + i */
template <typename Stored, int ROWS>
static __device__ __forceinline__ float
multiply_rows (const Product &p, uint32_t row, uint32_t end)
{
  enum { N = Piece<Stored>::N };
  __shared__ float partial[ROWS][WARPS];
  const uint32_t n_pieces = p.matrix.stride / N;
  const uint4 *rows[ROWS];
  float sums[ROWS] = {};
  float sum = 0;

#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const uint32_t there = row + r < end ? row + r : end - 1;

    rows[r] = (const uint4 *) p.matrix.values + (size_t) there * n_pieces;
  }
  for (uint32_t i = threadIdx.x; i < n_pieces; i += THREADS) {
    uint4 pieces[ROWS];
    float s[N];

#pragma unroll
    for (int r = 0; r < ROWS; r++)
      pieces[r] = load_once (rows[r] + i);
#pragma unroll
    for (int k = 0; k < N; k += 4) {
      const float4 v = *(const float4 *) (p.vector + (size_t) i * N + k);

      s[k] = v.x;
      s[k + 1] = v.y;
      s[k + 2] = v.z;
      s[k + 3] = v.w;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
      sums[r] = Piece<Stored>::add (sums[r], pieces[r], s);
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    for (int step = 16; step > 0; step /= 2)
      sums[r] += __shfl_xor_sync (~0u, sums[r], step);
    if (threadIdx.x % 32 == 0)
      partial[r][threadIdx.x / 32] = sums[r];
  }
  __syncthreads ();
  if (threadIdx.x < ROWS)
    for (int w = 0; w < WARPS; w++)
      sum += partial[threadIdx.x][w];
  __syncthreads ();
  return sum;
}

/* --- the controller: see imk_shreconstruct_process () --------------------- */

/* What a row needs beside its product, read before that is there. */
struct Recalled {
  float scale;     /* of the stored matrix */
  double past, b0; /* of a mode: what the past adds to the next q, and b_0 */
  float reference, before; /* of a command */
  bool is_dead;
};

static __device__ double
recall_past (const Control &c, uint32_t m)
{
  double past = 0, forward = 0;

  for (uint32_t i = 0; i < c.n_feedback; i++)
    past += c.feedback[(size_t) i * c.n_modes + m] *
            c.q[(size_t) ((c.newest + 1 + i) % TERMS) * c.n_modes + m];
  for (uint32_t j = 1; j < c.n_forward; j++)
    forward += c.forward[(size_t) j * c.n_modes + m] *
               c.u[(size_t) ((c.newest + j) % TERMS) * c.n_modes + m];
  return past + forward;
}

static __device__ Recalled
recall (const Product &p, const Control &c, End end, uint32_t row)
{
  Recalled r = {};

  r.scale = p.matrix.scales ? p.matrix.scales[row] : 1.0f;
  if (end == END_COMMANDS || end == END_MODES) {
    r.past = recall_past (c, row);
    r.b0 = c.forward[row];
  }
  if (end == END_COMMANDS || end == END_MIX) {
    r.reference = c.reference[row];
    r.before = c.commands[row];
    r.is_dead = c.dead && c.dead[row];
  }
  return r;
}

static __device__ void
keep_q (const Control &c, uint32_t m, double q)
{
  const size_t at = (size_t) c.newest * c.n_modes + m;

  c.q[at] = c.q_host[at] = q;
}

/* Returns: the next q */
static __device__ double
control (const Control &c, uint32_t m, const Recalled &r, float product)
{
  const size_t at = (size_t) c.newest * c.n_modes + m;
  const double u = -(double) product;

  c.u[at] = c.u_host[at] = u;
  return r.past + r.b0 * u;
}

/* Returns: the command that is sent in place of @wanted */
static __device__ double
limit (const Control &c, const Recalled &r, double wanted)
{
  if (!c.has_limits)
    return wanted;
  return r.is_dead ? r.reference
                   : imk_shlimits_send (&c.limits, wanted, r.before);
}

/* Returns: the same, which has been sent */
static __device__ double
send (const Control &c, uint32_t k, const Recalled &r, double wanted,
    bool *counts)
{
  const double limited = limit (c, r, wanted);

  c.commands[k] = c.commands_host[k] = (float) limited;
  *counts = limited != wanted && !r.is_dead;
  return limited;
}

/* Row @row of a product. Returns: whether it is a command that was limited */
static __device__ bool
end_row (const Product &p, const Control &c, End end, uint32_t row,
    const Recalled &r, float product)
{
  bool counts = false;

  if (end == END_COMMANDS) {
    const double q = control (c, row, r, product);
    const double wanted = (float) (r.reference + q);
    const double limited = send (c, row, r, wanted, &counts);

    keep_q (c, row, limited != wanted ? limited - r.reference : q);
  } else if (end == END_MODES) {
    const double q = control (c, row, r, product);

    keep_q (c, row, q);
    p.next[row] = (float) q;
  } else if (end == END_MIX) {
    const float wanted = r.reference + product;
    const double limited = send (c, row, r, wanted, &counts);

    if (p.next)
      p.next[row] = (float) (limited - wanted);
  } else {
    keep_q (
        c, row, c.q[(size_t) c.newest * c.n_modes + row] + (double) product);
  }
  return counts;
}

/* --- all of it ------------------------------------------------------------ */

/* What the host takes over of the slopes. */
static __device__ void
copy_vector (const Product &p)
{
  for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < p.n_vector_host;
       i += gridDim.x * THREADS)
    p.vector_host[i] = p.vector[i];
}

/* The beginnings of rows @from .. @to - 1 come into the L2 cache while kernels
 * before this one make the vector. */
template <typename Stored>
static __device__ void
fetch_ahead (const Matrix &m, uint32_t from, uint32_t to)
{
#if __CUDA_ARCH__ >= 900
  for (uint32_t row = from + threadIdx.x; row < to && m.ahead > 0;
       row += THREADS)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                     (const Stored *) m.values + (size_t) row * m.stride),
                 "r"(m.ahead)
                 : "memory");
#endif
}

/* Rows are shared out evenly. */
template <typename Stored, int ROWS>
static __global__ void
__launch_bounds__ (THREADS, BLOCKS) multiply (const __grid_constant__ Product p,
    const __grid_constant__ Control c, End end)
{
  const uint32_t n = p.matrix.n_rows;
  const uint32_t from = (uint32_t) ((uint64_t) blockIdx.x * n / gridDim.x);
  const uint32_t to = (uint32_t) ((uint64_t) (blockIdx.x + 1) * n / gridDim.x);
  uint32_t n_limited = 0;
  Recalled recalled = {};

  let_next_kernel_begin ();
  fetch_ahead<Stored> (p.matrix, from, to);
  if (threadIdx.x < ROWS && from + threadIdx.x < to)
    recalled = recall (p, c, end, from + threadIdx.x);
  wait_for_last_kernel ();
  if (p.least_valid > 0 && is_dark (p))
    return;
  if (p.vector_host)
    copy_vector (p);
  for (uint32_t row = from; row < to; row += ROWS) {
    const float sum = multiply_rows<Stored, ROWS> (p, row, to);
    const uint32_t mine = row + threadIdx.x;

    if (threadIdx.x < ROWS && mine < to) {
      n_limited += end_row (p, c, end, mine, recalled, sum * recalled.scale);
      if (mine + ROWS < to)
        recalled = recall (p, c, end, mine + ROWS);
    }
  }
  if (c.has_limits && (end == END_COMMANDS || end == END_MIX)) {
    n_limited = add_up (n_limited);
    if (threadIdx.x == 0)
      c.n_limited_host[blockIdx.x] = n_limited;
  }
}
