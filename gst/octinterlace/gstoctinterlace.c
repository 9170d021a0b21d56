/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-octinterlace
 * @title: octinterlace
 * @short_description: spectra of several cameras, line by line
 *
 * Takes a stream from each camera of an OCT instrument, sink_0, sink_1, ...,
 * and gives the frames that octbscan takes: line r is line r / C of camera
 * r mod C. Frames belong together by their times.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 octinterlace name=i ! octbscan cameras=2 calibration=oct.ini !
 * videoconvert ! autovideosink npysrc location=a.npy ! i.sink_0
 * npysrc location=b.npy ! i.sink_1
 * ]|
 *
 * Since: 0.3
 */
#include "gstoctinterlace.h"

#include <gst/video/video.h>

#include <string.h>

#include "gstimagingaggregator.h"
#include "gstimagingmetadata.h"
#include "gstimagingpicture.h"
#include "gstimagingsettings.h"

GST_DEBUG_CATEGORY_STATIC (octinterlace_debug);
#define GST_CAT_DEFAULT octinterlace_debug

typedef enum { MISSING_DROP, MISSING_REPEAT, MISSING_BLACK } Missing;

enum { PROP_STATS = GST_IMAGING_SETTINGS_FIRST_FREE_ID };

typedef struct {
  GstClockTime tolerance;
  Missing missing;
} Settings;

/* A camera. */
struct _GstOctInterlacePad {
  GstAggregatorPad parent;
  guint number;
  GstVideoInfo info; /* width 0 before caps */
  GstBuffer *frame;  /* of this B-scan, or NULL */
  GstBuffer *last;
  gboolean repeats;     /* the frame is that of before */
  gboolean was_refused; /* its format, and that has been said */
  gint is_flushed;      /* atomic; what was last is to be forgotten */
  gboolean lags, warned;
  guint64 n_missing; /* under the object lock of the element */
};

struct _GstOctInterlace {
  GstAggregator parent;
  GstVideoInfo info; /* of what leaves */
  guint n_cameras;   /* in it */
  gboolean is_gap;   /* something has been left out since */
  GQueue held;       /* GstEvent: for the segment */
  gboolean refused;  /* what would leave is too large, and that has been said */

  GstImagingSettings *settings;

  /* under the object lock */
  guint64 n_frames, n_incomplete;
};

#define FORMATS GST_VIDEO_CAPS_MAKE ("{ GRAY16_LE, GRAY8 }")

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink_%u", GST_PAD_SINK, GST_PAD_REQUEST, GST_STATIC_CAPS (FORMATS));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (FORMATS));

static const GEnumValue missing_values[] = {
    {MISSING_DROP, "What the other cameras have is left out as well", "drop"},
    {MISSING_REPEAT, "The frame that the camera had before", "repeat"},
    {MISSING_BLACK, "Zeros", "black"},
    {0, NULL, NULL},
};

static const GstImagingSetting settings[] = {
    GST_IMAGING_UINT64 ("tolerance", LIVE, 0, Settings, tolerance, 0,
        G_MAXUINT64, "ns",
        "How much later than the earliest a frame may be and still belong to "
        "it, in nanoseconds; -1 is half a frame"),
    GST_IMAGING_ENUM ("missing", LIVE, 0, Settings, missing,
        "GstOctInterlaceMissing", missing_values,
        "What is output when a camera has no frame for a B-scan"),
};

static void
init_settings (gpointer data)
{
  ((Settings *) data)->tolerance = GST_CLOCK_TIME_NONE;
}

static const Settings *
settings_of (GstOctInterlace *self)
{
  return gst_imaging_settings_now (self->settings);
}

/* --- a camera --------------------------------------------------------------
 */

G_DEFINE_FINAL_TYPE (
    GstOctInterlacePad, gst_oct_interlace_pad, GST_TYPE_AGGREGATOR_PAD)

static GstFlowReturn
gst_oct_interlace_pad_flush (GstAggregatorPad *pad, GstAggregator *aggregator)
{
  /* lines may be being copied in the element's own thread */
  g_atomic_int_set (&GST_OCT_INTERLACE_PAD (pad)->is_flushed, TRUE);
  return GST_FLOW_OK;
}

static void
gst_oct_interlace_pad_finalize (GObject *object)
{
  GstOctInterlacePad *self = GST_OCT_INTERLACE_PAD (object);

  gst_clear_buffer (&self->frame);
  gst_clear_buffer (&self->last);
  G_OBJECT_CLASS (gst_oct_interlace_pad_parent_class)->finalize (object);
}

