/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One value of an element's settings: copied, compared, read and written. */
#include "gstimagingsettings-private.h"

#include <string.h>

#include "gstimagingndarray.h"

static gpointer
member (const GstImagingSetting *self, gconstpointer settings)
{
  return (guint8 *) settings + self->offset;
}

static gpointer *
pointer (const GstImagingSetting *self, gconstpointer settings)
{
  return member (self, settings);
}

/* --- values that are shared ----------------------------------------------- */

GstImagingFile *
gst_imaging_setting_file_new (
    const gchar *location, gpointer data, GDestroyNotify free_data, gchar *hash)
{
  static gint n_made; /* atomic */
  GstImagingFile *file = g_atomic_rc_box_new0 (GstImagingFile);

  file->serial = (guint) g_atomic_int_add (&n_made, 1) + 1;
  file->location = g_strdup (location);
  file->data = data;
  file->free_data = free_data;
  file->hash = hash;
  return file;
}

static void
file_clear (gpointer data)
{
  GstImagingFile *file = data;

  if (file->data && file->free_data)
    file->free_data (file->data);
  g_free ((gchar *) file->location);
  g_free ((gchar *) file->hash);
}

static GstImagingFile *
read_file (const GstImagingSetting *self, const gchar *location)
{
  GstImagingFile *file =
      gst_imaging_setting_file_new (location, NULL, self->free_data, NULL);

  if (!self->load)
    return file;
  file->data = self->load (self->name, location, &file->error);
  if (file->data)
    file->hash = gst_imaging_settings_hash_file (location);
  else
    file->status = IMK_ERROR_FILE;
  return file;
}

gpointer
gst_imaging_setting_load_array (
    const gchar *property, const gchar *location, ImkError *error)
{
  g_autoptr (GError) why = NULL;
  GstImagingNdArray *array = gst_imaging_nd_array_load (location, &why);

  if (!array)
    imk_error_set (error, IMK_ERROR_FILE, "%s: %s", property, why->message);
  return array;
}

static GstImagingArray *
array_from_value (const GValue *value)
{
  guint n = gst_value_array_get_size (value);
  GstImagingArray *array;

  if (n == 0)
    return NULL;
  array =
      g_atomic_rc_box_alloc (sizeof (GstImagingArray) + n * sizeof (gdouble));
  array->n = n;
  for (guint i = 0; i < n; i++) {
    const GValue *v = gst_value_array_get_value (value, i);

    array->values[i] =
        G_VALUE_HOLDS_INT (v) ? g_value_get_int (v) : g_value_get_double (v);
  }
  return array;
}

static void
array_to_value (
    const GstImagingSetting *self, const GstImagingArray *array, GValue *value)
{
  g_value_reset (value);
  for (guint i = 0; array && i < array->n; i++) {
    GValue v = G_VALUE_INIT;

    g_value_init (&v, self->integers ? G_TYPE_INT : G_TYPE_DOUBLE);
    if (self->integers)
      g_value_set_int (&v, (gint) array->values[i]);
    else
      g_value_set_double (&v, array->values[i]);
    gst_value_array_append_and_take_value (value, &v);
  }
}

static gchar **
paths_from_value (const GValue *value)
{
  guint n = gst_value_array_get_size (value);
  gchar **paths = n > 0 ? g_new0 (gchar *, n + 1) : NULL;

  for (guint i = 0; i < n; i++) {
    const gchar *path =
        g_value_get_string (gst_value_array_get_value (value, i));

    paths[i] = g_strdup (path ? path : "");
  }
  return paths;
}

static void
paths_to_value (gchar **paths, GValue *value)
{
  g_value_reset (value);
  for (; paths && *paths; paths++) {
    GValue v = G_VALUE_INIT;

    g_value_init (&v, G_TYPE_STRING);
    g_value_set_string (&v, *paths);
    gst_value_array_append_and_take_value (value, &v);
  }
}

