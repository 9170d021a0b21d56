/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Over the samples of a cell where both images have data, n of them, with the
 * phase f that is removed:
 *
 *   S              sum of s1 conj (s2) exp (-i f)
 *   interferogram  S / n
 *   amplitude      (sum |s1|^2 sum |s2|^2)^(1/4) / sqrt (n)
 *   coherence      |S| / sqrt (sum |s1|^2 sum |s2|^2), over the cells of the
 *                  window (Bamler and Hartl 1998)
 *
 * From the top: the sums, the coherence, a cell, the image. */
#include "insarform/insarform-reference.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "core/sample.h"

/* Over samples where both images have data. */
typedef struct Sums {
  double complex product;           /* s1 conj (s2) */
  double power1, power2, n_samples; /* |s1|^2, |s2|^2 */
} Sums;

static double complex
get_sample (const ImkImage *image, uint32_t x, uint32_t y)
{
  return imk_sample_get (image, x, y, 0) + I * imk_sample_get (image, x, y, 1);
}

static bool
is_data (double complex s)
{
  return s != 0 && isfinite (creal (s)) && isfinite (cimag (s));
}

/* Over the cells [x0, x1) x [y0, y1), of which those outside do not exist. */
static Sums
sum_cells (const ImkInsarformConfig *c, const ImkImage *reference,
    const ImkImage *secondary, const ImkImage *phase, int64_t x0, int64_t x1,
    int64_t y0, int64_t y1)
{
  int64_t nx = c->width / c->looks_x, ny = c->height / c->looks_y;
  Sums s = {0};

  x0 = x0 > 0 ? x0 : 0;
  y0 = y0 > 0 ? y0 : 0;
  x1 = x1 < nx ? x1 : nx;
  y1 = y1 < ny ? y1 : ny;
  for (int64_t y = y0 * c->looks_y; y < y1 * c->looks_y; y++)
    for (int64_t x = x0 * c->looks_x; x < x1 * c->looks_x; x++) {
      double complex s1 = get_sample (reference, (uint32_t) x, (uint32_t) y);
      double complex s2 = get_sample (secondary, (uint32_t) x, (uint32_t) y);

      double f =
          phase ? imk_sample_get (phase, (uint32_t) x, (uint32_t) y, 0) : 0;

      if (!is_data (s1) || !is_data (s2) || !isfinite (f))
        continue;
      s.product += s1 * conj (s2) * cexp (-I * f);
      s.power1 += creal (s1 * conj (s1));
      s.power2 += creal (s2 * conj (s2));
      s.n_samples++;
    }
  return s;
}

/* Returns: the sample coherence (Bamler and Hartl, "Synthetic aperture radar
 * interferometry", Inverse Problems 14, 1998), 0..1 */
static double
get_coherence (const Sums *s)
{
  double power = sqrt (s->power1) * sqrt (s->power2);

  return power > 0 ? cabs (s->product) / power : 0;
}

/* Returns: exp (i the removed phase) in the middle of a cell, by the mean of
 * the 1, 2 or 4 samples there */
static double complex
get_middle (
    const ImkInsarformConfig *c, const ImkImage *phase, uint32_t x, uint32_t y)
{
  double complex sum = 0;

  for (uint32_t j = (c->looks_y - 1) / 2; j <= c->looks_y / 2; j++)
    for (uint32_t i = (c->looks_x - 1) / 2; i <= c->looks_x / 2; i++) {
      double f =
          imk_sample_get (phase, x * c->looks_x + i, y * c->looks_y + j, 0);

      sum += isfinite (f) ? cexp (I * f) : 0;
    }
  return cabs (sum) > 0 ? sum / cabs (sum) : 1;
}

static void
make_cell (const ImkInsarformConfig *c, const ImkImage *reference,
    const ImkImage *secondary, const ImkImage *phase, uint32_t x, uint32_t y,
    ImkImage *out)
{
  int64_t half_x = c->window_x / 2, half_y = c->window_y / 2;
  Sums cell =
      sum_cells (c, reference, secondary, phase, x, x + 1ll, y, y + 1ll);
  Sums window = sum_cells (c, reference, secondary, phase, x - half_x,
      x + half_x + 1, y - half_y, y + half_y + 1);
  double n = fmax (cell.n_samples, 1), m = window.n_samples;
  double coherence = get_coherence (&window);

  if (c->unbias)
    coherence =
        m > 1 ? sqrt (fmax (0, (m * coherence * coherence - 1) / (m - 1))) : 0;
  if (cell.n_samples == 0)
    coherence = 0;
  if (c->restore && phase)
    cell.product *= get_middle (c, phase, x, y);
  imk_sample_put (out, x, y, IMK_INSARFORM_RE, creal (cell.product) / n);
  imk_sample_put (out, x, y, IMK_INSARFORM_IM, cimag (cell.product) / n);
  imk_sample_put (out, x, y, IMK_INSARFORM_AMPLITUDE,
      pow (cell.power1, 0.25) * pow (cell.power2, 0.25) / sqrt (n));
  imk_sample_put (out, x, y, IMK_INSARFORM_COHERENCE, coherence);
  imk_sample_put (out, x, y, IMK_INSARFORM_REMOVED,
      phase ? carg (get_middle (c, phase, x, y)) : 0);
}

void
imk_insarform_reference (const ImkInsarformConfig *c, const ImkImage *reference,
    const ImkImage *secondary, const ImkImage *phase, ImkImage *out)
{
  ImkImage measured =
      imk_image_of_rows (NULL, IMK_TYPE_F64, c->width, c->height);
  ImkImage one = imk_image_of_rows (NULL, IMK_TYPE_CF32, c->width, c->height);
  ImkImage common[2] = {one, one};
  bool is_filtered = c->range_band > 0 || c->azimuth_band > 0;

  if (c->fringe_window || (is_filtered && !phase)) {
    measured.data = calloc (c->height, measured.stride);
    phase = &measured;
  }
  if (c->fringe_window)
    imk_insarform_reference_fringes (c, reference, secondary, &measured);
  if (is_filtered) {
    for (int i = 0; i < 2; i++)
      common[i].data = malloc (c->height * common[i].stride);
    imk_insarform_reference_band (
        c, reference, secondary, phase, &common[0], &common[1]);
    reference = &common[0];
    secondary = &common[1];
  }
  for (uint32_t y = 0; y < c->height / c->looks_y; y++)
    for (uint32_t x = 0; x < c->width / c->looks_x; x++)
      make_cell (c, reference, secondary, phase, x, y, out);
  if (c->filter_alpha > 0)
    imk_insarform_reference_filter (c, out);
  free (measured.data);
  free (common[0].data);
  free (common[1].data);
}
