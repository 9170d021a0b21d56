/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GstImagingMemory on the mock device: which copies are made, who waits for
 * whom, and what happens when the device fails. */
#include "check-common.h"

#include <string.h>

#include "gstimagingframe.h"
#include "gstimagingmemory.h"
#include "gstimagingtable.h"
#include "core/failures.h"

/* Odd, so that a rounded size or place shows. */
#define SIZE 1021

static GstImagingContext *context;
static const ImkDevice *device;
static GstImagingStats *stats;
static GstAllocator *pinned, *on_device;
static GstAllocator *allocators[2]; /* both */
static gpointer stream, other;
static guint n_live_before;

static void
set_up (void)
{
  ImkError error;

  context = check_context (0);
  device = gst_imaging_context_device (context);
  check_ok (gst_imaging_context_push (context, &error), &error);
  check_ok (device->stream_new (&stream, &error), &error);
  check_ok (device->stream_new (&other, &error), &error);
  stats = gst_imaging_stats_new ();
  pinned =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_PINNED, stats);
  on_device =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_DEVICE, stats);
  allocators[0] = pinned;
  allocators[1] = on_device;
  n_live_before = check_n_live ();
}

static void
tear_down (void)
{
  imk_inject_failure (0, FALSE);
  fail_unless_equals_int (check_n_live (), n_live_before);
  gst_object_unref (pinned);
  gst_object_unref (on_device);
  gst_imaging_stats_unref (stats);
  device->stream_free (stream);
  device->stream_free (other);
  gst_imaging_context_pop (context);
  g_object_unref (context);
  fail_unless_equals_int (check_n_live (), 0);
  g_unsetenv ("IMK_MOCK_DELAY_US");
  g_unsetenv ("IMK_MOCK_INTEGRATED");
  g_unsetenv ("IMK_MOCK_COHERENT");
}

/* Everything on a stream takes a while: who forgets to wait is seen. */
static void
set_up_slow (void)
{
  g_setenv ("IMK_MOCK_DELAY_US", "10000", TRUE);
  set_up ();
}

static void
set_up_integrated (void)
{
  g_setenv ("IMK_MOCK_INTEGRATED", "1", TRUE);
  set_up ();
}

/* As a Jetson Nano: shared memory, caches not. */
static void
set_up_incoherent (void)
{
  g_setenv ("IMK_MOCK_COHERENT", "0", TRUE);
  set_up_integrated ();
}

/* --- helpers -------------------------------------------------------------- */

static guint64
counted (const gchar *name)
{
  g_autoptr (GstStructure) s = gst_imaging_stats_to_structure (stats);
  guint64 value = 0;

  fail_unless (gst_structure_get_uint64 (s, name, &value));
  return value;
}

static void
assert_copies (guint64 uploads, guint64 downloads)
{
  fail_unless_equals_uint64 (counted ("bytes-uploaded"), uploads * SIZE);
  fail_unless_equals_uint64 (counted ("bytes-downloaded"), downloads * SIZE);
}

static GstMemory *
new_memory (GstAllocator *allocator)
{
  GstMemory *memory = gst_allocator_alloc (allocator, SIZE, NULL);

  fail_unless (memory != NULL);
  return memory;
}

static guint8
value_at (gsize index, guint seed)
{
  return index * 7 + index / 251 + seed * 37;
}

static void
fill (guint8 *bytes, gsize first, gsize size, guint seed)
{
  for (gsize i = 0; i < size; i++)
    bytes[i] = value_at (first + i, seed);
}

static void
assert_bytes (const guint8 *bytes, gsize first, gsize size, guint seed)
{
  for (gsize i = 0; i < size; i++)
    fail_unless (bytes[i] == value_at (first + i, seed),
        "byte %" G_GSIZE_FORMAT " is %u, expected %u", i, bytes[i],
        value_at (first + i, seed));
}

static void
cpu_write (GstMemory *memory, guint seed)
{
  GstMapInfo map;

  fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE));
  fill (map.data, 0, map.size, seed);
  gst_memory_unmap (memory, &map);
}

/* @first: which byte of the pattern the memory begins with */
static void
cpu_check_from (GstMemory *memory, gsize first, guint seed)
{
  GstMapInfo map;

  fail_unless (gst_memory_map (memory, &map, GST_MAP_READ));
  assert_bytes (map.data, first, map.size, seed);
  gst_memory_unmap (memory, &map);
}

static void
cpu_check (GstMemory *memory, guint seed)
{
  cpu_check_from (memory, 0, seed);
}

static gpointer
acquire (GstMemory *memory, gpointer on, GstMapFlags access, gboolean mapped)
{
  gpointer pointer = NULL;
  ImkLocation location;
  ImkError error;

  check_ok (gst_imaging_memory_acquire (
                memory, on, access, mapped, stats, &pointer, &location, &error),
      &error);
  return pointer;
}

static void
release (GstMemory *memory, gpointer on, GstMapFlags access, gboolean done)
{
  ImkError error;

  check_ok (
      gst_imaging_memory_release (memory, on, access, done, &error), &error);
}

/* Where is what a kernel on the stream gets? @done: when it is given back */
static void
check_location (GstMemory *memory, GstMapFlags access, gboolean mapped,
    gboolean done, ImkLocation expected)
{
  gpointer pointer;
  ImkLocation location;
  ImkError error;

  check_ok (gst_imaging_memory_acquire (memory, stream, access, mapped, stats,
                &pointer, &location, &error),
      &error);
  fail_unless_equals_int (location, expected);
  release (memory, stream, access, done);
}

static void
copy (gpointer to, gconstpointer from, gsize size, gpointer on)
{
  ImkError error;

  check_ok (device->copy (to, size, from, size, size, 1, on, &error), &error);
}

/* A kernel that fills the memory; it runs when the stream comes to it. */
static void
device_write (GstMemory *memory, gpointer on, guint seed)
{
  guint8 bytes[SIZE];
  gpointer pointer = acquire (memory, on, GST_MAP_WRITE, FALSE);

  fill (bytes, 0, memory->size, seed);
  copy (pointer, bytes, memory->size, on);
  release (memory, on, GST_MAP_WRITE, FALSE);
}

