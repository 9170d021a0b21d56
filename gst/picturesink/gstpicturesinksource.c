/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesinksource.h"

#include <gst/base/gstbasesrc.h>
#include <unistd.h>

#include "gstimagingfile.h"
#include "gstimagingformats.h"

/* Bytes of files that are read for their hashes: a few seconds. */
#define MAX_HASHED (G_GUINT64_CONSTANT (1) << 30)
#define PIECE (1 << 20)

/* Returns: (transfer full) (nullable): SHA-256 */
static gchar *
hash_of (gint fd)
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree guint8 *bytes = g_malloc (PIECE);
  gssize n;

  while ((n = read (fd, bytes, PIECE)) > 0)
    g_checksum_update (sum, bytes, n);
  return n == 0 ? g_strdup (g_checksum_get_string (sum)) : NULL;
}

static void
write_file (GstPictureSinkJson *json, const gchar *location, guint64 *budget)
{
  g_autofree gchar *path = g_canonicalize_filename (location, NULL);
  guint64 size = 0;
  gint fd =
      gst_imaging_file_open (path, GST_IMAGING_FILE_MAX_STREAM, &size, NULL);

  gst_picture_sink_json_text (json, "location", path);
  if (fd < 0) /* a folder or a pattern */
    return;
  gst_picture_sink_json_integer (json, "size", size);
  if (size <= *budget) {
    g_autofree gchar *text = hash_of (fd);

    *budget -= size;
    if (text)
      gst_picture_sink_json_text (json, "sha256", text);
  }
  close (fd);
}

static void
add_file (GPtrArray *files, const GValue *value)
{
  const gchar *path =
      G_VALUE_HOLDS_STRING (value) ? g_value_get_string (value) : NULL;

  if (path && *path)
    g_ptr_array_add (files, g_strdup (path));
}

GPtrArray *
gst_picture_sink_source_get_files (GstElement *element)
{
  static const gchar *const names[] = {"location", "locations"};
  GPtrArray *found = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    GParamSpec *pspec =
        g_object_class_find_property (G_OBJECT_GET_CLASS (element), names[i]);
    GValue value = G_VALUE_INIT;

    if (!pspec || !(pspec->flags & G_PARAM_READABLE))
      continue;
    g_value_init (&value, pspec->value_type);
    g_object_get_property (G_OBJECT (element), names[i], &value);
    add_file (found, &value);
    for (guint n = 0; GST_VALUE_HOLDS_ARRAY (&value) &&
                      n < gst_value_array_get_size (&value);
         n++)
      add_file (found, gst_value_array_get_value (&value, n));
    g_value_unset (&value);
  }
  return found;
}

static void
write_source (GstPictureSinkJson *json, const gchar *name, const gchar *kind,
    const gchar *location, guint64 *budget)
{
  g_autofree gchar *settings =
      location ? gst_imaging_formats_find_settings (location) : NULL;

  gst_picture_sink_json_open (json, NULL, '{');
  gst_picture_sink_json_text (json, "element", name);
  gst_picture_sink_json_text (json, "kind", kind);
  if (location)
    write_file (json, location, budget);
  if (settings) { /* another layout makes other frames of the same bytes */
    gst_picture_sink_json_open (json, "settings", '{');
    write_file (json, settings, budget);
    gst_picture_sink_json_close (json, '}');
  }
  gst_picture_sink_json_close (json, '}');
}

void
gst_picture_sink_source_write (GstPictureSinkJson *json, GstElement *element,
    const gchar *name, gboolean hash)
{
  g_autoptr (GPtrArray) files = gst_picture_sink_source_get_files (element);
  gboolean is_live = GST_IS_BASE_SRC (element) &&
                     gst_base_src_is_live (GST_BASE_SRC (element));
  guint64 budget = hash ? MAX_HASHED : 0;

  for (guint i = 0; i < files->len; i++)
    write_source (json, name, "file", g_ptr_array_index (files, i), &budget);
  if (files->len == 0)
    write_source (json, name, is_live ? "live" : "generated", NULL, &budget);
}
