/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewsettings.h"

#include <math.h>

#include "gstimaging-private.h"
#include "gstimagingviewcolours.h"
#include "gstimagingviewsection.h"

typedef enum { WHOLE, REAL, CHOICE, RECTANGLE, LINE } Kind;

static const struct {
  const gchar *name;
  guint n;          /* numbers of the member */
  gboolean is_real; /* they are gdouble, else guint */
} kinds[] = {
    [WHOLE] = {"int", 1, FALSE},
    [REAL] = {"double", 1, TRUE},
    [CHOICE] = {"enum", 1, FALSE},
    [RECTANGLE] = {"rectangle", 4, FALSE},
    [LINE] = {"line", 4, TRUE},
};

typedef struct {
  const gchar *name;
  Kind kind;
  gsize offset;
  gdouble minimum, maximum; /* of a rectangle: samples */
  gdouble initial;          /* NaN: the member can be NaN */
  const gchar *unit;
  const gchar *(*choice) (guint i);
  void (*describe_choice) (GString *json, guint i);
} Member;

#define AT(member) G_STRUCT_OFFSET (GstImagingViewSettings, member)

static const Member members[] = {
    {"rate", REAL, AT (rate), 0, 1000, 30, " pictures a second"},
    {"width", WHOLE, AT (width), 1, 16384, 640, " pixels"},
    {"height", WHOLE, AT (height), 1, 16384, 480, " pixels"},
    {"quality", WHOLE, AT (quality), 1, 100, 85, ""},
    {"window", REAL, AT (window), 0, G_MAXDOUBLE, NAN, ", or NaN"},
    {"level", REAL, AT (level), -G_MAXDOUBLE, G_MAXDOUBLE, NAN, ", or NaN"},
    {"clip", REAL, AT (clip), 0, 49, 0.5, " percent"},
    {"colours", CHOICE, AT (colours), 0, GST_IMAGING_VIEW_N_COLOURS - 1, 0,
        ", the number of a colour map", gst_imaging_view_colours_name,
        gst_imaging_view_colours_describe},
    {"crop", RECTANGLE, AT (crop), 0, INFINITY, 0, " samples"},
    {"values", RECTANGLE, AT (values), 0, 16384, 0, " samples"},
    {"profile", LINE, AT (profile), -2147483648.0, 2147483648.0, NAN, ""},
    {"region", RECTANGLE, AT (region), 0, INFINITY, 0, " samples"},
    {"histogram", WHOLE, AT (n_bins), 0, 1024, 0, " bins"},
    {"volume", WHOLE, AT (n_slices), 0, 65535, 0, " slices"},
    {"section", CHOICE, AT (section), 0, GST_IMAGING_VIEW_MAX_COLUMN, 0,
        ", the number of a section", gst_imaging_view_section_name,
        gst_imaging_view_section_describe},
    {"place", WHOLE, AT (place), 0, G_MAXINT, 0, ""},
};

/* --- numbers of a member -------------------------------------------------- */

static void
load (const GstImagingViewSettings *self, const Member *m, gdouble numbers[4])
{
  gconstpointer at = (const guint8 *) self + m->offset;

  for (guint i = 0; i < kinds[m->kind].n; i++)
    numbers[i] = kinds[m->kind].is_real ? ((const gdouble *) at)[i]
                                        : ((const guint *) at)[i];
}

static void
store (GstImagingViewSettings *self, const Member *m, const gdouble numbers[4])
{
  gpointer at = (guint8 *) self + m->offset;

  for (guint i = 0; i < kinds[m->kind].n; i++)
    if (kinds[m->kind].is_real)
      ((gdouble *) at)[i] = numbers[i];
    else
      ((guint *) at)[i] = (guint) numbers[i];
}

