/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernels of shcentroid share: the work of a block, reads of the
 * frame, writes of results. */
#pragma once

#include <cuda_pipeline.h>

#include "shcentroid/arithmetic/float-centroid.h"

enum {
  MAX_THREADS = 512,
  MAX_WORDS = 256,        /* of a row that a task covers */
  MAX_SHARED = 48 * 1024, /* bytes; more would have to be asked for */
  MAX_GROUP_ROWS = 56,    /* 65535 n^3 / 3 < 2^32 */
  GOOD_GROUP_ROWS = 4,    /* rows that are worth a group of threads */
  BATCH = 8,              /* reads in flight a thread */
  PIECE_COLUMNS = 512,    /* of a cell that is cut into pieces */
  COLUMNS_PER_LANE = 6,   /* that one lane adds up to a cell */
  GOOD_TASKS = 400,       /* about three blocks for each multiprocessor */
  GOOD_WORDS = 32,        /* of a row that are worth a block */
  GOOD_THREADS = 256,     /* of a block, of which some only add up cells */
};

/* What a block does. Its words times its groups are at most its threads. */
struct alignas (16) Task {
  uint32_t first, n_cells; /* cells; one when it is a piece */
  uint32_t column;         /* of the first in its row of the grid */
  uint32_t n_parts;        /* pieces of this cell */
  uint32_t scratch;        /* its index there when it is a piece */
  uint16_t x, y, width, height;
  uint16_t first_word, words;  /* aligned words of a row */
  uint16_t groups, group_rows; /* rows are dealt to groups of threads */
  uint32_t lanes;              /* that work on a cell; a power of 2 */
  uint32_t weights, n_weights; /* of its cells in the table of weights */
};

/* The whole task at once: the compiler would read parts of it where they are
 * needed first, and wait for each. */
static __device__ __forceinline__ Task
load_task (const Task *from)
{
  uint4 words[sizeof (Task) / sizeof (uint4)];
  Task task;

  static_assert (sizeof (Task) % sizeof (uint4) == 0, "whole vectors");
#pragma unroll
  for (uint32_t i = 0; i < sizeof (words) / sizeof (words[0]); i++)
    words[i] = __ldg ((const uint4 *) from + i);
  memcpy (&task, words, sizeof (task));
  return task;
}

/* Where the pieces of a cell meet; all zero between frames. */
struct Scratch {
  ImkShcentroidSums sums;
  unsigned int arrived;
  unsigned int most, most_below; /* largest sample; ~ of the smallest */
};

struct Output {
  void *data;
  size_t stride;
  bool f64;
};

struct Arguments {
  const uint8_t *frame;
  size_t stride;
  uint32_t row_size; /* bytes */
  bool aligned;      /* rows start at multiples of 4 bytes */

  Output out;
  Output rounded; /* f32 beside f64; no data: none */
  uint8_t *flags; /* of each cell, or null */

  const Task *tasks;
  const ImkShcentroidRect *rects;
  Scratch *scratch;
  double *held;
  uint32_t n_rects;
  ImkShcentroidFields fields;
  bool fresh;
  ImkShcentroidParams params;
};

/* The same and what the chain needs. */
struct ChainArguments {
  Arguments common;
  const ImkShcentroidPixel *pixels; /* null for none, like lut */
  uint32_t pixel_stride;            /* pixels from row to row, even */
  const float *lut;
  ImkShcentroidTrack *tracks;
  ImkShcentroidSlope *slopes; /* of every cell, for their mean */
  uint32_t width, height;     /* of the frame */
  uint32_t lanes;             /* of a team; a power of 2 */
  bool lost;                  /* nothing is tracked */
  const double *weights;      /* of columns and rows of every cell */
  const uint16_t *cell_of; /* column of the grid, of each of the frame; null for
                            * a map */
  ImkShcentroidNoise noise;
};

static constexpr __host__ __device__ uint32_t
row_length (bool all)
{
  return all ? (uint32_t) IMK_SHCENTROID_N_FIELDS : 2;
}

/* ------------------------------------------------------------------------
 * Reading. */

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

static __device__ __forceinline__ uint32_t
load_short (const uint8_t *p, bool wanted)
{
  uint32_t value;

  asm("{\n"
      "  .reg .pred wanted;\n"
      "  .reg .u16 value;\n"
      "  setp.ne.u32 wanted, %2, 0;\n"
      "  mov.u16 value, 0;\n"
      "  @wanted ld.global.nc.u16 value, [%1];\n"
      "  cvt.u32.u16 %0, value;\n"
      "}\n"
      : "=r"(value)
      : "l"(p), "r"((uint32_t) wanted));
  return value;
}

