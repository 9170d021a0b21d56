/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CPU as the device of a work item. */
#pragma once

#include "gstoctbscanwork.h"

G_BEGIN_DECLS

/* Makes the images of @work. Call with the engine locked. */
ImkStatus gst_oct_bscan_run_on_cpu (
    GstOctBscan *self, GstOctBscanWork *work, ImkError *error);

/* Computes one B-scan of a lost device on the CPU. Call with the engine
 * locked. */
ImkStatus gst_oct_bscan_redo_on_cpu (
    GstOctBscan *self, GstOctBscanWork *work, ImkError *error);

G_END_DECLS
