/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels that sharpen. sharpen_bytes () is the plain case on bytes at
 * the speed of memory: 16 bytes a thread, four bytes in two registers of two
 * 16-bit lanes. sharpen_frame () reads likewise and has all options of the
 * Laplacian. sharpen_any () takes a pixel a thread, for what the others cannot:
 * contrast adaptive sharpening, kernels, odd addresses, weights in pixels of
 * less than 4 channels, and Gaussians whose samples need their neighbours
 * besides. The other Gaussians are in lapsharpen-narrow.cuh and
 * lapsharpen-smooth.cuh. */
#include "lapsharpen/lapsharpen-backend.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "core/cuda/cuda-check.h"
#include "core/cuda/instance.cuh"
#include "lapsharpen/cuda/lapsharpen-float.cuh"
#include "lapsharpen/cuda/lapsharpen-narrow.cuh"
#include "lapsharpen/cuda/lapsharpen-rows.cuh"
#include "lapsharpen/cuda/lapsharpen-samples.cuh"
#include "lapsharpen/cuda/lapsharpen-smooth.cuh"
#include "lapsharpen/cuda/lapsharpen-stage.cuh"

extern "C" const ImkFilterBackend imk_lapsharpen_cuda;

/* --- the plain case on bytes ------------------------------------------------
 */

/* What sharpen_bytes () reads; all of it made from the rule. */
struct Bytes {
  Frame frame;
  uint32_t less, centre; /* s = m / 2^q: -m and 2^q + k m */
  uint32_t fraction;     /* q */
  /* of both lanes: 0x8000 + 2^(q - 1), the bits that a shift by q leaves, and
   * minus what it leaves of 0x8000 */
  uint32_t offset, kept, rest;
  uint32_t filtered[THREAD_WORDS];
};

/* clamp (lane + rest, 0, 255) of both lanes. */
static __device__ uint32_t
clamp_lanes (uint32_t lanes, uint32_t rest)
{
#if __CUDA_ARCH__ >= 900
  return __viaddmin_s16x2_relu (lanes, rest, 0x00ff00ff);
#else
  /* Before Hopper that is emulated, slowly. Here lanes hold 0x8000 more, and
   * bit 15 becomes a mask of its lane, first where the sum is not negative,
   * then where it is 256 or more. */
  uint32_t positive, large;

  lanes += rest ^ 0x80008000;
  asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(positive) : "r"(lanes));
  lanes &= positive & 0x7fff7fff;
  asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(large) : "r"(lanes + 0x7f007f00));
  return (lanes | large) & 0x00ff00ff;
#endif
}

/* clamp ((centre v - m sum + 2^(q - 1)) >> q) of the bytes @i and @i + 2 of a
 * thread. The lanes are added as one number: with 0x8000 more no lane borrows
 * from the other, see imk_lapsharpen_find_fraction (). @FRACTION: q is not 0 */
template <int CHANNELS, int NEIGHBOURS, bool FRACTION>
static __device__ uint32_t
sharpen_lanes (const Bytes &b, const Words<1> &above, const Words<1> &here,
    const Words<1> &below, int i)
{
  uint32_t sum = get_lanes_at<uint8_t> (above, i) +
                 get_lanes_at<uint8_t> (below, i) +
                 get_lanes_beside<CHANNELS> (here, i);

  if (NEIGHBOURS == 8)
    sum += get_lanes_beside<CHANNELS> (above, i) +
           get_lanes_beside<CHANNELS> (below, i);
  sum = b.less * sum + (b.centre * get_lanes_at<uint8_t> (here, i) + b.offset);
  if (FRACTION)
    sum = sum >> b.fraction & b.kept;
  return clamp_lanes (sum, b.rest);
}

/* Of large frames as many blocks as possible share a multiprocessor; in small
 * ones a thread at the border needs its registers, see gather_words (). */
