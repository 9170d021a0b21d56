/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Buffers for parts of other buffers. One that was let go waits without memory,
 * with its pooled metadata: that of an image is all but the same as of the one
 * before, and to make it anew takes longer than all else that is done for it.
 */
#include "gstimagingmemory.h"
#include "gstimagingpool.h"

#define GST_TYPE_IMAGING_PARTS (gst_imaging_parts_get_type ())
G_DECLARE_FINAL_TYPE (
    GstImagingParts, gst_imaging_parts, GST, IMAGING_PARTS, GstBufferPool)

struct _GstImagingParts {
  GstBufferPool parent;
};

G_DEFINE_FINAL_TYPE (GstImagingParts, gst_imaging_parts, GST_TYPE_BUFFER_POOL)

/* The parent keeps metadata of pools alone, and the size of memory that was
 * changed as it is. */
static void
reset (GstBufferPool *pool, GstBuffer *buffer)
{
  GST_BUFFER_POOL_CLASS (gst_imaging_parts_parent_class)
      ->reset_buffer (pool, buffer);
  gst_buffer_remove_all_memory (buffer);
  GST_BUFFER_FLAG_UNSET (buffer, GST_BUFFER_FLAG_TAG_MEMORY);
}

static void
gst_imaging_parts_class_init (GstImagingPartsClass *klass)
{
  GST_BUFFER_POOL_CLASS (klass)->reset_buffer = reset;
}

static void
gst_imaging_parts_init (GstImagingParts *self)
{
}

GstBufferPool *
gst_imaging_parts_new (void)
{
  return gst_imaging_pool_configure (
      gst_object_ref_sink (g_object_new (GST_TYPE_IMAGING_PARTS, NULL)), NULL,
      NULL, 0, NULL);
}
