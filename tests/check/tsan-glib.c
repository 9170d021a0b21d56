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
typedef void (*Release) (gpointer box, GDestroyNotify clear);

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

/* A queue locks within GLib, and makes and frees its links there: harnesses
 * have their buffers from one. */
void
g_async_queue_push (GAsyncQueue *queue, gpointer data)
{
  g_async_queue_lock (queue);
  g_async_queue_push_unlocked (queue, data);
  __tsan_release (queue);
  g_async_queue_unlock (queue);
}

gpointer
g_async_queue_try_pop (GAsyncQueue *queue)
{
  gpointer data;

  g_async_queue_lock (queue);
  __tsan_acquire (queue);
  data = g_async_queue_try_pop_unlocked (queue);
  g_async_queue_unlock (queue);
  return data;
}

gpointer
g_async_queue_timeout_pop (GAsyncQueue *queue, guint64 timeout)
{
  gint64 until = g_get_monotonic_time () + (gint64) timeout;
  gpointer data;

  while (!(data = g_async_queue_try_pop (queue)) &&
         g_get_monotonic_time () < until)
    g_usleep (100);
  return data;
}

/* The last reference frees an object in GStreamer, which the suppression
 * called_from_lib ignores: but not where its functions end in jumps, so that
 * free () returns to the caller. The count orders what the owners did. */
void AnnotateIgnoreWritesBegin (const char *file, int line);
void AnnotateIgnoreWritesEnd (const char *file, int line);
void gst_mini_object_unref (gpointer object);

void
gst_mini_object_unref (gpointer object)
{
  __tsan_acquire (object);
  __tsan_release (object);
  AnnotateIgnoreWritesBegin (__FILE__, __LINE__);
  REAL (Lock, gst_mini_object_unref) (object);
  AnnotateIgnoreWritesEnd (__FILE__, __LINE__);
}

/* What the last reference frees, other owners have used. */
void
g_object_unref (gpointer object)
{
  __tsan_release (object);
  __tsan_acquire (object);
  REAL (Lock, g_object_unref) (object);
}

/* The same for a counted box: the owner that frees it must have seen what the
 * others did until they let go, so the order is told after the count is down,
 * in the function that clears. */
static __thread GDestroyNotify clear_box;

static void
acquire_and_clear (gpointer box)
{
  GDestroyNotify clear = clear_box;

  __tsan_acquire (box);
  if (clear)
    clear (box);
}

void
g_atomic_rc_box_release_full (gpointer box, GDestroyNotify clear)
{
  GDestroyNotify outer = clear_box;

  __tsan_release (box);
  clear_box = clear;
  REAL (Release, g_atomic_rc_box_release_full) (box, acquire_and_clear);
  clear_box = outer;
}

void
g_atomic_rc_box_release (gpointer box)
{
  g_atomic_rc_box_release_full (box, NULL);
}

/* Such a string is a box. Those of our code are not interned, and GStreamer has
 * none. */
void
g_ref_string_release (char *string)
{
  g_atomic_rc_box_release_full (string, NULL);
}
