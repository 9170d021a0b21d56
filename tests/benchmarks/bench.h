/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The frame of every benchmark: warm-up, repeats in turns, order statistics,
 * buffers beyond the caches, and rows of CSV. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes --csv FILE, --quick (30 repeats), --gpu (what needs a CUDA device and
 * nothing else) and any number of --only CASE from the command line and makes
 * the CUDA modules of the build folder findable. @group: first field of every
 * row. Ends the program on a wrong argument. */
void bench_open (int argc, char **argv, const char *group);

/* Returns: the exit status; 1 when a row could not be written */
int bench_close (void);

bool bench_is_quick (void);
bool bench_is_gpu (void);

/* Returns: whether --only asks for the row @name: begins with it; true without.
 * bench_case () leaves out what is not asked for. */
bool bench_wants_row (const char *name);

/* Returns: whether it may ask for rows whose names begin with @name, so that
 * they are worth preparing. */
bool bench_wants (const char *name);

/* Ends the program with a sentence: a benchmark that computes something wrong
 * has nothing to report. */
void bench_fail (const char *format, ...)
    __attribute__ ((format (printf, 1, 2), noreturn));
void bench_ok (ImkStatus status, const ImkError *error);

/* Returns: microseconds of a monotonic clock */
double bench_now (void);

/* One way to do the work of a case. */
typedef struct BenchEntry {
  const char *backend; /* "cpu", "cuda" */
  const char *who;     /* "ours", or a peer or floor: "memcpy", "opencv" */
  /* Does the work once. @turn goes up by one at every call: the buffers of a
   * ring are chosen by it. */
  void (*run) (void *data, uint32_t turn);
  void *data;
} BenchEntry;

/**
 * bench_case: (times @entries beside each other)
 * After a warm-up, each entry is timed once, then each once more, and so on:
 * what else runs on the machine hurts all alike. Work shorter than 20 us is
 * done several times a repeat, and the repeat counts as their mean. */
void bench_case (
    const char *name, const BenchEntry *entries, uint32_t n_entries);

/* From now on the repeats of a case end after this time, with five of them at
 * the least; 0, at first: never. */
void bench_limit (double seconds);

/* One row from samples in microseconds, which it sorts. */
void bench_samples (const char *name, const char *backend, const char *who,
    double *samples, uint32_t n_samples);

/* One row of figures that come from elsewhere; NaN for those not known. */
void bench_row (const char *name, const char *backend, const char *who,
    double median, double p99, double min, double max, uint32_t n);

/* Returns: how many repeats a case has */
uint32_t bench_repeats (void);

/* What a row says, in microseconds. */
typedef struct BenchFigures {
  double median, p99, min, max;
} BenchFigures;

/* Returns: the row last written for @name and @who, else NaN everywhere */
BenchFigures bench_find (const char *name, const char *who);

/* Buffers of one size, used in turn. */
typedef struct BenchRing {
  size_t size;   /* bytes of a buffer */
  size_t stride; /* bytes to the next one, whole pages */
  uint32_t n;
  uint8_t *block;
} BenchRing;

/* Buffers that together have at least @total bytes; at least one. All pages
 * are touched. */
BenchRing bench_ring_new (size_t size, size_t total);
void bench_ring_free (BenchRing *ring);
uint8_t *bench_ring_at (const BenchRing *ring, uint32_t turn);

/* Reproducible random bytes in every buffer. */
void bench_ring_noise (BenchRing *ring, uint64_t seed);

/* Returns: bytes beyond the last level cache of this machine, but no more than
 * a quarter of its memory */
size_t bench_beyond_cache (void);

#ifdef __cplusplus
}
#endif
