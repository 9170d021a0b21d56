/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tolerance: none. Quarters are exact in float32, so that the formula of the
 * header can be computed in integers; for other amounts the backends agree. */
#include "imk/invert.h"
#include "kernel-test.h"

static const ImkType types[] = {IMK_TYPE_U8, IMK_TYPE_U16};

static const struct {
  uint32_t width, height, channels;
} sizes[] = {{641, 3, 1}, {1, 1, 4}, {1, 70, 3}, {65, 2, 2}};

enum { N_TYPES = 2, N_SIZES = sizeof (sizes) / sizeof (*sizes) };

static uint32_t
sample (const ImkImage *image, uint32_t x, uint32_t y)
{
  const uint8_t *row = (const uint8_t *) image->data + y * image->stride;

  return image->type == IMK_TYPE_U8 ? row[x] : ((const uint16_t *) row)[x];
}

static TestImage
run (ImkBackend backend, const TestImage *in, double amount)
{
  const ImkImage *i = &in->image;
  TestImage out = test_image_new (i->type, i->width, i->height, i->channels, 6);
  ImkImage from = *i, to = out.image;
  ImkInvertConfig config;
  ImkInvert *self;

  imk_invert_config_init (&config);
  config.width = i->width;
  config.height = i->height;
  config.type = i->type;
  config.channels = i->channels;
  test_ok (imk_invert_new (backend, &config, &self, test_new_error ()));
  config.amount = amount;
  test_ok (imk_invert_update (self, &config, test_new_error ()));
  if (backend == IMK_BACKEND_CUDA) {
    from = test_to_device (in);
    to = test_to_device (&out);
  }
  test_ok (imk_invert_process (self, &from, &to, NULL, test_new_error ()));
  if (backend == IMK_BACKEND_CUDA) {
    test_from_device (&to, &out);
    test_device_free (&from);
    test_device_free (&to);
  }
  imk_invert_free (self);
  test_image_check_canaries (&out, "output");
  return out;
}

/* Calls @check for each type, size and fill. */
static void
for_all (void (*check) (const TestImage *in, uint32_t maximum))
{
  for (int t = 0; t < N_TYPES; t++)
    for (int s = 0; s < N_SIZES; s++)
      for (int fill = FILL_ZERO; fill < N_FILLS; fill++) {
        uint32_t maximum = types[t] == IMK_TYPE_U8 ? 255 : 65535;
        test_auto (TestImage) in = test_image_new (
            types[t], sizes[s].width, sizes[s].height, sizes[s].channels, 2);

        test_image_fill (&in, (Fill) fill, maximum, 7);
        check (&in, maximum);
      }
}

static void
check_formula (const TestImage *in, uint32_t maximum)
{
  for (uint32_t quarters = 0; quarters <= 4; quarters++) {
    test_auto (TestImage) out = run (IMK_BACKEND_CPU, in, quarters / 4.0);

    for (uint32_t y = 0; y < in->image.height; y++)
      for (uint32_t x = 0; x < in->image.width * in->image.channels; x++) {
        uint32_t v = sample (&in->image, x, y);
        uint32_t expected =
            (4 * v + quarters * maximum - 2 * quarters * v + 2) / 4;

        test_check (sample (&out.image, x, y) == expected,
            "%s: %u at (%u, %u) became %u with amount %u/4, not %u",
            imk_type_name (in->image.type), v, x, y, sample (&out.image, x, y),
            quarters, expected);
      }
  }
}

TEST (test_every_sample_is_the_formula, "every sample is the formula")
{
  for_all (check_formula);
}

static void
check_backends (const TestImage *in, uint32_t maximum)
{
  static const double amounts[] = {0, 0.3, 1.0 / 3, 0.77, 1};

  for (int i = 0; i < 5; i++) {
    test_auto (TestImage) cpu = run (IMK_BACKEND_CPU, in, amounts[i]);
    test_auto (TestImage) cuda = run (IMK_BACKEND_CUDA, in, amounts[i]);

    test_image_same (&cpu, &cuda, imk_type_name (in->image.type));
  }
}

TEST (test_the_backends_agree, "CPU and CUDA give the same bytes")
{
  test_need_cuda ();
  for_all (check_backends);
}

TEST (test_wrong_configurations_are_refused, "wrong configurations are refused")
{
  ImkInvertConfig config;
  ImkInvert *self = NULL;

  imk_invert_config_init (&config);
  config.amount = 1.5;
  test_error (
      imk_invert_new (IMK_BACKEND_CPU, &config, &self, test_new_error ()),
      IMK_ERROR_CONFIG, "amount is 1.5");
  config.amount = 1;
  config.type = IMK_TYPE_F32;
  test_error (
      imk_invert_new (IMK_BACKEND_CPU, &config, &self, test_new_error ()),
      IMK_ERROR_CONFIG, "type f32");
  test_check (!self, "an object was made");
}
