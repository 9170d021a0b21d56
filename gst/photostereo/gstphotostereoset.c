/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a set begins and ends. */
#include "gstphotostereoprivate.h"

/* --- pictures ------------------------------------------------------------ */

ImkStatus
gst_photo_stereo_add_picture (
    GstPhotoStereo *self, GstBuffer *buffer, ImkError *error)
{
  GstPhotoStereoIndex index = {0, 0};

  IMK_TRY (gst_photo_stereo_get_index (self, buffer, &index, error));
  IMK_TRY (gst_photo_stereo_add_at (self, buffer, index, error));
  if (gst_photo_stereo_is_sliding (self))
    gst_photo_stereo_window_take (self, buffer, index);
  return IMK_OK;
}

/* After a change of index-source or lights while playing, pictures may not tell
 * their light. At the start that is an error. */
gboolean
gst_photo_stereo_leave_out (
    GstPhotoStereo *self, ImkStatus status, const ImkError *error)
{
  if (status != IMK_ERROR_IMAGE || !self->is_changed)
    return FALSE;
  if (!self->warned_of_place)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("%s This picture, and others like it, are left out. Properties were "
         "changed while playing: check index-source, bands, set-size and "
         "lights-location.",
            error->message),
        (NULL));
  self->warned_of_place = TRUE;
  return TRUE;
}

/* --- ends ---------------------------------------------------------------- */

void
gst_photo_stereo_forget_set (GstPhotoStereo *self)
{
  gst_photo_stereo_release_pictures (self);
  gst_photo_stereo_window_clear (self);
  if (self->kernel)
    imk_photostereo_reset (self->kernel);
  self->warned_of_clipping = FALSE;
  self->n_missing = 0;
  self->n_looked = 0;
  gst_clear_buffer (&self->last);
}

GstFlowReturn
gst_photo_stereo_end_set (GstPhotoStereo *self)
{
  GstFlowReturn flow = GST_FLOW_OK;
  gdouble change;

  if (self->n_in_window > 0 && !self->was_full)
    flow = gst_photo_stereo_window_publish (self, TRUE);
  else if (self->kernel && imk_photostereo_n_added (self->kernel) > 0)
    flow = gst_photo_stereo_publish (self, TRUE, TRUE, &change);
  gst_photo_stereo_forget_set (self);
  return flow;
}

/* With index-source=order, a missing picture gives all later ones the wrong
 * light. The pictures do not show that. */
static void
warn_of_missing_pictures (GstPhotoStereo *self)
{
  guint n = gst_photo_stereo_is_sliding (self) && !self->was_full
                ? self->n_in_window / self->bands
                : imk_photostereo_n_complete (self->kernel);
  gboolean by_order =
      gst_photo_stereo_now (self)->index_source == GST_PHOTO_STEREO_INDEX_ORDER;

  if (by_order && n >= 3 && n < self->set_size)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("The stream or its caps ended with a set of %u of %u %s, which count "
         "as those of the first lights. Normals are wrong where that is not "
         "so: if a picture was left out, or lights-location is of another "
         "recording.",
            n, self->set_size, self->bands > 1 ? "lights" : "pictures"),
        (NULL));
}

GstFlowReturn
gst_photo_stereo_cut_set (GstPhotoStereo *self)
{
  if (self->kernel)
    warn_of_missing_pictures (self);
  return gst_photo_stereo_end_set (self);
}

static void
say_next_light (GstPhotoStereo *self)
{
  GstImagingContext *context =
      gst_imaging_engine_kernel_context (self->base.engine);
  guint32 light = 0;

  if (imk_photostereo_n_complete (self->kernel) == self->n_lights ||
      gst_imaging_context_push (context, NULL) != IMK_OK)
    return;
  if (imk_photostereo_next_light (self->kernel, &light,
          gst_imaging_engine_stream (self->base.engine), NULL) == IMK_OK)
    gst_element_post_message (GST_ELEMENT (self),
        gst_message_new_element (GST_OBJECT (self),
            gst_structure_new ("photostereo-next-light", "index", G_TYPE_UINT,
                light, "lights", G_TYPE_UINT,
                imk_photostereo_n_complete (self->kernel), NULL)));
  gst_imaging_context_pop (context);
}

