/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The solution of a chunk, compiled once for each instruction set:
 * IMK_ISA_TABLE: the name of its table
 * IMK_VECTOR_SIZE: bytes of its registers; a lane is a pixel
 * The rounds end when all pixels of a vector are done. */
#include "photostereo/cpu/sweep.h"

/* ------------------------------------------------------------------------
 * The lights of a solution. */

/* Returns: the weight of a light in the solution */
INLINE Reals
weigh_solution (
    const Group *g, const Sample *l, Solver solver, const Scene scene)
{
  Masks used;
  /* Lights that a later round rejected still belong to this solution. */
  Reals w =
      weigh (g, &g->test, l, solver == SOLVER_DROP ? SOLVER_READMIT : solver,
          scene, g->last_round, &used);

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

/* Returns: the mean square residual over the lights of the last sums that are
 * darker than predicted */
INLINE Reals
mean_square (const Group *g, const Scene scene)
{
  const Reals zero = broadcast (0), one = broadcast (1);
  Reals rr = zero, n;
  Masks count = {0};

  for (uint32_t i = 0; i < g->chunk->n_lights; i++) {
    const Sample l = sample_of (g, i, scene);
    Reals lit = scene == SCENE_ROOM ? l.grey - g->constant * l.unit : l.grey;
    Reals r = predict (&g->solution, &l) - lit;
    Masks used;

    memcpy (&used, g->chunk->scratch->used + i * LANES, sizeof (used));
    used &= r > zero;
    count -= used;
    rr += keep (r * r, used);
  }
  n = __builtin_convertvector(count, Reals);
  return rr / select_lanes (n > one, n, one);
}

/* What a light has to exceed in the first solution (lo): @part of the third
 * largest grey value that is not clipped (0 with fewer than three; with few
 * lights, a highlight appears under one or two of them). With light of the room
 * the way begins at the smallest grey value, which measures the room. */
static void
find_darkest (const Group *g, float part, Test *t)
{
  const bool constant = g->chunk->cpu->plan.constant;
  Reals first = {0}, second = {0}, third = {0}, least = broadcast (constant);

  for (uint32_t i = 0; i < g->chunk->n_lights; i++) {
    Reals v = load (g->chunk->scratch->grey + i * CHUNK + g->offset);

    least = minimum (v, least);
    v = keep (v, v < IMK_PHOTOSTEREO_CLIPPED);
    third = maximum (third, minimum (second, v));
    second = maximum (second, minimum (first, v));
    first = maximum (first, v);
  }
  t->lo = constant ? least + part * (third - least) : part * third;
  t->faint = least;
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

  t.lo = t.hi = t.limit = t.constant = t.behind = t.x;
  t.lo += limits ? p->t_min : -INFINITY;
  t.hi += limits ? p->t_max : IMK_PHOTOSTEREO_CLIPPED;
  t.limit += INFINITY;
  t.faint = broadcast (-INFINITY);
  if (p->adaptive)
    find_darkest (g, p->t_min, &t);
  return t;
}

INLINE Test
next_test (const Group *g, const ImkPhotostereoParams *p, const Scene scene,
    uint32_t round)
{
  const Solution *s = &g->solution;
  Test t = {.x = s->x, .y = s->y, .z = s->z, .constant = g->constant};
  Reals unit = p->relative ? square_root (s->norm2) : broadcast (1);

  t.lo = p->t_min * unit;
  t.hi = p->t_max * unit;
  t.limit = p->t_res * unit;
  if (p->adaptive) {
    Reals rms =
        IMK_PHOTOSTEREO_RESIDUAL_FACTOR * square_root (mean_square (g, scene));

    t.limit = select_lanes (rms > t.limit, rms, t.limit);
  }
  t.faint = t.lo;
  /* at first n' is not good enough to tell a grazing light from one behind */
  t.behind = round < IMK_PHOTOSTEREO_SURE_ROUND ? -t.limit : (Reals){0};
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

INLINE void
solve_rounds (Group *g, Masks wanted, const Solver solver, const Scene scene)
{
  const Chunk *c = g->chunk;
  const ImkPhotostereoParams *p = &c->cpu->params;
  float min_lights =
      (float) (p->min_lights < c->n_lights ? p->min_lights : c->n_lights);
  const bool constant = scene == SCENE_ROOM;
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
  sums = sweep (g, &g->test, solver, scene, round, &moments);
  g->solution = solve_sums (&sums);
  g->constant = constant ? constant_of (g, &g->solution, &moments) : round;
  g->n = sums.n;
  g->last_round = g->rounds = round;
  g->rounds += 1;
  g->valid = wanted & is_good (&g->solution, g->n, fewest, p->min_condition);
  active =
      p->robust == IMK_PHOTOSTEREO_ROBUST_NONE ? g->valid ^ g->valid : g->valid;
  for (uint32_t i = 1; i < p->max_iterations && any_lane (active); i++) {
    Test test = next_test (g, p, scene, i);
    Solution s;
    Masks good, same;

    round += 1;
    sums = sweep (g, &test, solver, scene, round, &moments);
    s = solve_sums (&sums);
    good = active & is_good (&s, sums.n, min_lights, p->min_condition);
    same = is_same (&g->solution, &s, solver);
    if (constant && i < IMK_PHOTOSTEREO_SURE_ROUND) /* the next test differs */
      same ^= same;
    take_lanes (good, &test, &g->test, sizeof (test) / sizeof (Reals));
    take_lanes (good, &s, &g->solution, sizeof (s) / sizeof (Reals));
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
INLINE void
measure (const Group *g, const Solver solver, const Scene scene, Reals *albedo,
    Reals *constants, Reals *residual)
{
  const Chunk *c = g->chunk;
  const uint32_t n_planes = c->cpu->plan.n_planes;
  Reals ss = {0}, rr = {0}, su = {0}, uu = {0};

  for (uint32_t j = 0; j < n_planes; j++)
    albedo[j] = constants[j] = ss;
  for (uint32_t i = 0; i < c->n_lights; i++) {
    const Sample l = sample_of (g, i, scene);
    Reals s = predict (&g->solution, &l);
    Reals w = weigh_solution (g, &l, solver, scene);
    Reals r;

    if (scene == SCENE_ROOM) {
      Masks unlit = is_unlit (&g->test, &l, solver);

      w = select_lanes (unlit, broadcast (1), w);
      s = keep (s, ~unlit);
    }
    r = (scene == SCENE_ROOM ? s + g->constant * l.unit : s) - l.grey;
    rr += w * r * r;
    if (scene == SCENE_ROOM || c->has_colours)
      ss += w * s * s;
    if (scene == SCENE_ROOM) {
      su += w * s * l.unit;
      uu += w * l.unit * l.unit;
    }
    for (uint32_t j = 0; c->has_colours && j < n_planes; j++) {
      Reals value = load (c->scratch->colours +
                          (n_planes * (size_t) i + j) * CHUNK + g->offset);

      albedo[j] += w * s * value;
      if (scene == SCENE_ROOM)
        constants[j] += w * l.unit * value;
    }
  }
  for (uint32_t j = 0; c->has_colours && j < n_planes; j++)
    if (scene != SCENE_ROOM)
      albedo[j] /= ss;
  for (uint32_t j = 0; j < n_planes && scene == SCENE_ROOM; j++) {
    Reals a = albedo[j], u = constants[j], det = ss * uu - su * su;

    albedo[j] = (a * uu - u * su) / det; /* two unknowns */
    constants[j] = c->has_colours ? (u * ss - a * su) / det : g->constant;
  }
  *residual = rr / g->n; /* the mean square */
}

/* Into the results of the chunk, pixels from @at on. */
static void
store_nothing (const Chunk *c, uint32_t at)
{
  Results *r = &c->scratch->results;
  const Reals zero = {0};

  for (int k = 0; k < 3; k++)
    store (r->normal[k] + at, zero);
  for (int k = 0; k < IMK_PHOTOSTEREO_N_QUALITIES; k++)
    store (r->quality[k] + at, zero);
  store (r->length + at, zero);
  for (uint32_t j = 0; j < c->cpu->plan.n_planes; j++) {
    store (r->albedo[j] + at, zero);
    store (r->constant[j] + at, zero);
  }
}

static void
store_group (
    const Group *g, const Reals *albedo, const Reals *constants, Reals residual)
{
  const Chunk *c = g->chunk;
  const Solution *s = &g->solution;
  const Reals length = square_root (s->norm2);
  Results *r = &c->scratch->results;
  uint32_t at = g->offset;

  store (r->normal[0] + at, keep (s->x / length, g->valid));
  store (r->normal[1] + at, keep (s->y / length, g->valid));
  store (r->normal[2] + at, keep (s->z / length, g->valid));
  store (r->length + at, keep (length, g->valid));
  for (uint32_t j = 0; j < c->cpu->plan.n_planes; j++) {
    store (r->albedo[j] + at,
        keep (c->has_colours ? albedo[j] * length : length, g->valid));
    store (r->constant[j] + at,
        keep (c->has_colours ? constants[j] : g->constant, g->valid));
  }
  store (r->quality[IMK_PHOTOSTEREO_LIGHTS] + at, keep (g->n, g->valid));
  store (r->quality[IMK_PHOTOSTEREO_ROUNDS] + at, keep (g->rounds, g->valid));
  store (r->quality[IMK_PHOTOSTEREO_RESIDUAL] + at,
      keep (square_root (residual), g->valid));
  store (r->quality[IMK_PHOTOSTEREO_CONDITION] + at,
      keep (s->condition, g->valid));
}

/* Where the pixels are. */
static void
fill_places (const Chunk *c)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;
  Scratch *s = c->scratch;

  for (uint32_t i = 0; i < CHUNK; i++)
    s->pixel_x[i] = ((float) (c->x + i) - p->centre_x) * p->pitch_x;
  for (uint32_t i = 0; i < CHUNK; i++)
    s->pixel_y[i] = ((float) c->y - p->centre_y) * p->pitch_y;
  memset (s->pixel_z, 0, sizeof (s->pixel_z));
  if (!c->cpu->heights.z)
    return;
  imk_photostereo_heights_of (&c->cpu->heights, c->x, c->y, c->n, s->pixel_z);
  for (uint32_t i = 0; p->camera_z > 0 && i < CHUNK; i++) {
    float part = s->pixel_z[i] / p->camera_z;

    s->pixel_x[i] -= part * (s->pixel_x[i] - p->axis_x);
    s->pixel_y[i] -= part * (s->pixel_y[i] - p->axis_y);
  }
}

/* Grey values and light vectors. */
static void
fill_chunk (const Chunk *c)
{
  Scratch *scratch = c->scratch;

  memset (scratch->ambient, 0,
      c->cpu->plan.n_planes * CHUNK * sizeof (*scratch->ambient));
  fill_places (c);
  if (c->cpu->uniform && c->x == 0)
    fill_beams (c);
  for (uint32_t i = 0; i < c->n_lights; i++) {
    fill_grey (c, i);
    if (scratch->units)
      fill_units (c, i);
    if (!c->cpu->uniform)
      fill_factors (c, &c->cpu->lamps[c->lights[i]],
          scratch->factors + (size_t) i * CHUNK);
  }
  if (solver_of (&c->cpu->params) == SOLVER_DROP)
    for (size_t i = 0; i < (size_t) c->n_lights * CHUNK; i++)
      scratch->dropped[i] = INFINITY;
}

INLINE void
solve_chunk (const Chunk *c, const Solver solver, const Scene scene)
{
  for (uint32_t i = 0; i < c->n; i += LANES) {
    Group g;
    Reals albedo[IMK_PHOTOSTEREO_MAX_PLANES], residual = {0};
    Reals constants[IMK_PHOTOSTEREO_MAX_PLANES];
    Masks wanted = {0};

    for (uint32_t j = 0; j < LANES; j++)
      wanted[j] = -is_wanted (c, c->x + i + j);
    if (c->n_lights < 3 || !any_lane (wanted)) {
      store_nothing (c, i);
      continue;
    }
    g.chunk = c;
    g.offset = i;
    g.pixel_x = load (c->scratch->pixel_x + i);
    g.pixel_y = load (c->scratch->pixel_y + i);
    g.pixel_z = load (c->scratch->pixel_z + i);
    solve_rounds (&g, wanted, solver, scene);
    if (!any_lane (g.valid)) {
      store_nothing (c, i);
      continue;
    }
    if (c->measures)
      measure (&g, solver, scene, albedo, constants, &residual);
    store_group (&g, albedo, constants, residual);
  }
}

INLINE void
solve_scene (const Chunk *c, const Scene scene)
{
  switch (solver_of (&c->cpu->params)) {
  case SOLVER_ALL:
    solve_chunk (c, SOLVER_ALL, scene);
    break;
  case SOLVER_READMIT:
    solve_chunk (c, SOLVER_READMIT, scene);
    break;
  case SOLVER_DROP:
    solve_chunk (c, SOLVER_DROP, scene);
    break;
  case SOLVER_HUBER:
    solve_chunk (c, SOLVER_HUBER, scene);
  }
}

static void
solve_row (Chunk *c)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;

  for (c->x = 0; c->x < p->width; c->x += CHUNK) {
    c->n = p->width - c->x < CHUNK ? p->width - c->x : CHUNK;
    fill_chunk (c);
    if (p->constant)
      solve_scene (c, SCENE_ROOM);
    else if (c->cpu->uniform)
      solve_scene (c, SCENE_UNIFORM);
    else
      solve_scene (c, SCENE_NEAR);
    imk_photostereo_store_chunk (c);
  }
}

const ImkPhotostereoLoops IMK_ISA_TABLE = {
    .solve_row = solve_row,
    .scan_row = scan_row,
};
