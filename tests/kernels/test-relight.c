/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* relight against its formula in float64, worked pixels, and CPU against
 * CUDA. */
#include "kernel-test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imk/relight.h"
#include "relight/relight-reference.h"

TEST_DEFINE_AUTO_POINTER (ImkRelight, imk_relight_free)

enum { WIDTH = 41, HEIGHT = 19 };

/* Noise, and in a corner what is no normal. */
static TestImage
noise (ImkType type, uint32_t channels, uint64_t seed)
{
  TestImage t = test_image_new (type, WIDTH, HEIGHT, channels, 12);

  if (type != IMK_TYPE_F32)
    test_image_fill (&t, FILL_NOISE, type == IMK_TYPE_U8 ? 255 : 65535, seed);
  for (uint32_t y = 0; y < HEIGHT; y++)
    for (uint32_t x = 0; x < WIDTH; x++) {
      uint8_t *row = (uint8_t *) t.image.data + y * t.image.stride;

      for (uint32_t c = 0; c < channels && type == IMK_TYPE_F32; c++)
        ((float *) row)[x * channels + c] =
            (float) (test_random (&seed) % 2001) / 1000 - 1;
      if (x < 2 && y < 2)
        memset (row + x * channels * imk_type_size (type), 0,
            channels * imk_type_size (type));
    }
  return t;
}

static ImkRelightSource
source_of (const TestImage *t, bool reversed)
{
  ImkRelightSource s = {.image = t->image};

  for (uint32_t i = 0; i < 3 && t->image.channels > 1; i++)
    s.colours[i] = reversed ? 2 - i : i;
  return s;
}

static TestImage
run_on (ImkBackend backend, const ImkRelightConfig *config,
    const ImkRelightSource *normals, const TestImage *n,
    const ImkRelightSource *albedo, const TestImage *a)
{
  TestImage out = test_image_new (IMK_TYPE_U8, WIDTH, HEIGHT, 3, 5);
  ImkRelightSource from = *normals, paint = *albedo;
  ImkImage to = out.image;
  ImkRelight *s = NULL;

  if (backend == IMK_BACKEND_CUDA) {
    from.image = test_to_device (n);
    to = test_to_device (&out);
    if (a)
      paint.image = test_to_device (a);
  }
  test_ok (imk_relight_new (backend, config, &s, test_new_error ()));
  test_ok (
      imk_relight_process (s, &from, &paint, &to, NULL, test_new_error ()));
  if (backend == IMK_BACKEND_CUDA) {
    test_from_device (&to, &out);
    test_device_free (&from.image);
    test_device_free (&to);
    if (a)
      test_device_free (&paint.image);
  }
  imk_relight_free (s);
  test_image_check_canaries (&out, "output");
  return out;
}

static const struct {
  ImkType type;
  uint32_t channels;
} kinds[] = {{IMK_TYPE_U8, 3}, {IMK_TYPE_U8, 4}, {IMK_TYPE_U16, 4},
    {IMK_TYPE_F32, 3}, {IMK_TYPE_U8, 1}, {IMK_TYPE_U16, 1}, {IMK_TYPE_F32, 1}};

enum { N_KINDS = sizeof (kinds) / sizeof (*kinds), N_NORMAL_KINDS = 4 };

static ImkRelightConfig
config_of (int i)
{
  ImkRelightConfig c;

  imk_relight_config_init (&c);
  c.width = WIDTH;
  c.height = HEIGHT;
  c.azimuth = 37 * i;
  c.elevation = 20 + 10 * (i % 8);
  c.ambient = i % 2 ? 0.15 : 0;
  c.specular = i % 3 ? 0.4 : 0;
  c.shininess = 5 + i;
  c.gamma = i % 2 ? 2.2 : 1;
  c.y_down = i % 4 == 3;
  c.n_threads = 1;
  return c;
}

/* Every kind of normals with every kind of albedo, or none (the last). */
static void
for_all (void (*check) (const ImkRelightConfig *config,
    const ImkRelightSource *normals, const TestImage *n,
    const ImkRelightSource *albedo, const TestImage *a))
{
  for (int i = 0; i < N_NORMAL_KINDS; i++)
    for (int k = 0; k <= N_KINDS; k++) {
      test_auto (TestImage) n =
          noise (kinds[i].type, kinds[i].channels, (uint64_t) i);
      test_auto (TestImage) a = {0};
      ImkRelightSource normals = source_of (&n, k % 2), albedo = {0};
      ImkRelightConfig config = config_of (i * N_KINDS + k);

      if (k < N_KINDS) {
        a = noise (kinds[k].type, kinds[k].channels, 100 + (uint64_t) k);
        albedo = source_of (&a, i % 2);
      }
      check (&config, &normals, &n, &albedo, k < N_KINDS ? &a : NULL);
    }
}

