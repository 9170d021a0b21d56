/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The solution of a chunk, compiled once for each instruction set:
 * IMK_ISA_TABLE: the name of its table
 * IMK_VECTOR_SIZE: bytes of its registers; a lane is a pixel
 * The rounds end when all pixels of a vector are done. */
#include "photostereo/cpu/grey.h"

#define REAL Reals
#include "photostereo/photostereo-solve.h"

/* A light counts if lo < G < hi and |n'.L - G| <= limit. */
typedef struct Test {
  Reals x, y, z; /* n' */
  Reals lo, hi, limit;
} Test;

/* Adjacent pixels, one for each lane of a vector. */
typedef struct Group {
  const Chunk *chunk;
  uint32_t offset; /* of the first pixel in the chunk */
  Reals pixel_x;   /* mm */
  Test test;       /* that selected the lights of the solution */
  Solution solution;
  Reals n, rounds;
  Reals last_round; /* number of the round of the solution, from 0 */
  Masks valid;
} Group;

/* One light at the pixels of a group. */
typedef struct Sample {
  uint32_t at;   /* in the arrays of the scratch */
  Reals x, y, z; /* light vector */
  Reals grey;
} Sample;

INLINE Sample
sample_of (const Group *g, uint32_t i)
{
  const Chunk *c = g->chunk;
  const ImkPhotostereoLamp *lamp = &c->cpu->lamps[c->lights[i]];
  Sample s = {.at = i * CHUNK + g->offset};
  Reals k = load (c->scratch->factors + s.at);

  s.x = k * (lamp->x - g->pixel_x);
  s.y = k * (lamp->y - c->pixel_y);
  s.z = k * lamp->z;
  s.grey = load (c->scratch->grey + s.at);
  return s;
}

/* The treatment of a light that does not fit. */
typedef enum Solver {
  SOLVER_READMIT,
  SOLVER_DROP,
  SOLVER_HUBER,
} Solver;

static Solver
solver_of (const ImkPhotostereoParams *p)
{
  if (p->robust == IMK_PHOTOSTEREO_ROBUST_HUBER)
    return SOLVER_HUBER;
  return p->robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS && !p->readmit
             ? SOLVER_DROP
             : SOLVER_READMIT;
}

/* ------------------------------------------------------------------------
 * One round: selects the lights and computes the sums over them. */

/* Returns: the weights of a light; @used: where they are above 0 */
INLINE Reals
weigh (const Group *g, const Test *t, const Sample *l, const Solver solver,
    Reals round, Masks *used)
{
  Reals grey = l->grey;
  Reals residual = t->x * l->x + t->y * l->y + t->z * l->z - grey;
  Reals size = (Reals) ((Masks) residual & 0x7fffffff);
  Reals one = {0};

  one += 1;
  if (solver == SOLVER_HUBER) {
    Reals weight = t->limit / size;

    *used = grey < IMK_PHOTOSTEREO_CLIPPED;
    weight = select_lanes (weight < one, weight, one);
    return (Reals) ((Masks) weight & *used);
  }
  *used = (grey > t->lo) & (grey < t->hi) & (size <= t->limit);
  if (solver == SOLVER_DROP) { /* an excluded light stays excluded */
    float *dropped = g->chunk->scratch->dropped + l->at;
    Reals when = load (dropped);

    *used &= when >= round;
    when = select_lanes (~*used & (when > round), round, when);
    memcpy (dropped, &when, sizeof (when));
  }
  return (Reals) ((Masks) one & *used);
}

