/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Thorlabs .oct: a ZIP with Header.xml and files of samples, little-endian, the
 * samples of a line one after the other. A data/SpectralN.data has B-scan N, or
 * several; lines of the reference arm alone (apodization) come before those of
 * the sample, in the same file or in one of their own. */
#include "gstimagingformat.h"

#include <string.h>

#include "files/gstimagingfile.h"
#include "thorlabsheader.h"
#include "zip.h"

#define HEADER "Header.xml"
#define MAX_HEADER (16 << 20)
#define NONE GST_IMAGING_THORLABS_NONE

/* Lines of one B-scan */
typedef struct {
  const gchar *name; /* of the file in the ZIP */
  guint64 offset;    /* bytes */
} Piece;

/* Pieces of one size that are one array */
typedef struct {
  gchar *name; /* for the user */
  GstImagingNdArrayType type;
  guint64 n_bscans, n_lines, n_samples; /* of the array */
  GArray *pieces; /* of Piece: the pages, a B-scan or all of the array */
} Part;

typedef struct {
  const GstImagingFormatFile *file;
  GstImagingZip *zip;
  GstImagingThorlabsHeader *header;
  GPtrArray *parts;
  const Part *part; /* that is read */
} Reader;

static void
part_free (gpointer data)
{
  Part *part = data;

  g_array_unref (part->pieces);
  g_free (part->name);
  g_free (part);
}

static void
thorlabs_close (gpointer reader)
{
  Reader *self = reader;

  g_clear_pointer (&self->parts, g_ptr_array_unref);
  gst_imaging_thorlabs_header_free (self->header);
  gst_imaging_zip_free (self->zip);
  g_free (self);
}

static gboolean
fail (Reader *self, const GstImagingThorlabsFile *f, const gchar *what,
    GError **error)
{
  g_autofree gchar *name = gst_imaging_file_quote (f->name, -1);

  return gst_imaging_format_fail (self->file, error,
      GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
      "has a " HEADER " that does not fit %s: %s. Copy the file again.", name,
      what);
}

/* --- the header ----------------------------------------------------------- */

static gboolean
load_header (Reader *self, GError **error)
{
  g_autofree gchar *text = NULL;
  guint64 size;

  if (!gst_imaging_zip_find (self->zip, HEADER, &size))
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "is a ZIP without " HEADER
        ", so no .oct of Thorlabs. Unpack it, and take the file in it.");
  if (size > MAX_HEADER)
    return gst_imaging_format_fail_damaged (
        self->file, error, HEADER " has more than 16 MiB");
  text = g_malloc0 (size + 1);
  if (!gst_imaging_zip_read (self->zip, HEADER, 0, text, size, error))
    return FALSE;
  self->header =
      gst_imaging_thorlabs_header_new (self->file, text, size, error);
  return self->header != NULL;
}

static gboolean
find_type (Reader *self, const GstImagingThorlabsFile *f,
    GstImagingNdArrayType *type, GError **error)
{
  guint64 bytes = f->numbers[THORLABS_BYTES];
  gboolean is_signed = self->header->is_signed;

  if (bytes == NONE)
    bytes = f->is_raw ? self->header->bytes : 4;
  if (f->is_real && bytes == 4)
    *type = GST_IMAGING_ND_ARRAY_TYPE_F32;
  else if (f->is_raw && bytes == 1)
    *type =
        is_signed ? GST_IMAGING_ND_ARRAY_TYPE_I8 : GST_IMAGING_ND_ARRAY_TYPE_U8;
  else if (f->is_raw && bytes == 2)
    *type = is_signed ? GST_IMAGING_ND_ARRAY_TYPE_I16
                      : GST_IMAGING_ND_ARRAY_TYPE_U16;
  else if (f->is_raw && bytes == 4)
    *type = is_signed ? GST_IMAGING_ND_ARRAY_TYPE_I32
                      : GST_IMAGING_ND_ARRAY_TYPE_U32;
  else
    return fail (self, f, "samples of this many bytes are not known", error);
  return TRUE;
}

/* --- parts ---------------------------------------------------------------- */

static Part *
find_part (Reader *self, const gchar *name)
{
  for (guint i = 0; i < self->parts->len; i++)
    if (strcmp (((Part *) self->parts->pdata[i])->name, name) == 0)
      return self->parts->pdata[i];
  return NULL;
}

