/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingengine.h"

G_BEGIN_DECLS

/**
 * GstImagingSrcPad: (skip)
 *
 * The source pad of an element whose base class has none: normalintegrate,
 * insarxcorr, insarform, photostereo, octbscan, and the pad `results` of every
 * GstImagingFilter. A #GstImagingSrcPads creates the pads of an element, passes
 * events to all of them and combines their flows.
 *
 * ## What the pad does
 * - Events: stream-start, caps and segment leave in this order, each with the
 *   sequence number of the input event that caused it. Stream-start and segment
 *   wait for caps, as a pad may have no data for a long time;
 *   gst_imaging_src_pad_begin() sends them earlier. The pad repeats what a
 *   flush dropped.
 * - DISCONT: the first buffer after a segment or a flush has the flag.
 * - Negotiation: either side's order of formats decides. After a refusal there
 *   are no caps. The pad posts no message: the element knows whether a refusal
 *   is an error, and which sentence explains it.
 * - Buffers: a pool in the memory that the kernel writes.
 *
 * ## What the element does
 * It passes input events to gst_imaging_src_pad_event(), and for each result
 * calls
 * |[
 * flow = gst_imaging_src_pad_negotiate (pad, preference, offers);
 * status = gst_imaging_src_pad_acquire (pad, engine, &info, &buffer, error);
 * flow = gst_imaging_src_pad_push (pad, buffer);
 * ]|
 * each if the one before succeeded.
 *
 * ## Threads
 * All functions belong to the streaming thread, flush-start to any. Another
 * thread may push if the streaming thread waits for it before it passes a
 * serialized event, as octbscan does.
 *
 * ## Subclasses
 * A subclass chooses its memory itself (octbscan), or overrides send_event (the
 * pad `results`, whose text is pushed by a thread of its own).
 */
#define GST_TYPE_IMAGING_SRC_PAD (gst_imaging_src_pad_get_type ())
GST_IMAGING_API
G_DECLARE_DERIVABLE_TYPE (
    GstImagingSrcPad, gst_imaging_src_pad, GST, IMAGING_SRC_PAD, GstPad)

/**
 * GstImagingSrcPadClass: (skip)
 * @keeps_stream: whether the stream of the pad is that of the input, and
 *   stream-start is passed on unchanged; by default the pad has a stream of its
 *   own in the same group
 * @send_event: (optional): sends an event (transfer full) downstream; by
 *   default gst_pad_push_event(). All events of the pad come here.
 */
struct _GstImagingSrcPadClass {
  GstPadClass parent_class;
  gboolean keeps_stream;
  gboolean (*send_event) (GstImagingSrcPad *self, GstEvent *event);
};

/**
 * GstImagingPreference: (skip)
 * @GST_IMAGING_PREFER_OURS: the first of our offers that the peer accepts
 * @GST_IMAGING_PREFER_PEERS: what the peer's caps name first, of our offers
 */
typedef enum {
  GST_IMAGING_PREFER_OURS,
  GST_IMAGING_PREFER_PEERS,
} GstImagingPreference;

/**
 * gst_imaging_src_pad_reset: (skip)
 *
 * Forgets stream, caps and buffers, for another run.
 */
GST_IMAGING_API
void gst_imaging_src_pad_reset (GstImagingSrcPad *self);

/**
 * gst_imaging_src_pad_event: (skip)
 * @event: (transfer none): an input event
 *
 * Stream-start and segment are sent with the next caps. Caps are ignored: the
 * pad has its own. EOS is always sent, a gap only when there are caps: an
 * element whose caps do not depend on data negotiates before. Flushes and other
 * events, such as those of an application, are sent at once.
 */
GST_IMAGING_API
void gst_imaging_src_pad_event (GstImagingSrcPad *self, GstEvent *event);

/**
 * gst_imaging_src_pad_follow: (skip)
 * @event: (transfer none): a sticky event that is older than the pad
 *
 * Sends nothing yet: @event follows the first segment.
 */
GST_IMAGING_API
void gst_imaging_src_pad_follow (GstImagingSrcPad *self, GstEvent *event);

/**
 * gst_imaging_src_pad_begin: (skip)
 *
 * Sends a pending stream-start, and a pending segment if there are caps. For an
 * element that negotiates before it has data.
 */
GST_IMAGING_API
void gst_imaging_src_pad_begin (GstImagingSrcPad *self);

