/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernel tests share: a TAP runner, images with canaries, fills that
 * provoke overflow, and frames that live on either backend. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "imk/backend.h"
#include "imk/image.h"

/* Sanitizers take ten times as long: tests that count much then count less. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

typedef struct Test {
  const char *name; /* the promise that is checked, as a sentence */
  void (*run) (void);
  /* It asks for no device and takes its time: it need not run again with other
   * modules. */
  bool cpu_only;
  const void *data; /* for test_data () */
} Test;

/* Begins a test, which needs no place in a list: the promise, as a sentence,
 * and other members of its Test follow. A program needs no main () for its own
 * tests; they run in the order of the file.
 *
 *   TEST (test_flat, "a flat frame stays flat", .cpu_only = true)
 *   {
 *   } */
#define TEST(function, ...) \
  static void function (void); \
  static void __attribute__ ((constructor)) list_##function (void) \
  { \
    static const Test test = {.run = function, .name = __VA_ARGS__}; \
\
    test_list (&test); \
  } \
  static void function (void)

/* Begins two tests of one promise: of the CPU, with the further members, and,
 * named "... on CUDA" and skipped without a device, of CUDA.
 *
 *   TEST_BACKENDS (test_flat, "a flat frame stays flat")
 *   {
 *     test_ok (imk_lapsharpen_new (backend, ...
 *   } */
