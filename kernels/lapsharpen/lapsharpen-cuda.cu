/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two kernels. sharpen_bytes () is the plain case on bytes at the speed of
 * memory: 16 bytes a thread, four bytes in two registers of two 16-bit lanes.
 * sharpen_any () takes a pixel a thread through all options. */
#include "lapsharpen/lapsharpen-backend.h"

#include <new>

#include "core/cuda-check.h"
#include "lapsharpen/lapsharpen-sample.h"

extern "C" const ImkLapsharpenBackend imk_lapsharpen_cuda;

enum {
  WARP = 32,
  BLOCK_ROWS = 8,  /* warps a block, one above the other */
  THREAD_ROWS = 4, /* rows a thread */
  TILE_ROWS = BLOCK_ROWS * THREAD_ROWS,
  THREAD_BYTES = 16, /* bytes a thread of one row: the widest load */
};

/* An image inside a kernel. */
struct View {
  uint8_t *data;
  size_t stride;
};

static View
view_of (const ImkImage *image)
{
  return View{(uint8_t *) image->data, image->stride};
}

/* --- the plain case on bytes ------------------------------------------------
 */

/* What sharpen_bytes () reads; all of it made from the rule. */
struct Bytes {
  uint8_t *in, *out;
  uint32_t in_stride, out_stride; /* 32 bits make addresses cheap */
  int row_size;                   /* bytes */
  int height;
  int channels;
  int before, after; /* bytes at which the pixels stand that count as
                      * the ones left and right of the row */
  int above, below;  /* likewise the rows */
  bool constant;     /* the border is border_word instead */
  uint32_t border_word;
  uint32_t amount, centre; /* s and 1 + k s */
  uint32_t left, right;    /* __byte_perm selectors of a pixel's distance */
  uint32_t filtered[3];    /* 0xff where a byte is sharpened, by word phase */
};

/* The 16 bytes of a thread in one row, with the word before and the word
 * after. */
struct Words {
  uint32_t w[6];
};

/* Where a thread reads. The first and the last lane also read the word beyond
 * the warp, at @end; the others get it from the lane beside them. */
struct Place {
  int x, top; /* byte and row of the first one to write */
  int end;
  bool inside;     /* all 16 bytes are in the row */
  bool reads_end;  /* first or last lane */
  bool end_inside; /* and all 4 bytes of the word are in the row */
};

static __device__ Place
get_place (const Bytes &b)
{
  const int lane = threadIdx.x;
  Place p;

  p.x = (blockIdx.x * WARP + lane) * THREAD_BYTES;
  p.top = (blockIdx.y * BLOCK_ROWS + threadIdx.y) * THREAD_ROWS;
  p.end = lane == 0 ? p.x - 4 : p.x + THREAD_BYTES;
  p.inside = p.x + THREAD_BYTES <= b.row_size;
  p.reads_end = lane == 0 || lane == WARP - 1;
  p.end_inside = p.reads_end && p.end >= 0 && p.end + 4 <= b.row_size;
  return p;
}

/* Row @r of those that a thread reads, 0 the one above the first it writes. */
static __device__ const uint8_t *
get_row (const Bytes &b, const Place &p, int r)
{
  int y = p.top + r - 1;

  y = y < 0 ? b.above : y >= b.height ? b.below : y;
  return b.in + (uint64_t) (uint32_t) y * b.in_stride;
}

template <int UNIT>
static __device__ void
load_row (const Bytes &b, const Place &p, int r, Words *words)
{
  const uint8_t *row = get_row (b, p, r);
  uint4 v = {};
  uint32_t end = 0;

  if (p.inside && UNIT == THREAD_BYTES)
    v = __ldg ((const uint4 *) (row + p.x));
  if (p.inside && UNIT == 4) {
    const uint32_t *w = (const uint32_t *) (row + p.x);

    v = make_uint4 (__ldg (w), __ldg (w + 1), __ldg (w + 2), __ldg (w + 3));
  }
  if (p.end_inside)
    end = __ldg ((const uint32_t *) (row + p.end));
  *words = Words{{end, v.x, v.y, v.z, v.w, end}};
}

