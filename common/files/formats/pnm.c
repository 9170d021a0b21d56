/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pnm.h"

#include <string.h>

#include "files/gstimagingfile.h"
#include "files/gstimagingndarray-private.h"

#define PNM_TAKES "PNM takes one picture of u8 or u16"
#define PFM_TAKES "PFM takes one picture of f32 with 1 or 3 channels"
#define MAX_TEXT (G_GUINT64_CONSTANT (1) << 30) /* of P1 to P3, in memory */

static gboolean
is_text (const GstImagingPnm *self)
{
  return self->kind >= '1' && self->kind <= '3';
}

static gsize
row_size (const GstImagingPnm *self)
{
  return self->kind == '4' ? (self->width + 7) / 8
                           : self->width * self->channels *
                                 gst_imaging_nd_array_type_size (self->type);
}

/* Is what follows the header as long as it says? */
static gboolean
check_length (GstImagingPnm *self, GError **error)
{
  guint64 n = 0, expected, found = self->file->size - self->at;
  const guint64 dims[] = {self->height, self->width, self->channels};

  if (!gst_imaging_nd_array_count_values (
          self->file->name, self->type, 3, dims, &n, error))
    return FALSE;
  if (is_text (self)) {
    expected = self->kind == '1' ? n : 2 * n - 1;
    return found >= expected ||
           gst_imaging_format_fail (self->file, error,
               GST_IMAGING_ND_ARRAY_ERROR_SIZE,
               "is truncated: it has room for fewer than %" G_GUINT64_FORMAT
               " samples of text.",
               n);
  }
  expected = self->height * row_size (self);
  return found == expected ||
         gst_imaging_format_fail (self->file, error,
             GST_IMAGING_ND_ARRAY_ERROR_SIZE,
             "%s: it has %" G_GUINT64_FORMAT
             " bytes after the header, expected are %" G_GUINT64_FORMAT
             " for one picture.",
             found < expected ? "is truncated" : "has trailing bytes", found,
             expected);
}

static gpointer
pnm_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  GstImagingPnm *self = g_new0 (GstImagingPnm, 1);
  gssize n = gst_imaging_format_read_at (
      file, self->text, GST_IMAGING_PNM_MAX_HEADER, 0);

  self->file = file;
  self->size = (gsize) MAX (n, 0);
  if (!gst_imaging_pnm_scan_header (self, error))
    goto failed;
  if (self->at >= self->size || !g_ascii_isspace (self->text[self->at])) {
    gst_imaging_pnm_fail (self, "white space before the samples", error);
    goto failed;
  }
  self->at++;
  if (!check_length (self, error))
    goto failed;
  if (self->maximum > 1 && self->maximum != 255 && self->maximum != 65535) {
    GPtrArray *cards = g_ptr_array_new ();
    g_autofree gchar *maximum =
        g_strdup_printf ("%" G_GUINT64_FORMAT, self->maximum);

    gst_imaging_format_add_card (cards, "MAXVAL", maximum);
    gst_imaging_format_take_cards (array, cards);
  }
  array->type = self->type;
  gst_imaging_format_set_dims (
      array, 1, self->height, self->width, (guint) self->channels);
  *n_pages = 1;
  return self;

failed:
  g_free (self);
  return NULL;
}

/* In a bitmap 1 is black; an array says 1 for white, as other readers do. */
static gboolean
read_text (GstImagingPnm *self, gpointer values, GError **error)
{
  gsize n = self->width * self->height * self->channels;
  g_autofree gchar *text = NULL;
  const gchar *at, *end;

  if (self->file->size > MAX_TEXT)
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "is a PNM file of text with more than 1 GiB. Use a binary one.");
  text = (gchar *) gst_imaging_format_load (self->file, error);
  if (!text)
    return FALSE;
  at = text + self->at;
  end = text + self->file->size;
  for (gsize i = 0; i < n; i++) {
    guint value = 0;
    const gchar *first;

    while (at < end && (g_ascii_isspace (*at) || *at == '#'))
      if (*at == '#')
        while (at < end && *at != '\n')
          at++;
      else
        at++;
    for (first = at; at < end && g_ascii_isdigit (*at) && value <= 65535;
         at++) {
      value = 10 * value + (guint) (*at - '0');
      if (self->kind == '1') { /* bits need no space between */
        at++;
        break;
      }
    }
    if (at == first || value > self->maximum) {
      self->at = (gsize) (at - text);
      return gst_imaging_pnm_fail (
          self, "a sample that is not above the maximum", error);
    }
    if (self->kind == '1')
      ((guint8 *) values)[i] = !value;
    else if (self->type == GST_IMAGING_ND_ARRAY_TYPE_U8)
      ((guint8 *) values)[i] = (guint8) value;
    else
      ((guint16 *) values)[i] = (guint16) value;
  }
  return TRUE;
}

