/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingformat.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "files/gstimagingfile.h"

/* No compression of these formats makes less of a byte. Small files are blank
 * pictures, or damaged. */
#define MAX_EXPANSION 4096
#define MAX_BLANK (G_GUINT64_CONSTANT (256) << 20)

gboolean
gst_imaging_format_fail (const GstImagingFormatFile *file, GError **error,
    GstImagingNdArrayError code, const gchar *format, ...)
{
  g_autofree gchar *what = NULL;
  va_list args;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (
      error, GST_IMAGING_ND_ARRAY_ERROR, code, "\"%s\" %s", file->name, what);
  return FALSE;
}

gboolean
gst_imaging_format_fail_part (
    const GstImagingFormatFile *file, guint64 n_parts, GError **error)
{
  if (n_parts == 1)
    return gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "has no part %u: it has one part, whose number is 0. Leave part out.",
        file->part - 1);
  return gst_imaging_format_fail (file, error,
      GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
      "has no part %u: it has the parts 0 to %" G_GUINT64_FORMAT
      ". Set part to one of these numbers.",
      file->part - 1, n_parts - 1);
}

gboolean
gst_imaging_format_fail_damaged (
    const GstImagingFormatFile *file, GError **error, const gchar *text)
{
  g_autofree gchar *shown = gst_imaging_file_quote (text, -1);
  gsize n = strlen (shown);

  while (n > 0 && (shown[n - 1] == '.' || shown[n - 1] == ' '))
    shown[--n] = '\0';
  return gst_imaging_format_fail (file, error,
      GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
      "is damaged or truncated: %s. Copy it again, or write it again.",
      n > 0 ? shown : "its samples cannot be decoded");
}

gssize
gst_imaging_format_read_at (
    const GstImagingFormatFile *file, gpointer to, gsize size, guint64 offset)
{
  gsize n = 0;

  while (n < size) {
    gssize got = pread (file->fd, (guint8 *) to + n, size - n, offset + n);

    if (got < 0 && errno != EINTR)
      return -1;
    if (got == 0)
      break;
    n += MAX (got, 0);
  }
  return n;
}

gboolean
gst_imaging_format_write_at (const GstImagingFormatFile *file,
    gconstpointer from, gsize size, guint64 offset, GError **error)
{
  for (gsize n = 0; n < size;) {
    gssize put =
        pwrite (file->fd, (const guint8 *) from + n, size - n, offset + n);

    if (put < 0 && errno != EINTR)
      return gst_imaging_format_fail (file, error,
          GST_IMAGING_ND_ARRAY_ERROR_WRITE, "cannot be written: %s.",
          g_strerror (errno));
    n += MAX (put, 0);
  }
  return TRUE;
}

void
gst_imaging_format_cut (const GstImagingFormatFile *file, guint64 size)
{
  /* what remains behind the last frame is not read */
  G_GNUC_UNUSED gint ignored = ftruncate (file->fd, (off_t) size);
}

gboolean
gst_imaging_format_fail_other_frames (const GstImagingFormatFile *file,
    const GstImagingNdArray *found, const GstImagingNdArray *frame,
    GError **error)
{
  g_autofree gchar *old = gst_imaging_nd_array_describe (found);
  g_autofree gchar *new = gst_imaging_nd_array_describe (frame);

  return gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_TYPE,
      "holds %s, to which frames of %s cannot be appended. Choose another name "
      "or append=false, which replaces it.",
      old, new);
}

gboolean
gst_imaging_format_has_frames (
    const GstImagingNdArray *found, const GstImagingNdArray *frame)
{
  return found->type == frame->type && found->n_dims == frame->n_dims + 1 &&
         memcmp (found->dims + 1, frame->dims,
             frame->n_dims * sizeof (frame->dims[0])) == 0;
}

guint8 *
gst_imaging_format_load (const GstImagingFormatFile *file, GError **error)
{
  g_autofree guint8 *bytes = g_try_malloc (file->size + 1);
  gssize n;

  if (!bytes) {
    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_MEMORY,
        "does not fit in memory: it has %" G_GUINT64_FORMAT " bytes.",
        file->size);
    return NULL;
  }
  n = gst_imaging_format_read_at (file, bytes, file->size, 0);
  if (n < 0) {
    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_READ,
        "cannot be read: %s.", g_strerror (errno));
    return NULL;
  }
  if ((guint64) n < file->size) {
    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
        "was truncated while it was read.");
    return NULL;
  }
  return g_steal_pointer (&bytes);
}

gboolean
gst_imaging_format_check_size (
    const GstImagingFormatFile *file, guint64 size, GError **error)
{
  if (size <= MAX_BLANK || (size - MAX_BLANK) / MAX_EXPANSION <= file->size)
    return TRUE;
  return gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
      "is damaged: it claims %" G_GUINT64_FORMAT
      " bytes of samples and has %" G_GUINT64_FORMAT " bytes.",
      size, file->size);
}

void
gst_imaging_format_add_card (
    GPtrArray *cards, const gchar *key, const gchar *value)
{
  g_autofree gchar *text = g_strdup_printf ("%s=%s", key, value);

  g_ptr_array_add (cards, g_utf8_make_valid (text, -1));
}

