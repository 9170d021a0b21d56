/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The elements aopay and aodepay: the datagram as its header declares it, what
 * is lost, mixed up, doubled or invalid between them, and loopback. */

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check-common.h"
#include "gstimagingaopacket.h"
#include "gstimagingresults.h"

#define TENSOR \
  "other/tensors,format=static,framerate=0/1,num_tensors=%d,types=(string)" \
  "\"%s\",dimensions=(string)\"%s\""

/* --- helpers -------------------------------------------------------------- */

static GstHarness *
make_pay (const gchar *properties, const gchar *dimensions)
{
  const gboolean has_flags = strchr (dimensions, ',') != NULL;
  g_autofree gchar *launch = g_strdup_printf ("aopay %s", properties);
  g_autofree gchar *caps = g_strdup_printf (TENSOR, has_flags ? 2 : 1,
      has_flags ? "float32,uint8" : "float32", dimensions);
  GstHarness *h = gst_harness_new_parse (launch);

  gst_harness_set_src_caps_str (h, caps);
  return h;
}

/* Byte i of message n is n + 7 i. */
static GstBuffer *
make_message (gsize size, guint n)
{
  guint8 *data = g_malloc (size);

  for (gsize i = 0; i < size; i++)
    data[i] = (guint8) (n + 7 * i);
  return gst_buffer_new_wrapped (data, size);
}

static void
assert_message (GstBuffer *buffer, gsize size, guint n)
{
  g_autoptr (GstBuffer) expected = make_message (size, n);
  GstMapInfo map;

  fail_unless (buffer != NULL, "message %u did not come", n);
  fail_unless_equals_int (gst_buffer_get_size (buffer), size);
  fail_unless (gst_buffer_map (expected, &map, GST_MAP_READ));
  fail_unless (gst_buffer_memcmp (buffer, 0, map.data, map.size) == 0,
      "message %u has other bytes", n);
  gst_buffer_unmap (expected, &map);
}

static void
assert_stat (GstHarness *h, const gchar *name, guint64 expected)
{
  g_autoptr (GstElement) element = gst_harness_find_element (h, "aodepay");
  guint64 value = check_stat (element, name);

  fail_unless (value == expected,
      "%s is %" G_GUINT64_FORMAT ", and not %" G_GUINT64_FORMAT, name, value,
      expected);
}

/* Returns: all datagrams of messages 0 to @n - 1, of @size bytes */
static GstBuffer **
make_datagrams (GstHarness *pay, gsize size, guint n, guint n_parts)
{
  GstBuffer **all = g_new (GstBuffer *, n * n_parts);

  for (guint i = 0; i < n; i++) {
    GstBuffer *message = make_message (size, i);

    GST_BUFFER_OFFSET (message) = 100 + i;
    GST_BUFFER_PTS (message) = i * GST_MSECOND;
    fail_unless_equals_int (gst_harness_push (pay, message), GST_FLOW_OK);
    for (guint part = 0; part < n_parts; part++) {
      all[i * n_parts + part] = gst_harness_try_pull (pay);
      fail_unless (all[i * n_parts + part] != NULL);
    }
  }
  fail_unless (gst_harness_try_pull (pay) == NULL);
  return all;
}

static void
free_datagrams (GstBuffer **all, guint n)
{
  for (guint i = 0; i < n; i++)
    gst_buffer_unref (all[i]);
  g_free (all);
}

static void
deliver (GstHarness *depay, GstBuffer *datagram)
{
  fail_unless_equals_int (
      gst_harness_push (depay, gst_buffer_ref (datagram)), GST_FLOW_OK);
}

static GstHarness *
make_depay (void)
{
  GstHarness *h = gst_harness_new ("aodepay");

  gst_harness_set_src_caps_str (h, "application/x-gst-imaging-ao");
  return h;
}

/* --- the datagram --------------------------------------------------------- */

