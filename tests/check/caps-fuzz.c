/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Random caps, buffers of random sizes and random events through every element
 * with sink pads. Nothing may crash, wait for ever, print a critical or leak,
 * and a flow error has a message. IMAGING_FUZZ_SECONDS is the time of each
 * element (default: some rounds), IMAGING_FUZZ_SEED the first seed, of which
 * each round takes the next, IMAGING_FUZZ_ELEMENT the only element. To be run
 * under the sanitizers as well. */
#include "streams.h"

#include <string.h>

#define ROUNDS 40
#define MAX_STEPS 30

/* Fields that a step puts into caps, in place of those of the template. */
static const gchar *const fields[] = {"width=(int)0", "width=(int)-1",
    "width=(int)1", "width=(int)3", "width=(int)2147483647", "width=(string)16",
    "height=(int)0", "height=(int)-1", "height=(int)1",
    "height=(int)2147483647", "height=(double)8", "format=(string)GRAY8",
    "format=(string)GRAY16_LE", "format=(string)GRAY16_BE",
    "format=(string)RGB", "format=(string)BGRx", "format=(string)RGBA64_LE",
    "format=(string)NV12", "format=(string)I420", "format=(string)ci16",
    "format=(string)cf32", "format=(string)rggb", "format=(string)nothing",
    "format=(int)3", "framerate=(fraction)0/1",
    "framerate=(fraction)2147483647/1", "framerate=(fraction)1/2147483647",
    "framerate=(fraction)-1/1", "framerate=(int)7",
    "pixel-aspect-ratio=(fraction)0/1",
    "pixel-aspect-ratio=(fraction)2147483647/1",
    "pixel-aspect-ratio=(fraction)1/2147483647",
    "interlace-mode=(string)interleaved", "interlace-mode=(string)alternate",
    "views=(int)3", "colorimetry=(string)nothing",
    "chroma-site=(string)nothing", "dimensions=(string)3:16:8:1",
    "dimensions=(string)60:11:1:1", "dimensions=(string)0:0:0:0",
    "dimensions=(string)-1:3", "dimensions=(string)3:40000:40000:1",
    "dimensions=(string)99999999999999999999:1", "dimensions=(string)\"\"",
    "dimensions=(string)3::8", "dimensions=(int)4", "num_tensors=(int)0",
    "num_tensors=(int)2", "num_tensors=(string)1", "types=(string)uint8",
    "types=(string)uint16", "types=(string)float32", "types=(string)float64",
    "types=(string)nothing"};

static const gchar *const other_caps[] = {"video/x-raw", "other/tensors",
    "application/x-slc", "video/x-bayer", "text/csv", "text/x-gmtsar-xcorr",
    "audio/x-raw", "video/x-raw(memory:CUDAMemory)"};

/* What a round has done; each sink pad has its own. */
typedef struct {
  GRand *random;
  gint wildness; /* of 10 choices so many are not what the element expects */
  gboolean may_flush;
  guint n_caps_accepted, n_caps_refused, n_taken, n_refused;
  gboolean has_error; /* a flow error, which must have a message */
} Feed;

static gint
below (Feed *f, gint n)
{
  return g_rand_int_range (f->random, 0, n);
}

static gboolean
is_wild (Feed *f)
{
  return below (f, 10) < f->wildness;
}

static guint64
random_time (Feed *f)
{
  switch (below (f, 8)) {
  case 0:
    return GST_CLOCK_TIME_NONE;
  case 1:
    return 0;
  case 2:
    return GST_CLOCK_TIME_NONE - 1 - (guint64) below (f, 3);
  case 3:
    return G_MAXINT64 - (guint64) below (f, 3);
  default:
    return (guint64) below (f, 50) * 20 * GST_MSECOND;
  }
}

/* --- caps ----------------------------------------------------------------- */

