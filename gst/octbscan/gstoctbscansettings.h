/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of octbscan: their table, and the structure they are in. */
#pragma once

#include "gstimagingsettings.h"

#include "imk/octbscan-mirror.h"
#include "imk/octbscan-sweep.h"

typedef enum { SCALING_DB, SCALING_LINEAR } Scaling;

/* Groups of settings: what changes with them. */
enum {
  PLAN = 1, /* needs a new kernel */
  TURN = 2, /* the cameras take their turns anew */
  TUNE = 4, /* another live dispersion */
};

/* The properties as they were at one moment. */
typedef struct {
  ImkOctbscanConfig config;    /* without frame and pointers */
  GstImagingFile *calibration; /* GstOctBscanCalibrationFile */
  GstImagingFile *background, *window, *pattern, *scan_curve,
      *tracking_reference; /* GstImagingNdArray */
  GRefString *k_polynomial, *dispersion;
  ImkOctbscanMirrorFit mirror_fit;
  ImkOctbscanSweepConfig sweep; /* without what the lines are */
  GstImagingArray *camera_order, *cuda_devices;
  GstImagingArray *dispersion_2, *dispersion_3;
  guint first_camera, ascans_per_bscan, skip_first_line, average_bscans,
      bscans_per_volume;
  Scaling scaling;
  guint max_in_flight;
  gdouble refractive_index, lateral_step_um;
} Settings;

extern const GstImagingSettingsTable gst_oct_bscan_settings_table;

/* Sets both properties (nullable) of @element at once, and the live dispersion
 * to none: it would go before them. */
void gst_oct_bscan_settings_set_found (
    GObject *element, const gchar *k_polynomial, const gchar *dispersion);

/* Of the table, in gstoctbscanconfigure.c. */
ImkStatus gst_oct_bscan_apply_settings (
    GstElement *element, gconstpointer before, guint groups, ImkError *error);
