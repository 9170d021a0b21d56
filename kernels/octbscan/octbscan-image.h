/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From intensities to pictures on the CPU. */
#pragma once

#include "octbscan/octbscan-backend.h"
#include "octbscan/octbscan-lanes.h"
#include "octbscan/octbscan-pool.h"

/* Intensities of A-scans, @n_depths each, and how they are shown. */
typedef struct ImkOctbscanPicture {
  const float *intensity; /* [n_ascans][n_depths] */
  const uint8_t *dead;    /* [n_ascans], or NULL: no part in the range */
  uint32_t n_ascans, n_depths;
  bool depth_down, flips_depth;
} ImkOctbscanPicture;

/* Black and white. @counts: IMK_OCTBSCAN_N_BINS of room; @ends: (out): as in
 * ImkOctbscanJob */
void imk_octbscan_picture_range (const ImkOctbscanPicture *picture,
    const ImkOctbscanParams *params, uint32_t *counts, float ends[4]);

/* Returns: bytes a thread needs to write pictures */
size_t imk_octbscan_picture_scratch_size (uint32_t n_depths);

/* @low, @high: dB or intensities, as @db says; @image: u8, u16 or f32, may be
 * NULL; @pool: of blocks of that size */
void imk_octbscan_picture_write (const ImkOctbscanPicture *picture, bool db,
    float low, float high, const ImkImage *image, ImkOctbscanPool *pool,
    uint32_t n_threads);
