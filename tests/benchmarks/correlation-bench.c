/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Correlation on the CPU and, where there is one, on a GPU, from a frame in
 * page-locked memory to shifts in the same, over template sizes and search
 * ranges: 700x700 pixels in cells of 20. Beside it the centre of gravity of the
 * same cells, and on the CPU a plain loop of the same products. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "imk/device.h"
#include "imk/shcentroid.h"

enum { ROI = 700, PITCH = 20, N_FRAMES = 8 };

typedef struct Work {
  ImkShcentroidConfig config;
  ImkShcentroid *kernel;
  const ImkDevice *device; /* NULL on the CPU */
  void *stream;
  uint8_t *frames; /* as the kernel sees them */
  ImkImage in, out;
  double *sums; /* of the plain loop */
} Work;

static void
run_ours (void *data, uint32_t turn)
{
  Work *w = data;
  ImkError error;

  w->in.data = w->frames + (size_t) (turn % N_FRAMES) * ROI * w->in.stride;
  bench_ok (
      imk_shcentroid_process (w->kernel, &w->in, &w->out, w->stream, &error),
      &error);
  if (w->device)
    bench_ok (w->device->stream_synchronize (w->stream, &error), &error);
}

/* The products of all shifts of all cells, as one would write them down. */
static void
run_plain (void *data, uint32_t turn)
{
  Work *w = data;
  const ImkShcentroidConfig *c = &w->config;
  const uint8_t *frame =
      w->frames + (size_t) (turn % N_FRAMES) * ROI * w->in.stride;
  int range = (int) c->search_range, size = (int) c->template_width;
  int corner = (PITCH - size) / 2;
  double *to = w->sums;

  for (int row = 0; row < ROI / PITCH; row++)
    for (int column = 0; column < ROI / PITCH; column++)
      for (int dy = -range; dy <= range; dy++)
        for (int dx = -range; dx <= range; dx++) {
          int top = corner + dy, left = corner + dx;
          int y1 = top + size > PITCH ? PITCH - top : size;
          int x1 = left + size > PITCH ? PITCH - left : size;
          float sum = 0.0f;

          for (int y = top < 0 ? -top : 0; y < y1; y++) {
            const uint8_t *a = frame +
                               (size_t) (row * PITCH + top + y) * w->in.stride +
                               column * PITCH + left;
            const float *b = c->templates + y * size;

            for (int x = left < 0 ? -left : 0; x < x1; x++)
              sum += (float) a[x] * b[x];
          }
          *to++ = sum;
        }
}

static void
make_frames (uint8_t *frames)
{
  uint64_t state = 1;

  /* smooth in each cell, another one in each, with noise */
  for (size_t i = 0; i < (size_t) N_FRAMES * ROI * ROI; i++) {
    double x = (double) (i % ROI), y = (double) (i / ROI);

    state = state * 6364136223846793005u + 1442695040888963407u;
    frames[i] =
        (uint8_t) (110 + 40 * sin (0.9 * x + 0.2 * y) +
                   30 * sin (0.7 * y - 0.3 * x) + (double) (state >> 60));
  }
}

static void
work_open (Work *w, const ImkDevice *device, void *stream)
{
  ImkBackend backend = device ? IMK_BACKEND_CUDA : IMK_BACKEND_CPU;
  uint32_t n = imk_shcentroid_n_cells (&w->config);
  size_t size = (size_t) N_FRAMES * ROI * ROI,
         out_size = n * 10 * sizeof (float);
  uint32_t n_shifts = 2 * w->config.search_range + 1;
  void *host = NULL, *mapped = NULL;
  ImkError error;

  w->device = device;
  w->stream = stream;
  w->in = (ImkImage){.width = ROI,
      .height = ROI,
      .channels = 1,
      .type = IMK_TYPE_U8,
      .stride = ROI,
      .location = device ? IMK_LOCATION_HOST_MAPPED : IMK_LOCATION_HOST};
  w->out = w->in;
  w->out.type = IMK_TYPE_F32;
  w->out.width = w->config.fields == IMK_SHCENTROID_FIELDS_ALL
                     ? IMK_SHCENTROID_N_FIELDS
                     : 2;
  w->out.height = n;
  w->out.stride = imk_image_row_size (&w->out);
  if (device)
    bench_ok (
        device->alloc_pinned (size + out_size, &host, &mapped, &error), &error);
  else
    host = mapped = malloc (size + out_size);
  w->sums = malloc ((size_t) n * n_shifts * n_shifts * sizeof (double));
  if (!host || !w->sums)
    bench_fail ("there is no memory for %d frames.", (int) N_FRAMES);
  make_frames (host);
  w->frames = mapped;
  w->out.data = (uint8_t *) mapped + size;
  bench_ok (
      imk_shcentroid_new (backend, &w->config, &w->kernel, &error), &error);
}

