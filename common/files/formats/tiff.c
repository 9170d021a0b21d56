/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tiff.h"

#include <math.h>
#include <string.h>

#define MAX_PAGES (1 << 22)
#define MAX_CHANNELS 4096

/* What the pages of one array have in common */
typedef struct {
  guint32 width, height;
  guint16 channels, bits, format, planar, photometric, compression;
} Page;

typedef struct {
  GstImagingTiff tiff;
  Page page;
  GstImagingNdArrayType type;   /* of samples, which may be in a palette */
  gboolean is_palette, is_deep; /* whose colours have 16 bits, and not 8 */
  GArray *offsets;              /* of the pages' directories */
  guint n_directories;          /* of pages, also of those that are not read */
  guint64 n_stacked, stack; /* pages that follow the first, without directories;
                             * where it begins */
  guint n_planes; /* of a directory that are pages; 1 where channels */
  guint64 first;  /* of those behind one directory, the one read */
} Reader;

/* Returns: -1 for what is no type here */
static gint
find_type (const Page *p)
{
  switch (p->format) {
  case SAMPLEFORMAT_INT:
    return p->bits == 8    ? GST_IMAGING_ND_ARRAY_TYPE_I8
           : p->bits == 16 ? GST_IMAGING_ND_ARRAY_TYPE_I16
           : p->bits == 32 ? GST_IMAGING_ND_ARRAY_TYPE_I32
           : p->bits == 64 ? (gint) GST_IMAGING_ND_ARRAY_TYPE_I64
                           : -1;
  case SAMPLEFORMAT_IEEEFP:
    return p->bits == 16   ? GST_IMAGING_ND_ARRAY_TYPE_F16
           : p->bits == 32 ? GST_IMAGING_ND_ARRAY_TYPE_F32
           : p->bits == 64 ? (gint) GST_IMAGING_ND_ARRAY_TYPE_F64
                           : -1;
  case SAMPLEFORMAT_COMPLEXIEEEFP:
    return p->bits == 64    ? GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64
           : p->bits == 128 ? (gint) GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128
                            : -1;
  case SAMPLEFORMAT_COMPLEXINT: /* as radar has them; floats hold them all */
    return p->bits == 32   ? GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64
           : p->bits == 64 ? (gint) GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128
                           : -1;
  case SAMPLEFORMAT_UINT:
  case SAMPLEFORMAT_VOID:
    return p->bits == 1                   ? GST_IMAGING_ND_ARRAY_TYPE_BOOL
           : p->bits > 1 && p->bits <= 8  ? GST_IMAGING_ND_ARRAY_TYPE_U8
           : p->bits > 8 && p->bits <= 16 ? GST_IMAGING_ND_ARRAY_TYPE_U16
           : p->bits == 32                ? GST_IMAGING_ND_ARRAY_TYPE_U32
           : p->bits == 64                ? (gint) GST_IMAGING_ND_ARRAY_TYPE_U64
                                          : -1;
  default:
    return -1;
  }
}

/* Returns: FALSE with @error set for what libtiff has no code for */
static gboolean
check_compression (Reader *self, guint16 compression, GError **error)
{
  static const struct {
    guint16 compression;
    const gchar *name;
  } others[] = {{33003, "JPEG 2000"}, {33005, "JPEG 2000"},
      {34712, "JPEG 2000"}, {22610, "JPEG XR"}, {34934, "JPEG XR"},
      {50002, "JPEG-XL"}, {52546, "JPEG-XL"}};
  const TIFFCodec *codec = TIFFFindCODEC (compression);
  const gchar *name = codec ? codec->name : "an unknown method";

  if (TIFFIsCODECConfigured (compression))
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    if (others[i].compression == compression)
      name = others[i].name;
  return gst_imaging_format_fail (self->tiff.file, error,
      GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
      "is compressed by %s (TIFF's number %u), which the libtiff of this "
      "computer does not read. Save it with Deflate or LZW.",
      name, compression);
}

