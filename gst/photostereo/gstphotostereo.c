/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-photostereo
 * @title: photostereo
 * @short_description: photometric stereo
 *
 * Takes pictures of one view under one known light each, and makes the normal
 * of every pixel, the albedo, and an ambient picture of them, after Pevar et
 * al., "Real-time Photometric Stereo". A set of pictures ends after set-size of
 * them, with the action signal finish-set, with EOS, and when the caps change;
 * what there is then is solved, and the next picture begins a new set.
 *
 * The request pads `normal`, `albedo`, `ambient`, `quality`, `confidence` and
 * `mask` have the result; with update-interval also on the way. With more than
 * one of them linked, each needs a queue.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 picturesrc location=pictures ! photostereo
 * lights-location=lights.lp ! pngenc ! filesink location=normals.png
 * ]|
 *
 * Since: 0.1
 */
#include "gstphotostereoprivate.h"

#include "gstimagingaction.h"
#include "gstimagingallocation.h"
#include "gstimagingmetadata.h"

GST_DEBUG_CATEGORY_STATIC (photostereo_debug);
#define GST_CAT_DEFAULT photostereo_debug

static const gchar *const output_names[N_OUTPUTS] = {
    "normal", "albedo", "ambient", "quality", "confidence", "mask"};

#define BAYER_CAPS \
  "video/x-bayer, format = (string) { bggr, rggb, gbrg, grbg }, " \
  "width = " GST_VIDEO_SIZE_RANGE ", height = " GST_VIDEO_SIZE_RANGE \
  ", framerate = " GST_VIDEO_FPS_RANGE
/* Of these GstCuda has memory, too. */
#define CUDA_CAPS \
  GST_VIDEO_CAPS_MAKE_WITH_FEATURES ( \
      "memory:CUDAMemory", "{ RGB, BGR, RGBx, BGRx, RGBA, BGRA, ARGB, ABGR }")
/* Of NV12 the luma is taken. */
#define NVMM_CAPS \
  GST_VIDEO_CAPS_MAKE_WITH_FEATURES ("memory:NVMM", "{ GRAY8, NV12, RGBA }")

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
            "{ GRAY8, GRAY16_LE, " GST_IMAGING_PICTURE_RGB_FORMATS
            " }") ";" BAYER_CAPS ";" CUDA_CAPS ";" NVMM_CAPS));

#define TENSOR_CAPS GST_IMAGING_PICTURE_TENSOR_CAPS
#define CUDA_RGB_CAPS \
  GST_VIDEO_CAPS_MAKE_WITH_FEATURES ("memory:CUDAMemory", "RGB")

#define GREY_CAPS GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE }") ";" TENSOR_CAPS

static GstStaticPadTemplate src_templates[N_OUTPUTS] = {
    GST_STATIC_PAD_TEMPLATE ("normal", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
            "{ RGB, RGBA64_LE }") ";" TENSOR_CAPS ";" CUDA_RGB_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("albedo", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
            "{ GRAY8, RGB, GRAY16_LE, RGBA64_LE }") ";" TENSOR_CAPS
                                                    ";" CUDA_RGB_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("ambient", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
            "{ GRAY8, RGB, GRAY16_LE, RGBA64_LE }") ";" TENSOR_CAPS
                                                    ";" CUDA_RGB_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("quality", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("RGBA64_LE") ";" TENSOR_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("confidence", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GREY_CAPS)),
    GST_STATIC_PAD_TEMPLATE (
        "mask", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS (GREY_CAPS)),
};

G_DEFINE_FINAL_TYPE_WITH_CODE (GstPhotoStereo, gst_photo_stereo,
    GST_TYPE_IMAGING_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        photostereo_debug, "photostereo", 0, "Photometric stereo"))
GST_ELEMENT_REGISTER_DEFINE (
    photostereo, "photostereo", GST_RANK_NONE, GST_TYPE_PHOTO_STEREO)

/* --- pictures ------------------------------------------------------------ */

