/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A source pad of insarxcorr: a stream of its own, with the format that its
 * peer names first. Its functions belong to one thread at a time. */
#pragma once

#include "gstimagingresults.h"

G_BEGIN_DECLS

typedef struct {
  GstPad *pad;
  gboolean started, segment_sent, header_sent;
  GstCaps *caps;
} GstInsarOutput;

/* Makes an active pad from @template, to be added to the element. */
void gst_insar_output_init (
    GstInsarOutput *self, GstPadTemplate *template, const gchar *name);

/* After flushing, or when the element has stopped: begins anew. */
void gst_insar_output_reset (GstInsarOutput *self, gboolean stopped);

/* Sends stream-start, @caps and segment where they are missing, so that a sink
 * is not kept waiting by a pad that speaks late. @upstream: id of the stream
 * that the element was given */
void gst_insar_output_start (
    GstInsarOutput *self, GstCaps *caps, const gchar *upstream);

/* Pushes a row of patches as GMTSAR's text, CSV or tensor. */
GstFlowReturn gst_insar_output_push_row (GstInsarOutput *self,
    const GstImagingResult *result, const gchar *upstream);

/* Says that nothing comes for now. */
void gst_insar_output_gap (GstInsarOutput *self);

void gst_insar_output_eos (GstInsarOutput *self, const gchar *upstream);

G_END_DECLS
