/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wakes a thread that waits for a descriptor, without waiting itself. */
#pragma once

#include <glib-unix.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

typedef struct {
  gint fds[2]; /* of a pipe; -1 where no more could be opened */
} GstImagingWake;

static inline void
gst_imaging_wake_init (GstImagingWake *self)
{
  self->fds[0] = self->fds[1] = -1;
  if (!g_unix_open_pipe (self->fds, FD_CLOEXEC, NULL))
    return;
  g_unix_set_fd_nonblocking (self->fds[0], TRUE, NULL);
  g_unix_set_fd_nonblocking (self->fds[1], TRUE, NULL);
}

static inline void
gst_imaging_wake_clear (GstImagingWake *self)
{
  for (guint i = 0; i < 2; i++)
    if (self->fds[i] >= 0)
      close (self->fds[i]);
}

/* A full pipe wakes as well. */
static inline void
gst_imaging_wake_up (GstImagingWake *self)
{
  const gchar byte = 0;

  if (self->fds[1] >= 0 && write (self->fds[1], &byte, 1) < 0)
    return;
}

static inline void
gst_imaging_wake_drain (GstImagingWake *self)
{
  gchar bytes[64];

  while (self->fds[0] >= 0 &&
         read (self->fds[0], bytes, sizeof (bytes)) == (gssize) sizeof (bytes))
    continue;
}

/* For @self or for @fd, @timeout_ms at most; -1: without end */
static inline void
gst_imaging_wake_wait_for_two (GstImagingWake *self, gint fd, gint timeout_ms)
{
  struct pollfd fds[2] = {{self->fds[0], POLLIN, 0}, {fd, POLLIN, 0}};

  if (self->fds[0] >= 0 && fd >= 0)
    poll (fds, 2, timeout_ms);
  else /* no descriptors are left */
    g_usleep (10000);
}