/* Any 4 bytes of a row and its border, one by one. */
static __device__ uint32_t
gather_word (const Bytes &b, const uint8_t *row, int first)
{
  uint32_t word = 0;

#pragma unroll 1 /* it is inlined for every word */
  for (int i = first + 3; i >= first; i--) {
    bool outside = i < 0 || i >= b.row_size;
    int at = i < 0             ? b.before + b.channels + i
             : i >= b.row_size ? b.after + i - b.row_size
                               : i;
    uint32_t byte = b.border_word & 0xff;

    /* Further out than a pixel nobody looks: any byte inside will do. */
    at = max (0, min (at, b.row_size - 1));
    if (!(b.constant && outside))
      byte = row[at];
    word = word << 8 | byte;
  }
  return word;
}

/* What load_row () could not read whole. A thread just beyond the row takes
 * part: the last one in it gets its border from there. */
static __device__ void
patch_row (const Bytes &b, const Place &p, int r, Words *words)
{
  const uint8_t *row = get_row (b, p, r);
  const int y = p.top + r - 1;

  if (b.constant && (y < 0 || y >= b.height)) {
#pragma unroll
    for (int i = 0; i < 6; i++)
      words->w[i] = b.border_word;
    return;
  }
  if (!p.inside && p.x < b.row_size + 4) {
#pragma unroll
    for (int i = 0; i < 4; i++)
      words->w[1 + i] = gather_word (b, row, p.x + 4 * i);
  }
  if (p.reads_end && !p.end_inside)
    words->w[0] = words->w[5] = gather_word (b, row, p.end);
}

template <int UNIT>
static __device__ void
load_rows (const Bytes &b, const Place &p, Words rows[THREAD_ROWS + 2])
{
  const int lane = threadIdx.x;

  /* All loads before the first use, or each would wait for the one before. */
#pragma unroll
  for (int r = 0; r < THREAD_ROWS + 2; r++)
    load_row<UNIT> (b, p, r, &rows[r]);
  if (!p.inside || p.reads_end != p.end_inside ||
      (b.constant && (p.top == 0 || p.top + THREAD_ROWS >= b.height)))
#pragma unroll
    for (int r = 0; r < THREAD_ROWS + 2; r++)
      patch_row (b, p, r, &rows[r]);
#pragma unroll
  for (int r = 0; r < THREAD_ROWS + 2; r++) {
    uint32_t before = __shfl_up_sync (~0u, rows[r].w[4], 1);
    uint32_t after = __shfl_down_sync (~0u, rows[r].w[1], 1);

    rows[r].w[0] = lane == 0 ? rows[r].w[0] : before;
    rows[r].w[5] = lane == WARP - 1 ? rows[r].w[5] : after;
  }
}

/* The even or the odd bytes of a word, in two 16-bit lanes. */
template <int ODD>
static __device__ uint32_t
lanes (uint32_t word)
{
  return __byte_perm (word, 0, ODD ? 0x4341 : 0x4240);
}

/* The lanes of the bytes a pixel to the left and to the right of word @i. With
 * pixels of 4 bytes these are the words beside it. */
template <int ODD, bool PIXEL_IS_WORD>
static __device__ uint32_t
left_lanes (const Bytes &b, const Words &words, int i)
{
  return lanes<ODD> (PIXEL_IS_WORD
                         ? words.w[i - 1]
                         : __byte_perm (words.w[i - 1], words.w[i], b.left));
}

template <int ODD, bool PIXEL_IS_WORD>
static __device__ uint32_t
right_lanes (const Bytes &b, const Words &words, int i)
{
  return lanes<ODD> (PIXEL_IS_WORD
                         ? words.w[i + 1]
                         : __byte_perm (words.w[i], words.w[i + 1], b.right));
}

