/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loop: what becomes of the slopes of a frame, be it closed, open, frozen,
 * calibrating, or on the way to the reference commands. */
#pragma once

#include "gstshreconstructcalibration.h"
#include "gstshreconstructdevice.h"
#include "gstshreconstructframe.h"
#include "gstshreconstructkernel.h"

G_BEGIN_DECLS

/* @kernel, @device, @calibration: not owned
 * @wants_reset: atomic
 * @is_resting: on the way to the reference commands, or there
 * @has_overflowed: in the last frame of the closed loop */
typedef struct {
  GstShReconstructKernel *kernel;
  GstShReconstructDevice *device;
  GstShReconstructCalibration *calibration;
  gint wants_reset;
  gboolean is_resting, has_overflowed;
} GstShReconstructLoop;

/* Any thread: before the next frame the controller forgets the past, and the
 * mirror begins at the reference commands. */
void gst_sh_reconstruct_loop_reset (GstShReconstructLoop *self);

/* Returns: whether the next frame will be one of a closed loop */
gboolean gst_sh_reconstruct_loop_will_run (
    GstShReconstructLoop *self, const GstShReconstructSettings *settings);

/* The commands of @frame, in the kernel; those of a calibration with its poke.
 */
ImkStatus gst_sh_reconstruct_loop_process (GstShReconstructLoop *self,
    GstShReconstructFrame *frame, const GstShReconstructSettings *settings,
    ImkError *error);

/* After the mirrors have the frame: the controller learns what limits of theirs
 * have kept from them. */
void gst_sh_reconstruct_loop_learn_limits (
    GstShReconstructLoop *self, const GstShReconstructFrame *frame);

/* After the mirrors have the frame, as it takes time: whether a closed loop
 * drives away. */
void gst_sh_reconstruct_loop_watch (
    GstShReconstructLoop *self, GstShReconstructFrame *frame);

void gst_sh_reconstruct_loop_stop (GstShReconstructLoop *self);

G_END_DECLS
