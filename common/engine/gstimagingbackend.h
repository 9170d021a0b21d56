/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/**
 * GstImagingBackendChoice:
 * @GST_IMAGING_BACKEND_AUTO: CUDA where the data is or where it is faster, and
 *   a device is there; the CPU otherwise and when the device fails
 * @GST_IMAGING_BACKEND_CPU: the CPU
 * @GST_IMAGING_BACKEND_CUDA: CUDA, or an error
 *
 * The `backend` property of every element.
 */
typedef enum {
  GST_IMAGING_BACKEND_AUTO,
  GST_IMAGING_BACKEND_CPU,
  GST_IMAGING_BACKEND_CUDA,
} GstImagingBackendChoice;

#define GST_TYPE_IMAGING_BACKEND_CHOICE (gst_imaging_backend_choice_get_type ())
GST_IMAGING_API
GType gst_imaging_backend_choice_get_type (void);

G_END_DECLS
