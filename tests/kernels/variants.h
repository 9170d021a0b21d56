/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What check-variants asks of a kernel: a random case, its reference, and a run
 * of it. */
#pragma once

#include <math.h>

#include "kernel-test.h"

enum { VARIANT_MAX_NAME = 200, VARIANT_MAX_IMAGES = 48 };

/* What a case begins with. Its images are made by draw (), and freed with it */
typedef struct VariantCase {
  /* inputs and outputs; the instruction sets agree on the first */
  TestImage host[VARIANT_MAX_IMAGES];
  ImkImage at[VARIANT_MAX_IMAGES]; /* where the backend reads and writes them */
  TestImage expected;              /* by the reference; (nullable) */
} VariantCase;

typedef struct VariantKernel {
  const char *name;
  /* how far the output may be from the reference, in words */
  const char *promise;
  bool cuda; /* it has a CUDA part */
  /* the instruction sets, where it has some, give the same bytes */
  bool same_bytes;
  uint32_t n_cases; /* of a check */
  size_t case_size; /* bytes; zeroed before @draw */

  /* @typical: what users run, large enough to be timed, else anything.
   * @name: (out): says what it is, VARIANT_MAX_NAME bytes */
  void (*draw) (void *c, uint64_t *seed, bool typical, char *name);
  void (*expect) (void *c); /* runs the reference */
  ImkStatus (*open) (void *c, ImkBackend backend, ImkError *error);
  ImkStatus (*process) (void *c, ImkError *error);
  void (*close) (void *c);
  /* Returns: the largest difference, 1 is what @promise allows */
  double (*difference) (void *c);
  void (*clear) (void *c); /* (nullable): frees what is no image */
} VariantKernel;

/* variants.inc has the kernels that the build declares, and whether they are
 * compiled for each instruction set. */
#define KERNEL(name, has_isa) extern const VariantKernel variants_##name;
#include "variants.inc"
#undef KERNEL

/* Ends the file of a kernel: its table, with the functions above of the names
 * of the members, and the members in the further arguments. */
#define VARIANT_TABLE(kernel_name, ...) \
  static void close (void *data) \
  { \
    imk_##kernel_name##_free (((Case *) data)->kernel); \
  } \
\
  const VariantKernel variants_##kernel_name = { \
      .name = #kernel_name, \
      .case_size = sizeof (Case), \
      .draw = draw, \
      .expect = expect, \
      .open = open, \
      .process = process, \
      .close = close, \
      .difference = difference, \
      __VA_ARGS__, \
  };

/* Likewise, with an open () for the config and the kernel of a Case. */
#define VARIANT_KERNEL(kernel_name, ...) \
  static ImkStatus open (void *data, ImkBackend backend, ImkError *error) \
  { \
    Case *c = data; \
\
    return imk_##kernel_name##_new (backend, &c->config, &c->kernel, error); \
  } \
\
  VARIANT_TABLE (kernel_name, __VA_ARGS__)

/* Returns: the larger one; infinity when one is no number, which fmax () would
 * forget */
static inline double
variant_larger (double a, double b)
{
  return isnan (a) || isnan (b) ? INFINITY : fmax (a, b);
}

/* Returns: a number in [0, 1), or [low, high] */
double variant_uniform (uint64_t *seed);
uint32_t variant_between (uint64_t *seed, uint32_t low, uint32_t high);
