/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One launch a frame. A block owns a task: some cells side by side, or a piece
 * of a cell that is too much for one block. Like on the CPU it sums up columns
 * first: a thread owns one 32-bit word of a row, so that a warp reads 128 bytes
 * at a time and every byte once, and goes down the rows with many reads in
 * flight; the column sums meet in shared memory, where a few lanes a cell
 * finish them. Mocci et al. 2020, algorithm 2, reduces along the rows instead
 * and ends at cells of 125 pixels. */
#include <cstdlib>
#include <cstring>
#include <cuda_pipeline.h>

#include "core/cuda-check.h"
#include "shcentroid/shcentroid-correlation.h"

enum {
  MAX_THREADS = 512,
  MAX_WORDS = 256,        /* of a row that a task covers */
  MAX_SHARED = 48 * 1024, /* bytes; more would have to be asked for */
  MAX_GROUP_ROWS = 56,    /* 65535 n^3 / 3 < 2^32 */
  GOOD_GROUP_ROWS = 4,    /* rows that are worth a group of threads */
  BATCH = 8,              /* reads in flight a thread */
  PIECE_COLUMNS = 512,    /* of a cell that is cut into pieces */
  COLUMNS_PER_LANE = 6,   /* that one lane adds up to a cell */
};

/* What a block does. Its words times its groups are at most its threads. */
struct Task {
  uint32_t first, n_cells; /* cells; one when it is a piece */
  uint32_t n_parts;        /* pieces of this cell */
  uint32_t scratch;        /* its index there when it is a piece */
  uint16_t x, y, width, height;
  uint16_t first_word, words;  /* aligned words of a row */
  uint16_t groups, group_rows; /* rows are dealt to groups of threads */
  uint32_t lanes;              /* that work on a cell; a power of 2 */
};

/* Where the pieces of a cell meet; all zero between frames. */
struct Scratch {
  ImkShcentroidSums sums;
  unsigned int arrived;
};

struct Arguments {
  const uint8_t *frame;
  size_t stride;
  uint32_t row_size; /* bytes */
  bool aligned;      /* rows start at multiples of 4 bytes */

  void *out;
  size_t out_stride;
  bool f64;

  const Task *tasks;
  const ImkShcentroidRect *rects;
  Scratch *scratch;
  double *held;
  uint32_t n_rects;
  ImkShcentroidFields fields;
  bool fresh;
  ImkShcentroidParams params;
};

/* Correlation, all on the device; nothing of it without templates. */
struct Matching {
  ImkShcentroidTemplates templates; /* without what it points to */
  bool from_frame;
  float *patterns;
  ImkShcentroidTotal *totals;
  ImkShcentroidAnchor *anchors;
  uint32_t width, height; /* of the largest window */
  uint8_t *memory;        /* of blocks that do not fit into shared memory */
  uint32_t n_blocks, layout_size; /* that it is for */
};

struct Cuda {
  Arguments arguments; /* all but the images */
  void *memory;        /* on the device, all of it */
  uint32_t n_tasks, n_threads;
  uint32_t shared_size; /* bytes a block */
  bool is_map, is_u8;

  ImkShcentroidPixel *pixels; /* on the device; null for none, like lut */
  float *lut;
  ImkShcentroidTrack *tracks;
  ImkShcentroidSlope *slopes;
  uint32_t width, height;      /* of the frame */
  uint32_t lanes, chain_warps; /* of a team of the chain; warps a block */
  bool wide, lost;
  Matching matching;
};

/* ------------------------------------------------------------------------
 * Shared memory: rects, rows of results, column sums. */

/* Sums of a column, by index: v, y v, with ALL y^2 v and the largest; then,
 * under a threshold, 1, y, with ALL y^2 and the sum of all samples. */
template <bool ALL, bool CUT>
constexpr uint32_t n_sums = (ALL ? 4 : 2) << (CUT ? 1 : 0);

static constexpr __host__ __device__ uint32_t
row_length (bool all)
{
  return all ? (uint32_t) IMK_SHCENTROID_N_FIELDS : 2;
}

struct Shared {
  ImkShcentroidRect *rects;
  double *rows;
  uint32_t *sums; /* [group][sum][column] */
};

static __device__ Shared
shared_layout (const Task &task, uint32_t length)
{
  extern __shared__ double memory[];
  Shared s;

  s.rects = (ImkShcentroidRect *) memory;
  s.rows = (double *) (s.rects + task.n_cells);
  s.sums = (uint32_t *) (s.rows + task.n_cells * length);
  return s;
}

/* ------------------------------------------------------------------------
 * From pixels to columns. */

/* 0 unless @wanted. A predicated load, because the compiler makes a branch of
 * `wanted ? *p : 0`, and then waits for each load before it starts another. */
