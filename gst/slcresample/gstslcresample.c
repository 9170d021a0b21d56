/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-slcresample
 * @title: slcresample
 * @short_description: brings an SLC image into the geometry of another
 *
 * Resamples the lines of a secondary image to the geometry of the reference.
 * The output at column r and line a is the input at
 *
 *   r + shift-r + stretch-r r + a-stretch-r a,
 *   a + shift-a + stretch-a r + a-stretch-a a
 *
 * which is GMTSAR's geometry. The numbers are those of a fit to
 * offsets, from a file with eight lines as insarxcorr's pad `fit` and insarfit
 * write them, or properties.
 *
 * Of the image only a band is kept. docs/reference/slcresample.md has the
 * formulas.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 slcsrc location=sec.PRM ! slcresample fit-location=fit.txt
 * reference-location=ref.PRM ! filesink location=sec.resampled.SLC
 * ]|
 */
#include "gstslcresample-private.h"

#include "insar/gstinsarprm.h"

GST_DEBUG_CATEGORY_STATIC (slcresample_debug);
#define GST_CAT_DEFAULT slcresample_debug

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_INSAR_SLC_CAPS ("{ ci16, cf32 }")));

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_INSAR_SLC_CAPS ("{ ci16, cf32 }")));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstSlcResample, gst_slc_resample,
    GST_TYPE_IMAGING_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        slcresample_debug, "slcresample", 0, "SAR images in another geometry"))
GST_ELEMENT_REGISTER_DEFINE (
    slcresample, "slcresample", GST_RANK_NONE, GST_TYPE_SLC_RESAMPLE)

/* --- the kernel ----------------------------------------------------------- */

/* The sum of fit-location and the properties. */
static void
add_geometry (const GstSlcResampleSettings *s, ImkSlcresampleConfig *c)
{
  const GstInsarPrmAlignment *fit = gst_imaging_setting_file_data (s->fit);

  for (guint i = 0; fit && i < IMK_SLCRESAMPLE_N_AXES; i++) {
    c->shift[i] += fit->shift[i];
    c->stretch[i] += fit->stretch[i];
    c->a_stretch[i] += fit->a_stretch[i];
  }
}

/* Precedence: properties, reference-location, input. */
static GstInsarSlcInfo
make_size (const GstSlcResampleSettings *s, const GstInsarSlcInfo *in)
{
  const GstInsarPrm *prm = gst_imaging_setting_file_data (s->reference);
  GstInsarSlcInfo out = *in;

  if (prm) {
    out.width = prm->width;
    out.height = prm->height;
    out.prf = prm->prf;
    out.spacing = prm->spacing;
  }
  if (s->config.out_width)
    out.width = s->config.out_width;
  if (s->config.out_height)
    out.height = s->config.out_height;
  out.rshift = out.ashift = 0;
  out.line_size = (gsize) out.width * imk_type_size (out.type);
  return out;
}

static ImkSlcresampleConfig
make_config (GstSlcResample *self, const GstInsarSlcInfo *out)
{
  const GstSlcResampleSettings *s =
      gst_imaging_settings_now (self->base.settings);
  const GstInsarSlcInfo *in = &self->in;
  ImkSlcresampleConfig c = s->config;

  add_geometry (s, &c);
  c.type = in->type;
  c.width = in->width;
  c.height = in->height;
  c.out_width = out->width;
  c.out_height = out->height;
  c.doppler = in->doppler;
  c.estimate_doppler =
      s->doppler == GST_SLC_RESAMPLE_DOPPLER_DATA ||
      (s->doppler == GST_SLC_RESAMPLE_DOPPLER_AUTO && !in->has_doppler);
  c.n_threads = gst_imaging_engine_n_threads (self->base.engine);
  return c;
}

static void
close_kernel (GstElement *element)
{
  g_clear_pointer (&GST_SLC_RESAMPLE (element)->kernel, imk_slcresample_free);
}

