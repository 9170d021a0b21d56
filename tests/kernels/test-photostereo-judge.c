/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures that contradict the others of their set, on a sphere with a pattern
 * of albedo. */
#include "photo-common.h"
#include "photostereo/photostereo-reference.h"

#include <math.h>

enum { SIDE = 90, N_LIGHTS = 16, WRONG = 5 };

typedef enum { RIGHT, TURNED, HALF, NOISE, DIM, GLARE } Fault;

typedef struct Variant {
  const char *name;
  ImkType type;
  uint32_t channels, bands;
  ImkPhotostereoPattern pattern;
  ImkPhotostereoGrey grey;
  double gamma;
  bool positions;
} Variant;

static const Variant variants[] = {
    {"grey", IMK_TYPE_U8, 1, 1, 0, 0, 1, false},
    {"colours of gamma 2.2", IMK_TYPE_U16, 3, 1, 0, 0, 2.2, false},
    {"near lights", IMK_TYPE_U16, 1, 1, 0, 0, 1, true},
    {"mosaic", IMK_TYPE_U16, 1, 1, IMK_PHOTOSTEREO_PATTERN_RGGB,
        IMK_PHOTOSTEREO_GREY_MOSAIC, 1, false},
    {"luma of a mosaic", IMK_TYPE_U16, 1, 1, IMK_PHOTOSTEREO_PATTERN_RGGB,
        IMK_PHOTOSTEREO_GREY_LUMA, 1, false},
    {"bands", IMK_TYPE_U16, 1, 2, 0, 0, 1, false},
};

static ImkPhotostereoConfig
config_of (const Variant *v, ImkPhotostereoLight *lights)
{
  ImkPhotostereoConfig c;

  photo_fill_dome (lights, N_LIGHTS, v->positions ? 300 : 1, 0.4);
  imk_photostereo_config_init (&c);
  c.type = v->type;
  c.width = c.height = SIDE;
  c.channels = v->channels;
  c.bands = v->bands;
  c.pattern = v->pattern;
  c.grey = v->grey;
  c.gamma = v->gamma;
  c.positions = v->positions;
  c.lights = lights;
  c.n_lights = N_LIGHTS;
  c.n_threads = 1;
  return c;
}

/* Of a sphere that fills the picture; 0 beside it. */
static double
shade (const ImkPhotostereoConfig *c, uint32_t i, uint32_t x, uint32_t y)
{
  double u = (x - (SIDE - 1) / 2.0) / (SIDE / 2.0);
  double w = ((SIDE - 1) / 2.0 - y) / (SIDE / 2.0);
  double z2 = 1 - u * u - w * w, l[3];
  double albedo = 0.3 + 0.4 * ((x / 7 + y / 11) % 3) / 2.0;

  imk_photostereo_reference_light (c, i, x, y, 0, l);
  return z2 <= 0 ? 0
                 : albedo * fmax (u * l[0] + w * l[1] + sqrt (z2) * l[2], 0);
}

static void
add_picture (ImkPhotostereo *s, const ImkPhotostereoConfig *c, uint32_t i,
    Fault fault, uint64_t *seed)
{
  test_auto (TestImage) frame =
      test_image_new (c->type, SIDE, SIDE, c->channels, 0);
  double most = c->type == IMK_TYPE_U8 ? 255 : 65535;

  for (uint32_t y = 0; y < SIDE; y++)
    for (uint32_t x = 0; x < SIDE; x++) {
      uint32_t u = fault == TURNED ? SIDE - 1 - x : x;
      uint32_t v = fault == TURNED ? SIDE - 1 - y : y;
      double light = shade (c, i, u, v) * (fault == HALF ? 0.5 : 1);

      if (fault == NOISE)
        light += 0.02 * ((double) (test_random (seed) >> 11) * 0x1p-52 - 1);
      if (fault == DIM)
        light *= 0.1;
      if (fault == GLARE)
        light = 0.9;
      light = fmin (fmax (light, 0), 0.999);
      for (uint32_t k = 0; k < c->channels; k++)
        photo_set (&frame, x, y, k,
            (uint32_t) (most * pow (light, 1 / c->gamma) + 0.5));
    }
  for (uint32_t band = 0; band < c->bands; band++)
    test_ok (imk_photostereo_add_band (
        s, &frame.image, i, band, NULL, test_new_error ()));
}

