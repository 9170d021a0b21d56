/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tiff.h"

/* The description that tifffile writes: {"axes": "TYX", "shape": [3, 64, 80]},
 * of which axes are there only where its user gave them. */
static gboolean
description_matches (TIFF *tiff, const gchar *pattern)
{
  gchar *text = NULL;

  return TIFFGetField (tiff, TIFFTAG_IMAGEDESCRIPTION, &text) && text &&
         g_regex_match_simple (pattern, text, G_REGEX_RAW, 0);
}

static gboolean
is_of_tifffile (TIFF *tiff, guint channels)
{
  guint32 width = 0, height = 0;
  g_autofree gchar *pattern = NULL;

  TIFFGetField (tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField (tiff, TIFFTAG_IMAGELENGTH, &height);
  pattern = g_strdup_printf (
      "\"shape\": \\[(\\d+, )*%u, %u, %u\\]", channels, height, width);
  return description_matches (tiff, pattern);
}

GstImagingTiffPlanes
gst_imaging_tiff_find_planes (TIFF *tiff)
{
  guint16 channels = 1, planar = PLANARCONFIG_CONTIG, photometric = 0;

  TIFFGetFieldDefaulted (tiff, TIFFTAG_SAMPLESPERPIXEL, &channels);
  TIFFGetFieldDefaulted (tiff, TIFFTAG_PLANARCONFIG, &planar);
  TIFFGetField (tiff, TIFFTAG_PHOTOMETRIC, &photometric);
  if (channels < 2 || planar != PLANARCONFIG_SEPARATE ||
      !is_of_tifffile (tiff, channels))
    return GST_IMAGING_TIFF_PLANES_COLOURS;
  if (description_matches (tiff, "\"axes\": \"[A-Z]*[CS]YX\""))
    return GST_IMAGING_TIFF_PLANES_COLOURS;
  if (description_matches (tiff, "\"axes\": \"[A-Z]+YX\"") ||
      photometric == PHOTOMETRIC_MINISBLACK ||
      photometric == PHOTOMETRIC_MINISWHITE)
    return GST_IMAGING_TIFF_PLANES_FRAMES;
  return photometric == PHOTOMETRIC_RGB ? GST_IMAGING_TIFF_PLANES_DOUBTFUL
                                        : GST_IMAGING_TIFF_PLANES_COLOURS;
}
