/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The matched filter and pupil images (arithmetic/linear-centroid.h). Compiled
 * for each instruction set. */
#include "shcentroid/arithmetic/linear-centroid.h"
#include "shcentroid/cpu/rows.h"
#include "shcentroid/cpu/tile.h"
#include "shcentroid/cpu/vectors.h"

enum { LANES = IMK_SHCENTROID_FILTER_LANES, BLOCK = 128 };

/* The sums of 32 lanes. */
typedef struct LinearSums {
  double sum[N_CHAIN_SUMS][LANES];
} LinearSums;

/* The row of cell @cell, whose sums count from the corner of its rect. */
static void
finish (const Frame *f, uint32_t cell, const ImkShcentroidReals *s)
{
  ChainTile tile;

  chain_begin (&tile, f, cell, 1);
  tile.sums[CHAIN_P][0] = s->p;
  tile.sums[CHAIN_PU][0] = s->pu;
  tile.sums[CHAIN_PY][0] = s->py;
  tile.sums[CHAIN_Q][0] = s->q;
  tile.sums[CHAIN_QU][0] = s->qu;
  tile.sums[CHAIN_QY][0] = s->qy;
  tile.sums[CHAIN_QUU][0] = s->quu;
  tile.sums[CHAIN_QYY][0] = s->qyy;
  tile.sums[CHAIN_RAW][0] = s->raw;
  tile.max[0] = s->max;
  tile.max_sample[0] = s->max_sample;
  chain_end (&tile);
}

/* ------------------------------------------------------------------------
 * The matched filter. */

/* What a cell has more of with all fields: its flats, one after the other, and
 * what is largest. */
static void
look_at_cell (const Frame *f, const ImkShcentroidRect *r, const float *values,
    float *samples, float *flats, ImkShcentroidReals *s)
{
  const Cpu *cpu = f->cpu;
  size_t n = (size_t) r->width * r->height;

  for (size_t i = 0; i < n; i++)
    s->max = values[i] > s->max ? values[i] : s->max;
  for (size_t i = 0; i < n; i++)
    flats[i] = 1.0f;
  s->max_sample = s->max > 0.0f ? s->max : 0.0f;
  if (!cpu->dark && !cpu->lut)
    return;
  s->max_sample = 0.0f;
  for (uint32_t y = 0; y < r->height; y++) {
    size_t at = (size_t) (r->y + y) * cpu->plan.width + r->x;
    const float *v = values + (size_t) y * r->width;

    load_samples (f, r->x, r->y + y, r->width, samples);
    if (cpu->dark)
      memcpy (flats + (size_t) y * r->width, cpu->flat + at,
          r->width * sizeof (*flats));
    for (uint32_t x = 0; x < r->width; x++)
      s->max_sample = v[x] == v[x] && samples[x] > s->max_sample
                          ? samples[x]
                          : s->max_sample;
  }
}

/* Values of the cell one after the other, 0 where bad and up to whole lanes. */
static void
load_cell (const Frame *f, const ImkShcentroidRect *r, bool all,
    MatchScratch *m, float *flats, ImkShcentroidReals *s)
{
  size_t n = (size_t) r->width * r->height;
  float *restrict values = m->pixels;

  for (uint32_t y = 0; y < r->height; y++)
    load_columns (f, r->x, r->y + y, r->width, values + (size_t) y * r->width);
  if (all)
    look_at_cell (f, r, values, (float *) m->sample, flats, s);
  for (size_t i = 0; f->cpu->bad && i < n; i++)
    values[i] = values[i] == values[i] ? values[i] : 0.0f;
  for (size_t i = n; i % LANES; i++)
    values[i] = flats[i] = 0.0f;
}

/* imk_shcentroid_add_weighted () in lanes [@i, @i + REALS), operation by
 * operation: the same bits. @stride: from weight to weight */
