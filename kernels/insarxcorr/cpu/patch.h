/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the files of the CPU backend. */
#pragma once

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "imk/fft.h"
#include "insarxcorr/insarxcorr-peak.h"

/* Lines that COMPAT interpolates at a time. */
#define IMK_INSARXCORR_CHUNK 16

typedef struct ImkInsarxcorrComplex {
  float re, im;
} ImkInsarxcorrComplex;

/* Buffers for one patch, in a list while unused. */
typedef struct ImkInsarxcorrSpace {
  struct ImkInsarxcorrSpace *next;
  ImkInsarxcorrComplex *lines, *spectra, *phases; /* COMPAT: [CHUNK][width];
                                                   * PRECISE: samples, their
                                                   * spectrum, finer samples */
  float *amplitudes; /* COMPAT: of every range_interp-th column, [width] */
  float *a, *b;      /* amplitudes without their mean, fine width x height
                      * of reference and secondary; PRECISE: [fft_height]
                      * [fft_width], zero beyond them */
  ImkInsarxcorrComplex *a_spectrum; /* [fft_height][fft_width / 2 + 1] */
  ImkInsarxcorrComplex *b_spectrum; /* and then real, over it */
  int32_t *a_cut, *b_cut;           /* COMPAT, methods of time */
  double *sums, *squares;           /* PRECISE: [fine width of secondary] */
  float *surface;                   /* [n_lags_y][n_lags_x] */
  double *zoomed;                   /* [8][8 F] */
} ImkInsarxcorrSpace;

typedef struct ImkInsarxcorrCpu {
  const ImkInsarxcorrPlan *plan;
  const ImkInsarxcorrPart *part;
  uint8_t *bands[IMK_INSARXCORR_N_SIDES];
  size_t strides[IMK_INSARXCORR_N_SIDES];

  /* of CHUNK lines, the same for both sides, NULL without interpolation; or of
   * whole patches of a side */
  ImkFft *forward[IMK_INSARXCORR_N_SIDES], *backward[IMK_INSARXCORR_N_SIDES];
  ImkFft *spectrum, *surface;  /* of the correlation */
  ImkInsarxcorrComplex *turns; /* COMPAT: [range_interp][width]: to samples m /
                                * range_interp later */
  double *tables;
  ImkInsarxcorrZoom zoom;

  uint32_t n_threads;
  atomic_bool is_cancelled;
  pthread_mutex_t lock;
  ImkInsarxcorrSpace *idle;
} ImkInsarxcorrCpu;

/* A patch at work. */
typedef struct ImkInsarxcorrWork {
  const ImkInsarxcorrCpu *cpu;
  const ImkInsarxcorrPatch *patch;
  ImkInsarxcorrSpace *space;
  ImkInsarxcorrPeak peak;
} ImkInsarxcorrWork;

/* Line @y of the patch of @side.
 * Returns: samples that are data */
uint32_t imk_insarxcorr_load_line (const ImkInsarxcorrWork *w, int side,
    uint32_t y, ImkInsarxcorrComplex *out);

/* Lowers peak.valid to the fraction of valid samples of a side. */
static inline void
imk_insarxcorr_note_valid (ImkInsarxcorrWork *w, uint64_t n_valid, uint64_t n)
{
  double valid = (double) n_valid / (double) n;

  if (valid < w->peak.valid)
    w->peak.valid = valid;
}

void imk_insarxcorr_take_amplitudes (
    const ImkInsarxcorrComplex *restrict in, uint32_t n, float *restrict out);

/* Returns: the sum, from eight partial sums */
double imk_insarxcorr_sum (const float *in, uint32_t n);

/* @b becomes a conj (b) */
void imk_insarxcorr_multiply (const ImkInsarxcorrComplex *restrict a,
    ImkInsarxcorrComplex *restrict b, size_t n);

/* COMPAT: the surface of a patch. */
ImkStatus imk_insarxcorr_compat (ImkInsarxcorrWork *w, ImkError *error);

/* COMPAT: GMTSAR's correlation at lag (@v, @u). */
double imk_insarxcorr_compat_correlation (
    const ImkInsarxcorrWork *w, uint32_t v, uint32_t u);

/* PRECISE: the surface of a patch. */
ImkStatus imk_insarxcorr_precise (ImkInsarxcorrWork *w, ImkError *error);

/* The peak of the surface, to a fraction of a lag. */
void imk_insarxcorr_find_peak (ImkInsarxcorrWork *w);
