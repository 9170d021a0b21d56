/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libimk, and the mock device that the other tests rely on.
 * IMK_MODULE_PATH names the folder of the mock modules. */
#define _GNU_SOURCE
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cpu.h"
#include "core/limits.h"
#include "core/pool.h"
#include "core/filter-backend.h"
#include "imk/device.h"
#include "imk/parallel.h"
#include "kernel-test.h"
#include "core/failures.h"

#define N_ELEMENTS(array) (sizeof (array) / sizeof ((array)[0]))

/* --- errors --------------------------------------------------------------- */

TEST (test_error_is_filled_and_returned,
    "an error is filled and its code returned")
{
  ImkError error = {0};

  test_error_of (imk_error_set (&error, IMK_ERROR_IMAGE, "%d of %s", 3, "them"),
      &error, IMK_ERROR_IMAGE, "3 of them");
}

TEST (test_error_may_be_null, "an error may be NULL")
{
  test_check (
      imk_error_set (NULL, IMK_ERROR_DEVICE, "%s", "lost") == IMK_ERROR_DEVICE,
      "the code did not come back");
}

TEST (test_long_error_is_cut, "a long error is cut at its end")
{
  char text[2 * IMK_ERROR_MESSAGE_SIZE];
  ImkError error;

  memset (text, 'x', sizeof (text) - 1);
  text[sizeof (text) - 1] = 0;
  imk_error_set (&error, IMK_ERROR_CONFIG, "%s", text);
  test_check (strlen (error.message) == IMK_ERROR_MESSAGE_SIZE - 1,
      "the message has %zu bytes", strlen (error.message));
}

/* GLib takes no text that ends in the middle of a character. */
TEST (test_cut_error_ends_with_a_whole_character,
    "a cut error ends with a whole character")
{
  static const char *const starts[] = {"", "a", "ab"};

  for (size_t i = 0; i < N_ELEMENTS (starts); i++) {
    char text[2 * IMK_ERROR_MESSAGE_SIZE] = "";
    size_t length, kept;
    ImkError error;

    strcpy (text, starts[i]);
    for (size_t n = strlen (text); n + 3 < sizeof (text); n += 3)
      memcpy (text + n, "\xe2\x82\xac", 4); /* the euro sign */
    imk_error_set (&error, IMK_ERROR_CONFIG, "%s", text);
    length = strlen (error.message);
    kept = length - strlen (starts[i]);
    test_check (length > IMK_ERROR_MESSAGE_SIZE - 5 && kept % 3 == 0,
        "after \"%s\" %zu bytes of three-byte characters are left", starts[i],
        kept);
  }
}

TEST (test_error_has_decimal_points,
    "an error has decimal points in every locale")
{
  ImkError error;

  if (!setlocale (LC_ALL, "de_DE.UTF-8"))
    test_skip ("the locale de_DE.UTF-8 is not generated");
  imk_error_set (&error, IMK_ERROR_CONFIG, "%.2f \xc3\xa4", 1.25);
  test_check (
      strcmp (error.message, "1.25 \xc3\xa4") == 0, "%s", error.message);
  snprintf (error.message, sizeof (error.message), "%.1f", 0.5);
  test_check (strcmp (error.message, "0,5") == 0, "the locale is another now");
  setlocale (LC_ALL, "C");
}

/* --- instruction sets ----------------------------------------------------- */

TEST (test_numbers_beyond_their_limits_are_refused,
    "numbers beyond their limits are refused")
{
  const ImkLimits good[] = {
      {"first", 0, 0, 1}, {"last", UINT32_MAX, 1, UINT32_MAX}, {NULL}};

  test_ok (imk_limits_check (good, test_new_error ()));
  test_error (imk_limits_check_one ("n", UINT32_MAX, 1, 4e9, test_new_error ()),
      IMK_ERROR_CONFIG, "n is 4294967295; it can be 1 to 4000000000.");
  test_error (imk_limits_check_one ("n", 0.25, 0.3, 1, test_new_error ()),
      IMK_ERROR_CONFIG, "n is 0.25; it can be 0.3 to 1.");
  test_error (imk_limits_check_one ("n", NAN, 0, 1, test_new_error ()),
      IMK_ERROR_CONFIG, "n is nan; it can be 0 to 1.");
}

/* A value of IMK_CPU that is an error in every function that reads it. */
static void
check_cpu_is_refused (const char *value, const char *words)
{
  static const char tables[IMK_CPU_N_LEVELS];
  const void *levels[IMK_CPU_N_LEVELS] = {&tables[0]};
  const void *table = NULL;
  ImkCpuLevel level = IMK_CPU_N_LEVELS;

  setenv ("IMK_CPU", value, 1);
  test_error (
      imk_cpu_level (&level, test_new_error ()), IMK_ERROR_CONFIG, words);
  test_check (level == IMK_CPU_N_LEVELS, "the level was set");
  test_error (imk_cpu_choose (levels, &table, test_new_error ()),
      IMK_ERROR_CONFIG, words);
  test_check (!table, "a table was chosen");
  test_error (imk_backend_table (IMK_BACKEND_CPU, "the CPU's", "device", &table,
                  test_new_error ()),
      IMK_ERROR_CONFIG, words);
  unsetenv ("IMK_CPU");
}

