/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Properties are set and read: one at a time, several by the property settings,
 * and files that the element made. */
#include "gstimagingsettings-private.h"

/* Before they count, and without the object lock: it may take a while. */
static void
prepare (GstImagingSettings *self, gconstpointer staged, const gboolean *given)
{
  gpointer candidate;
  guint groups = 0;

  if (!self->table->prepare)
    return;
  candidate = gst_imaging_settings_copy (self);
  for (guint i = 0; i < self->table->n_settings; i++)
    if (given[i]) {
      groups |= self->table->settings[i].groups;
      gst_imaging_setting_copy (&self->table->settings[i], candidate, staged);
    }
  if (gst_imaging_settings_check_files (self, candidate, NULL) == IMK_OK)
    self->table->prepare (self->element, candidate, groups);
  else
    gst_imaging_settings_free_copy (self, candidate);
}

/* Sets the given values of @staged together. */
static void
put (GstImagingSettings *self, gpointer staged, const gboolean *given)
{
  g_autoptr (GString) late = g_string_new (NULL);

  prepare (self, staged, given);
  GST_OBJECT_LOCK (self->element);
  for (guint i = 0; i < self->table->n_settings; i++) {
    const GstImagingSetting *setting = &self->table->settings[i];

    if (!given[i])
      continue;
    if (setting->when == GST_IMAGING_WHEN_NEXT_START &&
        GST_STATE (self->element) > GST_STATE_READY &&
        !gst_imaging_setting_is_equal (setting, self->wanted, staged))
      g_string_append_printf (
          late, "%s%s", late->len ? ", " : "", setting->name);
    gst_imaging_setting_copy (setting, self->wanted, staged);
    self->set_at[i] = (guint) g_atomic_int_get (&self->serial) + 1;
  }
  g_atomic_int_inc (&self->serial);
  GST_OBJECT_UNLOCK (self->element);
  if (late->len) {
    g_string_append (late,
        " was set after the start; it counts from the next start on. Set it in "
        "the state NULL or READY.");
    gst_imaging_settings_warn (self, late->str);
  }
}

/* @staged: (transfer full) */
static void
put_at (GstImagingSettings *self, gsize index, gpointer staged)
{
  g_autofree gboolean *given = g_new0 (gboolean, self->table->n_settings);

  given[index] = TRUE;
  put (self, staged, given);
  gst_imaging_setting_clear (&self->table->settings[index], staged);
  g_free (staged);
}

static void
put_one (GstImagingSettings *self, guint index, const GValue *value)
{
  gpointer staged = g_malloc0 (self->table->size);

  gst_imaging_setting_from_value (&self->table->settings[index], staged, value);
  put_at (self, index, staged);
}

void
gst_imaging_settings_put_file (GstImagingSettings *self, const gchar *name,
    const gchar *location, gpointer data, const gdouble *numbers, gsize n)
{
  const GstImagingSetting *setting =
      gst_imaging_settings_table_find (self->table, name);
  gpointer staged;

  g_return_if_fail (setting != NULL);
  staged = g_malloc0 (self->table->size);
  G_STRUCT_MEMBER (GstImagingFile *, staged, setting->offset) =
      gst_imaging_setting_file_new (location, data, setting->free_data,
          location ? gst_imaging_settings_hash_file (location)
                   : gst_imaging_settings_hash_numbers (numbers, n));
  put_at (self, (gsize) (setting - self->table->settings), staged);
}

/* @value: of the type of the property, or one that can be converted
 * Returns: FALSE with a sentence in @why */
static gboolean
stage_field (GstImagingSettings *self, const gchar *name, const GValue *value,
    gpointer staged, gboolean *given, gchar **why)
{
  GObjectClass *klass = G_OBJECT_GET_CLASS (self->element);
  const GstImagingSetting *setting =
      gst_imaging_settings_table_find (self->table, name);
  GParamSpec *spec = g_object_class_find_property (klass, name);
  g_auto (GValue) converted = G_VALUE_INIT;
  gboolean ok;

  if (!setting) {
    *why = g_strdup_printf (
        "settings has \"%s\", which is not a property that settings can change.",
        name);
    return FALSE;
  }
  g_value_init (&converted, spec->value_type);
  ok = G_VALUE_HOLDS_STRING (value) && spec->value_type != G_TYPE_STRING
           ? gst_value_deserialize (&converted, g_value_get_string (value))
           : g_value_transform (value, &converted);
  if (ok && g_param_value_validate (spec, &converted))
    ok = FALSE; /* it was out of range */
  if (ok) {
    gst_imaging_setting_from_value (setting, staged, &converted);
    given[setting - self->table->settings] = TRUE;
  } else {
    g_autofree gchar *text = gst_value_serialize (value);

    *why = g_strdup_printf (
        "settings has %s=%s, which is out of range or of another type.", name,
        text ? text : "?");
  }
  return ok;
}

static void
put_structure (GstImagingSettings *self, const GstStructure *s)
{
  gpointer staged = g_malloc0 (self->table->size);
  g_autofree gboolean *given = g_new0 (gboolean, self->table->n_settings);
  g_autofree gchar *why = NULL;

  for (gint i = 0; s && i < gst_structure_n_fields (s) && !why; i++) {
    const gchar *name = gst_structure_nth_field_name (s, (guint) i);

    stage_field (
        self, name, gst_structure_get_value (s, name), staged, given, &why);
  }
  if (!why) {
    put (self, staged, given);
  } else {
    g_autofree gchar *text =
        g_strconcat (why, " None of the settings was changed.", NULL);

    gst_imaging_settings_warn (self, text);
  }
  gst_imaging_settings_free_copy (self, staged);
}

void
gst_imaging_settings_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstImagingSettings *self = gst_imaging_settings_of (object);
  guint index = id - GST_IMAGING_SETTINGS_FIRST_ID;

  if (id == GST_IMAGING_SETTINGS_ID_SETTINGS)
    put_structure (self, g_value_get_boxed (value));
  else if (index < self->table->n_settings)
    put_one (self, index, value);
  else if (!self->engine ||
           !gst_imaging_engine_set_property (self->engine, id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

void
gst_imaging_settings_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstImagingSettings *self = gst_imaging_settings_of (object);
  guint index = id - GST_IMAGING_SETTINGS_FIRST_ID;

  if (id == GST_IMAGING_SETTINGS_ID_VALID) {
    GST_OBJECT_LOCK (object);
    g_value_set_boolean (value, self->valid);
    GST_OBJECT_UNLOCK (object);
  } else if (id == GST_IMAGING_SETTINGS_ID_HASH) {
    GST_OBJECT_LOCK (object);
    g_value_set_string (value, self->hash);
    GST_OBJECT_UNLOCK (object);
  } else if (index < self->table->n_settings) {
    GST_OBJECT_LOCK (object);
    gst_imaging_setting_to_value (
        &self->table->settings[index], self->wanted, value);
    GST_OBJECT_UNLOCK (object);
  } else if (!self->engine ||
             !gst_imaging_engine_get_property (self->engine, id, value)) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}
