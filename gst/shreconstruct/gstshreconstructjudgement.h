/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a calibration says of itself: in its message, and in a sidecar. */
#pragma once

#include "gstimaging-prelude.h"
#include "imk/shjudge.h"

G_BEGIN_DECLS

enum { GST_SH_RECONSTRUCT_JUDGEMENT_SIZE = 400 }; /* bytes of a sentence */

/* Adds its fields to a message. */
void gst_sh_reconstruct_judgement_tell (
    const ImkShjudgement *self, GstStructure *message);

/* Writes the sidecar of the matrix [@dims[0], @dims[1]] in @location, which is
 * a NumPy file; other formats may have other types, and no sidecar. */
gboolean gst_sh_reconstruct_judgement_save (const ImkShjudgement *self,
    const gchar *location, const guint64 dims[2], GError **error);

void gst_sh_reconstruct_judgement_remove (const gchar *location);

G_END_DECLS
