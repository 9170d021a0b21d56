/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the .cu files of the backend.
 *
 * Samples lie in packets of 32 bytes: those of one pixel in one plane under 32
 * lights that follow each other (16 of 16 bits), so that a thread that owns a
 * pixel reads whole sectors, wherever its neighbours are. The store has
 * [plane][packet][pixel][32 bytes], for all rows of the picture or for a strip
 * of them. Bands are planes whose pictures come one by one: packets are then
 * counted through, band * n_packets + packet. */
#pragma once

#include "core/cuda/cuda-check.h"
#include "photostereo/photostereo-pixel.h"

enum {
  THREADS = 128,
  PACKET = 32,   /* bytes */
  N_SUMS = 11,   /* floats a pixel: Sums, sum of grey values */
  N_STATES = 4,  /* floats a pixel: n', condition */
  FIRST_SET = 2, /* of a Found: the lights of the first solution */
};

/* Sums of a row of pixels; integers, because threads come in any order. */
struct Row {
  unsigned long long n_pixels, n_invalid, n_changes;
  unsigned long long lights, rounds;
  unsigned long long change;           /* degrees times CHANGE_UNIT */
  unsigned long long residual, length; /* times GREY_UNIT */
};

/* Of all samples in the mask since the set began. */
struct Seen {
  unsigned long long n_clipped;
  unsigned largest;
};

#define CHANGE_UNIT 4294967296.0
#define GREY_UNIT 1073741824.0f
#define MAX_GREY 1000.0f /* the sum of a row stays below 2^64 */

/* A light for the fast solver. Lengths are in a unit in which the scale of the
 * lamps is 1; a grey value is sample * gain, of red, green or blue. */
struct __align__ (16) Lit
{
  float x, y, z;
  float length2; /* x^2 + y^2 + z^2; NaN of a light that is not in the set */
  float gain[3];
  float z2; /* z^2; likewise NaN */
};

struct Arguments {
  ImkPhotostereoPlan plan; /* with tables in device memory */
  ImkPhotostereoParams params;
  const uint32_t *lights; /* of the set, on the device */
  uint32_t n_lights;
  bool compare, measures;

  /* the store: rows first_row to first_row + n_rows */
  uint8_t *samples;
  uint32_t first_row, n_rows;
  uint32_t n_packets;

  /* of the fast solver */
  const Lit *lit;       /* all lights, padded to whole packets */
  float unit_x, unit_y; /* size of a pixel in the unit of Lit */
  bool
      smooth; /* k hardly bends over a segment of a row, see smooth_factor () */
  bool one_gain; /* the same for all lights and colours: */
  float gain;
  float shrink;      /* a power of two: times L, it is no longer than 1 */
  bool has_matrix;   /* tensor cores can be used */
  float clip;        /* samples above it are clipped; INFINITY: none is */
  float clip_grey;   /* with one_gain, clip as a grey value; else INFINITY */
  float *sums;       /* [N_SUMS][pixel of the store], or NULL */
  uint32_t n_summed; /* packets already in the sums */

  /* Tile: the rows solved at a time, and the state of their pixels. */
  uint32_t tile_row, tile_rows;
  size_t tile_size; /* capacity in pixels */
  /* which lights count, [set][word][pixel]: a word a packet; for the general
   * solver a bit a light of the set. Two sets, so that a solution that fails
   * leaves the last one */
  uint32_t *words;
  uint32_t n_words;
  float *grey;     /* [light of the set][pixel], of several planes */
  float *states;   /* [N_STATES][pixel] */
  float *last;     /* [3][pixel], n' before the last solution, if measured */
  float *ambients; /* [pixel] */
  uint32_t *found; /* [pixel], see Found */
  uint32_t *zero;  /* a 0, of which the compiler does not know that it is one */

  /* Results of the solved rows, at their position in the picture. */
  float *albedo, *ambient; /* [height][width], of a mosaic */
  float *normals;          /* [height][width][3], of the last solution */
  Row *rows;
  Seen *seen; /* behind them */
  ImkPhotostereoOutputs out;
};

