/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingformat.h"

#include <png.h>
#include <stdio.h>
#include <string.h>

#define GAMMA "gAMA"
#define CLEAR "tRNS"
#define TAKES \
  "PNG takes one picture of u8 or u16 with 1 to 4 channels, or of bool"

/* A call of libpng that can fail, and where it failed to. libpng jumps: what
 * is needed after the jump is in here, and not in registers. */
typedef struct {
  const GstImagingFormatFile *file;
  png_structp png;
  png_infop info;
  const guint8 *bytes; /* of a file that is read */
  guint64 offset;      /* what was read or written */
  guint8 **rows;
  gchar *text; /* what libpng says */
  GError *why; /* of what was written */
  gboolean done;
} Png;

static void
on_error (png_structp png, png_const_charp text)
{
  Png *self = png_get_error_ptr (png);

  if (!self->text)
    self->text = g_strdup (text);
  png_longjmp (png, 1);
}

static void
on_warning (png_structp png, png_const_charp text)
{
}

static void
clear (Png *self)
{
  if (self->png && self->bytes)
    png_destroy_read_struct (&self->png, &self->info, NULL);
  else if (self->png)
    png_destroy_write_struct (&self->png, &self->info);
  g_clear_pointer (&self->rows, g_free);
  g_clear_pointer (&self->text, g_free);
}

/* Only in a function that calls setjmp (). */
#define png_try(self) (setjmp (png_jmpbuf ((self)->png)) == 0)

/* --- reading --- */

typedef struct {
  const GstImagingFormatFile *file;
  guint8 *bytes;
  guint width, height, channels, depth;
} Reader;

static void
read_bytes (png_structp png, png_bytep to, size_t size)
{
  Png *self = png_get_io_ptr (png);

  if (size > self->file->size - self->offset)
    png_error (png, "it ends too early");
  memcpy (to, self->bytes + self->offset, size);
  self->offset += size;
}

/* Samples stay as they are, in the byte order of the machine. A palette becomes
 * its colours. */
static void
set_up (Png *self, guint *channels, guint *depth)
{
  png_byte colour, bits;

  png_read_info (self->png, self->info);
  colour = png_get_color_type (self->png, self->info);
  bits = png_get_bit_depth (self->png, self->info);
  if (colour == PNG_COLOR_TYPE_PALETTE) {
    png_set_palette_to_rgb (self->png);
    if (png_get_valid (self->png, self->info, PNG_INFO_tRNS))
      png_set_tRNS_to_alpha (self->png);
    bits = 8;
  } else if (bits < 8) {
    png_set_packing (self->png);
  } else if (bits == 16 && G_BYTE_ORDER == G_LITTLE_ENDIAN) {
    png_set_swap (self->png);
  }
  png_set_interlace_handling (self->png);
  png_read_update_info (self->png, self->info);
  *channels = png_get_channels (self->png, self->info);
  *depth = bits;
}

/* How samples are shown, and which are transparent: they stay as they are. */
static void
read_colours (Png *self, GPtrArray *cards)
{
  png_byte colour = png_get_color_type (self->png, self->info);
  gboolean is_grey = colour == PNG_COLOR_TYPE_GRAY;
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];
  png_color_16p clear = NULL;
  double gamma = 0;

  if (png_get_gAMA (self->png, self->info, &gamma))
    gst_imaging_format_add_card (
        cards, GAMMA, g_ascii_formatd (digits, sizeof (digits), "%.5g", gamma));
  if ((is_grey || colour == PNG_COLOR_TYPE_RGB) &&
      png_get_tRNS (self->png, self->info, NULL, NULL, &clear) && clear) {
    g_autofree gchar *text = is_grey ? g_strdup_printf ("%u", clear->gray)
                                     : g_strdup_printf ("%u %u %u", clear->red,
                                           clear->green, clear->blue);

    gst_imaging_format_add_card (cards, CLEAR, text);
  }
}

