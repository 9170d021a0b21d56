/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element lapsharpen: every promise of its properties, caps and metas, on
 * the CPU and, through the mock module, on a device. Pixels are compared with
 * the formula of kernels/lapsharpen/lapsharpen.h, computed here sample by
 * sample. */
#include <dlfcn.h>
#include <gst/controller/controller.h>

#include <math.h>

#include "check-common.h"
#include "gstimagingresults.h"

static const gchar *const backends[] = {"cpu", "cuda"};

static const gchar *const formats[] = {"RGBA", "BGRA", "ARGB", "ABGR", "RGBx",
    "BGRx", "xRGB", "xBGR", "RGB", "BGR", "GRAY8", "GRAY16_LE", "RGBA64_LE",
    "ARGB64_LE", "BGRA64_LE", "ABGR64_LE", "AYUV", "I420", "YV12", "Y42B",
    "Y444", "NV12", "NV21", "I420_10LE", "I420_12LE", "Y444_10LE", "Y444_12LE",
    "P010_10LE", "P012_LE", "P016_LE", "GRAY16_BE", "GBR", "GBR_10LE",
    "GBR_12LE", "RGB10A2_LE", "Y410", "NV16"};

/* odd strides: 641 bytes stand in rows of 644 */
static const struct {
  gint width, height;
} sizes[] = {{641, 3}, {5, 4}, {1, 1}, {1, 7}, {7, 1}, {2, 2}};

/* --- the expected pixels --- */

typedef struct {
  gdouble amount;
  gint neighbours;
  const gchar *border;
  gint border_value;
  const gchar *alpha, *planes;
  gint threshold;
  const gchar *clamp, *output;
} Params;

static const Params choices[] = {
    /* the defaults, then the course's kernel */
    {1, 4, "replicate", 0, "copy", "luma", 0, "full", "sharpened"},
    {1, 4, "zero", 0, "filter", "luma", 0, "full", "sharpened"},
    {2, 8, "reflect101", 0, "copy", "all", 0, "full", "sharpened"},
    {0.37, 4, "reflect", 0, "filter", "all", 0, "full", "sharpened"},
    {1.5, 8, "constant", 77, "copy", "all", 0, "full", "sharpened"},
    {1, 4, "replicate", 0, "weighted", "luma", 0, "full", "sharpened"},
    {0.7, 8, "constant", 200, "weighted", "all", 0, "full", "sharpened"},
    {3, 4, "replicate", 0, "copy", "all", 0, "local", "sharpened"},
    {1, 4, "zero", 0, "filter", "luma", 0, "local", "sharpened"},
    {1, 4, "replicate", 0, "copy", "all", 0, "full", "edges"},
    {0.5, 4, "zero", 0, "filter", "luma", 0, "full", "edges"},
    {1, 4, "replicate", 0, "copy", "all", 100, "full", "sharpened"},
    {10, 8, "replicate", 0, "filter", "all", 0, "full", "sharpened"},
    {0, 4, "replicate", 0, "copy", "luma", 0, "full", "edges"},
};
#define defaults (choices[0])

typedef struct {
  const GstVideoFrame *frame;
  const GstVideoFormatInfo *format;
  const Params *params;
} Picture;

static gboolean
is_packed (const GstVideoFormatInfo *f)
{
  return g_str_equal (f->name, "RGB10A2_LE") || g_str_equal (f->name, "Y410");
}

/* The lowest bit of a component: U Y V A, or in order. */
static guint
shift_of (const GstVideoFormatInfo *f, guint c)
{
  return (g_str_equal (f->name, "Y410") ? (const guint[]){10, 0, 20, 30}
                                        : (const guint[]){0, 10, 20, 30})[c];
}

/* The 2 bits of alpha beside 10 bits of colour count 0, 341, 682 and 1023. */
static guint
depth_of (const GstVideoFormatInfo *f, guint c)
{
  return is_packed (f) ? 10 : GST_VIDEO_FORMAT_INFO_DEPTH (f, c);
}

static guint
maximum_of (const Picture *p, guint c)
{
  return (1u << depth_of (p->format, c)) - 1;
}

/* GST_VIDEO_FRAME_COMP_DATA () of 1.22 is one byte off for the V of P010. */
static guint8 *
place_of (const GstVideoFrame *frame, guint c, gint x, gint y)
{
  gint offset = GST_VIDEO_FRAME_COMP_POFFSET (frame, c);

  if (GST_VIDEO_FRAME_COMP_DEPTH (frame, c) > 8)
    offset += offset % 2;
  return (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (
             frame, GST_VIDEO_FRAME_COMP_PLANE (frame, c)) +
         offset + (gsize) y * GST_VIDEO_FRAME_COMP_STRIDE (frame, c) +
         (gsize) x * GST_VIDEO_FRAME_COMP_PSTRIDE (frame, c);
}

static guint
read_sample (const GstVideoFrame *frame, guint c, gint x, gint y)
{
  const guint8 *place = place_of (frame, c, x, y);
  const GstVideoFormatInfo *f = frame->info.finfo;
  const guint shift = shift_of (f, c);

  if (is_packed (f))
    return shift == 30 ? (GST_READ_UINT32_LE (place) >> 30) * 341
                       : GST_READ_UINT32_LE (place) >> shift & 1023;
  if (g_str_equal (f->name, "GRAY16_BE"))
    return GST_READ_UINT16_BE (place);
  return GST_VIDEO_FORMAT_INFO_DEPTH (f, c) > 8
             ? GST_READ_UINT16_LE (place) >> GST_VIDEO_FORMAT_INFO_SHIFT (f, c)
             : *place;
}

static void
write_sample (const GstVideoFrame *frame, guint c, gint x, gint y, guint value)
{
  guint8 *place = place_of (frame, c, x, y);
  const GstVideoFormatInfo *f = frame->info.finfo;
  const guint shift = shift_of (f, c);
  guint32 others;

  if (is_packed (f)) {
    others =
        GST_READ_UINT32_LE (place) & ~((shift == 30 ? 3u : 1023u) << shift);
    value = shift == 30 ? (value + 170) / 341 : value;
    GST_WRITE_UINT32_LE (place, others | value << shift);
  } else if (g_str_equal (f->name, "GRAY16_BE"))
    GST_WRITE_UINT16_BE (place, value);
  else if (GST_VIDEO_FORMAT_INFO_DEPTH (f, c) > 8)
    GST_WRITE_UINT16_LE (place, value << GST_VIDEO_FORMAT_INFO_SHIFT (f, c));
  else
    *place = value;
}

/* -1: outside, constant */
static gint
index_inside (const gchar *border, gint i, gint n)
{
  if (i >= 0 && i < n)
    return i;
  if (g_str_equal (border, "zero") || g_str_equal (border, "constant"))
    return -1;
  if (g_str_equal (border, "reflect101") && n > 1)
    return i < 0 ? -i : 2 * n - 2 - i;
  return i < 0 ? 0 : n - 1;
}

static guint
sample_at (const Picture *p, guint c, gint x, gint y)
{
  x = index_inside (
      p->params->border, x, GST_VIDEO_FRAME_COMP_WIDTH (p->frame, c));
  y = index_inside (
      p->params->border, y, GST_VIDEO_FRAME_COMP_HEIGHT (p->frame, c));
  if (x < 0 || y < 0)
    return g_str_equal (p->params->border, "zero") ? 0
                                                   : p->params->border_value;
  return read_sample (p->frame, c, x, y);
}

/* L, weighted where that is asked for. */
static gdouble
laplacian_at (const Picture *p, guint c, gint x, gint y, gboolean weighted)
{
  gint64 sum = 0;
  gint v = sample_at (p, c, x, y);

  for (gint dy = -1; dy <= 1; dy++)
    for (gint dx = -1; dx <= 1; dx++) {
      gint d = v - (gint) sample_at (p, c, x + dx, y + dy);

      if (p->params->neighbours == 4 && dx && dy)
        continue;
      if (weighted)
        sum += (gint64) d * sample_at (p, GST_VIDEO_COMP_A, x + dx, y + dy);
      else
        sum += d;
    }
  return weighted ? (gdouble) sum / maximum_of (p, GST_VIDEO_COMP_A) : sum;
}

static guint
sharpened_at (const Picture *p, guint c, gint x, gint y)
{
  const Params *s = p->params;
  gboolean weighted = g_str_equal (s->alpha, "weighted") &&
                      GST_VIDEO_FORMAT_INFO_HAS_ALPHA (p->format);
  gboolean edges = g_str_equal (s->output, "edges");
  guint low = maximum_of (p, c), high = 0, v = sample_at (p, c, x, y);
  gfloat l = laplacian_at (p, c, x, y, weighted);
  gfloat change = fabsf (l) < s->threshold ? 0 : (gfloat) s->amount * l;
  gfloat sum = edges ? fabsf (change) + 0.5f : change + (v + 0.5f);

  for (gint dy = -1; dy <= 1; dy++)
    for (gint dx = -1; dx <= 1; dx++) {
      low = MIN (low, sample_at (p, c, x + dx, y + dy));
      high = MAX (high, sample_at (p, c, x + dx, y + dy));
    }
  if (edges || g_str_equal (s->clamp, "full")) {
    low = 0;
    high = maximum_of (p, c);
  }
  if (!edges && GST_VIDEO_FORMAT_INFO_IS_YUV (p->format) &&
      (c != GST_VIDEO_COMP_A || !GST_VIDEO_FORMAT_INFO_HAS_ALPHA (p->format))) {
    /* limited range, which is the default of YUV; outside no further out */
    guint unit = (maximum_of (p, c) + 1) / 256;

    low = MAX (low, MIN (v, 16 * unit));
    high = MIN (high, MAX (v, (c == GST_VIDEO_COMP_Y ? 235 : 240) * unit));
  }
  return CLAMP (floor (sum), (gdouble) low, (gdouble) high);
}

static gboolean
is_filtered (const Picture *p, guint c)
{
  if (GST_VIDEO_FORMAT_INFO_HAS_ALPHA (p->format) && c == GST_VIDEO_COMP_A)
    return g_str_equal (p->params->alpha, "filter") &&
           !g_str_equal (p->params->output, "edges");
  return !GST_VIDEO_FORMAT_INFO_IS_YUV (p->format) || c == GST_VIDEO_COMP_Y ||
         g_str_equal (p->params->planes, "all");
}

/* --- frames --- */

/* Noise over all values, with many of the least and the largest. */
static guint
noise (guint32 *seed, guint maximum)
{
  *seed = *seed * 1664525 + 1013904223;
  if (*seed >> 29 == 0)
    return 0;
  if (*seed >> 29 == 1)
    return maximum;
  return (*seed >> 8) % (maximum + 1);
}

static GstBuffer *
noise_frame (const GstVideoInfo *info, guint32 seed)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, info->size, NULL);
  GstVideoFrame frame;

  gst_buffer_memset (buffer, 0, 0x5a, -1);
  fail_unless (gst_video_frame_map (&frame, info, buffer, GST_MAP_WRITE));
  for (guint c = 0; c < GST_VIDEO_FRAME_N_COMPONENTS (&frame); c++)
    for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT (&frame, c); y++)
      for (gint x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH (&frame, c); x++)
        write_sample (&frame, c, x, y,
            noise (&seed, (1u << depth_of (info->finfo, c)) - 1));
  gst_video_frame_unmap (&frame);
  return buffer;
}

