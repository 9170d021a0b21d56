/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewsettings.h"

#include <math.h>

#include "gstimagingviewcolours.h"
#include "gstimagingviewsection.h"

void
gst_imaging_view_settings_init (GstImagingViewSettings *self)
{
  *self = (GstImagingViewSettings){
      .rate = 30,
      .width = 640,
      .height = 480,
      .quality = 85,
      .window = NAN,
      .level = NAN,
      .clip = 0.5,
  };
}

enum {
  RATE,
  WIDTH,
  HEIGHT,
  QUALITY,
  WINDOW,
  LEVEL,
  CLIP,
  COLOURS,
  VALUES,
  N_POINTS,
  N_BINS,
  N_SLICES,
  SECTION,
  N_MEMBERS,
};

static const struct {
  const gchar *name;
  gdouble minimum, maximum;
  const gchar *unit;
} limits[N_MEMBERS] = {
    [RATE] = {"rate", 0, 1000, " pictures a second"},
    [WIDTH] = {"width", 1, 16384, " pixels"},
    [HEIGHT] = {"height", 1, 16384, " pixels"},
    [QUALITY] = {"quality", 1, 100, ""},
    [WINDOW] = {"window", 0, G_MAXDOUBLE, ", or NaN"},
    [LEVEL] = {"level", -G_MAXDOUBLE, G_MAXDOUBLE, ", or NaN"},
    [CLIP] = {"clip", 0, 49, " percent"},
    [COLOURS] = {"colours", 0, GST_IMAGING_VIEW_N_COLOURS - 1,
        ", the number of a colour map"},
    [VALUES] = {"values", 0, 16384, " samples"},
    [N_POINTS] = {"n_points", 0, 4096, ""},
    [N_BINS] = {"n_bins", 0, 1024, ""},
    [N_SLICES] = {"n_slices", 0, 65535, ""},
    [SECTION] = {"section", 0, GST_IMAGING_VIEW_MAX_COLUMN,
        ", the number of a section"},
};

gboolean
gst_imaging_view_settings_get_limits (
    const gchar *member, gdouble *minimum, gdouble *maximum)
{
  guint i = 0;

  while (i < N_MEMBERS && g_strcmp0 (limits[i].name, member) != 0)
    i++;
  *minimum = i < N_MEMBERS ? limits[i].minimum : 0;
  *maximum = i < N_MEMBERS ? limits[i].maximum : 0;
  return i < N_MEMBERS;
}

gboolean
gst_imaging_view_settings_check (
    const GstImagingViewSettings *self, GError **error)
{
  const GstImagingViewSettings *s = self;
  const GstImagingViewLine *line = &s->profile;
  const gdouble numbers[N_MEMBERS] = {
      [RATE] = s->rate,
      [WIDTH] = s->width,
      [HEIGHT] = s->height,
      [QUALITY] = s->quality,
      [WINDOW] = isnan (s->window) ? 0 : s->window,
      [LEVEL] = isnan (s->level) ? 0 : s->level,
      [CLIP] = s->clip,
      [COLOURS] = s->colours,
      [VALUES] = (gdouble) s->values.width * s->values.height,
      [N_POINTS] = s->n_points,
      [N_BINS] = s->n_bins,
      [N_SLICES] = s->n_slices,
      [SECTION] = s->section,
  };

  for (guint i = 0; i < N_MEMBERS; i++)
    if (!(numbers[i] >= limits[i].minimum && numbers[i] <= limits[i].maximum)) {
      g_set_error (error, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS,
          "%s of a view is out of its range: %g to %g%s.", limits[i].name,
          limits[i].minimum, limits[i].maximum, limits[i].unit);
      return FALSE;
    }
  if (s->n_points > 0 && !(isfinite (line->x0) && isfinite (line->y0) &&
                             isfinite (line->x1) && isfinite (line->y1))) {
    g_set_error_literal (error, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS,
        "profile of a view is out of its range: four finite numbers.");
    return FALSE;
  }
  return TRUE;
}
