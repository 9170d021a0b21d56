/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Methods of pairs in one kernel, where the device copies rows to shared memory
 * on its own (compute capability 9.0). A block has a strip of A-scans, and the
 * A-scans beside it that its windows need. The samples of the next A-scans are
 * under way while groups of threads, each with an A-scan of its own, find the
 * bulk motion. S and E of the window's depths stay in shared memory until the
 * whole strip is there. Only the B-scans, and the flow, pass global memory;
 * mean powers pass it if something needs them. */
#pragma once

#include "core/cuda/bulk-copy.cuh"
#include "octangio/cuda/octangio-pairs.cuh"

enum { STRIP_THREADS = REGISTER_THREADS, MOST_STAGES = 4 };

struct Strip {
  uint32_t first, end;   /* A-scans of the flow */
  uint32_t from, n_rows; /* A-scans that their windows need */
  float4 *samples;       /* [n_stages][N][D / 2] */
  float2 *sums;          /* [n_rows][row] S */
  float *energies;       /* [n_rows][weights] E, or NULL */
  CopyBarrier *arrived;  /* [n_rows], each used once */
};

static __device__ __forceinline__ Strip
strip_of (const Arguments &a, float4 *shared)
{
  const StripPlan &plan = a.strips;
  uint32_t n_rows = plan.n_ascans + a.lateral - 1, last;
  Strip s;

  s.first = blockIdx.x * plan.n_ascans;
  s.end = min (s.first + plan.n_ascans, a.n_ascans);
  range_of (s.first, a.lateral, a.n_ascans, &s.from, &last);
  last = min (s.end + a.lateral / 2, a.n_ascans);
  s.samples = shared;
  s.sums =
      (float2 *) (s.samples + plan.n_stages * a.n_repeats * (a.n_depths / 2));
  s.arrived = (CopyBarrier *) (s.sums + n_rows * plan.row);
  s.energies = a.method == IMK_OCTANGIO_DOPPLER
                   ? nullptr
                   : (float *) (s.arrived + n_rows);
  s.n_rows = last - s.from;
  return s;
}

/* Begins to copy row @i to its stage. By one thread. */
static __device__ __forceinline__ void
begin_row (const Arguments &a, const Strip &s, uint32_t i)
{
  uint32_t stage = i % a.strips.n_stages, n = a.n_depths / 2;
  uint32_t size = n * (uint32_t) sizeof (float4);

  expect_bytes (&s.arrived[i], a.n_repeats * size);
  for (uint32_t r = 0; r < a.n_repeats; r++)
    copy_bulk (s.samples + (stage * a.n_repeats + r) * n,
        address_of (a, r, s.from + i, 0), size, &s.arrived[i]);
}

/* S and E of row @i, whose samples lie in its stage. */
template <uint32_t MOST, uint32_t P>
static __device__ __forceinline__ void
add_row (const Arguments &a, const Group &group, const Strip &s, uint32_t i,
    Bulk<MOST - 1> &bulk)
{
  constexpr uint32_t N = MOST - 1;
  uint32_t n = a.n_depths, stage = i % a.strips.n_stages, ascan = s.from + i;
  const float4 *samples = s.samples + stage * a.n_repeats * (n / 2);
  float2 *sums = s.sums + i * a.strips.row;
  float *energies = s.energies ? s.energies + i * a.strips.weights : nullptr;
  bool has_mean = a.mean && ascan >= s.first && ascan < s.end;
  float4 products[P][N];
  float2 sizes[P][N], turn[N];

#pragma unroll
  for (uint32_t p = 0; p < P; p++) {
    uint32_t pair = group.thread + p * group.n_threads;
    float4 v[MOST];
    float2 energy, sum;

#pragma unroll
    for (uint32_t r = 0; r < MOST; r++)
      v[r] = r < a.n_repeats && pair < n / 2 ? samples[r * (n / 2) + pair]
                                             : make_float4 (0, 0, 0, 0);
    multiply_repeats<MOST> (a, v, products[p], sizes[p], &energy, &sum);
    if (energies && pair < n / 2)
      ((float2 *) energies)[pair] = energy;
    if (has_mean && pair < n / 2)
      ((float2 *) (a.mean + (size_t) ascan * a.row))[pair] =
          make_float2 (sum.x * a.share, sum.y * a.share);
  }
  group.wait (); /* the stage has been read */
  if (group.thread == 0 && i + a.strips.n_stages < s.n_rows)
    begin_row (a, s, i + a.strips.n_stages);
#pragma unroll
  for (uint32_t k = 0; k < N; k++)
    turn[k] = make_float2 (1, 0);
  if (a.bulk_motion)
    find_bulk<N, P> (group, products, sizes, bulk, turn);
  put_products<N, P> (group, products, turn, n, sums);
  group.wait ();

  float4 window[P];
  float2 weights[P];

#pragma unroll
  for (uint32_t p = 0; p < P; p++) {
    uint32_t z = 2 * (group.thread + p * group.n_threads);

    if (z < n)
      window_sums (a, sums, energies, z, &window[p], &weights[p]);
  }
  group.wait (); /* all have read what is replaced now */
#pragma unroll
  for (uint32_t p = 0; p < P; p++) {
    uint32_t z = 2 * (group.thread + p * group.n_threads);

    if (z < n)
      *(float4 *) (sums + z) = window[p];
    if (z < n && energies)
      *(float2 *) (energies + z) = weights[p];
  }
}