static GstBuffer *
gray_frame (gint width, gint height, const guint8 *values)
{
  GstVideoInfo info = check_info ("GRAY8", width, height);
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, info.size, NULL);
  GstVideoFrame frame;

  fail_unless (gst_video_frame_map (&frame, &info, buffer, GST_MAP_WRITE));
  for (gint i = 0; i < width * height; i++)
    write_sample (&frame, 0, i % width, i / width, values[i]);
  gst_video_frame_unmap (&frame);
  return buffer;
}

/* @in after lapsharpen with @params; what is no component is as in @in. */
static GstBuffer *
expected_frame (const GstVideoInfo *info, GstBuffer *in, const Params *params)
{
  GstBuffer *out = gst_buffer_copy_deep (in);
  GstVideoFrame from, to;
  Picture p = {&from, info->finfo, params};

  fail_unless (gst_video_frame_map (&from, info, in, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&to, info, out, GST_MAP_WRITE));
  for (guint c = 0; c < GST_VIDEO_FRAME_N_COMPONENTS (&to); c++)
    for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT (&to, c); y++)
      for (gint x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH (&to, c); x++)
        write_sample (&to, c, x, y,
            is_filtered (&p, c) ? sharpened_at (&p, c, x, y)
                                : read_sample (&from, c, x, y));
  gst_video_frame_unmap (&from);
  gst_video_frame_unmap (&to);
  return out;
}

/* Bytes of a row of a plane that hold pixels. */
static gsize
row_size (const GstVideoFrame *frame, guint plane, gint *height)
{
  gsize size = 0;

  for (guint c = 0; c < GST_VIDEO_FRAME_N_COMPONENTS (frame); c++)
    if (GST_VIDEO_FRAME_COMP_PLANE (frame, c) == plane) {
      *height = GST_VIDEO_FRAME_COMP_HEIGHT (frame, c);
      size = (gsize) GST_VIDEO_FRAME_COMP_WIDTH (frame, c) *
             GST_VIDEO_FRAME_COMP_PSTRIDE (frame, c);
    }
  return size;
}

/* Returns: whether the pixels are the same, else where they are not */
static gboolean
same_pixels (const GstVideoInfo *info, GstBuffer *expected, GstBuffer *actual,
    gchar **difference)
{
  GstVideoFrame e, a;

  *difference = NULL;
  fail_unless (gst_video_frame_map (&e, info, expected, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&a, info, actual, GST_MAP_READ));
  for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES (&e); p++) {
    gint height = 0;
    gsize size = row_size (&e, p, &height);

    for (gint y = 0; y < height && !*difference; y++) {
      const guint8 *rows[] = {
          (guint8 *) e.data[p] + y * GST_VIDEO_FRAME_PLANE_STRIDE (&e, p),
          (guint8 *) a.data[p] + y * GST_VIDEO_FRAME_PLANE_STRIDE (&a, p)};

      for (gsize x = 0; x < size && !*difference; x++)
        if (rows[0][x] != rows[1][x])
          *difference = g_strdup_printf ("first difference in plane %u at byte "
                                         "%" G_GSIZE_FORMAT
                                         " of row %d: expected %u, is %u",
              p, x, y, rows[0][x], rows[1][x]);
    }
  }
  gst_video_frame_unmap (&e);
  gst_video_frame_unmap (&a);
  return !*difference;
}

#define assert_same_pixels(info, expected, actual, ...) \
  do { \
    gchar *difference; \
    gchar *what = g_strdup_printf (__VA_ARGS__); \
    fail_unless (same_pixels (info, expected, actual, &difference), "%s: %s", \
        what, difference); \
    g_free (what); \
  } while (0)

/* --- harnesses --- */

static GstHarness *
harness_new (const gchar *backend, const gchar *properties)
{
  g_autofree gchar *launch =
      g_strdup_printf ("lapsharpen name=l backend=%s %s", backend, properties);
  GError *error = NULL;
  g_autoptr (GstElement) element = gst_parse_launch (launch, &error);
  GstHarness *h;

  fail_unless (element && !error, "%s", error ? error->message : "");
  h = gst_harness_new_with_element (element, "sink", "src");
  return h;
}

