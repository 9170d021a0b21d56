/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingstorage.h"

typedef GstImagingStorage Storage;

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

  mark->stream = stream;
  mark->pending = FALSE;
  if (!mark->event)
    IMK_TRY (device->event_new (&mark->event, error));
  IMK_TRY (device->event_record (mark->event, stream, error));
  mark->pending = TRUE;
  return IMK_OK;
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
  if (mark->pending)
    IMK_TRY (device_of (s)->event_synchronize (mark->event, error));
  mark->pending = FALSE;
  return IMK_OK;
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
  for (guint i = 0; i < s->readers->len; i++)
    IMK_TRY (
        mark_wait (s, &g_array_index (s->readers, Mark, i), stream, error));
  return IMK_OK;
}

static ImkStatus
synchronize_readers (Storage *s, ImkError *error)
{
  for (guint i = 0; i < s->readers->len; i++)
    IMK_TRY (mark_synchronize (s, &g_array_index (s->readers, Mark, i), error));
  return IMK_OK;
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
  return IMK_NO_MEMORY (error, "for %" G_GSIZE_FORMAT " bytes.", s->size);
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
  IMK_TRY (mark_wait (s, &view->written, stream, error));
  return write ? wait_for_readers (s, stream, error) : IMK_OK;
}

static ImkStatus
upload (Storage *s, gpointer stream, GstImagingStats *stats, ImkError *error)
{
  IMK_TRY (wait_for_view (s, &s->on_host, FALSE, stream, error));
  IMK_TRY (wait_for_view (s, &s->on_device, TRUE, stream, error));
  IMK_TRY (device_of (s)->copy (
      s->device, s->size, s->host, s->size, s->size, 1, stream, error));
  IMK_TRY (mark_record (s, &s->on_device.written, stream, error));
  IMK_TRY (record_reader (s, stream, error));
  s->on_device.valid = TRUE;
  gst_imaging_stats_add_uploaded (stats, s->size);
  return IMK_OK;
}

static ImkStatus
download (Storage *s, ImkError *error)
{
  gpointer stream = gst_imaging_context_stream (s->context);

  IMK_TRY (wait_for_view (s, &s->on_device, FALSE, stream, error));
  IMK_TRY (wait_for_view (s, &s->on_host, TRUE, stream, error));
  IMK_TRY (device_of (s)->copy (
      s->host, s->size, s->device, s->size, s->size, 1, stream, error));
  IMK_TRY (device_of (s)->stream_synchronize (stream, error));
  s->on_host.valid = TRUE;
  s->on_host.written.pending = FALSE;
  s->on_device.written.pending = FALSE;
  gst_imaging_stats_add_downloaded (s->stats, s->size);
  return IMK_OK;
}

/* Makes the host view available to the CPU; without @read its content is
 * undefined. */
static ImkStatus
sync_host (Storage *s, gboolean read, gboolean write, ImkError *error)
{
  IMK_TRY (need_host (s, error));
  if (read && !s->on_host.valid)
    IMK_TRY (download (s, error));
  IMK_TRY (mark_synchronize (s, &s->on_host.written, error));
  if (write)
    IMK_TRY (synchronize_readers (s, error));
  if (write) {
    s->on_host.valid = TRUE;
    s->on_device.valid = FALSE;
  }
  return IMK_OK;
}

/* Returns: whether sync_host () needs no call to the device, which may be lost
 */
static gboolean
is_host_ready (Storage *s, gboolean write)
{
  return s->host && s->on_host.valid && !s->on_host.written.pending &&
         !(write && has_readers (s));
}

/* A kernel that writes replaces all samples, so it needs no old ones; except if
 * its memory is a part of shared samples (gst_memory_share). */
static gboolean
must_read (Storage *s, GstMapFlags access)
{
  return (access & GST_MAP_READ) != 0 || g_atomic_int_get (&s->ref_count) > 1;
}

/* A kernel reads over the bus only if the device view is stale. It writes where
 * the allocator's mode says, even if the CPU has mapped the memory since. */
static gboolean
may_stay_on_host (const Storage *s, gboolean read)
{
  return s->mapped && s->on_host.valid &&
         !(read ? s->on_device.valid : s->mode == GST_IMAGING_MEMORY_DEVICE);
}

ImkStatus
gst_imaging_storage_acquire (Storage *s, gpointer stream, GstMapFlags access,
    gboolean allow_mapped, GstImagingStats *stats, gboolean *mapped,
    ImkError *error)
{
  gboolean write = (access & GST_MAP_WRITE) != 0;
  gboolean read = must_read (s, access);
  View *view;

  GST_IMAGING_HOLD (&s->lock);
  *mapped = is_one_block (s) || (allow_mapped && may_stay_on_host (s, read));
  view = *mapped ? &s->on_host : &s->on_device;
  if (!*mapped)
    IMK_TRY (need_device (s, error));
  if (read && !view->valid)
    IMK_TRY (upload (s, stream, stats, error));
  IMK_TRY (wait_for_view (s, view, write, stream, error));
  if (write) {
    s->on_host.valid = *mapped;
    s->on_device.valid = !*mapped;
  }
  return IMK_OK;
}

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

gpointer
gst_imaging_memory_writer (GstMemory *memory)
{
  Storage *s = gst_imaging_memory_storage (memory);
  const Mark *mark;

  GST_IMAGING_HOLD (&s->lock);
  mark = newest_mark (s);
  return mark->pending ? mark->stream : NULL;
}

