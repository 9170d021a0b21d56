/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-insarxcorr
 * @title: insarxcorr
 * @short_description: measures the offsets between two SAR images
 *
 * Takes the lines of two single look complex images and measures, for patches
 * on a grid, by how much the secondary is shifted against the reference:
 * incoherent cross-correlation, to 1/32 of a column and 1/16 of a line, as
 * GMTSAR's xcorr does it, or (mode=precise) with both axes oversampled and
 * normalised. On the CPU or on GPUs.
 *
 * Of the images, only a band is kept: a row of patches goes out on `src` as
 * soon as its lines are there. One pad may be ahead of the other by what fits
 * the band; then it waits, so each pad needs a thread of its own: a source for
 * each, or a queue.
 *
 * On `src` the first format that the peer takes: text/x-gmtsar-xcorr, byte for
 * byte a freq_xcorr.dat; text/csv with all that is known of a patch;
 * other/tensors with the same as float32. At the end a plane, or another
 * polynomial, is fitted to the offsets, as GMTSAR's fitoffset.csh does, and
 * goes out as eight PRM lines on the request pad `fit` and as a message
 * "insarxcorr-fit". The request pad `rasters` gives all of it as planes, and
 * offsets-location writes them into a file.
 *
 * docs/reference/insarxcorr.md has the formulas.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 slcsrc location=ref.PRM ! x.reference slcsrc
 * location=sec.PRM ! x.secondary insarxcorr name=x nx=20 ny=50 xsearch=128
 * ysearch=128 ! filesink location=freq_xcorr.dat
 * ]|
 */
#include "gstinsarxcorr-private.h"

#include "gstimagingallocation.h"

GST_DEBUG_CATEGORY (gst_insar_xcorr_debug);
#define GST_CAT_DEFAULT gst_insar_xcorr_debug

#define SLC_CAPS GST_INSAR_SLC_CAPS ("{ ci16, cf32, f32 }")

static GstStaticPadTemplate reference_template = GST_STATIC_PAD_TEMPLATE (
    "reference", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (SLC_CAPS));

static GstStaticPadTemplate secondary_template = GST_STATIC_PAD_TEMPLATE (
    "secondary", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (SLC_CAPS));

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS ("text/x-gmtsar-xcorr; " GST_IMAGING_RESULTS_CAPS));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstInsarXcorr, gst_insar_xcorr,
    GST_TYPE_IMAGING_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        gst_insar_xcorr_debug, "insarxcorr", 0, "offsets between SAR images"))
GST_ELEMENT_REGISTER_DEFINE (
    insarxcorr, "insarxcorr", GST_RANK_NONE, GST_TYPE_INSAR_XCORR)

/* --- the kernel ---------------------------------------------------------- */

static ImkInsarxcorrConfig
make_config (GstInsarXcorr *self, const GstInsarSettings *settings)
{
  const GstInsarSlcInfo *ref = &self->pair.sides[GST_INSAR_REFERENCE].info;
  const GstInsarSlcInfo *sec = &self->pair.sides[GST_INSAR_SECONDARY].info;
  ImkInsarxcorrConfig c = settings->config;

  for (guint s = 0; s < GST_INSAR_N_SIDES; s++) {
    c.width[s] = self->pair.sides[s].info.width;
    c.height[s] = self->pair.sides[s].info.height;
  }
  c.type = ref->type;
  c.min_correlation = gst_insar_settings_min_correlation (settings);
  if (settings->use_shift) {
    c.rshift = sec->rshift;
    c.ashift = sec->ashift;
  }
  /* a PRF that is not said is the same */
  if (ref->prf > 0 && sec->prf > 0)
    c.prf_ratio = (sec->prf - ref->prf) / ref->prf;
  c.n_threads = gst_imaging_engine_n_threads (self->base.engine);
  /* of which the kernel takes as many as it can */
  c.n_devices =
      self->others ? MIN (self->others->len, G_N_ELEMENTS (c.devices)) : 0;
  for (guint i = 0; i < c.n_devices; i++)
    c.devices[i] = g_array_index (self->others, gint, i);
  return c;
}

