/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Quadratic wavefronts, which all three methods reproduce: to 1e-5 of their
 * range, as slopes and wavefront are float32. */
#include "imk/shwavefront.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel-test.h"
#include "shreconstruct/wavefront/zernike.h"

TEST_DEFINE_AUTO_POINTER (ImkShwavefront, imk_shwavefront_free)

enum { COLUMNS = 11, ROWS = 7, N = COLUMNS * ROWS };

static void
make_grid (uint32_t row_column[2 * N])
{
  for (uint32_t i = 0; i < N; i++) {
    row_column[2 * i] = 3 + i / COLUMNS; /* grids need not begin at 0 */
    row_column[2 * i + 1] = 5 + i % COLUMNS;
  }
}

static double
quadratic (double x, double y)
{
  return 0.3 * x - 0.2 * y + 0.05 * x * x - 0.07 * x * y + 0.02 * y * y;
}

static void
make_slopes (float slopes[2 * N])
{
  for (uint32_t i = 0; i < N; i++) {
    double x = i % COLUMNS, y = i / COLUMNS;

    slopes[i] = (float) (0.3 + 0.1 * x - 0.07 * y);
    slopes[N + i] = (float) (-0.2 - 0.07 * x + 0.04 * y);
  }
}

static ImkShwavefront *
make (ImkShwavefrontMethod method, double scale)
{
  uint32_t row_column[2 * N];
  ImkShwavefrontConfig c;
  ImkShwavefront *self = NULL;

  make_grid (row_column);
  imk_shwavefront_config_init (&c);
  c.n_cells = N;
  c.row_column = row_column;
  c.method = method;
  c.scale = scale;
  test_ok (imk_shwavefront_new (&c, &self, test_new_error ()));
  return self;
}

static double
waffle (uint32_t i, uint32_t width)
{
  return (i % width + i / width) % 2 ? -1 : 1;
}

/* What the wavefront should be: the quadratic without its mean, and without its
 * waffle, which FRIED cannot see.
 * @shift: of the first point from the middle of the first cell
 * Returns: how many points have a value */
static uint32_t
expect (const float *wavefront, uint32_t width, uint32_t n, double scale,
    double shift, bool has_waffle, double *expected)
{
  double sums[2] = {0}, sign = 0, signs = 0, count = 0, determinant, a, b;

  for (uint32_t i = 0; i < n; i++) {
    expected[i] = scale * quadratic (i % width + shift, i / width + shift);
    if (!isfinite (wavefront[i]))
      continue;
    sign = has_waffle ? waffle (i, width) : 0;
    sums[0] += expected[i];
    sums[1] += expected[i] * sign;
    signs += sign;
    count++;
  }
  determinant = count * count - signs * signs;
  a = (sums[0] * count - sums[1] * signs) / determinant;
  b = (sums[1] * count - sums[0] * signs) / determinant;
  for (uint32_t i = 0; i < n; i++)
    expected[i] -= a + (has_waffle ? b * waffle (i, width) : 0);
  return (uint32_t) count;
}

static void
check_wavefront (const ImkShwavefront *self, const float *wavefront,
    double scale, bool is_fried, const ImkShwavefrontReport *report)
{
  double expected[(COLUMNS + 1) * (ROWS + 1)], squares = 0;
  uint32_t width, height, n;

  imk_shwavefront_shape (self, &width, &height);
  n = expect (wavefront, width, width * height, scale, is_fried ? -0.5 : 0,
      is_fried, expected);
  for (uint32_t i = 0; i < width * height; i++) {
    if (!isfinite (wavefront[i]))
      continue;
    squares += expected[i] * expected[i];
    test_check (fabs (wavefront[i] - expected[i]) < 1e-5 * fabs (scale),
        "point %u of %u x %u is %.8g and should be %.8g", i, width, height,
        (double) wavefront[i], expected[i]);
  }
  test_check (report->n_points == n, "%u of %u points", report->n_points, n);
  test_check (fabs (report->rms - sqrt (squares / n)) < 1e-5 * fabs (scale),
      "the rms is %g and should be %g", report->rms, sqrt (squares / n));
}

