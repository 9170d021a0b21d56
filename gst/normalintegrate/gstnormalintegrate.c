/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-normalintegrate
 * @title: normalintegrate
 * @short_description: heights from normals
 *
 * Makes a height map of each map of normals, as photostereo writes them: by
 * least squares (a Poisson equation, with free borders and holes left out), or
 * after Frankot and Chellappa.
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
#include "gstnormalintegrate.h"

#include "gstimagingallocation.h"
#include "gstimagingmetadata.h"
#include "gstimagingsrcpads.h"
#include "gstimagingpicture.h"
#include "gstimagingquantity.h"
#include "gstnormalintegrateconfig.h"

#include "imk/normalintegrate-mesh.h"

GST_DEBUG_CATEGORY_STATIC (normalintegrate_debug);
#define GST_CAT_DEFAULT normalintegrate_debug

/* The meta that says what the grey values of a height map are. */
#define HEIGHT_META "GstImagingHeight"

/* In the order in which a link without a name takes them. */
enum { HEIGHT, TENSOR, MESH, N_OUTPUTS };

static const gchar *const output_names[N_OUTPUTS] = {
    "height", "tensor", "mesh"};

struct _GstNormalIntegrate {
  GstElement parent;

  GstPad *sink;
  GstImagingEngine *engine;
  GstImagingSrcPads *outputs;
  GstImagingSettings *settings;

  /* under the stream lock of the sink pad */
  GstCaps *caps;
  GstImagingPicture picture; /* what comes in */
  ImkNormalintegrate *kernel;
};

#define RGB_FORMATS \
  "RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, ARGB, ABGR, RGBA64_LE, " \
  "ARGB64_LE"

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_IMAGING_PICTURE_TENSOR_CAPS
            ";" GST_VIDEO_CAPS_MAKE ("{ " RGB_FORMATS " }")));

static GstStaticPadTemplate src_templates[N_OUTPUTS] = {
    GST_STATIC_PAD_TEMPLATE ("height", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("{ GRAY16_LE, GRAY16_BE }"))),
    GST_STATIC_PAD_TEMPLATE ("tensor", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_IMAGING_PICTURE_TENSOR_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("mesh", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS ("model/x-ply; model/obj")),
};

G_DEFINE_FINAL_TYPE_WITH_CODE (GstNormalIntegrate, gst_normal_integrate,
    GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        normalintegrate_debug, "normalintegrate", 0, "Heights from normals"))
GST_ELEMENT_REGISTER_DEFINE (normalintegrate, "normalintegrate", GST_RANK_NONE,
    GST_TYPE_NORMAL_INTEGRATE)

/* --- the kernel ---------------------------------------------------------- */

/* The settings in use apply to the next maps. */
static ImkNormalintegrateConfig
get_config (GstNormalIntegrate *self)
{
  const GstNormalIntegrateSettings *now =
      gst_imaging_settings_now (self->settings);
  const GstVideoInfo *info = &self->picture.carrier;
  ImkNormalintegrateConfig c = now->config;

  c.y_down = now->y_down;
  c.pixel_aspect = (gdouble) GST_VIDEO_INFO_PAR_N (info) /
                   (gdouble) GST_VIDEO_INFO_PAR_D (info);
  c.width = self->picture.width;
  c.height = self->picture.height;
  c.type = self->picture.type;
  c.channels = self->picture.channels;
  for (guint i = 0; i < 3; i++)
    c.colours[i] = self->picture.colours[i];
  c.n_threads = gst_imaging_engine_n_threads (self->engine);
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

  return imk_normalintegrate_new (backend, &config, &self->kernel, error);
}

ImkStatus
gst_normal_integrate_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (element);
  ImkNormalintegrateConfig config = get_config (self);

  return self->kernel
             ? imk_normalintegrate_update (self->kernel, &config, error)
             : IMK_OK;
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

