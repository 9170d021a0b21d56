/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs every variant of every kernel against its scalar reference, over random
 * configurations: each instruction set, whose bytes are compared with each
 * other as well, and CUDA. With --bench it prints how fast they are.
 * Usage: check-variants [--bench] [kernel]
 * IMK_VARIANTS_CASES: how many times as many configurations; IMK_VARIANTS_SEED
 */
#define _GNU_SOURCE /* clock_gettime, setenv */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/cpu.h"
#include "variants.h"

enum { N_TIMES = 7 };

/* The instruction sets, and after them CUDA. */
enum { CUDA = IMK_CPU_N_LEVELS, N_VARIANTS };

static bool bench;

double
variant_uniform (uint64_t *seed)
{
  return (double) (test_random (seed) >> 11) / 0x1p53;
}

uint32_t
variant_between (uint64_t *seed, uint32_t low, uint32_t high)
{
  return low + (uint32_t) (test_random (seed) % (high - low + 1));
}

/* Returns: a number from 1, or @otherwise where the variable is not set */
static uint64_t
env_number (const char *name, uint64_t otherwise)
{
  const char *value = getenv (name);
  char *end = NULL;
  uint64_t number = value ? strtoull (value, &end, 10) : otherwise;

  if (value && (*value < '0' || *value > '9' || *end || number == 0)) {
    fprintf (stderr, "%s is \"%s\"; it takes a number from 1.\n", name, value);
    exit (2);
  }
  return number;
}

typedef struct Kernel {
  const VariantKernel *k;
  bool has_isa; /* otherwise its first variant is all of the CPU */
} Kernel;

static const char *
variant_name (const Kernel *kernel, int variant)
{
  return variant == CUDA   ? "cuda"
         : kernel->has_isa ? imk_cpu_level_name ((ImkCpuLevel) variant)
                           : "cpu";
}

/* Returns: whether the kernel has @variant, and this machine, for a test of
 * CUDA, or of the CPU; it is then selected */
static bool
select_variant (const Kernel *kernel, int variant, bool cuda)
{
  ImkCpuLevel selected;

  if (cuda || variant == CUDA)
    return cuda && variant == CUDA;
  if (!kernel->has_isa)
    return variant == 0;
  setenv ("IMK_CPU", variant_name (kernel, variant), 1);
  return imk_cpu_level (&selected, test_new_error ()) == IMK_OK;
}

/* FNV-1a over the pixels. */
static uint64_t
hash_image (const TestImage *t)
{
  uint64_t hash = 0xcbf29ce484222325;
  size_t size = imk_image_row_size (&t->image);

  for (uint32_t y = 0; y < t->image.height; y++) {
    const uint8_t *row = (const uint8_t *) t->image.data + y * t->image.stride;

    for (size_t i = 0; i < size; i++)
      hash = (hash ^ row[i]) * 0x100000001b3;
  }
  return hash;
}

/* --- a run of a case ------------------------------------------------------ */

static void
begin (const VariantKernel *k, void *c, int variant)
{
  VariantCase *v = c;

  for (int i = 0; i < VARIANT_MAX_IMAGES && v->host[i].block; i++)
    v->at[i] =
        variant == CUDA ? test_to_device (&v->host[i]) : v->host[i].image;
  test_ok (k->open (c, variant == CUDA ? IMK_BACKEND_CUDA : IMK_BACKEND_CPU,
      test_new_error ()));
}

static void
process (const VariantKernel *k, void *c, int variant)
{
  test_ok (k->process (c, test_new_error ()));
  if (variant == CUDA)
    test_device_wait ();
}

static void
end (const VariantKernel *k, void *c, int variant)
{
  VariantCase *v = c;

  k->close (c);
  for (int i = 0; i < VARIANT_MAX_IMAGES && v->host[i].block; i++) {
    if (variant == CUDA) {
      test_from_device (&v->at[i], &v->host[i]);
      test_device_free (&v->at[i]);
    }
    test_image_check_canaries (&v->host[i], k->name);
  }
}

static void
clear (const VariantKernel *k, void *c)
{
  VariantCase *v = c;

  if (k->clear)
    k->clear (c);
  for (int i = 0; i < VARIANT_MAX_IMAGES; i++)
    test_image_free (&v->host[i]);
  test_image_free (&v->expected);
}

/* --- checks --------------------------------------------------------------- */

static void
check_case (const Kernel *kernel, void *c, bool cuda, const char *name,
    double worst[N_VARIANTS])
{
  const VariantKernel *k = kernel->k;
  uint64_t first = 0;
  bool has_first = false;

  k->expect (c);
  for (int variant = 0; variant < N_VARIANTS; variant++) {
    double difference;
    uint64_t hash;

    if (!select_variant (kernel, variant, cuda))
      continue;
    begin (k, c, variant);
    process (k, c, variant);
    end (k, c, variant);
    difference = k->difference (c);
    hash = hash_image (((VariantCase *) c)->host);
    test_check (difference <= 1, "%s, %s: %.3g times what is allowed (%s)",
        name, variant_name (kernel, variant), difference, k->promise);
    test_check (!k->same_bytes || !has_first || hash == first,
        "%s: %s gives other bytes", name, variant_name (kernel, variant));
    worst[variant] = fmax (worst[variant], difference);
    first = has_first ? first : hash;
    has_first = true;
  }
}