static void
gst_oct_interlace_pad_class_init (GstOctInterlacePadClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_oct_interlace_pad_finalize;
  GST_AGGREGATOR_PAD_CLASS (klass)->flush = gst_oct_interlace_pad_flush;
}

static void
gst_oct_interlace_pad_init (GstOctInterlacePad *self)
{
  gst_video_info_init (&self->info);
}

/* --- the element ------------------------------------------------------------
 */

G_DEFINE_FINAL_TYPE_WITH_CODE (GstOctInterlace, gst_oct_interlace,
    GST_TYPE_AGGREGATOR,
    GST_DEBUG_CATEGORY_INIT (octinterlace_debug, "octinterlace", 0,
        "Interlaces the spectra of several OCT cameras"))
GST_ELEMENT_REGISTER_DEFINE (
    octinterlace, "octinterlace", GST_RANK_NONE, GST_TYPE_OCT_INTERLACE)

static gint
compare_numbers (gconstpointer a, gconstpointer b)
{
  const GstOctInterlacePad *x = *(GstOctInterlacePad *const *) a;
  const GstOctInterlacePad *y = *(GstOctInterlacePad *const *) b;

  return (x->number > y->number) - (x->number < y->number);
}

/* Returns: (transfer full): the cameras in the order of their numbers */
static GPtrArray *
get_cameras (GstOctInterlace *self)
{
  GPtrArray *cameras = g_ptr_array_new_with_free_func (gst_object_unref);

  GST_OBJECT_LOCK (self);
  for (GList *l = GST_ELEMENT (self)->sinkpads; l; l = l->next)
    g_ptr_array_add (cameras, gst_object_ref (l->data));
  GST_OBJECT_UNLOCK (self);
  g_ptr_array_sort (cameras, compare_numbers);
  return cameras;
}

/* --- times ------------------------------------------------------------------
 */

static GstClockTime
time_of (GstOctInterlacePad *camera, GstBuffer *frame)
{
  const GstSegment *segment = &GST_AGGREGATOR_PAD (camera)->segment;

  return segment->format == GST_FORMAT_TIME
             ? gst_segment_to_running_time (
                   segment, GST_FORMAT_TIME, GST_BUFFER_PTS (frame))
             : GST_BUFFER_PTS (frame);
}

/* Returns: (transfer none) (nullable): the camera whose next frame is the
 * earliest; a gap is none */
static GstOctInterlacePad *
find_earliest (GPtrArray *cameras)
{
  GstClockTime earliest = GST_CLOCK_TIME_NONE;
  GstOctInterlacePad *found = NULL;

  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];
    GstBuffer *frame =
        gst_aggregator_pad_peek_buffer (GST_AGGREGATOR_PAD (camera));

    if (frame && !gst_imaging_aggregator_is_gap (frame) &&
        (!found || time_of (camera, frame) < earliest)) {
      found = camera;
      earliest = time_of (camera, frame);
    }
    gst_clear_buffer (&frame);
  }
  return found;
}

/* What lies outside the segment of its stream. */
static GstBuffer *
gst_oct_interlace_clip (
    GstAggregator *aggregator, GstAggregatorPad *pad, GstBuffer *frame)
{
  GstClockTime start = GST_BUFFER_PTS (frame), stop = start;
  guint64 clipped_start, clipped_stop;

  if (pad->segment.format != GST_FORMAT_TIME ||
      !GST_CLOCK_TIME_IS_VALID (start))
    return frame;
  if (GST_BUFFER_DURATION_IS_VALID (frame))
    stop += GST_BUFFER_DURATION (frame);
  if (!gst_segment_clip (&pad->segment, GST_FORMAT_TIME, start, stop,
          &clipped_start, &clipped_stop)) {
    gst_buffer_unref (frame);
    return NULL;
  }
  if (clipped_start == start && clipped_stop == stop)
    return frame;
  frame = gst_buffer_make_writable (frame);
  GST_BUFFER_PTS (frame) = clipped_start;
  GST_BUFFER_DURATION (frame) = clipped_stop - clipped_start;
  return frame;
}

/* --- caps ------------------------------------------------------------------
 */

static gboolean
are_alike (const GstVideoInfo *a, const GstVideoInfo *b)
{
  return a->width == b->width && a->height == b->height &&
         GST_VIDEO_INFO_FORMAT (a) == GST_VIDEO_INFO_FORMAT (b);
}

