/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A libimk-cuda.so without CUDA, so that all that stands above the kernels is
 * tested where there is no GPU. It is stricter than a GPU on purpose:
 *
 * - A device pointer is a reserved address that nobody can read or write. Code
 *   that follows one on the CPU crashes here, as it does with a card.
 * - Fresh memory holds 0xcd, freed memory 0xdd: a forgotten upload is seen.
 * - Every stream is a thread with a queue, so a forgotten wait is seen.
 * - A call without a current context fails; the CUDA runtime would quietly take
 *   the primary context, which need not be the one of the application.
 * - Copies and images must lie inside one live block.
 *
 * What the caller cannot be told through an ImkStatus ends in a sentence on
 * stderr and abort (): this is a tool for tests.
 *
 * Environment: IMK_MOCK_DEVICES (2) how many devices there are, 0 allowed;
 * IMK_MOCK_INTEGRATED=1 makes them share the memory of the CPU, and
 * IMK_MOCK_COHERENT=0 without its caches, as before compute capability 7.2;
 * IMK_MOCK_DELAY_US delays every queued job, IMK_MOCK_SLOW_US those of
 * IMK_MOCK_SLOW_DEVICE alone; IMK_MOCK_LEAKS=1 reports at exit what was not
 * freed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/device.h"
#include "mock-egl.h"
#ifdef HAVE_FFT
#include "insarxcorr/insarxcorr-backend.h"
#endif
#include "lapsharpen/lapsharpen-backend.h"
#ifdef HAVE_FFT
#include "normalintegrate/normalintegrate-backend.h"
#include "octbscan/octbscan-backend.h"
#endif
#include "photostereo/photostereo-backend.h"
#include "relight/relight-backend.h"
#include "shcentroid/shcentroid-backend.h"

enum { MAX_DEVICES = 16, MAX_CONTEXTS = 32, ALIGNMENT = 256, PAGE = 4096 };
#define DEVICE_SIZE ((size_t) 1 << 30) /* bytes of memory a device has */
#define ARENA_SIZE ((size_t) 1 << 38)  /* addresses, not memory */

typedef struct Context {
  int device;
} Context;

typedef struct Block {
  uint8_t *address; /* as the devices see it; not readable by the CPU */
  uint8_t *bytes;   /* where the bytes really are */
  size_t size;
  bool pinned; /* @bytes is known to the program, too */
  int device;
  bool freed;       /* the address is never given out again */
  unsigned n_users; /* jobs that are queued or running */
} Block;

/* One record of an event; it outlives the event while somebody waits. */
typedef struct Mark {
  atomic_uint n_refs;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool done;
} Mark;

/* Streams, events, kernel objects and mapped EGL images: known by address,
 * counted at exit. */
typedef enum HandleKind {
  STREAM,
  EVENT,
  OBJECT,
  EGL_FRAME,
  N_KINDS
} HandleKind;

typedef struct Handle {
  struct Handle *next;
  HandleKind kind;
  int device;
} Handle;

typedef struct Event {
  Handle handle;
  pthread_mutex_t lock;
  Mark *mark; /* the last record, NULL when there was none */
} Event;

typedef struct Job Job;

typedef struct Stream {
  Handle handle;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  Job *first, **last;
  uint64_t n_queued, n_done;
  bool quit;
  ImkError error; /* of the first job that failed since the last wait */
} Stream;

/* An algorithm's state: that of the CPU backend, run by the streams. */
typedef struct Object {
  Handle handle;
  void *state;
  pthread_mutex_t busy; /* one frame at a time */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  unsigned n_queued;
  unsigned n_given, n_taken; /* turns of jobs that remember those before */
  bool updated;              /* @params are newer than those of the state */
  union {
    ImkLapsharpenConfig lapsharpen;
    ImkPhotostereoParams photostereo;
    ImkShcentroidParams shcentroid;
#ifdef HAVE_FFT
    ImkOctbscanParams octbscan;
#endif
  } params;
} Object;

/* Bytes that a job reads or writes; @block is NULL for pageable memory. */
typedef struct Span {
  Block *block;
  uint8_t *bytes;
} Span;

struct Job {
  Job *next;
  ImkStatus (*run) (Job *job, ImkError *error);
  Span to, from;
  size_t to_stride, from_stride, row_size, height;
  void *staged; /* a copy of pageable memory */
  MockArray *array;
  Mark *mark;
  Object *object;
  Object params; /* only .params and .updated, as they were at the call */
  ImkImage in, out;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these: */
static pthread_cond_t block_idle = PTHREAD_COND_INITIALIZER;
static uint8_t *arena;
static size_t arena_used;
static Block **blocks; /* sorted by address */
static size_t n_blocks, n_blocks_room;
static size_t device_used[MAX_DEVICES];
static Handle *handles;

static Context contexts[MAX_DEVICES];
static __thread Context *current[MAX_CONTEXTS];
static __thread int n_current;

static atomic_ulong n_calls, fail_at;
static atomic_bool fail_forever;
static atomic_ulong n_copies;
static atomic_int lost_device = -1;

/* --- what may go wrong ---------------------------------------------------- */

__attribute__ ((noreturn, format (printf, 1, 2))) static void
misuse (const char *format, ...)
{
  va_list args;

  va_start (args, format);
  fprintf (stderr, "mock-cuda: ");
  vfprintf (stderr, format, args);
  fprintf (stderr, "\n");
  va_end (args);
  abort ();
}

static unsigned long
inject_failure (unsigned long nth, bool forever)
{
  unsigned long made;

  fail_at = 0;
  fail_forever = forever;
  made = atomic_exchange (&n_calls, 0);
  fail_at = nth;
  return made;
}

/* Every fallible call begins here. */
static ImkStatus
begin_without_context (const char *call, ImkError *error)
{
  unsigned long n = ++n_calls;
  unsigned long at = fail_at;

  if (at && (fail_forever ? n >= at : n == at))
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "CUDA says: told to fail (mock device, in %s).", call);
  return IMK_OK;
}

static ImkStatus
begin (const char *call, ImkError *error)
{
  ImkStatus status = begin_without_context (call, error);

  if (status == IMK_OK && !n_current)
    status = imk_error_set (error, IMK_ERROR_DEVICE,
        "%s was called while no context is current; push one around it.", call);
  if (status == IMK_OK && current[n_current - 1]->device == lost_device)
    status = imk_error_set (error, IMK_ERROR_DEVICE,
        "CUDA says: mock device %d has fallen off the bus (in %s).",
        (int) lost_device, call);
  return status;
}

static void
need_context (const char *call)
{
  if (!n_current)
    misuse (
        "%s was called while no context is current; push one around it.", call);
}

static int
current_device (void)
{
  return current[n_current - 1]->device;
}

static ImkStatus
no_memory (ImkError *error)
{
  return imk_error_set (
      error, IMK_ERROR_MEMORY, "The mock device is out of host memory.");
}

/* --- devices and contexts ------------------------------------------------- */

static int
device_number (void)
{
  const char *text = getenv ("IMK_MOCK_DEVICES");
  int n = text ? atoi (text) : 2;

  return n < 0 ? 0 : n > MAX_DEVICES ? MAX_DEVICES : n;
}

static ImkStatus
check_device (int device, ImkError *error)
{
  int n = device_number ();

  if (device < 0 || device >= n)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "There is no mock device %d; there are %d.", device, n);
  return IMK_OK;
}

static ImkStatus
device_count (int *n_devices, ImkError *error)
{
  ImkStatus status = begin_without_context ("count", error);

  *n_devices = status == IMK_OK ? device_number () : 0;
  return status;
}

static ImkStatus
device_info (int device, ImkDeviceInfo *info, ImkError *error)
{
  const char *integrated = getenv ("IMK_MOCK_INTEGRATED");
  const char *coherent = getenv ("IMK_MOCK_COHERENT");
  bool is_coherent = !coherent || strcmp (coherent, "0") != 0;
  ImkStatus status = begin_without_context ("info", error);

  if (status == IMK_OK)
    status = check_device (device, error);
  if (status != IMK_OK)
    return status;
  *info = (ImkDeviceInfo){
      .compute_major = is_coherent ? 8 : 5, /* Orin, Nano */
      .compute_minor = is_coherent ? 7 : 3,
      .integrated = integrated && strcmp (integrated, "1") == 0,
      .io_coherent = is_coherent,
      .total_size = DEVICE_SIZE,
  };
  snprintf (info->name, sizeof (info->name), "Mock device %d", device);
  return IMK_OK;
}