/* clamp (t, 0, 255) in both lanes, which hold 0x8000 + t. */
static __device__ uint32_t
clamp_lanes (uint32_t lanes)
{
#if __CUDA_ARCH__ >= 900
  return __viaddmin_s16x2_relu (lanes, 0x80008000, 0x00ff00ff);
#else
  /* Before Hopper that is emulated, slowly. Here bit 15 becomes a mask of its
   * lane, first where t >= 0, then where t >= 256. */
  uint32_t positive, large;

  asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(positive) : "r"(lanes));
  lanes &= positive & 0x7fff7fff;
  asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(large) : "r"(lanes + 0x7f007f00));
  return (lanes | large) & 0x00ff00ff;
#endif
}

/* clamp (centre v - amount sum) of half the bytes of word @i. The lanes are
 * added as one number: with 0x8000 more no lane borrows from the other, as
 * |t| <= (8 * 10 + 1) * 255. */
template <int ODD, int NEIGHBOURS, bool PIXEL_IS_WORD>
static __device__ uint32_t
sharpen_lanes (const Bytes &b, const Words &above, const Words &here,
    const Words &below, int i)
{
  uint32_t sum = lanes<ODD> (above.w[i]) + lanes<ODD> (below.w[i]) +
                 left_lanes<ODD, PIXEL_IS_WORD> (b, here, i) +
                 right_lanes<ODD, PIXEL_IS_WORD> (b, here, i);

  if (NEIGHBOURS == 8)
    sum += left_lanes<ODD, PIXEL_IS_WORD> (b, above, i) +
           right_lanes<ODD, PIXEL_IS_WORD> (b, above, i) +
           left_lanes<ODD, PIXEL_IS_WORD> (b, below, i) +
           right_lanes<ODD, PIXEL_IS_WORD> (b, below, i);

  return clamp_lanes (
      b.centre * lanes<ODD> (here.w[i]) + 0x80008000 - b.amount * sum);
}

