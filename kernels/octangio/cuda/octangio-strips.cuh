/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Methods of pairs in one kernel (compute capability 9.0). A block has a strip
 * of A-scans, and those beside it that its windows need. Groups of its threads
 * take an A-scan each, and then one more: the device copies the second one to
 * shared memory while the first is computed. S and E stay there, until all of
 * the strip are known. Only B-scans and flow pass global memory; mean powers
 * pass it if something needs them. */
#pragma once

#include "core/cuda/bulk-copy.cuh"
#include "octangio/cuda/octangio-pairs.cuh"

enum {
  STRIP_REPEATS = 4,
  STRIP_PAIRS = STRIP_REPEATS - 1,
  STRIP_DEPTHS = 1024,
  STRIP_ASCANS = 8, /* at most: 32 bytes of a row of the flow */
  STRIP_WINDOW = 3, /* at most, either way */
  STRIP_ROWS = STRIP_ASCANS + STRIP_WINDOW - 1,
  STRIP_GROUPS = STRIP_ROWS / 2,
  GROUP_THREADS = STRIP_DEPTHS / IMK_OCTANGIO_BULK_DEPTHS, /* a sum each */
  SLOTS = IMK_OCTANGIO_BULK_DEPTHS / 2, /* twice two depths of a thread */
  WINDOW_DEPTHS = 60, /* of a warp, which has two more on either side */
};

struct Row { /* of S and E, before that of the sums for the bulk motion */
  union {
    float2 s[STRIP_DEPTHS];
    float bulk[2 * STRIP_PAIRS][GROUP_THREADS];
  };
  float e[STRIP_DEPTHS];
};

struct Strip {
  union { /* samples of a group's A-scan; S and E of its second one */
    float4 samples[STRIP_REPEATS][STRIP_DEPTHS / 2];
    Row second;
  } stages[STRIP_GROUPS];
  Row rows[STRIP_GROUPS]; /* of first ones */
  float2 turns[STRIP_GROUPS][STRIP_PAIRS];
  CopyBarrier arrived[STRIP_ROWS]; /* each used once */
};

/* A-scans of a block, and how many of them a group of threads takes. */
struct StripRange {
  uint32_t first, end; /* of the flow */
  uint32_t from, n_rows, n_groups;
};

static __device__ __forceinline__ StripRange
strip_range (const Arguments &a)
{
  StripRange s;

  s.first = blockIdx.x * a.strip;
  s.end = min (s.first + a.strip, a.n_ascans);
  s.from = s.first - min (s.first, (a.lateral - 1) / 2);
  s.n_rows = min (s.end + a.lateral / 2, a.n_ascans) - s.from;
  s.n_groups = blockDim.x / GROUP_THREADS;
  return s;
}

static __device__ __forceinline__ Row &
row_of (Strip &strip, const StripRange &range, uint32_t i)
{
  return i < range.n_groups ? strip.rows[i]
                            : strip.stages[i - range.n_groups].second;
}

/* Whether the device copies rows on its own; else threads load what they need.
 */
static __device__ __forceinline__ bool
copies_rows (const Arguments &a)
{
#if __CUDA_ARCH__ >= 900
  return a.is_wide && a.n_depths % 2 == 0;
#else
  return false;
#endif
}

/* Begins to copy row @i. By one thread. */
static __device__ __forceinline__ void
begin_row (
    const Arguments &a, const StripRange &range, Strip &strip, uint32_t i)
{
  uint32_t size = a.n_depths * (uint32_t) sizeof (float2);

  if (!copies_rows (a))
    return;
  expect_bytes (&strip.arrived[i], a.n_repeats * size);
  for (uint32_t r = 0; r < a.n_repeats; r++)
    copy_bulk (strip.stages[i % range.n_groups].samples[r],
        address_of (a, r, range.from + i, 0), size, &strip.arrived[i]);
}

/* Of the threads of a group. */
static __device__ __forceinline__ void
wait_for_group (uint32_t group)
{
  asm volatile("bar.sync %0, %1;"
               :
               : "r"(group + 1), "r"((uint32_t) GROUP_THREADS)
               : "memory");
}

/* Which two of its depths a thread has in a slot: neighbours begin with others,
 * so that a warp accesses all banks. */
