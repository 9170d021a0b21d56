/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* octbscan: on the CPU beside a chain of the thesis' own steps over the same
 * FFT library, planned by measurement, with the same threads; on the GPU
 * resident in its memory, and from host to host. */
#include "imk/octbscan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "imk/device.h"
#include "imk/parallel.h"
#include "imk/fft.h"

enum { LINES = 240, N_SLOTS = 3, N_TURNS = 10 };

static const double range[] = {806, 675};
static const double dispersion[] = {0, 0, -12};
static const ImkOctbscanCamera camera = {IMK_OCTBSCAN_MAP_RANGE, range, 2,
    .dispersion = dispersion, .n_dispersion = 3};

static ImkOctbscanConfig
config_of (uint32_t width, uint32_t upsample, uint32_t scale, uint32_t threads)
{
  ImkOctbscanConfig c;

  imk_octbscan_config_init (&c);
  c.width = width;
  c.height = LINES;
  c.upsample = upsample;
  c.scale = scale;
  c.cameras = &camera;
  c.n_threads = threads;
  return c;
}

static ImkImage
image_of (void *data, uint32_t width, uint32_t height, ImkType type)
{
  return (ImkImage){data, width * imk_type_size (type), width, height, 1, type,
      IMK_LOCATION_HOST};
}

/* --- ours on the CPU ------------------------------------------------------ */

typedef struct Ours {
  ImkOctbscan *kernel;
  BenchRing in;
  ImkImage from, to;
} Ours;

static void
ours_open (Ours *o, const ImkOctbscanConfig *c)
{
  uint32_t width, height;
  ImkError error;

  imk_octbscan_size (c, &width, &height);
  o->in = bench_ring_new ((size_t) c->width * c->height * 2, 1);
  bench_ring_noise (&o->in, 1);
  o->from = image_of (o->in.block, c->width, c->height, c->type);
  o->to =
      image_of (malloc ((size_t) width * height), width, height, IMK_TYPE_U8);
  if (!o->to.data)
    bench_fail ("there is no memory for %u x %u pixels.", width, height);
  bench_ok (imk_octbscan_new (IMK_BACKEND_CPU, c, &o->kernel, &error), &error);
}

static void
ours_run (void *data, uint32_t turn)
{
  Ours *o = data;
  const ImkOctbscanJob job = {&o->from, 0, &o->to};
  ImkError error;

  bench_ok (imk_octbscan_process (o->kernel, &job, 1, NULL, &error), &error);
}

static void
ours_close (Ours *o)
{
  imk_octbscan_free (o->kernel);
  bench_ring_free (&o->in);
  free (o->to.data);
}

/* ------------------------------------------------------------------------
 * The thesis' steps, one after the other, a thread for some of the lines:
 * R2C, zeros, C2R, linear interpolation, phase, zeros, C2C, crop, dB, min and
 * max, 8 bits. Tables are made before. */

typedef struct Thesis {
  ImkOctbscanConfig c;
  const uint16_t *in;
  uint8_t *out;
  uint32_t n_depths, padded;
  ImkFft *forward, *back, *last;
  uint32_t *index;
  float *weight, *phase;                /* of M; phase is complex */
  float *mean, *a, *f, *u, *z, *y, *db; /* a line of each for each of LINES */
} Thesis;

static void *
must_alloc (size_t n)
{
  void *memory = NULL;

  if (posix_memalign (&memory, 64, n))
    bench_fail ("there is no memory for %zu bytes.", n);
  memset (memory, 0, n);
  return memory;
}

static ImkFft *
plan (ImkFftKind kind, ImkFftDirection direction, uint32_t n)
{
  ImkFftConfig c;
  ImkFft *fft = NULL;
  ImkError error;

  imk_fft_config_init (&c);
  c.kind = kind;
  c.direction = direction;
  c.width = n;
  c.effort = IMK_FFT_MEASURE;
  bench_ok (imk_fft_new (&c, &fft, &error), &error);
  return fft;
}