static void
set_caps (GstHarness *h, const gchar *format, gint width, gint height)
{
  g_autofree gchar *caps = check_caps_string (format, width, height);

  gst_harness_set_src_caps_str (h, caps);
}

static void
set_gray (GstHarness *h, gint width, gint height)
{
  set_caps (h, "GRAY8", width, height);
}

static void
set_params (GstElement *element, const Params *p)
{
  g_object_set (element, "amount", p->amount, "border-value", p->border_value,
      "threshold", (gdouble) p->threshold, "neighbours", p->neighbours, NULL);
  gst_util_set_object_arg (G_OBJECT (element), "border", p->border);
  gst_util_set_object_arg (G_OBJECT (element), "alpha", p->alpha);
  gst_util_set_object_arg (G_OBJECT (element), "planes", p->planes);
  gst_util_set_object_arg (G_OBJECT (element), "clamp", p->clamp);
  gst_util_set_object_arg (G_OBJECT (element), "output", p->output);
}

static GstBuffer *
sharpen (GstHarness *h, GstBuffer *in)
{
  check_push (h, gst_buffer_ref (in), GST_FLOW_OK);
  return check_pull (h);
}

static GstBuffer *
sharpen_noise (GstHarness *h, const GstVideoInfo *info)
{
  check_push (h, noise_frame (info, 1), GST_FLOW_OK);
  return check_pull (h);
}

static void
check_frame (GstHarness *h, const GstVideoInfo *info, const Params *params,
    guint32 seed, const gchar *where)
{
  g_autoptr (GstBuffer) in = noise_frame (info, seed);
  g_autoptr (GstBuffer) expected = expected_frame (info, in, params);
  g_autoptr (GstBuffer) before = gst_buffer_copy_deep (in);
  g_autoptr (GstBuffer) out = NULL;

  set_params (h->element, params);
  out = sharpen (h, in);
  assert_same_pixels (info, expected, out,
      "%s %s %dx%d noise seed %u amount %g neighbours %d border %s alpha %s "
      "planes %s threshold %d clamp %s output %s",
      where, info->finfo->name, info->width, info->height, seed, params->amount,
      params->neighbours, params->border, params->alpha, params->planes,
      params->threshold, params->clamp, params->output);
  assert_same_pixels (info, before, in, "the input was written to");
}

static void
remove_bus (GstHarness *h, GstBus *bus)
{
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
}

/* --- formats and options --- */

CHECK_LOOP_TEST (test_every_format_and_size_is_sharpened_by_the_formula,
    G_N_ELEMENTS (backends))
{
  const gchar *backend = backends[__i__];

  for (guint f = 0; f < G_N_ELEMENTS (formats); f++) {
    g_autoptr (CheckHarness) h = harness_new (backend, "");

    for (guint s = 0; s < G_N_ELEMENTS (sizes); s++) {
      GstVideoInfo info =
          check_info (formats[f], sizes[s].width, sizes[s].height);

      set_caps (h, formats[f], sizes[s].width, sizes[s].height);
      check_frame (h, &info, &choices[0], 1 + s, backend);
      check_frame (h, &info, &choices[2 + (f + s) % 3], 7 + s, backend);
    }
  }
}

CHECK_LOOP_TEST (
    test_every_option_does_what_the_formula_says, G_N_ELEMENTS (backends))
{
  static const gchar *const some[] = {"RGBA", "ABGR", "GRAY8", "GRAY16_LE",
      "RGBA64_LE", "AYUV", "I420_10LE", "GRAY16_BE", "GBR_10LE", "RGB10A2_LE",
      "Y410"};
  const gchar *backend = backends[__i__];

  for (guint f = 0; f < G_N_ELEMENTS (some); f++) {
    g_autoptr (CheckHarness) h = harness_new (backend, "");

    for (guint s = 0; s < G_N_ELEMENTS (sizes); s++) {
      GstVideoInfo info = check_info (some[f], sizes[s].width, sizes[s].height);

      set_caps (h, some[f], sizes[s].width, sizes[s].height);
      for (guint c = 0; c < G_N_ELEMENTS (choices); c++)
        check_frame (h, &info, &choices[c], 100 * s + c, backend);
    }
  }
}

typedef struct {
  const gchar *properties;
  gint width, height;
  guint8 in[12], out[12];
} Worked;

#define FLAT \
  { \
    100, 100, 100, 100, 100, 100, 100, 100, 100 \
  }
#define RAMP \
  { \
    0, 50, 100, 0, 50, 100, 0, 50, 100 \
  }
#define TENS \
  { \
    10, 20, 30, 40, 50, 60, 70, 80, 90 \
  }
#define EDGE \
  { \
    50, 50, 200, 200, 50, 50, 200, 200, 50, 50, 200, 200 \
  }
#define SHARP_EDGE \
  { \
    50, 0, 255, 200, 50, 0, 255, 200, 50, 0, 255, 200 \
  }
#define DOT \
  { \
    0, 0, 0, 0, 10, 0, 0, 0, 0 \
  }
#define BIG_DOT \
  { \
    0, 0, 0, 0, 50, 0, 0, 0, 0 \
  }

/* spec/lapsharpen.md, section 8 */
static const Worked worked[] = {
    {"border=zero", 3, 3, FLAT, {255, 200, 255, 200, 100, 200, 255, 200, 255}},
    {"border=replicate", 3, 3, FLAT, FLAT},
    {"border=reflect101", 3, 3, FLAT, FLAT},
    {"border=reflect", 3, 3, FLAT, FLAT},
    {"border=zero", 3, 3, RAMP, {0, 100, 255, 0, 50, 250, 0, 100, 255}},
    {"border=replicate", 3, 3, RAMP, {0, 50, 150, 0, 50, 150, 0, 50, 150}},
    {"border=reflect101", 3, 3, RAMP, {0, 50, 200, 0, 50, 200, 0, 50, 200}},
    {"border=zero", 3, 3, TENS, {0, 10, 70, 70, 50, 130, 230, 190, 255}},
    {"border=replicate", 3, 3, TENS, {0, 0, 10, 30, 50, 70, 90, 110, 130}},
    {"border=reflect101", 3, 3, TENS, {0, 0, 0, 20, 50, 80, 110, 140, 170}},
    {"border=zero", 4, 3, EDGE,
        {150, 0, 255, 255, 100, 0, 255, 255, 150, 0, 255, 255}},
    {"border=replicate", 4, 3, EDGE, SHARP_EDGE},
    {"border=reflect101", 4, 3, EDGE, SHARP_EDGE},
    {"border=zero", 3, 3, DOT, BIG_DOT},
    {"border=replicate", 3, 3, DOT, BIG_DOT},
    {"border=reflect101", 3, 3, DOT, BIG_DOT},
    {"border=zero", 2, 1, {10, 20}, {30, 90}},
    {"border=replicate", 2, 1, {10, 20}, {0, 30}},
    {"border=reflect101", 2, 1, {10, 20}, {0, 40}},
    {"border=zero", 1, 1, {50}, {250}},
    {"border=replicate", 1, 1, {50}, {50}},
    {"border=reflect101", 1, 1, {50}, {50}},
    {"amount=0.5 border=zero", 3, 3, TENS,
        {0, 15, 50, 55, 50, 95, 150, 135, 200}},
    {"amount=0.5 border=replicate", 3, 3, TENS,
        {0, 5, 20, 35, 50, 65, 80, 95, 110}},
    {"neighbours=8 border=replicate", 3, 3, TENS,
        {0, 0, 0, 10, 50, 90, 130, 170, 210}},
    {"neighbours=8", 3, 3, DOT, {0, 0, 0, 0, 90, 0, 0, 0, 0}},
    {"neighbours=8 border=zero", 1, 1, {50}, {255}},
    /* one neighbour's difference of 10, doubled and as a magnitude */
    {"output=edges amount=2", 2, 1, {10, 20}, {20, 20}},
    {"threshold=10", 2, 1, {10, 20}, {0, 30}},
    {"threshold=11", 2, 1, {10, 20}, {10, 20}},
    {"clamp=local", 2, 1, {10, 20}, {10, 20}},
    {"border=constant border-value=30", 1, 1, {50}, {130}},
};

