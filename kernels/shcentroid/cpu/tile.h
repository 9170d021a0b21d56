/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cells that go through the chain together: where they are, their weights,
 * their sums and what becomes of these. */
#pragma once

#include <math.h>
#include <string.h>

#include "shcentroid/cpu/output.h"

/* The sums of the chain, as in ImkShcentroidReals; those up to N_CHAIN_XY_SUMS
 * are all that a position needs. */
enum {
  CHAIN_P,
  CHAIN_PU,
  CHAIN_PY,
  N_CHAIN_XY_SUMS,
  CHAIN_Q = N_CHAIN_XY_SUMS,
  CHAIN_QU,
  CHAIN_QY,
  CHAIN_QUU,
  CHAIN_QYY,
  CHAIN_RAW,
  N_CHAIN_SUMS,
};

typedef double ChainSums[N_CHAIN_SUMS][CHAIN_ROOM];

/* Cells side by side, of one top and one height; or one of any width. */
typedef struct ChainTile {
  const Frame *f;
  uint32_t first, n; /* cells */
  ImkShcentroidWindow windows[CHAIN_TILE];
  ImkShcentroidRange ranges[CHAIN_TILE];
  ImkShcentroidLevel levels[CHAIN_TILE];
  double centre_x[CHAIN_TILE], centre_y[CHAIN_TILE]; /* of the weight */
  ChainSums sums;
  float max[CHAIN_TILE], max_sample[CHAIN_TILE];
  ImkShcentroidPull pulls[CHAIN_TILE]; /* of all fields only */
} ChainTile;

static inline uint32_t
tile_width (const ChainTile *t)
{
  const ImkShcentroidWindow *last = &t->windows[t->n - 1];

  return last->x + last->width - t->windows[0].x;
}

/* Without all fields only what a position needs means something. */
INLINE ImkShcentroidReals
chain_sums (const ChainTile *t, uint32_t i)
{
  return (ImkShcentroidReals){
      .p = t->sums[CHAIN_P][i],
      .pu = t->sums[CHAIN_PU][i],
      .py = t->sums[CHAIN_PY][i],
      .q = t->sums[CHAIN_Q][i],
      .qu = t->sums[CHAIN_QU][i],
      .qy = t->sums[CHAIN_QY][i],
      .quu = t->sums[CHAIN_QUU][i],
      .qyy = t->sums[CHAIN_QYY][i],
      .raw = t->sums[CHAIN_RAW][i],
      .max = t->max[i],
      .max_sample = t->max_sample[i],
  };
}

/* Where the cells are. All rows of a grid have the columns of the first: a
 * cache full of rects less to read. */
static void
place_windows (ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;
  const ImkShcentroidRect *rect = &cpu->rects[t->first];
  const ImkShcentroidRect *columns =
      cpu->rects + t->first % (cpu->plan.columns ? cpu->plan.columns : 1);

  if (!cpu->plan.columns)
    columns = rect;
  for (uint32_t i = 0; i < t->n; i++) {
    t->windows[i].x = columns[i].x;
    t->windows[i].y = rect->y;
    t->windows[i].width = columns[i].width;
    t->windows[i].height = rect->height;
    t->windows[i].at_edge = false;
  }
}

/* The same, where they follow their spots. */
static void
place_moving_windows (ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;

  for (uint32_t i = 0; i < t->n; i++)
    t->windows[i] =
        imk_shcentroid_window (&cpu->rects[t->first + i], &cpu->params,
            &cpu->tracks[t->first + i], cpu->plan.width, cpu->plan.height);
}

static void
place_weights (ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;
  bool tracking = cpu->params.weighting == IMK_SHCENTROID_WEIGHTING_TRACKING;

  for (uint32_t i = 0; i < t->n; i++) {
    const ImkShcentroidRect *rect = &cpu->rects[t->first + i];
    const ImkShcentroidTrack *track = &cpu->tracks[t->first + i];

    t->centre_x[i] = tracking ? track->x : rect->ref_x;
    t->centre_y[i] = tracking ? track->y : rect->ref_y;
  }
}

/* @row: whether the cells are of one row of a grid, or one; else they are
 * anywhere */
