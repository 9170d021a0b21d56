/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* octbscan against the sums of its definition in float64, closed forms, and
 * each backend and strategy against the others. */
#include "oct-common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "imk/device.h"
#include "core/failures.h"
#include "octbscan/octbscan-reference.h"

enum { MAX_SAMPLES = 1024 };

/* --- ways to run a B-scan ------------------------------------------------- */

static const Way cuda_ways[] = {
    {"cuda operator", IMK_BACKEND_CUDA, IMK_OCTBSCAN_STRATEGY_OPERATOR},
    {"cuda fft", IMK_BACKEND_CUDA, IMK_OCTBSCAN_STRATEGY_FFT},
    {NULL},
};

/* By ImkBackend. */
static const Way *const all_ways[] = {cpu_ways, cuda_ways};

/* What a B-scan gave. */
typedef struct Result {
  TestImage db, linear, complex;
  uint32_t n_bad;
  float ends[4];
} Result;

static void
result_free (Result *r)
{
  test_image_free (&r->db);
  test_image_free (&r->linear);
  test_image_free (&r->complex);
}

TEST_DEFINE_AUTO (Result, result_free)

static void
check_same (const Result *a, const Result *b, const char *where)
{
  test_image_same (&a->db, &b->db, where);
  test_image_same (&a->linear, &b->linear, where);
  test_image_same (&a->complex, &b->complex, where);
}

static ImkOctbscanConfig
base_config (uint32_t width, uint32_t height)
{
  ImkOctbscanConfig c;

  imk_octbscan_config_init (&c);
  c.width = width;
  c.height = height;
  c.upsample = width;
  c.taper_cut = 9;
  return c;
}

static Result
result_new (const ImkOctbscanConfig *c, ImkType type, uint32_t padding)
{
  uint32_t width, height;

  imk_octbscan_size (c, &width, &height);
  return (Result){
      .db = test_image_new (type, width, height, 1, padding),
      .linear = test_image_new (type, width, height, 1, padding),
      .complex = test_image_new (
          IMK_TYPE_CF32, imk_octbscan_n_depths (c), c->height, 1, 2 * padding),
  };
}

static void
run_on_device (ImkOctbscan *s, const TestImage *in, uint32_t first, Result *r)
{
  test_auto (ImkImage) from = test_to_device (in), db = test_to_device (&r->db);
  test_auto (ImkImage) linear = test_to_device (&r->linear);
  test_auto (ImkImage) complex = test_to_device (&r->complex);
  test_auto (TestImage) said = test_image_new (IMK_TYPE_F32, 5, 1, 1, 0);
  test_auto (TestMapped) word = {0};
  ImkOctbscanJob job = {&from, first, &db, &linear, &complex};

  memset (said.image.data, 0, sizeof (*job.n_bad));
  word = test_to_mapped (&said);
  job.n_bad = word.image.data;
  job.ends = (float *) word.image.data + 1;
  test_ok (imk_octbscan_process (s, &job, 1, NULL, test_new_error ()));
  test_from_mapped (&word, &said);
  memcpy (&r->n_bad, said.image.data, sizeof (r->n_bad));
  memcpy (r->ends, (float *) said.image.data + 1, sizeof (r->ends));
  test_from_device (&db, &r->db);
  test_from_device (&linear, &r->linear);
  test_from_device (&complex, &r->complex);
}

static void
run_kernel (const Way *way, ImkOctbscan *s, const TestImage *in,
    uint32_t first_camera, Result *r)
{
  const ImkOctbscanJob job = {&in->image, first_camera, &r->db.image,
      &r->linear.image, &r->complex.image, .n_bad = &r->n_bad, .ends = r->ends};

  if (way->backend == IMK_BACKEND_CUDA)
    run_on_device (s, in, first_camera, r);
  else
    test_ok (imk_octbscan_process (s, &job, 1, NULL, test_new_error ()));
}

static Result
run (const Way *way, const ImkOctbscanConfig *config, const TestImage *in,
    uint32_t first_camera, ImkType type)
{
  ImkOctbscanConfig c = *config;
  Result r = result_new (&c, type, 12);
  ImkOctbscan *s = NULL;

  c.strategy = way->strategy;
  test_ok (imk_octbscan_new (way->backend, &c, &s, test_new_error ()));
  run_kernel (way, s, in, first_camera, &r);
  imk_octbscan_free (s);
  test_image_check_canaries (&r.db, way->name);
  test_image_check_canaries (&r.linear, way->name);
  test_image_check_canaries (&r.complex, way->name);
  return r;
}

/* --- samples -------------------------------------------------------------- */

static void *
at (const TestImage *image, uint32_t x, uint32_t y)
{
  const ImkImage *i = &image->image;

  return (uint8_t *) i->data + y * i->stride + x * imk_type_size (i->type);
}

static double
sample (const TestImage *image, uint32_t x, uint32_t y)
{
  const void *p = at (image, x, y);

  switch (image->image.type) {
  case IMK_TYPE_U8:
    return *(const uint8_t *) p;
  case IMK_TYPE_U16:
    return *(const uint16_t *) p;
  case IMK_TYPE_I16:
    return *(const int16_t *) p;
  default:
    return *(const float *) p;
  }
}

static void
set_sample (TestImage *image, uint32_t x, uint32_t y, double value)
{
  void *p = at (image, x, y);

  switch (image->image.type) {
  case IMK_TYPE_U8:
    *(uint8_t *) p = (uint8_t) fmin (fmax (value, 0), 255);
    break;
  case IMK_TYPE_U16:
    *(uint16_t *) p = (uint16_t) fmin (fmax (value, 0), 65535);
    break;
  case IMK_TYPE_I16:
    *(int16_t *) p = (int16_t) fmin (fmax (value, -32768), 32767);
    break;
  default:
    *(float *) p = (float) value;
    break;
  }
}

/* A pedestal with a hump, three fringes that differ from row to row, noise. */
static TestImage
spectra (const ImkOctbscanConfig *c, double pedestal, double amplitude)
{
  TestImage in = test_image_new (c->type, c->width, c->height, 1, 6);
  uint64_t seed = 7;

  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      double u = (x + 0.5) / c->width, v = pedestal * (1 + sin (M_PI * u));

      v += amplitude * cos (0.31 * c->width * u * u + 1.3 * y);
      v += amplitude / 2 * cos (0.9 * c->width * u + 0.4 * y * y);
      v += amplitude / 4 * ((double) (test_random (&seed) >> 40) / 0x1p23 - 1);
      set_sample (&in, x, y, v);
    }
  return in;
}

static double *
reference (
    const ImkOctbscanConfig *c, const TestImage *in, uint32_t first_camera)
{
  test_autofree double *x =
      malloc ((size_t) c->width * c->height * sizeof (*x));
  double *z =
      malloc (2 * (size_t) c->height * imk_octbscan_n_depths (c) * sizeof (*z));

  for (uint32_t row = 0; row < c->height; row++)
    for (uint32_t i = 0; i < c->width; i++)
      x[(size_t) row * c->width + i] = sample (in, i, row);
  imk_octbscan_reference (c, first_camera, x, z);
  return z;
}

static const float *
complex_row (const Result *r, uint32_t row)
{
  return (const float *) ((const uint8_t *) r->complex.image.data +
                          row * r->complex.image.stride);
}

/* Each Z within 1e-5 of the rms over the B-scan, as the header promises. */
static void
check_complex (const ImkOctbscanConfig *c, const Result *r,
    const double *expected, const char *where)
{
  uint32_t n = imk_octbscan_n_depths (c);
  double power = 0, rms, worst = 0, total = 0;

  for (size_t i = 0; i < 2 * (size_t) n * c->height; i++)
    power += expected[i] * expected[i];
  rms = sqrt (power / ((double) n * c->height));
  for (uint32_t row = 0; row < c->height; row++)
    for (uint32_t q = 0; q < n; q++) {
      const float *z = complex_row (r, row) + 2 * q;
      const double *e = expected + 2 * ((size_t) row * n + q);
      double d = hypot (z[0] - e[0], z[1] - e[1]);

      test_check (d <= 1e-5 * rms,
          "%s: row %u, depth %u: %.9g%+.9gi, expected %.9g%+.9gi, rms %.9g",
          where, row, q, z[0], z[1], e[0], e[1], rms);
      worst = fmax (worst, d);
      total += d * d;
    }
  printf ("# %s: rms error %.1e, worst %.1e of rms\n", where,
      sqrt (total / ((double) n * c->height)) / rms, worst / rms);
}

/* Float images are the intensity of the complex one, and its dB. */
static void
check_images (const ImkOctbscanConfig *c, const Result *r, const char *where)
{
  bool rows = c->orientation == IMK_OCTBSCAN_ORIENTATION_ROWS;

  for (uint32_t row = 0; row < c->height; row++)
    for (uint32_t q = 0; q < imk_octbscan_n_depths (c); q++) {
      const float *z = complex_row (r, row) + 2 * q;
      double i = (double) z[0] * z[0] + (double) z[1] * z[1];
      double linear = sample (&r->linear, rows ? q : row, rows ? row : q);
      double db = sample (&r->db, rows ? q : row, rows ? row : q);

      test_check (fabs (linear - i) <= 1e-6 * i + 1e-30,
          "%s: row %u, depth %u: intensity %.9g, expected %.9g", where, row, q,
          linear, i);
      test_check (fabs (db - 10 * log10 (fmax (i, 1e-20))) < 1e-4,
          "%s: row %u, depth %u: %.9g dB, expected %.9g", where, row, q, db,
          10 * log10 (fmax (i, 1e-20)));
    }
}