static __device__ __forceinline__ uint32_t
load_word (const uint8_t *p, bool wanted)
{
  uint32_t value;

  asm("{\n"
      "  .reg .pred wanted;\n"
      "  setp.ne.u32 wanted, %2, 0;\n"
      "  mov.u32 %0, 0;\n"
      "  @wanted ld.global.nc.u32 %0, [%1];\n"
      "}\n"
      : "=r"(value)
      : "l"(p), "r"((uint32_t) wanted));
  return value;
}

static __device__ __forceinline__ uint32_t
load_byte (const uint8_t *p, bool wanted)
{
  uint32_t value;

  asm("{\n"
      "  .reg .pred wanted;\n"
      "  setp.ne.u32 wanted, %2, 0;\n"
      "  mov.u32 %0, 0;\n"
      "  @wanted ld.global.nc.u8 %0, [%1];\n"
      "}\n"
      : "=r"(value)
      : "l"(p), "r"((uint32_t) wanted));
  return value;
}

/* One word of each of @n rows, all reads in flight together; 0 below them. */
static __device__ __forceinline__ void
read_words (const uint8_t *p, size_t stride, uint32_t n, uint32_t words[BATCH])
{
#pragma unroll
  for (uint32_t i = 0; i < BATCH; i++)
    words[i] = load_word (p + i * stride, i < n);
}

/* The same bytewise, where words are not aligned or a word would reach beyond
 * the @left bytes of the row and so, in the last row, beyond the frame. */
static __device__ __forceinline__ void
read_bytes (const uint8_t *p, size_t stride, uint32_t n, uint32_t left,
    uint32_t words[BATCH])
{
#pragma unroll
  for (uint32_t i = 0; i < BATCH; i++) {
    const uint8_t *row = p + i * stride;

    words[i] = load_byte (row, i < n) |
               load_byte (row + 1, i < n && left > 1) << 8 |
               load_byte (row + 2, i < n && left > 2) << 16 |
               load_byte (row + 3, i < n && left > 3) << 24;
  }
}