static ImkStatus
device_context (int device, void **context, ImkError *error)
{
  ImkStatus status = begin_without_context ("context", error);

  if (status == IMK_OK)
    status = check_device (device, error);
  if (status != IMK_OK)
    return status;
  pthread_mutex_lock (&lock);
  contexts[device].device = device;
  pthread_mutex_unlock (&lock);
  *context = &contexts[device];
  return IMK_OK;
}

static ImkStatus
device_push (void *context, ImkError *error)
{
  Context *c = context;

  if (c < contexts || c >= contexts + MAX_DEVICES)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "%p is not a context of the mock device.", context);
  if (n_current == MAX_CONTEXTS)
    misuse ("%d contexts are pushed; a pop is missing somewhere.", n_current);
  current[n_current++] = c;
  return IMK_OK;
}

static void
device_pop (void)
{
  if (!n_current)
    misuse ("pop was called while no context is current.");
  n_current--;
}

/* --- memory --------------------------------------------------------------- */

/* Call with the lock held. Returns: the last block at or before @address */
static Block *
block_before (const uint8_t *address)
{
  size_t low = 0, high = n_blocks;

  while (low < high) {
    size_t middle = (low + high) / 2;

    if (blocks[middle]->address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? blocks[low - 1] : NULL;
}

/* Call with the lock held. */
static bool
reserve (size_t size, uint8_t **address)
{
  /* a page nobody owns stands behind every block */
  size_t taken = (size + PAGE - 1) / PAGE * PAGE + PAGE;

  if (!arena) {
    void *p = mmap (NULL, ARENA_SIZE, PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
      return false;
    arena = p;
  }
  if (taken > ARENA_SIZE - arena_used)
    return false;
  if (n_blocks == n_blocks_room) {
    size_t room = n_blocks_room ? 2 * n_blocks_room : 64;
    Block **more = realloc (blocks, room * sizeof (*blocks));

    if (!more)
      return false;
    blocks = more;
    n_blocks_room = room;
  }
  *address = arena + arena_used;
  arena_used += taken;
  return true;
}

static ImkStatus
block_new (size_t size, bool pinned, Block **block, ImkError *error)
{
  int device = current_device ();
  Block *b = calloc (1, sizeof (*b));
  void *bytes = NULL;

  if (size > DEVICE_SIZE || !b || posix_memalign (&bytes, ALIGNMENT, size))
    goto no_memory;
  memset (bytes, 0xcd, size);
  *b =
      (Block){.bytes = bytes, .size = size, .pinned = pinned, .device = device};

  pthread_mutex_lock (&lock);
  if ((!pinned && size > DEVICE_SIZE - device_used[device]) ||
      !reserve (size, &b->address)) {
    pthread_mutex_unlock (&lock);
    goto no_memory;
  }
  if (!pinned)
    device_used[device] += size;
  blocks[n_blocks++] = b;
  pthread_mutex_unlock (&lock);
  *block = b;
  return IMK_OK;

no_memory:
  free (bytes);
  free (b);
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "Mock device %d has no %zu bytes of memory left.", device, size);
}

static void
block_free (const void *pointer, bool pinned, const char *call)
{
  Block *found = NULL;

  if (!pointer)
    return;
  need_context (call);
  pthread_mutex_lock (&lock);
  for (size_t i = 0; i < n_blocks && !found; i++)
    if (blocks[i]->pinned == pinned && !blocks[i]->freed &&
        pointer == (pinned ? blocks[i]->bytes : blocks[i]->address))
      found = blocks[i];
  if (!found)
    misuse ("%s (%p): no such block, or it was freed before.", call, pointer);
  /* as cudaFree and cudaFreeHost do */
  while (found->n_users)
    pthread_cond_wait (&block_idle, &lock);
  found->freed = true;
  if (!pinned)
    device_used[found->device] -= found->size;
  pthread_mutex_unlock (&lock);
  memset (found->bytes, 0xdd, found->size);
  free (found->bytes);
}

static ImkStatus
alloc_device (size_t size, void **device, ImkError *error)
{
  Block *block;
  ImkStatus status = begin ("alloc_device", error);

  if (status == IMK_OK)
    status = block_new (size, false, &block, error);
  if (status == IMK_OK)
    *device = block->address;
  return status;
}

static void
free_device (void *device)
{
  block_free (device, false, "free_device");
}

static ImkStatus
alloc_pinned (size_t size, void **host, void **mapped, ImkError *error)
{
  Block *block;
  ImkStatus status = begin ("alloc_pinned", error);

  if (status == IMK_OK)
    status = block_new (size, true, &block, error);
  if (status == IMK_OK) {
    *host = block->bytes;
    *mapped = block->address;
  }
  return status;
}

static void
free_pinned (void *host)
{
  block_free (host, true, "free_pinned");
}

/* --- spans: which bytes does a pointer mean? ------------------------------ */

static void
span_release (Span *span)
{
  if (span->block) {
    pthread_mutex_lock (&lock);
    span->block->n_users--;
    pthread_cond_broadcast (&block_idle);
    pthread_mutex_unlock (&lock);
  }
  *span = (Span){0};
}

/* Call with the lock held. Returns: the live page-locked block that the CPU
 * would meet within the @size bytes from @pointer */
static Block *
pinned_block_near (const uint8_t *pointer, size_t size)
{
  for (size_t i = 0; i < n_blocks; i++) {
    Block *b = blocks[i];

    if (b->pinned && !b->freed && pointer < b->bytes + b->size &&
        pointer + size > b->bytes)
      return b;
  }
  return NULL;
}

/* @role: "source", "destination", "input image": for the sentence */
static ImkStatus
span_take (const void *pointer, size_t size, const char *role, Span *span,
    ImkError *error)
{
  const uint8_t *p = pointer;
  ImkStatus status = IMK_OK;
  const uint8_t *start;
  Block *block;

  pthread_mutex_lock (&lock);
  if (arena && p >= arena && p < arena + ARENA_SIZE) {
    block = block_before (p);
    if (!block || p >= block->address + block->size) {
      status = imk_error_set (error, IMK_ERROR_DEVICE,
          "The %s starts at %p, which is no memory of a device.", role,
          pointer);
      goto done;
    }
    start = block->address;
  } else {
    block = pinned_block_near (p, size);
    start = block ? block->bytes : p;
  }
  if (block && block->freed)
    status = imk_error_set (error, IMK_ERROR_DEVICE,
        "The %s at %p lies in device memory that was freed.", role, pointer);
  else if (block && (p < start || size > block->size - (size_t) (p - start)))
    status = imk_error_set (error, IMK_ERROR_DEVICE,
        "The %s at %p takes %zu bytes and leaves its block: %zu bytes at %p.",
        role, pointer, size, block->size, (const void *) start);
  if (status == IMK_OK) {
    if (block)
      block->n_users++;
    span->block = block;
    span->bytes = block ? block->bytes + (p - start) : (uint8_t *) pointer;
  }
done:
  pthread_mutex_unlock (&lock);
  return status;
}

/* --- handles -------------------------------------------------------------- */

static void
handle_add (Handle *handle, HandleKind kind)
{
  handle->kind = kind;
  handle->device = current_device ();
  pthread_mutex_lock (&lock);
  handle->next = handles;
  handles = handle;
  pthread_mutex_unlock (&lock);
}

/* Aborts when @pointer is not a live handle of this kind: the GPU's driver
 * would crash, or not, later. */
static void *
handle_check (void *pointer, HandleKind kind, const char *call)
{
  Handle *h;

  pthread_mutex_lock (&lock);
  for (h = handles; h && h != pointer; h = h->next)
    ;
  pthread_mutex_unlock (&lock);
  if (!h || h->kind != kind)
    misuse ("%s (%p): no such %s, or it was freed before.", call, pointer,
        kind == STREAM   ? "stream"
        : kind == EVENT  ? "event"
        : kind == OBJECT ? "object"
                         : "mapped EGL image");
  return pointer;
}

static void
handle_remove (Handle *handle)
{
  Handle **place = &handles;

  pthread_mutex_lock (&lock);
  while (*place != handle)
    place = &(*place)->next;
  *place = handle->next;
  pthread_mutex_unlock (&lock);
}

/* --- streams -------------------------------------------------------------- */

static void
mark_unref (Mark *mark)
{
  if (mark && atomic_fetch_sub (&mark->n_refs, 1) == 1) {
    pthread_mutex_destroy (&mark->lock);
    pthread_cond_destroy (&mark->changed);
    free (mark);
  }
}

static void
job_free (Job *job)
{
  span_release (&job->to);
  span_release (&job->from);
  mark_unref (job->mark);
  if (job->object) {
    pthread_mutex_lock (&job->object->lock);
    job->object->n_queued--;
    pthread_cond_broadcast (&job->object->changed);
    pthread_mutex_unlock (&job->object->lock);
  }
  free (job->staged);
  free (job);
}

/* Of each job of @device. */
static unsigned
delay_of (int device)
{
  const char *all = getenv ("IMK_MOCK_DELAY_US");
  const char *slow = getenv ("IMK_MOCK_SLOW_DEVICE");
  const char *more = getenv ("IMK_MOCK_SLOW_US");

  if (slow && more && atoi (slow) == device)
    return (unsigned) atoi (more);
  return all ? (unsigned) atoi (all) : 0;
}

static void *
stream_main (void *data)
{
  Stream *s = data;
  unsigned delay_us = delay_of (s->handle.device);

  pthread_mutex_lock (&s->lock);
  while (true) {
    ImkError error;
    ImkStatus status;
    Job *job;

    while (!s->first && !s->quit)
      pthread_cond_wait (&s->changed, &s->lock);
    if (!s->first)
      break;
    job = s->first;
    s->first = job->next;
    if (!s->first)
      s->last = &s->first;
    pthread_mutex_unlock (&s->lock);

    if (delay_us)
      usleep (delay_us);
    status = job->run (job, &error);
    job_free (job);

    pthread_mutex_lock (&s->lock);
    if (status != IMK_OK && s->error.code == IMK_OK)
      s->error = error;
    s->n_done++;
    pthread_cond_broadcast (&s->changed);
  }
  pthread_mutex_unlock (&s->lock);
  return NULL;
}

/* Takes @job. On the NULL stream it runs at once. */
static ImkStatus
submit (Job *job, void *stream, const char *call, ImkError *error)
{
  Stream *s;

  if (!stream) {
    ImkStatus status = job->run (job, error);

    job_free (job);
    return status;
  }
  s = handle_check (stream, STREAM, call);
  pthread_mutex_lock (&s->lock);
  *s->last = job;
  s->last = &job->next;
  s->n_queued++;
  pthread_cond_broadcast (&s->changed);
  pthread_mutex_unlock (&s->lock);
  return IMK_OK;
}

static ImkStatus
stream_new (void **stream, ImkError *error)
{
  ImkStatus status = begin ("stream_new", error);
  Stream *s;

  if (status != IMK_OK)
    return status;
  s = calloc (1, sizeof (*s));
  if (!s)
    return no_memory (error);
  s->last = &s->first;
  pthread_mutex_init (&s->lock, NULL);
  pthread_cond_init (&s->changed, NULL);
  handle_add (&s->handle, STREAM);
  if (pthread_create (&s->thread, NULL, stream_main, s) != 0) {
    handle_remove (&s->handle);
    pthread_mutex_destroy (&s->lock);
    pthread_cond_destroy (&s->changed);
    free (s);
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "The mock device has no more streams.");
  }
  *stream = s;
  return IMK_OK;
}

static void
stream_free (void *stream)
{
  Stream *s;

  if (!stream)
    return;
  need_context ("stream_free");
  s = handle_check (stream, STREAM, "stream_free");
  handle_remove (&s->handle);
  /* what is queued is still done, as by cudaStreamDestroy */
  pthread_mutex_lock (&s->lock);
  s->quit = true;
  pthread_cond_broadcast (&s->changed);
  pthread_mutex_unlock (&s->lock);
  pthread_join (s->thread, NULL);
  pthread_mutex_destroy (&s->lock);
  pthread_cond_destroy (&s->changed);
  free (s);
}

static ImkStatus
stream_wait (Stream *s, ImkError *error)
{
  ImkStatus status = IMK_OK;
  uint64_t until;

  pthread_mutex_lock (&s->lock);
  until = s->n_queued;
  while (s->n_done < until)
    pthread_cond_wait (&s->changed, &s->lock);
  if (s->error.code != IMK_OK)
    status = imk_error_set (error, s->error.code, "%s", s->error.message);
  s->error.code = IMK_OK;
  pthread_mutex_unlock (&s->lock);
  return status;
}

static ImkStatus
stream_synchronize (void *stream, ImkError *error)
{
  ImkStatus status = begin ("stream_synchronize", error);

  if (status != IMK_OK || !stream)
    return status;
  return stream_wait (
      handle_check (stream, STREAM, "stream_synchronize"), error);
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
run_copy (Job *job, ImkError *error)
{
  copy_rows (job->to.bytes, job->to_stride, job->from.bytes, job->from_stride,
      job->row_size, job->height);
  return IMK_OK;
}

/* CUDA has read pageable memory when the call returns. */
static ImkStatus
stage (Job *job, ImkError *error)
{
  job->staged = malloc (job->row_size * job->height);
  if (!job->staged)
    return no_memory (error);
  copy_rows (job->staged, job->row_size, job->from.bytes, job->from_stride,
      job->row_size, job->height);
  job->from.bytes = job->staged;
  job->from_stride = job->row_size;
  return IMK_OK;
}

static size_t
rows_size (size_t stride, size_t row_size, size_t height)
{
  return (height - 1) * stride + row_size;
}

static ImkStatus
copy (void *to, size_t to_stride, const void *from, size_t from_stride,
    size_t row_size, size_t height, void *stream, ImkError *error)
{
  ImkStatus status = begin ("copy", error);
  bool to_pageable;
  Job *job;

  n_copies++;
  if (status != IMK_OK || !row_size || !height)
    return status;
  if (height > 1 && (to_stride < row_size || from_stride < row_size))
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "A copy of rows of %zu bytes has strides of %zu and %zu bytes.",
        row_size, to_stride, from_stride);
  job = calloc (1, sizeof (*job));
  if (!job)
    return no_memory (error);
  job->run = run_copy;
  job->to_stride = to_stride;
  job->from_stride = from_stride;
  job->row_size = row_size;
  job->height = height;
  status = span_take (to, rows_size (to_stride, row_size, height),
      "destination of a copy", &job->to, error);
  if (status == IMK_OK)
    status = span_take (from, rows_size (from_stride, row_size, height),
        "source of a copy", &job->from, error);
  if (status == IMK_OK && stream && !job->from.block)
    status = stage (job, error);
  if (status != IMK_OK) {
    job_free (job);
    return status;
  }
  to_pageable = !job->to.block;
  status = submit (job, stream, "copy", error);
  /* and has written it */
  if (status == IMK_OK && stream && to_pageable)
    status = stream_wait (stream, error);
  return status;
}

/* --- EGL images ------------------------------------------------------------
 */

static ImkStatus
egl_map (void *image, ImkEglFrame *frame, ImkError *error)
{
  const MockEglImage *i = image;
  ImkStatus status = begin ("egl_map", error);
  Handle *handle;

  if (status != IMK_OK)
    return status;
  if (!i || i->magic != MOCK_EGL_MAGIC)
    misuse ("egl_map (%p): this is no EGL image of the mock.", image);
  handle = calloc (1, sizeof (*handle));
  if (!handle)
    return no_memory (error);
  handle_add (handle, EGL_FRAME);
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

static void
egl_unmap (ImkEglFrame *frame)
{
  if (!frame->resource)
    return;
  need_context ("egl_unmap");
  handle_remove (handle_check (frame->resource, EGL_FRAME, "egl_unmap"));
  free (frame->resource);
  *frame = (ImkEglFrame){0};
}

/* The mock's arrays have their last row first. */
static ImkStatus
run_copy_array (Job *job, ImkError *error)
{
  MockArray *a = job->array;

  for (size_t y = 0; y < job->height; y++) {
    uint8_t *row = a->bytes + (a->height - 1 - y) * a->row_size;

    if (job->to.bytes)
      memcpy (job->to.bytes + y * job->to_stride, row, job->row_size);
    else
      memcpy (row, job->from.bytes + y * job->from_stride, job->row_size);
  }
  return IMK_OK;
}

static ImkStatus
copy_array (void *array, void *memory, size_t stride, size_t row_size,
    size_t height, bool to_array, void *stream, ImkError *error)
{
  ImkStatus status = begin ("copy_array", error);
  MockArray *a = array;
  Job *job;

  if (status != IMK_OK)
    return status;
  if (a->magic != MOCK_ARRAY_MAGIC)
    misuse ("copy_array (%p): this is no CUDA array of the mock.", array);
  if (row_size > a->row_size || height > a->height || stride < row_size)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "A copy of %zu rows of %zu bytes leaves an array of %zu of %zu.",
        height, row_size, a->height, a->row_size);
  job = calloc (1, sizeof (*job));
  if (!job)
    return no_memory (error);
  job->run = run_copy_array;
  job->array = a;
  job->to_stride = job->from_stride = stride;
  job->row_size = row_size;
  job->height = height;
  status = span_take (memory, rows_size (stride, row_size, height),
      "memory beside an array", to_array ? &job->from : &job->to, error);
  if (status != IMK_OK) {
    job_free (job);
    return status;
  }
  return submit (job, stream, "copy_array", error);
}

/* --- events --------------------------------------------------------------- */

static Mark *
mark_new (void)
{
  Mark *mark = calloc (1, sizeof (*mark));

  if (mark) {
    mark->n_refs = 1;
    pthread_mutex_init (&mark->lock, NULL);
    pthread_cond_init (&mark->changed, NULL);
  }
  return mark;
}

static ImkStatus
run_record (Job *job, ImkError *error)
{
  pthread_mutex_lock (&job->mark->lock);
  job->mark->done = true;
  pthread_cond_broadcast (&job->mark->changed);
  pthread_mutex_unlock (&job->mark->lock);
  return IMK_OK;
}

static ImkStatus
run_wait (Job *job, ImkError *error)
{
  pthread_mutex_lock (&job->mark->lock);
  while (!job->mark->done)
    pthread_cond_wait (&job->mark->changed, &job->mark->lock);
  pthread_mutex_unlock (&job->mark->lock);
  return IMK_OK;
}

/* The last record as it is now: a later one is not waited for. Returns: a job
 * that waits, NULL when nothing was recorded or memory is exhausted */
static Job *
wait_job_new (Event *event, ImkStatus *status, ImkError *error)
{
  Mark *mark;
  Job *job;

  pthread_mutex_lock (&event->lock);
  mark = event->mark;
  if (mark)
    mark->n_refs++;
  pthread_mutex_unlock (&event->lock);
  if (!mark)
    return NULL;
  job = calloc (1, sizeof (*job));
  if (!job) {
    mark_unref (mark);
    *status = no_memory (error);
    return NULL;
  }
  job->run = run_wait;
  job->mark = mark;
  return job;
}

static ImkStatus
event_new (void **event, ImkError *error)
{
  ImkStatus status = begin ("event_new", error);
  Event *e;

  if (status != IMK_OK)
    return status;
  e = calloc (1, sizeof (*e));
  if (!e)
    return no_memory (error);
  pthread_mutex_init (&e->lock, NULL);
  handle_add (&e->handle, EVENT);
  *event = e;
  return IMK_OK;
}

static void
event_free (void *event)
{
  Event *e;

  if (!event)
    return;
  need_context ("event_free");
  e = handle_check (event, EVENT, "event_free");
  handle_remove (&e->handle);
  mark_unref (e->mark);
  pthread_mutex_destroy (&e->lock);
  free (e);
}

static ImkStatus
event_record (void *event, void *stream, ImkError *error)
{
  ImkStatus status = begin ("event_record", error);
  Event *e;
  Mark *mark, *old;
  Job *job;
  int device;

  if (status != IMK_OK)
    return status;
  e = handle_check (event, EVENT, "event_record");
  device =
      stream
          ? ((Handle *) handle_check (stream, STREAM, "event_record"))->device
          : current_device ();
  if (e->handle.device != device)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "An event of device %d was recorded in a stream of device %d.",
        e->handle.device, device);
  mark = mark_new ();
  job = calloc (1, sizeof (*job));
  if (!mark || !job) {
    mark_unref (mark);
    free (job);
    return no_memory (error);
  }
  mark->n_refs = 2; /* the event and the job */
  job->run = run_record;
  job->mark = mark;
  pthread_mutex_lock (&e->lock);
  old = e->mark;
  e->mark = mark;
  /* under the lock: who sees the mark may count on its job being queued */
  status = submit (job, stream, "event_record", error);
  pthread_mutex_unlock (&e->lock);
  mark_unref (old);
  return status;
}

