/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tolerance: none. Every amount gives equal bytes on all backends, for every
 * number of threads, and equal to the formula of the header. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imk/device.h"
#include "kernel-test.h"
#include "lapsharpen/cpu/ratio.h"
#include "lapsharpen/lapsharpen-reference.h"
#include "lapsharpen/lapsharpen-sample.h"
#include "imk/lapsharpen.h"
#include "core/failures.h"
#include "core/sample.h"

TEST_DEFINE_AUTO_POINTER (ImkLapsharpen, imk_lapsharpen_free)

enum { MAX_WORDS = 400 };

/* --- a case and its name -------------------------------------------------- */

typedef struct Case {
  ImkLapsharpenConfig config;
  Fill fill;
  uint32_t padding; /* bytes a row */
  uint32_t offset;  /* samples from an aligned address to the first one */
  uint64_t seed;
} Case;

static const char *
case_name (const Case *c)
{
  static const char *borders[] = {
      "replicate", "zero", "constant", "reflect101", "reflect"};
  static const char *alphas[] = {"copy", "filter", "weighted"};
  static char name[MAX_WORDS];
  const ImkLapsharpenConfig *k = &c->config;

  snprintf (name, sizeof (name),
      "%s %s %ux%ux%u %s seed %llu depth %u/%u mask %x alpha %d %s amount %g "
      "neighbours %u value %u threshold %g%s%s%s%s%s%s radius %g halos %u %u "
      "range %u %u areas %u%s light %d storage %d padding %u offset %u",
      imk_type_name (k->type), borders[k->border], k->width, k->height,
      k->channels, test_fill_name (c->fill), (unsigned long long) c->seed,
      k->depth, k->shift, k->channel_mask, k->alpha_channel, alphas[k->alpha],
      k->amount, k->neighbours, k->border_value, k->threshold,
      k->threshold_unit ? " sigma" : "", k->coring ? " soft" : "",
      k->clamp ? " local" : "", k->output ? " edges" : "",
      k->measure_focus ? " focus" : "",
      k->method == IMK_LAPSHARPEN_METHOD_CAS       ? " cas"
      : k->method == IMK_LAPSHARPEN_METHOD_KERNEL  ? " kernel"
      : k->method == IMK_LAPSHARPEN_METHOD_UNSHARP ? " unsharp"
      : k->method == IMK_LAPSHARPEN_METHOD_LOG     ? " log"
                                                   : "",
      k->radius, k->halo_dark, k->halo_bright, k->range_low[0],
      k->range_high[0], k->n_areas, k->mask ? " mask" : "", !!k->decode,
      k->storage, c->padding, c->offset);
  return name;
}

static ImkLapsharpenConfig
make_config (ImkType type, uint32_t width, uint32_t height, uint32_t channels)
{
  ImkLapsharpenConfig config;

  imk_lapsharpen_config_init (&config);
  config.width = width;
  config.height = height;
  config.type = type;
  config.channels = channels;
  config.depth = type == IMK_TYPE_U8 ? 8 : 16;
  config.channel_mask = (1u << channels) - 1;
  return config;
}

/* --- images --------------------------------------------------------------- */

/* An image whose first sample is @offset samples behind an aligned address. */
static TestImage
make_image (const Case *c)
{
  const ImkLapsharpenConfig *k = &c->config;
  TestImage t = test_image_new (k->type, k->width, k->height,
      k->storage == IMK_LAPSHARPEN_STORAGE_PACKED_10 ? 2 : k->channels,
      c->padding + 8 * c->offset);

  t.image.data = (uint8_t *) t.image.data + c->offset * imk_type_size (k->type);
  return t;
}

/* Values of depth bits, moved up by shift. */
static TestImage
make_input (const Case *c)
{
  const ImkLapsharpenConfig *k = &c->config;
  TestImage t = make_image (c);

  test_image_fill (&t, c->fill, (1u << k->depth) - 1, c->seed);
  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width; x++)
      for (uint32_t ch = 0; ch < t.image.channels; ch++) {
        uint32_t v = (uint32_t) imk_sample_get (&t.image, x, y, ch) << k->shift;

        if (k->storage == IMK_LAPSHARPEN_STORAGE_BIG_ENDIAN)
          v = (v << 8 & 0xff00) | v >> 8;
        imk_sample_put (&t.image, x, y, ch, v);
      }
  return t;
}

/* --- running -------------------------------------------------------------- */

static void
check_focus (const ImkLapsharpenFocus *expected,
    const ImkLapsharpenFocus *actual, const char *where)
{
  test_check (expected->n_samples == actual->n_samples &&
                  expected->mean == actual->mean &&
                  expected->variance == actual->variance,
      "%s: focus %llu %.17g %.17g, expected %llu %.17g %.17g", where,
      (unsigned long long) actual->n_samples, actual->mean, actual->variance,
      (unsigned long long) expected->n_samples, expected->mean,
      expected->variance);
}

/* Runs on the backend and, when the case asks for it, returns the focus. */
static ImkLapsharpenFocus
run (ImkBackend backend, const ImkLapsharpenConfig *config, const ImkImage *in,
    ImkImage *out)
{
  ImkLapsharpenFocus focus = {0};
  test_autoptr (ImkLapsharpen) self = NULL;

  test_ok (imk_lapsharpen_new (backend, config, &self, test_new_error ()));
  test_ok (imk_lapsharpen_process (self, in, out, NULL, test_new_error ()));
  if (config->measure_focus)
    test_ok (imk_lapsharpen_get_focus (self, &focus, test_new_error ()));
  return focus;
}

/* The rows with all that lies between them, as an image of bytes: the device
 * gets the same offset and padding, and the canaries make the round trip. */
static TestImage
whole_rows (const TestImage *t, size_t offset)
{
  TestImage bytes = *t;

  bytes.image.data = (uint8_t *) t->image.data - offset;
  bytes.image.width = (uint32_t) t->image.stride;
  bytes.image.channels = 1;
  bytes.image.type = IMK_TYPE_U8;
  return bytes;
}

static ImkImage
device_view (const ImkImage *image, const ImkImage *device_rows, size_t offset)
{
  ImkImage view = *image;

  view.data = (uint8_t *) device_rows->data + offset;
  view.location = IMK_LOCATION_DEVICE;
  return view;
}

static ImkLapsharpenFocus
run_cuda (const Case *c, const TestImage *in, TestImage *out)
{
  size_t offset = c->offset * imk_type_size (c->config.type);
  TestImage in_rows = whole_rows (in, offset);
  TestImage out_rows = whole_rows (out, offset);
  test_auto (ImkImage) device_in = test_to_device (&in_rows);
  test_auto (ImkImage) device_out = test_to_device (&out_rows);
  ImkImage in_view = device_view (&in->image, &device_in, offset);
  ImkImage out_view = device_view (&out->image, &device_out, offset);
  ImkLapsharpenFocus focus =
      run (IMK_BACKEND_CUDA, &c->config, &in_view, &out_view);

  test_from_device (&device_out, &out_rows);
  return focus;
}

typedef void (*CaseFunc) (const Case *c);

static void
check_cpu (const Case *c)
{
  test_auto (TestImage) in = make_input (c), expected = make_image (c);
  test_auto (TestImage) actual = make_image (c);
  ImkLapsharpenFocus focus;

  imk_lapsharpen_reference (&c->config, &in.image, &expected.image);
  focus = run (IMK_BACKEND_CPU, &c->config, &in.image, &actual.image);
  test_image_same (&expected, &actual, case_name (c));
  test_check (memcmp (expected.block, actual.block, actual.block_size) == 0,
      "%s: bytes beside the pixels were written", case_name (c));
  if (c->config.measure_focus) {
    ImkLapsharpenFocus expected_focus =
        imk_lapsharpen_reference_focus (&c->config, &in.image);

    check_focus (&expected_focus, &focus, case_name (c));
  }
}

static void
check_cuda (const Case *c)
{
  test_auto (TestImage) in = make_input (c), expected = make_image (c);
  test_auto (TestImage) actual = make_image (c);
  ImkLapsharpenFocus cpu, cuda;

  cpu = run (IMK_BACKEND_CPU, &c->config, &in.image, &expected.image);
  cuda = run_cuda (c, &in, &actual);
  test_image_same (&expected, &actual, case_name (c));
  test_check (memcmp (expected.block, actual.block, actual.block_size) == 0,
      "%s: bytes beside the pixels were written", case_name (c));
  check_focus (&cpu, &cuda, case_name (c));
}

/* --- the matrix ----------------------------------------------------------- */

static const uint32_t sizes[][2] = {
    {1, 1}, {1, 7}, {7, 1}, {2, 2}, {3, 3}, {17, 5}, {641, 3}, {130, 67}};
/* Those of few bits are integer arithmetic on bytes: up to 31/4 with 4
 * neighbours, 15/8 with 8. */
static const double amounts[] = {
    0, 1, 0.5, 2, 0.3, 10, 7.77, 1.5, 0.25, 7.75, 1.875, 0.015625};
/* Each step from one pixel a sample to 12, and the ends of the range. */
static const double radii[] = {0.3, 0.7, 1, 2, 2.4999, 2.5, 4, 5, 7.3, 12, 20};
static const double thresholds[] = {0, 1, 5, 100, 7.5};
static const uint32_t depths[][2] = {
    {16, 0}, {10, 0}, {10, 6}, {12, 0}, {12, 4}, {16, 0}};

