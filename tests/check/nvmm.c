/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* memory:NVMM on a mock of libnvbufsurface: every kind of surface, into and out
 * of lapsharpen, shcentroid and photostereo, and pipelines as they are written
 * on a Jetson. */
#include "nvmm-source.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "gstimagingresults.h"
#include "core/failures.h"

#define WIDTH 67 /* odd: no row is as long as its pitch */
#define HEIGHT 41

/* What a surface may lie in, and how the element calls it. */
static const struct {
  NvBufSurfaceMemType type;
  const gchar *mock; /* IMK_MOCK_NVMM: which kind of SURFACE_ARRAY */
  const gchar *name;
} kinds[] = {
    {NVBUF_MEM_CUDA_DEVICE, "device", "NVMM"},
    {NVBUF_MEM_CUDA_PINNED, "pinned", "NVMM"},
    {NVBUF_MEM_CUDA_UNIFIED, "device", "NVMM"},
    {NVBUF_MEM_DEFAULT, "device", "NVMM"},
    {NVBUF_MEM_SURFACE_ARRAY, "pitch", "NVMM"},
    {NVBUF_MEM_SURFACE_ARRAY, "array", "NVMM-array"},
};

/* Pictures for normals are the first three. */
static const gchar *const formats[] = {
    "GRAY8", "NV12", "RGBA", "P010_10LE", "NV16"};
enum { N_PICTURE_FORMATS = 3 };

static void
set_up_kind (guint i)
{
  g_setenv ("IMK_MOCK_NVMM", kinds[i].mock, TRUE);
}

static void
tear_down (void)
{
  g_unsetenv ("IMK_MOCK_NVMM");
  g_unsetenv ("IMK_MOCK_NVMM_FAIL");
  fail_unless_equals_int (imk_mock_surface_n_live (), 0);
  fail_unless_equals_int (check_n_live (), 0);
}

/* The kinds of a Jetson need the mock of the driver. */
static guint
n_kinds (void)
{
  static gboolean told;

  if (check_is_mock ())
    return G_N_ELEMENTS (kinds);
  if (!told)
    g_printerr ("skipped: surfaces with EGL images: they are Jetson's\n");
  told = TRUE;
  return 4;
}

/* @in and @out: "NVMM" or "system" */
static GstHarness *
harness_new (const gchar *line, const gchar *in, const gchar *out,
    const GstVideoInfo *info)
{
  const gchar *pads[] = {in, out};
  GstHarness *h = gst_harness_new_parse (line);

  for (guint i = 0; i < 2; i++) {
    gboolean nvmm = strcmp (pads[i], "NVMM") == 0;
    g_autofree gchar *caps = (nvmm ? check_nvmm_caps : check_caps_string) (
        info->finfo->name, info->width, info->height);

    if (i == 0)
      gst_harness_set_src_caps_str (h, caps);
    else
      gst_harness_set_sink_caps_str (h, caps);
  }
  return h;
}

static GstElement *
element_of (GstHarness *h)
{
  GstIterator *i = gst_bin_iterate_elements (GST_BIN (h->element));
  g_auto (GValue) value = G_VALUE_INIT;
  GstElement *element;

  fail_unless_equals_int (gst_iterator_next (i, &value), GST_ITERATOR_OK);
  element = g_value_get_object (&value); /* the bin keeps it */
  gst_iterator_free (i);
  return element;
}

static void
check_memory_name (GstHarness *h, const gchar *name)
{
  g_autofree gchar *memory = NULL, *backend = NULL;

  g_object_get (element_of (h), "active-memory", &memory, "active-backend",
      &backend, NULL);
  fail_unless_equals_string (memory, name);
  fail_unless_equals_string (backend, "cuda");
}

static void
check_no_copies (GstHarness *h)
{
  const gchar *names[] = {"bytes-uploaded", "bytes-downloaded", "bytes-copied"};

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    fail_unless_equals_uint64 (check_stat (element_of (h), names[i]), 0);
}

/* Noise through lapsharpen on the CPU: what every surface must give. */
static GstBuffer *
sharpened_on_cpu (const GstVideoInfo *info, guint seed)
{
  g_autoptr (CheckHarness) h = harness_new (
      "lapsharpen backend=cpu amount=0.75", "system", "system", info);
  GstBuffer *out;

  check_push (h, check_noise (info, seed), GST_FLOW_OK);
  out = check_pull (h);
  return out;
}

