/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-octinterlace
 * @title: octinterlace
 * @short_description: spectra of several cameras, line by line
 *
 * Takes a stream from each camera of an OCT instrument, sink_0, sink_1, ...,
 * and gives the frames that octbscan takes: line r is line r / C of camera
 * r mod C. Frames belong together by their times or by a counter.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 octinterlace name=i ! octbscan cameras=2 calibration=oct.ini !
 * videoconvert ! autovideosink picturesrc location=a.npy ! i.sink_0
 * picturesrc location=b.npy ! i.sink_1
 * ]|
 *
 * Since: 0.3
 */
#include "gstoctinterlace-private.h"

#include <string.h>

#include "gstimagingaggregator.h"

GST_DEBUG_CATEGORY_STATIC (octinterlace_debug);
#define GST_CAT_DEFAULT octinterlace_debug

enum { PROP_STATS = GST_IMAGING_SETTINGS_FIRST_FREE_ID };

#define FORMATS \
  GST_VIDEO_CAPS_MAKE ("{ GRAY16_LE, GRAY8 }") \
  "; " GST_IMAGING_LINES_TENSOR_CAPS

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink_%u", GST_PAD_SINK, GST_PAD_REQUEST, GST_STATIC_CAPS (FORMATS));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (FORMATS));

/* A group of settings: counters of before are none of theirs. */
enum { COUNTER = 1 };

static const GEnumValue missing_values[] = {
    {MISSING_DROP, "What the other cameras have is left out as well", "drop"},
    {MISSING_REPEAT, "The frame that the camera had before", "repeat"},
    {MISSING_BLACK, "Zeros", "black"},
    {0, NULL, NULL},
};

static const GEnumValue match_values[] = {
    {MATCH_TIME, "The time, to tolerance", "time"},
    {MATCH_OFFSET, "The frame number in the offset of the buffer", "offset"},
    {MATCH_LINE, "A counter in the first line, from counter-sample on", "line"},
    {0, NULL, NULL},
};

static const GstImagingSetting settings[] = {
    GST_IMAGING_UINT64 ("tolerance", LIVE, 0, Settings, tolerance, 0,
        G_MAXUINT64, "ns",
        "Largest delay in nanoseconds after the earliest frame of a B-scan for "
        "a frame to belong to it. -1: half a frame"),
    GST_IMAGING_ENUM ("missing", LIVE, 0, Settings, missing,
        "GstOctInterlaceMissing", missing_values,
        "What is output if a camera has no frame for a B-scan"),
    GST_IMAGING_ENUM ("match", LIVE, COUNTER, Settings, match,
        "GstOctInterlaceMatch", match_values,
        "What frames of one B-scan have in common. With a counter, a number "
        "that no camera has is a missing B-scan"),
    GST_IMAGING_UINT ("counter-sample", LIVE, COUNTER, Settings, counter_sample,
        0, G_MAXUINT16, "samples",
        "First sample of the counter in the first line of a frame, for "
        "match=line. The sample with the lowest bits is the first one"),
    GST_IMAGING_UINT ("counter-samples", LIVE, COUNTER, Settings,
        counter_samples, 1, 4, "samples",
        "Number of samples of the counter, for match=line"),
    GST_IMAGING_UINT ("counter-bits", LIVE, COUNTER, Settings, counter_bits, 0,
        16, "bits",
        "Lowest bits of each of these samples that are the counter. 0: 8 of "
        "uint8, 16 of other samples"),
    GST_IMAGING_INT_ARRAY ("counter-offsets", LIVE, COUNTER, Settings,
        counter_offsets, -G_MAXINT, G_MAXINT, NULL,
        "Numbers that are subtracted from the counters of the cameras, in the "
        "order of their pads, where they did not begin together: <0, 5>"),
};

static void
init_settings (gpointer data)
{
  Settings *s = data;

  s->tolerance = GST_CLOCK_TIME_NONE;
  s->counter_samples = 1;
}

/* --- the element ---------------------------------------------------------- */

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

/* --- segments ------------------------------------------------------------- */

/* Removes what is outside the segment. */
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

/* B-scans have the segment of the first camera, so that they start where a seek
 * asked for. */
