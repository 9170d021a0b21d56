/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element shoverlay, behind shcentroid: what it draws where, on which
 * formats, and that nothing in a meta can make it fail. */
#include "check-common.h"
#include "gstimagingresults.h"

/* Lines of 3 pixels: the middle one is covered whole. */
#define STYLE \
  "line-width=3 black=0 white=255 gamma=1 cell-color=0xff0000ff " \
  "centroid-color=0xff00ff00 arrow-color=0xffffff00 flag-color=0xffff0000 " \
  "reference-color=0xff00ffff "
#define GRID "columns=2 rows=1 pitch-x=40 pitch-y=40 "

enum { WIDTH = 80, HEIGHT = 40 };

static GstHarness *
harness_new (const gchar *launch, const gchar *in, const gchar *out)
{
  GstHarness *h = gst_harness_new_parse (launch);
  g_autofree gchar *in_caps = check_caps_string (in, WIDTH, HEIGHT);
  g_autofree gchar *out_caps = g_strdup_printf ("video/x-raw,format=%s", out);

  gst_harness_set_sink_caps_str (h, out_caps);
  gst_harness_set_src_caps_str (h, in_caps);
  return h;
}

static GstHarness *
sh_new (const gchar *sh, const gchar *overlay, const gchar *out)
{
  g_autofree gchar *launch = g_strdup_printf (
      "shcentroid name=sh backend=cpu %s ! shoverlay name=o " STYLE "%s", sh,
      overlay);

  return harness_new (launch, "GRAY8", out);
}

/* One pixel of light in each cell that has a place; 10 elsewhere. */
static GstBuffer *
spots_new (gint x0, gint y0, gint x1, gint y1)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, WIDTH * HEIGHT, NULL);

  gst_buffer_memset (buffer, 0, 0, WIDTH * HEIGHT);
  if (x0 >= 0)
    gst_buffer_memset (buffer, y0 * WIDTH + x0, 200, 1);
  if (x1 >= 0)
    gst_buffer_memset (buffer, y1 * WIDTH + x1, 200, 1);
  GST_BUFFER_PTS (buffer) = 0;
  return buffer;
}

static GstBuffer *
draw (GstHarness *h, GstBuffer *in)
{
  check_push (h, in, GST_FLOW_OK);
  return check_pull (h);
}

/* 0xRRGGBB of BGRx. */
static guint32
pixel (GstBuffer *buffer, gint width, gint x, gint y)
{
  guint8 bytes[4];

  fail_unless_equals_int (
      gst_buffer_extract (buffer, 4 * (y * width + x), bytes, 4), 4);
  return bytes[2] << 16 | bytes[1] << 8 | bytes[0];
}

static void
check_pixel (GstBuffer *buffer, gint x, gint y, guint32 expected)
{
  guint32 found = pixel (buffer, WIDTH, x, y);

  fail_unless (
      found == expected, "(%d, %d) is %06x, not %06x", x, y, found, expected);
}

static guint
count (GstBuffer *buffer, guint32 colour)
{
  guint n = 0;

  for (gint y = 0; y < HEIGHT; y++)
    for (gint x = 0; x < WIDTH; x++)
      n += pixel (buffer, WIDTH, x, y) == colour;
  return n;
}

CHECK_TEST (test_every_part_is_drawn_where_it_is)
{
  g_autoptr (CheckHarness) h = sh_new (
      GRID, "draw=cells+centroids+arrows+references arrow-scale=2", "BGRx");
  /* the references are (19.5, 19.5) and (59.5, 19.5) */
  g_autoptr (GstBuffer) out = draw (h, spots_new (10, 12, 67, 30));

  check_pixel (out, 10, 12, 0x00ff00); /* crosses are last, on top */
  check_pixel (out, 67, 30, 0x00ff00);
  check_pixel (out, 40, 3, 0x0000ff); /* the edge between the cells */
  check_pixel (out, 0, 25, 0x0000ff);
  /* twice the slope (-9.5, -7.5) from (19.5, 19.5): on its way, at 1.7 */
  check_pixel (out, 3, 7, 0xffff00);
  check_pixel (out, 50, 12, 0x000000); /* nothing */
  fail_unless (count (out, 0x00ffff) > 0, "there are no references");
}