#define LENGTH(array) (sizeof (array) / sizeof ((array)[0]))
#define PICK(array, seed) ((array)[test_random (seed) % LENGTH (array)])

/* Weights of few bits, which make halves to round, and others. Where all are
 * m / 2^q, sums of |m| up to 128 are integer arithmetic on bytes. */
static void
set_kernel (ImkLapsharpenConfig *k, uint64_t *seed)
{
  static const int largest[] = {1, 2, 3, 14, 127};
  const int most = PICK (largest, seed);
  const float one = (float) (1u << test_random (seed) % 9);
  const bool few = test_random (seed) % 2;
  int left = 126 + (int) (test_random (seed) % 4);

  k->kernel_size = 3 + 2 * (uint32_t) (test_random (seed) % 3);
  for (uint32_t i = 0; i < k->kernel_size * k->kernel_size; i++) {
    const int drawn = (int) (test_random (seed) % (2 * (uint32_t) most + 1));
    const int m = abs (drawn - most) < left ? drawn - most : left;

    k->kernel[i] = few ? (float) m / one
                       : ((float) (test_random (seed) % 64) - 31) /
                             (test_random (seed) % 2 ? 16 : 33);
    left -= abs (m);
  }
  if (k->method == IMK_LAPSHARPEN_METHOD_KERNEL &&
      k->alpha == IMK_LAPSHARPEN_ALPHA_WEIGHTED)
    k->alpha = IMK_LAPSHARPEN_ALPHA_COPY;
}

/* Gamma 2, for samples of any depth. */
static void
set_light (ImkLapsharpenConfig *k, uint64_t *seed)
{
  static uint16_t decode[65536], encode[65536];
  double maximum = (1 << k->depth) - 1;

  for (uint32_t v = 0; v <= (uint32_t) maximum; v++)
    decode[v] = (uint16_t) lrint (65535 * pow (v / maximum, 2));
  for (uint32_t l = 0; l < 65536; l++)
    encode[l] = (uint16_t) lrint (maximum * sqrt (l / 65535.0));
  k->decode = decode;
  k->encode = encode;
  k->linear_mask = (uint32_t) test_random (seed) & k->channel_mask;
}

/* Limits of where, and how far, samples change. */
static void
draw_limits (ImkLapsharpenConfig *k, uint64_t *seed)
{
  static uint8_t mask[517 * 17]; /* the largest frame below */
  const uint32_t maximum = (1u << k->depth) - 1;
  const uint64_t which = test_random (seed) % 64;

  for (uint32_t i = 0; i < k->channels && which & 1; i++) {
    k->range_low[i] = maximum / 16 + i;
    k->range_high[i] = i == 2 ? 0 : maximum - maximum / 11;
  }
  k->n_areas = which & 2 ? 1 + (uint32_t) (test_random (seed) % 3) : 0;
  for (uint32_t i = 0; i < k->n_areas; i++)
    k->areas[i] = (ImkLapsharpenArea){(uint32_t) (test_random (seed) % 200),
        (uint32_t) (test_random (seed) % 10),
        (uint32_t) (test_random (seed) % 400),
        test_random (seed) % 2 ? UINT32_MAX : 3};
  if (which & 4)
    k->halo_bright = (uint32_t) test_random (seed) % (maximum / 2 + 2);
  if (which & 8)
    k->halo_dark = (uint32_t) test_random (seed) % (maximum / 2 + 2);
  if (which & 16) {
    for (size_t i = 0; i < LENGTH (mask); i++)
      mask[i] = (uint8_t) (test_random (seed) % 3 ? test_random (seed) : 255);
    k->mask = mask;
  }
  k->coring = (ImkLapsharpenCoring) (test_random (seed) % 2);
  if (which & 32) {
    k->threshold_unit = IMK_LAPSHARPEN_UNIT_SIGMA;
    k->threshold = (double) (test_random (seed) % 20) / 8;
  }
  if (test_random (seed) % 4 == 0)
    set_light (k, seed);
}

/* The options that no loop goes over are drawn, most of them half of the time
 * at their default, so that the fast paths get their share. */
static void
draw_options (Case *c, uint64_t *seed)
{
  ImkLapsharpenConfig *k = &c->config;
  const uint32_t *depth = PICK (depths, seed);

  if (k->type == IMK_TYPE_U16) {
    k->depth = depth[0];
    k->shift = depth[1];
  } else if (test_random (seed) % 8 == 0) {
    k->depth = 5;
    k->shift = (uint32_t) (test_random (seed) % 4);
  }
  if (test_random (seed) % 2)
    k->alpha_channel = (int32_t) (test_random (seed) % k->channels);
  if (test_random (seed) % 4 == 0)
    k->channel_mask = (uint32_t) test_random (seed) & k->channel_mask;
  if (k->alpha_channel >= 0)
    k->channel_mask &= ~(1u << k->alpha_channel);
  k->alpha = (ImkLapsharpenAlpha) (test_random (seed) % 3);
  k->amount = PICK (amounts, seed);
  k->neighbours = test_random (seed) % 2 ? 8 : 4;
  k->border_value = (uint32_t) test_random (seed) & ((1u << k->depth) - 1);
  if (test_random (seed) % 2 == 0) {
    k->threshold = PICK (thresholds, seed);
    k->clamp = (ImkLapsharpenClamp) (test_random (seed) % 2);
    k->output = (ImkLapsharpenOutput) (test_random (seed) % 2);
    k->measure_focus = test_random (seed) % 2;
    k->method = (ImkLapsharpenMethod) (test_random (seed) % 5);
    k->radius = PICK (radii, seed);
    set_kernel (k, seed);
  }
  if (test_random (seed) % 3 == 0)
    draw_limits (k, seed);
  if (k->type == IMK_TYPE_U16 && test_random (seed) % 8 == 0) {
    bool packed = k->channels == 4 && k->depth == 10 && !k->shift;

    k->storage = packed ? IMK_LAPSHARPEN_STORAGE_PACKED_10
                        : IMK_LAPSHARPEN_STORAGE_BIG_ENDIAN;
  }
  k->n_threads = 1 + (uint32_t) (test_random (seed) % 3);
  c->padding = test_random (seed) % 2 ? (uint32_t) (test_random (seed) % 4) : 0;
  c->offset = test_random (seed) % 2 ? (uint32_t) (test_random (seed) % 8) : 0;
}

static void
for_each_case (CaseFunc check, uint32_t n_draws)
{
  uint64_t seed = 7;

  for (int type = 0; type < 2; type++)
    for (uint32_t channels = 1; channels <= 4; channels++)
      for (int border = 0; border <= IMK_LAPSHARPEN_BORDER_REFLECT; border++)
        for (size_t size = 0; size < LENGTH (sizes); size++)
          for (int fill = 0; fill < N_FILLS; fill++)
            for (uint32_t draw = 0; draw < n_draws; draw++) {
              Case c = {.fill = (Fill) fill, .seed = seed};

              c.config = make_config (type ? IMK_TYPE_U16 : IMK_TYPE_U8,
                  sizes[size][0], sizes[size][1], channels);
              c.config.border = (ImkLapsharpenBorder) border;
              draw_options (&c, &seed);
              if (test_takes_case (1))
                check (&c);
            }
}

/* Every combination of the options, on one size. */
static void
for_each_option (CaseFunc check)
{
  Case c = {.fill = FILL_NOISE, .seed = 11, .padding = 3};
  uint64_t seed = 5;
  ImkLapsharpenConfig *k = &c.config;

  for (int i = 0; i < 2 * (int) LENGTH (amounts) * 2 * 3 * 5 * 2 * 2; i++) {
    int n = i;

    *k = make_config (n % 2 ? IMK_TYPE_U16 : IMK_TYPE_U8, 17, 5, 4);
    n /= 2;
    k->channel_mask = 7;
    k->alpha_channel = 3;
    k->measure_focus = true;
    k->amount = amounts[n % (int) LENGTH (amounts)];
    n /= (int) LENGTH (amounts);
    k->neighbours = n % 2 ? 8 : 4;
    n /= 2;
    k->alpha = (ImkLapsharpenAlpha) (n % 3);
    n /= 3;
    k->threshold = thresholds[n % 5];
    n /= 5;
    k->clamp = (ImkLapsharpenClamp) (n % 2);
    k->output = (ImkLapsharpenOutput) (n / 2);
    check (&c);
    k->method = IMK_LAPSHARPEN_METHOD_CAS;
    check (&c);
    k->method = IMK_LAPSHARPEN_METHOD_KERNEL;
    set_kernel (k, &seed);
    check (&c);
    for (int m = IMK_LAPSHARPEN_METHOD_UNSHARP; m <= IMK_LAPSHARPEN_METHOD_LOG;
         m++) {
      k->method = (ImkLapsharpenMethod) m;
      k->radius = PICK (radii, &seed);
      check (&c);
    }
  }
}

TEST (test_cpu_matrix, "all types, borders, sizes and fills follow the formula",
    .cpu_only = true)
{
  for_each_case (check_cpu, 4);
}

