/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The two sink pads of an element that takes two SAR images by lines, each from
 * a thread of its own: their caps, lines, flushes and ends. What the lines are
 * for is the element's. */
#pragma once

#include "gstimagingelement.h"
#include "gstinsarslc.h"

enum { GST_INSAR_REFERENCE, GST_INSAR_SECONDARY, GST_INSAR_N_SIDES };

/* What an element does for its pair; called under the lock unless noted. */
typedef struct {
  /* Opens the kernel: both images are known, that of @side since now, and are
   * of one type. Returns: FALSE after an error has been posted */
  gboolean (*open) (GstElement *element, guint side);
  /* Takes all @lines of @side, which may wait; less when gst_insar_pair_flow ()
   * is no longer GST_FLOW_OK or the side has become stale. */
  GstFlowReturn (*take_lines) (GstElement *element, guint side, ImkImage lines);
  /* Returns: whether no more lines are needed */
  gboolean (*is_complete) (GstElement *element);
  /* Optional. Returns: whether a thread that is not the busy one works on
   * lines, or is about to; not while a side is flushing */
  gboolean (*is_working) (GstElement *element);
  /* Optional, under the lock: abandon the work in progress, or work again. */
  void (*cancel) (GstElement *element, gboolean cancel);
  /* Restart with the first line of @side; no thread works. */
  void (*rewind) (GstElement *element, guint side);
  /* Called by the busy thread, without the lock: sends @eos to all source pads,
   * and the last output before it when the inputs are @complete. */
  void (*push_end) (GstElement *element, GstEvent *eos, gboolean complete);
} GstInsarPairFuncs;

typedef struct {
  GstPad *pad;
  GstCaps *caps;        /* NULL before the first */
  GstInsarSlcInfo info; /* what they say */
  guint n_lines;        /* received */
  gboolean is_flushing, is_eos;
  gboolean is_stale; /* its lines are from before a flush of the other side */
  GstBuffer *first;  /* (nullable): its first lines, for their metadata */
} GstInsarSide;

typedef struct {
  GstElement *element;
  GstImagingEngine *engine;
  GstImagingSrcPads *outputs; /* of the element, as the engine */
  const GstInsarPairFuncs *funcs;

  /* Under the lock. All waiting threads wait for @changed. */
  GMutex lock;
  GCond changed;
  GstInsarSide sides[GST_INSAR_N_SIDES];
  GstFlowReturn flow;
  gboolean is_busy; /* one thread works or pushes, without the lock */
  gboolean is_done; /* the end goes out, or has gone */
  guint n_reported;
  gboolean has_started; /* the reference: its stream-start has come */
  GQueue events;        /* GstEvent: pushed when the busy thread has finished */
  guint32 seqnum; /* of the segment; GST_SEQNUM_INVALID before the first */

  GMutex flush_lock; /* while a flush goes out */
} GstInsarPair;

/* @base: the owner, not referenced, with its outputs; it gets the two pads.
 * @funcs: static */
void gst_insar_pair_init (GstInsarPair *self, GstImagingElement *base,
    GstStaticPadTemplate *reference, GstStaticPadTemplate *secondary,
    const GstInsarPairFuncs *funcs);
void gst_insar_pair_clear (GstInsarPair *self);

/* The event function of each source pad. A seek is for both images: both
 * restart, or it is refused. */
gboolean gst_insar_pair_src_event (
    GstPad *pad, GstObject *parent, GstEvent *event);

/* Copies to @buffer what upstream has said of the images; before push_end (),
 * or in the busy thread. */
void gst_insar_pair_describe (GstInsarPair *self, GstBuffer *buffer);

/* Under the lock. Returns: whether any side is */
gboolean gst_insar_pair_is_flushing (GstInsarPair *self);

/* Under the lock. Returns: why @side takes no more lines, or GST_FLOW_OK */
GstFlowReturn gst_insar_pair_flow (GstInsarPair *self, guint side);

/* Under the lock, which is released meanwhile: the busy thread has finished. */
void gst_insar_pair_end_work (GstInsarPair *self);

/* Under the lock, when @side is rewound: the first of both sides begins another
 * pair, for which what was set counts. */
void gst_insar_pair_take_settings (GstInsarPair *self, guint side);

/* Posts the element message @name for every tenth of @n_rows. */
void gst_insar_pair_report (
    GstInsarPair *self, const gchar *name, guint row, guint n_rows);

/* After streaming has stopped: stops the engine and resets the outputs, and the
 * pair to no images. A flush may come even now. */
void gst_insar_pair_stop (GstInsarPair *self);
