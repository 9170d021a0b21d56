/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a kernel costs against each of its sizes, the others held: rows
 * SUBJECT-SIZE-VALUE, of which scaling.py makes a plot. On one thread, but for
 * the rows of "threads", or with --gpu on a device, where a call includes its
 * launch and the wait for it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "imk/device.h"
#include "imk/insarxcorr.h"
#include "imk/lapsharpen.h"
#include "imk/octbscan.h"
#include "imk/photostereo.h"
#include "imk/shcentroid.h"
#include "imk/shreconstruct.h"

enum { MAX_VALUES = 12 };

static const ImkDevice *device; /* NULL: on the CPU */
static void *stream;
static ImkError error;

/* --- memory --------------------------------------------------------------- */

/* A ring of one buffer, as where the kernel has its images. What a case
 * needs goes with the process. */
static void *
move (BenchRing *from)
{
  size_t size = from->size;
  void *memory = from->block;

  if (device) {
    bench_ok (device->alloc_device (size, &memory, &error), &error);
    bench_ok (
        device->copy (memory, size, from->block, size, size, 1, stream, &error),
        &error);
    bench_ok (device->stream_synchronize (stream, &error), &error);
    bench_ring_free (from);
  }
  return memory;
}

/* Of noise. */
static ImkImage
new_image (uint32_t width, uint32_t height, uint32_t channels, ImkType type)
{
  ImkImage image = {.width = width,
      .height = height,
      .channels = channels,
      .type = type,
      .location = device ? IMK_LOCATION_DEVICE : IMK_LOCATION_HOST};
  BenchRing noise;

  image.stride = imk_image_row_size (&image);
  noise = bench_ring_new (image.stride * height, 1);
  bench_ring_noise (&noise, 1);
  image.data = move (&noise);
  return image;
}

static ImkBackend
backend (void)
{
  return device ? IMK_BACKEND_CUDA : IMK_BACKEND_CPU;
}

static void
finish (void)
{
  if (device)
    bench_ok (device->stream_synchronize (stream, &error), &error);
}

/* --- kernels -------------------------------------------------------------- */

/* The sizes of a case, by name in the table below. */
typedef struct Sizes {
  uint32_t width, height, pitch, lights, patches, commands, threads;
} Sizes;

typedef struct Work {
  void *kernel;
  ImkImage in, out;
  uint32_t n; /* pictures, or rows of patches */
  void *more[2];
} Work;

static void
open_lapsharpen (Work *w, const Sizes *s)
{
  ImkLapsharpenConfig c;
  ImkLapsharpen *kernel;

  imk_lapsharpen_config_init (&c);
  c.width = s->width;
  c.height = s->height;
  c.channels = 4;
  c.channel_mask = 7;
  c.alpha_channel = 3;
  c.n_threads = s->threads;
  w->in = new_image (c.width, c.height, 4, IMK_TYPE_U8);
  w->out = new_image (c.width, c.height, 4, IMK_TYPE_U8);
  bench_ok (imk_lapsharpen_new (backend (), &c, &kernel, &error), &error);
  w->kernel = kernel;
}

static void
run_lapsharpen (void *data, uint32_t turn)
{
  Work *w = data;

  (void) turn;
  bench_ok (imk_lapsharpen_process (w->kernel, &w->in, &w->out, stream, &error),
      &error);
  finish ();
}

static void
open_shcentroid (Work *w, const Sizes *s)
{
  ImkShcentroidConfig c;
  ImkShcentroid *kernel;

  imk_shcentroid_config_init (&c);
  c.width = s->width;
  c.height = s->height;
  c.pitch_x = c.pitch_y = s->pitch;
  c.columns = s->width / s->pitch;
  c.rows = s->height / s->pitch;
  c.n_threads = s->threads;
  w->in = new_image (c.width, c.height, 1, IMK_TYPE_U8);
  w->out = new_image (10, c.columns * c.rows, 1, IMK_TYPE_F32);
  bench_ok (imk_shcentroid_new (backend (), &c, &kernel, &error), &error);
  w->kernel = kernel;
}

