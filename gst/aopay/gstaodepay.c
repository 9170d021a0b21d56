/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-aodepay
 * @title: aodepay
 * @short_description: slopes or commands from datagrams
 *
 * Makes tensors of the datagrams of aopay, joins their parts, and counts what
 * was lost or came in another order. A message is sent on as soon as it is
 * complete; one that is older than the last one is dropped. So the latency is
 * that of the network, and the output is in order.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 udpsrc port=5005 ! aodepay ! shmimsink stream=dm00disp03
 * ]|
 */
#include "gstaodepay.h"

#include <string.h>

#include "gstaopay.h"
#include "gstaopaytally.h"
#include "gstimagingaopacket.h"
#include "gstimagingsettings.h"

GST_DEBUG_CATEGORY_STATIC (ao_depay_debug);
#define GST_CAT_DEFAULT ao_depay_debug

/* Messages of which some parts came. More are on their way only where the
 * network mixes up frames. */
#define N_PARTIALS 4

/* Messages that are dropped in a row before their sender is believed */
#define MOST_DROPPED 10

/* A message that is more behind than this is not one that the network held. */
#define MOST_BEHIND 63

/* Messages that are dropped, counted by their first parts */
typedef struct {
  guint64 message; /* the last one */
  guint n;
} Dropped;

typedef struct {
  guint64 message;
  GstBuffer *buffer; /* NULL: this place is free */
  GstMapInfo map;
  GstImagingAoPacket packet; /* of one of its parts */
  guint8 *came;              /* a flag for each part */
  guint n_came;
} Partial;

struct _GstAoDepay {
  GstElement parent;
  GstPad *sinkpad, *srcpad;

  /* under the object lock */
  GstAoPayTally tally;
  guint64 n_messages, n_missing, n_late, n_invalid, n_sessions;

  /* of the streaming thread */
  guint32 session, session_before;
  Dropped other;     /* of the session before, since this one last sent */
  guint n_other;     /* the same, since this one began */
  Dropped behind;    /* far behind, since the last one that is newer */
  gboolean has_last; /* message of the session */
  guint64 last;
  Partial partials[N_PARTIALS];
  GstImagingAoPacket shape; /* of the caps; size 0: none were sent */
  GstEvent *segment;        /* that waits for them */
  gboolean has_warned_missing, has_warned_invalid;
  gboolean has_warned_other, has_warned_behind;
};

enum { PROP_0, PROP_STATS };

/* udpsrc without caps has any. */
static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_AO_PAY_CAPS));

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (
            "other/tensors, format = (string) static, num_tensors = (int) 2, "
            "types = (string) \"float32,uint8\"; "
            "other/tensors, format = (string) static, num_tensors = (int) 1, "
            "types = (string) float32"));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstAoDepay, gst_ao_depay, GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        ao_depay_debug, "aodepay", 0, "datagrams of a loop"))
GST_ELEMENT_REGISTER_DEFINE (
    aodepay, "aodepay", GST_RANK_NONE, GST_TYPE_AO_DEPAY)

/* --- headers -------------------------------------------------------------- */

static void
read_header (const guint8 *data, GstImagingAoPacket *p)
{
  memcpy (p, data, sizeof (*p));
  p->version = GUINT16_FROM_LE (p->version);
  p->header_size = GUINT16_FROM_LE (p->header_size);
  p->session = GUINT32_FROM_LE (p->session);
  p->flags = GUINT32_FROM_LE (p->flags);
  p->sequence = GUINT64_FROM_LE (p->sequence);
  p->message = GUINT64_FROM_LE (p->message);
  p->frame = GUINT64_FROM_LE (p->frame);
  p->time_ns = GUINT64_FROM_LE (p->time_ns);
  p->type = GUINT16_FROM_LE (p->type);
  p->n_parts = GUINT16_FROM_LE (p->n_parts);
  p->part = GUINT16_FROM_LE (p->part);
  for (guint i = 0; i < G_N_ELEMENTS (p->dims); i++)
    p->dims[i] = GUINT32_FROM_LE (p->dims[i]);
  p->n_flags = GUINT32_FROM_LE (p->n_flags);
  p->size = GUINT32_FROM_LE (p->size);
  p->part_size = GUINT32_FROM_LE (p->part_size);
}

