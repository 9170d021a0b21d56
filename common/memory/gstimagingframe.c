/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingframe.h"

#include "gstimaging-private.h"
#include "gstimagingcuda.h"
#include "gstimagingframe-private.h"
#include "gstimagingnvmm.h"
#include "gstimagingpool.h"

/* --- planes ------------------------------------------------------------ */

/* The first component that lies in @plane speaks for it. */
static guint
component_of (const GstVideoFormatInfo *finfo, guint plane)
{
  guint c = 0;

  while (GST_VIDEO_FORMAT_INFO_PLANE (finfo, c) != plane)
    c++;
  return c;
}

ImkImage
gst_imaging_frame_describe_plane (const GstVideoInfo *info, guint plane)
{
  const GstVideoFormatInfo *finfo = info->finfo;
  guint c = component_of (finfo, plane);
  guint sample_size = GST_VIDEO_FORMAT_INFO_DEPTH (finfo, c) > 8 ? 2 : 1;

  return (ImkImage){
      .width = GST_VIDEO_FORMAT_INFO_SCALE_WIDTH (finfo, c, info->width),
      .height = GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT (finfo, c, info->height),
      .channels = GST_VIDEO_FORMAT_INFO_PSTRIDE (finfo, c) / sample_size,
      .type = sample_size == 2 ? IMK_TYPE_U16 : IMK_TYPE_U8,
  };
}

/* Bytes from the first sample to behind the last. */
static guint64
plane_extent (const GstVideoInfo *info, guint plane, gint stride)
{
  ImkImage image = gst_imaging_frame_describe_plane (info, plane);

  return (guint64) (image.height - 1) * stride + imk_image_row_size (&image);
}

static gboolean
plane_fits (const GstVideoInfo *info, guint plane, gsize offset, gint stride,
    gsize size)
{
  return stride >= 0 && offset <= size &&
         plane_extent (info, plane, stride) <= size - offset;
}

/* gst_video_frame_map () follows a plane beyond the memory that it begins in.
 */
static gboolean
lies_in_one_memory (GstBuffer *buffer, gsize offset, gsize size)
{
  guint first, n;
  gsize skip;

  return gst_buffer_n_memory (buffer) == 1 ||
         (gst_buffer_find_memory (buffer, offset, size, &first, &n, &skip) &&
             n == 1);
}

/* gst_video_frame_map () relies on the meta and prints a critical where it
 * differs from @info. */
static ImkStatus
check_meta (const GstVideoMeta *meta, const GstVideoInfo *info, ImkError *error)
{
  if (!meta || (meta->format == GST_VIDEO_INFO_FORMAT (info) &&
                   meta->width >= (guint) info->width &&
                   meta->height >= (guint) info->height))
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "The GstVideoMeta of a buffer has a %ux%u %s frame, the caps have one of "
      "%dx%d %s.",
      meta->width, meta->height, gst_video_format_to_string (meta->format),
      info->width, info->height, info->finfo->name);
}

/* Applications that fill buffers from an array often forget the padding of
 * rows. */
static ImkStatus
too_small (const GstVideoInfo *info, const GstVideoMeta *meta, gsize size,
    ImkError *error)
{
  if (meta)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A buffer of %" G_GSIZE_FORMAT
        " bytes is too small for a %dx%d %s frame with the planes of its "
        "GstVideoMeta.",
        size, info->width, info->height, info->finfo->name);
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "A buffer of %" G_GSIZE_FORMAT
      " bytes is too small for a %dx%d %s frame, which has %" G_GSIZE_FORMAT
      ": rows are padded to multiples of 4 bytes, here %d, unless a "
      "GstVideoMeta tells another stride.",
      size, info->width, info->height, info->finfo->name, info->size,
      info->stride[0]);
}

ImkStatus
gst_imaging_frame_check_size (
    GstBuffer *buffer, const GstVideoInfo *info, ImkError *error)
{
  GstVideoMeta *meta = gst_buffer_get_video_meta (buffer);
  gsize size = gst_buffer_get_size (buffer);

  if (check_meta (meta, info, error) != IMK_OK)
    return IMK_ERROR_IMAGE;
  /* without a meta gst_video_frame_map () wants the padding of the last row */
  for (guint i = 0; i < GST_VIDEO_INFO_N_PLANES (info); i++)
    if (!plane_fits (info, i, meta ? meta->offset[i] : info->offset[i],
            meta ? meta->stride[i] : info->stride[i], size) ||
        (!meta && size < info->size))
      return too_small (info, meta, size, error);
  for (guint i = 0; meta && i < GST_VIDEO_INFO_N_PLANES (info); i++)
    if (!lies_in_one_memory (
            buffer, meta->offset[i], plane_extent (info, i, meta->stride[i])))
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "Plane %u of a %dx%d %s frame lies in several memories; it has to be "
          "in one.",
          i, info->width, info->height, info->finfo->name);
  return IMK_OK;
}

