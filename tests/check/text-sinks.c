/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sinks that begin in the middle of the text: each client of a server and each
 * of many files begins with the line of names and has whole rows. */
#include "check-common.h"

#include <gio/gio.h>
#include <stdio.h>
#include <string.h>

#define SPOTS \
  "video/x-raw,format=GRAY8,width=80,height=80,framerate=100/1 ! " \
  "shcentroid name=s columns=4 rows=4 pitch-x=20 pitch-y=20 backend=cpu ! " \
  "fakesink s.results ! "

enum { CELLS = 16 };

static guint
count_columns (const gchar *line)
{
  guint n = 1;

  for (; *line; line++)
    n += *line == ',';
  return n;
}

/* Rows of frames from *@frame on, which then is the frame behind them, all
 * cells of each, with as many values as the line of names has. Fails unless
 * @text begins with that line, which appears nowhere else. */
static void
check_text (const gchar *text, gsize size, guint64 *frame, const gchar *name)
{
  g_autofree gchar *copy = g_strndup (text, size);
  g_auto (GStrv) lines = g_strsplit (copy, "\n", -1);
  guint n = g_strv_length (lines) - 1, n_columns = count_columns (lines[0]);

  fail_unless (g_str_has_prefix (lines[0], "frame,pts,cell,row,col,"),
      "%s begins with %s", name, lines[0]);
  fail_unless_equals_string (lines[n], ""); /* a whole line at the end */
  fail_unless (n > 1 && (n - 1) % CELLS == 0, "%s has %u lines", name, n);
  for (guint i = 0; i < n - 1; i++) {
    g_auto (GStrv) values = g_strsplit (lines[1 + i], ",", 4);

    if (*frame == G_MAXUINT64)
      *frame = g_ascii_strtoull (values[0], NULL, 10);
    fail_unless (g_ascii_strtoull (values[0], NULL, 10) == *frame + i / CELLS &&
                     g_ascii_strtoull (values[2], NULL, 10) == i % CELLS,
        "%s: line %u is %s", name, i + 1, lines[1 + i]);
    fail_unless_equals_int (count_columns (lines[1 + i]), n_columns);
  }
  *frame += (n - 1) / CELLS;
}

/* --- many files ----------------------------------------------------------- */

CHECK_CASE ("all", check_make_folder, check_remove_folder)

CHECK_LOOP_TEST (test_every_file_begins_with_the_names, 2)
{
  static const gchar *const ways[] = {
      "max-size max-file-size=9000", "max-duration max-file-duration=70000000"};
  GstElement *pipeline;
  guint64 frame = 0;
  guint n_files = 0;

  if (!check_have_element ("multifilesink"))
    return;
  {
    g_autofree gchar *launch =
        g_strdup_printf ("videotestsrc num-buffers=40 ! " SPOTS
                         "multifilesink location=$/rows%%02u.csv next-file=%s",
            ways[__i__]);

    pipeline = check_launch (launch);
  }
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  {
    g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

    gst_message_unref (check_message (bus, GST_MESSAGE_EOS));
  }
  check_stop (pipeline);
  for (;; n_files++) {
    g_autofree gchar *name = g_strdup_printf ("rows%02u.csv", n_files);
    g_autofree gchar *path = check_path_of (name);
    g_autofree gchar *text = NULL;
    gsize size;

    if (!g_file_get_contents (path, &text, &size, NULL))
      break;
    check_text (text, size, &frame, name);
  }
  fail_unless_equals_uint64 (frame, 40);
  fail_unless (n_files >= 4, "%u files", n_files);
}

/* --- clients of a server -------------------------------------------------- */

typedef struct {
  GSocketConnection *connection;
  GInputStream *stream;
  GString *text;
} Client;

static Client
client_new (guint16 port)
{
  g_autoptr (GSocketClient) socket = g_socket_client_new ();
  Client c = {.text = g_string_new (NULL)};
  GError *error = NULL;

  g_socket_client_set_timeout (socket, 10);
  c.connection =
      g_socket_client_connect_to_host (socket, "127.0.0.1", port, NULL, &error);
  fail_unless (c.connection != NULL, "%s", error ? error->message : "");
  c.stream = g_io_stream_get_input_stream (G_IO_STREAM (c.connection));
  return c;
}

/* Reads until @n further bytes have arrived. */
static void
client_read (Client *c, gsize n)
{
  gsize end = c->text->len + n;
  gchar bytes[4096];

  while (c->text->len < end) {
    gssize size =
        g_input_stream_read (c->stream, bytes, sizeof (bytes), NULL, NULL);

    fail_unless (size > 0, "the server ends after %" G_GSIZE_FORMAT " bytes",
        c->text->len);
    g_string_append_len (c->text, bytes, size);
  }
}

static void
client_free (Client *c)
{
  g_object_unref (c->connection);
  g_string_free (c->text, TRUE);
}

/* Up to the last whole frame: rows behind the last cell 15 are cut off. */
static gsize
size_of_frames (const gchar *text)
{
  const gchar *end = strrchr (text, '\n');

  for (; end > text; end--) {
    const gchar *begin = g_strrstr_len (text, end - text, "\n");
    guint cell = 0;

    if (*end == '\n' && begin && sscanf (begin, "\n%*u,%*u,%u,", &cell) == 1 &&
        cell == CELLS - 1)
      return (gsize) (end - text) + 1;
  }
  return 0;
}

static void
check_client (Client *c, const gchar *name)
{
  guint64 frame = G_MAXUINT64;

  check_text (c->text->str, size_of_frames (c->text->str), &frame, name);
}

CHECK_TEST (test_every_client_begins_with_the_names)
{
  GstElement *pipeline, *sink;
  Client early, late;
  gint port = 0;

  if (!check_have_element ("tcpserversink"))
    return;
  pipeline = check_launch ("videotestsrc is-live=true ! " SPOTS
                           "tcpserversink name=t host=127.0.0.1 port=0");
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "t");
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  g_object_get (sink, "current-port", &port, NULL);
  fail_unless (port > 0);
  early = client_new ((guint16) port);
  client_read (&early, 20000);
  late = client_new ((guint16) port);
  client_read (&late, 20000);
  client_read (&early, 1000);
  check_client (&early, "the first client");
  check_client (&late, "the late client");
  client_free (&early);
  client_free (&late);
  gst_object_unref (sink);
  check_stop (pipeline);
}