/* Returns: bytes of the values, 0 when they are too many */
static guint64
values_size (const GstImagingAoPacket *p)
{
  guint64 size = 4;

  for (guint i = 0; i < G_N_ELEMENTS (p->dims); i++) {
    if (p->dims[i] == 0 || size > GST_AO_PAY_MAX_SIZE / p->dims[i])
      return 0;
    size *= p->dims[i];
  }
  return size;
}

static guint64
part_begin (const GstImagingAoPacket *p)
{
  return (guint64) p->part * p->part_size;
}

/* Anybody can send us anything. Returns: (nullable): what is wrong */
static const gchar *
check_packet (const GstImagingAoPacket *p, gsize size)
{
  const guint64 values = values_size (p);

  if (memcmp (p->magic, GST_IMAGING_AO_PACKET_MAGIC, 4) != 0)
    return "is none of aopay";
  if (p->version != GST_IMAGING_AO_PACKET_VERSION)
    return "is of another version than 1";
  if (p->type != GST_IMAGING_AO_PACKET_FLOAT32)
    return "has no float32";
  if (p->header_size < sizeof (*p) || p->header_size > size || values == 0 ||
      p->size > GST_AO_PAY_MAX_SIZE || p->size != values + p->n_flags ||
      p->part_size == 0 || p->part >= p->n_parts ||
      p->n_parts != ((guint64) p->size + p->part_size - 1) / p->part_size ||
      size - p->header_size != MIN (p->part_size, p->size - part_begin (p)))
    return "contradicts itself";
  return NULL;
}

/* --- caps and events ------------------------------------------------------ */

static gboolean
has_shape (const GstImagingAoPacket *a, const GstImagingAoPacket *b)
{
  return a->size == b->size && a->n_flags == b->n_flags &&
         memcmp (a->dims, b->dims, sizeof (a->dims)) == 0;
}

static void
send_caps (GstAoDepay *self, const GstImagingAoPacket *p)
{
  g_autofree gchar *values = g_strdup_printf (
      "%u:%u:%u:%u", p->dims[0], p->dims[1], p->dims[2], p->dims[3]);
  g_autofree gchar *both = g_strdup_printf ("%s,%u:1:1:1", values, p->n_flags);
  GstCaps *caps = gst_caps_new_simple ("other/tensors", "format", G_TYPE_STRING,
      "static", "num_tensors", G_TYPE_INT, p->n_flags ? 2 : 1, "types",
      G_TYPE_STRING, p->n_flags ? "float32,uint8" : "float32", "dimensions",
      G_TYPE_STRING, p->n_flags ? both : values, "framerate", GST_TYPE_FRACTION,
      0, 1, NULL);

  gst_pad_push_event (self->srcpad, gst_event_new_caps (caps));
  gst_caps_unref (caps);
  self->shape = *p;
  if (self->segment)
    gst_pad_push_event (self->srcpad, g_steal_pointer (&self->segment));
}

/* The caps are known with the first message, and the segment follows caps. */
static gboolean
gst_ao_depay_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstAoDepay *self = GST_AO_DEPAY (parent);

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_unref (event);
    return TRUE;
  case GST_EVENT_SEGMENT:
    if (self->shape.size > 0)
      break;
    gst_event_replace (&self->segment, NULL);
    self->segment = event;
    return TRUE;
  default:
    break;
  }
  return gst_pad_event_default (pad, parent, event);
}

/* --- messages ------------------------------------------------------------- */

static void
clear_partial (Partial *partial)
{
  if (!partial->buffer)
    return;
  gst_buffer_unmap (partial->buffer, &partial->map);
  gst_clear_buffer (&partial->buffer);
  g_clear_pointer (&partial->came, g_free);
  partial->n_came = 0;
}

static void
forget (GstAoDepay *self)
{
  for (guint i = 0; i < N_PARTIALS; i++)
    clear_partial (&self->partials[i]);
  self->has_last = FALSE;
}

/* Frees those that are not newer than the message that is sent on. */
static void
forget_older (GstAoDepay *self)
{
  for (guint i = 0; i < N_PARTIALS; i++)
    if (self->partials[i].buffer && self->partials[i].message <= self->last)
      clear_partial (&self->partials[i]);
}

