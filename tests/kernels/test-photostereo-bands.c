/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Photometric stereo of several bands: against the model, a float64 least
 * squares of the mean with a projection for each band, colour frames of the
 * same planes, and the backends against each other. */
#include "photo-common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 36, W = 67, H = 9, MAX_BANDS = IMK_PHOTOSTEREO_MAX_BANDS };

/* --- sets ----------------------------------------------------------------- */

/* A set: a picture of each light and band, at [light * bands + band]. */
typedef struct Set {
  ImkPhotostereoConfig c;
  ImkPhotostereoLight lights[N];
  TestImage *pictures;
} Set;

static uint32_t
n_pictures (const Set *set)
{
  return set->c.n_lights * set->c.bands;
}

static void
normal_at (uint32_t x, uint32_t y, double n[3])
{
  double p = 0.5 * sin (0.19 * x + 0.3 * y), q = 0.5 * cos (0.13 * x - 0.4 * y);
  double r = sqrt (1 + p * p + q * q);

  n[0] = p / r;
  n[1] = q / r;
  n[2] = 1 / r;
}

/* Every band sees other paint. */
static double
albedo_at (uint32_t band, uint32_t x, uint32_t y)
{
  return 0.2 + 0.1 * ((x / 5 + y / 2 + 3 * band) % 6);
}

/* As if the light were far. */
static double
shade_at (const Set *set, uint32_t light, uint32_t x, uint32_t y)
{
  const ImkPhotostereoLight *l = &set->lights[light];
  double n[3], shade;

  normal_at (x, y, n);
  shade = (n[0] * l->x + n[1] * l->y + n[2] * l->z) /
          sqrt (l->x * l->x + l->y * l->y + l->z * l->z);
  return shade > 0 ? shade : 0;
}

static uint32_t
maximum_of (ImkType type)
{
  return type == IMK_TYPE_U8 ? 255 : 65535;
}

static void
set_sample (
    TestImage *image, uint32_t x, uint32_t y, uint32_t channel, double v)
{
  double maximum = maximum_of (image->image.type);

  v = v < 0 ? 0 : v > maximum ? maximum : v + 0.5;
  photo_set (image, x, y, channel, (uint32_t) v);
}

/* @noise: samples; and of 8 lights one is in a highlight, in all bands */
static void
render (Set *set, double noise)
{
  const ImkPhotostereoConfig *c = &set->c;
  uint64_t seed = 11;

  set->pictures = calloc (n_pictures (set), sizeof (*set->pictures));
  for (uint32_t i = 0; i < n_pictures (set); i++) {
    uint32_t light = i / c->bands, band = i % c->bands;

    set->pictures[i] = test_image_new (c->type, W, H, 1, i % 5);
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++) {
        double v = albedo_at (band, x, y) * shade_at (set, light, x, y);
        double r = (double) (test_random (&seed) >> 40) / (1 << 24) - 0.5;

        v = v * maximum_of (c->type) + 2 * noise * r;
        if (noise > 0 && (light + x + y) % 8 == 0)
          v = 0.9 * maximum_of (c->type);
        set_sample (&set->pictures[i], x, y, 0, v);
      }
  }
}

/* Lights on a dome, none of which leaves a pixel in the dark. @radius: 1 for
 * directions, else positions in mm */
static void
set_init (Set *set, ImkType type, uint32_t bands, double radius)
{
  photo_fill_dome (set->lights, N, radius, 0.7);
  imk_photostereo_config_init (&set->c);
  set->c.type = type;
  set->c.width = W;
  set->c.height = H;
  set->c.bands = bands;
  set->c.lights = set->lights;
  set->c.n_lights = N;
  set->c.positions = radius > 1;
  set->c.n_threads = 1;
}

static void
set_clear (Set *set)
{
  for (uint32_t i = 0; i < n_pictures (set); i++)
    test_image_free (&set->pictures[i]);
  free (set->pictures);
}

TEST_DEFINE_AUTO (Set, set_clear)

/* --- solutions ------------------------------------------------------------ */

/* All but the @n_missing last pictures, every @step-th next: coprime to their
 * number. @look: pictures after which there is a solution on the way */
