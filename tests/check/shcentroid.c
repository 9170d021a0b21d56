/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element shcentroid: its three outputs (frames, metas, results pad), its
 * options and its errors, on the CPU and, through the mock module, on a device.
 * Centroids are compared with sums made here, pixel by pixel. */
#include <locale.h>
#include <math.h>

#include "check-common.h"
#include "gstimagingnpy.h"
#include "gstimagingresults.h"

static const gchar *const backends[] = {"cpu", "cuda"};
enum { N_BACKENDS = G_N_ELEMENTS (backends) };

#define HEADER \
  "frame,pts,cell,row,col,x,y,dx,dy,flux,flux_raw,max,var_x,var_y,flags"

/* Columns of the text. */
enum {
  FRAME,
  PTS,
  CELL,
  ROW,
  COL,
  X,
  Y,
  DX,
  DY,
  FLUX,
  FLUX_RAW,
  MAXIMUM,
  VAR_X,
  VAR_Y,
  FLAGS,
  N_COLUMNS,
};

/* docs: flags */
enum { NO_FLUX = 1, LOW_FLUX = 2, SATURATED = 4, CLIPPED = 8 };

/* As fail_unless (), which leaves a message behind at every call: too slow for
 * every number. */
#define check_that(condition, ...) \
  do { \
    if (!(condition)) \
      fail (__VA_ARGS__); \
  } while (0)

/* --- harnesses --- */

typedef struct {
  GstHarness *h;       /* frames in and out */
  GstHarness *results; /* NULL: the pad is not requested */
  GstElement *element;
  GstBus *bus;
} Sh;

static GstElement *
element_new (const gchar *backend, const gchar *properties)
{
  g_autofree gchar *launch =
      g_strdup_printf ("shcentroid name=sh backend=%s %s", backend, properties);
  GError *error = NULL;
  GstElement *element = gst_parse_launch (launch, &error);

  fail_unless (element && !error, "%s", error ? error->message : "");
  return element;
}

static Sh
sh_open (const gchar *backend, const gchar *properties, const gchar *src_pad,
    const gchar *results_pad)
{
  Sh sh = {.element = element_new (backend, properties)};

  sh.bus = gst_bus_new ();
  gst_element_set_bus (sh.element, sh.bus);
  sh.h = gst_harness_new_with_element (sh.element, "sink", src_pad);
  if (results_pad)
    sh.results = gst_harness_new_with_element (sh.element, NULL, results_pad);
  return sh;
}

static Sh
sh_new (const gchar *backend, const gchar *properties)
{
  return sh_open (backend, properties, "src", "results");
}

static void
sh_free (Sh *sh)
{
  gst_element_set_bus (sh->element, NULL);
  gst_object_unref (sh->bus);
  if (sh->results)
    gst_harness_teardown (sh->results);
  gst_harness_teardown (sh->h);
  gst_object_unref (sh->element);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Sh, sh_free)

static void
sh_caps (Sh *sh, const gchar *format, gint width, gint height)
{
  g_autofree gchar *caps = check_caps_string (format, width, height);

  gst_harness_set_src_caps_str (sh->h, caps);
}

static void
sh_set (Sh *sh, const gchar *name, const gchar *value)
{
  gst_util_set_object_arg (G_OBJECT (sh->element), name, value);
}

/* Returns: (transfer full): what came out of src */
static GstBuffer *
sh_frame (Sh *sh, GstBuffer *in)
{
  check_push (sh->h, gst_buffer_ref (in), GST_FLOW_OK);
  return check_pull (sh->h);
}

static void
sh_fails (Sh *sh, GstBuffer *in, GQuark domain, gint code, const gchar *words)
{
  fail_unless (gst_harness_push (sh->h, gst_buffer_ref (in)) != GST_FLOW_OK);
  check_message_says (
      check_message (sh->bus, GST_MESSAGE_ERROR), domain, code, words);
  fail_unless (check_count_messages (sh->bus, GST_MESSAGE_ERROR) == 0,
      "one failure, two errors");
  fail_unless (gst_harness_try_pull (sh->h) == NULL);
}

/* --- frames --- */

static guint
read_pixel (const GstVideoFrame *frame, gint x, gint y)
{
  const guint8 *row = (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (frame, 0) +
                      (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0);

  return GST_VIDEO_FRAME_FORMAT (frame) == GST_VIDEO_FORMAT_GRAY8
             ? row[x]
             : GST_READ_UINT16_LE (row + 2 * x);
}

static void
write_pixel (const GstVideoFrame *frame, gint x, gint y, guint value)
{
  guint8 *row = (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (frame, 0) +
                (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0);

  if (GST_VIDEO_FRAME_FORMAT (frame) == GST_VIDEO_FORMAT_GRAY8)
    row[x] = value;
  else
    GST_WRITE_UINT16_LE (row + 2 * x, value);
}

static GstBuffer *
flat_frame (const GstVideoInfo *info, guint value)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, info->size, NULL);
  GstVideoFrame frame;

  fail_unless (gst_video_frame_map (
      &frame, (GstVideoInfo *) info, buffer, GST_MAP_WRITE));
  for (gint i = 0; i < info->width * info->height; i++)
    write_pixel (&frame, i % info->width, i / info->width, value);
  gst_video_frame_unmap (&frame);
  return buffer;
}

static void
paint (GstBuffer *buffer, const GstVideoInfo *info, gint x, gint y, guint value)
{
  GstVideoFrame frame;

  fail_unless (gst_video_frame_map (
      &frame, (GstVideoInfo *) info, buffer, GST_MAP_READWRITE));
  write_pixel (&frame, x, y, value);
  gst_video_frame_unmap (&frame);
}

/* --- results --- */

typedef struct {
  guint n_rows;
  gchar *header; /* NULL: none came */
  GArray *values;
} Table;

/* Reads one number and what ends it; nothing is NaN. */
static gdouble
read_number (gchar **text)
{
  gchar *end;
  gdouble value = g_ascii_strtod (*text, &end);

  if (end == *text)
    value = NAN;
  check_that (*end == ',' || *end == '\n', "no number: %.20s", *text);
  *text = end;
  return value;
}

/* Reads the lines of one buffer. No allocation a number: with a sanitizer each
 * is slow. */
static Table
read_text (GstBuffer *buffer)
{
  Table t = {.values = g_array_new (FALSE, FALSE, sizeof (gdouble))};
  gchar *text, *p;
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READ);

  p = text = g_strndup ((gchar *) map.data, map.size);
  fail_unless (g_str_has_suffix (text, "\n"), "half a line: %s", text);
  if (g_str_has_prefix (text, "frame,")) {
    p = strchr (text, '\n');
    t.header = g_strndup (text, p - text);
    p++;
  }
  while (*p) {
    gdouble value = read_number (&p);

    g_array_append_val (t.values, value);
    t.n_rows += *p++ == '\n';
  }
  g_free (text);
  return t;
}

static Table
sh_text (Sh *sh)
{
  g_autoptr (GstBuffer) buffer = check_pull (sh->results);
  Table t = read_text (buffer);

  return t;
}

static void
table_free (Table *t)
{
  g_free (t->header);
  g_array_unref (t->values);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Table, table_free)

static gdouble
value_of (const Table *t, guint row, guint column)
{
  guint n = t->values->len / t->n_rows;

  check_that (row < t->n_rows && column < n, "row %u of %u, column %u of %u",
      row, t->n_rows, column, n);
  return g_array_index (t->values, gdouble, row * n + column);
}

/* Pushes a frame and returns its text. */
static Table
sh_measure (Sh *sh, GstBuffer *in)
{
  gst_buffer_unref (sh_frame (sh, in));
  return sh_text (sh);
}

typedef struct {
  guint rows, columns;
  gfloat *numbers;
  gboolean by_field;
} Meta;

static Meta
read_meta (GstBuffer *buffer, const gchar *element)
{
  const GstStructure *s = gst_imaging_results_get (buffer, element);
  g_autoptr (GstBuffer) data = NULL;
  gint rows, columns;
  Meta m;

  fail_unless (s != NULL, "no result of %s", element);
  fail_unless_equals_string (
      gst_structure_get_string (s, "id"), "shwfs-centroids-v1");
  fail_unless_equals_string (gst_structure_get_string (s, "type"), "float32");
  fail_unless (gst_structure_get (s, "rows", G_TYPE_INT, &rows, "columns",
      G_TYPE_INT, &columns, "by-field", G_TYPE_BOOLEAN, &m.by_field, "data",
      GST_TYPE_BUFFER, &data, NULL));
  m.rows = rows;
  m.columns = columns;
  m.numbers = g_new (gfloat, m.rows * m.columns);
  fail_unless_equals_uint64 (
      gst_buffer_get_size (data), (guint64) m.rows * m.columns * 4);
  gst_buffer_extract (data, 0, m.numbers, -1);
  return m;
}

/* The meta holds the numbers of the text, rounded to float32. */
static void
check_meta_is_text (GstBuffer *frame, const Table *text, guint n_indices)
{
  Meta m = read_meta (frame, "sh");
  guint n_fields = m.by_field ? m.rows : m.columns;
  guint n_cells = m.by_field ? m.columns : m.rows;

  fail_unless_equals_int (text->n_rows, n_cells);
  fail_unless_equals_int (
      text->values->len / text->n_rows, n_indices + n_fields);
  for (guint cell = 0; cell < n_cells; cell++)
    for (guint f = 0; f < n_fields; f++) {
      gfloat meta =
          m.numbers[m.by_field ? f * n_cells + cell : cell * n_fields + f];
      gdouble value = value_of (text, cell, n_indices + f);

      check_that ((isnan (meta) && isnan (value)) ||
                      fabs (meta - value) <= 1e-10 + fabs (value) * 0x1p-24,
          "cell %u field %u: meta %.9g, text %.10f", cell, f, meta, value);
    }
  g_free (m.numbers);
}

