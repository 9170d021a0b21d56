/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingmemory.h"

#include "gstimaging-private.h"
#include "gstimagingslab.h"

#define MEMORY_TYPE "GstImagingMemory"

/* That of CUDA's allocations. */
#define HOST_ALIGNMENT 256

/* A point in a stream that others wait for. */
typedef struct {
  gpointer stream;
  gpointer event;
  gboolean pending;
} Mark;

/* One of the two places of the samples. */
typedef struct {
  gboolean valid; /* holds the newest samples */
  Mark written;   /* the last write by the device */
} View;

/* The samples; several memories share one (gst_memory_share). The lock covers
 * everything below it and is held while the CPU waits for a copy: other
 * callers need the same bytes. */
typedef struct {
  gint ref_count;
  GstImagingContext *context;
  GstImagingStats *stats;
  GstImagingMemoryMode mode;
  gsize size;

  GMutex lock;
  /* one page-locked block, two addresses; or NULL; without is_page_locked (),
   * ordinary memory, of which the device knows nothing */
  gpointer host, mapped;
  GstImagingSlab *slab; /* that they are a place of; else their own */
  gpointer device;      /* NULL until wanted; never on an integrated GPU */
  View on_host, on_device;
  GArray *readers; /* of Mark, one a stream, for both views */
} Storage;

typedef struct {
  GstMemory memory;
  Storage *storage;
  GstBuffer *whole; /* (nullable): of which it is a part */
} GstImagingMemory;

struct _GstImagingAllocator {
  GstAllocator parent;
  GstImagingContext *context;
  GstImagingMemoryMode mode;
  GstImagingStats *stats;
  gboolean plain_on_failure;
  gsize slab_size; /* 0: each memory has a block of its own */

  GMutex lock;
  GstImagingSlab *slab; /* with places left */
};

G_DEFINE_FINAL_TYPE (
    GstImagingAllocator, gst_imaging_allocator, GST_TYPE_ALLOCATOR)

static Storage *
storage_of (GstMemory *memory)
{
  return ((GstImagingMemory *) memory)->storage;
}

static const ImkDevice *
device_of (Storage *s)
{
  return gst_imaging_context_device (s->context);
}

/* --- marks ------------------------------------------------------------- */

static ImkStatus
mark_record (Storage *s, Mark *mark, gpointer stream, ImkError *error)
{
  const ImkDevice *device = device_of (s);
  ImkStatus status = IMK_OK;

  if (!mark->event)
    status = device->event_new (&mark->event, error);
  if (status == IMK_OK)
    status = device->event_record (mark->event, stream, error);
  mark->stream = stream;
  mark->pending = status == IMK_OK;
  return status;
}

static ImkStatus
mark_wait (Storage *s, const Mark *mark, gpointer stream, ImkError *error)
{
  if (!mark->pending || mark->stream == stream)
    return IMK_OK;
  return device_of (s)->event_wait (mark->event, stream, error);
}

static ImkStatus
mark_synchronize (Storage *s, Mark *mark, ImkError *error)
{
  ImkStatus status = IMK_OK;

  if (mark->pending)
    status = device_of (s)->event_synchronize (mark->event, error);
  if (status == IMK_OK)
    mark->pending = FALSE;
  return status;
}

/* The mark of @stream; else one that is past; else a new one. */
static Mark *
reader_mark (Storage *s, gpointer stream)
{
  Mark fresh = {stream, NULL, FALSE}, *past = NULL;

  for (guint i = 0; i < s->readers->len; i++) {
    Mark *m = &g_array_index (s->readers, Mark, i);

    if (m->stream == stream)
      return m;
    if (!m->pending)
      past = m;
  }
  if (past)
    return past;
  g_array_append_val (s->readers, fresh);
  return &g_array_index (s->readers, Mark, s->readers->len - 1);
}

static ImkStatus
record_reader (Storage *s, gpointer stream, ImkError *error)
{
  return mark_record (s, reader_mark (s, stream), stream, error);
}

