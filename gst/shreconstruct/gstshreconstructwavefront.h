/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pad wavefront. */
#pragma once

#include "gstimagingsrcpad.h"
#include "gstshreconstructsettings.h"
#include "gstshreconstructslopes.h"
#include "gstshreconstructtensors.h"

G_BEGIN_DECLS

#define GST_SH_RECONSTRUCT_WAVEFRONT_CAPS \
  GST_SH_RECONSTRUCT_TENSOR_CAPS \
  "; video/x-raw, format = (string) { GRAY16_LE, GRAY16_BE }, " \
  "width = (int) [ 1, max ], height = (int) [ 1, max ], " \
  "framerate = (fraction) [ 0, max ]"

typedef struct _GstShReconstructWavefront GstShReconstructWavefront;

GstShReconstructWavefront *gst_sh_reconstruct_wavefront_new (
    GstElement *element, GstImagingEngine *engine);
void gst_sh_reconstruct_wavefront_free (GstShReconstructWavefront *self);

/* The settings, or the sensor, are others: the next frame makes it anew. */
void gst_sh_reconstruct_wavefront_forget (GstShReconstructWavefront *self);

/* @in: the frame; its times and metadata are those of the wavefront
 * Returns: GST_FLOW_ERROR after an error that was posted */
GstFlowReturn gst_sh_reconstruct_wavefront_push (
    GstShReconstructWavefront *self, GstImagingSrcPad *pad,
    const GstShReconstructSettings *settings, GstShReconstructSlopes *slopes,
    guint n_cells, GstBuffer *in, guint64 frame, gint fps_n, gint fps_d);

G_END_DECLS
