/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state of the CPU backend, which its loops read. */
#pragma once

#include "shcentroid/arithmetic/float-centroid.h"
#include "shcentroid/cpu/loops.h"
#include "shcentroid/cpu/scratch.h"

#define INLINE static inline __attribute__ ((always_inline))

enum {
  CHAIN_TILE = 256, /* columns of the chain, at a time */
  /* with a vector beyond it; and arrays side by side are not 2 kB apart, where
   * all would have the same places in the L1 cache */
  CHAIN_ROOM = CHAIN_TILE + IMK_SHCENTROID_LANES,
  /* of integers, whose sums stay in the L1 cache */
  INTEGER_TILE = 512,
  STRIP_COLUMNS = 16, /* of these, in registers at a time */
  FOLDED_CELLS = 8,   /* cells that a vector adds up together, at most */
  MOST_KEYS = 4000, /* pixels of a cell whose brightest are sought in a copy */
};

enum {
  PACKED_FLAT = (1 << 24) - 1, /* the bits of it, below those of the dark */
  PACKED_BAD = 127,            /* a dark that is none: the pixel is bad */
};

/* Dark and flat of a pixel in 32 bits instead of 64. See pack_pixel (). */
typedef struct Packing {
  float dark, unit; /* the least dark; the unit of what is above it */
  uint32_t top;     /* the bits that all flats have in common; */
  uint32_t flat;    /* of flats by which what is unpacked is multiplied */
  /* of bytes, in 16 bits each: of a sample, and of the units of a dark */
  uint32_t factors;
} Packing;

/* The powers of numbers from the first to the last are looked up, in N_STEPS
 * steps of the 36 octaves from 2^-16 to 2^20. */
#define LEAST_POWERED 0x1p-16
#define MOST_POWERED 0x1.fffffffffffffp19
enum {
  N_STEPS = 36 << IMK_SHCENTROID_STEP_BITS,
  STEP_SIZE_LOG2 = 4, /* bytes of an ImkShcentroidStep */
};

/* What powers are found by; see imk_shcentroid_power (). */
typedef struct Powers {
  ImkShcentroidSeries series;
  ImkShcentroidStep *steps; /* NULL: there is no memory for them */
} Powers;

/* A pixel of the frame. */
typedef struct FramePixel {
  uint16_t x, y;
} FramePixel;

typedef struct Cpu {
  const ImkShcentroidLoops *integers, *squares, *chain, *correlation, *linear;
  ImkShcentroidPlan plan; /* its rects are ours */
  ImkShcentroidRect *rects;
  ImkShcentroidParams params;
  uint32_t n_threads;
  uint32_t cells_a_row;         /* columns of the grid, or 1: a cell of a map */
  double largest_sum;           /* that integers of a cell can have */
  bool own_thresholds;          /* of some cell */
  uint32_t most_pixels, widest; /* of a cell */
  bool fresh;                   /* nothing is held */
  double *held;                 /* x and y of every cell */

  /* of the chain */
  float *dark, *flat, *lut; /* NULL for none; dark and flat only together */
  /* of a grid: dark and flat strip by strip, see make_strips (); or NULL */
  float *dark_strips, *flat_strips;
  uint32_t *packed_strips; /* instead of these, where that is exact */
  Packing packing;
  uint32_t *strips_before; /* the tile that begins with each column of cells */
  uint32_t n_strips;       /* of a row of cells */
  bool bad;                /* some pixel is */
  /* of each sample the part that it has by power and levels, where that is the
   * same in every cell and the table is there */
  bool listed;
  Powers raising;
  double *powers, powers_of;  /* the power of the table */
  double *derivatives;        /* the same of what a count more does to it */
  bool upwards;               /* the next frame, see measure_chain_rows () */
  ImkShcentroidTrack *tracks; /* of every cell */
  ImkShcentroidSlope *slopes; /* of every cell, for their mean */
  bool lost;                  /* nothing is tracked */
  /* of columns and rows of every cell, to the power; NULL: computed when they
   * are needed */
  double *column_weights, *row_weights, weights_of; /* the sigma of these */
  uint32_t *columns_at, *rows_at; /* where those of a cell begin */
  double *us; /* of a grid: where a column of the frame stands in its cell */

  Matching matching;

  /* of the linear estimators */
  FramePixel *pupils;
  /* from each cell on those that lie beside each other in all pupil images and
   * in the map, up to 255 */
  uint8_t *pupil_runs;
  double *fluxes;  /* of every cell, for their mean */
  bool own_fluxes; /* some cell has a least flux of its own, or a flag */
  float *filter_weights;
  uint64_t *filter_at;

  ImkShcentroidLevel listed_level; /* of the parts that are listed */
} Cpu;

/* One call of process. */
typedef struct Frame {
  const Cpu *cpu;
  const ImkImage *in;
  const ImkImage *out;
  uint32_t n_out; /* images there: the second is the first in float32 */
  uint8_t *flags; /* of each cell, or NULL */
  double mean;    /* flux of the valid cells, of pupil images only */
} Frame;

/* Returns: the first cell that the tile from @from on has no room for, or that
 * would be one of too few for a vector of cells (fold.h) */
static inline uint32_t
end_of_tile (const ImkShcentroidRect *rects, uint32_t from, uint32_t last)
{
  uint32_t width = rects[from].width, to = from + 1;

  while (to < last && width + rects[to].width <= CHAIN_TILE)
    width += rects[to++].width;
  return to < last && to - from > FOLDED_CELLS ? to - (to - from) % FOLDED_CELLS
                                               : to;
}
