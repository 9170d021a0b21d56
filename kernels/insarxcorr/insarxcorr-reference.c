/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the top: where a patch is, its samples in both images, finer amplitudes
 * of them, the surface over the lags, its peak, and what the peak is worth.
 * COMPAT is GMTSAR's xcorr (Romano and Lapegna 2021, algorithm 1), PRECISE is
 * our own. In COMPAT the template is cut from the secondary, in PRECISE from
 * the reference. x and columns are range, y and lines azimuth, in samples. */
#include "insarxcorr/insarxcorr-reference.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "core/sample.h"

enum { WINDOW = 8, HALF = WINDOW / 2, MARGIN = 8 };

typedef double complex Complex;

/* Complex samples, [height][width]. */
typedef struct Patch {
  int width, height;
  Complex *z;
} Patch;

/* Amplitudes, or a surface, [height][width]. */
typedef struct Plane {
  int width, height;
  double *v;
} Plane;

static Patch
patch_new (int width, int height)
{
  return (Patch){width, height,
      calloc ((size_t) width * (size_t) height, sizeof (Complex))};
}

static Plane
plane_new (int width, int height)
{
  return (Plane){width, height,
      calloc ((size_t) width * (size_t) height, sizeof (double))};
}

static bool
is_compat (const ImkInsarxcorrConfig *c)
{
  return c->mode == IMK_INSARXCORR_COMPAT;
}

/* --- where a patch is -------------------------------------------------- */

/* Returns: the first even length from @n on without a prime factor above 7 */
static int
good_length (int n)
{
  for (n += n % 2;; n += 2) {
    int rest = n;

    for (int f = 2; f <= 7; f++)
      while (rest % f == 0)
        rest /= f;
    if (rest == 1)
      return n;
  }
}

/* Returns: samples of a patch of @side along an axis */
static int
patch_length (
    const ImkInsarxcorrConfig *c, int side, uint32_t window, uint32_t search)
{
  if (is_compat (c))
    return 4 * (int) search;
  return good_length (
      (int) window + (side ? 2 * (int) search : 0) + 2 * MARGIN);
}

/* Returns: the centre of patch @i of an axis of @length samples; GMTSAR divides
 * by @n, and its first patch is @first */
static int
place (const ImkInsarxcorrConfig *c, int i, int first, int n, int patch,
    int length, int step)
{
  int room = length - 3 * patch / 2;

  if (c->grid == IMK_INSARXCORR_GRID_STEP)
    return patch / 2 + i * step;
  if (c->grid == IMK_INSARXCORR_GRID_EVEN)
    return patch + (i + first) * room / n;
  return patch + (i + first) * (room / n);
}

static bool
is_masked (const ImkInsarxcorrConfig *c, int x, int y)
{
  uint32_t w = c->width[0], h = c->height[0];

  if (!c->mask || x < 0 || y < 0 || (uint32_t) x >= w || (uint32_t) y >= h)
    return false;
  return !c->mask[(uint32_t) y * (uint64_t) c->mask_height / h * c->mask_width +
                  (uint32_t) x * (uint64_t) c->mask_width / w];
}

/* --- samples ----------------------------------------------------------- */

/* Columns beside the image are 0, lines above and below it repeat its first and
 * its last; samples that are not finite are 0. */
static Complex
get_sample (const ImkImage *image, int x, int y)
{
  int last = (int) image->height - 1;
  uint32_t line = (uint32_t) (y < 0 ? 0 : y > last ? last : y);
  double re, im = 0;

  if (x < 0 || x >= (int) image->width)
    return 0;
  re = imk_sample_get (image, (uint32_t) x, line, 0);
  if (image->type != IMK_TYPE_F32)
    im = imk_sample_get (image, (uint32_t) x, line, 1);
  return isfinite (re) && isfinite (im) ? re + I * im : 0;
}