static void
report_missing (GstAoDepay *self, guint64 n, guint64 message)
{
  GST_OBJECT_LOCK (self);
  self->n_missing += n;
  GST_OBJECT_UNLOCK (self);
  if (n == 0 || self->has_warned_missing)
    return;
  self->has_warned_missing = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("%" G_GUINT64_FORMAT
       " message%s missing before message %" G_GUINT64_FORMAT
       ". Further gaps are counted in messages-missing of the property stats.",
          n, n == 1 ? " is" : "s are", message),
      (NULL));
}

/* Values and flags are a memory each, as other elements have them. Returns:
 * (transfer full); takes @message */
static GstBuffer *
split_tensors (GstBuffer *message, const GstImagingAoPacket *p)
{
  const gsize size = p->size - p->n_flags;
  GstBuffer *out =
      gst_buffer_copy_region (message, GST_BUFFER_COPY_MEMORY, 0, size);

  if (p->n_flags)
    out =
        gst_buffer_append (out, gst_buffer_copy_region (message,
                                    GST_BUFFER_COPY_MEMORY, size, p->n_flags));
  gst_buffer_unref (message);
  return out;
}

/* @message: (transfer full): the bytes; @time: when the last one came */
static GstFlowReturn
send_message (GstAoDepay *self, GstBuffer *message, const GstImagingAoPacket *p,
    GstClockTime time)
{
  static GstStaticCaps clock = GST_STATIC_CAPS ("timestamp/x-unix");
  GstBuffer *out = split_tensors (message, p);
  const guint64 n_missing = self->has_last ? p->message - self->last - 1 : 0;

  if (!has_shape (&self->shape, p))
    send_caps (self, p);
  GST_BUFFER_PTS (out) = time;
  GST_BUFFER_OFFSET (out) =
      p->frame == GST_IMAGING_AO_PACKET_NO_FRAME ? p->message : p->frame;
  GST_BUFFER_OFFSET_END (out) = GST_BUFFER_OFFSET (out) + 1;
  if (n_missing > 0 || !self->has_last ||
      p->flags & GST_IMAGING_AO_PACKET_DISCONT)
    GST_BUFFER_FLAG_SET (out, GST_BUFFER_FLAG_DISCONT);
  if (p->time_ns && GST_CLOCK_TIME_IS_VALID (p->time_ns)) {
    GstCaps *caps = gst_static_caps_get (&clock);

    gst_buffer_add_reference_timestamp_meta (
        out, caps, p->time_ns, GST_CLOCK_TIME_NONE);
    gst_caps_unref (caps);
  }
  self->has_last = TRUE;
  self->last = p->message;
  forget_older (self);
  report_missing (self, n_missing, p->message);
  GST_OBJECT_LOCK (self);
  self->n_messages++;
  GST_OBJECT_UNLOCK (self);
  return gst_pad_push (self->srcpad, out);
}

/* Returns: where parts of the message are joined: its place, a free one, or
 * that of the oldest message */
static Partial *
find_partial (GstAoDepay *self, const GstImagingAoPacket *p)
{
  Partial *found = &self->partials[0];

  for (guint i = 0; i < N_PARTIALS; i++) {
    Partial *partial = &self->partials[i];

    if (partial->buffer && partial->message == p->message)
      return partial;
    if (found->buffer &&
        (!partial->buffer || partial->message < found->message))
      found = partial;
  }
  clear_partial (found);
  return found;
}

/* Returns: FALSE when there is no memory for it */
static gboolean
begin_partial (Partial *partial, const GstImagingAoPacket *p)
{
  partial->buffer = gst_buffer_new_allocate (NULL, p->size, NULL);
  if (!partial->buffer)
    return FALSE;
  gst_buffer_map (partial->buffer, &partial->map, GST_MAP_WRITE);
  partial->message = p->message;
  partial->packet = *p;
  partial->came = g_new0 (guint8, p->n_parts);
  return TRUE;
}

/* Returns: the whole message, or NULL while parts of it are missing. (transfer
 * full) */