static gboolean
check_depth (Reader *self, GError **error)
{
  guint32 depth = 1, tile_depth = 1;

  TIFFGetField (self->tiff.tiff, TIFFTAG_IMAGEDEPTH, &depth);
  TIFFGetField (self->tiff.tiff, TIFFTAG_TILEDEPTH, &tile_depth);
  return (depth <= 1 && tile_depth <= 1) ||
         gst_imaging_format_fail (self->tiff.file, error,
             GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
             "has pages that are volumes of %u slices (ImageDepth), expected "
             "is a slice a page. Save it without volumetric tiles.",
             depth);
}

static gboolean
read_page (Reader *self, Page *p, GError **error)
{
  TIFF *tiff = self->tiff.tiff;

  *p = (Page){.channels = 1};
  TIFFGetField (tiff, TIFFTAG_IMAGEWIDTH, &p->width);
  TIFFGetField (tiff, TIFFTAG_IMAGELENGTH, &p->height);
  TIFFGetFieldDefaulted (tiff, TIFFTAG_SAMPLESPERPIXEL, &p->channels);
  TIFFGetFieldDefaulted (tiff, TIFFTAG_BITSPERSAMPLE, &p->bits);
  TIFFGetFieldDefaulted (tiff, TIFFTAG_SAMPLEFORMAT, &p->format);
  TIFFGetFieldDefaulted (tiff, TIFFTAG_PLANARCONFIG, &p->planar);
  TIFFGetFieldDefaulted (tiff, TIFFTAG_COMPRESSION, &p->compression);
  TIFFGetField (tiff, TIFFTAG_PHOTOMETRIC, &p->photometric);
  if (p->width == 0 || p->height == 0 || p->width > G_MAXINT32 ||
      p->height > G_MAXINT32 || p->channels == 0 || p->channels > MAX_CHANNELS)
    return gst_imaging_format_fail (self->tiff.file, error,
        GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "is damaged: it has a page of %u x %u pixels and %u channels.",
        p->width, p->height, p->channels);
  if (!check_compression (self, p->compression, error) ||
      !check_depth (self, error))
    return FALSE;
  /* else libtiff gives samples of several resolutions */
  if (p->photometric == PHOTOMETRIC_YCBCR && p->compression == COMPRESSION_JPEG)
    TIFFSetField (tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  else if (p->photometric == PHOTOMETRIC_YCBCR)
    return gst_imaging_format_fail (self->tiff.file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "holds YCbCr samples, expected is grey or RGB. Convert it with "
        "tiffcp or another program.");
  if (p->compression == COMPRESSION_PACKBITS &&
      gst_imaging_tiff_find_predictor (&self->tiff) > 1)
    return gst_imaging_format_fail (self->tiff.file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "is compressed by PackBits with a predictor, which libtiff ignores: "
        "samples would be wrong. Save it with LZW or Deflate, or without the "
        "predictor.");
  if (find_type (p) < 0)
    return gst_imaging_format_fail (self->tiff.file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "holds samples of %u bits and of TIFF's sample format %u, expected are "
        "integers of 1 to 16, 32 or 64 bits, floats of 16, 32 or 64, or "
        "complex of 64 or 128, also of integers with 32 or 64.",
        p->bits, p->format);
  return TRUE;
}

/* --- palettes --- */

typedef struct {
  guint n; /* entries */
  guint16 *channels[3];
} Palette;

static gboolean
is_palette (const Page *p)
{
  return p->photometric == PHOTOMETRIC_PALETTE && p->channels == 1 &&
         p->format == SAMPLEFORMAT_UINT && p->bits <= 16;
}

/* That of the current page; libtiff keeps it. */
static gboolean
get_palette (Reader *self, const Page *p, Palette *palette, GError **error)
{
  guint16 **c = palette->channels;

  palette->n = 1u << p->bits;
  return TIFFGetField (
             self->tiff.tiff, TIFFTAG_COLORMAP, &c[0], &c[1], &c[2]) ||
         gst_imaging_format_fail (self->tiff.file, error,
             GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
             "is damaged: its pixels are numbers of colours, and it has no "
             "table of them (ColorMap).");
}

/* Entries have 16 bits. Those of 8 bits are multiples of 256 or 257, or, from
 * programs of before TIFF 6, all below 256. */
static gboolean
is_of_bytes (const Palette *palette, gboolean *is_old)
{
  gboolean is_wide = FALSE;

  *is_old = TRUE;
  for (guint c = 0; c < 3; c++)
    for (guint i = 0; i < palette->n; i++) {
      guint value = palette->channels[c][i];

      *is_old = *is_old && value < 256;
      is_wide = is_wide || ((value & 255) != 0 && (value & 255) != value >> 8);
    }
  return *is_old || !is_wide;
}

static gboolean
look_at_palette (Reader *self, const Page *p, GError **error)
{
  Palette palette;
  gboolean is_old;

  if (!is_palette (p))
    return TRUE;
  if (!get_palette (self, p, &palette, error))
    return FALSE;
  self->is_palette = TRUE;
  self->is_deep = self->is_deep || !is_of_bytes (&palette, &is_old);
  return TRUE;
}

/* @from: n samples of the file */
static gboolean
apply_palette (
    Reader *self, gconstpointer from, gsize n, gpointer to, GError **error)
{
  gboolean is_wide = self->type == GST_IMAGING_ND_ARRAY_TYPE_U16, is_old;
  Palette palette;

  if (!get_palette (self, &self->page, &palette, error))
    return FALSE;
  is_of_bytes (&palette, &is_old);
  for (gsize i = 0; i < n; i++) {
    guint index =
        is_wide ? ((const guint16 *) from)[i] : ((const guint8 *) from)[i];

    for (guint c = 0; c < 3; c++) {
      guint value = palette.channels[c][MIN (index, palette.n - 1)];

      if (self->is_deep)
        ((guint16 *) to)[3 * i + c] = (guint16) value;
      else
        ((guint8 *) to)[3 * i + c] = (guint8) (is_old ? value : value >> 8);
    }
  }
  return TRUE;
}

/* Pages of reduced resolution are previews of the others; masks say which of
 * their pixels are valid. */
static gboolean
read_directories (Reader *self, GError **error)
{
  TIFF *tiff = self->tiff.tiff;
  guint wanted = self->tiff.file->part, n = 0;

  do {
    guint32 kind = 0;
    guint64 offset = TIFFCurrentDirOffset (tiff);
    Page page;

    TIFFGetField (tiff, TIFFTAG_SUBFILETYPE, &kind);
    /* the first one may have the pages of a stack behind it */
    if (kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK) ||
        (n++ > 0 && wanted > 0 && n != wanted))
      continue;
    if (wanted > 0)
      g_array_set_size (self->offsets, 0);
    if (self->offsets->len == 0)
      self->is_palette = self->is_deep = FALSE;
    if (!read_page (self, &page, error) ||
        !look_at_palette (self, &page, error))
      return FALSE;
    if (self->offsets->len == 0)
      self->page = page;
    else if (memcmp (&page, &self->page, sizeof (page)) != 0)
      return gst_imaging_format_fail (self->tiff.file, error,
          GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
          "has pages that differ: page %u is %u x %u with %u channels of %u "
          "bits, page 1 is %u x %u with %u of %u. Read one of them by its "
          "number (part, from 0 on).",
          self->offsets->len + 1, page.width, page.height, page.channels,
          page.bits, self->page.width, self->page.height, self->page.channels,
          self->page.bits);
    g_array_append_val (self->offsets, offset);
    if (self->offsets->len > MAX_PAGES)
      return gst_imaging_format_fail (self->tiff.file, error,
          GST_IMAGING_ND_ARRAY_ERROR_SIZE, "has more than %d pages.",
          MAX_PAGES);
  } while (TIFFReadDirectory (tiff));
  if (self->tiff.text)
    return gst_imaging_tiff_fail (&self->tiff, error);
  if (n > 1 && wanted > n)
    return gst_imaging_format_fail_part (self->tiff.file, n, error);
  self->n_directories = n;
  return self->offsets->len > 0 ||
         gst_imaging_format_fail (self->tiff.file, error,
             GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
             "holds previews or masks alone, and no picture of full "
             "resolution.");
}