/* What a pixel has after its rounds, packed into a word. */
struct Found {
  uint32_t n, rounds, set;
  bool valid;
};

static __host__ __device__ __forceinline__ uint32_t
found_pack (const Found &f)
{
  return f.n | f.rounds << 13 | f.set << 24 | (uint32_t) f.valid << 26;
}

static __host__ __device__ __forceinline__ Found
found_unpack (uint32_t word)
{
  return Found{
      word & 8191, word >> 13 & 2047, word >> 24 & 3, (word >> 26 & 1) != 0};
}

/* Lights of a packet. */
static __host__ __device__ __forceinline__ uint32_t
packet_lights (ImkType type)
{
  return type == IMK_TYPE_U8 ? PACKET : PACKET / 2;
}

static __host__ __device__ __forceinline__ size_t
store_pixels (const Arguments &a)
{
  return (size_t) a.n_rows * a.plan.width;
}

/* @pixel: of the store. */
static __device__ __forceinline__ uint8_t *
packet_at (const Arguments &a, uint32_t plane, uint32_t packet, size_t pixel)
{
  size_t i = ((size_t) plane * a.n_packets + packet) * store_pixels (a) + pixel;

  return a.samples + i * PACKET;
}

#define REAL float
#define INLINE static __device__ __forceinline__
#include "photostereo/photostereo-solve.h"

/* With room for as many colours or bands. */
template <int PLANES> struct ResultOf {
  float normal[3];
  float albedo[PLANES], ambient[PLANES];
  float quality[IMK_PHOTOSTEREO_N_QUALITIES];
  float length; /* of n' */
};

typedef ResultOf<3> Result;

/* Of a solution @s; all but the residual and the albedo of colours. */
template <int PLANES>
static __device__ __forceinline__ void
fill_result (const float s[3], float n, float rounds, float condition,
    ResultOf<PLANES> &r)
{
  r.length = sqrtf (s[0] * s[0] + s[1] * s[1] + s[2] * s[2]);
  for (int i = 0; i < 3; i++)
    r.normal[i] = s[i] / r.length;
  r.albedo[0] = r.length;
  r.quality[IMK_PHOTOSTEREO_LIGHTS] = n;
  r.quality[IMK_PHOTOSTEREO_ROUNDS] = rounds;
  r.quality[IMK_PHOTOSTEREO_CONDITION] = condition;
}

static __device__ __forceinline__ bool
is_good (const Solution &s, float n, float min_lights, float min_condition)
{
  return n >= min_lights && s.condition >= min_condition &&
         s.volume >= IMK_PHOTOSTEREO_MIN_VOLUME && s.norm2 > 0 &&
         s.norm2 < INFINITY;
}

/* ------------------------------------------------------------------------
 * Results of a pixel. */

static __device__ __forceinline__ bool
is_wanted (const Arguments &a, uint32_t x, uint32_t y)
{
  return !a.plan.mask || a.plan.mask[(size_t) y * a.plan.width + x];
}

static __device__ __forceinline__ unsigned long long
in_units (float grey)
{
  return (unsigned long long) (fminf (grey, MAX_GREY) * GREY_UNIT);
}

