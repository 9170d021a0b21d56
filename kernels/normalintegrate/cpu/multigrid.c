/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "normalintegrate/cpu/multigrid.h"

typedef ImkNormalintegrateLevel Level;
typedef ImkNormalintegrateMultigrid Multigrid;

/* A level and the arguments of its passes. */
typedef struct Pass {
  const Level *level, *coarse;
  uint32_t colour; /* of (x + y) modulo 2 */
} Pass;

static void
for_rows (const Multigrid *m, const Level *of, ImkBandFunc func, Pass *pass)
{
  imk_parallel_for (
      m->n_threads, of->height, 1 + 16384 / of->width, func, pass);
}

/* ------------------------------------------------------------------------
 * Passes. */

static void
coarsen_rows (void *data, uint32_t first, uint32_t end)
{
  const Pass *p = data;

  for (uint32_t y = first; y < end; y++)
    for (uint32_t x = 0; x < p->coarse->width; x++)
      imk_normalintegrate_coarsen (p->level, p->coarse, x, y);
}

static void
relax_rows (void *data, uint32_t first, uint32_t end)
{
  const Pass *p = data;

  for (uint32_t y = first; y < end; y++)
    for (uint32_t x = (y + p->colour) % 2; x < p->level->width; x += 2)
      imk_normalintegrate_relax (p->level, x, y);
}

/* And sets the others to 0. */
static void
relax_first_rows (void *data, uint32_t first, uint32_t end)
{
  const Pass *p = data;
  const Level *l = p->level;

  for (uint32_t y = first; y < end; y++)
    for (uint32_t x = 0; x < l->width; x++)
      if ((x + y) % 2)
        l->z[(size_t) y * l->width + x] = 0;
      else
        imk_normalintegrate_relax_first (l, x, y);
}

static void
gather_rows (void *data, uint32_t first, uint32_t end)
{
  const Pass *p = data;
  for (uint32_t y = first; y < end; y++)
    for (uint32_t x = 0; x < p->coarse->width; x++)
      p->coarse->right[(size_t) y * p->coarse->width + x] =
          imk_normalintegrate_gather (p->level, x, y);
}

static void
spread_rows (void *data, uint32_t first, uint32_t end)
{
  const Pass *p = data;
  const Level *l = p->level;

  for (uint32_t y = first; y < end; y++)
    for (uint32_t x = 0; x < l->width; x++)
      l->z[(size_t) y * l->width + x] +=
          p->coarse->z[(size_t) (y / 2) * p->coarse->width + x / 2];
}

/* -------------------------------------------------------------------------- */

void
imk_normalintegrate_multigrid_set (Multigrid *m)
{
  for (uint32_t i = 1; i < m->n_levels; i++) {
    Pass pass = {.level = &m->levels[i - 1], .coarse = &m->levels[i]};

    for_rows (m, pass.coarse, coarsen_rows, &pass);
  }
}

/* @colour: that comes first */
static void
sweep (const Multigrid *m, const Level *l, uint32_t colour)
{
  for (uint32_t i = 0; i < 2; i++) {
    Pass pass = {.level = l, .colour = (colour + i) % 2};

    for_rows (m, l, relax_rows, &pass);
  }
}

static void
begin (const Multigrid *m, const Level *l)
{
  Pass pass = {.level = l, .colour = 1};

  for_rows (m, l, relax_first_rows, &pass);
  for_rows (m, l, relax_rows, &pass);
}

void
imk_normalintegrate_multigrid_cycle (const Multigrid *m)
{
  const Level *coarsest = &m->levels[m->n_levels - 1];

  for (uint32_t i = 0; i + 1 < m->n_levels; i++) {
    Pass pass = {.level = &m->levels[i], .coarse = &m->levels[i + 1]};

    begin (m, pass.level);
    for_rows (m, pass.coarse, gather_rows, &pass);
  }
  begin (m, coarsest);
  for (int i = 1; i < IMK_NORMALINTEGRATE_COARSEST_SWEEPS; i++)
    sweep (m, coarsest, 0);
  /* the other way round, as conjugate gradients want a symmetric answer */
  for (int i = 0; i < IMK_NORMALINTEGRATE_COARSEST_SWEEPS; i++)
    sweep (m, coarsest, 1);
  for (uint32_t i = m->n_levels - 1; i-- > 0;) {
    Pass pass = {.level = &m->levels[i], .coarse = &m->levels[i + 1]};

    for_rows (m, pass.level, spread_rows, &pass);
    sweep (m, pass.level, 1);
  }
}
