/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel of shreconstruct: made for settings and a sensor, and another in
 * its place, which goes on from its state. */
#pragma once

#include "gstimagingelement.h"
#include "gstshreconstructcommands.h"
#include "gstshreconstructlenslets.h"
#include "gstshreconstructmirrors.h"
#include "gstshreconstructprepared.h"
#include "gstshreconstructslopes.h"
#include "gstshreconstructwarnings.h"

G_BEGIN_DECLS

/* Where slopes come from.
 * @n_cells: of the sensor; 0 while they are not known
 * @shape: of tensors */
typedef struct {
  gboolean is_tensor;
  GstShReconstructShape shape;
  guint n_cells;
} GstShReconstructSensor;

/* Of the streaming thread, but for @prepared.
 * @now: (nullable)
 * @before: (nullable): whose state is taken over
 * @n_cells: of the columns of the control matrix
 * @is_idle: without a control matrix
 * @divergence: (nullable): of the loop of @now; made with it
 * @order: of the columns of the control matrix
 * @commands: [n_commands]: of the frame, before the actuator map
 * @coefficients: [n_modes]: of the frame */
typedef struct {
  GstImagingElement *element; /* owns this */
  GstShReconstructMirrors *mirrors;
  GstShReconstructCommands *src;
  GstShReconstructPrepared *prepared;
  GstShReconstructLenslets *lenslets;
  ImkShdivergence *divergence;
  ImkShreconstruct *now, *before;
  ImkBackend backend;
  guint n_cells, n_modes, n_commands;
  gboolean is_idle;
  GstShReconstructOrder order;
  gfloat *commands, *coefficients;
  GstShReconstructWarnings warnings;
} GstShReconstructKernel;

/* @mirrors, @src: not owned */
void gst_sh_reconstruct_kernel_init (GstShReconstructKernel *self,
    GstImagingElement *element, GstShReconstructMirrors *mirrors,
    GstShReconstructCommands *src);
void gst_sh_reconstruct_kernel_clear (GstShReconstructKernel *self);

/* For the settings in use. Keeps the current kernel on failure. */
ImkStatus gst_sh_reconstruct_kernel_open (GstShReconstructKernel *self,
    ImkBackend backend, const GstShReconstructSensor *sensor, ImkError *error);

/* Takes the settings in use: for another kernel, or another controller or other
 * outputs of the same matrices.
 * @before: (nullable): other settings; @groups: what differs */
ImkStatus gst_sh_reconstruct_kernel_apply (GstShReconstructKernel *self,
    const GstShReconstructSensor *sensor,
    const GstShReconstructSettings *before, guint groups, ImkError *error);

/* The loop closes with the next frame: whether it drives away is judged anew.
 */
void gst_sh_reconstruct_kernel_begin_watch (GstShReconstructKernel *self);

/* Returns: whether the matrix of the wanted settings takes long on the CPU */
gboolean gst_sh_reconstruct_kernel_prefers_cuda (
    const GstShReconstructKernel *self);

/* Warns once of each doubt of the kernel: when it is made, and after a frame,
 * as cells that are held make one later. */
void gst_sh_reconstruct_kernel_warn_of_doubt (GstShReconstructKernel *self);

/* Its state is kept for the next one. */
void gst_sh_reconstruct_kernel_close (GstShReconstructKernel *self);

/* After the engine has stopped: no state is kept, and warnings come again. */
void gst_sh_reconstruct_kernel_forget (GstShReconstructKernel *self);

/* @n_sensor: cells of the sensor */
ImkStatus gst_sh_reconstruct_kernel_check_cells (
    const GstShReconstructKernel *self, guint n_sensor, ImkError *error);

G_END_DECLS
