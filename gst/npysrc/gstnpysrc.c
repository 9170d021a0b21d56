/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-npysrc
 * @title: npysrc
 * @short_description: plays a NumPy .npy array as video frames
 *
 * Plays the first axis of an array as video, one entry a frame, for recordings
 * and test data from NumPy, and for 16-bit colour, which the image decoders of
 * GStreamer 1.22 do not read correctly.
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
 * 65535. Values are passed on as they are. Files of either byte order are
 * read, in C order only.
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
#include <unistd.h>

#include <gst/video/gstvideopool.h>
#include <gst/video/video.h>

#include "gstimagingnpy.h"

GST_DEBUG_CATEGORY_STATIC (gst_npy_src_debug);
#define GST_CAT_DEFAULT gst_npy_src_debug

#define DEFAULT_PROP_LOCATION NULL
#define DEFAULT_PROP_FRAMERATE_N 25
#define DEFAULT_PROP_FRAMERATE_D 1

enum {
  PROP_0,
  PROP_LOCATION,
  PROP_FRAMERATE,
};

struct _GstNpySrc {
  GstPushSrc parent;

  /* under the object lock, as queries come from any thread */
  gchar *location;
  gint framerate_n, framerate_d;
  gboolean has_framerate; /* that somebody has set */
  GstCaps *caps;          /* what is played, NULL when stopped */
  gint rate_n, rate_d;
  guint64 n_frames;

  /* from start to stop; only the streaming thread uses them */
  GstImagingNpy *npy;
  gint fd;
  GstVideoInfo info;
  guint n_channels;
  guint8 *packed; /* a frame as it is in the file, if it needs changes */
  gint64 next_frame;
  gboolean reverse;
};

/* values are in the byte order of the machine */
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("{ GRAY8, RGB, RGBA, " GST_VIDEO_NE (
        GRAY16) ", " GST_VIDEO_NE (RGBA64) " }")));

G_DEFINE_TYPE (GstNpySrc, gst_npy_src, GST_TYPE_PUSH_SRC)
GST_ELEMENT_REGISTER_DEFINE (npysrc, "npysrc", GST_RANK_NONE, GST_TYPE_NPY_SRC);

/* --- frames and times --- */

static GstClockTime
time_of_frame (guint64 frame, gint rate_n, gint rate_d)
{
  return gst_util_uint64_scale (frame, rate_d * GST_SECOND, rate_n);
}

/* Returns: the frame that is shown at @time */
static guint64
frame_at_time (GstClockTime time, gint rate_n, gint rate_d)
{
  guint64 frame = gst_util_uint64_scale (time, rate_n, rate_d * GST_SECOND);

  /* times are rounded down: the time of frame 1 at 30/1 is in frame 0.99 */
  if (time_of_frame (frame + 1, rate_n, rate_d) <= time)
    frame++;
  return frame;
}

/* --- start and stop --- */

static void
post_load_error (GstNpySrc *self, const GError *error)
{
  switch (error->code) {
  case GST_IMAGING_NPY_ERROR_NOT_FOUND:
    GST_ELEMENT_ERROR (
        self, RESOURCE, NOT_FOUND, ("%s", error->message), (NULL));
    break;
  case GST_IMAGING_NPY_ERROR_OPEN:
    GST_ELEMENT_ERROR (
        self, RESOURCE, OPEN_READ, ("%s", error->message), (NULL));
    break;
  case GST_IMAGING_NPY_ERROR_READ:
    GST_ELEMENT_ERROR (self, RESOURCE, READ, ("%s", error->message), (NULL));
    break;
  default:
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("%s", error->message), (NULL));
    break;
  }
}

