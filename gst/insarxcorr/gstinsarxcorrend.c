/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarxcorrend.h"

#include <math.h>

#include "gstinsarxcorrtext.h"

#define N_FIELDS IMK_INSARXCORR_N_FIELDS

enum { FIT, RASTERS, N_PADS };

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

static GstStaticPadTemplate templates[N_PADS] = {
    GST_STATIC_PAD_TEMPLATE ("fit", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS ("text/x-gmtsar-prm")),
    GST_STATIC_PAD_TEMPLATE ("rasters", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS ("other/tensors, format = (string) static, num_tensors "
                         "= (int) 1, types = (string) float32")),
};

struct _GstInsarEnd {
  GstElement *element;
  GstInsarOutput *pads[N_PADS]; /* under the object lock */

  guint nx, ny;
  gint fit_range, fit_azimuth;
  GArray *points; /* ImkInsarxcorrPoint: for the fit */
  gboolean wants_rasters;
  gfloat *rasters; /* [N_PLANES][ny][nx] from the first row to the end */
  guint row;
};

/* --- pads --------------------------------------------------------------------
 */

void
gst_insar_end_add_templates (GstElementClass *klass)
{
  for (guint i = 0; i < N_PADS; i++)
    gst_element_class_add_static_pad_template (klass, &templates[i]);
}

GstInsarEnd *
gst_insar_end_new (GstElement *element)
{
  GstInsarEnd *self = g_new0 (GstInsarEnd, 1);

  self->element = element;
  self->points = g_array_new (FALSE, FALSE, sizeof (ImkInsarxcorrPoint));
  return self;
}

static void
clear_output (gpointer data)
{
  GstInsarOutput *output = data;

  gst_clear_caps (&output->caps);
  gst_clear_object (&output->pad);
}

static void
release (GstInsarOutput *output)
{
  if (output)
    g_atomic_rc_box_release_full (output, clear_output);
}

/* The reference keeps the pad from being freed while we push. */
static GstInsarOutput *
hold (GstInsarEnd *self, guint i)
{
  GstInsarOutput *output;

  GST_OBJECT_LOCK (self->element);
  output = self->pads[i] ? g_atomic_rc_box_acquire (self->pads[i]) : NULL;
  GST_OBJECT_UNLOCK (self->element);
  return output;
}

void
gst_insar_end_free (GstInsarEnd *self)
{
  for (guint i = 0; i < N_PADS; i++)
    release (self->pads[i]);
  g_array_unref (self->points);
  g_free (self->rasters);
  g_free (self);
}

GstPad *
gst_insar_end_request (GstInsarEnd *self, GstPadTemplate *template)
{
  const gchar *name = GST_PAD_TEMPLATE_NAME_TEMPLATE (template);
  guint i = g_str_equal (name, templates[FIT].name_template) ? FIT : RASTERS;
  GstInsarOutput *output = g_atomic_rc_box_new0 (GstInsarOutput);
  gboolean taken;

  gst_insar_output_init (output, template, name);
  gst_object_ref_sink (output->pad);
  GST_OBJECT_LOCK (self->element);
  taken = self->pads[i] != NULL;
  if (!taken)
    self->pads[i] = output;
  GST_OBJECT_UNLOCK (self->element);
  if (taken) {
    release (output);
    return NULL;
  }
  gst_element_add_pad (self->element, output->pad);
  return output->pad;
}

void
gst_insar_end_release (GstInsarEnd *self, GstPad *pad)
{
  GstInsarOutput *output = NULL;

  GST_OBJECT_LOCK (self->element);
  for (guint i = 0; i < N_PADS; i++)
    if (self->pads[i] && self->pads[i]->pad == pad)
      output = g_steal_pointer (&self->pads[i]);
  GST_OBJECT_UNLOCK (self->element);
  gst_pad_set_active (pad, FALSE);
  gst_element_remove_pad (self->element, pad);
  release (output);
}

gboolean
gst_insar_end_is_wanted (GstInsarEnd *self)
{
  gboolean wanted = FALSE;

  GST_OBJECT_LOCK (self->element);
  for (guint i = 0; i < N_PADS; i++)
    wanted |= self->pads[i] != NULL;
  GST_OBJECT_UNLOCK (self->element);
  return wanted;
}

/* --- rows
 * ----------------------------------------------------------------------
 */

void
gst_insar_end_begin (GstInsarEnd *self, const ImkInsarxcorrConfig *config,
    gint fit_range, gint fit_azimuth)
{
  GstInsarOutput *rasters = hold (self, RASTERS);

  self->nx = config->nx;
  self->ny = config->ny;
  self->fit_range = fit_range;
  self->fit_azimuth = fit_azimuth;
  self->row = 0;
  g_array_set_size (self->points, 0);
  g_clear_pointer (&self->rasters, g_free);
  self->wants_rasters = rasters != NULL;
  release (rasters);
}

static GstCaps *
raster_caps (GstInsarEnd *self)
{
  g_autofree gchar *dimensions =
      g_strdup_printf ("%u:%u:%u:1", self->nx, self->ny, (guint) N_PLANES);

  return gst_caps_new_simple ("other/tensors", "format", G_TYPE_STRING,
      "static", "num_tensors", G_TYPE_INT, 1, "types", G_TYPE_STRING, "float32",
      "dimensions", G_TYPE_STRING, dimensions, "framerate", GST_TYPE_FRACTION,
      0, 1, NULL);
}

