/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of slcresample. */
#pragma once

#include "gstimagingsettings.h"
#include "imk/slcresample.h"

typedef enum {
  GST_SLC_RESAMPLE_DOPPLER_AUTO,
  GST_SLC_RESAMPLE_DOPPLER_CAPS,
  GST_SLC_RESAMPLE_DOPPLER_DATA,
} GstSlcResampleDoppler;

/* 1, r, a, r a, r^2, a^2, r^3, r^2 a, r a^2, a^3 */
enum { GST_SLC_RESAMPLE_N_TERMS = 10 };

/* Of the config, the images come with the caps; an output size of 0 is that of
 * the reference, and its geometry is added to the fit. */
typedef struct {
  ImkSlcresampleConfig config;
  GstImagingFile *fit;             /* GstInsarPrmAlignment */
  GstImagingFile *reference;       /* GstInsarPrm */
  GstImagingFile *offsets[2];      /* GstInsarPlane, range then azimuth */
  GstImagingArray *polynomials[2]; /* GST_SLC_RESAMPLE_N_TERMS at most */
  GstSlcResampleDoppler doppler;
} GstSlcResampleSettings;

/* Of a GstSlcResampleSettings. */
extern const GstImagingSettingsTable gst_slc_resample_table;