static void
thesis_open (Thesis *t, const ImkOctbscanConfig *c, const Ours *ours)
{
  uint32_t n = c->width, m = c->upsample;

  *t = (Thesis){.c = *c, .in = ours->from.data};
  t->n_depths = imk_octbscan_n_depths (c);
  t->padded = m * c->scale;
  if (m > n) {
    t->forward = plan (IMK_FFT_R2C, IMK_FFT_FORWARD, n);
    t->back = plan (IMK_FFT_C2R, IMK_FFT_BACKWARD, m);
  }
  t->last = plan (IMK_FFT_C2C, IMK_FFT_FORWARD, t->padded);
  t->out = must_alloc ((size_t) LINES * t->n_depths);
  t->index = must_alloc (m * 4);
  t->weight = must_alloc (m * 4);
  t->phase = must_alloc (m * 8);
  t->mean = must_alloc (n * 4);
  t->a = must_alloc ((size_t) LINES * (n + 16) * 4);
  t->f = must_alloc ((size_t) LINES * (m / 2 + 8) * 8);
  t->u = must_alloc ((size_t) LINES * (m + 16) * 4);
  t->z = must_alloc ((size_t) LINES * t->padded * 8);
  t->y = must_alloc ((size_t) LINES * t->padded * 8);
  t->db = must_alloc ((size_t) LINES * t->n_depths * 4);
  for (uint32_t i = 0; i < m; i++) {
    double along = i / (m - 1.0), u = 2 * along - 1;
    double wanted = 1 / ((1 - along) / range[0] + along / range[1]);
    double at = (wanted - range[0]) / (range[1] - range[0]) * (m - 1);

    t->index[i] = (uint32_t) fmin (at, m - 2);
    t->weight[i] = (float) (at - t->index[i]);
    t->phase[2 * i] = (float) cos (-12 * u * u);
    t->phase[2 * i + 1] = (float) sin (-12 * u * u);
  }
}

static void
thesis_line (Thesis *t, uint32_t line)
{
  uint32_t n = t->c.width, m = t->c.upsample;
  const uint16_t *x = t->in + (size_t) line * n;
  float *a = t->a + (size_t) line * ((n + 15) / 16 * 16);
  float *f = t->f + (size_t) line * (m / 2 + 8) * 2;
  float *u = t->u + (size_t) line * ((m + 15) / 16 * 16);
  float *z = t->z + (size_t) line * t->padded * 2;
  float *y = t->y + (size_t) line * t->padded * 2;
  float *db = t->db + (size_t) line * t->n_depths;
  ImkError error;

  for (uint32_t i = 0; i < n; i++)
    a[i] = x[i] - t->mean[i];
  if (t->forward) {
    bench_ok (imk_fft_execute (t->forward, a, f, &error), &error);
    memset (f + 2 * (n / 2 + 1), 0, (m / 2 - n / 2) * 8);
    bench_ok (imk_fft_execute (t->back, f, u, &error), &error);
  } else {
    memcpy (u, a, m * 4);
  }
  for (uint32_t i = 0; i < m; i++) {
    uint32_t j = t->index[i];
    float v = u[j] + t->weight[i] * (u[j + 1] - u[j]);

    z[2 * i] = v * t->phase[2 * i];
    z[2 * i + 1] = v * t->phase[2 * i + 1];
  }
  bench_ok (imk_fft_execute (t->last, z, y, &error), &error);
  for (uint32_t q = 0; q < t->n_depths; q++)
    db[q] = 10 *
            log10f (y[2 * q] * y[2 * q] + y[2 * q + 1] * y[2 * q + 1] + 1e-20f);
}

static void
thesis_band (void *data, uint32_t first, uint32_t end)
{
  for (uint32_t line = first; line < end; line++)
    thesis_line (data, line);
}

