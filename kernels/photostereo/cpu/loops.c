/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The solution of a chunk, compiled once for each instruction set:
 * IMK_ISA_TABLE: the name of its table
 * IMK_VECTOR_SIZE: bytes of its registers; a lane is a pixel
 * The rounds end when all pixels of a vector are done. */
#include "photostereo/cpu/grey.h"

#define REAL Reals
#include "photostereo/photostereo-solve.h"

/* A light counts if lo < G - c unit < hi and |n'.L + c unit - G| <= limit. */
typedef struct Test {
  Reals x, y, z; /* n' */
  Reals constant;
  Reals lo, hi, limit;
} Test;

/* Adjacent pixels, one for each lane of a vector. */
typedef struct Group {
  const Chunk *chunk;
  uint32_t offset; /* of the first pixel in the chunk */
  Reals pixel_x;   /* mm */
  Reals pixel_z;   /* likewise */
  Test test;       /* that selected the lights of the solution */
  Solution solution;
  Reals constant;  /* light of the room, 0 without */
  Reals middle[3]; /* sum unit L / sum unit^2 of all lights, for digits */
  Reals n, rounds;
  Reals last_round; /* number of the round of the solution, from 0 */
  Masks valid;
} Group;

/* One light at the pixels of a group. */
typedef struct Sample {
  uint32_t at;   /* in the arrays of the scratch */
  Reals x, y, z; /* light vector */
  Reals grey;
  Reals unit; /* what a room light of 1 adds to grey; 0 without */
} Sample;

/* What a constant adds to the normal equations, for vectors from the middle of
 * all lights: sums of the vectors themselves would leave few digits of what is
 * left when the constant is eliminated. */
typedef struct Moments {
  Reals x, y, z, grey, unit; /* sums of w unit times these */
} Moments;

INLINE Sample
sample_of (const Group *g, uint32_t i)
{
  const Chunk *c = g->chunk;
  const ImkPhotostereoLamp *lamp = &c->cpu->lamps[c->lights[i]];
  Sample s = {.at = i * CHUNK + g->offset};
  Reals k = load (c->scratch->factors + s.at);

  s.x = k * (lamp->x - g->pixel_x);
  s.y = k * (lamp->y - c->pixel_y);
  s.z = k * (lamp->z - g->pixel_z);
  s.grey = load (c->scratch->grey + s.at);
  if (c->scratch->units)
    s.unit = load (c->scratch->units + s.at);
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
    const bool constant, Reals round, Masks *used)
{
  Reals grey = l->grey;
  Reals lit = constant ? grey - t->constant * l->unit : grey;
  Reals residual = t->x * l->x + t->y * l->y + t->z * l->z - lit;
  Reals size = (Reals) ((Masks) residual & 0x7fffffff);
  Reals one = {0};

  one += 1;
  if (solver == SOLVER_HUBER) {
    Reals weight = t->limit / size;

    *used = grey < IMK_PHOTOSTEREO_CLIPPED;
    weight = select_lanes (weight < one, weight, one);
    return (Reals) ((Masks) weight & *used);
  }
  *used = (lit > t->lo) & (lit < t->hi) & (size <= t->limit);
  if (solver == SOLVER_DROP) { /* an excluded light stays excluded */
    float *dropped = g->chunk->scratch->dropped + l->at;
    Reals when = load (dropped);

    *used &= when >= round;
    when = select_lanes (~*used & (when > round), round, when);
    memcpy (dropped, &when, sizeof (when));
  }
  return (Reals) ((Masks) one & *used);
}

/* The Schur complement of the row of the constant: what is left is solved as
 * without one. */
INLINE void
eliminate_constant (Sums *s, const Moments *m)
{
  Reals x = m->x / m->unit, y = m->y / m->unit, z = m->z / m->unit;

  s->xx -= x * m->x;
  s->xy -= x * m->y;
  s->xz -= x * m->z;
  s->yy -= y * m->y;
  s->yz -= y * m->z;
  s->zz -= z * m->z;
  s->x -= x * m->grey;
  s->y -= y * m->grey;
  s->z -= z * m->grey;
}

