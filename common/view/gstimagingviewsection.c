/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewsection.h"

#include <math.h>
#include <string.h>

#include "gstimaging-private.h"

/* axes: x and y of a frame, z of the slices, along x and y of the picture
 * place: the axis that the place is on; NULL: the largest sample along it */
static const struct {
  const gchar *name, *axes, *place, *label, *blurb;
} sections[] = {
    [GST_IMAGING_VIEW_FRAME] = {"frame", "xy", "z", "Slice",
        "One slice of the volume"},
    [GST_IMAGING_VIEW_ROW] = {"row", "xz", "y", "Row",
        "One row of every slice"},
    [GST_IMAGING_VIEW_COLUMN] = {"column", "zy", "x", "Column",
        "One column of every slice"},
    [GST_IMAGING_VIEW_MAX_FRAME] = {"max-frame", "xy", NULL, "Max slices",
        "The largest sample of all slices"},
    [GST_IMAGING_VIEW_MAX_ROW] = {"max-row", "xz", NULL, "Max rows",
        "The largest sample along y of every slice"},
    [GST_IMAGING_VIEW_MAX_COLUMN] = {"max-column", "zy", NULL, "Max columns",
        "The largest sample along x of every slice"},
};

const gchar *
gst_imaging_view_section_name (guint section)
{
  return section < G_N_ELEMENTS (sections) ? sections[section].name : NULL;
}

void
gst_imaging_view_section_describe (GString *json, guint section)
{
  gst_imaging_json_add_text (json, "label", sections[section].label);
  gst_imaging_json_add_text (json, "blurb", sections[section].blurb);
  gst_imaging_json_add_text (json, "axes", sections[section].axes);
  if (sections[section].place)
    gst_imaging_json_add_text (json, "place", sections[section].place);
}

gboolean
gst_imaging_view_section_is_column (guint section)
{
  return sections[section].axes[0] == 'z';
}

gboolean
gst_imaging_view_section_is_row (guint section)
{
  return sections[section].axes[1] == 'z';
}

gboolean
gst_imaging_view_section_is_largest (guint section)
{
  return !sections[section].place;
}

void
gst_imaging_view_section_size (const GstImagingViewFrame *f,
    const GstImagingViewSettings *s, guint *width, guint *height)
{
  const gboolean is_column = gst_imaging_view_section_is_column (s->section);
  const gboolean is_row = gst_imaging_view_section_is_row (s->section);

  *width = is_column ? f->n_slices : f->width;
  *height = is_row ? f->n_slices : f->height;
}

typedef struct {
  guint slice, y, x;
} Place;

/* Where sample (@x, @y) of a section is in the frames */
static Place
place_of (const GstImagingViewFrame *f, const GstImagingViewSettings *s,
    guint x, guint y)
{
  if (gst_imaging_view_section_is_column (s->section))
    return (Place){x, y, MIN (s->place, f->width - 1)};
  if (gst_imaging_view_section_is_row (s->section))
    return (Place){y, MIN (s->place, f->height - 1), x};
  return (Place){MIN (s->place, f->n_slices - 1), y, x};
}

void
gst_imaging_view_section_cut (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, GstImagingViewRectangle *part)
{
  guint width, height;

  gst_imaging_view_section_size (frame, settings, &width, &height);
  if (part->width == 0 || part->height == 0)
    *part = (GstImagingViewRectangle){0, 0, width, height};
  part->x = MIN (part->x, width - 1);
  part->y = MIN (part->y, height - 1);
  part->width = MIN (part->width, width - part->x);
  part->height = MIN (part->height, height - part->y);
}

/* Of Y, U, V the brightest sample: the largest U and V are no colour. */
static void
keep_largest (const GstImagingViewFrame *f, gdouble *values,
    const gdouble *others, gsize n)
{
  const gsize step = f->meaning.kind == GST_IMAGING_VIEW_YUV ? f->channels : 1;

  for (gsize i = 0; i < n * f->channels; i += step)
    if (others[i] > values[i] || isnan (values[i]))
      for (gsize c = i; c < i + step; c++)
        values[c] = others[c];
}