static ImkStatus
wait_for_readers (Storage *s, gpointer stream, ImkError *error)
{
  ImkStatus status = IMK_OK;

  for (guint i = 0; i < s->readers->len && status == IMK_OK; i++)
    status = mark_wait (s, &g_array_index (s->readers, Mark, i), stream, error);
  return status;
}

static ImkStatus
synchronize_readers (Storage *s, ImkError *error)
{
  ImkStatus status = IMK_OK;

  for (guint i = 0; i < s->readers->len && status == IMK_OK; i++)
    status = mark_synchronize (s, &g_array_index (s->readers, Mark, i), error);
  return status;
}

static gboolean
has_readers (Storage *s)
{
  for (guint i = 0; i < s->readers->len; i++)
    if (g_array_index (s->readers, Mark, i).pending)
      return TRUE;
  return FALSE;
}

/* --- views ------------------------------------------------------------- */

/* Whether the host view is page-locked. Before compute capability 7.2 a GPU
 * that shares its memory does not share the CPU's caches, and the CPU reads
 * page-locked memory uncached, many times slower than any copy costs. Only what
 * the CPU writes and nobody but the GPU reads may lie there. */
static gboolean
is_page_locked (const Storage *s)
{
  return gst_imaging_context_info (s->context)->io_coherent ||
         s->mode == GST_IMAGING_MEMORY_UPLOAD;
}

static ImkStatus
need_host (Storage *s, ImkError *error)
{
  if (s->host)
    return IMK_OK;
  if (is_page_locked (s))
    return device_of (s)->alloc_pinned (s->size, &s->host, &s->mapped, error);
  if (posix_memalign (&s->host, HOST_ALIGNMENT, s->size) == 0)
    return IMK_OK;
  s->host = NULL;
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory for %" G_GSIZE_FORMAT " bytes.", s->size);
}

static ImkStatus
need_device (Storage *s, ImkError *error)
{
  if (s->device)
    return IMK_OK;
  return device_of (s)->alloc_device (s->size, &s->device, error);
}

/* An integrated GPU works on the page-locked block itself. */
static gboolean
is_one_block (const Storage *s)
{
  return gst_imaging_context_info (s->context)->integrated &&
         is_page_locked (s);
}

/* @stream may read and write @view after this. */
static ImkStatus
wait_for_view (Storage *s, const View *view, gboolean write, gpointer stream,
    ImkError *error)
{
  ImkStatus status = mark_wait (s, &view->written, stream, error);

  return status == IMK_OK && write ? wait_for_readers (s, stream, error)
                                   : status;
}

static ImkStatus
upload (Storage *s, gpointer stream, GstImagingStats *stats, ImkError *error)
{
  ImkStatus status = wait_for_view (s, &s->on_host, FALSE, stream, error);

  if (status == IMK_OK)
    status = wait_for_view (s, &s->on_device, TRUE, stream, error);
  if (status == IMK_OK)
    status = device_of (s)->copy (
        s->device, s->size, s->host, s->size, s->size, 1, stream, error);
  if (status == IMK_OK)
    status = mark_record (s, &s->on_device.written, stream, error);
  if (status == IMK_OK)
    status = record_reader (s, stream, error);
  if (status != IMK_OK)
    return status;
  s->on_device.valid = TRUE;
  gst_imaging_stats_add_uploaded (stats, s->size);
  return IMK_OK;
}

static ImkStatus
download (Storage *s, ImkError *error)
{
  gpointer stream = gst_imaging_context_stream (s->context);
  const ImkDevice *device = device_of (s);
  ImkStatus status = wait_for_view (s, &s->on_device, FALSE, stream, error);

  if (status == IMK_OK)
    status = wait_for_view (s, &s->on_host, TRUE, stream, error);
  if (status == IMK_OK)
    status = device->copy (
        s->host, s->size, s->device, s->size, s->size, 1, stream, error);
  if (status == IMK_OK)
    status = device->stream_synchronize (stream, error);
  if (status != IMK_OK)
    return status;
  s->on_host.valid = TRUE;
  s->on_host.written.pending = FALSE;
  s->on_device.written.pending = FALSE;
  gst_imaging_stats_add_downloaded (s->stats, s->size);
  return IMK_OK;
}

