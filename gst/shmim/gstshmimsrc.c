/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-shmimsrc
 * @title: shmimsrc
 * @short_description: frames of a stream in shared memory
 *
 * Reads a stream in the layout of ImageStreamIO, which milk, cacao and pyRTC
 * write. It waits for the semaphore of the stream, and sends each new frame.
 *
 * Frames of uint8 and uint16 with two axes are video (GRAY8, GRAY16_LE), or
 * tensors if the next element prefers them. Others are other/tensors. float64
 * becomes float32 if the next element does not take float64.
 *
 * The offset of a buffer is the count of the stream. Frames that were
 * overwritten before they were read are gaps in the offsets, which elements
 * that measure report as frames-missing. The reference timestamp is the time of
 * acquisition.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 shmimsrc stream=wfs ! shcentroid columns=7 rows=7 pitch-x=7
 * pitch-y=7 fields=slopes ! shreconstruct matrix-location=control.npy !
 * shmimsink stream=dm00disp03
 * ]|
 */
#include "gstshmimsrc.h"

#include <string.h>

#include <gst/video/gstvideopool.h>
#include <gst/video/video.h>

#include "gstimagingpicture.h"
#include "gstimagingpost.h"
#include "gstimagingsettings.h"
#include "gstshmim.h"
#include "gstshmimcaps.h"

GST_DEBUG_CATEGORY_STATIC (shmim_src_debug);
#define GST_CAT_DEFAULT shmim_src_debug

/* How often the name of an idle stream is looked up. */
#define CHECK_INTERVAL (100 * GST_MSECOND)

/* A writer that overwrites a frame this often while it is read is faster than a
 * copy. */
#define MAX_TRIES 4

typedef enum { END_ERROR, END_EOS, END_WAIT } EndPolicy;

typedef struct {
  GRefString *stream, *folder;
  guint timeout, spin;
  EndPolicy end_policy;
} Settings;

static const GEnumValue end_policies[] = {
    {END_ERROR, "An error", "error"},
    {END_EOS, "A warning, and the end of the stream", "eos"},
    {END_WAIT, "A warning, and the element waits for a new stream of the name",
        "wait"},
    {0, NULL, NULL},
};

static const GstImagingSetting settings[] = {
    GST_IMAGING_STRING ("stream", NEXT_START, 0, Settings, stream,
        "Name of the stream. Its file is FOLDER/STREAM.im.shm"),
    GST_IMAGING_STRING ("folder", NEXT_START, 0, Settings, folder,
        "Folder of the stream. Empty: that of the environment variable "
        "MILK_SHM_DIR, else /milk/shm, else /tmp, as in ImageStreamIO"),
    GST_IMAGING_UINT ("timeout", NEXT_START, 0, Settings, timeout, 0, 3600000,
        "ms",
        "Time without a frame after which the element checks whether the "
        "writer still runs and the stream still exists. 0: never"),
    GST_IMAGING_UINT ("spin", NEXT_START, 0, Settings, spin, 0, 1000000, "us",
        "Time that the element looks for the next frame again and again before "
        "it sleeps: the frame comes earlier, and the processor is busy "
        "meanwhile. 0: it sleeps at once"),
    GST_IMAGING_ENUM ("end-policy", NEXT_START, 0, Settings, end_policy,
        "GstShmimSrcEndPolicy", end_policies,
        "What follows when the writer has ended, or the stream was removed or "
        "cut, and no frame came for timeout"),
};

static void
init_settings (gpointer data)
{
  ((Settings *) data)->timeout = 2000;
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .timeless = TRUE,
    .init = init_settings,
};

struct _GstShmimSrc {
  GstPushSrc parent;

  /* unlock () looks at these from another thread */
  GMutex lock;
  GCond cond; /* while there is no stream */
  gboolean is_flushing;
  GstShmim *shmim; /* NULL: lost; only the streaming thread sets it */

  /* under the object lock */
  GstCaps *caps; /* of the stream, NULL: not known */
  guint64 n_frames, n_missing, n_overwritten;

