/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bilaterally weighted integration: rounds of least squares, whose weights are
 * those of the heights before. A round is a few steps of conjugate gradients
 * from there on, as the next round has other weights. */
#include <stdlib.h>
#include <string.h>

#include "normalintegrate/cpu/multigrid.h"
#include "normalintegrate/cpu/run.h"
#include "normalintegrate/normalintegrate-bilateral.h"

typedef ImkNormalintegrateCpu Cpu;
typedef ImkNormalintegrateRun Run;

typedef struct ImkNormalintegrateWeighted {
  ImkNormalintegrateBilateral maps;
  ImkNormalintegrateMultigrid multigrid;
  float *memory;
} Weighted;

/* ------------------------------------------------------------------------
 * Weights. */

static void
share_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;

  for (uint32_t y = first; y < end; y++)
    for (uint32_t x = 0; x < cpu->plan.width; x++)
      imk_normalintegrate_share_pixel (
          &cpu->plan, &cpu->weighted->maps, run->params->stiffness, x, y);
}

static void
weigh_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;

  for (uint32_t y = first; y < end; y++) {
    double sum = 0;

    for (uint32_t x = 0; x < cpu->plan.width; x++)
      sum += imk_normalintegrate_weigh_pixel (
          &cpu->plan, &cpu->weighted->maps, x, y);
    cpu->sums[y] = sum;
  }
}

/* Returns: the energy of cpu->z with the weights that go with it */
static double
weigh (Run *run)
{
  imk_normalintegrate_for_rows (run, share_rows);
  imk_normalintegrate_for_rows (run, weigh_rows);
  imk_normalintegrate_multigrid_set (&run->cpu->weighted->multigrid);
  return imk_normalintegrate_add_sums (run->cpu);
}

/* ------------------------------------------------------------------------
 * Conjugate gradients. */

/* q = A p, and the sum of p q. */
static void
apply_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  const ImkNormalintegrateLevel *l = &cpu->weighted->multigrid.levels[0];

  for (uint32_t y = first; y < end; y++) {
    size_t at = (size_t) y * cpu->plan.width;
    double sum = 0;

    for (uint32_t x = 0; x < cpu->plan.width; x++, at++) {
      ImkNormalintegrateSums s =
          imk_normalintegrate_neighbours (l, cpu->p, x, y);

      cpu->q[at] = s.weights * cpu->p[at] - s.weighted;
      sum += (double) cpu->p[at] * cpu->q[at];
    }
    cpu->sums[y] = sum;
  }
}

static void
precondition (Run *run)
{
  imk_normalintegrate_multigrid_cycle (&run->cpu->weighted->multigrid);
}

/* From cpu->z and cpu->r on. @most: (inout): see imk_normalintegrate_enough ()
 *
 * Returns: false when nothing is left to do */
static bool
descend (Run *run, double *most)
{
  const ImkNormalintegrateSystem system = {.apply_rows = apply_rows,
      .precondition = precondition,
      .answer = run->cpu->weighted->multigrid.levels[0].z};
  ImkNormalintegrateRound round = imk_normalintegrate_round (run->params);
  double first = imk_normalintegrate_precondition (run, &system), now = first;
  double enough = imk_normalintegrate_enough (&round, first, *most);

  *most = fmax (*most, first);
  imk_normalintegrate_descend (run, &now, enough, round.steps);
  return first > enough;
}

/* ------------------------------------------------------------------------ */

void
imk_normalintegrate_weighted_free (Weighted *w)
{
  if (w)
    free (w->memory);
  free (w);
}

/* At the first map, as other methods need less memory. */
static Weighted *
weighted_new (Cpu *cpu)
{
  Weighted *w = calloc (1, sizeof (*w));
  size_t n;

  if (!w)
    return NULL;
  w->maps = (ImkNormalintegrateBilateral){
      .z = cpu->z, .shares_x = cpu->p, .shares_y = cpu->q, .residual = cpu->r};
  imk_normalintegrate_place_weighted (
      &cpu->plan, NULL, &w->maps, w->multigrid.levels, &n);
  w->memory = malloc (n * sizeof (float));
  if (!w->memory) {
    free (w);
    return NULL;
  }
  w->multigrid.n_levels = imk_normalintegrate_place_weighted (
      &cpu->plan, w->memory, &w->maps, w->multigrid.levels, &n);
  w->multigrid.n_threads = cpu->plan.n_threads;
  return w;
}

static void
iterate (Run *run, ImkNormalintegrateSummary *summary)
{
  double energy = weigh (run), most = 0;

  while (summary->n_iterations < run->params->max_iterations) {
    double before = energy;

    if (!descend (run, &most))
      break;
    energy = weigh (run);
    /* the energy of the flat start says nothing */
    if (summary->n_iterations++ == 0)
      continue;
    summary->residual = before > 0 ? fabs (energy - before) / before : 0;
    if (summary->residual <= run->params->tolerance)
      break;
  }
}

ImkStatus
imk_normalintegrate_bilateral (
    Run *run, ImkNormalintegrateSummary *summary, ImkError *error)
{
  Cpu *cpu = run->cpu;
  size_t size = summary->n_pixels * sizeof (float);

  if (!cpu->weighted)
    cpu->weighted = weighted_new (cpu);
  if (!cpu->weighted)
    return IMK_NO_MEMORY (error,
        "to integrate %u x %u normals with "
        "method=bilateral.",
        cpu->plan.width, cpu->plan.height);
  imk_normalintegrate_load_normals (run, summary);
  memcpy ((float *) cpu->weighted->maps.nx, cpu->z, size);
  memcpy ((float *) cpu->weighted->maps.ny, cpu->p, size);
  memcpy ((float *) cpu->weighted->maps.nz, cpu->q, size);
  memset (cpu->z, 0, size);
  if (summary->n_valid > 0)
    iterate (run, summary);
  return IMK_OK;
}