CHECK_TEST (test_each_part_can_be_left_out)
{
  static const struct {
    const gchar *part;
    guint32 colour;
  } parts[] = {{"cells", 0x0000ff}, {"centroids", 0x00ff00},
      {"arrows", 0xffff00}, {"flags", 0xff0000}, {"references", 0x00ffff}};

  for (guint k = 0; k < G_N_ELEMENTS (parts); k++) {
    g_autofree gchar *draw_one = g_strdup_printf ("draw=%s", parts[k].part);
    g_autoptr (CheckHarness) h = sh_new (GRID, draw_one, "BGRx");
    g_autoptr (GstBuffer) out =
        draw (h, spots_new (10, 12, -1, 0)); /* one is dark */
    for (guint m = 0; m < G_N_ELEMENTS (parts); m++) {
      guint n = count (out, parts[m].colour);

      fail_unless (m == k ? n > 0 : n == 0, "draw=%s: %u pixels of %s",
          parts[k].part, n, parts[m].part);
    }
  }
}

CHECK_TEST (test_a_dark_cell_is_crossed_out_and_has_no_centroid)
{
  g_autoptr (CheckHarness) h = sh_new (GRID, "draw=centroids+flags", "BGRx");
  g_autoptr (GstBuffer) out = draw (h, spots_new (-1, 0, 67, 30));

  check_pixel (out, 20, 20, 0xff0000); /* the middle of the dark cell */
  check_pixel (out, 67, 30, 0x00ff00);
  for (gint x = 0; x < 40; x++)
    fail_unless (pixel (out, WIDTH, x, 19) != 0x00ff00, "a cross at %d", x);
}

CHECK_TEST (test_the_orders_of_colours_are_one_picture)
{
  g_autoptr (CheckHarness) h =
      sh_new (GRID, "draw=cells+centroids+arrows", "BGRx");
  g_autoptr (CheckHarness) g =
      sh_new (GRID, "draw=cells+centroids+arrows", "RGBx");
  g_autoptr (GstBuffer) bgr = draw (h, spots_new (10, 12, 67, 30));
  g_autoptr (GstBuffer) rgb = draw (g, spots_new (10, 12, 67, 30));

  for (gint y = 0; y < HEIGHT; y++)
    for (gint x = 0; x < WIDTH; x++) {
      guint32 a = pixel (bgr, WIDTH, x, y), b = pixel (rgb, WIDTH, x, y);

      b = (b & 0xff) << 16 | (b & 0xff00) | b >> 16;
      fail_unless (a == b, "(%d, %d): %06x and %06x", x, y, a, b);
    }
}

CHECK_TEST (test_grey_is_stretched_by_the_formula)
{
  g_autoptr (CheckHarness) h = harness_new (
      "shcentroid backend=cpu " GRID "! shoverlay draw=0 black=1000 white=3000 "
      "gamma=2",
      "GRAY16_LE", "BGRx");
  const guint16 values[] = {0, 1000, 1500, 2000, 3000, 65535};
  const guint8 expected[] = {0, 0, 128, 180, 255, 255}; /* 255 sqrt (part) */
  GstBuffer *in = gst_buffer_new_allocate (NULL, 2 * WIDTH * HEIGHT, NULL);
  g_autoptr (GstBuffer) out = NULL;

  gst_buffer_memset (in, 0, 0, 2 * WIDTH * HEIGHT);
  for (guint k = 0; k < G_N_ELEMENTS (values); k++) {
    guint16 value = GUINT16_TO_LE (values[k]);

    gst_buffer_fill (in, 2 * k, &value, 2);
  }
  out = draw (h, in);
  for (guint k = 0; k < G_N_ELEMENTS (values); k++)
    check_pixel (out, k, 0, expected[k] * 0x010101u);
}

/* A camera of 12 bits whose darkest counts are 200: black, and a spot white. */
CHECK_TEST (test_contrast_is_found_by_itself)
{
  g_autoptr (CheckHarness) h = harness_new (
      "shcentroid backend=cpu " GRID "! shoverlay draw=0", "GRAY16_LE", "BGRx");
  GstBuffer *in = gst_buffer_new_allocate (NULL, 2 * WIDTH * HEIGHT, NULL);
  g_autoptr (GstBuffer) out = NULL;

  for (guint k = 0; k < WIDTH * HEIGHT; k++) {
    guint16 value = GUINT16_TO_LE (k < 64 ? 4000 : 200);

    gst_buffer_fill (in, 2 * k, &value, 2);
  }
  out = draw (h, in);
  check_pixel (out, 5, 0, 0xffffff);
  check_pixel (out, 5, 20, 0x000000);
}

