/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Page-locked blocks that several memories of one size share, so that
 * neighbours can be copied together. */
#pragma once

#include "gstimagingcontext.h"

typedef struct _GstImagingSlab GstImagingSlab;

/* Takes a place of @size bytes from *@current, or from a new slab of about
 * @slab_size bytes that becomes it. Call with @context current; whoever has the
 * place keeps it. It is given away for good.
 * Returns: (transfer full) (nullable): the slab of the place, NULL with @error
 *   set */
GstImagingSlab *gst_imaging_slab_take (GstImagingSlab **current,
    GstImagingContext *context, gsize size, gsize slab_size, gpointer *host,
    gpointer *mapped, ImkError *error);

/* The last one with the context current. */
void gst_imaging_slab_unref (GstImagingSlab *self);
