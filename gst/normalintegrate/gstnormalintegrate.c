/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-normalintegrate
 * @title: normalintegrate
 * @short_description: heights from normals
 *
 * Makes a height map of each map of normals, as photostereo writes them: by
 * least squares (a Poisson equation, with free borders and holes left out), the
 * same with cuts where the height jumps, or after Frankot and Chellappa.
 *
 * The request pads `height` (16 bits grey, for a PNG), `tensor` (float32, mm)
 * and `mesh` (triangles, as binary PLY or as OBJ, for a filesink) have the
 * result. With more than one of them linked, each needs a queue.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 filesrc location=normals.png ! pngdec ! normalintegrate
 * mm-per-pixel=0.25 ! pngenc ! filesink location=height.png
 * ]|
 *
 * Since: 0.2
 */
#include "gstnormalintegrate-private.h"

#include <math.h>

#include "gstimagingallocation.h"
#include "gstimagingquantity.h"

GST_DEBUG_CATEGORY_STATIC (normalintegrate_debug);
#define GST_CAT_DEFAULT normalintegrate_debug

static const gchar *const output_names[N_OUTPUTS] = {
    "height", "tensor", "mesh"};

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_IMAGING_PICTURE_TENSOR_CAPS
        ";" GST_VIDEO_CAPS_MAKE ("{ " GST_IMAGING_PICTURE_RGB_FORMATS " }")));

static GstStaticPadTemplate src_templates[N_OUTPUTS] = {
    GST_STATIC_PAD_TEMPLATE ("height", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("{ GRAY16_LE, GRAY16_BE }"))),
    GST_STATIC_PAD_TEMPLATE ("tensor", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_IMAGING_PICTURE_TENSOR_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("mesh", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_NORMAL_INTEGRATE_MESH_CAPS)),
};

G_DEFINE_FINAL_TYPE_WITH_CODE (GstNormalIntegrate, gst_normal_integrate,
    GST_TYPE_IMAGING_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        normalintegrate_debug, "normalintegrate", 0, "Heights from normals"))
GST_ELEMENT_REGISTER_DEFINE (normalintegrate, "normalintegrate", GST_RANK_NONE,
    GST_TYPE_NORMAL_INTEGRATE)

/* --- the kernel ---------------------------------------------------------- */

static ImkNormalintegrateConfig
get_config (GstNormalIntegrate *self)
{
  const GstNormalIntegrateSettings *now =
      gst_imaging_settings_now (self->base.settings);
  const GstVideoInfo *info = &self->picture.carrier;
  ImkNormalintegrateConfig c = now->config;

  c.pixel_aspect = (gdouble) GST_VIDEO_INFO_PAR_N (info) /
                   (gdouble) GST_VIDEO_INFO_PAR_D (info);
  c.width = self->picture.width;
  c.height = self->picture.height;
  c.type = self->picture.type;
  c.channels = self->picture.channels;
  for (guint i = 0; i < 3; i++)
    c.colours[i] = self->picture.colours[i];
  c.n_threads = gst_imaging_engine_n_threads (self->base.engine);
  gst_normal_integrate_complete (now, &c);
  return c;
}

static void
gst_normal_integrate_close (GstElement *element)
{
  g_clear_pointer (
      &GST_NORMAL_INTEGRATE (element)->kernel, imk_normalintegrate_free);
}

static ImkStatus
gst_normal_integrate_open (GstElement *element, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (element);
  ImkNormalintegrateConfig config = get_config (self);

  IMK_TRY (gst_normal_integrate_check_settings (
      gst_imaging_settings_now (self->base.settings), error));
  return imk_normalintegrate_new (backend, &config, &self->kernel, error);
}

ImkStatus
gst_normal_integrate_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (element);
  const GstNormalIntegrateSettings *now =
      gst_imaging_settings_now (self->base.settings);
  ImkNormalintegrateConfig config = get_config (self);
  ImkMeshFormat format;

  IMK_TRY (gst_normal_integrate_check_settings (now, error));
  if (now->mesh_location)
    IMK_TRY (gst_normal_integrate_mesh_format (
        now->mesh_location->location, &format, error));
  if (self->kernel)
    IMK_TRY (imk_normalintegrate_update (self->kernel, &config, error));
  return IMK_OK;
}

