/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscancalibration.h"

#include <string.h>

#include "files/gstimagingfile.h"
#include "files/gstimagingformats.h"
#include "gstimagingndarray.h"

/* The file and the group that are being read, for messages. */
typedef struct {
  const gchar *location, *name; /* the name is for messages */
  GKeyFile *file;
  const gchar *group;
  GPtrArray *numbers; /* takes what is read */
} Reader;

struct _GstOctBscanCalibrationFile {
  gchar *name;        /* for messages */
  gboolean is_of_all; /* one [camera] */
  guint n_groups;     /* else [camera 0], [camera 1], ... */
  /* a phase over the pixels has n_phase values, which is to be a spectrum's */
  ImkOctbscanCamera cameras[IMK_OCTBSCAN_MAX_CAMERAS];
  gdouble samples[IMK_OCTBSCAN_MAX_CAMERAS]; /* of a spectrum; 0: any */
  GPtrArray *numbers;
};

typedef enum { KEY_LIST, KEY_NPY, KEY_TEXT } KeyKind;

/* How one key gives the map of a camera. */
typedef struct {
  const gchar *key;
  KeyKind kind;
  ImkOctbscanMap map;
} MapKey;

static const MapKey map_keys[] = {
    {"lambda-first", KEY_LIST, IMK_OCTBSCAN_MAP_RANGE},
    {"polynomial", KEY_LIST, IMK_OCTBSCAN_MAP_POLYNOMIAL},
    {"wavelengths", KEY_NPY, IMK_OCTBSCAN_MAP_WAVELENGTHS},
    {"chirp", KEY_TEXT, IMK_OCTBSCAN_MAP_CHIRP},
    {"k-index", KEY_NPY, IMK_OCTBSCAN_MAP_K_INDEX},
    {"k-polynomial", KEY_LIST, IMK_OCTBSCAN_MAP_K_POLYNOMIAL},
};

static const gchar *const other_keys[] = {"lambda-last", "phase",
    "phase-domain", "dispersion", "gain", "samples", NULL};

/* --- numbers ------------------------------------------------------------- */

static gboolean
wrong (const Reader *r, const gchar *key, ImkError *error, const gchar *why)
{
  g_autofree gchar *shown = gst_imaging_file_quote (key, -1);

  imk_error_set (error, IMK_ERROR_FILE, "%s in [%s] of calibration \"%s\" %s",
      shown, r->group, r->name, why);
  return FALSE;
}

static gboolean
add_number (GArray *numbers, const gchar *text)
{
  gchar *end;
  gdouble number = g_ascii_strtod (text, &end);

  if (end == text || *g_strchug (end))
    return FALSE;
  g_array_append_val (numbers, number);
  return TRUE;
}

/* Numbers between any of the characters of @separators. */
static GArray *
parse_numbers (const gchar *text, const gchar *separators, gchar **bad)
{
  GArray *numbers = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_auto (GStrv) parts = g_strsplit_set (text, separators, -1);

  for (gchar **p = parts; *p && !*bad; p++)
    if (*g_strstrip (*p) && !add_number (numbers, *p))
      *bad = g_strdup (*p);
  if (*bad)
    g_clear_pointer (&numbers, g_array_unref);
  return numbers;
}

/* @owner: frees them; @n: (out): how many @found (transfer full) are */
static const gdouble *
keep (GPtrArray *owner, GArray *found, guint32 *n)
{
  gpointer numbers;

  *n = found->len;
  numbers = g_array_free (found, FALSE);
  g_ptr_array_add (owner, numbers);
  return numbers;
}

static gboolean
read_list (const Reader *r, const gchar *key, const gdouble **values,
    guint32 *n, ImkError *error)
{
  g_autofree gchar *text = g_key_file_get_value (r->file, r->group, key, NULL);
  g_autofree gchar *bad = NULL;
  GArray *numbers = parse_numbers (text, ";", &bad);

  if (bad) {
    g_autofree gchar *shown = gst_imaging_file_quote (bad, -1);
    g_autofree gchar *why =
        g_strdup_printf ("holds \"%s\", which is no number; numbers are "
                         "separated by semicolons, decimals by a point.",
            shown);

    return wrong (r, key, error, why);
  }
  *values = keep (r->numbers, numbers, n);
  return *n > 0 || wrong (r, key, error, "is empty; it needs a number.");
}