static Solved
run (const Set *set, ImkBackend backend, ImkType type, uint32_t step,
    uint32_t n_missing, uint32_t look)
{
  bool on_device = backend == IMK_BACKEND_CUDA;
  uint32_t n = n_pictures (set) - n_missing;
  test_autofree ImkImage *device = calloc (n, sizeof (*device));
  Solved solved = solved_new (&set->c, type);
  ImkPhotostereo *s = NULL;

  test_ok (imk_photostereo_new (backend, &set->c, &s, test_new_error ()));
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i = k * step % n;

    if (on_device)
      device[i] = test_to_device (&set->pictures[i]);
    test_ok (imk_photostereo_add_band (s,
        on_device ? &device[i] : &set->pictures[i].image, i / set->c.bands,
        i % set->c.bands, NULL, test_new_error ()));
    if (k + 1 == look)
      solved_fill (&solved, s, on_device);
  }
  solved_fill (&solved, s, on_device);
  test_check (imk_photostereo_n_added (s) == n, "%u pictures, expected %u",
      imk_photostereo_n_added (s), n);
  solved.kept = imk_photostereo_keeps_frames (s);
  imk_photostereo_free (s);
  for (uint32_t i = 0; i < n && on_device; i++)
    test_device_free (&device[i]);
  return solved;
}

static Solved
run_cpu (const Set *set)
{
  return run (set, IMK_BACKEND_CPU, IMK_TYPE_F32, 1, 0, 0);
}

/* Degrees; 180 where there is no normal. */
static double
error_at (const Solved *s, uint32_t x, uint32_t y, const double n[3])
{
  double found[3];

  solved_normal (s, x, y, found);
  return found[0] == 0 && found[1] == 0 && found[2] == 0
             ? 180
             : photo_angle (found, n);
}

/* Fails where the normals or albedos are not those of the model. */
static void
check_model (const Set *set, const Solved *s, double degrees, double tolerance,
    const char *where)
{
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++) {
      double n[3];

      normal_at (x, y, n);
      test_check (error_at (s, x, y, n) < degrees,
          "%s: %.5f degrees off at (%u, %u)", where, error_at (s, x, y, n), x,
          y);
      for (uint32_t band = 0; band < set->c.bands; band++) {
        double found = photo_get (&s->image[ALBEDO], x, y, band);

        test_check (fabs (found - albedo_at (band, x, y)) <= tolerance,
            "%s: albedo %.6f of band %u at (%u, %u), expected %.6f", where,
            found, band, x, y, albedo_at (band, x, y));
      }
    }
}

/* --- what is solved ------------------------------------------------------- */

TEST (test_equal_bands_are_one_picture, "equal bands are one picture")
{
  static const uint32_t counts[] = {2, 8};
  Set one, set;
  test_auto (Solved) expected = {0};

  set_init (&one, IMK_TYPE_U8, 1, 1);
  render (&one, 9);
  expected = run_cpu (&one);
  for (uint32_t k = 0; k < 2; k++) {
    uint32_t bands = counts[k];
    test_auto (Solved) found = {0};

    set_init (&set, IMK_TYPE_U8, bands, 1);
    set.pictures = calloc (n_pictures (&set), sizeof (*set.pictures));
    for (uint32_t i = 0; i < n_pictures (&set); i++) {
      set.pictures[i] = test_image_new (IMK_TYPE_U8, W, H, 1, 3);
      for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
          set_sample (&set.pictures[i], x, y, 0,
              photo_get (&one.pictures[i / bands], x, y, 0));
    }
    found = run_cpu (&set);
    if (bands == 2) { /* half of a number, twice, is that number */
      test_image_same (&expected.image[NORMAL], &found.image[NORMAL], "normal");
      test_image_same (
          &expected.image[QUALITY], &found.image[QUALITY], "quality");
    }
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++) {
        double n[3];

        for (uint32_t i = 0; i < 3; i++)
          n[i] = photo_get (&expected.image[NORMAL], x, y, i);
        test_check (error_at (&found, x, y, n) < 1e-4,
            "%.6f degrees apart at (%u, %u)", error_at (&found, x, y, n), x, y);
        for (uint32_t band = 0; band < bands; band++) {
          test_check (photo_get (&found.image[AMBIENT], x, y, band) ==
                          photo_get (&expected.image[AMBIENT], x, y, 0),
              "ambient of band %u at (%u, %u)", band, x, y);
          /* the projection onto the solution is the solution */
          test_check (
              fabs (photo_get (&found.image[ALBEDO], x, y, band) -
                    photo_get (&expected.image[ALBEDO], x, y, 0)) < 2e-6,
              "albedo %.7f of band %u at (%u, %u), expected %.7f",
              photo_get (&found.image[ALBEDO], x, y, band), band, x, y,
              photo_get (&expected.image[ALBEDO], x, y, 0));
        }
      }
    set_clear (&set);
  }
  set_clear (&one);
}

