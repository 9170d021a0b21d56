/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sums of a round by tensor cores: samples of 8 bits with one gain, and
 * light vectors that are parabolas along a segment of a row.
 *
 * With L = L0 + t L1 + t^2 L2, t of -1 to 1 along the segment, n'.L is a
 * product of what a pixel has (n', t n', t^2 n') and what a light has (L0, L1,
 * L2); and the sums of L L' and G L over the lights that count are products of
 * ones and zeros, or samples and zeros, by parabolas of the same t. So a round
 * over 16 pixels and 16 lights is 4 products for the misfits and 6 for the
 * sums.
 *
 * Numbers of half precision have 11 bits, so what counts is there twice: as it
 * is, and what was lost by that. L is made no longer than 1; a misfit is in
 * units of 512 samples. n' times all this is the n of a pixel. */
#include "photostereo/cuda/photostereo-cuda-tables.cuh"

enum { ROWS = 32 }; /* pixels of a warp at a time */

#define SAMPLE_UNIT (1.0f / 512) /* in a misfit; 2^-24 times -2^15 */

/* What lanes tell each other of a pixel: what its next round needs, and what
 * came of it. */
union Row1 {
  struct {
    uint32_t features[FEATURES];
    float limit, t;
    uint32_t lo, hi; /* of samples, for ones_between () */
    uint32_t pad[4]; /* avoids bank conflicts between rows */
  } to;
  /* xx xy xz yy, yz zz lights ambient, x y z and what is to be added to z, xx
   * xy xz yy, yz zz x y */
  float4 sums[5];
};

/* ------------------------------------------------------------------------
 * A round. */

/* The least sample above @grey, or where it is.
 * @about: such a sample, but for the rounding */
static __device__ __forceinline__ uint32_t
first_above (const Arguments &a, float about, float grey, bool or_equal)
{
  float s = floorf (fminf (fmaxf (about, 0), 256));

#pragma unroll
  for (int i = 0; i < 2; i++)
    s += or_equal ? !(s * a.gain >= grey) : !(s * a.gain > grey);
  return (uint32_t) fminf (s, 256);
}

/* What the next round of a pixel needs. */
static __device__ __forceinline__ void
fill_row (const Arguments &a, const float4 &n, float t, bool first, Row1 &row)
{
  const ImkPhotostereoParams &p = a.params;
  float v[3] = {n.x * SAMPLE_UNIT, n.y * SAMPLE_UNIT, n.z * SAMPLE_UNIT};
  float length2 = n.x * n.x + n.y * n.y + n.z * n.z;
  /* Unit of the thresholds, as a sample and as a grey value. */
  float unit = p.relative ? length2 * fast_rsqrt (length2) * a.shrink
                          : __fdividef (1, a.gain);
  float grey_unit = p.relative ? unit * a.gain : 1;
  uint32_t lo = 0, hi = (uint32_t) fminf (ceilf (a.clip), 256);
  uint32_t h[2 * FEATURES] = {};

#pragma unroll
  for (int k = 0; k < 3; k++) {
    split (v[k], h[k], h[6 + k]);
    h[3 + k] = h[k];
    split (t * v[k], h[9 + k], h[15 + k]);
    h[12 + k] = h[9 + k];
    h[18 + k] = half_of (t * t * v[k]);
  }
  h[21] = half_of (1);
#pragma unroll
  for (int i = 0; i < FEATURES; i++)
    row.to.features[i] = h[2 * i] | h[2 * i + 1] << 16;
  row.to.t = t;
  if (!first || !p.relative) {
    lo = first_above (a, p.t_min * unit, p.t_min * grey_unit, false);
    hi = min (hi, first_above (a, p.t_max * unit, p.t_max * grey_unit, true));
  }
  row.to.lo = 0x10001 * lo; /* for two samples */
  row.to.hi = 0x10001 * hi;
  /* A residual equal to the limit is accepted. */
  row.to.limit = fminf (p.t_res * unit * SAMPLE_UNIT, NO_LIMIT) * 1.0000002f;
}

/* 16 lights of 16 pixels.
 * @words: samples of a lane's two pixels
 * Returns: in @ones and @samples, what is accepted, as rows of the next product
 */
