/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/**
 * GstImagingStats: (skip)
 *
 * What an element has done since it started: frames, bytes copied between
 * host and device, and how long frames took. Reference counted, because
 * memory outlives the element that made it; safe from any thread.
 */
typedef struct _GstImagingStats GstImagingStats;

GST_IMAGING_API
GstImagingStats *gst_imaging_stats_new (void);
GST_IMAGING_API
GstImagingStats *gst_imaging_stats_ref (GstImagingStats *self);
GST_IMAGING_API
void gst_imaging_stats_unref (GstImagingStats *self);

GST_IMAGING_API
void gst_imaging_stats_reset (GstImagingStats *self);
GST_IMAGING_API
void gst_imaging_stats_add_frame (GstImagingStats *self, GstClockTime duration);
GST_IMAGING_API
void gst_imaging_stats_add_lost (GstImagingStats *self);
GST_IMAGING_API
void gst_imaging_stats_add_missing (GstImagingStats *self, guint64 n);

/* A new kernel was made for new settings, which took @duration. */
GST_IMAGING_API
void gst_imaging_stats_add_replan (
    GstImagingStats *self, GstClockTime duration);

/* What an element counts of its own, @name: static, as "bad-ascans". */
GST_IMAGING_API
void gst_imaging_stats_name_own (GstImagingStats *self, const gchar *name);
GST_IMAGING_API
void gst_imaging_stats_add_own (GstImagingStats *self, guint64 n);

/* @self may be %NULL in these four. */
GST_IMAGING_API
void gst_imaging_stats_add_uploaded (GstImagingStats *self, gsize size);
GST_IMAGING_API
void gst_imaging_stats_add_downloaded (GstImagingStats *self, gsize size);
GST_IMAGING_API
void gst_imaging_stats_add_copied (GstImagingStats *self, gsize size);
GST_IMAGING_API
void gst_imaging_stats_add_from_peers (GstImagingStats *self, gsize size);

/**
 * gst_imaging_stats_set_viewing: (skip)
 * @viewing: whether what the calling thread downloads from now on is for a
 *   viewer, who sees some of the frames
 */
GST_IMAGING_API
void gst_imaging_stats_set_viewing (gboolean viewing);

/**
 * gst_imaging_stats_streamed: (skip)
 * Returns: bytes-downloaded without those for viewers: somebody reads all
 * frames where there are some
 */
GST_IMAGING_API
guint64 gst_imaging_stats_streamed (GstImagingStats *self);

/**
 * gst_imaging_stats_to_structure: (skip)
 *
 * Returns: (transfer full): `stats` with frames, lost-frames, frames-missing,
 *   bytes-uploaded, bytes-downloaded, bytes-copied (host to host),
 *   bytes-from-peers (device to device), replans (guint64) and time-p50,
 * time-p99, time-max, longest-replan-us (gdouble, microseconds; 0 before the
 * first one). Percentiles come from a histogram with bins 0.8 % wide; the
 * maximum is exact. Behind them what the element counts of its own.
 */
GST_IMAGING_API
GstStructure *gst_imaging_stats_to_structure (GstImagingStats *self);

G_END_DECLS
