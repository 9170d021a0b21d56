/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the files of insarxcorr: gstinsarxcorr.c has the element and its
 * kernel, gstinsarxcorrlines.c what happens while lines come. */
#pragma once

#include "gstimagingengine.h"
#include "gstimagingslc.h"
#include "gstimagingtable.h"
#include "gstinsarxcorr.h"
#include "gstinsarxcorrend.h"
#include "gstinsarxcorrsettings.h"

G_BEGIN_DECLS

GST_DEBUG_CATEGORY_EXTERN (gst_insar_xcorr_debug);

#define N_SIDES IMK_INSARXCORR_N_SIDES
#define N_FIELDS IMK_INSARXCORR_N_FIELDS

/* An input. */
typedef struct {
  GstPad *pad;
  GstCaps *caps;          /* NULL before the first */
  GstImagingSlcInfo info; /* what they say */
  gboolean is_flushing;
  gboolean is_stale; /* its lines are from before a flush of the other side */
  gboolean is_eos;
  gboolean is_pushing; /* its thread is in the kernel, without the lock */
} GstInsarSide;

struct _GstInsarXcorr {
  GstElement parent;
  GstImagingEngine *engine;

  GstInsarSettings settings; /* under the object lock */

  /* Under the lock, which is not held while a row is measured and pushed: the
   * other side may push lines meanwhile, and nothing else happens. */
  GMutex lock;
  GCond changed;
  GstInsarSide sides[N_SIDES];
  gboolean is_busy; /* one thread measures, pushes, or ends */
  gboolean is_done; /* the end has gone out */
  gboolean is_stopping;
  GstFlowReturn flow;
  ImkInsarxcorr *kernel;
  ImkInsarxcorrConfig config;     /* that of the kernel */
  GstInsarSettings open_settings; /* as they were at the start */
  GstImagingTable *table;
  guint32 *columns; /* 0..nx - 1, as they are told in text */

  GThread *worker; /* measures rows, from READY on */

  /* of the thread that is busy */
  GstInsarOutput src;
  GstInsarEnd *end;
  guint n_reported;
  guint64 n_bytes; /* that have been counted */
};

/* Under the lock. Opens the kernel when both sides are known.
 * Returns: FALSE after an error has been posted */
gboolean gst_insar_xcorr_set_caps (
    GstInsarXcorr *self, guint side, GstCaps *caps);

/* --- gstinsarxcorrlines.c ----------------------------------------------------
 */

GstFlowReturn gst_insar_xcorr_chain (
    GstPad *pad, GstObject *parent, GstBuffer *buffer);
gboolean gst_insar_xcorr_sink_event (
    GstPad *pad, GstObject *parent, GstEvent *event);

/* The thread that measures, while something streams. */
void gst_insar_xcorr_start_work (GstInsarXcorr *self);
void gst_insar_xcorr_stop_work (GstInsarXcorr *self);

/* When states change: lets nobody wait, or everybody. */
void gst_insar_xcorr_set_flushing (GstInsarXcorr *self, gboolean is_flushing);

/* When nothing streams any more: begins anew. */
void gst_insar_xcorr_forget (GstInsarXcorr *self);

G_END_DECLS
