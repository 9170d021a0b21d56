/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The query by which shcentroid asks the element that is linked directly behind
 * it to wait for the device in its place. After TRUE slopes come in memory of
 * the device, and may not be complete on @stream; who maps them waits. */
#pragma once

#include "gstimagingcontext.h"

/* Behind @pad, after a frame has left. Returns: whether the next frame may be
 * handed over */
gboolean gst_sh_centroid_handover_ask (
    GstPad *pad, GstImagingContext *context, gpointer stream);

/* For the other one, whose sink pad is @pad.
 * @context, @stream: (out): of shcentroid, in the thread of the frames
 * Returns: whether @query asks that */
gboolean gst_sh_centroid_handover_is_asked (GstPad *pad, GstQuery *query,
    GstImagingContext **context, gpointer *stream);
