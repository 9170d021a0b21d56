/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* float32 frames. CPU and CUDA give the same bits; a float64 model of the
 * header's formulas differs by a rounding of each step: 2e-6 of the largest
 * intermediate value, which is bounded by the gain of the filter. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/failures.h"
#include "imk/lapsharpen.h"
#include "kernel-test.h"
#include "lapsharpen/lapsharpen-float.h"

TEST_DEFINE_AUTO_POINTER (ImkLapsharpen, imk_lapsharpen_free)

enum { MAX_REACH = 160, N_CASES = TEST_SANITIZED ? 60 : 400 };

static ImkLapsharpenConfig
make_config (uint32_t width, uint32_t height, uint32_t channels)
{
  ImkLapsharpenConfig config;

  imk_lapsharpen_config_init (&config);
  config.width = width;
  config.height = height;
  config.type = IMK_TYPE_F32;
  config.channels = channels;
  config.channel_mask = (1u << channels) - 1;
  return config;
}

static TestImage
make_image (const ImkLapsharpenConfig *k)
{
  return test_image_new (k->type, k->width, k->height, k->channels, 12);
}

static float *
at (const TestImage *t, uint32_t x, uint32_t y, uint32_t i)
{
  return (float *) (void *) ((uint8_t *) t->image.data + y * t->image.stride) +
         x * t->image.channels + i;
}

static double
uniform (uint64_t *seed)
{
  return (double) (test_random (seed) >> 11) / 9007199254740992.0;
}

/* Numbers about 0 of the size @scale. */
static TestImage
make_noise (const ImkLapsharpenConfig *k, double scale, uint64_t seed)
{
  TestImage t = make_image (k);

  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width * k->channels; x++)
      at (&t, 0, y, 0)[x] = (float) (scale * (uniform (&seed) - 0.5));
  return t;
}

static ImkLapsharpenFocus
run (ImkBackend backend, const ImkLapsharpenConfig *k, const TestImage *in,
    TestImage *out)
{
  ImkLapsharpenFocus focus = {0};
  test_autoptr (ImkLapsharpen) self = NULL;

  test_ok (imk_lapsharpen_new (backend, k, &self, test_new_error ()));
  if (backend == IMK_BACKEND_CUDA) {
    test_auto (ImkImage) device_in = test_to_device (in);
    test_auto (ImkImage) device_out = test_to_device (out);

    test_ok (imk_lapsharpen_process (
        self, &device_in, &device_out, NULL, test_new_error ()));
    test_from_device (&device_out, out);
  } else {
    test_ok (imk_lapsharpen_process (
        self, &in->image, &out->image, NULL, test_new_error ()));
  }
  if (k->measure_focus)
    test_ok (imk_lapsharpen_get_focus (self, &focus, test_new_error ()));
  return focus;
}

/* --- the model in float64 ------------------------------------------------- */