template <bool FIRST_ROUND>
static __device__ __forceinline__ void
test_group (const uint32_t features[2][4], const uint32_t table[GROUP_WORDS],
    uint32_t identity, const uint32_t words[2], const float limit[2],
    const uint32_t lo[2], const uint32_t hi[2], uint32_t ones[4],
    uint32_t samples[4])
{
#pragma unroll
  for (int t = 0; t < 2; t++) {
    float misfit[4] = {};

#pragma unroll
    for (int i = 0; i < 2; i++)
      samples[2 * t + i] = __byte_perm (words[i], 0, t ? 0x4342 : 0x4140);
    if (!FIRST_ROUND) {
      multiply_half (misfit, samples[2 * t], samples[2 * t + 1], identity);
      multiply_half (
          misfit, features[1][0], features[1][1], table[LATER_FEATURES + t]);
      multiply (misfit, features[0], table[2 * t], table[2 * t + 1]);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t k = 2 * t + i;

      ones[k] = ones_between (samples[k], lo[i], hi[i]);
      if (!FIRST_ROUND)
        ones[k] &= signs_of (fabsf (misfit[2 * i]) - limit[i],
            fabsf (misfit[2 * i + 1]) - limit[i]);
      samples[k] = accepted (samples[k], ones[k]);
    }
  }
}

/* What came of a round: sums at the pixels, of the products' columns. */
static __device__ __forceinline__ void
store_round (const float sums[PRODUCTS][4], const uint32_t ambient[2],
    uint32_t g, uint32_t q, Row1 *rows)
{
#pragma unroll
  for (int i = 0; i < 2; i++) {
    Row1 &row = rows[g + 8 * i];
    float t = row.to.t, *to = (float *) row.sums;
    float v[2], b;

#pragma unroll
    for (int e = 0; e < 2; e++) {
      int k = 2 * i + e;

      v[e] = __fmaf_rn (
          t, __fmaf_rn (t, sums[3][k], sums[2][k]), sums[0][k] + sums[1][k]);
    }
    b = __fmaf_rn (t, __fmaf_rn (t, sums[5][2 * i + 1], sums[5][2 * i]),
        sums[4][2 * i] + sums[4][2 * i + 1]);
    __syncwarp (); /* t has been read */
    to[2 * q] = q == 3 ? sums[0][2 * i] : v[0];
    to[2 * q + 1] = q == 3 ? (float) ambient[i] : v[1];
    to[8 + q] = q == 3 ? t * sums[5][2 * i] : b;
    if (q == 3) /* this lane holds the remaining linear terms */
#pragma unroll
      for (int c = 0; c < 8; c++)
        to[12 + c] = t * (c < 6 ? sums[1 + c / 2][2 * i + c % 2]
                                : sums[4][2 * i + c % 2]);
  }
}

/* What a lane has of 16 pixels: of those in the rows g and g + 8. */
struct Tile {
  uint32_t features[2][4];
  float limit[2];
  uint32_t lo[2], hi[2];
  uint32_t offset[2]; /* of their samples */
  uint2 samples[2];   /* prefetched, of the next packet */
  float sums[PRODUCTS][4];
  uint32_t ambient[2];
};

/* 16 lights of all tiles.
 * @words: their samples of the two pixels of a tile */
template <bool FIRST, int TILES>
static __device__ __forceinline__ void
do_group (const uint32_t *tables, uint32_t group, uint32_t identity,
    const uint32_t words[TILES][2], Tile tiles[TILES])
{
  const uint32_t *from = tables + group * GROUP_WORDS * 32;
  uint32_t lane = threadIdx.x % 32, table[GROUP_WORDS];

#pragma unroll
  for (int i = 0; i < 4; i++)
    *(uint4 *) &table[4 * i] = ((const uint4 *) from)[32 * i + lane];
  *(uint2 *) &table[16] = ((const uint2 *) from)[256 + lane];
#pragma unroll
  for (int m = 0; m < TILES; m++) {
    Tile &tile = tiles[m];
    uint32_t ones[4], samples[4];

    test_group<FIRST> (tile.features, table, identity, words[m], tile.limit,
        tile.lo, tile.hi, ones, samples);
#pragma unroll
    for (int j = 0; j < PRODUCTS; j++)
      multiply (tile.sums[j], j < 4 ? ones : samples,
          table[SUM_COLUMNS + 2 * j], table[SUM_COLUMNS + 1 + 2 * j]);
  }
}

/* The lights of a packet, which has one group or two.
 * @ones: 1 for each of a lane's lights that is in the set
 * @next: where the samples of the packet after it begin */
