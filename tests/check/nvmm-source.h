/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* nvarguscamerasrc: surfaces of the mock as a camera of Jetson gives them, for
 * pipelines that name one; and buffers of surfaces for tests. */
#pragma once

#include "check-common.h"

#include "mock-nvbufsurface.h"

G_BEGIN_DECLS

/* Returns: (transfer full): noise as check_noise () makes it, in a surface */
GstBuffer *check_nvmm_noise (
    const GstVideoInfo *info, guint seed, NvBufSurfaceMemType memory);

/* Returns: the surface in @buffer */
NvBufSurface *check_nvmm_surface (GstBuffer *buffer);

/* Returns: (transfer full): the samples of the surface in @buffer, in system
 * memory */
GstBuffer *check_nvmm_read (GstBuffer *buffer, const GstVideoInfo *info);

/* "video/x-raw(memory:NVMM),format=...", to be given to g_free () */
gchar *check_nvmm_caps (const gchar *format, gint width, gint height);

/* Registers nvarguscamerasrc, with the properties that examples use, which
 * pushes check_noise () of seeds 0, 1, ... in a pool of four surfaces. */
void check_nvmm_register_camera (void);

G_END_DECLS