  /* of the streaming thread */
  gchar *path;
  GstVideoInfo info; /* UNKNOWN: tensors */
  gsize frame_size;
  gboolean narrows;     /* float64 to float32 */
  GstShmimHeader shape; /* of the caps; without axes before */
  guint64 count;        /* of the last frame */
  gboolean has_last;    /* a frame that the next one continues */
  gint64 idle_since;    /* monotonic */
  gboolean has_warned_idle, has_warned_end; /* since the last frame */
  gboolean has_warned_missing, has_warned_overwritten;
  GError *loss; /* why there is no stream */
};

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_SHMIM_CAPS ", framerate = (fraction) [ 0, max ]"));

enum { PROP_STATS = GST_IMAGING_SETTINGS_FIRST_FREE_ID };

G_DEFINE_FINAL_TYPE_WITH_CODE (GstShmimSrc, gst_shmim_src, GST_TYPE_PUSH_SRC,
    GST_DEBUG_CATEGORY_INIT (
        shmim_src_debug, "shmimsrc", 0, "frames in shared memory"))
GST_ELEMENT_REGISTER_DEFINE (
    shmimsrc, "shmimsrc", GST_RANK_NONE, GST_TYPE_SHMIM_SRC)

static const Settings *
settings_of (gpointer self)
{
  return gst_imaging_settings_now (gst_imaging_settings_of (self));
}

/* --- caps ----------------------------------------------------------------- */

static GstCaps *
gst_shmim_src_get_caps (GstBaseSrc *base, GstCaps *filter)
{
  GstShmimSrc *self = GST_SHMIM_SRC (base);
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

/* The first of our caps that the peer takes, whatever its own order is. */
static GstCaps *
gst_shmim_src_fixate (GstBaseSrc *base, GstCaps *caps)
{
  GstCaps *ours = gst_shmim_src_get_caps (base, NULL);
  GstCaps *result =
      gst_caps_intersect_full (ours, caps, GST_CAPS_INTERSECT_FIRST);

  gst_caps_unref (ours);
  gst_caps_unref (caps);
  return gst_caps_truncate (result);
}

static gboolean
gst_shmim_src_negotiate (GstBaseSrc *base)
{
  GstShmimSrc *self = GST_SHMIM_SRC (base);
  GstPad *pad = GST_BASE_SRC_PAD (base);
  GstCaps *ours, *peer;

  if (!self->shape.n_axes) /* no stream so far: nothing to agree on */
    return TRUE;
  if (GST_BASE_SRC_CLASS (gst_shmim_src_parent_class)->negotiate (base))
    return TRUE;
  ours = gst_pad_query_caps (pad, NULL);
  peer = gst_pad_peer_query_caps (pad, NULL);
  if (!GST_PAD_IS_FLUSHING (pad) && !gst_caps_can_intersect (ours, peer)) {
    g_autofree gchar *frame = gst_shmim_describe (&self->shape);

    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("The next element does not take the frames of stream \"%s\", %s. Write "
         "the stream as it takes them: slopes for shreconstruct as float32 or "
         "float64, images for shcentroid as uint8 or uint16.",
            settings_of (self)->stream, frame),
        ("it takes %" GST_PTR_FORMAT, peer));
  }
  gst_caps_unref (ours);
  gst_caps_unref (peer);
  return FALSE;
}

static gboolean
gst_shmim_src_set_caps (GstBaseSrc *base, GstCaps *caps)
{
  GstShmimSrc *self = GST_SHMIM_SRC (base);
  const GstStructure *s = gst_caps_get_structure (caps, 0);

  gst_video_info_init (&self->info);
  self->frame_size = gst_shmim_frame_size (&self->shape);
  self->narrows =
      self->shape.type == GST_SHMIM_TYPE_F64 &&
      g_strcmp0 (gst_structure_get_string (s, "types"), "float32") == 0;
  if (!gst_structure_has_name (s, "video/x-raw"))
    return TRUE;
  return gst_imaging_video_info_from_caps (&self->info, caps);
}

static gboolean
is_video (const GstShmimSrc *self)
{
  return GST_VIDEO_INFO_FORMAT (&self->info) != GST_VIDEO_FORMAT_UNKNOWN;
}