/* --- pixels --------------------------------------------------------------- */

CHECK_CASE ("surfaces", NULL, tear_down)

CHECK_LOOP_TEST (test_surfaces_of_every_kind_are_sharpened_where_they_lie,
    n_kinds () * G_N_ELEMENTS (formats))
{
  guint kind = __i__ / G_N_ELEMENTS (formats);
  GstVideoInfo info =
      check_info (formats[__i__ % G_N_ELEMENTS (formats)], WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h = NULL;

  set_up_kind (kind);
  h = harness_new ("lapsharpen amount=0.75", "NVMM", "NVMM", &info);
  for (guint seed = 0; seed < 3; seed++) {
    g_autoptr (GstBuffer) expected = sharpened_on_cpu (&info, seed), out = NULL,
                          pixels = NULL;

    check_push (
        h, check_nvmm_noise (&info, seed, kinds[kind].type), GST_FLOW_OK);
    out = check_pull (h);
    fail_unless_equals_uint64 (GST_BUFFER_PTS (out), seed * 40 * GST_MSECOND);
    pixels = check_nvmm_read (out, &info);
    check_same_pixels (pixels, expected, &info);
  }
  check_memory_name (h, kinds[kind].name);
  check_no_copies (h);
}

CHECK_LOOP_TEST (
    test_a_surface_goes_on_in_system_memory, G_N_ELEMENTS (formats))
{
  GstVideoInfo info = check_info (formats[__i__], WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h =
      harness_new ("lapsharpen amount=0.75", "NVMM", "system", &info);
  g_autoptr (GstBuffer) expected = sharpened_on_cpu (&info, 3), out = NULL;

  check_push (h, check_nvmm_noise (&info, 3, NVBUF_MEM_DEFAULT), GST_FLOW_OK);
  out = check_pull (h);
  check_no_copies (h);
  check_same_pixels (out, expected, &info);
  /* by the test, which has looked */
  fail_unless_equals_uint64 (
      check_stat (element_of (h), "bytes-downloaded"), info.size);
}

CHECK_LOOP_TEST (
    test_system_memory_goes_on_as_a_surface, G_N_ELEMENTS (formats))
{
  GstVideoInfo info = check_info (formats[__i__], WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h =
      harness_new ("lapsharpen amount=0.75", "system", "NVMM", &info);
  g_autoptr (GstBuffer) expected = sharpened_on_cpu (&info, 3), out = NULL,
                        pixels = NULL;

  check_push (h, check_noise (&info, 3), GST_FLOW_OK);
  out = check_pull (h);
  pixels = check_nvmm_read (out, &info);
  check_same_pixels (pixels, expected, &info);
  fail_unless_equals_int (check_nvmm_surface (out)->numFilled, 1);
}

static GstBuffer *
centroids_of (GstHarness *h, GstBuffer *in)
{
  const GstStructure *result;
  GstBuffer *out, *data;

  check_push (h, in, GST_FLOW_OK);
  out = check_pull (h);
  result = gst_imaging_results_get (out, NULL);
  fail_unless (result != NULL, "no results on the frame");
  fail_unless (
      gst_structure_get (result, "data", GST_TYPE_BUFFER, &data, NULL));
  gst_buffer_unref (out);
  return data;
}

#define GRID "columns=4 rows=3 pitch-x=15 pitch-y=12 x0=2 y0=1"

static void
check_same_centroids (guint kind, const gchar *format)
{
  GstVideoInfo info = check_info (format, WIDTH, HEIGHT);
  GstVideoInfo grey = check_info ("GRAY8", WIDTH, HEIGHT);
  g_autoptr (CheckHarness) cpu =
      harness_new ("shcentroid backend=cpu " GRID, "system", "system", &grey);
  g_autoptr (CheckHarness) h =
      harness_new ("shcentroid " GRID, "NVMM", "NVMM", &info);
  GstBuffer *noise = check_noise (&info, 5), *luma = check_noise (&grey, 5);
  g_autoptr (GstBuffer) expected = NULL, found = NULL;
  GstMapInfo map;

  /* the first plane of the same noise begins with the same numbers */
  expected = centroids_of (cpu, luma);
  found = centroids_of (h, check_nvmm_noise (&info, 5, kinds[kind].type));
  fail_unless (gst_buffer_map (expected, &map, GST_MAP_READ));
  fail_unless (map.size > 0);
  fail_unless_equals_int (gst_buffer_memcmp (found, 0, map.data, map.size), 0);
  gst_buffer_unmap (expected, &map);
  check_memory_name (h, kinds[kind].name);
  check_no_copies (h);
  gst_buffer_unref (noise);
}

CHECK_LOOP_TEST (test_centroids_of_a_surface_are_those_of_its_luma, n_kinds ())
{
  set_up_kind (__i__);
  check_same_centroids (__i__, "GRAY8");
  check_same_centroids (__i__, "NV12");
}

/* Captures and the grid are made on the CPU, of what is in the surface. */
static void
check_requests (guint kind, const gchar *format)
{
  GstVideoInfo info = check_info (format, WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h =
      harness_new ("shcentroid " GRID, "NVMM", "NVMM", &info);
  g_autoptr (GstElement) element = gst_harness_find_element (h, "shcentroid");
  g_autoptr (CheckBus) bus = check_watch (element);
  gboolean begun = FALSE;
  g_autoptr (GstBuffer) data = NULL;
  gfloat numbers[10];

  g_signal_emit_by_name (element, "capture-dark", 1, NULL, &begun);
  fail_unless (begun);
  gst_buffer_unref (
      centroids_of (h, check_nvmm_noise (&info, 5, kinds[kind].type)));
  gst_message_unref (check_message (bus, GST_MESSAGE_ELEMENT));
  g_signal_emit_by_name (element, "find-grid", "/nowhere.npy");
  data = centroids_of (h, check_nvmm_noise (&info, 5, kinds[kind].type));
  check_warning (bus, STREAM, FAILED, "There is no grid of spots");
  for (guint cell = 0; cell < 12; cell++) {
    gst_buffer_extract (
        data, cell * sizeof (numbers), numbers, sizeof (numbers));
    fail_unless (numbers[4] == 0 && numbers[6] == 0,
        "cell %u less itself has a flux of %g", cell, numbers[4]);
  }
}

CHECK_LOOP_TEST (test_a_dark_and_a_grid_are_taken_of_surfaces, n_kinds ())
{
  set_up_kind (__i__);
  check_requests (__i__, "GRAY8");
  check_requests (__i__, "NV12");
}

/* --- the mapping ---------------------------------------------------------- */

static GstBuffer *
pass (GstHarness *h, GstBuffer *surface)
{
  check_push (h, gst_buffer_ref (surface), GST_FLOW_OK);
  gst_buffer_unref (check_pull (h));
  return surface;
}

CHECK_LOOP_TEST (test_a_surface_is_mapped_once_and_let_go_with_its_memory,
    check_is_mock () ? 2 : 0)
{
  GstVideoInfo info = check_info ("NV12", WIDTH, HEIGHT);
  guint before = imk_mock_surface_n_images ();
  g_autoptr (CheckHarness) h = NULL;
  GstBuffer *surface;

  set_up_kind (4 + (guint) __i__);
  h = harness_new ("shcentroid " GRID, "NVMM", "NVMM", &info);
  surface = check_nvmm_noise (&info, 1, NVBUF_MEM_SURFACE_ARRAY);
  for (guint n = 0; n < 5; n++)
    pass (h, surface);
  fail_unless_equals_int (imk_mock_surface_n_images () - before, 1);
  /* the surface and its image */
  fail_unless_equals_int (imk_mock_surface_n_live (), 2);
  gst_buffer_unref (surface); /* the mock aborts when the order is wrong */
  fail_unless_equals_int (imk_mock_surface_n_live (), 0);
}

CHECK_MOCK_TEST (test_two_elements_share_one_mapping)
{
  GstVideoInfo info = check_info ("NV12", WIDTH, HEIGHT);
  guint before = imk_mock_surface_n_images ();
  g_autoptr (GstBuffer) surface = NULL;
  g_autoptr (CheckHarness) h = NULL;

  g_setenv ("IMK_MOCK_NVMM", "pitch", TRUE);
  h = harness_new (
      "shcentroid " GRID " ! shcentroid " GRID, "NVMM", "NVMM", &info);
  surface = check_nvmm_noise (&info, 1, NVBUF_MEM_SURFACE_ARRAY);
  pass (h, surface);
  fail_unless_equals_int (imk_mock_surface_n_images () - before, 1);
}

CHECK_MOCK_TEST (test_an_image_that_others_made_is_left_to_them)
{
  GstVideoInfo info = check_info ("NV12", WIDTH, HEIGHT);
  NvBufSurface *surface;
  g_autoptr (GstBuffer) buffer = NULL;
  GstHarness *h;

  g_setenv ("IMK_MOCK_NVMM", "pitch", TRUE);
  h = harness_new ("shcentroid " GRID, "NVMM", "NVMM", &info);
  buffer = check_nvmm_noise (&info, 1, NVBUF_MEM_SURFACE_ARRAY);
  surface = check_nvmm_surface (buffer);
  fail_unless_equals_int (NvBufSurfaceMapEglImage (surface, 0), 0);
  pass (h, buffer);
  gst_mini_object_ref (GST_MINI_OBJECT (gst_buffer_peek_memory (buffer, 0)));
  gst_harness_teardown (h);
  fail_unless (surface->surfaceList[0].mappedAddr.eglImage != NULL);
  /* ours is a registration only, and it goes first */
  gst_mini_object_unref (GST_MINI_OBJECT (gst_buffer_peek_memory (buffer, 0)));
  fail_unless_equals_int (NvBufSurfaceUnMapEglImage (surface, 0), 0);
}

CHECK_TEST (test_another_surface_in_the_same_memory_is_mapped_anew)
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h =
      harness_new ("shcentroid " GRID, "NVMM", "NVMM", &info);
  g_autoptr (GstBuffer) first =
      check_nvmm_noise (&info, 1, NVBUF_MEM_CUDA_DEVICE);
  g_autoptr (GstBuffer) second =
      check_nvmm_noise (&info, 2, NVBUF_MEM_CUDA_DEVICE);
  NvBufSurface *holder = check_nvmm_surface (first);
  NvBufSurfaceParams *list = holder->surfaceList;
  g_autoptr (GstBuffer) expected = NULL, found = NULL;
  GstMapInfo map;

  gst_buffer_unref (centroids_of (h, gst_buffer_ref (first)));
  expected = centroids_of (h, gst_buffer_ref (second));
  holder->surfaceList = check_nvmm_surface (second)->surfaceList;
  found = centroids_of (h, gst_buffer_ref (first));
  fail_unless (gst_buffer_map (expected, &map, GST_MAP_READ));
  fail_unless_equals_int (gst_buffer_memcmp (found, 0, map.data, map.size), 0);
  gst_buffer_unmap (expected, &map);
  holder->surfaceList = list;
}

/* --- refusals ------------------------------------------------------ */

#define SPOIL(name, change) \
  static void spoil_##name (NvBufSurface *s) \
  { \
    s->change; \
  }

SPOIL (batch, numFilled = 4)
SPOIL (size, surfaceList[0].width = 1920)
SPOIL (planes, surfaceList[0].planeParams.num_planes = 2)
SPOIL (gpu, gpuId = 1)
SPOIL (type, memType = NVBUF_MEM_SYSTEM)
SPOIL (layout, surfaceList[0].layout = NVBUF_LAYOUT_BLOCK_LINEAR)
SPOIL (address, surfaceList[0].dataPtr = NULL)
SPOIL (pitch, surfaceList[0].planeParams.pitch[0] = WIDTH - 1)
SPOIL (offset, surfaceList[0].planeParams.offset[0] = G_MAXUINT32)
SPOIL (count, batchSize = 0)

static const struct {
  void (*spoil) (NvBufSurface *s);
  const gchar *words;
} spoilt[] = {
    {spoil_batch, "a batch of 4 frames"},
    {spoil_size, "is 1920x41 with 1 planes, its caps say 67x41 GRAY8"},
    {spoil_planes, "67x41 with 2 planes"},
    {spoil_gpu, "Set cuda-device-id=1"},
    {spoil_type, "type 6 (system)"},
    {spoil_layout, "block-linear"},
    {spoil_address, "without an address"},
    {spoil_pitch, "66 bytes apart"},
    {spoil_offset, "from byte 4294967295"},
    {spoil_count, "holds no surface"},
};

static void
check_refused (GstHarness *h, GstBuffer *buffer, GQuark domain, gint code,
    const gchar *words)
{
  g_autoptr (CheckBus) bus = check_watch (h->element);

  check_push (h, buffer, GST_FLOW_ERROR);
  check_message_says (
      check_message (bus, GST_MESSAGE_ERROR), domain, code, words);
}

CHECK_LOOP_TEST (
    test_what_cannot_be_read_is_refused_with_a_sentence, G_N_ELEMENTS (spoilt))
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h =
      harness_new ("shcentroid " GRID, "NVMM", "NVMM", &info);
  g_autoptr (GstBuffer) buffer =
      check_nvmm_noise (&info, 1, NVBUF_MEM_CUDA_DEVICE);
  NvBufSurface *surface = check_nvmm_surface (buffer), whole = *surface;
  NvBufSurfaceParams whole_list = surface->surfaceList[0];

  spoilt[__i__].spoil (surface);
  check_refused (h, gst_buffer_ref (buffer), CHECK_CODE (STREAM, FORMAT),
      spoilt[__i__].words);
  *surface = whole;
  surface->surfaceList[0] = whole_list;
}

CHECK_TEST (test_a_buffer_of_something_else_is_refused)
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h =
      harness_new ("shcentroid " GRID, "NVMM", "NVMM", &info);
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, 63, NULL);

  check_refused (
      h, buffer, CHECK_CODE (STREAM, FORMAT), "63 bytes holds no surface");
}

