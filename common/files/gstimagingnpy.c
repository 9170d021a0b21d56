/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingnpy.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "files/gstimagingfile.h"
#include "gstimagingnpyheader.h"

static gsize
data_size (const GstImagingNdArray *npy)
{
  return npy->n_values * gst_imaging_nd_array_types[npy->type].size;
}

/* From the byte order of the file to that of the machine, in place. */
static void
swap_values (const GstImagingNdArray *npy, gpointer values, gsize n_values)
{
  guint part_size = gst_imaging_nd_array_types[npy->type].size /
                    gst_imaging_nd_array_types[npy->type].n_parts;
  gsize n_parts = n_values * gst_imaging_nd_array_types[npy->type].n_parts;
  guint16 *p16 = values;
  guint32 *p32 = values;
  guint64 *p64 = values;

  if (part_size == 1 || npy->big_endian == (G_BYTE_ORDER == G_BIG_ENDIAN))
    return;
  for (gsize i = 0; part_size == 2 && i < n_parts; i++)
    p16[i] = GUINT16_SWAP_LE_BE (p16[i]);
  for (gsize i = 0; part_size == 4 && i < n_parts; i++)
    p32[i] = GUINT32_SWAP_LE_BE (p32[i]);
  for (gsize i = 0; part_size == 8 && i < n_parts; i++)
    p64[i] = GUINT64_SWAP_LE_BE (p64[i]);
}

static void
take_data (GstImagingNdArray *npy, gpointer data)
{
  npy->data = data;
  npy->bytes = g_bytes_new_take (data, data_size (npy));
}

GstImagingNdArray *
gst_imaging_npy_parse (
    const guint8 *bytes, gsize size, const gchar *name, GError **error)
{
  g_autoptr (GstImagingNdArray) npy = NULL;
  gsize preamble_size, header_size, data_offset;
  gpointer data;

  g_return_val_if_fail (bytes || size == 0, NULL);
  g_return_val_if_fail (name, NULL);

  preamble_size = gst_imaging_npy_parse_preamble (bytes,
      MIN (size, GST_IMAGING_NPY_MAX_PREAMBLE), name, &header_size, error);
  if (preamble_size == 0)
    return NULL;
  data_offset = preamble_size + header_size;
  if (data_offset > size) {
    gst_imaging_npy_fail_truncated (name, size, data_offset, error);
    return NULL;
  }
  npy = gst_imaging_npy_parse_header ((const gchar *) bytes + preamble_size,
      header_size, data_offset, size, name, error);
  if (!npy)
    return NULL;
  data = gst_imaging_nd_array_alloc_values (
      name, npy->n_values, gst_imaging_nd_array_types[npy->type].size, error);
  if (!data)
    return NULL;
  memcpy (data, bytes + data_offset, size - data_offset);
  swap_values (npy, data, npy->n_values);
  take_data (npy, data);
  return g_steal_pointer (&npy);
}

/* --- files --- */

/* Returns: bytes read, fewer than @size at the end of the file; -1 on error */
static gssize
read_at (gint fd, gpointer buffer, gsize size, guint64 offset)
{
  gsize n = 0;

  while (n < size) {
    /* Linux reads at most 2 GiB a call */
    gssize got = pread (fd, (guint8 *) buffer + n, size - n, offset + n);

    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return -1;
    if (got == 0)
      break;
    n += got;
  }
  return n;
}

static gboolean
fail_errno (GError **error, GstImagingNdArrayError code, const gchar *name,
    const gchar *what, gint number)
{
  return gst_imaging_nd_array_fail (
      error, code, "\"%s\" cannot be %s: %s.", name, what, g_strerror (number));
}

static gboolean
take_error (GError *found, GError **error)
{
  static const GstImagingNdArrayError codes[] = {
      [GST_IMAGING_FILE_ERROR_NOT_FOUND] = GST_IMAGING_ND_ARRAY_ERROR_NOT_FOUND,
      [GST_IMAGING_FILE_ERROR_OPEN] = GST_IMAGING_ND_ARRAY_ERROR_OPEN,
      [GST_IMAGING_FILE_ERROR_SIZE] = GST_IMAGING_ND_ARRAY_ERROR_SIZE,
      [GST_IMAGING_FILE_ERROR_READ] = GST_IMAGING_ND_ARRAY_ERROR_READ,
      [GST_IMAGING_FILE_ERROR_WRITE] = GST_IMAGING_ND_ARRAY_ERROR_WRITE,
  };
  g_autoptr (GError) why = found;

  return gst_imaging_nd_array_fail (
      error, codes[why->code], "%s", why->message);
}

