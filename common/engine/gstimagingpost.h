/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors as messages on the bus: what failed says the sentence, once.
 * Internal. */
#pragma once

#include <gst/gst.h>

#include "gstimaging-prelude.h"
#include "imk/status.h"

/**
 * gst_imaging_post_error: (skip)
 * @element: a #GstElement
 *
 * Posts @error with the domain and code that it has, which are of GStreamer.
 */
GST_IMAGING_API
void gst_imaging_post_error (gpointer element, const GError *error);

/**
 * gst_imaging_post_status: (skip)
 * @element: a #GstElement
 * @status: what a kernel ended with, not %IMK_OK
 *
 * Posts @error with the domain and code that say the same to applications.
 */
GST_IMAGING_API
void gst_imaging_post_status (
    gpointer element, ImkStatus status, const ImkError *error);