/* ImageJ writes stacks of 4 GiB and more as one directory and all pages behind
 * its own, and how many there are into the description. */
static gboolean
find_stack (Reader *self, GError **error)
{
  TIFF *tiff = self->tiff.tiff;
  const Page *p = &self->page;
  gchar *text = NULL;
  const gchar *count;
  guint64 n, size = 0, room;

  if (self->n_directories > 1 || p->compression != COMPRESSION_NONE ||
      TIFFIsTiled (tiff) || p->planar != PLANARCONFIG_CONTIG ||
      (p->bits != 8 && p->bits != 16 && p->bits != 32) ||
      !TIFFGetField (tiff, TIFFTAG_IMAGEDESCRIPTION, &text) || !text ||
      !g_str_has_prefix (text, "ImageJ=") ||
      !(count = strstr (text, "\nimages=")))
    return TRUE;
  n = g_ascii_strtoull (count + strlen ("\nimages="), NULL, 10);
  self->stack = TIFFGetStrileOffset (tiff, 0);
  for (guint32 i = 0; i < TIFFNumberOfStrips (tiff); i++) {
    if (TIFFGetStrileOffset (tiff, i) != self->stack + size)
      return TRUE;
    size += TIFFGetStrileByteCount (tiff, i);
  }
  if (n < 2 ||
      size != (guint64) p->width * p->height * p->channels * p->bits / 8)
    return TRUE;
  room = self->tiff.file->size - MIN (self->stack, self->tiff.file->size);
  if (room / size < 2 && n * size > room)
    return TRUE; /* one page that was taken out of a stack */
  if (n > MAX_PAGES || n > room / size)
    return gst_imaging_format_fail (self->tiff.file, error,
        GST_IMAGING_ND_ARRAY_ERROR_SIZE,
        "is truncated: ImageJ has written %" G_GUINT64_FORMAT
        " pages, and it has room for %" G_GUINT64_FORMAT ". Copy it again.",
        n, room / size);
  self->n_stacked = n - 1;
  return TRUE;
}

