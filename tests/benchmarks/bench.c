/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE
#include "bench.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  REPEATS = 200,
  QUICK_REPEATS = 30,
  LEAST_REPEATS = 5,
  WARM_UPS = 3,
  MAX_ENTRIES = 8,
  MAX_ROWS = 1024,
  MAX_CALLS = 64, /* a repeat */
  MAX_ONLY = 16,
};

static const double shortest_repeat = 20.0; /* us */

static struct {
  const char *group;
  FILE *csv;
  bool quick, gpu;
  const char *only[MAX_ONLY];
  uint32_t n_only;
  bool failed;
  double limit; /* us, 0: none */
} bench;

/* What bench_find finds again. */
static struct {
  char key[128];
  BenchFigures figures;
} rows[MAX_ROWS];
static uint32_t n_rows;

void
bench_fail (const char *format, ...)
{
  va_list args;

  va_start (args, format);
  fprintf (stderr, "%s benchmark: ", bench.group);
  vfprintf (stderr, format, args);
  fprintf (stderr, "\n");
  va_end (args);
  exit (1);
}

void
bench_ok (ImkStatus status, const ImkError *error)
{
  if (status != IMK_OK)
    bench_fail ("%s", error->message);
}

/* kernels/cuda beside the tests folder that this program lies in. */
static void
find_modules (void)
{
  char path[PATH_MAX], folder[PATH_MAX];
  ssize_t length = readlink ("/proc/self/exe", path, sizeof (path) - 1);

  if (length < 0)
    return;
  path[length] = 0;
  for (int i = 0; i < 3; i++) {
    char *slash = strrchr (path, '/');

    if (slash)
      *slash = 0;
  }
  if (snprintf (folder, sizeof (folder), "%s/kernels/cuda", path) <
          (int) sizeof (folder) &&
      access (folder, R_OK) == 0)
    setenv ("IMK_MODULE_PATH", folder, 0);
}

static FILE *
open_csv (const char *location)
{
  FILE *file = fopen (location, "w");

  if (!file)
    bench_fail ("%s cannot be written.", location);
  return file;
}

void
bench_open (int argc, char **argv, const char *group)
{
  bench.group = group;
  setvbuf (stdout, NULL, _IOLBF, 0);
  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--quick") == 0)
      bench.quick = true;
    else if (strcmp (argv[i], "--gpu") == 0)
      bench.gpu = true;
    else if (strcmp (argv[i], "--csv") == 0 && i + 1 < argc)
      bench.csv = open_csv (argv[++i]);
    else if (strcmp (argv[i], "--only") == 0 && i + 1 < argc &&
             bench.n_only < MAX_ONLY)
      bench.only[bench.n_only++] = argv[++i];
    else
      bench_fail (
          "usage: %s [--csv FILE] [--quick] [--gpu] [--only CASE]...", argv[0]);
  if (bench.csv) {
    /* what a crash leaves is whole rows */
    setvbuf (bench.csv, NULL, _IOLBF, 0);
    fprintf (bench.csv, "group,case,backend,peer_or_floor,median_us,p99_us,"
                        "min_us,repeats,max_us\n");
  }
  find_modules ();
}

int
bench_close (void)
{
  if (bench.csv && fclose (bench.csv) != 0)
    bench.failed = true;
  return bench.failed ? 1 : 0;
}

bool
bench_is_quick (void)
{
  return bench.quick;
}

bool
bench_is_gpu (void)
{
  return bench.gpu;
}

static bool
begins_with (const char *text, const char *beginning)
{
  return strncmp (text, beginning, strlen (beginning)) == 0;
}

bool
bench_wants_row (const char *name)
{
  bool wanted = bench.n_only == 0;

  for (uint32_t i = 0; i < bench.n_only; i++)
    wanted |= begins_with (name, bench.only[i]);
  return wanted;
}

bool
bench_wants (const char *name)
{
  bool wanted = bench_wants_row (name);

  for (uint32_t i = 0; i < bench.n_only; i++)
    wanted |= begins_with (bench.only[i], name);
  return wanted;
}

void
bench_limit (double seconds)
{
  bench.limit = seconds * 1e6;
}

uint32_t
bench_repeats (void)
{
  return bench.quick ? QUICK_REPEATS : REPEATS;
}

double
bench_now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

/* --- rows ---------------------------------------------------------------- */

static void
print_number (double value)
{
  if (isnan (value))
    fprintf (bench.csv, ",");
  else
    fprintf (bench.csv, ",%.3f", value);
}

void
bench_row (const char *name, const char *backend, const char *who,
    double median, double p99, double min, double max, uint32_t n)
{
  printf ("%-11s %-30s %-5s %-16s median %10.2f us   p99 %10.2f   min %10.2f\n",
      bench.group, name, backend, who, median, p99, min);
  if (n_rows < MAX_ROWS) {
    snprintf (rows[n_rows].key, sizeof (rows[0].key), "%s,%s", name, who);
    rows[n_rows++].figures = (BenchFigures){median, p99, min, max};
  }
  if (!bench.csv)
    return;
  fprintf (bench.csv, "%s,%s,%s,%s", bench.group, name, backend, who);
  print_number (median);
  print_number (p99);
  print_number (min);
  fprintf (bench.csv, ",%u", n);
  print_number (max);
  fprintf (bench.csv, "\n");
  if (ferror (bench.csv))
    bench.failed = true;
}

