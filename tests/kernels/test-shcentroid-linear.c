/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The matched filter, against a fit of its model; pupil images, against their
 * definition. */
#include <math.h>
#include <string.h>

#include "sh-common.h"
#include "shcentroid/shcentroid-reference.h"

/* --- pupil images --------------------------------------------------------- */

/* Four discs of radius 7 in a frame of 41x39, at uneven places, as a real
 * sensor has them; of random light. */
enum { WIDTH = 41, HEIGHT = 39, RADIUS = 7 };
static const uint32_t corners[4][2] = {{2, 1}, {1, 20}, {24, 21}, {23, 2}};

typedef struct Pupils {
  ImkShcentroidConfig c;
  ImkShcentroidCell *cells;
  uint32_t *pixels;
  float dark[HEIGHT * WIDTH], flat[HEIGHT * WIDTH], lut[65536];
  uint8_t bad[HEIGHT * WIDTH];
  TestImage in;
} Pupils;

static void
clear (Pupils *p)
{
  free (p->cells);
  free (p->pixels);
  test_image_free (&p->in);
}

static void
number_discs (uint8_t *numbers)
{
  memset (numbers, 0, HEIGHT * WIDTH);
  for (uint32_t k = 0; k < 4; k++)
    for (uint32_t y = 0; y <= 2 * RADIUS; y++)
      for (uint32_t x = 0; x <= 2 * RADIUS; x++)
        if ((x - RADIUS) * (x - RADIUS) + (y - RADIUS) * (y - RADIUS) <=
            RADIUS * RADIUS + 1)
          numbers[(corners[k][1] + y) * WIDTH + corners[k][0] + x] =
              (uint8_t) (k + 1);
}

static void
make_pupils (Pupils *p, ImkType type, bool calibrated)
{
  uint8_t numbers[HEIGHT * WIDTH];
  uint64_t seed = 5;

  *p = (Pupils){.c = sh_grid (type, WIDTH, HEIGHT, 0, 0, 1, 1, 1, 1)};
  number_discs (numbers);
  test_ok (imk_shcentroid_find_pupils (
      numbers, WIDTH, HEIGHT, &p->c, &p->cells, &p->pixels, test_new_error ()));
  p->c.estimator = IMK_SHCENTROID_ESTIMATOR_PUPILS;
  p->c.gain = 2;
  p->c.read_noise = 3;
  p->in = test_image_new (type, WIDTH, HEIGHT, 1, 5);
  test_image_fill (
      &p->in, FILL_NOISE, type == IMK_TYPE_U16 ? 65535 : 255, seed);
  if (type == IMK_TYPE_F32)
    for (uint32_t i = 0; i < HEIGHT * WIDTH; i++)
      sh_set (&p->in, i % WIDTH, i / WIDTH, 200 * sh_uniform (&seed));
  if (!calibrated)
    return;
  for (uint32_t i = 0; i < HEIGHT * WIDTH; i++) {
    p->dark[i] = (float) (3 * sh_uniform (&seed));
    p->flat[i] = (float) (0.9 + 0.2 * sh_uniform (&seed));
    p->bad[i] = i % 41 == 7;
  }
  for (uint32_t i = 0; i < 65536; i++)
    p->lut[i] = (float) i * 1.25f;
  p->c.dark = p->dark;
  p->c.flat = p->flat;
  p->c.bad = p->bad;
  p->c.lut = type == IMK_TYPE_U8 || type == IMK_TYPE_U16 ? p->lut : NULL;
}

