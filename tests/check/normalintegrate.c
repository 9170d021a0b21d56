/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The normalintegrate element, on the CPU and on the mock of a device: formats,
 * pads, metadata, and what is refused. What it computes, the kernel's tests
 * check; a map here is a plane of slopes 0.5 and 0.25. */
#include "check-common.h"
#include "core/failures.h"

#include <math.h>

#include "gstimagingquantity.h"

enum { WIDTH = 13, HEIGHT = 7 };

static const gdouble slope_x = 0.5, slope_y = 0.25; /* y up */

static gdouble
height_at (gint x, gint y, gint height)
{
  return slope_x * x + slope_y * (height - 1 - y);
}

/* --- harnesses ------------------------------------------------------------ */

typedef struct {
  GstElement *element;
  GstHarness *sink;                   /* normals go in here */
  GstHarness *height, *tensor, *mesh; /* NULL where not asked */
  GstBus *bus;
  GstVideoInfo info; /* unknown for tensors */
} Ni;

/* @pads: names of outputs in a row; @caps: what `height` and `mesh` peers take,
 * NULL for anything */
static Ni
ni_new (const gchar *properties, const gchar *pads, const gchar *caps)
{
  g_autofree gchar *line = g_strdup_printf ("normalintegrate %s", properties);
  Ni ni = {.element = check_launch (line)};
  GstHarness **slots[] = {&ni.height, &ni.tensor, &ni.mesh};
  const gchar *names[] = {"height", "tensor", "mesh"};

  ni.bus = check_watch (ni.element);
  ni.sink = gst_harness_new_with_element (ni.element, "sink", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strstr (pads, names[i])) {
      *slots[i] = gst_harness_new_with_element (ni.element, NULL, names[i]);
      if (caps)
        gst_harness_set_sink_caps_str (*slots[i], caps);
    }
  return ni;
}

static void
ni_free (Ni *ni)
{
  GstHarness *harnesses[] = {ni->height, ni->tensor, ni->mesh, ni->sink};

  check_take_down (ni->element, ni->bus, harnesses, G_N_ELEMENTS (harnesses));
  fail_unless_equals_int (check_n_live (), 0);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Ni, ni_free)

static void
ni_caps (Ni *ni, const gchar *format, gint width, gint height)
{
  g_autofree gchar *caps = NULL;

  if (format) {
    ni->info = check_info (format, width, height);
    caps = g_strdup_printf (
        "video/x-raw,format=%s,width=%d,height=%d,framerate=25/1", format,
        width, height);
  } else {
    gst_video_info_init (&ni->info);
    ni->info.width = width;
    ni->info.height = height;
    caps = g_strdup_printf (
        "other/tensors,format=static,num_tensors=1,types=float32,"
        "dimensions=3:%d:%d:1,framerate=25/1",
        width, height);
  }
  gst_harness_set_src_caps_str (ni->sink, caps);
}

/* Returns: (transfer full): the plane, with noise in alpha */
static GstBuffer *
plane_of (const Ni *ni)
{
  gdouble length = sqrt (1 + slope_x * slope_x + slope_y * slope_y);
  const gdouble n[] = {-slope_x / length, -slope_y / length, 1 / length};
  const GstVideoFormatInfo *finfo = ni->info.finfo;
  gboolean is_video =
      GST_VIDEO_INFO_FORMAT (&ni->info) != GST_VIDEO_FORMAT_UNKNOWN;
  gsize n_pixels = (gsize) ni->info.width * ni->info.height;
  GstVideoFrame frame;
  GstBuffer *buffer;
  GstMapInfo map;

  if (!is_video) {
    buffer = gst_buffer_new_allocate (NULL, 12 * n_pixels, NULL);
    fail_unless (gst_buffer_map (buffer, &map, GST_MAP_WRITE));
    for (gsize i = 0; i < 3 * n_pixels; i++)
      ((gfloat *) map.data)[i] = (gfloat) n[i % 3];
    gst_buffer_unmap (buffer, &map);
    GST_BUFFER_PTS (buffer) = 40 * GST_MSECOND;
    return buffer;
  }
  buffer = check_noise (&ni->info, 1);
  fail_unless (
      gst_video_frame_map (&frame, &ni->info, buffer, GST_MAP_READWRITE));
  for (guint c = 0; c < 3; c++)
    for (gint y = 0; y < ni->info.height; y++)
      for (gint x = 0; x < ni->info.width; x++) {
        guint8 *p = (guint8 *) GST_VIDEO_FRAME_COMP_DATA (&frame, c) +
                    y * GST_VIDEO_FRAME_COMP_STRIDE (&frame, c) +
                    x * GST_VIDEO_FRAME_COMP_PSTRIDE (&frame, c);

        if (GST_VIDEO_FORMAT_INFO_DEPTH (finfo, c) == 8)
          *p = (guint8) (128.5 + 127 * n[c]);
        else
          *(guint16 *) p = (guint16) (32768.5 + 32767 * n[c]);
      }
  gst_video_frame_unmap (&frame);
  return buffer;
}

static void
ni_push (Ni *ni)
{
  check_push (ni->sink, plane_of (ni), GST_FLOW_OK);
}

/* The plane times @mm, to @tolerance of its highest point. */
static void
assert_tensor (
    GstBuffer *buffer, gint width, gint height, gdouble mm, gdouble tolerance)
{
  gdouble highest = mm * height_at (width - 1, 0, height);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READ);

  fail_unless_equals_uint64 (map.size, 4 * (gsize) width * height);
  for (gint y = 0; y < height; y++)
    for (gint x = 0; x < width; x++) {
      gdouble found = ((gfloat *) map.data)[y * width + x];
      gdouble expected = mm * height_at (x, y, height);

      fail_unless (fabs (found - expected) <= tolerance * highest,
          "at (%d, %d) the height is %g, not %g", x, y, found, expected);
    }
}

static const gchar *const backends[] = {"cpu", "cuda"};

/* --- tests ---------------------------------------------------------------- */

CHECK_CASE ("general", check_make_folder, check_remove_folder)