static void
put_field (GstStructure *s, const gchar *field)
{
  g_autofree gchar *text = g_strconcat ("caps,", field, NULL);
  g_autoptr (GstStructure) parsed = gst_structure_from_string (text, NULL);
  const gchar *name;

  fail_unless (parsed != NULL, "%s is no field", field);
  name = gst_structure_nth_field_name (parsed, 0);
  gst_structure_set_value (s, name, gst_structure_get_value (parsed, name));
}

/* Those that the other tests use, one of the template, or of another media
 * type. */
static GstCaps *
random_kind (Feed *f, Streams *s, guint sink)
{
  GstCaps *all, *caps;

  if (is_wild (f) && below (f, 4) == 0)
    return gst_caps_from_string (
        other_caps[below (f, G_N_ELEMENTS (other_caps))]);
  if (below (f, 2))
    return gst_caps_from_string (s->c->sinks[sink].caps);
  all = gst_pad_peer_query_caps (s->sinks[sink], NULL);
  if (gst_caps_is_any (all) || gst_caps_is_empty (all)) {
    gst_caps_unref (all);
    return gst_caps_from_string (s->c->sinks[sink].caps);
  }
  caps = gst_caps_copy_nth (
      all, (guint) below (f, (gint) gst_caps_get_size (all)));
  gst_caps_unref (all);
  return caps;
}

/* Of a list of formats fixation would always take the first. */
static void
choose_from_lists (Feed *f, GstStructure *s)
{
  static const gchar *const lists[] = {"format", "types"};

  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    const GValue *list = gst_structure_get_value (s, lists[i]);
    GValue value = G_VALUE_INIT;

    if (!list || !GST_VALUE_HOLDS_LIST (list))
      continue;
    g_value_init (&value, G_TYPE_STRING);
    g_value_copy (gst_value_list_get_value (list,
                      (guint) below (f, (gint) gst_value_list_get_size (list))),
        &value);
    gst_structure_take_value (s, lists[i], &value);
  }
}

static GstCaps *
random_caps (Feed *f, Streams *s, guint sink)
{
  GstCaps *caps = gst_caps_make_writable (random_kind (f, s, sink));
  GstStructure *structure = gst_caps_get_structure (caps, 0);

  if (s->c->is_lines && !is_wild (f)) { /* two images have to fit each other */
    gst_caps_unref (caps);
    return gst_caps_from_string (s->c->sinks[sink].caps);
  }
  choose_from_lists (f, structure);
  if (below (f, 2)) /* small: a frame costs no time */
    gst_structure_set (structure, "width", G_TYPE_INT, 1 + below (f, 90),
        "height", G_TYPE_INT, 1 + below (f, 40), NULL);
  for (gint n = is_wild (f) ? 1 + below (f, 3) : 0; n > 0; n--)
    put_field (structure, fields[below (f, G_N_ELEMENTS (fields))]);
  if (is_wild (f) && below (f, 4) == 0 &&
      gst_structure_n_fields (structure) > 0)
    gst_structure_remove_field (
        structure, gst_structure_nth_field_name (structure,
                       (guint) below (f, gst_structure_n_fields (structure))));
  return gst_caps_fixate (caps);
}

static void
send_caps (Feed *f, Streams *s, guint sink)
{
  g_autoptr (GstCaps) caps = random_caps (f, s, sink);

  GST_DEBUG ("%" GST_PTR_FORMAT, caps);
  if (gst_pad_push_event (s->sinks[sink], gst_event_new_caps (caps)))
    f->n_caps_accepted++;
  else
    f->n_caps_refused++;
}

/* --- buffers -------------------------------------------------------------- */