INLINE Sums
sweep (const Group *g, const Test *t, const Solver solver, Reals round)
{
  Sums s = {.n = {0}};
  Masks n = {0};

  for (uint32_t i = 0; i < g->chunk->n_lights; i++) {
    const Sample l = sample_of (g, i);
    Masks used;
    Reals weight = weigh (g, t, &l, solver, round, &used);
    Reals wx, wy, wz;

    if (solver == SOLVER_HUBER) {
      wx = weight * l.x;
      wy = weight * l.y;
      wz = weight * l.z;
    } else { /* weights are 0 and 1, so both sums are equal */
      wx = (Reals) ((Masks) l.x & used);
      wy = (Reals) ((Masks) l.y & used);
      wz = (Reals) ((Masks) l.z & used);
    }
    s.xx += wx * l.x;
    s.xy += wx * l.y;
    s.xz += wx * l.z;
    s.yy += wy * l.y;
    s.yz += wy * l.z;
    s.zz += wz * l.z;
    s.x += wx * l.grey;
    s.y += wy * l.grey;
    s.z += wz * l.grey;
    n -= used;
  }
  s.n = __builtin_convertvector(n, Reals);
  return s;
}

static Sums
sweep_lights (const Group *g, const Test *t, Solver solver, Reals round)
{
  if (solver == SOLVER_HUBER)
    return sweep (g, t, SOLVER_HUBER, round);
  if (solver == SOLVER_DROP)
    return sweep (g, t, SOLVER_DROP, round);
  return sweep (g, t, SOLVER_READMIT, round);
}

/* ------------------------------------------------------------------------
 * The lights of a solution. */

/* Returns: the weight of a light in the solution */
INLINE Reals
weigh_solution (const Group *g, const Sample *l, Solver solver)
{
  Masks used;
  /* Lights that a later round rejected still belong to this solution. */
  Reals w = weigh (g, &g->test, l,
      solver == SOLVER_DROP ? SOLVER_READMIT : solver, g->last_round, &used);

  if (solver == SOLVER_DROP)
    w = (Reals) ((Masks) w &
                 (load (g->chunk->scratch->dropped + l->at) > g->last_round));
  return w;
}

INLINE Reals
predict (const Solution *s, const Sample *l)
{
  return s->x * l->x + s->y * l->y + s->z * l->z;
}

/* Returns: the mean square residual over the lights of the solution that are
 * darker than predicted */
static Reals
mean_square (const Group *g, Solver solver)
{
  Reals rr = {0}, n = {0}, zero = {0}, one = {0};

  one += 1;
  for (uint32_t i = 0; i < g->chunk->n_lights; i++) {
    const Sample l = sample_of (g, i);
    Reals w = weigh_solution (g, &l, solver);
    Reals r = predict (&g->solution, &l) - l.grey;

    w = select_lanes (r > zero, w, zero);
    n += w;
    rr += w * r * r;
  }
  return rr / select_lanes (n > one, n, one);
}

/* Returns: the third largest grey value that is not clipped, 0 with fewer than
 * three; with few lights, a highlight appears under one or two of them */
static Reals
third_brightest (const Group *g)
{
  Reals top[3] = {{0}};

  for (uint32_t i = 0; i < g->chunk->n_lights; i++) {
    Reals v = load (g->chunk->scratch->grey + i * CHUNK + g->offset);

    v = select_lanes (v < IMK_PHOTOSTEREO_CLIPPED, v, (Reals){0});
    for (int j = 0; j < 3; j++) {
      Masks more = (Masks) (v > top[j]);
      Reals less = select_lanes (more, top[j], v);

      top[j] = select_lanes (more, v, top[j]);
      v = less;
    }
  }
  return top[2];
}

/* ------------------------------------------------------------------------
 * All rounds. */

/* Before the first solution the tests are: absolute limits of the grey value,
 * limits from the grey values of the pixel, and clipped samples. */
INLINE Test
first_test (const Group *g, const ImkPhotostereoParams *p)
{
  Test t = {.x = {0}};
  bool limits = p->robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS && !p->relative;

  t.lo = t.hi = t.limit = t.x;
  t.lo += limits ? p->t_min : -INFINITY;
  t.hi += limits ? p->t_max : IMK_PHOTOSTEREO_CLIPPED;
  t.limit += INFINITY;
  if (p->adaptive)
    t.lo = p->t_min * third_brightest (g);
  return t;
}

