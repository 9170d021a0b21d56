/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What follows Z in octbscan, against float64: backgrounds that remember, fixed
 * patterns, scans, means, tracking, en-face rows, alone and together, for
 * B-scans one by one and several in a call. */
#include "oct-common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "octbscan/octbscan-lateral.h"
#include "octbscan/octbscan-reference.h"

enum { MAX_BSCANS = 16, WIDTH = 64, DEPTHS = 64 /* at scale 2 */ };

static const Way cuda_ways[] = {
    {"cuda operator", IMK_BACKEND_CUDA, IMK_OCTBSCAN_STRATEGY_OPERATOR},
    {"cuda fft", IMK_BACKEND_CUDA, IMK_OCTBSCAN_STRATEGY_FFT},
    {NULL},
};

/* By ImkBackend. */
static const Way *const all_ways[] = {cpu_ways, cuda_ways};

/* --- B-scans -------------------------------------------------------------- */

static ImkOctbscanConfig
base_config (uint32_t height)
{
  ImkOctbscanConfig c;

  imk_octbscan_config_init (&c);
  c.type = IMK_TYPE_U16;
  c.width = c.upsample = WIDTH;
  c.height = height;
  c.scale = 2;
  c.taper = IMK_OCTBSCAN_TAPER_NONE;
  c.window = IMK_OCTBSCAN_WINDOW_HANN;
  return c;
}

/* Three layers, the second the brightest, @shift depths down, each A-scan with
 * its own brightness and phases; something that stands still at depth 50; noise
 * of a count. Spectra are of a hump that grows with @index. */
static void
fill_bscan (const ImkOctbscanConfig *c, uint32_t index, double shift, double *x)
{
  static const double depths[] = {12, 20.3, 29}, amplitudes[] = {150, 400, 220};
  uint64_t seed = 77 + index;

  for (uint32_t r = 0; r < c->height; r++) {
    double phases[3], brightness[3];

    for (int k = 0; k < 3; k++) {
      phases[k] = 2 * M_PI * oct_uniform (&seed);
      brightness[k] = amplitudes[k] * (0.7 + 0.6 * oct_uniform (&seed));
    }
    for (uint32_t i = 0; i < c->width; i++) {
      double u = (i + 0.5) / c->width;
      double v = 4000 * (1 + sin (M_PI * u)) + 40 * index * u;

      for (int k = 0; k < 3; k++)
        v += brightness[k] *
             cos (M_PI * (depths[k] + shift) * i / c->width + phases[k]);
      v += 300 * cos (M_PI * 50 * i / c->width + 0.3);
      v += oct_uniform (&seed);
      x[(size_t) r * c->width + i] = floor (v + 0.5);
    }
  }
}

/* A sequence, and what is expected of it. */
typedef struct Sequence {
  const ImkOctbscanConfig *config;
  uint32_t n;
  ImkOctbscanReference bscans[MAX_BSCANS];
  TestImage in[MAX_BSCANS];
  TestImage linear[MAX_BSCANS], complex[MAX_BSCANS];
  TestImage enface[MAX_BSCANS], track[MAX_BSCANS];
  double *pattern;
} Sequence;

static void
put_sample (const TestImage *image, uint32_t column, uint32_t row, double value)
{
  uint8_t *to = (uint8_t *) image->image.data + row * image->image.stride;

  if (image->image.type == IMK_TYPE_F32)
    ((float *) to)[column] = (float) value;
  else
    ((uint16_t *) to)[column] = (uint16_t) value;
}

/* @shifts: of each B-scan, NULL for none; images of each @every th. One sample
 * in each spectrum of B-scan @infinite is; and one in @n_missing spectra of
 * each B-scan has one of the @n_wild values, the first two neighbours in the
 * same transform. */
static Sequence
sequence_new_wild (const ImkOctbscanConfig *c, uint32_t n, const double *shifts,
    uint32_t every, bool bidirectional, uint32_t infinite, uint32_t n_missing,
    const double *wild, uint32_t n_wild)
{
  uint32_t n_ascans = imk_octbscan_n_ascans (c), width, height;
  Sequence s = {.config = c, .n = n};

  imk_octbscan_size (c, &width, &height);
  s.pattern = calloc (
      2 * (size_t) c->n_cameras * imk_octbscan_n_depths (c), sizeof (double));
  for (uint32_t i = 0; i < n; i++) {
    double *x = malloc ((size_t) c->width * c->height * sizeof (*x));

    fill_bscan (c, i, shifts ? shifts[i] : 0, x);
    for (uint32_t r = 0; i == infinite && r < c->height; r++)
      x[(size_t) r * c->width + 5 * r % c->width] =
          r % 3 ? INFINITY : -INFINITY;
    for (uint32_t k = 0; k < n_missing; k++)
      x[(size_t) ((5 * k * k + i) % c->height) * c->width + 7 * k % c->width] =
          wild[(k + i) % n_wild];
    s.in[i] = test_image_new (c->type, c->width, c->height, 1, 8);
    for (uint32_t k = 0; k < c->width * c->height; k++)
      put_sample (&s.in[i], k % c->width, k / c->width, x[k]);
    s.bscans[i] = (ImkOctbscanReference){
        .x = x,
        .first_camera = i * c->height % c->n_cameras,
        .backward = bidirectional && i % 2,
        .has_images = (i + 1) % every == 0,
    };
    s.linear[i] = test_image_new (IMK_TYPE_F32, width, height, 1, 12);
    s.complex[i] = test_image_new (
        IMK_TYPE_CF32, imk_octbscan_n_depths (c), c->height, 1, 16);
    s.enface[i] = test_image_new (IMK_TYPE_F32, n_ascans, 1, 1, 0);
    s.track[i] = test_image_new (IMK_TYPE_F32, 4, 1, 1, 0);
  }
  imk_octbscan_finish_reference (c, s.bscans, n, s.pattern);
  return s;
}