/* --- files --------------------------------------------------------------- */

/* Relative to the folder of the calibration. */
static gchar *
get_path (const Reader *r, const gchar *key)
{
  g_autofree gchar *name = g_key_file_get_string (r->file, r->group, key, NULL);
  g_autofree gchar *folder = g_path_get_dirname (r->location);

  if (!name || !*g_strstrip (name))
    return NULL;
  return g_path_is_absolute (name) ? g_steal_pointer (&name)
                                   : g_build_filename (folder, name, NULL);
}

static gboolean
failed (const Reader *r, const gchar *key, GError *why, ImkError *error)
{
  g_autofree gchar *text = g_strdup_printf ("cannot be read: %s", why->message);

  g_error_free (why);
  return wrong (r, key, error, text);
}

static gboolean
read_npy (const Reader *r, const gchar *key, const gdouble **values, guint32 *n,
    ImkError *error)
{
  g_autofree gchar *path = get_path (r, key);
  GError *why = NULL;
  GstImagingNdArray *npy = path ? gst_imaging_nd_array_load (path, &why) : NULL;
  gdouble *numbers = NULL;
  gsize count = 0;
  gboolean ok = TRUE;

  if (!path)
    ok = wrong (r, key, error, "is empty; it needs the name of an array file.");
  else if (npy && (npy->n_dims != 1 || npy->n_values == 0 ||
                      npy->n_values > G_MAXUINT32))
    ok = wrong (r, key, error, "names no array of one dimension.");
  else if (npy)
    numbers = gst_imaging_nd_array_to_double (npy, &count, &why);
  if (why)
    ok = failed (r, key, why, error);
  if (numbers)
    g_ptr_array_add (r->numbers, numbers);
  *values = numbers;
  *n = (guint32) count;
  g_clear_pointer (&npy, gst_imaging_nd_array_free);
  return ok;
}

/* Of two numbers a line the second ones stay: the first count the samples. */
static void
keep_second_column (GArray *numbers, guint n_lines)
{
  gdouble *v = (gdouble *) (gpointer) numbers->data;

  if (n_lines < 2 || numbers->len != 2 * n_lines)
    return;
  for (guint i = 0; i < n_lines; i++)
    v[i] = v[2 * i + 1];
  g_array_set_size (numbers, n_lines);
}

static gboolean
read_text (const Reader *r, const gchar *key, gboolean is_table,
    const gdouble **values, guint32 *n, ImkError *error)
{
  g_autofree gchar *path = get_path (r, key), *text = NULL, *bad = NULL;
  GError *why = NULL;
  GArray *numbers;
  guint n_lines = 0;
  gsize size;

  if (!path)
    return wrong (r, key, error, "is empty; it needs the name of a text file.");
  text =
      gst_imaging_file_load (path, GST_IMAGING_FILE_MAX_NUMBERS, &size, &why);
  if (!text)
    return failed (r, key, why, error);
  if (strlen (text) != size)
    return wrong (r, key, error, "names a file with a zero byte, no text.");
  if (is_table)
    n_lines = gst_oct_bscan_table_clean (text);
  numbers = parse_numbers (text, " \t\r\n;,", &bad);
  if (bad) {
    g_autofree gchar *name = gst_imaging_file_name (path);
    g_autofree gchar *shown = gst_imaging_file_quote (bad, -1);
    g_autofree gchar *sentence = g_strdup_printf (
        "names \"%s\", which holds \"%s\" where a number should be.", name,
        shown);

    return wrong (r, key, error, sentence);
  }
  keep_second_column (numbers, n_lines);
  *values = keep (r->numbers, numbers, n);
  return TRUE;
}

/* Arrays, or text with a number a line, or with two. */
static gboolean
read_file (const Reader *r, const gchar *key, const gdouble **values,
    guint32 *n, ImkError *error)
{
  g_autofree gchar *path = get_path (r, key);

  return !path || gst_imaging_formats_know (path)
             ? read_npy (r, key, values, n, error)
             : read_text (r, key, TRUE, values, n, error);
}