static void
run_shcentroid (void *data, uint32_t turn)
{
  Work *w = data;

  (void) turn;
  bench_ok (imk_shcentroid_process (w->kernel, &w->in, &w->out, stream, &error),
      &error);
  finish ();
}

/* @width: pixels of a spectrum; @height: A-scans */
static void
open_octbscan (Work *w, const Sizes *s)
{
  static const double range[] = {806, 675};
  static const ImkOctbscanCamera camera = {IMK_OCTBSCAN_MAP_RANGE, range, 2};
  ImkOctbscanConfig c;
  ImkOctbscan *kernel;
  uint32_t width, height;

  imk_octbscan_config_init (&c);
  c.width = c.upsample = s->width;
  c.height = s->height;
  c.cameras = &camera;
  c.n_threads = s->threads;
  imk_octbscan_size (&c, &width, &height);
  w->in = new_image (c.width, c.height, 1, c.type);
  w->out = new_image (width, height, 1, IMK_TYPE_U8);
  bench_ok (imk_octbscan_new (backend (), &c, &kernel, &error), &error);
  w->kernel = kernel;
}

static void
run_octbscan (void *data, uint32_t turn)
{
  Work *w = data;
  const ImkOctbscanJob job = {&w->in, 0, &w->out};

  (void) turn;
  bench_ok (imk_octbscan_process (w->kernel, &job, 1, stream, &error), &error);
  finish ();
}

/* A matt surface of waves, in the light of a lamp. */
static void
render (uint8_t *to, uint32_t width, uint32_t height,
    const ImkPhotostereoLight *light)
{
  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++) {
      double p = 0.5 * sin (0.05 * x), q = 0.5 * cos (0.04 * y);
      double v =
          (p * light->x + q * light->y + light->z) / sqrt (p * p + q * q + 1);

      to[(size_t) y * width + x] = (uint8_t) (v > 0 ? 200 * v : 0);
    }
}

/* A set with its solution, by the default of thresholds. */
static void
open_photostereo (Work *w, const Sizes *s)
{
  static ImkPhotostereoLight lights[IMK_PHOTOSTEREO_MAX_LIGHTS];
  ImkPhotostereoConfig c;
  ImkPhotostereo *kernel;
  BenchRing pictures;

  w->in = new_image (s->width, s->height, 1, IMK_TYPE_U8);
  w->out = new_image (s->width, s->height, 3, IMK_TYPE_F32);
  pictures = bench_ring_new (w->in.stride * s->height * s->lights, 1);
  for (uint32_t i = 0; i < s->lights; i++) {
    double z = (i + 0.5) / s->lights * 0.6 + 0.4, r = sqrt (1 - z * z);

    lights[i] = (ImkPhotostereoLight){.x = r * cos (2.399963 * i),
        .y = r * sin (2.399963 * i),
        .z = z,
        .intensity = {1, 1, 1}};
    render (pictures.block + i * w->in.stride * s->height, s->width, s->height,
        &lights[i]);
  }
  w->more[0] = move (&pictures);
  imk_photostereo_config_init (&c);
  c.width = s->width;
  c.height = s->height;
  c.n_lights = w->n = s->lights;
  c.lights = lights;
  c.n_threads = s->threads;
  bench_ok (imk_photostereo_new (backend (), &c, &kernel, &error), &error);
  w->kernel = kernel;
}

static void
run_photostereo (void *data, uint32_t turn)
{
  Work *w = data;
  ImkPhotostereoOutputs out = {.normal = w->out};

  (void) turn;
  imk_photostereo_reset (w->kernel);
  for (uint32_t i = 0; i < w->n; i++) {
    ImkImage picture = w->in;

    picture.data = (uint8_t *) w->more[0] + i * picture.stride * picture.height;
    bench_ok (
        imk_photostereo_add (w->kernel, &picture, i, stream, &error), &error);
  }
  bench_ok (
      imk_photostereo_solve (w->kernel, &out, NULL, stream, &error), &error);
  finish ();
}

/* @patches in rows of twenty over an image of @width and 130 lines a row. Lines
 * come from page-locked memory, and results go there. */
enum { PATCHES = 20 };

