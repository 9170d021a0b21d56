/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructcommands.h"

#include <string.h>

#include "gstimagingmetadata.h"
#include "gstimagingquantity.h"
#include "gstshreconstructtensors.h"

void
gst_sh_reconstruct_commands_take (
    GstShReconstructCommands *self, GstShReconstructPlan *plan)
{
  self->n = plan->n_outputs;
  g_free (self->map);
  self->map = g_steal_pointer (&plan->map);
}

void
gst_sh_reconstruct_commands_set_caps (
    GstShReconstructCommands *self, GstCaps *caps)
{
  self->fps_n = 0;
  self->fps_d = 1;
  gst_structure_get_fraction (gst_caps_get_structure (caps, 0), "framerate",
      &self->fps_n, &self->fps_d);
  self->n_sent = 0; /* the frame rate may be another one */
}

static gboolean
make_pool (GstShReconstructCommands *self, GstCaps *caps)
{
  GstStructure *config;

  gst_imaging_pool_clear (&self->pool);
  self->pool = gst_buffer_pool_new ();
  config = gst_buffer_pool_get_config (self->pool);
  gst_buffer_pool_config_set_params (
      config, caps, self->n * (guint) sizeof (gfloat), 0, 0);
  return gst_buffer_pool_set_config (self->pool, config) &&
         gst_buffer_pool_set_active (self->pool, TRUE);
}

gboolean
gst_sh_reconstruct_commands_send_caps (GstShReconstructCommands *self)
{
  GstCaps *caps;
  gboolean ok;

  if (self->n_sent == self->n)
    return TRUE;
  caps = gst_sh_reconstruct_commands_caps (self->n, self->fps_n, self->fps_d);
  ok = make_pool (self, caps);
  /* a pad that is not linked has them when it is */
  gst_pad_push_event (self->pad, gst_event_new_caps (caps));
  gst_caps_unref (caps);
  if (ok)
    self->n_sent = self->n;
  return ok;
}

void
gst_sh_reconstruct_commands_prepare (
    GstShReconstructCommands *self, GstShReconstructFrame *f)
{
  if (f->out || f->acquired != GST_FLOW_OK)
    return;
  f->acquired = gst_buffer_pool_acquire_buffer (self->pool, &f->out, NULL);
  if (f->acquired != GST_FLOW_OK)
    return;
  gst_imaging_metadata_pass (f->out, f->in, FALSE);
  gst_imaging_engine_sign (self->engine, f->out);
  gst_imaging_quantity_keep (f->out); /* the pool is ours alone */
}

void
gst_sh_reconstruct_commands_fill (GstShReconstructCommands *self,
    GstShReconstructFrame *f, const gfloat *values)
{
  GstMapInfo out;
  gfloat *to;

  gst_buffer_map (f->out, &out, GST_MAP_WRITE); /* our memory: cannot fail */
  to = (gfloat *) (gpointer) out.data;
  if (!self->map)
    memcpy (to, values, self->n * sizeof (*to));
  else
    for (guint i = 0; i < self->n; i++)
      to[i] = self->map[i] < 0 ? 0 : values[self->map[i]];
  gst_buffer_unmap (f->out, &out);
}

void
gst_sh_reconstruct_commands_stop (GstShReconstructCommands *self)
{
  gst_imaging_pool_clear (&self->pool);
  g_clear_pointer (&self->map, g_free);
  self->n = self->n_sent = 0;
}
