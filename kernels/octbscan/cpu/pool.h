/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scratch memory: a thread takes one block at a time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "imk/status.h"

typedef struct ImkOctbscanPool ImkOctbscanPool;

/* @n_blocks, one for each thread, of @size bytes, aligned to 64 bytes, filled
 * with 0. */
ImkStatus imk_octbscan_pool_new (
    uint32_t n_blocks, size_t size, ImkOctbscanPool **self, ImkError *error);

/* Any thread; there is always a free block. */
void *imk_octbscan_pool_take (ImkOctbscanPool *self);
void imk_octbscan_pool_give (ImkOctbscanPool *self, void *block);

/* @self may be NULL. */
void imk_octbscan_pool_free (ImkOctbscanPool *self);

/* Returns: memory filled with 0, aligned to 64 bytes, for free (); NULL if
 * there is none */
void *imk_octbscan_alloc (size_t size);
