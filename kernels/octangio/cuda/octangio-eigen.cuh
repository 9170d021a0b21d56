/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* EIGEN, which reads the B-scans twice: the sums of its matrices, their
 * eigenvectors, and the power that these leave. All in float64: a strong
 * reflector in tissue can be 1e4 times the flow beside it. */
#pragma once

#include "octangio/cuda/octangio-pixels.cuh"

enum {
  GRAM_THREADS = 256,
  GRAM_CHUNK = 1024, /* depths of a block of gram */
  FEW_REPEATS = 4,   /* of solve_few */
  FEW_ASCANS = 8,    /* of a block of solve_few, four lanes each */
  SOLVE_ASCANS = 4,  /* of a block of solve, a warp each */
  SWEEPS = 12,       /* at most, as on the CPU */
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
 * The sums of Z_r conj (Z_c) over the depths of an A-scan. With X, whose rows
 * 2 r and 2 r + 1 are the real and imaginary parts of repeat r, they are the
 * elements of X X^T. A tile is 8 rows, of four repeats. */

/* @c (8 x 8) += @x (8 x 4) times @y (8 x 4) transposed. Lane 4 i + k has
 * element k of row i of @x and @y, and elements 2 k and 2 k + 1 of row i of
 * @c. */
static __device__ __forceinline__ void
add_product (double x, double y, double2 *c)
{
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
      "{%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c->x), "+d"(c->y)
      : "d"(x), "d"(y));
#else
  int lane = threadIdx.x % 32;

  for (int k = 0; k < 4; k++) {
    double v = __shfl_sync (~0u, x, lane / 4 * 4 + k);

    c->x += v * __shfl_sync (~0u, y, lane % 4 * 8 + k);
    c->y += v * __shfl_sync (~0u, y, lane % 4 * 8 + 4 + k);
  }
#endif
}

/* Depths @z, which is even, and @z + 1. */
static __device__ __forceinline__ float4
load_depths (const float2 *row, bool is_wide, uint32_t z, uint32_t n)
{
  float4 v = make_float4 (0, 0, 0, 0);

  if (is_wide && z + 1 < n)
    return *(const float4 *) (row + z);
  if (z < n) {
    v.x = row[z].x;
    v.y = row[z].y;
  }
  if (z + 1 < n) {
    v.z = row[z + 1].x;
    v.w = row[z + 1].y;
  }
  return v;
}

/* A warp has every eighth group of 16 depths of a chunk. Its lanes that have a
 * repeat's real parts load the first half of a group, those of its imaginary
 * parts the other; then they exchange. */