static void
check_ways (ImkBackend backend, const ImkOctbscanConfig *c, const TestImage *in,
    uint32_t first_camera, const char *what)
{
  test_autofree double *expected = reference (c, in, first_camera);
  char where[128];

  for (const Way *w = all_ways[backend]; w->name; w++) {
    test_auto (Result) r = run (w, c, in, first_camera, IMK_TYPE_F32);

    snprintf (where, sizeof (where), "%s, %s", w->name, what);
    check_complex (c, &r, expected, where);
    check_images (c, &r, where);
  }
}

/* --- the steps, one at a time and together -------------------------------- */

static double wavelengths[MAX_SAMPLES], chirp[MAX_SAMPLES];
static double k_index[MAX_SAMPLES], phases[MAX_SAMPLES];
static double spectrum_phases[MAX_SAMPLES];
static double background[2 * MAX_SAMPLES], pedestal[MAX_SAMPLES];
static const double range[] = {806, 675};
static const double polynomial[] = {840, 0.9, -1e-4};
static const double dispersion[] = {0.3, 1, -12, 3};
static const double own_window[] = {0, 0.7, 1.2, 1, 0.1};

static void
fill_curves (uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    double u = i / (n - 1.0);

    wavelengths[i] = 800 + 90 * u + 12 * u * u;
    chirp[i] = 3 + 400 * u + 40 * u * u;
    k_index[i] = (n - 1) * (u + 0.2 * u * (1 - u));
    phases[i] = 6 * (u - 0.4) * (u - 0.4);
    spectrum_phases[i] = -8 * (u - 0.5) * (u - 0.5);
    background[i] = 1000 * (1 + u);
    background[n + i] = 1500 - 300 * u;
  }
}

/* As base_config () with a camera of wavelengths. */
static ImkOctbscanConfig
range_config (uint32_t width, uint32_t height)
{
  static const ImkOctbscanCamera camera = {IMK_OCTBSCAN_MAP_RANGE, range, 2};
  ImkOctbscanConfig c = base_config (width, height);

  c.cameras = &camera;
  return c;
}

static const double k_polynomial[] = {3, -1, 0.12, 0.03};

TEST_BACKENDS (test_each_map, "each map is the definition")
{
  const uint32_t n = 60;
  const ImkOctbscanCamera cameras[] = {
      {IMK_OCTBSCAN_MAP_NONE},
      {IMK_OCTBSCAN_MAP_RANGE, range, 2},
      {IMK_OCTBSCAN_MAP_POLYNOMIAL, polynomial, 3},
      {IMK_OCTBSCAN_MAP_WAVELENGTHS, wavelengths, n},
      {IMK_OCTBSCAN_MAP_CHIRP, chirp, n},
      {IMK_OCTBSCAN_MAP_K_INDEX, k_index, n},
      {IMK_OCTBSCAN_MAP_K_POLYNOMIAL, k_polynomial, 4},
  };
  ImkOctbscanConfig c = base_config (n, 3);
  test_auto (TestImage) in = spectra (&c, 1000, 300);
  char what[64];

  fill_curves (n);
  c.upsample = 96;
  for (uint32_t i = 0; i < sizeof (cameras) / sizeof (cameras[0]); i++) {
    c.cameras = &cameras[i];
    snprintf (what, sizeof (what), "map %u", i);
    check_ways (backend, &c, &in, 0, what);
  }
}

/* Odd and even lengths, with and without upsampling, all scales. */
TEST_BACKENDS (test_each_interpolation, "each interpolation is the definition",
    .cpu_only = true)
{
  static const uint32_t sizes[][3] = {/* N, M, s */
      {60, 60, 1}, {60, 128, 2}, {61, 150, 4}, {45, 512, 3}, {61, 61, 1},
      {64, 67, 1}, {60, 118, 1}};
  char what[64];

  for (uint32_t k = 0; k < sizeof (sizes) / sizeof (sizes[0]); k++)
    for (int i = 0; i < IMK_OCTBSCAN_N_INTERPOLATIONS; i++)
      for (int grid = 0; grid <= IMK_OCTBSCAN_GRID_THESIS; grid++) {
        ImkOctbscanConfig c = range_config (sizes[k][0], 3);
        test_auto (TestImage) in = spectra (&c, 1000, 300);

        c.upsample = sizes[k][1];
        c.scale = sizes[k][2];
        c.interpolation = i;
        c.grid = grid;
        snprintf (what, sizeof (what),
            "N %u M %u s %u interpolation %d grid %d", c.width, c.upsample,
            c.scale, i, grid);
        check_ways (backend, &c, &in, 0, what);
      }
}

TEST_BACKENDS (test_windows_and_tapers, "windows and tapers are the definition")
{
  char what[64];

  for (int window = 0; window < IMK_OCTBSCAN_N_WINDOWS; window++)
    for (int taper = 0; taper <= IMK_OCTBSCAN_TAPER_NONE; taper++) {
      ImkOctbscanConfig c = range_config (60, 3);
      test_auto (TestImage) in = spectra (&c, 1000, 300);

      c.upsample = 128;
      c.window = window;
      c.window_values = own_window;
      c.n_window_values = 5;
      c.taper = taper;
      c.taper_cut = 9;
      snprintf (what, sizeof (what), "window %d taper %d", window, taper);
      check_ways (backend, &c, &in, 0, what);
    }
}

TEST_BACKENDS (test_phases, "phases are the definition")
{
  ImkOctbscanConfig c = base_config (60, 5);
  test_auto (TestImage) in = spectra (&c, 1000, 300);
  const ImkOctbscanCamera cameras[] = {
      {IMK_OCTBSCAN_MAP_RANGE, range, 2, .dispersion = dispersion,
          .n_dispersion = 4},
      {IMK_OCTBSCAN_MAP_RANGE, range, 2, .phase = phases, .n_phase = 60},
      {IMK_OCTBSCAN_MAP_RANGE, range, 2, .spectrum_phase = spectrum_phases},
      {IMK_OCTBSCAN_MAP_RANGE, range, 2, phases, 60, spectrum_phases,
          dispersion, 4},
  };
  char what[64];

  fill_curves (60);
  for (int exact = 0; exact < 2; exact++)
    for (uint32_t i = 0; i < 4; i++) {
      c.upsample = exact ? 128 : 60;
      c.interpolation = exact ? IMK_OCTBSCAN_INTERPOLATION_EXACT
                              : IMK_OCTBSCAN_INTERPOLATION_LINEAR;
      c.cameras = &cameras[i];
      snprintf (what, sizeof (what), "phase %u exact %d", i, exact);
      check_ways (backend, &c, &in, 0, what);
    }
}

/* Rows of 3 cameras that differ in everything, first camera 0, 1, 2; 37 rows
 * are one block of spectra a camera, 100 are three. */
TEST_BACKENDS (test_interlaced, "interlaced cameras are the definition")
{
  const ImkOctbscanCamera cameras[] = {
      {IMK_OCTBSCAN_MAP_RANGE, range, 2, .dispersion = dispersion,
          .n_dispersion = 4},
      {IMK_OCTBSCAN_MAP_CHIRP, chirp, 24, .gain = 1.7},
      {IMK_OCTBSCAN_MAP_WAVELENGTHS, wavelengths, 24, .phase = phases,
          .n_phase = 24},
  };
  char what[64];

  fill_curves (24);
  for (uint32_t height = 1; height <= 100; height += height < 3 ? 1 : 34)
    for (uint32_t first = 0; first < 4; first++) {
      ImkOctbscanConfig c = base_config (24, height);
      test_auto (TestImage) in = spectra (&c, 1000, 300);

      c.taper_cut = 5;
      c.n_cameras = 3;
      c.cameras = cameras;
      /* the only spectrum of a camera less its mean is 0 */
      c.background_mode = height > 5 ? IMK_OCTBSCAN_BACKGROUND_MEAN
                                     : IMK_OCTBSCAN_BACKGROUND_NONE;
      snprintf (what, sizeof (what), "%u rows, first camera %u", height, first);
      check_ways (backend, &c, &in, first, what);
    }
}

/* Cameras of other ranges, one of them the other way round, on one grid; with
 * phases of each kind, which stay over the camera's own wavenumbers. */
TEST_BACKENDS (test_common_range, "a common range is the definition")
{
  static const double ends[][2] = {{806, 675}, {800, 670}, {672, 807}};
  static const double k[] = {0.00136, 0.00012, 1e-6};
  ImkOctbscanCamera cameras[] = {
      {IMK_OCTBSCAN_MAP_RANGE, ends[0], 2, .dispersion = dispersion,
          .n_dispersion = 4},
      {IMK_OCTBSCAN_MAP_RANGE, ends[1], 2, .phase = phases, .n_phase = 24},
      {IMK_OCTBSCAN_MAP_RANGE, ends[2], 2, .dispersion = dispersion,
          .n_dispersion = 4, .spectrum_phase = phases},
      {IMK_OCTBSCAN_MAP_K_POLYNOMIAL, k, 3},
  };
  ImkOctbscanConfig c = base_config (24, 37);
  test_auto (TestImage) in = spectra (&c, 1000, 300);

  fill_curves (24);
  c.n_cameras = 4;
  c.cameras = cameras;
  c.upsample = 40;
  c.k_range = IMK_OCTBSCAN_K_RANGE_COMMON;
  check_ways (backend, &c, &in, 1, "common range");
}

/* A mirror is at one depth for two cameras of different ranges, and without the
 * common range it is at two. */
