/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the element share. The aggregating thread uses it, unless a
 * comment says otherwise. */
#pragma once

#include <gst/base/gstaggregator.h>

#include "gstimaginglines.h"
#include "gstimagingsettings.h"

#define GST_TYPE_OCT_INTERLACE (gst_oct_interlace_get_type ())
G_DECLARE_FINAL_TYPE (
    GstOctInterlace, gst_oct_interlace, GST, OCT_INTERLACE, GstAggregator)

GST_ELEMENT_REGISTER_DECLARE (octinterlace);

#define GST_TYPE_OCT_INTERLACE_PAD (gst_oct_interlace_pad_get_type ())
G_DECLARE_FINAL_TYPE (GstOctInterlacePad, gst_oct_interlace_pad, GST,
    OCT_INTERLACE_PAD, GstAggregatorPad)

typedef enum { MISSING_DROP, MISSING_REPEAT, MISSING_BLACK } Missing;

typedef enum { MATCH_TIME, MATCH_OFFSET, MATCH_LINE } Match;

typedef struct {
  GstClockTime tolerance;
  Missing missing;
  Match match;
  guint counter_sample, counter_samples, counter_bits;
  GstImagingArray *counter_offsets; /* (nullable) */
} Settings;

/* Of a frame without a time or a counter: it goes in its order. */
#define GST_OCT_INTERLACE_NO_KEY G_MAXUINT64

/* B-scans of no camera that are filled in; more are an interruption. */
#define GST_OCT_INTERLACE_MAX_HOLES 256

/* A camera. */
struct _GstOctInterlacePad {
  GstAggregatorPad parent;
  guint number;
  GstImagingLines lines; /* width 0 before caps */
  GstBuffer *frame;      /* (nullable): of the current B-scan */
  GstBuffer *last;       /* (nullable): of an earlier B-scan */
  gboolean repeats;      /* @frame is @last */
  gboolean was_refused;  /* its caps; an error has been posted */
  gint is_flushed;       /* atomic; @last is obsolete */
  gboolean lags, warned, warned_of_counter;
  guint64 n_missing; /* under the object lock of the element */
};

struct _GstOctInterlace {
  GstAggregator parent;
  GstImagingLines lines;        /* of the output */
  GstImagingLines camera_lines; /* of each camera in it */
  guint n_cameras;              /* in it */
  gboolean is_gap;              /* frames were left out since the last output */
  /* counters: of the last B-scan, of the first frame, from one to the next */
  gboolean has_last, has_first;
  gint64 last_counter, first_counter, step;
  GstClockTime last_time, last_duration; /* of the last B-scan */
  guint64 last_offset;
  GQueue held;      /* of gst_imaging_aggregator_keep_event () */
  gboolean refused; /* an error was posted for the output's caps */
  GstImagingSettings *settings;
  guint64 n_frames, n_incomplete; /* under the object lock */
};

/* --- gstoctinterlacecamera.c ---------------------------------------------- */

/* Returns: whether frames of @camera have the format of those in the output */
gboolean gst_oct_interlace_has_format (
    const GstOctInterlace *self, const GstOctInterlacePad *camera);

/* Returns: the running time, or the pts if the segment has another format */
GstClockTime gst_oct_interlace_pad_time_of (
    GstOctInterlacePad *self, GstBuffer *frame);

/* --- gstoctinterlacecounter.c --------------------------------------------- */

gboolean gst_oct_interlace_has_counters (GstOctInterlace *self);

/* @index: which camera of them. Returns: what frames of one B-scan have in
 * common: the running time, to the tolerance, or the counter */
guint64 gst_oct_interlace_key_of (GstOctInterlace *self,
    GstOctInterlacePad *camera, guint index, GstBuffer *frame);

/* Returns: how many B-scans are missing between the last one and @key */
guint64 gst_oct_interlace_count_holes (GstOctInterlace *self, guint64 key);

/* @key is that of the last B-scan from now on. */
void gst_oct_interlace_note_key (GstOctInterlace *self, guint64 key);
void gst_oct_interlace_step (GstOctInterlace *self);
void gst_oct_interlace_forget_counters (GstOctInterlace *self);

/* --- gstoctinterlacematch.c ----------------------------------------------- */

/* Returns: how much later than the earliest frame another one may be */
GstClockTime gst_oct_interlace_get_tolerance (GstOctInterlace *self);

/* @key: (out): of that frame
 * Returns: (transfer none) (nullable): the camera with the earliest frame */
GstOctInterlacePad *gst_oct_interlace_find_earliest (
    GstOctInterlace *self, GPtrArray *cameras, guint64 *key);

/* Drops gaps that are over at @time; at GST_CLOCK_TIME_NONE all are. Returns:
 * whether there were any, so that what is behind them counts */
gboolean gst_oct_interlace_drop_old_gaps (
    GPtrArray *cameras, GstClockTime time);

/* A flush of a camera makes obsolete what it had. */
void gst_oct_interlace_forget_flushed (
    GstOctInterlace *self, GPtrArray *cameras);

/* Takes a frame of each camera that has one of the earliest time or counter; a
 * frame without one always matches. Returns: the earliest time of them */
GstClockTime gst_oct_interlace_take_frames (
    GstOctInterlace *self, GPtrArray *cameras);

/* Takes no frame: the next B-scan is the first of @n that are missing before
 * what waits. Returns: its time */
GstClockTime gst_oct_interlace_take_hole (
    GstOctInterlace *self, GPtrArray *cameras, guint64 n);

/* Counts and reports cameras without a frame, and follows the property missing.
 * Returns: whether a B-scan is output */
gboolean gst_oct_interlace_handle_missing (
    GstOctInterlace *self, GPtrArray *cameras, GstClockTime time);

/* Makes a B-scan of the cameras' frames, at the running time @time. Returns:
 * GST_FLOW_OK with @bscan set, or the reason why not */
GstFlowReturn gst_oct_interlace_make_bscan (GstOctInterlace *self,
    GPtrArray *cameras, GstClockTime time, GstBuffer **bscan);
