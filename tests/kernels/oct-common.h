/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of octbscan share. */
#pragma once

#include "imk/octbscan.h"
#include "kernel-test.h"

TEST_DEFINE_AUTO_POINTER (ImkOctbscan, imk_octbscan_free)

/* A way to run a B-scan. */
typedef struct Way {
  const char *name;
  ImkBackend backend;
  ImkOctbscanStrategy strategy;
} Way;

/* Up to the one without a name. */
extern const Way cpu_ways[];

/* Fails unless a kernel of the CPU refuses @c with @words. */
void oct_refused (const ImkOctbscanConfig *c, const char *words);

/* Returns: uniform in 0..1 */
double oct_uniform (uint64_t *seed);
