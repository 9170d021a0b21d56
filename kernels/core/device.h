/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>

#include "imk/backend.h"
#include "imk/image.h"

IMK_BEGIN_DECLS

/* What one device is. */
typedef struct ImkDeviceInfo {
  char name[256];
  int compute_major, compute_minor;
  bool integrated;   /* shares its memory with the CPU */
  bool io_coherent;  /* pinned memory stays cached for the CPU (integrated) */
  size_t total_size; /* bytes of device memory */
} ImkDeviceInfo;

/* The planes behind an EGL image. */
typedef struct ImkEglFrame {
  void *resource; /* the registration, for egl_unmap */
  bool is_array;  /* planes are CUDA arrays, for copy_array; else memory */
  unsigned n_planes;
  void *planes[3];
  size_t stride; /* bytes from row to row of the first plane; not of arrays */
} ImkEglFrame;

/**
 * ImkDevice: (memory, streams and events of a device, as a table)
 *
 * Everything here acts on the context that is current for the calling thread;
 * push and pop set it. Contexts, streams and events are opaque: CUcontext,
 * cudaStream_t and cudaEvent_t in the CUDA module. Nothing here aborts; each
 * call returns a sentence that names the failing CUDA call. */
typedef struct ImkDevice {
  IMK_BACKEND_HEADER;

  ImkStatus (*count) (int *n_devices, ImkError *error);
  ImkStatus (*info) (int device, ImkDeviceInfo *info, ImkError *error);

  /* The primary context of @device, kept for the life of the process. */
  ImkStatus (*context) (int device, void **context, ImkError *error);
  ImkStatus (*push) (void *context, ImkError *error);
  void (*pop) (void);

  /* @size bytes of device memory. */
  ImkStatus (*alloc_device) (size_t size, void **device, ImkError *error);
  void (*free_device) (void *device);
  /* @size page-locked bytes, seen by the CPU at @host and by every device at
   * @mapped. */
  ImkStatus (*alloc_pinned) (
      size_t size, void **host, void **mapped, ImkError *error);
  void (*free_pinned) (void *host);
  /* Copies from the current context into memory of @context, another device,
   * take the link between the two, where there is one; else the host. */
  void (*enable_peer) (void *context);
  /* @height rows of @row_size bytes, between any two locations, in the order
   * of @stream. Page-locked memory is still in use when the call returns. */
  ImkStatus (*copy) (void *to, size_t to_stride, const void *from,
      size_t from_stride, size_t row_size, size_t height, void *stream,
      ImkError *error);

  ImkStatus (*stream_new) (void **stream, ImkError *error);
  void (*stream_free) (void *stream);
  ImkStatus (*stream_synchronize) (void *stream, ImkError *error);

  /* An event nobody has recorded counts as past. */
  ImkStatus (*event_new) (void **event, ImkError *error);
  void (*event_free) (void *event);
  ImkStatus (*event_record) (void *event, void *stream, ImkError *error);
  ImkStatus (*event_wait) (void *event, void *stream, ImkError *error);
  ImkStatus (*event_synchronize) (void *event, ImkError *error);

  /* What cameras and decoders of a Jetson give: @image is an EGLImageKHR. The
   * frame stays mapped until egl_unmap, whatever is written into the image. */
  ImkStatus (*egl_map) (void *image, ImkEglFrame *frame, ImkError *error);
  void (*egl_unmap) (ImkEglFrame *frame);
  /* @height rows of @row_size bytes between a plane of such a frame and device
   * memory, in the order of @stream. */
  ImkStatus (*copy_array) (void *array, void *memory, size_t stride,
      size_t row_size, size_t height, bool to_array, void *stream,
      ImkError *error);
} ImkDevice;

/* Returns: the CUDA module's device table, IMK_ERROR_UNAVAILABLE without */
IMK_API ImkStatus imk_device_get (const ImkDevice **device, ImkError *error);

IMK_END_DECLS
