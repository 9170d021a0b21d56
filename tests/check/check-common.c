/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "check-common.h"

#include <dlfcn.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- variables that end with their block ---------------------------------- */

GstBus *
check_watch (GstElement *element)
{
  GstBus *bus = gst_bus_new ();

  gst_element_set_bus (element, bus);
  return bus;
}

void
check_unwatch (GstBus *bus)
{
  gst_bus_set_flushing (bus, TRUE);
  gst_object_unref (bus);
}

void
check_take_down (
    GstElement *element, GstBus *bus, GstHarness *const *harnesses, guint n)
{
  gst_element_set_bus (element, NULL);
  for (guint i = 0; i < n; i++)
    if (harnesses[i])
      gst_harness_teardown (harnesses[i]);
  gst_object_unref (bus);
  gst_object_unref (element);
}

/* --- the device ---------------------------------------------------------- */

const ImkDevice *
check_device (void)
{
  const ImkDevice *device = NULL;
  ImkError error;

  check_ok (imk_device_get (&device, &error), &error);
  return device;
}

GstImagingContext *
check_context (gint device_id)
{
  ImkError error;
  GstImagingContext *context = gst_imaging_context_get (device_id, &error);

  fail_unless (context != NULL, "%s", context ? "" : error.message);
  return context;
}

/* A function of the mock, NULL where the module is not the mock or not loaded
 * yet. */
static void *
mock_function (const gchar *name, int flags)
{
  g_autofree gchar *path =
      g_build_filename (g_getenv ("IMK_MODULE_PATH"), "libimk-cuda.so", NULL);
  void *module = dlopen (path, RTLD_NOW | flags), *function = NULL;

  if (module) {
    function = dlsym (module, name);
    dlclose (module);
  }
  return function;
}

gboolean
check_is_mock (void)
{
  return mock_function ("imk_mock_n_live", 0) != NULL;
}

static guint
mock_count (const gchar *name)
{
  unsigned (*count) (void) =
      (unsigned (*) (void)) mock_function (name, RTLD_NOLOAD);

  return count ? count () : 0;
}

guint
check_n_devices (void)
{
  const ImkDevice *device;
  gint n = 0;

  return imk_backend_load ("cuda", NULL) == IMK_OK &&
                 imk_device_get (&device, NULL) == IMK_OK &&
                 device->count (&n, NULL) == IMK_OK
             ? (guint) n
             : 0;
}

gboolean
check_has_two_devices (void)
{
  return check_n_devices () > 1;
}

gboolean
check_ask_child (gboolean (*ask) (void))
{
  pid_t child = fork ();
  int status = 0;

  if (child == 0)
    _exit (ask () ? 1 : 0);
  waitpid (child, &status, 0);
  return WIFEXITED (status) && WEXITSTATUS (status) == 1;
}

static void
check_starts (GstElement *element)
{
  fail_unless (gst_element_set_state (element, GST_STATE_PAUSED) !=
               GST_STATE_CHANGE_FAILURE);
  gst_element_set_state (element, GST_STATE_NULL);
}

static void
check_wrong_list (GstElement *element, const gchar *list, const gchar *words)
{
  g_autoptr (CheckBus) bus = check_watch (element);

  gst_util_set_object_arg (G_OBJECT (element), "backend", "cuda");
  gst_util_set_object_arg (G_OBJECT (element), "cuda-devices", list);
  fail_unless_equals_int (gst_element_set_state (element, GST_STATE_PAUSED),
      GST_STATE_CHANGE_FAILURE);
  check_error (bus, LIBRARY, SETTINGS, words);
  gst_element_set_state (element, GST_STATE_NULL);
  gst_util_set_object_arg (G_OBJECT (element), "backend", "cpu");
  check_starts (element);
  gst_util_set_object_arg (G_OBJECT (element), "backend", "cuda");
  gst_util_set_object_arg (G_OBJECT (element), "cuda-devices", "<>");
  check_starts (element);
}

void
check_wrong_devices (const gchar *name)
{
  g_autofree gchar *seven = g_strdup_printf (
      "cuda-devices has 7, but this machine has %u", check_n_devices ());
  g_autoptr (GstElement) element = gst_element_factory_make (name, NULL);

  check_wrong_list (element, "<0, 7>", seven);
}

