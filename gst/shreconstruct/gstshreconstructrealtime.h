/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What realtime-priority, cpu and lock-memory do to the thread that brings the
 * frames. */
#pragma once

#include "gstshreconstructsettings.h"

G_BEGIN_DECLS

typedef struct _GstShReconstructRealtime GstShReconstructRealtime;

GstShReconstructRealtime *gst_sh_reconstruct_realtime_new (GstElement *element);
void gst_sh_reconstruct_realtime_free (GstShReconstructRealtime *self);

/* Before a frame, in its thread. What is not permitted is a warning, once. */
void gst_sh_reconstruct_realtime_follow (
    GstShReconstructRealtime *self, const GstShReconstructSettings *settings);

/* After the last frame, in any thread: the thread is as it was before. Locked
 * memory stays, it may be that of others, too. */
void gst_sh_reconstruct_realtime_stop (GstShReconstructRealtime *self);

G_END_DECLS