ImkStatus
gst_imaging_storage_release (Storage *s, gpointer stream, GstMapFlags access,
    gboolean done, ImkError *error)
{
  GST_IMAGING_HOLD (&s->lock);
  if (done)
    forget_stream (s, stream);
  else if (access & GST_MAP_WRITE)
    IMK_TRY (mark_record (s, newest_mark (s), stream, error));
  else
    IMK_TRY (record_reader (s, stream, error));
  return IMK_OK;
}

/* Reads also for a map that only writes: gst_buffer_fill () writes a part. */
ImkStatus
gst_imaging_storage_map (Storage *s, gboolean write, ImkError *error)
{
  GST_IMAGING_HOLD (&s->lock);
  if (is_host_ready (s, write)) {
    s->on_device.valid = s->on_device.valid && !write;
    return IMK_OK;
  }
  GST_IMAGING_ENTER (s->context, error);
  return sync_host (s, TRUE, write, error);
}

/* --- copies -------------------------------------------------------------- */

/* Samples of @from that are on its device to the device of @to. */
static ImkStatus
copy_from_device (Storage *to, Storage *from, gsize offset, gsize size,
    gpointer stream, ImkError *error)
{
  IMK_TRY (wait_for_view (from, &from->on_device, FALSE, stream, error));
  IMK_TRY (device_of (from)->copy (to->device, size,
      (guint8 *) from->device + offset, size, size, 1, stream, error));
  return record_reader (from, stream, error);
}

static ImkStatus
copy_on_device (
    Storage *to, Storage *from, gsize offset, gsize size, ImkError *error)
{
  gpointer stream = gst_imaging_context_stream (from->context);

  to->on_host.valid = FALSE;
  to->on_device.valid = TRUE;
  IMK_TRY (need_device (to, error));
  IMK_TRY (copy_from_device (to, from, offset, size, stream, error));
  return mark_record (to, &to->on_device.written, stream, error);
}

static ImkStatus
copy_bytes (
    Storage *to, Storage *from, gsize offset, gsize size, ImkError *error)
{
  if (!from->on_host.valid && from->on_device.valid)
    return copy_on_device (to, from, offset, size, error);
  IMK_TRY (sync_host (from, TRUE, FALSE, error));
  IMK_TRY (sync_host (to, FALSE, TRUE, error));
  memcpy (to->host, (guint8 *) from->host + offset, size);
  return IMK_OK;
}

/* Events belong to a device and its streams record them, but any stream can
 * wait for them: @sent (transfer full) is of @from's device. */
static ImkStatus
send_to_peer (Storage *to, Storage *from, gsize offset, gsize size,
    gpointer *sent, ImkError *error)
{
  const ImkDevice *device = device_of (from);
  gpointer stream = gst_imaging_context_stream (from->context);

  IMK_TRY (device->event_new (sent, error));
  IMK_TRY (wait_for_view (to, &to->on_device, TRUE, stream, error));
  IMK_TRY (copy_from_device (to, from, offset, size, stream, error));
  return device->event_record (*sent, stream, error);
}

static ImkStatus
receive_from_peer (Storage *to, gpointer sent, ImkError *error)
{
  gpointer stream = gst_imaging_context_stream (to->context);

  GST_IMAGING_ENTER (to->context, error);
  to->on_host.valid = FALSE;
  to->on_device.valid = TRUE;
  IMK_TRY (device_of (to)->event_wait (sent, stream, error));
  return mark_record (to, &to->on_device.written, stream, error);
}

static ImkStatus
copy_to_peer (
    Storage *to, Storage *from, gsize offset, gsize size, ImkError *error)
{
  gpointer sent = NULL;
  ImkStatus status = send_to_peer (to, from, offset, size, &sent, error);

  if (status == IMK_OK)
    status = receive_from_peer (to, sent, error);
  device_of (from)->event_free (sent);
  return status;
}

ImkStatus
gst_imaging_storage_copy (
    Storage *to, Storage *from, gsize offset, gsize size, ImkError *error)
{
  GST_IMAGING_HOLD (&from->lock);
  GST_IMAGING_ENTER (from->context, error);
  return to->context == from->context
             ? copy_bytes (to, from, offset, size, error)
             : copy_to_peer (to, from, offset, size, error);
}

gboolean
gst_imaging_storage_is_on_device (Storage *s)
{
  GST_IMAGING_HOLD (&s->lock);
  return s->on_device.valid && !s->on_host.valid;
}

/* --- life -------------------------------------------------------------- */

Storage *
gst_imaging_storage_ref (Storage *s)
{
  g_atomic_int_inc (&s->ref_count);
  return s;
}

static void
free_views (Storage *s)
{
  const ImkDevice *device = device_of (s);

  /* The device may still use the memory; a failed device does not. */
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

void
gst_imaging_storage_unref (Storage *s)
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
  GST_IMAGING_HOLD (&allocator->lock);
  s->slab = gst_imaging_slab_take (&allocator->slab, s->context, s->size,
      allocator->slab_size, &s->host, &s->mapped, error);
  return s->slab ? IMK_OK : IMK_ERROR_MEMORY;
}

Storage *
gst_imaging_storage_new (
    GstImagingAllocator *allocator, gsize size, ImkError *error)
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
  gst_imaging_storage_unref (s);
  return NULL;
}