template <typename Sample, bool ALL, bool CUT> struct ColumnSums {
  static constexpr uint32_t N = 4 / sizeof (Sample);

  uint32_t v[N] = {}, vy[N] = {}, vyy[N] = {}, max[N] = {};
  uint32_t n[N] = {}, ny[N] = {}, nyy[N] = {}, raw[N] = {};

  /* The samples of one word in row @y; @real: not beyond the last row. */
  __device__ __forceinline__ void
  add (uint32_t word, uint32_t y, int below, bool real)
  {
#pragma unroll
    for (uint32_t k = 0; k < N; k++) {
      uint32_t value = (Sample) (word >> (8 * sizeof (Sample) * k));

      if (ALL)
        max[k] = ::max (max[k], value);
      if (CUT) {
        uint32_t used = real && (int) value > below;

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

/* The part of a thread: one word wide, a group of rows high. */
template <typename Sample, bool ALL, bool CUT>
static __device__ __forceinline__ void
sum_columns (const Arguments &a, const Task &task, int below, uint32_t *sums)
{
  using Columns = ColumnSums<Sample, ALL, CUT>;
  uint32_t group = threadIdx.x / task.words;
  uint32_t word = task.first_word + threadIdx.x % task.words;
  uint32_t first = group * task.group_rows;
  Columns columns;

  if (group >= task.groups)
    return;
  uint32_t n = min ((uint32_t) task.group_rows, task.height - first);
  uint32_t left = a.row_size - 4 * word;
  bool whole = a.aligned && left >= 4;
  const uint8_t *p = a.frame + (task.y + first) * a.stride + 4 * word;

  for (uint32_t y = 0; y < n; y += BATCH, p += BATCH * a.stride) {
    uint32_t words[BATCH];

    if (whole)
      read_words (p, a.stride, n - y, words);
    else
      read_bytes (p, a.stride, n - y, left, words);
#pragma unroll
    for (uint32_t i = 0; i < BATCH; i++)
      columns.add (words[i], y + i, below, y + i < n);
  }

  sums += group * n_sums<ALL, CUT> * task.width;
#pragma unroll
  for (uint32_t k = 0; k < Columns::N; k++) {
    /* wraps around left of the task */
    uint32_t column = word * Columns::N + k - task.x;

    if (column < task.width)
      columns.store (k, sums + column, task.width);
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
  return true;
}

/* What is reported of @row. */
template <bool ALL>
static __device__ __forceinline__ void
keep_row (const Arguments &a, const ImkShcentroidRow &row, double *to)
{
  if (ALL) {
    for (uint32_t i = 0; i < row_length (true); i++)
      to[i] = row.field[i];
  } else {
    bool slopes = a.fields == IMK_SHCENTROID_FIELDS_SLOPES;

    to[0] = slopes ? row.field[IMK_SHCENTROID_DX] : row.field[IMK_SHCENTROID_X];
    to[1] = slopes ? row.field[IMK_SHCENTROID_DY] : row.field[IMK_SHCENTROID_Y];
  }
}

template <bool ALL, bool CUT>
static __device__ __forceinline__ void
finish_cell (const Arguments &a, ImkShcentroidSums *s,
    const ImkShcentroidRect &cell, uint32_t index, double *to)
{
  ImkShcentroidRow row;

  if (!CUT) {
    imk_shcentroid_fill_geometry (s, cell.width, cell.height);
    s->raw = s->v;
  }
  imk_shcentroid_finish (&row, s, &cell, &a.params,
      ALL ? IMK_SHCENTROID_FIELDS_ALL : IMK_SHCENTROID_FIELDS_XY, a.fresh,
      a.held + 2 * (size_t) index);
  keep_row<ALL> (a, row, to);
}

/* Returns, to all threads: whether the rows of the task are complete */
template <bool ALL, bool CUT>
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
      finish_cell<ALL, CUT> (a, &s, shared.rects[i], task.first + i,
          shared.rows + i * row_length (ALL));
  }
  return __syncthreads_and (complete);
}

/* ------------------------------------------------------------------------
 * The kernel. */

static __device__ __forceinline__ void
store_value (const Arguments &a, size_t row, size_t column, double value)
{
  uint8_t *to = (uint8_t *) a.out + row * a.out_stride;

  if (a.f64)
    ((double *) to)[column] = value;
  else
    ((float *) to)[column] = imk_shcentroid_f32 (value);
}

/* Neighbouring threads write neighbouring numbers: to mapped memory they
 * travel together. */
template <bool ALL>
static __device__ __forceinline__ void
store_rows (
    const Arguments &a, uint32_t first, uint32_t n_cells, const double *rows)
{
  constexpr uint32_t length = row_length (ALL);
  bool slopes = !ALL && a.fields == IMK_SHCENTROID_FIELDS_SLOPES;

  for (uint32_t i = threadIdx.x; i < n_cells * length; i += blockDim.x) {
    uint32_t cell = slopes ? i % n_cells : i / length;
    uint32_t field = slopes ? i / n_cells : i % length;
    double value = rows[cell * length + field];

    if (slopes)
      store_value (a, 0, field * (size_t) a.n_rects + first + cell, value);
    else
      store_value (a, first + cell, field, value);
  }
}

/* The rects are under way to shared memory while the frame is read. */
static __device__ __forceinline__ void
fetch_rects (const Arguments &a, const Task &task, ImkShcentroidRect *to)
{
  const uint64_t *from = (const uint64_t *) (a.rects + task.first);
  uint32_t n = task.n_cells * (sizeof (*to) / sizeof (*from));

  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
    __pipeline_memcpy_async ((uint64_t *) to + i, from + i, sizeof (*from));
  __pipeline_commit ();
}

template <typename Sample, bool ALL, bool CUT>
static __global__ void
__launch_bounds__ (MAX_THREADS)
    measure_cells (const __grid_constant__ Arguments a)
{
  Task task = a.tasks[blockIdx.x];
  Shared shared = shared_layout (task, row_length (ALL));
  int below = -1;

  fetch_rects (a, task, shared.rects);
  if (CUT) /* only cells of a map have their own, and a task each */
    below =
        (int) imk_shcentroid_least (&a.params, a.rects[task.first].threshold) -
        1;
  sum_columns<Sample, ALL, CUT> (a, task, below, shared.sums);
  __pipeline_wait_prior (0);
  __syncthreads ();
  if (sum_cells<ALL, CUT> (a, task, shared))
    store_rows<ALL> (a, task.first, task.n_cells, shared.rows);
}

#include "shcentroid/shcentroid-chain.cuh"
#include "shcentroid/shcentroid-correlation.cuh"

/* ------------------------------------------------------------------------
 * Planning tasks, on the host. */

struct Planner {
  const ImkShcentroidPlan *plan;
  bool all;
  uint32_t sample_size;

  Task *tasks; /* null while they are counted */
  uint32_t n_tasks, n_scratch;
  uint32_t n_threads, shared_size; /* of the most demanding task */
};

static uint32_t
words_of (const Planner *p, uint32_t x, uint32_t width)
{
  return imk_div_up ((x + width) * p->sample_size, 4) - x * p->sample_size / 4;
}

/* Bytes of shared memory; the threshold may come later. */
static uint64_t
shared_size (
    const Planner *p, uint64_t n_cells, uint64_t width, uint64_t groups)
{
  return n_cells * (sizeof (ImkShcentroidRect) +
                       row_length (p->all) * sizeof (double)) +
         groups * width * sizeof (uint32_t) *
             (p->all ? n_sums<true, true> : n_sums<false, true>);
}

/* Can one block do it, wherever the first pixel lies in its word? */
static bool
fits (const Planner *p, uint64_t n_cells, uint64_t width, uint32_t height)
{
  uint64_t words = width * p->sample_size / 4 + 2;
  uint64_t groups = imk_div_up (height, MAX_GROUP_ROWS);

  return words <= MAX_WORDS && words * groups <= MAX_THREADS &&
         shared_size (p, n_cells, width, groups) <= MAX_SHARED;
}

/* As many groups as threads, rows and shared memory are good for. */
static void
choose_groups (const Planner *p, Task *task)
{
  uint32_t groups = imk_div_up (task->height, MAX_GROUP_ROWS);
  uint32_t good = imk_div_up (task->height, GOOD_GROUP_ROWS);

  while (groups < good && (groups + 1) * task->words <= MAX_THREADS &&
         shared_size (p, task->n_cells, task->width, groups + 1) <= MAX_SHARED)
    groups++;
  task->group_rows = (uint16_t) imk_div_up (task->height, groups);
  task->groups = (uint16_t) imk_div_up (task->height, task->group_rows);
}

static void
add_task (Planner *p, Task task)
{
  uint32_t threads, columns, size;

  task.first_word = (uint16_t) (task.x * p->sample_size / 4);
  task.words = (uint16_t) words_of (p, task.x, task.width);
  choose_groups (p, &task);
  threads = imk_div_up (task.words * task.groups, 32) * 32;
  columns = task.width / task.n_cells * task.groups;
  task.lanes = 1;
  while (task.lanes < 32 && task.lanes * COLUMNS_PER_LANE < columns &&
         task.lanes * 2 * task.n_cells <= threads)
    task.lanes *= 2;

  size = (uint32_t) shared_size (p, task.n_cells, task.width, task.groups);
  p->n_threads = threads > p->n_threads ? threads : p->n_threads;
  p->shared_size = size > p->shared_size ? size : p->shared_size;
  if (p->tasks)
    p->tasks[p->n_tasks] = task;
  p->n_tasks++;
}

/* Cells [first, first + n) of one row of the grid, or one of a map. */
static void
add_whole (Planner *p, uint32_t first, uint32_t n)
{
  const ImkShcentroidRect *left = &p->plan->rects[first];
  const ImkShcentroidRect *right = &p->plan->rects[first + n - 1];
  Task task = {};

  task.first = first;
  task.n_cells = n;
  task.n_parts = 1;
  task.x = left->x;
  task.y = left->y;
  task.width = (uint16_t) (right->x + right->width - left->x);
  task.height = left->height;
  add_task (p, task);
}

static void
add_pieces (Planner *p, uint32_t cell)
{
  const ImkShcentroidRect *rect = &p->plan->rects[cell];
  uint32_t columns = rect->width < PIECE_COLUMNS ? rect->width : PIECE_COLUMNS;
  uint32_t rows = MAX_GROUP_ROWS;
  Task task = {};

  while (fits (p, 1, columns, rows + MAX_GROUP_ROWS))
    rows += MAX_GROUP_ROWS;
  task.first = cell;
  task.n_cells = 1;
  task.n_parts =
      imk_div_up (rect->width, columns) * imk_div_up (rect->height, rows);
  task.scratch = p->n_scratch++;
  for (uint32_t y = 0; y < rect->height; y += rows)
    for (uint32_t x = 0; x < rect->width; x += columns) {
      uint32_t right = rect->width - x, below = rect->height - y;

      task.x = (uint16_t) (rect->x + x);
      task.y = (uint16_t) (rect->y + y);
      task.width = (uint16_t) (right < columns ? right : columns);
      task.height = (uint16_t) (below < rows ? below : rows);
      add_task (p, task);
    }
}

static void
add_cell (Planner *p, uint32_t cell)
{
  const ImkShcentroidRect *rect = &p->plan->rects[cell];

  if (fits (p, 1, rect->width, rect->height))
    add_whole (p, cell, 1);
  else
    add_pieces (p, cell);
}

/* Returns: into how many tasks a row of the grid is best cut: as few as
 * possible, since words at a cut are read twice; 0 when a cell alone is too
 * much */
static uint32_t
tasks_a_row (const Planner *p)
{
  const ImkShcentroidPlan *plan = p->plan;
  uint32_t widest = 0, highest = 0;

  for (uint32_t i = 0; i < plan->columns; i++)
    if (plan->rects[i].width > widest)
      widest = plan->rects[i].width;
  for (uint32_t i = 0; i < plan->n_rects; i += plan->columns)
    if (plan->rects[i].height > highest)
      highest = plan->rects[i].height;
  for (uint32_t n = 1; n <= plan->columns; n++) {
    uint64_t cells = imk_div_up (plan->columns, n);

    if (fits (p, cells, cells * widest, highest))
      return n;
  }
  return 0;
}

static void
plan_tasks (Planner *p)
{
  const ImkShcentroidPlan *plan = p->plan;
  uint32_t n = plan->columns ? tasks_a_row (p) : 0;

  p->n_tasks = 0;
  p->n_scratch = 0;
  if (n == 0) {
    for (uint32_t i = 0; i < plan->n_rects; i++)
      add_cell (p, i);
    return;
  }
  for (uint32_t row = 0; row < plan->rows; row++)
    for (uint32_t i = 0; i < n; i++) {
      uint32_t from = (uint32_t) ((uint64_t) plan->columns * i / n);
      uint32_t to = (uint32_t) ((uint64_t) plan->columns * (i + 1) / n);

      add_whole (p, row * plan->columns + from, to - from);
    }
}

/* ------------------------------------------------------------------------
 * The backend. */

/* One allocation for all; @scratch and @held follow what is uploaded. */
static ImkStatus
upload (Cuda *cuda, const Planner *p, ImkError *error)
{
  Arguments *a = &cuda->arguments;
  size_t rects_size = p->plan->n_rects * sizeof (ImkShcentroidRect);
  size_t scratch_size = p->n_scratch * sizeof (Scratch);
  size_t held_size = p->plan->n_rects * 2 * sizeof (double);
  size_t tasks_size = p->n_tasks * sizeof (Task);
  cudaStream_t stream = cudaStreamPerThread;
  uint8_t *memory;
  ImkStatus status =
      IMK_CUDA (error, cudaMalloc (&cuda->memory,
                           rects_size + scratch_size + held_size + tasks_size));

  if (status != IMK_OK)
    return status;
  /* sizes are multiples of 8, but for the last */
  memory = (uint8_t *) cuda->memory;
  a->rects = (ImkShcentroidRect *) memory;
  a->scratch = (Scratch *) (memory += rects_size);
  a->held = (double *) (memory += scratch_size);
  a->tasks = (Task *) (memory += held_size);
  status = IMK_CUDA (error, cudaMemcpyAsync ((void *) a->rects, p->plan->rects,
                                rects_size, cudaMemcpyHostToDevice, stream));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaMemcpyAsync ((void *) a->tasks, p->tasks,
                                  tasks_size, cudaMemcpyHostToDevice, stream));
  if (status == IMK_OK)
    status = IMK_CUDA (error,
        cudaMemsetAsync (a->scratch, 0, scratch_size + held_size, stream));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaStreamSynchronize (stream));
  return status;
}

/* @size bytes, uploaded from @from, or zero without. */
static ImkStatus
upload_table (void **to, const void *from, size_t size, ImkError *error)
{
  cudaStream_t stream = cudaStreamPerThread;
  ImkStatus status = IMK_CUDA (error, cudaMalloc (to, size));

  if (status == IMK_OK && from)
    status = IMK_CUDA (error,
        cudaMemcpyAsync (*to, from, size, cudaMemcpyHostToDevice, stream));
  else if (status == IMK_OK)
    status = IMK_CUDA (error, cudaMemsetAsync (*to, 0, size, stream));
  return status == IMK_OK ? IMK_CUDA (error, cudaStreamSynchronize (stream))
                          : status;
}

/* What only the chain needs. */
static ImkStatus
upload_chain (Cuda *cuda, const ImkShcentroidPlan *plan, ImkError *error)
{
  size_t n_pixels = (size_t) plan->width * plan->height;
  size_t n_samples = plan->type == IMK_TYPE_U8 ? 256 : 65536;
  ImkStatus status = upload_table ((void **) &cuda->tracks, nullptr,
      plan->n_rects * sizeof (ImkShcentroidTrack), error);

  if (status == IMK_OK)
    status = upload_table ((void **) &cuda->slopes, nullptr,
        plan->n_rects * sizeof (ImkShcentroidSlope), error);
  if (status == IMK_OK && plan->pixels)
    status = upload_table ((void **) &cuda->pixels, plan->pixels,
        n_pixels * sizeof (ImkShcentroidPixel), error);
  if (status == IMK_OK && plan->lut)
    status = upload_table (
        (void **) &cuda->lut, plan->lut, n_samples * sizeof (float), error);
  return status;
}

/* Blocks whose cells do not fit into shared memory are as many as keep the
 * device busy, and each has memory for the largest search range. */
static ImkStatus
upload_match_memory (Matching *m, uint32_t n_cells, ImkError *error)
{
  MatchLayout layout;
  int device = 0, n_processors = 1;
  ImkStatus status;

  m->layout_size =
      lay_out_match (m->width, m->height, IMK_SHCENTROID_MAX_SEARCH_RANGE,
          m->templates.width * m->templates.height, nullptr, &layout);
  status = IMK_CUDA (error, cudaGetDevice (&device));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaDeviceGetAttribute (&n_processors,
                                  cudaDevAttrMultiProcessorCount, device));
  m->n_blocks = 4 * (uint32_t) n_processors;
  if (m->n_blocks > n_cells)
    m->n_blocks = n_cells;
  if (m->layout_size <= MAX_SHARED)
    m->n_blocks = 1; /* of the template from the frame */
  return status != IMK_OK ? status
                          : upload_table ((void **) &m->memory, nullptr,
                                (size_t) m->n_blocks * m->layout_size, error);
}

