/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/image.h"

static const struct {
  const char *name;
  size_t size;      /* bytes of a sample */
  size_t alignment; /* bytes; a complex sample is two numbers */
} types[] = {
    [IMK_TYPE_U8] = {"u8", 1, 1},
    [IMK_TYPE_U16] = {"u16", 2, 2},
    [IMK_TYPE_I16] = {"i16", 2, 2},
    [IMK_TYPE_F32] = {"f32", 4, 4},
    [IMK_TYPE_F64] = {"f64", 8, 8},
    [IMK_TYPE_CI16] = {"ci16", 4, 2},
    [IMK_TYPE_CF32] = {"cf32", 8, 4},
};

static bool
is_type (ImkType type)
{
  return (unsigned) type < sizeof (types) / sizeof (types[0]);
}

size_t
imk_type_size (ImkType type)
{
  return is_type (type) ? types[type].size : 0;
}

const char *
imk_type_name (ImkType type)
{
  return is_type (type) ? types[type].name : "?";
}

ImkStatus
imk_image_check (const ImkImage *image, const char *role, ImkType type,
    uint32_t channels, uint32_t width, uint32_t height, bool on_device,
    ImkError *error)
{
  size_t alignment = is_type (type) ? types[type].alignment : 1;

  if (!image || !image->data)
    return imk_error_set (
        error, IMK_ERROR_IMAGE, "The %s image has no data.", role);
  if (image->type != type || image->channels != channels ||
      image->width != width || image->height != height)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The %s image is %ux%u, %u x %s a pixel; the configuration says "
        "%ux%u, %u x %s.",
        role, image->width, image->height, image->channels,
        imk_type_name (image->type), width, height, channels,
        imk_type_name (type));
  if (height > 1 && image->stride < imk_image_row_size (image))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The %s image has a stride of %zu bytes; one row alone takes %zu.",
        role, image->stride, imk_image_row_size (image));
  if (height > 1 && image->stride > PTRDIFF_MAX / height)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The %s image has a stride of %zu bytes; %u such rows are beyond any "
        "memory. Rows from bottom to top need a copy.",
        role, image->stride, height);
  if ((uintptr_t) image->data % alignment ||
      (height > 1 && image->stride % alignment))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The %s image starts at %p with a stride of %zu bytes; %s samples "
        "need multiples of %zu.",
        role, image->data, image->stride, imk_type_name (type), alignment);
  if ((image->location != IMK_LOCATION_HOST) != on_device)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The %s image lies in %s memory, which this backend cannot reach.",
        role, on_device ? "host" : "device");
  return IMK_OK;
}
