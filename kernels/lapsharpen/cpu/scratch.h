/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The memory of threads that smooth a frame or apply a kernel, or have a frame
 * of float32: rows of float32. */
#pragma once

#include "lapsharpen/cpu/loops.h"
#include "lapsharpen/lapsharpen-float.h"

/* One block for each thread. */
typedef struct ScratchPool {
  ImkPool *pool;   /* NULL: no rule needed it yet */
  size_t n_floats; /* of each block */
} ScratchPool;

/* Makes room for what @rule needs of frames of @type. Returns:
 * IMK_ERROR_MEMORY, and the pool is as it was */
ImkStatus imk_lapsharpen_scratch_resize (ScratchPool *scratch,
    uint32_t n_threads, const ImkLapsharpenRule *rule, ImkType type,
    ImkError *error);

/* Returns: samples of a row that a kernel makes, or sums of them, with room for
 * a chunk that begins at the last sample; whole vectors */
static inline size_t
made_row_size (const ImkLapsharpenRule *rule)
{
  return (rule->channels * rule->width + CHUNK + 15) / 16 * 16;
}

enum { GROWN = 3 }; /* rows that a row of the frame is made of */

/* All sizes but the first two are in floats, with room for what vectors and
 * chunks reach beyond a row. */
typedef struct SmoothSizes {
  int left;    /* pixels beside the frame that a low sample reaches to */
  int columns; /* low samples of a row, those beside the frame included */
  size_t wide; /* the frame and what is beside it */
  size_t low;
  size_t grown;
  size_t total;
} SmoothSizes;

static inline SmoothSizes
smooth_sizes (const ImkLapsharpenRule *rule)
{
  const ImkLapsharpenSmooth *s = &rule->smooth;
  const int reach = s->halo + s->blur_reach;
  const size_t c = rule->channels;
  SmoothSizes sizes = {.left = reach * s->step + s->shrink_reach};

  sizes.columns =
      ((int) rule->width - 1 + s->step / 2) / s->step + 1 + 2 * reach;
  sizes.wide =
      c * (size_t) ((sizes.columns - 1) * s->step + 2 * s->shrink_reach + 1) +
      CHUNK;
  sizes.low = c * (size_t) sizes.columns + CHUNK;
  sizes.grown = c * rule->width + CHUNK;
  sizes.total = sizes.wide +
                (size_t) (s->step + 2 * s->blur_reach + 1 + 3) * sizes.low +
                (GROWN + 1) * sizes.grown;
  return sizes;
}

/* --- float32 -------------------------------------------------------------- */

/* Returns: rows of a frame, without memory yet, with the pixels beside them
 * that a window or a kernel reaches */
static inline ImkLapsharpenPlane
strip_of (const ImkLapsharpenRule *rule)
{
  const int reach = (int) rule->reach;

  return (ImkLapsharpenPlane){.x0 = -reach,
      .x1 = (int) rule->width + reach,
      .channels = (int) rule->channels};
}

/* Returns: rows of the frame that are padded and used at a time: of the cache
 */
static inline int
strip_rows (const ImkLapsharpenRule *rule)
{
  enum { SIZE = 1 << 19, LEAST_ROWS = 8 };
  const ImkLapsharpenPlane strip = strip_of (rule);
  const int row =
      (int) sizeof (float) * (int) imk_lapsharpen_row_floats (&strip);
  const int n = SIZE / row < LEAST_ROWS ? LEAST_ROWS : SIZE / row;

  return n < (int) rule->height ? n : (int) rule->height;
}
