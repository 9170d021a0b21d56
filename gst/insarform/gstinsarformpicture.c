/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarformpicture.h"

#include <math.h>
#include <string.h>

#include "gstimagingpicture.h"

const GstInsarBand gst_insar_picture_bands[GST_INSAR_N_PICTURES] = {
    [GST_INSAR_PICTURE_PHASE] = {"phase", "rad"},
    [GST_INSAR_PICTURE_COHERENCE] = {"coherence", ""},
    [GST_INSAR_PICTURE_AMPLITUDE] = {"amplitude", "counts"},
    [GST_INSAR_PICTURE_INTERFEROGRAM] = {"interferogram", "counts^2"},
    [GST_INSAR_PICTURE_REMOVED] = {"removed", "rad"},
};

/* Returns: (transfer full): what the pad's template says, of this size */
static GstCaps *
offer_caps (GstPad *pad, GstInsarPicture picture, const GstInsarCells *cells)
{
  GstCaps *caps = gst_caps_normalize (gst_pad_get_pad_template_caps (pad));
  g_autofree gchar *dims = g_strdup_printf ("%d:%u:%u:1",
      picture == GST_INSAR_PICTURE_INTERFEROGRAM ? 2 : 1, cells->width,
      cells->height);

  caps = gst_caps_make_writable (caps);
  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    GstStructure *s = gst_caps_get_structure (caps, i);

    if (gst_structure_has_name (s, "other/tensors"))
      gst_structure_set (s, "dimensions", G_TYPE_STRING, dims, "framerate",
          GST_TYPE_FRACTION, 0, 1, NULL);
    else
      gst_structure_set (s, "width", G_TYPE_INT, cells->width, "height",
          G_TYPE_INT, cells->height, NULL);
    if (gst_structure_has_name (s, "video/x-raw"))
      gst_structure_set (s, "framerate", GST_TYPE_FRACTION, 0, 1,
          "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1, NULL);
  }
  return caps;
}

/* --- the image
 * ---------------------------------------------------------------- */

void
gst_insar_picture_put_floats (
    GstInsarPicture picture, const gfloat *cells, guint n, gfloat *to)
{
  ImkInsarformChannel channel = picture == GST_INSAR_PICTURE_COHERENCE
                                    ? IMK_INSARFORM_COHERENCE
                                    : IMK_INSARFORM_AMPLITUDE;

  for (guint i = 0; i < n; i++, cells += IMK_INSARFORM_N_CHANNELS)
    if (picture == GST_INSAR_PICTURE_INTERFEROGRAM)
      memcpy (to + 2 * i, cells + IMK_INSARFORM_RE, 2 * sizeof (gfloat));
    else if (picture == GST_INSAR_PICTURE_PHASE)
      to[i] = cells[IMK_INSARFORM_AMPLITUDE] > 0
                  ? atan2f (cells[IMK_INSARFORM_IM], cells[IMK_INSARFORM_RE])
                  : NAN; /* 0 is a phase */
    else if (picture == GST_INSAR_PICTURE_REMOVED)
      to[i] = cells[IMK_INSARFORM_AMPLITUDE] > 0 ? cells[IMK_INSARFORM_REMOVED]
                                                 : NAN;
    else
      to[i] = cells[channel];
}

static void
put_pixels (GstInsarPicture picture, const GstInsarCells *c, guint y,
    guint bits, gpointer to)
{
  const gfloat *row =
      c->values + (gsize) y * c->width * IMK_INSARFORM_N_CHANNELS;
  gboolean coherence = picture == GST_INSAR_PICTURE_COHERENCE;
  ImkInsarformChannel channel =
      coherence ? IMK_INSARFORM_COHERENCE : IMK_INSARFORM_AMPLITUDE;
  gfloat full = coherence ? 1 : c->full;

  if (picture == GST_INSAR_PICTURE_PHASE)
    imk_insarform_phase_to_rgb (row, c->width, c->shade, c->full, to);
  else if (bits == 16)
    imk_insarform_to_u16 (row, c->width, channel, full, to);
  else
    imk_insarform_to_u8 (row, c->width, channel, full, to);
}

/* Returns: (transfer full) (nullable) */
static GstBuffer *
make_buffer (GstInsarPicture picture, const GstInsarCells *c, GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  gboolean is_video = gst_structure_has_name (s, "video/x-raw");
  guint n_floats = picture == GST_INSAR_PICTURE_INTERFEROGRAM ? 2 : 1;
  gsize stride = c->width * n_floats * sizeof (gfloat);
  GstVideoInfo info;
  GstBuffer *buffer;
  GstMapInfo map;

  if (is_video && !gst_imaging_video_info_from_caps (&info, caps))
    return NULL;
  if (is_video)
    stride = GST_VIDEO_INFO_PLANE_STRIDE (&info, 0);
  buffer = gst_buffer_new_allocate (NULL, c->height * stride, NULL);
  if (!buffer || !gst_buffer_map (buffer, &map, GST_MAP_WRITE)) {
    gst_clear_buffer (&buffer);
    return NULL;
  }
  for (guint y = 0; y < c->height; y++)
    if (is_video)
      put_pixels (picture, c, y, GST_VIDEO_INFO_COMP_DEPTH (&info, 0),
          map.data + y * stride);
    else
      gst_insar_picture_put_floats (picture,
          c->values + (gsize) y * c->width * IMK_INSARFORM_N_CHANNELS, c->width,
          (gfloat *) (map.data + y * stride));
  gst_buffer_unmap (buffer, &map);
  GST_BUFFER_OFFSET (buffer) = 0;
  GST_BUFFER_PTS (buffer) = 0;
  return buffer;
}

/* The colours of a phase are no scale, and pairs of numbers no quantity. */
static void
describe (GstBuffer *buffer, GstInsarPicture picture, const GstInsarCells *c,
    GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  const gchar *format = gst_structure_get_string (s, "format");
  gboolean is_video = gst_structure_has_name (s, "video/x-raw");
  gdouble full = picture == GST_INSAR_PICTURE_AMPLITUDE ? c->full : 1;

  if (picture == GST_INSAR_PICTURE_INTERFEROGRAM ||
      (picture == GST_INSAR_PICTURE_PHASE && is_video))
    return;
  if (!is_video)
    full = 1;
  else
    full /= g_str_equal (format, "GRAY8") ? 255 : 65535;
  gst_imaging_quantity_attach (buffer, gst_insar_picture_bands[picture].name,
      gst_insar_picture_bands[picture].unit, full, 0, c->axes,
      G_N_ELEMENTS (c->axes));
}

GstFlowReturn
gst_insar_picture_push (GstImagingSrcPad *output, GstInsarPicture picture,
    const GstInsarCells *cells, GstInsarPair *pair)
{
  GstCaps *offers = offer_caps (GST_PAD (output), picture, cells);
  GstFlowReturn flow =
      gst_imaging_src_pad_negotiate (output, GST_IMAGING_PREFER_OURS, offers);
  GstBuffer *buffer;

  if (flow != GST_FLOW_OK)
    return flow;
  buffer = make_buffer (picture, cells, gst_imaging_src_pad_caps (output));
  if (!buffer)
    return GST_FLOW_ERROR;
  gst_insar_pair_describe (pair, buffer);
  describe (buffer, picture, cells, gst_imaging_src_pad_caps (output));
  gst_imaging_engine_sign (pair->engine, buffer);
  return gst_imaging_src_pad_push (output, buffer);
}