static void
pin (ImkImage *image, ImkLocation where)
{
  size_t size = image->stride * image->height;
  void *host, *mapped;

  bench_ok (device->alloc_pinned (size, &host, &mapped, &error), &error);
  bench_ok (
      device->copy (host, size, image->data, size, size, 1, stream, &error),
      &error);
  image->data = where == IMK_LOCATION_HOST ? host : mapped;
  image->location = where;
}

static void
open_insarxcorr (Work *w, const Sizes *s)
{
  ImkInsarxcorrConfig c;
  ImkInsarxcorr *kernel;

  imk_insarxcorr_config_init (&c);
  c.nx = PATCHES;
  c.ny = w->n = s->patches / PATCHES;
  c.width[0] = c.width[1] = s->width;
  c.height[0] = c.height[1] = 130 * w->n + 1024;
  c.n_threads = s->threads;
  w->in = new_image (c.width[0], c.height[0], 1, IMK_TYPE_CI16);
  w->out = new_image (IMK_INSARXCORR_N_FIELDS, c.nx, 1, IMK_TYPE_F64);
  if (device) {
    pin (&w->in, IMK_LOCATION_HOST);
    pin (&w->out, IMK_LOCATION_HOST_MAPPED);
  }
  bench_ok (imk_insarxcorr_new (backend (), &c, &kernel, &error), &error);
  w->kernel = kernel;
}

static void
push_lines (Work *w, ImkInsarxcorrSide side)
{
  uint32_t room;

  while ((room = imk_insarxcorr_room (w->kernel, side)) > 0 &&
         !imk_insarxcorr_is_ready (w->kernel)) {
    ImkImage lines = w->in;

    lines.data = (uint8_t *) w->in.data +
                 imk_insarxcorr_pushed (w->kernel, side) * w->in.stride;
    lines.height = room < 76 ? room : 76;
    bench_ok (imk_insarxcorr_push (w->kernel, side, &lines, &error), &error);
  }
}

static void
run_insarxcorr (void *data, uint32_t turn)
{
  Work *w = data;

  (void) turn;
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    imk_insarxcorr_rewind (w->kernel, (ImkInsarxcorrSide) s);
  for (uint32_t row = 0; row < w->n; row++) {
    for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
      push_lines (w, (ImkInsarxcorrSide) s);
    bench_ok (
        imk_insarxcorr_process (w->kernel, &w->out, stream, &error), &error);
    finish ();
    imk_insarxcorr_advance (w->kernel);
  }
}

/* As many commands as slopes. */
static void
open_shreconstruct (Work *w, const Sizes *s)
{
  ImkShreconstructConfig c;
  ImkShreconstruct *kernel;
  float *matrix = calloc ((size_t) s->commands * s->commands, sizeof (float));

  if (!matrix)
    bench_fail ("there is no memory for %u commands.", s->commands);
  imk_shreconstruct_config_init (&c);
  c.n_cells = s->commands / 2;
  c.n_modes = c.n_commands = s->commands;
  c.matrix = matrix;
  c.n_threads = s->threads;
  w->in = imk_image_of_rows (
      calloc (s->commands, sizeof (float)), IMK_TYPE_F32, s->commands, 1);
  w->more[0] = calloc (s->commands, sizeof (float));
  bench_ok (imk_shreconstruct_new (backend (), &c, &kernel, &error), &error);
  free (matrix);
  w->kernel = kernel;
}

static void
run_shreconstruct (void *data, uint32_t turn)
{
  Work *w = data;

  (void) turn;
  bench_ok (imk_shreconstruct_process (
                w->kernel, &w->in, NULL, w->more[0], NULL, NULL, &error),
      &error);
}

/* ------------------------------------------------------------------------ */

/* A size of a kernel. */
typedef struct Row {
  const char *kernel, *size;
  void (*open) (Work *w, const Sizes *s);
  void (*run) (void *data, uint32_t turn);
  void (*close) (void *kernel);
  Sizes sizes;   /* that are held */
  size_t member; /* of Sizes, that changes */
  uint32_t values[MAX_VALUES];
  bool is_square; /* its height is its width */
  bool on_cpu;    /* alone */
} Row;

#define KERNEL(name) \
#name, .open = open_##name, .run = run_##name, \
         .close = (void (*)(void *)) imk_##name##_free
