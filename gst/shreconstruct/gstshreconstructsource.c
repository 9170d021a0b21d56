/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructsource.h"

gboolean
gst_sh_reconstruct_source_set_caps (GstShReconstructSource *self, GstCaps *caps)
{
  GstShReconstructSensor *sensor = &self->sensor;

  sensor->is_tensor = gst_structure_has_name (
      gst_caps_get_structure (caps, 0), "other/tensors");
  sensor->n_cells = gst_sh_reconstruct_cells_of_caps (caps, &sensor->shape);
  if (!sensor->is_tensor || sensor->n_cells > 0) {
    self->is_refused = FALSE;
    return TRUE;
  }
  if (self->is_refused)
    return FALSE;
  self->is_refused = TRUE;
  GST_ELEMENT_ERROR (self->kernel->element, STREAM, FORMAT,
      ("These tensors are no slopes, which have [2, cells] or [2 cells] "
       "numbers. Set fields=slopes on shcentroid."),
      ("%" GST_PTR_FORMAT, caps));
  return FALSE;
}

ImkStatus
gst_sh_reconstruct_source_follow_cells (GstShReconstructSource *self,
    const GstShReconstructFrame *f, const GstShReconstructSettings *s,
    ImkError *error)
{
  GstShReconstructKernel *kernel = self->kernel;
  guint n_cells;

  if (!kernel->is_idle && self->sensor.n_cells)
    return IMK_OK;
  n_cells = self->sensor.is_tensor
                ? self->sensor.n_cells
                : gst_sh_reconstruct_cells_of_frame (f->in, s->results);
  if (!kernel->is_idle && n_cells > 0)
    return gst_sh_reconstruct_kernel_check_cells (kernel, n_cells, error);
  if (n_cells == 0 || n_cells == kernel->n_cells)
    return IMK_OK;
  self->sensor.n_cells = n_cells;
  return gst_imaging_engine_renew (kernel->element->engine, error);
}

static GstShReconstructInput
find_input (
    const GstShReconstructSource *self, const GstShReconstructSettings *s)
{
  const GstShReconstructOrder order =
      s->input_order == GST_SH_RECONSTRUCT_ORDER_AUTO ? self->kernel->order
                                                      : s->input_order;

  if (!self->sensor.is_tensor)
    return GST_SH_RECONSTRUCT_INPUT_METADATA;
  if (self->sensor.shape == GST_SH_RECONSTRUCT_SHAPE_TWO_ROWS)
    return GST_SH_RECONSTRUCT_INPUT_X_THEN_Y;
  return self->sensor.shape == GST_SH_RECONSTRUCT_SHAPE_PAIRS ||
                 order == GST_SH_RECONSTRUCT_ORDER_INTERLEAVED
             ? GST_SH_RECONSTRUCT_INPUT_INTERLEAVED
             : GST_SH_RECONSTRUCT_INPUT_X_THEN_Y;
}

static ImkStatus
open_named (GstShReconstructSource *self, GstShReconstructFrame *f,
    const GstShReconstructSettings *s, const gchar *name, ImkError *error)
{
  ImkStatus status = gst_sh_reconstruct_slopes_open (&f->slopes, f->in,
      find_input (self, s), name, self->kernel->n_cells, error);

  return status == IMK_OK ? gst_sh_reconstruct_lenslets_follow (
                                self->kernel->lenslets, &f->slopes, error)
                          : status;
}

/* Once for each name. */
static void
warn_of_name (
    GstShReconstructSource *self, const gchar *refused, const ImkError *why)
{
  const gboolean is_named = self->name != NULL;

  if (self->refused && g_strcmp0 (self->refused, refused) == 0)
    return;
  g_free (self->refused);
  self->refused = g_strdup (refused ? refused : "");
  GST_ELEMENT_WARNING (self->kernel->element, LIBRARY, SETTINGS,
      ("results=%s is not used until it fits: %s Until then the slopes%s%s%s "
       "as before are used.",
          self->refused, why->message, is_named ? " of \"" : "",
          is_named ? self->name : "", is_named ? "\"" : ""),
      (NULL));
}

static void
set_name (GstShReconstructSource *self, const gchar *name)
{
  g_free (self->name);
  self->name = g_strdup (name);
  g_clear_pointer (&self->refused, g_free);
}

ImkStatus
gst_sh_reconstruct_source_open (GstShReconstructSource *self,
    GstShReconstructFrame *f, const GstShReconstructSettings *s,
    ImkError *error)
{
  ImkStatus status = open_named (self, f, s, s->results, error);
  const gboolean is_other = g_strcmp0 (s->results, self->name) != 0;

  if (status == IMK_OK) {
    if (is_other || self->refused)
      set_name (self, s->results);
    self->is_known = TRUE;
  } else if (self->is_known && is_other) {
    const ImkError why = *error;

    gst_sh_reconstruct_slopes_close (&f->slopes);
    status = open_named (self, f, s, self->name, error);
    if (status == IMK_OK)
      warn_of_name (self, s->results, &why);
  }
  if (status == IMK_OK)
    self->sensor.n_cells = self->kernel->n_cells;
  return status;
}

void
gst_sh_reconstruct_source_forget (GstShReconstructSource *self)
{
  self->sensor.n_cells = 0;
  self->is_known = self->is_refused = FALSE;
  set_name (self, NULL);
}