static void
look_at_planes (Reader *self)
{
  GstImagingTiffPlanes planes = gst_imaging_tiff_find_planes (self->tiff.tiff);
  const GstImagingFormatFile *file = self->tiff.file;

  self->n_planes =
      planes == GST_IMAGING_TIFF_PLANES_FRAMES ? self->page.channels : 1;
  if (planes == GST_IMAGING_TIFF_PLANES_DOUBTFUL && file->notes)
    g_ptr_array_add (file->notes,
        g_strdup_printf (
            "\"%s\" is read as a picture in colour, and may be %u frames: "
            "tifffile writes both alike. If it is frames, write them again "
            "with photometric=\"minisblack\".",
            file->name, self->page.channels * self->offsets->len));
}

/* Returns: how many there are */
static guint64
count_pages (const Reader *self)
{
  return self->offsets->len * (guint64) self->n_planes + self->n_stacked;
}

/* Of several behind one directory. */
static gboolean
choose_page (Reader *self, GError **error)
{
  guint wanted = self->tiff.file->part;

  if (self->n_directories > 1 || wanted == 0)
    return TRUE;
  if (wanted > count_pages (self))
    return gst_imaging_format_fail_part (
        self->tiff.file, count_pages (self), error);
  self->first = wanted - 1;
  return TRUE;
}

/* Returns: of a pixel that is read */
static guint
count_channels (const Reader *self)
{
  return self->n_planes > 1 ? 1 : self->page.channels;
}

