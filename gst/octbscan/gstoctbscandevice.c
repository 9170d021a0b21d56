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

typedef struct {
  gpointer stream; /* of the kernels; of the copies as well when it is alone */
  gpointer uploaded, computed, done; /* events */
  gboolean is_alone, is_launched;
  gboolean is_try; /* speculative: wide samples need the full product */
  /* max_jobs, in mapped memory, by the address of each processor */
  GstOctBscanReport *reports, *device_reports;
  Places places[N_PLANES];
  GstOctBscanWork **works;
  guint n, n_jobs;
  ImkOctbscanJob *jobs;
  ImkImage *images; /* N_PLANES a job, as kernels take them */
  ImkImage *tracks; /* of the reports of the jobs, likewise */
} Batch;

struct _GstOctBscanDevice {
  GstOctBscan *element;
  GstImagingContext *context;
  const ImkDevice *device;
  ImkOctbscan *kernel;
  gboolean owns_kernel;
  guint max_jobs, n_batches;
  /* A copy to the device on a stream that has copied from it before may have
   * to wait for what other streams copy from it. */
  gpointer upload, download; /* streams */
  gint n_flying;             /* atomic; batches between launch and finish */
  Batch *batches;

  GMutex lock;               /* of the kernel and all below */
  guint n_untried, patience; /* batches before the next try, and at first */
};

/* --- life ----------------------------------------------------------------- */

static ImkStatus
batch_open (GstOctBscanDevice *self, Batch *b, ImkError *error)
{
  gpointer *events[] = {&b->uploaded, &b->computed, &b->done};
  gpointer reports;
  ImkStatus status;

  b->works = g_new0 (GstOctBscanWork *, self->max_jobs);
  b->jobs = g_new0 (ImkOctbscanJob, self->max_jobs);
  b->images = g_new0 (ImkImage, self->max_jobs * N_PLANES);
  b->tracks = g_new0 (ImkImage, self->max_jobs);
  for (guint i = 0; i < N_PLANES; i++)
    b->places[i].planes = g_new0 (Plane, self->max_jobs);
  status = self->device->stream_new (&b->stream, error);
  if (status == IMK_OK)
    status =
        self->device->alloc_pinned (self->max_jobs * sizeof (GstOctBscanReport),
            &reports, (gpointer *) &b->device_reports, error);
  if (status == IMK_OK)
    b->reports = reports;
  for (guint i = 0; i < G_N_ELEMENTS (events) && status == IMK_OK; i++)
    status = self->device->event_new (events[i], error);
  return status;
}

static void
batch_close (GstOctBscanDevice *self, Batch *b, gboolean is_current)
{
  gpointer events[] = {b->uploaded, b->computed, b->done};

  for (guint i = 0; i < G_N_ELEMENTS (events); i++)
    if (is_current)
      self->device->event_free (events[i]);
  for (guint i = 0; i < N_PLANES; i++) {
    if (is_current)
      self->device->free_device (b->places[i].block);
    g_free (b->places[i].planes);
  }
  if (is_current && b->stream)
    self->device->stream_free (b->stream);
  if (is_current && b->reports)
    self->device->free_pinned (b->reports);
  g_free (b->works);
  g_free (b->jobs);
  g_free (b->images);
  g_free (b->tracks);
}

GstOctBscanDevice *
gst_oct_bscan_device_new (GstOctBscan *element, GstImagingContext *context,
    ImkOctbscan *kernel, guint n_batches, ImkError *error)
{
  GstOctBscanDevice *self = g_new0 (GstOctBscanDevice, 1);
  ImkStatus status = gst_imaging_context_push (context, error);

  g_mutex_init (&self->lock);
  self->element = element;
  self->context = g_object_ref (context);
  self->device = gst_imaging_context_device (context);
  self->kernel = kernel;
  self->max_jobs = element->open.config.max_jobs;
  self->n_batches = n_batches;
  self->batches = g_new0 (Batch, n_batches);
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
    for (guint i = 0; i < n_batches && status == IMK_OK; i++)
      status = batch_open (self, &self->batches[i], error);
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
  for (guint i = 0; i < self->n_batches; i++)
    batch_close (self, &self->batches[i], is_current);
  if (self->owns_kernel)
    imk_octbscan_free (self->kernel);
  if (is_current) {
    self->device->stream_free (self->upload);
    self->device->stream_free (self->download);
  }
  if (is_current)
    gst_imaging_context_pop (self->context);
  g_free (self->batches);
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
  ImkStatus status;

  if (p->block && p->pitch == pitch)
    return IMK_OK;
  self->device->free_device (g_steal_pointer (&p->block));
  status = self->device->alloc_device (pitch * self->max_jobs, &block, error);
  if (status == IMK_OK) {
    p->block = block;
    p->pitch = pitch;
  }
  return status;
}

