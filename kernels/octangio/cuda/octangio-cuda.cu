/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The steps of the CPU as kernels; each reads a sample of the B-scans once, but
 * for EIGEN, which reads it once more.
 *
 *   points   a thread has a pixel, and all its repeats in registers: methods of
 *            amplitudes, and EIGEN with the vectors of gram and solve
 *   pairs    a block has an A-scan: S and E of its pixels and the window's
 *            depths
 *   bands    the same: the decorrelation of all bands
 *   finish   the sums over the window's A-scans of what pairs left
 *
 * A-scans are rows of complex B-scans and columns of the image: tiles in shared
 * memory turn them, so that all of a warp's accesses are neighbours. */
#include <new>

#include "core/cuda/cuda-check.h"
#include "core/cuda/cuda-cutter.h"
#include "octangio/octangio-backend.h"

enum {
  TILE = 32,
  TILE_ROWS = 8, /* threads of a tile are TILE x TILE_ROWS */
  PAIR_THREADS = 128,
  PAIR_WORDS = 8, /* of pairs, for a depth: three complex numbers, E, mean */
  BAND_THREADS = 256,
  BAND_WORDS = 6, /* of bands, beside a word a band */
  GRAM_THREADS = 256,
  GRAM_DEPTHS = 64,
  SOLVE_ASCANS = 4, /* of a block, a warp each */
  SWEEPS = 12,      /* as on the CPU */
  STRIPS = 16,      /* threads that look for the brightest depth */
  MOST_BLOCKS = 256 /* that have their work in global memory */
};

/* What all kernels are given. */
struct Arguments {
  uint32_t n_ascans, n_depths, n_repeats;
  ImkOctangioMethod method;
  bool between_ascans, bulk_motion;
  uint32_t lateral, axial, n_tissue, n_bands, radius;
  float floor, scale;
  const uint8_t *bscans[IMK_OCTANGIO_MAX_REPEATS];
  size_t strides[IMK_OCTANGIO_MAX_REPEATS];
  float *flow;
  size_t flow_stride;      /* numbers */
  float *mean_image;       /* [D][A] for the surface, or NULL */
  float *mean;             /* [A][D], or NULL where nobody needs it */
  float *re, *im, *energy; /* [A][D] */
  float *work;             /* NULL: in shared memory */
  double2 *gram;           /* [A][N (N + 1) / 2] */
  double2 *vectors;        /* [A][K][N] */
  const float *taps;       /* [radius + 1] */
  const float2 *turns;     /* [n_bands][D] */
  uint32_t *brightest;     /* [A] */
};

struct Cuda {
  Arguments arguments; /* but for those of one call */
  bool is_complex;
  uint32_t n_blocks, shared_size; /* of pairs or bands */
  uint8_t *block;
};

/* ------------------------------------------------------------------------
 * Pixels. */

/* Z, or the amplitude of an intensity. */
template <bool IS_COMPLEX>
static __device__ __forceinline__ float2
value_at (const Arguments &a, uint32_t r, uint32_t ascan, uint32_t z)
{
  if (IS_COMPLEX) {
    float2 v = ((const float2 *) (a.bscans[r] + ascan * a.strides[r]))[z];

    return fabsf (v.x) <= IMK_OCTANGIO_LARGEST &&
                   fabsf (v.y) <= IMK_OCTANGIO_LARGEST
               ? v
               : make_float2 (0, 0);
  }
  float v = ((const float *) (a.bscans[r] + z * a.strides[r]))[ascan];

  return make_float2 (
      v > 0 && v <= IMK_OCTANGIO_LARGEST * IMK_OCTANGIO_LARGEST ? sqrtf (v) : 0,
      0);
}

static __device__ __forceinline__ float
power_of (float2 v)
{
  return v.x * v.x + v.y * v.y;
}

/* All loads are under way before the first is used. */
template <uint32_t MOST, bool IS_COMPLEX>
static __device__ __forceinline__ void
load_repeats (const Arguments &a, uint32_t ascan, uint32_t z, float2 v[MOST])
{
#pragma unroll
  for (uint32_t r = 0; r < MOST; r++)
    v[r] = r < a.n_repeats ? value_at<IS_COMPLEX> (a, r, ascan, z)
                           : make_float2 (0, 0);
}