/* A kernel that reads the memory, and waits until it has. */
static void
device_check (GstMemory *memory, gpointer on, guint seed)
{
  guint8 bytes[SIZE];
  gpointer pointer = acquire (memory, on, GST_MAP_READ, FALSE);

  copy (bytes, pointer, memory->size, on);
  release (memory, on, GST_MAP_READ, FALSE);
  assert_bytes (bytes, 0, memory->size, seed);
}

/* A kernel that reads the memory into @to when the stream comes to it. */
static void
device_read_later (GstMemory *memory, gpointer on, gpointer to)
{
  gpointer pointer = acquire (memory, on, GST_MAP_READ, TRUE);

  copy (to, pointer, memory->size, on);
  release (memory, on, GST_MAP_READ, FALSE);
}

/* Page-locked: a copy into it does not wait. */
static guint8 *
new_scratch (void)
{
  gpointer host = NULL, mapped;
  ImkError error;

  check_ok (device->alloc_pinned (SIZE, &host, &mapped, &error), &error);
  return host;
}

static void
wait_for (gpointer on)
{
  ImkError error;

  check_ok (device->stream_synchronize (on, &error), &error);
}

static GstBuffer *
new_buffer (GstAllocator *allocator)
{
  GstBuffer *buffer = gst_buffer_new ();

  gst_buffer_append_memory (buffer, new_memory (allocator));
  return buffer;
}

/* --- views ---------------------------------------------------------------- */

CHECK_CASE ("views", set_up, tear_down)

CHECK_TEST (test_memory_is_born_where_its_mode_says)
{
  g_autoptr (GstMemory) a = new_memory (pinned), b = new_memory (on_device);

  fail_unless (gst_is_imaging_memory (a) && gst_is_imaging_memory (b));
  fail_unless (gst_imaging_memory_context (a) == context);
  fail_if (gst_imaging_memory_is_on_device (a));
  fail_unless (gst_imaging_memory_is_on_device (b));
  check_location (a, GST_MAP_WRITE, TRUE, TRUE, IMK_LOCATION_HOST_MAPPED);
  check_location (b, GST_MAP_WRITE, TRUE, TRUE, IMK_LOCATION_DEVICE);
  assert_copies (0, 0);
}

CHECK_TEST (test_system_memory_is_not_taken_for_ours)
{
  g_autoptr (GstMemory) memory = gst_allocator_alloc (NULL, SIZE, NULL);

  fail_if (gst_is_imaging_memory (memory));
}

CHECK_TEST (test_an_upload_is_made_once_and_counted)
{
  g_autoptr (GstMemory) memory = new_memory (pinned);

  cpu_write (memory, 1);
  assert_copies (0, 0);
  device_check (memory, stream, 1);
  device_check (memory, other, 1);
  device_check (memory, stream, 1);
  assert_copies (1, 0);
  cpu_check (memory, 1);
  assert_copies (1, 0);
}

CHECK_TEST (test_a_download_is_made_once_and_counted)
{
  g_autoptr (GstMemory) memory = new_memory (on_device);

  device_write (memory, stream, 2);
  fail_unless (gst_imaging_memory_is_on_device (memory));
  cpu_check (memory, 2);
  cpu_check (memory, 2);
  fail_if (gst_imaging_memory_is_on_device (memory));
  device_check (memory, stream, 2);
  assert_copies (0, 1);
}

/* Whether both views are the same bytes. */
static gboolean
is_one_block (void)
{
  const ImkDeviceInfo *info = gst_imaging_context_info (context);

  return info->integrated && info->io_coherent;
}

CHECK_TEST (test_each_writer_makes_the_other_view_stale)
{
  for (guint i = 0; i < G_N_ELEMENTS (allocators); i++) {
    g_autoptr (GstMemory) memory = new_memory (allocators[i]);

    for (guint seed = 10; seed < 14; seed++) {
      cpu_write (memory, seed);
      device_check (memory, stream, seed);
      device_write (memory, other, seed + 100);
      fail_unless (gst_imaging_memory_is_on_device (memory) != is_one_block ());
      cpu_check (memory, seed + 100);
    }
  }
}

CHECK_TEST (test_a_map_for_read_and_write_sees_what_the_device_wrote)
{
  g_autoptr (GstMemory) memory = new_memory (on_device);
  GstMapInfo map;

  device_write (memory, stream, 3);
  fail_unless (gst_memory_map (memory, &map, GST_MAP_READWRITE));
  assert_bytes (map.data, 0, SIZE, 3);
  fill (map.data, 0, SIZE, 4);
  gst_memory_unmap (memory, &map);
  device_check (memory, stream, 4);
}

/* gst_buffer_fill () and gst_buffer_memset () map for writing alone, whatever
 * part they write. */
CHECK_TEST (test_a_write_of_a_part_keeps_the_rest)
{
  g_autoptr (GstBuffer) buffer = new_buffer (on_device);
  guint8 expected[SIZE];
  GstMapInfo map;

  device_write (gst_buffer_peek_memory (buffer, 0), stream, 3);
  fill (expected, 0, SIZE, 3);
  memset (expected + 17, 9, 100);
  gst_buffer_memset (buffer, 17, 9, 100);
  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  fail_unless (memcmp (map.data, expected, SIZE) == 0);
  gst_buffer_unmap (buffer, &map);
}

CHECK_TEST (test_a_kernel_that_reads_once_takes_page_locked_memory)
{
  g_autoptr (GstMemory) memory = new_memory (pinned);

  cpu_write (memory, 5);
  check_location (memory, GST_MAP_READ, TRUE, FALSE, IMK_LOCATION_HOST_MAPPED);
  assert_copies (0, 0);
  /* what is on the device already is read there */
  device_check (memory, stream, 5);
  check_location (memory, GST_MAP_READ, TRUE, TRUE, IMK_LOCATION_DEVICE);
  assert_copies (1, 0);
}