/* The CPU is about to use the host view, with @read what is there now, or with
 * @write to change it. */
static ImkStatus
sync_host (Storage *s, gboolean read, gboolean write, ImkError *error)
{
  ImkStatus status = need_host (s, error);

  if (status == IMK_OK && read && !s->on_host.valid)
    status = download (s, error);
  if (status == IMK_OK)
    status = mark_synchronize (s, &s->on_host.written, error);
  if (status == IMK_OK && write)
    status = synchronize_readers (s, error);
  if (status == IMK_OK && write) {
    s->on_host.valid = TRUE;
    s->on_device.valid = FALSE;
  }
  return status;
}

/* No call to the device is needed for sync_host (): it may be gone for good
 * and the samples are still ours. */
static gboolean
is_host_ready (Storage *s, gboolean write)
{
  return s->host && s->on_host.valid && !s->on_host.written.pending &&
         !(write && has_readers (s));
}

/* A kernel that writes replaces everything and need not see what was there; one
 * that writes a part of shared samples (gst_memory_share) must. */
static gboolean
must_read (Storage *s, GstMapFlags access)
{
  return (access & GST_MAP_READ) != 0 || g_atomic_int_get (&s->ref_count) > 1;
}

/* What a kernel reads is on the device already, or is not; what it writes
 * belongs where it was born, wherever it was looked at since. */
static gboolean
may_stay_on_host (const Storage *s, gboolean read)
{
  return s->mapped && s->on_host.valid &&
         !(read ? s->on_device.valid : s->mode == GST_IMAGING_MEMORY_DEVICE);
}

static ImkStatus
acquire (Storage *s, gpointer stream, GstMapFlags access, gboolean allow_mapped,
    GstImagingStats *stats, gboolean *mapped, ImkError *error)
{
  gboolean write = (access & GST_MAP_WRITE) != 0;
  gboolean read = must_read (s, access);
  ImkStatus status = IMK_OK;
  View *view;

  *mapped = is_one_block (s) || (allow_mapped && may_stay_on_host (s, read));
  view = *mapped ? &s->on_host : &s->on_device;
  if (!*mapped)
    status = need_device (s, error);
  if (status == IMK_OK && read && !view->valid)
    status = upload (s, stream, stats, error);
  if (status == IMK_OK)
    status = wait_for_view (s, view, write, stream, error);
  if (status == IMK_OK && write) {
    s->on_host.valid = *mapped;
    s->on_device.valid = !*mapped;
  }
  return status;
}

ImkStatus
gst_imaging_memory_acquire (GstMemory *memory, gpointer stream,
    GstMapFlags access, gboolean allow_mapped, GstImagingStats *stats,
    gpointer *pointer, ImkLocation *location, ImkError *error)
{
  Storage *s = storage_of (memory);
  gboolean mapped = FALSE;
  ImkStatus status;

  if (!gst_mini_object_lock (GST_MINI_OBJECT_CAST (memory),
          (GstLockFlags) (access & GST_MAP_READWRITE)))
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "A buffer that others hold cannot be written.");
  g_mutex_lock (&s->lock);
  status = acquire (s, stream, access, allow_mapped, stats, &mapped, error);
  if (status == IMK_OK) {
    *pointer = (guint8 *) (mapped ? s->mapped : s->device) + memory->offset;
    *location = mapped ? IMK_LOCATION_HOST_MAPPED : IMK_LOCATION_DEVICE;
  }
  g_mutex_unlock (&s->lock);
  if (status != IMK_OK)
    gst_mini_object_unlock (GST_MINI_OBJECT_CAST (memory),
        (GstLockFlags) (access & GST_MAP_READWRITE));
  return status;
}

