/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loops for one instruction set, included by octbscan-lanes.c once for
 * each:
 * ISA_NAME(x): x with a suffix for it
 * TARGET: the function attribute that allows it
 * REGISTER_LANES: floats of its longest register
 * DEPTHS: that a product makes at a time, as many as there are registers for
 * FMA(a, b, c): a * b + c of such registers, rounded once where it can */

#define FUNCTION TARGET static
#define LANES IMK_OCTBSCAN_N_LANES

/* The compiler takes it apart where registers are shorter. */
typedef float ISA_NAME (Vector) __attribute__ ((vector_size (4 * LANES)));
#define VECTOR ISA_NAME (Vector)

#define DEFINE_LOAD(Sample, type) \
  FUNCTION void ISA_NAME (load_##type) (const void *from, \
      const float *restrict high, const float *restrict low, uint32_t n, \
      float *restrict to) \
  { \
    const Sample *restrict a = from; \
\
    for (uint32_t i = 0; i < n; i++) \
      to[i] = ((float) a[i] - high[i]) - low[i]; \
  } \
\
  FUNCTION void ISA_NAME (sum_##type) ( \
      const void *from, uint32_t n, double *restrict sums) \
  { \
    const Sample *restrict a = from; \
\
    for (uint32_t i = 0; i < n; i++) \
      sums[i] += a[i]; \
  }

/* Sums from the first sample on; an int32_t holds 16384 samples of 16 bits. The
 * divisor is the same for all but the ends. */
#define DEFINE_ROLL(Sample, Sum, type) \
  FUNCTION void ISA_NAME (roll_part_##type) (const Sum *restrict sums, \
      uint32_t first, uint32_t end, uint32_t before, uint32_t behind, \
      float *restrict high, float *restrict low) \
  { \
    double n = before + behind; \
\
    for (uint32_t i = first; i < end; i++) \
      imk_octbscan_split ((double) (sums[i + behind] - sums[i - before]) / n, \
          &high[i], &low[i]); \
  } \
