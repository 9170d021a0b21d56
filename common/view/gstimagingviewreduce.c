/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewreduce.h"

#include <math.h>
#include <string.h>

#define MAX_BASE 1e290 /* from any double it can be subtracted */

/* The samples of a pixel along one axis, n samples in n_pixels. Lengths are in
 * 1 / n_pixels of a sample: a pixel has n of them, a whole sample n_pixels. */
typedef struct {
  guint first, last;
  gdouble w_first, w_last; /* w_last: 0 if it is the first */
} Span;

typedef struct {
  const GstImagingViewFrame *frame;
  const GstImagingViewSettings *settings;
  GstImagingViewRectangle crop;
  guint width, height;
  gsize n_row; /* numbers of a row of the crop */
  /* One sample is subtracted of all: a constant frame has to remain constant to
   * the last bit, or the automatic window shows rounding errors. */
  gdouble base;
  gdouble unit; /* of weights: a power of two, so that no sum overflows */
  Span *columns;
  guint *xs;
  gdouble *row, *sum, *weights;
} Reduction;

static Span
span_of (guint pixel, guint n, guint n_pixels)
{
  const guint64 begin = (guint64) pixel * n, end = begin + n;
  const guint first = (guint) (begin / n_pixels);
  const guint last = (guint) ((end - 1) / n_pixels);

  return (Span){first, last,
      (gdouble) (MIN (end, (first + 1ull) * n_pixels) - begin),
      last > first ? (gdouble) (end - (guint64) last * n_pixels) : 0};
}

static gdouble
weight_of (const Span *span, guint at, guint n_pixels)
{
  return at == span->first  ? span->w_first
         : at == span->last ? span->w_last
                            : n_pixels;
}

static const gdouble *
read_row (Reduction *r, guint y)
{
  gst_imaging_view_section_read (
      r->frame, r->settings, r->crop.y + y, r->xs, r->crop.width, r->row);
  return r->row;
}

static void
add_row (Reduction *r, guint y, gdouble weight)
{
  const gdouble *samples = read_row (r, y), base = r->base;
  gdouble *sum = r->sum;

  for (gsize i = 0; i < r->n_row; i++)
    sum[i] += weight * (samples[i] - base);
}

/* Without NaN. It takes longer than add_row () with a row that has none. */
static void
add_numbers (Reduction *r, guint y, gdouble weight)
{
  const gdouble *samples = read_row (r, y), base = r->base;
  gdouble *sum = r->sum, *weights = r->weights;

  for (gsize i = 0; i < r->n_row; i++) {
    const gdouble part = weight * (samples[i] - base);

    sum[i] += isnan (samples[i]) ? 0 : part;
    weights[i] += isnan (samples[i]) ? 0 : weight;
  }
}

static void
add_rows (Reduction *r, const Span *rows, gboolean has_nan)
{
  memset (r->sum, 0, r->n_row * sizeof (*r->sum));
  if (has_nan)
    memset (r->weights, 0, r->n_row * sizeof (*r->weights));
  for (guint y = rows->first; y <= rows->last; y++) {
    const gdouble weight = weight_of (rows, y, r->height) * r->unit;

    if (has_nan)
      add_numbers (r, y, weight);
    else
      add_row (r, y, weight);
  }
}

/* Along a row, of each @channels-th number */
static gdouble
sum_of (const gdouble *numbers, const Span *span, guint channels, guint width)
{
  gdouble sum = 0;

  for (guint x = span->first + 1; x < span->last; x++)
    sum += numbers[(gsize) x * channels];
  sum = sum * width + numbers[(gsize) span->first * channels] * span->w_first;
  if (span->last > span->first)
    sum += numbers[(gsize) span->last * channels] * span->w_last;
  return sum;
}

/* Returns: whether all means are numbers */
static gboolean
average_row (Reduction *r, gboolean has_nan, gdouble *values)
{
  const guint channels = r->frame->channels;
  const gdouble area = (gdouble) r->crop.width * r->crop.height * r->unit;
  gboolean are_finite = TRUE;

  for (guint x = 0; x < r->width; x++)
    for (guint c = 0; c < channels; c++) {
      const Span *span = &r->columns[x];
      const gdouble sum = sum_of (r->sum + c, span, channels, r->width);
      const gdouble weight =
          has_nan ? sum_of (r->weights + c, span, channels, r->width) : area;

      /* of no number 0 / 0, which is NaN */
      *values = r->base + sum / weight;
      are_finite = are_finite && isfinite (*values);
      values++;
    }
  return are_finite;
}

void
gst_imaging_view_reduce (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, const GstImagingViewRectangle *crop,
    guint width, guint height, gdouble *values)
{
  const gsize n_row = (gsize) crop->width * frame->channels;
  g_autofree Span *columns = g_new (Span, width);
  g_autofree guint *xs =
      gst_imaging_view_section_columns (crop->x, crop->width);
  g_autofree gdouble *row = g_new (gdouble, n_row);
  g_autofree gdouble *sum = g_new (gdouble, n_row);
  g_autofree gdouble *weights = g_new (gdouble, n_row);
  Reduction r = {
      .frame = frame,
      .settings = settings,
      .crop = *crop,
      .width = width,
      .height = height,
      .n_row = n_row,
      .columns = columns,
      .xs = xs,
      .row = row,
      .sum = sum,
      .weights = weights,
      .unit = ldexp (1, -ilogb ((gdouble) crop->width * crop->height) - 1),
  };

  for (guint x = 0; x < width; x++)
    columns[x] = span_of (x, crop->width, width);
  gst_imaging_view_section_read (frame, settings, crop->y, xs, 1, row);
  r.base = fabs (row[0]) < MAX_BASE ? row[0] : 0;
  for (guint y = 0; y < height;
       y++, values += (gsize) width * frame->channels) {
    const Span rows = span_of (y, crop->height, height);

    add_rows (&r, &rows, FALSE);
    if (average_row (&r, FALSE, values))
      continue;
    add_rows (&r, &rows, TRUE);
    average_row (&r, TRUE, values);
  }
}