static GstVideoFormat
video_format (GstImagingNpyType type, guint64 n_channels)
{
  static const struct {
    GstImagingNpyType type;
    guint n_channels;
    const gchar *name;
  } formats[] = {
      {GST_IMAGING_NPY_TYPE_U8, 1, "GRAY8"},
      {GST_IMAGING_NPY_TYPE_U8, 3, "RGB"},
      {GST_IMAGING_NPY_TYPE_U8, 4, "RGBA"},
      {GST_IMAGING_NPY_TYPE_U16, 1, GST_VIDEO_NE (GRAY16)},
      {GST_IMAGING_NPY_TYPE_U16, 3, GST_VIDEO_NE (RGBA64)}, /* no RGB48 */
      {GST_IMAGING_NPY_TYPE_U16, 4, GST_VIDEO_NE (RGBA64)},
  };

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    if (formats[i].type == type && formats[i].n_channels == n_channels)
      return gst_video_format_from_string (formats[i].name);
  return GST_VIDEO_FORMAT_UNKNOWN;
}

/* Is this array video? Fills @info and @n_channels, posts the error. */
static gboolean
interpret_shape (GstNpySrc *self, const GstImagingNpy *npy, guint64 *n_frames)
{
  g_autofree gchar *found = gst_imaging_npy_describe (npy);
  const guint64 *size = npy->n_dims > 2 ? npy->dims + 1 : npy->dims;
  guint64 n_channels = npy->n_dims == 4 ? npy->dims[3] : 1;
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
  *n_frames = npy->n_dims > 2 ? npy->dims[0] : 1;
  return TRUE;
}

