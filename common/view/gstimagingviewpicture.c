/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewpicture.h"

#include "gstimagingviewcolours.h"
#include "gstimagingviewmeasure.h"
#include "gstimagingviewreduce.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 8 }; /* of a JPEG, pixels */

/* --- values ------------------------------------------------------------------
 */

/* Those of the picture's rows, [width][channels] each. They are read as often
 * as they are needed: all of them together would drive the frames of the
 * pipeline out of the caches. Projections, which take long to read, and means
 * are kept. */
typedef struct {
  const GstImagingViewFrame *frame;
  const GstImagingViewSettings *settings;
  const guint *xs, *ys; /* where the pixels are in the section */
  guint width, height;
  gsize n_row;
  gboolean keeps;
  guint n_kept;
  gdouble *values; /* [keeps ? height : 1][n_row] */
} Rows;

/* Returns: the values of row @y, until the next call */
static const gdouble *
row_of (Rows *r, guint y)
{
  gdouble *values = r->values + (r->keeps ? y * r->n_row : 0);

  if (y < r->n_kept)
    return values;
  gst_imaging_view_section_read (
      r->frame, r->settings, r->ys[y], r->xs, r->width, values);
  gst_imaging_view_video_become_rgb (
      &r->frame->meaning, r->frame->channels, r->width, values);
  if (r->keeps)
    r->n_kept = y + 1;
  return values;
}

/* Returns: (nullable): the values of row @y where they are bytes of a frame,
 * as of most cameras: they need a table of 256 levels alone */
static const guint8 *
bytes_of (const Rows *r, guint y)
{
  const guint8 *row = NULL;

  if (!r->keeps && r->frame->type == GST_IMAGING_ND_ARRAY_TYPE_U8 &&
      r->frame->channels == 1 && r->xs[r->width - 1] - r->xs[0] == r->width - 1)
    row = gst_imaging_view_section_row (r->frame, r->settings, r->ys[y]);
  return row ? row + r->xs[0] : NULL;
}

static gboolean
has_nan (const gdouble *values, gsize n)
{
  guint n_nan = 0;

  for (gsize i = 0; i < n; i++)
    n_nan += isnan (values[i]) != 0;
  return n_nan > 0;
}

/* Returns: whether one of them is NaN */
static gboolean
become_means (Rows *r, const GstImagingViewRectangle *crop)
{
  const gsize n = r->n_row * r->height;

  g_free (r->values);
  r->values = g_new (gdouble, n);
  gst_imaging_view_reduce (
      r->frame, r->settings, crop, r->width, r->height, r->values);
  gst_imaging_view_video_become_rgb (&r->frame->meaning, r->frame->channels,
      (gsize) r->width * r->height, r->values);
  r->keeps = TRUE;
  r->n_kept = r->height;
  return has_nan (r->values, n);
}

/* --- window and level --------------------------------------------------------
 */

static gboolean
is_automatic (const GstImagingViewSettings *r)
{
  return isnan (r->window) || isnan (r->level);
}

/* The smallest and the largest finite value of each column, which a compiler
 * can do for several of them at once */
typedef struct {
  gsize n;
  gdouble *low, *high;
} Ends;

static void
ends_init (Ends *self, gsize n)
{
  self->n = n;
  self->low = g_new (gdouble, n);
  self->high = g_new (gdouble, n);
  for (gsize i = 0; i < n; i++) {
    self->low[i] = INFINITY;
    self->high[i] = -INFINITY;
  }
}

static void
ends_add (Ends *self, const gdouble *values)
{
  gdouble *low = self->low, *high = self->high;

  for (gsize i = 0; i < self->n; i++) {
    const gdouble v = values[i];

    low[i] = ((v < low[i]) & (v >= -G_MAXDOUBLE)) ? v : low[i];
    high[i] = ((v > high[i]) & (v <= G_MAXDOUBLE)) ? v : high[i];
  }
}

static void
ends_add_bytes (Ends *self, const guint8 *bytes)
{
  guint8 low = 255, high = 0;

  for (gsize i = 0; i < self->n; i++) {
    low = MIN (low, bytes[i]);
    high = MAX (high, bytes[i]);
  }
  self->low[0] = MIN (self->low[0], low);
  self->high[0] = MAX (self->high[0], high);
}

static void
ends_finish (Ends *self, GstImagingViewPicture *picture)
{
  for (gsize i = 0; i < self->n; i++) {
    picture->minimum = MIN (picture->minimum, self->low[i]);
    picture->maximum = MAX (picture->maximum, self->high[i]);
  }
  g_free (self->low);
  g_free (self->high);
}

