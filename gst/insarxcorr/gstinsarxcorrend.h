/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The results of insarxcorr that need all rows: the fit and the rasters, on
 * request pads, and the file of offsets-location. */
#pragma once

#include "gstimagingsrcpads.h"
#include "imk/insarxcorr.h"
#include "insar/gstinsarpair.h"

/* The source pads of insarxcorr: those of the end come first. */
enum { FIT, RASTERS, N_END_PADS, SRC = N_END_PADS, N_PADS };

typedef struct _GstInsarEnd GstInsarEnd;

/* The pads' templates, in this order, come with the class. */
void gst_insar_end_add_templates (GstElementClass *klass);

/* @element: the owner, not referenced; @pads: of it */
GstInsarEnd *gst_insar_end_new (GstElement *element, GstImagingSrcPads *pads);
void gst_insar_end_free (GstInsarEnd *self);

/* Returns: whether any of the pads exists, or a file is written */
gboolean gst_insar_end_is_wanted (GstInsarEnd *self);

/* --- of the thread that works --------------------------------------------- */

/* Before the first row of patches of @config. @location: (nullable): of a
 * raster to write. @image: caps of the reference */
void gst_insar_end_begin (GstInsarEnd *self, const ImkInsarxcorrConfig *config,
    gint fit_range, gint fit_azimuth, const gchar *location, GstCaps *image);

/* Sends caps and a gap, so that sinks preroll before the end; also after a
 * flush.
 * Returns: GST_FLOW_OK, or GST_FLOW_NOT_NEGOTIATED */
GstFlowReturn gst_insar_end_start (GstInsarEnd *self);

/* Takes a row of patches. @threshold: correlation above which patches take part
 * in the fit; the last one counts for all
 * Returns: FALSE after an error has been posted: there is no memory, or the
 * raster cannot be opened */
gboolean gst_insar_end_take_row (
    GstInsarEnd *self, const gdouble *values, gdouble threshold);

/* @eos: (transfer none): for all pads
 * @complete: whether all rows were measured; a part of them gives no fit */
void gst_insar_end_push (GstInsarEnd *self, GstEvent *eos, gboolean complete);

/* After a flush, or when the element has stopped: forgets all rows. */
void gst_insar_end_reset (GstInsarEnd *self, gboolean stopped);