template <int UNIT>
static __device__ void
store_own (const Bytes &b, int x, int y, const uint32_t w[4])
{
  uint8_t *out = b.out + (uint64_t) (uint32_t) y * b.out_stride + x;

  if (UNIT == THREAD_BYTES && x + THREAD_BYTES <= b.row_size) {
    *(uint4 *) out = make_uint4 (w[0], w[1], w[2], w[3]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (x + 4 * i + 4 <= b.row_size)
      ((uint32_t *) out)[i] = w[i];
    else
#pragma unroll 1
      for (int j = 0; j < b.row_size - (x + 4 * i); j++)
        out[4 * i + j] = (uint8_t) (w[i] >> 8 * j);
  }
}

template <int UNIT, int NEIGHBOURS, bool PIXEL_IS_WORD>
static __global__ void
__launch_bounds__ (WARP *BLOCK_ROWS)
    sharpen_bytes (const __grid_constant__ Bytes b)
{
  const Place p = get_place (b);
  uint32_t filtered[4];
  Words rows[THREAD_ROWS + 2];

  if (p.top >= b.height) /* all of a warp */
    return;
#pragma unroll
  for (int i = 0; i < 4; i++)
    filtered[i] = PIXEL_IS_WORD ? b.filtered[0] : b.filtered[(p.x / 4 + i) % 3];
  load_rows<UNIT> (b, p, rows);
#pragma unroll
  for (int r = 1; r <= THREAD_ROWS; r++) {
    uint32_t out[4];

#pragma unroll
    for (int i = 1; i <= 4; i++) {
      uint32_t even = sharpen_lanes<0, NEIGHBOURS, PIXEL_IS_WORD> (
          b, rows[r - 1], rows[r], rows[r + 1], i);
      uint32_t odd = sharpen_lanes<1, NEIGHBOURS, PIXEL_IS_WORD> (
          b, rows[r - 1], rows[r], rows[r + 1], i);
      uint32_t mask = filtered[i - 1];

      out[i - 1] =
          (__byte_perm (even, odd, 0x6240) & mask) | (rows[r].w[i] & ~mask);
    }
    if (p.x < b.row_size && p.top + r - 1 < b.height)
      store_own<UNIT> (b, p.x, p.top + r - 1, out);
  }
}

typedef void (*BytesKernel) (Bytes);

static BytesKernel
choose_bytes_kernel (int unit, uint32_t neighbours, bool pixel_is_word)
{
  if (unit == 16 && pixel_is_word)
    return neighbours == 4 ? sharpen_bytes<16, 4, true>
                           : sharpen_bytes<16, 8, true>;
  if (unit == 16)
    return neighbours == 4 ? sharpen_bytes<16, 4, false>
                           : sharpen_bytes<16, 8, false>;
  return neighbours == 4 ? sharpen_bytes<4, 4, false>
                         : sharpen_bytes<4, 8, false>;
}

/* Returns: the largest of 16 and 4 that divides the addresses of all rows, 0
 * for images that sharpen_bytes () cannot take */
static int
get_unit (const ImkImage *in, const ImkImage *out)
{
  uintptr_t bits = (uintptr_t) in->data | (uintptr_t) out->data;

  if ((in->stride | out->stride) > UINT32_MAX)
    return 0;
  if (in->height > 1)
    bits |= in->stride | out->stride;
  return bits % 16 == 0 ? 16 : bits % 4 == 0 ? 4 : 0;
}

static Bytes
make_bytes (
    const ImkLapsharpenRule *rule, const ImkImage *in, const ImkImage *out)
{
  const int width = (int) rule->width, height = (int) rule->height;
  const int channels = (int) rule->channels;
  Bytes b = {};

  b.in = (uint8_t *) in->data;
  b.out = (uint8_t *) out->data;
  b.in_stride = (uint32_t) in->stride;
  b.out_stride = (uint32_t) out->stride;
  b.row_size = width * channels;
  b.height = height;
  b.channels = channels;
  b.before = channels * imk_lapsharpen_inside (-1, width, rule->reflect101);
  b.after = channels * imk_lapsharpen_inside (width, width, rule->reflect101);
  b.above = imk_lapsharpen_inside (-1, height, rule->reflect101);
  b.below = imk_lapsharpen_inside (height, height, rule->reflect101);
  b.constant = rule->constant;
  b.border_word = rule->border_value * 0x01010101u;
  b.amount = (uint32_t) rule->amount;
  b.centre = 1 + rule->neighbours * b.amount;
  b.left = 0x7654 - 0x1111 * rule->channels;
  b.right = 0x3210 + 0x1111 * rule->channels;
  /* Words come in the same phase again after 1 or, for 3 channels, 3. */
  for (int i = 0; i < 12; i++)
    if (rule->filtered >> i % channels & 1)
      b.filtered[i / 4] |= 0xffu << i % 4 * 8;
  return b;
}

static ImkStatus
launch_bytes (const ImkLapsharpenRule *rule, const ImkImage *in,
    const ImkImage *out, int unit, cudaStream_t stream, ImkError *error)
{
  const Bytes b = make_bytes (rule, in, out);
  const BytesKernel kernel =
      choose_bytes_kernel (unit, rule->neighbours, rule->channels == 4);
  cudaLaunchConfig_t launch = {};

  launch.blockDim = dim3 (WARP, BLOCK_ROWS);
  launch.gridDim =
      dim3 (imk_div_up ((uint32_t) b.row_size, WARP * THREAD_BYTES),
          imk_div_up (rule->height, TILE_ROWS));
  launch.stream = stream;
  return IMK_CUDA_LAUNCH (error, launch, kernel, b);
}

/* --- all options ------------------------------------------------------------
 */

/* As ImkLapsharpenSums, in the type that atomics take. */
struct Sums {
  unsigned long long sum, square_low, square_high;
};

/* The samples of one channel in a 3x3 window, row by row. */
struct Window {
  int32_t v[9];
};

/* Returns: bit i set when sample i of a window is outside a constant border;
 * @offsets: where the others are, in bytes from the start of the image */
template <typename Sample>
static __device__ uint32_t
locate_window (const ImkLapsharpenRule &rule, const View &in, int x, int y,
    size_t offsets[9])
{
  const int width = rule.width, height = rule.height;
  uint32_t outside = 0;

#pragma unroll
  for (int i = 0; i < 9; i++) {
    int nx = x + i % 3 - 1, ny = y + i / 3 - 1;

    if (rule.constant && (nx < 0 || ny < 0 || nx >= width || ny >= height))
      outside |= 1u << i;
    nx = imk_lapsharpen_inside (nx, width, rule.reflect101);
    ny = imk_lapsharpen_inside (ny, height, rule.reflect101);
    offsets[i] = ny * in.stride + (size_t) nx * rule.channels * sizeof (Sample);
  }
  return outside;
}

template <typename Sample>
static __device__ Window
load_window (const ImkLapsharpenRule &rule, const View &in,
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
get_laplacian (const Window &w, uint32_t neighbours)
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
  }
  return imk_lapsharpen_sample (
      rule.amount, rule.threshold, rule.edges, l, w.v[4], low, high);
}

