/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the integer sums of a cell to the numbers that are reported: the one
 * sequence of float64 operations that both backends run. It agrees bit for bit
 * because + - * / round alike everywhere and nothing is contracted
 * (-ffp-contract=off, -fmad=false). */
#pragma once

#include <math.h>
#include <string.h>

#include "shcentroid/shcentroid-backend.h"

#ifdef __CUDACC__
#define IMK_SHCENTROID_INLINE static __host__ __device__ __forceinline__
#else
#define IMK_SHCENTROID_INLINE \
  static inline __attribute__ ((always_inline, unused))
#endif

/* An integer beyond 64 bits: high * 2^32 + low, where low need not stay below
 * 2^32. 2^32 additions of 64-bit numbers fit, in any order. */
typedef struct ImkShcentroidWide {
  uint64_t low, high;
} ImkShcentroidWide;

/* The sums over one cell, u and y from its top left corner, v the samples as
 * they came. n... and v... run over the samples at or above the threshold,
 * raw and max over all. Nothing overflows in the largest cell, 65535 x 65535
 * of 65535: with M = 65535, vu < M * M * M^2 / 2 < 2^63, nuu < M * M^3 / 3
 * < 2^63, v < 2^48; only vuu and vyy, up to M^5 / 3, need more. */
typedef struct ImkShcentroidSums {
  uint64_t n, nu, ny, nuu, nyy;
  uint64_t v, vu, vy;
  ImkShcentroidWide vuu, vyy;
  uint64_t raw;
  uint32_t max;
} ImkShcentroidSums;

/* One output row before it is stored. */
typedef struct ImkShcentroidRow {
  double field[IMK_SHCENTROID_N_FIELDS];
} ImkShcentroidRow;

/* A centroid from the corner of its cell; x and y mean nothing when !valid. */
typedef struct ImkShcentroidCentre {
  double flux, x, y;
  bool valid, outside;
} ImkShcentroidCentre;

IMK_SHCENTROID_INLINE void
imk_shcentroid_wide_add (ImkShcentroidWide *sum, uint64_t value)
{
  sum->low += (uint32_t) value;
  sum->high += value >> 32;
}

/* All sums stay below 2^63; processors convert signed integers faster. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_real (uint64_t sum)
{
  return (double) (int64_t) sum;
}

IMK_SHCENTROID_INLINE double
imk_shcentroid_wide_value (ImkShcentroidWide wide)
{
  uint64_t high = wide.high + (wide.low >> 32);

  /* exact as long as the value is below 2^53, as in all but huge cells */
  return imk_shcentroid_real (high) * 4294967296.0 +
         imk_shcentroid_real ((uint32_t) wide.low);
}

/* The device and the CPU disagree about the bits of a computed NaN. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_nan (void)
{
  uint64_t bits = UINT64_C (0x7ff8000000000000);
  double nan;

  memcpy (&nan, &bits, sizeof (nan));
  return nan;
}

/* For the same reason a NaN is not converted. */
IMK_SHCENTROID_INLINE float
imk_shcentroid_f32 (double value)
{
  uint32_t bits = UINT32_C (0x7fc00000);
  float nan;

  memcpy (&nan, &bits, sizeof (nan));
  return value == value ? (float) value : nan;
}

/* The threshold of a cell in counts. Limited to 1e12, above any sample, so that
 * no unit can make it infinite. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_threshold_value (
    const ImkShcentroidParams *params, double own_threshold)
{
  double t = own_threshold == own_threshold ? own_threshold * params->unit
                                            : params->threshold;

  return t < 1e12 ? t : 1e12;
}

/* Does the threshold depend on the samples of the cell? */
IMK_SHCENTROID_INLINE bool
imk_shcentroid_is_leveled (const ImkShcentroidParams *params)
{
  return params->threshold_mode == IMK_SHCENTROID_THRESHOLD_RELATIVE ||
         params->threshold_mode == IMK_SHCENTROID_THRESHOLD_RANGE;
}

/* On the smallest of them, too? */
IMK_SHCENTROID_INLINE bool
imk_shcentroid_needs_least (const ImkShcentroidParams *params)
{
  return params->threshold_mode == IMK_SHCENTROID_THRESHOLD_RANGE;
}

