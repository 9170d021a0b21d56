/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What picturesink has written beside a file. */
#include "gstimagingdescription-private.h"

#include <math.h>
#include <string.h>

#include "gstimagingfile.h"
#include "gstimagingfilenumber.h"
#include "gstimagingformats.h"
#include "gstimagingquantity.h"
#include "gstimagingsidecar.h"

#define MAX_FRAMES (1 << 24) /* of which each has numbers */
#define MAX_DEPTH 16         /* json-glib calls itself for each */

/* --- JSON ----------------------------------------------------------------- */

static gboolean
is_shallow (const gchar *text)
{
  gboolean is_text = FALSE;
  guint depth = 0;

  for (; *text && depth <= MAX_DEPTH; text++)
    if (*text == '\\' && text[1])
      text++;
    else if (*text == '"')
      is_text = !is_text;
    else if (!is_text && strchr ("[{", *text))
      depth++;
    else if (!is_text && strchr ("]}", *text) && depth > 0)
      depth--;
  return depth <= MAX_DEPTH;
}

static gboolean
has_parser (void)
{
  g_autoptr (GVariant) nothing = gst_imaging_formats_parse_json ("{}");

  return nothing != NULL;
}

/* Returns: (transfer full): a sentence; @what: of the file at @path */
static gchar *
say_fault (const gchar *path, const gchar *what)
{
  g_autofree gchar *name = gst_imaging_file_name (path);

  return g_strdup_printf (
      "\"%s\" %s. Write it again with its file, or remove it.", name, what);
}

/* Returns: (transfer full) (nullable): an object; NULL without @fault for one
 * of somebody else */
static GVariant *
load (const gchar *path, gchar **fault)
{
  gsize size = 0;
  g_autofree gchar *text =
      gst_imaging_file_load (path, GST_IMAGING_FILE_MAX_SIDECAR, &size, NULL);
  g_autoptr (GVariant) told = NULL;

  if (text && g_utf8_validate (text, -1, NULL) && is_shallow (text))
    told = gst_imaging_formats_parse_json (text);
  if (!told && has_parser ())
    *fault = say_fault (path, "is cut, empty or no JSON");
  return told && strstr (text, GST_IMAGING_SIDECAR_SCHEMA) &&
                 g_variant_is_of_type (told, G_VARIANT_TYPE_VARDICT)
             ? g_steal_pointer (&told)
             : NULL;
}

/* Returns: (transfer full) (nullable) */
static GVariant *
get (GVariant *object, const gchar *key, const gchar *type)
{
  return g_variant_lookup_value (object, key, G_VARIANT_TYPE (type));
}

static gboolean
to_number (GVariant *value, gdouble *number)
{
  if (g_variant_is_of_type (value, G_VARIANT_TYPE_INT64))
    *number = (gdouble) g_variant_get_int64 (value);
  else if (g_variant_is_of_type (value, G_VARIANT_TYPE_DOUBLE))
    *number = g_variant_get_double (value);
  else
    return FALSE;
  return isfinite (*number);
}

/* Returns: (transfer full): of an array of any values */
static GVariant *
item (GVariant *array, gsize i)
{
  g_autoptr (GVariant) boxed = g_variant_get_child_value (array, i);

  return g_variant_get_variant (boxed);
}

/* --- series --------------------------------------------------------------- */

static void
free_series (gpointer data)
{
  GstImagingSeries *self = data;

  g_free (self->field);
  g_array_unref (self->values);
  g_free (self);
}

/* A number, null, or a run [first, step, count]; @limit: the most frames */
static void
expand (GVariant *entry, GArray *values, guint64 limit)
{
  gdouble run[3] = {NAN, 0, 1};

  if (g_variant_is_of_type (entry, G_VARIANT_TYPE ("av")) &&
      g_variant_n_children (entry) == G_N_ELEMENTS (run))
    for (guint i = 0; i < G_N_ELEMENTS (run); i++) {
      g_autoptr (GVariant) part = item (entry, i);

      to_number (part, &run[i]);
    }
  else
    to_number (entry, &run[0]);
  for (guint64 i = 0; i < run[2] && values->len < limit; i++) {
    gdouble value = run[0] + (gdouble) i * run[1];

    g_array_append_val (values, value);
  }
}