/* Returns: (nullable): what samples mean, where that is neither grey nor RGB */
static const gchar *
find_colours (Reader *self)
{
  guint16 inks = INKSET_CMYK;

  if (self->page.photometric == PHOTOMETRIC_MINISWHITE)
    return GST_IMAGING_FORMAT_WHITE;
  if (self->page.photometric == PHOTOMETRIC_CIELAB ||
      self->page.photometric == PHOTOMETRIC_ICCLAB ||
      self->page.photometric == PHOTOMETRIC_ITULAB)
    return "CIELab";
  if (self->page.photometric != PHOTOMETRIC_SEPARATED)
    return NULL;
  TIFFGetField (self->tiff.tiff, TIFFTAG_INKSET, &inks);
  return inks == INKSET_CMYK && self->page.channels >= 4
             ? GST_IMAGING_FORMAT_INKS
             : "Separated";
}

static void
read_cards (Reader *self, GstImagingNdArray *array)
{
  const gchar *colours = find_colours (self);
  GPtrArray *cards = g_ptr_array_new ();
  gchar number[16];

  gst_imaging_tiff_read_tags (self->tiff.tiff, cards);
  g_snprintf (number, sizeof (number), "%u", self->page.bits);
  if (colours)
    gst_imaging_format_add_card (cards, GST_IMAGING_FORMAT_COLOURS, colours);
  if (self->page.bits % 8 != 0 && self->page.bits > 1 && !self->is_palette)
    gst_imaging_format_add_card (cards, "BITS", number);
  gst_imaging_format_take_cards (array, cards);
}

static void
tiff_close (gpointer reader)
{
  Reader *self = reader;

  gst_imaging_tiff_close (&self->tiff);
  g_array_unref (self->offsets);
  g_free (self);
}

static gpointer
tiff_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  Reader *self = g_new0 (Reader, 1);

  self->offsets = g_array_new (FALSE, FALSE, sizeof (guint64));
  if (!gst_imaging_tiff_open (&self->tiff, file, "r", error) ||
      !read_directories (self, error) ||
      (!TIFFSetSubDirectory (
           self->tiff.tiff, g_array_index (self->offsets, guint64, 0)) &&
          !gst_imaging_tiff_fail (&self->tiff, error)) ||
      !find_stack (self, error)) {
    tiff_close (self);
    return NULL;
  }
  look_at_planes (self);
  if (!choose_page (self, error)) {
    tiff_close (self);
    return NULL;
  }
  read_cards (self, array);
  array->type = self->type = (GstImagingNdArrayType) find_type (&self->page);
  if (self->is_palette)
    array->type = self->is_deep ? GST_IMAGING_ND_ARRAY_TYPE_U16
                                : GST_IMAGING_ND_ARRAY_TYPE_U8;
  /* a part is a directory, unless there is only one */
  *n_pages = file->part == 0           ? count_pages (self)
             : self->n_directories > 1 ? self->n_planes
                                       : 1;
  gst_imaging_format_set_dims (array, *n_pages, self->page.height,
      self->page.width, self->is_palette ? 3 : count_channels (self));
  return self;
}

/* --- samples -------------------------------------------------------------- */

/* Pairs of integers as pairs of floats of twice their bits */
static void
take_complex (const guint8 *from, gsize n, guint bits, guint8 *to, gsize step)
{
  for (gsize i = 0; i < 2 * n; i++) {
    gsize at = 2 * (i / 2 * step) + i % 2;

    if (bits == 32) {
      gint16 part;

      memcpy (&part, from + i * sizeof (part), sizeof (part));
      ((gfloat *) to)[at] = part;
    } else {
      gint32 part;

      memcpy (&part, from + i * sizeof (part), sizeof (part));
      ((gdouble *) to)[at] = part;
    }
  }
}

/* Copies @n samples of a row of the file; @step: values from one to the next.
 * Bits of a sample below 8, or from 9 to 15, lie together, the highest first.
 */
