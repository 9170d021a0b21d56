/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the mock cannot show: contexts of GStreamer's own CUDA library, the
 * application's or wrapped, CUDAMemory, and OpenGL behind it. To be run on a
 * GPU, also under compute-sanitizer. */
#include "check-common.h"

#define GST_USE_UNSTABLE_API
#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudacontext.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>
#include <gst/cuda/gstcudautils.h>

#include <dlfcn.h>
#include <glib/gstdio.h>
#include <string.h>

#include "gstimagingmemory.h"

#define WIDTH 322
/* Even: GstCuda 1.22 loses the last plane of 4:2:0 with an odd height, as its
 * video meta and its memory disagree on where that begins. */
#define HEIGHT 102
#define SHARPEN "lapsharpen amount=0.75 backend="

typedef enum { SYSTEM, CUDA_MEMORY } Kind;

/* --- pieces --------------------------------------------------------------- */

static GstCudaContext *
new_context (void)
{
  GstCudaContext *cuda;

  fail_unless (gst_cuda_load_library ());
  gst_cuda_memory_init_once (); /* else there is no allocator for pools */
  cuda = gst_cuda_context_new (0);
  fail_unless (cuda != NULL, "no context could be made");
  return cuda;
}

static void
give (GstElement *element, GstCudaContext *cuda)
{
  GstContext *context = gst_context_new_cuda_context (cuda);

  gst_element_set_context (element, context);
  gst_context_unref (context);
}

static GstCaps *
caps_of (const gchar *format, Kind kind)
{
  GstVideoInfo info = check_info (format, WIDTH, HEIGHT);
  GstCaps *caps = gst_video_info_to_caps (&info);

  if (kind == CUDA_MEMORY)
    gst_caps_set_features_simple (
        caps, gst_caps_features_new ("memory:CUDAMemory", NULL));
  return caps;
}

static GstHarness *
format_harness_new (const gchar *line, GstCudaContext *cuda,
    const gchar *format, Kind in, Kind out)
{
  GstElement *element = gst_parse_launch (line, NULL);
  GstHarness *h;

  if (cuda) /* before it starts */
    give (element, cuda);
  h = gst_harness_new_with_element (element, "sink", "src");
  gst_object_unref (element);
  gst_harness_set_sink_caps (h, caps_of (format, out));
  gst_harness_set_src_caps (h, caps_of (format, in));
  return h;
}

static GstHarness *
harness_new (const gchar *line, GstCudaContext *cuda, Kind out)
{
  return format_harness_new (line, cuda, "RGBA", SYSTEM, out);
}

static GstBuffer *
push_and_pull (GstHarness *h, guint seed)
{
  GstVideoInfo info = check_info ("RGBA", WIDTH, HEIGHT);

  check_push (h, check_noise (&info, seed), GST_FLOW_OK);
  return check_pull (h);
}

/* As the CPU makes it. */
static void
is_sharpened (GstBuffer *found, guint seed)
{
  GstVideoInfo info = check_info ("RGBA", WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h = harness_new (SHARPEN "cpu", NULL, SYSTEM);
  g_autoptr (GstBuffer) expected = push_and_pull (h, seed);

  check_same_pixels (found, expected, &info);
}

/* As two elements on the CPU make it. */
static void
is_sharpened_twice (GstBuffer *found, guint seed)
{
  GstVideoInfo info = check_info ("RGBA", WIDTH, HEIGHT);
  g_autoptr (CheckHarness) first = harness_new (SHARPEN "cpu", NULL, SYSTEM);
  g_autoptr (CheckHarness) second = harness_new (SHARPEN "cpu", NULL, SYSTEM);
  g_autoptr (GstBuffer) expected = NULL;

  check_push (second, push_and_pull (first, seed), GST_FLOW_OK);
  expected = check_pull (second);
  check_same_pixels (found, expected, &info);
}

static GstCudaContext *
context_of (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);

  fail_unless (gst_is_cuda_memory (memory));
  return GST_CUDA_MEMORY_CAST (memory)->context;
}

static gpointer
handle_of (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);

  if (gst_is_imaging_memory (memory))
    return gst_imaging_context_handle (gst_imaging_memory_context (memory));
  return gst_cuda_context_get_handle (context_of (buffer));
}

static gpointer
primary_handle (void)
{
  gpointer handle = NULL;
  ImkError error;

  check_ok (imk_backend_load ("cuda", &error), &error);
  check_ok (check_device ()->context (0, &handle, &error), &error);
  return handle;
}