TEST (test_cpu_options, "all options follow the formula", .cpu_only = true)
{
  for_each_option (check_cpu);
}

TEST (test_cpu_kernels, "kernels of weights of few bits follow the formula",
    .cpu_only = true)
{
  uint64_t seed = 23;

  for (int i = 0; i < 1000; i++) {
    static const double mixed[] = {1, 1, 0.5};
    const uint32_t *size = PICK (sizes, &seed);
    Case c = {.fill = (Fill) (i % N_FILLS), .seed = seed};
    ImkLapsharpenConfig *k = &c.config;

    *k = make_config (
        IMK_TYPE_U8, size[0], size[1], 1 + test_random (&seed) % 4);
    k->border = (ImkLapsharpenBorder) (test_random (&seed) % 5);
    k->method = IMK_LAPSHARPEN_METHOD_KERNEL;
    k->amount = PICK (mixed, &seed);
    set_kernel (k, &seed);
    if (test_random (&seed) % 4 == 0)
      draw_limits (k, &seed);
    check_cpu (&c);
  }
}

/* Draws weights k / @n of the sum 1, some of them 0, as integer arithmetic on
 * bytes takes them: k up to 6, or a large one. */
static void
set_ratio_kernel (ImkLapsharpenConfig *k, int n, uint64_t *seed)
{
  static const uint32_t kernel_sizes[] = {3, 3, 5, 7};
  int sum = 0, left = 256 - n < 0 ? 0 : 256 - n;
  uint32_t middle;

  k->method = IMK_LAPSHARPEN_METHOD_KERNEL;
  k->kernel_size = PICK (kernel_sizes, seed);
  middle = k->kernel_size * k->kernel_size / 2;
  for (uint32_t i = 0; i <= 2 * middle; i++) {
    const int drawn = i == 3 && test_random (seed) % 4 == 0
                          ? -100
                          : (int) (test_random (seed) % 10) - 6;
    const int weight = i == middle ? 0 : abs (drawn) > left ? 0 : drawn;

    left -= abs (weight);
    sum += weight;
    k->kernel[i] = (float) weight / (float) n;
  }
  k->kernel[middle] = (float) (n - sum) / (float) n;
}

static ImkLapsharpenRatio ratio;

/* Of an even n that is no power of two, one sum in n is a half but for what is
 * rounded. Noise has sums below 0 and beyond the largest sample as well. */
TEST (test_cpu_ratios, "kernels of weights k / n follow the formula",
    .cpu_only = true)
{
  uint64_t seed = 37;
  int n_found = 0, n_cases = TEST_SANITIZED ? 100 : 1020;

  for (int i = 0; i < n_cases; i++) {
    const int n = 2 + i % 255;
    const uint32_t *size = PICK (sizes, &seed);
    Case c = {.fill = i % 8 ? FILL_NOISE : FILL_CHECKERBOARD, .seed = seed};
    ImkLapsharpenConfig *k = &c.config;
    ImkLapsharpenRule rule;

    *k = make_config (
        IMK_TYPE_U8, size[0], size[1], 1 + test_random (&seed) % 4);
    k->border = (ImkLapsharpenBorder) (test_random (&seed) % 5);
    set_ratio_kernel (k, n, &seed);
    if (test_random (&seed) % 4 == 0)
      draw_limits (k, &seed);
    rule = imk_lapsharpen_rule (k);
    imk_lapsharpen_find_ratio (&rule, &ratio);
    n_found += ratio.n > 0;
    check_cpu (&c);
  }
  test_check (n_found > n_cases * 3 / 4,
      "integers were found for %d of %d kernels", n_found, n_cases);
}

TEST (test_ratio_quotients, "quotients of sums of a kernel k / n are exact",
    .cpu_only = true)
{
  uint64_t seed = 41;

  for (int n = 2; n <= 256; n++) {
    ImkLapsharpenConfig k = make_config (IMK_TYPE_U8, 9, 9, 1);
    ImkLapsharpenRule rule;

    set_ratio_kernel (&k, n, &seed);
    rule = imk_lapsharpen_rule (&k);
    imk_lapsharpen_find_ratio (&rule, &ratio);
    for (uint32_t sum = 0; ratio.n && sum < 65536; sum++) {
      const uint32_t found = sum * ratio.factor >> 16 >> ratio.shift;
      const uint32_t exact = sum / ratio.n;

      test_check (found == exact || (found > 255 && exact > 255),
          "%u / %u is %u, not %u", sum, ratio.n, exact, found);
    }
  }
}

/* Tenths have many sums that are a half but for what is rounded: the order of
 * additions decides. */
TEST (test_cpu_halves, "sums of a kernel near a half follow the formula",
    .cpu_only = true)
{
  uint64_t seed = 31;

  for (int i = 0; i < 300; i++) {
    const uint32_t *size = PICK (sizes, &seed);
    Case c = {.fill = FILL_NOISE, .seed = seed};
    ImkLapsharpenConfig *k = &c.config;
    uint32_t n;
    int sum = 0;

    *k = make_config (test_random (&seed) % 4 ? IMK_TYPE_U8 : IMK_TYPE_U16,
        size[0], size[1], 1 + test_random (&seed) % 4);
    k->border = (ImkLapsharpenBorder) (test_random (&seed) % 5);
    k->method = IMK_LAPSHARPEN_METHOD_KERNEL;
    k->kernel_size = 3 + 2 * (uint32_t) (test_random (&seed) % 3);
    n = k->kernel_size * k->kernel_size;
    for (uint32_t w = 0; w < n; w++) {
      const int tenths = (int) (test_random (&seed) % 7) - 3;

      k->kernel[w] = (float) tenths / 10;
      sum += w == n / 2 ? 0 : tenths;
    }
    k->kernel[n / 2] = (float) (10 - sum) / 10;
    check_cpu (&c);
  }
}

/* Weights k / n of an n beyond 256 are float32 on bytes, in steps that round
 * otherwise than those of the definition. With an even n one sum in n is a half
 * but for what is rounded. */
TEST (test_cpu_float_halves,
    "sums of any kernel on bytes near a half follow the formula",
    .cpu_only = true)
{
  uint64_t seed = 43;
  int n_cases = TEST_SANITIZED ? 100 : 500;

  for (int i = 0; i < n_cases; i++) {
    const uint32_t width = 1 + (uint32_t) (test_random (&seed) % 300);
    const int n = 258 + 2 * (int) (test_random (&seed) % 600);
    Case c = {.fill = FILL_NOISE, .seed = seed};
    ImkLapsharpenConfig *k = &c.config;
    uint32_t middle;
    int sum = 0;

    *k = make_config (IMK_TYPE_U8, width, 1 + test_random (&seed) % 29,
        1 + test_random (&seed) % 4);
    k->border = (ImkLapsharpenBorder) (test_random (&seed) % 5);
    k->border_value = 99;
    k->n_threads = 1 + (uint32_t) (test_random (&seed) % 3);
    k->method = IMK_LAPSHARPEN_METHOD_KERNEL;
    k->kernel_size = 3 + 2 * (uint32_t) (test_random (&seed) % 3);
    middle = k->kernel_size * k->kernel_size / 2;
    for (uint32_t w = 0; w <= 2 * middle; w++) {
      const int drawn = (int) (test_random (&seed) % 41) - 20;

      k->kernel[w] = (float) drawn / (float) n;
      sum += w == middle ? 0 : drawn;
    }
    k->kernel[middle] = (float) (n - sum) / (float) n;
    if (test_random (&seed) % 4 == 0)
      draw_limits (k, &seed);
    check_cpu (&c);
  }
}

TEST (test_cuda_matrix,
    "CUDA equals the CPU for all types, borders, sizes and fills")
{
  test_need_cuda ();
  for_each_case (check_cuda, 4);
}

TEST (test_cuda_options, "CUDA equals the CPU for all options")
{
  test_need_cuda ();
  for_each_option (check_cuda);
}

/* Rows of more than one warp, more rows than one block, full of both paths. */
TEST (test_cuda_large, "CUDA equals the CPU on frames of many blocks")
{
  static const uint32_t large[][2] = {
      {512, 70}, {513, 33}, {1023, 40}, {2580, 131}};

  test_need_cuda ();
  for (size_t size = 0; size < LENGTH (large); size++)
    for (uint32_t channels = 1; channels <= 4; channels++)
      for (int i = 0; i < 5 * 2 * 3 * 2; i++) {
        static const double steps[] = {1, 10, 1.5};
        Case c = {.fill = FILL_NOISE, .seed = 5};
        ImkLapsharpenConfig *k = &c.config;

        if (!test_takes_case (1))
          continue;
        *k =
            make_config (IMK_TYPE_U8, large[size][0], large[size][1], channels);
        k->border = (ImkLapsharpenBorder) (i % 5);
        k->border_value = 77;
        k->neighbours = i / 5 % 2 ? 8 : 4;
        k->amount = steps[i / 10 % 3];
        k->channel_mask = i / 30 ? k->channel_mask >> 1 : k->channel_mask;
        k->measure_focus = i == 0;
        c.padding = (uint32_t) (i / 5 % 3) * 4;
        c.offset = i % 3 * 4u;
        check_cuda (&c);
      }
}