TEST (test_common_range_aligns_depths, "a common range aligns depths",
    .cpu_only = true)
{
  static const double ends[][2] = {{806, 675}, {676, 805}};
  const ImkOctbscanCamera cameras[] = {{IMK_OCTBSCAN_MAP_RANGE, ends[0], 2},
      {IMK_OCTBSCAN_MAP_RANGE, ends[1], 2}};
  enum { SAMPLES = 832, Z_UM = 600 };

  for (int common = 0; common < 2; common++) {
    ImkOctbscanConfig c = base_config (SAMPLES, 2);
    test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, SAMPLES, 2, 1, 0);
    test_auto (TestImage) out =
        test_image_new (IMK_TYPE_CF32, SAMPLES * 2, 2, 1, 0);
    ImkOctbscanJob job = {.in = &in.image, .complex = &out.image};
    test_autoptr (ImkOctbscan) self = NULL;
    uint32_t peaks[2] = {0, 0};

    c.n_cameras = 2;
    c.cameras = cameras;
    c.upsample = 4096;
    c.scale = 4;
    c.window = IMK_OCTBSCAN_WINDOW_HANN;
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_NONE;
    c.k_range = common ? IMK_OCTBSCAN_K_RANGE_COMMON : IMK_OCTBSCAN_K_RANGE_OWN;
    for (uint32_t r = 0; r < 2; r++)
      for (uint32_t i = 0; i < SAMPLES; i++) {
        double lambda =
            ends[r][0] + (ends[r][1] - ends[r][0]) * i / (SAMPLES - 1.0);

        ((uint16_t *) ((uint8_t *) in.image.data + r * in.image.stride))[i] =
            (uint16_t) (20000 + 9000 * cos (4000 * M_PI * Z_UM / lambda));
      }
    test_ok (imk_octbscan_new (IMK_BACKEND_CPU, &c, &self, test_new_error ()));
    test_ok (imk_octbscan_process (self, &job, 1, NULL, test_new_error ()));
    for (uint32_t r = 0; r < 2; r++) {
      const float *z =
          (const float *) ((uint8_t *) out.image.data + r * out.image.stride);
      double best = 0;

      for (uint32_t q = 40; q < out.image.width; q++)
        if (hypot (z[2 * q], z[2 * q + 1]) > best) {
          best = hypot (z[2 * q], z[2 * q + 1]);
          peaks[r] = q;
        }
    }
    printf ("# common %d: depths %u and %u, step %.5f um\n", common, peaks[0],
        peaks[1], imk_octbscan_depth_step (self));
    test_check ((peaks[0] == peaks[1]) == (common == 1), "depths %u and %u",
        peaks[0], peaks[1]);
    if (common)
      test_check (fabs (peaks[0] * imk_octbscan_depth_step (self) - Z_UM) <
                      imk_octbscan_depth_step (self),
          "depth %u times %.5f um", peaks[0], imk_octbscan_depth_step (self));
  }
}

TEST_BACKENDS (
    test_types_and_backgrounds, "types and backgrounds are the definition")
{
  const ImkType types[] = {
      IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_I16, IMK_TYPE_F32};
  const double pedestals[] = {60, 20000, -3000, 1};
  const double amplitudes[] = {40, 9000, 4000, 0.1};
  char what[64];

  fill_curves (40);
  for (uint32_t i = 0; i < 4; i++)
    for (int mode = 0; mode <= IMK_OCTBSCAN_BACKGROUND_NONE; mode++) {
      ImkOctbscanConfig c = base_config (40, 5);
      test_auto (TestImage) in;

      c.type = types[i];
      c.taper = IMK_OCTBSCAN_TAPER_NONE;
      c.background_mode = mode;
      c.background = background;
      in = spectra (&c, pedestals[i], amplitudes[i]);
      snprintf (what, sizeof (what), "%s background %d", imk_type_name (c.type),
          mode);
      check_ways (backend, &c, &in, 0, what);
    }
}

TEST_BACKENDS (test_crops, "crops are the definition")
{
  static const uint32_t crops[][2] = {{0, 119}, {119, 0}, {13, 51}, {60, 59}};
  ImkOctbscanConfig c = range_config (60, 3);
  test_auto (TestImage) in = spectra (&c, 1000, 300);
  char what[64];

  c.upsample = 256;
  c.scale = 4; /* 120 depths */
  for (int orientation = 0; orientation < 2; orientation++)
    for (uint32_t i = 0; i < 4; i++) {
      c.orientation = orientation;
      c.crop_top = crops[i][0];
      c.crop_bottom = crops[i][1];
      snprintf (what, sizeof (what), "crop %u %u", c.crop_top, c.crop_bottom);
      check_ways (backend, &c, &in, 0, what);
    }
}

/* The thesis' sizes, its own reading and the default, one A-scan. */
TEST_BACKENDS (
    test_thesis_size, "the thesis' sizes are the definition", .cpu_only = true)
{
  for (int thesis = 0; thesis < 2; thesis++) {
    ImkOctbscanConfig c = range_config (832, 1);
    test_auto (TestImage) in = spectra (&c, 20000, 3000);

    for (uint32_t i = 0; i < 832; i++)
      pedestal[i] = 20000 * (1 + sin (M_PI * (i + 0.5) / 832));
    c.upsample = 4096;
    c.scale = 4;
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_FILE;
    c.background = pedestal;
    if (thesis) {
      c.interpolation = IMK_OCTBSCAN_INTERPOLATION_THESIS;
      c.grid = IMK_OCTBSCAN_GRID_THESIS;
      c.taper = IMK_OCTBSCAN_TAPER_THESIS;
    }
    check_ways (backend, &c, &in, 0, thesis ? "thesis" : "832 to 16384");
  }
}

/* --- closed forms --------------------------------------------------------- */

/* A fringe of amplitude A at depth bin q, on pixels that are linear in k and
 * without zeros, is A^2 there. */
TEST (test_fringe_has_its_amplitude, "a fringe has its amplitude")
{
  for (const Way *w = cpu_ways; w->name; w++) {
    ImkOctbscanConfig c = base_config (64, 1);
    test_auto (TestImage) in;
    test_auto (Result) r;

    c.type = IMK_TYPE_F32;
    c.taper = IMK_OCTBSCAN_TAPER_NONE;
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_NONE;
    in = test_image_new (c.type, c.width, 1, 1, 0);
    for (uint32_t x = 0; x < c.width; x++)
      set_sample (&in, x, 0, 10 * cos (2 * M_PI * 5 * x / c.width));
    r = run (w, &c, &in, 0, IMK_TYPE_F32);
    test_check (fabs (sample (&r.linear, 0, 5) - 100) < 1e-3,
        "%s: intensity %.6f, expected 100", w->name, sample (&r.linear, 0, 5));
    test_check (fabs (sample (&r.db, 0, 5) - 20) < 1e-4,
        "%s: %.6f dB, expected 20", w->name, sample (&r.db, 0, 5));
    test_check (sample (&r.db, 0, 9) < -80, "%s: %.1f dB beside it", w->name,
        sample (&r.db, 0, 9));
  }
}

/* What is the same in all spectra of a camera is gone, all of it. */
TEST (test_dark_frames_are_black, "dark frames are black")
{
  const ImkOctbscanRange ranges[] = {IMK_OCTBSCAN_RANGE_FIXED,
      IMK_OCTBSCAN_RANGE_PERCENTILE, IMK_OCTBSCAN_RANGE_MINMAX};

  for (const Way *w = cpu_ways; w->name; w++)
    for (uint32_t i = 0; i < 3; i++) {
      ImkOctbscanConfig c = base_config (60, 7);
      test_auto (TestImage) in =
          test_image_new (c.type, c.width, c.height, 1, 0);
      test_auto (Result) r;

      test_image_fill (&in, FILL_MAXIMUM, 65535, 1);
      c.range = ranges[i];
      r = run (w, &c, &in, 0, IMK_TYPE_U8);
      for (uint32_t y = 0; y < 30; y++)
        for (uint32_t x = 0; x < 7; x++)
          test_check (
              sample (&r.db, x, y) == 0 && sample (&r.linear, x, y) == 0,
              "%s range %u: (%u, %u) is %g", w->name, i, x, y,
              sample (&r.db, x, y));
    }
}

