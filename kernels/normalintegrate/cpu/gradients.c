/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Preconditioned conjugate gradients for the equations of any method. */
#include "normalintegrate/cpu/run.h"

typedef ImkNormalintegrateCpu Cpu;
typedef ImkNormalintegrateRun Run;

/* The row of the answer for row @y. */
static inline const float *
answer_row (const Run *run, uint32_t y, bool in_order)
{
  const Cpu *cpu = run->cpu;

  if (in_order)
    return run->system->answer + (size_t) y * cpu->plan.width;
  return imk_normalintegrate_real_row (
      cpu, imk_normalintegrate_place_of (y, cpu->plan.height));
}

/* Where column @x is in a row of the answer. */
static inline uint32_t
answer_place (const Cpu *cpu, uint32_t x, bool in_order)
{
  return in_order ? x : imk_normalintegrate_place_of (x, cpu->plan.width);
}

/* Inlined with each order, as are turns: no decision by pixel. */
static inline void
dot (const Run *run, uint32_t first, uint32_t end, bool in_order)
{
  const Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (uint32_t y = first; y < end; y++) {
    const float *answer = answer_row (run, y, in_order);
    const float *r = cpu->r + (size_t) y * width;
    double sum = 0;

    for (uint32_t x = 0; x < width; x++)
      sum += (double) r[x] * answer[answer_place (cpu, x, in_order)];
    cpu->sums[y] = sum;
  }
}

static void
dot_rows (void *data, uint32_t first, uint32_t end)
{
  const Run *run = data;

  if (run->system->answer)
    dot (run, first, end, true);
  else
    dot (run, first, end, false);
}

/* The next direction: the answer + beta * the last one. */
static inline void
turn (const Run *run, uint32_t first, uint32_t end, bool in_order)
{
  const Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (uint32_t y = first; y < end; y++) {
    const float *answer = answer_row (run, y, in_order);
    float *p = cpu->p + (size_t) y * width;

    for (uint32_t x = 0; x < width; x++) {
      float a = answer[answer_place (cpu, x, in_order)];

      /* before the first direction, p holds something else */
      p[x] = run->beta != 0 ? a + run->beta * p[x] : a;
    }
  }
}

static void
turn_rows (void *data, uint32_t first, uint32_t end)
{
  const Run *run = data;

  if (run->system->answer)
    turn (run, first, end, true);
  else
    turn (run, first, end, false);
}

static void
step_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  size_t width = cpu->plan.width;

  for (size_t at = first * width; at < end * width; at++) {
    cpu->z[at] += run->alpha * cpu->p[at];
    cpu->r[at] -= run->alpha * cpu->q[at];
  }
}

double
imk_normalintegrate_precondition (
    Run *run, const ImkNormalintegrateSystem *system)
{
  run->system = system;
  run->beta = 0;
  system->precondition (run);
  imk_normalintegrate_for_rows (run, dot_rows);
  return imk_normalintegrate_add_sums (run->cpu);
}

void
imk_normalintegrate_turn (Run *run)
{
  imk_normalintegrate_for_rows (run, turn_rows);
}

uint32_t
imk_normalintegrate_descend (
    Run *run, double *now, double enough, uint32_t most)
{
  const ImkNormalintegrateSystem *system = run->system;
  uint32_t n = 0;

  while (*now > enough && n < most) {
    double curvature, before = *now;

    imk_normalintegrate_turn (run);
    n++;
    imk_normalintegrate_for_rows (run, system->apply_rows);
    curvature = imk_normalintegrate_add_sums (run->cpu);
    if (!(curvature > 0))
      break;
    run->alpha = (float) (before / curvature);
    imk_normalintegrate_for_rows (run, step_rows);
    *now = imk_normalintegrate_precondition (run, system);
    run->beta = (float) (*now / before);
  }
  return n;
}