static ImkStatus
event_wait (void *event, void *stream, ImkError *error)
{
  ImkStatus status = begin ("event_wait", error);
  Job *job;

  if (status != IMK_OK)
    return status;
  job =
      wait_job_new (handle_check (event, EVENT, "event_wait"), &status, error);
  return job ? submit (job, stream, "event_wait", error) : status;
}

static ImkStatus
event_synchronize (void *event, ImkError *error)
{
  ImkStatus status = begin ("event_synchronize", error);
  Job *job;

  if (status != IMK_OK)
    return status;
  job = wait_job_new (
      handle_check (event, EVENT, "event_synchronize"), &status, error);
  return job ? submit (job, NULL, "event_synchronize", error) : status;
}

/* --- algorithms ----------------------------------------------------------- */

/* Returns: an object around @state, which is NULL still; NULL without memory */
static Object *
object_new (void)
{
  Object *o = calloc (1, sizeof (*o));

  if (o) {
    pthread_mutex_init (&o->busy, NULL);
    pthread_mutex_init (&o->lock, NULL);
    pthread_cond_init (&o->changed, NULL);
    handle_add (&o->handle, OBJECT);
  }
  return o;
}

static void
object_wait (Object *o)
{
  pthread_mutex_lock (&o->lock);
  while (o->n_queued)
    pthread_cond_wait (&o->changed, &o->lock);
  pthread_mutex_unlock (&o->lock);
}