static Part *
add_part (Reader *self, const gchar *name, GstImagingNdArrayType type,
    guint64 n_lines, guint64 n_samples)
{
  Part *part = g_new0 (Part, 1);

  part->name = g_strdup (name);
  part->type = type;
  part->n_bscans = 1;
  part->n_lines = n_lines;
  part->n_samples = n_samples;
  part->pieces = g_array_new (FALSE, FALSE, sizeof (Piece));
  g_ptr_array_add (self->parts, part);
  return part;
}

static void
add_piece (Part *part, const gchar *name, guint64 offset)
{
  Piece piece = {name, offset};

  g_array_append_val (part->pieces, piece);
}

/* Lines @first to @last of each B-scan of a file go to the part of their kind.
 */
static gboolean
add_lines (Reader *self, const GstImagingThorlabsFile *f, const gchar *kind,
    guint64 first, guint64 last, const Part *file, GError **error)
{
  g_autofree gchar *name =
      f->camera > 0 ? g_strdup_printf ("%s of camera %u", kind, f->camera)
                    : g_strdup (kind);
  guint64 line = file->n_samples * gst_imaging_nd_array_type_size (file->type);
  Part *part = find_part (self, name);

  if (first == last)
    return TRUE;
  if (first > last || last > file->n_lines)
    return fail (self, f, "lines are told of that it does not have", error);
  if (!part)
    part = add_part (self, name, file->type, last - first, file->n_samples);
  if (part->type != file->type || part->n_lines != last - first ||
      part->n_samples != file->n_samples)
    return fail (self, f, "its B-scans differ from those before it", error);
  for (guint64 i = 0; i < file->n_bscans; i++)
    add_piece (part, f->name, (i * file->n_lines + first) * line);
  part->n_bscans = part->pieces->len;
  return TRUE;
}

/* What is not told follows from the size of the file. Returns: FALSE with
 * @error set; else the shape of @file is that of all of @f */
static gboolean
find_shape (
    Reader *self, const GstImagingThorlabsFile *f, Part *file, GError **error)
{
  guint64 size, line, n_lines, told = f->numbers[THORLABS_SIZE_X];

  if (!gst_imaging_zip_find (self->zip, f->name, &size))
    return fail (self, f, "it is missing in the ZIP", error);
  if (!find_type (self, f, &file->type, error))
    return FALSE;
  file->n_samples = f->numbers[THORLABS_SIZE_Z];
  line = file->n_samples * gst_imaging_nd_array_type_size (file->type);
  if (file->n_samples == NONE || file->n_samples == 0)
    return fail (self, f, "the samples of a line (SizeZ) are not told", error);
  n_lines = size / line;
  file->n_lines = told == NONE || told == 0 ? n_lines : told;
  if (n_lines == 0 || size % line != 0 || n_lines % file->n_lines != 0) {
    g_autofree gchar *what = g_strdup_printf (
        "it has %" G_GUINT64_FORMAT " bytes for %" G_GUINT64_FORMAT
        " lines of %" G_GUINT64_FORMAT " samples",
        size, file->n_lines, file->n_samples);

    return fail (self, f, what, error);
  }
  file->n_bscans = n_lines / file->n_lines;
  return TRUE;
}

/* A file with B-scans */
static gboolean
add_spectra (Reader *self, const GstImagingThorlabsFile *f, GError **error)
{
  const guint64 *n = f->numbers;
  Part file = {0};
  guint64 scan, end;

  if (!find_shape (self, f, &file, error))
    return FALSE;
  scan = n[THORLABS_SCAN_START] != NONE ? n[THORLABS_SCAN_START]
         : n[THORLABS_APO_END] != NONE  ? n[THORLABS_APO_END]
                                        : 0;
  end = n[THORLABS_SCAN_END] != NONE ? n[THORLABS_SCAN_END] : file.n_lines;
  return add_lines (self, f, "spectra", scan, end, &file, error) &&
         (n[THORLABS_APO_END] == NONE ||
             add_lines (self, f, "apodization",
                 n[THORLABS_APO_START] != NONE ? n[THORLABS_APO_START] : 0,
                 n[THORLABS_APO_END], &file, error));
}

/* Any other file: a curve, or images that Thorlabs' program has made */
static gboolean
add_other (Reader *self, const GstImagingThorlabsFile *f, GError **error)
{
  g_autofree gchar *name = g_path_get_basename (f->name);
  gchar *dot = strrchr (name, '.');
  Part file = {0}, *part;

  if (!find_shape (self, f, &file, error))
    return FALSE;
  if (dot)
    *dot = '\0';
  part = add_part (self, name, file.type, file.n_lines, file.n_samples);
  part->n_bscans = file.n_bscans;
  add_piece (part, f->name, 0);
  return TRUE;
}

