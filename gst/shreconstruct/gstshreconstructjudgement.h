/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a calibration says of itself: in its message, and in a sidecar. */
#pragma once

#include "gstimaging-prelude.h"
#include "imk/shjudge.h"

G_BEGIN_DECLS

enum { GST_SH_RECONSTRUCT_JUDGEMENT_SIZE = 400 }; /* bytes of a sentence */

/* Adds its fields to a message. */
void gst_sh_reconstruct_judgement_describe (
    const ImkShjudgement *self, GstStructure *message);

/* After it, where the slopes had no flags of saturated spots. */
void gst_sh_reconstruct_judgement_describe_no_saturation (
    GstStructure *message);

/* Returns: (transfer full): the member "calibration" of a sidecar */
gchar *gst_sh_reconstruct_judgement_to_json (
    const ImkShjudgement *self, gboolean knows_saturation);

G_END_DECLS