static void
object_free (Object *o)
{
  handle_remove (&o->handle);
  pthread_mutex_destroy (&o->busy);
  pthread_mutex_destroy (&o->lock);
  pthread_cond_destroy (&o->changed);
  free (o);
}

static ImkStatus
object_begin (Object *o, const char *call, ImkError *error)
{
  ImkStatus status = begin (call, error);

  if (status != IMK_OK)
    return status;
  handle_check (o, OBJECT, call);
  if (o->handle.device != current_device ())
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "%s: the object belongs to device %d, current is device %d.", call,
        o->handle.device, current_device ());
  return IMK_OK;
}

/* @image, as the device would find it: in its own memory or mapped. */
static ImkStatus
take_image (const ImkImage *image, int device, const char *role, Span *span,
    ImkImage *taken, ImkError *error)
{
  ImkStatus status = span_take (image->data,
      rows_size (image->stride, imk_image_row_size (image), image->height),
      role, span, error);
  bool mapped = image->location == IMK_LOCATION_HOST_MAPPED;

  if (status != IMK_OK)
    return status;
  if (!span->block || span->bytes == image->data)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "The %s is at %p, an address of the CPU; the device cannot reach it.",
        role, image->data);
  if (span->block->pinned != mapped)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "The %s is said to lie in %s memory, which it does not.", role,
        mapped ? "page-locked" : "device");
  if (!mapped && span->block->device != device)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "The %s lies in memory of device %d, the stream is of device %d.", role,
        span->block->device, device);
  *taken = *image;
  taken->data = span->bytes;
  taken->location = IMK_LOCATION_HOST;
  return IMK_OK;
}

/* Queues @run for one frame, or for no image when @in is NULL; @staged is freed
 * with the job, and on failure. */
