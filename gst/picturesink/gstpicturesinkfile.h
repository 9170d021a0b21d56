/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where frames go: to a file each, to one that grows, or to one of one picture.
 */
#pragma once

#include "gstimagingarrayfile.h"
#include "gstimagingarrayrecorder.h"
#include "gstimagingfilenumber.h"

typedef struct {
  gchar *location; /* as it was set */
  GstImagingFileNumber number;
  guint32 types;                  /* that the format takes, a mask */
  GstImagingArrayAppends appends; /* that the format can */
  gboolean append;
  guint64 max_frames;
  gint level; /* of compression; -1: that of the format */

  GstImagingArrayRecorder *recorder;
  GstImagingNdArray shape;  /* of its frames, without cards */
  guint64 first, n_written; /* number of the first frame; frames of this run */
  gboolean replaces;        /* a file that was there */
} GstPictureSinkFile;

/* Nothing is created yet. */
gboolean gst_picture_sink_file_open (GstPictureSinkFile *self,
    const gchar *location, gboolean append, guint64 max_frames, GError **error);

/* Returns: whether all frames go to one file */
gboolean gst_picture_sink_file_grows (const GstPictureSinkFile *self);

/* The name of a file beside it, with "-flags" before the extension; .npy where
 * its format has no u8. Returns: (transfer full) */
gchar *gst_picture_sink_file_name_flags (const GstPictureSinkFile *self);

/* Opens a file that grows; one that is continued tells how many frames it has.
 * @frame: without values */
gboolean gst_picture_sink_file_prepare (
    GstPictureSinkFile *self, const GstImagingNdArray *frame, GError **error);

/* @frame: without values. After it the file is complete, or valid. */
gboolean gst_picture_sink_file_write (GstPictureSinkFile *self,
    const GstImagingNdArray *frame, gconstpointer values, GError **error);

/* Returns: (transfer full) (nullable): a sentence on numbered files behind
 * those of this run, which another run has left */
gchar *gst_picture_sink_file_describe_older (const GstPictureSinkFile *self);

/* All is on the disk. May be called again. */
gboolean gst_picture_sink_file_finish (
    GstPictureSinkFile *self, GError **error);

void gst_picture_sink_file_close (GstPictureSinkFile *self);
