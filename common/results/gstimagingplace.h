/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/* A #GstCustomMeta with the tags video, size and orientation: where on a map a
 * picture is. Its fields are strings named as the tags of GeoTIFF, with numbers
 * separated by spaces: `ModelPixelScaleTag`, `ModelTiepointTag`,
 * `ModelTransformationTag`, `GeoKeyDirectoryTag`, `GeoDoubleParamsTag`,
 * `GeoAsciiParamsTag`. What changes the geometry of a picture drops it. */
#define GST_IMAGING_PLACE_META "GstImagingPlace"

/**
 * gst_imaging_place_attach: (skip)
 * @buffer: a writable picture
 * @cards: (nullable) (array zero-terminated=1): "key=value" of its file
 *
 * Attaches the place, where the cards tell one.
 */
GST_IMAGING_API
void gst_imaging_place_attach (GstBuffer *buffer, gchar *const *cards);

/**
 * gst_imaging_place_get: (skip)
 * @buffer: a picture
 *
 * Where the picture is on a map.
 *
 * Returns: (transfer none) (nullable): the fields, valid as long as @buffer
 */
GST_IMAGING_API
const GstStructure *gst_imaging_place_get (GstBuffer *buffer);

G_END_DECLS
