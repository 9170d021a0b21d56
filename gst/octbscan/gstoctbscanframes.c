/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a B-scan to its images, and out by the pads: on the CPU at once, on GPUs
 * through the queue. */
#include "gstoctbscanqueue.h"

#include "gstimagingmetadata.h"

/* How long the first image of a stream is waited for: it takes less. */
#define FIRST_US 20000

GstFlowReturn
gst_oct_bscan_negotiate (GstOctBscan *self, guint i, GstOctBscanPad *pad)
{
  GstOctBscanPadFormat f = {GST_OCT_BSCAN_PAD_IMAGE, self->width, self->height,
      self->bscan.fps_n, self->bscan.fps_d};
  guint n = 1;

  if (!pad)
    return GST_FLOW_NOT_LINKED;
  gst_oct_bscan_pad_use_host (pad, self->host_images);
  if (i != COMPLEX)
    n = self->now->average_bscans;
  if (i == COMPLEX) {
    f.kind = GST_OCT_BSCAN_PAD_COMPLEX;
    f.width = (gint) imk_octbscan_n_depths (&self->open.config);
    f.height = (gint) self->open.config.height;
  } else if (i == ENFACE) {
    f.kind = GST_OCT_BSCAN_PAD_ENFACE;
    f.width = (gint) imk_octbscan_n_ascans (&self->open.config);
    f.height = (gint) self->now->bscans_per_volume;
    n = n > G_MAXINT / (guint) f.height ? G_MAXINT : n * (guint) f.height;
  }
  if (!gst_util_fraction_multiply (
          f.fps_n, f.fps_d, 1, (gint) n, &f.fps_n, &f.fps_d)) {
    f.fps_n = 0;
    f.fps_d = 1;
  }
  return gst_oct_bscan_pad_negotiate (
      pad, self->engine, &self->engine_lock, &f);
}

/* --- one B-scan ---------------------------------------------------------- */

static GstClockTime
sum_of (GstClockTime a, GstClockTime b)
{
  return GST_CLOCK_TIME_IS_VALID (a) && GST_CLOCK_TIME_IS_VALID (b)
             ? a + b
             : GST_CLOCK_TIME_NONE;
}

/* Without its lines, which a camera wants back. */
static void
keep_description (GstOctBscan *self, GstBuffer *buffer)
{
  gst_clear_buffer (&self->mean.last);
  self->mean.last = gst_buffer_new ();
  gst_imaging_metadata_pass (self->mean.last, buffer, FALSE);
}

/* Its place in the mean of @n B-scans, and the time of that. */
static void
add_to_mean (GstOctBscan *self, GstOctBscanWork *w, guint n)
{
  w->begins_mean = self->mean.n == 0;
  if (w->begins_mean) {
    self->mean.pts = GST_BUFFER_PTS (w->in);
    self->mean.dts = GST_BUFFER_DTS (w->in);
    self->mean.duration = 0;
    self->mean.is_discont = FALSE;
  }
  self->mean.is_discont |= GST_BUFFER_IS_DISCONT (w->in);
  self->mean.duration =
      sum_of (self->mean.duration, GST_BUFFER_DURATION (w->in));
  w->has_images = ++self->mean.n >= n;
  w->pts = self->mean.pts;
  w->dts = self->mean.dts;
  w->duration = self->mean.duration;
  w->is_discont = self->mean.is_discont;
  if (w->has_images)
    self->mean.n = 0;
  else
    keep_description (self, w->in);
}

