/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarxcorrend.h"

#include <math.h>

#include "gstimagingpicture.h"
#include "gstinsarxcorrtext.h"
#include "insar/gstinsarraster.h"

#define N_FIELDS IMK_INSARXCORR_N_FIELDS

/* Part of the patches with data; fewer may be dark ground. */
#define MANY_ZERO 0.05

/* The planes of the rasters; the last is the state. */
static const ImkInsarxcorrField planes[] = {
    IMK_INSARXCORR_DX,
    IMK_INSARXCORR_DY,
    IMK_INSARXCORR_CORRELATION,
    IMK_INSARXCORR_SNR,
    IMK_INSARXCORR_COV_XX,
    IMK_INSARXCORR_COV_YY,
    IMK_INSARXCORR_COV_XY,
};

#define N_PLANES (G_N_ELEMENTS (planes) + 1)

static const GstInsarBand bands[N_PLANES] = {
    {"range offset", "pixel"},
    {"azimuth offset", "pixel"},
    {"correlation", "percent"},
    {"snr", ""},
    {"range variance", "pixel^2"},
    {"azimuth variance", "pixel^2"},
    {"covariance", "pixel^2"},
    {"state", ""},
};

static GstStaticPadTemplate templates[N_END_PADS] = {
    GST_STATIC_PAD_TEMPLATE ("fit", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS ("text/x-gmtsar-prm")),
    GST_STATIC_PAD_TEMPLATE ("rasters", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_IMAGING_PICTURE_TENSOR_CAPS)),
};

/* A patch that takes part in the fit if its correlation is high enough. */
typedef struct {
  ImkInsarxcorrPoint point;
  gdouble correlation;
} Candidate;

struct _GstInsarEnd {
  GstElement *element;
  GstImagingSrcPads *pads; /* of the element */

  ImkInsarxcorrConfig config;
  gint fit_range, fit_azimuth;
  GArray *candidates;       /* Candidate: valid patches */
  GArray *points;           /* ImkInsarxcorrPoint: for the fit, at the end */
  GstInsarFitOrigin origin; /* of the fit */
  guint64 n_patches, n_outside; /* without those that the mask leaves out */
  guint64 n_with_data, n_zero;  /* of these a correlation of 0 */
  gboolean wants_rasters;
  gfloat *rasters; /* [N_PLANES][ny][nx] from the first row to the end */
  guint row;

  gchar *location;           /* (nullable): of a raster to write */
  GstCaps *image;            /* those of the reference */
  GstInsarRaster *file;      /* (nullable): from the first row to the end */
  gfloat *file_row;          /* [N_PLANES][nx] */
  GError *file_error;        /* (nullable): why it was given up */
  gdouble first[2], last[2]; /* centres of patches: the corners of the grid */
};

/* --- pads ----------------------------------------------------------------- */

void
gst_insar_end_add_templates (GstElementClass *klass)
{
  for (guint i = 0; i < N_END_PADS; i++)
    gst_element_class_add_static_pad_template (klass, &templates[i]);
}

GstInsarEnd *
gst_insar_end_new (GstElement *element, GstImagingSrcPads *pads)
{
  GstInsarEnd *self = g_new0 (GstInsarEnd, 1);

  self->element = element;
  self->pads = pads;
  self->candidates = g_array_new (FALSE, FALSE, sizeof (Candidate));
  self->points = g_array_new (FALSE, FALSE, sizeof (ImkInsarxcorrPoint));
  return self;
}

static void
drop_file (GstInsarEnd *self)
{
  g_clear_pointer (&self->file, gst_insar_raster_free);
  g_clear_pointer (&self->file_row, g_free);
  g_clear_error (&self->file_error);
}

void
gst_insar_end_free (GstInsarEnd *self)
{
  g_array_unref (self->candidates);
  g_array_unref (self->points);
  g_free (self->rasters);
  drop_file (self);
  g_free (self->location);
  gst_clear_caps (&self->image);
  g_free (self);
}

gboolean
gst_insar_end_is_wanted (GstInsarEnd *self)
{
  return gst_imaging_src_pads_has (self->pads, FIT) ||
         gst_imaging_src_pads_has (self->pads, RASTERS) || self->location;
}

/* --- rows
 * ----------------------------------------------------------------------
 */

static void
forget_patches (GstInsarEnd *self)
{
  g_array_set_size (self->candidates, 0);
  g_array_set_size (self->points, 0);
  self->n_patches = self->n_outside = 0;
  self->n_with_data = self->n_zero = 0;
}