/* T of a cell; its range is looked at where it depends on that. No branches but
 * those that are the same for all cells. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_threshold (const ImkShcentroidParams *params,
    double own_threshold, double min, double max)
{
  double t = imk_shcentroid_threshold_value (params, own_threshold);
  double low = params->threshold_least;

  if (!imk_shcentroid_is_leveled (params))
    return t;
  if (params->threshold_mode == IMK_SHCENTROID_THRESHOLD_RELATIVE)
    t = t * max;
  else
    t = min + t * (max - min);
  return t > low ? t : low;
}

/* The smallest sample that a threshold of @t lets take part. Beyond 65535 none
 * does; a larger cap would not fit the integers it is compared in. */
IMK_SHCENTROID_INLINE uint32_t
imk_shcentroid_least (double t)
{
  return t > 65535.0 ? 65536 : (uint32_t) (int32_t) ceil (t);
}

/* What is subtracted from samples; 0 where they are kept as they are. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_pedestal (const ImkShcentroidParams *params, double t)
{
  return params->subtract ? t : 0.0;
}

IMK_SHCENTROID_INLINE double
imk_shcentroid_min_flux (const ImkShcentroidParams *params, double own)
{
  return own == own ? own : params->min_flux;
}

/* Σ 1, Σ u, Σ y, Σ u^2 and Σ y^2 of a cell in which every sample takes part. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_fill_geometry (ImkShcentroidSums *s, uint64_t w, uint64_t h)
{
  s->n = w * h;
  s->nu = w * (w - 1) / 2 * h;
  s->ny = h * (h - 1) / 2 * w;
  s->nuu = w * (w - 1) * (2 * w - 1) / 6 * h;
  s->nyy = h * (h - 1) * (2 * h - 1) / 6 * w;
}

/* A mean of positions lies between them; this one may not when T n is so
 * close to m that their difference is only rounding. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_clamp (double c, double first, double last)
{
  c = c < first ? first : c;
  return c > last ? last : c;
}

/* No branches: compilers make vector code of a loop around it. */
IMK_SHCENTROID_INLINE ImkShcentroidCentre
imk_shcentroid_centre (double v, double vu, double vy, double n, double nu,
    double ny, double pedestal, double min_flux, double last_x, double last_y)
{
  double flux = v - pedestal * n;
  ImkShcentroidCentre centre;

  centre.x = imk_shcentroid_clamp ((vu - pedestal * nu) / flux, 0.0, last_x);
  centre.y = imk_shcentroid_clamp ((vy - pedestal * ny) / flux, 0.0, last_y);
  centre.valid = (flux > 0.0) & (flux >= min_flux);
  centre.outside = false;
  centre.flux = flux > 0.0 ? flux : 0.0;
  return centre;
}

