/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructdevice.h"

#include <string.h>

#include "gstimagingmemory.h"

enum { SLOPES, FLAGS, N_INPUTS };

struct _GstShReconstructDevice {
  GstImagingEngine *engine;
  GstMemory *copies[N_INPUTS]; /* (nullable): page-locked, as large as needed */
  gpointer taken_over; /* (nullable): the stream of who makes the slopes */

  /* of the frame at hand */
  gpointer stream;
  GstMemory *acquired[N_INPUTS]; /* (nullable) */
  ImkImage images[N_INPUTS];
};

GstShReconstructDevice *
gst_sh_reconstruct_device_new (GstImagingEngine *engine)
{
  GstShReconstructDevice *self = g_new0 (GstShReconstructDevice, 1);

  self->engine = engine;
  return self;
}

void
gst_sh_reconstruct_device_take_over (
    GstShReconstructDevice *self, gpointer stream)
{
  self->taken_over = stream;
}

void
gst_sh_reconstruct_device_forget (GstShReconstructDevice *self)
{
  self->taken_over = NULL;
  for (guint i = 0; i < N_INPUTS; i++)
    g_clear_pointer (&self->copies[i], gst_memory_unref);
}

void
gst_sh_reconstruct_device_free (GstShReconstructDevice *self)
{
  gst_sh_reconstruct_device_forget (self);
  g_free (self);
}

/* --- where the kernel reads ----------------------------------------------- */

/* Returns: (transfer none) (nullable): the memory of @buffer, if the device
 * reaches it */
static GstMemory *
reachable_memory (GstShReconstructDevice *self, GstBuffer *buffer)
{
  GstMemory *memory = gst_imaging_buffer_peek_memory (buffer);

  return memory && gst_imaging_memory_context (memory) ==
                       gst_imaging_engine_context (self->engine)
             ? memory
             : NULL;
}

/* @at: byte of @memory where the image begins */
static ImkStatus
acquire (GstShReconstructDevice *self, guint input, GstMemory *memory, gsize at,
    ImkError *error)
{
  ImkImage *image = &self->images[input];
  gpointer data;
  ImkStatus status = gst_imaging_memory_acquire (memory, self->stream,
      GST_MAP_READ, TRUE, gst_imaging_engine_stats (self->engine), &data,
      &image->location, error);

  if (status != IMK_OK)
    return status;
  image->data = (guint8 *) data + at;
  self->acquired[input] = memory;
  return IMK_OK;
}

static gboolean
ensure_copy (GstShReconstructDevice *self, guint input, gsize size)
{
  GstMemory **copy = &self->copies[input];
  GstAllocator *allocator;

  if (*copy && gst_memory_get_sizes (*copy, NULL, NULL) == size)
    return TRUE;
  g_clear_pointer (copy, gst_memory_unref);
  allocator = gst_imaging_engine_allocator_new (
      self->engine, GST_IMAGING_MEMORY_UPLOAD);
  *copy = gst_allocator_alloc (allocator, size, NULL);
  gst_object_unref (allocator);
  return *copy != NULL;
}

/* From memory of the CPU. */
static ImkStatus
upload (GstShReconstructDevice *self, guint input, gconstpointer from,
    gsize size, ImkError *error)
{
  GstMapInfo map;

  if (!ensure_copy (self, input, size) ||
      !gst_memory_map (self->copies[input], &map, GST_MAP_WRITE))
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no page-locked memory for %" G_GSIZE_FORMAT
        " bytes of slopes.",
        size);
  memcpy (map.data, from, size);
  gst_memory_unmap (self->copies[input], &map);
  gst_imaging_stats_add_copied (gst_imaging_engine_stats (self->engine), size);
  return acquire (self, input, self->copies[input], 0, error);
}

static ImkStatus
take_slopes (
    GstShReconstructDevice *self, GstShReconstructSlopes *s, ImkError *error)
{
  GstMemory *memory =
      s->cell_step > 0 ? NULL : reachable_memory (self, s->slopes_buffer);
  ImkStatus status;

  if (memory)
    return acquire (self, SLOPES, memory, s->slopes_at, error);
  status = gst_sh_reconstruct_slopes_map (s, error);
  return status == IMK_OK ? upload (self, SLOPES, s->slopes,
                                2 * s->n_cells * sizeof (gfloat), error)
                          : status;
}

static ImkStatus
take_flags (
    GstShReconstructDevice *self, GstShReconstructSlopes *s, ImkError *error)
{
  GstMemory *memory = reachable_memory (self, s->flags_buffer);
  ImkStatus status;

  if (memory)
    return acquire (self, FLAGS, memory, s->flags_at, error);
  status = gst_sh_reconstruct_slopes_map (s, error);
  return status == IMK_OK ? upload (self, FLAGS, s->flags, s->n_cells, error)
                          : status;
}

static void
release_all (GstShReconstructDevice *self, gboolean done)
{
  for (guint i = 0; i < N_INPUTS; i++)
    if (self->acquired[i]) {
      gst_imaging_memory_release (
          self->acquired[i], self->stream, GST_MAP_READ, done, NULL);
      self->acquired[i] = NULL;
    }
}

/* --- a frame -------------------------------------------------------------- */

/* On the stream that makes the slopes nothing waits for an event. */
static gpointer
stream_of (GstShReconstructDevice *self, const GstShReconstructSlopes *s)
{
  GstMemory *memory = reachable_memory (self, s->slopes_buffer);

  return self->taken_over && memory &&
                 gst_imaging_memory_writer (memory) == self->taken_over
             ? self->taken_over
             : gst_imaging_engine_stream (self->engine);
}

static ImkStatus
begin_on_device (GstShReconstructDevice *self, ImkShreconstruct *kernel,
    GstShReconstructSlopes *s, ImkError *error)
{
  ImkStatus status;

  gst_sh_reconstruct_slopes_images (
      s, &self->images[SLOPES], &self->images[FLAGS]);
  self->stream = stream_of (self, s);
  gst_imaging_engine_note_memory (
      self->engine, gst_imaging_buffer_memory_name (s->slopes_buffer));
  status = take_slopes (self, s, error);
  if (status == IMK_OK && s->flags_buffer)
    status = take_flags (self, s, error);
  if (status == IMK_OK)
    status = imk_shreconstruct_begin (kernel, &self->images[SLOPES],
        s->flags_buffer ? &self->images[FLAGS] : NULL, self->stream, error);
  if (status != IMK_OK)
    release_all (self, FALSE);
  return status;
}

ImkStatus
gst_sh_reconstruct_device_begin (GstShReconstructDevice *self,
    ImkShreconstruct *kernel, GstShReconstructSlopes *slopes, ImkError *error)
{
  GstImagingContext *context = gst_imaging_engine_context (self->engine);
  ImkStatus status = gst_imaging_context_push (context, error);

  if (status != IMK_OK)
    return status;
  status = begin_on_device (self, kernel, slopes, error);
  gst_imaging_context_pop (context);
  return status;
}

ImkStatus
gst_sh_reconstruct_device_end (GstShReconstructDevice *self,
    ImkShreconstruct *kernel, gfloat *commands, ImkShreconstructReport *report,
    ImkError *error)
{
  GstImagingContext *context = gst_imaging_engine_context (self->engine);
  ImkStatus status = gst_imaging_context_push (context, error);

  if (status == IMK_OK)
    status =
        imk_shreconstruct_end (kernel, commands, report, self->stream, error);
  else
    return status;
  release_all (self, status == IMK_OK);
  gst_imaging_context_pop (context);
  return status;
}