/* What a map of normals becomes. */
typedef struct {
  GstImagingSrcPad *outputs[N_OUTPUTS];
  GstFlowReturn flows[N_OUTPUTS];
  GstBuffer *grey, *heights; /* NULL where nobody wants them */
  GstVideoInfo grey_info, heights_info;
  ImkNormalintegrateConfig config;
  ImkNormalintegrateSummary summary;
} Work;

static void
work_begin (GstNormalIntegrate *self, Work *w)
{
  *w = (Work){.config = get_config (self)};
  /* the bytes of float32 */
  gst_video_info_set_format (&w->heights_info, GST_VIDEO_FORMAT_GRAY8,
      w->config.width * sizeof (gfloat), w->config.height);
  for (guint i = 0; i < N_OUTPUTS; i++)
    w->outputs[i] = gst_imaging_src_pads_get (self->outputs, i);
}

static void
work_clear (Work *w)
{
  gst_clear_buffer (&w->grey);
  gst_clear_buffer (&w->heights);
  for (guint i = 0; i < N_OUTPUTS; i++)
    g_clear_object (&w->outputs[i]);
}

static GstCaps *
grey_caps (GstNormalIntegrate *self, const gchar *format)
{
  const GstVideoInfo *info = &self->picture.carrier;
  GstCaps *caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
      format, "width", G_TYPE_INT, (gint) self->picture.width, "height",
      G_TYPE_INT, (gint) self->picture.height, "framerate", GST_TYPE_FRACTION,
      self->picture.fps_n, self->picture.fps_d, NULL);

  if (GST_VIDEO_INFO_PAR_N (info) != GST_VIDEO_INFO_PAR_D (info))
    gst_caps_set_simple (caps, "pixel-aspect-ratio", GST_TYPE_FRACTION,
        GST_VIDEO_INFO_PAR_N (info), GST_VIDEO_INFO_PAR_D (info), NULL);
  return caps;
}

/* Returns: (transfer full): what an output can give */
static GstCaps *
offers_of (GstNormalIntegrate *self, guint i)
{
  switch (i) {
  case HEIGHT:
    return gst_caps_merge (
        grey_caps (self, "GRAY16_LE"), grey_caps (self, "GRAY16_BE"));
  case TENSOR:
    return gst_imaging_picture_tensor_caps (&self->picture, 1);
  default:
    return gst_caps_from_string ("model/x-ply; model/obj");
  }
}

static void
negotiate (GstNormalIntegrate *self, Work *w)
{
  for (guint i = 0; i < N_OUTPUTS; i++)
    w->flows[i] = w->outputs[i]
                      ? gst_imaging_src_pad_negotiate (w->outputs[i],
                            GST_IMAGING_PREFER_OURS, offers_of (self, i))
                      : GST_FLOW_NOT_LINKED;
  if (w->flows[HEIGHT] == GST_FLOW_OK) {
    gst_video_info_from_caps (
        &w->grey_info, gst_imaging_src_pad_caps (w->outputs[HEIGHT]));
    w->config.grey_swapped =
        GST_VIDEO_INFO_FORMAT (&w->grey_info) != GST_VIDEO_FORMAT_GRAY16_LE;
  }
}

/* Before the first map, as a gap goes behind the caps. */
static void
negotiate_all (GstNormalIntegrate *self)
{
  Work w;

  work_begin (self, &w);
  negotiate (self, &w);
  work_clear (&w);
}

/* Buffers where the kernel is now. */
static ImkStatus
acquire (GstNormalIntegrate *self, Work *w, ImkError *error)
{
  gboolean wants_tensor = w->flows[TENSOR] == GST_FLOW_OK;
  ImkStatus status = IMK_OK;

  gst_clear_buffer (&w->grey);
  gst_clear_buffer (&w->heights);
  if (w->flows[HEIGHT] == GST_FLOW_OK)
    status = gst_imaging_src_pad_acquire (
        w->outputs[HEIGHT], self->engine, &w->grey_info, &w->grey, error);
  if (status == IMK_OK && (wants_tensor || w->flows[MESH] == GST_FLOW_OK))
    status =
        gst_imaging_src_pad_acquire (w->outputs[wants_tensor ? TENSOR : MESH],
            self->engine, &w->heights_info, &w->heights, error);
  return status;
}

