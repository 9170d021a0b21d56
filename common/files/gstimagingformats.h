/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which format a file has, and where its functions are. */
#pragma once

#include "files/gstimagingfile.h"
#include "formats/gstimagingformat.h"

/* By what the file holds; its name decides between TIFF and the kinds of camera
 * RAW that look like it.
 * Returns: NULL with @error set, also where the format's library is missing */
const GstImagingFormatTable *gst_imaging_formats_find_reader (
    const GstImagingFormatFile *file, const gchar *location, GError **error);

/* Is it worth a try? By its name, or by how it begins. */
GST_IMAGING_API
gboolean gst_imaging_formats_know (const gchar *location);

/* By the extension of the name. */
const GstImagingFormatTable *gst_imaging_formats_find_writer (
    const GstImagingFormatFile *file, const gchar *location, GError **error);

/* Ends what @table writes and gives the file its name.
 * Returns: FALSE with @error set */
gboolean gst_imaging_formats_finish (const GstImagingFormatTable *table,
    gpointer writer, GstImagingSaver *saver, GError **error);

/* Frees what writes @file, and its name; without gst_imaging_formats_finish ()
 * the file keeps what it held. All but @file: (nullable) */
void gst_imaging_formats_close (const GstImagingFormatTable *table,
    gpointer writer, GstImagingSaver *saver, const GstImagingFormatFile *file);

/* Returns: (nullable): "TIFF" for a name with an extension of this format */
GST_IMAGING_API
const gchar *gst_imaging_formats_get_name (const gchar *location);

/* Has a file that is written to this name a place for units and other cards? */
GST_IMAGING_API
gboolean gst_imaging_formats_have_cards (const gchar *location);

/* Returns: (transfer full) (nullable): path of the file beside this one without
 * which it cannot be read */
GST_IMAGING_API
gchar *gst_imaging_formats_find_settings (const gchar *location);

/* Returns: (transfer full) (nullable): what an UTF-8 text of JSON holds, also
 * NULL where json-glib is missing */
GVariant *gst_imaging_formats_parse_json (const gchar *text);

/* Appends the member `formats` to an object: what is read and written here, and
 * what a format that is not needs. */
void gst_imaging_formats_describe (GString *json);