/* One number for all frames, or a series; NaN for all else */
static void
read_numbers (GVariant *object, const gchar *key, const gchar *field,
    guint64 n_frames, GstStructure *quantity, GPtrArray *all)
{
  g_autoptr (GVariant) value = g_variant_lookup_value (object, key, NULL);
  GstImagingSeries *series;
  gdouble number;

  if (!value)
    return;
  if (to_number (value, &number)) {
    gst_structure_set (quantity, field, G_TYPE_DOUBLE, number, NULL);
    return;
  }
  if (!g_variant_is_of_type (value, G_VARIANT_TYPE ("av"))) {
    gst_structure_set (quantity, field, G_TYPE_DOUBLE, NAN, NULL);
    return;
  }
  series = g_new0 (GstImagingSeries, 1);
  series->field = g_strdup (field);
  series->values = g_array_new (FALSE, FALSE, sizeof (gdouble));
  for (gsize i = 0; i < g_variant_n_children (value); i++) {
    g_autoptr (GVariant) entry = item (value, i);

    expand (entry, series->values, n_frames);
  }
  /* those of the last run */
  series->first = n_frames - series->values->len;
  g_ptr_array_add (all, series);
}

static void
read_texts (GVariant *object, const gchar *const *keys,
    const gchar *const *fields, GstStructure *quantity)
{
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GVariant) text = get (object, keys[i], "s");

    if (text)
      gst_structure_set (quantity, fields[i], G_TYPE_STRING,
          g_variant_get_string (text, NULL), NULL);
  }
}

static void
read_axes (
    GVariant *told, guint64 n_frames, GstStructure *quantity, GPtrArray *series)
{
  static const gchar *const keys[] = {"name", "unit", "step", "origin"};
  g_autoptr (GVariant) axes = get (told, "axes", "av");
  gsize n = axes ? g_variant_n_children (axes) : 0;

  for (gsize i = 0; i < MIN (n, GST_IMAGING_MAX_AXES); i++) {
    g_autoptr (GVariant) axis = item (axes, i);
    gchar *fields[G_N_ELEMENTS (keys)];

    if (!g_variant_is_of_type (axis, G_VARIANT_TYPE_VARDICT))
      continue;
    for (guint k = 0; k < G_N_ELEMENTS (keys); k++)
      fields[k] = g_strdup_printf ("axis-%u-%s", (guint) i, keys[k]);
    read_texts (axis, keys, (const gchar *const *) fields, quantity);
    for (guint k = 2; k < G_N_ELEMENTS (keys); k++)
      read_numbers (axis, keys[k], fields[k], n_frames, quantity, series);
    for (guint k = 0; k < G_N_ELEMENTS (keys); k++)
      g_free (fields[k]);
  }
}

/* Returns: FALSE with nothing appended for something else than a pair */
static gboolean
read_cell (GVariant *pair, GArray *cells)
{
  gdouble numbers[2];
  guint32 place[2];

  if (!g_variant_is_of_type (pair, G_VARIANT_TYPE ("av")) ||
      g_variant_n_children (pair) != G_N_ELEMENTS (numbers))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++) {
    g_autoptr (GVariant) value = item (pair, i);

    if (!to_number (value, &numbers[i]) || numbers[i] != floor (numbers[i]) ||
        numbers[i] < 0 || numbers[i] > G_MAXUINT32)
      return FALSE;
    place[i] = (guint32) numbers[i];
  }
  g_array_append_vals (cells, place, G_N_ELEMENTS (place));
  return TRUE;
}

/* Lenslets of the slopes.
 * Returns: (transfer full) (nullable): a sentence; what is wrong with them */
