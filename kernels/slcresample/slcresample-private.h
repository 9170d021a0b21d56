/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between slcresample.c, which validates and keeps the band, and
 * cpu/resample.c, which interpolates. */
#pragma once

#include <math.h>

#include "imk/slcresample.h"

/* Steps of a fraction, between which weights are interpolated: the error is
 * 97 dB below a signal of bandwidth 0.85, 67 dB with a Doppler of 2. */
#define IMK_SLCRESAMPLE_N_PHASES 256

/* Samples that may be read, and are not used, behind what is asked for. */
#define IMK_SLCRESAMPLE_PADDING 16

/* Weights for each fraction 0..N_PHASES / N_PHASES: [phase][taps] */
typedef struct ImkSlcresampleWeights {
  float *re, *im; /* im NULL when all are real */
} ImkSlcresampleWeights;

/* What lines are made of. Line l of the image is row l % n_lines of the band;
 * a row has the real parts and then the imaginary ones. */
typedef struct ImkSlcresampleBand {
  const struct ImkSlcresampleLoops *loops; /* of cpu/resample.c */
  ImkSlcresampleConfig config;
  uint32_t n_lines;
  float *samples;
  ImkSlcresampleWeights weights[IMK_SLCRESAMPLE_N_AXES];
} ImkSlcresampleBand;

/* Returns: the input column of column @r of output line @a */
static inline double
imk_slcresample_x (const ImkSlcresampleConfig *c, double r, double a)
{
  return r + (c->shift[0] + c->stretch[0] * r + c->a_stretch[0] * a);
}

/* Returns: the input line where output line @a crosses input column @x */
static inline double
imk_slcresample_y (const ImkSlcresampleConfig *c, double x, double a)
{
  double r = (x - c->shift[0] - c->a_stretch[0] * a) / (1 + c->stretch[0]);

  return a + (c->shift[1] + c->stretch[1] * r + c->a_stretch[1] * a);
}

/* Output columns beside a block that its input columns may need: half of the
 * taps at the largest slope, 0.25 of the plane and 4 / 3 of that of the nodes.
 */
#define IMK_SLCRESAMPLE_REACH 44

/* Column and line of the input, with a field. */
void imk_slcresample_field_at (
    const ImkSlcresampleConfig *c, double r, double a, double *at);

/* The same for @n columns of the output from @r on. */
void imk_slcresample_field_line (const ImkSlcresampleConfig *c, int64_t r,
    double a, uint32_t n, double *x, double *y);

/* Bounds of the input line at output line @a, with a field. */
void imk_slcresample_field_span (
    const ImkSlcresampleConfig *c, uint32_t a, double *least, double *most);

ImkStatus imk_slcresample_field_check (
    const ImkSlcresampleField *field, ImkError *error);

/* @to: (out): free with free () */
ImkStatus imk_slcresample_field_copy (
    const ImkSlcresampleField *from, ImkSlcresampleField **to, ImkError *error);

/* Fills a table of weights. @doppler: 0 leaves @weights->im NULL
 * Returns: IMK_ERROR_MEMORY, nothing is allocated then */
ImkStatus imk_slcresample_weights_init (ImkSlcresampleWeights *weights,
    uint32_t taps, double bandwidth, double doppler, ImkError *error);
void imk_slcresample_weights_clear (ImkSlcresampleWeights *weights);

/* Chooses the loops for this processor. */
ImkStatus imk_slcresample_cpu_init (ImkSlcresampleBand *band, ImkError *error);

/* Makes lines from @line on; the band has what they need. */
void imk_slcresample_cpu_process (
    const ImkSlcresampleBand *band, uint32_t line, ImkImage *out);