/* Low samples of tiles inside the frame, and of tiles that reach beyond it; all
 * channels, and those that are filtered alone. */
TEST (test_cuda_smooth, "CUDA equals the CPU for Gaussians of many tiles")
{
  static const uint32_t masks[] = {7, 14, 15, 5};
  static const double wide[] = {1, 2.5, 0.3, 4, 1.3, 5, 1.9, 7.3, 2.4};

  test_need_cuda ();
  for (uint32_t channels = 1; channels <= 4; channels++)
    for (int i = 0; i < 5 * 4 * 2 * 2; i++) {
      Case c = {.fill = FILL_NOISE, .seed = 7};
      ImkLapsharpenConfig *k = &c.config;

      if (!test_takes_case (1))
        continue;
      *k = make_config (i / 20 % 2 ? IMK_TYPE_U16 : IMK_TYPE_U8,
          i % 3 ? 1101 : 700, 131, channels);
      k->channel_mask &= masks[i / 5 % 4];
      k->border = (ImkLapsharpenBorder) (i % 5);
      k->border_value = 77;
      k->method =
          i / 40 ? IMK_LAPSHARPEN_METHOD_LOG : IMK_LAPSHARPEN_METHOD_UNSHARP;
      k->radius = wide[(i + i / 5) % (int) LENGTH (wide)];
      k->amount = i % 2 ? 0.3 : 10;
      c.padding =
          16 - k->width * channels * (uint32_t) imk_type_size (k->type) % 16;
      check_cuda (&c);
    }
}

/* Threads have more rows of a frame of 16 MB, and all choices are constants. */
TEST (test_cuda_huge, "CUDA equals the CPU on a frame of 18 MB")
{
  test_need_cuda ();
  for (int i = 0; i < 2 * 2 * 3; i++) {
    Case c = {.fill = FILL_NOISE, .seed = 8};
    const bool last = (i / 2 + i / 4) % 2;
    ImkLapsharpenConfig *k = &c.config;

    if (!test_takes_case (1))
      continue;
    *k = make_config (
        i % 2 ? IMK_TYPE_U16 : IMK_TYPE_U8, i % 2 ? 2051 : 4100, 1101, 4);
    k->channel_mask = last ? 7 : 14;
    k->alpha_channel = last ? 3 : 0;
    k->alpha = (ImkLapsharpenAlpha) (i / 4 % 3);
    k->neighbours = i / 2 % 2 ? 8 : 4;
    k->amount = 0.3;
    c.padding = i % 2 ? 8 : 0; /* rows at multiples of 16 bytes */
    check_cuda (&c);
  }
}

/* Rows that end within a warp, a word or 16 bytes, rows just above and below
 * those of a thread and a block, addresses of which only 4 are a divisor; with
 * the options that the large loops have branches for. */
TEST (test_cuda_edges,
    "CUDA equals the CPU at the ends of rows, blocks and threads")
{
  static const uint32_t widths[] = {1, 2, 3, 4, 5, 8, 9, 127, 128, 129, 133,
      170, 171, 172, 256, 511, 512, 517};
  static const uint32_t heights[] = {1, 2, 3, 7, 8, 9, 16, 17};
  uint64_t seed = 19;

  test_need_cuda ();
  for (size_t w = 0; w < LENGTH (widths); w++)
    for (size_t h = 0; h < LENGTH (heights); h++)
      for (uint32_t channels = 1; channels <= 4; channels++)
        for (int i = 0; i < 5 * 2 * 2; i++) {
          Case c = {.fill = FILL_NOISE, .seed = seed};
          ImkLapsharpenConfig *k = &c.config;

          *k = make_config (i / 5 % 2 ? IMK_TYPE_U16 : IMK_TYPE_U8, widths[w],
              heights[h], channels);
          draw_options (&c, &seed);
          k->border = (ImkLapsharpenBorder) (i % 5);
          if (i / 10) {
            /* strides and addresses for 4 bytes, or 16 */
            uint32_t row =
                k->width * channels * (uint32_t) imk_type_size (k->type);

            c.offset = test_random (&seed) % 2 ? 4 : 0;
            c.padding =
                16 - row % 16 + (uint32_t) (test_random (&seed) % 2) * 4;
          }
          if (test_takes_case (1))
            check_cuda (&c);
        }
}

TEST (test_threads, "the number of threads changes no byte")
{
  static const uint32_t n_threads[] = {2, 3, 7, 0};
  Case c = {.fill = FILL_NOISE, .seed = 3};

  for (int option = 0; option < 6; option++) {
    TestImage in, one, many;
    ImkLapsharpenFocus focus;

    c.config = make_config (IMK_TYPE_U16, 640, 401, 4);
    c.config.channel_mask = 7;
    c.config.alpha_channel = 3;
    c.config.amount = option & 1 ? 0.3 : 1;
    c.config.measure_focus = option & 2;
    if (option >= 4)
      c.config.method = IMK_LAPSHARPEN_METHOD_UNSHARP;
    c.config.radius = option == 4 ? 20 : 5;
    c.config.n_threads = 1;
    in = make_input (&c);
    one = make_image (&c);
    focus = run (IMK_BACKEND_CPU, &c.config, &in.image, &one.image);
    for (size_t i = 0; i < LENGTH (n_threads); i++) {
      ImkLapsharpenFocus other;

      many = make_image (&c);
      c.config.n_threads = n_threads[i];
      other = run (IMK_BACKEND_CPU, &c.config, &in.image, &many.image);
      test_image_same (&one, &many, case_name (&c));
      check_focus (&focus, &other, case_name (&c));
      test_image_free (&many);
    }
    test_image_free (&in);
    test_image_free (&one);
  }
}

/* --- closed forms --------------------------------------------------------- */

typedef struct Worked {
  uint32_t width, height;
  uint8_t in[12];
  double amount;
  uint32_t neighbours;
  ImkLapsharpenBorder border;
  uint8_t out[12];
} Worked;

#define REPLICATE IMK_LAPSHARPEN_BORDER_REPLICATE
#define ZERO IMK_LAPSHARPEN_BORDER_ZERO
#define REFLECT101 IMK_LAPSHARPEN_BORDER_REFLECT101
#define REFLECT IMK_LAPSHARPEN_BORDER_REFLECT

#define FLAT \
  { \
    100, 100, 100, 100, 100, 100, 100, 100, 100 \
  }
#define RAMP \
  { \
    0, 50, 100, 0, 50, 100, 0, 50, 100 \
  }
#define TENS \
  { \
    10, 20, 30, 40, 50, 60, 70, 80, 90 \
  }
#define STEP \
  { \
    50, 50, 200, 200, 50, 50, 200, 200, 50, 50, 200, 200 \
  }
#define STEP_OUT \
  { \
    50, 0, 255, 200, 50, 0, 255, 200, 50, 0, 255, 200 \
  }
#define POINT \
  { \
    0, 0, 0, 0, 10, 0, 0, 0, 0 \
  }
#define POINT_50 \
  { \
    0, 0, 0, 0, 50, 0, 0, 0, 0 \
  }

static const Worked worked[] = {
    {3, 3, FLAT, 1, 4, ZERO, {255, 200, 255, 200, 100, 200, 255, 200, 255}},
    {3, 3, FLAT, 1, 4, REPLICATE, FLAT},
    {3, 3, FLAT, 1, 4, REFLECT101, FLAT},
    {3, 3, FLAT, 1, 4, REFLECT, FLAT},
    {3, 3, RAMP, 1, 4, ZERO, {0, 100, 255, 0, 50, 250, 0, 100, 255}},
    {3, 3, RAMP, 1, 4, REPLICATE, {0, 50, 150, 0, 50, 150, 0, 50, 150}},
    {3, 3, RAMP, 1, 4, REFLECT101, {0, 50, 200, 0, 50, 200, 0, 50, 200}},
    {3, 3, TENS, 1, 4, ZERO, {0, 10, 70, 70, 50, 130, 230, 190, 255}},
    {3, 3, TENS, 1, 4, REPLICATE, {0, 0, 10, 30, 50, 70, 90, 110, 130}},
    {3, 3, TENS, 1, 4, REFLECT101, {0, 0, 0, 20, 50, 80, 110, 140, 170}},
    {4, 3, STEP, 1, 4, ZERO,
        {150, 0, 255, 255, 100, 0, 255, 255, 150, 0, 255, 255}},
    {4, 3, STEP, 1, 4, REPLICATE, STEP_OUT},
    {4, 3, STEP, 1, 4, REFLECT101, STEP_OUT},
    {3, 3, POINT, 1, 4, ZERO, POINT_50},
    {3, 3, POINT, 1, 4, REPLICATE, POINT_50},
    {3, 3, POINT, 1, 4, REFLECT101, POINT_50},
    {2, 1, {10, 20}, 1, 4, ZERO, {30, 90}},
    {2, 1, {10, 20}, 1, 4, REPLICATE, {0, 30}},
    {2, 1, {10, 20}, 1, 4, REFLECT101, {0, 40}},
    {1, 1, {50}, 1, 4, ZERO, {250}},
    {1, 1, {50}, 1, 4, REPLICATE, {50}},
    {1, 1, {50}, 1, 4, REFLECT101, {50}},
    {3, 3, TENS, 0.5, 4, ZERO, {0, 15, 50, 55, 50, 95, 150, 135, 200}},
    {3, 3, TENS, 0.5, 4, REPLICATE, {0, 5, 20, 35, 50, 65, 80, 95, 110}},
    {3, 3, TENS, 1, 8, REPLICATE, {0, 0, 0, 10, 50, 90, 130, 170, 210}},
    {3, 3, POINT, 1, 8, REPLICATE, {0, 0, 0, 0, 90, 0, 0, 0, 0}},
    {1, 1, {50}, 1, 8, ZERO, {255}},
};