static void
take_samples (
    const Reader *self, const guint8 *from, gsize n, guint8 *to, gsize step)
{
  gsize size = gst_imaging_nd_array_type_size (self->type);
  guint bits = self->page.bits;

  if (self->page.format == SAMPLEFORMAT_COMPLEXINT) {
    take_complex (from, n, bits, to, step);
    return;
  }
  if (bits == 8 * size) {
    if (step == 1)
      memcpy (to, from, n * size);
    else
      for (gsize i = 0; i < n; i++)
        memcpy (to + i * step * size, from + i * size, size);
    return;
  }
  for (gsize i = 0, bit = 0; i < n; i++) {
    guint value = 0;

    for (guint b = 0; b < bits; b++, bit++)
      value = value << 1 | (from[bit / 8] >> (7 - bit % 8) & 1u);
    if (size == 1)
      to[i * step] = (guint8) value;
    else
      ((guint16 *) to)[i * step] = (guint16) value;
  }
}

/* A block of rows, of all channels or of one, that was decoded */
static void
take_block (const Reader *self, const guint8 *block, gsize row_size, guint x,
    guint y, guint width, guint height, guint channel, guint8 *values)
{
  const Page *p = &self->page;
  guint channels = count_channels (self);
  gsize size = gst_imaging_nd_array_type_size (self->type);
  gboolean separate = p->planar == PLANARCONFIG_SEPARATE;
  gsize step = separate ? channels : 1;
  gsize n = (gsize) width * (separate ? 1 : channels);

  for (guint row = 0; row < height; row++)
    take_samples (self, block + row * row_size, n,
        values +
            (((gsize) (y + row) * p->width + x) * channels + channel) * size,
        step);
}

/* @to: zeros; complex numbers get a real part */
static void
put_number (GstImagingNdArrayType type, gdouble number, guint8 *to)
{
  gint64 whole = isnan (number) ? 0 : (gint64) CLAMP (number, -9e18, 9e18);
  gfloat single = (gfloat) number;

  switch (type) {
  case GST_IMAGING_ND_ARRAY_TYPE_F32:
  case GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64:
    memcpy (to, &single, sizeof (single));
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_F64:
  case GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128:
    memcpy (to, &number, sizeof (number));
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_U64:
    whole = (gint64) (guint64) CLAMP (number, 0, 18446744073709549568.0);
    /* fall through */
  default: {
    gsize size = gst_imaging_nd_array_type_size (type);

    for (gsize i = 0; i < size && size <= sizeof (whole); i++)
      to[G_BYTE_ORDER == G_LITTLE_ENDIAN ? i : size - 1 - i] =
          (guint8) ((guint64) whole >> 8 * i);
  }
  }
}

/* 0 without one, as GDAL reads it */
static gdouble
read_nodata (Reader *self)
{
  guint32 n = 0;
  gchar *text = NULL;

  return TIFFGetField (self->tiff.tiff, GST_IMAGING_TIFF_NODATA, &n, &text) &&
                 text && n > 0 && memchr (text, '\0', n)
             ? g_ascii_strtod (text, NULL)
             : 0;
}

static gboolean
is_sparse (TIFF *tiff, guint32 index)
{
  return TIFFGetStrileByteCount (tiff, index) == 0;
}

/* Samples that are not whole bytes, and halves, are not filled with nodata. */
static gboolean
check_sparse (Reader *self, GError **error)
{
  TIFF *tiff = self->tiff.tiff;
  guint32 n =
      TIFFIsTiled (tiff) ? TIFFNumberOfTiles (tiff) : TIFFNumberOfStrips (tiff);

  if ((self->type != GST_IMAGING_ND_ARRAY_TYPE_F16 &&
          self->page.bits % 8 == 0) ||
      read_nodata (self) == 0)
    return TRUE;
  for (guint32 i = 0; i < n; i++)
    if (is_sparse (tiff, i))
      return gst_imaging_format_fail (self->tiff.file, error,
          GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
          "leaves out tiles of nodata %g, which is not read with samples of %u "
          "bits. Save it without SPARSE_OK.",
          read_nodata (self), self->page.bits);
  return TRUE;
}

/* Tiles and strips without bytes are what GDAL leaves out where all is nodata.
 * Returns: has it filled @size bytes? */
