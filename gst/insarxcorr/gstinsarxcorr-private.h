/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the files of insarxcorr: gstinsarxcorr.c has the element and its
 * kernel, gstinsarxcorrlines.c what happens while lines come. */
#pragma once

#include "gstimagingresults.h"
#include "gstimagingtable.h"
#include "imk/insarxcorr-judge.h"
#include "insar/gstinsarpair.h"
#include "gstimagingelement.h"
#include "gstinsarxcorrend.h"
#include "gstinsarxcorrsettings.h"

#define GST_TYPE_INSAR_XCORR (gst_insar_xcorr_get_type ())
G_DECLARE_FINAL_TYPE (
    GstInsarXcorr, gst_insar_xcorr, GST, INSAR_XCORR, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (insarxcorr);

GST_DEBUG_CATEGORY_EXTERN (gst_insar_xcorr_debug);

#define N_FIELDS IMK_INSARXCORR_N_FIELDS

/* a side of the pair is one of the kernel */
G_STATIC_ASSERT ((guint) GST_INSAR_REFERENCE == IMK_INSARXCORR_REFERENCE);

struct _GstInsarXcorr {
  GstImagingElement base;
  GArray *others; /* gint: GPUs beside that of the engine, from start on */

  GstInsarPair pair;

  /* Under the lock of the pair, which is not held while a row is measured and
   * pushed: the other side may push lines meanwhile, and nothing else happens.
   */
  gboolean is_pushing[GST_INSAR_N_SIDES]; /* a side's thread is in the kernel */
  gboolean is_stopping;
  gboolean is_opening; /* the worker opens the device, or is about to */
  gboolean has_pair;   /* and then the kernel, as both sides have caps */
  ImkInsarxcorr *kernel;
  ImkInsarxcorrConfig config; /* that of the kernel */
  GstImagingTable *table;
  GBytes *columns;  /* 0..nx - 1, for the text output */
  gboolean is_auto; /* the threshold follows from what is measured */

  GThread *worker; /* opens the device and measures rows, from READY on */

  /* of the thread that is busy */
  GstImagingSrcPad *src; /* of the outputs */
  gboolean header_sent;
  GstInsarEnd *end;
  ImkInsarxcorrJudge judge;
  guint64 n_bytes; /* that have been counted */
};

/* Opens the kernel for a pair, or leaves that to the worker. */
gboolean gst_insar_xcorr_open (GstElement *element, guint side);

/* --- gstinsarxcorrlines.c ------------------------------------------------- */

extern const GstInsarPairFuncs gst_insar_xcorr_pair_funcs;

/* Under the lock: the worker opens the device, and then the kernel. */
void gst_insar_xcorr_open_later (GstInsarXcorr *self);

/* The thread that measures, while something streams. */
void gst_insar_xcorr_start_work (GstInsarXcorr *self);
void gst_insar_xcorr_stop_work (GstInsarXcorr *self);

/* --- gstinsarxcorroutput.c ------------------------------------------------ */

/* Pushes a row of patches as the first that the peer takes: GMTSAR's text, CSV
 * or tensor. @header_sent: of CSV, which has one */
GstFlowReturn gst_insar_output_push_row (GstImagingSrcPad *output,
    const GstImagingResult *result, gboolean *header_sent);