INLINE Reals
constant_of (const Group *g, const Solution *s, const Moments *m)
{
  return (m->grey - s->x * m->x - s->y * m->y - s->z * m->z) / m->unit -
         (s->x * g->middle[0] + s->y * g->middle[1] + s->z * g->middle[2]);
}

static void
find_middle (Group *g)
{
  Reals sum[4] = {{0}};

  for (uint32_t i = 0; i < g->chunk->n_lights; i++) {
    const Sample l = sample_of (g, i);

    sum[0] += l.unit * l.x;
    sum[1] += l.unit * l.y;
    sum[2] += l.unit * l.z;
    sum[3] += l.unit * l.unit;
  }
  for (int k = 0; k < 3; k++)
    g->middle[k] = sum[k] / sum[3];
}

INLINE Sums
sweep (const Group *g, const Test *t, const Solver solver, const bool constant,
    Reals round, Moments *moments)
{
  Sums s = {.n = {0}};
  Moments m = {.unit = {0}};
  Masks n = {0};

  for (uint32_t i = 0; i < g->chunk->n_lights; i++) {
    const Sample l = sample_of (g, i);
    Masks used;
    Reals weight = weigh (g, t, &l, solver, constant, round, &used);
    Reals x = l.x, y = l.y, z = l.z, wx, wy, wz;

    if (constant) {
      x -= l.unit * g->middle[0];
      y -= l.unit * g->middle[1];
      z -= l.unit * g->middle[2];
    }

    if (solver == SOLVER_HUBER) {
      wx = weight * x;
      wy = weight * y;
      wz = weight * z;
    } else { /* weights are 0 and 1, so both sums are equal */
      wx = (Reals) ((Masks) x & used);
      wy = (Reals) ((Masks) y & used);
      wz = (Reals) ((Masks) z & used);
    }
    s.xx += wx * x;
    s.xy += wx * y;
    s.xz += wx * z;
    s.yy += wy * y;
    s.yz += wy * z;
    s.zz += wz * z;
    s.x += wx * l.grey;
    s.y += wy * l.grey;
    s.z += wz * l.grey;
    n -= used;
    if (constant) {
      Reals wu = weight * l.unit;

      m.x += wu * x;
      m.y += wu * y;
      m.z += wu * z;
      m.grey += wu * l.grey;
      m.unit += wu * l.unit;
    }
  }
  s.n = __builtin_convertvector(n, Reals);
  if (constant)
    eliminate_constant (&s, &m);
  *moments = m;
  return s;
}

static Sums
sweep_lights (
    const Group *g, const Test *t, Solver solver, Reals round, Moments *m)
{
  if (g->chunk->cpu->plan.constant)
    return solver == SOLVER_HUBER ? sweep (g, t, SOLVER_HUBER, true, round, m)
           : solver == SOLVER_DROP
               ? sweep (g, t, SOLVER_DROP, true, round, m)
               : sweep (g, t, SOLVER_READMIT, true, round, m);
  return solver == SOLVER_HUBER ? sweep (g, t, SOLVER_HUBER, false, round, m)
         : solver == SOLVER_DROP
             ? sweep (g, t, SOLVER_DROP, false, round, m)
             : sweep (g, t, SOLVER_READMIT, false, round, m);
}

/* ------------------------------------------------------------------------
 * The lights of a solution. */

/* Returns: the weight of a light in the solution */
INLINE Reals
weigh_solution (const Group *g, const Sample *l, Solver solver)
{
  Masks used;
  /* Lights that a later round rejected still belong to this solution. */
  Reals w =
      weigh (g, &g->test, l, solver == SOLVER_DROP ? SOLVER_READMIT : solver,
          g->chunk->cpu->plan.constant, g->last_round, &used);

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
    Reals r = predict (&g->solution, &l) + g->constant * l.unit - l.grey;

    w = select_lanes (r > zero, w, zero);
    n += w;
    rr += w * r * r;
  }
  return rr / select_lanes (n > one, n, one);
}

