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
 * mock-device.c to mock-copies.c are the device; an algorithm has a file of its
 * own, over mock-object.c. This one is the module, and counts what is live. */
#include "mock-cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock-backends.h"

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

static const ImkDevice mock_device = {
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
    .inject_failure = mock_inject_failure,
};

extern const ImkModule imk_module;

__attribute__ ((visibility ("default"))) const ImkModule imk_module = {
    .abi = IMK_BACKEND_ABI,
    .entries =
        (const ImkModuleEntry[]){
            {"device", &mock_device},
            {"lapsharpen", &mock_lapsharpen},
            {"photostereo", &mock_photostereo},
            {"relight", &mock_relight},
            {"shcentroid", &mock_shcentroid},
#ifdef HAVE_FFT
            {"insarxcorr", &mock_insarxcorr},
            {"normalintegrate", &mock_normalintegrate},
            {"octbscan", &mock_octbscan},
#endif
            {NULL, NULL},
        },
};