INLINE void
sum_lanes (LinearSums *s, uint32_t i, const float *values, const float *flats,
    const float *weights, size_t stride, const ImkShcentroidNoise *noise,
    const bool all)
{
  Reals sums[N_CHAIN_SUMS] = {{0}};

  for (size_t at = i; at < stride; at += LANES) {
    Reals v = widen (values + at), w = widen (weights + at);
    Reals w_x = widen (weights + stride + at);
    Reals w_y = widen (weights + 2 * stride + at), flat, light, q;

    sums[CHAIN_P] += w * v;
    sums[CHAIN_PU] += w_x * v;
    sums[CHAIN_PY] += w_y * v;
    if (!all)
      continue;
    flat = widen (flats + at);
    light = (Reals) ((Masks) v & (v > 0.0));
    q = flat * light + flat * flat * noise->read;
    sums[CHAIN_Q] += w * w * q;
    sums[CHAIN_QU] += w * w_x * q;
    sums[CHAIN_QUU] += w_x * w_x * q;
    sums[CHAIN_QY] += w * w_y * q;
    sums[CHAIN_QYY] += w_y * w_y * q;
    sums[CHAIN_RAW] += v;
  }
  for (uint32_t k = 0; k < (all ? N_CHAIN_SUMS : N_CHAIN_XY_SUMS); k++)
    write_reals (&s->sum[k][i], sums[k]);
}

static double
halve (double *lanes)
{
  for (uint32_t step = LANES / 2; step; step /= 2)
    for (uint32_t i = 0; i < step; i++)
      lanes[i] += lanes[i + step];
  return lanes[0];
}

INLINE void
filter_cell (const Frame *f, uint32_t cell, MatchScratch *m,
    const ImkShcentroidNoise *noise, const bool all)
{
  const Cpu *cpu = f->cpu;
  const ImkShcentroidRect *r = &cpu->rects[cell];
  const ImkShcentroidAnchor *anchor = &cpu->matching.anchors[cell];
  const float *weights = cpu->plan.filter.weights + cpu->plan.filter.at[cell];
  size_t n = (size_t) r->width * r->height;
  size_t stride = (n + LANES - 1) / LANES * LANES;
  float *flats = (float *) m->spread;
  ImkShcentroidReals s = {.max = -3.4e38f};
  LinearSums lanes;

  load_cell (f, r, all, m, flats, &s);
  for (uint32_t i = 0; i < LANES; i += REALS)
    sum_lanes (&lanes, i, m->pixels, flats, weights, stride, noise, all);
  s.p = halve (lanes.sum[CHAIN_P]);
  s.pu = halve (lanes.sum[CHAIN_PU]);
  s.py = halve (lanes.sum[CHAIN_PY]);
  if (all) {
    s.q = halve (lanes.sum[CHAIN_Q]);
    s.qu = halve (lanes.sum[CHAIN_QU]);
    s.qy = halve (lanes.sum[CHAIN_QY]);
    s.quu = halve (lanes.sum[CHAIN_QUU]);
    s.qyy = halve (lanes.sum[CHAIN_QYY]);
    s.raw = halve (lanes.sum[CHAIN_RAW]);
  }
  imk_shcentroid_shift_sums (&s, anchor->zero_x - r->x, anchor->zero_y - r->y);
  finish (f, cell, &s);
}

/* ------------------------------------------------------------------------
 * Pupil images. */

INLINE float
sample_at (const ImkImage *in, ImkType type, Place at)
{
  const uint8_t *row = (const uint8_t *) in->data + at.y * in->stride;

  switch (type) {
  case IMK_TYPE_U8:
    return row[at.x];
  case IMK_TYPE_U16:
    return ((const uint16_t *) row)[at.x];
  default:
    return imk_shcentroid_sample (((const float *) row)[at.x]);
  }
}

