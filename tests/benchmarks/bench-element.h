/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An element between a camera and a viewer that the benchmark plays. */
#pragma once

#include <gst/video/video.h>

#include "bench.h"

/* What the viewer does with a frame. */
typedef enum BenchView {
  BENCH_VIEW_LEAVE, /* lets go of it where it lies */
  BENCH_VIEW_MAP,   /* maps it on the CPU, as a display or an encoder does */
  BENCH_VIEW_QUEUE, /* the same behind a queue, in a thread of its own */
} BenchView;

typedef struct BenchElement {
  GstElement *element, *queue; /* @queue: NULL without */
  GstPad *src, *sink;          /* the camera's and the viewer's */
  GstCaps *caps;
  GstVideoInfo info;
  BenchView view;
  GstBuffer *last; /* of LEAVE: what the end of all work is waited on */
  GMutex lock;
  GCond came;
  guint64 n_received; /* under @lock, as @last */
} BenchElement;

/* Steps of the functions below, for benchmarks with other pads; they end the
 * program as well. */
void bench_link (GstPad *src, GstPad *sink);
void bench_play (GstElement *element, GstPad *camera, GstCaps *caps);

/* A chain of elements, linked without the pads of a bin, as a pipeline does. */
typedef struct BenchBetween {
  GstElement *bin;
  GstPad *camera, *viewer;
} BenchBetween;

/* Plays @line, in which elements are named "first" and "last". @on_buffer has
 * @data as the datum "bench" of its pad. */
void bench_between_open (BenchBetween *self, const char *line, GstCaps *caps,
    GstPadChainFunction on_buffer, gpointer data);
void bench_between_close (BenchBetween *self);

/* Returns: (transfer full) (nullable): the pool that the peer of @camera
 * offers, active; @most: 0 for any number of buffers */
GstBufferPool *bench_offered_pool (GstPad *camera, GstCaps *caps,
    const GstVideoInfo *info, guint least, guint most);
/* Returns: (transfer full): the same of plain memory */
GstBufferPool *bench_plain_pool (
    GstCaps *caps, const GstVideoInfo *info, guint least, guint most);

/* @line: as gst-launch-1.0 has it, one element; @out: features of the caps
 * that the viewer takes, NULL for any. Ends the program with a sentence when
 * anything fails. */
void bench_element_open (BenchElement *self, const char *line,
    const char *format, gint width, gint height, const char *in_feature,
    const char *out_feature, BenchView view);
void bench_element_close (BenchElement *self);

/* To PLAYING and back; starting starts the element's statistics anew. */
void bench_element_start (BenchElement *self);
void bench_element_stop (BenchElement *self);

/* Returns: (transfer full) (nullable): the pool that the element offers, of
 * @n buffers at least and active */
GstBufferPool *bench_element_offered_pool (BenchElement *self, guint n);
/* Returns: (transfer full): the same of plain memory */
GstBufferPool *bench_element_plain_pool (BenchElement *self, guint n);

void bench_element_push (BenchElement *self, GstBuffer *buffer);
/* Until the viewer has had @n frames since the start. */
void bench_element_wait (BenchElement *self, guint64 n);
