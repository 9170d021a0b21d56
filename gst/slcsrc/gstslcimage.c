/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstslcimage.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "files/gstimagingfile.h"

ImkType
gst_slc_format_type (GstSlcFormat format, ImkType automatic)
{
  const ImkType types[] = {
      [GST_SLC_FORMAT_AUTO] = automatic,
      [GST_SLC_FORMAT_CI16] = IMK_TYPE_CI16,
      [GST_SLC_FORMAT_CF32] = IMK_TYPE_CF32,
      [GST_SLC_FORMAT_F32] = IMK_TYPE_F32,
  };

  return types[format];
}

gsize
gst_slc_image_line_size (const GstSlcImage *self)
{
  return self->info.width * imk_type_size (self->info.type);
}

void
gst_slc_image_free (GstSlcImage *self)
{
  if (!self)
    return;
  if (self->fd >= 0)
    close (self->fd);
  g_clear_pointer (&self->dataset, self->close);
  gst_imaging_nd_array_free (self->npy);
  g_free (self->path);
  g_free (self->other);
  g_free (self->contradiction);
  gst_insar_place_clear (&self->place);
  g_free (self);
}

/* --- raw samples ---------------------------------------------------------- */

/* Reads whole buffers with one call each, ahead of which the system reads. */
static gboolean
read_raw (GstSlcImage *self, guint64 first, guint n_lines, gpointer data,
    GError **error)
{
  gsize line_size = gst_slc_image_line_size (self);
  gsize size = n_lines * line_size, n = 0;
  off_t offset = (off_t) (first * line_size);
  gssize got = 1;

  while (n < size && got != 0) {
    got = pread (self->fd, (guint8 *) data + n, size - n, offset + (off_t) n);
    if (got < 0 && errno != EINTR)
      break;
    n += MAX (got, 0);
  }
  if (n == size)
    return TRUE;
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ,
      "Line %" G_GUINT64_FORMAT " of \"%s\" cannot be read: %s.",
      first + n / line_size, self->path,
      got == 0 ? "the file has become shorter" : g_strerror (errno));
  return FALSE;
}

static gboolean
open_file (GstSlcImage *self, const gchar *path, guint64 *size, GError **error)
{
  g_autoptr (GError) why = NULL;

  self->fd =
      gst_imaging_file_open (path, GST_IMAGING_FILE_MAX_STREAM, size, &why);
  if (self->fd < 0) {
    g_set_error_literal (error, GST_RESOURCE_ERROR,
        why->code == GST_IMAGING_FILE_ERROR_NOT_FOUND
            ? GST_RESOURCE_ERROR_NOT_FOUND
            : GST_RESOURCE_ERROR_OPEN_READ,
        why->message);
    return FALSE;
  }
  posix_fadvise (self->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  return TRUE;
}

/* A PRM file has the number of lines; more may follow, as GMTSAR's tools
 * leave some. Raw samples are all there is. */
static gboolean
check_size (GstSlcImage *self, guint64 size, GError **error)
{
  guint64 line_size = gst_slc_image_line_size (self);
  guint64 height = self->info.height ? self->info.height : size / line_size;

  if (self->info.height && size / line_size < height) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        "\"%s\" has %" G_GUINT64_FORMAT " bytes; %u lines of %u samples (%s) "
        "take %" G_GUINT64_FORMAT
        ". It is cut short, or the PRM file is another image's.",
        self->path, size, self->info.height, self->info.width,
        imk_type_name (self->info.type), line_size * self->info.height);
    return FALSE;
  }
  if (!self->info.height &&
      (height < 1 || height > GST_SLC_MAX_HEIGHT || size % line_size)) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        "\"%s\" has %" G_GUINT64_FORMAT
        " bytes; expected are 1 to %d lines of %u samples (%s), of %" G_GUINT64_FORMAT
        " bytes each.",
        self->path, size, GST_SLC_MAX_HEIGHT, self->info.width,
        imk_type_name (self->info.type), line_size);
    return FALSE;
  }
  self->info.height = (guint) height;
  self->rest = size % line_size;
  return TRUE;
}

