/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscancalibration.h"

#include "files/gstimagingfile.h"

static const gchar *const file_keys[] = {
    "wavelengths", "chirp", "k-index", "phase"};

/* Names of files are relative to the folder of the calibration. */
static void
make_absolute (GKeyFile *file, const gchar *group, const gchar *location)
{
  gchar *folder = g_path_get_dirname (location);
  gchar *here = g_canonicalize_filename (folder, NULL);

  for (guint i = 0; i < G_N_ELEMENTS (file_keys); i++) {
    gchar *name = g_key_file_get_string (file, group, file_keys[i], NULL);
    gchar *path = name ? g_canonicalize_filename (name, here) : NULL;

    if (path)
      g_key_file_set_string (file, group, file_keys[i], path);
    g_free (path);
    g_free (name);
  }
  g_free (here);
  g_free (folder);
}

static void
copy_group (GKeyFile *file, const gchar *from, const gchar *to)
{
  gchar **keys = g_key_file_get_keys (file, from, NULL, NULL);

  for (gchar **k = keys; k && *k; k++) {
    gchar *value = g_key_file_get_value (file, from, *k, NULL);

    g_key_file_set_value (file, to, *k, value);
    g_free (value);
  }
  g_strfreev (keys);
}

/* One for all cameras, or one for each. */
static void
set_dispersion (GKeyFile *file, const guint *order, const gchar *dispersion,
    guint n_cameras)
{
  gchar **parts = g_strsplit (dispersion, ",", -1);
  guint n = g_strv_length (parts);
  gboolean has_one = g_key_file_has_group (file, "camera");
  gchar name[32];

  for (guint i = 0; i < n_cameras; i++) {
    g_snprintf (name, sizeof (name), "camera %u", order[i]);
    if (n == 1 && (has_one || !g_key_file_has_group (file, name)))
      g_snprintf (name, sizeof (name), "camera");
    else if (has_one)
      copy_group (file, "camera", name);
    g_key_file_set_value (file, name, "dispersion",
        g_strstrip (parts[n == 1 ? 0 : MIN (i, n - 1)]));
  }
  if (n > 1 && has_one)
    g_key_file_remove_group (file, "camera", NULL);
  g_strfreev (parts);
}

gboolean
gst_oct_bscan_calibration_save (const gchar *from, const GstImagingArray *order,
    const gchar *dispersion, guint n_cameras, const gchar *to, GError **error)
{
  g_autoptr (GKeyFile) file = NULL;
  g_auto (GStrv) groups = NULL;
  g_autofree gchar *text = NULL;
  guint turns[IMK_OCTBSCAN_MAX_CAMERAS];
  gsize size;
  ImkError why;

  if (!gst_oct_bscan_calibration_order (order, n_cameras, turns, &why)) {
    g_set_error_literal (
        error, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_INVALID_VALUE, why.message);
    return FALSE;
  }
  file = from ? gst_oct_bscan_calibration_read (
                    from, G_KEY_FILE_KEEP_COMMENTS, error)
              : g_key_file_new ();
  if (!file)
    return FALSE;
  groups = g_key_file_get_groups (file, NULL);
  for (gchar **g = groups; *g; g++)
    make_absolute (file, *g, from);
  if (dispersion)
    set_dispersion (file, turns, dispersion, n_cameras);
  text = g_key_file_to_data (file, &size, NULL);
  return gst_imaging_file_save (to, text, size, error);
}
