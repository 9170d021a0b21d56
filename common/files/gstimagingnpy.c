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

/* Copies values of Fortran order, in which the first dimension is the fastest,
 * into C order. Tiles of the first and the last dimension keep both in the
 * cache. */
static void
transpose (const GstImagingNdArray *npy, const guint8 *from, guint8 *to)
{
  enum { TILE = 32 };
  gsize size = gst_imaging_nd_array_types[npy->type].size;
  guint last = npy->n_dims - 1;
  gsize n_first = npy->dims[0], n_last = npy->dims[last];
  gsize from_last = npy->n_values / n_last, to_first = npy->n_values / n_first;
  gsize n_middle = to_first / n_last;
  gsize strides[GST_IMAGING_ND_ARRAY_MAX_DIMS] = {1};

  for (guint d = 1; d < last; d++)
    strides[d] = strides[d - 1] * npy->dims[d - 1];
  for (gsize m = 0; m < n_middle; m++) {
    gsize from_offset = 0, rest = m;

    /* m counts the middle dimensions in C order */
    for (guint d = last - 1; d > 0; d--) {
      from_offset += rest % npy->dims[d] * strides[d];
      rest /= npy->dims[d];
    }
    for (gsize a0 = 0; a0 < n_first; a0 += TILE)
      for (gsize z0 = 0; z0 < n_last; z0 += TILE)
        for (gsize a = a0; a < MIN (a0 + TILE, n_first); a++)
          for (gsize z = z0; z < MIN (z0 + TILE, n_last); z++)
            memcpy (to + (a * to_first + m * n_last + z) * size,
                from + (z * from_last + from_offset + a) * size, size);
  }
}

/* Gives @npy the values, which it takes. */
static gboolean
take_data (GstImagingNdArray *npy, gpointer data, GError **error)
{
  gpointer turned = NULL;

  if (npy->fortran_order && npy->n_values > 0) {
    turned = gst_imaging_nd_array_alloc_values (npy->name, npy->n_values,
        gst_imaging_nd_array_types[npy->type].size, error);
    if (turned)
      transpose (npy, data, turned);
    g_free (data);
    if (!turned)
      return FALSE;
    data = turned;
  }
  gst_imaging_nd_array_take_values (npy, data);
  return TRUE;
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
  memcpy (data, bytes + data_offset, data_size (npy));
  swap_values (npy, data, npy->n_values);
  return take_data (npy, data, error) ? g_steal_pointer (&npy) : NULL;
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

GstImagingNdArray *
gst_imaging_npy_read_header (
    gint fd, guint64 file_size, const gchar *name, GError **error)
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
    gst_imaging_nd_array_take_file_error (why, error);
    return NULL;
  }
  npy = gst_imaging_npy_read_header (file, size, name, error);
  if (npy && fd)
    *fd = file;
  else
    close (file);
  return npy;
}

GstImagingNdArray *
gst_imaging_npy_open_header (const gchar *location, gint *fd, GError **error)
{
  g_autoptr (GstImagingNdArray) npy = NULL;
  gint file;

  g_return_val_if_fail (location, NULL);

  npy = open_header (location, GST_IMAGING_FILE_MAX_STREAM, &file, error);
  if (!npy)
    return NULL;
  if (fd && !npy->fortran_order) {
    *fd = file;
    return g_steal_pointer (&npy);
  }
  close (file);
  if (!npy->fortran_order)
    return g_steal_pointer (&npy);
  /* a piece of it is everywhere in the file */
  gst_imaging_nd_array_fail (error, GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
      "\"%s\" is stored in Fortran order (columns first), expected is C order "
      "where it is read piece by piece. Save it from numpy as "
      "numpy.ascontiguousarray(array).",
      npy->name);
  return NULL;
}

gboolean
gst_imaging_npy_read_all (GstImagingNdArray *npy, gint fd, GError **error)
{
  gpointer data = gst_imaging_nd_array_alloc_values (npy->name, npy->n_values,
      gst_imaging_nd_array_types[npy->type].size, error);

  if (data &&
      gst_imaging_npy_read_values (npy, fd, 0, npy->n_values, data, error))
    return take_data (npy, data, error);
  g_free (data);
  return FALSE;
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
  gboolean ok;
  gint fd;

  g_return_val_if_fail (location, NULL);

  npy = open_header (location, GST_IMAGING_FILE_MAX_ARRAY, &fd, error);
  if (!npy)
    return NULL;
  ok = gst_imaging_npy_read_all (npy, fd, error);
  close (fd);
  return ok ? g_steal_pointer (&npy) : NULL;
}

gboolean
gst_imaging_npy_save (const gchar *location, GstImagingNdArrayType type,
    guint n_dims, const guint64 *dims, gconstpointer data, GError **error)
{
  g_autofree gchar *name = NULL;
  g_autoptr (GstImagingSaver) saver = NULL;
  g_autoptr (GString) header = NULL;
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
  return ok || gst_imaging_nd_array_take_file_error (why, error);
}
