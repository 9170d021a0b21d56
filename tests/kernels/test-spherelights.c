/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* spherelights on rendered mirror spheres, whose lights are known. */
#include "kernel-test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imk/spherelights.h"

TEST_DEFINE_AUTO_POINTER (ImkSpherelights, imk_spherelights_free)

enum { WIDTH = 260, HEIGHT = 251 };

static const ImkSphere ball = {128.3, 122.6, 101.7};

static void
direction_of (double azimuth, double elevation, double l[3])
{
  double a = azimuth * M_PI / 180, e = elevation * M_PI / 180;

  l[0] = cos (e) * cos (a);
  l[1] = cos (e) * sin (a);
  l[2] = sin (e);
}

/* Degrees between two directions. */
static double
angle (const double a[3], const double b[3])
{
  double c[] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
      a[0] * b[1] - a[1] * b[0]};

  return atan2 (sqrt (c[0] * c[0] + c[1] * c[1] + c[2] * c[2]),
             a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) *
         180 / M_PI;
}

/* What the sphere mirrors at a point: a lamp of @size degrees, and a dim room
 * around; black outside. Each pixel has 4 x 4 points. */
static double
mirrored (double px, double py, const double lamp[3], double size)
{
  double nx = (px - ball.x) / ball.radius, ny = (ball.y - py) / ball.radius;
  double nz2 = 1 - nx * nx - ny * ny, nz = sqrt (nz2);
  const double r[] = {2 * nz * nx, 2 * nz * ny, 2 * nz2 - 1};

  if (!(nz2 > 0))
    return 0;
  return angle (r, lamp) < size ? 1 : 0.2 + 0.1 * r[1];
}

static TestImage
render (const double lamp[3], double size, ImkType type, uint32_t channels)
{
  TestImage t = test_image_new (type, WIDTH, HEIGHT, channels, 4);
  double full = type == IMK_TYPE_U8 ? 255 : 65535;

  for (uint32_t y = 0; y < HEIGHT; y++)
    for (uint32_t x = 0; x < WIDTH; x++) {
      uint8_t *row = (uint8_t *) t.image.data + y * t.image.stride;
      double sum = 0;

      for (int i = 0; i < 16; i++)
        sum +=
            mirrored (x + (i % 4 - 1.5) / 4, y + (i / 4 - 1.5) / 4, lamp, size);
      for (uint32_t c = 0; c < channels; c++)
        if (type == IMK_TYPE_U8)
          row[x * channels + c] = (uint8_t) lround (full * sum / 16);
        else
          ((uint16_t *) row)[x * channels + c] =
              (uint16_t) lround (full * sum / 16);
    }
  return t;
}

static ImkSpherelightsConfig
config_of (const TestImage *t, const ImkSphere *sphere)
{
  ImkSpherelightsConfig c;

  imk_spherelights_config_init (&c);
  c.width = t->image.width;
  c.height = t->image.height;
  c.type = t->image.type;
  c.channels = t->image.channels;
  for (uint32_t i = 0; i < 3 && c.channels > 1; i++)
    c.colours[i] = i;
  if (sphere)
    c.sphere = *sphere;
  return c;
}

static const struct {
  double azimuth, elevation;
} lamps[] = {
    {0, 90}, {10, 60}, {100, 45}, {190, 30}, {280, 15}, {330, 0}, {45, -20}};

enum { N_LAMPS = sizeof (lamps) / sizeof (*lamps) };

/* Returns: the largest angle from the truth */
static double
run_set (const ImkSphere *sphere, double size, ImkType type, uint32_t channels,
    ImkSphere *found)
{
  test_autoptr (ImkSpherelights) s = NULL;
  ImkSpherelight lights[N_LAMPS];
  double worst = 0;

  for (int i = 0; i < N_LAMPS; i++) {
    double l[3];
    test_auto (TestImage) t;

    direction_of (lamps[i].azimuth, lamps[i].elevation, l);
    t = render (l, size, type, channels);
    if (!s) {
      ImkSpherelightsConfig c = config_of (&t, sphere);

      test_ok (imk_spherelights_new (&c, &s, test_new_error ()));
    }
    test_ok (imk_spherelights_add (s, &t.image, test_new_error ()));
  }
  test_check (imk_spherelights_n_added (s) == N_LAMPS, "%u pictures",
      imk_spherelights_n_added (s));
  test_ok (imk_spherelights_finish (s, lights, found, test_new_error ()));
  for (int i = 0; i < N_LAMPS; i++) {
    double l[3];

    direction_of (lamps[i].azimuth, lamps[i].elevation, l);
    worst = fmax (worst, angle (l, lights[i].direction));
  }
  return worst;
}

