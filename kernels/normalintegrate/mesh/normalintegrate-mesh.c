/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/normalintegrate-mesh.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  PLY_HEADER = 256, /* more than it ever takes */
  PLY_VERTEX = 12,
  PLY_FACE = 13,
  OBJ_NUMBER = 22, /* 19 digits, sign, dot, separator */
  OBJ_VERTEX = 2 + 3 * OBJ_NUMBER,
  OBJ_FACE = 2 + 3 * 11,
  DIGITS = 6, /* beyond those of a pixel */
};

typedef struct Mesh {
  const ImkImage *height;
  double mm_per_pixel, mm_per_row;
  int decimals; /* of text */
  double unit;  /* 10^decimals */
  uint64_t n_vertices, n_faces;
  char *to;
} Mesh;

static float
height_at (const ImkImage *height, uint32_t x, uint32_t y)
{
  return (
      (const float *) ((const uint8_t *) height->data + y * height->stride))[x];
}

static bool
is_there (const ImkImage *height, uint32_t x, uint32_t y)
{
  return isfinite (height_at (height, x, y));
}

static ImkStatus
check (const ImkImage *height, ImkMeshFormat format, ImkError *error)
{
  if (format != IMK_MESH_PLY && format != IMK_MESH_OBJ)
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "There is no mesh format %d.", (int) format);
  return imk_image_check (height, "height", IMK_TYPE_F32, 1, height->width,
      height->height, false, error);
}

/* Of the pixel and its neighbours to the right, below, and both; in this
 * order. Returns: how many triangles they make */
static unsigned
corners (const ImkImage *height, uint32_t x, uint32_t y, bool there[4])
{
  unsigned n = 0;

  for (uint32_t i = 0; i < 4; i++) {
    there[i] = is_there (height, x + i % 2, y + i / 2);
    n += there[i];
  }
  return n < 3 ? 0 : n - 2;
}

static void
count (Mesh *mesh)
{
  const ImkImage *h = mesh->height;
  bool there[4];

  for (uint32_t y = 0; y < h->height; y++)
    for (uint32_t x = 0; x < h->width; x++) {
      mesh->n_vertices += is_there (h, x, y);
      if (x + 1 < h->width && y + 1 < h->height)
        mesh->n_faces += corners (h, x, y, there);
    }
}

static ImkStatus
open_mesh (
    const ImkImage *height, ImkMeshFormat format, Mesh *mesh, ImkError *error)
{
  ImkStatus status = check (height, format, error);

  *mesh = (Mesh){.height = height};
  if (status != IMK_OK)
    return status;
  count (mesh);
  if (mesh->n_vertices > INT32_MAX)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A mesh of %llu vertices is too large; there can be %d. Make the "
        "picture smaller.",
        (unsigned long long) mesh->n_vertices, INT32_MAX);
  return IMK_OK;
}

ImkStatus
imk_normalintegrate_mesh_size (
    const ImkImage *height, ImkMeshFormat format, size_t *size, ImkError *error)
{
  Mesh mesh;
  ImkStatus status = open_mesh (height, format, &mesh, error);

  if (status == IMK_OK)
    *size = format == IMK_MESH_PLY
                ? PLY_HEADER + mesh.n_vertices * PLY_VERTEX +
                      mesh.n_faces * PLY_FACE
                : mesh.n_vertices * OBJ_VERTEX + mesh.n_faces * OBJ_FACE + 1;
  return status;
}

/* ------------------------------------------------------------------------
 * How vertices and faces are written. */

typedef void (*VertexFunc) (Mesh *mesh, double x, double y, double z);
typedef void (*FaceFunc) (Mesh *mesh, const int32_t vertices[3]);

static void
put_u32 (Mesh *mesh, uint32_t value)
{
  for (int i = 0; i < 4; i++)
    *mesh->to++ = (char) (value >> 8 * i);
}

static void
ply_vertex (Mesh *mesh, double x, double y, double z)
{
  const float v[] = {(float) x, (float) y, (float) z};

  for (int i = 0; i < 3; i++) {
    uint32_t bits;

    memcpy (&bits, &v[i], sizeof (bits));
    put_u32 (mesh, bits);
  }
}

static void
ply_face (Mesh *mesh, const int32_t vertices[3])
{
  *mesh->to++ = 3;
  for (int i = 0; i < 3; i++)
    put_u32 (mesh, (uint32_t) vertices[i]);
}

/* printf's dot is the locale's. */
static void
put_number (Mesh *mesh, double value)
{
  char digits[32];
  long long units = llround (fabs (value) * mesh->unit);
  int n =
      snprintf (digits, sizeof (digits), "%0*lld", mesh->decimals + 1, units);
  int whole = n - mesh->decimals;

  *mesh->to++ = ' ';
  if (value < 0 && units != 0)
    *mesh->to++ = '-';
  memcpy (mesh->to, digits, (size_t) whole);
  mesh->to += whole;
  if (mesh->decimals > 0) {
    *mesh->to++ = '.';
    memcpy (mesh->to, digits + whole, (size_t) mesh->decimals);
    mesh->to += mesh->decimals;
  }
}

