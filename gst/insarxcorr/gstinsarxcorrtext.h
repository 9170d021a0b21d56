/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Offsets and fits as GMTSAR writes them, and as a message. */
#pragma once

#include <gst/gst.h>

#include "imk/insarxcorr-fit.h"
#include "imk/insarxcorr.h"

/* One row of freq_xcorr.dat: x, dx, y, dy, correlation. */
void gst_insar_text_append_row (GString *text, gdouble x, gdouble dx, gdouble y,
    gdouble dy, gdouble correlation);

/* Returns: (transfer full) (nullable): the ImkInsarxcorrPoint of the rows of
 * freq_xcorr.dat, @size bytes and a 0, whose correlation is above @snr; %NULL
 * with @error set to a sentence */
GArray *gst_insar_text_parse_rows (
    const gchar *text, gsize size, gdouble snr, ImkError *error);

/* Returns: (transfer full): the eight PRM lines of @fit */
GstBuffer *gst_insar_text_of_fit (const ImkInsarxcorrFit *fit);

/* Where a fit comes from. @width, @height: of the reference, 0 where they are
 * not known; @overlap: as in ImkInsarxcorrArea; @steps: whether patches already
 * lie all over the reference (grid=step); @grid_width, @grid_height: columns
 * and lines from the first patch of the grid to the last; @min_correlation: of
 * the points; @is_wanted: a peer gets the fit, so that warnings of a bad one
 * are posted */
typedef struct {
  guint width, height;
  gdouble overlap;
  gboolean steps;
  gdouble grid_width, grid_height;
  gdouble min_correlation;
  gboolean is_wanted;
} GstInsarFitOrigin;

/* Returns: that of a fit to patches of a complete @config, before any has been
 * measured */
GstInsarFitOrigin gst_insar_text_origin (const ImkInsarxcorrConfig *config);

/* Posts the message "insarxcorr-fit": n-points (guint64); of range (r) and
 * azimuth (a) shift, stretch, a-stretch, rms, misfit, corner (gdouble), as
 * shift-r; corner is the error that is expected at the corners of the image.
 * And span, gain (of ImkInsarxcorrReach), min-correlation, x-least, x-most,
 * y-least, y-most of the points (gdouble); what gst_imaging_origin_set() sets.
 * @points: the ImkInsarxcorrPoint of @fit */
void gst_insar_text_post_fit (GstElement *element, const GArray *points,
    const ImkInsarxcorrFit *fit, const GstInsarFitOrigin *origin);
