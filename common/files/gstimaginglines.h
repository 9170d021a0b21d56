/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/video/video.h>

#include "gstimaging-prelude.h"

#include "imk/image.h"

/**
 * GST_IMAGING_LINES_TENSOR_CAPS: (skip)
 *
 * The caps of tensors that can be lines of samples.
 */
#define GST_IMAGING_LINES_TENSOR_CAPS \
  "other/tensors, format = (string) static, num_tensors = (int) 1, " \
  "types = (string) { int16, float32, uint16, uint8 }"

/**
 * GstImagingLines: (skip)
 * @info: lines as grey video; tensors as GRAY8 of their bytes
 * @type: of a sample
 * @bytes_a_pixel: of @info: the bytes of a sample of a tensor, else 1
 * @is_tensor: or else video
 *
 * What the caps say of lines of samples: GRAY8 or GRAY16_LE, or tensors of
 * samples:lines.
 */
typedef struct {
  GstVideoInfo info;
  ImkType type;
  guint bytes_a_pixel;
  gboolean is_tensor;
} GstImagingLines;

/**
 * gst_imaging_lines_from_caps: (skip)
 * Returns: FALSE for caps that are no lines of samples, and for frames of 4 GiB
 *   and more
 */
GST_IMAGING_API
gboolean gst_imaging_lines_from_caps (
    GstImagingLines *self, const GstCaps *caps);

/**
 * gst_imaging_lines_set_height: (skip)
 * @height: how many lines there are from now on
 * Returns: FALSE for frames of 4 GiB and more
 */
GST_IMAGING_API
gboolean gst_imaging_lines_set_height (GstImagingLines *self, guint height);

/**
 * gst_imaging_lines_to_caps: (skip)
 * Returns: (transfer full)
 */
GST_IMAGING_API
GstCaps *gst_imaging_lines_to_caps (const GstImagingLines *self);

/* Returns: samples of a line */
GST_IMAGING_API
guint gst_imaging_lines_get_width (const GstImagingLines *self);