static void
read_cards (Png *self, GstImagingNdArray *array, guint depth)
{
  GPtrArray *cards = g_ptr_array_new ();
  png_textp text = NULL;
  int n = 0;

  read_colours (self, cards);
  if (depth != 1 && depth != 8 && depth != 16) {
    g_autofree gchar *bits = g_strdup_printf ("%u", depth);

    gst_imaging_format_add_card (cards, "BITS", bits);
  }
  png_get_text (self->png, self->info, &text, &n);
  for (int i = 0; i < n; i++)
    gst_imaging_format_add_card (cards, text[i].key, text[i].text);
  gst_imaging_format_take_cards (array, cards);
}

/* Reads the header, and the pixels if there are @values. */
static gboolean
decode (
    Reader *reader, GstImagingNdArray *array, guint8 *values, GError **error)
{
  Png png = {.file = reader->file, .bytes = reader->bytes}, *self = &png;

  self->png = png_create_read_struct (
      PNG_LIBPNG_VER_STRING, self, on_error, on_warning);
  self->info = png_create_info_struct (self->png);
  if (png_try (self)) {
    gsize stride;

    png_set_read_fn (self->png, self, read_bytes);
    png_set_crc_action (self->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    set_up (self, &reader->channels, &reader->depth);
    reader->width = png_get_image_width (self->png, self->info);
    reader->height = png_get_image_height (self->png, self->info);
    stride = png_get_rowbytes (self->png, self->info);
    if (array)
      read_cards (self, array, reader->depth);
    if (values) {
      self->rows = g_new (guint8 *, reader->height);
      for (guint y = 0; y < reader->height; y++)
        self->rows[y] = values + y * stride;
      png_read_image (self->png, self->rows);
      png_read_end (self->png, NULL);
    }
    self->done = TRUE;
  } else {
    gst_imaging_format_fail_damaged (self->file, error, self->text);
  }
  clear (self);
  return self->done;
}

static void
png_close (gpointer reader)
{
  Reader *self = reader;

  g_free (self->bytes);
  g_free (self);
}

static gpointer
png_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  Reader *self = g_new0 (Reader, 1);

  self->file = file;
  self->bytes = gst_imaging_format_load (file, error);
  if (!self->bytes || !decode (self, array, NULL, error)) {
    png_close (self);
    return NULL;
  }
  array->type = self->depth == 16  ? GST_IMAGING_ND_ARRAY_TYPE_U16
                : self->depth == 1 ? GST_IMAGING_ND_ARRAY_TYPE_BOOL
                                   : GST_IMAGING_ND_ARRAY_TYPE_U8;
  gst_imaging_format_set_dims (
      array, 1, self->height, self->width, self->channels);
  *n_pages = 1;
  return self;
}

static gboolean
png_read (gpointer reader, guint64 page, gpointer values, GError **error)
{
  return decode (reader, NULL, values, error);
}

/* --- writing --- */

typedef struct {
  const GstImagingFormatFile *file;
  GstImagingFormatLayout layout;
  GstImagingNdArrayType type;
  gchar **cards;
} Writer;

static void
write_bytes (png_structp png, png_bytep from, size_t size)
{
  Png *self = png_get_io_ptr (png);

  if (!gst_imaging_format_write_at (
          self->file, from, size, self->offset, &self->why))
    png_error (png, "");
  self->offset += size;
}

static void
flush (png_structp png)
{
}

static gpointer
png_create (const GstImagingFormatFile *file, const GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  GstImagingFormatLayout layout;
  Writer *self;

  if (!gst_imaging_format_get_layout (file, array, &layout, error))
    return NULL;
  if (layout.n_pages > 1 || layout.channels > 4 ||
      (array->type == GST_IMAGING_ND_ARRAY_TYPE_BOOL && layout.channels > 1)) {
    gst_imaging_format_refuse_type (file, array, TAKES, error);
    return NULL;
  }
  self = g_new0 (Writer, 1);
  self->file = file;
  self->layout = layout;
  self->type = array->type;
  self->cards = g_strdupv (array->cards);
  *n_pages = 1;
  return self;
}

static void
png_discard (gpointer writer)
{
  Writer *self = writer;

  g_strfreev (self->cards);
  g_free (self);
}

