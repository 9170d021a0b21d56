/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* XML of ISCE2: components with properties, each with a value. Names are
 * compared by their letters alone, in lower case: "starting range",
 * STARTING_RANGE and startingrange are one. The first of each counts, so a file
 * of a swath has the geometry of its first burst. */
#include "gstinsarorbit.h"

#include <math.h>
#include <string.h>

#define LIGHT 299792458.0

enum {
  SENSING_START,
  STARTING_RANGE,
  WAVELENGTH,
  PIXEL_SIZE,
  SAMPLING_RATE,
  TIME_INTERVAL,
  PRF,
  POINTING,
  N_KEYS,
};

static const gchar *const keys[N_KEYS][2] = {
    [SENSING_START] = {"sensingstart"},
    [STARTING_RANGE] = {"startingrange"},
    [WAVELENGTH] = {"radarwavelength", "wavelength"},
    [PIXEL_SIZE] = {"rangepixelsize"},
    [SAMPLING_RATE] = {"rangesamplingrate"},
    [TIME_INTERVAL] = {"azimuthtimeinterval"},
    [PRF] = {"prf", "pulserepetitionfrequency"},
    [POINTING] = {"pointingdirection", "antennaside"},
};

typedef struct {
  GstInsarOrbit *orbit;
  GQueue components; /* names */
  gchar *property;
  gboolean in_value;
  GString *value;
  gint64 epoch;          /* of the first time, 0 before: keeps digits */
  gdouble found[N_KEYS]; /* NAN: not yet */
  ImkInsarformState state;
  guint has; /* bits of position, velocity and time */
  gboolean has_orbit;
} Parser;

/* Returns: (transfer full): the letters and digits of @name */
static gchar *
simplify (const gchar *name)
{
  GString *to = g_string_new (NULL);

  for (; *name; name++)
    if (g_ascii_isalnum (*name))
      g_string_append_c (to, g_ascii_tolower (*name));
  return g_string_free (to, FALSE);
}

/* Returns: seconds since the epoch; NAN: @text is no time. GDateTime keeps
 * microseconds, and ISCE2 may write more digits. */
static gdouble
parse_time (Parser *self, const gchar *text)
{
  g_autoptr (GTimeZone) utc = g_time_zone_new_utc ();
  g_autofree gchar *copy = g_strstrip (g_strdup (text));
  gchar *point = strchr (copy, '.');
  gdouble fraction = point ? g_ascii_strtod (point, NULL) : 0;
  g_autoptr (GDateTime) time = NULL;

  if (point)
    *point = '\0';
  if (strlen (copy) > 10 && copy[10] == ' ')
    copy[10] = 'T';
  time = g_date_time_new_from_iso8601 (copy, utc);
  if (!time)
    return NAN;
  if (self->epoch == 0)
    self->epoch = g_date_time_to_unix (time);
  return (gdouble) (g_date_time_to_unix (time) - self->epoch) + fraction;
}

/* @text: "[x, y, z]" */
static gboolean
parse_vector (const gchar *text, gdouble *to)
{
  for (guint i = 0; i < 3; i++) {
    gchar *end;

    text += strspn (text, "[(, \t\r\n");
    to[i] = g_ascii_strtod (text, &end);
    if (end == text || !isfinite (to[i]))
      return FALSE;
    text = end;
  }
  return TRUE;
}

static void
take_state (Parser *self)
{
  const gchar *text = self->value->str;

  if (g_str_equal (self->property, "position") &&
      parse_vector (text, self->state.position))
    self->has |= 1;
  else if (g_str_equal (self->property, "velocity") &&
           parse_vector (text, self->state.velocity))
    self->has |= 2;
  else if (g_str_equal (self->property, "time")) {
    self->state.time = parse_time (self, text);
    self->has |= isfinite (self->state.time) ? 4 : 0;
  }
}

static void
take_number (Parser *self)
{
  for (guint i = 0; i < N_KEYS; i++)
    for (guint k = 0; k < 2; k++)
      if (isnan (self->found[i]) &&
          g_strcmp0 (self->property, keys[i][k]) == 0) {
        gchar *end;
        gdouble value = i == SENSING_START
                            ? parse_time (self, self->value->str)
                            : g_ascii_strtod (self->value->str, &end);

        if (i == SENSING_START || end != self->value->str)
          self->found[i] = value;
      }
}

static gboolean
is_state (const Parser *self)
{
  const gchar *name = g_queue_peek_tail ((GQueue *) &self->components);

  return name && g_str_has_prefix (name, "statevector") &&
         !g_str_equal (name, "statevectors"); /* all of them */
}

