/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of insarxcorr, and the files that they name. */
#pragma once

#include "gstimagingsettings.h"
#include "imk/insarxcorr.h"

/* Of the config, the images come with the caps. */
typedef struct {
  ImkInsarxcorrConfig config;
  gboolean use_shift;
  gint fit_range, fit_azimuth;
  GstImagingFile *mask, *gross_offsets, *offsets;
  GstImagingArray *cuda_devices;
} GstInsarSettings;

/* Of a GstInsarSettings. */
extern const GstImagingSettingsTable gst_insar_xcorr_table;

/* Of the table. */
ImkStatus gst_insar_xcorr_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error);

/* Returns: fit-snr as the kernel takes it; its default depends on the mode */
gdouble gst_insar_settings_min_correlation (const GstInsarSettings *self);

/* --- gstinsarxcorrfiles.c ------------------------------------------------- */

/* GstImagingFileLoad. */
gpointer gst_insar_load_mask (
    const gchar *property, const gchar *location, ImkError *error);
gpointer gst_insar_load_gross_offsets (
    const gchar *property, const gchar *location, ImkError *error);
void gst_insar_free_gross_offsets (gpointer offsets);

/* Lets a @config that is complete refer to the files of @self.
 * Returns: IMK_ERROR_CONFIG for those that are not of its size */
ImkStatus gst_insar_settings_use_files (
    const GstInsarSettings *self, ImkInsarxcorrConfig *config, ImkError *error);
