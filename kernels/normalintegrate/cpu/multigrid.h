/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The preconditioner of the method bilateral, whose equations differ from pixel
 * to pixel. Level 0 is the map: its weights, z and right are the caller's. */
#pragma once

#include "imk/parallel.h"
#include "normalintegrate/normalintegrate-multigrid.h"

typedef struct ImkNormalintegrateMultigrid {
  ImkNormalintegrateLevel levels[IMK_NORMALINTEGRATE_LEVELS];
  uint32_t n_levels;
  uint32_t n_threads;
} ImkNormalintegrateMultigrid;

/* After every change of the weights of level 0. */
void imk_normalintegrate_multigrid_set (ImkNormalintegrateMultigrid *m);

/* z of level 0 by one V-cycle from 0. */
void imk_normalintegrate_multigrid_cycle (const ImkNormalintegrateMultigrid *m);