INLINE Test
next_test (const Group *g, const ImkPhotostereoParams *p, Solver solver)
{
  const Solution *s = &g->solution;
  Test t = {.x = s->x, .y = s->y, .z = s->z};
  Reals unit = {0}, rms;

  unit += 1;
  for (uint32_t i = 0; p->relative && i < IMK_VECTOR_SIZE / sizeof (float); i++)
    unit[i] = sqrtf (s->norm2[i]);
  t.lo = p->t_min * unit;
  t.hi = p->t_max * unit;
  t.limit = p->t_res * unit;
  if (p->adaptive) {
    rms = mean_square (g, solver);
    for (uint32_t i = 0; i < IMK_VECTOR_SIZE / sizeof (float); i++)
      rms[i] = IMK_PHOTOSTEREO_RESIDUAL_FACTOR * sqrtf (rms[i]);
    t.limit = select_lanes (rms > t.limit, rms, t.limit);
  }
  return t;
}

INLINE Masks
is_good (const Solution *s, Reals n, float min_lights, float min_condition)
{
  return (n >= min_lights) & (s->condition >= min_condition) &
         (s->volume >= IMK_PHOTOSTEREO_MIN_VOLUME) & (s->norm2 > 0) &
         (s->norm2 < INFINITY);
}

/* The same lights give the same bits. Huber's weights converge only; there the
 * limit is 1e-4 of the length. */
INLINE Masks
is_same (const Solution *a, const Solution *b, Solver solver)
{
  Reals x = a->x - b->x, y = a->y - b->y, z = a->z - b->z;

  if (solver == SOLVER_HUBER)
    return x * x + y * y + z * z <= 1e-8f * b->norm2;
  return (a->x == b->x) & (a->y == b->y) & (a->z == b->z);
}

static void
solve_rounds (Group *g, Masks wanted)
{
  const Chunk *c = g->chunk;
  const ImkPhotostereoParams *p = &c->cpu->params;
  const Solver solver = solver_of (p);
  float min_lights =
      (float) (p->min_lights < c->n_lights ? p->min_lights : c->n_lights);
  Reals round = {0};
  Sums sums;
  Masks active;

  g->test = first_test (g, p);
  sums = sweep_lights (g, &g->test, solver, round);
  g->solution = solve_sums (&sums);
  g->n = sums.n;
  g->last_round = g->rounds = round;
  g->rounds += 1;
  g->valid = wanted & is_good (&g->solution, g->n, 3, p->min_condition);
  active =
      p->robust == IMK_PHOTOSTEREO_ROBUST_NONE ? g->valid ^ g->valid : g->valid;
  for (uint32_t i = 1; i < p->max_iterations && any_lane (active); i++) {
    Test test = next_test (g, p, solver);
    Solution s;
    Masks good, same;

    round += 1;
    sums = sweep_lights (g, &test, solver, round);
    s = solve_sums (&sums);
    good = active & is_good (&s, sums.n, min_lights, p->min_condition);
    same = is_same (&g->solution, &s, solver);
    g->test.x = select_lanes (good, test.x, g->test.x);
    g->test.y = select_lanes (good, test.y, g->test.y);
    g->test.z = select_lanes (good, test.z, g->test.z);
    g->test.lo = select_lanes (good, test.lo, g->test.lo);
    g->test.hi = select_lanes (good, test.hi, g->test.hi);
    g->test.limit = select_lanes (good, test.limit, g->test.limit);
    g->solution.x = select_lanes (good, s.x, g->solution.x);
    g->solution.y = select_lanes (good, s.y, g->solution.y);
    g->solution.z = select_lanes (good, s.z, g->solution.z);
    g->solution.norm2 = select_lanes (good, s.norm2, g->solution.norm2);
    g->solution.condition =
        select_lanes (good, s.condition, g->solution.condition);
    g->n = select_lanes (good, sums.n, g->n);
    g->last_round = select_lanes (good, round, g->last_round);
    active = good & ~same;
    g->rounds -= __builtin_convertvector(active, Reals);
  }
}

/* ------------------------------------------------------------------------
 * Albedo and residual: one more sweep over the lights of the solution. */

