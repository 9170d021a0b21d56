/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstshmimlayout.h"

G_BEGIN_DECLS

/* Returns: (transfer full): all that a frame of a stream can be, the best
 * first; each is fixed */
GstCaps *gst_shmim_caps (const GstShmimHeader *h);

G_END_DECLS