INLINE ImkShcentroidReals
sum_pupils (const Frame *f, uint32_t cell, const bool all,
    const ImkShcentroidNoise *noise)
{
  const Cpu *cpu = f->cpu;
  const Place *at = cpu->pupils + (size_t) cell * IMK_SHCENTROID_N_PUPILS;
  ImkShcentroidReals s = {.max = -3.4e38f};

  for (uint32_t k = 0; k < IMK_SHCENTROID_N_PUPILS; k++) {
    float sample = sample_at (f->in, f->in->type, at[k]), value, flat = 1.0f;

    value = cpu->lut ? cpu->lut[(uint32_t) sample] : sample;
    if (cpu->dark) {
      size_t i = (size_t) at[k].y * cpu->plan.width + at[k].x;

      flat = cpu->flat[i];
      value = calibrate_one (value, cpu->dark[i], flat);
    }
    imk_shcentroid_add_pupil (&s, k, value, flat, sample, all, noise);
  }
  return s;
}

/* What a position needs, of cells one after the other. */
typedef struct PupilBlock {
  double p[BLOCK], pu[BLOCK], py[BLOCK];
} PupilBlock;

/* sum_pupils (), operation by operation: the same bits. */
INLINE void
sum_block_of (const Frame *f, uint32_t first, uint32_t n, PupilBlock *b,
    const ImkType type, const bool plain)
{
  const Cpu *cpu = f->cpu;
  const Place *at = cpu->pupils + (size_t) first * IMK_SHCENTROID_N_PUPILS;
  double v[IMK_SHCENTROID_N_PUPILS][BLOCK];

  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < IMK_SHCENTROID_N_PUPILS; k++, at++) {
      float value = sample_at (f->in, type, *at);

      if (!plain && cpu->lut)
        value = cpu->lut[(uint32_t) value];
      if (!plain && cpu->dark) {
        size_t pixel = (size_t) at->y * cpu->plan.width + at->x;

        value = calibrate_one (value, cpu->dark[pixel], cpu->flat[pixel]);
      }
      v[k][i] = value;
    }
  for (uint32_t i = 0; i < n; i++) {
    b->p[i] = v[0][i] + v[1][i] + v[2][i] + v[3][i];
    b->pu[i] = v[0][i] + v[1][i] - v[2][i] - v[3][i];
    b->py[i] = v[0][i] - v[1][i] - v[2][i] + v[3][i];
  }
}

static void
sum_block (const Frame *f, uint32_t first, uint32_t n, PupilBlock *b)
{
  bool plain = !f->cpu->lut && !f->cpu->dark;

  if (plain && f->in->type == IMK_TYPE_U8)
    sum_block_of (f, first, n, b, IMK_TYPE_U8, true);
  else if (plain && f->in->type == IMK_TYPE_U16)
    sum_block_of (f, first, n, b, IMK_TYPE_U16, true);
  else
    sum_block_of (f, first, n, b, f->in->type, false);
}

/* Positions of a block, when all its cells are valid: the divisions are vector
 * code. Returns: whether they are */
static bool
store_block (const Frame *f, uint32_t first, uint32_t n, PupilBlock *b)
{
  const ImkShcentroidRect *rects = f->cpu->rects + first;
  const ImkShcentroidParams *params = &f->cpu->params;
  bool local = params->normalisation == IMK_SHCENTROID_NORMALISATION_LOCAL;
  uint64_t n_valid = 0;

  if (!local && !(f->mean > 0.0))
    return false;
  for (uint32_t i = 0; i < n && !local; i++) {
    double by = b->p[i] / f->mean;

    b->pu[i] *= by;
    b->py[i] *= by;
  }
  for (uint32_t i = 0; i < n; i++) {
    double min_flux = imk_shcentroid_min_flux (params, rects[i].min_flux);

    n_valid += (b->p[i] > 0.0) & (b->p[i] >= min_flux) &
               imk_shcentroid_is_finite (b->p[i]) & (rects[i].flags == 0);
  }
  if (n_valid < n)
    return false;
  for (uint32_t i = 0; i < n; i++) {
    b->pu[i] = imk_shcentroid_clamp (b->pu[i] / b->p[i], -3e38, 3e38);
    b->py[i] = imk_shcentroid_clamp (b->py[i] / b->p[i], -3e38, 3e38);
  }
  for (uint32_t i = 0; i < n; i++) {
    b->pu[i] = rects[i].x + b->pu[i];
    b->py[i] = rects[i].y + b->py[i];
  }
  store_centres (f, first, n, b->pu, b->py);
  return true;
}

