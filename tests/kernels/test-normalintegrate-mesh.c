/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Meshes of heights, as OBJ, PLY and GLB. */
#include "kernel-test.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imk/normalintegrate-mesh.h"

/* A map of heights from words: a digit each, '.' for none. */
static TestImage
heights_of (uint32_t width, uint32_t height, const char *digits)
{
  TestImage t = test_image_new (IMK_TYPE_F32, width, height, 1, 8);

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++) {
      char d = digits[y * width + x];

      ((float *) ((uint8_t *) t.image.data + y * t.image.stride))[x] =
          d == '.' ? NAN : (float) (d - '0') / 4;
    }
  return t;
}

/* A mesh of @t, of normals that are 0.6, 0, 0.8 times 2. */
typedef struct {
  ImkNormalintegrateConfig config;
  ImkMesh mesh;
  TestImage normal, colour;
} Made;

static void
made_of (Made *m, const TestImage *t, double mm, bool has_colour)
{
  imk_normalintegrate_config_init (&m->config);
  m->config.width = t->image.width;
  m->config.height = t->image.height;
  m->config.type = IMK_TYPE_F32;
  m->config.mm_per_pixel = mm;
  m->normal =
      test_image_new (IMK_TYPE_F32, t->image.width, t->image.height, 3, 16);
  m->colour =
      test_image_new (IMK_TYPE_U8, t->image.width, t->image.height, 3, 5);
  m->mesh = (ImkMesh){.config = &m->config,
      .height = t->image,
      .normal = m->normal.image,
      .step = 1};
  if (has_colour)
    m->mesh.colour = m->colour.image;
  for (uint32_t y = 0; y < t->image.height; y++)
    for (uint32_t x = 0; x < t->image.width; x++) {
      float *n = (float *) ((uint8_t *) m->normal.image.data +
                            y * m->normal.image.stride) +
                 3 * x;
      uint8_t *c =
          (uint8_t *) m->colour.image.data + y * m->colour.image.stride + 3 * x;

      n[0] = 1.2f;
      n[1] = 0;
      n[2] = 1.6f;
      c[0] = 255;
      c[1] = (uint8_t) (51 * x);
      c[2] = (uint8_t) (51 * y);
    }
}

static void
made_free (Made *m)
{
  test_image_free (&m->normal);
  test_image_free (&m->colour);
}

TEST_DEFINE_AUTO (Made, made_free)

typedef struct {
  char *bytes; /* ended by a 0 beyond the size */
  size_t size, limit;
} File;

static ImkStatus
append (void *data, const void *bytes, size_t size, ImkError *error)
{
  File *file = data;

  if (file->limit && file->size + size > file->limit)
    return imk_error_set (error, IMK_ERROR_FILE, "The disk is full.");
  file->bytes = realloc (file->bytes, file->size + size + 1);
  memcpy (file->bytes + file->size, bytes, size);
  file->size += size;
  file->bytes[file->size] = 0;
  return IMK_OK;
}

static File
write_mesh (const ImkMesh *mesh, ImkMeshFormat format)
{
  File file = {NULL, 0, 0};

  test_ok (imk_normalintegrate_mesh_write (
      mesh, format, append, &file, test_new_error ()));
  return file;
}

TEST (obj_has_a_vertex_a_height_and_triangles_between,
    "an OBJ has a vertex a height and triangles between")
{
  static const char expected[] =
      "# mm\nmtllib a.mtl\nusemtl surface\n"
      "v 0.0000000 0.5000000 0.2500000\nvn 0.600000 0.000000 0.800000\n"
      "vt 0.166667 0.750000\n"
      "v 0.5000000 0.5000000 0.5000000\nvn 0.600000 0.000000 0.800000\n"
      "vt 0.500000 0.750000\n"
      "v 0.0000000 0.0000000 0.7500000\nvn 0.600000 0.000000 0.800000\n"
      "vt 0.166667 0.250000\n"
      "v 0.5000000 0.0000000 1.0000000\nvn 0.600000 0.000000 0.800000\n"
      "vt 0.500000 0.250000\n"
      "v 1.0000000 0.0000000 2.2500000\nvn 0.600000 0.000000 0.800000\n"
      "vt 0.833333 0.250000\n"
      "f 1/1/1 3/3/3 4/4/4\nf 1/1/1 4/4/4 2/2/2\nf 2/2/2 4/4/4 5/5/5\n";
  test_auto (TestImage) t = heights_of (3, 2, "12.349");
  test_auto (Made) made;
  File file;

  setlocale (LC_ALL, "de_DE.UTF-8");
  made_of (&made, &t, 0.5, true);
  made.mesh.material = "a.mtl";
  file = write_mesh (&made.mesh, IMK_MESH_OBJ);
  test_check (strcmp (file.bytes, expected) == 0, "it reads\n%s", file.bytes);
  free (file.bytes);
  made.mesh.material = NULL; /* colours in the file */
  file = write_mesh (&made.mesh, IMK_MESH_OBJ);
  test_check (strstr (file.bytes, "v 0.5000000 0.5000000 0.5000000 1.000000 "
                                  "0.200000 0.000000\n") != NULL,
      "it reads\n%s", file.bytes);
  free (file.bytes);
  setlocale (LC_ALL, "C");
}

