/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingfilter.h"

#include "gstimaging-private.h"
#include "gstimagingallocation.h"
#include "gstimagingcaps.h"
#include "gstimagingengine-private.h"
#include "gstimagingnumbering.h"
#include "gstimagingresultspad.h"
#include "gstimagingsettings.h"
#include "gstimagingstream.h"

typedef struct {
  GstImagingEngine *engine;
  GstImagingSettings *settings; /* (nullable) */
  gboolean same_memory;         /* caps in and out, as to CUDAMemory */
  GstClockTime entered;         /* when the frame at hand came */
  GstImagingNumbering numbering;
  guint64 number;    /* of the frame at hand */
  guint64 n_missing; /* frames before it, since the last result */
  gboolean has_warned_of_missing;

  GstPadChainFunction base_chain;
  GstImagingSrcPads *results; /* of one pad */
  GstImagingResultsCache *cache;
  GstFlowReturn results_flow;
} GstImagingFilterPrivate;

typedef GstImagingFilterPrivate Private;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (
    GstImagingFilter, gst_imaging_filter, GST_TYPE_BASE_TRANSFORM)

static Private *
private_of (GstImagingFilter *self)
{
  return gst_imaging_filter_get_instance_private (self);
}

static GstImagingEngine *
engine_of (GstImagingFilter *self)
{
  return private_of (self)->engine;
}

/* --- what subclasses ask ------------------------------------------------ */

GstImagingSettings *
gst_imaging_filter_use_settings (
    GstImagingFilter *self, const GstImagingSettingsTable *table)
{
  Private *priv = private_of (self);

  priv->settings =
      gst_imaging_settings_new (GST_ELEMENT (self), table, priv->engine);
  return priv->settings;
}

guint
gst_imaging_filter_n_threads (GstImagingFilter *self)
{
  return gst_imaging_engine_n_threads (engine_of (self));
}

GstImagingContext *
gst_imaging_filter_open_context (GstImagingFilter *self)
{
  return gst_imaging_engine_context (engine_of (self));
}

ImkStatus
gst_imaging_filter_synchronize (GstImagingFilter *self, ImkError *error)
{
  return gst_imaging_engine_synchronize (engine_of (self), error);
}

ImkStatus
gst_imaging_filter_peek (GstImagingFilter *self, const ImkImage *plane,
    ImkImage *host, gpointer *copy, ImkError *error)
{
  GstImagingEngine *engine = engine_of (self);
  gsize row_size = imk_image_row_size (plane);
  ImkStatus status;

  *host = *plane;
  if (plane->location == IMK_LOCATION_HOST)
    return IMK_OK;
  host->location = IMK_LOCATION_HOST;
  host->stride = row_size;
  host->data = g_try_malloc (row_size * plane->height);
  if (!host->data)
    return IMK_NO_MEMORY (error, "for a frame of %" G_GSIZE_FORMAT " bytes.",
        row_size * plane->height);
  status =
      gst_imaging_context_device (gst_imaging_engine_context (engine))
          ->copy (host->data, row_size, plane->data, plane->stride, row_size,
              plane->height, gst_imaging_engine_stream (engine), error);
  if (status == IMK_OK)
    status = gst_imaging_engine_synchronize (engine, error);
  if (status == IMK_OK)
    *copy = host->data;
  else
    g_free (host->data);
  return status;
}

ImkStatus
gst_imaging_filter_download (GstImagingFilter *self, const ImkImage *plane,
    ImkImage *host, gpointer *copy, ImkError *error)
{
  IMK_TRY (gst_imaging_filter_peek (self, plane, host, copy, error));
  if (host->data != plane->data)
    gst_imaging_stats_add_downloaded (
        gst_imaging_engine_stats (engine_of (self)),
        imk_image_row_size (plane) * plane->height);
  return IMK_OK;
}

ImkStatus
gst_imaging_filter_renew (GstImagingFilter *self, ImkError *error)
{
  return gst_imaging_engine_renew (engine_of (self), error);
}