TEST (test_unknown_instruction_set_is_refused,
    "an unknown instruction set is refused")
{
  check_cpu_is_refused (
      "sse9", "IMK_CPU is \"sse9\"; it can be scalar, neon, avx2 or avx512.");
  check_cpu_is_refused ("AVX2", "IMK_CPU is \"AVX2\"");
  check_cpu_is_refused ("avx", "IMK_CPU is \"avx\"");
}

/* No processor has both NEON and AVX. */
TEST (test_absent_instruction_set_is_refused,
    "an absent instruction set is refused")
{
  ImkCpuLevel highest;

  test_ok (imk_cpu_level (&highest, test_new_error ()));
  check_cpu_is_refused (highest == IMK_CPU_NEON ? "avx2" : "neon",
      "which this processor does not have; its highest level is ");
}

TEST (test_instruction_set_can_be_chosen, "the instruction set can be chosen")
{
  ImkCpuLevel highest, level;

  test_ok (imk_cpu_level (&highest, test_new_error ()));
  setenv ("IMK_CPU", "", 1);
  test_ok (imk_cpu_level (&level, test_new_error ()));
  test_check (level == highest, "an empty IMK_CPU is %s instead of %s",
      imk_cpu_level_name (level), imk_cpu_level_name (highest));
  setenv ("IMK_CPU", "scalar", 1);
  test_ok (imk_cpu_level (&level, test_new_error ()));
  test_check (
      level == IMK_CPU_SCALAR, "scalar is %s", imk_cpu_level_name (level));
  setenv ("IMK_CPU", imk_cpu_level_name (highest), 1);
  test_ok (imk_cpu_level (&level, test_new_error ()));
  test_check (level == highest, "%s is %s", imk_cpu_level_name (highest),
      imk_cpu_level_name (level));
  unsetenv ("IMK_CPU");
}

/* The highest table that is not above the level, or the lowest one. */
TEST (test_table_of_the_instruction_set_is_chosen,
    "the table of the instruction set is chosen")
{
  static const char tables[IMK_CPU_N_LEVELS];
  const void *levels[IMK_CPU_N_LEVELS] = {NULL}, *table;
  ImkCpuLevel highest;

  test_ok (imk_cpu_level (&highest, test_new_error ()));
  levels[IMK_CPU_SCALAR] = &tables[IMK_CPU_SCALAR];
  test_ok (imk_cpu_choose (levels, &table, test_new_error ()));
  test_check (table == &tables[IMK_CPU_SCALAR], "scalar is not chosen");
  levels[highest] = &tables[highest];
  test_ok (imk_cpu_choose (levels, &table, test_new_error ()));
  test_check (table == &tables[highest], "%s is not chosen",
      imk_cpu_level_name (highest));
  setenv ("IMK_CPU", "scalar", 1);
  test_ok (imk_cpu_choose (levels, &table, test_new_error ()));
  test_check (table == &tables[IMK_CPU_SCALAR], "IMK_CPU is ignored");
  levels[IMK_CPU_SCALAR] = highest > IMK_CPU_SCALAR ? NULL : levels[0];
  test_ok (imk_cpu_choose (levels, &table, test_new_error ()));
  test_check (table == &tables[highest], "the lowest table is not chosen");
  unsetenv ("IMK_CPU");
}

/* --- images --------------------------------------------------------------- */

TEST (test_types_have_sizes_and_names, "types have sizes and names")
{
  static const struct {
    ImkType type;
    size_t size;
    const char *name;
  } expected[] = {
      {IMK_TYPE_U8, 1, "u8"},
      {IMK_TYPE_U16, 2, "u16"},
      {IMK_TYPE_I16, 2, "i16"},
      {IMK_TYPE_F32, 4, "f32"},
      {IMK_TYPE_F64, 8, "f64"},
      {IMK_TYPE_CI16, 4, "ci16"},
      {IMK_TYPE_CF32, 8, "cf32"},
      {(ImkType) 7, 0, "?"},
      {(ImkType) -1, 0, "?"},
  };

  for (size_t i = 0; i < N_ELEMENTS (expected); i++) {
    test_check (imk_type_size (expected[i].type) == expected[i].size,
        "type %d has %zu bytes", expected[i].type,
        imk_type_size (expected[i].type));
    test_check (
        strcmp (imk_type_name (expected[i].type), expected[i].name) == 0,
        "type %d is called %s", expected[i].type,
        imk_type_name (expected[i].type));
  }
}

static uint16_t samples[64];

/* A 5x3 u16 image of one channel in rows of 6. */
static ImkImage
good_image (void)
{
  return (ImkImage){
      .data = samples,
      .stride = 12,
      .width = 5,
      .height = 3,
      .channels = 1,
      .type = IMK_TYPE_U16,
      .location = IMK_LOCATION_HOST,
  };
}

static ImkStatus
check (const ImkImage *image, bool on_device, ImkError *error)
{
  return imk_image_check (
      image, "input", IMK_TYPE_U16, 1, 5, 3, on_device, error);
}

static void
refuse (const ImkImage *image, bool on_device, const char *words)
{
  test_error (
      check (image, on_device, test_new_error ()), IMK_ERROR_IMAGE, words);
}