/* Keeps the current kernel on failure. */
static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  GstSlcResample *self = GST_SLC_RESAMPLE (element);
  GstInsarSlcInfo out =
      make_size (gst_imaging_settings_now (self->base.settings), &self->in);
  ImkSlcresampleConfig c = make_config (self, &out);
  ImkSlcresampleField field;
  ImkSlcresample *kernel;
  ImkStatus status = gst_slc_resample_field_make (
      gst_imaging_settings_now (self->base.settings), &out, &field, error);

  c.field = field.nx ? &field : NULL;
  if (status == IMK_OK)
    status = imk_slcresample_new (backend, &c, &kernel, error);
  if (status == IMK_OK) {
    close_kernel (element);
    self->kernel = kernel;
    self->covered = imk_slcresample_covered (&c);
    self->config = c;
    self->config.field = NULL;
    self->out = out;
  }
  gst_slc_resample_field_clear (&field);
  return status;
}

/* --- caps ----------------------------------------------------------------- */

static gboolean
is_complete (GstSlcResample *self)
{
  return !self->kernel ||
         imk_slcresample_pushed (self->kernel) == self->in.height ||
         imk_slcresample_line (self->kernel) == self->out.height;
}

/* Posts an error if lines are missing that the output needs. */
static gboolean
check_complete (GstSlcResample *self)
{
  if (is_complete (self))
    return TRUE;
  gst_insar_slc_post_end (GST_ELEMENT (self), "image", &self->in,
      imk_slcresample_pushed (self->kernel));
  return FALSE;
}

static gboolean
is_in_the_middle (GstSlcResample *self)
{
  return !is_complete (self) && imk_slcresample_pushed (self->kernel) > 0;
}

/* After a flush, settings made meanwhile apply to the repeated image. */
static void
begin_again (GstSlcResample *self)
{
  const ImkSlcresample *before = self->kernel;

  if (gst_imaging_settings_take (self->base.settings, GST_IMAGING_WHEN_NEXT_SET,
          GST_CLOCK_TIME_NONE) &&
      self->kernel != before)
    gst_slc_resample_begin_output (self);
}

static gboolean
set_caps (GstSlcResample *self, GstCaps *caps)
{
  gboolean ok;

  if (is_in_the_middle (self)) {
    GstCaps *before = gst_pad_get_current_caps (self->sinkpad);

    ok = gst_caps_is_equal (before, caps); /* sent again */
    gst_caps_unref (before);
    return ok || check_complete (self);
  }
  if (self->refused && gst_caps_is_equal (self->refused, caps))
    return FALSE; /* sent again with each buffer */
  gst_insar_slc_info_from_caps (&self->in, caps);
  if (gst_imaging_engine_set_caps (self->base.engine, caps, NULL))
    return gst_slc_resample_begin_output (self);
  gst_caps_replace (&self->refused, caps);
  return FALSE;
}

/* --- input ---------------------------------------------------------------- */

static GstFlowReturn
take_lines (GstSlcResample *self, ImkImage lines)
{
  GstFlowReturn flow = GST_FLOW_OK;
  ImkError error;

  while (flow == GST_FLOW_OK && lines.height > 0) {
    guint room = imk_slcresample_room (self->kernel);
    ImkImage part = lines;
    ImkStatus status;

    part.height = MIN (room, lines.height);
    status = imk_slcresample_push (self->kernel, &part, &error);
    if (status != IMK_OK) {
      gst_imaging_engine_post_error (self->base.engine, status, &error);
      return GST_FLOW_ERROR;
    }
    lines.data = (guint8 *) lines.data + part.height * lines.stride;
    lines.height -= part.height;
    flow = gst_slc_resample_push_ready (self);
  }
  if (flow == GST_FLOW_OK &&
      imk_slcresample_line (self->kernel) == self->out.height)
    flow = GST_FLOW_EOS; /* the rest of the image is not wanted */
  return flow;
}

