/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the phases of fringes to wavenumbers and dispersion, and what these do
 * to the point spread. All phases are sums of the same polynomials, so that
 * each term of kappa and psi is the solution of two linear equations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "octbscan/mirror/mirror-polynomial.h"
#include "core/limits.h"
#include "octbscan/octbscan-config.h"
#include "octbscan/octbscan-grid.h"

enum { LEAST_TERMS = 3, MOST_TERMS = MIRROR_TERMS - 1 };

#define ENOUGH_MORE 1.05  /* an rms so near that of two degrees more will do */
#define SMALL_ERROR 0.02  /* radians: no more is asked of a fit */
#define LARGEST_ERROR 0.5 /* radians: more is no single fringe */
#define LEAST_APART 0.1   /* of the depth, two positions on one side */
#define LIGHT 0.1         /* of the largest amplitude, where phases count */
#define SECOND (1.0 / 16) /* of the peak, a second reflector */

/* One fringe over x from -1 to 1. */
typedef struct Curve {
  double *phase, *amplitude, *weight;
  double side, error;
  double factors[MIRROR_TERMS];
} Curve;

typedef struct Solver {
  const ImkOctbscanConfig *config; /* of this camera alone, M = N */
  ImkOctbscanMirrorFit fit;
  uint32_t camera, n, n_curves, n_terms;
  double *memory, *x, *positions, *work;
  Curve curves[IMK_OCTBSCAN_MAX_MIRRORS];
  double kappa[MIRROR_TERMS], psi[MIRROR_TERMS];
} Solver;

static ImkStatus
no_memory (ImkError *error)
{
  return IMK_NO_MEMORY (error, "to fit the fringes of a mirror.");
}

/* ------------------------------------------------------------------------
 * Curves. */

/* Over the pixels, or over the wavenumbers of the map that the camera has. */
static void
fill_curve (const Solver *s, const ImkOctbscanFringe *fringe, Curve *curve)
{
  bool of_map = s->fit == IMK_OCTBSCAN_MIRROR_FIT_MAP;
  double largest = 0;

  for (uint32_t i = 0; i < s->n; i++) {
    double at = of_map ? s->positions[i] : i;

    curve->phase[i] = imk_octbscan_between (fringe->phase, s->n, at);
    curve->amplitude[i] = imk_octbscan_between (fringe->amplitude, s->n, at);
    largest = fmax (largest, curve->amplitude[i]);
  }
  for (uint32_t i = 0; i < s->n; i++)
    curve->weight[i] = curve->amplitude[i] > LIGHT * largest
                           ? curve->amplitude[i] * curve->amplitude[i]
                           : 0;
  curve->side = fringe->side < 0 ? -1 : 1;
}

/* Returns: rms radians of a curve beside a sum, the constant aside */
static double
error_of (const Solver *s, const Curve *curve, const double *factors)
{
  double sum = 0, squares = 0, weights = 0;

  for (uint32_t i = 0; i < s->n; i++) {
    double rest =
        curve->phase[i] - imk_mirror_at (factors, s->n_terms, s->x[i]);

    sum += curve->weight[i] * rest;
    squares += curve->weight[i] * rest * rest;
    weights += curve->weight[i];
  }
  sum /= weights;
  return sqrt (fmax (squares / weights - sum * sum, 0));
}

/* ------------------------------------------------------------------------
 * Wavenumber and dispersion. */

/* Each term above the first: p_j = a_j kappa + side_j psi, a_j the first. */
static ImkStatus
split_terms (Solver *s, ImkError *error)
{
  bool of_map = s->fit == IMK_OCTBSCAN_MIRROR_FIT_MAP;
  double aa = 0, as = 0, n = s->n_curves, determinant;

  for (uint32_t j = 0; j < s->n_curves; j++) {
    double a = s->curves[j].factors[1];

    aa += a * a;
    as += a * s->curves[j].side;
  }
  determinant = n * aa - as * as;
  if (!of_map && s->n_curves > 1 &&
      !(determinant > LEAST_APART * LEAST_APART * n * aa / 4))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The positions of the mirror are too close to each other: camera %u "
        "cannot tell wavenumbers and dispersion apart. Move the mirror by at "
        "least a tenth of its depth, or forget the other positions.",
        s->camera);
  memset (s->kappa, 0, sizeof (s->kappa));
  memset (s->psi, 0, sizeof (s->psi));
  s->kappa[1] = 1;
  for (uint32_t i = 2; i < s->n_terms; i++) {
    double ap = 0, sp = 0;

    for (uint32_t j = 0; j < s->n_curves; j++) {
      const Curve *c = &s->curves[j];

      ap += c->factors[1] * c->factors[i];
      sp += c->side * c->factors[i];
    }
    if (of_map) {
      s->psi[i] = sp / n;
    } else if (s->n_curves == 1) {
      s->kappa[i] = ap / aa;
    } else {
      s->kappa[i] = (n * ap - as * sp) / determinant;
      s->psi[i] = (aa * sp - as * ap) / determinant;
    }
  }
  return IMK_OK;
}

