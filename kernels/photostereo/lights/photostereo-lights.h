/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/status.h"

IMK_BEGIN_DECLS

/* More lights in a file are refused: no rig has as many. */
#define IMK_PHOTOSTEREO_MAX_LIGHTS 4096
#define IMK_PHOTOSTEREO_MAX_BANDS 16

/**
 * ImkPhotostereoLight: (one lamp; x right, y up, z from the object to the
 *   camera)
 * @x, @y, @z: its position in mm, or its direction seen from the object, of
 *   any length
 * @intensity: of red, green, blue, relative to 1; above 0
 * @n_bands: 0, or so many bands that @intensity is of instead */
typedef struct ImkPhotostereoLight {
  double x, y, z;
  double intensity[IMK_PHOTOSTEREO_MAX_BANDS];
  uint32_t n_bands;
} ImkPhotostereoLight;

/* What the numbers of a light file are. */
typedef enum ImkPhotostereoLightKind {
  IMK_PHOTOSTEREO_KIND_UNKNOWN, /* the file does not say */
  IMK_PHOTOSTEREO_KIND_DIRECTIONS,
  IMK_PHOTOSTEREO_KIND_POSITIONS,
} ImkPhotostereoLightKind;

/**
 * ImkPhotostereoLights: (a light file)
 * @n: at least 1
 * @lights: in the order of the file; to be freed by
 *   imk_photostereo_lights_clear ()
 * @kind: a .dome file says it, AliceVision has directions. Of a file of text it
 * is a guess: DIRECTIONS when all are unit vectors to 1 %, POSITIONS when none
 * is, else UNKNOWN */
typedef struct ImkPhotostereoLights {
  uint32_t n;
  ImkPhotostereoLight *lights;
  ImkPhotostereoLightKind kind;
} ImkPhotostereoLights;

/**
 * imk_photostereo_lights_parse: (reads the text of a light file)
 * @text: @size bytes, not terminated, any content
 * @name: how messages call the file
 * @lights: (out): what was in it; untouched on failure
 *
 * What begins with '{' is a .dome file of Relight (JSON): `directions`,
 * `positionsSphere` or `positions3d` as `lightConfiguration` says, and
 * `ledAdjust` for the intensities; or, if it has `lights`, the file of
 * AliceVision's light calibration: `direction` (y down, z away from the camera)
 * and `intensity` of each. What begins with a line of one number is an
 * .lp file of the RTI tools: the count, then "name x y z" lines, or all of them
 * "name x y z r g b" with the intensities; a name may hold spaces, and end in
 * numbers. All else is plain text: a line of "x y z", "x y z i" or "x y z
 * r g b" each light, with an intensity or those of red, green, blue. Empty
 * lines and what follows a '#' are left out. Numbers have a dot in every
 * locale.
 * Returns: IMK_ERROR_FILE, with the line, for a number that is none or not
 *   finite, a zero vector, an intensity not above 0, a count that is not met;
 *   IMK_ERROR_MEMORY */
IMK_API ImkStatus imk_photostereo_lights_parse (const char *text, size_t size,
    const char *name, ImkPhotostereoLights *lights, ImkError *error);

/**
 * imk_photostereo_lights_parse_intensities: (replaces the intensities)
 * @text: a line of "i" or "r g b" for each light of @lights; or of 2 or 4 to
 *   IMK_PHOTOSTEREO_MAX_BANDS numbers, of bands
 *
 * Returns: IMK_ERROR_FILE, with the line, as imk_photostereo_lights_parse ();
 *   @lights is untouched then */
IMK_API ImkStatus imk_photostereo_lights_parse_intensities (const char *text,
    size_t size, const char *name, ImkPhotostereoLights *lights,
    ImkError *error);

/* Frees the array in @lights. */
IMK_API void imk_photostereo_lights_clear (ImkPhotostereoLights *lights);

IMK_END_DECLS
