/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-npysrc
 * @title: npysrc
 * @short_description: plays an array from a file as video frames
 *
 * Plays the first axis of an array as video, one entry a frame: a NumPy .npy
 * file, TIFF or FITS of several pages, one picture or a folder of them, also of
 * 16-bit colour, which the image decoders of GStreamer 1.22 do not read
 * correctly.
 *
 * | shape                                  | u8    | u16       |
 * | -------------------------------------- | ----- | --------- |
 * | `[height, width]`                      | GRAY8 | GRAY16_LE |
 * | `[frames, height, width]`              | GRAY8 | GRAY16_LE |
 * | `[frames, height, width, 1]`           | GRAY8 | GRAY16_LE |
 * | `[frames, height, width, 3]`           | RGB   | RGBA64_LE |
 * | `[frames, height, width, 4]`           | RGBA  | RGBA64_LE |
 *
 * GStreamer has no RGB with 16 bits, so three channels of u16 get an alpha of
 * 65535. Values are passed on as they are.
 *
 * Frame n has the buffer offset n, the timestamp n / framerate and the
 * duration 1 / framerate. Seeking is exact, in time and in frames (format
 * DEFAULT), also backwards. Frames are read one at a time, so the array may be
 * larger than memory.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 npysrc location=frames.npy framerate=100/1 ! videoconvert !
 * autovideosink
 * ]|
 */
#include "gstnpysrc.h"

#include <string.h>

#include <gst/video/video.h>

#include "gstimagingsequence.h"

GST_DEBUG_CATEGORY_STATIC (gst_npy_src_debug);
#define GST_CAT_DEFAULT gst_npy_src_debug

/* Where neither the user nor downstream names a rate. */
#define USUAL_RATE 25

typedef struct {
  GstImagingFileSrcSettings file;
  GstImagingFraction framerate;
} Settings;

static const GstImagingSetting settings[] = {
    GST_IMAGING_PATH ("location", NEXT_START, 0, Settings, file.location, NULL,
        NULL,
        "Path of the array file to play: u8 or u16, shape [height, width], "
        "[frames, height, width] or [frames, height, width, 1|3|4]; .npy, a "
        "picture, or a file of several pages. A folder, or a name with * and ? "
        "in its last part, stands for its files in natural order"),
    GST_IMAGING_FRACTION ("framerate", NEXT_START, 0, Settings, framerate, 0,
        "Hz",
        "Frames a second: frame n has the timestamp n / framerate and the "
        "duration 1 / framerate. 0/1: the rate that downstream asks for, else "
        "25/1"),
};

static void
init_settings (gpointer data)
{
  ((Settings *) data)->framerate = (GstImagingFraction){0, 1};
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .init = init_settings,
};

struct _GstNpySrc {
  GstImagingFileSrc parent;

  /* from start to stop; only the streaming thread uses them */
  GstImagingSequence *files;
  const GstImagingNdArray *array; /* the first, without values */
  GstVideoInfo info;
  guint n_channels;
  guint8 *packed; /* a frame as it is in the file, if it needs changes */
};

/* values are in the byte order of the machine */
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("{ GRAY8, RGB, RGBA, " GST_VIDEO_NE (
        GRAY16) ", " GST_VIDEO_NE (RGBA64) " }")));

G_DEFINE_TYPE (GstNpySrc, gst_npy_src, GST_TYPE_IMAGING_FILE_SRC)
GST_ELEMENT_REGISTER_DEFINE (npysrc, "npysrc", GST_RANK_NONE, GST_TYPE_NPY_SRC);

/* --- start and stop --- */

static void
post_load_error (GstNpySrc *self, const GError *error)
{
  switch (error->code) {
  case GST_IMAGING_ND_ARRAY_ERROR_NOT_FOUND:
    GST_ELEMENT_ERROR (
        self, RESOURCE, NOT_FOUND, ("%s", error->message), (NULL));
    break;
  case GST_IMAGING_ND_ARRAY_ERROR_OPEN:
    GST_ELEMENT_ERROR (
        self, RESOURCE, OPEN_READ, ("%s", error->message), (NULL));
    break;
  case GST_IMAGING_ND_ARRAY_ERROR_READ:
    GST_ELEMENT_ERROR (self, RESOURCE, READ, ("%s", error->message), (NULL));
    break;
  default:
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("%s", error->message), (NULL));
    break;
  }
}

static GstVideoFormat
video_format (GstImagingNdArrayType type, guint64 n_channels)
{
  static const struct {
    GstImagingNdArrayType type;
    guint n_channels;
    const gchar *name;
  } formats[] = {
      {GST_IMAGING_ND_ARRAY_TYPE_U8, 1, "GRAY8"},
      {GST_IMAGING_ND_ARRAY_TYPE_U8, 3, "RGB"},
      {GST_IMAGING_ND_ARRAY_TYPE_U8, 4, "RGBA"},
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 1, GST_VIDEO_NE (GRAY16)},
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 3, GST_VIDEO_NE (RGBA64)}, /* no RGB48 */
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 4, GST_VIDEO_NE (RGBA64)},
  };

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    if (formats[i].type == type && formats[i].n_channels == n_channels)
      return gst_video_format_from_string (formats[i].name);
  return GST_VIDEO_FORMAT_UNKNOWN;
}

