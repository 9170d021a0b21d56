/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-nvbufsurface.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imk/device.h"
#include "mock-egl.h"

/* As Jetson's: rows start at multiples of this. */
#define PITCH_ALIGNMENT 256

#define EXPORT __attribute__ ((visibility ("default")))

typedef struct Surface {
  NvBufSurface surface;
  NvBufSurfaceParams params;
  size_t row_size[NVBUF_MAX_PLANES];
  void *block; /* of the device, or page-locked */
  bool is_array;
  MockArray arrays[3];
} Surface;

static atomic_uint n_surfaces, n_images, n_images_ever;

__attribute__ ((noreturn)) static void
misuse (const char *what)
{
  fprintf (stderr, "mock-nvbufsurface: %s\n", what);
  abort ();
}

/* Asked for once: no call to the device that a test makes fail is made here. */
static void *contexts[16];

/* Returns: the device with its context current, NULL when there is none */
static const ImkDevice *
begin (uint32_t gpu)
{
  const ImkDevice *device = NULL;

  if (gpu >= 16 || imk_device_get (&device, NULL) != IMK_OK ||
      (!contexts[gpu] &&
          device->context ((int) gpu, &contexts[gpu], NULL) != IMK_OK) ||
      device->push (contexts[gpu], NULL) != IMK_OK)
    return NULL;
  return device;
}

static bool
told (const char *name, const char *value)
{
  const char *text = getenv (name);

  return text && strcmp (text, value) == 0;
}

static NvBufSurfaceMemType
default_memory (void)
{
  if (told ("IMK_MOCK_NVMM", "pitch") || told ("IMK_MOCK_NVMM", "array"))
    return NVBUF_MEM_SURFACE_ARRAY;
  return told ("IMK_MOCK_NVMM", "pinned") ? NVBUF_MEM_CUDA_PINNED
                                          : NVBUF_MEM_CUDA_DEVICE;
}

static void
add_plane (Surface *self, uint32_t width, uint32_t height, uint32_t pixel_size)
{
  NvBufSurfacePlaneParams *p = &self->params.planeParams;
  uint32_t i = p->num_planes++;

  self->row_size[i] = (size_t) width * pixel_size;
  p->width[i] = width;
  p->height[i] = height;
  p->bytesPerPix[i] = pixel_size;
  p->pitch[i] = (uint32_t) (self->row_size[i] + PITCH_ALIGNMENT - 1) /
                PITCH_ALIGNMENT * PITCH_ALIGNMENT;
  p->offset[i] = self->params.dataSize;
  p->psize[i] = p->pitch[i] * height;
  self->params.dataSize += p->psize[i];
}

static bool
lay_out (Surface *self)
{
  NvBufSurfaceParams *s = &self->params;

  switch ((int) s->colorFormat) {
  case NVBUF_COLOR_FORMAT_GRAY8:
    add_plane (self, s->width, s->height, 1);
    break;
  case NVBUF_COLOR_FORMAT_NV12:
    add_plane (self, s->width, s->height, 1);
    add_plane (self, (s->width + 1) / 2, (s->height + 1) / 2, 2);
    break;
  case NVBUF_COLOR_FORMAT_NV12_10LE:
    add_plane (self, s->width, s->height, 2);
    add_plane (self, (s->width + 1) / 2, (s->height + 1) / 2, 4);
    break;
  case NVBUF_COLOR_FORMAT_NV16:
    add_plane (self, s->width, s->height, 1);
    add_plane (self, (s->width + 1) / 2, s->height, 2);
    break;
  case NVBUF_COLOR_FORMAT_RGBA:
    add_plane (self, s->width, s->height, 4);
    break;
  default:
    return false;
  }
  s->pitch = s->planeParams.pitch[0];
  return true;
}

static bool
get_arrays (Surface *self)
{
  for (uint32_t i = 0; i < self->params.planeParams.num_planes; i++) {
    MockArray *a = &self->arrays[i];

    *a = (MockArray){
        .magic = MOCK_ARRAY_MAGIC,
        .row_size = self->row_size[i],
        .height = self->params.planeParams.height[i],
    };
    a->bytes = calloc (a->row_size, a->height);
    if (!a->bytes)
      return false;
  }
  self->is_array = true;
  return true;
}

static bool
get_memory (Surface *self, uint32_t gpu)
{
  NvBufSurfaceParams *s = &self->params;
  NvBufSurfaceMemType type = self->surface.memType;
  const ImkDevice *device;
  void *mapped = NULL;
  bool ok;

  if (type == NVBUF_MEM_SURFACE_ARRAY && told ("IMK_MOCK_NVMM", "array"))
    return get_arrays (self);
  device = begin (gpu);
  if (!device)
    return false;
  if (type == NVBUF_MEM_CUDA_PINNED) {
    ok = device->alloc_pinned (s->dataSize, &self->block, &mapped, NULL) ==
         IMK_OK;
  } else {
    ok = device->alloc_device (s->dataSize, &self->block, NULL) == IMK_OK;
    mapped = self->block;
  }
  device->pop ();
  s->dataPtr = mapped;
  return ok;
}