TEST (test_a_quadratic_is_reproduced, "a quadratic is reproduced")
{
  for (int method = 0; method <= IMK_SHWAVEFRONT_ZERNIKE; method++) {
    double scale = method == 1 ? -70 : 500;
    bool is_fried = method == IMK_SHWAVEFRONT_FRIED;
    test_autoptr (ImkShwavefront) self =
        make ((ImkShwavefrontMethod) method, scale);
    float slopes[2 * N], wavefront[(COLUMNS + 1) * (ROWS + 1)];
    uint8_t flags[N] = {0};
    ImkShwavefrontReport report;

    make_slopes (slopes);
    imk_shwavefront_process (self, slopes, NULL, wavefront, &report);
    check_wavefront (self, wavefront, scale, is_fried, &report);
    test_check (report.n_points == N + (COLUMNS + ROWS + 1) * (method == 1),
        "method %d: %u points", method, report.n_points);
    for (uint32_t i = 0; i < N; i++) /* a hole and a corner are dark */
      flags[i] =
          (i % COLUMNS > 3 && i % COLUMNS < 7 && i / COLUMNS == 3) || i < 3 ? 1
                                                                            : 0;
    slopes[N - 1] = NAN;
    imk_shwavefront_process (self, slopes, flags, wavefront, &report);
    check_wavefront (self, wavefront, scale, is_fried, &report);
    test_check (method == 1 || !isfinite (wavefront[3 * COLUMNS + 5]),
        "method %d: a dark cell has a value", method);
    test_check (method == 1 || report.n_points == N - 7, "method %d: %u points",
        method, report.n_points);
  }
}

TEST (test_pieces_and_darkness, "pieces, and no light at all")
{
  test_autoptr (ImkShwavefront) self = make (IMK_SHWAVEFRONT_SOUTHWELL, 1);
  float slopes[2 * N], wavefront[N];
  uint8_t flags[N] = {0};
  ImkShwavefrontReport report;

  make_slopes (slopes);
  for (uint32_t row = 0; row < ROWS; row++)
    flags[row * COLUMNS + 4] = 1; /* two pieces: each has a mean of its own */
  imk_shwavefront_process (self, slopes, flags, wavefront, &report);
  for (int piece = 0; piece < 2; piece++) {
    double sum = 0;

    for (uint32_t i = 0; i < N; i++)
      if (i % COLUMNS != 4 && (i % COLUMNS > 4) == piece)
        sum += wavefront[i];
    test_check (fabs (sum) < 1e-4, "the mean of piece %d is %g", piece, sum);
  }
  for (uint32_t i = 0; i < N; i++)
    flags[i] = 1;
  imk_shwavefront_process (self, slopes, flags, wavefront, &report);
  test_check (report.n_points == 0 && report.rms == 0 && isnan (wavefront[0]),
      "darkness has %u points", report.n_points);
}

TEST (test_modes_are_those_of_noll, "modes are those of Noll")
{
  const double x = 0.3, y = -0.55, t = x * x + y * y;
  const struct {
    uint32_t j;
    double value;
  } known[] = {{1, 1}, {2, 2 * x}, {3, 2 * y}, {4, sqrt (3) * (2 * t - 1)},
      {5, sqrt (6) * 2 * x * y}, {6, sqrt (6) * (x * x - y * y)},
      {7, sqrt (8) * (3 * t - 2) * y}, {8, sqrt (8) * (3 * t - 2) * x},
      {9, sqrt (8) * (3 * x * x - y * y) * y},
      {10, sqrt (8) * (x * x - 3 * y * y) * x},
      {11, sqrt (5) * (6 * t * t - 6 * t + 1)},
      {22, sqrt (7) * (20 * t * t * t - 30 * t * t + 12 * t - 1)}};

  for (size_t i = 0; i < sizeof (known) / sizeof (*known); i++) {
    double value = imk_zernike (known[i].j, x, y);

    test_check (fabs (value - known[i].value) < 1e-12,
        "mode %u is %.15g and should be %.15g", known[i].j, value,
        known[i].value);
  }
}

/* Coma, sqrt (8) (3 x^3 + 3 x y^2 - 2 x), across a square of 2 @h. */
static void
coma_across (double x, double y, double h, double *dx, double *dy)
{
  *dx = sqrt (8) * 2 * h * (9 * x * x + 3 * y * y + 4 * h * h - 2);
  *dy = sqrt (8) * 2 * h * 6 * x * y;
}

TEST (test_slopes_are_means_over_a_lenslet, "slopes are means over a lenslet")
{
  const double x = 0.3, y = -0.55, h = 0.1;
  double dx, dy, expected_x, expected_y, sum = 0;
  ImkZernikeEdge edge;

  imk_zernike_edge_init (&edge, 8);
  imk_zernike_across (&edge, 8, x, y, h, &dx, &dy);
  coma_across (x, y, h, &expected_x, &expected_y);
  test_check (fabs (dx - expected_x) < 1e-14 && fabs (dy - expected_y) < 1e-14,
      "coma grows by %.15g, %.15g and should by %.15g, %.15g", dx, dy,
      expected_x, expected_y);
  imk_zernike_edge_init (&edge, 1001);
  for (uint32_t i = 0; i < edge.n; i++) /* the mean of x^44 */
    sum += edge.weights[i] * pow (edge.at[i], 44);
  test_check (fabs (sum * 45 - 1) < 1e-13, "%u points find %.15g, not 1 / 45",
      edge.n, sum);
}

