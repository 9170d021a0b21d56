/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lapsharpen/cpu/scratch.h"

#include <stdlib.h>

static bool
allocate (ScratchPool *pool)
{
  pool->scratch = calloc (pool->n, sizeof (*pool->scratch));
  for (uint32_t i = 0; pool->scratch && i < pool->n; i++) {
    pool->scratch[i].memory = calloc (pool->n_floats, sizeof (float));
    if (!pool->scratch[i].memory)
      return false;
  }
  return pool->scratch != NULL;
}

/* Returns: what a thread needs, 0 for nothing */
static size_t
count_floats (const ImkLapsharpenRule *rule, ImkType type)
{
  const size_t smooth = rule->smooth.step ? smooth_sizes (rule).total : 0;
  const ImkLapsharpenPlane strip = strip_of (rule);

  if (type == IMK_TYPE_F32)
    return (size_t) (strip_rows (rule) + 2 * (int) rule->reach) *
               (size_t) imk_lapsharpen_row_floats (&strip) +
           smooth;
  if (rule->kernel_size)
    return (rule->kernel_size + 1) * made_row_size (rule) + 16;
  return smooth;
}

ImkStatus
imk_lapsharpen_scratch_resize (ScratchPool *pool, const ImkLapsharpenRule *rule,
    ImkType type, ImkError *error)
{
  ScratchPool made = {.n = pool->n, .n_floats = count_floats (rule, type)};

  if (made.n_floats == 0 || made.n_floats == pool->n_floats)
    return IMK_OK;
  if (!allocate (&made)) {
    imk_lapsharpen_scratch_clear (&made);
    return IMK_NO_MEMORY (error,
        "for the rows of %u threads: %zu bytes each. Take fewer threads "
        "(n-threads).",
        pool->n, made.n_floats * sizeof (float));
  }
  imk_lapsharpen_scratch_clear (pool);
  *pool = made;
  return IMK_OK;
}

void
imk_lapsharpen_scratch_clear (ScratchPool *pool)
{
  for (uint32_t i = 0; pool->scratch && i < pool->n; i++)
    free (pool->scratch[i].memory);
  free (pool->scratch);
  pool->scratch = NULL;
  pool->n_floats = 0;
}

Scratch *
imk_lapsharpen_take_scratch (ScratchPool *pool)
{
  for (uint32_t i = 0;; i = (i + 1) % pool->n)
    if (!__atomic_test_and_set (&pool->scratch[i].taken, __ATOMIC_ACQUIRE))
      return &pool->scratch[i];
}

void
imk_lapsharpen_give_back_scratch (Scratch *scratch)
{
  __atomic_clear (&scratch->taken, __ATOMIC_RELEASE);
}
