/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingfilesrc.h"

#include <gst/video/gstvideopool.h>
#include <gst/video/video.h>

#define N_REPORTS 10

typedef struct {
  /* under the object lock: any thread may query */
  GstImagingFileSrcInfo info; /* without caps and units when stopped */

  /* from start to stop; only the streaming thread uses them */
  gint64 next; /* -1 before the first, when playing backwards */
  gint64 stop;
  gboolean reverse;
  guint n_reported;
  gboolean is_video; /* its rows may be padded */
} GstImagingFileSrcPrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (
    GstImagingFileSrc, gst_imaging_file_src, GST_TYPE_PUSH_SRC)

static GstImagingFileSrcPrivate *
private_of (gpointer self)
{
  return gst_imaging_file_src_get_instance_private (self);
}

/* Copies what queries ask for; without caps. */
static GstImagingFileSrcInfo
get_info (gpointer self)
{
  GstImagingFileSrcInfo info;

  GST_OBJECT_LOCK (self);
  info = private_of (self)->info;
  GST_OBJECT_UNLOCK (self);
  info.caps = NULL;
  return info;
}

/* --- units and times ------------------------------------------------------ */

static GstClockTime
time_of_unit (const GstImagingFileSrcInfo *info, guint64 unit)
{
  return gst_util_uint64_scale (unit, info->rate_d * GST_SECOND, info->rate_n);
}

/* Returns: the unit that is shown at @time */
static guint64
unit_at_time (const GstImagingFileSrcInfo *info, GstClockTime time)
{
  guint64 unit =
      gst_util_uint64_scale (time, info->rate_n, info->rate_d * GST_SECOND);

  /* times are rounded down: the time of frame 1 at 30/1 is in frame 0.99 */
  if (time_of_unit (info, unit + 1) <= time)
    unit++;
  return unit;
}

/* Returns: FALSE if that is no conversion between time and units */
static gboolean
convert (const GstImagingFileSrcInfo *info, GstFormat from, gint64 value,
    GstFormat to, gint64 *result)
{
  if (from == to || value == -1)
    *result = value;
  else if (value < 0 || info->rate_n == 0)
    return FALSE;
  else if (from == GST_FORMAT_DEFAULT && to == GST_FORMAT_TIME)
    *result = (gint64) MIN (time_of_unit (info, value), G_MAXINT64);
  else if (from == GST_FORMAT_TIME && to == GST_FORMAT_DEFAULT)
    *result = unit_at_time (info, value);
  else
    return FALSE;
  return TRUE;
}

/* Returns: where the last unit ends; those of a loop have no end */
static guint64
end_of_units (const GstImagingFileSrcInfo *info)
{
  return info->loop ? G_MAXINT64 : info->n_units;
}

/* --- start and stop ------------------------------------------------------- */

static gboolean
gst_imaging_file_src_stop (GstBaseSrc *base)
{
  GstImagingFileSrcPrivate *self = private_of (base);

  GST_OBJECT_LOCK (base);
  gst_clear_caps (&self->info.caps);
  self->info.n_units = 0;
  GST_OBJECT_UNLOCK (base);
  GST_IMAGING_FILE_SRC_GET_CLASS (base)->close (GST_IMAGING_FILE_SRC (base));
  return TRUE;
}

static gboolean
gst_imaging_file_src_start (GstBaseSrc *base)
{
  GstImagingFileSrcPrivate *self = private_of (base);
  GstImagingFileSrcInfo info = {NULL};
  GstImagingSettings *settings = gst_imaging_settings_of (base);
  const gchar *location;

  gst_imaging_settings_start (settings);
  gst_imaging_settings_update (settings, GST_IMAGING_WHEN_NEXT_START,
      GST_CLOCK_TIME_NONE, NULL); /* they have no apply () that could fail */
  location = gst_imaging_setting_file_location (
      ((const GstImagingFileSrcSettings *) gst_imaging_settings_now (settings))
          ->location);
  if (!GST_IMAGING_FILE_SRC_GET_CLASS (base)->open (
          GST_IMAGING_FILE_SRC (base), location, &info)) {
    gst_imaging_file_src_stop (base);
    return FALSE;
  }
  self->next = 0;
  self->stop = (gint64) end_of_units (&info);
  self->reverse = FALSE;
  self->n_reported = 0;
  GST_OBJECT_LOCK (base);
  self->info = info;
  GST_OBJECT_UNLOCK (base);
  GST_INFO_OBJECT (base, "reading %" G_GUINT64_FORMAT " %s of %s", info.n_units,
      info.unit_name, location);
  return TRUE;
}