TEST (test_worked, "the examples of the manual come out to the last count")
{
  for (size_t i = 0; i < LENGTH (worked); i++) {
    const Worked *w = &worked[i];
    ImkLapsharpenConfig config =
        make_config (IMK_TYPE_U8, w->width, w->height, 1);
    uint8_t pixels[12];
    ImkImage in = {(void *) w->in, w->width, w->width, w->height, 1,
        IMK_TYPE_U8, IMK_LOCATION_HOST};
    ImkImage out = in;

    out.data = pixels;
    config.amount = w->amount;
    config.neighbours = w->neighbours;
    config.border = w->border;
    run (IMK_BACKEND_CPU, &config, &in, &out);
    for (uint32_t j = 0; j < w->width * w->height; j++)
      test_check (pixels[j] == w->out[j],
          "example %zu, pixel %u: expected %u, got %u", i, j, w->out[j],
          pixels[j]);
  }
}

/* An 80x9 RGBA frame through the CPU. */
static TestImage
sharpen_rgba (
    const TestImage *in, ImkLapsharpenBorder border, ImkLapsharpenAlpha alpha)
{
  ImkLapsharpenConfig config = make_config (IMK_TYPE_U8, 80, 9, 4);
  TestImage out = test_image_new (IMK_TYPE_U8, 80, 9, 4, 0);

  config.channel_mask = 7;
  config.alpha_channel = 3;
  config.border = border;
  config.alpha = alpha;
  run (IMK_BACKEND_CPU, &config, &in->image, &out.image);
  return out;
}

static TestImage
make_rgba (Fill fill)
{
  TestImage t = test_image_new (IMK_TYPE_U8, 80, 9, 4, 0);

  test_image_fill (&t, fill, 255, 21);
  return t;
}

static int
course_value (const ImkImage *in, int x, int y, uint32_t channel)
{
  return x < 0 || y < 0 || x >= (int) in->width || y >= (int) in->height
             ? 0
             : (int) imk_sample_get (in, (uint32_t) x, (uint32_t) y, channel);
}

TEST (test_course_text,
    "zero border and filtered alpha are the course text's kernel")
{
  test_auto (TestImage) in = make_rgba (FILL_NOISE),
                        expected = make_rgba (FILL_ZERO);
  test_auto (TestImage) out = sharpen_rgba (
      &in, IMK_LAPSHARPEN_BORDER_ZERO, IMK_LAPSHARPEN_ALPHA_FILTER);

  for (int y = 0; y < 9; y++)
    for (int x = 0; x < 80; x++)
      for (uint32_t ch = 0; ch < 4; ch++) {
        int t = 5 * course_value (&in.image, x, y, ch) -
                course_value (&in.image, x, y - 1, ch) -
                course_value (&in.image, x, y + 1, ch) -
                course_value (&in.image, x - 1, y, ch) -
                course_value (&in.image, x + 1, y, ch);

        imk_sample_put (&expected.image, (uint32_t) x, (uint32_t) y, ch,
            fmin (fmax (t, 0), 255));
      }
  test_image_same (&expected, &out, "course text");
}

TEST (test_flat, "a flat frame stays flat, border included")
{
  for (int border = 0; border <= IMK_LAPSHARPEN_BORDER_REFLECT; border++)
    for (int i = 0; i < (int) LENGTH (amounts) * 2; i++) {
      Case c = {.fill = FILL_MAXIMUM};
      TestImage in, out;

      if (border == IMK_LAPSHARPEN_BORDER_ZERO ||
          border == IMK_LAPSHARPEN_BORDER_CONSTANT)
        continue;
      c.config = make_config (i % 2 ? IMK_TYPE_U16 : IMK_TYPE_U8, 641, 3, 3);
      c.config.border = (ImkLapsharpenBorder) border;
      c.config.amount = amounts[i / 2];
      c.config.method =
          (ImkLapsharpenMethod) (i % 4 == 1 ? IMK_LAPSHARPEN_METHOD_UNSHARP
                                 : i % 4 == 2
                                     ? IMK_LAPSHARPEN_METHOD_LOG
                                     : IMK_LAPSHARPEN_METHOD_LAPLACIAN);
      c.config.radius = radii[(size_t) i % LENGTH (radii)];
      in = make_image (&c);
      test_image_fill (&in, FILL_MAXIMUM, 100, 0);
      out = make_image (&c);
      run (IMK_BACKEND_CPU, &c.config, &in.image, &out.image);
      test_image_same (&in, &out, case_name (&c));
      test_image_free (&in);
      test_image_free (&out);
    }
}

static void
set_alpha (TestImage *t, bool ramp)
{
  for (uint32_t y = 0; y < t->image.height; y++)
    for (uint32_t x = 0; x < t->image.width; x++)
      imk_sample_put (
          &t->image, x, y, 3, ramp ? (x < 40 ? x : 80 - x) * 5 : 255);
}

TEST (test_opaque, "opaque frames look the same in every alpha mode")
{
  TestImage in = make_rgba (FILL_NOISE), out[3];

  set_alpha (&in, false);
  for (int border = 0; border <= IMK_LAPSHARPEN_BORDER_REFLECT; border++) {
    /* Outside a zero or constant border nothing is opaque. */
    bool opaque_outside = border != IMK_LAPSHARPEN_BORDER_ZERO &&
                          border != IMK_LAPSHARPEN_BORDER_CONSTANT;

    for (int alpha = 0; alpha < 3; alpha++)
      out[alpha] = sharpen_rgba (
          &in, (ImkLapsharpenBorder) border, (ImkLapsharpenAlpha) alpha);
    test_image_same (&out[0], &out[1], "copy and filter");
    if (opaque_outside)
      test_image_same (&out[0], &out[2], "copy and weighted");
    for (int alpha = 0; alpha < 3; alpha++)
      test_image_free (&out[alpha]);
  }
  test_image_free (&in);
}

static uint32_t
count_alpha_changes (const TestImage *a, const TestImage *b)
{
  uint32_t n = 0;

  for (uint32_t y = 0; y < a->image.height; y++)
    for (uint32_t x = 0; x < a->image.width; x++)
      n += imk_sample_get (&a->image, x, y, 3) !=
           imk_sample_get (&b->image, x, y, 3);
  return n;
}

TEST (test_soft_alpha, "a soft alpha ramp is kept unless alpha is filtered")
{
  static const bool kept[] = {true, false, true};
  test_auto (TestImage) in = make_rgba (FILL_NOISE);

  set_alpha (&in, true);
  for (int alpha = 0; alpha < 3; alpha++) {
    test_auto (TestImage) out = sharpen_rgba (
        &in, IMK_LAPSHARPEN_BORDER_REPLICATE, (ImkLapsharpenAlpha) alpha);
    uint32_t n = count_alpha_changes (&in, &out);

    test_check (
        kept[alpha] == (n == 0), "alpha mode %d changed %u alphas", alpha, n);
  }
}

/* Green beside a transparent red pixel: its red must not leak. */
TEST (test_hidden_colour,
    "weighted alpha keeps the colour of transparent pixels out")
{
  uint8_t in[3][4] = {{200, 0, 0, 0}, {90, 120, 0, 255}, {90, 120, 0, 255}};
  uint8_t out[3][4];
  ImkImage image = {in, 12, 3, 1, 4, IMK_TYPE_U8, IMK_LOCATION_HOST};
  ImkImage result = image;
  ImkLapsharpenConfig config = make_config (IMK_TYPE_U8, 3, 1, 4);

  result.data = out;
  config.channel_mask = 7;
  config.alpha_channel = 3;
  config.alpha = IMK_LAPSHARPEN_ALPHA_WEIGHTED;
  run (IMK_BACKEND_CPU, &config, &image, &result);
  test_check (memcmp (in[1], out[1], 4) == 0,
      "the middle pixel became %u %u %u %u", out[1][0], out[1][1], out[1][2],
      out[1][3]);
}

/* What devices compute instead of a division, from the least to the largest
 * numerator that 8 neighbours can give. */