static void
copies_nothing (GstElement *e)
{
  static const gchar *const counters[] = {
      "bytes-copied", "bytes-uploaded", "bytes-downloaded"};

  for (guint i = 0; i < G_N_ELEMENTS (counters); i++)
    fail_unless_equals_uint64 (check_stat (e, counters[i]), 0);
}

/* --- contexts ------------------------------------------------------------- */

/* GstCuda itself takes no mock. */
static gboolean
ask_for_device (void)
{
  return !check_is_mock () && check_n_devices () > 0;
}

/* Asked once: a child takes a while to open the device. */
static gboolean
have_device (void)
{
  static gint known = -1;

  if (known < 0)
    known = check_ask_child (ask_for_device);
  return known;
}

#define CUDA_TEST(test) CHECK_LOOP_TEST (test, have_device ())

CUDA_TEST (test_the_context_of_the_application_is_used)
{
  GstCudaContext *cuda = new_context ();

  for (Kind out = SYSTEM; out <= CUDA_MEMORY; out++) {
    g_autoptr (CheckHarness) h = harness_new (SHARPEN "cuda", cuda, out);
    g_autoptr (GstBuffer) buffer = push_and_pull (h, 1);

    fail_unless (handle_of (buffer) == gst_cuda_context_get_handle (cuda));
    is_sharpened (buffer, 1);
  }
  gst_object_unref (cuda);
}

static GstBusSyncReply
answer_need_context (GstBus *bus, GstMessage *message, gpointer cuda)
{
  const gchar *type = NULL;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_NEED_CONTEXT &&
      gst_message_parse_context_type (message, &type) &&
      g_str_equal (type, GST_CUDA_CONTEXT_TYPE))
    give (GST_ELEMENT (GST_MESSAGE_SRC (message)), cuda);
  return GST_BUS_PASS;
}

static GstFlowReturn
keep_sample (GstElement *sink, GstSample **last)
{
  g_clear_pointer (last, gst_sample_unref);
  g_signal_emit_by_name (sink, "pull-sample", last);
  return GST_FLOW_OK;
}

CUDA_TEST (test_the_application_answers_who_needs_a_context)
{
  GstCudaContext *cuda = new_context ();
  g_autoptr (GstElement) pipeline = gst_parse_launch (
      "videotestsrc num-buffers=2 ! video/x-raw,format=RGBA ! "
      "lapsharpen backend=cuda ! video/x-raw(memory:CUDAMemory) ! "
      "appsink name=s sync=false emit-signals=true",
      NULL);
  g_autoptr (GstElement) sink = gst_bin_get_by_name (GST_BIN (pipeline), "s");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstSample) last = NULL;

  gst_bus_set_sync_handler (bus, answer_need_context, cuda, NULL);
  g_signal_connect (sink, "new-sample", G_CALLBACK (keep_sample), &last);
  check_play (pipeline);
  fail_unless (context_of (gst_sample_get_buffer (last)) == cuda);
  gst_bus_set_sync_handler (bus, NULL, NULL, NULL);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (cuda);
}

/* What CuPy or PyTorch and the application's GstCudaContext share. */
CUDA_TEST (test_a_wrapped_primary_context_is_the_primary_one)
{
  GstCudaContext *cuda;
  g_autoptr (CheckHarness) wrapped = NULL, plain = NULL;
  g_autoptr (GstBuffer) one = NULL, two = NULL;

  fail_unless (gst_cuda_load_library ());
  cuda = gst_cuda_context_new_wrapped (primary_handle (), 0);
  wrapped = harness_new (SHARPEN "cuda", cuda, SYSTEM);
  plain = harness_new (SHARPEN "cuda", NULL, SYSTEM);
  one = push_and_pull (wrapped, 3);
  check_push (plain, gst_buffer_ref (one), GST_FLOW_OK);
  two = check_pull (plain);

  fail_unless (handle_of (one) == primary_handle ());
  fail_unless (handle_of (two) == primary_handle ());
  /* both elements know each other's memory */
  copies_nothing (plain->element);
  is_sharpened_twice (two, 3);
  gst_object_unref (cuda);
}

