/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sums of the columns of a tile, in vectors: what chain.c, strips.h and
 * fold.h work on. */
#pragma once

#include "shcentroid/cpu/weights.h"

/* The settings that change the loop over pixels. Each common combination is a
 * copy of the loop with constants. */
typedef struct ChainWay {
  bool all;      /* IMK_SHCENTROID_FIELDS_ALL */
  bool flat;     /* with dark and flat, */
  bool packed;   /* in one number */
  bool floats;   /* float32 samples */
  bool cut;      /* with levels or bad pixels */
  bool weighted; /* with weights, */
  bool moving;   /* whose rows differ from cell to cell */
  bool raised;   /* with a power, */
  bool listed;   /* of samples, in a table */
  bool quad;     /* of quad cells */
} ChainWay;

/* SUM_STRIPS, which the caller defines, with the constants .cut, .weighted and
 * .moving of the ChainWay *way. */
#define SUM_CUT_OR_NOT(...) \
  do { \
    if (way->cut) \
      SUM_STRIPS (__VA_ARGS__, .cut = true); \
    else \
      SUM_STRIPS (__VA_ARGS__, .cut = false); \
  } while (0)
#define SUM_WEIGHTED_OR_NOT(...) \
  do { \
    if (way->moving) \
      SUM_CUT_OR_NOT (__VA_ARGS__, .weighted = true, .moving = true); \
    else if (way->weighted) \
      SUM_CUT_OR_NOT (__VA_ARGS__, .weighted = true); \
    else \
      SUM_CUT_OR_NOT (__VA_ARGS__, .weighted = false); \
  } while (0)

/* What all columns of a band have in common. */
typedef struct ChainRows {
  bool calibrated; /* values are not the samples */
  Powers raising;
  const double *powers, *derivatives; /* of samples, or NULL */
  ImkShcentroidNoise noise;
  const double *weights; /* of its rows, @stride apart */
  uint32_t stride;
} ChainRows;

static inline ChainWay
chain_way (const Cpu *cpu)
{
  const ImkShcentroidParams *p = &cpu->params;

  return (ChainWay){
      .all = cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL,
      .flat = cpu->dark != NULL,
      .cut = p->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE ||
             p->brightest > 0 || cpu->bad,
      .weighted = p->weighting != IMK_SHCENTROID_WEIGHTING_NONE,
      .raised = p->power != 1.0,
      .listed = cpu->listed,
      .quad = p->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD,
  };
}

static inline ChainRows
chain_rows (const Cpu *cpu)
{
  return (ChainRows){
      .calibrated = cpu->dark || cpu->lut,
      .raising = cpu->raising,
      .powers = cpu->powers,
      .derivatives = cpu->derivatives,
      .noise = imk_shcentroid_noise (&cpu->params),
  };
}

/* The columns of a piece of a tile in one band: what decides about their
 * pixels, and their sums, in the order of ImkShcentroidReals. */
typedef struct ChainColumns {
  /* aligned: a vector of 64 bytes is a line of the cache */
  _Alignas(64) double least[CHAIN_ROOM];
  double pedestal[CHAIN_ROOM], factors[CHAIN_ROOM], us[CHAIN_ROOM];
  ChainSums sums;
  float max[CHAIN_ROOM], max_sample[CHAIN_ROOM];
  /* the cell that each is in, where cells have weights of their own */
  int64_t cells[CHAIN_ROOM];
  /* samples of a band that strips do not read in the frame */
  float copy[IMK_SHCENTROID_BAND_ROWS][CHAIN_ROOM];
  /* of rows, see weigh_rows () */
  double weights[IMK_SHCENTROID_BAND_ROWS * CHAIN_TILE + REALS];
  const double *factor, *u; /* of a table, or factors and us */
} ChainColumns;

/* The weights of the columns of a vector, in a row: of the cells from the first
 * column's on, the one that each lane says. */
typedef struct CellWeights {
  int64_t first;
  Masks lanes;
} CellWeights;

INLINE CellWeights
cell_weights (const ChainColumns *c, uint32_t i)
{
  CellWeights w = {.first = c->cells[i]};

  memcpy (&w.lanes, c->cells + i, sizeof (w.lanes));
  w.lanes -= w.first;
#if IMK_VECTOR_SIZE == 32
  /* numbers of both halves */
  w.lanes = w.lanes * INT64_C (0x200000002) + INT64_C (0x100000000);
#endif
  return w;
}

/* @row: those of all cells */
INLINE Reals
spread_weights (const double *row, const CellWeights *w)
{
  Reals weights = read_reals (row + w->first);

#if IMK_VECTOR_SIZE == 64
  return (Reals) _mm512_permutexvar_pd ((__m512i) w->lanes, (__m512d) weights);
#elif IMK_VECTOR_SIZE == 32
  return (Reals) _mm256_permutevar8x32_ps (
      (__m256) weights, (__m256i) w->lanes);
#else
  for (uint32_t i = 0; i < REALS; i++)
    weights[i] = row[w->first + w->lanes[i]];
  return weights;
#endif
}