/* Returns: is the card a chunk of the file? */
static gboolean
set_colours (Png *self, const gchar *card, const Writer *w)
{
  const gchar *text = strchr (card, '=') + 1;
  guint channels = w->layout.channels;
  png_color_16 clear = {0};
  guint c[3] = {0};
  gint n;

  if (g_str_has_prefix (card, GAMMA "=")) {
    gdouble gamma = g_ascii_strtod (text, NULL);

    if (gamma > 0 && gamma < 1e4)
      png_set_gAMA (self->png, self->info, gamma);
    return TRUE;
  }
  if (!g_str_has_prefix (card, CLEAR "="))
    return FALSE;
  n = sscanf (text, "%5u %5u %5u", &c[0], &c[1], &c[2]);
  clear.gray = clear.red = (png_uint_16) c[0];
  clear.green = (png_uint_16) c[1];
  clear.blue = (png_uint_16) c[2];
  if (n == (gint) channels && (n == 1 || n == 3))
    png_set_tRNS (self->png, self->info, NULL, 0, &clear);
  return TRUE;
}

/* Keys of PNG have 1 to 79 characters of Latin-1. */
static void
write_cards (Png *self, const Writer *w)
{
  for (gchar **cards = w->cards; cards && *cards; cards++) {
    const gchar *sign = strchr (*cards, '=');
    gsize n = sign ? (gsize) (sign - *cards) : 0;
    gchar key[80];
    png_text text = {.compression = PNG_ITXT_COMPRESSION_NONE, .key = key};

    if (n == 0 || n > 79 || !g_str_is_ascii (*cards) ||
        set_colours (self, *cards, w))
      continue;
    g_strlcpy (key, *cards, n + 1);
    text.text = (gchar *) sign + 1;
    png_set_text (self->png, self->info, &text, 1);
  }
}

static gboolean
png_write_page (gpointer writer, gconstpointer values, GError **error)
{
  static const int colours[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
      PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  Writer *w = writer;
  Png png = {.file = w->file}, *self = &png;
  gboolean is_bool = w->type == GST_IMAGING_ND_ARRAY_TYPE_BOOL;
  gboolean is_wide = w->type == GST_IMAGING_ND_ARRAY_TYPE_U16;
  gsize stride = (gsize) w->layout.width * w->layout.channels << is_wide;

  self->png = png_create_write_struct (
      PNG_LIBPNG_VER_STRING, self, on_error, on_warning);
  self->info = png_create_info_struct (self->png);
  if (png_try (self)) {
    png_set_write_fn (self->png, self, write_bytes, flush);
    png_set_IHDR (self->png, self->info, w->layout.width, w->layout.height,
        is_wide   ? 16
        : is_bool ? 1
                  : 8,
        colours[w->layout.channels - 1], PNG_INTERLACE_NONE,
        PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (is_wide) {
      /* Low bytes are noise. libpng's own choice takes 2 to 16 times as long,
       * for files between 6 % smaller and 12 % larger. */
      png_set_compression_level (self->png, 1);
      png_set_filter (self->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
    }
    if (w->file->level > 0)
      png_set_compression_level (self->png, (int) w->file->level - 1);
    write_cards (self, w);
    png_write_info (self->png, self->info);
    if (is_bool)
      png_set_packing (self->png);
    if (is_wide && G_BYTE_ORDER == G_LITTLE_ENDIAN)
      png_set_swap (self->png);
    for (guint y = 0; y < w->layout.height; y++)
      png_write_row (self->png, (const guint8 *) values + y * stride);
    png_write_end (self->png, NULL);
    self->done = TRUE;
  } else if (self->why) {
    g_propagate_error (error, g_steal_pointer (&self->why));
  } else {
    gst_imaging_format_fail (w->file, error, GST_IMAGING_ND_ARRAY_ERROR_WRITE,
        "cannot be written as PNG: %s.", self->text);
  }
  clear (self);
  return self->done;
}

const GstImagingFormatTable gst_imaging_format_png = {
    .name = "PNG",
    .open = png_open,
    .read = png_read,
    .close = png_close,
    .create = png_create,
    .write = png_write_page,
    .discard = png_discard,
    .types = GST_IMAGING_FORMAT_TYPE (U8) | GST_IMAGING_FORMAT_TYPE (U16) |
             GST_IMAGING_FORMAT_TYPE (BOOL),
    .takes = TAKES,
    .shows_rgb = TRUE,
};
