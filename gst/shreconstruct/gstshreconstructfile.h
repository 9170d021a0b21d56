/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arrays of files that may have several images, such as telemetry. */
#pragma once

#include "shcentroid/gstshcentroidfiles.h"

G_BEGIN_DECLS

/* @name: (out) (nullable) (transfer none): that the convention AOT (Gomes et
 *   al. 2024, A&A 686, A7) gives the image of the property, where one of
 *   several images has it
 * @part: (out): number of that image, -1 for the only one
 * Returns: FALSE with @error set, where none of several images has the name */
gboolean gst_sh_reconstruct_find_image (const gchar *property,
    const gchar *location, const gchar **name, gint *part, ImkError *error);

/* Returns: the number of the image with that name, -1 without */
gint gst_sh_reconstruct_find_part (const gchar *location, const gchar *name);

/* A GstImagingFileLoad: the image that gst_sh_reconstruct_find_image () finds.
 * Returns: GstShCentroidArray, with finite numbers */
gpointer gst_sh_reconstruct_array_load (
    const gchar *property, const gchar *location, ImkError *error);

G_END_DECLS
