/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewmeasure.h"

#include <math.h>
#include <stdlib.h>
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
    const GstImagingViewSettings *settings, guint *n,
    GstImagingViewPoint **points)
{
  const GstImagingViewLine *line = &settings->profile;
  const gdouble dx = line->x1 - line->x0, dy = line->y1 - line->y0;
  const gdouble steps = round (MAX (fabs (dx), fabs (dy)));
  const guint channels = frame->channels;
  gdouble *values;

  *n = (guint) MIN (steps + 1, GST_IMAGING_VIEW_MAX_POINTS);
  values = g_new0 (gdouble, (gsize) *n * channels);
  *points = g_new0 (GstImagingViewPoint, *n);
  for (guint i = 0; i < *n; i++) {
    const gdouble part = *n > 1 ? i / (gdouble) (*n - 1) : 0;
    const gdouble x = round (line->x0 + part * dx);
    const gdouble y = round (line->y0 + part * dy);
    GstImagingViewPoint *point = &(*points)[i];

    point->is_there = gst_imaging_view_section_has (frame, settings, x, y);
    if (!point->is_there)
      continue;
    point->x = (guint) x;
    point->y = (guint) y;
    gst_imaging_view_section_read (
        frame, settings, point->y, &point->x, 1, values + (gsize) i * channels);
  }
  return values;
}

/* --- ends ------------------------------------------------------------------
 */

/* Hoare's algorithm FIND. Returns: the @k-th smallest; those before it are not
 * larger then, and those behind it not smaller */
static gdouble
find (gdouble *values, gsize n, gsize k)
{
  gssize first = 0, last = (gssize) n - 1;

  while (first < last) {
    const gdouble middle = values[k];
    gssize i = first, j = last;

    while (i <= j) {
      while (values[i] < middle)
        i++;
      while (values[j] > middle)
        j--;
      if (i <= j) {
        const gdouble other = values[i];

        values[i++] = values[j];
        values[j--] = other;
      }
    }
    if (j < (gssize) k)
      first = i;
    if (i > (gssize) k)
      last = j;
  }
  return values[k];
}

void
gst_imaging_view_measure_ends (
    gdouble *values, gsize n, gdouble percent, gdouble *low, gdouble *high)
{
  const gsize n_cut = (gsize) ((gdouble) n * percent / 100);

  *low = n > 0 ? find (values, n, n_cut) : 0;
  *high = n > 0 ? find (values, n, n - 1 - n_cut) : 0;
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
      } else if (isnan (*values)) {
        to->channels[c].n_nan++;
      } else {
        to->channels[c].n_infinite++;
      }
}

/* Samples of slices that have not been seen are no NaN of the frames. */
static void
forget_unseen (GstImagingViewStatistics *to, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings)
{
  const GstImagingViewRectangle *r = &to->region;

  if (frame->n_filled == frame->n_slices)
    return;
  for (guint y = r->y; y < r->y + r->height; y++)
    for (guint x = r->x; x < r->x + r->width; x++)
      if (!gst_imaging_view_section_has (frame, settings, x, y))
        for (guint c = 0; c < frame->channels; c++)
          to->channels[c].n_nan--;
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
        if (*values < to->low)
          to->channels[c].n_below++;
        else if (*values > to->high)
          to->channels[c].n_above++;
        else
          to->channels[c].counts[(guint) MIN (bin, to->n_bins - 1)]++;
      }
}

/* Of the samples the settings leave out as many at each end as the automatic
 * window does; half of what is between is added there. */
static void
find_ends (const GstImagingViewStatistics *s, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, gdouble *low, gdouble *high)
{
  const GstImagingViewRectangle *r = &s->region;
  const gsize n_row = (gsize) r->width * frame->channels;
  const gsize step = MAX (n_row * r->height / GST_IMAGING_VIEW_N_JUDGED, 1);
  g_autofree guint *xs = gst_imaging_view_section_columns (r->x, r->width);
  g_autofree gdouble *row = g_new (gdouble, n_row);
  g_autofree gdouble *judged = g_new (gdouble, n_row * r->height / step + 1);
  gdouble from, to;
  gsize n = 0, place, before = G_MAXSIZE;

  for (gsize k = 0;
       (place = gst_imaging_view_judged (k, step)) < n_row * r->height; k++) {
    const gsize y = place / n_row;

    if (y != before)
      gst_imaging_view_section_read (
          frame, settings, r->y + (guint) y, xs, r->width, row);
    before = y;
    if (isfinite (row[place % n_row]))
      judged[n++] = row[place % n_row];
  }
  gst_imaging_view_measure_ends (judged, n, settings->clip, &from, &to);
  if (from < to) {
    *low = MAX (*low, from - (to / 2 - from / 2));
    *high = MIN (*high, to + (to / 2 - from / 2));
  }
}

/* One axis for all channels */
static void
choose_bins (GstImagingViewStatistics *to, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings)
{
  const guint n_bins = settings->n_bins;
  const gboolean is_whole =
      *gst_imaging_nd_array_type_name (frame->type) != 'f';
  gdouble low = INFINITY, high = -INFINITY;

  for (guint c = 0; c < frame->channels; c++) {
    low = MIN (low, to->channels[c].minimum);
    high = MAX (high, to->channels[c].maximum);
  }
  if (!(low <= high))
    low = high = 0;
  if (settings->clip > 0)
    find_ends (to, frame, settings, &low, &high);
  if (is_whole) {
    low = floor (low);
    high = ceil (high);
  }
  to->low = low;
  /* the difference of two finite numbers may not be finite */
  to->step = is_whole ? ceil ((high - low + 1) / n_bins)
                      : high / n_bins - low / n_bins;
  if (!(to->step > 0))
    to->step = 1;
  to->n_bins = n_bins;
  to->high = high;
  if (is_whole) {
    to->n_bins = (guint) MIN (floor ((high - low) / to->step) + 1, n_bins);
    to->high = MAX (high, low + to->n_bins * to->step - 1);
  }
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
  forget_unseen (to, frame, settings);
  choose_bins (to, frame, settings);
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