/* The mean flux of the valid cells, added up as slopes are. */
static void
find_mean (Frame *f)
{
  const Cpu *cpu = f->cpu;
  ImkShcentroidTiltSums lanes[IMK_SHCENTROID_TILT_LANES] = {{0}};
  uint32_t n_cells = cpu->plan.n_rects;
  PupilBlock block;
  double most = 0.0;

  if (cpu->params.estimator != IMK_SHCENTROID_ESTIMATOR_PUPILS ||
      cpu->params.normalisation == IMK_SHCENTROID_NORMALISATION_LOCAL)
    return;
  for (uint32_t i = 0; i < n_cells; i++) {
    ImkShcentroidReals s = {.p = 0.0};

    if (i % BLOCK == 0)
      sum_block (f, i, n_cells - i < BLOCK ? n_cells - i : BLOCK, &block);
    s.p = block.p[i % BLOCK];
    /* until the slopes are there */
    cpu->slopes[i].flux = imk_shcentroid_pupil_flux (&s);
    most = fmax (most, cpu->slopes[i].flux);
  }
  for (uint32_t i = 0; i < n_cells; i++) {
    ImkShcentroidTiltSums one = {cpu->slopes[i].flux, 0.0, 1};

    if (imk_shcentroid_pupil_counts (one.x, most, &cpu->rects[i], &cpu->params))
      imk_shcentroid_add_tilt (&lanes[i % IMK_SHCENTROID_TILT_LANES], &one);
  }
  f->mean = imk_shcentroid_mean_of (lanes).x;
}

INLINE void
measure_pupils (const Frame *f, uint32_t cell, const bool all,
    const ImkShcentroidNoise *noise)
{
  ImkShcentroidReals s = sum_pupils (f, cell, all, noise);

  imk_shcentroid_end_pupils (&s, &f->cpu->params, f->mean);
  finish (f, cell, &s);
}

static void
measure_pupil_images (const Frame *f, uint32_t first, uint32_t end, bool all,
    const ImkShcentroidNoise *noise)
{
  const ImkShcentroidParams *params = &f->cpu->params;
  bool simple = !all && !f->cpu->lost && !imk_shcentroid_joins (params) &&
                params->invalid_policy != IMK_SHCENTROID_INVALID_HOLD &&
                !imk_shcentroid_tracks (params);

  for (uint32_t i = first; i < end && all; i++)
    measure_pupils (f, i, true, noise);
  while (first < end && !all) {
    uint32_t n = end - first < BLOCK ? end - first : BLOCK;
    PupilBlock block;

    if (simple)
      sum_block (f, first, n, &block);
    if (!simple || !store_block (f, first, n, &block))
      for (uint32_t i = first; i < first + n; i++)
        measure_pupils (f, i, false, noise);
    first += n;
  }
}

/* ------------------------------------------------------------------------ */

static void
measure_linear (void *data, uint32_t first, uint32_t end)
{
  const Frame *f = data;
  const ImkShcentroidNoise noise = imk_shcentroid_noise (&f->cpu->params);
  bool all = f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  MatchScratch *scratch;

  if (f->cpu->params.estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS) {
    measure_pupil_images (f, first, end, all, &noise);
    return;
  }
  scratch = imk_shcentroid_take_scratch ((Matching *) &f->cpu->matching);
  for (uint32_t i = first; i < end && all; i++)
    filter_cell (f, i, scratch, &noise, true);
  for (uint32_t i = first; i < end && !all; i++)
    filter_cell (f, i, scratch, &noise, false);
  imk_shcentroid_give_back_scratch (scratch);
}

const ImkShcentroidLoops IMK_ISA_TABLE = {
    .measure = measure_linear,
    .prepare = find_mean,
};