/* What caps in use need, a little more or less, or anything. */
static gsize
random_size (Feed *f, Streams *s, guint sink)
{
  GstCaps *caps = gst_pad_get_current_caps (s->sinks[sink]);
  gsize size = s->c->sinks[sink].size;
  GstVideoInfo info;
  gint width;

  if (caps && s->c->is_lines &&
      gst_structure_get_int (gst_caps_get_structure (caps, 0), "width", &width))
    size = (gsize) CLAMP (width, 1, 1000) * (gsize) (1 + below (f, 8)) * 4;
  else if (caps && gst_structure_has_name (
                       gst_caps_get_structure (caps, 0), "other/tensors"))
    size = 3 * 16 * 8 * sizeof (gfloat);
  else if (caps &&
           gst_structure_has_name (
               gst_caps_get_structure (caps, 0), "video/x-raw") &&
           gst_video_info_from_caps (&info, caps) && info.size < 100000)
    size = info.size;
  if (caps)
    gst_caps_unref (caps);
  if (!is_wild (f))
    return size;
  switch (below (f, 4)) {
  case 0:
    return 0;
  case 1:
    return (gsize) below (f, 20);
  case 2:
    return (gsize) below (f, 20000);
  default:
    return size + (gsize) below (f, 9) - MIN (size, 4);
  }
}

static GstMemory *
random_memory (Feed *f, gsize size)
{
  guint8 *bytes = g_malloc (MAX (size, 1));

  for (gsize i = 0; i < size; i++)
    bytes[i] = (guint8) g_rand_int (f->random);
  return gst_memory_new_wrapped (
      (GstMemoryFlags) 0, bytes, MAX (size, 1), 0, size, bytes, g_free);
}

static GstBuffer *
random_buffer (Feed *f, Streams *s, guint sink)
{
  static const GstBufferFlags flags[] = {GST_BUFFER_FLAG_DISCONT,
      GST_BUFFER_FLAG_GAP, GST_BUFFER_FLAG_CORRUPTED, GST_BUFFER_FLAG_HEADER,
      GST_BUFFER_FLAG_DROPPABLE, GST_BUFFER_FLAG_MARKER,
      GST_BUFFER_FLAG_DELTA_UNIT};
  GstBuffer *buffer;

  if (!is_wild (f) &&
      below (f, 2)) { /* with content that the element understands */
    buffer = streams_buffer (s, sink, (guint) below (f, 5));
    if (is_wild (f))
      gst_buffer_memset (buffer, (gsize) below (f, 200),
          (guint8) below (f, 256), (gsize) below (f, 50));
  } else {
    gsize size = random_size (f, s, sink);
    gsize first = below (f, 4) ? size : size / 2;

    buffer = gst_buffer_new ();
    gst_buffer_append_memory (buffer, random_memory (f, first));
    if (first < size)
      gst_buffer_append_memory (buffer, random_memory (f, size - first));
    if (is_wild (f))
      GST_BUFFER_OFFSET (buffer) = random_time (f);
  }
  if (is_wild (f)) {
    GST_BUFFER_PTS (buffer) = random_time (f);
    GST_BUFFER_DTS (buffer) = random_time (f);
    GST_BUFFER_DURATION (buffer) = random_time (f);
  }
  if (is_wild (f))
    GST_BUFFER_FLAG_SET (buffer, flags[below (f, G_N_ELEMENTS (flags))]);
  return buffer;
}

static void
send_buffer (Feed *f, Streams *s, guint sink)
{
  GstFlowReturn flow =
      gst_pad_push (s->sinks[sink], random_buffer (f, s, sink));

  if (flow == GST_FLOW_OK)
    f->n_taken++;
  else
    f->n_refused++;
  f->has_error |= flow == GST_FLOW_ERROR;
}

/* --- events --------------------------------------------------------------- */