/* One pixel; adds its Laplacians to @sum and @squares. */
template <typename Sample>
static __device__ void
sharpen_pixel (const ImkLapsharpenRule &rule, const View &in, const View &out,
    int x, int y, long long *sum, unsigned long long *squares)
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
    int32_t laplacian = get_laplacian (w, rule.neighbours);
    float l = (float) laplacian;
    int32_t value = w.v[4];

    if (rule.measured >> channel & 1) {
      *sum += laplacian;
      *squares += (unsigned long long) ((long long) laplacian * laplacian);
    }
    if (rule.weight_channel >= 0)
      l = imk_lapsharpen_weighted (
          (double) get_numerator (w, weight, rule.neighbours), rule.maximum);
    if (rule.filtered >> channel & 1)
      value = sharpen_window (rule, w, l);
    to[channel] = (Sample) (value << rule.shift);
  }
}

/* Adds what all threads of a block found, with three atomics. */
static __device__ void
add_to_sums (long long sum, unsigned long long squares, Sums *sums)
{
  __shared__ Sums block;
  const bool first = threadIdx.x == 0 && threadIdx.y == 0;

  if (first)
    block = Sums{};
  __syncthreads ();
  for (int step = WARP / 2; step; step /= 2) {
    sum += __shfl_down_sync (~0u, sum, step);
    squares += __shfl_down_sync (~0u, squares, step);
  }
  if (threadIdx.x == 0) {
    atomicAdd (&block.sum, (unsigned long long) sum);
    atomicAdd (&block.square_low, squares); /* of a tile: below 2^50 */
  }
  __syncthreads ();
  if (first) {
    atomicAdd (&sums->sum, block.sum);
    atomicAdd (&sums->square_low, block.square_low & 0xffffffff);
    atomicAdd (&sums->square_high, block.square_low >> 32);
  }
}

template <typename Sample>
static __global__ void
__launch_bounds__ (WARP *BLOCK_ROWS)
    sharpen_any (const __grid_constant__ ImkLapsharpenRule rule, const View in,
        const View out, Sums *sums)
{
  const int x = blockIdx.x * WARP + threadIdx.x;
  const int top = blockIdx.y * TILE_ROWS + threadIdx.y;
  long long sum = 0;
  unsigned long long squares = 0;

  /* No return: all threads meet in add_to_sums (). */
#pragma unroll 1
  for (int y = top; y < top + TILE_ROWS; y += BLOCK_ROWS)
    if (x < (int) rule.width && y < (int) rule.height)
      sharpen_pixel<Sample> (rule, in, out, x, y, &sum, &squares);
  if (rule.measured)
    add_to_sums (sum, squares, sums);
}

static ImkStatus
launch_any (const ImkLapsharpenRule *rule, const ImkImage *in,
    const ImkImage *out, Sums *sums, cudaStream_t stream, ImkError *error)
{
  const auto kernel =
      in->type == IMK_TYPE_U8 ? sharpen_any<uint8_t> : sharpen_any<uint16_t>;
  cudaLaunchConfig_t launch = {};

  launch.blockDim = dim3 (WARP, BLOCK_ROWS);
  launch.gridDim = dim3 (
      imk_div_up (rule->width, WARP), imk_div_up (rule->height, TILE_ROWS));
  launch.stream = stream;
  return IMK_CUDA_LAUNCH (
      error, launch, kernel, *rule, view_of (in), view_of (out), sums);
}

