/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscandevice.h"

#include <string.h>

#include "gstoctbscaninput.h"
#include "gstoctbscanplan.h"

enum { IN = N_OUTPUTS, N_PLANES };

/* A buffer in use by the device: host memory with one or several places in a
 * block of the device, or a frame that the device reaches itself. */
typedef struct {
  gboolean is_block, is_mapped;
  guint at, n; /* the first of its places */
  gsize step;  /* bytes in the buffer from one B-scan to the next */
  GstMapInfo map;
  GstImagingFrame frame;
  ImkImage image;
} Plane;

/* The places of one kind of buffer on the device. */
typedef struct {
  guint8 *block;
  gsize pitch;
  Plane *planes; /* of works, max_jobs */
} Places;

/* Room for one batch. */
typedef struct {
  gpointer stream; /* of the kernels; of the copies as well when it is alone */
  gpointer uploaded, computed, done; /* events */
  gboolean is_alone, is_launched;
  /* max_jobs, in mapped memory, by the address of each processor */
  GstOctBscanReport *reports, *device_reports;
  Places places[N_PLANES];
  GstOctBscanWork **works;
  guint n, n_jobs;
  ImkOctbscanJob *jobs;
  ImkImage *images; /* N_PLANES a job, as kernels take them */
  ImkImage *tracks; /* of the reports of the jobs, likewise */
} Slot;

struct _GstOctBscanDevice {
  GstOctBscan *element;
  GstImagingContext *context;
  const ImkDevice *device;
  ImkOctbscan *kernel;
  gboolean owns_kernel;
  guint max_jobs, n_slots;
  /* A copy to the device on a stream that has copied from it before may have
   * to wait for what other streams copy from it. */
  gpointer upload, download; /* streams */
  gint n_flying;             /* atomic; batches between launch and finish */
  Slot *slots;

  GMutex lock; /* of the kernel */
};

/* --- life ----------------------------------------------------------------- */

static ImkStatus
slot_open (GstOctBscanDevice *self, Slot *slot, ImkError *error)
{
  gpointer *events[] = {&slot->uploaded, &slot->computed, &slot->done};

  slot->works = g_new0 (GstOctBscanWork *, self->max_jobs);
  slot->jobs = g_new0 (ImkOctbscanJob, self->max_jobs);
  slot->images = g_new0 (ImkImage, self->max_jobs * N_PLANES);
  slot->tracks = g_new0 (ImkImage, self->max_jobs);
  for (guint i = 0; i < N_PLANES; i++)
    slot->places[i].planes = g_new0 (Plane, self->max_jobs);
  IMK_TRY (self->device->stream_new (&slot->stream, error));
  IMK_TRY (self->device->alloc_pinned (
      self->max_jobs * sizeof (GstOctBscanReport), (gpointer *) &slot->reports,
      (gpointer *) &slot->device_reports, error));
  for (guint i = 0; i < G_N_ELEMENTS (events); i++)
    IMK_TRY (self->device->event_new (events[i], error));
  return IMK_OK;
}

static void
slot_close (GstOctBscanDevice *self, Slot *slot, gboolean is_current)
{
  gpointer events[] = {slot->uploaded, slot->computed, slot->done};

  for (guint i = 0; i < G_N_ELEMENTS (events) && is_current; i++)
    self->device->event_free (events[i]);
  for (guint i = 0; i < N_PLANES && is_current; i++)
    self->device->free_device (slot->places[i].block);
  for (guint i = 0; i < N_PLANES; i++)
    g_free (slot->places[i].planes);
  if (is_current && slot->stream)
    self->device->stream_free (slot->stream);
  if (is_current && slot->reports)
    self->device->free_pinned (slot->reports);
  g_free (slot->works);
  g_free (slot->jobs);
  g_free (slot->images);
  g_free (slot->tracks);
}

