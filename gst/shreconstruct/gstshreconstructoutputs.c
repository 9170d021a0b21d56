/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructoutputs.h"

#include "gstshreconstructtensors.h"
#include "gstshreconstructwavefront.h"

enum { WAVEFRONT, MIRROR_0, N_PADS = MIRROR_0 + GST_SH_RECONSTRUCT_N_MIRRORS };

static const gchar *const results_names[] = {"results"};
static const gchar *const pad_names[N_PADS] = {
    "wavefront", "mirror_0", "mirror_1", "mirror_2", "mirror_3"};

struct _GstShReconstructOutputs {
  GstImagingSrcPads *results, *pads;
};

static GstStaticPadTemplate templates[] = {
    GST_STATIC_PAD_TEMPLATE ("results", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_IMAGING_RESULTS_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("wavefront", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_SH_RECONSTRUCT_WAVEFRONT_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("mirror_%u", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_SH_RECONSTRUCT_TENSOR_CAPS)),
};

void
gst_sh_reconstruct_outputs_add_templates (GstElementClass *klass)
{
  for (guint i = 0; i < G_N_ELEMENTS (templates); i++)
    gst_element_class_add_static_pad_template (klass, &templates[i]);
}

GstShReconstructOutputs *
gst_sh_reconstruct_outputs_new (GstElement *element, GstPadQueryFunction query)
{
  GstShReconstructOutputs *self = g_new0 (GstShReconstructOutputs, 1);

  self->results = gst_imaging_src_pads_new (
      element, GST_TYPE_IMAGING_RESULTS_PAD, results_names, 1);
  self->pads = gst_imaging_src_pads_new (
      element, GST_TYPE_IMAGING_SRC_PAD, pad_names, N_PADS);
  gst_imaging_src_pads_set_functions (self->results, NULL, query);
  gst_imaging_src_pads_set_functions (self->pads, NULL, query);
  return self;
}

void
gst_sh_reconstruct_outputs_free (GstShReconstructOutputs *self)
{
  gst_imaging_src_pads_free (self->results);
  gst_imaging_src_pads_free (self->pads);
  g_free (self);
}

void
gst_sh_reconstruct_outputs_reset (GstShReconstructOutputs *self)
{
  g_autoptr (GstImagingResultsPad) results =
      gst_sh_reconstruct_outputs_get_results (self);

  if (results)
    gst_imaging_results_pad_reset (results);
  gst_imaging_src_pads_reset (self->results);
  gst_imaging_src_pads_reset (self->pads);
}

/* --- pads ----------------------------------------------------------------- */

/* The first mirror that nobody has, or that of the name. Returns: (transfer
 * full) (nullable): a template of its own, as names of pads are those of
 * templates */
static GstPadTemplate *
mirror_template (GstShReconstructOutputs *self, GstPadTemplate *pad_template,
    const gchar *name)
{
  for (guint i = MIRROR_0; i < N_PADS; i++)
    if (name ? g_str_equal (name, pad_names[i])
             : !gst_imaging_src_pads_has (self->pads, i))
      return gst_pad_template_new (pad_names[i], GST_PAD_SRC, GST_PAD_REQUEST,
          gst_pad_template_get_caps (pad_template));
  return NULL;
}

GstPad *
gst_sh_reconstruct_outputs_request (GstShReconstructOutputs *self,
    GstPadTemplate *pad_template, const gchar *name)
{
  const gchar *kind = GST_PAD_TEMPLATE_NAME_TEMPLATE (pad_template);
  GstPadTemplate *mirror;
  GstPad *pad;

  if (g_str_equal (kind, "results"))
    return gst_imaging_src_pads_request (self->results, pad_template);
  if (g_str_equal (kind, "wavefront"))
    return gst_imaging_src_pads_request (self->pads, pad_template);
  mirror = mirror_template (self, pad_template, name);
  if (!mirror)
    return NULL;
  pad = gst_imaging_src_pads_request (self->pads, mirror);
  gst_object_unref (mirror);
  return pad;
}

void
gst_sh_reconstruct_outputs_release (GstShReconstructOutputs *self, GstPad *pad)
{
  if (!GST_IS_IMAGING_RESULTS_PAD (pad)) {
    gst_imaging_src_pads_release (self->pads, pad);
    return;
  }
  gst_imaging_results_pad_close (GST_IMAGING_RESULTS_PAD (pad));
  gst_imaging_src_pads_release (self->results, pad);
}

void
gst_sh_reconstruct_outputs_event (
    GstShReconstructOutputs *self, GstEvent *event)
{
  g_autoptr (GstImagingResultsPad) results = NULL;

  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS)
    return;
  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS ||
      GST_EVENT_TYPE (event) == GST_EVENT_GAP)
    results = gst_sh_reconstruct_outputs_get_results (self);
  if (results)
    gst_imaging_results_pad_negotiate_text (results);
  gst_imaging_src_pads_event (self->results, event);
  gst_imaging_src_pads_event (self->pads, event);
}

GstImagingResultsPad *
gst_sh_reconstruct_outputs_get_results (GstShReconstructOutputs *self)
{
  return (GstImagingResultsPad *) gst_imaging_src_pads_get (self->results, 0);
}

GstImagingSrcPad *
gst_sh_reconstruct_outputs_get_wavefront (GstShReconstructOutputs *self)
{
  return gst_imaging_src_pads_get (self->pads, WAVEFRONT);
}

gboolean
gst_sh_reconstruct_outputs_has_mirror (
    GstShReconstructOutputs *self, guint mirror)
{
  return gst_imaging_src_pads_has (self->pads, MIRROR_0 + mirror);
}

GstImagingSrcPad *
gst_sh_reconstruct_outputs_get_mirror (
    GstShReconstructOutputs *self, guint mirror)
{
  return gst_imaging_src_pads_get (self->pads, MIRROR_0 + mirror);
}

GstFlowReturn
gst_sh_reconstruct_combine (GstFlowReturn a, GstFlowReturn b)
{
  if (a == GST_FLOW_NOT_LINKED)
    return b;
  if (b == GST_FLOW_NOT_LINKED)
    return a;
  if (a < GST_FLOW_EOS || b < GST_FLOW_EOS)
    return MIN (a, b);
  return a == GST_FLOW_EOS ? b : a;
}