static GstImagingNdArray *
read_header (gint fd, guint64 file_size, const gchar *name, GError **error)
{
  guint8 preamble[GST_IMAGING_NPY_MAX_PREAMBLE];
  gsize preamble_size, header_size, data_offset;
  g_autofree gchar *header = NULL;
  gssize n = read_at (fd, preamble, sizeof (preamble), 0);

  if (n < 0) {
    fail_errno (error, GST_IMAGING_ND_ARRAY_ERROR_READ, name, "read", errno);
    return NULL;
  }
  preamble_size =
      gst_imaging_npy_parse_preamble (preamble, n, name, &header_size, error);
  if (preamble_size == 0)
    return NULL;
  data_offset = preamble_size + header_size;
  header = g_malloc (header_size + 1);
  n = read_at (fd, header, header_size, preamble_size);
  if (n < 0) {
    fail_errno (error, GST_IMAGING_ND_ARRAY_ERROR_READ, name, "read", errno);
    return NULL;
  }
  if ((gsize) n < header_size || file_size < data_offset) {
    gst_imaging_npy_fail_truncated (
        name, preamble_size + n, data_offset, error);
    return NULL;
  }
  return gst_imaging_npy_parse_header (
      header, header_size, data_offset, file_size, name, error);
}

static GstImagingNdArray *
open_header (const gchar *location, guint64 max_size, gint *fd, GError **error)
{
  g_autofree gchar *name = gst_imaging_file_name (location);
  GError *why = NULL;
  GstImagingNdArray *npy;
  guint64 size;
  gint file = gst_imaging_file_open (location, max_size, &size, &why);

  if (file < 0) {
    take_error (why, error);
    return NULL;
  }
  npy = read_header (file, size, name, error);
  if (npy && fd)
    *fd = file;
  else
    close (file);
  return npy;
}

GstImagingNdArray *
gst_imaging_npy_open_header (const gchar *location, gint *fd, GError **error)
{
  g_return_val_if_fail (location, NULL);

  return open_header (location, GST_IMAGING_FILE_MAX_STREAM, fd, error);
}

gboolean
gst_imaging_npy_read_values (const GstImagingNdArray *npy, gint fd,
    guint64 first, gsize n, gpointer values, GError **error)
{
  gsize value_size;
  gssize got;

  g_return_val_if_fail (npy, FALSE);
  g_return_val_if_fail (values || n == 0, FALSE);
  g_return_val_if_fail (
      first <= npy->n_values && n <= npy->n_values - first, FALSE);

  value_size = gst_imaging_nd_array_types[npy->type].size;
  got = read_at (
      fd, values, n * value_size, npy->data_offset + first * value_size);
  if (got < 0)
    return fail_errno (
        error, GST_IMAGING_ND_ARRAY_ERROR_READ, npy->name, "read", errno);
  if ((gsize) got < n * value_size)
    return gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
        "\"%s\" was truncated while it was read: it has %" G_GUINT64_FORMAT
        " bytes after the header, expected are %" G_GUINT64_FORMAT ".",
        npy->name, first * value_size + got, (guint64) data_size (npy));
  swap_values (npy, values, n);
  return TRUE;
}

GstImagingNdArray *
gst_imaging_npy_load (const gchar *location, GError **error)
{
  g_autoptr (GstImagingNdArray) npy = NULL;
  gpointer data;
  gint fd;

  g_return_val_if_fail (location, NULL);

  npy = open_header (location, GST_IMAGING_FILE_MAX_ARRAY, &fd, error);
  if (!npy)
    return NULL;
  data = gst_imaging_nd_array_alloc_values (npy->name, npy->n_values,
      gst_imaging_nd_array_types[npy->type].size, error);
  if (data &&
      gst_imaging_npy_read_values (npy, fd, 0, npy->n_values, data, error))
    take_data (npy, data);
  else
    g_free (data);
  close (fd);
  return npy->data ? g_steal_pointer (&npy) : NULL;
}

gboolean
gst_imaging_npy_save (const gchar *location, GstImagingNdArrayType type,
    guint n_dims, const guint64 *dims, gconstpointer data, GError **error)
{
  g_autofree gchar *name = NULL;
  g_autoptr (GstImagingSaver) saver = NULL;
  GString *header;
  GError *why = NULL;
  guint64 n_values = 0;
  gboolean ok;

  g_return_val_if_fail (location, FALSE);
  g_return_val_if_fail (dims || n_dims == 0, FALSE);

  name = gst_imaging_file_name (location);
  if ((guint) type >= GST_IMAGING_ND_ARRAY_N_TYPES)
    return gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_TYPE,
        "\"%s\" cannot be written: %d is no type, expected is 0 to %u.", name,
        (gint) type, (guint) GST_IMAGING_ND_ARRAY_N_TYPES - 1);
  if (n_dims > GST_IMAGING_ND_ARRAY_MAX_DIMS)
    return gst_imaging_nd_array_fail (error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "\"%s\" cannot be written with %u dimensions, expected are at most %d.",
        name, n_dims, GST_IMAGING_ND_ARRAY_MAX_DIMS);
  if (!gst_imaging_nd_array_count_values (
          name, type, n_dims, dims, &n_values, error))
    return FALSE;
  g_return_val_if_fail (data || n_values == 0, FALSE);

  saver = gst_imaging_saver_new (location, &why);
  header = gst_imaging_npy_format_header (type, n_dims, dims);
  ok = saver &&
       gst_imaging_saver_write (saver, header->str, header->len, &why) &&
       gst_imaging_saver_write (saver, data,
           n_values * gst_imaging_nd_array_types[type].size, &why) &&
       gst_imaging_saver_finish (saver, &why);
  g_string_free (header, TRUE);
  return ok || take_error (why, error);
}
