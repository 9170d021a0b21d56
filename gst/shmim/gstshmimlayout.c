/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshmimlayout.h"

#include <string.h>

#include "gstimagingfile.h"

/* Bytes of the parts whose structures we have no use for */
#define KEYWORD_SIZE 128
#define TRACE_SIZE 64
#define RING_RECORD_SIZE 48

/* Built for DAO (daoTools), the library puts 4112 bytes more behind the header.
 * Nothing in the header tells; the size of the file does. */
#define DAO_HEADER_SIZE (sizeof (GstShmimHeader) + 4112)

/* What is played is read at once, and GStreamer counts the bytes of a frame in
 * 32 bits. */
#define MAX_DATA_SIZE ((guint64) G_MAXUINT32)

static const struct {
  guint size;
  const gchar *name; /* of a part of a complex value */
} types[GST_SHMIM_N_TYPES] = {
    [GST_SHMIM_TYPE_U8] = {1, "uint8"},
    [GST_SHMIM_TYPE_I8] = {1, "int8"},
    [GST_SHMIM_TYPE_U16] = {2, "uint16"},
    [GST_SHMIM_TYPE_I16] = {2, "int16"},
    [GST_SHMIM_TYPE_U32] = {4, "uint32"},
    [GST_SHMIM_TYPE_I32] = {4, "int32"},
    [GST_SHMIM_TYPE_U64] = {8, "uint64"},
    [GST_SHMIM_TYPE_I64] = {8, "int64"},
    [GST_SHMIM_TYPE_F32] = {4, "float32"},
    [GST_SHMIM_TYPE_F64] = {8, "float64"},
    [GST_SHMIM_TYPE_COMPLEX64] = {8, "float32"},
    [GST_SHMIM_TYPE_COMPLEX128] = {16, "float64"},
    [GST_SHMIM_TYPE_F16] = {2, "float16"},
};

guint
gst_shmim_type_size (guint type)
{
  return type < GST_SHMIM_N_TYPES ? types[type].size : 0;
}

const gchar *
gst_shmim_type_name (guint type)
{
  return type < GST_SHMIM_N_TYPES ? types[type].name : NULL;
}

gchar *
gst_shmim_describe (const GstShmimHeader *header)
{
  gboolean is_complex = header->type == GST_SHMIM_TYPE_COMPLEX64 ||
                        header->type == GST_SHMIM_TYPE_COMPLEX128;
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < header->n_axes; i++)
    g_string_append_printf (text, "%s%u", i ? " x " : "", header->size[i]);
  g_string_append_printf (text, " values of %s%s", is_complex ? "complex " : "",
      gst_shmim_type_name (header->type));
  return g_string_free (text, FALSE);
}

gboolean
gst_shmim_is_ring (const GstShmimHeader *header)
{
  return (header->kind & GST_SHMIM_KIND_MASK) == GST_SHMIM_KIND_RING;
}

guint64
gst_shmim_frame_size (const GstShmimHeader *header)
{
  return gst_shmim_is_ring (header) ? header->data_size / header->size[2]
                                    : header->data_size;
}

/* Every part begins at a multiple of 8. */
static guint64
take (guint64 *end, guint64 n, guint64 size)
{
  guint64 place = *end;

  *end += (n * size + 7) / 8 * 8;
  return place;
}

GstShmimLayout
gst_shmim_layout (const GstShmimHeader *header, guint64 header_size)
{
  const guint64 n = header->n_semaphores;
  GstShmimLayout l = {.end = 0};

  take (&l.end, 1, header_size);
  l.data = take (&l.end, 1, header->data_size);
  take (&l.end, header->n_keywords, KEYWORD_SIZE);
  l.semaphores = take (&l.end, n + 1, GST_SHMIM_SEMAPHORE_SIZE);
  l.readers = take (&l.end, n, sizeof (gint32));
  l.writers = take (&l.end, n, sizeof (gint32));
  take (&l.end, n, sizeof (guint32)); /* control, */
  take (&l.end, n, sizeof (guint32)); /* status: not used by anybody so far */
  take (&l.end, header->n_traces, TRACE_SIZE);
  if (gst_shmim_is_ring (header)) { /* times and counts of its frames */
    take (&l.end, header->size[2], sizeof (GstShmimTime));
    take (&l.end, header->size[2], sizeof (GstShmimTime));
    take (&l.end, header->size[2], sizeof (guint64));
  }
  take (&l.end, header->ring_size, RING_RECORD_SIZE);
  l.ring = take (&l.end, header->ring_size, header->data_size);
  return l;
}

