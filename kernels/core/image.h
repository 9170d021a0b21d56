/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/status.h"

IMK_BEGIN_DECLS

/* The type of one sample; multi-byte samples are in the machine's byte order.
 */
typedef enum ImkType {
  IMK_TYPE_U8,
  IMK_TYPE_U16,
  IMK_TYPE_I16,
  IMK_TYPE_F32,
  IMK_TYPE_F64,
  IMK_TYPE_CI16, /* complex, I then Q, each int16 */
  IMK_TYPE_CF32, /* complex, real then imaginary, each float32 */
} ImkType;

/* Who may follow the data pointer of an image. */
typedef enum ImkLocation {
  IMK_LOCATION_HOST,        /* the CPU */
  IMK_LOCATION_DEVICE,      /* the GPU, in its own memory */
  IMK_LOCATION_HOST_MAPPED, /* the GPU, in page-locked host memory, over the
                             * bus on a card; in place on an integrated GPU */
} ImkLocation;

/**
 * ImkImage: (one plane of samples, owned by somebody else)
 * @data: the first sample of the top row
 * @stride: bytes from one row to the next, at least the bytes of a row
 * @width: pixels a row
 * @height: rows
 * @channels: samples a pixel, interleaved
 *
 * A planar picture is several of these. An array of results is an image of
 * one channel: @height rows of @width numbers. */
typedef struct ImkImage {
  void *data;
  size_t stride;
  uint32_t width, height;
  uint32_t channels;
  ImkType type;
  ImkLocation location;
} ImkImage;

/* Returns: bytes of one sample, 0 for a value that is no ImkType */
IMK_API size_t imk_type_size (ImkType type);

/* Returns: "u8", "u16", ..., "cf32"; "?" for a value that is no ImkType */
IMK_API const char *imk_type_name (ImkType type);

/* Returns: bytes of the pixels of one row, without padding */
static inline size_t
imk_image_row_size (const ImkImage *image)
{
  return (size_t) image->width * image->channels * imk_type_size (image->type);
}

/* Returns: @height rows of @width numbers, without padding, for the CPU */
static inline ImkImage
imk_image_of_rows (void *data, ImkType type, uint32_t width, uint32_t height)
{
  ImkImage image = {data, width * imk_type_size (type), width, height, 1, type,
      IMK_LOCATION_HOST};

  return image;
}

/**
 * imk_image_check: (is this the image that the configuration promised?)
 * @role: "input", "output": how the message calls the image
 *
 * Compares type, channels and size, and checks that there is a data pointer
 * aligned to its samples, a stride that holds a row, and a location that the
 * backend can reach: HOST for the CPU, else DEVICE or HOST_MAPPED.
 * Returns: IMK_OK or IMK_ERROR_IMAGE */
IMK_API ImkStatus imk_image_check (const ImkImage *image, const char *role,
    ImkType type, uint32_t channels, uint32_t width, uint32_t height,
    bool on_device, ImkError *error);

/* Integer division rounding up, exact for the whole range. */
static inline uint32_t
imk_div_up (uint32_t value, uint32_t divisor)
{
  return value / divisor + (value % divisor != 0);
}

IMK_END_DECLS
