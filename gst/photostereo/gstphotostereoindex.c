/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Under which light a picture was taken. */
#include "gstphotostereoprivate.h"

static ImkStatus
read_meta (GstPhotoStereo *self, GstBuffer *buffer, GstPhotoStereoIndex *index,
    ImkError *error)
{
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, GST_PHOTO_STEREO_LIGHT_META);
  GstStructure *s = meta ? gst_custom_meta_get_structure (meta) : NULL;

  if (!s || !gst_structure_get_uint (s, "index", &index->light) ||
      (self->bands > 1 && !gst_structure_get_uint (s, "band", &index->band)))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A picture has no " GST_PHOTO_STEREO_LIGHT_META
        " meta with an unsigned integer \"index\"%s, which index-source=meta "
        "needs.",
        self->bands > 1 ? " and another one, \"band\"" : "");
  return IMK_OK;
}

/* Of the @i-th picture of a set. */
static GstPhotoStereoIndex
index_of (const GstPhotoStereo *self, guint32 i)
{
  return self->band_order == GST_PHOTO_STEREO_BANDS_BY_BAND
             ? (GstPhotoStereoIndex){i % self->set_size, i / self->set_size}
             : (GstPhotoStereoIndex){i / self->bands, i % self->bands};
}

/* By order, of the next picture. */
static guint
place_of (GstPhotoStereo *self)
{
  if (gst_photo_stereo_is_sliding (self))
    return self->place;
  return imk_photostereo_n_added (self->kernel) + self->n_missing;
}

ImkStatus
gst_photo_stereo_get_index (GstPhotoStereo *self, GstBuffer *buffer,
    GstPhotoStereoIndex *index, ImkError *error)
{
  switch (gst_photo_stereo_now (self)->index_source) {
  case GST_PHOTO_STEREO_INDEX_META:
    return read_meta (self, buffer, index, error);
  case GST_PHOTO_STEREO_INDEX_OFFSET:
    if (!GST_BUFFER_OFFSET_IS_VALID (buffer))
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "A picture has no offset, which index-source=offset needs.");
    *index = index_of (
        self, (guint32) MIN (GST_BUFFER_OFFSET (buffer), G_MAXUINT32));
    break;
  default:
    *index = index_of (self, place_of (self) % (self->set_size * self->bands));
  }
  return IMK_OK;
}

guint
gst_photo_stereo_n_left (GstPhotoStereo *self)
{
  guint n = self->set_size * self->bands, place = place_of (self);

  return n > place ? n - place : 0; /* set-size changes between sets */
}

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
