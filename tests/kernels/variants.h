/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What check-variants asks of a kernel: a random case, its reference, and a run
 * of it. A case owns its images and tables. */
#pragma once

#include "kernel-test.h"

enum { VARIANT_MAX_NAME = 200 };

typedef struct VariantKernel {
  const char *name;
  /* how far the output may be from the reference, in words */
  const char *promise;
  /* the instruction sets give the same bytes */
  bool same_bytes;
  uint32_t n_cases; /* of a check */
  size_t case_size; /* bytes; zeroed before @draw */

  /* @typical: what users run, large enough to be timed, else anything.
   * @name: (out): says what it is, VARIANT_MAX_NAME bytes */
  void (*draw) (void *c, uint64_t *seed, bool typical, char *name);
  void (*expect) (void *c); /* runs the reference */
  void (*open) (void *c);   /* makes the object, on the CPU */
  void (*process) (void *c);
  void (*close) (void *c);
  /* Returns: the largest difference, 1 is what @promise allows */
  double (*difference) (void *c);
  const TestImage *(*output) (void *c);
  void (*clear) (void *c);
} VariantKernel;

extern const VariantKernel variants_lapsharpen, variants_octbscan,
    variants_photostereo, variants_shcentroid, variants_slcresample;

/* Returns: a number in [0, 1), or [low, high] */
double variant_uniform (uint64_t *seed);
uint32_t variant_between (uint64_t *seed, uint32_t low, uint32_t high);
