/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* octbscan.h in float64: slow, and written from its words alone. */
#pragma once

#include "imk/octbscan.h"

/* --- octbscan-reference.c: the chain, by the sums of its definition */

/* @x: H spectra of N, the raw samples; @z: (out) H rows of n_depths complex
 * numbers, real then imaginary */
void imk_octbscan_reference (const ImkOctbscanConfig *config,
    uint32_t first_camera, const double *x, double *z);

/* Whether a spectrum of @n samples has an A-scan: all are numbers up to
 * 1e15. */
bool imk_octbscan_reference_is_sound (const double *x, uint32_t n);

/* --- octbscan-finish-reference.c: what follows Z, for a sequence of B-scans
 * that remember those before them */

/* One B-scan and its results. */
typedef struct ImkOctbscanReference {
  const double *x; /* H spectra of N; NULL: nothing is added */
  uint32_t first_camera;
  bool backward, has_images;
  double *z;         /* [H][n_depths] complex */
  double rms;        /* of Z, before the fixed pattern is taken off */
  double *intensity; /* [n_ascans][n_depths], with has_images */
  double *enface;    /* [n_ascans], likewise */
  double track[4];
} ImkOctbscanReference;

/* Fills the results of @n B-scans; the arrays are allocated. @pattern: (out):
 * [C][n_depths] complex, or NULL */
void imk_octbscan_finish_reference (const ImkOctbscanConfig *config,
    ImkOctbscanReference *bscans, uint32_t n, double *pattern);

void imk_octbscan_reference_clear (ImkOctbscanReference *bscan);