static gboolean
check (const Member *m, const gdouble numbers[4], GError **error)
{
  gdouble samples = numbers[2] * numbers[3];
  const gdouble *checked = m->kind == RECTANGLE ? &samples : numbers;
  const guint n = m->kind == RECTANGLE ? 1 : kinds[m->kind].n;
  guint i = 0;

  if (isnan (m->initial) && isnan (numbers[0]))
    return TRUE;
  while (i < n && checked[i] >= m->minimum && checked[i] <= m->maximum)
    i++; /* not beyond a NaN */
  if (i < n)
    g_set_error (error, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS,
        "%s of a view is out of its range: %g to %g%s.", m->name, m->minimum,
        m->maximum, m->unit);
  return i == n;
}

/* Returns: whether @text has numbers that the member can hold */
static gboolean
parse (const Member *m, const gchar *text, gdouble numbers[4])
{
  const guint n = kinds[m->kind].n;
  const gchar *choice;
  gchar *end;

  if (m->choice) {
    for (guint i = 0; (choice = m->choice (i)) != NULL; i++)
      if (g_strcmp0 (choice, text) == 0) {
        numbers[0] = i;
        return TRUE;
      }
    return FALSE;
  }
  for (guint i = 0; i < n; i++, text = end + 1) {
    numbers[i] = g_ascii_strtod (text, &end);
    if (end == text || *end != (i + 1 < n ? ',' : '\0'))
      return FALSE;
    if (!kinds[m->kind].is_real &&
        !(numbers[i] >= 0 && numbers[i] <= G_MAXINT &&
            numbers[i] == floor (numbers[i])))
      return FALSE;
  }
  return TRUE;
}

/* --- settings ------------------------------------------------------------- */

void
gst_imaging_view_settings_init (GstImagingViewSettings *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    gst_imaging_view_settings_set (self, members[i].name, NULL, NULL);
}

gboolean
gst_imaging_view_settings_set (GstImagingViewSettings *self, const gchar *name,
    const gchar *text, GError **error)
{
  gdouble numbers[4];
  guint i = 0;

  while (i < G_N_ELEMENTS (members) && g_strcmp0 (members[i].name, name) != 0)
    i++;
  if (i == G_N_ELEMENTS (members)) {
    g_set_error (error, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS,
        "A view has no %s.", name);
    return FALSE;
  }
  for (guint k = 0; k < 4; k++)
    numbers[k] = members[i].initial;
  if (text && !parse (&members[i], text, numbers)) {
    g_set_error (error, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS,
        "%s of a view cannot be \"%s\".", name, text);
    return FALSE;
  }
  if (!check (&members[i], numbers, error))
    return FALSE;
  store (self, &members[i], numbers);
  return TRUE;
}

gboolean
gst_imaging_view_settings_check (
    const GstImagingViewSettings *self, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (members); i++) {
    gdouble numbers[4] = {0};

    load (self, &members[i], numbers);
    if (!check (&members[i], numbers, error))
      return FALSE;
  }
  return TRUE;
}

static void
describe_choices (GString *json, const Member *m)
{
  const gchar *choice;

  gst_imaging_json_add_text (json, "default", m->choice ((guint) m->initial));
  g_string_append (json, ",\"values\":[");
  for (guint i = 0; (choice = m->choice (i)) != NULL; i++) {
    g_string_append (json, i ? ",{" : "{");
    gst_imaging_json_add_text (json, "nick", choice);
    m->describe_choice (json, i);
    g_string_append_c (json, '}');
  }
  g_string_append_c (json, ']');
}

gchar *
gst_imaging_view_settings_describe (void)
{
  GString *json = g_string_new ("[");

  for (guint i = 0; i < G_N_ELEMENTS (members); i++) {
    const Member *m = &members[i];

    g_string_append (json, i ? ",\n{" : "\n{");
    gst_imaging_json_add_text (json, "name", m->name);
    gst_imaging_json_add_text (json, "type", kinds[m->kind].name);
    gst_imaging_json_add_number (json, "minimum", m->minimum);
    gst_imaging_json_add_number (json, "maximum", m->maximum);
    if (m->choice)
      describe_choices (json, m);
    else
      gst_imaging_json_add_number (
          json, "default", m->kind == RECTANGLE ? (gdouble) NAN : m->initial);
    g_string_append_c (json, '}');
  }
  g_string_append (json, "]\n");
  return g_string_free (json, FALSE);
}
