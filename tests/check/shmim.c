/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The elements shmimsrc and shmimsink beside a plain writer and a plain reader,
 * which map the file and use the semaphores of the C library.
 * tests/python/shmim.py has the real ImageStreamIO. */
#include <gst/video/video.h>

#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "check-common.h"
#include "gstimagingresults.h"
#include "shmim/gstshmimlayout.h"

#define TIMEOUT (20 * GST_SECOND)
#define N_SEMAPHORES 3

/* --- a plain writer and reader -------------------------------------------- */

typedef struct {
  gchar *path;
  guint8 *map;
  GstShmimHeader *h;
  GstShmimLayout l;
} Stream;

static gchar *
path_of (const gchar *name)
{
  return g_strdup_printf ("%s/%s.im.shm", check_folder (), name);
}

static sem_t *
semaphore_of (Stream *s, guint i)
{
  return (sem_t *) (gpointer) (s->map + s->l.semaphores + i * sizeof (sem_t));
}

static void
map_stream (Stream *s, gint fd, const GstShmimHeader *header)
{
  s->l = gst_shmim_layout (header, sizeof (*header));
  s->map = mmap (NULL, s->l.end, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  fail_unless (s->map != MAP_FAILED);
  close (fd);
  s->h = (GstShmimHeader *) (gpointer) s->map;
}

static void
unmap_stream (Stream *s)
{
  munmap (s->map, s->l.end);
  g_clear_pointer (&s->path, g_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Stream, unmap_stream)

/* As the library does: another file of the same name. */
static Stream
make_stream (const gchar *name, GstShmimType type, guint n_axes, guint32 a,
    guint32 b, guint32 c, guint64 kind)
{
  GstShmimHeader h = {.n_axes = (guint8) n_axes,
      .size = {a, b, c},
      .type = type,
      .kind = kind,
      .creator = getpid (),
      .shared = 1,
      .location = -1,
      .n_semaphores = N_SEMAPHORES,
      .n_traces = 10,
      .n_keywords = 2};
  Stream s = {.path = path_of (name)};
  gint fd;

  h.n_values = (guint64) a * (n_axes > 1 ? b : 1) * (n_axes > 2 ? c : 1);
  h.data_size = h.n_values * gst_shmim_type_size (type);
  g_strlcpy (h.name, name, sizeof (h.name));
  g_unlink (s.path);
  fd = g_open (s.path, O_RDWR | O_CREAT | O_EXCL, 0600);
  fail_unless (fd >= 0);
  s.l = gst_shmim_layout (&h, sizeof (h));
  fail_unless_equals_int (ftruncate (fd, (goffset) s.l.end), 0);
  map_stream (&s, fd, &h);
  *s.h = h;
  for (guint i = 0; i <= N_SEMAPHORES; i++)
    sem_init (semaphore_of (&s, i), 1, 0);
  g_strlcpy (s.h->version, GST_SHMIM_VERSION, sizeof (h.version));
  return s;
}

static Stream
open_stream (const gchar *name)
{
  Stream s = {.path = path_of (name)};
  const gint fd = g_open (s.path, O_RDWR, 0);
  GstShmimHeader h;

  fail_unless (fd >= 0);
  fail_unless_equals_int (read (fd, &h, sizeof (h)), sizeof (h));
  map_stream (&s, fd, &h);
  return s;
}

static void
post (Stream *s)
{
  for (guint i = 0; i <= N_SEMAPHORES; i++) {
    gint value;

    sem_getvalue (semaphore_of (s, i), &value);
    if (value < 10)
      sem_post (semaphore_of (s, i));
    if (i < N_SEMAPHORES)
      ((gint32 *) (gpointer) (s->map + s->l.writers))[i] = s->h->creator;
  }
}

/* Byte i of frame n is n + 7 i. */
static void
fill (guint8 *data, gsize size, guint n)
{
  for (gsize i = 0; i < size; i++)
    data[i] = (guint8) (n + 7 * i);
}

/* @n_lost: frames that nobody is told of before this one */
static void
write_frame (Stream *s, guint n_lost)
{
  struct timespec now;

  clock_gettime (CLOCK_TAI, &now);
  s->h->is_writing = 1;
  s->h->count += n_lost + 1;
  fill (s->map + s->l.data, s->h->data_size, (guint) s->h->count);
  s->h->acquired = (GstShmimTime){now.tv_sec, now.tv_nsec};
  s->h->is_writing = 0;
  post (s);
}

/* --- elements ------------------------------------------------------------- */

/* The source is not started. */
static GstHarness *
make_source (const gchar *properties, const gchar *caps)
{
  g_autofree gchar *launch =
      g_strdup_printf ("shmimsrc folder=%s %s", check_folder (), properties);
  g_autoptr (GstElement) source = gst_parse_launch (launch, NULL);
  GstHarness *h;

  fail_unless (source != NULL);
  gst_object_ref_sink (source);
  h = gst_harness_new_with_element (source, NULL, "src");
  if (caps)
    gst_harness_set_sink_caps_str (h, caps);
  return h;
}

static void
play (GstHarness *h)
{
  fail_unless (gst_element_set_state (h->element, GST_STATE_PLAYING) !=
               GST_STATE_CHANGE_FAILURE);
}

static gchar *
wait_for (GstBus *bus, GstMessageType type)
{
  g_autoptr (GstMessage) message =
      gst_bus_timed_pop_filtered (bus, TIMEOUT, type);
  g_autoptr (GError) error = NULL;
  gchar *text;

  fail_unless (message != NULL, "no message came");
  if (type == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, NULL);
  else
    gst_message_parse_warning (message, &error, NULL);
  text = g_strdup (error->message);
  return text;
}

static void
assert_has (const gchar *text, const gchar *part)
{
  fail_unless (
      strstr (text, part) != NULL, "\"%s\" is not in \"%s\"", part, text);
}

/* The source cannot start, and says why. */
static void
assert_refused (const gchar *properties, const gchar *part)
{
  g_autoptr (CheckHarness) h = make_source (properties, NULL);
  g_autoptr (CheckBus) bus = check_watch (h->element);
  g_autofree gchar *text = NULL;

  fail_unless_equals_int (gst_element_set_state (h->element, GST_STATE_PLAYING),
      GST_STATE_CHANGE_FAILURE);
  text = wait_for (bus, GST_MESSAGE_ERROR);
  assert_has (text, part);
}

static void
stop (GstHarness *h, GstBus *bus)
{
  gst_element_set_state (h->element, GST_STATE_NULL);
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
  gst_harness_teardown (h);
}

/* --- the source ----------------------------------------------------------- */

CHECK_CASE ("shmim", check_make_folder, check_remove_folder)

/* A reader that sleeps, and two that do not, for less and more than a frame. */
static const gchar *const readers[] = {
    "stream=a", "stream=a spin=50", "stream=a spin=1000000"};

CHECK_LOOP_TEST (test_frames_arrive_as_video, G_N_ELEMENTS (readers))
{
  g_auto (Stream) s = make_stream ("a", GST_SHMIM_TYPE_U8, 2, 5, 3, 0, 0);
  GstHarness *h = make_source (readers[__i__], "video/x-raw");
  GstBus *bus = check_watch (h->element);
  g_autofree gchar *text = NULL;

  write_frame (&s, 0); /* before the start: not a new frame */
  play (h);
  for (guint n = 2; n <= 5; n += 3) {
    GstReferenceTimestampMeta *meta;
    guint8 expected[15];
    GstVideoFrame frame;
    GstVideoInfo info;
    g_autoptr (GstBuffer) buffer = NULL;
    GstCaps *caps;

    write_frame (&s, n == 5 ? 2 : 0);
    buffer = gst_harness_pull (h);
    fail_unless (buffer != NULL);
    caps = gst_pad_get_current_caps (h->sinkpad);
    fail_unless (gst_video_info_from_caps (&info, caps));
    gst_caps_unref (caps);
    fail_unless (gst_video_frame_map (&frame, &info, buffer, GST_MAP_READ));
    fill (expected, sizeof (expected), n);
    for (guint y = 0; y < 3; y++)
      fail_unless (memcmp ((guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0) +
                               y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0),
                       expected + 5 * y, 5) == 0,
          "frame %u, row %u", n, y);
    gst_video_frame_unmap (&frame);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (buffer), n);
    fail_unless (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DISCONT));
    fail_unless (GST_BUFFER_PTS_IS_VALID (buffer));
    meta = gst_buffer_get_reference_timestamp_meta (buffer, NULL);
    fail_unless (meta != NULL);
    fail_unless (ABS (GST_CLOCK_DIFF (meta->timestamp,
                     (GstClockTime) g_get_real_time () * 1000)) < TIMEOUT);
  }
  text = wait_for (bus, GST_MESSAGE_WARNING);
  assert_has (text, "2 frames of stream \"a\" are missing before frame 5");
  fail_unless_equals_uint64 (check_stat (h->element, "frames"), 2);
  fail_unless_equals_uint64 (check_stat (h->element, "frames-missing"), 2);
  stop (h, bus);
  fail_unless_equals_int (((gint32 *) (gpointer) (s.map + s.l.readers))[0], 0);
}

