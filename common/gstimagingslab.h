/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Page-locked blocks that several memories of one size share, so that
 * neighbours can be copied together. */
#pragma once

#include "gstimagingcontext.h"

G_BEGIN_DECLS

typedef struct _GstImagingSlab GstImagingSlab;

/* Call with the context current. Returns: (nullable): @n places of @size bytes,
 * NULL with @error set */
GstImagingSlab *gst_imaging_slab_new (
    GstImagingContext *context, gsize size, guint n, ImkError *error);
GstImagingSlab *gst_imaging_slab_ref (GstImagingSlab *self);
/* The last one with the context current. */
void gst_imaging_slab_unref (GstImagingSlab *self);

/* Gives a place away for good; the slab lives as long as who has it keeps a
 * reference. Returns: FALSE when there is none left */
gboolean gst_imaging_slab_take (
    GstImagingSlab *self, gsize size, gpointer *host, gpointer *mapped);

/* Returns: whether @second is the place behind @first */
gboolean gst_imaging_slab_are_neighbours (
    const GstImagingSlab *self, gconstpointer first, gconstpointer second);

G_END_DECLS
