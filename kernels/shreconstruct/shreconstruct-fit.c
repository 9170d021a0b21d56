/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a loop makes of its modes in a frame: L = R D M. Products with vectors
 * alone, as L itself would take n_commands n_modes n_cells multiplications. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/config.h"
#include "shreconstruct/cpu/loops.h"
#include "shreconstruct/shreconstruct-private.h"

enum { N_PROBES = 4, N_STEPS = 30, N_AVERAGED_STEPS = 10, N_MATRICES = 3 };

/* The part of the largest eigenvalue that another one can be below 0 by
 * rounding, and by the noise of a measured D. */
#define MAX_NEGATIVE_PART 0.1

/* @matrices: M if there is one, D and R, in this order
 * @vectors: of the modes, and behind each matrix, with room for whole tiles */
typedef struct Loop {
  ImkShreconstructMatrix matrices[N_MATRICES];
  float *vectors[N_MATRICES + 1];
  uint32_t n_matrices, n_modes, n_threads;
} Loop;

static ImkStatus
no_memory (ImkError *error)
{
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory to compare the control matrix with the interaction "
      "matrix.");
}

static ImkStatus
add_matrix (Loop *l, const float *values, uint32_t n_rows, uint32_t n_columns,
    ImkError *error)
{
  const uint32_t i = l->n_matrices++;

  l->vectors[i + 1] = calloc (imk_shreconstruct_room (n_rows), sizeof (float));
  if (!l->vectors[i + 1])
    return no_memory (error);
  return imk_shreconstruct_matrix_init (
      &l->matrices[i], values, n_rows, n_columns, error);
}

static ImkStatus
make_loop (
    Loop *l, const ImkShreconstructConfig *c, bool is_modal, ImkError *error)
{
  const uint32_t n_slopes = 2 * c->n_cells;
  ImkStatus status = IMK_OK;

  *l = (Loop){.n_modes = c->n_modes, .n_threads = c->n_threads};
  l->vectors[0] = calloc (c->n_modes, sizeof (float));
  if (!l->vectors[0])
    status = no_memory (error);
  if (status == IMK_OK && c->modes && !is_modal)
    status = add_matrix (l, c->modes, c->n_commands, c->n_modes, error);
  if (status == IMK_OK)
    status = add_matrix (l, c->interaction, n_slopes,
        is_modal ? c->n_modes : c->n_commands, error);
  if (status == IMK_OK)
    status = add_matrix (l, c->matrix, c->n_modes, n_slopes, error);
  return status;
}

static void
clear_loop (Loop *l)
{
  for (uint32_t i = 0; i < l->n_matrices; i++)
    imk_shreconstruct_matrix_clear (&l->matrices[i]);
  for (uint32_t i = 0; i <= N_MATRICES; i++)
    free (l->vectors[i]);
}

/* Returns: L of the first vector, [n_modes] */
static const float *
apply_loop (Loop *l)
{
  for (uint32_t i = 0; i < l->n_matrices; i++)
    imk_shreconstruct_multiply (
        &l->matrices[i], l->vectors[i], l->vectors[i + 1], l->n_threads);
  return l->vectors[l->n_matrices];
}

/* Makes the first vector one of numbers 1 and -1. */
static void
draw_signs (Loop *l, uint64_t *seed)
{
  for (uint32_t m = 0; m < l->n_modes; m++) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    l->vectors[0][m] = *seed >> 63 ? 1 : -1;
  }
}

/* Of Hutchinson 1990, Communications in Statistics 19, 433. Returns: the trace
 * of L, for each mode */
static double
find_mean (Loop *l, uint64_t *seed)
{
  double sum = 0;

  for (int i = 0; i < N_PROBES; i++) {
    const float *image;

    draw_signs (l, seed);
    image = apply_loop (l);
    for (uint32_t m = 0; m < l->n_modes; m++)
      sum += (double) l->vectors[0][m] * image[m];
  }
  return sum / N_PROBES / l->n_modes;
}

/* By power iteration; as the mean of the last steps, since the size of a vector
 * changes from step to step where eigenvalues are complex. An inverse needs two
 * steps.
 * Returns: the size of the eigenvalue of L - @shift that is farthest from 0 */
static double
find_largest (Loop *l, double shift, uint64_t *seed)
{
  double growth = 0;

  draw_signs (l, seed);
  for (int step = 0; step < N_STEPS; step++) {
    const float *image = apply_loop (l);
    double before = 0, along = 0, after = 0;

    for (uint32_t m = 0; m < l->n_modes; m++) {
      const double at = l->vectors[0][m], next = image[m] - shift * at;

      before += at * at;
      along += at * next;
      after += next * next;
      l->vectors[0][m] = (float) next;
    }
    if (!(after > 1e-12 * before))
      return 0;
    if (after * before - along * along <= 1e-6 * after * before)
      return sqrt (after / before); /* an eigenvector */
    if (step >= N_STEPS - N_AVERAGED_STEPS)
      growth += log (after / before) / 2;
    for (uint32_t m = 0; m < l->n_modes; m++)
      l->vectors[0][m] = (float) (l->vectors[0][m] / sqrt (after));
  }
  return exp (growth / N_AVERAGED_STEPS);
}

ImkStatus
imk_shreconstruct_find_fit_as (const ImkShreconstructConfig *c, bool is_modal,
    ImkShreconstructFit *fit, ImkError *error)
{
  Loop l;
  uint64_t seed = 1;
  ImkStatus status = make_loop (&l, c, is_modal, error);

  if (status == IMK_OK) {
    fit->mean = find_mean (&l, &seed);
    fit->largest = find_largest (&l, 0, &seed);
    fit->lowest = fit->largest - find_largest (&l, fit->largest, &seed);
    fit->runs_away = fit->lowest < -MAX_NEGATIVE_PART * fit->largest;
  }
  clear_loop (&l);
  return status;
}

ImkStatus
imk_shreconstruct_find_fit (const ImkShreconstructConfig *given,
    ImkShreconstructFit *fit, ImkError *error)
{
  ImkShreconstructConfig own;
  const ImkShreconstructConfig *c;
  ImkShreconstructFit modal;
  ImkStatus status;

  imk_shreconstruct_config_init (&own);
  c = imk_config_read (given, &own, "imk_shreconstruct_config_init", error);
  if (!c)
    return IMK_ERROR_CONFIG;
  status =
      imk_shreconstruct_find_fit_as (c, c->interaction_is_modal, fit, error);
  if (status == IMK_OK && fit->runs_away && c->modes &&
      c->n_modes == c->n_commands &&
      imk_shreconstruct_find_fit_as (c, true, &modal, NULL) == IMK_OK &&
      !modal.runs_away)
    *fit = modal;
  return status;
}