static void
begin_chain (
    ChainTile *t, const Frame *f, uint32_t first, uint32_t n, const bool row)
{
  const Cpu *cpu = f->cpu;

  t->f = f;
  t->first = first;
  t->n = n;
  for (uint32_t i = first; cpu->lost && i < first + n; i++)
    cpu->tracks[i] =
        (ImkShcentroidTrack){cpu->rects[i].ref_x, cpu->rects[i].ref_y, 0};
  if (!row || cpu->params.window == IMK_SHCENTROID_WINDOW_TRACKING)
    place_moving_windows (t);
  else
    place_windows (t);
  if (cpu->params.weighting != IMK_SHCENTROID_WEIGHTING_NONE)
    place_weights (t);
  if (cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL)
    memset (t->pulls, 0, n * sizeof (*t->pulls));
}

INLINE void
finish_each_cell (const ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;
  const ImkShcentroidNoise noise = imk_shcentroid_noise (&cpu->params);

  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t cell = t->first + i;
    ImkShcentroidReals sums = chain_sums (t, i);
    ImkShcentroidRow row = {{0}};

    imk_shcentroid_finish_real (&row, &sums, &t->pulls[i], &cpu->rects[cell],
        &t->windows[i], &cpu->params, &noise, cpu->plan.fields, cpu->fresh,
        cpu->held + 2 * (size_t) cell, &cpu->tracks[cell], &cpu->slopes[cell]);
    store_row (t->f, cell, &row);
  }
}

/* Positions of cells, as vector code. Returns: whether all are valid */
static inline bool
find_chain_centres (const ChainTile *t, double *restrict x, double *restrict y)
{
  const ImkShcentroidParams params = t->f->cpu->params;
  const ImkShcentroidRect *rects = t->f->cpu->rects + t->first;
  double last_x[CHAIN_TILE], last_y[CHAIN_TILE], min_flux[CHAIN_TILE];
  uint64_t n_valid = 0;

  for (uint32_t i = 0; i < t->n; i++) {
    last_x[i] = t->windows[i].width - 1.0;
    last_y[i] = t->windows[i].height - 1.0;
    min_flux[i] = params.min_flux;
  }
  /* the cells of a grid have none of their own, and are many */
  for (uint32_t i = 0; !t->f->cpu->plan.columns && i < t->n; i++)
    min_flux[i] = imk_shcentroid_min_flux (&params, rects[i].min_flux);
  for (uint32_t i = 0; i < t->n; i++) {
    ImkShcentroidCentre centre =
        imk_shcentroid_centre_of (t->sums[CHAIN_P][i], t->sums[CHAIN_PU][i],
            t->sums[CHAIN_PY][i], last_x[i], last_y[i], &params, min_flux[i]);

    x[i] = centre.x;
    y[i] = centre.y;
    n_valid += centre.valid;
  }
  for (uint32_t i = 0; i < t->n; i++) {
    x[i] = t->windows[i].x + x[i];
    y[i] = t->windows[i].y + y[i];
  }
  return n_valid == t->n;
}

/* What valid cells at (@x, @y) leave for the next frame, and for the cells of
 * this one to decide together. */
static inline void
keep_centres (const ChainTile *t, const double *x, const double *y)
{
  const Cpu *cpu = t->f->cpu;
  const ImkShcentroidParams *params = &cpu->params;
  const ImkShcentroidRect *rects = cpu->rects + t->first;
  ImkShcentroidTrack *tracks = cpu->tracks + t->first;
  double *held = cpu->held + 2 * (size_t) t->first;
  bool joins = imk_shcentroid_joins (params);

  for (uint32_t i = 0; joins && i < t->n; i++) {
    ImkShcentroidSlope *slope = &cpu->slopes[t->first + i];

    imk_shcentroid_begin_slope (slope, params, held + 2 * i, &tracks[i]);
    slope->x = (x[i] - rects[i].ref_x) * params->slope_scale;
    slope->y = (y[i] - rects[i].ref_y) * params->slope_scale;
    slope->flux = t->sums[CHAIN_P][i];
    slope->flags = rects[i].flags;
    slope->tilt = IMK_SHCENTROID_TILT_COUNTED;
  }
  for (uint32_t i = 0; imk_shcentroid_tracks (params) && i < t->n; i++)
    imk_shcentroid_follow (&tracks[i], &rects[i], params, x[i], y[i], true);
  if (params->invalid_policy != IMK_SHCENTROID_INVALID_HOLD)
    return;
  for (uint32_t i = 0; i < t->n; i++) {
    held[2 * i] = x[i];
    held[2 * i + 1] = y[i];
  }
}

