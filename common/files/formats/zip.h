/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files in a ZIP, with minizip. */
#pragma once

#include "gstimagingformat.h"

typedef struct _GstImagingZip GstImagingZip;

/* Names in the ZIP have / between folder and file here, also those that have \
 * there. Returns: NULL with @error set */
GstImagingZip *gst_imaging_zip_new (
    const GstImagingFormatFile *file, GError **error);

/* @size: (out): bytes, as the ZIP claims. Returns: FALSE if there is no such
 * name */
gboolean gst_imaging_zip_find (
    const GstImagingZip *self, const gchar *name, guint64 *size);

/* Returns: (transfer full): names (transfer none) that end with @suffix, sorted
 */
GPtrArray *gst_imaging_zip_list (
    const GstImagingZip *self, const gchar *suffix);

/* Reads a piece of a file that is there. It is fastest in order. Bytes that do
 * not have the checksum of the ZIP are an error, once the last one is read. */
gboolean gst_imaging_zip_read (GstImagingZip *self, const gchar *name,
    guint64 offset, gpointer to, guint64 size, GError **error);

void gst_imaging_zip_free (GstImagingZip *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstImagingZip, gst_imaging_zip_free)
