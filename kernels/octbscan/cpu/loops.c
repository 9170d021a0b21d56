/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The inner loops, compiled once for each instruction set:
 * IMK_ISA_TABLE: the name of its table
 * IMK_VECTOR_SIZE: bytes of its registers
 * a * b + c is rounded once where the processor has FMA (-ffp-contract=fast).
 */
#include "octbscan/cpu/loops.h"

#include <string.h>

enum { LANES = IMK_OCTBSCAN_N_LANES };

/* One sample of all lanes; the compiler splits it if registers are shorter. */
typedef float Vector __attribute__ ((vector_size (4 * LANES)));

#define DEFINE_LOAD(Sample, type) \
  static void load_##type (const void *from, const float *restrict high, \
      const float *restrict low, uint32_t n, float *restrict to) \
  { \
    const Sample *restrict a = from; \
\
    for (uint32_t i = 0; i < n; i++) \
      to[i] = ((float) a[i] - high[i]) - low[i]; \
  } \
\
  static void sum_##type (const void *from, uint32_t n, double *restrict sums) \
  { \
    const Sample *restrict a = from; \
\
    for (uint32_t i = 0; i < n; i++) \
      sums[i] += a[i]; \
  }

/* By prefix sums; an int32_t holds 16384 samples of 16 bits. The divisor is
 * constant except at the ends. */
#define DEFINE_ROLL(Sample, Sum, type) \
  static void roll_part_##type (const Sum *restrict sums, uint32_t first, \
      uint32_t end, uint32_t before, uint32_t behind, float *restrict high, \
      float *restrict low) \
  { \
    double n = before + behind; \
\
    for (uint32_t i = first; i < end; i++) \
      imk_octbscan_split ((double) (sums[i + behind] - sums[i - before]) / n, \
          &high[i], &low[i]); \
  } \
\
  static void roll_##type (const void *from, uint32_t n, uint32_t reach, \
      void *room, float *restrict high, float *restrict low) \
  { \
    const Sample *restrict a = from; \
    Sum *sums = room, sum = 0; \
    uint32_t i = 0, whole = n > reach ? n - reach : 0; \
\
    sums[0] = 0; \
    for (uint32_t k = 0; k < n; k++) \
      sums[k + 1] = sum += a[k]; \
    for (; i < n && (i < reach || i >= whole); i++) \
      roll_part_##type (sums, i, i + 1, i < reach ? i : reach, \
          n - i > reach ? reach + 1 : n - i, high, low); \
    if (i < whole) \
      roll_part_##type (sums, i, whole, reach, reach + 1, high, low); \
    for (i = i < whole ? whole : i; i < n; i++) \
      roll_part_##type (sums, i, i + 1, reach, n - i, high, low); \
  }

DEFINE_LOAD (uint8_t, u8)
DEFINE_LOAD (uint16_t, u16)
DEFINE_LOAD (int16_t, i16)
DEFINE_LOAD (float, f32)

DEFINE_ROLL (uint8_t, int32_t, u8)
DEFINE_ROLL (uint16_t, int32_t, u16)
DEFINE_ROLL (int16_t, int32_t, i16)
DEFINE_ROLL (float, double, f32)

static bool
is_sound (const float *a, uint32_t n)
{
  uint32_t wild = 0;

  for (uint32_t i = 0; i < n; i++)
    wild |= !imk_octbscan_is_sound (a[i]);
  return !wild;
}

static void
pack (const float *restrict a, const float *restrict b,
    const float *restrict taper, uint32_t n, float *restrict to)
{
  for (uint32_t i = 0; i < n; i++) {
    to[2 * i] = a[i] * taper[i];
    to[2 * i + 1] = b[i] * taper[i];
  }
}

static void
turn (const float *restrict a, const float *restrict re,
    const float *restrict im, uint32_t n, float *restrict to)
{
  for (uint32_t i = 0; i < n; i++) {
    to[2 * i] = a[i] * re[i];
    to[2 * i + 1] = a[i] * im[i];
  }
}

