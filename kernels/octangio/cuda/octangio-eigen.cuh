/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* EIGEN, which reads the B-scans twice: the sums of its matrices, their
 * eigenvectors, and the power that these leave. All in float64: a strong
 * reflector in tissue can be 1e4 times the flow beside it. */
#pragma once

#include "octangio/cuda/octangio-pixels.cuh"

enum {
  FEW_REPEATS = 4, /* of register_gram */
  GRAM_THREADS = 256,
  GRAM_CHUNK = 1024, /* depths of a block of register_gram */
  GRAM_DEPTHS = 64,
  SOLVE_ASCANS = 4, /* of a block, a warp each */
  SWEEPS = 12,      /* at most, as on the CPU */
};

/* Pair @i of row r and column c, c up to r. */
static __device__ __forceinline__ void
pair_of (uint32_t i, uint32_t *r, uint32_t *c)
{
  *r = 0;
  while (i > *r) {
    i -= *r + 1;
    ++*r;
  }
  *c = i;
}

/* ------------------------------------------------------------------------
 * The sums of Z_r conj (Z_c) over the depths of an A-scan. */

/* Of four repeats, a chunk of the depths: all sums of a thread in registers. */
static __global__ void
__launch_bounds__ (GRAM_THREADS)
    register_gram (const __grid_constant__ Arguments a)
{
  constexpr uint32_t N = FEW_REPEATS, PAIRS = N * (N + 1) / 2;
  __shared__ double2 partial[GRAM_THREADS / 32][PAIRS];
  uint32_t n = a.n_repeats, n_pairs = n * (n + 1) / 2;
  uint32_t ascan = blockIdx.x, first = blockIdx.y * GRAM_CHUNK;
  double2 sums[PAIRS] = {}, total = make_double2 (0, 0);
  float4 v[GRAM_CHUNK / GRAM_THREADS / 2][N];

#pragma unroll
  for (uint32_t k = 0; k < GRAM_CHUNK / GRAM_THREADS / 2; k++)
    load_pairs<N, true> (
        a, ascan, first + 2 * (threadIdx.x + k * GRAM_THREADS), v[k]);
#pragma unroll
  for (uint32_t k = 0; k < GRAM_CHUNK / GRAM_THREADS / 2; k++)
#pragma unroll
    for (uint32_t r = 0; r < N; r++)
#pragma unroll
      for (uint32_t c = 0; c <= r; c++) {
        double2 *sum = &sums[r * (r + 1) / 2 + c];
        float4 x = v[k][r], y = v[k][c];

        sum->x += (double) x.x * y.x + (double) x.y * y.y + (double) x.z * y.z +
                  (double) x.w * y.w;
        if (c < r)
          sum->y += (double) x.y * y.x - (double) x.x * y.y +
                    (double) x.w * y.z - (double) x.z * y.w;
      }
#pragma unroll
  for (uint32_t i = 0; i < PAIRS; i++) {
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
      sums[i].x += __shfl_xor_sync (~0u, sums[i].x, mask);
      sums[i].y += __shfl_xor_sync (~0u, sums[i].y, mask);
    }
    if (threadIdx.x % 32 == 0)
      partial[threadIdx.x / 32][i] = sums[i];
  }
  __syncthreads ();
  if (threadIdx.x >= n_pairs) /* those of repeats that are not there are last */
    return;
  for (uint32_t i = 0; i < GRAM_THREADS / 32; i++) {
    total.x += partial[i][threadIdx.x].x;
    total.y += partial[i][threadIdx.x].y;
  }
  a.gram[((size_t) ascan * a.n_chunks + blockIdx.y) * n_pairs + threadIdx.x] =
      total;
}

/* Of any number of repeats and depths. A group of threads has the pairs, and
 * every few depths. */
