/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples of SAMPLE_BITS and the rows of a frame of them. */
#pragma once

#include <string.h>

#include "lapsharpen/cpu/loops.h"

#define INLINE static inline __attribute__ ((always_inline))

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))

#if SAMPLE_BITS == 8
typedef uint8_t Sample;
#elif SAMPLE_BITS == 16
typedef uint16_t Sample;
#else
typedef float Sample;
#endif

/* What the smoothed row is the weighted sum of. */
typedef struct Grown {
  const float *row[3];
  float weight[3];
} Grown;

/* Returns: row @y, NULL where the border is constant */
static const Sample *
get_row (const Work *work, int y)
{
  const ImkLapsharpenRule *r = work->rule;
  int inside = imk_lapsharpen_inside (y, (int) r->height, r);

  if (r->constant && (y < 0 || y >= (int) r->height))
    return NULL;
  return (const Sample *) ((const uint8_t *) work->in->data +
                           (size_t) inside * work->in->stride);
}