CHECK_TEST (test_two_memories_are_no_surface)
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h =
      harness_new ("shcentroid " GRID, "NVMM", "NVMM", &info);
  GstBuffer *buffer = check_nvmm_noise (&info, 1, NVBUF_MEM_CUDA_DEVICE);

  gst_buffer_append_memory (buffer, gst_allocator_alloc (NULL, 64, NULL));
  check_refused (h, buffer, CHECK_CODE (STREAM, FORMAT), "has 2 memories");
}

CHECK_MOCK_TEST (test_an_image_that_cannot_be_made_is_an_error)
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);
  GstBuffer *buffer;
  g_autoptr (CheckHarness) h = NULL;

  g_setenv ("IMK_MOCK_NVMM", "pitch", TRUE);
  g_setenv ("IMK_MOCK_NVMM_FAIL", "map", TRUE);
  h = harness_new ("shcentroid " GRID, "NVMM", "NVMM", &info);
  buffer = check_nvmm_noise (&info, 1, NVBUF_MEM_SURFACE_ARRAY);
  check_refused (h, buffer, CHECK_CODE (LIBRARY, FAILED), "unset DISPLAY");
}

CHECK_TEST (test_a_surface_that_cannot_be_made_is_an_error)
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h =
      harness_new ("lapsharpen", "NVMM", "NVMM", &info);
  GstBuffer *buffer = check_nvmm_noise (&info, 1, NVBUF_MEM_CUDA_DEVICE);

  g_setenv ("IMK_MOCK_NVMM_FAIL", "create", TRUE);
  check_refused (
      h, buffer, CHECK_CODE (RESOURCE, NO_SPACE_LEFT), "no device memory");
}

