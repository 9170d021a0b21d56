/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-cuda.h"

#include <stdlib.h>
#include <string.h>

#include "mock-egl.h"

/* Rows from @from to @to; with an array, between it and whichever of them
 * there is. */
typedef struct Copy {
  MockJob job;
  MockSpan to, from;
  size_t to_stride, from_stride, row_size, height;
  void *staged; /* a copy of pageable memory */
  MockArray *array;
} Copy;

static atomic_ulong n_copies;

static void
copy_clear (MockJob *job)
{
  Copy *c = (Copy *) job;

  mock_span_release (&c->to);
  mock_span_release (&c->from);
  free (c->staged);
}

/* --- copies --------------------------------------------------------------- */

static void
copy_rows (uint8_t *to, size_t to_stride, const uint8_t *from,
    size_t from_stride, size_t row_size, size_t height)
{
  for (size_t y = 0; y < height; y++)
    memcpy (to + y * to_stride, from + y * from_stride, row_size);
}

static ImkStatus
run_copy (MockJob *job, ImkError *error)
{
  Copy *c = (Copy *) job;

  copy_rows (c->to.bytes, c->to_stride, c->from.bytes, c->from_stride,
      c->row_size, c->height);
  return IMK_OK;
}

/* CUDA has read pageable memory when the call returns. */
static ImkStatus
stage (Copy *c, ImkError *error)
{
  c->staged = malloc (c->row_size * c->height);
  if (!c->staged)
    return mock_no_memory (error);
  copy_rows (c->staged, c->row_size, c->from.bytes, c->from_stride, c->row_size,
      c->height);
  c->from.bytes = c->staged;
  c->from_stride = c->row_size;
  return IMK_OK;
}

size_t
mock_rows_size (size_t stride, size_t row_size, size_t height)
{
  return (height - 1) * stride + row_size;
}

ImkStatus
mock_copy (void *to, size_t to_stride, const void *from, size_t from_stride,
    size_t row_size, size_t height, void *stream, ImkError *error)
{
  ImkStatus status = mock_begin ("copy", error);
  bool to_pageable;
  Copy *c;

  n_copies++;
  if (status != IMK_OK || !row_size || !height)
    return status;
  if (height > 1 && (to_stride < row_size || from_stride < row_size))
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "A copy of rows of %zu bytes has strides of %zu and %zu bytes.",
        row_size, to_stride, from_stride);
  c = mock_job_new (sizeof (*c), run_copy, copy_clear);
  if (!c)
    return mock_no_memory (error);
  c->to_stride = to_stride;
  c->from_stride = from_stride;
  c->row_size = row_size;
  c->height = height;
  status = mock_span_take (to, mock_rows_size (to_stride, row_size, height),
      "destination of a copy", &c->to, error);
  if (status == IMK_OK)
    status =
        mock_span_take (from, mock_rows_size (from_stride, row_size, height),
            "source of a copy", &c->from, error);
  if (status == IMK_OK && stream && !c->from.block)
    status = stage (c, error);
  if (status != IMK_OK) {
    mock_job_free (&c->job);
    return status;
  }
  to_pageable = !c->to.block;
  status = mock_submit (&c->job, stream, "copy", error);
  /* and has written it */
  if (status == IMK_OK && stream && to_pageable)
    status = mock_stream_wait (stream, error);
  return status;
}

/* For tests: copies since the last time. */
unsigned imk_mock_n_copies (void);

__attribute__ ((visibility ("default"))) unsigned
imk_mock_n_copies (void)
{
  return (unsigned) atomic_exchange (&n_copies, 0);
}

/* --- EGL images ----------------------------------------------------------- */

ImkStatus
mock_egl_map (void *image, ImkEglFrame *frame, ImkError *error)
{
  const MockEglImage *i = image;
  ImkStatus status = mock_begin ("egl_map", error);
  MockHandle *handle;

  if (status != IMK_OK)
    return status;
  if (!i || i->magic != MOCK_EGL_MAGIC)
    mock_misuse ("egl_map (%p): this is no EGL image of the mock.", image);
  handle = calloc (1, sizeof (*handle));
  if (!handle)
    return mock_no_memory (error);
  mock_handle_add (handle, MOCK_EGL_FRAME);
  *frame = (ImkEglFrame){
      .resource = handle,
      .is_array = i->is_array,
      .n_planes = i->n_planes,
      .stride = i->is_array ? 0 : i->stride,
  };
  for (unsigned p = 0; p < i->n_planes; p++)
    frame->planes[p] = i->planes[p];
  return IMK_OK;
}

void
mock_egl_unmap (ImkEglFrame *frame)
{
  if (!frame->resource)
    return;
  mock_need_context ("egl_unmap");
  mock_handle_remove (
      mock_handle_check (frame->resource, MOCK_EGL_FRAME, "egl_unmap"));
  free (frame->resource);
  *frame = (ImkEglFrame){0};
}

/* The mock's arrays have their last row first. */
static ImkStatus
run_copy_array (MockJob *job, ImkError *error)
{
  Copy *c = (Copy *) job;
  MockArray *a = c->array;

  for (size_t y = 0; y < c->height; y++) {
    uint8_t *row = a->bytes + (a->height - 1 - y) * a->row_size;

    if (c->to.bytes)
      memcpy (c->to.bytes + y * c->to_stride, row, c->row_size);
    else
      memcpy (row, c->from.bytes + y * c->from_stride, c->row_size);
  }
  return IMK_OK;
}

ImkStatus
mock_copy_array (void *array, void *memory, size_t stride, size_t row_size,
    size_t height, bool to_array, void *stream, ImkError *error)
{
  ImkStatus status = mock_begin ("copy_array", error);
  MockArray *a = array;
  Copy *c;

  if (status != IMK_OK)
    return status;
  if (a->magic != MOCK_ARRAY_MAGIC)
    mock_misuse ("copy_array (%p): this is no CUDA array of the mock.", array);
  if (row_size > a->row_size || height > a->height || stride < row_size)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "A copy of %zu rows of %zu bytes leaves an array of %zu of %zu.",
        height, row_size, a->height, a->row_size);
  c = mock_job_new (sizeof (*c), run_copy_array, copy_clear);
  if (!c)
    return mock_no_memory (error);
  c->array = a;
  c->to_stride = c->from_stride = stride;
  c->row_size = row_size;
  c->height = height;
  status = mock_span_take (memory, mock_rows_size (stride, row_size, height),
      "memory beside an array", to_array ? &c->from : &c->to, error);
  if (status != IMK_OK) {
    mock_job_free (&c->job);
    return status;
  }
  return mock_submit (&c->job, stream, "copy_array", error);
}
