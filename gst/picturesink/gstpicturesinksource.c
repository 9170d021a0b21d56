/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesinksource.h"

#include <gst/base/gstbasesrc.h>
#include <unistd.h>

#include "gstimagingfile.h"

/* Bytes of a file that is read for its hash: a few seconds. */
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
write_file (GstPictureSinkJson *json, const gchar *location, gboolean hash)
{
  g_autofree gchar *path = g_canonicalize_filename (location, NULL);
  guint64 size = 0;
  gint fd =
      gst_imaging_file_open (path, GST_IMAGING_FILE_MAX_STREAM, &size, NULL);

  gst_picture_sink_json_text (json, "location", path);
  if (fd < 0) /* a folder or a pattern */
    return;
  gst_picture_sink_json_integer (json, "size", size);
  if (hash && size <= MAX_HASHED) {
    g_autofree gchar *text = hash_of (fd);

    if (text)
      gst_picture_sink_json_text (json, "sha256", text);
  }
  close (fd);
}

void
gst_picture_sink_source_write (GstPictureSinkJson *json, GstElement *element,
    const gchar *name, const gchar *location, gboolean hash)
{
  gboolean is_live = GST_IS_BASE_SRC (element) &&
                     gst_base_src_is_live (GST_BASE_SRC (element));

  gst_picture_sink_json_open (json, NULL, '{');
  gst_picture_sink_json_text (json, "element", name);
  gst_picture_sink_json_text (json, "kind",
      location  ? "file"
      : is_live ? "live"
                : "generated");
  if (location)
    write_file (json, location, hash);
  gst_picture_sink_json_close (json, '}');
}
