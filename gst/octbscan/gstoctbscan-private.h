/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the element share. */
#pragma once

#include <gst/base/gstflowcombiner.h>

#include "gstoctbscan.h"
#include "gstoctbscangroup.h"
#include "gstoctbscanoutput.h"
#include "gstoctbscansettings.h"

G_BEGIN_DECLS

GST_DEBUG_CATEGORY_EXTERN (gst_oct_bscan_debug);
#define GST_CAT_DEFAULT gst_oct_bscan_debug

/* Outputs, in this order: what is pushed last prerolls last. */
enum { LINEAR, SRC, N_OUTPUTS };

struct _GstOctBscan {
  GstElement parent;
  GstPad *sink;
  GstImagingEngine *engine;

  Settings settings;    /* under the object lock */
  GstClockTime latency; /* likewise; of gathering lines */

  /* of the streaming thread */
  GstOctBscanOutput outputs[N_OUTPUTS]; /* the pad under the object lock */
  GstFlowCombiner *flows;
  GstOctBscanGroup *group;
  GstSegment segment;
  GstVideoInfo lines, bscan; /* what comes, and what is processed */
  gboolean has_caps;
  ImkOctbscan *kernel;
  gint width, height; /* of the images */
  guint open_plan, open_turns;
  guint next_camera; /* of the first line of the next B-scan */
  guint n_cameras;
};

/* Returns: (transfer full) (nullable): the pad of an output */
GstPad *gst_oct_bscan_ref_pad (GstOctBscan *self, guint output);

/* Agrees with downstream of one pad.
 * Returns: GST_FLOW_NOT_LINKED when there is none */
GstFlowReturn gst_oct_bscan_negotiate (
    GstOctBscan *self, guint output, GstPad *pad);

/* Takes the B-scan @in (transfer full); @entered: when its last line came. */
GstFlowReturn gst_oct_bscan_process (
    GstOctBscan *self, GstBuffer *in, GstClockTime entered);

G_END_DECLS
