/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The arithmetic behind the surface, for both backends: the same sequence of
 * float64 operations, without contraction. */
#pragma once

#include <math.h>
#include <stdint.h>

#include "insarxcorr/insarxcorr-backend.h"

#if defined(__CUDACC__)
#define IMK_INSARXCORR_FUNC static __host__ __device__ inline
#else
#define IMK_INSARXCORR_FUNC static inline
#endif

IMK_BEGIN_DECLS

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

/* Returns: GMTSAR's -time4, 0..100, from sums of AA BB, AAAA and BBBB */
IMK_INSARXCORR_FUNC double
imk_insarxcorr_gatelli (double aabb, double aaaa, double bbbb)
{
  double norm = sqrt (aaaa * bbbb);
  double gamma = norm > 0 ? aabb / norm : 0;

  return gamma > 0.5 ? 100 * sqrt (2 * gamma - 1) : 0;
}

/* Returns: a sample of the surface of PRECISE, 0..1. @ts: sum of the template
 * times what lies under it; @tt: of its squares; @s, @ss: of what lies under
 * it, and of the squares, over @n samples */
IMK_INSARXCORR_FUNC float
imk_insarxcorr_normalise (double ts, double tt, double s, double ss, double n)
{
  double variance = ss - s * s / n, gamma;

  /* of a flat spot, rounding is all that is left */
  if (!(tt > 0 && variance > 1e-9 * ss))
    return 0;
  gamma = ts / sqrt (tt * variance);
  return gamma > 0 ? gamma < 1 ? (float) gamma : 1.0f : 0.0f;
}

/* How samples turn from each to the next: sums over @n_samples, of which
 * @energy are the squares. */
typedef struct ImkInsarxcorrTurns {
  double x_re, x_im, y_re, y_im; /* along lines and across them */
  double energy, n_samples;
} ImkInsarxcorrTurns;

/* A white spectrum has no middle, but turns of chance: it is taken as it is,
 * or a part of it would be turned the other way.
 * Returns: the bin, of @n, around which a spectrum lies whose samples turn by
 * the angle of (@re, @im) from each to the next, 0..n-1 */
IMK_INSARXCORR_FUNC uint32_t
imk_insarxcorr_centre_bin (
    const ImkInsarxcorrTurns *turns, double re, double im, uint32_t n)
{
  const double two_pi = 6.28318530717958647692;
  const double chance = 12 * turns->energy / turns->n_samples * turns->energy;
  int32_t bin = (int32_t) rint (atan2 (im, re) / two_pi * n);

  if (!(re * re + im * im > chance))
    return 0;
  return (uint32_t) (bin < 0 ? bin + (int32_t) n : bin) % n;
}

/* Returns: where, in the finer patch of @side, that begins which is looked at:
 * the first column, or the first line */
IMK_INSARXCORR_FUNC uint32_t
imk_insarxcorr_fine_start (const ImkInsarxcorrPlan *plan, int side, bool column)
{
  const ImkInsarxcorrConfig *c = &plan->config;
  uint32_t window = column ? c->window_width : c->window_height;
  uint32_t search = column ? c->xsearch : c->ysearch;
  uint32_t size = column ? plan->patch_width[side] : plan->patch_height[side];
  uint32_t interp = column ? plan->fine.interp_x : plan->fine.interp_y;

  return (size / 2 - window / 2 - (side ? search : 0)) * interp;
}

/* Returns: what transforms there and back have multiplied amplitudes by, undone
 */
IMK_INSARXCORR_FUNC float
imk_insarxcorr_fine_scale (const ImkInsarxcorrPlan *plan, int side)
{
  return 1.0f /
         ((float) plan->patch_width[side] * (float) plan->patch_height[side]);
}

/* A float that is not negative, as an integer of the same order; one that is no
 * number is above all others. */
IMK_INSARXCORR_FUNC uint32_t
imk_insarxcorr_rank (float value)
{
  union {
    float value;
    uint32_t bits;
  } u;

  u.value = value;
  return u.bits & 0x7fffffff;
}

/* What is known of a patch before it is written down: lag (@dx, @dy), in steps
 * of the finer columns and lines, the fine peak included. */
typedef struct ImkInsarxcorrPeak {
  double dx, dy;
  double correlation, peak, snr;
  double covariance[3]; /* xx, yy, xy */
  double valid;
  uint32_t flags;
} ImkInsarxcorrPeak;

/* The peak of a surface without one, a patch without data. In COMPAT what
 * GMTSAR prints. */
