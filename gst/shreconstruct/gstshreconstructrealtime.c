/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE /* cpu_set_t, gettid */
#include "gstshreconstructrealtime.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

struct _GstShReconstructRealtime {
  GstElement *element; /* owns this */
  guint priority;      /* those that were applied to @thread */
  gint cpu;
  gboolean is_locked;
  GThread *thread; /* (nullable): of the last frame, kept alive by this */

  /* what @thread was before; -1: nothing of it was changed */
  pid_t id;
  int policy;
  struct sched_param param;
  cpu_set_t cpus;
};

GstShReconstructRealtime *
gst_sh_reconstruct_realtime_new (GstElement *element)
{
  GstShReconstructRealtime *self = g_new0 (GstShReconstructRealtime, 1);

  self->element = element;
  self->cpu = -1;
  self->id = -1;
  return self;
}

void
gst_sh_reconstruct_realtime_free (GstShReconstructRealtime *self)
{
  gst_sh_reconstruct_realtime_stop (self);
  g_free (self);
}

/* --- a thread ------------------------------------------------------------- */

/* Threads that it starts, such as those of n-threads, do not inherit the
 * priority. */
static gboolean
set_priority (guint priority)
{
  const struct sched_param param = {.sched_priority = (int) priority};

  return sched_setscheduler (0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) == 0;
}

static gboolean
set_cpu (gint cpu)
{
  cpu_set_t cpus;

  CPU_ZERO (&cpus);
  if (cpu >= CPU_SETSIZE)
    return FALSE;
  CPU_SET (cpu, &cpus);
  return sched_setaffinity (0, sizeof (cpus), &cpus) == 0;
}

static void
remember_thread (GstShReconstructRealtime *self)
{
  self->id = gettid ();
  self->policy = sched_getscheduler (0);
  sched_getparam (0, &self->param);
  sched_getaffinity (0, sizeof (self->cpus), &self->cpus);
}

static gboolean
has_our_cpu (const GstShReconstructRealtime *self)
{
  cpu_set_t cpus;

  return self->cpu >= 0 &&
         sched_getaffinity (self->id, sizeof (cpus), &cpus) == 0 &&
         CPU_COUNT (&cpus) == 1 && CPU_ISSET (self->cpu, &cpus);
}

static gboolean
has_our_priority (const GstShReconstructRealtime *self)
{
  struct sched_param param;

  return self->priority > 0 &&
         sched_getscheduler (self->id) == (SCHED_FIFO | SCHED_RESET_ON_FORK) &&
         sched_getparam (self->id, &param) == 0 &&
         param.sched_priority == (int) self->priority;
}

/* A thread of a pool lives on, and would bring its priority to other work. One
 * that is not as we left it is another by now, of the same number, or its owner
 * has changed it. */
static void
restore_thread (GstShReconstructRealtime *self)
{
  if (self->id < 0)
    return;
  if (has_our_cpu (self))
    sched_setaffinity (self->id, sizeof (self->cpus), &self->cpus);
  /* only the privileged may take the flag back */
  if (has_our_priority (self) &&
      sched_setscheduler (self->id, self->policy, &self->param) != 0)
    sched_setscheduler (
        self->id, self->policy | SCHED_RESET_ON_FORK, &self->param);
  self->id = -1;
}

/* One that has ended is kept, so that no other gets its address. */
static void
set_thread (GstShReconstructRealtime *self, GThread *thread)
{
  g_clear_pointer (&self->thread, g_thread_unref);
  self->thread = thread ? g_thread_ref (thread) : NULL;
}

static void
change_thread (
    GstShReconstructRealtime *self, const GstShReconstructSettings *s)
{
  restore_thread (self);
  set_thread (self, g_thread_self ());
  self->priority = s->realtime_priority;
  self->cpu = s->cpu;
  if (s->realtime_priority == 0 && s->cpu < 0)
    return;
  remember_thread (self);
  if (s->cpu >= 0 && !set_cpu (s->cpu))
    GST_ELEMENT_WARNING (self->element, RESOURCE, SETTINGS,
        ("cpu is %d, which this process may not use. Take one of those that "
         "`taskset -p %d` shows.",
            s->cpu, (int) getpid ()),
        ("sched_setaffinity: %s", g_strerror (errno)));
  if (s->realtime_priority > 0 && !set_priority (s->realtime_priority))
    GST_ELEMENT_WARNING (self->element, RESOURCE, SETTINGS,
        ("realtime-priority is %u, which is not permitted. Raise the limit "
         "rtprio (`ulimit -r`, limits.conf), or add the capability "
         "CAP_SYS_NICE.",
            s->realtime_priority),
        ("sched_setscheduler: %s", g_strerror (errno)));
}

/* --- memory --------------------------------------------------------------- */

/* With a limit, locking what is still to come would let each later allocation
 * beyond it fail. */
static gboolean
may_lock_all (void)
{
  struct __user_cap_header_struct header = {
      .version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
  struct rlimit limit;

  if (getrlimit (RLIMIT_MEMLOCK, &limit) == 0 &&
      limit.rlim_cur == RLIM_INFINITY)
    return TRUE;
  return syscall (SYS_capget, &header, data) == 0 &&
         (data[0].effective & 1u << CAP_IPC_LOCK) != 0;
}

static void
lock_memory (GstShReconstructRealtime *self)
{
  int reason = EPERM;

  if (may_lock_all ()) {
    if (mlockall (MCL_CURRENT | MCL_FUTURE) == 0)
      return;
    reason = errno;
  }
  GST_ELEMENT_WARNING (self->element, RESOURCE, SETTINGS,
      ("lock-memory is true, which is not permitted. Set the limit memlock to "
       "unlimited (`ulimit -l`, limits.conf), or add the capability "
       "CAP_IPC_LOCK."),
      ("mlockall: %s", g_strerror (reason)));
}

/* --- frames --------------------------------------------------------------- */

void
gst_sh_reconstruct_realtime_follow (
    GstShReconstructRealtime *self, const GstShReconstructSettings *s)
{
  if (self->priority != s->realtime_priority || self->cpu != s->cpu ||
      self->thread != g_thread_self ())
    change_thread (self, s);
  if (self->is_locked != s->lock_memory && s->lock_memory)
    lock_memory (self);
  self->is_locked = s->lock_memory;
}

void
gst_sh_reconstruct_realtime_stop (GstShReconstructRealtime *self)
{
  restore_thread (self);
  set_thread (self, NULL);
  self->is_locked = FALSE;
}
