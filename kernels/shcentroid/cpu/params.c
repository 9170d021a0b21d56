/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What follows from the parameters, and not from a frame: coordinates, weights
 * and powers in tables. */
#include "shcentroid/cpu/params.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* All rows of a grid have the columns of the first. */
static void
number_grid_columns (Cpu *cpu)
{
  for (uint32_t i = 0; i < cpu->plan.columns; i++)
    for (uint32_t k = 0; k < cpu->rects[i].width; k++)
      cpu->us[cpu->rects[i].x + k] =
          imk_shcentroid_coordinate (&cpu->params, k, cpu->rects[i].width);
}

/* ------------------------------------------------------------------------
 * Weights. */

static void
free_weights (Cpu *cpu)
{
  free (cpu->column_weights);
  free (cpu->row_weights);
  free (cpu->columns_at);
  free (cpu->rows_at);
  cpu->column_weights = cpu->row_weights = NULL;
  cpu->columns_at = cpu->rows_at = NULL;
}

/* Where those of the cells begin; they fit 32 bits when the cells do, and it is
 * better without a table when they do not. Returns: whether there is one */
static bool
allocate_weights (Cpu *cpu)
{
  uint64_t n_columns = 0, n_rows = 0;
  uint32_t n = cpu->plan.n_rects;

  cpu->columns_at = malloc (n * sizeof (*cpu->columns_at));
  cpu->rows_at = malloc (n * sizeof (*cpu->rows_at));
  for (uint32_t i = 0; cpu->columns_at && cpu->rows_at && i < n; i++) {
    cpu->columns_at[i] = (uint32_t) n_columns;
    cpu->rows_at[i] = (uint32_t) n_rows;
    n_columns += cpu->rects[i].width;
    n_rows += cpu->rects[i].height;
  }
  if (n_columns > 0 && n_columns < UINT32_MAX && n_rows < UINT32_MAX) {
    cpu->column_weights =
        calloc (n_columns + IMK_SHCENTROID_LANES, sizeof (double));
    cpu->row_weights =
        calloc (n_rows + IMK_SHCENTROID_GROUP_ROWS, sizeof (double));
  }
  return cpu->column_weights && cpu->row_weights;
}

/* The weights about the references, which are the same in every frame. Without
 * memory for them they are computed when they are needed. */
static void
make_weights (Cpu *cpu)
{
  double sigma = cpu->params.sigma, *column, *row;

  if (cpu->column_weights && cpu->weights_of == sigma)
    return;
  if (!cpu->column_weights && !allocate_weights (cpu)) {
    free_weights (cpu);
    return;
  }
  cpu->weights_of = sigma;
  column = cpu->column_weights;
  row = cpu->row_weights;
  for (uint32_t i = 0; i < cpu->plan.n_rects; i++) {
    const ImkShcentroidRect *rect = &cpu->rects[i];
    double x = rect->x - rect->ref_x, y = rect->y - rect->ref_y;

    for (uint32_t k = 0; k < rect->width; k++)
      *column++ = imk_shcentroid_weight (x + (double) k, sigma);
    for (uint32_t k = 0; k < rect->height; k++)
      *row++ = imk_shcentroid_weight (y + (double) k, sigma);
  }
}

/* ------------------------------------------------------------------------
 * Powers. */

/* Of step @i of those that are looked up. */
static double
start_of_step (uint64_t i)
{
  double start = LEAST_POWERED;
  uint64_t bits;

  memcpy (&bits, &start, sizeof (bits));
  bits += i << (52 - IMK_SHCENTROID_STEP_BITS);
  memcpy (&start, &bits, sizeof (start));
  return start;
}

/* What @power is found by. */
static void
find_steps (Cpu *cpu, double power)
{
  Powers *p = &cpu->raising;

  if (p->series.power == power)
    return;
  p->series = imk_shcentroid_series (power);
  if (power == 1.0 || power == 1.5 || power == 2.0)
    return;
  if (!p->steps)
    p->steps = malloc (N_STEPS * sizeof (*p->steps));
  for (uint32_t i = 0; p->steps && i < N_STEPS; i++)
    p->steps[i] = imk_shcentroid_step (start_of_step (i), power);
}

/* Is the part of a pixel, but for its weight, a power of its sample that is the
 * same in every cell, and that more work than to look it up? */
static bool
is_listed (const Cpu *cpu, const ImkShcentroidParams *p)
{
  bool all = cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  /* squares of x and y are integers, and 16 bits a table too large for that */
  bool bytes = cpu->plan.type == IMK_TYPE_U8 && all;
  bool cut = p->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE;
  /* the slopes of weighted parts depend on the weight, too */
  bool weighted = p->weighting != IMK_SHCENTROID_WEIGHTING_NONE;

  return cpu->plan.type != IMK_TYPE_F32 && !cpu->dark && !cpu->lut &&
         p->power != 1.0 && (p->power != 2.0 || bytes) && p->brightest == 0 &&
         !(weighted && all) &&
         !(cut && (imk_shcentroid_is_leveled (p) || cpu->own_thresholds));
}

/* Returns: whether there is a table. Without memory powers are computed when
 * they are needed. */
static bool
list_powers (Cpu *cpu, const ImkShcentroidParams *p)
{
  uint32_t n = cpu->plan.type == IMK_TYPE_U8 ? 256 : 65536;
  ImkShcentroidLevel level = imk_shcentroid_level (
      p, imk_shcentroid_nan (), 0.0f, 0.0f, -imk_shcentroid_infinity ());

  if (!cpu->powers)
    cpu->powers = malloc (2 * n * sizeof (*cpu->powers));
  if (!cpu->powers ||
      (cpu->powers_of == p->power && cpu->listed_level.least == level.least &&
          cpu->listed_level.pedestal == level.pedestal))
    return cpu->powers != NULL;
  cpu->derivatives = cpu->powers + n;
  for (uint32_t i = 0; i < n; i++) {
    double above = i - level.pedestal;

    cpu->powers[i] = imk_shcentroid_part (
        i, i >= level.least, level.pedestal, 1.0, p->power);
    cpu->derivatives[i] = above > 0.0 ? p->power * cpu->powers[i] / above : 0.0;
  }
  cpu->powers_of = p->power;
  cpu->listed_level = level;
  return true;
}

/* ------------------------------------------------------------------------ */

void
imk_shcentroid_take_params (Cpu *cpu, const ImkShcentroidParams *params)
{
  cpu->params = *params;
  find_steps (cpu, params->power);
  cpu->listed = is_listed (cpu, params) && list_powers (cpu, params);
  number_grid_columns (cpu);
  if (params->weighting == IMK_SHCENTROID_WEIGHTING_GAUSSIAN &&
      params->window == IMK_SHCENTROID_WINDOW_CELL)
    make_weights (cpu);
}

void
imk_shcentroid_free_params (Cpu *cpu)
{
  free (cpu->powers);
  free (cpu->raising.steps);
  free_weights (cpu);
}