/* Grey values have other weights (luma, mean), which on what follows the model
 * is another albedo for the same normal. */
TEST (test_three_bands_are_the_planes_of_a_colour_frame,
    "three bands are the planes of a colour frame")
{
  test_auto (Set) set, colours;
  test_auto (Solved) of_bands, of_colours;

  set_init (&set, IMK_TYPE_U16, 3, 1);
  render (&set, 0);
  set_init (&colours, IMK_TYPE_U16, 1, 1);
  colours.c.channels = 3;
  colours.pictures = calloc (N, sizeof (*colours.pictures));
  for (uint32_t i = 0; i < N; i++) {
    colours.pictures[i] = test_image_new (IMK_TYPE_U16, W, H, 3, 0);
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++)
        for (uint32_t k = 0; k < 3; k++)
          set_sample (&colours.pictures[i], x, y, k,
              photo_get (&set.pictures[3 * i + k], x, y, 0));
  }
  of_bands = run_cpu (&set);
  of_colours = run_cpu (&colours);
  test_image_same (
      &of_bands.image[AMBIENT], &of_colours.image[AMBIENT], "ambient");
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++) {
      double n[3], a[3], b[3];

      for (uint32_t k = 0; k < 3; k++) {
        n[k] = photo_get (&of_colours.image[NORMAL], x, y, k);
        a[k] = photo_get (&of_colours.image[ALBEDO], x, y, k);
        b[k] = photo_get (&of_bands.image[ALBEDO], x, y, k);
        test_check (fabs (a[k] - b[k]) < 2e-5,
            "albedo %.6f of band %u at (%u, %u), expected %.6f", b[k], k, x, y,
            a[k]);
      }
      test_check (error_at (&of_bands, x, y, n) < 0.005,
          "%.5f degrees apart at (%u, %u)", error_at (&of_bands, x, y, n), x,
          y);
    }
}

TEST (test_any_number_of_bands_inverts_the_model,
    "any number of bands inverts the model")
{
  static const uint32_t counts[] = {1, 2, 3, 4, 8, MAX_BANDS};

  for (uint32_t k = 0; k < 6; k++)
    for (uint32_t robust = 0; robust < 3; robust++) {
      test_auto (Set) set;
      test_auto (Solved) solved;

      set_init (&set, IMK_TYPE_U16, counts[k], 1);
      set.c.robust = robust;
      render (&set, 0);
      solved = run_cpu (&set);
      check_model (&set, &solved, 0.01, 1e-4, "exact");
      test_check (
          solved.summary.n_lights == N &&
              solved.summary.n_samples == (uint64_t) W * H * N * counts[k],
          "%u lights, %llu samples", solved.summary.n_lights,
          (unsigned long long) solved.summary.n_samples);
    }
}

TEST (test_highlights_are_rejected_in_all_bands,
    "highlights are rejected in all bands")
{
  test_auto (Set) set;
  test_auto (Solved) solved;

  set_init (&set, IMK_TYPE_U16, 8, 1);
  set.c.t_res = 0.25;
  render (&set, 1);
  solved = run_cpu (&set);
  check_model (&set, &solved, 0.05, 2e-4, "highlights");
}