/* Each type and number of axes as tensors, the fastest axis first. */
CHECK_TEST (test_frames_arrive_as_tensors)
{
  static const struct {
    GstShmimType type;
    guint n_axes;
    guint64 kind;
    const gchar *name, *dimensions;
    gsize size;
  } cases[] = {
      {GST_SHMIM_TYPE_F32, 1, 0, "float32", "7:1:1:1", 28},
      {GST_SHMIM_TYPE_U16, 2, 0, "uint16", "7:5:1:1", 70},
      {GST_SHMIM_TYPE_F64, 3, 0, "float64", "7:5:3:1", 840},
      {GST_SHMIM_TYPE_COMPLEX64, 2, 0, "float32", "2:7:5:1", 280},
      {GST_SHMIM_TYPE_I16, 3, GST_SHMIM_KIND_RING, "int16", "7:5:1:1", 70},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Stream) s = make_stream (
        "a", cases[i].type, cases[i].n_axes, 7, 5, 3, cases[i].kind);
    g_autoptr (CheckHarness) h = make_source ("stream=a", "other/tensors");
    gsize before = 0;
    const GstStructure *found;
    guint8 expected[840];
    GstBuffer *buffer;
    g_autoptr (GstCaps) caps = NULL;

    play (h);
    if (cases[i].kind) {
      s.h->slice = 2;
      before = 2 * cases[i].size;
    }
    write_frame (&s, 0);
    buffer = gst_harness_pull (h);
    fail_unless (buffer != NULL);
    fill (expected, sizeof (expected), 1);
    fail_unless_equals_int (gst_buffer_get_size (buffer), cases[i].size);
    fail_unless (
        gst_buffer_memcmp (buffer, 0, expected + before, cases[i].size) == 0);
    gst_buffer_unref (buffer);
    caps = gst_pad_get_current_caps (h->sinkpad);
    found = gst_caps_get_structure (caps, 0);
    fail_unless_equals_string (
        gst_structure_get_string (found, "types"), cases[i].name);
    fail_unless_equals_string (
        gst_structure_get_string (found, "dimensions"), cases[i].dimensions);
  }
}

