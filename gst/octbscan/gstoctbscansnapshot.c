/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settings and formats that many B-scans share by reference. This keeps a work
 * item small: three threads read it, each into its own cache. */
#include "gstoctbscanoutput.h"
#include "gstoctbscanplan.h"

static GstOctBscanSnapshot *
snapshot_ref (GstOctBscanSnapshot *snapshot)
{
  g_atomic_int_inc (&snapshot->count);
  return snapshot;
}

void
gst_oct_bscan_snapshot_unref (GstOctBscanSnapshot *snapshot)
{
  if (!g_atomic_int_dec_and_test (&snapshot->count))
    return;
  for (guint i = 0; i < N_OUTPUTS; i++)
    g_clear_object (&snapshot->pads[i]);
  g_free (snapshot->settings_hash);
  g_free (snapshot);
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
  const GstOctBscanPlan *plan = self->in_use.plan;
  GstOctBscanSnapshot *now = g_new (GstOctBscanSnapshot, 1);

  *now = (GstOctBscanSnapshot){
      .changes = self->in_use.n_changes,
      .config = imk_octbscan_without_pointers (&plan->config),
      .scaling = self->in_use.now->scaling,
      .average_bscans = self->in_use.now->average_bscans,
      .element = gst_imaging_origin_element (GST_ELEMENT (self)),
      .settings_hash =
          g_strdup (gst_imaging_settings_hash (self->base.settings)),
      .pads_serial = gst_imaging_src_pads_serial (self->base.outputs),
      .depth = gst_oct_bscan_depth_axis (self),
      .lateral = gst_oct_bscan_lateral_axis (self),
      .refractive_index = self->in_use.now->refractive_index,
      .count = 1,
  };
  now->config.history = self->input.history;
  GST_OBJECT_LOCK (self);
  now->auto_serial = self->range.serial;
  take_range (self, now);
  GST_OBJECT_UNLOCK (self);
  memcpy (
      now->wavelengths, self->shared.wavelengths, sizeof (now->wavelengths));
  memcpy (now->live, plan->live, sizeof (now->live));
  if (plan->config.live_dispersion)
    now->config.live_dispersion = now->live;
  for (guint i = 0; i < N_OUTPUTS; i++)
    now->pads[i] =
        GST_OCT_BSCAN_PAD (gst_imaging_src_pads_get (self->base.outputs, i));
  take_formats (now);
  return now;
}

GstOctBscanSnapshot *
gst_oct_bscan_get_snapshot (GstOctBscan *self)
{
  const GstOctBscanSnapshot *last = self->shared.snapshot;
  gboolean is_current;

  GST_OBJECT_LOCK (self);
  is_current =
      last && last->changes == self->in_use.n_changes &&
      last->auto_serial == self->range.serial &&
      last->config.history == self->input.history &&
      last->pads_serial == gst_imaging_src_pads_serial (self->base.outputs);
  GST_OBJECT_UNLOCK (self);
  if (!is_current) {
    gst_oct_bscan_forget_snapshot (self);
    g_mutex_lock (&self->engine_lock);
    self->shared.snapshot = snapshot_new (self);
    g_mutex_unlock (&self->engine_lock);
  }
  return snapshot_ref (self->shared.snapshot);
}

void
gst_oct_bscan_renew_formats (GstOctBscan *self, GstOctBscanSnapshot **snapshot)
{
  GstOctBscanSnapshot *renewed = g_new (GstOctBscanSnapshot, 1);

  /* other threads change the count meanwhile */
  memcpy (renewed, *snapshot, G_STRUCT_OFFSET (GstOctBscanSnapshot, count));
  renewed->count = 1;
  renewed->settings_hash = g_strdup (renewed->settings_hash);
  if (renewed->config.live_dispersion)
    renewed->config.live_dispersion = renewed->live;
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (renewed->pads[i])
      gst_object_ref (renewed->pads[i]);
  take_formats (renewed);
  gst_oct_bscan_snapshot_unref (*snapshot);
  gst_oct_bscan_forget_snapshot (self);
  *snapshot = renewed;
  self->shared.snapshot = snapshot_ref (renewed);
}

void
gst_oct_bscan_forget_snapshot (GstOctBscan *self)
{
  g_clear_pointer (&self->shared.snapshot, gst_oct_bscan_snapshot_unref);
}