/* Fresh memory from the system would cost more than the copy into it. */
static gboolean
gst_shmim_src_decide_allocation (GstBaseSrc *base, GstQuery *query)
{
  GstShmimSrc *self = GST_SHMIM_SRC (base);

  if (self->frame_size > 0 && gst_query_get_n_allocation_pools (query) == 0) {
    GstBufferPool *pool =
        is_video (self) ? gst_video_buffer_pool_new () : gst_buffer_pool_new ();

    gst_query_add_allocation_pool (query, pool,
        is_video (self) ? (guint) GST_VIDEO_INFO_SIZE (&self->info)
                        : (guint) self->frame_size,
        0, 0);
    gst_object_unref (pool);
  }
  return GST_BASE_SRC_CLASS (gst_shmim_src_parent_class)
      ->decide_allocation (base, query);
}

/* --- opening and losing a stream ------------------------------------------ */

static void
set_stream (GstShmimSrc *self, GstShmim *shmim)
{
  GstShmim *before;

  g_mutex_lock (&self->lock);
  before = self->shmim;
  self->shmim = shmim;
  g_mutex_unlock (&self->lock);
  gst_shmim_close (before);
}

static gboolean
has_shape (const GstShmimHeader *a, const GstShmimHeader *b)
{
  return a->n_axes == b->n_axes && a->type == b->type &&
         memcmp (a->size, b->size, sizeof (a->size)) == 0 &&
         gst_shmim_is_ring (a) == gst_shmim_is_ring (b);
}

static void
tell_new_shape (GstShmimSrc *self, const GstShmimHeader *now)
{
  g_autofree gchar *before = gst_shmim_describe (&self->shape);
  g_autofree gchar *after = gst_shmim_describe (now);

  GST_ELEMENT_WARNING (self, STREAM, FORMAT,
      ("Stream \"%s\" was made again with %s; it had %s. The new frames follow.",
          settings_of (self)->stream, after, before),
      (NULL));
}

/* Takes a stream of the name. Returns: FALSE without one */
static gboolean
open_stream (GstShmimSrc *self, GError **error)
{
  GstShmim *shmim =
      gst_shmim_open (settings_of (self)->stream, self->path, error);

  if (!shmim)
    return FALSE;
  if (!gst_shmim_claim (shmim, error)) {
    gst_shmim_close (shmim);
    return FALSE;
  }
  if (!has_shape (&self->shape, &shmim->header)) {
    if (self->shape.n_axes)
      tell_new_shape (self, &shmim->header);
    self->shape = shmim->header;
    GST_OBJECT_LOCK (self);
    gst_caps_replace (&self->caps, NULL);
    self->caps = gst_shmim_caps (&shmim->header);
    GST_OBJECT_UNLOCK (self);
    gst_pad_mark_reconfigure (GST_BASE_SRC_PAD (self));
  }
  self->count = 0;
  self->has_last = FALSE;
  g_clear_error (&self->loss);
  set_stream (self, shmim);
  return TRUE;
}

/* Keeps the first reason. @error: (transfer full) */
static void
lose_stream (GstShmimSrc *self, GError *error)
{
  set_stream (self, NULL);
  if (self->loss)
    g_error_free (error);
  else
    self->loss = error;
}

/* Returns: the flow after the end of a stream; OK: wait */
static GstFlowReturn
end_stream (GstShmimSrc *self, const GError *reason)
{
  switch (settings_of (self)->end_policy) {
  case END_ERROR:
    gst_imaging_post_error (self, reason);
    return GST_FLOW_ERROR;
  case END_EOS:
  case END_WAIT:
    if (!self->has_warned_end)
      GST_ELEMENT_WARNING (
          self, RESOURCE, READ, ("%s", reason->message), (NULL));
    break;
  }
  self->has_warned_end = TRUE;
  return settings_of (self)->end_policy == END_EOS ? GST_FLOW_EOS : GST_FLOW_OK;
}

static gboolean
is_idle_too_long (GstShmimSrc *self)
{
  const guint timeout = settings_of (self)->timeout;

  return timeout > 0 && g_get_monotonic_time () - self->idle_since >=
                            (gint64) timeout * G_TIME_SPAN_MILLISECOND;
}

