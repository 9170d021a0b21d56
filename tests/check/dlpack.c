/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Views of buffers as DLPack tensors: shapes, types, memory, life. What NumPy
 * makes of them is in tests/python/dlpack.py. */
#include "check-common.h"

#include <string.h>

#include "gstimagingdlpack.h"
#include "gstimagingmemory.h"

static void
check_shape (const GstImagingDlTensor *t, guint8 code, guint8 bits, gint n_dims,
    const gint64 *shape, const gint64 *strides)
{
  fail_unless_equals_int (t->type_code, code);
  fail_unless_equals_int (t->type_bits, bits);
  fail_unless_equals_int (t->type_lanes, 1);
  fail_unless_equals_uint64 (t->byte_offset, 0);
  fail_unless_equals_int (t->n_dims, n_dims);
  for (gint i = 0; i < n_dims; i++) {
    fail_unless_equals_int64 (t->shape[i], shape[i]);
    fail_unless_equals_int64 (t->strides[i], strides[i]);
  }
}

static GstImagingDlTensor *
view (GstBuffer *buffer, const gchar *text, guint index)
{
  g_autoptr (GstCaps) caps = gst_caps_from_string (text);
  GError *error = NULL;
  GstImagingDlTensor *tensor =
      gst_imaging_dlpack_new (buffer, caps, index, &error);

  fail_unless (tensor != NULL, "%s: %s", text, error ? error->message : "");
  return tensor;
}

static void
check_refused (
    GstBuffer *buffer, const gchar *text, guint index, const gchar *words)
{
  GstCaps *caps = text ? gst_caps_from_string (text) : NULL;
  GError *error = NULL;

  fail_unless (gst_imaging_dlpack_new (buffer, caps, index, &error) == NULL);
  fail_unless (strstr (error->message, words) != NULL, "%s: \"%s\"", text,
      error->message);
  g_error_free (error);
  fail_unless (gst_imaging_dlpack_new (buffer, caps, index, NULL) == NULL);
  if (caps)
    gst_caps_unref (caps);
}

#define SHAPE(...) ((const gint64[]){__VA_ARGS__})

/* Every format that is an array has the sample of its first row and column, and
 * of its last, in the buffer. */
CHECK_TEST (test_planes_of_video)
{
  g_autoptr (GstBuffer) buffer =
      gst_buffer_new_allocate (NULL, 5 * 644 * 8, NULL);
  GstImagingDlTensor *t;

  gst_buffer_memset (buffer, 0, 0, 5 * 644 * 8);
  t = view (buffer, "video/x-raw,format=GRAY8,width=641,height=5", 0);
  check_shape (t, GST_IMAGING_DL_UINT, 8, 2, SHAPE (5, 641), SHAPE (644, 1));
  fail_unless_equals_int (t->device_type, GST_IMAGING_DL_CPU);
  gst_imaging_dlpack_free (t);
  t = view (buffer,
      "video/x-raw,format=" GST_VIDEO_NE (GRAY16) ",width=641,height=5", 0);
  check_shape (t, GST_IMAGING_DL_UINT, 16, 2, SHAPE (5, 641), SHAPE (642, 1));
  gst_imaging_dlpack_free (t);
  t = view (buffer, "video/x-raw,format=RGB,width=641,height=5", 0);
  check_shape (
      t, GST_IMAGING_DL_UINT, 8, 3, SHAPE (5, 641, 3), SHAPE (1924, 3, 1));
  gst_imaging_dlpack_free (t);
  t = view (buffer,
      "video/x-raw,format=" GST_VIDEO_NE (RGBA64) ",width=3,height=5", 0);
  check_shape (
      t, GST_IMAGING_DL_UINT, 16, 3, SHAPE (5, 3, 4), SHAPE (12, 4, 1));
  gst_imaging_dlpack_free (t);
  t = view (buffer, "video/x-raw,format=NV12,width=640,height=4", 1);
  check_shape (
      t, GST_IMAGING_DL_UINT, 8, 3, SHAPE (2, 320, 2), SHAPE (640, 2, 1));
  gst_imaging_dlpack_free (t);
  check_refused (buffer, "video/x-raw,format=NV12,width=640,height=4", 2,
      "has 2 planes; there is no plane 2");
  check_refused (
      buffer, "video/x-raw,format=YUY2,width=640,height=4", 0, "are no array");
  check_refused (
      buffer, "video/x-raw,format=RGB16,width=640,height=4", 0, "are no array");
  check_refused (buffer, "video/x-raw,format=GRAY16_BE,width=640,height=4", 0,
      G_BYTE_ORDER == G_LITTLE_ENDIAN ? "are no array" : "");
  check_refused (
      buffer, "video/x-raw,format=v210,width=640,height=4", 0, "are no array");
  check_refused (
      buffer, "video/x-raw,format=GRAY8,width=641,height=5000", 0, "too small");
  check_refused (buffer, "video/x-raw,format=GRAY8", 0, "not complete");
  check_refused (buffer, "video/x-raw,format={GRAY8,RGB}", 0, "leave open");
  check_refused (buffer,
      "video/x-raw(memory:NVMM),format=GRAY8,width=641,height=5", 0,
      "no view without a copy");
  check_refused (buffer, "text/csv", 0, "text/csv is no array");
  check_refused (buffer, NULL, 0, "GstVideoMeta");
  fail_unless_equals_int (GST_MINI_OBJECT_REFCOUNT_VALUE (buffer), 1);
}

