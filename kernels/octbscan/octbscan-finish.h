/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From Z, or its intensities, to the images of a job on the CPU: fixed pattern,
 * A-scans of the image, tracking, mean of B-scans, pictures. */
#pragma once

#include "octbscan/octbscan-backend.h"

typedef struct ImkOctbscanFinish ImkOctbscanFinish;

ImkStatus imk_octbscan_finish_new (
    const ImkOctbscanPlan *plan, ImkOctbscanFinish **self, ImkError *error);

/* Where a job's Z is to be put, [H][n_depths] complex, rows as they came; NULL
 * when only intensities are wanted. */
float *imk_octbscan_finish_z (ImkOctbscanFinish *self);

/* Where they are to be put without that, [H][n_depths]. */
float *imk_octbscan_finish_intensity (ImkOctbscanFinish *self);

/* Which rows have no A-scan, [H]; NULL where samples are integers. */
uint8_t *imk_octbscan_finish_bad (ImkOctbscanFinish *self);

/* Forgets the B-scans so far. */
void imk_octbscan_finish_reset (ImkOctbscanFinish *self);

/* Makes the images of @job, the complex one only where there is a Z. */
void imk_octbscan_finish_run (ImkOctbscanFinish *self,
    const ImkOctbscanParams *params, const ImkOctbscanJob *job);

/* [C][n_depths] complex, NULL without a pattern. */
const float *imk_octbscan_finish_pattern (const ImkOctbscanFinish *self);

/* @self may be NULL. */
void imk_octbscan_finish_free (ImkOctbscanFinish *self);
