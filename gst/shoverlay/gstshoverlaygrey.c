/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshoverlaygrey.h"

#include <math.h>

enum { MAX_VALUES = 65536, MAX_SAMPLES = 1 << 16 };

static guint
sample_at (const GstVideoFrame *frame, gint x, gint y)
{
  const guint8 *row = (const guint8 *) GST_VIDEO_FRAME_PLANE_DATA (frame, 0) +
                      (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0);

  return GST_VIDEO_FRAME_FORMAT (frame) == GST_VIDEO_FORMAT_GRAY8
             ? row[x]
             : GST_READ_UINT16_LE (row + 2 * (gsize) x);
}

/* The value that @part of the counted samples do not reach. */
static gint
quantile (const guint32 *histogram, guint64 n, gdouble part)
{
  guint64 below = (guint64) (part * (gdouble) n), sum = 0;
  gint value = 0;

  while (value < MAX_VALUES - 1 && (sum += histogram[value]) <= below)
    value++;
  return value;
}

static GstShOverlayLevels
levels_of (const GstVideoFrame *frame, const GstShOverlayLevels *wanted)
{
  gint width = GST_VIDEO_FRAME_WIDTH (frame);
  gint height = GST_VIDEO_FRAME_HEIGHT (frame);
  gint step = 1 + (gint) sqrt ((gdouble) width * height / MAX_SAMPLES);
  GstShOverlayLevels levels = *wanted;
  g_autofree guint32 *histogram = NULL;
  guint64 n = 0;

  if (wanted->black >= 0 && wanted->white >= 0)
    return levels;
  histogram = g_new0 (guint32, MAX_VALUES);
  for (gint y = 0; y < height; y += step)
    for (gint x = 0; x < width; x += step, n++)
      histogram[sample_at (frame, x, y)]++;
  if (levels.black < 0)
    levels.black = quantile (histogram, n, 0.1);
  if (levels.white < 0)
    levels.white = MAX (quantile (histogram, n, 0.998), levels.black + 8);
  return levels;
}

void
gst_sh_overlay_paint_grey (const GstVideoFrame *in, GstVideoFrame *out,
    const GstShOverlayLevels *wanted)
{
  GstShOverlayLevels levels = levels_of (in, wanted);
  gdouble range = MAX (levels.white - levels.black, 1);
  guint n_values =
      GST_VIDEO_FRAME_FORMAT (in) == GST_VIDEO_FORMAT_GRAY8 ? 256 : MAX_VALUES;
  g_autofree guint32 *grey = g_new (guint32, n_values);

  for (guint v = 0; v < n_values; v++) {
    gdouble part = CLAMP (((gdouble) v - levels.black) / range, 0, 1);

    /* the same in three bytes, whatever the order of the colours; the fourth
     * counts for nothing, but converters may take it for opacity */
    grey[v] = (guint32) (pow (part, 1 / levels.gamma) * 255 + 0.5) * 0x010101 |
              0xff000000;
  }
  for (gint y = 0; y < GST_VIDEO_FRAME_HEIGHT (in); y++) {
    guint32 *to =
        (guint32 *) ((guint8 *) GST_VIDEO_FRAME_PLANE_DATA (out, 0) +
                     (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (out, 0));

    for (gint x = 0; x < GST_VIDEO_FRAME_WIDTH (in); x++)
      to[x] = grey[sample_at (in, x, y)];
  }
}
