/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarorbit.h"

#include <math.h>
#include <string.h>

#include "files/gstimagingfile.h"
#include "gstinsarprm.h"

#define DAY 86400.0
#define LIGHT 299792458.0

/* Returns: (transfer full) (nullable): text, terminated */
static gchar *
load_text (const gchar *location, gsize *size, ImkError *error)
{
  g_autoptr (GError) why = NULL;
  gchar *text = gst_imaging_file_load (
      location, GST_IMAGING_FILE_MAX_SETTINGS, size, &why);

  if (!text)
    imk_error_set (error, IMK_ERROR_FILE, "%s", why->message);
  return text;
}

/* --- LED files ------------------------------------------------------------ */

/* Lines of: year, day, second, position, velocity; before them one of: their
 * number, year, day and second of the first, seconds between two. */
static ImkStatus
parse_led (
    GstInsarOrbit *self, const gchar *text, const gchar *name, ImkError *error)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  guint expected = 0;

  for (guint i = 0; lines[i]; i++) {
    gdouble v[9];
    gchar *at = lines[i], *end;
    ImkInsarformState state;
    guint n = 0;

    for (; n < G_N_ELEMENTS (v); n++, at = end) {
      v[n] = g_ascii_strtod (at, &end);
      if (end == at || !isfinite (v[n]))
        break;
    }
    if (i == 0 && n == 5 && v[0] >= 4 && v[0] <= 1e6) {
      expected = (guint) v[0];
      continue;
    }
    if (n == 0 && *g_strstrip (lines[i]) == '\0')
      continue;
    if (n != 9 || expected == 0)
      return imk_error_set (error, IMK_ERROR_FILE,
          "Line %u of \"%s\" is no line of a LED file: expected are 5 numbers "
          "in the first (count from 4 on, year, day, second, interval) and 9 "
          "in the others (year, day, second, position, velocity).",
          i + 1, name);
    state.time = v[1] * DAY + v[2];
    memcpy (state.position, v + 3, sizeof (state.position));
    memcpy (state.velocity, v + 6, sizeof (state.velocity));
    g_array_append_val (self->states, state);
  }
  if (self->states->len == expected && expected > 0)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_FILE,
      "\"%s\" has %u state vectors, and its first line announces %u.", name,
      self->states->len, expected);
}

/* Returns: (transfer full): the file in the working folder, or else beside the
 * PRM file, as for SLC_file */
static gchar *
find_led (const gchar *prm, const gchar *name)
{
  g_autofree gchar *folder = g_path_get_dirname (prm);

  return g_file_test (name, G_FILE_TEST_EXISTS) || g_path_is_absolute (name)
             ? g_strdup (name)
             : g_build_filename (folder, name, NULL);
}

/* --- PRM files ------------------------------------------------------------ */

typedef struct {
  const gchar *key;
  gboolean needed; /* otherwise @value has the default */
  gdouble *value;
} Number;

static ImkStatus
read_numbers (const Number *numbers, guint n, const gchar *text,
    const gchar *name, ImkError *error)
{
  for (guint i = 0; i < n; i++) {
    g_autofree gchar *value = gst_insar_prm_find_text (text, numbers[i].key);
    gchar *end = NULL;
    gdouble number = value ? g_ascii_strtod (value, &end) : 0;

    if (value && end != value && *end == '\0' && isfinite (number))
      *numbers[i].value = number;
    else if (value || numbers[i].needed)
      return imk_error_set (error, IMK_ERROR_FILE,
          "\"%s\" has no line \"%s = NUMBER\", which the phase of the earth "
          "needs.",
          name, numbers[i].key);
  }
  return IMK_OK;
}