static gboolean
read_rows (GstImagingPnm *self, guint64 offset, gpointer to, gsize size,
    GError **error)
{
  gssize got = gst_imaging_format_read_at (self->file, to, size, offset);

  return got == (gssize) size ||
         gst_imaging_format_fail (self->file, error,
             got < 0 ? GST_IMAGING_ND_ARRAY_ERROR_READ
                     : GST_IMAGING_ND_ARRAY_ERROR_SIZE,
             got < 0 ? "cannot be read." : "was truncated while it was read.");
}

static void
swap (gpointer values, gsize n, gsize size)
{
  guint16 *p16 = values;
  guint32 *p32 = values;

  for (gsize i = 0; size == 2 && i < n; i++)
    p16[i] = GUINT16_SWAP_LE_BE (p16[i]);
  for (gsize i = 0; size == 4 && i < n; i++)
    p32[i] = GUINT32_SWAP_LE_BE (p32[i]);
}

static gboolean
pnm_read (gpointer reader, guint64 page, gpointer values, GError **error)
{
  GstImagingPnm *self = reader;
  gsize row = row_size (self);

  if (is_text (self))
    return read_text (self, values, error);
  if (self->kind == '4') {
    g_autofree guint8 *bits = g_malloc (row);

    for (gsize y = 0; y < self->height; y++) {
      guint8 *to = (guint8 *) values + y * self->width;

      if (!read_rows (self, self->at + y * row, bits, row, error))
        return FALSE;
      for (gsize x = 0; x < self->width; x++)
        to[x] = !(bits[x / 8] >> (7 - x % 8) & 1);
    }
    return TRUE;
  }
  if (self->type == GST_IMAGING_ND_ARRAY_TYPE_F32) { /* the last row is first */
    for (gsize y = 0; y < self->height; y++)
      if (!read_rows (self, self->at + (self->height - 1 - y) * row,
              (guint8 *) values + y * row, row, error))
        return FALSE;
  } else if (!read_rows (self, self->at, values, self->height * row, error)) {
    return FALSE;
  }
  if (self->swapped)
    swap (values, self->width * self->height * self->channels,
        gst_imaging_nd_array_type_size (self->type));
  return TRUE;
}

/* --- writing -------------------------------------------------------------- */

typedef struct {
  const GstImagingFormatFile *file;
  GstImagingFormatLayout layout;
  gsize value_size, offset;
  gboolean is_float, is_bitmap;
} Writer;

/* Channels that the extension of a name stands for; 0: any */
static guint
channels_of (const gchar *location)
{
  g_autofree gchar *lower = g_ascii_strdown (location, -1);

  return g_str_has_suffix (lower, ".pgm") || g_str_has_suffix (lower, ".pbm")
             ? 1
         : g_str_has_suffix (lower, ".ppm") ? 3
                                            : 0;
}

/* Returns: (transfer full) */
static gchar *
make_header (const Writer *self, gboolean is_wide)
{
  const GstImagingFormatLayout *l = &self->layout;
  guint maximum = is_wide ? 65535 : 255;

  if (self->is_float)
    return g_strdup_printf ("P%c\n%u %u\n%s\n", l->channels == 3 ? 'F' : 'f',
        l->width, l->height, G_BYTE_ORDER == G_LITTLE_ENDIAN ? "-1.0" : "1.0");
  if (self->is_bitmap)
    return g_strdup_printf ("P4\n%u %u\n", l->width, l->height);
  if (!channels_of (self->file->location) && l->channels != 1 &&
      l->channels != 3)
    return g_strdup_printf (
        "P7\nWIDTH %u\nHEIGHT %u\nDEPTH %u\nMAXVAL %u\n%sENDHDR\n", l->width,
        l->height, l->channels, maximum,
        l->channels == 2   ? "TUPLTYPE GRAYSCALE_ALPHA\n"
        : l->channels == 4 ? "TUPLTYPE RGB_ALPHA\n"
                           : "");
  return g_strdup_printf ("P%c\n%u %u\n%u\n", l->channels == 3 ? '6' : '5',
      l->width, l->height, maximum);
}