/* Some ten transforms of a quarter of a megapixel take the CPU longer than the
 * copies there and back. */
static gboolean
gst_normal_integrate_prefers_cuda (
    GstElement *element, const GstVideoInfo *info)
{
  const GstImagingPicture *p = &GST_NORMAL_INTEGRATE (element)->picture;

  return (gsize) p->width * p->height >= 1 << 18;
}

/* --- one map -------------------------------------------------------------- */

static void
work_begin (GstNormalIntegrate *self, GstNormalIntegrateWork *w)
{
  const GstNormalIntegrateSettings *now =
      gst_imaging_settings_now (self->base.settings);

  *w = (GstNormalIntegrateWork){.element = self,
      .config = get_config (self),
      .has_scale = now->mm_per_pixel > 0,
      .mesh_file = now->mesh_location,
      .mesh_step = now->mesh_step};
  /* the bytes of float32 */
  gst_video_info_set_format (&w->heights_info, GST_VIDEO_FORMAT_GRAY8,
      w->config.width * sizeof (gfloat), w->config.height);
  for (guint i = 0; i < N_OUTPUTS; i++)
    w->outputs[i] = gst_imaging_src_pads_get (self->base.outputs, i);
}

/* Normals that come with the size of a pixel bring it, where the property does
 * not say it. */
static void
follow_axes (GstNormalIntegrateWork *w, GstBuffer *normals)
{
  static const struct {
    const gchar *unit;
    gdouble mm;
  } units[] = {{"mm", 1}, {"um", 1e-3}, {"m", 1e3}};
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (normals, GST_IMAGING_QUANTITY_META);
  GstStructure *told = meta ? gst_custom_meta_get_structure (meta) : NULL;
  gdouble step = 0;

  if (!told || w->has_scale ||
      !gst_structure_get_double (told, "axis-0-step", &step))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (units); i++) {
    gdouble mm = fabs (step) * units[i].mm;

    if (g_strcmp0 (gst_structure_get_string (told, "axis-0-unit"),
            units[i].unit) == 0 &&
        mm >= 1e-9 && mm <= 1e6) {
      w->config.mm_per_pixel = mm;
      w->has_scale = TRUE;
    }
  }
}

static void
work_clear (GstNormalIntegrateWork *w)
{
  gst_clear_buffer (&w->grey);
  gst_clear_buffer (&w->heights);
  gst_clear_buffer (&w->albedo);
  gst_clear_buffer (&w->mesh);
  for (guint i = 0; i < N_OUTPUTS; i++)
    g_clear_object (&w->outputs[i]);
}

/* A gap needs caps before it, also before the first map. */
static void
negotiate_all (GstNormalIntegrate *self)
{
  GstNormalIntegrateWork w;

  work_begin (self, &w);
  gst_normal_integrate_negotiate (self, &w);
  work_clear (&w);
}

/* Maps @buffer, where there is one, as an image of one channel. */
static ImkStatus
map_output (GstNormalIntegrate *self, GstBuffer *buffer,
    const GstVideoInfo *info, ImkType type, GstImagingReach reach,
    GstImagingFrame *frame, ImkImage *image, ImkError *error)
{
  if (!buffer)
    return IMK_OK;
  IMK_TRY (gst_imaging_engine_map (
      self->base.engine, buffer, info, GST_MAP_WRITE, reach, frame, error));
  *image = frame->planes[0];
  image->type = type;
  image->width = self->picture.width;
  image->channels = 1;
  return IMK_OK;
}

static ImkStatus
process_mapped (GstNormalIntegrate *self, const ImkImage *in,
    GstNormalIntegrateWork *w, GstImagingReach reach, ImkError *error)
{
  ImkNormalintegrateOutputs out = {0};
  GstImagingFrame grey, heights;
  ImkStatus status;

  IMK_TRY (map_output (self, w->grey, &w->grey_info, IMK_TYPE_U16, reach, &grey,
      &out.grey, error));
  status = map_output (self, w->heights, &w->heights_info, IMK_TYPE_F32, reach,
      &heights, &out.height, error);
  if (status == IMK_OK) {
    status = imk_normalintegrate_update (self->kernel, &w->config, error);
    if (status == IMK_OK)
      status = imk_normalintegrate_process (self->kernel, in, &out, &w->summary,
          gst_imaging_engine_stream (self->base.engine), error);
    if (w->heights)
      status =
          gst_imaging_frame_end (&heights, status == IMK_OK, status, error);
  }
  if (w->grey)
    status = gst_imaging_frame_end (&grey, status == IMK_OK, status, error);
  return status;
}

