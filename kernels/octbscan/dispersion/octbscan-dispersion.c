/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The Z of a plain image, without any phase, transformed back, are the
 * resampled spectra of the depths alone: without their mirror images, which a
 * wrong dispersion would sharpen, and without what is left of the DC, which is
 * nowhere as narrow as there. Dispersions are phases on them. */
#include "imk/octbscan-dispersion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imk/parallel.h"
#include "core/limits.h"
#include "octbscan/octbscan-config.h"
#include "octbscan/octbscan-grid.h"
#include "octbscan/cpu/fft.h"
#include "octbscan/cpu/finish.h"
#include "core/pool.h"
#include "octbscan/octbscan-rows.h"

enum {
  MAX_ASCANS = 96,
  DEPTHS = IMK_OCTBSCAN_PATTERN_DEPTHS,
  DEFAULT_RANGE = 60, /* radians at the ends of the spectrum */
  ROUNDS = 4,
  N_CURVE = (int) IMK_OCTBSCAN_CURVE,
};

/* Radians between two that are tried; the sharpness changes over some of them.
 */
#define STEP 1.5
#define FINEST 0.01

typedef struct Search {
  uint32_t n_ascans, n_points; /* L, and as many zeros: it must not matter
                                * whether a layer is at a depth or between two
                                */
  uint32_t n_z;                /* depths of a plain image */
  uint32_t n_residue;          /* of them, depths with the rest of the DC */
  uint32_t first, end;         /* depths of the sharpness */
  uint32_t n_segments;         /* of the fixed pattern, 0 for none */
  uint32_t n_wavenumbers;      /* M */
  uint32_t n_threads;
  float *spectra; /* [n_ascans][L] complex */
  double *base;   /* [L] phase without d2 and d3 */
  float *turn;    /* [L] complex */
  float *work;    /* [n_ascans][2][2 L] complex; the zeros are set once */
  double *sums;   /* [n_ascans][2] */
  ImkFft *forward;
} Search;

static ImkStatus
no_memory (ImkError *error)
{
  return IMK_NO_MEMORY (error, "to look for the dispersion.");
}

/* ------------------------------------------------------------------------
 * Sharpness. */

/* u of entry @l of a spectrum. */
static double
axis (const Search *s, uint32_t l)
{
  return 2.0 * l * s->n_wavenumbers / s->n_points / (s->n_wavenumbers - 1) - 1;
}

static float *
z_of (const Search *s, uint32_t ascan)
{
  return s->work + 8 * (size_t) s->n_points * ascan + 4 * (size_t) s->n_points;
}

static void
sum_band (void *data, uint32_t first, uint32_t end)
{
  const Search *s = data;

  for (uint32_t i = first; i < end; i++) {
    const float *z = z_of (s, i);
    double sum = 0, squares = 0;

    for (uint32_t q = s->first; q < s->end; q++) {
      double v =
          (double) z[2 * q] * z[2 * q] + (double) z[2 * q + 1] * z[2 * q + 1];

      sum += v;
      squares += v * v;
    }
    s->sums[2 * i] = sum;
    s->sums[2 * i + 1] = squares;
  }
}

static void
transform_band (void *data, uint32_t first, uint32_t end)
{
  const Search *s = data;
  size_t n = s->n_points;

  for (uint32_t i = first; i < end; i++) {
    const float *from = s->spectra + 2 * n * i;
    float *to = s->work + 8 * n * i;

    for (size_t l = 0; l < n; l++) {
      float re = s->turn[2 * l], im = s->turn[2 * l + 1];

      to[2 * l] = from[2 * l] * re - from[2 * l + 1] * im;
      to[2 * l + 1] = from[2 * l] * im + from[2 * l + 1] * re;
    }
    imk_fft_execute (s->forward, to, z_of (s, i), NULL);
  }
  if (!s->n_segments)
    sum_band (data, first, end);
}

/* Takes the minimum-variance mean line off Z, as the image does, see
 * ImkOctbscanFixedPattern. It is found for each pair of coefficients, as what
 * does not move is sharp without dispersion and blurred with it. */