static void
check_pupils (const Pupils *p)
{
  test_auto (TestImage) out =
      sh_run (IMK_BACKEND_CPU, &p->c, &p->in, IMK_TYPE_F64, 8);

  for (uint32_t i = 0; i < p->c.n_cells; i++) {
    double row[IMK_SHCENTROID_N_FIELDS];

    imk_shcentroid_reference_pupils (&p->c, &p->in.image, i, row);
    for (int f = 0; f < 2; f++) {
      double variance = row[IMK_SHCENTROID_VAR_X + f];

      sh_near (&out, i, IMK_SHCENTROID_X + f, row[IMK_SHCENTROID_X + f],
          1e-12 * WIDTH);
      sh_near (&out, i, IMK_SHCENTROID_DX + f, row[IMK_SHCENTROID_DX + f],
          1e-12 * WIDTH);
      sh_near (&out, i, IMK_SHCENTROID_VAR_X + f, variance,
          1e-11 * fmax (1e-3, variance));
    }
    sh_near (&out, i, IMK_SHCENTROID_FLUX, row[IMK_SHCENTROID_FLUX],
        1e-11 * fmax (1, row[IMK_SHCENTROID_FLUX]));
    sh_near (&out, i, IMK_SHCENTROID_FLAGS, row[IMK_SHCENTROID_FLAGS], 0);
  }
}

static void
for_each_pupils (void (*check) (const Pupils *p))
{
  for (ImkType type = IMK_TYPE_U8; type <= IMK_TYPE_F32; type++)
    for (int option = 0; option < 12; option++) {
      Pupils p;

      if (type != IMK_TYPE_U8 && type != IMK_TYPE_U16 && type != IMK_TYPE_F32)
        continue;
      make_pupils (&p, type, option % 2);
      p.c.normalisation = option / 2 % 2;
      p.c.min_illumination = option / 4 == 1 ? 0.5 : 0;
      p.c.min_flux =
          option / 4 == 2 ? 1.3 * (type == IMK_TYPE_U16 ? 65535 : 255) : 0;
      check (&p);
      clear (&p);
    }
}

TEST (test_pupils, "slopes of pupil images are the normalised differences",
    .cpu_only = true)
{
  for_each_pupils (check_pupils);
}

/* Only positions, or slopes, come in blocks of cells, where all are valid. */
static void
check_fields_of (const Pupils *p, const ImkShcentroidConfig *config)
{
  static const ImkShcentroidFields fields[] = {
      IMK_SHCENTROID_FIELDS_XY, IMK_SHCENTROID_FIELDS_SLOPES};
  test_auto (TestImage) all =
      sh_run (IMK_BACKEND_CPU, config, &p->in, IMK_TYPE_F64, 8);

  for (uint32_t k = 0; k < 2; k++) {
    ImkShcentroidConfig c = *config;
    test_autoptr (ImkShcentroid) kernel = NULL;
    test_auto (TestImage) out;

    c.fields = fields[k];
    kernel = sh_new (IMK_BACKEND_CPU, &c);
    out = sh_output (&c, IMK_TYPE_F64, 8);
    for (int frame = 0; frame < 2; frame++) /* the first is not in blocks */
      sh_process (kernel, &p->in, &out);
    for (uint32_t i = 0; i < c.n_cells; i++)
      for (uint32_t f = 0; f < 2; f++) {
        double found =
            k == 0 ? sh_get (&out, i, f) : sh_get (&out, 0, f * c.n_cells + i);
        double expected = sh_get (
            &all, i, (k == 0 ? IMK_SHCENTROID_X : IMK_SHCENTROID_DX) + f);

        test_check (found == expected,
            "fields %d, cell %u of %u: %.17g instead of %.17g", fields[k], i,
            c.n_cells, found, expected);
      }
  }
}

static void
check_fields (const Pupils *p)
{
  ImkShcentroidConfig good = p->c;

  check_fields_of (p, &p->c);
  good.bad = NULL;
  check_fields_of (p, &good);
}

TEST (test_pupils_fields,
    "positions and slopes of pupil images are those of "
    "all fields, bit for bit",
    .cpu_only = true)
{
  for_each_pupils (check_fields);
}