/* --- the expected numbers --- */

typedef struct {
  gint left, top, right, bottom;
  gdouble ref_x, ref_y;
  gdouble threshold; /* -1: none */
  gboolean subtract;
  gdouble min_flux, saturation, gain, read_noise;
  guint flags; /* CLIPPED */
} Cell;

static Cell
grid_cell (gdouble x0, gdouble y0, gdouble pitch_x, gdouble pitch_y, guint row,
    guint column)
{
  return (Cell){
      .left = floor (x0 + column * pitch_x),
      .top = floor (y0 + row * pitch_y),
      .right = floor (x0 + (column + 1) * pitch_x),
      .bottom = floor (y0 + (row + 1) * pitch_y),
      .ref_x = x0 + (column + 0.5) * pitch_x - 0.5,
      .ref_y = y0 + (row + 0.5) * pitch_y - 0.5,
      .threshold = -1,
      .gain = 1,
  };
}

static void
expect (gdouble found, gdouble expected, gdouble tolerance, guint row,
    const gchar *what)
{
  check_that (fabs (found - expected) <= tolerance * MAX (1, fabs (expected)),
      "cell %u: %s is %.10f, expected %.10f", row, what, found, expected);
}

/* Two passes over the pixels: no moments, unlike the kernels. */
static void
check_cell (const Table *t, guint row, const GstVideoFrame *frame, Cell c)
{
  long double flux = 0, x = 0, y = 0, raw = 0, var_x = 0, var_y = 0;
  guint most = 0, flags = c.flags;
  gint left = MAX (c.left, 0), right = MIN (c.right, frame->info.width);
  gint top = MAX (c.top, 0), bottom = MIN (c.bottom, frame->info.height);

  if (left != c.left || right != c.right || top != c.top || bottom != c.bottom)
    flags |= CLIPPED;
  for (gint pass = 0; pass < 2; pass++) {
    for (gint v = top; v < bottom; v++)
      for (gint u = left; u < right; u++) {
        guint value = read_pixel (frame, u, v);
        gboolean counts = c.threshold < 0 || value >= c.threshold;
        long double weight =
            counts ? value - (c.subtract && c.threshold > 0 ? c.threshold : 0)
                   : 0;
        long double noise =
            counts ? value / c.gain + c.read_noise * c.read_noise : 0;

        if (pass == 0) {
          raw += value;
          most = MAX (most, value);
          flux += weight;
          x += weight * u;
          y += weight * v;
        } else {
          var_x += noise * (u - x) * (u - x);
          var_y += noise * (v - y) * (v - y);
        }
      }
    if (pass == 0 && flux > 0) {
      x /= flux;
      y /= flux;
    }
  }
  flags |= flux > 0 ? 0 : NO_FLUX;
  flags |= flux < c.min_flux ? LOW_FLUX : 0;
  flags |= c.saturation > 0 && most >= c.saturation ? SATURATED : 0;
  if (flags & (NO_FLUX | LOW_FLUX)) {
    x = c.ref_x;
    y = c.ref_y;
    var_x = var_y = 0;
  }
  expect (value_of (t, row, X), x, 1e-9, row, "x");
  expect (value_of (t, row, Y), y, 1e-9, row, "y");
  expect (value_of (t, row, DX), x - c.ref_x, 1e-9, row, "dx");
  expect (value_of (t, row, DY), y - c.ref_y, 1e-9, row, "dy");
  expect (value_of (t, row, FLUX), flux, 1e-12, row, "flux");
  expect (value_of (t, row, FLUX_RAW), raw, 0, row, "flux_raw");
  expect (value_of (t, row, MAXIMUM), most, 0, row, "max");
  expect (value_of (t, row, FLAGS), flags, 0, row, "flags");
  if (flux > 0) {
    expect (value_of (t, row, VAR_X), var_x / flux / flux, 1e-8, row, "var_x");
    expect (value_of (t, row, VAR_Y), var_y / flux / flux, 1e-8, row, "var_y");
  }
}

/* --- the regular grid --- */

typedef struct {
  const gchar *format;
  gint width, height;
  gdouble x0, y0, pitch_x, pitch_y;
  guint columns, rows;
  const gchar *properties;
  gdouble threshold; /* -1: none */
  gboolean subtract;
  gdouble min_flux, saturation, gain, read_noise;
} Grid;

static const Grid grids[] = {
    {"GRAY8", 641, 37, 3.51, 0.65, 9.653, 8.9, 60, 4, "", -1, 0, 0, 255, 1, 0},
    {"GRAY16_LE", 213, 37, 3.51, 0.65, 9.653, 8.9, 20, 4, "", -1, 0, 0, 65535,
        1, 0},
    /* cells over every edge of the frame, of one pixel, and one of all */
    {"GRAY8", 33, 21, -3.5, -2.25, 8.5, 7.75, 4, 3, "", -1, 0, 0, 255, 1, 0},
    {"GRAY8", 17, 5, 0, 0, 1, 1, 17, 5, "", -1, 0, 0, 255, 1, 0},
    {"GRAY16_LE", 601, 301, 0, 0, 601, 301, 1, 1, "", -1, 0, 0, 65535, 1, 0},
    {"GRAY8", 1, 1, 0, 0, 1, 1, 1, 1, "", -1, 0, 0, 255, 1, 0},
    {"GRAY8", 1, 9, 0, 0, 1, 3, 1, 3, "", -1, 0, 0, 255, 1, 0},
    {"GRAY16_LE", 9, 1, 0, 0, 3, 1, 3, 1, "", -1, 0, 0, 65535, 1, 0},
    {"GRAY8", 97, 31, 1, 2, 7.3, 6.1, 13, 4,
        "threshold-mode=absolute threshold=100", 100, TRUE, 0, 255, 1, 0},
    {"GRAY8", 97, 31, 1, 2, 7.3, 6.1, 13, 4,
        "threshold-mode=absolute threshold=100.5 threshold-action=keep", 100.5,
        FALSE, 0, 255, 1, 0},
    {"GRAY16_LE", 97, 31, 1, 2, 7.3, 6.1, 13, 4,
        "threshold-mode=absolute threshold=30000.25 gain=0.5 read-noise=3.5 "
        "min-flux=500000",
        30000.25, TRUE, 500000, 65535, 0.5, 3.5},
    {"GRAY16_LE", 97, 31, 1, 2, 7.3, 6.1, 13, 4,
        "bit-depth=12 saturation=0 threshold=7", -1, 0, 0, 4095, 1, 0},
    {"GRAY16_LE", 97, 31, 1, 2, 7.3, 6.1, 13, 4,
        "saturation=65000 gain=7 read-noise=2", -1, 0, 0, 65000, 7, 2},
    {"GRAY8", 97, 31, 1, 2, 7.3, 6.1, 13, 4, "saturation=-1", -1, 0, 0, 0, 1,
        0},
    /* nothing is above it: every cell is dark */
    {"GRAY8", 97, 31, 1, 2, 7.3, 6.1, 13, 4,
        "threshold-mode=absolute threshold=60000", 60000, TRUE, 0, 255, 1, 0},
};

static gchar *
grid_properties (const Grid *g)
{
  gchar b[4][G_ASCII_DTOSTR_BUF_SIZE];

  return g_strdup_printf (
      "x0=%s y0=%s pitch-x=%s pitch-y=%s columns=%u rows=%u %s",
      g_ascii_dtostr (b[0], sizeof (b[0]), g->x0),
      g_ascii_dtostr (b[1], sizeof (b[1]), g->y0),
      g_ascii_dtostr (b[2], sizeof (b[2]), g->pitch_x),
      g_ascii_dtostr (b[3], sizeof (b[3]), g->pitch_y), g->columns, g->rows,
      g->properties);
}

static void
check_grid (const Table *t, const Grid *g, GstBuffer *in)
{
  GstVideoInfo info = check_info (g->format, g->width, g->height);
  GstVideoFrame frame;

  fail_unless_equals_int (t->n_rows, g->columns * g->rows);
  fail_unless (gst_video_frame_map (&frame, &info, in, GST_MAP_READ));
  for (guint i = 0; i < t->n_rows; i++) {
    Cell c = grid_cell (
        g->x0, g->y0, g->pitch_x, g->pitch_y, i / g->columns, i % g->columns);

    c.threshold = g->threshold;
    c.subtract = g->subtract;
    c.min_flux = g->min_flux;
    c.saturation = g->saturation;
    c.gain = g->gain;
    c.read_noise = g->read_noise;
    check_cell (t, i, &frame, c);
    fail_unless (value_of (t, i, CELL) == i &&
                 value_of (t, i, ROW) == i / g->columns &&
                 value_of (t, i, COL) == i % g->columns);
  }
  gst_video_frame_unmap (&frame);
}

CHECK_CASE ("shcentroid", check_make_folder, check_remove_folder)