static void
surface_free (Surface *self)
{
  for (int i = 0; i < 3; i++)
    free (self->arrays[i].bytes);
  if (self->block) {
    const ImkDevice *device = begin (self->surface.gpuId);

    if (!device)
      misuse ("the device of a surface is gone.");
    if (self->surface.memType == NVBUF_MEM_CUDA_PINNED)
      device->free_pinned (self->block);
    else
      device->free_device (self->block);
    device->pop ();
  }
  free (self);
}

EXPORT int
NvBufSurfaceCreate (
    NvBufSurface **surface, uint32_t batch, NvBufSurfaceCreateParams *params)
{
  static atomic_ulong descriptor;
  Surface *self;

  if (batch != 1 || told ("IMK_MOCK_NVMM_FAIL", "create"))
    return -1;
  self = calloc (1, sizeof (*self));
  if (!self)
    return -1;
  self->params = (NvBufSurfaceParams){
      .width = params->width,
      .height = params->height,
      .colorFormat = params->colorFormat,
      .layout = params->layout,
      .bufferDesc = ++descriptor,
  };
  self->surface = (NvBufSurface){
      .gpuId = params->gpuId,
      .batchSize = batch,
      .memType = params->memType == NVBUF_MEM_DEFAULT ? default_memory ()
                                                      : params->memType,
      .surfaceList = &self->params,
  };
  if (!lay_out (self) || !get_memory (self, params->gpuId)) {
    surface_free (self);
    return -1;
  }
  /* nobody may follow this one */
  if (self->surface.memType == NVBUF_MEM_SURFACE_ARRAY)
    self->params.dataPtr = (void *) (uintptr_t) 0xdead0000;
  n_surfaces++;
  *surface = &self->surface;
  return 0;
}

EXPORT int
NvBufSurfaceDestroy (NvBufSurface *surface)
{
  if (surface->surfaceList[0].mappedAddr.eglImage)
    misuse ("a surface was destroyed before its EGL image.");
  surface_free ((Surface *) surface);
  n_surfaces--;
  return 0;
}

EXPORT int
NvBufSurfaceMapEglImage (NvBufSurface *surface, int index)
{
  Surface *self = (Surface *) surface;
  MockEglImage *image;

  if (index != 0 || surface->memType != NVBUF_MEM_SURFACE_ARRAY ||
      told ("IMK_MOCK_NVMM_FAIL", "map"))
    return -1;
  if (self->params.mappedAddr.eglImage)
    misuse ("a surface has an EGL image already.");
  image = calloc (1, sizeof (*image));
  if (!image)
    return -1;
  image->magic = MOCK_EGL_MAGIC;
  image->is_array = self->is_array;
  image->n_planes = self->params.planeParams.num_planes;
  image->stride = self->params.planeParams.pitch[0];
  for (unsigned i = 0; i < image->n_planes; i++)
    image->planes[i] = self->is_array ? (void *) &self->arrays[i]
                                      : (uint8_t *) self->block +
                                            self->params.planeParams.offset[i];
  self->params.mappedAddr.eglImage = image;
  n_images++;
  n_images_ever++;
  return 0;
}

EXPORT int
NvBufSurfaceUnMapEglImage (NvBufSurface *surface, int index)
{
  NvBufSurfaceMappedAddr *mapped = &surface->surfaceList[0].mappedAddr;

  if (!mapped->eglImage)
    misuse ("a surface has no EGL image to end.");
  free (mapped->eglImage);
  mapped->eglImage = NULL;
  n_images--;
  return 0;
}

/* --- for tests ------------------------------------------------------------ */

static void
transfer (NvBufSurface *surface, unsigned plane, uint8_t *rows, size_t stride,
    bool write)
{
  Surface *self = (Surface *) surface;
  NvBufSurfacePlaneParams *p = &self->params.planeParams;
  size_t row_size = self->row_size[plane], height = p->height[plane];
  const ImkDevice *device;
  uint8_t *at;
  ImkError error;
  ImkStatus status;

  if (self->is_array) {
    for (size_t y = 0; y < height; y++) {
      at = self->arrays[plane].bytes + (height - 1 - y) * row_size;
      memcpy (write ? at : rows + y * stride, write ? rows + y * stride : at,
          row_size);
    }
    return;
  }
  at = (uint8_t *) self->block + p->offset[plane];
  device = begin (surface->gpuId);
  if (!device)
    misuse ("the device of a surface is gone.");
  status = write ? device->copy (at, p->pitch[plane], rows, stride, row_size,
                       height, NULL, &error)
                 : device->copy (rows, stride, at, p->pitch[plane], row_size,
                       height, NULL, &error);
  if (status == IMK_OK)
    status = device->stream_synchronize (NULL, &error);
  device->pop ();
  if (status != IMK_OK)
    misuse (error.message);
}

EXPORT void
imk_mock_surface_write (
    NvBufSurface *surface, unsigned plane, const void *rows, size_t stride)
{
  transfer (surface, plane, (uint8_t *) rows, stride, true);
}

EXPORT void
imk_mock_surface_read (
    NvBufSurface *surface, unsigned plane, void *rows, size_t stride)
{
  transfer (surface, plane, rows, stride, false);
}

EXPORT unsigned
imk_mock_surface_n_live (void)
{
  return n_surfaces + n_images;
}

EXPORT unsigned
imk_mock_surface_n_images (void)
{
  return n_images_ever;
}
