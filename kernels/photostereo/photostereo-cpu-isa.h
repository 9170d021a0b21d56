/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CPU backend for one instruction set, included by photostereo-cpu.c once
 * for each:
 * NAME(x): x with a suffix for it
 * VECTOR_SIZE: bytes of its registers; a lane is a pixel
 * TARGET: the function attribute that allows it */

#define FUNCTION TARGET static
#define INLINE TARGET static inline __attribute__ ((always_inline))

#define Reals NAME (Reals)
#define Masks NAME (Masks)
#define Test NAME (Test)
#define Group NAME (Group)
#define Words NAME (Words)
#define isa NAME (isa)
#define load_words NAME (load_words)
#define look_at_row NAME (look_at_row)
#define load NAME (load)
#define select_lanes NAME (select_lanes)
#define any_lane NAME (any_lane)
#define decode_samples NAME (decode_samples)
#define calibrate NAME (calibrate)
#define fill_plane NAME (fill_plane)
#define mark_clipped NAME (mark_clipped)
#define fill_grey NAME (fill_grey)
#define fill_factors NAME (fill_factors)
#define weigh NAME (weigh)
#define sweep NAME (sweep)
#define sweep_lights NAME (sweep_lights)
#define weigh_solution NAME (weigh_solution)
#define mean_square NAME (mean_square)
#define third_brightest NAME (third_brightest)
#define first_test NAME (first_test)
#define next_test NAME (next_test)
#define is_good NAME (is_good)
#define is_same NAME (is_same)
#define solve_rounds NAME (solve_rounds)
#define measure NAME (measure)
#define store_group NAME (store_group)
#define solve_chunk NAME (solve_chunk)

typedef float Reals __attribute__ ((vector_size (VECTOR_SIZE)));
typedef int32_t Masks __attribute__ ((vector_size (VECTOR_SIZE)));
typedef uint16_t Words __attribute__ ((vector_size (VECTOR_SIZE)));

#define REAL Reals
#include "photostereo/photostereo-solve.h"
#undef REAL

/* Which lights count: lo < G < hi and |n'.L - G| <= limit. */
typedef struct Test {
  Reals x, y, z; /* n' */
  Reals lo, hi, limit;
} Test;

/* Pixels side by side, as many as a vector has lanes. */
typedef struct Group {
  const Chunk *chunk;
  uint32_t offset; /* of the first pixel in the chunk */
  Reals pixel_x;   /* mm */
  Test test;       /* that the solution was found with */
  Solution solution;
  Reals n, rounds;
  Reals last_round; /* in which the solution was found, counted from 0 */
  Masks valid;
} Group;

INLINE Reals
load (const float *p)
{
  Reals v;

  memcpy (&v, p, sizeof (v));
  return v;
}

INLINE Reals
select_lanes (Masks mask, Reals yes, Reals no)
{
  return (Reals) (((Masks) yes & mask) | ((Masks) no & ~mask));
}

INLINE bool
any_lane (Masks mask)
{
  int32_t any = 0;

  for (uint32_t i = 0; i < VECTOR_SIZE / sizeof (int32_t); i++)
    any |= mask[i];
  return any != 0;
}

/* ------------------------------------------------------------------------
 * What a row of samples looks like. */

INLINE Words
load_words (const void *from, bool wide)
{
  typedef uint8_t Bytes __attribute__ ((vector_size (VECTOR_SIZE / 2)));
  Bytes bytes;
  Words words;

  if (wide) {
    memcpy (&words, from, sizeof (words));
    return words;
  }
  memcpy (&bytes, from, sizeof (bytes));
  return __builtin_convertvector(bytes, Words);
}

/* The row is in the cache, as it was put there just now, with 0 for what is
 * missing in the last chunk. */
FUNCTION void
look_at_row (const Cpu *cpu, uint32_t y, const uint8_t *row)
{
  const ImkPhotostereoPlan *p = &cpu->plan;
  const uint8_t *mask = p->mask ? p->mask + (size_t) y * p->width : NULL;
  const uint32_t n_lanes = VECTOR_SIZE / sizeof (uint16_t);
  const bool wide = p->type == IMK_TYPE_U16;
  Words largest = {0}, n_clipped = {0}, last = {0}; /* that is not clipped */

  last += (uint16_t) (p->saturation - 1); /* 65535, if none ever is */
  for (uint32_t x = 0; x < p->width; x += n_lanes) {
    Words v = load_words (row + (wide ? 2 * (size_t) x : x), wide);
    Words more;

    if (mask)
      v &= (Words) (load_words (mask + x, false) != 0);
    more = (Words) (v > largest);
    largest = (v & more) | (largest & ~more);
    n_clipped -= (Words) (v > last);
  }
  for (uint32_t i = 0; i < n_lanes; i++) {
    cpu->seen[y].n_clipped += n_clipped[i];
    if (largest[i] > cpu->seen[y].largest)
      cpu->seen[y].largest = largest[i];
  }
}