/* Bins 0 .. n / 2 keep their place, bins -n / 2 .. -1 move to the end. The
 * highest bin of an even @n is in both. */
static void
widen (const float *restrict bins, const float *restrict factors, uint32_t n,
    uint32_t wide, float *restrict to)
{
  uint32_t half = n / 2;
  const float *negative = bins + 2 * (n - half);
  float *end = to + 2 * (size_t) (wide - half);

  for (uint32_t f = 0; f <= half; f++) {
    to[2 * f] = bins[2 * f] * factors[f];
    to[2 * f + 1] = bins[2 * f + 1] * factors[f];
  }
  memset (to + 2 * (half + 1), 0,
      2 * sizeof (float) * (wide - 2 * (size_t) half - 1));
  for (uint32_t f = 0; f < half; f++) {
    end[2 * f] = negative[2 * f] * factors[half - f];
    end[2 * f + 1] = negative[2 * f + 1] * factors[half - f];
  }
}

/* Even and odd taps have separate sums: each addition waits for the last one of
 * the same sum. */
#define BAND_ROW(OPERATION_RE, OPERATION_IM, samples) \
  do { \
    const Vector *u = (const Vector *) (samples) + band->first[j]; \
\
    for (uint32_t t = 0; t < band->n_taps; t += 2) { \
      re0 OPERATION_RE u[t] * w_re[t]; \
      im0 OPERATION_IM u[t] * w_im[t]; \
      re1 OPERATION_RE u[t + 1] * w_re[t + 1]; \
      im1 OPERATION_IM u[t + 1] * w_im[t + 1]; \
    } \
  } while (0)

static void
band (const ImkOctbscanChain *chain, const ImkOctbscanBand *band,
    const float *re_lanes, const float *im_lanes, float *points, size_t pitch)
{
  uint32_t n = chain->n_points, at = chain->first_point;

  for (uint32_t j = 0; j < chain->n_rows; j++) {
    const float *w_re = band->re + (size_t) j * band->n_taps;
    const float *w_im = band->im + (size_t) j * band->n_taps;
    Vector re0 = {0}, im0 = {0}, re1 = {0}, im1 = {0};
    float *to = points + 2 * (size_t) at;

    BAND_ROW (+=, +=, re_lanes);
    if (im_lanes) {
      const float *swap = w_re;

      w_re = w_im;
      w_im = swap;
      BAND_ROW (-=, +=, im_lanes);
    }
    re0 += re1;
    im0 += im1;
    /* Rows beyond P wrap around to the first ones. */
    if (j < n)
      for (uint32_t l = 0; l < LANES; l++) {
        to[l * pitch] = re0[l];
        to[l * pitch + 1] = im0[l];
      }
    else
      for (uint32_t l = 0; l < LANES; l++) {
        to[l * pitch] += re0[l];
        to[l * pitch + 1] += im0[l];
      }
    at = at + 1 < n ? at + 1 : 0;
  }
  if (chain->n_rows >= n)
    return;
  for (uint32_t l = 0; l < LANES; l++)
    for (uint32_t j = chain->n_rows, k = at; j < n; j++) {
      points[l * pitch + 2 * (size_t) k] = 0;
      points[l * pitch + 2 * (size_t) k + 1] = 0;
      k = k + 1 < n ? k + 1 : 0;
    }
}

static void
intensity (const float *restrict bins, const float *restrict finish, uint32_t n,
    float *restrict to)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = imk_octbscan_intensity (
        bins[2 * i] * finish[i], bins[2 * i + 1] * finish[i]);
}

static void
complex (const float *restrict bins, const float *restrict finish, uint32_t n,
    float *restrict to)
{
  for (uint32_t i = 0; i < n; i++) {
    to[2 * i] = bins[2 * i] * finish[i];
    to[2 * i + 1] = bins[2 * i + 1] * finish[i];
  }
}

/* One register of this instruction set. */
typedef float Register __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
enum { REGISTER_LANES = IMK_VECTOR_SIZE / sizeof (float) };