static __global__ void
gram (const __grid_constant__ Arguments a)
{
  __shared__ float2 part[IMK_OCTANGIO_MAX_REPEATS][GRAM_DEPTHS + 1];
  __shared__ double2 sums[GRAM_THREADS];
  uint32_t n_pairs = a.n_repeats * (a.n_repeats + 1) / 2;
  uint32_t n_groups = GRAM_THREADS / n_pairs, group = threadIdx.x / n_pairs;
  uint32_t pair = threadIdx.x % n_pairs, ascan = blockIdx.x, r, c;
  double2 sum = make_double2 (0, 0);

  pair_of (pair, &r, &c);
  for (uint32_t first = 0; first < a.n_depths; first += GRAM_DEPTHS) {
    for (uint32_t i = threadIdx.x; i < a.n_repeats * GRAM_DEPTHS;
         i += GRAM_THREADS) {
      uint32_t z = first + i % GRAM_DEPTHS;

      part[i / GRAM_DEPTHS][i % GRAM_DEPTHS] =
          z < a.n_depths ? value_at (a, i / GRAM_DEPTHS, ascan, z)
                         : make_float2 (0, 0);
    }
    __syncthreads ();
    for (uint32_t i = group; group < n_groups && i < GRAM_DEPTHS;
         i += n_groups) {
      float2 x = part[r][i], y = part[c][i];

      sum.x += (double) x.x * y.x + (double) x.y * y.y;
      sum.y += (double) x.y * y.x - (double) x.x * y.y;
    }
    __syncthreads ();
  }
  sums[threadIdx.x] = sum;
  __syncthreads ();
  if (group > 0)
    return;
  for (uint32_t i = 1; i < n_groups; i++) {
    sum.x += sums[pair + i * n_pairs].x;
    sum.y += sums[pair + i * n_pairs].y;
  }
  a.gram[(size_t) ascan * n_pairs + pair] = sum;
}

/* ------------------------------------------------------------------------
 * The eigenvectors. */

/* Columns p and q of a row: x cos - y conj (e) sin, x e sin + y cos. */
static __device__ __forceinline__ void
turn_pair (double2 *x, double2 *y, double c, double2 s)
{
  double2 p = *x, q = *y;

  *x = make_double2 (
      c * p.x - (s.x * q.x + s.y * q.y), c * p.y - (s.x * q.y - s.y * q.x));
  *y = make_double2 (
      s.x * p.x - s.y * p.y + c * q.x, s.x * p.y + s.y * p.x + c * q.y);
}

struct Matrix {
  double2 a[IMK_OCTANGIO_MAX_REPEATS][IMK_OCTANGIO_MAX_REPEATS];
  double2 v[IMK_OCTANGIO_MAX_REPEATS][IMK_OCTANGIO_MAX_REPEATS];
  double c[IMK_OCTANGIO_MAX_REPEATS / 2]; /* rotations, of pairs p and q */
  double2 s[IMK_OCTANGIO_MAX_REPEATS / 2];
  uint8_t p[IMK_OCTANGIO_MAX_REPEATS / 2], q[IMK_OCTANGIO_MAX_REPEATS / 2];
  uint32_t order[IMK_OCTANGIO_MAX_REPEATS];
};

/* Pair @k of a round of a tournament of @even players: each meets all others
 * in @even - 1 rounds. */
static __device__ __forceinline__ void
players_of (uint32_t round, uint32_t k, uint32_t even, uint32_t *p, uint32_t *q)
{
  uint32_t n = even - 1, x = round + k, y = round + n - k;

  x -= x >= n ? n : 0;
  y -= y >= n ? n : 0;
  if (k == 0)
    y = n;
  *p = min (x, y);
  *q = max (x, y);
}

/* That of element [p][q], as octangio-eigen.c with fewer roots: with d = (a_qq
 * - a_pp) / 2 its tangent is a_pq / (d + sign (d) sqrt (d^2 + |a_pq|^2)). A
 * tangent in float32 leaves 1e-7 of the element, which the next sweep takes;
 * but the rotation has the length 1 to float64. The trace of the matrix is 1.
 * Returns: whether there is something to rotate */