CHECK_LOOP_TEST (
    test_every_number_of_a_grid_is_what_the_pixels_give, N_BACKENDS)
{
  for (guint i = 0; i < G_N_ELEMENTS (grids); i++) {
    const Grid *g = &grids[i];
    g_autofree gchar *properties = grid_properties (g);
    GstVideoInfo info = check_info (g->format, g->width, g->height);
    g_auto (Sh) sh = sh_new (backends[__i__], properties);

    sh_caps (&sh, g->format, g->width, g->height);
    for (guint n = 0; n < 3; n++) {
      g_autoptr (GstBuffer) in =
          n < 2 ? check_noise (&info, n) : check_noise_padded (&info, n, 14);
      g_autoptr (GstBuffer) out = sh_frame (&sh, in);
      g_auto (Table) t = sh_text (&sh);

      fail_unless_equals_int (n == 0, t.header != NULL);
      fail_unless (n || g_str_equal (t.header, HEADER), "%s", t.header);
      fail_unless (value_of (&t, 0, FRAME) == n);
      fail_unless (value_of (&t, 0, PTS) == n * 40e6);
      check_grid (&t, g, in);
      check_meta_is_text (out, &t, X);
      check_same_pixels (out, in, &info);
    }
  }
}

CHECK_LOOP_TEST (
    test_a_flat_frame_has_its_centroids_in_the_middle_of_the_cells, N_BACKENDS)
{
  static const guint values[] = {1, 255};

  for (guint i = 0; i < G_N_ELEMENTS (values); i++) {
    g_auto (Sh) sh =
        sh_new (backends[__i__], "pitch-x=5 pitch-y=4 columns=3 rows=2");
    GstVideoInfo info = check_info ("GRAY8", 15, 8);
    g_autoptr (GstBuffer) in = flat_frame (&info, values[i]);
    g_auto (Table) t;

    sh_caps (&sh, "GRAY8", 15, 8);
    t = sh_measure (&sh, in);
    for (guint c = 0; c < 6; c++) {
      fail_unless (value_of (&t, c, X) == c % 3 * 5 + 2);
      fail_unless (value_of (&t, c, Y) == c / 3 * 4 + 1.5);
      fail_unless (value_of (&t, c, DX) == 0 && value_of (&t, c, DY) == 0);
      fail_unless (
          value_of (&t, c, FLAGS) == (values[i] == 255 ? SATURATED : 0));
    }
  }
}

CHECK_TEST (test_both_backends_give_the_same_bytes)
{
  for (guint i = 0; i < G_N_ELEMENTS (grids); i++) {
    const Grid *g = &grids[i];
    g_autofree gchar *properties = grid_properties (g);
    GstVideoInfo info = check_info (g->format, g->width, g->height);
    g_autoptr (GstBuffer) in = check_noise (&info, i);
    Meta m[2];

    for (guint b = 0; b < 2; b++) {
      g_auto (Sh) sh = sh_open (backends[b], properties, "src", NULL);
      g_autoptr (GstBuffer) out = NULL;

      sh_caps (&sh, g->format, g->width, g->height);
      out = sh_frame (&sh, in);
      m[b] = read_meta (out, "sh");
    }
    fail_unless (memcmp (m[0].numbers, m[1].numbers,
                     m[0].rows * m[0].columns * sizeof (gfloat)) == 0,
        "grid %u", i);
    g_free (m[0].numbers);
    g_free (m[1].numbers);
  }
}

/* --- real frames --- */

/* Returns: the file @name of the data folder, NULL when it is not there */
static gchar *
read_data (const gchar *name, gsize *size)
{
  g_autofree gchar *path =
      g_build_filename (check_data_folder (), "shcentroid", name, NULL);
  gchar *contents = NULL;

  g_file_get_contents (path, &contents, size, NULL);
  return contents;
}

/* Columns of the expected table. */
enum {
  GOLD_RAW = 7,
  GOLD_MAX,
  GOLD_X,
  GOLD_Y,
  GOLD_FLUX,
  GOLD_TABS_X,
  GOLD_TABS_Y,
  GOLD_COLUMNS = 18,
};

/* The table has 9 decimals. */
static void
expect_place (
    gdouble found, const gchar *expected, guint row, const gchar *what)
{
  check_that (fabs (found - g_ascii_strtod (expected, NULL)) <= 1e-9,
      "cell %u: %s is %.10f, expected %s", row, what, found, expected);
}

static void
check_real (const gchar *backend, const gchar *name, const gchar *threshold,
    guint n_valid)
{
  g_autofree gchar *raw_name = g_strconcat (name, ".gray16le.raw", NULL);
  g_autofree gchar *csv_name = g_strconcat (name, ".grid16.csv", NULL);
  gsize size, csv_size;
  gchar *raw = read_data (raw_name, &size);
  gchar *csv = read_data (csv_name, &csv_size);
  gchar **lines;
  Sh sh;
  GstBuffer *in;
  Table cog, tabs;
  guint n = 0;

  if (!raw || !csv) {
    g_free (raw);
    g_free (csv);
    check_skip (
        "%s is not there; set IMAGING_TEST_DATA to its folder", raw_name);
  }
  fail_unless_equals_uint64 (size, 512 * 512 * 2);
  in = gst_buffer_new_wrapped (raw, size);
  sh = sh_new (backend, "x0=23.51 y0=20.65 pitch-x=29.653 pitch-y=29.653 "
                        "columns=16 rows=16");
  sh_caps (&sh, "GRAY16_LE", 512, 512);
  cog = sh_measure (&sh, in);
  sh_set (&sh, "threshold", threshold);
  sh_set (&sh, "threshold-mode", "absolute");
  sh_set (&sh, "min-flux", "5000");
  tabs = sh_measure (&sh, in);

  lines = g_strsplit (csv, "\n", -1);
  for (guint i = 0; i < 256; i++) {
    gchar **f = g_strsplit (lines[i + 1], ",", -1);
    gboolean lit;

    fail_unless_equals_int (g_strv_length (f), GOLD_COLUMNS);
    expect_place (value_of (&cog, i, X), f[GOLD_X], i, "cog_x");
    expect_place (value_of (&cog, i, Y), f[GOLD_Y], i, "cog_y");
    expect (value_of (&cog, i, FLUX_RAW), g_ascii_strtod (f[GOLD_RAW], NULL), 0,
        i, "flux_raw");
    expect (value_of (&cog, i, MAXIMUM), g_ascii_strtod (f[GOLD_MAX], NULL), 0,
        i, "max");
    expect (value_of (&tabs, i, FLUX), g_ascii_strtod (f[GOLD_FLUX], NULL), 0,
        i, "tabs_flux");
    fail_unless (value_of (&cog, i, FLAGS) == 0);
    lit = g_ascii_strtod (f[GOLD_FLUX], NULL) >= 5000;
    fail_unless ((value_of (&tabs, i, FLAGS) == 0) == lit, "cell %u", i);
    n += lit;
    if (lit) {
      expect_place (value_of (&tabs, i, X), f[GOLD_TABS_X], i, "tabs_x");
      expect_place (value_of (&tabs, i, Y), f[GOLD_TABS_Y], i, "tabs_y");
    } else {
      expect (value_of (&tabs, i, DX), 0, 0, i, "dx of a dark cell");
      expect (value_of (&tabs, i, DY), 0, 0, i, "dy of a dark cell");
    }
    g_strfreev (f);
  }
  fail_unless_equals_int (n, n_valid);
  g_strfreev (lines);
  g_free (csv);
  table_free (&cog);
  table_free (&tabs);
  gst_buffer_unref (in);
  sh_free (&sh);
}

CHECK_LOOP_TEST (test_the_lamp_frame_equals_the_expected_table, N_BACKENDS)
{
  check_real (backends[__i__], "f5_hecto_ref", "1000", 256);
}

CHECK_LOOP_TEST (
    test_the_star_frame_has_148_lit_cells_of_the_expected_table, N_BACKENDS)
{
  check_real (backends[__i__], "auto_wfs_0037_ave", "900", 148);
}

/* --- shapes of the results --- */

#define SMALL "pitch-x=5 pitch-y=4 columns=3 rows=2 "

static void
check_tensor_caps (GstHarness *h, const gchar *dimensions)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (h->sinkpad);
  GstStructure *s = gst_caps_get_structure (caps, 0);

  fail_unless_equals_string (gst_structure_get_name (s), "other/tensors");
  fail_unless_equals_string (
      gst_structure_get_string (s, "dimensions"), dimensions);
}

CHECK_LOOP_TEST (test_fields_choose_the_shape_of_every_output, N_BACKENDS)
{
  static const struct {
    const gchar *fields, *header, *names, *dimensions;
    guint rows, columns;
  } shapes[] = {
      {"all", HEADER, "x,y,dx,dy,flux,flux_raw,max,var_x,var_y,flags",
          "10:6:1:1", 6, 10},
      {"xy", "frame,pts,cell,row,col,x,y", "x,y", "2:6:1:1", 6, 2},
      {"slopes", "frame,pts,cell,row,col,dx,dy", "dx,dy", "6:2:1:1", 2, 6},
  };
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = check_noise (&info, 3);

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    g_auto (Sh) text = sh_new (backends[__i__], SMALL);
    g_auto (Sh) tensor = sh_new (backends[__i__], SMALL);
    g_autoptr (GstBuffer) out = NULL, numbers = NULL;
    const GstStructure *s;
    gint width, height;
    Table t;
    Meta m;

    sh_set (&text, "fields", shapes[i].fields);
    sh_set (&tensor, "fields", shapes[i].fields);
    gst_harness_set_sink_caps_str (tensor.results, "other/tensors");
    sh_caps (&text, "GRAY8", 15, 8);
    sh_caps (&tensor, "GRAY8", 15, 8);

    out = sh_frame (&text, in);
    t = sh_text (&text);
    fail_unless_equals_string (t.header, shapes[i].header);
    fail_unless_equals_int (t.n_rows, 6);
    check_meta_is_text (out, &t, X);
    table_free (&t);
    gst_buffer_unref (out);

    out = sh_frame (&tensor, in);
    m = read_meta (out, "sh");
    fail_unless_equals_int (m.rows, shapes[i].rows);
    fail_unless_equals_int (m.columns, shapes[i].columns);
    s = gst_imaging_results_get (out, "sh");
    fail_unless_equals_string (
        gst_structure_get_string (s, "fields"), shapes[i].names);
    fail_unless (gst_structure_get (s, "ref-width", G_TYPE_INT, &width,
        "ref-height", G_TYPE_INT, &height, NULL));
    fail_unless (width == 15 && height == 8);
    numbers = check_pull (tensor.results);
    fail_unless (gst_buffer_memcmp (numbers, 0, m.numbers,
                     m.rows * m.columns * sizeof (gfloat)) == 0);
    fail_unless_equals_uint64 (GST_BUFFER_PTS (numbers), GST_BUFFER_PTS (in));
    fail_unless_equals_uint64 (
        GST_BUFFER_DURATION (numbers), GST_BUFFER_DURATION (in));
    check_tensor_caps (tensor.results, shapes[i].dimensions);
    g_free (m.numbers);
  }
}

