/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewreduce.h"

#include <math.h>
#include <string.h>

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
  Span *columns;
  guint *xs;
  gdouble *row, *sum;
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

#define ADD(type) \
  do { \
    const type *p = samples; \
\
    for (gsize i = 0; i < n; i++) \
      sum[i] += weight * ((gdouble) p[i] - base); \
  } while (0)

/* The crop's part of a row, in place; NULL: it has to be read */
static gconstpointer
find_row (const Reduction *r, guint y)
{
  const guint8 *row =
      gst_imaging_view_section_row (r->frame, r->settings, r->crop.y + y);

  return row ? row + (gsize) r->crop.x * r->frame->channels *
                         gst_imaging_view_type_size (r->frame->type)
             : NULL;
}

static void
add_row (Reduction *r, guint y, gdouble weight)
{
  gconstpointer samples = find_row (r, y);
  gdouble *sum = r->sum;
  const gdouble base = r->base;
  const gsize n = r->n_row;

  if (samples && r->frame->type == GST_IMAGING_VIEW_U8) {
    ADD (guint8);
  } else if (samples && r->frame->type == GST_IMAGING_VIEW_U16) {
    ADD (guint16);
  } else if (samples && r->frame->type == GST_IMAGING_VIEW_F32) {
    ADD (gfloat);
  } else {
    gst_imaging_view_section_read (
        r->frame, r->settings, r->crop.y + y, r->xs, r->crop.width, r->row);
    samples = r->row;
    ADD (gdouble);
  }
}

static void
add_rows (Reduction *r, const Span *rows)
{

  memset (r->sum, 0, r->n_row * sizeof (*r->sum));
  for (guint y = rows->first; y <= rows->last; y++)
    add_row (r, y, weight_of (rows, y, r->height));
}

/* A pixel with NaN, infinities, or sums beyond all doubles */
static void
average_with_care (
    Reduction *r, const Span *columns, const Span *rows, gdouble *value)
{
  const guint channels = r->frame->channels;
  const guint n = columns->last - columns->first + 1;
  const gdouble area = (gdouble) r->crop.width * r->crop.height;
  gdouble sum[4] = {0}, weights[4] = {0}, low[4], high[4];

  for (guint c = 0; c < channels; c++) {
    low[c] = INFINITY;
    high[c] = -INFINITY;
  }
  for (guint y = rows->first; y <= rows->last; y++) {
    const gdouble w_row = weight_of (rows, y, r->height) / area;
    const gdouble *p = r->row;

    gst_imaging_view_section_read (r->frame, r->settings, r->crop.y + y,
        r->xs + columns->first, n, r->row);
    for (guint x = columns->first; x <= columns->last; x++) {
      const gdouble weight = w_row * weight_of (columns, x, r->width);

      for (guint c = 0; c < channels; c++, p++)
        if (!isnan (*p)) {
          sum[c] += weight * *p;
          weights[c] += weight;
          low[c] = MIN (low[c], *p);
          high[c] = MAX (high[c], *p);
        }
    }
  }
  for (guint c = 0; c < channels; c++)
    value[c] =
        weights[c] > 0 ? CLAMP (sum[c] / weights[c], low[c], high[c]) : NAN;
}

static void
average_row (Reduction *r, const Span *rows, gdouble *values)
{
  const guint channels = r->frame->channels;
  const gdouble area = (gdouble) r->crop.width * r->crop.height;

  for (guint x = 0; x < r->width; x++, values += channels) {
    const Span *span = &r->columns[x];
    gboolean is_finite = TRUE;

    for (guint c = 0; c < channels; c++) {
      const gdouble *sum = r->sum + c;
      gdouble whole = 0;

      for (guint k = span->first + 1; k < span->last; k++)
        whole += sum[(gsize) k * channels];
      whole = whole * r->width +
              sum[(gsize) span->first * channels] * span->w_first;
      if (span->last > span->first)
        whole += sum[(gsize) span->last * channels] * span->w_last;
      values[c] = r->base + whole / area;
      is_finite = is_finite && isfinite (values[c]);
    }
    if (!is_finite)
      average_with_care (r, span, rows, values);
  }
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
  };

  for (guint x = 0; x < width; x++)
    columns[x] = span_of (x, crop->width, width);
  gst_imaging_view_section_read (frame, settings, crop->y, xs, 1, row);
  r.base = isfinite (row[0]) ? row[0] : 0;
  for (guint y = 0; y < height;
       y++, values += (gsize) width * frame->channels) {
    const Span rows = span_of (y, crop->height, height);

    add_rows (&r, &rows);
    average_row (&r, &rows, values);
  }
}