static __device__ __forceinline__ uint32_t
slot_depth (uint32_t slot)
{
  uint32_t t = threadIdx.x % GROUP_THREADS;

  return IMK_OCTANGIO_BULK_DEPTHS * t + 2 * ((slot + t / 2) % SLOTS);
}

/* The products of two depths, and E. Returns: the sum of their powers */
static __device__ __forceinline__ float2
multiply_slot (const Arguments &a, float4 v[STRIP_REPEATS],
    float4 products[STRIP_PAIRS], float2 *energy)
{
  float2 power[STRIP_REPEATS], sum = make_float2 (0, 0);

#pragma unroll
  for (uint32_t r = 0; r < STRIP_REPEATS; r++) {
    power[r] =
        make_float2 (power_of (first_of (v[r])), power_of (second_of (v[r])));
    sum = make_float2 (sum.x + power[r].x, sum.y + power[r].y);
  }
#pragma unroll
  for (uint32_t k = 0; k < STRIP_PAIRS; k++)
    products[k] = products_of (v[k], v[k + 1]);
  /* but for those at the ends, each repeat is in two pairs */
  *energy = sum;
#pragma unroll
  for (uint32_t r = 0; r < STRIP_REPEATS; r++)
    if (r == 0 || r + 1 == a.n_repeats)
      *energy = make_float2 (__fmaf_rn (-0.5f, power[r].x, energy->x),
          __fmaf_rn (-0.5f, power[r].y, energy->y));
  return sum;
}

/* cos and sin of the bulk motion, as find_bulk (), of four sums a lane. */
static __device__ __forceinline__ float2
find_row_bulk (const float *re, const float *im)
{
  constexpr uint32_t OWN = GROUP_THREADS / 32;
  uint32_t lane = threadIdx.x % 32;
  float2 v[OWN], unit[OWN];
  float largest = 0, scale;

#pragma unroll
  for (uint32_t i = 0; i < OWN; i++) {
    v[i] = make_float2 (re[lane + 32 * i], im[lane + 32 * i]);
    largest = fmaxf (largest, fmaxf (fabsf (v[i].x), fabsf (v[i].y)));
  }
  scale = share_of (1, largest_of_warp (largest));
#pragma unroll
  for (uint32_t i = 0; i < OWN; i++) {
    v[i] = make_float2 (v[i].x * scale, v[i].y * scale);
    unit[i] = unit_of (v[i]);
  }
  return find_phase (GROUP_THREADS, [&] (float share, float2 turn) {
    float2 sum = make_float2 (0, 0);

#pragma unroll
    for (uint32_t i = 0; i < OWN; i++)
      add_near (v[i], unit[i], share, turn, &sum);
    return sum;
  });
}

