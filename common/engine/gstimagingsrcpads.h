/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingsrcpad.h"

G_BEGIN_DECLS

/**
 * GstImagingSrcPads: (skip)
 *
 * The source pads of an element, each a #GstImagingSrcPad, and their combined
 * flow. Pads are added and released in any thread, also while the streaming
 * thread pushes to them: a reference from gst_imaging_src_pads_get() stays
 * valid, and a pad that was released no longer counts. A pad that is added late
 * gets the sticky events from before.
 */
typedef struct _GstImagingSrcPads GstImagingSrcPads;

/**
 * gst_imaging_src_pads_new: (skip)
 * @element: owns the result
 * @pad_type: %GST_TYPE_IMAGING_SRC_PAD or a subclass
 * @names: of the pads, which are those of their templates, in the order of the
 *   indices below; must stay valid
 * @n: how many
 *
 * Returns: to be freed with gst_imaging_src_pads_free()
 */
GST_IMAGING_API
GstImagingSrcPads *gst_imaging_src_pads_new (
    GstElement *element, GType pad_type, const gchar *const *names, guint n);

GST_IMAGING_API
void gst_imaging_src_pads_free (GstImagingSrcPads *self);

/**
 * gst_imaging_src_pads_set_functions: (skip)
 * @event: (nullable): for events from downstream
 * @query: (nullable): for queries from downstream
 *
 * Functions of all pads that are made from now on.
 */
GST_IMAGING_API
void gst_imaging_src_pads_set_functions (GstImagingSrcPads *self,
    GstPadEventFunction event, GstPadQueryFunction query);

/**
 * gst_imaging_src_pads_request: (skip)
 *
 * Makes the pad of a template and adds it to the element: for request_new_pad,
 * and for pads that are always there.
 * Returns: (transfer none) (nullable): %NULL if the element already has the pad
 */
GST_IMAGING_API
GstPad *gst_imaging_src_pads_request (
    GstImagingSrcPads *self, GstPadTemplate *pad_template);

/**
 * gst_imaging_src_pads_release: (skip)
 *
 * For release_pad of the element. Does not wait for an active push.
 */
GST_IMAGING_API
void gst_imaging_src_pads_release (GstImagingSrcPads *self, GstPad *pad);

/**
 * gst_imaging_src_pads_get: (skip)
 * @index: its place in the names
 *
 * Returns: (transfer full) (nullable): the pad, %NULL if nobody requested it
 */
GST_IMAGING_API
GstImagingSrcPad *gst_imaging_src_pads_get (
    GstImagingSrcPads *self, guint index);

/**
 * gst_imaging_src_pads_has: (skip)
 * @index: its place in the names
 *
 * Returns: whether there is such a pad
 */
GST_IMAGING_API
gboolean gst_imaging_src_pads_has (GstImagingSrcPads *self, guint index);

/**
 * gst_imaging_src_pads_serial: (skip)
 *
 * Returns: a number that changes whenever a pad is added or released
 */
GST_IMAGING_API
guint gst_imaging_src_pads_serial (GstImagingSrcPads *self);

/**
 * gst_imaging_src_pads_combine: (skip)
 * @index: its place in the names
 * @pad: (nullable): the pad, which may have been released since
 * @flow: of its last push, or %GST_FLOW_NOT_LINKED
 * @before: combined flow of the pads before it
 *
 * Returns: the combined flow, which is %GST_FLOW_OK as long as one pad wants
 *   more; @before if @pad has been released
 */
GST_IMAGING_API
GstFlowReturn gst_imaging_src_pads_combine (GstImagingSrcPads *self,
    guint index, GstImagingSrcPad *pad, GstFlowReturn flow,
    GstFlowReturn before);

/**
 * gst_imaging_src_pads_event: (skip)
 * @event: (transfer none): an input event, for all pads
 */
GST_IMAGING_API
void gst_imaging_src_pads_event (GstImagingSrcPads *self, GstEvent *event);

/**
 * gst_imaging_src_pads_begin: (skip)
 *
 * gst_imaging_src_pad_begin() for all pads.
 */
GST_IMAGING_API
void gst_imaging_src_pads_begin (GstImagingSrcPads *self);

/**
 * gst_imaging_src_pads_reset: (skip)
 *
 * Forgets streams, caps, buffers and flows, for another run.
 */
GST_IMAGING_API
void gst_imaging_src_pads_reset (GstImagingSrcPads *self);

G_END_DECLS