static GstOctBscanWork *
work_new (GstOctBscan *self, GstBuffer *in, guint n, guint64 frame,
    GstClockTime entered)
{
  GstOctBscanWork *w = g_new0 (GstOctBscanWork, 1);

  w->n = n;
  w->in = in;
  w->like = gst_buffer_ref (in);
  w->source = gst_buffer_ref (in);
  w->frame = frame;
  w->n_missing = self->n_missing;
  self->n_missing = 0;
  w->entered = entered;
  w->first_camera = gst_oct_bscan_first_camera (self);
  gst_oct_bscan_look_again (self, w);
  w->snapshot = gst_oct_bscan_get_snapshot (self);
  gst_oct_bscan_need_ends (w);
  gst_oct_bscan_need_shifts (w);
  w->backward = w->snapshot->config.bidirectional && self->n_bscans % 2;
  add_to_mean (self, w, w->snapshot->average_bscans);
  self->n_bscans += n;
  self->next_camera =
      (guint) ((self->next_camera + (guint64) n * self->bscan.height) %
               self->open.config.n_cameras);
  return w;
}

static void
clear_outputs (GstOctBscanWork *w)
{
  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_clear_buffer (&w->out[i]);
}

void
gst_oct_bscan_work_free (GstOctBscanWork *w)
{
  clear_outputs (w);
  gst_clear_buffer (&w->source);
  gst_clear_buffer (&w->in);
  gst_clear_buffer (&w->like);
  gst_oct_bscan_snapshot_unref (w->snapshot);
  g_free (w->ends);
  g_free (w->shifts);
  g_free (w);
}

void
gst_oct_bscan_work_image (
    const GstOctBscanWork *w, guint output, ImkImage *plane)
{
  if (output != ENFACE && !w->snapshot->is_float[output])
    return;
  plane->type = output == COMPLEX ? IMK_TYPE_CF32 : IMK_TYPE_F32;
  plane->width /= (guint32) imk_type_size (plane->type);
}

ImkOctbscanJob
gst_oct_bscan_work_job (const GstOctBscan *self, const GstOctBscanWork *w,
    guint k, const ImkImage *in, ImkImage *images)
{
  guint64 lines = (guint64) k * self->bscan.height;
  ImkOctbscanJob job = {
      .in = in,
      .first_camera =
          (guint) ((w->first_camera + lines) % self->open.config.n_cameras),
      .backward = w->snapshot->config.bidirectional && (w->backward + k) % 2,
      .db_is_linear = w->snapshot->scaling == SCALING_LINEAR,
  };
  ImkImage **places[N_OUTPUTS] = {
      [LINEAR] = &job.linear,
      [COMPLEX] = &job.complex,
      [ENFACE] = &job.enface,
      [SRC] = &job.db,
  };

  for (guint i = 0; i < N_OUTPUTS; i++)
    if (w->out[i])
      *places[i] = &images[i];
  return job;
}

/* --- on the CPU ----------------------------------------------------------- */

void
gst_oct_bscan_advance (ImkImage *image, gsize bytes)
{
  image->data = (guint8 *) image->data + bytes;
}

static ImkStatus
run_kernel (GstOctBscan *self, const ImkImage *from, const GstImagingFrame *out,
    GstOctBscanWork *w, ImkError *error)
{
  ImkStatus status =
      imk_octbscan_update (self->open.kernel, &w->snapshot->config, error);

  for (guint k = 0; k < w->n && status == IMK_OK; k++) {
    ImkImage images[N_OUTPUTS], in;
    gfloat track[4] = {0};
    ImkImage tracked = {track, sizeof (track), G_N_ELEMENTS (track), 1, 1,
        IMK_TYPE_F32, IMK_LOCATION_HOST};
    guint32 n_bad = 0;
    ImkOctbscanJob job;

    for (guint i = 0; i < N_OUTPUTS; i++)
      if (w->out[i]) {
        images[i] = out[i].planes[0];
        gst_oct_bscan_advance (
            &images[i], k * gst_oct_bscan_pad_step (&w->snapshot->info[i]));
        gst_oct_bscan_work_image (w, i, &images[i]);
      }
    if (from) {
      in = *from;
      gst_oct_bscan_advance (&in, k * gst_oct_bscan_work_in_step (self));
    }
    job = gst_oct_bscan_work_job (self, w, k, from ? &in : NULL, images);
    job.n_bad = &n_bad;
    job.ends = w->ends ? w->ends + 4 * k : NULL;
    job.track = w->shifts ? &tracked : NULL;
    status = imk_octbscan_process (self->open.kernel, &job, 1, NULL, error);
    w->n_bad += n_bad;
    if (w->shifts)
      w->shifts[k] = track[GST_OCT_BSCAN_SHIFT];
  }
  return status;
}

