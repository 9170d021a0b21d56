/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The outputs of one map: their caps and memory, metadata, the mesh, the push.
 */
#include "gstnormalintegrate-private.h"

#include <math.h>

#include "gstimagingmetadata.h"
#include "gstimagingquantity.h"

/* The meta that says what the grey values of a height map are. */
#define HEIGHT_META "GstImagingHeight"

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

/* Returns: (transfer full): the caps that an output can have */
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
    return gst_caps_from_string (GST_NORMAL_INTEGRATE_MESH_CAPS);
  }
}

void
gst_normal_integrate_negotiate (
    GstNormalIntegrate *self, GstNormalIntegrateWork *w)
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

/* Heights for a mesh alone; the pads have pools. */
static ImkStatus
acquire_heights (
    GstNormalIntegrate *self, GstNormalIntegrateWork *w, ImkError *error)
{
  gsize size = GST_VIDEO_INFO_SIZE (&w->heights_info);
  GstAllocator *allocator =
      gst_imaging_engine_is_on_cuda (self->base.engine)
          ? gst_imaging_engine_allocator_new (
                self->base.engine, GST_IMAGING_MEMORY_DEVICE)
          : NULL;

  w->heights = gst_buffer_new_allocate (allocator, size, NULL);
  gst_clear_object (&allocator);
  return w->heights ? IMK_OK
                    : IMK_NO_MEMORY (error,
                          "for heights of %" G_GSIZE_FORMAT " bytes.", size);
}

ImkStatus
gst_normal_integrate_acquire (
    GstNormalIntegrate *self, GstNormalIntegrateWork *w, ImkError *error)
{
  gboolean wants_tensor = w->flows[TENSOR] == GST_FLOW_OK;

  gst_clear_buffer (&w->grey);
  gst_clear_buffer (&w->heights);
  if (w->flows[HEIGHT] == GST_FLOW_OK)
    IMK_TRY (gst_imaging_src_pad_acquire (
        w->outputs[HEIGHT], self->base.engine, &w->grey_info, &w->grey, error));
  if (wants_tensor || w->flows[MESH] == GST_FLOW_OK)
    IMK_TRY (
        gst_imaging_src_pad_acquire (w->outputs[wants_tensor ? TENSOR : MESH],
            self->base.engine, &w->heights_info, &w->heights, error));
  if (!w->heights && w->mesh_file)
    IMK_TRY (acquire_heights (self, w, error));
  return IMK_OK;
}

/* A grey value v > 0 is scale * v + offset mm. */
static gdouble
offset_of (const GstNormalIntegrateWork *w)
{
  return w->summary.lowest - w->summary.grey_step;
}

/* Through a lens the axes are those at the lowest point, and the meta has the
 * focal length in pixels, with which readers find the others. */
static void
add_quantity (const GstNormalIntegrateWork *w, GstBuffer *image, gdouble scale)
{
  const gchar *unit = w->has_scale ? "mm" : "pixel";
  gdouble row = w->config.mm_per_pixel / w->config.pixel_aspect;
  /* as in the mesh: upwards from the last row */
  const GstImagingAxis axes[] = {{"x", unit, w->config.mm_per_pixel, 0},
      {"y", unit, -row, (w->config.height - 1) * row}};
  gboolean is_grey = image == w->grey;

  gst_imaging_quantity_attach (image, "height", unit, scale,
      is_grey ? offset_of (w) : 0, axes, G_N_ELEMENTS (axes));
  if (w->config.focal_pixels > 0) {
    GstCustomMeta *meta =
        gst_buffer_get_custom_meta (image, GST_IMAGING_QUANTITY_META);

    gst_structure_set (gst_custom_meta_get_structure (meta), "focal-length",
        G_TYPE_DOUBLE, w->config.focal_pixels, NULL);
  }
}

/* GstImagingHeight is there for one release more. */
static void
add_meta (GstNormalIntegrateWork *w)
{
  GstCustomMeta *meta = gst_buffer_add_custom_meta (w->grey, HEIGHT_META);

  add_quantity (w, w->grey, w->summary.grey_step);
  gst_structure_set (gst_custom_meta_get_structure (meta), "scale",
      G_TYPE_DOUBLE, w->summary.grey_step, "offset", G_TYPE_DOUBLE,
      offset_of (w), "highest", G_TYPE_DOUBLE, w->summary.highest,
      "mm-per-pixel", G_TYPE_DOUBLE, w->config.mm_per_pixel, NULL);
}

static void
set_numbers (
    GstStructure *to, const gchar *name, const gdouble *numbers, guint n)
{
  GValue list = G_VALUE_INIT, number = G_VALUE_INIT;

  gst_value_array_init (&list, n);
  g_value_init (&number, G_TYPE_DOUBLE);
  for (guint i = 0; i < n; i++) {
    g_value_set_double (&number, numbers[i]);
    gst_value_array_append_value (&list, &number);
  }
  gst_structure_take_value (to, name, &list);
}

