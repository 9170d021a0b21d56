/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of insarxcorr, and the files that they name. */
#pragma once

#include <gst/gst.h>

#include "insarxcorr/insarxcorr.h"

G_BEGIN_DECLS

/* Of the config, the images come with the caps. */
typedef struct {
  ImkInsarxcorrConfig config;
  gboolean use_shift;
  gint fit_range, fit_azimuth;
  gchar *mask_location, *gross_offsets_location, *cuda_devices;
} GstInsarSettings;

void gst_insar_settings_init (GstInsarSettings *self);
void gst_insar_settings_clear (GstInsarSettings *self);

/* Returns: a copy, to be cleared */
GstInsarSettings gst_insar_settings_copy (const GstInsarSettings *self);

void gst_insar_settings_install (GObjectClass *klass);

/* Returns: FALSE when @id is none of these properties */
gboolean gst_insar_settings_set (
    GstInsarSettings *self, guint id, const GValue *value);
gboolean gst_insar_settings_get (
    const GstInsarSettings *self, guint id, GValue *value);

/* Returns: fit-snr as the kernel takes it; its default depends on the mode */
gdouble gst_insar_settings_min_correlation (const GstInsarSettings *self);

/* @others: (element-type gint): the GPUs beside that of the engine, of which
 *   the kernel takes as many as it can */
void gst_insar_settings_take_devices (
    GstInsarSettings *self, const GArray *others);

/* What the config refers to while a kernel is made of it. */
typedef struct {
  GBytes *mask;
  gdouble *gross_offsets;
} GstInsarFiles;

/* Reads what @self names, for a @config that is complete, into @config.
 * Returns: IMK_ERROR_CONFIG and nothing to clear */
ImkStatus gst_insar_files_load (GstInsarFiles *self,
    const GstInsarSettings *settings, ImkInsarxcorrConfig *config,
    ImkError *error);
void gst_insar_files_clear (GstInsarFiles *self);

G_END_DECLS