/* One group of the columns of one vector, in registers: ImkShcentroidGroup. */
typedef struct ChainStrip {
  Reals p, p1, q, q1, q2, raw;
} ChainStrip;

/* The sum of the groups of a band: ImkShcentroidReals of the same columns,
 * without the products with u. */
typedef struct VectorSums {
  Reals p, py, q, qy, qyy, raw;
} VectorSums;

/* What is raised to a power of the pixels of columns [@i, @i + REALS). */
INLINE Reals
base_of (const ChainColumns *c, uint32_t i, Reals v, const ChainWay way)
{
  return way.cut ? v - read_reals (c->pedestal + i) : v;
}

/* imk_shcentroid_part () of the same. @p: base_of (), to its power */
INLINE Reals
weigh_power (const ChainColumns *c, uint32_t i, Reals v, Reals p, Reals weight,
    const ChainWay way)
{
  if (way.weighted)
    p *= weight;
  if (way.cut)
    p = (Reals) ((Masks) p & (v >= read_reals (c->least + i)));
  return p;
}

/* imk_shcentroid_add_part () of the same. @y: the coordinate of their row, of a
 * quad cell only */
INLINE void
add_part (
    ChainStrip *s, double y, Reals p, const bool begins, const ChainWay way)
{
  if (way.quad)
    s->p1 += y * p;
  else if (!begins)
    s->p1 += s->p;
  s->p = begins ? p : s->p + p;
}

/* What a count more does to the part @p. */
INLINE Reals
derivative_of (const ChainColumns *c, uint32_t i, const ChainRows *r, Reals v,
    Reals weight, Reals p, const ChainWay way)
{
  Reals d;
  Masks above;

  if (!way.raised)
    return weight;
  d = v - read_reals (c->pedestal + i);
  above = d > 0.0;
  return (Reals) ((Masks) (r->raising.series.power * p / d) & above);
}

/* imk_shcentroid_spread () and ..._add_spread () of the same. */
INLINE void
add_spread (ChainStrip *s, const ChainColumns *c, uint32_t i, double y,
    const ChainRows *r, Reals v, Reals flat, Reals derivative,
    const bool begins, const ChainWay way)
{
  Masks lit = v > 0.0;
  Reals light = (Reals) ((Masks) v & lit), q;

  if (way.flat) {
    q = flat * light;
    if (r->noise.read > 0.0)
      q += flat * flat * r->noise.read;
  } else {
    q = light + r->noise.read;
  }
  if (way.raised || way.weighted)
    q = derivative * derivative * q;
  if (way.cut)
    q = (Reals) ((Masks) q & (v >= read_reals (c->least + i)));
  if (way.quad) {
    s->q1 += y * q;
    s->q2 += y * y * q;
  } else if (!begins) {
    s->q2 += s->q1;
    s->q1 += s->q;
  }
  s->q = begins ? q : s->q + q;
}

/* imk_shcentroid_add_group (): what a group that begins at row @y adds to its
 * columns. */
INLINE VectorSums
group_sums (const ChainStrip *g, const double y, const ChainWay way)
{
  VectorSums s = {.p = g->p, .py = way.quad ? g->p1 : g->p1 + y * g->p};

  if (way.all) {
    Reals q2 = 2.0 * g->q2 + g->q1;

    s.q = g->q;
    s.qy = way.quad ? g->q1 : g->q1 + y * g->q;
    s.qyy = way.quad ? g->q2 : q2 + y * (2.0 * g->q1 + y * g->q);
    /* it is p where nothing is cut and nothing weighted */
    s.raw = way.cut || way.weighted || way.raised || way.quad ? g->raw : g->p;
  }
  return s;
}

/* imk_shcentroid_end_column () of the columns of the vector from @i on. */
INLINE void
end_vector (ChainColumns *c, uint32_t i, VectorSums s, const ChainWay way)
{
  Reals u = read_reals (c->u + i);

  if (way.weighted) {
    Reals factor = read_reals (c->factor + i), square = factor * factor;

    s.p *= factor;
    s.py *= factor;
    s.q *= square;
    s.qy *= square;
    s.qyy *= square;
  }
  write_reals (&c->sums[CHAIN_P][i], s.p);
  write_reals (&c->sums[CHAIN_PU][i], u * s.p);
  write_reals (&c->sums[CHAIN_PY][i], s.py);
  if (!way.all)
    return;
  write_reals (&c->sums[CHAIN_Q][i], s.q);
  write_reals (&c->sums[CHAIN_QU][i], u * s.q);
  write_reals (&c->sums[CHAIN_QY][i], s.qy);
  write_reals (&c->sums[CHAIN_QUU][i], u * u * s.q);
  write_reals (&c->sums[CHAIN_QYY][i], s.qyy);
  write_reals (&c->sums[CHAIN_RAW][i], s.raw);
}