static void
close_kernel (GstElement *element)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);

  g_clear_pointer (&self->kernel, imk_insarxcorr_free);
  g_clear_pointer (&self->table, gst_imaging_table_free);
  g_clear_pointer (&self->columns, g_bytes_unref);
}

/* Detection doubles the bandwidth: amplitudes of samples as they are alias,
 * which draws peaks to whole lags. */
static void
warn_of_whole_pixels (GstInsarXcorr *self, const ImkInsarxcorrConfig *c)
{
  const gchar *which =
      c->range_interp > 1 ? "azimuth-interp is 1: lines"
      : c->azimuth_interp > 1
          ? "range-interp is 1: columns"
          : "range-interp and azimuth-interp are 1: columns and "
            "lines";

  if (c->mode == IMK_INSARXCORR_PRECISE &&
      MIN (c->range_interp, c->azimuth_interp) == 1)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("%s are not oversampled before detection, so offsets along them are "
         "drawn to whole pixels, by up to 0.4 pixel. Take 2.",
            which),
        (NULL));
}

/* What is open stays until there is another. */
static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);
  const GstInsarSettings *now = gst_imaging_settings_now (self->base.settings);
  ImkInsarxcorrConfig c = make_config (self, now);
  ImkInsarxcorr *kernel = NULL;
  GstImagingTable *table;
  guint32 *columns;
  gboolean is_auto;

  is_auto = c.min_correlation == IMK_INSARXCORR_SIGNIFICANT;
  IMK_TRY (imk_insarxcorr_config_complete (&c, error));
  IMK_TRY (gst_insar_settings_use_files (now, &c, error));
  IMK_TRY (imk_insarxcorr_new (backend, &c, &kernel, error));
  table = gst_imaging_table_new (
      backend == IMK_BACKEND_CUDA
          ? gst_imaging_engine_context (self->base.engine)
          : NULL,
      N_FIELDS, c.nx, error);
  if (!table) {
    imk_insarxcorr_free (kernel);
    return IMK_ERROR_MEMORY;
  }
  close_kernel (element);
  self->kernel = kernel;
  self->table = table;
  self->config = c;
  self->is_auto = is_auto;
  self->config.mask = NULL;
  self->config.gross_offsets = NULL;
  self->n_bytes = 0;
  columns = g_new (guint32, c.nx);
  for (guint i = 0; i < c.nx; i++)
    columns[i] = i;
  self->columns = g_bytes_new_take (columns, c.nx * sizeof (*columns));
  gst_insar_end_begin (self->end, &c, now->fit_range, now->fit_azimuth,
      gst_imaging_setting_file_location (now->offsets),
      self->pair.sides[GST_INSAR_REFERENCE].caps);
  warn_of_whole_pixels (self, &c);
  return IMK_OK;
}

/* Another pair of the same images: the caps of the output may change. */
ImkStatus
gst_insar_xcorr_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);

  if (!gst_imaging_engine_is_open (self->base.engine))
    return IMK_OK;
  IMK_TRY (gst_imaging_engine_renew (self->base.engine, error));
  gst_pad_mark_reconfigure (GST_PAD (self->src));
  return IMK_OK;
}

/* Making a context takes a GPU about as long as the CPU takes for this many
 * samples. */
static gboolean
prefers_cuda (GstElement *element, const GstVideoInfo *info)
{
  const guint64 worthwhile = (guint64) 1 << 25;
  GstInsarXcorr *self = GST_INSAR_XCORR (element);
  gpointer wanted = gst_imaging_settings_copy (self->base.settings);
  ImkInsarxcorrConfig c = make_config (self, wanted);

  gst_imaging_settings_free_copy (self->base.settings, wanted);
  return imk_insarxcorr_config_complete (&c, NULL) == IMK_OK &&
         (guint64) c.nx * c.ny * c.xsearch * c.ysearch * 16 >= worthwhile;
}

/* --- caps ----------------------------------------------------------------- */

gboolean
gst_insar_xcorr_open (GstElement *element, guint side)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);
  const GstInsarSide *sides = self->pair.sides;

  if (self->is_opening ||
      gst_imaging_engine_will_open_device (self->base.engine)) {
    gst_insar_xcorr_open_later (self);
    return TRUE;
  }
  if (!gst_imaging_engine_set_caps (self->base.engine, sides[side].caps, NULL))
    return FALSE;
  /* the first side could not know yet which memory is best */
  if (gst_imaging_engine_is_on_cuda (self->base.engine))
    gst_pad_push_event (sides[!side].pad, gst_event_new_reconfigure ());
  return TRUE;
}

