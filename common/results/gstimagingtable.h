/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingcontext.h"

#include "imk/image.h"

G_BEGIN_DECLS

/**
 * GstImagingTable: (skip)
 *
 * Memory into which a kernel writes results: host memory for the CPU,
 * page-locked memory for a device, which writes it in place. Buffers of
 * float32 are taken from a pool and passed on with the results; float64 values,
 * for text, stay until the next frame.
 */
typedef struct _GstImagingTable GstImagingTable;

/**
 * gst_imaging_table_new: (skip)
 * @context: (nullable): the device; %NULL for the CPU
 * @width, @height: numbers a row, rows
 *
 * Returns: (nullable): a table; %NULL with @error set
 */
GST_IMAGING_API
GstImagingTable *gst_imaging_table_new (
    GstImagingContext *context, guint width, guint height, ImkError *error);

GST_IMAGING_API
void gst_imaging_table_free (GstImagingTable *self);

/**
 * gst_imaging_table_hand_over: (skip)
 * @hands_over: whether to
 *
 * From the next begin on, on a device: the kernel writes float32 into its
 * memory, from which whoever maps a buffer gets a copy, and nobody need have
 * waited for the kernel at the end. Not with values, which are read then.
 */
GST_IMAGING_API
void gst_imaging_table_hand_over (GstImagingTable *self, gboolean hands_over);

/**
 * gst_imaging_table_begin: (skip)
 * @stream: the stream of the kernel
 * @with_values: whether float64 values are wanted
 * @images: (out): where the kernel writes: with values f64 and the same as f32,
 *   else f32 alone, and the second has no data
 */
GST_IMAGING_API
ImkStatus gst_imaging_table_begin (GstImagingTable *self, gpointer stream,
    gboolean with_values, ImkImage images[2], ImkError *error);

/**
 * gst_imaging_table_end: (skip)
 * @values: (out): float64, or %NULL when not wanted; valid until the next
 *   begin
 *
 * After the kernel is done and waited for, unless it is handed over; also when
 * it failed, to give the memory back.
 *
 * Returns: (transfer full) (nullable): float32
 */
GST_IMAGING_API
GstBuffer *gst_imaging_table_end (
    GstImagingTable *self, const gdouble **values);

/**
 * gst_imaging_table_begin_flags: (skip)
 * @n: bytes, the same for each frame
 * @image: (out): u8 [1][@n], where the kernel writes
 *
 * Between begin and end.
 */
GST_IMAGING_API
ImkStatus gst_imaging_table_begin_flags (
    GstImagingTable *self, guint n, ImkImage *image, ImkError *error);

/**
 * gst_imaging_table_take_flags: (skip)
 *
 * After end.
 *
 * Returns: (transfer full) (nullable): the bytes
 */
GST_IMAGING_API
GstBuffer *gst_imaging_table_take_flags (GstImagingTable *self);

/**
 * gst_imaging_table_values: (skip)
 *
 * Returns: (transfer none) (nullable): the buffer of the float64 values of the
 *   last frame. Keep a reference to keep the values for longer
 */
GST_IMAGING_API
GstBuffer *gst_imaging_table_values (GstImagingTable *self);

G_END_DECLS
