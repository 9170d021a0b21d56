/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshmim.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "gstimagingfile.h"

G_STATIC_ASSERT (sizeof (sem_t) == GST_SHMIM_SEMAPHORE_SIZE);

static GstShmimTime
now_tai (void)
{
  struct timespec now;

  clock_gettime (CLOCK_TAI, &now);
  return (GstShmimTime){now.tv_sec, now.tv_nsec};
}

GstClockTimeDiff
gst_shmim_tai_offset (void)
{
  struct timespec utc, tai;
  GstClockTimeDiff offset;

  clock_gettime (CLOCK_REALTIME, &utc);
  clock_gettime (CLOCK_TAI, &tai);
  offset = GST_TIMESPEC_TO_TIME (tai) - GST_TIMESPEC_TO_TIME (utc);
  /* whole seconds: the clocks were read one after the other */
  return (offset + GST_SECOND / 2) / GST_SECOND * GST_SECOND;
}

/* --- making --------------------------------------------------------------- */

static gboolean
fail (const GstShmim *self, const gchar *path, GError **error)
{
  const gint reason = errno;
  g_autofree gchar *file = gst_imaging_file_name (path);

  g_set_error (error, GST_RESOURCE_ERROR,
      reason == ENOSPC ? GST_RESOURCE_ERROR_NO_SPACE_LEFT
                       : GST_RESOURCE_ERROR_OPEN_WRITE,
      "Stream \"%s\" cannot be made as %s: %s.", self->name, file,
      g_strerror (reason));
  return FALSE;
}

static void
fill_header (GstShmim *self, GstShmimType type, guint n_axes,
    const guint32 size[3], guint n_semaphores)
{
  GstShmimHeader *h = &self->header;

  g_strlcpy (h->version, GST_SHMIM_VERSION, sizeof (h->version));
  g_strlcpy (h->name, self->name, sizeof (h->name));
  h->n_axes = (guint8) n_axes;
  h->n_values = 1;
  for (guint i = 0; i < n_axes; i++) {
    h->size[i] = size[i];
    h->n_values *= size[i];
  }
  h->type = type;
  h->data_size = h->n_values * gst_shmim_type_size (type);
  h->created = h->accessed = now_tai ();
  h->creator = getpid ();
  h->shared = 1;
  h->location = -1;
  h->n_semaphores = (guint16) n_semaphores;
  h->n_traces = GST_SHMIM_N_TRACES;
  self->layout = gst_shmim_layout (h, sizeof (*h));
}

/* What is not written is 0, as it should be. */
static gboolean
fill_file (GstShmim *self, GError **error)
{
  const gint32 nobody = -1;
  sem_t semaphore;
  gboolean ok = TRUE;

  memset (&semaphore, 0, sizeof (semaphore));
  sem_init (&semaphore, 1, 0);
  for (guint i = 0; ok && i <= self->header.n_semaphores; i++) /* and the log */
    ok = gst_shmim_write (self,
        self->layout.semaphores + (guint64) i * sizeof (semaphore), &semaphore,
        sizeof (semaphore), error);
  for (guint i = 0; ok && i < 2 * self->header.n_semaphores; i++)
    ok = gst_shmim_write (self,
        (i % 2 ? self->layout.readers : self->layout.writers) +
            i / 2 * sizeof (nobody),
        &nobody, sizeof (nobody), error);
  sem_destroy (&semaphore);
  return ok &&
         gst_shmim_write (self, 0, &self->header, sizeof (self->header), error);
}