static gboolean
is_first (GstOctInterlace *self, GstAggregatorPad *pad)
{
  GPtrArray *cameras = get_cameras (self);
  gboolean first = cameras->len > 0 && cameras->pdata[0] == pad;

  g_ptr_array_unref (cameras);
  return first;
}

/* B-scans are in the segment of the first camera, so that after a seek they
 * have the position that was asked for. */
static void
take_segment (GstOctInterlace *self, GstAggregatorPad *pad, GstEvent *event)
{
  const GstSegment *segment;

  gst_event_parse_segment (event, &segment);
  if (segment->format == GST_FORMAT_TIME && is_first (self, pad))
    gst_aggregator_update_segment (GST_AGGREGATOR (self), segment);
  self->is_gap = TRUE;
}

/* Cameras change their format one after the other; what counts is that frames
 * of one time are alike. */
static gboolean
gst_oct_interlace_sink_event (
    GstAggregator *aggregator, GstAggregatorPad *pad, GstEvent *event)
{
  GstOctInterlacePad *camera = GST_OCT_INTERLACE_PAD (pad);
  GstVideoInfo info;
  GstCaps *caps;

  if (gst_imaging_aggregator_keep_event (
          aggregator, pad, &GST_OCT_INTERLACE (aggregator)->held, event))
    return TRUE;
  if (GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT)
    take_segment (GST_OCT_INTERLACE (aggregator), pad, event);
  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS) {
    gst_event_parse_caps (event, &caps);
    camera->was_refused = !gst_imaging_video_info_from_caps (&info, caps);
    if (camera->was_refused) {
      gst_video_info_init (&camera->info);
      GST_ELEMENT_ERROR (aggregator, STREAM, FORMAT,
          ("Frames of camera %u have 4 GiB or more, or rows of 2 GiB, which "
           "cannot be taken.",
              camera->number),
          ("%" GST_PTR_FORMAT, caps));
      gst_event_unref (event);
      return FALSE;
    }
    camera->info = info;
    gst_clear_buffer (&camera->last);
    gst_pad_mark_reconfigure (GST_AGGREGATOR_SRC_PAD (aggregator));
  }
  return GST_AGGREGATOR_CLASS (gst_oct_interlace_parent_class)
      ->sink_event (aggregator, pad, event);
}

static gboolean
gst_oct_interlace_src_event (GstAggregator *aggregator, GstEvent *event)
{
  if (gst_imaging_aggregator_refuse_seek (aggregator, event)) {
    gst_event_unref (event);
    return FALSE;
  }
  return GST_AGGREGATOR_CLASS (gst_oct_interlace_parent_class)
      ->src_event (aggregator, event);
}

/* Returns: 0 without a frame rate */
static GstClockTime
half_a_frame (const GstVideoInfo *info)
{
  return info->fps_n > 0
             ? gst_util_uint64_scale (GST_SECOND / 2, info->fps_d, info->fps_n)
             : 0;
}

/* Half a frame, unless the user says otherwise. */
static GstClockTime
get_tolerance (GstOctInterlace *self)
{
  GstClockTime tolerance = settings_of (self)->tolerance;

  return GST_CLOCK_TIME_IS_VALID (tolerance) ? tolerance
                                             : half_a_frame (&self->info);
}

/* A frame that is to be waited for comes so much later at most. */
static void
set_latency (GstOctInterlace *self)
{
  GstClockTime latency = get_tolerance (self);

  gst_aggregator_set_latency (GST_AGGREGATOR (self), latency, latency);
}

static ImkStatus
gst_oct_interlace_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  if (before)
    set_latency (GST_OCT_INTERLACE (element));
  return IMK_OK;
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .timeless = TRUE,
    .init = init_settings,
    .apply = gst_oct_interlace_apply,
};

/* Returns: FALSE, and that has been said, for frames without caps, or with some
 * that were refused */
static gboolean
check_has_format (GstOctInterlace *self, const GstOctInterlacePad *camera)
{
  if (camera->info.width > 0)
    return TRUE;
  if (!camera->was_refused)
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("A frame of camera %u came before its format.", camera->number),
        (NULL));
  return FALSE;
}

/* As many lines as @n cameras have, at the rate of one. Returns: FALSE, and
 * says so, when these are too many */
static gboolean
set_info (GstOctInterlace *self, const GstVideoInfo *one, guint n)
{
  if ((guint64) one->height * n > G_MAXINT ||
      !gst_imaging_video_info_set_format (&self->info,
          GST_VIDEO_INFO_FORMAT (one), (guint) one->width,
          (guint) one->height * n)) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("B-scans of %u cameras with %d lines of %d samples each would have 4 "
         "GiB or more.",
            n, one->height, one->width),
        (NULL));
    return FALSE;
  }
  self->n_cameras = n;
  self->info.fps_n = one->fps_n;
  self->info.fps_d = one->fps_d;
  return TRUE;
}