static guint64
get_number (const guint8 *data, gsize place, gsize size)
{
  guint64 value = 0;

  for (gsize i = size; i > 0; i--)
    value = value << 8 | data[place + i - 1];
  return value;
}

/* By the places of bytes, as a program in another language reads them. */
CHECK_TEST (test_a_datagram_is_as_declared)
{
  g_autoptr (CheckHarness) h = make_pay ("", "5:1:1:1");
  g_autoptr (GstCaps) clock = gst_caps_new_empty_simple ("timestamp/x-unix");
  g_autoptr (GstStructure) modes = gst_structure_new ("rc", "id", G_TYPE_STRING,
      "ao-modes-v1", "closed", G_TYPE_BOOLEAN, TRUE, "low-light",
      G_TYPE_BOOLEAN, TRUE, "calibrating", G_TYPE_BOOLEAN, FALSE, NULL);

  for (guint i = 0; i < 2; i++) {
    GstBuffer *message = make_message (20, 3), *out;
    GstMapInfo map;

    GST_BUFFER_OFFSET (message) = 0x1122334455667788;
    if (i == 1) {
      GstCustomMeta *meta =
          gst_buffer_add_custom_meta (message, GST_IMAGING_RESULTS_META);

      gst_structure_set (gst_custom_meta_get_structure (meta), "rc",
          GST_TYPE_STRUCTURE, modes, NULL);
      gst_buffer_add_reference_timestamp_meta (
          message, clock, 0x0102030405060708, GST_CLOCK_TIME_NONE);
    }
    gst_harness_push (h, message);
    out = gst_harness_try_pull (h);
    fail_unless (out != NULL);
    fail_unless (gst_buffer_map (out, &map, GST_MAP_READ));
    fail_unless_equals_int (map.size, 88 + 20);
    fail_unless (memcmp (map.data, "GAOP\1\0\x58\0", 8) == 0);
    fail_unless_equals_int (get_number (map.data, 12, 4), i == 1 ? 6 : 0);
    fail_unless_equals_uint64 (get_number (map.data, 16, 8), i);
    fail_unless_equals_uint64 (get_number (map.data, 24, 8), i);
    fail_unless_equals_uint64 (
        get_number (map.data, 32, 8), 0x1122334455667788);
    fail_unless_equals_uint64 (
        get_number (map.data, 40, 8), i == 1 ? 0x0102030405060708 : 0);
    fail_unless_equals_int (get_number (map.data, 48, 2), 1);
    fail_unless_equals_int (get_number (map.data, 52, 2), 1);
    fail_unless_equals_int (get_number (map.data, 54, 2), 0);
    fail_unless_equals_int (get_number (map.data, 56, 4), 5);
    fail_unless_equals_int (get_number (map.data, 60, 4), 1);
    fail_unless_equals_int (get_number (map.data, 72, 4), 0);
    fail_unless_equals_int (get_number (map.data, 76, 4), 20);
    fail_unless_equals_int (get_number (map.data, 80, 4), 20);
    for (guint k = 0; k < 20; k++)
      fail_unless_equals_int (map.data[88 + k], (guint8) (3 + 7 * k));
    gst_buffer_unmap (out, &map);
    gst_buffer_unref (out);
  }
}

/* The largest number is no time: other programs may send it for an unknown one.
 */
CHECK_TEST (test_a_time_that_is_not_known_is_left_out)
{
  static const guint64 times[] = {0, G_MAXUINT64, G_MAXUINT64 - 1, 1};
  g_autoptr (CheckHarness) pay = make_pay ("", "5:1:1:1"),
                           depay = make_depay ();
  GstBuffer **all = make_datagrams (pay, 20, G_N_ELEMENTS (times), 1);

  for (guint i = 0; i < G_N_ELEMENTS (times); i++) {
    const guint64 time = GUINT64_TO_LE (times[i]);
    g_autoptr (GstBuffer) out = NULL;
    const GstReferenceTimestampMeta *meta;

    all[i] = gst_buffer_make_writable (all[i]);
    gst_buffer_fill (all[i], 40, &time, sizeof (time));
    deliver (depay, all[i]);
    out = gst_harness_try_pull (depay);
    meta = gst_buffer_get_reference_timestamp_meta (out, NULL);
    fail_unless ((meta != NULL) == (i > 1));
    if (meta)
      fail_unless_equals_uint64 (meta->timestamp, times[i]);
  }
  free_datagrams (all, G_N_ELEMENTS (times));
}

