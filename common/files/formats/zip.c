/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "zip.h"

#include <string.h>

#include <unzip.h>

#include "files/gstimagingfile.h"

#define MAX_NAME 1024
#define PIECE (1 << 20)
#define IS_ENCRYPTED 1     /* bit of the flags of an entry */
#define MAX_EXPANSION 1032 /* of deflate */

typedef struct {
  unz64_file_pos at;
  guint64 size;
  gboolean is_encrypted;
} Entry;

/* minizip opens, closes and seeks; the file stays open and where it was. */
struct _GstImagingZip {
  const GstImagingFormatFile *file;
  guint64 at;
  gboolean failed; /* to read from the disk */
  unzFile unz;
  GHashTable *entries;
  const Entry *open;   /* (nullable): being read */
  guint64 n_read;      /* of it */
  guint8 *passed_over; /* of PIECE bytes */
};

/* --- what minizip calls --------------------------------------------------- */

static voidpf
stream_open (voidpf opaque, const void *name, int mode)
{
  return opaque;
}

static uLong
stream_read (voidpf opaque, voidpf stream, void *to, uLong size)
{
  GstImagingZip *self = opaque;
  gssize n = gst_imaging_format_read_at (self->file, to, size, self->at);

  if (n < 0) {
    self->failed = TRUE;
    return 0;
  }
  self->at += (guint64) n;
  return (uLong) n;
}

static ZPOS64_T
stream_tell (voidpf opaque, voidpf stream)
{
  return ((GstImagingZip *) opaque)->at;
}

static long
stream_seek (voidpf opaque, voidpf stream, ZPOS64_T offset, int origin)
{
  GstImagingZip *self = opaque;
  guint64 from = origin == ZLIB_FILEFUNC_SEEK_CUR   ? self->at
                 : origin == ZLIB_FILEFUNC_SEEK_END ? self->file->size
                                                    : 0;

  if (offset > self->file->size || from > self->file->size - offset)
    return -1;
  self->at = from + offset;
  return 0;
}

static int
stream_close (voidpf opaque, voidpf stream)
{
  return 0;
}

static int
stream_error (voidpf opaque, voidpf stream)
{
  return ((GstImagingZip *) opaque)->failed;
}

/* --- the list ------------------------------------------------------------- */

/* A ZIP may claim any size: what all of its files could never be is refused,
 * so that memory follows the size of the file. */
static gboolean
list (GstImagingZip *self)
{
  guint64 most =
      MIN (self->file->size, G_MAXINT64 / MAX_EXPANSION) * MAX_EXPANSION;
  guint64 total = 0;
  int status = unzGoToFirstFile (self->unz);

  for (; status == UNZ_OK; status = unzGoToNextFile (self->unz)) {
    unz_file_info64 info;
    gchar name[MAX_NAME];
    Entry *entry;

    if (unzGetCurrentFileInfo64 (self->unz, &info, name, sizeof (name), NULL, 0,
            NULL, 0) != UNZ_OK ||
        info.uncompressed_size > most - total)
      return FALSE;
    total += info.uncompressed_size;
    if (info.size_filename >= sizeof (name))
      continue;
    entry = g_new0 (Entry, 1);
    entry->size = info.uncompressed_size;
    entry->is_encrypted = info.flag & IS_ENCRYPTED;
    unzGetFilePos64 (self->unz, &entry->at);
    g_hash_table_replace (
        self->entries, g_strdelimit (g_strdup (name), "\\", '/'), entry);
  }
  return status == UNZ_END_OF_LIST_OF_FILE;
}

GstImagingZip *
gst_imaging_zip_new (const GstImagingFormatFile *file, GError **error)
{
  g_autoptr (GstImagingZip) self = g_new0 (GstImagingZip, 1);
  zlib_filefunc64_def functions = {
      .zopen64_file = stream_open,
      .zread_file = stream_read,
      .ztell64_file = stream_tell,
      .zseek64_file = stream_seek,
      .zclose_file = stream_close,
      .zerror_file = stream_error,
      .opaque = self,
  };

  self->file = file;
  self->entries =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  self->unz = unzOpen2_64 (file->name, &functions);
  if (!self->unz || !list (self)) {
    gst_imaging_format_fail_damaged (
        file, error, "the list at the end of the ZIP cannot be read");
    return NULL;
  }
  return g_steal_pointer (&self);
}

void
gst_imaging_zip_free (GstImagingZip *self)
{
  if (!self)
    return;
  if (self->open)
    unzCloseCurrentFile (self->unz);
  if (self->unz)
    unzClose (self->unz);
  g_hash_table_unref (self->entries);
  g_free (self->passed_over);
  g_free (self);
}

gboolean
gst_imaging_zip_find (
    const GstImagingZip *self, const gchar *name, guint64 *size)
{
  const Entry *entry = g_hash_table_lookup (self->entries, name);

  if (entry)
    *size = entry->size;
  return entry != NULL;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

GPtrArray *
gst_imaging_zip_list (const GstImagingZip *self, const gchar *suffix)
{
  GPtrArray *names = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer name;

  g_hash_table_iter_init (&iter, self->entries);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    if (g_str_has_suffix (name, suffix))
      g_ptr_array_add (names, name);
  g_ptr_array_sort (names, compare_names);
  return names;
}

/* --- reading -------------------------------------------------------------- */

/* Returns: FALSE if the checksum of all that was read is another one */
static gboolean
close_entry (GstImagingZip *self)
{
  gboolean ok = !self->open || unzCloseCurrentFile (self->unz) == UNZ_OK;

  self->open = NULL;
  return ok;
}

static gboolean
open_entry (GstImagingZip *self, const Entry *entry)
{
  close_entry (self);
  if (unzGoToFilePos64 (self->unz, &entry->at) != UNZ_OK ||
      unzOpenCurrentFile (self->unz) != UNZ_OK)
    return FALSE;
  self->open = entry;
  self->n_read = 0;
  return TRUE;
}

static gboolean
read_on (GstImagingZip *self, guint8 *to, guint64 size)
{
  while (size > 0) {
    unsigned piece = (unsigned) MIN (size, PIECE);
    int n = unzReadCurrentFile (self->unz, to, piece);

    if (n <= 0)
      return FALSE;
    to += n;
    size -= (guint64) n;
    self->n_read += (guint64) n;
  }
  return TRUE;
}

static gboolean
pass_over (GstImagingZip *self, guint64 size)
{
  if (size > 0 && !self->passed_over)
    self->passed_over = g_malloc (PIECE);
  for (guint64 n; size > 0; size -= n) {
    n = MIN (size, PIECE);
    if (!read_on (self, self->passed_over, n))
      return FALSE;
  }
  return TRUE;
}

gboolean
gst_imaging_zip_read (GstImagingZip *self, const gchar *name, guint64 offset,
    gpointer to, guint64 size, GError **error)
{
  const Entry *entry = g_hash_table_lookup (self->entries, name);
  g_autofree gchar *shown = gst_imaging_file_name (name), *text = NULL;

  g_return_val_if_fail (entry, FALSE);

  if (entry->is_encrypted)
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "has an encrypted %s. Pack it again without a password.", shown);
  if ((self->open == entry && self->n_read <= offset) ||
      open_entry (self, entry)) {
    gboolean ok =
        pass_over (self, offset - self->n_read) && read_on (self, to, size);

    if (ok && self->n_read == entry->size)
      ok = close_entry (self);
    if (ok)
      return TRUE;
    close_entry (self);
  }
  text = g_strdup_printf ("%s cannot be unpacked", shown);
  return gst_imaging_format_fail_damaged (self->file, error, text);
}