static uint32_t
word_at (const char *p)
{
  uint32_t v = 0;

  for (int i = 0; i < 4; i++)
    v |= (uint32_t) (uint8_t) p[i] << 8 * i;
  return v;
}

TEST (ply_faces_look_up_and_holes_have_none,
    "faces of a PLY look up, and holes have none")
{
  static const struct {
    const char *digits;
    unsigned vertices, faces;
  } cases[] = {{"111111111", 9, 8}, {"1111.1111", 8, 4}, {".........", 0, 0},
      {".11111111", 8, 7}, {"1.1.1.1.1", 5, 0}, {"123456789", 9, 8}};

  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++) {
    test_auto (TestImage) t = heights_of (3, 3, cases[i].digits);
    const char *body, *face;
    char expected[400];
    test_auto (Made) made;
    File file;

    made_of (&made, &t, 1, true);
    file = write_mesh (&made.mesh, IMK_MESH_PLY);
    body = strstr (file.bytes, "end_header\n") + 11;
    snprintf (expected, sizeof (expected),
        "ply\nformat binary_little_endian 1.0\ncomment mm\nelement vertex %u\n"
        "property float x\nproperty float y\nproperty float z\n"
        "property float nx\nproperty float ny\nproperty float nz\n"
        "property float s\nproperty float t\n"
        "property uchar red\nproperty uchar green\nproperty uchar blue\n"
        "element face %u\n"
        "property list uchar int vertex_indices\nend_header\n",
        cases[i].vertices, cases[i].faces);
    test_check (strncmp (file.bytes, expected, strlen (expected)) == 0,
        "the header of %s reads\n%s", cases[i].digits, file.bytes);
    face = body + 35 * cases[i].vertices;
    test_check (file.size == (size_t) (face - file.bytes) + 13 * cases[i].faces,
        "%s: %zu bytes", cases[i].digits, file.size);
    for (unsigned f = 0; f < cases[i].faces; f++, face += 13) {
      float v[3][3], up;

      test_check (face[0] == 3, "a face of %d corners", face[0]);
      for (int k = 0; k < 3; k++) {
        uint32_t vertex = word_at (face + 1 + 4 * k);

        test_check (vertex < cases[i].vertices, "vertex %u", vertex);
        memcpy (v[k], body + 35 * vertex, 12);
      }
      up = (v[1][0] - v[0][0]) * (v[2][1] - v[0][1]) -
           (v[1][1] - v[0][1]) * (v[2][0] - v[0][0]);
      test_check (up == 1, "%s: twice the area of face %u is %g from above",
          cases[i].digits, f, up);
    }
    free (file.bytes);
  }
}

/* Positions, normals, texture coordinates, indices and the picture follow each
 * other; the Python tests read the rest. */
TEST (glb_is_in_metres_and_aligned, "a GLB is in metres and aligned")
{
  test_auto (TestImage) t = heights_of (3, 2, "12.349");
  const char *json, *bin;
  float at[3], uv[2];
  test_auto (Made) made;
  File file;

  setlocale (LC_ALL, "de_DE.UTF-8");
  made_of (&made, &t, 0.5, true);
  made.mesh.png = "picture";
  made.mesh.png_size = 7;
  file = write_mesh (&made.mesh, IMK_MESH_GLB);
  setlocale (LC_ALL, "C");
  json = file.bytes + 20;
  bin = json + word_at (file.bytes + 12) + 8;
  test_check (memcmp (file.bytes, "glTF\2\0\0\0", 8) == 0, "no header");
  test_check (word_at (file.bytes + 8) == file.size, "its size is wrong");
  test_check (word_at (file.bytes + 12) % 4 == 0, "JSON is not aligned");
  test_check (word_at (bin - 8) == 5 * 32 + 3 * 12 + 8, "%u bytes of numbers",
      word_at (bin - 8));
  test_check (
      strstr (json, "\"min\":[0.00000000e+00,0.00000000e+00,2.50000012e-04]"
                    ",\"max\":[1.00000005e-03,5.00000024e-04,"
                    "2.24999990e-03]") != NULL,
      "it reads\n%s", json);
  memcpy (at, bin, 12);
  memcpy (uv, bin + 5 * 24, 8);
  test_check (at[0] == 0 && at[1] == 0.0005f && at[2] == 0.00025f,
      "the first is at %g %g %g", at[0], at[1], at[2]);
  test_check (fabsf (uv[0] - 1.0f / 6) < 1e-6f && uv[1] == 0.25f,
      "its texture is at %g %g", uv[0], uv[1]);
  test_check (memcmp (bin + 5 * 32 + 36, "picture\0", 8) == 0, "no picture");
  free (file.bytes);
}

