/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of octangio. */
#pragma once

#include "gstimagingsettings.h"

#include "imk/octangio.h"

typedef enum {
  GST_OCT_ANGIO_ENFACE_NONE,
  GST_OCT_ANGIO_ENFACE_MEAN,
  GST_OCT_ANGIO_ENFACE_MAXIMUM,
} GstOctAngioEnface;

typedef enum {
  GST_OCT_ANGIO_SURFACE_NONE,
  GST_OCT_ANGIO_SURFACE_CONTOUR,
} GstOctAngioSurface;

/* In the order of a boolean, which the property was. */
typedef enum {
  GST_OCT_ANGIO_FALLING_FALSE,
  GST_OCT_ANGIO_FALLING_TRUE,
  GST_OCT_ANGIO_FALLING_AUTO,
} GstOctAngioFalling;

typedef struct {
  ImkOctangioConfig config; /* without sizes, floor and scale */
  gdouble floor_db;         /* -200: none */
  gdouble wavelength_nm, interval_us, refractive_index;
  GstOctAngioFalling falling;
  gdouble range_min, range_max; /* equal: those of the method */
  GstOctAngioEnface enface;
  guint bscans_per_volume, enface_top, enface_bottom, enface_depths;
  GstImagingFile *surfaces; /* GstImagingNdArray */
  GstOctAngioSurface surface;
  guint surface_top, surface_window;
} GstOctAngioSettings;

/* The group of settings that another kernel is made for. */
#define GST_OCT_ANGIO_KERNEL (1 << 0)

extern const GstImagingSettingsTable gst_oct_angio_table;

/* Of gstoctangio.c. */
ImkStatus gst_oct_angio_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error);
