/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The phase of a fringe over the pixels: the band of the spectrum's transform
 * that has it gives a first phase, and with that phase taken off a narrow band
 * about 0 gives the rest, whatever the chirp is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sample.h"
#include "octbscan/mirror/mirror-polynomial.h"
#include "core/limits.h"
#include "octbscan/octbscan-config.h"
#include "octbscan/octbscan-rows.h"

enum { MOST_LINES = 64, FIRST_TERMS = 6 };

#define LEAST_SNR 100.0        /* power: 20 dB */
#define SECOND (1.0 / 16)      /* power of a second reflector: a quarter */
#define MOST_CLIPPED 0.005     /* of the samples */
#define LEAST_AMPLITUDE 0.1    /* of the largest, where phases count */
#define MOST_TERMS_OF_SUMS 3e8 /* of all transforms */

typedef struct Look {
  uint32_t n, n_lines, camera;
  double *lines;  /* [n_lines][n], less their means */
  double *turn;   /* [n] cos and sin of 2 pi i / n */
  double *power;  /* [2][n / 2] smoothed, and as it is */
  uint32_t reach; /* of the smoothing */
  uint32_t dc, top, low, high;
  double noise;
  double *band; /* [n] complex: a sum of bins */
  double *first_phase, *work;
} Look;

static ImkStatus
no_memory (ImkError *error)
{
  return IMK_NO_MEMORY (error, "to look for the fringe of a mirror.");
}

/* ------------------------------------------------------------------------
 * Lines. */

static ImkStatus
check_clipped (
    const Look *l, double largest, uint32_t n_largest, ImkError *error)
{
  double share = (double) n_largest / ((double) l->n * l->n_lines);

  if (!(share > MOST_CLIPPED) || n_largest < 8 * l->n_lines)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "The fringe of the mirror is clipped: %.1f %% of the samples of camera %u "
      "have the largest value, %g. Reduce the light or the exposure, if there "
      "is a fringe at all.",
      100 * share, l->camera, largest);
}

/* Takes up to MOST_LINES lines of the camera, without those that have a sample
 * that is no number. */
static ImkStatus
take_lines (Look *l, const ImkOctbscanConfig *c, const ImkImage *in,
    uint32_t first_camera, ImkError *error)
{
  ImkOctbscanRows rows =
      imk_octbscan_rows_of (l->camera, c->n_cameras, first_camera, c->height);
  uint32_t n_wanted = rows.n < MOST_LINES ? rows.n : MOST_LINES, n_largest = 0;
  const double *background = c->background_mode == IMK_OCTBSCAN_BACKGROUND_FILE
                                 ? c->background + (size_t) l->camera * c->width
                                 : NULL;
  double largest = -INFINITY;

  for (uint32_t i = 0; i < n_wanted; i++) {
    uint32_t row =
        rows.first + (uint32_t) ((uint64_t) i * rows.n / n_wanted) * rows.step;
    double *to = l->lines + (size_t) l->n_lines * l->n, mean = 0;

    for (uint32_t k = 0; k < l->n; k++) {
      to[k] = imk_sample_get (in, k, row, 0);
      if (to[k] > largest) {
        largest = to[k];
        n_largest = 0;
      }
      n_largest += to[k] == largest;
      to[k] -= background ? background[k] : 0;
      mean += to[k];
    }
    if (!(fabs (mean) <= 1e15 * l->n))
      continue;
    for (uint32_t k = 0; k < l->n; k++)
      to[k] -= mean / l->n;
    l->n_lines++;
  }
  if (l->n_lines == 0)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Camera %u has no valid line in this B-scan of %u.", l->camera,
        c->height);
  return check_clipped (l, largest, n_largest, error);
}

/* ------------------------------------------------------------------------
 * Bins. */

/* sum of x[i] exp (-2 pi i f i / n).
 * @step: 1 or 2 numbers a sample */
