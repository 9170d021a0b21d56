/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tiff.h"

#include <string.h>

/* Offsets of classic TIFF have 32 bits; directories need some of them. */
#define MAX_CLASSIC (G_GUINT64_CONSTANT (4000) << 20)

typedef struct {
  GstImagingTiff tiff;
  GstImagingFormatLayout layout;
  GstImagingNdArrayType type;
  gsize page_size;
  guint64 page;
  gchar *description;
  gchar **cards;
  const gchar *colours; /* (nullable): of the cards */
} Writer;

static guint
find_photometric (const Writer *self)
{
  guint n = self->layout.channels;

  if (self->colours && n >= 4 &&
      strcmp (self->colours, GST_IMAGING_FORMAT_INKS) == 0)
    return PHOTOMETRIC_SEPARATED;
  if (self->colours && n <= 2 &&
      strcmp (self->colours, GST_IMAGING_FORMAT_WHITE) == 0)
    return PHOTOMETRIC_MINISWHITE;
  return !self->colours && (n == 3 || n == 4) ? PHOTOMETRIC_RGB
                                              : PHOTOMETRIC_MINISBLACK;
}

/* Is this card a tag in the file? */
static gboolean
is_colour_tag (const Writer *self, const gchar *card)
{
  return g_str_has_prefix (card, GST_IMAGING_FORMAT_COLOURS "=") &&
         find_photometric (self) != PHOTOMETRIC_MINISBLACK;
}

/* Cards without a tag are lines of the description. One that is a document or
 * of ImageJ takes none. */
static void
take_cards (Writer *self, gchar **cards)
{
  static const gchar key[] = "ImageDescription=";
  GString *text = g_string_new (NULL);

  self->cards = g_strdupv (cards);
  self->colours =
      gst_imaging_format_find_card (self->cards, GST_IMAGING_FORMAT_COLOURS);
  for (gchar **card = cards; card && *card; card++)
    if (g_str_has_prefix (*card, key))
      g_string_assign (text, *card + strlen (key));
  for (; cards && *cards; cards++)
    if (*text->str != '<' && !g_str_has_prefix (text->str, "ImageJ=") &&
        !gst_imaging_tiff_is_tag (*cards) && !is_colour_tag (self, *cards))
      g_string_append_printf (text, "%s%s", text->len > 0 ? "\n" : "", *cards);
  self->description = g_string_free (text, text->len == 0);
}

/* @n_pages: 0 where they are not known
 * @continues: there are pages in the file */
static Writer *
writer_new (const GstImagingFormatFile *file, const GstImagingNdArray *array,
    const GstImagingFormatLayout *layout, guint64 n_pages, gboolean continues,
    GError **error)
{
  gsize size = gst_imaging_nd_array_type_size (array->type);
  Writer *self = g_new0 (Writer, 1);
  gboolean is_big;

  self->layout = *layout;
  self->type = array->type;
  self->page_size =
      (gsize) layout->width * layout->height * layout->channels * size;
  take_cards (self, array->cards);
  is_big = n_pages == 0 || n_pages > MAX_CLASSIC / (self->page_size + 1024);
  if (!gst_imaging_tiff_open (&self->tiff, file,
          continues ? "a"
          : is_big  ? "w8"
                    : "w",
          error)) {
    gst_imaging_tiff_discard (self);
    return NULL;
  }
  return self;
}

gpointer
gst_imaging_tiff_create (const GstImagingFormatFile *file,
    const GstImagingNdArray *array, guint64 *n_pages, GError **error)
{
  GstImagingFormatLayout layout;

  if (!gst_imaging_format_get_layout (file, array, &layout, error))
    return NULL;
  *n_pages = layout.n_pages;
  return writer_new (file, array, &layout, layout.n_pages, FALSE, error);
}

/* How many there are, if they are like @frame. */
static gboolean
count_pages (const GstImagingFormatFile *file, const GstImagingNdArray *frame,
    const GstImagingFormatLayout *layout, guint64 *n_pages, GError **error)
{
  GstImagingNdArray found = {.name = NULL};
  GstImagingFormatLayout old;
  gpointer reader = gst_imaging_format_tiff.open (file, &found, n_pages, error);
  gboolean ok = reader != NULL;

  if (reader) {
    gst_imaging_format_tiff.close (reader);
    ok = gst_imaging_format_get_layout (file, &found, &old, error);
    if (ok &&
        (found.type != frame->type || old.width != layout->width ||
            old.height != layout->height || old.channels != layout->channels))
      ok = gst_imaging_format_fail_other_frames (file, &found, frame, error);
  }
  g_strfreev (found.cards);
  return ok;
}

gpointer
gst_imaging_tiff_append (const GstImagingFormatFile *file,
    const GstImagingNdArray *frame, guint64 n_expected, guint64 *n_frames,
    GError **error)
{
  GstImagingFormatLayout layout;
  guint64 n_found = 0;
  Writer *self;

  if (!gst_imaging_format_get_layout (file, frame, &layout, error))
    return NULL;
  if (layout.n_pages > 1) {
    gst_imaging_format_refuse_type (file, frame,
        "a page of TIFF is one picture of any number of channels", error);
    return NULL;
  }
  if (file->size > 0 && !count_pages (file, frame, &layout, &n_found, error))
    return NULL;
  self = writer_new (file, frame, &layout, n_expected, file->size > 0, error);
  if (self && file->size > 0 && TIFFIsByteSwapped (self->tiff.tiff)) {
    gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "cannot be appended to: it has the byte order of another machine. Load "
        "and save it here first, or choose another name.");
    gst_imaging_tiff_discard (self);
    return NULL;
  }
  if (self) {
    gst_imaging_tiff_grow (&self->tiff);
    self->page = *n_frames = n_found;
  }
  return self;
}

