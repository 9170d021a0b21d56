/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the files of the CPU backend. Every pass takes rows, in bands of
 * threads; sums are kept by row and added in order, so that the number of
 * threads changes no result. */
#pragma once

#include <stdatomic.h>

#include "imk/fft.h"
#include "imk/parallel.h"
#include "normalintegrate/normalintegrate-pixel.h"

enum {
  /* Columns that are transformed at a time: a cache line of each row. */
  IMK_NORMALINTEGRATE_COLUMNS = 8,
  IMK_NORMALINTEGRATE_GRAIN = 16, /* rows that are worth a thread */
};

typedef struct ImkNormalintegrateCpu {
  ImkNormalintegratePlan plan;
  ImkFft *row_forward, *row_backward, *column_forward, *column_backward;
  size_t real_pitch, spectrum_pitch;   /* elements, a row */
  float *real;                         /* [height][real_pitch] */
  ImkNormalintegrateComplex *spectrum; /* [height][spectrum_pitch] */
  /* of conjugate gradients, [height][width]: heights, residual, direction,
   * A direction or the answer of poisson; normals before; a second spectrum
   * instead of the last two */
  float *z, *r, *p, *q;
  struct ImkNormalintegrateWeighted *weighted; /* NULL before the first map
                                                * of the method bilateral */
  uint8_t *valid;                              /* likewise */
  double *sums;                                /* [height] */
  float *lowest, *highest;
} ImkNormalintegrateCpu;

struct ImkNormalintegrateRun;

/* The equations A z = r of conjugate gradients. */
typedef struct ImkNormalintegrateSystem {
  ImkBandFunc apply_rows; /* q = A p, and the sums of p q */
  void (*precondition) (struct ImkNormalintegrateRun *run); /* r -> answer */
  const float *answer; /* [height][width] */
} ImkNormalintegrateSystem;

/* One call of process () and the arguments of its passes. */
typedef struct ImkNormalintegrateRun {
  ImkNormalintegrateCpu *cpu;
  const ImkNormalintegrateParams *params;
  const ImkImage *in;
  ImkNormalintegrateOutputs *out;
  const ImkNormalintegrateScale *scale;
  ImkNormalintegrateComplex *spectrum; /* to transform */
  bool is_y;                           /* slopes along y */
  const ImkNormalintegrateSystem *system;
  float alpha, beta;
  atomic_bool failed; /* a transform */
} ImkNormalintegrateRun;

static inline float *
imk_normalintegrate_real_row (const ImkNormalintegrateCpu *cpu, uint32_t y)
{
  return cpu->real + y * cpu->real_pitch;
}

void imk_normalintegrate_for_rows (
    ImkNormalintegrateRun *run, ImkBandFunc func);

/* Returns: the sum of cpu->sums */
double imk_normalintegrate_add_sums (const ImkNormalintegrateCpu *cpu);

/* Between real and run->spectrum; the way back multiplies by width height. */
void imk_normalintegrate_transform (ImkNormalintegrateRun *run);
void imk_normalintegrate_transform_back (ImkNormalintegrateRun *run);

/* Returns: 1 / (width height) */
float imk_normalintegrate_transform_scale (const ImkNormalintegrateCpu *cpu);

/* The first answer of @system from cpu->r. Returns: their product */
double imk_normalintegrate_precondition (
    ImkNormalintegrateRun *run, const ImkNormalintegrateSystem *system);

/* Conjugate gradients from cpu->z, cpu->r and the first answer on, until @now
 * is at most @enough, or for @most steps.
 * @now: (inout): the product of cpu->r and its answer
 *
 * Returns: the number of steps */
uint32_t imk_normalintegrate_descend (
    ImkNormalintegrateRun *run, double *now, double enough, uint32_t most);

/* To cpu->z, p and q, and what is valid. */
void imk_normalintegrate_load_normals (
    ImkNormalintegrateRun *run, ImkNormalintegrateSummary *summary);

/* All fill cpu->z and cpu->valid with the heights, and count valid pixels and
 * iterations in the summary. */
void imk_normalintegrate_poisson (
    ImkNormalintegrateRun *run, ImkNormalintegrateSummary *summary);
void imk_normalintegrate_frankot_chellappa (
    ImkNormalintegrateRun *run, ImkNormalintegrateSummary *summary);
/* Returns: IMK_ERROR_MEMORY */
ImkStatus imk_normalintegrate_bilateral (ImkNormalintegrateRun *run,
    ImkNormalintegrateSummary *summary, ImkError *error);

/* @weighted may be NULL. */
void imk_normalintegrate_weighted_free (
    struct ImkNormalintegrateWeighted *weighted);
