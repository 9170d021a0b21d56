/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/parallel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

uint32_t
imk_parallel_threads (uint32_t n_threads)
{
#ifdef _OPENMP
  return n_threads ? n_threads : (uint32_t) omp_get_num_procs ();
#else
  (void) n_threads;
  return 1;
#endif
}

void
imk_parallel_for (uint32_t n_threads, uint32_t n_items, uint32_t grain,
    ImkBandFunc func, void *data)
{
  uint32_t n_bands = imk_parallel_threads (n_threads);

  if (n_bands > n_items / grain)
    n_bands = n_items / grain;
  if (n_bands <= 1) {
    if (n_items)
      func (data, 0, n_items);
    return;
  }
#ifdef _OPENMP
#pragma omp parallel for num_threads(n_bands) schedule(static, 1)
#endif
  for (uint32_t band = 0; band < n_bands; band++)
    func (data, (uint32_t) ((uint64_t) n_items * band / n_bands),
        (uint32_t) ((uint64_t) n_items * (band + 1) / n_bands));
}