static void
check_formula (const ImkRelightConfig *config, const ImkRelightSource *normals,
    const TestImage *n, const ImkRelightSource *albedo, const TestImage *a)
{
  test_auto (TestImage) out =
      run_on (IMK_BACKEND_CPU, config, normals, n, albedo, a);

  for (uint32_t y = 0; y < HEIGHT; y++)
    for (uint32_t x = 0; x < WIDTH; x++)
      for (uint32_t c = 0; c < 3; c++) {
        double e = imk_relight_reference (config, normals, albedo, x, y, c);
        uint8_t v =
            ((uint8_t *) out.image.data)[y * out.image.stride + 3 * x + c];

        test_check (fabs (v - e) < 0.51,
            "%s, albedo %s: (%u, %u) channel %u is %u, not %g",
            imk_type_name (normals->image.type),
            a ? imk_type_name (a->image.type) : "none", x, y, c, v, e);
      }
}

TEST (every_pixel_is_the_formula, "every pixel is the formula")
{
  for_all (check_formula);
}

/* n = (3, 4, 12) / 13 under light from the camera, from the right, from
 * behind. */
TEST (worked_pixels, "worked pixels")
{
  static const struct {
    double azimuth, elevation, ambient, specular;
    uint8_t red, blue;
  } cases[] = {
      {0, 90, 0, 0, 118, 235},    /* 255 * 12 / 13 = 235.4 */
      {0, 0, 0, 0, 29, 59},       /* 255 * 3 / 13 = 58.8 */
      {90, 0, 0, 0, 39, 78},      /* 255 * 4 / 13 = 78.5 */
      {180, 0, 0.1, 1, 13, 26},   /* turned away: ambient alone */
      {0, -90, 0, 1, 0, 0},       /* from behind */
      {0, 90, 0, 0.25, 177, 255}, /* + 255 * 0.25 * 12 / 13 */
  };
  test_auto (TestImage) n = test_image_new (IMK_TYPE_F32, 1, 1, 3, 0);
  test_auto (TestImage) a = test_image_new (IMK_TYPE_F32, 1, 1, 3, 0);
  const float normal[] = {3, 4, 12}, paint[] = {0.5f, 1, 1};

  memcpy (n.image.data, normal, sizeof (normal));
  memcpy (a.image.data, paint, sizeof (paint));
  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++) {
    ImkRelightSource normals = source_of (&n, false),
                     albedo = source_of (&a, false);
    test_auto (TestImage) out = test_image_new (IMK_TYPE_U8, 1, 1, 3, 0);
    const uint8_t *v = out.image.data;
    ImkRelightConfig c;
    ImkRelight *s = NULL;

    imk_relight_config_init (&c);
    c.azimuth = cases[i].azimuth;
    c.elevation = cases[i].elevation;
    c.ambient = cases[i].ambient;
    c.specular = cases[i].specular;
    c.shininess = 1;
    test_ok (imk_relight_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
    test_ok (imk_relight_process (
        s, &normals, &albedo, &out.image, NULL, test_new_error ()));
    imk_relight_free (s);
    test_check (
        abs (v[0] - cases[i].red) <= 1 && abs (v[2] - cases[i].blue) <= 1,
        "case %zu is %u %u %u", i, v[0], v[1], v[2]);
  }
}

