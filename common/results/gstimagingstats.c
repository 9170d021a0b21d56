/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingstats.h"

/* Durations in nanoseconds, 128 bins an octave: constant memory and a known
 * relative error, however long the pipeline runs. Below 128 ns a bin is 1 ns.
 */
enum {
  SUB_BITS = 7,
  SUB_BINS = 1 << SUB_BITS,
  N_BINS = (64 - SUB_BITS + 1) * SUB_BINS
};

struct _GstImagingStats {
  gint ref_count;
  GMutex lock;
  guint64 n_frames, n_lost, n_missing, n_replans;
  guint64 uploaded, downloaded, copied, from_peers;
  guint64 viewed;        /* of those downloaded */
  const gchar *own_name; /* NULL: none */
  guint64 n_own;
  GstClockTime longest, longest_replan;
  guint64 bins[N_BINS];
};

GstImagingStats *
gst_imaging_stats_new (void)
{
  GstImagingStats *self = g_new0 (GstImagingStats, 1);

  self->ref_count = 1;
  g_mutex_init (&self->lock);
  return self;
}

GstImagingStats *
gst_imaging_stats_ref (GstImagingStats *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
gst_imaging_stats_unref (GstImagingStats *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
gst_imaging_stats_reset (GstImagingStats *self)
{
  GST_IMAGING_HOLD (&self->lock);
  self->n_frames = self->n_lost = self->n_missing = self->n_replans = 0;
  self->uploaded = self->downloaded = self->copied = self->n_own = 0;
  self->viewed = self->from_peers = 0;
  self->longest = self->longest_replan = 0;
  memset (self->bins, 0, sizeof (self->bins));
}

static guint
bin_of (GstClockTime duration)
{
  guint shift;

  if (duration < SUB_BINS)
    return (guint) duration;
  shift = 63 - __builtin_clzll (duration) - SUB_BITS;
  return (shift + 1) * SUB_BINS + (guint) (duration >> shift) - SUB_BINS;
}

/* The middle of a bin, in nanoseconds. */
static gdouble
bin_middle (guint bin)
{
  guint shift;

  if (bin < SUB_BINS)
    return bin;
  shift = bin / SUB_BINS - 1;
  return (SUB_BINS + bin % SUB_BINS + 0.5) *
         (gdouble) (G_GUINT64_CONSTANT (1) << shift);
}

void
gst_imaging_stats_add_frame (GstImagingStats *self, GstClockTime duration)
{
  GST_IMAGING_HOLD (&self->lock);
  self->n_frames++;
  self->bins[bin_of (duration)]++;
  self->longest = MAX (self->longest, duration);
}

void
gst_imaging_stats_add_replan (GstImagingStats *self, GstClockTime duration)
{
  GST_IMAGING_HOLD (&self->lock);
  self->n_replans++;
  self->longest_replan = MAX (self->longest_replan, duration);
}

static void
add (GstImagingStats *self, guint64 *counter, guint64 value)
{
  GST_IMAGING_HOLD (&self->lock);
  *counter += value;
}

void
gst_imaging_stats_add_lost (GstImagingStats *self)
{
  add (self, &self->n_lost, 1);
}

void
gst_imaging_stats_add_missing (GstImagingStats *self, guint64 n)
{
  add (self, &self->n_missing, n);
}

void
gst_imaging_stats_name_own (GstImagingStats *self, const gchar *name)
{
  GST_IMAGING_HOLD (&self->lock);
  self->own_name = name;
}

void
gst_imaging_stats_add_own (GstImagingStats *self, guint64 n)
{
  add (self, &self->n_own, n);
}

void
gst_imaging_stats_add_uploaded (GstImagingStats *self, gsize size)
{
  if (self)
    add (self, &self->uploaded, size);
}

static GPrivate viewing;

void
gst_imaging_stats_set_viewing (gboolean is_viewing)
{
  g_private_set (&viewing, GINT_TO_POINTER (is_viewing));
}

void
gst_imaging_stats_add_downloaded (GstImagingStats *self, gsize size)
{
  if (!self)
    return;
  if (g_private_get (&viewing))
    add (self, &self->viewed, size);
  add (self, &self->downloaded, size);
}

void
gst_imaging_stats_add_copied (GstImagingStats *self, gsize size)
{
  if (self)
    add (self, &self->copied, size);
}

void
gst_imaging_stats_add_from_peers (GstImagingStats *self, gsize size)
{
  if (self)
    add (self, &self->from_peers, size);
}

/* In microseconds; @share of all frames took at most this long. */
static gdouble
percentile (const GstImagingStats *self, gdouble share)
{
  guint64 wanted = (guint64) (share * self->n_frames), seen = 0;

  for (guint bin = 0; bin < N_BINS; bin++) {
    seen += self->bins[bin];
    if (seen > wanted || (seen && seen == self->n_frames))
      return MIN (bin_middle (bin), (gdouble) self->longest) / 1e3;
  }
  return 0;
}

guint64
gst_imaging_stats_streamed (GstImagingStats *self)
{
  /* what is viewed is added first */
  GST_IMAGING_HOLD (&self->lock);
  return self->downloaded > self->viewed ? self->downloaded - self->viewed : 0;
}

GstStructure *
gst_imaging_stats_to_structure (GstImagingStats *self)
{
  GstStructure *s;

  GST_IMAGING_HOLD (&self->lock);
  s = gst_structure_new ("stats", "frames", G_TYPE_UINT64, self->n_frames,
      "lost-frames", G_TYPE_UINT64, self->n_lost, "frames-missing",
      G_TYPE_UINT64, self->n_missing, "bytes-uploaded", G_TYPE_UINT64,
      self->uploaded, "bytes-downloaded", G_TYPE_UINT64, self->downloaded,
      "bytes-copied", G_TYPE_UINT64, self->copied, "bytes-from-peers",
      G_TYPE_UINT64, self->from_peers, "time-p50", G_TYPE_DOUBLE,
      percentile (self, 0.5), "time-p99", G_TYPE_DOUBLE,
      percentile (self, 0.99), "time-max", G_TYPE_DOUBLE, self->longest / 1e3,
      "replans", G_TYPE_UINT64, self->n_replans, "longest-replan-us",
      G_TYPE_DOUBLE, self->longest_replan / 1e3, NULL);
  if (self->own_name)
    gst_structure_set (s, self->own_name, G_TYPE_UINT64, self->n_own, NULL);
  return s;
}