/* ------------------------------------------------------------------------
 * From samples to grey values. */

FUNCTION void
decode_samples (const Cpu *cpu, const uint8_t *row, uint32_t x, float *to)
{
  const float unit = cpu->plan.unit, *table = cpu->plan.table;

  if (cpu->plan.type == IMK_TYPE_U8) {
    const uint8_t *s = row + x;

    for (uint32_t i = 0; !table && i < CHUNK; i++)
      to[i] = (float) s[i] * unit;
    for (uint32_t i = 0; table && i < CHUNK; i++)
      to[i] = table[s[i]];
  } else {
    const uint16_t *s = (const uint16_t *) row + x;

    for (uint32_t i = 0; !table && i < CHUNK; i++)
      to[i] = (float) s[i] * unit;
    for (uint32_t i = 0; table && i < CHUNK; i++)
      to[i] = table[s[i]];
  }
}

/* Dark and white frame, of the pixels that are there. */
FUNCTION void
calibrate (const Chunk *c, uint32_t plane, float *values)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;
  size_t at = ((size_t) plane * p->height + c->y) * p->width + c->x;

  for (uint32_t i = 0; p->dark && i < c->n; i++) {
    float v = values[i] - p->dark[at + i];

    values[i] = v > 0 ? v : 0;
  }
  for (uint32_t i = 0; p->white && i < c->n; i++)
    values[i] *= p->white[at + i];
}

/* One plane of one picture. */
FUNCTION void
fill_plane (
    const Chunk *c, uint32_t light, uint32_t plane, float *to, float *ambient)
{
  const Cpu *cpu = c->cpu;
  const float *gain = cpu->lamps[light].gain;
  const uint8_t *site = cpu->plan.site + 2 * (c->y & 1);
  /* a chunk begins at an even pixel */
  float even = gain[cpu->plan.mosaic ? site[0] : plane];
  float odd = gain[cpu->plan.mosaic ? site[1] : plane];

  decode_samples (cpu, samples_row (cpu, c->y, light, plane), c->x, to);
  calibrate (c, plane, to);
  for (uint32_t i = 0; i < CHUNK; i += 2) {
    to[i] *= even;
    to[i + 1] *= odd;
  }
  for (uint32_t i = 0; i < CHUNK; i++)
    ambient[i] += to[i];
}

/* A light with a clipped sample in this plane does not count. Most rows have
 * none. */
FUNCTION void
mark_clipped (const Chunk *c, uint32_t light, uint32_t plane, float *grey)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;
  const uint8_t *row = samples_row (c->cpu, c->y, light, plane);
  const uint16_t *words = (const uint16_t *) row + c->x;
  const uint32_t level = p->saturation;

  row += c->x;
  if (c->cpu->params.robust == IMK_PHOTOSTEREO_ROBUST_NONE ||
      c->cpu->seen[c->y].n_clipped == 0)
    return;
  if (p->type == IMK_TYPE_U8)
    for (uint32_t i = 0; i < CHUNK; i++)
      grey[i] = row[i] >= level ? IMK_PHOTOSTEREO_CLIPPED : grey[i];
  else
    for (uint32_t i = 0; i < CHUNK; i++)
      grey[i] = words[i] >= level ? IMK_PHOTOSTEREO_CLIPPED : grey[i];
}

/* The grey values of the @i-th picture of the set. */
FUNCTION void
fill_grey (const Chunk *c, uint32_t i)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;
  float *grey = c->scratch->grey + (size_t) i * CHUNK;
  float *colours = c->scratch->colours;

  if (p->n_planes == 1) {
    fill_plane (c, c->lights[i], 0, grey, c->scratch->ambient);
    mark_clipped (c, c->lights[i], 0, grey);
    return;
  }
  colours += p->n_planes * (size_t) i * CHUNK;
  memset (grey, 0, CHUNK * sizeof (*grey));
  for (uint32_t k = 0; k < p->n_planes; k++) {
    float *values = colours + k * CHUNK;

    fill_plane (c, c->lights[i], k, values, c->scratch->ambient + k * CHUNK);
    for (uint32_t j = 0; j < CHUNK; j++)
      grey[j] += p->weight[k] * values[j];
  }
  for (uint32_t k = 0; k < p->n_planes; k++)
    mark_clipped (c, c->lights[i], k, grey);
}

