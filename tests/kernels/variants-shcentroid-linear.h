/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Random cases of the matched filter and of pupil images, and what they give:
 * the formulas of imk_shcentroid_process () in long double, with the weights
 * that test-shcentroid-linear compares with a fit. */
#pragma once

#include "imk/shcentroid.h"
#include "kernel-test.h"

typedef struct VariantsLinear {
  float *templates;
  ImkShcentroidCell *cells;
  uint32_t *pupils;
} VariantsLinear;

static inline bool
variants_linear_is (const ImkShcentroidConfig *c)
{
  return c->estimator == IMK_SHCENTROID_ESTIMATOR_MATCHED ||
         c->estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS;
}

/* Makes a matched filter, or pupil images, of @c. */
void variants_linear_draw (
    VariantsLinear *self, ImkShcentroidConfig *c, uint64_t *seed);
void variants_linear_clear (VariantsLinear *self);

/* Adds the spots of a matched filter to the noise in @in. */
void variants_linear_light (
    const ImkShcentroidConfig *c, TestImage *in, uint64_t *seed);

/* @rows: [cells][IMK_SHCENTROID_N_FIELDS] of float64 */
void variants_linear_expect (
    const ImkShcentroidConfig *c, const ImkImage *in, ImkImage *rows);