static void
thesis_run (void *data, uint32_t turn)
{
  Thesis *t = data;
  uint32_t n = t->c.width;
  size_t n_pixels = (size_t) LINES * t->n_depths;
  float low = INFINITY, high = -INFINITY;

  memset (t->mean, 0, n * 4);
  for (uint32_t line = 0; line < LINES; line++)
    for (uint32_t i = 0; i < n; i++)
      t->mean[i] += t->in[(size_t) line * n + i];
  for (uint32_t i = 0; i < n; i++)
    t->mean[i] /= LINES;
  imk_parallel_for (t->c.n_threads, LINES, 1, thesis_band, t);
  for (size_t i = 0; i < n_pixels; i++) {
    low = t->db[i] < low ? t->db[i] : low;
    high = t->db[i] > high ? t->db[i] : high;
  }
  for (size_t i = 0; i < n_pixels; i++)
    t->out[i] = (uint8_t) (255 * (t->db[i] - low) / (high - low));
}

static void
thesis_close (Thesis *t)
{
  void *blocks[] = {t->out, t->index, t->weight, t->phase, t->mean, t->a, t->f,
      t->u, t->z, t->y, t->db};

  for (size_t i = 0; i < sizeof (blocks) / sizeof (blocks[0]); i++)
    free (blocks[i]);
  imk_fft_free (t->forward);
  imk_fft_free (t->back);
  imk_fft_free (t->last);
}

static void
print_rate (const char *name, const char *who, double lines)
{
  printf ("%s %s: %.0f A-scans/s\n", name, who,
      lines / bench_find (name, who).median * 1e6);
}

/* Runs the case, and prints what microseconds for @lines mean. */
static void
run_entries (
    const char *name, const BenchEntry *entries, uint32_t n, double lines)
{
  bench_case (name, entries, n);
  for (uint32_t i = 0; i < n; i++)
    print_rate (name, entries[i].who, lines);
}

/* @interpolation: ours; the peer's is linear */
static void
cpu_case (uint32_t width, uint32_t upsample, uint32_t scale,
    ImkOctbscanInterpolation interpolation, uint32_t threads)
{
  ImkOctbscanConfig c = config_of (width, upsample, scale, threads);
  Ours fft, matrix;
  Thesis thesis;
  char name[64];

  c.interpolation = interpolation;
  snprintf (name, sizeof (name), "%u-to-%u-%s-threads-%u", width,
      upsample * scale,
      interpolation == IMK_OCTBSCAN_INTERPOLATION_EXACT ? "exact" : "cubic",
      threads);
  ours_open (&fft, &c);
  c.strategy = IMK_OCTBSCAN_STRATEGY_OPERATOR;
  ours_open (&matrix, &c);
  thesis_open (&thesis, &c, &fft);
  {
    const BenchEntry entries[] = {
        {"cpu", "ours", ours_run, &fft},
        {"cpu", "operator", ours_run, &matrix},
        {"cpu", "thesis", thesis_run, &thesis},
    };

    run_entries (name, entries, 3, LINES);
  }
  thesis_close (&thesis);
  ours_close (&fft);
  ours_close (&matrix);
}

/* --- the GPU. A slot is a stream with an object and its memory ------------ */

typedef struct Slot {
  ImkOctbscan *kernel;
  void *stream, *host_in, *host_out, *device_in, *device_out, *mapped;
  ImkImage *images;
  ImkOctbscanJob *jobs;
} Slot;

typedef struct Gpu {
  const ImkDevice *device;
  ImkOctbscan *kernel;
  uint32_t n_jobs;
  size_t in_size, out_size; /* bytes of a B-scan */
  Slot slots[N_SLOTS];
} Gpu;