/* Under the stream lock: ends the set when finish-set came. */
static GstFlowReturn
finish_if_asked (GstPhotoStereo *self)
{
  gboolean asked;

  GST_OBJECT_LOCK (self);
  asked = self->finish;
  self->finish = FALSE;
  GST_OBJECT_UNLOCK (self);
  if (!asked)
    return GST_FLOW_OK;
  self->n_skip = 0;
  return gst_photo_stereo_end_set (self);
}

/* Where no flow goes upstream; what fails otherwise has been told. */
static void
tell_flow (GstPhotoStereo *self, GstFlowReturn flow)
{
  if (flow == GST_FLOW_NOT_NEGOTIATED)
    GST_ELEMENT_FLOW_ERROR (self, flow);
}

/* Opens a kernel and applies the properties. @buffer: (nullable): a picture */
static ImkStatus
prepare (GstPhotoStereo *self, GstBuffer *buffer, ImkError *error)
{
  IMK_TRY (gst_imaging_engine_ensure_open (self->base.engine, error));
  return gst_photo_stereo_follow_settings (self, buffer, error);
}

static GstFlowReturn
gst_photo_stereo_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_OK;
  ImkStatus status = IMK_OK;
  ImkError error;

  if (!self->caps) {
    gst_buffer_unref (buffer);
    return GST_FLOW_NOT_NEGOTIATED;
  }
  flow = finish_if_asked (self); /* this picture is of the next set */
  if (flow == GST_FLOW_OK)
    flow = gst_photo_stereo_follow_gap (self, buffer);
  if (flow != GST_FLOW_OK || self->n_skip > 0) {
    self->n_skip -= self->n_skip > 0;
    gst_buffer_unref (buffer);
    return flow;
  }
  /* the backend follows the data from the first picture of a set on */
  if ((!self->kernel || imk_photostereo_n_added (self->kernel) == 0) &&
      !gst_imaging_engine_follow (self->base.engine, buffer)) {
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  status = prepare (self, buffer, &error);
  if (status == IMK_OK)
    status = gst_photo_stereo_add_picture (self, buffer, &error);
  if (status == IMK_OK) {
    self->number = self->next_number;
    /* without its memory: a camera needs that back */
    gst_clear_buffer (&self->last);
    self->last = gst_buffer_new ();
    gst_imaging_metadata_pass (self->last, buffer, TRUE);
    flow = gst_photo_stereo_is_sliding (self)
               ? gst_photo_stereo_window_check (self)
               : gst_photo_stereo_check_set (self);
    gst_imaging_engine_count_frame (self->base.engine, entered);
    self->warned_of_place = FALSE;
  } else if (!gst_photo_stereo_leave_out (self, status, &error)) {
    gst_imaging_engine_post_error (self->base.engine, status, &error);
    flow = GST_FLOW_ERROR;
  }
  gst_buffer_unref (buffer);
  return flow;
}

/* --- events and queries -------------------------------------------------- */

/* A mosaic travels through memory as grey frames do. */
static GstCaps *
grey_caps (GstPhotoStereo *self, GstCaps *caps)
{
  GstStructure *s = gst_caps_get_structure (caps, 0);
  const gchar *format = gst_structure_get_string (s, "format");
  GstCaps *grey;

  self->caps_pattern = IMK_PHOTOSTEREO_PATTERN_NONE;
  if (!gst_structure_has_name (s, "video/x-bayer"))
    return gst_caps_ref (caps);
  self->caps_pattern = gst_photo_stereo_pattern_of (format);
  grey = gst_caps_copy (caps);
  s = gst_caps_get_structure (grey, 0);
  gst_structure_set_name (s, "video/x-raw");
  gst_structure_set (s, "format", G_TYPE_STRING, "GRAY8", NULL);
  return grey;
}

static gboolean
set_caps (GstPhotoStereo *self, GstCaps *caps)
{
  g_autoptr (GstCaps) grey = NULL;
  gboolean ok;

  if (self->caps && gst_caps_is_equal (self->caps, caps))
    return TRUE;
  tell_flow (self, gst_photo_stereo_cut_set (self));
  self->n_skip = 0;
  gst_clear_caps (&self->caps); /* those that are refused come again */
  grey = grey_caps (self, caps);
  ok = gst_imaging_engine_set_caps (self->base.engine, grey, NULL);
  if (ok)
    gst_caps_replace (&self->caps, caps);
  return ok;
}

