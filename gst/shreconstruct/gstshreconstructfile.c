/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructfile.h"

#include "gstimagingarrayfile.h"

static const struct {
  const gchar *property, *name;
} images[] = {
    {"matrix-location", "CONTROL_MATRIX"},
    {"matrix-location", "MEASUREMENTS_TO_MODES"},
    {"modes-location", "MODES_TO_COMMANDS"},
    {"interaction-location", "INTERACTION_MATRIX"},
    {"reference-location", "REF_COMMANDS"},
    {"slope-offsets-location", "REF_MEASUREMENTS"},
};

/* Returns: (nullable): "0: SCI f32 [2, 3]; 1: ERR f32 [2, 3]"; NULL for a file
 * with one image, or one that cannot be read */
static gchar *
describe (const gchar *location)
{
  g_autoptr (GstImagingArrayReader) reader =
      gst_imaging_array_reader_new (location, G_MAXUINT64, NULL);

  return reader ? gst_imaging_array_reader_describe_parts (reader) : NULL;
}

/* @parts: as describe (). Returns: the number of the one with @name, or -1 */
static gint
find_name (gchar **parts, const gchar *name)
{
  for (gint i = 0; parts[i]; i++) {
    g_autofree gchar *begin = g_strdup_printf ("%d: %s ", i, name);

    if (g_str_has_prefix (parts[i], begin))
      return i;
  }
  return -1;
}

gint
gst_sh_reconstruct_find_part (const gchar *location, const gchar *name)
{
  g_autofree gchar *all = describe (location);
  g_auto (GStrv) parts = all ? g_strsplit (all, "; ", -1) : NULL;

  return parts ? find_name (parts, name) : -1;
}

gboolean
gst_sh_reconstruct_find_image (const gchar *property, const gchar *location,
    const gchar **name, gint *part, ImkError *error)
{
  g_autofree gchar *all = describe (location);
  g_auto (GStrv) parts = all ? g_strsplit (all, "; ", -1) : NULL;

  const gchar *expected = NULL;

  *part = -1;
  *name = NULL;
  if (!parts)
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (images); i++) {
    if (!g_str_equal (images[i].property, property))
      continue;
    *name = images[i].name;
    *part = find_name (parts, *name);
    if (*part >= 0)
      return TRUE;
    expected = expected ? expected : *name;
  }
  imk_error_set (error, IMK_ERROR_FILE,
      "%s \"%s\" has %u images (%s)%s%s. Make a file of one of them with "
      "`gst-imaging convert FILE ONE.npy --part=NUMBER`.",
      property, location, g_strv_length (parts), all,
      expected ? ", none of them named " : "", expected ? expected : "");
  return FALSE;
}

gpointer
gst_sh_reconstruct_array_load (
    const gchar *property, const gchar *location, ImkError *error)
{
  const gchar *name;
  gint part;
  GstShCentroidArray *array = NULL;

  if (gst_sh_reconstruct_find_image (property, location, &name, &part, error))
    array = gst_sh_centroid_array_load_part (property, location, part, error);
  if (array &&
      !gst_sh_centroid_array_check_finite (array, property, location, error))
    g_clear_pointer (&array, g_free);
  return array;
}
