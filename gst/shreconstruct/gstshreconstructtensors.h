/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Caps of one float32 tensor: commands of a mirror, or a wavefront. */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_SH_RECONSTRUCT_TENSOR_CAPS \
  "other/tensors, format = (string) static, num_tensors = (int) 1, " \
  "types = (string) float32"

/* @dimensions: of the tensor, such as "97:1:1:1"
 * Returns: (transfer full) */
GstCaps *gst_sh_reconstruct_tensor_caps (
    const gchar *dimensions, gint fps_n, gint fps_d);
/* @n: commands */
GstCaps *gst_sh_reconstruct_commands_caps (guint n, gint fps_n, gint fps_d);

G_END_DECLS
