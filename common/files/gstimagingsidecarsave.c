/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The .json beside an array that an element writes. */
#include "gstimagingsidecar.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "gstimagingfile.h"
#include "gstimagingjson.h"

gchar *
gst_imaging_sidecar_digest (const gchar *location)
{
  enum { SIZE = 1 << 16 };
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree guint8 *bytes = g_malloc (SIZE);
  const gint fd =
      gst_imaging_file_open (location, GST_IMAGING_FILE_MAX_STREAM, NULL, NULL);
  gssize n = -1;

  if (fd < 0)
    return NULL;
  while ((n = read (fd, bytes, SIZE)) > 0 || (n < 0 && errno == EINTR))
    g_checksum_update (sum, bytes, MAX (n, 0));
  close (fd);
  return n < 0 ? NULL : g_strdup (g_checksum_get_string (sum));
}

static void
append_axes (GString *json, const gchar *const *axes)
{
  g_string_append (json, "\"axes\": [");
  for (guint i = 0; axes[i]; i++) {
    g_string_append (json, i > 0 ? ", {\"name\": " : "{\"name\": ");
    gst_imaging_json_append_text (json, axes[i]);
    g_string_append (json, ", \"unit\": \"\", \"step\": 1, \"origin\": 0}");
  }
  g_string_append (json, "]");
}

static void
append_cells (GString *json, const guint32 *row_column, guint n_cells)
{
  g_string_append (json, ",\n \"row-column\": [");
  for (guint i = 0; i < n_cells; i++)
    g_string_append_printf (json, "%s[%u, %u]", i > 0 ? ", " : "",
        row_column[2 * i], row_column[2 * i + 1]);
  g_string_append (json, "]");
}

typedef enum { NONE, OURS, OTHER } Owner;

static Owner
find_owner (const gchar *path)
{
  gsize size = 0;
  g_autofree gchar *text =
      gst_imaging_file_load (path, GST_IMAGING_FILE_MAX_SIDECAR, &size, NULL);

  if (!text)
    return g_file_test (path, G_FILE_TEST_EXISTS) ? OTHER : NONE;
  return size == 0 || strstr (text, GST_IMAGING_SIDECAR_SCHEMA) ? OURS : OTHER;
}

gboolean
gst_imaging_sidecar_check_save (const gchar *location, GError **error)
{
  g_autofree gchar *path = g_strconcat (location, ".json", NULL);
  /* as g_file_set_contents () names it first */
  g_autofree gchar *longest = g_strconcat (path, ".XXXXXX", NULL);
  GStatBuf info;

  if (g_stat (longest, &info) < 0 && errno == ENAMETOOLONG) {
    g_set_error (error, GST_IMAGING_FILE_ERROR, GST_IMAGING_FILE_ERROR_WRITE,
        "\"%s\" cannot be written: %s.", path, g_strerror (ENAMETOOLONG));
    return FALSE;
  }
  if (find_owner (path) != OTHER)
    return TRUE;
  g_set_error (error, GST_IMAGING_FILE_ERROR, GST_IMAGING_FILE_ERROR_WRITE,
      "\"%s\" is there and not of gst-imaging, which writes a file of this name "
      "beside the array. Move it, or choose another name for the array.",
      path);
  return FALSE;
}

gboolean
gst_imaging_sidecar_save (const gchar *location, const GstImagingNdArray *array,
    const gchar *const *axes, const guint32 *row_column, guint n_cells,
    const gchar *more, GError **error)
{
  g_autofree gchar *path = g_strconcat (location, ".json", NULL);
  g_autofree gchar *name = g_path_get_basename (location);
  g_autofree gchar *digest = gst_imaging_sidecar_digest (location);
  g_autoptr (GString) json =
      g_string_new ("{\"schema\": \"" GST_IMAGING_SIDECAR_SCHEMA "\",\n"
                    " \"file\": ");

  if (!gst_imaging_sidecar_check_save (location, error))
    return FALSE;
  gst_imaging_json_append_text (json, name);
  g_string_append_printf (json,
      ",\n \"first\": 0, \"frames\": 1, \"complete\": true, \"type\": \"%s\", "
      "\"shape\": [",
      gst_imaging_nd_array_type_name (array->type));
  for (guint i = 0; i < array->n_dims; i++)
    g_string_append_printf (
        json, "%s%" G_GUINT64_FORMAT, i > 0 ? ", " : "", array->dims[i]);
  g_string_append (json, "],\n \"quantity\": {\"name\": ");
  gst_imaging_json_append_text (json, name);
  g_string_append (json, ", \"unit\": \"\", \"scale\": 1, \"offset\": 0, ");
  append_axes (json, axes);
  g_string_append (json, "}");
  if (row_column)
    append_cells (json, row_column, n_cells);
  if (more)
    g_string_append_printf (json, ",\n %s", more);
  if (digest)
    g_string_append_printf (json, ",\n \"sha256\": \"%s\"", digest);
  g_string_append (json, "}\n");
  return g_file_set_contents (path, json->str, (gssize) json->len, error);
}

void
gst_imaging_sidecar_remove (const gchar *location)
{
  g_autofree gchar *path = g_strconcat (location, ".json", NULL);

  if (find_owner (path) == OURS)
    g_unlink (path);
}
