/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The samples of a memory: a host view and a device view, with marks for what
 * the device still does with them. */
#pragma once

#include "gstimagingmemory.h"
#include "gstimagingslab.h"

/* Of CUDA's allocations. */
#define HOST_ALIGNMENT 256

/* A point in a stream that others wait for. */
typedef struct {
  gpointer stream;
  gpointer event;
  gboolean pending;
} Mark;

/* One of the two places of the samples. */
typedef struct {
  gboolean valid; /* holds the newest samples */
  Mark written;   /* the last write by the device */
} View;

/* The samples; several memories share one (gst_memory_share). The lock is held
 * while the CPU waits for a copy: other callers need the same bytes. */
typedef struct {
  gint ref_count;
  GstImagingContext *context;
  GstImagingStats *stats;
  GstImagingMemoryMode mode;
  gsize size;

  GMutex lock; /* of all below */
  /* (nullable): one page-locked block with two addresses; or ordinary memory,
   * then @mapped is NULL */
  gpointer host, mapped;
  GstImagingSlab *slab; /* (nullable): the owner of @host */
  gpointer device;      /* (nullable): always NULL on an integrated GPU */
  View on_host, on_device;
  GArray *readers; /* of Mark, one a stream, for both views */
} GstImagingStorage;

struct _GstImagingAllocator {
  GstAllocator parent;
  GstImagingContext *context;
  GstImagingMemoryMode mode;
  GstImagingStats *stats;
  gboolean plain_on_failure;
  gsize slab_size; /* 0: each memory has its own block */

  GMutex lock;
  GstImagingSlab *slab; /* with places left */
};

/* @memory: an imaging memory. Returns: (transfer none): its samples */
GstImagingStorage *gst_imaging_memory_storage (GstMemory *memory);

/* Returns: (transfer full) (nullable): NULL with @error set */
GstImagingStorage *gst_imaging_storage_new (
    GstImagingAllocator *allocator, gsize size, ImkError *error);
GstImagingStorage *gst_imaging_storage_ref (GstImagingStorage *s);
void gst_imaging_storage_unref (GstImagingStorage *s);

/* Makes the samples available to @stream, for reading or writing; the stream
 * waits, the CPU does not. Call with the context current.
 * @allow_mapped: the kernel may use the host view over the bus
 * @mapped: (out): it does */
ImkStatus gst_imaging_storage_acquire (GstImagingStorage *s, gpointer stream,
    GstMapFlags access, gboolean allow_mapped, GstImagingStats *stats,
    gboolean *mapped, ImkError *error);

/* Marks the end of that use on @stream. @done: the stream is idle */
ImkStatus gst_imaging_storage_release (GstImagingStorage *s, gpointer stream,
    GstMapFlags access, gboolean done, ImkError *error);

/* Makes the samples available to the CPU, which waits. */
ImkStatus gst_imaging_storage_map (
    GstImagingStorage *s, gboolean write, ImkError *error);

/* Copies @size bytes from @offset of @from to a new @to, which nobody else
 * holds, on the device if the host view is stale. To the memory of another
 * device, where @from has its newest samples on its own: streams wait, the CPU
 * does not. */
ImkStatus gst_imaging_storage_copy (GstImagingStorage *to,
    GstImagingStorage *from, gsize offset, gsize size, ImkError *error);

/* Returns: whether only the device has the newest samples */
gboolean gst_imaging_storage_is_on_device (GstImagingStorage *s);