BenchFigures
bench_find (const char *name, const char *who)
{
  char key[sizeof (rows[0].key)];

  snprintf (key, sizeof (key), "%s,%s", name, who);
  for (uint32_t i = n_rows; i-- > 0;)
    if (strcmp (rows[i].key, key) == 0)
      return rows[i].figures;
  return (BenchFigures){NAN, NAN, NAN, NAN};
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

void
bench_samples (const char *name, const char *backend, const char *who,
    double *samples, uint32_t n)
{
  qsort (samples, n, sizeof (*samples), compare);
  bench_row (name, backend, who, (samples[(n - 1) / 2] + samples[n / 2]) / 2.0,
      samples[(99 * n + 99) / 100 - 1], samples[0], samples[n - 1], n);
}

/* --- cases --------------------------------------------------------------- */

/* Returns: how many calls make a repeat that the clock can measure */
static uint32_t
warm_up (const BenchEntry *entry, uint32_t *turn)
{
  double fastest = INFINITY;

  for (int i = 0; i < WARM_UPS; i++) {
    double start = bench_now (), time;

    entry->run (entry->data, (*turn)++);
    time = bench_now () - start;
    fastest = time < fastest ? time : fastest;
  }
  return fastest * MAX_CALLS <= shortest_repeat
             ? MAX_CALLS
             : (uint32_t) ceil (shortest_repeat / fastest);
}

/* Whether the time of a case has passed. */
static bool
is_over (double begin, uint32_t n_done)
{
  return bench.limit > 0 && n_done >= LEAST_REPEATS &&
         bench_now () - begin > bench.limit;
}

void
bench_case (const char *name, const BenchEntry *entries, uint32_t n_entries)
{
  uint32_t n = bench_repeats (), calls[MAX_ENTRIES], turns[MAX_ENTRIES] = {};
  uint32_t n_done = 0;
  double begin, *samples;

  if (!bench_wants_row (name))
    return;
  samples = malloc (n_entries * n * sizeof (*samples));
  if (!samples || n_entries > MAX_ENTRIES)
    bench_fail ("%s has too many entries.", name);
  for (uint32_t e = 0; e < n_entries; e++)
    calls[e] = warm_up (&entries[e], &turns[e]);
  begin = bench_now ();
  for (; n_done < n && !is_over (begin, n_done); n_done++)
    for (uint32_t e = 0; e < n_entries; e++) {
      double start = bench_now ();

      for (uint32_t c = 0; c < calls[e]; c++)
        entries[e].run (entries[e].data, turns[e]++);
      samples[e * n + n_done] = (bench_now () - start) / calls[e];
    }
  for (uint32_t e = 0; e < n_entries; e++)
    bench_samples (
        name, entries[e].backend, entries[e].who, samples + e * n, n_done);
  free (samples);
}

/* --- buffers ------------------------------------------------------------- */

BenchRing
bench_ring_new (size_t size, size_t total)
{
  size_t page = (size_t) sysconf (_SC_PAGESIZE);
  BenchRing ring = {.size = size, .stride = (size + page - 1) / page * page};

  ring.n = (uint32_t) ((total + ring.stride - 1) / ring.stride);
  if (ring.n == 0)
    ring.n = 1;
  ring.block = aligned_alloc (page, ring.n * ring.stride);
  if (!ring.block)
    bench_fail (
        "there is no memory for %u buffers of %zu bytes.", ring.n, ring.stride);
  memset (ring.block, 0x5a, ring.n * ring.stride);
  return ring;
}

void
bench_ring_free (BenchRing *ring)
{
  free (ring->block);
  *ring = (BenchRing){};
}

uint8_t *
bench_ring_at (const BenchRing *ring, uint32_t turn)
{
  return ring->block + turn % ring->n * ring->stride;
}

/* splitmix64 */
void
bench_ring_noise (BenchRing *ring, uint64_t seed)
{
  uint64_t *words = (uint64_t *) ring->block;

  for (size_t i = 0; i < ring->n * ring->stride / sizeof (*words); i++) {
    uint64_t z = seed += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    words[i] = z ^ (z >> 31);
  }
}

size_t
bench_beyond_cache (void)
{
  size_t least = (size_t) 128 << 20;
  size_t memory =
      (size_t) sysconf (_SC_PHYS_PAGES) * (size_t) sysconf (_SC_PAGESIZE);
  long cache = -1;

#ifdef _SC_LEVEL3_CACHE_SIZE
  cache = sysconf (_SC_LEVEL3_CACHE_SIZE);
#endif
  if (cache > 0 && (size_t) cache / 4 * 5 > least)
    least = (size_t) cache / 4 * 5;
  return least < memory / 4 ? least : memory / 4;
}