static void
take_segment (GstOctInterlace *self, GstAggregatorPad *pad, GstEvent *event)
{
  g_autoptr (GPtrArray) cameras = get_cameras (self);
  const GstSegment *segment;

  gst_event_parse_segment (event, &segment);
  if (segment->format == GST_FORMAT_TIME && cameras->len > 0 &&
      cameras->pdata[0] == pad)
    gst_aggregator_update_segment (GST_AGGREGATOR (self), segment);
  self->is_gap = TRUE;
  gst_oct_interlace_forget_counters (self);
}

/* --- caps ----------------------------------------------------------------- */

static gboolean
set_caps (GstOctInterlace *self, GstOctInterlacePad *camera, GstCaps *caps)
{
  GstImagingLines lines;

  camera->was_refused = !gst_imaging_lines_from_caps (&lines, caps);
  if (camera->was_refused) {
    gst_video_info_init (&camera->lines.info);
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("Frames of camera %u have 4 GiB or more, or rows of 2 GiB, or are "
         "tensors of other dimensions than samples:lines. They cannot be "
         "taken.",
            camera->number),
        ("%" GST_PTR_FORMAT, caps));
    return FALSE;
  }
  camera->lines = lines;
  gst_clear_buffer (&camera->last);
  gst_pad_mark_reconfigure (GST_AGGREGATOR_SRC_PAD (self));
  return TRUE;
}

/* Cameras change their format one after the other, so formats are compared when
 * the frames of one time are taken. */
static gboolean
gst_oct_interlace_sink_event (
    GstAggregator *aggregator, GstAggregatorPad *pad, GstEvent *event)
{
  GstOctInterlace *self = GST_OCT_INTERLACE (aggregator);
  GstCaps *caps;

  if (gst_imaging_aggregator_keep_event (aggregator, pad, &self->held, event))
    return TRUE;
  if (GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT)
    take_segment (self, pad, event);
  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS) {
    gst_event_parse_caps (event, &caps);
    if (!set_caps (self, GST_OCT_INTERLACE_PAD (pad), caps)) {
      gst_event_unref (event);
      return FALSE;
    }
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

/* The element waits at most this long for a late frame. */
static void
set_latency (GstOctInterlace *self)
{
  GstClockTime latency = gst_oct_interlace_get_tolerance (self);

  gst_aggregator_set_latency (GST_AGGREGATOR (self), latency, latency);
}

static ImkStatus
gst_oct_interlace_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  if (before)
    set_latency (GST_OCT_INTERLACE (element));
  if (groups & COUNTER)
    gst_oct_interlace_forget_counters (GST_OCT_INTERLACE (element));
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

/* Posts an error if a frame arrived without caps. */
static gboolean
check_has_caps (GstOctInterlace *self, const GstOctInterlacePad *camera)
{
  if (camera->lines.info.width > 0)
    return TRUE;
  if (!camera->was_refused)
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("A frame of camera %u came before its format.", camera->number),
        (NULL));
  return FALSE;
}

/* B-scans of @n cameras, at the rate of one. Posts an error if they are too
 * large. */
static gboolean
set_lines (GstOctInterlace *self, const GstImagingLines *one, guint n)
{
  GstImagingLines all = *one;

  if ((guint64) one->info.height * n > G_MAXINT ||
      !gst_imaging_lines_set_height (&all, (guint) one->info.height * n)) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("B-scans of %u cameras with %d lines of %u samples each would have 4 "
         "GiB or more.",
            n, one->info.height, gst_imaging_lines_get_width (one)),
        (NULL));
    return FALSE;
  }
  self->n_cameras = n;
  self->camera_lines = *one;
  self->lines = all;
  return TRUE;
}

static GstFlowReturn
gst_oct_interlace_update_src_caps (
    GstAggregator *aggregator, GstCaps *caps, GstCaps **result)
{
  GstOctInterlace *self = GST_OCT_INTERLACE (aggregator);
  g_autoptr (GPtrArray) cameras = get_cameras (self);
  guint64 key;
  GstOctInterlacePad *first =
      gst_oct_interlace_find_earliest (self, cameras, &key);

  if (!first)
    return GST_AGGREGATOR_FLOW_NEED_DATA;
  self->refused = !check_has_caps (self, first) ||
                  !set_lines (self, &first->lines, cameras->len);
  if (self->refused)
    return GST_FLOW_ERROR;
  *result = gst_imaging_lines_to_caps (&self->lines);
  set_latency (self);
  return GST_FLOW_OK;
}