CHECK_LOOP_TEST (
    test_worked_examples_of_the_specification, G_N_ELEMENTS (backends))
{
  for (guint i = 0; i < G_N_ELEMENTS (worked); i++) {
    const Worked *w = &worked[i];
    g_autoptr (CheckHarness) h = harness_new (backends[__i__], w->properties);
    GstVideoInfo info = check_info ("GRAY8", w->width, w->height);
    g_autoptr (GstBuffer) in = gray_frame (w->width, w->height, w->in);
    g_autoptr (GstBuffer) expected = gray_frame (w->width, w->height, w->out);
    g_autoptr (GstBuffer) out = NULL;

    set_gray (h, w->width, w->height);
    out = sharpen (h, in);
    assert_same_pixels (&info, expected, out, "%s, %dx%d from %u",
        w->properties, w->width, w->height, w->in[0]);
  }
}

/* A row of 3 samples, as words, and what it becomes. */
static void
check_words_with (const gchar *backend, const gchar *properties,
    const gchar *format, const guint16 *in, const guint16 *out)
{
  g_autoptr (CheckHarness) h = harness_new (backend, properties);
  GstVideoInfo info = check_info (format, 3, 1);
  g_autoptr (GstBuffer) buffer =
      gst_buffer_new_allocate (NULL, info.size, NULL),
                        got = NULL;
  GstMapInfo map;

  set_caps (h, format, 3, 1);
  gst_buffer_memset (buffer, 0, 0, -1);
  gst_buffer_fill (buffer, 0, in, 3 * sizeof (*in));
  got = sharpen (h, buffer);
  fail_unless (gst_buffer_map (got, &map, GST_MAP_READ));
  for (guint i = 0; i < 3; i++)
    fail_unless (GST_READ_UINT16_LE (map.data + 2 * i) == out[i],
        "%s %s sample %u: expected %u, is %u", format, properties, i, out[i],
        GST_READ_UINT16_LE (map.data + 2 * i));
  gst_buffer_unmap (got, &map);
}

static void
check_words (const gchar *backend, const gchar *format, const guint16 *in,
    const guint16 *out)
{
  check_words_with (backend, "range=full", format, in, out);
}

CHECK_LOOP_TEST (test_unused_bits_stay_zero_and_depth_limits_the_sharpened,
    G_N_ELEMENTS (backends))
{
  const gchar *b = backends[__i__];

  /* low bits that a bad source left set do not come out */
  check_words (b, "P010_10LE", (guint16[]){0x003f, 1023 << 6 | 0x21, 0x0015},
      (guint16[]){0, 1023 << 6, 0});
  check_words (b, "P012_LE", (guint16[]){0x000f, 4095 << 4 | 3, 0x0005},
      (guint16[]){0, 4095 << 4, 0});
  check_words (
      b, "I420_10LE", (guint16[]){0, 1000, 0}, (guint16[]){0, 1023, 0});
  check_words (
      b, "I420_12LE", (guint16[]){0, 4000, 0}, (guint16[]){0, 4095, 0});
  check_words (
      b, "GRAY16_LE", (guint16[]){0, 65535, 0}, (guint16[]){0, 65535, 0});
  check_words (b, "GRAY16_LE", (guint16[]){65535, 0, 65535},
      (guint16[]){65535, 0, 65535});
  check_words (b, "GRAY16_LE", (guint16[]){30000, 20000, 30000},
      (guint16[]){40000, 0, 40000});
}

CHECK_LOOP_TEST (
    test_a_declared_bit_depth_limits_grey_frames_alone, G_N_ELEMENTS (backends))
{
  const gchar *b = backends[__i__];
  const guint16 spot[] = {0, 4000, 0}, flat[] = {5000, 5000, 5000};

  check_words_with (
      b, "bit-depth=12", "GRAY16_LE", spot, (guint16[]){0, 4095, 0});
  check_words_with (
      b, "bit-depth=14", "GRAY16_LE", spot, (guint16[]){0, 12000, 0});
  check_words_with (
      b, "bit-depth=0", "GRAY16_LE", spot, (guint16[]){0, 12000, 0});
  /* what a camera should not send comes out as the most it may be */
  check_words_with (
      b, "bit-depth=12", "GRAY16_LE", flat, (guint16[]){4095, 4095, 4095});
  /* formats that name their depth keep it */
  check_words_with (
      b, "bit-depth=10 range=full", "I420_12LE", spot, (guint16[]){0, 4095, 0});
}

CHECK_LOOP_TEST (test_soft_alpha_is_kept_by_copy_and_hardened_by_filter,
    G_N_ELEMENTS (backends))
{
  static const gchar *const alpha[] = {"copy", "weighted", "filter"};
  GstVideoInfo info = check_info ("RGBA", 5, 1);

  for (guint i = 0; i < G_N_ELEMENTS (alpha); i++) {
    g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");
    g_autoptr (GstBuffer) in = gst_buffer_new_allocate (NULL, info.size, NULL),
                          out = NULL;
    guint8 pixels[20], got[20];

    for (guint x = 0; x < 5; x++) {
      memset (pixels + 4 * x, 90, 3);
      pixels[4 * x + 3] = (guint8[]){0, 0, 128, 255, 255}[x];
    }
    gst_buffer_fill (in, 0, pixels, sizeof (pixels));
    gst_util_set_object_arg (G_OBJECT (h->element), "alpha", alpha[i]);
    set_caps (h, "RGBA", 5, 1);
    out = sharpen (h, in);
    gst_buffer_extract (out, 0, got, sizeof (got));
    if (i < 2)
      fail_unless (memcmp (got, pixels, sizeof (got)) == 0);
    else /* 128 - 127 + 128: the middle stays, its neighbours clamp */
      fail_unless (got[7] == 0 && got[11] == 129 && got[15] == 255, "%u %u %u",
          got[7], got[11], got[15]);
  }
}

CHECK_LOOP_TEST (test_hidden_colours_do_not_show_with_weighted_alpha,
    G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "alpha=weighted");
  GstVideoInfo info = check_info ("RGBA", 3, 1);
  g_autoptr (GstBuffer) in = gst_buffer_new_allocate (NULL, info.size, NULL),
                        out = NULL;
  guint8 pixels[12] = {255, 0, 9, 0, 80, 90, 100, 255, 80, 90, 100, 255};
  guint8 got[12];

  gst_buffer_fill (in, 0, pixels, sizeof (pixels));
  set_caps (h, "RGBA", 3, 1);
  out = sharpen (h, in);
  gst_buffer_extract (out, 0, got, sizeof (got));
  fail_unless (memcmp (got + 4, pixels + 4, 8) == 0);
}

CHECK_LOOP_TEST (test_opaque_frames_are_the_same_with_every_alpha_mode,
    G_N_ELEMENTS (backends))
{
  static const gchar *const alpha[] = {"filter", "weighted"};
  GstVideoInfo info = check_info ("BGRA", 23, 11);
  g_autoptr (GstBuffer) in = noise_frame (&info, 5), copied = NULL;
  g_autoptr (CheckHarness) h =
      harness_new (backends[__i__], "alpha=copy border=replicate");
  GstMapInfo map;

  gst_buffer_map (in, &map, GST_MAP_WRITE);
  for (gsize i = 3; i < map.size; i += 4)
    map.data[i] = 255;
  gst_buffer_unmap (in, &map);
  set_caps (h, "BGRA", 23, 11);
  copied = sharpen (h, in);
  for (guint i = 0; i < G_N_ELEMENTS (alpha); i++) {
    g_autoptr (GstBuffer) out = NULL;

    gst_util_set_object_arg (G_OBJECT (h->element), "alpha", alpha[i]);
    out = sharpen (h, in);
    assert_same_pixels (&info, copied, out, "alpha=%s", alpha[i]);
  }
}

