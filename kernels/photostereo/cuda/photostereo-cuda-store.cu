/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures that came, into packets. */
#include "photostereo/cuda/photostereo-cuda.cuh"

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

/* Adds what the threads of a warp have seen. */
static __device__ __forceinline__ void
add_seen (Seen *to, uint32_t largest, uint32_t n_clipped)
{
  for (int step = 16; step > 0; step /= 2) {
    largest = max (largest, __shfl_down_sync (~0u, largest, step));
    n_clipped += __shfl_down_sync (~0u, n_clipped, step);
  }
  if (threadIdx.x % 32 != 0)
    return;
  if (largest > *(volatile unsigned *) &to->largest)
    atomicMax (&to->largest, largest);
  if (n_clipped)
    atomicAdd (&to->n_clipped, (unsigned long long) n_clipped);
}

/* All bits of the samples of a word that are of the device's rows and in the
 * mask. */
template <typename Sample>
static __device__ __forceinline__ uint32_t
wanted_bits (const Arguments &a, size_t first)
{
  constexpr int N = 4 / sizeof (Sample);
  const uint8_t *mask = a.plan.mask;
  size_t pixel = first + (size_t) a.first_row * a.plan.width;
  size_t begin = (size_t) a.plan.first_row * a.plan.width;
  size_t end = begin + (size_t) a.plan.n_rows * a.plan.width;
  uint32_t bits = 0;

#pragma unroll
  for (int j = 0; j < N; j++)
    if (first + j < store_pixels (a) && pixel + j >= begin && pixel + j < end &&
        (!mask || mask[pixel + j]))
      bits |= (sizeof (Sample) == 1 ? 0xffu : 0xffffu) << (32 / N * j);
  return bits;
}

/* The samples of a word. @level: from where they are clipped */
template <typename Sample>
static __device__ __forceinline__ void
look_at (uint32_t word, uint32_t level, uint32_t &largest, uint32_t &n_clipped)
{
  constexpr int N = 4 / sizeof (Sample);

#pragma unroll
  for (int j = 0; j < N; j++) {
    uint32_t v = word >> (32 / N * j) & (sizeof (Sample) == 1 ? 0xff : 0xffff);

    largest = max (largest, v);
    n_clipped += v >= level;
  }
}

/* The packet of a pixel of a block, and a word so that others are in other
 * banks. */
typedef uint32_t Packet[PACKET / 4 + 1];

/* Pictures of one plane or band: the pixels of one word, from @first on. */
template <typename Sample>
static __device__ __forceinline__ void
read_word (const Arguments &a, const Put &put, size_t first, Packet *packets,
    uint32_t &largest, uint32_t &n_clipped)
{
  constexpr int N = 4 / sizeof (Sample);
  uint32_t wanted = wanted_bits<Sample> (a, first);

#pragma unroll
  for (int i = 0; i < PACKET / 4; i++) {
    uint32_t w[N];

#pragma unroll
    for (int j = 0; j < N; j++) {
      const uint8_t *from = put.from[i * N + j];

      w[j] = from ? *(const uint32_t *) (from + first * sizeof (Sample)) : 0;
      look_at<Sample> (w[j] & wanted, a.plan.saturation, largest, n_clipped);
    }
    transpose (w, Sample ());
#pragma unroll
    for (int j = 0; j < N; j++)
      packets[j][i] = w[j];
  }
}

/* Packets go from shared memory to the store, so that neighbours write what is
 * side by side: a third of the time. */
template <typename Sample>
static __global__ void
put_grey (const __grid_constant__ Arguments a, const __grid_constant__ Put put)
{
  constexpr uint32_t N = 4 / sizeof (Sample), PIXELS = N * THREADS;
  __shared__ Packet packets[PIXELS];
  size_t block = (size_t) blockIdx.x * PIXELS, pixels = store_pixels (a);
  size_t first = block + threadIdx.x * N;
  uint32_t largest = 0, n_clipped = 0, half = threadIdx.x % 2, fresh[4];

  if (first < pixels)
    read_word<Sample> (
        a, put, first, packets + threadIdx.x * N, largest, n_clipped);
  __syncthreads ();
#pragma unroll
  for (int i = 0; i < 4; i++)
    fresh[i] = fresh_bytes<Sample> (put.fresh, 4 * half + i);
  for (uint32_t i = threadIdx.x / 2; i < PIXELS; i += THREADS / 2)
    if (block + i < pixels)
      merge_packet ((uint4 *) packet_at (a, 0, put.packet, block + i) + half,
          packets[i] + 4 * half, put.merge, fresh);
  add_seen (a.seen, largest, n_clipped);
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

/* Pictures of which several planes are made: the pixel @x of a row of the
 * store. */
template <typename Sample>
static __device__ __forceinline__ void
put_pixel (const Arguments &a, const Put &put, uint32_t x, uint32_t row,
    uint32_t &largest, uint32_t &n_clipped)
{
  constexpr int N = 4 / sizeof (Sample);
  size_t pixel = (size_t) row * a.plan.width + x;
  uint32_t own_row = a.first_row + row - a.plan.first_row; /* wraps above */
  bool wanted = own_row < a.plan.n_rows && is_wanted (a, x, a.first_row + row);

  for (uint32_t plane = 0; plane < a.plan.n_planes; plane++)
    for (int half = 0; half < 2; half++) {
      uint32_t words[4] = {}, fresh[4];

#pragma unroll
      for (int i = 0; i < 4; i++) {
        fresh[i] = fresh_bytes<Sample> (put.fresh, 4 * half + i);
        for (int j = 0; j < N; j++) {
          const uint8_t *from = put.from[(4 * half + i) * N + j];
          uint32_t v = from ? colour_at<Sample> (
                                  a, put, from, plane, x, a.first_row + row)
                            : 0;

          words[i] |= v << (8 * sizeof (Sample) * j);
          v = wanted ? v : 0;
          largest = max (largest, v);
          n_clipped += v >= a.plan.saturation;
        }
      }
      merge_packet ((uint4 *) packet_at (a, plane, put.packet, pixel) + half,
          words, put.merge, fresh);
    }
}

template <typename Sample>
static __global__ void
put_colours (
    const __grid_constant__ Arguments a, const __grid_constant__ Put put)
{
  uint32_t x = blockIdx.x * THREADS + threadIdx.x;
  uint32_t largest = 0, n_clipped = 0;

  if (x < a.plan.width)
    put_pixel<Sample> (a, put, x, blockIdx.y, largest, n_clipped);
  add_seen (a.seen, largest, n_clipped);
}

ImkStatus
imk_photostereo_cuda_put (
    const Arguments *a, const Put *put, cudaStream_t stream, ImkError *error)
{
  bool u8 = a->plan.type == IMK_TYPE_U8;
  bool grey = a->plan.n_planes == a->plan.bands;
  cudaLaunchConfig_t launch =
      grey ? launch_of (store_pixels (*a) / (u8 ? 4 : 2) + 1, 1, stream)
           : launch_of (a->plan.width, a->n_rows, stream);
  void (*kernel) (const Arguments, const Put) =
      grey ? (u8 ? put_grey<uint8_t> : put_grey<uint16_t>)
           : (u8 ? put_colours<uint8_t> : put_colours<uint16_t>);

  return IMK_CUDA_LAUNCH (error, launch, kernel, *a, *put);
}
