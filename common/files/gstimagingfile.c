/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE /* memmem */
#include "gstimagingfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_QUOTE 80
#define MAX_LINKS 40           /* as Linux follows */
#define TEMPORARY_END "XXXXXX" /* of mkstemp () */

GQuark
gst_imaging_file_error_quark (void)
{
  return g_quark_from_static_string ("gst-imaging-file-error-quark");
}

/* --- text in messages ------------------------------------------------------
 */

/* Characters beyond @most become three points, which count. */
static gchar *
escape (const gchar *text, gsize size, gsize most)
{
  GString *shown = g_string_new (NULL);
  const gchar *end = text + size;
  gsize n = 0, cut = 0; /* characters so far; bytes that leave room for ... */

  while (text < end) {
    gunichar c = g_utf8_get_char_validated (text, end - text);
    gboolean valid = c < (gunichar) -2 && c != 0;
    gboolean plain = valid && g_unichar_isprint (c);
    gsize bytes = valid ? (gsize) (g_utf8_next_char (text) - text) : 1;
    gsize width = plain ? 1 : 4 * bytes;

    if (n + width > most) {
      g_string_truncate (shown, cut);
      g_string_append (shown, "...");
      break;
    }
    if (plain)
      g_string_append_len (shown, text, (gssize) bytes);
    else
      for (gsize i = 0; i < bytes; i++)
        g_string_append_printf (shown, "\\x%02x", (guint8) text[i]);
    n += width;
    if (n + 3 <= most)
      cut = shown->len;
    text += bytes;
  }
  return g_string_free (shown, FALSE);
}

gchar *
gst_imaging_file_escape (const gchar *text)
{
  return escape (text, strlen (text), G_MAXSIZE);
}

gchar *
gst_imaging_file_name (const gchar *location)
{
  g_autofree gchar *name = g_filename_display_name (location);
  g_autofree gchar *shown = gst_imaging_file_escape (name);
  glong n = g_utf8_strlen (shown, -1);

  /* the end of a path says more than its beginning; files name files, too */
  if (n <= MAX_QUOTE)
    return g_steal_pointer (&shown);
  return g_strconcat (
      "...", g_utf8_offset_to_pointer (shown, n - MAX_QUOTE + 3), NULL);
}

gchar *
gst_imaging_file_quote (const gchar *text, gssize size)
{
  return escape (text, size < 0 ? strlen (text) : (gsize) size, MAX_QUOTE);
}

/* Returns: FALSE, so that a failure is one `return` */
G_GNUC_PRINTF (4, 5)
static gboolean
fail (GError **error, GstImagingFileError code, const gchar *location,
    const gchar *format, ...)
{
  g_autofree gchar *name = gst_imaging_file_name (location);
  g_autofree gchar *what = NULL;
  va_list args;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, GST_IMAGING_FILE_ERROR, code, "\"%s\" %s", name, what);
  return FALSE;
}

/* Returns: (nullable): what @info is instead of a regular file */
static const gchar *
special_kind (const struct stat *info)
{
  if (S_ISREG (info->st_mode))
    return NULL;
  return S_ISDIR (info->st_mode) ? "folder" : "pipe or device";
}

/* --- reading ----------------------------------------------------------------
 */

static gboolean
check_kind (const gchar *location, const struct stat *info, GError **error)
{
  const gchar *kind = special_kind (info);

  return !kind || fail (error, GST_IMAGING_FILE_ERROR_OPEN, location,
                      "is no regular file: it is a %s.", kind);
}

static gboolean
fail_open (const gchar *location, gint number, GError **error)
{
  g_autofree gchar *name = gst_imaging_file_name (location);

  if (number != ENOENT)
    return fail (error, GST_IMAGING_FILE_ERROR_OPEN, location,
        "cannot be opened: %s.", g_strerror (number));
  g_set_error (error, GST_IMAGING_FILE_ERROR, GST_IMAGING_FILE_ERROR_NOT_FOUND,
      "There is no file \"%s\".", name);
  return FALSE;
}

static gboolean
fail_size (
    const gchar *location, guint64 size, guint64 max_size, GError **error)
{
  return fail (error, GST_IMAGING_FILE_ERROR_SIZE, location,
      "has %" G_GUINT64_FORMAT
      " bytes; a file of this kind has %" G_GUINT64_FORMAT " at most.",
      size, max_size);
}

