/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The chain on the GPU where cells stay, a pixel is worth its value times a
 * weight, and a block can hold a cell: the common case. As in
 * shcentroid-integers.cuh a block owns some cells side by side. A thread owns
 * COLUMNS columns of a group of rows, which it reads at once and keeps; column
 * sums meet in shared memory. What a thread does is straight code and little of
 * it: it is done once a frame, so that its way from the memory of the device is
 * a good part of the time that it takes. */
#pragma once

#include "shcentroid/cuda/shcentroid-chain.cuh"

namespace reals
{

enum {
  ROWS = IMK_SHCENTROID_GROUP_ROWS,
  COLUMNS = 2, /* their dark and flat are 16 bytes */
  BAND_GROUPS = (int) IMK_SHCENTROID_BAND_ROWS / (int) ROWS,
  MOST_THREADS = 384, /* of a block; so many registers a thread that 2 such */
  MOST_BLOCKS = 2,    /* blocks, or more smaller ones, share a multiprocessor */
};
static_assert ((int) ROWS == (int) BATCH, "a group is read at once");

/* Threads that share a word of a row. */
static constexpr __host__ __device__ uint32_t
shares (uint32_t sample_size)
{
  return 4 / (sample_size * COLUMNS);
}

/* Of a column in a group, by index: p, p1, with ALL q, q1, q2, and raw, which
 * is p where nothing is cut and nothing weighted. */
template <bool ALL> constexpr uint32_t n_sums = ALL ? 6 : 2;

/* What decides about the pixels of a cell: ImkShcentroidLevel, compared in
 * float32, like which the pixels are. */
struct Level {
  double pedestal;
  float least;
};

static __device__ __forceinline__ Level
level_of (const ImkShcentroidLevel &level)
{
  return {level.pedestal, __double2float_ru (level.least)};
}

/* Of a cell, without ALL. */
struct Position {
  double p, pu, py;
};

template <bool ALL> struct CellSums {
  using Type = ImkShcentroidReals;
};
template <> struct CellSums<false> {
  using Type = Position;
};

/* @more: of another band of the same cell */
static __device__ __forceinline__ void
keep_sums (const ImkShcentroidReals &sums, bool more, ImkShcentroidReals *to)
{
  if (more)
    add_reals<true> (sums, to);
  else
    *to = sums;
}

static __device__ __forceinline__ void
keep_sums (const ImkShcentroidReals &sums, bool more, Position *to)
{
  Position before = more ? *to : Position ();

  *to = {before.p + sums.p, before.pu + sums.pu, before.py + sums.py};
}

static __device__ __forceinline__ ImkShcentroidReals
kept_sums (const ImkShcentroidReals &from)
{
  return from;
}

static __device__ __forceinline__ ImkShcentroidReals
kept_sums (const Position &from)
{
  return {from.p, from.pu, from.py};
}

/* Columns are those of the words that the task touches. */
template <bool ALL> struct Shared {
  ImkShcentroidRect *rects;
  double *rows;
  typename CellSums<ALL>::Type *cells;
  Level *levels;
  double *weights; /* of the columns of a cell, then of its rows */
  double *sums;    /* [group][sum][column]; before them, extremes, float */
  float *max;      /* [group][column], with ALL, like the next */
  uint32_t *max_sample;
};

static uint64_t
shared_size (bool all, uint64_t n_cells, uint64_t height, uint64_t groups,
    uint64_t columns)
{
  return n_cells *
             (sizeof (ImkShcentroidRect) + row_length (all) * sizeof (double) +
                 (all ? sizeof (CellSums<true>::Type)
                      : sizeof (CellSums<false>::Type)) +
                 sizeof (Level)) +
         (columns + n_cells * height) * sizeof (double) +
         groups * columns *
             ((all ? n_sums<true> : n_sums<false>) *sizeof (double) +
                 (all ? sizeof (float) + sizeof (uint32_t) : 0));
}

template <bool ALL>
static __device__ Shared<ALL>
shared_layout (const Task &task, uint32_t columns)
{
  extern __shared__ double memory[];
  Shared<ALL> s;

  s.rects = (ImkShcentroidRect *) memory;
  s.rows = (double *) (s.rects + task.n_cells);
  s.cells = (typename CellSums<ALL>::Type *) (s.rows +
                                              task.n_cells * row_length (ALL));
  s.levels = (Level *) (s.cells + task.n_cells);
  s.weights = (double *) (s.levels + task.n_cells);
  s.sums = s.weights + task.n_weights;
  s.max = (float *) (s.sums + task.groups * n_sums<ALL> * columns);
  s.max_sample = (uint32_t *) (s.max + (ALL ? task.groups * columns : 0));
  return s;
}

/* Lanes that share a cell. Each has two columns at most where they are fewer
 * than IMK_SHCENTROID_LANES: the order of the additions is the same. */
static uint32_t
lanes_for (uint32_t widest)
{
  return widest <= 4 ? 2 : widest <= 16 ? 8 : 32;
}

/* ------------------------------------------------------------------------
 * The part of a thread. */

/* COLUMNS columns of a group of rows. */
struct Place {
  Part part;
  uint32_t column; /* of those of the words of the task */
};

template <typename Sample>
static __device__ __forceinline__ Place
place_of (const Arguments &a, const Task &task, uint32_t index)
{
  constexpr uint32_t n = shares (sizeof (Sample));
  uint32_t slots = task.words * n, slot = index % slots;

  return {part_of (a, task, index / slots, slot / n), slot * COLUMNS};
}

template <typename Sample>
static __device__ __forceinline__ uint32_t
n_places (const Task &task)
{
  return task.words * shares (sizeof (Sample)) * task.groups;
}

/* Rows beyond those of the part are no numbers where anything is cut, else 0.
 */
struct Values {
  float v[ROWS][COLUMNS], flat[ROWS][COLUMNS];
  uint32_t samples[ROWS][COLUMNS];
  uint16_t cells[COLUMNS]; /* of the task, that they are in */
};

/* Two pixels; 0 unless @wanted. See load_word (). */
static __device__ __forceinline__ float4
load_pixels (const float4 *p, bool wanted)
{
  float4 value;

  asm("{\n"
      "  .reg .pred wanted;\n"
      "  setp.ne.u32 wanted, %5, 0;\n"
      "  mov.b32 %0, 0;\n"
      "  mov.b32 %1, 0;\n"
      "  mov.b32 %2, 0;\n"
      "  mov.b32 %3, 0;\n"
      "  @wanted ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];\n"
      "}\n"
      : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
      : "l"(p), "r"((uint32_t) wanted));
  return value;
}

/* All reads in flight together. @skipped: columns of the first word that are
 * left of the task */
template <typename Sample, bool CALIBRATED, bool CUT, bool WEIGHTED>
static __device__ __forceinline__ void
read_values (const ChainArguments &a, const Task &task, const Place &place,
    uint32_t skipped, Values &values)
{
  const Part &part = place.part;
  uint32_t y = task.y + part.group * task.group_rows;
  uint32_t shift = place.column * 8 * sizeof (Sample) % 32;
  const float4 *pixels =
      (const float4 *) (a.pixels + (size_t) y * a.pixel_stride) +
      (task.first_word * (4 / sizeof (Sample)) + place.column) / COLUMNS;
  float4 pairs[CALIBRATED ? ROWS : 1];
  uint32_t words[ROWS];

  read_part (a.common, part, 0, words);
#pragma unroll
  for (uint32_t i = 0; CALIBRATED && i < ROWS; i++)
    pairs[i] = load_pixels (pixels + i * (a.pixel_stride / 2), i < part.n_rows);
#pragma unroll
  for (uint32_t k = 0; (CUT || WEIGHTED) && k < COLUMNS; k++) {
    uint32_t x = place.column + k - skipped; /* wraps around left of it */

    values.cells[k] = a.cell_of && x < task.width
                          ? (uint16_t) (a.cell_of[task.x + x] - task.column)
                          : 0;
  }
#pragma unroll
  for (uint32_t i = 0; i < ROWS; i++) {
    bool real = i < part.n_rows;

    if (i >= task.group_rows)
      continue;
#pragma unroll
    for (uint32_t k = 0; k < COLUMNS; k++) {
      uint32_t sample = sample_of<Sample> (words[i] >> shift, k);
      float value = (float) sample;

      if (a.lut)
        value = real ? __ldg (a.lut + sample) : 0.0f;
      values.flat[i][k] = 1.0f;
      if (CALIBRATED) {
        ImkShcentroidPixel pixel = {
            k ? pairs[i].z : pairs[i].x, k ? pairs[i].w : pairs[i].y};

        value = imk_shcentroid_calibrate (value, pixel);
        values.flat[i][k] = pixel.flat;
      }
      values.v[i][k] = CUT && !real ? (float) imk_shcentroid_nan () : value;
      values.samples[i][k] = sample;
    }
  }
}

/* To sums: [group][smallest, largest][column]. */
template <bool ALL>
static __device__ __forceinline__ void
store_extremes (const Task &task, const Place &place, const Values &values,
    uint32_t columns, const Shared<ALL> &shared)
{
  float *to =
      (float *) shared.sums + 2 * place.part.group * columns + place.column;

#pragma unroll
  for (uint32_t k = 0; k < COLUMNS; k++) {
    float least = 3e38f, most = -3e38f;

#pragma unroll
    for (uint32_t i = 0; i < ROWS; i++)
      if (i < task.group_rows) {
        least = fminf (least, values.v[i][k]);
        most = fmaxf (most, values.v[i][k]);
      }
    to[k] = least;
    to[columns + k] = most;
  }
}

/* What decides about the pixels of a column. */
struct ColumnRule {
  Level level;
  const double *weights; /* of the rows of the part */
};

/* @cell: of the task. @level: that of all cells but under LEVELED */
template <bool ALL>
static __device__ __forceinline__ ColumnRule
rule_of (const Shared<ALL> &shared, const Task &task, uint32_t group,
    uint32_t cell, const Level &level, bool leveled)
{
  const ImkShcentroidRect &rect = shared.rects[cell];
  ColumnRule rule;

  rule.level = leveled ? shared.levels[cell] : level;
  rule.weights = shared.weights + (rect.x - task.x) + cell * rect.height +
                 rect.width + group * task.group_rows;
  return rule;
}

/* The sums of a column in a group. */
struct RealColumn {
  ImkShcentroidGroup g;
  float most;
  uint32_t max_sample;
};

/* The pixel in row @i of the part, which is @real. */
template <bool CALIBRATED, bool ALL, bool WEIGHTED, bool CUT>
static __device__ __forceinline__ void
add_value (const ImkShcentroidNoise &noise, const ColumnRule &rule,
    const Values &values, uint32_t i, uint32_t k, bool real, RealColumn *s)
{
  float value = values.v[i][k];
  double v = value, weight = WEIGHTED ? rule.weights[real ? i : 0] : 1.0;
  double pedestal = CUT ? rule.level.pedestal : 0.0;
  bool used = CUT ? value >= rule.level.least : true;
  double p = imk_shcentroid_part (v, used, pedestal, weight, 1.0);

  imk_shcentroid_add_part (&s->g, p, false, 0.0);
  if (!ALL)
    return;

  /* imk_shcentroid_spread (): what is 0 in most runs is not computed */
  double flat = values.flat[i][k], light = value > 0.0f ? value : 0.0f;
  double q = CALIBRATED ? flat * light : light;

  if (noise.read > 0.0)
    q += CUT || real ? CALIBRATED ? flat * flat * noise.read : noise.read : 0.0;
  if (WEIGHTED)
    q = weight * weight * q;
  imk_shcentroid_add_spread (&s->g, used ? q : 0.0, false, 0.0);
  bool good = CUT ? value == value : real;
  if (CUT || WEIGHTED)
    s->g.raw += CUT && !good ? 0.0 : v;
  if (good) {
    s->most = fmaxf (s->most, value);
    s->max_sample = max (s->max_sample, values.samples[i][k]);
  }
}

/* The columns side by side, to the sums in shared memory. */
template <bool CALIBRATED, bool ALL, bool WEIGHTED, bool CUT>
static __device__ __forceinline__ void
sum_columns (const ChainArguments &a, const Task &task, const Place &place,
    const Values &values, uint32_t columns, bool leveled, const Level &level,
    const Shared<ALL> &shared)
{
  uint32_t group = place.part.group;
  double *to = shared.sums + group * n_sums<ALL> * columns + place.column;
  uint32_t at = group * columns + place.column;
  ColumnRule rules[COLUMNS] = {};
  RealColumn sums[COLUMNS] = {};

#pragma unroll
  for (uint32_t k = 0; k < COLUMNS; k++) {
    sums[k].most = -3.4e38f;
    if (CUT || WEIGHTED)
      rules[k] =
          rule_of<ALL> (shared, task, group, values.cells[k], level, leveled);
  }
#pragma unroll
  for (int i = ROWS - 1; i >= 0; i--) {
    if (i >= task.group_rows)
      continue;
#pragma unroll
    for (uint32_t k = 0; k < COLUMNS; k++)
      add_value<CALIBRATED, ALL, WEIGHTED, CUT> (
          a.noise, rules[k], values, i, k, i < place.part.n_rows, &sums[k]);
  }
#pragma unroll
  for (uint32_t k = 0; k < COLUMNS; k++) {
    const ImkShcentroidGroup &g = sums[k].g;

    to[k] = g.p;
    to[columns + k] = g.p1;
    if (ALL) {
      to[2 * columns + k] = g.q;
      to[3 * columns + k] = g.q1;
      to[4 * columns + k] = g.q2;
      if (CUT || WEIGHTED)
        to[5 * columns + k] = g.raw;
      shared.max[at + k] = sums[k].most;
      shared.max_sample[at + k] = sums[k].max_sample;
    }
  }
}

/* ------------------------------------------------------------------------
 * Cells. */

/* Thresholds that the pixels of a cell decide. */
template <bool ALL>
static __device__ __forceinline__ void
find_levels (const ChainArguments &a, const Task &task, uint32_t skipped,
    uint32_t columns, const Shared<ALL> &shared)
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
        least = fminf (least, extremes[2 * group * columns + x]);
        most = fmaxf (most, extremes[(2 * group + 1) * columns + x]);
      }
    for (uint32_t step = task.lanes / 2; step; step /= 2) {
      least =
          fminf (least, __shfl_xor_sync (0xffffffff, least, step, task.lanes));
      most = fmaxf (most, __shfl_xor_sync (0xffffffff, most, step, task.lanes));
    }
    if (real && lane == 0)
      shared.levels[i] = level_of (imk_shcentroid_level (&a.common.params,
          cell.threshold, least, most, -imk_shcentroid_infinity ()));
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
sum_column (const Task &task, const Shared<ALL> &shared, const Band &band,
    uint32_t columns, uint32_t u)
{
  ImkShcentroidReals c = no_sums ();
  double factor = WEIGHTED ? band.factors[u] : 1.0;

#pragma unroll 2
  for (uint32_t group = band.first; group < band.end; group++) {
    uint32_t at = band.begin + u, y = group * task.group_rows;
    const double *from = shared.sums + group * n_sums<ALL> * columns + at;
    ImkShcentroidGroup g = {from[0], from[columns]};

    imk_shcentroid_add_group (&c, &g, false, y);
    if (ALL) {
      g.q = from[2 * columns];
      g.q1 = from[3 * columns];
      g.q2 = from[4 * columns];
      g.raw = CUT || WEIGHTED ? from[5 * columns] : g.p;
      imk_shcentroid_add_group_spread (&c, &g, false, y);
      at += group * columns;
      c.max = fmaxf (c.max, shared.max[at]);
      c.max_sample = fmaxf (c.max_sample, (float) shared.max_sample[at]);
    }
  }
  imk_shcentroid_end_column (&c, WEIGHTED, factor, u);
  if (ALL)
    imk_shcentroid_end_column_spread (&c, WEIGHTED, factor, u);
  return c;
}