static ImkStatus
upload_match (Cuda *cuda, const ImkShcentroidPlan *plan, ImkError *error)
{
  const ImkShcentroidTemplates *t = &plan->templates;
  Matching *m = &cuda->matching;
  size_t n_totals = t->n * ((size_t) t->width + 1) * ((size_t) t->height + 1);
  ImkStatus status;

  if (t->n == 0)
    return IMK_OK;
  m->templates = *t;
  m->from_frame = t->pixels == nullptr;
  for (uint32_t i = 0; i < plan->n_rects; i++) {
    const ImkShcentroidRect *rect = &plan->rects[i];

    m->width = rect->width > m->width ? rect->width : m->width;
    m->height = rect->height > m->height ? rect->height : m->height;
  }
  status = upload_table ((void **) &m->patterns, t->pixels,
      (size_t) t->n * t->width * t->height * sizeof (float), error);
  if (status == IMK_OK)
    status = upload_table ((void **) &m->totals, t->totals,
        n_totals * sizeof (ImkShcentroidTotal), error);
  if (status == IMK_OK)
    status = upload_table ((void **) &m->anchors, t->anchors,
        plan->n_rects * sizeof (ImkShcentroidAnchor), error);
  return status != IMK_OK ? status
                          : upload_match_memory (m, plan->n_rects, error);
}