/* Solves @m x = @b. */
static void
solve_3x3 (double m[3][3], const double b[3], double x[3])
{
  double det = 0;

  for (int i = 0; i < 3; i++)
    det += m[0][i] * (m[1][(i + 1) % 3] * m[2][(i + 2) % 3] -
                         m[1][(i + 2) % 3] * m[2][(i + 1) % 3]);
  for (int i = 0; i < 3; i++) { /* Cramer */
    double c[3][3], d = 0;

    memcpy (c, m, sizeof (c));
    for (int r = 0; r < 3; r++)
      c[r][i] = b[r];
    for (int k = 0; k < 3; k++)
      d += c[0][k] * (c[1][(k + 1) % 3] * c[2][(k + 2) % 3] -
                         c[1][(k + 2) % 3] * c[2][(k + 1) % 3]);
    x[i] = d / det;
  }
}

/* n' = argmin sum_p (mean_b G_pb - n'.L_p)^2, albedo_b = argmin sum_p (G_pb -
 * albedo_b n.L_p)^2, both in float64. */
static void
check_least_squares (const Set *set, const Solved *s, uint32_t x, uint32_t y)
{
  double m[3][3] = {{0}}, b[3] = {0}, n[3], length = 0, ss = 0;
  double si[MAX_BANDS] = {0};

  for (uint32_t i = 0; i < N; i++) {
    const double l[] = {set->lights[i].x, set->lights[i].y, set->lights[i].z};

    for (uint32_t band = 0; band < set->c.bands; band++)
      for (int r = 0; r < 3; r++)
        b[r] += l[r] *
                photo_get (&set->pictures[i * set->c.bands + band], x, y, 0) /
                255 / set->c.bands;
    for (int r = 0; r < 3; r++)
      for (int k = 0; k < 3; k++)
        m[r][k] += l[r] * l[k];
  }
  solve_3x3 (m, b, n);
  for (int r = 0; r < 3; r++)
    length += n[r] * n[r];
  length = sqrt (length);
  for (uint32_t i = 0; i < N; i++) {
    const ImkPhotostereoLight *l = &set->lights[i];
    double shade = (n[0] * l->x + n[1] * l->y + n[2] * l->z) / length;

    ss += shade * shade;
    for (uint32_t band = 0; band < set->c.bands; band++)
      si[band] += shade *
                  photo_get (&set->pictures[i * set->c.bands + band], x, y, 0) /
                  255;
  }
  test_check (error_at (s, x, y, n) < 0.001, "%.5f degrees off at (%u, %u)",
      error_at (s, x, y, n), x, y);
  for (uint32_t band = 0; band < set->c.bands; band++)
    test_check (
        fabs (photo_get (&s->image[ALBEDO], x, y, band) - si[band] / ss) < 1e-5,
        "albedo %.6f of band %u at (%u, %u), expected %.6f",
        photo_get (&s->image[ALBEDO], x, y, band), band, x, y, si[band] / ss);
}

TEST (test_float64_least_squares_agrees, "a float64 least squares agrees")
{
  test_auto (Set) set;
  test_auto (Solved) solved;

  set_init (&set, IMK_TYPE_U8, 5, 1);
  set.c.robust = IMK_PHOTOSTEREO_ROBUST_NONE;
  render (&set, 30);
  solved = run_cpu (&set);
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++)
      check_least_squares (&set, &solved, x, y);
}

TEST (test_a_band_that_is_clipped_takes_its_light_along,
    "a band that is clipped takes its light along")
{
  test_auto (Set) set;
  test_auto (Solved) solved;

  set_init (&set, IMK_TYPE_U16, 4, 1);
  render (&set, 0);
  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++) /* x / 4 lights */
      for (uint32_t i = 0; i < x / 4; i++)
        set_sample (&set.pictures[4 * i + (x + i) % 4], x, y, 0, 65535);
  solved = run_cpu (&set);
  check_model (&set, &solved, 0.01, 1e-4, "clipped");
  for (uint32_t x = 0; x < W; x++)
    test_check (photo_get (&solved.image[QUALITY], x, 0,
                    IMK_PHOTOSTEREO_LIGHTS) <= N - x / 4,
        "%g lights at pixel %u", photo_get (&solved.image[QUALITY], x, 0, 0),
        x);
}