static ImkStatus
run_mapped (GstOctBscan *self, GstOctBscanWork *w, ImkError *error)
{
  GstImagingFrame from, out[N_OUTPUTS];
  gboolean mapped[N_OUTPUTS] = {FALSE};
  ImkStatus status = IMK_OK;

  w->on_cpu = TRUE;
  if (w->in)
    status = gst_imaging_engine_map (self->engine, w->in, &self->bscan,
        GST_MAP_READ, GST_IMAGING_REACH_HOST, &from, error);
  if (status != IMK_OK)
    return status;
  if (w->in)
    gst_imaging_engine_note_memory (self->engine, from.memory_name);
  for (guint i = 0; i < N_OUTPUTS && status == IMK_OK; i++)
    if (w->out[i]) {
      status = gst_imaging_engine_map (self->engine, w->out[i],
          &w->snapshot->info[i], GST_MAP_WRITE, GST_IMAGING_REACH_HOST, &out[i],
          error);
      mapped[i] = status == IMK_OK;
    }
  if (w->in)
    gst_oct_bscan_input_image (self, &from.planes[0]);
  if (status == IMK_OK)
    status = run_kernel (self, w->in ? &from.planes[0] : NULL, out, w, error);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (mapped[i])
      gst_imaging_frame_unmap (&out[i], TRUE, NULL);
  if (w->in)
    gst_imaging_frame_unmap (&from, TRUE, NULL);
  return status;
}

/* Nothing that is on a failed device can be had again. */
static gboolean
is_lost (GstOctBscan *self, const GstOctBscanWork *w, ImkStatus status)
{
  return w->in && gst_imaging_engine_is_lost (self->engine, w->in, status);
}

void
gst_oct_bscan_work_renew (GstOctBscanWork *w)
{
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (w->out[i]) {
      gsize before =
          (w->n - 1) * gst_oct_bscan_pad_step (&w->snapshot->info[i]);

      gst_buffer_remove_all_memory (w->out[i]);
      gst_buffer_append_memory (w->out[i],
          gst_allocator_alloc (NULL, before + w->snapshot->info[i].size, NULL));
    }
}

ImkStatus
gst_oct_bscan_redo_on_cpu (
    GstOctBscan *self, GstOctBscanWork *w, ImkError *error)
{
  ImkStatus status;

  gst_oct_bscan_work_renew (w);
  status = run_mapped (self, w, error);
  if (status == IMK_OK || !is_lost (self, w, status))
    return status;
  GST_WARNING_OBJECT (self, "a B-scan is lost: %s", error->message);
  w->lost = TRUE;
  return IMK_OK;
}

/* --- pads ---------------------------------------------------------------- */

static gboolean
wants (const GstOctBscanWork *w, guint output)
{
  return output == COMPLEX ? w->in != NULL : w->has_images;
}

static void
stamp (const GstOctBscanWork *w, guint output, GstBuffer *buffer)
{
  if (w->like)
    gst_imaging_metadata_pass (buffer, w->like, FALSE);
  if (output == COMPLEX)
    return;
  if (w->is_discont)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  GST_BUFFER_PTS (buffer) = w->pts;
  GST_BUFFER_DTS (buffer) = w->dts;
  GST_BUFFER_DURATION (buffer) = w->duration;
}

/* Nothing has changed since the last B-scan. */
static gboolean
is_settled (GstOctBscanPad *pad, const GstOctBscanWork *w)
{
  return gst_oct_bscan_pad_is_negotiated (pad) &&
         pad->settled == w->snapshot->changes && GST_PAD_PEER (pad);
}

