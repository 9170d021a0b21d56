/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lapsharpen/cpu/scratch.h"

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
imk_lapsharpen_scratch_resize (ScratchPool *scratch, uint32_t n_threads,
    const ImkLapsharpenRule *rule, ImkType type, ImkError *error)
{
  const uint32_t n = imk_parallel_threads (n_threads);
  const size_t n_floats = count_floats (rule, type);
  ImkPool *pool = NULL;

  if (n_floats == 0 || n_floats == scratch->n_floats)
    return IMK_OK;
  if (imk_pool_new (n, n_floats * sizeof (float), &pool, NULL) != IMK_OK)
    return IMK_NO_MEMORY (error,
        "for the rows of %u threads: %zu bytes each. Take fewer threads "
        "(n-threads).",
        n, n_floats * sizeof (float));
  imk_pool_free (scratch->pool);
  *scratch = (ScratchPool){pool, n_floats};
  return IMK_OK;
}