/* The caller has waited for @stream: nothing on it is pending. */
static void
forget_stream (Storage *s, gpointer stream)
{
  Mark *marks[] = {
      &s->on_host.written, &s->on_device.written, reader_mark (s, stream)};

  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (marks[i]->stream == stream)
      marks[i]->pending = FALSE;
}

/* Of the view that acquire () has just declared the only valid one. */
static Mark *
newest_mark (Storage *s)
{
  return s->on_device.valid ? &s->on_device.written : &s->on_host.written;
}

ImkStatus
gst_imaging_memory_release (GstMemory *memory, gpointer stream,
    GstMapFlags access, gboolean done, ImkError *error)
{
  Storage *s = storage_of (memory);
  ImkStatus status = IMK_OK;

  g_mutex_lock (&s->lock);
  if (done)
    forget_stream (s, stream);
  else if (access & GST_MAP_WRITE)
    status = mark_record (s, newest_mark (s), stream, error);
  else
    status = record_reader (s, stream, error);
  g_mutex_unlock (&s->lock);
  gst_mini_object_unlock (GST_MINI_OBJECT_CAST (memory),
      (GstLockFlags) (access & GST_MAP_READWRITE));
  return status;
}

/* --- storage ----------------------------------------------------------- */

static Storage *
storage_ref (Storage *s)
{
  g_atomic_int_inc (&s->ref_count);
  return s;
}

static void
free_views (Storage *s)
{
  const ImkDevice *device = device_of (s);

  /* What still runs on the memory has to end before the memory does. A failed
   * device has nothing running. */
  mark_synchronize (s, &s->on_host.written, NULL);
  mark_synchronize (s, &s->on_device.written, NULL);
  synchronize_readers (s, NULL);
  device->event_free (s->on_host.written.event);
  device->event_free (s->on_device.written.event);
  for (guint i = 0; i < s->readers->len; i++)
    device->event_free (g_array_index (s->readers, Mark, i).event);
  if (s->device)
    device->free_device (s->device);
  if (s->slab)
    gst_imaging_slab_unref (s->slab);
  else if (s->host && is_page_locked (s))
    device->free_pinned (s->host);
}

static void
storage_unref (Storage *s)
{
  if (!g_atomic_int_dec_and_test (&s->ref_count))
    return;
  if (gst_imaging_context_push (s->context, NULL) == IMK_OK) {
    free_views (s);
    gst_imaging_context_pop (s->context);
  }
  if (!is_page_locked (s))
    free (s->host);
  g_array_unref (s->readers);
  g_mutex_clear (&s->lock);
  if (s->stats)
    gst_imaging_stats_unref (s->stats);
  g_object_unref (s->context);
  g_free (s);
}

static ImkStatus
take_place (GstImagingAllocator *allocator, Storage *s, ImkError *error)
{
  g_mutex_lock (&allocator->lock);
  s->slab = gst_imaging_slab_take (&allocator->slab, s->context, s->size,
      allocator->slab_size, &s->host, &s->mapped, error);
  g_mutex_unlock (&allocator->lock);
  return s->slab ? IMK_OK : IMK_ERROR_MEMORY;
}

static Storage *
storage_new (GstImagingAllocator *allocator, gsize size, ImkError *error)
{
  Storage *s = g_new0 (Storage, 1);
  ImkStatus status;

  s->ref_count = 1;
  s->context = g_object_ref (allocator->context);
  s->stats = allocator->stats ? gst_imaging_stats_ref (allocator->stats) : NULL;
  s->mode = allocator->mode;
  s->size = size;
  s->readers = g_array_new (FALSE, FALSE, sizeof (Mark));
  g_mutex_init (&s->lock);

  status = gst_imaging_context_push (s->context, error);
  if (status == IMK_OK) {
    gboolean on_host = s->mode != GST_IMAGING_MEMORY_DEVICE || is_one_block (s);

    if (on_host && allocator->slab_size > 0 && is_page_locked (s))
      status = take_place (allocator, s, error);
    else
      status = on_host ? need_host (s, error) : need_device (s, error);
    s->on_host.valid = on_host;
    s->on_device.valid = !on_host;
    gst_imaging_context_pop (s->context);
  }
  if (status == IMK_OK)
    return s;
  storage_unref (s);
  return NULL;
}