/* After a while without a frame. */
static GstFlowReturn
check_writer (GstShmimSrc *self, GstShmimState state)
{
  const Settings *s = settings_of (self);
  const gint writer = gst_shmim_writer (self->shmim);
  g_autoptr (GError) reason = NULL;

  if (!is_idle_too_long (self))
    return GST_FLOW_OK;
  if (state == GST_SHMIM_STATE_REMOVED)
    g_set_error (&reason, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "Stream \"%s\" was removed, and no frame came for %u ms.", s->stream,
        s->timeout);
  else if (gst_shmim_has_ended (writer))
    g_set_error (&reason, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ,
        "The writer of stream \"%s\" (process %d) has ended, and no frame came "
        "for %u ms.",
        s->stream, writer, s->timeout);
  if (reason)
    return end_stream (self, reason);
  if (!self->has_warned_idle)
    GST_ELEMENT_WARNING (self, RESOURCE, READ,
        ("No frame of stream \"%s\" came for %u ms. Its writer (process %d) is "
         "running.",
            s->stream, s->timeout, writer),
        (NULL));
  self->has_warned_idle = TRUE;
  return GST_FLOW_OK;
}

/* Nothing came for a moment. */
static GstFlowReturn
check_stream (GstShmimSrc *self)
{
  const GstShmimState state = gst_shmim_state (self->shmim);
  GError *error = NULL;

  if (state == GST_SHMIM_STATE_CUT) {
    gst_shmim_set_cut_error (self->shmim, &error);
    lose_stream (self, error);
    return GST_FLOW_OK;
  }
  /* its writer may not have finished making it */
  if (state == GST_SHMIM_STATE_REPLACED && open_stream (self, NULL))
    return GST_FLOW_OK;
  return check_writer (self, state);
}

/* Without a stream: tries to open one. */
static GstFlowReturn
find_stream (GstShmimSrc *self)
{
  const gint64 now = g_get_monotonic_time ();
  GError *error = NULL;

  if (open_stream (self, &error))
    return GST_FLOW_OK;
  if (!self->loss)
    self->loss = g_steal_pointer (&error);
  g_clear_error (&error);
  if (settings_of (self)->timeout == 0 || is_idle_too_long (self)) {
    const GstFlowReturn flow = end_stream (self, self->loss);

    if (flow != GST_FLOW_OK)
      return flow;
  }
  GST_IMAGING_HOLD (&self->lock);
  if (!self->is_flushing)
    g_cond_wait_until (
        &self->cond, &self->lock, now + CHECK_INTERVAL / GST_USECOND);
  return GST_FLOW_OK;
}

/* --- frames --------------------------------------------------------------- */

static void
set_memory_error (GError **error)
{
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE,
      "The memory that the next element offers for a frame is too small, or "
      "cannot be written.");
}

static gboolean
read_rows (GstShmimSrc *self, GstBuffer *buffer, guint64 place, GError **error)
{
  const guint height = GST_VIDEO_INFO_HEIGHT (&self->info);
  const gsize row = self->frame_size / height;
  GstVideoFrame frame;
  gboolean ok = TRUE;
  gsize stride;

  if (!gst_video_frame_map (&frame, &self->info, buffer, GST_MAP_WRITE)) {
    set_memory_error (error);
    return FALSE;
  }
  stride = (gsize) GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0);
  if (stride == row)
    ok = gst_shmim_read (self->shmim, place,
        GST_VIDEO_FRAME_PLANE_DATA (&frame, 0), self->frame_size, error);
  else
    for (guint y = 0; ok && y < height; y++)
      ok = gst_shmim_read (self->shmim, place + y * row,
          (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0) + y * stride, row,
          error);
  gst_video_frame_unmap (&frame);
  return ok;
}

static gboolean
read_values (
    GstShmimSrc *self, GstBuffer *buffer, guint64 place, GError **error)
{
  GstMapInfo map;
  gboolean ok;

  if (!gst_buffer_map (buffer, &map, GST_MAP_WRITE)) {
    set_memory_error (error);
    return FALSE;
  }
  ok = map.size >= self->frame_size;
  if (ok)
    ok = gst_shmim_read (self->shmim, place, map.data, self->frame_size, error);
  else
    set_memory_error (error);
  gst_buffer_unmap (buffer, &map);
  if (ok)
    gst_buffer_set_size (buffer, (gssize) self->frame_size);
  return ok;
}

