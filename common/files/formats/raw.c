/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingformat.h"

#include <math.h>
#include <string.h>

#include <libraw/libraw.h>

typedef struct {
  const GstImagingFormatFile *file;
  guint8 *bytes;
  guint width, height, channels;
} Reader;

static gboolean
fail (Reader *self, int code, GError **error)
{
  if (code == LIBRAW_FILE_UNSUPPORTED)
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "is no camera RAW that libraw %s knows. Convert it to DNG or to TIFF "
        "of 16 bits.",
        libraw_version ());
  return gst_imaging_format_fail_damaged (
      self->file, error, libraw_strerror (code));
}

/* Linear: the sensor's counts less its black level, with 65535 for what the
 * sensor can tell at most; of the camera's own colours, which are neither
 * balanced nor converted. Missing colours of a pixel are interpolated. */
static libraw_data_t *
start (Reader *self, gboolean sizes_alone, GError **error)
{
  libraw_data_t *raw = libraw_init (0);
  int code;

  if (!raw) {
    gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_MEMORY, "does not fit in memory.");
    return NULL;
  }
  raw->params.output_bps = 16;
  raw->params.gamm[0] = raw->params.gamm[1] = 1;
  raw->params.no_auto_bright = 1;
  raw->params.adjust_maximum_thr = 0; /* do not scale by the brightest pixel */
  raw->params.output_color = 0;
  raw->params.use_camera_matrix = 0;
  for (guint i = 0; i < 4; i++)
    raw->params.user_mul[i] = 1;
  code = libraw_open_buffer (raw, self->bytes, self->file->size);
  if (code == LIBRAW_SUCCESS && sizes_alone) /* nothing can follow it */
    code = libraw_adjust_sizes_info_only (raw);
  if (code == LIBRAW_SUCCESS)
    return raw;
  fail (self, code, error);
  libraw_close (raw);
  return NULL;
}

/* libraw also takes a file without any header for that of a camera whose files
 * have this size: a dump of 640 x 480 x u16 is one of Kodak's C603. Zeros of
 * the same size are then one, too. */
static gboolean
is_known_by_size_alone (Reader *self, const libraw_data_t *raw)
{
  g_autofree guint8 *zeros = g_try_malloc0 (self->file->size);
  libraw_data_t *other = zeros ? libraw_init (0) : NULL;
  gboolean is_same =
      other &&
      libraw_open_buffer (other, zeros, self->file->size) == LIBRAW_SUCCESS &&
      g_str_equal (other->idata.make, raw->idata.make) &&
      g_str_equal (other->idata.model, raw->idata.model);

  if (other)
    libraw_close (other);
  return is_same;
}

static void
read_cards (const libraw_data_t *raw, GstImagingNdArray *array)
{
  GPtrArray *cards = g_ptr_array_new ();
  const gchar *texts[][2] = {
      {"Make", raw->idata.make},
      {"Model", raw->idata.model},
      {"ISO", NULL},
      {"ExposureTime", NULL},
      {"FNumber", NULL},
      {"FocalLength", NULL},
  };
  const gfloat numbers[] = {0, 0, raw->other.iso_speed, raw->other.shutter,
      raw->other.aperture, raw->other.focal_len};

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    gchar number[G_ASCII_DTOSTR_BUF_SIZE];

    if (!texts[i][1] && numbers[i] > 0 && isfinite (numbers[i]))
      texts[i][1] = g_ascii_formatd (number, sizeof (number), "%g", numbers[i]);
    if (texts[i][1] && *texts[i][1])
      gst_imaging_format_add_card (cards, texts[i][0], texts[i][1]);
  }
  gst_imaging_format_take_cards (array, cards);
}

static void
raw_close (gpointer reader)
{
  Reader *self = reader;

  g_free (self->bytes);
  g_free (self);
}

static gpointer
raw_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  /* libraw's flips as EXIF's orientations */
  static const guint orientations[] = {1, 2, 4, 3, 5, 8, 6, 7};
  Reader *self = g_new0 (Reader, 1);
  libraw_data_t *raw = NULL;

  self->file = file;
  self->bytes = gst_imaging_format_load (file, error);
  if (self->bytes)
    raw = start (self, TRUE, error);
  if (raw && is_known_by_size_alone (self, raw)) {
    gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "has no header that describes its samples: only its size is that of a "
        "photograph of a %s %s. Say what it is, and make it .npy: "
        "numpy.save (\"x.npy\", numpy.fromfile (FILE, \"u2\").reshape (HEIGHT, "
        "WIDTH)). gst-imaging oct takes --samples and --lines.",
        raw->idata.make, raw->idata.model);
    libraw_close (raw);
    raw = NULL;
  }
  if (!raw) {
    raw_close (self);
    return NULL;
  }
  self->width = raw->sizes.iwidth;
  self->height = raw->sizes.iheight;
  self->channels = raw->idata.colors == 1 ? 1 : 3;
  array->type = GST_IMAGING_ND_ARRAY_TYPE_U16;
  array->orientation = orientations[raw->sizes.flip & 7];
  read_cards (raw, array);
  gst_imaging_format_set_dims (
      array, 1, self->height, self->width, self->channels);
  libraw_close (raw);
  *n_pages = 1;
  return self;
}

static gboolean
raw_read (gpointer reader, guint64 page, gpointer values, GError **error)
{
  Reader *self = reader;
  libraw_data_t *raw = start (self, FALSE, error);
  libraw_processed_image_t *image = NULL;
  int code;
  gboolean ok;

  if (!raw)
    return FALSE;
  code = libraw_unpack (raw);
  if (code == LIBRAW_SUCCESS)
    code = libraw_dcraw_process (raw);
  if (code == LIBRAW_SUCCESS)
    image = libraw_dcraw_make_mem_image (raw, &code);
  if (!image)
    ok = fail (self, code, error);
  else if (image->bits != 16 || image->width != self->width ||
           image->height != self->height || image->colors != self->channels)
    ok = gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "is a camera RAW of %u x %u pixels and %u colours, expected are "
        "%u x %u and %u. Convert it to TIFF of 16 bits.",
        image->width, image->height, image->colors, self->width, self->height,
        self->channels);
  else {
    memcpy (values, image->data,
        (gsize) self->width * self->height * self->channels * 2);
    ok = TRUE;
  }
  if (image)
    libraw_dcraw_clear_mem (image);
  libraw_close (raw);
  return ok;
}

const GstImagingFormatTable gst_imaging_format_raw = {
    .name = "camera RAW",
    .open = raw_open,
    .read = raw_read,
    .close = raw_close,
};