static GstMemory *
memory_new (GstAllocator *allocator, Storage *storage, GstMemory *parent,
    GstMemoryFlags flags, gsize maxsize, gsize align, gsize offset, gsize size)
{
  GstImagingMemory *self = g_new0 (GstImagingMemory, 1);

  gst_memory_init (
      &self->memory, flags, allocator, parent, maxsize, align, offset, size);
  self->storage = storage;
  return &self->memory;
}

/* --- GstMemory --------------------------------------------------------- */

/* Also a map for writing alone needs what is there: gst_buffer_fill () maps so
 * and writes a part. */
static ImkStatus
map_host (Storage *s, gboolean write, ImkError *error)
{
  ImkStatus status;

  if (is_host_ready (s, write)) {
    s->on_device.valid = s->on_device.valid && !write;
    return IMK_OK;
  }
  status = gst_imaging_context_push (s->context, error);
  if (status != IMK_OK)
    return status;
  status = sync_host (s, TRUE, write, error);
  gst_imaging_context_pop (s->context);
  return status;
}

static gpointer
map_full (GstMemory *memory, GstMapInfo *info, gsize maxsize)
{
  Storage *s = storage_of (memory);
  ImkError error;
  ImkStatus status;

  g_mutex_lock (&s->lock);
  status = map_host (s, (info->flags & GST_MAP_WRITE) != 0, &error);
  g_mutex_unlock (&s->lock);
  if (status == IMK_OK)
    return s->host;
  GST_ERROR ("Mapping %" G_GSIZE_FORMAT " bytes for the CPU failed. %s",
      s->size, error.message);
  return NULL;
}

static void
unmap_full (GstMemory *memory, GstMapInfo *info)
{
}

GstBuffer *
gst_imaging_buffer_part (GstBuffer *whole, gsize offset, gsize size)
{
  GstMemory *memory = gst_buffer_peek_memory (whole, 0), *part;
  GstBuffer *buffer;

  if (!gst_is_imaging_memory (memory)) {
    buffer =
        gst_buffer_copy_region (whole, GST_BUFFER_COPY_MEMORY, offset, size);
    gst_buffer_add_parent_buffer_meta (buffer, whole);
    return buffer;
  }
  buffer = gst_buffer_new ();
  part = memory_new (memory->allocator, storage_ref (storage_of (memory)), NULL,
      GST_MINI_OBJECT_FLAGS (memory) | GST_MEMORY_FLAG_READONLY,
      memory->maxsize, memory->align, memory->offset + offset, size);
  ((GstImagingMemory *) part)->whole = gst_buffer_ref (whole);
  gst_buffer_append_memory (buffer, part);
  return buffer;
}

static gboolean
is_span (GstMemory *first, GstMemory *second, gsize *offset)
{
  if (offset)
    *offset = first->offset - first->parent->offset;
  return storage_of (first) == storage_of (second) &&
         first->offset + first->size == second->offset;
}

static GstMemory *
share (GstMemory *memory, gssize offset, gssize size)
{
  GstMemory *parent = memory->parent ? memory->parent : memory;

  if (size == -1)
    size = memory->size - offset;
  return memory_new (memory->allocator, storage_ref (storage_of (memory)),
      parent,
      GST_MINI_OBJECT_FLAGS (parent) | GST_MINI_OBJECT_FLAG_LOCK_READONLY,
      memory->maxsize, memory->align, memory->offset + offset, size);
}

