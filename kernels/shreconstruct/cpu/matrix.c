/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "core/cpu.h"
#include "imk/parallel.h"
#include "shreconstruct/cpu/loops.h"

enum {
  ROWS = IMK_SHRECONSTRUCT_TILE_ROWS,
  /* values of a matrix for which another thread is worth while: 10 us */
  MIN_VALUES = 1 << 18,
};

extern const ImkShreconstructLoops imk_shreconstruct_scalar,
    imk_shreconstruct_neon, imk_shreconstruct_avx2, imk_shreconstruct_avx512;

ImkStatus
imk_shreconstruct_choose_loops (
    const ImkShreconstructLoops **loops, ImkError *error)
{
  static const void *const tables[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_shreconstruct);
  const void *table;
  ImkStatus status = imk_cpu_choose (tables, &table, error);

  if (status == IMK_OK)
    *loops = table;
  return status;
}

ImkStatus
imk_shreconstruct_matrix_init (ImkShreconstructMatrix *matrix,
    const float *values, uint32_t n_rows, uint32_t n_columns, ImkError *error)
{
  size_t room = imk_shreconstruct_room (n_rows);
  ImkStatus status = imk_shreconstruct_choose_loops (&matrix->loops, error);

  if (status != IMK_OK)
    return status;
  matrix->n_rows = n_rows;
  matrix->n_columns = n_columns;
  matrix->tiles = calloc (room * n_columns, sizeof (float));
  if (!matrix->tiles)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for a matrix of %u x %u numbers.", n_rows,
        n_columns);
  for (uint32_t r = 0; r < n_rows; r++) {
    float *tile = matrix->tiles + (size_t) (r / ROWS) * ROWS * n_columns;

    for (uint32_t i = 0; i < n_columns; i++)
      tile[(size_t) i * ROWS + r % ROWS] = values[(size_t) r * n_columns + i];
  }
  return IMK_OK;
}

void
imk_shreconstruct_matrix_clear (ImkShreconstructMatrix *matrix)
{
  free (matrix->tiles);
  matrix->tiles = NULL;
}

typedef struct TileJob {
  const ImkShreconstructMatrix *matrix;
  const float *vector;
  float *product;
} TileJob;

static void
multiply_tiles (void *data, uint32_t first, uint32_t end)
{
  const TileJob *job = data;
  uint32_t n = job->matrix->n_columns;

  for (uint32_t i = first; i < end; i++)
    job->matrix->loops->multiply (job->matrix->tiles + (size_t) i * ROWS * n,
        job->vector, n, job->product + (size_t) i * ROWS);
}

void
imk_shreconstruct_multiply (const ImkShreconstructMatrix *matrix,
    const float *vector, float *product, uint32_t n_threads)
{
  TileJob job = {matrix, vector, product};
  uint32_t n_tiles = (matrix->n_rows + ROWS - 1) / ROWS;
  uint32_t grain = MIN_VALUES / (ROWS * matrix->n_columns) + 1;

  imk_parallel_for (n_threads, n_tiles, grain, multiply_tiles, &job);
}
