/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From intensities to pictures on the CPU. */
#pragma once

#include "octbscan/octbscan-backend.h"
#include "octbscan/cpu/loops.h"
#include "core/pool.h"

/* Intensities of A-scans and their layout in the image. */
typedef struct ImkOctbscanPicture {
  const ImkOctbscanLoops *loops;
  const float *intensity; /* [n_ascans][n_depths] */
  const uint8_t *dead;    /* [n_ascans], left out of the range, or NULL */
  uint32_t n_ascans, n_depths;
  bool depth_down, flips_depth;
} ImkOctbscanPicture;

/* Finds black and white. @counts: scratch, [IMK_OCTBSCAN_N_BINS]; @ends: (out):
 * as in ImkOctbscanJob */
void imk_octbscan_picture_range (const ImkOctbscanPicture *picture,
    const ImkOctbscanConfig *config, uint32_t *counts, float ends[4]);

/* Returns: bytes of scratch for one thread */
size_t imk_octbscan_picture_scratch_size (uint32_t n_depths);

/* @low, @high: dB or intensities, as @db says; @image: u8, u16 or f32, may be
 * NULL; @pool: of blocks of that size */
void imk_octbscan_picture_write (const ImkOctbscanPicture *picture, bool db,
    float low, float high, const ImkImage *image, ImkPool *pool,
    uint32_t n_threads);