/* The meta crosses converters and scalers; the drawing is scaled with it. */
CHECK_TEST (test_the_drawing_follows_a_scaled_frame)
{
  g_autoptr (CheckHarness) h = harness_new (
      "shcentroid backend=cpu " GRID "! videoconvert ! videoscale ! "
      "video/x-raw,format=BGRx,width=160,height=120 ! shoverlay "
      "draw=centroids " STYLE,
      "GRAY8", "BGRx");
  g_autoptr (GstBuffer) out = draw (h, spots_new (10, 12, 67, 30));
  gint x = (gint) (10.5 * 2), y = (gint) (12.5 * 3);

  fail_unless (pixel (out, 160, x, y) == 0x00ff00, "(%d, %d) is %06x", x, y,
      pixel (out, 160, x, y));
}

/* Of a vector of slopes centroids are reference plus slope, in radians too. */
/* cairo's own pictures end at 32767. */
CHECK_TEST (test_frames_of_any_size_are_drawn_on)
{
  enum { LONG = 32768 + 40 };
  static const gint sizes[][2] = {{LONG, 40}, {40, LONG}};

  for (guint k = 0; k < G_N_ELEMENTS (sizes); k++) {
    gint width = sizes[k][0], height = sizes[k][1];
    /* two cells with a spot each, the second beyond cairo's end */
    g_autofree gchar *launch = g_strdup_printf (
        "shcentroid backend=cpu columns=%u rows=%u pitch-x=%d pitch-y=%d ! "
        "shoverlay draw=centroids " STYLE,
        k == 0 ? 2 : 1, k == 0 ? 1 : 2, k == 0 ? LONG / 2 : 40,
        k == 0 ? 40 : LONG / 2);
    g_autofree gchar *caps = check_caps_string ("GRAY8", width, height);
    g_autoptr (CheckHarness) h = gst_harness_new_parse (launch);
    GstBuffer *in = gst_buffer_new_allocate (NULL, width * height, NULL), *out;
    gint x = k == 0 ? 32780 : 20, y = k == 0 ? 20 : 32780;

    gst_harness_set_sink_caps_str (h, "video/x-raw,format=BGRx");
    gst_harness_set_src_caps_str (h, caps);
    gst_buffer_memset (in, 0, 0, width * height);
    gst_buffer_memset (in, y * width + x, 200, 1);
    gst_buffer_memset (in, 20 * width + 20, 200, 1);
    out = draw (h, in);
    fail_unless_equals_int_hex (pixel (out, width, x, y), 0x00ff00);
    fail_unless_equals_int_hex (pixel (out, width, 20, 20), 0x00ff00);
    fail_unless_equals_int_hex (pixel (out, width, x - 12, y - 12), 0);
    gst_buffer_unref (out);
  }
}

CHECK_TEST (test_all_kinds_of_fields_are_drawn)
{
  static const gchar *const fields[] = {"fields=all", "fields=xy",
      "fields=slopes",
      "fields=slopes slope-unit=rad pixel-size=10 focal-length=5",
      "invalid-policy=nan"};

  for (guint k = 0; k < G_N_ELEMENTS (fields); k++) {
    g_autofree gchar *sh = g_strdup_printf (GRID "%s", fields[k]);
    g_autoptr (CheckHarness) h =
        sh_new (sh, "draw=centroids+arrows+text", "BGRx");
    g_autoptr (GstBuffer) out = draw (h, spots_new (10, 12, 67, 10));

    check_pixel (out, 10, 12, 0x00ff00);
    check_pixel (out, 67, 10, 0x00ff00);
    gst_buffer_unref (out);
    out = draw (h, spots_new (-1, 0, -1, 0));
  }
}

