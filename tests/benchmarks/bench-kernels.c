/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Our kernels for peers.py, which loads this module: the peers are Python
 * packages, and figures beside each other come from one process. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "imk/lapsharpen.h"
#include "imk/photostereo.h"
#include "imk/shcentroid.h"

#define BENCH_API __attribute__ ((visibility ("default")))

/* Sharpening of the class of that name in peers.py. */
typedef struct BenchSharpening {
  uint32_t channels, depth; /* u8 or u16 by the depth */
  double amount;
  uint32_t neighbours;
  uint32_t kernel_size; /* 0: none */
  double radius;        /* of an unsharp mask; 0: none */
  double threshold;
  uint32_t local; /* clamp */
  uint32_t alpha, border;
  float kernel[IMK_LAPSHARPEN_MAX_KERNEL * IMK_LAPSHARPEN_MAX_KERNEL];
} BenchSharpening;

BENCH_API ImkLapsharpen *bench_lapsharpen_new (
    uint32_t width, uint32_t height, const BenchSharpening *s);
BENCH_API int bench_lapsharpen (ImkLapsharpen *self, const void *in, void *out,
    uint32_t width, uint32_t height, uint32_t channels, uint32_t depth);
BENCH_API ImkShcentroid *bench_shcentroid_new (
    uint32_t size, uint32_t pitch, bool cuda);
BENCH_API int bench_shcentroid (ImkShcentroid *self, const void *frame,
    void *xy, uint32_t size, uint32_t pitch, void *stream, bool mapped);
BENCH_API ImkPhotostereo *bench_photostereo_new (uint32_t width,
    uint32_t height, uint32_t n_lights, const double *xyz, uint32_t n_threads,
    bool robust, bool near);
BENCH_API int bench_photostereo_add (ImkPhotostereo *self, const void *frame,
    uint32_t width, uint32_t height, uint32_t light);
BENCH_API int bench_photostereo_solve (
    ImkPhotostereo *self, void *normals, uint32_t width, uint32_t height);
BENCH_API void bench_photostereo_reset (ImkPhotostereo *self);
BENCH_API void bench_photostereo_free (ImkPhotostereo *self);

/* For one thread. */
ImkLapsharpen *
bench_lapsharpen_new (uint32_t width, uint32_t height, const BenchSharpening *s)
{
  ImkLapsharpenConfig config;
  ImkLapsharpen *self = NULL;

  imk_lapsharpen_config_init (&config);
  config.width = width;
  config.height = height;
  config.type = s->depth > 8 ? IMK_TYPE_U16 : IMK_TYPE_U8;
  config.depth = s->depth;
  config.channels = s->channels;
  config.channel_mask = (1u << s->channels) - 1;
  if (s->channels == 4) {
    config.channel_mask = 7;
    config.alpha_channel = 3;
  }
  config.n_threads = 1;
  config.border = (ImkLapsharpenBorder) s->border;
  config.alpha = (ImkLapsharpenAlpha) s->alpha;
  config.amount = s->amount;
  config.neighbours = s->neighbours;
  config.threshold = s->threshold;
  config.clamp =
      s->local ? IMK_LAPSHARPEN_CLAMP_LOCAL : IMK_LAPSHARPEN_CLAMP_FULL;
  config.kernel_size = s->kernel_size;
  memcpy (config.kernel, s->kernel, sizeof (config.kernel));
  if (s->kernel_size)
    config.method = IMK_LAPSHARPEN_METHOD_KERNEL;
  if (s->radius > 0) {
    config.method = IMK_LAPSHARPEN_METHOD_UNSHARP;
    config.radius = s->radius;
  }
  return imk_lapsharpen_new (IMK_BACKEND_CPU, &config, &self, NULL) == IMK_OK
             ? self
             : NULL;
}

int
bench_lapsharpen (ImkLapsharpen *self, const void *in, void *out,
    uint32_t width, uint32_t height, uint32_t channels, uint32_t depth)
{
  ImkImage from = {.data = (void *) in,
      .width = width,
      .height = height,
      .channels = channels,
      .type = depth > 8 ? IMK_TYPE_U16 : IMK_TYPE_U8};
  ImkImage to;

  from.stride = imk_image_row_size (&from);
  to = from;
  to.data = out;
  return imk_lapsharpen_process (self, &from, &to, NULL, NULL);
}

