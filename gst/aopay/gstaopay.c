/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-aopay
 * @title: aopay
 * @short_description: slopes or commands as datagrams
 *
 * Makes datagrams for udpsink of the slopes of shcentroid or the commands of
 * shreconstruct, with sequence number, frame, time of acquisition and flags. A
 * message that is larger than a datagram is split. gstimagingaopacket.h
 * declares their header, for receivers in other programs; aodepay receives them
 * in GStreamer.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 shmimsrc stream=wfs ! shcentroid columns=7 rows=7 pitch-x=7
 * pitch-y=7 fields=slopes ! shreconstruct matrix-location=control.npy ! aopay !
 * udpsink host=10.0.0.2 port=5005 sync=false
 * ]|
 */
#include "gstaopay.h"

#include <string.h>

#include "gstimagingaopacket.h"
#include "gstimagingresults.h"
#include "gstimagingsettings.h"

GST_DEBUG_CATEGORY_STATIC (ao_pay_debug);
#define GST_CAT_DEFAULT ao_pay_debug

typedef struct {
  guint mtu;
} Settings;

static const GstImagingSetting settings[] = {
    GST_IMAGING_UINT ("mtu", LIVE, GST_IMAGING_NEUTRAL, Settings, mtu, 256,
        65507, "bytes",
        "The largest datagram, with its header of 88 bytes. 1472 fills a frame "
        "of Ethernet, 8972 a jumbo frame; a larger one is fragmented by IP, "
        "and lost with each fragment"),
};

static void
init_settings (gpointer data)
{
  ((Settings *) data)->mtu = 1472;
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .timeless = TRUE,
    .init = init_settings,
};

struct _GstAoPay {
  GstElement parent;
  GstPad *sinkpad, *srcpad;
  GstImagingSettings *settings; /* not owned */

  /* of the streaming thread */
  GstImagingAoPacket packet; /* of the next datagram, in our byte order */
};

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (
            "other/tensors, format = (string) static, num_tensors = (int) 2, "
            "types = (string) \"float32,uint8\"; "
            "other/tensors, format = (string) static, num_tensors = (int) 1, "
            "types = (string) float32"));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_AO_PAY_CAPS));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstAoPay, gst_ao_pay, GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (ao_pay_debug, "aopay", 0, "datagrams of a loop"))
GST_ELEMENT_REGISTER_DEFINE (aopay, "aopay", GST_RANK_NONE, GST_TYPE_AO_PAY)

/* --- caps ----------------------------------------------------------------- */

/* "97:1:1:1". Returns: the product, 0 for what is no shape of four dimensions
 * or too large */
static guint
parse_dimensions (const gchar *text, guint32 dims[4])
{
  g_auto (GStrv) words = g_strsplit (text ? text : "", ":", -1);
  guint64 product = 1, n = 0;

  for (guint i = 0; i < 4; i++)
    dims[i] = 1;
  for (guint i = 0; words[i]; i++) {
    if (!g_ascii_string_to_unsigned (words[i], 10, 0, G_MAXUINT32, &n, NULL) ||
        (i >= 4 && n > 1))
      return 0;
    n = MAX (n, i == 0 ? 0 : 1); /* trailing zeros are no dimensions */
    product *= n;
    if (product > GST_AO_PAY_MAX_SIZE)
      return 0;
    if (i < 4)
      dims[i] = (guint32) n;
  }
  return *words ? (guint) product : 0;
}

static gboolean
set_caps (GstAoPay *self, GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  const gchar *dims = gst_structure_get_string (s, "dimensions");
  g_auto (GStrv) tensors = g_strsplit (dims ? dims : "", ",", 2);
  GstImagingAoPacket *p = &self->packet;
  guint32 unused[4];
  guint n;
  GstCaps *ours;
  gboolean ok;

  n = parse_dimensions (tensors[0], p->dims);
  p->n_flags =
      tensors[0] && tensors[1] ? parse_dimensions (tensors[1], unused) : 0;
  if (n == 0 || 4 * (guint64) n + p->n_flags > GST_AO_PAY_MAX_SIZE) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("Tensors of the dimensions \"%s\" do not fit a message: it has up to "
         "four dimensions and %u MiB.",
            dims ? dims : "", GST_AO_PAY_MAX_SIZE >> 20),
        ("%" GST_PTR_FORMAT, caps));
    return FALSE;
  }
  p->size = 4 * n + p->n_flags;
  ours = gst_caps_new_empty_simple (GST_AO_PAY_CAPS);
  ok = gst_pad_push_event (self->srcpad, gst_event_new_caps (ours));
  gst_caps_unref (ours);
  return ok;
}

