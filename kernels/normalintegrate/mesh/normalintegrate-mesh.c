/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The walk over the pixels of a mesh. */
#include "mesh-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "normalintegrate/normalintegrate-pixel.h"

/* --- bytes ---------------------------------------------------------------- */

static void
flush (Mesh *mesh)
{
  if (mesh->status == IMK_OK && mesh->n_used > 0)
    mesh->status =
        mesh->write (mesh->data, mesh->block, mesh->n_used, mesh->error);
  mesh->n_used = 0;
}

void
mesh_put (Mesh *mesh, const void *bytes, size_t size)
{
  const uint8_t *from = bytes;

  while (size > 0 && mesh->status == IMK_OK) {
    size_t room = MESH_BLOCK - mesh->n_used, n = size < room ? size : room;

    memcpy (mesh->block + mesh->n_used, from, n);
    mesh->n_used += n;
    from += n;
    size -= n;
    if (mesh->n_used == MESH_BLOCK)
      flush (mesh);
  }
}

void
mesh_put_text (Mesh *mesh, const char *text)
{
  mesh_put (mesh, text, strlen (text));
}

void
mesh_put_u32 (Mesh *mesh, uint32_t value)
{
  const uint8_t bytes[] = {(uint8_t) value, (uint8_t) (value >> 8),
      (uint8_t) (value >> 16), (uint8_t) (value >> 24)};

  mesh_put (mesh, bytes, sizeof (bytes));
}

void
mesh_put_f32 (Mesh *mesh, const float *values, unsigned n)
{
  for (unsigned i = 0; i < n; i++) {
    uint32_t bits;

    memcpy (&bits, &values[i], sizeof (bits));
    mesh_put_u32 (mesh, bits);
  }
}

/* --- vertices ------------------------------------------------------------- */

static const void *
pixel_at (const ImkImage *image, uint32_t x, uint32_t y)
{
  return (const uint8_t *) image->data + y * image->stride +
         (size_t) x * image->channels * imk_type_size (image->type);
}

/* @column, @row: of the vertices. Returns: NaN where there is none */
static float
height_at (const Mesh *mesh, uint32_t column, uint32_t row)
{
  return *(const float *) pixel_at (
      &mesh->from->height, column * mesh->step, row * mesh->step);
}

static bool
is_there (const Mesh *mesh, uint32_t column, uint32_t row)
{
  return isfinite (height_at (mesh, column, row));
}

/* What was taken off the heights at a place in mm from the middle.
 * @slope: (out): of it along x and y */
static double
removed_at (const Mesh *mesh, double x, double y, double slope[2])
{
  const double *t = mesh->from->removed;
  double r2 = x * x + y * y;

  slope[0] = slope[1] = 0;
  if (!t)
    return 0;
  slope[0] = t[1] + 2 * t[3] * x + t[4] * y + 4 * t[6] * r2 * x;
  slope[1] = t[2] + 2 * t[5] * y + t[4] * x + 4 * t[6] * r2 * y;
  return t[0] + t[1] * x + t[2] * y + t[3] * x * x + t[4] * x * y +
         t[5] * y * y + t[6] * r2 * r2;
}

/* @slope: of what was taken off: the surface lost it, and its normals, too */
static void
get_normal (const Mesh *mesh, uint32_t x, uint32_t y, const double slope[2],
    float normal[3])
{
  const ImkNormalintegrateConfig *c = mesh->from->config;
  const ImkNormalintegratePlan plan = {.type = c->type,
      .channels = c->channels,
      .colours = {c->colours[0], c->colours[1], c->colours[2]}};
  const ImkNormalintegrateParams params = {
      .y_sign = c->y_down ? -1 : 1, .max_slope = INFINITY};
  ImkNormalintegrateNormal n =
      imk_normalintegrate_load (&plan, &params, &mesh->from->normal, x, y);
  double length, turned[3];

  normal[0] = n.x;
  normal[1] = n.y;
  normal[2] = n.z > 0 ? n.z : 1;
  if (!mesh->from->removed)
    return;
  turned[0] = normal[0] + normal[2] * slope[0];
  turned[1] = normal[1] + normal[2] * slope[1];
  turned[2] = normal[2];
  length = sqrt (
      turned[0] * turned[0] + turned[1] * turned[1] + turned[2] * turned[2]);
  for (int i = 0; i < 3; i++)
    normal[i] = (float) (turned[i] / length);
}

/* Through a lens, higher points are nearer and seen larger, so where a point is
 * depends on how high it was, and what was taken off on where it is.
 * @x, @y: mm from the middle at the lowest point
 * @slope: as of removed_at ()
 *
 * Returns: by which share of them the point is nearer the middle */