/* A frame for a pad that is linked; none, and GST_FLOW_NOT_LINKED, else. */
static GstFlowReturn
prepare_output (
    GstOctBscan *self, guint i, GstOctBscanWork *w, gboolean *are_new)
{
  GstOctBscanPad *pad = w->snapshot->pads[i];
  GstFlowReturn flow = GST_FLOW_OK;

  if (!pad)
    return GST_FLOW_NOT_LINKED;
  gst_oct_bscan_pad_use_host (pad, self->host_images);
  if (!is_settled (pad, w)) {
    flow = gst_oct_bscan_negotiate (self, i, pad);
    *are_new |= flow == GST_FLOW_OK;
  }
  pad->settled = w->snapshot->changes;
  if (flow == GST_FLOW_OK && wants (w, i))
    flow = w->n > 1 ? gst_oct_bscan_pad_acquire_block (pad, self->engine,
                          MAX (w->n, self->n_full), &w->out[i])
                    : gst_oct_bscan_pad_acquire (pad, self->engine, &w->out[i]);
  if (w->out[i])
    stamp (w, i, w->out[i]);
  else if (flow != GST_FLOW_OK && flow != GST_FLOW_ERROR)
    flow = gst_oct_bscan_combine (self, w->snapshot, i, flow);
  return flow;
}

static GstFlowReturn
prepare (GstOctBscan *self, GstOctBscanWork *w)
{
  GstFlowReturn flow = GST_FLOW_OK;
  gboolean are_new = FALSE;

  w->to_host = self->host_images;
  for (guint i = 0; i < N_OUTPUTS && flow == GST_FLOW_OK; i++) {
    flow = prepare_output (self, i, w, &are_new);
    if (flow == GST_FLOW_NOT_LINKED && i != SRC)
      flow = GST_FLOW_OK; /* src, the last, decides */
  }
  if (are_new)
    gst_oct_bscan_renew_formats (self, &w->snapshot);
  return flow;
}

GstFlowReturn
gst_oct_bscan_combine (GstOctBscan *self, const GstOctBscanSnapshot *snapshot,
    guint output, GstFlowReturn flow)
{
  return gst_imaging_src_pads_combine (self->pads, output,
      GST_IMAGING_SRC_PAD (snapshot->pads[output]), flow, GST_FLOW_OK);
}

void
gst_oct_bscan_warn_of_rows (GstOctBscan *self, guint n, const gchar *why)
{
  if (n > 0)
    GST_ELEMENT_WARNING (self, STREAM, FORMAT,
        ("%u B-scans do not fill an en-face image (bscans-per-volume) and are "
         "left out of it: %s.",
            n, why),
        (NULL));
}

GstFlowReturn
gst_oct_bscan_post_error (GstOctBscan *self, const ImkError *error)
{
  g_mutex_lock (&self->engine_lock);
  gst_imaging_engine_post_error (self->engine, error->code, error);
  g_mutex_unlock (&self->engine_lock);
  return GST_FLOW_ERROR;
}

