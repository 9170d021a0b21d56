/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mesh-private.h"

#include <math.h>
#include <stdlib.h>

enum { DIGITS = 6 /* of a unit, and beyond those of a pixel */ };

/* Writes @value backwards from @end, at least @n digits. Returns: the first */
static char *
put_digits (char *end, uint64_t value, int n)
{
  for (; value > 0 || n > 0; n--, value /= 10)
    *--end = (char) ('0' + value % 10);
  return end;
}

/* printf is slow, and its dot the locale's. */
static void
put_number (Mesh *mesh, double value, int decimals)
{
  static const double units[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
      1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  long long all = llround (fmin (fmax (value * units[decimals], -9e18), 9e18));
  uint64_t size = (uint64_t) llabs (all), unit = (uint64_t) units[decimals];
  char text[48], *end = text + sizeof (text), *c = end;

  if (decimals > 0) {
    c = put_digits (c, size % unit, decimals);
    *--c = '.';
  }
  c = put_digits (c, size / unit, 1);
  if (all < 0)
    *--c = '-';
  *--c = ' ';
  mesh_put (mesh, c, (size_t) (end - c));
}

static void
put_vertex (Mesh *mesh, const MeshVertex *v)
{
  double mm = mesh->from->config->mm_per_pixel;
  int decimals = DIGITS - (int) floor (log10 (mm));

  mesh_put (mesh, "v", 1);
  for (int i = 0; i < 3; i++)
    put_number (mesh, v->at[i], decimals > 0 ? decimals : 0);
  for (int i = 0; i < 3 && mesh->has_colour && !mesh->from->material; i++)
    put_number (mesh, v->colour[i] / 255.0, DIGITS);
  mesh_put_text (mesh, "\nvn");
  for (int i = 0; i < 3; i++)
    put_number (mesh, v->normal[i], DIGITS);
  mesh_put_text (mesh, "\nvt");
  put_number (mesh, v->u, DIGITS);
  put_number (mesh, v->v, DIGITS);
  mesh_put (mesh, "\n", 1);
}

static void
put_face (Mesh *mesh, const uint32_t vertices[3])
{
  char text[112], *end = text + sizeof (text), *c = end;

  *--c = '\n';
  for (int i = 3; i-- > 0;) {
    uint64_t n = (uint64_t) vertices[i] + 1; /* the first is 1 */

    c = put_digits (c, n, 1);
    *--c = '/';
    c = put_digits (c, n, 1);
    *--c = '/';
    c = put_digits (c, n, 1);
    *--c = ' ';
  }
  *--c = 'f';
  mesh_put (mesh, c, (size_t) (end - c));
}

void
mesh_write_obj (Mesh *mesh)
{
  mesh_put_text (mesh, "# mm\n");
  if (mesh->from->material) {
    mesh_put_text (mesh, "mtllib ");
    mesh_put_text (mesh, mesh->from->material);
    mesh_put_text (mesh, "\nusemtl surface\n");
  }
  mesh_walk_vertices (mesh, put_vertex);
  mesh_walk_faces (mesh, put_face);
}
