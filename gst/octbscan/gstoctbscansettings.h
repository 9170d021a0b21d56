/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of octbscan: where they are kept, what they are called. */
#pragma once

#include "gstimaging-prelude.h"

#include "octbscan/octbscan.h"

G_BEGIN_DECLS

typedef enum { SCALING_DB, SCALING_LINEAR } Scaling;

/* The properties as they were at one moment. */
typedef struct {
  ImkOctbscanConfig config; /* without frame and pointers */
  gchar *calibration, *camera_order, *dispersion, *background_location;
  gchar *window_location, *pattern_location, *scan_curve;
  guint first_camera, ascans_per_bscan, skip_first_line, average_bscans,
      bscans_per_volume;
  Scaling scaling;
  guint max_in_flight;
  gchar *cuda_devices;
  guint plan;    /* counts changes of what needs a new kernel */
  guint turns;   /* counts changes of first-camera */
  guint changes; /* counts all changes */
} Settings;

/* The defaults, which are those of the kernel. */
void gst_oct_bscan_settings_init (Settings *self);

/* Returns: (transfer full): the same, to be cleared */
Settings gst_oct_bscan_settings_copy (const Settings *self);
void gst_oct_bscan_settings_clear (Settings *self);

void gst_oct_bscan_settings_install (GObjectClass *klass);

/* Returns: FALSE for a property that is not one of these */
gboolean gst_oct_bscan_settings_set (
    Settings *self, guint id, const GValue *value);
gboolean gst_oct_bscan_settings_get (
    const Settings *self, guint id, GValue *value);

G_END_DECLS
