/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From settings and input caps to a kernel. */
#pragma once

#include "gstoctbscan-private.h"
#include "gstoctbscancalibration.h"

/* --- gstoctbscankernel.c */

/* Settings and input caps as a configuration of the kernel, with what its
 * pointers point to. It uses the files of the settings and must not outlive
 * them. */
struct _GstOctBscanPlan {
  ImkOctbscanConfig config;
  GstVideoInfo info; /* of a B-scan */
  GstOctBscanCalibration *calibration;
  gdouble live[2 * IMK_OCTBSCAN_MAX_CAMERAS]; /* d2 and d3 of each camera */
};

/* Checks @settings as a whole, with the input caps. Returns: (transfer full)
 * (nullable): NULL with @error set */
GstOctBscanPlan *gst_oct_bscan_plan_new (
    GstOctBscan *self, const Settings *settings, ImkError *error);
void gst_oct_bscan_plan_free (GstOctBscanPlan *self);

/* Makes a kernel for the settings in use. With CUDA the context must be
 * current. */
ImkStatus gst_oct_bscan_kernel_new (GstOctBscan *self, ImkBackend backend,
    ImkOctbscan **kernel, ImkError *error);

/* Makes the next kernel, for @plan; the open one stays in use. */
ImkStatus gst_oct_bscan_prepare_kernel (
    GstOctBscan *self, const GstOctBscanPlan *plan, ImkError *error);
void gst_oct_bscan_forget_next_kernel (GstOctBscan *self);

/* What @kernel took off last. */
ImkStatus gst_oct_bscan_get_found (ImkOctbscan *kernel, GstOctBscanFound what,
    gpointer values, ImkError *error);

/* Warns of settings that make a wrong image of good spectra. */
void gst_oct_bscan_warn_of_settings (GstOctBscan *self);

/* --- gstoctbscanconfigure.c */

/* The settings @next (transfer full) are in use from now on, with the plan that
 * was made of them (transfer full) (nullable). */
void gst_oct_bscan_take_settings (
    GstOctBscan *self, Settings *next, GstOctBscanPlan *plan);

/* Opens the kernel for @caps. Returns: FALSE after an error was posted */
gboolean gst_oct_bscan_set_caps (GstOctBscan *self, GstCaps *caps);

/* Takes properties that were set since the last buffer. Returns: FALSE after an
 * error was posted */
gboolean gst_oct_bscan_follow_settings (GstOctBscan *self, GstBuffer *buffer);

void gst_oct_bscan_negotiate_all (GstOctBscan *self);

/* Makes all pads negotiate caps and memory again. */
void gst_oct_bscan_reconfigure (GstElement *element);

/* --- gstoctbscanlatency.c */

/* Computes the latency of the input caps and the settings in use. Call with the
 * engine locked. */
void gst_oct_bscan_update_latency (GstOctBscan *self);
gboolean gst_oct_bscan_src_query (
    GstPad *pad, GstObject *parent, GstQuery *query);

/* --- gstoctbscanrange.c */

/* B-scans whose ends range=auto takes a mean of. */
enum { GST_OCT_BSCAN_AUTO = 8 };

/* Searches the ends of range=auto again. Any thread. */
void gst_oct_bscan_reset_range (GstOctBscan *self);

/* Call with each new work item: after some B-scans with the ends of noise,
 * searches the ends again, as there may be a sample by now. */
void gst_oct_bscan_look_again (GstOctBscan *self, GstOctBscanWork *work);

/* Returns: whether range=auto still searches its ends */
gboolean gst_oct_bscan_is_settling (GstOctBscan *self);

/* Takes the ends that @work has found. One thread at a time. */
void gst_oct_bscan_note_ends (GstOctBscan *self, const GstOctBscanWork *work);