CHECK_TEST (test_every_format_and_backend_gives_the_plane)
{
  const gchar *formats[] = {"RGB", "BGR", "RGBx", "BGRx", "xRGB", "xBGR",
      "RGBA", "BGRA", "ARGB", "ABGR", "RGBA64_LE", "ARGB64_LE", NULL};

  for (guint b = 0; b < 2; b++)
    for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
      g_autofree gchar *properties =
          g_strdup_printf ("mm-per-pixel=0.5 backend=%s", backends[b]);
      g_auto (Ni) ni = ni_new (properties, "tensor", NULL);
      gboolean bytes = formats[i] && !strstr (formats[i], "64");
      g_autoptr (GstBuffer) out = NULL;

      ni_caps (&ni, formats[i], WIDTH, HEIGHT);
      ni_push (&ni);
      out = check_pull (ni.tensor);
      assert_tensor (out, WIDTH, HEIGHT, 0.5, bytes ? 0.02 : 1e-4);
      fail_unless_equals_uint64 (GST_BUFFER_PTS (out), 40 * GST_MSECOND);
    }
}

/* The plane, of pixels twice as wide as high: half as steep from row to row. */
CHECK_TEST (test_pixels_need_not_be_square)
{
  const gchar *const caps[] = {"video/x-raw,format=RGBA64_LE,width=13,height=7",
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=3:13:7:1"};

  for (guint i = 0; i < 4; i++) {
    g_autofree gchar *properties =
        g_strdup_printf ("mm-per-pixel=3 backend=%s", backends[i % 2]);
    g_autofree gchar *line = g_strdup_printf (
        "%s,framerate=25/1,pixel-aspect-ratio=2/1", caps[i / 2]);
    g_auto (Ni) ni = ni_new (properties, "height tensor mesh", NULL);
    GstBuffer *tensor, *mesh;
    GstCaps *out;
    GstMapInfo map;
    gint n = 0, d = 0;
    gfloat y;

    ni_caps (&ni, i < 2 ? "RGBA64_LE" : NULL, WIDTH, HEIGHT);
    gst_harness_set_src_caps_str (ni.sink, line);
    ni_push (&ni);
    tensor = check_pull (ni.tensor);
    fail_unless (gst_buffer_map (tensor, &map, GST_MAP_READ));
    for (gint k = 0; k < WIDTH * HEIGHT; k++) {
      gdouble expected =
          3 * (slope_x * (k % WIDTH) + slope_y * (HEIGHT - 1 - k / WIDTH) / 2);

      fail_unless (fabs (((gfloat *) map.data)[k] - expected) < 2e-3,
          "pixel %d is %g, not %g", k, ((gfloat *) map.data)[k], expected);
    }
    gst_buffer_unmap (tensor, &map);
    gst_buffer_unref (tensor);
    out = gst_pad_get_current_caps (ni.height->sinkpad);
    fail_unless (gst_structure_get_fraction (
        gst_caps_get_structure (out, 0), "pixel-aspect-ratio", &n, &d));
    fail_unless (n == 2 && d == 1, "pixel-aspect-ratio %d/%d", n, d);
    gst_caps_unref (out);
    gst_buffer_unref (check_pull (ni.height));
    mesh =
        check_pull (ni.mesh); /* of PLY: the first vertex is the upper left */
    fail_unless (gst_buffer_map (mesh, &map, GST_MAP_READ));
    memcpy (
        &y, g_strstr_len ((gchar *) map.data, 400, "end_header\n") + 11 + 4, 4);
    fail_unless (fabs (y - 3 * (HEIGHT - 1) / 2.0) < 1e-4, "y is %g", y);
    gst_buffer_unmap (mesh, &map);
    gst_buffer_unref (mesh);
  }
}

CHECK_TEST (test_a_tensor_has_its_unit_and_step)
{
  g_auto (Ni) ni = ni_new ("mm-per-pixel=2", "tensor", NULL);
  const GstStructure *s;
  gdouble scale, offset, step;
  GstCustomMeta *meta;
  g_autoptr (GstBuffer) out = NULL;

  ni_caps (&ni, NULL, WIDTH, HEIGHT);
  ni_push (&ni);
  out = check_pull (ni.tensor);
  meta = gst_buffer_get_custom_meta (out, "GstImagingQuantity");
  fail_unless (meta != NULL);
  s = gst_custom_meta_get_structure (meta);
  fail_unless (gst_structure_get (s, "scale", G_TYPE_DOUBLE, &scale, "offset",
      G_TYPE_DOUBLE, &offset, "axis-0-step", G_TYPE_DOUBLE, &step, NULL));
  fail_unless (scale == 1 && offset == 0 && step == 2);
  fail_unless_equals_string (gst_structure_get_string (s, "name"), "height");
  fail_unless_equals_string (gst_structure_get_string (s, "unit"), "mm");
}

/* Normals of a file, or of photostereo, know the size of a pixel. */
CHECK_TEST (test_axes_of_the_normals_give_the_size_of_a_pixel)
{
  static const struct {
    const gchar *settings, *unit, *expected;
    gdouble step, mm;
  } cases[] = {
      {"", "mm", "mm", 0.25, 0.25},
      {"", "um", "mm", -250, 0.25},
      {"", "m", "mm", 0.5, 500},
      {"mm-per-pixel=2", "mm", "mm", 0.25, 2},
      {"mm-per-pixel=1", "mm", "mm", 0.25, 1},
      {"mm-per-pixel=1", "pixel", "mm", 3, 1},
      {"", "mm", "mm", 1, 1},
      {"", "pixel", "pixel", 3, 1},
      {"", "mm", "pixel", 0, 1},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Ni) ni = ni_new (cases[i].settings, "tensor", NULL);
    const GstImagingAxis axes[] = {{"x", cases[i].unit, cases[i].step, 0}};
    GstBuffer *normals;
    g_autoptr (GstBuffer) out = NULL;
    const GstStructure *s;
    gdouble step = 0;

    ni_caps (&ni, NULL, WIDTH, HEIGHT);
    normals = plane_of (&ni);
    gst_imaging_quantity_attach (normals, "normal", "", 1, 0, axes, 1);
    check_push (ni.sink, normals, GST_FLOW_OK);
    out = check_pull (ni.tensor);
    s = gst_custom_meta_get_structure (
        gst_buffer_get_custom_meta (out, GST_IMAGING_QUANTITY_META));
    gst_structure_get_double (s, "axis-0-step", &step);
    fail_unless (step == cases[i].mm, "case %u: %g", i, step);
    fail_unless_equals_string (
        gst_structure_get_string (s, "unit"), cases[i].expected);
  }
}