static GstBuffer *
join (GstAoDepay *self, const GstImagingAoPacket *p, const guint8 *data)
{
  Partial *partial = find_partial (self, p);
  GstBuffer *whole;

  if (!partial->buffer && !begin_partial (partial, p))
    return NULL;
  if (!has_shape (&partial->packet, p) ||
      partial->packet.part_size != p->part_size || partial->came[p->part])
    return NULL;
  memcpy (partial->map.data + part_begin (p), data,
      MIN (p->part_size, p->size - part_begin (p)));
  partial->came[p->part] = TRUE;
  if (++partial->n_came < p->n_parts)
    return NULL;
  whole = gst_buffer_ref (partial->buffer);
  clear_partial (partial);
  return whole;
}

/* --- datagrams ------------------------------------------------------------ */

static void
refuse (GstAoDepay *self, const gchar *what, gsize size)
{
  GST_OBJECT_LOCK (self);
  self->n_invalid++;
  GST_OBJECT_UNLOCK (self);
  if (self->has_warned_invalid)
    return;
  self->has_warned_invalid = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FORMAT,
      ("A datagram of %" G_GSIZE_FORMAT
       " bytes %s, and is dropped. Further ones are counted in invalid of the "
       "property stats.",
          size, what),
      (NULL));
}

static void
warn_of_other (GstAoDepay *self)
{
  if (self->has_warned_other)
    return;
  self->has_warned_other = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("Two senders send at the same time, with the sessions %u and %u. Messages "
       "of session %u are sent on, those of the other are dropped and counted "
       "in late of the property stats. Stop one of them, or give each its own "
       "port.",
          self->session, self->session_before, self->session),
      (NULL));
}

static void
warn_of_behind (GstAoDepay *self, guint64 message)
{
  if (self->has_warned_behind)
    return;
  self->has_warned_behind = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("A message had number %" G_GUINT64_FORMAT
       ", but %d later ones are far behind it. Messages are sent on again from "
       "number %" G_GUINT64_FORMAT
       ". Check that only one sender uses session %u.",
          self->last, MOST_DROPPED, message, self->session),
      (NULL));
}

/* Returns: whether this is another message than the last one dropped */
static gboolean
drop (Dropped *dropped, const GstImagingAoPacket *p)
{
  if (p->part != 0 || (dropped->n > 0 && dropped->message == p->message))
    return FALSE;
  dropped->message = p->message;
  dropped->n++;
  return TRUE;
}

/* What comes next is sent on, whatever its number. */
static void
begin_count (GstAoDepay *self)
{
  forget (self);
  self->other.n = self->behind.n = 0;
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  self->tally = (GstAoPayTally){.n_received = 0};
}

static void
begin_session (GstAoDepay *self, guint32 session)
{
  self->session_before = self->session;
  self->session = session;
  self->n_other = 0;
  begin_count (self);
}

static void
count_late (GstAoDepay *self)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  self->n_late++;
}

/* The datagrams of a sender that has ended may still be on their way; one that
 * goes on is believed where this session is silent. Returns: whether it is */
static gboolean
is_back (GstAoDepay *self, const GstImagingAoPacket *p)
{
  if (drop (&self->other, p))
    self->n_other++;
  if (self->other.n >= MOST_DROPPED)
    begin_session (self, p->session);
  else
    count_late (self);
  if (self->session == p->session || self->n_other >= MOST_DROPPED)
    warn_of_other (self);
  return self->session == p->session;
}

/* Returns: whether the datagram is of the session that is received now */
static gboolean
is_of_session (GstAoDepay *self, const GstImagingAoPacket *p)
{
  if (self->n_sessions > 0 && p->session == self->session)
    return TRUE;
  if (self->n_sessions > 1 && p->session == self->session_before)
    return is_back (self, p);
  begin_session (self, p->session);
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  self->n_sessions++;
  return TRUE;
}

/* One wrong number, far ahead, must not silence its sender. Returns: whether
 * the message is not newer than the last one */
static gboolean
is_behind (GstAoDepay *self, const GstImagingAoPacket *p)
{
  if (!self->has_last || p->message > self->last) {
    self->behind.n = 0;
    return FALSE;
  }
  if (self->last - p->message > MOST_BEHIND)
    drop (&self->behind, p);
  if (self->behind.n < MOST_DROPPED)
    return TRUE;
  warn_of_behind (self, p->message);
  begin_count (self);
  return FALSE;
}

/* Returns: FALSE for what is not wanted: duplicates, and datagrams of the
 * session before or of a message that is older than the last one */