TEST (test_quotients, "no division gives what the division gives")
{
  uint64_t seed = 11;

  for (uint32_t depth = 1; depth <= 8; depth++) {
    const int32_t maximum = (1 << depth) - 1, end = 8 * maximum * maximum;

    for (int32_t n = -end; n <= end; n++) {
      float expected = imk_lapsharpen_weighted (n, (uint32_t) maximum);
      float reciprocal = 1.0f / (float) maximum;
      float found = imk_lapsharpen_weighted_u8 ((float) n, reciprocal,
          imk_lapsharpen_rest ((uint32_t) maximum, reciprocal));

      test_check (found == expected, "%d / %d: expected %.9g, is %.9g", n,
          maximum, expected, found);
      found = imk_lapsharpen_weighted_by (n, 1.0 / maximum);
      test_check (found == expected, "%d / %d: expected %.9g, is %.9g", n,
          maximum, expected, found);
    }
  }
  for (uint32_t depth = 9; depth <= 16; depth++) {
    const int64_t maximum = (1 << depth) - 1, end = 8 * maximum * maximum;

    for (uint32_t i = 0; i < 500000; i++) {
      double n =
          (double) ((int64_t) (test_random (&seed) % (uint64_t) (2 * end + 1)) -
                    end);
      float expected = imk_lapsharpen_weighted (n, (uint32_t) maximum);
      float found = imk_lapsharpen_weighted_by (n, 1.0 / (double) maximum);

      test_check (found == expected, "%.0f / %d: expected %.9g, is %.9g", n,
          (int) maximum, expected, found);
    }
  }
}

/* --- any amount ----------------------------------------------------------- */

/* Returns: a 3x3 window for each sample, from left to right, and each sum of
 * its @k neighbours, from top to bottom */
static TestImage
make_all_windows (uint32_t k)
{
  static const uint32_t order[8][2] = {
      {1, 0}, {0, 1}, {2, 1}, {1, 2}, {0, 0}, {2, 0}, {0, 2}, {2, 2}};
  const uint32_t n_sums = 255 * k + 1;
  TestImage t = test_image_new (IMK_TYPE_U8, 3 * 256, 3 * n_sums, 1, 0);

  for (uint32_t sum = 0; sum < n_sums; sum++)
    for (uint32_t v = 0; v < 256; v++) {
      uint32_t left = sum;

      imk_sample_put (&t.image, 3 * v + 1, 3 * sum + 1, 0, v);
      for (uint32_t i = 0; i < k; i++) {
        const uint32_t part = left < 255 ? left : 255;

        imk_sample_put (
            &t.image, 3 * v + order[i][0], 3 * sum + order[i][1], 0, part);
        left -= part;
      }
    }
  return t;
}

static void
check_all_windows (const TestImage *in, TestImage *out, uint32_t k,
    double amount, double threshold)
{
  ImkLapsharpenConfig config =
      make_config (IMK_TYPE_U8, in->image.width, in->image.height, 1);

  config.neighbours = k;
  config.amount = amount;
  config.threshold = threshold;
  run (IMK_BACKEND_CPU, &config, &in->image, &out->image);
  for (uint32_t sum = 0; sum <= 255 * k; sum++) {
    const uint8_t *row = (const uint8_t *) out->image.data +
                         (3 * (size_t) sum + 1) * out->image.stride;

    for (uint32_t v = 0; v < 256; v++) {
      const int32_t expected = imk_lapsharpen_sample ((float) amount,
          (float) threshold, false, false,
          (float) ((int32_t) (k * v) - (int32_t) sum), (int32_t) v, 0, 255);

      test_check (row[3 * v + 1] == expected,
          "amount %g, threshold %g, sample %u, sum %u of %u neighbours: "
          "expected %d, is %u",
          amount, threshold, v, sum, k, expected, row[3 * v + 1]);
    }
  }
}

/* Tenths have products of L near a half, of which float32 rounds some up and
 * some down, and others by the sample. Few thirds are near one. */
TEST (test_amounts, "any amount gives the formula of all samples and sums",
    .cpu_only = true)
{
  for (uint32_t k = 4; k <= 8; k += 4) {
    test_auto (TestImage) in = make_all_windows (k);
    test_auto (TestImage) out =
        test_image_new (IMK_TYPE_U8, in.image.width, in.image.height, 1, 0);

    for (int tenths = 1; tenths <= 100; tenths++)
      check_all_windows (&in, &out, k, tenths / 10.0, tenths % 4 ? 0 : 7.5);
    for (int twentieths = 1; twentieths < 200; twentieths += 14)
      check_all_windows (&in, &out, k, twentieths / 20.0, 0);
    for (int thirds = 1; thirds <= 30; thirds += 3)
      check_all_windows (&in, &out, k, thirds / 3.0, thirds % 2 ? 300 : 0);
  }
}

/* --- contrast adaptive sharpening ----------------------------------------- */

/* Pixel (1, 1) of a 3x3 window as AMD's FidelityFX CAS 1.0 writes it down, for
 * sharpness 1: samples are 0..1, and the sum is normalised. */
static double
amd_cas (const double v[9])
{
  double low = v[4], high = v[4], all_low, all_high, a, w;

  for (int i = 1; i < 9; i += 2) {
    low = fmin (low, v[i]);
    high = fmax (high, v[i]);
  }
  all_low = low;
  all_high = high;
  for (int i = 0; i < 9; i += 2) {
    all_low = fmin (all_low, v[i]);
    all_high = fmax (all_high, v[i]);
  }
  low += all_low;
  high += all_high;
  a = high > 0 ? sqrt (fmin (1, fmax (0, fmin (low, 2 - high) / high))) : 0;
  w = -a / 5;
  return (v[4] + w * (v[1] + v[3] + v[5] + v[7])) / (1 + 4 * w);
}

TEST (
    test_cas, "contrast adaptive sharpening is AMD's formula", .cpu_only = true)
{
  for (int type = 0; type < 2; type++) {
    Case c = {.fill = FILL_NOISE, .seed = 23};
    ImkLapsharpenConfig *k = &c.config;
    test_auto (TestImage) in, out;
    double maximum;

    *k = make_config (type ? IMK_TYPE_U16 : IMK_TYPE_U8, 301, 99, 1);
    k->method = IMK_LAPSHARPEN_METHOD_CAS;
    maximum = (1 << k->depth) - 1;
    in = make_input (&c);
    out = make_image (&c);
    /* noise of all amplitudes, so that all gains occur */
    for (uint32_t y = 0; y < k->height; y++)
      for (uint32_t x = 0; x < k->width; x++)
        imk_sample_put (&in.image, x, y, 0,
            floor (maximum / 2 +
                   (imk_sample_get (&in.image, x, y, 0) - maximum / 2) * x /
                       k->width));
    run (IMK_BACKEND_CPU, k, &in.image, &out.image);
    for (uint32_t y = 1; y + 1 < k->height; y++)
      for (uint32_t x = 1; x + 1 < k->width; x++) {
        double v[9], wanted, is = imk_sample_get (&out.image, x, y, 0);

        for (uint32_t i = 0; i < 9; i++)
          v[i] = imk_sample_get (&in.image, x + i % 3 - 1, y + i / 3 - 1, 0) /
                 maximum;
        wanted = fmin (maximum, fmax (0, maximum * amd_cas (v)));
        test_check (fabs (is - wanted) <= 0.5 + 4e-7 * maximum,
            "%s at (%u, %u): %.0f, AMD's formula gives %.4f", case_name (&c), x,
            y, is, wanted);
      }
  }
}

/* --- noise, masks and packed pixels --------------------------------------- */

/* A frame of one bright sample: |N| is 4, 2 and 1 times it in the 9 of 3x5
 * samples around, so the noise is sqrt (pi / 2) / 6 * 16 * 90 / 15. */
TEST (test_noise, "the threshold of one sigma is that of Immerkaer's sum",
    .cpu_only = true)
{
  ImkLapsharpenConfig config = make_config (IMK_TYPE_U8, 7, 5, 1);
  uint8_t in[5][7] = {{0}}, out[5][7];
  ImkImage image = {in, 7, 7, 5, 1, IMK_TYPE_U8, IMK_LOCATION_HOST};
  ImkImage result = image;
  const double sigma = sqrt (3.14159265358979 / 2) / 6 * 16 * 90 / 15;

  in[2][3] = 90; /* |L| is 360 there and 90 at its sides */
  result.data = out;
  config.threshold_unit = IMK_LAPSHARPEN_UNIT_SIGMA;
  config.output = IMK_LAPSHARPEN_OUTPUT_EDGES;
  for (int i = 0; i < 4; i++) {
    config.threshold =
        (i < 2 ? 90 : 360) / sigma / sqrt (20) * (i % 2 ? 1.001 : 0.999);
    run (IMK_BACKEND_CPU, &config, &image, &result);
    test_check (out[2][2] == (i < 1 ? 90 : 0) && out[2][3] == (i < 3 ? 255 : 0),
        "%.3f sigma: %u and %u", config.threshold, out[2][2], out[2][3]);
  }
}

/* 10 + 10 + 10 + 2 bits, from the low ones on, sharpened by hand. */
TEST (test_packed, "packed pixels keep their places", .cpu_only = true)
{
  static const uint32_t in[] = {100u | 200u << 10 | 1000u << 20 | 3u << 30,
      150u | 200u << 10 | 1000u << 20 | 1u << 30,
      150u | 180u << 10 | 900u << 20 | 0u << 30};
  static const uint32_t expected[] = {50u | 200u << 10 | 1000u << 20 | 3u << 30,
      200u | 220u << 10 | 1023u << 20 | 1u << 30,
      150u | 160u << 10 | 800u << 20 | 0u << 30};
  uint32_t out[3];
  ImkLapsharpenConfig config = make_config (IMK_TYPE_U16, 3, 1, 4);
  ImkImage image = {(void *) in, 12, 3, 1, 2, IMK_TYPE_U16, IMK_LOCATION_HOST};
  ImkImage result = image;

  result.data = out;
  config.depth = 10;
  config.channel_mask = 7;
  config.alpha_channel = 3;
  config.storage = IMK_LAPSHARPEN_STORAGE_PACKED_10;
  run (IMK_BACKEND_CPU, &config, &image, &result);
  for (int i = 0; i < 3; i++)
    test_check (out[i] == expected[i], "pixel %d: %08x, expected %08x", i,
        out[i], expected[i]);
}