static void
measure (const Group *g, Reals *albedo, Reals *residual)
{
  const Chunk *c = g->chunk;
  const Solver solver = solver_of (&c->cpu->params);
  const uint32_t n_planes = c->cpu->plan.n_planes;
  Reals ss = {0}, rr = {0};

  for (uint32_t i = 0; i < c->n_lights; i++) {
    const Sample l = sample_of (g, i);
    Reals s = predict (&g->solution, &l);
    Reals w = weigh_solution (g, &l, solver);

    rr += w * (s - l.grey) * (s - l.grey);
    ss += w * s * s;
    for (uint32_t j = 0; c->has_colours && j < n_planes; j++)
      albedo[j] += w * s *
                   load (c->scratch->colours +
                         (n_planes * (size_t) i + j) * CHUNK + g->offset);
  }
  for (uint32_t j = 0; j < n_planes; j++)
    albedo[j] /= ss;
  *residual = rr / g->n; /* the mean square */
}

static void
store_group (const Group *g, const Reals *albedo, Reals residual)
{
  const Chunk *c = g->chunk;

  for (uint32_t i = 0; i < IMK_VECTOR_SIZE / sizeof (float); i++) {
    uint32_t x = c->x + g->offset + i;
    float length = sqrtf (g->solution.norm2[i]);
    Result r = {0};

    if (x >= c->cpu->plan.width)
      return;
    if (g->valid[i]) {
      r.normal[0] = g->solution.x[i] / length;
      r.normal[1] = g->solution.y[i] / length;
      r.normal[2] = g->solution.z[i] / length;
      for (uint32_t j = 0; j < c->cpu->plan.n_planes; j++)
        r.albedo[j] = c->has_colours ? albedo[j][i] * length : length;
      r.quality[IMK_PHOTOSTEREO_LIGHTS] = g->n[i];
      r.quality[IMK_PHOTOSTEREO_ROUNDS] = g->rounds[i];
      r.quality[IMK_PHOTOSTEREO_RESIDUAL] = sqrtf (residual[i]);
      r.length = length;
      r.quality[IMK_PHOTOSTEREO_CONDITION] = g->solution.condition[i];
    }
    imk_photostereo_store_result (c, x, g->offset + i, &r);
  }
}

static void
solve_chunk (const Chunk *c)
{
  Scratch *scratch = c->scratch;

  memset (scratch->ambient, 0,
      c->cpu->plan.n_planes * CHUNK * sizeof (*scratch->ambient));
  for (uint32_t i = 0; i < CHUNK; i++)
    scratch->pixel_x[i] =
        ((float) (c->x + i) - c->cpu->plan.centre_x) * c->cpu->plan.pitch_x;
  for (uint32_t i = 0; i < c->n_lights; i++) {
    fill_grey (c, i);
    fill_factors (
        c, &c->cpu->lamps[c->lights[i]], scratch->factors + (size_t) i * CHUNK);
  }
  for (size_t i = 0; scratch->dropped && i < (size_t) c->n_lights * CHUNK; i++)
    scratch->dropped[i] = INFINITY;

  for (uint32_t i = 0; i < c->n; i += IMK_VECTOR_SIZE / sizeof (float)) {
    Group g = {.chunk = c, .offset = i};
    Reals albedo[IMK_PHOTOSTEREO_MAX_PLANES] = {{0}}, residual = {0};
    Masks wanted;

    for (uint32_t j = 0; j < IMK_VECTOR_SIZE / sizeof (float); j++)
      wanted[j] = -is_wanted (c, c->x + i + j);
    g.pixel_x = load (scratch->pixel_x + i);
    if (c->n_lights >= 3 && any_lane (wanted)) {
      solve_rounds (&g, wanted);
      if (c->measures && any_lane (g.valid))
        measure (&g, albedo, &residual);
    }
    store_group (&g, albedo, residual);
  }
}

const ImkPhotostereoLoops IMK_ISA_TABLE = {
    .solve_chunk = solve_chunk,
    .scan_row = scan_row,
};