static Sequence
sequence_new (const ImkOctbscanConfig *c, uint32_t n, const double *shifts,
    uint32_t every, bool bidirectional)
{
  return sequence_new_wild (
      c, n, shifts, every, bidirectional, UINT32_MAX, 0, NULL, 0);
}

static void
sequence_free (Sequence *s)
{
  for (uint32_t i = 0; i < s->n; i++) {
    free ((void *) s->bscans[i].x);
    imk_octbscan_reference_clear (&s->bscans[i]);
    test_image_free (&s->in[i]);
    test_image_free (&s->linear[i]);
    test_image_free (&s->complex[i]);
    test_image_free (&s->enface[i]);
    test_image_free (&s->track[i]);
  }
  free (s->pattern);
}

TEST_DEFINE_AUTO (Sequence, sequence_free)

/* --- runs ----------------------------------------------------------------- */

enum { IN, LINEAR, COMPLEX, ENFACE, TRACK, N_IMAGES };

/* B-scans i .. i + n - 1 in one call. */
static void
run_batch (
    const Way *way, ImkOctbscan *kernel, Sequence *s, uint32_t i, uint32_t n)
{
  bool cuda = way->backend == IMK_BACKEND_CUDA;
  ImkImage images[MAX_BSCANS][N_IMAGES];
  ImkOctbscanJob jobs[MAX_BSCANS];

  for (uint32_t k = 0; k < n; k++) {
    const ImkOctbscanReference *b = &s->bscans[i + k];
    TestImage *all[N_IMAGES] = {&s->in[i + k], &s->linear[i + k],
        &s->complex[i + k], &s->enface[i + k], &s->track[i + k]};

    for (int m = 0; m < N_IMAGES; m++)
      images[k][m] = cuda ? test_to_device (all[m]) : all[m]->image;
    jobs[k] = (ImkOctbscanJob){
        .in = &images[k][IN],
        .first_camera = b->first_camera,
        .backward = b->backward,
        .linear = b->has_images ? &images[k][LINEAR] : NULL,
        .enface = b->has_images ? &images[k][ENFACE] : NULL,
        .complex = &images[k][COMPLEX],
        .track = &images[k][TRACK],
    };
  }
  test_ok (imk_octbscan_process (kernel, jobs, n, NULL, test_new_error ()));
  for (uint32_t k = 0; cuda && k < n; k++) {
    TestImage *all[N_IMAGES] = {NULL, &s->linear[i + k], &s->complex[i + k],
        &s->enface[i + k], &s->track[i + k]};

    for (int m = 0; m < N_IMAGES; m++) {
      if (all[m])
        test_from_device (&images[k][m], all[m]);
      test_device_free (&images[k][m]);
    }
  }
}

/* Amplitudes are within 1e-5 of the rms of Z, also of means. */
static void
check_intensity (double found, double expected, double rms, const char *where,
    const char *what, uint32_t i, uint32_t row, uint32_t q)
{
  double d = fabs (sqrt (found) - sqrt (expected));

  test_check (d <= 1e-5 * rms + 1e-6 * sqrt (expected),
      "%s: %s of B-scan %u, A-scan %u, depth %u: %.9g, expected %.9g, rms %.3g",
      where, what, i, row, q, found, expected, rms);
}

static void
check_complex (const Sequence *s, uint32_t i, double rms, const char *where)
{
  uint32_t n = imk_octbscan_n_depths (s->config);
  const ImkImage *image = &s->complex[i].image;

  for (uint32_t row = 0; row < s->config->height; row++) {
    const float *z =
        (const float *) ((const uint8_t *) image->data + row * image->stride);
    const double *e = s->bscans[i].z + 2 * (size_t) row * n;

    for (uint32_t q = 0; q < n; q++)
      test_check (hypot (z[2 * q] - e[2 * q], z[2 * q + 1] - e[2 * q + 1]) <=
                      1e-5 * rms,
          "%s: Z of B-scan %u, row %u, depth %u: %.9g%+.9gi, expected "
          "%.9g%+.9gi",
          where, i, row, q, z[2 * q], z[2 * q + 1], e[2 * q], e[2 * q + 1]);
  }
}

static void
check_images (const Sequence *s, uint32_t i, double rms, const char *where)
{
  const ImkOctbscanConfig *c = s->config;
  bool rows = c->orientation == IMK_OCTBSCAN_ORIENTATION_ROWS;
  bool flips =
      c->flip == IMK_OCTBSCAN_FLIP_DEPTH || c->flip == IMK_OCTBSCAN_FLIP_BOTH;
  uint32_t n = imk_octbscan_n_depths (c);
  const ImkImage *image = &s->linear[i].image;

  for (uint32_t a = 0; a < imk_octbscan_n_ascans (c); a++) {
    for (uint32_t q = 0; q < n; q++) {
      uint32_t depth = flips ? n - 1 - q : q;
      const uint8_t *row =
          (const uint8_t *) image->data + (rows ? a : depth) * image->stride;

      check_intensity (((const float *) row)[rows ? depth : a],
          s->bscans[i].intensity[(size_t) a * n + q], rms, where, "intensity",
          i, a, q);
    }
    check_intensity (((const float *) s->enface[i].image.data)[a],
        s->bscans[i].enface[a], rms, where, "en face", i, a, 0);
  }
}

static void
check_track (const Sequence *s, uint32_t i, const char *where)
{
  const float *t = s->track[i].image.data;
  const double *e = s->bscans[i].track;

  for (int k = 0; k < 4; k++)
    test_check (fabs (t[k] - e[k]) <= (k == 3 ? 0 : 1e-4 * (1 + fabs (e[k]))),
        "%s: track %d of B-scan %u is %.9g, expected %.9g", where, k, i, t[k],
        e[k]);
}

