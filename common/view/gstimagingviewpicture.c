/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewpicture.h"

#include "gstimagingviewmeasure.h"

#include <math.h>
#include <string.h>

/* --- colours ----------------------------------------------------------------
 */

/* Knots of each map at equal distances, 0xRRGGBB, from low to high. */
#define MAX_KNOTS 52

static const struct {
  const gchar *name;
  guint n;
  guint32 knots[MAX_KNOTS];
} maps[] = {
    {"grey", 2, {0x000000, 0xffffff}},
    /* each fifth colour of matplotlib's, which are in the public domain (CC0):
     * those between are off by 1 of 255 at most */
    {"viridis", 52,
        {0x440154, 0x46085c, 0x471063, 0x481769, 0x481d6f, 0x482475, 0x472a7a,
            0x46307e, 0x453781, 0x433d84, 0x414287, 0x3f4889, 0x3d4e8a,
            0x3a538b, 0x38598c, 0x355e8d, 0x33638d, 0x31688e, 0x2e6d8e,
            0x2c718e, 0x2a768e, 0x297b8e, 0x27808e, 0x25848e, 0x23898e,
            0x218e8d, 0x20928c, 0x1f978b, 0x1e9c89, 0x1fa188, 0x21a585,
            0x24aa83, 0x28ae80, 0x2eb37c, 0x35b779, 0x3dbc74, 0x46c06f,
            0x50c46a, 0x5ac864, 0x65cb5e, 0x70cf57, 0x7cd250, 0x89d548,
            0x95d840, 0xa2da37, 0xb0dd2f, 0xbddf26, 0xcae11f, 0xd8e219,
            0xe5e419, 0xf1e51d, 0xfde725}},
    {"inferno", 52,
        {0x000004, 0x02020c, 0x050417, 0x0a0722, 0x10092d, 0x160b39, 0x1e0c45,
            0x260c51, 0x2f0a5b, 0x380962, 0x400a67, 0x490b6a, 0x510e6c,
            0x59106e, 0x61136e, 0x69166e, 0x71196e, 0x781c6d, 0x801f6c,
            0x88226a, 0x902568, 0x982766, 0xa02a63, 0xa82e5f, 0xb0315b,
            0xb73557, 0xbf3952, 0xc63d4d, 0xcc4248, 0xd34743, 0xd94d3d,
            0xdf5337, 0xe45a31, 0xe9612b, 0xed6925, 0xf1711f, 0xf47918,
            0xf78212, 0xf98b0b, 0xfa9407, 0xfb9d07, 0xfca60c, 0xfcb014,
            0xfbba1f, 0xfac42a, 0xf8cd37, 0xf6d746, 0xf4e156, 0xf2ea69,
            0xf2f27d, 0xf5f992, 0xfcffa4}},
    {"turbo", 15,
        {0x30123b, 0x4145ab, 0x4675ed, 0x39a2fc, 0x1bcfd4, 0x24eca6, 0x61fc6c,
            0xa4fc3b, 0xd1e834, 0xf3c63a, 0xfe9b2d, 0xf36315, 0xd93806,
            0xb11901, 0x7a0402}},
    /* cyclic: the ends are one */
    {"phase", 7,
        {0xff0000, 0xffff00, 0x00ff00, 0x00ffff, 0x0000ff, 0xff00ff, 0xff0000}},
    {"blue-red", 5, {0x053061, 0x4393c3, 0xf7f7f7, 0xd6604d, 0x67001f}},
};

/* Of a NaN: a colour that the map does not have */
static guint32
nan_colour (guint colours)
{
  return colours == 0 ? 0x604080 : 0x808080;
}

gint
gst_imaging_view_colours_find (const gchar *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (maps); i++)
    if (g_strcmp0 (maps[i].name, name) == 0)
      return (gint) i;
  return -1;
}

const gchar *
gst_imaging_view_colours_name (guint colours)
{
  return colours < G_N_ELEMENTS (maps) ? maps[colours].name : NULL;
}

static void
fill_table (guint colours, guint8 table[256][3])
{
  for (guint i = 0; i < 256; i++) {
    const guint at = i * (maps[colours].n - 1);
    const guint knot = MIN (at / 255, maps[colours].n - 2);
    const guint fraction = at - knot * 255;

    for (guint c = 0; c < 3; c++) {
      const guint low = maps[colours].knots[knot] >> (16 - 8 * c) & 255;
      const guint high = maps[colours].knots[knot + 1] >> (16 - 8 * c) & 255;

      table[i][c] =
          (guint8) ((low * (255 - fraction) + high * fraction + 127) / 255);
    }
  }
}

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
  const gdouble scale = self->window > 0 ? 255 / self->window : 255;
  const gdouble low = self->level - self->window / 2;
  const guint to_channels = self->is_grey ? 1 : 3;
  guint8 table[256][3];

  fill_table (colours, table);
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

/* xs, ys: where the pixels are in the section. Samples of slices that have not
 * been seen are no NaN of the frame: they stay as paint() leaves them. */
static void
paint_nan (GstImagingViewPicture *self, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *r, const gdouble *values, const guint *xs,
    const guint *ys)
{
  const guint32 colour = nan_colour (r->colours);

  for (guint y = 0; y < self->height; y++)
    for (guint x = 0; x < self->width; x++, values += frame->channels)
      if (is_nan (values, frame->channels) &&
          gst_imaging_view_section_has (frame, r, xs[x], ys[y]))
        for (guint c = 0; c < 3; c++)
          self->pixels[(gsize) y * self->stride + 3 * x + c] =
              (guint8) (colour >> (16 - 8 * c));
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
  choose_window (self, values, n_values, r);
  for (gsize i = 0; i < n_values && !has_nan; i++)
    has_nan = isnan (values[i]);
  self->is_grey = channels < 3 && r->colours == 0 && !has_nan;
  self->stride = (self->width * (self->is_grey ? 1 : 3) + 3) & ~3u;
  self->size = (gsize) self->stride * self->height;
  g_free (self->pixels);
  self->pixels = g_malloc0 (self->size);
  paint (self, values, channels, r->colours);
  if (has_nan)
    paint_nan (self, frame, r, values, xs, ys);
}

void
gst_imaging_view_picture_clear (GstImagingViewPicture *self)
{
  g_clear_pointer (&self->pixels, g_free);
}