/* Returns: what a light has to exceed in the first solution: @part of the third
 * largest grey value that is not clipped (0 with fewer than three; with few
 * lights, a highlight appears under one or two of them). With light of the room
 * the way begins at the smallest grey value */
static Reals
darkest_of (const Group *g, float part)
{
  Reals top[3] = {{0}}, least = {0};

  if (g->chunk->cpu->plan.constant)
    least += 1;

  for (uint32_t i = 0; i < g->chunk->n_lights; i++) {
    Reals v = load (g->chunk->scratch->grey + i * CHUNK + g->offset);

    least = select_lanes (v < least, v, least);
    v = select_lanes (v < IMK_PHOTOSTEREO_CLIPPED, v, (Reals){0});
    for (int j = 0; j < 3; j++) {
      Masks more = (Masks) (v > top[j]);
      Reals less = select_lanes (more, top[j], v);

      top[j] = select_lanes (more, v, top[j]);
      v = less;
    }
  }
  return g->chunk->cpu->plan.constant ? least + part * (top[2] - least)
                                      : part * top[2];
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

  t.lo = t.hi = t.limit = t.constant = t.x;
  t.lo += limits ? p->t_min : -INFINITY;
  t.hi += limits ? p->t_max : IMK_PHOTOSTEREO_CLIPPED;
  t.limit += INFINITY;
  if (p->adaptive)
    t.lo = darkest_of (g, p->t_min);
  return t;
}

INLINE Test
next_test (const Group *g, const ImkPhotostereoParams *p, Solver solver)
{
  const Solution *s = &g->solution;
  Test t = {.x = s->x, .y = s->y, .z = s->z, .constant = g->constant};
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
  const bool constant = c->cpu->plan.constant;
  const float fewest = constant ? 4 : 3;
  Reals round = {0};
  Moments moments;
  Sums sums;
  Masks active;

  if (min_lights < fewest)
    min_lights = fewest;
  if (constant)
    find_middle (g);
  g->test = first_test (g, p);
  sums = sweep_lights (g, &g->test, solver, round, &moments);
  g->solution = solve_sums (&sums);
  g->constant = constant ? constant_of (g, &g->solution, &moments) : round;
  g->n = sums.n;
  g->last_round = g->rounds = round;
  g->rounds += 1;
  g->valid = wanted & is_good (&g->solution, g->n, fewest, p->min_condition);
  active =
      p->robust == IMK_PHOTOSTEREO_ROBUST_NONE ? g->valid ^ g->valid : g->valid;
  for (uint32_t i = 1; i < p->max_iterations && any_lane (active); i++) {
    Test test = next_test (g, p, solver);
    Solution s;
    Masks good, same;

    round += 1;
    sums = sweep_lights (g, &test, solver, round, &moments);
    s = solve_sums (&sums);
    good = active & is_good (&s, sums.n, min_lights, p->min_condition);
    same = is_same (&g->solution, &s, solver);
    g->test.x = select_lanes (good, test.x, g->test.x);
    g->test.y = select_lanes (good, test.y, g->test.y);
    g->test.z = select_lanes (good, test.z, g->test.z);
    g->test.constant = select_lanes (good, test.constant, g->test.constant);
    g->test.lo = select_lanes (good, test.lo, g->test.lo);
    g->test.hi = select_lanes (good, test.hi, g->test.hi);
    g->test.limit = select_lanes (good, test.limit, g->test.limit);
    g->solution.x = select_lanes (good, s.x, g->solution.x);
    g->solution.y = select_lanes (good, s.y, g->solution.y);
    g->solution.z = select_lanes (good, s.z, g->solution.z);
    g->solution.norm2 = select_lanes (good, s.norm2, g->solution.norm2);
    g->solution.condition =
        select_lanes (good, s.condition, g->solution.condition);
    if (constant)
      g->constant =
          select_lanes (good, constant_of (g, &s, &moments), g->constant);
    g->n = select_lanes (good, sums.n, g->n);
    g->last_round = select_lanes (good, round, g->last_round);
    active = good & ~same;
    g->rounds -= __builtin_convertvector(active, Reals);
  }
}

