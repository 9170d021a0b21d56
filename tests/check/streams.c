/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "streams.h"

#include <string.h>

#define GREY "video/x-raw,format=GRAY8,width=16,height=8,framerate=25/1"
#define COLOUR "video/x-raw,format=RGB,width=16,height=8,framerate=25/1"
#define SPECTRA "video/x-raw,format=GRAY16_LE,width=60,height=11,framerate=25/1"
#define CAMERA "video/x-raw,format=GRAY16_LE,width=8,height=3,framerate=25/1"
#define SLC(size) "application/x-slc,format=ci16,width=" size ",height=" size
#define OCT "octbscan taper-cut=7 upsample=128 bscans-per-volume=2 "

const StreamsCase streams_cases[] = {
    {"invert backend=cpu", {{"sink", GREY, 128}}, 3, {"src"}, FALSE, FALSE,
        "src", TRUE},
    {"lapsharpen backend=cpu", {{"sink", GREY, 128}}, 3, {"src"}, FALSE, FALSE,
        "src", TRUE},
    {"shcentroid backend=cpu x0=0 y0=0 pitch-x=8 pitch-y=8 columns=2 rows=1",
        {{"sink", GREY, 128}}, 3, {"src", "results"}, FALSE, FALSE, "src",
        TRUE},
    {"shoverlay",
        {{"sink", "video/x-raw,format=BGRx,width=16,height=8,framerate=25/1",
            512}},
        3, {"src"}, FALSE, FALSE, "src", TRUE},
    {"spherelights centre-x=8 centre-y=4 radius=3", {{"sink", GREY, 128}}, 3,
        {"src"}, FALSE, FALSE, "src", TRUE},
    {OCT "backend=cpu", {{"sink", SPECTRA, 1320}}, 4,
        {"src", "linear", "complex", "enface"}, FALSE, TRUE, "", TRUE},
    {OCT "backend=cpu average-bscans=2", {{"sink", SPECTRA, 1320}}, 4,
        {"src", "linear"}, FALSE, TRUE, "", TRUE},
    {OCT "backend=cpu ascans-per-bscan=22", {{"sink", SPECTRA, 1320}}, 4,
        {"src"}, FALSE, TRUE, "", TRUE},
    {"octinterlace", {{"sink_0", CAMERA, 48}, {"sink_1", CAMERA, 48}}, 3,
        {"src"}, FALSE, TRUE, "", FALSE},
    {"photostereo backend=cpu lights-location=$/lights.lp",
        {{"sink", GREY, 128}}, 3, {"normal", "albedo", "ambient", "quality"},
        FALSE, TRUE, "normal albedo ambient quality", TRUE},
    {"normalintegrate backend=cpu", {{"sink", COLOUR, 384}}, 3,
        {"height", "tensor", "mesh"}, FALSE, TRUE, "height tensor", TRUE},
    {"relight backend=cpu", {{"normal", COLOUR, 384}, {"albedo", COLOUR, 384}},
        3, {"src"}, FALSE, TRUE, "src", FALSE},
    {"insarxcorr backend=cpu nx=4 ny=4 xsearch=16 ysearch=16",
        {{"reference", SLC ("160"), 102400},
            {"secondary", SLC ("160"), 102400}},
        1, {"src", "fit", "rasters"}, TRUE, FALSE, "", FALSE},
    {"insarform",
        {{"reference", SLC ("32"), 4096}, {"secondary", SLC ("32"), 4096}}, 1,
        {"phase", "coherence", "amplitude", "interferogram"}, TRUE, TRUE, "",
        FALSE},
    {"slcresample backend=cpu", {{"sink", SLC ("64"), 16384}}, 1, {"src"}, TRUE,
        TRUE, "", FALSE},
    {"insarfit", {{"sink", "text/x-gmtsar-xcorr", 1}}, 1, {"src"}, TRUE, FALSE,
        "", FALSE},
};

const guint streams_n_cases = G_N_ELEMENTS (streams_cases);

void
streams_setup (void)
{
  check_make_folder ();
  check_write_file (
      "lights.lp", "3\n0 0.6 0 0.8\n1 0 0.6 0.8\n2 -0.6 0 0.8\n", -1);
}

/* --- pads ----------------------------------------------------------------- */