GstOctBscanDevice *
gst_oct_bscan_device_new (GstOctBscan *element, GstImagingContext *context,
    ImkOctbscan *kernel, guint n_slots, ImkError *error)
{
  GstOctBscanDevice *self = g_new0 (GstOctBscanDevice, 1);
  ImkStatus status = gst_imaging_context_push (context, error);

  g_mutex_init (&self->lock);
  self->element = element;
  self->context = g_object_ref (context);
  self->device = gst_imaging_context_device (context);
  self->kernel = kernel;
  self->max_jobs = element->open.config.max_jobs;
  self->n_slots = n_slots;
  self->slots = g_new0 (Slot, n_slots);
  if (status == IMK_OK) {
    if (!kernel) {
      status = gst_oct_bscan_kernel_new (
          element, IMK_BACKEND_CUDA, &self->kernel, error);
      self->owns_kernel = status == IMK_OK;
    }
    if (status == IMK_OK)
      status = self->device->stream_new (&self->upload, error);
    if (status == IMK_OK)
      status = self->device->stream_new (&self->download, error);
    for (guint i = 0; i < n_slots && status == IMK_OK; i++)
      status = slot_open (self, &self->slots[i], error);
    gst_imaging_context_pop (context);
  }
  if (status == IMK_OK)
    return self;
  gst_oct_bscan_device_free (self);
  return NULL;
}

void
gst_oct_bscan_device_free (GstOctBscanDevice *self)
{
  gboolean is_current;

  if (!self)
    return;
  /* a lost context has freed its memory */
  is_current = gst_imaging_context_push (self->context, NULL) == IMK_OK;
  for (guint i = 0; i < self->n_slots; i++)
    slot_close (self, &self->slots[i], is_current);
  if (self->owns_kernel)
    imk_octbscan_free (self->kernel);
  if (is_current) {
    self->device->stream_free (self->upload);
    self->device->stream_free (self->download);
    gst_imaging_context_pop (self->context);
  }
  g_free (self->slots);
  g_object_unref (self->context);
  g_mutex_clear (&self->lock);
  g_free (self);
}

gint
gst_oct_bscan_device_id (GstOctBscanDevice *self)
{
  return gst_imaging_context_device_id (self->context);
}

/* --- buffers -------------------------------------------------------------- */

static ImkImage
describe (const GstVideoInfo *info, guint8 *data, gint stride)
{
  return (ImkImage){
      .data = data,
      .stride = stride,
      .width = info->width,
      .height = info->height,
      .channels = 1,
      .type = GST_VIDEO_INFO_FORMAT (info) == GST_VIDEO_FORMAT_GRAY8
                  ? IMK_TYPE_U8
                  : IMK_TYPE_U16,
      .location = IMK_LOCATION_DEVICE,
  };
}

/* Returns: whether samples are copied to and from the card. Ordinary memory
 * also is, if the device that would lock its pages is lost. */
static gboolean
is_copied (GstOctBscanDevice *self, GstBuffer *buffer)
{
  return !gst_oct_bscan_is_on_device (buffer) &&
         !gst_imaging_context_info (self->context)->integrated;
}

/* Assigns places in the block. Returns: FALSE if the buffer does not fit */
static gboolean
take_place (Places *p, Plane *plane, GstBuffer *buffer,
    const GstVideoInfo *info, GstMapFlags access)
{
  GstVideoMeta *meta = gst_buffer_get_video_meta (buffer);
  gsize offset = meta ? meta->offset[0] : info->offset[0];
  gint stride = meta ? meta->stride[0] : info->stride[0];
  gsize row = (gsize) info->width * GST_VIDEO_INFO_COMP_PSTRIDE (info, 0);
  gsize before = (plane->n - 1) * plane->step; /* of those before the last */

  if (!gst_buffer_map (buffer, &plane->map, access))
    return FALSE;
  if (stride > 0 && (plane->n > 1 || plane->map.size <= p->pitch) &&
      before + offset + (gsize) (info->height - 1) * stride + row <=
          plane->map.size) {
    plane->image =
        describe (info, p->block + plane->at * p->pitch + offset, stride);
    plane->is_block = plane->is_mapped = TRUE;
    return TRUE;
  }
  gst_buffer_unmap (buffer, &plane->map);
  return FALSE;
}

static ImkStatus
need_block (GstOctBscanDevice *self, Places *p, const GstVideoInfo *info,
    ImkError *error)
{
  gsize pitch = gst_imaging_memory_pitch (info->size);
  gpointer block;

  if (p->block && p->pitch == pitch)
    return IMK_OK;
  self->device->free_device (g_steal_pointer (&p->block));
  IMK_TRY (self->device->alloc_device (pitch * self->max_jobs, &block, error));
  p->block = block;
  p->pitch = pitch;
  return IMK_OK;
}

