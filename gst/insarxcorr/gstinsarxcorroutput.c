/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What insarxcorr's pad src gives: rows of patches. */
#include "gstinsarxcorr-private.h"

#include "gstinsarxcorrtext.h"

static GstBuffer *
gmtsar_text (const GstImagingResult *result)
{
  GString *text = g_string_sized_new (result->n_rows * 40);
  gsize size;

  for (guint i = 0; i < result->n_rows; i++) {
    const gdouble *row = result->values + (gsize) i * result->n_fields;

    gst_insar_text_append_row (text, row[IMK_INSARXCORR_X],
        row[IMK_INSARXCORR_DX], row[IMK_INSARXCORR_Y], row[IMK_INSARXCORR_DY],
        row[IMK_INSARXCORR_CORRELATION]);
  }
  size = text->len;
  return gst_buffer_new_wrapped (g_string_free (text, FALSE), size);
}

static GstBuffer *
make_buffer (const gchar *element_name, const GstImagingResult *result,
    const GstCaps *caps, gboolean *header_sent)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  GstBuffer *buffer;

  if (gst_structure_has_name (s, "text/x-gmtsar-xcorr")) {
    buffer = gmtsar_text (result);
  } else if (gst_structure_has_name (s, "text/csv")) {
    buffer =
        gst_imaging_results_to_csv (result, GST_CLOCK_TIME_NONE, !*header_sent);
    *header_sent = TRUE;
  } else {
    buffer = gst_buffer_copy (result->data);
  }
  GST_BUFFER_OFFSET (buffer) = result->frame;
  GST_BUFFER_OFFSET_END (buffer) = result->frame + 1;
  gst_imaging_results_attach (buffer, element_name, result);
  return buffer;
}

static GstFlowReturn
negotiate (GstImagingSrcPad *output, const GstImagingResult *result)
{
  GstCaps *offers = gst_caps_from_string ("text/x-gmtsar-xcorr; text/csv");

  gst_caps_append (
      offers, gst_imaging_results_tensor_caps (result, FALSE, 0, 1));
  return gst_imaging_src_pad_negotiate (
      output, GST_IMAGING_PREFER_OURS, offers);
}

GstFlowReturn
gst_insar_output_push_row (GstImagingSrcPad *output,
    const GstImagingResult *result, gboolean *header_sent)
{
  GstFlowReturn flow = gst_imaging_src_pad_is_negotiated (output)
                           ? GST_FLOW_OK
                           : negotiate (output, result);

  if (flow != GST_FLOW_OK)
    return flow;
  return gst_imaging_src_pad_push (
      output, make_buffer (GST_OBJECT_NAME (GST_PAD_PARENT (output)), result,
                  gst_imaging_src_pad_caps (output), header_sent));
}
