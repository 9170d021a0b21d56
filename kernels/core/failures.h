/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Failures on demand, for tests: what a CUDA module has beside its devices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "imk/backend.h"

IMK_BEGIN_DECLS

typedef struct ImkFailures {
  IMK_BACKEND_HEADER;

  /* The @nth fallible call from now on fails (1 = the next), and all after it
   * when @forever; 0 switches this off. Returns: how many fallible calls were
   * made since the last time. */
  unsigned long (*inject) (unsigned long nth, bool forever);
} ImkFailures;

/* The same of each module that is there: the @nth call of either. */
static inline unsigned long
imk_inject_failure (unsigned long nth, bool forever)
{
  static const char *const names[] = {"failures", "failures of fft"};
  unsigned long n_calls = 0;
  const void *table;

  for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
    if (imk_backend_find (names[i], &table, NULL) == IMK_OK)
      n_calls += ((const ImkFailures *) table)->inject (nth, forever);
  return n_calls;
}

IMK_END_DECLS