static int
mirrored (int i, int n, ImkLapsharpenBorder border)
{
  while (
      border == IMK_LAPSHARPEN_BORDER_REFLECT101 && n > 1 && (i < 0 || i >= n))
    i = i < 0 ? -i : 2 * n - 2 - i;
  while (border == IMK_LAPSHARPEN_BORDER_REFLECT && (i < 0 || i >= n))
    i = i < 0 ? -i - 1 : 2 * n - 1 - i;
  return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static double
value_at (
    const ImkLapsharpenConfig *k, const TestImage *in, int x, int y, uint32_t i)
{
  const int w = (int) k->width, h = (int) k->height;

  if (x < 0 || y < 0 || x >= w || y >= h) {
    if (k->border == IMK_LAPSHARPEN_BORDER_ZERO)
      return 0;
    if (k->border == IMK_LAPSHARPEN_BORDER_CONSTANT)
      return k->border_value;
  }
  return (double) *at (in, (uint32_t) mirrored (x, w, k->border),
      (uint32_t) mirrored (y, h, k->border), i);
}

/* The quadratic B-spline. */
static double
spline (double u)
{
  u = fabs (u);
  return u <= 0.5 ? 0.75 - u * u : u < 1.5 ? (1.5 - u) * (1.5 - u) / 2 : 0;
}

/* What the pixels -MAX_REACH..n + MAX_REACH contribute to pixel @x in one
 * direction: shrink, blur or its second derivative, grow. */
static void
set_response (double radius, bool second, int x, double *weights)
{
  const int wide = (int) floor (3 * radius / 5);
  const int d = wide > 1 ? wide : radius >= 2.5 ? 2 : 1;
  const double scale = radius * radius / (d * d);
  const double variance = d > 1 ? scale - 0.5 : scale;
  const int reach = (int) ceil (4 * sqrt (variance));
  const int middle = (x + d / 2) / d, halo = d > 1 ? 2 : 0;
  double g[2 * MAX_REACH + 1], sum = 0, m2 = 0, m4 = 0;

  for (int j = -reach; j <= reach; j++)
    sum += exp (-j * j / (2 * variance));
  for (int j = -reach; j <= reach; j++) {
    g[j + reach] = exp (-j * j / (2 * variance)) / sum;
    m2 += j * j * g[j + reach];
    m4 += (double) (j * j) * (j * j) * g[j + reach];
  }
  /* of the sum 0; the sum of j^2 times it is 2 scale */
  for (int j = -reach; j <= reach && second; j++)
    g[j + reach] *= 2 * scale * (j * j - m2) / (m4 - m2 * m2);
  for (int low = middle - halo; low <= middle + halo; low++)
    for (int j = -reach; j <= reach; j++) {
      const double grown = d > 1 ? spline ((double) (x - low * d) / d) : 1;

      for (int i = -2 * d; i <= 2 * d; i++)
        weights[MAX_REACH + (low + j) * d + i] +=
            grown * g[j + reach] *
            (d > 1 ? spline ((double) i / d) / d : i == 0);
    }
}

static double *
new_responses (double radius, bool second, int n)
{
  const size_t row = (size_t) n + 2 * MAX_REACH;
  double *all = calloc (row * (size_t) n, sizeof (*all));

  for (int x = 0; x < n; x++)
    set_response (radius, second, x, all + (size_t) x * row);
  return all;
}

/* Adds @wx along rows and @wy along columns to @sum, for all pixels. */
static void
convolve (const ImkLapsharpenConfig *k, const TestImage *in, uint32_t i,
    const double *wx, const double *wy, double *sum)
{
  const int w = (int) k->width, h = (int) k->height;
  const int columns = w + 2 * MAX_REACH, rows = h + 2 * MAX_REACH;
  double *along = calloc ((size_t) rows * (size_t) w, sizeof (*along));

  for (int y = 0; y < rows; y++)
    for (int n = 0; n < columns; n++) {
      const double v = value_at (k, in, n - MAX_REACH, y - MAX_REACH, i);

      for (int x = 0; x < w; x++)
        along[y * w + x] += wx[x * columns + n] * v;
    }
  for (int y = 0; y < h; y++)
    for (int n = 0; n < rows; n++)
      for (int x = 0; x < w && wy[y * rows + n] != 0; x++)
        sum[y * w + x] += wy[y * rows + n] * along[n * w + x];
  free (along);
}

/* The smoothed channel of method=unsharp, or r^2 times the Laplacian of it. */
static double *
smooth_of (const ImkLapsharpenConfig *k, const TestImage *in, uint32_t i)
{
  const int w = (int) k->width, h = (int) k->height;
  double *sum = calloc ((size_t) w * (size_t) h, sizeof (*sum));
  double *x0 = new_responses (k->radius, false, w);
  double *y0 = new_responses (k->radius, false, h);
  double *x2 = new_responses (k->radius, true, w);
  double *y2 = new_responses (k->radius, true, h);

  if (k->method == IMK_LAPSHARPEN_METHOD_LOG) {
    convolve (k, in, i, x2, y0, sum);
    convolve (k, in, i, x0, y2, sum);
  } else {
    convolve (k, in, i, x0, y0, sum);
  }
  free (x0);
  free (y0);
  free (x2);
  free (y2);
  return sum;
}

static double
laplacian_of (
    const ImkLapsharpenConfig *k, const TestImage *in, int x, int y, uint32_t i)
{
  double l = 0;

  for (int n = 0; n < 9; n++)
    if (n % 2 || k->neighbours == 8)
      l += value_at (k, in, x, y, i) -
           value_at (k, in, x + n % 3 - 1, y + n / 3 - 1, i);
  return l;
}

static double
kernel_of (
    const ImkLapsharpenConfig *k, const TestImage *in, int x, int y, uint32_t i)
{
  const int size = (int) k->kernel_size, reach = size / 2;
  double sum = -value_at (k, in, x, y, i);

  for (int n = 0; n < size * size; n++)
    sum += (double) k->kernel[n] *
           value_at (k, in, x + n % size - reach, y + n / size - reach, i);
  return sum;
}

static double
noise_of (const ImkLapsharpenConfig *k, const TestImage *in)
{
  static const int mask[9] = {1, -2, 1, -2, 4, -2, 1, -2, 1};
  double sum = 0, n = 0;

  for (int y = 1; y + 1 < (int) k->height; y++)
    for (int x = 1; x + 1 < (int) k->width; x++)
      for (uint32_t i = 0; i < k->channels; i++) {
        double total = 0;

        for (int j = 0; j < 9; j++)
          total += mask[j] * value_at (k, in, x + j % 3 - 1, y + j / 3 - 1, i);
        sum += fabs (total);
        n++;
      }
  return n > 0 ? sqrt (acos (-1) / 2) / 6 * sum / n : 0;
}

/* @near: (out): |L| is so near to the threshold that either side is right */
static double
model (const ImkLapsharpenConfig *k, const TestImage *in, int x, int y,
    uint32_t i, double l, double threshold, double tolerance, bool *near)
{
  const double v = value_at (k, in, x, y, i);
  const double dark = k->clamp                     ? 0
                      : k->halo_dark == UINT32_MAX ? INFINITY
                                                   : k->halo_dark;
  const double bright = k->clamp                       ? 0
                        : k->halo_bright == UINT32_MAX ? INFINITY
                                                       : k->halo_bright;
  double low = v, high = v, out;
  bool inside = k->n_areas == 0;

  for (uint32_t n = 0; n < k->n_areas; n++)
    inside = inside ||
             ((uint32_t) x >= k->areas[n].x && (uint32_t) y >= k->areas[n].y &&
                 (uint32_t) x < k->areas[n].x + k->areas[n].width &&
                 (uint32_t) y < k->areas[n].y + k->areas[n].height);
  *near = fabs (fabs (l) - threshold) <= tolerance;
  if (!inside)
    return v;
  if (fabs (l) < threshold)
    l = 0;
  else if (k->coring == IMK_LAPSHARPEN_CORING_SOFT)
    l -= copysign (threshold, l);
  out = v + k->amount * l;
  for (int n = 0; n < 9; n++) {
    const double near_by = value_at (k, in, x + n % 3 - 1, y + n / 3 - 1, i);

    low = fmin (low, near_by);
    high = fmax (high, near_by);
  }
  out = fmin (fmax (out, low - dark), high + bright);
  if (k->output == IMK_LAPSHARPEN_OUTPUT_EDGES)
    out = fabs (k->amount * l);
  return k->mask ? v + k->mask[(size_t) y * k->width + (size_t) x] / 255.0 *
                           (out - v)
                 : out;
}

/* Settings of all kinds. @mask: room for one */
static ImkLapsharpenConfig
make_random (uint64_t *seed, double scale, uint8_t *mask)
{
  static const ImkLapsharpenMethod methods[] = {IMK_LAPSHARPEN_METHOD_LAPLACIAN,
      IMK_LAPSHARPEN_METHOD_KERNEL, IMK_LAPSHARPEN_METHOD_UNSHARP,
      IMK_LAPSHARPEN_METHOD_LOG};
  static const double radii[] = {0.3, 1, 2.4, 2.5, 4, 5, 7.3, 20};
  ImkLapsharpenConfig k = make_config (1 + test_random (seed) % 70,
      1 + test_random (seed) % 40, 1 + test_random (seed) % 4);

  k.method = methods[test_random (seed) % 4];
  k.radius = radii[test_random (seed) % 8];
  k.amount = 3 * uniform (seed);
  k.neighbours = test_random (seed) % 2 ? 4 : 8;
  k.border = test_random (seed) % (IMK_LAPSHARPEN_BORDER_REFLECT + 1);
  k.border_value = 3;
  k.threshold_unit = test_random (seed) % 2;
  k.coring = test_random (seed) % 2;
  k.threshold = test_random (seed) % 2 ? uniform (seed) : 0;
  if (k.threshold_unit == IMK_LAPSHARPEN_UNIT_COUNTS)
    k.threshold *= scale;
  k.clamp = test_random (seed) % 3 == 0;
  k.output = test_random (seed) % 4 == 0;
  if (test_random (seed) % 4 == 0)
    k.halo_dark = 1;
  if (test_random (seed) % 4 == 0)
    k.halo_bright = 2;
  k.kernel_size = 3 + 2 * (test_random (seed) % 3);
  for (uint32_t i = 0; i < k.kernel_size * k.kernel_size; i++)
    k.kernel[i] = (float) (uniform (seed) - 0.4);
  if (test_random (seed) % 4 == 0) {
    k.n_areas = 1;
    k.areas[0] = (ImkLapsharpenArea){k.width / 3, k.height / 4, 20, 9};
  }
  for (uint32_t i = 0; i < k.width * k.height; i++)
    mask[i] = (uint8_t) (test_random (seed) % 4 ? test_random (seed) : 255);
  if (test_random (seed) % 4 == 0)
    k.mask = mask;
  k.measure_focus = true;
  return k;
}

static const char *
name_of (const ImkLapsharpenConfig *k, uint64_t seed)
{
  static char name[300];

  snprintf (name, sizeof (name),
      "case %llu: %ux%ux%u method %d radius %g amount %g neighbours %u border "
      "%d threshold %g unit %d coring %d clamp %d output %d halos %u %u",
      (unsigned long long) seed, k->width, k->height, k->channels,
      (int) k->method, k->radius, k->amount, k->neighbours, (int) k->border,
      k->threshold, (int) k->threshold_unit, (int) k->coring, (int) k->clamp,
      (int) k->output, k->halo_dark, k->halo_bright);
  return name;
}

/* Returns: the gain of L for white noise, as the header has it */
static double
gain_of (const ImkLapsharpenConfig *k)
{
  const double pi = acos (-1), n = k->neighbours;
  const uint32_t size = k->kernel_size * k->kernel_size;
  double sum = 0;

  if (k->method == IMK_LAPSHARPEN_METHOD_UNSHARP)
    return sqrt (1 - 3 / (4 * pi * pow (fmax (k->radius, 0.7), 2)));
  if (k->method == IMK_LAPSHARPEN_METHOD_LOG)
    return 1 / (k->radius * sqrt (2 * pi));
  if (k->method == IMK_LAPSHARPEN_METHOD_LAPLACIAN)
    return sqrt (n * n + n);
  for (uint32_t i = 0; i < size; i++)
    sum += pow ((double) k->kernel[i] - (i == size / 2), 2);
  return sqrt (sum);
}

static void
check_against_model (const ImkLapsharpenConfig *k, const TestImage *in,
    const TestImage *out, double scale, uint64_t seed)
{
  const bool smooths = k->method == IMK_LAPSHARPEN_METHOD_UNSHARP ||
                       k->method == IMK_LAPSHARPEN_METHOD_LOG;
  const double tolerance = 2e-6 * (scale + 3) * 25;
  const double threshold = k->threshold_unit == IMK_LAPSHARPEN_UNIT_SIGMA
                               ? k->threshold * gain_of (k) * noise_of (k, in)
                               : k->threshold;

  for (uint32_t i = 0; i < k->channels; i++) {
    double *smooth = smooths ? smooth_of (k, in, i) : NULL;

    for (int y = 0; y < (int) k->height; y++)
      for (int x = 0; x < (int) k->width; x++) {
        const double v = value_at (k, in, x, y, i);
        const size_t pixel = (size_t) y * k->width + (size_t) x;
        const double found = (double) *at (out, (uint32_t) x, (uint32_t) y, i);
        double l, expected;
        bool near;

        if (k->method == IMK_LAPSHARPEN_METHOD_KERNEL)
          l = kernel_of (k, in, x, y, i);
        else if (smooths)
          l = (k->method == IMK_LAPSHARPEN_METHOD_LOG ? 0 : v) - smooth[pixel];
        else
          l = laplacian_of (k, in, x, y, i);
        expected = model (k, in, x, y, i, l, threshold, tolerance, &near);
        if (!near && !(fabs (found - expected) <= tolerance)) {
          free (smooth);
          test_fail ("%s: (%d, %d) channel %u is %.9g, the model has %.9g",
              name_of (k, seed), x, y, i, found, expected);
        }
      }
    free (smooth);
  }
}

static void
check_focus (const ImkLapsharpenConfig *k, const TestImage *in,
    const ImkLapsharpenFocus *focus, uint64_t seed)
{
  double sum = 0, squares = 0, n = 0, mean, variance;

  for (int y = 0; y < (int) k->height; y++)
    for (int x = 0; x < (int) k->width; x++)
      for (uint32_t i = 0; i < k->channels; i++) {
        const double l = laplacian_of (k, in, x, y, i);

        sum += l;
        squares += l * l;
        n++;
      }
  mean = sum / n;
  variance = squares / n - mean * mean;
  test_check (
      (double) focus->n_samples == n &&
          fabs (focus->mean - mean) <= 1e-5 * sqrt (squares / n) &&
          fabs (focus->variance - variance) <= 1e-5 * squares / n + 1e-12,
      "%s: focus %g %g of %llu, the model has %g %g", name_of (k, seed),
      focus->mean, focus->variance, (unsigned long long) focus->n_samples, mean,
      variance);
}

TEST (test_model, "float32 follows a float64 model for random settings",
    .cpu_only = true)
{
  static uint8_t mask[70 * 40];

  for (uint64_t n = 1; n <= N_CASES; n++) {
    uint64_t seed = n;
    const double scale = n % 3 ? 1 : 40;
    const ImkLapsharpenConfig k = make_random (&seed, scale, mask);
    test_auto (TestImage) in = make_noise (&k, scale, seed);
    test_auto (TestImage) out = make_image (&k);
    const ImkLapsharpenFocus focus = run (IMK_BACKEND_CPU, &k, &in, &out);

    check_against_model (&k, &in, &out, scale, n);
    check_focus (&k, &in, &focus, n);
  }
}

/* --- bits ----------------------------------------------------------------- */

static void
spoil (const TestImage *t, uint64_t seed)
{
  static const float values[] = {NAN, INFINITY, -INFINITY, 3e38f, -0.0f};

  for (int i = 0; i < 5; i++)
    *at (t, (uint32_t) (test_random (&seed) % t->image.width),
        (uint32_t) (test_random (&seed) % t->image.height), 0) = values[i];
}

static void
check_same (const TestImage *a, const TestImage *b, const char *what)
{
  test_check (memcmp (a->block, b->block, a->block_size) == 0,
      "%s: the bytes differ", what);
}

TEST (test_threads, "any number of threads gives the same bits, NaN included",
    .cpu_only = true)
{
  static uint8_t mask[70 * 40];

  for (uint64_t n = 1; n <= N_CASES; n++) {
    uint64_t seed = n;
    ImkLapsharpenConfig k = make_random (&seed, 1, mask);
    test_auto (TestImage) in, one, many;
    ImkLapsharpenFocus a, b;

    k.mask = NULL;
    k.height *= 20; /* more than a band */
    in = make_noise (&k, 1, seed);
    one = make_image (&k);
    many = make_image (&k);
    spoil (&in, seed);
    k.n_threads = 1;
    a = run (IMK_BACKEND_CPU, &k, &in, &one);
    k.n_threads = 5;
    b = run (IMK_BACKEND_CPU, &k, &in, &many);
    check_same (&one, &many, name_of (&k, n));
    test_check (a.mean == b.mean && a.variance == b.variance &&
                    a.n_samples == b.n_samples,
        "%s: the focus differs", name_of (&k, n));
  }
}

/* A sample at a time, with the functions that the device runs as well. */
static void
run_samples (
    const ImkLapsharpenConfig *k, const TestImage *in, const TestImage *out)
{
  const ImkLapsharpenRule rule = imk_lapsharpen_rule (k);
  const size_t n = imk_lapsharpen_plan (&rule, NULL).n_floats;
  float *arena = malloc (n * sizeof (*arena));
  const ImkLapsharpenPlan plan = imk_lapsharpen_plan (&rule, arena);
  const ImkLapsharpenPlane *f = &plan.frame;
  const int c = (int) k->channels;

  for (int y = f->y0; y < f->y1; y++)
    for (int x = f->x0; x < f->x1; x++)
      for (int i = 0; i < c; i++)
        imk_lapsharpen_pixel (f, x, y)[i] = imk_lapsharpen_padded (
            &rule, in->image.data, in->image.stride, x, y, i);
  for (uint32_t p = 0; p < plan.n_passes; p++) {
    const ImkLapsharpenPlane *to = &plan.passes[p].out;

    for (int y = to->y0; y < to->y1; y++)
      for (int x = to->x0; x < to->x1; x++)
        for (int i = 0; i < c; i++)
          imk_lapsharpen_pixel (to, x, y)[i] =
              imk_lapsharpen_passed (&plan.passes[p], x, y, i);
  }
  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width; x++)
      for (uint32_t i = 0; i < k->channels; i++) {
        const float *v = imk_lapsharpen_pixel (f, (int) x, (int) y) + i;
        const float smooth =
            rule.smooth.step
                ? imk_lapsharpen_pixel (&plan.smooth, (int) x, (int) y)[i]
                : 0;
        const uint32_t weight = !imk_lapsharpen_in_areas (&rule, x, y) ? 0
                                : k->mask ? k->mask[y * k->width + x]
                                          : 255;

        *at (out, x, y, i) = imk_lapsharpen_float_mixed (v[0],
            imk_lapsharpen_float_sample (
                &rule, v, c, imk_lapsharpen_row_floats (f), smooth),
            weight);
      }
  free (arena);
}