TEST (known_sphere_gives_the_lights, "a known sphere gives the lights")
{
  ImkSphere found;

  for (int k = 0; k < 4; k++) {
    ImkType type = k % 2 ? IMK_TYPE_U16 : IMK_TYPE_U8;
    double worst = run_set (&ball, 3, type, k < 2 ? 1 : 4, &found);

    /* a pixel is 2 / 101.7 of a radian, 1.1 degrees */
    test_check (
        worst < 0.25, "%s: off by %g degrees", imk_type_name (type), worst);
  }
}

/* The equal area map does not care, a middle of the highlight would. */
TEST (large_lamps_are_as_exact, "large lamps are as exact")
{
  ImkSphere found;
  double worst = run_set (&ball, 12, IMK_TYPE_U8, 1, &found);

  test_check (worst < 0.2, "off by %g degrees", worst);
}

TEST (sphere_is_found_against_black, "the sphere is found against black")
{
  ImkSphere found;
  double worst = run_set (NULL, 3, IMK_TYPE_U8, 3, &found);

  test_check (fabs (found.x - ball.x) < 0.2 && fabs (found.y - ball.y) < 0.2 &&
                  fabs (found.radius - ball.radius) < 0.4,
      "the sphere is at (%g, %g), radius %g", found.x, found.y, found.radius);
  test_check (worst < 1, "off by %g degrees", worst);
}

/* The normal where the lamp is seen is half as far from the camera. */
TEST (highlight_is_half_way, "the highlight is half way")
{
  double l[3];
  test_autoptr (ImkSpherelights) s = NULL;
  ImkSpherelight light;
  ImkSphere found;
  ImkSpherelightsConfig c;
  test_auto (TestImage) t;

  direction_of (0, 30, l); /* 60 degrees from the camera */
  t = render (l, 2, IMK_TYPE_U8, 1);
  c = config_of (&t, &ball);
  test_ok (imk_spherelights_new (&c, &s, test_new_error ()));
  test_ok (imk_spherelights_add (s, &t.image, test_new_error ()));
  test_ok (imk_spherelights_finish (s, &light, &found, test_new_error ()));
  test_check (fabs (light.x - (ball.x + ball.radius / 2)) < 0.5 &&
                  fabs (light.y - ball.y) < 0.5 && light.n_pixels > 4,
      "the highlight is at (%g, %g), %u pixels", light.x, light.y,
      light.n_pixels);
}

/* A disc of @radius in a mask of 41 x 37, with a bite when @bitten. */
static TestImage
mask_of (double x0, double y0, double radius, bool bitten)
{
  TestImage t = test_image_new (IMK_TYPE_U8, 41, 37, 1, 3);

  for (uint32_t y = 0; y < 37; y++)
    for (uint32_t x = 0; x < 41; x++)
      ((uint8_t *) t.image.data)[y * t.image.stride + x] =
          hypot (x - x0, y - y0) < radius && !(bitten && x < x0) ? 255 : 0;
  return t;
}

TEST (mask_gives_its_circle, "a mask gives its circle")
{
  test_auto (TestImage) t = mask_of (19.4, 17.2, 14.5, false);
  ImkSphere s;

  test_ok (imk_spherelights_fit (&t.image, &s, test_new_error ()));
  test_check (fabs (s.x - 19.4) < 0.15 && fabs (s.y - 17.2) < 0.15 &&
                  fabs (s.radius - 14.5) < 0.15,
      "(%g, %g), radius %g", s.x, s.y, s.radius);
}

TEST (what_is_no_circle_is_refused, "what is no circle is refused")
{
  test_auto (TestImage) half = mask_of (19, 17, 14, true),
                        none = mask_of (0, 0, 0, false);
  ImkSphere s;

  test_error (imk_spherelights_fit (&half.image, &s, test_new_error ()),
      IMK_ERROR_IMAGE, "no circle");
  test_error (imk_spherelights_fit (&none.image, &s, test_new_error ()),
      IMK_ERROR_IMAGE, "empty");
}

