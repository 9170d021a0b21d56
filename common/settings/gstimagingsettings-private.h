/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the settings share. */
#pragma once

#include "gstimagingsettings.h"

G_BEGIN_DECLS

/* Ids of the properties: those of the engine, those of the table, then these,
 * for which GST_IMAGING_SETTINGS_FIRST_FREE_ID leaves room. */
enum {
  GST_IMAGING_SETTINGS_FIRST_ID = GST_IMAGING_ENGINE_N_PROPERTIES + 1,
  GST_IMAGING_SETTINGS_ID_SETTINGS = GST_IMAGING_SETTINGS_FIRST_FREE_ID - 2,
  GST_IMAGING_SETTINGS_ID_VALID,
};

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

/* Returns: (transfer full): "name=value" */
gchar *gst_imaging_setting_to_text (
    const GstImagingSetting *self, gconstpointer settings);

GstImagingFile *gst_imaging_setting_file_new (
    const gchar *location, gpointer data, GDestroyNotify free_data);

/* --- the properties ------------------------------------------------------- */

/* @defaults: a structure of the element */
GParamSpec *gst_imaging_setting_make_spec (
    const GstImagingSetting *self, gconstpointer defaults, gboolean timeless);

/* Returns: (nullable): that of the class or of one of its parents */
const GstImagingSettingsTable *gst_imaging_settings_table_of (GType type);

const GstImagingSetting *gst_imaging_settings_table_find (
    const GstImagingSettingsTable *table, const gchar *name);

G_END_DECLS
