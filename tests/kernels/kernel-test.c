/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel-test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/sample.h"
#include "imk/device.h"

enum { CANARY = 0xa5, MARGIN = 64 };

static jmp_buf leave;
static char why_skipped[512];
enum { FAILED = 1, SKIPPED = 2 };
static const Test *running;
static uint64_t n_cases; /* of the running test */

/* Those of TEST (); the one behind the last has no name. */
static Test listed[128];
static size_t n_listed;

void
test_list (const Test *test)
{
  if (n_listed + 1 == sizeof (listed) / sizeof (listed[0]))
    abort ();
  listed[n_listed++] = *test;
}

int
test_main (const Test *tests)
{
  const char *only = getenv ("IMK_TEST_ONLY");
  bool need_cpu = !getenv ("IMK_TEST_DEVICE");
  volatile int n = 0, n_failed = 0;
  volatile clock_t begun;

  setvbuf (stdout, NULL, _IOLBF, 0);
  for (const Test *volatile t = tests ? tests : listed; t->name; t++) {
    if (!strstr (t->name, only ? only : "") || (t->cpu_only && !need_cpu))
      continue;
    n++;
    running = t;
    n_cases = 0;
    begun = clock ();
    switch (setjmp (leave)) {
    case 0:
      t->run ();
      printf ("ok %d - %s\n", n, t->name);
      break;
    case FAILED:
      printf ("not ok %d - %s\n", n, t->name);
      n_failed++;
      break;
    case SKIPPED:
      printf ("ok %d - %s # SKIP %s\n", n, t->name, why_skipped);
      break;
    }
    printf ("# %.1f s of CPU\n", (double) (clock () - begun) / CLOCKS_PER_SEC);
  }
  printf ("1..%d\n", n);
  return n_failed ? 1 : 0;
}

const void *
test_data (void)
{
  return running->data;
}

static uint32_t
read_share (void)
{
  const char *text = getenv ("IMK_TEST_SHARE");
  unsigned long share = text ? strtoul (text, NULL, 10) : 1;

  return share > 1 && share < 1000 ? (uint32_t) share : 1;
}

bool
test_takes_case (uint32_t share)
{
  uint64_t seed = n_cases++;

  return !seed || test_random (&seed) % (share * read_share ()) == 0;
}

bool
test_is_short (void)
{
  return read_share () > 1;
}

static void
print_comment (const char *format, va_list args)
{
  printf ("# ");
  vprintf (format, args);
  printf ("\n");
}

void
test_fail (const char *format, ...)
{
  va_list args;

  va_start (args, format);
  print_comment (format, args);
  va_end (args);
  longjmp (leave, FAILED);
}

void
test_skip (const char *format, ...)
{
  va_list args;

  va_start (args, format);
  vsnprintf (why_skipped, sizeof (why_skipped), format, args);
  va_end (args);
  longjmp (leave, SKIPPED);
}

static void
data_path (const char *name, char path[4096])
{
  const char *given = getenv ("IMAGING_TEST_DATA");

  snprintf (path, 4096, "%s/%s", given ? given : TEST_DATA_FOLDER, name);
}

FILE *
test_find_data (const char *name)
{
  char path[4096];

  data_path (name, path);
  return fopen (path, "rb");
}

FILE *
test_open_data (const char *name)
{
  FILE *file = test_find_data (name);
  char path[4096];

  data_path (name, path);
  if (!file)
    test_skip ("%s is not there; set IMAGING_TEST_DATA", path);
  return file;
}

static _Thread_local ImkError last_error;

ImkError *
test_new_error (void)
{
  last_error = (ImkError){0};
  return &last_error;
}

const char *
test_message (void)
{
  return last_error.message;
}

void
test_ok (ImkStatus status)
{
  test_ok_of (status, &last_error);
}

void
test_error (ImkStatus status, ImkStatus expected, const char *words)
{
  test_error_of (status, &last_error, expected, words);
}