IMK_INSARXCORR_FUNC void
imk_insarxcorr_no_peak (const ImkInsarxcorrConfig *c, ImkInsarxcorrPeak *peak)
{
  double fine = c->interp > 1 ? 1.0 / c->interp : 0.0;

  peak->dx = peak->dy = 0;
  if (c->mode == IMK_INSARXCORR_COMPAT) {
    peak->dx = -(double) c->xsearch - fine;
    peak->dy = -(double) c->ysearch - fine;
  }
  peak->correlation = peak->peak = peak->snr = 0;
  peak->covariance[0] = peak->covariance[1] = -1;
  peak->covariance[2] = 0;
  peak->flags = IMK_INSARXCORR_NO_DATA | IMK_INSARXCORR_EDGE;
}

/* The row of results of a patch. In COMPAT the template is the secondary's, in
 * PRECISE the reference's: so lags have opposite signs. */
IMK_INSARXCORR_FUNC void
imk_insarxcorr_finish (const ImkInsarxcorrPlan *plan,
    const ImkInsarxcorrPatch *p, const ImkInsarxcorrPeak *peak, double *out)
{
  const ImkInsarxcorrConfig *c = &plan->config;
  double sign = c->mode == IMK_INSARXCORR_COMPAT ? -1 : 1;
  uint32_t flags = p->flags | peak->flags;

  if (peak->valid < c->min_valid)
    flags |= IMK_INSARXCORR_NO_DATA;
  if (!(rint (peak->correlation * 100) / 100 > c->min_correlation))
    flags |= IMK_INSARXCORR_LOW;
  out[IMK_INSARXCORR_X] = p->x;
  out[IMK_INSARXCORR_Y] = p->y;
  out[IMK_INSARXCORR_DX] = sign * peak->dx / plan->fine.interp_x + p->shift_x;
  out[IMK_INSARXCORR_DY] = sign * peak->dy / plan->fine.interp_y + p->shift_y;
  out[IMK_INSARXCORR_CORRELATION] = peak->correlation;
  out[IMK_INSARXCORR_PEAK] = peak->peak;
  out[IMK_INSARXCORR_SNR] = peak->snr;
  out[IMK_INSARXCORR_COV_XX] = peak->covariance[0];
  out[IMK_INSARXCORR_COV_YY] = peak->covariance[1];
  out[IMK_INSARXCORR_COV_XY] = peak->covariance[2];
  out[IMK_INSARXCORR_VALID] = peak->valid;
  out[IMK_INSARXCORR_FLAGS] = flags;
}

/* The row of a patch that the mask leaves out. */
IMK_INSARXCORR_FUNC void
imk_insarxcorr_finish_masked (
    const ImkInsarxcorrPlan *plan, const ImkInsarxcorrPatch *p, double *out)
{
  ImkInsarxcorrPeak peak = {0};

  peak.covariance[0] = peak.covariance[1] = -1;
  imk_insarxcorr_finish (plan, p, &peak, out);
}

/* How well an offset is known: of @n samples that correlate by g, and a surface
 * of curvature D = -grad grad g at its peak,
 *   cov = 2 (1 - g) / n D^-1 + (1 - g)^2 / (2 n) D^-2.
 * The first term is that of least squares, the second what noise alone gives.
 * @g: 3x3 of the surface, normalised to 0..1; @scale_x, @scale_y: its samples a
 * column and line */
IMK_INSARXCORR_FUNC void
imk_insarxcorr_covariance (const double g[3][3], double scale_x, double scale_y,
    double n, double covariance[3])
{
  double xx = (2 * g[1][1] - g[1][0] - g[1][2]) * scale_x * scale_x;
  double yy = (2 * g[1][1] - g[0][1] - g[2][1]) * scale_y * scale_y;
  double xy = (g[0][2] + g[2][0] - g[0][0] - g[2][2]) / 4 * scale_x * scale_y;
  double det = xx * yy - xy * xy, rest = 1 - g[1][1];
  double first = 2 * rest / n, second = rest * rest / (2 * n);
  double ixx, iyy, ixy;

  covariance[0] = covariance[1] = -1;
  covariance[2] = 0;
  if (!(xx > 0 && yy > 0 && det > 1e-9 * xx * yy) || rest < 0)
    return;
  ixx = yy / det;
  iyy = xx / det;
  ixy = -xy / det;
  covariance[0] = first * ixx + second * (ixx * ixx + ixy * ixy);
  covariance[1] = first * iyy + second * (iyy * iyy + ixy * ixy);
  covariance[2] = first * ixy + second * ixy * (ixx + iyy);
}

/* The surface around its largest sample, as it is refined. */
typedef double ImkInsarxcorrWindow[IMK_INSARXCORR_WINDOW]
                                  [IMK_INSARXCORR_WINDOW];

