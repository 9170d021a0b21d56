/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the mock's libimk-cuda.so share. mock-cuda.c says what the
 * mock is for. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/device.h"

#define MOCK_MAX_DEVICES 16
#define MOCK_DEVICE_SIZE ((size_t) 1 << 30) /* bytes of memory a device has */

/* --- mock-device.c: failures, devices, contexts --------------------------- */

/* What the caller cannot be told through an ImkStatus. */
__attribute__ ((noreturn, format (printf, 1, 2))) void mock_misuse (
    const char *format, ...);
ImkStatus mock_no_memory (ImkError *error);

/* Every fallible call begins here. */
ImkStatus mock_begin (const char *call, ImkError *error);
/* Of who waits for a device. */
ImkStatus mock_check_lost (const char *call, ImkError *error);
void mock_need_context (const char *call);
int mock_current_device (void);

ImkStatus mock_device_count (int *n_devices, ImkError *error);
ImkStatus mock_device_info (int device, ImkDeviceInfo *info, ImkError *error);
ImkStatus mock_device_context (int device, void **context, ImkError *error);
ImkStatus mock_device_push (void *context, ImkError *error);
void mock_device_pop (void);
unsigned long mock_inject_failure (unsigned long nth, bool forever);

/* --- mock-memory.c: blocks, and which bytes a pointer means --------------- */

typedef struct MockBlock {
  uint8_t *address; /* as the devices see it; not readable by the CPU */
  uint8_t *bytes;   /* where the bytes really are */
  size_t size;
  bool pinned; /* @bytes is known to the program, too */
  int device;
  bool freed;       /* the address is never given out again */
  unsigned n_users; /* jobs that are queued or running */
} MockBlock;

/* Bytes that a job reads or writes; @block is NULL for pageable memory. */
typedef struct MockSpan {
  MockBlock *block;
  uint8_t *bytes;
} MockSpan;

/* @role: "source", "destination", "input image": for the sentence */
ImkStatus mock_span_take (const void *pointer, size_t size, const char *role,
    MockSpan *span, ImkError *error);
void mock_span_release (MockSpan *span);

ImkStatus mock_alloc_device (size_t size, void **device, ImkError *error);
void mock_free_device (void *device);
ImkStatus mock_alloc_pinned (
    size_t size, void **host, void **mapped, ImkError *error);
void mock_free_pinned (void *host);
void mock_enable_peer (void *context);

/* Adds the blocks that were not freed, by @n[pinned]. */
void mock_count_blocks (size_t n[2]);

/* --- mock-handles.c: what is known by address, and counted at exit -------- */

typedef enum MockHandleKind {
  MOCK_STREAM,
  MOCK_EVENT,
  MOCK_OBJECT,
  MOCK_EGL_FRAME,
  MOCK_N_KINDS
} MockHandleKind;

typedef struct MockHandle {
  struct MockHandle *next;
  MockHandleKind kind;
  int device;
} MockHandle;

/* In the current context. */
void mock_handle_add (MockHandle *handle, MockHandleKind kind);
/* Aborts when @pointer is not a live handle of this kind: the GPU's driver
 * would crash, or not, later. Returns: @pointer */
void *mock_handle_check (void *pointer, MockHandleKind kind, const char *call);
void mock_handle_remove (MockHandle *handle);
void mock_count_handles (size_t n[MOCK_N_KINDS]);

/* --- mock-streams.c ------------------------------------------------------- */

/* What a stream does; the first member of what it works on. */
typedef struct MockJob {
  struct MockJob *next;
  ImkStatus (*run) (struct MockJob *job, ImkError *error);
  void (*clear) (struct MockJob *job); /* of what it holds, once; not of it */
} MockJob;

/* Returns: @size zeroed bytes that begin with a job; NULL without memory */
void *mock_job_new (size_t size,
    ImkStatus (*run) (MockJob *job, ImkError *error),
    void (*clear) (MockJob *job));
void mock_job_free (MockJob *job);
/* Takes @job. On the NULL stream it runs at once. */
ImkStatus mock_submit (
    MockJob *job, void *stream, const char *call, ImkError *error);
/* Until all that is queued now is done. Returns: what failed since the last */
ImkStatus mock_stream_wait (void *stream, ImkError *error);
/* Returns: of which device it is; for NULL the current one */
int mock_stream_device (void *stream, const char *call);

ImkStatus mock_stream_new (void **stream, ImkError *error);
void mock_stream_free (void *stream);
ImkStatus mock_stream_synchronize (void *stream, ImkError *error);

/* --- mock-events.c -------------------------------------------------------- */

ImkStatus mock_event_new (void **event, ImkError *error);
void mock_event_free (void *event);
ImkStatus mock_event_record (void *event, void *stream, ImkError *error);
ImkStatus mock_event_wait (void *event, void *stream, ImkError *error);
ImkStatus mock_event_synchronize (void *event, ImkError *error);

/* --- mock-copies.c: of memory, and of what is behind EGL images ----------- */

/* Returns: bytes from the first of the first row to the last of the last */
size_t mock_rows_size (size_t stride, size_t row_size, size_t height);

ImkStatus mock_copy (void *to, size_t to_stride, const void *from,
    size_t from_stride, size_t row_size, size_t height, void *stream,
    ImkError *error);
ImkStatus mock_egl_map (void *image, ImkEglFrame *frame, ImkError *error);
void mock_egl_unmap (ImkEglFrame *frame);
ImkStatus mock_copy_array (void *array, void *memory, size_t stride,
    size_t row_size, size_t height, bool to_array, void *stream,
    ImkError *error);
