/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lapsharpen on the CPU beside a memcpy of the frame. */
#include "imk/lapsharpen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "lapsharpen/lapsharpen-reference.h"

/* The frame of the course text, sharpened as it says but for the border and
 * alpha, unless a case differs. */
typedef struct Case {
  const char *name;
  uint32_t n_threads;
  bool cold; /* every frame from and to memory, not the caches */
  ImkType type;
  uint32_t channels;
  ImkLapsharpenAlpha alpha;
  double amount;
  uint32_t neighbours;
  double threshold;
  ImkLapsharpenUnit threshold_unit;
  bool limited, linear; /* range and light */
  double split;
  ImkLapsharpenClamp clamp;
  ImkLapsharpenMethod method;
  uint32_t kernel_size;
  bool few; /* weights of few bits */
  double radius;
} Case;

#define RGBA .type = IMK_TYPE_U8, .channels = 4
#define PLAIN .amount = 1.0, .neighbours = 4

static const Case cases[] = {
    {"rgba", 1, false, RGBA, PLAIN},
    {"rgba-threads", 0, false, RGBA, PLAIN},
    {"rgba-cold", 1, true, RGBA, PLAIN},
    {"rgba-cold-threads", 0, true, RGBA, PLAIN},
    {"rgba-amount-1.5", 1, false, RGBA, .amount = 1.5, .neighbours = 4},
    {"rgba-amount-0.3", 1, false, RGBA, .amount = 0.3, .neighbours = 4},
    {"rgba-threshold", 1, false, RGBA, PLAIN, .threshold = 20},
    {"rgba-threshold-sigma", 1, false, RGBA, PLAIN, .threshold = 2,
        .threshold_unit = IMK_LAPSHARPEN_UNIT_SIGMA},
    {"rgba-split", 1, false, RGBA, PLAIN, .split = 0.5},
    {"rgba-light-linear", 1, false, RGBA, PLAIN, .linear = true},
    {"rgba-clamp-local", 1, false, RGBA, PLAIN,
        .clamp = IMK_LAPSHARPEN_CLAMP_LOCAL},
    {"rgba-cas", 1, false, RGBA, PLAIN, .method = IMK_LAPSHARPEN_METHOD_CAS},
    {"rgba-kernel-3x3", 1, false, RGBA, PLAIN,
        .method = IMK_LAPSHARPEN_METHOD_KERNEL, .kernel_size = 3},
    {"rgba-kernel-3x3-few", 1, false, RGBA, PLAIN,
        .method = IMK_LAPSHARPEN_METHOD_KERNEL, .kernel_size = 3, .few = true},
    {"rgba-kernel-7x7-few", 1, false, RGBA, PLAIN,
        .method = IMK_LAPSHARPEN_METHOD_KERNEL, .kernel_size = 7, .few = true},
    {"rgba-kernel-7x7", 1, false, RGBA, PLAIN,
        .method = IMK_LAPSHARPEN_METHOD_KERNEL, .kernel_size = 7},
    {"rgba-unsharp-1", 1, false, RGBA, PLAIN,
        .method = IMK_LAPSHARPEN_METHOD_UNSHARP, .radius = 1},
    {"rgba-unsharp-5", 1, false, RGBA, PLAIN,
        .method = IMK_LAPSHARPEN_METHOD_UNSHARP, .radius = 5},
    {"rgba-unsharp-20", 1, false, RGBA, PLAIN,
        .method = IMK_LAPSHARPEN_METHOD_UNSHARP, .radius = 20},
    {"gray8-unsharp-5", 1, false, IMK_TYPE_U8, 1, PLAIN,
        .method = IMK_LAPSHARPEN_METHOD_UNSHARP, .radius = 5},
    {"rgba-log-5", 1, false, RGBA, PLAIN, .method = IMK_LAPSHARPEN_METHOD_LOG,
        .radius = 5},
    {"rgba-neighbours-8", 1, false, RGBA, .amount = 1.0, .neighbours = 8},
    {"rgba-alpha-filter", 1, false, RGBA, PLAIN,
        .alpha = IMK_LAPSHARPEN_ALPHA_FILTER},
    {"rgba-alpha-weighted", 1, false, RGBA, PLAIN,
        .alpha = IMK_LAPSHARPEN_ALPHA_WEIGHTED},
    {"gray8", 1, false, IMK_TYPE_U8, 1, PLAIN},
    {"gray8-range-limited", 1, false, IMK_TYPE_U8, 1, PLAIN, .limited = true},
    {"gray16", 1, false, IMK_TYPE_U16, 1, PLAIN},
    {"rgba64", 1, false, IMK_TYPE_U16, 4, PLAIN},
    {"rgba64-amount-1.5", 1, false, IMK_TYPE_U16, 4, .amount = 1.5,
        .neighbours = 4},
};

static uint16_t decode[256], encode[65536]; /* gamma 2 */

static void
make_light (void)
{
  for (uint32_t v = 0; v < 256; v++)
    decode[v] = (uint16_t) lrint (65535 * pow (v / 255.0, 2));
  for (uint32_t l = 0; l < 65536; l++)
    encode[l] = (uint16_t) lrint (255 * sqrt (l / 65535.0));
}

