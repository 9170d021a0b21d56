/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of docs/explanation/memory.md: every element with every kind of
 * memory at both pads in every format that its templates have, and how often
 * each frame was copied. A new element is a new line in elements[]; then
 *
 *     IMAGING_UPDATE_DOCS=1 build/tests/check/check-paths
 *
 * under `meson devenv` writes the table that is tested from then on. */
#include "nvmm-source.h"
#include "paths-table.h"

#include <glib/gstdio.h>
#include <string.h>

#define WIDTH 66 /* even: chroma of every format covers whole pixels */
#define HEIGHT 42
#define N_FRAMES 3

/* @out: the pad and how many frames of it N_FRAMES become */
static const struct {
  const gchar *name, *options, *pad;
  guint n_out;
  gboolean gives_what_it_takes; /* caps of that pad but for the memory */
} elements[] = {
    {"lapsharpen", "amount=0.75", "src", N_FRAMES, TRUE},
    {"shcentroid", "columns=4 rows=3 pitch-x=15 pitch-y=12", "src", N_FRAMES,
        TRUE},
    {"octbscan", "scale=1", "src", N_FRAMES, FALSE},
    {"photostereo", "robust=none", "normal", 1, FALSE},
};

static const gchar *const backends[] = {"cpu", "cuda"};

/* What frames lie in; @feature as caps have it. */
typedef enum { SYSTEM, PINNED, DEVICE, CUDA, NVMM, N_KINDS } Kind;

static const struct {
  const gchar *name, *feature;
} kinds[N_KINDS] = {
    [SYSTEM] = {"system", NULL},
    [PINNED] = {"ours, pinned", NULL},
    [DEVICE] = {"ours, device", NULL},
    [CUDA] = {"CUDAMemory", "memory:CUDAMemory"},
    [NVMM] = {"NVMM", "memory:NVMM"},
};

/* What downstream asks for: system memory is what anyone can map. */
static const Kind outputs[] = {SYSTEM, CUDA, NVMM};

/* Of the frames that go in: who gave a frame counts what is copied of it. */
static GstImagingStats *given;

/* --- frames --------------------------------------------------------------- */

static gchar *
caps_of (Kind kind, const gchar *format)
{
  return g_strdup_printf (
      "video/x-raw%s%s%s,format=%s,width=%d,height=%d,framerate=25/1",
      kinds[kind].feature ? "(" : "",
      kinds[kind].feature ? kinds[kind].feature : "",
      kinds[kind].feature ? ")" : "", format, WIDTH, HEIGHT);
}

static GstBuffer *
frame_in (Kind kind, const GstVideoInfo *info, guint seed)
{
  switch (kind) {
  case SYSTEM:
    return check_noise (info, seed);
  case NVMM:
    return check_nvmm_noise (info, seed, NVBUF_MEM_DEFAULT);
  default:
    return check_ours (
        kind == PINNED ? GST_IMAGING_MEMORY_PINNED : GST_IMAGING_MEMORY_DEVICE,
        given, check_noise (info, seed));
  }
}

/* --- one way through an element ------------------------------------------- */

/* Lights for photostereo, which no other element has. */
static gchar *lights;

static void
set_up (void)
{
  gint file = g_file_open_tmp ("lights-XXXXXX.lp", &lights, NULL);

  fail_unless (file >= 0);
  g_close (file, NULL);
  fail_unless (g_file_set_contents (
      lights, "3\na 0.5 0 0.8\nb -0.3 0.4 0.8\nc -0.3 -0.4 0.8\n", -1, NULL));
}

static void
tear_down (void)
{
  g_unlink (lights);
  g_clear_pointer (&lights, g_free);
}

static GstElement *
element_new (guint e, const gchar *backend)
{
  g_autofree gchar *line = g_strdup_printf (
      "%s backend=%s %s", elements[e].name, backend, elements[e].options);
  GstElement *element = gst_parse_launch (line, NULL);

  if (g_object_class_find_property (
          G_OBJECT_GET_CLASS (element), "lights-location"))
    g_object_set (element, "lights-location", lights, NULL);
  return element;
}

/* What downstream takes: what comes in, or anything where that is something
 * else. */