/* shreconstruct takes float32 alone. */
CHECK_TEST (test_float64_becomes_float32)
{
  const gdouble values[] = {0.1, -2, 3e-9, 4e300};
  g_auto (Stream) s = make_stream ("a", GST_SHMIM_TYPE_F64, 1, 4, 0, 0, 0);
  g_autoptr (CheckHarness) h =
      make_source ("stream=a", "other/tensors,types=float32");

  play (h);
  for (guint t = 0; t < 2; t++) {
    g_autoptr (GstBuffer) buffer = NULL;
    gfloat found[4];

    memcpy (s.map + s.l.data, values, sizeof (values));
    s.h->count++;
    post (&s);
    buffer = gst_harness_pull (h);
    fail_unless (buffer != NULL);
    fail_unless_equals_int (gst_buffer_get_size (buffer), sizeof (found));
    gst_buffer_extract (buffer, 0, found, sizeof (found));
    for (guint i = 0; i < G_N_ELEMENTS (values); i++)
      fail_unless (found[i] == (gfloat) values[i], "value %u is %g", i,
          (gdouble) found[i]);
  }
}

/* An element that measures tells of the frames that were overwritten. */
CHECK_TEST (test_lost_frames_are_in_the_metadata)
{
  g_auto (Stream) s = make_stream ("a", GST_SHMIM_TYPE_U16, 2, 16, 16, 0, 0);
  g_autofree gchar *launch =
      g_strdup_printf ("shmimsrc stream=a folder=%s ! "
                       "shcentroid columns=2 rows=2 pitch-x=8 pitch-y=8",
          check_folder ());
  g_autoptr (CheckHarness) h = gst_harness_new_parse (launch);

  gst_harness_play (h);
  for (guint i = 0; i < 2; i++) {
    guint64 frame = 0, missing = 0;
    const GstStructure *result;
    g_autoptr (GstBuffer) buffer = NULL;

    write_frame (&s, i ? 5 : 0);
    buffer = gst_harness_pull (h);
    fail_unless (buffer != NULL);
    result = gst_imaging_results_get (buffer, NULL);
    fail_unless (result != NULL);
    fail_unless (gst_structure_get_uint64 (result, "frame", &frame));
    fail_unless (gst_structure_get_uint64 (result, "frames-missing", &missing));
    fail_unless_equals_uint64 (frame, i ? 7 : 1);
    fail_unless_equals_uint64 (missing, i ? 5 : 0);
  }
}

/* Through a whole loop: the reader of the commands gets the time of the frame.
 */