/* Samples of the crop that the picture leaves out count as well. */
static void
judge_all (GstImagingViewPicture *self, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *r)
{
  const gsize n = (gsize) self->crop.width * frame->channels;
  g_autofree guint *xs =
      gst_imaging_view_section_columns (self->crop.x, self->crop.width);
  g_autofree gdouble *row = g_new (gdouble, n);
  Ends ends;

  ends_init (&ends, n);
  for (guint y = 0; y < self->crop.height; y++) {
    gst_imaging_view_section_read (
        frame, r, self->crop.y + y, xs, self->crop.width, row);
    gst_imaging_view_video_become_rgb (
        &frame->meaning, frame->channels, self->crop.width, row);
    ends_add (&ends, row);
  }
  ends_finish (&ends, self);
}

static void
choose_window (GstImagingViewPicture *self, gdouble *judged, gsize n_judged,
    const GstImagingViewSettings *r)
{
  gdouble low, high;

  self->window = r->window;
  self->level = r->level;
  if (!is_automatic (r))
    return;
  gst_imaging_view_measure_ends (judged, n_judged, r->clip, &low, &high);
  if (r->clip == 0 && self->minimum <= self->maximum) {
    low = self->minimum;
    high = self->maximum;
  }
  /* the difference of two finite numbers may not be finite */
  self->window = high > low ? MIN (high - low, G_MAXDOUBLE) : 1;
  self->level =
      isfinite (high - low) ? low + (high - low) / 2 : low / 2 + high / 2;
}

/* Returns: whether one of the values is NaN */
static gboolean
judge (GstImagingViewPicture *self, Rows *rows, const GstImagingViewSettings *r)
{
  const gsize n_values = rows->n_row * rows->height;
  const gsize step = MAX (n_values / GST_IMAGING_VIEW_N_JUDGED, 1);
  g_autofree gdouble *judged = g_new (gdouble, n_values / step + 1);
  gsize n_judged = 0, k = 0, place = gst_imaging_view_judged (0, step);
  gboolean with_nan = FALSE;
  Ends ends;

  self->minimum = INFINITY;
  self->maximum = -INFINITY;
  ends_init (&ends, rows->n_row);
  for (guint y = 0; y < rows->height; y++) {
    const guint8 *bytes = bytes_of (rows, y);
    const gdouble *row = bytes ? NULL : row_of (rows, y);
    const gsize first = y * rows->n_row;

    if (bytes)
      ends_add_bytes (&ends, bytes);
    else
      ends_add (&ends, row);
    with_nan = with_nan || (row && has_nan (row, rows->n_row));
    for (; place < first + rows->n_row;
         place = gst_imaging_view_judged (++k, step)) {
      const gdouble v = bytes ? bytes[place - first] : row[place - first];

      if (isfinite (v))
        judged[n_judged++] = v;
    }
  }
  ends_finish (&ends, self);
  if (r->clip == 0 && is_automatic (r))
    judge_all (self, rows->frame, r);
  choose_window (self, judged, n_judged, r);
  return with_nan;
}

/* --- the picture -------------------------------------------------------------
 */

static gboolean
is_nan (const gdouble *sample, guint channels)
{
  return isnan (sample[0]) ||
         (channels >= 3 && (isnan (sample[1]) || isnan (sample[2])));
}

/* With window 0 the scale is infinite, and 0 times it is NaN: the first colour.
 */
static void
choose_levels (const GstImagingViewPicture *self, const gdouble *values,
    gsize n, guint8 *levels)
{
  const gdouble scale = 255 / self->window;
  const gdouble low = self->level - self->window / 2;

  for (gsize i = 0; i < n; i++) {
    const gdouble v = (values[i] - low) * scale;
    const gdouble above = v > 0 ? v : 0;

    levels[i] = (guint8) (gint) ((above < 255 ? above : 255) + 0.5);
  }
}

/* Samples of slices that have not been seen are black. */
static void
paint_nan (const Rows *rows, guint y, const gdouble *values, guint8 *to)
{
  const GstImagingViewSettings *r = rows->settings;
  const guint32 nan = gst_imaging_view_colours_nan (r->colours);

  for (guint x = 0; x < rows->width; x++, values += rows->frame->channels)
    if (is_nan (values, rows->frame->channels)) {
      const guint32 colour = gst_imaging_view_section_has (
                                 rows->frame, r, rows->xs[x], rows->ys[y])
                                 ? nan
                                 : 0;

      for (guint c = 0; c < 3; c++)
        to[3 * x + c] = (guint8) (colour >> (16 - 8 * c));
    }
}

