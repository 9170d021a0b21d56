/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A frame on its way from slopes to commands. */
#pragma once

#include "gstshreconstructslopes.h"
#include "imk/shreconstruct.h"

G_BEGIN_DECLS

/* @out: (nullable): for the commands; @acquired: how it was
 * @is_closed: the loop has made the commands, and @report
 * @is_held: the mirror stays as it is
 * @has_poke: of a calibration
 * @limited: a further mirror whose limits have changed a command, or -1
 * @is_after_gap: frames may be missing before this one; @missing: how many */
typedef struct {
  GstBuffer *in;
  guint64 number, missing;
  gboolean is_after_gap;
  GstShReconstructSlopes slopes;

  ImkShreconstructReport report;
  gboolean is_closed, is_calibrating, is_held, has_poke;

  GstBuffer *out;
  GstFlowReturn acquired;
  gint limited;
} GstShReconstructFrame;

G_END_DECLS