CHECK_TEST (test_grey_has_a_meta_that_makes_it_mm)
{
  const gchar *formats[] = {"GRAY16_LE", "GRAY16_BE"};

  for (guint i = 0; i < 2; i++) {
    g_autofree gchar *caps =
        g_strdup_printf ("video/x-raw,format=%s", formats[i]);
    g_auto (Ni) ni = ni_new ("mm-per-pixel=2", "height", caps);
    gdouble scale, offset, highest, step;
    GstCustomMeta *meta;
    const GstStructure *s;
    GstVideoInfo info;
    GstVideoFrame frame;
    g_autoptr (GstBuffer) out = NULL;

    ni_caps (&ni, NULL, WIDTH, HEIGHT);
    ni_push (&ni);
    out = check_pull (ni.height);
    meta = gst_buffer_get_custom_meta (out, "GstImagingHeight");
    fail_unless (meta != NULL);
    s = gst_custom_meta_get_structure (meta);
    fail_unless (
        gst_structure_get (s, "highest", G_TYPE_DOUBLE, &highest, NULL));
    meta = gst_buffer_get_custom_meta (out, "GstImagingQuantity");
    fail_unless (meta != NULL);
    s = gst_custom_meta_get_structure (meta);
    fail_unless (gst_structure_get (s, "scale", G_TYPE_DOUBLE, &scale, "offset",
        G_TYPE_DOUBLE, &offset, "axis-1-step", G_TYPE_DOUBLE, &step, NULL));
    fail_unless (step == -2); /* y goes up, as in the mesh */
    fail_unless_equals_string (gst_structure_get_string (s, "unit"), "mm");
    fail_unless_equals_string (
        gst_structure_get_string (s, "axis-0-name"), "x");
    fail_unless (fabs (highest - 2 * height_at (WIDTH - 1, 0, HEIGHT)) < 1e-3);
    info = check_info (formats[i], WIDTH, HEIGHT);
    fail_unless (gst_video_frame_map (&frame, &info, out, GST_MAP_READ));
    for (gint y = 0; y < HEIGHT; y++)
      for (gint x = 0; x < WIDTH; x++) {
        const guint8 *p =
            (const guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0) +
            y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0) + 2 * x;
        guint v = i == 0 ? GST_READ_UINT16_LE (p) : GST_READ_UINT16_BE (p);
        gdouble mm = scale * v + offset;

        fail_unless (v > 0);
        fail_unless (fabs (mm - 2 * height_at (x, y, HEIGHT)) < 1e-3,
            "at (%d, %d) %u is %g mm", x, y, v, mm);
      }
    gst_video_frame_unmap (&frame);
  }
}

CHECK_TEST (test_mesh_is_in_the_format_of_its_peer)
{
  const struct {
    const gchar *caps, *begins;
  } cases[] = {{"model/x-ply", "ply\n"}, {"model/obj", "# mm\nv "},
      {"model/gltf-binary", "glTF\2"}, {"ANY", "ply\n"}};

  for (guint b = 0; b < 2; b++)
    for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
      g_autofree gchar *properties =
          g_strdup_printf ("backend=%s", backends[b]);
      g_auto (Ni) ni = ni_new (properties, "mesh", cases[i].caps);
      GstMapInfo map;
      g_autoptr (GstBuffer) out = NULL;

      ni_caps (&ni, "RGB", WIDTH, HEIGHT);
      ni_push (&ni);
      out = check_pull (ni.mesh);
      fail_unless (gst_buffer_map (out, &map, GST_MAP_READ));
      fail_unless (
          memcmp (map.data, cases[i].begins, strlen (cases[i].begins)) == 0);
      if (map.data[0] == 'p')
        fail_unless (g_strstr_len ((gchar *) map.data, 200,
                         "element vertex 91\n") != NULL);
      gst_buffer_unmap (out, &map);
    }
}

CHECK_TEST (test_all_outputs_come_from_one_map)
{
  for (guint b = 0; b < 2; b++) {
    g_autofree gchar *properties = g_strdup_printf ("backend=%s", backends[b]);
    g_auto (Ni) ni = ni_new (properties, "height tensor mesh", NULL);
    GstBuffer *height, *tensor, *mesh;

    ni_caps (&ni, "RGBA64_LE", WIDTH, HEIGHT);
    for (guint i = 0; i < 3; i++) {
      ni_push (&ni);
      height = check_pull (ni.height);
      tensor = check_pull (ni.tensor);
      mesh = check_pull (ni.mesh);
      assert_tensor (tensor, WIDTH, HEIGHT, 1, 1e-4);
      gst_buffer_unref (height);
      gst_buffer_unref (tensor);
      gst_buffer_unref (mesh);
    }
  }
}

CHECK_TEST (test_properties_and_size_change_while_playing)
{
  g_auto (Ni) ni = ni_new ("backend=cuda", "tensor", NULL);
  g_autoptr (GstBuffer) out = NULL;

  ni_caps (&ni, "RGBA64_LE", WIDTH, HEIGHT);
  ni_push (&ni);
  out = check_pull (ni.tensor);
  assert_tensor (out, WIDTH, HEIGHT, 1, 1e-4);
  gst_buffer_unref (out);
  g_object_set (ni.element, "mm-per-pixel", 0.1, NULL);
  ni_push (&ni);
  out = check_pull (ni.tensor);
  assert_tensor (out, WIDTH, HEIGHT, 0.1, 1e-4);
  gst_buffer_unref (out);
  ni_caps (&ni, NULL, 1, 31);
  ni_push (&ni);
  out = check_pull (ni.tensor);
  assert_tensor (out, 1, 31, 0.1, 1e-4);
}