/* For an element that takes float32 alone: in place, from the front. */
static gboolean
narrow (GstBuffer *buffer, GError **error)
{
  GstMapInfo map;
  gsize n;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READWRITE)) {
    set_memory_error (error);
    return FALSE;
  }
  n = map.size / sizeof (gdouble);
  for (gsize i = 0; i < n; i++) {
    gdouble value;
    gfloat narrowed;

    memcpy (&value, map.data + i * sizeof (value), sizeof (value));
    narrowed = (gfloat) value;
    memcpy (map.data + i * sizeof (narrowed), &narrowed, sizeof (narrowed));
  }
  gst_buffer_unmap (buffer, &map);
  gst_buffer_set_size (buffer, (gssize) (n * sizeof (gfloat)));
  return TRUE;
}

/* @header: (out): of the frame that was read; @is_new: (out): FALSE when there
 * is none that is whole. Returns: FALSE with @error when that failed */
static gboolean
read_frame (GstShmimSrc *self, GstBuffer *buffer, GstShmimHeader *header,
    gboolean *is_new, GError **error)
{
  *is_new = FALSE;
  for (guint i = 0; i < MAX_TRIES; i++) {
    GstShmimHeader after;
    guint64 place;

    if (!gst_shmim_read_header (self->shmim, header, error))
      return FALSE;
    if (header->is_writing)
      return TRUE; /* its end is posted */
    place = self->shmim->layout.data;
    if (gst_shmim_is_ring (&self->shape))
      place += header->slice % self->shape.size[2] * self->frame_size;
    if (!(is_video (self) ? read_rows (self, buffer, place, error)
                          : read_values (self, buffer, place, error)) ||
        !gst_shmim_read_header (self->shmim, &after, error))
      return FALSE;
    *is_new = after.count == header->count && !after.is_writing;
    if (*is_new)
      return !self->narrows || narrow (buffer, error);
    GST_OBJECT_LOCK (self);
    self->n_overwritten++;
    GST_OBJECT_UNLOCK (self);
  }
  if (!self->has_warned_overwritten)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("Frames of stream \"%s\" are overwritten while they are read, and "
         "missing: the writer is faster than a copy. They are counted in "
         "frames-overwritten of the property stats.",
            settings_of (self)->stream),
        (NULL));
  self->has_warned_overwritten = TRUE;
  return TRUE;
}

static void
report_missing (GstShmimSrc *self, guint64 n, guint64 count)
{
  GST_OBJECT_LOCK (self);
  self->n_missing += n;
  GST_OBJECT_UNLOCK (self);
  if (n == 0 || self->has_warned_missing)
    return;
  self->has_warned_missing = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("%" G_GUINT64_FORMAT " frame%s of stream \"%s\" %s missing before frame "
       "%" G_GUINT64_FORMAT
       ". Further gaps are counted in frames-missing of the property stats.",
          n, n == 1 ? "" : "s", settings_of (self)->stream,
          n == 1 ? "is" : "are", count),
      (NULL));
}

/* Returns: of the Unix epoch */
static GstClockTime
unix_time (const GstShmimTime *tai)
{
  return tai->seconds <= 0
             ? GST_CLOCK_TIME_NONE
             : (GstClockTime) (tai->seconds * (gint64) GST_SECOND +
                               tai->nanoseconds - gst_shmim_tai_offset ());
}

static void
describe (GstShmimSrc *self, GstBuffer *buffer, const GstShmimHeader *header)
{
  static GstStaticCaps clock = GST_STATIC_CAPS ("timestamp/x-unix");
  const GstClockTime acquired = unix_time (&header->acquired);
  guint64 n_missing = 0;

  if (self->has_last && header->count > self->count)
    n_missing = header->count - self->count - 1;
  if (n_missing > 0 || !self->has_last)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  GST_BUFFER_OFFSET (buffer) = header->count;
  GST_BUFFER_OFFSET_END (buffer) = header->count + 1;
  if (GST_CLOCK_TIME_IS_VALID (acquired)) {
    GstCaps *caps = gst_static_caps_get (&clock);

    gst_buffer_add_reference_timestamp_meta (
        buffer, caps, acquired, GST_CLOCK_TIME_NONE);
    gst_caps_unref (caps);
  }
  report_missing (self, n_missing, header->count);
  self->has_last = TRUE;
  self->has_warned_idle = self->has_warned_end = FALSE;
  self->idle_since = g_get_monotonic_time ();
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  self->n_frames++;
}