static gboolean
gst_photo_stereo_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (parent);
  gboolean ok = TRUE;
  ImkError error; /* the next picture reports it */
  GstCaps *caps;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, caps);
    break;
  case GST_EVENT_EOS:
    tell_flow (self, gst_photo_stereo_cut_set (self));
    self->n_skip = 0;
    gst_imaging_src_pads_event (self->base.outputs, event);
    break;
  case GST_EVENT_GAP: /* a sink may have to preroll with it */
    if (self->caps && prepare (self, NULL, &error) == IMK_OK)
      gst_photo_stereo_negotiate (self);
    gst_imaging_src_pads_event (self->base.outputs, event);
    break;
  case GST_EVENT_FLUSH_STOP:
    gst_photo_stereo_forget_set (self);
    self->n_skip = 0;
    gst_imaging_numbering_interrupt (&self->numbering);
    gst_imaging_src_pads_event (self->base.outputs, event);
    break;
  case GST_EVENT_STREAM_START:
  case GST_EVENT_SEGMENT:
    gst_imaging_numbering_interrupt (&self->numbering);
    gst_imaging_src_pads_event (self->base.outputs, event);
    break;
  default:
    gst_imaging_src_pads_event (self->base.outputs, event);
  }
  gst_event_unref (event);
  return ok;
}

/* The outputs have caps of their own, so they do not restrict what comes. */
static void
answer_caps (GstPhotoStereo *self, GstPad *pad, GstQuery *query)
{
  g_autoptr (GstCaps) template = gst_pad_get_pad_template_caps (pad);
  g_autoptr (GstCaps) caps =
      gst_imaging_engine_usable_caps (self->base.engine, template);
  GstCaps *filter;

  gst_query_parse_caps (query, &filter);
  if (filter)
    gst_caps_take (&caps,
        gst_caps_intersect_full (filter, caps, GST_CAPS_INTERSECT_FIRST));
  gst_query_set_caps_result (query, caps);
}

static gboolean
gst_photo_stereo_sink_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (parent);

  switch (GST_QUERY_TYPE (query)) {
  case GST_QUERY_CAPS:
    answer_caps (self, pad, query);
    return TRUE;
  case GST_QUERY_ALLOCATION:
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
    gst_imaging_allocation_propose (self->base.engine, query);
    return TRUE;
  default:
    return gst_imaging_element_query (pad, parent, query);
  }
}

/* --- the action ---------------------------------------------------------- */

/* No other picture may come, so the set is ended by a thread of its own; if one
 * does, by the thread that brings it. */
static void
finish_when_idle (GstElement *element, gpointer data)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);

  GST_PAD_STREAM_LOCK (self->sink);
  tell_flow (self, finish_if_asked (self));
  GST_PAD_STREAM_UNLOCK (self->sink);
}

static void
gst_photo_stereo_finish_set (GstPhotoStereo *self)
{
  gboolean asked;

  GST_OBJECT_LOCK (self);
  asked = self->finish;
  self->finish = TRUE;
  GST_OBJECT_UNLOCK (self);
  if (!asked)
    gst_element_call_async (GST_ELEMENT (self), finish_when_idle, NULL, NULL);
}

/* --- GstElement ---------------------------------------------------------- */

static void
reset (GstPhotoStereo *self)
{
  gst_imaging_src_pads_reset (self->base.outputs);
  gst_photo_stereo_window_clear (self);
  gst_clear_caps (&self->caps);
  self->n_skip = 0;
  gst_imaging_numbering_reset (&self->numbering);
  self->n_steps = self->n_gaps = self->n_lost = 0;
  self->n_missing = 0;
  self->is_changed = self->warned_of_place = self->warned_of_gap = FALSE;
  gst_clear_buffer (&self->last);
}

