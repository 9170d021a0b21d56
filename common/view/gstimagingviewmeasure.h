/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is measured of a frame for a viewer: true samples, not those of its
 * picture. */
#pragma once

#include "gstimagingviewsection.h"

typedef struct {
  GstImagingViewRectangle region;
  guint n_bins;
  gdouble low, step; /* bin i holds low + i step up to low + (i + 1) step */
  gdouble high;      /* of the last bin: a sample may be this */
  struct {
    guint64 n; /* finite samples; without one the next are NaN */
    guint64 n_nan, n_infinite;
    guint64 n_below, n_above; /* samples of n that are in no bin */
    gdouble minimum, maximum, mean, deviation;
    guint64 *counts; /* [n_bins] */
  } channels[4];
} GstImagingViewStatistics;

#define GST_IMAGING_VIEW_N_JUDGED 8192 /* samples that stand for all */

/* Where the @k-th of them is: one in each @step, at a place within it that
 * follows the golden ratio. Each @step-th would be a few columns of a frame
 * whose width is a multiple of @step, and a lenslet array or a grating hits or
 * misses those as a whole. */
static inline gsize
gst_imaging_view_judged (gsize k, gsize step)
{
  const guint32 fraction = (guint32) k * 2654435769u; /* of 2^32 */

  return k * step + (gsize) (((guint64) fraction * step) >> 32);
}

/* The ends of @n values, @percent of which are left out at each; of none 0.
 * @values: get another order */
void gst_imaging_view_measure_ends (
    gdouble *values, gsize n, gdouble percent, gdouble *low, gdouble *high);

/* Samples of a part, [height][width][channels]. @part is cut to what is there.
 * Returns: (transfer full) */
gdouble *gst_imaging_view_measure_part (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, GstImagingViewRectangle *part);

/* A sample of a section; x and y are undefined where there is none */
typedef struct {
  guint x, y;
  gboolean is_there;
} GstImagingViewPoint;

#define GST_IMAGING_VIEW_MAX_POINTS 4096 /* of a profile */

/* The samples nearest to the line of the settings, one for each column or row
 * that it crosses: [n][channels].
 * @points: (out) (transfer full): [n]: where they are
 * Returns: (transfer full) */
gdouble *gst_imaging_view_measure_profile (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, guint *n,
    GstImagingViewPoint **points);

/* The bins hold the samples that the automatic window takes, and as many steps
 * again: a few samples that are far away would leave all others in one bin.
 * Bins of integers are whole numbers wide. The deviation is that of all
 * samples, sqrt (sum ((x - mean)^2) / n). @to: to be cleared */
void gst_imaging_view_measure_region (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, GstImagingViewStatistics *to);
void gst_imaging_view_statistics_clear (GstImagingViewStatistics *self);
