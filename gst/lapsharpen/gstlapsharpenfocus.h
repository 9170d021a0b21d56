/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How sharp a frame is, as results of lapsharpen. */
#pragma once

#include "gstlapsharpen.h"

#include "imk/lapsharpen-tiles.h"
#include "imk/lapsharpen.h"

G_BEGIN_DECLS

/* What @kernel measured in the frame that it had last: laplacian-focus-v1. */
ImkStatus gst_lap_sharpen_publish_focus (GstImagingFilter *filter,
    ImkLapsharpen *kernel, const ImkImage *image, GstBuffer *buffer,
    ImkError *error);

/* Measures tiles of @image, wherever it is: focus-tiles-v1. */
ImkStatus gst_lap_sharpen_publish_tiles (GstImagingFilter *filter,
    const ImkLapsharpenConfig *format, const ImkImage *image, guint columns,
    guint rows, GstBuffer *buffer, ImkError *error);

G_END_DECLS
