/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A camera of Video4Linux without the kernel's, by LD_PRELOAD: the character
 * device MOCK_V4L2_DEVICE is one of 64x48 pixels with the formats
 * MOCK_V4L2_FORMATS, as "GREY,Y12 ". Its frames are zero. Each open () is a
 * file in memory, into which the buffers are mapped. */
#undef _FILE_OFFSET_BITS /* which would make open () and open64 () one */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <linux/videodev2.h>

enum { WIDTH = 64, HEIGHT = 48, N_BUFFERS = 8, BUFFER_SIZE = 16384 };

static ino_t cameras[64]; /* the files; what a process opens */
static int n_cameras;
static __u32 pixel_format;
static int queue[N_BUFFERS], n_queued;
static __u32 sequence;

static int
open_camera (void)
{
  struct stat status;
  int fd = memfd_create ("camera", MFD_CLOEXEC);

  if (n_cameras == sizeof cameras / sizeof cameras[0] ||
      ftruncate (fd, N_BUFFERS * BUFFER_SIZE) || fstat (fd, &status)) {
    close (fd);
    errno = EBUSY;
    return -1;
  }
  cameras[n_cameras++] = status.st_ino;
  return fd;
}

static int
is_camera (int fd)
{
  struct stat status;

  if (!n_cameras || fstat (fd, &status))
    return 0;
  for (int i = 0; i < n_cameras; i++)
    if (cameras[i] == status.st_ino)
      return 1;
  return 0;
}

#define OPEN(name) \
  int name (const char *path, int flags, ...) \
  { \
    int (*next) (const char *, int, ...); \
    const char *camera = getenv ("MOCK_V4L2_DEVICE"); \
    va_list rest; \
    mode_t mode; \
\
    va_start (rest, flags); \
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg (rest, mode_t) : 0; \
    va_end (rest); \
    if (camera && !strcmp (path, camera)) \
      return open_camera (); \
    *(void **) &next = dlsym (RTLD_NEXT, #name); \
    return next (path, flags, mode); \
  }

#undef open
#undef open64
OPEN (open)
OPEN (open64)

/* The fourcc of the i-th format; 0 behind the last. */
static __u32
format_at (unsigned i)
{
  const char *names = getenv ("MOCK_V4L2_FORMATS");

  if (!names || strlen (names) < 5 * i + 4)
    return 0;
  names += 5 * i;
  return v4l2_fourcc (names[0], names[1], names[2], names[3]);
}

static int
has_format (__u32 wanted)
{
  for (unsigned i = 0; format_at (i); i++)
    if (format_at (i) == wanted)
      return 1;
  return 0;
}

static int
fail (int number)
{
  errno = number;
  return -1;
}

static void
describe_format (struct v4l2_format *format, __u32 name)
{
  unsigned bytes = name == V4L2_PIX_FMT_GREY ? 1 : 2;

  memset (&format->fmt, 0, sizeof format->fmt);
  format->fmt.pix = (struct v4l2_pix_format){.width = WIDTH,
      .height = HEIGHT,
      .pixelformat = name,
      .field = V4L2_FIELD_NONE,
      .bytesperline = WIDTH * bytes,
      .sizeimage = WIDTH * HEIGHT * bytes,
      .colorspace = V4L2_COLORSPACE_SRGB};
}

static int
set_format (struct v4l2_format *format, int keep)
{
  __u32 name = format->fmt.pix.pixelformat;

  if (format->type != V4L2_BUF_TYPE_VIDEO_CAPTURE)
    return fail (EINVAL);
  if (!has_format (name))
    name = format_at (0);
  describe_format (format, name);
  if (keep)
    pixel_format = name;
  return 0;
}

static void
describe_buffer (struct v4l2_buffer *buffer, unsigned i)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  buffer->index = i;
  buffer->field = V4L2_FIELD_NONE;
  buffer->memory = V4L2_MEMORY_MMAP;
  buffer->m.offset = i * BUFFER_SIZE;
  buffer->length = BUFFER_SIZE;
  buffer->bytesused =
      WIDTH * HEIGHT * (pixel_format == V4L2_PIX_FMT_GREY ? 1 : 2);
  buffer->flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC | V4L2_BUF_FLAG_MAPPED;
  buffer->timestamp.tv_sec = now.tv_sec;
  buffer->timestamp.tv_usec = now.tv_nsec / 1000;
}

static int
dequeue (struct v4l2_buffer *buffer)
{
  if (!n_queued)
    return fail (EAGAIN);
  usleep (10000);
  describe_buffer (buffer, queue[0]);
  buffer->sequence = sequence++;
  memmove (queue, queue + 1, --n_queued * sizeof queue[0]);
  return 0;
}

static int
answer (unsigned long request, void *at)
{
  struct v4l2_capability *capability = at;
  struct v4l2_fmtdesc *description = at;
  struct v4l2_requestbuffers *wanted = at;
  struct v4l2_buffer *buffer = at;
  struct v4l2_format *format = at;

  switch (request) {
  case VIDIOC_QUERYCAP:
    memset (capability, 0, sizeof *capability);
    strcpy ((char *) capability->driver, "mock");
    strcpy ((char *) capability->card, "Mock");
    capability->capabilities =
        V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING | V4L2_CAP_DEVICE_CAPS;
    capability->device_caps = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    return 0;
  case VIDIOC_ENUM_FMT:
    if (description->type != V4L2_BUF_TYPE_VIDEO_CAPTURE ||
        !format_at (description->index))
      return fail (EINVAL);
    description->flags = 0;
    description->pixelformat = format_at (description->index);
    return 0;
  case VIDIOC_G_FMT:
    if (format->type != V4L2_BUF_TYPE_VIDEO_CAPTURE)
      return fail (EINVAL);
    describe_format (format, pixel_format ? pixel_format : format_at (0));
    return 0;
  case VIDIOC_TRY_FMT:
  case VIDIOC_S_FMT:
    return set_format (format, request == VIDIOC_S_FMT);
  case VIDIOC_REQBUFS:
    if (wanted->type != V4L2_BUF_TYPE_VIDEO_CAPTURE ||
        wanted->memory != V4L2_MEMORY_MMAP)
      return fail (EINVAL);
    if (wanted->count > N_BUFFERS)
      wanted->count = N_BUFFERS;
    n_queued = 0;
    return 0;
  case VIDIOC_QUERYBUF:
    if (buffer->index >= N_BUFFERS)
      return fail (EINVAL);
    describe_buffer (buffer, buffer->index);
    return 0;
  case VIDIOC_QBUF:
    if (n_queued == N_BUFFERS)
      return fail (EINVAL);
    queue[n_queued++] = buffer->index;
    buffer->flags |= V4L2_BUF_FLAG_QUEUED;
    return 0;
  case VIDIOC_DQBUF:
    return dequeue (buffer);
  case VIDIOC_STREAMON:
  case VIDIOC_STREAMOFF:
    n_queued = request == VIDIOC_STREAMOFF ? 0 : n_queued;
    return 0;
  default:
    return fail (request == VIDIOC_ENUM_FRAMESIZES ||
                         request == VIDIOC_ENUM_FRAMEINTERVALS
                     ? EINVAL
                     : ENOTTY);
  }
}

int
ioctl (int fd, unsigned long request, ...)
{
  int (*next) (int, unsigned long, ...);
  va_list rest;
  void *at;

  va_start (rest, request);
  at = va_arg (rest, void *);
  va_end (rest);
  if (is_camera (fd))
    return answer ((__u32) request, at);
  *(void **) &next = dlsym (RTLD_NEXT, "ioctl");
  return next (fd, request, at);
}