static gchar *
read_cells (GVariant *told, const gchar *path, GArray **cells)
{
  g_autoptr (GVariant) list = g_variant_lookup_value (told, "row-column", NULL);
  const gboolean is_list =
      list && g_variant_is_of_type (list, G_VARIANT_TYPE ("av"));
  const gsize n = is_list ? g_variant_n_children (list) : 0;

  if (!list)
    return NULL;
  *cells = g_array_new (FALSE, FALSE, sizeof (guint32));
  if (!is_list)
    return say_fault (path,
        "has no list in \"row-column\", where each cell has its [row, column]");
  for (gsize i = 0; i < n; i++) {
    g_autoptr (GVariant) pair = item (list, i);
    g_autofree gchar *what = NULL;

    if (read_cell (pair, *cells))
      continue;
    what = g_strdup_printf ("has no [row, column], whole numbers from 0, for "
                            "cell %" G_GSIZE_FORMAT " in \"row-column\"",
        i);
    return say_fault (path, what);
  }
  return NULL;
}

/* --- which ---------------------------------------------------------------- */

/* Is it about a file of this type and shape? One that was not completed tells
 * of the first frames of a file that grows. */
static gboolean
is_about (GVariant *told, const GstImagingNdArray *array, gint64 n_frames,
    gboolean is_complete)
{
  g_autoptr (GVariant) type = get (told, "type", "s");
  g_autoptr (GVariant) shape = get (told, "shape", "av");

  if (!type || !shape ||
      strcmp (g_variant_get_string (type, NULL),
          gst_imaging_nd_array_type_name (array->type)) != 0)
    return FALSE;
  /* a single page is no dimension of TIFF */
  for (gsize i = 0, n = g_variant_n_children (shape); i < n; i++) {
    gsize behind = n - i;
    guint64 length = behind > array->n_dims
                         ? 1
                         : array->dims[array->n_dims - (guint) behind];
    g_autoptr (GVariant) told_length = item (shape, i);
    gdouble number = 0;

    if (!to_number (told_length, &number))
      return FALSE;
    if (!is_complete && i == 0 && number == (gdouble) n_frames &&
        number < (gdouble) length)
      continue;
    if (number != (gdouble) length)
      return FALSE;
  }
  return g_variant_n_children (shape) + 1 >= array->n_dims;
}

/* Whether the file was replaced by another one of the same shape. */
static gboolean
is_of_another (GVariant *told, const gchar *path)
{
  g_autoptr (GVariant) sum = get (told, "sha256", "s");
  g_autofree gchar *file = NULL, *found = NULL;

  if (!sum)
    return FALSE;
  file = g_strndup (path, strlen (path) - strlen (".json"));
  found = gst_imaging_sidecar_digest (file);
  return found && strcmp (found, g_variant_get_string (sum, NULL)) != 0;
}

/* Of numbered files there is one for all: that of frame007.png is
 * frame%03d.png.json. Returns: (transfer full) (nullable) */
static gchar *
find_numbered (const gchar *location, guint64 *number)
{
  g_autofree gchar *folder = g_path_get_dirname (location);
  g_autofree gchar *name = g_path_get_basename (location);
  g_auto (GStrv) patterns = gst_imaging_file_number_guess (name);

  for (gchar **pattern = patterns; *pattern; pattern++) {
    g_autofree gchar *path =
        g_strdup_printf ("%s" G_DIR_SEPARATOR_S "%s.json", folder, *pattern);
    GstImagingFileNumber found;

    if (g_file_test (path, G_FILE_TEST_IS_REGULAR) &&
        gst_imaging_file_number_find (&found, *pattern, NULL) &&
        gst_imaging_file_number_get (&found, *pattern, name, number))
      return g_steal_pointer (&path);
  }
  return NULL;
}

gchar *
gst_imaging_sidecar_find (
    const gchar *location, gboolean *is_numbered, guint64 *number)
{
  g_autofree gchar *path = g_strconcat (location, ".json", NULL);

  *is_numbered = !g_file_test (path, G_FILE_TEST_IS_REGULAR);
  *number = 0;
  return *is_numbered ? find_numbered (location, number)
                      : g_steal_pointer (&path);
}