/* Memory of another context is copied, and comes out right. */
CUDA_TEST (test_two_contexts_in_one_process_mix)
{
  GstCudaContext *first = new_context (), *second = new_context ();
  g_autoptr (CheckHarness) a = harness_new (SHARPEN "cuda", first, SYSTEM);
  g_autoptr (CheckHarness) b = harness_new (SHARPEN "cuda", second, SYSTEM);

  fail_if (gst_cuda_context_get_handle (first) ==
           gst_cuda_context_get_handle (second));
  for (guint seed = 0; seed < 4; seed++) {
    g_autoptr (GstBuffer) from = push_and_pull (a, seed), to = NULL;

    check_push (b, gst_buffer_ref (from), GST_FLOW_OK);
    to = check_pull (b);
    fail_unless (handle_of (from) == gst_cuda_context_get_handle (first));
    fail_unless (handle_of (to) == gst_cuda_context_get_handle (second));
    is_sharpened_twice (to, seed);
  }
  gst_object_unref (first);
  gst_object_unref (second);
}

typedef struct {
  GstCudaContext *cuda;
  guint seed;
} Worker;

static gpointer
work (gpointer data)
{
  Worker *worker = data;
  g_autoptr (CheckHarness) h =
      harness_new (SHARPEN "cuda", worker->cuda, CUDA_MEMORY);

  for (guint i = 0; i < 50; i++) {
    g_autoptr (GstBuffer) buffer = push_and_pull (h, worker->seed);

    if (i % 10 == 0)
      is_sharpened (buffer, worker->seed);
  }
  return NULL;
}

CUDA_TEST (test_pipelines_run_side_by_side)
{
  GstCudaContext *own = new_context (), *shared = new_context ();
  Worker workers[] = {{own, 1}, {shared, 2}, {shared, 3}, {NULL, 4}};
  GThread *threads[G_N_ELEMENTS (workers)];

  for (guint i = 0; i < G_N_ELEMENTS (workers); i++)
    threads[i] = g_thread_new ("pipeline", work, &workers[i]);
  for (guint i = 0; i < G_N_ELEMENTS (workers); i++)
    g_thread_join (threads[i]);
  gst_object_unref (own);
  gst_object_unref (shared);
}

/* --- the end -------------------------------------------------------------- */

typedef enum { CONTEXT, ELEMENT, BUFFER, N_OWNERS } Owner;

/* Every order in which an application can let go. */
static const Owner orders[][N_OWNERS] = {
    {CONTEXT, ELEMENT, BUFFER},
    {CONTEXT, BUFFER, ELEMENT},
    {ELEMENT, CONTEXT, BUFFER},
    {ELEMENT, BUFFER, CONTEXT},
    {BUFFER, CONTEXT, ELEMENT},
    {BUFFER, ELEMENT, CONTEXT},
};

static void
let_go_in_order (const Owner *order, gboolean with_context, Kind out)
{
  GstCudaContext *cuda = with_context ? new_context () : NULL;
  GstHarness *h = harness_new (SHARPEN "cuda", cuda, out);
  GstBuffer *buffer = push_and_pull (h, 7);

  for (guint i = 0; i < N_OWNERS; i++)
    switch (order[i]) {
    case CONTEXT:
      gst_clear_object (&cuda);
      break;
    case ELEMENT:
      gst_harness_teardown (h);
      break;
    default: /* read only now, when the others may be gone */
      is_sharpened (buffer, 7);
      gst_buffer_unref (buffer);
    }
}

CUDA_TEST (test_whoever_is_freed_last_nothing_breaks)
{
  for (guint i = 0; i < G_N_ELEMENTS (orders); i++)
    for (Kind out = SYSTEM; out <= CUDA_MEMORY; out++)
      for (gint with_context = 0; with_context < 2; with_context++)
        let_go_in_order (orders[i], with_context, out);
}

static gsize
free_bytes (void)
{
  gsize n_free = 0, total = 0;
  void *driver = dlopen ("libcuda.so.1", RTLD_NOW);
  gint (*get_info) (gsize *, gsize *) =
      (gint (*) (gsize *, gsize *)) dlsym (driver, "cuMemGetInfo_v2");
  GstImagingContext *context = check_context (0);
  ImkError error;

  check_ok (gst_imaging_context_push (context, &error), &error);
  fail_unless_equals_int (get_info (&n_free, &total), 0);
  gst_imaging_context_pop (context);
  g_object_unref (context);
  dlclose (driver);
  return n_free;
}