CHECK_TEST (test_a_kernel_that_writes_once_writes_page_locked_memory)
{
  g_autoptr (GstMemory) memory = new_memory (pinned);
  guint8 bytes[SIZE];
  gpointer pointer;

  check_location (memory, GST_MAP_WRITE, TRUE, TRUE, IMK_LOCATION_HOST_MAPPED);
  pointer = acquire (memory, stream, GST_MAP_WRITE, TRUE);
  fill (bytes, 0, SIZE, 6);
  copy (pointer, bytes, SIZE, stream);
  release (memory, stream, GST_MAP_WRITE, FALSE);
  cpu_check (memory, 6);
  assert_copies (0, 0);
  device_check (memory, other, 6);
}

/* Else a frame that somebody looked at once would be written over the bus
 * whenever its buffer is used again. */
CHECK_TEST (test_memory_of_the_device_stays_there_after_a_look_at_it)
{
  g_autoptr (GstMemory) memory = new_memory (on_device);

  device_write (memory, stream, 7);
  cpu_check (memory, 7);
  check_location (memory, GST_MAP_WRITE, TRUE, TRUE, IMK_LOCATION_DEVICE);
}

CHECK_CASE ("integrated", set_up_integrated, tear_down)

CHECK_MOCK_TEST (test_an_integrated_device_copies_nothing)
{
  for (guint i = 0; i < G_N_ELEMENTS (allocators); i++) {
    g_autoptr (GstMemory) memory = new_memory (allocators[i]), copy = NULL;

    check_location (
        memory, GST_MAP_READ, FALSE, TRUE, IMK_LOCATION_HOST_MAPPED);
    fail_if (gst_imaging_memory_is_on_device (memory));
    cpu_write (memory, 1);
    device_check (memory, stream, 1);
    device_write (memory, other, 2);
    fail_if (gst_imaging_memory_is_on_device (memory));
    copy = gst_memory_copy (memory, 0, -1);
    cpu_check (copy, 2);
    cpu_check (memory, 2);
  }
  assert_copies (0, 0);
}

CHECK_CASE ("incoherent", set_up_incoherent, tear_down)

CHECK_MOCK_TEST (test_the_cpu_never_reads_uncached_memory)
{
  fail_unless_equals_int (gst_imaging_context_info (context)->compute_major, 5);
  for (guint i = 0; i < G_N_ELEMENTS (allocators); i++) {
    g_autoptr (GstMemory) memory = new_memory (allocators[i]), copy = NULL;

    cpu_write (memory, 1);
    check_location (memory, GST_MAP_READ, TRUE, TRUE, IMK_LOCATION_DEVICE);
    device_check (memory, stream, 1);
    device_write (memory, other, 2);
    cpu_check (memory, 2);
    copy = gst_memory_copy (memory, 0, -1);
    cpu_check (copy, 2);
    fail_unless_equals_int (check_n_page_locked (), 0);
  }
}

CHECK_MOCK_TEST (test_what_the_gpu_alone_reads_needs_no_copy_even_there)
{
  g_autoptr (GstAllocator) allocator =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_UPLOAD, stats);
  g_autoptr (GstMemory) memory = new_memory (allocator);

  cpu_write (memory, 1);
  check_location (memory, GST_MAP_READ, FALSE, TRUE, IMK_LOCATION_HOST_MAPPED);
  device_check (memory, stream, 1);
  assert_copies (0, 0);
  fail_unless_equals_int (check_n_page_locked (), 1);
}

/* --- order ---------------------------------------------------------------- */

CHECK_CASE ("order", set_up_slow, tear_down)

CHECK_TEST (test_a_cpu_map_waits_for_the_device_to_write)
{
  g_autoptr (GstMemory) memory = new_memory (on_device);

  for (guint seed = 0; seed < 3; seed++) {
    device_write (memory, seed % 2 ? stream : other, seed);
    cpu_check (memory, seed);
  }
}

CHECK_TEST (test_a_stream_waits_for_the_write_of_another)
{
  g_autoptr (GstMemory) memory = new_memory (on_device);

  device_write (memory, stream, 1);
  device_check (memory, other, 1);
  device_write (memory, other, 2);
  device_check (memory, stream, 2);
  assert_copies (0, 0);
}

CHECK_TEST (test_a_stream_waits_for_the_upload_of_another)
{
  g_autoptr (GstMemory) memory = new_memory (pinned);

  cpu_write (memory, 1);
  acquire (memory, stream, GST_MAP_READ, FALSE);
  release (memory, stream, GST_MAP_READ, FALSE);
  device_check (memory, other, 1);
}

CHECK_TEST (test_acquire_does_not_wait_on_the_cpu)
{
  g_autoptr (GstMemory) memory = new_memory (on_device);
  gint64 before = g_get_monotonic_time ();

  for (guint i = 0; i < 20; i++)
    device_write (memory, i % 2 ? stream : other, i);
  /* 20 writes of 10 ms one after the other */
  fail_unless (g_get_monotonic_time () - before < 150 * 1000);
  cpu_check (memory, 19);
}

CHECK_TEST (test_a_writing_stream_waits_for_readers_of_others)
{
  g_autoptr (GstMemory) memory = new_memory (on_device);
  guint8 *seen = new_scratch ();

  device_write (memory, stream, 1);
  device_read_later (memory, other, seen);
  device_write (memory, stream, 2);
  wait_for (other);
  assert_bytes (seen, 0, SIZE, 1);
  cpu_check (memory, 2);
  device->free_pinned (seen);
}

CHECK_TEST (test_a_writing_cpu_waits_for_readers)
{
  g_autoptr (GstMemory) memory = new_memory (pinned);
  guint8 *seen = new_scratch ();

  cpu_write (memory, 1);
  device_read_later (memory, stream, seen); /* in place, over the bus */
  cpu_write (memory, 2);
  wait_for (stream);
  assert_bytes (seen, 0, SIZE, 1);
  device->free_pinned (seen);
}