static void
work_close (Work *w)
{
  imk_shcentroid_free (w->kernel);
  if (w->device)
    w->device->free_pinned (w->frames);
  else
    free (w->frames);
  free (w->sums);
}

/* The same frame by both: bit for bit. */
static void
check (Work *ours, Work *cpu)
{
  run_ours (ours, 1);
  run_ours (cpu, 1);
  if (memcmp (ours->out.data, cpu->out.data,
          cpu->out.stride * cpu->out.height) != 0)
    bench_fail ("CUDA differs from the CPU.");
}

static void
run_case (const char *name, const ImkShcentroidConfig *config,
    const ImkDevice *device, void *stream)
{
  ImkShcentroidConfig cog = *config;
  Work cpu = {.config = *config}, plain = {.config = cog}, gpu = cpu;
  BenchEntry entries[3] = {{"cpu", "ours", run_ours, &cpu}};
  uint32_t n = 1;

  cog.estimator = IMK_SHCENTROID_ESTIMATOR_COG;
  work_open (&cpu, NULL, NULL);
  if (device) {
    work_open (&gpu, device, stream);
    plain.config = cog;
    work_open (&plain, device, stream);
    check (&gpu, &cpu);
    entries[n++] = (BenchEntry){"cuda", "ours-cuda", run_ours, &gpu};
    entries[n++] = (BenchEntry){"cuda", "cog-cuda", run_ours, &plain};
  } else {
    work_open (&plain, NULL, NULL);
    if (config->n_templates)
      entries[n++] = (BenchEntry){"cpu", "plain-loop", run_plain, &cpu};
  }
  bench_case (name, entries, n);
  work_close (&cpu);
  work_close (&plain);
  if (device)
    work_close (&gpu);
}

static void
run_all (const ImkDevice *device, void *stream)
{
  static const uint32_t shapes[][2] = {
      {12, 4}, {20, 4}, {16, 2}, {20, 8}}; /* template, range */
  static float pattern[PITCH * PITCH];
  ImkShcentroidConfig c;
  char name[64];

  for (int i = 0; i < PITCH * PITCH; i++)
    pattern[i] = (float) (50 + 40 * sin (0.9 * (i % PITCH)) +
                          30 * sin (0.7 * (i / PITCH)));
  imk_shcentroid_config_init (&c);
  c.width = c.height = ROI;
  c.pitch_x = c.pitch_y = PITCH;
  c.columns = c.rows = ROI / PITCH;

  c.fields = IMK_SHCENTROID_FIELDS_XY;
  c.n_threads = 1;
  c.estimator = IMK_SHCENTROID_ESTIMATOR_CORRELATION;
  c.templates = pattern;
  c.n_templates = 1;
  for (size_t i = 0; i < sizeof (shapes) / sizeof (shapes[0]); i++) {
    c.template_width = c.template_height = shapes[i][0];
    c.search_range = shapes[i][1];
    snprintf (name, sizeof (name), "700-d20-template-%u-range-%u", shapes[i][0],
        shapes[i][1]);
    run_case (name, &c, device, stream);
  }
  c.template_width = c.template_height = 20;
  c.search_range = 4;
  c.correlation = IMK_SHCENTROID_CORRELATION_COVARIANCE;
  run_case ("700-d20-template-20-range-4-covariance", &c, device, stream);
  c.correlation = IMK_SHCENTROID_CORRELATION_NORMALISED;
  c.fields = IMK_SHCENTROID_FIELDS_ALL;
  run_case ("700-d20-template-20-range-4-all", &c, device, stream);
  c.fields = IMK_SHCENTROID_FIELDS_XY;
  c.template_source = IMK_SHCENTROID_TEMPLATE_FRAME;
  c.template_cell = 612;
  run_case ("700-d20-template-20-range-4-frame", &c, device, stream);
  c.template_source = IMK_SHCENTROID_TEMPLATE_STORED;
  c.n_threads = 0;
  run_case ("700-d20-template-20-range-4-threads", &c, device, stream);
}

int
main (int argc, char **argv)
{
  const ImkDevice *device = NULL;
  void *context, *stream = NULL;
  ImkError error;
  int n = 0;

  bench_open (argc, argv, "correlation");
  if (imk_device_get (&device, &error) != IMK_OK ||
      device->count (&n, &error) != IMK_OK || n == 0)
    device = NULL;
  if (device) {
    bench_ok (device->context (0, &context, &error), &error);
    bench_ok (device->push (context, &error), &error);
    bench_ok (device->stream_new (&stream, &error), &error);
  }
  run_all (device, stream);
  return bench_close ();
}