static gboolean
choose_devices (GstPhotoStereo *self)
{
  GstPhotoStereoSettings *wanted =
      gst_imaging_settings_copy (self->base.settings);
  gboolean ok;
  GArray *others;

  ok = gst_imaging_engine_choose_devices (
      self->base.engine, wanted->cuda_devices, &others);
  gst_imaging_settings_free_copy (self->base.settings, wanted);
  if (!ok)
    return FALSE;
  g_array_unref (self->others);
  self->others = others;
  return TRUE;
}

/* Under the stream lock, as sets are also finished by a thread of their own. */
static gboolean
gst_photo_stereo_start (GstElement *element)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);
  gboolean ok;

  GST_PAD_STREAM_LOCK (self->sink);
  reset (self);
  ok = choose_devices (self) && gst_imaging_engine_start (self->base.engine);
  GST_PAD_STREAM_UNLOCK (self->sink);
  return ok;
}

static void
gst_photo_stereo_stop (GstElement *element)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);

  GST_PAD_STREAM_LOCK (self->sink);
  reset (self);
  gst_imaging_engine_stop (self->base.engine);
  GST_PAD_STREAM_UNLOCK (self->sink);
}

/* --- GObject ------------------------------------------------------------- */

static void
gst_photo_stereo_finalize (GObject *object)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (object);

  gst_clear_buffer (&self->last);
  g_array_unref (self->held);
  g_array_unref (self->window);
  g_array_unref (self->others);
  G_OBJECT_CLASS (gst_photo_stereo_parent_class)->finalize (object);
}

static const GstImagingAction actions[] = {
    /**
     * GstPhotoStereo::finish-set:
     *
     * Ends the set: what there is is solved, and the next picture begins
     * another. Returns at once; the message photostereo-progress with final
     * tells when.
     */
    {"finish-set", G_CALLBACK (gst_photo_stereo_finish_set), G_TYPE_NONE,
        {{NULL}}, {NULL},
        "Ends the set and solves it with the pictures so far; the next "
        "picture starts another set"},
    {NULL},
};

static void
gst_photo_stereo_class_init (GstPhotoStereoClass *klass)
{
  static const gchar *no_tags[] = {NULL};
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->finalize = gst_photo_stereo_finalize;
  gst_imaging_settings_install (object_class, &gst_photo_stereo_table);
  gst_imaging_actions_install (object_class, actions);

  /* without tags, so that whatever is done to the pixels does not drop it; a
   * NULL list is refused before GStreamer 1.24 */
  if (!gst_meta_get_info (GST_PHOTO_STEREO_LIGHT_META))
    gst_meta_register_custom (
        GST_PHOTO_STEREO_LIGHT_META, no_tags, NULL, NULL, NULL);
  gst_element_class_set_static_metadata (element_class, "Photometric stereo",
      "Filter/Converter/Video",
      "Normals, albedo and ambient picture from pictures under known lights",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_element_class_add_static_pad_template (
        element_class, &src_templates[i]);
  GST_IMAGING_ELEMENT_CLASS (klass)->start = gst_photo_stereo_start;
  GST_IMAGING_ELEMENT_CLASS (klass)->stop = gst_photo_stereo_stop;
}

static void
gst_photo_stereo_init (GstPhotoStereo *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = gst_photo_stereo_open,
      .close = gst_photo_stereo_close,
      .prefers_cuda = gst_photo_stereo_prefers_cuda,
  };

  gst_imaging_element_set_up (&self->base, &funcs, &gst_photo_stereo_table);
  gst_imaging_element_add_outputs (&self->base, output_names, N_OUTPUTS, NULL);
  self->held = g_array_new (FALSE, FALSE, sizeof (Held));
  self->window = gst_photo_stereo_window_new ();
  self->others = g_array_new (FALSE, FALSE, sizeof (gint));
  self->sink = gst_imaging_element_add_pad (&self->base, &sink_template);
  gst_pad_set_chain_function (self->sink, gst_photo_stereo_chain);
  gst_pad_set_event_function (self->sink, gst_photo_stereo_sink_event);
  gst_pad_set_query_function (self->sink, gst_photo_stereo_sink_query);
}
