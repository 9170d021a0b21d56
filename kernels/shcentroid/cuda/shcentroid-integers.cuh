/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plain centroid on the GPU, in integers. One launch a frame. A block owns
 * a task: some cells side by side, or a piece of a cell that is too much for
 * one block. Like on the CPU it sums up columns first: a thread owns one 32-bit
 * word of a row, so that a warp reads 128 bytes at a time and every byte once,
 * and goes down the rows with many reads in flight; the column sums meet in
 * shared memory, where a few lanes a cell finish them. Mocci et al. 2020,
 * algorithm 2, reduces along the rows instead and ends at cells of 125 pixels.
 */
#pragma once

#include "core/cuda/early-begin.cuh"
#include "shcentroid/cuda/shcentroid-device.cuh"

namespace integers
{

/* Sums of a column, by index: v, y v, with ALL y^2 v and the largest; then,
 * under a threshold, 1, y, with ALL y^2 and the sum of all samples. */
template <bool ALL, bool CUT>
constexpr uint32_t n_sums = (ALL ? 4 : 2) << (CUT ? 1 : 0);

struct Shared {
  ImkShcentroidRect *rects;
  double *rows;
  double *pedestals; /* of the cells, under LEVELED */
  uint32_t *sums;    /* [group][sum][column] */
  int *belows;       /* of the columns, under LEVELED */
};

template <bool ALL, bool CUT>
static __device__ Shared
shared_layout (const Task &task)
{
  extern __shared__ double memory[];
  Shared s;

  s.rects = (ImkShcentroidRect *) memory;
  s.rows = (double *) (s.rects + task.n_cells);
  s.pedestals = s.rows + task.n_cells * row_length (ALL);
  s.sums = (uint32_t *) (s.pedestals + task.n_cells);
  s.belows = (int *) (s.sums + task.groups * n_sums<ALL, CUT> * task.width);
  return s;
}

/* Bytes of it; the threshold may come later. */
static uint64_t
shared_size (bool all, uint64_t n_cells, uint64_t width, uint64_t groups)
{
  return n_cells * (sizeof (ImkShcentroidRect) +
                       (row_length (all) + 1) * sizeof (double)) +
         groups * width * sizeof (uint32_t) *
             (all ? n_sums<true, true> : n_sums<false, true>) +width *
             sizeof (int);
}

/* ------------------------------------------------------------------------
 * From pixels to columns. */

template <typename Sample, bool ALL, bool CUT> struct IntegerColumns {
  static constexpr uint32_t N = 4 / sizeof (Sample);

  uint32_t v[N] = {}, vy[N] = {}, vyy[N] = {}, max[N] = {};
  uint32_t n[N] = {}, ny[N] = {}, nyy[N] = {}, raw[N] = {};

  /* The samples of one word in row @y; @real: not beyond the last row. Those
   * take part that are above @below. */
  __device__ __forceinline__ void
  add (uint32_t word, uint32_t y, const int below[N], bool real)
  {
#pragma unroll
    for (uint32_t k = 0; k < N; k++) {
      uint32_t value = sample_of<Sample> (word, k);

      if (ALL)
        max[k] = ::max (max[k], value);
      if (CUT) {
        uint32_t used = real && (int) value > below[k];

        raw[k] += value;
        n[k] += used;
        ny[k] += used * y;
        nyy[k] += used * y * y;
        value *= used;
      }
      v[k] += value;
      vy[k] += value * y;
      if (ALL)
        vyy[k] += value * y * y;
    }
  }

  /* To sums[0], sums[width], ... */
  __device__ __forceinline__ void
  store (uint32_t k, uint32_t *sums, uint32_t width) const
  {
    *sums = v[k];
    *(sums += width) = vy[k];
    if (ALL) {
      *(sums += width) = vyy[k];
      *(sums += width) = max[k];
    }
    if (CUT) {
      *(sums += width) = n[k];
      *(sums += width) = ny[k];
    }
    if (CUT && ALL) {
      *(sums += width) = nyy[k];
      *(sums += width) = raw[k];
    }
  }
};

/* BATCH rows from row @y on; those of row 0 are at hand when they are @kept. */
static __device__ __forceinline__ void
take_words (const Arguments &a, const Part &part, uint32_t y, const bool kept,
    const uint32_t first[BATCH], uint32_t words[BATCH])
{
  if (kept && y == 0) {
#pragma unroll
    for (uint32_t i = 0; i < BATCH; i++)
      words[i] = first[i];
  } else {
    read_part (a, part, y, words);
  }
}

/* The part of a thread. @belows: of each column of the task, under LEVELED,
 * when @first are its first words; else @below. */
template <typename Sample, bool ALL, bool CUT, bool LEVELED>
static __device__ __forceinline__ void
sum_columns (const Arguments &a, const Task &task, const Part &part,
    const uint32_t first[BATCH], int below, const int *belows, uint32_t *sums)
{
  using Columns = IntegerColumns<Sample, ALL, CUT>;
  int belows_here[Columns::N];
  Columns columns;

  if (part.group >= task.groups)
    return;
#pragma unroll
  for (uint32_t k = 0; k < Columns::N; k++) {
    /* wraps around left of the task */
    uint32_t column = part.word * Columns::N + k - task.x;

    belows_here[k] = LEVELED && column < task.width ? belows[column] : below;
  }
  for (uint32_t y = 0; y < part.n_rows; y += BATCH) {
    uint32_t words[BATCH];

    take_words (a, part, y, LEVELED, first, words);
#pragma unroll
    for (uint32_t i = 0; i < BATCH; i++)
      columns.add (words[i], y + i, belows_here, y + i < part.n_rows);
  }

  sums += part.group * n_sums<ALL, CUT> * task.width;
#pragma unroll
  for (uint32_t k = 0; k < Columns::N; k++) {
    uint32_t column = part.word * Columns::N + k - task.x;

    if (column < task.width)
      columns.store (k, sums + column, task.width);
  }
}

/* ------------------------------------------------------------------------
 * Levels: thresholds that the samples of a cell decide. */

struct Extremes {
  uint32_t most,
      most_below; /* ~ of the smallest: 0 is none, as of the largest */
};

static __device__ __forceinline__ Extremes
extremes_of_both (Extremes a, Extremes b)
{
  return {max (a.most, b.most), max (a.most_below, b.most_below)};
}

/* To all lanes. */
static __device__ __forceinline__ Extremes
extremes_of_lanes (Extremes e, uint32_t lanes)
{
  for (uint32_t step = lanes / 2; step; step /= 2) {
    uint32_t most = __shfl_xor_sync (0xffffffff, e.most, step, lanes);
    uint32_t below = __shfl_xor_sync (0xffffffff, e.most_below, step, lanes);

    e = extremes_of_both (e, {most, below});
  }
  return e;
}

/* Those of the columns of the part of a thread. */
template <typename Sample>
static __device__ __forceinline__ void
find_column_extremes (const Arguments &a, const Part &part,
    const uint32_t first[BATCH], Extremes extremes[4 / sizeof (Sample)])
{
  for (uint32_t y = 0; y < part.n_rows; y += BATCH) {
    uint32_t words[BATCH];

    take_words (a, part, y, true, first, words);
#pragma unroll
    for (uint32_t i = 0; i < BATCH; i++)
#pragma unroll
      for (uint32_t k = 0; k < 4 / sizeof (Sample); k++) {
        uint32_t value = sample_of<Sample> (words[i], k);

        if (y + i < part.n_rows)
          extremes[k] = extremes_of_both (extremes[k], {value, ~value});
      }
  }
}

/* The same, to @to: [group][largest, smallest][column]. */
template <typename Sample>
static __device__ __forceinline__ void
store_column_extremes (const Arguments &a, const Task &task, const Part &part,
    const uint32_t first[BATCH], uint32_t *to)
{
  constexpr uint32_t N = 4 / sizeof (Sample);
  Extremes extremes[N] = {};

  if (part.group >= task.groups)
    return;
  find_column_extremes<Sample> (a, part, first, extremes);
#pragma unroll
  for (uint32_t k = 0; k < N; k++) {
    uint32_t column = part.word * N + k - task.x;

    if (column < task.width) {
      to[2 * part.group * task.width + column] = extremes[k].most;
      to[(2 * part.group + 1) * task.width + column] = extremes[k].most_below;
    }
  }
}

/* Returns, to all lanes of a cell: those of its columns */
static __device__ __forceinline__ Extremes
gather_extremes (const Task &task, const ImkShcentroidRect &cell, bool real,
    const uint32_t *of, uint32_t lane)
{
  uint32_t begin = cell.x - task.x, end = begin + cell.width;
  Extremes e = {};

  for (uint32_t group = 0; real && group < task.groups; group++)
    for (uint32_t x = begin + lane; x < end; x += task.lanes)
      e = extremes_of_both (e, {of[2 * group * task.width + x],
                                   of[(2 * group + 1) * task.width + x]});
  return extremes_of_lanes (e, task.lanes);
}

/* From the extremes of columns, where the sums will be, to what decides about
 * the samples of each. A piece of a cell knows those of the cell from the
 * scratch. */
static __device__ __forceinline__ void
find_levels (const Arguments &a, const Task &task, const Shared &shared)
{
  uint32_t lane = threadIdx.x % task.lanes;
  uint32_t cells_a_pass = blockDim.x / task.lanes;

  for (uint32_t pass = 0; pass < task.n_cells; pass += cells_a_pass) {
    uint32_t i = pass + threadIdx.x / task.lanes;
    bool real = i < task.n_cells;
    const ImkShcentroidRect &cell = shared.rects[real ? i : 0];
    uint32_t begin = max (cell.x, task.x) - task.x;
    uint32_t end = min (cell.x + cell.width, task.x + task.width) - task.x;
    Extremes e;
    double t;

    if (task.n_parts > 1) {
      const Scratch &scratch = a.scratch[task.scratch];

      e = {scratch.most, scratch.most_below};
    } else {
      e = gather_extremes (task, cell, real, shared.sums, lane);
    }
    t = imk_shcentroid_threshold (
        &a.params, cell.threshold, (double) ~e.most_below, (double) e.most);
    if (real && lane == 0)
      shared.pedestals[i] = imk_shcentroid_pedestal (&a.params, t);
    for (uint32_t x = begin + lane; real && x < end; x += task.lanes)
      shared.belows[x] = (int) imk_shcentroid_least (t) - 1;
  }
}

/* Before measure_cells (), where cells are cut into pieces. */
template <typename Sample>
static __global__ void
__launch_bounds__ (MAX_THREADS)
    find_piece_extremes (const __grid_constant__ Arguments a)
{
  Task task = load_task (a.tasks + blockIdx.x);
  Part part =
      part_of (a, task, threadIdx.x / task.words, threadIdx.x % task.words);
  Extremes columns[4 / sizeof (Sample)] = {}, all = {};
  uint32_t first[BATCH];

  if (task.n_parts == 1)
    return;
  if (part.group < task.groups) {
    read_part (a, part, 0, first);
    find_column_extremes<Sample> (a, part, first, columns);
  }
  for (uint32_t k = 0; k < 4 / sizeof (Sample); k++) {
    uint32_t column = part.word * (4 / sizeof (Sample)) + k - task.x;

    if (column < task.width)
      all = extremes_of_both (all, columns[k]);
  }
  all = extremes_of_lanes (all, 32);
  if (threadIdx.x % 32 == 0) {
    atomicMax (&a.scratch[task.scratch].most, all.most);
    atomicMax (&a.scratch[task.scratch].most_below, all.most_below);
  }
}

/* ------------------------------------------------------------------------
 * From columns to cells. */

/* Column @u of the cell, of the group of rows that begins at row @y of it. */
template <bool ALL, bool CUT>
static __device__ __forceinline__ void
add_column (ImkShcentroidSums *s, const uint32_t *sums, uint32_t width,
    uint64_t u, uint64_t y)
{
  uint64_t v = sums[0], vy = sums[width];

  s->v += v;
  s->vu += u * v;
  s->vy += vy + y * v;
  if (ALL) {
    imk_shcentroid_wide_add (&s->vuu, u * u * v);
    imk_shcentroid_wide_add (&s->vyy, sums[2 * width]);
    imk_shcentroid_wide_add (&s->vyy, y * (2 * vy + y * v));
    s->max = max (s->max, sums[3 * width]);
  }
  if (CUT) {
    const uint32_t *counts = sums + (ALL ? 4 : 2) * width;
    uint64_t n = counts[0], ny = counts[width];

    s->n += n;
    s->nu += u * n;
    s->ny += ny + y * n;
    if (ALL) {
      s->nuu += u * u * n;
      s->nyy += counts[2 * width] + y * (2 * ny + y * n);
      s->raw += counts[3 * width];
    }
  }
}

/* What lane @lane of the cell has to add. */
template <bool ALL, bool CUT>
static __device__ __forceinline__ void
sum_lane (ImkShcentroidSums *s, const Task &task, const ImkShcentroidRect &cell,
    const uint32_t *sums, uint32_t lane)
{
  uint32_t begin = max (cell.x, task.x);
  uint32_t end = min (cell.x + cell.width, task.x + task.width);

  for (uint32_t group = 0; group < task.groups; group++) {
    const uint32_t *of_group = sums + group * n_sums<ALL, CUT> * task.width;
    uint32_t y = task.y - cell.y + group * task.group_rows;

    for (uint32_t x = begin + lane; x < end; x += task.lanes)
      add_column<ALL, CUT> (
          s, of_group + x - task.x, task.width, x - cell.x, y);
  }
}

static __device__ __forceinline__ void
reduce (uint64_t &sum, uint32_t lanes)
{
  for (uint32_t step = lanes / 2; step; step /= 2)
    sum += __shfl_down_sync (0xffffffff, sum, step, lanes);
}

/* Lane 0 of every cell gets the sums of all its lanes. */
template <bool ALL, bool CUT>
static __device__ __forceinline__ void
reduce_lanes (ImkShcentroidSums *s, uint32_t lanes)
{
  reduce (s->v, lanes);
  reduce (s->vu, lanes);
  reduce (s->vy, lanes);
  if (ALL) {
    reduce (s->vuu.low, lanes);
    reduce (s->vuu.high, lanes);
    reduce (s->vyy.low, lanes);
    reduce (s->vyy.high, lanes);
    for (uint32_t step = lanes / 2; step; step /= 2)
      s->max = max (s->max, __shfl_down_sync (0xffffffff, s->max, step, lanes));
  }
  if (CUT) {
    reduce (s->n, lanes);
    reduce (s->nu, lanes);
    reduce (s->ny, lanes);
  }
  if (CUT && ALL) {
    reduce (s->nuu, lanes);
    reduce (s->nyy, lanes);
    reduce (s->raw, lanes);
  }
}

static __device__ __forceinline__ void
meet (uint64_t *sum, uint64_t value)
{
  atomicAdd ((unsigned long long *) sum, (unsigned long long) value);
}

static __device__ __forceinline__ uint64_t
take (uint64_t *sum)
{
  return atomicExch ((unsigned long long *) sum, 0ull);
}

/* Adds a piece to its cell. Returns: whether it was the last to arrive; @s is
 * the whole cell then, and the scratch as clean as before. Integers: the order
 * does not matter. */
static __device__ __noinline__ bool
meet_pieces (Scratch *scratch, uint32_t n_parts, ImkShcentroidSums *s)
{
  constexpr int N = offsetof (ImkShcentroidSums, max) / sizeof (uint64_t);
  uint64_t *to = (uint64_t *) &scratch->sums, *from = (uint64_t *) s;

  for (int i = 0; i < N; i++)
    if (from[i])
      meet (to + i, from[i]);
  atomicMax (&scratch->sums.max, s->max);
  __threadfence ();
  if (atomicInc (&scratch->arrived, n_parts - 1) != n_parts - 1)
    return false;
  __threadfence ();
  for (int i = 0; i < N; i++)
    from[i] = take (to + i);
  s->max = atomicExch (&scratch->sums.max, 0u);
  scratch->most = scratch->most_below = 0;
  return true;
}

template <bool ALL, bool CUT>
static __device__ __forceinline__ void
finish_cell (const Arguments &a, ImkShcentroidSums *s,
    const ImkShcentroidRect &cell, double pedestal, uint32_t index, double *to)
{
  ImkShcentroidRow row;

  if (!CUT) {
    imk_shcentroid_fill_geometry (s, cell.width, cell.height);
    s->raw = s->v;
  }
  imk_shcentroid_finish (&row, s, &cell, &a.params, pedestal,
      ALL ? IMK_SHCENTROID_FIELDS_ALL : IMK_SHCENTROID_FIELDS_XY, a.fresh,
      a.held + 2 * (size_t) index);
  keep_row<ALL> (a, row, index, to);
}

/* Returns, to all threads: whether the rows of the task are complete */
template <bool ALL, bool CUT, bool LEVELED>
static __device__ __forceinline__ bool
sum_cells (const Arguments &a, const Task &task, const Shared &shared)
{
  uint32_t lane = threadIdx.x % task.lanes;
  uint32_t cells_a_pass = blockDim.x / task.lanes;
  bool complete = true;

  /* all threads go through all passes: they shuffle together */
  for (uint32_t pass = 0; pass < task.n_cells; pass += cells_a_pass) {
    uint32_t i = pass + threadIdx.x / task.lanes;
    bool real = i < task.n_cells;
    ImkShcentroidSums s = {};

    if (real)
      sum_lane<ALL, CUT> (&s, task, shared.rects[i], shared.sums, lane);
    reduce_lanes<ALL, CUT> (&s, task.lanes);
    if (!real || lane != 0)
      continue;
    if (task.n_parts > 1) {
      ImkShcentroidSums whole = s; /* the address of s would cost registers */

      complete = meet_pieces (a.scratch + task.scratch, task.n_parts, &whole);
      s = whole;
    }
    if (complete)
      finish_cell<ALL, CUT> (a, &s, shared.rects[i],
          LEVELED ? shared.pedestals[i]
          : CUT   ? imk_shcentroid_pedestal (
                        &a.params, imk_shcentroid_threshold (&a.params,
                                       shared.rects[i].threshold, 0, 0))
                : 0.0,
          task.first + i, shared.rows + i * row_length (ALL));
  }
  return __syncthreads_and (complete);
}

/* ------------------------------------------------------------------------
 * The kernel. LEVELED only with CUT. */

template <typename Sample, bool ALL, bool CUT, bool LEVELED>
static __global__ void
__launch_bounds__ (MAX_THREADS)
    measure_cells (const __grid_constant__ Arguments a)
{
  Task task = load_task (a.tasks + blockIdx.x);
  Shared shared = shared_layout<ALL, CUT> (task);
  Part part =
      part_of (a, task, threadIdx.x / task.words, threadIdx.x % task.words);
  uint32_t first[BATCH];
  int below = -1;

  let_next_kernel_begin ();
  fetch_rects (a, task, shared.rects);
  if (CUT && !LEVELED) /* only cells of a map have their own, and a task each */
    below = (int) imk_shcentroid_least (imk_shcentroid_threshold (
                &a.params, a.rects[task.first].threshold, 0, 0)) -
            1;
  if (LEVELED) {
    if (part.group < task.groups)
      read_part (a, part, 0, first);
    if (task.n_parts == 1)
      store_column_extremes<Sample> (a, task, part, first, shared.sums);
    __pipeline_wait_prior (0);
    __syncthreads ();
    find_levels (a, task, shared);
    __syncthreads ();
  }
  sum_columns<Sample, ALL, CUT, LEVELED> (
      a, task, part, first, below, shared.belows, shared.sums);
  __pipeline_wait_prior (0);
  __syncthreads ();
  if (sum_cells<ALL, CUT, LEVELED> (a, task, shared))
    store_rows<ALL> (a, task.first, task.n_cells, shared.rows);
}

} /* namespace integers */