void
test_ok_of (ImkStatus status, const ImkError *error)
{
  if (status != IMK_OK)
    test_fail ("status %d: %s", status, error->message);
}

void
test_error_of (ImkStatus status, const ImkError *error, ImkStatus expected,
    const char *words)
{
  test_check (status == expected, "status %d (%s), expected %d", status,
      status == IMK_OK ? "" : error->message, expected);
  test_check (error->code == expected, "the error has code %d, expected %d",
      error->code, expected);
  test_check (strstr (error->message, words), "\"%s\" does not contain \"%s\"",
      error->message, words);
}

static const ImkDevice *
get_device (void)
{
  const ImkDevice *device;

  test_ok (imk_device_get (&device, test_new_error ()));
  return device;
}

void
test_need_cuda (void)
{
  static void *context;

  test_check (!running->cpu_only, "a test of the CPU alone asks for a device");
  if (imk_backend_load ("cuda", test_new_error ()) != IMK_OK)
    test_skip ("%s", test_message ());
  if (!context) {
    test_ok (get_device ()->context (0, &context, test_new_error ()));
    test_ok (get_device ()->push (context, test_new_error ()));
  }
}

const char *
test_fill_name (Fill fill)
{
  static const char *names[N_FILLS] = {
      "zero", "maximum", "checkerboard", "noise"};

  return names[fill];
}

uint64_t
test_random (uint64_t *seed)
{
  uint64_t z = *seed += 0x9e3779b97f4a7c15;

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

TestImage
test_image_new (ImkType type, uint32_t width, uint32_t height,
    uint32_t channels, uint32_t padding)
{
  TestImage t = {.image = {
                     .width = width,
                     .height = height,
                     .channels = channels,
                     .type = type,
                     .location = IMK_LOCATION_HOST,
                 }};
  size_t sample = imk_type_size (type);

  t.image.stride =
      imk_image_row_size (&t.image) + (padding + sample - 1) / sample * sample;
  t.block_size = 2 * MARGIN + t.image.stride * height;
  t.block = malloc (t.block_size);
  memset (t.block, CANARY, t.block_size);
  t.image.data = t.block + MARGIN;
  return t;
}

void
test_image_free (TestImage *image)
{
  free (image->block);
  *image = (TestImage){0};
}

static uint8_t *
row_of (const TestImage *image, uint32_t y)
{
  return (uint8_t *) image->image.data + y * image->image.stride;
}

void
test_image_fill (TestImage *image, Fill fill, uint32_t maximum, uint64_t seed)
{
  uint32_t n = image->image.width * image->image.channels;

  for (uint32_t y = 0; y < image->image.height; y++)
    for (uint32_t i = 0; i < n; i++) {
      bool odd = (i / image->image.channels + y) & 1;
      uint32_t value = fill == FILL_MAXIMUM        ? maximum
                       : fill == FILL_CHECKERBOARD ? (odd ? maximum : 0)
                       : fill == FILL_NOISE
                           ? test_random (&seed) % (maximum + 1ull)
                           : 0;

      if (image->image.type == IMK_TYPE_U8)
        row_of (image, y)[i] = (uint8_t) value;
      else
        ((uint16_t *) row_of (image, y))[i] = (uint16_t) value;
    }
}

static bool
all_canary (const uint8_t *bytes, size_t size)
{
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != CANARY)
      return false;
  return true;
}

void
test_image_put_complex (
    const TestImage *image, uint32_t x, uint32_t y, double re, double im)
{
  imk_sample_put (&image->image, x, y, 0, re);
  imk_sample_put (&image->image, x, y, 1, im);
}

void
test_image_get_complex (
    const TestImage *image, uint32_t x, uint32_t y, double *re, double *im)
{
  *re = imk_sample_get (&image->image, x, y, 0);
  *im = imk_sample_get (&image->image, x, y, 1);
}