/* Unknown if later caps of a camera were refused while its frame waits. */
static const gchar *
name_of_format (const GstImagingLines *lines)
{
  GstVideoFormat format = GST_VIDEO_INFO_FORMAT (&lines->info);

  return format == GST_VIDEO_FORMAT_UNKNOWN ? "no known format"
         : lines->is_tensor                 ? imk_type_name (lines->type)
                            : gst_video_format_to_string (format);
}

static gboolean
check_formats (GstOctInterlace *self, GPtrArray *cameras)
{
  for (guint i = 0; i < cameras->len; i++) {
    const GstOctInterlacePad *camera = cameras->pdata[i];

    if (!camera->frame || gst_oct_interlace_has_format (self, camera))
      continue;
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("Camera %u has %d lines of %u samples, %s, at a time at which others "
         "have %d of %u, %s. All must be the same.",
            camera->number, camera->lines.info.height,
            gst_imaging_lines_get_width (&camera->lines),
            name_of_format (&camera->lines), self->camera_lines.info.height,
            gst_imaging_lines_get_width (&self->lines),
            name_of_format (&self->lines)),
        (NULL));
    return FALSE;
  }
  return TRUE;
}

/* --- data --------------------------------------------------------------- */

static GstFlowReturn
finish (GstOctInterlace *self, GstBuffer *bscan)
{
  GstSegment *segment =
      &GST_AGGREGATOR_PAD (GST_AGGREGATOR_SRC_PAD (self))->segment;
  GstClockTime position = GST_BUFFER_PTS (bscan);
  GstClockTime duration = GST_BUFFER_DURATION (bscan);
  GstFlowReturn flow;

  GST_OBJECT_LOCK (self);
  self->n_frames++;
  GST_OBJECT_UNLOCK (self);
  flow = gst_imaging_aggregator_finish (GST_AGGREGATOR (self), bscan);
  /* not before: the segment event may be sent with this buffer */
  if (GST_CLOCK_TIME_IS_VALID (position))
    segment->position =
        position + (GST_CLOCK_TIME_IS_VALID (duration) ? duration : 0);
  return flow;
}

/* Numbers that no camera has. Returns: how many B-scans are to be filled before
 * that of @key */
static guint64
handle_holes (GstOctInterlace *self, GPtrArray *cameras, guint64 key)
{
  const Settings *now = gst_imaging_settings_now (self->settings);
  guint64 n = gst_oct_interlace_count_holes (self, key);

  if (n == 0 ||
      (now->missing != MISSING_DROP && n <= GST_OCT_INTERLACE_MAX_HOLES))
    return n;
  GST_OBJECT_LOCK (self);
  self->n_incomplete += n;
  for (guint i = 0; i < cameras->len; i++)
    GST_OCT_INTERLACE_PAD (cameras->pdata[i])->n_missing += n;
  GST_OBJECT_UNLOCK (self);
  self->is_gap = TRUE;
  return 0;
}

/* @key: of the next frame of a camera */
static GstFlowReturn
output_bscan (GstOctInterlace *self, GPtrArray *cameras, guint64 key)
{
  guint64 n_holes = handle_holes (self, cameras, key);
  GstClockTime time = n_holes > 0
                          ? gst_oct_interlace_take_hole (self, cameras, n_holes)
                          : gst_oct_interlace_take_frames (self, cameras);
  GstFlowReturn flow = GST_FLOW_OK;
  GstBuffer *bscan = NULL;

  self->last_time = time;
  if (!check_formats (self, cameras))
    flow = GST_FLOW_ERROR;
  else if (gst_oct_interlace_handle_missing (self, cameras, time))
    flow = gst_oct_interlace_make_bscan (self, cameras, time, &bscan);
  else
    self->is_gap = TRUE;
  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];

    if (camera->frame) {
      gst_clear_buffer (&camera->last);
      camera->last = g_steal_pointer (&camera->frame);
    }
  }
  return bscan ? finish (self, bscan) : flow;
}

static gboolean
are_all_at_end (GPtrArray *cameras)
{
  for (guint i = 0; i < cameras->len; i++)
    if (!gst_aggregator_pad_is_eos (cameras->pdata[i]))
      return FALSE;
  return TRUE;
}