template <uint32_t MOST, bool IS_COMPLEX>
static __device__ __forceinline__ float
amplitudes_at (const Arguments &a, uint32_t ascan, uint32_t z, float *mean)
{
  float2 v[MOST];
  float amplitude[MOST], middle = 0, power = 0, result = 0;
  float n = (float) a.n_repeats;

  load_repeats<MOST, IS_COMPLEX> (a, ascan, z, v);
#pragma unroll
  for (uint32_t r = 0; r < MOST; r++) {
    float p = power_of (v[r]);

    amplitude[r] = sqrtf (p); /* 0 of repeats that are not there */
    middle += amplitude[r];
    power += p;
  }
  middle /= n;
  *mean = power / n;
  if (a.method == IMK_OCTANGIO_MEAN)
    return *mean;
#pragma unroll
  for (uint32_t r = 0; r < MOST; r++) {
    float x = amplitude[r], y = amplitude[r + 1 < MOST ? r + 1 : r];
    float sum = x * x + y * y;

    if (a.method == IMK_OCTANGIO_SPECKLE_VARIANCE)
      result += r < a.n_repeats ? (x - middle) * (x - middle) / n : 0;
    else if (r + 1 < a.n_repeats && sum > 0)
      result += (x - y) * (x - y) / sum / (n - 1);
  }
  return result;
}

/* The power without what the vectors have of it. */
template <uint32_t MOST>
static __device__ __forceinline__ float
rest_at (const Arguments &a, uint32_t ascan, uint32_t z, float *mean)
{
  const double2 *vector = a.vectors + (size_t) ascan * a.n_tissue * a.n_repeats;
  float2 v[MOST];
  double power = 0, tissue = 0;

  load_repeats<MOST, true> (a, ascan, z, v);
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
  *mean = (float) (power / a.n_repeats);
  return (float) (fmax (power - tissue, 0.0) / a.n_repeats);
}

/* ------------------------------------------------------------------------
 * Tiles. */

struct Tile {
  float flow[TILE][TILE + 1], mean[TILE][TILE + 1]; /* [A-scan][depth] */
};

static __device__ __forceinline__ void
put (const Arguments &a, uint32_t ascan, uint32_t z, float flow, float mean)
{
  a.flow[z * a.flow_stride + ascan] = flow;
  if (a.mean_image)
    a.mean_image[(size_t) z * a.n_ascans + ascan] = mean;
}

static __device__ __forceinline__ void
put_tile (const Arguments &a, const Tile &tile)
{
  uint32_t ascan = blockIdx.y * TILE + threadIdx.x;

  __syncthreads ();
  for (uint32_t row = threadIdx.y; row < TILE; row += TILE_ROWS) {
    uint32_t z = blockIdx.x * TILE + row;

    if (ascan < a.n_ascans && z < a.n_depths)
      put (a, ascan, z, tile.flow[threadIdx.x][row],
          tile.mean[threadIdx.x][row]);
  }
}

template <uint32_t MOST, bool IS_EIGEN>
static __global__ void
points (const __grid_constant__ Arguments a)
{
  __shared__ Tile tile;
  uint32_t z = blockIdx.x * TILE + threadIdx.x;

  for (uint32_t row = threadIdx.y; row < TILE; row += TILE_ROWS) {
    uint32_t ascan = blockIdx.y * TILE + row;
    float flow = 0, mean = 0;

    if (ascan < a.n_ascans && z < a.n_depths)
      flow = IS_EIGEN ? rest_at<MOST> (a, ascan, z, &mean)
                      : amplitudes_at<MOST, true> (a, ascan, z, &mean);
    tile.flow[row][threadIdx.x] = mean < a.floor ? 0 : flow;
    tile.mean[row][threadIdx.x] = mean;
  }
  put_tile (a, tile);
}

/* Intensities are an image already. */
template <uint32_t MOST>
static __global__ void
intensities (const __grid_constant__ Arguments a)
{
  uint32_t ascan = blockIdx.x * TILE + threadIdx.x;
  uint32_t z = blockIdx.y * TILE_ROWS + threadIdx.y;
  float flow, mean;

  if (ascan >= a.n_ascans || z >= a.n_depths)
    return;
  flow = amplitudes_at<MOST, false> (a, ascan, z, &mean);
  put (a, ascan, z, mean < a.floor ? 0 : flow, mean);
}