static gboolean
gst_ao_pay_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstCaps *caps;
  gboolean ok;

  if (GST_EVENT_TYPE (event) != GST_EVENT_CAPS)
    return gst_pad_event_default (pad, parent, event);
  gst_event_parse_caps (event, &caps);
  ok = set_caps (GST_AO_PAY (parent), caps);
  gst_event_unref (event);
  return ok;
}

/* --- messages ------------------------------------------------------------- */

static gboolean
add_loop_flags (GQuark field, const GValue *value, gpointer flags)
{
  static const struct {
    const gchar *name;
    guint32 bit;
  } bits[] = {
      {"closed", GST_IMAGING_AO_PACKET_CLOSED},
      {"low-light", GST_IMAGING_AO_PACKET_LOW_LIGHT},
      {"calibrating", GST_IMAGING_AO_PACKET_CALIBRATING},
  };
  const GstStructure *s = GST_VALUE_HOLDS_STRUCTURE (value)
                              ? gst_value_get_structure (value)
                              : NULL;

  if (!s || g_strcmp0 (gst_structure_get_string (s, "id"), "ao-modes-v1") != 0)
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (bits); i++) {
    gboolean is_set = FALSE;

    gst_structure_get_boolean (s, bits[i].name, &is_set);
    *(guint32 *) flags |= is_set ? bits[i].bit : 0;
  }
  return TRUE;
}

/* What belongs to the frame. */
static void
describe (GstAoPay *self, GstBuffer *buffer)
{
  static GstStaticCaps clock = GST_STATIC_CAPS ("timestamp/x-unix");
  GstCustomMeta *results =
      gst_buffer_get_custom_meta (buffer, GST_IMAGING_RESULTS_META);
  GstCaps *caps = gst_static_caps_get (&clock);
  const GstReferenceTimestampMeta *time =
      gst_buffer_get_reference_timestamp_meta (buffer, caps);
  GstImagingAoPacket *p = &self->packet;

  gst_caps_unref (caps);
  p->time_ns = time ? time->timestamp : 0;
  p->frame = GST_BUFFER_OFFSET_IS_VALID (buffer)
                 ? GST_BUFFER_OFFSET (buffer)
                 : GST_IMAGING_AO_PACKET_NO_FRAME;
  p->flags = GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DISCONT)
                 ? GST_IMAGING_AO_PACKET_DISCONT
                 : 0;
  if (results)
    gst_structure_foreach (
        gst_custom_meta_get_structure (results), add_loop_flags, &p->flags);
}

static GstMemory *
make_header (const GstImagingAoPacket *p)
{
  GstImagingAoPacket *h = g_new (GstImagingAoPacket, 1);

  *h = *p;
  h->version = GUINT16_TO_LE (p->version);
  h->header_size = GUINT16_TO_LE (p->header_size);
  h->session = GUINT32_TO_LE (p->session);
  h->flags = GUINT32_TO_LE (p->flags);
  h->sequence = GUINT64_TO_LE (p->sequence);
  h->message = GUINT64_TO_LE (p->message);
  h->frame = GUINT64_TO_LE (p->frame);
  h->time_ns = GUINT64_TO_LE (p->time_ns);
  h->type = GUINT16_TO_LE (p->type);
  h->n_parts = GUINT16_TO_LE (p->n_parts);
  h->part = GUINT16_TO_LE (p->part);
  for (guint i = 0; i < G_N_ELEMENTS (h->dims); i++)
    h->dims[i] = GUINT32_TO_LE (p->dims[i]);
  h->n_flags = GUINT32_TO_LE (p->n_flags);
  h->size = GUINT32_TO_LE (p->size);
  h->part_size = GUINT32_TO_LE (p->part_size);
  return gst_memory_new_wrapped (0, h, sizeof (*h), 0, sizeof (*h), h, g_free);
}