static void
pattern_band (void *data, uint32_t first, uint32_t end)
{
  const Search *s = data;

  for (uint32_t b = first; b < end; b++) {
    float pattern[2 * DEPTHS];
    uint32_t depth = s->first + b * DEPTHS;
    uint32_t n = s->end - depth < DEPTHS ? s->end - depth : DEPTHS;
    const ImkOctbscanLines lines = {
        .z = z_of (s, 0) + 2 * (size_t) depth,
        .pitch = 8 * (size_t) s->n_points,
        .n = s->n_ascans,
    };

    imk_octbscan_find_pattern (&lines, s->n_segments, n, pattern);
    for (uint32_t i = 0; i < s->n_ascans; i++) {
      float *z = z_of (s, i) + 2 * (size_t) depth;

      for (uint32_t d = 0; d < 2 * n; d++)
        z[d] -= pattern[d];
    }
  }
}

/* Of A-scans @first, @first + @step, ... */
static double
sharpness_of (const Search *s, uint32_t first, uint32_t step)
{
  double sum = 0, squares = 0, n = 0;

  for (uint32_t i = first; i < s->n_ascans; i += step) {
    sum += s->sums[2 * i];
    squares += s->sums[2 * i + 1];
    n += s->end - s->first;
  }
  return sum > 0 ? squares * n / (sum * sum) : 0;
}

static double
sharpness (Search *s, double d2, double d3)
{
  for (uint32_t l = 0; l < s->n_points; l++) {
    double u = axis (s, l);
    double phase = s->base[l] + u * u * (d2 + d3 * u);

    s->turn[2 * l] = (float) cos (phase);
    s->turn[2 * l + 1] = (float) sin (phase);
  }
  imk_parallel_for (s->n_threads, s->n_ascans, 8, transform_band, s);
  if (s->n_segments) {
    imk_parallel_for (s->n_threads, imk_div_up (s->end - s->first, DEPTHS), 1,
        pattern_band, s);
    imk_parallel_for (s->n_threads, s->n_ascans, 8, sum_band, s);
  }
  return sharpness_of (s, 0, 1);
}

/* ------------------------------------------------------------------------
 * The search. */

/* Keeps @x as the coefficient @moving, one of @found, where that is sharper. */
static void
try_at (Search *s, ImkOctbscanDispersion *found, double *moving, double x)
{
  double before = *moving, now;

  *moving = x;
  now = sharpness (s, found->d2, found->d3);
  if (now > found->after)
    found->after = now;
  else
    *moving = before;
}

static void
scan (Search *s, ImkOctbscanDispersion *found, double *moving, double range)
{
  int n = (int) ceil (range / STEP);
  double centre = *moving;

  for (int i = -n; i <= n; i++)
    try_at (s, found, moving, centre + i * range / n);
}

static void
search (Search *s, double range, ImkOctbscanDispersion *found)
{
  double *const moving[] = {&found->d2, &found->d3};

  found->d2 = found->d3 = 0;
  found->after = sharpness (s, 0, 0);
  scan (s, found, &found->d2, range);
  scan (s, found, &found->d3, range / 2);
  for (uint32_t i = 0; i < 2 * ROUNDS; i++) {
    scan (s, found, moving[i % 2], 4 * STEP);
    /* about the best, nearer and nearer */
    for (double step = STEP / 2; step > FINEST; step /= 2) {
      double centre = *moving[i % 2];

      try_at (s, found, moving[i % 2], centre - step);
      try_at (s, found, moving[i % 2], centre + step);
    }
  }
}

/* ------------------------------------------------------------------------
 * Whether the image tells. */

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static double
median_of (const double *values, uint32_t n, double *room)
{
  memcpy (room, values, n * sizeof (*room));
  qsort (room, n, sizeof (*room), compare);
  return room[n / 2];
}

static uint32_t
largest (const double *values)
{
  uint32_t at = 0;

  for (uint32_t i = 1; i < IMK_OCTBSCAN_CURVE; i++)
    at = values[i] > values[at] ? i : at;
  return at;
}

static double
d2_at (double range, uint32_t i)
{
  return range * (2.0 * i / (N_CURVE - 1) - 1);
}

static double
confidence_of (const Search *s, const double *curve, double best)
{
  double room[IMK_OCTBSCAN_CURVE], n = s->n_ascans;
  double gain = best / median_of (curve, IMK_OCTBSCAN_CURVE, room) - 1;

  return gain > 0 ? gain / (gain + 0.05 + 8 / sqrt (n * (s->end - s->first)))
                  : 0;
}