CHECK_LOOP_TEST (test_fields_and_grid_change_while_playing, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], SMALL);
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = check_noise (&info, 3);
  g_autoptr (GstBuffer) numbers = NULL;

  gst_harness_set_sink_caps_str (sh.results, "other/tensors");
  sh_caps (&sh, "GRAY8", 15, 8);
  gst_buffer_unref (sh_frame (&sh, in));
  gst_buffer_unref (check_pull (sh.results));
  check_tensor_caps (sh.results, "10:6:1:1");

  sh_set (&sh, "columns", "2");
  gst_buffer_unref (sh_frame (&sh, in));
  numbers = check_pull (sh.results);
  check_tensor_caps (sh.results, "10:4:1:1");
  fail_unless_equals_uint64 (gst_buffer_get_size (numbers), 160);
  gst_buffer_unref (numbers);

  sh_set (&sh, "fields", "slopes");
  gst_buffer_unref (sh_frame (&sh, in));
  numbers = check_pull (sh.results);
  check_tensor_caps (sh.results, "4:2:1:1");
  fail_unless_equals_uint64 (gst_buffer_get_size (numbers), 32);
}

CHECK_LOOP_TEST (test_a_moved_grid_measures_the_next_frame, N_BACKENDS)
{
  Grid g = {"GRAY8", 64, 32, 1, 2, 7.5, 6.25, 4, 3, "", -1, 0, 0, 255, 1, 0};
  g_autofree gchar *properties = grid_properties (&g);
  GstVideoInfo info = check_info ("GRAY8", 64, 32);
  g_autoptr (GstBuffer) in = check_noise (&info, 4);
  g_auto (Sh) sh = sh_new (backends[__i__], properties);

  sh_caps (&sh, "GRAY8", 64, 32);
  for (guint i = 0; i < 5; i++) {
    Table t = sh_measure (&sh, in);

    check_grid (&t, &g, in);
    fail_unless (value_of (&t, 0, FRAME) == i, "frames are counted on");
    table_free (&t);
    g.x0 += 1.37;
    g.pitch_y -= 0.3;
    g.columns = 4 + i;
    g_object_set (sh.element, "x0", g.x0, "pitch-y", g.pitch_y, "columns",
        g.columns, NULL);
  }
}

typedef struct {
  GstElement *element;
  gint stop; /* atomic */
} Meddler;

static gpointer
meddle (gpointer data)
{
  Meddler *m = data;

  for (guint i = 0; !g_atomic_int_get (&m->stop); i++) {
    g_object_set (m->element, "columns", 1 + i % 7, "threshold",
        (gdouble) (i % 200), "fields", i % 3, NULL);
    g_object_set (m->element, "threshold-mode", i % 2, "map-location", NULL,
        "invalid-policy", i % 4, NULL);
    g_object_set (m->element, "threshold-mode", i % 5, "brightest", i % 9,
        "weighting", i % 3, "sigma", 1.0 + i % 4, "window", i % 2, "estimator",
        i / 2 % 2, "power", 1.0 + i % 2, "margin", i % 3, "iterations",
        1 + i % 3, "remove-tilt", i % 2, NULL);
    if (i % 64 == 0) {
      gboolean begun;

      g_signal_emit_by_name (m->element,
          i % 128 ? "capture-dark" : "capture-flat", 2, NULL, &begun);
    }
    g_usleep (20);
  }
  return NULL;
}

CHECK_LOOP_TEST (
    test_another_thread_may_set_any_property_while_playing, N_BACKENDS)
{
  g_auto (Sh) sh =
      sh_new (backends[__i__], "pitch-x=9 pitch-y=9 columns=7 rows=7");
  GstVideoInfo info = check_info ("GRAY8", 64, 64);
  g_autoptr (GstBuffer) in = check_noise (&info, 4);
  Meddler meddler = {sh.element, 0};
  GThread *thread;
  guint64 cells = 0;

  sh_caps (&sh, "GRAY8", 64, 64);
  thread = g_thread_new ("meddler", meddle, &meddler);
  /* on a busy machine the other thread may take a while to run */
  for (guint i = 0; i < 300 || (!(cells & (cells - 1)) && i < 100000); i++) {
    g_autoptr (GstBuffer) out = sh_frame (&sh, in);
    g_auto (Table) t = sh_text (&sh);
    Meta m = read_meta (out, "sh");

    fail_unless (t.n_rows % 7 == 0 && t.n_rows && t.n_rows <= 49);
    check_meta_is_text (out, &t, X);
    cells |= 1u << t.n_rows / 7;
    g_free (m.numbers);
  }
  g_atomic_int_set (&meddler.stop, 1);
  g_thread_join (thread);
  fail_unless (cells & (cells - 1), "the grid never changed");
}

CHECK_TEST (test_two_elements_in_a_row_leave_two_results)
{
  g_autoptr (GstElement) bin = gst_parse_bin_from_description (
      "shcentroid name=a " SMALL " ! shcentroid name=b fields=xy " SMALL, TRUE,
      NULL);
  g_autoptr (CheckHarness) h =
      gst_harness_new_with_element (bin, "sink", "src");
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) out = NULL;
  Meta a, b;

  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY8,width=15,height=8,framerate=25/1");
  check_push (h, check_noise (&info, 1), GST_FLOW_OK);
  out = check_pull (h);
  a = read_meta (out, "a");
  b = read_meta (out, "b");
  fail_unless (a.columns == 10 && b.columns == 2);
  for (guint i = 0; i < 6; i++)
    fail_unless (a.numbers[10 * i] == b.numbers[2 * i]);
  g_free (a.numbers);
  g_free (b.numbers);
}

/* --- frames that pass --- */

CHECK_LOOP_TEST (
    test_frames_pass_unchanged_and_a_shared_one_gets_no_meta, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], SMALL);
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = check_noise (&info, 1), out = NULL;

  gst_buffer_add_video_region_of_interest_meta (in, "pupil", 1, 2, 3, 4);
  GST_BUFFER_OFFSET (in) = 17;
  sh_caps (&sh, "GRAY8", 15, 8);
  out = sh_frame (&sh, in); /* this test holds another reference */
  check_same_pixels (out, in, &info);
  fail_unless (gst_imaging_results_get (in, "sh") == NULL);
  fail_unless (gst_imaging_results_get (out, "sh") != NULL);
  fail_unless_equals_uint64 (GST_BUFFER_PTS (out), GST_BUFFER_PTS (in));
  fail_unless_equals_uint64 (
      GST_BUFFER_DURATION (out), GST_BUFFER_DURATION (in));
  fail_unless_equals_uint64 (GST_BUFFER_OFFSET (out), 17);
  fail_unless (gst_buffer_get_meta (
                   out, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE) != NULL);
  if (__i__ == 0) /* no pixel is copied */
    fail_unless (
        gst_buffer_peek_memory (out, 0) == gst_buffer_peek_memory (in, 0));
}

CHECK_LOOP_TEST (test_latency_is_that_of_upstream, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], SMALL);

  sh_caps (&sh, "GRAY8", 15, 8);
  gst_harness_set_upstream_latency (sh.h, 40 * GST_MSECOND);
  fail_unless_equals_uint64 (
      gst_harness_query_latency (sh.h), 40 * GST_MSECOND);
}

CHECK_LOOP_TEST (test_a_frame_without_a_time_has_an_empty_pts, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], SMALL);
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = check_noise (&info, 1);
  g_auto (Table) t;

  GST_BUFFER_PTS (in) = GST_CLOCK_TIME_NONE;
  sh_caps (&sh, "GRAY8", 15, 8);
  t = sh_measure (&sh, in);
  fail_unless (isnan (value_of (&t, 0, PTS)));
}

CHECK_LOOP_TEST (test_results_come_although_src_is_not_linked, N_BACKENDS)
{
  g_auto (Sh) sh = sh_open (backends[__i__], SMALL, NULL, "results");
  GstVideoInfo info = check_info ("GRAY8", 15, 8);

  sh_caps (&sh, "GRAY8", 15, 8);
  for (guint i = 0; i < 5; i++) {
    g_auto (Table) t;

    check_push (sh.h, check_noise (&info, i), GST_FLOW_OK);
    t = sh_text (&sh);
    fail_unless (value_of (&t, 0, FRAME) == i);
  }
}