/* The values are not copied. */
static GstBuffer *
make_datagram (GstAoPay *self, GstBuffer *buffer)
{
  const gsize begin = (gsize) self->packet.part * self->packet.part_size;
  GstBuffer *out = gst_buffer_copy_region (buffer,
      GST_BUFFER_COPY_MEMORY | GST_BUFFER_COPY_TIMESTAMPS, begin,
      MIN (self->packet.part_size, self->packet.size - begin));

  gst_buffer_prepend_memory (out, make_header (&self->packet));
  GST_BUFFER_PTS (out) = GST_BUFFER_PTS (buffer); /* of each part */
  self->packet.sequence++;
  return out;
}

static GstFlowReturn
send (GstAoPay *self, GstBuffer *buffer)
{
  GstImagingAoPacket *p = &self->packet;
  GstBufferList *list;

  p->part = 0;
  if (p->n_parts == 1)
    return gst_pad_push (self->srcpad, make_datagram (self, buffer));
  list = gst_buffer_list_new_sized (p->n_parts);
  for (guint i = 0; i < p->n_parts; i++) {
    p->part = (guint16) i;
    gst_buffer_list_add (list, make_datagram (self, buffer));
  }
  return gst_pad_push_list (self->srcpad, list);
}

static GstFlowReturn
gst_ao_pay_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstAoPay *self = GST_AO_PAY (parent);
  GstImagingAoPacket *p = &self->packet;
  GstFlowReturn flow = GST_FLOW_NOT_NEGOTIATED;
  const Settings *s;
  guint n_parts;

  gst_imaging_settings_update (
      self->settings, GST_IMAGING_WHEN_LIVE, GST_CLOCK_TIME_NONE, NULL);
  s = gst_imaging_settings_now (self->settings);
  p->part_size = MIN (s->mtu - (guint) sizeof (*p), p->size);
  n_parts = p->size ? (p->size + p->part_size - 1) / p->part_size : 0;
  if (n_parts > G_MAXUINT16) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("A message of %u bytes would be %u datagrams with mtu=%u; it can be "
         "%u. Set a larger mtu.",
            p->size, n_parts, s->mtu, G_MAXUINT16),
        (NULL));
    flow = GST_FLOW_ERROR;
  } else if (n_parts > 0 && gst_buffer_get_size (buffer) != p->size) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("A buffer has %" G_GSIZE_FORMAT " bytes; its caps tell %u.",
            gst_buffer_get_size (buffer), p->size),
        (NULL));
    flow = GST_FLOW_ERROR;
  } else if (n_parts > 0) {
    p->n_parts = (guint16) n_parts;
    describe (self, buffer);
    flow = send (self, buffer);
    p->message++;
  }
  gst_buffer_unref (buffer);
  return flow;
}

/* --- the object ----------------------------------------------------------- */

static GstStateChangeReturn
gst_ao_pay_change_state (GstElement *element, GstStateChange transition)
{
  GstAoPay *self = GST_AO_PAY (element);

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) {
    gst_imaging_settings_start (self->settings);
    self->packet = (GstImagingAoPacket){
        .version = GST_IMAGING_AO_PACKET_VERSION,
        .header_size = sizeof (GstImagingAoPacket),
        .session = g_random_int (),
        .type = GST_IMAGING_AO_PACKET_FLOAT32,
    };
    memcpy (self->packet.magic, GST_IMAGING_AO_PACKET_MAGIC, 4);
  }
  return GST_ELEMENT_CLASS (gst_ao_pay_parent_class)
      ->change_state (element, transition);
}

static void
gst_ao_pay_class_init (GstAoPayClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  gst_imaging_results_register ();
  gst_imaging_settings_install (G_OBJECT_CLASS (klass), &table);
  gst_element_class_set_static_metadata (element_class,
      "Payloader of slopes and commands", "Codec/Payloader/Network",
      "Makes datagrams of slopes or commands", "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  element_class->change_state = gst_ao_pay_change_state;
}

static void
gst_ao_pay_init (GstAoPay *self)
{
  self->settings = gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
  self->sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sinkpad, gst_ao_pay_chain);
  gst_pad_set_event_function (self->sinkpad, gst_ao_pay_sink_event);
  gst_element_add_pad (GST_ELEMENT (self), self->sinkpad);
  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_use_fixed_caps (self->srcpad);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);
}