TEST (bad_pictures_and_configs_are_refused,
    "bad pictures and configs are refused")
{
  test_auto (TestImage) black = test_image_new (IMK_TYPE_U8, 20, 20, 1, 0);
  test_auto (TestImage) wrong = test_image_new (IMK_TYPE_U16, 20, 20, 1, 0);
  const ImkSphere corner = {2, 2, 3};
  ImkSpherelightsConfig c = config_of (&black, &corner);
  ImkSpherelights *s = NULL;
  ImkSpherelight light;
  ImkSphere found;

  test_image_fill (&black, FILL_ZERO, 255, 0);
  test_ok (imk_spherelights_new (&c, &s, test_new_error ()));
  test_error (imk_spherelights_finish (s, &light, &found, test_new_error ()),
      IMK_ERROR_CONFIG, "no picture");
  test_error (imk_spherelights_add (s, &black.image, test_new_error ()),
      IMK_ERROR_IMAGE,
      "Picture 0, counted from 0, shows no highlight: it is black");
  /* what is outside of the sphere does not count */
  ((uint8_t *) black.image.data)[399] = 255;
  test_error (imk_spherelights_add (s, &black.image, test_new_error ()),
      IMK_ERROR_IMAGE,
      "Picture 0, counted from 0, shows no highlight: it is black");
  test_error (imk_spherelights_add (s, &wrong.image, test_new_error ()),
      IMK_ERROR_IMAGE, "input");
  imk_spherelights_free (s);
  s = NULL;
  c.sphere.radius = 0;
  test_ok (imk_spherelights_new (&c, &s, test_new_error ()));
  for (int i = 0; i < 5; i++)
    ((uint8_t *) black.image.data)[20 * i + 7] = 255;
  test_ok (imk_spherelights_add (s, &black.image, test_new_error ()));
  test_error (imk_spherelights_finish (s, &light, &found, test_new_error ()),
      IMK_ERROR_IMAGE, "could not be found");
  imk_spherelights_free (s);
  s = NULL;
  c.threshold = 1;
  test_error (imk_spherelights_new (&c, &s, test_new_error ()),
      IMK_ERROR_CONFIG, "threshold is 1");
  c.threshold = 0.5;
  c.gamma = 0;
  test_error (imk_spherelights_new (&c, &s, test_new_error ()),
      IMK_ERROR_CONFIG, "gamma is 0; it can be 0.1 to 10.");
  c.gamma = 1;
  c.sphere.radius = NAN;
  test_error (imk_spherelights_new (&c, &s, test_new_error ()),
      IMK_ERROR_CONFIG, "radius nan");
}

/* A set of pictures of which the last has no lamp (a room, or noise), or two.
 * Returns: of imk_spherelights_finish () */
static ImkStatus
finish_with (const ImkSphere *sphere, int kind, ImkError *error)
{
  test_autoptr (ImkSpherelights) s = NULL;
  ImkSpherelight lights[N_LAMPS];
  ImkSphere found;
  ImkStatus status;

  for (int i = 0; i < N_LAMPS; i++) {
    bool last = i == N_LAMPS - 1;
    double l[3], other[3];
    test_auto (TestImage) t, more;

    direction_of (lamps[i].azimuth, lamps[i].elevation, l);
    direction_of (200, kind == 3 ? 50 : -70, other);
    t = render (l, last && kind < 2 ? -1 : 3, IMK_TYPE_U8, 1);
    more = render (other, kind == 3 ? 2.5 : -1, IMK_TYPE_U8, 1);
    if (!s) {
      ImkSpherelightsConfig c = config_of (&t, sphere);

      test_ok_of (imk_spherelights_new (&c, &s, error), error);
    }
    for (uint32_t at = 0; last && at < HEIGHT * WIDTH; at++) {
      size_t place = at / WIDTH * t.image.stride + at % WIDTH;
      uint8_t *a = (uint8_t *) t.image.data + place;
      const uint8_t *b = (const uint8_t *) more.image.data + place;

      if (kind == 1) /* noise, and one hot pixel */
        *a = at == 130 * WIDTH + 120 ? 50 : *a ? 8 + at % 5 : 0;
      else if (kind >= 3 && *b > *a)
        *a = *b;
    }
    test_ok_of (imk_spherelights_add (s, &t.image, error), error);
  }
  status = imk_spherelights_finish (s, lights, &found, error);
  return status;
}

