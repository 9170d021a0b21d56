/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What reading and writing TIFF share. */
#pragma once

#include <stdint.h>

#include <tiffio.h>

#include "gstimagingformat.h"

/* An open file, and the first sentence of libtiff about it */
typedef struct {
  const GstImagingFormatFile *file;
  guint64 offset, size; /* of the file's position; of what was written */
  gboolean writes;
  gchar *text;
  GError *why; /* a write that failed */

  /* Where pages are appended: bytes of the pages so far. Writes into them link
   * the next page, and wait in @links until all of it has been written. */
  guint64 complete;
  GArray *links;
  TIFF *tiff;
} GstImagingTiff;

/* @mode: "r", "w", "w8", or "a" for a file that has pages. Returns: FALSE with
 * @error set */
gboolean gst_imaging_tiff_open (GstImagingTiff *self,
    const GstImagingFormatFile *file, const gchar *mode, GError **error);

/* Sets @error to what libtiff said. Returns: FALSE */
gboolean gst_imaging_tiff_fail (GstImagingTiff *self, GError **error);

/* Pages are appended from now on. */
void gst_imaging_tiff_grow (GstImagingTiff *self);
/* A page is written; without an error its links are. */
gboolean gst_imaging_tiff_complete (GstImagingTiff *self, GError **error);

/* Returns: the predictor of the current page; 1 for none. For compressions that
 * take none: libtiff hides it then */
guint gst_imaging_tiff_find_predictor (const GstImagingTiff *self);

/* What the planes of a page are that has them one behind the other */
typedef enum {
  GST_IMAGING_TIFF_PLANES_COLOURS, /* or channels of one picture */
  GST_IMAGING_TIFF_PLANES_FRAMES,
  GST_IMAGING_TIFF_PLANES_DOUBTFUL, /* RGB, or 3 or 4 frames of tifffile */
} GstImagingTiffPlanes;

/* Of the current page: tifffile writes frames [3 or 4, height, width] as RGB,
 * unless its user said otherwise. */
GstImagingTiffPlanes gst_imaging_tiff_find_planes (TIFF *tiff);

/* libtiff does not know it. */
#define GST_IMAGING_TIFF_NODATA 42113

/* Tags of the current page that are cards */
void gst_imaging_tiff_read_tags (TIFF *tiff, GPtrArray *cards);
/* Those of @cards, but the description; behind the first page those that each
 * page has */
void gst_imaging_tiff_set_tags (TIFF *tiff, gchar **cards, gboolean is_first);
gboolean gst_imaging_tiff_is_tag (const gchar *card);

void gst_imaging_tiff_close (GstImagingTiff *self);

gpointer gst_imaging_tiff_create (const GstImagingFormatFile *file,
    const GstImagingNdArray *array, guint64 *n_pages, GError **error);
gpointer gst_imaging_tiff_append (const GstImagingFormatFile *file,
    const GstImagingNdArray *frame, guint64 n_expected, guint64 *n_frames,
    GError **error);
gboolean gst_imaging_tiff_write (
    gpointer writer, gconstpointer values, GError **error);
gboolean gst_imaging_tiff_finish (gpointer writer, GError **error);
void gst_imaging_tiff_discard (gpointer writer);
