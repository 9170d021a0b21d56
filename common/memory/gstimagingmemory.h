/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingcontext.h"
#include "gstimagingstats.h"

G_BEGIN_DECLS

/**
 * GstImagingMemoryMode:
 * @GST_IMAGING_MEMORY_PINNED: born in page-locked host memory, which the GPU
 *   reads and writes over the bus; a copy in device memory appears when a
 *   kernel asks for one. For what a camera writes.
 * @GST_IMAGING_MEMORY_DEVICE: born in device memory; a copy in page-locked
 *   host memory appears when the CPU maps it. For what a kernel writes.
 * @GST_IMAGING_MEMORY_UPLOAD: as PINNED, for what nobody but the GPU reads
 *
 * Where the samples are to begin with. On an integrated GPU all are one
 * page-locked block that CPU and GPU use in place, unless the GPU is older than
 * compute capability 7.2 (as a Jetson Nano): there the CPU does not cache
 * page-locked memory, so that only UPLOAD is such a block; the host view of the
 * others is ordinary memory, and copies are made as for a card.
 */
typedef enum {
  GST_IMAGING_MEMORY_PINNED,
  GST_IMAGING_MEMORY_DEVICE,
  GST_IMAGING_MEMORY_UPLOAD,
} GstImagingMemoryMode;

/**
 * GstImagingAllocator:
 *
 * Allocates memory with a view for the CPU and one for the GPU.
 */
#define GST_TYPE_IMAGING_ALLOCATOR (gst_imaging_allocator_get_type ())
GST_IMAGING_API
G_DECLARE_FINAL_TYPE (GstImagingAllocator, gst_imaging_allocator, GST,
    IMAGING_ALLOCATOR, GstAllocator)

/**
 * gst_imaging_allocator_new: (skip)
 * @context: where
 * @mode: the mode of its memories
 * @stats: (nullable): where copies of its memories are counted
 *
 * The memories are #GstMemory of two views, host and device, each copied from
 * the other when it is stale and wanted, and not before. They travel under
 * plain `video/x-raw` caps in any format: any element can map them.
 * gst_memory_copy() copies on the device, gst_memory_share() shares.
 *
 * Returns: (transfer full): an allocator
 */
GST_IMAGING_API
GstAllocator *gst_imaging_allocator_new (GstImagingContext *context,
    GstImagingMemoryMode mode, GstImagingStats *stats);

/**
 * gst_imaging_allocator_allow_plain: (skip)
 *
 * Where the device fails, the memories are ordinary ones from then on: for an
 * offer to upstream, which shall not fail with our device.
 */
GST_IMAGING_API
void gst_imaging_allocator_allow_plain (GstImagingAllocator *self);

/**
 * gst_imaging_allocator_use_slabs: (skip)
 * @size: bytes of a slab, about
 *
 * From now on several memories, of those born in page-locked memory, share one
 * block of it: copies of several MB go faster over the bus than copies of
 * parts of that. A block is freed with its last memory.
 */
GST_IMAGING_API
void gst_imaging_allocator_use_slabs (GstImagingAllocator *self, gsize size);

/**
 * gst_imaging_allocator_has_slabs: (skip)
 *
 * See gst_imaging_allocator_use_slabs().
 *
 * Returns: whether its memories can be neighbours
 */
GST_IMAGING_API
gboolean gst_imaging_allocator_has_slabs (GstImagingAllocator *self);

/**
 * gst_imaging_memory_address: (skip)
 * @memory: an imaging memory
 *
 * Tells the place of a memory in its block.
 *
 * Returns: (nullable): where its host view is, valid or not; for its place
 *   among others
 */
GST_IMAGING_API
gconstpointer gst_imaging_memory_address (GstMemory *memory);

/**
 * gst_imaging_memory_pitch: (skip)
 * @size: bytes of a memory
 *
 * For memories of an allocator that uses slabs.
 *
 * Returns: bytes from a memory of @size bytes to its neighbour
 */
GST_IMAGING_API
gsize gst_imaging_memory_pitch (gsize size);

/**
 * gst_imaging_memory_are_neighbours: (skip)
 * @first: an imaging memory
 * @second: another one
 *
 * Tells whether one copy can do for two memories.
 *
 * Returns: whether the host view of @second is the place behind that of
 *   @first in one block, so that both can be copied at once
 */
GST_IMAGING_API
gboolean gst_imaging_memory_are_neighbours (
    GstMemory *first, GstMemory *second);

/**
 * gst_imaging_allocator_context: (skip)
 *
 * The context that all memories of an allocator have.
 *
 * Returns: (transfer none): its context
 */
GST_IMAGING_API
GstImagingContext *gst_imaging_allocator_context (GstImagingAllocator *self);

/**
 * gst_is_imaging_memory: (skip)
 * @memory: any memory
 *
 * Returns: whether @memory comes from a #GstImagingAllocator
 */
#ifndef __GI_SCANNER__ /* its name has not the prefix of the others */
GST_IMAGING_API
gboolean gst_is_imaging_memory (GstMemory *memory);
#endif