/* Is this array video? Fills @info and @n_channels, posts the error. */
static gboolean
interpret_shape (
    GstNpySrc *self, const GstImagingNdArray *npy, guint64 *n_frames)
{
  g_autofree gchar *found = gst_imaging_nd_array_describe (npy);
  /* a picture of colours is told from frames where the file says which it is */
  gboolean is_colour = strcmp (npy->axes, "yxc") == 0;
  gboolean has_frames = npy->n_dims > 2 && !is_colour;
  const guint64 *size = npy->dims + has_frames;
  guint64 n_channels = is_colour          ? npy->dims[2]
                       : npy->n_dims == 4 ? npy->dims[3]
                                          : 1;
  GstVideoFormat format = video_format (npy->type, n_channels);

  if (npy->n_dims < 2 || npy->n_dims > 4 ||
      format == GST_VIDEO_FORMAT_UNKNOWN) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("\"%s\" holds %s, expected is u8 or u16 and the shape "
         "[height, width], "
         "[frames, height, width] or [frames, height, width, channels] with 1, "
         "3 or 4 channels.",
            npy->name, found),
        (NULL));
    return FALSE;
  }
  if (npy->n_values == 0) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("\"%s\" holds %s: there is nothing to play, expected is at least one "
         "frame of at least one pixel.",
            npy->name, found),
        (NULL));
    return FALSE;
  }
  if (MAX (size[0], size[1]) > G_MAXINT ||
      !gst_video_info_set_format (&self->info, format, size[1], size[0]) ||
      GST_VIDEO_INFO_PLANE_STRIDE (&self->info, 0) <= 0) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("\"%s\" holds %s: frames of %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT
         " pixels are larger than a video frame can be, expected are less than "
         "2 GiB a frame.",
            npy->name, found, size[1], size[0]),
        (NULL));
    return FALSE;
  }
  self->n_channels = n_channels;
  *n_frames = gst_imaging_sequence_get_n_pages (self->files);
  return TRUE;
}

/* numpy.save () of one picture gives these three dimensions, too. */
static void
warn_of_colour (GstNpySrc *self, const GstImagingNdArray *npy)
{
  const guint64 *dims = npy->dims;

  if (!*npy->axes && npy->n_dims == 3 && (dims[2] == 3 || dims[2] == 4))
    GST_ELEMENT_WARNING (self, STREAM, FORMAT,
        ("\"%s\" is played as %" G_GUINT64_FORMAT
         " grey frames of %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT
         " pixels. If it is one colour picture, save picture[numpy.newaxis].",
            npy->name, dims[0], dims[2], dims[1]),
        (NULL));
}

/* Values of a frame in the file. */
static gsize
values_per_frame (GstNpySrc *self)
{
  return (gsize) GST_VIDEO_INFO_WIDTH (&self->info) *
         GST_VIDEO_INFO_HEIGHT (&self->info) * self->n_channels;
}

static void
gst_npy_src_close (GstImagingFileSrc *src)
{
  GstNpySrc *self = GST_NPY_SRC (src);

  g_clear_pointer (&self->files, gst_imaging_sequence_free);
  g_clear_pointer (&self->packed, g_free);
  self->array = NULL;
}

static gboolean
open_location (GstNpySrc *self, const gchar *location)
{
  g_autoptr (GError) error = NULL;

  if (!location || !*location) {
    GST_ELEMENT_ERROR (self, RESOURCE, NOT_FOUND,
        ("No file to play: set the property location to an array file."),
        (NULL));
    return FALSE;
  }
  self->files = gst_imaging_sequence_new (location, &error);
  if (!self->files) {
    post_load_error (self, error);
    return FALSE;
  }
  self->array = gst_imaging_sequence_get_array (self->files);
  return TRUE;
}

/* The caps of what is played; without a frame rate where @rate_n is 0. */
static GstCaps *
make_caps (GstNpySrc *self, gint rate_n, gint rate_d)
{
  const GstVideoInfo *info = &self->info;
  GstCaps *caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
      gst_video_format_to_string (GST_VIDEO_INFO_FORMAT (info)), "width",
      G_TYPE_INT, GST_VIDEO_INFO_WIDTH (info), "height", G_TYPE_INT,
      GST_VIDEO_INFO_HEIGHT (info), "pixel-aspect-ratio", GST_TYPE_FRACTION, 1,
      1, "interlace-mode", G_TYPE_STRING, "progressive", NULL);

  if (rate_n > 0)
    gst_caps_set_simple (
        caps, "framerate", GST_TYPE_FRACTION, rate_n, rate_d, NULL);
  return caps;
}

