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
