/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingslab.h"

#include "gstimagingmemory.h"

struct _GstImagingSlab {
  gint ref_count;
  GstImagingContext *context;
  guint8 *host, *mapped;
  gsize size, pitch; /* of a place, and to the next */
  guint n, n_taken;
};

GstImagingSlab *
gst_imaging_slab_new (
    GstImagingContext *context, gsize size, guint n, ImkError *error)
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

GstImagingSlab *
gst_imaging_slab_ref (GstImagingSlab *self)
{
  g_atomic_int_inc (&self->ref_count);
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

gboolean
gst_imaging_slab_take (
    GstImagingSlab *self, gsize size, gpointer *host, gpointer *mapped)
{
  if (size != self->size || self->n_taken == self->n)
    return FALSE;
  *host = self->host + self->n_taken * self->pitch;
  *mapped = self->mapped + self->n_taken * self->pitch;
  self->n_taken++;
  return TRUE;
}

gboolean
gst_imaging_slab_are_neighbours (
    const GstImagingSlab *self, gconstpointer first, gconstpointer second)
{
  return (const guint8 *) second == (const guint8 *) first + self->pitch;
}