/* A frame of two pixels an image: every number by hand. */
TEST_BACKENDS (test_pupils_by_hand, "the order of pupil images is that of "
                                    "the page")
{
  static const uint8_t numbers[4 * 2] = {1, 4, 1, 4, 2, 3, 2, 3};
  static const uint8_t light[4 * 2] = {40, 10, 6, 1, 30, 20, 2, 1};
  ImkShcentroidConfig c = sh_grid (IMK_TYPE_U8, 2, 4, 0, 0, 1, 1, 1, 1);
  ImkShcentroidCell *cells;
  uint32_t *pixels;

  test_ok (imk_shcentroid_find_pupils (
      numbers, 2, 4, &c, &cells, &pixels, test_new_error ()));
  c.estimator = IMK_SHCENTROID_ESTIMATOR_PUPILS;
  c.fields = IMK_SHCENTROID_FIELDS_SLOPES;
  for (int global = 0; global < 2; global++) {
    test_auto (TestImage) in = test_image_new (IMK_TYPE_U8, 2, 4, 1, 0);
    test_auto (TestImage) out;
    double norm[2] = {global ? 55 : 100, global ? 55 : 10};

    for (uint32_t i = 0; i < 8; i++)
      sh_set (&in, i % 2, i / 2, light[i]);
    c.normalisation = global;
    out = sh_run (backend, &c, &in, IMK_TYPE_F64, 0);
    sh_near (&out, 0, 0, (40 + 30 - 20 - 10) / norm[0], 1e-15);
    sh_near (&out, 0, 1, (6 + 2 - 1 - 1) / norm[1], 1e-15);
    sh_near (&out, 0, 2, (40 - 30 - 20 + 10) / norm[0], 1e-15);
    sh_near (&out, 0, 3, (6 - 2 - 1 + 1) / norm[1], 1e-15);
  }
  free (cells);
  free (pixels);
}

TEST (test_pupils_refused, "pupil images that are none are refused",
    .cpu_only = true)
{
  ImkShcentroidConfig c = sh_grid (IMK_TYPE_U8, 4, 2, 0, 0, 1, 1, 1, 1);
  uint8_t numbers[8] = {1, 2, 3, 4, 1, 2, 3, 0};
  ImkShcentroidCell *cells = NULL;
  uint32_t *pixels = NULL;
  ImkShcentroid *s = NULL;

#define FIND(words) \
  test_error (imk_shcentroid_find_pupils ( \
                  numbers, 4, 2, &c, &cells, &pixels, test_new_error ()), \
      IMK_ERROR_CONFIG, words)
#define NEW(words) \
  test_error (imk_shcentroid_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()), \
      IMK_ERROR_CONFIG, words)
  FIND ("Pupil image 4 has 1 pixels and pupil image 1 has 2");
  numbers[7] = 5;
  FIND ("the number 5 at (3, 1)");
  memset (numbers, 0, 8);
  FIND ("have no pixels");
  c.estimator = IMK_SHCENTROID_ESTIMATOR_PUPILS;
  NEW ("there are no pupil images. Set pupils-location");
  memcpy (numbers, (uint8_t[]){1, 2, 3, 4, 1, 2, 3, 4}, 8);
  test_ok (imk_shcentroid_find_pupils (
      numbers, 4, 2, &c, &cells, &pixels, test_new_error ()));
  c.window = IMK_SHCENTROID_WINDOW_TRACKING;
  NEW ("window is tracking, but estimator=pupils");
  c.window = IMK_SHCENTROID_WINDOW_CELL;
  c.normalisation = 2;
  NEW ("normalisation is 2");
  c.normalisation = 0;
  pixels[6] = 8;
  NEW ("Pixel 1 of pupil image 3 is 8, outside the frame of 4x2.");
#undef FIND
#undef NEW
  free (cells);
  free (pixels);
}

static void
check_pupils_parity (const Pupils *p)
{
  for (int fields = 0; fields <= IMK_SHCENTROID_FIELDS_SLOPES; fields++)
    for (int tilt = 0; tilt < 2; tilt++) {
      ImkShcentroidConfig c = p->c;

      c.fields = fields;
      c.remove_tilt = tilt;
      sh_check_parity (&c, &p->in, IMK_TYPE_F64, 8, 2, tilt, "pupils");
    }
}