static void
bin_of (
    const Look *l, const double *x, uint32_t step, uint32_t f, double bin[2])
{
  uint32_t at = 0;
  double a = 0, b = 0;

  for (uint32_t i = 0; i < l->n; i++) {
    double c = l->turn[2 * at], s = l->turn[2 * at + 1];

    a += x[step * i] * c;
    b -= x[step * i] * s;
    if (step == 2) {
      a += x[2 * i + 1] * s;
      b += x[2 * i + 1] * c;
    }
    at += f;
    at -= at >= l->n ? l->n : 0;
  }
  bin[0] = a;
  bin[1] = b;
}

/* Adds scale bin exp (2 pi i f i / n) to @to; of real numbers, the real part.
 */
static void
add_wave (const Look *l, const double bin[2], uint32_t f, double scale,
    uint32_t step, double *to)
{
  double re = bin[0] * scale, im = bin[1] * scale;
  uint32_t at = 0;

  for (uint32_t i = 0; i < l->n; i++) {
    double c = l->turn[2 * at], s = l->turn[2 * at + 1];

    to[step * i] += re * c - im * s;
    if (step == 2)
      to[step * i + 1] += re * s + im * c;
    at += f;
    at -= at >= l->n ? l->n : 0;
  }
}

static void
find_power (Look *l)
{
  uint32_t half = l->n / 2;
  double most = MOST_TERMS_OF_SUMS / ((double) l->n * l->n);
  uint32_t n = most < 1 ? 1 : most < l->n_lines ? (uint32_t) most : l->n_lines;
  double *plain = l->power + half;

  for (uint32_t k = 0; k < n; k++) {
    const double *line = l->lines + (size_t) k * l->n;

    for (uint32_t i = 0; i < l->n; i++)
      l->work[i] = line[i] * (1 - l->turn[2 * i]); /* Hann's window */
    for (uint32_t f = 0; f < half; f++) {
      double bin[2];

      bin_of (l, l->work, 1, f, bin);
      plain[f] += bin[0] * bin[0] + bin[1] * bin[1];
    }
  }
  for (uint32_t f = 0; f < half; f++)
    for (uint32_t k = f > l->reach ? f - l->reach : 0;
         k <= f + l->reach && k < half; k++)
      l->power[f] += plain[k];
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

/* The DC ends where nothing that follows at once is lower. */
static bool
find_dc (Look *l)
{
  uint32_t half = l->n / 2;

  for (l->dc = 1; l->dc + 2 * l->reach < half; l->dc++) {
    bool is_least = true;

    for (uint32_t k = 1; k <= 2 * l->reach; k++)
      is_least = is_least && l->power[l->dc] <= l->power[l->dc + k];
    if (is_least && l->power[l->dc] < 0.1 * l->power[0])
      return true;
  }
  return false;
}

static ImkStatus
find_band (Look *l, ImkError *error)
{
  uint32_t half = l->n / 2;
  double least, second = 0;

  find_power (l);
  if (!(l->power[0] > 0))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The spectra of camera %u are dark: there is no fringe of a mirror.",
        l->camera);
  if (!find_dc (l))
    l->dc = 1;
  l->top = l->dc;
  for (uint32_t f = l->dc; f < half; f++)
    if (l->power[f] > l->power[l->top])
      l->top = f;
  memcpy (l->work, l->power + l->dc, (half - l->dc) * sizeof (double));
  qsort (l->work, half - l->dc, sizeof (double), compare);
  l->noise = l->work[(half - l->dc) / 4];
  if (!(l->power[l->top] >= LEAST_SNR * l->noise))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The fringe of the mirror is weak: %.0f dB over the noise for camera "
        "%u; it needs 20. Align the mirror, move it away from zero delay, or give "
        "more light.",
        10 * log10 (l->power[l->top] / fmax (l->noise, 1e-300)), l->camera);
  least = fmax (1e-4 * l->power[l->top], 4 * l->noise);
  for (l->low = l->top; l->low > l->dc && l->power[l->low] > least; l->low--)
    ;
  for (l->high = l->top; l->high + 1 < half && l->power[l->high] > least;
       l->high++)
    ;
  if (l->power[l->low] > 0.01 * l->power[l->top])
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The mirror is too close to zero delay: camera %u sees %u fringes, "
        "which merge with the light itself. Move it further away.",
        l->camera, l->top);
  if (l->high + l->reach >= half - 1)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The mirror is too far from zero delay: the fringe of camera %u reaches "
        "%u of the %u that its samples resolve. Move it nearer.",
        l->camera, l->high, half);
  for (uint32_t f = l->dc; f < half; f++)
    if (f + 2 * l->reach < l->low || f > l->high + 2 * l->reach)
      second = fmax (second, l->power[f]);
  if (second > SECOND * l->power[l->top])
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Camera %u sees two reflectors: the second fringe has %.0f %% of the "
        "amplitude of the first. Use a mirror with one surface, and block what "
        "else reflects.",
        l->camera, 100 * sqrt (second / l->power[l->top]));
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The first phase. */