static void
keep (GstPad *pad, gpointer object)
{
  Streams *s = gst_pad_get_element_private (pad);

  g_mutex_lock (&s->lock);
  for (guint i = 0; i < s->n_srcs; i++)
    if (s->srcs[i] == pad)
      g_ptr_array_add (s->received[i], object);
  g_mutex_unlock (&s->lock);
}

static GstFlowReturn
take_buffer (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  keep (pad, buffer);
  return GST_FLOW_OK;
}

static gboolean
take_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  keep (pad, event);
  return TRUE;
}

/* Returns: (transfer full): the pad of the element, on request or not */
static GstPad *
get_pad (GstElement *element, const gchar *name)
{
  GstPad *pad = gst_element_get_static_pad (element, name);

  if (!pad)
    pad = gst_element_request_pad_simple (element, name);
  fail_unless (
      pad != NULL, "%s has no pad %s", GST_OBJECT_NAME (element), name);
  return pad;
}

static GstPad *
link_pad (Streams *s, const gchar *name, GstPadDirection direction)
{
  GstPad *pad = gst_pad_new (name, direction);
  g_autoptr (GstPad) peer = get_pad (s->element, name);

  gst_pad_set_element_private (pad, s);
  if (direction == GST_PAD_SINK) {
    gst_pad_set_chain_function (pad, take_buffer);
    gst_pad_set_event_function (pad, take_event);
    fail_unless (gst_pad_link (peer, pad) == GST_PAD_LINK_OK);
  } else {
    fail_unless (gst_pad_link (pad, peer) == GST_PAD_LINK_OK);
  }
  gst_pad_set_active (pad, TRUE);
  return pad;
}

Streams *
streams_new (const StreamsCase *c)
{
  g_auto (GStrv) parts = g_strsplit (c->launch, "$", -1);
  g_autofree gchar *launch = g_strjoinv (check_folder (), parts);
  g_auto (GStrv) words = g_strsplit (launch, " ", 2);
  GstElementFactory *factory = gst_element_factory_find (words[0]);
  Streams *s;

  if (!factory) { /* without an FFT or cairo some are not built */
    g_autofree gchar *word = g_strdup_printf (" %s ", words[0]);

    fail_unless (strstr (ELEMENTS_NOT_BUILT, word) != NULL, "no %s", words[0]);
    g_printerr ("skipped: %s is not built\n", words[0]);
    return NULL;
  }
  gst_object_unref (factory);
  s = g_new0 (Streams, 1);
  s->c = c;
  g_mutex_init (&s->lock);
  s->element = gst_object_ref_sink (gst_parse_launch (launch, NULL));
  s->bus = gst_bus_new ();
  gst_element_set_bus (s->element, s->bus);
  while (s->n_srcs < STREAMS_MAX_SRCS && c->srcs[s->n_srcs]) {
    s->received[s->n_srcs] =
        g_ptr_array_new_with_free_func ((GDestroyNotify) gst_mini_object_unref);
    s->srcs[s->n_srcs] = link_pad (s, c->srcs[s->n_srcs], GST_PAD_SINK);
    s->n_srcs++;
  }
  while (s->n_sinks < STREAMS_MAX_SINKS && c->sinks[s->n_sinks].name) {
    s->sinks[s->n_sinks] = link_pad (s, c->sinks[s->n_sinks].name, GST_PAD_SRC);
    s->n_sinks++;
  }
  gst_element_set_state (s->element, GST_STATE_PLAYING);
  return s;
}

void
streams_free (Streams *s)
{
  gst_element_set_state (s->element, GST_STATE_NULL);
  for (guint i = 0; i < s->n_sinks; i++) {
    gst_pad_set_active (s->sinks[i], FALSE);
    gst_object_unref (s->sinks[i]);
  }
  for (guint i = 0; i < s->n_srcs; i++) {
    gst_pad_set_active (s->srcs[i], FALSE);
    gst_object_unref (s->srcs[i]);
    g_ptr_array_unref (s->received[i]);
  }
  gst_element_set_bus (s->element, NULL);
  gst_object_unref (s->bus);
  gst_object_unref (s->element);
  g_mutex_clear (&s->lock);
  g_free (s);
}

/* --- input ---------------------------------------------------------------- */

typedef struct {
  Streams *s;
  guint sink;
  StreamsFeed feed;
  gpointer data;
} Feeder;

static gpointer
run_feeder (gpointer data)
{
  Feeder *f = data;

  f->feed (f->s, f->sink, f->data);
  return NULL;
}