static ImkStatus
map_plane (GstOctBscanDevice *self, Slot *slot, guint kind, Plane *plane,
    GstBuffer *buffer, const GstVideoInfo *info, gboolean as_block,
    ImkError *error)
{
  GstMapFlags access = kind == IN ? GST_MAP_READ : GST_MAP_WRITE;
  Places *p = &slot->places[kind];

  plane->is_block = plane->is_mapped = FALSE;
  if (as_block)
    IMK_TRY (need_block (self, p, info, error));
  if (as_block && take_place (p, plane, buffer, info, access))
    return IMK_OK;
  if (plane->n > 1)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "A buffer of %u B-scans cannot be read or written.", plane->n);
  IMK_TRY (gst_imaging_engine_map_on (self->element->base.engine, buffer, info,
      access, GST_IMAGING_REACH_DEVICE, slot->stream, &plane->frame, error));
  plane->image = plane->frame.planes[0];
  plane->is_mapped = TRUE;
  return IMK_OK;
}

static ImkStatus
map_work (GstOctBscanDevice *self, Slot *slot, guint i, ImkError *error)
{
  GstOctBscanWork *w = slot->works[i];
  Plane *planes[N_PLANES];

  for (guint kind = 0; kind < N_PLANES; kind++) {
    planes[kind] = &slot->places[kind].planes[i];
    *planes[kind] = (Plane){.at = slot->n_jobs,
        .n = w->n,
        .step = kind == IN ? gst_oct_bscan_work_in_step (self->element)
                           : gst_oct_bscan_pad_step (&w->snapshot->info[kind])};
  }
  slot->n_jobs += w->n;
  if (w->source)
    IMK_TRY (map_plane (self, slot, IN, planes[IN], w->source,
        gst_imaging_engine_info (self->element->base.engine),
        is_copied (self, w->source), error));
  for (guint o = 0; o < N_OUTPUTS; o++)
    if (w->out[o])
      IMK_TRY (map_plane (self, slot, o, planes[o], w->out[o],
          &w->snapshot->info[o], w->to_host, error));
  return IMK_OK;
}

static GstBuffer *
buffer_of (Slot *slot, guint kind, guint i)
{
  return kind == IN ? slot->works[i]->source : slot->works[i]->out[kind];
}

/* @status: of the work; IMK_OK when the stream is idle
 * Returns: the first failure, with @error */
static ImkStatus
unmap_all (Slot *slot, ImkStatus status, ImkError *error)
{
  gboolean done = status == IMK_OK;

  for (guint kind = 0; kind < N_PLANES; kind++)
    for (guint i = 0; i < slot->n; i++) {
      Plane *plane = &slot->places[kind].planes[i];

      if (plane->is_mapped && plane->is_block)
        gst_buffer_unmap (buffer_of (slot, kind, i), &plane->map);
      else if (plane->is_mapped)
        status = gst_imaging_frame_end (&plane->frame, done, status, error);
      plane->is_mapped = FALSE;
    }
  return status;
}

/* --- copies --------------------------------------------------------------- */

static gboolean
are_neighbours (const Places *p, const Plane *first, const Plane *second)
{
  GstMemory *a = first->map.memory, *b = second->map.memory;

  return first->n == 1 && second->n == 1 && second->is_mapped &&
         second->is_block && gst_is_imaging_memory (a) &&
         gst_is_imaging_memory (b) &&
         gst_imaging_memory_pitch (first->map.maxsize) == p->pitch &&
         gst_imaging_memory_are_neighbours (a, b);
}

/* Returns: how many planes from @i on are contiguous in both memories */
static guint
count_run (const Slot *slot, const Places *p, guint i)
{
  guint end = i + 1;

  while (
      end < slot->n && are_neighbours (p, &p->planes[end - 1], &p->planes[end]))
    end++;
  return end - i;
}

/* Copies @rows of @row bytes between the block and host memory. */
static ImkStatus
copy_rows (GstOctBscanDevice *self, guint kind, guint8 *block, gsize pitch,
    guint8 *host, gsize step, gsize row, guint rows, gpointer stream,
    ImkError *error)
{
  GstImagingStats *stats =
      gst_imaging_engine_stats (self->element->base.engine);

  if (kind == IN)
    gst_imaging_stats_add_uploaded (stats, rows * row);
  else
    gst_imaging_stats_add_downloaded (stats, rows * row);
  if (pitch ==
      step) { /* what is between rows is less than a copy of rows costs */
    row += (rows - 1) * step;
    rows = 1;
  }
  return kind == IN ? self->device->copy (
                          block, pitch, host, step, row, rows, stream, error)
                    : self->device->copy (
                          host, step, block, pitch, row, rows, stream, error);
}

