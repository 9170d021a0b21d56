/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of files to write with a number in them, of all elements. */
#pragma once

#include <glib.h>

#include "gstimaging-prelude.h"

/* Where "%05d" is in a name. Other percent signs are letters. */
typedef struct {
  gsize at, size; /* in bytes; a size of 0: nowhere */
  guint width;    /* the fewest digits */
  gboolean zeros; /* before them, else spaces */
} GstImagingFileNumber;

/* Returns: FALSE with @error set where there are two */
GST_IMAGING_API
gboolean gst_imaging_file_number_find (
    GstImagingFileNumber *self, const gchar *location, GError **error);

/* A folder is not listed: it may have a million files.
 * Returns: (transfer full): names with a place for a number of which @name may
 *   be a file */
gchar **gst_imaging_file_number_guess (const gchar *name);

/* @location, @name: without a folder. Returns: whether @name is a numbered
 * file;
 * @n is its number */
GST_IMAGING_API
gboolean gst_imaging_file_number_get (const GstImagingFileNumber *self,
    const gchar *location, const gchar *name, guint64 *n);

/* Returns: (transfer full): the name of file @n */
GST_IMAGING_API
gchar *gst_imaging_file_number_put (
    const GstImagingFileNumber *self, const gchar *location, guint64 n);