/* The patch around (@x, @y). @valid: lowered to the part of it that is data */
static Patch
take_patch (const ImkInsarxcorrConfig *c, const ImkImage *image, int side,
    int x, int y, double *valid)
{
  Patch p = patch_new (patch_length (c, side, c->window_width, c->xsearch),
      patch_length (c, side, c->window_height, c->ysearch));
  int n = p.width * p.height, n_valid = 0;

  for (int i = 0; i < n; i++) {
    p.z[i] = get_sample (
        image, x - p.width / 2 + i % p.width, y - p.height / 2 + i / p.width);
    n_valid += p.z[i] != 0;
  }
  *valid = fmin (*valid, (double) n_valid / n);
  return p;
}

/* Returns: the phase between neighbours (@dx, @dy) apart, of both patches
 * together, in turns; 0 where white noise could have it by chance */
static double
find_carrier (const Patch p[2], int dx, int dy)
{
  double energy = 0, n = 0;
  Complex turns = 0;

  for (int s = 0; s < 2; s++)
    for (int y = 0; y < p[s].height; y++)
      for (int x = 0; x < p[s].width; x++) {
        const Complex *z = &p[s].z[y * p[s].width + x];

        energy += creal (*z * conj (*z));
        n++;
        if (x + dx < p[s].width && y + dy < p[s].height)
          turns += z[dy * p[s].width + dx] * conj (*z);
      }
  return creal (turns * conj (turns)) > 12 * energy * energy / n
             ? carg (turns) / (2 * M_PI)
             : 0;
}

/* Moves the middle of the spectra, to whole bins, to 0. */
static void
demodulate (Patch p[2])
{
  double turn_x = find_carrier (p, 1, 0), turn_y = find_carrier (p, 0, 1);

  for (int s = 0; s < 2; s++) {
    double kx = rint (turn_x * p[s].width), ky = rint (turn_y * p[s].height);

    for (int y = 0; y < p[s].height; y++)
      for (int x = 0; x < p[s].width; x++)
        p[s].z[y * p[s].width + x] *=
            cexp (-2 * M_PI * I * (kx * x / p[s].width + ky * y / p[s].height));
  }
}

/* --- finer amplitudes -------------------------------------------------- */

/* Returns: what sample 0 of @n is worth at @t, when its spectrum gets zeros in
 * its middle: 1 / n sum exp (i 2 pi k t / n), k = -n / 2..n / 2 - 1 */
static Complex
weight (int n, double t)
{
  Complex sum = 0;

  for (int k = -n / 2; k < n / 2; k++)
    sum += cexp (2 * M_PI * I * k * t / n);
  return sum / n;
}

/* Samples @first..@first + @n - 1 of each line, which becomes @f times finer,
 * and x and y exchanged: done twice, both axes are finer. Frees @p */
static Patch
make_finer (Patch p, int f, int first, int n)
{
  Complex *weights = calloc (2 * (size_t) (f * p.width), sizeof (*weights));
  Patch out = patch_new (p.height, n);

  for (int d = 0; d < 2 * f * p.width; d++)
    weights[d] = weight (p.width, (double) d / f - p.width);
  for (int i = 0; i < n; i++)
    for (int m = 0; m < p.width; m++) {
      Complex w = weights[first + i + f * (p.width - m)];

      for (int y = 0; y < p.height; y++)
        out.z[i * p.height + y] += w * p.z[y * p.width + m];
    }
  free (weights);
  free (p.z);
  return out;
}

/* Amplitudes without their mean. Frees @p */
static Plane
detect (Patch p)
{
  Plane out = plane_new (p.width, p.height);
  int n = p.width * p.height;
  double sum = 0;

  for (int i = 0; i < n; i++)
    sum += out.v[i] = cabs (p.z[i]);
  for (int i = 0; i < n; i++)
    out.v[i] -= sum / n;
  free (p.z);
  return out;
}

/* The whole patch; of finer columns, as many as it has, from its half on. */
static Plane
detect_compat (const ImkInsarxcorrConfig *c, Patch p)
{
  int f = (int) c->range_interp, width = p.width, height = p.height;

  p = make_finer (p, f, f == 1 ? 0 : width / 2, width);
  return detect (make_finer (p, 1, 0, height));
}

