/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* octbscan between a camera and viewers that are this program: B-scans in the
 * buffers that the element offers, which are filled once and used again and
 * again, and images that are mapped for reading. */
#pragma once

#include <gst/video/video.h>

#include "bench.h"

enum { OCT_SAMPLES = 832, OCT_LINES = 240 };

typedef struct OctViewer {
  GstPad *pad;
  guint64 n_received;
  guint64 n_out_of_order;
  gint64 last_frame;
} OctViewer;

typedef struct OctStream {
  GstElement *element;
  GstPad *camera;
  GstCaps *caps;
  GstVideoInfo info;
  GstBufferPool *pool;
  GHashTable *filled;   /* buffers of it */
  OctViewer viewers[2]; /* src and, where it is wanted, linear */
  guint n_viewers;
  gboolean has_sample; /* else noise */
  double *arrivals;    /* us, of src, by frame; NULL when not wanted */
} OctStream;

/* Writes a calibration of @cameras and returns its path. */
gchar *oct_calibration (guint cameras);
void oct_calibration_free (gchar *path);

/* @properties: of octbscan, as gst-launch-1.0 takes them; those of the
 *   environment variable OCT_BENCH_SETTINGS are added, for comparisons
 * @lines: a buffer has
 * @n_buffers: that the camera has, filled at once; 0 for as many as it takes */
void oct_stream_open (OctStream *s, const gchar *properties, guint lines,
    gdouble rate, gboolean linear, gboolean has_sample, guint n_buffers);

/* Pushes B-scan @i, or those from @i on that a buffer has. Returns: FALSE when
 * all buffers are in use: it is lost */
gboolean oct_stream_push (OctStream *s, guint64 i);

/* Sends EOS, after which all images have been received. */
void oct_stream_end (OctStream *s, guint64 n_expected);

void oct_stream_close (OctStream *s);

/* Returns: us of a processor that the calling thread has used; when it is the
 * camera, and uses all of the time, it is what limits the rate */
double oct_stream_busy (void);

/* Returns: of `stats` */
guint64 oct_stream_stat (OctStream *s, const gchar *field);