/* k in L = k v of one light, for the pixels of a chunk. */
FUNCTION void
fill_factors (const Chunk *c, const ImkPhotostereoLamp *lamp, float *to)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;
  const float vy = lamp->y - c->pixel_y, vz = lamp->z;
  const float yz = vy * vy + vz * vz;
  const float *x = c->scratch->pixel_x;

  if (p->model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE)
    for (uint32_t i = 0; i < CHUNK; i++) {
      float vx = lamp->x - x[i], r2 = vx * vx + yz;

      to[i] = lamp->scale / (r2 * sqrtf (r2));
    }
  else if (p->model == IMK_PHOTOSTEREO_MODEL_UNIT)
    for (uint32_t i = 0; i < CHUNK; i++) {
      float vx = lamp->x - x[i], r2 = vx * vx + yz;

      to[i] = lamp->scale / sqrtf (r2);
    }
  else
    for (uint32_t i = 0; i < CHUNK; i++)
      to[i] = lamp->scale;
  for (uint32_t i = 0; p->led_lobe > 0 && i < CHUNK; i++)
    to[i] *= imk_photostereo_lobe (lamp, lamp->x - x[i], vy, vz, p->led_lobe);
}

/* ------------------------------------------------------------------------
 * One round: which lights count, and the sums over them. */