guint64
gst_imaging_filter_frame_number (GstImagingFilter *self)
{
  return private_of (self)->number;
}

/* --- what the engine asks ----------------------------------------------- */

static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  return GST_IMAGING_FILTER_GET_CLASS (element)->open (
      GST_IMAGING_FILTER (element), backend, info, error);
}

static void
close_kernel (GstElement *element)
{
  GST_IMAGING_FILTER_GET_CLASS (element)->close (GST_IMAGING_FILTER (element));
}

static gboolean
prefers_cuda (GstElement *element, const GstVideoInfo *info)
{
  GstImagingFilterClass *klass = GST_IMAGING_FILTER_GET_CLASS (element);

  return klass->prefers_cuda &&
         klass->prefers_cuda (GST_IMAGING_FILTER (element), info);
}

static void
reconfigure (GstElement *element)
{
  gst_base_transform_reconfigure_src (GST_BASE_TRANSFORM (element));
  /* what upstream is offered changes as well */
  gst_base_transform_reconfigure_sink (GST_BASE_TRANSFORM (element));
}

static ImkStatus
carrier (
    GstElement *element, GstCaps *caps, GstVideoInfo *info, ImkError *error)
{
  GstImagingFilterClass *klass = GST_IMAGING_FILTER_GET_CLASS (element);

  return klass->carrier
             ? klass->carrier (GST_IMAGING_FILTER (element), caps, info, error)
             : IMK_OK;
}

static const GstImagingEngineFuncs engine_funcs = {
    .open = open_kernel,
    .close = close_kernel,
    .prefers_cuda = prefers_cuda,
    .reconfigure = reconfigure,
    .carrier = carrier,
};

/* --- one frame ---------------------------------------------------------- */

typedef struct {
  GstImagingFilter *self;
  GstBuffer *out;       /* (nullable): of a class that makes frames */
  GstBuffer *annotated; /* the one that leaves the element */
} Work;

/* Runs the kernel between map and unmap of both frames. */
static ImkStatus
process (gpointer data, GstBuffer *in, GstImagingReach reach, gboolean again,
    ImkError *error)
{
  const Work *w = data;
  GstImagingEngine *engine = engine_of (w->self);
  const GstVideoInfo *info = gst_imaging_engine_info (engine);
  GstImagingFrame in_frame, out_frame;
  gboolean done = reach == GST_IMAGING_REACH_HOST;
  ImkStatus status = IMK_OK;

  if (again && w->out) { /* it was meant for the device */
    gst_buffer_remove_all_memory (w->out);
    gst_buffer_append_memory (
        w->out, gst_allocator_alloc (NULL, info->size, NULL));
  }
  IMK_TRY (gst_imaging_engine_map (
      engine, in, info, GST_MAP_READ, reach, &in_frame, error));
  if (w->out)
    status = gst_imaging_engine_map (
        engine, w->out, info, GST_MAP_WRITE, reach, &out_frame, error);
  if (status == IMK_OK) {
    gst_imaging_engine_note_memory (engine, in_frame.memory_name);
    status = GST_IMAGING_FILTER_GET_CLASS (w->self)->process (w->self,
        &in_frame, w->out ? &out_frame : NULL, w->annotated, &done, error);
    if (w->out)
      status = gst_imaging_frame_end (&out_frame, done, status, error);
  }
  return gst_imaging_frame_end (&in_frame, done, status, error);
}

static GstFlowReturn
count_frame (GstImagingFilter *self)
{
  Private *priv = private_of (self);

  gst_imaging_engine_count_frame (priv->engine, priv->entered);
  /* When the results branch fails, the frame is not pushed either: its sink
   * could wait for the preroll of the results' sink. */
  return priv->results_flow < GST_FLOW_EOS ? priv->results_flow : GST_FLOW_OK;
}