/* ------------------------------------------------------------------------
 * Pairs. */

/* The sum of the block, in all its threads, which must all call it. Two sets of
 * partial sums in turns make one barrier enough. */
struct Adder {
  float2 (*partial)[PAIR_THREADS / 32];
  uint32_t turn;

  __device__ __forceinline__ float2
  add (float2 v)
  {
    float2 sum = make_float2 (0, 0);
    float mine, other;

    /* the lower half of the warp adds the real parts, the upper one the
     * imaginary ones */
    mine = threadIdx.x & 16 ? v.y : v.x;
    other = threadIdx.x & 16 ? v.x : v.y;
    mine += __shfl_xor_sync (~0u, other, 16);
    for (int step = 8; step > 0; step /= 2)
      mine += __shfl_xor_sync (~0u, mine, step);
    if (threadIdx.x % 32 == 0)
      partial[turn][threadIdx.x / 32].x = mine;
    if (threadIdx.x % 32 == 16)
      partial[turn][threadIdx.x / 32].y = mine;
    __syncthreads ();
    for (uint32_t i = 0; i < PAIR_THREADS / 32; i++) {
      sum.x += partial[turn][i].x;
      sum.y += partial[turn][i].y;
    }
    turn ^= 1;
    return sum;
  }
};

/* cos and sin of the phase that most pixels have. */
static __device__ __forceinline__ float2
find_bulk (const float2 *products, uint32_t n, Adder &adder)
{
  float2 turn = make_float2 (1, 0);

  for (int round = 0; round < 4; round++) {
    /* all, then squares of cos (pi / 4), cos (pi / 8) and cos (pi / 16) */
    float near = round == 0   ? -1.1f
                 : round == 1 ? 0.5f
                 : round == 2 ? 0.85355339f
                              : 0.96193977f;
    float2 sum = make_float2 (0, 0);
    float length;

    for (uint32_t z = threadIdx.x; z < n; z += PAIR_THREADS) {
      float2 v = products[z];
      float along = v.x * turn.x + v.y * turn.y;

      if (along * fabsf (along) >= near * power_of (v)) {
        sum.x += v.x;
        sum.y += v.y;
      }
    }
    sum = adder.add (sum);
    length = hypotf (sum.x, sum.y);
    if (!(length > 0))
      break;
    turn = make_float2 (sum.x / length, sum.y / length);
  }
  return turn;
}

/* The depths of the window, cut off at the ends. */
static __device__ __forceinline__ void
range_of (
    uint32_t at, uint32_t window, uint32_t n, uint32_t *first, uint32_t *end)
{
  uint32_t before = (window - 1) / 2;

  *first = at > before ? at - before : 0;
  *end = min (at + window - before, n);
}

static __device__ __forceinline__ float *
work_of (const Arguments &a, float *shared, uint32_t n_words)
{
  return a.work ? a.work + (size_t) blockIdx.x * n_words * a.n_depths : shared;
}

