/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewvideo.h"

#include <math.h>
#include <string.h>

/* Whether each pixel is one whole grey number in the byte order of the host */
static gboolean
is_array (const GstVideoFormatInfo *f)
{
  const gboolean is_le = (f->flags & GST_VIDEO_FORMAT_FLAG_LE) != 0;

  return GST_VIDEO_FORMAT_INFO_IS_GRAY (f) && f->n_components == 1 &&
         f->depth[0] >= 8 && f->shift[0] == 0 &&
         !(f->flags & GST_VIDEO_FORMAT_FLAG_COMPLEX) &&
         (f->depth[0] == 8 || is_le == (G_BYTE_ORDER == G_LITTLE_ENDIAN));
}

/* BT.601, where the caps tell no matrix. */
static void
tell_meaning (GstImagingViewLayout *to, const GstVideoInfo *info)
{
  const GstVideoFormatInfo *f = info->finfo;
  GstImagingViewMeaning *m = &to->meaning;
  gint offset[GST_VIDEO_MAX_COMPONENTS], scale[GST_VIDEO_MAX_COMPONENTS];

  m->white = to->type == GST_IMAGING_ND_ARRAY_TYPE_U16 ? 65535 : 255;
  if (to->channels < 3)
    return;
  m->kind = GST_VIDEO_FORMAT_INFO_IS_YUV (f) ? GST_IMAGING_VIEW_YUV
                                             : GST_IMAGING_VIEW_RGB;
  m->names = m->kind == GST_IMAGING_VIEW_YUV ? "YUVA" : "RGBA";
  gst_video_color_range_offsets (m->kind == GST_IMAGING_VIEW_YUV
                                     ? info->colorimetry.range
                                     : GST_VIDEO_COLOR_RANGE_0_255,
      f, offset, scale);
  for (guint c = 0; c < 3; c++) {
    const gboolean is_palette = GST_VIDEO_FORMAT_INFO_HAS_PALETTE (f);

    m->offset[c] = is_palette ? 0 : offset[c];
    m->scale[c] = is_palette ? 255 : scale[c];
  }
  if (!gst_video_color_matrix_get_Kr_Kb (
          info->colorimetry.matrix, &m->kr, &m->kb))
    gst_video_color_matrix_get_Kr_Kb (
        GST_VIDEO_COLOR_MATRIX_BT601, &m->kr, &m->kb);
}

/* Of a frame, or of the one field that a buffer has */
static guint
rows_of (const GstVideoFrame *frame)
{
  return (guint) GST_VIDEO_INFO_FIELD_HEIGHT (&frame->info);
}

/* Tiles have no rows: they must be where the format alone puts them. */
static gboolean
tiles_are_whole (const GstVideoFrame *frame)
{
  const GstVideoInfo *info = &frame->info;
  GstVideoInfo plain;

  return gst_video_info_set_format (&plain, GST_VIDEO_INFO_FORMAT (info),
             (guint) info->width, (guint) info->height) &&
         memcmp (plain.offset, info->offset, sizeof (plain.offset)) == 0 &&
         memcmp (plain.stride, info->stride, sizeof (plain.stride)) == 0 &&
         gst_buffer_get_size (frame->buffer) >= plain.size;
}

static gboolean
plane_is_whole (const GstVideoFrame *frame, guint plane)
{
  const GstVideoFormatInfo *f = frame->info.finfo;
  const GstMapInfo *map = &frame->map[frame->meta ? plane : 0];
  const gssize stride = frame->info.stride[plane];
  const guint8 *data = frame->data[plane];
  gssize begin = data - map->data, end = begin, n_bytes = 0, n_rows = 1;

  for (guint c = 0; c < f->n_components; c++) {
    gssize width, n;

    if (f->plane[c] != plane)
      continue;
    width = GST_VIDEO_FORMAT_INFO_SCALE_WIDTH (f, c, frame->info.width);
    n = f->pixel_stride[c] > 0
            ? (width - 1) * f->pixel_stride[c] + (gssize) f->poffset[c] +
                  (f->depth[c] + f->shift[c] + 7) / 8
            : ABS (stride);
    n_bytes = MAX (n_bytes, n);
    n_rows = GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT (f, c, (gint) rows_of (frame));
  }
  if (GST_VIDEO_FORMAT_INFO_HAS_PALETTE (f) && plane == 1) {
    n_bytes = 256 * sizeof (guint32);
    n_rows = 1;
  }
  if (stride < 0)
    begin += stride * (n_rows - 1);
  else
    end += stride * (n_rows - 1);
  return data && begin >= 0 && end + n_bytes <= (gssize) map->size;
}

gboolean
gst_imaging_view_video_is_whole (const GstVideoFrame *frame)
{
  if (GST_VIDEO_FORMAT_INFO_IS_TILED (frame->info.finfo))
    return tiles_are_whole (frame);
  for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES (frame); p++)
    if (!plane_is_whole (frame, p))
      return FALSE;
  return TRUE;
}