static GstFlowReturn
gst_slc_resample_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstSlcResample *self = GST_SLC_RESAMPLE (parent);
  GstFlowReturn flow = GST_FLOW_ERROR;
  GstMapInfo map;

  if (gst_insar_slc_map_lines (self->base.engine, pad, buffer, &map)) {
    if (gst_insar_slc_check_lines (pad, self->kernel ? &self->in : NULL,
            map.size, GST_BUFFER_OFFSET (buffer),
            self->kernel ? imk_slcresample_pushed (self->kernel) : 0)) {
      self->lines = buffer;
      flow = take_lines (
          self, gst_insar_slc_lines (&self->in, map.data, map.size));
      self->lines = NULL;
    }
    gst_buffer_unmap (buffer, &map);
  }
  gst_buffer_unref (buffer);
  return flow;
}

static gboolean
gst_slc_resample_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstSlcResample *self = GST_SLC_RESAMPLE (parent);
  GstCaps *caps;
  gboolean ok;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, caps);
    gst_event_unref (event);
    return ok;
  case GST_EVENT_SEGMENT: /* the output has a segment of its own */
    self->seqnum = gst_event_get_seqnum (event);
    self->segment_sent = FALSE;
    gst_event_unref (event);
    return TRUE;
  case GST_EVENT_FLUSH_STOP:
    if (self->kernel)
      imk_slcresample_rewind (self->kernel);
    self->segment_sent = FALSE;
    self->n_reported = 0;
    ok = gst_pad_event_default (pad, parent, event);
    begin_again (self);
    return ok;
  case GST_EVENT_EOS:
    check_complete (self);
    gst_slc_resample_send_segment (self);
    break;
  case GST_EVENT_GAP: /* must follow the segment, which follows the caps */
    if (!gst_pad_has_current_caps (self->srcpad)) {
      gst_event_unref (event);
      return TRUE;
    }
    gst_slc_resample_send_segment (self);
    break;
  default:
    break;
  }
  return gst_pad_event_default (pad, parent, event);
}

/* Output lines differ from input lines, and start with the first. */
static gboolean
gst_slc_resample_src_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  if (GST_EVENT_TYPE (event) != GST_EVENT_SEEK ||
      gst_insar_slc_is_rewind (event))
    return gst_pad_event_default (pad, parent, event);
  gst_event_unref (event);
  return FALSE;
}

static void
gst_slc_resample_stop (GstElement *element)
{
  GstSlcResample *self = GST_SLC_RESAMPLE (element);

  gst_imaging_engine_stop (self->base.engine);
  gst_clear_caps (&self->refused);
  gst_imaging_pool_clear (&self->pool);
  self->segment_sent = FALSE;
}

/* --- the object ----------------------------------------------------------- */

static void
gst_slc_resample_class_init (GstSlcResampleClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  GST_IMAGING_ELEMENT_CLASS (klass)->stop = gst_slc_resample_stop;
  gst_imaging_settings_install (
      G_OBJECT_CLASS (klass), &gst_slc_resample_table);

  gst_element_class_set_static_metadata (element_class, "SAR image resampler",
      "Filter/Converter",
      "Brings a SAR image into the geometry of its reference",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
}

static void
gst_slc_resample_init (GstSlcResample *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = open_kernel,
      .close = close_kernel,
  };

  gst_imaging_element_set_up (&self->base, &funcs, &gst_slc_resample_table);
  self->sinkpad = gst_imaging_element_add_pad (&self->base, &sink_template);
  gst_pad_set_chain_function (self->sinkpad, gst_slc_resample_chain);
  gst_pad_set_event_function (self->sinkpad, gst_slc_resample_sink_event);
  self->srcpad = gst_imaging_element_add_pad (&self->base, &src_template);
  gst_pad_set_event_function (self->srcpad, gst_slc_resample_src_event);
}