/* @n: (out): product of the axes; 0 when it is too large for a stream */
static gboolean
count_values (const GstShmimHeader *header, guint64 *n)
{
  guint64 product = 1;

  if (header->n_axes < 1 || header->n_axes > 3)
    return FALSE;
  for (guint i = 0; i < header->n_axes; i++) {
    if (header->size[i] == 0 || product > MAX_DATA_SIZE / header->size[i])
      return FALSE;
    product *= header->size[i];
  }
  *n = product;
  return product <= MAX_DATA_SIZE / gst_shmim_type_size (header->type);
}

static gboolean
fail (GError **error, const gchar *name, const gchar *what)
{
  g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
      "Stream \"%s\" %s", name, what);
  return FALSE;
}

static gboolean
check_version (const GstShmimHeader *header, const gchar *name, GError **error)
{
  gsize size = strnlen (header->version, sizeof (header->version));
  g_autofree gchar *version = NULL;

  if (strncmp (header->version, GST_SHMIM_VERSION, sizeof (header->version)) ==
      0)
    return TRUE;
  if (size == 0)
    return fail (error, name,
        "has no version: its writer has not finished making it, or it is no "
        "stream of ImageStreamIO.");
  version = gst_imaging_file_quote (header->version, (gssize) size);
  g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
      "Stream \"%s\" has version \"%s\" of ImageStreamIO; version %s is read. "
      "Make it with an ImageStreamIO of that version.",
      name, version, GST_SHMIM_VERSION);
  return FALSE;
}

gboolean
gst_shmim_check (const GstShmimHeader *header, guint64 file_size,
    const gchar *name, GstShmimLayout *layout, GError **error)
{
  guint64 n = 0;

  if (!check_version (header, name, error))
    return FALSE;
  if (header->location >= 0)
    return fail (error, name,
        "lies in the memory of a GPU, which is not read. Copy it to one in "
        "shared memory.");
  if (gst_shmim_type_size (header->type) == 0) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        "Stream \"%s\" has values of the type %u of ImageStreamIO; types 1 to "
        "%u are read.",
        name, header->type, GST_SHMIM_N_TYPES - 1);
    return FALSE;
  }
  if (!count_values (header, &n) || n != header->n_values ||
      header->data_size != n * gst_shmim_type_size (header->type) ||
      (gst_shmim_is_ring (header) && header->n_axes != 3) ||
      header->ring_size > G_MAXINT64 / 2 / header->data_size)
    return fail (error, name,
        "has a header that contradicts itself: 1 to 3 axes of 1 and more, "
        "their product and the bytes of the values must agree, and be below "
        "4 GiB. Make it again.");
  if (header->n_semaphores == 0)
    return fail (error, name,
        "has no semaphores, so nothing tells of new frames. Make it with 1 or "
        "more.");
  *layout = gst_shmim_layout (header, sizeof (GstShmimHeader));
  if (layout->end != file_size) {
    const guint64 expected = layout->end;

    *layout = gst_shmim_layout (header, DAO_HEADER_SIZE);
    if (layout->end != file_size) {
      g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
          "Stream \"%s\" has %" G_GUINT64_FORMAT
          " bytes, and by its header %" G_GUINT64_FORMAT
          ": it was cut, or is not complete. Make it again.",
          name, file_size, expected);
      return FALSE;
    }
  }
  return TRUE;
}
