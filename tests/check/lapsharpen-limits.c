/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where, in which range and light, and from which size of change on lapsharpen
 * sharpens. */
#include <math.h>

#include "check-common.h"
#include "gstimagingarrayfile.h"

static const gchar *const backends[] = {"cpu", "cuda"};

static GstHarness *
harness_new (const gchar *properties, guint backend, const gchar *caps)
{
  g_autofree gchar *words = g_strdup_printf (
      "lapsharpen backend=%s %s", backends[backend], properties);
  g_autoptr (GError) error = NULL;
  g_autoptr (GstElement) element = gst_parse_launch (words, &error);
  GstHarness *h;

  fail_unless (element && !error, "%s", error ? error->message : "");
  h = gst_harness_new_with_element (element, "sink", "src");
  if (caps)
    gst_harness_set_src_caps_str (h, caps);
  return h;
}

#define GRAY(width, height) \
  "video/x-raw,format=GRAY8,framerate=25/1,width=" #width ",height=" #height

/* A buffer of these bytes. */
static GstBuffer *
bytes_new (const guint8 *bytes, gsize size)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, size, NULL);

  gst_buffer_fill (buffer, 0, bytes, size);
  return buffer;
}

static void
assert_bytes (
    GstBuffer *buffer, const guint8 *expected, gsize size, const gchar *what)
{
  g_autofree guint8 *found = g_malloc (size);

  fail_unless_equals_int (gst_buffer_extract (buffer, 0, found, size), size);
  for (gsize i = 0; i < size; i++)
    fail_unless (found[i] == expected[i],
        "%s: byte %" G_GSIZE_FORMAT " is %u, expected %u", what, i, found[i],
        expected[i]);
}

/* Pushes @in, and frees what comes out when it is @out. */
static void
check_bytes (const gchar *properties, guint backend, const gchar *caps,
    const guint8 *in, const guint8 *out, gsize size)
{
  g_autoptr (CheckHarness) h = harness_new (properties, backend, caps);
  g_autoptr (GstBuffer) got = NULL;
  g_autofree gchar *what = g_strdup_printf ("%s, %s", properties, caps);

  check_push (h, bytes_new (in, size), GST_FLOW_OK);
  got = check_pull (h);
  assert_bytes (got, out, size, what);
}

CHECK_CASE ("lapsharpen-limits", check_make_folder, check_remove_folder)

/* --- range ---------------------------------------------------------------- */

#define Y444(more) \
  "video/x-raw,format=Y444,width=4,height=1,framerate=25/1" more
#define RGB(more) "video/x-raw,format=RGB,width=1,height=4,framerate=25/1" more

/* Three rows, each an edge from 30 to 220 whose halos would be -160 and 410. */
CHECK_LOOP_TEST (test_the_range_of_the_caps_is_kept, G_N_ELEMENTS (backends))
{
  static const guint8 in[] = {
      30, 30, 220, 220, 30, 30, 220, 220, 30, 30, 220, 220};
  static const guint8 full[] = {
      30, 0, 255, 220, 30, 0, 255, 220, 30, 0, 255, 220};
  static const guint8 luma[] = {
      30, 16, 235, 220, 30, 30, 220, 220, 30, 30, 220, 220};
  static const guint8 all[] = {
      30, 16, 235, 220, 30, 16, 240, 220, 30, 16, 240, 220};
  /* Y444 without a colorimetry is of limited range, as GStreamer has it */
  static const gchar *const limited[] = {
      Y444 (""), Y444 (",colorimetry=bt709"), Y444 (",colorimetry=2:3:5:1")};

  for (guint i = 0; i < G_N_ELEMENTS (limited); i++) {
    check_bytes ("planes=all", __i__, limited[i], in, all, 12);
    check_bytes ("planes=all range=full", __i__, limited[i], in, full, 12);
  }
  check_bytes ("", __i__, Y444 (""), in, luma, 12);
  check_bytes (
      "planes=all", __i__, Y444 (",colorimetry=1:3:5:1"), in, full, 12);
  check_bytes ("planes=all range=limited", __i__, Y444 (",colorimetry=1:3:5:1"),
      in, all, 12);
}

CHECK_LOOP_TEST (
    test_what_was_out_of_range_goes_no_further_out, G_N_ELEMENTS (backends))
{
  static const guint8 in[] = {
      10, 10, 250, 250, 128, 128, 128, 128, 128, 128, 128, 128};
  static const guint8 out[] = {
      10, 10, 250, 250, 128, 128, 128, 128, 128, 128, 128, 128};

  check_bytes ("", __i__, Y444 (""), in, out, 12);
}