/* Dark and flat. */
static __device__ __forceinline__ float2
load_pixel (const float2 *p, bool wanted)
{
  float2 value;

  asm("{\n"
      "  .reg .pred wanted;\n"
      "  setp.ne.u32 wanted, %3, 0;\n"
      "  mov.b32 %0, 0;\n"
      "  mov.b32 %1, 0;\n"
      "  @wanted ld.global.nc.v2.f32 {%0, %1}, [%2];\n"
      "}\n"
      : "=f"(value.x), "=f"(value.y)
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

/* The word of a row and the group of rows that are this thread's. */
struct Part {
  const uint8_t *from; /* the first */
  uint32_t word, group, n_rows;
  uint32_t left; /* bytes of the row from there on */
  bool whole;    /* words can be read as such */
};

/* @word: of the words of the task */
static __device__ __forceinline__ Part
part_of (const Arguments &a, const Task &task, uint32_t group, uint32_t word)
{
  Part p;

  p.group = group;
  p.word = task.first_word + word;
  p.n_rows = min ((uint32_t) task.group_rows,
      (uint32_t) task.height - p.group * task.group_rows);
  p.left = a.row_size - 4 * p.word;
  p.whole = a.aligned && p.left >= 4;
  p.from =
      a.frame + (task.y + p.group * task.group_rows) * a.stride + 4 * p.word;
  return p;
}

/* BATCH rows from row @y of the part on; 0 below it. */
static __device__ __forceinline__ void
read_part (const Arguments &a, const Part &p, uint32_t y, uint32_t words[BATCH])
{
  const uint8_t *from = p.from + y * a.stride;

  if (p.whole)
    read_words (from, a.stride, p.n_rows - y, words);
  else
    read_bytes (from, a.stride, p.n_rows - y, p.left, words);
}

template <typename Sample>
static __device__ __forceinline__ uint32_t
sample_of (uint32_t word, uint32_t k)
{
  return (Sample) (word >> (8 * sizeof (Sample) * k));
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

/* ------------------------------------------------------------------------
 * Writing. */

/* What is reported of @row, that of the cell @index. */
template <bool ALL>
static __device__ __forceinline__ void
keep_row (
    const Arguments &a, const ImkShcentroidRow &row, uint32_t index, double *to)
{
  if (a.flags)
    a.flags[index] = imk_shcentroid_flag_byte (&row, ALL);
  if (ALL) {
    for (uint32_t i = 0; i < row_length (true); i++)
      to[i] = row.field[i];
  } else {
    bool slopes = a.fields == IMK_SHCENTROID_FIELDS_SLOPES;

    to[0] = slopes ? row.field[IMK_SHCENTROID_DX] : row.field[IMK_SHCENTROID_X];
    to[1] = slopes ? row.field[IMK_SHCENTROID_DY] : row.field[IMK_SHCENTROID_Y];
  }
}

static __device__ __forceinline__ void
store_value (const Output &out, size_t row, size_t column, double value)
{
  uint8_t *to = (uint8_t *) out.data + row * out.stride;

  if (out.f64)
    ((double *) to)[column] = value;
  else
    ((float *) to)[column] = imk_shcentroid_f32 (value);
}

/* Neighbouring threads write neighbouring numbers: to mapped memory they
 * travel together. */
template <bool ALL>
static __device__ __forceinline__ void
store_rows_in (const Output &out, const Arguments &a, uint32_t first,
    uint32_t n_cells, const double *rows)
{
  constexpr uint32_t length = row_length (ALL);
  bool slopes = !ALL && a.fields == IMK_SHCENTROID_FIELDS_SLOPES;

  for (uint32_t i = threadIdx.x; i < n_cells * length; i += blockDim.x) {
    uint32_t cell = slopes ? i % n_cells : i / length;
    uint32_t field = slopes ? i / n_cells : i % length;
    double value = rows[cell * length + field];

    if (slopes)
      store_value (out, 0, field * (size_t) a.n_rects + first + cell, value);
    else
      store_value (out, first + cell, field, value);
  }
}

template <bool ALL>
static __device__ __forceinline__ void
store_rows (
    const Arguments &a, uint32_t first, uint32_t n_cells, const double *rows)
{
  store_rows_in<ALL> (a.out, a, first, n_cells, rows);
  if (a.rounded.data)
    store_rows_in<ALL> (a.rounded, a, first, n_cells, rows);
}