/* Teams as wide as the widest cell, as high as the highest. */
static void
plan_chain (Cuda *cuda, const ImkShcentroidPlan *plan)
{
  uint32_t width = 1, height = 1, warps;

  for (uint32_t i = 0; i < plan->n_rects; i++) {
    if (plan->rects[i].width > width)
      width = plan->rects[i].width;
    if (plan->rects[i].height > height)
      height = plan->rects[i].height;
  }
  cuda->width = plan->width;
  cuda->height = plan->height;
  cuda->lost = true;
  cuda->lanes = CHAIN_MIN_LANES;
  while (cuda->lanes < width && cuda->lanes < 32)
    cuda->lanes *= 2;
  cuda->wide = height > WIDE_FROM;
  warps = imk_div_up (height, IMK_SHCENTROID_BAND_ROWS);
  cuda->chain_warps = !cuda->wide               ? CHAIN_THREADS / 32
                      : warps < CHAIN_MAX_WARPS ? warps
                                                : CHAIN_MAX_WARPS;
}

static void
cuda_destroy (void *state)
{
  Cuda *cuda = (Cuda *) state;

  if (!cuda)
    return;
  cudaFree (cuda->memory); /* waits for kernels that use it */
  cudaFree (cuda->pixels);
  cudaFree (cuda->lut);
  cudaFree (cuda->tracks);
  cudaFree (cuda->slopes);
  cudaFree (cuda->matching.patterns);
  cudaFree (cuda->matching.totals);
  cudaFree (cuda->matching.anchors);
  cudaFree (cuda->matching.memory);
  free (cuda);
}