static gboolean
count (GstAoDepay *self, const GstImagingAoPacket *p)
{
  gboolean is_new;

  if (!is_of_session (self, p))
    return FALSE;
  self->other.n = 0;
  GST_OBJECT_LOCK (self);
  is_new = gst_ao_pay_tally_add (&self->tally, p->sequence);
  GST_OBJECT_UNLOCK (self);
  if (!is_new)
    return FALSE;
  if (!is_behind (self, p))
    return TRUE;
  count_late (self);
  return FALSE;
}

static GstFlowReturn
gst_ao_depay_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstAoDepay *self = GST_AO_DEPAY (parent);
  const GstClockTime time = GST_BUFFER_PTS (buffer);
  GstImagingAoPacket p;
  GstBuffer *message = NULL;
  const gchar *wrong;
  GstMapInfo map;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ)) {
    gst_buffer_unref (buffer);
    return GST_FLOW_OK;
  }
  if (map.size < sizeof (p)) {
    wrong = "is shorter than a header";
  } else {
    read_header (map.data, &p);
    wrong = check_packet (&p, map.size);
  }
  if (wrong)
    refuse (self, wrong, map.size);
  else if (count (self, &p))
    message = p.n_parts == 1
                  ? gst_buffer_copy_region (
                        buffer, GST_BUFFER_COPY_MEMORY, p.header_size, p.size)
                  : join (self, &p, map.data + p.header_size);
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  return message ? send_message (self, message, &p, time) : GST_FLOW_OK;
}

/* --- the object ----------------------------------------------------------- */

static GstStateChangeReturn
gst_ao_depay_change_state (GstElement *element, GstStateChange transition)
{
  GstAoDepay *self = GST_AO_DEPAY (element);
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) {
    GST_OBJECT_LOCK (self);
    self->tally = (GstAoPayTally){.n_received = 0};
    self->n_messages = self->n_missing = self->n_late = 0;
    self->n_invalid = self->n_sessions = 0;
    GST_OBJECT_UNLOCK (self);
    self->shape = (GstImagingAoPacket){.size = 0};
    self->has_warned_missing = self->has_warned_invalid = FALSE;
    self->has_warned_other = self->has_warned_behind = FALSE;
  }
  result = GST_ELEMENT_CLASS (gst_ao_depay_parent_class)
               ->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    forget (self);
    gst_event_replace (&self->segment, NULL);
  }
  return result;
}

static void
gst_ao_depay_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstAoDepay *self = GST_AO_DEPAY (object);

  if (id != PROP_STATS) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    return;
  }
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  g_value_take_boxed (value,
      gst_structure_new ("stats", "messages", G_TYPE_UINT64, self->n_messages,
          "messages-missing", G_TYPE_UINT64, self->n_missing, "datagrams",
          G_TYPE_UINT64, self->tally.n_received, "lost", G_TYPE_UINT64,
          gst_ao_pay_tally_lost (&self->tally), "reordered", G_TYPE_UINT64,
          self->tally.n_reordered, "duplicates", G_TYPE_UINT64,
          self->tally.n_duplicates, "late", G_TYPE_UINT64, self->n_late,
          "invalid", G_TYPE_UINT64, self->n_invalid, "sessions", G_TYPE_UINT64,
          self->n_sessions, NULL));
}

static void
gst_ao_depay_class_init (GstAoDepayClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->get_property = gst_ao_depay_get_property;
  g_object_class_install_property (object_class, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics",
          "Since the start: messages, messages-missing, late (datagrams of "
          "messages that are older than the last one), invalid (datagrams that "
          "are none of aopay), sessions (starts of the sender); of this "
          "session: datagrams, lost, reordered, duplicates",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
  gst_element_class_set_static_metadata (element_class,
      "Depayloader of slopes and commands", "Codec/Depayloader/Network",
      "Makes tensors of the datagrams of aopay", "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  element_class->change_state = gst_ao_depay_change_state;
}

static void
gst_ao_depay_init (GstAoDepay *self)
{
  self->sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sinkpad, gst_ao_depay_chain);
  gst_pad_set_event_function (self->sinkpad, gst_ao_depay_sink_event);
  gst_element_add_pad (GST_ELEMENT (self), self->sinkpad);
  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_use_fixed_caps (self->srcpad);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);
}