CHECK_LOOP_TEST (test_with_nothing_linked_upstream_is_told, N_BACKENDS)
{
  g_auto (Sh) sh = sh_open (backends[__i__], SMALL, NULL, NULL);
  GstVideoInfo info = check_info ("GRAY8", 15, 8);

  sh_caps (&sh, "GRAY8", 15, 8);
  check_push (sh.h, check_noise (&info, 1), GST_FLOW_NOT_LINKED);
}

CHECK_LOOP_TEST (test_the_results_pad_may_come_and_go_while_playing, N_BACKENDS)
{
  g_auto (Sh) sh = sh_open (backends[__i__], SMALL, "src", NULL);
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = check_noise (&info, 1);

  sh_caps (&sh, "GRAY8", 15, 8);
  for (guint i = 0; i < 5; i++) {
    Table t;

    gst_buffer_unref (sh_frame (&sh, in));
    sh.results = gst_harness_new_with_element (sh.element, NULL, "results");
    t = sh_measure (&sh, in);
    fail_unless_equals_string (t.header, HEADER);
    table_free (&t);
    gst_harness_teardown (sh.results);
    sh.results = NULL;
  }
}

/* --- saturation, darkness, policies --- */

static void
check_flags (const gchar *backend, const gchar *format, const gchar *properties,
    guint value, guint flags)
{
  g_autofree gchar *all = g_strconcat (SMALL, properties, NULL);
  g_auto (Sh) sh = sh_new (backend, all);
  GstVideoInfo info = check_info (format, 15, 8);
  g_autoptr (GstBuffer) in = flat_frame (&info, value);
  g_auto (Table) t;

  sh_caps (&sh, format, 15, 8);
  t = sh_measure (&sh, in);
  for (guint i = 0; i < 6; i++)
    fail_unless (value_of (&t, i, FLAGS) == flags,
        "%s of %u, %s: flags %g, expected %u", format, value, properties,
        value_of (&t, i, FLAGS), flags);
}

CHECK_LOOP_TEST (
    test_saturation_is_the_largest_sample_unless_it_is_said, N_BACKENDS)
{
  const gchar *b = backends[__i__];

  check_flags (b, "GRAY8", "", 255, SATURATED);
  check_flags (b, "GRAY8", "", 254, 0);
  check_flags (b, "GRAY8", "saturation=200", 200, SATURATED);
  check_flags (b, "GRAY8", "saturation=200.5", 200, 0);
  check_flags (b, "GRAY8", "saturation=-1", 255, 0);
  check_flags (b, "GRAY8", "bit-depth=7", 127, SATURATED);
  check_flags (b, "GRAY16_LE", "", 65535, SATURATED);
  check_flags (b, "GRAY16_LE", "", 65534, 0);
  check_flags (b, "GRAY16_LE", "bit-depth=12", 4095, SATURATED);
  check_flags (b, "GRAY16_LE", "bit-depth=12", 4094, 0);
  check_flags (b, "GRAY16_LE", "bit-depth=12 saturation=4000", 4000, SATURATED);
  check_flags (b, "GRAY8", "", 0, NO_FLUX);
  check_flags (b, "GRAY8", "min-flux=1", 0, NO_FLUX | LOW_FLUX);
  check_flags (b, "GRAY8", "min-flux=20", 1, 0);
  check_flags (b, "GRAY8", "min-flux=20.5", 1, LOW_FLUX);
}

/* Cells of 5 x 4: a lit pixel at (1, 2) of the first, the others dark. */
static GstBuffer *
one_spot (const GstVideoInfo *info)
{
  GstBuffer *in = flat_frame (info, 0);

  paint (in, info, 1, 2, 100);
  return in;
}

CHECK_LOOP_TEST (test_the_illumination_mask_changes_live, N_BACKENDS)
{
  static const gdouble shares[] = {0, 0.5, 0.4, 1, 0};
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = one_spot (&info);
  g_auto (Sh) sh = sh_new (backends[__i__], SMALL);

  paint (in, &info, 6, 2, 40); /* cell 1 */
  sh_caps (&sh, "GRAY8", 15, 8);
  for (guint i = 0; i < G_N_ELEMENTS (shares); i++) {
    gboolean dark = shares[i] > 0.4;
    g_auto (Table) t;

    g_object_set (sh.element, "min-illumination", shares[i], NULL);
    t = sh_measure (&sh, in);
    fail_unless (value_of (&t, 0, FLAGS) == 0 && value_of (&t, 0, X) == 1);
    fail_unless (value_of (&t, 1, FLAGS) == (dark ? LOW_FLUX : 0));
    fail_unless (value_of (&t, 1, X) == (dark ? 7 : 6));
    fail_unless (value_of (&t, 1, FLUX) == 40);
    fail_unless (value_of (&t, 2, FLAGS) ==
                 (shares[i] > 0 ? NO_FLUX | LOW_FLUX : NO_FLUX));
  }
}

CHECK_LOOP_TEST (
    test_a_dark_cell_is_flagged_and_never_a_number_out_of_nothing, N_BACKENDS)
{
  static const gchar *const policies[] = {"zero", "hold", "nan", "reference"};
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = one_spot (&info);

  for (guint i = 0; i < G_N_ELEMENTS (policies); i++) {
    g_auto (Sh) sh = sh_new (backends[__i__], SMALL);
    gboolean nan = i == 2;
    g_auto (Table) t;

    sh_set (&sh, "invalid-policy", policies[i]);
    sh_caps (&sh, "GRAY8", 15, 8);
    t = sh_measure (&sh, in);
    fail_unless (value_of (&t, 0, X) == 1 && value_of (&t, 0, Y) == 2);
    fail_unless (value_of (&t, 0, FLAGS) == 0);
    for (guint c = 1; c < 6; c++) {
      gdouble x = c % 3 * 5 + 2, y = c / 3 * 4 + 1.5;

      fail_unless (value_of (&t, c, FLAGS) == NO_FLUX);
      fail_unless (
          value_of (&t, c, FLUX) == 0 && value_of (&t, c, MAXIMUM) == 0);
      for (guint f = X; f <= DY; f++)
        fail_unless (nan ? isnan (value_of (&t, c, f))
                         : value_of (&t, c, f) == (f == X      ? x
                                                      : f == Y ? y
                                                               : 0),
            "policy %s cell %u field %u: %g", policies[i], c, f,
            value_of (&t, c, f));
      fail_unless (isnan (value_of (&t, c, VAR_X)) == nan);
    }
  }
}

CHECK_LOOP_TEST (
    test_hold_reports_the_last_valid_place_until_a_flush, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], SMALL "invalid-policy=hold");
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) lit = one_spot (&info), dark = flat_frame (&info, 0);
  GstSegment segment;
  g_auto (Table) t;

  sh_caps (&sh, "GRAY8", 15, 8);
  t = sh_measure (&sh, lit);
  table_free (&t);
  for (guint i = 0; i < 3; i++) {
    t = sh_measure (&sh, dark);
    fail_unless (value_of (&t, 0, X) == 1 && value_of (&t, 0, Y) == 2);
    fail_unless (value_of (&t, 0, DX) == -1 && value_of (&t, 0, DY) == 0.5);
    fail_unless (value_of (&t, 0, FLAGS) == NO_FLUX);
    table_free (&t);
  }
  gst_harness_push_event (sh.h, gst_event_new_flush_start ());
  gst_harness_push_event (sh.h, gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (sh.h, gst_event_new_segment (&segment));
  t = sh_measure (&sh, dark);
  fail_unless (value_of (&t, 0, X) == 2 && value_of (&t, 0, Y) == 1.5);
}

/* --- map and references --- */

static gchar *
save (const gchar *name, guint64 rows, guint64 columns, const gdouble *values)
{
  gchar *path = check_path_of (name);
  guint64 dims[] = {rows, columns};
  GError *error = NULL;

  fail_unless (gst_imaging_npy_save (path, GST_IMAGING_ND_ARRAY_TYPE_F64, 2,
                   dims, values, &error),
      "%s", error ? error->message : "");
  return path;
}

static Sh
sh_with_map (const gchar *backend, const gchar *path)
{
  Sh sh = sh_new (backend, "");

  g_object_set (sh.element, "map-location", path, NULL);
  return sh;
}

