/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/image.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ImkMeshFormat {
  IMK_MESH_PLY, /* binary, little endian */
  IMK_MESH_OBJ, /* text */
} ImkMeshFormat;

/**
 * imk_normalintegrate_mesh_size: (room that a mesh needs)
 * @height: f32, 1 channel, in host memory: heights, NaN where there is none
 * @size: (out): bytes; of text, at most
 *
 * Returns: IMK_ERROR_IMAGE; IMK_ERROR_CONFIG for a format that is none, or for
 *   more than 2^31 - 1 heights */
IMK_API ImkStatus imk_normalintegrate_mesh_size (const ImkImage *height,
    ImkMeshFormat format, size_t *size, ImkError *error);

/**
 * imk_normalintegrate_mesh_write: (a file of triangles)
 * @height: as above; in mm
 * @mm_per_pixel: width of a pixel, 1e-9..1e6
 * @pixel_aspect: that over its height, 1e-3..1e3
 * @to: room for what imk_normalintegrate_mesh_size () said
 * @size: (out): bytes that were written
 *
 * A vertex for each pixel with a height, in mm: x to the right, y up, from the
 * middle of the lower left pixel; z as it is. Two triangles for four
 * neighbours, one for three, none where more are missing; counter-clockwise
 * seen from +z. Numbers of text have a dot in every locale, and six digits
 * beyond those of @mm_per_pixel.
 * Returns: as above; IMK_ERROR_MEMORY */
IMK_API ImkStatus imk_normalintegrate_mesh_write (const ImkImage *height,
    double mm_per_pixel, double pixel_aspect, ImkMeshFormat format, void *to,
    size_t *size, ImkError *error);

#ifdef __cplusplus
}
#endif