TEST (a_glb_without_faces_is_an_empty_scene,
    "a GLB without faces is an empty scene")
{
  test_auto (TestImage) t = heights_of (3, 1, "1.2");
  test_auto (Made) made;
  File file;

  made_of (&made, &t, 1, false);
  file = write_mesh (&made.mesh, IMK_MESH_GLB);
  test_check (file.size == 20 + word_at (file.bytes + 12), "there are numbers");
  test_check (strstr (file.bytes + 20, "\"scenes\":[{}]") != NULL,
      "it reads\n%s", file.bytes + 20);
  free (file.bytes);
}

static unsigned
n_vertices (const ImkMesh *mesh)
{
  File file = write_mesh (mesh, IMK_MESH_PLY);
  unsigned n = 0;

  sscanf (strstr (file.bytes, "element vertex "), "element vertex %u", &n);
  free (file.bytes);
  return n;
}

TEST (steps_leave_out_columns_and_rows, "steps leave out columns and rows")
{
  test_auto (TestImage) t = heights_of (5, 4, "11111222223333344444");
  test_auto (TestImage) large = test_image_new (IMK_TYPE_F32, 4097, 1025, 1, 0);
  test_auto (Made) made;
  File file;
  unsigned n;

  made_of (&made, &t, 1, false);
  made.mesh.step = 3;
  file = write_mesh (&made.mesh, IMK_MESH_OBJ);
  test_check (strstr (file.bytes, "v 0.000000 3.000000 0.250000\n") != NULL &&
                  strstr (file.bytes, "v 3.000000 0.000000 1.000000\n") != NULL,
      "it reads\n%s", file.bytes);
  free (file.bytes);
  n = n_vertices (&made.mesh);
  test_check (n == 4, "%u of step 3", n);
  made.mesh.step = 0;
  n = n_vertices (&made.mesh);
  test_check (n == 20, "%u of a small one", n);
  made_free (&made);
  made_of (&made, &large, 1, false);
  for (uint32_t y = 0; y < 1025; y++)
    for (uint32_t x = 0; x < 4097; x++)
      ((float *) ((uint8_t *) large.image.data + y * large.image.stride))[x] =
          x < 5 && y < 3 ? 1 : NAN;
  made.mesh.step = 0; /* 4097 x 1025 are more than 2^22 */
  n = n_vertices (&made.mesh);
  test_check (n == 6, "%u of a large one", n);
}

/* Vertices and normals of an OBJ in order; @v has room for both. */
static unsigned
read_vertices (const char *text, double *v)
{
  unsigned n = 0;

  for (const char *line = text; line; line = strchr (line, '\n')) {
    line += *line == '\n';
    if (sscanf (line, "v %lf %lf %lf", &v[0], &v[1], &v[2]) == 3)
      n++;
    else if (sscanf (line, "vn %lf %lf %lf", &v[3], &v[4], &v[5]) == 3)
      v += 6;
  }
  return n;
}

/* 41 x 31 pixels with a focal length of 50 before a tilted plane. */
enum { LENS_WIDTH = 41, LENS_HEIGHT = 31 };
static const double lens_focal = 50, lens_lowest = 300;
static const double lens_normal[] = {0.36, 0.48, 0.8};

/* Returns: the distance of the plane at a pixel; @u, @v: its view */
static double
lens_distance (uint32_t x, uint32_t y, double *u, double *v)
{
  double corner =
      lens_normal[2] - (lens_normal[0] * 20 + lens_normal[1] * 15) / lens_focal;

  *u = (x - 20.0) / lens_focal;
  *v = (15.0 - y) / lens_focal;
  return lens_lowest * corner /
         (lens_normal[2] - lens_normal[0] * *u - lens_normal[1] * *v);
}