gboolean
gst_imaging_view_video_lay_out (
    GstImagingViewLayout *to, const GstVideoFrame *frame)
{
  const GstVideoFormatInfo *f = frame->info.finfo;
  const gboolean is_deep = f->depth[0] > 8;
  const gsize size = is_deep ? 2 : 1;

  *to = (GstImagingViewLayout){
      .type = is_deep ? GST_IMAGING_ND_ARRAY_TYPE_U16
                      : GST_IMAGING_ND_ARRAY_TYPE_U8,
      .width = (guint) GST_VIDEO_FRAME_WIDTH (frame),
      .height = rows_of (frame),
      .channels = GST_VIDEO_FORMAT_INFO_HAS_PALETTE (f) ? 3 : f->n_components,
  };
  tell_meaning (to, &frame->info);
  if (is_array (f)) {
    to->first = GST_VIDEO_FRAME_PLANE_DATA (frame, 0);
    to->row = GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0);
    to->pixel = to->channel = size;
    return TRUE;
  }
  if (!f->unpack_func)
    return FALSE;
  to->unpacked = frame;
  /* some formats are unpacked in groups of pixels */
  to->line = g_malloc (((gsize) to->width + 64) * 4 * sizeof (guint16));
  return TRUE;
}

/* GStreamer unpacks to A, Y, U, V or A, R, G, B of 8 or 16 bits, chroma of the
 * nearest sample, and a depth between them in the highest bits. */
void
gst_imaging_view_video_unpack (
    const GstImagingViewLayout *from, guint y, guint8 *to)
{
  static const guint order[] = {1, 2, 3, 0};
  const GstVideoFrame *frame = from->unpacked;
  const GstVideoFormatInfo *f = frame->info.finfo;
  const GstVideoFormatInfo *as = gst_video_format_get_info (f->unpack_format);
  const gboolean is_palette = GST_VIDEO_FORMAT_INFO_HAS_PALETTE (f);
  const gboolean is_wide = as->bits == 16;
  GstVideoPackFlags flags = GST_VIDEO_PACK_FLAG_TRUNCATE_RANGE;
  guint16 *words = (guint16 *) (gpointer) to;

  /* of mixed video some frames are progressive, and a field is as well */
  if (GST_VIDEO_FRAME_IS_INTERLACED (frame) &&
      GST_VIDEO_INFO_INTERLACE_MODE (&frame->info) !=
          GST_VIDEO_INTERLACE_MODE_ALTERNATE)
    flags |= GST_VIDEO_PACK_FLAG_INTERLACED;
  f->unpack_func (f, flags, from->line, (gpointer *) frame->data,
      frame->info.stride, 0, (gint) y, (gint) from->width);
  for (guint x = 0; x < from->width; x++)
    for (guint c = 0; c < from->channels; c++) {
      const guint at = 4 * x + order[c];
      const guint shift = is_palette ? 0 : as->depth[0] - f->depth[c];
      const guint v = is_wide
                          ? ((const guint16 *) (gconstpointer) from->line)[at]
                          : from->line[at];

      if (from->type == GST_IMAGING_ND_ARRAY_TYPE_U16)
        *words++ = (guint16) (v >> shift);
      else
        *to++ = (guint8) (v >> shift);
    }
}

/* Whether samples are R, G, B of 0 to white: white * (v / white) is v */
static gboolean
is_rgb (const GstImagingViewMeaning *m)
{
  gboolean ok = m->kind == GST_IMAGING_VIEW_RGB;

  for (guint c = 0; c < 3; c++)
    ok = ok && m->offset[c] <= 0 && m->scale[c] >= m->white;
  return ok;
}

void
gst_imaging_view_video_become_rgb (
    const GstImagingViewMeaning *m, guint channels, gsize n, gdouble *values)
{
  if (m->kind == GST_IMAGING_VIEW_PLAIN || (is_rgb (m) && channels == 3))
    return;
  for (gsize i = 0; i < n; i++, values += channels) {
    gdouble v[3];

    for (guint c = 0; c < 3; c++)
      v[c] = (values[c] - m->offset[c]) / m->scale[c];
    if (m->kind == GST_IMAGING_VIEW_YUV) {
      const gdouble r = v[0] + 2 * (1 - m->kr) * v[2];
      const gdouble b = v[0] + 2 * (1 - m->kb) * v[1];

      v[1] = (v[0] - m->kr * r - m->kb * b) / (1 - m->kr - m->kb);
      v[0] = r;
      v[2] = b;
    }
    for (guint c = 0; c < channels; c++) /* alpha is not shown */
      values[c] = c < 3 ? m->white * CLAMP (v[c], 0, 1) : NAN;
  }
}
