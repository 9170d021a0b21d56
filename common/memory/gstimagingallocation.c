/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingallocation.h"

#include "gstimagingcaps.h"
#include "gstimagingcuda.h"
#include "gstimagingnvmm.h"

/* --- upstream ------------------------------------------------------------ */

static gboolean
offers_our_memory (GstQuery *query)
{
  g_autoptr (GstAllocator) allocator = NULL;

  if (gst_query_get_n_allocation_params (query) == 0)
    return FALSE;
  gst_query_parse_nth_allocation_param (query, 0, &allocator, NULL);
  return allocator && GST_IS_IMAGING_ALLOCATOR (allocator);
}

/* What is no video has buffers of a size that upstream alone knows: it makes
 * the pool. */
static void
offer_pinned_pool (
    GstImagingEngine *engine, GstImagingContext *context, GstQuery *query)
{
  g_autoptr (GstAllocator) allocator = NULL;
  g_autoptr (GstBufferPool) pool = NULL;
  GstVideoInfo info;
  gboolean is_video;
  GstCaps *caps;

  gst_query_parse_allocation (query, &caps, NULL);
  if (!caps || gst_imaging_caps_memory (caps) != GST_IMAGING_CAPS_SYSTEM)
    return;
  is_video =
      gst_structure_has_name (gst_caps_get_structure (caps, 0), "video/x-raw");
  if (is_video && !gst_video_info_from_caps (&info, caps))
    return;
  allocator = gst_imaging_engine_allocator_new_in (
      engine, context, GST_IMAGING_MEMORY_PINNED);
  gst_imaging_allocator_allow_plain (GST_IMAGING_ALLOCATOR (allocator));
  if (is_video)
    pool = gst_imaging_video_pool_new (allocator, caps, &info, FALSE);
  if (pool) {
    if (gst_query_get_n_allocation_pools (query) > 0)
      gst_query_set_nth_allocation_pool (query, 0, pool, info.size, 0, 0);
    else
      gst_query_add_allocation_pool (query, pool, info.size, 0, 0);
  }
  if (pool || !is_video) {
    if (gst_query_get_n_allocation_params (query) > 0)
      gst_query_set_nth_allocation_param (query, 0, allocator, NULL);
    else
      gst_query_add_allocation_param (query, allocator, NULL);
  }
}

void
gst_imaging_allocation_propose (GstImagingEngine *engine, GstQuery *query)
{
  g_autoptr (GstImagingContext) context =
      gst_imaging_engine_ref_context (engine);

  if (context && !offers_our_memory (query))
    offer_pinned_pool (engine, context, query);
}

/* --- downstream ---------------------------------------------------------- */

GstBufferPool *
gst_imaging_allocation_pool_new (GstImagingEngine *engine, GstCaps *caps,
    const GstVideoInfo *info, gboolean with_meta, GstImagingMemoryMode mode,
    GstAllocator **allocator, guint *size)
{
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (engine);

  *allocator = NULL;
  *size = info->size;
#ifdef HAVE_GST_CUDA
  if (on_cuda && gst_imaging_caps_memory (caps) == GST_IMAGING_CAPS_CUDA)
    return gst_imaging_cuda_pool_new (
        gst_imaging_engine_context (engine), caps, info, size);
#endif
#ifdef HAVE_NVMM
  if (on_cuda && gst_imaging_caps_memory (caps) == GST_IMAGING_CAPS_NVMM)
    return gst_imaging_nvmm_pool_new (
        gst_imaging_engine_context (engine), caps, info, allocator, size);
#endif
  if (on_cuda) {
    *allocator = gst_imaging_engine_allocator_new (engine, mode);
    if (mode != GST_IMAGING_MEMORY_DEVICE)
      gst_imaging_allocator_allow_plain (GST_IMAGING_ALLOCATOR (*allocator));
  }
  return gst_imaging_video_pool_new (*allocator, caps, info, with_meta);
}

/* In place of what downstream has proposed. */
static void
answer (
    GstQuery *query, GstAllocator *allocator, GstBufferPool *pool, guint size)
{
  GstAllocationParams params;

  while (gst_query_get_n_allocation_params (query) > 0)
    gst_query_remove_nth_allocation_param (query, 0);
  while (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_remove_nth_allocation_pool (query, 0);
  gst_allocation_params_init (&params);
  gst_query_add_allocation_param (query, allocator, &params);
  gst_query_add_allocation_pool (query, pool, size, 0, 0);
}

void
gst_imaging_allocation_decide_plain (GstImagingEngine *engine, GstQuery *query)
{
  g_autoptr (GstAllocator) allocator =
      gst_imaging_engine_is_on_cuda (engine)
          ? gst_imaging_engine_allocator_new (engine, GST_IMAGING_MEMORY_DEVICE)
          : NULL;

  answer (
      query, allocator, NULL, (guint) gst_imaging_engine_info (engine)->size);
}

gboolean
gst_imaging_allocation_decide (GstImagingEngine *engine, GstQuery *query)
{
  return gst_imaging_allocation_decide_mode (
      engine, query, GST_IMAGING_MEMORY_DEVICE);
}

gboolean
gst_imaging_allocation_decide_mode (
    GstImagingEngine *engine, GstQuery *query, GstImagingMemoryMode mode)
{
  gboolean with_meta =
      gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  g_autoptr (GstAllocator) allocator = NULL;
  g_autoptr (GstBufferPool) pool = NULL;
  GstVideoInfo info;
  GstCaps *caps;
  guint size;

  gst_query_parse_allocation (query, &caps, NULL);
  if (!caps || !gst_video_info_from_caps (&info, caps))
    return FALSE;
  pool = gst_imaging_allocation_pool_new (
      engine, caps, &info, with_meta, mode, &allocator, &size);
  if (pool)
    answer (query, allocator, pool, size);
  return pool != NULL;
}