static bool
is_monotonic (const Solver *s)
{
  double before = imk_mirror_at (s->kappa, s->n_terms, s->x[0]);

  for (uint32_t i = 1; i < s->n; i++) {
    double now = imk_mirror_at (s->kappa, s->n_terms, s->x[i]);

    if (!(now > before))
      return false;
    before = now;
  }
  return true;
}

/* Fits all curves with @n_terms.
 * Returns: rms radians of what kappa and psi leave; negative on an error */
static double
fit_terms (Solver *s, uint32_t n_terms, ImkError *error)
{
  double squares = 0, model[MIRROR_TERMS];

  s->n_terms = n_terms;
  for (uint32_t j = 0; j < s->n_curves; j++)
    if (!imk_mirror_fit (s->x, s->curves[j].phase, s->curves[j].weight, s->n,
            n_terms, s->curves[j].factors)) {
      imk_error_set (error, IMK_ERROR_IMAGE,
          "The fringe of camera %u has light in too few samples for a "
          "polynomial of degree %u.",
          s->camera, n_terms - 1);
      return -1;
    }
  if (split_terms (s, error) != IMK_OK)
    return -1;
  for (uint32_t j = 0; j < s->n_curves; j++) {
    Curve *c = &s->curves[j];

    for (uint32_t i = 0; i < n_terms; i++)
      model[i] = i < 2 ? c->factors[i]
                       : c->factors[1] * s->kappa[i] + c->side * s->psi[i];
    c->error = error_of (s, c, model);
    squares += c->error * c->error;
  }
  return sqrt (squares / s->n_curves);
}

static ImkStatus
choose_degree (Solver *s, double *error_found, ImkError *error)
{
  double errors[MIRROR_TERMS + 1];
  uint32_t n_terms = LEAST_TERMS;

  for (uint32_t n = LEAST_TERMS; n <= MIRROR_TERMS; n++) {
    errors[n] = fit_terms (s, n, error);
    if (errors[n] < 0)
      return error ? error->code : IMK_ERROR_IMAGE;
  }
  while (n_terms < MOST_TERMS && errors[n_terms] > SMALL_ERROR) {
    uint32_t more = n_terms + 2 < MIRROR_TERMS ? n_terms + 2 : MIRROR_TERMS;

    if (errors[n_terms] <= ENOUGH_MORE * errors[more])
      break;
    n_terms++;
  }
  while (
      fit_terms (s, n_terms, error), n_terms > LEAST_TERMS && !is_monotonic (s))
    n_terms--; /* a high degree swings where there is no light */
  *error_found = errors[n_terms];
  if (!is_monotonic (s))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The wavenumbers of camera %u would not rise all the way: %s.",
        s->camera,
        s->n_curves > 1
            ? "a position may be on the other side of zero delay than named, "
              "or the fringe is in too few of its samples"
            : "the fringe is in too few of its samples");
  if (!(*error_found <= LARGEST_ERROR))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The phase of the fringes of camera %u has an rms error of %.2f "
        "radians; %.1f is the most. Is it one mirror with one surface, and is a "
        "position on the other side of zero delay named so?",
        s->camera, *error_found, LARGEST_ERROR);
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * What is written into a calibration. */

/* kappa to the wavenumbers that the camera had, as well as they fit; without
 * any, from -1 to 1. */
