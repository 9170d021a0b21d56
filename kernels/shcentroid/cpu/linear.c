/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The matched filter and pupil images (arithmetic/linear-centroid.h). Compiled
 * for each instruction set. */
#include "shcentroid/arithmetic/linear-centroid.h"
#include "shcentroid/cpu/fold.h"
#include "shcentroid/cpu/rows.h"
#include "shcentroid/cpu/singles.h"

enum {
  FILTER_LANES = IMK_SHCENTROID_FILTER_LANES,
  BLOCK = 128,
  NEAR_PIXELS = 576,
  SIDE = 4,  /* vectors of three sums that are in registers together */
  STEP = 16, /* bytes of samples that are copied together */
};

INLINE void
set_sums (ChainTile *t, uint32_t i, const ImkShcentroidReals *s, const bool all)
{
  t->sums[CHAIN_P][i] = s->p;
  t->sums[CHAIN_PU][i] = s->pu;
  t->sums[CHAIN_PY][i] = s->py;
  if (!all)
    return;
  t->sums[CHAIN_Q][i] = s->q;
  t->sums[CHAIN_QU][i] = s->qu;
  t->sums[CHAIN_QY][i] = s->qy;
  t->sums[CHAIN_QUU][i] = s->quu;
  t->sums[CHAIN_QYY][i] = s->qyy;
  t->sums[CHAIN_RAW][i] = s->raw;
  t->max[i] = s->max;
  t->max_sample[i] = s->max_sample;
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

  s->max = (float) largest (values, (uint32_t) n, s->max);
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

/* Returns: the type of the values; F32 where they are not the samples */
INLINE ImkType
plain_type (const Frame *f)
{
  return f->cpu->lut || f->cpu->dark ? IMK_TYPE_F32 : f->in->type;
}

/* Samples of the cell one after the other, as they came. Steps end beyond the
 * row of the cell: in its next row, which comes later, or in the room beyond.
 */
INLINE void
copy_samples (
    const Frame *f, const ImkShcentroidRect *r, uint8_t *to, const bool words)
{
  const ImkImage *in = f->in;
  const uint8_t *row = (const uint8_t *) in->data + r->y * in->stride;
  const size_t width = (size_t) r->width << words;
  size_t there = (r->y + r->height - 1) * in->stride + (r->x << words) + width;
  size_t end = (in->height - 1) * in->stride + ((size_t) in->width << words);
  bool in_steps = there + STEP <= end;

  row += (size_t) r->x << words;
  for (uint32_t y = 0; y < r->height; y++, row += in->stride, to += width)
    if (in_steps)
      for (size_t x = 0; x < width; x += STEP)
        memcpy (to + x, row + x, STEP);
    else
      memcpy (to, row, width);
  memset (to, 0, FILTER_LANES << words); /* up to whole lanes */
}

INLINE void
convert_samples (
    const uint8_t *from, size_t n, float *restrict to, const bool words)
{
  for (size_t i = 0; i < n; i += SINGLES) {
    Singles some = convert_words (read_words (from + (i << words), words));

    memcpy (to + i, &some, sizeof (some));
  }
}

/* Values of the cell one after the other, 0 where bad and up to whole lanes;
 * with all fields, too, what look_at_cell () finds. */
INLINE void
load_cell (const Frame *f, const ImkShcentroidRect *r, const bool all,
    MatchScratch *m, float *restrict values, ImkShcentroidReals *s)
{
  const Cpu *cpu = f->cpu;
  float *flats = (float *) m->spread;
  uint8_t *samples = (uint8_t *) m->spread;
  size_t n = (size_t) r->width * r->height;
  ImkType type = plain_type (f);

  if (type != IMK_TYPE_F32)
    copy_samples (f, r, samples, type == IMK_TYPE_U16);
  if (type == IMK_TYPE_U8)
    convert_samples (samples, n, values, false);
  else if (type == IMK_TYPE_U16)
    convert_samples (samples, n, values, true);
  else
    for (uint32_t y = 0; y < r->height; y++)
      load_columns (
          f, r->x, r->y + y, r->width, values + (size_t) y * r->width);
  if (all)
    look_at_cell (f, r, values, (float *) m->sample, flats, s);
  for (size_t i = 0; cpu->bad && i < n; i++)
    values[i] = values[i] == values[i] ? values[i] : 0.0f;
  for (size_t i = n; i % FILTER_LANES; i++)
    values[i] = 0.0f;
  for (size_t i = n; all && i % FILTER_LANES; i++)
    flats[i] = 0.0f;
}

/* Weights of a cell, those of x and of y @stride behind each other. */
typedef struct FilterWeights {
  const float *weights;
  const double *wide; /* the same; NULL: as they are needed */
  size_t stride;
} FilterWeights;

INLINE Reals
read_weights (const FilterWeights *w, size_t at)
{
  return w->wide ? read_reals (w->wide + at) : widen (w->weights + at);
}

/* Samples as they came, or float32. */
INLINE Reals
read_values (const void *values, const ImkType type, size_t at)
{
  bool words = type == IMK_TYPE_U16;

  return type == IMK_TYPE_F32
             ? widen ((const float *) values + at)
             : read_samples ((const uint8_t *) values + (at << words), words);
}

/* What a position needs of @n vectors of lanes, side by side: a vector waits
 * for its last sum. */
INLINE void
sum_lanes_xy (Reals to[][N_CHAIN_SUMS], const void *values, ImkType type,
    const FilterWeights weights, uint32_t i, const uint32_t n)
{
  const size_t stride = weights.stride;
  Reals sums[SIDE][N_CHAIN_XY_SUMS] = {{{0}}};

  for (size_t at = i; at < stride; at += FILTER_LANES)
    for (uint32_t j = 0; j < n; j++) {
      size_t here = at + j * REALS;
      Reals v = read_values (values, type, here);

      for (uint32_t k = 0; k < N_CHAIN_XY_SUMS; k++)
        sums[j][k] += read_weights (&weights, k * stride + here) * v;
    }
  for (uint32_t j = 0; j < n; j++)
    for (uint32_t k = 0; k < N_CHAIN_XY_SUMS; k++)
      to[j][k] = sums[j][k];
}

/* imk_shcentroid_add_weighted () in lanes [@i, @i + REALS), operation by
 * operation: the same bits. */
INLINE void
sum_lanes (Reals to[N_CHAIN_SUMS], uint32_t i, const float *values,
    const float *flats, const FilterWeights weights,
    const ImkShcentroidNoise *noise)
{
  const size_t stride = weights.stride;
  Reals p = {0}, pu = {0}, py = {0}, raw = {0};
  Reals q = {0}, qu = {0}, qy = {0}, quu = {0}, qyy = {0};

  for (size_t at = i; at < stride; at += FILTER_LANES) {
    Reals v = widen (values + at), w = read_weights (&weights, at);
    Reals w_x = read_weights (&weights, stride + at);
    Reals w_y = read_weights (&weights, 2 * stride + at), flat, light, spread;

    p += w * v;
    pu += w_x * v;
    py += w_y * v;
    flat = widen (flats + at);
    light = (Reals) ((Masks) v & (v > 0.0));
    spread = flat * light + flat * flat * noise->read;
    q += w * w * spread;
    qu += w * w_x * spread;
    quu += w_x * w_x * spread;
    qy += w * w_y * spread;
    qyy += w_y * w_y * spread;
    raw += v;
  }
  to[CHAIN_P] = p;
  to[CHAIN_PU] = pu;
  to[CHAIN_PY] = py;
  to[CHAIN_Q] = q;
  to[CHAIN_QU] = qu;
  to[CHAIN_QY] = qy;
  to[CHAIN_QUU] = quu;
  to[CHAIN_QYY] = qyy;
  to[CHAIN_RAW] = raw;
}

/* Lanes by halves to one vector of each sum in @to. */
INLINE void
sum_values (const void *values, const ImkType type, const float *flats,
    const FilterWeights weights, const ImkShcentroidNoise *noise,
    const bool all, Reals to[N_CHAIN_SUMS][REALS], uint32_t at)
{
  Reals lanes[FILTER_LANES / REALS][N_CHAIN_SUMS];

  for (uint32_t k = 0; all && k < FILTER_LANES / REALS; k++)
    sum_lanes (lanes[k], k * REALS, values, flats, weights, noise);
  for (uint32_t k = 0; !all && k < FILTER_LANES / REALS; k += SIDE)
    sum_lanes_xy (lanes + k, values, type, weights, k * REALS, SIDE);
  for (uint32_t k = 0; k < (all ? N_CHAIN_SUMS : N_CHAIN_XY_SUMS); k++) {
    for (uint32_t step = FILTER_LANES / REALS / 2; step; step /= 2)
      for (uint32_t j = 0; j < step; j++)
        lanes[j][k] += lanes[j + step][k];
    to[k][at] = lanes[0][k];
  }
}

/* Cells so small that what is needed of them stays in the L1 cache. */
typedef struct NearCells {
  _Alignas(64) double weights[3 * (NEAR_PIXELS +
                                      FILTER_LANES)]; /* of the last one */
  const float *from; /* the same; NULL for none yet */
  float values[NEAR_PIXELS + FILTER_LANES];
} NearCells;

/* @near: NULL for cells that are larger. Returns: those of cell @cell, which
 * are mostly those of the cell before */
INLINE FilterWeights
weights_of (const Cpu *cpu, uint32_t cell, NearCells *near)
{
  const ImkShcentroidRect *r = &cpu->rects[cell];
  FilterWeights w = {
      .weights = cpu->plan.filter.weights + cpu->plan.filter.at[cell],
      .wide = near ? near->weights : NULL,
      .stride = ((size_t) r->width * r->height + FILTER_LANES - 1) /
                FILTER_LANES * FILTER_LANES};

  for (size_t i = 0; near && near->from != w.weights && i < 3 * w.stride;
       i += REALS)
    write_reals (near->weights + i, widen (w.weights + i));
  if (near)
    near->from = w.weights;
  return w;
}

/* As many cells as a vector has lanes, from @first on, or up to the last.
 * @near: of all but cells that are too large, or have all fields */
INLINE void
filter_cells (ChainTile *t, uint32_t first, MatchScratch *m,
    const ImkShcentroidNoise *noise, const bool all, const ImkType type,
    NearCells *near)
{
  const Cpu *cpu = t->f->cpu;
  uint32_t n = t->n - first < REALS ? t->n - first : REALS;
  float *values = near ? near->values : m->pixels;
  Reals sums[N_CHAIN_SUMS][REALS];

  /* a vector of cells is full: the last one again */
  for (uint32_t k = 0; k < REALS; k++) {
    uint32_t i = k < n ? k : n - 1, cell = t->first + first + i;
    ImkShcentroidReals s = {.max = -3.4e38f};
    FilterWeights weights = weights_of (cpu, cell, near);

    if (type == IMK_TYPE_F32)
      load_cell (t->f, &cpu->rects[cell], all, m, values, &s);
    else
      copy_samples (
          t->f, &cpu->rects[cell], (uint8_t *) values, type == IMK_TYPE_U16);
    sum_values (
        values, type, (float *) m->spread, weights, noise, all, sums, k);
    t->max[first + i] = s.max;
    t->max_sample[first + i] = s.max_sample;
  }
  for (uint32_t k = 0; k < (all ? N_CHAIN_SUMS : N_CHAIN_XY_SUMS); k++)
    write_reals (&t->sums[k][first], fold_vectors (sums[k]));
  for (uint32_t i = first; i < first + n; i++) {
    const ImkShcentroidAnchor *anchor = &cpu->matching.anchors[t->first + i];
    const ImkShcentroidRect *r = &cpu->rects[t->first + i];
    ImkShcentroidReals s = chain_sums (t, i);

    imk_shcentroid_shift_sums (
        &s, anchor->zero_x - r->x, anchor->zero_y - r->y);
    set_sums (t, i, &s, all);
  }
}

INLINE void
filter_tile (const Frame *f, uint32_t first, uint32_t n, MatchScratch *m,
    const ImkShcentroidNoise *noise, const bool all)
{
  const ImkType type = plain_type (f);
  const bool is_near = !all && f->cpu->most_pixels <= NEAR_PIXELS;
  ChainTile t;
  NearCells near;

  begin_chain (&t, f, first, n, false);
  near.from = NULL;
  for (uint32_t i = 0; i < n; i += REALS)
    if (is_near && type == IMK_TYPE_U8)
      filter_cells (&t, i, m, noise, all, IMK_TYPE_U8, &near);
    else if (is_near && type == IMK_TYPE_U16)
      filter_cells (&t, i, m, noise, all, IMK_TYPE_U16, &near);
    else if (is_near)
      filter_cells (&t, i, m, noise, all, IMK_TYPE_F32, &near);
    else
      filter_cells (&t, i, m, noise, all, IMK_TYPE_F32, NULL);
  finish_chain (&t);
}

/* ------------------------------------------------------------------------
 * Pupil images. */

/* Cells one after the other: their pixels, image by image, and their corners.
 */
typedef struct PupilBlock {
  float value[IMK_SHCENTROID_N_PUPILS][BLOCK];
  /* of all fields only */
  float flat[IMK_SHCENTROID_N_PUPILS][BLOCK];
  float sample[IMK_SHCENTROID_N_PUPILS][BLOCK];
  double x[BLOCK], y[BLOCK];
} PupilBlock;

/* Those of the cells of a map that lie beside each other are rows of the frame.
 */
static void
load_pupils (
    const Frame *f, uint32_t first, uint32_t n, bool all, PupilBlock *b)
{
  const Cpu *cpu = f->cpu;

  for (uint32_t i = 0, run; i < n; i += run) {
    const uint32_t cell = first + i;
    const FramePixel *at =
        cpu->pupils + (size_t) cell * IMK_SHCENTROID_N_PUPILS;

    run = cpu->pupil_runs[cell] < n - i ? cpu->pupil_runs[cell] : n - i;
    for (uint32_t k = 0; k < IMK_SHCENTROID_N_PUPILS; k++, at++) {
      load_columns (f, at->x, at->y, run, b->value[k] + i);
      if (all)
        load_samples (f, at->x, at->y, run, b->sample[k] + i);
      for (uint32_t j = 0; all && j < run; j++)
        b->flat[k][i + j] =
            cpu->dark ? cpu->flat[(size_t) at->y * cpu->plan.width + at->x + j]
                      : 1.0f;
    }
    count_distances (cpu->rects[cell].x, 0, run, b->x + i);
    for (uint32_t j = 0; j < run; j++)
      b->y[i + j] = cpu->rects[cell].y;
  }
}

/* imk_shcentroid_add_pupil (), operation by operation: the same bits. */
static void
sum_block (ChainTile *t, const Frame *f, uint32_t first, uint32_t n, bool all,
    PupilBlock *b)
{
  load_pupils (f, first, n, all, b);
  for (uint32_t i = 0; i < n; i++) {
    double v0 = b->value[0][i], v1 = b->value[1][i];
    double v2 = b->value[2][i], v3 = b->value[3][i];

    t->sums[CHAIN_P][i] = v0 + v1 + v2 + v3;
    t->sums[CHAIN_PU][i] = v0 + v1 - v2 - v3;
    t->sums[CHAIN_PY][i] = v0 - v1 - v2 + v3;
  }
}

/* The same for all fields of the cells of @t. */
static void
sum_spreads (ChainTile *t, const ImkShcentroidNoise *noise, const PupilBlock *b)
{
  const ImkShcentroidNoise of = *noise;

  for (uint32_t i = 0; i < t->n; i++) {
    double q[IMK_SHCENTROID_N_PUPILS];
    float max = -3.4e38f, max_sample = 0.0f;

    for (uint32_t k = 0; k < IMK_SHCENTROID_N_PUPILS; k++) {
      float value = b->value[k][i];
      float sample = value == value ? b->sample[k][i] : 0.0f;

      q[k] = imk_shcentroid_spread (
          value, b->flat[k][i], true, 0.0, 1.0, 1.0, 0.0, &of);
      max = value > max ? value : max;
      max_sample = sample > max_sample ? sample : max_sample;
    }
    t->max[i] = max;
    t->max_sample[i] = max_sample;
    t->sums[CHAIN_Q][i] = q[0] + q[1] + q[2] + q[3];
    t->sums[CHAIN_QU][i] = q[0] + q[1] - q[2] - q[3];
    t->sums[CHAIN_QY][i] = q[0] - q[1] - q[2] + q[3];
    t->sums[CHAIN_QUU][i] = t->sums[CHAIN_QYY][i] = t->sums[CHAIN_Q][i];
    t->sums[CHAIN_RAW][i] = t->sums[CHAIN_P][i];
  }
}

/* Least fluxes of valid cells. */
static void
find_least (const Cpu *cpu, uint32_t first, uint32_t n, double *least)
{
  for (uint32_t i = 0; i < n; i++)
    least[i] = cpu->params.min_flux;
  for (uint32_t i = 0; cpu->own_fluxes && i < n; i++)
    least[i] =
        imk_shcentroid_min_flux (&cpu->params, cpu->rects[first + i].min_flux);
}

/* Returns: whether all cells of the block are valid, and have no flags */
static bool
is_valid_block (const Cpu *cpu, uint32_t first, uint32_t n, const double *flux)
{
  uint64_t n_valid = 0;
  double least[BLOCK];

  find_least (cpu, first, n, least);
  for (uint32_t i = 0; i < n; i++)
    n_valid += (flux[i] > 0.0) & (flux[i] >= least[i]) &
               imk_shcentroid_is_finite (flux[i]);
  for (uint32_t i = 0; cpu->own_fluxes && i < n; i++)
    n_valid -= cpu->rects[first + i].flags != 0;
  return n_valid == n;
}

/* Positions of a block, when all its cells are valid: the divisions are vector
 * code. Returns: whether they are */
static bool
store_block (
    ChainTile *t, const Frame *f, uint32_t first, uint32_t n, PupilBlock *b)
{
  double *p = t->sums[CHAIN_P], *pu = t->sums[CHAIN_PU];
  double *py = t->sums[CHAIN_PY];
  const ImkShcentroidParams *params = &f->cpu->params;
  bool local = params->normalisation == IMK_SHCENTROID_NORMALISATION_LOCAL;
  double mean = f->mean;

  if ((!local && !(mean > 0.0)) || !is_valid_block (f->cpu, first, n, p))
    return false;
  for (uint32_t i = 0; i < n && !local; i++) {
    double by = p[i] / mean;

    pu[i] *= by;
    py[i] *= by;
  }
  for (uint32_t i = 0; i < n; i++) {
    b->x[i] += imk_shcentroid_clamp (pu[i] / p[i], -3e38, 3e38);
    b->y[i] += imk_shcentroid_clamp (py[i] / p[i], -3e38, 3e38);
  }
  store_centres (f, first, n, b->x, b->y);
  return true;
}

/* Of a block. Returns: the largest flux, and the others in @fluxes */
static double
find_fluxes (const Frame *f, uint32_t first, uint32_t n, double *fluxes)
{
  double most = 0.0;
  PupilBlock block;
  ChainTile t;

  sum_block (&t, f, first, n, false, &block);
  for (uint32_t i = 0; i < n; i++) {
    ImkShcentroidReals s = {.p = t.sums[CHAIN_P][i]};

    fluxes[i] = imk_shcentroid_pupil_flux (&s);
  }
  for (uint32_t i = 0; f->cpu->params.min_illumination > 0.0 && i < n; i++)
    most = fluxes[i] > most ? fluxes[i] : most;
  return most;
}

/* Adds those of a block that count to their lanes. Returns: how many do */
static uint64_t
add_fluxes (const Cpu *cpu, uint32_t first, uint32_t n, double most,
    double *restrict lanes)
{
  const double *restrict fluxes = cpu->fluxes + first;
  const double dark = cpu->params.min_illumination * most;
  double least[BLOCK];
  uint64_t n_counted = 0;

  find_least (cpu, first, n, least);
  for (uint32_t i = 0; i < n; i++) {
    bool counts =
        (fluxes[i] > 0.0) & (fluxes[i] >= least[i]) & (fluxes[i] >= dark);

    lanes[i] += counts ? fluxes[i] : 0.0;
    n_counted += counts;
  }
  return n_counted;
}

/* The mean flux of the valid cells, added up as slopes are: cell i in lane
 * i % IMK_SHCENTROID_TILT_LANES, of which a block has a part. */
static void
find_mean (Frame *f)
{
  const Cpu *cpu = f->cpu;
  ImkShcentroidTiltSums lanes[IMK_SHCENTROID_TILT_LANES] = {{0}};
  double sums[IMK_SHCENTROID_TILT_LANES] = {0}, most = 0.0;
  uint32_t n_cells = cpu->plan.n_rects;

  if (cpu->params.estimator != IMK_SHCENTROID_ESTIMATOR_PUPILS ||
      cpu->params.normalisation == IMK_SHCENTROID_NORMALISATION_LOCAL)
    return;
  for (uint32_t i = 0; i < n_cells; i += BLOCK)
    most = fmax (
        most, find_fluxes (f, i, n_cells - i < BLOCK ? n_cells - i : BLOCK,
                  cpu->fluxes + i));
  for (uint32_t i = 0; i < n_cells; i += BLOCK)
    lanes[0].n += (uint32_t) add_fluxes (cpu, i,
        n_cells - i < BLOCK ? n_cells - i : BLOCK, most,
        sums + i % IMK_SHCENTROID_TILT_LANES);
  for (uint32_t i = 0; i < IMK_SHCENTROID_TILT_LANES; i++)
    lanes[i].x = sums[i];
  f->mean = imk_shcentroid_mean_of (lanes).x;
}

/* imk_shcentroid_end_pupils () of the cells of @t, operation by operation: the
 * same bits, except of variances of cells with a bad pixel, which have none. */
static void
end_block (ChainTile *t, const ImkShcentroidParams *params, double mean)
{
  const bool local =
      params->normalisation == IMK_SHCENTROID_NORMALISATION_LOCAL;

  for (uint32_t i = 0; i < t->n; i++) {
    double p = t->sums[CHAIN_P][i];
    double by = local ? 1.0 : mean > 0.0 ? p / mean : 0.0;
    bool good = p == p;

    t->sums[CHAIN_P][i] = good ? p : 0.0;
    t->sums[CHAIN_PU][i] = good ? t->sums[CHAIN_PU][i] * by : 0.0;
    t->sums[CHAIN_PY][i] = good ? t->sums[CHAIN_PY][i] * by : 0.0;
    t->sums[CHAIN_RAW][i] = good ? p : 0.0;
    t->sums[CHAIN_QUU][i] *= by * by;
    t->sums[CHAIN_QYY][i] *= by * by;
  }
  for (uint32_t i = 0; i < t->n && !local; i++)
    t->sums[CHAIN_Q][i] = t->sums[CHAIN_QU][i] = t->sums[CHAIN_QY][i] = 0.0;
}

static void
measure_pupil_images (const Frame *f, uint32_t first, uint32_t end, bool all,
    const ImkShcentroidNoise *noise)
{
  const ImkShcentroidParams *params = &f->cpu->params;
  bool simple = !all && !f->cpu->lost && !imk_shcentroid_joins (params) &&
                params->invalid_policy != IMK_SHCENTROID_INVALID_HOLD &&
                !imk_shcentroid_tracks (params);

  while (first < end) {
    uint32_t n = end - first < BLOCK ? end - first : BLOCK;
    PupilBlock block;
    ChainTile t;

    sum_block (&t, f, first, n, all, &block);
    if (!simple || !store_block (&t, f, first, n, &block)) {
      begin_chain (&t, f, first, n, false);
      if (all)
        sum_spreads (&t, noise, &block);
      end_block (&t, params, f->mean);
      finish_chain (&t);
    }
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
  MatchScratch scratch;

  if (f->cpu->params.estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS) {
    measure_pupil_images (f, first, end, all, &noise);
    return;
  }
  scratch = imk_shcentroid_take_scratch (&f->cpu->matching);
  for (uint32_t i = first; i < end; i += BLOCK) {
    uint32_t n = end - i < BLOCK ? end - i : BLOCK;

    if (all)
      filter_tile (f, i, n, &scratch, &noise, true);
    else
      filter_tile (f, i, n, &scratch, &noise, false);
  }
  imk_shcentroid_give_back_scratch (&f->cpu->matching, &scratch);
}

const ImkShcentroidLoops IMK_ISA_TABLE = {
    .measure = measure_linear,
    .prepare = find_mean,
};
