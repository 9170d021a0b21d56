/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewmeasure.h"

#include <math.h>
#include <string.h>

gdouble *
gst_imaging_view_measure_part (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, GstImagingViewRectangle *part)
{
  g_autofree guint *xs = NULL;
  gdouble *values;
  gsize row;

  gst_imaging_view_section_cut (frame, settings, part);
  row = (gsize) part->width * frame->channels;
  xs = gst_imaging_view_section_columns (part->x, part->width);
  values = g_new (gdouble, row * part->height);
  for (guint i = 0; i < part->height; i++)
    gst_imaging_view_section_read (
        frame, settings, part->y + i, xs, part->width, values + i * row);
  return values;
}

gdouble *
gst_imaging_view_measure_profile (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, guint *n)
{
  const GstImagingViewLine *line = &settings->profile;
  const gdouble dx = line->x1 - line->x0, dy = line->y1 - line->y0;
  const gdouble steps = MAX (1, round (MAX (fabs (dx), fabs (dy))));
  const guint channels = frame->channels;
  guint width, height;
  gdouble *values;

  gst_imaging_view_section_size (frame, settings, &width, &height);
  *n = (guint) MIN (steps + 1, settings->n_points);
  values = g_new (gdouble, (gsize) *n * channels);
  for (guint i = 0; i < *n; i++) {
    const gdouble part = *n > 1 ? i / (gdouble) (*n - 1) : 0;
    const gdouble x = round (line->x0 + part * dx);
    const gdouble y = round (line->y0 + part * dy);
    const guint column = (guint) CLAMP (x, 0, width - 1);
    gdouble *to = values + (gsize) i * channels;

    if (x >= 0 && x < width && y >= 0 && y < height)
      gst_imaging_view_section_read (
          frame, settings, (guint) y, &column, 1, to);
    else
      for (guint c = 0; c < channels; c++)
        to[c] = NAN;
  }
  return values;
}

/* --- statistics ----------------------------------------------------------- */

typedef void (*RowFunction) (
    GstImagingViewStatistics *to, guint channels, const gdouble *values);

static void
for_each_row (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, GstImagingViewStatistics *to,
    RowFunction function)
{
  const GstImagingViewRectangle *r = &to->region;
  g_autofree guint *xs = gst_imaging_view_section_columns (r->x, r->width);
  g_autofree gdouble *row = g_new (gdouble, (gsize) r->width * frame->channels);

  for (guint i = 0; i < r->height; i++) {
    gst_imaging_view_section_read (
        frame, settings, r->y + i, xs, r->width, row);
    function (to, frame->channels, row);
  }
}

static void
add_sums (GstImagingViewStatistics *to, guint channels, const gdouble *values)
{
  for (guint x = 0; x < to->region.width; x++)
    for (guint c = 0; c < channels; c++, values++)
      if (isfinite (*values)) {
        to->channels[c].n++;
        to->channels[c].mean += *values;
        to->channels[c].minimum = MIN (to->channels[c].minimum, *values);
        to->channels[c].maximum = MAX (to->channels[c].maximum, *values);
      }
}

static void
add_counts (GstImagingViewStatistics *to, guint channels, const gdouble *values)
{
  for (guint x = 0; x < to->region.width; x++)
    for (guint c = 0; c < channels; c++, values++)
      if (isfinite (*values)) {
        const gdouble off = *values - to->channels[c].mean;
        const gdouble bin = (*values - to->low) / to->step;

        to->channels[c].deviation += off * off;
        to->channels[c].counts[(guint) MIN (bin, to->n_bins - 1)]++;
      }
}

/* One axis for all channels */
static void
choose_bins (GstImagingViewStatistics *to, const GstImagingViewFrame *frame,
    guint n_bins)
{
  const gboolean is_whole = frame->type < GST_IMAGING_VIEW_F16;
  gdouble low = INFINITY, high = -INFINITY;

  for (guint c = 0; c < frame->channels; c++) {
    low = MIN (low, to->channels[c].minimum);
    high = MAX (high, to->channels[c].maximum);
  }
  if (!(low <= high))
    low = high = 0;
  to->low = low;
  /* the difference of two finite numbers may not be finite */
  to->step = is_whole ? ceil ((high - low + 1) / n_bins)
                      : high / n_bins - low / n_bins;
  if (!(to->step > 0))
    to->step = 1;
  to->n_bins = is_whole ? (guint) floor ((high - low) / to->step) + 1 : n_bins;
}

void
gst_imaging_view_measure_region (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, GstImagingViewStatistics *to)
{
  *to = (GstImagingViewStatistics){.region = settings->region};
  gst_imaging_view_section_cut (frame, settings, &to->region);
  for (guint c = 0; c < frame->channels; c++) {
    to->channels[c].minimum = INFINITY;
    to->channels[c].maximum = -INFINITY;
  }
  for_each_row (frame, settings, to, add_sums);
  choose_bins (to, frame, settings->n_bins);
  for (guint c = 0; c < frame->channels; c++) {
    to->channels[c].mean /= (gdouble) to->channels[c].n;
    to->channels[c].counts = g_new0 (guint64, to->n_bins);
  }
  for_each_row (frame, settings, to, add_counts);
  for (guint c = 0; c < frame->channels; c++)
    to->channels[c].deviation =
        sqrt (to->channels[c].deviation / (gdouble) to->channels[c].n);
}

void
gst_imaging_view_statistics_clear (GstImagingViewStatistics *self)
{
  for (guint c = 0; c < G_N_ELEMENTS (self->channels); c++)
    g_clear_pointer (&self->channels[c].counts, g_free);
}
