/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the mocks of the CUDA driver and of libnvbufsurface tell each other:
 * how a plane behind an EGL image lies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOCK_EGL_MAGIC 0x45474c49u
#define MOCK_ARRAY_MAGIC 0x41525241u

/* A CUDA array: rows lie in the wrong order, so that nobody can use it as
 * memory and get a picture. */
typedef struct MockArray {
  uint32_t magic;
  size_t row_size, height;
  uint8_t *bytes;
} MockArray;

typedef struct MockEglImage {
  uint32_t magic;
  bool is_array;
  unsigned n_planes;
  void *planes[3]; /* of the device, or MockArray */
  size_t stride;   /* of the first plane */
} MockEglImage;