static ImkStatus
copy_blocks (GstOctBscanDevice *self, Slot *slot, guint kind, gpointer stream,
    ImkError *error)
{
  const Places *p = &slot->places[kind];
  guint n;

  for (guint i = 0; i < slot->n; i += n) {
    const Plane *plane = &p->planes[i];
    gboolean has_many = plane->n > 1;
    const GstVideoInfo *info =
        kind == IN ? gst_imaging_engine_info (self->element->base.engine)
                   : &slot->works[i]->snapshot->info[kind];

    n = 1;
    if (!plane->is_mapped || !plane->is_block)
      continue;
    if (!has_many)
      n = count_run (slot, p, i);
    IMK_TRY (copy_rows (self, kind, p->block + plane->at * p->pitch, p->pitch,
        plane->map.data, has_many ? plane->step : p->pitch,
        has_many ? info->size : plane->map.size, has_many ? plane->n : n,
        stream, error));
  }
  return IMK_OK;
}

/* --- before the first B-scan ---------------------------------------------- */

/* CUDA loads kernels at their first launch, and the first use of memory is
 * slow. So the block is processed once before the first B-scan, unless the
 * kernel remembers B-scans or their pattern. */
static ImkStatus
warm_up (GstOctBscanDevice *self, ImkError *error)
{
  const GstVideoInfo *info =
      gst_imaging_engine_info (self->element->base.engine);
  Slot *slot = &self->slots[0];
  ImkImage in = describe (info, slot->places[IN].block, info->stride[0]);
  guint32 width, height;
  ImkImage out;
  ImkOctbscanJob job = {.in = &in, .db = &out};
  gpointer block = NULL;
  ImkStatus status;

  if (imk_octbscan_has_history (&self->element->open.config) ||
      self->element->open.config.fixed_pattern !=
          IMK_OCTBSCAN_FIXED_PATTERN_NONE)
    return IMK_OK;
  gst_oct_bscan_input_image (self->element, &in);
  imk_octbscan_size (&self->element->open.config, &width, &height);
  status = self->device->alloc_device ((gsize) width * height, &block, error);
  out = (ImkImage){
      block, width, width, height, 1, IMK_TYPE_U8, IMK_LOCATION_DEVICE};
  if (status == IMK_OK)
    status = imk_octbscan_process (self->kernel, &job, 1, slot->stream, error);
  if (status == IMK_OK)
    status = self->device->stream_synchronize (slot->stream, error);
  self->device->free_device (block);
  /* no background of what was in the block */
  return status == IMK_OK ? imk_octbscan_reset (self->kernel, error) : status;
}

/* Allocates the blocks of all slots, too. */
ImkStatus
gst_oct_bscan_device_prepare (GstOctBscanDevice *self, ImkError *error)
{
  const GstVideoInfo *info =
      gst_imaging_engine_info (self->element->base.engine);

  GST_IMAGING_ENTER (self->context, error);
  for (guint i = 0; i < self->n_slots; i++)
    IMK_TRY (need_block (self, &self->slots[i].places[IN], info, error));
  return warm_up (self, error);
}

/* --- work ----------------------------------------------------------------- */

/* Sets the job of B-scan @k of work item @i. */
static void
set_job (GstOctBscanDevice *self, Slot *slot, guint i, guint k)
{
  GstOctBscanWork *w = slot->works[i];
  guint at = slot->places[IN].planes[i].at + k;
  ImkImage *images = slot->images + at * N_PLANES;
  GstOctBscanReport *report = &slot->device_reports[at];

  for (guint kind = 0; kind < N_PLANES; kind++) {
    if (!buffer_of (slot, kind, i))
      continue;
    images[kind] = slot->places[kind].planes[i].image;
    images[kind].data =
        (guint8 *) images[kind].data + k * slot->places[kind].pitch;
    if (kind != IN)
      gst_oct_bscan_work_image (w, kind, &images[kind]);
  }
  if (w->source)
    gst_oct_bscan_input_image (self->element, &images[IN]);
  slot->jobs[at] = gst_oct_bscan_work_job (self->element, w, k,
      w->source ? &images[IN] : NULL, images, report, IMK_LOCATION_HOST_MAPPED,
      &slot->tracks[at]);
  slot->reports[at] = (GstOctBscanReport){0};
}

