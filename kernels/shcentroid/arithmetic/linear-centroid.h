/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Estimators whose sums have weights that no frame changes: the matched filter,
 * and the pupil images of a pyramid sensor. The sums are those of a centroid, w
 * in place of 1, w_x of u and w_y of y, so that the rest is as there.
 *
 * Of a matched filter pixel i of the cell, row by row, is added to lane i % 32,
 * the lanes by halves. Of pupil images there are four pixels, in their order.
 */
#pragma once

#include "shcentroid/arithmetic/float-centroid.h"

/* A pixel with its weights. @noise: as imk_shcentroid_spread () has it */
IMK_SHCENTROID_INLINE void
imk_shcentroid_add_weighted (ImkShcentroidReals *s, double v, double flat,
    double w, double w_x, double w_y, bool all, const ImkShcentroidNoise *noise)
{
  double q;

  s->p += w * v;
  s->pu += w_x * v;
  s->py += w_y * v;
  if (!all)
    return;
  q = imk_shcentroid_spread (v, flat, true, 0.0, 1.0, 1.0, 0.0, noise);
  s->q += w * w * q;
  s->qu += w * w_x * q;
  s->quu += w_x * w_x * q;
  s->qy += w * w_y * q;
  s->qyy += w_y * w_y * q;
  s->raw += v;
}

/* Positions from another origin, which is (@x, @y) of the new one. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_shift_sums (ImkShcentroidReals *s, double x, double y)
{
  s->pu += x * s->p;
  s->py += y * s->p;
  s->quu += x * (2.0 * s->qu + x * s->q);
  s->qyy += y * (2.0 * s->qy + y * s->q);
  s->qu += x * s->q;
  s->qy += y * s->q;
}

/* ------------------------------------------------------------------------
 * Pupil images: of a cell four pixels, the n-th of each image. */

enum { IMK_SHCENTROID_N_PUPILS = 4 };

/* Which pixels count as right of the middle, and as below it. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_pupil_x (uint32_t pupil)
{
  return pupil < 2 ? 1.0 : -1.0;
}

IMK_SHCENTROID_INLINE double
imk_shcentroid_pupil_y (uint32_t pupil)
{
  return pupil == 0 || pupil == 3 ? 1.0 : -1.0;
}

/* A pixel of pupil image @pupil; NaN is a bad one, and so will be the cell. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_add_pupil (ImkShcentroidReals *s, uint32_t pupil, float value,
    float flat, float sample, bool all, const ImkShcentroidNoise *noise)
{
  imk_shcentroid_add_weighted (s, value, flat, 1.0,
      imk_shcentroid_pupil_x (pupil), imk_shcentroid_pupil_y (pupil), all,
      noise);
  if (!all)
    return;
  s->max = value > s->max ? value : s->max;
  s->max_sample =
      value == value && sample > s->max_sample ? sample : s->max_sample;
}

/* Its flux, of four pixels that are good; else 0. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_pupil_flux (const ImkShcentroidReals *s)
{
  return s->p > 0.0 && imk_shcentroid_is_finite (s->p) ? s->p : 0.0;
}

/* Is it in the mean over valid cells? @most: flux of the brightest */
IMK_SHCENTROID_INLINE bool
imk_shcentroid_pupil_counts (double flux, double most,
    const ImkShcentroidRect *cell, const ImkShcentroidParams *params)
{
  return flux > 0.0 &&
         flux >= imk_shcentroid_min_flux (params, cell->min_flux) &&
         flux >= params->min_illumination * most;
}

/* When the four are added up. @mean: of the flux of the valid cells, for
 * NORMALISATION_GLOBAL */
IMK_SHCENTROID_INLINE void
imk_shcentroid_end_pupils (
    ImkShcentroidReals *s, const ImkShcentroidParams *params, double mean)
{
  double by;

  if (s->p != s->p) { /* a bad pixel */
    s->p = s->pu = s->py = s->raw = 0.0;
    return;
  }
  if (params->normalisation == IMK_SHCENTROID_NORMALISATION_LOCAL)
    return;
  /* what is divided by p is to be divided by the mean, which has no noise */
  by = mean > 0.0 ? s->p / mean : 0.0;
  s->pu *= by;
  s->py *= by;
  s->quu *= by * by;
  s->qyy *= by * by;
  s->q = s->qu = s->qy = 0.0;
}
