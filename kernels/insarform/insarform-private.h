/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between insarform.c, which validates and counts lines, cpu/cells.c, which
 * adds, and the fringes. */
#pragma once

#include "imk/insarform.h"

/* Sample @x of @line, CF32 or CI16. */
static inline void
imk_insarform_load (
    bool is_float, const void *line, uint32_t x, double *re, double *im)
{
  *re = is_float ? ((const float *) line)[2 * x]
                 : ((const int16_t *) line)[2 * x];
  *im = is_float ? ((const float *) line)[2 * x + 1]
                 : ((const int16_t *) line)[2 * x + 1];
}

/* Of a cell, a column of cells or a window. */
typedef struct ImkInsarformSums {
  double re, im;    /* s1 conj (s2) */
  double p1, p2, n; /* |s1|^2, |s2|^2, samples */
  double middle[2]; /* of a cell: exp (i phase removed) of its middle samples */
} ImkInsarformSums;

typedef struct ImkInsarformCells {
  ImkInsarformConfig config;
  uint32_t width, height; /* cells */
  uint32_t n_rows;        /* of the sums: row r is row r % n_rows of them */
  ImkInsarformSums *sums;
  ImkInsarformSums *columns; /* of the window's rows, [width] */
} ImkInsarformCells;

/* Adds lines, the first of which is @line of the images.
 * @phase: (nullable): f32, to be removed */
void imk_insarform_cpu_add (ImkInsarformCells *cells, uint32_t line,
    const ImkImage *reference, const ImkImage *secondary,
    const ImkImage *phase);

/* Makes @row of cells. @out: [width][IMK_INSARFORM_N_CHANNELS] */
void imk_insarform_cpu_process (
    ImkInsarformCells *cells, uint32_t row, float *out);