static void
send_segment (Feed *f, Streams *s, guint sink)
{
  static const GstFormat formats[] = {GST_FORMAT_TIME, GST_FORMAT_BYTES,
      GST_FORMAT_DEFAULT, GST_FORMAT_BUFFERS, GST_FORMAT_PERCENT};
  static const gdouble rates[] = {1, 1, -1, 2, 0.5, 1e-3};
  gboolean usual = !is_wild (f);
  GstSegment segment;

  gst_segment_init (
      &segment, usual ? (s->c->is_lines ? GST_FORMAT_DEFAULT : GST_FORMAT_TIME)
                      : formats[below (f, G_N_ELEMENTS (formats))]);
  if (!usual) {
    segment.rate = rates[below (f, G_N_ELEMENTS (rates))];
    segment.start = (guint64) below (f, 20) * 10 * GST_MSECOND;
    if (below (f, 2) || segment.rate < 0)
      segment.stop = segment.start + (guint64) below (f, 40) * 10 * GST_MSECOND;
    segment.time = random_time (f);
    segment.base = (guint64) below (f, 1000) * GST_MSECOND;
    segment.position = segment.start;
  }
  gst_pad_push_event (s->sinks[sink], gst_event_new_segment (&segment));
}

/* All pads begin before one ends. GstAggregator would pass on an error or EOS
 * of before to a pad that has ended already, and the others wait for it. */
static void
flush_all (Streams *s)
{
  guint32 seqnum = gst_util_seqnum_next ();

  for (guint i = 0; i < s->n_sinks; i++)
    streams_send (s, i, gst_event_new_flush_start (), seqnum);
  for (guint i = 0; i < s->n_sinks; i++)
    streams_send (s, i, gst_event_new_flush_stop (TRUE), seqnum);
}

static void
send_begin (Feed *f, Streams *s, guint sink)
{
  g_autofree gchar *id = g_strdup_printf ("fuzz-%d", below (f, 100));

  gst_pad_push_event (s->sinks[sink], gst_event_new_stream_start (id));
  send_caps (f, s, sink);
  send_segment (f, s, sink);
}

static void
send_other_event (Feed *f, Streams *s, guint sink)
{
  GstEvent *event = NULL;

  switch (below (f, 4)) {
  case 0:
    event = gst_event_new_gap (
        (guint64) below (f, 50) * 20 * GST_MSECOND, random_time (f));
    break;
  case 1:
    event = gst_event_new_tag (gst_tag_list_new (GST_TAG_TITLE, "fuzz", NULL));
    break;
  case 2:
    event =
        gst_event_new_custom (below (f, 2) ? GST_EVENT_CUSTOM_DOWNSTREAM
                                           : GST_EVENT_CUSTOM_DOWNSTREAM_OOB,
            gst_structure_new_empty ("fuzz"));
    break;
  default:
    event = gst_event_new_segment_done (GST_FORMAT_TIME, below (f, 1000));
  }
  gst_pad_push_event (s->sinks[sink], event);
}

static void
send_step (Feed *f, Streams *s, guint sink)
{
  switch (below (f, 20)) {
  case 0:
    send_segment (f, s, sink);
    break;
  case 1:
    if (!f->may_flush)
      break;
    flush_all (s);
    send_segment (f, s, sink);
    break;
  case 2:
    gst_pad_push_event (s->sinks[sink], gst_event_new_eos ());
    break;
  case 3:
    send_begin (f, s, sink);
    break;
  case 4:
  case 5:
    send_other_event (f, s, sink);
    break;
  case 6:
  case 7:
  case 8:
    send_caps (f, s, sink);
    break;
  default:
    send_buffer (f, s, sink);
  }
}

/* Ends with EOS, for which the other sink pad may wait. */
static void
feed (Streams *s, guint sink, gpointer data)
{
  Feed *f = (Feed *) data + sink;

  send_begin (f, s, sink);
  for (gint n = below (f, MAX_STEPS); n > 0; n--)
    send_step (f, s, sink);
  if (s->n_sinks > 1 || below (f, 2))
    gst_pad_push_event (s->sinks[sink], gst_event_new_eos ());
}

/* --- one round ------------------------------------------------------------ */