static ImkStatus
object_submit_with (Object *o, ImkStatus (*run) (Job *, ImkError *),
    const ImkImage *in, const ImkImage *out, void *staged, void *stream,
    const char *call, ImkError *error)
{
  ImkStatus status = object_begin (o, call, error);
  Job *job = NULL;

  if (status == IMK_OK)
    status = begin ("a launch", error);
  if (status == IMK_OK && stream &&
      ((Handle *) handle_check (stream, STREAM, call))->device !=
          o->handle.device)
    status = imk_error_set (error, IMK_ERROR_DEVICE,
        "%s: the stream is not of device %d, where the object is.", call,
        o->handle.device);
  if (status == IMK_OK && !(job = calloc (1, sizeof (*job))))
    status = no_memory (error);
  if (status != IMK_OK) {
    free (staged);
    return status;
  }
  job->run = run;
  job->staged = staged;
  if (in)
    status = take_image (
        in, o->handle.device, "input image", &job->from, &job->in, error);
  if (status == IMK_OK && out)
    status = take_image (
        out, o->handle.device, "output image", &job->to, &job->out, error);
  if (status != IMK_OK) {
    job_free (job);
    return status;
  }
  pthread_mutex_lock (&o->lock);
  o->n_queued++;
  if (in) {
    job->params.updated = o->updated;
    job->params.params = o->params;
    o->updated = false;
  }
  pthread_mutex_unlock (&o->lock);
  job->object = o;
  return submit (job, stream, call, error);
}

static ImkStatus
object_submit (Object *o, ImkStatus (*run) (Job *, ImkError *),
    const ImkImage *in, const ImkImage *out, void *stream, const char *call,
    ImkError *error)
{
  return object_submit_with (o, run, in, out, NULL, stream, call, error);
}

static ImkStatus
lapsharpen_create (
    const ImkLapsharpenConfig *config, void **state, ImkError *error)
{
  ImkStatus status = begin ("lapsharpen create", error);
  ImkLapsharpenConfig c = *config;
  Object *o;

  /* a real one makes several calls: memory, an event */
  if (status == IMK_OK)
    status = begin ("the memory of lapsharpen", error);
  if (status != IMK_OK)
    return status;
  o = object_new ();
  if (!o)
    return no_memory (error);
  c.n_threads = 1; /* many streams would start many times many threads */
  status = imk_lapsharpen_cpu.create (&c, &o->state, error);
  if (status == IMK_OK)
    *state = o;
  else
    object_free (o);
  return status;
}

static ImkStatus
lapsharpen_update (
    void *state, const ImkLapsharpenConfig *config, ImkError *error)
{
  Object *o = state;
  ImkStatus status = object_begin (o, "lapsharpen update", error);

  if (status != IMK_OK)
    return status;
  pthread_mutex_lock (&o->lock);
  o->params.lapsharpen = *config;
  o->params.lapsharpen.n_threads = 1;
  o->updated = true;
  pthread_mutex_unlock (&o->lock);
  return IMK_OK;
}

static ImkStatus
run_lapsharpen (Job *job, ImkError *error)
{
  ImkStatus status = IMK_OK;
  Object *o = job->object;

  pthread_mutex_lock (&o->busy);
  if (job->params.updated)
    status = imk_lapsharpen_cpu.update (
        o->state, &job->params.params.lapsharpen, error);
  if (status == IMK_OK)
    status =
        imk_lapsharpen_cpu.process (o->state, &job->in, &job->out, NULL, error);
  pthread_mutex_unlock (&o->busy);
  return status;
}

static ImkStatus
lapsharpen_process (void *state, const ImkImage *in, ImkImage *out,
    void *stream, ImkError *error)
{
  return object_submit (
      state, run_lapsharpen, in, out, stream, "lapsharpen process", error);
}

static ImkStatus
lapsharpen_get_sums (void *state, ImkLapsharpenSums *sums, ImkError *error)
{
  Object *o = state;
  ImkStatus status = object_begin (o, "lapsharpen get_sums", error);

  if (status != IMK_OK)
    return status;
  object_wait (o);
  return imk_lapsharpen_cpu.get_sums (o->state, sums, error);
}

static void
lapsharpen_destroy (void *state)
{
  Object *o = state;

  if (!o)
    return;
  need_context ("lapsharpen destroy");
  handle_check (o, OBJECT, "lapsharpen destroy");
  object_wait (o);
  imk_lapsharpen_cpu.destroy (o->state);
  object_free (o);
}

static ImkStatus
shcentroid_create (const ImkShcentroidPlan *plan,
    const ImkShcentroidParams *params, void **state, ImkError *error)
{
  ImkStatus status = begin ("shcentroid create", error);
  ImkShcentroidPlan p = *plan;
  Object *o;

  /* a real one makes several calls: memory, an event */
  if (status == IMK_OK)
    status = begin ("the memory of shcentroid", error);
  if (status != IMK_OK)
    return status;
  o = object_new ();
  if (!o)
    return no_memory (error);
  p.n_threads = 1;
  status = imk_shcentroid_cpu.create (&p, params, &o->state, error);
  if (status == IMK_OK)
    *state = o;
  else
    object_free (o);
  return status;
}

static ImkStatus
shcentroid_update (
    void *state, const ImkShcentroidParams *params, ImkError *error)
{
  Object *o = state;
  ImkStatus status = object_begin (o, "shcentroid update", error);

  if (status != IMK_OK)
    return status;
  pthread_mutex_lock (&o->lock);
  o->params.shcentroid = *params;
  o->updated = true;
  pthread_mutex_unlock (&o->lock);
  return IMK_OK;
}

static ImkStatus
run_shcentroid (Job *job, ImkError *error)
{
  ImkStatus status = IMK_OK;
  Object *o = job->object;

  pthread_mutex_lock (&o->busy);
  if (job->params.updated)
    status = imk_shcentroid_cpu.update (
        o->state, &job->params.params.shcentroid, error);
  if (status == IMK_OK)
    status =
        imk_shcentroid_cpu.process (o->state, &job->in, &job->out, NULL, error);
  pthread_mutex_unlock (&o->busy);
  return status;
}

static ImkStatus
shcentroid_process (void *state, const ImkImage *in, ImkImage *out,
    void *stream, ImkError *error)
{
  return object_submit (
      state, run_shcentroid, in, out, stream, "shcentroid process", error);
}

static ImkStatus
run_shcentroid_reset (Job *job, ImkError *error)
{
  ImkStatus status;

  pthread_mutex_lock (&job->object->busy);
  status = imk_shcentroid_cpu.reset (job->object->state, NULL, error);
  pthread_mutex_unlock (&job->object->busy);
  return status;
}

static ImkStatus
shcentroid_reset (void *state, void *stream, ImkError *error)
{
  return object_submit (state, run_shcentroid_reset, NULL, NULL, stream,
      "shcentroid reset", error);
}

static void
shcentroid_destroy (void *state)
{
  Object *o = state;

  if (!o)
    return;
  need_context ("shcentroid destroy");
  handle_check (o, OBJECT, "shcentroid destroy");
  object_wait (o);
  imk_shcentroid_cpu.destroy (o->state);
  object_free (o);
}

#ifdef HAVE_FFT
static ImkStatus
insarxcorr_create (
    const ImkInsarxcorrPlan *plan, uint32_t part, void **state, ImkError *error)
{
  ImkStatus status = begin ("insarxcorr create", error);
  Object *o;

  /* a real one makes several calls: memory, an event */
  if (status == IMK_OK)
    status = begin ("the memory of insarxcorr", error);
  if (status != IMK_OK)
    return status;
  o = object_new ();
  if (!o)
    return no_memory (error);
  status = imk_insarxcorr_cpu.create (plan, part, &o->state, error);
  if (status == IMK_OK)
    *state = o;
  else
    object_free (o);
  return status;
}

/* Waited for, as the real one is; a row may be at work, on other lines. */
static ImkStatus
insarxcorr_push (void *state, ImkInsarxcorrSide side, uint32_t line,
    const ImkImage *lines, ImkError *error)
{
  Object *o = state;
  ImkStatus status = object_begin (o, "insarxcorr push", error);

  if (status == IMK_OK)
    status = begin ("a copy", error);
  return status == IMK_OK
             ? imk_insarxcorr_cpu.push (o->state, side, line, lines, error)
             : status;
}

static ImkStatus
run_insarxcorr (Job *job, ImkError *error)
{
  const uint32_t *row = job->staged;
  ImkStatus status;

  pthread_mutex_lock (&job->object->busy);
  status = imk_insarxcorr_cpu.process (
      job->object->state, *row, &job->out, NULL, error);
  pthread_mutex_unlock (&job->object->busy);
  return status;
}