CHECK_TEST (test_a_writing_cpu_waits_for_an_upload)
{
  g_autoptr (GstMemory) memory = new_memory (pinned);
  guint8 *seen = new_scratch ();
  gpointer pointer;

  cpu_write (memory, 1);
  pointer = acquire (memory, stream, GST_MAP_READ, FALSE);
  copy (seen, pointer, SIZE, stream);
  release (memory, stream, GST_MAP_READ, FALSE);
  cpu_write (memory, 2);
  wait_for (stream);
  assert_bytes (seen, 0, SIZE, 1);
  device_check (memory, stream, 2);
  device->free_pinned (seen);
}

/* The one who has waited for its stream says so, and nobody waits again. */
CHECK_TEST (test_nobody_waits_for_what_is_done)
{
  g_autoptr (GstMemory) memory = new_memory (pinned);
  GstMapInfo map;

  cpu_write (memory, 1);
  acquire (memory, stream, GST_MAP_READ, TRUE);
  wait_for (stream);
  release (memory, stream, GST_MAP_READ, TRUE);
  /* any call to the device would fail now */
  imk_inject_failure (1, TRUE);
  fail_unless (gst_memory_map (memory, &map, GST_MAP_READWRITE));
  assert_bytes (map.data, 0, SIZE, 1);
  gst_memory_unmap (memory, &map);
  imk_inject_failure (0, FALSE);
}

static GstBufferPool *
new_pool (GstAllocator *allocator, GstVideoInfo *info)
{
  g_autoptr (GstCaps) caps = gst_video_info_to_caps (info);
  GstBufferPool *pool =
      gst_imaging_video_pool_new (allocator, caps, info, FALSE);

  fail_unless (pool != NULL && gst_buffer_pool_set_active (pool, TRUE));
  return pool;
}

CHECK_TEST (test_a_pool_buffer_is_used_again_when_its_readers_are_done)
{
  GstVideoInfo info = check_info ("GRAY8", SIZE - 1, 1); /* stride 1020 */
  GstBufferPool *pool = new_pool (pinned, &info);
  guint8 *seen = new_scratch ();
  GstBuffer *buffer, *again;
  GstMapInfo map;

  fail_unless_equals_int (
      gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
  cpu_write (gst_buffer_peek_memory (buffer, 0), 1);
  device_read_later (gst_buffer_peek_memory (buffer, 0), stream, seen);
  gst_buffer_unref (buffer);
  fail_unless_equals_int (
      gst_buffer_pool_acquire_buffer (pool, &again, NULL), GST_FLOW_OK);
  fail_unless (again == buffer);
  fail_unless (gst_buffer_map (again, &map, GST_MAP_WRITE));
  fill (map.data, 0, map.size, 2);
  gst_buffer_unmap (again, &map);
  wait_for (stream);
  assert_bytes (seen, 0, info.size, 1);
  gst_buffer_unref (again);
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
  device->free_pinned (seen);
}

CHECK_TEST (test_memory_may_be_freed_while_the_device_works_on_it)
{
  guint8 *seen = new_scratch ();

  for (guint i = 0; i < 4; i++) {
    GstMemory *memory = new_memory (i % 2 ? pinned : on_device);

    device_write (memory, stream, i);
    device_read_later (memory, other, seen);
    gst_memory_unref (memory);
    wait_for (other);
    assert_bytes (seen, 0, SIZE, i);
  }
  device->free_pinned (seen);
}

/* --- copies and shares ---------------------------------------------------- */

CHECK_TEST (test_a_copy_of_device_memory_is_made_on_the_device)
{
  for (guint i = 0; i < G_N_ELEMENTS (allocators); i++) {
    g_autoptr (GstMemory) memory = new_memory (allocators[i]), copy = NULL;

    device_write (memory, stream, 1);
    copy = gst_memory_copy (memory, 0, -1);
    fail_unless (gst_is_imaging_memory (copy));
    fail_unless (gst_imaging_memory_is_on_device (copy));
    device_write (memory, other, 2); /* after the copy has read */
    device_check (copy, stream, 1);
    assert_copies (0, i);
    cpu_check (copy, 1);
    assert_copies (0, i + 1);
  }
}

CHECK_TEST (test_a_copy_of_host_memory_is_made_on_the_host)
{
  g_autoptr (GstMemory) memory = new_memory (pinned), copy = NULL;

  cpu_write (memory, 1);
  copy = gst_memory_copy (memory, 0, -1);
  fail_unless (gst_is_imaging_memory (copy));
  fail_if (gst_imaging_memory_is_on_device (copy));
  cpu_write (memory, 2);
  cpu_check (copy, 1);
  assert_copies (0, 0);
  device_check (copy, stream, 1);
}

CHECK_TEST (test_a_copy_of_a_part_has_that_part)
{
  g_autoptr (GstMemory) memory = new_memory (on_device), a = NULL, b = NULL;

  device_write (memory, stream, 1);
  a = gst_memory_copy (memory, 100, 33);
  fail_unless_equals_uint64 (gst_memory_get_sizes (a, NULL, NULL), 33);
  cpu_check_from (a, 100, 1);
  cpu_check (memory, 1);
  b = gst_memory_copy (memory, 1000, -1);
  fail_unless_equals_uint64 (gst_memory_get_sizes (b, NULL, NULL), SIZE - 1000);
  cpu_check_from (b, 1000, 1);
}

CHECK_TEST (test_a_share_sees_its_part_from_cpu_and_device)
{
  GstMemory *memory = new_memory (on_device), *part, *part_of_part;
  guint8 bytes[SIZE];
  gpointer whole, pointer;

  device_write (memory, stream, 1);
  part = gst_memory_share (memory, 101, 500);
  part_of_part = gst_memory_share (part, 7, -1);
  fail_unless (gst_is_imaging_memory (part_of_part));
  fail_unless_equals_uint64 (
      gst_memory_get_sizes (part_of_part, NULL, NULL), 493);

  whole = acquire (memory, stream, GST_MAP_READ, FALSE);
  pointer = acquire (part_of_part, other, GST_MAP_READ, FALSE);
  fail_unless (pointer == (guint8 *) whole + 108);
  copy (bytes, pointer, 493, other);
  assert_bytes (bytes, 108, 493, 1);
  release (part_of_part, other, GST_MAP_READ, FALSE);
  release (memory, stream, GST_MAP_READ, TRUE);
  assert_copies (0, 0);

  cpu_check_from (part, 101, 1);
  cpu_check_from (part_of_part, 108, 1);
  cpu_check (memory, 1);
  assert_copies (0, 1); /* for all three */
  gst_memory_unref (memory);
  cpu_check_from (part_of_part, 108, 1); /* lives without the others */
  gst_memory_unref (part);
  cpu_check_from (part_of_part, 108, 1);
  gst_memory_unref (part_of_part);
}

CHECK_TEST (test_shared_memory_cannot_be_written)
{
  g_autoptr (GstBuffer) buffer = new_buffer (on_device);
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0), *part;
  gpointer pointer;
  ImkLocation location;
  GstMapInfo map;
  ImkError error;

  device_write (memory, stream, 1);
  part = gst_memory_share (memory, 3, 5);
  fail_if (gst_memory_map (part, &map, GST_MAP_WRITE));
  fail_if (gst_memory_map (memory, &map, GST_MAP_WRITE));
  fail_unless_equals_int (
      gst_imaging_memory_acquire (memory, stream, GST_MAP_WRITE, FALSE, stats,
          &pointer, &location, &error),
      IMK_ERROR_MEMORY);
  fail_unless (strstr (error.message, "others") != NULL, "%s", error.message);
  gst_memory_unref (part);
  device_write (memory, stream, 2);
  cpu_check (memory, 2);
}