#define TEST_BACKENDS(function, sentence, ...) \
  static void function (ImkBackend backend); \
  TEST (function##_cpu, sentence, __VA_ARGS__) \
  { \
    function (IMK_BACKEND_CPU); \
  } \
  TEST (function##_cuda, sentence " on CUDA") \
  { \
    test_need_cuda (); \
    function (IMK_BACKEND_CUDA); \
  } \
  static void function (ImkBackend backend)

void test_list (const Test *test);

/* Runs @tests up to the one without a name, of NULL those that have listed
 * themselves, and prints TAP; where IMK_TEST_ONLY is set, those only whose
 * names contain it, and where IMK_TEST_DEVICE is, those that are not of the CPU
 * alone. Returns: 0; 1 when one failed */
int test_main (const Test *tests);

/* Returns: what the running test has in its row of the table */
const void *test_data (void);

/* Both leave the running test at once. */
_Noreturn void test_fail (const char *format, ...)
    __attribute__ ((format (printf, 1, 2)));
_Noreturn void test_skip (const char *format, ...)
    __attribute__ ((format (printf, 1, 2)));

/* Returns: the file @name, to be closed, of the folder that IMAGING_TEST_DATA
 * names, or of ../shared/data where it names none; NULL when it is not there */
FILE *test_find_data (const char *name);

/* The same; without the file it skips the running test, which shall not own
 * anything yet. */
FILE *test_open_data (const char *name);

/* Fails with the printf-like message in the further arguments. */
#define test_check(condition, ...) \
  do { \
    if (!(condition)) \
      test_fail (__VA_ARGS__); \
  } while (0)

/* Returns: (transfer none): an error without a message, for the call whose
 * status test_ok () or test_error () judges:
 *
 *   test_ok (imk_fft_new (&c, &fft, test_new_error ())); */
ImkError *test_new_error (void);

/* Returns: what was written there since */
const char *test_message (void);

/* Fails with its text when @status is not IMK_OK. */
void test_ok (ImkStatus status);

/* Fails unless @status is @expected and the message contains @words. */
void test_error (ImkStatus status, ImkStatus expected, const char *words);

/* The same of an error that is somewhere else. */
void test_ok_of (ImkStatus status, const ImkError *error);
void test_error_of (ImkStatus status, const ImkError *error, ImkStatus expected,
    const char *words);

/* Skips the running test when there is no CUDA device. Makes the device's
 * primary context current. */
void test_need_cuda (void);

/* Whether a test of very many cases takes the next one: one of @share times the
 * number IMK_TEST_SHARE, which emulation sets; else one of @share. They are
 * drawn, but the same ones each time, and the first case of a test is one of
 * them. */
bool test_takes_case (uint32_t share);

/* Returns: whether time is short: IMK_TEST_SHARE is above 1 */
bool test_is_short (void);

/* Frees variables at the end of their block, however it is left but by a
 * failure: test_auto (TestImage) in = test_image_new (...); */
#define test_auto(type) __attribute__ ((cleanup (auto_##type))) type
#define test_autoptr(type) __attribute__ ((cleanup (auto_##type))) type *

/* The same of what malloc () gave: test_autofree double *x = malloc (...); */
#define test_autofree __attribute__ ((cleanup (auto_free)))

static inline void
auto_free (void *variable)
{
  free (*(void **) variable);
}

/* @free takes a pointer to a @type; NULL may be among the pointers. */
#define TEST_DEFINE_AUTO(type, free) \
  static inline void auto_##type (type *variable) \
  { \
    free (variable); \
  }
#define TEST_DEFINE_AUTO_POINTER(type, free) \
  static inline void auto_##type (type **variable) \
  { \
    free (*variable); \
  }

typedef enum Fill {
  FILL_ZERO,
  FILL_MAXIMUM,
  FILL_CHECKERBOARD, /* 0 and the maximum in turn: under- and overflow */
  FILL_NOISE,        /* uniform over all values, by seed */
  N_FILLS,
} Fill;

/* Returns: "zero", "maximum", "checkerboard", "noise" */
const char *test_fill_name (Fill fill);

/* A reproducible stream of random numbers (splitmix64). */
uint64_t test_random (uint64_t *seed);

/* Sets @variable to one of the values that follow, at every fourth draw. */
#define TEST_DRAW(seed, variable, ...) \
  do { \
    static const __typeof__ (variable) test_values[] = {__VA_ARGS__}; \
\
    if (test_random (seed) % 4 == 0) \
      (variable) = \
          test_values[test_random (seed) % \
                      (sizeof (test_values) / sizeof (*test_values))]; \
  } while (0)

/* An image in host memory with canary bytes before, after and between its
 * rows. @padding: bytes a row beyond its pixels, rounded up to the sample. */
typedef struct TestImage {
  ImkImage image;
  uint8_t *block;
  size_t block_size;
} TestImage;

TestImage test_image_new (ImkType type, uint32_t width, uint32_t height,
    uint32_t channels, uint32_t padding);
void test_image_free (TestImage *image);
TEST_DEFINE_AUTO (TestImage, test_image_free)

/* Fills u8 and u16 images with samples 0..@maximum. */
void test_image_fill (
    TestImage *image, Fill fill, uint32_t maximum, uint64_t seed);

/* A sample of a ci16 image, to which it is rounded, or of a cf32 one. */
void test_image_put_complex (
    const TestImage *image, uint32_t x, uint32_t y, double re, double im);
void test_image_get_complex (
    const TestImage *image, uint32_t x, uint32_t y, double *re, double *im);

/* Fails when a byte outside the pixels was written. @where: for the message */
void test_image_check_canaries (const TestImage *image, const char *where);

/* Fails with the first differing sample, its place and both values, when the
 * pixels differ in any bit. @where: "u16 zero 641x3 noise seed 7" */
void test_image_same (
    const TestImage *expected, const TestImage *actual, const char *where);

/* The same image as @image in device memory, pixels copied. */
ImkImage test_to_device (const TestImage *image);
/* Waits for the device and copies the pixels of @device into @image. */
void test_from_device (const ImkImage *device, TestImage *image);
void test_device_free (ImkImage *device);
TEST_DEFINE_AUTO (ImkImage, test_device_free)
void test_device_wait (void);

/* An image in page-locked memory that the device reaches. */
typedef struct TestMapped {
  ImkImage image; /* as the device sees it */
  void *host;
} TestMapped;

TestMapped test_to_mapped (const TestImage *image);
/* Waits for the device. */
void test_from_mapped (const TestMapped *mapped, TestImage *image);
void test_mapped_free (TestMapped *mapped);
TEST_DEFINE_AUTO (TestMapped, test_mapped_free)