TEST (test_pupils_parity, "CPU and CUDA agree bit for bit about pupil images")
{
  test_need_cuda ();
  for_each_pupils (check_pupils_parity);
}

/* --- the matched filter --------------------------------------------------- */

enum { COLUMNS = 4, ROWS = 3, PITCH = 12, N_CELLS = COLUMNS * ROWS };
enum { N_MODEL = 6 };

typedef struct Matched {
  ImkShcentroidConfig c;
  float templates[N_CELLS * PITCH * PITCH];
} Matched;

/* An elongated spot in another direction in every cell, as of a laser guide
 * star; (@x, @y) from the middle of the cell. */
static double
light_at (uint32_t cell, double x, double y)
{
  double angle = 0.4 * cell, s = sin (angle), c = cos (angle);
  double u = c * x + s * y, v = c * y - s * x;

  return 900 * exp (-u * u / (2 * 2.2 * 2.2) - v * v / (2 * 1.4 * 1.4));
}

static void
make_matched (Matched *m, ImkType type)
{
  *m = (Matched){.c = sh_grid (type, COLUMNS * PITCH, ROWS * PITCH, 0, 0, PITCH,
                     PITCH, COLUMNS, ROWS)};
  m->c.estimator = IMK_SHCENTROID_ESTIMATOR_MATCHED;
  m->c.templates = m->templates;
  m->c.n_templates = N_CELLS;
  m->c.template_width = m->c.template_height = PITCH;
  m->c.gain = 0.5;
  m->c.read_noise = 4;
  for (uint32_t i = 0; i < N_CELLS * PITCH * PITCH; i++)
    m->templates[i] = (float) light_at (i / (PITCH * PITCH),
        i % PITCH - (PITCH - 1) / 2.0, i / PITCH % PITCH - (PITCH - 1) / 2.0);
}

/* The spots moved by (@x, @y), @bright times as bright on @background. */
static TestImage
matched_frame (
    ImkType type, double x, double y, double bright, double background)
{
  TestImage in = test_image_new (type, COLUMNS * PITCH, ROWS * PITCH, 1, 4);

  for (uint32_t v = 0; v < ROWS * PITCH; v++)
    for (uint32_t u = 0; u < COLUMNS * PITCH; u++)
      sh_set (&in, u, v,
          background + bright * light_at (v / PITCH * COLUMNS + u / PITCH,
                                    u % PITCH - (PITCH - 1) / 2.0 - x,
                                    v % PITCH - (PITCH - 1) / 2.0 - y));
  return in;
}

/* Gaussian elimination with rows exchanged. */
static void
solve (long double a[N_MODEL][N_MODEL + 1])
{
  for (int i = 0; i < N_MODEL; i++) {
    int best = i;

    for (int k = i + 1; k < N_MODEL; k++)
      if (fabsl (a[k][i]) > fabsl (a[best][i]))
        best = k;
    for (int j = 0; j <= N_MODEL; j++) {
      long double swap = a[i][j];

      a[i][j] = a[best][j];
      a[best][j] = swap;
    }
    for (int k = 0; k < N_MODEL; k++)
      for (int j = N_MODEL; k != i && j >= i; j--)
        a[k][j] -= a[k][i] / a[i][i] * a[i][j];
  }
}

