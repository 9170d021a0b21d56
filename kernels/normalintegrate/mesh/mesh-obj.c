/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mesh-private.h"

#include <math.h>
#include <stdio.h>

enum { DIGITS = 6 /* of a unit, and beyond those of a pixel */ };

/* printf's dot is the locale's. */
static void
put_number (Mesh *mesh, double value, int decimals)
{
  char digits[32];
  long long units = llround (fabs (value) * pow (10, decimals));
  int n = snprintf (digits, sizeof (digits), "%0*lld", decimals + 1, units);
  size_t whole = (size_t) (n - decimals);

  mesh_put_text (mesh, value < 0 && units != 0 ? " -" : " ");
  mesh_put (mesh, digits, whole);
  if (decimals > 0) {
    mesh_put (mesh, ".", 1);
    mesh_put_text (mesh, digits + whole);
  }
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
  mesh_put (mesh, "f", 1);
  for (int i = 0; i < 3; i++) {
    unsigned n = vertices[i] + 1; /* the first is 1 */
    char text[48];

    snprintf (text, sizeof (text), " %u/%u/%u", n, n, n);
    mesh_put_text (mesh, text);
  }
  mesh_put (mesh, "\n", 1);
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