TEST (test_each_band_has_a_dark_and_a_white_frame,
    "each band has a dark and a white frame")
{
  enum { B = 3 };

  for (uint32_t all = 0; all < 2; all++) {
    test_auto (TestImage) dark =
        test_image_new (IMK_TYPE_U16, W, all ? B * H : H, 1, 6);
    test_auto (TestImage) white =
        test_image_new (IMK_TYPE_U16, W, all ? B * H : H, 1, 2);
    test_auto (Set) set;
    test_auto (Solved) solved;

    set_init (&set, IMK_TYPE_U16, B, 1);
    render (&set, 0);
    for (uint32_t y = 0; y < (all ? B * H : H); y++)
      for (uint32_t x = 0; x < W; x++) {
        uint32_t band = y / H;
        /* half of the light on the right half; the mean is 3/4 of it */
        double light = 20000 * (band + 1) * (x < (W + 1) / 2 ? 1 : 0.5);

        set_sample (&dark, x, y, 0, 1000 * (band + 1));
        set_sample (&white, x, y, 0, light + 1000 * (band + 1));
      }
    for (uint32_t i = 0; i < n_pictures (&set); i++)
      for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
          set_sample (&set.pictures[i], x, y, 0,
              photo_get (&set.pictures[i], x, y, 0) *
                      (x < (W + 1) / 2 ? 1.0 : 0.5) *
                      (W * 1.0 / ((W + 1) / 2 + W / 2 * 0.5)) * 0.7 +
                  1000 * (all ? i % B + 1 : 1));
    set.c.dark = &dark.image;
    set.c.white = &white.image;
    solved = run_cpu (&set);
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++)
        for (uint32_t band = 0; band < B; band++)
          test_check (fabs (photo_get (&solved.image[ALBEDO], x, y, band) -
                            0.7 * albedo_at (band, x, y)) < 2e-4,
              "albedo %.5f of band %u at (%u, %u), expected %.5f",
              photo_get (&solved.image[ALBEDO], x, y, band), band, x, y,
              0.7 * albedo_at (band, x, y));
  }
}

static double
intensity_of (uint32_t light, uint32_t band)
{
  return 0.5 + 0.1 * ((3 * light + 5 * band) % 6);
}

/* From a file, as that is where they come from. */
static void
read_intensities (Set *set, uint32_t columns)
{
  ImkPhotostereoLights lights = {.n = N, .lights = set->lights};
  char text[N * MAX_BANDS * 8];
  size_t size = 0;

  for (uint32_t i = 0; i < N; i++)
    for (uint32_t band = 0; band < columns; band++)
      size += (size_t) snprintf (text + size, sizeof (text) - size, "%.1f%c",
          intensity_of (i, band), band + 1 < columns ? ' ' : '\n');
  test_ok (imk_photostereo_lights_parse_intensities (
      text, size, "intensities", &lights, test_new_error ()));
}

TEST (test_each_lamp_may_have_an_intensity_of_each_band,
    "each lamp may have an intensity of each band")
{
  static const uint32_t counts[] = {2, 3, 8, MAX_BANDS};

  for (uint32_t one = 0; one < 2; one++)
    for (uint32_t k = 0; k < 4; k++) {
      uint32_t bands = counts[k];
      test_auto (Set) set;
      test_auto (Solved) solved;

      set_init (&set, IMK_TYPE_U16, bands, 1);
      read_intensities (&set, one ? 1 : bands);
      render (&set, 0);
      for (uint32_t i = 0; i < n_pictures (&set); i++)
        for (uint32_t y = 0; y < H; y++)
          for (uint32_t x = 0; x < W; x++)
            set_sample (&set.pictures[i], x, y, 0,
                photo_get (&set.pictures[i], x, y, 0) *
                    intensity_of (i / bands, one ? 0 : i % bands));
      solved = run_cpu (&set);
      check_model (&set, &solved, 0.02, 1e-4, "intensities");
    }
}

/* --- order, and what is missing ------------------------------------------- */

TEST (test_order_strips_and_threads_change_no_bit,
    "order, strips and threads change no bit")
{
  static const uint32_t steps[] = {5, 7, 179}; /* of 180 pictures */
  test_auto (Set) set = {0};
  test_auto (Solved) expected;

  test_check (N * 5 == 180, "other steps");
  set_init (&set, IMK_TYPE_U8, 5, 400);
  render (&set, 9);
  expected = run_cpu (&set);
  for (uint32_t k = 1; k < 3; k++) {
    test_auto (Solved) found;

    set.c.strip_rows = k;
    set.c.n_threads = k + 1;
    found = run (&set, IMK_BACKEND_CPU, IMK_TYPE_F32, steps[k], 0, 100 * k);
    solved_same (&expected, &found, "another order");
  }
}