static ImkStatus
insarxcorr_process (
    void *state, uint32_t row, ImkImage *out, void *stream, ImkError *error)
{
  uint32_t *staged = malloc (sizeof (*staged));

  if (!staged)
    return no_memory (error);
  *staged = row;
  return object_submit_with (state, run_insarxcorr, NULL, out, staged, stream,
      "insarxcorr process", error);
}

static void
insarxcorr_destroy (void *state)
{
  Object *o = state;

  if (!o)
    return;
  need_context ("insarxcorr destroy");
  handle_check (o, OBJECT, "insarxcorr destroy");
  object_wait (o);
  imk_insarxcorr_cpu.destroy (o->state);
  object_free (o);
}
#endif

enum { N_OUTPUTS = 4 };

/* Pictures that do not fit the device wait in the caller's memory. */
typedef struct PhotostereoState {
  void *cpu;
  bool keeps_frames;
  ImkImage frames[IMK_PHOTOSTEREO_MAX_LIGHTS];
} PhotostereoState;

/* About what a real one has a pixel: samples of up to 32 lights, their sums, a
 * solution in the making */
enum { PHOTOSTEREO_PIXEL = 200 };

/* What a job of photostereo needs beside a frame. */
typedef struct PhotostereoCall {
  uint32_t light;
  uint32_t *lights; /* follow in the same block */
  uint32_t n;
  bool compare, updated;
  ImkPhotostereoParams params;
  ImkPhotostereoOutputs outputs;
  Span spans[N_OUTPUTS];
  ImkPhotostereoRow *rows;
} PhotostereoCall;

static ImkStatus
photostereo_create (const ImkPhotostereoPlan *plan,
    const ImkPhotostereoParams *params, void **state, ImkError *error)
{
  ImkStatus status = begin ("photostereo create", error);
  ImkPhotostereoPlan p = *plan;
  PhotostereoState *s;
  Object *o;

  /* a real one makes several calls: memory, an event */
  if (status == IMK_OK)
    status = begin ("the memory of photostereo", error);
  if (status != IMK_OK)
    return status;
  o = object_new ();
  if (!o)
    return no_memory (error);
  p.n_threads = 1;
  o->state = s = calloc (1, sizeof (*s));
  if (!s) {
    object_free (o);
    return no_memory (error);
  }
  s->keeps_frames =
      p.memory_limit &&
      (size_t) p.width * p.height * PHOTOSTEREO_PIXEL > p.memory_limit;
  p.memory_limit = 0;
  status = imk_photostereo_cpu.create (&p, params, &s->cpu, error);
  if (status == IMK_OK) {
    *state = o;
  } else {
    free (s);
    object_free (o);
  }
  return status;
}

static ImkStatus
photostereo_update (
    void *state, const ImkPhotostereoParams *params, ImkError *error)
{
  Object *o = state;
  ImkStatus status = object_begin (o, "photostereo update", error);

  if (status != IMK_OK)
    return status;
  pthread_mutex_lock (&o->lock);
  o->params.photostereo = *params;
  o->updated = true;
  pthread_mutex_unlock (&o->lock);
  return IMK_OK;
}

static void *
photostereo_cpu (const Object *o)
{
  return ((PhotostereoState *) o->state)->cpu;
}

static bool
photostereo_keeps_frames (void *state)
{
  return ((PhotostereoState *) ((Object *) state)->state)->keeps_frames;
}

/* Asks nothing of the device. */
static void
photostereo_reset (void *state)
{
  handle_check (state, OBJECT, "photostereo reset");
}

static ImkStatus
run_photostereo_add (Job *job, ImkError *error)
{
  const PhotostereoCall *call = job->staged;
  ImkStatus status;

  pthread_mutex_lock (&job->object->busy);
  status = imk_photostereo_cpu.add (
      photostereo_cpu (job->object), &job->in, call->light, NULL, error);
  pthread_mutex_unlock (&job->object->busy);
  return status;
}

static ImkStatus
photostereo_submit_add (Object *o, const ImkImage *frame, uint32_t light,
    void *stream, ImkError *error)
{
  PhotostereoCall *call = calloc (1, sizeof (*call));
  bool updated;
  ImkStatus status;

  if (!call)
    return no_memory (error);
  call->light = light;
  /* parameters are for the next solution */
  pthread_mutex_lock (&o->lock);
  updated = o->updated;
  o->updated = false;
  pthread_mutex_unlock (&o->lock);
  status = object_submit_with (o, run_photostereo_add, frame, NULL, call,
      stream, "photostereo add", error);
  o->updated = updated;
  return status;
}

static ImkStatus
photostereo_add (void *state, const ImkImage *frame, uint32_t light,
    void *stream, ImkError *error)
{
  PhotostereoState *s = ((Object *) state)->state;

  if (!s->keeps_frames)
    return photostereo_submit_add (state, frame, light, stream, error);
  s->frames[light] = *frame;
  return IMK_OK;
}

static ImkStatus
run_photostereo_solve (Job *job, ImkError *error)
{
  PhotostereoCall *call = job->staged;
  Object *o = job->object;
  ImkStatus status = IMK_OK;

  pthread_mutex_lock (&o->busy);
  if (call->updated)
    status =
        imk_photostereo_cpu.update (photostereo_cpu (o), &call->params, error);
  if (status == IMK_OK)
    status = imk_photostereo_cpu.solve (photostereo_cpu (o), call->lights,
        call->n, call->compare, &call->outputs, call->rows, NULL, error);
  pthread_mutex_unlock (&o->busy);
  for (int i = 0; i < N_OUTPUTS; i++)
    span_release (&call->spans[i]);
  return status;
}

static ImkStatus
take_outputs (PhotostereoCall *call, int device, ImkError *error)
{
  ImkImage *images[N_OUTPUTS] = {&call->outputs.normal, &call->outputs.albedo,
      &call->outputs.ambient, &call->outputs.quality};
  ImkStatus status = IMK_OK;

  for (int i = 0; i < N_OUTPUTS && status == IMK_OK; i++)
    if (images[i]->data)
      status = take_image (
          images[i], device, "output image", &call->spans[i], images[i], error);
  for (int i = 0; i < N_OUTPUTS && status != IMK_OK; i++)
    span_release (&call->spans[i]);
  return status;
}

static ImkStatus
photostereo_solve (void *state, const uint32_t *lights, uint32_t n,
    bool compare, ImkPhotostereoOutputs *outputs, ImkPhotostereoRow *rows,
    void *stream, ImkError *error)
{
  Object *o = state;
  size_t size = n * sizeof (*lights);
  PhotostereoState *s = o->state;
  PhotostereoCall *call;
  ImkStatus status = IMK_OK;

  for (uint32_t i = 0; i < n && s->keeps_frames && status == IMK_OK; i++)
    status = photostereo_submit_add (
        o, &s->frames[lights[i]], lights[i], stream, error);
  if (status != IMK_OK)
    return status;
  call = calloc (1, sizeof (*call) + size);
  if (!call)
    return no_memory (error);
  *call = (PhotostereoCall){.lights = (uint32_t *) (call + 1),
      .n = n,
      .compare = compare,
      .outputs = *outputs,
      .rows = rows};
  memcpy (call->lights, lights, size);
  status = take_outputs (call, o->handle.device, error);
  if (status != IMK_OK) {
    free (call);
    return status;
  }
  pthread_mutex_lock (&o->lock);
  call->updated = o->updated;
  call->params = o->params.photostereo;
  o->updated = false;
  pthread_mutex_unlock (&o->lock);
  status = object_submit_with (o, run_photostereo_solve, NULL, NULL, call,
      stream, "photostereo solve", error);
  if (rows)
    object_wait (o);
  return status;
}

static ImkStatus
photostereo_probe (void *state, uint32_t step_x, uint32_t step_y,
    float *normals, void *stream, ImkError *error)
{
  Object *o = state;
  ImkStatus status = object_begin (o, "photostereo probe", error);

  if (status != IMK_OK)
    return status;
  object_wait (o);
  return imk_photostereo_cpu.probe (
      photostereo_cpu (o), step_x, step_y, normals, NULL, error);
}