/* --- a lens, flattening, known points ------------------------------------- */

static const GstStructure *
quantity_of (GstBuffer *buffer)
{
  return gst_custom_meta_get_structure (
      gst_buffer_get_custom_meta (buffer, GST_IMAGING_QUANTITY_META));
}

static gdouble
number_of (const GstStructure *s, const gchar *name)
{
  gdouble value = NAN;

  gst_structure_get_double (s, name, &value);
  return value;
}

/* Number @i of an array. */
static gdouble
listed (const GstStructure *s, const gchar *name, guint i)
{
  const GValue *list = gst_structure_get_value (s, name);

  return list && i < gst_value_array_get_size (list)
             ? g_value_get_double (gst_value_array_get_value (list, i))
             : NAN;
}

/* 26 pixels of focal length: a pixel is 2 mm wide at 52 mm. The plane is
 * lowest in the lower left corner. */
static gdouble
near_height_at (gint x, gint y)
{
  gdouble u = (x - 6) / 26.0, v = (3 - y) / 26.0;
  gdouble corner = 1 + slope_x * -6 / 26.0 + slope_y * -3 / 26.0;

  return 52 - 52 * corner / (1 + slope_x * u + slope_y * v);
}

CHECK_TEST (test_a_lens_shows_the_plane_where_it_is)
{
  for (guint b = 0; b < 2; b++) {
    g_autofree gchar *properties = g_strdup_printf (
        "mm-per-pixel=2 focal-length-mm=20 sensor-width-mm=10 backend=%s",
        backends[b]);
    g_auto (Ni) ni = ni_new (properties, "tensor height", NULL);
    g_autoptr (GstBuffer) out = NULL, grey = NULL;
    g_auto (CheckMap) map = {0};

    ni_caps (&ni, NULL, WIDTH, HEIGHT);
    ni_push (&ni);
    out = check_pull (ni.tensor);
    grey = check_pull (ni.height);
    fail_unless (number_of (quantity_of (out), "axis-0-step") == 2);
    fail_unless (number_of (quantity_of (out), "axis-1-step") == -2);
    fail_unless (number_of (quantity_of (out), "focal-length") == 26);
    fail_unless (number_of (quantity_of (grey), "focal-length") == 26);
    map = check_map (out, GST_MAP_READ);
    for (gint i = 0; i < WIDTH * HEIGHT; i++) {
      gdouble expected = near_height_at (i % WIDTH, i / WIDTH);

      fail_unless (fabs (((gfloat *) map.data)[i] - expected) < 2e-3,
          "pixel %d is %g high, not %g", i, ((gfloat *) map.data)[i], expected);
    }
  }
}

CHECK_TEST (test_without_a_lens_axes_say_nothing_of_it)
{
  g_auto (Ni) ni = ni_new ("sensor-width-mm=10", "tensor", NULL);
  g_autoptr (GstBuffer) out = NULL;

  ni_caps (&ni, NULL, WIDTH, HEIGHT);
  ni_push (&ni);
  out = check_pull (ni.tensor);
  assert_tensor (out, WIDTH, HEIGHT, 1, 1e-4);
  fail_unless (!gst_structure_has_field (quantity_of (out), "focal-length"));
}

/* All of the plane is taken off; the message tells its slopes. */
CHECK_TEST (test_a_flattened_plane_is_flat)
{
  for (guint b = 0; b < 2; b++) {
    g_autofree gchar *properties = g_strdup_printf (
        "flatten=plane mm-per-pixel=2 backend=%s", backends[b]);
    g_auto (Ni) ni = ni_new (properties, "tensor mesh", "ANY");
    g_autoptr (GstBuffer) out = NULL, mesh = NULL;
    g_autoptr (GstMessage) message = NULL;
    g_auto (CheckMap) map = {0};
    const GstStructure *s;
    gfloat normal[3];

    ni_caps (&ni, NULL, WIDTH, HEIGHT);
    ni_push (&ni);
    out = check_pull (ni.tensor);
    map = check_map (out, GST_MAP_READ);
    for (gint i = 0; i < WIDTH * HEIGHT; i++)
      fail_unless (fabs (((gfloat *) map.data)[i]) < 1e-4, "pixel %d is %g", i,
          ((gfloat *) map.data)[i]);
    message = check_message (ni.bus, GST_MESSAGE_ELEMENT);
    s = gst_message_get_structure (message);
    fail_unless (number_of (s, "flatten-share") == 1);
    fail_unless (number_of (s, "flatten-deviation") < 1e-4);
    fail_unless (fabs (listed (s, "removed", 1) - slope_x) < 1e-4);
    fail_unless (fabs (listed (s, "removed", 2) - slope_y) < 1e-4);
    fail_unless (fabs (number_of (s, "lowest")) < 1e-4);
    fail_unless (!gst_structure_has_field (s, "point-residuals"));
    mesh = check_pull (ni.mesh); /* PLY: a position, and its normal */
    {
      g_auto (CheckMap) ply = check_map (mesh, GST_MAP_READ);

      memcpy (normal,
          g_strstr_len ((gchar *) ply.data, 400, "end_header\n") + 11 + 12, 12);
    }
    fail_unless (fabs (normal[0]) < 1e-4 && fabs (normal[1]) < 1e-4 &&
                     fabs (normal[2] - 1) < 1e-4,
        "the normal is %g %g %g", normal[0], normal[1], normal[2]);
  }
}

CHECK_TEST (test_what_cannot_be_flattened_warns_and_stays)
{
  g_auto (Ni) ni = ni_new ("flatten=plane", "tensor", NULL);
  g_autoptr (GstBuffer) out = NULL;

  ni_caps (&ni, NULL, 1, 31);
  ni_push (&ni);
  check_warning (ni.bus, STREAM, FAILED, "31 pixels with a height");
  out = check_pull (ni.tensor);
  assert_tensor (out, 1, 31, 1, 1e-4);
}

