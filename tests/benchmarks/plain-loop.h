/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * plain_centroids: (what shcentroid is measured against)
 * @xy: x, y of each cell, row by row
 *
 * Algorithm 1 of Mocci et al. 2020 as one writes it down: for each cell, for
 * each of its pixels, three sums; whole pitches, cells of pitch x pitch from
 * the top left corner. The sums are integers from the corner of the cell, which
 * is both faster and more exact than the paper's floats. */
void plain_centroids (const uint8_t *frame, size_t stride, uint32_t columns,
    uint32_t rows, uint32_t pitch, float *xy);

/* Returns: the sum of @n words: one read of them and nothing else */
uint32_t plain_sum (const uint32_t *words, size_t n);

#ifdef __cplusplus
}
#endif