static GstFlowReturn
gst_oct_interlace_update_src_caps (
    GstAggregator *aggregator, GstCaps *caps, GstCaps **result)
{
  GstOctInterlace *self = GST_OCT_INTERLACE (aggregator);
  GPtrArray *cameras = get_cameras (self);
  const GstOctInterlacePad *first = find_earliest (cameras);
  GstFlowReturn flow = GST_FLOW_OK;

  if (!first) {
    flow = GST_AGGREGATOR_FLOW_NEED_DATA;
  } else if (check_has_format (self, first) &&
             set_info (self, &first->info, cameras->len)) {
    *result = gst_video_info_to_caps (&self->info);
    set_latency (self);
  } else {
    self->refused = TRUE;
    flow = GST_FLOW_ERROR;
  }
  g_ptr_array_unref (cameras);
  return flow;
}

/* Are frames of @camera what the output is made of? */
static gboolean
has_format (const GstOctInterlace *self, const GstOctInterlacePad *camera)
{
  GstVideoInfo lines = self->info;

  lines.height /= (gint) MAX (self->n_cameras, 1);
  return are_alike (&lines, &camera->info);
}

/* --- which frames belong together -------------------------------------------
 */

/* Drops the gap that @camera is at, unless it reaches beyond @time by more than
 * what times are rounded by. GST_CLOCK_TIME_NONE is any time.
 * Returns: whether it did */
static gboolean
drop_old_gap (GstOctInterlacePad *camera, GstClockTime time)
{
  GstAggregatorPad *pad = GST_AGGREGATOR_PAD (camera);
  GstBuffer *head = gst_aggregator_pad_peek_buffer (pad);
  GstClockTime half = half_a_frame (&camera->info), end;
  gboolean is_old = FALSE;

  if (head && gst_imaging_aggregator_is_gap (head)) {
    end = time_of (camera, head);
    if (GST_CLOCK_TIME_IS_VALID (end))
      end += GST_BUFFER_DURATION_IS_VALID (head) ? GST_BUFFER_DURATION (head)
                                                 : 2 * half;
    is_old = !GST_CLOCK_TIME_IS_VALID (time) ||
             !GST_CLOCK_TIME_IS_VALID (end) || end <= time + half;
  }
  gst_clear_buffer (&head);
  if (is_old)
    gst_aggregator_pad_drop_buffer (pad);
  return is_old;
}

/* Gaps that are over at @time: what is behind them counts.
 * Returns: whether there were any */
static gboolean
drop_old_gaps (GPtrArray *cameras, GstClockTime time)
{
  gboolean any = FALSE;

  for (guint i = 0; i < cameras->len; i++)
    any |= drop_old_gap (cameras->pdata[i], time);
  return any;
}

/* Takes the frame of each camera that is of the earliest time. Frames without
 * a time are of any; in a gap there is none. Returns: that time */
static GstClockTime
take_frames (GstOctInterlace *self, GPtrArray *cameras)
{
  GstClockTime earliest = GST_CLOCK_TIME_NONE;
  GstClockTime tolerance = get_tolerance (self);

  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];

    if (g_atomic_int_compare_and_exchange (&camera->is_flushed, TRUE, FALSE))
      gst_clear_buffer (&camera->last);
    camera->frame =
        gst_aggregator_pad_peek_buffer (GST_AGGREGATOR_PAD (camera));
    camera->repeats = FALSE;
    if (camera->frame && gst_imaging_aggregator_is_gap (camera->frame))
      gst_clear_buffer (&camera->frame);
    if (camera->frame)
      earliest = MIN (earliest, time_of (camera, camera->frame));
  }
  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];
    GstClockTime time =
        camera->frame ? time_of (camera, camera->frame) : GST_CLOCK_TIME_NONE;

    if (GST_CLOCK_TIME_IS_VALID (time) && time - earliest > tolerance)
      gst_clear_buffer (&camera->frame);
    else if (camera->frame)
      gst_aggregator_pad_drop_buffer (GST_AGGREGATOR_PAD (camera));
  }
  return earliest;
}

/* --- cameras that lag --------------------------------------------------------
 */