static void
check_pattern (
    const Sequence *s, ImkOctbscan *kernel, double rms, const char *where)
{
  size_t n = (size_t) s->config->n_cameras * imk_octbscan_n_depths (s->config);
  test_autofree float *pattern = malloc (2 * n * sizeof (*pattern));

  test_ok (imk_octbscan_get_pattern (kernel, pattern, test_new_error ()));
  for (size_t i = 0; i < n; i++)
    test_check (hypot (pattern[2 * i] - s->pattern[2 * i],
                    pattern[2 * i + 1] - s->pattern[2 * i + 1]) <= 1e-5 * rms,
        "%s: pattern %zu is %.9g%+.9gi, expected %.9g%+.9gi", where, i,
        pattern[2 * i], pattern[2 * i + 1], s->pattern[2 * i],
        s->pattern[2 * i + 1]);
}

/* Each way, B-scans one by one and in calls of @batch; and after a reset all
 * over again. */
static void
check_sequence (ImkBackend backend, Sequence *s, const char *what)
{
  char where[128];

  for (const Way *w = all_ways[backend]; w->name; w++)
    for (uint32_t batch = 1; batch <= 3; batch += 2) {
      ImkOctbscanConfig c = *s->config;
      ImkOctbscan *kernel = NULL;
      double rms = 0;

      snprintf (
          where, sizeof (where), "%s, %s, %u a call", w->name, what, batch);
      c.strategy = w->strategy;
      c.max_jobs = batch;
      test_ok (imk_octbscan_new (w->backend, &c, &kernel, test_new_error ()));
      for (int again = 0; again < 2; again++) {
        for (uint32_t i = 0; i < s->n; i += batch)
          run_batch (w, kernel, s, i, s->n - i < batch ? s->n - i : batch);
        for (uint32_t i = 0; i < s->n; i++) {
          check_track (s, i, where);
          if (!isfinite (s->bscans[i].rms))
            continue;
          rms = fmax (rms, s->bscans[i].rms);
          check_complex (s, i, rms, where);
          if (s->bscans[i].has_images)
            check_images (s, i, rms, where);
          test_image_check_canaries (&s->linear[i], where);
          test_image_check_canaries (&s->complex[i], where);
        }
        if (c.fixed_pattern != IMK_OCTBSCAN_FIXED_PATTERN_NONE)
          check_pattern (s, kernel, rms, where);
        test_ok (imk_octbscan_reset (kernel, test_new_error ()));
      }
      imk_octbscan_free (kernel);
    }
}

static void
check_shifted (ImkBackend backend, const ImkOctbscanConfig *c, uint32_t n,
    const double *shifts, uint32_t every, const char *what)
{
  test_auto (Sequence) s = sequence_new (c, n, shifts, every, c->bidirectional);

  check_sequence (backend, &s, what);
}

static void
check_config (ImkBackend backend, const ImkOctbscanConfig *c, uint32_t n,
    const char *what)
{
  check_shifted (backend, c, n, NULL, 1, what);
}

/* @n_mean: B-scans of the mean that is tracked */
static void
track (ImkOctbscanConfig *c, int tracking, uint32_t n_mean)
{
  c->tracking = tracking;
  c->tracking_top = 6;
  c->tracking_bottom = 20;
  c->tracking_bscans = n_mean;
}

/* Cameras of which the second is @gain times as bright. */
static void
set_cameras (ImkOctbscanConfig *c, uint32_t n, double gain)
{
  static ImkOctbscanCamera cameras[3];

  cameras[1].gain = gain;
  c->n_cameras = n;
  c->cameras = cameras;
}

/* --- the steps, one at a time --------------------------------------------- */

/* What running backgrounds of n = 2 are after @end B-scans, in float64. */
static void
expect_background (const Sequence *s, uint32_t end, double *m)
{
  const ImkOctbscanConfig *c = s->config;
  bool is_mean = c->background_mode == IMK_OCTBSCAN_BACKGROUND_MEAN;

  for (uint32_t i = 0; i < end; i++)
    for (uint32_t k = 0; k < c->n_cameras * c->width; k++) {
      const ImkOctbscanReference *b = &s->bscans[i];
      double sum = 0, n = 0, share = i == 0 || is_mean ? 1 : 2;

      for (uint32_t row = 0; row < c->height; row++)
        if ((row + b->first_camera) % c->n_cameras == k / c->width) {
          sum += b->x[(size_t) row * c->width + k % c->width];
          n++;
        }
      if (i < 2 || c->background_mode != IMK_OCTBSCAN_BACKGROUND_FIRST)
        m[k] = share == 1 ? sum / n : m[k] + (sum / n - m[k]) / share;
    }
}

/* What was taken off last is what the definition says, and as FILE of another
 * object it gives the same image. */
static void
check_background (const Way *w, const ImkOctbscanConfig *config)
{
  ImkOctbscanConfig c = *config;
  test_auto (Sequence) s = sequence_new (&c, 5, NULL, 1, false);
  size_t n = c.n_cameras * c.width;
  test_autofree double *m = calloc (n, sizeof (*m)),
                       *found = calloc (n, sizeof (*found));
  test_autoptr (ImkOctbscan) kernel = NULL;
  test_auto (TestImage) image;

  c.strategy = w->strategy;
  c.max_jobs = 3;
  test_ok (imk_octbscan_new (w->backend, &c, &kernel, test_new_error ()));
  test_ok (imk_octbscan_get_background (kernel, found, test_new_error ()));
  test_check (found[0] == 0, "%s: a background of nothing", w->name);
  run_batch (w, kernel, &s, 0, 3);
  run_batch (w, kernel, &s, 3, 2);
  test_ok (imk_octbscan_get_background (kernel, found, test_new_error ()));
  expect_background (&s, 5, m);
  for (size_t i = 0; i < n; i++)
    test_check (fabs (found[i] - m[i]) <= 1e-10 * m[i],
        "%s: background %d at %zu is %.15g, expected %.15g", w->name,
        c.background_mode, i, found[i], m[i]);
  imk_octbscan_free (kernel);
  image = s.linear[4];
  s.linear[4] = test_image_new (
      IMK_TYPE_F32, image.image.width, image.image.height, 1, 12);
  c.background_mode = IMK_OCTBSCAN_BACKGROUND_FILE;
  c.background = found;
  test_ok (imk_octbscan_new (w->backend, &c, &kernel, test_new_error ()));
  run_batch (w, kernel, &s, 4, 1);
  test_image_same (&image, &s.linear[4], w->name);
  test_ok (imk_octbscan_get_background (kernel, m, test_new_error ()));
  test_check (memcmp (m, found, n * sizeof (*m)) == 0,
      "%s: a file is not what was given", w->name);
}

