/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/* A #GstCustomMeta without tags: what the samples of an image stand for. */
#define GST_IMAGING_QUANTITY_META "GstImagingQuantity"

/**
 * gst_imaging_quantity_attach: (skip)
 * @buffer: a writable image
 * @name: "level", "intensity", ...; of this text no copy is made
 * @unit: "dB", "counts^2", ...; likewise
 *
 * quantity = @offset + @scale times sample. Replaces one that is there. The
 * structure has `name` and `unit` (strings), `scale` and `offset` (doubles).
 */
GST_IMAGING_API
void gst_imaging_quantity_attach (GstBuffer *buffer, const gchar *name,
    const gchar *unit, gdouble scale, gdouble offset);

G_END_DECLS