guint
check_n_live (void)
{
  return mock_count ("imk_mock_n_live");
}

guint
check_n_page_locked (void)
{
  return mock_count ("imk_mock_n_page_locked");
}

guint
check_n_copies (void)
{
  return mock_count ("imk_mock_n_copies");
}

void
check_lose_device (gint device_id)
{
  void (*lose) (int) =
      (void (*) (int)) mock_function ("imk_mock_lose_device", RTLD_NOLOAD);

  if (lose)
    lose (device_id);
}

void
check_hold_device (gint device_id, gboolean hold)
{
  void (*set) (int, bool) =
      (void (*) (int, bool)) mock_function ("imk_mock_hold", RTLD_NOLOAD);

  if (set)
    set (device_id, hold);
}

void
check_hold_context (gboolean hold)
{
  void (*set) (bool) =
      (void (*) (bool)) mock_function ("imk_mock_hold_context", RTLD_NOLOAD);

  if (set)
    set (hold);
}

void
check_close_device (gint device_id)
{
  void (*close) (int) =
      (void (*) (int)) mock_function ("imk_mock_close_device", RTLD_NOLOAD);

  if (close)
    close (device_id);
}

/* --- frames -------------------------------------------------------------- */

GstVideoInfo
check_info (const gchar *format, gint width, gint height)
{
  GstVideoInfo info;

  fail_unless (gst_video_info_set_format (
      &info, gst_video_format_from_string (format), width, height));
  GST_VIDEO_INFO_FPS_N (&info) = 25;
  GST_VIDEO_INFO_FPS_D (&info) = 1;
  return info;
}

gchar *
check_caps_string (const gchar *format, gint width, gint height)
{
  return g_strdup_printf (
      "video/x-raw,format=%s,width=%d,height=%d,framerate=25/1", format, width,
      height);
}

/* The same numbers on every machine and in every GLib. */
static guint8
next_random (guint32 *state)
{
  *state = *state * 1664525u + 1013904223u;
  return *state >> 24;
}

static void
set_times (GstBuffer *buffer, guint number)
{
  GST_BUFFER_PTS (buffer) = number * 40 * GST_MSECOND;
  GST_BUFFER_DURATION (buffer) = 40 * GST_MSECOND;
}

GstBuffer *
check_noise (const GstVideoInfo *info, guint seed)
{
  return check_noise_padded (info, seed, 0);
}

GstBuffer *
check_noise_padded (const GstVideoInfo *info, guint seed, guint padding)
{
  gsize offset[GST_VIDEO_MAX_PLANES] = {0};
  gint stride[GST_VIDEO_MAX_PLANES] = {0};
  guint32 state = seed * 2654435761u + 1;
  GstBuffer *buffer;
  GstVideoFrame frame;
  gsize size = 0;

  for (guint i = 0; i < GST_VIDEO_INFO_N_PLANES (info); i++) {
    offset[i] = size;
    stride[i] = GST_VIDEO_INFO_PLANE_STRIDE (info, i) + padding;
    size += (gsize) stride[i] *
            GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT (info->finfo, i, info->height);
  }
  buffer = gst_buffer_new_allocate (NULL, padding ? size : info->size, NULL);
  gst_buffer_memset (buffer, 0, 0xee, -1);
  set_times (buffer, seed);
  if (padding)
    gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE,
        GST_VIDEO_INFO_FORMAT (info), info->width, info->height,
        GST_VIDEO_INFO_N_PLANES (info), offset, stride);

  fail_unless (gst_video_frame_map (
      &frame, (GstVideoInfo *) info, buffer, GST_MAP_WRITE));
  for (guint i = 0; i < GST_VIDEO_FRAME_N_PLANES (&frame); i++)
    for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT (&frame, i); y++) {
      guint8 *row = (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, i) +
                    (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, i);

      for (gint x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH (&frame, i) *
                               GST_VIDEO_FRAME_COMP_PSTRIDE (&frame, i);
           x++)
        row[x] = next_random (&state);
    }
  gst_video_frame_unmap (&frame);
  return buffer;
}

