/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingelement.h"
#include "gstoctangioimage.h"

#define GST_TYPE_OCT_ANGIO (gst_oct_angio_get_type ())
G_DECLARE_FINAL_TYPE (
    GstOctAngio, gst_oct_angio, GST, OCT_ANGIO, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (octangio);

struct _GstOctAngio {
  GstImagingElement base;
  GstPad *sinkpad, *srcpad;

  /* of the streaming thread */
  guint n_ascans, n_depths; /* of the input; 0 before caps */
  gboolean is_complex;
  gint fps_n, fps_d;
  GstOctAngioOptics optics; /* of the set */
  gboolean warned_of_sign, warned_of_turns;
  ImkOctangio *kernel;     /* replaced with the object locked */
  gboolean is_stopping;    /* with the object locked */
  ImkBackend backend;      /* of the kernel */
  guint n_repeats, n_rows; /* of the kernel; rows of an image */
  GstBuffer *flow;         /* of the set, where the kernel has written it */
  GstBufferPool *flows;
  gboolean flows_on_cuda;
  GstVideoInfo flow_info; /* the bytes of the flow */
  gfloat *volume;         /* the rows so far */
  guint volume_ascans;    /* in a row of it */
  guint n_projected;      /* rows of the volume */
  gdouble *surface;       /* [n_ascans] of the set, for surface=contour */
  gdouble *surfaces;      /* [n_surfaces][2][n_ascans] */
  guint n_surfaces;
  GstBuffer *held[IMK_OCTANGIO_MAX_REPEATS];
  guint n_held;
  GstClockTime pts, end; /* of the image so far */
  guint64 offset;        /* of its first B-scan */
  gboolean has_sent;     /* caps of the output */
  gboolean is_float;
  GstVideoInfo out;
};

/* --- gstoctangiocompute.c ------------------------------------------------- */

/* The video that B-scans are taken for when they are mapped. */
ImkStatus gst_oct_angio_carrier (
    GstElement *element, GstCaps *caps, GstVideoInfo *info, ImkError *error);

/* Makes the flow and the surface of the B-scans that are held.
 * Returns: GST_FLOW_FLUSHING when it was cancelled; GST_FLOW_CUSTOM_SUCCESS
 * when they were lost with the device, which has been counted; GST_FLOW_ERROR
 * when an error was posted */
GstFlowReturn gst_oct_angio_compute (GstOctAngio *self);

/* The lines of a B-scan that bidirectional of octbscan took backwards, in the
 * order of the others; or @bscan itself. pairs=ascans compares lines in the
 * order of time, which is theirs.
 * @bscan: (transfer full)
 * Returns: (transfer full): NULL when an error was posted */
GstBuffer *gst_oct_angio_turn (GstOctAngio *self, GstBuffer *bscan);

/* From any thread: whether a set that is being processed is given up. */
void gst_oct_angio_cancel (GstOctAngio *self, gboolean yes);

/* Frees flow and pool. */
void gst_oct_angio_drop_flow (GstOctAngio *self);