static guint
sample_format (GstImagingNdArrayType type)
{
  switch (type) {
  case GST_IMAGING_ND_ARRAY_TYPE_I8:
  case GST_IMAGING_ND_ARRAY_TYPE_I16:
  case GST_IMAGING_ND_ARRAY_TYPE_I32:
  case GST_IMAGING_ND_ARRAY_TYPE_I64:
    return SAMPLEFORMAT_INT;
  case GST_IMAGING_ND_ARRAY_TYPE_F16:
  case GST_IMAGING_ND_ARRAY_TYPE_F32:
  case GST_IMAGING_ND_ARRAY_TYPE_F64:
    return SAMPLEFORMAT_IEEEFP;
  case GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64:
  case GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128:
    return SAMPLEFORMAT_COMPLEXIEEEFP;
  default:
    return SAMPLEFORMAT_UINT;
  }
}

static void
describe_page (Writer *self)
{
  const GstImagingFormatLayout *l = &self->layout;
  TIFF *tiff = self->tiff.tiff;
  gboolean is_bool = self->type == GST_IMAGING_ND_ARRAY_TYPE_BOOL;
  guint photometric = find_photometric (self);
  guint n_extra = l->channels - (photometric == PHOTOMETRIC_RGB            ? 3
                                    : photometric == PHOTOMETRIC_SEPARATED ? 4
                                                                           : 1);

  TIFFSetField (tiff, TIFFTAG_IMAGEWIDTH, l->width);
  TIFFSetField (tiff, TIFFTAG_IMAGELENGTH, l->height);
  TIFFSetField (tiff, TIFFTAG_SAMPLESPERPIXEL, l->channels);
  TIFFSetField (tiff, TIFFTAG_BITSPERSAMPLE,
      is_bool ? 1 : 8 * (guint) gst_imaging_nd_array_type_size (self->type));
  TIFFSetField (tiff, TIFFTAG_SAMPLEFORMAT, sample_format (self->type));
  TIFFSetField (tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  TIFFSetField (tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField (tiff, TIFFTAG_PHOTOMETRIC, photometric);
  TIFFSetField (tiff, TIFFTAG_ROWSPERSTRIP, l->height);
  if (n_extra > 0) {
    g_autofree guint16 *extra = g_new0 (guint16, n_extra); /* unspecified */

    if (n_extra == 1)
      extra[0] = EXTRASAMPLE_UNASSALPHA;
    TIFFSetField (tiff, TIFFTAG_EXTRASAMPLES, n_extra, extra);
  }
  if (l->n_pages > 1 || self->tiff.links) {
    TIFFSetField (tiff, TIFFTAG_SUBFILETYPE, FILETYPE_PAGE);
    TIFFSetField (tiff, TIFFTAG_PAGENUMBER,
        (guint) MIN (self->page, G_MAXUINT16),
        self->tiff.links ? 0u : (guint) MIN (l->n_pages, G_MAXUINT16));
  }
  gst_imaging_tiff_set_tags (tiff, self->cards, self->page == 0);
  if (self->description && self->page == 0)
    TIFFSetField (tiff, TIFFTAG_IMAGEDESCRIPTION, self->description);
}

/* A row begins with a byte. */
static guint8 *
pack_bits (const guint8 *values, const GstImagingFormatLayout *l, gsize *size)
{
  gsize n = (gsize) l->width * l->channels, stride = (n + 7) / 8;
  guint8 *bits = g_malloc0 (*size = stride * l->height);

  for (gsize y = 0; y < l->height; y++)
    for (gsize x = 0; x < n; x++)
      if (values[y * n + x])
        bits[y * stride + x / 8] |= (guint8) (0x80 >> x % 8);
  return bits;
}

gboolean
gst_imaging_tiff_write (gpointer writer, gconstpointer values, GError **error)
{
  Writer *self = writer;
  g_autofree guint8 *bits = NULL;
  gsize size = self->page_size;
  gboolean ok;

  if (self->type == GST_IMAGING_ND_ARRAY_TYPE_BOOL) {
    bits = pack_bits (values, &self->layout, &size);
    values = bits;
  }
  describe_page (self);
  ok = TIFFWriteRawStrip (self->tiff.tiff, 0, (gpointer) values,
           (tmsize_t) size) == (tmsize_t) size &&
       TIFFWriteDirectory (self->tiff.tiff);
  self->page++;
  if (!ok)
    gst_imaging_tiff_fail (&self->tiff, error);
  if (!self->tiff.links)
    return ok;
  ok = ok && gst_imaging_tiff_complete (&self->tiff, error);
  if (!ok) {
    gst_imaging_format_cut (self->tiff.file, self->tiff.complete);
    self->tiff.writes = FALSE; /* libtiff tries once more when it closes */
  }
  return ok;
}

gboolean
gst_imaging_tiff_finish (gpointer writer, GError **error)
{
  Writer *self = writer;

  /* nothing of a page that failed */
  return (self->tiff.links && !self->tiff.writes) ||
         (TIFFFlush (self->tiff.tiff) && !self->tiff.why) ||
         gst_imaging_tiff_fail (&self->tiff, error);
}

void
gst_imaging_tiff_discard (gpointer writer)
{
  Writer *self = writer;

  gst_imaging_tiff_close (&self->tiff);
  g_free (self->description);
  g_strfreev (self->cards);
  g_free (self);
}
