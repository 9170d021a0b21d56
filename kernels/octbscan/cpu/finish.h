/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From Z, or its intensities, to the images of a job on the CPU: fixed pattern,
 * A-scans of the image, tracking, mean of B-scans, pictures. */
#pragma once

#include "octbscan/cpu/loops.h"
#include "octbscan/octbscan-backend.h"

typedef struct ImkOctbscanFinish ImkOctbscanFinish;

ImkStatus imk_octbscan_finish_new (const ImkOctbscanPlan *plan,
    const ImkOctbscanLoops *loops, ImkOctbscanFinish **self, ImkError *error);

/* Returns: the buffer for a job's Z, [H][n_depths] complex, rows in input
 * order; NULL if only intensities are needed */
float *imk_octbscan_finish_z (ImkOctbscanFinish *self);

/* Returns: the buffer for the intensities if there is none for Z, [H][n_depths]
 */
float *imk_octbscan_finish_intensity (ImkOctbscanFinish *self);

/* Returns: the flags of rows without an A-scan, [H]; NULL for integer samples
 */
uint8_t *imk_octbscan_finish_bad (ImkOctbscanFinish *self);

/* Discards the state from earlier B-scans. */
void imk_octbscan_finish_reset (ImkOctbscanFinish *self);

/* Makes the images of @job; the complex one only if there is a Z. */
void imk_octbscan_finish_run (ImkOctbscanFinish *self,
    const ImkOctbscanParams *params, const ImkOctbscanJob *job);

/* Returns: [C][n_depths] complex, NULL without a pattern */
const float *imk_octbscan_finish_pattern (const ImkOctbscanFinish *self);

/* @self may be NULL. */
void imk_octbscan_finish_free (ImkOctbscanFinish *self);