TEST (test_samples, "the loops give the bits of the functions for one sample",
    .cpu_only = true)
{
  static uint8_t mask[70 * 40];

  for (uint64_t n = 1; n <= N_CASES; n++) {
    uint64_t seed = n;
    ImkLapsharpenConfig k = make_random (&seed, 1, mask);
    test_auto (TestImage) in, loops, samples;

    k.threshold_unit = IMK_LAPSHARPEN_UNIT_COUNTS;
    if (n % 3 == 0) {
      k.mask = NULL;
      k.width *= n % 2 ? 20 : 1; /* more than a chunk */
      k.height *= n % 2 ? 1 : 20;
    }
    in = make_noise (&k, 1, seed);
    loops = make_image (&k);
    samples = make_image (&k);
    if (n % 2)
      spoil (&in, seed);
    run (IMK_BACKEND_CPU, &k, &in, &loops);
    run_samples (&k, &in, &samples);
    check_same (&loops, &samples, name_of (&k, n));
  }
}

TEST (test_cuda, "CUDA gives the bits of the CPU, NaN included")
{
  static uint8_t mask[70 * 40];

  test_need_cuda ();
  for (uint64_t n = 1; n <= N_CASES; n++) {
    uint64_t seed = n;
    const ImkLapsharpenConfig k = make_random (&seed, 1, mask);
    test_auto (TestImage) in = make_noise (&k, 1, seed);
    test_auto (TestImage) cpu = make_image (&k), cuda = make_image (&k);
    ImkLapsharpenFocus a, b;

    if (n % 2)
      spoil (&in, seed);
    a = run (IMK_BACKEND_CPU, &k, &in, &cpu);
    b = run (IMK_BACKEND_CUDA, &k, &in, &cuda);
    check_same (&cpu, &cuda, name_of (&k, n));
    test_check (a.mean == b.mean && a.variance == b.variance &&
                    a.n_samples == b.n_samples,
        "%s: the focus differs", name_of (&k, n));
  }
}