static void
photostereo_destroy (void *state)
{
  Object *o = state;

  if (!o)
    return;
  need_context ("photostereo destroy");
  handle_check (o, OBJECT, "photostereo destroy");
  object_wait (o);
  imk_photostereo_cpu.destroy (photostereo_cpu (o));
  free (o->state);
  object_free (o);
}

/* What a job of relight needs beside images. */
typedef struct RelightCall {
  ImkRelightParams params;
  ImkRelightSource normals, albedo;
  Span span; /* of the albedo */
} RelightCall;

static ImkStatus
relight_create (uint32_t n_threads, void **state, ImkError *error)
{
  ImkStatus status = begin ("relight create", error);
  Object *o;

  if (status != IMK_OK)
    return status;
  o = object_new ();
  if (!o)
    return no_memory (error);
  status = imk_relight_cpu.create (1, &o->state, error);
  if (status == IMK_OK)
    *state = o;
  else
    object_free (o);
  return status;
}

static ImkStatus
run_relight (Job *job, ImkError *error)
{
  RelightCall *call = job->staged;
  ImkStatus status;

  call->normals.image = job->in;
  pthread_mutex_lock (&job->object->busy);
  status = imk_relight_cpu.process (job->object->state, &call->params,
      &call->normals, &call->albedo, &job->out, NULL, error);
  pthread_mutex_unlock (&job->object->busy);
  span_release (&call->span);
  return status;
}

static ImkStatus
relight_process (void *state, const ImkRelightParams *params,
    const ImkRelightSource *normals, const ImkRelightSource *albedo,
    ImkImage *out, void *stream, ImkError *error)
{
  Object *o = state;
  RelightCall *call = calloc (1, sizeof (*call));
  ImkStatus status = IMK_OK;
  Span span;

  if (!call)
    return no_memory (error);
  *call =
      (RelightCall){.params = *params, .normals = *normals, .albedo = *albedo};
  if (albedo->image.data)
    status = take_image (&albedo->image, o->handle.device, "albedo",
        &call->span, &call->albedo.image, error);
  if (status != IMK_OK) {
    span_release (&call->span);
    free (call);
    return status;
  }
  span = call->span;
  status = object_submit_with (o, run_relight, &normals->image, out, call,
      stream, "relight process", error);
  if (status != IMK_OK)
    span_release (&span);
  return status;
}

static void
relight_destroy (void *state)
{
  Object *o = state;

  if (!o)
    return;
  need_context ("relight destroy");
  handle_check (o, OBJECT, "relight destroy");
  object_wait (o);
  imk_relight_cpu.destroy (o->state);
  object_free (o);
}

#ifdef HAVE_FFT
/* What a job of normalintegrate needs beside a frame. */
typedef struct NormalintegrateCall {
  ImkNormalintegrateParams params;
  ImkNormalintegrateOutputs outputs;
  Span spans[2];
  ImkNormalintegrateSummary *summary;
} NormalintegrateCall;

static ImkStatus
normalintegrate_create (
    const ImkNormalintegratePlan *plan, void **state, ImkError *error)
{
  ImkStatus status = begin ("normalintegrate create", error);
  ImkNormalintegratePlan p = *plan;
  Object *o;

  /* a real one makes several calls: memory, plans */
  if (status == IMK_OK)
    status = begin ("the memory of normalintegrate", error);
  if (status != IMK_OK)
    return status;
  o = object_new ();
  if (!o)
    return no_memory (error);
  p.n_threads = 1;
  status = imk_normalintegrate_cpu.create (&p, &o->state, error);
  if (status == IMK_OK)
    *state = o;
  else
    object_free (o);
  return status;
}

static ImkStatus
run_normalintegrate (Job *job, ImkError *error)
{
  NormalintegrateCall *call = job->staged;
  Object *o = job->object;
  ImkStatus status;

  pthread_mutex_lock (&o->busy);
  status = imk_normalintegrate_cpu.process (o->state, &call->params, &job->in,
      &call->outputs, call->summary, NULL, error);
  pthread_mutex_unlock (&o->busy);
  for (int i = 0; i < 2; i++)
    span_release (&call->spans[i]);
  return status;
}

static ImkStatus
normalintegrate_process (void *state, const ImkNormalintegrateParams *params,
    const ImkImage *in, ImkNormalintegrateOutputs *outputs,
    ImkNormalintegrateSummary *summary, void *stream, ImkError *error)
{
  Object *o = state;
  NormalintegrateCall *call = calloc (1, sizeof (*call));
  ImkImage *images[2];
  Span spans[2];
  ImkStatus status = IMK_OK;

  if (!call)
    return no_memory (error);
  *call = (NormalintegrateCall){
      .params = *params, .outputs = *outputs, .summary = summary};
  images[0] = &call->outputs.height;
  images[1] = &call->outputs.grey;
  for (int i = 0; i < 2 && status == IMK_OK; i++)
    if (images[i]->data)
      status = take_image (images[i], o->handle.device, "output image",
          &call->spans[i], images[i], error);
  if (status != IMK_OK) {
    for (int i = 0; i < 2; i++)
      span_release (&call->spans[i]);
    free (call);
    return status;
  }
  memcpy (spans, call->spans, sizeof (spans));
  status = object_submit_with (o, run_normalintegrate, in, NULL, call, stream,
      "normalintegrate process", error);
  for (int i = 0; i < 2 && status != IMK_OK; i++)
    span_release (&spans[i]);
  object_wait (o);
  return status;
}

static void
normalintegrate_destroy (void *state)
{
  Object *o = state;

  if (!o)
    return;
  need_context ("normalintegrate destroy");
  handle_check (o, OBJECT, "normalintegrate destroy");
  object_wait (o);
  imk_normalintegrate_cpu.destroy (o->state);
  object_free (o);
}

static ImkStatus
octbscan_create (const ImkOctbscanPlan *plan, const ImkOctbscanParams *params,
    void **state, ImkError *error)
{
  ImkStatus status = begin ("octbscan create", error);
  ImkOctbscanConfig config = *plan->config;
  ImkOctbscanPlan p = *plan;
  Object *o;

  /* a real one makes several calls: memory, an event */
  if (status == IMK_OK)
    status = begin ("the memory of octbscan", error);
  if (status != IMK_OK)
    return status;
  o = object_new ();
  if (!o)
    return no_memory (error);
  config.n_threads = 1;
  p.config = &config;
  o->params.octbscan = *params;
  status = imk_octbscan_cpu.create (&p, params, &o->state, error);
  if (status == IMK_OK)
    *state = o;
  else
    object_free (o);
  return status;
}

static ImkStatus
octbscan_update (void *state, const ImkOctbscanParams *params, ImkError *error)
{
  Object *o = state;
  ImkStatus status = object_begin (o, "octbscan update", error);

  if (status != IMK_OK)
    return status;
  pthread_mutex_lock (&o->lock);
  o->params.octbscan = *params;
  pthread_mutex_unlock (&o->lock);
  return IMK_OK;
}

/* What a job of octbscan needs beside its B-scan. */
enum { N_BSCAN_OUTPUTS = 5 };

typedef struct OctbscanCall {
  unsigned turn;
  ImkOctbscanParams params;
  ImkOctbscanJob bscan;
  ImkImage images[N_BSCAN_OUTPUTS];
  Span spans[N_BSCAN_OUTPUTS];
} OctbscanCall;

static ImkStatus
run_octbscan (Job *job, ImkError *error)
{
  OctbscanCall *call = job->staged;
  Object *o = job->object;
  ImkStatus status;

  if (call->bscan.in)
    call->bscan.in = &job->in;
  /* whatever stream it is on: a real one waits for an event */
  pthread_mutex_lock (&o->lock);
  while (o->n_taken != call->turn)
    pthread_cond_wait (&o->changed, &o->lock);
  pthread_mutex_unlock (&o->lock);
  pthread_mutex_lock (&o->busy);
  status = imk_octbscan_cpu.update (o->state, &call->params, error);
  if (status == IMK_OK)
    status = imk_octbscan_cpu.process (o->state, &call->bscan, 1, NULL, error);
  pthread_mutex_unlock (&o->busy);
  pthread_mutex_lock (&o->lock);
  o->n_taken++;
  pthread_cond_broadcast (&o->changed);
  pthread_mutex_unlock (&o->lock);
  for (int i = 0; i < N_BSCAN_OUTPUTS; i++)
    span_release (&call->spans[i]);
  return status;
}