/* No format gives a tensor that leaves the buffer. */
CHECK_TEST (test_no_format_leaves_its_buffer)
{
  for (GstVideoFormat f = GST_VIDEO_FORMAT_I420;
       gst_video_format_to_string (f) && f <= GST_VIDEO_FORMAT_RGBA64_BE; f++) {
    GstVideoInfo info;
    GstCaps *caps;
    GstBuffer *buffer;

    gst_video_info_set_format (&info, f, 37, 5);
    caps = gst_video_info_to_caps (&info);
    buffer = gst_buffer_new_allocate (NULL, info.size, NULL);
    for (guint p = 0; p < 4; p++) {
      GstImagingDlTensor *t = gst_imaging_dlpack_new (buffer, caps, p, NULL);
      GstMapInfo map;
      gint64 last = 0;

      if (!t)
        continue;
      for (gint i = 0; i < t->n_dims; i++)
        last += (t->shape[i] - 1) * t->strides[i];
      gst_buffer_map (buffer, &map, GST_MAP_READ);
      fail_unless ((guint8 *) t->data >= map.data &&
                       (guint8 *) t->data + (last + 1) * t->type_bits / 8 <=
                           map.data + map.size,
          "%s, plane %u", gst_video_format_to_string (f), p);
      gst_buffer_unmap (buffer, &map);
      gst_imaging_dlpack_free (t);
    }
    gst_buffer_unref (buffer);
    gst_caps_unref (caps);
  }
}

#define TENSOR(types, dims) \
  "other/tensors,format=static,types=(string)\"" types \
  "\",dimensions=(string)\"" dims "\""

CHECK_TEST (test_tensors_and_lines)
{
  g_autoptr (GstBuffer) buffer = gst_buffer_new_allocate (NULL, 480, NULL);
  GstImagingDlTensor *t;
  GstMemory *second;

  gst_buffer_memset (buffer, 0, 0, 480);
  t = view (buffer, TENSOR ("float32", "1:6:20:1"), 0);
  check_shape (
      t, GST_IMAGING_DL_FLOAT, 32, 3, SHAPE (20, 6, 1), SHAPE (6, 1, 1));
  gst_imaging_dlpack_free (t);
  t = view (buffer, TENSOR ("float64", "12:5"), 0);
  check_shape (t, GST_IMAGING_DL_FLOAT, 64, 2, SHAPE (5, 12), SHAPE (12, 1));
  gst_imaging_dlpack_free (t);
  t = view (buffer, TENSOR ("uint8", "480:0:0:0"), 0);
  check_shape (t, GST_IMAGING_DL_UINT, 8, 1, SHAPE (480), SHAPE (1));
  gst_imaging_dlpack_free (t);
  t = view (buffer, "application/x-slc,format=cf32,width=6,height=900", 0);
  check_shape (t, GST_IMAGING_DL_COMPLEX, 64, 2, SHAPE (10, 6), SHAPE (6, 1));
  gst_imaging_dlpack_free (t);
  t = view (buffer, "application/x-slc,format=ci16,width=6,height=900", 0);
  check_shape (
      t, GST_IMAGING_DL_INT, 16, 3, SHAPE (20, 6, 2), SHAPE (12, 2, 1));
  gst_imaging_dlpack_free (t);
  check_refused (
      buffer, TENSOR ("float32", "121"), 0, "too small for dimensions=121");
  check_refused (buffer, TENSOR ("float32", "0:3"), 0, "is no array");
  check_refused (buffer, TENSOR ("float32", "-1:3"), 0, "is no array");
  check_refused (
      buffer, TENSOR ("float32", "4294967296:4294967296:4"), 0, "is no array");
  check_refused (buffer, TENSOR ("string", "3"), 0, "is no array");
  check_refused (buffer, TENSOR ("float32", "3"), 1, "there is no tensor 1");
  check_refused (
      buffer, TENSOR ("uint8,uint8", "3,4"), 1, "1 memories does not hold 2");
  check_refused (buffer, "other/tensors", 0, "describe 0 tensors");
  check_refused (buffer, "application/x-slc,format=cf32,width=7", 0,
      "whole lines of 7 samples");
  check_refused (
      buffer, "application/x-slc,format=cf32", 0, "whole lines of 0");

  /* two tensors, a memory each */
  second = gst_allocator_alloc (NULL, 4, NULL);
  gst_buffer_append_memory (buffer, second);
  t = view (buffer, TENSOR ("float32,uint8", "120:1:1:1,4:1:1:1"), 1);
  check_shape (t, GST_IMAGING_DL_UINT, 8, 1, SHAPE (4), SHAPE (1));
  gst_imaging_dlpack_free (t);
  check_refused (buffer, TENSOR ("uint8", "484"), 0, "lie in 2 memories");
}