static gpointer
pnm_create (const GstImagingFormatFile *file, const GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  GstImagingFormatLayout l;
  g_autofree gchar *header = NULL;
  gboolean is_float = array->type == GST_IMAGING_ND_ARRAY_TYPE_F32;
  guint channels = channels_of (file->location);
  Writer *self;

  if (!gst_imaging_format_get_layout (file, array, &l, error))
    return NULL;
  if (l.n_pages > 1 || (channels > 0 && l.channels != channels) ||
      (is_float && l.channels != 1 && l.channels != 3)) {
    gst_imaging_format_refuse_type (file, array,
        channels == 3   ? ".ppm takes one picture of u8 or u16 with 3 channels"
        : channels == 1 ? ".pgm takes one picture of u8 or u16 with 1 channel, "
                          ".pbm one of bool"
        : is_float      ? PFM_TAKES
                        : PNM_TAKES,
        error);
    return NULL;
  }
  self = g_new0 (Writer, 1);
  self->file = file;
  self->layout = l;
  self->is_float = is_float;
  self->is_bitmap = array->type == GST_IMAGING_ND_ARRAY_TYPE_BOOL;
  self->value_size = gst_imaging_nd_array_type_size (array->type);
  header = make_header (self, array->type == GST_IMAGING_ND_ARRAY_TYPE_U16);
  self->offset = strlen (header);
  *n_pages = 1;
  if (gst_imaging_format_write_at (file, header, self->offset, 0, error))
    return self;
  g_free (self);
  return NULL;
}

/* A bit for each value; in the file 1 is black. */
static void
pack_bits (const guint8 *from, gsize n, guint8 *to)
{
  memset (to, 0, (n + 7) / 8);
  for (gsize x = 0; x < n; x++)
    if (!from[x])
      to[x / 8] |= (guint8) (0x80 >> x % 8);
}

static gboolean
pnm_write (gpointer writer, gconstpointer values, GError **error)
{
  Writer *self = writer;
  const GstImagingFormatLayout *l = &self->layout;
  gsize n = (gsize) l->width * l->channels, size = n * self->value_size;
  gsize written = self->is_bitmap ? (n + 7) / 8 : size;
  g_autofree guint8 *row = g_malloc (size);

  for (gsize y = 0; y < l->height; y++) {
    gsize line = self->is_float ? l->height - 1 - y : y;
    const guint8 *from = (const guint8 *) values + line * size;

    if (self->is_bitmap)
      pack_bits (from, n, row);
    else
      memcpy (row, from, size);
    if (self->value_size == 2 && G_BYTE_ORDER == G_LITTLE_ENDIAN)
      swap (row, n, 2);
    if (!gst_imaging_format_write_at (
            self->file, row, written, self->offset + y * written, error))
      return FALSE;
  }
  return TRUE;
}

#define PNM_FUNCTIONS \
  .open = pnm_open, .read = pnm_read, .close = g_free, .create = pnm_create, \
  .write = pnm_write, .discard = g_free

const GstImagingFormatTable gst_imaging_format_pnm = {
    .name = "PNM",
    PNM_FUNCTIONS,
    .types = GST_IMAGING_FORMAT_TYPE (U8) | GST_IMAGING_FORMAT_TYPE (U16),
    .takes = PNM_TAKES,
    .shows_rgb = TRUE,
};

const GstImagingFormatTable gst_imaging_format_pbm = {
    .name = "PBM",
    PNM_FUNCTIONS,
    .types = GST_IMAGING_FORMAT_TYPE (BOOL),
    .takes = "PBM takes one picture of bool",
};

const GstImagingFormatTable gst_imaging_format_pfm = {
    .name = "PFM",
    PNM_FUNCTIONS,
    .types = GST_IMAGING_FORMAT_TYPE (F32),
    .takes = PFM_TAKES,
};
