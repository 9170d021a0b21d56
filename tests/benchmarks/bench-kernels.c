/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Our kernels for peers.py, which loads this module: the peers are Python
 * packages, and figures beside each other come from one process. */
#include <stdbool.h>
#include <stdio.h>

#include "lapsharpen/lapsharpen.h"
#include "shcentroid/shcentroid.h"

#define BENCH_API __attribute__ ((visibility ("default")))

BENCH_API ImkLapsharpen *bench_lapsharpen_new (uint32_t width, uint32_t height);
BENCH_API int bench_lapsharpen (ImkLapsharpen *self, const void *in, void *out,
    uint32_t width, uint32_t height);
BENCH_API ImkShcentroid *bench_shcentroid_new (
    uint32_t size, uint32_t pitch, bool cuda);
BENCH_API int bench_shcentroid (ImkShcentroid *self, const void *frame,
    void *xy, uint32_t size, uint32_t pitch, void *stream, bool mapped);

/* RGBA, one thread, amount 1, reflect101, all four channels: what OpenCV's
 * filter2D does by default. */
ImkLapsharpen *
bench_lapsharpen_new (uint32_t width, uint32_t height)
{
  ImkLapsharpenConfig config;
  ImkLapsharpen *self = NULL;

  imk_lapsharpen_config_init (&config);
  config.width = width;
  config.height = height;
  config.channels = 4;
  config.channel_mask = 15;
  config.n_threads = 1;
  config.border = IMK_LAPSHARPEN_BORDER_REFLECT101;
  return imk_lapsharpen_new (IMK_BACKEND_CPU, &config, &self, NULL) == IMK_OK
             ? self
             : NULL;
}

int
bench_lapsharpen (ImkLapsharpen *self, const void *in, void *out,
    uint32_t width, uint32_t height)
{
  ImkImage from = {.data = (void *) in,
      .width = width,
      .height = height,
      .stride = 4 * (size_t) width,
      .channels = 4};
  ImkImage to = from;

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