/**
 * gst_imaging_src_pad_negotiate: (skip)
 * @preference: whose order of formats counts
 * @offers: (transfer full): our caps, the best first; fixed with
 *   %GST_IMAGING_PREFER_OURS
 *
 * Sends stream-start, caps that both sides accept, and the segment, as far as
 * they are pending.
 *
 * Returns: %GST_FLOW_OK, %GST_FLOW_NOT_LINKED, %GST_FLOW_FLUSHING, or
 *   %GST_FLOW_NOT_NEGOTIATED when the peer refuses all of @offers. After a
 *   refusal there are no caps, and the next call asks again.
 */
GST_IMAGING_API
GstFlowReturn gst_imaging_src_pad_negotiate (
    GstImagingSrcPad *self, GstImagingPreference preference, GstCaps *offers);

/**
 * gst_imaging_src_pad_choose_caps: (skip)
 *
 * The first half of gst_imaging_src_pad_negotiate(), for an element that looks
 * at the caps before they are sent.
 * Returns: (transfer full) (nullable): fixed caps, %NULL when there are none
 */
GST_IMAGING_API
GstCaps *gst_imaging_src_pad_choose_caps (
    GstImagingSrcPad *self, GstImagingPreference preference, GstCaps *offers);

/**
 * gst_imaging_src_pad_set_caps: (skip)
 * @caps: (transfer full) (nullable): fixed caps, %NULL when there are none
 *
 * The second half of gst_imaging_src_pad_negotiate().
 * Returns: as gst_imaging_src_pad_negotiate()
 */
GST_IMAGING_API
GstFlowReturn gst_imaging_src_pad_set_caps (
    GstImagingSrcPad *self, GstCaps *caps);

/**
 * gst_imaging_src_pad_is_negotiated: (skip)
 *
 * A cheap check for elements whose offers stay the same.
 * Returns: whether gst_imaging_src_pad_negotiate() has sent all its events, and
 *   the peer has not requested a new negotiation
 */
GST_IMAGING_API
gboolean gst_imaging_src_pad_is_negotiated (GstImagingSrcPad *self);

/**
 * gst_imaging_src_pad_caps: (skip)
 * Returns: (transfer none) (nullable): the negotiated caps
 */
GST_IMAGING_API
GstCaps *gst_imaging_src_pad_caps (GstImagingSrcPad *self);

/**
 * gst_imaging_src_pad_forget_caps: (skip)
 *
 * Makes the next gst_imaging_src_pad_negotiate() send caps again, and drops the
 * pool.
 */
GST_IMAGING_API
void gst_imaging_src_pad_forget_caps (GstImagingSrcPad *self);

/**
 * gst_imaging_src_pad_use_host: (skip)
 *
 * Whether buffers with plain caps are in page-locked memory on CUDA instead of
 * device memory: for buffers that several devices write.
 */
GST_IMAGING_API
void gst_imaging_src_pad_use_host (GstImagingSrcPad *self, gboolean use_host);

/**
 * gst_imaging_src_pad_acquire: (skip)
 * @engine: of the element; on CUDA the buffer is in device memory
 * @carrier: a video format of as many bytes, the format itself if it is video
 * @buffer: (out) (transfer full): a writable buffer
 *
 * Returns: IMK_OK or IMK_ERROR_MEMORY
 */
GST_IMAGING_API
ImkStatus gst_imaging_src_pad_acquire (GstImagingSrcPad *self,
    GstImagingEngine *engine, const GstVideoInfo *carrier, GstBuffer **buffer,
    ImkError *error);

/**
 * gst_imaging_src_pad_prepare_buffer: (skip)
 * @buffer: (transfer full): the next buffer of the pad
 *
 * Sends pending events and sets DISCONT if @buffer does not continue the one
 * before. Only for buffers that gst_imaging_src_pad_push() does not push, such
 * as those of a list.
 * Returns: (transfer full): @buffer or a writable copy
 */
GST_IMAGING_API
GstBuffer *gst_imaging_src_pad_prepare_buffer (
    GstImagingSrcPad *self, GstBuffer *buffer);

/**
 * gst_imaging_src_pad_push: (skip)
 * @buffer: (transfer full): after gst_imaging_src_pad_negotiate()
 *
 * Without a segment from upstream, one without limits is sent before @buffer.
 */
GST_IMAGING_API
GstFlowReturn gst_imaging_src_pad_push (
    GstImagingSrcPad *self, GstBuffer *buffer);

G_END_DECLS