template <int CHANNELS, int NEIGHBOURS, bool FRACTION, int ROWS>
static __global__ void
__launch_bounds__ (WARP *BLOCK_WARPS, ROWS == SMALL_ROWS ? 1
                                      : NEIGHBOURS == 4  ? 8
                                                         : 6)
    sharpen_bytes (const __grid_constant__ Bytes b)
{
  const Place p = get_place<1> (b.frame, ROWS);
  Words<1> rows[ROWS + 2];

  if (p.top >= b.frame.height) /* all of a warp */
    return;
  load_rows<THREAD_BYTES, 1, ROWS + 2, 1, NEIGHBOURS == 8> (b.frame, p, rows);
#pragma unroll
  for (int r = 1; r <= ROWS; r++) {
    uint32_t out[THREAD_WORDS];

#pragma unroll
    for (int i = 0; i < THREAD_WORDS; i++) {
      uint32_t even = sharpen_lanes<CHANNELS, NEIGHBOURS, FRACTION> (
          b, rows[r - 1], rows[r], rows[r + 1], 4 * i);
      uint32_t odd = sharpen_lanes<CHANNELS, NEIGHBOURS, FRACTION> (
          b, rows[r - 1], rows[r], rows[r + 1], 4 * i + 1);
      uint32_t mask = get_mask<CHANNELS> (b.filtered, p.x, i);

      out[i] =
          (__byte_perm (even, odd, 0x6240) & mask) | (rows[r].w[1 + i] & ~mask);
    }
    if (p.x < b.frame.row_size && p.top + r - 1 < b.frame.height)
      store_words<THREAD_BYTES> (b.frame, p.x, p.top + r - 1, out);
  }
}

static Bytes
make_bytes (
    const ImkLapsharpenRule *rule, const ImkImage *in, const ImkImage *out)
{
  const uint32_t one = 1u << rule->fraction;
  Bytes b = {};

  b.frame = make_frame (rule, in, out);
  b.less = -rule->multiple;
  b.centre = one + rule->neighbours * rule->multiple;
  b.fraction = rule->fraction;
  b.offset = (0x8000u + one / 2) * 0x00010001u;
  b.kept = (0xffffu >> rule->fraction) * 0x00010001u;
  b.rest = (0x10000u - (0x8000u >> rule->fraction)) * 0x00010001u;
  make_mask (rule, IMK_TYPE_U8, rule->filtered, b.filtered);
  return b;
}

static ImkStatus
launch_bytes (const ImkLapsharpenRule *rule, const ImkImage *in,
    const ImkImage *out, cudaStream_t stream, ImkError *error)
{
  const Bytes b = make_bytes (rule, in, out);
  const int rows = is_large (&b.frame) ? LARGE_ROWS : SMALL_ROWS;
  const auto kernel = instance (
      [] (auto channels, auto neighbours, auto fraction, auto rows) {
        return sharpen_bytes<channels, neighbours, fraction, rows>;
      },
      OneOf<1, 2, 3, 4>{rule->channels}, OneOf<4, 8>{rule->neighbours},
      rule->fraction > 0, OneOf<LARGE_ROWS, SMALL_ROWS>{rows});
  const cudaLaunchConfig_t launch = get_rows_launch (&b.frame, rows, stream);

  return IMK_CUDA_LAUNCH (error, launch, kernel, b);
}

/* --- any image -------------------------------------------------------------
 */

enum {
  ANY_WARPS = 8, /* warps a block, one above the other */
  ANY_ROWS = 32, /* rows a block */
};

/* The samples of one channel in a 3x3 window, row by row. */
struct Window {
  int32_t v[9];
};

/* Returns: bit i set when sample i of a window is outside a constant border;
 * @offsets: where the others are, in bytes from the start of the image */
template <typename Sample>
static __device__ uint32_t
locate_window (const ImkLapsharpenRule &rule, const Pixels &in, int x, int y,
    size_t offsets[9])
{
  const int width = rule.width, height = rule.height;
  uint32_t outside = 0;

#pragma unroll
  for (int i = 0; i < 9; i++) {
    int nx = x + i % 3 - 1, ny = y + i / 3 - 1;

    if (rule.constant && (nx < 0 || ny < 0 || nx >= width || ny >= height))
      outside |= 1u << i;
    nx = imk_lapsharpen_inside (nx, width, &rule);
    ny = imk_lapsharpen_inside (ny, height, &rule);
    offsets[i] = ny * in.stride + (size_t) nx * rule.channels * sizeof (Sample);
  }
  return outside;
}

