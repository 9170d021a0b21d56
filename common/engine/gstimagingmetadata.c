/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingmetadata.h"

#include <gst/video/video.h>

#include "gstimagingresults-private.h"

#ifndef GST_META_TAG_MEMORY_REFERENCE_STR /* since 1.20.4 */
#define GST_META_TAG_MEMORY_REFERENCE_STR "memory-reference"
#endif

/* Custom metas of ours that say what the samples of a buffer mean. */
static const gchar *const of_samples[] = {
    "GstImagingHeight", "GstImagingLight", "GstImagingQuantity"};

typedef struct {
  GstBuffer *to;
  gboolean same_geometry;
} Copy;

static gboolean
describes_samples (GstMeta *meta)
{
  if (!gst_meta_info_is_custom (meta->info))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (of_samples); i++)
    if (gst_custom_meta_has_name ((GstCustomMeta *) meta, of_samples[i]))
      return TRUE;
  return FALSE;
}

static gboolean
has_tag (GstMeta *meta, const gchar *tag)
{
  return gst_meta_api_type_has_tag (meta->info->api, g_quark_from_string (tag));
}

static gboolean
stays_true (GstMeta *meta, gboolean same_geometry)
{
  if (meta->info->api == GST_VIDEO_META_API_TYPE ||
      has_tag (meta, GST_META_TAG_MEMORY_STR) ||
      has_tag (meta, GST_META_TAG_MEMORY_REFERENCE_STR) ||
      describes_samples (meta))
    return FALSE;
  return same_geometry ||
         !(has_tag (meta, GST_META_TAG_VIDEO_SIZE_STR) ||
             has_tag (meta, GST_META_TAG_VIDEO_ORIENTATION_STR));
}

static gboolean
copy_meta (GstBuffer *from, GstMeta **meta, gpointer data)
{
  GstMetaTransformCopy whole = {.region = FALSE, .offset = 0, .size = -1};
  const Copy *copy = data;

  if ((*meta)->info == gst_imaging_results_info ())
    gst_imaging_results_copy (copy->to, from);
  else if ((*meta)->info->transform_func &&
           stays_true (*meta, copy->same_geometry))
    (*meta)->info->transform_func (
        copy->to, *meta, from, _gst_meta_transform_copy, &whole);
  return TRUE;
}

void
gst_imaging_metadata_copy (
    GstBuffer *to, GstBuffer *from, gboolean same_geometry)
{
  Copy copy = {.to = to, .same_geometry = same_geometry};

  gst_buffer_foreach_meta (from, copy_meta, &copy);
}

GstBuffer *
gst_imaging_metadata_latest (GstBuffer *const *buffers, guint n)
{
  GstBuffer *latest = NULL;

  for (guint i = 0; i < n; i++)
    if (buffers[i] && (!latest || (GST_BUFFER_PTS_IS_VALID (buffers[i]) &&
                                      (!GST_BUFFER_PTS_IS_VALID (latest) ||
                                          GST_BUFFER_PTS (buffers[i]) >
                                              GST_BUFFER_PTS (latest)))))
      latest = buffers[i];
  return latest;
}

void
gst_imaging_metadata_pass (
    GstBuffer *to, GstBuffer *from, gboolean same_geometry)
{
  gst_buffer_copy_into (
      to, from, GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_imaging_metadata_copy (to, from, same_geometry);
}
