/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages where the light of the sensor goes and where it comes back. */
#pragma once

#include <gst/gst.h>

#include "imk/shreconstruct.h"

G_BEGIN_DECLS

/* @is_dark: of the frame before
 * @n_blind: frames without a valid cell, up to the one before */
typedef struct {
  gboolean is_dark;
  guint64 n_blind;
} GstShReconstructLight;

/* After a frame of a closed loop. */
void gst_sh_reconstruct_light_follow (GstShReconstructLight *self,
    GstElement *element, const ImkShreconstructReport *report, guint n_cells);

G_END_DECLS
