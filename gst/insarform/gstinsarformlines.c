/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What insarform does while lines come: the thread that brings lines waits
 * until they are taken, the one that brings the missing ones takes them. */
#include "gstinsarform-private.h"

#define GST_CAT_DEFAULT gst_insar_form_debug

#define BRIGHTEST 2.5 /* times the mean */

/* --- the end -------------------------------------------------------------- */

/* The sums go on over all rows. */
static void
add_to_means (GstInsarFormMeans *means, const gfloat *cell, guint n)
{
  for (guint i = 0; i < n; i++, cell += IMK_INSARFORM_N_CHANNELS)
    if (cell[IMK_INSARFORM_AMPLITUDE] > 0) {
      means->amplitude += cell[IMK_INSARFORM_AMPLITUDE];
      means->coherence += cell[IMK_INSARFORM_COHERENCE];
      means->n++;
    }
}

static void
post_summary (GstInsarForm *self, const GstInsarFormMeans *means)
{
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("insarform-summary", "width", G_TYPE_UINT,
              self->cells.width, "height", G_TYPE_UINT, self->cells.height,
              "with-data", G_TYPE_UINT64, means->n, "mean-coherence",
              G_TYPE_DOUBLE, means->coherence, "mean-amplitude", G_TYPE_DOUBLE,
              means->amplitude, NULL)));
  if (means->n == 0)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("No cell has data in both images. Is one of them empty, or was the "
         "secondary resampled to where the reference is not?"),
        (NULL));
}

/* By the busy thread, without the lock: there is an image.
 * Returns: the combined flow of the pads, GST_FLOW_NOT_LINKED when none is
 * linked */
static GstFlowReturn
push_pictures (GstInsarForm *self)
{
  GstFlowReturn flow = GST_FLOW_NOT_LINKED;

  if (self->cells.n_kept < self->cells.height) {
    if (gst_insar_form_has_pads (self))
      GST_ELEMENT_WARNING (self, CORE, PAD,
          ("The pads were requested after the caps of the images, when only "
           "files were wanted, so they have no output. Request them before."),
          (NULL));
    return flow;
  }
  for (guint i = 0; i < GST_INSAR_N_PICTURES; i++) {
    GstImagingSrcPad *output = gst_imaging_src_pads_get (self->base.outputs, i);

    if (output)
      flow = gst_imaging_src_pads_combine (self->base.outputs, i, output,
          gst_insar_picture_push (output, i, &self->cells, &self->pair), flow);
    g_clear_object (&output);
  }
  return flow;
}

/* After all pictures, or when too few lines came. */
static void
push_end (GstElement *element, GstEvent *eos, gboolean complete)
{
  gst_imaging_src_pads_event (GST_INSAR_FORM (element)->base.outputs, eos);
}

/* Under the lock, which is released meanwhile: all cells are complete. */
static void
finish (GstInsarForm *self)
{
  GstInsarPair *pair = &self->pair;
  GstInsarFormMeans means = self->means;
  gdouble full = self->open_settings.amplitude_max;
  GstEvent *eos = gst_event_new_eos ();
  GstFlowReturn flow;

  if (pair->seqnum != GST_SEQNUM_INVALID)
    gst_event_set_seqnum (eos, pair->seqnum);
  means.amplitude /= (gdouble) MAX (means.n, 1);
  means.coherence /= (gdouble) MAX (means.n, 1);
  if (full <= 0)
    full = means.n ? BRIGHTEST * means.amplitude : 1;
  self->cells.full = (gfloat) full;
  pair->is_done = pair->is_busy = TRUE;
  g_mutex_unlock (&pair->lock);
  gst_insar_form_rasters_finish (self);
  post_summary (self, &means);
  flow = push_pictures (self);
  gst_insar_raster_report (
      GST_ELEMENT (self), self->raster_error, flow == GST_FLOW_NOT_LINKED);
  g_clear_error (&self->raster_error);
  /* before EOS, which would look like that of a complete run */
  if (flow == GST_FLOW_NOT_NEGOTIATED || flow == GST_FLOW_ERROR)
    GST_ELEMENT_FLOW_ERROR (self, flow);
  push_end (GST_ELEMENT (self), eos, TRUE);
  gst_imaging_element_post_eos (&self->base, eos);
  gst_event_unref (eos);
  g_mutex_lock (&pair->lock);
  /* no linked pad is no failure: the summary has been posted */
  pair->flow =
      flow == GST_FLOW_OK || flow == GST_FLOW_NOT_LINKED ? GST_FLOW_EOS : flow;
  gst_insar_pair_end_work (pair);
}

