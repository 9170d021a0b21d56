/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The matrix solver: what lights are along a segment of a row, as columns of
 * products.
 *
 * A light has 24 features: of x, y, z each L0, what is lost of it by half
 * precision, L0 again; L1, what is lost of it, L1 again; L2; then a number that
 * leaves out lights which are not in the set. Those of a pixel are n, n again,
 * what is lost of it; t n, t n again, what is lost of it; t^2 n; 1. For the
 * sums there are 6 products of 8 columns:
 *
 *   0: first part of L L' (xx xy xz yy yz zz), 1
 *   1: what is lost of it             the last two of 1, 2, 3: what is lost
 *   2: linear part of L L'            of the linear part
 *   3: square part of L L'
 *   4: first part of x, what is lost of it, y, z; of linear parts x and y
 *   5: linear part of x, square part, y, z;       of linear parts z */
#pragma once

#include "photostereo/cuda/photostereo-cuda-segment.cuh"
#include "photostereo/cuda/photostereo-cuda-matrix.cuh"

enum {
  FEATURES = 12, /* words of a pixel, and of a light */
  PRODUCTS = 6,  /* of 8 columns, that make the sums */
  /* of a lane for 16 lights: for the first 16 features of 8 lights and of the
   * others, for the last 8 of these and those, for the sums */
  LATER_FEATURES = 4,
  SUM_COLUMNS = 6,
  GROUP_WORDS = SUM_COLUMNS + 2 * PRODUCTS,
};

#define SUM_UNIT 16384.0f    /* of L and L L' in the sums */
#define NO_LIMIT 30000.0f    /* of a misfit: 15 million samples */
#define CHEBYSHEV 0.8660254f /* t of the outer points */

struct Parabola {
  float c[3];
};

/* Through three points, those of Chebyshev. */
static __device__ __forceinline__ Parabola
parabola_of (const float p[3])
{
  constexpr float half = 1 / (2 * CHEBYSHEV);
  constexpr float square = 1 / (2 * CHEBYSHEV * CHEBYSHEV);

  return Parabola{
      {p[1], (p[2] - p[0]) * half, (p[2] - p[1] + (p[0] - p[1])) * square}};
}

/* k of L = k v. */
template <int FALLOFF>
static __device__ __forceinline__ float
factor_at (float x, float y, float z)
{
  float r = fast_rsqrt (__fmaf_rn (x, x, __fmaf_rn (y, y, z * z)));

  return FALLOFF == 0 ? 1 : FALLOFF == 1 ? r : r * r * r;
}

/* Word @i of a lane in a group: 16 bytes of all lanes, after each other. */
static __device__ __forceinline__ uint32_t *
table_word (uint32_t *group, uint32_t lane, uint32_t i)
{
  return i < 16 ? group + 128 * (i / 4) + 4 * lane + i % 4
                : group + 512 + 2 * lane + i % 2;
}

/* A number as two halves: what it is, and what was lost. */
static __device__ __forceinline__ void
split (float x, uint32_t &high, uint32_t &low)
{
  high = half_of (x);
  low = half_of (x - float_of (high));
}

/* What is multiplied with features, of the light that is @row of a group. */
static __device__ __forceinline__ void
store_features (
    uint32_t *group, uint32_t row, const Parabola light[3], bool absent)
{
  uint32_t h[2 * FEATURES] = {};

#pragma unroll
  for (int k = 0; k < 3; k++) {
    split (light[k].c[0], h[k], h[3 + k]);
    h[6 + k] = h[k];
    split (light[k].c[1], h[9 + k], h[12 + k]);
    h[15 + k] = h[9 + k];
    h[18 + k] = half_of (light[k].c[2]);
  }
  h[21] = absent ? half_of (2 * NO_LIMIT) : 0;
#pragma unroll
  for (uint32_t i = 0; i < FEATURES; i++)
    *table_word (group, row % 8 * 4 + i % 4,
        i < 8 ? row / 8 * 2 + i / 4 : LATER_FEATURES + row / 8) =
        h[2 * i] | h[2 * i + 1] << 16;
}