#define SIZE(name) .size = #name, .member = offsetof (Sizes, name)
#define THREADS SIZE (threads), .on_cpu = true, .values = {1, 2, 4, 8, 16}

static const Row rows[] = {
    {KERNEL (lapsharpen), SIZE (width), .sizes = {.height = 1024},
        .values = {16, 64, 256, 1024, 2048, 4096, 8192, 16384}},
    {KERNEL (lapsharpen), SIZE (height), .sizes = {.width = 1024},
        .values = {16, 64, 256, 1024, 2048, 4096, 8192, 16384}},
    {KERNEL (lapsharpen), THREADS, .sizes = {.width = 7680, .height = 4320}},
    {KERNEL (shcentroid), SIZE (width), .is_square = true,
        .sizes = {.pitch = 10}, /* 1 to 160,000 cells */
        .values = {10, 40, 100, 200, 400, 700, 1000, 2000, 4000}},
    {KERNEL (shcentroid), SIZE (pitch),
        .sizes = {.width = 1000, .height = 1000},
        .values = {2, 4, 5, 8, 10, 20, 40, 100, 200}},
    {KERNEL (shcentroid), THREADS,
        .sizes = {.width = 2000, .height = 2000, .pitch = 10}},
    {KERNEL (octbscan), SIZE (width), .sizes = {.height = 512},
        .values = {128, 256, 512, 1000, 1024, 2048, 4096, 8192}},
    {KERNEL (octbscan), SIZE (height), .sizes = {.width = 1024},
        .values = {8, 32, 128, 512, 1024, 2048, 4096, 8192}},
    {KERNEL (octbscan), THREADS, .sizes = {.width = 1024, .height = 2048}},
    {KERNEL (photostereo), SIZE (width), .is_square = true,
        .sizes = {.lights = 20}, .values = {32, 64, 128, 256, 512, 1024, 2048}},
    {KERNEL (photostereo), SIZE (lights),
        .sizes = {.width = 512, .height = 512},
        .values = {4, 8, 12, 20, 32, 60, 96, 128, 260}},
    {KERNEL (photostereo), THREADS,
        .sizes = {.width = 1024, .height = 1024, .lights = 20}},
    {KERNEL (insarxcorr), SIZE (patches), .sizes = {.width = 3416},
        .values = {20, 40, 100, 200, 500}},
    {KERNEL (insarxcorr), THREADS, .sizes = {.width = 3416, .patches = 100}},
    {KERNEL (shreconstruct), SIZE (commands), .on_cpu = true,
        .values = {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}},
    {KERNEL (shreconstruct), THREADS, .sizes = {.commands = 4096}},
};

static void
measure (const Row *row, uint32_t value)
{
  Sizes s = row->sizes;
  Work w = {0};
  const BenchEntry entry = {device ? "cuda" : "cpu", "ours", row->run, &w};
  char name[80];

  snprintf (name, sizeof (name), "%s-%s-%u", row->kernel, row->size, value);
  if (!bench_wants_row (name))
    return;
  s.threads = 1;
  *(uint32_t *) ((uint8_t *) &s + row->member) = value;
  if (row->is_square)
    s.height = s.width;
  row->open (&w, &s);
  bench_case (name, &entry, 1);
  row->close (w.kernel);
}

static void
open_device (void)
{
  void *context;

  bench_ok (imk_backend_load ("cuda", &error), &error);
  bench_ok (imk_device_get (&device, &error), &error);
  bench_ok (device->context (0, &context, &error), &error);
  bench_ok (device->push (context, &error), &error);
  bench_ok (device->stream_new (&stream, &error), &error);
}

int
main (int argc, char **argv)
{
  bench_open (argc, argv, "scaling");
  bench_limit (0.5);
  if (bench_is_gpu ())
    open_device ();
  for (size_t i = 0; i < sizeof (rows) / sizeof (*rows); i++)
    for (int v = 0; v < MAX_VALUES && rows[i].values[v] > 0; v++)
      if (!device || !rows[i].on_cpu)
        measure (&rows[i], rows[i].values[v]);
  return bench_close ();
}