/* The window, and on the side of the secondary what is searched. */
static Plane
detect_precise (const ImkInsarxcorrConfig *c, Patch p, int side)
{
  int fx = (int) c->range_interp, fy = (int) c->azimuth_interp;
  int sx = side ? (int) c->xsearch : 0, sy = side ? (int) c->ysearch : 0;
  int w = (int) c->window_width, h = (int) c->window_height;
  int left = p.width / 2 - w / 2 - sx, top = p.height / 2 - h / 2 - sy;

  p = make_finer (p, fx, left * fx, (w + 2 * sx) * fx);
  return detect (make_finer (p, fy, top * fy, (h + 2 * sy) * fy));
}

/* --- the surface ------------------------------------------------------- */

/* Sums over a template t and what lies under it, s. */
typedef struct Sums {
  double ts, tt, ss, ttss, tttt, ssss, s, n;
} Sums;

/* The template is @t from (x0, y0) on, @width x @height, under which @s lies
 * from (x, y) on. @whole: of samples without their fraction */
static Sums
add_up (const Plane *t, int x0, int y0, int width, int height, const Plane *s,
    int x, int y, bool whole)
{
  Sums sums = {.n = (double) width * height};

  for (int j = 0; j < height; j++)
    for (int i = 0; i < width; i++) {
      double a = t->v[(y0 + j) * t->width + x0 + i];
      double b = s->v[(y + j) * s->width + x + i];

      a = whole ? trunc (a) : a;
      b = whole ? trunc (b) : b;
      sums.ts += a * b;
      sums.tt += a * a;
      sums.ss += b * b;
      sums.ttss += a * a * b * b;
      sums.tttt += a * a * a * a;
      sums.ssss += b * b * b * b;
      sums.s += b;
    }
  return sums;
}

/* Lag (@x, @y) of COMPAT: the inner half of the secondary over the
 * reference. */
static Sums
add_up_compat (const Plane planes[2], int x, int y, bool whole)
{
  const Plane *t = &planes[1];

  return add_up (t, t->width / 4, t->height / 4, t->width / 2, t->height / 2,
      &planes[0], x, y, whole);
}

/* Returns: column 5 of GMTSAR, 0..100; @squares: its -time4 */
static double
correlate (const Plane planes[2], int x, int y, bool squares)
{
  Sums s = add_up_compat (planes, x, y, true);
  double norm = squares ? sqrt (s.tttt * s.ssss) : sqrt (s.tt * s.ss);
  double g = norm > 0 ? (squares ? s.ttss : fabs (s.ts)) / norm : 0;

  return 100 * (squares ? sqrt (fmax (2 * g - 1, 0)) : g);
}

static Plane
make_compat (const ImkInsarxcorrConfig *c, const Plane planes[2])
{
  bool squares = c->method == IMK_INSARXCORR_TIME4;
  Plane out = plane_new (planes[0].width / 2, planes[0].height / 2);

  for (int y = 0; y < out.height; y++)
    for (int x = 0; x < out.width; x++)
      out.v[y * out.width + x] =
          c->method == IMK_INSARXCORR_FREQ
              ? fabs (add_up_compat (planes, x, y, false).ts)
              : correlate (planes, x, y, squares);
  return out;
}

/* The normalised correlation, 0..1, where it is above 0. */
static Plane
make_precise (const Plane planes[2])
{
  const Plane *t = &planes[0], *s = &planes[1];
  Plane out = plane_new (s->width - t->width + 1, s->height - t->height + 1);

  for (int y = 0; y < out.height; y++)
    for (int x = 0; x < out.width; x++) {
      Sums u = add_up (t, 0, 0, t->width, t->height, s, x, y, false);
      double variance = u.ss - u.s * u.s / u.n;

      /* of a flat spot, rounding is all that is left */
      if (u.tt > 0 && variance > 1e-9 * u.ss)
        out.v[y * out.width + x] = fmax (u.ts / sqrt (u.tt * variance), 0);
    }
  return out;
}