/* The row of this B-scan becomes the image of its volume, or nothing yet. */
static GstFlowReturn
gather_row (GstOctBscan *self, GstOctBscanWork *w)
{
  g_autoptr (GstBuffer) row = g_steal_pointer (&w->out[ENFACE]);
  gboolean db = w->snapshot->scaling == SCALING_DB;
  ImkOctbscanConfig config;
  GstEvent *gap = NULL;
  gfloat ends[4];
  ImkError error;
  gboolean full;
  guint n_forgotten;
  ImkStatus status = gst_oct_bscan_enface_setup (self->enface,
      (guint) w->snapshot->info[ENFACE].width / sizeof (gfloat),
      (guint) w->snapshot->volume.height, &n_forgotten, &error);

  gst_oct_bscan_warn_of_rows (self, n_forgotten, "its size changes");
  if (gst_object_replace ((GstObject **) &self->enface_pad,
          GST_OBJECT (w->snapshot->pads[ENFACE])))
    gst_oct_bscan_enface_reset (self->enface); /* of one that was released */
  if (status != IMK_OK)
    return gst_oct_bscan_post_error (self, &error);
  /* an image is long in coming; a sink prerolls with less */
  if (gst_oct_bscan_enface_is_new (self->enface) &&
      GST_CLOCK_TIME_IS_VALID (w->pts))
    gap = gst_event_new_gap (w->pts, w->duration);
  full = gst_oct_bscan_enface_add (self->enface, row);
  if (gap)
    gst_pad_push_event (GST_PAD (w->snapshot->pads[ENFACE]), gap);
  if (!full)
    return GST_FLOW_OK;
  config = w->snapshot->config;
  if (w->snapshot->auto_range) { /* of this image */
    config.range = IMK_OCTBSCAN_RANGE_AUTO;
    config.auto_bscans = 0;
  }
  w->out[ENFACE] =
      gst_oct_bscan_enface_image (self->enface, &w->snapshot->volume,
          w->snapshot->is_float[ENFACE], &config, db, row, ends, &error);
  if (!w->out[ENFACE])
    return gst_oct_bscan_post_error (self, &error);
  gst_oct_bscan_describe_volume (w, w->out[ENFACE], db, ends);
  return GST_FLOW_OK;
}

/* The combiner goes on as long as one of them wants more. */
GstFlowReturn
gst_oct_bscan_push_images (GstOctBscan *self, GstOctBscanWork *w)
{
  GstFlowReturn flow = GST_FLOW_OK;

  if (w->n > 1)
    return gst_oct_bscan_push_images_of_run (self, w);
  gst_oct_bscan_add_lines (self, w);
  if (w->out[ENFACE])
    flow = gather_row (self, w);
  for (guint i = 0; i < N_OUTPUTS && flow != GST_FLOW_ERROR; i++)
    if (w->out[i]) {
      gst_oct_bscan_describe_image (w, i, 0, w->out[i]);
      gst_oct_bscan_attach_lines (self, w, i, 0, w->out[i]);
      flow = gst_oct_bscan_combine (self, w->snapshot, i,
          gst_imaging_src_pad_push (GST_IMAGING_SRC_PAD (w->snapshot->pads[i]),
              g_steal_pointer (&w->out[i])));
    }
  if (w->has_images)
    self->mean_lines.n = 0;
  return flow;
}

/* Whether a pad must negotiate, which must wait until all B-scans before have
 * been pushed. Call with the engine locked. */
static gboolean
must_negotiate (GstOctBscan *self, const GstOctBscanWork *w)
{
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (w->snapshot->pads[i] && GST_PAD_PEER (w->snapshot->pads[i]) &&
        !gst_oct_bscan_pad_is_negotiated (w->snapshot->pads[i]))
      return TRUE;
  return FALSE;
}

static void
count_bad (GstOctBscan *self, const GstOctBscanWork *w)
{
  gst_imaging_stats_add_own (gst_imaging_engine_stats (self->engine), w->n_bad);
  if (!g_atomic_int_compare_and_exchange (&self->warned_of_bad, FALSE, TRUE))
    return;
  GST_ELEMENT_WARNING (self, STREAM, DECODE,
      ("%u A-scans are black, as samples of their spectra are not numbers, are "
       "infinite or are beyond 1e15. bad-ascans of stats counts all of them. "
       "Look at what writes the spectra.",
          w->n_bad),
      ("the B-scan with pts %" GST_TIME_FORMAT, GST_TIME_ARGS (w->pts)));
}

void
gst_oct_bscan_count (GstOctBscan *self, const GstOctBscanWork *w, gboolean lost)
{
  if (!lost)
    gst_oct_bscan_note_ends (self, w);
  if (!lost && w->n_bad > 0)
    count_bad (self, w);
  for (guint k = 0; k < w->n; k++)
    if (lost)
      gst_imaging_engine_count_lost (self->engine);
    else
      gst_imaging_engine_count_frame (self->engine, w->entered);
}