/* Acquires new outputs also after a failure. */
static ImkStatus
process (gpointer data, GstBuffer *in, GstImagingReach reach, gboolean again,
    ImkError *error)
{
  GstNormalIntegrateWork *w = data;
  GstNormalIntegrate *self = w->element;
  const GstVideoInfo *info = gst_imaging_engine_info (self->base.engine);
  GstImagingFrame frame;
  ImkImage image;
  ImkStatus status;

  IMK_TRY (gst_normal_integrate_acquire (self, w, error));
  IMK_TRY (gst_imaging_engine_map (
      self->base.engine, in, info, GST_MAP_READ, reach, &frame, error));
  gst_imaging_engine_note_memory (self->base.engine, frame.memory_name);
  image = gst_imaging_picture_image (&self->picture, &frame.planes[0]);
  status = process_mapped (self, &image, w, reach, error);
  return gst_imaging_frame_end (&frame, status == IMK_OK, status, error);
}

static GstFlowReturn
gst_normal_integrate_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = self->caps ? GST_FLOW_ERROR : GST_FLOW_NOT_NEGOTIATED;
  GstNormalIntegrateWork w;

  if (self->caps && gst_imaging_engine_follow (self->base.engine, buffer) &&
      gst_imaging_settings_take (self->base.settings, GST_IMAGING_WHEN_LIVE,
          gst_imaging_settings_stream_time (self->sink, buffer))) {
    work_begin (self, &w);
    follow_axes (&w, buffer);
    gst_normal_integrate_negotiate (self, &w);
    flow = gst_normal_integrate_albedo_take (
               self->albedo, pad, buffer, &w.albedo, &w.albedo_picture)
               ? gst_imaging_engine_process (self->base.engine, buffer,
                     GST_IMAGING_REACH_DEVICE, process, &w)
               : GST_FLOW_FLUSHING;
    if (flow == GST_FLOW_OK)
      flow = gst_normal_integrate_publish (self, buffer, &w);
    work_clear (&w);
    if (flow == GST_FLOW_CUSTOM_SUCCESS)
      flow = GST_FLOW_OK;
    else
      gst_imaging_engine_count_frame (self->base.engine, entered);
  }
  gst_buffer_unref (buffer);
  return flow;
}

/* --- events and queries -------------------------------------------------- */

static gboolean
set_caps (GstNormalIntegrate *self, GstCaps *caps)
{
  g_autoptr (GstCaps) carrier = NULL;
  ImkError error;
  gboolean ok;

  gst_clear_caps (&self->caps);
  if (gst_imaging_picture_from_caps (&self->picture, caps, &error) != IMK_OK) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("%s", error.message), (NULL));
    return FALSE;
  }
  carrier = self->picture.type == IMK_TYPE_F32
                ? gst_video_info_to_caps (&self->picture.carrier)
                : gst_caps_ref (caps);
  ok = gst_imaging_engine_set_caps (self->base.engine, carrier, NULL);
  if (ok)
    gst_caps_replace (&self->caps, caps);
  return ok;
}

static gboolean
gst_normal_integrate_sink_event (
    GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (parent);
  gboolean ok = TRUE;
  GstCaps *caps;

  gst_normal_integrate_albedo_follow (self->albedo, event);
  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS) {
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, caps);
  } else {
    if (GST_EVENT_TYPE (event) == GST_EVENT_GAP && self->caps)
      negotiate_all (self);
    gst_imaging_src_pads_event (self->base.outputs, event);
    if (GST_EVENT_TYPE (event) == GST_EVENT_EOS)
      gst_imaging_element_post_eos (&self->base, event);
  }
  gst_event_unref (event);
  return ok;
}

static gboolean
gst_normal_integrate_sink_query (
    GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (parent);

  if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION) {
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
    gst_imaging_allocation_propose (self->base.engine, query);
    return TRUE;
  }
  return gst_imaging_element_query (pad, parent, query);
}

