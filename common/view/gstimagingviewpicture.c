/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewpicture.h"

#include "gstimagingviewcolours.h"
#include "gstimagingviewmeasure.h"
#include "gstimagingviewreduce.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 8 }; /* of a JPEG, pixels */

/* --- window and level --------------------------------------------------------
 */

static gboolean
is_automatic (const GstImagingViewSettings *r)
{
  return isnan (r->window) || isnan (r->level);
}

/* The smallest and the largest finite value. */
static void
judge_ends (GstImagingViewPicture *self, const gdouble *values, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (isfinite (values[i])) {
      self->minimum = MIN (self->minimum, values[i]);
      self->maximum = MAX (self->maximum, values[i]);
    }
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

  for (guint y = 0; y < self->crop.height; y++) {
    gst_imaging_view_section_read (
        frame, r, self->crop.y + y, xs, self->crop.width, row);
    gst_imaging_view_video_become_rgb (
        &frame->meaning, frame->channels, self->crop.width, row);
    judge_ends (self, row, n);
  }
}

static void
choose_window (GstImagingViewPicture *self, const gdouble *values, gsize n,
    const GstImagingViewSettings *r)
{
  const gsize step = MAX (n / GST_IMAGING_VIEW_N_JUDGED, 1);
  g_autofree gdouble *judged = g_new (gdouble, n / step + 1);
  gsize n_judged = 0, place;
  gdouble low, high;

  self->window = r->window;
  self->level = r->level;
  if (!is_automatic (r))
    return;
  for (gsize k = 0; (place = gst_imaging_view_judged (k, step)) < n; k++)
    if (isfinite (values[place]))
      judged[n_judged++] = values[place];
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

/* --- the picture -------------------------------------------------------------
 */

static gboolean
is_nan (const gdouble *sample, guint channels)
{
  return isnan (sample[0]) ||
         (channels >= 3 && (isnan (sample[1]) || isnan (sample[2])));
}

static void
paint (GstImagingViewPicture *self, const gdouble *values, guint channels,
    guint colours)
{
  /* with window 0 it is infinite, and 0 times it is NaN: the first colour */
  const gdouble scale = 255 / self->window;
  const gdouble low = self->level - self->window / 2;
  const guint to_channels = self->is_grey ? 1 : 3;
  guint8 table[256][3];

  gst_imaging_view_colours_fill (colours, table);
  for (guint y = 0; y < self->height; y++) {
    guint8 *to = self->pixels + (gsize) y * self->stride;

    for (guint x = 0; x < self->width; x++, values += channels)
      for (guint c = 0; c < to_channels; c++) {
        const gdouble v = (values[channels >= 3 ? c : 0] - low) * scale;
        const guint8 level = v >= 255 ? 255 : v > 0 ? (guint8) (v + 0.5) : 0;

        *to++ = self->is_grey || channels >= 3 ? level : table[level][c];
      }
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

/* xs, ys: where the pixels are in the section. Samples of slices that have not
 * been seen are black. */
static void
paint_nan (GstImagingViewPicture *self, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *r, const gdouble *values, const guint *xs,
    const guint *ys)
{
  const guint32 nan = gst_imaging_view_colours_nan (r->colours);

  for (guint y = 0; y < self->height; y++)
    for (guint x = 0; x < self->width; x++, values += frame->channels)
      if (is_nan (values, frame->channels)) {
        const guint32 colour =
            gst_imaging_view_section_has (frame, r, xs[x], ys[y]) ? nan : 0;

        for (guint c = 0; c < 3; c++)
          self->pixels[(gsize) y * self->stride + 3 * x + c] =
              (guint8) (colour >> (16 - 8 * c));
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
  const guint channels = frame->channels;
  g_autofree guint *xs = NULL, *ys = NULL;
  g_autofree gdouble *values = NULL;
  gboolean has_nan = FALSE;
  gsize n_row, n_values;

  gst_imaging_view_section_size (
      frame, r, &self->source_width, &self->source_height);
  self->crop = r->crop;
  gst_imaging_view_section_cut (frame, r, &self->crop);
  choose_size (self, r);
  n_row = (gsize) self->width * channels;
  xs = choose_places (self->crop.x, self->crop.width, self->width);
  ys = choose_places (self->crop.y, self->crop.height, self->height);
  n_values = n_row * self->height;
  values = g_new (gdouble, n_values);
  for (guint y = 0; y < self->height; y++)
    gst_imaging_view_section_read (
        frame, r, ys[y], xs, self->width, values + y * n_row);
  gst_imaging_view_video_become_rgb (
      &frame->meaning, channels, (gsize) self->width * self->height, values);
  self->minimum = INFINITY;
  self->maximum = -INFINITY;
  judge_ends (self, values, n_values);
  if (r->clip == 0 && is_automatic (r))
    judge_all (self, frame, r);
  /* of samples: a window of means would make what means leave of fine stripes
   * as dark and bright as the stripes are */
  choose_window (self, values, n_values, r);
  if (has_means (self, frame, r)) {
    gst_imaging_view_reduce (
        frame, r, &self->crop, self->width, self->height, values);
    gst_imaging_view_video_become_rgb (
        &frame->meaning, channels, (gsize) self->width * self->height, values);
  }
  for (gsize i = 0; i < n_values && !has_nan; i++)
    has_nan = isnan (values[i]);
  self->is_grey = channels < 3 && r->colours == 0 && !has_nan;
  self->stride =
      (self->width + BLOCK - 1) / BLOCK * BLOCK * (self->is_grey ? 1 : 3);
  self->size = (gsize) self->stride * self->height;
  g_free (self->pixels);
  self->pixels = g_malloc0 (self->size);
  paint (self, values, channels, r->colours);
  if (has_nan)
    paint_nan (self, frame, r, values, xs, ys);
  extend_rows (self);
}

void
gst_imaging_view_picture_clear (GstImagingViewPicture *self)
{
  g_clear_pointer (&self->pixels, g_free);
}
