/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Warnings, element messages and the property settings-valid. */
#include "gstimagingsettings-private.h"

/* Sentences whose last time is remembered; more than a user reads. */
#define MAX_SENTENCES 64

static void
forget_old_sentences (GstImagingSettings *self, GstClockTime time)
{
  GHashTableIter i;
  gpointer posted;

  g_hash_table_iter_init (&i, self->sentences);
  while (g_hash_table_iter_next (&i, NULL, &posted))
    if (time - *(GstClockTime *) posted > GST_SECOND)
      g_hash_table_iter_remove (&i);
  if (g_hash_table_size (self->sentences) > MAX_SENTENCES)
    g_hash_table_remove_all (self->sentences);
}

/* Returns: whether @text was not posted in the last second */
static gboolean
may_post (GstImagingSettings *self, const gchar *text)
{
  GstClockTime time = gst_util_get_timestamp (), *posted;
  gboolean may;

  GST_IMAGING_HOLD (&self->lock);
  posted = g_hash_table_lookup (self->sentences, text);
  may = !posted || time - *posted > GST_SECOND;
  if (may) {
    if (g_hash_table_size (self->sentences) >= MAX_SENTENCES)
      forget_old_sentences (self, time);
    g_hash_table_replace (
        self->sentences, g_strdup (text), g_memdup2 (&time, sizeof (time)));
  }
  return may;
}

gboolean
gst_imaging_settings_warn (GstImagingSettings *self, const gchar *text)
{
  if (!may_post (self, text))
    return FALSE;
  GST_ELEMENT_WARNING (self->element, LIBRARY, SETTINGS, ("%s", text), (NULL));
  return TRUE;
}

static void
post_message (GstImagingSettings *self, gboolean accepted, const gchar *text,
    gconstpointer other)
{
  GValue names = G_VALUE_INIT;
  GstStructure *s = gst_structure_new ("imaging-settings", "accepted",
      G_TYPE_BOOLEAN, accepted, "text", G_TYPE_STRING, text, NULL);

  g_value_init (&names, GST_TYPE_ARRAY);
  FOR_EACH (setting, self)
  {
    GValue name = G_VALUE_INIT;

    if (gst_imaging_setting_is_equal (setting, self->now, other))
      continue;
    g_value_init (&name, G_TYPE_STRING);
    g_value_set_static_string (&name, setting->name);
    gst_value_array_append_and_take_value (&names, &name);
  }
  gst_structure_take_value (s, "properties", &names);
  gst_element_post_message (
      self->element, gst_message_new_element (GST_OBJECT (self->element), s));
}

void
gst_imaging_settings_set_valid (GstImagingSettings *self, gboolean valid)
{
  gboolean changed;

  GST_OBJECT_LOCK (self->element);
  changed = self->valid != valid;
  self->valid = valid;
  GST_OBJECT_UNLOCK (self->element);
  if (changed)
    g_object_notify (G_OBJECT (self->element), "settings-valid");
}

void
gst_imaging_settings_note_valid (GstImagingSettings *self)
{
  if (self->boundary < self->invalid_at)
    return;
  self->invalid_at = GST_IMAGING_WHEN_LIVE;
  gst_imaging_settings_set_valid (self, TRUE);
}

/* Always reports the first accepted change after a rejection. Other changes,
 * such as those of a GstController before every frame, are reported at most ten
 * times a second. */
void
gst_imaging_settings_tell_accepted (
    GstImagingSettings *self, gconstpointer before)
{
  GstClockTime time = gst_util_get_timestamp ();

  if (!self->told_rejection && time - self->told < GST_SECOND / 10)
    return;
  self->told = time;
  self->told_rejection = FALSE;
  post_message (self, TRUE, "", before);
}

/* "crop-top=500, upsample=64": the first ones, which are enough to find the
 * mistake. */
static gchar *
list_differences (GstImagingSettings *self, gconstpointer tried)
{
  GObjectClass *klass = G_OBJECT_GET_CLASS (self->element);
  GString *list = g_string_new (NULL);
  guint n = 0;

  FOR_EACH (setting, self)
  {
    if (gst_imaging_setting_is_equal (setting, self->now, tried))
      continue;
    if (n++ < 6) {
      g_autofree gchar *text = gst_imaging_setting_to_text (setting, tried,
          g_object_class_find_property (klass, setting->name)->value_type);

      g_string_append_printf (list, "%s%s", list->len ? ", " : "", text);
    }
  }
  if (n > 6)
    g_string_append_printf (list, " and %u more", n - 6);
  return g_string_free (list, FALSE);
}

void
gst_imaging_settings_note_invalid (GstImagingSettings *self)
{
  self->invalid_at = self->boundary;
  gst_imaging_settings_set_valid (self, FALSE);
}

void
gst_imaging_settings_tell_rejected (
    GstImagingSettings *self, gconstpointer tried, const ImkError *error)
{
  g_autofree gchar *list = list_differences (self, tried);
  g_autofree gchar *text =
      g_strdup_printf ("%s Not used until it fits: %s. The settings before "
                       "stay in use.",
          error->message, list);

  gst_imaging_settings_note_invalid (self);
  if (gst_imaging_settings_warn (self, text)) {
    self->told_rejection = TRUE;
    post_message (self, FALSE, text, tried);
  }
}