static double
draw_nearer (
    const Mesh *mesh, double x, double y, double height, double slope[2])
{
  const ImkNormalintegrateConfig *c = mesh->from->config;
  double share = 0, before, distance = c->focal_pixels * c->mm_per_pixel;
  double removed = removed_at (mesh, x, y, slope);

  if (!(c->focal_pixels > 0))
    return 0;
  for (int i = 0; i < 40; i++) {
    before = share;
    share = (height + removed) / distance;
    if (fabs (share - before) < 1e-9)
      break;
    removed = removed_at (mesh, x * (1 - share), y * (1 - share), slope);
  }
  return share;
}

static void
get_vertex (const Mesh *mesh, uint32_t column, uint32_t row, MeshVertex *v)
{
  const ImkNormalintegrateConfig *c = mesh->from->config;
  uint32_t x = column * mesh->step, y = row * mesh->step;
  double at_x = x, at_y = c->height - 1 - y, slope[2];
  double height = height_at (mesh, column, row);
  double to_x = (c->width - 1) / 2.0 - at_x;
  double to_y = (c->height - 1) / 2.0 - at_y;
  double share = draw_nearer (
      mesh, -to_x * c->mm_per_pixel, -to_y * mesh->mm_per_row, height, slope);

  at_x += share * to_x;
  at_y += share * to_y;
  *v = (MeshVertex){.at = {(float) (at_x * c->mm_per_pixel * mesh->unit),
                        (float) (at_y * mesh->mm_per_row * mesh->unit),
                        (float) (height * mesh->unit)},
      .u = (float) ((x + 0.5) / c->width),
      .v = (float) ((c->height - y - 0.5) / c->height)};
  get_normal (mesh, x, y, slope, v->normal);
  if (mesh->has_colour)
    memcpy (v->colour, pixel_at (&mesh->from->colour, x, y), 3);
}

void
mesh_walk_vertices (Mesh *mesh, MeshVertexFunc vertex)
{
  for (uint32_t row = 0; row < mesh->rows && mesh->status == IMK_OK; row++)
    for (uint32_t column = 0; column < mesh->columns; column++)
      if (is_there (mesh, column, row)) {
        MeshVertex v;

        get_vertex (mesh, column, row, &v);
        vertex (mesh, &v);
      }
}

/* --- faces ---------------------------------------------------------------- */

/* Of the vertex and its neighbours to the right, below, and both; in this
 * order. Returns: how many triangles they make */
static unsigned
corners (const Mesh *mesh, uint32_t column, uint32_t row, bool there[4])
{
  unsigned n = 0;

  for (uint32_t i = 0; i < 4; i++) {
    there[i] = is_there (mesh, column + i % 2, row + i / 2);
    n += there[i];
  }
  return n < 3 ? 0 : n - 2;
}

/* The triangles of four corners; @v: their vertices. */
static void
write_square (
    Mesh *mesh, MeshFaceFunc face, const bool there[4], const uint32_t v[4])
{
  /* left out corner -> the triangle of the others */
  static const uint8_t triangles[4][3] = {
      {2, 3, 1}, {0, 2, 3}, {0, 3, 1}, {0, 2, 1}};
  bool all = there[0] && there[1] && there[2] && there[3];

  for (int out = 0; out < 4; out++) {
    const uint8_t *t = triangles[out];
    const uint32_t vertices[] = {v[t[0]], v[t[1]], v[t[2]]};

    /* of a whole square the two that share its diagonal from the upper left */
    if (all ? out == 1 || out == 2 : !there[out])
      face (mesh, vertices);
  }
}

/* Numbers the vertices of @row, from @next on. Returns: the next one */
static uint32_t
number_row (const Mesh *mesh, uint32_t row, uint32_t next, uint32_t *numbers)
{
  for (uint32_t column = 0; column < mesh->columns; column++) {
    numbers[column] = next;
    next += is_there (mesh, column, row);
  }
  return next;
}

void
mesh_walk_faces (Mesh *mesh, MeshFaceFunc face)
{
  uint32_t *numbers = calloc (2 * (size_t) mesh->columns, sizeof (*numbers));
  uint32_t *above = numbers, *below = numbers + mesh->columns, next;

  if (!numbers && mesh->status == IMK_OK)
    mesh->status = IMK_NO_MEMORY (
        mesh->error, "for the faces of %u columns.", mesh->columns);
  if (mesh->status != IMK_OK) {
    free (numbers);
    return;
  }
  next = number_row (mesh, 0, 0, above);
  for (uint32_t row = 0; row + 1 < mesh->rows && mesh->status == IMK_OK;
       row++) {
    uint32_t *done = above;

    next = number_row (mesh, row + 1, next, below);
    for (uint32_t i = 0; i + 1 < mesh->columns; i++) {
      const uint32_t v[] = {above[i], above[i + 1], below[i], below[i + 1]};
      bool there[4];

      if (corners (mesh, i, row, there) > 0)
        write_square (mesh, face, there, v);
    }
    above = below;
    below = done;
  }
  free (numbers);
}