/* --- its peak ---------------------------------------------------------- */

/* Returns: sample (@x, @y), 0 outside */
static double
get (const Plane *p, int x, int y)
{
  return x >= 0 && y >= 0 && x < p->width && y < p->height
             ? p->v[y * p->width + x]
             : 0;
}

/* Returns: the place of the first largest sample. @lead: lowered to how far
 * below it the second is */
static int
find_largest (const Plane *p, double *lead)
{
  double second = 0;
  int best = 0;

  for (int i = 1; i < p->width * p->height; i++)
    if (p->v[i] > p->v[best]) {
      second = p->v[best];
      best = i;
    } else {
      second = fmax (second, p->v[i]);
    }
  *lead = fmin (*lead, 1 - second / p->v[best]);
  return best;
}

/* The window, @f times finer both ways: of the complex result the real part. */
static Plane
zoom (const Plane *window, int f)
{
  Plane out = plane_new (WINDOW * f, WINDOW * f);
  Complex *weights = calloc ((size_t) (out.width * WINDOW), sizeof (*weights));

  for (int n = 0; n < out.width; n++)
    for (int i = 0; i < WINDOW; i++)
      weights[n * WINDOW + i] = weight (WINDOW, (double) n / f - i);
  for (int y = 0; y < out.height; y++)
    for (int x = 0; x < out.width; x++)
      for (int i = 0; i < WINDOW * WINDOW; i++)
        out.v[y * out.width + x] +=
            window->v[i] * creal (weights[y * WINDOW + i / WINDOW] *
                                  weights[x * WINDOW + i % WINDOW]);
  free (weights);
  return out;
}

/* Returns: the top of the parabola through @a, @b, @c, from @b on */
static double
parabola (double a, double b, double c)
{
  double bend = 2 * b - a - c, at = bend > 0 ? (c - a) / (2 * bend) : 0;

  return fmax (fmin (at, 0.5), -0.5);
}

/* The lag (@dx, @dy) of the largest sample at (@x, @y) and its value, from the
 * finer surface around it. COMPAT takes the fourth root before. */
static double
refine (const ImkInsarxcorrConfig *c, const Plane *surface, int x, int y,
    double *dx, double *dy, double *lead)
{
  double largest = get (surface, x, y), value, fine_x, fine_y, ties = 1;
  Plane window = plane_new (WINDOW, WINDOW), fine;
  int at, h, g;

  for (int i = 0; i < WINDOW * WINDOW; i++) {
    double v = get (surface, x + i % WINDOW - HALF, y + i / WINDOW - HALF);

    window.v[i] = is_compat (c) ? pow (v / largest, 0.25) : v;
  }
  fine = zoom (&window, (int) c->interp);
  at = find_largest (&fine, &ties);
  fine_x = h = at % fine.width;
  fine_y = g = at / fine.width;
  value = fine.v[at];
  if (is_compat (c)) {
    *lead = fmin (*lead, ties);
  } else {
    int end = fine.width - 1, left = h > 0 ? h - 1 : 0;
    int right = h < end ? h + 1 : end, above = g > 0 ? g - 1 : 0;
    int below = g < end ? g + 1 : end;

    fine_x += parabola (get (&fine, left, g), value, get (&fine, right, g));
    fine_y += parabola (get (&fine, h, above), value, get (&fine, h, below));
  }
  *dx = x - surface->width / 2 + fine_x / c->interp - HALF;
  *dy = y - surface->height / 2 + fine_y / c->interp - HALF;
  free (window.v);
  free (fine.v);
  return value;
}

/* The largest^2 over the mean square of all lags that are not in the 8x8 around
 * it. */