/* Returns: the message of one map of the plane, whose heights are @above those
 * from the lowest point */
static GstMessage *
push_with_points (const gchar *properties, gdouble above)
{
  g_auto (Ni) ni = ni_new (properties, "tensor", NULL);
  g_autoptr (GstBuffer) out = NULL;
  g_auto (CheckMap) map = {0};

  ni_caps (&ni, NULL, WIDTH, HEIGHT);
  ni_push (&ni);
  out = check_pull (ni.tensor);
  map = check_map (out, GST_MAP_READ);
  for (gint i = 0; i < WIDTH * HEIGHT; i++) {
    gdouble expected = above + height_at (i % WIDTH, i / WIDTH, HEIGHT);

    fail_unless (fabs (((gfloat *) map.data)[i] - expected) < 1e-3,
        "pixel %d is %g high, not %g", i, ((gfloat *) map.data)[i], expected);
  }
  return check_message (ni.bus, GST_MESSAGE_ELEMENT);
}

/* The plane is 4 high at (7, 4), and 1.75 at (1.5, 2). */
CHECK_TEST (test_known_points_set_the_height)
{
  g_autofree gchar *path = check_path_of ("points.csv");
  g_autofree gchar *by_file = g_strdup_printf ("points-location=%s", path);
  const gchar *const texts[] = {
      "x,y,height-mm\n# the rim\n7,4,104\n\n1.5, 2 , 102.75 # and a\r\n",
      "7 4 104\n1.5\t2\t102.75", "7;4;104;\n1.5;2;102.75;\n"};
  GstMessage *message = push_with_points ("known-points=<7,4,104>", 100 - 0);
  const GstStructure *s = gst_message_get_structure (message);

  fail_unless (fabs (height_at (7, 4, HEIGHT) - 4) < 1e-9);
  fail_unless (fabs (number_of (s, "lowest") - 100) < 1e-3);
  fail_unless (
      fabs (number_of (s, "offset") + number_of (s, "scale") - 100) < 1e-3);
  fail_unless (fabs (listed (s, "point-residuals", 0)) < 1e-4);
  fail_unless (!gst_structure_has_field (s, "flatten-share"));
  gst_message_unref (message);
  /* the second is 1 too high: half of it for each */
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    fail_unless (g_file_set_contents (path, texts[i], -1, NULL));
    message = push_with_points (by_file, 100.5);
    s = gst_message_get_structure (message);
    fail_unless (fabs (listed (s, "point-residuals", 0) - 0.5) < 1e-3);
    fail_unless (fabs (listed (s, "point-residuals", 1) + 0.5) < 1e-3);
    gst_message_unref (message);
  }
}

/* The second point is at a pixel without a normal; then none is left. */
CHECK_TEST (test_a_point_in_a_hole_is_left_out_with_a_warning)
{
  g_auto (Ni) ni = ni_new ("known-points=<7,4,104,1.5,2,99>", "tensor", NULL);

  ni_caps (&ni, NULL, WIDTH, HEIGHT);
  for (guint n_left = 1; n_left < 3; n_left++) {
    GstBuffer *in = plane_of (&ni);
    GstMessage *message;
    GstBuffer *out;

    gst_buffer_memset (in, 12 * (2 * WIDTH + 1), 0, 12);
    if (n_left == 2)
      gst_buffer_memset (in, 12 * (4 * WIDTH + 7), 0, 12);
    check_push (ni.sink, in, GST_FLOW_OK);
    out = check_pull (ni.tensor);
    gst_buffer_unref (out);
    message = check_message (ni.bus, GST_MESSAGE_ELEMENT);
    check_warning (ni.bus, STREAM, FAILED,
        n_left == 1 ? "Point 2 of known height is left out"
                    : "Point 1 of known height is left out");
    {
      const GstStructure *s = gst_message_get_structure (message);
      gdouble first = listed (s, "point-residuals", 0);

      fail_unless (n_left == 1 ? fabs (first) < 1e-3 : isnan (first));
      fail_unless (isnan (listed (s, "point-residuals", 1)));
    }
    gst_message_unref (message);
  }
}

CHECK_TEST (test_settings_that_contradict_are_refused)
{
  const struct {
    const gchar *properties, *words;
  } cases[] = {
      {"focal-length-mm=50", "Set sensor-width-mm"},
      {"focal-length-mm=1 sensor-width-mm=100", "The focal length is 0.13"},
      {"known-points=<1,2>", "known-points has 2 numbers"},
      {"known-points=<1,2,0,3,4,0,5,6,0>", "lie on a line"},
      {"known-points=<99,2,0>", "outside of the map of 13 x 7"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Ni) ni = ni_new (cases[i].properties, "tensor", NULL);
    g_autoptr (GstMessage) message = NULL;
    g_autoptr (GError) why = NULL;

    ni_caps (&ni, NULL, WIDTH, HEIGHT);
    gst_harness_push (ni.sink, plane_of (&ni));
    message = check_message (ni.bus, GST_MESSAGE_ERROR);
    gst_message_parse_error (message, &why, NULL);
    fail_unless (strstr (why->message, cases[i].words) != NULL,
        "\"%s\" does not say \"%s\"", why->message, cases[i].words);
  }
}

/* They are not used, and the stream goes on as it was. */
CHECK_TEST (test_points_that_contradict_while_playing_warn)
{
  g_auto (Ni) ni = ni_new ("", "tensor", NULL);
  g_autoptr (GstBuffer) out = NULL;

  ni_caps (&ni, NULL, WIDTH, HEIGHT);
  ni_push (&ni);
  gst_buffer_unref (check_pull (ni.tensor));
  gst_util_set_object_arg (
      G_OBJECT (ni.element), "known-points", "<1,2,0,3,4,0,5,6,0>");
  ni_push (&ni);
  check_warning (ni.bus, LIBRARY, SETTINGS, "lie on a line");
  out = check_pull (ni.tensor);
  assert_tensor (out, WIDTH, HEIGHT, 1, 1e-4);
}