/* The numbers of one frame that is scaled are not those of the others. */
static void
keep_to_frame (GstStructure *quantity, GPtrArray *series, const gchar *field,
    gdouble usual)
{
  GstImagingSeries *one;
  gdouble number = usual;

  if (!gst_structure_get_double (quantity, field, &number) || number == usual)
    return;
  one = g_new0 (GstImagingSeries, 1);
  one->field = g_strdup (field);
  one->values = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_array_append_val (one->values, number);
  g_ptr_array_add (series, one);
}

static gchar *
note_incomplete (const gchar *path, guint64 n_frames)
{
  g_autofree gchar *name = gst_imaging_file_name (path);

  return g_strdup_printf (
      "\"%s\" was not completed and tells of %" G_GUINT64_FORMAT
      " frame%s. Unit and axes of later ones are taken to be the same, and "
      "numbers that change from frame to frame are not known for them.",
      name, n_frames, n_frames == 1 ? "" : "s");
}

gboolean
gst_imaging_sidecar_read (const gchar *path, const GstImagingNdArray *array,
    GstStructure *quantity, GPtrArray *series, GstImagingSidecar *sidecar)
{
  static const gchar *const keys[] = {"name", "unit"};
  static const gchar *const optics[] = {"refractive-index", "wavelength-first",
      "wavelength-last", "depth-scale", "cameras"};
  g_autoptr (GVariant) told = load (path, &sidecar->fault);
  g_autoptr (GVariant) of = NULL, start = NULL, frames = NULL, flags = NULL,
                       complete = NULL;
  gboolean is_complete;
  gint64 n_frames;

  g_ptr_array_set_free_func (series, free_series);
  if (!told)
    return FALSE;
  complete = get (told, "complete", "b");
  of = get (told, "quantity", "a{sv}");
  start = get (told, "first", "x");
  frames = get (told, "frames", "x");
  flags = get (told, "flags", "s");
  if (!of) /* a recording of samples that stand for nothing */
    return FALSE;
  is_complete = complete && g_variant_get_boolean (complete);
  n_frames = frames ? g_variant_get_int64 (frames) : 0;
  if (!complete || !start || n_frames < 1 || n_frames > MAX_FRAMES ||
      !is_about (told, array, n_frames, is_complete)) {
    g_autofree gchar *kind = gst_imaging_nd_array_describe (array);
    g_autofree gchar *what = g_strdup_printf (
        "tells of another type or shape than the %s of its file", kind);

    sidecar->fault = say_fault (path, what);
    return FALSE;
  }
  if (is_of_another (told, path))
    sidecar->fault = say_fault (path,
        "tells of another array: \"sha256\" is not that of its "
        "file, which was replaced");
  else
    sidecar->fault = read_cells (told, path, &sidecar->cells);
  if (sidecar->fault)
    return FALSE;
  sidecar->first = (guint64) MAX (g_variant_get_int64 (start), 0);
  read_texts (of, keys, keys, quantity);
  read_numbers (of, "scale", "scale", (guint64) n_frames, quantity, series);
  read_numbers (of, "offset", "offset", (guint64) n_frames, quantity, series);
  for (guint i = 0; i < G_N_ELEMENTS (optics); i++)
    read_numbers (
        of, optics[i], optics[i], (guint64) n_frames, quantity, series);
  read_axes (of, (guint64) n_frames, quantity, series);
  if (gst_structure_n_fields (quantity) == 0)
    return FALSE;
  if (!is_complete && n_frames == 1) {
    keep_to_frame (quantity, series, "scale", 1);
    keep_to_frame (quantity, series, "offset", 0);
  }
  if (!is_complete)
    sidecar->note = note_incomplete (path, (guint64) n_frames);
  sidecar->flags = flags ? g_variant_dup_string (flags, NULL) : NULL;
  return TRUE;
}
