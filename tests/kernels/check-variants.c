/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs every instruction set of every kernel against its scalar reference, over
 * random configurations, and compares their bytes with each other. With --bench
 * it prints how fast they are.
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

static uint64_t
env_number (const char *name, uint64_t otherwise)
{
  const char *value = getenv (name);

  return value ? strtoull (value, NULL, 10) : otherwise;
}

/* Returns: whether this processor has @level, which is then selected */
static bool
select_level (ImkCpuLevel level)
{
  ImkCpuLevel selected;
  ImkError error;

  setenv ("IMK_CPU", imk_cpu_level_name (level), 1);
  return imk_cpu_level (&selected, &error) == IMK_OK;
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

static void
check_case (const VariantKernel *k, void *c, const char *name,
    double worst[IMK_CPU_N_LEVELS])
{
  uint64_t first = 0;
  bool has_first = false;

  k->expect (c);
  for (ImkCpuLevel level = 0; level < IMK_CPU_N_LEVELS; level++) {
    double difference;
    uint64_t hash;

    if (!select_level (level))
      continue;
    k->open (c);
    k->process (c);
    k->close (c);
    difference = k->difference (c);
    hash = hash_image (k->output (c));
    test_check (difference <= 1, "%s, %s: %.3g times what is allowed (%s)",
        name, imk_cpu_level_name (level), difference, k->promise);
    test_check (!k->same_bytes || !has_first || hash == first,
        "%s: %s gives other bytes", name, imk_cpu_level_name (level));
    worst[level] = fmax (worst[level], difference);
    first = has_first ? first : hash;
    has_first = true;
  }
}

static void
check_kernel (const VariantKernel *k)
{
  double worst[IMK_CPU_N_LEVELS] = {0};
  uint64_t seed = env_number ("IMK_VARIANTS_SEED", 1);
  uint64_t n = k->n_cases * env_number ("IMK_VARIANTS_CASES", 1);
  void *c = malloc (k->case_size);
  char name[VARIANT_MAX_NAME];

  if (TEST_SANITIZED)
    n = n / 4 + 1;
  for (uint64_t i = 0; i < n; i++) {
    memset (c, 0, k->case_size);
    k->draw (c, &seed, false, name);
    check_case (k, c, name, worst);
    k->clear (c);
  }
  for (ImkCpuLevel level = 0; level < IMK_CPU_N_LEVELS; level++)
    if (select_level (level))
      printf ("# %-12s %-7s %4llu configurations, at most %.2f of %s%s\n",
          k->name, imk_cpu_level_name (level), (unsigned long long) n,
          worst[level], k->promise, k->same_bytes ? ", same bytes" : "");
  unsetenv ("IMK_CPU");
  free (c);
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
time_process (const VariantKernel *k, void *c)
{
  double best = INFINITY;

  for (int i = 0; i < N_TIMES; i++) {
    double start = now_us (), spent;
    uint32_t n = 0;

    do {
      k->process (c);
      n++;
      spent = now_us () - start;
    } while (spent < 20e3);
    best = fmin (best, spent / n);
  }
  return best;
}

static void
time_kernel (const VariantKernel *k)
{
  uint64_t seed = 1;
  double reference, lowest = 0;
  void *c = calloc (1, k->case_size);
  char name[VARIANT_MAX_NAME];

  k->draw (c, &seed, true, name);
  printf ("# %s\n", name);
  reference = now_us ();
  k->expect (c);
  reference = now_us () - reference;
  printf ("# %-12s reference %12.1f us\n", k->name, reference);
  for (ImkCpuLevel level = 0; level < IMK_CPU_N_LEVELS; level++) {
    double us;

    if (!select_level (level))
      continue;
    k->open (c);
    us = time_process (k, c);
    k->close (c);
    lowest = lowest > 0 ? lowest : us;
    printf ("# %-12s %-9s %12.1f us  %7.2f times the lowest level  %9.1f "
            "times the reference\n",
        k->name, imk_cpu_level_name (level), us, lowest / us, reference / us);
  }
  unsetenv ("IMK_CPU");
  k->clear (c);
  free (c);
}

static void
run_kernel (const VariantKernel *k)
{
  (bench ? time_kernel : check_kernel) (k);
}

static void
lapsharpen (void)
{
  run_kernel (&variants_lapsharpen);
}

static void
octbscan (void)
{
#ifdef HAVE_FFT
  run_kernel (&variants_octbscan);
#else
  test_skip ("built without an FFT");
#endif
}

static void
photostereo (void)
{
  run_kernel (&variants_photostereo);
}

static void
shcentroid (void)
{
  run_kernel (&variants_shcentroid);
}

static void
slcresample (void)
{
  run_kernel (&variants_slcresample);
}

int
main (int argc, char **argv)
{
  static const Test tests[] = {
      {"lapsharpen: every instruction set gives the reference", lapsharpen,
          true},
      {"octbscan: every instruction set gives the reference", octbscan, true},
      {"photostereo: every instruction set gives the reference", photostereo,
          true},
      {"shcentroid: every instruction set gives the reference", shcentroid,
          true},
      {"slcresample: every instruction set gives the reference", slcresample,
          true},
      {NULL},
  };

  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--bench") == 0)
      bench = true;
    else
      setenv ("IMK_TEST_ONLY", argv[i], 1);
  return test_main (tests);
}