/* Every call to the device may fail: one error, no leak, no frame. */
CHECK_LOOP_TEST (test_each_call_to_the_device_may_fail,
    check_is_mock () ? G_N_ELEMENTS (kinds) : 0)
{
  GstVideoInfo info = check_info ("NV12", WIDTH, HEIGHT);
  gboolean passed = FALSE;

  set_up_kind (__i__);
  for (guint nth = 1; !passed && nth < 200; nth++) {
    GstHarness *h = harness_new ("lapsharpen", "NVMM", "NVMM", &info);
    GstBuffer *in = check_nvmm_noise (&info, 1, kinds[__i__].type), *out;

    imk_inject_failure (nth, FALSE);
    passed = gst_harness_push (h, in) == GST_FLOW_OK;
    imk_inject_failure (0, FALSE);
    out = gst_harness_try_pull (h);
    fail_unless_equals_int (out != NULL, passed);
    gst_clear_buffer (&out);
    gst_harness_teardown (h);
    fail_unless_equals_int (imk_mock_surface_n_live (), 0);
  }
  fail_unless (passed);
}

/* --- negotiation ---------------------------------------------------------- */

/* Whether the sink pad takes @caps when downstream takes anything. */
static gboolean
takes (const gchar *line, const gchar *caps_string)
{
  g_autoptr (GstElement) element = gst_parse_launch (line, NULL);
  g_autoptr (GstPad) pad = gst_element_get_static_pad (element, "sink");
  g_autoptr (GstCaps) caps = gst_caps_from_string (caps_string);
  gboolean accepted;

  gst_element_set_state (element, GST_STATE_READY);
  accepted = gst_pad_query_accept_caps (pad, caps);
  gst_element_set_state (element, GST_STATE_NULL);
  return accepted;
}

