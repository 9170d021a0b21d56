/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The arithmetic behind the peak of the surface, for both backends: the same
 * sequence of float64 operations, without contraction. */
#pragma once

#include <math.h>
#include <stdint.h>

#include "insarxcorr/insarxcorr-backend.h"

#if defined(__CUDACC__)
#define IMK_INSARXCORR_FUNC static __host__ __device__ inline
#else
#define IMK_INSARXCORR_FUNC static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of A and B are cut to this: products of two of them, summed over the
 * largest template, stay below 2^63. Samples of 16 bits reach 2^17. */
#define IMK_INSARXCORR_LARGEST 1048575.0f

/* Returns: @value without its fraction */
IMK_INSARXCORR_FUNC int32_t
imk_insarxcorr_cut (float value)
{
  value = value < IMK_INSARXCORR_LARGEST ? value : IMK_INSARXCORR_LARGEST;
  return (int32_t) (value > -IMK_INSARXCORR_LARGEST ? value
                                                    : -IMK_INSARXCORR_LARGEST);
}

/* Returns: column 5 of GMTSAR, 0..100, from sums of A B, A A and B B */
IMK_INSARXCORR_FUNC double
imk_insarxcorr_correlation (int64_t ab, int64_t aa, int64_t bb)
{
  double norm = sqrt ((double) aa * (double) bb);

  return norm > 0 ? 100.0 * fabs ((double) ab) / norm : 0.0;
}

/* Returns: a sample of the window around the peak of @largest */
IMK_INSARXCORR_FUNC double
imk_insarxcorr_weigh (double sample, double largest)
{
  return sqrt (sqrt (sample / largest));
}

/* Where the patch @p has its peak: lag (@dx, @dy), in steps of the finer
 * columns and in lines, the fine peak included; and what else is known. */
typedef struct ImkInsarxcorrPeak {
  double dx, dy;
  double correlation, valid;
  uint32_t flags;
} ImkInsarxcorrPeak;

IMK_INSARXCORR_FUNC void
imk_insarxcorr_finish (const ImkInsarxcorrConfig *c,
    const ImkInsarxcorrPatch *p, const ImkInsarxcorrPeak *peak, double *out)
{
  uint32_t flags = p->flags | peak->flags;

  if (peak->valid < c->min_valid)
    flags |= IMK_INSARXCORR_NO_DATA;
  if (!(rint (peak->correlation * 100) / 100 > c->min_correlation))
    flags |= IMK_INSARXCORR_LOW;
  out[IMK_INSARXCORR_X] = p->x;
  out[IMK_INSARXCORR_Y] = p->y;
  out[IMK_INSARXCORR_DX] = -peak->dx / c->range_interp + p->shift_x;
  out[IMK_INSARXCORR_DY] = -peak->dy + p->shift_y;
  out[IMK_INSARXCORR_CORRELATION] = peak->correlation;
  out[IMK_INSARXCORR_VALID] = peak->valid;
  out[IMK_INSARXCORR_FLAGS] = flags;
}

/* The peak of a surface without one, a patch without data: what GMTSAR prints.
 */
IMK_INSARXCORR_FUNC void
imk_insarxcorr_no_peak (const ImkInsarxcorrConfig *c, ImkInsarxcorrPeak *peak)
{
  double fine = c->interp > 1 ? 1.0 / c->interp : 0.0;

  peak->dx = -(double) c->xsearch - fine;
  peak->dy = -(double) c->ysearch - fine;
  peak->correlation = 0;
  peak->flags = IMK_INSARXCORR_NO_DATA | IMK_INSARXCORR_EDGE;
}

/* Interpolation of 8 samples to 8 F by their spectrum, with zeros in its
 * middle; the bin of the Nyquist frequency goes to the negative half whole.
 * So sample n / F is sum_i w(n, i) W(i) with
 *   w(n, i) = 1/8 sum_k exp (i 2 pi k (n / F - i) / 8), k = -4..3,
 * whose imaginary part is that of k = -4 alone, -sin (pi n / F) (-1)^i / 8.
 * Of the two-dimensional result GMTSAR takes the real part: */
typedef struct ImkInsarxcorrZoom {
  uint32_t interp;
  double *real;  /* [8 F][8] */
  double *sines; /* [8 F]: sin (pi n / F) / 8 */
} ImkInsarxcorrZoom;

/* Returns: bytes of the tables */
static inline size_t
imk_insarxcorr_zoom_size (uint32_t interp)
{
  return (size_t) IMK_INSARXCORR_WINDOW * interp * (IMK_INSARXCORR_WINDOW + 1) *
         sizeof (double);
}

/* Fills @zoom over @tables, imk_insarxcorr_zoom_size () bytes. */
static inline void
imk_insarxcorr_zoom_init (
    ImkInsarxcorrZoom *zoom, uint32_t interp, double *tables)
{
  const uint32_t n_fine = IMK_INSARXCORR_WINDOW * interp;
  const double pi = 3.14159265358979323846;

  zoom->interp = interp;
  zoom->real = tables;
  zoom->sines = tables + (size_t) n_fine * IMK_INSARXCORR_WINDOW;
  for (uint32_t n = 0; n < n_fine; n++) {
    for (int i = 0; i < IMK_INSARXCORR_WINDOW; i++) {
      double t = (double) n / interp - i, sum = 0;

      for (int k = -4; k < 4; k++)
        sum += cos (2 * pi * k * t / IMK_INSARXCORR_WINDOW);
      zoom->real[n * IMK_INSARXCORR_WINDOW + i] = sum / IMK_INSARXCORR_WINDOW;
    }
    zoom->sines[n] = sin (pi * n / interp) / IMK_INSARXCORR_WINDOW;
  }
}

#ifdef __cplusplus
}
#endif
