/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lapsharpen on the CPU beside a memcpy of the frame. */
#include "imk/lapsharpen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

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
} Case;

#define RGBA .type = IMK_TYPE_U8, .channels = 4
#define PLAIN .amount = 1.0, .neighbours = 4

static const Case cases[] = {
    {"rgba", 1, false, RGBA, PLAIN},
    {"rgba-threads", 0, false, RGBA, PLAIN},
    {"rgba-cold", 1, true, RGBA, PLAIN},
    {"rgba-cold-threads", 0, true, RGBA, PLAIN},
    {"rgba-amount-1.5", 1, false, RGBA, .amount = 1.5, .neighbours = 4},
    {"rgba-neighbours-8", 1, false, RGBA, .amount = 1.0, .neighbours = 8},
    {"rgba-alpha-filter", 1, false, RGBA, PLAIN,
        .alpha = IMK_LAPSHARPEN_ALPHA_FILTER},
    {"rgba-alpha-weighted", 1, false, RGBA, PLAIN,
        .alpha = IMK_LAPSHARPEN_ALPHA_WEIGHTED},
    {"gray8", 1, false, IMK_TYPE_U8, 1, PLAIN},
    {"gray16", 1, false, IMK_TYPE_U16, 1, PLAIN},
    {"rgba64", 1, false, IMK_TYPE_U16, 4, PLAIN},
    {"rgba64-amount-1.5", 1, false, IMK_TYPE_U16, 4, .amount = 1.5,
        .neighbours = 4},
};

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
  return config;
}

/* --- the header's formula, one sample at a time --------------------------- */

static int64_t
sample_at (const ImkImage *in, int64_t x, int64_t y, uint32_t channel)
{
  const uint8_t *row;

  x = x < 0 ? 0 : x >= in->width ? in->width - 1 : x;
  y = y < 0 ? 0 : y >= in->height ? in->height - 1 : y;
  row = (const uint8_t *) in->data + y * in->stride;
  x = x * in->channels + channel;
  return in->type == IMK_TYPE_U8 ? row[x] : ((const uint16_t *) row)[x];
}

static int64_t
expected_sample (const ImkLapsharpenConfig *c, const ImkImage *in, int64_t x,
    int64_t y, uint32_t channel)
{
  int64_t v = sample_at (in, x, y, channel), l = 0;
  int64_t maximum = (1 << c->depth) - 1;
  bool weighted = c->alpha == IMK_LAPSHARPEN_ALPHA_WEIGHTED;
  float laplacian, change, sum;

  if ((int32_t) channel == c->alpha_channel &&
      c->alpha != IMK_LAPSHARPEN_ALPHA_FILTER)
    return v;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      if (dx * dx + dy * dy <= (c->neighbours == 8 ? 2 : 1))
        l += (v - sample_at (in, x + dx, y + dy, channel)) *
             (weighted ? sample_at (in, x + dx, y + dy, 3) : 1);
  laplacian = weighted ? (float) ((double) l / maximum) : (float) l;
  change = (float) c->amount * laplacian;
  sum = floorf (change + ((float) v + 0.5f));
  return sum < 0 ? 0 : sum > maximum ? maximum : (int64_t) sum;
}

static void
check (const Case *c, const ImkLapsharpenConfig *config, const ImkImage *in,
    const ImkImage *out)
{
  for (uint32_t y = 0; y < in->height; y++)
    for (uint32_t x = 0; x < in->width; x++)
      for (uint32_t ch = 0; ch < in->channels; ch++) {
        int64_t expected = expected_sample (config, in, x, y, ch);
        int64_t actual = sample_at (out, x, y, ch);

        if (actual != expected)
          bench_fail ("%s: at (%u, %u) channel %u: expected %d, got %d",
              c->name, x, y, ch, (int) expected, (int) actual);
      }
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
  for (uint32_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
    run_case (&cases[i]);
  return bench_close ();
}