/* FALSE when another stream was written into the same file. */
static gboolean
is_same (const GstShmimHeader *a, const GstShmimHeader *b)
{
  return memcmp (a->version, b->version, sizeof (a->version)) == 0 &&
         has_shape (a, b) && a->n_semaphores == b->n_semaphores;
}

/* @buffer: (out): NULL when there is no new frame */
static GstFlowReturn
take_frame (GstShmimSrc *self, GstBuffer **buffer)
{
  GstBaseSrc *base = GST_BASE_SRC (self);
  GstShmimHeader header;
  GstFlowReturn flow;
  gboolean is_new = FALSE;
  GError *error = NULL;

  if (gst_shmim_read_header (self->shmim, &header, &error) &&
      !is_same (&header, &self->shmim->header))
    gst_shmim_set_cut_error (self->shmim, &error);
  if (error) {
    lose_stream (self, error);
    return GST_FLOW_OK;
  }
  if (header.count == 0 || header.count == self->count)
    return GST_FLOW_OK;
  flow = GST_BASE_SRC_CLASS (gst_shmim_src_parent_class)
             ->alloc (base, GST_BUFFER_OFFSET_NONE,
                 is_video (self) ? (guint) GST_VIDEO_INFO_SIZE (&self->info)
                                 : (guint) self->frame_size,
                 buffer);
  if (flow != GST_FLOW_OK)
    return flow;
  if (!read_frame (self, *buffer, &header, &is_new, &error)) {
    gst_clear_buffer (buffer);
    if (!g_error_matches (
            error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE)) {
      lose_stream (self, error);
      return GST_FLOW_OK;
    }
    gst_imaging_post_error (self, error);
    g_error_free (error);
    return GST_FLOW_ERROR;
  }
  if (!is_new) {
    gst_clear_buffer (buffer);
    return GST_FLOW_OK;
  }
  describe (self, *buffer, &header);
  self->count = header.count;
  return GST_FLOW_OK;
}

static gboolean
is_flushing (GstShmimSrc *self)
{
  GST_IMAGING_HOLD (&self->lock);
  return self->is_flushing;
}

/* Waits for the next frame once. */
static GstFlowReturn
step (GstShmimSrc *self, GstBuffer **buffer)
{
  GstBaseSrc *base = GST_BASE_SRC (self);
  GstFlowReturn flow;

  if (!self->shmim)
    return find_stream (self);
  if (gst_pad_check_reconfigure (GST_BASE_SRC_PAD (base)) &&
      !gst_base_src_negotiate (base)) {
    gst_pad_mark_reconfigure (GST_BASE_SRC_PAD (base));
    return is_flushing (self) ? GST_FLOW_FLUSHING : GST_FLOW_NOT_NEGOTIATED;
  }
  flow = take_frame (self, buffer);
  if (flow != GST_FLOW_OK || *buffer || !self->shmim)
    return flow;
  /* a cut file is found by its size */
  return gst_shmim_wait (self->shmim, settings_of (self)->spin * GST_USECOND,
             CHECK_INTERVAL) == GST_SHMIM_WAIT_POSTED
             ? GST_FLOW_OK
             : check_stream (self);
}

static GstFlowReturn
gst_shmim_src_create (GstPushSrc *push, GstBuffer **buffer)
{
  GstShmimSrc *self = GST_SHMIM_SRC (push);
  GstFlowReturn flow = GST_FLOW_OK;

  *buffer = NULL;
  while (flow == GST_FLOW_OK && !*buffer)
    flow = is_flushing (self) ? GST_FLOW_FLUSHING : step (self, buffer);
  return flow;
}

static gboolean
set_flushing (GstBaseSrc *base, gboolean flushing)
{
  GstShmimSrc *self = GST_SHMIM_SRC (base);

  GST_IMAGING_HOLD (&self->lock);
  self->is_flushing = flushing;
  if (flushing && self->shmim)
    gst_shmim_wake (self->shmim);
  g_cond_signal (&self->cond);
  return TRUE;
}

static gboolean
gst_shmim_src_unlock (GstBaseSrc *base)
{
  return set_flushing (base, TRUE);
}

static gboolean
gst_shmim_src_unlock_stop (GstBaseSrc *base)
{
  return set_flushing (base, FALSE);
}

/* --- start and stop ------------------------------------------------------- */

