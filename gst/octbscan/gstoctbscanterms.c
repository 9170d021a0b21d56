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
      .pads_serial = from->pads_serial,
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
  return terms && terms->changes == self->n_changes &&
         terms->auto_serial == self->auto_serial &&
         terms->config.history == self->history &&
         terms->pads_serial == gst_imaging_src_pads_serial (self->pads);
}

static void
take_formats (GstOctBscanTerms *terms)
{
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (terms->pads[i])
      terms->info[i] = terms->pads[i]->info;
  if (terms->pads[ENFACE])
    terms->volume = terms->pads[ENFACE]->volume;
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

/* Call with the frames locked. */
static GstOctBscanTerms *
terms_new (GstOctBscan *self)
{
  GstOctBscanTerms *terms;
  GstOctBscanTerms now = {
      .changes = self->n_changes,
      .config = self->now->config,
      .scaling = self->now->scaling,
      .average_bscans = self->now->average_bscans,
      .pads_serial = gst_imaging_src_pads_serial (self->pads),
  };

  now.config.history = self->history;
  now.config.averages_bscans = self->now->average_bscans > 1;
  GST_OBJECT_LOCK (self);
  now.auto_serial = self->auto_serial;
  take_range (self, &now);
  GST_OBJECT_UNLOCK (self);
  memcpy (now.live, self->live, sizeof (now.live));
  now.config.live_dispersion = self->is_live ? now.live : NULL;
  for (guint i = 0; i < N_OUTPUTS; i++)
    now.pads[i] = GST_OCT_BSCAN_PAD (gst_imaging_src_pads_get (self->pads, i));
  take_formats (&now);
  terms = terms_copy (&now);
  for (guint i = 0; i < N_OUTPUTS; i++)
    g_clear_object (&now.pads[i]);
  return terms;
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
    g_mutex_lock (&self->frames);
    self->terms = terms_new (self);
    g_mutex_unlock (&self->frames);
  }
  return terms_ref (self->terms);
}

void
gst_oct_bscan_renew_formats (GstOctBscan *self, GstOctBscanTerms **terms)
{
  GstOctBscanTerms *renewed = terms_copy (*terms);

  take_formats (renewed);
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