CHECK_TEST (test_the_element_to_draw_can_be_chosen)
{
  g_autoptr (CheckHarness) h =
      harness_new ("shcentroid name=a backend=cpu " GRID
                   "! shcentroid name=b backend=cpu columns=1 "
                   "rows=1 pitch-x=80 pitch-y=40 ! shoverlay "
                   "draw=cells results=b " STYLE,
          "GRAY8", "BGRx");
  g_autoptr (GstBuffer) out = draw (h, spots_new (10, 12, 67, 30));

  check_pixel (out, 40, 20, 0x000000); /* an edge of a, none of b */
  check_pixel (out, 0, 20, 0x0000ff);
}

CHECK_TEST (test_without_results_the_picture_passes_with_one_warning)
{
  g_autoptr (CheckHarness) h = harness_new ("shoverlay name=o", "BGRx", "BGRx");
  GstVideoInfo info = check_info ("BGRx", WIDTH, HEIGHT);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  for (guint k = 0; k < 3; k++) {
    g_autoptr (GstBuffer) in = check_noise (&info, k);
    g_autoptr (GstBuffer) out = draw (h, gst_buffer_ref (in));

    for (gint y = 0; y < HEIGHT; y++)
      for (gint x = 0; x < WIDTH; x++)
        fail_unless (pixel (out, WIDTH, x, y) == pixel (in, WIDTH, x, y));
  }
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 1);
}

/* Whatever a stranger writes into the meta is drawn or left alone. */
CHECK_TEST (test_spoilt_results_do_no_harm)
{
  static const gchar *const spoils[] = {"rows=(int)1000000",
      "columns=(int)1000000", "rows=(int)-1", "columns=(int)0",
      "ref-width=(int)0", "id=(string)other", "fields=(string)\"\"",
      "fields=(string)\"a,b,c,d,e,f,g,h,i,j,k,x,y\"", "slope-scale=(double)0",
      "cells=(int)3", "data=(int)3", "by-field=(boolean)true"};
  GstVideoInfo info = check_info ("BGRx", WIDTH, HEIGHT);

  for (guint k = 0; k < G_N_ELEMENTS (spoils); k++) {
    g_autoptr (CheckHarness) sh =
        sh_new (GRID, "", "BGRx"); /* to have real results */
    g_autoptr (CheckHarness) h =
        harness_new ("shoverlay " STYLE "draw=cells+references+arrows+"
                     "centroids+flags+text",
            "BGRx", "BGRx");
    GstBuffer *drawn = draw (sh, spots_new (10, 12, -1, 0));
    GstBuffer *in = check_noise (&info, 1);
    GstStructure *result =
        gst_structure_copy (gst_imaging_results_get (drawn, "sh"));
    g_autofree gchar *text = g_strdup_printf ("s,%s;", spoils[k]);
    GstStructure *spoil = gst_structure_from_string (text, NULL);
    GstCustomMeta *meta =
        gst_buffer_add_custom_meta (in, GST_IMAGING_RESULTS_META);

    fail_unless (spoil != NULL, "%s", text);
    gst_structure_set_value (result, gst_structure_nth_field_name (spoil, 0),
        gst_structure_get_value (
            spoil, gst_structure_nth_field_name (spoil, 0)));
    gst_structure_set (gst_custom_meta_get_structure (meta), "sh",
        GST_TYPE_STRUCTURE, result, NULL);
    gst_structure_free (result);
    gst_structure_free (spoil);
    gst_buffer_unref (drawn);
    gst_buffer_unref (draw (h, in));
  }
}

CHECK_TEST (test_properties_read_back_and_change_while_playing)
{
  g_autoptr (CheckHarness) h = sh_new (GRID, "draw=centroids", "BGRx");
  g_autoptr (GstElement) o = gst_bin_get_by_name (GST_BIN (h->element), "o");
  g_autoptr (GstBuffer) out = draw (h, spots_new (10, 12, 67, 30));
  gdouble scale, line;
  guint colour;

  check_pixel (out, 10, 12, 0x00ff00);
  gst_buffer_unref (out);
  g_object_set (o, "centroid-color", 0xff123456, "arrow-scale", 7.5,
      "line-width", 4.0, NULL);
  g_object_get (o, "centroid-color", &colour, "arrow-scale", &scale,
      "line-width", &line, NULL);
  fail_unless (colour == 0xff123456 && scale == 7.5 && line == 4.0);
  out = draw (h, spots_new (10, 12, 67, 30));
  check_pixel (out, 10, 12, 0x123456);
}
