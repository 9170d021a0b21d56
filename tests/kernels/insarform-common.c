/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insarform-common.h"

#include "insarform/insarform-reference.h"

Pair
pair_new (ImkType type, uint32_t width, uint32_t height)
{
  return (Pair){test_image_new (type, width, height, 1, 8),
      test_image_new (type, width, height, 1, 16),
      test_image_new (IMK_TYPE_F32, width, height, 1, 4)};
}

void
pair_free (Pair *pair)
{
  test_image_free (&pair->a);
  test_image_free (&pair->b);
  test_image_free (&pair->phase);
}

ImkInsarformConfig
insarform_config (const Pair *pair)
{
  ImkInsarformConfig c;

  imk_insarform_config_init (&c);
  c.width = pair->a.image.width;
  c.height = pair->a.image.height;
  c.type = pair->a.image.type;
  return c;
}

ImkImage
insarform_lines (const TestImage *image, uint32_t first, uint32_t n)
{
  ImkImage lines = image->image;

  lines.data = (uint8_t *) lines.data + first * lines.stride;
  lines.height = n;
  return lines;
}

TestImage
insarform_form (const ImkInsarformConfig *c, const Pair *pair, bool with_phase,
    uint32_t n_push)
{
  TestImage out = test_image_new (
      IMK_TYPE_F32, c->width / c->looks_x, c->height / c->looks_y, N, 8);
  test_autoptr (ImkInsarform) self = NULL;

  test_ok (imk_insarform_new (IMK_BACKEND_CPU, c, &self, test_new_error ()));
  for (int run = 0; run < 2; run++) {
    imk_insarform_rewind (self);
    while (imk_insarform_row (self) < out.image.height) {
      uint32_t room = imk_insarform_room (self);
      uint32_t at = imk_insarform_pushed (self);
      uint32_t n = room < n_push ? room : n_push;
      ImkImage row = insarform_lines (&out, imk_insarform_row (self), 1);
      ImkImage a = insarform_lines (&pair->a, at, n);
      ImkImage b = insarform_lines (&pair->b, at, n);
      ImkImage phase = insarform_lines (&pair->phase, at, n);

      if (imk_insarform_is_ready (self)) {
        test_ok (imk_insarform_process (self, &row, test_new_error ()));
        continue;
      }
      test_check (room > 0, "no room after %u lines", at);
      test_ok (imk_insarform_push (
          self, &a, &b, with_phase ? &phase : NULL, test_new_error ()));
    }
    test_check (imk_insarform_room (self) == 0 ||
                    imk_insarform_pushed (self) < c->height,
        "room for more than there is");
  }
  test_image_check_canaries (&out, "output");
  return out;
}

TestImage
insarform_expected (
    const ImkInsarformConfig *c, const Pair *pair, bool with_phase)
{
  TestImage e = test_image_new (
      IMK_TYPE_F64, c->width / c->looks_x, c->height / c->looks_y, N, 0);

  imk_insarform_reference (c, &pair->a.image, &pair->b.image,
      with_phase ? &pair->phase.image : NULL, &e.image);
  return e;
}

void
insarform_refuse (const ImkInsarformConfig *c, const char *words)
{
  ImkInsarform *self = NULL;

  test_error (imk_insarform_new (IMK_BACKEND_CPU, c, &self, test_new_error ()),
      IMK_ERROR_CONFIG, words);
}