CHECK_TEST (test_files_of_points_that_are_none_are_refused)
{
  const struct {
    const gchar *text, *words;
    gssize size;
  } cases[] = {
      {"", "has no row", -1},
      {"x y height\n", "has no row", -1},
      {"1 2 3\nname 4 5\n", "line 2: \"name 4 5\"", -1},
      {"1 2\n", "line 1", -1},
      {"1 2 3 4\n", "line 1", -1},
      {"1 2 3mm\n", "line 1", -1},
      {"1 2 3\0 4", "is no text file", 8},
      {"\xff\xfe", "is no text file", -1},
  };
  g_autofree gchar *path = check_path_of ("none.txt");
  g_autofree gchar *properties = g_strdup_printf ("points-location=%s", path);
  g_autoptr (GString) many = g_string_new ("");

  for (guint i = 0; i < 65; i++)
    g_string_append (many, "1 2 3\n");
  for (guint i = 0; i <= G_N_ELEMENTS (cases); i++) {
    gboolean is_many = i == G_N_ELEMENTS (cases);
    g_autoptr (GstMessage) message = NULL;
    g_autoptr (GError) why = NULL;
    const gchar *words = is_many ? "more than 64 points" : cases[i].words;

    fail_unless (g_file_set_contents (path, is_many ? many->str : cases[i].text,
        is_many ? -1 : cases[i].size, NULL));
    {
      g_auto (Ni) ni = ni_new (properties, "tensor", NULL);

      ni_caps (&ni, NULL, WIDTH, HEIGHT);
      gst_harness_push (ni.sink, plane_of (&ni));
      message = check_message (ni.bus, GST_MESSAGE_ERROR);
    }
    gst_message_parse_error (message, &why, NULL);
    fail_unless (strstr (why->message, words) != NULL,
        "\"%s\" does not say \"%s\"", why->message, words);
  }
}

/* --- jumps ---------------------------------------------------------------- */

enum { STEP_WIDTH = 129, STEP_HEIGHT = 97 };

/* A level half beside one that rises to the back with a slope of 1. */
static GstBuffer *
step_of_planes (void)
{
  gsize n_pixels = STEP_WIDTH * STEP_HEIGHT;
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, 12 * n_pixels, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (gsize i = 0; i < n_pixels; i++) {
    gfloat *n = (gfloat *) map.data + 3 * i; /* of any length */

    n[0] = 0;
    n[1] = i % STEP_WIDTH > STEP_WIDTH / 2 ? -1 : 0;
    n[2] = 1;
  }
  return buffer;
}

/* Returns: the rise of column @x from the front to the back */
static gdouble
rise_beside_a_step (const gchar *properties, gint x)
{
  g_auto (Ni) ni = ni_new (properties, "tensor", NULL);
  g_autoptr (GstBuffer) out = NULL;
  g_auto (CheckMap) map = {0};
  const gfloat *z;

  ni_caps (&ni, NULL, STEP_WIDTH, STEP_HEIGHT);
  check_push (ni.sink, step_of_planes (), GST_FLOW_OK);
  out = check_pull (ni.tensor);
  map = check_map (out, GST_MAP_READ);
  z = (const gfloat *) map.data + x;
  return z[0] - z[STEP_WIDTH * (STEP_HEIGHT - 1)];
}

CHECK_TEST (test_bilateral_keeps_a_step_that_poisson_bends)
{
  const gint level = STEP_WIDTH / 2 - 8, slope = STEP_WIDTH / 2 + 8;

  for (guint b = 0; b < 2; b++) {
    g_autofree gchar *kept =
        g_strdup_printf ("method=bilateral backend=%s", backends[b]);
    g_autofree gchar *uncut = g_strdup_printf (
        "method=bilateral stiffness=0 backend=%s", backends[b]);
    g_autofree gchar *bent =
        g_strdup_printf ("method=poisson backend=%s", backends[b]);
    gdouble rise = rise_beside_a_step (kept, level);

    /* by a little, as the low steps in the middle are not cut */
    fail_unless (fabs (rise) < 2, "the level plane rises by %g", rise);
    rise = rise_beside_a_step (kept, slope);
    fail_unless (fabs (rise - 96) < 2, "the other rises by %g", rise);
    fail_unless (rise_beside_a_step (bent, level) > 10);
    fail_unless (rise_beside_a_step (uncut, level) > 10);
  }
}

CHECK_TEST (test_without_a_peer_a_message_tells_the_range)
{
  g_auto (Ni) ni = ni_new ("", "", NULL);
  const GstStructure *s;
  g_autoptr (GstMessage) message = NULL;
  guint64 valid;

  ni_caps (&ni, "RGB", WIDTH, HEIGHT);
  ni_push (&ni);
  message = check_message (ni.bus, GST_MESSAGE_ELEMENT);
  s = gst_message_get_structure (message);
  fail_unless (gst_structure_has_name (s, "normalintegrate-height"));
  fail_unless (gst_structure_get_uint64 (s, "valid", &valid));
  fail_unless_equals_uint64 (valid, WIDTH * HEIGHT);
}

CHECK_TEST (test_map_without_normals_warns_and_has_no_height)
{
  g_auto (Ni) ni = ni_new ("", "height tensor", NULL);
  g_autoptr (GstBuffer) in = NULL, out = NULL;
  GstVideoInfo grey;
  GstMapInfo map;

  ni_caps (&ni, "RGB", WIDTH, HEIGHT);
  in = check_noise (&ni.info, 0);
  gst_buffer_memset (in, 0, 0, -1);
  check_push (ni.sink, in, GST_FLOW_OK);
  check_warning (ni.bus, STREAM, FAILED, "no normal");
  out = check_pull (ni.tensor);
  fail_unless (gst_buffer_map (out, &map, GST_MAP_READ));
  for (guint i = 0; i < WIDTH * HEIGHT; i++)
    fail_unless (isnan (((gfloat *) map.data)[i]));
  gst_buffer_unmap (out, &map);
  gst_buffer_unref (out);
  out = check_pull (ni.height);
  grey = check_info ("GRAY16_LE", WIDTH, HEIGHT);
  in = check_noise (&grey, 0);
  gst_buffer_memset (in, 0, 0, -1);
  check_same_pixels (out, in, &grey);
}