void
gst_imaging_frame_take_planes (
    GstImagingFrame *frame, ImkLocation location, const gchar *memory_name)
{
  for (guint i = 0; i < frame->n_planes; i++) {
    frame->planes[i].data = GST_VIDEO_FRAME_PLANE_DATA (&frame->video, i);
    frame->planes[i].stride = GST_VIDEO_FRAME_PLANE_STRIDE (&frame->video, i);
    frame->planes[i].location = location;
  }
  frame->memory_name = memory_name;
}

/* --- host: anything that a CPU can map --------------------------------- */

static gboolean
host_can_map (
    GstBuffer *buffer, GstImagingContext *context, GstImagingReach reach)
{
  return reach == GST_IMAGING_REACH_HOST;
}

static ImkStatus
host_map (GstImagingFrame *frame, const GstVideoInfo *info,
    GstImagingReach reach, GstImagingStats *stats, ImkError *error)
{
  IMK_TRY (gst_imaging_frame_check_size (frame->buffer, info, error));
  if (!gst_video_frame_map (&frame->video, info, frame->buffer,
          frame->access | GST_VIDEO_FRAME_MAP_FLAG_NO_REF))
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "A buffer of %" G_GSIZE_FORMAT
        " bytes could not be mapped as a %dx%d %s frame.",
        gst_buffer_get_size (frame->buffer), info->width, info->height,
        info->finfo->name);
  gst_imaging_frame_take_planes (frame, IMK_LOCATION_HOST, "system");
  return IMK_OK;
}

static ImkStatus
host_unmap (GstImagingFrame *frame, gboolean done, ImkError *error)
{
  gst_video_frame_unmap (&frame->video);
  return IMK_OK;
}

static const GstImagingMapper host_mapper = {
    host_can_map, host_map, host_unmap};

/* --- our own memory ---------------------------------------------------- */

static gboolean
imaging_can_map (
    GstBuffer *buffer, GstImagingContext *context, GstImagingReach reach)
{
  GstMemory *memory = gst_imaging_buffer_peek_memory (buffer);

  return reach != GST_IMAGING_REACH_HOST && memory &&
         gst_imaging_memory_context (memory) == context;
}

/* Points the planes into one block at @base, laid out as the buffer's
 * GstVideoMeta says, or as @info does. */
static void
set_planes (GstImagingFrame *frame, const GstVideoInfo *info, gpointer base,
    ImkLocation location)
{
  GstVideoMeta *meta = gst_buffer_get_video_meta (frame->buffer);

  for (guint i = 0; i < frame->n_planes; i++) {
    ImkImage *plane = &frame->planes[i];

    plane->data = (guint8 *) base + (meta ? meta->offset[i] : info->offset[i]);
    plane->stride = meta ? meta->stride[i] : info->stride[i];
    plane->location = location;
  }
}

static ImkStatus
imaging_map (GstImagingFrame *frame, const GstVideoInfo *info,
    GstImagingReach reach, GstImagingStats *stats, ImkError *error)
{
  GstMemory *memory = gst_buffer_peek_memory (frame->buffer, 0);
  ImkLocation location;
  gpointer base;

  IMK_TRY (gst_imaging_frame_check_size (frame->buffer, info, error));
  IMK_TRY (gst_imaging_memory_acquire (memory, frame->stream, frame->access,
      reach == GST_IMAGING_REACH_DEVICE_OR_MAPPED, stats, &base, &location,
      error));
  set_planes (frame, info, base, location);
  frame->memory_name = location == IMK_LOCATION_DEVICE ? "device" : "pinned";
  return IMK_OK;
}

static ImkStatus
imaging_unmap (GstImagingFrame *frame, gboolean done, ImkError *error)
{
  return gst_imaging_memory_release (gst_buffer_peek_memory (frame->buffer, 0),
      frame->stream, frame->access, done, error);
}