static ImkStatus
build (Cuda *cuda, Planner *planner, ImkError *error)
{
  ImkStatus status;

  plan_tasks (planner);
  planner->tasks = (Task *) malloc (planner->n_tasks * sizeof (Task));
  if (!planner->tasks)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory to plan %u cells.", planner->plan->n_rects);
  plan_tasks (planner);
  status = upload (cuda, planner, error);
  free (planner->tasks);
  cuda->n_tasks = planner->n_tasks;
  cuda->n_threads = planner->n_threads;
  cuda->shared_size = planner->shared_size;
  return status;
}

static ImkStatus
cuda_create (const ImkShcentroidPlan *plan, const ImkShcentroidParams *params,
    void **state, ImkError *error)
{
  Cuda *cuda = (Cuda *) calloc (1, sizeof (*cuda));
  Planner planner = {};
  ImkStatus status;

  if (!cuda)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory to plan %u cells.", plan->n_rects);
  planner.plan = plan;
  planner.all = plan->fields == IMK_SHCENTROID_FIELDS_ALL;
  planner.sample_size = (uint32_t) imk_type_size (plan->type);
  cuda->is_map = plan->columns == 0;
  cuda->is_u8 = plan->type == IMK_TYPE_U8;
  cuda->arguments.row_size = plan->width * planner.sample_size;
  cuda->arguments.n_rects = plan->n_rects;
  cuda->arguments.fields = plan->fields;
  cuda->arguments.fresh = true;
  cuda->arguments.params = *params;
  plan_chain (cuda, plan);
  status = build (cuda, &planner, error);
  if (status == IMK_OK)
    status = upload_chain (cuda, plan, error);
  if (status == IMK_OK)
    status = upload_match (cuda, plan, error);
  if (status == IMK_OK)
    *state = cuda;
  else
    cuda_destroy (cuda);
  return status;
}

