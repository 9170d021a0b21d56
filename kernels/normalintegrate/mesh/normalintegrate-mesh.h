/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/normalintegrate.h"

IMK_BEGIN_DECLS

typedef enum ImkMeshFormat {
  IMK_MESH_PLY, /* binary, little endian */
  IMK_MESH_OBJ, /* text */
  IMK_MESH_GLB, /* glTF 2.0, binary */
} ImkMeshFormat;

/* The most vertices of a mesh with step 0. */
#define IMK_MESH_AUTO_VERTICES (1u << 22)

/**
 * ImkMesh: (what a mesh is made of; images are in host memory)
 * @config: of the heights: size, mm_per_pixel, pixel_aspect, focal_pixels, and
 *   the format of @normal
 * @height: f32, 1 channel: mm, NaN where there is none
 * @normal: what the heights were made of
 * @colour: u8, 3 channels, red, green, blue, as screens show them (sRGB);
 *   without data where there is none
 * @step: a vertex every so many columns and rows; 0: the smallest step of at
 *   most IMK_MESH_AUTO_VERTICES
 * @texture: (nullable): name of a picture of @colour, for PLY
 * @material: (nullable): name of an .mtl file with "surface", for OBJ
 * @png, @png_size: (nullable): @colour as a PNG file, for GLB
 * @removed: (nullable): as in the summary of the heights: turns the normals,
 *   and says where vertices are through a lens */
typedef struct ImkMesh {
  const ImkNormalintegrateConfig *config;
  ImkImage height, normal, colour;
  uint32_t step;
  const char *texture, *material;
  const void *png;
  size_t png_size;
  const double *removed;
} ImkMesh;

/* Takes the next part of a file. Returns: IMK_OK, or @error set, which ends the
 * mesh */
typedef ImkStatus (*ImkMeshWrite) (
    void *data, const void *bytes, size_t size, ImkError *error);

/**
 * imk_normalintegrate_mesh_write: (a file of triangles)
 *
 * A vertex for each pixel with a height, every step pixels: x to the right, y
 * up, z to the camera, from the middle of the lower left pixel; in mm, in GLB
 * in metres. Through a lens, they are where the surface is. Each has a normal,
 * a texture coordinate (0, 0 the lower left corner of the picture, in GLB the
 * upper left one) and, in PLY and in OBJ without @material, a colour. Two
 * triangles for four neighbours, one for three, none where more are missing;
 * counter-clockwise seen from +z. Numbers of text have a dot in every locale,
 * and six digits beyond those of a pixel. Returns: IMK_ERROR_IMAGE;
 * IMK_ERROR_CONFIG for a format that is none, and for more vertices or bytes
 * than it can have; IMK_ERROR_MEMORY; what @write said
 */
IMK_API ImkStatus imk_normalintegrate_mesh_write (const ImkMesh *mesh,
    ImkMeshFormat format, ImkMeshWrite write, void *data, ImkError *error);

IMK_END_DECLS