CHECK_TEST (test_the_cpu_takes_no_surfaces)
{
  g_autofree gchar *nvmm = check_nvmm_caps ("GRAY8", WIDTH, HEIGHT);
  g_autoptr (GstElement) element =
      gst_parse_launch ("lapsharpen backend=cpu", NULL);
  g_autoptr (GstPad) pad = gst_element_get_static_pad (element, "sink");
  g_autoptr (GstCaps) caps = gst_pad_query_caps (pad, NULL), surface = NULL;

  surface = gst_caps_from_string (nvmm);
  fail_if (gst_caps_can_intersect (caps, surface));
  fail_unless (takes ("lapsharpen", nvmm));
  fail_unless (takes ("shcentroid", nvmm));
  fail_unless (takes ("photostereo", nvmm));
  fail_if (takes ("photostereo backend=cpu", nvmm));
}

CHECK_TEST (test_formats_without_a_surface_are_not_offered)
{
  const gchar *none[] = {"GRAY16_LE", "BGRA", "RGB", "I420"};

  for (guint i = 0; i < G_N_ELEMENTS (none); i++) {
    g_autofree gchar *caps = check_nvmm_caps (none[i], WIDTH, HEIGHT);

    fail_if (takes ("lapsharpen", caps), "lapsharpen takes %s", caps);
    fail_if (takes ("shcentroid", caps), "shcentroid takes %s", caps);
  }
}