/* Said once when it begins and once when it is over, the first time loudly. */
static void
note_lag (GstOctInterlace *self, GstOctInterlacePad *camera, GstClockTime time)
{
  gboolean lags = camera->frame == NULL;

  GST_OBJECT_LOCK (self);
  camera->n_missing += lags;
  GST_OBJECT_UNLOCK (self);
  if (lags == camera->lags)
    return;
  camera->lags = lags;
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("octinterlace-lag", "camera", G_TYPE_UINT,
              camera->number, "lags", G_TYPE_BOOLEAN, lags, "running-time",
              G_TYPE_UINT64, time, "missing", G_TYPE_UINT64, camera->n_missing,
              NULL)));
  if (lags && !camera->warned)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("Camera %u lags: it has no frame at %" GST_TIME_FORMAT
         ", where others have. What follows is told by element messages and "
         "stats.",
            camera->number, GST_TIME_ARGS (time)),
        (NULL));
  camera->warned |= lags;
}

/* Returns: whether there is to be a B-scan */
static gboolean
replace_missing (GstOctInterlace *self, GPtrArray *cameras, GstClockTime time)
{
  Missing missing = settings_of (self)->missing;
  gboolean complete = TRUE;

  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];

    note_lag (self, camera, time);
    complete &= camera->frame != NULL;
  }
  GST_OBJECT_LOCK (self);
  self->n_incomplete += !complete;
  GST_OBJECT_UNLOCK (self);
  for (guint i = 0; i < cameras->len && missing == MISSING_REPEAT; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];

    if (!camera->frame && camera->last && has_format (self, camera)) {
      camera->frame = gst_buffer_ref (camera->last);
      camera->repeats = TRUE;
    }
  }
  return complete || missing != MISSING_DROP;
}

/* A frame may wait whose camera has been refused other caps since. */
static const gchar *
name_of_format (const GstVideoInfo *info)
{
  GstVideoFormat format = GST_VIDEO_INFO_FORMAT (info);

  return format == GST_VIDEO_FORMAT_UNKNOWN
             ? "no known format"
             : gst_video_format_to_string (format);
}

/* Returns: whether all frames of this B-scan are as the output has them */
static gboolean
check_formats (GstOctInterlace *self, GPtrArray *cameras)
{
  for (guint i = 0; i < cameras->len; i++) {
    const GstOctInterlacePad *camera = cameras->pdata[i];

    if (!camera->frame || has_format (self, camera))
      continue;
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("Camera %u has %d lines of %d samples, %s, at a time at which others "
         "have %d of %d, %s. All must be the same.",
            camera->number, camera->info.height, camera->info.width,
            name_of_format (&camera->info),
            self->info.height / (gint) MAX (self->n_cameras, 1),
            self->info.width, name_of_format (&self->info)),
        (NULL));
    return FALSE;
  }
  return TRUE;
}

/* --- lines ------------------------------------------------------------------
 */

/* Black without a frame. */
static gboolean
copy_lines (GstOctInterlacePad *camera, guint first, guint step,
    const GstVideoFrame *to)
{
  gsize size = (gsize) camera->info.width *
               GST_VIDEO_INFO_COMP_PSTRIDE (&camera->info, 0);
  GstVideoFrame from;
  gint height = GST_VIDEO_FRAME_HEIGHT (to) / (gint) step;

  if (camera->frame &&
      !gst_video_frame_map (&from, &camera->info, camera->frame, GST_MAP_READ))
    return FALSE;
  for (gint y = 0; y < height; y++) {
    guint8 *line = (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (to, 0) +
                   (gsize) (first + (guint) y * step) *
                       GST_VIDEO_FRAME_PLANE_STRIDE (to, 0);

    if (camera->frame)
      memcpy (line,
          (const guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&from, 0) +
              (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&from, 0),
          size);
    else
      memset (line, 0, GST_VIDEO_FRAME_PLANE_STRIDE (to, 0));
  }
  if (camera->frame)
    gst_video_frame_unmap (&from);
  return TRUE;
}

static GstFlowReturn
acquire (GstOctInterlace *self, GstBuffer **buffer)
{
  GstBufferPool *pool = gst_aggregator_get_buffer_pool (GST_AGGREGATOR (self));
  GstFlowReturn flow = GST_FLOW_OK;

  if (pool)
    flow = gst_buffer_pool_acquire_buffer (pool, buffer, NULL);
  else
    *buffer = gst_buffer_new_allocate (NULL, self->info.size, NULL);
  gst_clear_object (&pool);
  return flow;
}

static GstFlowReturn
interlace (GstOctInterlace *self, GPtrArray *cameras, GstBuffer **buffer)
{
  GstFlowReturn flow = acquire (self, buffer);
  gboolean ok = TRUE;
  GstVideoFrame to;

  if (flow != GST_FLOW_OK)
    return flow;
  if (!gst_video_frame_map (&to, &self->info, *buffer, GST_MAP_WRITE)) {
    GST_ELEMENT_ERROR (self, RESOURCE, WRITE,
        ("The memory of a B-scan of %d lines cannot be written to.",
            self->info.height),
        (NULL));
    return GST_FLOW_ERROR;
  }
  for (guint i = 0; i < cameras->len && ok; i++) {
    ok = copy_lines (cameras->pdata[i], i, cameras->len, &to);
    if (!ok)
      GST_ELEMENT_ERROR (self, RESOURCE, READ,
          ("A frame of camera %u cannot be read as %d lines of %d samples.",
              ((GstOctInterlacePad *) cameras->pdata[i])->number,
              self->info.height / (gint) cameras->len, self->info.width),
          (NULL));
  }
  gst_video_frame_unmap (&to);
  return ok ? GST_FLOW_OK : GST_FLOW_ERROR;
}

static void
keep_last (GPtrArray *cameras)
{
  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];

    if (camera->frame) {
      gst_clear_buffer (&camera->last);
      camera->last = g_steal_pointer (&camera->frame);
    }
  }
}

