/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that threads work in, one block each at a time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

typedef struct ImkOctbscanPool ImkOctbscanPool;

/* @n_blocks of @size bytes, aligned to 64, 0 to begin with; as many as there
 * are threads. */
ImkStatus imk_octbscan_pool_new (
    uint32_t n_blocks, size_t size, ImkOctbscanPool **self, ImkError *error);

/* Any thread; there is one. */
void *imk_octbscan_pool_take (ImkOctbscanPool *self);
void imk_octbscan_pool_give (ImkOctbscanPool *self, void *block);

/* @self may be NULL. */
void imk_octbscan_pool_free (ImkOctbscanPool *self);

/* Zeroed, aligned to 64, to be freed with free (). Returns: NULL without
 * memory */
void *imk_octbscan_alloc (size_t size);