static void
check_same_plane (GstVideoFrame *found, GstVideoFrame *expected, guint plane)
{
  gint row_size = GST_VIDEO_FRAME_COMP_WIDTH (found, plane) *
                  GST_VIDEO_FRAME_COMP_PSTRIDE (found, plane);

  for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT (found, plane); y++) {
    const guint8 *f = (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (found, plane) +
                      (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (found, plane);
    const guint8 *e =
        (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (expected, plane) +
        (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (expected, plane);

    for (gint x = 0; x < row_size; x++)
      if (f[x] != e[x]) /* each fail_unless () writes a file */
        fail ("plane %u: first difference in row %d, byte %d: %u, expected %u",
            plane, y, x, f[x], e[x]);
  }
}

void
check_same_pixels (
    GstBuffer *found, GstBuffer *expected, const GstVideoInfo *info)
{
  GstVideoFrame f, e;

  fail_unless (
      gst_video_frame_map (&f, (GstVideoInfo *) info, found, GST_MAP_READ));
  fail_unless (
      gst_video_frame_map (&e, (GstVideoInfo *) info, expected, GST_MAP_READ));
  for (guint i = 0; i < GST_VIDEO_FRAME_N_PLANES (&f); i++)
    check_same_plane (&f, &e, i);
  gst_video_frame_unmap (&f);
  gst_video_frame_unmap (&e);
}

CheckMap
check_map (GstBuffer *buffer, GstMapFlags flags)
{
  CheckMap map = {.buffer = buffer};

  fail_unless (gst_buffer_map (buffer, &map.info, flags));
  map.data = map.info.data;
  map.size = map.info.size;
  return map;
}

void
check_unmap (CheckMap *map)
{
  gst_buffer_unmap (map->buffer, &map->info);
}

/* --- memory of ours ------------------------------------------------------- */

/* As a kernel of another element leaves it: nothing on the host. */
static void
write_on_device (GstImagingContext *context, GstBuffer *to, GstBuffer *from)
{
  const ImkDevice *device = gst_imaging_context_device (context);
  gpointer stream = gst_imaging_context_stream (context), pointer;
  GstMemory *memory = gst_buffer_peek_memory (to, 0);
  ImkLocation location;
  GstMapInfo map;
  ImkError error;

  check_ok (gst_imaging_context_push (context, &error), &error);
  fail_unless (gst_buffer_map (from, &map, GST_MAP_READ));
  check_ok (gst_imaging_memory_acquire (memory, stream, GST_MAP_WRITE, FALSE,
                NULL, &pointer, &location, &error),
      &error);
  check_ok (device->copy (pointer, map.size, map.data, map.size, map.size, 1,
                stream, &error),
      &error);
  check_ok (
      gst_imaging_memory_release (memory, stream, GST_MAP_WRITE, FALSE, &error),
      &error);
  gst_buffer_unmap (from, &map);
  gst_imaging_context_pop (context);
}

GstBuffer *
check_ours (GstImagingMemoryMode mode, GstImagingStats *stats, GstBuffer *plain)
{
  GstImagingContext *context = check_context (0);
  GstAllocator *allocator = gst_imaging_allocator_new (context, mode, stats);
  GstBuffer *buffer =
      gst_buffer_new_allocate (allocator, gst_buffer_get_size (plain), NULL);
  GstMapInfo map;

  if (mode == GST_IMAGING_MEMORY_DEVICE) {
    write_on_device (context, buffer, plain);
  } else {
    fail_unless (gst_buffer_map (plain, &map, GST_MAP_READ));
    gst_buffer_fill (buffer, 0, map.data, map.size);
    gst_buffer_unmap (plain, &map);
  }
  gst_buffer_copy_into (buffer, plain, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_object_unref (allocator);
  g_object_unref (context);
  gst_buffer_unref (plain);
  return buffer;
}

/* --- tables of the documentation ------------------------------------------ */

/* Returns: (transfer full): the lines of @text without @words */
static gchar *
without_lines (const gchar *text, const gchar *words)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", 0);
  GString *kept = g_string_new (NULL);

  for (guint i = 0; lines[i] && lines[i][0]; i++)
    if (!words || !strstr (lines[i], words))
      g_string_append_printf (kept, "%s\n", lines[i]);
  return g_string_free (kept, FALSE);
}

void
check_table (const gchar *path, const gchar *maker, const gchar *table,
    const gchar *not_built)
{
  static const gchar end_mark[] = "<!-- end of what is made -->\n";
  g_autofree gchar *mark = g_strdup_printf ("<!-- made by %s -->\n", maker);
  g_autofree gchar *page = NULL, *text = NULL, *expected = NULL;
  gchar *begin, *end;

  fail_unless (g_file_get_contents (path, &page, NULL, NULL));
  begin = strstr (page, mark);
  end = begin ? strstr (begin, end_mark) : NULL;
  fail_unless (end != NULL, "%s has no marks around its table", path);
  begin += strlen (mark);
  if (g_getenv ("IMAGING_UPDATE_DOCS")) {
    text =
        g_strdup_printf ("%.*s%s%s", (gint) (begin - page), page, table, end);
    fail_unless (g_file_set_contents (path, text, -1, NULL));
    return;
  }
  text = g_strndup (begin, end - begin);
  expected = without_lines (text, not_built);
  fail_unless (strcmp (expected, table) == 0, "%s should have this table:\n%s",
      path, table);
}

/* --- real data ------------------------------------------------------------ */

const gchar *
check_data_folder (void)
{
  const gchar *given = g_getenv ("IMAGING_TEST_DATA");

  return given ? given : TEST_DATA_FOLDER;
}

/* --- a folder of its own -------------------------------------------------- */

static gchar *folder;
static gchar *folders; /* of the program: a failed test leaves its folder */

void
check_begin_folders (void)
{
  folders = g_dir_make_tmp ("check-XXXXXX", NULL);
  g_assert (folders != NULL);
}

static void
remove_all (const gchar *path)
{
  gboolean is_link = g_file_test (path, G_FILE_TEST_IS_SYMLINK);
  g_autoptr (GDir) dir = is_link ? NULL : g_dir_open (path, 0, NULL);
  const gchar *name;

  while (dir && (name = g_dir_read_name (dir))) {
    g_autofree gchar *below = g_build_filename (path, name, NULL);

    remove_all (below);
  }
  g_remove (path);
}

void
check_end_folders (gboolean failed)
{
  if (!failed)
    remove_all (folders);
  else if (g_rmdir (folders) != 0)
    g_printerr ("The files of failed tests are kept in %s.\n", folders);
  g_clear_pointer (&folders, g_free);
}

void
check_make_folder (void)
{
  folder = g_build_filename (folders, "XXXXXX", NULL);
  fail_unless (g_mkdtemp (folder) != NULL);
}

void
check_remove_folder (void)
{
  GDir *dir = g_dir_open (folder, 0, NULL);
  const gchar *name;

  while ((name = g_dir_read_name (dir))) {
    g_autofree gchar *path = check_path_of (name);

    g_remove (path); /* an empty folder, too */
  }
  g_dir_close (dir);
  fail_unless_equals_int (g_rmdir (folder), 0);
  g_clear_pointer (&folder, g_free);
}

const gchar *
check_folder (void)
{
  return folder;
}

gchar *
check_path_of (const gchar *name)
{
  return g_build_filename (folder, name, NULL);
}

void
check_write_file (const gchar *name, gconstpointer data, gssize size)
{
  g_autofree gchar *path = check_path_of (name);

  /* without the fsync of g_file_set_contents () */
  fail_unless (g_file_set_contents_full (
      path, data, size, G_FILE_SET_CONTENTS_NONE, 0666, NULL));
}

gdouble
check_number (const gchar *name, gdouble usual)
{
  const gchar *text = g_getenv (name);

  return text ? g_ascii_strtod (text, NULL) : usual;
}

/* --- elements and pipelines ----------------------------------------------- */

gboolean
check_have_element (const gchar *name)
{
  GstElementFactory *factory = gst_element_factory_find (name);

  if (!factory) {
    g_printerr ("skipped: %s is not installed\n", name);
    return FALSE;
  }
  gst_object_unref (factory);
  return TRUE;
}

GPtrArray *
check_formats (const gchar *name, const gchar *feature)
{
  GPtrArray *formats = g_ptr_array_new_with_free_func (g_free);
  GstElement *element = gst_element_factory_make (name, NULL);
  GstPad *pad = gst_element_get_static_pad (element, "sink");
  GstCaps *caps = gst_pad_get_pad_template_caps (pad);

  if (!feature)
    feature = GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY;
  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    const GstStructure *s = gst_caps_get_structure (caps, i);
    const GValue *list = gst_structure_get_value (s, "format");

    if (!gst_structure_has_name (s, "video/x-raw") ||
        !gst_caps_features_contains (gst_caps_get_features (caps, i), feature))
      continue;
    for (guint n = 0; n < gst_value_list_get_size (list); n++)
      g_ptr_array_add (
          formats, g_value_dup_string (gst_value_list_get_value (list, n)));
  }
  gst_caps_unref (caps);
  gst_object_unref (pad);
  gst_object_unref (element);
  return formats;
}

static GstBuffer *
pull (GstHarness *h)
{
  gint64 end = g_get_monotonic_time () + GST_TIME_AS_USECONDS (CHECK_TIMEOUT);
  GstBuffer *buffer = gst_harness_try_pull (h);

  while (!buffer && g_get_monotonic_time () < end) {
    g_usleep (1000);
    buffer = gst_harness_try_pull (h);
  }
  fail_unless (buffer != NULL, "no buffer came");
  return buffer;
}

GstBuffer *
check_pull (GstHarness *h)
{
  GstBuffer *buffer = pull (h);

  if (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_HEADER)) {
    g_autoptr (GstBuffer) header = buffer;

    buffer = pull (h);
    gst_buffer_prepend_memory (buffer, gst_buffer_get_all_memory (header));
  }
  return buffer;
}

void
check_push (GstHarness *h, GstBuffer *buffer, GstFlowReturn flow)
{
  fail_unless_equals_string (gst_flow_get_name (gst_harness_push (h, buffer)),
      gst_flow_get_name (flow));
}

GstPadProbeReturn
check_offer_allocator (GstPad *pad, GstPadProbeInfo *info, gpointer allocator)
{
  GstQuery *query = GST_PAD_PROBE_INFO_QUERY (info);

  if (GST_QUERY_TYPE (query) != GST_QUERY_ALLOCATION)
    return GST_PAD_PROBE_OK;
  gst_query_add_allocation_param (query, allocator, NULL);
  return GST_PAD_PROBE_HANDLED;
}

void
check_flush (GstHarness *h)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  fail_unless (gst_harness_push_event (h, gst_event_new_flush_start ()));
  fail_unless (gst_harness_push_event (h, gst_event_new_flush_stop (TRUE)));
  fail_unless (gst_harness_push_event (h, gst_event_new_segment (&segment)));
}