/* @fault: of one picture, NOISE of all */
static void
judge (const Variant *v, Fault fault, double misfits[N_LIGHTS])
{
  ImkPhotostereoLight lights[N_LIGHTS];
  ImkPhotostereoConfig c = config_of (v, lights);
  test_autoptr (ImkPhotostereo) s = NULL;
  uint64_t seed = 3;

  test_ok (imk_photostereo_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  for (int set = 0; set < 2; set++) { /* of another set nothing is left */
    imk_photostereo_reset (s);
    for (uint32_t i = 0; i < N_LIGHTS; i++)
      add_picture (s, &c, i,
          set && (fault == NOISE || i == WRONG) ? fault : RIGHT, &seed);
  }
  test_ok (imk_photostereo_judge (s, misfits, test_new_error ()));
}

TEST (test_misfits, "a picture that is turned or dim contradicts the others")
{
  for (size_t k = 0; k < sizeof (variants) / sizeof (*variants); k++)
    for (Fault fault = RIGHT; fault <= NOISE; fault++) {
      const Variant *v = &variants[k];
      double misfits[N_LIGHTS];

      judge (v, fault, misfits);
      for (uint32_t i = 0; i < N_LIGHTS; i++) {
        bool is_wrong = i == WRONG && (fault == TURNED || fault == HALF);

        test_check (is_wrong ? misfits[i] > 0.15 : misfits[i] < 0.05,
            "%s, fault %d: picture %u has a misfit of %g", v->name, (int) fault,
            i, misfits[i]);
      }
    }
}

/* The first solution follows the glare, so that lights from the other side seem
 * to come from behind; their pictures are bright and must count. */
TEST (test_glare, "one bright picture contradicts a few dim ones")
{
  enum { N_PICTURES = 8 };
  ImkPhotostereoLight lights[N_LIGHTS];
  ImkPhotostereoConfig c = config_of (&variants[0], lights);
  test_autoptr (ImkPhotostereo) s = NULL;
  double misfits[N_LIGHTS];

  c.type = IMK_TYPE_U16;
  test_ok (imk_photostereo_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
  for (uint32_t i = 0; i < N_PICTURES; i++)
    add_picture (s, &c, i, i == WRONG ? GLARE : DIM, NULL);
  test_ok (imk_photostereo_judge (s, misfits, test_new_error ()));
  for (uint32_t i = 0; i < N_PICTURES; i++)
    test_check (i == WRONG ? misfits[i] > 0.15 : misfits[i] < 0.05,
        "picture %u has a misfit of %g", i, misfits[i]);
}

TEST (test_no_judgement, "what is not known is NaN")
{
  const Variant *v = &variants[0];
  ImkPhotostereoLight lights[N_LIGHTS];
  ImkPhotostereoConfig c = config_of (v, lights);
  double misfits[N_LIGHTS];
  uint64_t seed = 3;

  for (int constant = 0; constant < 2; constant++) {
    test_autoptr (ImkPhotostereo) s = NULL;

    c.ambient_model = constant ? IMK_PHOTOSTEREO_AMBIENT_CONSTANT
                               : IMK_PHOTOSTEREO_AMBIENT_MEAN;
    test_ok (imk_photostereo_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()));
    for (uint32_t i = 0; i < 8; i++)
      add_picture (s, &c, i, RIGHT, &seed);
    test_ok (imk_photostereo_judge (s, misfits, test_new_error ()));
    for (uint32_t i = 0; i < N_LIGHTS; i++)
      test_check (isnan (misfits[i]) == (constant || i >= 8),
          "picture %u has a misfit of %g", i, misfits[i]);
  }
}