/* A context takes hundreds of MB: one that stays is seen. */
CUDA_TEST (test_contexts_leave_no_memory_behind)
{
  gsize before, after;

  let_go_in_order (orders[0], TRUE, CUDA_MEMORY);
  before = free_bytes ();
  for (guint i = 0; i < 5; i++)
    let_go_in_order (orders[i], TRUE, i % 2 ? SYSTEM : CUDA_MEMORY);
  after = free_bytes ();
  fail_unless (after + (32 << 20) >= before,
      "%" G_GSIZE_FORMAT " bytes of the device are missing", before - after);
}

/* --- neighbours ----------------------------------------------------------- */

static GstBuffer *
in_cuda_memory (GstCudaContext *cuda, const gchar *format, GstBuffer *noise)
{
  GstVideoInfo info = check_info (format, WIDTH, HEIGHT);
  g_autoptr (GstBufferPool) pool = gst_cuda_buffer_pool_new (cuda);
  GstStructure *config = gst_buffer_pool_get_config (pool);
  g_autoptr (GstCaps) caps = caps_of (format, CUDA_MEMORY);
  GstVideoFrame from, to;
  GstBuffer *buffer;

  gst_buffer_pool_config_set_params (config, caps, info.size, 0, 0);
  fail_unless (gst_buffer_pool_set_config (pool, config));
  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
  fail_unless (
      gst_buffer_pool_acquire_buffer (pool, &buffer, NULL) == GST_FLOW_OK);
  fail_unless (gst_video_frame_map (&from, &info, noise, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&to, &info, buffer, GST_MAP_WRITE));
  fail_unless (gst_video_frame_copy (&to, &from));
  gst_video_frame_unmap (&from);
  gst_video_frame_unmap (&to);
  gst_buffer_unref (noise);
  gst_buffer_pool_set_active (pool, FALSE);
  return buffer;
}

/* The rows with CUDAMemory of the table in docs/explanation/memory.md. */
static void
goes_through (GstCudaContext *cuda, const gchar *format, Kind in, Kind out)
{
  GstVideoInfo info = check_info (format, WIDTH, HEIGHT);
  g_autoptr (CheckHarness) h =
      format_harness_new (SHARPEN "cuda", cuda, format, in, out);
  g_autoptr (CheckHarness) cpu =
      format_harness_new (SHARPEN "cpu", NULL, format, SYSTEM, SYSTEM);
  g_autoptr (GstBuffer) found = NULL, expected = NULL;
  GstBuffer *noise = check_noise (&info, 5);

  check_push (cpu, gst_buffer_ref (noise), GST_FLOW_OK);
  expected = check_pull (cpu);
  if (in == CUDA_MEMORY)
    noise = in_cuda_memory (cuda, format, noise);
  check_push (h, noise, GST_FLOW_OK);
  found = check_pull (h);
  fail_unless_equals_uint64 (
      check_stat (h->element, "bytes-copied"), in == SYSTEM ? info.size : 0);
  fail_unless_equals_uint64 (check_stat (h->element, "bytes-downloaded"), 0);
  check_same_pixels (found, expected, &info);
  fail_unless_equals_uint64 (check_stat (h->element, "bytes-downloaded"),
      out == SYSTEM ? info.size : 0);
}

CUDA_TEST (test_cuda_memory_is_used_where_it_lies)
{
  g_autoptr (GPtrArray) formats =
      check_formats ("lapsharpen", "memory:CUDAMemory");
  GstCudaContext *cuda = new_context ();

  fail_unless (formats->len > 0);
  for (guint i = 0; i < formats->len; i++) {
    goes_through (cuda, formats->pdata[i], CUDA_MEMORY, CUDA_MEMORY);
    goes_through (cuda, formats->pdata[i], CUDA_MEMORY, SYSTEM);
    goes_through (cuda, formats->pdata[i], SYSTEM, CUDA_MEMORY);
  }
  gst_object_unref (cuda);
}

/* Returns: (transfer full): the name of a file with the lights of a set */
static gchar *
write_lights (void)
{
  gchar *lights = NULL;
  gint file = g_file_open_tmp ("lights-XXXXXX.lp", &lights, NULL);

  fail_unless (file >= 0);
  g_close (file, NULL);
  fail_unless (g_file_set_contents (lights,
      "4\na 0.6 0 0.8\nb 0 0.6 0.8\nc -0.6 0 0.8\nd 0 -0.6 0.8\n", -1, NULL));
  return lights;
}

