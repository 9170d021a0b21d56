/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: what is done with a frame before and after it is
 * sharpened, a pixel a thread. */
#pragma once

#include "core/cuda/cuda-check.h"
#include "core/cuda/cuda-launch.h"
#include "lapsharpen/cuda/lapsharpen-samples.cuh"
#include "lapsharpen/lapsharpen-stage.h"

enum {
  PIXEL_WARPS = 8, /* warps a block, one above the other */
  PIXEL_ROWS = 32, /* rows a block */
};

static cudaLaunchConfig_t
get_pixel_launch (uint32_t width, uint32_t height, cudaStream_t stream)
{
  return grid (dim3 (imk_div_up (width, WARP), imk_div_up (height, PIXEL_ROWS)),
      dim3 (WARP, PIXEL_WARPS), stream);
}

/* An image inside a kernel. */
struct Pixels {
  uint8_t *data;
  size_t stride;
};

static Pixels
pixels_of (const ImkImage *image)
{
  return Pixels{(uint8_t *) image->data, image->stride};
}

static __global__ void
unpack_frame (const __grid_constant__ ImkLapsharpenStage stage, uint32_t width,
    uint32_t height, const Pixels in, const Pixels unpacked)
{
  const uint32_t x = blockIdx.x * WARP + threadIdx.x;
  const uint32_t top = blockIdx.y * PIXEL_ROWS + threadIdx.y;

  for (uint32_t y = top; y < min (top + PIXEL_ROWS - threadIdx.y, height);
       y += PIXEL_WARPS)
    if (x < width)
      imk_lapsharpen_unpack_pixel (&stage, in.data + y * in.stride, x,
          (uint16_t *) (unpacked.data + y * unpacked.stride));
}

static __global__ void
pack_frame (const __grid_constant__ ImkLapsharpenStage stage, uint32_t width,
    uint32_t height, const Pixels in, const Pixels sharpened, const Pixels out)
{
  const uint32_t x = blockIdx.x * WARP + threadIdx.x;
  const uint32_t top = blockIdx.y * PIXEL_ROWS + threadIdx.y;

  for (uint32_t y = top; y < min (top + PIXEL_ROWS - threadIdx.y, height);
       y += PIXEL_WARPS)
    if (x < width)
      imk_lapsharpen_pack_pixel (&stage, in.data + y * in.stride,
          (const uint16_t *) (sharpened.data + y * sharpened.stride), x,
          out.data + y * out.stride);
}

/* Gives back what of @out is not to change of @in. @mask: (nullable) */
template <typename Sample>
static __global__ void
restore_frame (const __grid_constant__ ImkLapsharpenRule rule,
    const uint8_t *mask, const Pixels in, const Pixels out)
{
  const uint32_t x = blockIdx.x * WARP + threadIdx.x;
  const uint32_t top = blockIdx.y * PIXEL_ROWS + threadIdx.y;

  for (uint32_t y = top; y < min (top + PIXEL_ROWS - threadIdx.y, rule.height);
       y += PIXEL_WARPS) {
    const Sample *from = (const Sample *) (in.data + y * in.stride);
    Sample *to = (Sample *) (out.data + y * out.stride);
    uint32_t weight = 255;

    if (x >= rule.width)
      return;
    if (!imk_lapsharpen_in_areas (&rule, x, y))
      weight = 0;
    else if (mask)
      weight = mask[(size_t) y * rule.width + x];
    for (uint32_t i = x * rule.channels;
         i < (x + 1) * rule.channels && weight < 255; i++)
      to[i] = (Sample) imk_lapsharpen_mixed (&rule, from[i], to[i], weight);
  }
}

/* |N| of a sample with 8 neighbours, see imk/lapsharpen.h; @at: in its row */
template <typename Sample>
static __device__ int32_t
get_noise (const ImkLapsharpenRule &rule, const uint8_t *at, size_t stride)
{
  const Sample *a = (const Sample *) (at - stride);
  const Sample *h = (const Sample *) at, *b = (const Sample *) (at + stride);
  const int c = rule.channels;
  const uint32_t shift = rule.shift;
  const int32_t corners =
      (int32_t) (a[-c] >> shift) + (int32_t) (a[c] >> shift) +
      (int32_t) (b[-c] >> shift) + (int32_t) (b[c] >> shift);
  const int32_t sides = (int32_t) (a[0] >> shift) + (int32_t) (b[0] >> shift) +
                        (int32_t) (h[-c] >> shift) + (int32_t) (h[c] >> shift);

  return abs (4 * (int32_t) (h[0] >> shift) - 2 * sides + corners);
}

template <typename Sample>
static __global__ void
__launch_bounds__ (WARP *PIXEL_WARPS) measure_noise (
    const __grid_constant__ ImkLapsharpenRule rule, const Pixels in, Sums *sums)
{
  const uint32_t x = blockIdx.x * WARP + threadIdx.x + 1;
  const uint32_t top = blockIdx.y * PIXEL_ROWS + threadIdx.y + 1;
  long long sum = 0;

  /* No return: all threads meet in add_to_sums (). */
  for (uint32_t y = top; y < top + PIXEL_ROWS - threadIdx.y; y += PIXEL_WARPS)
    for (uint32_t c = 0; c < rule.channels; c++)
      if (rule.noisy >> c & 1 && x + 1 < rule.width && y + 1 < rule.height)
        sum += get_noise<Sample> (rule,
            in.data + y * in.stride + (x * rule.channels + c) * sizeof (Sample),
            in.stride);
  add_to_sums (sum, 0, sums);
}

static ImkStatus
launch_restore (const ImkLapsharpenRule *rule, const uint8_t *mask,
    const ImkImage *in, const ImkImage *out, cudaStream_t stream,
    ImkError *error)
{
  const auto kernel = in->type == IMK_TYPE_U8 ? restore_frame<uint8_t>
                                              : restore_frame<uint16_t>;
  cudaLaunchConfig_t launch =
      get_pixel_launch (rule->width, rule->height, stream);

  return IMK_CUDA_LAUNCH (
      error, launch, kernel, *rule, mask, pixels_of (in), pixels_of (out));
}

static ImkStatus
launch_noise (const ImkLapsharpenRule *rule, const ImkImage *in, Sums *sums,
    cudaStream_t stream, ImkError *error)
{
  const auto kernel = in->type == IMK_TYPE_U8 ? measure_noise<uint8_t>
                                              : measure_noise<uint16_t>;
  cudaLaunchConfig_t launch =
      get_pixel_launch (rule->width - 2, rule->height - 2, stream);

  return IMK_CUDA_LAUNCH (error, launch, kernel, *rule, pixels_of (in), sums);
}
