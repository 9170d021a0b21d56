/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples without a header, of which a file of settings beside them tells the
 * layout: recordings of OCT spectra. */
#pragma once

#include "gstimagingformat.h"

/* What the settings tell. A B-scan is a page. */
typedef struct {
  GstImagingNdArrayType type;
  guint64 n_bscans; /* 0: as many as there are */
  guint64 n_lines, n_samples;
  guint64 n_together; /* B-scans that were written together */
  GPtrArray *cards;   /* "KEY=value" */
} GstImagingRawLayout;

/* Fills the layout from the text of settings, or sets a sentence. @told: the
 * name of the settings, as messages call it */
typedef gboolean (*GstImagingRawParser) (const GstImagingFormatFile *file,
    const gchar *told, const gchar *text, gsize size,
    GstImagingRawLayout *layout, GError **error);

/* As open () of a format. @settings: path of the file of settings, which is
 * read with @parse */
gpointer gst_imaging_raw_spectra_open (const GstImagingFormatFile *file,
    const gchar *settings, GstImagingRawParser parse, GstImagingNdArray *array,
    guint64 *n_pages, GError **error);
gboolean gst_imaging_raw_spectra_read (
    gpointer reader, guint64 page, gpointer values, GError **error);
void gst_imaging_raw_spectra_close (gpointer reader);

/* As open (), of settings that are in memory. Takes the cards of @layout. */
gpointer gst_imaging_raw_spectra_open_layout (const GstImagingFormatFile *file,
    const gchar *told, GstImagingRawLayout *layout, GstImagingNdArray *array,
    guint64 *n_pages, GError **error);

gboolean gst_imaging_octproz_parse (const GstImagingFormatFile *file,
    const gchar *told, const gchar *text, gsize size,
    GstImagingRawLayout *layout, GError **error);
gboolean gst_imaging_unp_parse (const GstImagingFormatFile *file,
    const gchar *told, const gchar *text, gsize size,
    GstImagingRawLayout *layout, GError **error);

/* The path of the file of settings. Returns: (transfer full): also if there is
 * none; (nullable): of OCTproZ, NULL for another name */
gchar *gst_imaging_octproz_find_settings (const gchar *location);
gchar *gst_imaging_unp_find_settings (const gchar *location);

/* Is it the name of a recording of OCTproZ with its settings beside it? */
gboolean gst_imaging_octproz_is (const gchar *location);