CHECK_LOOP_TEST (test_strides_and_offsets_of_the_video_meta_are_followed,
    G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");
  GstVideoInfo info = check_info ("GRAY8", 641, 3);
  gsize offset[GST_VIDEO_MAX_PLANES] = {13};
  gint stride[GST_VIDEO_MAX_PLANES] = {701};
  g_autoptr (GstBuffer) in = gst_buffer_new_allocate (NULL, 13 + 3 * 701, NULL);
  g_autoptr (GstBuffer) plain = noise_frame (&info, 3), expected = NULL,
                        out = NULL;
  GstVideoFrame from, to;

  gst_buffer_memset (in, 0, 0xee, -1);
  gst_buffer_add_video_meta_full (in, GST_VIDEO_FRAME_FLAG_NONE,
      GST_VIDEO_FORMAT_GRAY8, 641, 3, 1, offset, stride);
  gst_video_frame_map (&from, &info, plain, GST_MAP_READ);
  gst_video_frame_map (&to, &info, in, GST_MAP_WRITE);
  gst_video_frame_copy (&to, &from);
  gst_video_frame_unmap (&to);
  gst_video_frame_unmap (&from);
  expected = expected_frame (&info, plain, &defaults);

  set_gray (h, 641, 3);
  out = sharpen (h, in);
  assert_same_pixels (&info, expected, out, "stride 701, offset 13");
}

CHECK_TEST (test_bytes_do_not_depend_on_the_number_of_threads)
{
  GstVideoInfo info = check_info ("RGB", 319, 257);
  g_autoptr (GstBuffer) in = noise_frame (&info, 11);
  g_autoptr (GstBuffer) first = NULL;

  for (guint n = 0; n < 9; n++) {
    g_autofree gchar *properties =
        g_strdup_printf ("amount=0.7 n-threads=%u", n);
    g_autoptr (CheckHarness) h = harness_new ("cpu", properties);
    g_autoptr (GstBuffer) out = NULL;

    set_caps (h, "RGB", 319, 257);
    out = sharpen (h, in);
    if (!first)
      first = gst_buffer_ref (out);
    assert_same_pixels (&info, first, out, "%u threads", n);
  }
}

/* --- frames that pass --- */

CHECK_LOOP_TEST (
    test_amount_zero_passes_the_same_buffer, G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "amount=0");
  GstVideoInfo info = check_info ("GRAY8", 641, 3);
  g_autoptr (GstBuffer) in = noise_frame (&info, 1), out = NULL;

  set_gray (h, 641, 3);
  out = sharpen (h, in);
  fail_unless (out == in);
  gst_buffer_unref (out);

  /* and back, while playing */
  g_object_set (h->element, "amount", 1.0, NULL);
  out = sharpen (h, in);
  fail_unless (out != in);
  gst_buffer_unref (out);
  g_object_set (h->element, "amount", 0.0, NULL);
  out = sharpen (h, in);
  fail_unless (out == in);
  gst_buffer_unref (out);

  /* edges of strength 0 are black, not the frame */
  gst_util_set_object_arg (G_OBJECT (h->element), "output", "edges");
  out = sharpen (h, in);
  fail_unless (out != in);
}

CHECK_LOOP_TEST (test_the_input_is_never_written_even_when_it_could_be,
    G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");
  GstVideoInfo info = check_info ("GRAY8", 63, 5);
  g_autoptr (GstBuffer) in = noise_frame (&info, 1);
  g_autoptr (GstBuffer) before = gst_buffer_copy_deep (in), out = NULL;
  GstMemory *memory = gst_buffer_get_memory (in, 0);

  set_gray (h, 63, 5);
  check_push (h, in, GST_FLOW_OK);
  out = check_pull (h);
  fail_unless (gst_buffer_peek_memory (out, 0) != memory);
  fail_unless (gst_memory_is_type (memory, GST_ALLOCATOR_SYSMEM));
  in = gst_buffer_new ();
  gst_buffer_append_memory (in, memory);
  assert_same_pixels (&info, before, in, "input");
}

CHECK_LOOP_TEST (
    test_times_flags_and_metas_stay_on_the_frame, G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");
  GstVideoInfo info = check_info ("GRAY8", 33, 5);
  g_autoptr (GstBuffer) in = noise_frame (&info, 1), out = NULL;
  g_autoptr (GstCaps) reference =
      gst_caps_new_empty_simple ("timestamp/x-unix");
  GstVideoRegionOfInterestMeta *roi;
  GstReferenceTimestampMeta *stamp;

  GST_BUFFER_PTS (in) = 123456789;
  GST_BUFFER_DTS (in) = 123456000;
  GST_BUFFER_DURATION (in) = 40 * GST_MSECOND;
  GST_BUFFER_OFFSET (in) = 17;
  GST_BUFFER_OFFSET_END (in) = 18;
  GST_BUFFER_FLAG_SET (in, GST_BUFFER_FLAG_MARKER);
  gst_buffer_add_video_region_of_interest_meta (in, "spot", 1, 2, 3, 4);
  gst_buffer_add_reference_timestamp_meta (in, reference, 99, 1);

  set_gray (h, 33, 5);
  out = sharpen (h, in);
  fail_unless_equals_uint64 (GST_BUFFER_PTS (out), 123456789);
  fail_unless_equals_uint64 (GST_BUFFER_DTS (out), 123456000);
  fail_unless_equals_uint64 (GST_BUFFER_DURATION (out), 40 * GST_MSECOND);
  fail_unless_equals_uint64 (GST_BUFFER_OFFSET (out), 17);
  fail_unless_equals_uint64 (GST_BUFFER_OFFSET_END (out), 18);
  fail_unless (GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_MARKER));
  roi = gst_buffer_get_video_region_of_interest_meta_id (out, 0);
  if (!roi)
    roi = (GstVideoRegionOfInterestMeta *) gst_buffer_get_meta (
        out, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE);
  fail_unless (roi != NULL, "the region of interest is lost");
  fail_unless (roi->x == 1 && roi->y == 2 && roi->w == 3 && roi->h == 4);
  stamp = gst_buffer_get_reference_timestamp_meta (out, reference);
  fail_unless (stamp && stamp->timestamp == 99, "the time stamp is lost");
}

CHECK_LOOP_TEST (test_latency_is_that_of_upstream, G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");

  set_gray (h, 8, 8);
  gst_harness_set_upstream_latency (h, 40 * GST_MSECOND);
  fail_unless_equals_uint64 (gst_harness_query_latency (h), 40 * GST_MSECOND);
}

/* --- changes while playing --- */