static void
scale_kappa (Solver *s, ImkOctbscanMirrors *found)
{
  double *k = s->work, *kappa = s->work + s->n, line[2];
  double first = imk_mirror_at (s->kappa, s->n_terms, -1);
  double last = imk_mirror_at (s->kappa, s->n_terms, 1);
  double factors[MIRROR_TERMS];

  line[1] = 2 / (last - first);
  line[0] = -1 - line[1] * first;
  for (uint32_t i = 0; i < s->n; i++)
    kappa[i] =
        line[0] + line[1] * imk_mirror_at (s->kappa, s->n_terms, s->x[i]);
  if (imk_octbscan_grid_wavenumbers (s->config, 0, k)) {
    double fit[2];

    if (imk_mirror_fit (kappa, k, s->curves[0].weight, s->n, 2, fit)) {
      line[0] = fit[0] + fit[1] * line[0];
      line[1] *= fit[1];
    }
  }
  for (uint32_t i = 0; i < s->n_terms; i++)
    factors[i] = line[1] * s->kappa[i];
  factors[0] += line[0];
  imk_mirror_powers (factors, s->n_terms, found->k);
  found->n_k = s->n_terms;
}

/* -psi over u, the wavenumbers from -1 to 1. */
static bool
find_dispersion (Solver *s, ImkOctbscanMirrors *found)
{
  double *u = s->work, *phase = s->work + s->n, *weight = s->positions;
  double first = imk_mirror_at (s->kappa, s->n_terms, -1);
  double last = imk_mirror_at (s->kappa, s->n_terms, 1);
  double factors[MIRROR_TERMS], largest = 0;

  if (s->fit == IMK_OCTBSCAN_MIRROR_FIT_PHASE && s->n_curves == 1)
    return true;
  for (uint32_t i = 0; i < s->n; i++)
    largest = fmax (largest, s->curves[0].weight[i]);
  for (uint32_t i = 0; i < s->n; i++) {
    double kappa = imk_mirror_at (s->kappa, s->n_terms, s->x[i]);

    u[i] = 2 * (kappa - first) / (last - first) - 1;
    phase[i] = -imk_mirror_at (s->psi, s->n_terms, s->x[i]);
    /* a little where there is no light: the polynomial must not swing there */
    weight[i] = s->curves[0].weight[i] + 1e-3 * largest;
  }
  if (!imk_mirror_fit (u, phase, weight, s->n, s->n_terms, factors))
    return false;
  imk_mirror_powers (factors, s->n_terms, found->dispersion);
  found->dispersion[0] = found->dispersion[1] = 0;
  found->n_dispersion = s->n_terms;
  return true;
}

/* ------------------------------------------------------------------------
 * The point spread. */

/* A fringe as the chain resamples it. */
typedef struct Spread {
  uint32_t n;
  double *z;                    /* [n] complex */
  double window_sum, low, high; /* depths where it has its light */
} Spread;

/* Returns: |Z|^2 at the depth @q, with fraction */
static double
intensity (const Spread *p, double q)
{
  double step_re = cos (2 * M_PI * q / p->n),
         step_im = -sin (2 * M_PI * q / p->n);
  double re = 1, im = 0, sum_re = 0, sum_im = 0;

  for (uint32_t i = 0; i < p->n; i++) {
    double next = re * step_re - im * step_im;

    sum_re += p->z[2 * i] * re - p->z[2 * i + 1] * im;
    sum_im += p->z[2 * i] * im + p->z[2 * i + 1] * re;
    im = re * step_im + im * step_re;
    re = next;
  }
  return (sum_re * sum_re + sum_im * sum_im) / (p->window_sum * p->window_sum);
}

/* @is_limit: the amplitudes alone */
static ImkStatus
spread_of (const Solver *s, const ImkOctbscanCamera *camera,
    const ImkOctbscanFringe *fringe, bool is_limit, Spread *p, ImkError *error)
{
  ImkOctbscanConfig c = *s->config;
  double *positions = s->positions, *re = s->work, *im = s->work + s->n;
  double largest = 0, before = 0;

  c.cameras = camera;
  IMK_TRY (imk_octbscan_grid_positions (&c, 0, positions, error));
  imk_octbscan_grid_weights (&c, 0, re, im);
  p->low = INFINITY;
  p->high = -INFINITY;
  for (uint32_t i = 0; i < s->n; i++)
    largest = fmax (largest, fringe->amplitude[i]);
  for (uint32_t i = 0; i < s->n; i++) {
    double a = imk_octbscan_between (fringe->amplitude, s->n, positions[i]);
    double phase = imk_octbscan_between (fringe->phase, s->n, positions[i]);
    double w = hypot (re[i], im[i]), q;
    double added = w > 0 ? atan2 (im[i], re[i]) : 0;

    /* beyond zero delay the phase of the fringe is the negative one */
    phase = is_limit ? 0 : phase + (fringe->side < 0 ? -added : added);
    p->z[2 * i] = a * w * cos (phase);
    p->z[2 * i + 1] = a * w * sin (phase);
    if (i > 0 && a > LIGHT * largest) {
      q = remainder (phase - before, 2 * M_PI) * s->n / (2 * M_PI);
      p->low = fmin (p->low, q);
      p->high = fmax (p->high, q);
    }
    before = phase;
  }
  return IMK_OK;
}