/* --- on the CPU, at once -------------------------------------------------- */

static GstFlowReturn
process_on_cpu (GstOctBscan *self, GstOctBscanWork *w)
{
  ImkStatus status = IMK_OK;
  GstFlowReturn flow;
  ImkError error;

  g_mutex_lock (&self->engine_lock);
  flow = prepare (self, w);
  if (flow == GST_FLOW_OK)
    status = run_mapped (self, w, &error);
  if (status != IMK_OK && is_lost (self, w, status)) {
    GST_WARNING_OBJECT (self, "a B-scan is lost: %s", error.message);
    gst_oct_bscan_count (self, w, TRUE);
    w->lost = TRUE;
  } else if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->engine, status, &error);
    flow = GST_FLOW_ERROR;
  } else if (flow == GST_FLOW_OK && w->in) {
    gst_oct_bscan_count (self, w, FALSE);
  }
  g_mutex_unlock (&self->engine_lock);
  if (flow == GST_FLOW_OK && !w->lost)
    flow = gst_oct_bscan_push_images (self, w);
  gst_oct_bscan_work_free (w);
  return flow;
}

/* --- on GPUs -------------------------------------------------------------- */

/* As soon as somebody downstream has looked at an image on the CPU, images are
 * copied there a batch at a time; one by one takes longer. */
static void
follow_readers (GstOctBscan *self)
{
  GstImagingStats *stats = gst_imaging_engine_stats (self->engine);

  if (self->host_images || gst_imaging_stats_downloaded (stats) == 0 ||
      gst_imaging_context_info (gst_imaging_engine_context (self->engine))
          ->integrated)
    return;
  self->host_images = TRUE;
}

/* One device more. */
static ImkStatus
add_device (GstOctBscan *self, GPtrArray *devices, GstImagingContext *context,
    ImkOctbscan *kernel, guint n_batches, ImkError *error)
{
  GstOctBscanDevice *device =
      gst_oct_bscan_device_new (self, context, kernel, n_batches, error);

  if (!device)
    return error->code;
  g_ptr_array_add (devices, device);
  return gst_oct_bscan_device_prepare (device, error);
}

/* The devices of cuda-devices behind the first, which is the engine's. */
static ImkStatus
add_others (GstOctBscan *self, const GstImagingArray *list, GPtrArray *devices,
    guint n_batches, ImkError *error)
{
  ImkStatus status = IMK_OK;
  GArray *ids = gst_imaging_context_list_ids (list->values, list->n, error);

  if (!ids)
    return IMK_ERROR_CONFIG;
  for (guint i = 0; i < ids->len && status == IMK_OK; i++) {
    gint id = g_array_index (ids, gint, i);
    GstImagingContext *context;

    if (id == gst_oct_bscan_device_id (devices->pdata[0]))
      continue;
    context = gst_imaging_context_get (id, error);
    status = context
                 ? add_device (self, devices, context, NULL, n_batches, error)
                 : IMK_ERROR_UNAVAILABLE;
    g_clear_object (&context);
  }
  g_array_unref (ids);
  return status;
}

ImkStatus
gst_oct_bscan_need_devices (GstOctBscan *self, ImkError *error)
{
  const GstImagingArray *list = self->now->cuda_devices;
  guint n_batches = self->now->max_in_flight;
  GPtrArray *devices;
  ImkStatus status;
  GstOctBscanQueue *queue;

  if (self->queue)
    return IMK_OK;
  devices = g_ptr_array_new_with_free_func (
      (GDestroyNotify) gst_oct_bscan_device_free);
  status = add_device (self, devices, gst_imaging_engine_context (self->engine),
      self->open.kernel, n_batches, error);
  if (status == IMK_OK && list &&
      !imk_octbscan_has_history (&self->open.config))
    status = add_others (self, list, devices, n_batches, error);
  if (status != IMK_OK) {
    g_ptr_array_unref (devices);
    return status;
  }
  self->host_images |= devices->len > 1;
  self->n_full = (guint) CLAMP (GST_OCT_BSCAN_SLAB_SIZE / self->bscan.size, 1,
      self->open.config.max_jobs);
  queue = gst_oct_bscan_queue_new (self, devices, n_batches, self->n_full);
  GST_OBJECT_LOCK (self);
  self->queue = queue;
  GST_OBJECT_UNLOCK (self);
  return IMK_OK;
}