/* Depths threadIdx.x, ... are the thread's own until the window. */
static __global__ void
pairs (const __grid_constant__ Arguments a)
{
  extern __shared__ float shared[];
  __shared__ float2 partial[2][PAIR_THREADS / 32];
  uint32_t n = a.n_depths, last_ascan = a.n_ascans - 1;
  uint32_t n_pairs = a.between_ascans ? a.n_repeats : a.n_repeats - 1;
  float2 *last = (float2 *) work_of (a, shared, PAIR_WORDS);
  float2 *products = last + n, *s = products + n;
  float *energy = (float *) (s + n), *mean = energy + n;
  Adder adder = {partial, 0};

  for (uint32_t ascan = blockIdx.x; ascan < a.n_ascans; ascan += gridDim.x) {
    /* of pairs of A-scans: the last one has the pair before it */
    uint32_t first = ascan < last_ascan ? ascan : ascan - 1;

    for (uint32_t z = threadIdx.x; z < n; z += PAIR_THREADS) {
      s[z] = make_float2 (0, 0);
      energy[z] = mean[z] = 0;
      if (!a.between_ascans)
        last[z] = value_at<true> (a, 0, ascan, z);
    }
    for (uint32_t k = 0; k < n_pairs; k++) {
      float2 turn = make_float2 (1, 0);

#pragma unroll 4
      for (uint32_t z = threadIdx.x; z < n; z += PAIR_THREADS) {
        float2 x = a.between_ascans ? value_at<true> (a, k, first, z) : last[z];
        float2 y = a.between_ascans ? value_at<true> (a, k, first + 1, z)
                                    : value_at<true> (a, k + 1, ascan, z);
        float px = power_of (x), py = power_of (y);

        products[z] =
            make_float2 (y.x * x.x + y.y * x.y, y.y * x.x - y.x * x.y);
        energy[z] += (px + py) / 2;
        mean[z] += first == ascan || !a.between_ascans ? px : py;
        if (!a.between_ascans && k + 1 == n_pairs)
          mean[z] += py;
        last[z] = y;
      }
      if (a.bulk_motion)
        turn = find_bulk (products, n, adder);
      for (uint32_t z = threadIdx.x; z < n; z += PAIR_THREADS) {
        float2 v = products[z];

        s[z].x += v.x * turn.x + v.y * turn.y;
        s[z].y += v.y * turn.x - v.x * turn.y;
      }
    }
    __syncthreads ();
    for (uint32_t z = threadIdx.x; z < n; z += PAIR_THREADS) {
      size_t at = (size_t) ascan * n + z;
      float2 sum = make_float2 (0, 0);
      float e = 0;
      uint32_t from, end;

      range_of (z, a.axial, n, &from, &end);
      for (uint32_t i = from; i < end; i++) {
        sum.x += s[i].x;
        sum.y += s[i].y;
        e += energy[i];
      }
      a.re[at] = sum.x;
      a.im[at] = sum.y;
      if (a.energy)
        a.energy[at] = e;
      if (a.mean)
        a.mean[at] = mean[z] / a.n_repeats;
    }
    __syncthreads (); /* before the next A-scan takes the place */
  }
}

/* ------------------------------------------------------------------------
 * Bands. */

static __global__ void
bands (const __grid_constant__ Arguments a)
{
  extern __shared__ float shared[];
  uint32_t n = a.n_depths;
  float2 *raw = (float2 *) work_of (a, shared, BAND_WORDS + a.n_bands);
  float2 *moved = raw + n;
  float *result = (float *) (moved + n), *mean = result + n;
  float *amplitudes = mean + n; /* [n_bands][D] of the repeat before */
  float share = 1.0f / (float) (a.n_bands * (a.n_repeats - 1));

  for (uint32_t ascan = blockIdx.x; ascan < a.n_ascans; ascan += gridDim.x) {
    for (uint32_t z = threadIdx.x; z < n; z += BAND_THREADS)
      result[z] = mean[z] = 0;
    for (uint32_t r = 0; r < a.n_repeats; r++) {
      for (uint32_t z = threadIdx.x; z < n; z += BAND_THREADS) {
        raw[z] = value_at<true> (a, r, ascan, z);
        mean[z] += power_of (raw[z]);
      }
      for (uint32_t band = 0; band < a.n_bands; band++) {
        float *last = amplitudes + (size_t) band * n;

        for (uint32_t z = threadIdx.x; z < n; z += BAND_THREADS) {
          float2 v = raw[z], turn = a.turns[(size_t) band * n + z];

          moved[z] = make_float2 (
              v.x * turn.x - v.y * turn.y, v.x * turn.y + v.y * turn.x);
        }
        __syncthreads ();
        for (uint32_t z = threadIdx.x; z < n; z += BAND_THREADS) {
          float re = a.taps[0] * moved[z].x, im = a.taps[0] * moved[z].y;
          float power, change, sum;

          for (uint32_t k = 1; k <= a.radius && k < n; k++) {
            float tap = a.taps[k];

            if (z + k < n) {
              re = __fmaf_rn (tap, moved[z + k].x, re);
              im = __fmaf_rn (tap, moved[z + k].y, im);
            }
            if (z >= k) {
              re = __fmaf_rn (tap, moved[z - k].x, re);
              im = __fmaf_rn (tap, moved[z - k].y, im);
            }
          }
          power = re * re + im * im;
          if (r > 0) {
            change = sqrtf (power) - last[z];
            sum = power + last[z] * last[z];
            result[z] += sum > 0 ? share * change * change / sum : 0;
          }
          last[z] = sqrtf (power);
        }
        __syncthreads (); /* before the next band takes the place */
      }
    }
    for (uint32_t z = threadIdx.x; z < n; z += BAND_THREADS) {
      a.re[(size_t) ascan * n + z] = result[z];
      if (a.mean)
        a.mean[(size_t) ascan * n + z] = mean[z] / a.n_repeats;
    }
  }
}