/* Adds @n A-scans of a window at one depth.
 * @energies: NULL where nobody needs E */
static __device__ __forceinline__ float
flow_of_window (
    const Arguments &a, const float2 *sums, const float *energies, uint32_t n)
{
  float2 sum = make_float2 (0, 0);
  float energy = 0;
  auto add = [&] (uint32_t i) {
    float2 v = sums[i * a.strips.row];

    sum.x += v.x;
    sum.y += v.y;
    if (energies)
      energy += energies[i * a.strips.weights];
  };

  if (n == 3) { /* the default, without a loop */
    add (0);
    add (1);
    add (2);
  } else
    for (uint32_t i = 0; i < n; i++)
      add (i);
  return flow_of_sum (a, sum, energy);
}

static __device__ __forceinline__ void
put_strip (const Arguments &a, const Strip &s)
{
  uint32_t lanes = a.strips.lanes, step = blockDim.x / lanes;

  for (uint32_t ascan = s.first + threadIdx.x % lanes; ascan < s.end;
       ascan += lanes) {
    uint32_t first, end;
    const float2 *sums;
    const float *energies;

    range_of (ascan, a.lateral, a.n_ascans, &first, &end);
    sums = s.sums + (first - s.from) * a.strips.row;
    energies =
        s.energies ? s.energies + (first - s.from) * a.strips.weights : nullptr;
    for (uint32_t z = threadIdx.x / lanes; z < a.n_depths; z += step) {
      float flow = flow_of_window (
          a, sums + z, energies ? energies + z : nullptr, end - first);
      float mean = a.mean ? a.mean[(size_t) ascan * a.row + z] : 0;

      a.flow[z * a.flow_stride + ascan] = mean < a.floor ? 0 : flow;
      if (a.mean_image)
        a.mean_image[(size_t) z * a.n_ascans + ascan] = mean;
    }
  }
}

template <uint32_t MOST, uint32_t P>
static __global__ void
__launch_bounds__ (STRIP_THREADS, 1)
    strips (const __grid_constant__ Arguments a)
{
  extern __shared__ float4 strip_shared[];
  __shared__ Bulk<MOST - 1> bulk;
  Strip s = strip_of (a, strip_shared);
  uint32_t n_threads = a.strips.n_threads, n_groups = blockDim.x / n_threads;
  Group group = {threadIdx.x / n_threads, n_threads, threadIdx.x % n_threads};

  if (threadIdx.x == 0) {
    init_barriers (s.arrived, s.n_rows);
    for (uint32_t i = 0; i < min (a.strips.n_stages, s.n_rows); i++)
      begin_row (a, s, i);
  }
  __syncthreads ();
  for (uint32_t i = group.index; i < s.n_rows; i += n_groups) {
    wait_for_bytes (&s.arrived[i]);
    add_row<MOST, P> (a, group, s, i, bulk);
  }
  __syncthreads ();
  put_strip (a, s);
}

/* ------------------------------------------------------------------------
 * The plan, on the host. */

static inline uint32_t
strip_size (const StripPlan &p, const ImkOctangioConfig *c)
{
  uint32_t n_rows = p.n_ascans + c->lateral - 1;
  uint32_t sums = p.row * (uint32_t) sizeof (float2);
  uint32_t weights = c->method == IMK_OCTANGIO_DOPPLER
                         ? 0
                         : p.weights * (uint32_t) sizeof (float);

  return n_rows * (sums + weights + (uint32_t) sizeof (CopyBarrier)) +
         p.n_stages * c->n_repeats * c->n_depths * (uint32_t) sizeof (float2);
}

/* Finds the strips that take the least time on @n_processors, each with one
 * block at a time. The unit is the time of a row; a block takes about two for
 * itself.
 * Returns: whether there are some that fit in @most bytes */
static inline bool
choose_strips (StripPlan *plan, const ImkOctangioConfig *c,
    uint32_t n_processors, uint32_t most)
{
  uint32_t least = UINT32_MAX;
  StripPlan p = *plan;

  for (p.n_ascans = 1; p.n_ascans <= c->n_ascans; p.n_ascans++) {
    uint32_t n_rows = p.n_ascans + c->lateral - 1;
    uint32_t n_strips = imk_div_up (c->n_ascans, p.n_ascans);
    uint32_t time = imk_div_up (n_strips, n_processors) * (n_rows + 2);

    for (p.n_stages = MOST_STAGES; p.n_stages > 1; p.n_stages--)
      if (strip_size (p, c) <= most)
        break;
    if (p.n_stages < 2)
      break;
    if (time >= least)
      continue;
    least = time;
    p.lanes = p.n_ascans >= 8   ? 8
              : p.n_ascans >= 4 ? 4
              : p.n_ascans >= 2 ? 2
                                : 1;
    *plan = p;
  }
  return least < UINT32_MAX;
}