TEST_BACKENDS (
    test_backgrounds_are_told, "backgrounds are told", .cpu_only = true)
{
  static const ImkOctbscanBackground modes[] = {IMK_OCTBSCAN_BACKGROUND_MEAN,
      IMK_OCTBSCAN_BACKGROUND_RUNNING, IMK_OCTBSCAN_BACKGROUND_FIRST};
  ImkOctbscanConfig c = base_config (20);

  set_cameras (&c, 3, 2);
  c.background_bscans = 2;
  for (const Way *w = all_ways[backend]; w->name; w++)
    for (int i = 0; i < 3; i++) {
      c.background_mode = modes[i];
      check_background (w, &c);
    }
}

TEST_BACKENDS (
    test_backgrounds, "backgrounds are the definition", .cpu_only = true)
{
  static const char *const names[] = {
      [IMK_OCTBSCAN_BACKGROUND_RUNNING] = "running",
      [IMK_OCTBSCAN_BACKGROUND_FIRST] = "first",
      [IMK_OCTBSCAN_BACKGROUND_ROLLING] = "rolling",
  };

  for (int mode = IMK_OCTBSCAN_BACKGROUND_RUNNING;
       mode <= IMK_OCTBSCAN_BACKGROUND_ROLLING; mode++)
    /* with two rows of three cameras, one has none in each B-scan */
    for (uint32_t height = 2; height <= 20; height += 18) {
      ImkOctbscanConfig c = base_config (height);

      set_cameras (&c, 3, 2);
      c.background_mode = mode;
      c.background_bscans = 3;
      c.background_reach = 9;
      check_config (backend, &c, 7, names[mode]);
    }
}

/* In segments, of each B-scan, of the first, of a file. */
TEST_BACKENDS (
    test_patterns, "fixed patterns are the definition", .cpu_only = true)
{
  double pattern[4 * DEPTHS];

  for (uint32_t i = 0; i < 4 * DEPTHS; i++)
    pattern[i] = 3 * sin (i);
  for (int mode = IMK_OCTBSCAN_FIXED_PATTERN_MINVAR;
       mode <= IMK_OCTBSCAN_FIXED_PATTERN_FILE; mode++)
    for (uint32_t height = 3; height <= 33; height += 30) {
      ImkOctbscanConfig c = base_config (height);

      set_cameras (&c, 2, 3);
      c.fixed_pattern = mode;
      c.pattern = pattern;
      c.pattern_segments = 4;
      check_config (backend, &c, 4, "pattern");
    }
}

TEST_BACKENDS (
    test_lateral, "scans, means and flips are the definition", .cpu_only = true)
{
  static const double curve[] = {0, 3, 7.5, 16.2, 20};
  char what[64];

  for (int scan = 0; scan <= IMK_OCTBSCAN_SCAN_CURVE; scan++)
    for (uint32_t average = 1; average <= 4; average += 3)
      for (int flip = 0; flip <= IMK_OCTBSCAN_FLIP_BOTH; flip++)
        for (int orientation = 0; orientation < 2; orientation++) {
          ImkOctbscanConfig c = base_config (21);

          c.scan = scan;
          c.scan_curve = curve;
          c.n_scan_curve = 5;
          c.average_ascans = average;
          c.bidirectional = true;
          c.flip = flip;
          c.orientation = orientation;
          snprintf (what, sizeof (what), "scan %d average %u flip %d", scan,
              average, flip);
          check_config (backend, &c, 3, what);
        }
}

/* Where columns are closer than A-scans, a mean of columns has the same two
 * A-scans several times. */
TEST (test_lateral_rows_are_read_once, "a mean reads each A-scan once")
{
  ImkOctbscanConfig c = base_config (200);
  ImkOctbscanLateral *lateral = NULL;

  c.scan = IMK_OCTBSCAN_SCAN_SINE;
  c.average_ascans = 7;
  test_ok (imk_octbscan_lateral_new (&c, &lateral, test_new_error ()));
  for (uint32_t i = 0; i < lateral->n_ascans; i++)
    for (uint32_t k = lateral->first[i] + 1; k < lateral->first[i + 1]; k++)
      test_check (lateral->rows[k] > lateral->rows[k - 1],
          "A-scan %u is of row %u after row %u", i, lateral->rows[k],
          lateral->rows[k - 1]);
  imk_octbscan_lateral_free (lateral);
}

TEST_BACKENDS (test_means_of_bscans, "means of B-scans are the definition",
    .cpu_only = true)
{
  for (uint32_t every = 1; every <= 4; every += 3) {
    ImkOctbscanConfig c = base_config (9);

    c.averages_bscans = true;
    check_shifted (backend, &c, 10, NULL, every, "means");
  }
}

TEST_BACKENDS (test_enface, "en-face rows are the definition", .cpu_only = true)
{
  for (int projection = 0; projection <= IMK_OCTBSCAN_PROJECTION_MAXIMUM;
       projection++) {
    ImkOctbscanConfig c = base_config (19);

    c.projection = projection;
    c.enface_top = 11;
    c.enface_bottom = 20;
    check_config (backend, &c, 2, "en face");
  }
}

