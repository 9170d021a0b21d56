/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Meshes of heights, as OBJ and PLY. */
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

/* Returns: the file, ended by a 0 beyond its size */
static char *
mesh_of (const TestImage *t, ImkMeshFormat format, double mm, size_t *size)
{
  size_t room;
  char *file;
  ImkError error;

  test_ok (
      imk_normalintegrate_mesh_size (&t->image, format, &room, &error), &error);
  file = malloc (room + 2);
  memset (file, 0x55, room + 2);
  test_ok (imk_normalintegrate_mesh_write (
               &t->image, mm, 1, format, file, size, &error),
      &error);
  test_check (
      *size <= room, "%zu bytes were written, %zu foretold", *size, room);
  test_check (file[room] == 0x55, "more was written than foretold");
  file[*size] = 0;
  return file;
}

static void
obj_has_a_vertex_a_height_and_triangles_between (void)
{
  static const char expected[] = "v 0.0000000 0.5000000 0.2500000\n"
                                 "v 0.5000000 0.5000000 0.5000000\n"
                                 "v 0.0000000 0.0000000 0.7500000\n"
                                 "v 0.5000000 0.0000000 1.0000000\n"
                                 "v 1.0000000 0.0000000 2.2500000\n"
                                 "f 1 3 4\nf 1 4 2\nf 2 4 5\n";
  TestImage t = heights_of (3, 2, "12.349");
  const char *before = setlocale (LC_ALL, "de_DE.UTF-8");
  size_t size;
  char *file = mesh_of (&t, IMK_MESH_OBJ, 0.5, &size);

  (void) before;
  setlocale (LC_ALL, "C");
  test_check (strcmp (file, expected) == 0, "it reads\n%s", file);
  free (file);
  test_image_free (&t);
}

static uint32_t
word_at (const char *p)
{
  uint32_t v = 0;

  for (int i = 0; i < 4; i++)
    v |= (uint32_t) (uint8_t) p[i] << 8 * i;
  return v;
}

static void
ply_faces_look_up_and_holes_have_none (void)
{
  static const struct {
    const char *digits;
    unsigned vertices, faces;
  } cases[] = {{"111111111", 9, 8}, {"1111.1111", 8, 4}, {".........", 0, 0},
      {".11111111", 8, 7}, {"1.1.1.1.1", 5, 0}, {"123456789", 9, 8}};

  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++) {
    TestImage t = heights_of (3, 3, cases[i].digits);
    size_t size;
    char *file = mesh_of (&t, IMK_MESH_PLY, 1, &size), expected[300];
    const char *body = strstr (file, "end_header\n") + 11, *face;

    snprintf (expected, sizeof (expected),
        "ply\nformat binary_little_endian 1.0\nelement vertex %u\n"
        "property float x\nproperty float y\nproperty float z\n"
        "element face %u\n"
        "property list uchar int vertex_indices\nend_header\n",
        cases[i].vertices, cases[i].faces);
    test_check (strncmp (file, expected, strlen (expected)) == 0,
        "the header of %s reads\n%s", cases[i].digits, file);
    face = body + 12 * cases[i].vertices;
    test_check (size == (size_t) (face - file) + 13 * cases[i].faces,
        "%s: %zu bytes", cases[i].digits, size);
    for (unsigned f = 0; f < cases[i].faces; f++, face += 13) {
      float v[3][3], up;

      test_check (face[0] == 3, "a face of %d corners", face[0]);
      for (int k = 0; k < 3; k++) {
        uint32_t vertex = word_at (face + 1 + 4 * k);

        test_check (vertex < cases[i].vertices, "vertex %u", vertex);
        memcpy (v[k], body + 12 * vertex, 12);
      }
      up = (v[1][0] - v[0][0]) * (v[2][1] - v[0][1]) -
           (v[1][1] - v[0][1]) * (v[2][0] - v[0][0]);
      test_check (up == 1, "%s: twice the area of face %u is %g from above",
          cases[i].digits, f, up);
    }
    free (file);
    test_image_free (&t);
  }
}

static void
meshes_of_nonsense_are_refused (void)
{
  TestImage t = heights_of (2, 2, "1111");
  TestImage wrong = test_image_new (IMK_TYPE_U16, 2, 2, 1, 0);
  char file[1000];
  size_t size;
  ImkError error;

  test_error (imk_normalintegrate_mesh_size (&t.image, 5, &size, &error),
      &error, IMK_ERROR_CONFIG, "format 5");
  test_error (
      imk_normalintegrate_mesh_size (&wrong.image, IMK_MESH_PLY, &size, &error),
      &error, IMK_ERROR_IMAGE, "height");
  test_error (imk_normalintegrate_mesh_write (
                  &t.image, NAN, 1, IMK_MESH_PLY, file, &size, &error),
      &error, IMK_ERROR_CONFIG, "mm-per-pixel");
  test_image_free (&t);
  test_image_free (&wrong);
}

int
main (void)
{
  static const Test tests[] = {
      {"an OBJ has a vertex a height and triangles between",
          obj_has_a_vertex_a_height_and_triangles_between},
      {"faces of a PLY look up, and holes have none",
          ply_faces_look_up_and_holes_have_none},
      {"meshes of nonsense are refused", meshes_of_nonsense_are_refused},
      {NULL},
  };

  return test_main (tests);
}