static ImkStatus
copy_on_device (
    Storage *to, Storage *from, gsize offset, gsize size, ImkError *error)
{
  gpointer stream = gst_imaging_context_stream (from->context);
  ImkStatus status = need_device (to, error);

  if (status == IMK_OK)
    status = wait_for_view (from, &from->on_device, FALSE, stream, error);
  if (status == IMK_OK)
    status = device_of (from)->copy (to->device, size,
        (guint8 *) from->device + offset, size, size, 1, stream, error);
  if (status == IMK_OK)
    status = mark_record (to, &to->on_device.written, stream, error);
  if (status == IMK_OK)
    status = record_reader (from, stream, error);
  to->on_host.valid = FALSE;
  to->on_device.valid = TRUE;
  return status;
}

/* On the device when the newest samples are there alone, else on the host. */
static ImkStatus
copy_bytes (
    Storage *to, Storage *from, gsize offset, gsize size, ImkError *error)
{
  ImkStatus status;

  if (!from->on_host.valid && from->on_device.valid)
    return copy_on_device (to, from, offset, size, error);
  status = sync_host (from, TRUE, FALSE, error);
  if (status == IMK_OK)
    status = sync_host (to, FALSE, TRUE, error);
  if (status == IMK_OK)
    memcpy (to->host, (guint8 *) from->host + offset, size);
  return status;
}

static GstMemory *
copy (GstMemory *memory, gssize offset, gssize size)
{
  GstImagingAllocator *allocator = GST_IMAGING_ALLOCATOR (memory->allocator);
  Storage *from = storage_of (memory), *to;
  ImkError error;
  ImkStatus status;

  if (size == -1)
    size = (gssize) memory->size > offset ? memory->size - offset : 0;
  to = storage_new (allocator, MAX (size, 1), &error);
  if (!to)
    goto failed;
  g_mutex_lock (&from->lock);
  status = gst_imaging_context_push (from->context, &error);
  if (status == IMK_OK) {
    status = copy_bytes (to, from, memory->offset + offset, size, &error);
    gst_imaging_context_pop (from->context);
  }
  g_mutex_unlock (&from->lock);
  if (status == IMK_OK)
    return memory_new (
        memory->allocator, to, NULL, 0, to->size, memory->align, 0, size);
  storage_unref (to);
failed:
  GST_ERROR ("Copying %" G_GSSIZE_FORMAT " bytes on the device failed. %s",
      size, error.message);
  return NULL;
}

gboolean
gst_is_imaging_memory (GstMemory *memory)
{
  return GST_IS_IMAGING_ALLOCATOR (memory->allocator);
}

GstImagingContext *
gst_imaging_memory_context (GstMemory *memory)
{
  return storage_of (memory)->context;
}

gboolean
gst_imaging_memory_is_on_device (GstMemory *memory)
{
  Storage *s;
  gboolean on_device;

  if (!gst_is_imaging_memory (memory))
    return FALSE;
  s = storage_of (memory);
  g_mutex_lock (&s->lock);
  on_device = s->on_device.valid && !s->on_host.valid;
  g_mutex_unlock (&s->lock);
  return on_device;
}

const gchar *
gst_imaging_buffer_memory_name (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);

  if (!gst_is_imaging_memory (memory))
    return "system";
  return gst_imaging_memory_is_on_device (memory) ? "device" : "pinned";
}

gsize
gst_imaging_memory_pitch (gsize size)
{
  return (size + HOST_ALIGNMENT - 1) / HOST_ALIGNMENT * HOST_ALIGNMENT;
}

gconstpointer
gst_imaging_memory_address (GstMemory *memory)
{
  return (const guint8 *) storage_of (memory)->host + memory->offset;
}

gboolean
gst_imaging_memory_are_neighbours (GstMemory *first, GstMemory *second)
{
  Storage *a = storage_of (first), *b = storage_of (second);

  return a->slab && a->slab == b->slab && first->offset == second->offset &&
         gst_imaging_slab_are_neighbours (a->slab, a->host, b->host);
}

/* --- GstAllocator ------------------------------------------------------ */