static ImkStatus
cuda_update (void *state, const ImkShcentroidParams *params, ImkError *error)
{
  Cuda *cuda = (Cuda *) state;
  Arguments *a = &cuda->arguments;

  /* what was held or tracked before something else came in between is out of
   * date */
  if (a->params.invalid_policy != params->invalid_policy)
    a->fresh = true;
  if (imk_shcentroid_tracks (&a->params) != imk_shcentroid_tracks (params))
    cuda->lost = true;
  a->params = *params;
  return IMK_OK;
}

typedef void (*Kernel) (const Arguments);

template <typename Sample>
static Kernel
choose_kernel (bool all, bool cut)
{
  if (all)
    return cut ? measure_cells<Sample, true, true>
               : measure_cells<Sample, true, false>;
  return cut ? measure_cells<Sample, false, true>
             : measure_cells<Sample, false, false>;
}

typedef void (*ChainKernel) (const ChainArguments);

template <typename Sample, bool CALIBRATED, bool RARE>
static ChainKernel
choose_chain_kernel (bool all, bool wide)
{
  if (all)
    return wide ? measure_chain<Sample, CALIBRATED, true, true, RARE>
                : measure_chain<Sample, CALIBRATED, true, false, RARE>;
  return wide ? measure_chain<Sample, CALIBRATED, false, true, RARE>
              : measure_chain<Sample, CALIBRATED, false, false, RARE>;
}

template <typename Sample>
static ChainKernel
choose_chain_kernel (const Cuda *cuda)
{
  bool all = cuda->arguments.fields == IMK_SHCENTROID_FIELDS_ALL;
  bool wide = cuda->wide;

  if (chain_is_rare (&cuda->arguments.params))
    return cuda->pixels ? choose_chain_kernel<Sample, true, true> (all, wide)
                        : choose_chain_kernel<Sample, false, true> (all, wide);
  return cuda->pixels ? choose_chain_kernel<Sample, true, false> (all, wide)
                      : choose_chain_kernel<Sample, false, false> (all, wide);
}

static ChainArguments
chain_arguments (const Cuda *cuda)
{
  ChainArguments a = {};

  a.common = cuda->arguments;
  a.pixels = cuda->pixels;
  a.lut = cuda->lut;
  a.tracks = cuda->tracks;
  a.slopes = cuda->slopes;
  a.width = cuda->width;
  a.height = cuda->height;
  a.lanes = cuda->lanes;
  a.lost = cuda->lost;
  a.noise_per_count = 1.0 / cuda->arguments.params.gain;
  return a;
}

/* When all slopes are there. */
static ImkStatus
launch_tilt (const ChainArguments *a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t launch = {};

  if (!a->common.params.remove_tilt)
    return IMK_OK;
  launch.gridDim = dim3 (1);
  launch.blockDim = dim3 (IMK_SHCENTROID_TILT_LANES);
  launch.stream = stream;
  return IMK_CUDA_LAUNCH (error, launch, remove_tilt, *a);
}

static ImkStatus
launch_chain (Cuda *cuda, cudaStream_t stream, ImkError *error)
{
  const ImkShcentroidParams *params = &cuda->arguments.params;
  bool weighted = params->weighting != IMK_SHCENTROID_WEIGHTING_NONE;
  bool all = cuda->arguments.fields == IMK_SHCENTROID_FIELDS_ALL;
  uint32_t threads = 32 * cuda->chain_warps;
  uint32_t n_teams = cuda->wide ? 1 : threads / cuda->lanes;
  ChainKernel kernel = cuda->is_u8 ? choose_chain_kernel<uint8_t> (cuda)
                                   : choose_chain_kernel<uint16_t> (cuda);
  ChainArguments a = chain_arguments (cuda);
  cudaLaunchConfig_t launch = {};
  ImkStatus status;

  launch.gridDim = dim3 (imk_div_up (a.common.n_rects, n_teams));
  launch.blockDim = dim3 (threads);
  launch.dynamicSmemBytes = chain_shared_size (n_teams,
      !weighted    ? 0
      : cuda->wide ? cuda->chain_warps
                   : n_teams,
      all);
  launch.stream = stream;
  status = IMK_CUDA_LAUNCH (error, launch, kernel, a);
  return status != IMK_OK ? status : launch_tilt (&a, stream, error);
}

typedef void (*MatchKernel) (const MatchArguments);

template <typename Sample, bool CALIBRATED>
static MatchKernel
choose_match_kernel (bool all, bool global)
{
  if (all)
    return global ? measure_matches<Sample, CALIBRATED, true, true>
                  : measure_matches<Sample, CALIBRATED, true, false>;
  return global ? measure_matches<Sample, CALIBRATED, false, true>
                : measure_matches<Sample, CALIBRATED, false, false>;
}