static gboolean
fill_sparse (Reader *self, guint32 index, guint8 *block, gsize size)
{
  gsize value_size = (gsize) self->page.bits / 8;
  guint8 value[16] = {0};
  gdouble nodata;

  if (!is_sparse (self->tiff.tiff, index))
    return FALSE;
  nodata = read_nodata (self);
  memset (block, 0, size);
  if (nodata == 0)
    return TRUE;
  if (self->page.format == SAMPLEFORMAT_COMPLEXINT) /* parts of the file's */
    put_number (value_size == 4 ? GST_IMAGING_ND_ARRAY_TYPE_I16
                                : GST_IMAGING_ND_ARRAY_TYPE_I32,
        nodata, value);
  else
    put_number (self->type, nodata, value);
  for (gsize i = 0; i + value_size <= size; i += value_size)
    memcpy (block + i, value, value_size);
  return TRUE;
}

/* @plane: the first one that is read */
static gboolean
read_tiles (Reader *self, guint plane, guint8 *values, GError **error)
{
  TIFF *tiff = self->tiff.tiff;
  const Page *p = &self->page;
  guint32 width = 0, height = 0;
  tmsize_t size = TIFFTileSize (tiff), row_size = TIFFTileRowSize (tiff);
  guint n = p->planar == PLANARCONFIG_SEPARATE ? count_channels (self) : 1;
  g_autofree guint8 *tile = NULL;

  TIFFGetField (tiff, TIFFTAG_TILEWIDTH, &width);
  TIFFGetField (tiff, TIFFTAG_TILELENGTH, &height);
  if (size <= 0 || width == 0 || height == 0)
    return gst_imaging_tiff_fail (&self->tiff, error);
  if (!gst_imaging_format_check_size (self->tiff.file, (guint64) size, error))
    return FALSE;
  tile = g_try_malloc ((gsize) size);
  if (!tile)
    return gst_imaging_format_fail (self->tiff.file, error,
        GST_IMAGING_ND_ARRAY_ERROR_MEMORY, "does not fit in memory.");
  for (guint channel = 0; channel < n; channel++)
    for (guint y = 0; y < p->height; y += height)
      for (guint x = 0; x < p->width; x += width) {
        guint32 index =
            TIFFComputeTile (tiff, x, y, 0, (guint16) (plane + channel));

        if (!fill_sparse (self, index, tile, (gsize) size) &&
            TIFFReadEncodedTile (tiff, index, tile, size) != size)
          return gst_imaging_tiff_fail (&self->tiff, error);
        take_block (self, tile, (gsize) row_size, x, y,
            MIN (width, p->width - x), MIN (height, p->height - y), channel,
            values);
      }
  return TRUE;
}

/* @plane: as above */
static gboolean
read_strips (Reader *self, guint plane, guint8 *values, GError **error)
{
  TIFF *tiff = self->tiff.tiff;
  const Page *p = &self->page;
  guint32 rows = 0;
  gsize row_size = (gsize) TIFFScanlineSize (tiff);
  gsize value_size = gst_imaging_nd_array_type_size (self->type);
  guint channels = count_channels (self);
  gboolean separate = p->planar == PLANARCONFIG_SEPARATE && channels > 1;
  gboolean direct = !separate && p->bits == 8 * value_size &&
                    row_size == p->width * channels * value_size;
  g_autofree guint8 *strip = NULL;

  TIFFGetFieldDefaulted (tiff, TIFFTAG_ROWSPERSTRIP, &rows);
  rows = CLAMP (rows, 1, p->height);
  if (row_size == 0)
    return gst_imaging_tiff_fail (&self->tiff, error);
  if (!direct && !(strip = g_try_malloc (row_size * rows)))
    return gst_imaging_format_fail (self->tiff.file, error,
        GST_IMAGING_ND_ARRAY_ERROR_MEMORY, "does not fit in memory.");
  for (guint channel = 0; channel < (separate ? channels : 1u); channel++)
    for (guint y = 0; y < p->height; y += MIN (rows, p->height - y)) {
      guint32 index = TIFFComputeStrip (tiff, y, (guint16) (plane + channel));
      guint n = MIN (rows, p->height - y);
      tmsize_t size = (tmsize_t) (n * row_size);
      guint8 *to = direct ? values + y * row_size : strip;

      if (!fill_sparse (self, index, to, (gsize) size) &&
          TIFFReadEncodedStrip (tiff, index, to, size) != size)
        return gst_imaging_tiff_fail (&self->tiff, error);
      if (!direct)
        take_block (self, strip, row_size, 0, y, p->width, n, channel, values);
    }
  return TRUE;
}