/* --- negotiation ---------------------------------------------------------- */

static GstCaps *
gst_imaging_file_src_get_caps (GstBaseSrc *base, GstCaps *filter)
{
  GstImagingFileSrcPrivate *self = private_of (base);
  GstCaps *caps, *result;

  GST_OBJECT_LOCK (base);
  caps = self->info.caps ? gst_caps_ref (self->info.caps) : NULL;
  GST_OBJECT_UNLOCK (base);

  if (!caps)
    caps = gst_pad_get_pad_template_caps (GST_BASE_SRC_PAD (base));
  if (!filter)
    return caps;
  result = gst_caps_intersect_full (filter, caps, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (caps);
  return result;
}

static gboolean
is_video (GstCaps *caps)
{
  return gst_structure_has_name (
      gst_caps_get_structure (caps, 0), "video/x-raw");
}

/* Nothing in GStreamer makes video of wide samples: what is black and white is
 * the user's to say. */
static const gchar *
advise (GstCaps *ours, GstCaps *peer)
{
  gboolean takes_video = FALSE, takes_lines = FALSE;

  for (guint i = 0; i < gst_caps_get_size (peer); i++) {
    const gchar *name =
        gst_structure_get_name (gst_caps_get_structure (peer, i));

    takes_video = takes_video || g_str_has_prefix (name, "video/");
    takes_lines = takes_lines || g_str_equal (name, "application/x-slc");
  }
  if (takes_lines)
    return "It takes images by lines, which slcsrc reads: PRM files, .npy of "
           "complex64 or float32, and what GDAL reads.";
  if (is_video (ours))
    return "Put videoconvert between, or set location to another file.";
  return takes_video ? "Video has no samples of this type or shape, and "
                       "videoconvert takes none. Scale them to u8 or u16, for "
                       "example with NumPy, and save them as .npy or .png; or "
                       "link an element that takes other/tensors."
                     : "Link an element that takes these, or set location to "
                       "another file.";
}

/* GstBaseSrc only says "not-negotiated". */
static void
post_caps_error (GstBaseSrc *base, GstCaps *ours, GstCaps *peer)
{
  g_autofree gchar *offer =
      gst_structure_to_string (gst_caps_get_structure (ours, 0));
  g_autofree gchar *taken = gst_caps_to_string (peer);

  GST_ELEMENT_ERROR (base, STREAM, FAILED,
      ("The next element does not take what this file holds: %s %s", offer,
          advise (ours, peer)),
      ("it takes %s", taken));
}

static gboolean
gst_imaging_file_src_negotiate (GstBaseSrc *base)
{
  GstPad *pad = GST_BASE_SRC_PAD (base);
  GstCaps *ours, *peer;

  if (GST_BASE_SRC_CLASS (gst_imaging_file_src_parent_class)->negotiate (base))
    return TRUE;
  ours = gst_pad_query_caps (pad, NULL);
  peer = gst_pad_peer_query_caps (pad, NULL);
  if (!GST_PAD_IS_FLUSHING (pad) && !gst_caps_can_intersect (ours, peer))
    post_caps_error (base, ours, peer);
  gst_caps_unref (ours);
  gst_caps_unref (peer);
  return FALSE;
}

/* The first of our caps that the peer takes, whatever its own order is. */
static GstCaps *
gst_imaging_file_src_fixate (GstBaseSrc *base, GstCaps *caps)
{
  GstCaps *ours = private_of (base)->info.caps;
  GstCaps *result =
      gst_caps_intersect_full (ours, caps, GST_CAPS_INTERSECT_FIRST);

  gst_caps_unref (caps);
  return gst_caps_truncate (result);
}

static gboolean
gst_imaging_file_src_set_caps (GstBaseSrc *base, GstCaps *caps)
{
  GstImagingFileSrcPrivate *self = private_of (base);
  GstImagingFileSrcClass *klass = GST_IMAGING_FILE_SRC_GET_CLASS (base);

  if (klass->set_caps)
    self->info.unit_size = klass->set_caps (GST_IMAGING_FILE_SRC (base), caps);
  self->is_video = is_video (caps);
  gst_base_src_set_blocksize (
      base, (guint) (self->info.n_per_buffer * self->info.unit_size));
  return TRUE;
}

/* Strides as downstream likes them, if it reads them from GstVideoMeta.
 * Returns: bytes of a buffer, as the pool may pad its rows */
static guint
configure_video_pool (GstBufferPool *pool, GstQuery *query, GstCaps *caps,
    guint size, guint min, guint max)
{
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_set_params (config, caps, size, min, max);
  if (gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL))
    gst_buffer_pool_config_add_option (
        config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (gst_buffer_pool_set_config (pool, config)) {
    config = gst_buffer_pool_get_config (pool);
    gst_buffer_pool_config_get_params (config, NULL, &size, NULL, NULL);
    gst_structure_free (config);
  }
  return size;
}

/* Memory of this size fresh from the system costs more than reading into it, so
 * buffers come from a pool, downstream's or our own. The base configures it,
 * with the allocator that downstream offers. */
static gboolean
gst_imaging_file_src_decide_allocation (GstBaseSrc *base, GstQuery *query)
{
  guint blocksize = gst_base_src_get_blocksize (base);
  guint size = 0, min = 0, max = 0;
  gboolean offered = gst_query_get_n_allocation_pools (query) > 0;
  GstBufferPool *pool = NULL;
  GstCaps *caps;

  gst_query_parse_allocation (query, &caps, NULL);
  if (offered)
    gst_query_parse_nth_allocation_pool (query, 0, &pool, &size, &min, &max);
  if (is_video (caps)) {
    if (!pool)
      pool = gst_video_buffer_pool_new ();
    size = configure_video_pool (
        pool, query, caps, MAX (size, blocksize), min, max);
  } else if (!pool || size < blocksize) {
    gst_clear_object (&pool);
    pool = gst_buffer_pool_new ();
    size = blocksize;
    min = max = 0;
  }
  if (offered)
    gst_query_set_nth_allocation_pool (query, 0, pool, size, min, max);
  else
    gst_query_add_allocation_pool (query, pool, size, min, max);
  gst_object_unref (pool);
  return GST_BASE_SRC_CLASS (gst_imaging_file_src_parent_class)
      ->decide_allocation (base, query);
}

/* --- streaming ------------------------------------------------------------ */

/* No GST_MESSAGE_PROGRESS: gst-launch-1.0 does not play until it is complete.
 */
static void
report (GstImagingFileSrc *src)
{
  GstImagingFileSrcPrivate *self = private_of (src);
  const GstImagingFileSrcInfo *info = &self->info;
  guint done = (guint) ((guint64) self->next * N_REPORTS / info->n_units);
  GstElementFactory *factory = gst_element_get_factory (GST_ELEMENT (src));
  g_autofree gchar *name = NULL;

  if (self->reverse || info->loop || done <= self->n_reported)
    return;
  self->n_reported = done;
  /* an application may have made it of a type that is not registered */
  name = g_strdup_printf ("%s-progress",
      factory ? GST_OBJECT_NAME (factory) : G_OBJECT_TYPE_NAME (src));
  gst_element_post_message (GST_ELEMENT (src),
      gst_message_new_element (GST_OBJECT (src),
          gst_structure_new (name, info->unit_name, G_TYPE_UINT64, self->next,
              "of", G_TYPE_UINT64, info->n_units, NULL)));
}

/* Those of a loop go on. */
static guint64
number_of (GstImagingFileSrc *src, guint64 unit)
{
  GstImagingFileSrcClass *klass = GST_IMAGING_FILE_SRC_GET_CLASS (src);
  guint64 n_units = private_of (src)->info.n_units;
  guint64 n_rounds = unit / n_units;

  if (!klass->number)
    return unit;
  return n_rounds * (klass->number (src, n_units - 1) + 1) +
         klass->number (src, unit % n_units);
}

static void
describe_buffer (
    GstImagingFileSrc *src, GstBuffer *buffer, guint64 first, guint n)
{
  const GstImagingFileSrcInfo *info = &private_of (src)->info;

  GST_BUFFER_OFFSET (buffer) = number_of (src, first);
  GST_BUFFER_OFFSET_END (buffer) = GST_BUFFER_OFFSET (buffer) + n;
  GST_BUFFER_DTS (buffer) = GST_CLOCK_TIME_NONE;
  GST_BUFFER_PTS (buffer) = GST_BUFFER_DURATION (buffer) = GST_CLOCK_TIME_NONE;
  if (info->rate_n == 0)
    return;
  GST_BUFFER_PTS (buffer) = time_of_unit (info, first);
  GST_BUFFER_DURATION (buffer) =
      time_of_unit (info, first + n) - GST_BUFFER_PTS (buffer);
}

static void
post_read_error (GstImagingFileSrc *src, guint64 first, const GError *error)
{
  const GstImagingFileSrcInfo *info = &private_of (src)->info;

  if (g_error_matches (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE))
    GST_ELEMENT_ERROR (src, RESOURCE, WRITE, ("%s", error->message),
        ("%s from %" G_GUINT64_FORMAT " on", info->unit_name, first));
  else
    GST_ELEMENT_ERROR (src, RESOURCE, READ, ("%s", error->message),
        ("%s from %" G_GUINT64_FORMAT " on", info->unit_name, first));
}

static GstFlowReturn
gst_imaging_file_src_fill (GstPushSrc *push, GstBuffer *buffer)
{
  GstImagingFileSrc *src = GST_IMAGING_FILE_SRC (push);
  GstImagingFileSrcPrivate *self = private_of (src);
  const GstImagingFileSrcInfo *info = &self->info;
  g_autoptr (GError) error = NULL;
  guint64 first;
  guint n;

  if (self->next < 0 || self->next >= self->stop)
    return GST_FLOW_EOS;
  first = (guint64) self->next;
  n = (guint) MIN (info->n_per_buffer, self->stop - self->next);
  if (!self->is_video)
    gst_buffer_set_size (buffer, (gssize) (n * info->unit_size));
  if (!GST_IMAGING_FILE_SRC_GET_CLASS (src)->read (
          src, first % info->n_units, n, buffer, &error)) {
    post_read_error (src, first, error);
    return GST_FLOW_ERROR;
  }
  describe_buffer (src, buffer, first, n);
  self->next += self->reverse ? -1 : (gint64) n;
  report (src);
  return GST_FLOW_OK;
}

/* --- seeking -------------------------------------------------------------- */

static gboolean
gst_imaging_file_src_is_seekable (GstBaseSrc *base)
{
  return TRUE;
}

/* Backwards starts with the unit that ends at, or contains, the position.
 * @end: stands in for a stop when playing backwards */
static void
seek_in_time (GstImagingFileSrcPrivate *self, GstSegment *segment, guint64 end)
{
  const GstImagingFileSrcInfo *info = &self->info;
  GstClockTime position = segment->position;

  self->reverse = segment->rate < 0;
  segment->duration = info->loop && !self->reverse ? GST_CLOCK_TIME_NONE : end;
  if (self->reverse && !info->loop)
    position = MIN (position, end); /* a stop may be later */
  self->next = (gint64) unit_at_time (info, position);
  if (self->reverse && time_of_unit (info, (guint64) self->next) >= position)
    self->next--;
  /* the base knows the time of the stop */
  self->stop = (gint64) end_of_units (info);
}

/* A stop may have been set before the position, which a seek that does not name
 * the position keeps: the time until the position, which GStreamer counts from,
 * would be negative. */
static void
bring_into_range (GstSegment *segment, guint64 end)
{
  guint64 stop = segment->stop == (guint64) -1 ? end : segment->stop;

  stop = MAX (stop, segment->start);
  segment->position = CLAMP (segment->position, segment->start, stop);
  segment->offset = segment->rate > 0 ? segment->position - segment->start
                                      : stop - segment->position;
}

/* Where a segment without a stop ends. A loop has no end to come back from: it
 * is that of the first round, or where it is now. */
static guint64
end_of_segment (const GstImagingFileSrcInfo *info, const GstSegment *segment)
{
  gboolean from_loop = info->loop && segment->rate < 0;
  guint64 n_units = from_loop ? info->n_units : end_of_units (info);
  guint64 end = info->rate_n > 0 ? time_of_unit (info, n_units) : n_units;

  return from_loop && segment->stop == (guint64) -1 &&
                 segment->position != (guint64) -1
             ? MAX (end, segment->position)
             : end;
}

static gboolean
gst_imaging_file_src_do_seek (GstBaseSrc *base, GstSegment *segment)
{
  GstImagingFileSrcPrivate *self = private_of (base);
  guint64 end = end_of_segment (&self->info, segment);

  if (self->info.rate_n == 0 && segment->rate < 0)
    return FALSE;
  segment->time = segment->start;
  bring_into_range (segment, end);
  if (self->info.rate_n > 0) {
    seek_in_time (self, segment, end);
  } else {
    self->next = (gint64) MIN (segment->start, end);
    self->stop = (gint64) MIN (segment->stop, end); /* -1 is the largest */
  }
  self->n_reported = (guint) gst_util_uint64_scale (
      (guint64) MAX (self->next, 0), N_REPORTS, self->info.n_units);
  return TRUE;
}

static gboolean
gst_imaging_file_src_query (GstBaseSrc *base, GstQuery *query)
{
  GstImagingFileSrcInfo info = get_info (base);
  gint64 n_units = (gint64) info.n_units, value, result;
  GstFormat from, to;

  if (n_units > 0 && !info.loop &&
      GST_QUERY_TYPE (query) == GST_QUERY_DURATION) {
    gst_query_parse_duration (query, &to, NULL);
    if (convert (&info, GST_FORMAT_DEFAULT, n_units, to, &result)) {
      gst_query_set_duration (query, to, result);
      return TRUE;
    }
  }
  if (n_units > 0 && GST_QUERY_TYPE (query) == GST_QUERY_CONVERT) {
    gst_query_parse_convert (query, &from, &value, &to, NULL);
    if (convert (&info, from, value, to, &result)) {
      gst_query_set_convert (query, from, value, to, result);
      return TRUE;
    }
  }
  if (n_units > 0 && GST_QUERY_TYPE (query) == GST_QUERY_SEEKING) {
    gst_query_parse_seeking (query, &to, NULL, NULL, NULL);
    if (convert (
            &info, GST_FORMAT_DEFAULT, info.loop ? -1 : n_units, to, &result)) {
      gst_query_set_seeking (query, to, TRUE, 0, result);
      return TRUE;
    }
  }
  return GST_BASE_SRC_CLASS (gst_imaging_file_src_parent_class)
      ->query (base, query);
}

/* --- the object ----------------------------------------------------------- */

static void
gst_imaging_file_src_class_init (GstImagingFileSrcClass *klass)
{
  GstBaseSrcClass *base_class = GST_BASE_SRC_CLASS (klass);

  base_class->start = gst_imaging_file_src_start;
  base_class->stop = gst_imaging_file_src_stop;
  base_class->get_caps = gst_imaging_file_src_get_caps;
  base_class->negotiate = gst_imaging_file_src_negotiate;
  base_class->fixate = gst_imaging_file_src_fixate;
  base_class->set_caps = gst_imaging_file_src_set_caps;
  base_class->decide_allocation = gst_imaging_file_src_decide_allocation;
  base_class->is_seekable = gst_imaging_file_src_is_seekable;
  base_class->do_seek = gst_imaging_file_src_do_seek;
  base_class->query = gst_imaging_file_src_query;
  GST_PUSH_SRC_CLASS (klass)->fill = gst_imaging_file_src_fill;
  gst_type_mark_as_plugin_api (GST_TYPE_IMAGING_FILE_SRC, 0);
}

static void
gst_imaging_file_src_init (GstImagingFileSrc *self)
{
}
