/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/gst.h>

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/* Members of GstImagingDlTensor: what DLPack calls DLDeviceType and
 * DLDataTypeCode, as far as it occurs here. */
enum { GST_IMAGING_DL_CPU = 1, GST_IMAGING_DL_CUDA = 2 };
enum {
  GST_IMAGING_DL_INT = 0,
  GST_IMAGING_DL_UINT = 1,
  GST_IMAGING_DL_FLOAT = 2,
  GST_IMAGING_DL_COMPLEX = 5,
};

/**
 * GstImagingDlTensor: (skip)
 * @data: the first element, on the device
 * @device_type: GST_IMAGING_DL_CPU or GST_IMAGING_DL_CUDA
 * @device_id: number of the GPU, 0 for the CPU
 * @n_dims: of @shape and @strides
 * @type_code: GST_IMAGING_DL_INT, ...
 * @type_bits: of an element
 * @type_lanes: 1
 * @shape: the slowest dimension first
 * @strides: in elements
 * @byte_offset: 0
 * @manager: private
 * @deleter: ends the view; any thread may call it, once
 *
 * DLManagedTensor of DLPack (https://dmlc.github.io/dlpack), the form that a
 * capsule of the name "dltensor" holds.
 */
typedef struct _GstImagingDlTensor GstImagingDlTensor;
struct _GstImagingDlTensor {
  gpointer data;
  gint32 device_type, device_id;
  gint32 n_dims;
  guint8 type_code, type_bits;
  guint16 type_lanes;
  gint64 *shape, *strides;
  guint64 byte_offset;
  gpointer manager;
  void (*deleter) (GstImagingDlTensor *self);
};

/**
 * gst_imaging_dlpack_new: (skip)
 * @buffer: video, tensors or lines of an SLC image
 * @caps: (nullable): of @buffer; %NULL for video with a #GstVideoMeta
 * @index: of the plane of a video frame, or of the tensor
 * @error: (out) (optional): why there is no view
 *
 * A view of the samples of @buffer where they are: in device memory if the
 * newest samples are there alone, or in CUDAMemory, else in host memory. No
 * sample is copied. Samples in device memory are complete when this returns.
 *
 * A plane is [height, width], or with more than one channel [height, width,
 * channels]. A tensor has the dimensions of its caps in the opposite order,
 * without leading ones. Lines are [lines, width], those of ci16 [lines, width,
 * 2].
 *
 * Until the deleter is called @buffer stays mapped for reading and out of its
 * pool. Others may hold @buffer: do not write to the view. When the deleter is
 * called, work on the device with the view must be complete, or be on a
 * stream that the legacy default stream waits for.
 *
 * Returns: (transfer full) (nullable): the view; %NULL with @error set
 */
GST_IMAGING_API
GstImagingDlTensor *gst_imaging_dlpack_new (
    GstBuffer *buffer, const GstCaps *caps, guint index, GError **error);

/**
 * gst_imaging_dlpack_free: (skip)
 * @self: (transfer full) (nullable): a view that nobody has taken over
 */
GST_IMAGING_API
void gst_imaging_dlpack_free (GstImagingDlTensor *self);

G_END_DECLS