static void
check_kernel (const Kernel *kernel, bool cuda)
{
  const VariantKernel *k = kernel->k;
  double worst[N_VARIANTS] = {0};
  uint64_t seed = env_number ("IMK_VARIANTS_SEED", 1);
  uint64_t n = k->n_cases * env_number ("IMK_VARIANTS_CASES", 1);
  test_autofree void *c = malloc (k->case_size);
  char name[VARIANT_MAX_NAME];

  if (TEST_SANITIZED || test_is_short ())
    n = n / 4 + 1;
  for (uint64_t i = 0; i < n; i++) {
    memset (c, 0, k->case_size);
    k->draw (c, &seed, false, name);
    check_case (kernel, c, cuda, name, worst);
    clear (k, c);
  }
  for (int variant = 0; variant < N_VARIANTS; variant++)
    if (select_variant (kernel, variant, cuda))
      printf ("# %-15s %-7s %4llu configurations, at most %.2f of %s%s\n",
          k->name, variant_name (kernel, variant), (unsigned long long) n,
          worst[variant], k->promise,
          k->same_bytes && !cuda ? ", same bytes" : "");
  unsetenv ("IMK_CPU");
}

/* --- speed ---------------------------------------------------------------- */

static double
now_us (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

/* Returns: the shortest of some runs, in us, each of at least 20 ms */
static double
time_process (const VariantKernel *k, void *c, int variant)
{
  double best = INFINITY;

  for (int i = 0; i < N_TIMES; i++) {
    double start = now_us (), spent;
    uint32_t n = 0;

    do {
      process (k, c, variant);
      n++;
      spent = now_us () - start;
    } while (spent < 20e3);
    best = fmin (best, spent / n);
  }
  return best;
}

static void
time_kernel (const Kernel *kernel, bool cuda)
{
  const VariantKernel *k = kernel->k;
  uint64_t seed = 1;
  double reference, lowest = 0;
  void *c = calloc (1, k->case_size);
  char name[VARIANT_MAX_NAME];

  k->draw (c, &seed, true, name);
  printf ("# %s\n", name);
  reference = now_us ();
  k->expect (c);
  reference = now_us () - reference;
  printf ("# %-15s reference %12.1f us\n", k->name, reference);
  for (int variant = 0; variant < N_VARIANTS; variant++) {
    double us;

    if (!select_variant (kernel, variant, cuda))
      continue;
    begin (k, c, variant);
    us = time_process (k, c, variant);
    end (k, c, variant);
    lowest = lowest > 0 ? lowest : us;
    printf (
        "# %-15s %-9s %12.1f us", k->name, variant_name (kernel, variant), us);
    if (!cuda && kernel->has_isa)
      printf ("  %7.2f times the lowest level", lowest / us);
    printf ("  %9.1f times the reference\n", reference / us);
  }
  unsetenv ("IMK_CPU");
  clear (k, c);
  free (c);
}

/* --- the tests ------------------------------------------------------------ */

static void
on_cpu (void)
{
  (bench ? time_kernel : check_kernel) (test_data (), false);
}

static void
on_cuda (void)
{
  test_need_cuda ();
  (bench ? time_kernel : check_kernel) (test_data (), true);
}

static const Kernel kernels[] = {
#define KERNEL(name, has_isa) {&variants_##name, has_isa},
#include "variants.inc"
};

enum { N_KERNELS = sizeof (kernels) / sizeof (*kernels) };

static bool
is_kernel (const char *name)
{
  for (int i = 0; i < N_KERNELS; i++)
    if (strcmp (kernels[i].k->name, name) == 0)
      return true;
  return false;
}

/* Returns: whether the arguments are right; one kernel is selected by the
 * harness, through IMK_TEST_ONLY */
static bool
read_arguments (int argc, char **argv)
{
  const char *only = NULL;

  for (int i = 1; i < argc; i++) {
    if (strcmp (argv[i], "--bench") == 0)
      bench = true;
    else if (!only && is_kernel (argv[i]))
      only = argv[i];
    else
      return false;
  }
  return !only || setenv ("IMK_TEST_ONLY", only, 1) == 0;
}

static int
show_usage (void)
{
  fputs ("Usage: check-variants [--bench] [kernel], which is one of:", stderr);
  for (int i = 0; i < N_KERNELS; i++)
    fprintf (stderr, " %s", kernels[i].k->name);
  fputs ("\n", stderr);
  return 2;
}

int
main (int argc, char **argv)
{
  static char names[2 * N_KERNELS][VARIANT_MAX_NAME];
  static Test tests[2 * N_KERNELS + 1];
  int n = 0;

  if (!read_arguments (argc, argv))
    return show_usage ();
  for (int i = 0; i < N_KERNELS; i++)
    for (int cuda = 0; cuda <= kernels[i].k->cuda; cuda++) {
      snprintf (names[n], VARIANT_MAX_NAME, "%s: %s gives the reference",
          kernels[i].k->name,
          cuda                 ? "CUDA"
          : kernels[i].has_isa ? "every instruction set"
                               : "the CPU");
      tests[n] = (Test){names[n], cuda ? on_cuda : on_cpu, !cuda, &kernels[i]};
      n++;
    }
  return test_main (tests);
}