/* Slopes of 3 cells and their flags. */
CHECK_TEST (test_slopes_and_flags_return)
{
  g_autoptr (CheckHarness) pay = make_pay ("", "3:2:1:1,3:1:1:1"),
                           depay = make_depay ();
  GstBuffer **all = make_datagrams (pay, 27, 2, 1), *out = NULL;
  const GstStructure *s;
  GstCaps *caps;

  for (guint i = 0; i < 2; i++) {
    GST_BUFFER_PTS (all[i]) = 5 * GST_SECOND + i;
    deliver (depay, all[i]);
    gst_clear_buffer (&out);
    out = gst_harness_try_pull (depay);
    assert_message (out, 27, i);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (out), 100 + i);
    fail_unless_equals_uint64 (GST_BUFFER_PTS (out), 5 * GST_SECOND + i);
  }
  fail_unless_equals_int (gst_buffer_n_memory (out), 2);
  fail_unless_equals_int (
      gst_memory_get_sizes (gst_buffer_peek_memory (out, 1), NULL, NULL), 3);
  caps = gst_pad_get_current_caps (depay->sinkpad);
  s = gst_caps_get_structure (caps, 0);
  fail_unless_equals_string (
      gst_structure_get_string (s, "types"), "float32,uint8");
  fail_unless_equals_string (
      gst_structure_get_string (s, "dimensions"), "3:2:1:1,3:1:1:1");
  gst_caps_unref (caps);
  gst_buffer_unref (out);
  free_datagrams (all, 2);
}

/* 4000 bytes in parts of 1000: in order, backwards, and two messages mixed. */
CHECK_TEST (test_parts_are_joined)
{
  static const guint orders[][8] = {
      {0, 1, 2, 3, 4, 5, 6, 7},
      {3, 2, 1, 0, 7, 6, 5, 4},
      {0, 4, 1, 5, 2, 6, 3, 7},
  };

  for (guint i = 0; i < G_N_ELEMENTS (orders); i++) {
    g_autoptr (CheckHarness) pay = make_pay ("mtu=1088", "1000:1:1:1");
    g_autoptr (CheckHarness) depay = make_depay ();
    GstBuffer **all = make_datagrams (pay, 4000, 2, 4), *out;
    guint n = 0;

    for (guint k = 0; k < 8; k++) {
      fail_unless (gst_buffer_get_size (all[k]) == 1088);
      deliver (depay, all[orders[i][k]]);
      out = gst_harness_try_pull (depay);
      if (out) {
        assert_message (out, 4000, n++);
        gst_buffer_unref (out);
      }
    }
    fail_unless_equals_int (n, 2);
    assert_stat (depay, "lost", 0);
    assert_stat (depay, "datagrams", 8);
    assert_stat (depay, "reordered", i == 0 ? 0 : i == 1 ? 6 : 3);
    free_datagrams (all, 8);
  }
}

