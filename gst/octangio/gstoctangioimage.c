/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctangioimage.h"

#include <math.h>
#include <string.h>

#include "gstimagingquantity.h"

GstOctAngioOptics
gst_oct_angio_optics (GstBuffer *buffer)
{
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, GST_IMAGING_QUANTITY_META);
  GstOctAngioOptics optics = {.n_cameras = 0};
  const GstStructure *s;

  if (!meta)
    return optics;
  s = gst_custom_meta_get_structure (meta);
  gst_structure_get_double (s, "wavelength-first", &optics.wavelengths[0]);
  gst_structure_get_double (s, "wavelength-last", &optics.wavelengths[1]);
  gst_structure_get_double (s, "refractive-index", &optics.refractive_index);
  gst_structure_get_double (s, "depth-scale", &optics.depth_scale);
  gst_structure_get_double (s, "cameras", &optics.n_cameras);
  return optics;
}

gboolean
gst_oct_angio_is_backward (GstBuffer *buffer)
{
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, GST_IMAGING_QUANTITY_META);
  gboolean is_backward = FALSE;

  return meta &&
         gst_structure_get_boolean (gst_custom_meta_get_structure (meta),
             "is-backward", &is_backward) &&
         is_backward;
}

guint
gst_oct_angio_depth_scale (
    const GstOctAngioSettings *s, const GstOctAngioOptics *o)
{
  if (s->config.depth_scale > 0)
    return s->config.depth_scale;
  /* of a file it may be any number */
  return o->depth_scale >= 1 && o->depth_scale <= IMK_OCTANGIO_MAX_SCALE
             ? (guint) o->depth_scale
             : 1;
}

/* Returns: nm at the middle wavenumber; 0 when it is not known */
static gdouble
wavelength_of (const GstOctAngioSettings *s, const GstOctAngioOptics *o)
{
  if (s->wavelength_nm > 0)
    return s->wavelength_nm;
  return o->wavelengths[0] > 0 && o->wavelengths[1] > 0
             ? 2 / (1 / o->wavelengths[0] + 1 / o->wavelengths[1])
             : 0;
}

gdouble
gst_oct_angio_scale (const GstOctAngioSettings *s, const GstOctAngioOptics *o)
{
  gboolean falls = s->falling == GST_OCT_ANGIO_FALLING_AUTO
                       ? o->wavelengths[0] < o->wavelengths[1]
                       : s->falling == GST_OCT_ANGIO_FALLING_TRUE;
  gdouble sign = falls ? -1 : 1, wavelength = wavelength_of (s, o);
  gdouble n = s->refractive_index > 0 ? s->refractive_index
                                      : MAX (o->refractive_index, 1);

  if (wavelength == 0 || s->interval_us == 0)
    return sign;
  return sign * wavelength / (4 * G_PI * n * s->interval_us);
}

GstOctAngioQuantity
gst_oct_angio_quantity (
    const GstOctAngioSettings *s, const GstOctAngioOptics *o)
{
  gdouble most = G_PI * ABS (gst_oct_angio_scale (s, o));
  gboolean has_units = wavelength_of (s, o) > 0 && s->interval_us > 0;
  GstOctAngioQuantity q;

  switch (s->config.method) {
  case IMK_OCTANGIO_DOPPLER:
    q = (GstOctAngioQuantity){has_units ? "velocity" : "phase",
        has_units ? "mm/s" : "rad", FALSE, -most, most};
    break;
  case IMK_OCTANGIO_DECORRELATION:
  case IMK_OCTANGIO_COMPLEX_DECORRELATION:
    q = (GstOctAngioQuantity){"decorrelation", "1", FALSE, 0, 1};
    break;
  case IMK_OCTANGIO_SPECKLE_VARIANCE:
    q = (GstOctAngioQuantity){"variance", "dB", TRUE, 0, 60};
    break;
  default:
    q = (GstOctAngioQuantity){"level", "dB", TRUE, 0, 60};
    break;
  }
  if (s->range_min != s->range_max) {
    q.low = s->range_min;
    q.high = s->range_max;
  }
  return q;
}

static gdouble
value_of (const GstOctAngioQuantity *q, gfloat flow)
{
  return q->is_db ? 10 * log10 (MAX (flow, 1e-20)) : flow;
}

/* Black is no flow; from there red and yellow to larger depths, blue and cyan
 * to smaller ones. Without a sign grey. */
static void
colour (gdouble share, gboolean is_signed, guint8 rgb[3])
{
  gdouble flow = is_signed ? 2 * share - 1 : share, size = ABS (flow);
  guint8 first = (guint8) (255 * MIN (2 * size, 1) + 0.5);
  guint8 second = (guint8) (255 * CLAMP (2 * size - 1, 0, 1) + 0.5);

  if (!is_signed) {
    memset (rgb, (gint) (255 * share + 0.5), 3);
    return;
  }
  rgb[0] = flow > 0 ? first : 0;
  rgb[1] = second;
  rgb[2] = flow > 0 ? 0 : first;
}

void
gst_oct_angio_draw (const GstOctAngioQuantity *q, gboolean is_signed,
    const gfloat *flow, guint width, guint n_rows, const GstVideoInfo *info,
    guint8 *data)
{
  gdouble span = q->high - q->low;

  for (guint y = 0; y < n_rows; y++) {
    guint8 *row = info
                      ? data + (gsize) y * GST_VIDEO_INFO_PLANE_STRIDE (info, 0)
                      : data + (gsize) y * width * sizeof (gfloat);

    for (guint x = 0; x < width; x++) {
      gdouble value = value_of (q, flow[(gsize) y * width + x]);
      gdouble share = span != 0 ? CLAMP ((value - q->low) / span, 0, 1) : 0;

      if (!info)
        ((gfloat *) (gpointer) row)[x] = (gfloat) value;
      else if (GST_VIDEO_INFO_FORMAT (info) == GST_VIDEO_FORMAT_GRAY8)
        row[x] = (guint8) (255 * share + 0.5);
      else if (GST_VIDEO_INFO_FORMAT (info) == GST_VIDEO_FORMAT_GRAY16_LE)
        GST_WRITE_UINT16_LE (row + 2 * x, (guint16) (65535 * share + 0.5));
      else
        colour (share, is_signed, row + 3 * x);
    }
  }
}
