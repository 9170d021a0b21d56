/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-insarform
 * @title: insarform
 * @short_description: forms the interferogram of two SAR images
 *
 * Takes the lines of a reference and of a secondary in the same geometry (see
 * slcresample) and makes, of cells of looks-x times looks-y samples, the
 * interferogram, the coherence and the amplitude. Each goes out once, as a
 * whole, on a pad of its own, in the first of these that its peer takes:
 *
 * | pad           | picture            | numbers                        |
 * | ------------- | ------------------ | ------------------------------ |
 * | phase         | RGB                | other/tensors                  |
 * | coherence     | GRAY8, GRAY16_LE   | other/tensors                  |
 * | amplitude     | GRAY8, GRAY16_LE   | other/tensors                  |
 * | interferogram |                    | application/x-slc, other/tensors |
 * | removed       |                    | other/tensors                  |
 *
 * The pads are made on request; when several are used, each needs a queue.
 * coherence-location and its like write the numbers into files, as GeoTIFF or
 * with an ENVI header, in the coordinates of the reference.
 * docs/reference/insarform.md has the formulas.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 slcsrc location=ref.PRM ! i.reference slcsrc
 * location=sec.PRM ! slcresample fit-location=fit.txt
 * reference-location=ref.PRM ! i.secondary insarform name=i looks-x=4 looks-y=4
 * i.phase ! queue ! pngenc ! filesink location=fringes.png i.coherence ! queue
 * ! pngenc ! filesink location=coherence.png
 * ]|
 */
#include "gstinsarform-private.h"

#include <gst/video/video.h>

#include "gstimagingpicture.h"

GST_DEBUG_CATEGORY (gst_insar_form_debug);
#define GST_CAT_DEFAULT gst_insar_form_debug

static GstStaticPadTemplate reference_template =
    GST_STATIC_PAD_TEMPLATE ("reference", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_INSAR_SLC_CAPS ("{ ci16, cf32 }")));

static GstStaticPadTemplate secondary_template =
    GST_STATIC_PAD_TEMPLATE ("secondary", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_INSAR_SLC_CAPS ("{ ci16, cf32 }")));

#define TENSOR_CAPS GST_IMAGING_PICTURE_TENSOR_CAPS
#define GREY_CAPS \
  GST_VIDEO_CAPS_MAKE ("{ GRAY8, " GST_VIDEO_NE (GRAY16) " }") "; " TENSOR_CAPS

/* both in the order of GstInsarPicture */
static const gchar *const picture_names[GST_INSAR_N_PICTURES] = {
    "phase", "coherence", "amplitude", "interferogram", "removed"};
static GstStaticPadTemplate picture_templates[GST_INSAR_N_PICTURES] = {
    GST_STATIC_PAD_TEMPLATE ("phase", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("RGB") "; " TENSOR_CAPS)),
    GST_STATIC_PAD_TEMPLATE (
        "coherence", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS (GREY_CAPS)),
    GST_STATIC_PAD_TEMPLATE (
        "amplitude", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS (GREY_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("interferogram", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_INSAR_SLC_CAPS ("cf32") "; " TENSOR_CAPS)),
    GST_STATIC_PAD_TEMPLATE (
        "removed", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS (TENSOR_CAPS)),
};

G_DEFINE_FINAL_TYPE_WITH_CODE (GstInsarForm, gst_insar_form,
    GST_TYPE_IMAGING_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        gst_insar_form_debug, "insarform", 0, "interferograms of SAR images"))
GST_ELEMENT_REGISTER_DEFINE (
    insarform, "insarform", GST_RANK_NONE, GST_TYPE_INSAR_FORM)

/* --- the kernel ----------------------------------------------------------- */

static void
close_kernel (GstElement *element)
{
  GstInsarForm *self = GST_INSAR_FORM (element);

  g_clear_pointer (&self->kernel, imk_insarform_free);
  g_clear_pointer (&self->flat, gst_insar_form_flat_free);
  g_clear_pointer (&self->cells.values, g_free);
  g_clear_pointer (&self->row, g_free);
}

/* A cell of @looks samples is in their middle. */
static GstImagingAxis
axis_of (const gchar *name, gdouble spacing, gdouble first, guint looks)
{
  gdouble step = spacing > 0 ? spacing : 1;

  return (GstImagingAxis){name, spacing > 0 ? "m" : "pixel", step * looks,
      (spacing > 0 ? first : 0) + step * (looks - 1) / 2};
}

gboolean
gst_insar_form_has_pads (GstInsarForm *self)
{
  for (guint i = 0; i < GST_INSAR_N_PICTURES; i++)
    if (gst_imaging_src_pads_has (self->base.outputs, i))
      return TRUE;
  return FALSE;
}