void
gst_insar_end_start (GstInsarEnd *self, const gchar *upstream)
{
  for (guint i = 0; i < N_PADS; i++) {
    GstInsarOutput *output = hold (self, i);

    if (output && !output->started && (i == FIT || self->wants_rasters)) {
      GstCaps *caps = i == FIT
                          ? gst_static_pad_template_get_caps (&templates[i])
                          : raster_caps (self);

      gst_insar_output_start (output, caps, upstream);
      gst_insar_output_gap (output);
      gst_caps_unref (caps);
    }
    release (output);
  }
}

/* The fit is made from the three decimals that are printed, as GMTSAR's is. */
static gdouble
round_printed (gdouble value)
{
  return rint (value * 1000) / 1000;
}

/* Those that are to be trusted. */
static void
keep_point (GstInsarEnd *self, const gdouble *values)
{
  guint flags = (guint) values[IMK_INSARXCORR_FLAGS];
  ImkInsarxcorrPoint point = {
      .x = values[IMK_INSARXCORR_X],
      .y = values[IMK_INSARXCORR_Y],
      .dx = round_printed (values[IMK_INSARXCORR_DX]),
      .dy = round_printed (values[IMK_INSARXCORR_DY]),
  };

  if (!(flags & (IMK_INSARXCORR_INVALID_MASK | IMK_INSARXCORR_LOW)))
    g_array_append_val (self->points, point);
}

/* Where there is no data there is no number either. */
static void
keep_pixel (GstInsarEnd *self, guint column, const gdouble *values)
{
  gsize n = (gsize) self->nx * self->ny;
  gfloat *pixel = self->rasters + (gsize) self->row * self->nx + column;
  ImkInsarxcorrState state =
      imk_insarxcorr_state ((guint32) values[IMK_INSARXCORR_FLAGS]);

  for (guint i = 0; i < G_N_ELEMENTS (planes); i++)
    pixel[i * n] = state == IMK_INSARXCORR_STATE_NO_DATA
                       ? NAN
                       : (gfloat) values[planes[i]];
  pixel[G_N_ELEMENTS (planes) * n] = (gfloat) state;
}

gboolean
gst_insar_end_take_row (GstInsarEnd *self, const gdouble *values)
{
  if (self->wants_rasters && !self->rasters)
    self->rasters = g_try_new (gfloat, (gsize) self->nx * self->ny * N_PLANES);
  if (self->wants_rasters && !self->rasters) {
    GST_ELEMENT_ERROR (self->element, RESOURCE, NO_SPACE_LEFT,
        ("There is no memory for rasters of %u x %u patches. Take fewer "
         "patches (nx, ny), or the rows of the pad src alone.",
            self->nx, self->ny),
        (NULL));
    return FALSE;
  }
  for (guint i = 0; i < self->nx; i++, values += N_FIELDS) {
    keep_point (self, values);
    if (self->rasters)
      keep_pixel (self, i, values);
  }
  self->row++;
  return TRUE;
}

/* --- the end
 * -------------------------------------------------------------------
 */

/* Without a fit to be had, who asked for it is told why. */
static void
push_fit (GstInsarEnd *self, GstInsarOutput *output)
{
  ImkInsarxcorrFit fit;
  ImkError error;

  if (self->fit_range == 0 || self->fit_azimuth == 0)
    return;
  if (imk_insarxcorr_fit ((const ImkInsarxcorrPoint *) self->points->data,
          self->points->len, self->fit_range, self->fit_azimuth, &fit,
          &error) != IMK_OK) {
    GST_INFO_OBJECT (self->element, "%s", error.message);
    if (output)
      GST_ELEMENT_WARNING (
          self->element, STREAM, FAILED, ("%s", error.message), (NULL));
    return;
  }
  gst_element_post_message (
      self->element, gst_message_new_element (GST_OBJECT (self->element),
                         gst_insar_text_describe_fit (&fit)));
  if (output && gst_pad_is_linked (output->pad))
    gst_pad_push (output->pad, gst_insar_text_of_fit (&fit));
}

static void
push_rasters (GstInsarEnd *self, GstInsarOutput *output)
{
  gsize size = (gsize) self->nx * self->ny * N_PLANES * sizeof (gfloat);

  if (output && self->rasters && gst_pad_is_linked (output->pad))
    gst_pad_push (output->pad,
        gst_buffer_new_wrapped (g_steal_pointer (&self->rasters), size));
}

void
gst_insar_end_push (GstInsarEnd *self, gboolean complete, const gchar *upstream)
{
  GstInsarOutput *fit = hold (self, FIT), *rasters = hold (self, RASTERS);

  gst_insar_end_start (self, upstream);
  if (complete) {
    push_fit (self, fit);
    push_rasters (self, rasters);
  }
  if (fit)
    gst_insar_output_eos (fit, upstream);
  if (rasters)
    gst_insar_output_eos (rasters, upstream);
  release (fit);
  release (rasters);
}

void
gst_insar_end_push_event (GstInsarEnd *self, GstEvent *event)
{
  for (guint i = 0; i < N_PADS; i++) {
    GstInsarOutput *output = hold (self, i);

    if (output)
      gst_pad_push_event (output->pad, gst_event_ref (event));
    release (output);
  }
}

void
gst_insar_end_reset (GstInsarEnd *self, gboolean stopped)
{
  for (guint i = 0; i < N_PADS; i++) {
    GstInsarOutput *output = hold (self, i);

    if (output)
      gst_insar_output_reset (output, stopped);
    release (output);
  }
  self->row = 0;
  g_array_set_size (self->points, 0);
  if (stopped)
    g_clear_pointer (&self->rasters, g_free);
}
