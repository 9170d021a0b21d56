/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* video/x-raw(memory:CUDAMemory), when built with GstCuda. */
#pragma once

#include "gstimagingcontext.h"
#include "gstimagingframe-private.h"

#ifdef HAVE_GST_CUDA

extern const GstImagingMapper gst_imaging_cuda_mapper;

/* The GstCudaContext that the application or a neighbour has, as ours; NULL
 * without an error when there is none. */
GstImagingContext *gst_imaging_cuda_find_context (
    GstElement *element, gint device_id, ImkError *error);

/* The GstCudaContext that a message from outside brings, as ours. */
GstImagingContext *gst_imaging_cuda_take_context (
    GstElement *element, gint device_id, GstContext *message);

/* Answers a context query with @context, wrapped on first use. */
gboolean gst_imaging_cuda_answer_context (
    GstElement *element, GstImagingContext *context, GstQuery *query);

gboolean gst_imaging_cuda_is_memory (GstMemory *memory);

/* Maps @memory for reading on its device; what wrote it is complete. @map: for
 * gst_imaging_cuda_memory_unmap (), which waits for the default stream */
ImkStatus gst_imaging_cuda_memory_map (GstMemory *memory, GstMapInfo *map,
    gpointer *pointer, gint *device_id, ImkError *error);
void gst_imaging_cuda_memory_unmap (GstMemory *memory, GstMapInfo *map);

/* A configured, inactive pool of CUDAMemory in @context; NULL on failure. */
GstBufferPool *gst_imaging_cuda_pool_new (GstImagingContext *context,
    GstCaps *caps, const GstVideoInfo *info, guint *size);

#endif