/* Weighted least squares of the model to the pixels of a cell themselves. */
static void
fit (const Matched *m, const TestImage *in, uint32_t cell, double found[3])
{
  const float *t = m->templates + cell * PITCH * PITCH;
  long double a[N_MODEL][N_MODEL + 1] = {{0}};
  double most = 0;

  for (uint32_t i = 0; i < PITCH * PITCH; i++)
    if (t[i] > most) /* GCC 12 for 64-bit Arm fails at fmax () here */
      most = t[i];
  for (uint32_t y = 1; y < PITCH - 1; y++)
    for (uint32_t x = 1; x < PITCH - 1; x++) {
      const float *p = t + y * PITCH + x;
      uint32_t u = cell % COLUMNS * PITCH + x, v = cell / COLUMNS * PITCH + y;
      long double g[N_MODEL] = {p[0], ((double) p[-1] - p[1]) / 2,
          ((double) p[-PITCH] - p[PITCH]) / 2,
          (double) p[-1] + p[1] - 2.0 * p[0],
          (double) p[-PITCH] + p[PITCH] - 2.0 * p[0], 1};
      long double w =
          1 / (fmax (p[0], 0) / m->c.gain + m->c.read_noise * m->c.read_noise +
                  1e-3 * most / m->c.gain);

      if (m->c.bad && m->c.bad[v * m->c.width + u])
        continue;
      for (int i = 0; i < N_MODEL; i++) {
        for (int k = 0; k < N_MODEL; k++)
          a[i][k] += w * g[i] * g[k];
        a[i][N_MODEL] += w * g[i] * sh_sample (in, u, v);
      }
    }
  solve (a);
  for (int i = 0; i < 3; i++)
    found[i] = (double) (a[i][N_MODEL] / a[i][i]);
}

static double
template_flux (const Matched *m, uint32_t cell)
{
  double sum = 0;

  for (uint32_t i = 0; i < PITCH * PITCH; i++)
    sum += m->templates[cell * PITCH * PITCH + i];
  return sum;
}

/* Noise on every pixel, and some bad ones. */
TEST (test_matched_is_a_fit,
    "the matched filter is the weighted least-squares fit of its model",
    .cpu_only = true)
{
  uint8_t bad[COLUMNS * ROWS * PITCH * PITCH] = {0};

  for (uint32_t i = 5; i < sizeof (bad); i += 37)
    bad[i] = 1;
  for (int with_bad = 0; with_bad < 2; with_bad++) {
    Matched m;
    test_auto (TestImage) in =
        matched_frame (IMK_TYPE_F32, 0.3, -0.4, 0.7, 100);
    test_auto (TestImage) out;
    uint64_t seed = 11;

    make_matched (&m, IMK_TYPE_F32);
    m.c.bad = with_bad ? bad : NULL;
    for (uint32_t i = 0; i < sizeof (bad); i++)
      sh_set (&in, i % m.c.width, i / m.c.width,
          sh_sample (&in, i % m.c.width, i / m.c.width) +
              20 * sh_normal (&seed));
    out = sh_run (IMK_BACKEND_CPU, &m.c, &in, IMK_TYPE_F64, 0);
    for (uint32_t i = 0; i < N_CELLS; i++) {
      double found[3], flux = template_flux (&m, i);

      fit (&m, &in, i, found);
      sh_near (&out, i, IMK_SHCENTROID_DX, found[1] / found[0], 2e-6);
      sh_near (&out, i, IMK_SHCENTROID_DY, found[2] / found[0], 2e-6);
      sh_near (&out, i, IMK_SHCENTROID_FLUX, found[0] * flux, 2e-6 * flux);
      sh_near (&out, i, IMK_SHCENTROID_FLAGS, 0, 0);
    }
  }
}

TEST_BACKENDS (test_matched_gain, "the matched filter is exact at shifts of a "
                                  "pixel, whatever brightness and background")
{
  static const double shifts[][2] = {{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}};
  static const double lights[][2] = {{1, 0}, {0.2, 30}, {3, 1000}};

  for (int i = 0; i < 5; i++)
    for (int k = 0; k < 3; k++) {
      Matched m;
      test_auto (TestImage) in = matched_frame (
          IMK_TYPE_F32, shifts[i][0], shifts[i][1], lights[k][0], lights[k][1]);
      test_auto (TestImage) out;

      make_matched (&m, IMK_TYPE_F32);
      out = sh_run (backend, &m.c, &in, IMK_TYPE_F64, 0);
      for (uint32_t cell = 0; cell < N_CELLS; cell++) {
        double flux = lights[k][0] * template_flux (&m, cell);

        sh_near (&out, cell, IMK_SHCENTROID_DX, shifts[i][0], 5e-6);
        sh_near (&out, cell, IMK_SHCENTROID_DY, shifts[i][1], 5e-6);
        sh_near (&out, cell, IMK_SHCENTROID_FLUX, flux,
            1e-5 * template_flux (&m, cell));
      }
    }
}

