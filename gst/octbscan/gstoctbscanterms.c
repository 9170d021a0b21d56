/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What B-scans have in common: a B-scan's own work is small then, as every line
 * of it goes from the cache of the thread that brings it to those that launch
 * it and push it. */
#include "gstoctbscan-private.h"

static GstOctBscanTerms *
terms_copy (const GstOctBscanTerms *from)
{
  GstOctBscanTerms *terms = g_new (GstOctBscanTerms, 1);

  /* all but the count, which B-scans that leave change meanwhile */
  *terms = (GstOctBscanTerms){
      .ref_count = 1,
      .changes = from->changes,
      .config = from->config,
      .scaling = from->scaling,
      .auto_range = from->auto_range,
      .auto_serial = from->auto_serial,
      .average_bscans = from->average_bscans,
      .volume = from->volume,
  };
  if (from->config.live_dispersion) {
    memcpy (terms->live, from->live, sizeof (terms->live));
    terms->config.live_dispersion = terms->live;
  }
  for (guint i = 0; i < N_OUTPUTS; i++) {
    terms->pads[i] = from->pads[i] ? gst_object_ref (from->pads[i]) : NULL;
    terms->info[i] = from->info[i];
  }
  return terms;
}

static GstOctBscanTerms *
terms_ref (GstOctBscanTerms *terms)
{
  g_atomic_int_inc (&terms->ref_count);
  return terms;
}

void
gst_oct_bscan_terms_unref (GstOctBscanTerms *terms)
{
  if (!g_atomic_int_dec_and_test (&terms->ref_count))
    return;
  for (guint i = 0; i < N_OUTPUTS; i++)
    g_clear_object (&terms->pads[i]);
  g_free (terms);
}

/* Call with the object locked. */
static gboolean
are_current (const GstOctBscan *self, const GstOctBscanTerms *terms)
{
  if (!terms || terms->changes != self->n_changes ||
      terms->auto_serial != self->auto_serial ||
      terms->config.history != self->history)
    return FALSE;
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (terms->pads[i] != self->outputs[i].pad)
      return FALSE;
  return TRUE;
}

static void
take_formats (const GstOctBscan *self, GstOctBscanTerms *terms)
{
  for (guint i = 0; i < N_OUTPUTS; i++)
    terms->info[i] = self->outputs[i].info;
  terms->volume = self->outputs[ENFACE].volume;
}

/* Ends that have been found are as good as any that are set. */
static void
take_range (const GstOctBscan *self, GstOctBscanTerms *terms)
{
  ImkOctbscanConfig *c = &terms->config;

  terms->auto_range = c->range == IMK_OCTBSCAN_RANGE_AUTO;
  if (!terms->auto_range)
    return;
  c->auto_bscans = self->auto_n;
  if (self->auto_n >= GST_OCT_BSCAN_AUTO)
    c->range = IMK_OCTBSCAN_RANGE_FIXED;
  if (self->auto_n == 0)
    return;
  c->range_min = self->auto_ends[0];
  c->range_max = self->auto_ends[1];
  c->linear_min = self->auto_ends[2];
  c->linear_max = self->auto_ends[3];
}

/* Call with the frames and the object locked. */
static GstOctBscanTerms *
terms_new (const GstOctBscan *self)
{
  GstOctBscanTerms now = {
      .changes = self->n_changes,
      .config = self->now->config,
      .scaling = self->now->scaling,
      .auto_serial = self->auto_serial,
      .average_bscans = self->now->average_bscans,
  };

  now.config.history = self->history;
  now.config.averages_bscans = self->now->average_bscans > 1;
  take_range (self, &now);
  memcpy (now.live, self->live, sizeof (now.live));
  now.config.live_dispersion = self->is_live ? now.live : NULL;
  for (guint i = 0; i < N_OUTPUTS; i++)
    now.pads[i] = self->outputs[i].pad;
  take_formats (self, &now);
  return terms_copy (&now);
}

GstOctBscanTerms *
gst_oct_bscan_get_terms (GstOctBscan *self)
{
  gboolean is_current;

  GST_OBJECT_LOCK (self);
  is_current = are_current (self, self->terms);
  GST_OBJECT_UNLOCK (self);
  if (!is_current) {
    gst_oct_bscan_forget_terms (self);
    /* who requests a pad may be agreeing on its format */
    g_mutex_lock (&self->frames);
    GST_OBJECT_LOCK (self);
    self->terms = terms_new (self);
    GST_OBJECT_UNLOCK (self);
    g_mutex_unlock (&self->frames);
  }
  return terms_ref (self->terms);
}

void
gst_oct_bscan_renew_formats (GstOctBscan *self, GstOctBscanTerms **terms)
{
  GstOctBscanTerms *renewed = terms_copy (*terms);

  take_formats (self, renewed);
  gst_oct_bscan_terms_unref (*terms);
  gst_oct_bscan_forget_terms (self);
  *terms = renewed;
  self->terms = terms_ref (renewed);
}

void
gst_oct_bscan_forget_terms (GstOctBscan *self)
{
  g_clear_pointer (&self->terms, gst_oct_bscan_terms_unref);
}