static MatchKernel
choose_match_kernel (const Cuda *cuda, bool global)
{
  bool all = cuda->arguments.fields == IMK_SHCENTROID_FIELDS_ALL;

  if (cuda->is_u8)
    return cuda->pixels ? choose_match_kernel<uint8_t, true> (all, global)
                        : choose_match_kernel<uint8_t, false> (all, global);
  return cuda->pixels ? choose_match_kernel<uint16_t, true> (all, global)
                      : choose_match_kernel<uint16_t, false> (all, global);
}

static MatchKernel
choose_template_kernel (const Cuda *cuda)
{
  if (cuda->is_u8)
    return cuda->pixels ? take_template<uint8_t, true>
                        : take_template<uint8_t, false>;
  return cuda->pixels ? take_template<uint16_t, true>
                      : take_template<uint16_t, false>;
}

/* A thread for every shift, as far as they go. */
static uint32_t
match_threads (const Matching *m, uint32_t search_range)
{
  uint32_t x = search_range < m->width / 2 ? search_range : m->width / 2;
  uint32_t y = search_range < m->height / 2 ? search_range : m->height / 2;
  uint32_t n = (2 * x + 1) * (2 * y + 1);

  return n > 64 ? MATCH_THREADS : n > 32 ? 64 : 32;
}

static ImkStatus
launch_match (Cuda *cuda, cudaStream_t stream, ImkError *error)
{
  const Matching *m = &cuda->matching;
  uint32_t range = cuda->arguments.params.search_range;
  cudaLaunchConfig_t launch = {};
  MatchArguments a = {};
  MatchLayout layout;
  ImkStatus status = IMK_OK;
  bool global;

  a.chain = chain_arguments (cuda);
  a.patterns = m->patterns;
  a.totals = m->totals;
  a.anchors = m->anchors;
  a.templates = m->templates;
  a.memory = m->memory;
  a.layout_size = lay_out_match (m->width, m->height, range,
      m->templates.width * m->templates.height, nullptr, &layout);
  global = a.layout_size > MAX_SHARED;
  launch.stream = stream;
  if (m->from_frame) {
    launch.gridDim = dim3 (1);
    launch.blockDim = dim3 (MATCH_THREADS);
    status = IMK_CUDA_LAUNCH (error, launch, choose_template_kernel (cuda), a);
  }
  launch.gridDim = dim3 (global ? m->n_blocks : a.chain.common.n_rects);
  launch.blockDim = dim3 (match_threads (m, range));
  launch.dynamicSmemBytes = global ? 0 : a.layout_size;
  if (status == IMK_OK)
    status =
        IMK_CUDA_LAUNCH (error, launch, choose_match_kernel (cuda, global), a);
  return status != IMK_OK ? status : launch_tilt (&a.chain, stream, error);
}

static ImkStatus
launch_plain (Cuda *cuda, cudaStream_t stream, ImkError *error)
{
  const Arguments *a = &cuda->arguments;
  bool all = a->fields == IMK_SHCENTROID_FIELDS_ALL;
  bool cut = a->params.threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE &&
             (cuda->is_map || a->params.threshold > 0.0);
  Kernel kernel = cuda->is_u8 ? choose_kernel<uint8_t> (all, cut)
                              : choose_kernel<uint16_t> (all, cut);
  cudaLaunchConfig_t launch = {};

  launch.gridDim = dim3 (cuda->n_tasks);
  launch.blockDim = dim3 (cuda->n_threads);
  launch.dynamicSmemBytes = cuda->shared_size;
  launch.stream = stream;
  return IMK_CUDA_LAUNCH (error, launch, kernel, *a);
}

static ImkStatus
cuda_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  Cuda *cuda = (Cuda *) state;
  Arguments *a = &cuda->arguments;
  ImkStatus status;

  a->frame = (const uint8_t *) in->data;
  a->stride = in->stride;
  a->aligned = ((uintptr_t) in->data | in->stride) % 4 == 0;
  a->out = out->data;
  a->out_stride = out->stride;
  a->f64 = out->type == IMK_TYPE_F64;
  if (a->params.estimator == IMK_SHCENTROID_ESTIMATOR_CORRELATION)
    status = launch_match (cuda, (cudaStream_t) stream, error);
  else if (imk_shcentroid_is_plain (&a->params, cuda->pixels || cuda->lut))
    status = launch_plain (cuda, (cudaStream_t) stream, error);
  else
    status = launch_chain (cuda, (cudaStream_t) stream, error);
  if (status == IMK_OK)
    a->fresh = cuda->lost = false;
  return status;
}

/* The next launch takes nothing as held, and holds what it finds: no call to
 * the device is needed. */
static ImkStatus
cuda_reset (void *state, void *stream, ImkError *error)
{
  Cuda *cuda = (Cuda *) state;

  cuda->arguments.fresh = cuda->lost = true;
  return IMK_OK;
}

const ImkShcentroidBackend imk_shcentroid_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .update = cuda_update,
    .process = cuda_process,
    .reset = cuda_reset,
    .destroy = cuda_destroy,
};