/* Takes off the light itself, whose edges at either end would leak into the
 * band of the fringe. */
static void
remove_dc (Look *l)
{
  for (uint32_t k = 0; k < l->n_lines; k++) {
    double *line = l->lines + (size_t) k * l->n;

    for (uint32_t f = 1; f <= l->dc; f++) {
      double bin[2];

      bin_of (l, line, 1, f, bin);
      add_wave (l, bin, f, -2.0 / l->n, 1, line);
    }
  }
}

/* Adds @n complex numbers, turned to the phase of @like, which has as many. */
static void
add_turned (double *sum, const double *z, const double *like, uint32_t n)
{
  double re = 0, im = 0, length;

  for (uint32_t i = 0; i < n; i++) {
    re += z[2 * i] * like[2 * i] + z[2 * i + 1] * like[2 * i + 1];
    im += z[2 * i] * like[2 * i + 1] - z[2 * i + 1] * like[2 * i];
  }
  length = hypot (re, im);
  if (!(length > 0)) { /* the first one is like nothing yet */
    re = length = 1;
    im = 0;
  }
  for (uint32_t i = 0; i < n; i++) {
    sum[2 * i] += (z[2 * i] * re - z[2 * i + 1] * im) / length;
    sum[2 * i + 1] += (z[2 * i] * im + z[2 * i + 1] * re) / length;
  }
}

/* 1 within @n bins of the middle, 0 beyond 1.25 @n. */
static double
edge (double distance, double n)
{
  double t = (distance - n) / (0.25 * n);

  return t <= 0 ? 1 : t >= 1 ? 0 : (1 + cos (M_PI * t)) / 2;
}

/* to[i] = sum of bins exp (2 pi i f i / n) over f = first .. first + n_bins -
 * 1, which may begin below 0. */
static void
synthesize (const Look *l, const double *bins, int64_t first, uint32_t n_bins,
    double *to)
{
  memset (to, 0, 2 * (size_t) l->n * sizeof (*to));
  for (uint32_t k = 0; k < n_bins; k++) {
    int64_t f = first + (int64_t) k;

    add_wave (
        l, bins + 2 * k, (uint32_t) (f < 0 ? f + l->n : f), 1.0 / l->n, 2, to);
  }
}

/* Phases without steps of 2 pi, and amplitudes, of @n complex numbers. */
static void
unwrap (const double *z, uint32_t n, double *phase, double *amplitude)
{
  for (uint32_t i = 0; i < n; i++) {
    phase[i] = atan2 (z[2 * i + 1], z[2 * i]);
    amplitude[i] = hypot (z[2 * i], z[2 * i + 1]);
    if (i > 0)
      phase[i] += 2 * M_PI * round ((phase[i - 1] - phase[i]) / (2 * M_PI));
  }
}

static double
largest_of (const double *values, uint32_t n)
{
  double largest = 0;

  for (uint32_t i = 0; i < n; i++)
    largest = fmax (largest, values[i]);
  return largest;
}

/* Where there is light; in the dark, steps of 2 pi are lost.
 * Returns: how many pixels have light */
static uint32_t
find_valid (const double *amplitude, uint32_t n, uint32_t *first, uint32_t *end)
{
  double least = LEAST_AMPLITUDE * largest_of (amplitude, n);
  uint32_t count = 0;

  *first = n;
  *end = 0;
  for (uint32_t i = 0; i < n; i++)
    if (amplitude[i] > least) {
      *first = i < *first ? i : *first;
      *end = i + 1;
      count++;
    }
  return count;
}