TEST (missing_and_doubled_highlights_are_named,
    "missing and doubled highlights are named")
{
  static const char *const words[] = {
      "Picture 6, counted from 0, shows no highlight",
      "Picture 6, counted from 0, shows no highlight: its brightest point is 50",
      NULL, "Picture 6, counted from 0, shows two highlights"};

  for (int k = 0; k < 8; k++) {
    ImkError error = {.message = ""};
    ImkStatus status = finish_with (k / 4 ? &ball : NULL, k % 4, &error);

    if (words[k % 4])
      test_error_of (status, &error, IMK_ERROR_IMAGE, words[k % 4]);
    else
      test_ok_of (status, &error);
  }
}

/* As a white table around the sphere, in a photograph with the gamma of JPEG:
 * half of the sphere has 0.85 of the lamp's samples, and 0.7 of its light. */
TEST (a_bright_table_is_no_highlight, "a bright table is no highlight")
{
  for (int k = 0; k < 3; k++) {
    test_autoptr (ImkSpherelights) s = NULL;
    double l[3], table = k == 2 ? 0.95 : 0.7;
    test_auto (TestImage) t;
    ImkSpherelightsConfig c;
    ImkSpherelight light;
    ImkSphere found;
    ImkStatus status;
    ImkError error;

    direction_of (40, 50, l);
    t = render (l, 3, IMK_TYPE_U8, 1);
    for (uint32_t y = 0; y < HEIGHT; y++)
      for (uint32_t x = 0; x < WIDTH; x++) {
        uint8_t *at = (uint8_t *) t.image.data + y * t.image.stride + x;
        double r = hypot (x - ball.x, y - ball.y) / ball.radius;
        double v = fmax (*at / 255.0, r > 0.72 && r < 1 ? table : 0);

        *at = (uint8_t) lround (255 * pow (v, 1 / 2.2));
      }
    c = config_of (&t, &ball);
    c.gamma = k == 0 ? 1 : 2.2;
    test_ok (imk_spherelights_new (&c, &s, test_new_error ()));
    test_ok (imk_spherelights_add (s, &t.image, test_new_error ()));
    status = imk_spherelights_finish (s, &light, &found, &error);
    if (k != 1) {
      test_error_of (
          status, &error, IMK_ERROR_IMAGE, "the sphere mirrors something");
      continue;
    }
    test_ok_of (status, &error);
    test_check (angle (l, light.direction) < 0.3, "off by %g",
        angle (l, light.direction));
  }
}

/* A window beside which the lamps are small: the largest highlight is its, in
 * the pictures where they do not touch. */
TEST (a_highlight_that_stays_is_named, "a highlight that stays is named")
{
  for (int k = 0; k < 2; k++) {
    test_autoptr (ImkSpherelights) s = NULL;
    ImkSpherelight lights[N_LAMPS];
    ImkSphere found;

    for (int i = 0; i < N_LAMPS; i++) {
      double l[3], window[3];
      test_auto (TestImage) t, room;

      direction_of (lamps[i].azimuth, lamps[i].elevation, l);
      direction_of (155, 38, window);
      t = render (l, 4, IMK_TYPE_U8, 1);
      room = render (window, 16, IMK_TYPE_U8, 1);
      if (!s) {
        ImkSpherelightsConfig c = config_of (&t, k ? &ball : NULL);

        test_ok (imk_spherelights_new (&c, &s, test_new_error ()));
      }
      for (uint32_t at = 0; at < HEIGHT * t.image.stride; at++) {
        uint8_t *a = (uint8_t *) t.image.data + at;
        uint8_t b = ((const uint8_t *) room.image.data)[at];

        if (at % t.image.stride < WIDTH && b > *a)
          *a = b;
      }
      test_ok (imk_spherelights_add (s, &t.image, test_new_error ()));
    }
    test_error (imk_spherelights_finish (s, lights, &found, test_new_error ()),
        IMK_ERROR_IMAGE, "The highlight does not move: in pictures 0, 1 and 2");
  }
}
