/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pad src: its caps, and a buffer of commands for each frame. */
#pragma once

#include "gstimagingengine.h"
#include "gstshreconstructframe.h"
#include "gstshreconstructsettings.h"

G_BEGIN_DECLS

/* @pad, @engine: not owned
 * @n: commands that are sent; @n_sent: of the caps that were sent; 0 before
 * @map: (nullable): [n]: the number of each in the kernel, -1 for none
 * @fps_n, @fps_d: of the input */
typedef struct {
  GstPad *pad;
  GstImagingEngine *engine;
  GstBufferPool *pool;
  guint n, n_sent;
  gint *map;
  gint fps_n, fps_d;
} GstShReconstructCommands;

/* Takes the actuator map out of @plan. */
void gst_sh_reconstruct_commands_take (
    GstShReconstructCommands *self, GstShReconstructPlan *plan);

/* @caps: of the input. Other caps are sent next. */
void gst_sh_reconstruct_commands_set_caps (
    GstShReconstructCommands *self, GstCaps *caps);

/* Sends caps if there are others: another matrix may have other commands.
 * Returns: FALSE without a pool of buffers */
gboolean gst_sh_reconstruct_commands_send_caps (GstShReconstructCommands *self);

/* All that can be done before the commands are there; once for each frame. */
void gst_sh_reconstruct_commands_prepare (
    GstShReconstructCommands *self, GstShReconstructFrame *frame);
/* @values: [n_commands], before the actuator map */
void gst_sh_reconstruct_commands_fill (GstShReconstructCommands *self,
    GstShReconstructFrame *frame, const gfloat *values);

void gst_sh_reconstruct_commands_stop (GstShReconstructCommands *self);

G_END_DECLS