/* Weights are intensities. */
static bool
fit_phase (const Look *l, const double *phase, const double *amplitude,
    uint32_t n_terms, double *factors)
{
  double least = LEAST_AMPLITUDE * largest_of (amplitude, l->n);
  double *x = l->work, *weight = l->work + l->n;

  for (uint32_t i = 0; i < l->n; i++) {
    x[i] = 2.0 * i / (l->n - 1) - 1;
    weight[i] = amplitude[i] > least ? amplitude[i] * amplitude[i] : 0;
  }
  return imk_mirror_fit (x, phase, weight, l->n, n_terms, factors);
}

/* @z: n complex numbers for the work. Returns: FALSE when there is no phase */
static bool
find_first_phase (Look *l, double *z, double *amplitude)
{
  uint32_t low = l->low > l->reach ? l->low - l->reach : 0;
  uint32_t n_bins = l->high + l->reach - low + 1;
  double *sum = l->band, *bins = z, factors[MIRROR_TERMS];

  memset (sum, 0, 2 * (size_t) n_bins * sizeof (*sum));
  for (uint32_t k = 0; k < l->n_lines; k++) {
    for (uint32_t f = 0; f < n_bins; f++)
      bin_of (l, l->lines + (size_t) k * l->n, 1, low + f, &bins[2 * f]);
    add_turned (sum, bins, sum, n_bins);
  }
  synthesize (l, sum, low, n_bins, z);
  unwrap (z, l->n, l->first_phase, amplitude);
  if (!fit_phase (l, l->first_phase, amplitude, FIRST_TERMS, factors))
    return false;
  for (uint32_t i = 0; i < l->n; i++)
    l->first_phase[i] =
        imk_mirror_at (factors, FIRST_TERMS, 2.0 * i / (l->n - 1) - 1);
  return true;
}

/* ------------------------------------------------------------------------
 * The rest of the phase. */

/* Returns: bins either side that have the fringe and not the DC, which the
 * first phase has moved as far as the fringe was */
static uint32_t
rest_bins (const Look *l, const double *amplitude)
{
  uint32_t first, end;
  double least = INFINITY, bins;

  find_valid (amplitude, l->n, &first, &end);
  for (uint32_t i = first; i + 1 < end; i++)
    least = fmin (least, l->first_phase[i + 1] - l->first_phase[i]);
  bins = least * l->n / (2 * M_PI) / 2;
  return bins > l->n / 16.0 ? l->n / 16 : bins > 3 ? (uint32_t) bins : 3;
}

static void
find_rest (Look *l, double *z, ImkOctbscanFringe *fringe)
{
  uint32_t reach = rest_bins (l, fringe->amplitude), n = l->n;
  uint32_t n_bins = 2 * (reach + reach / 4) + 1;
  int64_t low = -(int64_t) (n_bins / 2);
  double *sum = l->band, *like = l->work;

  memset (sum, 0, 2 * (size_t) n * sizeof (*sum));
  for (uint32_t i = 0; i < n; i++) {
    like[2 * i] = fringe->amplitude[i];
    like[2 * i + 1] = 0;
  }
  for (uint32_t k = 0; k < l->n_lines; k++) {
    const double *line = l->lines + (size_t) k * n;

    for (uint32_t i = 0; i < n; i++) {
      z[2 * i] = line[i] * cos (l->first_phase[i]);
      z[2 * i + 1] = -line[i] * sin (l->first_phase[i]);
    }
    add_turned (sum, z, like, n);
  }
  for (uint32_t k = 0; k < n_bins; k++) {
    int64_t f = low + (int64_t) k;
    double weight = 2.0 / l->n_lines * edge (fabs ((double) f), reach);

    bin_of (l, sum, 2, (uint32_t) (f < 0 ? f + n : f), &l->work[2 * k]);
    l->work[2 * k] *= weight;
    l->work[2 * k + 1] *= weight;
  }
  synthesize (l, l->work, low, n_bins, z);
  unwrap (z, n, fringe->phase, fringe->amplitude);
  for (uint32_t i = 0; i < n; i++)
    fringe->phase[i] += l->first_phase[i];
}

