/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/backend.h"
#include "imk/image.h"

IMK_BEGIN_DECLS

/* The largest width and height. */
#define IMK_RELIGHT_MAX_SIZE 65535u

/**
 * ImkRelightConfig: (one lamp far away, and what it shines on)
 * @size: set by imk_relight_config_init, see imk/api.h
 * @width, @height: of all images, 1..IMK_RELIGHT_MAX_SIZE
 * @azimuth, @elevation: degrees; the light comes from azimuth 0 at the right,
 *   90 above (y up), elevation 0 along the picture, 90 from the camera
 * @ambient, @diffuse, @specular: strengths, 0..1000
 * @shininess: exponent of the highlight, 0.1..10000
 * @gamma: pixels are what was computed, to the power 1 / @gamma; 0.1..10
 * @y_down: the y of the normals points down
 * @n_threads: of the CPU, 0 for one a processor */
typedef struct ImkRelightConfig {
  size_t size;
  uint32_t width, height;
  double azimuth, elevation;
  double ambient, diffuse, specular, shininess;
  double gamma;
  bool y_down;
  uint32_t n_threads;
} ImkRelightConfig;

/**
 * ImkRelightSource: (an image and how it is read)
 * @image: u8, u16 or f32 of 1, 3 or 4 channels. Normals n, of 3 or 4: u8 and
 *   u16 have 128 + 127 n and 32768 + 32767 n, f32 has n; all 0 where there is
 *   none. An albedo: 0 to full scale (f32 1) for 0 to 1; without data it is 1
 * @colours: which channels are x, y, z or red, green, blue */
typedef struct ImkRelightSource {
  ImkImage image;
  uint32_t colours[3];
} ImkRelightSource;

typedef struct ImkRelight ImkRelight;

/* 1x1, light from the upper left at 45 degrees, diffuse 1, all else 0,
 * shininess 30, gamma 1. */
IMK_API void imk_relight_config_init_sized (
    ImkRelightConfig *config, size_t size);
static inline void
imk_relight_config_init (ImkRelightConfig *config)
{
  imk_relight_config_init_sized (config, sizeof (*config));
}

/**
 * imk_relight_new: (for pictures of one size)
 * @self: (out): free with imk_relight_free
 *
 * CUDA: the context is current, here and in all calls.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE; @self
 *   untouched */
IMK_API ImkStatus imk_relight_new (ImkBackend backend,
    const ImkRelightConfig *config, ImkRelight **self, ImkError *error);

/* For the next picture: all but width, height and n_threads, which stay. */
IMK_API ImkStatus imk_relight_update (
    ImkRelight *self, const ImkRelightConfig *config, ImkError *error);

/**
 * imk_relight_process: (one picture)
 * @normals, @albedo: see there
 * @out: u8, 3 channels: red, green, blue
 * @stream: cudaStream_t, NULL for cpu; does not wait
 *
 * With the unit vectors n, l to the light and h halfway from l to the camera,
 *   albedo (ambient + diffuse max (0, n.l)) + specular max (0, n.h)^shininess,
 * the highlight only where n.l > 0 (Blinn 1977); cut off at 1, to the power
 * 1 / gamma, times 255, rounded. Black where there is no normal, or one with a
 * number that is not finite; an albedo that is no finite number above 0 is 0.
 * CPU and CUDA differ by 1 of 255 at most.
 * Returns: IMK_ERROR_IMAGE, nothing written; IMK_ERROR_DEVICE */
IMK_API ImkStatus imk_relight_process (ImkRelight *self,
    const ImkRelightSource *normals, const ImkRelightSource *albedo,
    ImkImage *out, void *stream, ImkError *error);

/* @self may be NULL. */
IMK_API void imk_relight_free (ImkRelight *self);

IMK_END_DECLS