\
  FUNCTION void ISA_NAME (roll_##type) (const void *from, uint32_t n, \
      uint32_t reach, void *room, float *restrict high, float *restrict low) \
  { \
    const Sample *restrict a = from; \
    Sum *sums = room, sum = 0; \
    uint32_t i = 0, whole = n > reach ? n - reach : 0; \
\
    sums[0] = 0; \
    for (uint32_t k = 0; k < n; k++) \
      sums[k + 1] = sum += a[k]; \
    for (; i < n && (i < reach || i >= whole); i++) \
      ISA_NAME (roll_part_##type) \
    (sums, i, i + 1, i < reach ? i : reach, n - i > reach ? reach + 1 : n - i, \
        high, low); \
    if (i < whole) \
      ISA_NAME (roll_part_##type) \
    (sums, i, whole, reach, reach + 1, high, low); \
    for (i = i < whole ? whole : i; i < n; i++) \
      ISA_NAME (roll_part_##type) \
    (sums, i, i + 1, reach, n - i, high, low); \
  }

DEFINE_LOAD (uint8_t, u8)
DEFINE_LOAD (uint16_t, u16)
DEFINE_LOAD (int16_t, i16)
DEFINE_LOAD (float, f32)

DEFINE_ROLL (uint8_t, int32_t, u8)
DEFINE_ROLL (uint16_t, int32_t, u16)
DEFINE_ROLL (int16_t, int32_t, i16)
DEFINE_ROLL (float, double, f32)

FUNCTION bool
ISA_NAME (is_sound) (const float *a, uint32_t n)
{
  uint32_t wild = 0;

  for (uint32_t i = 0; i < n; i++)
    wild |= !imk_octbscan_is_sound (a[i]);
  return !wild;
}

FUNCTION void
ISA_NAME (pack) (const float *restrict a, const float *restrict b,
    const float *restrict taper, uint32_t n, float *restrict to)
{
  for (uint32_t i = 0; i < n; i++) {
    to[2 * i] = a[i] * taper[i];
    to[2 * i + 1] = b[i] * taper[i];
  }
}

FUNCTION void
ISA_NAME (turn) (const float *restrict a, const float *restrict re,
    const float *restrict im, uint32_t n, float *restrict to)
{
  for (uint32_t i = 0; i < n; i++) {
    to[2 * i] = a[i] * re[i];
    to[2 * i + 1] = a[i] * im[i];
  }
}

/* Bins 0 .. n / 2 stay where they are, -n / 2 .. -1 go to the end. The highest
 * of an even @n is both. */
FUNCTION void
ISA_NAME (widen) (const float *restrict bins, const float *restrict factors,
    uint32_t n, uint32_t wide, float *restrict to)
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

/* Even and odd taps have sums of their own, as an addition waits for the one
 * before. */
#define BAND_ROW(OPERATION_RE, OPERATION_IM, samples) \
  do { \
    const VECTOR *u = (const VECTOR *) (samples) + band->first[j]; \
\
    for (uint32_t t = 0; t < band->n_taps; t += 2) { \
      re0 OPERATION_RE u[t] * w_re[t]; \
      im0 OPERATION_IM u[t] * w_im[t]; \
      re1 OPERATION_RE u[t + 1] * w_re[t + 1]; \
      im1 OPERATION_IM u[t + 1] * w_im[t + 1]; \
    } \
  } while (0)

FUNCTION void
ISA_NAME (band) (const ImkOctbscanChain *chain, const ImkOctbscanBand *band,
    const float *re_lanes, const float *im_lanes, float *points, size_t pitch)
{
  uint32_t n = chain->n_points, at = chain->first_point;

  for (uint32_t j = 0; j < chain->n_rows; j++) {
    const float *w_re = band->re + (size_t) j * band->n_taps;
    const float *w_im = band->im + (size_t) j * band->n_taps;
    VECTOR re0 = {0}, im0 = {0}, re1 = {0}, im1 = {0};
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
    /* rows beyond P wrap around onto the first ones */
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

FUNCTION void
ISA_NAME (intensity) (const float *restrict bins, const float *restrict finish,
    uint32_t n, float *restrict to)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = imk_octbscan_intensity (
        bins[2 * i] * finish[i], bins[2 * i + 1] * finish[i]);
}

FUNCTION void
ISA_NAME (complex) (const float *restrict bins, const float *restrict finish,
    uint32_t n, float *restrict to)
{
  for (uint32_t i = 0; i < n; i++) {
    to[2 * i] = bins[2 * i] * finish[i];
    to[2 * i + 1] = bins[2 * i + 1] * finish[i];
  }
}

typedef float ISA_NAME (Register)
    __attribute__ ((vector_size (4 * REGISTER_LANES)));
#define REGISTER ISA_NAME (Register)

/* Halves are added to each other until four are left. */
FUNCTION float
ISA_NAME (sum_of) (REGISTER v)
{
  float lanes[REGISTER_LANES];

  memcpy (lanes, &v, sizeof (v));
  for (uint32_t n = REGISTER_LANES / 2; n >= 4; n /= 2)
    for (uint32_t l = 0; l < n; l++)
      lanes[l] += lanes[l + n];
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/* Rows of @matrix by @lines of @a, both of @n: every one that is read is used
 * several times. */
enum { ISA_NAME (LINES) = 4, ISA_NAME (ROWS) = 2 * DEPTHS };

FUNCTION inline __attribute__ ((always_inline)) void
ISA_NAME (multiply) (const float *matrix, uint32_t n, const float *const *a,
    float *const *z, uint32_t n_lines, uint32_t n_rows)
{
  REGISTER sums[ISA_NAME (LINES)][ISA_NAME (ROWS)] = {{{0}}};
  uint32_t i = 0;

  for (; i + REGISTER_LANES <= n; i += REGISTER_LANES) {
    REGISTER w[ISA_NAME (ROWS)], v;

    for (uint32_t r = 0; r < n_rows; r++)
      memcpy (&w[r], matrix + (size_t) r * n + i, sizeof (v));
    for (uint32_t l = 0; l < n_lines; l++) {
      memcpy (&v, a[l] + i, sizeof (v));
      for (uint32_t r = 0; r < n_rows; r++)
        sums[l][r] = FMA (w[r], v, sums[l][r]);
    }
  }
  for (uint32_t l = 0; l < n_lines; l++)
    for (uint32_t r = 0; r < n_rows; r++) {
      float sum = ISA_NAME (sum_of) (sums[l][r]);

      for (uint32_t k = i; k < n; k++)
        sum += matrix[(size_t) r * n + k] * a[l][k];
      z[l][r] = sum;
    }
}

/* All rows by up to four spectra. */
FUNCTION void
ISA_NAME (apply_four) (const float *matrix, uint32_t n_rows, uint32_t n,
    const float *const *a, uint32_t n_lines, float *const *z)
{
  float *to[ISA_NAME (LINES)];
  uint32_t r = 0;

  for (; r + ISA_NAME (ROWS) <= n_rows && n_lines == ISA_NAME (LINES);
       r += ISA_NAME (ROWS)) {
    for (uint32_t l = 0; l < ISA_NAME (LINES); l++)
      to[l] = z[l] + r;
    ISA_NAME (multiply)
    (matrix + (size_t) r * n, n, a, to, ISA_NAME (LINES), ISA_NAME (ROWS));
  }
  for (; r < n_rows; r++)
    for (uint32_t l = 0; l < n_lines; l++) {
      to[0] = z[l] + r;
      ISA_NAME (multiply) (matrix + (size_t) r * n, n, a + l, to, 1, 1);
    }
}

FUNCTION void
ISA_NAME (apply) (const float *matrix, uint32_t n_depths, uint32_t n,
    const float *const *a, uint32_t n_lanes, float *const *z)
{
  for (uint32_t l = 0; l < n_lanes; l += ISA_NAME (LINES))
    ISA_NAME (apply_four)
  (matrix, 2 * n_depths, n, a + l,
      n_lanes - l < ISA_NAME (LINES) ? n_lanes - l : ISA_NAME (LINES), z + l);
}

FUNCTION void
ISA_NAME (db) (const float *restrict intensity, uint32_t n, float *restrict to)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = imk_octbscan_db (intensity[i]);
}

FUNCTION void
ISA_NAME (levels_u8) (const float *restrict values, uint32_t n,
    ImkOctbscanLevels levels, uint8_t *restrict to)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = (uint8_t) imk_octbscan_level (levels, values[i]);
}

FUNCTION void
ISA_NAME (levels_u16) (const float *restrict values, uint32_t n,
    ImkOctbscanLevels levels, uint16_t *restrict to)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = (uint16_t) imk_octbscan_level (levels, values[i]);
}

static const ImkOctbscanLoops ISA_NAME (loops) = {
    .load = {ISA_NAME (load_u8), ISA_NAME (load_u16), ISA_NAME (load_i16),
        ISA_NAME (load_f32)},
    .sum = {ISA_NAME (sum_u8), ISA_NAME (sum_u16), ISA_NAME (sum_i16),
        ISA_NAME (sum_f32)},
    .roll = {ISA_NAME (roll_u8), ISA_NAME (roll_u16), ISA_NAME (roll_i16),
        ISA_NAME (roll_f32)},
    .is_sound = ISA_NAME (is_sound),
    .pack = ISA_NAME (pack),
    .turn = ISA_NAME (turn),
    .widen = ISA_NAME (widen),
    .band = ISA_NAME (band),
    .intensity = ISA_NAME (intensity),
    .complex = ISA_NAME (complex),
    .apply = ISA_NAME (apply),
    .db = ISA_NAME (db),
    .levels_u8 = ISA_NAME (levels_u8),
    .levels_u16 = ISA_NAME (levels_u16),
};

#undef REGISTER
#undef BAND_ROW
#undef DEFINE_LOAD
#undef DEFINE_ROLL
#undef VECTOR
#undef LANES
#undef FUNCTION
#undef ISA_NAME
#undef TARGET
#undef REGISTER_LANES
#undef DEPTHS
#undef FMA