CHECK_LOOP_TEST (test_a_controlled_amount_is_followed_frame_by_frame,
    G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");
  GstVideoInfo info = check_info ("GRAY8", 65, 3);
  GstControlSource *source = gst_interpolation_control_source_new ();
  GstTimedValueControlSource *values = GST_TIMED_VALUE_CONTROL_SOURCE (source);

  g_object_set (source, "mode", GST_INTERPOLATION_MODE_LINEAR, NULL);
  gst_timed_value_control_source_set (values, 0, 0);
  gst_timed_value_control_source_set (values, 8 * GST_SECOND, 4);
  fail_unless (gst_object_add_control_binding (
      GST_OBJECT (h->element), gst_direct_control_binding_new_absolute (
                                   GST_OBJECT (h->element), "amount", source)));
  gst_object_unref (source);
  set_gray (h, 65, 3);
  for (guint i = 0; i < 8; i++) {
    Params params = defaults;
    g_autoptr (GstBuffer) in = noise_frame (&info, i), expected = NULL,
                          out = NULL;

    params.amount = i / 2.0;
    GST_BUFFER_PTS (in) = i * GST_SECOND;
    expected = expected_frame (&info, in, &params);
    out = sharpen (h, in);
    assert_same_pixels (&info, expected, out, "second %u", i);
    fail_unless ((out == in) == (i == 0));
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
    g_object_set (m->element, "amount", (gdouble) (i % 4), NULL);
    g_object_set (m->element, "border-value", i % 256, NULL);
  }
  return NULL;
}

CHECK_LOOP_TEST (test_frames_are_whole_while_another_thread_sets_properties,
    G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");
  GstVideoInfo info = check_info ("GRAY8", 641, 9);
  GstBuffer *in = noise_frame (&info, 1), *expected[4];
  Meddler meddler = {h->element, 0};
  guint seen = 0;
  GThread *thread;

  for (guint i = 0; i < 4; i++) {
    Params params = defaults;

    params.amount = i;
    expected[i] = expected_frame (&info, in, &params);
  }
  set_gray (h, 641, 9);
  thread = g_thread_new ("meddler", meddle, &meddler);
  /* on a busy machine the other thread may take a while to run */
  for (guint n = 0; n < 300 || (!(seen & (seen - 1)) && n < 1000000); n++) {
    g_autoptr (GstBuffer) out = sharpen (h, in);
    gint found = -1;
    gchar *difference;

    for (gint i = 0; i < 4 && found < 0; i++) {
      if (same_pixels (&info, expected[i], out, &difference))
        found = i;
      g_free (difference);
    }
    fail_unless (found >= 0, "frame %u is none of the four", n);
    seen |= 1u << found;
  }
  g_atomic_int_set (&meddler.stop, 1);
  g_thread_join (thread);
  fail_unless (seen & (seen - 1), "the amount never changed");
  for (guint i = 0; i < 4; i++)
    gst_buffer_unref (expected[i]);
  gst_buffer_unref (in);
}

CHECK_LOOP_TEST (test_planes_change_in_mid_stream, G_N_ELEMENTS (backends))
{
  static const gchar *const some[] = {"I420", "NV12", "P010_10LE", "AYUV"};

  for (guint f = 0; f < G_N_ELEMENTS (some); f++) {
    g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");
    GstVideoInfo info = check_info (some[f], 37, 11);

    set_caps (h, some[f], 37, 11);
    for (guint i = 0; i < 4; i++) {
      Params params = defaults;

      params.planes = i % 2 ? "all" : "luma";
      check_frame (h, &info, &params, i, "planes");
    }
  }
}

CHECK_LOOP_TEST (test_caps_change_in_mid_stream, G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");

  for (guint i = 0; i < 24; i++) {
    const gchar *format = formats[(i * 7) % G_N_ELEMENTS (formats)];
    gint width = sizes[i % 6].width, height = sizes[i % 6].height;
    GstVideoInfo info = check_info (format, width, height);
    g_autoptr (GstCaps) caps = NULL;
    GstVideoInfo got;

    set_caps (h, format, width, height);
    check_frame (h, &info, &choices[i % 3], i, "after a change");
    caps = gst_pad_get_current_caps (h->sinkpad);
    fail_unless (gst_video_info_from_caps (&got, caps));
    fail_unless (gst_video_info_is_equal (&got, &info) ||
                 (got.width == width && got.height == height &&
                     got.finfo == info.finfo));
  }
}

CHECK_LOOP_TEST (test_flush_and_eos_pass_and_frames_go_on_after_a_flush,
    G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");
  GstVideoInfo info = check_info ("GRAY8", 31, 5);
  GstSegment segment;
  gboolean eos = FALSE;
  GstEvent *event;

  set_gray (h, 31, 5);
  check_frame (h, &info, &defaults, 1, "before the flush");
  fail_unless (gst_harness_push_event (h, gst_event_new_flush_start ()));
  fail_unless (gst_harness_push_event (h, gst_event_new_flush_stop (TRUE)));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  fail_unless (gst_harness_push_event (h, gst_event_new_segment (&segment)));
  check_frame (h, &info, &defaults, 2, "after the flush");
  fail_unless (gst_harness_push_event (h, gst_event_new_eos ()));
  while ((event = gst_harness_try_pull_event (h))) {
    eos |= GST_EVENT_TYPE (event) == GST_EVENT_EOS;
    gst_event_unref (event);
  }
  fail_unless (eos);
}

CHECK_LOOP_TEST (test_200_starts_and_stops, G_N_ELEMENTS (backends))
{
  g_autoptr (GstElement) element =
      gst_element_factory_make ("lapsharpen", NULL);

  gst_util_set_object_arg (G_OBJECT (element), "backend", backends[__i__]);
  for (guint i = 0; i < 200; i++) {
    g_autoptr (CheckHarness) h =
        gst_harness_new_with_element (element, "sink", "src");
    GstVideoInfo info = check_info ("GRAY8", 9, 3);

    set_gray (h, 9, 3);
    if (i % 3) /* now and then not one frame comes */
      check_frame (h, &info, &defaults, i, "start");
    gst_element_set_state (element, GST_STATE_NULL);
  }
}

/* --- the focus measure --- */

static void
assert_focus (GstBuffer *out, gfloat mean, gfloat variance, const gchar *where)
{
  const GstStructure *s = gst_imaging_results_get (out, "l");
  GstBuffer *data;
  gfloat numbers[2];
  gint rows, columns;

  fail_unless (s != NULL, "%s: no result", where);
  fail_unless_equals_string (
      gst_structure_get_string (s, "id"), "laplacian-focus-v1");
  fail_unless_equals_string (
      gst_structure_get_string (s, "fields"), "variance,mean");
  fail_unless (gst_structure_get (s, "rows", G_TYPE_INT, &rows, "columns",
      G_TYPE_INT, &columns, "data", GST_TYPE_BUFFER, &data, NULL));
  fail_unless (rows == 1 && columns == 2);
  fail_unless_equals_int (gst_buffer_extract (data, 0, numbers, 8), 8);
  gst_buffer_unref (data);
  fail_unless (numbers[0] == variance && numbers[1] == mean,
      "%s: variance %.9g, mean %.9g; expected %.9g, %.9g", where, numbers[0],
      numbers[1], variance, mean);
}

CHECK_LOOP_TEST (test_the_focus_measure_is_the_variance_of_the_laplacian,
    G_N_ELEMENTS (backends))
{
  static const gchar *const some[] = {
      "GRAY8", "GRAY16_LE", "RGBA", "I420", "P010_10LE"};

  for (guint f = 0; f < G_N_ELEMENTS (some); f++) {
    GstHarness *h =
        harness_new (backends[__i__], "amount=0 focus-measure=true planes=all");
    GstVideoInfo info = check_info (some[f], 37, 11);
    GstBuffer *in = noise_frame (&info, f), *out;
    Params params = defaults;
    GstVideoFrame frame;
    Picture p = {&frame, info.finfo, &params};
    long double sum = 0, squares = 0;
    guint n = 0;

    set_caps (h, some[f], 37, 11);
    fail_unless (gst_video_frame_map (&frame, &info, in, GST_MAP_READ));
    for (guint c = 0; c < GST_VIDEO_FRAME_N_COMPONENTS (&frame); c++) {
      gboolean is_alpha = GST_VIDEO_INFO_HAS_ALPHA (&info) && c == 3;

      if (GST_VIDEO_FRAME_COMP_PLANE (&frame, c) != 0 || is_alpha)
        continue;
      for (gint i = 0; i < 37 * 11; i++, n++) {
        long double l = laplacian_at (&p, c, i % 37, i / 37, FALSE);

        sum += l;
        squares += l * l;
      }
    }
    gst_video_frame_unmap (&frame);
    out = sharpen (h, in);
    assert_focus (out, sum / n, (squares * n - sum * sum) / n / n, some[f]);
    gst_buffer_unref (out);
    gst_buffer_unref (in);
    gst_harness_teardown (h);
  }
}