static ImkStatus
map_plane (GstOctBscanDevice *self, Batch *b, guint kind, Plane *plane,
    GstBuffer *buffer, const GstVideoInfo *info, gboolean as_block,
    ImkError *error)
{
  GstMapFlags access = kind == IN ? GST_MAP_READ : GST_MAP_WRITE;
  Places *p = &b->places[kind];
  ImkStatus status = IMK_OK;

  plane->is_block = plane->is_mapped = FALSE;
  if (as_block)
    status = need_block (self, p, info, error);
  if (status != IMK_OK ||
      (as_block && take_place (p, plane, buffer, info, access)))
    return status;
  if (plane->n > 1)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "A buffer of %u B-scans cannot be read or written.", plane->n);
  status = gst_imaging_engine_map_on (self->element->base.engine, buffer, info,
      access, GST_IMAGING_REACH_DEVICE, b->stream, &plane->frame, error);
  if (status == IMK_OK) {
    plane->image = plane->frame.planes[0];
    plane->is_mapped = TRUE;
  }
  return status;
}

static ImkStatus
map_work (GstOctBscanDevice *self, Batch *b, guint i, ImkError *error)
{
  GstOctBscanWork *w = b->works[i];
  Plane *planes[N_PLANES];
  ImkStatus status = IMK_OK;

  for (guint kind = 0; kind < N_PLANES; kind++) {
    planes[kind] = &b->places[kind].planes[i];
    *planes[kind] = (Plane){.at = b->n_jobs,
        .n = w->n,
        .step = kind == IN ? gst_oct_bscan_work_in_step (self->element)
                           : gst_oct_bscan_pad_step (&w->snapshot->info[kind])};
  }
  b->n_jobs += w->n;
  if (w->source)
    status = map_plane (self, b, IN, planes[IN], w->source,
        gst_imaging_engine_info (self->element->base.engine),
        is_copied (self, w->source), error);
  for (guint o = 0; o < N_OUTPUTS && status == IMK_OK; o++)
    if (w->out[o])
      status = map_plane (self, b, o, planes[o], w->out[o],
          &w->snapshot->info[o], w->to_host, error);
  return status;
}

static ImkStatus
map_all (GstOctBscanDevice *self, Batch *b, ImkError *error)
{
  ImkStatus status = IMK_OK;

  b->n_jobs = 0;
  for (guint i = 0; i < b->n && status == IMK_OK; i++)
    status = map_work (self, b, i, error);
  return status;
}

static GstBuffer *
buffer_of (Batch *b, guint kind, guint i)
{
  return kind == IN ? b->works[i]->source : b->works[i]->out[kind];
}

/* @status: of the work; IMK_OK when the stream is idle
 * Returns: the first failure, with @error */
