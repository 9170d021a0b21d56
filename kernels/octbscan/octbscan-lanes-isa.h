/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loops for one instruction set, included by octbscan-lanes.c once for
 * each:
 * ISA_NAME(x): x with a suffix for it
 * TARGET: the function attribute that allows it */

#define FUNCTION TARGET static
#define LANES IMK_OCTBSCAN_N_LANES

/* The compiler takes it apart where registers are shorter. */
typedef float ISA_NAME (Vector) __attribute__ ((vector_size (4 * LANES)));
#define VECTOR ISA_NAME (Vector)

#define DEFINE_LOAD(Sample, type) \
  FUNCTION void ISA_NAME (load_##type) (const void *from, \
      const float *restrict mean, uint32_t n, float *restrict to) \
  { \
    const Sample *restrict a = from; \
\
    for (uint32_t i = 0; i < n; i++) \
      to[i] = (float) a[i] - mean[i]; \
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

DEFINE_LOAD (uint8_t, u8)
DEFINE_LOAD (uint16_t, u16)
DEFINE_LOAD (int16_t, i16)
DEFINE_LOAD (float, f32)

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

/* Four spectra at a time share what is read of the matrix. */
FUNCTION void
ISA_NAME (apply_four) (const float *row, uint32_t n, const float *const *a,
    uint32_t n_lanes, uint32_t depth, float *const *z)
{
  const float *a0 = a[0], *a1 = a[n_lanes > 1], *a2 = a[n_lanes > 2 ? 2 : 0],
              *a3 = a[n_lanes > 3 ? 3 : 0];
  const float *re = row, *im = row + n;
  float sum[8] = {0};
  VECTOR s[8] = {{0}};
  uint32_t i = 0;

  for (; i + LANES <= n; i += LANES) {
    VECTOR wr, wi, v;

    memcpy (&wr, re + i, sizeof (wr));
    memcpy (&wi, im + i, sizeof (wi));
    memcpy (&v, a0 + i, sizeof (v));
    s[0] += wr * v;
    s[1] += wi * v;
    memcpy (&v, a1 + i, sizeof (v));
    s[2] += wr * v;
    s[3] += wi * v;
    memcpy (&v, a2 + i, sizeof (v));
    s[4] += wr * v;
    s[5] += wi * v;
    memcpy (&v, a3 + i, sizeof (v));
    s[6] += wr * v;
    s[7] += wi * v;
  }
  for (; i < n; i++) {
    const float v[4] = {a0[i], a1[i], a2[i], a3[i]};

    for (int k = 0; k < 4; k++) {
      sum[2 * k] += re[i] * v[k];
      sum[2 * k + 1] += im[i] * v[k];
    }
  }
  for (uint32_t k = 0; k < 2 * n_lanes; k++) {
    for (int l = 0; l < LANES; l++)
      sum[k] += s[k][l];
    z[k / 2][2 * (size_t) depth + k % 2] = sum[k];
  }
}

FUNCTION void
ISA_NAME (apply) (const float *matrix, uint32_t n_depths, uint32_t n,
    const float *const *a, uint32_t n_lanes, float *const *z)
{
  for (uint32_t d = 0; d < n_depths; d++)
    for (uint32_t l = 0; l < n_lanes; l += 4)
      ISA_NAME (apply_four)
  (matrix + 2 * (size_t) d * n, n, a + l, n_lanes - l < 4 ? n_lanes - l : 4, d,
      z + l);
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

#undef BAND_ROW
#undef DEFINE_LOAD
#undef VECTOR
#undef LANES
#undef FUNCTION
#undef ISA_NAME
#undef TARGET
