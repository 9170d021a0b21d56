/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* window=sliding: the last picture of each light stays, and every picture has a
 * result. The kernel gets all of them again for each: copying them takes less
 * time than the solution, running sums of a device could not lose a light, and
 * a result has the bytes of the set of its pictures. */
#include "gstphotostereoprivate.h"

/* No picture of the window. */
#define NONE G_MAXUINT

static void
clear_slot (gpointer data)
{
  gst_clear_buffer ((GstBuffer **) data);
}

GArray *
gst_photo_stereo_window_new (void)
{
  GArray *window = g_array_new (FALSE, TRUE, sizeof (GstBuffer *));

  g_array_set_clear_func (window, clear_slot);
  return window;
}

void
gst_photo_stereo_window_clear (GstPhotoStereo *self)
{
  g_array_set_size (self->window, 0);
  self->n_in_window = self->n_since_result = self->place = 0;
  self->newest = NONE;
  self->was_full = FALSE;
}

void
gst_photo_stereo_window_take (
    GstPhotoStereo *self, GstBuffer *buffer, GstPhotoStereoIndex index)
{
  guint n = self->n_lights * self->bands;
  guint at = index.light * self->bands + index.band;
  GstBuffer **slot;

  if (self->window->len != n)
    g_array_set_size (self->window, n);
  slot = &g_array_index (self->window, GstBuffer *, at);
  self->n_in_window += !*slot;
  gst_buffer_replace (slot, buffer);
  self->newest = at;
  gst_photo_stereo_window_skip (self, 1);
}

void
gst_photo_stereo_window_skip (GstPhotoStereo *self, guint64 n)
{
  self->place = (guint) ((self->place + n) % (self->set_size * self->bands));
}

/* Gives the kernel those of the window that it has not got. */
static ImkStatus
fill_kernel (GstPhotoStereo *self, ImkError *error)
{
  for (guint i = 0; i < self->window->len; i++) {
    GstBuffer *buffer = g_array_index (self->window, GstBuffer *, i);

    if (buffer && i != self->newest)
      IMK_TRY (gst_photo_stereo_add_at (self, buffer,
          (GstPhotoStereoIndex){i / self->bands, i % self->bands}, error));
  }
  return IMK_OK;
}

static void
empty_kernel (GstPhotoStereo *self)
{
  gst_photo_stereo_release_pictures (self);
  imk_photostereo_reset (self->kernel);
  self->newest = NONE;
}

GstFlowReturn
gst_photo_stereo_window_publish (GstPhotoStereo *self, gboolean final)
{
  GstFlowReturn flow = GST_FLOW_OK;
  ImkError error;
  ImkStatus status = fill_kernel (self, &error);
  gdouble change;

  if (status == IMK_OK)
    flow = gst_photo_stereo_publish (self, final, !self->was_full, &change);
  else
    gst_imaging_engine_post_error (self->base.engine, status, &error);
  self->was_full = TRUE;
  empty_kernel (self);
  return status == IMK_OK ? flow : GST_FLOW_ERROR;
}

GstFlowReturn
gst_photo_stereo_window_check (GstPhotoStereo *self)
{
  guint interval = MAX (gst_photo_stereo_now (self)->update_interval, 1);

  if (self->n_in_window < self->set_size * self->bands ||
      (self->was_full && ++self->n_since_result < interval)) {
    empty_kernel (self);
    return GST_FLOW_OK;
  }
  self->n_since_result = 0;
  return gst_photo_stereo_window_publish (self, FALSE);
}