static void
check_missing (ImkBackend backend, uint32_t strip_rows)
{
  Set set, fewer;
  test_auto (Solved) found, expected;
  uint64_t n_clipped = 0;

  set_init (&set, IMK_TYPE_U8, 4, 1);
  set.c.strip_rows = strip_rows;
  set.c.saturation = 200;
  render (&set, 9);
  fewer = set;
  fewer.c.lights = fewer.lights;
  fewer.c.n_lights = N - 2;
  /* one and a half lights: of the one but last, two bands are there */
  found = run (&set, backend, IMK_TYPE_F32, 1, 6, 0);
  expected = run (&fewer, backend, IMK_TYPE_F32, 1, 0, 0);
  solved_same (&expected, &found, "half a light");
  test_check (
      found.summary.n_lights == N - 2, "%u lights", found.summary.n_lights);
  /* samples are those of all pictures */
  for (uint32_t i = 0; i < 4 * N - 6; i++)
    for (uint32_t y = 0; y < H; y++)
      for (uint32_t x = 0; x < W; x++)
        n_clipped += photo_get (&set.pictures[i], x, y, 0) >= 200;
  test_check (found.kept == (strip_rows > 0), "the strips are not there");
  test_check (found.summary.n_samples == (uint64_t) W * H * (4 * N - 6),
      "%llu samples", (unsigned long long) found.summary.n_samples);
  test_check (n_clipped > 0 && found.summary.n_clipped == n_clipped,
      "%llu samples are clipped, expected %llu",
      (unsigned long long) found.summary.n_clipped,
      (unsigned long long) n_clipped);
  set_clear (&set);
}

TEST (
    test_a_light_counts_with_all_its_bands, "a light counts with all its bands")
{
  check_missing (IMK_BACKEND_CPU, 0);
}

TEST (test_encodings_have_bands_below_each_other,
    "encodings have bands below each other")
{
  static const ImkType types[] = {IMK_TYPE_U8, IMK_TYPE_U16};

  for (uint32_t bands = 2; bands <= 5; bands++) {
    test_auto (Set) set;
    test_auto (Solved) f32;

    set_init (&set, IMK_TYPE_U16, bands, 1);
    render (&set, 0);
    f32 = run_cpu (&set);
    for (uint32_t k = 0; k < 2; k++) {
      test_auto (Solved) found = run (&set, IMK_BACKEND_CPU, types[k], 1, 0, 0);

      for (uint32_t i = ALBEDO; i <= AMBIENT; i++)
        for (uint32_t y = 0; y < H; y++)
          for (uint32_t x = 0; x < W; x++)
            for (uint32_t band = 0; band < bands; band++) {
              double sample =
                  bands == 3 ? photo_get (&found.image[i], x, y, band)
                             : photo_get (&found.image[i], x, y + band * H, 0);
              double v =
                  photo_get (&f32.image[i], x, y, band) * maximum_of (types[k]);

              test_check (fabs (sample - v) <= 0.51,
                  "%u bands, output %u: %g of band %u at (%u, %u), expected %g",
                  bands, i, sample, band, x, y, v);
            }
    }
  }
}

/* --- what is refused ------------------------------------------------------ */

TEST (test_bad_bands_are_refused, "bad bands are refused")
{
  test_auto (TestImage) dark = test_image_new (IMK_TYPE_U8, W, 3 * H, 1, 0);
  Set set;
  ImkPhotostereoConfig c;

  set_init (&set, IMK_TYPE_U8, 4, 1);
  c = set.c;
  c.bands = 0;
  photo_refuse (&c, IMK_ERROR_CONFIG, "bands is 0; it can be 1 to 16");
  c.bands = 17;
  photo_refuse (&c, IMK_ERROR_CONFIG, "bands is 17; it can be 1 to 16");
  c = set.c;
  c.channels = 3;
  photo_refuse (&c, IMK_ERROR_CONFIG, "these have colours");
  c = set.c;
  c.pattern = IMK_PHOTOSTEREO_PATTERN_RGGB;
  photo_refuse (&c, IMK_ERROR_CONFIG, "these have a Bayer pattern");
  c = set.c;
  read_intensities (&set, 5);
  photo_refuse (&c, IMK_ERROR_CONFIG, "5 intensities");
  set_init (&set, IMK_TYPE_U8, 4, 1);
  c = set.c;
  c.dark = &dark.image;
  photo_refuse (&c, IMK_ERROR_IMAGE, "dark");
  c = set.c;
  c.white = &dark.image;
  photo_refuse (&c, IMK_ERROR_IMAGE, "white");
}

