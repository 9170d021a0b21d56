/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarprm.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "files/gstimagingfile.h"

#define MAX_SIZE GST_IMAGING_FILE_MAX_SETTINGS
#define MAX_WIDTH (1 << 24)
#define MAX_HEIGHT (1 << 30)
#define MAX_SHIFT 1000000

/* --- one line after the other --------------------------------------------- */

#define BLANKS " \t\r\f\v"

/* Returns: (nullable): what stands behind '=' when @line sets @key */
static const gchar *
value_of (const gchar *line, const gchar *key)
{
  gsize size = strlen (key);

  line += strspn (line, BLANKS);
  if (strncmp (line, key, size) != 0)
    return NULL;
  line += size;
  line += strspn (line, BLANKS);
  if (*line != '=')
    return NULL;
  line++;
  return line + strspn (line, BLANKS);
}

/* The last value of @key, to the end of its line. */
static gchar *
find_line (const gchar *text, const gchar *key)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  gchar *found = NULL;

  for (guint i = 0; lines[i]; i++) {
    const gchar *value = value_of (lines[i], key);

    if (value && *value) {
      g_free (found);
      found = g_strchomp (g_strdup (value));
    }
  }
  return found;
}

gchar *
gst_insar_prm_find_text (const gchar *text, const gchar *key)
{
  gchar *found = find_line (text, key);

  if (found)
    found[strcspn (found, BLANKS)] = '\0';
  return found;
}

typedef struct {
  const gchar *key, *old_key; /* nullable */
  gboolean needed;
  gdouble fallback, least, most;
  gboolean whole;
} Number;

static gboolean
find_number (const gchar *name, const gchar *text, const Number *number,
    gdouble *result, GError **error)
{
  g_autofree gchar *value = gst_insar_prm_find_text (text, number->key);
  g_autofree gchar *shown = NULL;
  gchar *end = NULL;

  if (!value && number->old_key)
    value = gst_insar_prm_find_text (text, number->old_key);
  if (!value && number->needed) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        "\"%s\" has no line \"%s = ...\", which is needed.", name, number->key);
    return FALSE;
  }
  if (!value) {
    *result = number->fallback;
    return TRUE;
  }
  *result = g_ascii_strtod (value, &end);
  if (number->whole)
    *result = trunc (*result);
  if (end != value && *end == '\0' && *result >= number->least &&
      *result <= number->most)
    return TRUE;
  shown = gst_imaging_file_quote (value, -1);
  g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
      "\"%s\" says %s = %s; expected is a number from %.10g to %.10g.", name,
      number->key, shown, number->least, number->most);
  return FALSE;
}

/* --- the file ------------------------------------------------------------- */

static gboolean
read_size (GstInsarPrm *prm, const gchar *text, GError **error)
{
  static const Number width = {
      "num_rng_bins", NULL, TRUE, 0, 1, MAX_WIDTH, TRUE};
  static const Number patches = {
      "num_patches", NULL, FALSE, 1, 1, MAX_HEIGHT, TRUE};
  static const Number lines = {
      "num_valid_az", NULL, TRUE, 0, 1, MAX_HEIGHT, TRUE};
  gdouble w, n, h;

  if (!find_number (prm->name, text, &width, &w, error) ||
      !find_number (prm->name, text, &patches, &n, error) ||
      !find_number (prm->name, text, &lines, &h, error))
    return FALSE;
  if (n * h > MAX_HEIGHT) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        "\"%s\" says num_patches = %.0f and num_valid_az = %.0f; an image can "
        "have %d lines at most.",
        prm->name, n, h, MAX_HEIGHT);
    return FALSE;
  }
  prm->width = (guint) w;
  prm->height = (guint) (n * h);
  return TRUE;
}

static gboolean
read_shifts (GstInsarPrm *prm, const gchar *text, GError **error)
{
  static const Number prf = {"PRF", NULL, FALSE, 0, 0, 1e9, FALSE};
  static const Number rshift = {
      "rshift", "xshift", FALSE, 0, -MAX_SHIFT, MAX_SHIFT, TRUE};
  static const Number ashift = {
      "ashift", "yshift", FALSE, 0, -MAX_SHIFT, MAX_SHIFT, TRUE};
  static const Number fd1 = {"fd1", NULL, FALSE, 0, -1e9, 1e9, FALSE};
  g_autofree gchar *centroid = gst_insar_prm_find_text (text, fd1.key);
  gdouble r, a;

  if (!find_number (prm->name, text, &prf, &prm->prf, error) ||
      !find_number (prm->name, text, &fd1, &prm->fd1, error) ||
      !find_number (prm->name, text, &rshift, &r, error) ||
      !find_number (prm->name, text, &ashift, &a, error))
    return FALSE;
  prm->has_fd1 = centroid != NULL;
  prm->rshift = (gint) r;
  prm->ashift = (gint) a;
  return TRUE;
}