static void
unref_value (const GstImagingSetting *self, gpointer value)
{
  if (!value)
    return;
  switch (self->kind) {
  case GST_IMAGING_KIND_STRING:
    g_ref_string_release (value);
    break;
  case GST_IMAGING_KIND_PATH:
    g_atomic_rc_box_release_full (value, file_clear);
    break;
  case GST_IMAGING_KIND_PATHS:
    g_strfreev (value);
    break;
  default:
    g_atomic_rc_box_release (value);
  }
}

static gboolean
is_shared (const GstImagingSetting *self)
{
  return self->kind == GST_IMAGING_KIND_STRING ||
         self->kind == GST_IMAGING_KIND_PATH ||
         self->kind == GST_IMAGING_KIND_ARRAY ||
         self->kind == GST_IMAGING_KIND_PATHS;
}

static gpointer
ref_value (const GstImagingSetting *self, gpointer value)
{
  if (!value)
    return NULL;
  switch (self->kind) {
  case GST_IMAGING_KIND_STRING:
    return g_ref_string_acquire (value);
  case GST_IMAGING_KIND_PATHS:
    return g_strdupv (value);
  default:
    return g_atomic_rc_box_acquire (value);
  }
}

/* Takes @value over. */
static void
put_shared (const GstImagingSetting *self, gpointer settings, gpointer value)
{
  unref_value (self, *pointer (self, settings));
  *pointer (self, settings) = value;
}

/* --- copies --------------------------------------------------------------- */

void
gst_imaging_setting_copy (
    const GstImagingSetting *self, gpointer to, gconstpointer from)
{
  if (is_shared (self))
    put_shared (self, to, ref_value (self, *pointer (self, from)));
  else
    memcpy (member (self, to), member (self, from), self->size);
}

void
gst_imaging_setting_clear (const GstImagingSetting *self, gpointer settings)
{
  if (is_shared (self))
    put_shared (self, settings, NULL);
}

gboolean
gst_imaging_setting_is_equal (
    const GstImagingSetting *self, gconstpointer a, gconstpointer b)
{
  const GstImagingArray *left, *right;

  if (self->kind == GST_IMAGING_KIND_STRING)
    return g_strcmp0 (*pointer (self, a), *pointer (self, b)) == 0;
  if (self->kind == GST_IMAGING_KIND_PATHS) {
    const gchar *const none[] = {NULL};
    const gchar *const *old = *pointer (self, a), *const *now =
                                                      *pointer (self, b);

    return g_strv_equal (old ? old : none, now ? now : none);
  }
  if (self->kind != GST_IMAGING_KIND_ARRAY)
    return memcmp (member (self, a), member (self, b), self->size) == 0;
  left = *pointer (self, a);
  right = *pointer (self, b);
  if (!left || !right)
    return left == right;
  return left->n == right->n &&
         memcmp (left->values, right->values, left->n * sizeof (gdouble)) == 0;
}

gboolean
gst_imaging_setting_retry (const GstImagingSetting *self, gpointer settings)
{
  GstImagingFile *file = *pointer (self, settings);

  if (!file || file->status == IMK_OK)
    return FALSE;
  file = read_file (self, file->location);
  put_shared (self, settings, file);
  return TRUE;
}

/* --- GValues -------------------------------------------------------------- */