static void
leave_out (GstOctInterlace *self, GPtrArray *cameras)
{
  keep_last (cameras);
  self->is_gap = TRUE;
}

/* @time in the segment of @self: that of a frame in the same segment as it is,
 * as the way through the running time rounds. */
static GstClockTime
position_of (GstOctInterlace *self, GPtrArray *cameras, GstClockTime time)
{
  const GstSegment *ours =
      &GST_AGGREGATOR_PAD (GST_AGGREGATOR_SRC_PAD (self))->segment;
  GstClockTime position = GST_CLOCK_TIME_NONE;

  if (GST_CLOCK_TIME_IS_VALID (time))
    position =
        gst_segment_position_from_running_time (ours, GST_FORMAT_TIME, time);
  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];
    const GstSegment *segment = &GST_AGGREGATOR_PAD (camera)->segment;

    if (camera->frame && !camera->repeats &&
        time_of (camera, camera->frame) == time && time != position &&
        segment->format == GST_FORMAT_TIME && segment->rate == ours->rate &&
        segment->start == ours->start && segment->stop == ours->stop &&
        segment->base == ours->base && segment->offset == ours->offset)
      return GST_BUFFER_PTS (camera->frame);
  }
  return position;
}

/* What upstream says of the latest frame; an interruption of one camera
 * interrupts all. */
static void
describe (GstOctInterlace *self, GPtrArray *cameras, GstBuffer *buffer)
{
  GstBuffer **frames = g_newa0 (GstBuffer *, cameras->len);
  GstClockTime duration = GST_CLOCK_TIME_NONE;
  GstBuffer *latest;

  for (guint i = 0; i < cameras->len; i++) {
    const GstOctInterlacePad *camera = cameras->pdata[i];

    if (!camera->frame)
      continue;
    duration = MIN (duration, GST_BUFFER_DURATION (camera->frame));
    if (camera->repeats)
      continue;
    frames[i] = camera->frame;
    self->is_gap |= GST_BUFFER_IS_DISCONT (camera->frame);
  }
  latest = gst_imaging_metadata_latest (frames, cameras->len);
  if (latest)
    gst_imaging_metadata_pass (buffer, latest, FALSE);
  GST_BUFFER_DTS (buffer) = GST_CLOCK_TIME_NONE;
  GST_BUFFER_DURATION (buffer) = duration;
}

/* With the time of the earliest. */
static GstFlowReturn
push (GstOctInterlace *self, GPtrArray *cameras, GstClockTime time)
{
  GstSegment *segment =
      &GST_AGGREGATOR_PAD (GST_AGGREGATOR_SRC_PAD (self))->segment;
  GstClockTime position = position_of (self, cameras, time), duration;
  GstBuffer *buffer = NULL;
  GstFlowReturn flow = interlace (self, cameras, &buffer);

  if (flow == GST_FLOW_OK)
    describe (self, cameras, buffer);
  keep_last (cameras);
  if (flow != GST_FLOW_OK) {
    gst_clear_buffer (&buffer);
    return flow;
  }
  if (self->is_gap)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  self->is_gap = FALSE;
  GST_BUFFER_PTS (buffer) = position;
  duration = GST_BUFFER_DURATION (buffer);
  GST_OBJECT_LOCK (self);
  self->n_frames++;
  GST_OBJECT_UNLOCK (self);
  flow = gst_imaging_aggregator_finish (GST_AGGREGATOR (self), buffer);
  /* not before: the segment may leave with the buffer, as it came */
  if (GST_CLOCK_TIME_IS_VALID (position))
    segment->position =
        position + (GST_CLOCK_TIME_IS_VALID (duration) ? duration : 0);
  return flow;
}

