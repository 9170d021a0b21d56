/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the slopes come from: tensors, or the metadata of the element that the
 * property results names. */
#pragma once

#include "gstshreconstructframe.h"
#include "gstshreconstructkernel.h"

G_BEGIN_DECLS

/* @kernel: not owned
 * @is_known: slopes have been read, from @name
 * @is_refused: the last caps were; each buffer brings them once more
 * @name: (nullable): results of the frame before
 * @refused: (nullable): results that were warned of */
typedef struct {
  GstShReconstructKernel *kernel;
  GstShReconstructSensor sensor;
  gboolean is_known, is_refused;
  gchar *name, *refused;
} GstShReconstructSource;

/* Returns: FALSE after an error that was posted, for tensors that are no slopes
 */
gboolean gst_sh_reconstruct_source_set_caps (
    GstShReconstructSource *self, GstCaps *caps);

/* Before the slopes of a frame are opened: the first frame tells how many cells
 * there are, and without a matrix each. Another number needs another kernel. */
ImkStatus gst_sh_reconstruct_source_follow_cells (GstShReconstructSource *self,
    const GstShReconstructFrame *frame,
    const GstShReconstructSettings *settings, ImkError *error);

/* Opens the slopes of @frame. Another name in results that does not fit the
 * frames is a warning, and ends no stream. */
ImkStatus gst_sh_reconstruct_source_open (GstShReconstructSource *self,
    GstShReconstructFrame *frame, const GstShReconstructSettings *settings,
    ImkError *error);

/* The next stream may be of another sensor. */
void gst_sh_reconstruct_source_forget (GstShReconstructSource *self);

G_END_DECLS