/* @best: (out): where the curves of the even and of the odd A-scans, of which
 * there may be none, have their maxima */
static void
draw_curve (Search *s, ImkOctbscanDispersion *found, uint32_t best[2])
{
  double halves[2][IMK_OCTBSCAN_CURVE];

  for (uint32_t i = 0; i < IMK_OCTBSCAN_CURVE; i++) {
    found->curve[i] = sharpness (s, d2_at (found->range, i), found->d3);
    halves[0][i] = sharpness_of (s, 0, 2);
    halves[1][i] = sharpness_of (s, s->n_ascans > 1 ? 1 : 0, 2);
  }
  best[0] = largest (halves[0]);
  best[1] = largest (halves[1]);
  found->confidence = confidence_of (s, found->curve, found->after);
}

static double
squares_at (const Search *s, uint32_t depth)
{
  double sum = 0;

  for (uint32_t i = 0; i < s->n_ascans; i++) {
    const float *z = z_of (s, i) + 2 * (size_t) depth;
    double v = (double) z[0] * z[0] + (double) z[1] * z[1];

    sum += v * v;
  }
  return sum;
}

/* Returns: the depth that has half of the sum of I^2 of the image above it */
static uint32_t
find_middle (const Search *s)
{
  double all = 0, above = 0;
  uint32_t q;

  for (q = s->first; q < s->end; q++)
    all += squares_at (s, q);
  for (q = s->first; q < s->end - 1 && above < all / 2; q++)
    above += squares_at (s, q);
  return q;
}

/* Cuts the best image: of each A-scan's depths @first .. @end - 1 alone the
 * spectrum is made again. With the other depths in it, their light would come
 * in where a wrong dispersion blurs it. */
static ImkStatus
cut_depths (const Search *s, const ImkOctbscanDispersion *best, uint32_t first,
    uint32_t end, Search *part, ImkError *error)
{
  size_t n = s->n_points;
  ImkFft *backward = NULL;
  ImkStatus status = imk_octbscan_plan_transform (
      2 * s->n_points, IMK_FFT_BACKWARD, &backward, error);

  for (uint32_t i = 0; i < s->n_ascans && status == IMK_OK; i++) {
    float *z = z_of (s, i), *to = s->work + 8 * n * i;

    memset (z, 0, 2 * first * sizeof (*z));
    memset (z + 2 * (size_t) end, 0, 2 * (2 * n - end) * sizeof (*z));
    status = imk_fft_execute (backward, z, to, error);
    memcpy (part->spectra + 2 * n * i, to, 2 * n * sizeof (*to));
    memset (to, 0, 4 * n * sizeof (*to));
  }
  for (uint32_t l = 0; l < n; l++) {
    double u = axis (s, l);

    part->base[l] = -u * u * (best->d2 + best->d3 * u);
  }
  imk_fft_free (backward);
  return status;
}

/* True dispersion is the same at all depths; what a wrong calibration needs
 * rises with the depth. @d2: (out): of the upper and of the lower half of the
 * light
 * Returns: IMK_OK, or IMK_ERROR_IMAGE when they differ */
static ImkStatus
compare_depths (Search *s, const ImkOctbscanDispersion *found, ImkError *error)
{
  size_t n = 2 * (size_t) s->n_points;
  double curves[2][IMK_OCTBSCAN_CURVE], d2[2];
  bool tells = true;
  ImkStatus status = IMK_OK;
  Search part = *s;

  part.n_segments = 0;
  part.spectra = imk_pool_alloc (n * sizeof (float) * s->n_ascans);
  part.base = imk_pool_alloc (s->n_points * sizeof (double));
  if (!part.spectra || !part.base)
    status = no_memory (error);
  for (uint32_t k = 0; k < 2 && status == IMK_OK; k++) {
    uint32_t middle, at;

    sharpness (s, found->d2, found->d3);
    middle = find_middle (s);
    status = cut_depths (
        s, found, k ? middle : s->first, k ? s->end : middle, &part, error);
    for (uint32_t i = 0; i < IMK_OCTBSCAN_CURVE && status == IMK_OK; i++)
      curves[k][i] = sharpness (&part, d2_at (found->range, i), found->d3);
    at = largest (curves[k]);
    d2[k] = d2_at (found->range, at);
    tells = tells && confidence_of (s, curves[k], curves[k][at]) >=
                         IMK_OCTBSCAN_LEAST_CONFIDENCE;
  }
  free (part.spectra);
  free (part.base);
  if (status != IMK_OK || !tells ||
      fabs (d2[0] - d2[1]) < 3.5 * found->range / (N_CURVE / 2))
    return status;
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "The dispersion cannot be estimated: what is sharpest changes with the "
      "depth, from d2 near %.1f in the upper half of the light to %.1f in the "
      "lower, as with a missing or wrong calibration. Set the wavelengths of "
      "the camera first (calibration).",
      d2[0], d2[1]);
}