/* --- pads ---------------------------------------------------------------- */

static GstPad *
gst_normal_integrate_request_new_pad (GstElement *element,
    GstPadTemplate *template, const gchar *name, const GstCaps *caps)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (element);

  return GST_PAD_TEMPLATE_DIRECTION (template) == GST_PAD_SINK
             ? gst_normal_integrate_albedo_request (self->albedo, template)
             : gst_imaging_src_pads_request (self->base.outputs, template);
}

static void
gst_normal_integrate_release_pad (GstElement *element, GstPad *pad)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (element);

  if (!gst_normal_integrate_albedo_release (self->albedo, pad))
    gst_imaging_src_pads_release (self->base.outputs, pad);
}

/* --- GstElement ---------------------------------------------------------- */

static gboolean
has_outputs (GstNormalIntegrate *self)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  return GST_ELEMENT (self)->numsrcpads > 0;
}

static void
reset (GstNormalIntegrate *self)
{
  gst_imaging_src_pads_reset (self->base.outputs);
  gst_clear_caps (&self->caps);
  self->n_maps = 0;
  self->has_warned_beside = FALSE;
}

static gboolean
gst_normal_integrate_start (GstElement *element)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (element);

  reset (self);
  if (!gst_imaging_engine_start (self->base.engine))
    return FALSE;
  gst_normal_integrate_albedo_start (self->albedo);
  gst_imaging_element_set_sink (&self->base, !has_outputs (self));
  return TRUE;
}

static void
gst_normal_integrate_stop (GstElement *element)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (element);

  reset (self);
  gst_imaging_engine_stop (self->base.engine);
}

/* What waits for an albedo lets its pad be stopped. */
static GstStateChangeReturn
gst_normal_integrate_change_state (
    GstElement *element, GstStateChange transition)
{
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    gst_normal_integrate_albedo_stop (GST_NORMAL_INTEGRATE (element)->albedo);
  return GST_ELEMENT_CLASS (gst_normal_integrate_parent_class)
      ->change_state (element, transition);
}

/* --- GObject ------------------------------------------------------------- */

static void
gst_normal_integrate_finalize (GObject *object)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (object);

  gst_normal_integrate_albedo_free (self->albedo);
  G_OBJECT_CLASS (gst_normal_integrate_parent_class)->finalize (object);
}

static void
gst_normal_integrate_class_init (GstNormalIntegrateClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->finalize = gst_normal_integrate_finalize;
  gst_imaging_settings_install (object_class, &gst_normal_integrate_table);

  gst_normal_integrate_register_meta ();
  gst_element_class_set_static_metadata (element_class, "Heights from normals",
      "Filter/Converter/Video",
      "Height map and mesh of a surface from a map of its normals",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_normal_integrate_albedo_add_template (element_class);
  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_element_class_add_static_pad_template (
        element_class, &src_templates[i]);
  GST_IMAGING_ELEMENT_CLASS (klass)->start = gst_normal_integrate_start;
  GST_IMAGING_ELEMENT_CLASS (klass)->stop = gst_normal_integrate_stop;
  element_class->change_state = gst_normal_integrate_change_state;
  element_class->request_new_pad = gst_normal_integrate_request_new_pad;
  element_class->release_pad = gst_normal_integrate_release_pad;
}

static void
gst_normal_integrate_init (GstNormalIntegrate *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = gst_normal_integrate_open,
      .close = gst_normal_integrate_close,
      .prefers_cuda = gst_normal_integrate_prefers_cuda,
  };

  gst_imaging_element_set_up (&self->base, &funcs, &gst_normal_integrate_table);
  gst_imaging_element_add_outputs (&self->base, output_names, N_OUTPUTS, NULL);
  self->albedo =
      gst_normal_integrate_albedo_new (GST_ELEMENT (self), self->base.engine);
  self->sink = gst_imaging_element_add_pad (&self->base, &sink_template);
  gst_pad_set_chain_function (self->sink, gst_normal_integrate_chain);
  gst_pad_set_event_function (self->sink, gst_normal_integrate_sink_event);
  gst_pad_set_query_function (self->sink, gst_normal_integrate_sink_query);
}