TEST (through_a_lens_vertices_are_where_the_surface_is,
    "through a lens vertices are where the surface is")
{
  const double *n = lens_normal;
  /* the plane of the heights, taken off, but for 7 mm */
  const double slopes[] = {-n[0] / n[2], -n[1] / n[2]};

  setlocale (LC_ALL, "C");
  for (int flat = 0; flat < 2; flat++) {
    double *v = calloc (6 * LENS_WIDTH * LENS_HEIGHT, sizeof (*v)), *at = v;
    double view_u, view_v, d = lens_distance (20, 15, &view_u, &view_v);
    const double removed[IMK_NORMALINTEGRATE_N_TERMS] = {
        lens_lowest - d - 7, slopes[0], slopes[1]};
    test_auto (TestImage) t =
        test_image_new (IMK_TYPE_F32, LENS_WIDTH, LENS_HEIGHT, 1, 8);
    double mm = lens_lowest / lens_focal;
    test_auto (Made) made;
    File file;

    made_of (&made, &t, mm, false);
    made.config.focal_pixels = lens_focal;
    made.mesh.removed = flat ? removed : NULL;
    for (uint32_t y = 0; y < LENS_HEIGHT; y++)
      for (uint32_t x = 0; x < LENS_WIDTH; x++) {
        float *normal = (float *) ((uint8_t *) made.normal.image.data +
                                   y * made.normal.image.stride) +
                        3 * x;

        for (int i = 0; i < 3; i++)
          normal[i] = (float) n[i];
        ((float *) ((uint8_t *) t.image.data + y * t.image.stride))[x] =
            flat ? 7
                 : (float) (lens_lowest -
                            lens_distance (x, y, &view_u, &view_v));
      }
    file = write_mesh (&made.mesh, IMK_MESH_OBJ);
    test_check (read_vertices (file.bytes, v) == LENS_WIDTH * LENS_HEIGHT,
        "other vertices");
    for (uint32_t y = 0; y < LENS_HEIGHT; y++)
      for (uint32_t x = 0; x < LENS_WIDTH; x++, at += 6) {
        double off = 0, expected[6];

        d = lens_distance (x, y, &view_u, &view_v);
        expected[0] = 20 * mm + view_u * d;
        expected[1] = 15 * mm + view_v * d;
        expected[2] = flat ? 7 : lens_lowest - d;
        for (int i = 0; i < 3; i++)
          expected[3 + i] = flat ? i == 2 : n[i];
        for (int i = 0; i < 6; i++)
          off = fmax (off, fabs (at[i] - expected[i]));
        test_check (off < 1e-4, "%d, (%u, %u): %g %g %g, not %g %g %g", flat, x,
            y, at[0], at[1], at[2], expected[0], expected[1], expected[2]);
      }
    free (file.bytes);
    free (v);
  }
}

TEST (meshes_of_nonsense_are_refused, "meshes of nonsense are refused")
{
  test_auto (TestImage) t = heights_of (2, 2, "1111");
  test_auto (TestImage) wrong = test_image_new (IMK_TYPE_U16, 2, 2, 1, 0);
  File file = {NULL, 0, 100};
  test_auto (Made) made;

  made_of (&made, &t, 1, true);
  test_error (imk_normalintegrate_mesh_write (
                  &made.mesh, 5, append, &file, test_new_error ()),
      IMK_ERROR_CONFIG, "format 5");
  for (int i = 0; i < 3; i++)
    test_error (imk_normalintegrate_mesh_write (&made.mesh, (ImkMeshFormat) i,
                    append, &file, test_new_error ()),
        IMK_ERROR_FILE, "disk is full");
  made.mesh.height = wrong.image;
  test_error (imk_normalintegrate_mesh_write (
                  &made.mesh, IMK_MESH_PLY, append, &file, test_new_error ()),
      IMK_ERROR_IMAGE, "height");
  made.mesh.height = t.image;
  made.mesh.colour = wrong.image;
  test_error (imk_normalintegrate_mesh_write (
                  &made.mesh, IMK_MESH_PLY, append, &file, test_new_error ()),
      IMK_ERROR_IMAGE, "colour");
  made.config.mm_per_pixel = NAN;
  test_error (imk_normalintegrate_mesh_write (
                  &made.mesh, IMK_MESH_PLY, append, &file, test_new_error ()),
      IMK_ERROR_CONFIG, "mm-per-pixel");
  free (file.bytes);
}