TEST (test_coefficients_are_told, "coefficients are told")
{
  test_autoptr (ImkShwavefront) self = make (IMK_SHWAVEFRONT_ZERNIKE, 1);
  float slopes[2 * N], wavefront[N];
  ImkShwavefrontReport report;
  const double *modes;

  for (uint32_t i = 0; i < N; i++) {
    double x = (2.0 * (i % COLUMNS) + 1 - COLUMNS) / COLUMNS, dx, dy;
    double y = (2.0 * (i / COLUMNS) + 1 - ROWS) / COLUMNS, h = 1.0 / COLUMNS;

    coma_across (x, y, h, &dx, &dy);
    /* and defocus, sqrt (3) (2 x^2 + 2 y^2 - 1) */
    slopes[i] = (float) (3 * dx - sqrt (3) * 8 * x * h);
    slopes[N + i] = (float) (3 * dy - sqrt (3) * 8 * y * h);
  }
  imk_shwavefront_process (self, slopes, NULL, wavefront, &report);
  modes = imk_shwavefront_modes (self);
  for (uint32_t i = 0; i < 20; i++)
    test_check (fabs (modes[i] - (i == 6      ? 3
                                     : i == 2 ? -1
                                              : 0)) < 1e-5,
        "mode %u is %g", i + 2, modes[i]);
}

/* Tip, where more modes are asked for than the grid tells */
TEST (test_tip_is_told_as_itself, "tip is told as itself")
{
  static const struct {
    uint32_t side, n_modes, n_told;
  } cases[] = {{1, 20, 2}, {2, 20, 7}, {3, 20, 10}, {4, 20, 18}, {4, 9, 9},
      {7, 60, 40}, {10, 100, 58}, {30, 1000, 0}};

  for (uint32_t i = 0; i < sizeof (cases) / sizeof (*cases); i++) {
    const uint32_t side = cases[i].side, n = side * side;
    uint32_t row_column[2 * 900];
    float slopes[2 * 900] = {0}, wavefront[900];
    test_autoptr (ImkShwavefront) self = NULL;
    ImkShwavefrontReport report;
    ImkShwavefrontConfig c;
    uint32_t n_told;

    for (uint32_t k = 0; k < n; k++) {
      row_column[2 * k] = k / side;
      row_column[2 * k + 1] = k % side;
      slopes[k] = 4 / (float) side; /* the mode is 2 x */
    }
    imk_shwavefront_config_init (&c);
    c.n_cells = n;
    c.row_column = row_column;
    c.method = IMK_SHWAVEFRONT_ZERNIKE;
    c.n_modes = cases[i].n_modes;
    test_ok (imk_shwavefront_new (&c, &self, test_new_error ()));
    n_told = imk_shwavefront_n_modes (self);
    test_check (cases[i].n_told == 0 || n_told == cases[i].n_told,
        "%u x %u cells tell %u of %u modes", side, side, n_told, c.n_modes);
    imk_shwavefront_process (self, slopes, NULL, wavefront, &report);
    for (uint32_t m = 0; m < n_told; m++)
      test_check (fabs (imk_shwavefront_modes (self)[m] - (m == 0)) < 1e-3,
          "%u x %u cells: mode %u of tip is %g", side, side, m + 2,
          imk_shwavefront_modes (self)[m]);
  }
}

static void
check_refused (const ImkShwavefrontConfig *c, const char *words)
{
  ImkShwavefront *self = NULL;

  test_check (
      imk_shwavefront_new (c, &self, test_new_error ()) == IMK_ERROR_CONFIG,
      "\"%s\" is not refused", words);
  test_check (strstr (test_message (), words) != NULL, "%s", test_message ());
}

TEST (test_what_is_wrong_is_said, "what is wrong is said")
{
  const uint32_t far[] = {0, 0, 512, 0}, same[] = {1, 1, 1, 1};
  ImkShwavefrontConfig c;

  imk_shwavefront_config_init (&c);
  check_refused (&c, "There are 0 cells");
  c.n_cells = 2;
  c.row_column = far;
  check_refused (&c, "row 512");
  c.row_column = same;
  check_refused (&c, "Two cells are in row 1, column 1");
  c.scale = 0;
  check_refused (&c, "scale");
  c.scale = 1;
  c.method = IMK_SHWAVEFRONT_ZERNIKE;
  c.n_modes = 0;
  check_refused (&c, "0 Zernike modes");
  imk_shwavefront_free (NULL);
}
