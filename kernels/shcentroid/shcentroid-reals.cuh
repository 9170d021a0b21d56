/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The chain on the GPU where cells stay, a pixel is worth its value times a
 * weight, and a block can hold a cell: the common case. As in
 * shcentroid-integers.cuh a block owns some cells side by side, a thread one
 * 32-bit word of a row, here with IMK_SHCENTROID_GROUP_ROWS rows of it, which it
 * reads once and keeps; column sums meet in shared memory. */
#pragma once

#include "shcentroid/shcentroid-chain.cuh"

namespace reals
{

enum { ROWS = IMK_SHCENTROID_GROUP_ROWS };
static_assert ((int) ROWS == (int) BATCH, "a group is read at once");
enum { BAND_GROUPS = (int) IMK_SHCENTROID_BAND_ROWS / (int) ROWS };

/* Of a column in a group, by index: p, p1, with ALL q, q1, q2, and raw, which is
 * p where nothing is cut and nothing weighted. */
template <bool ALL> constexpr uint32_t n_sums = ALL ? 6 : 2;

/* Columns are those of the words that the task touches. */
struct Shared {
  ImkShcentroidRect *rects;
  double *rows;
  ImkShcentroidReals *cells;
  ImkShcentroidLevel *levels;
  double *weights; /* of the columns of a cell, then of its rows */
  double *sums;    /* [group][sum][column]; before them, extremes, float */
  float *max;      /* [group][column], with ALL, like the next */
  uint32_t *max_sample;
};

static uint64_t
shared_size (bool all, uint64_t n_cells, uint64_t height, uint64_t groups,
    uint64_t columns)
{
  return n_cells * (sizeof (ImkShcentroidRect) +
                       row_length (all) * sizeof (double) +
                       sizeof (ImkShcentroidReals) +
                       sizeof (ImkShcentroidLevel)) +
         (columns + n_cells * height) * sizeof (double) +
         groups * columns *
             ((all ? n_sums<true> : n_sums<false>) * sizeof (double) +
                 (all ? sizeof (float) + sizeof (uint32_t) : 0));
}

template <bool ALL>
static __device__ Shared
shared_layout (const Task &task, uint32_t columns)
{
  extern __shared__ double memory[];
  Shared s;

  s.rects = (ImkShcentroidRect *) memory;
  s.rows = (double *) (s.rects + task.n_cells);
  s.cells =
      (ImkShcentroidReals *) (s.rows + task.n_cells * row_length (ALL));
  s.levels = (ImkShcentroidLevel *) (s.cells + task.n_cells);
  s.weights = (double *) (s.levels + task.n_cells);
  s.sums = s.weights + task.n_weights;
  s.max = (float *) (s.sums + task.groups * n_sums<ALL> * columns);
  s.max_sample = (uint32_t *) (s.max + (ALL ? task.groups * columns : 0));
  return s;
}

/* Lanes that share a cell, for which sum_lane () is written. */
static uint32_t
lanes_for (uint32_t widest)
{
  return widest <= 4 ? 4 : widest <= 16 ? 8 : 32;
}

/* ------------------------------------------------------------------------
 * The part of a thread. */

template <typename Sample> struct Values {
  static constexpr uint32_t N = 4 / sizeof (Sample);

  float v[ROWS][N], flat[ROWS][N];
  uint32_t words[ROWS]; /* as they came */
};

/* All reads in flight together. */
template <typename Sample, bool CALIBRATED>
static __device__ __forceinline__ void
read_values (const ChainArguments &a, const Task &task, const Part &part,
    Values<Sample> &values)
{
  constexpr uint32_t N = Values<Sample>::N, PAIRS = N / 2;
  uint32_t y = task.y + part.group * ROWS;
  const float4 *pixels =
      (const float4 *) (a.pixels + (size_t) y * a.pixel_stride) +
      part.word * PAIRS;
  float4 pairs[CALIBRATED ? ROWS : 1][PAIRS];

  read_part (a.common, part, 0, values.words);
#pragma unroll
  for (uint32_t i = 0; CALIBRATED && i < ROWS; i++)
#pragma unroll
    for (uint32_t k = 0; k < PAIRS; k++)
      pairs[i][k] = __ldg (
          pixels + min (i, part.n_rows - 1) * (a.pixel_stride / 2) + k);
#pragma unroll
  for (uint32_t i = 0; i < ROWS; i++)
#pragma unroll
    for (uint32_t k = 0; k < N; k++) {
      uint32_t sample = sample_of<Sample> (values.words[i], k);
      float value = a.lut ? __ldg (a.lut + sample) : (float) sample;

      values.v[i][k] = value;
      values.flat[i][k] = 1.0f;
      if (CALIBRATED) {
        const float4 &pair = pairs[i][k / 2];
        ImkShcentroidPixel pixel = {
            k % 2 ? pair.z : pair.x, k % 2 ? pair.w : pair.y};

        values.v[i][k] = imk_shcentroid_calibrate (value, pixel);
        values.flat[i][k] = pixel.flat;
      }
    }
}

/* To sums: [group][smallest, largest][column]. */
template <typename Sample>
static __device__ __forceinline__ void
store_extremes (const Part &part, const Values<Sample> &values,
    uint32_t column, uint32_t columns, const Shared &shared)
{
  float *to = (float *) shared.sums + 2 * part.group * columns + column;

#pragma unroll
  for (uint32_t k = 0; k < Values<Sample>::N; k++) {
    float least = 3e38f, most = -3e38f;

#pragma unroll
    for (uint32_t i = 0; i < ROWS; i++) {
      float v = values.v[i][k];

      if (i < part.n_rows) {
        least = v < least ? v : least;
        most = v > most ? v : most;
      }
    }
    to[k] = least;
    to[columns + k] = most;
  }
}

/* What decides about the pixels of a column. */
struct ColumnRule {
  ImkShcentroidLevel level;
  const double *weights; /* of the rows of the part */
};

/* @cell: of the task. @level: that of all cells but under LEVELED */
static __device__ __forceinline__ ColumnRule
rule_of (const Shared &shared, const Task &task, uint32_t group, uint32_t cell,
    const ImkShcentroidLevel &level, bool leveled)
{
  const ImkShcentroidRect &rect = shared.rects[cell];
  ColumnRule rule;

  rule.level = leveled ? shared.levels[cell] : level;
  rule.weights = shared.weights + (rect.x - task.x) + cell * rect.height +
                 rect.width + group * ROWS;
  return rule;
}

/* Cells of the task that the columns of a part are in. */
template <typename Sample>
static __device__ __forceinline__ void
find_cells (const ChainArguments &a, const Task &task, const Part &part,
    uint16_t cells[4 / sizeof (Sample)])
{
  constexpr uint32_t N = 4 / sizeof (Sample);

#pragma unroll
  for (uint32_t k = 0; k < N; k++) {
    uint32_t x = part.word * N + k;

    /* wraps around left of the task */
    cells[k] = a.cell_of && x - task.x < task.width
                   ? (uint16_t) (a.cell_of[x] - task.column)
                   : 0;
  }
}

/* One column after the other, to the sums in shared memory. */
template <typename Sample, bool CALIBRATED, bool ALL, bool WEIGHTED, bool CUT>
static __device__ __forceinline__ void
sum_columns (const ChainArguments &a, const Task &task, const Part &part,
    const Values<Sample> &values, uint32_t columns, bool leveled,
    const uint16_t cells[4 / sizeof (Sample)], const ImkShcentroidLevel &level,
    const Shared &shared)
{
  constexpr uint32_t N = Values<Sample>::N;
  const ImkShcentroidNoise noise = {a.noise_per_count,
      a.common.params.read_noise * a.common.params.read_noise};
  uint32_t first = (part.word - task.first_word) * N;

#pragma unroll
  for (uint32_t k = 0; k < N; k++) {
    ColumnRule rule = {};
    double *to = shared.sums + part.group * n_sums<ALL> * columns + first + k;
    uint32_t at = part.group * columns + first + k, max_sample = 0;
    ImkShcentroidGroup g = {};
    float most = -3.4e38f;

    if (CUT || WEIGHTED)
      rule = rule_of (shared, task, part.group, cells[k], level, leveled);
#pragma unroll
    for (int i = ROWS - 1; i >= 0; i--) {
      double v = values.v[i][k];
      bool real = i < part.n_rows;
      bool used = CUT ? real && v >= rule.level.least : real;
      double pedestal = CUT ? rule.level.pedestal : 0.0;
      double weight = WEIGHTED ? rule.weights[real ? i : 0] : 1.0;
      double p = imk_shcentroid_part (v, used, pedestal, weight, 1.0);

      imk_shcentroid_add_part (&g, p, false, 0.0);
      if (ALL) {
        bool good = CUT ? real && v == v : real;
        double q = imk_shcentroid_spread (
            v, values.flat[i][k], used, pedestal, weight, 1.0, p, &noise);

        imk_shcentroid_add_spread (&g, q, false, 0.0);
        if (CUT || WEIGHTED)
          g.raw += good ? v : 0.0;
        most = good && values.v[i][k] > most ? values.v[i][k] : most;
        max_sample = max (
            max_sample, good ? sample_of<Sample> (values.words[i], k) : 0);
      }
    }
    to[0] = g.p;
    to[columns] = g.p1;
    if (ALL) {
      to[2 * columns] = g.q;
      to[3 * columns] = g.q1;
      to[4 * columns] = g.q2;
      if (CUT || WEIGHTED)
        to[5 * columns] = g.raw;
      shared.max[at] = most;
      shared.max_sample[at] = max_sample;
    }
  }
}

/* ------------------------------------------------------------------------
 * Cells. */

/* Thresholds that the pixels of a cell decide. */
static __device__ __forceinline__ void
find_levels (const ChainArguments &a, const Task &task, uint32_t skipped,
    uint32_t columns, const Shared &shared)
{
  const float *extremes = (const float *) shared.sums;
  uint32_t lane = threadIdx.x % task.lanes;
  uint32_t cells_a_pass = blockDim.x / task.lanes;

  for (uint32_t pass = 0; pass < task.n_cells; pass += cells_a_pass) {
    uint32_t i = pass + threadIdx.x / task.lanes;
    bool real = i < task.n_cells;
    const ImkShcentroidRect &cell = shared.rects[real ? i : 0];
    uint32_t begin = cell.x - task.x + skipped, end = begin + cell.width;
    float least = 3e38f, most = -3e38f;

    for (uint32_t x = begin + lane; real && x < end; x += task.lanes)
      for (uint32_t group = 0; group < task.groups; group++) {
        float low = extremes[2 * group * columns + x];
        float high = extremes[(2 * group + 1) * columns + x];

        least = low < least ? low : least;
        most = high > most ? high : most;
      }
    for (uint32_t step = task.lanes / 2; step; step /= 2) {
      float low = __shfl_xor_sync (0xffffffff, least, step, task.lanes);
      float high = __shfl_xor_sync (0xffffffff, most, step, task.lanes);

      least = low < least ? low : least;
      most = high > most ? high : most;
    }
    if (real && lane == 0)
      shared.levels[i] = imk_shcentroid_level (&a.common.params,
          cell.threshold, least, most, -imk_shcentroid_infinity ());
  }
}

/* A cell in shared memory, in one of its bands. */
struct Band {
  uint32_t begin, width; /* its columns */
  uint32_t first, end;   /* groups */
  const double *factors; /* weights of its columns */
};

/* Column @u, of all groups of the band. */
template <bool ALL, bool WEIGHTED, bool CUT>
static __device__ __forceinline__ ImkShcentroidReals
sum_column (
    const Shared &shared, const Band &band, uint32_t columns, uint32_t u)
{
  ImkShcentroidReals c = no_sums ();
  double factor = WEIGHTED ? band.factors[u] : 1.0;

#pragma unroll
  for (uint32_t i = 0; i < BAND_GROUPS; i++) {
    uint32_t group = band.first + i, at = band.begin + u;
    const double *from = shared.sums + group * n_sums<ALL> * columns + at;

    if (group >= band.end)
      break;
    ImkShcentroidGroup g = {from[0], from[columns]};

    imk_shcentroid_add_group (&c, &g, false, group * ROWS);
    if (ALL) {
      g.q = from[2 * columns];
      g.q1 = from[3 * columns];
      g.q2 = from[4 * columns];
      g.raw = CUT || WEIGHTED ? from[5 * columns] : g.p;
      imk_shcentroid_add_group_spread (&c, &g, false, group * ROWS);
      at += group * columns;
      c.max = shared.max[at] > c.max ? shared.max[at] : c.max;
      c.max_sample = max (c.max_sample, shared.max_sample[at]);
    }
  }
  imk_shcentroid_end_column (&c, WEIGHTED, factor, u);
  if (ALL)
    imk_shcentroid_end_column_spread (&c, WEIGHTED, factor, u);
  return c;
}

/* Lane @lane of IMK_SHCENTROID_LANES. */
template <bool ALL, bool WEIGHTED, bool CUT>
static __device__ __forceinline__ ImkShcentroidReals
sum_lane (
    const Shared &shared, const Band &band, uint32_t columns, uint32_t lane)
{
  ImkShcentroidReals s = no_sums ();

  for (uint32_t u = lane; u < band.width; u += IMK_SHCENTROID_LANES)
    add_column_to_lane<ALL> (
        sum_column<ALL, WEIGHTED, CUT> (shared, band, columns, u), &s);
  return s;
}

/* What lane @lane of @lanes holds when those above have been halved: lanes
 * without a column are 0 and need not be added. */
template <bool ALL, bool WEIGHTED, bool CUT>
static __device__ __forceinline__ ImkShcentroidReals
sum_lanes (const Shared &shared, const Band &band, uint32_t columns,
    uint32_t lane, uint32_t lanes)
{
  ImkShcentroidReals s =
      sum_lane<ALL, WEIGHTED, CUT> (shared, band, columns, lane);

  if (lanes == 8 && band.width > 8)
    add_column_to_lane<ALL> (
        sum_lane<ALL, WEIGHTED, CUT> (shared, band, columns, lane + 8), &s);
  return s;
}

/* All threads go through all passes: they shuffle together. */
template <bool ALL, bool WEIGHTED, bool CUT>
static __device__ __forceinline__ void
sum_cells (const Task &task, uint32_t skipped, uint32_t columns,
    const Shared &shared)
{
  uint32_t lane = threadIdx.x % task.lanes;
  uint32_t cells_a_pass = blockDim.x / task.lanes;

  for (uint32_t pass = 0; pass < task.n_cells; pass += cells_a_pass) {
    uint32_t i = pass + threadIdx.x / task.lanes;
    bool real = i < task.n_cells;
    const ImkShcentroidRect &cell = shared.rects[real ? i : 0];
    uint32_t left = cell.x - task.x;
    ImkShcentroidReals sums = no_sums ();
    Band band = {left + skipped, real ? cell.width : 0u, 0, 0,
        shared.weights + left + i * cell.height};

    for (; band.first < task.groups; band.first += BAND_GROUPS) {
      ImkShcentroidReals s;

      band.end = min (band.first + BAND_GROUPS, (uint32_t) task.groups);
      s = sum_lanes<ALL, WEIGHTED, CUT> (
          shared, band, columns, lane, task.lanes);
      halve_all<ALL> (&s, task.lanes);
      add_band (&sums, s);
    }
    if (real && lane == 0)
      shared.cells[i] = sums;
  }
}

template <bool ALL>
static __device__ __forceinline__ void
finish_cell (const ChainArguments &a, uint32_t index,
    const ImkShcentroidRect &cell, const ImkShcentroidReals &sums, double *to)
{
  const ImkShcentroidParams &params = a.common.params;
  ImkShcentroidWindow w = {cell.x, cell.y, cell.width, cell.height, false};
  ImkShcentroidTrack track = {};
  ImkShcentroidRow row;

  bool valid = imk_shcentroid_finish_real (&row, &sums, &cell, &w, &params,
      ALL ? IMK_SHCENTROID_FIELDS_ALL : IMK_SHCENTROID_FIELDS_XY,
      a.common.fresh, a.common.held + 2 * (size_t) index, &track);

  if (params.remove_tilt)
    a.slopes[index] = imk_shcentroid_slope (&row, valid, params.invalid_policy);
  keep_row<ALL> (a.common, row, to);
}

/* ------------------------------------------------------------------------
 * The kernels. */

/* The weights are under way to shared memory while the frame is read. */
static __device__ __forceinline__ void
fetch_weights (const ChainArguments &a, const Task &task, double *to)
{
  const double *from = a.weights + task.weights;

  for (uint32_t i = threadIdx.x; i < task.n_weights; i += blockDim.x)
    __pipeline_memcpy_async (to + i, from + i, sizeof (*from));
  __pipeline_commit ();
}

template <typename Sample, bool CALIBRATED, bool ALL, bool WEIGHTED, bool CUT>
static __global__ void
__launch_bounds__ (MAX_THREADS)
    measure_reals (const __grid_constant__ ChainArguments a)
{
  constexpr uint32_t N = Values<Sample>::N;
  const ImkShcentroidParams &params = a.common.params;
  Task task = a.common.tasks[blockIdx.x];
  uint32_t columns = task.words * N, skipped = task.x - task.first_word * N;
  Shared shared = shared_layout<ALL> (task, columns);
  Part part = part_of (a.common, task);
  bool active = part.group < task.groups;
  bool leveled = CUT && imk_shcentroid_is_leveled (&params);
  uint16_t cells[N] = {};
  ImkShcentroidLevel level = {};
  Values<Sample> values;

  fetch_rects (a.common, task, shared.rects);
  if (WEIGHTED)
    fetch_weights (a, task, shared.weights);
  if (active && (CUT || WEIGHTED))
    find_cells<Sample> (a, task, part, cells);
  if (CUT && !leveled) /* only cells of a map have their own, and a task each */
    level = imk_shcentroid_level (&params, a.common.rects[task.first].threshold,
        0.0f, 0.0f, -imk_shcentroid_infinity ());
  if (active)
    read_values<Sample, CALIBRATED> (a, task, part, values);
  if (active && leveled)
    store_extremes<Sample> (
        part, values, (part.word - task.first_word) * N, columns, shared);
  __pipeline_wait_prior (0);
  if (CUT || WEIGHTED)
    __syncthreads ();
  if (leveled) {
    find_levels (a, task, skipped, columns, shared);
    __syncthreads ();
  }
  if (active)
    sum_columns<Sample, CALIBRATED, ALL, WEIGHTED, CUT> (
        a, task, part, values, columns, leveled, cells, level, shared);
  __syncthreads ();
  sum_cells<ALL, WEIGHTED, CUT> (task, skipped, columns, shared);
  __syncthreads ();
  for (uint32_t i = threadIdx.x; i < task.n_cells; i += blockDim.x)
    finish_cell<ALL> (a, task.first + i, shared.rects[i], shared.cells[i],
        shared.rows + i * row_length (ALL));
  __syncthreads ();
  store_rows<ALL> (a.common, task.first, task.n_cells, shared.rows);
}

/* The weights about the references, which are the same in every frame. */
static __global__ void
__launch_bounds__ (CHAIN_THREADS) make_weights (const Task *tasks,
    const ImkShcentroidRect *rects, double sigma, double *weights)
{
  Task task = tasks[blockIdx.x];

  for (uint32_t i = threadIdx.x / 32; i < task.n_cells; i += blockDim.x / 32) {
    ImkShcentroidRect cell = rects[task.first + i];
    double x = cell.x - cell.ref_x, y = cell.y - cell.ref_y;
    double *to =
        weights + task.weights + (cell.x - task.x) + i * cell.height;

    for (uint32_t k = threadIdx.x % 32; k < cell.width; k += 32)
      to[k] = imk_shcentroid_weight (x + (double) k, sigma);
    for (uint32_t k = threadIdx.x % 32; k < cell.height; k += 32)
      to[cell.width + k] = imk_shcentroid_weight (y + (double) k, sigma);
  }
}

} /* namespace reals */