/* Datagram 5 of message 1 is lost, 8 comes twice, 14 before 13. */
CHECK_TEST (test_what_is_lost_is_counted)
{
  static const guint order[] = {
      0, 1, 2, 3, 4, 6, 7, 8, 8, 9, 10, 11, 12, 14, 13, 15};
  GstHarness *pay = make_pay ("mtu=1088", "1000:1:1:1");
  GstHarness *depay = make_depay ();
  GstBuffer **all = make_datagrams (pay, 4000, 4, 4), *out;
  static const guint expected[] = {0, 2, 3};
  guint n = 0;

  for (guint k = 0; k < G_N_ELEMENTS (order); k++) {
    deliver (depay, all[order[k]]);
    out = gst_harness_try_pull (depay);
    if (!out)
      continue;
    fail_unless (n < G_N_ELEMENTS (expected));
    assert_message (out, 4000, expected[n]);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (out), 100 + expected[n]);
    fail_unless_equals_int (
        GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_DISCONT), n < 2);
    gst_buffer_unref (out);
    n++;
  }
  fail_unless_equals_int (n, 3);
  deliver (depay, all[5]); /* too late */
  fail_unless (gst_harness_try_pull (depay) == NULL);
  assert_stat (depay, "messages", 3);
  assert_stat (depay, "messages-missing", 1);
  assert_stat (depay, "datagrams", 16);
  assert_stat (depay, "lost", 0); /* it has come, after all */
  assert_stat (depay, "reordered", 2);
  assert_stat (depay, "duplicates", 1);
  assert_stat (depay, "late", 1);
  free_datagrams (all, 16);
  gst_harness_teardown (pay);
  gst_harness_teardown (depay);
}

/* Another start of the sender counts anew; stray datagrams of the one before
 * are not taken for a third start. */
CHECK_TEST (test_a_sender_that_starts_again)
{
  g_autoptr (CheckHarness) one = make_pay ("", "4:1:1:1"),
                           two = make_pay ("", "6:1:1:1");
  g_autoptr (CheckHarness) depay = make_depay ();
  GstBuffer **first = make_datagrams (one, 16, 9, 1), *out;
  GstBuffer **second = make_datagrams (two, 24, 3, 1);

  for (guint i = 0; i < 8; i++) {
    deliver (depay, first[i]);
    gst_buffer_unref (gst_harness_pull (depay));
  }
  for (guint i = 0; i < 3; i++) {
    deliver (depay, second[i]);
    out = gst_harness_try_pull (depay);
    assert_message (out, 24, i);
    gst_buffer_unref (out);
    deliver (depay, first[8]);
    fail_unless (gst_harness_try_pull (depay) == NULL);
  }
  assert_stat (depay, "sessions", 2);
  assert_stat (depay, "messages", 11);
  assert_stat (depay, "messages-missing", 0);
  assert_stat (depay, "late", 3);
  free_datagrams (first, 9);
  free_datagrams (second, 3);
}

/* Delivers messages @begin to @end - 1 of one part. Returns: how many were sent
 * on */
static guint
deliver_some (GstHarness *depay, GstBuffer **all, guint begin, guint end)
{
  guint n = 0;

  for (guint i = begin; i < end; i++) {
    GstBuffer *out;

    deliver (depay, all[i]);
    out = gst_harness_try_pull (depay);
    n += out != NULL;
    gst_clear_buffer (&out);
  }
  return n;
}

static void
assert_one_warning (GstBus *bus, const gchar *part)
{
  g_autoptr (GstMessage) message =
      gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING);
  g_autoptr (GError) error = NULL;

  fail_unless (message != NULL, "no warning has \"%s\"", part);
  gst_message_parse_warning (message, &error, NULL);
  fail_unless (strstr (error->message, part) != NULL, "%s", error->message);
  gst_clear_message (&message);
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING);
  fail_unless (message == NULL, "a second warning");
}

/* Message 0 of another session silences nobody for longer than 9 messages. */
CHECK_TEST (test_a_sender_outlives_a_stray_datagram)
{
  g_autoptr (CheckHarness) one = make_pay ("mtu=256", "60:1:1:1"),
                           two = make_pay ("", "4:1:1:1");
  g_autoptr (CheckHarness) depay = make_depay ();
  g_autoptr (CheckBus) bus = check_watch (depay->element);
  GstBuffer **all = make_datagrams (one, 240, 40, 2);
  GstBuffer **stray = make_datagrams (two, 16, 1, 1);

  fail_unless_equals_int (deliver_some (depay, all, 0, 20), 10);
  fail_unless_equals_int (deliver_some (depay, stray, 0, 1), 1);
  fail_unless_equals_int (deliver_some (depay, all, 20, 38), 0);
  fail_unless (gst_bus_peek (bus) == NULL);
  fail_unless_equals_int (deliver_some (depay, all, 38, 80), 21);
  assert_one_warning (bus, "Two senders");
  deliver_some (depay, stray, 0, 1);
  assert_stat (depay, "sessions", 2);
  assert_stat (depay, "late", 19);
  free_datagrams (all, 80);
  free_datagrams (stray, 1);
}