/* Levels from the float image by their formula; 8 and 16 bits. */
static void
check_levels (const Way *w, const ImkOctbscanConfig *c, const TestImage *in,
    double low, double high)
{
  const ImkType types[] = {IMK_TYPE_U8, IMK_TYPE_U16};
  test_auto (Result) f = run (w, c, in, 0, IMK_TYPE_F32);

  for (uint32_t t = 0; t < 2; t++) {
    double maximum = t ? 65535 : 255;
    test_auto (Result) r = run (w, c, in, 0, types[t]);
    uint32_t n_off = 0;

    for (uint32_t y = 0; y < r.db.image.height; y++)
      for (uint32_t x = 0; x < r.db.image.width; x++)
        for (int db = 0; db < 2; db++) {
          double lo = db ? 10 * log10 (fmax (low, 1e-20)) : low;
          double hi = db ? 10 * log10 (fmax (high, 1e-20)) : high;
          double v = (sample (db ? &f.db : &f.linear, x, y) - lo) / (hi - lo);
          double e = floor (fmin (fmax (v, 0), 1) * maximum + 0.5);
          double d = sample (db ? &r.db : &r.linear, x, y) - e;

          n_off += d != 0;
          test_check (fabs (d) <= (t ? 3 : 1),
              "%s range %d: (%u, %u) is off by %g levels", w->name, c->range, x,
              y, d);
        }
    test_check (t || n_off <= 2, "%s: %u levels of u8 are off", w->name, n_off);
  }
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

/* Returns: the intensities of the image, the darkest first */
static double *
sorted_levels (const Way *w, const ImkOctbscanConfig *c, const TestImage *in)
{
  test_auto (Result) f = run (w, c, in, 0, IMK_TYPE_F32);
  uint32_t width = f.linear.image.width, n = width * f.linear.image.height;
  double *sorted = malloc (n * sizeof (*sorted));

  for (uint32_t i = 0; i < n; i++)
    sorted[i] = sample (&f.linear, i % width, i / width);
  qsort (sorted, n, sizeof (*sorted), compare);
  return sorted;
}

TEST_BACKENDS (test_ranges, "levels follow the range")
{
  for (const Way *w = all_ways[backend]; w->name; w++) {
    ImkOctbscanConfig c = range_config (60, 70);
    test_auto (TestImage) in = spectra (&c, 1000, 300);
    test_autofree double *sorted = sorted_levels (w, &c, &in);
    uint32_t n = 30 * 70;
    int e_low, e_high;
    double low, high;

    for (int orientation = 0; orientation < 2; orientation++) {
      c.orientation = orientation;
      c.range = IMK_OCTBSCAN_RANGE_FIXED;
      c.range_min = 3;
      c.range_max = 45;
      c.linear_min = pow (10, 0.3);
      c.linear_max = pow (10, 4.5);
      check_levels (w, &c, &in, pow (10, 0.3), pow (10, 4.5));
      c.range = IMK_OCTBSCAN_RANGE_MINMAX;
      check_levels (w, &c, &in, sorted[0], sorted[n - 1]);
      c.range = IMK_OCTBSCAN_RANGE_PERCENTILE;
      c.percent_min = 5;
      c.percent_max = 99;
      low = frexp (sorted[(uint32_t) (0.05 * (n - 1) + 0.5)], &e_low);
      high = frexp (sorted[(uint32_t) (0.99 * (n - 1) + 0.5)], &e_high);
      /* down to 256 steps an octave */
      check_levels (w, &c, &in, ldexp (floor (low * 512) / 512, e_low),
          ldexp (floor (high * 512) / 512, e_high));
    }
  }
}

/* The ends that a B-scan is given with by range=auto, and the level that a dB
 * image has at @db. */
static void
check_auto (const Way *w, const ImkOctbscanConfig *config, const TestImage *in,
    const double expected[4], const char *what)
{
  ImkOctbscanConfig c = *config;
  test_auto (Result) f, r;

  f = run (w, &c, in, 0, IMK_TYPE_F32);
  r = run (w, &c, in, 0, IMK_TYPE_U8);
  for (int i = 0; i < 4; i++)
    test_check (fabs (r.ends[i] - expected[i]) <=
                    (i < 2 ? 1e-4 : 1e-5 * fabs (expected[i])),
        "%s, %s: end %d is %.6g, expected %.6g", w->name, what, i, r.ends[i],
        expected[i]);
  for (uint32_t i = 0; i < r.db.image.width * r.db.image.height; i++) {
    uint32_t x = i % r.db.image.width, y = i / r.db.image.width;
    double db = (sample (&f.db, x, y) - expected[0]) /
                (expected[1] - expected[0]) * 255;
    double linear = (sample (&f.linear, x, y) - expected[2]) /
                    (expected[3] - expected[2]) * 255;

    test_check (fabs (fmin (fmax (db, 0), 255) - sample (&r.db, x, y)) <= 0.6 &&
                    fabs (fmin (fmax (linear, 0), 255) -
                          sample (&r.linear, x, y)) <= 0.6,
        "%s, %s: pixel %u", w->name, what, i);
  }
}

TEST_BACKENDS (test_auto_range, "the range auto is a mean of percentiles",
    .cpu_only = true)
{
  for (const Way *w = all_ways[backend]; w->name; w++) {
    ImkOctbscanConfig c = range_config (60, 70);
    test_auto (TestImage) in = spectra (&c, 1000, 300);
    test_autofree double *sorted = sorted_levels (w, &c, &in);
    double ends[4], p[3];
    static const double percents[] = {30, 99.9, 99.7};
    uint32_t n = 30 * 70;

    for (int i = 0; i < 3; i++) {
      int e;
      double v =
          frexp (sorted[(uint32_t) (percents[i] / 100 * (n - 1) + 0.5)], &e);

      p[i] = ldexp (floor (v * 512) / 512, e);
    }
    c.range = IMK_OCTBSCAN_RANGE_AUTO;
    ends[0] = 10 * log10 (p[0]);
    ends[1] = 10 * log10 (p[1]);
    ends[2] = p[0];
    ends[3] = p[2];
    check_auto (w, &c, &in, ends, "first");
    c.auto_bscans = 3;
    c.range_min = -7;
    c.range_max = 30;
    c.linear_min = 1;
    c.linear_max = 5000;
    ends[0] = (3 * -7 + ends[0]) / 4;
    ends[1] = (3 * 30 + ends[1]) / 4;
    ends[2] = (3 * 1 + ends[2]) / 4;
    ends[3] = (3 * 5000 + ends[3]) / 4;
    check_auto (w, &c, &in, ends, "fourth");
  }
}

/* Where the image has a mirror whose light is behind that of the reference by
 * twice @um, in depths. */
static double
mirror_depth (ImkOctbscanConfig *c, const double *wavelengths, double unit,
    double um, double *step)
{
  test_auto (TestImage) in = test_image_new (IMK_TYPE_F32, c->width, 1, 1, 0);
  test_auto (Result) r = result_new (c, IMK_TYPE_F32, 0);
  test_autoptr (ImkOctbscan) kernel = NULL;
  double level[3], nm[2];
  uint32_t best = 1;

  for (uint32_t i = 0; i < c->width; i++)
    set_sample (
        &in, i, 0, cos (4 * M_PI * um / (wavelengths[i] * unit)) * 1000);
  test_ok (imk_octbscan_new (IMK_BACKEND_CPU, c, &kernel, test_new_error ()));
  *step = imk_octbscan_depth_step (kernel);
  test_check (imk_octbscan_wavelengths (kernel, nm) == (*step > 0),
      "wavelengths are known with the depth step");
  for (int i = 0; i < 2 && *step > 0; i++) {
    double given = 1e3 * unit * wavelengths[i == 0 ? 0 : c->width - 1];

    test_check (fabs (nm[i] - given) < 1e-9 * given, "end %d: %g, not %g nm", i,
        nm[i], given);
  }
  run_kernel (&cpu_ways[0], kernel, &in, 0, &r);
  for (uint32_t q = 1; q + 1 < imk_octbscan_n_depths (c); q++)
    if (hypot (complex_row (&r, 0)[2 * q], complex_row (&r, 0)[2 * q + 1]) >
        hypot (
            complex_row (&r, 0)[2 * best], complex_row (&r, 0)[2 * best + 1]))
      best = q;
  for (int k = 0; k < 3; k++)
    level[k] = log (hypot (complex_row (&r, 0)[2 * (best + k - 1)],
        complex_row (&r, 0)[2 * (best + k - 1) + 1]));
  return best +
         (level[0] - level[2]) / (2 * (level[0] - 2 * level[1] + level[2]));
}

/* The step says where a mirror is seen, whatever names the wavelengths and in
 * whatever unit; without wavelengths there is none. */
TEST (test_depth_step, "the depth step says where a mirror is seen")
{
  enum { N = 832 };
  static const double units[] = {1e-3, 1, 1e6}; /* um */
  double lengths[N], ends[2], coefficients[3], step;
  ImkOctbscanCamera cameras[2] = {{0}};
  ImkOctbscanConfig c = base_config (N, 1);
  test_autoptr (ImkOctbscan) kernel = NULL;

  c.type = IMK_TYPE_F32;
  c.upsample = 4096;
  c.scale = 2;
  c.background_mode = IMK_OCTBSCAN_BACKGROUND_NONE;
  c.window = IMK_OCTBSCAN_WINDOW_HANN;
  c.cameras = cameras;
  for (int unit = 0; unit < 3; unit++)
    for (int map = 0; map < 3; map++) {
      double curve = map == 0 ? 0 : 5e-6;

      coefficients[0] = 0.806 / units[unit];
      coefficients[1] = -0.131 / (N - 1) / units[unit];
      coefficients[2] = curve * 1e-3 / units[unit];
      for (int i = 0; i < N; i++)
        lengths[i] =
            coefficients[0] + coefficients[1] * i + coefficients[2] * i * i;
      ends[0] = lengths[0];
      ends[1] = lengths[N - 1];
      cameras[0] =
          (ImkOctbscanCamera){.map = map == 0   ? IMK_OCTBSCAN_MAP_RANGE
                                     : map == 1 ? IMK_OCTBSCAN_MAP_POLYNOMIAL
                                                : IMK_OCTBSCAN_MAP_WAVELENGTHS,
              .values = map == 0   ? ends
                        : map == 1 ? coefficients
                                   : lengths,
              .n_values = map == 0   ? 2
                          : map == 1 ? 3
                                     : N};
      for (double um = 100; um <= 600; um += 250) {
        double found = mirror_depth (&c, lengths, units[unit], um, &step);

        test_check (fabs (found - um / step) < 0.02,
            "unit %d, map %d: a mirror at %g um is at %.3f, not %.3f", unit,
            map, um, found, um / step);
      }
    }

  /* unknown units, and no wavelengths */
  for (int i = 0; i < N; i++)
    lengths[i] = 7 + 3.0 * i / N;
  mirror_depth (&c, lengths, 1, 1, &step);
  test_check (step == 0, "7 to 10 of no unit: %g", step);
  cameras[0] = (ImkOctbscanCamera){.map = IMK_OCTBSCAN_MAP_NONE};
  mirror_depth (&c, lengths, 1, 1, &step);
  test_check (step == 0, "no wavelengths: %g", step);

  /* several cameras */
  c.n_cameras = 2;
  cameras[0] = cameras[1] = (ImkOctbscanCamera){
      .map = IMK_OCTBSCAN_MAP_RANGE, .values = ends, .n_values = 2};
  test_ok (imk_octbscan_new (IMK_BACKEND_CPU, &c, &kernel, test_new_error ()));
  test_check (imk_octbscan_depth_step (kernel) > 0, "alike cameras");
  imk_octbscan_free (kernel);
  cameras[1].values = (const double[]){ends[0], 0.99 * ends[1]};
  test_ok (imk_octbscan_new (IMK_BACKEND_CPU, &c, &kernel, test_new_error ()));
  test_check (imk_octbscan_depth_step (kernel) == 0, "different cameras");
  test_check (imk_octbscan_wavelengths (kernel, lengths), "the first camera's");
  imk_octbscan_free (kernel);
  cameras[1].values = (const double[]){ends[1], ends[0]};
  test_ok (imk_octbscan_new (IMK_BACKEND_CPU, &c, &kernel, test_new_error ()));
  test_check (!imk_octbscan_wavelengths (kernel, lengths), "two directions");
}

typedef struct {
  const Way *way;
  double own[2][4]; /* dispersion of the cameras */
  ImkOctbscanCamera cameras[2];
  ImkOctbscanConfig config;
  ImkOctbscan *kernel;
  TestImage in;
  Result live;
} Live;

static const double live_ends[][2] = {{806, 675}, {670, 800}};
static const double first_live[] = {0, 0, 3, 1},
                    other_live[] = {-9, 2, 4.5, -0.25};

static void
live_open (Live *l, const Way *w, uint32_t crop_top)
{
  *l = (Live){.way = w, .own = {{0.5, 1, 77, 78}, {0, 0, 79, 80}}};
  l->cameras[1].gain = 2;
  for (int k = 0; k < 2; k++) {
    l->cameras[k].dispersion = l->own[k];
    l->cameras[k].n_dispersion = 4;
  }
  l->config = base_config (120, 9);
  l->config.n_cameras = 2;
  l->config.cameras = l->cameras;
  l->config.upsample = 256;
  l->config.crop_top = crop_top;
  l->config.live_dispersion = first_live;
  if (crop_top > 0) { /* u stays that of the camera */
    l->cameras[0].map = l->cameras[1].map = IMK_OCTBSCAN_MAP_RANGE;
    l->cameras[0].n_values = l->cameras[1].n_values = 2;
    l->cameras[0].values = live_ends[0];
    l->cameras[1].values = live_ends[1];
    l->config.k_range = IMK_OCTBSCAN_K_RANGE_COMMON;
  }
  l->config.strategy = w->strategy;
  l->in = spectra (&l->config, 1000, 300);
  l->live = result_new (&l->config, IMK_TYPE_F32, 12);
  test_ok (
      imk_octbscan_new (w->backend, &l->config, &l->kernel, test_new_error ()));
}

static void
live_close (Live *l)
{
  imk_octbscan_free (l->kernel);
  result_free (&l->live);
  test_image_free (&l->in);
}

TEST_DEFINE_AUTO (Live, live_close)

static ImkStatus
live_set (Live *l, const double *now, ImkError *error)
{
  l->config.live_dispersion = now;
  return imk_octbscan_update (l->kernel, &l->config, error);
}

/* The image is that of cameras which have @now of their own. */
static void
check_live_image (Live *l, const double *now, const char *when)
{
  ImkOctbscanConfig c = l->config;
  test_auto (Result) fixed;
  double rms = 0, worst = 0;

  c.live_dispersion = NULL;
  for (int k = 0; k < 4; k++)
    l->own[k / 2][2 + k % 2] = now[k];
  run_kernel (l->way, l->kernel, &l->in, 1, &l->live);
  fixed = run (l->way, &c, &l->in, 1, IMK_TYPE_F32);
  for (uint32_t i = 0; i < fixed.complex.image.width * 9; i++) {
    const float *a = at (&l->live.complex, i % fixed.complex.image.width,
        i / fixed.complex.image.width);
    const float *b = at (&fixed.complex, i % fixed.complex.image.width,
        i / fixed.complex.image.width);

    rms += (double) b[0] * b[0] + (double) b[1] * b[1];
    worst = fmax (worst, hypot (a[0] - b[0], a[1] - b[1]));
  }
  rms = sqrt (rms / (9 * fixed.complex.image.width));
  test_check (worst < 3e-6 * rms, "%s, %s: %.2e of %.2e", l->way->name, when,
      worst, rms);
}

/* A live dispersion is that of the cameras, from the next B-scan on. */
static void
check_live (const Way *w, uint32_t crop_top)
{
  test_auto (Live) l = {0};

  live_open (&l, w, crop_top);
  for (int round = 0; round < 3; round++) {
    const double *now = round == 1 ? other_live : first_live;

    test_ok (live_set (&l, now, test_new_error ()));
    check_live_image (&l, now, "without a failure");
  }
}

/* Sets @now and makes a B-scan, in which the @nth call of the device fails.
 * Returns: whether it made so many */
static bool
live_fails (Live *l, const double *now, unsigned long nth)
{
  ImkImage in = test_to_device (&l->in),
           complex = test_to_device (&l->live.complex);
  const ImkOctbscanJob job = {.in = &in, .complex = &complex};
  ImkStatus status;

  imk_inject_failure (nth, false);
  status = live_set (l, now, test_new_error ());
  if (status == IMK_OK)
    status = imk_octbscan_process (l->kernel, &job, 1, NULL, test_new_error ());
  imk_inject_failure (0, false);
  test_device_free (&in);
  test_device_free (&complex);
  return status != IMK_OK;
}

/* Values that the device did not take are set by the next update, or are in the
 * next B-scan. */
TEST (test_live_dispersion_after_a_failure,
    "cuda: a live dispersion is set after a failure")
{
  unsigned long n_failures = 0;

  test_need_cuda ();
  for (const Way *w = cuda_ways; w->name; w++) {
    bool failed = w->strategy == IMK_OCTBSCAN_STRATEGY_FFT;

    for (unsigned long nth = 1; failed; nth++) {
      test_auto (Live) l = {0};

      live_open (&l, w, 0);
      failed = live_fails (&l, other_live, nth);
      n_failures += failed;
      test_ok (live_set (&l, other_live, test_new_error ()));
      check_live_image (&l, other_live, "after a failure");
    }
  }
  test_check (n_failures > 0, "nothing could fail");
}

static bool
is_mock (void)
{
  const ImkDevice *device;
  ImkDeviceInfo info;

  test_ok (imk_device_get (&device, test_new_error ()));
  test_ok (device->info (0, &info, test_new_error ()));
  return strncmp (info.name, "Mock", 4) == 0;
}

/* An object, and a B-scan of images on the device. Returns: the first failure
 */
static ImkStatus
run_once (const ImkOctbscanConfig *c, const ImkImage *in, ImkImage *complex,
    ImkError *error)
{
  const ImkOctbscanJob job = {.in = in, .complex = complex};
  test_autoptr (ImkOctbscan) s = NULL;
  ImkStatus status = imk_octbscan_new (IMK_BACKEND_CUDA, c, &s, error);

  return status == IMK_OK ? imk_octbscan_process (s, &job, 1, NULL, error)
                          : status;
}

TEST (test_cuda_failures,
    "cuda: every call may fail and says so, those of cuBLAS and cuFFT, too")
{
  test_need_cuda ();
  if (is_mock ())
    test_skip ("the mock has neither cuBLAS nor cuFFT");
  for (const Way *w = cuda_ways; w->name; w++) {
    const char *library =
        w->strategy == IMK_OCTBSCAN_STRATEGY_FFT ? "cuFFT says" : "cuBLAS says";
    ImkOctbscanConfig c = base_config (40, 5);
    test_auto (TestImage) in = spectra (&c, 1000, 300);
    test_auto (Result) r = result_new (&c, IMK_TYPE_F32, 0);
    test_auto (ImkImage) from = test_to_device (&in);
    test_auto (ImkImage) complex = test_to_device (&r.complex);
    unsigned long n_calls, nth = 0, n_of_library = 0;

    c.strategy = w->strategy;
    do {
      ImkError error = {0};
      ImkStatus status;

      imk_inject_failure (++nth, false);
      status = run_once (&c, &from, &complex, &error);
      n_calls = imk_inject_failure (0, false);
      test_check (n_calls < nth || (status != IMK_OK && error.message[0]),
          "%s: call %lu failed, the status is %d, the message \"%s\"", w->name,
          nth, status, error.message);
      test_check (nth < 300, "after %lu calls no end of failing", nth);
      n_of_library += strncmp (error.message, library, strlen (library)) == 0;
    } while (n_calls >= nth);
    test_check (n_of_library > 3, "%s: \"%s\" %lu times", w->name, library,
        n_of_library);
  }
}

TEST_BACKENDS (test_live_dispersion, "a live dispersion is that of the cameras",
    .cpu_only = true)
{
  for (const Way *w = all_ways[backend]; w->name; w++)
    for (uint32_t crop = 0; crop <= 40; crop += 40)
      if (w->strategy == IMK_OCTBSCAN_STRATEGY_FFT)
        check_live (w, crop);
}

/* --- bytes ---------------------------------------------------------------- */

TEST (test_threads_change_nothing, "threads change nothing")
{
  for (const Way *w = cpu_ways; w->name; w++) {
    ImkOctbscanConfig c = range_config (60, 143);
    test_auto (TestImage) in = spectra (&c, 1000, 300);
    test_auto (Result) one = {0};

    c.upsample = 128;
    c.n_threads = 1;
    one = run (w, &c, &in, 0, IMK_TYPE_F32);
    for (c.n_threads = 2; c.n_threads < 6; c.n_threads++) {
      test_auto (Result) many = run (w, &c, &in, 0, IMK_TYPE_F32);

      check_same (&one, &many, w->name);
    }
  }
}

/* Jobs of one call, and the next call, are as if they were alone. */
static void
check_jobs (const Way *w)
{
  enum { N_JOBS = 3 };
  ImkOctbscanConfig c = base_config (60, 17);
  test_autoptr (ImkOctbscan) s = NULL;
  TestImage in[N_JOBS];
  Result alone[N_JOBS], together[N_JOBS];
  ImkOctbscanJob jobs[N_JOBS];
  ImkImage device[4 * N_JOBS];
  bool cuda = w->backend == IMK_BACKEND_CUDA;

  c.strategy = w->strategy;
  c.max_jobs = N_JOBS;
  c.range = IMK_OCTBSCAN_RANGE_MINMAX;
  test_ok (imk_octbscan_new (w->backend, &c, &s, test_new_error ()));
  for (uint32_t i = 0; i < N_JOBS; i++) {
    ImkImage *d = device + 4 * i;

    in[i] = spectra (&c, 900 + 100 * i, 100 << i);
    alone[i] = run (w, &c, &in[i], 0, IMK_TYPE_U8);
    together[i] = result_new (&c, IMK_TYPE_U8, 12);
    d[0] = cuda ? test_to_device (&in[i]) : in[i].image;
    d[1] = cuda ? test_to_device (&together[i].db) : together[i].db.image;
    d[2] =
        cuda ? test_to_device (&together[i].linear) : together[i].linear.image;
    d[3] = cuda ? test_to_device (&together[i].complex)
                : together[i].complex.image;
    jobs[i] = (ImkOctbscanJob){&d[0], 0, &d[1], &d[2], &d[3]};
  }
  for (int repeat = 0; repeat < 2; repeat++)
    test_ok (imk_octbscan_process (s, jobs, N_JOBS, NULL, test_new_error ()));
  test_error (
      imk_octbscan_process (s, jobs, N_JOBS + 1, NULL, test_new_error ()),
      IMK_ERROR_CONFIG, "1 to 3");
  for (uint32_t i = 0; i < N_JOBS; i++) {
    if (cuda) {
      test_from_device (&device[4 * i + 1], &together[i].db);
      test_from_device (&device[4 * i + 2], &together[i].linear);
      test_from_device (&device[4 * i + 3], &together[i].complex);
      for (int k = 0; k < 4; k++)
        test_device_free (&device[4 * i + k]);
    }
    check_same (&alone[i], &together[i], w->name);
    result_free (&alone[i]);
    result_free (&together[i]);
    test_image_free (&in[i]);
  }
}

TEST_BACKENDS (test_jobs, "jobs are as if alone")
{
  for (const Way *w = all_ways[backend]; w->name; w++)
    check_jobs (w);
}

/* ------------------------------------------------------------------------
 * Parity of the backends on the picture: at most 0.05 % of the pixels differ,
 * none by more than a level. */

static void
check_pictures_agree (const Way *way)
{
  ImkOctbscanConfig c = range_config (832, 64);
  test_auto (TestImage) in = spectra (&c, 20000, 3000);
  test_auto (Result) one, other;

  c.upsample = 4096;
  c.scale = 4;
  one = run (&cpu_ways[0], &c, &in, 0, IMK_TYPE_U8);
  other = run (way, &c, &in, 0, IMK_TYPE_U8);
  for (int db = 0; db < 2; db++) {
    const TestImage *a = db ? &one.db : &one.linear;
    const TestImage *b = db ? &other.db : &other.linear;
    uint32_t n_off = 0, n = a->image.width * a->image.height;

    for (uint32_t i = 0; i < n; i++) {
      double d = sample (a, i % a->image.width, i / a->image.width) -
                 sample (b, i % a->image.width, i / a->image.width);

      n_off += d != 0;
      test_check (fabs (d) <= 1, "pixel %u differs by %g levels", i, d);
    }
    printf ("# %s, %s: %u of %u pixels differ\n", way->name,
        db ? "dB" : "linear", n_off, n);
    test_check (n_off <= n / 2000, "%u of %u pixels differ", n_off, n);
  }
}

TEST (test_pictures_agree, "pictures of CPU and CUDA agree")
{
  test_need_cuda ();
  for (const Way *w = cuda_ways; w->name; w++)
    check_pictures_agree (w);
}

/* --- refusals ------------------------------------------------------------- */

#define CHECK_REFUSED(member, value, words) \
  do { \
    ImkOctbscanConfig wrong_ = base_config (60, 4); \
\
    wrong_.member = value; \
    oct_refused (&wrong_, words); \
  } while (0)

TEST (test_wrong_settings_are_refused, "wrong settings are refused")
{
  CHECK_REFUSED (width, 1, "samples a spectrum is 1");
  CHECK_REFUSED (width, 20000, "samples a spectrum is 20000");
  CHECK_REFUSED (height, 0, "A-scans a B-scan is 0");
  CHECK_REFUSED (type, IMK_TYPE_CF32, "type cf32");
  CHECK_REFUSED (n_cameras, 0, "cameras is 0");
  CHECK_REFUSED (n_cameras, 17, "cameras is 17");
  CHECK_REFUSED (upsample, 59, "upsample is 59");
  CHECK_REFUSED (upsample, 300000, "more than 262144");
  CHECK_REFUSED (scale, 0, "scale is 0");
  CHECK_REFUSED (crop_top, 30, "leave none of the 30");
  CHECK_REFUSED (crop_bottom, UINT32_MAX, "leave none of the 30");
  CHECK_REFUSED (taper_cut, 0, "taper-cut is 0");
  CHECK_REFUSED (taper_cut, 30, "taper-cut is 30");
  CHECK_REFUSED (interpolation, 9, "interpolation is 9");
  CHECK_REFUSED (window, 9, "window is 9");
  CHECK_REFUSED (window, IMK_OCTBSCAN_WINDOW_FILE, "Set window-location");
  CHECK_REFUSED (
      background_mode, IMK_OCTBSCAN_BACKGROUND_FILE, "background-location");
  CHECK_REFUSED (range, 7, "range is 7");
  CHECK_REFUSED (range_min, 61, "range-min is 61");
  CHECK_REFUSED (linear_min, 1e7, "linear-min is 1e+07");
  CHECK_REFUSED (linear_max, NAN, "linear-max nan");
  CHECK_REFUSED (range_max, NAN, "range-max nan");
  CHECK_REFUSED (percent_max, 101, "percent-max 101");
  CHECK_REFUSED (max_jobs, 0, "max_jobs is 0");
}

static void
check_camera_refused (ImkOctbscanCamera camera, const char *words)
{
  ImkOctbscanConfig c = base_config (60, 4);
  ImkOctbscanCamera cameras[2] = {{IMK_OCTBSCAN_MAP_NONE}, camera};

  c.n_cameras = 2;
  c.cameras = cameras;
  oct_refused (&c, words);
}

TEST (test_wrong_cameras_are_refused, "wrong cameras are refused")
{
  static const double zero[] = {800, 0}, same[] = {800, 800};
  static const double turning[] = {800, -1, 0.1}, not_finite[] = {800, NAN};
  static const double outside[] = {0, 62}, backward[] = {0, 5, 4};
  static const double huge[] = {1e308, 1e308}, tiny[] = {1e-310, 2e-310};
  static const double highest_first[] = {0.05, 790}, two_units[] = {790, 0.89};

  fill_curves (60);
  check_camera_refused ((ImkOctbscanCamera){99}, "map of camera 1 is 99");
  check_camera_refused ((ImkOctbscanCamera){IMK_OCTBSCAN_MAP_RANGE, range, 1},
      "Camera 1 has 1 values for lambda-first");
  check_camera_refused ((ImkOctbscanCamera){IMK_OCTBSCAN_MAP_RANGE, zero, 2},
      "wavelength 0 at sample 59");
  check_camera_refused (
      (ImkOctbscanCamera){IMK_OCTBSCAN_MAP_RANGE, same, 2}, "is not monotonic");
  check_camera_refused (
      (ImkOctbscanCamera){IMK_OCTBSCAN_MAP_RANGE, not_finite, 2},
      "Value 1 of lambda-first and lambda-last of camera 1 is nan");
  check_camera_refused (
      (ImkOctbscanCamera){IMK_OCTBSCAN_MAP_POLYNOMIAL, turning, 3},
      "polynomial of camera 1 is not monotonic");
  check_camera_refused (
      (ImkOctbscanCamera){IMK_OCTBSCAN_MAP_POLYNOMIAL, highest_first, 2},
      "polynomial of camera 1 gives wavelengths from 0.05 to 46610.1, which no "
      "spectrometer has");
  check_camera_refused (
      (ImkOctbscanCamera){IMK_OCTBSCAN_MAP_RANGE, two_units, 2},
      "gives wavelengths from 790 to 0.89, which no spectrometer has");
  check_camera_refused (
      (ImkOctbscanCamera){IMK_OCTBSCAN_MAP_WAVELENGTHS, wavelengths, 59},
      "wavelengths of camera 1 has 59 values, but a spectrum has 60");
  check_camera_refused ((ImkOctbscanCamera){IMK_OCTBSCAN_MAP_CHIRP, chirp, 61},
      "chirp of camera 1 has 61");
  check_camera_refused (
      (ImkOctbscanCamera){IMK_OCTBSCAN_MAP_K_INDEX, outside, 2},
      "Value 1 of k-index of camera 1 is 62");
  check_camera_refused (
      (ImkOctbscanCamera){IMK_OCTBSCAN_MAP_K_INDEX, backward, 3},
      "k-index of camera 1 is not monotonic");
  check_camera_refused (
      (ImkOctbscanCamera){.phase = phases, .n_phase = 1}, "phase of camera 1");
  check_camera_refused (
      (ImkOctbscanCamera){.dispersion = phases, .n_dispersion = 17},
      "dispersion of camera 1 has 17");
  check_camera_refused ((ImkOctbscanCamera){.gain = -1}, "gain of camera 1");
  check_camera_refused ((ImkOctbscanCamera){.gain = NAN}, "gain of camera 1");
  check_camera_refused (
      (ImkOctbscanCamera){.dispersion = not_finite, .n_dispersion = 2},
      "Value 1 of dispersion of camera 1 is nan");
  /* finite, and what is made of them would not be */
  check_camera_refused (
      (ImkOctbscanCamera){.dispersion = huge, .n_dispersion = 2},
      "Value 0 of dispersion of camera 1 is 1e+308");
  check_camera_refused ((ImkOctbscanCamera){.phase = huge, .n_phase = 2},
      "Value 0 of phase of camera 1 is 1e+308");
  check_camera_refused ((ImkOctbscanCamera){IMK_OCTBSCAN_MAP_RANGE, huge, 2},
      "lambda-last of camera 1 is 1e+308");
  check_camera_refused ((ImkOctbscanCamera){IMK_OCTBSCAN_MAP_RANGE, tiny, 2},
      "wavelength 1e-310 at sample 0");
}

TEST (test_ranges_without_a_common_part_are_refused,
    "ranges without a common part are refused", .cpu_only = true)
{
  static const double ends[][2] = {{806, 675}, {900, 800}, {0.806, 0.675}};
  static const char *const words[] = {
      "common needs", "are 4 % of those of camera 0", "another unit"};

  for (int i = 0; i < 3; i++) {
    ImkOctbscanCamera cameras[] = {{IMK_OCTBSCAN_MAP_RANGE, ends[0], 2},
        {i == 0 ? IMK_OCTBSCAN_MAP_NONE : IMK_OCTBSCAN_MAP_RANGE, ends[i], 2}};
    ImkOctbscanConfig c = base_config (60, 4);

    c.n_cameras = 2;
    c.cameras = cameras;
    c.k_range = IMK_OCTBSCAN_K_RANGE_COMMON;
    oct_refused (&c, words[i]);
  }
}

/* What counts is their sum where the wavenumbers are. */
TEST (
    test_windows_without_a_sum_are_refused, "windows without a sum are refused")
{
  static const double windows[][3] = {{1, -1, 0}, {10, -6, -3}, {-1, 0, 1}};

  for (int i = 0; i < 3; i++) {
    ImkOctbscanConfig c = base_config (60, 4);

    c.window = IMK_OCTBSCAN_WINDOW_FILE;
    c.window_values = windows[i];
    c.n_window_values = 3;
    oct_refused (&c, "The sum of the window is");
  }
}

TEST (test_huge_operators_are_refused, "huge operators are refused")
{
  ImkOctbscanConfig c = base_config (16384, 1);

  c.scale = 16;
  c.strategy = IMK_OCTBSCAN_STRATEGY_OPERATOR;
  oct_refused (&c, "MiB");
}

TEST (test_wrong_images_are_refused, "wrong images are refused")
{
  ImkOctbscanConfig c = base_config (60, 4);
  test_auto (TestImage) in = spectra (&c, 1000, 300);
  test_auto (TestImage) out = test_image_new (IMK_TYPE_U8, 4, 30, 1, 0);
  test_auto (TestImage) small = test_image_new (IMK_TYPE_U8, 4, 29, 1, 0);
  test_auto (TestImage) real = test_image_new (IMK_TYPE_F32, 30, 4, 1, 0);
  test_autoptr (ImkOctbscan) s = NULL;
  ImkOctbscanJob job = {&in.image, 0, &out.image};

  test_ok (imk_octbscan_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  test_ok (imk_octbscan_process (s, &job, 1, NULL, test_new_error ()));
  job.in = &out.image;
  test_error (imk_octbscan_process (s, &job, 1, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "input");
  job = (ImkOctbscanJob){&in.image, 0, &small.image};
  test_error (imk_octbscan_process (s, &job, 1, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "dB output");
  job = (ImkOctbscanJob){&in.image, 0, NULL, &in.image};
  test_error (imk_octbscan_process (s, &job, 1, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "linear output");
  job = (ImkOctbscanJob){&in.image, 0, NULL, NULL, &real.image};
  test_error (imk_octbscan_process (s, &job, 1, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "complex output");
}

/* What auto becomes for a B-scan of which so many depths are left. */
static void
check_strategy (ImkBackend backend, uint32_t width, uint32_t n_depths,
    ImkOctbscanStrategy expected)
{
  ImkOctbscanConfig c = base_config (width, 4);
  test_autoptr (ImkOctbscan) s = NULL;

  c.crop_bottom = width / 2 - n_depths;
  test_ok (imk_octbscan_new (backend, &c, &s, test_new_error ()));
  test_check (imk_octbscan_strategy (s) == expected,
      "auto became %d, expected %d", imk_octbscan_strategy (s), expected);
}

TEST (test_auto_follows_the_size_on_the_cpu, "auto follows the size")
{
  check_strategy (IMK_BACKEND_CPU, 832, 416, IMK_OCTBSCAN_STRATEGY_FFT);
  check_strategy (IMK_BACKEND_CPU, 832, 16, IMK_OCTBSCAN_STRATEGY_OPERATOR);
}

TEST (test_auto_follows_the_size_on_cuda, "auto follows the size on CUDA")
{
  test_need_cuda ();
  check_strategy (IMK_BACKEND_CUDA, 832, 416, IMK_OCTBSCAN_STRATEGY_OPERATOR);
  check_strategy (IMK_BACKEND_CUDA, 2048, 1024, IMK_OCTBSCAN_STRATEGY_OPERATOR);
  check_strategy (IMK_BACKEND_CUDA, 4096, 2048, IMK_OCTBSCAN_STRATEGY_FFT);
  check_strategy (IMK_BACKEND_CUDA, 8192, 100, IMK_OCTBSCAN_STRATEGY_OPERATOR);
}

/* Fringes of 10 counts at 12 depths of each spectrum on top of @dc, brightest
 * in the middle of the spectrum. 7 spectra: their means are no binary
 * fractions. */
static TestImage
weak_fringes (const ImkOctbscanConfig *c, double dc)
{
  TestImage in = test_image_new (c->type, c->width, c->height, 1, 6);
  uint64_t seed = 9;

  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t k = 0; k < 12; k++) {
      double depth = (k + oct_uniform (&seed)) / 12 * c->width / 2;
      double phase = 2 * M_PI * oct_uniform (&seed);

      for (uint32_t x = 0; x < c->width; x++) {
        double u = (x + 0.5) / c->width;
        double v = k ? sample (&in, x, y) : dc * (0.6 + 0.4 * sin (M_PI * u));

        v += 10 * cos (2 * M_PI * depth * x / c->width + phase);
        set_sample (&in, x, y, floor (fmin (fmax (v, 0), 65535) + 0.5));
      }
    }
  return in;
}

/* The rms error of each quarter of the depths beside the rms of all Z, and the
 * largest of all. */
static void
check_dc (const Way *w, const ImkOctbscanConfig *c, double dc,
    const double *background)
{
  ImkOctbscanConfig with = *c;
  uint32_t depths = imk_octbscan_n_depths (c);
  size_t n = (size_t) depths * c->height;
  test_auto (TestImage) in = weak_fringes (c, dc);
  test_autofree double *z = NULL;
  double errors[4] = {0}, rms = 0, worst = 0;
  test_auto (Result) r;

  with.background = background;
  z = reference (&with, &in, 0);
  for (size_t i = 0; i < 2 * n; i++)
    rms += z[i] * z[i] / n;
  rms = sqrt (rms);
  r = run (w, &with, &in, 0, IMK_TYPE_U8);
  for (uint32_t row = 0; row < c->height; row++)
    for (uint32_t q = 0; q < depths; q++) {
      const float *f = at (&r.complex, q, row);
      const double *e = z + 2 * ((size_t) row * depths + q);
      double error = hypot (f[0] - e[0], f[1] - e[1]) / rms;

      errors[4 * q / depths] += error * error * 4 / n;
      worst = fmax (worst, error);
    }
  printf ("# %-16s %-7s %6.0f:", w->name,
      c->background_mode == IMK_OCTBSCAN_BACKGROUND_FILE ? "file" : "mean", dc);
  for (int k = 0; k < 4; k++)
    printf (" %.1e", sqrt (errors[k]));
  printf (", worst %.1e\n", worst);
  for (int k = 0; k < 4; k++)
    test_check (sqrt (errors[k]) <= 3e-6,
        "%s: DC %g: rms error %.2e in quarter %d of the depths", w->name, dc,
        sqrt (errors[k]), k);
  test_check (worst <= 1e-5, "%s: DC %g: error %.2e", w->name, dc, worst);
}

/* The accuracy does not depend on how much light there is beside the fringes.
 */
TEST_BACKENDS (
    test_accuracy, "accuracy does not depend on the DC", .cpu_only = true)
{
  static const double dcs[] = {0, 2000, 20000, 55000, 65000};

  for (const Way *w = all_ways[backend]; w->name; w++)
    for (size_t i = 0; i < sizeof (dcs) / sizeof (dcs[0]); i++) {
      ImkOctbscanConfig c = base_config (256, 7);
      double background[256];

      c.type = IMK_TYPE_U16;
      check_dc (w, &c, dcs[i], NULL);
      for (uint32_t x = 0; x < 256; x++)
        background[x] =
            dcs[i] * (0.6 + 0.4 * sin (M_PI * (x + 0.5) / 256)) + 1.0 / 3;
      c.background_mode = IMK_OCTBSCAN_BACKGROUND_FILE;
      check_dc (w, &c, dcs[i], background);
    }
}

/* A sample that is not a number makes its A-scan black, and leaves the others
 * and the levels, whatever they are made from, as they are without that
 * spectrum. */
TEST_BACKENDS (test_nan_becomes_black, "what is not a number becomes black",
    .cpu_only = true)
{
  for (const Way *w = all_ways[backend]; w->name; w++)
    for (int range = 0; range < IMK_OCTBSCAN_N_RANGES; range++) {
      ImkOctbscanConfig c = base_config (60, 4), three = base_config (60, 3);
      test_auto (TestImage) in, rest;
      test_auto (Result) r, expected;

      c.type = three.type = IMK_TYPE_F32;
      c.range = three.range = range;
      c.percent_min = three.percent_min = 5;
      in = spectra (&c, 1000, 300);
      rest = test_image_new (c.type, c.width, 3, 1, 0);
      for (uint32_t i = 0; i < 3 * c.width; i++)
        set_sample (&rest, i % c.width, i / c.width,
            sample (&in, i % c.width, i / c.width + (i / c.width == 2)));
      set_sample (&in, 7, 2, range % 2 ? INFINITY : NAN);
      r = run (w, &c, &in, 0, IMK_TYPE_U8);
      expected = run (w, &three, &rest, 0, IMK_TYPE_U8);
      test_check (r.n_bad == 1, "%s: %u bad", w->name, r.n_bad);
      for (uint32_t i = 0; i < 120; i++) {
        uint32_t x = i % 4, y = i / 4;
        bool is_bad = x == 2;
        double db = is_bad ? 0 : sample (&expected.db, x - (x > 2), y);
        double linear = is_bad ? 0 : sample (&expected.linear, x - (x > 2), y);

        /* roundings differ with the partner in a transform */
        test_check (fabs (sample (&r.db, x, y) - db) <= !is_bad &&
                        fabs (sample (&r.linear, x, y) - linear) <= !is_bad,
            "%s, range %d: pixel %u is %g and %g, expected %g and %g", w->name,
            range, i, sample (&r.db, x, y), sample (&r.linear, x, y), db,
            linear);
      }
    }
}

/* Light that is left in, and cut off by the crop, is at no depth of the crop:
 * the error of each depth is that of all. With these sizes the short transform
 * had it at the last depths. */
TEST_BACKENDS (test_no_alias, "a cut DC has no alias", .cpu_only = true)
{
  static const uint32_t crops[][4] = {/* N, s, top, bottom */
      {1000, 1, 150, 115}, {2048, 2, 409, 1024}};

  for (const Way *w = all_ways[backend]; w->name; w++)
    for (uint32_t k = 0; k < 2; k++) {
      ImkOctbscanConfig c =
          range_config (crops[k][0], test_is_short () ? 1 : 4);
      test_autofree double *z = NULL;
      double worst = 0, rms = 0;
      uint32_t n, where = 0;
      test_auto (TestImage) in;
      test_auto (Result) r;

      c.type = IMK_TYPE_U16;
      c.scale = crops[k][1];
      c.crop_top = crops[k][2];
      c.crop_bottom = crops[k][3];
      c.background_mode = IMK_OCTBSCAN_BACKGROUND_NONE;
      c.window = IMK_OCTBSCAN_WINDOW_HANN;
      c.taper = IMK_OCTBSCAN_TAPER_NONE;
      in = weak_fringes (&c, 60000);
      n = imk_octbscan_n_depths (&c);
      z = reference (&c, &in, 0);
      r = run (w, &c, &in, 0, IMK_TYPE_U8);
      for (uint32_t q = 0; q < n; q++) {
        double error = 0;

        for (uint32_t row = 0; row < c.height; row++) {
          const float *f = at (&r.complex, q, row);
          const double *e = z + 2 * ((size_t) row * n + q);

          error += pow (f[0] - e[0], 2) + pow (f[1] - e[1], 2);
        }
        rms += error / n;
        if (error > worst) {
          worst = error;
          where = q;
        }
      }
      printf ("# %s: N %u, scale %u: error of depth %u of %u is %.1f times "
              "the rms of all, %.1e\n",
          w->name, c.width, c.scale, where, n, sqrt (worst / rms), sqrt (rms));
      test_check (worst < 49 * rms, "depth %u of %u: %.1f times the rms", where,
          n, sqrt (worst / rms));
    }
}

/* x less the mean of its neighbours, fewer at the ends. */
static void
take_rolling_off (double *x, uint32_t n, uint32_t reach)
{
  test_autofree double *mean = malloc (n * sizeof (*mean));

  for (uint32_t i = 0; i < n; i++) {
    uint32_t first = i > reach ? i - reach : 0, k = first;

    mean[i] = 0;
    for (; k < n && k <= i + reach; k++)
      mean[i] += x[k];
    mean[i] /= k - first;
  }
  for (uint32_t i = 0; i < n; i++)
    x[i] -= mean[i];
}

TEST_BACKENDS (
    test_rolling, "a rolling mean is the definition", .cpu_only = true)
{
  static const ImkType types[] = {
      IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_I16, IMK_TYPE_F32};
  static const double pedestals[] = {60, 30000, -9000, 1};
  static const uint32_t reaches[] = {1, 7, 20, 21, 39, 40, 41, 16384};

  for (const Way *w = all_ways[backend]; w->name; w++)
    for (uint32_t k = 0; k < 4 * 8; k++) {
      ImkOctbscanConfig c = base_config (40 + k % 2, 5), none;
      double x[5 * 41], z[2 * 5 * 20], rms = 0, worst = 0;
      test_auto (TestImage) in;
      test_auto (Result) r;

      c.type = types[k / 8];
      c.taper = IMK_OCTBSCAN_TAPER_NONE;
      c.background_mode = IMK_OCTBSCAN_BACKGROUND_ROLLING;
      c.background_reach = reaches[k % 8];
      none = c;
      none.background_mode = IMK_OCTBSCAN_BACKGROUND_NONE;
      in = spectra (&c, pedestals[k / 8], pedestals[k / 8] / 3);
      for (uint32_t row = 0; row < 5; row++) {
        for (uint32_t i = 0; i < c.width; i++)
          x[row * c.width + i] = sample (&in, i, row);
        take_rolling_off (x + row * c.width, c.width, c.background_reach);
      }
      imk_octbscan_reference (&none, 0, x, z);
      r = run (w, &c, &in, 0, IMK_TYPE_U8);
      for (uint32_t i = 0; i < 5 * 20; i++) {
        const float *f = at (&r.complex, i % 20, i / 20);

        rms += (z[2 * i] * z[2 * i] + z[2 * i + 1] * z[2 * i + 1]) / (5 * 20);
        worst = fmax (worst, hypot (f[0] - z[2 * i], f[1] - z[2 * i + 1]));
      }
      test_check (worst <= 1e-5 * sqrt (rms), "%s: %s, reach %u: error %.1e",
          w->name, imk_type_name (c.type), c.background_reach,
          worst / sqrt (rms));
    }
}

/* CPU time of 64 A-scans of 1024 samples, the least of several. */
static double
time_of (ImkOctbscanConfig c)
{
  test_auto (TestImage) in = spectra (&c, 1000, 300);
  test_auto (Result) r = result_new (&c, IMK_TYPE_U8, 0);
  const ImkOctbscanJob job = {.in = &in.image, .db = &r.db.image};
  test_autoptr (ImkOctbscan) s = NULL;
  double least = INFINITY;

  c.n_threads = 1;
  c.strategy = IMK_OCTBSCAN_STRATEGY_FFT;
  test_ok (imk_octbscan_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  for (int i = 0; i < 15; i++) {
    clock_t begin = clock ();

    test_ok (imk_octbscan_process (s, &job, 1, NULL, test_new_error ()));
    least = fmin (least, (double) (clock () - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

/* 1228 is 4 times 307, 1126 is 2 times 563: transforms of these lengths took 4
 * times as long. */
TEST (test_upsampling_costs_the_same,
    "upsampling costs the same for all lengths", .cpu_only = true)
{
  ImkOctbscanConfig c = base_config (1024, 64);
  double base;

  c.upsample = 4096;
  base = time_of (c);
  for (c.upsample = 1126; c.upsample <= 1228; c.upsample += 102) {
    double ratio = time_of (c) / base;

    printf ("# %u: %.2f times 4096\n", c.upsample, ratio);
    test_check (
        ratio < 2, "%u takes %.1f times as long as 4096", c.upsample, ratio);
  }
}

/* It took as long as all the rest. */
TEST (
    test_rolling_costs_little, "a rolling mean costs little", .cpu_only = true)
{
  ImkOctbscanConfig c = base_config (1024, 64);
  double none, rolling;

  if (TEST_SANITIZED)
    test_skip ("a sanitizer slows down some loops more than others");
  c.interpolation = IMK_OCTBSCAN_INTERPOLATION_CUBIC;
  c.background_mode = IMK_OCTBSCAN_BACKGROUND_NONE;
  none = time_of (c);
  c.background_mode = IMK_OCTBSCAN_BACKGROUND_ROLLING;
  rolling = time_of (c);
  printf ("# rolling: %.2f times none\n", rolling / none);
  test_check (rolling < 2.2 * none, "rolling takes %.2f times as long as none",
      rolling / none);
}