/* What the page states. */
TEST (test_matched_range,
    "the matched filter is linear to 0.015 pixels up to a "
    "pixel along an axis, and to 0.06 in both",
    .cpu_only = true)
{
  Matched m;
  double along = 0, both = 0;

  make_matched (&m, IMK_TYPE_F32);
  for (double s = -1; s <= 1; s += 0.125)
    for (double t = -1; t <= 1; t += 0.125) {
      test_auto (TestImage) in = matched_frame (IMK_TYPE_F32, s, t, 1, 0);
      test_auto (TestImage) out =
          sh_run (IMK_BACKEND_CPU, &m.c, &in, IMK_TYPE_F64, 0);

      for (uint32_t i = 0; i < N_CELLS; i++) {
        double error = fmax (fabs (sh_get (&out, i, IMK_SHCENTROID_DX) - s),
            fabs (sh_get (&out, i, IMK_SHCENTROID_DY) - t));

        both = fmax (both, error);
        if (s == 0 || t == 0)
          along = fmax (along, error);
      }
    }
  printf ("# %.4f px along an axis, %.4f in both\n", along, both);
  test_check (
      along < 0.015 && both < 0.06, "%.4f px along, %.4f in both", along, both);
}

/* The rms of dx of cell 0 over frames of photon and read noise, and the mean
 * of what is reported. */
static void
measure_noise (const ImkShcentroidConfig *c, double bright, double rms[2])
{
  test_autoptr (ImkShcentroid) s = sh_new (IMK_BACKEND_CPU, c);
  test_auto (TestImage) clean =
      matched_frame (IMK_TYPE_F32, 0.1, -0.1, bright, 0);
  test_auto (TestImage) in = matched_frame (IMK_TYPE_F32, 0.1, -0.1, bright, 0);
  test_auto (TestImage) out = sh_output (c, IMK_TYPE_F64, 0);
  double sum = 0, square = 0, reported = 0;
  uint64_t seed = 3;
  const int n = 2000;

  for (int k = 0; k < n; k++) {
    for (uint32_t y = 0; y < PITCH; y++)
      for (uint32_t x = 0; x < PITCH; x++) {
        double v = sh_sample (&clean, x, y);

        sh_set (&in, x, y,
            v + sqrt (v / c->gain + c->read_noise * c->read_noise) *
                    sh_normal (&seed));
      }
    sh_process (s, &in, &out);
    sum += sh_get (&out, 0, IMK_SHCENTROID_DX);
    square += pow (sh_get (&out, 0, IMK_SHCENTROID_DX), 2);
    reported += sh_get (&out, 0, IMK_SHCENTROID_VAR_X);
  }
  rms[0] = sqrt (square / n - sum / n * sum / n);
  rms[1] = sqrt (reported / n);
}

/* By which part of its shift the spot of cell 0 seems to move: less than all
 * where the cell cuts its wings. */
static double
measure_gain (const ImkShcentroidConfig *c)
{
  double x[2];

  for (int k = 0; k < 2; k++) {
    test_auto (TestImage) in =
        matched_frame (IMK_TYPE_F32, k ? 0.2 : 0, -0.1, 1, 0);
    test_auto (TestImage) out =
        sh_run (IMK_BACKEND_CPU, c, &in, IMK_TYPE_F64, 0);

    x[k] = sh_get (&out, 0, IMK_SHCENTROID_DX);
  }
  return (x[1] - x[0]) / 0.2;
}

/* The centroid is the best estimator of a Gaussian spot without read noise; the
 * whole pixel between the templates costs a little there. */