/* numpy.save () of one picture gives these three dimensions, too. */
static void
warn_of_colour (GstNpySrc *self, const GstImagingNpy *npy)
{
  const guint64 *dims = npy->dims;

  if (npy->n_dims == 3 && (dims[2] == 3 || dims[2] == 4))
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

static gboolean
gst_npy_src_stop (GstBaseSrc *base)
{
  GstNpySrc *self = GST_NPY_SRC (base);

  GST_OBJECT_LOCK (self);
  gst_clear_caps (&self->caps);
  self->n_frames = 0;
  GST_OBJECT_UNLOCK (self);

  g_clear_pointer (&self->npy, gst_imaging_npy_free);
  g_clear_pointer (&self->packed, g_free);
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
  return TRUE;
}

static gboolean
open_location (GstNpySrc *self, const gchar *location)
{
  g_autoptr (GError) error = NULL;

  if (!location || !*location) {
    GST_ELEMENT_ERROR (self, RESOURCE, NOT_FOUND,
        ("No file to play: set the property location to an .npy file."),
        (NULL));
    return FALSE;
  }
  self->npy = gst_imaging_npy_open_header (location, &self->fd, &error);
  if (!self->npy)
    post_load_error (self, error);
  return self->npy != NULL;
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
gst_npy_src_start (GstBaseSrc *base)
{
  GstNpySrc *self = GST_NPY_SRC (base);
  g_autofree gchar *location = NULL;
  gboolean has_rate;
  gint rate_n, rate_d;
  guint64 n_frames;

  GST_OBJECT_LOCK (self);
  location = g_strdup (self->location);
  rate_n = self->framerate_n;
  rate_d = self->framerate_d;
  has_rate = self->has_framerate;
  GST_OBJECT_UNLOCK (self);

  if (!open_location (self, location) ||
      !interpret_shape (self, self->npy, &n_frames)) {
    gst_npy_src_stop (base);
    return FALSE;
  }
  warn_of_colour (self, self->npy);
  if (!has_rate)
    ask_rate (self, &rate_n, &rate_d);
  GST_VIDEO_INFO_FPS_N (&self->info) = rate_n;
  GST_VIDEO_INFO_FPS_D (&self->info) = rate_d;
  gst_base_src_set_blocksize (base, GST_VIDEO_INFO_SIZE (&self->info));
  self->next_frame = 0;
  self->reverse = FALSE;

  GST_OBJECT_LOCK (self);
  self->n_frames = n_frames;
  self->rate_n = rate_n;
  self->rate_d = rate_d;
  self->caps = make_caps (self, rate_n, rate_d);
  GST_OBJECT_UNLOCK (self);

  GST_INFO_OBJECT (self, "playing %" G_GUINT64_FORMAT " frames of %s", n_frames,
      self->npy->name);
  return TRUE;
}

/* --- negotiation --- */

static GstCaps *
gst_npy_src_get_caps (GstBaseSrc *base, GstCaps *filter)
{
  GstNpySrc *self = GST_NPY_SRC (base);
  GstCaps *caps, *result;

  GST_OBJECT_LOCK (self);
  caps = self->caps ? gst_caps_ref (self->caps) : NULL;
  GST_OBJECT_UNLOCK (self);

  if (!caps)
    caps = gst_pad_get_pad_template_caps (GST_BASE_SRC_PAD (base));
  if (!filter)
    return caps;
  result = gst_caps_intersect_full (filter, caps, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (caps);
  return result;
}

/* A video pool if downstream has none, and strides as downstream likes them if
 * it reads them from GstVideoMeta. The base configures the pool. */
static gboolean
gst_npy_src_decide_allocation (GstBaseSrc *base, GstQuery *query)
{
  GstNpySrc *self = GST_NPY_SRC (base);
  GstBufferPool *pool = NULL;
  guint size = 0, min = 0, max = 0;
  gboolean offered = gst_query_get_n_allocation_pools (query) > 0;
  GstStructure *config;
  GstCaps *caps;

  if (offered)
    gst_query_parse_nth_allocation_pool (query, 0, &pool, &size, &min, &max);
  size = MAX (size, GST_VIDEO_INFO_SIZE (&self->info));
  if (!pool)
    pool = gst_video_buffer_pool_new ();

  gst_query_parse_allocation (query, &caps, NULL);
  config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_set_params (config, caps, size, min, max);
  if (gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL))
    gst_buffer_pool_config_add_option (
        config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (gst_buffer_pool_set_config (pool, config)) {
    /* the pool may pad its rows */
    config = gst_buffer_pool_get_config (pool);
    gst_buffer_pool_config_get_params (config, NULL, &size, NULL, NULL);
    gst_structure_free (config);
  }
  if (offered)
    gst_query_set_nth_allocation_pool (query, 0, pool, size, min, max);
  else
    gst_query_add_allocation_pool (query, pool, size, min, max);
  gst_object_unref (pool);

  return GST_BASE_SRC_CLASS (gst_npy_src_parent_class)
      ->decide_allocation (base, query);
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
  gsize value_size = gst_imaging_npy_type_size (self->npy->type);
  gsize row_size = (gsize) width * self->n_channels * value_size;
  gboolean needs_alpha = value_size == 2 && self->n_channels == 3;

  if (stride == row_size && !needs_alpha)
    return gst_imaging_npy_read_values (
        self->npy, self->fd, index * n_values, n_values, out, error);

  if (!self->packed)
    self->packed = g_try_malloc (n_values * value_size);
  if (!self->packed) {
    g_set_error (error, GST_IMAGING_NPY_ERROR, GST_IMAGING_NPY_ERROR_MEMORY,
        "\"%s\" does not fit in memory: a frame takes %" G_GSIZE_FORMAT
        " bytes.",
        self->npy->name, n_values * value_size);
    return FALSE;
  }
  if (!gst_imaging_npy_read_values (
          self->npy, self->fd, index * n_values, n_values, self->packed, error))
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

static GstFlowReturn
gst_npy_src_fill (GstPushSrc *push, GstBuffer *buffer)
{
  GstNpySrc *self = GST_NPY_SRC (push);
  gint rate_n = self->rate_n, rate_d = self->rate_d;
  guint64 index = self->next_frame;
  g_autoptr (GError) error = NULL;
  GstVideoFrame frame;
  gboolean ok;

  if (self->next_frame < 0 || index >= self->n_frames)
    return GST_FLOW_EOS;

  if (!gst_video_frame_map (&frame, &self->info, buffer, GST_MAP_WRITE))
    goto map_failed;
  ok = read_frame (self, index, &frame, &error);
  gst_video_frame_unmap (&frame);
  if (!ok)
    goto read_failed;

  GST_BUFFER_OFFSET (buffer) = index;
  GST_BUFFER_OFFSET_END (buffer) = index + 1;
  GST_BUFFER_PTS (buffer) = time_of_frame (index, rate_n, rate_d);
  GST_BUFFER_DTS (buffer) = GST_CLOCK_TIME_NONE;
  GST_BUFFER_DURATION (buffer) =
      time_of_frame (index + 1, rate_n, rate_d) - GST_BUFFER_PTS (buffer);
  self->next_frame += self->reverse ? -1 : 1;
  GST_LOG_OBJECT (self, "frame %" G_GUINT64_FORMAT, index);
  return GST_FLOW_OK;

map_failed:
  GST_ELEMENT_ERROR (self, RESOURCE, WRITE,
      ("The memory for frame %" G_GUINT64_FORMAT " of \"%s\" cannot be "
       "written; the next element offers memory that is too small or not "
       "accessible.",
          index, self->npy->name),
      ("mapping %" GST_PTR_FORMAT, buffer));
  return GST_FLOW_ERROR;
read_failed:
  GST_ELEMENT_ERROR (self, RESOURCE, READ, ("%s", error->message),
      ("frame %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT, index,
          self->n_frames));
  return GST_FLOW_ERROR;
}

/* --- seeking --- */

static gboolean
gst_npy_src_is_seekable (GstBaseSrc *base)
{
  return TRUE;
}

static gboolean
gst_npy_src_do_seek (GstBaseSrc *base, GstSegment *segment)
{
  GstNpySrc *self = GST_NPY_SRC (base);
  gint rate_n = self->rate_n, rate_d = self->rate_d;
  GstClockTime end = time_of_frame (self->n_frames, rate_n, rate_d);
  GstClockTime position = segment->position;

  segment->time = segment->start;
  segment->duration = end; /* stands in for a stop when playing backwards */
  self->reverse = segment->rate < 0;
  if (!self->reverse) {
    self->next_frame = frame_at_time (position, rate_n, rate_d);
    return TRUE;
  }
  /* backwards starts with the frame that ends at, or contains, the position */
  position = MIN (position, end); /* none is the largest number */
  self->next_frame = frame_at_time (position, rate_n, rate_d);
  if (time_of_frame (self->next_frame, rate_n, rate_d) >= position)
    self->next_frame--;
  return TRUE;
}

/* Returns: FALSE if that is no conversion between time and frames */
static gboolean
convert (GstFormat from, gint64 value, GstFormat to, gint rate_n, gint rate_d,
    gint64 *result)
{
  if (from == to || value == -1)
    *result = value;
  else if (value < 0)
    return FALSE;
  else if (from == GST_FORMAT_DEFAULT && to == GST_FORMAT_TIME)
    *result = time_of_frame (value, rate_n, rate_d);
  else if (from == GST_FORMAT_TIME && to == GST_FORMAT_DEFAULT)
    *result = frame_at_time (value, rate_n, rate_d);
  else
    return FALSE;
  return TRUE;
}

static gboolean
gst_npy_src_query (GstBaseSrc *base, GstQuery *query)
{
  GstNpySrc *self = GST_NPY_SRC (base);
  GstFormat from, to;
  gint rate_n, rate_d;
  guint64 n_frames;
  gint64 value, result;

  GST_OBJECT_LOCK (self);
  n_frames = self->n_frames;
  rate_n = self->rate_n;
  rate_d = self->rate_d;
  GST_OBJECT_UNLOCK (self);

  if (n_frames > 0 && GST_QUERY_TYPE (query) == GST_QUERY_DURATION) {
    gst_query_parse_duration (query, &to, NULL);
    if (convert (GST_FORMAT_DEFAULT, n_frames, to, rate_n, rate_d, &result)) {
      gst_query_set_duration (query, to, result);
      return TRUE;
    }
  }
  if (n_frames > 0 && GST_QUERY_TYPE (query) == GST_QUERY_CONVERT) {
    gst_query_parse_convert (query, &from, &value, &to, NULL);
    if (convert (from, value, to, rate_n, rate_d, &result)) {
      gst_query_set_convert (query, from, value, to, result);
      return TRUE;
    }
  }
  if (n_frames > 0 && GST_QUERY_TYPE (query) == GST_QUERY_SEEKING) {
    gst_query_parse_seeking (query, &to, NULL, NULL, NULL);
    if (convert (GST_FORMAT_DEFAULT, n_frames, to, rate_n, rate_d, &result)) {
      gst_query_set_seeking (query, to, TRUE, 0, result);
      return TRUE;
    }
  }
  return GST_BASE_SRC_CLASS (gst_npy_src_parent_class)->query (base, query);
}

/* --- the object --- */

static void
gst_npy_src_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstNpySrc *self = GST_NPY_SRC (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_LOCATION:
    g_free (self->location);
    self->location = g_value_dup_string (value);
    break;
  case PROP_FRAMERATE:
    self->framerate_n = gst_value_get_fraction_numerator (value);
    self->framerate_d = gst_value_get_fraction_denominator (value);
    self->has_framerate = TRUE;
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_npy_src_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstNpySrc *self = GST_NPY_SRC (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_LOCATION:
    g_value_set_string (value, self->location);
    break;
  case PROP_FRAMERATE:
    gst_value_set_fraction (value, self->framerate_n, self->framerate_d);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_npy_src_finalize (GObject *object)
{
  g_free (GST_NPY_SRC (object)->location);
  G_OBJECT_CLASS (gst_npy_src_parent_class)->finalize (object);
}

static void
gst_npy_src_class_init (GstNpySrcClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSrcClass *base_class = GST_BASE_SRC_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (
      gst_npy_src_debug, "npysrc", 0, "NumPy .npy arrays as video");

  object_class->set_property = gst_npy_src_set_property;
  object_class->get_property = gst_npy_src_get_property;
  object_class->finalize = gst_npy_src_finalize;

  g_object_class_install_property (object_class, PROP_LOCATION,
      g_param_spec_string ("location", "Location",
          "Path of the .npy file to play: u8 or u16, C order, shape [height, "
          "width], [frames, height, width] or [frames, height, width, 1|3|4]",
          DEFAULT_PROP_LOCATION,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
              GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (object_class, PROP_FRAMERATE,
      gst_param_spec_fraction ("framerate", "Framerate",
          "Frames a second: frame n has the timestamp n / framerate and the "
          "duration 1 / framerate. Until it is set, a rate that downstream "
          "asks for goes first",
          1, G_MAXINT, G_MAXINT, 1, DEFAULT_PROP_FRAMERATE_N,
          DEFAULT_PROP_FRAMERATE_D,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
              GST_PARAM_MUTABLE_READY));

  gst_element_class_set_static_metadata (element_class, "NumPy array source",
      "Source/File/Video", "Plays a NumPy .npy array as video frames",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &src_template);

  base_class->start = gst_npy_src_start;
  base_class->stop = gst_npy_src_stop;
  base_class->get_caps = gst_npy_src_get_caps;
  base_class->decide_allocation = gst_npy_src_decide_allocation;
  base_class->is_seekable = gst_npy_src_is_seekable;
  base_class->do_seek = gst_npy_src_do_seek;
  base_class->query = gst_npy_src_query;
  GST_PUSH_SRC_CLASS (klass)->fill = gst_npy_src_fill;
}

static void
gst_npy_src_init (GstNpySrc *self)
{
  self->fd = -1;
  self->framerate_n = DEFAULT_PROP_FRAMERATE_N;
  self->framerate_d = DEFAULT_PROP_FRAMERATE_D;
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_TIME);
}