/* u8, x and y of each cell as float32, one thread on the CPU. */
ImkShcentroid *
bench_shcentroid_new (uint32_t size, uint32_t pitch, bool cuda)
{
  ImkShcentroidConfig config;
  ImkShcentroid *self = NULL;
  ImkError error;

  imk_shcentroid_config_init (&config);
  config.width = config.height = size;
  config.x0 = config.y0 = 0.0;
  config.pitch_x = config.pitch_y = pitch;
  config.columns = config.rows = size / pitch;
  config.fields = IMK_SHCENTROID_FIELDS_XY;
  config.n_threads = 1;
  if (imk_shcentroid_new (cuda ? IMK_BACKEND_CUDA : IMK_BACKEND_CPU, &config,
          &self, &error) == IMK_OK)
    return self;
  fprintf (stderr, "peers: %s\n", error.message);
  return NULL;
}

/* @mapped: the pointers are the device's, of page-locked host memory. */
int
bench_shcentroid (ImkShcentroid *self, const void *frame, void *xy,
    uint32_t size, uint32_t pitch, void *stream, bool mapped)
{
  ImkLocation location = mapped ? IMK_LOCATION_HOST_MAPPED : IMK_LOCATION_HOST;
  ImkImage in = {.data = (void *) frame,
      .width = size,
      .height = size,
      .stride = size,
      .channels = 1,
      .location = location};
  ImkImage out = {.data = xy,
      .width = 2,
      .height = (size / pitch) * (size / pitch),
      .stride = 2 * sizeof (float),
      .channels = 1,
      .type = IMK_TYPE_F32,
      .location = location};

  return imk_shcentroid_process (self, &in, &out, stream, NULL);
}

/* @near: a u8 mosaic of 100 mm under lamps at @xyz, inverse square; else u8
 * grey values under lights from there. */
ImkPhotostereo *
bench_photostereo_new (uint32_t width, uint32_t height, uint32_t n_lights,
    const double *xyz, uint32_t n_threads, bool robust, bool near)
{
  ImkPhotostereoLight lights[IMK_PHOTOSTEREO_MAX_LIGHTS];
  ImkPhotostereoConfig config;
  ImkPhotostereo *self = NULL;
  ImkError error;

  for (uint32_t i = 0; i < n_lights; i++)
    lights[i] = (ImkPhotostereoLight){.x = xyz[3 * i],
        .y = xyz[3 * i + 1],
        .z = xyz[3 * i + 2],
        .intensity = {1, 1, 1}};
  imk_photostereo_config_init (&config);
  config.width = width;
  config.height = height;
  config.pattern =
      near ? IMK_PHOTOSTEREO_PATTERN_RGGB : IMK_PHOTOSTEREO_PATTERN_NONE;
  config.lights = lights;
  config.n_lights = n_lights;
  config.positions = near;
  config.mm_per_pixel = 100.0 / width;
  config.n_threads = n_threads;
  config.robust =
      robust ? IMK_PHOTOSTEREO_ROBUST_THRESHOLDS : IMK_PHOTOSTEREO_ROBUST_NONE;
  if (imk_photostereo_new (IMK_BACKEND_CPU, &config, &self, &error) == IMK_OK)
    return self;
  fprintf (stderr, "peers: %s\n", error.message);
  return NULL;
}

int
bench_photostereo_add (ImkPhotostereo *self, const void *frame, uint32_t width,
    uint32_t height, uint32_t light)
{
  ImkImage in = {.data = (void *) frame,
      .stride = width,
      .width = width,
      .height = height,
      .channels = 1};

  return imk_photostereo_add (self, &in, light, NULL, NULL);
}

int
bench_photostereo_solve (
    ImkPhotostereo *self, void *normals, uint32_t width, uint32_t height)
{
  ImkPhotostereoOutputs out = {.normal = {.data = normals,
                                   .stride = 3 * sizeof (float) * width,
                                   .width = width,
                                   .height = height,
                                   .channels = 3,
                                   .type = IMK_TYPE_F32}};

  return imk_photostereo_solve (self, &out, NULL, NULL, NULL);
}

void
bench_photostereo_reset (ImkPhotostereo *self)
{
  imk_photostereo_reset (self);
}

void
bench_photostereo_free (ImkPhotostereo *self)
{
  imk_photostereo_free (self);
}