static void
slot_open (Gpu *g, Slot *s, const ImkOctbscanConfig *c)
{
  const ImkDevice *d = g->device;
  size_t in = g->in_size * g->n_jobs, out = g->out_size * g->n_jobs;
  uint32_t width, height;
  ImkError error;

  imk_octbscan_size (c, &width, &height);
  bench_ok (d->stream_new (&s->stream, &error), &error);
  bench_ok (d->alloc_pinned (in, &s->host_in, &s->mapped, &error), &error);
  bench_ok (d->alloc_pinned (out, &s->host_out, &s->mapped, &error), &error);
  bench_ok (d->alloc_device (in, &s->device_in, &error), &error);
  bench_ok (d->alloc_device (out, &s->device_out, &error), &error);
  for (size_t i = 0; i < in / 2; i++)
    ((uint16_t *) s->host_in)[i] = (uint16_t) (2000 + i * 7919 % 1009);
  bench_ok (
      d->copy (s->device_in, in, s->host_in, in, in, 1, s->stream, &error),
      &error);
  s->images = must_alloc (2 * g->n_jobs * sizeof (ImkImage));
  s->jobs = must_alloc (g->n_jobs * sizeof (ImkOctbscanJob));
  for (uint32_t i = 0; i < g->n_jobs; i++) {
    ImkImage *image = s->images + 2 * i;

    image[0] = image_of ((uint8_t *) s->device_in + i * g->in_size, c->width,
        c->height, c->type);
    image[1] = image_of ((uint8_t *) s->device_out + i * g->out_size, width,
        height, IMK_TYPE_U8);
    image[0].location = image[1].location = IMK_LOCATION_DEVICE;
    s->jobs[i] = (ImkOctbscanJob){&image[0], 0, &image[1]};
  }
}

static void
slot_close (Gpu *g, Slot *s)
{
  g->device->stream_free (s->stream);
  g->device->free_pinned (s->host_in);
  g->device->free_pinned (s->host_out);
  g->device->free_device (s->device_in);
  g->device->free_device (s->device_out);
  free (s->images);
  free (s->jobs);
}

static void
slot_process (Gpu *g, Slot *s)
{
  ImkError error;

  bench_ok (
      imk_octbscan_process (g->kernel, s->jobs, g->n_jobs, s->stream, &error),
      &error);
}

static void
slot_wait (Gpu *g, Slot *s)
{
  ImkError error;

  bench_ok (g->device->stream_synchronize (s->stream, &error), &error);
}

static void
slot_round_trip (Gpu *g, Slot *s)
{
  size_t in = g->in_size * g->n_jobs, out = g->out_size * g->n_jobs;
  ImkError error;

  bench_ok (g->device->copy (
                s->device_in, in, s->host_in, in, in, 1, s->stream, &error),
      &error);
  slot_process (g, s);
  bench_ok (g->device->copy (s->host_out, out, s->device_out, out, out, 1,
                s->stream, &error),
      &error);
}

static void
resident_run (void *data, uint32_t turn)
{
  Gpu *g = data;

  slot_process (g, &g->slots[0]);
  slot_wait (g, &g->slots[0]);
}

static void
latency_run (void *data, uint32_t turn)
{
  Gpu *g = data;

  slot_round_trip (g, &g->slots[0]);
  slot_wait (g, &g->slots[0]);
}

/* Upload, compute and download of different batches at the same time; enough of
 * them that the first upload and the last download, alone, do not count. */
static void
stream_run (void *data, uint32_t turn)
{
  Gpu *g = data;

  for (uint32_t i = 0; i < N_TURNS * N_SLOTS; i++) {
    Slot *s = &g->slots[i % N_SLOTS];

    slot_wait (g, s);
    slot_round_trip (g, s);
  }
  for (uint32_t i = 0; i < N_SLOTS; i++)
    slot_wait (g, &g->slots[i]);
}