static ImkStatus
unmap_all (Batch *b, ImkStatus status, ImkError *error)
{
  gboolean done = status == IMK_OK;

  for (guint kind = 0; kind < N_PLANES; kind++)
    for (guint i = 0; i < b->n; i++) {
      Plane *plane = &b->places[kind].planes[i];

      if (plane->is_mapped && plane->is_block)
        gst_buffer_unmap (buffer_of (b, kind, i), &plane->map);
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
count_run (const Batch *b, const Places *p, guint i)
{
  guint end = i + 1;

  while (end < b->n && are_neighbours (p, &p->planes[end - 1], &p->planes[end]))
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
copy_blocks (GstOctBscanDevice *self, Batch *b, guint kind, gpointer stream,
    ImkError *error)
{
  const Places *p = &b->places[kind];
  ImkStatus status = IMK_OK;
  guint n;

  for (guint i = 0; i < b->n && status == IMK_OK; i += n) {
    const Plane *plane = &p->planes[i];
    guint8 *block;

    n = 1;
    if (!plane->is_mapped || !plane->is_block)
      continue;
    block = p->block + plane->at * p->pitch;
    if (plane->n > 1) {
      const GstVideoInfo *info =
          kind == IN ? gst_imaging_engine_info (self->element->base.engine)
                     : &b->works[i]->snapshot->info[kind];

      status = copy_rows (self, kind, block, p->pitch, plane->map.data,
          plane->step, info->size, plane->n, stream, error);
    } else {
      n = count_run (b, p, i);
      status = copy_rows (self, kind, block, p->pitch, plane->map.data,
          p->pitch, plane->map.size, n, stream, error);
    }
  }
  return status;
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
  Batch *b = &self->batches[0];
  ImkImage in = describe (info, b->places[IN].block, info->stride[0]);
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
    status = imk_octbscan_process (self->kernel, &job, 1, b->stream, error);
  if (status == IMK_OK)
    status = self->device->stream_synchronize (b->stream, error);
  self->device->free_device (block);
  /* no background of what was in the block */
  return status == IMK_OK ? imk_octbscan_reset (self->kernel, error) : status;
}

/* Allocates the blocks of all batches, too. */
ImkStatus
gst_oct_bscan_device_prepare (GstOctBscanDevice *self, ImkError *error)
{
  const GstVideoInfo *info =
      gst_imaging_engine_info (self->element->base.engine);
  ImkStatus status = gst_imaging_context_push (self->context, error);

  if (status != IMK_OK)
    return status;
  for (guint i = 0; i < self->n_batches && status == IMK_OK; i++)
    status = need_block (self, &self->batches[i].places[IN], info, error);
  if (status == IMK_OK)
    status = warm_up (self, error);
  gst_imaging_context_pop (self->context);
  return status;
}

/* --- speculation ---------------------------------------------------------- */

/* After a failed speculation this many batches go without, then twice as many:
 * 16-bit cameras seldom cause a second launch. */
enum { FIRST_PATIENCE = 8, MOST_PATIENCE = 8192 };

/* Samples near their background need half of the product
 * (ImkOctbscanJob.wide). Only the device sees whether they are. */
static void
begin_try (GstOctBscanDevice *self, Batch *b)
{
  b->is_try = FALSE;
  if (imk_octbscan_has_history (&self->element->open.config))
    return;
  if (self->n_untried > 0) {
    self->n_untried--;
    return;
  }
  b->is_try = TRUE;
}

/* Call when the batch is done. Returns: whether the speculation failed */
static gboolean
end_try (GstOctBscanDevice *self, const Batch *b)
{
  gboolean is_wide = FALSE;

  for (guint i = 0; b->is_try && i < b->n_jobs; i++)
    is_wide |= b->reports[i].is_wide != 0;
  if (is_wide)
    self->n_untried = self->patience =
        CLAMP (2 * self->patience, FIRST_PATIENCE, MOST_PATIENCE);
  else if (b->is_try)
    self->patience = 0;
  return is_wide;
}

/* --- work ----------------------------------------------------------------- */

/* Sets the job of B-scan @k of work item @i. */
static void
set_job (GstOctBscanDevice *self, Batch *b, guint i, guint k)
{
  GstOctBscanWork *w = b->works[i];
  guint at = b->places[IN].planes[i].at + k;
  ImkImage *images = b->images + at * N_PLANES;
  GstOctBscanReport *report = &b->device_reports[at];

  for (guint kind = 0; kind < N_PLANES; kind++) {
    if (!buffer_of (b, kind, i))
      continue;
    images[kind] = b->places[kind].planes[i].image;
    gst_oct_bscan_advance (&images[kind], k * b->places[kind].pitch);
    if (kind != IN)
      gst_oct_bscan_work_image (w, kind, &images[kind]);
  }
  if (w->source)
    gst_oct_bscan_input_image (self->element, &images[IN]);
  b->jobs[at] = gst_oct_bscan_work_job (self->element, w, k,
      w->source ? &images[IN] : NULL, images, report, IMK_LOCATION_HOST_MAPPED,
      &b->tracks[at]);
  b->jobs[at].wide = b->is_try ? &report->is_wide : NULL;
  b->reports[at] = (GstOctBscanReport){0};
}

static ImkStatus
run_kernel (GstOctBscanDevice *self, Batch *b, ImkError *error)
{
  for (guint i = 0; i < b->n; i++)
    for (guint k = 0; k < b->works[i]->n; k++)
      set_job (self, b, i, k);
  return imk_octbscan_process (
      self->kernel, b->jobs, b->n_jobs, b->stream, error);
}

/* Makes @second wait for @first. */
static ImkStatus
follow_stream (GstOctBscanDevice *self, gpointer event, gpointer first,
    gpointer second, ImkError *error)
{
  ImkStatus status = IMK_OK;

  if (first != second)
    status = self->device->event_record (event, first, error);
  if (first != second && status == IMK_OK)
    status = self->device->event_wait (event, second, error);
  return status;
}

/* Launches the jobs, then the downloads. */
static ImkStatus
run_uploaded (GstOctBscanDevice *self, Batch *b, gpointer down, ImkError *error)
{
  ImkStatus status =
      imk_octbscan_update (self->kernel, &b->works[0]->snapshot->config, error);

  if (status == IMK_OK)
    status = run_kernel (self, b, error);
  if (status == IMK_OK)
    status = follow_stream (self, b->computed, b->stream, down, error);
  for (guint o = 0; o < N_OUTPUTS && status == IMK_OK; o++)
    status = copy_blocks (self, b, o, down, error);
  if (status == IMK_OK)
    status = self->device->event_record (b->done, down, error);
  return status;
}

static ImkStatus
run_batch (GstOctBscanDevice *self, Batch *b, ImkError *error)
{
  gpointer up = b->is_alone ? b->stream : self->upload;
  gpointer down = b->is_alone ? b->stream : self->download;
  ImkStatus status = map_all (self, b, error);

  if (status == IMK_OK)
    status = copy_blocks (self, b, IN, up, error);
  if (status == IMK_OK)
    status = follow_stream (self, b->uploaded, up, b->stream, error);
  return status == IMK_OK ? run_uploaded (self, b, down, error) : status;
}

static ImkStatus
wait_for (GstOctBscanDevice *self, Batch *b, ImkError *error)
{
  ImkStatus status;

  if (b->is_launched)
    return self->device->event_synchronize (b->done, error);
  /* what there is of it */
  status = self->device->stream_synchronize (self->upload, error);
  if (status == IMK_OK)
    status = self->device->stream_synchronize (b->stream, error);
  if (status == IMK_OK)
    status = self->device->stream_synchronize (self->download, error);
  return status;
}

ImkStatus
gst_oct_bscan_device_launch (GstOctBscanDevice *self, guint b,
    GstOctBscanWork **works, guint n, ImkError *error)
{
  Batch *batch = &self->batches[b];
  ImkStatus status = gst_imaging_context_push (self->context, error);

  batch->n = n;
  for (guint i = 0; i < n; i++)
    batch->works[i] = works[i];
  batch->is_launched = FALSE;
  batch->is_alone = g_atomic_int_add (&self->n_flying, 1) == 0;
  if (status != IMK_OK)
    return status;
  g_mutex_lock (&self->lock);
  begin_try (self, batch);
  status = run_batch (self, batch, error);
  g_mutex_unlock (&self->lock);
  batch->is_launched = status == IMK_OK;
  gst_imaging_context_pop (self->context);
  return status;
}

/* Waits for the batch; launches the full product if the speculation failed. */
static ImkStatus
wait_for_images (GstOctBscanDevice *self, Batch *b, ImkError *error)
{
  ImkStatus status = wait_for (self, b, error);
  gboolean again;

  if (status != IMK_OK || !b->is_launched)
    return status;
  g_mutex_lock (&self->lock);
  again = end_try (self, b);
  b->is_try = FALSE;
  if (again)
    status = run_uploaded (self, b, b->stream, error);
  g_mutex_unlock (&self->lock);
  b->is_launched = status == IMK_OK;
  return again && status == IMK_OK ? wait_for (self, b, error) : status;
}

static void
take_reports (const Batch *b)
{
  for (guint i = 0; i < b->n; i++)
    memcpy (b->works[i]->reports, b->reports + b->places[IN].planes[i].at,
        b->works[i]->n * sizeof (GstOctBscanReport));
}

ImkStatus
gst_oct_bscan_device_finish (GstOctBscanDevice *self, guint b, ImkError *error)
{
  Batch *batch = &self->batches[b];
  ImkStatus status = gst_imaging_context_push (self->context, error);
  gboolean is_current = status == IMK_OK;

  if (is_current)
    status = wait_for_images (self, batch, error);
  if (status == IMK_OK)
    take_reports (batch);
  status = unmap_all (batch, status, error);
  if (is_current)
    gst_imaging_context_pop (self->context);
  batch->n = 0;
  g_atomic_int_add (&self->n_flying, -1);
  return status;
}

ImkStatus
gst_oct_bscan_device_get (GstOctBscanDevice *self, GstOctBscanGet get,
    gpointer values, ImkError *error)
{
  ImkStatus status = gst_imaging_context_push (self->context, error);

  if (status != IMK_OK)
    return status;
  g_mutex_lock (&self->lock);
  status = get (self->kernel, values, error);
  g_mutex_unlock (&self->lock);
  gst_imaging_context_pop (self->context);
  return status;
}