static gboolean
are_all_at_end (GPtrArray *cameras)
{
  for (guint i = 0; i < cameras->len; i++)
    if (!gst_aggregator_pad_is_eos (cameras->pdata[i]))
      return FALSE;
  return TRUE;
}

static GstClockTime
time_of_first (GstOctInterlacePad *first)
{
  GstBuffer *frame =
      first ? gst_aggregator_pad_peek_buffer (GST_AGGREGATOR_PAD (first))
            : NULL;
  GstClockTime time = frame ? time_of (first, frame) : GST_CLOCK_TIME_NONE;

  gst_clear_buffer (&frame);
  return time;
}

/* Called when each camera has a frame or has ended; when it is live also when
 * the latency is over. */
static GstFlowReturn
gst_oct_interlace_aggregate (GstAggregator *aggregator, gboolean timeout)
{
  GstOctInterlace *self = GST_OCT_INTERLACE (aggregator);
  GPtrArray *cameras = get_cameras (self);
  GstOctInterlacePad *first = find_earliest (cameras);
  GstFlowReturn flow = GST_FLOW_OK;
  GstClockTime time;

  gst_imaging_settings_update (self->settings, GST_IMAGING_WHEN_LIVE,
      GST_CLOCK_TIME_NONE, NULL); /* nothing can be rejected */
  if (first && (cameras->len != self->n_cameras || !has_format (self, first))) {
    /* one has come, gone or changed since: first the caps, then the frames */
    gst_pad_mark_reconfigure (GST_AGGREGATOR_SRC_PAD (self));
    flow = GST_AGGREGATOR_FLOW_NEED_DATA;
  } else if (drop_old_gaps (cameras, time_of_first (first))) {
    self->is_gap |= first == NULL; /* no camera has a frame */
    flow = GST_AGGREGATOR_FLOW_NEED_DATA;
  } else if (first) {
    time = take_frames (self, cameras);
    if (!check_formats (self, cameras))
      flow = GST_FLOW_ERROR;
    else if (replace_missing (self, cameras, time))
      flow = push (self, cameras, time);
    else
      leave_out (self, cameras);
    if (flow == GST_FLOW_ERROR)
      keep_last (cameras);
  } else if (are_all_at_end (cameras)) {
    flow = GST_FLOW_EOS;
  } else {
    flow = GST_AGGREGATOR_FLOW_NEED_DATA;
  }
  g_ptr_array_unref (cameras);
  return flow;
}

/* --- pads -------------------------------------------------------------------
 */

static GstAggregatorPad *
gst_oct_interlace_create_new_pad (GstAggregator *aggregator,
    GstPadTemplate *template, const gchar *name, const GstCaps *caps)
{
  GstAggregatorPad *pad =
      GST_AGGREGATOR_CLASS (gst_oct_interlace_parent_class)
          ->create_new_pad (aggregator, template, name, caps);

  if (pad) {
    GST_OCT_INTERLACE_PAD (pad)->number = (guint) g_ascii_strtoull (
        GST_PAD_NAME (pad) + strlen ("sink_"), NULL, 10);
    gst_pad_mark_reconfigure (GST_AGGREGATOR_SRC_PAD (aggregator));
  }
  return pad;
}

static void
gst_oct_interlace_release_pad (GstElement *element, GstPad *pad)
{
  GST_ELEMENT_CLASS (gst_oct_interlace_parent_class)
      ->release_pad (element, pad);
  gst_pad_mark_reconfigure (GST_AGGREGATOR_SRC_PAD (element));
}

static gboolean
gst_oct_interlace_negotiate (GstAggregator *aggregator)
{
  GstAggregatorClass *parent =
      GST_AGGREGATOR_CLASS (gst_oct_interlace_parent_class);
  GstOctInterlace *self = GST_OCT_INTERLACE (aggregator);

  self->refused = FALSE;
  return gst_imaging_aggregator_negotiate (aggregator, parent, &self->refused);
}