static ImkStatus
find_fringe (Look *l, ImkOctbscanFringe *fringe, ImkError *error)
{
  double *z = malloc (2 * (size_t) l->n * sizeof (*z));
  ImkStatus status = z ? find_band (l, error) : no_memory (error);
  uint32_t first = 0, end = 1, count;
  bool has_phase;

  if (status != IMK_OK)
    goto done;
  remove_dc (l);
  has_phase = find_first_phase (l, z, fringe->amplitude);
  if (has_phase)
    find_rest (l, z, fringe);
  count = has_phase ? find_valid (fringe->amplitude, l->n, &first, &end) : 0;
  if (count < l->n / 3 || !(fringe->phase[end - 1] > fringe->phase[first])) {
    status = imk_error_set (error, IMK_ERROR_IMAGE,
        "The fringe of the mirror is in %u of the %u samples of camera %u; it "
        "needs a third of them. Align the spectrometer, or give more light.",
        count, l->n, l->camera);
    goto done;
  }
  fringe->bin = (fringe->phase[end - 1] - fringe->phase[first]) / (2 * M_PI) *
                (l->n - 1) / (end - 1 - first);
  fringe->snr_db = 10 * log10 (l->power[l->top] / fmax (l->noise, 1e-300));
done:
  free (z);
  return status;
}

static ImkStatus
look (const ImkOctbscanConfig *c, const ImkImage *in, uint32_t first_camera,
    uint32_t camera, ImkOctbscanFringe *fringe, ImkError *error)
{
  uint32_t n = c->width;
  uint32_t n_lines = c->height < MOST_LINES ? c->height : MOST_LINES;
  Look l = {.n = n, .camera = camera, .reach = n / 256 > 2 ? n / 256 : 2};
  ImkStatus status;

  l.lines = malloc ((size_t) n_lines * n * sizeof (double));
  l.turn = malloc (2 * (size_t) n * sizeof (double));
  l.power = calloc (2 * (size_t) n, sizeof (double));
  l.band = malloc (2 * (size_t) n * sizeof (double));
  l.first_phase = malloc (n * sizeof (double));
  l.work = malloc (2 * (size_t) n * sizeof (double));
  fringe->phase = malloc (n * sizeof (double));
  fringe->amplitude = malloc (n * sizeof (double));
  status = l.lines && l.turn && l.power && l.band && l.first_phase && l.work &&
                   fringe->phase && fringe->amplitude
               ? IMK_OK
               : no_memory (error);
  for (uint32_t i = 0; status == IMK_OK && i < n; i++) {
    l.turn[2 * i] = cos (2 * M_PI * i / n);
    l.turn[2 * i + 1] = sin (2 * M_PI * i / n);
  }
  if (status == IMK_OK)
    status = take_lines (&l, c, in, first_camera, error);
  if (status == IMK_OK)
    status = find_fringe (&l, fringe, error);
  free (l.lines);
  free (l.turn);
  free (l.power);
  free (l.band);
  free (l.first_phase);
  free (l.work);
  return status;
}

ImkStatus
imk_octbscan_measure_mirror (const ImkOctbscanConfig *given, const ImkImage *in,
    uint32_t first_camera, uint32_t camera, ImkOctbscanFringe *fringe,
    ImkError *error)
{
  ImkOctbscanConfig config;
  ImkStatus status;
  ImkOctbscanFringe found = {.side = 1};

  IMK_TRY (imk_octbscan_take_config (given, &config, error));
  IMK_TRY (
      imk_limits_check_one ("camera", camera, 0, config.n_cameras - 1, error));
  IMK_TRY (imk_limits_check_one ("The number of samples of the fringe",
      config.width, 64, IMK_OCTBSCAN_MAX_WIDTH, error));
  IMK_TRY (imk_image_check (
      in, "input", config.type, 1, config.width, config.height, false, error));
  found.width = config.width;
  status = look (&config, in, first_camera, camera, &found, error);
  if (status == IMK_OK)
    *fringe = found;
  else
    imk_octbscan_fringe_clear (&found);
  return status;
}

void
imk_octbscan_fringe_clear (ImkOctbscanFringe *fringe)
{
  free (fringe->phase);
  free (fringe->amplitude);
  *fringe = (ImkOctbscanFringe){0};
}
