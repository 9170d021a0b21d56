/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

struct ImkPool {
  pthread_mutex_t lock;
  pthread_cond_t given;
  uint32_t n_idle;
  void *idle[];
};

void *
imk_pool_alloc (size_t size)
{
  size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  void *memory = aligned_alloc (ALIGNMENT, rounded ? rounded : ALIGNMENT);

  if (memory)
    memset (memory, 0, rounded);
  return memory;
}

ImkStatus
imk_pool_new (uint32_t n_blocks, size_t size, ImkPool **self, ImkError *error)
{
  ImkPool *pool = calloc (1, sizeof (*pool) + n_blocks * sizeof (void *));

  if (pool) {
    pthread_mutex_init (&pool->lock, NULL);
    pthread_cond_init (&pool->given, NULL);
    while (pool->n_idle < n_blocks &&
           (pool->idle[pool->n_idle] = imk_pool_alloc (size)))
      pool->n_idle++;
    if (pool->n_idle == n_blocks) {
      *self = pool;
      return IMK_OK;
    }
    imk_pool_free (pool);
  }
  return IMK_NO_MEMORY (
      error, "for %u threads to work in, %zu bytes each.", n_blocks, size);
}

void *
imk_pool_take (ImkPool *self)
{
  void *block;

  pthread_mutex_lock (&self->lock);
  while (self->n_idle == 0)
    pthread_cond_wait (&self->given, &self->lock);
  block = self->idle[--self->n_idle];
  pthread_mutex_unlock (&self->lock);
  return block;
}

void
imk_pool_give (ImkPool *self, void *block)
{
  pthread_mutex_lock (&self->lock);
  self->idle[self->n_idle++] = block;
  pthread_cond_signal (&self->given);
  pthread_mutex_unlock (&self->lock);
}

void
imk_pool_free (ImkPool *self)
{
  if (!self)
    return;
  while (self->n_idle > 0)
    free (self->idle[--self->n_idle]);
  pthread_cond_destroy (&self->given);
  pthread_mutex_destroy (&self->lock);
  free (self);
}
