/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The `results` request pad of an element: numbers as text or tensors. Text is
 * formatted and pushed in a thread of its own, which also sends the events, so
 * that they keep their order. */
#pragma once

#include "gstimagingresults.h"
#include "gstimagingsrcpads.h"

#define GST_TYPE_IMAGING_RESULTS_PAD (gst_imaging_results_pad_get_type ())
GST_IMAGING_API
G_DECLARE_FINAL_TYPE (GstImagingResultsPad, gst_imaging_results_pad, GST,
    IMAGING_RESULTS_PAD, GstImagingSrcPad)

/* Call before the pad is released: the thread ends, but is not waited for. */
GST_IMAGING_API
void gst_imaging_results_pad_close (GstImagingResultsPad *self);

/* After the element has stopped, before gst_imaging_src_pad_reset(). */
GST_IMAGING_API
void gst_imaging_results_pad_reset (GstImagingResultsPad *self);

/* Whether the peer takes text, for which results need their float64 values. */
GST_IMAGING_API
gboolean gst_imaging_results_pad_wants_values (GstImagingResultsPad *self);

/* Call before a gap and EOS: caps of text need no frame. */
GST_IMAGING_API
void gst_imaging_results_pad_negotiate_text (GstImagingResultsPad *self);

/* Pushes @result with the times of @frame. Negotiates first if necessary; posts
 * an error when the peer takes neither text nor this tensor. */
GST_IMAGING_API
GstFlowReturn gst_imaging_results_pad_push (GstImagingResultsPad *self,
    const GstImagingResult *result, GstBuffer *frame, gint fps_n, gint fps_d);
