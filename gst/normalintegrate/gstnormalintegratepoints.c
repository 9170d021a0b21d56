/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstnormalintegratepoints.h"

#include <string.h>

#include "files/gstimagingfile.h"

typedef GstNormalIntegratePoints Points;

static const gchar *
skip_separators (const gchar *at)
{
  return at + strspn (at, " \t\r,;");
}

/* Returns: whether @line has three numbers and nothing else */
static gboolean
parse_row (const gchar *line, ImkNormalintegratePoint *point)
{
  gdouble *numbers[] = {&point->x, &point->y, &point->height};

  for (guint i = 0; i < 3; i++) {
    gchar *end;

    *numbers[i] = g_ascii_strtod (line, &end);
    if (end == line || (*end && !strchr (" \t\r,;", *end)))
      return FALSE;
    line = skip_separators (end);
  }
  return *line == 0;
}

static ImkStatus
parse (gchar *text, const gchar *name, Points *points, ImkError *error)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  gboolean is_first = TRUE;

  for (guint i = 0; lines[i]; i++) {
    gchar *comment = strchr (lines[i], '#');
    ImkNormalintegratePoint point;
    const gchar *line;

    if (comment)
      *comment = 0;
    line = skip_separators (lines[i]);
    if (!*line || (is_first && g_ascii_isalpha (*line))) {
      is_first &= !*line;
      continue;
    }
    is_first = FALSE;
    if (!parse_row (line, &point))
      return imk_error_set (error, IMK_ERROR_FILE,
          "points-location \"%s\", line %u: \"%.40s\" is not a row of x, y and "
          "height, as \"120.5, 80, 2.35\".",
          name, i + 1, g_strchomp (lines[i]));
    if (points->n == IMK_NORMALINTEGRATE_MAX_POINTS)
      return imk_error_set (error, IMK_ERROR_FILE,
          "points-location \"%s\" has more than %u points.", name,
          IMK_NORMALINTEGRATE_MAX_POINTS);
    points->points[points->n++] = point;
  }
  return points->n > 0 ? IMK_OK
                       : imk_error_set (error, IMK_ERROR_FILE,
                             "points-location \"%s\" has no row of x, y and "
                             "height.",
                             name);
}

gpointer
gst_normal_integrate_points_load (
    const gchar *property, const gchar *location, ImkError *error)
{
  g_autofree gchar *name = gst_imaging_file_name (location);
  g_autofree gchar *text = NULL;
  g_autoptr (GError) why = NULL;
  Points *points;
  gsize size;

  text = gst_imaging_file_load (
      location, GST_IMAGING_FILE_MAX_NUMBERS, &size, &why);
  if (!text) {
    imk_error_set (error, IMK_ERROR_FILE, "points-location: %s", why->message);
    return NULL;
  }
  if (strlen (text) != size || !g_utf8_validate (text, -1, NULL)) {
    imk_error_set (
        error, IMK_ERROR_FILE, "points-location \"%s\" is no text file.", name);
    return NULL;
  }
  points = g_new0 (Points, 1);
  if (parse (text, name, points, error) == IMK_OK)
    return points;
  g_free (points);
  return NULL;
}
