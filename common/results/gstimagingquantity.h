/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingorigin.h"

G_BEGIN_DECLS

/* A #GstCustomMeta without tags: what made an image, and what its samples stand
 * for. */
#define GST_IMAGING_QUANTITY_META "GstImagingQuantity"

enum { GST_IMAGING_MAX_AXES = 4 };

/* Sample i of an axis is at @origin + i @step. Of the texts no copy is made. */
typedef struct {
  const gchar *name; /* "depth", "lateral", "x", ... */
  const gchar *unit; /* "um", "mm", "m"; "pixel" when the step is not known */
  gdouble step, origin;
} GstImagingAxis;

/**
 * gst_imaging_quantity_attach: (skip)
 * @buffer: a writable image
 * @name: "level", "intensity", ...; of this text no copy is made
 * @unit: "dB", "counts^2", ...; likewise
 *
 * @axes: at most GST_IMAGING_MAX_AXES: along a row, from row to row, from image
 *   to image
 *
 * quantity = @offset + @scale times sample. Replaces one that is there. The
 * structure has `name` and `unit` (strings), `scale` and `offset` (doubles),
 * and for each axis `axis-0-name` and `axis-0-unit` (strings), `axis-0-step`
 * and `axis-0-origin` (doubles).
 */
GST_IMAGING_API
void gst_imaging_quantity_attach (GstBuffer *buffer, const gchar *name,
    const gchar *unit, gdouble scale, gdouble offset,
    const GstImagingAxis *axes, guint n_axes);

/**
 * gst_imaging_quantity_take: (skip)
 * @buffer: a writable image
 * @told: (transfer full) (nullable): all members of the meta
 *
 * Attaches what a file tells.
 */
GST_IMAGING_API
void gst_imaging_quantity_take (GstBuffer *buffer, GstStructure *told);

/**
 * gst_imaging_quantity_sign: (skip)
 * @buffer: a writable image
 *
 * Sets the fields of @origin in the same structure, beside a quantity or
 * without one.
 */
GST_IMAGING_API
void gst_imaging_quantity_sign (
    GstBuffer *buffer, const GstImagingOrigin *origin);

/**
 * gst_imaging_quantity_keep: (skip)
 * @buffer: of a pool whose buffers are signed each time
 *
 * The structure stays with the buffer when that returns to its pool.
 */
GST_IMAGING_API
void gst_imaging_quantity_keep (GstBuffer *buffer);

G_END_DECLS
