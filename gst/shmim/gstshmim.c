/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshmim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "gstimagingfile.h"

/* --- names ---------------------------------------------------------------- */

/* Returns: the folder in which milk looks for streams */
static const gchar *
usual_folder (void)
{
  const gchar *folder = g_getenv ("MILK_SHM_DIR");

  if (folder && g_file_test (folder, G_FILE_TEST_IS_DIR))
    return folder;
  return g_file_test ("/milk/shm", G_FILE_TEST_IS_DIR) ? "/milk/shm" : "/tmp";
}

gchar *
gst_shmim_path (const gchar *name, const gchar *folder, GError **error)
{
  g_autofree gchar *shown = gst_imaging_file_quote (name ? name : "", -1);

  if (!name || !*name) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "No stream is named: set the property stream, for example to dm00disp.");
    return NULL;
  }
  if (strchr (name, '/') || *name == '.') {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "stream is \"%s\": a name has no / and no . at its beginning. Set "
        "folder to the folder of the streams.",
        shown);
    return NULL;
  }
  if (strlen (name) > GST_SHMIM_MAX_NAME) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "stream is \"%s\", of %" G_GSIZE_FORMAT
        " bytes: the name of a stream has at most %d.",
        shown, strlen (name), GST_SHMIM_MAX_NAME);
    return NULL;
  }
  return g_strdup_printf (
      "%s/%s.im.shm", folder && *folder ? folder : usual_folder (), name);
}

/* --- opening -------------------------------------------------------------- */

static gboolean
fail_open (GError **error, const gchar *name, const gchar *path)
{
  const gint reason = errno;
  g_autofree gchar *file = gst_imaging_file_name (path);

  if (reason == ENOENT)
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "There is no stream \"%s\": %s does not exist. Start its writer, or "
        "set folder to the folder that it writes to.",
        name, file);
  else if (reason == EACCES || reason == EPERM)
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ_WRITE,
        "Permission denied for stream \"%s\" (%s). Readers, too, need write "
        "permission, for the semaphores.",
        name, file);
  else
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ_WRITE,
        "Stream \"%s\" (%s) cannot be opened: %s.", name, file,
        g_strerror (reason));
  return FALSE;
}

/* Sets the members that the file tells. */
static gboolean
load (GstShmim *self, GError **error)
{
  GStatBuf status;

  if (fstat (self->fd, &status) != 0)
    return fail_open (error, self->name, self->path);
  if (!S_ISREG (status.st_mode)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ_WRITE,
        "Stream \"%s\" (%s) is no regular file.", self->name, self->path);
    return FALSE;
  }
  if ((guint64) status.st_size <= sizeof (self->header)) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        "Stream \"%s\" has %" G_GINT64_FORMAT
        " bytes, too few for a header: it was cut, or is not complete. Make it "
        "again.",
        self->name, (gint64) status.st_size);
    return FALSE;
  }
  if (!gst_shmim_read_header (self, &self->header, error) ||
      !gst_shmim_check (&self->header, (guint64) status.st_size, self->name,
          &self->layout, error))
    return FALSE;
  self->map = mmap (
      NULL, self->layout.end, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
  if (self->map == MAP_FAILED) {
    self->map = NULL;
    return fail_open (error, self->name, self->path);
  }
  return TRUE;
}

GstShmim *
gst_shmim_open (const gchar *name, const gchar *path, GError **error)
{
  g_autoptr (GstShmim) self = g_new0 (GstShmim, 1);

  self->name = g_strdup (name);
  self->path = g_strdup (path);
  self->slot = -1;
  /* a pipe of this name must not wait */
  self->fd = g_open (path, O_RDWR | O_CLOEXEC | O_NONBLOCK, 0);
  if (self->fd < 0) {
    fail_open (error, name, path);
    return NULL;
  }
  return load (self, error) ? g_steal_pointer (&self) : NULL;
}

void
gst_shmim_close (GstShmim *self)
{
  const gint32 nobody = 0;

  if (!self)
    return;
  if (self->slot >= 0) /* a file that was cut has nothing to give back */
    gst_shmim_write (self,
        self->layout.readers + (guint) self->slot * sizeof (nobody), &nobody,
        sizeof (nobody), NULL);
  if (self->map)
    munmap (self->map, self->layout.end);
  if (self->fd >= 0)
    close (self->fd);
  g_free (self->name);
  g_free (self->path);
  g_free (self);
}

/* --- the file ------------------------------------------------------------- */

GstShmimState
gst_shmim_state (const GstShmim *self)
{
  GStatBuf named, ours;

  if (fstat (self->fd, &ours) != 0 ||
      (guint64) ours.st_size != self->layout.end)
    return GST_SHMIM_STATE_CUT;
  if (g_stat (self->path, &named) != 0)
    return GST_SHMIM_STATE_REMOVED;
  return named.st_dev == ours.st_dev && named.st_ino == ours.st_ino
             ? GST_SHMIM_STATE_CURRENT
             : GST_SHMIM_STATE_REPLACED;
}

void
gst_shmim_set_cut_error (const GstShmim *self, GError **error)
{
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ,
      "The file of stream \"%s\" (%s) was cut while it was in use. Make the "
      "stream again.",
      self->name, self->path);
}

gboolean
gst_shmim_read_header (
    const GstShmim *self, GstShmimHeader *header, GError **error)
{
  return gst_shmim_read (self, 0, header, sizeof (*header), error);
}

gboolean
gst_shmim_read (const GstShmim *self, guint64 place, gpointer data, gsize size,
    GError **error)
{
  for (gsize done = 0; done < size;) {
    gssize n = pread (self->fd, (guint8 *) data + done, size - done,
        (goffset) (place + done));

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      gst_shmim_set_cut_error (self, error);
      return FALSE;
    }
    done += (gsize) n;
  }
  return TRUE;
}

gboolean
gst_shmim_write (const GstShmim *self, guint64 place, gconstpointer data,
    gsize size, GError **error)
{
  for (gsize done = 0; done < size;) {
    gssize n = pwrite (self->fd, (const guint8 *) data + done, size - done,
        (goffset) (place + done));

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE,
          "Stream \"%s\" (%s) cannot be written: %s.", self->name, self->path,
          g_strerror (errno));
      return FALSE;
    }
    done += (gsize) n;
  }
  return TRUE;
}