/* --- one camera ---------------------------------------------------------- */

static gboolean
has (const Reader *r, const gchar *key)
{
  return g_key_file_has_key (r->file, r->group, key, NULL);
}

static gboolean
check_keys (const Reader *r, ImkError *error)
{
  g_auto (GStrv) keys = g_key_file_get_keys (r->file, r->group, NULL, NULL);

  for (gchar **k = keys; k && *k; k++) {
    gboolean ok = g_strv_contains (other_keys, *k);

    for (guint i = 0; i < G_N_ELEMENTS (map_keys); i++)
      ok = ok || strcmp (*k, map_keys[i].key) == 0;
    if (!ok)
      return wrong (r, *k, error,
          "is unknown. There are lambda-first and lambda-last, polynomial, "
          "wavelengths, chirp, k-index, k-polynomial, phase, phase-domain, "
          "dispersion, gain and samples.");
  }
  return TRUE;
}

static gboolean
read_range (const Reader *r, ImkOctbscanCamera *camera, ImkError *error)
{
  const gdouble *first = NULL, *last = NULL;
  guint32 n_first = 0, n_last = 0;
  GArray *both;

  if (!has (r, "lambda-last"))
    return wrong (r, "lambda-first", error, "has no lambda-last beside it.");
  if (!read_list (r, "lambda-first", &first, &n_first, error) ||
      !read_list (r, "lambda-last", &last, &n_last, error))
    return FALSE;
  if (n_first != 1 || n_last != 1)
    return wrong (r, n_first != 1 ? "lambda-first" : "lambda-last", error,
        "must be one number.");
  both = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_array_append_vals (both, first, 1);
  g_array_append_vals (both, last, 1);
  camera->values = keep (r->numbers, both, &camera->n_values);
  return TRUE;
}

static gboolean
read_map (const Reader *r, ImkOctbscanCamera *camera, ImkError *error)
{
  const MapKey *found = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (map_keys); i++)
    if (has (r, map_keys[i].key)) {
      if (found)
        return wrong (r, map_keys[i].key, error,
            "is one map too many; a camera has one of lambda-first and "
            "lambda-last, polynomial, wavelengths, chirp, k-index and "
            "k-polynomial.");
      found = &map_keys[i];
    }
  if (!found)
    return !has (r, "lambda-last") ||
           wrong (r, "lambda-last", error, "has no lambda-first beside it.");
  camera->map = found->map;
  if (found->map == IMK_OCTBSCAN_MAP_RANGE)
    return read_range (r, camera, error);
  switch (found->kind) {
  case KEY_LIST:
    return read_list (r, found->key, &camera->values, &camera->n_values, error);
  case KEY_NPY:
    return read_file (r, found->key, &camera->values, &camera->n_values, error);
  default:
    return read_text (
        r, found->key, FALSE, &camera->values, &camera->n_values, error);
  }
}

static gboolean
read_phase (const Reader *r, ImkOctbscanCamera *camera, ImkError *error)
{
  g_autofree gchar *domain =
      g_key_file_get_string (r->file, r->group, "phase-domain", NULL);
  gboolean of_spectrum = g_strcmp0 (domain, "spectrum") == 0;

  if (domain && !of_spectrum && strcmp (domain, "k") != 0)
    return wrong (r, "phase-domain", error, "must be k or spectrum.");
  return !has (r, "phase") ||
         read_npy (r, "phase",
             of_spectrum ? &camera->spectrum_phase : &camera->phase,
             &camera->n_phase, error);
}

/* @number: untouched without the key */
static gboolean
read_positive (
    const Reader *r, const gchar *key, gdouble *number, ImkError *error)
{
  const gdouble *values = NULL;
  guint32 n = 0;

  if (!has (r, key))
    return TRUE;
  if (!read_list (r, key, &values, &n, error))
    return FALSE;
  if (n != 1 || !(*values > 0))
    return wrong (r, key, error, "must be one number above 0.");
  *number = *values;
  return TRUE;
}

