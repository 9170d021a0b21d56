/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "photo-common.h"

#include <math.h>

#include "core/sample.h"

void
photo_fill_dome (
    ImkPhotostereoLight *lights, uint32_t n, double radius, double lowest)
{
  for (uint32_t i = 0; i < n; i++) {
    double z = 1 - (1 - lowest) * (i + 0.5) / n;
    double r = sqrt (1 - z * z), phi = i * 2.399963229728653;

    lights[i] = (ImkPhotostereoLight){
        .x = radius * r * cos (phi),
        .y = radius * r * sin (phi),
        .z = radius * z,
        .intensity = {1, 1, 1},
    };
  }
}

void
photo_set (
    TestImage *image, uint32_t x, uint32_t y, uint32_t channel, uint32_t value)
{
  imk_sample_put (&image->image, x, y, channel, value);
}

double
photo_get (const TestImage *image, uint32_t x, uint32_t y, uint32_t channel)
{
  return imk_sample_get (&image->image, x, y, channel);
}

double
photo_angle (const double a[3], const double b[3])
{
  double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2];
  double z = a[0] * b[1] - a[1] * b[0];

  return 57.295779513082323 * atan2 (sqrt (x * x + y * y + z * z),
                                  a[0] * b[0] + a[1] * b[1] + a[2] * b[2]);
}

void
photo_refuse (
    const ImkPhotostereoConfig *c, ImkStatus expected, const char *words)
{
  ImkPhotostereo *s = NULL;

  test_error (imk_photostereo_new (IMK_BACKEND_CPU, c, &s, test_new_error ()),
      expected, words);
  test_check (!s, "an object came out");
}

Solved
solved_new (const ImkPhotostereoConfig *c, ImkType type)
{
  uint32_t n = imk_photostereo_n_colours (c), w = c->width, h = c->height;
  bool below = type != IMK_TYPE_F32 && n != 3, u16 = type == IMK_TYPE_U16;
  uint32_t channels = below ? 1 : u16 ? 4 : n, height = below ? n * h : h;

  return (Solved){
      .normal = test_image_new (type, w, h, u16 ? 4 : 3, 12),
      .albedo = test_image_new (type, w, height, channels, 4),
      .ambient = test_image_new (type, w, height, channels, 0),
      .quality = test_image_new (u16 ? type : IMK_TYPE_F32, w, h, 4, 8),
      .confidence = test_image_new (type, w, h, 1, 4),
      .mask = test_image_new (type, w, h, 1, 0),
  };
}

void
solved_free (Solved *s)
{
  for (int i = 0; i < N_OUTPUTS; i++)
    test_image_free (&s->image[i]);
}

void
solved_fill (Solved *to, ImkPhotostereo *s, bool on_device)
{
  static const char *const names[] = {
      "normal", "albedo", "ambient", "quality", "confidence", "mask"};
  ImkImage images[N_OUTPUTS];
  ImkPhotostereoOutputs out;

  for (int i = 0; i < N_OUTPUTS; i++)
    images[i] = on_device ? test_to_device (&to->image[i]) : to->image[i].image;
  out = (ImkPhotostereoOutputs){images[NORMAL], images[ALBEDO], images[AMBIENT],
      images[QUALITY], images[CONFIDENCE], images[MASK]};
  test_ok (
      imk_photostereo_solve (s, &out, &to->summary, NULL, test_new_error ()));
  for (int i = 0; i < N_OUTPUTS; i++) {
    if (on_device) {
      test_from_device (&images[i], &to->image[i]);
      test_device_free (&images[i]);
    }
    test_image_check_canaries (&to->image[i], names[i]);
  }
}

void
solved_same (const Solved *a, const Solved *b, const char *where)
{
  for (int i = 0; i < N_OUTPUTS; i++)
    test_image_same (&a->image[i], &b->image[i], where);
}

void
solved_normal (const Solved *s, uint32_t x, uint32_t y, double n[3])
{
  for (uint32_t k = 0; k < 3; k++)
    n[k] = photo_get (&s->normal, x, y, k);
}