TEST (test_matched_noise,
    "the matched filter has less noise than the centroid where read noise "
    "counts, 4 % more at most where it does not, and reports what it has",
    .cpu_only = true)
{
  static const double lights[] = {1, 0.2, 0.05};
  static const double most[] = {1.04, 0.95, 0.8};

  for (int k = 0; k < 3; k++) {
    double matched[2], cog[2];
    Matched m;

    make_matched (&m, IMK_TYPE_F32);
    measure_noise (&m.c, lights[k], matched);
    m.c.estimator = IMK_SHCENTROID_ESTIMATOR_COG;
    measure_noise (&m.c, lights[k], cog);
    cog[0] /= measure_gain (&m.c);
    printf ("# peak %g counts: rms %.4f px (%.4f reported), centroid %.4f\n",
        900 * lights[k], matched[0], matched[1], cog[0]);
    test_check (matched[0] <= most[k] * cog[0], "rms %.4f px, centroid %.4f",
        matched[0], cog[0]);
    test_check (fabs (matched[1] / matched[0] - 1) < 0.1,
        "rms %.4f px, but %.4f are reported", matched[0], matched[1]);
  }
}

/* One template for all, of another size, in a cell that the frame cuts. */
TEST (test_matched_of_one, "one template serves all cells, and cut ones",
    .cpu_only = true)
{
  ImkShcentroidConfig c = sh_grid (IMK_TYPE_F32, 30, 15, -2, 0, 15, 15, 2, 1);
  test_auto (TestImage) in = test_image_new (IMK_TYPE_F32, 30, 15, 1, 0);
  test_auto (TestImage) out;
  float spot[9 * 9];

  for (uint32_t i = 0; i < 81; i++)
    spot[i] =
        (float) (500 *
                 exp (-(pow (i % 9 - 4.0, 2) + pow (i / 9 - 4.0, 2)) / 4));
  for (uint32_t y = 0; y < 15; y++)
    for (uint32_t x = 0; x < 30; x++)
      sh_set (&in, x, y,
          500 * exp (-(pow (x - 6.0, 2) + pow (y - 7.0, 2)) / 4) +
              500 * exp (-(pow (x - 20.0, 2) + pow (y - 6.0, 2)) / 4));
  c.estimator = IMK_SHCENTROID_ESTIMATOR_MATCHED;
  c.templates = spot;
  c.n_templates = 1;
  c.template_width = c.template_height = 9;
  out = sh_run (IMK_BACKEND_CPU, &c, &in, IMK_TYPE_F64, 0);
  sh_near (&out, 0, IMK_SHCENTROID_X, 6, 1e-3);
  sh_near (&out, 0, IMK_SHCENTROID_Y, 7, 1e-3);
  sh_near (&out, 0, IMK_SHCENTROID_FLAGS, IMK_SHCENTROID_CLIPPED, 0);
  sh_near (&out, 1, IMK_SHCENTROID_X, 20, 1e-3);
  sh_near (&out, 1, IMK_SHCENTROID_Y, 6, 1e-3);
}