TEST (what_is_no_normal_is_black, "what is no normal is black")
{
  static const float bad[][3] = {{0, 0, 0}, {NAN, 0, 1}, {0, NAN, 1},
      {0, 0, INFINITY}, {3e38f, 3e38f, 0}, {1e-8f, 0, 0}};
  test_auto (TestImage) n = test_image_new (IMK_TYPE_F32, 6, 1, 3, 0);
  test_auto (TestImage) out = test_image_new (IMK_TYPE_U8, 6, 1, 3, 0);
  ImkRelightSource normals = source_of (&n, false), none = {0};
  ImkRelightConfig c;
  test_autoptr (ImkRelight) s = NULL;

  imk_relight_config_init (&c);
  c.width = 6;
  c.ambient = 1;
  memcpy (n.image.data, bad, sizeof (bad));
  test_ok (imk_relight_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  test_ok (imk_relight_process (
      s, &normals, &none, &out.image, NULL, test_new_error ()));
  for (int i = 0; i < 18; i++)
    test_check (((uint8_t *) out.image.data)[i] == 0, "byte %d is %u", i,
        ((uint8_t *) out.image.data)[i]);
}

/* Grazing light: what is painted with infinity, times nothing. */
TEST (what_is_no_albedo_is_black, "what is no albedo is black")
{
  static const float paints[] = {INFINITY, -INFINITY, NAN, -1, 0, 1e38f};
  test_auto (TestImage) n = test_image_new (IMK_TYPE_F32, 6, 1, 3, 0);
  test_auto (TestImage) a = test_image_new (IMK_TYPE_F32, 6, 1, 1, 0);
  test_auto (TestImage) out = test_image_new (IMK_TYPE_U8, 6, 1, 3, 0);
  ImkRelightSource normals = source_of (&n, false), albedo = source_of (&a, 0);
  ImkRelightConfig c;
  test_autoptr (ImkRelight) s = NULL;

  imk_relight_config_init (&c);
  c.width = 6;
  memcpy (a.image.data, paints, sizeof (paints));
  for (int i = 0; i < 6; i++)
    ((float *) n.image.data)[3 * i + 2] = 1;
  test_ok (imk_relight_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  for (int lit = 0; lit < 2; lit++) {
    c.ambient = lit;
    c.diffuse = 0;
    test_ok (imk_relight_update (s, &c, test_new_error ()));
    memset (out.image.data, 99, 18);
    test_ok (imk_relight_process (
        s, &normals, &albedo, &out.image, NULL, test_new_error ()));
    for (int i = 0; i < 18; i++) {
      int expected = lit && i / 3 == 5 ? 255 : 0;
      int found = ((uint8_t *) out.image.data)[i];

      test_check (found == expected, "an albedo of %g is %d with ambient=%d",
          paints[i / 3], found, lit);
    }
  }
}

TEST (bad_configs_and_images_are_refused_in_words,
    "bad configs and images are refused in words")
{
  test_auto (TestImage) u8 = noise (IMK_TYPE_U8, 3, 0),
                        grey = noise (IMK_TYPE_U8, 1, 0);
  test_auto (TestImage) small = test_image_new (IMK_TYPE_U8, 3, 3, 3, 0);
  test_auto (TestImage) out = test_image_new (IMK_TYPE_U8, WIDTH, HEIGHT, 3, 0);
  test_auto (TestImage) f64 =
      test_image_new (IMK_TYPE_F64, WIDTH, HEIGHT, 3, 0);
  const struct {
    const TestImage *normals, *albedo;
    const char *words;
  } cases[] = {{&grey, &u8, "normals has 1 channels"},
      {&f64, &u8, "normals is of type f64"}, {&small, &u8, "normals"},
      {&u8, &small, "albedo"}, {&u8, &f64, "albedo is of type f64"}};
  ImkRelightConfig c = config_of (0);
  test_autoptr (ImkRelight) s = NULL;

  c.gamma = NAN;
  test_error (imk_relight_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()),
      IMK_ERROR_CONFIG, "gamma is nan");
  c = config_of (0);
  c.specular = -1;
  test_error (imk_relight_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()),
      IMK_ERROR_CONFIG, "specular is -1");
  c = config_of (0);
  c.width = 0;
  test_error (imk_relight_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()),
      IMK_ERROR_CONFIG, "0 x 19");
  c = config_of (0);
  test_ok (imk_relight_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++) {
    ImkRelightSource n = source_of (cases[i].normals, false);
    ImkRelightSource a = source_of (cases[i].albedo, false);

    test_error (
        imk_relight_process (s, &n, &a, &out.image, NULL, test_new_error ()),
        IMK_ERROR_IMAGE, cases[i].words);
  }
}

static void
check_cuda (const ImkRelightConfig *config, const ImkRelightSource *normals,
    const TestImage *n, const ImkRelightSource *albedo, const TestImage *a)
{
  test_auto (TestImage) cpu =
      run_on (IMK_BACKEND_CPU, config, normals, n, albedo, a);
  test_auto (TestImage) cuda =
      run_on (IMK_BACKEND_CUDA, config, normals, n, albedo, a);

  for (uint32_t y = 0; y < HEIGHT; y++)
    for (uint32_t i = 0; i < 3 * WIDTH; i++) {
      size_t at = y * cpu.image.stride + i;
      int p = ((uint8_t *) cpu.image.data)[at];
      int q = ((uint8_t *) cuda.image.data)[at];

      test_check (abs (p - q) <= 1, "%s: at (%u, %u) cpu %d, cuda %d",
          imk_type_name (normals->image.type), i / 3, y, p, q);
    }
}

TEST (cuda_agrees_with_cpu, "CUDA agrees with the CPU")
{
  test_need_cuda ();
  for_all (check_cuda);
}
