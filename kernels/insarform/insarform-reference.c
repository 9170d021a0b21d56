/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insarform/insarform-reference.h"

#include <complex.h>
#include <math.h>

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
    const ImkImage *secondary, int64_t x0, int64_t x1, int64_t y0, int64_t y1)
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

      if (!is_data (s1) || !is_data (s2))
        continue;
      s.product += s1 * conj (s2);
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

void
imk_insarform_reference (const ImkInsarformConfig *c, const ImkImage *reference,
    const ImkImage *secondary, ImkImage *out)
{
  int64_t half_x = c->window_x / 2, half_y = c->window_y / 2;

  for (uint32_t y = 0; y < c->height / c->looks_y; y++)
    for (uint32_t x = 0; x < c->width / c->looks_x; x++) {
      Sums cell = sum_cells (c, reference, secondary, x, x + 1ll, y, y + 1ll);
      Sums window = sum_cells (c, reference, secondary, x - half_x,
          x + half_x + 1, y - half_y, y + half_y + 1);
      double n = fmax (cell.n_samples, 1); /* without data, 0 / 1 */
      double coherence = cell.n_samples > 0 ? get_coherence (&window) : 0;

      imk_sample_put (out, x, y, IMK_INSARFORM_RE, creal (cell.product) / n);
      imk_sample_put (out, x, y, IMK_INSARFORM_IM, cimag (cell.product) / n);
      imk_sample_put (out, x, y, IMK_INSARFORM_AMPLITUDE,
          pow (cell.power1, 0.25) * pow (cell.power2, 0.25) / sqrt (n));
      imk_sample_put (out, x, y, IMK_INSARFORM_COHERENCE, coherence);
    }
}