/* ------------------------------------------------------------------------
 * The window's A-scans, and the image. */

static __device__ __forceinline__ float
finish_at (const Arguments &a, uint32_t ascan, uint32_t z)
{
  uint32_t n = a.n_depths, first, end;
  float re = 0, im = 0, energy = 0;

  if (!a.im) /* of bands */
    return a.re[(size_t) ascan * n + z];
  range_of (ascan, a.lateral, a.n_ascans, &first, &end);
  for (uint32_t i = first; i < end; i++) {
    size_t at = (size_t) i * n + z;

    re += a.re[at];
    im += a.im[at];
    if (a.energy)
      energy += a.energy[at];
  }
  if (!a.energy)
    return a.scale * atan2f (im, re);
  return energy > 0 ? 1 - hypotf (re, im) / energy : 0;
}

static __global__ void
finish (const __grid_constant__ Arguments a)
{
  __shared__ Tile tile;
  uint32_t z = blockIdx.x * TILE + threadIdx.x;

  for (uint32_t row = threadIdx.y; row < TILE; row += TILE_ROWS) {
    uint32_t ascan = blockIdx.y * TILE + row;
    float mean = 0, flow = 0;

    if (ascan < a.n_ascans && z < a.n_depths) {
      if (a.mean)
        mean = a.mean[(size_t) ascan * a.n_depths + z];
      flow = a.mean && mean < a.floor ? 0 : finish_at (a, ascan, z);
    }
    tile.flow[row][threadIdx.x] = flow;
    tile.mean[row][threadIdx.x] = mean;
  }
  put_tile (a, tile);
}

/* ------------------------------------------------------------------------
 * Eigenvectors. */

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

/* sum of Z_r conj (Z_c) over the depths of an A-scan. A group of threads has
 * the pairs, and every few depths. */
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
          z < a.n_depths ? value_at<true> (a, i / GRAM_DEPTHS, ascan, z)
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
  uint32_t order[IMK_OCTANGIO_MAX_REPEATS];
};

/* As octangio-eigen.c; a lane has a row. */
static __device__ __forceinline__ void
rotate (Matrix &m, uint32_t n, uint32_t p, uint32_t q, uint32_t lane)
{
  double2 apq = m.a[p][q], s;
  double size = hypot (apq.x, apq.y), tau, t, c;
  double difference = m.a[q][q].x - m.a[p][p].x;

  if (size == 0) /* for all lanes */
    return;
  tau = difference / (2 * size);
  t = (tau >= 0 ? 1 : -1) / (fabs (tau) + sqrt (1 + tau * tau));
  c = 1 / sqrt (1 + t * t);
  s = make_double2 (t * c * (apq.x / size), t * c * (apq.y / size));
  __syncwarp (); /* all have read */
  if (lane < n) {
    turn_pair (&m.a[lane][p], &m.a[lane][q], c, s);
    turn_pair (&m.v[lane][p], &m.v[lane][q], c, s);
  }
  __syncwarp ();
  if (lane < n)
    turn_pair (&m.a[p][lane], &m.a[q][lane], c, make_double2 (s.x, -s.y));
  __syncwarp ();
  if (lane == 0)
    m.a[p][q] = m.a[q][p] = make_double2 (0, 0);
  __syncwarp ();
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
  Matrix &m = matrices[threadIdx.y];

  if (ascan >= a.n_ascans) /* a whole warp */
    return;
  range_of (ascan, a.lateral, a.n_ascans, &first, &end);
  for (uint32_t i = lane; i < n_pairs; i += 32) {
    double2 sum = make_double2 (0, 0);
    uint32_t r, c;

    pair_of (i, &r, &c);
    for (uint32_t k = first; k < end; k++) {
      double2 v = a.gram[(size_t) k * n_pairs + i];

      sum.x += v.x;
      sum.y += v.y;
    }
    m.a[c][r] = make_double2 (sum.x, -sum.y);
    m.a[r][c] = sum;
    m.v[r][c] = m.v[c][r] = make_double2 (r == c, 0);
  }
  __syncwarp ();
  for (int sweep = 0; sweep < SWEEPS; sweep++)
    for (uint32_t p = 0; p + 1 < n; p++)
      for (uint32_t q = p + 1; q < n; q++)
        rotate (m, n, p, q, lane);
  if (lane == 0)
    choose (m, n, a.n_tissue);
  __syncwarp ();
  for (uint32_t k = 0; k < a.n_tissue && lane < n; k++)
    a.vectors[((size_t) ascan * a.n_tissue + k) * n + lane] =
        m.v[lane][m.order[k]];
}