/* Of two senders that go on the later one is received, with one warning. */
CHECK_TEST (test_two_senders_are_told)
{
  g_autoptr (CheckHarness) one = make_pay ("", "4:1:1:1"),
                           two = make_pay ("", "4:1:1:1");
  g_autoptr (CheckHarness) depay = make_depay ();
  g_autoptr (CheckBus) bus = check_watch (depay->element);
  GstBuffer **early = make_datagrams (one, 16, 30, 1);
  GstBuffer **late = make_datagrams (two, 16, 30, 1);

  for (guint i = 0; i < 30; i++) {
    fail_unless_equals_int (deliver_some (depay, early, i, i + 1), i == 0);
    fail_unless_equals_int (deliver_some (depay, late, i, i + 1), 1);
  }
  assert_one_warning (bus, "Two senders");
  assert_stat (depay, "late", 29);
  free_datagrams (early, 30);
  free_datagrams (late, 30);
}

/* Message 10 says that it is the last one that there can be; the network
 * delivers message 0 again, which is no reason to go back to it. */
CHECK_TEST (test_a_number_far_ahead_silences_nobody)
{
  g_autoptr (CheckHarness) pay = make_pay ("", "4:1:1:1");
  g_autoptr (CheckHarness) depay = make_depay ();
  g_autoptr (CheckBus) bus = check_watch (depay->element);
  GstBuffer **all = make_datagrams (pay, 16, 30, 1);
  GstMapInfo map;

  all[10] = gst_buffer_make_writable (all[10]);
  fail_unless (gst_buffer_map (all[10], &map, GST_MAP_READWRITE));
  memset (map.data + 24, 0xff, 8);
  gst_buffer_unmap (all[10], &map);
  fail_unless_equals_int (deliver_some (depay, all, 0, 11), 11);
  assert_one_warning (bus, "missing before message 18446744073709551615");
  for (guint i = 0; i < 20; i++)
    fail_unless_equals_int (deliver_some (depay, all, 0, 1), 0);
  fail_unless_equals_int (deliver_some (depay, all, 11, 20), 0);
  fail_unless_equals_int (deliver_some (depay, all, 20, 30), 10);
  assert_one_warning (bus, "far behind");
  free_datagrams (all, 30);
}

/* Every byte of the header, changed, and every length: no crash, and no
 * message of other bytes from what contradicts itself. */
CHECK_TEST (test_what_is_no_datagram_is_dropped)
{
  g_autoptr (CheckHarness) pay = make_pay ("mtu=256", "60:1:1:1"),
                           depay = make_depay ();
  GstBuffer **all = make_datagrams (pay, 240, 1, 2), *out;
  const guint64 size = gst_buffer_get_size (all[0]);
  guint64 n_invalid = 0;

  for (guint64 i = 0; i < size; i++) {
    GstBuffer *cut =
        gst_buffer_copy_region (all[0], GST_BUFFER_COPY_MEMORY, 0, i);

    gst_harness_push (depay, cut);
    n_invalid++;
  }
  assert_stat (depay, "invalid", n_invalid);
  for (guint place = 0; place < 88; place++)
    for (guint bit = 0; bit < 8; bit++) {
      GstBuffer *changed = gst_buffer_copy_deep (all[0]);
      GstMapInfo map;

      fail_unless (gst_buffer_map (changed, &map, GST_MAP_READWRITE));
      map.data[place] ^= (guint8) (1 << bit);
      gst_buffer_unmap (changed, &map);
      gst_harness_push (depay, changed);
      while ((out = gst_harness_try_pull (depay)))
        gst_buffer_unref (out);
    }
  gst_harness_teardown (depay);
  depay = make_depay (); /* what is left of it does no harm */
  deliver (depay, all[0]);
  deliver (depay, all[1]);
  out = gst_harness_try_pull (depay);
  assert_message (out, 240, 0);
  gst_buffer_unref (out);
  free_datagrams (all, 2);
}