TEST (test_row_size_counts_samples, "the size of a row counts samples")
{
  ImkImage wide = {.width = UINT32_MAX, .channels = 4, .type = IMK_TYPE_CF32};

  test_check (imk_image_row_size (&wide) == 32ull * UINT32_MAX,
      "%zu bytes a row", imk_image_row_size (&wide));
}

TEST (test_good_image_passes, "a good image passes")
{
  ImkImage image = good_image ();

  test_ok (check (&image, false, test_new_error ()));
  image.location = IMK_LOCATION_DEVICE;
  test_ok (check (&image, true, test_new_error ()));
  image.location = IMK_LOCATION_HOST_MAPPED;
  test_ok (check (&image, true, test_new_error ()));
}

TEST (test_stride_of_one_row_does_not_matter,
    "the stride of one row does not matter")
{
  ImkImage image = good_image ();

  image.height = 1;
  image.stride = 0;
  test_ok (imk_image_check (
      &image, "input", IMK_TYPE_U16, 1, 5, 1, false, test_new_error ()));
}

TEST (test_image_without_data_is_refused, "an image without data is refused")
{
  ImkImage image = good_image ();

  image.data = NULL;
  refuse (&image, false, "The input image has no data.");
  refuse (NULL, false, "The input image has no data.");
}

TEST (test_other_shapes_are_refused_with_both_shapes,
    "other shapes are refused with both shapes")
{
  ImkImage wrong[4] = {
      good_image (), good_image (), good_image (), good_image ()};
  static const char *words[4] = {
      "is 4x3, 1 x u16 a pixel; the configuration says 5x3, 1 x u16",
      "is 5x4, 1 x u16",
      "is 5x3, 2 x u16",
      "is 5x3, 1 x i16",
  };

  wrong[0].width = 4;
  wrong[1].height = 4;
  wrong[2].channels = 2;
  wrong[3].type = IMK_TYPE_I16;
  for (size_t i = 0; i < N_ELEMENTS (wrong); i++)
    refuse (&wrong[i], false, words[i]);
}

TEST (test_short_stride_is_refused, "a short stride is refused")
{
  ImkImage image = good_image ();

  image.stride = 8;
  refuse (&image, false, "a stride of 8 bytes; one row alone takes 10.");
}

TEST (test_negative_stride_is_refused, "a negative stride is refused")
{
  ImkImage image = good_image ();

  image.stride = (size_t) -64; /* as NumPy has it for rows from bottom to top */
  refuse (&image, false,
      "such rows are beyond any memory. Rows from bottom to top need a copy.");
}

TEST (test_unaligned_samples_are_refused, "unaligned samples are refused")
{
  ImkImage image = good_image ();

  image.stride = 13;
  refuse (
      &image, false, "a stride of 13 bytes; u16 samples need multiples of 2.");
  image = good_image ();
  image.data = (uint8_t *) samples + 1;
  refuse (&image, false, "u16 samples need multiples of 2.");
}

TEST (test_unreachable_memory_is_refused, "unreachable memory is refused")
{
  ImkImage image = good_image ();

  refuse (
      &image, true, "lies in host memory, which this backend cannot reach.");
  image.location = IMK_LOCATION_HOST_MAPPED;
  refuse (
      &image, false, "lies in device memory, which this backend cannot reach.");
  image.location = IMK_LOCATION_DEVICE;
  refuse (
      &image, false, "lies in device memory, which this backend cannot reach.");
}

TEST (
    test_div_up_is_exact_everywhere, "division rounding up is exact everywhere")
{
  static const uint32_t values[] = {0, 1, 2, 31, 32, 33, 1u << 24,
      (1u << 24) + 1, UINT32_MAX - 1, UINT32_MAX};
  static const uint32_t divisors[] = {1, 2, 3, 32, 1u << 31, UINT32_MAX};

  for (size_t i = 0; i < N_ELEMENTS (values); i++)
    for (size_t j = 0; j < N_ELEMENTS (divisors); j++) {
      uint64_t v = values[i], d = divisors[j];

      test_check (imk_div_up (values[i], divisors[j]) == (v + d - 1) / d,
          "%u / %u rounded up gave %u", values[i], divisors[j],
          imk_div_up (values[i], divisors[j]));
    }
}

/* --- the loader, in a process of its own each time ------------------------ */

static const char *mock_folder;

/* Runs @run as a test in a child, for the loader keeps its first outcome and
 * the mock aborts. Its output comes up as comments. Returns: wait status */
static int
run_in_child (const char *name, void (*run) (void))
{
  const Test tests[] = {{name, run}, {NULL, NULL}};
  char line[1024];
  int output[2];
  int status;
  FILE *stream;
  pid_t child;

  test_check (pipe (output) == 0, "pipe: %m");
  fflush (NULL);
  child = fork ();
  test_check (child >= 0, "fork: %m");
  if (child == 0) {
    dup2 (output[1], STDOUT_FILENO);
    dup2 (output[1], STDERR_FILENO);
    close (output[0]);
    close (output[1]);
    exit (test_main (tests));
  }
  close (output[1]);
  stream = fdopen (output[0], "r");
  while (fgets (line, sizeof (line), stream))
    if (strncmp (line, "ok ", 3) != 0 && strncmp (line, "1..", 3) != 0)
      printf ("# %s", line);
  fclose (stream);
  while (waitpid (child, &status, 0) < 0)
    ;
  return status;
}