/* ------------------------------------------------------------------------
 * The surface. */

/* Of equal depths the first. */
static __global__ void
look_for_brightest (const __grid_constant__ Arguments a, uint32_t first)
{
  __shared__ float values[STRIPS][TILE];
  __shared__ uint32_t depths[STRIPS][TILE];
  uint32_t ascan = blockIdx.x * TILE + threadIdx.x, depth = first;
  float value = -1;

  for (uint32_t z = first + threadIdx.y; z < a.n_depths && ascan < a.n_ascans;
       z += STRIPS) {
    float v = a.mean_image[(size_t) z * a.n_ascans + ascan];

    if (v > value) {
      value = v;
      depth = z;
    }
  }
  values[threadIdx.y][threadIdx.x] = value;
  depths[threadIdx.y][threadIdx.x] = depth;
  __syncthreads ();
  if (threadIdx.y > 0 || ascan >= a.n_ascans)
    return;
  for (uint32_t i = 1; i < STRIPS; i++) {
    float v = values[i][threadIdx.x];
    uint32_t z = depths[i][threadIdx.x];

    if (v > value || (v == value && z < depth)) {
      value = v;
      depth = z;
    }
  }
  a.brightest[ascan] = depth;
}

/* ------------------------------------------------------------------------
 * Calls. */

typedef void (*Kernel) (const Arguments);

static cudaLaunchConfig_t
launch_of (dim3 grid, dim3 block, void *stream)
{
  cudaLaunchConfig_t launch = {};

  launch.gridDim = grid;
  launch.blockDim = block;
  launch.stream = (cudaStream_t) stream;
  return launch;
}

/* Registers for as many repeats as there are. */
static Kernel
points_kernel (const Cuda *s)
{
  uint32_t n = s->arguments.n_repeats;

  if (!s->is_complex)
    return n <= 4 ? intensities<4> : n <= 8 ? intensities<8> : intensities<16>;
  if (s->arguments.method == IMK_OCTANGIO_EIGEN)
    return n <= 4   ? points<4, true>
           : n <= 8 ? points<8, true>
                    : points<16, true>;
  return n <= 4   ? points<4, false>
         : n <= 8 ? points<8, false>
                  : points<16, false>;
}

static ImkStatus
run_points (const Cuda *s, const Arguments &a, void *stream, ImkError *error)
{
  cudaLaunchConfig_t launch = launch_of (
      s->is_complex
          ? dim3 (imk_div_up (a.n_depths, TILE), imk_div_up (a.n_ascans, TILE))
          : dim3 (imk_div_up (a.n_ascans, TILE),
                imk_div_up (a.n_depths, TILE_ROWS)),
      dim3 (TILE, TILE_ROWS), stream);
  Kernel kernel = points_kernel (s);

  return IMK_CUDA_LAUNCH (error, launch, kernel, a);
}

static ImkStatus
run_eigen (const Cuda *s, const Arguments &a, void *stream, ImkError *error)
{
  cudaLaunchConfig_t sums =
      launch_of (dim3 (a.n_ascans), dim3 (GRAM_THREADS), stream);
  cudaLaunchConfig_t vectors =
      launch_of (dim3 (imk_div_up (a.n_ascans, SOLVE_ASCANS)),
          dim3 (32, SOLVE_ASCANS), stream);
  ImkStatus status = IMK_CUDA_LAUNCH (error, sums, gram, a);

  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, vectors, solve, a);
  return status == IMK_OK ? run_points (s, a, stream, error) : status;
}