/* @out: (nullable): of a class that makes frames */
static GstFlowReturn
run (GstImagingFilter *self, GstBuffer *in, GstBuffer *out)
{
  GstImagingEngine *engine = engine_of (self);
  Work w = {self, out, out ? out : in};
  GstFlowReturn flow = gst_imaging_engine_process (engine, in,
      GST_IMAGING_FILTER_GET_CLASS (self)->device_reach, process, &w);

  if (flow == GST_FLOW_CUSTOM_SUCCESS)
    return GST_BASE_TRANSFORM_FLOW_DROPPED;
  if (flow != GST_FLOW_OK)
    return flow;
  if (out)
    gst_imaging_engine_sign (engine, out);
  return count_frame (self);
}

static GstFlowReturn
gst_imaging_filter_transform (
    GstBaseTransform *trans, GstBuffer *in, GstBuffer *out)
{
  return run (GST_IMAGING_FILTER (trans), in, out);
}

static GstFlowReturn
gst_imaging_filter_transform_ip (GstBaseTransform *trans, GstBuffer *buffer)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);

  /* Passthrough of an element that makes new frames comes here as well. */
  return GST_IMAGING_FILTER_GET_CLASS (self)->measures
             ? run (self, buffer, NULL)
             : count_frame (self);
}

/* Here and not in set_property (): the base class must not see passthrough
 * change in the middle of a frame. */
static void
follow_identity (GstImagingFilter *self)
{
  GstImagingFilterClass *klass = GST_IMAGING_FILTER_GET_CLASS (self);
  GstBaseTransform *trans = GST_BASE_TRANSFORM (self);
  gboolean identity = klass->is_identity && klass->is_identity (self) &&
                      private_of (self)->same_memory;

  if (identity == gst_base_transform_is_passthrough (trans))
    return;
  gst_base_transform_set_passthrough (trans, identity);
  gst_base_transform_reconfigure_src (trans);
}

/* What was set since the last frame. */
static gboolean
take_settings (GstImagingFilter *self, GstClockTime time)
{
  GstImagingSettings *settings = private_of (self)->settings;

  if (settings)
    return gst_imaging_settings_take (settings, GST_IMAGING_WHEN_LIVE, time);
  if (GST_CLOCK_TIME_IS_VALID (time))
    gst_object_sync_values (GST_OBJECT (self), time);
  return TRUE;
}

static GstFlowReturn
gst_imaging_filter_submit_input_buffer (
    GstBaseTransform *trans, gboolean is_discont, GstBuffer *input)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);

  if (!take_settings (self, gst_imaging_stream_time (&trans->segment, input)) ||
      !gst_imaging_engine_follow (engine_of (self), input)) {
    gst_buffer_unref (input);
    return GST_FLOW_ERROR;
  }
  follow_identity (self);
  return GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
      ->submit_input_buffer (trans, is_discont, input);
}

/* --- caps and memory ---------------------------------------------------- */

/* A new frame may be in another kind of memory than the one it is made of;
 * the CPU takes no CUDAMemory, though it could map it: downloading is the job
 * of elements that say so; and NVMM is for the device alone. */
