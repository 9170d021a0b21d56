/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingengine.h"

G_BEGIN_DECLS

/**
 * GstImagingOutput: (skip)
 *
 * A source pad that an element makes on request: a stream of its own, with
 * events of its own as it may speak rarely, the first caps that its peer takes,
 * and buffers that the kernel reaches. Counted by references, as the element
 * may release it while its thread pushes. All but ref, unref, remove and pad
 * belong to that thread.
 */
typedef struct _GstImagingOutput GstImagingOutput;

/**
 * gst_imaging_output_new: (skip)
 * @element: gets the pad
 * @pad_template: of the pad
 * @name: of the pad
 *
 * Returns: to be given to gst_imaging_output_remove() and
 *   gst_imaging_output_unref()
 */
GST_IMAGING_API
GstImagingOutput *gst_imaging_output_new (
    GstElement *element, GstPadTemplate *pad_template, const gchar *name);

GST_IMAGING_API
GstImagingOutput *gst_imaging_output_ref (GstImagingOutput *self);

/**
 * gst_imaging_output_unref: (skip)
 * @self: (nullable): an output
 */
GST_IMAGING_API
void gst_imaging_output_unref (GstImagingOutput *self);

/**
 * gst_imaging_output_remove: (skip)
 *
 * Takes the pad from its element; a push that is under way ends.
 */
GST_IMAGING_API
void gst_imaging_output_remove (GstImagingOutput *self);

/**
 * gst_imaging_output_pad: (skip)
 * Returns: (transfer none): the pad
 */
GST_IMAGING_API
GstPad *gst_imaging_output_pad (GstImagingOutput *self);

/**
 * gst_imaging_output_reset: (skip)
 *
 * Forgets stream, caps and buffers, for another run.
 */
GST_IMAGING_API
void gst_imaging_output_reset (GstImagingOutput *self);

/**
 * gst_imaging_output_event: (skip)
 * @event: (transfer none): of upstream
 *
 * Stream-start and segment are sent with the next caps and have the sequence
 * number of @event. A gap is sent where there are caps; what has no meaning
 * here, as an application's own events, leaves at once.
 */
GST_IMAGING_API
void gst_imaging_output_event (GstImagingOutput *self, GstEvent *event);

/**
 * gst_imaging_output_follow: (skip)
 * @event: (transfer none): a sticky event from before the pad was made
 *
 * Before anything else is pushed; @event leaves behind the first segment.
 */
GST_IMAGING_API
void gst_imaging_output_follow (GstImagingOutput *self, GstEvent *event);

/**
 * gst_imaging_output_negotiate: (skip)
 * @offers: (transfer full): fixed caps, the best first
 *
 * Sends stream-start, the first of @offers that the peer accepts, and the
 * segment, unless they have been sent.
 * Returns: %GST_FLOW_NOT_LINKED, %GST_FLOW_FLUSHING or
 *   %GST_FLOW_NOT_NEGOTIATED when it cannot
 */
GST_IMAGING_API
GstFlowReturn gst_imaging_output_negotiate (
    GstImagingOutput *self, GstCaps *offers);

/**
 * gst_imaging_output_is_negotiated: (skip)
 *
 * A cheap check for elements whose offers stay the same.
 * Returns: whether all events of gst_imaging_output_negotiate() have been sent,
 *   and the peer has not requested a new negotiation
 */
GST_IMAGING_API
gboolean gst_imaging_output_is_negotiated (GstImagingOutput *self);

/**
 * gst_imaging_output_caps: (skip)
 * Returns: (transfer none) (nullable): what was agreed on
 */
GST_IMAGING_API
GstCaps *gst_imaging_output_caps (GstImagingOutput *self);

/**
 * gst_imaging_output_use_host: (skip)
 *
 * Whether buffers of plain caps are born in page-locked memory on CUDA, and not
 * on the device: where several devices write them.
 */
GST_IMAGING_API
void gst_imaging_output_use_host (GstImagingOutput *self, gboolean use_host);

/**
 * gst_imaging_output_acquire: (skip)
 * @engine: of the element; on CUDA the buffer is in device memory
 * @carrier: a video format of as many bytes, the format itself where it is one
 * @buffer: (out) (transfer full): a buffer to be written
 *
 * Returns: IMK_OK or IMK_ERROR_MEMORY
 */
GST_IMAGING_API
ImkStatus gst_imaging_output_acquire (GstImagingOutput *self,
    GstImagingEngine *engine, const GstVideoInfo *carrier, GstBuffer **buffer,
    ImkError *error);

/**
 * gst_imaging_output_push: (skip)
 * @buffer: (transfer full): after gst_imaging_output_negotiate()
 *
 * The first one after a segment or a flush is marked as a discontinuity.
 */
GST_IMAGING_API
GstFlowReturn gst_imaging_output_push (
    GstImagingOutput *self, GstBuffer *buffer);

G_END_DECLS
