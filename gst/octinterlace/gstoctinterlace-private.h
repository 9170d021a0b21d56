/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the element share. The aggregating thread uses it, unless a
 * comment says otherwise. */
#pragma once

#include <gst/video/video.h>

#include "gstimagingsettings.h"
#include "gstoctinterlace.h"

G_BEGIN_DECLS

#define GST_TYPE_OCT_INTERLACE_PAD (gst_oct_interlace_pad_get_type ())
G_DECLARE_FINAL_TYPE (GstOctInterlacePad, gst_oct_interlace_pad, GST,
    OCT_INTERLACE_PAD, GstAggregatorPad)

typedef enum { MISSING_DROP, MISSING_REPEAT, MISSING_BLACK } Missing;

typedef struct {
  GstClockTime tolerance;
  Missing missing;
} Settings;

/* A camera. */
struct _GstOctInterlacePad {
  GstAggregatorPad parent;
  guint number;
  GstVideoInfo info;    /* width 0 before caps */
  GstBuffer *frame;     /* (nullable): of the current B-scan */
  GstBuffer *last;      /* (nullable): of an earlier B-scan */
  gboolean repeats;     /* @frame is @last */
  gboolean was_refused; /* its caps; an error has been posted */
  gint is_flushed;      /* atomic; @last is obsolete */
  gboolean lags, warned;
  guint64 n_missing; /* under the object lock of the element */
};

struct _GstOctInterlace {
  GstAggregator parent;
  GstVideoInfo info;        /* of the output */
  GstVideoInfo camera_info; /* of each camera in it */
  guint n_cameras;          /* in it */
  gboolean is_gap;          /* frames were left out since the last output */
  GQueue held;              /* of gst_imaging_aggregator_keep_event () */
  gboolean refused;         /* an error was posted for the output's caps */
  GstImagingSettings *settings;
  guint64 n_frames, n_incomplete; /* under the object lock */
};

/* Returns: whether frames of @camera have the format of those in the output */
gboolean gst_oct_interlace_has_format (
    const GstOctInterlace *self, const GstOctInterlacePad *camera);

/* Returns: the running time, or the pts if the segment has another format */
GstClockTime gst_oct_interlace_pad_time_of (
    GstOctInterlacePad *self, GstBuffer *frame);

/* Returns: how much later than the earliest frame another one may be */
GstClockTime gst_oct_interlace_get_tolerance (GstOctInterlace *self);

/* @time: (out): of that frame
 * Returns: (transfer none) (nullable): the camera with the earliest frame */
GstOctInterlacePad *gst_oct_interlace_find_earliest (
    GPtrArray *cameras, GstClockTime *time);

/* Drops gaps that are over at @time; at GST_CLOCK_TIME_NONE all are. Returns:
 * whether there were any, so that what is behind them counts */
gboolean gst_oct_interlace_drop_old_gaps (
    GPtrArray *cameras, GstClockTime time);

/* Takes a frame of each camera that has one of the earliest time; a frame
 * without a time always matches. Returns: this time */
GstClockTime gst_oct_interlace_take_frames (
    GstOctInterlace *self, GPtrArray *cameras);

/* Counts and reports cameras without a frame, and follows the property missing.
 * Returns: whether a B-scan is output */
gboolean gst_oct_interlace_handle_missing (
    GstOctInterlace *self, GPtrArray *cameras, GstClockTime time);

/* Makes a B-scan of the cameras' frames, at the running time @time. Returns:
 * GST_FLOW_OK with @bscan set, or the reason why not */
GstFlowReturn gst_oct_interlace_make_bscan (GstOctInterlace *self,
    GPtrArray *cameras, GstClockTime time, GstBuffer **bscan);

G_END_DECLS