/* Under another name, so that a reader finds the whole stream or none. */
static gboolean
make_file (GstShmim *self, const gchar *path, GError **error)
{
  GStatBuf status;

  self->fd = g_open (path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (self->fd < 0)
    return fail (self, self->path, error);
  /* memory that is not there is noticed now, and not while writing */
  errno = posix_fallocate (self->fd, 0, (goffset) self->layout.end);
  if (errno != 0 || fstat (self->fd, &status) != 0) {
    fail (self, self->path, error);
  } else {
    self->header.inode = status.st_ino;
    if (fill_file (self, error) &&
        (g_rename (path, self->path) == 0 || fail (self, self->path, error)))
      return TRUE;
  }
  g_unlink (path);
  return FALSE;
}

GstShmim *
gst_shmim_create (const gchar *name, const gchar *path, GstShmimType type,
    guint n_axes, const guint32 size[3], guint n_semaphores, GError **error)
{
  g_autoptr (GstShmim) made = g_new0 (GstShmim, 1);
  g_autofree gchar *other =
      g_strdup_printf ("%s.%d-%08x", path, (gint) getpid (), g_random_int ());

  made->name = g_strdup (name);
  made->path = g_strdup (path);
  made->slot = -1;
  made->fd = -1;
  fill_header (made, type, n_axes, size, n_semaphores);
  return make_file (made, other, error) ? gst_shmim_open (name, path, error)
                                        : NULL;
}

/* --- writing -------------------------------------------------------------- */

/* Writers leave a semaphore that nobody waits for at its maximum. */
static gboolean
tell_readers (GstShmim *self, GError **error)
{
  const gint32 process = getpid ();
  const guint n = self->header.n_semaphores;

  for (guint i = 0; i <= n; i++) { /* behind the last one is that of the log */
    const guint64 place =
        self->layout.semaphores + (guint64) i * GST_SHMIM_SEMAPHORE_SIZE;
    guint32 value;

    if (!gst_shmim_read (self, place, &value, sizeof (value), error))
      return FALSE;
    if (value >= GST_SHMIM_SEMAPHORE_MAX)
      continue;
    gst_shmim_post (self, place);
    if (i < n &&
        !gst_shmim_write (self, self->layout.writers + i * sizeof (process),
            &process, sizeof (process), error))
      return FALSE;
  }
  return TRUE;
}

/* The copy of the last frames that some streams have. */
static gboolean
write_ring (GstShmim *self, gconstpointer frame, GError **error)
{
  GstShmimHeader now;

  if (self->header.ring_size == 0)
    return TRUE;
  if (!gst_shmim_read_header (self, &now, error))
    return FALSE;
  now.ring_index = (now.ring_index + 1) % self->header.ring_size;
  now.ring_cycle += now.ring_index == 0;
  return gst_shmim_write (self,
             self->layout.ring + now.ring_index * self->header.data_size, frame,
             self->header.data_size, error) &&
         gst_shmim_write (self, G_STRUCT_OFFSET (GstShmimHeader, ring_cycle),
             &now.ring_cycle, sizeof (now.ring_cycle), error) &&
         gst_shmim_write (self, G_STRUCT_OFFSET (GstShmimHeader, ring_index),
             &now.ring_index, sizeof (now.ring_index), error);
}

static gboolean
set_writing (GstShmim *self, guint8 is_writing, GError **error)
{
  return gst_shmim_write (self, G_STRUCT_OFFSET (GstShmimHeader, is_writing),
      &is_writing, sizeof (is_writing), error);
}

static gboolean
write_frame (GstShmim *self, gconstpointer frame, const GstShmimTime *acquired,
    GError **error)
{
  GstShmimTime times[2]; /* acquired, written: neighbours in the header */

  if (!gst_shmim_write (
          self, self->layout.data, frame, self->header.data_size, error) ||
      !write_ring (self, frame, error))
    return FALSE;
  times[1] = now_tai ();
  times[0] = acquired ? *acquired : times[1];
  if (!gst_shmim_write (self, G_STRUCT_OFFSET (GstShmimHeader, acquired), times,
          sizeof (times), error))
    return FALSE;
  gst_shmim_count (self);
  return TRUE;
}

gboolean
gst_shmim_publish (GstShmim *self, gconstpointer frame,
    const GstShmimTime *acquired, GError **error)
{
  GStatBuf status;

  /* writing would make a file that was cut grow again */
  if (fstat (self->fd, &status) != 0 ||
      (guint64) status.st_size != self->layout.end) {
    gst_shmim_set_cut_error (self, error);
    return FALSE;
  }
  if (!set_writing (self, TRUE, error))
    return FALSE;
  if (!write_frame (self, frame, acquired, error)) {
    set_writing (self, FALSE, NULL); /* readers and other writers wait for it */
    return FALSE;
  }
  return set_writing (self, FALSE, error) && tell_readers (self, error);
}