static gint
compare_places (gconstpointer a, gconstpointer b)
{
  const GstImagingThorlabsFile *x = a, *y = b;

  if (x->camera != y->camera)
    return (x->camera > y->camera) - (x->camera < y->camera);
  return (x->at > y->at) - (x->at < y->at);
}

static gboolean
find_parts (Reader *self, GError **error)
{
  GArray *files = self->header->files;

  self->parts = g_ptr_array_new_with_free_func (part_free);
  g_array_sort (files, compare_places); /* stable; others come last */
  for (guint i = 0; i < files->len; i++) {
    const GstImagingThorlabsFile *f =
        &g_array_index (files, GstImagingThorlabsFile, i);

    if (i > 0 && f->at != NONE && compare_places (f - 1, f) == 0)
      return fail (self, f, "it is listed twice", error);
    if (f->at == NONE)
      add_other (self, f, NULL); /* the spectra are read without it */
    else if (!add_spectra (self, f, error))
      return FALSE;
  }
  return TRUE;
}

/* --- the format ----------------------------------------------------------- */

static void
set_dims (const Part *part, GstImagingNdArray *array)
{
  array->type = part->type;
  gst_imaging_format_set_dims (
      array, part->n_bscans, part->n_lines, part->n_samples, 1);
  if (part->n_bscans == 1 && part->n_lines == 1) { /* a curve */
    g_strlcpy (array->axes, "x", sizeof (array->axes));
    array->dims[0] = part->n_samples;
    array->n_dims = 1;
  }
}

static void
tell_parts (Reader *self)
{
  for (guint i = 0; self->file->parts && i < self->parts->len; i++) {
    const Part *part = self->parts->pdata[i];
    GstImagingNdArray array = {0};
    g_autofree gchar *shape = NULL;

    set_dims (part, &array);
    shape = gst_imaging_nd_array_describe (&array);
    g_ptr_array_add (
        self->file->parts, g_strdup_printf ("%s %s", part->name, shape));
  }
}

static gboolean
choose_part (Reader *self, GError **error)
{
  guint wanted = self->file->part;

  if (wanted > self->parts->len)
    return gst_imaging_format_fail_part (self->file, self->parts->len, error);
  self->part =
      wanted > 0 ? self->parts->pdata[wanted - 1] : find_part (self, "spectra");
  if (wanted == 0 && !self->part)
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "holds no spectra (data/SpectralN.data). Record with raw spectra, or "
        "set part to read another file in it: it has %u.",
        self->parts->len);
  if (wanted == 0 && self->header->has_several_regions)
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "has B-scans of several regions of lines (ScanRegionStart1). Record "
        "one region.");
  return TRUE;
}

static gpointer
thorlabs_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  Reader *self = g_new0 (Reader, 1);

  self->file = file;
  self->zip = gst_imaging_zip_new (file, error);
  if (!self->zip || !load_header (self, error) || !find_parts (self, error) ||
      !choose_part (self, error)) {
    thorlabs_close (self);
    return NULL;
  }
  if (file->part == 0)
    tell_parts (self);
  set_dims (self->part, array);
  gst_imaging_format_take_cards (array, g_steal_pointer (&self->header->cards));
  *n_pages = self->part->pieces->len;
  return self;
}

/* Of another byte order */
static void
swap (GstImagingNdArrayType type, gpointer values, gsize n)
{
#if G_BYTE_ORDER == G_BIG_ENDIAN
  gsize size = gst_imaging_nd_array_type_size (type);

  for (gsize i = 0; i < n; i++)
    if (size == 2)
      ((guint16 *) values)[i] = GUINT16_FROM_LE (((guint16 *) values)[i]);
    else if (size == 4)
      ((guint32 *) values)[i] = GUINT32_FROM_LE (((guint32 *) values)[i]);
#endif
}

static gboolean
thorlabs_read (gpointer reader, guint64 page, gpointer values, GError **error)
{
  Reader *self = reader;
  const Part *part = self->part;
  const Piece *piece = &g_array_index (part->pieces, Piece, page);
  gsize n =
      part->n_bscans / part->pieces->len * part->n_lines * part->n_samples;

  if (!gst_imaging_zip_read (self->zip, piece->name, piece->offset, values,
          n * gst_imaging_nd_array_type_size (part->type), error))
    return FALSE;
  swap (part->type, values, n);
  return TRUE;
}

const GstImagingFormatTable gst_imaging_format_thorlabs = {
    .name = "Thorlabs OCT",
    .open = thorlabs_open,
    .read = thorlabs_read,
    .close = thorlabs_close,
    .has_parts = TRUE,
};