static void
start_element (GMarkupParseContext *context, const gchar *element,
    const gchar **names, const gchar **values, gpointer data, GError **error)
{
  Parser *self = data;
  gchar *name = NULL;

  for (guint i = 0; names[i]; i++)
    if (g_str_equal (names[i], "name"))
      name = simplify (values[i]);
  if (g_str_equal (element, "component")) {
    g_queue_push_tail (&self->components, name ? name : g_strdup (""));
    if (is_state (self))
      self->has = 0;
    return;
  }
  self->in_value = g_str_equal (element, "value");
  g_string_truncate (self->value, 0);
  if (g_str_equal (element, "property")) {
    g_free (self->property);
    self->property = g_steal_pointer (&name);
  }
  g_free (name);
}

static void
end_element (GMarkupParseContext *context, const gchar *element, gpointer data,
    GError **error)
{
  Parser *self = data;

  if (g_str_equal (element, "value") && self->property) {
    if (is_state (self))
      take_state (self);
    else
      take_number (self);
  }
  self->in_value = FALSE;
  if (g_str_equal (element, "component")) {
    g_autofree gchar *name = NULL;

    if (is_state (self) && self->has == 7 && !self->has_orbit)
      g_array_append_val (self->orbit->states, self->state);
    name = g_queue_pop_tail (&self->components);
    if (g_strcmp0 (name, "orbit") == 0 && self->orbit->states->len)
      self->has_orbit = TRUE;
  }
}

static void
add_text (GMarkupParseContext *context, const gchar *text, gsize size,
    gpointer data, GError **error)
{
  Parser *self = data;

  if (self->in_value)
    g_string_append_len (self->value, text, (gssize) size);
}

static gint
compare_times (gconstpointer a, gconstpointer b)
{
  gdouble s = ((const ImkInsarformState *) a)->time;
  gdouble t = ((const ImkInsarformState *) b)->time;

  return s < t ? -1 : s > t;
}

static ImkStatus
apply (Parser *self, const gchar *name, ImkError *error)
{
  const gdouble *f = self->found;
  ImkInsarformOrbit *o = &self->orbit->orbit;

  o->first_time = f[SENSING_START];
  o->line_time = isnan (f[TIME_INTERVAL]) ? 1 / f[PRF] : f[TIME_INTERVAL];
  o->near_range = f[STARTING_RANGE];
  o->range_step =
      isnan (f[PIXEL_SIZE]) ? LIGHT / (2 * f[SAMPLING_RATE]) : f[PIXEL_SIZE];
  o->wavelength = f[WAVELENGTH];
  o->look = f[POINTING] > 0 ? -1 : 1;
  if (self->orbit->states->len >= 4 && isfinite (o->first_time) &&
      isfinite (o->line_time) && isfinite (o->near_range) &&
      isfinite (o->range_step) && isfinite (o->wavelength)) {
    g_array_sort (self->orbit->states, compare_times);
    return IMK_OK;
  }
  return imk_error_set (error, IMK_ERROR_FILE,
      "\"%s\" is no XML file of ISCE2 with an orbit: it has %u state vectors, "
      "and needs 4, sensing start (%s), starting range (%s), radar wavelength "
      "(%s), range pixel size or sampling rate (%s), azimuth time interval or "
      "PRF (%s).",
      name, self->orbit->states->len,
      isfinite (o->first_time) ? "there" : "missing",
      isfinite (o->near_range) ? "there" : "missing",
      isfinite (o->wavelength) ? "there" : "missing",
      isfinite (o->range_step) ? "there" : "missing",
      isfinite (o->line_time) ? "there" : "missing");
}

ImkStatus
gst_insar_orbit_parse_isce (GstInsarOrbit *orbit, const gchar *text, gsize size,
    const gchar *name, ImkError *error)
{
  static const GMarkupParser funcs = {
      .start_element = start_element,
      .end_element = end_element,
      .text = add_text,
  };
  Parser self = {.orbit = orbit, .value = g_string_new (NULL)};
  g_autoptr (GMarkupParseContext) context = g_markup_parse_context_new (
      &funcs, G_MARKUP_TREAT_CDATA_AS_TEXT, &self, NULL);
  g_autoptr (GError) why = NULL;
  ImkStatus status;

  g_queue_init (&self.components);
  for (guint i = 0; i < N_KEYS; i++)
    self.found[i] = NAN;
  if (g_markup_parse_context_parse (context, text, (gssize) size, &why) &&
      g_markup_parse_context_end_parse (context, &why))
    status = apply (&self, name, error);
  else
    status = imk_error_set (
        error, IMK_ERROR_FILE, "\"%s\" is no XML file: %s", name, why->message);
  g_queue_clear_full (&self.components, g_free);
  g_string_free (self.value, TRUE);
  g_free (self.property);
  return status;
}
