/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the settings share. */
#pragma once

#include "gstimagingsettings.h"

/* Ids of the properties: those of the engine, those of the table, then these,
 * for which GST_IMAGING_SETTINGS_FIRST_FREE_ID leaves room. */
enum {
  GST_IMAGING_SETTINGS_FIRST_ID = GST_IMAGING_ENGINE_N_PROPERTIES + 1,
  GST_IMAGING_SETTINGS_ID_SETTINGS = GST_IMAGING_SETTINGS_FIRST_FREE_ID - 3,
  GST_IMAGING_SETTINGS_ID_VALID,
  GST_IMAGING_SETTINGS_ID_HASH,
};

struct _GstImagingSettings {
  GstElement *element;
  const GstImagingSettingsTable *table;
  GstImagingEngine *engine; /* (nullable) */

  /* under the object lock */
  gpointer wanted; /* as g_object_get () returns them */
  guint *set_at;   /* of each setting: @serial after it was set */
  gboolean valid;
  gchar *hash; /* (nullable): written by the streaming thread */

  guint serial; /* atomic; counts changes of @wanted */

  /* of the streaming thread */
  gpointer now;     /* in use, or being tried */
  gpointer before;  /* (nullable): @now before the last try, which a frame whose
                     * device failed may still read */
  gboolean in_use;  /* @now has been accepted since the start */
  guint serial_set; /* of @wanted when it was last tried at a new set */
  guint serial_frame;
  guint *taken_at;           /* @set_at when @wanted was last taken */
  guint *rejected_at;        /* @set_at of the values that were rejected */
  GstClockTime told;         /* when an accepted change was last posted */
  gboolean told_rejection;   /* no accepted change was posted since */
  GstImagingWhen boundary;   /* of the current update */
  GstImagingWhen invalid_at; /* boundary of the last rejection */

  GMutex lock;           /* of the sentences */
  GHashTable *sentences; /* text -> GstClockTime when it was last posted */
};

#define FOR_EACH(setting, self) \
  for (const GstImagingSetting *setting = (self)->table->settings; \
       setting < (self)->table->settings + (self)->table->n_settings; \
       setting++)

/* --- gstimagingsettingsmessages.c ----------------------------------------- */

/* Posts a warning, unless the same was posted in the last second. Returns:
 * whether it was posted */
gboolean gst_imaging_settings_warn (
    GstImagingSettings *self, const gchar *text);

/* Sets the property settings-valid. */
void gst_imaging_settings_set_valid (GstImagingSettings *self, gboolean valid);

/* All values of the current boundary were accepted; settings-valid becomes TRUE
 * unless a later boundary had a rejection. */
void gst_imaging_settings_note_valid (GstImagingSettings *self);
void gst_imaging_settings_note_invalid (GstImagingSettings *self);

/* @now has replaced @before. */
void gst_imaging_settings_tell_accepted (
    GstImagingSettings *self, gconstpointer before);

/* @tried was rejected, @now stays in use. */
void gst_imaging_settings_tell_rejected (
    GstImagingSettings *self, gconstpointer tried, const ImkError *error);

/* @error: (nullable). Returns: that of the first file that was not read.
 * Numbers are in their ranges: GObject has checked them. */
ImkStatus gst_imaging_settings_check_files (
    GstImagingSettings *self, gconstpointer settings, ImkError *error);

/* --- gstimagingsettingshash.c --------------------------------------------- */

/* @now was taken over: computes its hash. */
void gst_imaging_settings_update_hash (GstImagingSettings *self);

/* Returns: (transfer full): of the bytes of a file; of its path where it cannot
 * be read as one */
gchar *gst_imaging_settings_hash_file (const gchar *location);
gchar *gst_imaging_settings_hash_numbers (const gdouble *numbers, gsize n);

/* --- one value ------------------------------------------------------------ */

/* Makes @to a copy of the member of @from. Both are structures of the element,
 * @to may hold another value. */
void gst_imaging_setting_copy (
    const GstImagingSetting *self, gpointer to, gconstpointer from);
void gst_imaging_setting_clear (
    const GstImagingSetting *self, gpointer settings);

/* Files are equal when they are the same, read at the same time. */
gboolean gst_imaging_setting_is_equal (
    const GstImagingSetting *self, gconstpointer a, gconstpointer b);

/* @value: initialised with the type of the property. A file is read. */
void gst_imaging_setting_from_value (
    const GstImagingSetting *self, gpointer settings, const GValue *value);
void gst_imaging_setting_to_value (
    const GstImagingSetting *self, gconstpointer settings, GValue *value);

/* Reads the file of a path again where it could not be read.
 * Returns: whether it tried */
gboolean gst_imaging_setting_retry (
    const GstImagingSetting *self, gpointer settings);

/* @type: of the property. Returns: (transfer full): "name=value" */
gchar *gst_imaging_setting_to_text (
    const GstImagingSetting *self, gconstpointer settings, GType type);

/* @hash: (transfer full) (nullable) */
GstImagingFile *gst_imaging_setting_file_new (const gchar *location,
    gpointer data, GDestroyNotify free_data, gchar *hash);

/* --- the properties ------------------------------------------------------- */

const GstImagingSetting *gst_imaging_settings_table_find (
    const GstImagingSettingsTable *table, const gchar *name);