/* A tie of 8 bits may round either way. */
static void
same_normals (GstBuffer *found, GstBuffer *expected)
{
  GstVideoInfo info = check_info ("RGB", WIDTH, HEIGHT);
  guint n_far = 0;
  g_auto (CheckMap) a = check_map (found, GST_MAP_READ);
  g_auto (CheckMap) b = check_map (expected, GST_MAP_READ);

  fail_unless (a.size >= info.size && b.size >= info.size);
  for (gint y = 0; y < info.height; y++)
    for (gint x = 0; x < 3 * info.width; x++) {
      gsize at = (gsize) y * info.stride[0] + (gsize) x;

      n_far += ABS (a.data[at] - b.data[at]) > 1;
    }
  fail_unless_equals_int (n_far, 0);
}

/* Returns: (transfer full): the normals of four pictures of noise, in system
 * memory; @cuda: NULL for the CPU, which takes and gives no other */
static GstBuffer *
normals_of_noise (const gchar *lights, GstCudaContext *cuda,
    const gchar *format, Kind in, Kind out)
{
  GstVideoInfo info = check_info (format, WIDTH, HEIGHT), rgb;
  g_autoptr (GstElement) element =
      gst_element_factory_make ("photostereo", NULL);
  GstBuffer *normals, *copy;
  GstVideoFrame from, to;
  g_autoptr (CheckHarness) h = NULL;

  g_object_set (element, "lights-location", lights, NULL);
  gst_util_set_object_arg (G_OBJECT (element), "robust", "none");
  gst_util_set_object_arg (
      G_OBJECT (element), "backend", cuda ? "cuda" : "cpu");
  if (cuda)
    give (element, cuda);
  h = gst_harness_new_with_element (element, "sink", "normal");
  gst_harness_set_sink_caps_str (
      h, out == CUDA_MEMORY ? "video/x-raw(memory:CUDAMemory),format=RGB"
                            : "video/x-raw,format=RGB");
  gst_harness_set_src_caps (h, caps_of (format, in));
  for (guint i = 0; i < 4; i++) {
    GstBuffer *noise = check_noise (&info, i);

    if (in == CUDA_MEMORY)
      noise = in_cuda_memory (cuda, format, noise);
    check_push (h, noise, GST_FLOW_OK);
  }
  normals = check_pull (h);
  if (out == CUDA_MEMORY)
    fail_unless (context_of (normals) == cuda);
  if (in == CUDA_MEMORY) {
    fail_unless_equals_uint64 (check_stat (element, "bytes-copied"), 0);
    fail_unless_equals_uint64 (check_stat (element, "bytes-uploaded"), 0);
  }
  rgb = check_info ("RGB", WIDTH, HEIGHT);
  copy = gst_buffer_new_allocate (NULL, rgb.size, NULL);
  fail_unless (gst_video_frame_map (&from, &rgb, normals, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&to, &rgb, copy, GST_MAP_WRITE));
  fail_unless (gst_video_frame_copy (&to, &from));
  gst_video_frame_unmap (&from);
  gst_video_frame_unmap (&to);
  fail_unless_equals_uint64 (check_stat (element, "bytes-downloaded"),
      cuda && out == SYSTEM ? rgb.size : 0);
  gst_buffer_unref (normals);
  return copy;
}

/* The rows of photostereo with CUDAMemory of the table in
 * docs/explanation/memory.md. */
static void
gives_normals (const gchar *lights, GstCudaContext *cuda, const gchar *format,
    Kind in, Kind out)
{
  g_autoptr (GstBuffer) found =
      normals_of_noise (lights, cuda, format, in, out);
  g_autoptr (GstBuffer) expected =
      normals_of_noise (lights, NULL, format, SYSTEM, SYSTEM);

  same_normals (found, expected);
}

CUDA_TEST (test_photostereo_uses_cuda_memory_where_it_lies)
{
  g_autoptr (GPtrArray) formats =
      check_formats ("photostereo", "memory:CUDAMemory");
  GstCudaContext *cuda = new_context ();
  g_autofree gchar *lights = write_lights ();

  fail_unless (formats->len > 0);
  for (guint i = 0; i < formats->len; i++) {
    gives_normals (lights, cuda, formats->pdata[i], CUDA_MEMORY, SYSTEM);
    gives_normals (lights, cuda, formats->pdata[i], CUDA_MEMORY, CUDA_MEMORY);
    gives_normals (lights, cuda, formats->pdata[i], SYSTEM, CUDA_MEMORY);
  }
  g_unlink (lights);
  gst_object_unref (cuda);
}

