/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/image.h"

IMK_BEGIN_DECLS

/**
 * ImkSphere: (how a sphere lies in the picture)
 * @x, @y: its middle in pixels, (0, 0) the centre of the top left one
 * @radius: pixels; 0 when it is not known */
typedef struct ImkSphere {
  double x, y, radius;
} ImkSphere;

/**
 * ImkSpherelightsConfig: (pictures of a mirror sphere)
 * @size: set by imk_spherelights_config_init, see imk/api.h
 * @width, @height: of the pictures, 1..65535
 * @type: u8 or u16
 * @channels: 1, 3 or 4
 * @colours: which of them are red, green, blue; of 1 channel all 0
 * @sphere: where it is; with a radius of 0 it is found: what is brighter than a
 *   tenth of the brightest in any picture
 * @threshold: a highlight is what is brighter than this part of the brightest
 *   point of the sphere; above 0, below 1
 * @gamma: the exponent that makes samples linear, (sample / full scale)^gamma;
 *   0.1..10. Highlights are found in linear light, a sphere in the samples */
typedef struct ImkSpherelightsConfig {
  size_t size;
  uint32_t width, height;
  ImkType type;
  uint32_t channels;
  uint32_t colours[3];
  ImkSphere sphere;
  double threshold;
  double gamma;
} ImkSpherelightsConfig;

/**
 * ImkSpherelight: (what one picture tells)
 * @direction: to the light, of length 1; x right, y up, z to the camera
 * @x, @y: middle of the highlight in pixels
 * @n_pixels: of the highlight */
typedef struct ImkSpherelight {
  double direction[3];
  double x, y;
  uint32_t n_pixels;
} ImkSpherelight;

typedef struct ImkSpherelights ImkSpherelights;

/* 1x1 of u8 with 1 channel, sphere to be found, threshold 0.8, gamma 1. */
IMK_API void imk_spherelights_config_init_sized (
    ImkSpherelightsConfig *config, size_t size);
static inline void
imk_spherelights_config_init (ImkSpherelightsConfig *config)
{
  imk_spherelights_config_init_sized (config, sizeof (*config));
}

/**
 * imk_spherelights_new: (for a set of pictures)
 * @self: (out): free with imk_spherelights_free
 *
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY; @self untouched */
IMK_API ImkStatus imk_spherelights_new (const ImkSpherelightsConfig *config,
    ImkSpherelights **self, ImkError *error);

/**
 * imk_spherelights_add: (the picture under the next light)
 * @in: in host memory
 *
 * The highlight is the brightest connected part (Rec.601 luma, its sum above
 * the threshold the largest) of the sphere, or of the whole picture when the
 * sphere is yet to be found.
 * Returns: IMK_ERROR_IMAGE, also when the picture is black; IMK_ERROR_MEMORY */
IMK_API ImkStatus imk_spherelights_add (
    ImkSpherelights *self, const ImkImage *in, ImkError *error);

/* Returns: pictures since the last reset */
IMK_API uint32_t imk_spherelights_n_added (const ImkSpherelights *self);

/**
 * imk_spherelights_finish: (the lights of the set)
 * @lights: (out): one for each picture
 * @sphere: (out): where it is
 *
 * Each pixel of a highlight, w above the threshold, has the normal n of the
 * sphere and reflects the camera's ray, v = (0, 0, 1), to 2 (n.v) n - v. Seen
 * from far away the reflection is an equal area map of all directions, so that
 *   sum of w (2 (n.v) n - v)
 * points to the middle of the lamp, however large it is. (The normal itself is
 * not the direction: a common mistake.)
 *
 * A picture without highlight, or with two, names itself in an error: as the
 * lights are in the order of the pictures, one that is missing would put all
 * that follow in a wrong place. No highlight is what is less than a quarter as
 * bright as the median of the pictures' brightest points; spreads over
 * reflections of more than 37 degrees around their mean; or has more than 4
 * times its pixels, and a hundredth of the sphere's, above the threshold. What
 * is below does not count: a sphere may mirror a bright table. Two are parts of
 * which the smaller has a fifth of the sum of the larger and is 11 degrees
 * away. Highlights at one place, within half a pixel, in three pictures or more
 * are an error as well: a window's.
 * Returns: IMK_ERROR_IMAGE for these, and when no circle can be found, or a
 *   highlight is outside of it; IMK_ERROR_CONFIG without pictures */
IMK_API ImkStatus imk_spherelights_finish (ImkSpherelights *self,
    ImkSpherelight *lights, ImkSphere *sphere, ImkError *error);

/* Returns: whether two highlights are at one place, within half a pixel */
IMK_API bool imk_spherelights_is_same (
    const ImkSpherelight *a, const ImkSpherelight *b);

/* @self may be NULL. */
IMK_API void imk_spherelights_free (ImkSpherelights *self);

/**
 * imk_spherelights_fit: (the circle of a mask)
 * @mask: u8 or u16, 1, 3 or 4 channels, in host memory; what has a first
 *   channel that is not 0 is the sphere
 * @sphere: (out): of its centre of gravity and its area
 *
 * Returns: IMK_ERROR_IMAGE when the mask is empty, or 5 % of its pixels are not
 *   in the circle, or of the circle's in the mask */
IMK_API ImkStatus imk_spherelights_fit (
    const ImkImage *mask, ImkSphere *sphere, ImkError *error);

IMK_END_DECLS
