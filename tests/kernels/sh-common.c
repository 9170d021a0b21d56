/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sh-common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shcentroid/shcentroid-reference.h"

ImkShcentroidConfig
sh_grid (ImkType type, uint32_t width, uint32_t height, double x0, double y0,
    double pitch_x, double pitch_y, uint32_t columns, uint32_t rows)
{
  ImkShcentroidConfig c;

  imk_shcentroid_config_init (&c);
  c.width = width;
  c.height = height;
  c.type = type;
  c.x0 = x0;
  c.y0 = y0;
  c.pitch_x = pitch_x;
  c.pitch_y = pitch_y;
  c.columns = columns;
  c.rows = rows;
  c.n_threads = 1;
  return c;
}

/* --- samples and results -------------------------------------------------- */

void
sh_set (TestImage *in, uint32_t x, uint32_t y, double value)
{
  uint8_t *p = (uint8_t *) in->image.data + y * in->image.stride;

  if (in->image.type == IMK_TYPE_U8)
    p[x] = (uint8_t) fmin (fmax (value, 0), 255);
  else if (in->image.type == IMK_TYPE_U16)
    ((uint16_t *) p)[x] = (uint16_t) fmin (fmax (value, 0), 65535);
  else
    ((float *) p)[x] = (float) value;
}

double
sh_sample (const TestImage *in, int64_t x, int64_t y)
{
  const uint8_t *p = (const uint8_t *) in->image.data + y * in->image.stride;

  return in->image.type == IMK_TYPE_U8    ? p[x]
         : in->image.type == IMK_TYPE_U16 ? ((const uint16_t *) p)[x]
                                          : ((const float *) p)[x];
}

double
sh_get (const TestImage *out, uint32_t row, uint32_t column)
{
  const uint8_t *p =
      (const uint8_t *) out->image.data + row * out->image.stride;

  return out->image.type == IMK_TYPE_F32 ? ((const float *) p)[column]
                                         : ((const double *) p)[column];
}

void
sh_near (const TestImage *out, uint32_t cell, uint32_t field, double expected,
    double tolerance)
{
  double value = sh_get (out, cell, field);

  test_check (fabs (value - expected) <= tolerance,
      "cell %u field %u is %.12g, expected %.12g", cell, field, value,
      expected);
}

void
sh_check_value (const char *name, uint32_t cell, uint32_t field, double value,
    double expected, double relative)
{
  test_check (fabs (value - expected) <= relative * fmax (1, fabs (expected)),
      "%s: cell %u field %u is %.15g, expected %.15g", name, cell, field, value,
      expected);
}

void
sh_check_reference (const ImkShcentroidConfig *c, const TestImage *in,
    const TestImage *out, double relative, const double tilt[2],
    const char *name)
{
  uint32_t n = imk_shcentroid_n_cells (c);
  bool slopes = c->fields == IMK_SHCENTROID_FIELDS_SLOPES;
  uint32_t n_fields = c->fields == IMK_SHCENTROID_FIELDS_ALL ? N_FIELDS : 2;

  for (uint32_t i = 0; i < n; i++) {
    double row[N_FIELDS];
    bool valid;

    imk_shcentroid_reference (c, &in->image, i, row);
    valid = !((int) row[IMK_SHCENTROID_FLAGS] & IMK_SHCENTROID_INVALID_MASK);
    for (int f = 0; tilt && valid && f < 2; f++)
      row[IMK_SHCENTROID_DX + f] -= tilt[f];
    for (uint32_t f = 0; f < n_fields; f++) {
      double value = slopes ? sh_get (out, 0, i + f * n) : sh_get (out, i, f);
      double expected = row[slopes ? f + IMK_SHCENTROID_DX : f];
      double off = fabs (value - expected);

      if (off > relative * fmax (1, fabs (expected)) &&
          off <= imk_shcentroid_reference_rounding (
                     c, &in->image, i, (ImkShcentroidField) f))
        continue;
      sh_check_value (name, i, f, value, expected, relative);
    }
  }
}

double
sh_uniform (uint64_t *seed)
{
  return (double) (test_random (seed) >> 11) * 0x1p-53;
}

double
sh_normal (uint64_t *seed)
{
  double u = sh_uniform (seed), v = sh_uniform (seed);

  return sqrt (-2 * log (1 - u)) * cos (2 * M_PI * v);
}

TestImage
sh_example (ImkType type, uint32_t width, uint32_t height, uint32_t x,
    uint32_t y, uint32_t pedestal)
{
  static const uint8_t example[4][4] = {
      {0, 0, 0, 0}, {0, 10, 20, 0}, {0, 30, 40, 0}, {0, 0, 0, 0}};
  TestImage in = test_image_new (type, width, height, 1, 3);

  test_image_fill (&in, FILL_ZERO, 0, 0);
  for (uint32_t v = 0; v < 4; v++)
    for (uint32_t u = 0; u < 4; u++)
      sh_set (&in, x + u, y + v, example[v][u] + pedestal);
  return in;
}