/* A half precision number of the light that is @row of a group, in @column of
 * @product. */
static __device__ __forceinline__ void
store_column (uint32_t *group, uint32_t product, uint32_t column, uint32_t row,
    uint32_t half)
{
  uint32_t lane = 4 * column + row % 8 / 2;
  uint32_t word = SUM_COLUMNS + 2 * product + row / 8;

  ((uint16_t *) table_word (group, lane, word))[row % 2] = (uint16_t) half;
}

/* Two a packet; the second of the last has none of its first 4 lights. */
static __host__ __device__ __forceinline__ uint32_t
groups_of (const Arguments &a)
{
  return 2 * a.n_packets - (a.plan.n_lights % PACKET - 1 < 4);
}

/* Of a packet, the lights 8 q + 2 t and the next are columns 2 q and 2 q + 1 of
 * its product t: a lane reads those of its samples in one go. */
template <int FALLOFF>
static __device__ __forceinline__ void
store_light (const Arguments &a, uint32_t i, uint32_t *tables)
{
  const Lit &lit = a.lit[i];
  uint32_t t = i % 8 / 2, column = i % 32 / 8 * 2 + i % 2;
  uint32_t at = i / 32 * 2 + t / 2, *group = tables + at * GROUP_WORDS * 32;
  uint32_t row = t % 2 * 8 + column;
  float middle = (float) (blockIdx.x * SEGMENT) + (float) (SEGMENT - 1) / 2 -
                 a.plan.centre_x;
  float y =
      lit.y - ((float) (a.tile_row + blockIdx.y) - a.plan.centre_y) * a.unit_y;
  bool absent = !(lit.length2 >= 0);
  float v[3][3]; /* x, y, z of L at the points */
  uint32_t h[PRODUCTS][8] = {};
  Parabola light[3];

  if (at >= groups_of (a))
    return;
#pragma unroll
  for (int j = 0; j < 3; j++) {
    float t = (float) (j - 1) * CHEBYSHEV;
    float x = lit.x - (middle + t * (SEGMENT / 2)) * a.unit_x;
    float k = absent ? 0 : a.shrink * factor_at<FALLOFF> (x, y, lit.z);

    v[0][j] = k * x;
    v[1][j] = k * y;
    v[2][j] = k * lit.z;
  }
#pragma unroll
  for (int k = 0; k < 3; k++)
    light[k] = parabola_of (v[k]);
  store_features (group, row, light, absent);
  h[0][6] = half_of (absent ? 0 : 1);
#pragma unroll
  for (int c = 0; c < 6; c++) { /* xx, xy, xz, yy, yz, zz */
    int first = c < 3 ? 0 : c < 5 ? 1 : 2;
    int second = c - first * (5 - first) / 2;
    float p[3];
    Parabola sum;

#pragma unroll
    for (int j = 0; j < 3; j++)
      p[j] = SUM_UNIT * (v[first][j] * v[second][j]);
    sum = parabola_of (p);
    split (sum.c[0], h[0][c], h[1][c]);
    split (sum.c[1], h[2][c], h[1 + c / 2][6 + c % 2]);
    h[3][c] = half_of (sum.c[2]);
  }
#pragma unroll
  for (int c = 0; c < 3; c++) {
    split (SUM_UNIT * light[c].c[0], h[4][2 * c], h[4][2 * c + 1]);
    split (SUM_UNIT * light[c].c[1], h[5][2 * c], h[4 + c / 2][6 + c % 2]);
    h[5][2 * c + 1] = half_of (SUM_UNIT * light[c].c[2]);
  }
#pragma unroll
  for (int i = 0; i < PRODUCTS; i++)
#pragma unroll
    for (int c = 0; c < 8; c++)
      store_column (group, i, c, row, h[i][c]);
}