/* Makes @second wait for @first. */
static ImkStatus
follow_stream (GstOctBscanDevice *self, gpointer event, gpointer first,
    gpointer second, ImkError *error)
{
  if (first == second)
    return IMK_OK;
  IMK_TRY (self->device->event_record (event, first, error));
  return self->device->event_wait (event, second, error);
}

static ImkStatus
run_batch (GstOctBscanDevice *self, Slot *slot, ImkError *error)
{
  gpointer up = slot->is_alone ? slot->stream : self->upload;
  gpointer down = slot->is_alone ? slot->stream : self->download;

  slot->n_jobs = 0;
  for (guint i = 0; i < slot->n; i++)
    IMK_TRY (map_work (self, slot, i, error));
  IMK_TRY (copy_blocks (self, slot, IN, up, error));
  IMK_TRY (follow_stream (self, slot->uploaded, up, slot->stream, error));
  IMK_TRY (imk_octbscan_update (
      self->kernel, &slot->works[0]->snapshot->config, error));
  for (guint i = 0; i < slot->n; i++)
    for (guint k = 0; k < slot->works[i]->n; k++)
      set_job (self, slot, i, k);
  IMK_TRY (imk_octbscan_process (
      self->kernel, slot->jobs, slot->n_jobs, slot->stream, error));
  IMK_TRY (follow_stream (self, slot->computed, slot->stream, down, error));
  for (guint o = 0; o < N_OUTPUTS; o++)
    IMK_TRY (copy_blocks (self, slot, o, down, error));
  return self->device->event_record (slot->done, down, error);
}

static ImkStatus
wait_for (GstOctBscanDevice *self, Slot *slot, ImkError *error)
{
  if (slot->is_launched)
    return self->device->event_synchronize (slot->done, error);
  /* what there is of it */
  IMK_TRY (self->device->stream_synchronize (self->upload, error));
  IMK_TRY (self->device->stream_synchronize (slot->stream, error));
  return self->device->stream_synchronize (self->download, error);
}

ImkStatus
gst_oct_bscan_device_launch (GstOctBscanDevice *self, guint number,
    GstOctBscanWork **works, guint n, ImkError *error)
{
  Slot *slot = &self->slots[number];
  ImkStatus status = gst_imaging_context_push (self->context, error);

  slot->n = n;
  for (guint i = 0; i < n; i++)
    slot->works[i] = works[i];
  slot->is_launched = FALSE;
  slot->is_alone = g_atomic_int_add (&self->n_flying, 1) == 0;
  if (status != IMK_OK)
    return status;
  g_mutex_lock (&self->lock);
  status = run_batch (self, slot, error);
  g_mutex_unlock (&self->lock);
  slot->is_launched = status == IMK_OK;
  gst_imaging_context_pop (self->context);
  return status;
}

ImkStatus
gst_oct_bscan_device_finish (
    GstOctBscanDevice *self, guint number, ImkError *error)
{
  Slot *slot = &self->slots[number];
  ImkStatus status = gst_imaging_context_push (self->context, error);
  gboolean is_current = status == IMK_OK;

  if (is_current)
    status = wait_for (self, slot, error);
  for (guint i = 0; i < slot->n && status == IMK_OK; i++)
    memcpy (slot->works[i]->reports,
        slot->reports + slot->places[IN].planes[i].at,
        slot->works[i]->n * sizeof (GstOctBscanReport));
  status = unmap_all (slot, status, error);
  if (is_current)
    gst_imaging_context_pop (self->context);
  slot->n = 0;
  g_atomic_int_add (&self->n_flying, -1);
  return status;
}

ImkStatus
gst_oct_bscan_device_get (GstOctBscanDevice *self, GstOctBscanFound what,
    gpointer values, ImkError *error)
{
  GST_IMAGING_ENTER (self->context, error);
  GST_IMAGING_HOLD (&self->lock);
  return gst_oct_bscan_get_found (self->kernel, what, values, error);
}