/* --- NaN ------------------------------------------------------------------ */

TEST_BACKENDS (
    test_nan, "a sample that is not finite spoils its neighbours alone")
{
  static const float bad[] = {NAN, INFINITY, -INFINITY};

  for (int n = 0; n < 3; n++) {
    ImkLapsharpenConfig k = make_config (9, 7, 1);
    test_auto (TestImage) in = make_noise (&k, 1, 3), out = make_image (&k);
    ImkLapsharpenFocus focus;

    k.clamp = IMK_LAPSHARPEN_CLAMP_LOCAL;
    k.threshold = 0.1;
    k.measure_focus = true;
    *at (&in, 4, 3, 0) = bad[n];
    focus = run (backend, &k, &in, &out);
    for (uint32_t y = 0; y < 7; y++)
      for (uint32_t x = 0; x < 9; x++) {
        const bool near = abs ((int) x - 4) + abs ((int) y - 3) <= 1;

        test_check (isnan (*at (&out, x, y, 0)) == near &&
                        (near || isfinite (*at (&out, x, y, 0))),
            "(%u, %u) is %g", x, y, (double) *at (&out, x, y, 0));
      }
    test_check (focus.n_samples == 58 && isfinite (focus.variance),
        "the focus has %llu samples", (unsigned long long) focus.n_samples);
    k.areas[0] = (ImkLapsharpenArea){0, 0, 2, 2};
    k.n_areas = 1;
    run (backend, &k, &in, &out);
    test_check (memcmp (at (&in, 4, 3, 0), at (&out, 4, 3, 0), 4) == 0,
        "a sample outside of the area has changed");
  }
}