CHECK_LOOP_TEST (test_a_map_gives_every_cell_its_own_rules, N_BACKENDS)
{
  /* overlapping, clipped, fractional, with references, limits, thresholds */
  const gdouble map[] = {
      2, 3, 10, 8, NAN, NAN, NAN, NAN,        /* all as the properties say */
      5.7, 4.2, 10.9, 8, 9.25, 7.5, NAN, NAN, /* own reference */
      -3, -2, 9, 9, NAN, NAN, NAN, 200, /* over the corner, own threshold */
      20, 10, 5, 5, 22, NAN, 1e6, NAN,  /* own least flux: dark */
      0, 0, 31, 23, NAN, NAN, 0, 0,     /* all of the frame */
  };
  g_autofree gchar *path = save ("map.npy", 5, 8, map);
  GstVideoInfo info = check_info ("GRAY8", 31, 23);
  g_autoptr (GstBuffer) in = check_noise (&info, 8);
  g_auto (Sh) sh = sh_with_map (backends[__i__], path);
  GstVideoFrame frame;
  g_auto (Table) t;

  sh_set (&sh, "threshold-mode", "absolute");
  sh_set (&sh, "threshold", "50");
  sh_set (&sh, "min-flux", "10");
  sh_caps (&sh, "GRAY8", 31, 23);
  t = sh_measure (&sh, in);
  fail_unless_equals_int (t.n_rows, 5);
  fail_unless (gst_video_frame_map (&frame, &info, in, GST_MAP_READ));
  for (guint i = 0; i < 5; i++) {
    const gdouble *m = map + 8 * i;
    Cell c = {
        .left = floor (m[0]),
        .top = floor (m[1]),
        .right = floor (m[0] + m[2]),
        .bottom = floor (m[1] + m[3]),
        .ref_x = isnan (m[4]) ? m[0] + m[2] / 2 - 0.5 : m[4],
        .ref_y = isnan (m[5]) ? m[1] + m[3] / 2 - 0.5 : m[5],
        .min_flux = isnan (m[6]) ? 10 : m[6],
        .threshold = isnan (m[7]) ? 50 : m[7],
        .subtract = TRUE,
        .saturation = 255,
        .gain = 1,
    };

    check_cell (&t, i, &frame, c);
    fail_unless (value_of (&t, i, CELL) == i && value_of (&t, i, ROW) == 0 &&
                 value_of (&t, i, COL) == i);
  }
  fail_unless ((guint) value_of (&t, 2, FLAGS) & CLIPPED);
  fail_unless ((guint) value_of (&t, 3, FLAGS) & LOW_FLUX);
  gst_video_frame_unmap (&frame);
}

static void
check_bytes (const GstStructure *s, const gchar *field, gconstpointer expected,
    gsize size)
{
  const GValue *value = gst_structure_get_value (s, field);

  fail_unless (value != NULL, "no %s", field);
  fail_unless_equals_uint64 (
      gst_buffer_get_size (gst_value_get_buffer (value)), size);
  fail_unless (
      gst_buffer_memcmp (gst_value_get_buffer (value), 0, expected, size) == 0);
}

/* A dark cell is not a flat wavefront. */
CHECK_LOOP_TEST (test_flags_go_with_any_fields, N_BACKENDS)
{
  static const guint8 flags[] = {
      0, NO_FLUX, NO_FLUX, NO_FLUX, NO_FLUX, NO_FLUX};
  static const struct {
    const gchar *fields, *dimensions;
    guint n_numbers;
  } shapes[] = {{"all", "10:6:1:1,6:1:1:1", 60}, {"xy", "2:6:1:1,6:1:1:1", 12},
      {"slopes", "6:2:1:1,6:1:1:1", 12}};
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = one_spot (&info);

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    g_auto (Sh) sh = sh_new (backends[__i__], SMALL);
    g_autofree gchar *hash = NULL;
    GstBuffer *out, *tensors;
    const GstStructure *s;
    GstMapInfo map;
    g_autoptr (GstCaps) caps = NULL;

    sh_set (&sh, "fields", shapes[i].fields);
    gst_harness_set_sink_caps_str (sh.results, "other/tensors,num_tensors=2");
    sh_caps (&sh, "GRAY8", 15, 8);
    for (guint frame = 0; frame < 2; frame++) {
      out = sh_frame (&sh, in);
      s = gst_imaging_results_get (out, "sh");
      check_bytes (s, "flags", flags, sizeof (flags));
      g_free (hash);
      g_object_get (sh.element, "settings-hash", &hash, NULL);
      fail_unless_equals_string (
          gst_structure_get_string (s, "settings-hash"), hash);
      tensors = check_pull (sh.results);
      fail_unless_equals_int (gst_buffer_n_memory (tensors), 2);
      fail_unless_equals_uint64 (gst_buffer_get_size (tensors),
          shapes[i].n_numbers * sizeof (gfloat) + sizeof (flags));
      fail_unless (
          gst_memory_map (gst_buffer_peek_memory (tensors, 1), &map, 1));
      fail_unless (memcmp (map.data, flags, sizeof (flags)) == 0);
      gst_memory_unmap (gst_buffer_peek_memory (tensors, 1), &map);
      gst_buffer_unref (tensors);
      gst_buffer_unref (out);
    }
    caps = gst_pad_get_current_caps (sh.results->sinkpad);
    s = gst_caps_get_structure (caps, 0);
    fail_unless_equals_string (
        gst_structure_get_string (s, "types"), "float32,uint8");
    fail_unless_equals_string (
        gst_structure_get_string (s, "dimensions"), shapes[i].dimensions);
  }
}

/* Columns 9 and 10 of a map that find-grid wrote. */
CHECK_LOOP_TEST (test_a_map_tells_row_and_column_of_its_lenslets, N_BACKENDS)
{
  gdouble map[] = {1, 2, 3, 4, NAN, NAN, NAN, NAN, 7, 2, 0, 0.1, /**/
      5, 2, 3, 4, NAN, NAN, NAN, NAN, 0, 40, 0, 0.1};
  const guint32 known[] = {7, 2, 0, 40}, unknown[] = {0, 0, 0, 1};
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = flat_frame (&info, 9);

  for (guint i = 0; i < 3; i++) {
    const guint32 *expected = i == 0 ? known : unknown;
    g_autofree gchar *path = NULL;
    g_autoptr (GstBuffer) out = NULL;
    g_auto (Table) t;
    g_auto (Sh) sh;

    if (i > 0)
      map[8] = i == 1 ? NAN : -1; /* no place */
    path = save ("map.npy", 2, 12, map);
    sh = sh_with_map (backends[__i__], path);
    sh_caps (&sh, "GRAY8", 15, 8);
    out = sh_frame (&sh, in);
    t = sh_text (&sh);
    check_bytes (gst_imaging_results_get (out, "sh"), "row-column", expected,
        sizeof (known));
    for (guint k = 0; k < 2; k++)
      fail_unless (value_of (&t, k, CELL) == k &&
                   value_of (&t, k, ROW) == expected[2 * k] &&
                   value_of (&t, k, COL) == expected[2 * k + 1]);
  }
}

CHECK_LOOP_TEST (test_a_map_may_have_4_to_8_columns, N_BACKENDS)
{
  const gdouble row[] = {1, 2, 3, 4, 0.5, 0.25, 0, 0};
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = flat_frame (&info, 9);

  for (guint n = 4; n <= 8; n++) {
    g_autofree gchar *path = save ("map.npy", 1, n, row);
    g_auto (Sh) sh = sh_with_map (backends[__i__], path);
    g_auto (Table) t;

    sh_caps (&sh, "GRAY8", 15, 8);
    t = sh_measure (&sh, in);
    fail_unless (value_of (&t, 0, X) == 2 && value_of (&t, 0, Y) == 3.5);
    fail_unless (value_of (&t, 0, DX) == (n > 4 ? 1.5 : 0));
    fail_unless (value_of (&t, 0, DY) == (n > 5 ? 3.25 : 0));
  }
}

CHECK_LOOP_TEST (
    test_references_of_a_file_are_what_slopes_are_measured_from, N_BACKENDS)
{
  gdouble references[12];
  g_autofree gchar *path = NULL;
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = flat_frame (&info, 9);
  g_auto (Sh) sh = sh_new (backends[__i__], SMALL);
  g_auto (Table) t;

  for (guint i = 0; i < 12; i++)
    references[i] = i / 8.0;
  path = save ("references.npy", 6, 2, references);
  g_object_set (sh.element, "reference-location", path, NULL);
  sh_caps (&sh, "GRAY8", 15, 8);
  t = sh_measure (&sh, in);
  for (guint c = 0; c < 6; c++)
    fail_unless (
        value_of (&t, c, DX) == c % 3 * 5 + 2 - references[2 * c] &&
        value_of (&t, c, DY) == c / 3 * 4 + 1.5 - references[2 * c + 1]);
  table_free (&t);

  /* without the file, while playing: the centres of the cells */
  g_object_set (sh.element, "reference-location", "", "map-location", "", NULL);
  t = sh_measure (&sh, in);
  fail_unless (value_of (&t, 5, DX) == 0 && value_of (&t, 5, DY) == 0);
}

/* --- errors --- */

static void
check_refused (const gchar *backend, const gchar *format, gint width,
    gint height, const gchar *properties, const gchar *words)
{
  g_auto (Sh) sh = sh_new (backend, properties);
  GstVideoInfo info = check_info (format, width, height);
  g_autoptr (GstBuffer) in = check_noise (&info, 1);

  sh_caps (&sh, format, width, height);
  sh_fails (&sh, in, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS, words);
}

CHECK_LOOP_TEST (
    test_an_impossible_grid_is_an_error_with_its_numbers, N_BACKENDS)
{
  const gchar *b = backends[__i__];

  check_refused (b, "GRAY8", 15, 8, "", "0 columns and 0 rows");
  check_refused (b, "GRAY8", 15, 8, "pitch-x=5 pitch-y=4 columns=3", "0 rows");
  check_refused (b, "GRAY8", 15, 8, "columns=3 rows=2", "Set pitch-x");
  check_refused (
      b, "GRAY8", 15, 8, "pitch-x=-5 pitch-y=4 columns=3 rows=2", "pitch-x -5");
  check_refused (b, "GRAY8", 15, 8, "pitch-x=5 pitch-y=0.99 columns=3 rows=2",
      "at least 1");
  check_refused (b, "GRAY8", 15, 8, SMALL "x0=11", "outside the 15 pixels");
  check_refused (b, "GRAY8", 15, 8, SMALL "x0=-5", "x0 -5");
  check_refused (b, "GRAY8", 15, 8, SMALL "y0=4.5", "outside the 8 rows");
  check_refused (b, "GRAY8", 15, 8, SMALL "y0=1e6", "outside the 8 rows");
  check_refused (b, "GRAY8", 15, 8, SMALL "columns=65535 rows=65535",
      "too many for the 120 pixels");
  check_refused (b, "GRAY8", 15, 8, SMALL "columns=4", "x0 0.00");
  check_refused (b, "GRAY16_LE", 1, 1, SMALL, "too many for the 1 pixels");
}

