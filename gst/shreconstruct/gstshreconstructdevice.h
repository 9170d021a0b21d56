/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A frame on the device: its slopes where the kernel finds them. */
#pragma once

#include "gstimagingengine.h"
#include "gstshreconstructslopes.h"
#include "imk/shreconstruct.h"

G_BEGIN_DECLS

typedef struct _GstShReconstructDevice GstShReconstructDevice;

/* @engine: not owned */
GstShReconstructDevice *gst_sh_reconstruct_device_new (
    GstImagingEngine *engine);
/* With the kernel, while the context is current: gives memory back. */
void gst_sh_reconstruct_device_forget (GstShReconstructDevice *self);
void gst_sh_reconstruct_device_free (GstShReconstructDevice *self);

/* Slopes come complete on @stream only, or, with NULL, on any. */
void gst_sh_reconstruct_device_take_over (
    GstShReconstructDevice *self, gpointer stream);

/* imk_shreconstruct_begin () with the slopes where they are, if that is memory
 * of the device or page-locked; else with a copy of them. */
ImkStatus gst_sh_reconstruct_device_begin (GstShReconstructDevice *self,
    ImkShreconstruct *kernel, GstShReconstructSlopes *slopes, ImkError *error);
/* imk_shreconstruct_end () of that. */
ImkStatus gst_sh_reconstruct_device_end (GstShReconstructDevice *self,
    ImkShreconstruct *kernel, gfloat *commands, ImkShreconstructReport *report,
    ImkError *error);

G_END_DECLS