void
gst_oct_bscan_release_devices (GstOctBscan *self)
{
  GstOctBscanQueue *queue;

  g_mutex_lock (&self->engine_lock);
  GST_OBJECT_LOCK (self);
  queue = g_steal_pointer (&self->queue);
  GST_OBJECT_UNLOCK (self);
  g_mutex_unlock (&self->engine_lock);
  gst_oct_bscan_queue_free (queue);
  gst_oct_bscan_forget_snapshot (self);
}

void
gst_oct_bscan_drain (GstOctBscan *self)
{
  if (self->queue)
    gst_oct_bscan_queue_drain (self->queue);
}

static const gchar *
name_memory (GstBuffer *buffer)
{
  if (gst_oct_bscan_is_on_device (buffer))
    return "device";
  return gst_oct_bscan_peek_ours (buffer) ? "pinned" : "system";
}

/* Memory for the images, and the B-scan where the device reaches it. Call with
 * the engine locked. */
static ImkStatus
prepare_for_device (
    GstOctBscan *self, GstOctBscanWork *w, GstFlowReturn *flow, ImkError *error)
{
  GstImagingContext *context = gst_imaging_engine_context (self->engine);
  ImkStatus status = gst_oct_bscan_need_devices (self, error);
  GstBuffer *source;
  ImkError ignored;

  *flow = GST_FLOW_OK;
  if (status == IMK_OK)
    status = gst_imaging_context_push (context, error);
  if (status != IMK_OK)
    return status;
  follow_readers (self);
  *flow = prepare (self, w);
  source = w->in ? gst_imaging_engine_reachable (
                       self->engine, w->in, GST_IMAGING_REACH_DEVICE, &ignored)
                 : NULL;
  gst_imaging_context_pop (context);
  /* without page-locked memory as it is, which takes longer */
  if (source && source != w->in) {
    gst_buffer_unref (w->source);
    w->source = source;
  }
  w->may_go_anywhere =
      w->to_host && w->source && !gst_oct_bscan_is_on_device (w->source);
  if (w->in)
    gst_imaging_engine_note_memory (self->engine, name_memory (w->source));
  if (*flow == GST_FLOW_ERROR)
    return imk_error_set (
        error, IMK_ERROR_DEVICE, "The device has no memory for an image.");
  return IMK_OK;
}

gboolean
gst_oct_bscan_leave_device (GstOctBscan *self, const GstOctBscanWork *w,
    ImkStatus status, const ImkError *why)
{
  ImkError error = *why;
  gboolean can, done;

  gst_oct_bscan_drain (self);
  gst_oct_bscan_release_devices (self);
  g_mutex_lock (&self->engine_lock);
  done = !gst_imaging_engine_is_on_cuda (self->engine); /* by the queue */
  can = done || gst_imaging_engine_can_fall_back (self->engine, status);
  if (done) {
    status = IMK_OK;
  } else if (can) {
    status = gst_imaging_engine_fall_back (self->engine, &error);
    gst_imaging_engine_post_fall_back (self->engine, why,
        w && status == IMK_OK && is_lost (self, w, IMK_ERROR_DEVICE));
  }
  if (!can || status != IMK_OK)
    gst_imaging_engine_post_error (self->engine, status, &error);
  g_mutex_unlock (&self->engine_lock);
  return can && status == IMK_OK;
}