static void
gpu_open (Gpu *g, const ImkDevice *device, const ImkOctbscanConfig *config,
    uint32_t n_jobs, int n_slots)
{
  ImkOctbscanConfig c = *config;
  ImkError error;

  *g = (Gpu){.device = device, .n_jobs = n_jobs};
  c.max_jobs = n_jobs;
  bench_ok (
      imk_octbscan_new (IMK_BACKEND_CUDA, &c, &g->kernel, &error), &error);
  g->in_size = (size_t) c.width * LINES * 2;
  g->out_size = (size_t) imk_octbscan_n_depths (&c) * LINES;
  for (int i = 0; i < n_slots; i++)
    slot_open (g, &g->slots[i], &c);
}

static void
gpu_close (Gpu *g, int n_slots)
{
  for (int i = 0; i < n_slots; i++)
    slot_close (g, &g->slots[i]);
  imk_octbscan_free (g->kernel);
}

static void
gpu_case (const ImkDevice *device, uint32_t scale, uint32_t n_jobs)
{
  ImkOctbscanConfig c = config_of (832, 4096, scale, 0);
  Gpu g;
  const BenchEntry entries[] = {
      {"cuda", "resident", resident_run, &g},
      {"cuda", "host-to-host", latency_run, &g},
      {"cuda", "streamed", stream_run, &g},
  };
  char name[64];

  snprintf (name, sizeof (name), "832-to-%u-bscans-%u", 4096 * scale, n_jobs);
  if (!bench_wants (name))
    return;
  gpu_open (&g, device, &c, n_jobs, N_SLOTS);
  bench_case (name, entries, 3);
  for (int i = 0; i < 3; i++)
    print_rate (name, entries[i].who,
        (double) LINES * n_jobs * (i == 2 ? N_TURNS * N_SLOTS : 1));
  gpu_close (&g, N_SLOTS);
}

/* The two strategies, resident. @depths: that the crop leaves, 0 for all */
static void
strategy_case (const ImkDevice *device, uint32_t width, uint32_t upsample,
    uint32_t scale, uint32_t depths, uint32_t n_jobs)
{
  ImkOctbscanConfig c = config_of (width, upsample, scale, 0);
  Gpu matrix, fft;
  const BenchEntry entries[] = {
      {"cuda", "operator", resident_run, &matrix},
      {"cuda", "fft", resident_run, &fft},
  };
  char name[64];

  if (depths > 0)
    c.crop_bottom = imk_octbscan_n_depths (&c) - depths;
  snprintf (name, sizeof (name), "%u-to-%u-depths-%u-bscans-%u", width,
      upsample * scale, imk_octbscan_n_depths (&c), n_jobs);
  if (!bench_wants (name))
    return;
  c.strategy = IMK_OCTBSCAN_STRATEGY_OPERATOR;
  gpu_open (&matrix, device, &c, n_jobs, 1);
  c.strategy = IMK_OCTBSCAN_STRATEGY_FFT;
  gpu_open (&fft, device, &c, n_jobs, 1);
  run_entries (name, entries, 2, (double) LINES * n_jobs);
  gpu_close (&matrix, 1);
  gpu_close (&fft, 1);
}

static void
strategy_cases (const ImkDevice *device)
{
  for (uint32_t n_jobs = 1; n_jobs <= 32; n_jobs *= 32) {
    for (uint32_t scale = 1; scale <= 4; scale *= 2)
      strategy_case (device, 832, 4096, scale, 0, n_jobs);
    strategy_case (device, 832, 4096, 4, 400, n_jobs);
    for (uint32_t n = 1024; n <= 8192; n *= 2)
      strategy_case (device, n, n, 1, 0, n_jobs);
  }
}

/* What each step between Z and the images costs, resident. */
static void
feature_case (
    const ImkDevice *device, const char *feature, const ImkOctbscanConfig *c)
{
  Gpu g;
  const BenchEntry entry = {"cuda", "resident", resident_run, &g};
  char name[64];

  snprintf (name, sizeof (name), "832-to-16384-bscans-32-%s", feature);
  if (!bench_wants (name))
    return;
  gpu_open (&g, device, c, 32, 1);
  run_entries (name, &entry, 1, 32 * LINES);
  gpu_close (&g, 1);
}