void
gst_insar_end_begin (GstInsarEnd *self, const ImkInsarxcorrConfig *config,
    gint fit_range, gint fit_azimuth, const gchar *location, GstCaps *image)
{
  self->config = *config;
  self->origin = gst_insar_text_origin (config);
  self->fit_range = fit_range;
  self->fit_azimuth = fit_azimuth;
  self->row = 0;
  forget_patches (self);
  g_clear_pointer (&self->rasters, g_free);
  self->wants_rasters = gst_imaging_src_pads_has (self->pads, RASTERS);
  drop_file (self);
  g_free (self->location);
  self->location = g_strdup (location);
  gst_caps_replace (&self->image, image);
}

/* Returns: (transfer full) */
static GstCaps *
caps_of (GstInsarEnd *self, guint i)
{
  GstCaps *caps = gst_static_pad_template_get_caps (&templates[i]);
  g_autofree gchar *dimensions = g_strdup_printf (
      "%u:%u:%u:1", self->config.nx, self->config.ny, (guint) N_PLANES);

  if (i == FIT)
    return caps;
  caps = gst_caps_make_writable (caps);
  gst_caps_set_simple (caps, "dimensions", G_TYPE_STRING, dimensions,
      "framerate", GST_TYPE_FRACTION, 0, 1, NULL);
  return caps;
}

/* Returns: GST_FLOW_NOT_NEGOTIATED when the peer of @output takes nothing that
 * there is */
static GstFlowReturn
start (GstInsarEnd *self, guint i, GstImagingSrcPad *pad)
{
  GstFlowReturn flow;

  if (gst_imaging_src_pad_is_negotiated (pad) ||
      (i == RASTERS && !self->wants_rasters))
    return GST_FLOW_OK;
  flow = gst_imaging_src_pad_negotiate (
      pad, GST_IMAGING_PREFER_OURS, caps_of (self, i));
  if (flow == GST_FLOW_OK)
    gst_pad_push_event (
        GST_PAD (pad), gst_event_new_gap (0, GST_CLOCK_TIME_NONE));
  return flow == GST_FLOW_NOT_NEGOTIATED ? flow : GST_FLOW_OK;
}

GstFlowReturn
gst_insar_end_start (GstInsarEnd *self)
{
  GstFlowReturn flow = GST_FLOW_OK;

  for (guint i = 0; i < N_END_PADS; i++) {
    GstImagingSrcPad *pad = gst_imaging_src_pads_get (self->pads, i);

    if (pad && flow == GST_FLOW_OK)
      flow = start (self, i, pad);
    g_clear_object (&pad);
  }
  return flow;
}

/* The fit is made from the three decimals that are printed, as GMTSAR's is. */
static gdouble
round_printed (gdouble value)
{
  return rint (value * 1000) / 1000;
}

static void
keep_candidate (GstInsarEnd *self, const gdouble *values)
{
  guint flags = (guint) values[IMK_INSARXCORR_FLAGS];
  Candidate candidate = {
      .point = {.x = values[IMK_INSARXCORR_X],
          .y = values[IMK_INSARXCORR_Y],
          .dx = round_printed (values[IMK_INSARXCORR_DX]),
          .dy = round_printed (values[IMK_INSARXCORR_DY])},
      .correlation = rint (values[IMK_INSARXCORR_CORRELATION] * 100) / 100,
  };

  if (!(flags & IMK_INSARXCORR_INVALID_MASK))
    g_array_append_val (self->candidates, candidate);
  if (!(flags & IMK_INSARXCORR_MASKED))
    self->n_patches++;
  if (flags & IMK_INSARXCORR_OUTSIDE)
    self->n_outside++;
  if (!(flags & IMK_INSARXCORR_NO_DATA)) {
    self->n_with_data++;
    self->n_zero += values[IMK_INSARXCORR_CORRELATION] == 0;
  }
}

/* Only valid patches above the threshold take part in the fit. */
static void
choose_points (GstInsarEnd *self)
{
  for (guint i = 0; i < self->candidates->len; i++) {
    const Candidate *c = &g_array_index (self->candidates, Candidate, i);

    if (c->correlation > self->origin.min_correlation)
      g_array_append_val (self->points, c->point);
  }
}

/* Where there is no data there is no number either. @n: pixels of a plane */
static void
put_pixel (gfloat *pixel, gsize n, const gdouble *values)
{
  ImkInsarxcorrState state =
      imk_insarxcorr_state ((guint32) values[IMK_INSARXCORR_FLAGS]);

  for (guint i = 0; i < G_N_ELEMENTS (planes); i++)
    pixel[i * n] = state == IMK_INSARXCORR_STATE_NO_DATA
                       ? NAN
                       : (gfloat) values[planes[i]];
  pixel[G_N_ELEMENTS (planes) * n] = (gfloat) state;
}

