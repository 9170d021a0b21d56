/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructdestination.h"

#include <string.h>

#include "gstimagingfile.h"
#include "gstimagingsidecar.h"

static gboolean
is_same_file (const gchar *a, const gchar *b)
{
  g_autofree gchar *path_a = g_canonicalize_filename (a, NULL);
  g_autofree gchar *path_b = g_canonicalize_filename (b, NULL);
  GStatBuf of_a, of_b;

  if (g_str_equal (path_a, path_b))
    return TRUE;
  return g_stat (a, &of_a) == 0 && g_stat (b, &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

gboolean
gst_sh_reconstruct_destination_check (
    const GstShReconstructSettings *s, const gchar *location, GError **error)
{
  const GstImagingSettingsTable *table = &gst_sh_reconstruct_table;

  for (guint i = 0; i < table->n_settings; i++) {
    const GstImagingSetting *setting = &table->settings[i];
    const GstImagingFile *file =
        setting->kind == GST_IMAGING_KIND_PATH
            ? G_STRUCT_MEMBER (GstImagingFile *, s, setting->offset)
            : NULL;

    if (!file || !is_same_file (location, file->location))
      continue;
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
        "\"%s\" is the file of %s, which the loop uses. Choose another file "
        "for the calibration, or leave %s empty.",
        location, setting->name, setting->name);
    return FALSE;
  }
  return TRUE;
}

gboolean
gst_sh_reconstruct_destination_is_calibration (const gchar *location)
{
  g_autofree gchar *path = g_strconcat (location, ".json", NULL);
  gsize size;
  g_autofree gchar *text =
      gst_imaging_file_load (path, GST_IMAGING_FILE_MAX_SIDECAR, &size, NULL);

  return text && strstr (text, GST_IMAGING_SIDECAR_SCHEMA) &&
         strstr (text, "\"calibration\"");
}

gboolean
gst_sh_reconstruct_destination_check_new (const gchar *location, GError **error)
{
  if (!g_file_test (location, G_FILE_TEST_EXISTS))
    return TRUE;
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
      "\"%s\" is there, and is not of an earlier calibration. Choose another "
      "file, or remove this one.",
      location);
  return FALSE;
}

GstShReconstructFileState
gst_sh_reconstruct_destination_get_state (const gchar *location)
{
  GstShReconstructFileState self = {0};

  self.is_there = g_stat (location, &self.stat) == 0;
  return self;
}

gboolean
gst_sh_reconstruct_destination_check_since (
    const GstShReconstructFileState *before, const gchar *location,
    GError **error)
{
  const GstShReconstructFileState now =
      gst_sh_reconstruct_destination_get_state (location);
  const GStatBuf *a = &before->stat, *b = &now.stat;

  if (!now.is_there ||
      (before->is_there && a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
          a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
          a->st_mtim.tv_nsec == b->st_mtim.tv_nsec))
    return TRUE;
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
      "\"%s\" was written during the calibration, perhaps by another one. It "
      "stays as it is. Emit save-interaction with another file.",
      location);
  return FALSE;
}
