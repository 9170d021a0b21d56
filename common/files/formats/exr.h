/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What reading and writing OpenEXR share. */
#pragma once

#include <openexr.h>

#include "gstimagingformat.h"

#define GST_IMAGING_EXR_ASPECT "pixelAspectRatio"
#define GST_IMAGING_EXR_DATA_WINDOW "dataWindow"
#define GST_IMAGING_EXR_DISPLAY_WINDOW "displayWindow"

/* An open file, what is the same of all its parts, and what the library says */
typedef struct {
  const GstImagingFormatFile *file;
  exr_context_t exr;
  gchar *text;
  GError *why; /* a write that failed */

  gint n_parts, first; /* of those that are pages */
  gint width, height;
  guint n_channels;
  gchar **names; /* of the channels, in the order of the array */
  exr_pixel_type_t type;
  gboolean is_mixed; /* whole numbers beside floats: values are f64 */
} GstImagingExr;

/* Its functions; @self must stay where it is. */
exr_context_initializer_t gst_imaging_exr_make_initializer (
    GstImagingExr *self);

/* The library calls a file damaged whose compression has a number that came
 * after it. Returns: FALSE with @error set for such a file */
gboolean gst_imaging_exr_check_compression (
    const GstImagingFormatFile *file, GError **error);

/* Sets @error to what the library said. Returns: FALSE */
gboolean gst_imaging_exr_fail (
    GstImagingExr *self, exr_result_t code, GError **error);

/* Returns: bytes of a value of the array */
gint gst_imaging_exr_value_size (const GstImagingExr *self);

/* Sets where samples of each channel of a block are in the array. */
void gst_imaging_exr_aim (const GstImagingExr *self,
    exr_coding_channel_info_t *channels, gint n, guint8 *at);

void gst_imaging_exr_close (gpointer exr);

gpointer gst_imaging_exr_create (const GstImagingFormatFile *file,
    const GstImagingNdArray *array, guint64 *n_pages, GError **error);
gboolean gst_imaging_exr_write (
    gpointer writer, gconstpointer values, GError **error);
gboolean gst_imaging_exr_finish (gpointer writer, GError **error);
