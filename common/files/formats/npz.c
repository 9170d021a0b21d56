/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* .npz of numpy: a ZIP with an .npy for each array. */
#include "zip.h"

#include <string.h>

#include "files/gstimagingfile.h"
#include "files/gstimagingnpy.h"

enum { MAX_SHOWN = 10 };

typedef struct {
  GstImagingNdArray *npy;
  gsize page_size;
} Reader;

static void
npz_close (gpointer reader)
{
  Reader *self = reader;

  gst_imaging_nd_array_free (self->npy);
  g_free (self);
}

/* Returns: (transfer full): "0: a, 1: b" */
static gchar *
list_names (const GPtrArray *names)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < MIN (names->len, MAX_SHOWN); i++) {
    g_autofree gchar *shown = gst_imaging_file_escape (names->pdata[i]);

    if (g_str_has_suffix (shown, ".npy"))
      shown[strlen (shown) - strlen (".npy")] = '\0';
    g_string_append_printf (text, "%s%u: %s", i > 0 ? ", " : "", i, shown);
  }
  if (names->len > MAX_SHOWN)
    g_string_append (text, ", ...");
  return g_string_free (text, FALSE);
}

/* Returns: (nullable): the name of the array to read */
static const gchar *
choose (
    const GstImagingFormatFile *file, const GPtrArray *names, GError **error)
{
  g_autofree gchar *all = NULL;

  if (file->part > names->len && names->len > 0) {
    gst_imaging_format_fail_part (file, names->len, error);
    return NULL;
  }
  if (file->part > 0 && names->len > 0)
    return names->pdata[file->part - 1];
  if (names->len == 1)
    return names->pdata[0];
  all = list_names (names);
  if (names->len == 0)
    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "is a ZIP without an array (.npy). Save it with numpy.savez().");
  else
    gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "has %u arrays (%s). Make a file of one of them with `gst-imaging "
        "convert FILE ONE.npy --part=NUMBER`.",
        names->len, all);
  return NULL;
}

static GstImagingNdArray *
load (GstImagingZip *zip, const GstImagingFormatFile *file, const gchar *name,
    GError **error)
{
  g_autofree gchar *shown = gst_imaging_file_escape (name);
  g_autofree gchar *called = g_strdup_printf ("%s: %s", file->name, shown);
  g_autofree guint8 *bytes = NULL;
  guint64 size = 0;

  gst_imaging_zip_find (zip, name, &size);
  bytes = size <= GST_IMAGING_FILE_MAX_ARRAY
              ? g_try_malloc (MAX ((gsize) size, 1))
              : NULL;
  if (!bytes) {
    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_SIZE,
        "has the array %s of %" G_GUINT64_FORMAT
        " bytes, for which there is no memory. Save it as .npy.",
        shown, size);
    return NULL;
  }
  return gst_imaging_zip_read (zip, name, 0, bytes, size, error)
             ? gst_imaging_npy_parse (bytes, (gsize) size, called, error)
             : NULL;
}

static gpointer
npz_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  g_autoptr (GstImagingZip) zip = gst_imaging_zip_new (file, error);
  g_autoptr (GPtrArray) names = zip ? gst_imaging_zip_list (zip, ".npy") : NULL;
  const gchar *name = zip ? choose (file, names, error) : NULL;
  GstImagingNdArray *npy = name ? load (zip, file, name, error) : NULL;
  Reader *self;

  if (!npy)
    return NULL;
  self = g_new0 (Reader, 1);
  self->npy = npy;
  array->type = npy->type;
  array->n_dims = npy->n_dims;
  memcpy (array->dims, npy->dims, sizeof (array->dims));
  *n_pages = npy->n_dims > 2 ? npy->dims[0] : 1;
  self->page_size = (gsize) (npy->n_values / MAX (*n_pages, 1)) *
                    gst_imaging_nd_array_type_size (npy->type);
  return self;
}

static gboolean
npz_read (gpointer reader, guint64 page, gpointer values, GError **error)
{
  Reader *self = reader;

  if (self->page_size > 0)
    memcpy (values, (const guint8 *) self->npy->data + page * self->page_size,
        self->page_size);
  return TRUE;
}

const GstImagingFormatTable gst_imaging_format_npz = {
    .name = "npz",
    .open = npz_open,
    .read = npz_read,
    .close = npz_close,
    .has_parts = TRUE,
};
