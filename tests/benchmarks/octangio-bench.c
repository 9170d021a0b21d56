/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A set of four complex B-scans on one thread of the CPU, by each method,
 * beside reading it once. The GPU's rows are in gpu-bench.cu, those of NumPy in
 * octangio-numpy.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "imk/octangio.h"

enum { REPEATS = 4 };

static const struct {
  uint32_t n_ascans, n_depths;
} sizes[] = {{240, 832}, {512, 1024}};

static const struct {
  const char *name;
  ImkOctangioMethod method;
  uint32_t n_bands;
} methods[] = {
    {"mean", IMK_OCTANGIO_MEAN, 1},
    {"speckle-variance", IMK_OCTANGIO_SPECKLE_VARIANCE, 1},
    {"decorrelation", IMK_OCTANGIO_DECORRELATION, 1},
    {"decorrelation-4-bands", IMK_OCTANGIO_DECORRELATION, 4},
    {"complex-decorrelation", IMK_OCTANGIO_COMPLEX_DECORRELATION, 1},
    {"doppler", IMK_OCTANGIO_DOPPLER, 1},
    {"eigen", IMK_OCTANGIO_EIGEN, 1},
};

typedef struct Set {
  BenchRing ring; /* sets in turn */
  ImkOctangio *kernel;
  ImkImage bscans[REPEATS], flow;
  volatile float sum;
} Set;

static void
run_ours (void *data, uint32_t turn)
{
  Set *s = data;
  uint8_t *set = bench_ring_at (&s->ring, turn);
  ImkError error;

  for (int r = 0; r < REPEATS; r++)
    s->bscans[r].data = set + r * s->bscans[r].stride * s->bscans[r].height;
  bench_ok (imk_octangio_process (s->kernel, s->bscans, &s->flow, NULL, &error),
      &error);
}

static void
run_read (void *data, uint32_t turn)
{
  Set *s = data;
  const float *v = (const float *) bench_ring_at (&s->ring, turn);
  float sums[16] = {0}, sum = 0;

  for (size_t i = 0; i + 16 <= s->ring.size / sizeof (*v); i += 16)
    for (int k = 0; k < 16; k++)
      sums[k] += v[i + k];
  for (int k = 0; k < 16; k++)
    sum += sums[k];
  s->sum = sum;
}

/* Numbers from -1 to 1, of the bits of any noise. */
static void
make_floats (BenchRing *ring)
{
  bench_ring_noise (ring, 1);
  for (uint32_t i = 0; i < ring->n; i++) {
    uint8_t *bytes = bench_ring_at (ring, i);

    for (size_t k = 0; k < ring->size / 4; k++) {
      int32_t bits;
      float v;

      memcpy (&bits, bytes + 4 * k, 4);
      v = (float) bits * 0x1p-31f;
      memcpy (bytes + 4 * k, &v, 4);
    }
  }
}

static void
run_size (uint32_t n_ascans, uint32_t n_depths)
{
  Set s = {0};
  BenchEntry entries[] = {
      {"cpu", "ours", run_ours, &s}, {"cpu", "read", run_read, &s}};
  ImkOctangioConfig c;
  ImkError error;
  char name[80];

  s.ring = bench_ring_new (2 * sizeof (float) * n_ascans * n_depths * REPEATS,
      bench_beyond_cache ());
  make_floats (&s.ring);
  for (int r = 0; r < REPEATS; r++)
    s.bscans[r] = (ImkImage){.stride = 2 * sizeof (float) * n_depths,
        .width = n_depths,
        .height = n_ascans,
        .channels = 1,
        .type = IMK_TYPE_CF32};
  s.flow = (ImkImage){.stride = sizeof (float) * n_ascans,
      .width = n_ascans,
      .height = n_depths,
      .channels = 1,
      .type = IMK_TYPE_F32};
  s.flow.data = calloc (n_depths, s.flow.stride);
  for (size_t i = 0; i < sizeof (methods) / sizeof (*methods); i++) {
    imk_octangio_config_init (&c);
    c.n_ascans = n_ascans;
    c.n_depths = n_depths;
    c.n_repeats = REPEATS;
    c.method = methods[i].method;
    c.n_bands = methods[i].n_bands;
    c.n_threads = 1;
    bench_ok (
        imk_octangio_new (IMK_BACKEND_CPU, &c, &s.kernel, &error), &error);
    snprintf (name, sizeof (name), "octangio-%ux%ux%u-%s", n_ascans, n_depths,
        REPEATS, methods[i].name);
    bench_case (name, entries, 2);
    imk_octangio_free (s.kernel);
  }
  free (s.flow.data);
  bench_ring_free (&s.ring);
}

int
main (int argc, char **argv)
{
  bench_open (argc, argv, "octangio");
  for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++)
    run_size (sizes[i].n_ascans, sizes[i].n_depths);
  return bench_close ();
}
