/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-cuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 256, PAGE = 4096 };
#define ARENA_SIZE ((size_t) 1 << 38) /* addresses, not memory */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these: */
static pthread_cond_t block_idle = PTHREAD_COND_INITIALIZER;
static uint8_t *arena;
static size_t arena_used;
static MockBlock **blocks; /* sorted by address */
static size_t n_blocks, n_blocks_room;
static size_t device_used[MOCK_MAX_DEVICES];

/* --- blocks --------------------------------------------------------------- */

/* Call with the lock held. Returns: the last block at or before @address */
static MockBlock *
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
    MockBlock **more = realloc (blocks, room * sizeof (*blocks));

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
block_new (size_t size, bool pinned, MockBlock **block, ImkError *error)
{
  int device = mock_current_device ();
  MockBlock *b = calloc (1, sizeof (*b));
  void *bytes = NULL;

  if (size > MOCK_DEVICE_SIZE || !b || posix_memalign (&bytes, ALIGNMENT, size))
    goto no_memory;
  memset (bytes, 0xcd, size);
  *b = (MockBlock){
      .bytes = bytes, .size = size, .pinned = pinned, .device = device};

  pthread_mutex_lock (&lock);
  if ((!pinned && size > MOCK_DEVICE_SIZE - device_used[device]) ||
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
  MockBlock *found = NULL;

  if (!pointer)
    return;
  mock_need_context (call);
  pthread_mutex_lock (&lock);
  for (size_t i = 0; i < n_blocks && !found; i++)
    if (blocks[i]->pinned == pinned && !blocks[i]->freed &&
        pointer == (pinned ? blocks[i]->bytes : blocks[i]->address))
      found = blocks[i];
  if (!found)
    mock_misuse (
        "%s (%p): no such block, or it was freed before.", call, pointer);
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

ImkStatus
mock_alloc_device (size_t size, void **device, ImkError *error)
{
  MockBlock *block;
  ImkStatus status = mock_begin ("alloc_device", error);

  if (status == IMK_OK)
    status = block_new (size, false, &block, error);
  if (status == IMK_OK)
    *device = block->address;
  return status;
}

void
mock_free_device (void *device)
{
  block_free (device, false, "free_device");
}

ImkStatus
mock_alloc_pinned (size_t size, void **host, void **mapped, ImkError *error)
{
  MockBlock *block;
  ImkStatus status = mock_begin ("alloc_pinned", error);

  if (status == IMK_OK)
    status = block_new (size, true, &block, error);
  if (status == IMK_OK) {
    *host = block->bytes;
    *mapped = block->address;
  }
  return status;
}

void
mock_free_pinned (void *host)
{
  block_free (host, true, "free_pinned");
}

/* --- spans: which bytes does a pointer mean? ------------------------------ */

void
mock_span_release (MockSpan *span)
{
  if (span->block) {
    pthread_mutex_lock (&lock);
    span->block->n_users--;
    pthread_cond_broadcast (&block_idle);
    pthread_mutex_unlock (&lock);
  }
  *span = (MockSpan){0};
}

/* Call with the lock held. Returns: the live page-locked block that the CPU
 * would meet within the @size bytes from @pointer */
static MockBlock *
pinned_block_near (const uint8_t *pointer, size_t size)
{
  for (size_t i = 0; i < n_blocks; i++) {
    MockBlock *b = blocks[i];

    if (b->pinned && !b->freed && pointer < b->bytes + b->size &&
        pointer + size > b->bytes)
      return b;
  }
  return NULL;
}

ImkStatus
mock_span_take (const void *pointer, size_t size, const char *role,
    MockSpan *span, ImkError *error)
{
  const uint8_t *p = pointer;
  ImkStatus status = IMK_OK;
  const uint8_t *start;
  MockBlock *block;

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

void
mock_count_blocks (size_t n[2])
{
  pthread_mutex_lock (&lock);
  for (size_t i = 0; i < n_blocks; i++)
    n[blocks[i]->pinned] += !blocks[i]->freed;
  pthread_mutex_unlock (&lock);
}
