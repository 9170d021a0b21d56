/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A libnvbufsurface.so for tests, on memory of whatever device the CUDA module
 * has: the mock's, or that of a card. SURFACE_ARRAY, which is Jetson's, needs
 * the mock of the CUDA driver as well.
 *
 * Environment: IMK_MOCK_NVMM says what NVBUF_MEM_DEFAULT is: device (default),
 * pinned, pitch or array, the two kinds of SURFACE_ARRAY;
 * IMK_MOCK_NVMM_FAIL=create or map makes that call fail. */
#pragma once

#include <stddef.h>

#include "gstimagingnvmmabi.h"

int NvBufSurfaceCreate (
    NvBufSurface **surface, uint32_t batch, NvBufSurfaceCreateParams *params);
int NvBufSurfaceDestroy (NvBufSurface *surface);
int NvBufSurfaceMapEglImage (NvBufSurface *surface, int index);
int NvBufSurfaceUnMapEglImage (NvBufSurface *surface, int index);

/* All rows of one plane, @stride bytes apart in memory of the CPU. */
void imk_mock_surface_write (
    NvBufSurface *surface, unsigned plane, const void *rows, size_t stride);
void imk_mock_surface_read (
    NvBufSurface *surface, unsigned plane, void *rows, size_t stride);

/* Returns: surfaces and EGL images that were made and not ended */
unsigned imk_mock_surface_n_live (void);
/* Returns: EGL images that were made since the program started */
unsigned imk_mock_surface_n_images (void);