guint64
check_stat (GstElement *element, const gchar *name)
{
  g_autoptr (GstStructure) stats = NULL;
  guint64 value = 0;

  g_object_get (element, "stats", &stats, NULL);
  fail_unless (stats != NULL && gst_structure_get_uint64 (stats, name, &value),
      "stats have no %s", name);
  return value;
}

GstMessage *
check_message (GstBus *bus, GstMessageType types)
{
  GstMessage *message = gst_bus_timed_pop_filtered (bus, CHECK_TIMEOUT, types);

  fail_unless (message != NULL, "no message came");
  return message;
}

GError *
check_parse (GstMessage *message)
{
  GError *error = NULL;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_WARNING)
    gst_message_parse_warning (message, &error, NULL);
  else if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_INFO)
    gst_message_parse_info (message, &error, NULL);
  else
    gst_message_parse_error (message, &error, NULL);
  return error;
}

static void
check_words (const GError *error, const gchar *words)
{
  fail_unless (strstr (error->message, words) != NULL,
      "\"%s\" does not say \"%s\"", error->message, words);
}

void
check_message_says (
    GstMessage *message, GQuark domain, gint code, const gchar *words)
{
  g_autoptr (GError) error = check_parse (message);

  fail_unless (g_error_matches (error, domain, code), "%s %d: %s",
      g_quark_to_string (error->domain), error->code, error->message);
  check_words (error, words);
  gst_message_unref (message);
}