template <typename Sample>
static __device__ Window
load_window (const ImkLapsharpenRule &rule, const Pixels &in,
    const size_t offsets[9], uint32_t outside, int channel)
{
  Window w;

#pragma unroll
  for (int i = 0; i < 9; i++) {
    const Sample *pixel = (const Sample *) (in.data + offsets[i]);

    w.v[i] = outside >> i & 1
                 ? (int32_t) rule.border_value
                 : (int32_t) (__ldg (pixel + channel) >> rule.shift);
  }
  return w;
}

static __device__ int32_t
get_window_laplacian (const Window &w, uint32_t neighbours)
{
  int32_t l = 4 * w.v[4] - w.v[1] - w.v[3] - w.v[5] - w.v[7];

  if (neighbours == 8)
    l += 4 * w.v[4] - w.v[0] - w.v[2] - w.v[6] - w.v[8];
  return l;
}

static __device__ int64_t
get_numerator (const Window &w, const Window &weight, uint32_t neighbours)
{
  int64_t sum = 0;

#pragma unroll
  for (int i = 0; i < 9; i++)
    if (i % 2 || neighbours == 8)
      sum += (int64_t) weight.v[i] * (w.v[4] - w.v[i]);
  return sum;
}

static __device__ float
get_window_gain (const Window &w, uint32_t maximum)
{
  int32_t cross_low = w.v[4], cross_high = w.v[4], low, high;

#pragma unroll
  for (int i = 1; i < 9; i += 2) {
    cross_low = min (cross_low, w.v[i]);
    cross_high = max (cross_high, w.v[i]);
  }
  low = cross_low;
  high = cross_high;
#pragma unroll
  for (int i = 0; i < 9; i += 2) {
    low = min (low, w.v[i]);
    high = max (high, w.v[i]);
  }
  return imk_lapsharpen_gain (
      cross_low + low, cross_high + high, (int32_t) maximum);
}

/* What the kernel makes of a sample; row by row, as on the CPU. */
template <typename Sample>
static __device__ float
correlate (
    const ImkLapsharpenRule &rule, const Pixels &in, int x, int y, int channel)
{
  const int width = rule.width, height = rule.height;
  const int size = rule.kernel_size, reach = rule.reach;
  float sum = 0;

  for (int dy = 0; dy < size; dy++)
    for (int dx = 0; dx < size; dx++) {
      const int nx = x + dx - reach, ny = y + dy - reach;
      const bool outside = nx < 0 || ny < 0 || nx >= width || ny >= height;
      const Sample *row =
          (const Sample *) (in.data + in.stride * imk_lapsharpen_inside (
                                                      ny, height, &rule));
      const int at =
          imk_lapsharpen_inside (nx, width, &rule) * (int) rule.channels +
          channel;
      const uint32_t v = outside && rule.constant
                             ? rule.border_value
                             : (uint32_t) __ldg (row + at) >> rule.shift;

      sum += rule.kernel[dy * size + dx] * (float) v;
    }
  return sum;
}

/* @l: what the kernel makes of the sample, where there is one, else L */
static __device__ int32_t
sharpen_window (const ImkLapsharpenRule &rule, const Window &w, float l)
{
  int32_t low = 0, high = (int32_t) rule.maximum;

  if (rule.local) {
    low = high = w.v[4];
#pragma unroll
    for (int i = 0; i < 9; i++) {
      low = min (low, w.v[i]);
      high = max (high, w.v[i]);
    }
    low = max (low - (int32_t) rule.halo_dark, 0);
    high = min (high + (int32_t) rule.halo_bright, (int32_t) rule.maximum);
  }
  if (rule.kernel_size)
    return imk_lapsharpen_correlated (&rule, l, w.v[4], low, high);
  return imk_lapsharpen_sample (
      rule.amount, rule.threshold, rule.soft, rule.edges, l, w.v[4], low, high);
}

