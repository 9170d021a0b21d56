/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the files of the CPU backend, and the table of loops.c. */
#pragma once

#include "core/pool.h"
#include "photostereo/photostereo-heights.h"
#include "photostereo/photostereo-pixel.h"

enum { CACHE_LINE = 64, CHUNK = 64 /* pixels */ };

/* The light vector of all pixels where it is the same. */
typedef struct Beam {
  float x, y, z;
} Beam;

/* Sums over the beams of a set. */
typedef struct Products {
  float xx, xy, xz, yy, yz, zz;
} Products;

/* The results of a chunk: 0 where there is no solution. */
typedef struct Results {
  float normal[3][CHUNK];
  float quality[IMK_PHOTOSTEREO_N_QUALITIES][CHUNK];
  float length[CHUNK]; /* of n' */
  float albedo[IMK_PHOTOSTEREO_MAX_PLANES][CHUNK];
  float constant[IMK_PHOTOSTEREO_MAX_PLANES][CHUNK]; /* light of the room */
} Results;

/* Buffers of one thread, a block of a pool. */
typedef struct Scratch {
  float *grey;    /* [light][CHUNK] */
  float *factors; /* k of the light vectors, likewise; not with beams */
  Beam *beams;    /* [light] */
  Products all;
  int32_t *used;  /* [light], of one vector of pixels: masks of the lights in
                   * the last sums */
  float *colours; /* [light][plane][CHUNK]; NULL with 1 plane */
  float *units;   /* what a room light of 1 adds to grey, likewise; NULL
                   * without */
  float *dropped; /* the round in which a light was excluded for good, else
                   * INFINITY, likewise */
  float *ambient; /* [plane][CHUNK]; sums over the lights */
  float pixel_x[CHUNK]; /* mm */
  float pixel_y[CHUNK]; /* likewise */
  float pixel_z[CHUNK]; /* mm above the working plane */
  Results results;
} Scratch;

/* Of the samples of a row. */
typedef struct Scan {
  uint32_t largest;
  uint64_t n_clipped;
} Scan;

typedef struct Cpu {
  const struct ImkPhotostereoLoops *loops;
  ImkPhotostereoPlan plan; /* its tables and frames are copies */
  ImkPhotostereoParams params;
  ImkPhotostereoLamp *lamps;
  float *table, *dark, *white;
  uint8_t *mask;

  uint8_t *samples; /* [row][light][plane][stride] */
  size_t stride;    /* bytes */
  Scan *scans;      /* [row], of the current set */
  float *albedo;    /* [row][width], of a mosaic, before interpolation */
  float *ambient;   /* likewise */
  float *normals;   /* [row][width][3], of the last solution, or NULL */
  ImkPhotostereoHeights heights; /* with height_rounds */
  float
      *slopes;  /* normals for heights, [every heights.step-th row][width][3] */
  bool uniform; /* one vector a light serves all pixels: beams, no factors */
  uint32_t n_threads;
  ImkPool *pool; /* of Scratch with its arrays, one for each thread */
} Cpu;

/* One call of solve (). */
typedef struct Job {
  Cpu *cpu;
  const uint32_t *lights;
  uint32_t n_lights;
  bool compare;
  ImkPhotostereoOutputs *out;
  ImkPhotostereoRow *rows;
  uint32_t first;   /* row of the strip */
  bool for_heights; /* normals go into cpu->slopes, and nothing elsewhere */
} Job;

/* Some pixels of a row. */
typedef struct Chunk {
  const Cpu *cpu;
  const Job *job;
  Scratch *scratch;
  const uint32_t *lights;
  uint32_t n_lights;
  uint32_t x, y, n;
  bool measures, has_colours, wants_ambient;
  ImkPhotostereoRow *row;
} Chunk;

/* loops.c is compiled once for each instruction set. */
typedef struct ImkPhotostereoLoops {
  /* @chunk: of the row; where it is along the row is set here */
  void (*solve_row) (Chunk *chunk);
  /* Updates cpu->scans[y]. @row: the samples, 0 up to a whole chunk */
  void (*scan_row) (const Cpu *cpu, uint32_t y, const uint8_t *row);
} ImkPhotostereoLoops;

extern const ImkPhotostereoLoops imk_photostereo_scalar, imk_photostereo_neon,
    imk_photostereo_avx2, imk_photostereo_avx512;

static inline uint8_t *
samples_row (const Cpu *cpu, uint32_t y, uint32_t light, uint32_t plane)
{
  const ImkPhotostereoPlan *p = &cpu->plan;
  size_t row = ((size_t) y * p->n_lights + light) * p->n_planes + plane;

  return cpu->samples + row * cpu->stride;
}

static inline bool
is_wanted (const Chunk *c, uint32_t x)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;

  return x < p->width && (!p->mask || p->mask[(size_t) c->y * p->width + x]);
}

/* The results of the chunk, into outputs and sums. */
void imk_photostereo_store_chunk (const Chunk *c);

/* Colours of a mosaic, after all its results are stored.
 * @data: a Job, as an ImkBandFunc */
void imk_photostereo_store_mosaic_rows (
    void *data, uint32_t first, uint32_t end);