CHECK_LOOP_TEST (
    test_the_range_of_deep_formats_is_scaled, G_N_ELEMENTS (backends))
{
  static const guint16 in[12] = {200, 200, 800, 800};
  static const guint16 out[12] = {200, 64, 940, 800};

  check_bytes ("", __i__,
      "video/x-raw,format=Y444_10LE,width=4,height=1,framerate=25/1",
      (const guint8 *) in, (const guint8 *) out, sizeof (in));
}

/* --- light ---------------------------------------------------------------- */

CHECK_LOOP_TEST (test_linear_light_undoes_the_transfer_function_of_the_caps,
    G_N_ELEMENTS (backends))
{
  static const guint8 row[] = {
      60, 60, 60, 200, 200, 200, 90, 91, 92, 93, 0, 255};
  enum { N = sizeof (row) };
  static const struct {
    const gchar *name;
    GstVideoTransferFunction function;
  } transfers[] = {{"1:3:7:1", GST_VIDEO_TRANSFER_SRGB},
      {"1:3:5:1", GST_VIDEO_TRANSFER_BT709},
      {"1:3:4:1", GST_VIDEO_TRANSFER_GAMMA22}};

  for (guint t = 0; t < G_N_ELEMENTS (transfers); t++) {
    g_autofree gchar *caps =
        g_strdup_printf (GRAY (12, 1) ",colorimetry=%s", transfers[t].name);
    g_autoptr (CheckHarness) h =
        harness_new ("light=linear amount=0.5", __i__, caps);
    g_autoptr (GstBuffer) out = NULL;
    guint8 found[N];

    check_push (h, bytes_new (row, N), GST_FLOW_OK);
    out = check_pull (h);
    gst_buffer_extract (out, 0, found, N);
    for (gint x = 0; x < N; x++) {
      gdouble v[3], l;

      for (gint i = -1; i <= 1; i++)
        v[1 + i] = gst_video_transfer_function_decode (
            transfers[t].function, row[CLAMP (x + i, 0, N - 1)] / 255.0);
      l = CLAMP (v[1] + 0.5 * (2 * v[1] - v[0] - v[2]), 0, 1);
      l = 255 * gst_video_transfer_function_encode (transfers[t].function, l);
      fail_unless (fabs (found[x] - l) <= 0.52, "%s, pixel %d: %u, not %.3f",
          transfers[t].name, x, found[x], l);
    }
  }
}

/* Black and white of limited range; what is flat stays, also out of range. */
CHECK_LOOP_TEST (test_linear_light_keeps_limited_range, G_N_ELEMENTS (backends))
{
  static const guint8 in[] = {60, 60, 200, 200, 5, 5, 5, 5, 99, 99, 99, 99};
  static const guint8 out[] = {60, 16, 235, 200, 5, 5, 5, 5, 99, 99, 99, 99};

  check_bytes (
      "light=linear amount=5", __i__, Y444 (",colorimetry=bt709"), in, out, 12);
}

CHECK_LOOP_TEST (test_linear_light_without_a_transfer_function_warns,
    G_N_ELEMENTS (backends))
{
  static const guint8 in[] = {50, 60, 60, 60}, out[] = {40, 70, 60, 60};
  g_autoptr (CheckHarness) h = harness_new ("light=linear name=l", __i__, NULL);
  GstBus *bus = gst_bus_new ();
  g_autoptr (GstBuffer) got = NULL;
  g_autoptr (GstMessage) message = NULL;

  gst_element_set_bus (h->element, bus);
  gst_harness_set_src_caps_str (h, GRAY (4, 1));
  check_push (h, bytes_new (in, 4), GST_FLOW_OK);
  got = check_pull (h);
  assert_bytes (got, out, 4, "no transfer function");
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING);
  fail_unless (message != NULL, "there is no warning");
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
}

/* --- threshold and halos -------------------------------------------------- */