static GstCaps *
gst_imaging_filter_transform_caps (GstBaseTransform *trans,
    GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  GstCaps *ours, *result;

  if (GST_IMAGING_FILTER_GET_CLASS (self)->measures ||
      gst_imaging_engine_choice (engine_of (self)) == GST_IMAGING_BACKEND_CPU)
    ours = gst_imaging_engine_usable_caps (engine_of (self), caps);
  else
    ours = gst_imaging_caps_add_memory (caps);
  if (!filter)
    return ours;
  result = gst_caps_intersect_full (filter, ours, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (ours);
  /* An element that can give both, as cudaupload, was put there for one. */
  return direction == GST_PAD_SRC ? gst_imaging_caps_sort_device_first (result)
                                  : result;
}

/* The memory kind of the input, where the peer accepts it. */
static GstCaps *
gst_imaging_filter_fixate_caps (GstBaseTransform *trans,
    GstPadDirection direction, GstCaps *caps, GstCaps *othercaps)
{
  GstCapsFeatures *features = gst_caps_get_features (caps, 0);
  GstCaps *same = gst_caps_new_empty ();

  for (guint i = 0; i < gst_caps_get_size (othercaps); i++)
    if (gst_caps_features_is_equal (
            features, gst_caps_get_features (othercaps, i)))
      gst_caps_append (same, gst_caps_copy_nth (othercaps, i));
  if (gst_caps_is_empty (same))
    gst_caps_unref (same);
  else
    gst_caps_take (&othercaps, same);
  return GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
      ->fixate_caps (trans, direction, caps, othercaps);
}

static gboolean
gst_imaging_filter_set_caps (
    GstBaseTransform *trans, GstCaps *in_caps, GstCaps *out_caps)
{
  Private *priv = private_of (GST_IMAGING_FILTER (trans));

  priv->same_memory =
      gst_imaging_caps_memory (in_caps) == gst_imaging_caps_memory (out_caps);
  return gst_imaging_engine_set_caps (priv->engine, in_caps, out_caps);
}

static gboolean
gst_imaging_filter_propose_allocation (
    GstBaseTransform *trans, GstQuery *decide_query, GstQuery *query)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  gboolean measures = GST_IMAGING_FILTER_GET_CLASS (self)->measures;
  gboolean handled = GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
                         ->propose_allocation (trans, decide_query, query);

  /* An in-place or passthrough element has just asked downstream, and what
   * downstream offers travels through it; an unlinked one has nobody to ask. */
  if (!measures && (!decide_query || !handled))
    return handled;
  /* Frames that are only measured are passed unchanged, so downstream decides
   * on their rows. This element accepts any. */
  if ((!measures || !gst_pad_is_linked (GST_BASE_TRANSFORM_SRC_PAD (trans))) &&
      !gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL))
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  gst_imaging_allocation_propose (engine_of (self), query);
  return TRUE;
}

static gboolean
is_video (GstQuery *query)
{
  GstCaps *caps;

  gst_query_parse_allocation (query, &caps, NULL);
  return caps && g_str_has_prefix (
                     gst_structure_get_name (gst_caps_get_structure (caps, 0)),
                     "video/");
}

static gboolean
gst_imaging_filter_decide_allocation (GstBaseTransform *trans, GstQuery *query)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  gboolean has_carrier = GST_IMAGING_FILTER_GET_CLASS (self)->carrier != NULL;
  ImkError ignored; /* the next frame reports it */

  /* After caps that were refused, those before may come again without
   * set_caps (), and memory depends on where the kernel is. */
  gst_imaging_engine_ensure_open (engine_of (self), &ignored);
  if (has_carrier && !is_video (query))
    gst_imaging_allocation_decide_plain (engine_of (self), query);
  else if (!gst_imaging_allocation_decide (engine_of (self), query))
    return FALSE;
  return GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
      ->decide_allocation (trans, query);
}

/* The pool of the base class may find the device full, or gone. */
static GstFlowReturn
gst_imaging_filter_prepare_output_buffer (
    GstBaseTransform *trans, GstBuffer *input, GstBuffer **output)
{
  GstImagingEngine *engine = engine_of (GST_IMAGING_FILTER (trans));
  GstFlowReturn flow =
      GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
          ->prepare_output_buffer (trans, input, output);
  ImkError error;
  ImkStatus status;
  gsize size;

  if (flow != GST_FLOW_ERROR || !gst_imaging_engine_is_on_cuda (engine))
    return flow;
  size = gst_imaging_engine_info (engine)->size;
  status = imk_error_set (&error, IMK_ERROR_MEMORY,
      "There is no device memory for a frame of %" G_GSIZE_FORMAT " bytes.",
      size);
  status = gst_imaging_engine_try_cpu (engine, status, &error);
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (engine, status, &error);
    return GST_FLOW_ERROR;
  }
  *output = gst_buffer_new_allocate (NULL, size, NULL);
  GST_BASE_TRANSFORM_GET_CLASS (trans)->copy_metadata (trans, input, *output);
  return GST_FLOW_OK;
}