/* An image has the ends of its lit pixels alone, and shows them alike. */
TEST (test_black_pixels_are_no_part_of_the_range,
    "black pixels of an en-face image are no part of its range")
{
  enum { N_PIXELS = 40, N_LIT = 30 }; /* three of four */
  float lit[N_LIT], all[N_PIXELS] = {0};
  uint64_t seed = 5;

  for (uint32_t i = 0; i < N_LIT; i++)
    all[i + i / 3] = lit[i] = (float) pow (10, 1 + 4 * oct_uniform (&seed));
  for (int range = 0; range < IMK_OCTBSCAN_N_RANGES; range++) {
    ImkOctbscanConfig c = base_config (1);
    uint8_t levels[2][N_PIXELS];
    float ends[2][4];

    c.range = range;
    c.percent_min = 10;
    c.percent_max = 90;
    for (int k = 0; k < 2; k++) {
      uint32_t n = k ? N_PIXELS : N_LIT;
      const ImkImage in = {
          k ? all : lit, n * sizeof (float), n, 1, 1, IMK_TYPE_F32, 0};
      ImkImage out = {levels[k], n, n, 1, 1, IMK_TYPE_U8, 0};

      test_ok (imk_octbscan_level_image (
          &c, true, &in, &out, ends[k], test_new_error ()));
    }
    for (int k = 0; k < 4; k++)
      test_check (ends[1][k] == ends[0][k],
          "range %d: end %d is %g, of lit pixels %g", range, k, ends[1][k],
          ends[0][k]);
    for (uint32_t i = 0; i < N_PIXELS; i++)
      test_check (levels[1][i] == (all[i] > 0 ? levels[0][i - i / 4] : 0),
          "range %d: pixel %u is %u", range, i, levels[1][i]);
  }
}

static const double shifts[] = {0, 3, 1, -2, -4, 0.4, 5, 2, -3, 1};

static const char *const tracking_names[] = {
    [IMK_OCTBSCAN_TRACKING_RPE] = "rpe",
    [IMK_OCTBSCAN_TRACKING_CONTOUR] = "contour",
    [IMK_OCTBSCAN_TRACKING_XCORR] = "xcorr",
};

TEST_BACKENDS (test_tracking, "tracking is the definition", .cpu_only = true)
{
  double profile[1024];

  for (uint32_t z = 0; z < 1024; z++)
    profile[z] = 1000 * exp (-0.02 * (z - 20.3) * (z - 20.3)) + z % 7;
  for (int t = 1; t <= IMK_OCTBSCAN_TRACKING_XCORR; t++)
    for (uint32_t n_mean = 1; n_mean <= 10; n_mean += 3) {
      ImkOctbscanConfig c = base_config (24);

      track (&c, t, n_mean);
      c.tracking_lock = n_mean == 7;
      c.tracking_complex = n_mean > 1;
      if (n_mean == 10) {
        c.tracking_profile = profile;
        c.n_tracking_profile = imk_octbscan_n_depths (&c) - 26;
      }
      check_shifted (backend, &c, 10, shifts, 1, tracking_names[t]);
    }
}

/* All at once. */
TEST_BACKENDS (
    test_together, "all of it together is the definition", .cpu_only = true)
{

  for (int t = 1; t <= IMK_OCTBSCAN_TRACKING_XCORR; t++) {
    ImkOctbscanConfig c = base_config (25);

    set_cameras (&c, 2, 2);
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_RUNNING;
    c.background_bscans = 4;
    c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_MINVAR;
    c.pattern_segments = 3;
    c.scan = IMK_OCTBSCAN_SCAN_SINE;
    c.average_ascans = 2;
    c.averages_bscans = c.bidirectional = true;
    c.flip = IMK_OCTBSCAN_FLIP_BOTH;
    c.tracking = t;
    c.tracking_complex = t != IMK_OCTBSCAN_TRACKING_CONTOUR;
    c.tracking_top = 5;
    c.tracking_bottom = 21;
    c.tracking_bscans = 5;
    c.enface_top = 3;
    c.crop_top = 1;
    check_shifted (backend, &c, 10, shifts, 2, "all");
  }
}

/* A spectrum with a sample that is not a number is missing, and nothing else:
 * all that other A-scans and B-scans take from neighbours is of those that are
 * there. */
TEST_BACKENDS (test_missing_ascans,
    "a spectrum that is not a number is missing alone", .cpu_only = true)
{
  static const double wild[] = {NAN, INFINITY, -INFINITY, 3e15, -1e30};
  static const double curve[] = {0, 4.5, 9, 11.25, 23};

  for (int mode = 0; mode < 8; mode++) {
    ImkOctbscanCamera cameras[3] = {{.gain = 1}, {.gain = 1}, {.gain = 2}};
    ImkOctbscanConfig c = base_config (24);
    test_auto (Sequence) s;

    c.type = IMK_TYPE_F32;
    c.n_cameras = mode % 2 ? 3 : 1;
    c.cameras = cameras;
    c.background_mode = mode < 4   ? IMK_OCTBSCAN_BACKGROUND_MEAN
                        : mode < 6 ? IMK_OCTBSCAN_BACKGROUND_RUNNING
                                   : IMK_OCTBSCAN_BACKGROUND_ROLLING;
    c.fixed_pattern = mode == 2 || mode == 5 ? IMK_OCTBSCAN_FIXED_PATTERN_MINVAR
                                             : IMK_OCTBSCAN_FIXED_PATTERN_NONE;
    c.pattern_segments = 3;
    c.average_ascans = mode < 3 ? 1 : 4;
    c.scan = mode > 5 ? IMK_OCTBSCAN_SCAN_CURVE : IMK_OCTBSCAN_SCAN_EVEN;
    c.scan_curve = curve;
    c.n_scan_curve = 5;
    c.averages_bscans = mode > 3;
    c.tracking =
        mode == 4 ? IMK_OCTBSCAN_TRACKING_RPE : IMK_OCTBSCAN_TRACKING_NONE;
    s = sequence_new_wild (&c, 4, NULL, mode > 3 ? 2 : 1, false, UINT32_MAX,
        mode == 7 ? 9 : 3, wild, sizeof (wild) / sizeof (wild[0]));
    check_sequence (backend, &s, "missing A-scans");
  }
}