static const GstImagingMapper imaging_mapper = {
    imaging_can_map, imaging_map, imaging_unmap};

/* --- all kinds --------------------------------------------------------- */

/* In the order they are tried. */
static const GstImagingMapper *const mappers[] = {
    &imaging_mapper,
#ifdef HAVE_GST_CUDA
    &gst_imaging_cuda_mapper,
#endif
#ifdef HAVE_NVMM
    &gst_imaging_nvmm_mapper,
#endif
    &host_mapper,
};

static const GstImagingMapper *
find_mapper (
    GstBuffer *buffer, GstImagingContext *context, GstImagingReach reach)
{
  for (guint i = 0; i < G_N_ELEMENTS (mappers); i++)
    if (mappers[i]->can_map (buffer, context, reach))
      return mappers[i];
  return NULL;
}

gboolean
gst_imaging_frame_can_map (
    GstBuffer *buffer, GstImagingContext *context, GstImagingReach reach)
{
  return find_mapper (buffer, context, reach) != NULL;
}

ImkStatus
gst_imaging_frame_map (GstBuffer *buffer, const GstVideoInfo *info,
    GstMapFlags access, GstImagingReach reach, GstImagingContext *context,
    gpointer stream, GstImagingStats *stats, GstImagingFrame *frame,
    ImkError *error)
{
  frame->mapper = find_mapper (buffer, context, reach);
  if (!frame->mapper)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A buffer lies in memory that the device cannot reach.");
  frame->buffer = buffer;
  frame->access = access;
  frame->stream = reach == GST_IMAGING_REACH_HOST ? NULL : stream;
  frame->n_planes = GST_VIDEO_INFO_N_PLANES (info);
  for (guint i = 0; i < frame->n_planes; i++)
    frame->planes[i] = gst_imaging_frame_describe_plane (info, i);
  return frame->mapper->map (frame, info, reach, stats, error);
}

ImkStatus
gst_imaging_frame_unmap (GstImagingFrame *frame, gboolean done, ImkError *error)
{
  return frame->mapper->unmap (frame, done, error);
}

ImkStatus
gst_imaging_frame_end (
    GstImagingFrame *frame, gboolean done, ImkStatus status, ImkError *error)
{
  ImkError ignored;
  ImkStatus unmapped = gst_imaging_frame_unmap (
      frame, done, status == IMK_OK ? error : &ignored);

  return status == IMK_OK ? unmapped : status;
}

GstBuffer *
gst_imaging_frame_import (GstBuffer *buffer, const GstVideoInfo *info,
    GstBufferPool *pool, GstImagingStats *stats, ImkError *error)
{
  GstVideoFrame from, to;
  GstBuffer *copy = NULL;
  gboolean copied = FALSE;

  if (gst_imaging_frame_check_size (buffer, info, error) != IMK_OK)
    return NULL;
  imk_error_set (error, IMK_ERROR_DEVICE,
      "A frame of %" G_GSIZE_FORMAT
      " bytes could not be copied into page-locked memory.",
      gst_buffer_get_size (buffer));
  if (!pool || !gst_video_frame_map (&from, info, buffer, GST_MAP_READ))
    return NULL;
  if (gst_buffer_pool_acquire_buffer (pool, &copy, NULL) == GST_FLOW_OK &&
      gst_video_frame_map (&to, info, copy, GST_MAP_WRITE)) {
    copied = gst_video_frame_copy (&to, &from);
    gst_video_frame_unmap (&to);
  }
  gst_video_frame_unmap (&from);
  if (copied)
    gst_imaging_stats_add_copied (stats, info->size);
  else
    gst_clear_buffer (&copy);
  return copy;
}

GstBufferPool *
gst_imaging_video_pool_new (GstAllocator *allocator, GstCaps *caps,
    const GstVideoInfo *info, gboolean with_meta)
{
  gboolean in_order =
      allocator && GST_IS_IMAGING_ALLOCATOR (allocator) &&
      gst_imaging_allocator_has_slabs (GST_IMAGING_ALLOCATOR (allocator));

  return gst_imaging_pool_configure (
      in_order ? gst_imaging_pool_new () : gst_video_buffer_pool_new (),
      allocator, caps, info->size,
      with_meta ? GST_BUFFER_POOL_OPTION_VIDEO_META : NULL);
}