/* What valid cells have with all fields beside their positions, as vector code.
 */
static inline void
describe_cells (const ChainTile *t, ChainFields fields)
{
  const ImkShcentroidParams params = t->f->cpu->params;
  const ImkShcentroidNoise noise = imk_shcentroid_noise (&params);
  const ImkShcentroidRect *rects = t->f->cpu->rects + t->first;
  bool quad = params.estimator == IMK_SHCENTROID_ESTIMATOR_QUAD;
  double scale = quad ? params.quad_gain * params.quad_gain : 1.0;
  double scatter_x[CHAIN_TILE], scatter_y[CHAIN_TILE];
  double ref_x[CHAIN_TILE], ref_y[CHAIN_TILE];
  int32_t flags[CHAIN_TILE];

  for (uint32_t i = 0; i < t->n; i++) {
    scatter_x[i] = scatter_y[i] = 1.0;
    ref_x[i] = rects[i].ref_x;
    ref_y[i] = rects[i].ref_y;
    flags[i] = (int32_t) rects[i].flags;
    if (t->windows[i].at_edge)
      flags[i] |= IMK_SHCENTROID_EDGE;
  }
  for (uint32_t i = 0; params.iterations > 1 && i < t->n; i++) {
    scatter_x[i] = imk_shcentroid_scatter (t->pulls[i].x, params.iterations);
    scatter_y[i] = imk_shcentroid_scatter (t->pulls[i].y, params.iterations);
  }
  for (uint32_t i = 0; i < t->n; i++) {
    ImkShcentroidReals s = chain_sums (t, i);
    double unit = noise.per_count * scale / (s.p * s.p);

    fields[IMK_SHCENTROID_FLUX][i] = s.p;
    fields[IMK_SHCENTROID_FLUX_RAW][i] = s.raw;
    fields[IMK_SHCENTROID_VAR_X][i] = imk_shcentroid_real_variance (
        s.pu / s.p, s.q, s.qu, s.quu, unit * scatter_x[i]);
    fields[IMK_SHCENTROID_VAR_Y][i] = imk_shcentroid_real_variance (
        s.py / s.p, s.q, s.qy, s.qyy, unit * scatter_y[i]);
  }
  for (uint32_t i = 0; i < t->n; i++) {
    bool saturated =
        (params.saturation > 0.0) & (t->max_sample[i] >= params.saturation);

    fields[IMK_SHCENTROID_MAX][i] = t->max[i] > -3e38f ? t->max[i] + 0.0 : 0.0;
    fields[IMK_SHCENTROID_FLAGS][i] =
        flags[i] | (saturated ? IMK_SHCENTROID_SATURATED : 0);
    fields[IMK_SHCENTROID_DX][i] =
        (fields[IMK_SHCENTROID_X][i] - ref_x[i]) * params.slope_scale;
    fields[IMK_SHCENTROID_DY][i] =
        (fields[IMK_SHCENTROID_Y][i] - ref_y[i]) * params.slope_scale;
  }
}

static inline void
finish_chain (const ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;
  bool all = cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  ChainFields fields;

  if ((all && imk_shcentroid_joins (&cpu->params)) ||
      !find_chain_centres (
          t, fields[IMK_SHCENTROID_X], fields[IMK_SHCENTROID_Y])) {
    finish_each_cell (t);
    return;
  }
  keep_centres (t, fields[IMK_SHCENTROID_X], fields[IMK_SHCENTROID_Y]);
  if (all) {
    describe_cells (t, fields);
    store_fields (t->f, t->first, t->n, fields);
  } else {
    store_centres (t->f, t->first, t->n, fields[IMK_SHCENTROID_X],
        fields[IMK_SHCENTROID_Y]);
  }
}

/* The weight goes to what was found. */
INLINE void
move_weights (ChainTile *t)
{
  const ImkShcentroidParams *params = &t->f->cpu->params;

  for (uint32_t i = 0; i < t->n; i++) {
    ImkShcentroidReals sums = chain_sums (t, i);
    ImkShcentroidCentre centre =
        imk_shcentroid_real_centre (&sums, &t->windows[i], params, 0.0);

    if (centre.valid) {
      t->centre_x[i] = t->windows[i].x + centre.x;
      t->centre_y[i] = t->windows[i].y + centre.y;
    }
  }
}