/* Maps @buffer, where there is one, as an image of one channel. */
static ImkStatus
map_output (GstNormalIntegrate *self, GstBuffer *buffer,
    const GstVideoInfo *info, ImkType type, GstImagingReach reach,
    GstImagingFrame *frame, ImkImage *image, ImkError *error)
{
  ImkStatus status;

  if (!buffer)
    return IMK_OK;
  status = gst_imaging_engine_map (
      self->engine, buffer, info, GST_MAP_WRITE, reach, frame, error);
  if (status != IMK_OK)
    return status;
  *image = frame->planes[0];
  image->type = type;
  image->width = self->picture.width;
  image->channels = 1;
  return IMK_OK;
}

/* Keeps the first failure. */
static ImkStatus
unmap (GstImagingFrame *frame, ImkStatus status, ImkError *error)
{
  ImkError late;
  ImkStatus end = gst_imaging_frame_unmap (frame, status == IMK_OK, &late);

  if (status == IMK_OK && end != IMK_OK)
    status = imk_error_set (error, end, "%s", late.message);
  return status;
}

static ImkStatus
process_mapped (GstNormalIntegrate *self, const ImkImage *in, Work *w,
    GstImagingReach reach, ImkError *error)
{
  ImkNormalintegrateOutputs out = {0};
  GstImagingFrame grey, heights;
  ImkStatus status = map_output (self, w->grey, &w->grey_info, IMK_TYPE_U16,
      reach, &grey, &out.grey, error);

  if (status != IMK_OK)
    return status;
  status = map_output (self, w->heights, &w->heights_info, IMK_TYPE_F32, reach,
      &heights, &out.height, error);
  if (status == IMK_OK) {
    status = imk_normalintegrate_update (self->kernel, &w->config, error);
    if (status == IMK_OK)
      status = imk_normalintegrate_process (self->kernel, in, &out, &w->summary,
          gst_imaging_engine_stream (self->engine), error);
    if (w->heights)
      status = unmap (&heights, status, error);
  }
  if (w->grey)
    status = unmap (&grey, status, error);
  return status;
}

static ImkStatus
process_reachable (GstNormalIntegrate *self, GstBuffer *in, Work *w,
    GstImagingReach reach, ImkError *error)
{
  const GstVideoInfo *info = gst_imaging_engine_info (self->engine);
  GstImagingFrame frame;
  ImkImage image;
  ImkStatus status = acquire (self, w, error);

  if (status == IMK_OK)
    status = gst_imaging_engine_map (
        self->engine, in, info, GST_MAP_READ, reach, &frame, error);
  if (status != IMK_OK)
    return status;
  gst_imaging_engine_note_memory (self->engine, frame.memory_name);
  image = gst_imaging_picture_image (&self->picture, &frame.planes[0]);
  status = process_mapped (self, &image, w, reach, error);
  return unmap (&frame, status, error);
}

static ImkStatus
process (GstNormalIntegrate *self, GstBuffer *buffer, Work *w, ImkError *error)
{
  GstImagingContext *context;
  GstBuffer *in;
  ImkStatus status = gst_imaging_engine_ensure_open (self->engine, error);

  if (status != IMK_OK)
    return status;
  if (!gst_imaging_engine_is_on_cuda (self->engine))
    return process_reachable (self, buffer, w, GST_IMAGING_REACH_HOST, error);
  context = gst_imaging_engine_context (self->engine);
  status = gst_imaging_context_push (context, error);
  if (status != IMK_OK)
    return status;
  in = gst_imaging_engine_reachable (
      self->engine, buffer, GST_IMAGING_REACH_DEVICE, error);
  status = in ? process_reachable (self, in, w, GST_IMAGING_REACH_DEVICE, error)
              : error->code;
  if (in && in != buffer)
    gst_buffer_unref (in);
  gst_imaging_context_pop (context);
  return status;
}