/* What is infinite leaves nothing to the B-scans behind it, first or not. */
TEST_BACKENDS (
    test_infinite, "what is infinite is not remembered", .cpu_only = true)
{
  for (int t = 0; t <= IMK_OCTBSCAN_TRACKING_XCORR; t++)
    for (int mode = IMK_OCTBSCAN_BACKGROUND_RUNNING;
         mode <= IMK_OCTBSCAN_BACKGROUND_FIRST; mode++)
      for (uint32_t infinite = 0; infinite <= 2; infinite += 2) {
        ImkOctbscanConfig c = base_config (24);
        test_auto (Sequence) s;

        c.type = IMK_TYPE_F32;
        c.background_mode = mode;
        c.background_bscans = 4;
        c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_ONCE;
        c.pattern_segments = 3;
        track (&c, t, 5);
        s = sequence_new_wild (&c, 7, shifts, 1, false, infinite, 0, NULL, 0);
        check_sequence (backend, &s, "infinite");
      }
}

/* --- what it is for ------------------------------------------------------- */

/* The place of each B-scan is where its layers were put, and the images are in
 * step to half a depth. */
TEST (test_tracking_finds_known_shifts, "tracking finds known shifts")
{
  static const double bounds[] = {
      [IMK_OCTBSCAN_TRACKING_RPE] = 0.25,
      [IMK_OCTBSCAN_TRACKING_CONTOUR] = 0.25,
      [IMK_OCTBSCAN_TRACKING_XCORR] = 0.3,
  };

  for (int t = 1; t <= IMK_OCTBSCAN_TRACKING_XCORR; t++) {
    ImkOctbscanConfig c = base_config (64);
    test_auto (Sequence) s;

    track (&c, t, 16);
    s = sequence_new (&c, 10, shifts, 1, false);
    check_sequence (IMK_BACKEND_CPU, &s, tracking_names[t]);
    for (uint32_t i = 0; i < 10; i++) {
      const float *track = s.track[i].image.data;
      double moved = track[0] - ((float *) s.track[0].image.data)[0];

      test_check (fabs (moved - shifts[i]) < bounds[t],
          "%s: B-scan %u moved by %.2f, expected %.2f", tracking_names[t], i,
          moved, shifts[i]);
      test_check (fabs (track[0] + track[3] - track[2]) <= 0.5 + 1e-5,
          "%s: B-scan %u is at %.2f after the shift, the mean is %.2f",
          tracking_names[t], i, track[0] + track[3], track[2]);
    }
  }
}

/* A sample that moves on and on: the mean follows it, and so do the images;
 * with a lock they stay where the first one was, or the one before the lock. */
TEST (
    test_a_lock_keeps_images_from_drifting, "a lock keeps images from drifting")
{
  enum { N = 16 };
  double drift[N], last[2];

  for (int i = 0; i < N; i++)
    drift[i] = 1.2 * i;
  for (int t = 1; t <= IMK_OCTBSCAN_TRACKING_XCORR; t++) {
    for (int lock = 0; lock < 2; lock++) {
      ImkOctbscanConfig c = base_config (24);
      test_auto (Sequence) s;

      track (&c, t, 8);
      c.tracking_lock = lock;
      s = sequence_new (&c, N, drift, 1, false);
      check_sequence (IMK_BACKEND_CPU, &s, tracking_names[t]);
      last[lock] = drift[N - 1] + ((float *) s.track[N - 1].image.data)[3];
    }
    printf ("# %s: the last of %d images is %.1f depths from the first, with a "
            "lock %.1f\n",
        tracking_names[t], N, last[0], last[1]);
    test_check (fabs (last[1]) < 1, "%s: %.2f depths with a lock",
        tracking_names[t], last[1]);
    test_check (fabs (last[0]) > 3, "%s: %.2f depths without a lock",
        tracking_names[t], last[0]);
  }
}

/* --- a sample that moves ------------------------------------------------- */

enum { MOVED_N = 256, MOVED_ASCANS = 24, MOVED_BSCANS = 8 };

/* Scatterers from depth 20 to 100 of a scale of 1, @shift deeper, through a
 * lamp that is dark at the ends, with noise. They turn with the shift, as light
 * does. */
static void
fill_moved (float *x, double shift, double noise, uint64_t seed)
{
  enum { SCATTERERS = 160 };

  for (uint32_t a = 0; a < MOVED_ASCANS; a++) {
    uint64_t own = 1000 + a;
    double depths[SCATTERERS], phases[SCATTERERS];

    for (int k = 0; k < SCATTERERS; k++) {
      depths[k] = 20 + 80 * oct_uniform (&own) + shift;
      phases[k] = 2 * M_PI * oct_uniform (&own) + 40 * shift;
    }
    for (uint32_t i = 0; i < MOVED_N; i++) {
      double lamp = 1 - cos (2 * M_PI * (i + 0.5) / MOVED_N), sum = 0;
      double radius = noise * sqrt (-2 * log (oct_uniform (&seed)));

      for (int k = 0; k < SCATTERERS; k++)
        sum += cos (2 * M_PI * i * depths[k] / MOVED_N + phases[k]);
      *x++ =
          (float) (lamp * sum + radius * cos (2 * M_PI * oct_uniform (&seed)));
    }
  }
}