/* One pixel; adds its Laplacians to @sum and @squares. */
template <typename Sample>
static __device__ void
sharpen_pixel (const ImkLapsharpenRule &rule, const Pixels &in,
    const Pixels &out, const Low &low, int x, int y, long long *sum,
    unsigned long long *squares)
{
  Sample *to = (Sample *) (out.data + (size_t) y * out.stride) +
               (size_t) x * rule.channels;
  size_t offsets[9];
  uint32_t outside = locate_window<Sample> (rule, in, x, y, offsets);
  Window weight = {};

  if (rule.weight_channel >= 0)
    weight =
        load_window<Sample> (rule, in, offsets, outside, rule.weight_channel);
  for (int channel = 0; channel < (int) rule.channels; channel++) {
    Window w = load_window<Sample> (rule, in, offsets, outside, channel);
    int32_t laplacian = get_window_laplacian (w, rule.neighbours);
    float l = (float) laplacian;
    int32_t value = w.v[4];

    if (rule.measured >> channel & 1) {
      *sum += laplacian;
      *squares += (unsigned long long) ((long long) laplacian * laplacian);
    }
    if (rule.smooth.step)
      l = get_detail (rule, low, x, y, channel, w.v[4]);
    else if (rule.weight_channel >= 0)
      l = imk_lapsharpen_weighted (
          (double) get_numerator (w, weight, rule.neighbours), rule.maximum);
    if (rule.kernel_size)
      l = correlate<Sample> (rule, in, x, y, channel);
    if (rule.adaptive)
      l = l * get_window_gain (w, rule.maximum);
    if (rule.filtered >> channel & 1)
      value = sharpen_window (rule, w, l);
    if (rule.limited)
      value = imk_lapsharpen_limited (&rule, w.v[4], value, channel);
    to[channel] = (Sample) (value << rule.shift);
  }
}

template <typename Sample>
static __global__ void
__launch_bounds__ (WARP *ANY_WARPS)
    sharpen_any (const __grid_constant__ ImkLapsharpenRule rule,
        const Pixels in, const Pixels out, const Low low, Sums *sums)
{
  const int x = blockIdx.x * WARP + threadIdx.x;
  const int top = blockIdx.y * ANY_ROWS + threadIdx.y;
  long long sum = 0;
  unsigned long long squares = 0;

  /* No return: all threads meet in add_to_sums (). */
#pragma unroll 1
  for (int y = top; y < top + ANY_ROWS; y += ANY_WARPS)
    if (x < (int) rule.width && y < (int) rule.height)
      sharpen_pixel<Sample> (rule, in, out, low, x, y, &sum, &squares);
  if (rule.measured)
    add_to_sums (sum, squares, sums);
}

static ImkStatus
launch_any (const ImkLapsharpenRule *rule, const ImkImage *in,
    const ImkImage *out, const Low &low, Sums *sums, cudaStream_t stream,
    ImkError *error)
{
  const auto kernel =
      in->type == IMK_TYPE_U8 ? sharpen_any<uint8_t> : sharpen_any<uint16_t>;
  cudaLaunchConfig_t launch = grid (dim3 (imk_div_up (rule->width, WARP),
                                        imk_div_up (rule->height, ANY_ROWS)),
      dim3 (WARP, ANY_WARPS), stream);

  return IMK_CUDA_LAUNCH (
      error, launch, kernel, *rule, pixels_of (in), pixels_of (out), low, sums);
}

/* --- the table --------------------------------------------------------------
 */

enum { FOCUS, NOISE, N_SUMS };

struct State {
  ImkLapsharpenRule rule;
  bool plain;
  Sums *device_sums; /* N_SUMS */
  Sums *host_sums;   /* page-locked: filled in the order of the stream */
  float *low;        /* for smoothing; low_size floats */
  size_t low_size;
  cudaEvent_t done; /* the last frame that used this memory */

  uint8_t *mask;
  uint16_t *decode, *encode;
  uint16_t *host_decode; /* the same for cuda_update () */
  bool staged;
  ImkLapsharpenStage stage;
  ImkImage unpacked, sharpened; /* for staged */
  bool is_float;
  Floats floats; /* for is_float */
};