/* Returns: the weights of a light; @used: where they are above 0 */
INLINE Reals
weigh (const Group *g, const Test *t, Reals grey, Reals residual, uint32_t at,
    const Solver solver, Reals round, Masks *used)
{
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
  if (solver == SOLVER_DROP) { /* what was left out stays out */
    float *dropped = g->chunk->scratch->dropped + at;
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
  const Chunk *c = g->chunk;
  Sums s = {.n = {0}};
  Masks n = {0};

  for (uint32_t i = 0; i < c->n_lights; i++) {
    const ImkPhotostereoLamp *lamp = &c->cpu->lamps[c->lights[i]];
    uint32_t at = i * CHUNK + g->offset;
    Reals k = load (c->scratch->factors + at);
    Reals grey = load (c->scratch->grey + at);
    Reals x = k * (lamp->x - g->pixel_x);
    Reals y = k * (lamp->y - c->pixel_y);
    Reals z = k * lamp->z;
    Reals residual = t->x * x + t->y * y + t->z * z - grey;
    Masks used;
    Reals weight = weigh (g, t, grey, residual, at, solver, round, &used);
    Reals wx, wy, wz;

    if (solver == SOLVER_HUBER) {
      wx = weight * x;
      wy = weight * y;
      wz = weight * z;
    } else { /* the same, when the weights are 0 and 1 */
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
    s.x += wx * grey;
    s.y += wy * grey;
    s.z += wz * grey;
    n -= used;
  }
  s.n = __builtin_convertvector(n, Reals);
  return s;
}

FUNCTION Sums
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

/* Returns: the weight of a light in the solution
 * @x, @y, @z: its light vector */
INLINE Reals
weigh_solution (const Group *g, Reals grey, Reals x, Reals y, Reals z,
    uint32_t at, Solver solver)
{
  const Test *t = &g->test;
  Masks used;
  /* lights that were dropped after the solution belong to it */
  Reals w = weigh (g, t, grey, t->x * x + t->y * y + t->z * z - grey, at,
      solver == SOLVER_DROP ? SOLVER_READMIT : solver, x, &used);

  if (solver == SOLVER_DROP)
    w = (Reals) ((Masks) w &
                 (load (g->chunk->scratch->dropped + at) > g->last_round));
  return w;
}

/* Returns: the mean square residual of the solution, of the lights that are
 * darker than predicted */
FUNCTION Reals
mean_square (const Group *g, Solver solver)
{
  const Chunk *c = g->chunk;
  Reals rr = {0}, n = {0}, zero = {0}, one = {0};

  one += 1;

  for (uint32_t i = 0; i < c->n_lights; i++) {
    const ImkPhotostereoLamp *lamp = &c->cpu->lamps[c->lights[i]];
    uint32_t at = i * CHUNK + g->offset;
    Reals k = load (c->scratch->factors + at);
    Reals grey = load (c->scratch->grey + at);
    Reals x = k * (lamp->x - g->pixel_x);
    Reals y = k * (lamp->y - c->pixel_y);
    Reals z = k * lamp->z;
    Reals w = weigh_solution (g, grey, x, y, z, at, solver);
    Reals r = g->solution.x * x + g->solution.y * y + g->solution.z * z - grey;

    w = select_lanes (r > zero, w, zero);
    n += w;
    rr += w * r * r;
  }
  return rr / select_lanes (n > one, n, one);
}

/* Of the grey values that are not clipped: a highlight is seen under one or two
 * of few lights. 0 with fewer than three. */
FUNCTION Reals
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

/* Limits of the grey value need no solution where they are absolute or go by
 * the grey values of the pixel, nor does it to see that a sample is clipped;
 * nothing else is known before the first. */
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
  for (uint32_t i = 0; p->relative && i < VECTOR_SIZE / sizeof (float); i++)
    unit[i] = sqrtf (s->norm2[i]);
  t.lo = p->t_min * unit;
  t.hi = p->t_max * unit;
  t.limit = p->t_res * unit;
  if (p->adaptive) {
    rms = mean_square (g, solver);
    for (uint32_t i = 0; i < VECTOR_SIZE / sizeof (float); i++)
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

/* The same lights give the same bits. Huber's weights never quite settle:
 * there it is 1e-4 of the length. */
INLINE Masks
is_same (const Solution *a, const Solution *b, Solver solver)
{
  Reals x = a->x - b->x, y = a->y - b->y, z = a->z - b->z;

  if (solver == SOLVER_HUBER)
    return x * x + y * y + z * z <= 1e-8f * b->norm2;
  return (a->x == b->x) & (a->y == b->y) & (a->z == b->z);
}

FUNCTION void
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
 * What is asked for beside the normal: one more sweep over the lights of the
 * solution. */

FUNCTION void
measure (const Group *g, Reals *albedo, Reals *residual)
{
  const Chunk *c = g->chunk;
  const Solver solver = solver_of (&c->cpu->params);
  const uint32_t n_planes = c->cpu->plan.n_planes;
  Reals ss = {0}, rr = {0};

  for (uint32_t i = 0; i < c->n_lights; i++) {
    const ImkPhotostereoLamp *lamp = &c->cpu->lamps[c->lights[i]];
    uint32_t at = i * CHUNK + g->offset;
    Reals k = load (c->scratch->factors + at);
    Reals grey = load (c->scratch->grey + at);
    Reals x = k * (lamp->x - g->pixel_x);
    Reals y = k * (lamp->y - c->pixel_y);
    Reals z = k * lamp->z;
    Reals s = g->solution.x * x + g->solution.y * y + g->solution.z * z;
    Reals w = weigh_solution (g, grey, x, y, z, at, solver);

    rr += w * (s - grey) * (s - grey);
    ss += w * s * s;
    for (uint32_t j = 0; c->has_colours && j < n_planes; j++)
      albedo[j] += w * s *
                   load (c->scratch->colours +
                         (n_planes * (size_t) i + j) * CHUNK + g->offset);
  }
  for (uint32_t j = 0; j < n_planes; j++)
    albedo[j] /= ss;
  *residual = rr / g->n; /* of which a square root is to be taken */
}

FUNCTION void
store_group (const Group *g, const Reals *albedo, Reals residual)
{
  const Chunk *c = g->chunk;

  for (uint32_t i = 0; i < VECTOR_SIZE / sizeof (float); i++) {
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
    store_result (c, x, g->offset + i, &r);
  }
}

FUNCTION void
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

  for (uint32_t i = 0; i < c->n; i += VECTOR_SIZE / sizeof (float)) {
    Group g = {.chunk = c, .offset = i};
    Reals albedo[IMK_PHOTOSTEREO_MAX_PLANES] = {{0}}, residual = {0};
    Masks wanted;

    for (uint32_t j = 0; j < VECTOR_SIZE / sizeof (float); j++)
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

static const Isa isa = {solve_chunk, look_at_row};

#undef Sums
#undef Solution
#undef solve_sums
#undef Reals
#undef Masks
#undef Test
#undef Group
#undef Words
#undef isa
#undef load_words
#undef look_at_row
#undef load
#undef select_lanes
#undef any_lane
#undef decode_samples
#undef calibrate
#undef fill_plane
#undef mark_clipped
#undef fill_grey
#undef fill_factors
#undef weigh
#undef sweep
#undef sweep_lights
#undef weigh_solution
#undef mean_square
#undef third_brightest
#undef first_test
#undef next_test
#undef is_good
#undef is_same
#undef solve_rounds
#undef measure
#undef store_group
#undef solve_chunk
#undef FUNCTION
#undef INLINE
#undef NAME
#undef VECTOR_SIZE
#undef TARGET