void
check_says (GstBus *bus, GstMessageType types, const gchar *words)
{
  g_autoptr (GstMessage) message = check_message (bus, types);
  g_autoptr (GError) error = check_parse (message);

  check_words (error, words);
}

GstMessage *
check_element_message (GstBus *bus, const gchar *name)
{
  GstMessage *message = check_message (bus, GST_MESSAGE_ELEMENT);
  const GstStructure *s = gst_message_get_structure (message);

  if (gst_structure_has_name (s, "imaging-settings") ||
      g_str_has_suffix (gst_structure_get_name (s), "-progress")) {
    gst_message_unref (message);
    return check_element_message (bus, name);
  }
  fail_unless_equals_string (gst_structure_get_name (s), name);
  return message;
}

guint
check_count_messages (GstBus *bus, GstMessageType types)
{
  GstMessage *message;
  guint n = 0;

  while ((message = gst_bus_pop (bus))) {
    n += (GST_MESSAGE_TYPE (message) & types) != 0;
    gst_message_unref (message);
  }
  return n;
}

void
check_no_messages (GstBus *bus, GstMessageType types)
{
  fail_unless_equals_int (check_count_messages (bus, types), 0);
}

static GstPadProbeReturn
on_blocked (GstPad *pad, GstPadProbeInfo *info, gpointer self)
{
  g_atomic_int_set (&((CheckWaiting *) self)->waiting, TRUE);
  return GST_PAD_PROBE_OK;
}

