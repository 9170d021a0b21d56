/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Preconditioned conjugate gradients for the equations of any method. */
#include "normalintegrate/cpu/run.h"

typedef ImkNormalintegrateCpu Cpu;
typedef ImkNormalintegrateRun Run;

static void
dot_rows (void *data, uint32_t first, uint32_t end)
{
  const Run *run = data;
  size_t width = run->cpu->plan.width;

  for (uint32_t y = first; y < end; y++) {
    double sum = 0;

    for (size_t at = y * width; at < (y + 1) * width; at++)
      sum += (double) run->cpu->r[at] * run->system->answer[at];
    run->cpu->sums[y] = sum;
  }
}

/* The next direction: the answer + beta * the last one. */
static void
turn_rows (void *data, uint32_t first, uint32_t end)
{
  const Run *run = data;
  const float *answer = run->system->answer;
  float *p = run->cpu->p;
  size_t width = run->cpu->plan.width;

  /* before the first direction, p holds something else */
  for (size_t at = first * width; at < end * width; at++)
    p[at] = run->beta != 0 ? answer[at] + run->beta * p[at] : answer[at];
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

uint32_t
imk_normalintegrate_descend (
    Run *run, double *now, double enough, uint32_t most)
{
  const ImkNormalintegrateSystem *system = run->system;
  uint32_t n = 0;

  while (*now > enough && n < most) {
    double curvature, before = *now;

    imk_normalintegrate_for_rows (run, turn_rows);
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
