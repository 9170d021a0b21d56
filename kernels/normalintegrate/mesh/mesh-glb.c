/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* glTF 2.0, binary: a header, the description as JSON, and the numbers. */
#include "mesh-private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { JSON_SIZE = 4096, HEADER = 12, CHUNK = 8, N_VIEWS = 5 };

typedef struct Json {
  char text[JSON_SIZE];
  size_t n;
} Json;

__attribute__ ((format (printf, 2, 3))) static void
add (Json *json, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  json->n += (size_t) vsnprintf (
      json->text + json->n, sizeof (json->text) - json->n, format, args);
  va_end (args);
}

/* The shortest text that gives every float32 back; printf's dot is the
 * locale's, and may be several bytes. */
static void
add_number (Json *json, double value)
{
  char text[64];
  bool has_dot = false;

  snprintf (text, sizeof (text), "%.8e", value);
  for (const char *c = text; *c; c++)
    if (strchr ("0123456789+-e", *c))
      add (json, "%c", *c);
    else if (!has_dot) {
      add (json, ".");
      has_dot = true;
    }
}

static void
add_corner (Json *json, const char *name, const float at[3])
{
  add (json, ",\"%s\":[", name);
  for (int i = 0; i < 3; i++) {
    if (i > 0)
      add (json, ",");
    add_number (json, at[i]);
  }
  add (json, "]");
}

static void
add_accessor (
    Json *json, int view, int component, uint64_t count, const char *type)
{
  add (json,
      "%s{\"bufferView\":%d,\"componentType\":%d,\"count\":%llu,\"type\":"
      "\"%s\"",
      view ? "}," : "", view, component, (unsigned long long) count, type);
}

/* Bytes of positions, normals, texture coordinates, indices, the picture. */
static void
get_sizes (const Mesh *mesh, uint64_t sizes[N_VIEWS])
{
  sizes[0] = sizes[1] = 12 * mesh->n_vertices;
  sizes[2] = 8 * mesh->n_vertices;
  sizes[3] = 12 * mesh->n_faces;
  sizes[4] = mesh->from->png ? mesh->from->png_size : 0;
}

static void
add_views (Json *json, const uint64_t sizes[N_VIEWS], uint64_t total)
{
  uint64_t offset = 0;

  add (json, ",\"bufferViews\":[");
  for (int i = 0; i < N_VIEWS && sizes[i] > 0; i++) {
    add (json, "%s{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu",
        i ? "," : "", (unsigned long long) offset,
        (unsigned long long) sizes[i]);
    if (i < 4) /* ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER */
      add (json, ",\"target\":%d", i < 3 ? 34962 : 34963);
    add (json, "}");
    offset += sizes[i];
  }
  add (json, "],\"buffers\":[{\"byteLength\":%llu}]",
      (unsigned long long) total);
}

static void
add_material (Json *json, bool has_picture)
{
  add (json,
      ",\"materials\":[{\"doubleSided\":true,\"pbrMetallicRoughness\":{"
      "\"metallicFactor\":0,\"roughnessFactor\":1%s}}]",
      has_picture ? ",\"baseColorTexture\":{\"index\":0}" : "");
  if (has_picture)
    add (json,
        ",\"textures\":[{\"sampler\":0,\"source\":0}],\"samplers\":[{"
        "\"magFilter\":9729,\"minFilter\":9987,\"wrapS\":33071,\"wrapT\":"
        "33071}],\"images\":[{\"bufferView\":4,\"mimeType\":\"image/png\"}]");
}

static void
describe (
    const Mesh *mesh, const uint64_t sizes[N_VIEWS], uint64_t total, Json *json)
{
  add (json, "{\"asset\":{\"version\":\"2.0\",\"generator\":\"gst-imaging\"},"
             "\"scene\":0,");
  if (mesh->n_faces == 0) { /* no accessor may be empty */
    add (json, "\"scenes\":[{}]}");
    return;
  }
  add (json,
      "\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"mesh\":0}],\"meshes\":[{"
      "\"primitives\":[{\"attributes\":{\"POSITION\":0,\"NORMAL\":1,"
      "\"TEXCOORD_0\":2},\"indices\":3,\"material\":0}]}],\"accessors\":[");
  add_accessor (json, 0, 5126, mesh->n_vertices, "VEC3");
  add_corner (json, "min", mesh->lowest);
  add_corner (json, "max", mesh->highest);
  add_accessor (json, 1, 5126, mesh->n_vertices, "VEC3");
  add_accessor (json, 2, 5126, mesh->n_vertices, "VEC2");
  add_accessor (json, 3, 5125, 3 * mesh->n_faces, "SCALAR");
  add (json, "}]");
  add_views (json, sizes, total);
  add_material (json, sizes[4] > 0);
  add (json, "}");
}

static void
put_position (Mesh *mesh, const MeshVertex *v)
{
  mesh_put_f32 (mesh, v->at, 3);
}

static void
put_normal (Mesh *mesh, const MeshVertex *v)
{
  mesh_put_f32 (mesh, v->normal, 3);
}

static void
put_uv (Mesh *mesh, const MeshVertex *v)
{
  const float uv[] = {v->u, 1 - v->v};

  mesh_put_f32 (mesh, uv, 2);
}

static void
put_face (Mesh *mesh, const uint32_t vertices[3])
{
  for (int i = 0; i < 3; i++)
    mesh_put_u32 (mesh, vertices[i]);
}

static void
put_numbers (Mesh *mesh, uint64_t picture)
{
  mesh_walk_vertices (mesh, put_position);
  mesh_walk_vertices (mesh, put_normal);
  mesh_walk_vertices (mesh, put_uv);
  mesh_walk_faces (mesh, put_face);
  if (picture > 0)
    mesh_put (mesh, mesh->from->png, picture);
  mesh_put (mesh, "\0\0\0", (4 - picture % 4) % 4);
}

void
mesh_write_glb (Mesh *mesh)
{
  uint64_t sizes[N_VIEWS], total = 0, whole;
  Json json = {.n = 0};

  get_sizes (mesh, sizes);
  for (int i = 0; i < N_VIEWS; i++)
    total += sizes[i];
  total = mesh->n_faces > 0 ? (total + 3) / 4 * 4 : 0;
  describe (mesh, sizes, total, &json);
  while (json.n % 4 > 0)
    add (&json, " ");
  whole = HEADER + CHUNK + json.n + (total > 0 ? CHUNK + total : 0);
  if (whole > UINT32_MAX) {
    mesh->status = imk_error_set (mesh->error, IMK_ERROR_CONFIG,
        "A .glb of %llu bytes is too large; there can be 4 GiB. Make mesh-step "
        "larger, or write a .ply.",
        (unsigned long long) whole);
    return;
  }
  mesh_put (mesh, "glTF", 4);
  mesh_put_u32 (mesh, 2);
  mesh_put_u32 (mesh, (uint32_t) whole);
  mesh_put_u32 (mesh, (uint32_t) json.n);
  mesh_put (mesh, "JSON", 4);
  mesh_put (mesh, json.text, json.n);
  if (total == 0)
    return;
  mesh_put_u32 (mesh, (uint32_t) total);
  mesh_put (mesh, "BIN\0", 4);
  put_numbers (mesh, sizes[4]);
}