/* --- gaussians ------------------------------------------------------------ */

enum { SIDE = 150, MARGIN = 130 };

/* Smooths the plane @values of SIDE x SIDE with the sampled weights @w of the
 * columns and @v of the rows, in float64; outside is the nearest sample. */
static void
smooth_exactly (
    const double *values, const double *w, const double *v, double *out)
{
  static double rows[SIDE * SIDE];

  for (int y = 0; y < SIDE; y++)
    for (int x = 0; x < SIDE; x++) {
      rows[y * SIDE + x] = 0;
      for (int j = -MARGIN; j <= MARGIN; j++)
        rows[y * SIDE + x] +=
            v[j + MARGIN] *
            values[(int) fmin (SIDE - 1, fmax (0, y + j)) * SIDE + x];
    }
  for (int y = 0; y < SIDE; y++)
    for (int x = 0; x < SIDE; x++)
      for (int j = -MARGIN; j <= MARGIN; j++)
        out[y * SIDE + x] +=
            w[j + MARGIN] *
            rows[y * SIDE + (int) fmin (SIDE - 1, fmax (0, x + j))];
}

/* The Gaussian of @radius or radius^2 times its Laplacian, of @values. */
static void
gauss_exactly (const double *values, double radius, bool is_log, double *out)
{
  double g[2 * MARGIN + 1], curve[2 * MARGIN + 1], sum = 0, m2 = 0, m4 = 0;

  for (int j = -MARGIN; j <= MARGIN; j++)
    sum += g[j + MARGIN] = exp (-j * j / (2 * radius * radius));
  for (int j = -MARGIN; j <= MARGIN; j++) {
    g[j + MARGIN] /= sum;
    m2 += j * j * g[j + MARGIN];
    m4 += pow (j, 4) * g[j + MARGIN];
  }
  /* the second derivative, so that it has no mean and makes 2 of x^2 */
  for (int j = -MARGIN; j <= MARGIN; j++)
    curve[j + MARGIN] =
        radius * radius * 2 / (m4 - m2 * m2) * (j * j - m2) * g[j + MARGIN];
  memset (out, 0, SIDE * SIDE * sizeof (*out));
  smooth_exactly (values, is_log ? curve : g, g, out);
  if (is_log)
    smooth_exactly (values, g, curve, out);
}

/* A slanted edge, or noise. @bound: of the full scale, a part of */
static void
check_gauss (double radius, bool is_log, bool noise, double bound)
{
  static double values[SIDE * SIDE], expected[SIDE * SIDE];
  Case c = {.fill = FILL_NOISE, .seed = 31};
  test_auto (TestImage) in;
  double worst = 0;
  test_autofree float *plane = NULL;

  c.config = make_config (IMK_TYPE_U16, SIDE, SIDE, 1);
  c.config.method =
      is_log ? IMK_LAPSHARPEN_METHOD_LOG : IMK_LAPSHARPEN_METHOD_UNSHARP;
  c.config.radius = radius;
  in = make_input (&c);
  for (uint32_t y = 0; y < SIDE; y++)
    for (uint32_t x = 0; x < SIDE; x++) {
      if (!noise)
        imk_sample_put (&in.image, x, y, 0, 8 * x > y + 4 * SIDE ? 65535 : 0);
      values[y * SIDE + x] = imk_sample_get (&in.image, x, y, 0);
    }
  plane = imk_lapsharpen_reference_smooth (&c.config, &in.image, 0);
  gauss_exactly (values, radius, is_log, expected);
  for (int i = 0; i < SIDE * SIDE; i++) {
    double away = fabs (plane[i] - expected[i]) / 65535;

    if (!(away <= worst)) /* fmax () in this loop ends gcc 12 for aarch64 */
      worst = away;
  }
  test_check (worst <= bound,
      "radius %g, %s, %s: %.6f of the full scale from float64, more than %g",
      radius, is_log ? "log" : "unsharp", noise ? "noise" : "an edge", worst,
      bound);
}

TEST (test_gauss, "the Gaussian and its Laplacian are those of float64",
    .cpu_only = true)
{
  /* as docs/reference/lapsharpen.md says, by radius: to 2.5, 10 / 3, and 20 */
  static const double bounds[2][3] = {
      {0.00002, 0.002, 0.001}, {0.001, 0.009, 0.004}};

  for (size_t i = 0; i < LENGTH (radii); i++)
    for (int j = 0; j < 4; j++) {
      int range = radii[i] < 2.5 ? 0 : radii[i] < 10 / 3.0 ? 1 : 2;

      check_gauss (radii[i], j / 2, j % 2, bounds[j / 2][range]);
    }
}

/* --- contract ------------------------------------------------------------- */

static void
expect_config_error (const ImkLapsharpenConfig *config, const char *words)
{
  ImkLapsharpen *self = NULL;

  test_error (
      imk_lapsharpen_new (IMK_BACKEND_CPU, config, &self, test_new_error ()),
      IMK_ERROR_CONFIG, words);
  test_check (!self, "%s: self was touched", words);
  test_check (imk_lapsharpen_new (IMK_BACKEND_CPU, config, &self, NULL) ==
                  IMK_ERROR_CONFIG,
      "%s: another status without an error", words);
}

#define EXPECT(words, ...) \
  do { \
    ImkLapsharpenConfig c = make_config (IMK_TYPE_U8, 8, 8, 4); \
    c.channel_mask = 7; \
    c.alpha_channel = 3; \
    __VA_ARGS__; \
    expect_config_error (&c, words); \
  } while (0)

TEST (test_validation, "every wrong parameter is refused in words")
{
  EXPECT ("0 x 8 pixels", c.width = 0);
  EXPECT ("65536 x 8 pixels", c.width = 65536);
  EXPECT ("8 x 0 pixels", c.height = 0);
  EXPECT ("8 x 65536 pixels", c.height = 65536);
  EXPECT ("type f64", c.type = IMK_TYPE_F64);
  EXPECT ("type ?", c.type = (ImkType) 99);
  EXPECT ("0 channels", c.channels = 0);
  EXPECT ("5 channels", c.channels = 5);
  EXPECT ("depth of 0 bits", c.depth = 0);
  EXPECT ("depth of 9 bits", c.depth = 9);
  EXPECT ("depth of 17 bits", c.type = IMK_TYPE_U16, c.depth = 17);
  EXPECT ("depth 8 and shift 1", c.shift = 1);
  EXPECT ("shift 4294967295", c.shift = UINT32_MAX);
  EXPECT ("mask 0x17", c.channel_mask = 0x17);
  EXPECT ("alpha channel -2", c.alpha_channel = -2);
  EXPECT ("alpha channel 4", c.alpha_channel = 4);
  EXPECT ("Channel 2 is the alpha", c.alpha_channel = 2);
  EXPECT ("amount is -0.1", c.amount = -0.1);
  EXPECT ("amount is 10.1", c.amount = 10.1);
  EXPECT ("amount is nan", c.amount = (double) NAN);
  EXPECT ("amount is inf", c.amount = (double) INFINITY);
  EXPECT ("neighbours is 5", c.neighbours = 5);
  EXPECT ("border has", c.border = (ImkLapsharpenBorder) 5);
  EXPECT ("alpha has", c.alpha = (ImkLapsharpenAlpha) 3);
  EXPECT ("clamp has", c.clamp = (ImkLapsharpenClamp) 2);
  EXPECT ("method has", c.method = (ImkLapsharpenMethod) 5);
  EXPECT ("radius is 0.29", c.radius = 0.29);
  EXPECT ("radius is 20.1", c.radius = 20.1);
  EXPECT ("radius is nan", c.radius = (double) NAN);
  EXPECT ("radius is -inf", c.radius = (double) -INFINITY);
  EXPECT ("has no kernel", c.method = IMK_LAPSHARPEN_METHOD_KERNEL);
  EXPECT ("kernel has 4 rows", c.method = IMK_LAPSHARPEN_METHOD_KERNEL,
      c.kernel_size = 4);
  EXPECT ("Weight 1 of row 2 of the kernel is nan",
      c.method = IMK_LAPSHARPEN_METHOD_KERNEL, c.kernel_size = 3,
      c.kernel[7] = NAN);
  EXPECT ("alpha=weighted does not go", c.alpha = IMK_LAPSHARPEN_ALPHA_WEIGHTED,
      c.method = IMK_LAPSHARPEN_METHOD_KERNEL, c.kernel_size = 3);
  EXPECT ("output has", c.output = (ImkLapsharpenOutput) 2);
  EXPECT ("threshold is -1", c.threshold = -1);
  EXPECT ("threshold is nan", c.threshold = (double) NAN);
  EXPECT ("threshold-unit has", c.threshold_unit = (ImkLapsharpenUnit) 2);
  EXPECT ("coring has", c.coring = (ImkLapsharpenCoring) 2);
  EXPECT ("33 areas", c.n_areas = 33);
  EXPECT ("Channel 1 has the range 20 to 10", c.range_low[1] = 20,
      c.range_high[1] = 10);
  EXPECT ("Channel 0 has the range 16 to 256", c.range_low[0] = 16,
      c.range_high[0] = 256);
  EXPECT ("storage has", c.storage = IMK_LAPSHARPEN_STORAGE_BIG_ENDIAN);
  EXPECT ("Packed pixels have", c.storage = IMK_LAPSHARPEN_STORAGE_PACKED_10);
  EXPECT ("storage has", c.type = IMK_TYPE_U16,
      c.storage = (ImkLapsharpenStorage) 3);
  {
    static const uint16_t table[65536] = {[65535] = 256};

    EXPECT ("needs both", c.decode = table);
    EXPECT ("needs both", c.encode = table);
    EXPECT ("gives 256 for the value 65535", c.decode = c.encode = table);
  }
  EXPECT ("border-value 256", c.border = IMK_LAPSHARPEN_BORDER_CONSTANT,
      c.border_value = 256);
}

