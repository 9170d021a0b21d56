/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which files a location stands for, in which order, and which are missing. */
#pragma once

#include <glib.h>

#include "gstimaging-prelude.h"

typedef struct {
  GPtrArray *names; /* paths, in order */
  GArray *missing;  /* guint64 for each: numbers of the series before it that
                     * have no file */
  GPtrArray *notes; /* sentences for the user */
} GstImagingFileList;

GST_IMAGING_API
void gst_imaging_file_list_init (GstImagingFileList *self);

/* Adds the files of @location: a file, a folder, a name with * and ?, or with
 * a number such as %05d. Those of a folder that have no known format are left
 * out, with a note. Whether a single file is there is the opener's to say. */
GST_IMAGING_API
gboolean gst_imaging_file_list_add (
    GstImagingFileList *self, const gchar *location, GError **error);

GST_IMAGING_API
void gst_imaging_file_list_clear (GstImagingFileList *self);