/* cudaupload makes the context, the element is asked for its own by
 * cudadownload: one context for all. */
CUDA_TEST (test_neighbours_share_one_context)
{
  static const gchar *const names[] = {"a", "b"};
  GstElement *pipeline, *sink;
  GstSample *last = NULL;

  if (!check_have_element ("cudaupload"))
    return;
  pipeline = gst_parse_launch (
      "videotestsrc num-buffers=3 ! video/x-raw,format=RGBA ! cudaupload ! "
      "lapsharpen name=a backend=cuda ! lapsharpen name=b backend=cuda ! "
      "video/x-raw(memory:CUDAMemory) ! tee ! queue ! "
      "appsink name=s sync=false emit-signals=true",
      NULL);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "s");
  g_signal_connect (sink, "new-sample", G_CALLBACK (keep_sample), &last);
  check_play (pipeline);
  fail_unless (last != NULL);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (GstElement) e =
        gst_bin_get_by_name (GST_BIN (pipeline), names[i]);

    copies_nothing (e);
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_sample_unref (last);
  gst_object_unref (sink);
  gst_object_unref (pipeline);
}

/* The live view of the papers: what the GPU made is drawn by the GPU.
 * gldownload stands for the window, so that the pixels can be looked at. */
#define WINDOW \
  " ! video/x-raw(memory:CUDAMemory) ! cudadownload ! " \
  "video/x-raw(memory:GLMemory),texture-target=2D ! gldownload"

static gboolean
have_window (void)
{
  return check_have_element ("cudadownload") &&
         check_have_element ("gldownload");
}

static void
downloads_nothing (GstHarness *h, const gchar *name)
{
  g_autoptr (GstElement) e = gst_bin_get_by_name (GST_BIN (h->element), name);

  fail_unless_equals_uint64 (check_stat (e, "bytes-downloaded"), 0);
}

CUDA_TEST (test_opengl_takes_frames_without_a_download)
{
  GstVideoInfo info = check_info ("RGBA", WIDTH, HEIGHT);
  gchar *caps = check_caps_string ("RGBA", WIDTH, HEIGHT);
  GstBuffer *found;
  GstHarness *h;

  if (!have_window ())
    return;
  h = gst_harness_new_parse (SHARPEN "cuda name=e" WINDOW);
  gst_harness_set_sink_caps_str (h, caps);
  gst_harness_set_src_caps_str (h, caps);
  for (guint seed = 0; seed < 3; seed++) {
    check_push (h, check_noise (&info, seed), GST_FLOW_OK);
    found = check_pull (h);
    is_sharpened (found, seed);
    gst_buffer_unref (found);
  }
  downloads_nothing (h, "e");
  gst_harness_teardown (h);
  g_free (caps);
}

/* Normals in their own colours, or through an element between. */
CUDA_TEST (test_opengl_takes_normals_without_a_download)
{
  static const gchar *const between[] = {
      "", " ! video/x-raw ! lapsharpen name=l backend=cuda amount=0"};
  GstVideoInfo info = check_info ("RGB", WIDTH, HEIGHT);
  g_autofree gchar *in_caps = check_caps_string ("RGB", WIDTH, HEIGHT);
  g_autofree gchar *lights = NULL, *out_caps = NULL;
  g_autoptr (GstBuffer) expected = NULL;

  out_caps = g_strdup_printf (
      "video/x-raw,format=RGB,width=%d,height=%d,framerate=0/1", WIDTH, HEIGHT);
  lights = write_lights ();
  expected = normals_of_noise (lights, NULL, "RGB", SYSTEM, SYSTEM);
  for (guint i = 0; i < G_N_ELEMENTS (between) && have_window (); i++) {
    g_autofree gchar *line = g_strdup_printf (
        "photostereo name=p backend=cuda robust=none lights-location=%s%s%s",
        lights, between[i], WINDOW);
    g_autoptr (CheckHarness) h = gst_harness_new_parse (line);
    g_autoptr (GstBuffer) found = NULL;

    gst_harness_set_sink_caps_str (h, out_caps);
    gst_harness_set_src_caps_str (h, in_caps);
    for (guint seed = 0; seed < 4; seed++)
      check_push (h, check_noise (&info, seed), GST_FLOW_OK);
    found = check_pull (h);
    same_normals (found, expected);
    downloads_nothing (h, "p");
    if (between[i][0])
      downloads_nothing (h, "l");
  }
  g_unlink (lights);
}
