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
 * IMK_MOCK_DELAY_US delays every queued job; IMK_MOCK_LEAKS=1 reports at exit
 * what was not freed.
 *
 * mock-device.c to mock-copies.c are the device. The algorithms are in
 * mock-filter.c, or in files of their own where the table of a kernel is not an
 * ImkFilterBackend. This file counts what is live. The build makes the module's
 * table, as it does for the real one. */
#include "mock-cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/failures.h"

enum { N_LIVE = 2 + MOCK_N_KINDS };

static void
count_live (size_t n[N_LIVE])
{
  mock_count_blocks (n);
  mock_count_handles (n + 2);
}

/* For tests, which find it by dlsym (): blocks, streams, events and objects
 * that were not freed yet. */
unsigned imk_mock_n_live (void);

__attribute__ ((visibility ("default"))) unsigned
imk_mock_n_live (void)
{
  size_t n[N_LIVE] = {0}, sum = 0;

  count_live (n);
  for (size_t i = 0; i < N_LIVE; i++)
    sum += n[i];
  return (unsigned) sum;
}

/* The same of page-locked blocks alone. */
unsigned imk_mock_n_page_locked (void);

__attribute__ ((visibility ("default"))) unsigned
imk_mock_n_page_locked (void)
{
  size_t n[N_LIVE] = {0};

  count_live (n);
  return (unsigned) n[true];
}

__attribute__ ((destructor)) static void
report_leaks (void)
{
  static const char *names[] = {"device blocks", "page-locked blocks",
      "streams", "events", "objects", "mapped EGL images"};
  const char *wanted = getenv ("IMK_MOCK_LEAKS");
  size_t n[N_LIVE] = {0};

  if (!wanted || strcmp (wanted, "1") != 0)
    return;
  count_live (n);
  for (size_t i = 0; i < N_LIVE; i++)
    if (n[i])
      fprintf (stderr, "mock-cuda: %zu %s were not freed.\n", n[i], names[i]);
}

extern const ImkDevice imk_device_cuda;

const ImkDevice imk_device_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .count = mock_device_count,
    .info = mock_device_info,
    .context = mock_device_context,
    .push = mock_device_push,
    .pop = mock_device_pop,
    .alloc_device = mock_alloc_device,
    .free_device = mock_free_device,
    .alloc_pinned = mock_alloc_pinned,
    .free_pinned = mock_free_pinned,
    .enable_peer = mock_enable_peer,
    .copy = mock_copy,
    .stream_new = mock_stream_new,
    .stream_free = mock_stream_free,
    .stream_synchronize = mock_stream_synchronize,
    .event_new = mock_event_new,
    .event_free = mock_event_free,
    .event_record = mock_event_record,
    .event_wait = mock_event_wait,
    .event_synchronize = mock_event_synchronize,
    .egl_map = mock_egl_map,
    .egl_unmap = mock_egl_unmap,
    .copy_array = mock_copy_array,
};

extern const ImkFailures imk_failures_cuda;

const ImkFailures imk_failures_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .inject = mock_inject_failure,
};