static ImkStatus
cuda_update (void *state, const void *params, ImkError *error)
{
  State *self = (State *) state;
  const ImkLapsharpenConfig *given = (const ImkLapsharpenConfig *) params;
  const ImkLapsharpenStage stage =
      imk_lapsharpen_stage (given, self->decode, self->encode);
  ImkLapsharpenConfig config = *given;
  ImkLapsharpenRule rule;
  size_t size;

  if (self->staged)
    config = imk_lapsharpen_inner (given, &stage, self->host_decode);
  rule = imk_lapsharpen_rule (&config);
  if (self->is_float) {
    const ImkStatus status = floats_update (&self->floats, &rule, error);

    self->rule = status == IMK_OK ? rule : self->rule;
    return status;
  }
  size = rule.smooth.step ? get_low_size (&rule) : 0;
  if (size > self->low_size) {
    float *low = nullptr;
    ImkStatus status =
        IMK_CUDA (error, cudaMalloc ((void **) &low, size * sizeof (float)));

    if (status != IMK_OK)
      return status;
    cudaFree (self->low); /* waits for kernels that use it */
    self->low = low;
    self->low_size = size;
  }
  self->rule = rule;
  self->stage = stage;
  self->plain = imk_lapsharpen_is_plain (&self->rule, config.type) &&
                !self->rule.local && !self->rule.limited;
  return IMK_OK;
}

static void
cuda_destroy (void *state)
{
  State *self = (State *) state;

  floats_clear (&self->floats);
  cudaFree (self->low);
  cudaFree (self->device_sums); /* waits for kernels that use it */
  cudaFree (self->mask);
  cudaFree (self->decode);
  cudaFree (self->encode);
  cudaFree (self->unpacked.data);
  cudaFree (self->sharpened.data);
  cudaFreeHost (self->host_sums);
  if (self->done)
    cudaEventDestroy (self->done);
  free (self->host_decode);
  delete self;
}

/* Copies @size bytes to the device, or none of no address. */
static ImkStatus
upload (const void *bytes, size_t size, void **copy, ImkError *error)
{
  ImkStatus status;

  if (!bytes)
    return IMK_OK;
  status = IMK_CUDA (error, cudaMalloc (copy, size));
  return status != IMK_OK ? status
                          : IMK_CUDA (error, cudaMemcpy (*copy, bytes, size,
                                                 cudaMemcpyHostToDevice));
}

static ImkStatus
make_image (const ImkLapsharpenConfig *c, ImkImage *image, ImkError *error)
{
  image->width = c->width;
  image->height = c->height;
  image->channels = c->channels;
  image->type = IMK_TYPE_U16;
  image->stride = (imk_image_row_size (image) + 15) / 16 * 16; /* get_unit () */
  image->location = IMK_LOCATION_DEVICE;
  return IMK_CUDA (
      error, cudaMalloc (&image->data, image->stride * image->height));
}

/* What the plan has pointers to, and what packing needs. */
static ImkStatus
allocate_plan (State *self, const ImkLapsharpenConfig *c, ImkError *error)
{
  ImkStatus status = upload (
      c->mask, (size_t) c->width * c->height, (void **) &self->mask, error);

  if (status == IMK_OK)
    status = upload (c->decode, sizeof (*c->decode) << c->depth,
        (void **) &self->decode, error);
  if (status == IMK_OK)
    status =
        upload (c->encode, sizeof (*c->encode) * (IMK_LAPSHARPEN_WHITE + 1),
            (void **) &self->encode, error);
  self->staged = imk_lapsharpen_is_staged (c);
  if (status == IMK_OK && c->decode) {
    self->host_decode = (uint16_t *) malloc (sizeof (*c->decode) << c->depth);
    if (!self->host_decode)
      return imk_error_set (error, IMK_ERROR_MEMORY,
          "There is no memory for the tables of a CUDA sharpener.");
    memcpy (self->host_decode, c->decode, sizeof (*c->decode) << c->depth);
  }
  self->is_float = c->type == IMK_TYPE_F32;
  if (status == IMK_OK && self->is_float)
    status = floats_init (&self->floats, c->height, error);
  if (status == IMK_OK && self->staged)
    status = make_image (c, &self->unpacked, error);
  if (status == IMK_OK && self->staged)
    status = make_image (c, &self->sharpened, error);
  return status;
}

