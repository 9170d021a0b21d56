/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What this library uses of NvBufSurface, the handle in buffers of
 * memory:NVMM: the header of Jetson's Multimedia API or of DeepStream when it
 * was found at configure time, else declarations of our own, of the same
 * names, sizes and numbers. No GLib here: the mock of the tests includes it. */
#pragma once

#ifdef HAVE_NVBUFSURFACE_H
#include <nvbufsurface.h>
#else

#include <stdbool.h>
#include <stdint.h>

enum { NVBUF_MAX_PLANES = 4, NVBUF_STRUCTURE_PADDING = 4 };

typedef enum {
  NVBUF_MEM_DEFAULT = 0, /* CUDA_DEVICE with a card, SURFACE_ARRAY on Jetson */
  NVBUF_MEM_CUDA_PINNED = 1,
  NVBUF_MEM_CUDA_DEVICE = 2,
  NVBUF_MEM_CUDA_UNIFIED = 3,
  NVBUF_MEM_SURFACE_ARRAY = 4,
  NVBUF_MEM_HANDLE = 5,
  NVBUF_MEM_SYSTEM = 6,
} NvBufSurfaceMemType;

typedef enum {
  NVBUF_COLOR_FORMAT_INVALID = 0,
  NVBUF_COLOR_FORMAT_GRAY8 = 1,
  NVBUF_COLOR_FORMAT_NV12 = 6,
  NVBUF_COLOR_FORMAT_RGBA = 19,
  NVBUF_COLOR_FORMAT_NV12_10LE = 29, /* P010 */
  NVBUF_COLOR_FORMAT_NV16 = 50,
} NvBufSurfaceColorFormat;

typedef enum {
  NVBUF_LAYOUT_PITCH = 0,
  NVBUF_LAYOUT_BLOCK_LINEAR = 1,
} NvBufSurfaceLayout;

typedef struct NvBufSurfacePlaneParams {
  uint32_t num_planes;
  uint32_t width[NVBUF_MAX_PLANES]; /* pixels */
  uint32_t height[NVBUF_MAX_PLANES];
  uint32_t pitch[NVBUF_MAX_PLANES]; /* bytes */
  uint32_t offset[NVBUF_MAX_PLANES];
  uint32_t psize[NVBUF_MAX_PLANES];
  uint32_t bytesPerPix[NVBUF_MAX_PLANES];
  void *_reserved[NVBUF_STRUCTURE_PADDING * NVBUF_MAX_PLANES];
} NvBufSurfacePlaneParams;

typedef struct NvBufSurfaceMappedAddr {
  void *addr[NVBUF_MAX_PLANES];
  void *eglImage;
  void *_reserved[NVBUF_STRUCTURE_PADDING];
} NvBufSurfaceMappedAddr;

typedef struct NvBufSurfaceParams {
  uint32_t width, height, pitch;
  NvBufSurfaceColorFormat colorFormat;
  NvBufSurfaceLayout layout;
  uint64_t bufferDesc; /* dmabuf */
  uint32_t dataSize;
  void *dataPtr; /* not valid for SURFACE_ARRAY and HANDLE */
  NvBufSurfacePlaneParams planeParams;
  NvBufSurfaceMappedAddr mappedAddr;
  void *_reserved[NVBUF_STRUCTURE_PADDING];
} NvBufSurfaceParams;

typedef struct NvBufSurface {
  uint32_t gpuId;
  uint32_t batchSize, numFilled;
  bool isContiguous;
  NvBufSurfaceMemType memType;
  NvBufSurfaceParams *surfaceList;
  void *_reserved[NVBUF_STRUCTURE_PADDING];
} NvBufSurface;

typedef struct NvBufSurfaceCreateParams {
  uint32_t gpuId;
  uint32_t width, height;
  uint32_t size; /* instead of the two; 0: from them */
  bool isContiguous;
  NvBufSurfaceColorFormat colorFormat;
  NvBufSurfaceLayout layout;
  NvBufSurfaceMemType memType;
} NvBufSurfaceCreateParams;

/* 64-bit ABI, as published */
_Static_assert(sizeof (NvBufSurfaceMappedAddr) == 72, "NvBufSurface ABI");
_Static_assert(sizeof (NvBufSurfacePlaneParams) == 232, "NvBufSurface ABI");
_Static_assert(sizeof (NvBufSurfaceParams) == 384, "NvBufSurface ABI");
_Static_assert(sizeof (NvBufSurface) == 64, "NvBufSurface ABI");

#endif

/* Of libnvbufsurface.so, which nothing here is linked with; 0 is success. */
typedef int (*NvBufSurfaceCreateFunc) (
    NvBufSurface **surface, uint32_t batch, NvBufSurfaceCreateParams *params);
typedef int (*NvBufSurfaceDestroyFunc) (NvBufSurface *surface);
typedef int (*NvBufSurfaceMapEglImageFunc) (NvBufSurface *surface, int index);