/* Called when each camera has a frame or is at EOS. Live: also when the latency
 * is over. */
static GstFlowReturn
gst_oct_interlace_aggregate (GstAggregator *aggregator, gboolean timeout)
{
  GstOctInterlace *self = GST_OCT_INTERLACE (aggregator);
  g_autoptr (GPtrArray) cameras = get_cameras (self);
  guint64 key;
  GstOctInterlacePad *first;
  GstFlowReturn flow = GST_AGGREGATOR_FLOW_NEED_DATA;

  gst_imaging_settings_update (self->settings, GST_IMAGING_WHEN_LIVE,
      GST_CLOCK_TIME_NONE, NULL); /* apply () accepts all values */
  gst_oct_interlace_forget_flushed (self, cameras);
  first = gst_oct_interlace_find_earliest (self, cameras, &key);
  if (first && (cameras->len != self->n_cameras ||
                   !gst_oct_interlace_has_format (self, first)))
    /* the frames stay in the queues until the new caps are set */
    gst_pad_mark_reconfigure (GST_AGGREGATOR_SRC_PAD (self));
  else if (gst_oct_interlace_drop_old_gaps (
               cameras, gst_oct_interlace_has_counters (self)
                            ? GST_CLOCK_TIME_NONE
                            : key)) /* counters tell what is missing */
    self->is_gap |= first == NULL;  /* no camera has a frame */
  else if (first)
    flow = output_bscan (self, cameras, key);
  else if (are_all_at_end (cameras))
    flow = GST_FLOW_EOS;
  return flow;
}

/* --- pads ----------------------------------------------------------------- */

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
  g_autoptr (GPtrArray) cameras = get_cameras (self);

  GST_OBJECT_LOCK (self);
  self->n_frames = self->n_incomplete = 0;
  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];

    camera->lags = camera->warned = camera->warned_of_counter = FALSE;
    camera->n_missing = 0;
    gst_video_info_init (&camera->lines.info);
  }
  GST_OBJECT_UNLOCK (self);
  self->n_cameras = 0;
  self->is_gap = FALSE;
  self->last_time = self->last_duration = GST_CLOCK_TIME_NONE;
  self->last_offset = GST_BUFFER_OFFSET_NONE;
  gst_oct_interlace_forget_counters (self);
  gst_imaging_settings_start (self->settings);
  gst_imaging_settings_update (
      self->settings, GST_IMAGING_WHEN_NEXT_START, GST_CLOCK_TIME_NONE, NULL);
  return TRUE;
}

/* A source cannot stop its pool while we hold one of its frames. */
static gboolean
gst_oct_interlace_stop (GstAggregator *aggregator)
{
  GstOctInterlace *self = GST_OCT_INTERLACE (aggregator);
  g_autoptr (GPtrArray) cameras = get_cameras (self);

  g_queue_clear_full (&self->held, (GDestroyNotify) gst_event_unref);
  for (guint i = 0; i < cameras->len; i++)
    gst_clear_buffer (&GST_OCT_INTERLACE_PAD (cameras->pdata[i])->last);
  return TRUE;
}

/* --- properties ----------------------------------------------------------- */

static GstStructure *
get_stats (GstOctInterlace *self)
{
  g_autoptr (GPtrArray) cameras = get_cameras (self);
  GstStructure *stats;

  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  stats = gst_structure_new ("octinterlace-stats", "frames", G_TYPE_UINT64,
      self->n_frames, "incomplete", G_TYPE_UINT64, self->n_incomplete, NULL);
  for (guint i = 0; i < cameras->len; i++) {
    const GstOctInterlacePad *camera = cameras->pdata[i];
    g_autofree gchar *name = g_strdup_printf ("missing-%u", camera->number);

    gst_structure_set (stats, name, G_TYPE_UINT64, camera->n_missing, NULL);
  }
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
gst_oct_interlace_class_init (GstOctInterlaceClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstAggregatorClass *aggregator_class = GST_AGGREGATOR_CLASS (klass);

  gst_imaging_settings_install (object_class, &table);
  object_class->get_property = gst_oct_interlace_get_property;
  g_object_class_install_property (object_class, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics",
          "Counters since the element started: frames that were output, "
          "incomplete B-scans, and missing-0, missing-1, ... for each camera",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
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
  gst_video_info_init (&self->lines.info);
}