static void
paint (GstImagingViewPicture *self, Rows *rows, gboolean with_nan)
{
  const guint channels = rows->frame->channels;
  g_autofree guint8 *levels = g_new (guint8, rows->n_row);
  gdouble all[256];
  guint8 table[256][3], level_of[256];

  for (guint i = 0; i < 256; i++)
    all[i] = i;
  choose_levels (self, all, 256, level_of);
  gst_imaging_view_colours_fill (rows->settings->colours, table);
  for (guint y = 0; y < self->height; y++) {
    const guint8 *bytes = bytes_of (rows, y);
    const gdouble *values = bytes ? NULL : row_of (rows, y);
    guint8 *to = self->pixels + (gsize) y * self->stride;

    if (bytes)
      for (guint x = 0; x < self->width; x++)
        levels[x] = level_of[bytes[x]];
    else
      choose_levels (self, values, rows->n_row, levels);
    for (guint x = 0; x < self->width; x++) {
      const guint8 *level = levels + (gsize) x * channels;

      if (self->is_grey)
        to[x] = *level;
      else
        memcpy (to + 3 * (gsize) x, channels >= 3 ? level : table[*level], 3);
    }
    if (with_nan && values)
      paint_nan (rows, y, values, to);
  }
}

/* A JPEG has whole blocks, and what is in the last of each row beside the
 * picture shows in it as faint stripes. */
static void
extend_rows (GstImagingViewPicture *self)
{
  const gsize n = self->is_grey ? 1 : 3;

  for (guint y = 0; y < self->height; y++) {
    guint8 *row = self->pixels + (gsize) y * self->stride;

    for (gsize i = self->width * n; i < self->stride; i++)
      row[i] = row[i - n];
  }
}

static guint *
choose_places (guint from, guint n_from, guint n)
{
  guint *places = g_new (guint, n);

  for (guint i = 0; i < n; i++)
    places[i] = from + (guint) ((2 * (guint64) i + 1) * n_from / (2 * n));
  return places;
}

/* As large as asked for, but not larger than the crop. */
static void
choose_size (GstImagingViewPicture *self, const GstImagingViewSettings *r)
{
  const gdouble scale = MIN (1, MIN (r->width / (gdouble) self->crop.width,
                                    r->height / (gdouble) self->crop.height));

  self->width = MAX ((guint) (self->crop.width * scale + 0.5), 1);
  self->height = MAX ((guint) (self->crop.height * scale + 0.5), 1);
}

/* Angles have no mean: that of -179 and 179 degrees is 0. Means of largest
 * samples would read all of a volume for each picture. */
static gboolean
has_means (const GstImagingViewPicture *self, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *r)
{
  return (self->width < self->crop.width || self->height < self->crop.height) &&
         !gst_imaging_view_section_is_largest (r->section) &&
         (frame->channels >= 3 ||
             !gst_imaging_view_colours_is_cyclic (r->colours));
}

void
gst_imaging_view_picture_make (GstImagingViewPicture *self,
    const GstImagingViewFrame *frame, const GstImagingViewSettings *r)
{
  g_autofree guint *xs = NULL, *ys = NULL;
  gboolean with_nan;
  Rows rows;

  gst_imaging_view_section_size (
      frame, r, &self->source_width, &self->source_height);
  self->crop = r->crop;
  gst_imaging_view_section_cut (frame, r, &self->crop);
  choose_size (self, r);
  xs = choose_places (self->crop.x, self->crop.width, self->width);
  ys = choose_places (self->crop.y, self->crop.height, self->height);
  rows = (Rows){
      .frame = frame,
      .settings = r,
      .xs = xs,
      .ys = ys,
      .width = self->width,
      .height = self->height,
      .n_row = (gsize) self->width * frame->channels,
      .keeps = gst_imaging_view_section_is_column (r->section) ||
               gst_imaging_view_section_is_largest (r->section),
  };
  rows.values = g_new (gdouble, rows.n_row * (rows.keeps ? rows.height : 1));
  /* of samples: a window of means would make what means leave of fine stripes
   * as dark and bright as the stripes are */
  with_nan = judge (self, &rows, r);
  if (has_means (self, frame, r))
    with_nan = become_means (&rows, &self->crop);
  self->is_grey = frame->channels < 3 && r->colours == 0 && !with_nan;
  self->stride =
      (self->width + BLOCK - 1) / BLOCK * BLOCK * (self->is_grey ? 1 : 3);
  self->size = (gsize) self->stride * self->height;
  g_free (self->pixels);
  self->pixels = g_malloc0 (self->size);
  paint (self, &rows, with_nan);
  extend_rows (self);
  g_free (rows.values);
}

void
gst_imaging_view_picture_clear (GstImagingViewPicture *self)
{
  g_clear_pointer (&self->pixels, g_free);
}
