/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The second table of docs/explanation/memory.md: elements that take SAR images
 * by lines, with every kind of memory in every format, and how often each line
 * was copied. As for paths.c,
 *
 *     IMAGING_UPDATE_DOCS=1 build/tests/check/check-paths-lines
 *
 * under `meson devenv` writes the table that is tested from then on. */
#include "paths-table.h"

#include <glib/gstdio.h>
#include <string.h>

#define WIDTH 101
#define HEIGHT 83
#define N_SIDES 2

typedef enum { SYSTEM, PINNED, DEVICE, N_KINDS } Kind;

static const gchar *const kinds[N_KINDS] = {
    [SYSTEM] = "system",
    [PINNED] = "ours, pinned",
    [DEVICE] = "ours, device",
};

static const gchar *const formats[] = {"ci16", "cf32", "f32"};

/* @pipeline: %s is the backend; images come from a (and b), "out" has all */
static const struct {
  const gchar *name, *pipeline;
  guint n_images, n_formats;
  gboolean has_cuda, keeps_a_part;
} elements[] = {
    {"insarxcorr",
        "appsrc name=a ! e.reference appsrc name=b ! e.secondary insarxcorr "
        "name=e backend=%s nx=4 ny=6 grid=even xsearch=8 ysearch=4 ! text/csv",
        2, 3, TRUE, TRUE},
    {"slcresample",
        "appsrc name=a ! slcresample name=e backend=%s shift-r=0.25 shift-a=1",
        1, 2, FALSE, FALSE},
    {"insarform",
        "appsrc name=a ! e.reference appsrc name=b ! e.secondary insarform "
        "name=e backend=%s e.interferogram ! queue",
        2, 2, FALSE, FALSE},
};

/* Of the lines that go in: who gave them counts what is copied of them. */
static GstImagingStats *given;

static gsize
line_size (const gchar *format)
{
  return WIDTH * (strcmp (format, "cf32") == 0 ? 8 : 4);
}

static GstCaps *
caps_of (const gchar *format)
{
  return gst_caps_new_simple ("application/x-slc", "format", G_TYPE_STRING,
      format, "width", G_TYPE_INT, WIDTH, "height", G_TYPE_INT, HEIGHT, NULL);
}

/* --- lines ---------------------------------------------------------------- */

/* Noise, the same for both images: numbers from -1000 to 1000. */
static gpointer
image_of (const gchar *format)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);
  gsize n = line_size (format) * HEIGHT;
  gfloat *floats = g_malloc (n);
  gint16 *ints = (gint16 *) floats;

  if (strcmp (format, "ci16") == 0)
    for (gsize i = 0; i < n / sizeof (*ints); i++)
      ints[i] = (gint16) g_rand_int_range (rand, -1000, 1000);
  else
    for (gsize i = 0; i < n / sizeof (*floats); i++)
      floats[i] = (gfloat) g_rand_int_range (rand, -1000, 1000);
  return floats;
}

static GstBuffer *
lines_in (Kind kind, gconstpointer data, gsize size)
{
  GstBuffer *plain = gst_buffer_new_memdup (data, size);

  if (kind == SYSTEM)
    return plain;
  return check_ours (
      kind == PINNED ? GST_IMAGING_MEMORY_PINNED : GST_IMAGING_MEMORY_DEVICE,
      given, plain);
}

static void
feed (GstElement *pipeline, const gchar *name, Kind kind, const gchar *format)
{
  g_autoptr (GstElement) source =
      gst_bin_get_by_name (GST_BIN (pipeline), name);
  g_autofree guint8 *image = image_of (format);
  GstCaps *caps = caps_of (format);
  GstBuffer *buffer;
  GstFlowReturn flow;

  g_object_set (source, "caps", caps, "max-bytes", (guint64) 0, NULL);
  gst_caps_unref (caps);
  /* in one buffer: insarxcorr does not look at one that it does not need */
  buffer = lines_in (kind, image, line_size (format) * HEIGHT);
  g_signal_emit_by_name (source, "push-buffer", buffer, &flow);
  fail_unless_equals_int (flow, GST_FLOW_OK);
  gst_buffer_unref (buffer);
  g_signal_emit_by_name (source, "end-of-stream", &flow);
}

/* --- one way through an element ------------------------------------------- */

/* @kept: bytes that the element keeps of the images, from the CPU, which copies
 * them once. Returns: all that comes out */
static GString *
run (guint e, const gchar *backend, Kind kind, const gchar *format,
    guint64 *kept, PathsCopies *copies)
{
  static const gchar *const active[N_KINDS] = {"system", "pinned", "device"};
  g_autofree gchar *start = g_strdup_printf (elements[e].pipeline, backend);
  g_autofree gchar *line =
      g_strdup_printf ("%s ! appsink name=out sync=false", start);
  const guint64 total = elements[e].n_images * line_size (format) * HEIGHT;
  g_autoptr (CheckPipeline) pipeline = gst_parse_launch (line, NULL);
  g_autoptr (GstElement) element =
      gst_bin_get_by_name (GST_BIN (pipeline), "e");
  g_autofree gchar *memory = NULL;
  GString *out = g_string_new (NULL);

  given = gst_imaging_stats_new ();
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < elements[e].n_images; i++)
    feed (pipeline, i ? "b" : "a", kind, format);
  check_collect (pipeline, "out", out);
  fail_unless (out->len > 0, "%s: nothing came out", line);
  g_object_get (element, "active-memory", &memory, NULL);
  if (!g_getenv ("IMK_MOCK_INTEGRATED")) /* which has one kind of ours */
    fail_unless_equals_string (memory, active[kind]);
  if (!elements[e].keeps_a_part)
    *kept = total;
  else if (*kept == 0)
    *kept = paths_times (given, element, "bytes-copied", 1);
  fail_unless (*kept > total / 4 && *kept <= total);
  copies->copied = paths_times (given, element, "bytes-copied", *kept);
  copies->uploaded = paths_times (given, element, "bytes-uploaded", *kept);
  copies->downloaded = paths_times (given, element, "bytes-downloaded", total);
  gst_imaging_stats_unref (given);
  return out;
}