CHECK_LOOP_TEST (test_coring_and_halos, G_N_ELEMENTS (backends))
{
  static const guint8 in[] = {100, 100, 120, 120, 125, 125, 125, 125};
  static const struct {
    const gchar *properties;
    guint8 out[8];
  } cases[] = {
      {"", {100, 80, 140, 115, 130, 125, 125, 125}},
      {"threshold=6", {100, 80, 140, 120, 125, 125, 125, 125}},
      {"threshold=6 coring=soft", {100, 86, 134, 120, 125, 125, 125, 125}},
      {"threshold=2.5 coring=soft", {100, 83, 138, 118, 128, 125, 125, 125}},
      {"threshold=6 coring=soft output=edges", {0, 14, 14, 0, 0, 0, 0, 0}},
      {"halo-bright=3", {100, 80, 123, 115, 128, 125, 125, 125}},
      {"halo-dark=7", {100, 93, 140, 115, 130, 125, 125, 125}},
      {"halo-bright=0 halo-dark=0", {100, 100, 120, 120, 125, 125, 125, 125}},
      {"clamp=local", {100, 100, 120, 120, 125, 125, 125, 125}},
      {"clamp=local halo-bright=9", {100, 100, 120, 120, 125, 125, 125, 125}},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    check_bytes (cases[i].properties, __i__, GRAY (8, 1), in, cases[i].out, 8);
}

/* Gaussian noise of the standard deviation 4: of what is sharpened with a
 * threshold of n sigma the part that a normal distribution has beyond. */
CHECK_LOOP_TEST (
    test_sigma_counts_in_the_noise_of_the_frame, G_N_ELEMENTS (backends))
{
  enum { SIDE = 200 };
  static const struct {
    const gchar *properties;
    gdouble beyond;
  } cases[] = {{"threshold=1", 0.3173}, {"threshold=2", 0.0455},
      {"threshold=3", 0.0027}, {"threshold=2 neighbours=8", 0.0455},
      {"threshold=1 method=unsharp radius=2", 0.3173},
      {"threshold=1 method=log radius=3 amount=10", 0.3173}};
  guint8 noise[SIDE * SIDE], found[SIDE * SIDE];
  g_autoptr (GRand) random = g_rand_new_with_seed (5);

  for (guint i = 0; i < SIDE * SIDE; i++) {
    gdouble sum = 0;

    for (guint j = 0; j < 12; j++)
      sum += g_rand_double (random);
    noise[i] = (guint8) lrint (128 + 4 * (sum - 6));
  }
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *properties = g_strdup_printf (
        "threshold-unit=sigma output=edges %s", cases[i].properties);
    g_autoptr (CheckHarness) h =
        harness_new (properties, __i__, GRAY (200, 200));
    g_autoptr (GstBuffer) out = NULL;
    gdouble n = 0;

    check_push (h, bytes_new (noise, sizeof (noise)), GST_FLOW_OK);
    out = check_pull (h);
    gst_buffer_extract (out, 0, found, sizeof (found));
    for (guint j = 0; j < SIDE * SIDE; j++)
      n += found[j] != 0;
    n /= SIDE * SIDE;
    fail_unless (fabs (n - cases[i].beyond) <= 0.1 * cases[i].beyond + 0.002,
        "%s: %.4f of the samples are beyond, expected %.4f",
        cases[i].properties, n, cases[i].beyond);
  }
}

/* --- areas ---------------------------------------------------------------- */

enum { W = 8, H = 7 };

/* A checkerboard, which sharpening turns into black and white. */
static GstBuffer *
board_new (void)
{
  guint8 board[W * H];

  for (guint i = 0; i < W * H; i++)
    board[i] = (i / W + i) % 2 ? 150 : 100;
  return bytes_new (board, sizeof (board));
}

/* Whether exactly the pixels of the rectangles have changed. */
static void
assert_changed (
    GstBuffer *out, const guint (*areas)[4], guint n, const gchar *what)
{
  guint8 found[W * H];

  gst_buffer_extract (out, 0, found, sizeof (found));
  for (guint y = 0; y < H; y++)
    for (guint x = 0; x < W; x++) {
      guint8 v = (y + x) % 2 ? 150 : 100;
      gboolean inside = FALSE;

      for (guint i = 0; i < n; i++)
        inside |= x >= areas[i][0] && x < areas[i][0] + areas[i][2] &&
                  y >= areas[i][1] && y < areas[i][1] + areas[i][3];
      fail_unless ((found[y * W + x] != v) == inside,
          "%s: pixel (%u, %u) is %u", what, x, y, found[y * W + x]);
    }
}

CHECK_LOOP_TEST (test_the_region_and_the_split_follow_their_properties,
    G_N_ELEMENTS (backends))
{
  static const struct {
    const gchar *properties;
    guint area[4];
  } cases[] = {{"x=0", {0, 0, W, H}}, {"x=2", {2, 0, W - 2, H}},
      {"x=2 y=1 width=3 height=2", {2, 1, 3, 2}},
      {"x=60000 width=5", {0, 0, 0, 0}}, {"height=1", {0, 0, W, 1}},
      {"split=0.5", {4, 0, 4, H}}, {"split=1", {0, 0, 0, 0}},
      {"split=0.5 width=7", {4, 0, 3, H}},
      {"split=0.5 method=unsharp", {4, 0, 4, H}},
      {"y=4 height=2 method=unsharp", {0, 4, W, 2}}};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (CheckHarness) h =
        harness_new (cases[i].properties, __i__, GRAY (8, 7));
    g_autoptr (GstBuffer) out = NULL;

    check_push (h, board_new (), GST_FLOW_OK);
    out = check_pull (h);
    assert_changed (out, &cases[i].area, 1, cases[i].properties);
  }
}