/* Format and size stay, so what is known of a frame stays true. Metas of the
 * memory do not reach this function. */
static gboolean
gst_imaging_filter_transform_meta (
    GstBaseTransform *trans, GstBuffer *out, GstMeta *meta, GstBuffer *in)
{
  return TRUE;
}

/* --- the results pad ---------------------------------------------------- */

/* Returns: (transfer full) (nullable) */
static GstImagingResultsPad *
get_results (GstImagingFilter *self)
{
  GstImagingSrcPad *pad =
      gst_imaging_src_pads_get (private_of (self)->results, 0);

  return GST_IMAGING_RESULTS_PAD (pad);
}

gboolean
gst_imaging_filter_wants_values (GstImagingFilter *self)
{
  g_autoptr (GstImagingResultsPad) results = get_results (self);

  return results && gst_imaging_results_pad_wants_values (results);
}

void
gst_imaging_filter_publish (
    GstImagingFilter *self, GstBuffer *buffer, const GstImagingResult *result)
{
  Private *priv = private_of (self);
  const GstVideoInfo *info = gst_imaging_engine_info (priv->engine);
  g_autoptr (GstImagingResultsPad) results = get_results (self);
  g_autoptr (GstImagingResultsPad) current = NULL;
  GstImagingResult numbered = *result;
  GstFlowReturn flow;

  numbered.frames_missing = priv->n_missing;
  numbered.origin = gst_imaging_engine_origin (priv->engine);
  numbered.cache = priv->cache;
  priv->n_missing = 0;
  gst_imaging_results_attach (buffer, GST_OBJECT_NAME (self), &numbered);
  if (!results)
    return;
  flow = gst_imaging_results_pad_push (results, &numbered, buffer,
      GST_VIDEO_INFO_FPS_N (info), GST_VIDEO_INFO_FPS_D (info));
  /* a pad that was released meanwhile is flushing; that stops nobody else */
  current = get_results (self);
  priv->results_flow = current == results ? flow : GST_FLOW_NOT_LINKED;
}

/* The flow for upstream: OK as long as one of the two wants more, and the error
 * of either. */
static GstFlowReturn
combine (GstFlowReturn src, GstFlowReturn results)
{
  if (results == GST_FLOW_NOT_LINKED)
    return src;
  if (src == GST_FLOW_NOT_LINKED || src == GST_FLOW_EOS)
    return results;
  if (results == GST_FLOW_EOS)
    return src;
  return src != GST_FLOW_OK ? src : results;
}

/* One warning for elements that measure: readers of the numbers must know. */
static void
number_frame (GstImagingFilter *self, GstBuffer *buffer)
{
  Private *priv = private_of (self);
  guint64 n;

  priv->number = gst_imaging_numbering_next (&priv->numbering, buffer, &n);
  if (n == 0)
    return;
  priv->n_missing += n;
  gst_imaging_stats_add_missing (gst_imaging_engine_stats (priv->engine), n);
  if (priv->has_warned_of_missing ||
      !GST_IMAGING_FILTER_GET_CLASS (self)->measures)
    return;
  priv->has_warned_of_missing = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("%" G_GUINT64_FORMAT " frame%s missing before frame %" G_GUINT64_FORMAT
       ". Further gaps are counted in frames-missing of the property stats.",
          n, n == 1 ? " is" : "s are", priv->number),
      (NULL));
}

static GstFlowReturn
gst_imaging_filter_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (parent);
  GstImagingFilterClass *klass = GST_IMAGING_FILTER_GET_CLASS (self);
  Private *priv = private_of (self);
  GstFlowReturn flow;

  priv->entered = gst_util_get_timestamp ();
  priv->results_flow = GST_FLOW_NOT_LINKED;
  number_frame (self, buffer);
  flow = priv->base_chain (pad, parent, buffer);
  if (klass->finish)
    klass->finish (self);
  return combine (flow, priv->results_flow);
}