template <bool FIRST, int TILES, int GROUPS>
static __device__ __forceinline__ void
do_packet (const uint32_t *tables, uint32_t packet, uint2 ones,
    const uint8_t *next, Tile tiles[TILES])
{
  uint32_t g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  uint32_t identity =
      (g == 2 * q ? 0xf800 : 0) | (g == 2 * q + 1 ? 0xf8000000 : 0);
  uint32_t words[2][TILES][2];

#pragma unroll
  for (int m = 0; m < TILES; m++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      Tile &tile = tiles[m];

      words[0][m][i] = tile.samples[i].x;
      words[1][m][i] = tile.samples[i].y;
      tile.samples[i] = *(const uint2 *) (next + tile.offset[i]);
      if (FIRST) {
        tile.ambient[i] = __dp4a (words[0][m][i], ones.x, tile.ambient[i]);
        tile.ambient[i] = __dp4a (words[1][m][i], ones.y, tile.ambient[i]);
      }
    }
#pragma unroll
  for (uint32_t i = 0; i < GROUPS; i++)
    do_group<FIRST, TILES> (tables, 2 * packet + i, identity, words[i], tiles);
}

/* The sums of 16 * TILES pixels, of which there are @n.
 * @samples: of the first light of the first pixel of the segment
 * @present: 1 for each light of the set */
template <bool FIRST, int TILES>
static __device__ __forceinline__ void
sum_tiles (const Arguments &a, const uint32_t *tables, const uint8_t *present,
    const uint8_t *samples, const uint8_t *pixels, uint32_t n, Row1 *rows)
{
  uint32_t lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
  uint32_t n_groups = groups_of (a), packet = 0;
  const uint2 *ones = (const uint2 *) present + q;
  size_t step = store_pixels (a) * PACKET;
  Tile tiles[TILES] = {};

#pragma unroll
  for (int m = 0; m < TILES; m++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t r = min (16 * m + 8 * i + g, n - 1);
      const Row1 &row = rows[r];
      Tile &tile = tiles[m];

      if (!FIRST) {
        tile.features[0][i] = row.to.features[q];
        tile.features[0][2 + i] = row.to.features[4 + q];
        tile.features[1][i] = row.to.features[8 + q];
        tile.limit[i] = row.to.limit;
      }
      tile.lo[i] = row.to.lo;
      tile.hi[i] = row.to.hi;
      tile.offset[i] = pixels[r] * PACKET + 8 * q;
      tile.samples[i] = *(const uint2 *) (samples + tile.offset[i]);
    }
#pragma unroll 1
  for (; packet < n_groups / 2; packet++) {
    if (packet + 1 < a.n_packets) /* do not read beyond the last packet */
      samples += step;
    do_packet<FIRST, TILES, 2> (
        tables, packet, ones[4 * packet], samples, tiles);
  }
  if (n_groups % 2)
    do_packet<FIRST, TILES, 1> (
        tables, packet, ones[4 * packet], samples, tiles);
#pragma unroll
  for (int m = 0; m < TILES; m++) {
#pragma unroll
    for (int i = 0; FIRST && i < 2; i++) {
      uint32_t &sum = tiles[m].ambient[i];

      sum += __shfl_xor_sync (~0u, sum, 1);
      sum += __shfl_xor_sync (~0u, sum, 2);
    }
    store_round (tiles[m].sums, tiles[m].ambient, g, q, rows + 16 * m);
  }
}

/* ------------------------------------------------------------------------
 * The variant. */

static __device__ __forceinline__ float
t_of (uint32_t pixel)
{
  return ((float) pixel - (float) (SEGMENT - 1) / 2) / (SEGMENT / 2);
}

/* Of what sum_tiles () stored. */
static __device__ __forceinline__ Round
round_of (const Row1 &row, float gain)
{
  const float unit = 16777216.0f; /* as a sample is 2^-24 of its value */
  float4 s0 = row.sums[0], s1 = row.sums[1], s2 = row.sums[2];
  float4 r0 = row.sums[3], r1 = row.sums[4];

  return Round{{s0.x + r0.x, s0.y + r0.y, s0.z + r0.z, s0.w + r0.w, s1.x + r1.x,
                   s1.y + r1.y, unit * (s2.x + r1.z), unit * (s2.y + r1.w),
                   unit * (s2.z + s2.w)},
      s1.z, s1.w * gain};
}