GstFlowReturn
gst_photo_stereo_check_set (GstPhotoStereo *self)
{
  const GstPhotoStereoSettings *s = gst_photo_stereo_now (self);
  guint n = imk_photostereo_n_complete (self->kernel);
  gboolean by_order = s->index_source == GST_PHOTO_STEREO_INDEX_ORDER;
  guint n_left = by_order ? gst_photo_stereo_n_left (self) : G_MAXUINT;
  gdouble change;
  GstFlowReturn flow;

  if (n >= self->set_size || n_left == 0)
    return gst_photo_stereo_end_set (self);
  if (!s->update_interval || n % s->update_interval != 0 || n == self->n_looked)
    return GST_FLOW_OK;
  self->n_looked = n;
  flow = gst_photo_stereo_publish (self, FALSE, FALSE, &change);
  if (flow != GST_FLOW_OK)
    return flow;
  if (change < s->stop_below) { /* not with NaN */
    self->n_skip = by_order ? n_left : 0;
    return gst_photo_stereo_end_set (self);
  }
  if (s->next_light)
    say_next_light (self);
  return GST_FLOW_OK;
}

/* --- lost pictures ------------------------------------------------------- */

static void
warn_of_gap (GstPhotoStereo *self, guint64 n, guint64 number)
{
  gst_imaging_stats_add_missing (
      gst_imaging_engine_stats (self->base.engine), n);
  self->n_lost += n;
  if (self->warned_of_gap)
    return;
  self->warned_of_gap = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("%" G_GUINT64_FORMAT
       " picture%s missing before picture %" G_GUINT64_FORMAT
       ": %s. Further gaps are counted in frames-missing of the property stats.",
          n, n == 1 ? " is" : "s are", number,
          gst_photo_stereo_is_sliding (self)
              ? "their lights keep the pictures of the turn before"
              : "their lights do not count in this set"),
      (NULL));
}

/* Returns: whether the source has a file for each light. Then somebody left out
 * a photograph and its light, and the numbers of the files mean nothing. */
static gboolean
has_whole_sets (GstPhotoStereo *self)
{
  gint64 n;

  return gst_pad_peer_query_duration (self->sink, GST_FORMAT_DEFAULT, &n) &&
         n > 0 && n % (self->set_size * self->bands) == 0;
}

/* In a stream with few gaps, a gap means lost pictures. An application that
 * picks pictures of a camera makes as many gaps as pictures; these mean
 * nothing. */
static gboolean
is_loss (GstPhotoStereo *self, GstBuffer *buffer)
{
  return gst_photo_stereo_now (self)->index_source ==
             GST_PHOTO_STEREO_INDEX_ORDER &&
         (self->numbering.offsets == GST_IMAGING_OFFSETS_FRAMES ||
             GST_BUFFER_IS_DISCONT (buffer)) &&
         self->n_steps > 2 * self->n_gaps && !has_whole_sets (self);
}

GstFlowReturn
gst_photo_stereo_follow_gap (GstPhotoStereo *self, GstBuffer *buffer)
{
  GstFlowReturn flow = GST_FLOW_OK;
  guint64 n, skipped;

  self->next_number = gst_imaging_numbering_next (&self->numbering, buffer, &n);
  self->n_steps += n == 0;
  self->n_gaps += n > 0;
  if (n == 0 || !self->kernel || !is_loss (self, buffer))
    return GST_FLOW_OK;
  warn_of_gap (self, n, self->next_number);
  if (gst_photo_stereo_is_sliding (self)) {
    gst_photo_stereo_window_skip (self, n);
    return GST_FLOW_OK;
  }
  skipped = MIN (n, self->n_skip);
  self->n_skip -= (guint) skipped;
  n -= skipped;
  if (n >= gst_photo_stereo_n_left (self)) {
    n -= gst_photo_stereo_n_left (self);
    flow = gst_photo_stereo_end_set (self);
    n %= self->set_size * self->bands;
  }
  self->n_missing += (guint) n;
  return flow;
}