/* All threads go through all passes: they shuffle together. A lane holds what
 * the lane of that number does when those above have been halved: lanes without
 * a column are 0 and need not be added. Sums of bands meet in shared memory,
 * where they cost no registers. */
template <bool ALL, bool WEIGHTED, bool CUT>
static __device__ __forceinline__ void
sum_cells (const Task &task, uint32_t skipped, uint32_t columns,
    const Shared<ALL> &shared)
{
  uint32_t lane = threadIdx.x % task.lanes;
  uint32_t cells_a_pass = blockDim.x / task.lanes;

  for (uint32_t pass = 0; pass < task.n_cells; pass += cells_a_pass) {
    uint32_t i = pass + threadIdx.x / task.lanes;
    bool real = i < task.n_cells;
    const ImkShcentroidRect &cell = shared.rects[real ? i : 0];
    uint32_t left = cell.x - task.x;
    Band band = {left + skipped, real ? cell.width : 0u, 0, 0,
        shared.weights + left + i * cell.height};

    for (; band.first < task.groups; band.first += BAND_GROUPS) {
      ImkShcentroidReals s = no_sums ();

      band.end = min (band.first + BAND_GROUPS, (uint32_t) task.groups);
      for (uint32_t u = lane; u < band.width; u += task.lanes)
        add_reals<ALL> (
            sum_column<ALL, WEIGHTED, CUT> (task, shared, band, columns, u),
            &s);
      halve_all<ALL> (&s, task.lanes);
      if (real && lane == 0)
        keep_sums (s, band.first > 0, &shared.cells[i]);
    }
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
  ImkShcentroidPull pull = {}; /* there are no iterations */
  double *held = a.common.held + 2 * (size_t) index;
  ImkShcentroidRow row;

  imk_shcentroid_finish_real (&row, &sums, &pull, &cell, &w, &params, &a.noise,
      ALL ? IMK_SHCENTROID_FIELDS_ALL : IMK_SHCENTROID_FIELDS_XY,
      a.common.fresh, held, &track, &a.slopes[index]);
  keep_row<ALL> (a.common, row, index, to);
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
__launch_bounds__ (MOST_THREADS, MOST_BLOCKS)
    measure_reals (const __grid_constant__ ChainArguments a)
{
  constexpr uint32_t N = 4 / sizeof (Sample);
  const ImkShcentroidParams &params = a.common.params;
  Task task = load_task (a.common.tasks + blockIdx.x);
  uint32_t columns = task.words * N, skipped = task.x - task.first_word * N;
  uint32_t n = n_places<Sample> (task);
  Shared<ALL> shared = shared_layout<ALL> (task, columns);
  bool leveled = CUT && imk_shcentroid_is_leveled (&params);
  bool keeps = n <= blockDim.x; /* what it has read for the levels */
  Level level = {};
  Values values;

  fetch_rects (a.common, task, shared.rects);
  if (WEIGHTED)
    fetch_weights (a, task, shared.weights);
  if (CUT && !leveled) /* only cells of a map have their own, and a task each */
    level = level_of (
        imk_shcentroid_level (&params, a.common.rects[task.first].threshold,
            0.0f, 0.0f, -imk_shcentroid_infinity ()));
  for (uint32_t pass = leveled ? 0 : 1; pass < 2; pass++) {
    bool begins = pass == (leveled ? 0 : 1);

    for (uint32_t first = 0; first < n; first += blockDim.x) {
      bool active = first + threadIdx.x < n;
      Place place =
          place_of<Sample> (a.common, task, active ? first + threadIdx.x : 0);

      if (active && (begins || !keeps))
        read_values<Sample, CALIBRATED, CUT, WEIGHTED> (
            a, task, place, skipped, values);
      if (begins && first == 0) {
        __pipeline_wait_prior (0);
        if (CUT || WEIGHTED)
          __syncthreads ();
      }
      if (active && pass == 0)
        store_extremes<ALL> (task, place, values, columns, shared);
      else if (active)
        sum_columns<CALIBRATED, ALL, WEIGHTED, CUT> (
            a, task, place, values, columns, leveled, level, shared);
    }
    __syncthreads ();
    if (pass == 0) {
      find_levels<ALL> (a, task, skipped, columns, shared);
      __syncthreads ();
    }
  }
  sum_cells<ALL, WEIGHTED, CUT> (task, skipped, columns, shared);
  __syncthreads ();
  for (uint32_t i = threadIdx.x; i < task.n_cells; i += blockDim.x)
    finish_cell<ALL> (a, task.first + i, shared.rects[i],
        kept_sums (shared.cells[i]), shared.rows + i * row_length (ALL));
  __syncthreads ();
  store_rows<ALL> (a.common, task.first, task.n_cells, shared.rows);
}

/* The weights about the references, which are the same in every frame. */
static __global__ void
__launch_bounds__ (CHAIN_THREADS) make_weights (const Task *tasks,
    const ImkShcentroidRect *rects, double sigma, double *weights)
{
  Task task = load_task (tasks + blockIdx.x);

  for (uint32_t i = threadIdx.x / 32; i < task.n_cells; i += blockDim.x / 32) {
    ImkShcentroidRect cell = rects[task.first + i];
    double x = cell.x - cell.ref_x, y = cell.y - cell.ref_y;
    double *to = weights + task.weights + (cell.x - task.x) + i * cell.height;

    for (uint32_t k = threadIdx.x % 32; k < cell.width; k += 32)
      to[k] = imk_shcentroid_weight (x + (double) k, sigma);
    for (uint32_t k = threadIdx.x % 32; k < cell.height; k += 32)
      to[cell.width + k] = imk_shcentroid_weight (y + (double) k, sigma);
  }
}

} /* namespace reals */
