/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What octbscan.h says follows Z, in float64, written from its words alone, for
 * a sequence of B-scans that remember those before them. */
#pragma once

#include "imk/octbscan.h"

/* One B-scan and what comes of it. */
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

/* Fills what comes of @n B-scans; the arrays are allocated. @pattern: (out):
 * [C][n_depths] complex, or NULL */
void imk_octbscan_finish_reference (const ImkOctbscanConfig *config,
    ImkOctbscanReference *bscans, uint32_t n, double *pattern);

void imk_octbscan_reference_clear (ImkOctbscanReference *bscan);
