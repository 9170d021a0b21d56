/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files that photostereo reads. */
#pragma once

#include <gst/gst.h>

#include "gstimagingnpy.h"

#include "photostereo/photostereo.h"

G_BEGIN_DECLS

/* The lights of lights-location, with the intensities of intensities-location
 * unless that is NULL; to be given to imk_photostereo_lights_clear (). */
ImkStatus gst_photo_stereo_load_lights (const gchar *location,
    const gchar *intensities_location, ImkPhotostereoLights *lights,
    ImkError *error);

/* A picture from a .npy file, [height, width] or [height, width, channels];
 * with
 * @bands above 1, [height, width] or [bands, height, width], one below the
 * other; @image is valid as long as *@npy, which is to be freed by the caller,
 * also after a failure. Size and type are checked by the kernel. */
ImkStatus gst_photo_stereo_load_image (const gchar *property,
    const gchar *location, guint bands, GstImagingNpy **npy, ImkImage *image,
    ImkError *error);

G_END_DECLS