void
streams_feed (Streams *s, StreamsFeed feed, gpointer data)
{
  GThread *threads[STREAMS_MAX_SINKS];
  Feeder feeders[STREAMS_MAX_SINKS];

  for (guint i = 0; i < s->n_sinks; i++) {
    feeders[i] = (Feeder){s, i, feed, data};
    threads[i] = g_thread_new ("feeder", run_feeder, &feeders[i]);
  }
  for (guint i = 0; i < s->n_sinks; i++)
    g_thread_join (threads[i]);
}

void
streams_send (Streams *s, guint sink, GstEvent *event, guint32 seqnum)
{
  gst_event_set_seqnum (event, seqnum);
  gst_pad_push_event (s->sinks[sink], event);
}

void
streams_send_caps (Streams *s, guint sink)
{
  g_autoptr (GstCaps) caps = gst_caps_from_string (s->c->sinks[sink].caps);

  gst_pad_push_event (s->sinks[sink], gst_event_new_caps (caps));
}

static GstBuffer *
offsets_as_text (void)
{
  GString *text = g_string_new (NULL);
  gsize size;

  for (guint y = 1; y < 6; y++)
    for (guint x = 1; x < 6; x++)
      g_string_append_printf (text, " %u 1.5 %u 2.5 50.00 \n", 20 * x, 20 * y);
  size = text->len;
  return gst_buffer_new_wrapped (g_string_free (text, FALSE), size);
}

GstBuffer *
streams_buffer (Streams *s, guint sink, guint i)
{
  const StreamsSink *spec = &s->c->sinks[sink];
  GRand *rand = g_rand_new_with_seed (i);
  GstBuffer *buffer;
  GstMapInfo map;

  if (g_str_has_prefix (spec->caps, "text/")) {
    buffer = offsets_as_text ();
  } else {
    buffer = gst_buffer_new_allocate (NULL, spec->size, NULL);
    gst_buffer_map (buffer, &map, GST_MAP_WRITE);
    for (gsize k = 0; k < map.size; k++)
      map.data[k] = (guint8) g_rand_int_range (rand, 0, 256);
    if (g_str_has_prefix (s->c->launch, "spherelights")) { /* that moves */
      memset (map.data, 10, map.size);
      map.data[4 * 16 + 7 + i % 3] = 255;
    }
    gst_buffer_unmap (buffer, &map);
  }
  g_rand_free (rand);
  GST_BUFFER_OFFSET (buffer) = s->c->is_lines ? 0 : 100 + i;
  if (!s->c->is_lines) {
    GST_BUFFER_OFFSET_END (buffer) = 101 + i;
    GST_BUFFER_PTS (buffer) = i * 40 * GST_MSECOND;
    GST_BUFFER_DURATION (buffer) = 40 * GST_MSECOND;
  }
  if (i == 0)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  return buffer;
}

void
streams_push (Streams *s, guint sink, GstBuffer *buffer)
{
  GstFlowReturn flow = gst_pad_push (s->sinks[sink], buffer);

  fail_unless (flow == GST_FLOW_OK || flow == GST_FLOW_EOS, "%s: %s: %s",
      s->c->launch, s->c->sinks[sink].name, gst_flow_get_name (flow));
}

/* --- output --------------------------------------------------------------- */

static gboolean
has_event (Streams *s, guint src, GstEventType type)
{
  gboolean found = FALSE;

  g_mutex_lock (&s->lock);
  for (guint i = 0; i < s->received[src]->len; i++) {
    GstMiniObject *object = s->received[src]->pdata[i];

    found |=
        GST_IS_EVENT (object) && GST_EVENT_TYPE ((GstEvent *) object) == type;
  }
  g_mutex_unlock (&s->lock);
  return found;
}

void
streams_wait (Streams *s, guint src, GstEventType type)
{
  gint64 end = g_get_monotonic_time () + (gint64) (CHECK_TIMEOUT / 1000);

  while (!has_event (s, src, type)) {
    fail_unless (g_get_monotonic_time () < end, "%s: no %s arrives from %s",
        s->c->launch, gst_event_type_get_name (type), s->c->srcs[src]);
    g_usleep (1000);
  }
}

void
streams_clear (Streams *s)
{
  g_mutex_lock (&s->lock);
  for (guint i = 0; i < s->n_srcs; i++)
    g_ptr_array_set_size (s->received[i], 0);
  g_mutex_unlock (&s->lock);
}
