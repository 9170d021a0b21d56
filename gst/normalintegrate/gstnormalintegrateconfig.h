/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of normalintegrate. */
#pragma once

#include "gstimagingsettings.h"

#include "imk/normalintegrate-mesh.h"

G_BEGIN_DECLS

/* The properties. The format in the configuration is filled in by map. */
typedef struct {
  ImkNormalintegrateConfig config;
  gint y_down;
  GstImagingFile *mesh_location; /* only its name */
  guint mesh_step;
} GstNormalIntegrateSettings;

extern const GstImagingSettingsTable gst_normal_integrate_table;

/* Of the extension of @location. */
ImkStatus gst_normal_integrate_mesh_format (
    const gchar *location, ImkMeshFormat *format, ImkError *error);

/* Of the table, in gstnormalintegrate.c. */
ImkStatus gst_normal_integrate_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error);

G_END_DECLS