/* Returns: a sample of the window: COMPAT weighs by the fourth root */
IMK_INSARXCORR_FUNC double
imk_insarxcorr_weigh (
    const ImkInsarxcorrConfig *c, double sample, double largest)
{
  return c->mode == IMK_INSARXCORR_COMPAT ? sqrt (sqrt (sample / largest))
                                          : sample;
}

/* From here on @v, @u is the largest lag, @sum of squares of all lags. Fills in
 * what does not depend on the fine peak; @largest is not 0. */
IMK_INSARXCORR_FUNC void
imk_insarxcorr_qualify (const ImkInsarxcorrPlan *plan, uint32_t v, uint32_t u,
    double sum, const ImkInsarxcorrWindow samples, ImkInsarxcorrPeak *peak)
{
  const uint32_t half = IMK_INSARXCORR_WINDOW / 2;
  const ImkInsarxcorrFine *f = &plan->fine;
  double largest = samples[half][half], near = 0, n, g[3][3];
  double unit = peak->correlation / 100 / largest;
  int64_t n_near = 0;
  bool inside = u >= 1 && v >= 1 && u + 1 < f->n_lags_y && v + 1 < f->n_lags_x;

  for (uint32_t i = 0; i < IMK_INSARXCORR_WINDOW; i++)
    for (uint32_t j = 0; j < IMK_INSARXCORR_WINDOW; j++) {
      near += samples[i][j] * samples[i][j];
      /* Negative values wrap to large numbers. */
      n_near += u + i - half < f->n_lags_y && v + j - half < f->n_lags_x;
    }
  n = (double) ((int64_t) f->n_lags_x * f->n_lags_y - n_near);
  /* less is the rounding of two sums */
  peak->snr =
      sum - near > 1e-12 * sum ? largest * largest * n / (sum - near) : 0;
  if (u < half || v < half || u + half > f->n_lags_y || v + half > f->n_lags_x)
    peak->flags |= IMK_INSARXCORR_EDGE;
  for (uint32_t i = 0; i < 3; i++)
    for (uint32_t j = 0; j < 3; j++)
      g[i][j] = unit * samples[half - 1 + i][half - 1 + j];
  peak->covariance[0] = peak->covariance[1] = -1;
  peak->covariance[2] = 0;
  if (inside)
    imk_insarxcorr_covariance (
        g, f->interp_x, f->interp_y, plan->n_samples, peak->covariance);
}

/* Returns: by how much the top of the parabola through @a, @b, @c lies beside
 * @b, -0.5..0.5 */
IMK_INSARXCORR_FUNC double
imk_insarxcorr_parabola (double a, double b, double c)
{
  double bend = 2 * b - a - c, at = bend > 0 ? (c - a) / (2 * bend) : 0;

  return at > 0.5 ? 0.5 : at < -0.5 ? -0.5 : at;
}

/* Returns: @at + @step - 1, within [0, n) */
IMK_INSARXCORR_FUNC uint32_t
imk_insarxcorr_beside (uint32_t at, uint32_t step, uint32_t n)
{
  if (step == 0)
    return at > 0 ? at - 1 : 0;
  return at + step - 1 < n ? at + step - 1 : n - 1;
}

/* @fine: the finer window at its largest sample (@g, @h), and around it */
IMK_INSARXCORR_FUNC void
imk_insarxcorr_refine (const ImkInsarxcorrPlan *plan, uint32_t v, uint32_t u,
    uint32_t h, uint32_t g, const double fine[3][3], ImkInsarxcorrPeak *peak)
{
  const ImkInsarxcorrConfig *c = &plan->config;
  const int half = IMK_INSARXCORR_WINDOW / 2;
  double value = fine[1][1], x = h, y = g;

  if (c->mode == IMK_INSARXCORR_PRECISE) {
    x += imk_insarxcorr_parabola (fine[1][0], value, fine[1][2]);
    y += imk_insarxcorr_parabola (fine[0][1], value, fine[2][1]);
    peak->peak = 100 * value;
  } else {
    peak->peak = peak->correlation * value * value * value * value;
  }
  peak->peak = peak->peak < 100 ? peak->peak : 100;
  peak->dx = (double) v - plan->fine.n_lags_x / 2 + x / c->interp - half;
  peak->dy = (double) u - plan->fine.n_lags_y / 2 + y / c->interp - half;
}

/* What the bins of a line of @n are multiplied by, so that its transform back,
 * which does not divide, gives the samples m / @interp later, m < @interp. Bins
 * from n / 2 on are negative frequencies.
 * @turns: (out): [interp][n][2] */