static void
reset_kernel (GstImagingFilter *self)
{
  GstImagingFilterClass *klass = GST_IMAGING_FILTER_GET_CLASS (self);
  GstImagingEngine *engine = engine_of (self);
  GstImagingContext *context = gst_imaging_engine_kernel_context (engine);

  if (!gst_imaging_engine_is_open (engine) || !klass->reset ||
      gst_imaging_context_push (context, NULL) != IMK_OK)
    return;
  klass->reset (self, context ? gst_imaging_engine_stream (engine) : NULL);
  gst_imaging_context_pop (context);
}

static gboolean
gst_imaging_filter_sink_event (GstBaseTransform *trans, GstEvent *event)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  g_autoptr (GstImagingResultsPad) results = get_results (self);

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_GAP:
  case GST_EVENT_EOS:
    if (results)
      gst_imaging_results_pad_negotiate_text (results);
    break;
  case GST_EVENT_FLUSH_STOP:
    reset_kernel (self);
    gst_imaging_numbering_interrupt (&private_of (self)->numbering);
    break;
  case GST_EVENT_STREAM_START:
  case GST_EVENT_SEGMENT:
    gst_imaging_numbering_interrupt (&private_of (self)->numbering);
    break;
  default:
    break;
  }
  gst_imaging_src_pads_event (private_of (self)->results, event);
  return GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
      ->sink_event (trans, event);
}

static GstPad *
gst_imaging_filter_request_new_pad (GstElement *element,
    GstPadTemplate *template, const gchar *name, const GstCaps *caps)
{
  return gst_imaging_src_pads_request (
      private_of (GST_IMAGING_FILTER (element))->results, template);
}

static void
drop_results (GstImagingFilter *self)
{
  g_autoptr (GstImagingResultsPad) results = get_results (self);

  if (!results)
    return;
  gst_imaging_results_pad_close (results);
  gst_imaging_src_pads_release (private_of (self)->results, GST_PAD (results));
}

static void
gst_imaging_filter_release_pad (GstElement *element, GstPad *pad)
{
  drop_results (GST_IMAGING_FILTER (element));
}

void
gst_imaging_filter_class_add_results_pad (
    GstImagingFilterClass *klass, gboolean with_flags)
{
  GstCaps *caps =
      gst_caps_from_string (with_flags ? GST_IMAGING_RESULTS_CAPS_WITH_FLAGS
                                       : GST_IMAGING_RESULTS_CAPS);

  gst_element_class_add_pad_template (GST_ELEMENT_CLASS (klass),
      gst_pad_template_new ("results", GST_PAD_SRC, GST_PAD_REQUEST, caps));
  gst_caps_unref (caps);
}

/* --- contexts, start and stop ------------------------------------------- */

static void
gst_imaging_filter_set_context (GstElement *element, GstContext *message)
{
  gst_imaging_engine_set_context (
      engine_of (GST_IMAGING_FILTER (element)), message);
  GST_ELEMENT_CLASS (gst_imaging_filter_parent_class)
      ->set_context (element, message);
}

static gboolean
gst_imaging_filter_query (
    GstBaseTransform *trans, GstPadDirection direction, GstQuery *query)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);

  return gst_imaging_engine_query (engine_of (self), query) ||
         GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
             ->query (trans, direction, query);
}

static gboolean
gst_imaging_filter_start (GstBaseTransform *trans)
{
  Private *priv = private_of (GST_IMAGING_FILTER (trans));

  gst_imaging_numbering_reset (&priv->numbering);
  priv->number = priv->n_missing = 0;
  priv->has_warned_of_missing = FALSE;
  return gst_imaging_engine_start (priv->engine);
}

static gboolean
gst_imaging_filter_stop (GstBaseTransform *trans)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  g_autoptr (GstImagingResultsPad) results = get_results (self);

  gst_imaging_engine_stop (engine_of (self));
  if (results)
    gst_imaging_results_pad_reset (results);
  gst_imaging_src_pads_reset (private_of (self)->results);
  return TRUE;
}