/* Returns: NULL, with @error set */
static gchar *
refuse_text (const gchar *name, GError **error)
{
  g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
      "\"%s\" is no PRM file: expected is text of lines \"key = value\".",
      name);
  return NULL;
}

/* Returns: (transfer full) (nullable): the text, terminated */
static gchar *
check_text (const gchar *text, gsize size, const gchar *name, GError **error)
{
  return size <= MAX_SIZE && !memchr (text, '\0', size)
             ? g_strndup (text, size)
             : refuse_text (name, error);
}

/* Returns: whether @key has a number */
static gboolean
has_number (const gchar *text, const gchar *key, gdouble *number)
{
  g_autofree gchar *value = gst_insar_prm_find_text (text, key);
  gchar *end = NULL;

  if (!value)
    return FALSE;
  *number = g_ascii_strtod (value, &end);
  return end != value && *end == '\0' && isfinite (*number);
}

/* Axes of pictures alone need it, so no value is refused. */
static void
read_spacing (GstInsarPrm *prm, const gchar *text)
{
  const gdouble c = 299792458;
  gdouble rate, near, velocity, radius, height;

  if (has_number (text, "rng_samp_rate", &rate) && rate > 0)
    prm->spacing.range = c / (2 * rate);
  if (has_number (text, "near_range", &near) && near > 0)
    prm->spacing.near_range = near;
  if (has_number (text, "SC_vel", &velocity) && velocity > 0 && prm->prf > 0 &&
      has_number (text, "earth_radius", &radius) && radius > 0 &&
      has_number (text, "SC_height", &height) && height > 0)
    prm->spacing.azimuth = velocity / prm->prf * radius / (radius + height);
}

/* Keys of raw data differ from those of the image that was made of it: raw
 * lines have half as many bytes, or little more, and there are more of them. */
static gchar *
find_contradiction (const GstInsarPrm *prm, const gchar *text)
{
  const gdouble size = 4.0 * prm->width;
  gdouble a, b;

  if (has_number (text, "bytes_per_line", &a) && a > 0.75 * size && a != size &&
      a != 2 * size)
    return g_strdup_printf (
        "\"%s\" says bytes_per_line = %.10g and num_rng_bins = %u, of which a "
        "line has %.0f bytes; num_rng_bins counts.",
        prm->name, a, prm->width, size);
  if (has_number (text, "num_lines", &a) && a < prm->height)
    return g_strdup_printf (
        "\"%s\" says num_lines = %.10g and num_valid_az = %u (times "
        "num_patches); num_valid_az counts.",
        prm->name, a, prm->height);
  for (guint i = 0; i < 2; i++) {
    const gchar *key = i ? "ashift" : "rshift", *old = i ? "yshift" : "xshift";

    if (has_number (text, key, &a) && has_number (text, old, &b) && a != b)
      return g_strdup_printf (
          "\"%s\" says %s = %.10g and %s = %.10g, its old name; %s counts.",
          prm->name, key, a, old, b, key);
  }
  return NULL;
}

GstInsarPrm *
gst_insar_prm_parse (
    const gchar *text, gsize size, const gchar *name, GError **error)
{
  g_autoptr (GstInsarPrm) prm = g_new0 (GstInsarPrm, 1);
  g_autofree gchar *copy = check_text (text, size, name, error);

  prm->name = g_strdup (name);
  if (!copy)
    return NULL;
  prm->slc_file = gst_insar_prm_find_text (copy, "SLC_file");
  prm->slc_line = find_line (copy, "SLC_file");
  if (!prm->slc_file || !g_utf8_validate (prm->slc_file, -1, NULL)) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        "\"%s\" has no line \"SLC_file = ...\", which every PRM file of an SLC "
        "has.",
        name);
    return NULL;
  }
  if (!read_size (prm, copy, error) || !read_shifts (prm, copy, error))
    return NULL;
  read_spacing (prm, copy);
  prm->contradiction = find_contradiction (prm, copy);
  return g_steal_pointer (&prm);
}