static ImkStatus
allocate (State *self, ImkError *error)
{
  ImkStatus status = IMK_CUDA (
      error, cudaEventCreateWithFlags (&self->done, cudaEventDisableTiming));

  if (status == IMK_OK)
    status = IMK_CUDA (error,
        cudaMalloc ((void **) &self->device_sums, N_SUMS * sizeof (Sums)));
  if (status == IMK_OK)
    status =
        IMK_CUDA (error, cudaHostAlloc ((void **) &self->host_sums,
                             N_SUMS * sizeof (Sums), cudaHostAllocPortable));
  return status;
}

static ImkStatus
cuda_create (const void *plan, const void *params, uint32_t n_threads,
    void **state, ImkError *error)
{
  State *self = new (std::nothrow) State{};
  ImkStatus status;

  if (!self)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for a CUDA sharpener.");
  status = allocate (self, error);
  if (status == IMK_OK)
    status = allocate_plan (self, (const ImkLapsharpenConfig *) plan, error);
  if (status == IMK_OK)
    status = cuda_update (self, params, error);
  if (status == IMK_OK)
    *state = self;
  else
    cuda_destroy (self);
  return status;
}

/* --- a frame ----------------------------------------------------------------
 */

/* @sums: for a measured frame */
static ImkStatus
launch_filter (const State *self, const ImkLapsharpenRule *rule,
    const ImkImage *in, const ImkImage *out, Sums *sums, cudaStream_t stream,
    ImkError *error)
{
  const int unit = get_unit (in, out);

  if (is_narrow (rule, in, out))
    return launch_narrow (rule, in, out, stream, error);
  if (rule->smooth.step && is_for_smooth (rule))
    return launch_smooth (rule, in, out, self->low, stream, error);
  if (rule->smooth.step) {
    const Low low = make_low (rule, EVERY, self->low);
    const ImkStatus status = launch_low (rule, in, low, stream, error);

    return status != IMK_OK
               ? status
               : launch_any (rule, in, out, low, sums, stream, error);
  }
  if (self->plain && unit == 16)
    return launch_bytes (rule, in, out, stream, error);
  if (unit && !rule->adaptive && !rule->kernel_size &&
      is_for_samples (rule, in->type))
    return launch_samples (rule, in, out, unit, sums, stream, error);
  return launch_any (rule, in, out, Low{}, sums, stream, error);
}

/* Waits for the noise of a frame, and sets the threshold of @rule. */
static ImkStatus
find_threshold (State *self, ImkLapsharpenRule *rule, const ImkImage *in,
    cudaStream_t stream, ImkError *error)
{
  Sums *device = &self->device_sums[NOISE], *host = &self->host_sums[NOISE];
  ImkStatus status =
      IMK_CUDA (error, cudaMemsetAsync (device, 0, sizeof (Sums), stream));

  if (status == IMK_OK)
    status = launch_noise (rule, in, device, stream, error);
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaMemcpyAsync (host, device, sizeof (Sums),
                                  cudaMemcpyDeviceToHost, stream));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaStreamSynchronize (stream));
  if (status == IMK_OK)
    rule->threshold =
        (float) (rule->per_sigma * imk_lapsharpen_noise (rule, host->sum));
  return status;
}

static ImkStatus
launch_frame (State *self, const ImkImage *in, const ImkImage *out, Sums *sums,
    cudaStream_t stream, ImkError *error)
{
  ImkLapsharpenRule rule = self->rule;
  ImkStatus status = IMK_OK;

  if (rule.per_sigma > 0 && rule.noisy)
    status = find_threshold (self, &rule, in, stream, error);
  if (status == IMK_OK)
    status = launch_filter (self, &rule, in, out, sums, stream, error);
  if (status == IMK_OK && (self->mask || rule.n_areas))
    status = launch_restore (&rule, self->mask, in, out, stream, error);
  return status;
}

