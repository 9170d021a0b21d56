/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the object, cpu/ and exclude/ share. */
#pragma once

#include "shreconstruct/shreconstruct-backend.h"

static inline ImkStatus
imk_shreconstruct_no_memory (ImkError *error)
{
  return imk_error_set (
      error, IMK_ERROR_MEMORY, "There is no memory for the controller.");
}

static inline bool
imk_shreconstruct_is_dark (const ImkShreconstructConfig *c, uint32_t n_valid)
{
  return n_valid < c->min_valid * c->n_cells;
}

/* A matrix in tiles of TILE_ROWS rows: [tile][column][row], rows beyond the
 * last are 0. So each sum goes through the columns in their order, and a tile
 * is read from front to back. */
enum { IMK_SHRECONSTRUCT_TILE_ROWS = 32 };

typedef struct ImkShreconstructMatrix {
  const struct ImkShreconstructLoops *loops;
  uint32_t n_rows, n_columns;
  float *tiles;
} ImkShreconstructMatrix;

/* Copies @values [n_rows][n_columns].
 * Returns: IMK_ERROR_MEMORY, or IMK_ERROR_CONFIG for a wrong IMK_CPU */
ImkStatus imk_shreconstruct_matrix_init (ImkShreconstructMatrix *matrix,
    const float *values, uint32_t n_rows, uint32_t n_columns, ImkError *error);
void imk_shreconstruct_matrix_clear (ImkShreconstructMatrix *matrix);

/* @product: room for whole tiles */
void imk_shreconstruct_multiply (const ImkShreconstructMatrix *matrix,
    const float *vector, float *product, uint32_t n_threads);

static inline size_t
imk_shreconstruct_room (uint32_t n_rows)
{
  return ((size_t) n_rows + IMK_SHRECONSTRUCT_TILE_ROWS - 1) /
         IMK_SHRECONSTRUCT_TILE_ROWS * IMK_SHRECONSTRUCT_TILE_ROWS;
}

/* imk_shreconstruct_find_fit (), where it is decided whether @config has D or
 * D M. @config is not checked. */
ImkStatus imk_shreconstruct_find_fit_as (const ImkShreconstructConfig *config,
    bool is_modal, ImkShreconstructFit *fit, ImkError *error);

/* Where the others make all modes, rows of M of dead actuators count as 0.
 * Returns: pinv (M) = (M^T M)^-1 M^T in @inverse; false if its columns are not
 * independent, or without memory */
bool imk_shreconstruct_invert (
    const ImkShreconstructConfig *config, double *inverse);

/* --- cells that are out of the fit: exclude/exclude.c --------------------- */

typedef struct ImkShreconstructExclude ImkShreconstructExclude;

/* Returns: IMK_ERROR_CONFIG where R is not a least-squares inverse of D M;
 *   IMK_ERROR_MEMORY */
ImkStatus imk_shreconstruct_exclude_new (const ImkShreconstructConfig *config,
    ImkShreconstructExclude **self, ImkError *error);
void imk_shreconstruct_exclude_free (ImkShreconstructExclude *self);

/* Before a frame. @valid: [n_cells]; becomes 0 for cells that stay out
 * @max_changes: cells that may change
 * Returns: cells that are out */
uint32_t imk_shreconstruct_exclude_follow (
    ImkShreconstructExclude *self, uint8_t *valid, uint32_t max_changes);

/* @product: R s [n_modes], corrected here */
void imk_shreconstruct_exclude_correct (
    ImkShreconstructExclude *self, float *product);

/* Returns: (nullable): why R may not fit D, a sentence for the user */
const char *imk_shreconstruct_exclude_doubt (
    const ImkShreconstructExclude *self);

/* --- cells that are held for long: shreconstruct-held.c ------------------- */

typedef struct ImkShreconstructHeld ImkShreconstructHeld;

/* Returns: (nullable): NULL without memory */
ImkShreconstructHeld *imk_shreconstruct_held_new (
    const ImkShreconstructConfig *config);
void imk_shreconstruct_held_free (ImkShreconstructHeld *self);

/* After a frame. @slopes: [2 n_cells], also of the invalid cells */
void imk_shreconstruct_held_watch (
    ImkShreconstructHeld *self, const float *slopes, uint32_t n_valid);

/* Returns: (nullable): which cell is held for long, a sentence for the user */
const char *imk_shreconstruct_held_doubt (const ImkShreconstructHeld *self);
