/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingoutput.h"

G_BEGIN_DECLS

/**
 * GstImagingOutputs: (skip)
 *
 * The source pads that an element makes on request, a #GstImagingOutput each,
 * and their combined flow. They are added and removed under the object lock of
 * the element, in any thread, also while the streaming thread pushes to
 * them.
 */
typedef struct _GstImagingOutputs GstImagingOutputs;

/**
 * gst_imaging_outputs_new: (skip)
 * @element: owns the result
 * @names: of the pads, which are those of their templates, in an order that the
 *   element goes by; has to stay
 * @n: how many
 *
 * Returns: to be given to gst_imaging_outputs_free()
 */
GST_IMAGING_API
GstImagingOutputs *gst_imaging_outputs_new (
    GstElement *element, const gchar *const *names, guint n);

GST_IMAGING_API
void gst_imaging_outputs_free (GstImagingOutputs *self);

/**
 * gst_imaging_outputs_request: (skip)
 *
 * What request_new_pad of the element returns.
 * Returns: (transfer none) (nullable): %NULL when it has that pad
 */
GST_IMAGING_API
GstPad *gst_imaging_outputs_request (
    GstImagingOutputs *self, GstPadTemplate *pad_template);

/**
 * gst_imaging_outputs_release: (skip)
 *
 * What release_pad of the element does; a push that is under way ends.
 */
GST_IMAGING_API
void gst_imaging_outputs_release (GstImagingOutputs *self, GstPad *pad);

/**
 * gst_imaging_outputs_get: (skip)
 * @index: its place in the names
 *
 * Returns: (transfer full) (nullable): the output, %NULL where nobody asked
 */
GST_IMAGING_API
GstImagingOutput *gst_imaging_outputs_get (
    GstImagingOutputs *self, guint index);

/**
 * gst_imaging_outputs_combine: (skip)
 * @index: its place in the names
 * @output: which was there, and may have been released since
 * @flow: of its last push, or %GST_FLOW_NOT_LINKED
 * @before: combined flow of the outputs before it
 *
 * Returns: the combined flow; @before when @output has been released
 */
GST_IMAGING_API
GstFlowReturn gst_imaging_outputs_combine (GstImagingOutputs *self, guint index,
    GstImagingOutput *output, GstFlowReturn flow, GstFlowReturn before);

/**
 * gst_imaging_outputs_event: (skip)
 * @event: (transfer none): of upstream, for all of them
 */
GST_IMAGING_API
void gst_imaging_outputs_event (GstImagingOutputs *self, GstEvent *event);

/**
 * gst_imaging_outputs_reset: (skip)
 *
 * Forgets streams, caps, buffers and flows, for another run.
 */
GST_IMAGING_API
void gst_imaging_outputs_reset (GstImagingOutputs *self);

G_END_DECLS
