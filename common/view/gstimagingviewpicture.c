/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewpicture.h"

#include <math.h>
#include <string.h>

/* --- colours ----------------------------------------------------------------
 */

/* Knots of each map at equal distances, 0xRRGGBB, from low to high. */
#define MAX_KNOTS 15

static const struct {
  const gchar *name;
  guint n;
  guint32 knots[MAX_KNOTS];
} maps[] = {
    {"grey", 2, {0x000000, 0xffffff}},
    {"viridis", 10,
        {0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779,
            0x6ece58, 0xb5de2b, 0xfde725}},
    {"inferno", 10,
        {0x000004, 0x1b0c41, 0x4a0c6b, 0x781c6d, 0xa52c60, 0xcf4446, 0xed6925,
            0xfb9b06, 0xf7d13d, 0xfcffa4}},
    {"turbo", 15,
        {0x30123b, 0x4145ab, 0x4675ed, 0x39a2fc, 0x1bcfd4, 0x24eca6, 0x61fc6c,
            0xa4fc3b, 0xd1e834, 0xf3c63a, 0xfe9b2d, 0xf36315, 0xd93806,
            0xb11901, 0x7a0402}},
    /* cyclic: the ends are one */
    {"phase", 7,
        {0xff0000, 0xffff00, 0x00ff00, 0x00ffff, 0x0000ff, 0xff00ff, 0xff0000}},
    {"blue-red", 5, {0x053061, 0x4393c3, 0xf7f7f7, 0xd6604d, 0x67001f}},
};

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
  return maps[colours].name;
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

/* --- sections ---------------------------------------------------------------
 */

static const gchar *const sections[] = {
    [GST_IMAGING_VIEW_FRAME] = "frame",
    [GST_IMAGING_VIEW_ROW] = "row",
    [GST_IMAGING_VIEW_COLUMN] = "column",
    [GST_IMAGING_VIEW_MAX_FRAME] = "max-frame",
    [GST_IMAGING_VIEW_MAX_ROW] = "max-row",
    [GST_IMAGING_VIEW_MAX_COLUMN] = "max-column",
};

gint
gst_imaging_view_section_find (const gchar *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (sections); i++)
    if (g_strcmp0 (sections[i], name) == 0)
      return (gint) i;
  return -1;
}

const gchar *
gst_imaging_view_section_name (GstImagingViewSection section)
{
  return sections[section];
}

static void
get_size (const GstImagingViewFrame *f, GstImagingViewSection section,
    guint *width, guint *height)
{
  const gboolean is_column = section == GST_IMAGING_VIEW_COLUMN ||
                             section == GST_IMAGING_VIEW_MAX_COLUMN;
  const gboolean is_row =
      section == GST_IMAGING_VIEW_ROW || section == GST_IMAGING_VIEW_MAX_ROW;

  *width = is_column ? f->n_slices : f->width;
  *height = is_row ? f->n_slices : f->height;
}

static void
keep_largest (gdouble *values, const gdouble *others, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (others[i] > values[i] || isnan (values[i]))
      values[i] = others[i];
}

/* The columns of a section are slices. */
static void
read_across (const GstImagingViewFrame *f, const GstImagingViewRequest *r,
    guint y, const guint *xs, guint n, gdouble *values)
{
  const gboolean is_max = r->section == GST_IMAGING_VIEW_MAX_COLUMN;
  const guint channels = f->channels;
  const guint n_read = is_max ? f->width : 1;
  g_autofree guint *all = g_new (guint, n_read);
  g_autofree gdouble *read = g_new (gdouble, (gsize) n_read * channels);

  for (guint i = 0; i < n_read; i++)
    all[i] = is_max ? i : MIN (r->place, f->width - 1);
  for (guint i = 0; i < n; i++, values += channels) {
    gst_imaging_view_frame_read (f, xs[i], y, all, n_read, read);
    memcpy (values, read, channels * sizeof (gdouble));
    for (guint k = 1; k < n_read; k++)
      keep_largest (values, read + (gsize) k * channels, channels);
  }
}

static void
read_largest (const GstImagingViewFrame *f, const GstImagingViewRequest *r,
    guint y, const guint *xs, guint n, gdouble *values)
{
  const gboolean of_rows = r->section == GST_IMAGING_VIEW_MAX_ROW;
  const gsize n_values = (gsize) n * f->channels;
  g_autofree gdouble *read = g_new (gdouble, n_values);
  gboolean any = FALSE;

  memset (values, 0, n_values * sizeof (gdouble));
  for (guint i = 0; i < (of_rows ? f->height : f->n_slices); i++) {
    const guint slice = of_rows ? y : i;

    if (!f->is_filled[slice])
      continue;
    gst_imaging_view_frame_read (
        f, slice, of_rows ? i : y, xs, n, any ? read : values);
    if (any)
      keep_largest (values, read, n_values);
    any = TRUE;
  }
}

