/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-cuda.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct Stream {
  MockHandle handle;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  MockJob *first, **last;
  uint64_t n_queued, n_done;
  bool quit;
  ImkError error; /* of the first job that failed since the last wait */
} Stream;

void *
mock_job_new (size_t size, ImkStatus (*run) (MockJob *job, ImkError *error),
    void (*clear) (MockJob *job))
{
  MockJob *job = calloc (1, size);

  if (job) {
    job->run = run;
    job->clear = clear;
  }
  return job;
}

void
mock_job_free (MockJob *job)
{
  job->clear (job);
  free (job);
}

/* --- streams that are held ------------------------------------------------ */

static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hold_changed = PTHREAD_COND_INITIALIZER;
static bool held[MOCK_MAX_DEVICES];

/* For tests: while @hold no stream of @device begins a job. */
void imk_mock_hold (int device, bool hold);

__attribute__ ((visibility ("default"))) void
imk_mock_hold (int device, bool hold)
{
  pthread_mutex_lock (&hold_lock);
  held[device] = hold;
  pthread_cond_broadcast (&hold_changed);
  pthread_mutex_unlock (&hold_lock);
}

static void
wait_while_held (int device)
{
  pthread_mutex_lock (&hold_lock);
  while (held[device])
    pthread_cond_wait (&hold_changed, &hold_lock);
  pthread_mutex_unlock (&hold_lock);
}

/* --- streams -------------------------------------------------------------- */

static void *
stream_main (void *data)
{
  Stream *s = data;
  const char *delay = getenv ("IMK_MOCK_DELAY_US");
  unsigned delay_us = delay ? (unsigned) atoi (delay) : 0;

  pthread_mutex_lock (&s->lock);
  while (true) {
    ImkError error;
    ImkStatus status;
    MockJob *job;

    while (!s->first && !s->quit)
      pthread_cond_wait (&s->changed, &s->lock);
    if (!s->first)
      break;
    job = s->first;
    s->first = job->next;
    if (!s->first)
      s->last = &s->first;
    pthread_mutex_unlock (&s->lock);

    wait_while_held (s->handle.device);
    if (delay_us)
      usleep (delay_us);
    status = job->run (job, &error);
    mock_job_free (job);

    pthread_mutex_lock (&s->lock);
    if (status != IMK_OK && s->error.code == IMK_OK)
      s->error = error;
    s->n_done++;
    pthread_cond_broadcast (&s->changed);
  }
  pthread_mutex_unlock (&s->lock);
  return NULL;
}

ImkStatus
mock_submit (MockJob *job, void *stream, const char *call, ImkError *error)
{
  Stream *s;

  if (!stream) {
    ImkStatus status = job->run (job, error);

    mock_job_free (job);
    return status;
  }
  s = mock_handle_check (stream, MOCK_STREAM, call);
  pthread_mutex_lock (&s->lock);
  *s->last = job;
  s->last = &job->next;
  s->n_queued++;
  pthread_cond_broadcast (&s->changed);
  pthread_mutex_unlock (&s->lock);
  return IMK_OK;
}

int
mock_stream_device (void *stream, const char *call)
{
  Stream *s = stream ? mock_handle_check (stream, MOCK_STREAM, call) : NULL;

  return s ? s->handle.device : mock_current_device ();
}

ImkStatus
mock_stream_new (void **stream, ImkError *error)
{
  ImkStatus status = mock_begin ("stream_new", error);
  Stream *s;

  if (status != IMK_OK)
    return status;
  s = calloc (1, sizeof (*s));
  if (!s)
    return mock_no_memory (error);
  s->last = &s->first;
  pthread_mutex_init (&s->lock, NULL);
  pthread_cond_init (&s->changed, NULL);
  mock_handle_add (&s->handle, MOCK_STREAM);
  if (pthread_create (&s->thread, NULL, stream_main, s) != 0) {
    mock_handle_remove (&s->handle);
    pthread_mutex_destroy (&s->lock);
    pthread_cond_destroy (&s->changed);
    free (s);
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "The mock device has no more streams.");
  }
  *stream = s;
  return IMK_OK;
}

void
mock_stream_free (void *stream)
{
  Stream *s;

  if (!stream)
    return;
  mock_need_context ("stream_free");
  s = mock_handle_check (stream, MOCK_STREAM, "stream_free");
  mock_handle_remove (&s->handle);
  /* what is queued is still done, as by cudaStreamDestroy */
  pthread_mutex_lock (&s->lock);
  s->quit = true;
  pthread_cond_broadcast (&s->changed);
  pthread_mutex_unlock (&s->lock);
  pthread_join (s->thread, NULL);
  pthread_mutex_destroy (&s->lock);
  pthread_cond_destroy (&s->changed);
  free (s);
}

ImkStatus
mock_stream_wait (void *stream, ImkError *error)
{
  Stream *s = stream;
  ImkStatus status = IMK_OK;
  uint64_t until;

  pthread_mutex_lock (&s->lock);
  until = s->n_queued;
  while (s->n_done < until)
    pthread_cond_wait (&s->changed, &s->lock);
  if (s->error.code != IMK_OK)
    status = imk_error_set (error, s->error.code, "%s", s->error.message);
  s->error.code = IMK_OK;
  pthread_mutex_unlock (&s->lock);
  return status;
}

ImkStatus
mock_stream_synchronize (void *stream, ImkError *error)
{
  ImkStatus status = mock_begin ("stream_synchronize", error);

  if (status != IMK_OK || !stream)
    return status;
  return mock_stream_wait (
      mock_handle_check (stream, MOCK_STREAM, "stream_synchronize"), error);
}