void
gst_imaging_setting_from_value (
    const GstImagingSetting *self, gpointer settings, const GValue *value)
{
  gpointer m = member (self, settings);
  const gchar *text;

  switch (self->kind) {
  case GST_IMAGING_KIND_BOOLEAN:
    if (self->size == sizeof (bool))
      *(bool *) m = g_value_get_boolean (value);
    else
      *(gboolean *) m = g_value_get_boolean (value);
    break;
  case GST_IMAGING_KIND_INT:
    *(gint *) m = g_value_get_int (value);
    break;
  case GST_IMAGING_KIND_UINT:
    *(guint *) m = g_value_get_uint (value);
    break;
  case GST_IMAGING_KIND_UINT64:
    *(guint64 *) m = g_value_get_uint64 (value);
    break;
  case GST_IMAGING_KIND_DOUBLE:
    *(gdouble *) m = g_value_get_double (value);
    break;
  case GST_IMAGING_KIND_ENUM:
    *(gint *) m = g_value_get_enum (value);
    break;
  case GST_IMAGING_KIND_FLAGS:
    *(guint *) m = g_value_get_flags (value);
    break;
  case GST_IMAGING_KIND_FRACTION:
    *(GstImagingFraction *) m =
        (GstImagingFraction){gst_value_get_fraction_numerator (value),
            gst_value_get_fraction_denominator (value)};
    break;
  case GST_IMAGING_KIND_STRING: /* gst-launch-1.0 cannot write NULL */
    text = g_value_get_string (value);
    put_shared (self, settings, text && *text ? g_ref_string_new (text) : NULL);
    break;
  case GST_IMAGING_KIND_PATH:
    text = g_value_get_string (value);
    put_shared (self, settings, text && *text ? read_file (self, text) : NULL);
    break;
  case GST_IMAGING_KIND_ARRAY:
    put_shared (self, settings, array_from_value (value));
    break;
  case GST_IMAGING_KIND_PATHS:
    put_shared (self, settings, paths_from_value (value));
    break;
  }
}

void
gst_imaging_setting_to_value (
    const GstImagingSetting *self, gconstpointer settings, GValue *value)
{
  gconstpointer m = member (self, settings);

  switch (self->kind) {
  case GST_IMAGING_KIND_BOOLEAN:
    g_value_set_boolean (value, self->size == sizeof (bool)
                                    ? *(const bool *) m
                                    : *(const gboolean *) m);
    break;
  case GST_IMAGING_KIND_INT:
    g_value_set_int (value, *(const gint *) m);
    break;
  case GST_IMAGING_KIND_UINT:
    g_value_set_uint (value, *(const guint *) m);
    break;
  case GST_IMAGING_KIND_UINT64:
    g_value_set_uint64 (value, *(const guint64 *) m);
    break;
  case GST_IMAGING_KIND_DOUBLE:
    g_value_set_double (value, *(const gdouble *) member (self, settings));
    break;
  case GST_IMAGING_KIND_ENUM:
    g_value_set_enum (value, *(const gint *) m);
    break;
  case GST_IMAGING_KIND_FLAGS:
    g_value_set_flags (value, *(const guint *) m);
    break;
  case GST_IMAGING_KIND_FRACTION:
    gst_value_set_fraction (value, ((const GstImagingFraction *) m)->n,
        ((const GstImagingFraction *) m)->d);
    break;
  case GST_IMAGING_KIND_STRING:
    g_value_set_string (value, *pointer (self, settings));
    break;
  case GST_IMAGING_KIND_PATH:
    g_value_set_string (
        value, gst_imaging_setting_file_location (
                   (GstImagingFile *) *pointer (self, settings)));
    break;
  case GST_IMAGING_KIND_ARRAY:
    array_to_value (self, *pointer (self, settings), value);
    break;
  case GST_IMAGING_KIND_PATHS:
    paths_to_value (*pointer (self, settings), value);
    break;
  }
}

gchar *
gst_imaging_setting_to_text (
    const GstImagingSetting *self, gconstpointer settings, GType type)
{
  gchar number[G_ASCII_DTOSTR_BUF_SIZE];
  g_auto (GValue) value = G_VALUE_INIT;
  g_autofree gchar *text = NULL;

  g_value_init (&value, type);
  gst_imaging_setting_to_value (self, settings, &value);
  if (G_VALUE_HOLDS_STRING (&value))
    text = g_strdup_printf ("\"%s\"",
        g_value_get_string (&value) ? g_value_get_string (&value) : "");
  else if (G_VALUE_HOLDS_DOUBLE (&value))
    text = g_strdup (g_ascii_formatd (
        number, sizeof (number), "%g", g_value_get_double (&value)));
  else
    text = gst_value_serialize (&value);
  return g_strdup_printf ("%s=%s", self->name, text);
}