static double
signal_to_noise (const Plane *surface, int x, int y)
{
  double sum = 0, largest = get (surface, x, y);
  int n = 0;

  for (int j = 0; j < surface->height; j++)
    for (int i = 0; i < surface->width; i++)
      if (i < x - HALF || i >= x + HALF || j < y - HALF || j >= y + HALF) {
        sum += get (surface, i, j) * get (surface, i, j);
        n++;
      }
  return sum > 0 ? largest * largest * n / sum : 0;
}

/* 2 (1 - g) / n D^-1 + (1 - g)^2 / (2 n) D^-2: g is the correlation, n the
 * samples of the template before they became finer, D = -grad grad g from
 * differences. @out: xx, yy, xy; unknown ones stay as they are */
static void
find_covariance (const Plane *surface, int x, int y, double correlation, int fx,
    int fy, double n, double out[3])
{
  double unit = correlation / 100 / get (surface, x, y), g[3][3];
  double xx, yy, xy, det, rest, a, b;

  if (x < 1 || y < 1 || x + 1 >= surface->width || y + 1 >= surface->height)
    return;
  for (int j = 0; j < 3; j++)
    for (int i = 0; i < 3; i++)
      g[j][i] = unit * get (surface, x - 1 + i, y - 1 + j);
  xx = (2 * g[1][1] - g[1][0] - g[1][2]) * fx * fx;
  yy = (2 * g[1][1] - g[0][1] - g[2][1]) * fy * fy;
  xy = (g[0][2] + g[2][0] - g[0][0] - g[2][2]) / 4 * fx * fy;
  det = xx * yy - xy * xy;
  rest = 1 - g[1][1];
  if (!(xx > 0 && yy > 0 && det > 1e-9 * xx * yy) || rest < 0)
    return;
  a = 2 * rest / n / det;
  b = rest * rest / (2 * n) / (det * det);
  out[0] = a * yy + b * (yy * yy + xy * xy);
  out[1] = a * xx + b * (xx * xx + xy * xy);
  out[2] = -a * xy - b * xy * (xx + yy);
}

/* --- a patch ----------------------------------------------------------- */

/* Fills @out, of which DX and DY are the shift so far, by the lag of the peak.
 * Returns: the flags of the peak */
static unsigned
measure (const ImkInsarxcorrConfig *c, const Plane planes[2], double *out,
    double *lead)
{
  bool compat = is_compat (c);
  Plane surface = compat ? make_compat (c, planes) : make_precise (planes);
  int fx = (int) c->range_interp, fy = compat ? 1 : (int) c->azimuth_interp;
  double n = compat ? 4.0 * c->xsearch * c->ysearch / fx
                    : (double) c->window_width * c->window_height;
  int at = find_largest (&surface, lead);
  int x = at % surface.width, y = at / surface.width;
  double g = surface.v[at], sign = compat ? -1 : 1, dx = 0, dy = 0, value;
  unsigned flags = IMK_INSARXCORR_NO_DATA | IMK_INSARXCORR_EDGE;

  if (g > 0) {
    value = refine (c, &surface, x, y, &dx, &dy, lead);
    if (!compat)
      g = 100 * g;
    else if (c->method == IMK_INSARXCORR_FREQ)
      g = correlate (planes, x, y, false);
    out[IMK_INSARXCORR_CORRELATION] = g;
    out[IMK_INSARXCORR_PEAK] =
        fmin (compat ? g * pow (value, 4) : 100 * value, 100);
    out[IMK_INSARXCORR_SNR] = signal_to_noise (&surface, x, y);
    find_covariance (&surface, x, y, g, fx, fy, n, out + IMK_INSARXCORR_COV_XX);
    flags = x < HALF || y < HALF || x + HALF > surface.width ||
                    y + HALF > surface.height
                ? IMK_INSARXCORR_EDGE
                : 0;
  } else {
    *lead = 1;
    if (compat) { /* what GMTSAR prints then */
      dx = -(double) c->xsearch - (c->interp > 1 ? 1.0 / c->interp : 0);
      dy = -(double) c->ysearch - (c->interp > 1 ? 1.0 / c->interp : 0);
    }
  }
  out[IMK_INSARXCORR_DX] = sign * dx / fx + out[IMK_INSARXCORR_DX];
  out[IMK_INSARXCORR_DY] = sign * dy / fy + out[IMK_INSARXCORR_DY];
  free (surface.v);
  return flags;
}