/* --- Gaussians --- */

/* Every component is its least value left of its middle, a half right of it. */
static GstBuffer *
step_frame (const GstVideoInfo *info)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, info->size, NULL);
  GstVideoFrame frame;

  fail_unless (gst_video_frame_map (&frame, info, buffer, GST_MAP_WRITE));
  for (guint c = 0; c < GST_VIDEO_FRAME_N_COMPONENTS (&frame); c++)
    for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT (&frame, c); y++)
      for (gint x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH (&frame, c); x++) {
        gint half = GST_VIDEO_FRAME_COMP_WIDTH (&frame, c) / 2;
        guint bits = GST_VIDEO_FORMAT_INFO_DEPTH (info->finfo, c);

        write_sample (
            &frame, c, x, y, x < half ? 1u << bits / 2 : 1u << (bits - 1));
      }
  gst_video_frame_unmap (&frame);
  return buffer;
}

/* A sample of row @y less the Gaussian there, or the negative second derivative
 * of that times radius^2, in float64. */
static gdouble
detail_at (
    const Picture *p, guint c, gint x, gint y, gdouble r, gboolean is_log)
{
  gdouble sum = 0, weights = 0;

  for (gint j = -100; j <= 100; j++) {
    gdouble g = exp (-j * j / (2 * r * r));
    gdouble v = sample_at (p, c, x + j, y);

    sum += (is_log ? (1 - j * j / (r * r)) * g : -g) * v;
    weights += g;
  }
  return (is_log ? 0 : sample_at (p, c, x, y)) + sum / weights;
}

static void
assert_details (const GstVideoInfo *info, GstBuffer *in, GstBuffer *out,
    gdouble radius, gboolean is_log)
{
  const Params params = {.border = "replicate",
      .alpha = "copy",
      .planes = "luma",
      .output = "sharpened"};
  GstVideoFrame from, to;
  Picture p = {&from, info->finfo, &params};

  fail_unless (gst_video_frame_map (&from, info, in, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&to, info, out, GST_MAP_READ));
  for (guint c = 0; c < GST_VIDEO_FRAME_N_COMPONENTS (&to); c++)
    for (gint x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH (&to, c); x++) {
      gdouble v = read_sample (&from, c, x, 1), maximum = maximum_of (&p, c);
      gdouble wanted = v, bound = 0;

      if (is_filtered (&p, c)) {
        wanted = v + detail_at (&p, c, x, 1, radius, is_log);
        wanted = CLAMP (wanted, 0, maximum);
        bound = 0.501 + 0.002 * maximum;
      }
      fail_unless (ABS (read_sample (&to, c, x, 1) - wanted) <= bound,
          "%s, component %u, x %d: %u, expected %.3f", info->finfo->name, c, x,
          read_sample (&to, c, x, 1), wanted);
    }
  gst_video_frame_unmap (&from);
  gst_video_frame_unmap (&to);
}

CHECK_LOOP_TEST (test_a_step_is_sharpened_with_the_gaussian_of_the_radius,
    G_N_ELEMENTS (backends))
{
  static const gdouble radii[] = {1, 5, 9.5};

  for (guint f = 0; f < G_N_ELEMENTS (formats); f++)
    for (guint i = 0; i < 2 * G_N_ELEMENTS (radii); i++) {
      const gdouble radius = radii[i / 2];
      g_autofree gchar *properties = g_strdup_printf (
          "range=full method=%s radius=%g", i % 2 ? "log" : "unsharp", radius);
      g_autoptr (CheckHarness) h = harness_new (backends[__i__], properties);
      GstVideoInfo info = check_info (formats[f], 98, 6);
      g_autoptr (GstBuffer) in = step_frame (&info), out = NULL;

      set_caps (h, formats[f], 98, 6);
      out = sharpen (h, in);
      assert_details (&info, in, out, radius, i % 2);
    }
}

CHECK_LOOP_TEST (
    test_method_and_radius_change_while_frames_pass, G_N_ELEMENTS (backends))
{
  static const gchar *const methods[] = {"laplacian", "unsharp", "log", "cas"};
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");
  GstBus *bus = check_watch (h->element);
  GstVideoInfo info = check_info ("RGBA", 61, 23);

  set_caps (h, "RGBA", 61, 23);
  for (guint i = 0; i < 12; i++) {
    const gdouble radius = i % 3 ? 0.3 + 1.7 * i : 20;
    g_autoptr (CheckHarness) fresh = harness_new (backends[__i__], "");
    g_autoptr (GstBuffer) out = NULL, expected = NULL;

    gst_util_set_object_arg (G_OBJECT (h->element), "method", methods[i % 4]);
    g_object_set (h->element, "radius", radius, NULL);
    out = sharpen_noise (h, &info);
    gst_util_set_object_arg (
        G_OBJECT (fresh->element), "method", methods[i % 4]);
    g_object_set (fresh->element, "radius", radius, NULL);
    set_caps (fresh, "RGBA", 61, 23);
    expected = sharpen_noise (fresh, &info);
    check_same_pixels (out, expected, &info);
  }
  fail_unless (gst_bus_pop_filtered (
                   bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR) == NULL);
  remove_bus (h, bus);
}

/* --- errors --- */

CHECK_TEST (test_a_border_value_that_does_not_count_is_said_once)
{
  const gchar *borders[] = {"replicate", "constant"};

  for (guint i = 0; i < G_N_ELEMENTS (borders); i++) {
    g_autoptr (GstElement) element =
        gst_element_factory_make ("lapsharpen", NULL);
    g_autoptr (CheckBus) bus = gst_bus_new ();
    g_autoptr (CheckHarness) h = NULL;

    g_object_set (element, "backend", 1, "border-value", 7, NULL);
    gst_util_set_object_arg (G_OBJECT (element), "border", borders[i]);
    gst_element_set_bus (element, bus);
    h = gst_harness_new_with_element (element, "sink", "src");
    set_gray (h, 8, 8);
    set_gray (h, 9, 8);
    fail_unless_equals_int (
        check_count_messages (bus, GST_MESSAGE_WARNING), i == 0);
  }
}

CHECK_TEST (test_a_region_outside_of_the_frame_is_said)
{
  const struct {
    guint x, y, width;
    const gchar *said;
  } steps[] = {
      {7, 0, 3, NULL},
      {8, 0, 3, "x=8 y=0 begins outside of the frame of 8 x 4 pixels"},
      {8, 0, 2, NULL}, /* said already */
      {1, 0, 2, NULL},
      {1, 4, 2, "x=1 y=4 begins outside"},
  };
  g_autoptr (CheckHarness) h = harness_new ("cpu", "");
  GstBus *bus = check_watch (h->element);
  GstVideoInfo info = check_info ("GRAY8", 8, 4);

  set_gray (h, 8, 4);
  for (guint i = 0; i < G_N_ELEMENTS (steps); i++) {
    g_object_set (h->element, "x", steps[i].x, "y", steps[i].y, "width",
        steps[i].width, NULL);
    gst_buffer_unref (sharpen_noise (h, &info));
    if (steps[i].said)
      check_warning (bus, LIBRARY, SETTINGS, steps[i].said);
    fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 0);
  }
  remove_bus (h, bus);
}