#define FEATURE(name, change) \
  do { \
    ImkOctbscanConfig c = config_of (832, 4096, 4, 0); \
\
    change; \
    feature_case (device, name, &c); \
  } while (0)

static void
feature_cases (const ImkDevice *device)
{
  FEATURE ("plain", );
  FEATURE ("percentile", c.range = IMK_OCTBSCAN_RANGE_PERCENTILE);
  FEATURE ("minmax", c.range = IMK_OCTBSCAN_RANGE_MINMAX);
  FEATURE ("background-running",
      c.background_mode = IMK_OCTBSCAN_BACKGROUND_RUNNING);
  FEATURE ("background-rolling",
      c.background_mode = IMK_OCTBSCAN_BACKGROUND_ROLLING);
  FEATURE ("minvar", c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_MINVAR);
  FEATURE ("sine", c.scan = IMK_OCTBSCAN_SCAN_SINE);
  FEATURE ("rpe", c.tracking = IMK_OCTBSCAN_TRACKING_RPE);
  FEATURE ("contour", c.tracking = IMK_OCTBSCAN_TRACKING_CONTOUR);
  FEATURE ("xcorr", c.tracking = IMK_OCTBSCAN_TRACKING_XCORR);
  FEATURE ("average-bscans", c.averages_bscans = true);
}

static void
gpu_cases (void)
{
  const ImkDevice *device;
  void *context;
  ImkError error;

  bench_ok (imk_backend_load ("cuda", &error), &error);
  bench_ok (imk_device_get (&device, &error), &error);
  bench_ok (device->context (0, &context, &error), &error);
  bench_ok (device->push (context, &error), &error);
  for (uint32_t scale = 1; scale <= 4; scale *= 2)
    for (uint32_t n_jobs = 1; n_jobs <= 64; n_jobs *= 8)
      gpu_case (device, scale, n_jobs);
  strategy_cases (device);
  feature_cases (device);
  device->pop ();
}

/* The two strategies on the CPU for a few depths of the middle. */
static void
crop_case (uint32_t depths)
{
  ImkOctbscanConfig c = config_of (832, 4096, 4, 1);
  Ours fft, matrix;
  const BenchEntry entries[] = {
      {"cpu", "operator", ours_run, &matrix},
      {"cpu", "fft", ours_run, &fft},
  };
  char name[64];

  c.crop_top = 400;
  c.crop_bottom = imk_octbscan_n_depths (&c) - depths;
  c.strategy = IMK_OCTBSCAN_STRATEGY_FFT;
  ours_open (&fft, &c);
  c.strategy = IMK_OCTBSCAN_STRATEGY_OPERATOR;
  ours_open (&matrix, &c);
  snprintf (name, sizeof (name), "832-to-16384-depths-%u-threads-1", depths);
  run_entries (name, entries, 2, LINES);
  ours_close (&fft);
  ours_close (&matrix);
}

static void
cpu_cases (void)
{
  for (uint32_t threads = 1; threads <= 2; threads++) {
    cpu_case (832, 4096, 4, IMK_OCTBSCAN_INTERPOLATION_EXACT, threads);
    cpu_case (1024, 1024, 1, IMK_OCTBSCAN_INTERPOLATION_CUBIC, threads);
    cpu_case (2048, 2048, 1, IMK_OCTBSCAN_INTERPOLATION_CUBIC, threads);
    cpu_case (4096, 4096, 1, IMK_OCTBSCAN_INTERPOLATION_CUBIC, threads);
  }
  for (uint32_t depths = 16; depths <= 256; depths *= 2)
    crop_case (depths);
}

int
main (int argc, char **argv)
{
  bench_open (argc, argv, "octbscan");
  if (bench_is_gpu ()) {
    bench_limit (0.4);
    gpu_cases ();
  } else {
    bench_limit (3);
    cpu_cases ();
  }
  return bench_close ();
}
