/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mesh-private.h"

#include <stdio.h>

static void
put_vertex (Mesh *mesh, const MeshVertex *v)
{
  const float uv[] = {v->u, v->v};

  mesh_put_f32 (mesh, v->at, 3);
  mesh_put_f32 (mesh, v->normal, 3);
  mesh_put_f32 (mesh, uv, 2);
  if (mesh->has_colour)
    mesh_put (mesh, v->colour, 3);
}

static void
put_face (Mesh *mesh, const uint32_t vertices[3])
{
  mesh_put (mesh, "\3", 1);
  for (int i = 0; i < 3; i++)
    mesh_put_u32 (mesh, vertices[i]);
}

void
mesh_write_ply (Mesh *mesh)
{
  char n[64];

  mesh_put_text (mesh, "ply\nformat binary_little_endian 1.0\ncomment mm\n");
  if (mesh->from->texture) {
    mesh_put_text (mesh, "comment TextureFile ");
    mesh_put_text (mesh, mesh->from->texture);
    mesh_put_text (mesh, "\n");
  }
  snprintf (n, sizeof (n), "element vertex %llu\n",
      (unsigned long long) mesh->n_vertices);
  mesh_put_text (mesh, n);
  mesh_put_text (mesh,
      "property float x\nproperty float y\nproperty float z\n"
      "property float nx\nproperty float ny\nproperty float nz\n"
      "property float s\nproperty float t\n");
  if (mesh->has_colour)
    mesh_put_text (mesh,
        "property uchar red\nproperty uchar green\nproperty uchar blue\n");
  snprintf (
      n, sizeof (n), "element face %llu\n", (unsigned long long) mesh->n_faces);
  mesh_put_text (mesh, n);
  mesh_put_text (mesh, "property list uchar int vertex_indices\nend_header\n");
  mesh_walk_vertices (mesh, put_vertex);
  mesh_walk_faces (mesh, put_face);
}
