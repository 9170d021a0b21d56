/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operations on lines and spectra for both modes. */
#include "insarxcorr/cpu/patch.h"

/* One sample that is not a number would make the whole patch invalid. */
static inline bool
is_finite (float value)
{
  return fabsf (value) <= 3.0e38f;
}

/* Returns: samples that are data */
static uint32_t
load_ci16 (
    const int16_t *restrict in, uint32_t n, ImkInsarxcorrComplex *restrict out)
{
  uint32_t n_valid = 0;

  for (uint32_t i = 0; i < n; i++) {
    out[i].re = in[2 * i];
    out[i].im = in[2 * i + 1];
    n_valid += (in[2 * i] | in[2 * i + 1]) != 0;
  }
  return n_valid;
}

/* @parts: 2 of a complex sample, 1 of a real one */
static inline uint32_t
load_floats (const float *restrict in, uint32_t parts, uint32_t n,
    ImkInsarxcorrComplex *restrict out)
{
  uint32_t n_valid = 0;

  for (uint32_t i = 0; i < n; i++) {
    float re = in[parts * i], im = parts == 2 ? in[parts * i + 1] : 0;
    bool valid = is_finite (re) && is_finite (im) && (re != 0 || im != 0);

    out[i].re = valid ? re : 0;
    out[i].im = valid ? im : 0;
    n_valid += valid;
  }
  return n_valid;
}

static uint32_t
load (ImkType type, const void *in, uint32_t n, ImkInsarxcorrComplex *out)
{
  switch (type) {
  case IMK_TYPE_CI16:
    return load_ci16 (in, n, out);
  case IMK_TYPE_CF32:
    return load_floats (in, 2, n, out);
  default:
    return load_floats (in, 1, n, out);
  }
}

static const uint8_t *
band_line (const ImkInsarxcorrCpu *cpu, int side, int64_t line)
{
  const ImkInsarxcorrBand *band = &cpu->part->bands[side];
  int64_t last = (int64_t) band->image_height - 1;

  line = line < 0 ? 0 : line > last ? last : line;
  return cpu->bands[side] + (line % band->n_lines) * cpu->strides[side];
}

uint32_t
imk_insarxcorr_load_line (
    const ImkInsarxcorrWork *w, int side, uint32_t y, ImkInsarxcorrComplex *out)
{
  const ImkInsarxcorrCpu *cpu = w->cpu;
  int64_t first = w->patch->column[side], from = first, to;
  const uint8_t *line =
      band_line (cpu, side, (int64_t) w->patch->line[side] + y);
  ImkType type = cpu->plan->config.type;
  uint32_t width = cpu->plan->patch_width[side];

  from = first < 0 ? 0 : first;
  to = first + width;
  if (to > cpu->part->bands[side].width)
    to = cpu->part->bands[side].width;
  if (from >= to) {
    memset (out, 0, width * sizeof (*out));
    return 0;
  }
  memset (out, 0, (size_t) (from - first) * sizeof (*out));
  memset (out + (to - first), 0, (size_t) (first + width - to) * sizeof (*out));
  return load (type, line + (size_t) from * imk_type_size (type),
      (uint32_t) (to - from), out + (from - first));
}

void
imk_insarxcorr_take_amplitudes (
    const ImkInsarxcorrComplex *restrict in, uint32_t n, float *restrict out)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] = sqrtf (in[i].re * in[i].re + in[i].im * in[i].im);
}

double
imk_insarxcorr_sum (const float *in, uint32_t n)
{
  double sums[8] = {0}, sum = 0;
  uint32_t i = 0;

  for (; i + 8 <= n; i += 8)
    for (uint32_t j = 0; j < 8; j++)
      sums[j] += in[i + j];
  for (; i < n; i++)
    sum += in[i];
  for (uint32_t j = 0; j < 8; j++)
    sum += sums[j];
  return sum;
}

void
imk_insarxcorr_multiply (const ImkInsarxcorrComplex *restrict a,
    ImkInsarxcorrComplex *restrict b, size_t n)
{
  for (size_t i = 0; i < n; i++)
    b[i] = (ImkInsarxcorrComplex){a[i].re * b[i].re + a[i].im * b[i].im,
        a[i].im * b[i].re - a[i].re * b[i].im};
}
