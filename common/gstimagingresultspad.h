/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The `results` request pad of an element: numbers as text or tensors. */
#pragma once

#include "gstimagingresults.h"

G_BEGIN_DECLS

typedef struct _GstImagingResultsPad GstImagingResultsPad;

/* Adds a pad named "results" to @element, from @template. Stream and segment
 * are those of @sink. */
GstImagingResultsPad *gst_imaging_results_pad_new (
    GstElement *element, GstPadTemplate *template, GstPad *sink);

/* The streaming thread holds a reference while it pushes. */
GstImagingResultsPad *gst_imaging_results_pad_ref (GstImagingResultsPad *self);
void gst_imaging_results_pad_unref (GstImagingResultsPad *self);

/* Deactivates the pad and takes it from the element. */
void gst_imaging_results_pad_remove (GstImagingResultsPad *self);

/* After the element has stopped: the next stream begins from the beginning. */
void gst_imaging_results_pad_reset (GstImagingResultsPad *self);

GstPad *gst_imaging_results_pad_get (GstImagingResultsPad *self);

/* Whether the peer takes text, for which results need their float64 values. */
gboolean gst_imaging_results_pad_wants_values (GstImagingResultsPad *self);

/* Forwards events of upstream; stream-start and segment are sent with caps. */
void gst_imaging_results_pad_event (
    GstImagingResultsPad *self, GstEvent *event);

/* Pushes @result with the times of @frame. Negotiates first where needed; posts
 * an error when the peer takes neither text nor this tensor. */
GstFlowReturn gst_imaging_results_pad_push (GstImagingResultsPad *self,
    const GstImagingResult *result, GstBuffer *frame, gint fps_n, gint fps_d);

G_END_DECLS