/* ------------------------------------------------------------------------
 * Albedo and residual: one more sweep over the lights of the solution. */

/* @constants: of the planes, with light of the room */
static void
measure (const Group *g, Reals *albedo, Reals *constants, Reals *residual)
{
  const Chunk *c = g->chunk;
  const Solver solver = solver_of (&c->cpu->params);
  const uint32_t n_planes = c->cpu->plan.n_planes;
  const bool constant = c->cpu->plan.constant;
  Reals ss = {0}, rr = {0}, su = {0}, uu = {0};

  for (uint32_t i = 0; i < c->n_lights; i++) {
    const Sample l = sample_of (g, i);
    Reals s = predict (&g->solution, &l);
    Reals w = weigh_solution (g, &l, solver);
    Reals r = s + g->constant * l.unit - l.grey;

    rr += w * r * r;
    ss += w * s * s;
    su += w * s * l.unit;
    uu += w * l.unit * l.unit;
    for (uint32_t j = 0; c->has_colours && j < n_planes; j++) {
      Reals value = load (c->scratch->colours +
                          (n_planes * (size_t) i + j) * CHUNK + g->offset);

      albedo[j] += w * s * value;
      constants[j] += w * l.unit * value;
    }
  }
  for (uint32_t j = 0; j < n_planes && !constant; j++)
    albedo[j] /= ss;
  for (uint32_t j = 0; j < n_planes && constant; j++) { /* two unknowns */
    Reals a = albedo[j], u = constants[j], det = ss * uu - su * su;

    albedo[j] = (a * uu - u * su) / det;
    constants[j] = c->has_colours ? (u * ss - a * su) / det : g->constant;
  }
  *residual = rr / g->n; /* the mean square */
}

static void
store_group (
    const Group *g, const Reals *albedo, const Reals *constants, Reals residual)
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
      for (uint32_t j = 0; j < c->cpu->plan.n_planes; j++) {
        r.albedo[j] = c->has_colours ? albedo[j][i] * length : length;
        r.constant[j] = c->has_colours ? constants[j][i] : g->constant[i];
      }
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
  memset (scratch->pixel_z, 0, sizeof (scratch->pixel_z));
  if (c->cpu->heights.z)
    imk_photostereo_heights_of (
        &c->cpu->heights, c->x, c->y, c->n, scratch->pixel_z);
  for (uint32_t i = 0; i < c->n_lights; i++) {
    fill_grey (c, i);
    if (scratch->units)
      fill_units (c, i);
    fill_factors (
        c, &c->cpu->lamps[c->lights[i]], scratch->factors + (size_t) i * CHUNK);
  }
  for (size_t i = 0; scratch->dropped && i < (size_t) c->n_lights * CHUNK; i++)
    scratch->dropped[i] = INFINITY;

  for (uint32_t i = 0; i < c->n; i += IMK_VECTOR_SIZE / sizeof (float)) {
    Group g = {.chunk = c, .offset = i};
    Reals albedo[IMK_PHOTOSTEREO_MAX_PLANES] = {{0}}, residual = {0};
    Reals constants[IMK_PHOTOSTEREO_MAX_PLANES] = {{0}};
    Masks wanted;

    for (uint32_t j = 0; j < IMK_VECTOR_SIZE / sizeof (float); j++)
      wanted[j] = -is_wanted (c, c->x + i + j);
    g.pixel_x = load (scratch->pixel_x + i);
    g.pixel_z = load (scratch->pixel_z + i);
    if (c->n_lights >= 3 && any_lane (wanted)) {
      solve_rounds (&g, wanted);
      if (c->measures && any_lane (g.valid))
        measure (&g, albedo, constants, &residual);
    }
    store_group (&g, albedo, constants, residual);
  }
}

const ImkPhotostereoLoops IMK_ISA_TABLE = {
    .solve_chunk = solve_chunk,
    .scan_row = scan_row,
};