TEST (test_matched_dark,
    "a cell with a template without structure is dark; "
    "all of them are refused",
    .cpu_only = true)
{
  test_auto (TestImage) in = matched_frame (IMK_TYPE_F32, 0, 0, 1, 0), out;
  ImkShcentroid *s = NULL;
  Matched m;

  make_matched (&m, IMK_TYPE_F32);
  for (uint32_t i = 0; i < PITCH * PITCH; i++) {
    m.templates[i] = 7;
    m.templates[PITCH * PITCH + i] = (float) (i % PITCH); /* in x alone */
  }
  out = sh_run (IMK_BACKEND_CPU, &m.c, &in, IMK_TYPE_F64, 0);
  for (uint32_t i = 0; i < N_CELLS; i++)
    sh_near (
        &out, i, IMK_SHCENTROID_FLAGS, i < 2 ? IMK_SHCENTROID_NO_FLUX : 0, 0);
#define REFUSED(words) \
  test_error ( \
      imk_shcentroid_new (IMK_BACKEND_CPU, &m.c, &s, test_new_error ()), \
      IMK_ERROR_CONFIG, words)
  for (uint32_t i = 0; i < N_CELLS * PITCH * PITCH; i++)
    m.templates[i] = (float) (i % PITCH);
  REFUSED ("no template shows light with structure in x and y");
  m.c.template_width = 4;
  REFUSED ("the template is 4x12 pixels; it needs at least 5x5");
  make_matched (&m, IMK_TYPE_F32);
  m.c.window = IMK_SHCENTROID_WINDOW_TRACKING;
  REFUSED ("window is tracking, but estimator=matched");
  make_matched (&m, IMK_TYPE_F32);
  m.c.n_templates = 0;
  REFUSED ("estimator is matched, but there is no template");
  m.c.template_source = IMK_SHCENTROID_TEMPLATE_FRAME;
  m.c.template_cell = 0;
  REFUSED ("template-source=frame is none");
#undef REFUSED
  make_matched (&m, IMK_TYPE_F32);
  m.c.estimator = IMK_SHCENTROID_ESTIMATOR_COG;
  s = sh_new (IMK_BACKEND_CPU, &m.c);
  m.c.estimator = IMK_SHCENTROID_ESTIMATOR_MATCHED;
  test_error (imk_shcentroid_update (s, &m.c, test_new_error ()),
      IMK_ERROR_CONFIG, "was made without its weights");
  imk_shcentroid_free (s);
}

TEST (test_matched_not_finite,
    "a sample that is not finite spoils its cell "
    "alone",
    .cpu_only = true)
{
  test_auto (TestImage) in = matched_frame (IMK_TYPE_F32, 0, 0, 1, 0);
  test_auto (TestImage) good, bad;
  Matched m;

  make_matched (&m, IMK_TYPE_F32);
  good = sh_run (IMK_BACKEND_CPU, &m.c, &in, IMK_TYPE_F64, 0);
  sh_set (&in, 0, 0, NAN); /* at the border, where the weight is 0 */
  bad = sh_run (IMK_BACKEND_CPU, &m.c, &in, IMK_TYPE_F64, 0);
  sh_near (&bad, 0, IMK_SHCENTROID_FLAGS, IMK_SHCENTROID_NOT_FINITE, 0);
  for (uint32_t i = 1; i < N_CELLS; i++)
    for (uint32_t f = 0; f < N_FIELDS; f++)
      sh_near (&bad, i, f, sh_get (&good, i, f), 0);
}

TEST (test_matched_parity, "CPU and CUDA agree bit for bit about the matched "
                           "filter")
{
  static const ImkType types[] = {IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_F32};
  float dark[COLUMNS * ROWS * PITCH * PITCH],
      flat[COLUMNS * ROWS * PITCH * PITCH];

  test_need_cuda ();
  for (uint32_t i = 0; i < COLUMNS * ROWS * PITCH * PITCH; i++) {
    dark[i] = 0.37f * (float) (i % 5);
    flat[i] = i % 53 == 9 ? 0 : 0.9f + 0.01f * (float) (i % 19);
  }
  for (int type = 0; type < 3; type++)
    for (int fields = 0; fields <= IMK_SHCENTROID_FIELDS_SLOPES; fields++)
      for (int option = 0; option < 4; option++) {
        Matched m;
        test_auto (TestImage) in =
            matched_frame (types[type], 0.2, 0.3, 0.25, 10);

        make_matched (&m, types[type]);
        m.c.fields = fields;
        m.c.dark = option % 2 ? dark : NULL;
        m.c.flat = option % 2 ? flat : NULL;
        m.c.remove_tilt = option / 2;
        m.c.min_illumination = option / 2 ? 0.9 : 0;
        sh_check_parity (&m.c, &in, IMK_TYPE_F64, 8, 2, option % 2, "matched");
      }
}
