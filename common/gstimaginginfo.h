/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/**
 * gst_imaging_describe:
 *
 * What this installation is and which hardware it uses, for a report or a
 * program. Creates no CUDA context. The result is a JSON object: `version`;
 * `cpu`, an object with the instruction set `level` and the number of
 * `threads`; `cuda`, an object with an array `devices` (`id`, `name`,
 * `compute`, `memory` in bytes, `integrated`) and `reason`, a sentence, where
 * there is none; `formats`, an array of `name`, `extensions`, `read`, `write`
 * and, where the format cannot be read, `needs`.
 *
 * Returns: (transfer full): the JSON
 */
GST_IMAGING_API
gchar *gst_imaging_describe (void);

G_END_DECLS