static GstCaps *
out_caps_of (guint e, Kind out, const gchar *format)
{
  g_autofree gchar *caps = caps_of (out, format);
  GstCaps *all = elements[e].gives_what_it_takes ? gst_caps_from_string (caps)
                                                 : gst_caps_new_any ();

  return all;
}

/* Whether the output of an element that gives something else than it takes can
 * lie in @out. */
static gboolean
gives (guint e, const gchar *backend, Kind out)
{
  g_autoptr (GstElementFactory) factory =
      gst_element_factory_find (elements[e].name);
  const GList *l = gst_element_factory_get_static_pad_templates (factory);
  gboolean found = out == SYSTEM;

#ifndef HAVE_GST_CUDA
  if (out == CUDA) /* templates have it all the same */
    l = NULL;
#endif
  for (; l && !found && strcmp (backend, "cuda") == 0; l = l->next) {
    GstStaticPadTemplate *t = l->data;

    found = strcmp (t->name_template, elements[e].pad) == 0 &&
            strstr (t->static_caps.string, kinds[out].feature);
  }
  return found;
}

/* Whether all pads agree on @in and @out. */
static gboolean
negotiates (
    guint e, const gchar *backend, Kind in, Kind out, const gchar *format)
{
  g_autoptr (GstElement) element = element_new (e, backend);
  g_autoptr (GstPad) sink = gst_element_get_static_pad (element, "sink");
  g_autoptr (CheckHarness) h =
      gst_harness_new_with_element (element, NULL, elements[e].pad);
  g_autofree gchar *in_caps = caps_of (in, format);
  g_autoptr (GstCaps) wanted = gst_caps_from_string (in_caps), taken = NULL;
  gboolean agreed;

  gst_harness_set_sink_caps (h, out_caps_of (e, out, format));
  taken = gst_pad_query_caps (sink, NULL);
  agreed = gst_caps_can_intersect (taken, wanted) &&
           (elements[e].gives_what_it_takes || gives (e, backend, out));
  return agreed;
}

static void
count_copies (GstElement *element, guint n_out, gsize in_size, gsize out_size,
    PathsCopies *c)
{
  const guint64 in = N_FRAMES * in_size;

  c->copied = paths_times (given, element, "bytes-copied", in);
  c->uploaded = paths_times (given, element, "bytes-uploaded", in);
  c->downloaded =
      paths_times (given, NULL, "bytes-downloaded", in) +
      paths_times (NULL, element, "bytes-downloaded", n_out * out_size);
}

static GstBuffer *
read_pixels (GstBuffer *frame, Kind out, const GstVideoInfo *info)
{
  GstBuffer *pixels;
  GstMapInfo map;

  if (out == NVMM)
    return check_nvmm_read (frame, info);
  fail_unless (gst_buffer_map (frame, &map, GST_MAP_READ));
  pixels = gst_buffer_new_memdup (map.data, map.size);
  gst_buffer_unmap (frame, &map);
  return pixels;
}

static GstVideoInfo
info_of (GstPad *pad)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (pad);
  GstVideoInfo info;

  fail_unless (gst_video_info_from_caps (&info, caps));
  return info;
}

/* Frames through the element; the last must have the pixels that the CPU gives
 * (@expected, NULL when this is the CPU), which is returned. */
static GstBuffer *
run (guint e, const gchar *backend, Kind in, Kind out, const gchar *format,
    GstBuffer *expected, PathsCopies *copies)
{
  GstVideoInfo info = check_info (format, WIDTH, HEIGHT), out_info;
  GstElement *element = element_new (e, backend);
  GstHarness *h =
      gst_harness_new_with_element (element, "sink", elements[e].pad);
  gchar *in_caps = caps_of (in, format);
  GstBuffer *pixels = NULL;

  given = gst_imaging_stats_new ();
  gst_harness_set_sink_caps (h, out_caps_of (e, out, format));
  gst_harness_set_src_caps_str (h, in_caps);
  for (guint seed = 0; seed < N_FRAMES; seed++) {
    GstBuffer *frame;

    check_push (h, frame_in (in, &info, seed), GST_FLOW_OK);
    if (seed + elements[e].n_out < N_FRAMES)
      continue;
    frame = check_pull (h);
    gst_clear_buffer (&pixels);
    pixels = read_pixels (frame, out, &info);
    gst_buffer_unref (frame);
  }
  out_info = info_of (h->sinkpad);
  if (expected)
    check_same_pixels (pixels, expected, &out_info);
  count_copies (element, elements[e].n_out, info.size, out_info.size, copies);
  gst_harness_teardown (h);
  gst_object_unref (element);
  gst_imaging_stats_unref (given);
  g_free (in_caps);
  return pixels;
}