/* Samples of the segment come while its tables are made. */
static __device__ __forceinline__ void
fetch_samples (const Arguments &a, const uint8_t *samples, uint32_t n_pixels)
{
  enum { LINE = 128, LINES = SEGMENT * PACKET / LINE };

  for (uint32_t i = threadIdx.x; i < a.n_packets * LINES; i += THREADS)
    if (i % LINES * LINE < n_pixels * PACKET)
      asm volatile("prefetch.global.L2 [%0];" ::"l"(
          samples + i / LINES * store_pixels (a) * PACKET + i % LINES * LINE));
}

static __host__ __device__ __forceinline__ size_t
tables_size (const Arguments &a)
{
  return groups_of (a) * GROUP_WORDS * 32 * sizeof (uint32_t);
}

template <int FALLOFF> struct Matrix {
  enum {
    TILE = 16,  /* pixels that a warp has at least */
    PIXELS = 1, /* of a lane at most */
  };

  uint32_t *tables;
  uint8_t *present;
  const uint8_t *samples;
  Row1 *rows; /* of the warp */

  /* Of n', times the n of a pixel. */
  static __device__ __forceinline__ float
  unit (const Arguments &a)
  {
    return a.gain * a.shrink;
  }

  static size_t
  size (const Arguments &a)
  {
    return tables_size (a) + a.n_packets * PACKET +
           sizeof (Row1) * ROWS * WARPS;
  }

  __device__ __forceinline__
  Matrix (const Arguments &a, uint4 *shared, uint32_t n_pixels)
      : tables ((uint32_t *) shared),
        present ((uint8_t *) shared + tables_size (a)),
        samples (packet_at (a, 0, 0,
            (size_t) (a.tile_row - a.first_row) * a.plan.width +
                first_of_segment (a))),
        rows (
            (Row1 *) (present + a.n_packets * PACKET) + threadIdx.x / 32 * ROWS)
  {
    fetch_samples (a, samples, n_pixels);
    for (uint32_t i = threadIdx.x; i < a.n_packets * PACKET; i += THREADS) {
      store_light<FALLOFF> (a, i, tables);
      present[i] = a.lit[i].length2 >= 0;
    }
  }

  template <bool FIRST>
  __device__ __forceinline__ void
  sum (const Arguments &a, const Segment &segment, const uint8_t *list,
      uint32_t n, const uint32_t pixels[PIXELS], Round rounds[PIXELS]) const
  {
    uint32_t lane = threadIdx.x % 32;

    if (lane < n)
      fill_row (a, FIRST ? float4{} : segment.states[pixels[0]],
          t_of (pixels[0]), FIRST, rows[lane]);
    __syncwarp ();
    if (FIRST || n > TILE)
      sum_tiles<FIRST, 2> (a, tables, present, samples, list, n, rows);
    else
      sum_tiles<FIRST, 1> (a, tables, present, samples, list, n, rows);
    __syncwarp ();
    rounds[0] = round_of (rows[lane], a.gain);
    __syncwarp ();
  }
};

/* ------------------------------------------------------------------------
 * Launches. */

static Kernel
choose_kernel (ImkPhotostereoModel model)
{
  return instance (
      [] (auto falloff) { return solve_segments<Matrix<falloff>>; },
      falloff_of (model));
}

bool
imk_photostereo_cuda_has_matrix (const Arguments *a)
{
  cudaFuncAttributes attributes;

  /* The architecture of the loaded code: 75 has other matrix products. */
  return a->plan.type == IMK_TYPE_U8 && a->one_gain && a->shrink > 0 &&
         (a->smooth || a->plan.model == IMK_PHOTOSTEREO_MODEL_DIRECTIONAL ||
             a->plan.model == IMK_PHOTOSTEREO_MODEL_RAW) &&
         sizeof (Segment) + Matrix<0>::size (*a) <= MAX_SHARED &&
         cudaFuncGetAttributes (&attributes,
             (const void *) choose_kernel (a->plan.model)) == cudaSuccess &&
         attributes.ptxVersion >= 80;
}

bool
imk_photostereo_cuda_is_matrix (const Arguments *a)
{
  return a->has_matrix && imk_photostereo_cuda_is_fast (&a->plan, &a->params) &&
         rejects (*a) && a->params.readmit;
}

ImkStatus
imk_photostereo_cuda_solve_matrix (
    const Arguments *a, cudaStream_t stream, ImkError *error)
{
  return launch_segments (
      a, choose_kernel (a->plan.model), Matrix<0>::size (*a), stream, error);
}