/* Returns: where it falls to @half on the way from @q in steps of @step; NAN
 * where it does not */
static double
half_way (const Spread *p, double q, double step, double half)
{
  double before = intensity (p, q), now;

  for (int i = 0; i < 4000; i++, before = now) {
    q += step;
    now = intensity (p, q);
    if (now <= half)
      return q - step * (half - now) / (before - now);
    if (i > 100)
      step *= 1.01;
  }
  return NAN;
}

/* Returns: the depth of the peak; @width: 0 where it has no two sides */
static double
find_peak (const Spread *p, double *width, double *peak)
{
  double at = p->low - 2, best = -1, step, left, right;

  for (double q = p->low - 2; q <= p->high + 2; q += 0.5) {
    double v = intensity (p, q);

    if (v > best) {
      best = v;
      at = q;
    }
  }
  for (step = 0.25; step > 1e-4; step /= 2) {
    double below = intensity (p, at - step), above = intensity (p, at + step);

    at += below > best && below >= above ? -step : above > best ? step : 0;
    best = fmax (best, fmax (below, above));
  }
  left = half_way (p, at, -0.05, best / 2);
  right = half_way (p, at, 0.05, best / 2);
  *width = right > left ? right - left : 0;
  *peak = best;
  return at;
}

/* Two reflectors whose fringes overlap before they are straightened. */
static ImkStatus
check_second (const Solver *s, const Spread *p, double at, double width,
    double peak, ImkError *error)
{
  double reach = fmax (3 * width, 4), largest = 0;

  for (double d = reach; d < reach + 60; d += 0.5)
    largest =
        fmax (largest, fmax (intensity (p, at - d), intensity (p, at + d)));
  if (largest <= SECOND * peak)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "Camera %u sees two reflectors: beside the peak at depth %.1f there is "
      "another one with %.0f %% of its amplitude. Use a mirror with one surface, "
      "and block what else reflects.",
      s->camera, at, 100 * sqrt (largest / peak));
}

/* @now, @next: the camera before and after */
static ImkStatus
measure_position (const Solver *s, uint32_t upsample,
    const ImkOctbscanCamera *now, const ImkOctbscanCamera *next,
    const ImkOctbscanFringe *fringe, ImkOctbscanMirrorPosition *position,
    ImkError *error)
{
  Spread p = {
      .n = s->n, .window_sum = imk_octbscan_grid_window_sum (s->config)};
  double *z = malloc (2 * (size_t) s->n * sizeof (*z)), peak, fringes;
  ImkOctbscanConfig c = *s->config;
  ImkStatus status;

  if (!z)
    return no_memory (error);
  p.z = z;
  status = spread_of (s, now, fringe, false, &p, error);
  if (status == IMK_OK)
    find_peak (&p, &position->width_before, &peak);
  if (status == IMK_OK)
    status = spread_of (s, next, fringe, true, &p, error);
  if (status == IMK_OK)
    find_peak (&p, &position->width_limit, &peak);
  if (status == IMK_OK)
    status = spread_of (s, next, fringe, false, &p, error);
  if (status == IMK_OK) {
    position->depth = find_peak (&p, &position->width, &peak);
    status = check_second (
        s, &p, position->depth, position->width_limit, peak, error);
    position->level_db = 10 * log10 (fmax (peak, 1e-20));
    position->snr_db = fringe->snr_db;
    c.cameras = next;
    c.scale = 1;
    position->depth_um =
        fabs (position->depth) * imk_octbscan_grid_depth_step (&c, 0);
    /* depths of a grid of N become those of a grid of M */
    fringes = (s->n - 1.0) / s->n * upsample / (upsample - 1.0);
    position->depth *= fringes;
    position->width *= fringes;
    position->width_before *= fringes;
    position->width_limit *= fringes;
  }
  free (z);
  return status;
}

