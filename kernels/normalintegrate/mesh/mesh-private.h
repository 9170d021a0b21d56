/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the walk over the pixels and the formats. */
#pragma once

#include "imk/normalintegrate-mesh.h"

enum { MESH_BLOCK = 1 << 16 };

/* A mesh that is being written. */
typedef struct Mesh {
  const ImkMesh *from;
  uint32_t step, columns, rows; /* of vertices, with holes */
  double mm_per_row;
  bool has_colour;
  uint64_t n_vertices, n_faces;
  float lowest[3], highest[3]; /* of the positions, in mm times unit */
  double unit;                 /* of a mm in the file */

  ImkMeshWrite write;
  void *data;
  ImkStatus status; /* of the first failure */
  ImkError *error;
  size_t n_used;
  uint8_t block[MESH_BLOCK];
} Mesh;

typedef struct MeshVertex {
  float at[3];       /* times unit */
  float normal[3];   /* of length 1, y up */
  float u, v;        /* from the lower left corner */
  uint8_t colour[3]; /* 0 without */
} MeshVertex;

typedef void (*MeshVertexFunc) (Mesh *mesh, const MeshVertex *vertex);
typedef void (*MeshFaceFunc) (Mesh *mesh, const uint32_t vertices[3]);

void mesh_walk_vertices (Mesh *mesh, MeshVertexFunc vertex);
void mesh_walk_faces (Mesh *mesh, MeshFaceFunc face);

/* After a failure these do nothing. Numbers are little endian. */
void mesh_put (Mesh *mesh, const void *bytes, size_t size);
void mesh_put_text (Mesh *mesh, const char *text);
void mesh_put_u32 (Mesh *mesh, uint32_t value);
void mesh_put_f32 (Mesh *mesh, const float *values, unsigned n);

void mesh_write_ply (Mesh *mesh);
void mesh_write_obj (Mesh *mesh);
void mesh_write_glb (Mesh *mesh);
