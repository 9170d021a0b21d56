/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The calibration of the cameras, as the kernel takes it. */
#pragma once

#include "gstimagingsettings.h"

#include "imk/octbscan.h"

/* The cameras in the order of the rows; the numbers belong to it. */
typedef struct {
  guint n_cameras;
  guint n_left_over; /* of the file, without an order that says so */
  ImkOctbscanCamera cameras[IMK_OCTBSCAN_MAX_CAMERAS];
  GPtrArray *numbers;
} GstOctBscanCalibration;

/* A file as it was read, whatever the spectra are. */
typedef struct _GstOctBscanCalibrationFile GstOctBscanCalibrationFile;

/* A GstImagingFileLoad of an .ini file: groups [camera 0], [camera 1], ..., or
 * one [camera] for all. Whether they fit the spectra is seen where they are
 * used. Returns: (transfer full) (nullable): a GstOctBscanCalibrationFile */
gpointer gst_oct_bscan_calibration_file_load (
    const gchar *property, const gchar *location, ImkError *error);
void gst_oct_bscan_calibration_file_free (gpointer file);

/* @file: (nullable): without one all cameras are linear in wavenumber; stays
 *   valid as long as what is returned
 * @order: (nullable): <2, 0, 1>: the calibrations in the order of the rows
 * @k_polynomial, @dispersion: (nullable): the properties, in the place of what
 *   the file says
 * @width: samples a spectrum
 *
 * Returns: (transfer full): for @n_cameras cameras, NULL with @error set */
GstOctBscanCalibration *gst_oct_bscan_calibration_new (
    const GstOctBscanCalibrationFile *file, const GstImagingArray *order,
    const gchar *k_polynomial, const gchar *dispersion, guint n_cameras,
    guint width, ImkError *error);

/* @wanted: (nullable): the property camera-order
 * @order: (out): of IMK_OCTBSCAN_MAX_CAMERAS: the group of each camera
 * Returns: FALSE with @error set */
gboolean gst_oct_bscan_calibration_order (const GstImagingArray *wanted,
    guint n_cameras, guint *order, ImkError *error);

/* Returns: (transfer full) (nullable): the groups and keys of the file; NULL
 * with @error set, a sentence for the user */
GKeyFile *gst_oct_bscan_calibration_read (
    const gchar *location, GKeyFileFlags flags, GError **error);

/* Writes the calibration @from (nullable) with @k_polynomial and @dispersion
 * (nullable), the properties, to @to; files that it names stay where they are.
 * @samples: of the spectra that it was made from; 0: unknown
 * Returns: FALSE with @error set, also with nothing to write */
gboolean gst_oct_bscan_calibration_save (const gchar *from,
    const GstImagingArray *order, const gchar *k_polynomial,
    const gchar *dispersion, guint n_cameras, guint samples, const gchar *to,
    GError **error);

void gst_oct_bscan_calibration_free (GstOctBscanCalibration *self);

/* gstoctbscantable.c: changes the table @text, as spectrometers and
 * spreadsheets write it, so that numbers and separators are left, with points:
 * blanks comments and a header line, and changes decimal commas. Returns: lines
 * with numbers */
guint gst_oct_bscan_table_clean (gchar *text);