static ImkStatus
judge (Search *s, ImkOctbscanDispersion *found, ImkError *error)
{
  double end = found->range - STEP;
  uint32_t best[2];

  draw_curve (s, found, best);
  if (found->confidence < IMK_OCTBSCAN_LEAST_CONFIDENCE)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The dispersion cannot be estimated: no d2 makes the image much sharper "
        "than others (confidence %.2f, at least %.1f is needed). Take a B-scan "
        "with thin layers or points, or crop what has none.",
        found->confidence, IMK_OCTBSCAN_LEAST_CONFIDENCE);
  if (fabs (found->d2) > end || fabs (found->d3) > end / 2)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The dispersion cannot be estimated: the best value, d2 %.1f and d3 "
        "%.1f, is at an end of the search range of %g and %g. Look at the "
        "calibration and at crop-top, which leaves out what is no sample.",
        found->d2, found->d3, found->range, found->range / 2);
  if (best[0] > best[1] + 2 || best[1] > best[0] + 2)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The dispersion cannot be estimated: the even A-scans are sharpest with "
        "d2 near %.1f, the odd ones near %.1f. Take a B-scan with more light or "
        "more A-scans.",
        d2_at (found->range, best[0]), d2_at (found->range, best[1]));
  return compare_depths (s, found, error);
}

/* ------------------------------------------------------------------------
 * Spectra. */

/* One camera's A-scans as they are without phases, all depths, no zeros. */
static ImkStatus
plain_z (const ImkOctbscanConfig *config, const ImkImage *in,
    const ImkOctbscanCamera *camera, uint32_t index, ImkImage *z,
    ImkError *error)
{
  ImkOctbscanConfig c = *config;
  ImkOctbscanJob job = {.in = in, .complex = z};
  ImkOctbscan *kernel = NULL;
  ImkStatus status;

  c.height = in->height;
  c.n_cameras = 1;
  c.cameras = camera;
  c.scale = 1;
  c.crop_top = c.crop_bottom = c.enface_top = c.enface_bottom = 0;
  c.strategy = IMK_OCTBSCAN_STRATEGY_FFT;
  c.max_jobs = 1;
  c.live_dispersion = NULL;
  c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_NONE;
  c.scan = IMK_OCTBSCAN_SCAN_EVEN;
  c.average_ascans = 1;
  c.averages_bscans = false;
  c.tracking = IMK_OCTBSCAN_TRACKING_NONE;
  if (c.background_mode == IMK_OCTBSCAN_BACKGROUND_FILE)
    c.background += (size_t) index * c.width;
  else if (imk_octbscan_has_history (&c))
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_MEAN;
  status = imk_octbscan_new (IMK_BACKEND_CPU, &c, &kernel, error);
  if (status == IMK_OK)
    status = imk_octbscan_process (kernel, &job, 1, NULL, error);
  imk_octbscan_free (kernel);
  return status;
}

/* The A-scans that are looked at, at equal distances, transformed back. */
static ImkStatus
fill_spectra (Search *s, const ImkImage *z, ImkError *error)
{
  ImkFft *backward = NULL;
  size_t n = s->n_points;
  ImkStatus status = imk_octbscan_plan_transform (
      s->n_points, IMK_FFT_BACKWARD, &backward, error);

  if (status == IMK_OK)
    status = imk_octbscan_plan_transform (
        2 * s->n_points, IMK_FFT_FORWARD, &s->forward, error);
  for (uint32_t i = 0; i < s->n_ascans && status == IMK_OK; i++) {
    uint32_t row = (uint32_t) ((uint64_t) i * z->height / s->n_ascans);

    memset (s->work, 0, 2 * n * sizeof (float));
    memcpy (s->work + 2 * s->n_residue,
        (const float *) ((const uint8_t *) z->data + row * z->stride) +
            2 * s->n_residue,
        2 * (s->n_z - s->n_residue) * sizeof (float));
    status = imk_fft_execute (backward, s->work, s->spectra + 2 * n * i, error);
  }
  memset (s->work, 0, 2 * n * sizeof (float));
  imk_fft_free (backward);
  return status;
}