CHECK_TEST (test_tensor_of_another_shape_is_refused)
{
  const gchar *dimensions[] = {
      "1:13:7:1", "3:13:7:2", "3:13", "3:0:7:1", "3:70000:7:1", "nonsense"};

  for (guint i = 0; i < G_N_ELEMENTS (dimensions); i++) {
    g_autofree gchar *caps = g_strdup_printf (
        "other/tensors,format=static,num_tensors=1,types=float32,"
        "dimensions=(string)%s,framerate=0/1",
        dimensions[i]);
    g_auto (Ni) ni = ni_new ("", "height", NULL);

    gst_harness_set_src_caps_str (ni.sink, caps);
    check_message_says (check_message (ni.bus, GST_MESSAGE_ERROR),
        i == 0 ? GST_LIBRARY_ERROR : GST_STREAM_ERROR,
        i == 0 ? (gint) GST_LIBRARY_ERROR_SETTINGS
               : (gint) GST_STREAM_ERROR_FORMAT,
        i == 0 ? "1 channels" : dimensions[i]);
  }
}

CHECK_TEST (test_buffer_that_is_too_small_is_an_error)
{
  g_auto (Ni) ni = ni_new ("", "height", NULL);

  ni_caps (&ni, NULL, WIDTH, HEIGHT);
  check_push (
      ni.sink, gst_buffer_new_allocate (NULL, 100, NULL), GST_FLOW_ERROR);
  gst_message_unref (check_message (ni.bus, GST_MESSAGE_ERROR));
}

CHECK_TEST (test_eos_and_flush_reach_every_output)
{
  g_auto (Ni) ni = ni_new ("", "height mesh", NULL);
  GstSegment segment;
  GstBuffer *out;

  ni_caps (&ni, "RGB", WIDTH, HEIGHT);
  gst_harness_push_event (ni.sink, gst_event_new_flush_start ());
  gst_harness_push_event (ni.sink, gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (ni.sink, gst_event_new_segment (&segment));
  ni_push (&ni);
  out = check_pull (ni.height);
  gst_buffer_unref (out);
  gst_harness_push_event (ni.sink, gst_event_new_eos ());
  for (guint i = 0; i < 2; i++) {
    GstEvent *event;
    gboolean eos = FALSE;

    while ((event = gst_harness_try_pull_event (i ? ni.mesh : ni.height))) {
      eos = eos || GST_EVENT_TYPE (event) == GST_EVENT_EOS;
      gst_event_unref (event);
    }
    fail_unless (eos);
  }
}

CHECK_MOCK_TEST (test_cpu_goes_on_when_the_device_fails)
{
  guint n_warnings = 0;

  for (gulong nth = 1; nth < 40; nth++) {
    g_auto (Ni) ni = ni_new ("backend=cuda", "height tensor", NULL);
    GstBuffer *out;

    ni_caps (&ni, "RGBA64_LE", WIDTH, HEIGHT);
    ni_push (&ni);
    gst_buffer_unref (check_pull (ni.tensor));
    gst_buffer_unref (check_pull (ni.height));
    /* auto would not have begun with CUDA for so small a map */
    g_object_set (ni.element, "backend", 0, NULL);
    check_count_messages (ni.bus, GST_MESSAGE_WARNING); /* that it is late */
    imk_inject_failure (nth, FALSE);
    ni_push (&ni);
    imk_inject_failure (0, FALSE);
    out = check_pull (ni.tensor);
    assert_tensor (out, WIDTH, HEIGHT, 1, 1e-4);
    gst_buffer_unref (out);
    gst_buffer_unref (check_pull (ni.height));
    n_warnings += check_count_messages (ni.bus, GST_MESSAGE_WARNING);
  }
  fail_unless (n_warnings > 3);
}

CHECK_MOCK_TEST (test_cuda_that_fails_is_an_error_without_leak)
{
  guint n_errors = 0;

  for (gulong nth = 1; nth < 40; nth++) {
    g_auto (Ni) ni = ni_new ("backend=cuda", "height tensor mesh", NULL);

    ni_caps (&ni, "RGB", WIDTH, HEIGHT);
    imk_inject_failure (nth, FALSE);
    gst_harness_push (ni.sink, plane_of (&ni));
    imk_inject_failure (0, FALSE);
    n_errors += check_count_messages (ni.bus, GST_MESSAGE_ERROR);
  }
  fail_unless (n_errors > 3);
}

static gpointer
push_in_thread (gpointer ni)
{
  ni_push (ni);
  return NULL;
}

CHECK_TEST (test_pads_come_and_go_while_another_waits)
{
  g_auto (Ni) ni = ni_new ("", "tensor", NULL);
  CheckWaiting w;
  GstPad *height;
  g_autoptr (GstBuffer) out = NULL;

  ni_caps (&ni, NULL, WIDTH, HEIGHT);
  check_wait_at (&w, ni.element, "tensor", push_in_thread, &ni);
  height = gst_element_request_pad_simple (ni.element, "height");
  fail_unless (height != NULL);
  gst_element_release_request_pad (ni.element, height);
  gst_object_unref (height);
  check_release (&w);
  out = check_pull (ni.tensor);
  assert_tensor (out, WIDTH, HEIGHT, 1, 1e-4);
}

CHECK_TEST (test_a_pad_may_go_while_it_pushes)
{
  g_auto (Ni) ni = ni_new ("", "height tensor", NULL);
  CheckWaiting w;

  ni_caps (&ni, NULL, WIDTH, HEIGHT);
  check_wait_at (&w, ni.element, "height", push_in_thread, &ni);
  gst_element_release_request_pad (ni.element, w.pad);
  check_release (&w); /* without a failed push */
  gst_buffer_unref (check_pull (ni.tensor));
  ni_push (&ni);
  gst_buffer_unref (check_pull (ni.tensor));
}

/* --- meshes --------------------------------------------------------------- */

/* @albedo: to its pad, of WIDTH x HEIGHT pixels of GRAY8, all @level */
static void
push_albedo (GstHarness *albedo, guint8 level)
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);
  GstBuffer *buffer = check_noise (&info, 0);

  gst_buffer_memset (buffer, 0, level, -1);
  fail_unless_equals_int (gst_harness_push (albedo, buffer), GST_FLOW_OK);
}