/* --- GObject ------------------------------------------------------------- */

static void
gst_imaging_filter_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (object);

  if (!gst_imaging_engine_set_property (engine_of (self), id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gst_imaging_filter_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (object);

  if (!gst_imaging_engine_get_property (engine_of (self), id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

/* Not in init (): the class of an object that is being initialised is the one
 * of the base, which does not know what `measures` will be. */
static void
gst_imaging_filter_constructed (GObject *object)
{
  gst_base_transform_set_in_place (GST_BASE_TRANSFORM (object),
      GST_IMAGING_FILTER_GET_CLASS (object)->measures);
  G_OBJECT_CLASS (gst_imaging_filter_parent_class)->constructed (object);
}

static void
gst_imaging_filter_dispose (GObject *object)
{
  drop_results (GST_IMAGING_FILTER (object));
  G_OBJECT_CLASS (gst_imaging_filter_parent_class)->dispose (object);
}

static void
gst_imaging_filter_finalize (GObject *object)
{
  Private *priv = private_of (GST_IMAGING_FILTER (object));

  gst_imaging_engine_free (priv->engine);
  gst_imaging_src_pads_free (priv->results);
  gst_imaging_results_cache_unref (priv->cache);
  G_OBJECT_CLASS (gst_imaging_filter_parent_class)->finalize (object);
}

static void
gst_imaging_filter_class_init (GstImagingFilterClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);

  object_class->set_property = gst_imaging_filter_set_property;
  object_class->get_property = gst_imaging_filter_get_property;
  object_class->constructed = gst_imaging_filter_constructed;
  object_class->dispose = gst_imaging_filter_dispose;
  object_class->finalize = gst_imaging_filter_finalize;
  gst_imaging_engine_install_properties (object_class);

  element_class->request_new_pad = gst_imaging_filter_request_new_pad;
  element_class->release_pad = gst_imaging_filter_release_pad;
  element_class->set_context = gst_imaging_filter_set_context;

  trans_class->start = gst_imaging_filter_start;
  trans_class->stop = gst_imaging_filter_stop;
  trans_class->query = gst_imaging_filter_query;
  trans_class->transform_caps = gst_imaging_filter_transform_caps;
  trans_class->fixate_caps = gst_imaging_filter_fixate_caps;
  trans_class->set_caps = gst_imaging_filter_set_caps;
  trans_class->propose_allocation = gst_imaging_filter_propose_allocation;
  trans_class->decide_allocation = gst_imaging_filter_decide_allocation;
  trans_class->sink_event = gst_imaging_filter_sink_event;
  trans_class->submit_input_buffer = gst_imaging_filter_submit_input_buffer;
  trans_class->transform = gst_imaging_filter_transform;
  trans_class->transform_ip = gst_imaging_filter_transform_ip;
  trans_class->transform_meta = gst_imaging_filter_transform_meta;
  trans_class->prepare_output_buffer = gst_imaging_filter_prepare_output_buffer;

  gst_type_mark_as_plugin_api (GST_TYPE_IMAGING_FILTER, 0);
  gst_imaging_results_register ();
  gst_imaging_init_debug ();
}

static void
gst_imaging_filter_init (GstImagingFilter *self)
{
  GstBaseTransform *trans = GST_BASE_TRANSFORM (self);
  Private *priv = private_of (self);

  static const gchar *const names[] = {"results"};

  priv->engine = gst_imaging_engine_new (GST_ELEMENT (self), &engine_funcs);
  priv->cache = gst_imaging_results_cache_new ();
  priv->results = gst_imaging_src_pads_new (
      GST_ELEMENT (self), GST_TYPE_IMAGING_RESULTS_PAD, names, 1);

  /* The base class stops upstream when src is not linked. */
  priv->base_chain = GST_PAD_CHAINFUNC (GST_BASE_TRANSFORM_SINK_PAD (trans));
  gst_pad_set_chain_function (
      GST_BASE_TRANSFORM_SINK_PAD (trans), gst_imaging_filter_chain);
}