/* The device fails before it has any work; its earlier work has been output. */
static GstFlowReturn
process_without_device (GstOctBscan *self, GstOctBscanWork *w, ImkStatus status,
    const ImkError *why)
{
  clear_outputs (w);
  if (gst_oct_bscan_leave_device (self, w, status, why))
    return process_on_cpu (self, w);
  gst_oct_bscan_work_free (w);
  return GST_FLOW_ERROR;
}

/* The first reader of an image on the device waits for an allocation and a
 * copy, longer than a B-scan takes. Waiting for the first image here keeps the
 * next ones from queueing behind it. The wait is short, because a sink may hold
 * the image until the pipeline plays. */
static void
show_first (GstOctBscan *self)
{
  self->has_shown = TRUE;
  if (!self->host_images)
    gst_oct_bscan_queue_wait (self->queue, FIRST_US);
}

/* Call with the engine locked; it is unlocked. */
static GstFlowReturn
process_on_devices (GstOctBscan *self, GstOctBscanWork *w)
{
  gboolean is_first = !self->has_shown && w->has_images;
  gboolean is_settling = w->snapshot->config.range == IMK_OCTBSCAN_RANGE_AUTO;
  GstFlowReturn flow;
  ImkStatus status;
  ImkError error;

  if (must_negotiate (self, w)) {
    g_mutex_unlock (&self->engine_lock);
    gst_oct_bscan_drain (self);
    g_mutex_lock (&self->engine_lock);
  }
  status = prepare_for_device (self, w, &flow, &error);
  g_mutex_unlock (&self->engine_lock);
  if (status != IMK_OK)
    return process_without_device (self, w, status, &error);
  /* the next B-scan needs the ends that are found in this one */
  is_settling &= w->has_images && (w->out[SRC] || w->out[LINEAR]);
  if (flow == GST_FLOW_OK) {
    flow = gst_oct_bscan_queue_add_work (self->queue, w);
    if (is_settling)
      gst_oct_bscan_drain (self);
    if (flow == GST_FLOW_OK && is_first)
      show_first (self);
    return flow;
  }
  gst_oct_bscan_work_free (w);
  return flow;
}

/* --- both ----------------------------------------------------------------- */

static GstFlowReturn
process (GstOctBscan *self, GstOctBscanWork *w)
{
  ImkStatus status;
  ImkError error;

  g_mutex_lock (&self->engine_lock);
  status = gst_imaging_engine_ensure_open (self->engine, &error);
  if (status == IMK_OK && gst_imaging_engine_is_on_cuda (self->engine))
    return process_on_devices (self, w);
  g_mutex_unlock (&self->engine_lock);
  if (status != IMK_OK) {
    gst_oct_bscan_work_free (w);
    return gst_oct_bscan_post_error (self, &error);
  }
  /* the last of several devices may have been lost */
  gst_oct_bscan_drain (self);
  gst_oct_bscan_release_devices (self);
  return process_on_cpu (self, w);
}

GstFlowReturn
gst_oct_bscan_process (GstOctBscan *self, GstBuffer *in, guint n, guint64 frame,
    GstClockTime entered)
{
  gst_oct_bscan_follow_actions (self, in);
  return process (self, work_new (self, in, n, frame, entered));
}

GstFlowReturn
gst_oct_bscan_show_mean (GstOctBscan *self)
{
  GstOctBscanWork *w;

  if (self->mean.n == 0)
    return GST_FLOW_OK;
  self->mean.n = 0;
  w = g_new0 (GstOctBscanWork, 1);
  w->n = 1;
  w->snapshot = gst_oct_bscan_get_snapshot (self);
  gst_oct_bscan_need_ends (w);
  w->has_images = TRUE;
  w->pts = self->mean.pts;
  w->dts = self->mean.dts;
  w->duration = self->mean.duration;
  w->is_discont = self->mean.is_discont;
  w->like = g_steal_pointer (&self->mean.last);
  return process (self, w);
}
