/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* video/x-raw(memory:NVMM): NvBufSurface of Jetson and DeepStream. Internal. */
#pragma once

#include "gstimagingframe-private.h"

#ifdef HAVE_NVMM

#include "gstimagingnvmmabi.h"

/* libnvbufsurface, opened on first use and never closed. */
typedef struct {
  NvBufSurfaceCreateFunc create;
  NvBufSurfaceDestroyFunc destroy;
  NvBufSurfaceMapEglImageFunc map_egl_image, unmap_egl_image;
} GstImagingNvmmLibrary;

/* Returns: the library, NULL and IMK_ERROR_UNAVAILABLE without. Needed to make
 * surfaces and to map those of a Jetson, not to read those of a card. */
const GstImagingNvmmLibrary *gst_imaging_nvmm_library (ImkError *error);

/* Only the caps distinguish a buffer of NVMM from others; with this call
 * gst_imaging_frame_map () recognises it. The mapping is kept with
 * the memory and dropped with it. */
ImkStatus gst_imaging_nvmm_adopt (
    GstBuffer *buffer, GstImagingContext *context, ImkError *error);

extern const GstImagingMapper gst_imaging_nvmm_mapper;

/* A configured, inactive pool of surfaces for frames of @caps on the device of
 * @context; @size is that of its buffers. */
GstBufferPool *gst_imaging_nvmm_pool_new (GstImagingContext *context,
    GstCaps *caps, const GstVideoInfo *info, GstAllocator **allocator,
    guint *size);

#endif