/* What a tee does: both branches hold the samples, one wants to write. */
CHECK_TEST (test_writing_one_of_two_buffers_leaves_the_other_as_it_was)
{
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GstBuffer) a = new_buffer (on_device), b = NULL;
    GstMemory *memory;
    GstMapInfo map;

    device_write (gst_buffer_peek_memory (a, 0), stream, 1);
    b = gst_buffer_make_writable (gst_buffer_ref (a));
    fail_unless (
        gst_buffer_peek_memory (b, 0) == gst_buffer_peek_memory (a, 0));
    if (i == 0) {
      fail_unless (gst_buffer_map (b, &map, GST_MAP_READWRITE));
      assert_bytes (map.data, 0, SIZE, 1);
    } else {
      fail_unless (gst_buffer_map (b, &map, GST_MAP_WRITE));
    }
    fill (map.data, 0, map.size, 2);
    gst_buffer_unmap (b, &map);
    memory = gst_buffer_peek_memory (b, 0);
    fail_unless (gst_is_imaging_memory (memory));
    fail_unless (memory != gst_buffer_peek_memory (a, 0));
    cpu_check (memory, 2);
    fail_unless (
        gst_imaging_memory_is_on_device (gst_buffer_peek_memory (a, 0)));
    cpu_check (gst_buffer_peek_memory (a, 0), 1);
  }
}