/* S and E of row @i, whose samples arrive in the stage of the group. */
static __device__ __forceinline__ void
add_row (const Arguments &a, const StripRange &range, Strip &strip,
    uint32_t group, uint32_t i)
{
  uint32_t t = threadIdx.x % GROUP_THREADS, warp = t / 32;
  uint32_t ascan = range.from + i;
  Row &row = row_of (strip, range, i);
  float4 products[SLOTS][STRIP_PAIRS];
  float2 energy[SLOTS], sums[STRIP_PAIRS] = {};
  bool has_mean = a.mean && ascan >= range.first && ascan < range.end;

  if (copies_rows (a))
    wait_for_bytes (&strip.arrived[i]);
#pragma unroll
  for (uint32_t j = 0; j < SLOTS; j++) {
    uint32_t z = slot_depth (j);
    float4 v[STRIP_REPEATS];
    float2 power;

    if (copies_rows (a)) {
#pragma unroll
      for (uint32_t r = 0; r < STRIP_REPEATS; r++)
        v[r] = r < a.n_repeats && z < a.n_depths
                   ? strip.stages[group].samples[r][z / 2]
                   : make_float4 (0, 0, 0, 0);
    } else
      load_raw<STRIP_REPEATS, true> (a, 0, a.n_repeats, ascan, z, v);
    power = multiply_slot (a, v, products[j], &energy[j]);
    /* else all are numbers, as most are: one comparison for all */
    if (!(power.x + power.y <= IMK_OCTANGIO_LARGEST * IMK_OCTANGIO_LARGEST)) {
#pragma unroll
      for (uint32_t r = 0; r < STRIP_REPEATS; r++)
        v[r] = clean (v[r]);
      power = multiply_slot (a, v, products[j], &energy[j]);
    }
    if (has_mean && z < a.n_depths)
      *(float2 *) (a.mean + (size_t) ascan * a.row + z) =
          make_float2 (power.x * a.share, power.y * a.share);
#pragma unroll
    for (uint32_t k = 0; k < STRIP_PAIRS; k++)
      sums[k] = make_float2 (sums[k].x + (products[j][k].x + products[j][k].z),
          sums[k].y + (products[j][k].y + products[j][k].w));
  }
  wait_for_group (group); /* the samples have been read */
  if (t == 0 && i + range.n_groups < range.n_rows)
    begin_row (a, range, strip, i + range.n_groups);
  if (a.bulk_motion) {
#pragma unroll
    for (uint32_t k = 0; k < STRIP_PAIRS; k++) {
      row.bulk[2 * k][t] = sums[k].x;
      row.bulk[2 * k + 1][t] = sums[k].y;
    }
    wait_for_group (group);
    if (warp + 1 < a.n_repeats) {
      float2 turn = find_row_bulk (row.bulk[2 * warp], row.bulk[2 * warp + 1]);

      if (t % 32 == 0)
        strip.turns[group][warp] = turn;
    }
    wait_for_group (group);
  }
#pragma unroll
  for (uint32_t j = 0; j < SLOTS; j++) {
    uint32_t z = slot_depth (j);
    float2 x = make_float2 (0, 0), y = x;

#pragma unroll
    for (uint32_t k = 0; k < STRIP_PAIRS; k++) {
      float2 turn = strip.turns[group][k];

      add_turned (first_of (products[j][k]), turn, &x);
      add_turned (second_of (products[j][k]), turn, &y);
    }
    *(float4 *) &row.s[z] = make_float4 (x.x, x.y, y.x, y.y);
    *(float2 *) &row.e[z] = energy[j];
  }
}

/* ------------------------------------------------------------------------
 * The window, and the image. */

/* S and E of two depths. */
struct Sums {
  float4 s;
  float2 e;
};

/* @x + @weight * @y */
static __device__ __forceinline__ void
add_weighted (Sums *x, float weight, const Sums &y)
{
  x->s = make_float4 (__fmaf_rn (weight, y.s.x, x->s.x),
      __fmaf_rn (weight, y.s.y, x->s.y), __fmaf_rn (weight, y.s.z, x->s.z),
      __fmaf_rn (weight, y.s.w, x->s.w));
  x->e = make_float2 (
      __fmaf_rn (weight, y.e.x, x->e.x), __fmaf_rn (weight, y.e.y, x->e.y));
}

/* Flow of two depths, from the sums over the window's A-scans; neighbouring
 * depths are in the lanes beside. */
static __device__ __forceinline__ float2
window_flow (const Arguments &a, const Sums &own)
{
  float with_next = a.axial > 1, with_last = a.axial > 2;
  float2 before, after, x, y;
  float energy_before = __shfl_up_sync (~0u, own.e.y, 1);
  float energy_after = __shfl_down_sync (~0u, own.e.x, 1);

  before.x = __shfl_up_sync (~0u, own.s.z, 1);
  before.y = __shfl_up_sync (~0u, own.s.w, 1);
  after.x = __shfl_down_sync (~0u, own.s.x, 1);
  after.y = __shfl_down_sync (~0u, own.s.y, 1);
  x = make_float2 (
      __fmaf_rn (with_next, own.s.z, __fmaf_rn (with_last, before.x, own.s.x)),
      __fmaf_rn (with_next, own.s.w, __fmaf_rn (with_last, before.y, own.s.y)));
  y = make_float2 (
      __fmaf_rn (with_next, after.x, __fmaf_rn (with_last, own.s.x, own.s.z)),
      __fmaf_rn (with_next, after.y, __fmaf_rn (with_last, own.s.y, own.s.w)));
  return make_float2 (flow_of_sum (a, x,
                          __fmaf_rn (with_next, own.e.y,
                              __fmaf_rn (with_last, energy_before, own.e.x))),
      flow_of_sum (a, y,
          __fmaf_rn (with_next, energy_after,
              __fmaf_rn (with_last, own.e.x, own.e.y))));
}