/* Returns: the flags of what lies beyond the images */
static unsigned
check_inside (const ImkInsarxcorrConfig *c, const Patch p[2], const int x[2],
    const int y[2])
{
  unsigned flags = 0;

  for (int s = 0; s < 2; s++) {
    int left = x[s] - p[s].width / 2, top = y[s] - p[s].height / 2;
    int height = (int) c->height[s];

    if (left < 0 || top < 0 || left + p[s].width > (int) c->width[s] ||
        top + p[s].height > height)
      flags |= IMK_INSARXCORR_OUTSIDE;
    /* lines that repeat the last would correlate by chance */
    if (s && !is_compat (c) && (top >= height || top + p[s].height <= 0))
      flags |= IMK_INSARXCORR_NO_DATA;
  }
  return flags;
}

double
imk_insarxcorr_reference (const ImkInsarxcorrConfig *c,
    const ImkImage images[IMK_INSARXCORR_N_SIDES], uint32_t i, uint32_t j,
    double out[IMK_INSARXCORR_N_FIELDS])
{
  int x[2], y[2];
  double lead = 1, valid = 1;
  unsigned flags;
  Patch p[2];
  Plane planes[2];

  x[0] = place (c, (int) i, 2, (int) c->nx + 3,
      patch_length (c, 1, c->window_width, c->xsearch), (int) c->width[0],
      (int) c->step_x);
  y[0] = place (c, (int) j, 1, (int) c->ny + 1,
      patch_length (c, 1, c->window_height, c->ysearch), (int) c->height[0],
      (int) c->step_y);
  x[1] = x[0] + c->rshift;
  y[1] = y[0] + c->ashift + (int) (y[0] * c->prf_ratio);
  if (c->gross_offsets) {
    x[1] += (int) lrint (c->gross_offsets[2 * (j * c->nx + i)]);
    y[1] += (int) lrint (c->gross_offsets[2 * (j * c->nx + i) + 1]);
  }
  for (int f = 0; f < IMK_INSARXCORR_N_FIELDS; f++)
    out[f] = 0;
  out[IMK_INSARXCORR_X] = x[0];
  out[IMK_INSARXCORR_Y] = y[0];
  out[IMK_INSARXCORR_DX] = x[1] - x[0];
  out[IMK_INSARXCORR_DY] = y[1] - y[0];
  out[IMK_INSARXCORR_COV_XX] = out[IMK_INSARXCORR_COV_YY] = -1;
  if (is_masked (c, x[0], y[0])) {
    flags = IMK_INSARXCORR_MASKED | IMK_INSARXCORR_NO_DATA;
    valid = 0;
  } else {
    for (int s = 0; s < 2; s++)
      p[s] = take_patch (c, &images[s], s, x[s], y[s], &valid);
    flags = check_inside (c, p, x, y);
    if (!is_compat (c))
      demodulate (p);
    for (int s = 0; s < 2; s++)
      planes[s] =
          is_compat (c) ? detect_compat (c, p[s]) : detect_precise (c, p[s], s);
    flags |= measure (c, planes, out, &lead);
    free (planes[0].v);
    free (planes[1].v);
  }
  if (valid < c->min_valid)
    flags |= IMK_INSARXCORR_NO_DATA;
  /* with the two decimals that GMTSAR prints */
  if (!(rint (out[IMK_INSARXCORR_CORRELATION] * 100) / 100 >
          c->min_correlation))
    flags |= IMK_INSARXCORR_LOW;
  out[IMK_INSARXCORR_VALID] = valid;
  out[IMK_INSARXCORR_FLAGS] = flags;
  return lead;
}