template <int PLANES>
static __device__ __forceinline__ void
store_result (const Arguments &a, uint32_t x, uint32_t y,
    const ResultOf<PLANES> &r, Row &row)
{
  uint32_t n = a.plan.n_planes;
  size_t at = (size_t) y * a.plan.width + x;
  uint32_t out_y = y - a.plan.first_row; /* wraps above the band */
  bool valid = r.quality[IMK_PHOTOSTEREO_LIGHTS] > 0;
  bool in_band = out_y < a.plan.n_rows;

  if (a.out.normal.data && in_band)
    imk_photostereo_store_normal (
        &a.out.normal, x, out_y, r.normal, a.params.y_down);
  if (in_band)
    imk_photostereo_store_trust (
        &a.out, x, out_y, r.quality, r.length, a.plan.constant);
  if (a.plan.mosaic) {
    a.albedo[at] = r.albedo[0];
    a.ambient[at] = r.ambient[0];
  } else {
    if (a.out.albedo.data)
      imk_photostereo_store_colours (&a.out.albedo, x, out_y, r.albedo, n);
    if (a.out.ambient.data)
      imk_photostereo_store_colours (&a.out.ambient, x, out_y, r.ambient, n);
  }
  if (is_wanted (a, x, y)) {
    row.n_pixels++;
    row.n_invalid += !valid;
    row.lights += (unsigned) r.quality[IMK_PHOTOSTEREO_LIGHTS];
    row.rounds += (unsigned) r.quality[IMK_PHOTOSTEREO_ROUNDS];
    row.residual += in_units (r.quality[IMK_PHOTOSTEREO_RESIDUAL]);
    row.length += in_units (r.length);
  }
  if (a.normals) {
    float *last = a.normals + 3 * at;

    if (a.compare && valid && (last[0] != 0 || last[1] != 0 || last[2] != 0)) {
      row.change +=
          (unsigned long long) (imk_photostereo_angle (r.normal, last) *
                                CHANGE_UNIT);
      row.n_changes++;
    }
    for (int k = 0; k < 3; k++)
      last[k] = r.normal[k];
  }
}

/* Adds the sums of a warp, whose pixels are in one row. */
static __device__ __forceinline__ void
add_row (Row *to, Row row)
{
  unsigned long long *from = (unsigned long long *) &row;

#pragma unroll
  for (uint32_t i = 0; i < sizeof (Row) / sizeof (*from); i++) {
    unsigned long long sum = from[i];

    for (int step = 16; step > 0; step /= 2)
      sum += __shfl_down_sync (~0u, sum, step);
    if (threadIdx.x % 32 == 0 && sum)
      atomicAdd ((unsigned long long *) to + i, sum);
  }
}

/* ------------------------------------------------------------------------
 * The parts. All work on @stream and do not wait. */

/* Pictures that wait, to be put into one packet of all pixels of the store. */
struct Put {
  const uint8_t *from[PACKET]; /* by light in the packet */
  uint32_t fresh;              /* bit mask of the valid entries of from */
  uint32_t packet;             /* counted through all bands */
  bool merge;                  /* the packet already has other lights */
  uint32_t from_row;           /* of the picture, the first row of @from */
};

/* photostereo-cuda-store.cu */
ImkStatus imk_photostereo_cuda_put (const Arguments *arguments, const Put *put,
    cudaStream_t stream, ImkError *error);

/* photostereo-cuda-scalar.cu: one plane, samples as they are, lamps without a
 * lobe, least squares or thresholds that are not adaptive. */
bool imk_photostereo_cuda_is_fast (
    const ImkPhotostereoPlan *plan, const ImkPhotostereoParams *params);
/* Adds packets @first to @end, of which all lights are there, to the sums. */
ImkStatus imk_photostereo_cuda_sum (const Arguments *arguments, uint32_t first,
    uint32_t end, cudaStream_t stream, ImkError *error);
ImkStatus imk_photostereo_cuda_solve_fast (
    const Arguments *arguments, cudaStream_t stream, ImkError *error);

/* photostereo-cuda-matrix.cu: the same for most sets of 8 bits, on tensor
 * cores; needs no sums. */
bool imk_photostereo_cuda_has_matrix (const Arguments *arguments);
/* With the parameters as they are. */
bool imk_photostereo_cuda_is_matrix (const Arguments *arguments);
/* What solve_fast () does before results are stored. */
ImkStatus imk_photostereo_cuda_solve_matrix (
    const Arguments *arguments, cudaStream_t stream, ImkError *error);

/* photostereo-cuda-general.cu: everything. */
ImkStatus imk_photostereo_cuda_solve_general (
    const Arguments *arguments, cudaStream_t stream, ImkError *error);

/* Launches of THREADS threads a block. */
static inline cudaLaunchConfig_t
launch_of (size_t n_threads, uint32_t rows, cudaStream_t stream)
{
  cudaLaunchConfig_t launch = {};

  launch.gridDim =
      dim3 ((unsigned) ((n_threads + THREADS - 1) / THREADS), rows);
  launch.blockDim = dim3 (THREADS);
  launch.stream = stream;
  return launch;
}