static gboolean
read_camera (const Reader *r, ImkOctbscanCamera *camera, gdouble *samples,
    ImkError *error)
{
  *camera = (ImkOctbscanCamera){IMK_OCTBSCAN_MAP_NONE};
  return check_keys (r, error) && read_map (r, camera, error) &&
         read_phase (r, camera, error) &&
         read_positive (r, "gain", &camera->gain, error) &&
         read_positive (r, "samples", samples, error) &&
         (!has (r, "dispersion") ||
             read_list (r, "dispersion", &camera->dispersion,
                 &camera->n_dispersion, error));
}

/* --- the calibration ------------------------------------------------------ */

/* How many groups [camera 0], [camera 1], ... there are without a hole;
 * G_MAXUINT for one [camera]. */
static gboolean
count_groups (const Reader *r, guint *n_groups, ImkError *error)
{
  g_auto (GStrv) groups = g_key_file_get_groups (r->file, NULL);
  gchar name[32] = "camera 0";

  for (*n_groups = 0; g_key_file_has_group (r->file, name);)
    g_snprintf (name, sizeof (name), "camera %u", ++*n_groups);
  for (gchar **g = groups; *g; g++) {
    guint64 i = g_str_has_prefix (*g, "camera ")
                    ? g_ascii_strtoull (*g + strlen ("camera "), NULL, 10)
                    : G_MAXUINT64;

    /* as it would be looked for */
    g_snprintf (name, sizeof (name), "camera %u", (guint) MIN (i, G_MAXUINT));
    if (strcmp (*g, "camera") != 0 &&
        (strcmp (*g, name) != 0 || i >= *n_groups)) {
      g_autofree gchar *shown = gst_imaging_file_quote (*g, -1);

      imk_error_set (error, IMK_ERROR_FILE,
          "[%s] in calibration \"%s\" is unknown, or leaves out a number. The "
          "groups are [camera 0], [camera 1] and so on, or one [camera] for "
          "all cameras.",
          shown, r->name);
      return FALSE;
    }
  }
  if (*n_groups == 0 && g_key_file_has_group (r->file, "camera"))
    *n_groups = G_MAXUINT;
  return TRUE;
}

gboolean
gst_oct_bscan_calibration_order (const GstImagingArray *wanted, guint n_cameras,
    guint *order, ImkError *error)
{
  if (wanted && wanted->n != n_cameras) {
    imk_error_set (error, IMK_ERROR_CONFIG,
        "camera-order has %u numbers, but cameras is %u. Give the calibration "
        "of the camera of each row, as \"<1, 0>\".",
        wanted->n, n_cameras);
    return FALSE;
  }
  for (guint i = 0; i < n_cameras; i++)
    order[i] = wanted ? (guint) wanted->values[i] : i;
  return TRUE;
}

/* "c0;c1;c2" for all cameras, or with commas for each.
 * @numbers: (out): of each camera, they belong to @self; @n: (out): how many */
static gboolean
parse_property (GstOctBscanCalibration *self, const gchar *name,
    const gchar *text, const gdouble **numbers, guint32 *n, ImkError *error)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);
  guint n_parts = g_strv_length (parts);
  g_autofree gchar *bad = NULL;

  if (n_parts != 1 && n_parts != self->n_cameras) {
    imk_error_set (error, IMK_ERROR_CONFIG,
        "%s \"%s\" is for %u cameras, but there are %u. Give one for "
        "all, or one for each, with commas between them.",
        name, text, n_parts, self->n_cameras);
    return FALSE;
  }
  for (guint i = 0; i < self->n_cameras; i++) {
    GArray *found = parse_numbers (parts[n_parts == 1 ? 0 : i], ";", &bad);

    if (!found) {
      imk_error_set (error, IMK_ERROR_CONFIG,
          "%s \"%s\" holds \"%s\", which is no number; numbers are "
          "separated by semicolons, decimals by a point.",
          name, text, bad);
      return FALSE;
    }
    numbers[i] = keep (self->numbers, found, &n[i]);
  }
  return TRUE;
}