void
gst_imaging_format_take_cards (GstImagingNdArray *array, GPtrArray *cards)
{
  g_ptr_array_add (cards, NULL);
  g_strfreev (array->cards);
  array->cards = (gchar **) g_ptr_array_free (cards, FALSE);
}

void
gst_imaging_format_set_dims (GstImagingNdArray *array, guint64 n_pages,
    guint64 height, guint64 width, guint channels)
{
  guint n = 0;

  if (n_pages > 1) {
    array->axes[n] = 'n';
    array->dims[n++] = n_pages;
  }
  array->axes[n] = 'y';
  array->dims[n++] = height;
  array->axes[n] = 'x';
  array->dims[n++] = width;
  if (channels > 1) {
    array->axes[n] = 'c';
    array->dims[n++] = channels;
  }
  array->axes[n] = '\0';
  array->n_dims = n;
}

gboolean
gst_imaging_format_get_layout (const GstImagingFormatFile *file,
    const GstImagingNdArray *array, GstImagingFormatLayout *layout,
    GError **error)
{
  static const gchar *const usual[] = {"", "x", "yx", "nyx", "nyxc"};
  const gchar *axes = array->axes;
  guint64 size[128] = {['n'] = 1, ['y'] = 1, ['x'] = 1, ['c'] = 1};
  g_autofree gchar *found = NULL;

  if (!*axes && array->n_dims < G_N_ELEMENTS (usual))
    axes = array->n_dims == 3 && array->dims[2] >= 2 && array->dims[2] <= 4
               ? "yxc"
               : usual[array->n_dims];
  if (strlen (axes) == array->n_dims &&
      strspn (axes, "nyxc") == array->n_dims) {
    for (guint i = 0; i < array->n_dims; i++)
      size[(guint) axes[i]] *= array->dims[i];
    if ((array->n_dims < 2 || strstr (axes, "yx")) &&
        (!strchr (axes, 'c') || g_str_has_suffix (axes, "c")) &&
        size['n'] > 0 && size['y'] > 0 && size['x'] > 0 && size['c'] > 0 &&
        size['y'] <= G_MAXINT32 && size['x'] <= G_MAXINT32 &&
        size['c'] <= G_MAXUINT16) {
      *layout = (GstImagingFormatLayout){
          size['n'], (guint) size['x'], (guint) size['y'], (guint) size['c']};
      return TRUE;
    }
  }
  found = gst_imaging_nd_array_describe (array);
  return gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_TYPE,
      "cannot be written with %s: pictures have the shape [height, width], "
      "[height, width, channels] or [pages, height, width, channels]. Use .npy "
      "or FITS.",
      found);
}

gboolean
gst_imaging_format_refuse_type (const GstImagingFormatFile *file,
    const GstImagingNdArray *array, const gchar *takes, GError **error)
{
  g_autofree gchar *found = gst_imaging_nd_array_describe (array);

  return gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_TYPE,
      "cannot be written with %s without loss: %s. Use .npy, or another type "
      "(NumPy's astype); frames of an array go into a file each if the name has "
      "a number, such as %%03d.",
      found, takes);
}

const gchar *
gst_imaging_format_find_card (gchar **cards, const gchar *key)
{
  gsize n = strlen (key);

  for (; cards && *cards; cards++)
    if (strncmp (*cards, key, n) == 0 && (*cards)[n] == '=')
      return *cards + n + 1;
  return NULL;
}

gboolean
gst_imaging_format_check_type (const GstImagingFormatTable *table,
    const GstImagingFormatFile *file, const GstImagingNdArray *array,
    GError **error)
{
  const gchar *colours =
      gst_imaging_format_find_card (array->cards, GST_IMAGING_FORMAT_COLOURS);

  if (!(table->types >> array->type & 1))
    return gst_imaging_format_refuse_type (file, array, table->takes, error);
  if (!table->shows_rgb || !colours ||
      !g_str_has_prefix (colours, GST_IMAGING_FORMAT_INKS))
    return TRUE;
  return gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_TYPE,
      "cannot be written with inks (CMYK): %s would show them as red, green, "
      "blue and opacity. Use TIFF, FITS or .npy, or convert the colours to RGB "
      "with another program.",
      table->name);
}

void
gst_imaging_format_orient (const guint8 *from, guint width, guint height,
    gsize size, guint orientation, guint8 *to)
{
  gboolean turned = orientation >= 5;
  guint to_width = turned ? height : width;

  for (guint y = 0; y < height; y++)
    for (guint x = 0; x < width; x++) {
      /* where the file's row and column are on the upright picture */
      guint right = orientation == 2 || orientation == 3 ? width - 1 - x : x;
      guint down = orientation == 3 || orientation == 4 ? height - 1 - y : y;
      guint x_to = right, y_to = down;

      if (turned) {
        x_to = orientation == 6 || orientation == 7 ? height - 1 - y : y;
        y_to = orientation == 7 || orientation == 8 ? width - 1 - x : x;
      }
      memcpy (to + ((gsize) y_to * to_width + x_to) * size,
          from + ((gsize) y * width + x) * size, size);
    }
}