/* 1 - |S| / E of neighbouring B-scans, each A-scan with its own phase, without
 * what the ends of the depths have. @power: (out): mean |Z|^2 */
static double
decorrelation_of (
    const float *z, uint32_t n_depths, uint32_t scale, double *power)
{
  size_t size = 2 * (size_t) MOVED_ASCANS * n_depths;
  double sum = 0, energy = 0;

  for (uint32_t b = 0; b + 1 < MOVED_BSCANS; b++)
    for (uint32_t a = 0; a < MOVED_ASCANS; a++) {
      double re = 0, im = 0;

      for (uint32_t q = 30 * scale; q < 90 * scale; q++) {
        const float *v = z + b * size + 2 * ((size_t) a * n_depths + q);
        const float *w = v + size;

        re += (double) v[0] * w[0] + (double) v[1] * w[1];
        im += (double) v[0] * w[1] - (double) v[1] * w[0];
        energy += 0.5 * ((double) v[0] * v[0] + (double) v[1] * v[1] +
                            (double) w[0] * w[0] + (double) w[1] * w[1]);
      }
      sum += hypot (re, im);
    }
  *power = energy / ((MOVED_BSCANS - 1) * MOVED_ASCANS * (double) (60 * scale));
  return 1 - sum / energy;
}

/* Repeats of tissue that moves by fractions of a depth differ by their noise
 * alone: P_n / mean |Z|^2 with P_n = 4 sigma^2 / N without a window. */
TEST (test_repeats_that_moved_correlate,
    "complex repeats of a sample that moved correlate")
{
  static const double moves[MOVED_BSCANS] = {
      0, 0.5, -2.3, 1.75, 4.125, -0.4, 3.6, -3.2};
  const double noise = 0.5;
  float *x = malloc (MOVED_ASCANS * MOVED_N * sizeof (*x));

  for (uint32_t scale = 1; scale <= 4; scale *= 2) {
    uint32_t n = MOVED_N * scale / 2;
    size_t size = 2 * (size_t) MOVED_ASCANS * n;
    test_autofree float *z = calloc (MOVED_BSCANS * size, sizeof (*z));
    test_autoptr (ImkOctbscan) kernel = NULL;
    ImkOctbscanConfig c = base_config (MOVED_ASCANS);
    double found, floor, power;

    c.type = IMK_TYPE_F32;
    c.width = c.upsample = MOVED_N;
    c.scale = scale;
    c.window = IMK_OCTBSCAN_WINDOW_NONE;
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_NONE;
    c.tracking = IMK_OCTBSCAN_TRACKING_XCORR;
    c.tracking_lock = c.tracking_complex = true;
    c.tracking_reach = 12 * scale;
    test_check (imk_octbscan_n_depths (&c) == n, "not %u depths", n);
    test_ok (
        imk_octbscan_new (IMK_BACKEND_CPU, &c, &kernel, test_new_error ()));
    for (uint32_t b = 0; b < MOVED_BSCANS; b++) {
      ImkImage in = {x, MOVED_N * sizeof (*x), MOVED_N, MOVED_ASCANS, 1,
          IMK_TYPE_F32, IMK_LOCATION_HOST};
      ImkImage out = {z + b * size, 2 * n * sizeof (*z), n, MOVED_ASCANS, 1,
          IMK_TYPE_CF32, IMK_LOCATION_HOST};
      ImkOctbscanJob job = {.in = &in, .complex = &out};

      fill_moved (x, moves[b], noise, 7 + b);
      test_ok (imk_octbscan_process (kernel, &job, 1, NULL, test_new_error ()));
    }
    found = decorrelation_of (z, n, scale, &power);
    floor = 4 * noise * noise / MOVED_N / power;
    printf ("# scale %u: decorrelation %.2e, of noise alone %.2e\n", scale,
        found, floor);
    test_check (found < 1.1 * floor + (scale == 1 ? 2e-3 : 0),
        "scale %u: decorrelation %g, of noise alone %g", scale, found, floor);
  }
  free (x);
}

/* What is the same in all A-scans goes, though a few of them differ wildly. */
TEST (test_minimum_variance_removes_a_pattern,
    "minimum variance removes a pattern")
{
  for (int mode = 0; mode < 2; mode++) {
    ImkOctbscanConfig c = base_config (64);
    double before = 0, after = 0;
    test_auto (Sequence) s;

    c.background_mode = IMK_OCTBSCAN_BACKGROUND_NONE;
    c.fixed_pattern = mode ? IMK_OCTBSCAN_FIXED_PATTERN_MINVAR
                           : IMK_OCTBSCAN_FIXED_PATTERN_NONE;
    s = sequence_new (&c, 1, NULL, 1, false);
    check_sequence (IMK_BACKEND_CPU, &s, "pattern");
    for (uint32_t a = 0; a < 64; a++) {
      before += s.bscans[0].intensity[a * DEPTHS + 50];
      after += s.bscans[0].intensity[a * DEPTHS + 20];
    }
    test_check (mode == (before < 0.01 * after),
        "the pattern is %g of the layer with pattern %d", before / after, mode);
  }
}

/* B-scans that are still to come do not come; what was added is shown once. */
TEST (test_a_mean_is_drained, "a mean is drained")
{
  for (const Way *w = cpu_ways; w->name; w++) {
    ImkOctbscanConfig c = base_config (9);
    test_autoptr (ImkOctbscan) kernel = NULL;
    ImkOctbscanJob job = {NULL};
    test_auto (Sequence) s = {0};

    c.averages_bscans = true;
    c.strategy = w->strategy;
    s = sequence_new (&c, 4, NULL, 4, false);
    test_ok (imk_octbscan_new (w->backend, &c, &kernel, test_new_error ()));
    for (uint32_t i = 0; i < 4; i++) {
      job = (ImkOctbscanJob){.in = &s.in[i].image};
      test_ok (imk_octbscan_process (kernel, &job, 1, NULL, test_new_error ()));
    }
    job = (ImkOctbscanJob){
        .linear = &s.linear[3].image, .enface = &s.enface[3].image};
    test_ok (imk_octbscan_process (kernel, &job, 1, NULL, test_new_error ()));
    check_images (&s, 3, s.bscans[3].rms, w->name);
    test_ok (imk_octbscan_process (kernel, &job, 1, NULL, test_new_error ()));
    for (uint32_t i = 0; i < 9; i++)
      test_check (((float *) s.enface[3].image.data)[i] == 0,
          "%s: what was shown is shown again", w->name);
  }
}