/* What the properties (nullable) say goes before the file. A camera without
 * numbers, as in ",-1;2", keeps its map. */
static gboolean
override (GstOctBscanCalibration *self, const gchar *k_polynomial,
    const gchar *dispersion, ImkError *error)
{
  const gdouble *maps[IMK_OCTBSCAN_MAX_CAMERAS];
  const gdouble *phases[IMK_OCTBSCAN_MAX_CAMERAS];
  guint32 n_map[IMK_OCTBSCAN_MAX_CAMERAS] = {0};
  guint32 n_phase[IMK_OCTBSCAN_MAX_CAMERAS];

  if ((k_polynomial && !parse_property (self, "k-polynomial", k_polynomial,
                           maps, n_map, error)) ||
      (dispersion && !parse_property (self, "dispersion", dispersion, phases,
                         n_phase, error)))
    return FALSE;
  for (guint i = 0; i < self->n_cameras; i++) {
    ImkOctbscanCamera *camera = &self->cameras[i];

    if (n_map[i] > 0) {
      camera->map = IMK_OCTBSCAN_MAP_K_POLYNOMIAL;
      camera->values = maps[i];
      camera->n_values = n_map[i];
    }
    if (dispersion) {
      camera->dispersion = phases[i];
      camera->n_dispersion = n_phase[i];
    }
  }
  return TRUE;
}

static gboolean
read_cameras (Reader *r, GstOctBscanCalibrationFile *self, ImkError *error)
{
  guint n_groups;
  gboolean ok = TRUE;

  if (!count_groups (r, &n_groups, error))
    return FALSE;
  if (n_groups == 0) {
    imk_error_set (error, IMK_ERROR_FILE,
        "Calibration \"%s\" has no group [camera 0] or [camera]: it is empty.",
        r->name);
    return FALSE;
  }
  self->is_of_all = n_groups == G_MAXUINT;
  self->n_groups = self->is_of_all ? 0 : n_groups;
  for (guint i = 0; ok && i < MIN (n_groups, IMK_OCTBSCAN_MAX_CAMERAS); i++) {
    gchar name[32] = "camera";

    if (!self->is_of_all)
      g_snprintf (name, sizeof (name), "camera %u", i);
    r->group = name;
    ok = read_camera (r, &self->cameras[i], &self->samples[i], error);
    r->group = NULL;
    if (self->is_of_all)
      break;
  }
  return ok;
}

GKeyFile *
gst_oct_bscan_calibration_read (
    const gchar *location, GKeyFileFlags flags, GError **error)
{
  g_autofree gchar *name = gst_imaging_file_name (location);
  g_autoptr (GKeyFile) file = g_key_file_new ();
  g_autoptr (GError) why = NULL;
  g_autofree gchar *loaded = NULL, *shown = NULL;
  const gchar *text;
  gsize size;

  loaded = gst_imaging_file_load (
      location, GST_IMAGING_FILE_MAX_SETTINGS, &size, &why);
  text = loaded;
  if (loaded && size >= 3 && memcmp (loaded, "\xEF\xBB\xBF", 3) == 0) {
    text += 3; /* the mark that some editors write before UTF-8 */
    size -= 3;
  }
  if (text &&
      (size == 0 || g_key_file_load_from_data (file, text, size, flags, &why)))
    return g_steal_pointer (&file);
  /* what GLib says of a line quotes all of it */
  shown = text ? gst_imaging_file_quote (why->message, -1)
               : g_strdup (why->message);
  g_set_error (error, why->domain, why->code,
      "Calibration \"%s\" cannot be read: %s%s", name, shown,
      text ? ". It needs lines of [camera], of key=value and of # comments."
           : "");
  return NULL;
}

gpointer
gst_oct_bscan_calibration_file_load (
    const gchar *property, const gchar *location, ImkError *error)
{
  g_autoptr (GError) why = NULL;
  g_autoptr (GKeyFile) file =
      gst_oct_bscan_calibration_read (location, G_KEY_FILE_NONE, &why);
  GstOctBscanCalibrationFile *self;
  Reader reader;

  if (!file) {
    imk_error_set (error, IMK_ERROR_FILE, "%s", why->message);
    return NULL;
  }
  self = g_new0 (GstOctBscanCalibrationFile, 1);
  self->name = gst_imaging_file_name (location);
  self->numbers = g_ptr_array_new_with_free_func (g_free);
  reader = (Reader){location, self->name, file, NULL, self->numbers};
  if (read_cameras (&reader, self, error))
    return self;
  gst_oct_bscan_calibration_file_free (self);
  return NULL;
}