template <uint32_t TILES>
static __global__ void
__launch_bounds__ (GRAM_THREADS) gram (const __grid_constant__ Arguments a)
{
  constexpr uint32_t WARPS = GRAM_THREADS / 32, PAIRS = TILES * (TILES + 1) / 2;
  constexpr uint32_t GROUPS = GRAM_CHUNK / (16 * WARPS), STEP = 8 / TILES;
  __shared__ double2 partial[PAIRS][WARPS][32];
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, n = a.n_repeats;
  uint32_t first = blockIdx.y * GRAM_CHUNK + 16 * warp + 2 * (lane % 8);
  bool is_imaginary = lane & 4;
  const float2 *rows[TILES];
  double2 sums[PAIRS] = {};

#pragma unroll
  for (uint32_t t = 0; t < TILES; t++)
    rows[t] =
        address_of (a, min (4 * t + lane / 8, n - 1), blockIdx.x, (uint32_t) 0);
  for (uint32_t group = 0; group < GROUPS; group += STEP) {
    float4 v[STEP][TILES];

#pragma unroll
    for (uint32_t i = 0; i < STEP; i++)
#pragma unroll
      for (uint32_t t = 0; t < TILES; t++)
        v[i][t] =
            load_depths (rows[t], a.is_wide, first + 16 * WARPS * (group + i),
                4 * t + lane / 8 < n ? a.n_depths : 0);
#pragma unroll
    for (uint32_t i = 0; i < STEP; i++) {
      float part[TILES][4];

#pragma unroll
      for (uint32_t t = 0; t < TILES; t++) {
        float4 x = clean (v[i][t]);
        float p = __shfl_xor_sync (~0u, is_imaginary ? x.x : x.y, 4);
        float q = __shfl_xor_sync (~0u, is_imaginary ? x.z : x.w, 4);

        part[t][0] = is_imaginary ? p : x.x;
        part[t][1] = is_imaginary ? q : x.z;
        part[t][2] = is_imaginary ? x.y : p;
        part[t][3] = is_imaginary ? x.w : q;
      }
#pragma unroll
      for (uint32_t k = 0; k < 4; k++)
#pragma unroll
        for (uint32_t t = 0; t < TILES; t++)
#pragma unroll
          for (uint32_t u = 0; u <= t; u++)
            add_product (part[t][k], part[u][k], &sums[t * (t + 1) / 2 + u]);
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < PAIRS; i++)
    partial[i][warp][lane] = sums[i];
  __syncthreads ();
  for (uint32_t i = warp; i < PAIRS; i += WARPS) {
    double2 sum = make_double2 (0, 0), other;
    uint32_t t, u, r, c;

    for (uint32_t w = 0; w < WARPS; w++) {
      sum.x += partial[i][w][lane].x;
      sum.y += partial[i][w][lane].y;
    }
    other.x = __shfl_xor_sync (~0u, sum.x, 4);
    other.y = __shfl_xor_sync (~0u, sum.y, 4);
    pair_of (i, &t, &u);
    r = 4 * t + lane / 8;
    c = 4 * u + lane % 4;
    if (!is_imaginary && r < n && c <= r)
      a.gram[((size_t) blockIdx.x * a.n_chunks + blockIdx.y) *
                 (n * (n + 1) / 2) +
             r * (r + 1) / 2 + c] =
          make_double2 (sum.x + other.y, other.x - sum.y);
  }
}

/* ------------------------------------------------------------------------
 * The eigenvectors. */

/* A rotation: the cosine, and the sine times the phase of the element. */
struct Rotation {
  double c;
  double2 s;
};

/* Columns p and q of a row: x cos - y conj (e) sin, x e sin + y cos. */
static __device__ __forceinline__ void
turn_pair (double2 *x, double2 *y, const Rotation &by)
{
  double2 p = *x, q = *y, s = by.s;
  double c = by.c;

  *x = make_double2 (
      c * p.x - (s.x * q.x + s.y * q.y), c * p.y - (s.x * q.y - s.y * q.x));
  *y = make_double2 (
      s.x * p.x - s.y * p.y + c * q.x, s.x * p.y + s.y * p.x + c * q.y);
}

struct Matrix {
  double2 a[IMK_OCTANGIO_MAX_REPEATS][IMK_OCTANGIO_MAX_REPEATS];
  double2 v[IMK_OCTANGIO_MAX_REPEATS][IMK_OCTANGIO_MAX_REPEATS];
  Rotation rotations[IMK_OCTANGIO_MAX_REPEATS / 2]; /* of pairs p and q */
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

/* That of an element @apq and its diagonal ones, as octangio-eigen.c with fewer
 * roots: with d = (a_qq - a_pp) / 2 its tangent is a_pq / (d + sign (d) sqrt
 * (d^2 + |a_pq|^2)). A tangent in float32 leaves 1e-7 of the element, which the
 * next sweep takes; but the rotation has the length 1 to float64. The trace of
 * the matrix is 1. @t: (out): the tangent divided by @apq
 * Returns: whether there is something to rotate; else @t is 0 */
static __device__ __forceinline__ bool
find_rotation (
    double app, double aqq, double2 apq, Rotation *rotation, double *t)
{
  double square = apq.x * apq.x + apq.y * apq.y, length, c;
  float d = (float) (aqq - app) / 2, size = (float) square;
  /* or nothing that float64 can tell from 0 */
  bool turns = square > 1e-33 * fabs (app * aqq) && square > 1e-36;

  *t = turns ? copysignf (1 / (fabsf (d) + root_of (d * d + size)), d) : 0.0f;
  length = 1 + square * *t * *t;
  c = rsqrtf ((float) length); /* Newton's method doubles the digits */
  for (int i = 0; i < 2; i++)
    c *= 1.5 - 0.5 * length * c * c;
  rotation->c = c;
  rotation->s = make_double2 (c * *t * apq.x, c * *t * apq.y);
  return turns;
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
  double t;

  if (lane < n_rotations) {
    players_of (round, lane, even, &p, &q);
    if (q < n) /* of an odd number, one rests */
      turns = find_rotation (
          m.a[p][p].x, m.a[q][q].x, m.a[p][q], &m.rotations[lane], &t);
    m.p[lane] = (uint8_t) (turns ? p : 0);
    m.q[lane] = (uint8_t) (turns ? q : 0);
  }
  if (!__any_sync (~0u, turns))
    return false;
  __syncwarp ();
  for (uint32_t k = k0; k < n_rotations; k += step) { /* A J, V J */
    if (m.p[k] == m.q[k])
      continue;
    turn_pair (&m.a[at][m.p[k]], &m.a[at][m.q[k]], m.rotations[k]);
    turn_pair (&m.v[at][m.p[k]], &m.v[at][m.q[k]], m.rotations[k]);
  }
  __syncwarp ();
  for (uint32_t k = k0; k < n_rotations; k += step) { /* J* A J */
    Rotation back = {m.rotations[k].c,
        make_double2 (m.rotations[k].s.x, -m.rotations[k].s.y)};

    if (m.p[k] != m.q[k])
      turn_pair (&m.a[m.p[k]][at], &m.a[m.q[k]][at], back);
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
  wait_for_last_kernel ();
  let_next_kernel_begin ();
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
 * The same of up to four repeats, in registers. Each of four lanes has the
 * whole matrix, and a row of the eigenvectors. */

struct SmallMatrix {
  double d[FEW_REPEATS];
  double2 upper[6]; /* elements 01, 02, 12, 03, 13, 23 */
};

static __device__ __forceinline__ double2
element_of (const SmallMatrix &m, int r, int c)
{
  double2 v =
      r < c ? m.upper[c * (c - 1) / 2 + r] : m.upper[r * (r - 1) / 2 + c];

  return r < c ? v : make_double2 (v.x, -v.y);
}

static __device__ __forceinline__ void
set_element (SmallMatrix *m, int r, int c, double2 v)
{
  if (r < c)
    m->upper[c * (c - 1) / 2 + r] = v;
  else
    m->upper[r * (r - 1) / 2 + c] = make_double2 (v.x, -v.y);
}

/* Element [p][q], of constants. */
static __device__ __forceinline__ void
rotate_small (SmallMatrix *m, double2 vector[FEW_REPEATS], int p, int q,
    const Rotation &by, double t)
{
  double2 apq = element_of (*m, p, q);
  double app = m->d[p], aqq = m->d[q], size = apq.x * apq.x + apq.y * apq.y;
  double c = by.c * by.c;
  double rest = c * (1 - t * (aqq - app) - t * t * size);

  m->d[p] = c * (app - 2 * t * size + t * t * size * aqq);
  m->d[q] = c * (aqq + 2 * t * size + t * t * size * app);
  set_element (m, p, q, make_double2 (rest * apq.x, rest * apq.y));
#pragma unroll
  for (int i = 0; i < FEW_REPEATS; i++)
    if (i != p && i != q) {
      double2 x = element_of (*m, i, p), y = element_of (*m, i, q);

      turn_pair (&x, &y, by);
      set_element (m, i, p, x);
      set_element (m, i, q, y);
    }
  turn_pair (&vector[p], &vector[q], by);
}

/* Elements [p][q] and [r][s], all different: the first rotation leaves the
 * second element as it is. */
static __device__ __forceinline__ bool
rotate_two (
    SmallMatrix *m, double2 vector[FEW_REPEATS], int p, int q, int r, int s)
{
  Rotation one, other;
  double t, u;
  bool turns =
      find_rotation (m->d[p], m->d[q], element_of (*m, p, q), &one, &t);

  turns |= find_rotation (m->d[r], m->d[s], element_of (*m, r, s), &other, &u);
  rotate_small (m, vector, p, q, one, t);
  rotate_small (m, vector, r, s, other, u);
  return turns;
}

static __global__ void
solve_few (const __grid_constant__ Arguments a)
{
  constexpr int N = FEW_REPEATS;
  uint32_t n = a.n_repeats, n_pairs = n * (n + 1) / 2, row = threadIdx.x % N;
  uint32_t ascan = blockIdx.x * FEW_ASCANS + threadIdx.x / N, first, end;
  uint32_t taken = 0;
  SmallMatrix m = {};
  double2 vector[N];
  double trace, share;
  bool turns = true;

  if (ascan >= a.n_ascans)
    return;
  wait_for_last_kernel ();
  let_next_kernel_begin ();
  range_of (ascan, a.lateral, a.n_ascans, &first, &end);
  for (size_t k = (size_t) first * a.n_chunks; k < (size_t) end * a.n_chunks;
       k++)
#pragma unroll
    for (int r = 0; r < N; r++)
#pragma unroll
      for (int c = 0; c <= r; c++)
        if (r < (int) n) {
          double2 v = a.gram[k * n_pairs + (uint32_t) (r * (r + 1) / 2 + c)];

          if (c == r)
            m.d[r] += v.x;
          else { /* of the element below the diagonal */
            m.upper[r * (r - 1) / 2 + c].x += v.x;
            m.upper[r * (r - 1) / 2 + c].y -= v.y;
          }
        }
  trace = m.d[0] + m.d[1] + m.d[2] + m.d[3];
  share = trace > 0 ? 1 / trace : 0;
#pragma unroll
  for (int i = 0; i < N; i++) {
    m.d[i] *= share;
    vector[i] = make_double2 (i == (int) row, 0);
  }
#pragma unroll
  for (int i = 0; i < 6; i++) {
    m.upper[i].x *= share;
    m.upper[i].y *= share;
  }
  for (int sweep = 0; sweep < SWEEPS && turns; sweep++) {
    turns = rotate_two (&m, vector, 0, 3, 1, 2);
    turns |= rotate_two (&m, vector, 0, 2, 1, 3);
    turns |= rotate_two (&m, vector, 0, 1, 2, 3);
  }
  for (uint32_t k = 0; k < a.n_tissue; k++) {
    double2 chosen = make_double2 (0, 0);
    double largest = 0;
    uint32_t best = N;

#pragma unroll
    for (int i = 0; i < N; i++)
      if (i < (int) n && !(taken >> i & 1) && (best == N || m.d[i] > largest)) {
        best = i;
        largest = m.d[i];
        chosen = vector[i];
      }
    taken |= 1u << best;
    if (row < n)
      a.vectors[((size_t) ascan * a.n_tissue + k) * n + row] = chosen;
  }
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
    wait_for_last_kernel (); /* for the vectors */
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