/* Returns: (transfer full) (nullable): what is in the file */
static gchar *
load_text (const gchar *location, gsize *size, GError **error)
{
  g_autoptr (GError) cause = NULL;
  gchar *text = gst_imaging_file_load (location, MAX_SIZE, size, &cause);

  if (text)
    return text;
  /* an image may be larger than memory */
  if (cause->code == GST_IMAGING_FILE_ERROR_SIZE)
    return refuse_text (location, error);
  g_set_error_literal (error, GST_RESOURCE_ERROR,
      cause->code == GST_IMAGING_FILE_ERROR_NOT_FOUND
          ? GST_RESOURCE_ERROR_NOT_FOUND
          : GST_RESOURCE_ERROR_OPEN_READ,
      cause->message);
  return NULL;
}

GstInsarPrm *
gst_insar_prm_load (const gchar *location, GError **error)
{
  gsize size;
  g_autofree gchar *text = load_text (location, &size, error);

  return text ? gst_insar_prm_parse (text, size, location, error) : NULL;
}

/* --- the alignment -------------------------------------------------------- */

gboolean
gst_insar_prm_parse_alignment (const gchar *text, gsize size, const gchar *name,
    GstInsarPrmAlignment *alignment, GError **error)
{
  static const gchar *const keys[] = {"rshift", "sub_int_r", "stretch_r",
      "a_stretch_r", "ashift", "sub_int_a", "stretch_a", "a_stretch_a"};
  g_autofree gchar *copy = check_text (text, size, name, error);
  gdouble values[2][4];

  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    const gdouble most = i % 4 < 2 ? MAX_SHIFT : 1;
    const Number number = {keys[i], NULL, i % 4 == 0, 0, -most, most, FALSE};

    if (!copy ||
        !find_number (name, copy, &number, &values[i / 4][i % 4], error))
      return FALSE;
  }
  for (guint i = 0; i < 2; i++) {
    alignment->shift[i] = values[i][0] + values[i][1];
    alignment->stretch[i] = values[i][2];
    alignment->a_stretch[i] = values[i][3];
  }
  return TRUE;
}

gboolean
gst_insar_prm_load_alignment (
    const gchar *location, GstInsarPrmAlignment *alignment, GError **error)
{
  gsize size;
  g_autofree gchar *text = load_text (location, &size, error);

  return text &&
         gst_insar_prm_parse_alignment (text, size, location, alignment, error);
}

/* Returns: (transfer full) (nullable): where a file of this name is */
static gchar *
find_file (const GstInsarPrm *prm, const gchar *name)
{
  g_autofree gchar *folder = g_path_get_dirname (prm->name);
  g_autofree gchar *beside = g_build_filename (folder, name, NULL);

  if (g_file_test (name, G_FILE_TEST_EXISTS))
    return g_strdup (name);
  if (!g_path_is_absolute (name) && g_file_test (beside, G_FILE_TEST_EXISTS))
    return g_steal_pointer (&beside);
  return NULL;
}

gchar *
gst_insar_prm_find_slc (const GstInsarPrm *prm)
{
  gchar *found = find_file (prm, prm->slc_line);

  if (!found)
    found = find_file (prm, prm->slc_file);
  return found ? found : g_strdup (prm->slc_file);
}

gchar *
gst_insar_prm_find_other (const GstInsarPrm *prm, const gchar *found)
{
  g_autofree gchar *folder = g_path_get_dirname (prm->name);
  g_autofree gchar *beside = g_build_filename (folder, found, NULL);
  GStatBuf a, b;

  if (g_path_is_absolute (found) || g_stat (found, &a) < 0 ||
      g_stat (beside, &b) < 0 || (a.st_dev == b.st_dev && a.st_ino == b.st_ino))
    return NULL;
  return gst_imaging_file_name (beside);
}

void
gst_insar_prm_free (GstInsarPrm *prm)
{
  if (!prm)
    return;
  g_free (prm->name);
  g_free (prm->slc_file);
  g_free (prm->slc_line);
  g_free (prm->contradiction);
  g_free (prm);
}
