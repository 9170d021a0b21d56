/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingslab.h"

#include "gstimagingmemory.h"

/* Of a slab: more would keep much memory for one that is still used. */
#define MAX_PLACES 64

struct _GstImagingSlab {
  gint ref_count;
  GstImagingContext *context;
  guint8 *host, *mapped;
  gsize size, pitch; /* of a place, and to the next */
  guint n, n_taken;
};

static GstImagingSlab *
slab_new (GstImagingContext *context, gsize size, guint n, ImkError *error)
{
  gsize pitch = gst_imaging_memory_pitch (size);
  gpointer host, mapped;
  GstImagingSlab *self;

  if (gst_imaging_context_device (context)->alloc_pinned (
          n * pitch, &host, &mapped, error) != IMK_OK)
    return NULL;
  self = g_new0 (GstImagingSlab, 1);
  self->ref_count = 1;
  self->context = context; /* the memories keep it */
  self->host = host;
  self->mapped = mapped;
  self->size = size;
  self->pitch = pitch;
  self->n = n;
  return self;
}

void
gst_imaging_slab_unref (GstImagingSlab *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  gst_imaging_context_device (self->context)->free_pinned (self->host);
  g_free (self);
}

GstImagingSlab *
gst_imaging_slab_take (GstImagingSlab **current, GstImagingContext *context,
    gsize size, gsize slab_size, gpointer *host, gpointer *mapped,
    ImkError *error)
{
  guint n = (guint) CLAMP (slab_size / size, 1, MAX_PLACES);
  GstImagingSlab *slab = *current;

  if (!slab || slab->size != size || slab->n_taken == slab->n) {
    g_clear_pointer (current, gst_imaging_slab_unref);
    slab = *current = slab_new (context, size, n, error);
  }
  if (!slab)
    return NULL;
  *host = slab->host + slab->n_taken * slab->pitch;
  *mapped = slab->mapped + slab->n_taken * slab->pitch;
  slab->n_taken++;
  g_atomic_int_inc (&slab->ref_count);
  return slab;
}
