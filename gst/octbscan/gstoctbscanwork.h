/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Work items: B-scans on their way from the input to the pads, and the settings
 * and formats that many of them share. */
#pragma once

#include "gstoctbscan-private.h"

/* The settings and formats of a number of B-scans. Immutable but for the count.
 * g_atomic_rc_box would count as well, but the thread sanitizer does not see
 * GLib count. */
struct _GstOctBscanSnapshot {
  guint changes; /* n_changes of the settings in use */
  ImkOctbscanConfig config;
  Scaling scaling;
  gboolean auto_range; /* range=auto, also if @config has fixed ends by now */
  guint auto_serial;
  gdouble live[2 * IMK_OCTBSCAN_MAX_CAMERAS]; /* of @config, if it has one */
  guint average_bscans;
  GstImagingAxis depth, lateral; /* of images */
  gdouble wavelengths[2];        /* nm; 0 when they are not known */
  gdouble refractive_index;
  const gchar *element; /* interned */
  gchar *settings_hash; /* (nullable) */
  guint pads_serial;    /* of gst_imaging_src_pads_serial () */
  GstOctBscanPad *pads[N_OUTPUTS];
  gboolean is_float[N_OUTPUTS]; /* an image is a tensor */
  GstVideoInfo info[N_OUTPUTS]; /* of an image */
  GstVideoInfo volume;          /* of the image of ENFACE */
  gint count;                   /* atomic, of references; the last member */
};

/* What a kernel tells of a B-scan, see ImkOctbscanJob; 0 where it does not. */
typedef struct {
  guint32 n_bad;
  gfloat ends[4];
  struct {
    gfloat place, weight, mean, shift;
  } track;
} GstOctBscanReport;

/* A B-scan in progress, or several of one buffer that are pushed as one
 * list. */
struct _GstOctBscanWork {
  GList link;                /* in the queue */
  guint n;                   /* B-scans, one behind the other in @in and @out */
  GstBuffer *in;             /* NULL: only the images of the current mean */
  GstBuffer *like;           /* (nullable): has their offset and metadata */
  GstBuffer *source;         /* @in or, for a device, a copy of it */
  GstBuffer *out[N_OUTPUTS]; /* an image for each pad that wants one */
  GstOctBscanSnapshot *snapshot;
  GstOctBscanStamp stamp; /* of the images */
  gboolean has_images;    /* FALSE: it is only added to a mean */
  gboolean begins_mean;
  gboolean backward;
  gboolean to_host;         /* images are copied to page-locked memory */
  gboolean may_go_anywhere; /* FALSE: its samples are on the first device */
  gboolean lost;
  gboolean on_cpu; /* the CPU has made the images */
  gboolean wants_ends, wants_tracks;
  GstOctBscanReport *reports; /* [n] */
  gdouble fringe;             /* of the mean, dB; 0 if it was not measured */
  guint first_camera;
  guint64 frame, n_missing; /* of the buffer that it began in; before it */
  GstClockTime entered;
};

/* --- gstoctbscansnapshot.c */

/* Returns: (transfer full): the current snapshot. Locks the engine. */
GstOctBscanSnapshot *gst_oct_bscan_get_snapshot (GstOctBscan *self);
void gst_oct_bscan_snapshot_unref (GstOctBscanSnapshot *snapshot);

/* Replaces *@snapshot by one with the formats that the pads have now. Call with
 * the engine locked. */
void gst_oct_bscan_renew_formats (
    GstOctBscan *self, GstOctBscanSnapshot **snapshot);

/* Releases the pads that the current snapshot holds. */
void gst_oct_bscan_forget_snapshot (GstOctBscan *self);

/* --- gstoctbscanwork.c */

/* Takes the next place among the B-scans: turns, direction, mean.
 * @in: (transfer full): @n B-scans; @frame: number of the buffer with the first
 *   line; @entered: arrival of the last line */
GstOctBscanWork *gst_oct_bscan_work_new (GstOctBscan *self, GstBuffer *in,
    guint n, guint64 frame, GstClockTime entered);

/* Returns: (nullable): for the images of the incomplete mean, which ends */
GstOctBscanWork *gst_oct_bscan_work_of_mean (GstOctBscan *self);

void gst_oct_bscan_work_free (GstOctBscanWork *work);

void gst_oct_bscan_work_clear_outputs (GstOctBscanWork *work);

/* Gives a work item ordinary memory for its images: a failed device may still
 * write to the old memory, or has freed it. */
void gst_oct_bscan_work_renew (GstOctBscanWork *work);

/* Returns: whether the samples of @work are on a failed device, and lost */
gboolean gst_oct_bscan_work_is_lost (
    GstOctBscan *self, const GstOctBscanWork *work, ImkStatus status);

/* Makes of the mapped bytes of @output the image that kernels take. */
void gst_oct_bscan_work_image (
    const GstOctBscanWork *work, guint output, ImkImage *plane);

/* @in: (nullable): NULL for images of the mean; @images: of the outputs
 * @report: as the kernel reaches it, at @location; @track: for its image
 * Returns: the kernel's job for B-scan @k of @work */
ImkOctbscanJob gst_oct_bscan_work_job (const GstOctBscan *self,
    const GstOctBscanWork *work, guint k, const ImkImage *in, ImkImage *images,
    GstOctBscanReport *report, ImkLocation location, ImkImage *track);

/* --- gstoctbscancpu.c */

/* Makes the images of @work, unless its samples are lost with a device. Call
 * with the engine locked. */
ImkStatus gst_oct_bscan_run_on_cpu (
    GstOctBscan *self, GstOctBscanWork *work, ImkError *error);

/* The device failed: makes the CPU go on, if that is allowed. @work:
 * (nullable): may be lost with the device. Call with the engine locked.
 * Returns: FALSE after an error was posted */
gboolean gst_oct_bscan_fall_back (GstOctBscan *self,
    const GstOctBscanWork *work, ImkStatus status, const ImkError *why);