/* --- running -------------------------------------------------------------- */

ImkShcentroid *
sh_new (ImkBackend backend, const ImkShcentroidConfig *c)
{
  ImkShcentroid *s = NULL;

  test_ok (imk_shcentroid_new (backend, c, &s, test_new_error ()));
  return s;
}

void
sh_process (ImkShcentroid *s, const TestImage *in, TestImage *out)
{
  test_ok (imk_shcentroid_process (
      s, &in->image, &out->image, NULL, test_new_error ()));
}

/* From @from to device memory, and back to @out. */
static void
process_on_device (
    ImkShcentroid *s, const ImkImage *from, ImkImage *to, TestImage *out)
{
  test_ok (imk_shcentroid_process (s, from, to, NULL, test_new_error ()));
  test_from_device (to, out);
}

TestImage
sh_output (const ImkShcentroidConfig *c, ImkType type, uint32_t padding)
{
  uint32_t n = imk_shcentroid_n_cells (c);

  switch (c->fields) {
  case IMK_SHCENTROID_FIELDS_XY:
    return test_image_new (type, 2, n, 1, padding);
  case IMK_SHCENTROID_FIELDS_SLOPES:
    return test_image_new (type, 2 * n, 1, 1, padding);
  default:
    return test_image_new (type, N_FIELDS, n, 1, padding);
  }
}

TestImage
sh_run (ImkBackend backend, const ImkShcentroidConfig *c, const TestImage *in,
    ImkType type, uint32_t padding)
{
  test_autoptr (ImkShcentroid) s = sh_new (backend, c);
  TestImage out = sh_output (c, type, padding);

  if (backend == IMK_BACKEND_CPU) {
    sh_process (s, in, &out);
  } else {
    test_auto (ImkImage) from = test_to_device (in), to = test_to_device (&out);

    process_on_device (s, &from, &to, &out);
  }
  test_image_check_canaries (&out, "output");
  return out;
}

void
sh_check_parity (const ImkShcentroidConfig *c, const TestImage *in,
    ImkType type, uint32_t padding, uint32_t n_frames, bool elsewhere,
    const char *name)
{
  ImkShcentroid *cpu = sh_new (IMK_BACKEND_CPU, c);
  ImkShcentroid *cuda = sh_new (IMK_BACKEND_CUDA, c);
  test_auto (TestImage) expected = sh_output (c, type, padding);
  test_auto (TestImage) actual = sh_output (c, type, padding);
  ImkImage from = test_to_device (in), to = test_to_device (&actual);
  TestMapped mapped = {.host = NULL};

  if (elsewhere)
    mapped = test_to_mapped (in);
  for (uint32_t i = 0; i < n_frames; i++) {
    sh_process (cpu, in, &expected);
    test_image_check_canaries (&expected, name);
    process_on_device (
        cuda, i > 0 && elsewhere ? &mapped.image : &from, &to, &actual);
    test_image_same (&expected, &actual, name);
  }
  imk_shcentroid_free (cpu);
  imk_shcentroid_free (cuda);
  test_device_free (&from);
  test_device_free (&to);
  if (elsewhere)
    test_mapped_free (&mapped);
}

/* --- real frames ---------------------------------------------------------- */

ImkShcentroidConfig
sh_real_grid (void)
{
  return sh_grid (IMK_TYPE_U16, 512, 512, 23.51, 20.65, 29.653, 29.653, 16, 16);
}

static FILE *
open_file_of (const char *name, const char *extension)
{
  char path[512];

  snprintf (path, sizeof (path), "shcentroid/%s.%s", name, extension);
  return test_open_data (path);
}

TestImage
sh_load_frame (const char *name)
{
  FILE *file = open_file_of (name, "gray16le.raw");
  TestImage in = test_image_new (IMK_TYPE_U16, 512, 512, 1, 0);
  size_t n = fread (in.image.data, 2, 512 * 512, file);

  fclose (file);
  test_check (n == 512 * 512, "%s is too short", name);
  return in;
}

FILE *
sh_open_table (const char *name)
{
  FILE *table = open_file_of (name, "grid16.csv");
  double names[CSV_COLUMNS];

  test_check (sh_read_cell (table, names), "the table of %s is empty", name);
  return table;
}

bool
sh_read_cell (FILE *table, double values[CSV_COLUMNS])
{
  char line[1024], *p = line;

  if (!fgets (line, sizeof (line), table))
    return false;
  for (int i = 0; i < CSV_COLUMNS; i++) {
    char *end;

    values[i] = strtod (p, &end);
    if (end == p)
      values[i] = NAN;
    p = strchr (end, ',');
    p = p ? p + 1 : end;
  }
  return true;
}
