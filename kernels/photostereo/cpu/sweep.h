/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Selects the lights of a vector of pixels and computes the sums over them: the
 * second part of loops.c, which includes it. */
#pragma once

#include "photostereo/cpu/grey.h"

#define REAL Reals
#include "photostereo/photostereo-solve.h"

/* A light counts if lo < G - c unit < hi and |n'.L + c unit - G| <= limit. With
 * light of the room it need not exceed lo where n'.L > behind: dark samples
 * limit c. A light that does not reach the pixel measures c: G = c unit where
 * G - c unit <= faint and n'.L <= behind. faint <= lo, so that no light is
 * both.
 */
typedef struct Test {
  Reals x, y, z; /* n' */
  Reals constant;
  Reals lo, hi, limit;
  Reals faint, behind;
} Test;

/* Adjacent pixels, one for each lane of a vector. */
typedef struct Group {
  const Chunk *chunk;
  uint32_t offset; /* of the first pixel in the chunk */
  Reals pixel_x;   /* mm */
  Reals pixel_y, pixel_z;
  Test test; /* that selected the lights of the solution */
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

/* What the light vectors and unknowns are like. It and the solver are known to
 * the compiler from the rounds on. */
typedef enum Scene {
  SCENE_UNIFORM, /* one vector a light */
  SCENE_NEAR,    /* one for each pixel, too */
  SCENE_ROOM,    /* likewise, and light of the room */
} Scene;

INLINE Sample
sample_of (const Group *g, uint32_t i, const Scene scene)
{
  const Chunk *c = g->chunk;
  const ImkPhotostereoLamp *lamp = &c->cpu->lamps[c->lights[i]];
  Sample s = {.at = i * CHUNK + g->offset};
  Reals k;

  s.grey = load (c->scratch->grey + s.at);
  if (scene == SCENE_UNIFORM) {
    s.x = broadcast (c->scratch->beams[i].x);
    s.y = broadcast (c->scratch->beams[i].y);
    s.z = broadcast (c->scratch->beams[i].z);
    return s;
  }
  k = load (c->scratch->factors + s.at);
  s.x = k * (lamp->x - g->pixel_x);
  s.y = k * (lamp->y - g->pixel_y);
  s.z = k * (lamp->z - g->pixel_z);
  if (scene == SCENE_ROOM)
    s.unit = load (c->scratch->units + s.at);
  return s;
}

/* The treatment of a light that does not fit. */
typedef enum Solver {
  SOLVER_ALL, /* it counts */
  SOLVER_READMIT,
  SOLVER_DROP,
  SOLVER_HUBER,
} Solver;

static Solver
solver_of (const ImkPhotostereoParams *p)
{
  if (p->robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS)
    return p->readmit ? SOLVER_READMIT : SOLVER_DROP;
  return p->robust == IMK_PHOTOSTEREO_ROBUST_HUBER ? SOLVER_HUBER : SOLVER_ALL;
}

/* ------------------------------------------------------------------------
 * One round: selects the lights and computes the sums over them. */

/* Returns: the weights of a light; @used: where they are above 0 */
INLINE Reals
weigh (const Group *g, const Test *t, const Sample *l, const Solver solver,
    const Scene scene, Reals round, Masks *used)
{
  Reals grey = l->grey;
  Reals lit = scene == SCENE_ROOM ? grey - t->constant * l->unit : grey;
  Reals predicted = t->x * l->x + t->y * l->y + t->z * l->z;
  Reals residual = predicted - lit;
  Reals size = (Reals) ((Masks) residual & 0x7fffffff);
  const Reals one = broadcast (1);

  if (solver == SOLVER_ALL) {
    *used = ~(Masks){0};
    return one;
  }
  if (solver == SOLVER_HUBER) {
    Reals weight = t->limit / size;

    *used = grey < IMK_PHOTOSTEREO_CLIPPED;
    return keep (select_lanes (weight < one, weight, one), *used);
  }
  *used = lit > t->lo;
  if (scene == SCENE_ROOM)
    *used |= predicted > t->behind;
  *used &= (lit < t->hi) & (size <= t->limit);
  if (solver == SOLVER_DROP) { /* an excluded light stays excluded */
    float *dropped = g->chunk->scratch->dropped + l->at;
    Reals when = load (dropped);

    *used &= when >= round;
    store (dropped, select_lanes (~*used & (when > round), round, when));
  }
  return keep (one, *used);
}

/* The lights that measure the room alone; see Test. */
INLINE Masks
is_unlit (const Test *t, const Sample *l, const Solver solver)
{
  if (solver == SOLVER_ALL || solver == SOLVER_HUBER)
    return (Masks){0};
  return (l->grey - t->constant * l->unit <= t->faint) &
         (t->x * l->x + t->y * l->y + t->z * l->z <= t->behind);
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
    const Sample l = sample_of (g, i, SCENE_ROOM);

    sum[0] += l.unit * l.x;
    sum[1] += l.unit * l.y;
    sum[2] += l.unit * l.z;
    sum[3] += l.unit * l.unit;
  }
  for (int k = 0; k < 3; k++)
    g->middle[k] = sum[k] / sum[3];
}

