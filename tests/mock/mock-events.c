/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-cuda.h"

#include <stdlib.h>
#include <time.h>

/* One record of an event; it outlives the event while somebody waits. */
typedef struct Mark {
  atomic_uint n_refs;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool done;
} Mark;

typedef struct Event {
  MockHandle handle;
  pthread_mutex_t lock;
  Mark *mark; /* the last record, NULL when there was none */
} Event;

typedef struct MarkJob {
  MockJob job;
  Mark *mark;
} MarkJob;

static Mark *
mark_new (void)
{
  Mark *mark = calloc (1, sizeof (*mark));

  if (mark) {
    mark->n_refs = 1;
    pthread_mutex_init (&mark->lock, NULL);
    pthread_cond_init (&mark->changed, NULL);
  }
  return mark;
}

static void
mark_unref (Mark *mark)
{
  if (mark && atomic_fetch_sub (&mark->n_refs, 1) == 1) {
    pthread_mutex_destroy (&mark->lock);
    pthread_cond_destroy (&mark->changed);
    free (mark);
  }
}

static void
mark_job_clear (MockJob *job)
{
  mark_unref (((MarkJob *) job)->mark);
}

static ImkStatus
run_record (MockJob *job, ImkError *error)
{
  Mark *mark = ((MarkJob *) job)->mark;

  pthread_mutex_lock (&mark->lock);
  mark->done = true;
  pthread_cond_broadcast (&mark->changed);
  pthread_mutex_unlock (&mark->lock);
  return IMK_OK;
}

static ImkStatus
run_wait (MockJob *job, ImkError *error)
{
  Mark *mark = ((MarkJob *) job)->mark;

  pthread_mutex_lock (&mark->lock);
  while (!mark->done)
    pthread_cond_wait (&mark->changed, &mark->lock);
  pthread_mutex_unlock (&mark->lock);
  return IMK_OK;
}

/* The last record as it is now: a later one is not waited for. Returns: a job
 * that waits, NULL when nothing was recorded or memory is exhausted */
static MockJob *
wait_job_new (Event *event, ImkStatus *status, ImkError *error)
{
  Mark *mark;
  MarkJob *job;

  pthread_mutex_lock (&event->lock);
  mark = event->mark;
  if (mark)
    mark->n_refs++;
  pthread_mutex_unlock (&event->lock);
  if (!mark)
    return NULL;
  job = mock_job_new (sizeof (*job), run_wait, mark_job_clear);
  if (!job) {
    mark_unref (mark);
    *status = mock_no_memory (error);
    return NULL;
  }
  job->mark = mark;
  return &job->job;
}

ImkStatus
mock_event_new (void **event, ImkError *error)
{
  ImkStatus status = mock_begin ("event_new", error);
  Event *e;

  if (status != IMK_OK)
    return status;
  e = calloc (1, sizeof (*e));
  if (!e)
    return mock_no_memory (error);
  pthread_mutex_init (&e->lock, NULL);
  mock_handle_add (&e->handle, MOCK_EVENT);
  *event = e;
  return IMK_OK;
}

void
mock_event_free (void *event)
{
  Event *e;

  if (!event)
    return;
  mock_need_context ("event_free");
  e = mock_handle_check (event, MOCK_EVENT, "event_free");
  mock_handle_remove (&e->handle);
  mark_unref (e->mark);
  pthread_mutex_destroy (&e->lock);
  free (e);
}

ImkStatus
mock_event_record (void *event, void *stream, ImkError *error)
{
  ImkStatus status = mock_begin ("event_record", error);
  Event *e;
  Mark *mark, *old;
  MarkJob *job;
  int device;

  if (status != IMK_OK)
    return status;
  e = mock_handle_check (event, MOCK_EVENT, "event_record");
  device = mock_stream_device (stream, "event_record");
  if (e->handle.device != device)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "An event of device %d was recorded in a stream of device %d.",
        e->handle.device, device);
  mark = mark_new ();
  job = mock_job_new (sizeof (*job), run_record, mark_job_clear);
  if (!mark || !job) {
    mark_unref (mark);
    free (job);
    return mock_no_memory (error);
  }
  mark->n_refs = 2; /* the event and the job */
  job->mark = mark;
  pthread_mutex_lock (&e->lock);
  old = e->mark;
  e->mark = mark;
  /* under the lock: who sees the mark may count on its job being queued */
  status = mock_submit (&job->job, stream, "event_record", error);
  pthread_mutex_unlock (&e->lock);
  mark_unref (old);
  return status;
}

ImkStatus
mock_event_wait (void *event, void *stream, ImkError *error)
{
  ImkStatus status = mock_begin ("event_wait", error);
  MockJob *job;

  if (status != IMK_OK)
    return status;
  job = wait_job_new (
      mock_handle_check (event, MOCK_EVENT, "event_wait"), &status, error);
  return job ? mock_submit (job, stream, "event_wait", error) : status;
}

/* Until it is done, or the device is lost; what that has queued is still done.
 */
static ImkStatus
wait_on_host (Mark *mark, ImkError *error)
{
  ImkStatus status;

  pthread_mutex_lock (&mark->lock);
  while ((status = mock_check_lost ("event_synchronize", error)) == IMK_OK &&
         !mark->done) {
    struct timespec until;

    clock_gettime (CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait (&mark->changed, &mark->lock, &until);
  }
  pthread_mutex_unlock (&mark->lock);
  return status;
}

ImkStatus
mock_event_synchronize (void *event, ImkError *error)
{
  ImkStatus status = mock_begin ("event_synchronize", error);
  MockJob *job;

  if (status != IMK_OK)
    return status;
  job =
      wait_job_new (mock_handle_check (event, MOCK_EVENT, "event_synchronize"),
          &status, error);
  if (!job)
    return status;
  status = wait_on_host (((MarkJob *) job)->mark, error);
  mock_job_free (job);
  return status;
}
