/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The minimum-variance mean line, see ImkOctbscanFixedPattern. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Depths that are searched at a time. */
enum { IMK_OCTBSCAN_PATTERN_DEPTHS = 64 };

/* Complex numbers of @n rows, @pitch floats apart. */
typedef struct ImkOctbscanLines {
  const float *z;
  size_t pitch;
  uint32_t n;
  const uint8_t *bad; /* rows that do not count, @bad_step apart; or NULL */
  uint32_t bad_step;
} ImkOctbscanLines;

/* Splits @lines into @n_segments of at least two rows.
 * @n_depths: up to IMK_OCTBSCAN_PATTERN_DEPTHS
 * @pattern: (out): [n_depths] complex: the mean of the segment with the least
 *   variance, depth by depth; 0 where no segment has two rows that count */
void imk_octbscan_find_pattern (const ImkOctbscanLines *lines,
    uint32_t n_segments, uint32_t n_depths, float *pattern);