static ImkStatus
launch_staged (State *self, const ImkImage *in, const ImkImage *out, Sums *sums,
    cudaStream_t stream, ImkError *error)
{
  const Pixels unpacked = pixels_of (&self->unpacked);
  const Pixels sharpened = pixels_of (&self->sharpened);
  cudaLaunchConfig_t launch = get_pixel_launch (in->width, in->height, stream);
  ImkStatus status = IMK_CUDA_LAUNCH (error, launch, unpack_frame, self->stage,
      in->width, in->height, pixels_of (in), unpacked);

  if (status == IMK_OK)
    status = launch_frame (
        self, &self->unpacked, &self->sharpened, sums, stream, error);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, launch, pack_frame, self->stage, in->width,
        in->height, pixels_of (in), sharpened, pixels_of (out));
  return status;
}

/* A frame that uses memory of the object waits for the one before, which may
 * run on another stream. The others use nothing of it that changes, so that
 * they may be captured into a graph. */
static ImkStatus
launch_in_turn (State *self, const ImkImage *in, const ImkImage *out,
    cudaStream_t stream, ImkError *error)
{
  Sums *sums = &self->device_sums[FOCUS];
  ImkStatus status =
      IMK_CUDA (error, cudaStreamWaitEvent (stream, self->done, 0));

  if (status == IMK_OK && self->rule.measured)
    status = IMK_CUDA (error, cudaMemsetAsync (sums, 0, sizeof (Sums), stream));
  if (status == IMK_OK)
    status = self->staged ? launch_staged (self, in, out, sums, stream, error)
                          : launch_frame (self, in, out, sums, stream, error);
  if (status == IMK_OK && self->rule.measured)
    status =
        IMK_CUDA (error, cudaMemcpyAsync (&self->host_sums[FOCUS], sums,
                             sizeof (Sums), cudaMemcpyDeviceToHost, stream));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaEventRecord (self->done, stream));
  return status;
}

/* The same for float32, which always uses memory of the object. */
static ImkStatus
launch_floats_in_turn (State *self, const ImkImage *in, const ImkImage *out,
    cudaStream_t stream, ImkError *error)
{
  ImkStatus status =
      IMK_CUDA (error, cudaStreamWaitEvent (stream, self->done, 0));

  if (status == IMK_OK)
    status = floats_launch (
        &self->floats, &self->rule, self->mask, in, out, stream, error);
  return status != IMK_OK
             ? status
             : IMK_CUDA (error, cudaEventRecord (self->done, stream));
}

static ImkStatus
cuda_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  State *self = (State *) state;
  const cudaStream_t s = (cudaStream_t) stream;

  if (self->is_float)
    return launch_floats_in_turn (self, in, out, s, error);
  if (self->rule.measured || self->rule.smooth.step || self->staged ||
      self->rule.per_sigma > 0)
    return launch_in_turn (self, in, out, s, error);
  return launch_frame (self, in, out, nullptr, s, error);
}

static ImkStatus
cuda_get_result (void *state, void *result, ImkError *error)
{
  ImkLapsharpenSums *sums = (ImkLapsharpenSums *) result;
  State *self = (State *) state;
  ImkStatus status = IMK_CUDA (error, cudaEventSynchronize (self->done));

  if (status == IMK_OK && self->is_float) {
    sums->moments =
        imk_lapsharpen_add_moments (self->floats.host_rows, self->rule.height);
  } else if (status == IMK_OK) {
    sums->sum = (int64_t) self->host_sums[FOCUS].sum;
    sums->square_low = self->host_sums[FOCUS].square_low;
    sums->square_high = self->host_sums[FOCUS].square_high;
  }
  return status;
}

const ImkFilterBackend imk_lapsharpen_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .params_size = sizeof (ImkLapsharpenConfig),
    .n_inputs = 1,
    .n_outputs = 1,
    .create = cuda_create,
    .update = cuda_update,
    .process = cuda_process,
    .get_result = cuda_get_result,
    .destroy = cuda_destroy,
};