CHECK_LOOP_TEST (test_regions_of_interest_change_from_frame_to_frame,
    G_N_ELEMENTS (backends))
{
  static const guint areas[3][4] = {{1, 1, 2, 3}, {5, 0, 3, 2}, {0, 6, 99, 9}};
  g_autoptr (CheckHarness) h =
      harness_new ("roi-meta=true name=l", __i__, GRAY (8, 7));

  for (guint n = 4; n-- > 0;) {
    GstBuffer *in = board_new ();
    g_autoptr (GstBuffer) out = NULL;

    for (guint i = 0; i < n; i++)
      gst_buffer_add_video_region_of_interest_meta (
          in, "face", areas[i][0], areas[i][1], areas[i][2], areas[i][3]);
    check_push (h, in, GST_FLOW_OK);
    out = check_pull (h);
    assert_changed (out, areas, n, "regions of interest");
  }
  {
    static const guint all[4] = {0, 0, W, H};
    g_autoptr (GstBuffer) out = NULL;

    g_object_set (h->element, "roi-meta", FALSE, NULL);
    check_push (h, board_new (), GST_FLOW_OK);
    out = check_pull (h);
    assert_changed (out, &all, 1, "roi-meta=false");
  }
}

/* Chroma of half the width belongs to an area as soon as its luma does. */
CHECK_LOOP_TEST (test_areas_hold_for_chroma, G_N_ELEMENTS (backends))
{
  /* with the padding of chroma rows, which is not compared */
  static const guint8 in[12] = {50, 90, 50, 90, 90, 120, 0, 0, 120, 90, 0, 0};
  static const guint8 luma[4] = {50, 90, 50, 130};
  static const guint8 chroma[2][2] = {{90, 150}, {120, 60}};
  g_autoptr (CheckHarness) h = harness_new ("planes=all x=3", __i__,
      "video/x-raw,format=Y42B,width=4,height=1,framerate=25/1");
  g_autoptr (GstBuffer) out = NULL;
  guint8 found[12];

  check_push (h, bytes_new (in, sizeof (in)), GST_FLOW_OK);
  out = check_pull (h);
  assert_bytes (out, luma, sizeof (luma), "luma");
  gst_buffer_extract (out, 0, found, sizeof (found));
  for (guint i = 0; i < 4; i++)
    fail_unless_equals_int (found[4 + i / 2 * 4 + i % 2], chroma[i / 2][i % 2]);
}

static void
write_mask (const gchar *name, GstImagingNdArrayType type, gconstpointer data)
{
  GError *error = NULL;

  fail_unless (gst_imaging_array_save (
                   name, type, 2, (const guint64[]){H, W}, data, &error),
      "%s", error ? error->message : "");
}

CHECK_LOOP_TEST (test_a_mask_mixes_by_its_weights, G_N_ELEMENTS (backends))
{
  g_autofree gchar *name = check_path_of ("mask.npy");
  g_autofree gchar *properties =
      g_strdup_printf ("name=l amount=0.25 mask-location=%s", name);
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (GstBuffer) whole = NULL, out = NULL;
  guint8 weights[W * H], sharp[W * H], mixed[W * H];

  for (guint i = 0; i < W * H; i++)
    weights[i] = (guint8) (i * 255 / (W * H - 1));
  write_mask (name, GST_IMAGING_ND_ARRAY_TYPE_U8, weights);
  h = harness_new ("amount=0.25", __i__, GRAY (8, 7));
  check_push (h, board_new (), GST_FLOW_OK);
  whole = check_pull (h);
  gst_buffer_extract (whole, 0, sharp, sizeof (sharp));
  gst_harness_teardown (g_steal_pointer (&h));
  h = harness_new (properties, __i__, GRAY (8, 7));
  check_push (h, board_new (), GST_FLOW_OK);
  out = check_pull (h);
  for (guint i = 0; i < W * H; i++) {
    gdouble v = (i / W + i) % 2 ? 150 : 100;

    mixed[i] = (guint8) lrint (v + weights[i] * (sharp[i] - v) / 255);
  }
  assert_bytes (out, mixed, sizeof (mixed), "a mask");
}

CHECK_LOOP_TEST (test_a_mask_of_another_size_is_an_error_with_both_sizes,
    G_N_ELEMENTS (backends))
{
  g_autofree gchar *name = check_path_of ("small.npy");
  g_autofree gchar *properties =
      g_strdup_printf ("name=l mask-location=%s", name);
  static const gfloat ones[W * H] = {1};
  GstBus *bus = gst_bus_new ();
  g_autoptr (CheckHarness) h = NULL;

  write_mask (name, GST_IMAGING_ND_ARRAY_TYPE_F32, ones);
  h = harness_new (properties, __i__, NULL);
  gst_element_set_bus (h->element, bus);
  gst_harness_set_src_caps_str (h, GRAY (12, 7));
  gst_harness_push (h, bytes_new ((const guint8[84]){0}, 84));
  check_error (bus, LIBRARY, SETTINGS, "8 x 7 pixels, the frames have 12 x 7");
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
}