/* --- rows ----------------------------------------------------------------- */

static void
add_formats (GString *row, const GPtrArray *found, guint n_all)
{
  if (found->len > 4) {
    g_string_append_printf (row, " %u of %u |", found->len, n_all);
    return;
  }
  for (guint i = 0; i < found->len; i++)
    g_string_append_printf (
        row, "%s %s", i ? "," : "", (gchar *) found->pdata[i]);
  g_string_append (row, " |");
}

/* All formats of one way, on a card and on a GPU that shares its memory. */
static void
add_row (GString *table, guint e, const gchar *backend, Kind in, Kind out)
{
  GPtrArray *formats = check_formats (elements[e].name, kinds[in].feature);
  GPtrArray *found = g_ptr_array_new ();
  gboolean on_cuda = strcmp (backend, "cuda") == 0;
  gboolean runs = in != CUDA && out != CUDA; /* libgstcuda takes no mock */
  PathsCopies copies[2] = {0};

  for (guint i = 0; i < formats->len; i++) {
    const gchar *format = formats->pdata[i];
    GstBuffer *expected, *pixels;
    PathsCopies c;

    if (!negotiates (e, backend, in, out, format))
      continue;
    g_ptr_array_add (found, (gpointer) format);
    if (!runs)
      continue;
    if (!on_cuda) {
      gst_buffer_unref (run (e, backend, in, out, format, NULL, &c));
      copies[0] = found->len == 1 ? c : copies[0];
      paths_check_same (&c, &copies[0], format);
      continue;
    }
    expected = NULL;
    if (negotiates (e, "cpu", SYSTEM, SYSTEM, format))
      expected = run (e, "cpu", SYSTEM, SYSTEM, format, NULL, &c);
    for (guint integrated = 0; integrated < 2; integrated++) {
      if (integrated)
        g_setenv ("IMK_MOCK_INTEGRATED", "1", TRUE);
      pixels = run (e, backend, in, out, format, expected, &c);
      copies[integrated] = found->len == 1 ? c : copies[integrated];
      paths_check_same (&c, &copies[integrated], format);
      gst_buffer_unref (pixels);
      g_unsetenv ("IMK_MOCK_INTEGRATED");
      fail_unless_equals_int (check_n_live (), 0);
    }
    gst_clear_buffer (&expected);
  }
  if (found->len) {
    g_string_append_printf (table, "| %s | %s | %s | %s |", elements[e].name,
        backend, kinds[in].name, kinds[out].name);
    add_formats (table, found, formats->len);
    if (runs)
      paths_add_copies (table, copies, on_cuda);
    else
      g_string_append_printf (
          table, " see check-%s | |", in == NVMM ? "nvmm" : "cuda");
    g_string_append (table, "\n");
  }
  g_ptr_array_unref (found);
  g_ptr_array_unref (formats);
}

static GString *
make_table (void)
{
  GString *table = g_string_new (
      "| element | backend | in | out | formats | copies on a card | copies "
      "on an integrated GPU |\n|---|---|---|---|---|---|---|\n");

  for (guint e = 0; e < G_N_ELEMENTS (elements); e++)
    for (guint b = 0; b < G_N_ELEMENTS (backends); b++)
      for (Kind in = 0; in < N_KINDS; in++)
        for (guint o = 0; o < G_N_ELEMENTS (outputs); o++)
          add_row (table, e, backends[b], in, outputs[o]);
  return table;
}

/* --- the page ------------------------------------------------------------- */

#ifdef HAVE_GST_CUDA
#define NOT_BUILT NULL
#else
#define NOT_BUILT "| CUDAMemory |"
#endif

CHECK_CASE ("table", set_up, tear_down)

CHECK_MOCK_TEST (test_the_page_says_what_each_way_costs)
{
  g_autoptr (GString) table = make_table ();

  check_table (DOCS_FOLDER "/explanation/memory.md", "tests/check/paths.c",
      table->str, NOT_BUILT);
}