static void
pass_in_child (const char *name, void (*run) (void))
{
  int status = run_in_child (name, run);

  test_check (WIFEXITED (status) && WEXITSTATUS (status) == 0,
      "%s: the child ended with wait status 0x%x", name, status);
}

/* Begins a test that runs in a child. */
#define CHILD_TEST(test, sentence) \
  static void test##_inside (void); \
  TEST (test, sentence) \
  { \
    pass_in_child (#test, test##_inside); \
  } \
  static void test##_inside (void)

static void
abort_in_child (const char *name, void (*run) (void))
{
  int status = run_in_child (name, run);

  test_check (WIFSIGNALED (status) && WTERMSIG (status) == SIGABRT,
      "%s: the child did not abort, wait status 0x%x", name, status);
}

/* Makes IMK_MODULE_PATH a new folder in which libimk-cuda.so is the file
 * @module of the mock folder, or nothing when it is NULL. */
static void
use_folder_with (const char *module, char folder[PATH_MAX])
{
  snprintf (folder, PATH_MAX, "/tmp/imk-test-core-XXXXXX");
  test_check (mkdtemp (folder), "mkdtemp: %m");
  if (module) {
    char from[PATH_MAX], to[PATH_MAX];

    test_check (
        snprintf (from, sizeof (from), "%s/%s", mock_folder, module) <
                PATH_MAX &&
            snprintf (to, sizeof (to), "%s/libimk-cuda.so", folder) < PATH_MAX,
        "the path of %s is too long", module);
    test_check (symlink (from, to) == 0, "symlink: %m");
  }
  setenv ("IMK_MODULE_PATH", folder, 1);
}

static void
remove_folder (const char *folder)
{
  char path[PATH_MAX];

  if (snprintf (path, sizeof (path), "%s/libimk-cuda.so", folder) < PATH_MAX)
    unlink (path);
  rmdir (folder);
}

static void
refuse_module (const char *module, const char *words)
{
  char folder[PATH_MAX];
  ImkError error = {0};
  ImkStatus status;

  use_folder_with (module, folder);
  status = imk_backend_load ("cuda", &error);
  remove_folder (folder);
  test_error_of (status, &error, IMK_ERROR_UNAVAILABLE, words);
  /* the outcome is kept, also for those who ask in another way */
  error = (ImkError){0};
  test_error_of (imk_device_get (&(const ImkDevice *){NULL}, &error), &error,
      IMK_ERROR_UNAVAILABLE, words);
}

CHILD_TEST (test_cpu_is_always_there, "the cpu backend is always there")
{
  setenv ("IMK_MODULE_PATH", "/nowhere", 1);
  test_ok (imk_backend_load ("cpu", test_new_error ()));
}

CHILD_TEST (test_unknown_names_are_refused, "unknown names are refused")
{
  const void *table;

  test_error (imk_backend_load ("opencl", test_new_error ()),
      IMK_ERROR_UNAVAILABLE,
      "There is no backend \"opencl\"; there are \"cpu\" and \"cuda\".");
  test_error (imk_backend_find ("dehaze", &table, test_new_error ()),
      IMK_ERROR_UNAVAILABLE, "libimk-cuda-fft.so");
  test_error (imk_backend_table ((ImkBackend) 7, "the CPU's", "device", &table,
                  test_new_error ()),
      IMK_ERROR_UNAVAILABLE, "There is no backend of the number 7.");
}

CHILD_TEST (test_missing_module_is_said, "a missing module is said")
{
  refuse_module (NULL, "The CUDA backend is not installed");
}

CHILD_TEST (test_module_of_another_abi_is_refused,
    "a module of another ABI is refused with both numbers")
{
  char words[128];

  snprintf (words, sizeof (words),
      "was built for backend ABI %d, this library has %d.",
      IMK_BACKEND_ABI + 41, IMK_BACKEND_ABI);
  refuse_module ("libwrong-abi.so", words);
}

CHILD_TEST (test_other_library_is_refused, "another library is refused")
{
  refuse_module ("libno-symbol.so", "it has no symbol imk_module");
}

CHILD_TEST (
    test_relative_module_path_is_ignored, "a relative module path is ignored")
{
  /* libimk's own folder holds no module in a build */
  test_check (chdir (mock_folder) == 0, "chdir: %m");
  setenv ("IMK_MODULE_PATH", ".", 1);
  test_error (imk_backend_load ("cuda", test_new_error ()),
      IMK_ERROR_UNAVAILABLE, "The CUDA backend is not installed");
}

CHILD_TEST (
    test_module_without_device_is_said, "a module without a device is said")
{
  setenv ("IMK_MOCK_DEVICES", "0", 1);
  test_error (imk_backend_load ("cuda", test_new_error ()),
      IMK_ERROR_UNAVAILABLE, "No CUDA device is visible to this process.");
}

static void *
load_cuda (void *failures)
{
  if (imk_backend_load ("cuda", NULL) != IMK_OK)
    (*(atomic_int *) failures)++;
  return NULL;
}

CHILD_TEST (test_threads_may_load_at_once, "threads may load at once")
{
  pthread_t threads[8];
  atomic_int n_failed = 0;

  for (size_t i = 0; i < N_ELEMENTS (threads); i++)
    test_check (pthread_create (&threads[i], NULL, load_cuda, &n_failed) == 0,
        "no thread");
  for (size_t i = 0; i < N_ELEMENTS (threads); i++)
    pthread_join (threads[i], NULL);
  test_check (n_failed == 0, "%d of 8 threads could not load", n_failed);
}

static void
check_device_table (const void *found)
{
  const struct {
    IMK_BACKEND_HEADER;
    void (*slots[]) (void);
  } *table = found;
  const size_t n = (sizeof (ImkDevice) - 2 * sizeof (void *)) / sizeof (void *);

  for (size_t i = 0; i < n; i++)
    test_check (table->slots[i], "device: slot %zu is empty", i);
}

CHILD_TEST (test_no_slot_of_a_table_is_empty, "no slot of a table is empty")
{
  static const char *algorithms[] = {
      "device", "lapsharpen", "relight", "shcentroid"};

  for (size_t i = 0; i < N_ELEMENTS (algorithms); i++) {
    const ImkFilterBackend *filter;
    const void *found;

    test_ok (imk_backend_find (algorithms[i], &found, test_new_error ()));
    filter = found;
    test_check (filter->abi == IMK_BACKEND_ABI, "%s: ABI %u", algorithms[i],
        filter->abi);
    test_check (filter->name && filter->name[0], "%s: no name", algorithms[i]);
    if (i == 0)
      check_device_table (found);
    else
      test_check (filter->create && filter->update && filter->process &&
                      filter->destroy,
          "%s: a slot is empty", algorithms[i]);
  }
}

/* --- the mock device ------------------------------------------------------ */

static const ImkDevice *d;

/* Loads the mock; its first context is current then. */
static void
use_mock (void)
{
  void *context;

  test_ok (imk_backend_load ("cuda", test_new_error ()));
  test_ok (imk_device_get (&d, test_new_error ()));
  test_ok (d->context (0, &context, test_new_error ()));
  test_ok (d->push (context, test_new_error ()));
}

CHILD_TEST (test_mock_has_devices, "the mock has devices")
{
  ImkDeviceInfo info;
  void *first, *second;
  int n;

  use_mock ();
  test_ok (d->count (&n, test_new_error ()));
  test_check (n == 2, "%d devices", n);
  test_ok (d->info (1, &info, test_new_error ()));
  test_check (strcmp (info.name, "Mock device 1") == 0, "%s", info.name);
  test_ok (d->context (1, &first, test_new_error ()));
  test_ok (d->context (1, &second, test_new_error ()));
  test_check (first == second, "two primary contexts of one device");
  test_error (d->info (2, &info, test_new_error ()), IMK_ERROR_UNAVAILABLE,
      "no mock device 2; there are 2");
  test_error (
      d->push (&info, test_new_error ()), IMK_ERROR_DEVICE, "is not a context");
}

CHILD_TEST (test_mock_copies_rows_between_memories,
    "the mock copies rows between memories")
{
  enum { WIDTH = 5, HEIGHT = 3, STRIDE = 8 };
  uint8_t in[HEIGHT][STRIDE], out[HEIGHT][WIDTH];
  void *device, *host, *mapped, *stream;

  use_mock ();
  test_ok (d->stream_new (&stream, test_new_error ()));
  test_ok (d->alloc_device (WIDTH * HEIGHT, &device, test_new_error ()));
  test_ok (d->alloc_pinned (WIDTH * HEIGHT, &host, &mapped, test_new_error ()));

  /* fresh memory is poisoned */
  test_ok (d->copy (
      out, WIDTH, device, WIDTH, WIDTH, HEIGHT, stream, test_new_error ()));
  test_check (out[2][4] == 0xcd, "fresh device memory holds 0x%02x", out[2][4]);

  for (int i = 0; i < HEIGHT * STRIDE; i++)
    in[i / STRIDE][i % STRIDE] = (uint8_t) i;
  test_ok (d->copy (
      device, WIDTH, in, STRIDE, WIDTH, HEIGHT, stream, test_new_error ()));
  memset (in, 0, sizeof (in)); /* pageable memory was read by now */
  test_ok (d->copy (
      mapped, WIDTH, device, WIDTH, WIDTH, HEIGHT, stream, test_new_error ()));
  test_ok (d->stream_synchronize (stream, test_new_error ()));
  for (int i = 0; i < HEIGHT * WIDTH; i++)
    test_check (((uint8_t *) host)[i] == i / WIDTH * STRIDE + i % WIDTH,
        "byte %d is %d", i, ((uint8_t *) host)[i]);

  d->free_pinned (host);
  d->free_device (device);
  d->free_device (NULL);
  d->free_pinned (NULL);
  d->stream_free (stream);
  d->stream_free (NULL);
  d->event_free (NULL);
}

CHILD_TEST (test_mock_refuses_copies_beyond_a_block,
    "the mock refuses copies beyond a block")
{
  uint8_t plain[64] = {0};
  void *device, *host, *mapped;

  use_mock ();
  test_ok (d->alloc_device (32, &device, test_new_error ()));
  test_ok (d->alloc_pinned (32, &host, &mapped, test_new_error ()));
  test_error (d->copy (device, 33, plain, 33, 33, 1, NULL, test_new_error ()),
      IMK_ERROR_DEVICE, "takes 33 bytes and leaves its block");
  test_error (d->copy (plain, 11, device, 11, 11, 3, NULL, test_new_error ()),
      IMK_ERROR_DEVICE, "takes 33 bytes and leaves its block");
  test_error (d->copy ((uint8_t *) host + 16, 17, plain, 17, 17, 1, NULL,
                  test_new_error ()),
      IMK_ERROR_DEVICE, "leaves its block");
  test_error (d->copy ((uint8_t *) device + 32, 1, plain, 1, 1, 1, NULL,
                  test_new_error ()),
      IMK_ERROR_DEVICE, "is no memory of a device");
  test_error (d->copy (device, 4, plain, 8, 8, 2, NULL, test_new_error ()),
      IMK_ERROR_DEVICE, "strides of 4 and 8 bytes");
  test_error (d->alloc_device (SIZE_MAX, &(void *){NULL}, test_new_error ()),
      IMK_ERROR_MEMORY, "memory left");
  d->free_device (device);
  test_error (d->copy (device, 1, plain, 1, 1, 1, NULL, test_new_error ()),
      IMK_ERROR_DEVICE, "that was freed");
  d->free_pinned (host);
}

CHILD_TEST (
    test_mock_streams_are_asynchronous, "the mock's streams are asynchronous")
{
  void *stream, *host, *mapped, *device;
  volatile uint8_t *seen;

  setenv ("IMK_MOCK_DELAY_US", "50000", 1);
  use_mock ();
  test_ok (d->stream_new (&stream, test_new_error ()));
  test_ok (d->alloc_pinned (1, &host, &mapped, test_new_error ()));
  test_ok (d->alloc_device (1, &device, test_new_error ()));
  seen = host;
  *seen = 1;
  test_ok (
      d->copy (device, 1, (uint8_t[]){2}, 1, 1, 1, stream, test_new_error ()));
  test_ok (d->copy (host, 1, device, 1, 1, 1, stream, test_new_error ()));
  test_check (*seen == 1, "the copy did not wait for its turn");
  test_ok (d->stream_synchronize (stream, test_new_error ()));
  test_check (*seen == 2, "the copy was not waited for");
  d->stream_free (stream);
  d->free_pinned (host);
  d->free_device (device);
}

CHILD_TEST (test_mock_frees_memory_after_its_last_use,
    "the mock frees memory after its last use")
{
  void *stream, *from, *from_mapped, *to, *to_mapped;

  setenv ("IMK_MOCK_DELAY_US", "20000", 1);
  use_mock ();
  test_ok (d->stream_new (&stream, test_new_error ()));
  test_ok (d->alloc_pinned (1, &from, &from_mapped, test_new_error ()));
  test_ok (d->alloc_pinned (1, &to, &to_mapped, test_new_error ()));
  *(uint8_t *) from = 7;
  test_ok (d->copy (to, 1, from, 1, 1, 1, stream, test_new_error ()));
  d->free_pinned (from);
  test_check (*(uint8_t *) to == 7, "the block was freed under the copy");
  d->stream_free (stream);
  d->free_pinned (to);
}

CHILD_TEST (test_mock_events_order_streams, "the mock's events order streams")
{
  void *writer, *reader, *event, *device, *from, *to, *mapped;

  use_mock ();
  test_ok (d->stream_new (&writer, test_new_error ()));
  test_ok (d->stream_new (&reader, test_new_error ()));
  test_ok (d->event_new (&event, test_new_error ()));
  test_ok (d->alloc_device (1 << 20, &device, test_new_error ()));
  test_ok (d->alloc_pinned (1 << 20, &from, &mapped, test_new_error ()));
  test_ok (d->alloc_pinned (1 << 20, &to, &mapped, test_new_error ()));

  for (int i = 0; i < 200; i++) {
    uint8_t last;

    memset (from, i, 1 << 20);
    test_ok (d->copy (
        device, 1 << 20, from, 1 << 20, 1 << 20, 1, writer, test_new_error ()));
    test_ok (d->event_record (event, writer, test_new_error ()));
    test_ok (d->event_wait (event, reader, test_new_error ()));
    test_ok (d->copy (
        to, 1 << 20, device, 1 << 20, 1 << 20, 1, reader, test_new_error ()));
    test_ok (d->event_record (event, reader, test_new_error ()));
    test_ok (d->event_synchronize (event, test_new_error ()));
    last = ((uint8_t *) to)[(1 << 20) - 1];
    test_check (last == (uint8_t) i, "round %d read %d", i, last);
  }
  d->free_pinned (to);
  d->free_pinned (from);
  d->free_device (device);
  d->event_free (event);
  d->stream_free (reader);
  d->stream_free (writer);
}

CHILD_TEST (test_mock_events_mean_the_last_record,
    "the mock's events mean the last record")
{
  void *early, *late, *event;

  use_mock ();
  test_ok (d->stream_new (&early, test_new_error ()));
  test_ok (d->event_new (&event, test_new_error ()));

  /* nobody has recorded it: past */
  test_ok (d->event_synchronize (event, test_new_error ()));
  test_ok (d->event_wait (event, early, test_new_error ()));
  test_ok (d->stream_synchronize (early, test_new_error ()));

  /* a wait means the record before it, not the one after it, which here waits
   * for the wait itself to be passed */
  setenv ("IMK_MOCK_DELAY_US", "1000", 1);
  test_ok (d->stream_new (&late, test_new_error ()));
  for (int i = 0; i < 20; i++) {
    test_ok (d->event_record (event, late, test_new_error ()));
    test_ok (d->event_wait (event, early, test_new_error ()));
    test_ok (d->event_record (event, early, test_new_error ()));
    test_ok (d->event_wait (event, late, test_new_error ()));
  }
  test_ok (d->stream_synchronize (early, test_new_error ()));
  test_ok (d->stream_synchronize (late, test_new_error ()));

  /* freed while a stream still waits for it */
  test_ok (d->event_record (event, late, test_new_error ()));
  test_ok (d->event_wait (event, early, test_new_error ()));
  d->event_free (event);
  test_ok (d->stream_synchronize (early, test_new_error ()));
  d->stream_free (early);
  d->stream_free (late);
}

CHILD_TEST (
    test_mock_needs_a_current_context, "the mock needs a current context")
{
  void *first, *second, *device, *stream, *event;

  use_mock ();
  test_ok (d->context (0, &first, test_new_error ()));
  test_ok (d->context (1, &second, test_new_error ()));
  d->pop ();
  test_error (d->alloc_device (1, &device, test_new_error ()), IMK_ERROR_DEVICE,
      "alloc_device was called while no context is current");
  test_error (d->stream_new (&stream, test_new_error ()), IMK_ERROR_DEVICE,
      "no context is current");
  test_ok (d->push (first, test_new_error ()));
  test_ok (d->stream_new (&stream, test_new_error ()));
  test_ok (d->push (second, test_new_error ()));
  test_ok (d->event_new (&event, test_new_error ()));
  test_error (d->event_record (event, stream, test_new_error ()),
      IMK_ERROR_DEVICE,
      "event of device 1 was recorded in a stream of device 0");
  d->event_free (event);
  d->pop ();
  d->stream_free (stream);
  d->pop ();
}

CHILD_TEST (test_mock_fails_where_it_is_told, "the mock fails where it is told")
{
  void *device = NULL, *stream = NULL;
  unsigned long n_calls;

  use_mock ();
  imk_inject_failure (0, false);
  test_ok (d->alloc_device (1, &device, test_new_error ()));
  d->free_device (device);
  test_ok (d->stream_new (&stream, test_new_error ()));
  test_ok (d->stream_synchronize (stream, test_new_error ()));
  n_calls = imk_inject_failure (2, false);
  test_check (n_calls == 3, "%lu fallible calls counted", n_calls);

  test_ok (d->stream_synchronize (stream, test_new_error ()));
  test_error (d->alloc_device (1, &device, test_new_error ()), IMK_ERROR_DEVICE,
      "CUDA says: told to fail (mock device, in alloc_device).");
  test_ok (d->stream_synchronize (stream, test_new_error ()));

  imk_inject_failure (2, true);
  test_ok (d->stream_synchronize (stream, test_new_error ()));
  for (int i = 0; i < 3; i++)
    test_error (d->stream_synchronize (stream, test_new_error ()),
        IMK_ERROR_DEVICE, "told to fail (mock device, in stream_synchronize)");
  imk_inject_failure (0, false);
  test_ok (d->stream_synchronize (stream, test_new_error ()));
  d->stream_free (stream);
}

static void
run_free_twice (void)
{
  void *device;

  use_mock ();
  test_ok (d->alloc_device (1, &device, test_new_error ()));
  d->free_device (device);
  d->free_device (device);
}

static void
run_free_of_the_other_kind (void)
{
  void *host, *mapped;

  use_mock ();
  test_ok (d->alloc_pinned (1, &host, &mapped, test_new_error ()));
  d->free_device (mapped);
}

static void
run_pop_too_often (void)
{
  use_mock ();
  d->pop ();
  d->pop ();
}

static void
run_stream_of_nobody (void)
{
  use_mock ();
  d->stream_synchronize (test_new_error (), test_new_error ());
}

TEST (test_mock_aborts_on_misuse, "the mock aborts on misuse")
{
  abort_in_child ("free twice", run_free_twice);
  abort_in_child ("free of the other kind", run_free_of_the_other_kind);
  abort_in_child ("pop too often", run_pop_too_often);
  abort_in_child ("stream of nobody", run_stream_of_nobody);
}

static void
run_touch_device_memory (void)
{
  void *device;

  /* the sanitizer would turn the signal into an exit */
  signal (SIGSEGV, SIG_DFL);
  use_mock ();
  test_ok (d->alloc_device (1, &device, test_new_error ()));
  *(volatile uint8_t *) device = 1;
}

TEST (test_mock_device_memory_is_out_of_reach,
    "the mock's device memory is out of reach")
{
  int status = run_in_child ("touch", run_touch_device_memory);

  test_check (WIFSIGNALED (status) && WTERMSIG (status) == SIGSEGV,
      "the CPU could write device memory, wait status 0x%x", status);
}

/* --- parallel-for --------------------------------------------------------- */

/* These tests are the last: they leave threads behind, and then a fork is no
 * longer the whole process. */

typedef struct Visits {
  pthread_t caller;
  uint32_t grain;
  atomic_uint n_bands;
  atomic_uint n_short;     /* bands of fewer items than the grain */
  atomic_uint n_elsewhere; /* bands on another thread than the caller */
  atomic_uint n_inside, most_inside; /* bands at a time */
  atomic_uint items[4096];
} Visits;

static void
visit (void *data, uint32_t first, uint32_t end)
{
  Visits *v = data;
  uint32_t inside = atomic_fetch_add (&v->n_inside, 1) + 1;
  uint32_t most = v->most_inside;

  while (most < inside &&
         !atomic_compare_exchange_weak (&v->most_inside, &most, inside))
    continue;
  v->n_bands++;
  v->n_short += end - first < v->grain;
  v->n_elsewhere += !pthread_equal (v->caller, pthread_self ());
  for (uint32_t i = first; i < end; i++)
    v->items[i]++;
  v->n_inside--;
}

static void
run_visits (Visits *v, uint32_t n_threads, uint32_t n_items, uint32_t grain)
{
  memset (v, 0, sizeof (*v));
  v->caller = pthread_self ();
  v->grain = grain;
  imk_parallel_for (n_threads, n_items, grain, visit, v);
}

TEST (test_parallel_for_visits_each_item_once,
    "parallel-for visits each item once")
{
  static const uint32_t sizes[] = {
      0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 1000, 1023, 4095};
  static const uint32_t threads[] = {0, 1, 2, 3, 5, 8};
  static const uint32_t grains[] = {1, 2, 7, 64, 5000};
  static Visits v;

  for (size_t s = 0; s < N_ELEMENTS (sizes); s++)
    for (size_t t = 0; t < N_ELEMENTS (threads); t++)
      for (size_t g = 0; g < N_ELEMENTS (grains); g++) {
        run_visits (&v, threads[t], sizes[s], grains[g]);
        for (uint32_t i = 0; i < N_ELEMENTS (v.items); i++)
          test_check (v.items[i] == (i < sizes[s]),
              "item %u of %u, %u threads, grain %u: visited %u times", i,
              sizes[s], threads[t], grains[g], v.items[i]);
        test_check (v.n_bands <= 1 || v.n_short == 0,
            "%u of %u bands are shorter than the grain %u", v.n_short,
            v.n_bands, grains[g]);
      }
}

TEST (test_small_work_stays_on_the_caller, "small work stays on the caller")
{
  static Visits v;

  run_visits (&v, 8, 99, 50);
  test_check (v.n_bands == 1 && v.n_elsewhere == 0,
      "99 items of grain 50 ran in %u bands, %u elsewhere", v.n_bands,
      v.n_elsewhere);
  run_visits (&v, 1, 4000, 1);
  test_check (v.n_bands == 1 && v.n_elsewhere == 0,
      "one thread ran %u bands, %u elsewhere", v.n_bands, v.n_elsewhere);
}

TEST (test_no_more_bands_at_a_time_than_threads,
    "no more bands at a time than threads")
{
  static Visits v;

  for (uint32_t n = 1; n <= 8; n++) {
    run_visits (&v, n, 4000, 1);
    test_check (
        v.most_inside <= n, "%u threads, %u bands at a time", n, v.most_inside);
  }
}

TEST (test_thread_count_is_kept_or_found, "a thread count is kept or found")
{
  uint32_t most = imk_parallel_threads (0);

  test_check (most >= 1, "no thread for n-threads 0");
  setenv ("IMK_THREADS", "1", 1);
  test_check (imk_parallel_threads (0) == 1, "IMK_THREADS=1 gave %u threads",
      imk_parallel_threads (0));
  setenv ("IMK_THREADS", "100000", 1);
  test_check (imk_parallel_threads (0) == most,
      "IMK_THREADS=100000 gave %u threads, not the %u of this machine",
      imk_parallel_threads (0), most);
  unsetenv ("IMK_THREADS");
  test_check (imk_parallel_threads (5) == 5 || imk_parallel_threads (5) == 1,
      "5 threads became %u", imk_parallel_threads (5));
}

/* --- pool ----------------------------------------------------------------- */

typedef struct Blocks {
  ImkPool *pool;
  atomic_uint n_taken, n_too_many; /* at a time; takes beyond the blocks */
} Blocks;

static void
use_block (void *data, uint32_t first, uint32_t end)
{
  Blocks *b = data;
  void *block = imk_pool_take (b->pool);

  b->n_too_many += atomic_fetch_add (&b->n_taken, 1) >= 2;
  usleep (1000 * (end - first));
  b->n_taken--;
  imk_pool_give (b->pool, block);
}

TEST (test_pool_waits_for_a_block, "a pool waits for a block")
{
  Blocks b = {.n_taken = 0};
  ImkStatus status = imk_pool_new (2, 64, &b.pool, NULL);

  test_check (status == IMK_OK, "no pool: status %d", (int) status);
  imk_parallel_for (8, 64, 1, use_block, &b);
  test_check (b.n_too_many == 0, "%u times more than 2 blocks were taken",
      b.n_too_many);
  imk_pool_free (b.pool);
}

int
main (void)
{
  mock_folder = getenv ("IMK_MODULE_PATH");
  if (!mock_folder) {
    fprintf (stderr, "IMK_MODULE_PATH names no folder of mock modules.\n");
    return 1;
  }
  mock_folder = strdup (mock_folder); /* the children set the variable */
  return test_main (NULL);
}