void
check_wait_at (CheckWaiting *self, GstElement *element, const gchar *name,
    GThreadFunc push, gpointer data)
{
  *self = (CheckWaiting){.pad = gst_element_get_static_pad (element, name)};
  self->probe = gst_pad_add_probe (self->pad,
      GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER, on_blocked, self,
      NULL);
  self->thread = g_thread_new ("push", push, data);
  while (!g_atomic_int_get (&self->waiting))
    g_usleep (1000);
}

void
check_release (CheckWaiting *self)
{
  gst_pad_remove_probe (self->pad, self->probe);
  g_thread_join (self->thread);
  gst_object_unref (self->pad);
}

static gpointer
ask (gpointer data)
{
  CheckAsking *self = data;

  while (!g_atomic_int_get (&self->stop)) {
    g_autoptr (GstQuery) query = gst_query_new_allocation (self->caps, TRUE);

    gst_pad_query (self->pad, query);
  }
  return NULL;
}

void
check_begin_asking (CheckAsking *self, GstElement *element, const gchar *name,
    const gchar *caps)
{
  *self = (CheckAsking){
      .pad = gst_element_get_static_pad (element, name),
      .caps = gst_caps_from_string (caps),
  };
  self->thread = g_thread_new ("ask", ask, self);
}

void
check_end_asking (CheckAsking *self)
{
  g_atomic_int_set (&self->stop, TRUE);
  g_thread_join (self->thread);
  gst_caps_unref (self->caps);
  gst_object_unref (self->pad);
}

GstElement *
check_launch (const gchar *description)
{
  g_auto (GStrv) parts = g_strsplit (description, "$", -1);
  g_autofree gchar *text = g_strjoinv (folder, parts);
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch (text, &error);

  fail_unless (error == NULL, "%s", error ? error->message : "");
  return pipeline;
}

void
check_stop (GstElement *pipeline)
{
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
}

void
check_launch_warns (
    const gchar *description, GQuark domain, gint code, const gchar *words)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (description);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  if (words)
    check_message_says (
        check_message (bus, GST_MESSAGE_WARNING), domain, code, words);
  gst_message_unref (check_message (bus, GST_MESSAGE_EOS));
  fail_unless_equals_int (
      check_count_messages (bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR), 0);
}

void
check_launch_fails (
    const gchar *description, GQuark domain, gint code, const gchar *words)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (description);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_message_says (
      check_message (bus, GST_MESSAGE_ERROR), domain, code, words);
}

void
check_collect (GstElement *pipeline, const gchar *name, GString *bytes)
{
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), name);
  GstSample *sample;
  GstMapInfo map;

  for (;;) {
    g_signal_emit_by_name (
        sink, "try-pull-sample", (guint64) CHECK_TIMEOUT, &sample);
    if (!sample)
      break;
    fail_unless (
        gst_buffer_map (gst_sample_get_buffer (sample), &map, GST_MAP_READ));
    g_string_append_len (bytes, (const gchar *) map.data, (gssize) map.size);
    gst_buffer_unmap (gst_sample_get_buffer (sample), &map);
    gst_sample_unref (sample);
  }
  gst_object_unref (sink);
}

void
check_play (GstElement *pipeline)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstMessage) message = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = check_message (bus, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR) {
    GError *error = NULL;

    gst_message_parse_error (message, &error, NULL);
    fail ("%s", error->message);
  }
}
