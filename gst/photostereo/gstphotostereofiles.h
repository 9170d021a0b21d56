/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files that photostereo reads. */
#pragma once

#include "gstimagingndarray.h"
#include "gstimagingsettings.h"

#include "imk/photostereo.h"

/* GstImagingFileLoad of the paths. Returns: ImkPhotostereoLights */
gpointer gst_photo_stereo_load_lights (
    const gchar *property, const gchar *location, ImkError *error);
void gst_photo_stereo_free_lights (gpointer lights);
/* Returns: GBytes, which is parsed later together with the lights */
gpointer gst_photo_stereo_load_intensities (
    const gchar *property, const gchar *location, ImkError *error);
/* A copy of the lights, with the intensities of @intensities unless that is
 * NULL; to be given to imk_photostereo_lights_clear (). */
ImkStatus gst_photo_stereo_join_lights (const GstImagingFile *lights,
    const GstImagingFile *intensities, ImkPhotostereoLights *joined,
    ImkError *error);

/* The picture of a .npy file, [height, width] or [height, width, channels];
 * with @bands above 1, [height, width] or [bands, height, width], one below the
 * other. What is bool becomes u8, or u16 where the type of @frame is.
 * @frame: what width, height and type the frames have
 * @wide: (out): NULL, or what @image points to instead of the file's data, to
 * be freed. The kernel checks the type and the channels. */
ImkStatus gst_photo_stereo_describe_image (const gchar *property,
    const GstImagingFile *file, guint bands, const ImkImage *frame,
    ImkImage *image, gpointer *wide, ImkError *error);