/* What is open stays until there is another. */
static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  GstInsarForm *self = GST_INSAR_FORM (element);
  const GstInsarSlcInfo *image = &self->pair.sides[GST_INSAR_REFERENCE].info;
  const GstInsarFormSettings *now =
      gst_imaging_settings_now (self->base.settings);
  ImkInsarformConfig c = now->config;
  GstInsarFormFlat *flat = NULL;
  ImkInsarform *kernel = NULL;
  GstInsarCells cells;
  ImkStatus status;

  c.width = image->width;
  c.height = image->height;
  c.type = image->type;
  c.n_threads = gst_imaging_engine_n_threads (self->base.engine);
  if (now->flatten == GST_INSAR_FORM_FLATTEN_MEASURED)
    c.fringe_window = now->fringe_window;
  c.filter_alpha =
      now->filter == GST_INSAR_FORM_FILTER_NONE ? 0 : now->filter_alpha;
  status = imk_insarform_new (backend, &c, &kernel, error);
  if (status == IMK_OK && (now->flatten == GST_INSAR_FORM_FLATTEN_ORBIT ||
                              now->flatten == GST_INSAR_FORM_FLATTEN_DEM))
    status = gst_insar_form_flat_new (
        now, c.width, c.height, c.n_threads, &flat, error);
  cells = (GstInsarCells){
      .width = c.width / c.looks_x,
      .height = c.height / c.looks_y,
      .n_kept = gst_insar_form_has_pads (self) ? c.height / c.looks_y : 1,
      .shade = now->shade,
      .axes = {axis_of ("slant range", image->spacing.range,
                   image->spacing.near_range, c.looks_x),
          axis_of ("azimuth", image->spacing.azimuth, 0, c.looks_y)},
  };
  if (status == IMK_OK)
    cells.values = g_try_new (
        gfloat, (gsize) cells.width * cells.n_kept * IMK_INSARFORM_N_CHANNELS);
  if (status == IMK_OK && !cells.values)
    status = IMK_NO_MEMORY (error,
        "for %u x %u cells. Take larger looks, or files "
        "(coherence-location and its like) and no pads.",
        cells.width, cells.height);
  if (status != IMK_OK) {
    imk_insarform_free (kernel);
    gst_insar_form_flat_free (flat);
    return status;
  }
  close_kernel (element);
  self->kernel = kernel;
  self->flat = flat;
  self->cells = cells;
  self->row = g_new (gfloat, 2 * (gsize) cells.width);
  self->open_settings = *now;
  self->open_settings.config = c;
  return IMK_OK;
}

/* --- caps ----------------------------------------------------------------- */

gboolean
gst_insar_form_open (GstElement *element, guint side)
{
  GstInsarForm *self = GST_INSAR_FORM (element);
  const GstInsarSlcInfo *ref = &self->pair.sides[GST_INSAR_REFERENCE].info;
  const GstInsarSlcInfo *sec = &self->pair.sides[GST_INSAR_SECONDARY].info;

  if (ref->width != sec->width || ref->height != sec->height) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("The reference has %u lines of %u columns and the secondary %u of %u; "
         "both must be in one geometry, which slcresample with "
         "reference-location makes.",
            ref->height, ref->width, sec->height, sec->width),
        (NULL));
    return FALSE;
  }
  return gst_imaging_engine_set_caps (
      self->base.engine, self->pair.sides[side].caps, NULL);
}

/* --- states --------------------------------------------------------------- */

static void
gst_insar_form_stop (GstElement *element)
{
  GstInsarForm *self = GST_INSAR_FORM (element);

  gst_insar_pair_stop (&self->pair);
  gst_insar_form_rasters_clear (self);
}

static gboolean
gst_insar_form_start (GstElement *element)
{
  GstInsarForm *self = GST_INSAR_FORM (element);

  /* with files alone */
  gst_imaging_element_set_sink (&self->base, !gst_insar_form_has_pads (self));
  return gst_imaging_engine_start (self->base.engine);
}

/* --- the object ----------------------------------------------------------- */

static void
gst_insar_form_finalize (GObject *object)
{
  GstInsarForm *self = GST_INSAR_FORM (object);

  gst_insar_pair_clear (&self->pair);
  G_OBJECT_CLASS (gst_insar_form_parent_class)->finalize (object);
}

static void
gst_insar_form_class_init (GstInsarFormClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->finalize = gst_insar_form_finalize;
  GST_IMAGING_ELEMENT_CLASS (klass)->start = gst_insar_form_start;
  GST_IMAGING_ELEMENT_CLASS (klass)->stop = gst_insar_form_stop;
  gst_imaging_settings_install (object_class, &gst_insar_form_table);

  gst_element_class_set_static_metadata (element_class, "SAR interferogram",
      "Filter/Analyzer",
      "Forms the interferogram and the coherence of two SAR images",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (
      element_class, &reference_template);
  gst_element_class_add_static_pad_template (
      element_class, &secondary_template);
  for (guint i = 0; i < GST_INSAR_N_PICTURES; i++)
    gst_element_class_add_static_pad_template (
        element_class, &picture_templates[i]);
}

static void
gst_insar_form_init (GstInsarForm *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = open_kernel,
      .close = close_kernel,
  };

  gst_imaging_element_set_up (&self->base, &funcs, &gst_insar_form_table);
  gst_imaging_element_add_outputs (&self->base, picture_names,
      GST_INSAR_N_PICTURES, gst_insar_pair_src_event);
  gst_insar_pair_init (&self->pair, &self->base, &reference_template,
      &secondary_template, &gst_insar_form_pair_funcs);
}