CHECK_TEST (test_a_region_of_a_buffer_is_shared_and_merges_again)
{
  g_autoptr (GstBuffer) whole = new_buffer (on_device), a = NULL, b = NULL,
                        both = NULL;
  GstMemory *memory = gst_buffer_peek_memory (whole, 0), *merged;
  GstMapInfo map;
  gsize offset = 0;

  device_write (memory, stream, 1);
  a = gst_buffer_copy_region (whole, GST_BUFFER_COPY_MEMORY, 10, 50);
  b = gst_buffer_copy_region (whole, GST_BUFFER_COPY_MEMORY, 60, 40);
  fail_unless (gst_memory_is_span (
      gst_buffer_peek_memory (a, 0), gst_buffer_peek_memory (b, 0), &offset));
  fail_unless_equals_uint64 (offset, 10);
  fail_if (gst_memory_is_span (
      gst_buffer_peek_memory (b, 0), gst_buffer_peek_memory (a, 0), NULL));

  both = gst_buffer_append (gst_buffer_ref (a), gst_buffer_ref (b));
  fail_unless_equals_int (gst_buffer_n_memory (both), 2);
  merged = gst_buffer_get_all_memory (both);
  fail_unless (gst_is_imaging_memory (merged));
  fail_unless (gst_imaging_memory_is_on_device (merged));
  cpu_check_from (merged, 10, 1);
  fail_unless (gst_buffer_map (both, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (map.size, 90);
  assert_bytes (map.data, 10, 90, 1);
  gst_buffer_unmap (both, &map);
  gst_memory_unref (merged);
}

CHECK_TEST (test_memories_that_do_not_touch_are_merged_by_a_copy)
{
  g_autoptr (GstBuffer) buffer = new_buffer (on_device);
  GstMapInfo map;

  gst_buffer_append_memory (buffer, new_memory (pinned));
  device_write (gst_buffer_peek_memory (buffer, 0), stream, 1);
  cpu_write (gst_buffer_peek_memory (buffer, 1), 2);
  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (map.size, 2 * SIZE);
  assert_bytes (map.data, 0, SIZE, 1);
  assert_bytes (map.data + SIZE, 0, SIZE, 2);
  gst_buffer_unmap (buffer, &map);
}

CHECK_CASE ("views", set_up, tear_down)

CHECK_TEST (test_a_resized_memory_is_a_part_of_the_samples)
{
  g_autoptr (GstMemory) memory = new_memory (on_device);
  gpointer whole, part;

  device_write (memory, stream, 1);
  whole = acquire (memory, stream, GST_MAP_READ, FALSE);
  release (memory, stream, GST_MAP_READ, FALSE);
  gst_memory_resize (memory, 5, 99);
  part = acquire (memory, stream, GST_MAP_READ, FALSE);
  release (memory, stream, GST_MAP_READ, FALSE);
  fail_unless (part == (guint8 *) whole + 5);
  cpu_check_from (memory, 5, 1);
}

CHECK_TEST (test_prefix_and_padding_surround_the_bytes)
{
  GstAllocationParams params = {0, 63, 16, 32, {NULL}};
  g_autoptr (GstMemory) memory = gst_allocator_alloc (on_device, SIZE, &params);
  gsize offset, maxsize;

  fail_unless_equals_uint64 (
      gst_memory_get_sizes (memory, &offset, &maxsize), SIZE);
  fail_unless_equals_uint64 (offset, 16);
  fail_unless_equals_uint64 (maxsize, SIZE + 48);
  device_write (memory, stream, 1);
  cpu_check (memory, 1);
  cpu_write (memory, 2);
  device_check (memory, other, 2);
}

/* Those who see the flags rely on zeros that nobody wrote. */
CHECK_TEST (test_memory_claims_no_zeros_around_it)
{
  GstAllocationParams params = {
      GST_MEMORY_FLAG_ZERO_PREFIXED | GST_MEMORY_FLAG_ZERO_PADDED, 0, 4, 8,
      {NULL}};
  g_autoptr (GstMemory) memory = gst_allocator_alloc (pinned, SIZE, &params);

  fail_if (GST_MEMORY_IS_ZERO_PADDED (memory));
  fail_if (GST_MEMORY_IS_ZERO_PREFIXED (memory));
}

/* 65536 x 16384 x 4 bytes are 0 in the 32 bits of a pool's size. */
CHECK_TEST (test_a_table_beyond_a_pool_is_refused)
{
  ImkError error;
  GstImagingTable *table = gst_imaging_table_new (NULL, 65536, 16384, &error);

  fail_unless (table == NULL);
  fail_unless (
      strstr (error.message, "65536 x 16384") != NULL, "%s", error.message);
}

CHECK_TEST (test_an_empty_memory_is_possible)
{
  g_autoptr (GstMemory) memory = gst_allocator_alloc (on_device, 0, NULL),
                        copy = NULL;
  GstMapInfo map;

  fail_unless (memory != NULL);
  copy = gst_memory_copy (memory, 0, -1);
  fail_unless (copy != NULL);
  fail_unless (gst_memory_map (copy, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (map.size, 0);
  gst_memory_unmap (copy, &map);
}

/* --- two devices ---------------------------------------------------------- */

CHECK_MOCK_TEST (test_memory_of_another_device_is_not_mapped_as_it_is)
{
  g_autoptr (GstImagingContext) second = check_context (1);
  g_autoptr (GstAllocator) allocator =
      gst_imaging_allocator_new (second, GST_IMAGING_MEMORY_DEVICE, stats);
  g_autoptr (GstBuffer) buffer = new_buffer (allocator);
  g_autoptr (GstMemory) copy = NULL;

  fail_unless (second != context);
  fail_if (gst_imaging_frame_can_map (
      buffer, context, GST_IMAGING_REACH_DEVICE_OR_MAPPED));
  fail_unless (
      gst_imaging_frame_can_map (buffer, second, GST_IMAGING_REACH_DEVICE));
  fail_unless (
      gst_imaging_frame_can_map (buffer, NULL, GST_IMAGING_REACH_HOST));

  /* the context of the caller is another one than that of the memory */
  copy = gst_memory_copy (gst_buffer_peek_memory (buffer, 0), 0, -1);
  cpu_write (copy, 1);
  cpu_check (copy, 1);
}

CHECK_MOCK_TEST (test_a_device_has_one_context_a_process)
{
  g_autoptr (GstImagingContext) a = check_context (1), b = check_context (1);
  g_autoptr (GstImagingContext) first = check_context (-1);
  ImkError error;

  fail_unless (a == b);
  fail_unless (first == context);
  fail_unless_equals_int (gst_imaging_context_device_id (a), 1);
  fail_unless (gst_imaging_context_get (2, &error) == NULL);
  fail_unless_equals_int (error.code, IMK_ERROR_UNAVAILABLE);
  fail_unless (strstr (error.message, "cuda-device-id is 2") != NULL, "%s",
      error.message);
}

/* --- frames --------------------------------------------------------------- */

CHECK_TEST (test_a_buffer_smaller_than_its_frame_is_refused)
{
  GstVideoInfo info = check_info ("GRAY8", 33, 40); /* 1440 bytes */
  g_autoptr (GstBuffer) buffer = new_buffer (on_device);
  GstImagingFrame frame;
  ImkError error;

  fail_unless_equals_int (
      gst_imaging_frame_map (buffer, &info, GST_MAP_READ,
          GST_IMAGING_REACH_DEVICE, context, stream, stats, &frame, &error),
      IMK_ERROR_IMAGE);
  fail_unless (
      strstr (error.message, "1021 bytes") != NULL, "%s", error.message);
  fail_if (
      gst_imaging_frame_map (buffer, &info, GST_MAP_READ,
          GST_IMAGING_REACH_HOST, NULL, NULL, stats, &frame, &error) == IMK_OK);
}

CHECK_TEST (test_planes_lie_where_the_video_meta_says)
{
  GstVideoInfo info = check_info ("I420", 5, 3);
  gsize offset[4] = {1, 101, 201};
  gint stride[4] = {16, 17, 18};
  g_autoptr (GstBuffer) buffer = new_buffer (on_device);
  GstImagingFrame frame;
  ImkError error;
  guint8 *base;

  gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE,
      GST_VIDEO_FORMAT_I420, 5, 3, 3, offset, stride);
  check_ok (
      gst_imaging_frame_map (buffer, &info, GST_MAP_READ,
          GST_IMAGING_REACH_DEVICE, context, stream, stats, &frame, &error),
      &error);
  fail_unless_equals_int (frame.n_planes, 3);
  fail_unless_equals_string (frame.memory_name, "device");
  base = (guint8 *) frame.planes[0].data - 1;
  for (guint i = 0; i < 3; i++) {
    fail_unless (frame.planes[i].data == base + offset[i]);
    fail_unless_equals_int (frame.planes[i].stride, stride[i]);
    fail_unless_equals_int (frame.planes[i].width, i ? 3 : 5);
    fail_unless_equals_int (frame.planes[i].height, i ? 2 : 3);
    fail_unless_equals_int (frame.planes[i].channels, 1);
  }
  check_ok (gst_imaging_frame_unmap (&frame, FALSE, &error), &error);
}

/* --- failures ------------------------------------------------------------- */

CHECK_MOCK_TEST (test_no_memory_is_no_abort)
{
  for (guint i = 0; i < G_N_ELEMENTS (allocators); i++)
    fail_unless (
        gst_allocator_alloc (allocators[i], (gsize) 1 << 31, NULL) == NULL);
}

/* One of everything; what fails must say so, and what does not must be right.
 * Nothing may be left: tear_down () counts. */
static gboolean
live_a_life (GstAllocator *allocator)
{
  GstMemory *memory = gst_allocator_alloc (allocator, SIZE, NULL), *copy, *part;
  gpointer pointer = NULL;
  guint8 bytes[SIZE];
  ImkLocation location;
  gboolean ok = TRUE;
  GstMapInfo map;
  ImkError error;

  if (!memory)
    return FALSE;
  error.code = IMK_OK;
  fill (bytes, 0, SIZE, 1);
  if (gst_imaging_memory_acquire (memory, stream, GST_MAP_WRITE, FALSE, stats,
          &pointer, &location, &error) == IMK_OK) {
    ok &= device->copy (pointer, SIZE, bytes, SIZE, SIZE, 1, stream, &error) ==
          IMK_OK;
    ok &= gst_imaging_memory_release (
              memory, stream, GST_MAP_WRITE, FALSE, &error) == IMK_OK;
  } else {
    ok = FALSE;
  }
  fail_unless (ok || error.code == IMK_ERROR_DEVICE);

  copy = gst_memory_copy (memory, 11, 100);
  if (copy && gst_memory_map (copy, &map, GST_MAP_READ)) {
    if (ok)
      assert_bytes (map.data, 11, 100, 1);
    gst_memory_unmap (copy, &map);
  } else {
    ok = FALSE;
  }
  g_clear_pointer (&copy, gst_memory_unref);

  part = gst_memory_share (memory, 20, 30);
  if (gst_imaging_memory_acquire (part, other, GST_MAP_READ, TRUE, stats,
          &pointer, &location, &error) == IMK_OK)
    ok &= gst_imaging_memory_release (
              part, other, GST_MAP_READ, FALSE, &error) == IMK_OK;
  else
    ok = FALSE;
  gst_memory_unref (part);
  if (gst_memory_map (memory, &map, GST_MAP_READWRITE)) {
    if (ok)
      assert_bytes (map.data, 0, SIZE, 1);
    gst_memory_unmap (memory, &map);
  } else {
    ok = FALSE;
  }
  if (gst_imaging_memory_acquire (memory, other, GST_MAP_READ, FALSE, stats,
          &pointer, &location, &error) == IMK_OK)
    ok &= gst_imaging_memory_release (
              memory, other, GST_MAP_READ, FALSE, &error) == IMK_OK;
  else
    ok = FALSE;
  gst_memory_unref (memory);
  return ok;
}

static void
fail_every_call (gboolean forever)
{
  for (guint i = 0; i < G_N_ELEMENTS (allocators); i++) {
    gboolean ok = FALSE;
    gulong nth;

    for (nth = 1; !ok; nth++) {
      fail_unless (nth < 200, "still failing at call %lu", nth);
      imk_inject_failure (nth, forever);
      ok = live_a_life (allocators[i]);
      imk_inject_failure (0, FALSE);
      fail_unless_equals_int (check_n_live (), n_live_before);
    }
    fail_unless (nth > 10, "only %lu calls were made", nth);
  }
}

CHECK_TEST (test_each_call_may_fail_once)
{
  fail_every_call (FALSE);
}

CHECK_TEST (test_the_device_may_be_lost_at_each_call)
{
  fail_every_call (TRUE);
}

CHECK_TEST (test_a_lost_device_leaves_what_is_on_the_host)
{
  g_autoptr (GstMemory) memory = new_memory (pinned);

  cpu_write (memory, 1);
  device_check (memory, stream, 1);
  wait_for (stream);
  imk_inject_failure (1, TRUE);
  cpu_check (memory, 1);
  imk_inject_failure (0, FALSE);
}

/* --- threads -------------------------------------------------------------- */

typedef struct {
  GstMemory *memory;
  guint seed;
  guint n;
} Reader;

static gpointer
read_on_device (gpointer data)
{
  Reader *reader = data;
  gpointer mine = NULL;
  ImkError error;

  check_ok (gst_imaging_context_push (context, &error), &error);
  check_ok (device->stream_new (&mine, &error), &error);
  for (guint i = 0; i < reader->n; i++)
    device_check (reader->memory, mine, reader->seed);
  /* whoever frees a stream has waited for it: its address may come again */
  check_ok (device->stream_synchronize (mine, &error), &error);
  device->stream_free (mine);
  gst_imaging_context_pop (context);
  return NULL;
}

static gpointer
read_on_cpu (gpointer data)
{
  Reader *reader = data;

  for (guint i = 0; i < reader->n; i++)
    cpu_check (reader->memory, reader->seed);
  return NULL;
}

CHECK_TEST (test_threads_may_read_together)
{
  for (guint round = 0; round < 20; round++) {
    g_autoptr (GstMemory) memory = new_memory (round % 2 ? pinned : on_device);
    Reader reader = {memory, round, 20};
    GThread *threads[4];

    if (round % 4 < 2)
      device_write (memory, stream, round);
    else
      cpu_write (memory, round);
    for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
      threads[i] = g_thread_new (
          "reader", i % 2 ? read_on_cpu : read_on_device, &reader);
    for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
      g_thread_join (threads[i]);
  }
  fail_unless (counted ("bytes-uploaded") <= 20 * SIZE);
  fail_unless (counted ("bytes-downloaded") <= 20 * SIZE);
}

/* --- slabs ---------------------------------------------------------------- */

static GstAllocator *
slab_allocator_new (gsize size)
{
  GstAllocator *allocator =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_PINNED, stats);

  gst_imaging_allocator_use_slabs (GST_IMAGING_ALLOCATOR (allocator), size);
  return allocator;
}

/* A real device does not tell. */
static void
assert_page_locked (guint n)
{
  if (check_is_mock ())
    fail_unless_equals_int (check_n_page_locked (), n);
}

CHECK_TEST (test_memories_of_a_slab)
{
  gsize pitch = gst_imaging_memory_pitch (SIZE);
  GstAllocator *allocator = slab_allocator_new (3 * SIZE);
  guint n_before = check_n_page_locked ();
  GstMemory *m[4];
  GstMapInfo map;

  fail_unless (pitch >= SIZE && pitch % 256 == 0);
  for (guint i = 0; i < 4; i++) {
    m[i] = gst_allocator_alloc (allocator, SIZE, NULL);
    gst_memory_map (m[i], &map, GST_MAP_WRITE);
    memset (map.data, (gint) i, SIZE);
    gst_memory_unmap (m[i], &map);
  }
  assert_page_locked (n_before + 2);
  for (guint i = 0; i < 4; i++) {
    gst_memory_map (m[i], &map, GST_MAP_READ);
    fail_unless (map.data == gst_imaging_memory_address (m[i]));
    for (guint k = 0; k < SIZE; k++)
      fail_unless_equals_int (map.data[k], i);
    gst_memory_unmap (m[i], &map);
  }
  fail_unless (gst_imaging_memory_are_neighbours (m[0], m[1]));
  fail_unless (gst_imaging_memory_are_neighbours (m[1], m[2]));
  fail_if (gst_imaging_memory_are_neighbours (m[1], m[0]));
  fail_if (gst_imaging_memory_are_neighbours (m[0], m[2]));
  fail_if (gst_imaging_memory_are_neighbours (m[2], m[3]));
  fail_unless ((const guint8 *) gst_imaging_memory_address (m[1]) -
                   (const guint8 *) gst_imaging_memory_address (m[0]) ==
               (gssize) pitch);
  /* the allocator keeps the one with places left */
  gst_object_unref (allocator);
  gst_memory_unref (m[0]);
  gst_memory_unref (m[1]);
  assert_page_locked (n_before + 2);
  gst_memory_unref (m[2]);
  assert_page_locked (n_before + 1);
  gst_memory_unref (m[3]);
  assert_page_locked (n_before);
}

/* Whatever the order in which they came back. */
CHECK_TEST (test_pool_gives_neighbours_in_order)
{
  static const guint order[] = {4, 1, 7, 0, 6, 2, 5, 3};
  g_autoptr (GstAllocator) allocator = slab_allocator_new (8 * 1024);
  GstVideoInfo info = check_info ("GRAY8", 32, 32);
  g_autoptr (GstCaps) caps = gst_video_info_to_caps (&info);
  g_autoptr (GstBufferPool) pool =
      gst_imaging_video_pool_new (allocator, caps, &info, FALSE);
  GstBuffer *buffers[8];

  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
  for (guint round = 0; round < 3; round++) {
    for (guint i = 0; i < 8; i++)
      fail_unless_equals_int (
          gst_buffer_pool_acquire_buffer (pool, &buffers[i], NULL),
          GST_FLOW_OK);
    for (guint i = 1; i < 8; i++)
      fail_unless (gst_imaging_memory_are_neighbours (
                       gst_buffer_peek_memory (buffers[i - 1], 0),
                       gst_buffer_peek_memory (buffers[i], 0)),
          "round %u: frame %u does not lie behind the one before", round, i);
    for (guint i = 0; i < 8; i++)
      gst_buffer_unref (buffers[order[i]]);
  }
  gst_buffer_pool_set_active (pool, FALSE);
}

static gpointer
acquire_one (gpointer pool)
{
  GstBuffer *buffer = NULL;
  GstFlowReturn flow = gst_buffer_pool_acquire_buffer (pool, &buffer, NULL);

  gst_clear_buffer (&buffer);
  return GINT_TO_POINTER (flow);
}

/* A pool that may not grow waits for a frame, or for the end. */
CHECK_TEST (test_pool_waits_for_frames)
{
  GstBufferPoolAcquireParams dont_wait = {
      .flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT};
  g_autoptr (GstAllocator) allocator = slab_allocator_new (8 * 1024);
  GstVideoInfo info = check_info ("GRAY8", 32, 32);
  g_autoptr (GstCaps) caps = gst_video_info_to_caps (&info);
  g_autoptr (GstBufferPool) pool =
      gst_imaging_video_pool_new (allocator, caps, &info, FALSE);
  GstStructure *config = gst_buffer_pool_get_config (pool);
  GstBuffer *held, *none = NULL;
  GThread *thread;

  gst_buffer_pool_config_set_params (config, caps, info.size, 1, 1);
  fail_unless (gst_buffer_pool_set_config (pool, config));
  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
  fail_unless_equals_int (
      gst_buffer_pool_acquire_buffer (pool, &held, NULL), GST_FLOW_OK);
  fail_unless_equals_int (
      gst_buffer_pool_acquire_buffer (pool, &none, &dont_wait), GST_FLOW_EOS);
  thread = g_thread_new ("waits", acquire_one, pool);
  g_usleep (20000);
  gst_buffer_unref (held);
  fail_unless_equals_int (
      GPOINTER_TO_INT (g_thread_join (thread)), GST_FLOW_OK);

  fail_unless_equals_int (
      gst_buffer_pool_acquire_buffer (pool, &held, NULL), GST_FLOW_OK);
  thread = g_thread_new ("waits", acquire_one, pool);
  g_usleep (20000);
  gst_buffer_pool_set_active (pool, FALSE);
  fail_unless_equals_int (
      GPOINTER_TO_INT (g_thread_join (thread)), GST_FLOW_FLUSHING);
  gst_buffer_unref (held);
}

CHECK_CASE ("integrated", set_up_integrated, tear_down)

CHECK_TEST_AGAIN (test_each_writer_makes_the_other_view_stale)
CHECK_TEST_AGAIN (test_each_call_may_fail_once)

CHECK_CASE ("incoherent", set_up_incoherent, tear_down)

CHECK_TEST_AGAIN (test_each_writer_makes_the_other_view_stale)
CHECK_TEST_AGAIN (test_a_write_of_a_part_keeps_the_rest)
CHECK_TEST_AGAIN (test_each_call_may_fail_once)
