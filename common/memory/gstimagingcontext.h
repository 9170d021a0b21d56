/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimaging-prelude.h"

#include "imk/device.h"

G_BEGIN_DECLS

#define GST_TYPE_IMAGING_CONTEXT (gst_imaging_context_get_type ())
GST_IMAGING_API
G_DECLARE_FINAL_TYPE (
    GstImagingContext, gst_imaging_context, GST, IMAGING_CONTEXT, GObject)

/**
 * gst_imaging_context_get: (skip)
 * @device_id: CUDA device number, -1 for the first
 * @error: (out) (optional): why there is none
 *
 * The one context of this process for a device: its primary context, which
 * CuPy, PyTorch and every other user of the CUDA runtime use as well.
 *
 * Returns: (transfer full) (nullable): a context, %NULL with @error set
 */
GST_IMAGING_API
GstImagingContext *gst_imaging_context_get (gint device_id, ImkError *error);

/**
 * gst_imaging_context_get_for_handle: (skip)
 * @device_id: the CUDA device of @handle
 * @handle: a CUcontext that stays valid while the result lives
 * @owner: (transfer full) (nullable): kept as long as the result lives
 *
 * Returns: (transfer full) (nullable): the one context for @handle
 */
GST_IMAGING_API
GstImagingContext *gst_imaging_context_get_for_handle (
    gint device_id, gpointer handle, GObject *owner, ImkError *error);

/* In a property cuda-devices: all that the machine has. */
#define GST_IMAGING_ALL_DEVICES (-1)

/**
 * gst_imaging_context_list_ids: (skip)
 * @wanted: numbers of a property cuda-devices, from GST_IMAGING_ALL_DEVICES on
 *
 * Returns: (transfer full) (nullable) (element-type gint): the numbers, which
 *   this machine has, each once; %NULL with @error set
 */
GST_IMAGING_API
GArray *gst_imaging_context_list_ids (
    const gdouble *wanted, guint n_wanted, ImkError *error);

/**
 * gst_imaging_context_push: (skip)
 * @self: (nullable): a context; %NULL on the CPU, where none is needed
 *
 * Makes @self current for the calling thread, until the matching
 * gst_imaging_context_pop(). Around every call of a kernel or of the device
 * table. Returns: IMK_OK or IMK_ERROR_DEVICE; then there is nothing to pop
 */
GST_IMAGING_API
ImkStatus gst_imaging_context_push (GstImagingContext *self, ImkError *error);

/**
 * gst_imaging_context_pop: (skip)
 * @self: (nullable): the context that was pushed last
 */
GST_IMAGING_API
void gst_imaging_context_pop (GstImagingContext *self);

#ifndef __GI_SCANNER__
typedef GstImagingContext *GstImagingEntered;
G_DEFINE_AUTO_CLEANUP_FREE_FUNC (
    GstImagingEntered, gst_imaging_context_pop, NULL)
#endif

/* Pushes @context to the end of the block, or returns the error. */
#define GST_IMAGING_ENTER(context, error) \
  GstImagingContext *gst_imaging_entering = (context); \
  IMK_TRY (gst_imaging_context_push (gst_imaging_entering, (error))); \
  G_GNUC_UNUSED g_auto (GstImagingEntered) gst_imaging_entered = \
      gst_imaging_entering

/**
 * gst_imaging_context_device: (skip)
 * Returns: the table of device calls
 */
GST_IMAGING_API
const ImkDevice *gst_imaging_context_device (GstImagingContext *self);

/**
 * gst_imaging_context_info: (skip)
 * Returns: what the device is
 */
GST_IMAGING_API
const ImkDeviceInfo *gst_imaging_context_info (GstImagingContext *self);

/**
 * gst_imaging_context_device_id:
 * Returns: the CUDA device number
 */
GST_IMAGING_API
gint gst_imaging_context_device_id (GstImagingContext *self);

/**
 * gst_imaging_context_handle: (skip)
 * Returns: the CUcontext
 */
GST_IMAGING_API
gpointer gst_imaging_context_handle (GstImagingContext *self);

/**
 * gst_imaging_context_owner: (skip)
 * Returns: (transfer none) (nullable): what keeps the CUcontext valid
 */
GST_IMAGING_API
GObject *gst_imaging_context_owner (GstImagingContext *self);

/**
 * gst_imaging_context_stream: (skip)
 * Returns: a stream of the context's own, on which memory is copied when no
 *   element's stream is at hand (a CPU map, a copy of a buffer)
 */
GST_IMAGING_API
gpointer gst_imaging_context_stream (GstImagingContext *self);

G_END_DECLS