/* A page of a stack without directories */
static gboolean
read_stacked (Reader *self, guint64 page, guint8 *values, GError **error)
{
  const Page *p = &self->page;
  gsize size = (gsize) p->width * p->height * p->channels * p->bits / 8;
  gssize got = gst_imaging_format_read_at (
      self->tiff.file, values, size, self->stack + page * size);

  if (got < 0 || (gsize) got != size)
    return gst_imaging_format_fail (self->tiff.file, error,
        GST_IMAGING_ND_ARRAY_ERROR_READ, "cannot be read to its end.");
  if (TIFFIsByteSwapped (self->tiff.tiff) && p->bits == 16)
    TIFFSwabArrayOfShort ((guint16 *) values, (tmsize_t) size / 2);
  else if (TIFFIsByteSwapped (self->tiff.tiff) && p->bits == 32)
    TIFFSwabArrayOfLong ((guint32 *) values, (tmsize_t) size / 4);
  return TRUE;
}

static gboolean
read_samples (Reader *self, guint64 page, gpointer values, GError **error)
{
  TIFF *tiff = self->tiff.tiff;
  guint64 offset;
  guint plane;
  Page now;

  page += self->first;
  if (self->n_stacked > 0)
    return read_stacked (self, page, values, error);
  offset = g_array_index (self->offsets, guint64, page / self->n_planes);
  plane = (guint) (page % self->n_planes);

  g_clear_pointer (&self->tiff.text, g_free);
  if (TIFFCurrentDirOffset (tiff) != offset &&
      !TIFFSetSubDirectory (tiff, offset))
    return gst_imaging_tiff_fail (&self->tiff, error);
  if (!read_page (self, &now, error)) /* also sets how JPEG is decoded */
    return FALSE;
  if (memcmp (&now, &self->page, sizeof (now)) != 0)
    return gst_imaging_format_fail_damaged (
        self->tiff.file, error, "a page has changed");
  if (!check_sparse (self, error))
    return FALSE;
  return TIFFIsTiled (tiff) ? read_tiles (self, plane, values, error)
                            : read_strips (self, plane, values, error);
}

static gboolean
tiff_read (gpointer reader, guint64 page, gpointer values, GError **error)
{
  Reader *self = reader;
  gsize n = (gsize) self->page.width * self->page.height;
  g_autofree gpointer samples = NULL;

  if (!self->is_palette)
    return read_samples (self, page, values, error);
  samples = g_try_malloc (n * gst_imaging_nd_array_type_size (self->type));
  if (!samples)
    return gst_imaging_format_fail (self->tiff.file, error,
        GST_IMAGING_ND_ARRAY_ERROR_MEMORY, "does not fit in memory.");
  return read_samples (self, page, samples, error) &&
         apply_palette (self, samples, n, values, error);
}

const GstImagingFormatTable gst_imaging_format_tiff = {
    .name = "TIFF",
    .open = tiff_open,
    .read = tiff_read,
    .close = tiff_close,
    .create = gst_imaging_tiff_create,
    .write = gst_imaging_tiff_write,
    .finish = gst_imaging_tiff_finish,
    .discard = gst_imaging_tiff_discard,
    .types = GST_IMAGING_FORMAT_ALL_TYPES,
    .takes = "TIFF takes all types",
    .append = gst_imaging_tiff_append,
    .has_pages = TRUE,
    .has_parts = TRUE,
};
