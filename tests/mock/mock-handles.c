/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-cuda.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these: */
static MockHandle *handles;

void
mock_handle_add (MockHandle *handle, MockHandleKind kind)
{
  handle->kind = kind;
  handle->device = mock_current_device ();
  pthread_mutex_lock (&lock);
  handle->next = handles;
  handles = handle;
  pthread_mutex_unlock (&lock);
}

void *
mock_handle_check (void *pointer, MockHandleKind kind, const char *call)
{
  static const char *names[] = {
      "stream", "event", "object", "mapped EGL image"};
  MockHandle *h;

  pthread_mutex_lock (&lock);
  for (h = handles; h && h != pointer; h = h->next)
    ;
  pthread_mutex_unlock (&lock);
  if (!h || h->kind != kind)
    mock_misuse ("%s (%p): no such %s, or it was freed before.", call, pointer,
        names[kind]);
  return pointer;
}

void
mock_handle_remove (MockHandle *handle)
{
  MockHandle **place = &handles;

  pthread_mutex_lock (&lock);
  while (*place != handle)
    place = &(*place)->next;
  *place = handle->next;
  pthread_mutex_unlock (&lock);
}

void
mock_count_handles (size_t n[MOCK_N_KINDS])
{
  pthread_mutex_lock (&lock);
  for (MockHandle *h = handles; h; h = h->next)
    n[h->kind]++;
  pthread_mutex_unlock (&lock);
}