static gboolean
gst_oct_interlace_start (GstAggregator *aggregator)
{
  GstOctInterlace *self = GST_OCT_INTERLACE (aggregator);
  GPtrArray *cameras = get_cameras (self);

  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];

    camera->lags = camera->warned = FALSE;
    GST_OBJECT_LOCK (self);
    camera->n_missing = 0;
    GST_OBJECT_UNLOCK (self);
    gst_video_info_init (&camera->info);
  }
  g_ptr_array_unref (cameras);
  GST_OBJECT_LOCK (self);
  self->n_frames = self->n_incomplete = 0;
  GST_OBJECT_UNLOCK (self);
  self->n_cameras = 0;
  self->is_gap = FALSE;
  gst_imaging_settings_start (self->settings);
  gst_imaging_settings_update (
      self->settings, GST_IMAGING_WHEN_NEXT_START, GST_CLOCK_TIME_NONE, NULL);
  return TRUE;
}

/* Frames may be of a pool that wants them back. */
static gboolean
gst_oct_interlace_stop (GstAggregator *aggregator)
{
  GstOctInterlace *self = GST_OCT_INTERLACE (aggregator);
  GPtrArray *cameras = get_cameras (self);

  g_queue_clear_full (&self->held, (GDestroyNotify) gst_event_unref);
  for (guint i = 0; i < cameras->len; i++)
    gst_clear_buffer (&GST_OCT_INTERLACE_PAD (cameras->pdata[i])->last);
  g_ptr_array_unref (cameras);
  return TRUE;
}

/* --- properties --------------------------------------------------------------
 */

static GstStructure *
get_stats (GstOctInterlace *self)
{
  GPtrArray *cameras = get_cameras (self);
  GstStructure *stats;

  GST_OBJECT_LOCK (self);
  stats = gst_structure_new ("octinterlace-stats", "frames", G_TYPE_UINT64,
      self->n_frames, "incomplete", G_TYPE_UINT64, self->n_incomplete, NULL);
  for (guint i = 0; i < cameras->len; i++) {
    const GstOctInterlacePad *camera = cameras->pdata[i];
    gchar *name = g_strdup_printf ("missing-%u", camera->number);

    gst_structure_set (stats, name, G_TYPE_UINT64, camera->n_missing, NULL);
    g_free (name);
  }
  GST_OBJECT_UNLOCK (self);
  g_ptr_array_unref (cameras);
  return stats;
}

static void
gst_oct_interlace_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  if (id == PROP_STATS)
    g_value_take_boxed (value, get_stats (GST_OCT_INTERLACE (object)));
  else
    gst_imaging_settings_get_property (object, id, value, pspec);
}

static void
install_properties (GObjectClass *klass)
{
  gst_imaging_settings_install (klass, &table);
  klass->get_property = gst_oct_interlace_get_property;
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics",
          "frames that left, incomplete B-scans, and missing-0, missing-1, ...: "
          "of each camera",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

static void
gst_oct_interlace_class_init (GstOctInterlaceClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstAggregatorClass *aggregator_class = GST_AGGREGATOR_CLASS (klass);

  install_properties (G_OBJECT_CLASS (klass));
  gst_element_class_set_static_metadata (element_class, "OCT camera interlacer",
      "Filter/Video", "Interlaces the spectra of several OCT cameras",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template_with_gtype (
      element_class, &sink_template, GST_TYPE_OCT_INTERLACE_PAD);
  gst_element_class_add_static_pad_template_with_gtype (
      element_class, &src_template, GST_TYPE_AGGREGATOR_PAD);
  element_class->release_pad = gst_oct_interlace_release_pad;
  aggregator_class->start = gst_oct_interlace_start;
  aggregator_class->stop = gst_oct_interlace_stop;
  aggregator_class->clip = gst_oct_interlace_clip;
  aggregator_class->sink_event = gst_oct_interlace_sink_event;
  aggregator_class->src_event = gst_oct_interlace_src_event;
  aggregator_class->negotiate = gst_oct_interlace_negotiate;
  aggregator_class->update_src_caps = gst_oct_interlace_update_src_caps;
  aggregator_class->aggregate = gst_oct_interlace_aggregate;
  aggregator_class->create_new_pad = gst_oct_interlace_create_new_pad;
  aggregator_class->get_next_time = gst_aggregator_simple_get_next_time;
}

static void
gst_oct_interlace_init (GstOctInterlace *self)
{
  gst_imaging_aggregator_init (GST_AGGREGATOR (self), &self->held);
  self->settings = gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
  gst_video_info_init (&self->info);
}
