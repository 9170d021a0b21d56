/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Failures on demand, for tests: what a CUDA module has beside its devices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "imk/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ImkFailures {
  IMK_BACKEND_HEADER;

  /* The @nth fallible call from now on fails (1 = the next), and all after it
   * when @forever; 0 switches this off. Returns: how many fallible calls were
   * made since the last time. */
  unsigned long (*inject) (unsigned long nth, bool forever);
} ImkFailures;

/* The same of the module that is loaded; nothing without one. */
static inline unsigned long
imk_inject_failure (unsigned long nth, bool forever)
{
  const void *table;

  if (imk_backend_find ("failures", &table, NULL) != IMK_OK)
    return 0;
  return ((const ImkFailures *) table)->inject (nth, forever);
}

#ifdef __cplusplus
}
#endif