static void
read_nothing (const GstImagingViewFrame *f, guint n, gdouble *values)
{
  for (gsize i = 0; i < (gsize) n * f->channels; i++)
    values[i] = NAN;
}

/* One row of a slice: NaN before it has been seen */
static void
read_slice (const GstImagingViewFrame *f, guint slice, guint y, const guint *xs,
    guint n, gdouble *values)
{
  if (f->is_filled[slice])
    gst_imaging_view_frame_read (f, slice, y, xs, n, values);
  else
    read_nothing (f, n, values);
}

/* The columns of a section are slices. */
static void
read_across (const GstImagingViewFrame *f, const GstImagingViewSettings *r,
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
    read_slice (f, xs[i], y, all, n_read, read);
    memcpy (values, read, channels * sizeof (gdouble));
    for (guint k = 1; k < n_read; k++)
      keep_largest (f, values, read + (gsize) k * channels, 1);
  }
}

static void
read_largest (const GstImagingViewFrame *f, const GstImagingViewSettings *r,
    guint y, const guint *xs, guint n, gdouble *values)
{
  const gboolean of_rows = r->section == GST_IMAGING_VIEW_MAX_ROW;
  g_autofree gdouble *read = g_new (gdouble, (gsize) n * f->channels);
  gboolean any = FALSE;

  read_nothing (f, n, values);
  for (guint i = 0; i < (of_rows ? f->height : f->n_slices); i++) {
    const guint slice = of_rows ? y : i;

    if (!f->is_filled[slice])
      continue;
    gst_imaging_view_frame_read (
        f, slice, of_rows ? i : y, xs, n, any ? read : values);
    if (any)
      keep_largest (f, values, read, n);
    any = TRUE;
  }
}

gconstpointer
gst_imaging_view_section_row (
    const GstImagingViewFrame *f, const GstImagingViewSettings *r, guint y)
{
  const Place at = place_of (f, r, 0, y);

  return gst_imaging_view_section_is_column (r->section) ||
                 gst_imaging_view_section_is_largest (r->section) ||
                 !f->is_filled[at.slice]
             ? NULL
             : gst_imaging_view_frame_row (f, at.slice, at.y);
}

void
gst_imaging_view_section_read (const GstImagingViewFrame *f,
    const GstImagingViewSettings *r, guint y, const guint *xs, guint n,
    gdouble *values)
{
  const Place at = place_of (f, r, 0, y);

  if (gst_imaging_view_section_is_column (r->section))
    read_across (f, r, y, xs, n, values);
  else if (gst_imaging_view_section_is_largest (r->section))
    read_largest (f, r, y, xs, n, values);
  else
    read_slice (f, at.slice, at.y, xs, n, values);
}

gboolean
gst_imaging_view_section_print_whole (const GstImagingViewFrame *f,
    const GstImagingViewSettings *r, guint x, guint y, guint channel,
    gchar *text)
{
  const Place at = place_of (f, r, x, y);

  return !gst_imaging_view_section_is_largest (r->section) &&
         gst_imaging_view_frame_print_whole (
             f, at.slice, at.y, at.x, channel, text);
}

gboolean
gst_imaging_view_section_has (const GstImagingViewFrame *f,
    const GstImagingViewSettings *s, gdouble x, gdouble y)
{
  guint width, height;

  gst_imaging_view_section_size (f, s, &width, &height);
  if (!(x >= 0 && y >= 0 && x < width && y < height))
    return FALSE;
  return s->section == GST_IMAGING_VIEW_MAX_FRAME
             ? f->n_filled > 0
             : f->is_filled[place_of (f, s, (guint) x, (guint) y).slice];
}

guint *
gst_imaging_view_section_columns (guint first, guint n)
{
  guint *xs = g_new (guint, n);

  for (guint i = 0; i < n; i++)
    xs[i] = first + i;
  return xs;
}