/* pairs or bands. */
static ImkStatus
run_ascans (const Cuda *s, const Arguments &a, void *stream, ImkError *error)
{
  bool has_bands = a.n_bands > 1;
  cudaLaunchConfig_t ascans = launch_of (dim3 (s->n_blocks),
      dim3 (has_bands ? BAND_THREADS : PAIR_THREADS), stream);
  cudaLaunchConfig_t tiles = launch_of (
      dim3 (imk_div_up (a.n_depths, TILE), imk_div_up (a.n_ascans, TILE)),
      dim3 (TILE, TILE_ROWS), stream);
  Kernel kernel = has_bands ? bands : pairs;
  ImkStatus status;

  ascans.dynamicSmemBytes = s->shared_size;
  status = IMK_CUDA_LAUNCH (error, ascans, kernel, a);
  return status == IMK_OK ? IMK_CUDA_LAUNCH (error, tiles, finish, a) : status;
}

static ImkStatus
cuda_process (void *state, const ImkImage *bscans, uint32_t n_bscans,
    const ImkImage *flow, void *stream, ImkError *error)
{
  const Cuda *s = (const Cuda *) state;
  Arguments a = s->arguments;

  for (uint32_t r = 0; r < n_bscans; r++) {
    if (s->is_complex &&
        ((uintptr_t) bscans[r].data | bscans[r].stride) % sizeof (float2))
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "B-scan %u of the set lies at %p with a stride of %zu bytes; CUDA "
          "needs both to be multiples of 8.",
          r, bscans[r].data, bscans[r].stride);
    a.bscans[r] = (const uint8_t *) bscans[r].data;
    a.strides[r] = bscans[r].stride;
  }
  a.flow = (float *) flow->data;
  a.flow_stride = flow->stride / sizeof (float);
  if (a.method == IMK_OCTANGIO_EIGEN)
    return run_eigen (s, a, stream, error);
  return s->n_blocks > 0 ? run_ascans (s, a, stream, error)
                         : run_points (s, a, stream, error);
}

static ImkStatus
cuda_find_brightest (void *state, uint32_t first, uint32_t *depths,
    void *stream, ImkError *error)
{
  const Cuda *s = (const Cuda *) state;
  const Arguments &a = s->arguments;
  cudaLaunchConfig_t launch = launch_of (
      dim3 (imk_div_up (a.n_ascans, TILE)), dim3 (TILE, STRIPS), stream);
  ImkStatus status =
      IMK_CUDA_LAUNCH (error, launch, look_for_brightest, a, first);

  if (status == IMK_OK)
    status = IMK_CUDA (error,
        cudaMemcpyAsync (depths, a.brightest, a.n_ascans * sizeof (*depths),
            cudaMemcpyDeviceToHost, (cudaStream_t) stream));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaStreamSynchronize ((cudaStream_t) stream));
  return status;
}

/* ------------------------------------------------------------------------
 * The object. */

static void
cuda_destroy (void *state)
{
  Cuda *s = (Cuda *) state;

  if (!s)
    return;
  cudaFree (s->block);
  delete s;
}

static void
cut_all (Cuda *s, const ImkOctangioPlan *plan, uint32_t n_words, bool in_shared,
    Cutter *cutter)
{
  const ImkOctangioConfig *c = &plan->config;
  Arguments *a = &s->arguments;
  size_t n = (size_t) c->n_ascans * c->n_depths;

  if (c->finds_surface) {
    cutter->cut (&a->mean_image, n);
    cutter->cut (&a->brightest, c->n_ascans);
  }
  if (n_words > 0) {
    cutter->cut (&a->re, n);
    if (c->n_bands == 1)
      cutter->cut (&a->im, n);
    if (c->method == IMK_OCTANGIO_COMPLEX_DECORRELATION)
      cutter->cut (&a->energy, n);
    if (c->floor > 0 || c->finds_surface)
      cutter->cut (&a->mean, n);
    if (!in_shared)
      cutter->cut (&a->work, (size_t) s->n_blocks * n_words * c->n_depths);
  }
  if (c->n_bands > 1) {
    cutter->cut ((float **) &a->taps, plan->radius + 1);
    cutter->cut ((float2 **) &a->turns, (size_t) c->n_bands * c->n_depths);
  }
  if (c->method == IMK_OCTANGIO_EIGEN) {
    cutter->cut (
        &a->gram, (size_t) c->n_ascans * c->n_repeats * (c->n_repeats + 1) / 2);
    cutter->cut (
        &a->vectors, (size_t) c->n_ascans * c->n_tissue * c->n_repeats);
  }
}