/* --- rows ----------------------------------------------------------------- */

/* All formats, on a card and on a GPU that shares its memory. */
static void
add_row (GString *table, guint e, const gchar *backend, Kind kind)
{
  gboolean on_cuda = strcmp (backend, "cuda") == 0;
  PathsCopies copies[2], c;

  g_string_append_printf (
      table, "| %s | %s | %s |", elements[e].name, backend, kinds[kind]);
  for (guint f = 0; f < elements[e].n_formats; f++) {
    guint64 kept = 0;
    g_autoptr (GString) expected =
        run (e, "cpu", SYSTEM, formats[f], &kept, &c);

    g_string_append_printf (table, "%s %s", f ? "," : "", formats[f]);
    for (guint integrated = 0; integrated < (on_cuda ? 2 : 1); integrated++) {
      GString *found;

      if (integrated)
        g_setenv ("IMK_MOCK_INTEGRATED", "1", TRUE);
      found = run (e, backend, kind, formats[f], &kept, &c);
      g_unsetenv ("IMK_MOCK_INTEGRATED");
      fail_unless (g_string_equal (found, expected),
          "%s of %s on %s gives something else", elements[e].name, formats[f],
          backend);
      if (f == 0)
        copies[integrated] = c;
      paths_check_same (&c, &copies[integrated], formats[f]);
      g_string_free (found, TRUE);
      fail_unless_equals_int (check_n_live (), 0);
    }
  }
  g_string_append (table, " |");
  paths_add_copies (table, copies, on_cuda);
  g_string_append (table, "\n");
}

/* --- slcsrc --------------------------------------------------------------- */

static void
look (GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer expected)
{
  fail_unless_equals_string (
      gst_imaging_buffer_memory_name (buffer), (const gchar *) expected);
}

/* A file into memory that nobody or downstream offers. */
static void
read_lines (
    const gchar *path, Kind kind, const gchar *format, PathsCopies *copies)
{
  g_autofree gchar *line = g_strdup_printf (
      "slcsrc location=\"%s\" width=%d format=%s ! fakesink name=sink "
      "signal-handoffs=true sync=false",
      path, WIDTH, format);
  g_autoptr (CheckPipeline) pipeline = gst_parse_launch (line, NULL);
  g_autoptr (GstElement) sink =
      gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  g_autoptr (GstPad) pad = gst_element_get_static_pad (sink, "sink");
  g_autoptr (GstImagingContext) context = check_context (0);
  g_autoptr (GstAllocator) allocator = NULL;

  given = gst_imaging_stats_new ();
  allocator =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_PINNED, given);
  g_signal_connect (sink, "handoff", G_CALLBACK (look),
      (gpointer) (kind == PINNED ? "pinned" : "system"));
  if (kind == PINNED)
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM,
        check_offer_allocator, allocator, NULL);
  check_play (pipeline);
  copies->copied = paths_times (given, NULL, "bytes-copied", 1);
  copies->uploaded = paths_times (given, NULL, "bytes-uploaded", 1);
  copies->downloaded = paths_times (given, NULL, "bytes-downloaded", 1);
  gst_imaging_stats_unref (given);
}

static void
add_source_rows (GString *table)
{
  for (Kind kind = SYSTEM; kind <= PINNED; kind++) {
    g_string_append (table, "| slcsrc | cpu | a file |");
    for (guint f = 0; f < G_N_ELEMENTS (formats); f++) {
      g_autofree gpointer image = image_of (formats[f]);
      g_autofree gchar *path = NULL;
      gint file = g_file_open_tmp ("lines-XXXXXX.slc", &path, NULL);
      PathsCopies c, none = {0};

      fail_unless (file >= 0 && g_close (file, NULL));
      fail_unless (g_file_set_contents (
          path, image, (gssize) (line_size (formats[f]) * HEIGHT), NULL));
      read_lines (path, kind, formats[f], &c);
      g_unlink (path);
      fail_unless (memcmp (&c, &none, sizeof (c)) == 0);
      g_string_append_printf (table, "%s %s", f ? "," : "", formats[f]);
    }
    g_string_append_printf (table, " | 0 + 0 + 0, into %s | |\n", kinds[kind]);
  }
}

/* --- the page ------------------------------------------------------------- */

static GString *
make_table (void)
{
  GString *table = g_string_new (
      "| element | backend | lines in | formats | copies on a card | copies on "
      "an integrated GPU |\n|---|---|---|---|---|---|\n");

  add_source_rows (table);
  for (guint e = 0; e < G_N_ELEMENTS (elements); e++)
    for (guint cuda = 0; cuda <= (guint) elements[e].has_cuda; cuda++)
      for (Kind kind = 0; kind < N_KINDS; kind++)
        add_row (table, e, cuda ? "cuda" : "cpu", kind);
  return table;
}

CHECK_MOCK_TEST (test_the_page_says_what_each_way_costs)
{
  g_autoptr (GString) table = make_table ();

  check_table (DOCS_FOLDER "/explanation/memory.md",
      "tests/check/paths-lines.c", table->str, NULL);
}