static gboolean
gst_insar_xcorr_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (parent);

  if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION) {
    /* a source then writes where the GPU reads */
    gst_imaging_allocation_propose (self->base.engine, query);
    return TRUE;
  }
  return gst_imaging_element_query (pad, parent, query);
}

/* --- states --------------------------------------------------------------- */

static void
gst_insar_xcorr_stop (GstElement *element)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);

  gst_insar_xcorr_stop_work (self);
  gst_insar_pair_stop (&self->pair);
  self->header_sent = FALSE;
  gst_insar_end_reset (self->end, TRUE);
}

/* The first of cuda-devices is the one that the engine opens. */
static gboolean
gst_insar_xcorr_start (GstElement *element)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);
  GstInsarSettings *wanted = gst_imaging_settings_copy (self->base.settings);
  gboolean ok;

  /* with a file alone */
  gst_imaging_element_set_sink (
      &self->base, !gst_pad_is_linked (GST_PAD (self->src)) &&
                       !gst_imaging_src_pads_has (self->base.outputs, FIT) &&
                       !gst_imaging_src_pads_has (self->base.outputs, RASTERS));
  g_clear_pointer (&self->others, g_array_unref);
  ok = gst_imaging_engine_choose_devices (
      self->base.engine, wanted->cuda_devices, &self->others);
  gst_imaging_settings_free_copy (self->base.settings, wanted);
  if (!ok || !gst_imaging_engine_start (self->base.engine))
    return FALSE;
  gst_insar_xcorr_start_work (self);
  return TRUE;
}

/* --- the object ----------------------------------------------------------- */

static void
gst_insar_xcorr_finalize (GObject *object)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (object);

  gst_insar_end_free (self->end);
  g_object_unref (self->src);
  g_clear_pointer (&self->others, g_array_unref);
  gst_insar_pair_clear (&self->pair);
  G_OBJECT_CLASS (gst_insar_xcorr_parent_class)->finalize (object);
}

static void
gst_insar_xcorr_class_init (GstInsarXcorrClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->finalize = gst_insar_xcorr_finalize;
  GST_IMAGING_ELEMENT_CLASS (klass)->start = gst_insar_xcorr_start;
  GST_IMAGING_ELEMENT_CLASS (klass)->stop = gst_insar_xcorr_stop;
  gst_imaging_settings_install (object_class, &gst_insar_xcorr_table);

  gst_element_class_set_static_metadata (element_class, "SAR image offsets",
      "Filter/Analyzer",
      "Measures the offsets between two SAR images by cross-correlation",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (
      element_class, &reference_template);
  gst_element_class_add_static_pad_template (
      element_class, &secondary_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_insar_end_add_templates (element_class);
}

static void
gst_insar_xcorr_init (GstInsarXcorr *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = open_kernel,
      .close = close_kernel,
      .prefers_cuda = prefers_cuda,
      .opens_ahead = TRUE,
  };
  static const gchar *const names[N_PADS] = {
      [FIT] = "fit", [RASTERS] = "rasters", [SRC] = "src"};
  GstElementClass *element_class = GST_ELEMENT_GET_CLASS (self);

  gst_imaging_element_set_up (&self->base, &funcs, &gst_insar_xcorr_table);
  gst_imaging_element_add_outputs (
      &self->base, names, N_PADS, gst_insar_pair_src_event);
  self->end = gst_insar_end_new (GST_ELEMENT (self), self->base.outputs);
  gst_insar_pair_init (&self->pair, &self->base, &reference_template,
      &secondary_template, &gst_insar_xcorr_pair_funcs);
  for (guint s = 0; s < GST_INSAR_N_SIDES; s++)
    gst_pad_set_query_function (self->pair.sides[s].pad, gst_insar_xcorr_query);
  gst_imaging_src_pads_request (self->base.outputs,
      gst_element_class_get_pad_template (element_class, "src"));
  self->src = gst_imaging_src_pads_get (self->base.outputs, SRC);
}