void
gst_oct_bscan_calibration_file_free (gpointer file)
{
  GstOctBscanCalibrationFile *self = file;

  if (!self)
    return;
  g_ptr_array_unref (self->numbers);
  g_free (self->name);
  g_free (self);
}

/* --- the cameras of a stream ---------------------------------------------- */

/* The name of @group in the file, for messages. */
static const gchar *
group_name (const GstOctBscanCalibrationFile *file, guint group, gchar name[32])
{
  if (file->is_of_all)
    return "camera";
  g_snprintf (name, 32, "camera %u", group);
  return name;
}

/* A polynomial would be stretched to spectra of any width. */
static gboolean
check_samples (const GstOctBscanCalibrationFile *file, guint group, guint width,
    ImkError *error)
{
  gdouble samples = file->samples[file->is_of_all ? 0 : group];
  gchar name[32];

  if (samples == 0 || samples == width)
    return TRUE;
  imk_error_set (error, IMK_ERROR_FILE,
      "[%s] of calibration \"%s\" was made from spectra of %g samples, but "
      "these have %u. Calibrate with spectra of this width; if the camera only "
      "joins pixels, remove samples from the file.",
      group_name (file, group, name), file->name, samples, width);
  return FALSE;
}

/* The camera of @group of the file for spectra of @width. */
static gboolean
take_camera (const GstOctBscanCalibrationFile *file, guint group, guint width,
    ImkOctbscanCamera *camera, ImkError *error)
{
  gchar name[32];

  if (!file->is_of_all && group >= file->n_groups) {
    imk_error_set (error, IMK_ERROR_FILE,
        "Calibration \"%s\" has %u cameras, but camera %u is asked for. Add "
        "[camera %u], or correct cameras or camera-order.",
        file->name, file->n_groups, group, group);
    return FALSE;
  }
  if (!check_samples (file, group, width, error))
    return FALSE;
  *camera = file->cameras[file->is_of_all ? 0 : group];
  if (!camera->spectrum_phase)
    return TRUE;
  if (camera->n_phase != width) {
    imk_error_set (error, IMK_ERROR_FILE,
        "phase in [%s] of calibration \"%s\" has %u values, but a spectrum has "
        "%u samples, and phase-domain is spectrum.",
        group_name (file, group, name), file->name, camera->n_phase, width);
    return FALSE;
  }
  camera->n_phase = 0;
  return TRUE;
}

GstOctBscanCalibration *
gst_oct_bscan_calibration_new (const GstOctBscanCalibrationFile *file,
    const GstImagingArray *order, const gchar *k_polynomial,
    const gchar *dispersion, guint n_cameras, guint width, ImkError *error)
{
  GstOctBscanCalibration *self = g_new0 (GstOctBscanCalibration, 1);
  guint turns[IMK_OCTBSCAN_MAX_CAMERAS];
  gboolean ok;

  self->n_cameras = n_cameras;
  self->numbers = g_ptr_array_new_with_free_func (g_free);
  ok = gst_oct_bscan_calibration_order (order, n_cameras, turns, error);
  for (guint i = 0; ok && file && i < n_cameras; i++)
    ok = take_camera (file, turns[i], width, &self->cameras[i], error);
  if (ok && override (self, k_polynomial, dispersion, error)) {
    if (file && !order && file->n_groups > n_cameras)
      self->n_left_over = file->n_groups - n_cameras;
    return self;
  }
  gst_oct_bscan_calibration_free (self);
  return NULL;
}

void
gst_oct_bscan_calibration_free (GstOctBscanCalibration *self)
{
  if (!self)
    return;
  g_ptr_array_unref (self->numbers);
  g_free (self);
}