static ImkLapsharpenConfig
make_config (const Case *c)
{
  ImkLapsharpenConfig config;

  imk_lapsharpen_config_init (&config);
  config.width = 2580;
  config.height = 1319;
  config.type = c->type;
  config.channels = c->channels;
  config.depth = c->type == IMK_TYPE_U8 ? 8 : 16;
  config.channel_mask = c->channels == 4 ? 7 : 1;
  config.alpha_channel = c->channels == 4 ? 3 : -1;
  config.alpha = c->alpha;
  config.n_threads = c->n_threads;
  config.amount = c->amount;
  config.neighbours = c->neighbours;
  config.threshold = c->threshold;
  config.threshold_unit = c->threshold_unit;
  if (c->limited) {
    config.range_low[0] = 16;
    config.range_high[0] = 235;
  }
  if (c->split > 0) {
    config.n_areas = 1;
    config.areas[0] = (ImkLapsharpenArea){
        (uint32_t) (c->split * config.width), 0, config.width, config.height};
  }
  if (c->linear) {
    config.linear_mask = config.channel_mask;
    config.decode = decode;
    config.encode = encode;
  }
  config.clamp = c->clamp;
  config.method = c->method;
  config.kernel_size = c->kernel_size;
  if (c->radius)
    config.radius = c->radius;
  for (uint32_t i = 0; i < c->kernel_size * c->kernel_size; i++)
    config.kernel[i] =
        c->few ? ((float) (i % 5) - 1) / 16 : (float) i / 49 - 0.4f;
  return config;
}

enum { N_CHECKED = 100 };

/* Of the first rows: the reference is slow, and the tests compare the rest. */
static void
check (const Case *c, const ImkLapsharpenConfig *config, const ImkImage *in,
    const ImkImage *out)
{
  ImkLapsharpenConfig top = *config;
  ImkImage expected = *out;
  size_t size;

  /* the noise is that of all rows; the tests compare such frames */
  if (config->threshold_unit == IMK_LAPSHARPEN_UNIT_SIGMA)
    return;
  /* rows below the last to compare */
  top.height = N_CHECKED + (c->radius ? 150 : 3);
  size = out->stride * top.height;
  expected.height = top.height;
  expected.data = malloc (size);
  if (!expected.data)
    bench_fail ("There is no memory for %zu bytes.", size);
  imk_lapsharpen_reference (&top, in, &expected);
  for (size_t i = 0; i < out->stride * N_CHECKED; i++) {
    uint8_t is = ((const uint8_t *) out->data)[i];
    uint8_t should_be = ((const uint8_t *) expected.data)[i];

    if (is != should_be)
      bench_fail ("%s: byte %zu is %d, not %d", c->name, i, is, should_be);
  }
  free (expected.data);
}

/* --- timing -------------------------------------------------------------- */

typedef struct Work {
  ImkLapsharpen *kernel;
  ImkImage in, out;
  BenchRing ins, outs;
} Work;

static void
run_ours (void *data, uint32_t turn)
{
  Work *w = data;
  ImkError error;

  w->in.data = bench_ring_at (&w->ins, turn);
  w->out.data = bench_ring_at (&w->outs, turn);
  bench_ok (imk_lapsharpen_process (w->kernel, &w->in, &w->out, NULL, &error),
      &error);
}

static void
run_memcpy (void *data, uint32_t turn)
{
  Work *w = data;

  memcpy (bench_ring_at (&w->outs, turn), bench_ring_at (&w->ins, turn),
      w->ins.size);
}

static void
run_case (const Case *c)
{
  ImkLapsharpenConfig config = make_config (c);
  Work w = {};
  BenchEntry entries[] = {
      {"cpu", "ours", run_ours, &w},
      {"cpu", "memcpy", run_memcpy, &w},
  };
  ImkError error;
  char name[64];

  w.in = (ImkImage){.width = config.width,
      .height = config.height,
      .channels = config.channels,
      .type = config.type};
  w.in.stride = imk_image_row_size (&w.in);
  w.out = w.in;
  w.ins = bench_ring_new (
      w.in.stride * config.height, c->cold ? bench_beyond_cache () / 2 : 1);
  w.outs = bench_ring_new (w.ins.size, c->cold ? bench_beyond_cache () / 2 : 1);
  bench_ring_noise (&w.ins, 1);
  bench_ok (
      imk_lapsharpen_new (IMK_BACKEND_CPU, &config, &w.kernel, &error), &error);
  run_ours (&w, 0);
  check (c, &config, &w.in, &w.out);

  snprintf (name, sizeof (name), "2580x1319-%s", c->name);
  bench_case (name, entries, 2);
  imk_lapsharpen_free (w.kernel);
  bench_ring_free (&w.ins);
  bench_ring_free (&w.outs);
}

int
main (int argc, char **argv)
{
  bench_open (argc, argv, "lapsharpen");
  make_light ();
  for (uint32_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
    run_case (&cases[i]);
  return bench_close ();
}