/* What downstream wants that is nearest to the default, or the default. */
static void
ask_rate (GstNpySrc *self, gint *rate_n, gint *rate_d)
{
  GstCaps *ours = make_caps (self, 0, 1);
  GstCaps *common =
      gst_pad_peer_query_caps (GST_BASE_SRC_PAD (GST_BASE_SRC (self)), ours);
  gint n = 0, d = 1;

  if (!gst_caps_is_empty (common) && !gst_caps_is_any (common)) {
    GstStructure *wanted;

    common = gst_caps_make_writable (common);
    wanted = gst_caps_get_structure (common, 0);
    if (gst_structure_has_field (wanted, "framerate"))
      gst_structure_fixate_field_nearest_fraction (
          wanted, "framerate", *rate_n, *rate_d);
    gst_structure_get_fraction (wanted, "framerate", &n, &d);
  }
  if (n > 0 && d > 0) {
    *rate_n = n;
    *rate_d = d;
  }
  gst_caps_unref (common);
  gst_caps_unref (ours);
}

static gboolean
gst_npy_src_open (
    GstImagingFileSrc *src, const gchar *location, GstImagingFileSrcInfo *info)
{
  GstNpySrc *self = GST_NPY_SRC (src);
  const Settings *s = gst_imaging_settings_now (gst_imaging_settings_of (self));
  gboolean has_rate = s->framerate.n > 0;

  info->rate_n = has_rate ? s->framerate.n : USUAL_RATE;
  info->rate_d = has_rate ? s->framerate.d : 1;
  if (!open_location (self, location) ||
      !interpret_shape (self, self->array, &info->n_units))
    return FALSE;
  warn_of_colour (self, self->array);
  if (!has_rate)
    ask_rate (self, &info->rate_n, &info->rate_d);
  info->caps = make_caps (self, info->rate_n, info->rate_d);
  info->unit_name = "frames";
  info->unit_size = GST_VIDEO_INFO_SIZE (&self->info);
  info->n_per_buffer = 1;
  return TRUE;
}

/* --- streaming --- */

static void
add_alpha (guint16 *rgba, const guint16 *rgb, guint width)
{
  for (guint x = 0; x < width; x++) {
    rgba[4 * x] = rgb[3 * x];
    rgba[4 * x + 1] = rgb[3 * x + 1];
    rgba[4 * x + 2] = rgb[3 * x + 2];
    rgba[4 * x + 3] = 65535;
  }
}

static gboolean
read_frame (
    GstNpySrc *self, guint64 index, GstVideoFrame *frame, GError **error)
{
  guint width = GST_VIDEO_FRAME_WIDTH (frame);
  guint height = GST_VIDEO_FRAME_HEIGHT (frame);
  gsize stride = GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0);
  guint8 *out = GST_VIDEO_FRAME_PLANE_DATA (frame, 0);
  gsize n_values = values_per_frame (self);
  gsize value_size = gst_imaging_nd_array_type_size (self->array->type);
  gsize row_size = (gsize) width * self->n_channels * value_size;
  gboolean needs_alpha = value_size == 2 && self->n_channels == 3;

  if (stride == row_size && !needs_alpha)
    return gst_imaging_sequence_read (self->files, index, out, error);

  if (!self->packed)
    self->packed = g_try_malloc (n_values * value_size);
  if (!self->packed) {
    g_set_error (error, GST_IMAGING_ND_ARRAY_ERROR,
        GST_IMAGING_ND_ARRAY_ERROR_MEMORY,
        "\"%s\" does not fit in memory: a frame takes %" G_GSIZE_FORMAT
        " bytes.",
        self->array->name, n_values * value_size);
    return FALSE;
  }
  if (!gst_imaging_sequence_read (self->files, index, self->packed, error))
    return FALSE;
  for (guint y = 0; y < height; y++) {
    const guint8 *in = self->packed + y * row_size;

    if (needs_alpha)
      add_alpha ((guint16 *) (out + y * stride), (const guint16 *) in, width);
    else
      memcpy (out + y * stride, in, row_size);
  }
  return TRUE;
}

static gboolean
gst_npy_src_read (GstImagingFileSrc *src, guint64 first, guint n,
    GstBuffer *buffer, GError **error)
{
  GstNpySrc *self = GST_NPY_SRC (src);
  GstVideoFrame frame;
  gboolean ok;

  if (!gst_video_frame_map (&frame, &self->info, buffer, GST_MAP_WRITE)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE,
        "The memory for frame %" G_GUINT64_FORMAT
        " of \"%s\" cannot be written; the next element offers memory that is "
        "too small or not accessible.",
        first, self->array->name);
    return FALSE;
  }
  ok = read_frame (self, first, &frame, error);
  gst_video_frame_unmap (&frame);
  return ok;
}

/* --- the object --- */

static void
gst_npy_src_class_init (GstNpySrcClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstImagingFileSrcClass *file_class = GST_IMAGING_FILE_SRC_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (
      gst_npy_src_debug, "npysrc", 0, "NumPy .npy arrays as video");

  gst_imaging_settings_install (G_OBJECT_CLASS (klass), &table);
  gst_element_class_set_static_metadata (element_class, "Array file source",
      "Source/File/Video", "Plays an array from a file as video frames",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &src_template);

  file_class->open = gst_npy_src_open;
  file_class->read = gst_npy_src_read;
  file_class->close = gst_npy_src_close;
}

static void
gst_npy_src_init (GstNpySrc *self)
{
  gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_TIME);
}