static GstMemory *
alloc (GstAllocator *allocator, gsize size, GstAllocationParams *params)
{
  gsize maxsize = size + params->prefix + params->padding;
  ImkError error;
  Storage *s =
      storage_new (GST_IMAGING_ALLOCATOR (allocator), MAX (maxsize, 1), &error);

  /* Both allocations of CUDA are aligned to 256 bytes, beyond any request. */
  if (s)
    return memory_new (allocator, s, NULL,
        params->flags &
            ~(GST_MEMORY_FLAG_ZERO_PREFIXED | GST_MEMORY_FLAG_ZERO_PADDED),
        maxsize, params->align, params->prefix, size);
  if (GST_IMAGING_ALLOCATOR (allocator)->plain_on_failure) {
    GST_WARNING ("Ordinary memory for %" G_GSIZE_FORMAT " bytes. %s", maxsize,
        error.message);
    return gst_allocator_alloc (NULL, size, params);
  }
  GST_ERROR ("Allocating %" G_GSIZE_FORMAT " bytes failed. %s", maxsize,
      error.message);
  return NULL;
}

static void
free_memory (GstAllocator *allocator, GstMemory *memory)
{
  GstBuffer *whole = ((GstImagingMemory *) memory)->whole;

  storage_unref (storage_of (memory));
  g_free (memory);
  gst_clear_buffer (&whole); /* to a pool, which wants it to itself */
}

GstAllocator *
gst_imaging_allocator_new (GstImagingContext *context,
    GstImagingMemoryMode mode, GstImagingStats *stats)
{
  GstImagingAllocator *self = g_object_new (GST_TYPE_IMAGING_ALLOCATOR, NULL);

  self->context = g_object_ref (context);
  self->mode = mode;
  self->stats = stats ? gst_imaging_stats_ref (stats) : NULL;
  return gst_object_ref_sink (GST_ALLOCATOR (self));
}

void
gst_imaging_allocator_allow_plain (GstImagingAllocator *self)
{
  self->plain_on_failure = TRUE;
}

void
gst_imaging_allocator_use_slabs (GstImagingAllocator *self, gsize size)
{
  self->slab_size = size;
}

gboolean
gst_imaging_allocator_has_slabs (GstImagingAllocator *self)
{
  return self->slab_size > 0 && self->mode != GST_IMAGING_MEMORY_DEVICE;
}

GstImagingContext *
gst_imaging_allocator_context (GstImagingAllocator *self)
{
  return self->context;
}

static void
gst_imaging_allocator_finalize (GObject *object)
{
  GstImagingAllocator *self = GST_IMAGING_ALLOCATOR (object);

  if (self->slab && gst_imaging_context_push (self->context, NULL) == IMK_OK) {
    gst_imaging_slab_unref (self->slab);
    gst_imaging_context_pop (self->context);
  }
  g_mutex_clear (&self->lock);
  g_object_unref (self->context);
  if (self->stats)
    gst_imaging_stats_unref (self->stats);
  G_OBJECT_CLASS (gst_imaging_allocator_parent_class)->finalize (object);
}

static void
gst_imaging_allocator_class_init (GstImagingAllocatorClass *klass)
{
  GstAllocatorClass *allocator_class = GST_ALLOCATOR_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gst_imaging_allocator_finalize;
  allocator_class->alloc = alloc;
  allocator_class->free = free_memory;
}

static void
gst_imaging_allocator_init (GstImagingAllocator *self)
{
  GstAllocator *allocator = GST_ALLOCATOR (self);

  gst_imaging_init_debug ();
  g_mutex_init (&self->lock);
  allocator->mem_type = MEMORY_TYPE;
  allocator->mem_map_full = map_full;
  allocator->mem_unmap_full = unmap_full;
  allocator->mem_share = share;
  allocator->mem_copy = copy;
  allocator->mem_is_span = is_span;
  GST_OBJECT_FLAG_SET (allocator, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}
