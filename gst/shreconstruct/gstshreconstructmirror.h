/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A further mirror: its matrix, its limits, and what was sent to it. */
#pragma once

#include "gstshreconstructsettings.h"

G_BEGIN_DECLS

/* @n: commands of the mirror
 * @matrix: (nullable): T [n_commands][n], transposed
 * @serial: of the file of @matrix
 * @c0: [n_commands]: of the main output
 * @sent: [n]: its commands, T c0 before the first frame
 * @own_c0: [n]: T c0
 * @lack: [n]: what limits have added to the last ones, but not on the way to
 *   another c0, which the mirror is to reach
 * @has_sent: @sent are those of a frame
 * @is_limited: a limit has changed the last ones
 * @is_moving: on the way to another c0 */
typedef struct {
  guint n, n_commands, serial;
  gfloat *matrix, *c0, *sent, *own_c0, *lack;
  ImkShlimits limits;
  gboolean has_sent, is_limited, is_moving;
} GstShReconstructMirror;

/* Takes the matrix, if its file is another one, and the limits of mirror @i
 * from @plan. A mirror of as many commands goes on from those that were sent.
 * Returns: whether T c0 is within the limits */
gboolean gst_sh_reconstruct_mirror_take (
    GstShReconstructMirror *self, const GstShReconstructPlan *plan, guint i);
void gst_sh_reconstruct_mirror_clear (GstShReconstructMirror *self);

/* @commands: c of the main output
 * @is_held: the mirror stays as it is, but within its limits
 * @out: (out): [n]: T c, limited by imk_shlimits_send () */
void gst_sh_reconstruct_mirror_send (GstShReconstructMirror *self,
    const gfloat *commands, gboolean is_held, gfloat *out);

/* Returns: whether the mirror has all of T c that its limits allow */
gboolean gst_sh_reconstruct_mirror_is_at (
    const GstShReconstructMirror *self, const gfloat *commands);

G_END_DECLS