/* --- what comes out ------------------------------------------------------- */

/* Returns: (nullable): the mesh of w->heights */
static GstBuffer *
make_mesh (Work *w, ImkError *error)
{
  GstStructure *s =
      gst_caps_get_structure (gst_imaging_src_pad_caps (w->outputs[MESH]), 0);
  ImkMeshFormat format =
      gst_structure_has_name (s, "model/obj") ? IMK_MESH_OBJ : IMK_MESH_PLY;
  gsize room = 0, size = 0;
  gpointer bytes = NULL;
  GstImagingFrame frame;
  ImkImage heights;
  ImkStatus status = gst_imaging_frame_map (w->heights, &w->heights_info,
      GST_MAP_READ, GST_IMAGING_REACH_HOST, NULL, NULL, NULL, &frame, error);

  if (status != IMK_OK)
    return NULL;
  heights = frame.planes[0];
  heights.type = IMK_TYPE_F32;
  heights.width = w->config.width;
  status = imk_normalintegrate_mesh_size (&heights, format, &room, error);
  if (status == IMK_OK && !(bytes = g_try_malloc (room)))
    status = imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for a mesh of %" G_GSIZE_FORMAT " bytes.", room);
  if (status == IMK_OK)
    status = imk_normalintegrate_mesh_write (&heights, w->config.mm_per_pixel,
        w->config.pixel_aspect, format, bytes, &size, error);
  status = unmap (&frame, status, error);
  if (status == IMK_OK)
    return gst_buffer_new_wrapped_full (0, bytes, room, 0, size, bytes, g_free);
  g_free (bytes);
  return NULL;
}

/* GstImagingHeight is there for one release more. */
static void
add_meta (Work *w)
{
  const gchar *unit = w->config.mm_per_pixel == 1 ? "pixel" : "mm";
  const GstImagingAxis axes[] = {{"x", unit, w->config.mm_per_pixel, 0},
      {"y", unit, w->config.mm_per_pixel / w->config.pixel_aspect, 0}};
  GstCustomMeta *meta = gst_buffer_add_custom_meta (w->grey, HEIGHT_META);

  gst_imaging_quantity_attach (w->grey, "height", unit, w->summary.grey_step,
      -w->summary.grey_step, axes, G_N_ELEMENTS (axes));
  /* a value v > 0 is scale * v + offset mm */
  gst_structure_set (gst_custom_meta_get_structure (meta), "scale",
      G_TYPE_DOUBLE, w->summary.grey_step, "offset", G_TYPE_DOUBLE,
      -w->summary.grey_step, "highest", G_TYPE_DOUBLE, w->summary.highest,
      "mm-per-pixel", G_TYPE_DOUBLE, w->config.mm_per_pixel, NULL);
}

static void
post_summary (GstNormalIntegrate *self, const Work *w)
{
  const ImkNormalintegrateSummary *s = &w->summary;

  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("normalintegrate-height", "pixels", G_TYPE_UINT64,
              s->n_pixels, "valid", G_TYPE_UINT64, s->n_valid, "highest",
              G_TYPE_DOUBLE, s->highest, "scale", G_TYPE_DOUBLE, s->grey_step,
              "offset", G_TYPE_DOUBLE, -s->grey_step, "iterations", G_TYPE_UINT,
              s->n_iterations, "residual", G_TYPE_DOUBLE, s->residual, NULL)));
}

/* Of all that is linked; the mesh last, as it may wait for a disk. */
static GstFlowReturn
push (GstNormalIntegrate *self, GstBuffer *in, Work *w, GstBuffer *mesh)
{
  GstBuffer *buffers[N_OUTPUTS] = {NULL};
  GstFlowReturn flow = GST_FLOW_OK;

  if (w->flows[HEIGHT] == GST_FLOW_OK)
    buffers[HEIGHT] = g_steal_pointer (&w->grey);
  if (w->flows[TENSOR] == GST_FLOW_OK)
    buffers[TENSOR] = g_steal_pointer (&w->heights);
  buffers[MESH] = mesh;
  for (guint i = 0; i < N_OUTPUTS; i++) {
    if (buffers[i]) {
      gst_imaging_metadata_pass (buffers[i], in, i != MESH);
      w->flows[i] = gst_imaging_src_pad_push (w->outputs[i], buffers[i]);
    }
    if (w->outputs[i])
      flow = gst_imaging_src_pads_combine (
          self->outputs, i, w->outputs[i], w->flows[i], flow);
  }
  return flow;
}