/* Σ (u - c)^2 weighted, from its moments. Rounding may push an exact 0 below
 * it, a gain close to 0 may overflow. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_variance (double c, double v, double vu, double vuu, double n,
    double nu, double nuu, double flux, const ImkShcentroidParams *params)
{
  double photon = vuu - 2.0 * c * vu + c * c * v;
  double read = nuu - 2.0 * c * nu + c * c * n;
  double variance;

  photon = photon > 0.0 ? photon : 0.0;
  read = read > 0.0 ? read : 0.0;
  variance =
      (photon / params->gain + params->read_noise * params->read_noise * read) /
      (flux * flux);
  return variance < 3e38 ? variance : 3e38;
}

IMK_SHCENTROID_INLINE uint32_t
imk_shcentroid_flags (double max, double flux, double min_flux,
    const ImkShcentroidRect *cell, const ImkShcentroidParams *params)
{
  uint32_t flags = cell->flags;

  if (!(flux > 0.0))
    flags |= IMK_SHCENTROID_NO_FLUX;
  if (flux < min_flux)
    flags |= IMK_SHCENTROID_LOW_FLUX;
  if (params->saturation > 0.0 && max >= params->saturation)
    flags |= IMK_SHCENTROID_SATURATED;
  return flags;
}

/* x, y, dx and dy, by the policy where the cell is not valid. @held: x and y of
 * the last valid frame, looked at under INVALID_HOLD only. @fresh: nothing is
 * held yet. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_place (ImkShcentroidRow *row, double x, double y, bool valid,
    const ImkShcentroidRect *cell, const ImkShcentroidParams *params,
    bool fresh, double *held)
{
  bool hold = params->invalid_policy == IMK_SHCENTROID_INVALID_HOLD;

  if (!valid) {
    x = hold && !fresh ? held[0] : cell->ref_x;
    y = hold && !fresh ? held[1] : cell->ref_y;
  }
  if (hold) {
    held[0] = x;
    held[1] = y;
  }
  row->field[IMK_SHCENTROID_X] = x;
  row->field[IMK_SHCENTROID_Y] = y;
  row->field[IMK_SHCENTROID_DX] = (x - cell->ref_x) * params->slope_scale;
  row->field[IMK_SHCENTROID_DY] = (y - cell->ref_y) * params->slope_scale;
  if (!valid && params->invalid_policy == IMK_SHCENTROID_INVALID_NAN)
    for (int i = IMK_SHCENTROID_X; i <= IMK_SHCENTROID_DY; i++)
      row->field[i] = imk_shcentroid_nan ();
}

/* The fields that only FIELDS_ALL reports. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_describe (ImkShcentroidRow *row, ImkShcentroidCentre centre,
    const ImkShcentroidSums *s, const ImkShcentroidRect *cell,
    const ImkShcentroidParams *params)
{
  double min_flux = imk_shcentroid_min_flux (params, cell->min_flux);
  bool nan = params->invalid_policy == IMK_SHCENTROID_INVALID_NAN;
  double var_x = nan ? imk_shcentroid_nan () : 0.0;
  double var_y = var_x;

  if (centre.valid) {
    var_x = imk_shcentroid_variance (centre.x, imk_shcentroid_real (s->v),
        imk_shcentroid_real (s->vu), imk_shcentroid_wide_value (s->vuu),
        imk_shcentroid_real (s->n), imk_shcentroid_real (s->nu),
        imk_shcentroid_real (s->nuu), centre.flux, params);
    var_y = imk_shcentroid_variance (centre.y, imk_shcentroid_real (s->v),
        imk_shcentroid_real (s->vy), imk_shcentroid_wide_value (s->vyy),
        imk_shcentroid_real (s->n), imk_shcentroid_real (s->ny),
        imk_shcentroid_real (s->nyy), centre.flux, params);
  }
  row->field[IMK_SHCENTROID_FLUX] = centre.flux;
  row->field[IMK_SHCENTROID_FLUX_RAW] = imk_shcentroid_real (s->raw);
  row->field[IMK_SHCENTROID_MAX] = s->max;
  row->field[IMK_SHCENTROID_VAR_X] = var_x;
  row->field[IMK_SHCENTROID_VAR_Y] = var_y;
  row->field[IMK_SHCENTROID_FLAGS] =
      imk_shcentroid_flags (s->max, centre.flux, min_flux, cell, params);
}

/* The whole row of a cell; of @s only what @fields needs has to be there.
 * @pedestal: what is subtracted from each sample that takes part */
IMK_SHCENTROID_INLINE void
imk_shcentroid_finish (ImkShcentroidRow *row, const ImkShcentroidSums *s,
    const ImkShcentroidRect *cell, const ImkShcentroidParams *params,
    double pedestal, ImkShcentroidFields fields, bool fresh, double *held)
{
  ImkShcentroidCentre centre = imk_shcentroid_centre (
      imk_shcentroid_real (s->v), imk_shcentroid_real (s->vu),
      imk_shcentroid_real (s->vy), imk_shcentroid_real (s->n),
      imk_shcentroid_real (s->nu), imk_shcentroid_real (s->ny), pedestal,
      imk_shcentroid_min_flux (params, cell->min_flux), cell->width - 1.0,
      cell->height - 1.0);

  imk_shcentroid_place (row, cell->x + centre.x, cell->y + centre.y,
      centre.valid, cell, params, fresh, held);
  if (fields == IMK_SHCENTROID_FIELDS_ALL)
    imk_shcentroid_describe (row, centre, s, cell, params);
  else /* of these only the ones of an invalid cell are reported */
    row->field[IMK_SHCENTROID_FLAGS] = imk_shcentroid_flags (0.0, centre.flux,
        imk_shcentroid_min_flux (params, cell->min_flux), cell, params);
}

/* Returns: what the array of flags has for @row */
IMK_SHCENTROID_INLINE uint8_t
imk_shcentroid_flag_byte (const ImkShcentroidRow *row, bool all)
{
  uint32_t flags = (uint32_t) row->field[IMK_SHCENTROID_FLAGS];

  return (uint8_t) (all ? flags : flags & IMK_SHCENTROID_INVALID_MASK);
}
