/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingformat.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#ifdef HAVE_EXIF
#include <libexif/exif-data.h>
#endif

/* A progressive picture has about 10. A small file with thousands of them
 * takes hours. */
#define MAX_SCANS 200

/* A call of libjpeg, which jumps where it fails */
typedef struct {
  struct jpeg_error_mgr errors; /* first: libjpeg has a pointer to it alone */
  struct jpeg_progress_mgr progress;
  struct jpeg_decompress_struct jpeg;
  jmp_buf failed;
  gchar text[JMSG_LENGTH_MAX];
  guint8 *upright; /* the file's pixels, before they are turned */
} Jpeg;

typedef struct {
  const GstImagingFormatFile *file;
  guint8 *bytes;
  guint width, height, channels, orientation;
} Reader;

static void
on_error (j_common_ptr jpeg)
{
  Jpeg *self = (Jpeg *) jpeg->err;

  jpeg->err->format_message (jpeg, self->text);
  longjmp (self->failed, 1);
}

/* A warning is a damaged file, whose missing pixels would be grey. */
static void
on_message (j_common_ptr jpeg, int level)
{
  if (level < 0)
    on_error (jpeg);
}

static void
on_progress (j_common_ptr jpeg)
{
  Jpeg *self = (Jpeg *) jpeg->err;

  if (self->jpeg.input_scan_number <= MAX_SCANS)
    return;
  g_strlcpy (self->text, "it has too many scans", sizeof (self->text));
  longjmp (self->failed, 1);
}

#ifdef HAVE_EXIF
static void
add_entry (ExifEntry *entry, void *data)
{
  const gchar *name =
      exif_tag_get_name_in_ifd (entry->tag, exif_entry_get_ifd (entry));
  gchar value[256];

  /* the picture is turned already: a copy with this card would be turned again
   */
  if (entry->tag == EXIF_TAG_ORIENTATION)
    return;
  if (name && exif_entry_get_value (entry, value, sizeof (value)) && *value)
    gst_imaging_format_add_card (data, name, value);
}

static void
add_entries (ExifContent *content, void *data)
{
  exif_content_foreach_entry (content, add_entry, data);
}

static guint
read_orientation (ExifData *exif)
{
  ExifEntry *entry =
      exif_content_get_entry (exif->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  guint value = 0;

  if (entry && entry->format == EXIF_FORMAT_SHORT && entry->size >= 2)
    value = exif_get_short (entry->data, exif_data_get_byte_order (exif));
  return value >= 1 && value <= 8 ? value : 0;
}
#endif

/* Adobe's programs write inks so that 0 is all of an ink. */
static void
add_inks (Jpeg *self, GPtrArray *cards)
{
  if (self->jpeg.out_color_space == JCS_CMYK)
    gst_imaging_format_add_card (cards, GST_IMAGING_FORMAT_COLOURS,
        self->jpeg.saw_Adobe_marker ? GST_IMAGING_FORMAT_INKS_INVERTED
                                    : GST_IMAGING_FORMAT_INKS);
}

static gboolean
read_exif (Reader *self, Jpeg *jpeg, GPtrArray *cards, GError **error)
{
  for (jpeg_saved_marker_ptr m = jpeg->jpeg.marker_list; m; m = m->next) {
    if (m->data_length < 6 || memcmp (m->data, "Exif\0", 6) != 0)
      continue;
#ifdef HAVE_EXIF
    ExifData *exif = exif_data_new_from_data (m->data, m->data_length);

    if (exif) {
      self->orientation = read_orientation (exif);
      exif_data_foreach_content (exif, add_entries, cards);
      exif_data_unref (exif);
    }
    return TRUE;
#else
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "says in its EXIF header how it is to be turned, and this build lacks "
        "libexif. Install libexif-dev and build again, or use PNG.");
#endif
  }
  return TRUE;
}

static gboolean
read_cards (Reader *self, Jpeg *jpeg, GstImagingNdArray *array, GError **error)
{
  GPtrArray *cards = g_ptr_array_new ();
  gboolean ok = read_exif (self, jpeg, cards, error);

  add_inks (jpeg, cards);
  gst_imaging_format_take_cards (array, cards);
  return ok;
}

static void
start (Jpeg *self, Reader *reader)
{
  jpeg_create_decompress (&self->jpeg);
  self->progress.progress_monitor = on_progress;
  self->jpeg.progress = &self->progress;
  jpeg_save_markers (&self->jpeg, JPEG_APP0 + 1, 0xffff);
  jpeg_mem_src (&self->jpeg, reader->bytes, reader->file->size);
  jpeg_read_header (&self->jpeg, TRUE);
  /* the definition, not the fastest approximation */
  self->jpeg.dct_method = JDCT_ISLOW;
  if (self->jpeg.jpeg_color_space == JCS_YCCK)
    self->jpeg.out_color_space = JCS_CMYK;
  jpeg_calc_output_dimensions (&self->jpeg);
}

/* Reads the header into @array, or the pixels into @values. */
static gboolean
decode (
    Reader *reader, GstImagingNdArray *array, guint8 *values, GError **error)
{
  g_autofree Jpeg *self = g_new0 (Jpeg, 1);
  gboolean ok = FALSE;

  self->jpeg.err = jpeg_std_error (&self->errors);
  self->errors.error_exit = on_error;
  self->errors.emit_message = on_message;
  if (setjmp (self->failed) == 0) {
    gsize stride;

    start (self, reader);
    reader->width = self->jpeg.output_width;
    reader->height = self->jpeg.output_height;
    reader->channels = (guint) self->jpeg.out_color_components;
    stride = (gsize) reader->width * reader->channels;
    ok = !array || read_cards (reader, self, array, error);
    if (values) {
      guint8 *rows = values;

      if (reader->orientation > 1)
        rows = self->upright = g_malloc (stride * reader->height);
      jpeg_start_decompress (&self->jpeg);
      while (self->jpeg.output_scanline < self->jpeg.output_height) {
        JSAMPROW row = rows + self->jpeg.output_scanline * stride;

        jpeg_read_scanlines (&self->jpeg, &row, 1);
      }
      jpeg_finish_decompress (&self->jpeg);
      if (self->upright)
        gst_imaging_format_orient (self->upright, reader->width, reader->height,
            reader->channels, reader->orientation, values);
    }
  } else {
    ok = gst_imaging_format_fail_damaged (reader->file, error, self->text);
  }
  jpeg_destroy_decompress (&self->jpeg);
  g_free (self->upright);
  return ok;
}

static void
jpeg_close (gpointer reader)
{
  Reader *self = reader;

  g_free (self->bytes);
  g_free (self);
}

static gpointer
jpeg_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  Reader *self = g_new0 (Reader, 1);
  gboolean turned;

  self->file = file;
  self->bytes = gst_imaging_format_load (file, error);
  if (!self->bytes || !decode (self, array, NULL, error)) {
    jpeg_close (self);
    return NULL;
  }
  turned = self->orientation >= 5;
  array->type = GST_IMAGING_ND_ARRAY_TYPE_U8;
  array->orientation = self->orientation;
  gst_imaging_format_set_dims (array, 1, turned ? self->width : self->height,
      turned ? self->height : self->width, self->channels);
  *n_pages = 1;
  return self;
}

static gboolean
jpeg_read (gpointer reader, guint64 page, gpointer values, GError **error)
{
  return decode (reader, NULL, values, error);
}

const GstImagingFormatTable gst_imaging_format_jpeg = {
    .name = "JPEG",
    .open = jpeg_open,
    .read = jpeg_read,
    .close = jpeg_close,
};