static void
check_bad_map (const gchar *backend, const gchar *property, const gchar *path,
    GQuark domain, gint code, const gchar *words)
{
  g_auto (Sh) sh = sh_new (backend, SMALL);
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = check_noise (&info, 1);

  g_object_set (sh.element, property, path, NULL);
  sh_caps (&sh, "GRAY8", 15, 8);
  sh_fails (&sh, in, domain, code, words);
}

#define FILE_ERROR GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ
#define SETTINGS_ERROR GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS

CHECK_LOOP_TEST (
    test_a_map_file_with_something_wrong_is_an_error_that_says_what, N_BACKENDS)
{
  const gchar *b = backends[__i__];
  const gdouble good[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  const gdouble nans[] = {1, 2, NAN, 4};
  const gdouble infinite[] = {INFINITY, 2, 3, 4};
  const gdouble outside[] = {1, 1, 2, 2, 15, 0, 3, 3};
  const gdouble thin[] = {1, 2, 0.5, 4};
  const gdouble negative[] = {1, 2, 3, 4, 2, 2, -1, 0};
  const gdouble wild_reference[] = {1, 2, 3, 4, -INFINITY, 2};
  const gdouble *const cells[] = {
      nans, infinite, outside, thin, negative, wild_reference};
  const guint shapes[][2] = {{1, 4}, {1, 4}, {2, 4}, {1, 4}, {1, 8}, {1, 6}};
  const gchar *const words[] = {"cells.npy\" has nan in row 0, column 2",
      "has inf in row 0, column 0",
      "Row 1 of map-location is a cell of columns [15, 18)", "sides at least 1",
      "min-flux -1", "reference (-inf, 2)"};
  g_autofree gchar *missing = check_path_of ("no-map.npy");
  guint64 dims[] = {2, 2, 2};
  gchar *path, *contents;
  gsize size;

  check_bad_map (b, "map-location", missing, FILE_ERROR, "no-map.npy");
  check_bad_map (
      b, "map-location", check_folder (), FILE_ERROR, check_folder ());
  path = save ("narrow.npy", 3, 3, good);
  check_bad_map (b, "map-location", path, FILE_ERROR, "has 3 columns");
  g_free (path);
  path = save ("wide.npy", 1, 13, good);
  check_bad_map (b, "map-location", path, FILE_ERROR, "has 13 columns");
  g_free (path);
  path = save ("empty.npy", 0, 4, good);
  check_bad_map (b, "map-location", path, FILE_ERROR, "has 0 rows");
  g_free (path);

  path = save ("short.npy", 2, 4, good);
  fail_unless (g_file_get_contents (path, &contents, &size, NULL));
  fail_unless (g_file_set_contents (path, contents, size - 1, NULL));
  check_bad_map (b, "map-location", path, FILE_ERROR, "short.npy");
  fail_unless (g_file_set_contents (path, contents, 50, NULL));
  check_bad_map (b, "map-location", path, FILE_ERROR, "short.npy");
  fail_unless (g_file_set_contents (path, "x,y,width,height\n", -1, NULL));
  check_bad_map (b, "map-location", path, FILE_ERROR, "short.npy");
  fail_unless (g_file_set_contents (path, "", 0, NULL));
  check_bad_map (b, "map-location", path, FILE_ERROR, "short.npy");
  g_free (contents);

  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F64, 1, dims, good, NULL));
  check_bad_map (b, "map-location", path, FILE_ERROR, "1 dimensions");
  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F64, 3, dims, good, NULL));
  check_bad_map (b, "map-location", path, FILE_ERROR, "3 dimensions");
  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64, 2, dims, good, NULL));
  check_bad_map (b, "map-location", path, FILE_ERROR, "complex numbers");
  g_free (path);

  for (guint i = 0; i < G_N_ELEMENTS (cells); i++) {
    path = save ("cells.npy", shapes[i][0], shapes[i][1], cells[i]);
    if (i < 2)
      check_bad_map (b, "map-location", path, FILE_ERROR, words[i]);
    else
      check_bad_map (b, "map-location", path, SETTINGS_ERROR, words[i]);
    g_free (path);
  }
}

CHECK_LOOP_TEST (test_a_reference_file_must_fit_the_cells, N_BACKENDS)
{
  const gchar *b = backends[__i__];
  gdouble values[14] = {0};
  g_autofree gchar *missing = check_path_of ("none.npy");
  gchar *path = save ("references.npy", 7, 2, values);

  check_bad_map (b, "reference-location", path, FILE_ERROR, "need [6, 2]");
  g_free (path);
  path = save ("references.npy", 2, 6, values);
  check_bad_map (b, "reference-location", path, FILE_ERROR, "need [6, 2]");
  g_free (path);
  values[5] = NAN;
  path = save ("references.npy", 6, 2, values);
  check_bad_map (b, "reference-location", path, FILE_ERROR,
      "references.npy\" has nan in row 2, column 1");
  g_free (path);
  check_bad_map (b, "reference-location", missing, FILE_ERROR, "none.npy");
}

CHECK_LOOP_TEST (
    test_a_grid_spoilt_while_playing_waits_with_one_warning, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], SMALL);
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = check_noise (&info, 1);
  Table t;

  sh_caps (&sh, "GRAY8", 15, 8);
  t = sh_measure (&sh, in);
  table_free (&t);
  sh_set (&sh, "columns", "5"); /* of 5 pixels, until the pitch comes */
  for (guint i = 0; i < 3; i++) {
    t = sh_measure (&sh, in);
    fail_unless_equals_int (t.n_rows, 6);
    table_free (&t);
  }
  check_message_says (check_message (sh.bus, GST_MESSAGE_WARNING),
      SETTINGS_ERROR, "outside the 15 pixels of a row");
  fail_unless_equals_int (
      check_count_messages (sh.bus, GST_MESSAGE_WARNING), 0);
  /* what fits counts, the columns wait */
  sh_set (&sh, "threshold-mode", "absolute");
  sh_set (&sh, "threshold", "60000");
  t = sh_measure (&sh, in);
  fail_unless_equals_int (t.n_rows, 6);
  fail_unless_equals_float (value_of (&t, 0, FLUX), 0);
  table_free (&t);
  sh_set (&sh, "pitch-x", "3");
  t = sh_measure (&sh, in);
  fail_unless_equals_int (t.n_rows, 10);
  fail_unless_equals_float (value_of (&t, 0, FLUX), 0);
  table_free (&t);
  fail_unless_equals_int (check_count_messages (sh.bus, GST_MESSAGE_ERROR), 0);
}

CHECK_LOOP_TEST (test_settings_without_effect_are_told_once, N_BACKENDS)
{
  static const struct {
    const gchar *settings, *words;
  } hints[] = {
      {"threshold=5", "threshold-mode=none does not look at it"},
      {"threshold-least=5", "only threshold-mode=relative and range"},
      {"threshold-mode=noise threshold=3", "read-noise=0"},
      {"bit-depth=12", "bit-depth is more than"},
      {"saturation=300", "no cell will be flagged as saturated"},
      {"iterations=3", "no weight to move"},
      {"tracking-reset=3", "nothing is tracked"},
      {"remove-tilt=true fields=xy", "fields=xy has none"},
  };
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = check_noise (&info, 1);

  for (guint i = 0; i < G_N_ELEMENTS (hints); i++) {
    g_autofree gchar *settings =
        g_strconcat (SMALL " ", hints[i].settings, NULL);
    g_auto (Sh) sh = sh_new (backends[__i__], settings);

    sh_caps (&sh, "GRAY8", 15, 8);
    for (guint k = 0; k < 3; k++) {
      gst_buffer_unref (sh_frame (&sh, in));
      sh_set (&sh, "min-flux", k ? "1" : "2");
    }
    check_message_says (check_message (sh.bus, GST_MESSAGE_WARNING),
        SETTINGS_ERROR, hints[i].words);
    fail_unless_equals_int (
        check_count_messages (sh.bus, GST_MESSAGE_WARNING), 0);
  }
}

CHECK_LOOP_TEST (test_caps_change_in_mid_stream, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], SMALL);
  static const struct {
    const gchar *format;
    gint width, height;
  } streams[] = {{"GRAY8", 15, 8}, {"GRAY16_LE", 15, 8}, {"GRAY16_LE", 641, 9},
      {"GRAY8", 33, 64}};

  for (guint i = 0; i < 12; i++) {
    Grid g = {streams[i % 4].format, streams[i % 4].width,
        streams[i % 4].height, 0, 0, 5, 4, 3, 2, "", -1, 0, 0, 0, 1, 0};
    GstVideoInfo info = check_info (g.format, g.width, g.height);
    g_autoptr (GstBuffer) in = check_noise (&info, i);
    g_auto (Table) t;

    g.saturation = i % 4 % 3 ? 65535 : 255;
    sh_caps (&sh, g.format, g.width, g.height);
    t = sh_measure (&sh, in);
    check_grid (&t, &g, in);
    fail_unless_equals_int (t.header != NULL, i == 0);
  }
}

/* --- events and states --- */

