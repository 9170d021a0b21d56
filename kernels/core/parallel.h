/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/api.h"

#include <stdint.h>

IMK_BEGIN_DECLS

/* Works on the items [first, end). */
typedef void (*ImkBandFunc) (void *data, uint32_t first, uint32_t end);

/* Returns: @n_threads, or the number of processors we may use when it is 0 */
IMK_API uint32_t imk_parallel_threads (uint32_t n_threads);

/**
 * imk_parallel_for: (runs @func over [0, @n_items) in contiguous bands)
 * @n_threads: at most this many bands at a time, 0 for one a processor
 * @grain: a band has at least this many items, so that small work stays on
 *   the calling thread; at least 1
 *
 * Returns when all bands are done. Bands share no item, so a @func that writes
 * only its own items gives the same result for every thread count. */
IMK_API void imk_parallel_for (uint32_t n_threads, uint32_t n_items,
    uint32_t grain, ImkBandFunc func, void *data);

IMK_END_DECLS
