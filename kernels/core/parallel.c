/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Work is taken, not assigned: the caller and whichever workers are awake take
 * band after band. A caller whose workers get no processor, because the machine
 * is busy, does it all itself and waits for nobody. OpenMP's teams wait for
 * each other, spinning: with other pipelines beside, a frame of 1 ms took 8 to
 * 46 ms. */
#define _GNU_SOURCE /* sched_getaffinity, pthread_setname_np, secure_getenv */
#include "imk/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum {
  MAX_WORKERS = 255,
  BANDS_A_THREAD = 4, /* so that a thread that comes late finds some left */
  SPINS = 50, /* yields: some 10 us, less than falling asleep and waking */
};

/* One call of imk_parallel_for (), on its stack. */
typedef struct Job {
  ImkBandFunc func;
  void *data;
  uint32_t n_items, n_bands;
  atomic_uint next_band;

  /* under the lock of the pool */
  struct Job *next;
  uint32_t free_places; /* for workers */
  pthread_cond_t finished;

  atomic_uint n_workers; /* inside; changed under the lock */
} Job;

/* The one pool of the process. Workers are never joined: they hold nothing,
 * and sleep when there is no job. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  Job *jobs;
  uint32_t n_workers;
} pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .wake = PTHREAD_COND_INITIALIZER,
};

uint32_t
imk_parallel_threads (uint32_t n_threads)
{
  const char *shared;
  unsigned long most;
  cpu_set_t allowed;
  uint32_t n = 1;

  if (n_threads)
    return n_threads;
  shared = secure_getenv ("IMK_THREADS");
  most = shared ? strtoul (shared, NULL, 10) : 0;
  if (sched_getaffinity (0, sizeof (allowed), &allowed) == 0)
    n = (uint32_t) CPU_COUNT (&allowed);
  return most && most < n ? (uint32_t) most : n;
}

static void
take_bands (Job *job)
{
  uint32_t band;

  while ((band = atomic_fetch_add (&job->next_band, 1)) < job->n_bands)
    job->func (job->data,
        (uint32_t) ((uint64_t) job->n_items * band / job->n_bands),
        (uint32_t) ((uint64_t) job->n_items * (band + 1) / job->n_bands));
}

/* Returns: a job with work and a place for one more, or NULL */
static Job *
find_job (void)
{
  for (Job *job = pool.jobs; job; job = job->next)
    if (job->free_places && atomic_load (&job->next_band) < job->n_bands)
      return job;
  return NULL;
}

static void *
work (void *unused)
{
  (void) unused;
  pthread_mutex_lock (&pool.lock);
  for (;;) {
    Job *job = find_job ();

    if (!job) {
      pthread_cond_wait (&pool.wake, &pool.lock);
      continue;
    }
    job->free_places--;
    atomic_fetch_add (&job->n_workers, 1);
    pthread_mutex_unlock (&pool.lock);
    take_bands (job);
    pthread_mutex_lock (&pool.lock);
    /* the last touch: the job is on a stack that may be gone after it */
    if (atomic_fetch_sub (&job->n_workers, 1) == 1)
      pthread_cond_signal (&job->finished);
  }
  return NULL;
}

/* Fewer than wanted is no error: the caller works as well. */
static void
need_workers (uint32_t wanted)
{
  pthread_attr_t attributes;
  pthread_t thread;

  if (wanted > MAX_WORKERS)
    wanted = MAX_WORKERS;
  if (pool.n_workers >= wanted)
    return;
  pthread_attr_init (&attributes);
  pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
  while (pool.n_workers < wanted &&
         pthread_create (&thread, &attributes, work, NULL) == 0) {
    pthread_setname_np (thread, "imk-worker");
    pool.n_workers++;
  }
  pthread_attr_destroy (&attributes);
}

static void
offer (Job *job)
{
  pthread_mutex_lock (&pool.lock);
  need_workers (job->free_places);
  job->next = pool.jobs;
  pool.jobs = job;
  pthread_cond_broadcast (&pool.wake);
  pthread_mutex_unlock (&pool.lock);
}

/* All bands are taken; waits for the workers that are still in one. */
static void
withdraw (Job *job)
{
  Job **link = &pool.jobs;

  for (int i = 0; i < SPINS && atomic_load (&job->n_workers); i++)
    sched_yield ();
  pthread_mutex_lock (&pool.lock);
  while (*link != job)
    link = &(*link)->next;
  *link = job->next;
  while (atomic_load (&job->n_workers))
    pthread_cond_wait (&job->finished, &pool.lock);
  pthread_mutex_unlock (&pool.lock);
}

void
imk_parallel_for (uint32_t n_threads, uint32_t n_items, uint32_t grain,
    ImkBandFunc func, void *data)
{
  uint64_t n_bands = n_items / grain;
  uint64_t threads = imk_parallel_threads (n_threads);
  Job job = {.func = func, .data = data, .n_items = n_items};

  if (threads > n_bands)
    threads = n_bands;
  if (threads <= 1) {
    if (n_items)
      func (data, 0, n_items);
    return;
  }
  if (n_bands > threads * BANDS_A_THREAD)
    n_bands = threads * BANDS_A_THREAD;
  job.n_bands = (uint32_t) n_bands;
  job.free_places = (uint32_t) threads - 1;
  pthread_cond_init (&job.finished, NULL);
  offer (&job);
  take_bands (&job);
  withdraw (&job);
  pthread_cond_destroy (&job.finished);
}