/* --- the file ------------------------------------------------------------- */

/* Returns: FALSE after an error has been posted */
static gboolean
open_file (GstInsarEnd *self)
{
  g_autoptr (GError) error = NULL;

  drop_file (self);
  if (!self->location)
    return TRUE;
  self->file = gst_insar_raster_new (self->location,
      &(GstInsarRasterInfo){
          .element = "insarxcorr",
          .settings_hash = gst_imaging_settings_hash (
              gst_imaging_settings_of (self->element)),
          .width = self->config.nx,
          .height = self->config.ny,
          .bands = bands,
          .n_bands = N_PLANES,
          .no_data = NAN,
          .image = self->image,
      },
      &error);
  self->file_row = g_new (gfloat, (gsize) self->config.nx * N_PLANES);
  if (!self->file)
    GST_ELEMENT_ERROR (self->element, RESOURCE, OPEN_WRITE,
        ("offsets-location: %s", error->message), (NULL));
  return self->file != NULL;
}

/* What is wrong with the file ends neither the pads nor the fit. */
static void
write_file (GstInsarEnd *self, const gdouble *values)
{
  for (guint i = 0; i < self->config.nx; i++)
    put_pixel (self->file_row + i, self->config.nx, values + i * N_FIELDS);
  if (!gst_insar_raster_write (self->file, self->file_row, &self->file_error))
    g_clear_pointer (&self->file, gst_insar_raster_free);
}

/* A patch is in the middle of its pixel. Steps of grid=even differ by a sample,
 * so they are taken from the whole grid. */
static void
finish_file (GstInsarEnd *self)
{
  const guint n[] = {self->config.nx, self->config.ny};
  GstInsarGrid grid;

  for (guint i = 0; i < 2; i++) {
    grid.step[i] = n[i] > 1 ? (self->last[i] - self->first[i]) / (n[i] - 1) : 1;
    grid.origin[i] = self->first[i] + 0.5 - grid.step[i] / 2;
  }
  if (self->file)
    gst_insar_raster_finish (self->file, &grid, &self->file_error);
  gst_insar_raster_report (self->element, self->file_error,
      GST_OBJECT_FLAG_IS_SET (self->element, GST_ELEMENT_FLAG_SINK));
  drop_file (self);
}

/* --- a row ---------------------------------------------------------------- */

static void
extend_grid (GstInsarEnd *self, const gdouble *values)
{
  const gdouble *right = values + (self->config.nx - 1) * N_FIELDS;

  if (self->row == 0) {
    self->first[0] = values[IMK_INSARXCORR_X];
    self->first[1] = values[IMK_INSARXCORR_Y];
  }
  self->last[0] = right[IMK_INSARXCORR_X];
  self->last[1] = right[IMK_INSARXCORR_Y];
  self->origin.grid_width = self->last[0] - self->first[0];
  self->origin.grid_height = self->last[1] - self->first[1];
}

gboolean
gst_insar_end_take_row (
    GstInsarEnd *self, const gdouble *values, gdouble threshold)
{
  self->origin.min_correlation = threshold;
  if (self->wants_rasters && !self->rasters)
    self->rasters = g_try_new (
        gfloat, (gsize) self->config.nx * self->config.ny * N_PLANES);
  if (self->wants_rasters && !self->rasters) {
    GST_ELEMENT_ERROR (self->element, RESOURCE, NO_SPACE_LEFT,
        ("There is no memory for rasters of %u x %u patches. Take fewer "
         "patches (nx, ny), or the rows of the pad src alone.",
            self->config.nx, self->config.ny),
        (NULL));
    return FALSE;
  }
  if (self->row == 0 && !open_file (self))
    return FALSE;
  extend_grid (self, values);
  if (self->file)
    write_file (self, values);
  for (guint i = 0; i < self->config.nx; i++, values += N_FIELDS) {
    keep_candidate (self, values);
    if (self->rasters)
      put_pixel (self->rasters + (gsize) self->row * self->config.nx + i,
          (gsize) self->config.nx * self->config.ny, values);
  }
  self->row++;
  return TRUE;
}

/* --- the end
 * -------------------------------------------------------------------
 */

/* GMTSAR's correlation of intensities has a constant of its own; its others cut
 * amplitudes to whole numbers, and calibrated images (sigma nought) are below
 * 1. */