static GstFlowReturn
publish (GstNormalIntegrate *self, GstBuffer *in, Work *w)
{
  GstBuffer *mesh = NULL;
  ImkError error;

  if (w->flows[MESH] == GST_FLOW_OK && !(mesh = make_mesh (w, &error))) {
    gst_imaging_engine_post_error (self->engine, error.code, &error);
    return GST_FLOW_ERROR;
  }
  if (w->grey)
    add_meta (w);
  post_summary (self, w);
  if (w->summary.n_valid == 0)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("A map of %u x %u pixels has no normal with z above 0; nothing has a "
         "height.",
            w->config.width, w->config.height),
        (NULL));
  return push (self, in, w, mesh);
}

/* Returns: GST_FLOW_CUSTOM_SUCCESS for a map that is lost */
static GstFlowReturn
run (GstNormalIntegrate *self, GstBuffer *in, Work *w)
{
  ImkError why, error;
  ImkStatus status = process (self, in, w, &error);

  if (gst_imaging_engine_can_fall_back (self->engine, status)) {
    why = error;
    status = gst_imaging_engine_fall_back (self->engine, &error);
    if (status == IMK_OK)
      status = process (self, in, w, &error);
    gst_imaging_engine_post_fall_back (self->engine, &why,
        gst_imaging_engine_is_lost (self->engine, in, status));
  }
  if (status == IMK_OK)
    return publish (self, in, w);
  if (gst_imaging_engine_is_lost (self->engine, in, status)) {
    GST_WARNING_OBJECT (self, "a map is lost: %s", error.message);
    gst_imaging_engine_count_lost (self->engine);
    return GST_FLOW_CUSTOM_SUCCESS;
  }
  gst_imaging_engine_post_error (self->engine, status, &error);
  return GST_FLOW_ERROR;
}

/* Applies what was set since the last map. */
static GstFlowReturn
follow_settings (GstNormalIntegrate *self, GstBuffer *buffer)
{
  return gst_imaging_settings_take (self->settings, GST_IMAGING_WHEN_LIVE,
             gst_imaging_settings_stream_time (self->sink, buffer))
             ? GST_FLOW_OK
             : GST_FLOW_ERROR;
}

static GstFlowReturn
gst_normal_integrate_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_NOT_NEGOTIATED;
  Work w;

  if (self->caps)
    flow = gst_imaging_engine_follow (self->engine, buffer) ? GST_FLOW_OK
                                                            : GST_FLOW_ERROR;
  if (flow == GST_FLOW_OK)
    flow = follow_settings (self, buffer);
  if (flow == GST_FLOW_OK) {
    work_begin (self, &w);
    negotiate (self, &w);
    flow = run (self, buffer, &w);
    work_clear (&w);
    if (flow == GST_FLOW_CUSTOM_SUCCESS)
      flow = GST_FLOW_OK;
    else
      gst_imaging_engine_count_frame (self->engine, entered);
  }
  gst_buffer_unref (buffer);
  return flow;
}

/* --- events and queries -------------------------------------------------- */

static gboolean
set_caps (GstNormalIntegrate *self, GstCaps *caps)
{
  GstCaps *carrier;
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
  ok = gst_imaging_engine_set_caps (self->engine, carrier, NULL);
  gst_caps_unref (carrier);
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

  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS) {
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, caps);
  } else {
    if (GST_EVENT_TYPE (event) == GST_EVENT_GAP && self->caps)
      negotiate_all (self);
    gst_imaging_src_pads_event (self->outputs, event);
  }
  gst_event_unref (event);
  return ok;
}