/* --- photostereo ---------------------------------------------------------- */

#define N_LIGHTS 6

static gchar *
write_lights (void)
{
  g_autoptr (GString) text = g_string_new ("6\n");
  gchar *path = NULL;
  gint file = g_file_open_tmp ("lights-XXXXXX.lp", &path, NULL);

  fail_unless (file >= 0);
  g_close (file, NULL);
  for (gint i = 0; i < N_LIGHTS; i++) {
    gdouble angle = i * G_PI / 3;
    gchar x[G_ASCII_DTOSTR_BUF_SIZE], y[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf (text, "light%d %s %s 0.8\n", i,
        g_ascii_dtostr (x, sizeof (x), 0.6 * cos (angle)),
        g_ascii_dtostr (y, sizeof (y), 0.6 * sin (angle)));
  }
  fail_unless (g_file_set_contents (path, text->str, -1, NULL));
  return path;
}

/* What a set of noise is made of, and where its normals go. */
typedef struct {
  GstVideoInfo info;
  gboolean nvmm; /* pictures in surfaces, with CUDA; else the CPU does it */
  NvBufSurfaceMemType type;
  const gchar *out; /* caps of the normals, or NULL */
} Set;

/* Returns: (transfer full): the normals of noise, in system memory */
static GstBuffer *
normals_of_noise (const gchar *lights, const Set *set)
{
  const GstVideoInfo *info = &set->info;
  g_autofree gchar *line =
      g_strdup_printf ("photostereo lights-location=%s robust=none backend=%s",
          lights, set->nvmm ? "cuda" : "cpu");
  g_autofree gchar *caps = (set->nvmm ? check_nvmm_caps : check_caps_string) (
      info->finfo->name, info->width, info->height);
  GstVideoInfo rgb = check_info ("RGB", info->width, info->height);
  g_autoptr (GstElement) element = gst_parse_launch (line, NULL);
  g_autoptr (CheckHarness) h =
      gst_harness_new_with_element (element, "sink", "normal");
  GstBuffer *normals, *copy = gst_buffer_new_allocate (NULL, rgb.size, NULL);
  GstVideoFrame from, to;

  if (set->out)
    gst_harness_set_sink_caps_str (h, set->out);
  gst_harness_set_src_caps_str (h, caps);
  for (guint i = 0; i < N_LIGHTS; i++)
    check_push (h,
        set->nvmm ? check_nvmm_noise (info, i, set->type)
                  : check_noise (info, i),
        GST_FLOW_OK);
  normals = check_pull (h);
  if (set->out) {
    fail_unless (gst_memory_is_type (
        gst_buffer_peek_memory (normals, 0), "gst.cuda.memory"));
    fail_unless_equals_uint64 (check_stat (element, "bytes-downloaded"), 0);
  }
  fail_unless (gst_video_frame_map (&from, &rgb, normals, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&to, &rgb, copy, GST_MAP_WRITE));
  fail_unless (gst_video_frame_copy (&to, &from));
  gst_video_frame_unmap (&from);
  gst_video_frame_unmap (&to);
  gst_buffer_unref (normals);
  if (set->nvmm) {
    fail_unless_equals_uint64 (check_stat (element, "bytes-copied"), 0);
    fail_unless_equals_uint64 (check_stat (element, "bytes-uploaded"), 0);
  }
  return copy;
}

static void
surfaces_give_normals (guint kind, const gchar *format, const gchar *out)
{
  Set surfaces = {
      check_info (format, WIDTH, HEIGHT), TRUE, kinds[kind].type, out};
  /* noise has the same luma whether chroma follows or not */
  Set plain = {
      check_info (GST_VIDEO_INFO_IS_RGB (&surfaces.info) ? "RGBA" : "GRAY8",
          WIDTH, HEIGHT)};
  GstVideoInfo normals = check_info ("RGB", WIDTH, HEIGHT);
  g_autofree gchar *lights = write_lights ();
  g_autoptr (GstBuffer) found = NULL, expected = NULL;

  set_up_kind (kind);
  expected = normals_of_noise (lights, &plain);
  found = normals_of_noise (lights, &surfaces);
  check_same_pixels (found, expected, &normals);
  g_unlink (lights);
}

CHECK_LOOP_TEST (
    test_normals_come_from_surfaces, n_kinds () * N_PICTURE_FORMATS)
{
  surfaces_give_normals (
      __i__ / N_PICTURE_FORMATS, formats[__i__ % N_PICTURE_FORMATS], NULL);
}

#ifdef HAVE_GST_CUDA
/* The row of docs/explanation/memory.md that the mock cannot run. */
CHECK_LOOP_TEST (test_normals_of_surfaces_go_on_as_cuda_memory,
    check_is_mock () ? 0 : n_kinds () * N_PICTURE_FORMATS)
{
  surfaces_give_normals (__i__ / N_PICTURE_FORMATS,
      formats[__i__ % N_PICTURE_FORMATS],
      "video/x-raw(memory:CUDAMemory),format=RGB");
}
#endif

CHECK_TEST (test_surfaces_do_not_stay_for_strips)
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);
  g_autofree gchar *lights = write_lights ();
  g_autofree gchar *caps = check_nvmm_caps ("GRAY8", WIDTH, HEIGHT);
  g_autofree gchar *line = g_strdup_printf (
      "photostereo lights-location=%s backend=cuda memory-limit=50000", lights);
  g_autoptr (GstElement) element = gst_parse_launch (line, NULL);
  g_autoptr (CheckHarness) h =
      gst_harness_new_with_element (element, "sink", "normal");
  g_autoptr (GstBus) bus = gst_bus_new ();

  gst_element_set_bus (h->element, bus);
  gst_harness_set_src_caps_str (h, caps);
  check_push (
      h, check_nvmm_noise (&info, 0, NVBUF_MEM_DEFAULT), GST_FLOW_ERROR);
  check_error (bus, RESOURCE, NO_SPACE_LEFT, "put nvvidconv before");
  gst_element_set_bus (h->element, NULL);
  g_unlink (lights);
}

