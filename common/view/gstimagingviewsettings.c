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

gboolean
gst_imaging_view_settings_check (
    const GstImagingViewSettings *self, GError **error)
{
  const GstImagingViewSettings *s = self;
  const guint64 n_values = (guint64) s->values.width * s->values.height;
  const GstImagingViewLine *line = &s->profile;
  const gboolean is_line = isfinite (line->x0) && isfinite (line->y0) &&
                           isfinite (line->x1) && isfinite (line->y1);
  const struct {
    const gchar *name;
    gboolean ok;
    const gchar *range;
  } members[] = {
      {"rate", s->rate >= 0 && s->rate <= 1000, "0 to 1000 pictures a second"},
      {"width", s->width >= 1 && s->width <= 16384, "1 to 16384 pixels"},
      {"height", s->height >= 1 && s->height <= 16384, "1 to 16384 pixels"},
      {"quality", s->quality >= 1 && s->quality <= 100, "1 to 100"},
      {"window", isnan (s->window) || (s->window >= 0 && isfinite (s->window)),
          "a finite number from 0 on, or NaN"},
      {"level", !isinf (s->level), "a finite number or NaN"},
      {"clip", s->clip >= 0 && s->clip <= 49, "0 to 49 percent"},
      {"colours", gst_imaging_view_colours_name (s->colours) != NULL,
          "the number of a colour map"},
      {"values", n_values <= 16384, "16384 samples at most"},
      {"profile", is_line || s->n_points == 0, "four finite numbers"},
      {"n_points", s->n_points <= 4096, "4096 at most"},
      {"n_bins", s->n_bins <= 1024, "1024 at most"},
      {"n_slices", s->n_slices <= 65535, "65535 at most"},
      {"section", gst_imaging_view_section_name (s->section) != NULL,
          "the number of a section"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    if (!members[i].ok) {
      g_set_error (error, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS,
          "%s of a view is out of its range: %s.", members[i].name,
          members[i].range);
      return FALSE;
    }
  return TRUE;
}