/* Depths from 0 on in which the mean intensity falls to what most of the image
 * has; the sample begins where it rises again after it has fallen far. */
static ImkStatus
find_residue (Search *s, const ImkImage *z, ImkError *error)
{
  uint32_t n = s->n_z, most = n / 8, at = 0;
  double *profile = calloc (2 * (size_t) n, sizeof (*profile));
  double least = INFINITY, largest = 0, floor;

  if (!profile)
    return no_memory (error);
  for (uint32_t row = 0; row < z->height; row++) {
    const float *v =
        (const float *) ((const uint8_t *) z->data + row * z->stride);

    for (uint32_t q = 0; q < n; q++)
      profile[q] +=
          (double) v[2 * q] * v[2 * q] + (double) v[2 * q + 1] * v[2 * q + 1];
  }
  floor = median_of (profile, n, profile + n);
  for (uint32_t q = 0; q < most; q++) {
    double near = profile[q]; /* the profile has zeros on its falling side */

    for (uint32_t k = 1; k < 4 && q + k < n; k++)
      near = fmax (near, profile[q + k]);
    if (near > 4 * least && 30 * least < largest)
      break;
    largest = fmax (largest, near);
    if (near < least) {
      least = near;
      at = q;
    }
    if (near <= 2 * floor)
      break;
  }
  s->n_residue = at;
  free (profile);
  return IMK_OK;
}

/* All phases but those of d2 and d3. One over the pixels is taken to be one
 * over the wavenumbers that are there: it changes little from pixel to pixel.
 */
static ImkStatus
fill_base (
    Search *s, const ImkOctbscanConfig *c, uint32_t index, ImkError *error)
{
  const ImkOctbscanCamera *cam = &c->cameras[index];
  uint32_t m = c->upsample;
  double *places = malloc (m * sizeof (*places));
  ImkStatus status = places
                         ? imk_octbscan_grid_positions (c, index, places, error)
                         : no_memory (error);

  for (uint32_t l = 0; status == IMK_OK && l < s->n_points; l++) {
    double along = fmin ((double) l * m / s->n_points / (m - 1), 1);
    double u = 2 * along - 1, power = 1;

    for (uint32_t i = 0; i < cam->n_dispersion; i++, power *= u)
      s->base[l] += i == 2 || i == 3 ? 0 : cam->dispersion[i] * power;
    if (cam->n_phase)
      s->base[l] += imk_octbscan_between (
          cam->phase, cam->n_phase, along * (cam->n_phase - 1));
    if (cam->spectrum_phase)
      s->base[l] += imk_octbscan_between (cam->spectrum_phase, c->width,
          imk_octbscan_between (places, m, along * (m - 1)));
  }
  free (places);
  return status;
}

/* Which depths of a plain image are those of the crop. */
static void
choose_depths (Search *s, const ImkOctbscanConfig *c)
{
  uint32_t last = c->width * c->scale / 2 - c->crop_bottom;
  uint32_t first = c->crop_top > 4 * c->scale ? c->crop_top : 4 * c->scale;

  s->first = 2 * first / c->scale;
  s->end = 2 * last / c->scale;
  if (s->end <= s->first + 2) { /* too few depths remain */
    s->first = 0;
    s->end = 2 * s->n_z;
  }
}

/* The pattern of `file` belongs to the dispersion with which it was recorded,
 * so that it tells nothing of others: that of this B-scan is taken. */
static uint32_t
choose_segments (const Search *s, const ImkOctbscanConfig *c)
{
  return c->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_NONE
             ? 0
             : imk_octbscan_n_segments (c, s->n_ascans);
}