static inline void
imk_insarxcorr_fill_turns (uint32_t interp, uint32_t n, float *turns)
{
  const double pi = 3.14159265358979323846;

  for (uint32_t m = 0; m < interp; m++)
    for (uint32_t k = 0; k < n; k++) {
      double frequency = k < n / 2 ? (double) k : (double) k - n;
      double angle = 2 * pi * frequency * m / ((double) interp * n);

      *turns++ = (float) (cos (angle) / n);
      *turns++ = (float) (sin (angle) / n);
    }
}

/* Interpolation of 8 samples to 8 F by their spectrum, with zeros in its
 * middle; the bin of the Nyquist frequency goes to the negative half whole.
 * So sample n / F is sum_i w(n, i) W(i) with
 *   w(n, i) = 1/8 sum_k exp (i 2 pi k (n / F - i) / 8), k = -4..3,
 * whose imaginary part is that of k = -4 alone, -sin (pi n / F) (-1)^i / 8.
 * Of the two-dimensional result GMTSAR takes the real part: */
typedef struct ImkInsarxcorrZoom {
  uint32_t interp;
  const double *real;  /* [8 F][8] */
  const double *sines; /* [8 F]: sin (pi n / F) / 8 */
} ImkInsarxcorrZoom;

/* Returns: bytes of the tables */
static inline size_t
imk_insarxcorr_zoom_size (uint32_t interp)
{
  return (size_t) IMK_INSARXCORR_WINDOW * interp * (IMK_INSARXCORR_WINDOW + 1) *
         sizeof (double);
}

/* Fills @tables, imk_insarxcorr_zoom_size () bytes. */
static inline void
imk_insarxcorr_zoom_fill (uint32_t interp, double *tables)
{
  const uint32_t n_fine = IMK_INSARXCORR_WINDOW * interp;
  const double pi = 3.14159265358979323846;

  for (uint32_t n = 0; n < n_fine; n++) {
    for (int i = 0; i < IMK_INSARXCORR_WINDOW; i++) {
      double t = (double) n / interp - i, sum = 0;

      for (int k = -4; k < 4; k++)
        sum += cos (2 * pi * k * t / IMK_INSARXCORR_WINDOW);
      tables[n * IMK_INSARXCORR_WINDOW + i] = sum / IMK_INSARXCORR_WINDOW;
    }
    tables[(size_t) n_fine * IMK_INSARXCORR_WINDOW + n] =
        sin (pi * n / interp) / IMK_INSARXCORR_WINDOW;
  }
}

/* Returns: the zoom over @tables that have been filled */
IMK_INSARXCORR_FUNC ImkInsarxcorrZoom
imk_insarxcorr_zoom_over (uint32_t interp, const double *tables)
{
  ImkInsarxcorrZoom zoom;

  zoom.interp = interp;
  zoom.real = tables;
  zoom.sines =
      tables + (size_t) IMK_INSARXCORR_WINDOW * IMK_INSARXCORR_WINDOW * interp;
  return zoom;
}

/* Returns: row @i of the window, interpolated, at @n */
IMK_INSARXCORR_FUNC double
imk_insarxcorr_zoom_row (const ImkInsarxcorrZoom *zoom,
    const ImkInsarxcorrWindow window, uint32_t i, uint32_t n)
{
  double sum = 0;

  for (uint32_t j = 0; j < IMK_INSARXCORR_WINDOW; j++)
    sum += zoom->real[n * IMK_INSARXCORR_WINDOW + j] * window[i][j];
  return sum;
}

/* Returns: sum (-1)^(i+j) W(i, j) */
IMK_INSARXCORR_FUNC double
imk_insarxcorr_zoom_alternating (const ImkInsarxcorrWindow window)
{
  double sum = 0;

  for (uint32_t i = 0; i < IMK_INSARXCORR_WINDOW; i++)
    for (uint32_t j = 0; j < IMK_INSARXCORR_WINDOW; j++)
      sum += (i + j) % 2 ? -window[i][j] : window[i][j];
  return sum;
}

/* Returns: the finer window at column @n of line @g. @rows: [8][8 F], what
 * imk_insarxcorr_zoom_row makes */
IMK_INSARXCORR_FUNC double
imk_insarxcorr_zoom_at (const ImkInsarxcorrZoom *zoom, double alternating,
    const double *rows, uint32_t n, uint32_t g)
{
  uint32_t n_fine = IMK_INSARXCORR_WINDOW * zoom->interp;
  double sum = 0;

  for (uint32_t i = 0; i < IMK_INSARXCORR_WINDOW; i++)
    sum += zoom->real[g * IMK_INSARXCORR_WINDOW + i] * rows[i * n_fine + n];
  return sum - zoom->sines[g] * alternating * zoom->sines[n];
}

IMK_END_DECLS