/* --- the table --------------------------------------------------------------
 */

struct State {
  ImkLapsharpenRule rule;
  bool plain;
  Sums *device_sums;
  Sums *host_sums;  /* page-locked: filled in the order of the stream */
  cudaEvent_t done; /* the last measured frame */
};

static ImkStatus
cuda_update (void *state, const ImkLapsharpenConfig *config, ImkError *error)
{
  State *self = (State *) state;

  (void) error;
  self->rule = imk_lapsharpen_rule (config);
  self->plain = imk_lapsharpen_is_plain (&self->rule, config->type);
  return IMK_OK;
}

static void
cuda_destroy (void *state)
{
  State *self = (State *) state;

  cudaFree (self->device_sums); /* waits for kernels that use it */
  cudaFreeHost (self->host_sums);
  if (self->done)
    cudaEventDestroy (self->done);
  delete self;
}

static ImkStatus
allocate (State *self, ImkError *error)
{
  ImkStatus status = IMK_CUDA (
      error, cudaEventCreateWithFlags (&self->done, cudaEventDisableTiming));

  if (status == IMK_OK)
    status = IMK_CUDA (
        error, cudaMalloc ((void **) &self->device_sums, sizeof (Sums)));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaHostAlloc ((void **) &self->host_sums,
                                  sizeof (Sums), cudaHostAllocPortable));
  return status;
}

static ImkStatus
cuda_create (const ImkLapsharpenConfig *config, void **state, ImkError *error)
{
  State *self = new (std::nothrow) State{};
  ImkStatus status;

  if (!self)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for a CUDA sharpener.");
  status = allocate (self, error);
  if (status == IMK_OK)
    status = cuda_update (self, config, error);
  if (status == IMK_OK)
    *state = self;
  else
    cuda_destroy (self);
  return status;
}

/* A measured frame waits for the one before, which may run on another stream:
 * they share the sums. The others use nothing of the object, so that they may
 * be captured into a graph. */
static ImkStatus
launch_measured (State *self, const ImkImage *in, const ImkImage *out,
    cudaStream_t stream, ImkError *error)
{
  ImkStatus status =
      IMK_CUDA (error, cudaStreamWaitEvent (stream, self->done, 0));

  if (status == IMK_OK)
    status = IMK_CUDA (
        error, cudaMemsetAsync (self->device_sums, 0, sizeof (Sums), stream));
  if (status == IMK_OK)
    status =
        launch_any (&self->rule, in, out, self->device_sums, stream, error);
  if (status == IMK_OK)
    status =
        IMK_CUDA (error, cudaMemcpyAsync (self->host_sums, self->device_sums,
                             sizeof (Sums), cudaMemcpyDeviceToHost, stream));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaEventRecord (self->done, stream));
  return status;
}

static ImkStatus
cuda_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  State *self = (State *) state;
  const cudaStream_t s = (cudaStream_t) stream;
  const int unit = get_unit (in, out);

  if (self->rule.measured)
    return launch_measured (self, in, out, s, error);
  if (self->plain && unit)
    return launch_bytes (&self->rule, in, out, unit, s, error);
  return launch_any (&self->rule, in, out, nullptr, s, error);
}

static ImkStatus
cuda_get_sums (void *state, ImkLapsharpenSums *sums, ImkError *error)
{
  State *self = (State *) state;
  ImkStatus status = IMK_CUDA (error, cudaEventSynchronize (self->done));

  if (status == IMK_OK) {
    sums->sum = (int64_t) self->host_sums->sum;
    sums->square_low = self->host_sums->square_low;
    sums->square_high = self->host_sums->square_high;
  }
  return status;
}

const ImkLapsharpenBackend imk_lapsharpen_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .update = cuda_update,
    .process = cuda_process,
    .get_sums = cuda_get_sums,
    .destroy = cuda_destroy,
};
