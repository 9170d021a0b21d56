/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How many cells were measured and how many of them are not good. */
#pragma once

#include "gstshcentroidkernel.h"

/* All zero at the start of a stream. */
typedef struct {
  gdouble radius; /* of a spot above the threshold, pixels; 0: not known */
  guint64 n_frames, n_cells;
  guint64 n_invalid, n_saturated;
  guint64 n_of_flag[8]; /* of the bits of IMK_SHCENTROID_INVALID_MASK */
  guint64 n_cut;        /* spots that the edge of their cell cuts */
  gboolean has_hot;     /* the frame that was looked at has hot pixels */
  gdouble
      dark; /* the next frame: no spot has so small a maximum; 0: not known */
  gboolean told_cut, told_not_finite, told_dark;
} GstShCentroidTally;

/* @numbers: of a frame, as the kernel left them; with other fields than all its
 * flags, in which only samples that are not finite count.
 * @cells_stay: they do not follow their spots. Returns: (nullable) (transfer
 * full): a sentence on samples that are not finite, on cells that are valid
 * without a spot, or on spots that are cut; each once */
gchar *gst_sh_centroid_tally_add (GstShCentroidTally *self,
    const GstShCentroidKernel *kernel, gboolean cells_stay, GstBuffer *numbers);

/* Returns: (nullable) (transfer full): the message at the end; none without a
 * cell */
GstStructure *gst_sh_centroid_tally_describe (const GstShCentroidTally *self);