static void
warn_of_zeros (GstInsarEnd *self)
{
  g_autofree gchar *some =
      g_strdup_printf ("%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " patches",
          self->n_zero, self->n_with_data);
  gboolean is_time4 = self->config.mode == IMK_INSARXCORR_COMPAT &&
                      self->config.method == IMK_INSARXCORR_TIME4;
  const gchar *why =
      is_time4
          ? "method=time4 gives 0 where the correlation of the intensities is "
            "not above 1/2, as images of low coherence have. Their offsets are "
            "the corner of the search, as GMTSAR prints them. Take "
            "method=freq, method=time or mode=precise."
          : "amplitudes, less their mean, are below 1, and mode=compat cuts "
            "them to whole numbers, as GMTSAR does; that of others is chance. "
            "Take mode=precise, or scale the images.";

  GST_ELEMENT_WARNING (self->element, STREAM, FAILED,
      ("The correlation of %s is 0: %s",
          self->n_zero == self->n_with_data ? "every patch" : some, why),
      (NULL));
}

/* Wrong input that the numbers do not show: an empty image, a shift out of the
 * image, bytes in another order. */
static void
warn_of_images (GstInsarEnd *self)
{
  if (self->n_patches == 0)
    return;
  if (self->n_with_data == 0)
    GST_ELEMENT_WARNING (self->element, STREAM, FAILED,
        ("No patch has enough data in both images (min-valid). Is one of them "
         "empty, or do rshift and ashift lead out of the secondary?"),
        (NULL));
  else if (self->n_outside == self->n_patches)
    GST_ELEMENT_WARNING (self->element, STREAM, FAILED,
        ("All %" G_GUINT64_FORMAT
         " patches reach beyond an image. See rshift, ashift and the sizes in "
         "the PRM files.",
            self->n_patches),
        (NULL));
  else if (self->n_zero > MANY_ZERO * (gdouble) self->n_with_data)
    warn_of_zeros (self);
  else if (self->points->len == 0 &&
           !gst_imaging_src_pads_has (self->pads, FIT))
    GST_ELEMENT_WARNING (self->element, STREAM, FAILED,
        ("None of %" G_GUINT64_FORMAT
         " patches has a correlation above %.2f (fit-snr). Are these images of "
         "one scene, with their bytes in one order? A larger search (mode=compat "
         "searches xsearch / range-interp columns), or rshift and ashift, help "
         "when the shift is large; larger templates when the coherence is low.",
            self->n_patches, self->origin.min_correlation),
        (NULL));
}

/* Returns: (transfer full) (nullable): the fit, which is posted; without one, a
 * warning is posted if the pad exists */
static GstBuffer *
make_fit (GstInsarEnd *self)
{
  ImkInsarxcorrFit fit;
  ImkError error;

  if (self->fit_range == 0 || self->fit_azimuth == 0)
    return NULL;
  if (imk_insarxcorr_fit ((const ImkInsarxcorrPoint *) self->points->data,
          self->points->len, self->fit_range, self->fit_azimuth, &fit,
          &error) != IMK_OK) {
    GST_INFO_OBJECT (self->element, "%s", error.message);
    if (gst_imaging_src_pads_has (self->pads, FIT))
      GST_ELEMENT_WARNING (
          self->element, STREAM, FAILED, ("%s", error.message), (NULL));
    return NULL;
  }
  self->origin.is_wanted = gst_imaging_src_pads_has (self->pads, FIT);
  gst_insar_text_post_fit (self->element, self->points, &fit, &self->origin);
  return gst_insar_text_of_fit (&fit);
}

void
gst_insar_end_push (GstInsarEnd *self, GstEvent *eos, gboolean complete)
{
  GstBuffer *buffers[N_END_PADS] = {NULL};

  if (complete) {
    choose_points (self);
    buffers[FIT] = make_fit (self);
    warn_of_images (self);
    if (self->rasters)
      buffers[RASTERS] =
          gst_buffer_new_wrapped (g_steal_pointer (&self->rasters),
              (gsize) self->config.nx * self->config.ny * N_PLANES *
                  sizeof (gfloat));
    finish_file (self);
  }
  gst_insar_end_start (self);
  for (guint i = 0; i < N_END_PADS; i++) {
    GstImagingSrcPad *pad = gst_imaging_src_pads_get (self->pads, i);

    if (pad && buffers[i] &&
        gst_imaging_src_pad_negotiate (
            pad, GST_IMAGING_PREFER_OURS, caps_of (self, i)) == GST_FLOW_OK)
      gst_imaging_src_pad_push (pad, g_steal_pointer (&buffers[i]));
    if (pad)
      gst_imaging_src_pad_event (pad, eos);
    g_clear_object (&pad);
    gst_clear_buffer (&buffers[i]);
  }
}

void
gst_insar_end_reset (GstInsarEnd *self, gboolean stopped)
{
  self->row = 0;
  forget_patches (self);
  if (stopped) {
    g_clear_pointer (&self->rasters, g_free);
    drop_file (self);
  }
}