CHECK_TEST (test_commands_have_the_time_of_their_frame)
{
  g_auto (Stream) s = make_stream ("wfs", GST_SHMIM_TYPE_U16, 2, 16, 16, 0, 0);
  g_auto (Stream) dm = make_stream ("dm", GST_SHMIM_TYPE_F32, 2, 3, 1, 0, 0);
  g_autofree gchar *launch = g_strdup_printf (
      "shmimsrc stream=wfs folder=%s ! shcentroid columns=2 rows=2 pitch-x=8 "
      "pitch-y=8 fields=slopes ! shreconstruct commands=3 ! "
      "shmimsink stream=dm folder=%s async=false",
      check_folder (), check_folder ());
  g_autoptr (CheckPipeline) pipeline = gst_parse_launch (launch, NULL);
  struct timespec end;

  fail_unless (pipeline != NULL);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  clock_gettime (CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  for (guint i = 0; i < 3; i++) {
    write_frame (&s, 0);
    fail_unless_equals_int (sem_timedwait (semaphore_of (&dm, 2), &end), 0);
    fail_unless_equals_int (dm.h->acquired.seconds, s.h->acquired.seconds);
    fail_unless_equals_int (
        dm.h->acquired.nanoseconds, s.h->acquired.nanoseconds);
  }
}

CHECK_TEST (test_a_frame_that_is_being_written_waits)
{
  g_auto (Stream) s = make_stream ("a", GST_SHMIM_TYPE_U8, 2, 4, 3, 0, 0);
  g_autoptr (CheckHarness) h = make_source ("stream=a", "video/x-raw");
  g_autoptr (GstBuffer) buffer = NULL;

  play (h);
  s.h->is_writing = 1;
  s.h->count = 1;
  post (&s);
  write_frame (&s, 0);
  buffer = gst_harness_pull (h);
  fail_unless (buffer != NULL);
  fail_unless_equals_uint64 (GST_BUFFER_OFFSET (buffer), 2);
}

CHECK_TEST (test_a_stream_that_is_made_again_continues)
{
  g_auto (Stream) s = make_stream ("a", GST_SHMIM_TYPE_U8, 2, 4, 3, 0, 0),
                  t = {0};
  GstHarness *h = make_source ("stream=a", "video/x-raw");
  GstBus *bus = check_watch (h->element);
  g_autofree gchar *text = NULL;
  GstBuffer *buffer;
  GstCaps *caps;
  gint width = 0;

  play (h);
  write_frame (&s, 0);
  gst_buffer_unref (gst_harness_pull (h));
  t = make_stream ("a", GST_SHMIM_TYPE_U16, 2, 6, 2, 0, 0);
  write_frame (&t, 0);
  buffer = gst_harness_pull (h);
  fail_unless (buffer != NULL);
  fail_unless (gst_buffer_get_size (buffer) >= 24);
  gst_buffer_unref (buffer);
  caps = gst_pad_get_current_caps (h->sinkpad);
  gst_structure_get_int (gst_caps_get_structure (caps, 0), "width", &width);
  gst_caps_unref (caps);
  fail_unless_equals_int (width, 6);
  text = wait_for (bus, GST_MESSAGE_WARNING);
  assert_has (text,
      "made again with 6 x 2 values of uint16; it had 4 x 3 values of uint8");
  stop (h, bus);
}

/* Returns: the number of a process that has ended */
static gint
ended_process (void)
{
  const pid_t child = fork ();

  if (child == 0)
    _exit (0);
  waitpid (child, NULL, 0);
  return child;
}

CHECK_TEST (test_a_writer_that_has_ended)
{
  g_auto (Stream) s = make_stream ("a", GST_SHMIM_TYPE_U8, 2, 4, 3, 0, 0);
  g_autofree gchar *error = NULL, *warning = NULL, *idle = NULL;
  GstHarness *h = make_source ("stream=a timeout=20", "video/x-raw");
  GstBus *bus = check_watch (h->element);

  play (h);
  idle = wait_for (bus, GST_MESSAGE_WARNING);
  assert_has (idle, "came for 20 ms. Its writer (process ");
  s.h->creator = ended_process ();
  error = wait_for (bus, GST_MESSAGE_ERROR);
  assert_has (error, "has ended, and no frame came for 20 ms.");
  stop (h, bus);

  h = make_source ("stream=a timeout=20 end-policy=eos", "video/x-raw");
  bus = check_watch (h->element);
  play (h);
  warning = wait_for (bus, GST_MESSAGE_WARNING);
  assert_has (warning, "has ended, and no frame came for 20 ms.");
  for (GstEvent *event;; gst_event_unref (event)) {
    event = gst_harness_pull_event (h);
    fail_unless (event != NULL, "no EOS");
    if (GST_EVENT_TYPE (event) == GST_EVENT_EOS) {
      gst_event_unref (event);
      break;
    }
  }
  stop (h, bus);
}

CHECK_TEST (test_waiting_for_a_stream)
{
  GstHarness *h =
      make_source ("stream=a timeout=20 end-policy=wait", "video/x-raw");
  GstBus *bus = check_watch (h->element);
  g_autofree gchar *warning = NULL;
  GstBuffer *buffer;
  g_auto (Stream) s = {0};

  play (h);
  warning = wait_for (bus, GST_MESSAGE_WARNING);
  assert_has (warning, "There is no stream \"a\"");
  s = make_stream ("a", GST_SHMIM_TYPE_U8, 2, 4, 3, 0, 0);
  write_frame (&s, 0);
  buffer = gst_harness_pull (h);
  fail_unless (buffer != NULL);
  gst_buffer_unref (buffer);
  stop (h, bus);
}

CHECK_TEST (test_a_stream_that_is_removed)
{
  g_auto (Stream) s = make_stream ("a", GST_SHMIM_TYPE_U8, 2, 4, 3, 0, 0);
  GstHarness *h = make_source ("stream=a timeout=20", "video/x-raw");
  GstBus *bus = check_watch (h->element);
  g_autofree gchar *error = NULL;

  play (h);
  g_unlink (s.path);
  error = wait_for (bus, GST_MESSAGE_ERROR);
  assert_has (error, "Stream \"a\" was removed");
  stop (h, bus);
}

/* To nothing, and within the values: a mapping would end in SIGBUS. */
CHECK_TEST (test_a_file_that_is_cut)
{
  for (guint i = 0; i < 2; i++) {
    g_auto (Stream) s = make_stream ("a", GST_SHMIM_TYPE_U8, 2, 256, 256, 0, 0);
    GstHarness *h = make_source ("stream=a timeout=20", "video/x-raw");
    GstBus *bus = check_watch (h->element);
    g_autofree gchar *error = NULL;

    play (h);
    write_frame (&s, 0);
    gst_buffer_unref (gst_harness_pull (h));
    fail_unless_equals_int (truncate (s.path, i ? 5000 : 0), 0);
    error = wait_for (bus, GST_MESSAGE_ERROR);
    assert_has (error, "was cut while it was in use");
    stop (h, bus);
  }
}

/* What an older ImageStreamIO does: the same file is cut and filled again. */
CHECK_TEST (test_a_stream_made_again_in_the_same_file)
{
  g_auto (Stream) s = make_stream ("a", GST_SHMIM_TYPE_U8, 2, 64, 64, 0, 0),
                  t = {0};
  g_autoptr (CheckHarness) h = make_source ("stream=a", "video/x-raw");
  GstShmimHeader header;
  g_autofree guint8 *all = NULL;
  g_autoptr (GstBuffer) buffer = NULL;
  gint fd;

  play (h);
  write_frame (&s, 0);
  gst_buffer_unref (gst_harness_pull (h));
  header = *s.h;
  header.count = 0;
  all = g_memdup2 (s.map, s.l.end);
  memcpy (all, &header, sizeof (header));
  fd = g_open (s.path, O_RDWR | O_TRUNC, 0);
  fail_unless (
      pwrite (fd, all + 32, s.l.end - 32, 32) == (gssize) s.l.end - 32);
  fail_unless (pwrite (fd, all, 32, 0) == 32); /* the version is the last */
  close (fd);
  t = open_stream ("a");
  for (buffer = NULL; !buffer; buffer = gst_harness_try_pull (h))
    write_frame (&t, 0);
}

CHECK_TEST (test_stopping_does_not_wait)
{
  g_auto (Stream) s = make_stream ("a", GST_SHMIM_TYPE_U8, 2, 4, 3, 0, 0);

  for (guint i = 0; i < 20; i++) {
    GstHarness *h =
        make_source (readers[i % G_N_ELEMENTS (readers)], "video/x-raw");
    const gint64 begin = g_get_monotonic_time ();

    play (h);
    /* the harness would free its caps while the element still asks for them */
    gst_element_set_state (h->element, GST_STATE_NULL);
    fail_unless (g_get_monotonic_time () - begin < 10 * G_USEC_PER_SEC);
    gst_harness_teardown (h);
  }
  for (guint i = 0; i < N_SEMAPHORES; i++) /* all were given back */
    fail_unless (((gint32 *) (gpointer) (s.map + s.l.readers))[i] <= 0);
}

/* Unlocks the stream. Returns: whether a reader had a semaphore before that */
static gpointer
unlock_later (gpointer data)
{
  Stream *s = data;
  const gint fd = g_open (s->path, O_RDWR, 0);
  gboolean is_claimed = FALSE;

  fail_unless_equals_int (flock (fd, LOCK_EX), 0);
  ((gint32 *) (gpointer) (s->map + s->l.writers))[0] = 1; /* locked */
  for (guint i = 0; i < 100 && !is_claimed; i++) {
    g_usleep (1000);
    is_claimed = ((gint32 *) (gpointer) (s->map + s->l.readers))[0] > 0;
  }
  close (fd);
  return GINT_TO_POINTER (is_claimed);
}

CHECK_TEST (test_one_reader_at_a_time_takes_a_semaphore)
{
  g_auto (Stream) s = make_stream ("a", GST_SHMIM_TYPE_F32, 1, 9, 0, 0, 0);
  g_autoptr (CheckHarness) h = make_source ("stream=a", NULL);
  volatile gint32 *is_locked = (gint32 *) (gpointer) (s.map + s.l.writers);
  GThread *other = g_thread_new ("other", unlock_later, &s);

  while (*is_locked == 0)
    g_usleep (1000);
  play (h);
  fail_unless (
      !g_thread_join (other), "a semaphore was taken beside another reader");
  fail_unless_equals_int (
      ((gint32 *) (gpointer) (s.map + s.l.readers))[0], getpid ());
  *is_locked = 0;
}

CHECK_TEST (test_what_is_no_stream)
{
  g_auto (Stream) s = {0};
  g_autofree gchar *pipe_path = path_of ("pipe");

  assert_refused ("stream=a", "There is no stream \"a\"");
  assert_refused ("", "No stream is named");
  assert_refused ("stream=../a", "a name has no / and no .");
  assert_refused ("stream=b/a", "a name has no / and no .");
  assert_refused (
      "stream="
      "0123456789012345678901234567890123456789012345678901234567890"
      "1234567890123456789",
      "of 80 bytes");
  fail_unless_equals_int (mkfifo (pipe_path, 0600), 0);
  assert_refused ("stream=pipe", "is no regular file");

  s = make_stream ("a", GST_SHMIM_TYPE_U8, 2, 64, 64, 0, 0);
  g_strlcpy (s.h->version, "1.05", 32);
  assert_refused ("stream=a", "has version \"1.05\" of ImageStreamIO");
  s.h->version[0] = '\0';
  assert_refused ("stream=a", "has no version");
  g_strlcpy (s.h->version, GST_SHMIM_VERSION, 32);
  s.h->location = 0;
  assert_refused ("stream=a", "lies in the memory of a GPU");
  s.h->location = -1;
  s.h->type = 20;
  assert_refused ("stream=a", "type 20 of ImageStreamIO");
  s.h->type = GST_SHMIM_TYPE_U8;
  s.h->n_values--;
  assert_refused ("stream=a", "contradicts itself");
  s.h->n_values++;
  s.h->n_axes = 4;
  assert_refused ("stream=a", "contradicts itself");
  s.h->n_axes = 2;
  s.h->ring_size = G_MAXUINT32;
  assert_refused ("stream=a", "by its header");
  s.h->ring_size = 0;
  s.h->n_semaphores = 0;
  assert_refused ("stream=a", "has no semaphores");
  s.h->n_semaphores = N_SEMAPHORES;
  for (guint i = 0; i < N_SEMAPHORES; i++)
    ((gint32 *) (gpointer) (s.map + s.l.readers))[i] = getpid ();
  assert_refused ("stream=a", "All 3 semaphores of stream \"a\" have readers");
  fail_unless_equals_int (truncate (s.path, (goffset) s.l.end - 8), 0);
  assert_refused ("stream=a", "it was cut, or is not complete");
  s.h->size[0] = s.h->size[1] = 65536;
  s.h->n_values = s.h->data_size = G_GUINT64_CONSTANT (1) << 32;
  assert_refused ("stream=a", "be below 4 GiB");
  fail_unless_equals_int (truncate (s.path, 384), 0);
  assert_refused ("stream=a", "too few for a header");
  fail_unless_equals_int (truncate (s.path, 0), 0);
  assert_refused ("stream=a", "too few for a header");
  g_chmod (s.path, 0400);
  if (getuid () == 0) /* whom nothing is denied */
    fail_unless_equals_int (seteuid (65534), 0);
  assert_refused ("stream=a", "Permission denied");
  if (getuid () == 0)
    fail_unless_equals_int (seteuid (0), 0);
}

CHECK_TEST (test_a_peer_that_does_not_take_the_frames)
{
  Stream s = make_stream ("a", GST_SHMIM_TYPE_F32, 1, 9, 0, 0, 0);
  GstHarness *h = make_source ("stream=a", "video/x-raw");
  GstBus *bus = check_watch (h->element);
  g_autofree gchar *error = NULL;

  play (h);
  error = wait_for (bus, GST_MESSAGE_ERROR);
  assert_has (
      error, "does not take the frames of stream \"a\", 9 values of float32");
  assert_has (error, "shreconstruct as float32 or float64");
  stop (h, bus);
  unmap_stream (&s);
}

/* --- the sink ------------------------------------------------------------- */

static GstHarness *
make_sink (const gchar *properties, const gchar *caps)
{
  g_autofree gchar *launch = g_strdup_printf (
      "shmimsink folder=%s async=false %s", check_folder (), properties);
  GstElement *sink = gst_parse_launch (launch, NULL);
  GstHarness *h;

  fail_unless (sink != NULL);
  gst_object_ref_sink (sink);
  h = gst_harness_new_with_element (sink, "sink", NULL);
  gst_object_unref (sink);
  gst_harness_set_src_caps_str (h, caps);
  return h;
}

static GstBuffer *
make_buffer (gsize size, guint n)
{
  guint8 *data = g_malloc (size);

  fill (data, size, n);
  return gst_buffer_new_wrapped (data, size);
}

#define COMMANDS(n) \
  "other/tensors,format=static,num_tensors=1,types=float32,dimensions=" n \
  ":1:1:1,framerate=0/1"

static void
assert_frame (Stream *s, guint reader, guint n)
{
  struct timespec end;
  g_autofree guint8 *expected = g_malloc (s->h->data_size);

  clock_gettime (CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  fail_unless_equals_int (sem_timedwait (semaphore_of (s, reader), &end), 0);
  fill (expected, s->h->data_size, n);
  fail_unless (memcmp (s->map + s->l.data, expected, s->h->data_size) == 0);
  fail_unless_equals_int (s->h->is_writing, 0);
}

CHECK_TEST (test_commands_reach_a_reader)
{
  g_autoptr (CheckHarness) h = make_sink ("stream=dm", COMMANDS ("97"));
  GstBuffer *buffer = make_buffer (97 * 4, 3);
  GstCaps *clock = gst_caps_new_empty_simple ("timestamp/x-unix");
  g_auto (Stream) s = {0};

  gst_buffer_add_reference_timestamp_meta (
      buffer, clock, 1700000000 * GST_SECOND + 5, GST_CLOCK_TIME_NONE);
  gst_caps_unref (clock);
  fail_unless_equals_int (gst_harness_push (h, buffer), GST_FLOW_OK);
  s = open_stream ("dm");
  fail_unless_equals_int (s.h->n_axes, 2);
  fail_unless_equals_int (s.h->size[0], 97);
  fail_unless_equals_int (s.h->size[1], 1);
  fail_unless_equals_int (s.h->creator, getpid ());
  fail_unless_equals_uint64 (s.h->count, 1);
  fail_unless (ABS (s.h->acquired.seconds - 1700000000) < 60); /* TAI */
  fail_unless_equals_int (s.h->acquired.nanoseconds, 5);
  assert_frame (&s, 9, 3);
  for (guint n = 4; n < 30; n++) /* of a semaphore at most 10 are posted */
    gst_harness_push (h, make_buffer (97 * 4, n));
  for (guint i = 0; i < 10; i++)
    assert_frame (&s, 8, 29);
  fail_unless_equals_int (sem_trywait (semaphore_of (&s, 8)), -1);
  fail_unless_equals_uint64 (s.h->count, 27);
}

CHECK_TEST (test_the_count_of_frames_carries)
{
  g_autoptr (CheckHarness) h = make_sink ("stream=dm", COMMANDS ("3"));
  g_auto (Stream) s = {0};

  gst_harness_push (h, make_buffer (12, 1));
  s = open_stream ("dm");
  s.h->count = G_MAXUINT32 - 1;
  gst_harness_push (h, make_buffer (12, 1));
  fail_unless_equals_uint64 (s.h->count, G_MAXUINT32);
  gst_harness_push (h, make_buffer (12, 1));
  fail_unless_equals_uint64 (s.h->count, G_GUINT64_CONSTANT (1) << 32);
}

/* Commands into a mirror of 12 x 8, which somebody waits for. */
CHECK_TEST (test_a_stream_that_fits_is_used)
{
  g_auto (Stream) s = make_stream ("dm", GST_SHMIM_TYPE_F32, 2, 12, 8, 0, 0);
  g_autoptr (CheckHarness) h = make_sink ("stream=dm", COMMANDS ("96"));

  gst_harness_push (h, make_buffer (96 * 4, 5));
  assert_frame (&s, 1, 5);
  fail_unless_equals_uint64 (s.h->count, 1);
  fail_unless_equals_int (s.h->size[1], 8);
}

static void
assert_sink_refuses (
    const gchar *properties, const gchar *caps, gsize size, const gchar *part)
{
  GstHarness *h = make_sink (properties, caps);
  GstBus *bus = check_watch (h->element);
  g_autofree gchar *error = NULL;

  fail_unless (gst_harness_push (h, make_buffer (size, 1)) != GST_FLOW_OK);
  error = wait_for (bus, GST_MESSAGE_ERROR);
  assert_has (error, part);
  stop (h, bus);
}

CHECK_TEST (test_a_stream_that_does_not_fit_stays)
{
  g_auto (Stream) s = make_stream ("dm", GST_SHMIM_TYPE_F32, 2, 12, 8, 0, 0),
                  t = {0};
  g_autoptr (CheckHarness) h = NULL;

  assert_sink_refuses ("stream=dm", COMMANDS ("97"), 388,
      "exists with 12 x 8 values of float32; the frames have 97 x 1 values");
  fail_unless_equals_uint64 (s.h->count, 0);
  h = make_sink ("stream=dm replace=true axes=1", COMMANDS ("97"));
  fail_unless_equals_int (
      gst_harness_push (h, make_buffer (97 * 4, 2)), GST_FLOW_OK);
  t = open_stream ("dm");
  fail_unless_equals_int (t.h->n_axes, 1);
  assert_frame (&t, 0, 2);
  fail_unless_equals_uint64 (s.h->count, 0); /* its readers keep the old file */
}

CHECK_TEST (test_a_file_that_is_cut_while_it_is_written)
{
  g_auto (Stream) s = make_stream ("dm", GST_SHMIM_TYPE_F32, 2, 12, 8, 0, 0);
  GstHarness *h = make_sink ("stream=dm", COMMANDS ("96"));
  GstBus *bus = check_watch (h->element);
  g_autofree gchar *error = NULL;
  struct stat status;

  gst_harness_push (h, make_buffer (96 * 4, 5));
  fail_unless_equals_int (truncate (s.path, 0), 0);
  fail_unless_equals_int (
      gst_harness_push (h, make_buffer (96 * 4, 6)), GST_FLOW_ERROR);
  error = wait_for (bus, GST_MESSAGE_ERROR);
  assert_has (error, "was cut while it was in use");
  fail_unless_equals_int (stat (s.path, &status), 0);
  fail_unless_equals_int (status.st_size, 0);
  stop (h, bus);
}

/* Files end where the frame begins, for an instant. */
CHECK_TEST (test_a_frame_that_cannot_be_written_holds_nobody)
{
  g_auto (Stream) s = make_stream ("dm", GST_SHMIM_TYPE_F32, 2, 12, 8, 0, 0);
  GstHarness *h = make_sink ("stream=dm", COMMANDS ("96"));
  GstBus *bus = check_watch (h->element);
  g_autofree gchar *error = NULL;
  struct rlimit before, small;

  gst_harness_push (h, make_buffer (96 * 4, 5));
  signal (SIGXFSZ, SIG_IGN);
  fail_unless_equals_int (getrlimit (RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = s.l.data;
  fail_unless_equals_int (setrlimit (RLIMIT_FSIZE, &small), 0);
  gst_harness_push (h, make_buffer (96 * 4, 6));
  fail_unless_equals_int (setrlimit (RLIMIT_FSIZE, &before), 0);
  error = wait_for (bus, GST_MESSAGE_ERROR);
  assert_has (error, "cannot be written");
  fail_unless_equals_int (s.h->is_writing, 0);
  fail_unless_equals_uint64 (s.h->count, 1);
  stop (h, bus);
}

/* From a sink to a source of the same process, 16-bit video with padded rows.
 */
CHECK_TEST (test_a_sink_and_a_source)
{
  g_autoptr (CheckHarness) sink = make_sink ("stream=v",
      "video/x-raw,format=GRAY16_LE,width=5,height=3,framerate=0/1");
  g_autoptr (CheckHarness) source = NULL;

  gst_harness_push (sink, make_buffer (36, 1));
  source = make_source ("stream=v", "video/x-raw");
  play (source);
  for (guint n = 2; n < 10; n++) {
    guint8 sent[36];
    g_autoptr (GstBuffer) buffer = NULL;

    gst_harness_push (sink, make_buffer (36, n));
    buffer = gst_harness_pull (source);
    fail_unless (buffer != NULL);
    fail_unless_equals_int (gst_buffer_get_size (buffer), 36);
    fill (sent, sizeof (sent), n);
    for (guint y = 0; y < 3; y++)
      fail_unless (gst_buffer_memcmp (buffer, 12 * y, sent + 12 * y, 10) == 0);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (buffer), n);
  }
}
