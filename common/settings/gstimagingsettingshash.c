/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The settings in use as one hash, which results and recordings carry. */
#include "gstimagingsettings-private.h"

#include <string.h>
#include <unistd.h>

#include "files/gstimagingfile.h"

/* The first line of the text; another number where the text means something
 * else. */
#define FORMAT "gst-imaging-settings-v1"

/* --- content -------------------------------------------------------------- */

gchar *
gst_imaging_settings_hash_file (const gchar *location)
{
  gint fd =
      gst_imaging_file_open (location, GST_IMAGING_FILE_MAX_STREAM, NULL, NULL);
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree guchar *piece = g_malloc (1 << 16);
  gssize got;

  if (fd < 0) /* what a library opens: a folder, a URL */
    return g_compute_checksum_for_string (G_CHECKSUM_SHA256, location, -1);
  while ((got = read (fd, piece, 1 << 16)) > 0)
    g_checksum_update (sum, piece, got);
  close (fd);
  return g_strdup (g_checksum_get_string (sum));
}

gchar *
gst_imaging_settings_hash_numbers (const gdouble *numbers, gsize n)
{
  return g_compute_checksum_for_data (
      G_CHECKSUM_SHA256, (const guchar *) numbers, n * sizeof (*numbers));
}

/* --- the text ------------------------------------------------------------- */

static void
add_number (GString *text, gdouble number)
{
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];

  number += 0.0; /* -0 is 0 */
  g_string_append (text, g_ascii_dtostr (digits, sizeof (digits), number));
}

static void
add_array (GString *text, const GstImagingArray *array)
{
  for (guint i = 0; array && i < array->n; i++) {
    if (i > 0)
      g_string_append_c (text, ',');
    add_number (text, array->values[i]);
  }
}

static void
add_string (GString *text, const gchar *string)
{
  g_autofree gchar *escaped = g_strescape (string ? string : "", NULL);

  g_string_append (text, escaped);
}

/* @type: of the property */
static void
add_value (GString *text, const GstImagingSetting *setting,
    gconstpointer settings, GType type)
{
  gconstpointer m = (const guint8 *) settings + setting->offset;
  g_auto (GValue) value = G_VALUE_INIT;
  g_autofree gchar *plain = NULL;
  const GstImagingFile *file;

  switch (setting->kind) {
  case GST_IMAGING_KIND_DOUBLE:
    add_number (text, *(const gdouble *) m);
    break;
  case GST_IMAGING_KIND_ARRAY:
    add_array (text, *(GstImagingArray *const *) m);
    break;
  case GST_IMAGING_KIND_STRING:
    add_string (text, *(gchar *const *) m);
    break;
  case GST_IMAGING_KIND_PATH:
    file = *(GstImagingFile *const *) m;
    g_string_append (text, file && file->hash ? file->hash : "");
    break;
  case GST_IMAGING_KIND_FLAGS:
    g_string_append_printf (text, "%u", *(const guint *) m);
    break;
  default:
    g_value_init (&value, type);
    gst_imaging_setting_to_value (setting, settings, &value);
    plain = gst_value_serialize (&value);
    g_string_append (text, plain);
  }
}

static gboolean
counts (const GstImagingSetting *setting)
{
  return !(setting->groups & GST_IMAGING_NEUTRAL) &&
         setting->kind != GST_IMAGING_KIND_PATHS &&
         !(setting->kind == GST_IMAGING_KIND_PATH && !setting->load);
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp ((*(const GstImagingSetting *const *) a)->name,
      (*(const GstImagingSetting *const *) b)->name);
}

static gchar *
describe (GstImagingSettings *self)
{
  GObjectClass *klass = G_OBJECT_GET_CLASS (self->element);
  g_autoptr (GPtrArray) order = g_ptr_array_new ();
  GString *text = g_string_new (FORMAT " ");

  g_string_append (text, gst_imaging_origin_element (self->element));
  FOR_EACH (setting, self)
  if (counts (setting))
    g_ptr_array_add (order, (gpointer) setting);
  g_ptr_array_sort (order, compare_names);
  for (guint i = 0; i < order->len; i++) {
    const GstImagingSetting *setting = order->pdata[i];

    g_string_append_printf (text, "\n%s=", setting->name);
    add_value (text, setting, self->now,
        g_object_class_find_property (klass, setting->name)->value_type);
  }
  g_string_append_c (text, '\n');
  return g_string_free (text, FALSE);
}

/* --- the hash ------------------------------------------------------------- */

void
gst_imaging_settings_update_hash (GstImagingSettings *self)
{
  g_autofree gchar *text = describe (self);
  gchar *hash = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
  gboolean changed;

  GST_OBJECT_LOCK (self->element);
  changed = g_strcmp0 (hash, self->hash) != 0;
  g_free (self->hash);
  self->hash = hash;
  GST_OBJECT_UNLOCK (self->element);
  if (changed)
    g_object_notify (G_OBJECT (self->element), "settings-hash");
}

const gchar *
gst_imaging_settings_hash (GstImagingSettings *self)
{
  return self->hash;
}
