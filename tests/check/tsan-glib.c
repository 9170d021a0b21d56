/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GLib's locks for the thread sanitizer, which sees only what was compiled with
 * it: GLib was not, and waits by system calls of its own. A program that has
 * this file and exports its symbols takes the place of GLib's functions, in all
 * libraries that call them; each calls GLib's and tells what it orders. */
#include <dlfcn.h>
#include <glib.h>

#include <sanitizer/tsan_interface.h>

#define REAL(type, name) ((type) real (#name))

typedef void (*Lock) (void *mutex);
typedef gboolean (*TryLock) (void *mutex);
typedef void (*Wait) (GCond *cond, GMutex *mutex);
typedef gboolean (*WaitUntil) (GCond *cond, GMutex *mutex, gint64 end);
typedef gpointer (*Join) (GThread *thread);
typedef void (*Push) (GAsyncQueue *queue, gpointer data);
typedef gpointer (*Pop) (GAsyncQueue *queue);
typedef gpointer (*TimeoutPop) (GAsyncQueue *queue, guint64 timeout);

static gpointer
real (const char *name)
{
  return dlsym (RTLD_NEXT, name);
}

void
g_mutex_lock (GMutex *mutex)
{
  REAL (Lock, g_mutex_lock) (mutex);
  __tsan_acquire (mutex);
}

gboolean
g_mutex_trylock (GMutex *mutex)
{
  gboolean locked = REAL (TryLock, g_mutex_trylock) (mutex);

  if (locked)
    __tsan_acquire (mutex);
  return locked;
}

void
g_mutex_unlock (GMutex *mutex)
{
  __tsan_release (mutex);
  REAL (Lock, g_mutex_unlock) (mutex);
}

void
g_rec_mutex_lock (GRecMutex *mutex)
{
  REAL (Lock, g_rec_mutex_lock) (mutex);
  __tsan_acquire (mutex);
}

void
g_rec_mutex_unlock (GRecMutex *mutex)
{
  __tsan_release (mutex);
  REAL (Lock, g_rec_mutex_unlock) (mutex);
}

void
g_cond_wait (GCond *cond, GMutex *mutex)
{
  __tsan_release (mutex);
  REAL (Wait, g_cond_wait) (cond, mutex);
  __tsan_acquire (mutex);
}

gboolean
g_cond_wait_until (GCond *cond, GMutex *mutex, gint64 end)
{
  gboolean signalled;

  __tsan_release (mutex);
  signalled = REAL (WaitUntil, g_cond_wait_until) (cond, mutex, end);
  __tsan_acquire (mutex);
  return signalled;
}

/* A queue locks within GLib: harnesses have their buffers from one. */
void
g_async_queue_push (GAsyncQueue *queue, gpointer data)
{
  __tsan_release (queue);
  REAL (Push, g_async_queue_push) (queue, data);
}

gpointer
g_async_queue_try_pop (GAsyncQueue *queue)
{
  gpointer data = REAL (Pop, g_async_queue_try_pop) (queue);

  __tsan_acquire (queue);
  return data;
}

gpointer
g_async_queue_timeout_pop (GAsyncQueue *queue, guint64 timeout)
{
  gpointer data =
      REAL (TimeoutPop, g_async_queue_timeout_pop) (queue, timeout);

  __tsan_acquire (queue);
  return data;
}