/* --- pipelines of a Jetson ------------------------------------------------ */

static void
count_frame (
    GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer n_frames)
{
  NvBufSurface *surface = check_nvmm_surface (buffer);

  fail_unless_equals_int (surface->numFilled, 1);
  ++*(guint *) n_frames;
}

static const gchar *const lines[] = {
    "nvarguscamerasrc sensor-id=0 num-buffers=20 ! "
    "video/x-raw(memory:NVMM),format=NV12,width=68,height=42,framerate=30/1 ! "
    "lapsharpen name=e amount=1.5 ! fakesink name=sink signal-handoffs=true "
    "sync=false",
    "nvarguscamerasrc num-buffers=20 ! "
    "video/x-raw(memory:NVMM),width=68,height=42,framerate=30/1 ! "
    "shcentroid name=e " GRID
    " ! fakesink name=sink signal-handoffs=true sync=false "
    "e.results ! queue ! text/csv ! fakesink sync=false",
    "nvarguscamerasrc num-buffers=20 ! "
    "video/x-raw(memory:NVMM),width=68,height=42,framerate=30/1 ! queue ! "
    "shcentroid " GRID " ! lapsharpen name=e ! queue ! lapsharpen amount=0.5 ! "
    "fakesink name=sink signal-handoffs=true sync=false",
    "nvarguscamerasrc num-buffers=20 ! "
    "video/x-raw(memory:NVMM),width=68,height=42,framerate=30/1 ! tee name=t ! "
    "queue ! lapsharpen name=e ! fakesink name=sink signal-handoffs=true "
    "sync=false t. ! queue ! shcentroid " GRID " ! fakesink sync=false",
};

