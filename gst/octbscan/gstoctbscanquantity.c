/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What samples of an image are, and where they are, attached to it. */
#include "gstoctbscanoutput.h"

#include <math.h>

GstImagingAxis
gst_oct_bscan_depth_axis (const GstOctBscan *self)
{
  const ImkOctbscanConfig *c = &self->open.config;
  GstImagingAxis axis = {"depth", "pixel", 1, c->crop_top};
  gdouble step = self->shared.depth_step / self->in_use.now->refractive_index;

  if (step > 0)
    axis = (GstImagingAxis){"depth", "um", step, c->crop_top * step};
  if (c->flip & IMK_OCTBSCAN_FLIP_DEPTH) {
    axis.origin += (imk_octbscan_n_depths (c) - 1) * axis.step;
    axis.step = -axis.step;
  }
  return axis;
}

/* The mean of several A-scans lies in their middle. */
GstImagingAxis
gst_oct_bscan_lateral_axis (const GstOctBscan *self)
{
  const ImkOctbscanConfig *c = &self->open.config;
  gdouble step = self->in_use.now->lateral_step_um;
  guint n = MAX (c->average_ascans, 1);
  GstImagingAxis axis = {"lateral", step > 0 ? "um" : "pixel",
      step > 0 ? step * n : n, (step > 0 ? step : 1) * (n - 1) / 2.0};

  if (c->flip & IMK_OCTBSCAN_FLIP_LATERAL) {
    axis.origin += (imk_octbscan_n_ascans (c) - 1) * axis.step;
    axis.step = -axis.step;
  }
  return axis;
}

/* Floats are what they stand for, whatever the range. */
static void
attach (GstBuffer *image, gboolean is_float, const GstVideoInfo *info,
    gboolean db, const gfloat ends[4], const GstImagingAxis *axes)
{
  gboolean bytes = GST_VIDEO_INFO_FORMAT (info) == GST_VIDEO_FORMAT_GRAY8;
  gdouble low = ends[db ? 0 : 2], high = ends[db ? 1 : 3];

  gst_imaging_quantity_attach (image, db ? "level" : "intensity",
      db ? "dB" : "counts^2",
      is_float ? 1 : (high - low) / (bytes ? 255 : 65535), is_float ? 0 : low,
      axes, 2);
}

GstImagingOrigin
gst_oct_bscan_origin (const GstOctBscanWork *w)
{
  return (GstImagingOrigin){
      .element = w->snapshot->element,
      .backend = w->on_cpu ? "cpu" : "cuda",
      .settings_hash = w->snapshot->settings_hash,
  };
}

static void
sign (const GstOctBscanWork *w, GstBuffer *image)
{
  const GstImagingOrigin origin = gst_oct_bscan_origin (w);

  gst_imaging_quantity_sign (image, &origin);
}

void
gst_oct_bscan_describe_volume (const GstOctBscanWork *w, GstBuffer *image,
    gboolean db, const gfloat ends[4])
{
  const GstOctBscanSnapshot *snapshot = w->snapshot;
  const GstImagingAxis axes[] = {snapshot->lateral, {"b-scan", "pixel", 1, 0}};

  attach (image, snapshot->is_float[ENFACE], &snapshot->volume, db, ends, axes);
  sign (w, image);
}

/* With these octangio makes velocities of phases, splits the spectrum, and
 * knows which lines are neighbours. */
static void
attach_optics (const GstOctBscanWork *w, gboolean is_backward, GstBuffer *image)
{
  const GstOctBscanSnapshot *snapshot = w->snapshot;

  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (image, GST_IMAGING_QUANTITY_META);

  if (!meta)
    return;
  gst_structure_set (gst_custom_meta_get_structure (meta), "refractive-index",
      G_TYPE_DOUBLE, snapshot->refractive_index, "wavelength-first",
      G_TYPE_DOUBLE, snapshot->wavelengths[0], "wavelength-last", G_TYPE_DOUBLE,
      snapshot->wavelengths[1], "depth-scale", G_TYPE_DOUBLE,
      (gdouble) snapshot->config.scale, "cameras", G_TYPE_DOUBLE,
      (gdouble) snapshot->config.n_cameras, "is-backward", G_TYPE_BOOLEAN,
      is_backward, NULL);
}

/* A-scan by A-scan, before they are averaged, turned round and, without
 * tracking-complex, tracked. */
static void
describe_complex (
    const GstOctBscanWork *w, guint k, gdouble shift, GstBuffer *image)
{
  const ImkOctbscanConfig *c = &w->snapshot->config;
  const GstImagingAxis *depth = &w->snapshot->depth;
  const GstImagingAxis *lateral = &w->snapshot->lateral;
  gdouble step = fabs (depth->step), origin = c->crop_top * step;

  if (c->tracking_complex)
    origin -= shift * step;
  gst_imaging_quantity_attach (image, "amplitude", "counts", 1, 0,
      (GstImagingAxis[]){{"depth", depth->unit, step, origin},
          {"lateral", lateral->unit,
              fabs (lateral->step) / MAX (c->average_ascans, 1), 0}},
      2);
  attach_optics (w, c->bidirectional && (w->backward + k) % 2 != 0, image);
}

void
gst_oct_bscan_describe_image (const GstOctBscanWork *w, guint output, guint k,
    gdouble shift, GstBuffer *image)
{
  const ImkOctbscanConfig *c = &w->snapshot->config;
  const gfloat fixed[4] = {(gfloat) c->range_min, (gfloat) c->range_max,
      (gfloat) c->linear_min, (gfloat) c->linear_max};
  gboolean rows = c->orientation == IMK_OCTBSCAN_ORIENTATION_ROWS;
  GstImagingAxis axes[2];

  if (output == ENFACE) /* the image of a volume has been described */
    return;
  if (output == COMPLEX) {
    describe_complex (w, k, shift, image);
    sign (w, image);
    return;
  }
  axes[rows] = w->snapshot->lateral;
  axes[!rows] = w->snapshot->depth;
  axes[!rows].origin -= shift * fabs (axes[!rows].step);
  attach (image, w->snapshot->is_float[output], &w->snapshot->info[output],
      output == SRC && w->snapshot->scaling == SCALING_DB,
      w->wants_ends ? w->reports[k].ends : fixed, axes);
  sign (w, image);
}
