/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the calibrations of octbscan: any bytes end in cameras
 * whose wavenumbers have places in the spectrum, or in a sentence.
 * sources: @files gst/octbscan/gstoctbscancalibration.c
 * gst/octbscan/gstoctbscantable.c
 * kernels/octbscan/octbscan-grid.c kernels/core/status.c */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../gst/octbscan/gstoctbscancalibration.h"
#include "gstimagingnpy.h"
#include "octbscan/octbscan-grid.h"

int LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size);

enum { N_CAMERAS = 2, WIDTH = 8, WAVENUMBERS = 16 };

static void
check (gboolean condition)
{
  if (!condition)
    abort ();
}

static void
check_sentence (const ImkError *error)
{
  check (error->code == IMK_ERROR_FILE || error->code == IMK_ERROR_CONFIG);
  check (strlen (error->message) > 10);
  check (g_utf8_validate (error->message, -1, NULL));
}

/* A folder with the files that seeds name. Returns: the path of the .ini */
static const gchar *
get_path (void)
{
  static gchar *path;
  static const gdouble curve[WIDTH] = {0, 1.1, 2.1, 3, 4, 5, 6, 7};
  const guint64 n = WIDTH;
  gchar *folder, *npy, *text;

  if (path)
    return path;
  folder = g_dir_make_tmp ("octbscan-fuzz-XXXXXX", NULL);
  npy = g_build_filename (folder, "c.npy", NULL);
  text = g_build_filename (folder, "c.txt", NULL);
  path = g_build_filename (folder, "c.ini", NULL);
  check (gst_imaging_npy_save (
      npy, GST_IMAGING_ND_ARRAY_TYPE_F64, 1, &n, curve, NULL));
  check (g_file_set_contents (text, "0 1 2 3 4 5 6 7\n", -1, NULL));
  g_free (folder);
  g_free (npy);
  g_free (text);
  return path;
}

static void
check_cameras (const GstOctBscanCalibration *calibration)
{
  const ImkOctbscanConfig config = {
      .width = WIDTH,
      .height = 1,
      .n_cameras = N_CAMERAS,
      .cameras = calibration->cameras,
      .upsample = WAVENUMBERS,
      .scale = 1,
  };

  for (guint i = 0; i < N_CAMERAS; i++) {
    gdouble positions[WAVENUMBERS], re[WAVENUMBERS], im[WAVENUMBERS];
    ImkError error;

    if (imk_octbscan_grid_check (&config, i, &error) != IMK_OK) {
      check_sentence (&error);
      continue;
    }
    check (
        imk_octbscan_grid_positions (&config, i, positions, &error) == IMK_OK);
    imk_octbscan_grid_weights (&config, i, re, im);
    for (guint k = 0; k < WAVENUMBERS; k++) {
      check (positions[k] >= 0 && positions[k] <= WIDTH - 1);
      check (hypot (re[k], im[k]) <= 1.1e6);
    }
  }
}

/* The property camera-order: the second calibration first. */
static GstImagingArray *
new_order (void)
{
  GstImagingArray *order =
      g_malloc0 (sizeof (GstImagingArray) + N_CAMERAS * sizeof (gdouble));

  order->n = N_CAMERAS;
  order->values[0] = 1;
  return order;
}

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  GstImagingArray *backward = new_order ();
  GstImagingArray *const orders[] = {NULL, backward};
  const gchar *path = get_path ();

  /* without waiting for the disk */
  check (g_file_set_contents_full (path, (const gchar *) bytes, (gssize) size,
      G_FILE_SET_CONTENTS_NONE, 0600, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (orders); i++) {
    GstOctBscanCalibration *calibration = NULL;
    ImkError error = {IMK_OK, ""};
    GstOctBscanCalibrationFile *file = gst_oct_bscan_calibration_file_load (
        "calibration-location", path, &error);

    if (file)
      calibration = gst_oct_bscan_calibration_new (
          file, orders[i], NULL, NULL, N_CAMERAS, WIDTH, &error);
    if (calibration)
      check_cameras (calibration);
    else
      check_sentence (&error);
    gst_oct_bscan_calibration_free (calibration);
    gst_oct_bscan_calibration_file_free (file);
  }
  g_free (backward);
  return 0;
}
