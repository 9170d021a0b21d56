/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The semaphores of a stream are sem_t of glibc, 2.21 or newer, on a 64-bit
 * machine: the low half of the first word is the value, the high half the
 * number of those who wait. A post wakes somebody only if there is one. */
#include "gstshmim.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAITERS 4 /* behind the value, in bytes */

/* A claim takes microseconds; a program that keeps the lock is no reader. */
#define LONGEST_CLAIM (2 * G_USEC_PER_SEC)

static guint32 *
word (GstShmim *self, guint64 place)
{
  return (guint32 *) (gpointer) (self->map + place);
}

/* Changes the word at @place atomically, then wakes one who waits at @place.
 * Returns: FALSE when the file was cut */
static gboolean
change (GstShmim *self, guint64 place, gint operation, gint argument)
{
  guint32 *at = word (self, place);

  return syscall (SYS_futex, at, FUTEX_WAKE_OP, 1, (gpointer) 0, at,
             FUTEX_OP (operation, argument & 0xfff, FUTEX_OP_CMP_EQ, 0)) >= 0;
}

static guint64
value_place (const GstShmim *self, guint i)
{
  return self->layout.semaphores + (guint64) i * GST_SHMIM_SEMAPHORE_SIZE;
}

void
gst_shmim_post (GstShmim *self, guint64 place)
{
  change (self, place, FUTEX_OP_ADD, 1);
}

void
gst_shmim_count (GstShmim *self)
{
  const guint64 place = G_STRUCT_OFFSET (GstShmimHeader, count);
  guint32 low = 0;

  /* both halves are 0 for an instant once in 4 billion frames */
  if (gst_shmim_read (self, place, &low, sizeof (low), NULL) &&
      low == G_MAXUINT32)
    change (self, place + sizeof (low), FUTEX_OP_ADD, 1);
  change (self, place, FUTEX_OP_ADD, 1);
}

/* Returns: whether the semaphore was posted within @spin; FALSE when the file
 * was cut */
static gboolean
is_posted_within (GstShmim *self, guint64 place, GstClockTime spin)
{
  const GstClockTime end = gst_util_get_timestamp () + spin;
  guint32 value = 0;

  do
    if (!gst_shmim_read (self, place, &value, sizeof (value), NULL))
      return FALSE;
  while (value == 0 && gst_util_get_timestamp () < end);
  return value != 0;
}

GstShmimWait
gst_shmim_wait (GstShmim *self, GstClockTime spin, GstClockTime timeout)
{
  const guint64 place = value_place (self, (guint) self->slot);
  struct timespec left;
  glong status;
  gint reason;

  if (spin > 0 && is_posted_within (self, place, spin))
    return change (self, place, FUTEX_OP_SET, 0) ? GST_SHMIM_WAIT_POSTED
                                                 : GST_SHMIM_WAIT_CUT;
  GST_TIME_TO_TIMESPEC (timeout, left);
  if (!change (self, place + WAITERS, FUTEX_OP_ADD, 1))
    return GST_SHMIM_WAIT_CUT;
  /* returns at once unless the value is 0 */
  status =
      syscall (SYS_futex, word (self, place), FUTEX_WAIT, 0, &left, NULL, 0);
  reason = status == 0 ? 0 : errno;
  if (!change (self, place + WAITERS, FUTEX_OP_ADD, -1) || reason == EFAULT)
    return GST_SHMIM_WAIT_CUT;
  if (reason == ETIMEDOUT)
    return GST_SHMIM_WAIT_TIMEOUT;
  return change (self, place, FUTEX_OP_SET, 0) ? GST_SHMIM_WAIT_POSTED
                                               : GST_SHMIM_WAIT_CUT;
}

void
gst_shmim_wake (GstShmim *self)
{
  gst_shmim_post (self, value_place (self, (guint) self->slot));
}

/* --- readers and writers -------------------------------------------------- */

gboolean
gst_shmim_has_ended (gint process)
{
  return process > 0 && kill (process, 0) != 0 && errno == ESRCH;
}

/* Keeps our readers, of this process and of others, from the same semaphore;
 * other programs do not ask. Returns: FALSE where the file stays locked */
static gboolean
lock (GstShmim *self, GError **error)
{
  const gint64 end = g_get_monotonic_time () + LONGEST_CLAIM;

  while (flock (self->fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return TRUE; /* a file system without locks */
    if (g_get_monotonic_time () >= end) {
      g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_BUSY,
          "Stream \"%s\" (%s) is locked by another program. End that program.",
          self->name, self->path);
      return FALSE;
    }
    g_usleep (200);
  }
  return TRUE;
}

/* As the library does, but never a semaphore that another reader of this
 * process has. */
gboolean
gst_shmim_claim (GstShmim *self, GError **error)
{
  const gint32 process = getpid ();
  gboolean ok = TRUE;

  if (!lock (self, error))
    return FALSE;
  for (guint i = 0; ok && self->slot < 0 && i < self->header.n_semaphores;
       i++) {
    const guint64 place = self->layout.readers + i * sizeof (gint32);
    gint32 reader;

    ok = gst_shmim_read (self, place, &reader, sizeof (reader), error);
    if (!ok || (reader > 0 && !gst_shmim_has_ended (reader)))
      continue;
    ok = gst_shmim_write (self, place, &process, sizeof (process), error) &&
         change (self, value_place (self, i), FUTEX_OP_SET, 0);
    if (ok)
      self->slot = (gint) i;
  }
  flock (self->fd, LOCK_UN);
  if (ok && self->slot < 0) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_BUSY,
        "All %u semaphores of stream \"%s\" have readers. End one of them, or "
        "make the stream with more semaphores.",
        self->header.n_semaphores, self->name);
    return FALSE;
  }
  if (!ok && error && !*error)
    gst_shmim_set_cut_error (self, error);
  return ok;
}

gint
gst_shmim_writer (const GstShmim *self)
{
  GstShmimHeader now;
  gint32 writer = 0;

  if (gst_shmim_read (self,
          self->layout.writers + (guint) self->slot * sizeof (writer), &writer,
          sizeof (writer), NULL) &&
      writer > 0)
    return writer;
  return gst_shmim_read_header (self, &now, NULL) && now.creator > 0
             ? now.creator
             : 0;
}
