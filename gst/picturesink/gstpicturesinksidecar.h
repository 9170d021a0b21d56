/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The file beside a file: docs/reference/picturesink.md defines it. */
#pragma once

#include "gstimagingnumbering.h"
#include "gstimagingquantity.h"
#include "gstpicturesinkfile.h"
#include "gstpicturesinkpipeline.h"
#include "gstpicturesinkseries.h"

typedef enum {
  GST_PICTURE_SINK_SIDECAR_AUTO,
  GST_PICTURE_SINK_SIDECAR_NONE,
  GST_PICTURE_SINK_SIDECAR_ALWAYS,
} GstPictureSinkSidecarMode;

typedef struct {
  GstPictureSinkSidecarMode mode;
  gboolean is_saved; /* at least once: what lies there is ours */
  GstElement *sink;  /* the owner */
  GstPictureSinkPipeline *pipeline;
  GstImagingNumbering numbering;
  GstPictureSinkSeries numbers, times, captures, scales, offsets;
  GstPictureSinkSeries steps[GST_IMAGING_MAX_AXES];
  GstPictureSinkSeries origins[GST_IMAGING_MAX_AXES];
  gboolean has_warned; /* that one header stands for frames that differ */
  guint64 n_missing;
  gchar *clock;           /* of the capture times */
  GstStructure *quantity; /* of the first frame */
  gboolean tells;         /* what the file cannot */
  gchar *flags;           /* (nullable): the file of the second tensor */
  gchar *previous;        /* JSON: of the frames that were there */
  GThread *thread;        /* (nullable): saves what is known meanwhile */
  gint is_saving;         /* atomic: it has not ended */
  gint64 due;             /* monotonic time of the next one */
} GstPictureSinkSidecar;

void gst_picture_sink_sidecar_start (GstPictureSinkSidecar *self,
    GstPictureSinkSidecarMode mode, GstElement *sink);

/* After a frame was written to @file; of @buffer, which has @n_frames. */
void gst_picture_sink_sidecar_add (GstPictureSinkSidecar *self,
    const GstPictureSinkFile *file, GstBuffer *buffer, guint64 n_frames,
    gint fps_n, gint fps_d);

/* @complete: no frame follows */
gboolean gst_picture_sink_sidecar_save (GstPictureSinkSidecar *self,
    const GstPictureSinkFile *file, const GstImagingNdArray *frame,
    gboolean complete, GError **error);

/* After a frame that is neither the first nor the last: now and then, so that a
 * crash or a full disk leaves numbers and times of all but the last second. */
void gst_picture_sink_sidecar_extend (GstPictureSinkSidecar *self,
    const GstPictureSinkFile *file, const GstImagingNdArray *frame);

void gst_picture_sink_sidecar_clear (GstPictureSinkSidecar *self);