static gboolean
gst_normal_integrate_sink_query (
    GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (parent);

  if (gst_imaging_engine_query (self->engine, query))
    return TRUE;
  if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION) {
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
    gst_imaging_allocation_propose (self->engine, query);
    return TRUE;
  }
  return gst_pad_query_default (pad, parent, query);
}

/* --- pads ---------------------------------------------------------------- */

static GstPad *
gst_normal_integrate_request_new_pad (GstElement *element,
    GstPadTemplate *template, const gchar *name, const GstCaps *caps)
{
  return gst_imaging_src_pads_request (
      GST_NORMAL_INTEGRATE (element)->outputs, template);
}

static void
gst_normal_integrate_release_pad (GstElement *element, GstPad *pad)
{
  gst_imaging_src_pads_release (GST_NORMAL_INTEGRATE (element)->outputs, pad);
}

/* --- GstElement ---------------------------------------------------------- */

static void
reset (GstNormalIntegrate *self)
{
  gst_imaging_src_pads_reset (self->outputs);
  gst_clear_caps (&self->caps);
}

static GstStateChangeReturn
gst_normal_integrate_change_state (
    GstElement *element, GstStateChange transition)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (element);
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) {
    reset (self);
    if (!gst_imaging_engine_start (self->engine))
      return GST_STATE_CHANGE_FAILURE;
  }
  result = GST_ELEMENT_CLASS (gst_normal_integrate_parent_class)
               ->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (transition == GST_STATE_CHANGE_READY_TO_PAUSED &&
          result == GST_STATE_CHANGE_FAILURE)) {
    reset (self);
    gst_imaging_engine_stop (self->engine);
  }
  return result;
}

static void
gst_normal_integrate_set_context (GstElement *element, GstContext *context)
{
  gst_imaging_engine_set_context (
      GST_NORMAL_INTEGRATE (element)->engine, context);
  GST_ELEMENT_CLASS (gst_normal_integrate_parent_class)
      ->set_context (element, context);
}

/* --- GObject ------------------------------------------------------------- */

static void
gst_normal_integrate_finalize (GObject *object)
{
  GstNormalIntegrate *self = GST_NORMAL_INTEGRATE (object);

  gst_imaging_src_pads_free (self->outputs);
  gst_imaging_engine_free (self->engine);
  G_OBJECT_CLASS (gst_normal_integrate_parent_class)->finalize (object);
}

static void
gst_normal_integrate_class_init (GstNormalIntegrateClass *klass)
{
  static const gchar *no_tags[] = {NULL};
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->finalize = gst_normal_integrate_finalize;
  gst_imaging_settings_install (object_class, &gst_normal_integrate_table);

  /* a NULL list is refused before GStreamer 1.24 */
  if (!gst_meta_get_info (HEIGHT_META)) /* a reader may have done so */
    gst_meta_register_custom (HEIGHT_META, no_tags, NULL, NULL, NULL);
  gst_element_class_set_static_metadata (element_class, "Heights from normals",
      "Filter/Converter/Video",
      "Height map and mesh of a surface from a map of its normals",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_element_class_add_static_pad_template (
        element_class, &src_templates[i]);
  element_class->change_state = gst_normal_integrate_change_state;
  element_class->set_context = gst_normal_integrate_set_context;
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

  self->engine = gst_imaging_engine_new (GST_ELEMENT (self), &funcs);
  self->settings = gst_imaging_settings_new (
      GST_ELEMENT (self), &gst_normal_integrate_table, self->engine);
  self->outputs = gst_imaging_src_pads_new (
      GST_ELEMENT (self), GST_TYPE_IMAGING_SRC_PAD, output_names, N_OUTPUTS);
  self->sink = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sink, gst_normal_integrate_chain);
  gst_pad_set_event_function (self->sink, gst_normal_integrate_sink_event);
  gst_pad_set_query_function (self->sink, gst_normal_integrate_sink_query);
  gst_element_add_pad (GST_ELEMENT (self), self->sink);
}