/* --- what is refused ------------------------------------------------------ */

TEST_BACKENDS (test_refused, "what needs a largest sample is refused")
{
  static const uint16_t table[65536];
  const struct {
    ImkLapsharpenMethod method;
    int32_t alpha;
    uint32_t range;
    const uint16_t *light;
    const char *words;
  } cases[] = {
      {IMK_LAPSHARPEN_METHOD_CAS, -1, 0, NULL, "black and white"},
      {IMK_LAPSHARPEN_METHOD_LAPLACIAN, 1, 0, NULL, "alpha channel is 1"},
      {IMK_LAPSHARPEN_METHOD_LAPLACIAN, -1, 235, NULL, "have no range"},
      {IMK_LAPSHARPEN_METHOD_LAPLACIAN, -1, 0, table, "tables of light"},
  };

  for (int i = 0; i < 4; i++) {
    ImkLapsharpenConfig k = make_config (4, 3, 2);
    test_autoptr (ImkLapsharpen) self = NULL;

    k.channel_mask = 1;
    k.method = cases[i].method;
    k.alpha_channel = cases[i].alpha;
    k.range_high[0] = cases[i].range;
    k.decode = k.encode = cases[i].light;
    test_error (imk_lapsharpen_new (backend, &k, &self, test_new_error ()),
        IMK_ERROR_CONFIG, cases[i].words);
  }
}

