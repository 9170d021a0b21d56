/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scratch memory of CPU backends: a thread takes one block at a time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "imk/status.h"

typedef struct ImkPool ImkPool;

/* @n_blocks, one for each thread, of @size bytes, aligned to 64 bytes, filled
 * with 0. */
IMK_API ImkStatus imk_pool_new (
    uint32_t n_blocks, size_t size, ImkPool **self, ImkError *error);

/* Any thread. Waits while all blocks are taken: n-threads=0 means more threads
 * after the process was given more processors. */
IMK_API void *imk_pool_take (ImkPool *self);
IMK_API void imk_pool_give (ImkPool *self, void *block);

/* @self may be NULL. */
IMK_API void imk_pool_free (ImkPool *self);

/* Returns: memory filled with 0, aligned to 64 bytes, for free (); NULL if
 * there is none */
IMK_API void *imk_pool_alloc (size_t size);
