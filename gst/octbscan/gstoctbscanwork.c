/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A work item: what is known of its B-scans before they are processed, and the
 * jobs that the kernel gets for them. */
#include "gstoctbscanwork.h"

#include "gstimagingmetadata.h"
#include "gstoctbscaninput.h"
#include "gstoctbscanplan.h"
#include "gstoctbscantime.h"

static guint64
end_of (GstBuffer *buffer)
{
  if (GST_BUFFER_OFFSET_END_IS_VALID (buffer))
    return GST_BUFFER_OFFSET_END (buffer);
  return GST_BUFFER_OFFSET_IS_VALID (buffer) ? GST_BUFFER_OFFSET (buffer) + 1
                                             : GST_BUFFER_OFFSET_NONE;
}

/* Its place in the mean of @n B-scans, and the stamp of that. A mean has the
 * numbers of all its B-scans, or those behind the first would count as missing
 * frames. */
static void
add_to_mean (GstOctBscan *self, GstOctBscanWork *w, guint n)
{
  GstOctBscanMean *mean = &self->input.mean;

  w->begins_mean = mean->n == 0;
  if (w->begins_mean)
    mean->stamp = (GstOctBscanStamp){
        .pts = GST_BUFFER_PTS (w->in),
        .dts = GST_BUFFER_DTS (w->in),
        .offset = n > 1 ? GST_BUFFER_OFFSET (w->in) : GST_BUFFER_OFFSET_NONE,
    };
  mean->stamp.is_discont |= GST_BUFFER_IS_DISCONT (w->in);
  mean->stamp.duration = gst_oct_bscan_time_sum (
      mean->stamp.duration, GST_BUFFER_DURATION (w->in));
  mean->stamp.offset_end = end_of (w->in);
  w->stamp = mean->stamp;
  w->has_images = ++mean->n >= n;
  gst_clear_buffer (&mean->last);
  if (w->has_images) {
    mean->n = 0;
  } else { /* without its lines, which a camera wants back */
    mean->last = gst_buffer_new ();
    gst_imaging_metadata_pass (mean->last, w->in, FALSE);
  }
}

/* For the current settings. @in: (nullable) (transfer full) */
static GstOctBscanWork *
make_work (GstOctBscan *self, GstBuffer *in, guint n)
{
  GstOctBscanWork *w = g_new0 (GstOctBscanWork, 1);

  w->n = n;
  w->in = in;
  if (in)
    gst_oct_bscan_look_again (self, w);
  w->snapshot = gst_oct_bscan_get_snapshot (self);
  w->wants_ends = w->snapshot->config.range != IMK_OCTBSCAN_RANGE_FIXED;
  w->wants_tracks =
      in && w->snapshot->config.tracking != IMK_OCTBSCAN_TRACKING_NONE;
  w->reports = g_new0 (GstOctBscanReport, n);
  return w;
}

GstOctBscanWork *
gst_oct_bscan_work_new (GstOctBscan *self, GstBuffer *in, guint n,
    guint64 frame, GstClockTime entered)
{
  GstOctBscanWork *w = make_work (self, in, n);

  w->like = gst_buffer_ref (in);
  w->source = gst_buffer_ref (in);
  w->frame = frame;
  w->n_missing = self->input.n_missing;
  self->input.n_missing = 0;
  w->entered = entered;
  w->first_camera = gst_oct_bscan_first_camera (self);
  w->backward = w->snapshot->config.bidirectional && self->input.n_bscans % 2;
  add_to_mean (self, w, w->snapshot->average_bscans);
  self->input.n_bscans += n;
  self->input.next_line += (guint64) n * (guint) self->input.bscan.height;
  return w;
}

GstOctBscanWork *
gst_oct_bscan_work_of_mean (GstOctBscan *self)
{
  GstOctBscanWork *w;

  if (self->input.mean.n == 0)
    return NULL;
  self->input.mean.n = 0;
  w = make_work (self, NULL, 1);
  w->has_images = TRUE;
  w->stamp = self->input.mean.stamp;
  w->like = g_steal_pointer (&self->input.mean.last);
  return w;
}

void
gst_oct_bscan_work_clear_outputs (GstOctBscanWork *w)
{
  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_clear_buffer (&w->out[i]);
}

void
gst_oct_bscan_work_free (GstOctBscanWork *w)
{
  gst_oct_bscan_work_clear_outputs (w);
  gst_clear_buffer (&w->source);
  gst_clear_buffer (&w->in);
  gst_clear_buffer (&w->like);
  gst_oct_bscan_snapshot_unref (w->snapshot);
  g_free (w->reports);
  g_free (w);
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

/* Nothing that is on a failed device can be had again. */
gboolean
gst_oct_bscan_work_is_lost (
    GstOctBscan *self, const GstOctBscanWork *w, ImkStatus status)
{
  return w->in && gst_imaging_engine_is_lost (self->base.engine, w->in, status);
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
    guint k, const ImkImage *in, ImkImage *images, GstOctBscanReport *report,
    ImkLocation location, ImkImage *track)
{
  guint64 lines = (guint64) k * self->input.bscan.height;
  ImkOctbscanJob job = {
      .in = in,
      .first_camera =
          (guint) ((w->first_camera + lines) % self->open.config.n_cameras),
      .backward = w->snapshot->config.bidirectional && (w->backward + k) % 2,
      .db_is_linear = w->snapshot->scaling == SCALING_LINEAR,
      .n_bad = &report->n_bad,
      .ends = w->wants_ends ? report->ends : NULL,
      .track = w->wants_tracks ? track : NULL,
  };
  ImkImage **places[N_OUTPUTS] = {
      [LINEAR] = &job.linear,
      [COMPLEX] = &job.complex,
      [ENFACE] = &job.enface,
      [SRC] = &job.db,
  };

  *track = (ImkImage){&report->track, sizeof (report->track),
      sizeof (report->track) / sizeof (gfloat), 1, 1, IMK_TYPE_F32, location};
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (w->out[i])
      *places[i] = &images[i];
  return job;
}
