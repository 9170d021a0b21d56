/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The common band by its definition, insarform-band.h. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "core/sample.h"
#include "insarform/insarform-band.h"
#include "insarform/insarform-reference.h"

enum { BAND = IMK_INSARFORM_BAND_PATCH };

static double
centre_along_x (const ImkImage *phase, int64_t left, int64_t top)
{
  double complex sum = 0;

  for (int64_t y = top < 0 ? 0 : top; y < top + BAND && y < phase->height; y++)
    for (int64_t x = left < 0 ? 0 : left;
         x + 1 < left + BAND && x + 1 < phase->width; x++) {
      double d = imk_sample_get (phase, (uint32_t) x + 1, (uint32_t) y, 0) -
                 imk_sample_get (phase, (uint32_t) x, (uint32_t) y, 0);

      sum += isfinite (d) ? cexp (I * d) : 0;
    }
  return sum != 0 ? carg (sum) / (2 * M_PI) : 0;
}

static double
centre_along_y (const double complex *z)
{
  double complex sum = 0;

  for (int k = BAND; k < BAND * BAND; k++)
    sum += z[k] * conj (z[k - BAND]);
  return sum != 0 ? carg (sum) / (2 * M_PI) : 0;
}

static double
band_weight (double band, int k, double centre)
{
  double at = (double) k / BAND - centre;

  return band > 0
             ? fmax (0,
                   fmin (1, BAND * (band / 2 - fabs (at - round (at))) + 0.5))
             : 1;
}

/* Multiplies one axis of the spectrum @z of the image with the centre @own. */
static void
keep_band (
    double complex *z, bool along_y, double band, double own, double other)
{
  double power = 0, both = 0;

  for (int k = 0; k < BAND; k++) {
    double w = band_weight (band, k, own);

    power += w * w;
    both += pow (w * band_weight (band, k, other), 2);
  }
  for (int i = 0; i < BAND * BAND; i++) {
    int k = along_y ? i / BAND : i % BAND;

    z[i] *= both < 1 ? 0
                     : band_weight (band, k, own) *
                           band_weight (band, k, other) * sqrt (power / both);
  }
}

/* @images: c64 as [height][width], t in the place of the secondary */
static void
add_band_patch (const ImkInsarformConfig *c, double complex *const *images,
    const ImkImage *phase, int64_t left, int64_t top, double complex **sums)
{
  double complex *z[2];
  double x_centre[2] = {0, centre_along_x (phase, left, top)}, y_centre[2];

  for (int i = 0; i < 2; i++) {
    z[i] = calloc (BAND * BAND, sizeof (*z[i]));
    for (int k = 0; k < BAND * BAND; k++) {
      int64_t x = left + k % BAND, y = top + k / BAND;

      if (x >= 0 && y >= 0 && x < c->width && y < c->height)
        z[i][k] = images[i][y * c->width + x] *
                  pow (sin (M_PI * (k % BAND + 0.5) / BAND), 2) *
                  pow (sin (M_PI * (k / BAND + 0.5) / BAND), 2);
    }
    y_centre[i] = centre_along_y (z[i]);
  }
  for (int i = 0; i < 2; i++) {
    imk_insarform_reference_transform (z[i], BAND, -1);
    keep_band (z[i], false, c->range_band, x_centre[i], x_centre[!i]);
    keep_band (z[i], true, c->azimuth_band, y_centre[i], y_centre[!i]);
    imk_insarform_reference_transform (z[i], BAND, 1);
    for (int k = 0; k < BAND * BAND; k++) {
      int64_t x = left + k % BAND, y = top + k / BAND;

      if (x >= 0 && y >= 0 && x < c->width && y < c->height)
        sums[i][y * c->width + x] += z[i][k] / (BAND * BAND);
    }
    free (z[i]);
  }
}

void
imk_insarform_reference_band (const ImkInsarformConfig *c,
    const ImkImage *reference, const ImkImage *secondary, const ImkImage *phase,
    ImkImage *out_reference, ImkImage *out_secondary)
{
  const ImkImage *in[2] = {reference, secondary};
  ImkImage *out[2] = {out_reference, out_secondary};
  size_t n = (size_t) c->width * c->height;
  double complex *images[2], *sums[2];

  for (int i = 0; i < 2; i++) {
    images[i] = calloc (n, sizeof (*images[i]));
    sums[i] = calloc (n, sizeof (*sums[i]));
  }
  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      double complex s1 =
          imk_sample_get (in[0], x, y, 0) + I * imk_sample_get (in[0], x, y, 1);
      double complex s2 =
          imk_sample_get (in[1], x, y, 0) + I * imk_sample_get (in[1], x, y, 1);
      double f = imk_sample_get (phase, x, y, 0);

      if (s1 == 0 || s2 == 0 || !isfinite (cabs (s1 * s2)) || !isfinite (f))
        continue;
      images[0][(size_t) y * c->width + x] = s1;
      images[1][(size_t) y * c->width + x] = s2 * cexp (I * f);
    }
  for (int64_t top = -BAND / 2; top < c->height; top += BAND / 2)
    for (int64_t left = -BAND / 2; left < c->width; left += BAND / 2)
      add_band_patch (c, images, phase, left, top, sums);
  for (int i = 0; i < 2; i++) {
    for (size_t k = 0; k < n; k++) {
      uint32_t x = (uint32_t) (k % c->width), y = (uint32_t) (k / c->width);
      double f = imk_sample_get (phase, x, y, 0);
      double complex s = images[0][k] == 0 ? 0
                         : i               ? sums[i][k] * cexp (-I * f)
                                           : sums[i][k];

      imk_sample_put (out[i], x, y, 0, creal (s));
      imk_sample_put (out[i], x, y, 1, cimag (s));
    }
  }
  for (int i = 0; i < 2; i++) {
    free (images[i]);
    free (sums[i]);
  }
}