static GstHarness *
albedo_new (Ni *ni)
{
  GstHarness *h = gst_harness_new_with_element (ni->element, "albedo", NULL);

  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY8,width=13,height=7,framerate=25/1");
  return h;
}

/* Fails unless @path is a PLY of the plane whose colours are all @level. */
static void
check_ply (const gchar *path, guint8 level)
{
  g_autofree gchar *bytes = NULL;
  const gchar *vertex;
  gsize size;

  fail_unless (g_file_get_contents (path, &bytes, &size, NULL));
  vertex = strstr (bytes, "end_header\n") + strlen ("end_header\n");
  for (gint i = 0; i < WIDTH * HEIGHT; i++, vertex += 35) {
    gfloat z;

    memcpy (&z, vertex + 8, sizeof (z));
    fail_unless (fabs (z - height_at (i % WIDTH, i / WIDTH, HEIGHT)) < 1e-3,
        "vertex %d is %g high", i, z);
    for (gint k = 32; k < 35; k++)
      fail_unless_equals_int ((guint8) vertex[k], level);
  }
  fail_unless_equals_uint64 (
      vertex - bytes + 13 * 2 * (WIDTH - 1) * (HEIGHT - 1), size);
}

CHECK_TEST (test_a_mesh_is_a_file_without_any_pad)
{
  g_autofree gchar *path = check_path_of ("mesh-%02d.ply");

  for (guint b = 0; b < 2; b++) {
    g_autofree gchar *properties =
        g_strdup_printf ("backend=%s mesh-location=%s", backends[b], path);
    g_auto (Ni) ni = ni_new (properties, "", NULL);
    g_autoptr (CheckHarness) albedo = albedo_new (&ni);
    const guint8 shown[] = {0, 188, 255}; /* of 0, 0.5, 1 */

    ni_caps (&ni, "RGBA64_LE", WIDTH, HEIGHT);
    for (guint i = 0; i < 3; i++) {
      g_autofree gchar *name = g_strdup_printf ("mesh-%02u.ply", i);
      g_autofree gchar *file = check_path_of (name);

      push_albedo (albedo, (guint8) (i * 127.5 + 0.5));
      ni_push (&ni);
      check_ply (file, shown[i]);
    }
    gst_harness_push_event (ni.sink, gst_event_new_eos ());
    gst_message_unref (check_message (ni.bus, GST_MESSAGE_EOS));
  }
}

static gpointer
push_for_flow (gpointer ni)
{
  return GINT_TO_POINTER (gst_harness_push (((Ni *) ni)->sink, plane_of (ni)));
}

/* Normals wait for no albedo after a flush, after its end, or when its pad has
 * been removed. */
CHECK_TEST (test_normals_do_not_wait_for_an_albedo_that_will_not_come)
{
  for (guint way = 0; way < 4; way++) {
    g_auto (Ni) ni = ni_new ("", "mesh", NULL);
    g_autoptr (CheckHarness) albedo = albedo_new (&ni);
    GstFlowReturn expected =
        way == 1 || way == 3 ? GST_FLOW_FLUSHING : GST_FLOW_OK;
    GThread *thread;
    GstFlowReturn flow;

    ni_caps (&ni, "RGB", WIDTH, HEIGHT);
    thread = g_thread_new ("normals", push_for_flow, &ni);
    g_usleep (20000);
    if (way == 0)
      gst_harness_push_event (albedo, gst_event_new_eos ());
    else if (way == 1)
      gst_harness_push_event (ni.sink, gst_event_new_flush_start ());
    else if (way == 2)
      gst_harness_push_event (albedo, gst_event_new_flush_start ());
    else
      gst_element_set_state (ni.element, GST_STATE_READY);
    flow = GPOINTER_TO_INT (g_thread_join (thread));
    fail_unless (flow == expected, "way %u: %s", way, gst_flow_get_name (flow));
  }
}

static gpointer
push_two (gpointer albedo)
{
  push_albedo (albedo, 0);
  push_albedo (albedo, 255);
  push_albedo (albedo, 128);
  return NULL;
}

/* Each map takes one, however early they arrive; the last one stays. */
CHECK_TEST (test_albedos_wait_for_their_normals)
{
  g_autofree gchar *path = check_path_of ("one.ply");
  g_autofree gchar *properties = g_strdup_printf ("mesh-location=%s", path);
  const guint8 shown[] = {0, 255, 188, 188};
  g_auto (Ni) ni = ni_new (properties, "", NULL);
  g_autoptr (CheckHarness) albedo = albedo_new (&ni);
  GThread *thread;

  ni_caps (&ni, "RGBA64_LE", WIDTH, HEIGHT);
  thread = g_thread_new ("albedo", push_two, albedo);
  for (guint i = 0; i < 4; i++) {
    if (i == 3) {
      g_thread_join (thread);
      gst_harness_push_event (albedo, gst_event_new_eos ());
    }
    ni_push (&ni);
    check_ply (path, shown[i]);
  }
}

CHECK_TEST (test_a_mesh_that_cannot_be_written_is_an_error)
{
  g_auto (Ni) ni = ni_new ("mesh-location=/nowhere/at/all.glb", "", NULL);

  ni_caps (&ni, "RGB", WIDTH, HEIGHT);
  check_push (ni.sink, plane_of (&ni), GST_FLOW_ERROR);
  check_error (ni.bus, RESOURCE, WRITE, "mesh-location: ");
}