static __device__ __forceinline__ bool
find_rotation (Matrix &m, uint32_t k, uint32_t p, uint32_t q)
{
  double2 apq = m.a[p][q];
  double app = m.a[p][p].x, aqq = m.a[q][q].x;
  double square = apq.x * apq.x + apq.y * apq.y, t, length, c;
  float d = (float) (aqq - app) / 2, size = (float) square;

  /* or nothing that float64 can tell from 0 */
  if (!(square > 1e-33 * fabs (app * aqq) && square > 1e-36)) {
    m.p[k] = m.q[k] = 0;
    return false;
  }
  t = copysignf (1 / (fabsf (d) + root_of (d * d + size)), d);
  length = 1 + square * t * t;
  c = rsqrtf ((float) length); /* Newton's method doubles the digits */
  for (int i = 0; i < 2; i++)
    c *= 1.5 - 0.5 * length * c * c;
  m.p[k] = (uint8_t) p;
  m.q[k] = (uint8_t) q;
  m.c[k] = c;
  m.s[k] = make_double2 (c * t * apq.x, c * t * apq.y);
  return true;
}

/* A round: its rotations do not touch each other's rows and columns. Lane k n +
 * i has row or column i of rotation k.
 * Returns: to all lanes, whether anything was rotated */
static __device__ __forceinline__ bool
rotate_round (Matrix &m, uint32_t n, uint32_t round, uint32_t lane, uint32_t k0,
    uint32_t step)
{
  uint32_t even = n + n % 2, n_rotations = even / 2, p, q, at = lane - k0 * n;
  bool turns = false;

  if (lane < n_rotations) {
    players_of (round, lane, even, &p, &q);
    if (q < n)
      turns = find_rotation (m, lane, p, q);
    else /* of an odd number, one rests */
      m.p[lane] = m.q[lane] = 0;
  }
  if (!__any_sync (~0u, turns))
    return false;
  __syncwarp ();
  for (uint32_t k = k0; k < n_rotations; k += step) { /* A J, V J */
    if (m.p[k] == m.q[k])
      continue;
    turn_pair (&m.a[at][m.p[k]], &m.a[at][m.q[k]], m.c[k], m.s[k]);
    turn_pair (&m.v[at][m.p[k]], &m.v[at][m.q[k]], m.c[k], m.s[k]);
  }
  __syncwarp ();
  for (uint32_t k = k0; k < n_rotations; k += step) { /* J* A J */
    double2 s = make_double2 (m.s[k].x, -m.s[k].y);

    if (m.p[k] != m.q[k])
      turn_pair (&m.a[m.p[k]][at], &m.a[m.q[k]][at], m.c[k], s);
  }
  __syncwarp ();
  return true;
}

static __device__ __forceinline__ void
choose (Matrix &m, uint32_t n, uint32_t n_wanted)
{
  uint32_t taken = 0;

  for (uint32_t k = 0; k < n_wanted; k++) {
    uint32_t best = n;

    for (uint32_t i = 0; i < n; i++)
      if (!(taken >> i & 1) && (best == n || m.a[i][i].x > m.a[best][best].x))
        best = i;
    taken |= 1u << best;
    m.order[k] = best;
  }
}