/* Samples of an image are small against the range of their type, so their upper
 * bytes are alike; when the lower ones are, they stand in the other order. All
 * 0, they may be 8 bits that were scaled. */
static gboolean
integers_look_swapped (const gint16 *samples, gsize n)
{
  gdouble sum = 0, swapped = 0;
  guint low = 0;

  for (gsize i = 0; i < n; i++) {
    gint16 value = GINT16_FROM_LE (samples[i]);

    sum += ABS ((gdouble) value);
    swapped += ABS ((gdouble) (gint16) GUINT16_SWAP_LE_BE (value));
    low |= (guint) value & 0xff;
  }
  return low && sum > 4 * swapped;
}

/* Returns: whether @bits are a float32 from 1e-19 to 1e19, or 0 */
static gboolean
is_ordinary (guint32 bits)
{
  guint exponent = (bits >> 23) & 0xff;

  return (bits & 0x7fffffff) == 0 || (exponent > 64 && exponent < 190);
}

/* Floats in the other order are of any size, or no numbers. */
static gboolean
floats_look_swapped (const guint32 *samples, gsize n)
{
  gsize odd = 0, odd_swapped = 0;

  for (gsize i = 0; i < n; i++) {
    guint32 value = GUINT32_FROM_LE (samples[i]);

    odd += !is_ordinary (value);
    odd_swapped += !is_ordinary (GUINT32_SWAP_LE_BE (value));
  }
  return odd > n / 8 && odd_swapped < n / 100;
}

/* Of the middle of the image, as borders are often empty. */
static void
check_order (GstSlcImage *self)
{
  guint32 samples[4096];
  off_t middle =
      (off_t) self->info.height / 2 * (off_t) gst_slc_image_line_size (self);
  gssize got = pread (self->fd, samples, sizeof (samples), middle);

  if (got <= 0)
    return;
  self->looks_swapped =
      self->info.type == IMK_TYPE_CI16
          ? integers_look_swapped ((const gint16 *) samples, (gsize) got / 2)
          : floats_look_swapped (samples, (gsize) got / 4);
}

/* Returns: @self (transfer full), or NULL with @error set */
static GstSlcImage *
open_samples (GstSlcImage *self, const gchar *path, GError **error)
{
  guint64 size;

  self->path = gst_imaging_file_name (path);
  self->read = read_raw;
  if (open_file (self, path, &size, error) && check_size (self, size, error)) {
    check_order (self);
    return self;
  }
  gst_slc_image_free (self);
  return NULL;
}

GstSlcImage *
gst_slc_image_open_raw (
    const gchar *path, GstSlcFormat format, guint width, GError **error)
{
  GstSlcImage *self = g_new0 (GstSlcImage, 1);

  self->info.type = gst_slc_format_type (format, IMK_TYPE_CI16);
  self->info.width = width;
  return open_samples (self, path, error);
}

/* --- GMTSAR's ------------------------------------------------------------- */

GstSlcImage *
gst_slc_image_open_prm (
    const gchar *location, GstSlcFormat format, GError **error)
{
  g_autoptr (GstInsarPrm) prm = gst_insar_prm_load (location, error);
  g_autofree gchar *path = prm ? gst_insar_prm_find_slc (prm) : NULL;
  GstSlcImage *self;

  if (!prm)
    return NULL;
  self = g_new0 (GstSlcImage, 1);
  self->info = (GstInsarSlcInfo){
      .type = gst_slc_format_type (format, IMK_TYPE_CI16),
      .width = prm->width,
      .height = prm->height,
      .prf = prm->prf,
      .has_doppler = prm->has_fd1 && prm->prf > 0,
      .rshift = prm->rshift,
      .ashift = prm->ashift,
      .spacing = prm->spacing,
  };
  if (self->info.has_doppler)
    self->info.doppler = prm->fd1 / prm->prf;
  self->contradiction = g_steal_pointer (&prm->contradiction);
  self->other = gst_insar_prm_find_other (prm, path);
  return open_samples (self, path, error);
}
