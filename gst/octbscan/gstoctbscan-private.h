/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element: what each thread owns of it. */
#pragma once

#include "gstimagingnumbering.h"
#include "gstimagingquantity.h"
#include "gstimagingelement.h"
#include "gstoctbscanenface.h"
#include "gstoctbscangroup.h"
#include "gstoctbscanpad.h"
#include "gstoctbscansettings.h"

#define GST_TYPE_OCT_BSCAN (gst_oct_bscan_get_type ())
G_DECLARE_FINAL_TYPE (
    GstOctBscan, gst_oct_bscan, GST, OCT_BSCAN, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (octbscan);

GST_DEBUG_CATEGORY_EXTERN (gst_oct_bscan_debug);
#define GST_CAT_DEFAULT gst_oct_bscan_debug

/* Bytes of the blocks of page-locked memory: the bus is fastest with copies of
 * this size. */
#define GST_OCT_BSCAN_SLAB_SIZE ((gsize) 8 << 20)

typedef struct _GstOctBscanMirrors GstOctBscanMirrors;
typedef struct _GstOctBscanPlan GstOctBscanPlan;
typedef struct _GstOctBscanQueue GstOctBscanQueue;
typedef struct _GstOctBscanSnapshot GstOctBscanSnapshot;
typedef struct _GstOctBscanWork GstOctBscanWork;

/* What a kernel has found in B-scans and takes off. */
typedef enum {
  GST_OCT_BSCAN_BACKGROUND,
  GST_OCT_BSCAN_PATTERN
} GstOctBscanFound;

/* Of a line of several B-scans. */
#define GST_OCT_BSCAN_DIFFERENT (-1)

/* What the lines of one B-scan, or of those of a mean, are. */
typedef struct {
  guint n; /* B-scans */
  guint changes;
  gint first_camera, backward; /* or GST_OCT_BSCAN_DIFFERENT */
  gdouble shift;               /* mean, depths */
  guint64 frame, n_missing;    /* of the last; before all of them */
} GstOctBscanLines;

/* A kernel, and what it was made of. */
typedef struct {
  ImkOctbscan *kernel; /* (nullable) */
  ImkBackend backend;
  ImkOctbscanConfig config; /* without its pointers */
} GstOctBscanOpen;

/* What the images of a B-scan, or of the mean of several, are stamped with. */
typedef struct {
  GstClockTime pts, dts;      /* of the first */
  GstClockTime duration;      /* of all */
  guint64 offset, offset_end; /* of all; NONE: those of the metadata */
  gboolean is_discont;        /* one of them had DISCONT */
} GstOctBscanStamp;

/* A mean that is not shown yet, from its B-scans so far. */
typedef struct {
  guint n; /* B-scans */
  GstOctBscanStamp stamp;
  GstBuffer *last; /* (nullable): metadata of the last */
} GstOctBscanMean;

/* range=auto: the mean of the ends of some B-scans, as in ImkOctbscanJob. */
typedef struct {
  guint n;      /* B-scans in the mean */
  guint serial; /* counts changes */
  gfloat ends[4];
  guint n_noise;        /* B-scans of noise only, up to now */
  gboolean holds_noise; /* atomic: the ends come from such B-scans */
  guint n_with_noise;   /* B-scans with these ends */
} GstOctBscanAutoRange;

/* Of the streaming thread: the input. */
typedef struct {
  GstSegment segment;
  GstVideoInfo lines, bscan; /* of an input buffer, and of a B-scan */
  ImkType type;              /* of a sample */
  guint bytes_a_pixel; /* of those infos: tensors are mapped as their bytes */
  guint n_skipped;     /* lines of a B-scan that are left out */
  GstOctBscanGroup *group;
  GstImagingNumbering numbering; /* of the buffers */
  guint64 frame;                 /* the buffer that a B-scan began in */
  guint64 n_missing;             /* buffers before the next B-scan */
  guint64 next_line; /* of all cameras, of the next B-scan; since the turns
                      * began, with that of camera 0 before */
  guint n_bscans;    /* since the turns began */
  GstOctBscanMean mean;
  guint history;                       /* counts interruptions */
  gint64 next_fringe;                  /* when to look for one */
  ImkOctbscanSweep *sweep;             /* (nullable): of the settings ... */
  ImkOctbscanSweepConfig sweep_config; /* ... that it has */
  gboolean warned_of_gap, warned_of_jitter;
} GstOctBscanInput;

/* Of the streaming thread, which changes the first four with the engine locked:
 * the settings in use. */
typedef struct {
  Settings *now;         /* from buffer to buffer */
  guint n_changes;       /* of these */
  GstOctBscanPlan *plan; /* of these and the caps; NULL until there are caps */
  gboolean has_caps;
  gboolean must_configure;
  GstOctBscanOpen next; /* for the next settings */
  gboolean warned_of_cameras, warned_of_mean;
} GstOctBscanInUse;

/* Of the thread that pushes. */
typedef struct {
  GstOctBscanEnface *enface;
  GstOctBscanLines mean_lines, last_lines;
  GstBuffer *last_rows;            /* (nullable): of last_lines */
  GstBufferPool *parts[N_OUTPUTS]; /* for images in the memory of a batch */
} GstOctBscanOutput;

/* Of all threads, with the engine locked. */
typedef struct {
  gdouble depth_step;            /* imk_octbscan_depth_step () */
  gdouble wavelengths[2];        /* nm; 0 when they are not known */
  guint n_full;                  /* B-scans that make an efficient copy */
  GstOctBscanSnapshot *snapshot; /* (nullable): of the last B-scan */
  GstOctBscanQueue *queue; /* freed with the engine and the object locked */
  gboolean host_images;    /* downstream reads images on the CPU */
  gboolean has_shown;      /* the first images have been pushed */
} GstOctBscanShared;

struct _GstOctBscan {
  GstImagingElement base; /* members of its outputs: with the engine locked */
  GstPad *sink;

  GstOctBscanInput input;
  GstOctBscanInUse in_use;
  GstOctBscanOutput output;
  /* Held by the streaming thread, and by a thread that finds the last device
   * lost. Protects the engine, the outputs and: */
  GMutex engine_lock;
  GstOctBscanOpen open;
  GstOctBscanShared shared;

  /* Under the object lock. */
  GstClockTime latency; /* of gathering lines */
  GstClockTime period;  /* from B-scan to B-scan */
  GstClockTime wait;    /* of a mean for the last of its B-scans */
  GstOctBscanAutoRange range;
  GstOctBscanMirrors *mirrors; /* the rest of them: the streaming thread */

  /* Atomic. */
  gint wants_dispersion;
  gint warned_of_bad, warned_of_mirror;
};
