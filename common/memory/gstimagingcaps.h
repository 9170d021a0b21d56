/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kinds of memory as caps name them. Internal. */
#pragma once

#include <gst/gst.h>

#define GST_IMAGING_CAPS_FEATURE_CUDA "memory:CUDAMemory"
#define GST_IMAGING_CAPS_FEATURE_NVMM "memory:NVMM"

typedef enum {
  GST_IMAGING_CAPS_SYSTEM, /* all that the CPU can map, ours included */
  GST_IMAGING_CAPS_CUDA,
  GST_IMAGING_CAPS_NVMM,
} GstImagingCapsMemory;

/* What frames of these fixed caps lie in. */
GstImagingCapsMemory gst_imaging_caps_memory (GstCaps *caps);

/* @caps, then the same in what a frame made of them may lie in: memory of a
 * device for system memory, system memory for that of a device. CUDAMemory and
 * NVMM do not become each other: they live in contexts of their own. Memory
 * that this library is built without is left out. Returns: (transfer full) */
GstCaps *gst_imaging_caps_add_memory (GstCaps *caps);

/* @caps without what this library is built without. Returns: (transfer full) */
GstCaps *gst_imaging_caps_keep_built (GstCaps *caps);

/* @caps of system memory alone. Returns: (transfer full) */
GstCaps *gst_imaging_caps_keep_system (GstCaps *caps);

/* @caps with memory of a device before the rest. Returns: (transfer full);
 * takes @caps */
GstCaps *gst_imaging_caps_sort_device_first (GstCaps *caps);