CHECK_TEST (test_messages_that_are_too_large_are_refused)
{
  g_autoptr (CheckHarness) h = make_pay ("mtu=256", "10000000:1:1:1");
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GError) error = NULL;

  fail_unless_equals_int (
      gst_harness_push (h, gst_buffer_new_allocate (NULL, 40000000, NULL)),
      GST_FLOW_ERROR);
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  fail_unless (message != NULL);
  gst_message_parse_error (message, &error, NULL);
  fail_unless (strstr (error->message, "Set a larger mtu.") != NULL, "%s",
      error->message);
}

/* --- loopback ------------------------------------------------------------- */

static gint
make_socket (struct sockaddr_in *address)
{
  const gint fd = socket (AF_INET, SOCK_DGRAM, 0);
  const struct timeval most = {.tv_sec = 20};
  socklen_t size = sizeof (*address);

  *address = (struct sockaddr_in){
      .sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  fail_unless (fd >= 0);
  fail_unless_equals_int (
      bind (fd, (struct sockaddr *) address, sizeof (*address)), 0);
  fail_unless_equals_int (
      getsockname (fd, (struct sockaddr *) address, &size), 0);
  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof (most));
  return fd;
}

/* udpsink and udpsrc, and between them a network that drops each datagram whose
 * number is 5 modulo 8: of each message of four the second, every other time.
 */
CHECK_TEST (test_loopback_with_loss)
{
  struct sockaddr_in address, target;
  const gint fd = make_socket (&address);
  g_autofree gchar *launch = g_strdup_printf (
      "aopay mtu=1088 ! udpsink host=127.0.0.1 port=%d sync=false async=false",
      ntohs (address.sin_port));
  g_autofree gchar *caps = g_strdup_printf (TENSOR, 1, "float32", "1000:1:1:1");
  GstHarness *out = gst_harness_new_parse (launch);
  GstHarness *in = gst_harness_new_parse (
      "udpsrc address=127.0.0.1 port=0 name=u ! aodepay");
  GstElement *source = gst_harness_find_element (in, "udpsrc");
  gint port = 0;

  gst_harness_play (in);
  g_object_get (source, "port", &port, NULL);
  fail_unless (port > 0);
  target = address;
  target.sin_port = htons ((guint16) port);
  gst_harness_set_src_caps_str (out, caps);
  for (guint n = 0; n < 19; n++) {
    fail_unless_equals_int (
        gst_harness_push (out, make_message (4000, n)), GST_FLOW_OK);
    for (guint part = 0; part < 4; part++) {
      guint8 datagram[2000];
      const gssize size = recv (fd, datagram, sizeof (datagram), 0);

      fail_unless_equals_int (size, 1088);
      if ((4 * n + part) % 8 != 5)
        fail_unless_equals_int (
            sendto (fd, datagram, (gsize) size, 0, (struct sockaddr *) &target,
                sizeof (target)),
            size);
    }
    if (n % 2 == 0) {
      g_autoptr (GstBuffer) message = gst_harness_pull (in);

      assert_message (message, 4000, n);
    }
  }
  assert_stat (in, "messages", 10);
  assert_stat (in, "messages-missing", 9);
  assert_stat (in, "lost", 9);
  gst_object_unref (source);
  gst_harness_teardown (out);
  gst_harness_teardown (in);
  close (fd);
}
