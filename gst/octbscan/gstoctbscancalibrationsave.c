/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscancalibration.h"

#include <string.h>

#include "files/gstimagingfile.h"

static const gchar *const file_keys[] = {
    "wavelengths", "chirp", "k-index", "phase"};

/* Names of files are relative to the folder of the calibration. */
static void
make_absolute (GKeyFile *file, const gchar *group, const gchar *location)
{
  g_autofree gchar *folder = g_path_get_dirname (location);
  g_autofree gchar *here = g_canonicalize_filename (folder, NULL);

  for (guint i = 0; i < G_N_ELEMENTS (file_keys); i++) {
    g_autofree gchar *name =
        g_key_file_get_string (file, group, file_keys[i], NULL);
    g_autofree gchar *path = name ? g_canonicalize_filename (name, here) : NULL;

    if (path)
      g_key_file_set_string (file, group, file_keys[i], path);
  }
}

static void
copy_group (GKeyFile *file, const gchar *from, const gchar *to)
{
  g_auto (GStrv) keys = g_key_file_get_keys (file, from, NULL, NULL);

  for (gchar **k = keys; k && *k; k++) {
    g_autofree gchar *value = g_key_file_get_value (file, from, *k, NULL);

    g_key_file_set_value (file, to, *k, value);
  }
}

/* Of which a camera has one. */
static const gchar *const map_keys[] = {"lambda-first", "lambda-last",
    "polynomial", "wavelengths", "chirp", "k-index", "k-polynomial"};

static void
set_key (
    GKeyFile *file, const gchar *group, const gchar *key, const gchar *value)
{
  gboolean is_map = strcmp (key, "k-polynomial") == 0;

  if (is_map && !*value)
    return; /* the camera keeps its map */
  for (guint i = 0; is_map && i < G_N_ELEMENTS (map_keys); i++)
    g_key_file_remove_key (file, group, map_keys[i], NULL);
  g_key_file_set_value (file, group, key, value);
}

/* One for all cameras, or one for each. */
static void
set_property (GKeyFile *file, const guint *order, const gchar *key,
    const gchar *text, guint n_cameras)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);
  guint n = g_strv_length (parts);
  gboolean has_one = g_key_file_has_group (file, "camera");
  gchar name[32];

  for (guint i = 0; i < n_cameras; i++) {
    g_snprintf (name, sizeof (name), "camera %u", order[i]);
    if (n == 1 && (has_one || !g_key_file_has_group (file, name)))
      g_snprintf (name, sizeof (name), "camera");
    else if (has_one)
      copy_group (file, "camera", name);
    set_key (file, name, key, g_strstrip (parts[n == 1 ? 0 : MIN (i, n - 1)]));
  }
  if (n > 1 && has_one)
    g_key_file_remove_group (file, "camera", NULL);
}

gboolean
gst_oct_bscan_calibration_save (const gchar *from, const GstImagingArray *order,
    const gchar *k_polynomial, const gchar *dispersion, guint n_cameras,
    guint samples, const gchar *to, GError **error)
{
  g_autoptr (GKeyFile) file = NULL;
  g_auto (GStrv) groups = NULL;
  g_autofree gchar *text = NULL;
  guint turns[IMK_OCTBSCAN_MAX_CAMERAS];
  gsize size;
  ImkError why;

  if (!from && !k_polynomial && !dispersion) {
    g_set_error_literal (error, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_NOT_FOUND,
        "there is none. Set calibration, k-polynomial or dispersion, or emit "
        "calibrate-mirror or estimate-dispersion before.");
    return FALSE;
  }
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
  if (k_polynomial)
    set_property (file, turns, "k-polynomial", k_polynomial, n_cameras);
  if (dispersion)
    set_property (file, turns, "dispersion", dispersion, n_cameras);
  g_strfreev (groups);
  groups = g_key_file_get_groups (file, NULL); /* they may be others now */
  for (gchar **g = groups; *g && samples > 0; g++)
    g_key_file_set_integer (file, *g, "samples", (gint) samples);
  text = g_key_file_to_data (file, &size, NULL);
  return gst_imaging_file_save (to, text, size, error);
}