/* --- the whole ------------------------------------------------------------ */

static void
count_vertex (Mesh *mesh, const MeshVertex *v)
{
  for (int i = 0; i < 3; i++) {
    bool is_first = mesh->n_vertices == 0;

    if (is_first || v->at[i] < mesh->lowest[i])
      mesh->lowest[i] = v->at[i];
    if (is_first || v->at[i] > mesh->highest[i])
      mesh->highest[i] = v->at[i];
  }
  mesh->n_vertices++;
}

static void
count (Mesh *mesh)
{
  bool there[4];

  mesh_walk_vertices (mesh, count_vertex);
  for (uint32_t row = 0; row + 1 < mesh->rows; row++)
    for (uint32_t i = 0; i + 1 < mesh->columns; i++)
      mesh->n_faces += corners (mesh, i, row, there);
}

static ImkStatus
check (const ImkMesh *from, ImkMeshFormat format, ImkError *error)
{
  const ImkNormalintegrateConfig *c = from->config;

  if (format != IMK_MESH_PLY && format != IMK_MESH_OBJ &&
      format != IMK_MESH_GLB)
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "There is no mesh format %d.", (int) format);
  if (!(c->mm_per_pixel >= 1e-9 && c->mm_per_pixel <= 1e6))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "mm-per-pixel is %g; in a mesh it can be 1e-9..1e6.", c->mm_per_pixel);
  if (!(c->pixel_aspect >= 1e-3 && c->pixel_aspect <= 1e3))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The pixel-aspect-ratio is %g; it can be 1/1000 to 1000/1.",
        c->pixel_aspect);
  IMK_TRY (imk_image_check (&from->height, "height", IMK_TYPE_F32, 1, c->width,
      c->height, false, error));
  IMK_TRY (imk_image_check (&from->normal, "normal", c->type, c->channels,
      c->width, c->height, false, error));
  if (from->colour.data)
    IMK_TRY (imk_image_check (&from->colour, "colour", IMK_TYPE_U8, 3, c->width,
        c->height, false, error));
  return IMK_OK;
}

static uint64_t
n_of (uint32_t size, uint32_t step)
{
  return (size - 1) / step + 1;
}

static void
choose_step (Mesh *mesh)
{
  const ImkNormalintegrateConfig *c = mesh->from->config;
  uint32_t step = mesh->from->step;

  if (step == 0)
    for (step = 1; n_of (c->width, step) * n_of (c->height, step) >
                   IMK_MESH_AUTO_VERTICES;
         step++)
      ;
  mesh->step = step;
  mesh->columns = (uint32_t) n_of (c->width, step);
  mesh->rows = (uint32_t) n_of (c->height, step);
}

ImkStatus
imk_normalintegrate_mesh_write (const ImkMesh *from, ImkMeshFormat format,
    ImkMeshWrite write, void *data, ImkError *error)
{
  ImkStatus status;
  Mesh *mesh;

  IMK_TRY (check (from, format, error));
  mesh = calloc (1, sizeof (*mesh));
  if (!mesh)
    return IMK_NO_MEMORY (error, "to write a mesh.");
  mesh->from = from;
  mesh->write = write;
  mesh->data = data;
  mesh->error = error;
  mesh->unit = format == IMK_MESH_GLB ? 0.001 : 1;
  mesh->mm_per_row = from->config->mm_per_pixel / from->config->pixel_aspect;
  mesh->has_colour = from->colour.data != NULL;
  choose_step (mesh);
  count (mesh);
  if (mesh->n_vertices > INT32_MAX)
    mesh->status = imk_error_set (error, IMK_ERROR_CONFIG,
        "A mesh of %llu vertices is too large; there can be %d. Make mesh-step "
        "larger.",
        (unsigned long long) mesh->n_vertices, INT32_MAX);
  else if (format == IMK_MESH_PLY)
    mesh_write_ply (mesh);
  else if (format == IMK_MESH_OBJ)
    mesh_write_obj (mesh);
  else
    mesh_write_glb (mesh);
  flush (mesh);
  status = mesh->status;
  free (mesh);
  return status;
}