/* Times and ranges as GMTSAR's SAT_llt2rat has them. */
static ImkStatus
parse_prm (
    GstInsarOrbit *self, const gchar *text, const gchar *name, ImkError *error)
{
  ImkInsarformOrbit *o = &self->orbit;
  gdouble clock = 0, prf = 0, near_range = 0, rate = 0, n_rows = 0, n_lines = 0;
  gdouble chirp = 0, rshift = 0, sub_r = 0, ashift = 0, sub_a = 0;
  const Number numbers[] = {
      {"clock_start", TRUE, &clock},
      {"PRF", TRUE, &prf},
      {"near_range", TRUE, &near_range},
      {"rng_samp_rate", TRUE, &rate},
      {"radar_wavelength", TRUE, &o->wavelength},
      {"equatorial_radius", FALSE, &self->ellipsoid.equatorial},
      {"polar_radius", FALSE, &self->ellipsoid.polar},
      {"earth_radius", FALSE, &self->sphere},
      {"nrows", FALSE, &n_rows},
      {"num_valid_az", FALSE, &n_lines},
      {"chirp_ext", FALSE, &chirp},
      {"rshift", FALSE, &rshift},
      {"sub_int_r", FALSE, &sub_r},
      {"ashift", FALSE, &ashift},
      {"sub_int_a", FALSE, &sub_a},
  };
  g_autofree gchar *led = gst_insar_prm_find_text (text, "led_file");
  g_autofree gchar *look = gst_insar_prm_find_text (text, "lookdir");
  g_autofree gchar *path = led ? find_led (name, led) : NULL;
  g_autofree gchar *states = NULL;
  gsize size;

  if (!path)
    return imk_error_set (error, IMK_ERROR_FILE,
        "\"%s\" has no line \"led_file = ...\" that names the orbit. Give a "
        "PRM file of GMTSAR with its LED file, or an XML file of ISCE2.",
        name);
  self->ellipsoid = (ImkInsarformSurface){6378137, 6356752.31};
  IMK_TRY (read_numbers (numbers, G_N_ELEMENTS (numbers), text, name, error));
  if (!(prf > 0 && rate > 0))
    return imk_error_set (error, IMK_ERROR_FILE,
        "\"%s\" says PRF = %.10g and rng_samp_rate = %.10g; both must be above "
        "0.",
        name, prf, rate);
  states = load_text (path, &size, error);
  IMK_TRY (states ? parse_led (self, states, path, error) : IMK_ERROR_FILE);
  o->line_time = 1 / prf;
  o->first_time = DAY * clock + (ashift + sub_a) * o->line_time;
  if (n_rows > n_lines && n_lines > 0)
    o->first_time += (n_rows - n_lines) / 2 * o->line_time;
  o->range_step = LIGHT / (2 * rate);
  o->near_range = near_range + (rshift + sub_r - chirp) * o->range_step;
  o->look = look && *look == 'L' ? -1 : 1;
  return IMK_OK;
}

/* --- both ----------------------------------------------------------------- */

GstInsarOrbit *
gst_insar_orbit_load (const gchar *location, ImkError *error)
{
  GstInsarOrbit *self = g_new0 (GstInsarOrbit, 1);
  gsize size = 0;
  g_autofree gchar *text = load_text (location, &size, error);
  ImkStatus status = IMK_ERROR_FILE;

  self->states = g_array_new (FALSE, FALSE, sizeof (ImkInsarformState));
  self->ellipsoid = IMK_INSARFORM_WGS84;
  self->orbit.look = 1;
  if (text && memchr (text, '\0', size))
    imk_error_set (error, IMK_ERROR_FILE,
        "\"%s\" is no text; expected is a PRM file of GMTSAR, or an XML file "
        "of ISCE2.",
        location);
  else if (text && text[strspn (text, " \t\r\n")] == '<')
    status = gst_insar_orbit_parse_isce (self, text, size, location, error);
  else if (text)
    status = parse_prm (self, text, location, error);
  if (status != IMK_OK) {
    gst_insar_orbit_free (self);
    return NULL;
  }
  self->orbit.states = (const ImkInsarformState *) self->states->data;
  self->orbit.n_states = self->states->len;
  return self;
}

void
gst_insar_orbit_free (GstInsarOrbit *self)
{
  if (!self)
    return;
  g_array_unref (self->states);
  g_free (self);
}
