/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Header.xml of a Thorlabs .oct. */
#pragma once

#include "gstimagingformat.h"

enum {
  THORLABS_SIZE_Z, /* samples of a line, or depths */
  THORLABS_SIZE_X, /* lines */
  THORLABS_SIZE_Y, /* B-scans in the same file */
  THORLABS_BYTES,  /* of a sample */
  THORLABS_APO_START,
  THORLABS_APO_END, /* lines with the light of the reference arm alone */
  THORLABS_SCAN_START,
  THORLABS_SCAN_END, /* lines of the sample */
  THORLABS_N_NUMBERS
};

#define GST_IMAGING_THORLABS_NONE G_MAXUINT64 /* is not told */

/* A file in the ZIP */
typedef struct {
  gchar *name;      /* data/Spectral0.data */
  gboolean is_raw;  /* counts of the camera */
  gboolean is_real; /* float32 */
  guint64 numbers[THORLABS_N_NUMBERS];
  guint64 at; /* of a B-scan: which one; NONE for others */
  guint camera;
} GstImagingThorlabsFile;

typedef struct {
  GArray *files; /* of GstImagingThorlabsFile: those of samples */
  guint bytes;   /* of a sample of a raw file that does not tell */
  gboolean is_signed;
  gboolean has_several_regions;
  GPtrArray *cards; /* "Image/SizeReal/SizeX=1.5" */
} GstImagingThorlabsHeader;

/* The names of numbers in messages */
extern const gchar *const gst_imaging_thorlabs_numbers[THORLABS_N_NUMBERS];

/* Returns: NULL with @error set */
GstImagingThorlabsHeader *gst_imaging_thorlabs_header_new (
    const GstImagingFormatFile *file, const gchar *text, gsize size,
    GError **error);
void gst_imaging_thorlabs_header_free (GstImagingThorlabsHeader *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (
    GstImagingThorlabsHeader, gst_imaging_thorlabs_header_free)
