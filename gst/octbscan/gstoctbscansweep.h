/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstoctbscan-private.h"

G_BEGIN_DECLS

/* Returns: whether records are corrected */
gboolean gst_oct_bscan_has_sweeps (const Settings *settings);

/* @lines: of a B-scan */
ImkStatus gst_oct_bscan_check_sweeps (
    const Settings *settings, const ImkOctbscanConfig *lines, ImkError *error);

/* Corrects the records of the next B-scan, in a copy where they belong to
 * somebody else. */
ImkStatus gst_oct_bscan_correct_sweeps (
    GstOctBscan *self, GstBuffer **bscan, ImkError *error);

G_END_DECLS