/* No NaN comes of nothing. */
TEST (test_dark_bscans_are_black, "dark B-scans are black")
{
  for (int t = 0; t <= IMK_OCTBSCAN_TRACKING_XCORR; t++) {
    ImkOctbscanConfig c = base_config (12);
    test_auto (TestImage) in = test_image_new (c.type, WIDTH, 12, 1, 0);
    test_auto (TestImage) out = test_image_new (IMK_TYPE_F32, 12, DEPTHS, 1, 0);
    test_auto (TestImage) track = test_image_new (IMK_TYPE_F32, 4, 1, 1, 0);
    ImkOctbscanJob job = {
        .in = &in.image, .linear = &out.image, .track = &track.image};
    test_autoptr (ImkOctbscan) kernel = NULL;

    c.tracking = t;
    c.averages_bscans = true;
    c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_MINVAR;
    test_ok (
        imk_octbscan_new (IMK_BACKEND_CPU, &c, &kernel, test_new_error ()));
    for (uint32_t i = 0; i < 3; i++) {
      test_ok (imk_octbscan_process (kernel, &job, 1, NULL, test_new_error ()));
      for (uint32_t k = 0; k < 12 * DEPTHS; k++)
        test_check (((float *) out.image.data)[k] == 0,
            "tracking %d: pixel %u is %g", t, k, ((float *) out.image.data)[k]);
      test_check (((float *) track.image.data)[3] == 0 &&
                      isfinite (((float *) track.image.data)[2]),
          "tracking %d: the shift of darkness is %g", t,
          ((float *) track.image.data)[3]);
    }
  }
}

/* --- refusals ------------------------------------------------------------- */

#define CHECK_REFUSED(member, value, words) \
  do { \
    ImkOctbscanConfig wrong_ = base_config (4); \
\
    wrong_.member = value; \
    oct_refused (&wrong_, words); \
  } while (0)

TEST (test_wrong_settings_are_refused, "wrong settings are refused")
{
  static const double outside[] = {0, 3.1}, not_finite[] = {NAN, 1};
  double pattern[2 * DEPTHS] = {0};
  ImkOctbscanConfig c = base_config (4);

  CHECK_REFUSED (background_bscans, 0, "background-bscans is 0");
  CHECK_REFUSED (background_reach, 0, "background-reach is 0");
  CHECK_REFUSED (background_mode, 6, "background is 6");
  CHECK_REFUSED (fixed_pattern, 4, "fixed-pattern is 4");
  CHECK_REFUSED (
      fixed_pattern, IMK_OCTBSCAN_FIXED_PATTERN_FILE, "pattern-location");
  CHECK_REFUSED (pattern_segments, 0, "pattern-segments is 0");
  CHECK_REFUSED (scan, 3, "scan-correction is 3");
  CHECK_REFUSED (scan, IMK_OCTBSCAN_SCAN_CURVE, "Set scan-curve");
  CHECK_REFUSED (average_ascans, 0, "average-ascans is 0");
  CHECK_REFUSED (flip, 4, "flip is 4");
  CHECK_REFUSED (tracking, 4, "tracking is 4");
  CHECK_REFUSED (tracking_bscans, 0, "tracking-bscans is 0");
  CHECK_REFUSED (tracking_bscans, 257, "tracking-bscans is 257");
  CHECK_REFUSED (tracking_reach, 0, "tracking-reach is 0");
  {
    static const double profile[3] = {1, 2, NAN};
    ImkOctbscanConfig c = base_config (24);

    c.tracking = IMK_OCTBSCAN_TRACKING_RPE;
    c.tracking_profile = profile;
    c.n_tracking_profile = 3;
    oct_refused (&c, "tracking-reference has 3 values");
    c.tracking_top = imk_octbscan_n_depths (&c) - 3;
    oct_refused (&c, "Value 2 of tracking-reference is nan");
  }
  CHECK_REFUSED (projection, 2, "enface-projection is 2");
  CHECK_REFUSED (enface_top, 64, "enface-top 64");
  CHECK_REFUSED (enface_bottom, UINT32_MAX, "leave 0 of the 64 depths");
  c.tracking = IMK_OCTBSCAN_TRACKING_RPE;
  c.tracking_bottom = 62;
  oct_refused (&c, "tracking-bottom 62 leave 2 of the 64 depths");
  c = base_config (4);
  c.scan = IMK_OCTBSCAN_SCAN_CURVE;
  c.scan_curve = outside;
  c.n_scan_curve = 2;
  oct_refused (&c, "Value 1 of scan-curve is 3.1");
  c.scan_curve = not_finite;
  oct_refused (&c, "Value 0 of scan-curve is nan");
  c = base_config (4);
  c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_FILE;
  c.pattern = pattern;
  pattern[7] = INFINITY;
  oct_refused (&c, "Depth 3 of the fixed pattern of camera 0 is inf");
}

TEST (test_history_is_said, "what has a history says so")
{
  ImkOctbscanConfig c = base_config (4);

  test_check (!imk_octbscan_has_history (&c), "a plain B-scan has a history");
  c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_MINVAR;
  test_check (!imk_octbscan_has_history (&c), "its own pattern is a history");
  c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_ONCE;
  test_check (imk_octbscan_has_history (&c), "a kept pattern is none");
}