static ImkStatus
take_bscan_outputs (OctbscanCall *call, int device, ImkError *error)
{
  ImkImage **images[N_BSCAN_OUTPUTS] = {&call->bscan.db, &call->bscan.linear,
      &call->bscan.complex, &call->bscan.enface, &call->bscan.track};
  ImkStatus status = IMK_OK;

  for (int i = 0; i < N_BSCAN_OUTPUTS && status == IMK_OK; i++)
    if (*images[i]) {
      status = take_image (*images[i], device, "output image", &call->spans[i],
          &call->images[i], error);
      *images[i] = &call->images[i];
    }
  for (int i = 0; i < N_BSCAN_OUTPUTS && status != IMK_OK; i++)
    span_release (&call->spans[i]);
  return status;
}

static ImkStatus
octbscan_submit (
    Object *o, const ImkOctbscanJob *bscan, void *stream, ImkError *error)
{
  OctbscanCall *call = calloc (1, sizeof (*call));
  Span spans[N_BSCAN_OUTPUTS];
  ImkStatus status;

  if (!call)
    return no_memory (error);
  call->bscan = *bscan;
  pthread_mutex_lock (&o->lock);
  call->params = o->params.octbscan;
  call->turn = o->n_given++;
  pthread_mutex_unlock (&o->lock);
  status = take_bscan_outputs (call, o->handle.device, error);
  memcpy (spans, call->spans, sizeof (spans));
  if (status == IMK_OK)
    status = object_submit_with (o, run_octbscan, bscan->in, NULL, call, stream,
        "octbscan process", error);
  else
    free (call);
  if (status != IMK_OK) {
    /* the call is gone; nobody else releases what it took */
    for (int i = 0; i < N_BSCAN_OUTPUTS; i++)
      span_release (&spans[i]);
    pthread_mutex_lock (&o->lock);
    o->n_given--;
    pthread_mutex_unlock (&o->lock);
  }
  return status;
}

static ImkStatus
octbscan_process (void *state, const ImkOctbscanJob *jobs, uint32_t n_jobs,
    void *stream, ImkError *error)
{
  ImkStatus status = IMK_OK;

  for (uint32_t i = 0; i < n_jobs && status == IMK_OK; i++)
    status = octbscan_submit (state, &jobs[i], stream, error);
  return status;
}

static ImkStatus
octbscan_get_pattern (void *state, float *pattern, ImkError *error)
{
  Object *o = state;
  ImkStatus status = object_begin (o, "octbscan pattern", error);

  if (status != IMK_OK)
    return status;
  object_wait (o);
  pthread_mutex_lock (&o->busy);
  status = imk_octbscan_cpu.get_pattern (o->state, pattern, error);
  pthread_mutex_unlock (&o->busy);
  return status;
}

static void
octbscan_destroy (void *state)
{
  Object *o = state;

  if (!o)
    return;
  need_context ("octbscan destroy");
  handle_check (o, OBJECT, "octbscan destroy");
  object_wait (o);
  imk_octbscan_cpu.destroy (o->state);
  object_free (o);
}
#endif

/* --- the module ----------------------------------------------------------- */

static void
count_live (size_t n[2 + N_KINDS])
{
  pthread_mutex_lock (&lock);
  for (size_t i = 0; i < n_blocks; i++)
    n[blocks[i]->pinned] += !blocks[i]->freed;
  for (Handle *h = handles; h; h = h->next)
    n[2 + h->kind]++;
  pthread_mutex_unlock (&lock);
}

/* For tests, which find it by dlsym (): blocks, streams, events and objects
 * that were not freed yet. */
unsigned imk_mock_n_live (void);

__attribute__ ((visibility ("default"))) unsigned
imk_mock_n_live (void)
{
  size_t n[2 + N_KINDS] = {0}, sum = 0;

  count_live (n);
  for (size_t i = 0; i < 2 + N_KINDS; i++)
    sum += n[i];
  return (unsigned) sum;
}

/* Copies since the last time. */
unsigned imk_mock_n_copies (void);

__attribute__ ((visibility ("default"))) unsigned
imk_mock_n_copies (void)
{
  return (unsigned) atomic_exchange (&n_copies, 0);
}

/* From now on all calls in contexts of @device fail; -1: of none. */
void imk_mock_lose_device (int device);

__attribute__ ((visibility ("default"))) void
imk_mock_lose_device (int device)
{
  lost_device = device;
}

/* The same of page-locked blocks alone. */
unsigned imk_mock_n_page_locked (void);

__attribute__ ((visibility ("default"))) unsigned
imk_mock_n_page_locked (void)
{
  size_t n[2 + N_KINDS] = {0};

  count_live (n);
  return (unsigned) n[true];
}

__attribute__ ((destructor)) static void
report_leaks (void)
{
  static const char *names[] = {"device blocks", "page-locked blocks",
      "streams", "events", "objects", "mapped EGL images"};
  const char *wanted = getenv ("IMK_MOCK_LEAKS");
  size_t n[2 + N_KINDS] = {0};

  if (!wanted || strcmp (wanted, "1") != 0)
    return;
  count_live (n);
  for (size_t i = 0; i < 2 + N_KINDS; i++)
    if (n[i])
      fprintf (stderr, "mock-cuda: %zu %s were not freed.\n", n[i], names[i]);
}

static const ImkDevice mock_device = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .count = device_count,
    .info = device_info,
    .context = device_context,
    .push = device_push,
    .pop = device_pop,
    .alloc_device = alloc_device,
    .free_device = free_device,
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .copy = copy,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_synchronize = stream_synchronize,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_synchronize = event_synchronize,
    .egl_map = egl_map,
    .egl_unmap = egl_unmap,
    .copy_array = copy_array,
    .inject_failure = inject_failure,
};

#ifdef HAVE_FFT
static const ImkInsarxcorrBackend mock_insarxcorr = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = insarxcorr_create,
    .push = insarxcorr_push,
    .process = insarxcorr_process,
    .destroy = insarxcorr_destroy,
};
#endif

static const ImkLapsharpenBackend mock_lapsharpen = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = lapsharpen_create,
    .update = lapsharpen_update,
    .process = lapsharpen_process,
    .get_sums = lapsharpen_get_sums,
    .destroy = lapsharpen_destroy,
};

static const ImkPhotostereoBackend mock_photostereo = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = photostereo_create,
    .update = photostereo_update,
    .keeps_frames = photostereo_keeps_frames,
    .add = photostereo_add,
    .solve = photostereo_solve,
    .reset = photostereo_reset,
    .probe = photostereo_probe,
    .destroy = photostereo_destroy,
};

static const ImkRelightBackend mock_relight = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = relight_create,
    .process = relight_process,
    .destroy = relight_destroy,
};

static const ImkShcentroidBackend mock_shcentroid = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = shcentroid_create,
    .update = shcentroid_update,
    .process = shcentroid_process,
    .reset = shcentroid_reset,
    .destroy = shcentroid_destroy,
};

#ifdef HAVE_FFT
static const ImkNormalintegrateBackend mock_normalintegrate = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = normalintegrate_create,
    .process = normalintegrate_process,
    .destroy = normalintegrate_destroy,
};

static const ImkOctbscanBackend mock_octbscan = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = octbscan_create,
    .update = octbscan_update,
    .process = octbscan_process,
    .get_pattern = octbscan_get_pattern,
    .destroy = octbscan_destroy,
};
#endif

extern const ImkModule imk_module;

__attribute__ ((visibility ("default"))) const ImkModule imk_module = {
    .abi = IMK_BACKEND_ABI,
    .entries =
        (const ImkModuleEntry[]){
            {"device", &mock_device},
#ifdef HAVE_FFT
            {"insarxcorr", &mock_insarxcorr},
#endif
            {"lapsharpen", &mock_lapsharpen},
#ifdef HAVE_FFT
            {"normalintegrate", &mock_normalintegrate},
            {"octbscan", &mock_octbscan},
#endif
            {"photostereo", &mock_photostereo},
            {"relight", &mock_relight},
            {"shcentroid", &mock_shcentroid},
            {NULL, NULL},
        },
};