/**
 * gst_imaging_pool_clear: (skip)
 * @pool: (inout): %NULL afterwards
 *
 * Stops a pool, where there is one, and releases it.
 */
GST_IMAGING_API
void gst_imaging_pool_clear (GstBufferPool **pool);

/**
 * gst_imaging_parts_new: (skip)
 *
 * Makes a pool of buffers for gst_imaging_buffer_part(). They keep their pooled
 * metadata from one use to the next.
 *
 * Returns: (transfer full): an inactive pool
 */
GST_IMAGING_API
GstBufferPool *gst_imaging_parts_new (void);

/**
 * gst_imaging_buffer_part: (skip)
 * @whole: a buffer with one memory
 * @offset: the first byte
 * @size: bytes
 * @parts: (nullable): an active pool of gst_imaging_parts_new() that gives the
 *   buffer if the memory of @whole is imaging memory; else it is a new one
 *
 * Of imaging memory not by gst_memory_share(): that locks the memory of @whole
 * until its shares are gone, and a buffer frees what it keeps alive before its
 * memory, so that the pool of @whole would find it locked and throw it away.
 *
 * Returns: (transfer full): a buffer with that part, to be read, which keeps
 *   @whole
 */
GST_IMAGING_API
GstBuffer *gst_imaging_buffer_part (
    GstBuffer *whole, gsize offset, gsize size, GstBufferPool *parts);

/**
 * gst_imaging_memory_context: (skip)
 * @memory: an imaging memory
 *
 * The context of the allocator of a memory.
 *
 * Returns: (transfer none): the context of an imaging memory
 */
GST_IMAGING_API
GstImagingContext *gst_imaging_memory_context (GstMemory *memory);

/**
 * gst_imaging_memory_is_on_device:
 * @memory: any memory
 *
 * Tells whether a CPU map has to wait for a copy.
 *
 * Returns: whether it is imaging memory with the newest samples in device
 *   memory alone, so that a CPU map would have to download them
 */
GST_IMAGING_API
gboolean gst_imaging_memory_is_on_device (GstMemory *memory);

/**
 * gst_imaging_buffer_peek_memory: (skip)
 * @buffer: any buffer
 *
 * Looks for memory of this library in a buffer.
 *
 * Returns: (transfer none) (nullable): the only memory of @buffer, if it is
 *   imaging memory
 */
GST_IMAGING_API
GstMemory *gst_imaging_buffer_peek_memory (GstBuffer *buffer);

/**
 * gst_imaging_buffer_memory_name:
 * @buffer: that anyone can map
 *
 * Names the kind of memory of a buffer.
 *
 * Returns: (transfer none): "device", "pinned" or "system", as the property
 *   active-memory has it
 */
GST_IMAGING_API
const gchar *gst_imaging_buffer_memory_name (GstBuffer *buffer);

/**
 * gst_imaging_memory_acquire: (skip)
 * @memory: an imaging memory; its context is current
 * @stream: the stream on which the kernel will run
 * @access: %GST_MAP_READ, %GST_MAP_WRITE or both; as for every map, write
 *   needs a writable memory
 * @allow_mapped: whether a kernel that reads or writes each sample once, and
 *   so gains nothing from a copy, takes page-locked host memory
 * @stats: (nullable): where an upload is counted
 * @pointer: (out): where the kernel finds the first byte
 * @location: (out): IMK_LOCATION_DEVICE or IMK_LOCATION_HOST_MAPPED
 * @error: the reason of a failure
 *
 * Makes the device view valid for work put on @stream after this call: the
 * stream waits for the last write (and for readers before it writes), a stale
 * view is copied on the stream. The CPU does not wait.
 *
 * Returns: IMK_OK; IMK_ERROR_MEMORY or IMK_ERROR_DEVICE, then there is nothing
 *   to release
 */
GST_IMAGING_API
ImkStatus gst_imaging_memory_acquire (GstMemory *memory, gpointer stream,
    GstMapFlags access, gboolean allow_mapped, GstImagingStats *stats,
    gpointer *pointer, ImkLocation *location, ImkError *error);

/**
 * gst_imaging_memory_writer: (skip)
 * @memory: an imaging memory
 *
 * Tells which work on it may not be complete.
 *
 * Returns: (nullable): the stream on which the newest samples are written, if
 *   nobody has waited for that since; valid only while its owner is known to
 *   live
 */
GST_IMAGING_API
gpointer gst_imaging_memory_writer (GstMemory *memory);

/**
 * gst_imaging_memory_release: (skip)
 * @done: whether the caller has waited for @stream since
 * @memory: as for gst_imaging_memory_acquire()
 * @stream: likewise
 * @access: likewise
 * @error: the reason of a failure
 *
 * Whoever uses the memory next waits for what is on @stream now; for nothing
 * when @done.

 *
 * Returns: IMK_OK or IMK_ERROR_DEVICE
 */
GST_IMAGING_API
ImkStatus gst_imaging_memory_release (GstMemory *memory, gpointer stream,
    GstMapFlags access, gboolean done, ImkError *error);

G_END_DECLS
