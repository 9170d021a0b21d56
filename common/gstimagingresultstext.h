/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Many results become text in a thread of their own: to write them takes as
 * long as to measure them, and frames shall not wait for it. Rows, events and
 * drain belong to the streaming thread; a flush may come from any thread. */
#pragma once

#include "gstimagingresults.h"

G_BEGIN_DECLS

typedef struct _GstImagingResultsText GstImagingResultsText;

/* Before @pad is activated. */
GstImagingResultsText *gst_imaging_results_text_new (GstPad *pad);
void gst_imaging_results_text_unref (GstImagingResultsText *self);

/* Before the pad is released: its last push may last, and is not waited for. */
void gst_imaging_results_text_close (GstImagingResultsText *self);

/* Sends @event (transfer full) behind the rows before it. */
void gst_imaging_results_text_push_event (
    GstImagingResultsText *self, GstEvent *event);

/**
 * Makes text of @result and pushes it. Waits while many rows wait.
 * @header: (nullable): (transfer full): goes before it
 * @row: (transfer full): an empty buffer with times and metas
 *
 * Returns: what the last row that was pushed has met; no later than with the
 *   next frame an error reaches upstream
 */
GstFlowReturn gst_imaging_results_text_push (GstImagingResultsText *self,
    const GstImagingResult *result, GstBuffer *header, GstBuffer *row);

/* Waits until all is pushed. Returns: what the last row has met */
GstFlowReturn gst_imaging_results_text_drain (GstImagingResultsText *self);

/* From @flushing to not @flushing nothing is pushed, and what waits is gone;
 * the end waits for the push that was under way. */
void gst_imaging_results_text_set_flushing (
    GstImagingResultsText *self, gboolean flushing);

/* Whether downstream has taken the last header; a flush may have dropped it. */
gboolean gst_imaging_results_text_has_header (GstImagingResultsText *self);

G_END_DECLS
