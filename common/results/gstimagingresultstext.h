/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Large results are formatted in a thread of their own: formatting takes as
 * long as measuring, and frames must not wait for it. Call from the streaming
 * thread, except set_flushing (), which any thread may call. */
#pragma once

#include "gstimagingresults.h"

typedef struct _GstImagingResultsText GstImagingResultsText;

/* Call before @pad, which owns the result, is activated. */
GstImagingResultsText *gst_imaging_results_text_new (GstPad *pad);
void gst_imaging_results_text_unref (GstImagingResultsText *self);

/* Call before the pad is released. Does not wait for its last push, which may
 * block. */
void gst_imaging_results_text_close (GstImagingResultsText *self);

/* Sends @event (transfer full) behind the rows before it. */
void gst_imaging_results_text_push_event (
    GstImagingResultsText *self, GstEvent *event);

/**
 * Formats @result and pushes it. Blocks while many rows are pending.
 * @header: (nullable): (transfer full): pushed before it
 * @row: (transfer full): an empty buffer with times and metas
 *
 * Returns: the flow of the last row that was pushed, so an error reaches
 *   upstream with the next frame at the latest
 */
GstFlowReturn gst_imaging_results_text_push (GstImagingResultsText *self,
    const GstImagingResult *result, GstBuffer *header, GstBuffer *row);

/* Waits until all is pushed. Returns: the flow of the last row */
GstFlowReturn gst_imaging_results_text_drain (GstImagingResultsText *self);

/* While @flushing nothing is pushed and pending items are dropped. The end of
 * the flush waits for the push that was active. */
void gst_imaging_results_text_set_flushing (
    GstImagingResultsText *self, gboolean flushing);

/* Whether downstream has taken the last header; a flush may have dropped it. */
gboolean gst_imaging_results_text_has_header (GstImagingResultsText *self);