/* Halves are added to each other until four are left. */
static float
sum_of (Register v)
{
  float lanes[REGISTER_LANES];

  memcpy (lanes, &v, sizeof (v));
  for (uint32_t n = REGISTER_LANES / 2; n >= 4; n /= 2)
    for (uint32_t l = 0; l < n; l++)
      lanes[l] += lanes[l + n];
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/* Rows of the matrix and lines of @a that a product takes at a time, so that
 * each is used several times once it is read; AVX-512 has more registers. */
enum { LINES = 4, ROWS = IMK_VECTOR_SIZE == 64 ? 4 : 2 };

static inline __attribute__ ((always_inline)) void
multiply (const float *matrix, uint32_t n, const float *const *a,
    float *const *z, uint32_t n_lines, uint32_t n_rows)
{
  Register sums[LINES][ROWS] = {{{0}}};
  uint32_t i = 0;

  for (; i + REGISTER_LANES <= n; i += REGISTER_LANES) {
    Register w[ROWS], v;

    for (uint32_t r = 0; r < n_rows; r++)
      memcpy (&w[r], matrix + (size_t) r * n + i, sizeof (v));
    for (uint32_t l = 0; l < n_lines; l++) {
      memcpy (&v, a[l] + i, sizeof (v));
      for (uint32_t r = 0; r < n_rows; r++)
        sums[l][r] += w[r] * v;
    }
  }
  for (uint32_t l = 0; l < n_lines; l++)
    for (uint32_t r = 0; r < n_rows; r++) {
      float sum = sum_of (sums[l][r]);

      for (uint32_t k = i; k < n; k++)
        sum += matrix[(size_t) r * n + k] * a[l][k];
      z[l][r] = sum;
    }
}

/* All rows by up to four spectra. */
static void
apply_four (const float *matrix, uint32_t n_rows, uint32_t n,
    const float *const *a, uint32_t n_lines, float *const *z)
{
  float *to[LINES];
  uint32_t r = 0;

  for (; r + ROWS <= n_rows && n_lines == LINES; r += ROWS) {
    for (uint32_t l = 0; l < LINES; l++)
      to[l] = z[l] + r;
    multiply (matrix + (size_t) r * n, n, a, to, LINES, ROWS);
  }
  for (; r < n_rows; r++)
    for (uint32_t l = 0; l < n_lines; l++) {
      to[0] = z[l] + r;
      multiply (matrix + (size_t) r * n, n, a + l, to, 1, 1);
    }
}

static void
apply (const float *matrix, uint32_t n_depths, uint32_t n,
    const float *const *a, uint32_t n_lanes, float *const *z)
{
  for (uint32_t l = 0; l < n_lanes; l += LINES)
    apply_four (matrix, 2 * n_depths, n, a + l,
        n_lanes - l < LINES ? n_lanes - l : LINES, z + l);
}

static void
db (const float *restrict intensity, uint32_t n, float *restrict to)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = imk_octbscan_db (intensity[i]);
}

static void
levels_u8 (const float *restrict values, uint32_t n, ImkOctbscanLevels levels,
    uint8_t *restrict to)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = (uint8_t) imk_octbscan_level (levels, values[i]);
}

static void
levels_u16 (const float *restrict values, uint32_t n, ImkOctbscanLevels levels,
    uint16_t *restrict to)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = (uint16_t) imk_octbscan_level (levels, values[i]);
}

const ImkOctbscanLoops IMK_ISA_TABLE = {
    .load = {load_u8, load_u16, load_i16, load_f32},
    .sum = {sum_u8, sum_u16, sum_i16, sum_f32},
    .roll = {roll_u8, roll_u16, roll_i16, roll_f32},
    .is_sound = is_sound,
    .pack = pack,
    .turn = turn,
    .widen = widen,
    .band = band,
    .intensity = intensity,
    .complex = complex,
    .apply = apply,
    .db = db,
    .levels_u8 = levels_u8,
    .levels_u16 = levels_u16,
};