static void
check_messages (Streams *s, guint32 seed, gboolean has_error)
{
  GstMessage *message;

  while ((message = gst_bus_pop_filtered (
              s->bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING))) {
    g_autoptr (GError) error = check_parse (message);

    fail_unless (g_utf8_validate (error->message, -1, NULL));
    has_error &= GST_MESSAGE_TYPE (message) != GST_MESSAGE_ERROR;
    gst_message_unref (message);
  }
  fail_if (has_error, "%s, seed %u: a flow error without a message",
      s->c->launch, seed);
}

/* Adds what it did to @sum. Returns: FALSE where the element is not built */
static gboolean
run_round (const StreamsCase *c, guint32 seed, Feed *sum)
{
  Streams *s = streams_new (c);
  Feed feeds[STREAMS_MAX_SINKS] = {0};
  gboolean has_error = FALSE;

  if (!s)
    return FALSE;
  GST_INFO ("%s: seed %u", c->launch, seed); /* with GST_DEBUG=check:4 */
  for (guint i = 0; i < s->n_sinks; i++) {
    feeds[i].random = g_rand_new_with_seed (seed * STREAMS_MAX_SINKS + i);
    feeds[i].wildness = (gint) (seed % 6);
    /* a flush of one of several pads waits for that of the others */
    feeds[i].may_flush = s->n_sinks == 1;
  }
  for (gint n = 1 + below (&feeds[0], 2); n > 0; n--) {
    streams_feed (s, feed, feeds);
    flush_all (s);
  }
  for (guint i = 0; i < s->n_sinks; i++) {
    sum->n_caps_accepted += feeds[i].n_caps_accepted;
    sum->n_caps_refused += feeds[i].n_caps_refused;
    sum->n_taken += feeds[i].n_taken;
    sum->n_refused += feeds[i].n_refused;
    has_error |= feeds[i].has_error;
    g_rand_free (feeds[i].random);
  }
  check_messages (s, seed, has_error);
  streams_free (s);
  return TRUE;
}

CHECK_CASE ("all", streams_setup, check_remove_folder)
CHECK_CASE_TAKES (60 + 2 * check_number ("IMAGING_FUZZ_SECONDS", 0))

CHECK_LOOP_TEST (test_no_caps_and_no_buffer_is_fatal, streams_n_cases)
{
  const StreamsCase *c = &streams_cases[__i__];
  const gchar *only = g_getenv ("IMAGING_FUZZ_ELEMENT");
  gint64 end = g_get_monotonic_time () +
               (gint64) (check_number ("IMAGING_FUZZ_SECONDS", 0) * 1e6);
  guint32 seed = (guint32) check_number ("IMAGING_FUZZ_SEED", 1);
  guint32 n = 0;
  Feed sum = {0};

  if (only && !g_str_has_prefix (c->launch, only))
    return;
  do {
    if (!run_round (c, seed++, &sum))
      return;
    n++;
  } while (n < ROUNDS || g_get_monotonic_time () < end);
  g_printerr ("%s: %u rounds, caps: %u accepted, %u refused, buffers: %u "
              "accepted, %u refused\n",
      c->launch, n, sum.n_caps_accepted, sum.n_caps_refused, sum.n_taken,
      sum.n_refused);
  fail_unless (sum.n_caps_accepted > ROUNDS / 4 && sum.n_taken > ROUNDS / 4);
  fail_unless (sum.n_caps_refused > ROUNDS / 4 ||
               g_str_has_prefix (c->launch, "insarfit")); /* takes any caps */
  fail_unless_equals_int (check_n_live (), 0);
}

/* Else a name that is mistyped would test nothing. */
CHECK_TEST (test_the_only_element_exists)
{
  const gchar *only = g_getenv ("IMAGING_FUZZ_ELEMENT");
  gboolean found = only == NULL;

  for (guint i = 0; i < streams_n_cases && only; i++)
    found |= g_str_has_prefix (streams_cases[i].launch, only);
  fail_unless (found, "IMAGING_FUZZ_ELEMENT: there is no %s", only);
}