gint
gst_imaging_file_open (
    const gchar *location, guint64 max_size, guint64 *size, GError **error)
{
  struct stat info;
  gint fd;

  g_return_val_if_fail (location, -1);

  /* before opening, which is an action on some devices */
  if (stat (location, &info) < 0) {
    fail_open (location, errno, error);
    return -1;
  }
  if (!check_kind (location, &info, error))
    return -1;
  /* the name may have become that of a pipe, which waits for its writer */
  fd = g_open (location, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
  if (fd < 0 || fstat (fd, &info) < 0)
    fail_open (location, errno, error);
  else if (check_kind (location, &info, error)) {
    if ((guint64) info.st_size <= max_size) {
      if (size)
        *size = (guint64) info.st_size;
      return fd;
    }
    fail_size (location, (guint64) info.st_size, max_size, error);
  }
  if (fd >= 0)
    close (fd);
  return -1;
}

/* Files of /proc have another size than they say. */
static gboolean
read_all (gint fd, const gchar *location, gsize max_size, GByteArray *bytes,
    GError **error)
{
  guint8 piece[16384];
  gssize got;

  do {
    got = read (fd, piece, sizeof (piece));
    if (got < 0 && errno != EINTR)
      return fail (error, GST_IMAGING_FILE_ERROR_READ, location,
          "cannot be read: %s.", g_strerror (errno));
    if (got > 0 && (gsize) got > max_size - bytes->len)
      return fail_size (location, bytes->len + (guint64) got, max_size, error);
    if (got > 0)
      g_byte_array_append (bytes, piece, (guint) got);
  } while (got != 0);
  return TRUE;
}

gchar *
gst_imaging_file_load (
    const gchar *location, gsize max_size, gsize *size, GError **error)
{
  gint fd = gst_imaging_file_open (location, max_size, NULL, error);
  GByteArray *bytes;
  gboolean ok;

  if (fd < 0)
    return NULL;
  bytes = g_byte_array_new ();
  ok = read_all (fd, location, max_size, bytes, error);
  close (fd);
  *size = bytes->len;
  g_byte_array_append (bytes, (const guint8 *) "", 1);
  return (gchar *) g_byte_array_free (bytes, !ok);
}

/* --- writing ----------------------------------------------------------------
 */

struct _GstImagingSaver {
  gchar *location;  /* for messages */
  gchar *target;    /* behind all links */
  gchar *temporary; /* NULL after the new name has been given */
  gint fd;          /* -1 when closed */
};

static gboolean
fail_write (const gchar *location, gint number, GError **error)
{
  return fail (error, GST_IMAGING_FILE_ERROR_WRITE, location,
      "cannot be written: %s.", g_strerror (number));
}

/* realpath () wants a target that exists.
 * Returns: (transfer full): behind all links; NULL with errno set */
static gchar *
follow_links (const gchar *location)
{
  gchar *path = g_strdup (location);

  /* the last turn finds what is behind the last link */
  for (guint i = 0; i <= MAX_LINKS; i++) {
    g_autofree gchar *folder = g_path_get_dirname (path);
    gchar *link, *next;
    struct stat info;

    if (lstat (path, &info) < 0 && errno == ENAMETOOLONG) {
      g_free (path);
      errno = ENAMETOOLONG;
      return NULL;
    }
    if (lstat (path, &info) < 0 || !S_ISLNK (info.st_mode))
      return path;
    link = g_file_read_link (path, NULL);
    if (!link)
      return path;
    next = g_path_is_absolute (link) ? g_strdup (link)
                                     : g_build_filename (folder, link, NULL);
    g_free (link);
    g_free (path);
    path = next;
  }
  g_free (path);
  errno = ELOOP;
  return NULL;
}

/* A write beyond the limit of the process (ulimit -f) is an error like that of
 * a full disk, unless the application has a use for the signal. */
static void
ignore_size_signal (void)
{
  struct sigaction now;

  if (sigaction (SIGXFSZ, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
    signal (SIGXFSZ, SIG_IGN);
}

/* As the file that is replaced. A stranger's file becomes ours, as only root
 * may give files away. Returns: FALSE with errno set */
static gboolean
take_mode (gint fd, const struct stat *old)
{
  G_GNUC_UNUSED gint ignored = fchown (fd, old->st_uid, old->st_gid);

  return fchmod (fd, old->st_mode & 0777) == 0;
}

/* On a file system without locks every file counts as free. */
static gboolean
is_locked (gint fd, gint operation)
{
  return flock (fd, operation | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* The writer holds a lock: one that can be taken is of a process that was
 * killed. What another user left is not ours to remove. */
static void
remove_left (gint folder, const gchar *name)
{
  gint fd =
      openat (folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  struct stat info;

  if (fd < 0)
    return;
  if (fstat (fd, &info) == 0 && S_ISREG (info.st_mode) &&
      info.st_uid == geteuid () && flock (fd, LOCK_EX | LOCK_NB) == 0)
    unlinkat (folder, name, 0);
  close (fd);
}

/* With a number of this host: some shared file systems do not show a lock to
 * other hosts. Returns: (transfer full) */
static gchar *
temporary_start (void)
{
  return g_strdup_printf (
      ".gst-imaging-%08x-", g_str_hash (g_get_host_name ()));
}

static void
sweep (const gchar *path)
{
  g_autofree gchar *start = temporary_start ();
  DIR *folder = opendir (path);
  struct dirent *entry;

  if (!folder)
    return;
  while ((entry = readdir (folder)))
    if (g_str_has_prefix (entry->d_name, start) &&
        strlen (entry->d_name) == strlen (start) + strlen (TEMPORARY_END))
      remove_left (dirfd (folder), entry->d_name);
  closedir (folder);
}

/* Once for each folder of the process: a series writes thousands of files
 * into one, and each look would read all of their names. */
static void
sweep_once (const gchar *path)
{
  static GMutex mutex;
  static GHashTable *swept;

  g_mutex_lock (&mutex);
  if (!swept)
    swept = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  if (g_hash_table_add (swept, g_strdup (path)))
    sweep (path);
  g_mutex_unlock (&mutex);
}

/* A locked file beside the target. Another process may take a file for one
 * that was left behind before its lock is there, and remove it: once more,
 * then. Returns: the descriptor; -1 with errno set */
static gint
open_temporary (const gchar *folder, gchar **name)
{
  g_autofree gchar *start = temporary_start ();

  for (;;) {
    g_autofree gchar *base = g_strconcat (start, TEMPORARY_END, NULL);
    struct stat info;
    gint fd;

    *name = g_build_filename (folder, base, NULL);
    fd = g_mkstemp_full (*name, O_RDWR | O_CLOEXEC, 0666);
    if (fd < 0 || flock (fd, LOCK_EX) < 0 || fstat (fd, &info) < 0 ||
        info.st_nlink > 0)
      return fd;
    close (fd);
    g_clear_pointer (name, g_free);
  }
}

GstImagingSaver *
gst_imaging_saver_new (const gchar *location, GError **error)
{
  g_autoptr (GstImagingSaver) self = NULL;
  g_autofree gchar *folder = NULL;
  struct stat info;
  gboolean exists;

  g_return_val_if_fail (location, NULL);

  ignore_size_signal ();
  exists = stat (location, &info) == 0;
  if (exists && special_kind (&info)) {
    fail (error, GST_IMAGING_FILE_ERROR_WRITE, location,
        "cannot be written: it is a %s, expected is a regular file or a new "
        "name.",
        special_kind (&info));
    return NULL;
  }
  self = g_new0 (GstImagingSaver, 1);
  self->fd = -1;
  self->location = g_strdup (location);
  self->target = follow_links (location);
  if (!self->target) {
    fail_write (location, errno, error);
    return NULL;
  }
  folder = g_path_get_dirname (self->target);
  sweep_once (folder);
  self->fd = open_temporary (folder, &self->temporary);
  if (self->fd < 0) {
    gint number = errno;

    g_clear_pointer (&self->temporary, g_free);
    fail_write (location, number, error);
    return NULL;
  }
  if (exists && !take_mode (self->fd, &info)) {
    fail_write (location, errno, error);
    return NULL;
  }
  return g_steal_pointer (&self);
}

GstImagingSaver *
gst_imaging_saver_continue (
    const gchar *location, guint64 *size, GError **error)
{
  g_autoptr (GstImagingSaver) self = NULL;
  struct stat info;

  g_return_val_if_fail (location, NULL);

  ignore_size_signal ();
  self = g_new0 (GstImagingSaver, 1);
  self->location = g_strdup (location);
  /* what is opened is what was looked at; a pipe does not block */
  self->fd = open (location, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (self->fd < 0 || fstat (self->fd, &info) < 0) {
    fail_write (location, errno, error);
    return NULL;
  }
  if (special_kind (&info)) {
    fail (error, GST_IMAGING_FILE_ERROR_WRITE, location,
        "cannot be written: it is a %s, expected is a regular file or a new "
        "name.",
        special_kind (&info));
    return NULL;
  }
  *size = (guint64) info.st_size;
  return g_steal_pointer (&self);
}

gboolean
gst_imaging_saver_lock (GstImagingSaver *self, GError **error)
{
  gint old = self->temporary ? open (self->target, O_RDONLY | O_CLOEXEC) : -1;
  gboolean locked =
      is_locked (self->fd, LOCK_EX) || (old >= 0 && is_locked (old, LOCK_SH));

  if (old >= 0)
    close (old);
  return !locked ||
         fail (error, GST_IMAGING_FILE_ERROR_WRITE, self->location,
             "is being written already, by another sink or program. Wait for "
             "its end, or take another name.");
}

gboolean
gst_imaging_saver_give_name (GstImagingSaver *self, GError **error)
{
  /* without fsync () a power cut may leave the new name and no content */
  if (fsync (self->fd) < 0 || g_rename (self->temporary, self->target) < 0)
    return fail_write (self->location, errno, error);
  g_clear_pointer (&self->temporary, g_free);
  return TRUE;
}

gboolean
gst_imaging_saver_write (
    GstImagingSaver *self, gconstpointer data, gsize size, GError **error)
{
  for (gsize n = 0; n < size;) {
    gssize put = write (self->fd, (const guint8 *) data + n, size - n);

    if (put < 0 && errno != EINTR)
      return fail_write (self->location, errno, error);
    n += MAX (put, 0);
  }
  return TRUE;
}

gint
gst_imaging_saver_get_fd (const GstImagingSaver *self)
{
  return self->fd;
}

const gchar *
gst_imaging_saver_get_path (const GstImagingSaver *self)
{
  return self->temporary;
}

gboolean
gst_imaging_saver_finish (GstImagingSaver *self, GError **error)
{
  gint fd = self->fd;
  /* without it a power cut may leave the new name and no content */
  gboolean ok = fsync (fd) == 0;
  gint number = errno;

  self->fd = -1;
  if (close (fd) < 0 && ok) {
    ok = FALSE;
    number = errno;
  }
  if (ok && self->temporary && g_rename (self->temporary, self->target) < 0) {
    ok = FALSE;
    number = errno;
  }
  if (!ok)
    return fail_write (self->location, number, error);
  g_clear_pointer (&self->temporary, g_free);
  return TRUE;
}

void
gst_imaging_saver_free (GstImagingSaver *self)
{
  if (!self)
    return;
  if (self->fd >= 0)
    close (self->fd);
  if (self->temporary)
    g_unlink (self->temporary);
  g_free (self->temporary);
  g_free (self->target);
  g_free (self->location);
  g_free (self);
}

gboolean
gst_imaging_file_save (
    const gchar *location, gconstpointer data, gsize size, GError **error)
{
  g_autoptr (GstImagingSaver) saver = gst_imaging_saver_new (location, error);

  return saver && gst_imaging_saver_write (saver, data, size, error) &&
         gst_imaging_saver_finish (saver, error);
}

gboolean
gst_imaging_file_check_beside (
    const gchar *location, const gchar *mark, GError **error)
{
  guint8 bytes[1 << 16];
  struct stat info;
  gssize size = 0;
  gint fd;

  if (lstat (location, &info) < 0 && errno == ENOENT)
    return TRUE;
  fd =
      gst_imaging_file_open (location, GST_IMAGING_FILE_MAX_STREAM, NULL, NULL);
  if (fd >= 0) {
    size = read (fd, bytes, sizeof (bytes));
    close (fd);
  }
  if (size > 0 && memmem (bytes, (gsize) size, mark, strlen (mark)))
    return TRUE;
  return fail (error, GST_IMAGING_FILE_ERROR_WRITE, location,
      "is there and was not written by gst-imaging: it stays.");
}