#define GREY "video/x-raw,format=GRAY8,width=64,height=4"

/* A pool of one buffer has none while there is a view. */
CHECK_TEST (test_the_buffer_returns_after_the_view)
{
  GstBufferPool *pool = gst_buffer_pool_new ();
  GstStructure *config = gst_buffer_pool_get_config (pool);
  GstBufferPoolAcquireParams now = {
      .flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT};
  GstCaps *caps = gst_caps_from_string (GREY);
  GstBuffer *buffer, *again;
  GstImagingDlTensor *one, *two;

  gst_buffer_pool_config_set_params (config, caps, 256, 1, 1);
  fail_unless (gst_buffer_pool_set_config (pool, config));
  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
  fail_unless_equals_int (
      gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
  one = gst_imaging_dlpack_new (buffer, caps, 0, NULL);
  two = gst_imaging_dlpack_new (buffer, caps, 0, NULL);
  fail_unless (one && two && one->data == two->data);
  gst_buffer_unref (buffer);
  fail_unless_equals_int (
      gst_buffer_pool_acquire_buffer (pool, &again, &now), GST_FLOW_EOS);
  one->deleter (one);
  fail_unless_equals_int (
      gst_buffer_pool_acquire_buffer (pool, &again, &now), GST_FLOW_EOS);
  two->deleter (two);
  fail_unless_equals_int (
      gst_buffer_pool_acquire_buffer (pool, &again, &now), GST_FLOW_OK);
  fail_unless (again == buffer);
  fail_unless (gst_buffer_is_all_memory_writable (again));
  gst_buffer_unref (again);
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
  gst_caps_unref (caps);
  gst_imaging_dlpack_free (NULL);
}

static GstBuffer *
imaging_buffer (GstImagingContext *context, GstImagingMemoryMode mode)
{
  g_autoptr (GstAllocator) allocator =
      gst_imaging_allocator_new (context, mode, NULL);
  GstBuffer *buffer = gst_buffer_new_allocate (allocator, 256, NULL);

  return buffer;
}

/* Where the newest samples are, and no byte of them is copied. */
CHECK_TEST (test_memory_of_a_device)
{
  GstImagingContext *context = check_context (0);
  GstBuffer *pinned = imaging_buffer (context, GST_IMAGING_MEMORY_PINNED);
  GstBuffer *device = imaging_buffer (context, GST_IMAGING_MEMORY_DEVICE);
  GstMemory *memory = gst_buffer_peek_memory (device, 0);
  GstImagingDlTensor *t;
  gpointer pointer;
  ImkLocation location;
  ImkError error;

  check_n_copies ();
  gst_buffer_memset (pinned, 0, 7, 256);
  t = view (pinned, GREY, 0);
  fail_unless_equals_int (t->device_type, GST_IMAGING_DL_CPU);
  fail_unless_equals_int (*(guint8 *) t->data, 7);
  gst_imaging_dlpack_free (t);

  check_ok (gst_imaging_context_push (context, &error), &error);
  check_ok (gst_imaging_memory_acquire (memory, NULL, GST_MAP_WRITE, FALSE,
                NULL, &pointer, &location, &error),
      &error);
  check_ok (
      gst_imaging_memory_release (memory, NULL, GST_MAP_WRITE, FALSE, &error),
      &error);
  fail_unless (gst_imaging_memory_is_on_device (memory));
  t = view (device, GREY, 0);
  fail_unless_equals_int (t->device_type, GST_IMAGING_DL_CUDA);
  fail_unless_equals_int (t->device_id, 0);
  fail_unless (t->data == pointer);
  fail_if (gst_memory_is_writable (memory) &&
           gst_buffer_is_all_memory_writable (device));
  gst_imaging_dlpack_free (t);
  fail_unless_equals_int (check_n_copies (), 0);

  if (check_is_mock ()) {
    check_lose_device (0);
    check_refused (device, GREY, 0, "");
    check_lose_device (-1);
  }
  gst_imaging_context_pop (context);
  gst_buffer_unref (pinned);
  gst_buffer_unref (device);
  g_object_unref (context);
  fail_unless_equals_int (check_n_live (), 0);
}
