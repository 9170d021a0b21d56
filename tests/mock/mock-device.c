/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Failures on demand, devices and their contexts. */
#include "mock-cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_CONTEXTS = 32 };

/* The context of device i is the address of the i-th. */
static char contexts[MOCK_MAX_DEVICES];
static __thread char *current[MAX_CONTEXTS];
static __thread int n_current;

static atomic_ulong n_calls, fail_at;
static atomic_bool fail_forever;
static atomic_int lost_device = -1, closed_device = -1;
static atomic_bool is_held;

/* --- what may go wrong ---------------------------------------------------- */

void
mock_misuse (const char *format, ...)
{
  va_list args;

  va_start (args, format);
  fprintf (stderr, "mock-cuda: ");
  vfprintf (stderr, format, args);
  fprintf (stderr, "\n");
  va_end (args);
  abort ();
}

unsigned long
mock_inject_failure (unsigned long nth, bool forever)
{
  unsigned long made;

  fail_at = 0;
  fail_forever = forever;
  made = atomic_exchange (&n_calls, 0);
  fail_at = nth;
  return made;
}

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

ImkStatus
mock_begin (const char *call, ImkError *error)
{
  ImkStatus status = begin_without_context (call, error);

  if (status == IMK_OK && !n_current)
    status = imk_error_set (error, IMK_ERROR_DEVICE,
        "%s was called while no context is current; push one around it.", call);
  return status == IMK_OK ? mock_check_lost (call, error) : status;
}

ImkStatus
mock_check_lost (const char *call, ImkError *error)
{
  int lost = lost_device;

  if (mock_current_device () != lost)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_DEVICE,
      "CUDA says: mock device %d has fallen off the bus (in %s).", lost, call);
}

void
mock_need_context (const char *call)
{
  if (!n_current)
    mock_misuse (
        "%s was called while no context is current; push one around it.", call);
}

int
mock_current_device (void)
{
  return (int) (current[n_current - 1] - contexts);
}

ImkStatus
mock_no_memory (ImkError *error)
{
  return imk_error_set (
      error, IMK_ERROR_MEMORY, "The mock device is out of host memory.");
}

/* For tests: from now on all calls in contexts of @device fail; -1: of none. */
void imk_mock_lose_device (int device);

__attribute__ ((visibility ("default"))) void
imk_mock_lose_device (int device)
{
  lost_device = device;
}

/* For tests: from now on the context of @device cannot be entered; -1: all can
 * be. */
void imk_mock_close_device (int device);

__attribute__ ((visibility ("default"))) void
imk_mock_close_device (int device)
{
  closed_device = device;
}

/* For tests: while @hold a context is being made and not done. */
void imk_mock_hold_context (bool hold);

__attribute__ ((visibility ("default"))) void
imk_mock_hold_context (bool hold)
{
  is_held = hold;
}

/* --- devices and contexts ------------------------------------------------- */

static int
device_number (void)
{
  const char *text = getenv ("IMK_MOCK_DEVICES");
  int n = text ? atoi (text) : 2;

  return n < 0 ? 0 : n > MOCK_MAX_DEVICES ? MOCK_MAX_DEVICES : n;
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

ImkStatus
mock_device_count (int *n_devices, ImkError *error)
{
  ImkStatus status = begin_without_context ("count", error);

  *n_devices = status == IMK_OK ? device_number () : 0;
  return status;
}

ImkStatus
mock_device_info (int device, ImkDeviceInfo *info, ImkError *error)
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
      .total_size = MOCK_DEVICE_SIZE,
  };
  snprintf (info->name, sizeof (info->name), "Mock device %d", device);
  return IMK_OK;
}

ImkStatus
mock_device_context (int device, void **context, ImkError *error)
{
  ImkStatus status = begin_without_context ("context", error);

  if (status == IMK_OK)
    status = check_device (device, error);
  if (status != IMK_OK)
    return status;
  while (is_held)
    nanosleep (&(struct timespec){.tv_nsec = 1000000}, NULL);
  *context = &contexts[device];
  return IMK_OK;
}

ImkStatus
mock_device_push (void *context, ImkError *error)
{
  char *c = context;

  if (c < contexts || c >= contexts + MOCK_MAX_DEVICES)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "%p is not a context of the mock device.", context);
  if (c - contexts == closed_device)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "CUDA says: the context of mock device %d is gone.",
        (int) closed_device);
  if (n_current == MAX_CONTEXTS)
    mock_misuse (
        "%d contexts are pushed; a pop is missing somewhere.", n_current);
  current[n_current++] = c;
  return IMK_OK;
}

/* Its copies reach all memory. */
void
mock_enable_peer (void *context)
{
  mock_need_context ("enable_peer");
}

void
mock_device_pop (void)
{
  if (!n_current)
    mock_misuse ("pop was called while no context is current.");
  n_current--;
}