/* Samples of row @y of the section. */
static void
read_row (const GstImagingViewFrame *f, const GstImagingViewRequest *r, guint y,
    const guint *xs, guint n, gdouble *values)
{
  switch (r->section) {
  case GST_IMAGING_VIEW_FRAME:
    gst_imaging_view_frame_read (
        f, MIN (r->place, f->n_slices - 1), y, xs, n, values);
    break;
  case GST_IMAGING_VIEW_ROW:
    gst_imaging_view_frame_read (
        f, y, MIN (r->place, f->height - 1), xs, n, values);
    break;
  case GST_IMAGING_VIEW_COLUMN:
  case GST_IMAGING_VIEW_MAX_COLUMN:
    read_across (f, r, y, xs, n, values);
    break;
  case GST_IMAGING_VIEW_MAX_FRAME:
  case GST_IMAGING_VIEW_MAX_ROW:
    read_largest (f, r, y, xs, n, values);
    break;
  }
}

/* Cuts @part to @width x @height; without a width it is all. */
static void
cut (GstImagingViewRectangle *part, guint width, guint height)
{
  if (part->width == 0 || part->height == 0)
    *part = (GstImagingViewRectangle){0, 0, width, height};
  part->x = MIN (part->x, width - 1);
  part->y = MIN (part->y, height - 1);
  part->width = MIN (part->width, width - part->x);
  part->height = MIN (part->height, height - part->y);
}

gdouble *
gst_imaging_view_picture_values (const GstImagingViewFrame *frame,
    const GstImagingViewRequest *request, GstImagingViewRectangle *part)
{
  g_autofree guint *xs = NULL;
  gdouble *values;
  gsize row;
  guint width, height;

  get_size (frame, request->section, &width, &height);
  cut (part, width, height);
  row = (gsize) part->width * frame->channels;
  xs = g_new (guint, part->width);
  values = g_new (gdouble, row * part->height);
  for (guint i = 0; i < part->width; i++)
    xs[i] = part->x + i;
  for (guint i = 0; i < part->height; i++)
    read_row (frame, request, part->y + i, xs, part->width, values + i * row);
  return values;
}

/* --- window and level --------------------------------------------------------
 */

#define N_JUDGED 8192

static gint
compare (gconstpointer a, gconstpointer b)
{
  const gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return (x > y) - (x < y);
}

/* The range of nearly all finite values, and of all. */
static void
choose_window (GstImagingViewPicture *self, const gdouble *values, gsize n,
    const GstImagingViewRequest *r)
{
  const gsize step = MAX (n / N_JUDGED, 1);
  g_autofree gdouble *judged = g_new (gdouble, n / step + 1);
  gsize n_judged = 0;
  gdouble low, high;

  self->minimum = INFINITY;
  self->maximum = -INFINITY;
  for (gsize i = 0; i < n; i++)
    if (isfinite (values[i])) {
      self->minimum = MIN (self->minimum, values[i]);
      self->maximum = MAX (self->maximum, values[i]);
    }
  self->window = r->window;
  self->level = r->level;
  if (!isnan (r->window) && !isnan (r->level))
    return;
  for (gsize i = 0; i < n; i += step)
    if (isfinite (values[i]))
      judged[n_judged++] = values[i];
  if (n_judged == 0)
    judged[n_judged++] = 0;
  qsort (judged, n_judged, sizeof (gdouble), compare);
  low = judged[n_judged / 200];
  high = judged[n_judged - 1 - n_judged / 200];
  self->window = high > low ? high - low : 1;
  self->level = high > low ? low + (high - low) / 2 : low;
}

/* --- the picture -------------------------------------------------------------
 */

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
choose_size (GstImagingViewPicture *self, const GstImagingViewRequest *r)
{
  const gdouble scale = MIN (1, MIN (r->width / (gdouble) self->crop.width,
                                    r->height / (gdouble) self->crop.height));

  self->width = MAX ((guint) (self->crop.width * scale + 0.5), 1);
  self->height = MAX ((guint) (self->crop.height * scale + 0.5), 1);
}

void
gst_imaging_view_picture_make (GstImagingViewPicture *self,
    const GstImagingViewFrame *frame, const GstImagingViewRequest *r)
{
  const guint channels = frame->channels;
  g_autofree guint *xs = NULL, *ys = NULL;
  g_autofree gdouble *values = NULL;
  gsize n_row;

  get_size (frame, r->section, &self->source_width, &self->source_height);
  self->crop = r->crop;
  cut (&self->crop, self->source_width, self->source_height);
  choose_size (self, r);
  n_row = (gsize) self->width * channels;
  xs = choose_places (self->crop.x, self->crop.width, self->width);
  ys = choose_places (self->crop.y, self->crop.height, self->height);
  values = g_new (gdouble, n_row * self->height);
  for (guint y = 0; y < self->height; y++)
    read_row (frame, r, ys[y], xs, self->width, values + y * n_row);
  choose_window (self, values, n_row * self->height, r);
  self->is_grey = channels < 3 && r->colours == 0;
  self->stride = (self->width * (self->is_grey ? 1 : 3) + 3) & ~3u;
  self->size = (gsize) self->stride * self->height;
  g_free (self->pixels);
  self->pixels = g_malloc0 (self->size);
  paint (self, values, channels, r->colours);
}

void
gst_imaging_view_picture_clear (GstImagingViewPicture *self)
{
  g_clear_pointer (&self->pixels, g_free);
}
