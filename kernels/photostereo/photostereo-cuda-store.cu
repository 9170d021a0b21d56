/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures that came, into packets. */
#include "photostereo/photostereo-cuda.h"

/* The bytes of the 4-byte word @i of a packet that @fresh lights fill. */
template <typename Sample>
static __device__ __forceinline__ uint32_t
fresh_bytes (uint32_t fresh, int i)
{
  constexpr int LIGHTS = 4 / sizeof (Sample);
  uint32_t bytes = 0;

#pragma unroll
  for (int j = 0; j < LIGHTS; j++)
    if (fresh >> (LIGHTS * i + j) & 1)
      bytes |= (sizeof (Sample) == 1 ? 0xffu : 0xffffu)
               << (8 * sizeof (Sample) * j);
  return bytes;
}

/* words[light][pixels], as read, become words[pixel][lights]. */
static __device__ __forceinline__ void
transpose (uint32_t w[4], uint8_t)
{
  uint32_t a = __byte_perm (w[0], w[1], 0x5140);
  uint32_t b = __byte_perm (w[2], w[3], 0x5140);
  uint32_t c = __byte_perm (w[0], w[1], 0x7362);
  uint32_t d = __byte_perm (w[2], w[3], 0x7362);

  w[0] = __byte_perm (a, b, 0x5410);
  w[1] = __byte_perm (a, b, 0x7632);
  w[2] = __byte_perm (c, d, 0x5410);
  w[3] = __byte_perm (c, d, 0x7632);
}

static __device__ __forceinline__ void
transpose (uint32_t w[2], uint16_t)
{
  uint32_t a = __byte_perm (w[0], w[1], 0x5410);

  w[1] = __byte_perm (w[0], w[1], 0x7632);
  w[0] = a;
}

static __device__ __forceinline__ void
merge_packet (
    uint4 *to, const uint32_t words[4], bool merge, const uint32_t fresh[4])
{
  uint4 old = merge ? *to : uint4{};

  *to = uint4{(old.x & ~fresh[0]) | words[0], (old.y & ~fresh[1]) | words[1],
      (old.z & ~fresh[2]) | words[2], (old.w & ~fresh[3]) | words[3]};
}

/* Pictures of one plane: a thread has the pixels of one word. */
template <typename Sample>
static __global__ void
put_grey (const __grid_constant__ Arguments a, const __grid_constant__ Put put)
{
  constexpr int N = 4 / sizeof (Sample);
  size_t first = ((size_t) blockIdx.x * THREADS + threadIdx.x) * N;
  size_t pixels = store_pixels (a);

  if (first >= pixels)
    return;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    uint32_t words[N][4], fresh[4];

#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint32_t w[N];

#pragma unroll
      for (int j = 0; j < N; j++) {
        const uint8_t *from = put.from[(4 * half + i) * N + j];

        w[j] = from ? *(const uint32_t *) (from + first * sizeof (Sample)) : 0;
      }
      fresh[i] = fresh_bytes<Sample> (put.fresh, 4 * half + i);
      transpose (w, Sample ());
#pragma unroll
      for (int j = 0; j < N; j++)
        words[j][i] = w[j];
    }
#pragma unroll
    for (int j = 0; j < N; j++)
      if (first + j < pixels)
        merge_packet ((uint4 *) packet_at (a, 0, put.packet, first + j) + half,
            words[j], put.merge, fresh);
  }
}

/* One sample of a colour, or of what a mosaic is interpolated to. */
template <typename Sample>
static __device__ __forceinline__ uint32_t
colour_at (const Arguments &a, const Put &put, const uint8_t *from,
    uint32_t plane, uint32_t x, uint32_t y)
{
  const ImkPhotostereoPlan &p = a.plan;
  const Sample *samples = (const Sample *) from;
  uint32_t sum = 0, n = 0;

  if (!p.interpolate || p.site[2 * (y & 1) + (x & 1)] == plane)
    return samples[((size_t) (y - put.from_row) * p.width + x) * p.channels +
                   p.colours[plane]];
  for (uint32_t v = y ? y - 1 : 0; v <= y + 1 && v < p.height; v++)
    for (uint32_t u = x ? x - 1 : 0; u <= x + 1 && u < p.width; u++)
      if (p.site[2 * (v & 1) + (u & 1)] == plane) {
        sum += samples[(size_t) (v - put.from_row) * p.width + u];
        n++;
      }
  return n ? (sum + n / 2) / n : 0;
}

/* Pictures of which several planes are made: a thread has a pixel. */
template <typename Sample>
static __global__ void
put_colours (
    const __grid_constant__ Arguments a, const __grid_constant__ Put put)
{
  constexpr int N = 4 / sizeof (Sample);
  uint32_t x = blockIdx.x * THREADS + threadIdx.x, row = blockIdx.y;
  size_t pixel = (size_t) row * a.plan.width + x;

  if (x >= a.plan.width)
    return;
  for (uint32_t plane = 0; plane < a.plan.n_planes; plane++)
    for (int half = 0; half < 2; half++) {
      uint32_t words[4] = {}, fresh[4];

#pragma unroll
      for (int i = 0; i < 4; i++) {
        fresh[i] = fresh_bytes<Sample> (put.fresh, 4 * half + i);
        for (int j = 0; j < N; j++) {
          const uint8_t *from = put.from[(4 * half + i) * N + j];

          if (from)
            words[i] |=
                colour_at<Sample> (a, put, from, plane, x, a.first_row + row)
                << (8 * sizeof (Sample) * j);
        }
      }
      merge_packet ((uint4 *) packet_at (a, plane, put.packet, pixel) + half,
          words, put.merge, fresh);
    }
}

ImkStatus
imk_photostereo_cuda_put (
    const Arguments *a, const Put *put, cudaStream_t stream, ImkError *error)
{
  bool u8 = a->plan.type == IMK_TYPE_U8;
  cudaLaunchConfig_t launch =
      a->plan.n_planes == 1
          ? launch_of (store_pixels (*a) / (u8 ? 4 : 2) + 1, 1, stream)
          : launch_of (a->plan.width, a->n_rows, stream);
  void (*kernel) (const Arguments, const Put) =
      a->plan.n_planes == 1
          ? (u8 ? put_grey<uint8_t> : put_grey<uint16_t>)
          : (u8 ? put_colours<uint8_t> : put_colours<uint16_t>);

  return IMK_CUDA_LAUNCH (error, launch, kernel, *a, *put);
}