TEST (test_unknown_backend, "a backend that does not exist is refused")
{
  ImkLapsharpenConfig config = make_config (IMK_TYPE_U8, 1, 1, 1);
  ImkLapsharpen *self = NULL;

  test_error (
      imk_lapsharpen_new ((ImkBackend) 9, &config, &self, test_new_error ()),
      IMK_ERROR_UNAVAILABLE, "backend of the number 9");
  imk_lapsharpen_free (NULL);
}

TEST (test_update, "an update that fails leaves the old parameters in force")
{
  ImkLapsharpenConfig config = make_config (IMK_TYPE_U8, 3, 1, 1), bad = config;
  uint8_t in[] = {10, 50, 10}, out[3];
  ImkImage image = {in, 3, 3, 1, 1, IMK_TYPE_U8, IMK_LOCATION_HOST};
  ImkImage result = image;
  test_autoptr (ImkLapsharpen) self = NULL;

  result.data = out;
  test_ok (
      imk_lapsharpen_new (IMK_BACKEND_CPU, &config, &self, test_new_error ()));
  bad.amount = 11;
  test_error (imk_lapsharpen_update (self, &bad, test_new_error ()),
      IMK_ERROR_CONFIG, "amount is 11");
  bad = config;
  bad.width = 4;
  test_error (imk_lapsharpen_update (self, &bad, test_new_error ()),
      IMK_ERROR_CONFIG, "width cannot change from 3 to 4");
  bad = config;
  bad.n_threads = 5;
  test_error (imk_lapsharpen_update (self, &bad, test_new_error ()),
      IMK_ERROR_CONFIG, "n-threads cannot change from 0 to 5");
  test_ok (
      imk_lapsharpen_process (self, &image, &result, NULL, test_new_error ()));
  test_check (out[1] == 130, "with the old amount: %u", out[1]);
  config.amount = 2;
  test_ok (imk_lapsharpen_update (self, &config, test_new_error ()));
  test_ok (
      imk_lapsharpen_process (self, &image, &result, NULL, test_new_error ()));
  test_check (out[1] == 210, "with the new amount: %u", out[1]);
}

TEST (test_images, "images that do not fit or overlap are refused")
{
  static uint16_t data[64];
  ImkLapsharpenConfig config = make_config (IMK_TYPE_U16, 4, 4, 1);
  const ImkImage image = {data, 8, 4, 4, 1, IMK_TYPE_U16, IMK_LOCATION_HOST};
  ImkImage in = image, out = image;
  test_autoptr (ImkLapsharpen) self = NULL;

  test_ok (
      imk_lapsharpen_new (IMK_BACKEND_CPU, &config, &self, test_new_error ()));
#define REFUSED(words) \
  test_error ( \
      imk_lapsharpen_process (self, &in, &out, NULL, test_new_error ()), \
      IMK_ERROR_IMAGE, words)
  REFUSED ("overlaps");
  out.data = data + 15; /* the last input sample is the first output sample */
  REFUSED ("overlaps");
  in.data = data + 30;
  REFUSED ("overlaps");
  in.data = data + 31;
  test_ok (imk_lapsharpen_process (self, &in, &out, NULL, test_new_error ()));
  in.width = 3;
  REFUSED ("The input image is 3x4");
  in = image;
  out.type = IMK_TYPE_U8;
  REFUSED ("1 x u8 a pixel");
  out.type = IMK_TYPE_U16;
  out.stride = 6;
  REFUSED ("The output image has a stride of 6");
  out.stride = 8;
  out.data = NULL;
  REFUSED ("The output image has no data");
  out.data = data + 32;
  out.location = IMK_LOCATION_DEVICE;
  REFUSED ("device memory");
#undef REFUSED
}

TEST (test_no_focus, "there is no focus without a measured frame")
{
  ImkLapsharpenConfig config = make_config (IMK_TYPE_U8, 1, 1, 1);
  uint8_t in = 5, out;
  ImkImage image = {&in, 1, 1, 1, 1, IMK_TYPE_U8, IMK_LOCATION_HOST};
  ImkImage result = image;
  ImkLapsharpenFocus focus;
  test_autoptr (ImkLapsharpen) self = NULL;

  result.data = &out;
  config.measure_focus = true;
  test_ok (
      imk_lapsharpen_new (IMK_BACKEND_CPU, &config, &self, test_new_error ()));
  test_error (imk_lapsharpen_get_focus (self, &focus, test_new_error ()),
      IMK_ERROR_CONFIG, "measure-focus");
  test_ok (
      imk_lapsharpen_process (self, &image, &result, NULL, test_new_error ()));
  test_ok (imk_lapsharpen_get_focus (self, &focus, test_new_error ()));
  config.measure_focus = false;
  test_ok (imk_lapsharpen_update (self, &config, test_new_error ()));
  test_ok (
      imk_lapsharpen_process (self, &image, &result, NULL, test_new_error ()));
  test_error (imk_lapsharpen_get_focus (self, &focus, test_new_error ()),
      IMK_ERROR_CONFIG, "measure-focus");
}

/* --- failures of the device ----------------------------------------------- */

/* One life of an object. Returns: the first failure */
static ImkStatus
live (const ImkLapsharpenConfig *config, const ImkImage *in, ImkImage *out,
    ImkError *error)
{
  ImkLapsharpenFocus focus;
  test_autoptr (ImkLapsharpen) self = NULL;
  ImkStatus status =
      imk_lapsharpen_new (IMK_BACKEND_CUDA, config, &self, error);

  if (status == IMK_OK)
    status = imk_lapsharpen_process (self, in, out, NULL, error);
  if (status == IMK_OK)
    status = imk_lapsharpen_process (self, in, out, NULL, error);
  if (status == IMK_OK && config->measure_focus)
    status = imk_lapsharpen_get_focus (self, &focus, error);
  return status;
}

static void
fail_each_call (const ImkDevice *device, const ImkLapsharpenConfig *config,
    const ImkImage *in, ImkImage *out, bool forever)
{
  unsigned long n_calls, nth = 0;

  do {
    ImkError error = {0};
    ImkStatus status;

    imk_inject_failure (++nth, forever);
    status = live (config, in, out, &error);
    n_calls = imk_inject_failure (0, false);
    test_check (n_calls < nth || (status != IMK_OK && error.message[0]),
        "call %lu failed, the status is %d, the message \"%s\"", nth, status,
        error.message);
    test_check (nth < 100, "after %lu calls no end of failing", nth);
  } while (n_calls >= nth);
  test_check (nth > 5, "only %lu calls could fail", nth - 1);
}

TEST (test_cuda_failures, "every CUDA call may fail and says so")
{
  Case c = {.fill = FILL_NOISE};
  const ImkDevice *device;
  test_auto (TestImage) in, out;
  test_auto (ImkImage) device_in, device_out;

  test_need_cuda ();
  test_ok (imk_device_get (&device, test_new_error ()));
  c.config = make_config (IMK_TYPE_U8, 33, 9, 1);
  in = make_input (&c);
  out = make_image (&c);
  device_in = test_to_device (&in);
  device_out = test_to_device (&out);
  for (int i = 0; i < 16; i++) {
    static const uint8_t mask[33 * 9];
    static const uint16_t table[65536];

    c.config.threshold_unit =
        i & 8 ? IMK_LAPSHARPEN_UNIT_SIGMA : IMK_LAPSHARPEN_UNIT_COUNTS;
    c.config.threshold = 1;
    c.config.mask = i & 8 ? mask : NULL;
    c.config.decode = c.config.encode = i & 8 ? table : NULL;
    c.config.measure_focus = i & 1;
    c.config.method =
        i & 4 ? IMK_LAPSHARPEN_METHOD_UNSHARP : IMK_LAPSHARPEN_METHOD_LAPLACIAN;
    fail_each_call (device, &c.config, &device_in, &device_out, i & 2);
    test_ok (live (&c.config, &device_in, &device_out, test_new_error ()));
  }
}