TEST (test_bad_pictures_are_refused, "bad pictures are refused")
{
  test_autoptr (ImkPhotostereo) s = NULL;
  test_auto (Set) set;

  set_init (&set, IMK_TYPE_U8, 4, 1);
  render (&set, 0);
  test_ok (
      imk_photostereo_new (IMK_BACKEND_CPU, &set.c, &s, test_new_error ()));
  test_error (imk_photostereo_add_band (
                  s, &set.pictures[0].image, 0, 4, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "band 4, counted from 0: bands is 4");
  test_error (imk_photostereo_add_band (
                  s, &set.pictures[0].image, N, 0, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "36 lights");
  for (uint32_t band = 0; band < 4; band++) {
    test_ok (imk_photostereo_add_band (
        s, &set.pictures[band].image, 3, band, NULL, test_new_error ()));
    test_error (imk_photostereo_add_band (s, &set.pictures[band].image, 3, band,
                    NULL, test_new_error ()),
        IMK_ERROR_IMAGE, "second picture of light 3 in band");
    test_check (imk_photostereo_n_complete (s) == (band == 3),
        "%u lights with %u bands", imk_photostereo_n_complete (s), band + 1);
  }
  imk_photostereo_reset (s);
  test_check (imk_photostereo_n_complete (s) == 0, "lights after a reset");
  test_ok (imk_photostereo_add (
      s, &set.pictures[0].image, 3, NULL, test_new_error ()));
}

/* --- the device ----------------------------------------------------------- */

/* Fails unless 99.9 % of the pixels agree. */
static void
check_parity (const Set *set, const char *where)
{
  test_auto (Solved) cpu = run (set, IMK_BACKEND_CPU, IMK_TYPE_F32, 1, 0, 0);
  test_auto (Solved) cuda = run (set, IMK_BACKEND_CUDA, IMK_TYPE_F32, 1, 0, 0);
  uint32_t n_off = 0;

  for (uint32_t y = 0; y < H; y++)
    for (uint32_t x = 0; x < W; x++) {
      double n[3];
      bool off;

      for (uint32_t k = 0; k < 3; k++)
        n[k] = photo_get (&cpu.image[NORMAL], x, y, k);
      off = !(error_at (&cuda, x, y, n) < 0.01);
      for (uint32_t band = 0; band < set->c.bands; band++) {
        double a = photo_get (&cpu.image[AMBIENT], x, y, band);
        double b = photo_get (&cuda.image[AMBIENT], x, y, band);

        test_check (fabs (a - b) < 1e-5,
            "%s: ambient %.7f of band %u at (%u, %u), expected %.7f", where, b,
            band, x, y, a);
        off =
            off || !(fabs (photo_get (&cpu.image[ALBEDO], x, y, band) -
                           photo_get (&cuda.image[ALBEDO], x, y, band)) < 1e-3);
      }
      n_off += off;
    }
  test_check (n_off * 1000 <= W * H, "%s: %u of %u pixels are apart", where,
      n_off, W * H);
  test_check (cpu.summary.n_samples == cuda.summary.n_samples &&
                  cpu.summary.n_clipped == cuda.summary.n_clipped &&
                  cpu.summary.largest == cuda.summary.largest,
      "%s: %llu and %llu samples are clipped", where,
      (unsigned long long) cpu.summary.n_clipped,
      (unsigned long long) cuda.summary.n_clipped);
}

TEST (test_cuda_agrees, "CUDA agrees")
{
  static const uint32_t counts[] = {2, 3, 8, MAX_BANDS};

  test_need_cuda ();
  for (uint32_t k = 0; k < 4; k++)
    for (uint32_t robust = 0; robust < 3; robust++) {
      test_auto (TestImage) dark =
          test_image_new (IMK_TYPE_U8, W, counts[k] * H, 1, 0);
      char where[40];
      test_auto (Set) set;

      test_image_fill (&dark, FILL_NOISE, 9, 1);
      set_init (
          &set, k % 2 ? IMK_TYPE_U16 : IMK_TYPE_U8, counts[k], k < 2 ? 1 : 400);
      set.c.robust = robust;
      set.c.readmit = k != 1;
      set.c.dark = k == 2 ? &dark.image : NULL;
      set.c.saturation = k == 2 ? 180 : 0;
      if (k > 0)
        read_intensities (&set, counts[k]);
      render (&set, k % 2 ? 2000 : 9);
      snprintf (
          where, sizeof (where), "%u bands, robust %u", counts[k], robust);
      check_parity (&set, where);
    }
}

TEST (test_order_and_strips_change_no_bit_on_the_device,
    "order and strips change no bit on the device")
{
  static const uint32_t strips[] = {0, 1, 2, 0, 8};
  static const uint32_t steps[] = {1, 1, 7, 179, 77};
  static const uint32_t looks[] = {0, 100, 33, 150, 0};

  test_need_cuda ();
  for (uint32_t kind = 0; kind < 2; kind++) {
    test_auto (Set) set;
    test_auto (Solved) expected;

    set_init (&set, kind ? IMK_TYPE_U16 : IMK_TYPE_U8, 5, 400);
    set.c.readmit = kind;
    render (&set, kind ? 2000 : 9);
    expected = run (&set, IMK_BACKEND_CUDA, IMK_TYPE_F32, 1, 0, 0);
    for (uint32_t k = 0; k < 5; k++) {
      test_auto (Solved) found;

      set.c.strip_rows = strips[k];
      found = run (&set, IMK_BACKEND_CUDA, IMK_TYPE_F32, steps[k], 0, looks[k]);
      solved_same (&expected, &found, "another order or strip");
      test_check (found.summary.n_clipped == expected.summary.n_clipped &&
                      found.summary.largest == expected.summary.largest,
          "%llu samples are clipped, expected %llu",
          (unsigned long long) found.summary.n_clipped,
          (unsigned long long) expected.summary.n_clipped);
    }
  }
}

/* In place on the first, from memory of their own on the others. */
TEST (test_devices_share_the_rows_of_all_bands,
    "devices share the rows of all bands")
{
  static const ImkType types[] = {IMK_TYPE_F32, IMK_TYPE_U8, IMK_TYPE_U16};

  test_need_cuda ();
  for (uint32_t k = 0; k < 12; k++) {
    ImkType type = types[k % 3];
    test_auto (Solved) expected, found;
    test_auto (Set) set;

    set_init (&set, IMK_TYPE_U8, k % 2 ? 5 : 3, 400);
    render (&set, 9);
    expected = run (&set, IMK_BACKEND_CUDA, type, 1, 0, 0);
    set.c.n_devices = 3;
    set.c.devices[0] = set.c.devices[1] = set.c.devices[2] = 0;
    set.c.strip_rows = k < 6 ? 0 : 1;
    found = run (&set, IMK_BACKEND_CUDA, type, 7, 0, 40);
    solved_same (&expected, &found, "four devices");
    test_check (found.summary.n_clipped == expected.summary.n_clipped &&
                    found.summary.n_samples == expected.summary.n_samples &&
                    found.summary.largest == expected.summary.largest,
        "%llu of %llu samples are clipped, expected %llu of %llu",
        (unsigned long long) found.summary.n_clipped,
        (unsigned long long) found.summary.n_samples,
        (unsigned long long) expected.summary.n_clipped,
        (unsigned long long) expected.summary.n_samples);
  }
}

TEST (test_a_light_counts_with_all_its_bands_on_the_device,
    "a light counts with all its bands on the device")
{
  test_need_cuda ();
  check_missing (IMK_BACKEND_CUDA, 0);
  check_missing (IMK_BACKEND_CUDA, 4);
}