/* ------------------------------------------------------------------------ */

static ImkStatus
solve (Solver *s, const ImkOctbscanConfig *given,
    const ImkOctbscanFringe *fringes, ImkOctbscanMirrors *found,
    ImkError *error)
{
  const ImkOctbscanCamera *now = &s->config->cameras[0];
  ImkOctbscanCamera next = *now;

  IMK_TRY (imk_octbscan_grid_positions (s->config, 0, s->positions, error));
  for (uint32_t i = 0; i < s->n; i++)
    s->x[i] = 2.0 * i / (s->n - 1) - 1;
  for (uint32_t j = 0; j < s->n_curves; j++)
    fill_curve (s, &fringes[j], &s->curves[j]);
  IMK_TRY (choose_degree (s, &found->phase_error, error));
  if (!find_dispersion (s, found))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The fringe of camera %u has light in too few samples.", s->camera);
  next.dispersion = found->dispersion;
  next.n_dispersion = found->n_dispersion;
  if (s->fit == IMK_OCTBSCAN_MIRROR_FIT_PHASE) {
    scale_kappa (s, found);
    next.map = IMK_OCTBSCAN_MAP_K_POLYNOMIAL;
    next.values = found->k;
    next.n_values = found->n_k;
  }
  for (uint32_t j = 0; j < s->n_curves; j++) {
    IMK_TRY (measure_position (s, given->upsample, now, &next, &fringes[j],
        &found->positions[j], error));
    found->positions[j].phase_error = s->curves[j].error;
  }
  found->n = s->n_curves;
  return IMK_OK;
}

static ImkStatus
check_fringes (const ImkOctbscanConfig *c, uint32_t camera,
    const ImkOctbscanFringe *fringes, uint32_t n, ImkOctbscanMirrorFit fit,
    ImkError *error)
{
  IMK_TRY (imk_limits_check_one ("camera", camera, 0, c->n_cameras - 1, error));
  IMK_TRY (imk_limits_check_one (
      "The number of mirrors", n, 1, IMK_OCTBSCAN_MAX_MIRRORS, error));
  for (uint32_t j = 0; j < n; j++)
    if (fringes[j].width != c->width)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "A fringe has %u samples, but a spectrum has %u.", fringes[j].width,
          c->width);
  if (c->cameras[camera].n_phase || c->cameras[camera].spectrum_phase)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Camera %u has a phase in its calibration, which what a mirror says "
        "would be added to. Remove the key phase.",
        camera);
  if (fit == IMK_OCTBSCAN_MIRROR_FIT_MAP &&
      c->cameras[camera].map == IMK_OCTBSCAN_MAP_NONE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Camera %u has no wavelengths to keep: set a calibration that has them, "
        "or let the fringes say them.",
        camera);
  return IMK_OK;
}

ImkStatus
imk_octbscan_solve_mirrors (const ImkOctbscanConfig *given, uint32_t camera,
    const ImkOctbscanFringe *fringes, uint32_t n, ImkOctbscanMirrorFit fit,
    ImkOctbscanMirrors *found, ImkError *error)
{
  ImkOctbscanConfig config, alone;
  Solver s = {.config = &alone, .fit = fit, .camera = camera, .n_curves = n};
  ImkOctbscanMirrors result = {0};
  ImkStatus status;
  double *at;

  IMK_TRY (imk_octbscan_take_config (given, &config, error));
  IMK_TRY (check_fringes (&config, camera, fringes, n, fit, error));
  alone = config;
  alone.cameras += camera;
  alone.n_cameras = 1;
  alone.upsample = config.width;
  alone.k_range = IMK_OCTBSCAN_K_RANGE_OWN;
  s.n = config.width;
  s.memory = malloc ((4 + 3 * (size_t) n) * s.n * sizeof (double));
  if (!s.memory)
    return no_memory (error);
  s.x = s.memory;
  s.positions = s.x + s.n;
  s.work = s.positions + s.n; /* twice as much */
  at = s.work + 2 * (size_t) s.n;
  for (uint32_t j = 0; j < n; j++, at += 3 * (size_t) s.n)
    s.curves[j] = (Curve){at, at + s.n, at + 2 * (size_t) s.n};
  status = solve (&s, &config, fringes, &result, error);
  free (s.memory);
  if (status == IMK_OK)
    *found = result;
  return status;
}