static __global__ void
solve (const __grid_constant__ Arguments a)
{
  __shared__ Matrix matrices[SOLVE_ASCANS];
  uint32_t n = a.n_repeats, n_pairs = n * (n + 1) / 2, lane = threadIdx.x;
  uint32_t ascan = blockIdx.x * SOLVE_ASCANS + threadIdx.y, first, end;
  uint32_t step = 32 / n, k0 = lane / n; /* of lanes beyond: no rotation */
  Matrix &m = matrices[threadIdx.y];
  double trace = 0;
  bool turns = true;

  if (ascan >= a.n_ascans) /* a whole warp */
    return;
  range_of (ascan, a.lateral, a.n_ascans, &first, &end);
  for (uint32_t i = lane; i < n_pairs; i += 32) {
    double2 sum = make_double2 (0, 0);
    uint32_t r, c;

    pair_of (i, &r, &c);
    for (uint32_t k = first * a.n_chunks; k < end * a.n_chunks; k++) {
      double2 v = a.gram[(size_t) k * n_pairs + i];

      sum.x += v.x;
      sum.y += v.y;
    }
    m.a[c][r] = make_double2 (sum.x, -sum.y);
    m.a[r][c] = sum;
    m.v[r][c] = m.v[c][r] = make_double2 (r == c, 0);
  }
  __syncwarp ();
  for (uint32_t i = 0; i < n; i++)
    trace += m.a[i][i].x;
  __syncwarp ();
  for (uint32_t i = lane; i < n * n && trace > 0; i += 32) {
    m.a[i / n][i % n].x /= trace;
    m.a[i / n][i % n].y /= trace;
  }
  __syncwarp ();
  for (int sweep = 0; sweep < SWEEPS && turns; sweep++) {
    turns = false;
    for (uint32_t round = 0; round < n + n % 2 - 1; round++)
      turns |= rotate_round (m, n, round, lane, k0 < step ? k0 : n, step);
  }
  if (lane == 0)
    choose (m, n, a.n_tissue);
  __syncwarp ();
  for (uint32_t k = 0; k < a.n_tissue && lane < n; k++)
    a.vectors[((size_t) ascan * a.n_tissue + k) * n + lane] =
        m.v[lane][m.order[k]];
}

/* ------------------------------------------------------------------------
 * The power without what the vectors have of it. */

template <uint32_t MOST>
static __device__ __forceinline__ float
rest_of (const Arguments &a, const double2 *vector, const float2 v[MOST],
    float *mean)
{
  double power = 0, tissue = 0;

#pragma unroll
  for (uint32_t r = 0; r < MOST; r++)
    power += (double) v[r].x * v[r].x + (double) v[r].y * v[r].y;
  for (uint32_t k = 0; k < a.n_tissue; k++, vector += a.n_repeats) {
    double re = 0, im = 0;

#pragma unroll
    for (uint32_t r = 0; r < MOST; r++)
      if (r < a.n_repeats) {
        double2 w = vector[r];

        re += w.x * v[r].x + w.y * v[r].y;
        im += w.x * v[r].y - w.y * v[r].x;
      }
    tissue += re * re + im * im;
  }
  *mean = (float) power * a.share;
  return (float) fmax (power - tissue, 0.0) * a.share;
}

template <uint32_t MOST>
static __global__ void
__launch_bounds__ (TILE_THREADS) eigen (const __grid_constant__ Arguments a)
{
  __shared__ Tile tile;
  /* the last A-scans first: the cache has them from the sums */
  uint32_t first = (gridDim.y - 1 - blockIdx.y) * TILE_ASCANS;
  uint32_t ascan = first + threadIdx.x / TILE_PAIRS, z = tile_depth ();
  float2 flow = make_float2 (0, 0), mean = flow;

  if (ascan < a.n_ascans && z < a.n_depths) {
    const double2 *vectors =
        a.vectors + (size_t) ascan * a.n_tissue * a.n_repeats;
    float4 v[MOST];
    float2 one[MOST];

    load_pairs<MOST> (a, ascan, z, v);
#pragma unroll
    for (uint32_t r = 0; r < MOST; r++)
      one[r] = first_of (v[r]);
    flow.x = rest_of<MOST> (a, vectors, one, &mean.x);
#pragma unroll
    for (uint32_t r = 0; r < MOST; r++)
      one[r] = second_of (v[r]);
    flow.y = rest_of<MOST> (a, vectors, one, &mean.y);
  }
  put_tile (a, tile, first, flow, mean);
}