void
test_image_check_canaries (const TestImage *image, const char *where)
{
  size_t row_size = imk_image_row_size (&image->image);
  const uint8_t *end = image->block + image->block_size - MARGIN;

  test_check (all_canary (image->block, MARGIN),
      "%s: bytes before the image were written", where);
  test_check (all_canary (end, MARGIN),
      "%s: bytes after the image were written", where);
  for (uint32_t y = 0; y < image->image.height; y++)
    test_check (all_canary (row_of (image, y) + row_size,
                    image->image.stride - row_size),
        "%s: the padding of row %u was written", where, y);
}

static double
sample_value (const uint8_t *sample, ImkType type)
{
  switch (type) {
  case IMK_TYPE_U8:
    return *sample;
  case IMK_TYPE_U16:
    return *(const uint16_t *) sample;
  case IMK_TYPE_I16:
    return *(const int16_t *) sample;
  case IMK_TYPE_F32:
    return *(const float *) sample;
  case IMK_TYPE_F64:
    return *(const double *) sample;
  default:
    return 0;
  }
}

void
test_image_same (
    const TestImage *expected, const TestImage *actual, const char *where)
{
  const ImkImage *e = &expected->image;
  size_t sample = imk_type_size (e->type);

  for (uint32_t y = 0; y < e->height; y++)
    for (size_t i = 0; i < imk_image_row_size (e); i += sample) {
      const uint8_t *a = row_of (expected, y) + i;
      const uint8_t *b = row_of (actual, y) + i;

      if (memcmp (a, b, sample) != 0)
        test_fail (
            "%s: first difference at (%zu, %u) channel %zu: expected %.17g, "
            "got %.17g",
            where, i / sample / e->channels, y, i / sample % e->channels,
            sample_value (a, e->type), sample_value (b, e->type));
    }
}

void
test_device_wait (void)
{
  test_ok (get_device ()->stream_synchronize (NULL, test_new_error ()));
}

ImkImage
test_to_device (const TestImage *image)
{
  const ImkDevice *device = get_device ();
  ImkImage d = image->image;

  test_ok (
      device->alloc_device (d.stride * d.height, &d.data, test_new_error ()));
  d.location = IMK_LOCATION_DEVICE;
  test_ok (device->copy (d.data, d.stride, image->image.data, d.stride,
      imk_image_row_size (&d), d.height, NULL, test_new_error ()));
  test_device_wait ();
  return d;
}

void
test_from_device (const ImkImage *device_image, TestImage *image)
{
  const ImkDevice *device = get_device ();

  test_ok (
      device->copy (image->image.data, image->image.stride, device_image->data,
          device_image->stride, imk_image_row_size (device_image),
          device_image->height, NULL, test_new_error ()));
  test_device_wait ();
}

void
test_device_free (ImkImage *device_image)
{
  get_device ()->free_device (device_image->data);
  device_image->data = NULL;
}

static void
copy_rows (const ImkImage *image, void *to, const void *from)
{
  for (uint32_t y = 0; y < image->height; y++)
    memcpy ((uint8_t *) to + y * image->stride,
        (const uint8_t *) from + y * image->stride, imk_image_row_size (image));
}

TestMapped
test_to_mapped (const TestImage *image)
{
  TestMapped m = {.image = image->image};
  size_t size = m.image.stride * m.image.height;

  test_ok (get_device ()->alloc_pinned (
      size, &m.host, &m.image.data, test_new_error ()));
  m.image.location = IMK_LOCATION_HOST_MAPPED;
  copy_rows (&m.image, m.host, image->image.data);
  return m;
}

void
test_from_mapped (const TestMapped *mapped, TestImage *image)
{
  test_device_wait ();
  copy_rows (&mapped->image, image->image.data, mapped->host);
}

void
test_mapped_free (TestMapped *mapped)
{
  get_device ()->free_pinned (mapped->host);
  mapped->host = NULL;
}