static guint
count_events (GstHarness *h, GstEventType type)
{
  GstEvent *event;
  guint n = 0;

  while ((event = gst_harness_try_pull_event (h))) {
    n += GST_EVENT_TYPE (event) == type;
    gst_event_unref (event);
  }
  return n;
}

CHECK_LOOP_TEST (test_eos_reaches_both_pads_with_and_without_frames, N_BACKENDS)
{
  GstVideoInfo info = check_info ("GRAY8", 15, 8);

  for (guint n = 0; n < 2; n++) {
    g_auto (Sh) sh = sh_new (backends[__i__], SMALL);

    sh_caps (&sh, "GRAY8", 15, 8);
    if (n) {
      check_push (sh.h, check_noise (&info, 1), GST_FLOW_OK);
      gst_buffer_unref (check_pull (sh.h));
      gst_buffer_unref (check_pull (sh.results));
    }
    fail_unless (gst_harness_push_event (sh.h, gst_event_new_eos ()));
    fail_unless_equals_int (count_events (sh.h, GST_EVENT_EOS), 1);
    fail_unless_equals_int (count_events (sh.results, GST_EVENT_EOS), 1);
  }
}

CHECK_LOOP_TEST (test_flushes_reach_the_results_and_numbers_go_on, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], SMALL);
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  GstSegment segment;
  Table t;

  sh_caps (&sh, "GRAY8", 15, 8);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  for (guint i = 0; i < 3; i++) {
    GstBuffer *in = check_noise (&info, i);

    t = sh_measure (&sh, in);
    fail_unless (value_of (&t, 0, FRAME) == i);
    table_free (&t);
    gst_buffer_unref (in);
    count_events (sh.results, GST_EVENT_EOS);
    gst_harness_push_event (sh.h, gst_event_new_flush_start ());
    gst_harness_push_event (sh.h, gst_event_new_flush_stop (TRUE));
    gst_harness_push_event (sh.h, gst_event_new_segment (&segment));
    fail_unless_equals_int (count_events (sh.results, GST_EVENT_FLUSH_STOP), 1);
  }
}

CHECK_LOOP_TEST (test_a_segment_of_bytes_is_accepted, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], SMALL);
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  g_autoptr (GstBuffer) in = check_noise (&info, 0);
  GstSegment segment;
  g_auto (Table) t;

  sh_caps (&sh, "GRAY8", 15, 8);
  gst_segment_init (&segment, GST_FORMAT_BYTES);
  gst_harness_push_event (sh.h, gst_event_new_segment (&segment));
  t = sh_measure (&sh, in);
}

CHECK_LOOP_TEST (test_200_starts_and_stops, N_BACKENDS)
{
  GstElement *element = element_new (backends[__i__], SMALL);
  GstVideoInfo info = check_info ("GRAY8", 15, 8);

  for (guint i = 0; i < 200; i++) {
    GstHarness *h = gst_harness_new_with_element (element, "sink", "src");
    GstHarness *results =
        i % 2 ? gst_harness_new_with_element (element, NULL, "results") : NULL;

    gst_harness_set_src_caps_str (
        h, "video/x-raw,format=GRAY8,width=15,height=8,framerate=25/1");
    for (guint n = 0; n < i % 3; n++) { /* now and then not one frame comes */
      GstBuffer *out;
      guint64 number;

      check_push (h, check_noise (&info, 1), GST_FLOW_OK);
      out = check_pull (h);
      fail_unless (gst_structure_get (gst_imaging_results_get (out, "sh"),
          "frame", G_TYPE_UINT64, &number, NULL));
      fail_unless_equals_uint64 (number, n);
      gst_buffer_unref (out);
    }
    gst_element_set_state (element, GST_STATE_NULL);
    if (results)
      gst_harness_teardown (results);
    gst_harness_teardown (h);
  }
  gst_object_unref (element);
}

CHECK_LOOP_TEST (test_numbers_have_dots_in_a_locale_with_commas, N_BACKENDS)
{
  static const gchar *const names[] = {"de_DE.UTF-8", "de_DE.utf8"};
  const gchar *set = NULL;
  Sh sh;
  GstVideoInfo info = check_info ("GRAY8", 15, 8);
  GstBuffer *in, *out, *text;
  gchar bytes[200];

  for (guint i = 0; i < G_N_ELEMENTS (names) && !set; i++)
    set = setlocale (LC_ALL, names[i]);
  if (!set)
    check_skip ("there is no locale de_DE.UTF-8; tools/setup tests makes it");
  sh = sh_new (backends[__i__], SMALL);
  in = flat_frame (&info, 3);
  sh_caps (&sh, "GRAY8", 15, 8);
  out = sh_frame (&sh, in);
  text = check_pull (sh.results);
  gst_buffer_extract (text, 0, bytes, sizeof (bytes));
  fail_unless (g_strrstr_len (bytes, sizeof (bytes),
                   "\n0,,0,0,0,2,1.5,0,0,60,60,3,0.0333333") != NULL,
      "%.200s", bytes);
  setlocale (LC_ALL, "C");
  gst_buffer_unref (text);
  gst_buffer_unref (out);
  gst_buffer_unref (in);
  sh_free (&sh);
}

CHECK_MOCK_TEST (test_backend_cuda_without_a_device_is_an_error_that_says_so)
{
  GstElement *element = element_new ("cuda", SMALL);
  GstBus *bus = gst_bus_new ();

  g_setenv ("IMK_MOCK_DEVICES", "0", TRUE);
  gst_element_set_bus (element, bus);
  fail_unless_equals_int (gst_element_set_state (element, GST_STATE_PAUSED),
      GST_STATE_CHANGE_FAILURE);
  check_error (bus, RESOURCE, NOT_FOUND, "No CUDA device is visible");
  gst_element_set_state (element, GST_STATE_NULL);
  gst_element_set_bus (element, NULL);
  gst_object_unref (bus);
  gst_object_unref (element);
  g_unsetenv ("IMK_MOCK_DEVICES");
}

CHECK_TEST (test_every_property_reads_back_and_may_change_while_playing)
{
  static const struct {
    const gchar *name, *value;
  } properties[] = {{"x0", "1.5"}, {"y0", "-2.25"}, {"pitch-x", "29.653"},
      {"pitch-y", "29.5"}, {"columns", "16"}, {"rows", "17"},
      {"map-location", "a.npy"}, {"reference-location", "b.npy"},
      {"fields", "slopes"}, {"bit-depth", "12"}, {"saturation", "4000"},
      {"threshold", "900.5"}, {"threshold-mode", "absolute"},
      {"threshold-action", "keep"}, {"min-flux", "5000"},
      {"min-illumination", "0.25"}, {"invalid-policy", "nan"}, {"gain", "0.5"},
      {"read-noise", "3.5"}, {"dark-location", "d.npy"},
      {"flat-location", "f.npy"}, {"bad-pixels-location", "p.npy"},
      {"lut-location", "l.npy"}, {"margin", "2"}, {"threshold-least", "12.5"},
      {"brightest", "25"}, {"weighting", "tracking"}, {"sigma", "2.5"},
      {"iterations", "4"}, {"power", "1.5"}, {"estimator", "quad"},
      {"quad-gain", "0.5"}, {"window", "tracking"}, {"tracking-gain", "0.25"},
      {"tracking-reset", "7"}, {"remove-tilt", "true"},
      {"pupils-location", "p4.npy"}, {"normalisation", "global"},
      {"template-location", "t.npy"}, {"template-source", "frame"},
      {"template-cell", "3"}, {"template-margin", "2"},
      {"correlation", "covariance"}, {"peak-fit", "parabola"},
      {"search-range", "7"}, {"min-correlation", "0.5"}, {"grid-rule", "paper"},
      {"aperture", "9.6"}, {"lenslet-pitch", "600"}, {"pixel-size", "7.4"},
      {"focal-length", "40.5"}, {"slope-unit", "rad"}, {"lattice", "hexagonal"},
      {"find-grid-location", "g.npy"}};
  g_autoptr (GstElement) element =
      gst_element_factory_make ("shcentroid", NULL);
  guint n_all, n_own = 0;
  GParamSpec **all =
      g_object_class_list_properties (G_OBJECT_GET_CLASS (element), &n_all);

  for (guint i = 0; i < n_all; i++)
    n_own += all[i]->owner_type == G_OBJECT_TYPE (element);
  g_free (all);
  /* every one, and what all elements with settings have */
  fail_unless_equals_int (n_own, G_N_ELEMENTS (properties) + 3);
  for (guint i = 0; i < G_N_ELEMENTS (properties); i++) {
    const gchar *name = properties[i].name;
    GParamSpec *spec =
        g_object_class_find_property (G_OBJECT_GET_CLASS (element), name);
    GValue value = G_VALUE_INIT;
    gchar *text;

    fail_unless (spec && spec->flags & GST_PARAM_MUTABLE_PLAYING, "%s", name);
    fail_unless (!!(spec->flags & GST_PARAM_CONTROLLABLE) ==
                     !g_str_has_suffix (name, "-location"),
        "%s", name);
    gst_util_set_object_arg (G_OBJECT (element), name, properties[i].value);
    g_value_init (&value, spec->value_type);
    g_object_get_property (G_OBJECT (element), name, &value);
    text = gst_value_serialize (&value);
    if (G_VALUE_HOLDS_DOUBLE (&value))
      fail_unless (g_value_get_double (&value) ==
                       g_ascii_strtod (properties[i].value, NULL),
          "%s is %s", name, text);
    else
      fail_unless (
          g_str_equal (text, properties[i].value), "%s is %s", name, text);
    g_free (text);
    g_value_unset (&value);
  }
}