/* --- lines ---------------------------------------------------------------- */

static gboolean
is_complete (GstElement *element)
{
  GstInsarForm *self = GST_INSAR_FORM (element);

  return self->kernel && imk_insarform_row (self->kernel) == self->cells.height;
}

static void
drop_lines (ImkImage *lines, guint n)
{
  lines->data = (guint8 *) lines->data + n * lines->stride;
  lines->height -= n;
}

/* Under the lock: both sides have lines. */
static ImkStatus
form_cells (GstInsarForm *self, ImkError *error)
{
  ImkImage *ref = &self->lines[GST_INSAR_REFERENCE];
  ImkImage *sec = &self->lines[GST_INSAR_SECONDARY];
  GstClockTime entered = gst_util_get_timestamp ();
  guint n =
      MIN (MIN (ref->height, sec->height), imk_insarform_room (self->kernel));
  ImkImage a = *ref, b = *sec, phase;
  ImkStatus status = IMK_OK;

  if (self->flat)
    n = MIN (n, GST_INSAR_FORM_FLAT_LINES);
  a.height = b.height = n;
  if (n > 0 && self->flat)
    phase = gst_insar_form_flat_lines (
        self->flat, imk_insarform_pushed (self->kernel), n);
  if (n > 0)
    status = imk_insarform_push (
        self->kernel, &a, &b, self->flat ? &phase : NULL, error);
  drop_lines (ref, n);
  drop_lines (sec, n);
  while (status == IMK_OK && imk_insarform_is_ready (self->kernel)) {
    guint row = imk_insarform_row (self->kernel);
    gsize row_size = (gsize) self->cells.width * IMK_INSARFORM_N_CHANNELS;
    gfloat *cells = self->cells.values + row % self->cells.n_kept * row_size;
    ImkImage out = {
        .data = cells,
        .stride = row_size * sizeof (gfloat),
        .width = self->cells.width,
        .height = 1,
        .channels = IMK_INSARFORM_N_CHANNELS,
        .type = IMK_TYPE_F32,
    };

    if (row == 0) {
      self->means = (GstInsarFormMeans){0};
      status = gst_insar_form_rasters_open (self, error);
    }
    if (status == IMK_OK)
      status = imk_insarform_process (self->kernel, &out, error);
    if (status == IMK_OK) {
      add_to_means (&self->means, cells, self->cells.width);
      gst_insar_form_rasters_write (self, cells);
    }
  }
  gst_imaging_engine_count_frame (self->base.engine, entered);
  return status;
}

/* Under the lock: both sides have lines. */
static void
take_both (GstInsarForm *self)
{
  ImkError error;

  if (form_cells (self, &error) != IMK_OK) {
    gst_imaging_engine_post_error (self->base.engine, error.code, &error);
    self->pair.flow = GST_FLOW_ERROR;
  } else {
    gst_insar_pair_report (&self->pair, "insarform-progress",
        imk_insarform_row (self->kernel), self->cells.height);
    if (is_complete (GST_ELEMENT (self)))
      finish (self);
  }
  g_cond_broadcast (&self->pair.changed);
}

static GstFlowReturn
take_lines (GstElement *element, guint side, ImkImage lines)
{
  GstInsarForm *self = GST_INSAR_FORM (element);
  GstInsarPair *pair = &self->pair;
  const ImkImage *other = &self->lines[!side];
  ImkImage *own = &self->lines[side];
  GstFlowReturn flow;

  *own = lines;
  g_cond_broadcast (&pair->changed);
  while ((flow = gst_insar_pair_flow (pair, side)) == GST_FLOW_OK &&
         own->height > 0) {
    if (pair->is_busy || !self->kernel || other->height == 0)
      g_cond_wait (&pair->changed, &pair->lock);
    else
      take_both (self);
  }
  own->height = 0;
  return flow;
}

/* What the other side waits for with old lines does not come. */
static void
rewind_kernel (GstElement *element, guint side)
{
  GstInsarForm *self = GST_INSAR_FORM (element);

  if (self->pair.sides[!side].is_stale)
    self->lines[!side].height = 0;
  gst_insar_pair_take_settings (&self->pair, side);
  if (self->kernel)
    imk_insarform_rewind (self->kernel);
}

const GstInsarPairFuncs gst_insar_form_pair_funcs = {
    .open = gst_insar_form_open,
    .take_lines = take_lines,
    .is_complete = is_complete,
    .rewind = rewind_kernel,
    .push_end = push_end,
};