CHECK_LOOP_TEST (
    test_pipelines_of_a_camera_of_jetson_run, G_N_ELEMENTS (lines) * n_kinds ())
{
  guint line = __i__ % G_N_ELEMENTS (lines),
        kind = __i__ / G_N_ELEMENTS (lines);
  GError *error = NULL;
  g_autoptr (GstElement) pipeline = NULL, element = NULL, sink = NULL;
  guint n_frames = 0;

  set_up_kind (kind);
  check_nvmm_register_camera ();
  pipeline = gst_parse_launch (lines[line], &error);
  fail_unless (error == NULL, "%s", error ? error->message : "");
  element = gst_bin_get_by_name (GST_BIN (pipeline), "e");
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  g_signal_connect (sink, "handoff", G_CALLBACK (count_frame), &n_frames);
  check_play (pipeline);
  fail_unless_equals_int (n_frames, 20);
  fail_unless_equals_uint64 (check_stat (element, "frames"), 20);
  fail_unless_equals_uint64 (check_stat (element, "bytes-uploaded"), 0);
  fail_unless_equals_uint64 (check_stat (element, "bytes-copied"), 0);
  gst_element_set_state (pipeline, GST_STATE_NULL);
}

static void
count_normals (
    GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer n_normals)
{
  ++*(guint *) n_normals;
}

CHECK_LOOP_TEST (test_a_camera_of_jetson_makes_sets, n_kinds ())
{
  g_autofree gchar *lights = write_lights ();
  g_autofree gchar *line = g_strdup_printf (
      "nvarguscamerasrc num-buffers=%d ! video/x-raw(memory:NVMM),format=NV12,"
      "width=68,height=42,framerate=5/1 ! "
      "photostereo name=e lights-location=%s e.normal ! "
      "fakesink name=sink signal-handoffs=true sync=false",
      3 * N_LIGHTS, lights);
  GError *error = NULL;
  g_autoptr (CheckPipeline) pipeline = NULL;
  GstElement *element, *sink;
  guint n_normals = 0;

  set_up_kind (__i__);
  check_nvmm_register_camera ();
  pipeline = gst_parse_launch (line, &error);
  fail_unless (error == NULL, "%s", error ? error->message : "");
  element = gst_bin_get_by_name (GST_BIN (pipeline), "e");
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  g_signal_connect (sink, "handoff", G_CALLBACK (count_normals), &n_normals);
  check_play (pipeline);
  fail_unless_equals_int (n_normals, 3);
  fail_unless_equals_uint64 (check_stat (element, "frames"), 3 * N_LIGHTS);
  fail_unless_equals_uint64 (check_stat (element, "bytes-uploaded"), 0);
  fail_unless_equals_uint64 (check_stat (element, "bytes-copied"), 0);
  gst_object_unref (element);
  gst_object_unref (sink);
  g_unlink (lights);
}