CHECK_LOOP_TEST (test_a_border_value_beyond_8_bits_is_an_error_with_the_limit,
    G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h =
      harness_new (backends[__i__], "border=constant border-value=300");
  GstBus *bus = check_watch (h->element);
  GstVideoInfo info = check_info ("GRAY8", 8, 2);

  set_gray (h, 8, 2);
  fail_unless (gst_harness_push (h, noise_frame (&info, 1)) != GST_FLOW_OK);
  check_error (bus, LIBRARY, SETTINGS, "border-value 300 is beyond 255");
  remove_bus (h, bus);
  gst_harness_teardown (h);

  /* 16 bits take it, and another border does not look at it */
  h = harness_new (backends[__i__], "border=constant border-value=300");
  info = check_info ("GRAY16_LE", 8, 2);
  set_caps (h, "GRAY16_LE", 8, 2);
  gst_buffer_unref (sharpen_noise (h, &info));
}

CHECK_LOOP_TEST (
    test_wrong_settings_leave_those_before_in_use, G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h =
      harness_new (backends[__i__], "focus-measure=true");
  GstBus *bus = check_watch (h->element);
  GstVideoInfo info = check_info ("I420", 8, 2);
  GstBuffer *before, *out;

  set_caps (h, "I420", 8, 2);
  before = sharpen_noise (h, &info);
  /* other planes need new kernels, and 300 is none that they take */
  gst_util_set_object_arg (G_OBJECT (h->element), "planes", "all");
  gst_util_set_object_arg (G_OBJECT (h->element), "border", "constant");
  g_object_set (h->element, "border-value", 300, NULL);
  for (guint i = 0; i < 3; i++) {
    out = sharpen_noise (h, &info);
    check_same_pixels (out, before, &info);
    gst_buffer_unref (out);
  }
  check_warning (bus, LIBRARY, SETTINGS, "border-value 300 is beyond 255");
  fail_unless (gst_bus_pop_filtered (
                   bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR) == NULL,
      "one change, one warning");
  fail_unless_equals_uint64 (check_stat (h->element, "replans"), 0);

  /* with the corrected value all of them count */
  g_object_set (h->element, "border-value", 30, NULL);
  out = sharpen_noise (h, &info);
  fail_unless_equals_uint64 (check_stat (h->element, "replans"), 1);
  gst_buffer_unref (out);
  gst_buffer_unref (before);
  remove_bus (h, bus);
}

CHECK_LOOP_TEST (test_a_frame_smaller_than_its_caps_is_an_error_and_no_crash,
    G_N_ELEMENTS (backends))
{
  g_autoptr (CheckHarness) h = harness_new (backends[__i__], "");
  GstBus *bus = check_watch (h->element);

  set_caps (h, "RGBA", 64, 64);
  check_push (h, gst_buffer_new_allocate (NULL, 100, NULL), GST_FLOW_ERROR);
  gst_message_unref (check_message (bus, GST_MESSAGE_ERROR));
  remove_bus (h, bus);
}

CHECK_MOCK_TEST (test_backend_cuda_without_a_device_is_an_error_that_says_so)
{
  GstElement *element = gst_element_factory_make ("lapsharpen", NULL);
  GstBus *bus = gst_bus_new ();

  g_setenv ("IMK_MOCK_DEVICES", "0", TRUE);
  gst_element_set_bus (element, bus);
  gst_util_set_object_arg (G_OBJECT (element), "backend", "cuda");
  fail_unless_equals_int (gst_element_set_state (element, GST_STATE_PAUSED),
      GST_STATE_CHANGE_FAILURE);
  check_error (bus, RESOURCE, NOT_FOUND, "No CUDA device is visible");
  gst_element_set_state (element, GST_STATE_NULL);
  gst_element_set_bus (element, NULL);
  gst_object_unref (bus);
  gst_object_unref (element);
  g_unsetenv ("IMK_MOCK_DEVICES");
}

/* --- the description --- */

#ifdef HAVE_NVMM
/* This program does not bring the mock of libnvbufsurface. */
CHECK_MOCK_TEST (test_surfaces_without_their_library_are_an_error_that_says_so)
{
  void *library = dlopen ("libnvbufsurface.so", RTLD_LAZY);
  GstHarness *h;
  GstBus *bus;

  if (library) {
    dlclose (library);
    check_skip ("libnvbufsurface.so is installed");
  }
  h = gst_harness_new_parse ("lapsharpen");
  bus = gst_bus_new ();
  gst_element_set_bus (h->element, bus);
  gst_harness_set_sink_caps_str (
      h, "video/x-raw(memory:NVMM),format=GRAY8,width=8,height=8");
  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY8,width=8,height=8,framerate=25/1");
  gst_harness_push (h, gst_buffer_new_allocate (NULL, 64, NULL));
  check_error (bus, RESOURCE, NOT_FOUND, "libnvbufsurface.so");
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
  gst_harness_teardown (h);
}
#endif

CHECK_TEST (test_every_property_reads_back_and_may_change_while_playing)
{
  g_autoptr (GstElement) element =
      gst_element_factory_make ("lapsharpen", NULL);
  static const gchar *const names[] = {"amount", "neighbours", "border",
      "border-value", "alpha", "planes", "threshold", "clamp", "output",
      "focus-measure", "method", "radius", "range", "light", "threshold-unit",
      "coring", "halo-bright", "halo-dark", "x", "y", "width", "height",
      "roi-meta", "split"};
  const Params *p = &choices[6];
  gdouble amount, threshold;
  guint border_value;
  gint neighbours, border, alpha, planes, clamp, output;
  gboolean focus;

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    GParamSpec *spec =
        g_object_class_find_property (G_OBJECT_GET_CLASS (element), names[i]);

    fail_unless (spec != NULL, "no property %s", names[i]);
    fail_unless (spec->flags & GST_PARAM_CONTROLLABLE &&
                     spec->flags & GST_PARAM_MUTABLE_PLAYING,
        "%s", names[i]);
    fail_unless (strlen (g_param_spec_get_blurb (spec)) > 10, "%s", names[i]);
  }
  g_object_get (element, "amount", &amount, "neighbours", &neighbours, NULL);
  fail_unless (amount == 1 && neighbours == 4);

  set_params (element, p);
  g_object_set (element, "focus-measure", TRUE, "threshold", 12.5, "clamp", 1,
      "output", 1, NULL);
  g_object_get (element, "amount", &amount, "neighbours", &neighbours, "border",
      &border, "border-value", &border_value, "alpha", &alpha, "planes",
      &planes, "threshold", &threshold, "clamp", &clamp, "output", &output,
      "focus-measure", &focus, NULL);
  fail_unless (amount == 0.7 && neighbours == 8 && border == 2 &&
               border_value == 200 && alpha == 2 && planes == 1 &&
               threshold == 12.5 && clamp == 1 && output == 1 && focus);
}

CHECK_TEST (test_the_template_offers_the_formats_that_are_tested)
{
  g_autoptr (GstElement) element =
      gst_element_factory_make ("lapsharpen", NULL);
  g_autoptr (GstPad) pad = gst_element_get_static_pad (element, "sink");
  g_autoptr (GstCaps) caps = gst_pad_get_pad_template_caps (pad);
  const GValue *list = NULL;

  for (guint i = 0; i < gst_caps_get_size (caps); i++)
    if (gst_caps_features_is_equal (gst_caps_get_features (caps, i),
            GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY) &&
        gst_structure_has_name (
            gst_caps_get_structure (caps, i), "video/x-raw"))
      list =
          gst_structure_get_value (gst_caps_get_structure (caps, i), "format");
  fail_unless (list != NULL);
  fail_unless_equals_int (
      gst_value_list_get_size (list), G_N_ELEMENTS (formats));
  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    fail_unless_equals_string (
        g_value_get_string (gst_value_list_get_value (list, i)), formats[i]);
}