/* --- failures of the device ----------------------------------------------- */

static ImkStatus
live (const ImkLapsharpenConfig *k, const ImkImage *in, ImkImage *out,
    ImkError *error)
{
  ImkLapsharpenFocus focus;
  test_autoptr (ImkLapsharpen) self = NULL;
  ImkStatus status = imk_lapsharpen_new (IMK_BACKEND_CUDA, k, &self, error);

  if (status == IMK_OK)
    status = imk_lapsharpen_process (self, in, out, NULL, error);
  return status == IMK_OK ? imk_lapsharpen_get_focus (self, &focus, error)
                          : status;
}

TEST (test_cuda_failures, "every CUDA call of float32 may fail and says so")
{
  test_need_cuda ();
  for (int i = 0; i < 2; i++) {
    ImkLapsharpenConfig k = make_config (33, 9, 2);
    test_auto (TestImage) in = make_noise (&k, 1, 1), out = make_image (&k);
    test_auto (ImkImage) device_in = {0}, device_out = {0};
    unsigned long n_calls, nth = 0;

    device_in = test_to_device (&in);
    device_out = test_to_device (&out);
    k.method = i ? IMK_LAPSHARPEN_METHOD_LOG : IMK_LAPSHARPEN_METHOD_LAPLACIAN;
    k.threshold_unit = IMK_LAPSHARPEN_UNIT_SIGMA;
    k.threshold = 1;
    k.measure_focus = true;
    do {
      ImkError error = {0};
      ImkStatus status;

      imk_inject_failure (++nth, false);
      status = live (&k, &device_in, &device_out, &error);
      n_calls = imk_inject_failure (0, false);
      test_check (n_calls < nth || (status != IMK_OK && error.message[0]),
          "call %lu failed, the status is %d, the message \"%s\"", nth, status,
          error.message);
      test_check (nth < 100, "after %lu calls no end of failing", nth);
    } while (n_calls >= nth);
  }
}