static void
obj_vertex (Mesh *mesh, double x, double y, double z)
{
  *mesh->to++ = 'v';
  put_number (mesh, x);
  put_number (mesh, y);
  put_number (mesh, z);
  *mesh->to++ = '\n';
}

static void
obj_face (Mesh *mesh, const int32_t vertices[3])
{
  /* counted from 1; the terminator is overwritten, or in the last byte */
  mesh->to += snprintf (mesh->to, OBJ_FACE + 1, "f %d %d %d\n", vertices[0] + 1,
      vertices[1] + 1, vertices[2] + 1);
}

/* ------------------------------------------------------------------------
 * The walk over the pixels. */

static void
write_vertices (Mesh *mesh, VertexFunc vertex)
{
  const ImkImage *h = mesh->height;

  for (uint32_t y = 0; y < h->height; y++)
    for (uint32_t x = 0; x < h->width; x++)
      if (is_there (h, x, y))
        vertex (mesh, x * mesh->mm_per_pixel,
            (h->height - 1 - y) * mesh->mm_per_row, height_at (h, x, y));
}

/* The triangles of four corners; @v: their vertices. */
static void
write_square (
    Mesh *mesh, FaceFunc face, const bool there[4], const int32_t v[4])
{
  /* left out corner -> the triangle of the others */
  static const uint8_t triangles[4][3] = {
      {2, 3, 1}, {0, 2, 3}, {0, 3, 1}, {0, 2, 1}};
  bool all = there[0] && there[1] && there[2] && there[3];

  for (int out = 0; out < 4; out++) {
    const uint8_t *t = triangles[out];
    const int32_t vertices[] = {v[t[0]], v[t[1]], v[t[2]]};

    /* of a whole square the two that share its diagonal from the upper left */
    if (all ? out == 1 || out == 2 : !there[out])
      face (mesh, vertices);
  }
}

/* Numbers the vertices of row @y, from @next on. Returns: the next one */
static int32_t
number_row (const Mesh *mesh, uint32_t y, int32_t next, int32_t *numbers)
{
  for (uint32_t x = 0; x < mesh->height->width; x++) {
    numbers[x] = next;
    next += is_there (mesh->height, x, y);
  }
  return next;
}

static ImkStatus
write_faces (Mesh *mesh, FaceFunc face, ImkError *error)
{
  const ImkImage *h = mesh->height;
  int32_t *numbers = calloc (2 * (size_t) h->width, sizeof (*numbers));
  int32_t *above = numbers, *below = numbers + h->width, next;

  if (!numbers)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for the faces of %u columns.", h->width);
  next = number_row (mesh, 0, 0, above);
  for (uint32_t y = 0; y + 1 < h->height; y++) {
    int32_t *done = above;

    next = number_row (mesh, y + 1, next, below);
    for (uint32_t x = 0; x + 1 < h->width; x++) {
      const int32_t v[] = {above[x], above[x + 1], below[x], below[x + 1]};
      bool there[4];

      if (corners (h, x, y, there) > 0)
        write_square (mesh, face, there, v);
    }
    above = below;
    below = done;
  }
  free (numbers);
  return IMK_OK;
}

static void
write_ply_header (Mesh *mesh)
{
  mesh->to += snprintf (mesh->to, PLY_HEADER,
      "ply\nformat binary_little_endian 1.0\n"
      "element vertex %llu\n"
      "property float x\nproperty float y\nproperty float z\n"
      "element face %llu\n"
      "property list uchar int vertex_indices\nend_header\n",
      (unsigned long long) mesh->n_vertices,
      (unsigned long long) mesh->n_faces);
}

ImkStatus
imk_normalintegrate_mesh_write (const ImkImage *height, double mm_per_pixel,
    double pixel_aspect, ImkMeshFormat format, void *to, size_t *size,
    ImkError *error)
{
  bool is_ply = format == IMK_MESH_PLY;
  Mesh mesh;
  ImkStatus status = open_mesh (height, format, &mesh, error);

  if (status == IMK_OK && !(mm_per_pixel >= 1e-9 && mm_per_pixel <= 1e6))
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "mm-per-pixel is %g; in a mesh it can be 1e-9..1e6.", mm_per_pixel);
  if (status == IMK_OK && !(pixel_aspect >= 1e-3 && pixel_aspect <= 1e3))
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "The pixel-aspect-ratio is %g; it can be 1/1000 to 1000/1.",
        pixel_aspect);
  if (status != IMK_OK)
    return status;
  mesh.mm_per_pixel = mm_per_pixel;
  mesh.mm_per_row = mm_per_pixel / pixel_aspect;
  mesh.decimals = DIGITS - (int) floor (log10 (mm_per_pixel));
  if (mesh.decimals < 0)
    mesh.decimals = 0;
  mesh.unit = pow (10, mesh.decimals);
  mesh.to = to;
  if (is_ply)
    write_ply_header (&mesh);
  write_vertices (&mesh, is_ply ? ply_vertex : obj_vertex);
  status = write_faces (&mesh, is_ply ? ply_face : obj_face, error);
  if (status == IMK_OK)
    *size = (size_t) (mesh.to - (char *) to);
  return status;
}
