/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settings and formats that many B-scans share by reference. This keeps a work
 * item small: three threads read it, each into its own cache. */
#include "gstoctbscanoutput.h"
#include "gstoctbscanplan.h"

static GstOctBscanSnapshot *
snapshot_copy (GstOctBscanSnapshot *from)
{
  GstOctBscanSnapshot *snapshot =
      g_atomic_rc_box_dup (sizeof (GstOctBscanSnapshot), from);

  snapshot->settings_hash = g_strdup (from->settings_hash);
  if (from->config.live_dispersion)
    snapshot->config.live_dispersion = snapshot->live;
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (snapshot->pads[i])
      gst_object_ref (snapshot->pads[i]);
  return snapshot;
}

static void
snapshot_clear (gpointer data)
{
  GstOctBscanSnapshot *snapshot = data;

  for (guint i = 0; i < N_OUTPUTS; i++)
    g_clear_object (&snapshot->pads[i]);
  g_free (snapshot->settings_hash);
}

void
gst_oct_bscan_snapshot_unref (GstOctBscanSnapshot *snapshot)
{
  g_atomic_rc_box_release_full (snapshot, snapshot_clear);
}

/* Call with the object locked. */
static gboolean
are_current (const GstOctBscan *self, const GstOctBscanSnapshot *snapshot)
{
  return snapshot && snapshot->changes == self->n_changes &&
         snapshot->auto_serial == self->range.serial &&
         snapshot->config.history == self->history &&
         snapshot->pads_serial ==
             gst_imaging_src_pads_serial (self->base.outputs);
}

static void
take_formats (GstOctBscanSnapshot *snapshot)
{
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (snapshot->pads[i]) {
      snapshot->is_float[i] = snapshot->pads[i]->is_float;
      snapshot->info[i] = snapshot->pads[i]->info;
    }
  if (snapshot->pads[ENFACE])
    snapshot->volume = snapshot->pads[ENFACE]->volume;
}

/* Once found, the ends count as fixed ones. */
static void
take_range (const GstOctBscan *self, GstOctBscanSnapshot *snapshot)
{
  ImkOctbscanConfig *c = &snapshot->config;

  snapshot->auto_range = c->range == IMK_OCTBSCAN_RANGE_AUTO;
  if (!snapshot->auto_range)
    return;
  c->auto_bscans = self->range.n;
  if (self->range.n >= GST_OCT_BSCAN_AUTO)
    c->range = IMK_OCTBSCAN_RANGE_FIXED;
  if (self->range.n == 0)
    return;
  c->range_min = self->range.ends[0];
  c->range_max = self->range.ends[1];
  c->linear_min = self->range.ends[2];
  c->linear_max = self->range.ends[3];
}

/* Call with the engine locked. */
static GstOctBscanSnapshot *
snapshot_new (GstOctBscan *self)
{
  GstOctBscanSnapshot *snapshot = g_atomic_rc_box_new0 (GstOctBscanSnapshot);

  snapshot->changes = self->n_changes;
  snapshot->config = gst_oct_bscan_plan_values (self->plan);
  snapshot->config.history = self->history;
  if (self->plan->config.live_dispersion) {
    memcpy (snapshot->live, self->plan->live, sizeof (snapshot->live));
    snapshot->config.live_dispersion = snapshot->live;
  }
  snapshot->scaling = self->now->scaling;
  snapshot->average_bscans = self->now->average_bscans;
  snapshot->refractive_index = self->now->refractive_index;
  snapshot->depth = gst_oct_bscan_depth_axis (self);
  snapshot->lateral = gst_oct_bscan_lateral_axis (self);
  memcpy (snapshot->wavelengths, self->wavelengths, sizeof (self->wavelengths));
  snapshot->element = gst_imaging_origin_element (GST_ELEMENT (self));
  snapshot->settings_hash =
      g_strdup (gst_imaging_settings_hash (self->base.settings));
  GST_OBJECT_LOCK (self);
  snapshot->auto_serial = self->range.serial;
  take_range (self, snapshot);
  GST_OBJECT_UNLOCK (self);
  snapshot->pads_serial = gst_imaging_src_pads_serial (self->base.outputs);
  for (guint i = 0; i < N_OUTPUTS; i++)
    snapshot->pads[i] =
        GST_OCT_BSCAN_PAD (gst_imaging_src_pads_get (self->base.outputs, i));
  take_formats (snapshot);
  return snapshot;
}

GstOctBscanSnapshot *
gst_oct_bscan_get_snapshot (GstOctBscan *self)
{
  gboolean is_current;

  GST_OBJECT_LOCK (self);
  is_current = are_current (self, self->snapshot);
  GST_OBJECT_UNLOCK (self);
  if (!is_current) {
    gst_oct_bscan_forget_snapshot (self);
    g_mutex_lock (&self->engine_lock);
    self->snapshot = snapshot_new (self);
    g_mutex_unlock (&self->engine_lock);
  }
  return g_atomic_rc_box_acquire (self->snapshot);
}

void
gst_oct_bscan_renew_formats (GstOctBscan *self, GstOctBscanSnapshot **snapshot)
{
  GstOctBscanSnapshot *renewed = snapshot_copy (*snapshot);

  take_formats (renewed);
  gst_oct_bscan_snapshot_unref (*snapshot);
  gst_oct_bscan_forget_snapshot (self);
  *snapshot = renewed;
  self->snapshot = g_atomic_rc_box_acquire (renewed);
}

void
gst_oct_bscan_forget_snapshot (GstOctBscan *self)
{
  g_clear_pointer (&self->snapshot, gst_oct_bscan_snapshot_unref);
}