static gboolean
gst_shmim_src_stop (GstBaseSrc *base)
{
  GstShmimSrc *self = GST_SHMIM_SRC (base);

  set_stream (self, NULL);
  g_clear_error (&self->loss);
  g_clear_pointer (&self->path, g_free);
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  gst_caps_replace (&self->caps, NULL);
  return TRUE;
}

static gboolean
gst_shmim_src_start (GstBaseSrc *base)
{
  GstShmimSrc *self = GST_SHMIM_SRC (base);
  GstImagingSettings *set = gst_imaging_settings_of (self);
  g_autoptr (GError) error = NULL;

  gst_imaging_settings_start (set);
  gst_imaging_settings_update (
      set, GST_IMAGING_WHEN_NEXT_START, GST_CLOCK_TIME_NONE, NULL);
  self->shape = (GstShmimHeader){.n_axes = 0};
  self->count = 0;
  self->has_warned_idle = self->has_warned_end = FALSE;
  self->has_warned_missing = self->has_warned_overwritten = FALSE;
  self->idle_since = g_get_monotonic_time ();
  GST_OBJECT_LOCK (self);
  self->n_frames = self->n_missing = self->n_overwritten = 0;
  GST_OBJECT_UNLOCK (self);
  self->path = gst_shmim_path (
      settings_of (self)->stream, settings_of (self)->folder, &error);
  if (self->path && open_stream (self, &error)) {
    self->count = self->shmim->header.count; /* the next one is the first */
    return TRUE;
  }
  if (self->path && settings_of (self)->end_policy == END_WAIT)
    return TRUE;
  gst_imaging_post_error (self, error);
  gst_shmim_src_stop (base);
  return FALSE;
}

/* --- the object ----------------------------------------------------------- */

static void
gst_shmim_src_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstShmimSrc *self = GST_SHMIM_SRC (object);

  if (id != PROP_STATS) {
    gst_imaging_settings_get_property (object, id, value, pspec);
    return;
  }
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  g_value_take_boxed (value,
      gst_structure_new ("stats", "frames", G_TYPE_UINT64, self->n_frames,
          "frames-missing", G_TYPE_UINT64, self->n_missing,
          "frames-overwritten", G_TYPE_UINT64, self->n_overwritten, NULL));
}

static void
gst_shmim_src_finalize (GObject *object)
{
  GstShmimSrc *self = GST_SHMIM_SRC (object);

  g_mutex_clear (&self->lock);
  g_cond_clear (&self->cond);
  G_OBJECT_CLASS (gst_shmim_src_parent_class)->finalize (object);
}

static void
gst_shmim_src_class_init (GstShmimSrcClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSrcClass *base_class = GST_BASE_SRC_CLASS (klass);

  gst_imaging_settings_install (object_class, &table);
  object_class->get_property = gst_shmim_src_get_property;
  object_class->finalize = gst_shmim_src_finalize;
  g_object_class_install_property (object_class, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics",
          "Since the start: frames, frames-missing (frames that were "
          "overwritten before they were read), frames-overwritten (times that "
          "a frame was overwritten while it was read)",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
  gst_element_class_set_static_metadata (element_class, "Shared memory source",
      "Source/Video",
      "Reads streams of milk, cacao and pyRTC (ImageStreamIO) from shared "
      "memory",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &src_template);

  base_class->start = gst_shmim_src_start;
  base_class->stop = gst_shmim_src_stop;
  base_class->get_caps = gst_shmim_src_get_caps;
  base_class->fixate = gst_shmim_src_fixate;
  base_class->negotiate = gst_shmim_src_negotiate;
  base_class->set_caps = gst_shmim_src_set_caps;
  base_class->decide_allocation = gst_shmim_src_decide_allocation;
  base_class->unlock = gst_shmim_src_unlock;
  base_class->unlock_stop = gst_shmim_src_unlock_stop;
  GST_PUSH_SRC_CLASS (klass)->create = gst_shmim_src_create;
}

static void
gst_shmim_src_init (GstShmimSrc *self)
{
  GstBaseSrc *base = GST_BASE_SRC (self);

  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
  gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
  gst_base_src_set_live (base, TRUE);
  gst_base_src_set_format (base, GST_FORMAT_TIME);
  gst_base_src_set_do_timestamp (base, TRUE);
}