static ImkStatus
search_and_judge (Search *s, double range, double d2, double d3,
    ImkOctbscanDispersion *found, ImkError *error)
{
  ImkOctbscanDispersion best = {.range = range, .residue = s->n_residue};
  ImkStatus status;

  best.before = sharpness (s, d2, d3);
  if (!(best.before > 0))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The dispersion cannot be estimated: the image is dark.");
  search (s, range, &best);
  status = judge (s, &best, error);
  if (status != IMK_OK) {
    best.d2 = d2;
    best.d3 = d3;
  }
  *found = best;
  return status;
}

static ImkStatus
search_in (const ImkOctbscanConfig *c, const ImkImage *z, uint32_t camera,
    double range, ImkOctbscanDispersion *found, ImkError *error)
{
  const ImkOctbscanCamera *own = &c->cameras[camera];
  const double *live = c->live_dispersion;
  Search s = {
      .n_ascans = z->height < MAX_ASCANS ? z->height : MAX_ASCANS,
      .n_points = 16,
      .n_z = z->width,
      .n_wavenumbers = c->upsample,
      .n_threads = c->n_threads,
  };
  ImkStatus status;
  size_t n;

  while (s.n_points < c->width)
    s.n_points *= 2;
  choose_depths (&s, c);
  s.n_segments = choose_segments (&s, c);
  n = 2 * (size_t) s.n_points * sizeof (float);
  s.spectra = imk_pool_alloc (n * s.n_ascans);
  s.work = imk_pool_alloc (4 * n * s.n_ascans);
  s.turn = imk_pool_alloc (n);
  s.base = imk_pool_alloc (s.n_points * sizeof (double));
  s.sums = imk_pool_alloc (2 * s.n_ascans * sizeof (double));
  status = s.spectra && s.work && s.turn && s.base && s.sums
               ? find_residue (&s, z, error)
               : no_memory (error);
  if (status == IMK_OK)
    status = fill_spectra (&s, z, error);
  if (status == IMK_OK)
    status = fill_base (&s, c, camera, error);
  if (status == IMK_OK)
    status = search_and_judge (&s, range,
        live                    ? live[2 * camera]
        : own->n_dispersion > 2 ? own->dispersion[2]
                                : 0,
        live                    ? live[2 * camera + 1]
        : own->n_dispersion > 3 ? own->dispersion[3]
                                : 0,
        found, error);
  free (s.spectra);
  free (s.work);
  free (s.turn);
  free (s.base);
  free (s.sums);
  imk_fft_free (s.forward);
  return status;
}

ImkStatus
imk_octbscan_estimate_dispersion (const ImkOctbscanConfig *given,
    const ImkImage *in, uint32_t first_camera, uint32_t camera, double range,
    ImkOctbscanDispersion *found, ImkError *error)
{
  ImkOctbscanConfig config;
  ImkOctbscanRows lines;
  ImkOctbscanCamera plain;
  ImkImage rows = *in, z;
  ImkStatus status;
  uint32_t n;

  IMK_TRY (imk_octbscan_take_config (given, &config, error));
  n = config.n_cameras;
  IMK_TRY (imk_limits_check_one ("camera", camera, 0, n - 1, error));
  IMK_TRY (imk_image_check (
      in, "input", config.type, 1, config.width, config.height, false, error));
  /* u is over the camera's own wavenumbers anyway */
  config.k_range = IMK_OCTBSCAN_K_RANGE_OWN;
  lines = imk_octbscan_rows_of (camera, n, first_camera, config.height);
  if (lines.n == 0)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Camera %u has no line in this B-scan of %u.", camera, config.height);
  rows.data = (uint8_t *) in->data + lines.first * in->stride;
  rows.stride = n * in->stride;
  rows.height = lines.n;
  plain = config.cameras[camera];
  plain.n_dispersion = plain.n_phase = 0;
  plain.spectrum_phase = NULL;
  z = imk_image_of_rows (NULL, IMK_TYPE_CF32, config.width / 2, rows.height);
  z.data = imk_pool_alloc (z.stride * z.height);
  if (!z.data)
    return no_memory (error);
  status = plain_z (&config, &rows, &plain, camera, &z, error);
  if (status == IMK_OK)
    status = search_in (
        &config, &z, camera, range > 0 ? range : DEFAULT_RANGE, found, error);
  free (z.data);
  return status;
}