INLINE Sums
sweep (const Group *g, const Test *t, const Solver solver, const Scene scene,
    Reals round, Moments *moments)
{
  const Scratch *scratch = g->chunk->scratch;
  Sums s = {.n = {0}};
  Moments m = {.unit = {0}};
  Masks n = {0};

  for (uint32_t i = 0; i < g->chunk->n_lights; i++) {
    const Sample l = sample_of (g, i, scene);
    Masks used;
    Reals weight = weigh (g, t, &l, solver, scene, round, &used);
    Reals x = l.x, y = l.y, z = l.z, wx, wy, wz;

    n -= used;
    if (solver == SOLVER_READMIT || solver == SOLVER_DROP)
      memcpy (scratch->used + i * LANES, &used, sizeof (used));
    if (scene == SCENE_UNIFORM && solver == SOLVER_ALL) {
      s.x += x * l.grey;
      s.y += y * l.grey;
      s.z += z * l.grey;
      continue; /* A is that of all pixels */
    }
    if (scene == SCENE_ROOM) {
      Masks unlit = is_unlit (t, &l, solver);

      n -= unlit;
      used |= unlit;
      weight = select_lanes (unlit, broadcast (1), weight);
      x = keep (x, ~unlit) - l.unit * g->middle[0];
      y = keep (y, ~unlit) - l.unit * g->middle[1];
      z = keep (z, ~unlit) - l.unit * g->middle[2];
    }

    if (solver == SOLVER_HUBER) {
      wx = weight * x;
      wy = weight * y;
      wz = weight * z;
    } else { /* weights are 0 and 1, so both sums are equal */
      wx = keep (x, used);
      wy = keep (y, used);
      wz = keep (z, used);
    }
    add_light (&s, wx, wy, wz, x, y, z, l.grey);
    if (scene == SCENE_ROOM) {
      Reals wu = weight * l.unit;

      m.x += wu * x;
      m.y += wu * y;
      m.z += wu * z;
      m.grey += wu * l.grey;
      m.unit += wu * l.unit;
    }
  }
  s.n = __builtin_convertvector(n, Reals);
  if (scene == SCENE_UNIFORM && solver == SOLVER_ALL) {
    s.xx = broadcast (scratch->all.xx);
    s.xy = broadcast (scratch->all.xy);
    s.xz = broadcast (scratch->all.xz);
    s.yy = broadcast (scratch->all.yy);
    s.yz = broadcast (scratch->all.yz);
    s.zz = broadcast (scratch->all.zz);
  }
  if (scene == SCENE_ROOM)
    eliminate_constant (&s, &m);
  *moments = m;
  return s;
}