/* The flow of one depth of the strip. */
static __device__ __forceinline__ void
put_depth (const Arguments &a, const StripRange &range, uint32_t z,
    float flow[STRIP_ASCANS])
{
  uint32_t n = range.end - range.first;
  float *to = a.flow + z * a.flow_stride + range.first;
  bool is_wide = n % 4 == 0 && (uintptr_t) to % sizeof (float4) == 0;

#pragma unroll
  for (uint32_t i = 0; i < STRIP_ASCANS; i++)
    if (a.mean && i < n) {
      float mean = a.mean[(size_t) (range.first + i) * a.row + z];

      flow[i] = mean < a.floor ? 0 : flow[i];
      if (a.mean_image)
        a.mean_image[(size_t) z * a.n_ascans + range.first + i] = mean;
    }
#pragma unroll
  for (uint32_t i = 0; i < STRIP_ASCANS; i += 4)
    if (is_wide && i < n)
      *(float4 *) (to + i) =
          make_float4 (flow[i], flow[i + 1], flow[i + 2], flow[i + 3]);
#pragma unroll
  for (uint32_t i = 0; i < STRIP_ASCANS; i++)
    if (!is_wide && i < n)
      to[i] = flow[i];
}

static __device__ __forceinline__ void
put_strip (const Arguments &a, const StripRange &range, Strip &strip)
{
  float with_next = a.lateral > 1, with_last = a.lateral > 2;
  uint32_t before = range.first - range.from, lane = threadIdx.x % 32;

  for (uint32_t first = WINDOW_DEPTHS * (threadIdx.x / 32); first < a.n_depths;
       first += WINDOW_DEPTHS * (blockDim.x / 32)) {
    uint32_t z = first + 2 * lane - 2; /* or below 0 */
    float x[STRIP_ASCANS], y[STRIP_ASCANS];
    Sums sums[STRIP_ROWS];

#pragma unroll
    for (uint32_t i = 0; i < STRIP_ROWS; i++) {
      uint32_t at = i + before - 1; /* or below 0 */

      sums[i] = {};
      if (at < range.n_rows && z < a.n_depths) {
        const Row &row = row_of (strip, range, at);

        sums[i].s = *(const float4 *) &row.s[z];
        sums[i].e = *(const float2 *) &row.e[z];
      }
      if (i > 1) {
        Sums window = sums[i - 1];
        float2 flow;

        add_weighted (&window, with_last, sums[i - 2]);
        add_weighted (&window, with_next, sums[i]);
        flow = window_flow (a, window);
        x[i - 2] = flow.x;
        y[i - 2] = flow.y;
      }
    }
    if (lane > 0 && lane < 31 && z < a.n_depths) {
      put_depth (a, range, z, x);
      if (z + 1 < a.n_depths)
        put_depth (a, range, z + 1, y);
    }
  }
}

static __global__ void
__launch_bounds__ (STRIP_GROUPS *GROUP_THREADS, 1)
    strips (const __grid_constant__ Arguments a)
{
  extern __shared__ float4 strip_shared[];
  Strip &strip = *(Strip *) strip_shared;
  StripRange range = strip_range (a);
  uint32_t group = threadIdx.x / GROUP_THREADS;

  if (threadIdx.x < STRIP_GROUPS * STRIP_PAIRS) /* without bulk motion */
    (&strip.turns[0][0])[threadIdx.x] = make_float2 (1, 0);
  if (threadIdx.x == 0)
    init_barriers (strip.arrived, STRIP_ROWS);
  __syncthreads ();
  wait_for_last_kernel ();
  let_next_kernel_begin ();
  if (threadIdx.x % GROUP_THREADS == 0 && group < range.n_rows)
    begin_row (a, range, strip, group);
  for (uint32_t i = group; i < range.n_rows; i += range.n_groups)
    add_row (a, range, strip, group, i);
  __syncthreads ();
  put_strip (a, range, strip);
}