/* Where pairs or bands have their work: in shared memory, where it fits. */
static ImkStatus
place_work (Cuda *s, const ImkOctangioConfig *c, uint32_t n_words,
    bool *in_shared, ImkError *error)
{
  size_t size = (size_t) n_words * c->n_depths * sizeof (float);
  size_t own = sizeof (float2) * 2 * (PAIR_THREADS / 32); /* of Adder */
  int device = 0, most = 0;
  ImkStatus status = IMK_CUDA (error, cudaGetDevice (&device));

  if (status == IMK_OK)
    status =
        IMK_CUDA (error, cudaDeviceGetAttribute (&most,
                             cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  *in_shared = size + own <= (size_t) most;
  s->n_blocks =
      *in_shared || c->n_ascans < MOST_BLOCKS ? c->n_ascans : MOST_BLOCKS;
  s->shared_size = *in_shared ? (uint32_t) size : 0;
  if (status != IMK_OK || !*in_shared)
    return status;
  /* the attribute is that of every object: all there is */
  return IMK_CUDA (error,
      cudaFuncSetAttribute (c->n_bands > 1 ? bands : pairs,
          cudaFuncAttributeMaxDynamicSharedMemorySize, most - (int) own));
}

static ImkStatus
upload_bands (const Cuda *s, const ImkOctangioPlan *plan, ImkError *error)
{
  const ImkOctangioConfig *c = &plan->config;
  ImkStatus status = IMK_CUDA (
      error, cudaMemcpy ((void *) s->arguments.taps, plan->taps,
                 (plan->radius + 1) * sizeof (float), cudaMemcpyHostToDevice));

  return status != IMK_OK
             ? status
             : IMK_CUDA (error,
                   cudaMemcpy ((void *) s->arguments.turns, plan->turns,
                       (size_t) c->n_bands * c->n_depths * sizeof (float2),
                       cudaMemcpyHostToDevice));
}

static ImkStatus
allocate_all (Cuda *s, const ImkOctangioPlan *plan, ImkError *error)
{
  const ImkOctangioConfig *c = &plan->config;
  uint32_t n_words =
      c->n_bands > 1 ? BAND_WORDS + c->n_bands
      : imk_octangio_needs_phase (c->method) && c->method != IMK_OCTANGIO_EIGEN
          ? PAIR_WORDS
          : 0;
  bool in_shared = true;
  Cutter cutter = {};
  ImkStatus status =
      n_words > 0 ? place_work (s, c, n_words, &in_shared, error) : IMK_OK;

  if (status != IMK_OK)
    return status;
  cut_all (s, plan, n_words, in_shared, &cutter);
  if (cutter.used == 0)
    return IMK_OK;
  status = IMK_CUDA (error, cudaMalloc ((void **) &s->block, cutter.used));
  if (status != IMK_OK)
    return status;
  cutter = {s->block, 0};
  cut_all (s, plan, n_words, in_shared, &cutter);
  return c->n_bands > 1 ? upload_bands (s, plan, error) : IMK_OK;
}

static ImkStatus
cuda_create (const ImkOctangioPlan *plan, void **state, ImkError *error)
{
  const ImkOctangioConfig *c = &plan->config;
  Cuda *s = new (std::nothrow) Cuda{};
  ImkStatus status;

  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  s->is_complex = c->is_complex;
  s->arguments.n_ascans = c->n_ascans;
  s->arguments.n_depths = c->n_depths;
  s->arguments.n_repeats = c->n_repeats;
  s->arguments.method = c->method;
  s->arguments.between_ascans = c->pairs == IMK_OCTANGIO_PAIRS_ASCANS;
  s->arguments.bulk_motion = c->bulk_motion;
  s->arguments.lateral = c->lateral;
  s->arguments.axial = c->axial;
  s->arguments.n_tissue = c->n_tissue;
  s->arguments.n_bands = c->n_bands;
  s->arguments.radius = plan->radius;
  s->arguments.floor = (float) c->floor;
  s->arguments.scale = (float) c->scale;
  status = allocate_all (s, plan, error);
  if (status == IMK_OK)
    *state = s;
  else
    cuda_destroy (s);
  return status;
}

const ImkOctangioBackend imk_octangio_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .process = cuda_process,
    .find_brightest = cuda_find_brightest,
    .destroy = cuda_destroy,
};