static void
post_summary (GstNormalIntegrate *self, const GstNormalIntegrateWork *w)
{
  const ImkNormalintegrateSummary *s = &w->summary;
  GstStructure *told = gst_structure_new ("normalintegrate-height", "pixels",
      G_TYPE_UINT64, s->n_pixels, "valid", G_TYPE_UINT64, s->n_valid, "lowest",
      G_TYPE_DOUBLE, s->lowest, "highest", G_TYPE_DOUBLE, s->highest, "scale",
      G_TYPE_DOUBLE, s->grey_step, "offset", G_TYPE_DOUBLE, offset_of (w),
      "iterations", G_TYPE_UINT, s->n_iterations, "residual", G_TYPE_DOUBLE,
      s->residual, NULL);

  if (w->config.flatten)
    gst_structure_set (told, "flatten-share", G_TYPE_DOUBLE, s->flatten_share,
        "flatten-deviation", G_TYPE_DOUBLE, s->flatten_deviation, NULL);
  if (w->config.flatten || w->config.n_points > 0)
    set_numbers (told, "removed", s->removed, IMK_NORMALINTEGRATE_N_TERMS);
  if (w->config.n_points > 0)
    set_numbers (
        told, "point-residuals", s->point_residuals, w->config.n_points);
  gst_element_post_message (
      GST_ELEMENT (self), gst_message_new_element (GST_OBJECT (self), told));
}

/* Of the first point that is left out. */
static void
warn_of_points (GstNormalIntegrate *self, const GstNormalIntegrateWork *w)
{
  for (guint i = 0; i < w->config.n_points; i++)
    if (isnan (w->summary.point_residuals[i])) {
      GST_ELEMENT_WARNING (self, STREAM, FAILED,
          ("Point %u of known height is left out: there is no normal at its "
           "pixel. Move it, or remove it from the list.",
              i + 1),
          (NULL));
      return;
    }
}

static void
warn (GstNormalIntegrate *self, const GstNormalIntegrateWork *w)
{
  const ImkNormalintegrateSummary *s = &w->summary;

  if (s->n_valid == 0)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("A map of %u x %u pixels has no normal with z above 0; nothing has a "
         "height.",
            w->config.width, w->config.height),
        (NULL));
  else if (w->config.flatten && s->flatten_share == 0)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("flatten: %" G_GUINT64_FORMAT " pixels with a height do not tell the "
         "terms of this surface apart; the map is not flattened. Use "
         "flatten=plane or none.",
            s->n_valid),
        (NULL));
  else
    warn_of_points (self, w);
}

/* The mesh last: it may wait for a disk. */
static GstFlowReturn
push (GstNormalIntegrate *self, GstBuffer *in, GstNormalIntegrateWork *w)
{
  GstBuffer *buffers[N_OUTPUTS] = {NULL};
  GstFlowReturn flow = GST_FLOW_OK;

  if (w->flows[HEIGHT] == GST_FLOW_OK)
    buffers[HEIGHT] = g_steal_pointer (&w->grey);
  if (w->flows[TENSOR] == GST_FLOW_OK)
    buffers[TENSOR] = g_steal_pointer (&w->heights);
  buffers[MESH] = g_steal_pointer (&w->mesh);
  for (guint i = 0; i < N_OUTPUTS; i++) {
    if (buffers[i]) {
      gst_imaging_metadata_pass (buffers[i], in, i != MESH);
      gst_imaging_engine_sign (self->base.engine, buffers[i]);
      w->flows[i] = gst_imaging_src_pad_push (w->outputs[i], buffers[i]);
    }
    if (w->outputs[i])
      flow = gst_imaging_src_pads_combine (
          self->base.outputs, i, w->outputs[i], w->flows[i], flow);
  }
  return flow;
}

GstFlowReturn
gst_normal_integrate_publish (
    GstNormalIntegrate *self, GstBuffer *in, GstNormalIntegrateWork *w)
{
  ImkStatus status;
  ImkError error;

  status = gst_normal_integrate_make_mesh (w, in, &error);
  if (status == IMK_ERROR_FILE)
    GST_ELEMENT_ERROR (self, RESOURCE, WRITE, ("%s", error.message), (NULL));
  else if (status != IMK_OK)
    gst_imaging_engine_post_error (self->base.engine, status, &error);
  if (status != IMK_OK)
    return GST_FLOW_ERROR;
  self->n_maps++;
  if (w->grey)
    add_meta (w);
  if (w->flows[TENSOR] == GST_FLOW_OK)
    add_quantity (w, w->heights, 1);
  post_summary (self, w);
  warn (self, w);
  return push (self, in, w);
}

/* A reader may have registered it. */
void
gst_normal_integrate_register_meta (void)
{
  static const gchar *no_tags[] = {NULL}; /* NULL needs GStreamer 1.24 */

  if (!gst_meta_get_info (HEIGHT_META))
    gst_meta_register_custom (HEIGHT_META, no_tags, NULL, NULL, NULL);
}
