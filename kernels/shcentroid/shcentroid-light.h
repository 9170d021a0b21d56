/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much of the light in the cells is not that of their spots, and which
 * threshold would leave none of it. */
#pragma once

#include <stdbool.h>

#include "imk/shcentroid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What threshold_mode RANGE begins with, where nothing is known. */
#define IMK_SHCENTROID_FIRST_FRACTION 0.2

/**
 * ImkShcentroidLight: (light of one frame)
 * @n_lit: cells with a spot that is not cut by the border; 0: the rest is
 *   undefined, but for the numbers of cells
 * @n_cut: cells with a spot that is cut
 * @n_hot: cells whose largest pixel stands alone, ten times as far above the
 *   median of its neighbours as any of them: hot pixels, cosmic rays
 * @n_uneven: other cells with a spot where the medians of opposite sides
 *   differ, in x and y together, by more than half its height
 * @n_doubled: cells with a second peak of half the height or more, a third of
 *   the cell or farther from the first
 * @n_between: cells of a grid without a spot, between two with one in their row
 *   or column; none of a map
 * @n_at_most: cells that need a higher threshold than the largest @fraction; 0
 *   where that suffices
 * @share: of the light that is not the spots', 0 to 1
 * @radius: of the median spot above the threshold, pixels
 * @height: of the median spot above the median of the border, counts
 * @step: of the values: q below; 0 where they are continuous
 * @pedestal: light of the median of the border under the pixels of a spot above
 *   the threshold, of its flux
 * @fraction, @least, @min_flux: threshold (of RANGE), threshold_least and
 *   min_flux that suit the frame
 *
 * The border of a cell are its outermost pixels. Its noise s is 1.05 times the
 * median difference of neighbours along the border. Where values have steps q
 * (1 of u8 and u16; the smallest difference where a tenth of them is 0) each is
 * spread over q first, and s^2 is at least half the mean of min (difference,
 * q)^2, plus q^2 / 12: continuous in noise and mean. Where a part f >= 1/4 of
 * the border equals its smallest value, as clipped below a dark, s is at least
 * the rms of differences / sqrt (2) / (1 - f)^0.75, up to 0.7 of the range.
 *
 * The level L is what a tenth of the border exceeds, plus 1.72 s: the mean plus
 * 3 s where the border is even; a background that slopes is below it, and the
 * wing of a spot at one edge does not lift it. A cell has a spot if its largest
 * value is above L + 2.4 s; the spot is cut if the border reaches half its
 * height.
 *
 * p are the pixels of a cell after calibration and threshold, before weight and
 * power. b is the mean of p over the border; b n / m00 is the share of a cell
 * of n pixels with the flux m00 = sum p. A centroid moves by 1 - share of what
 * its spot does. @share, @radius, @height, @step and @pedestal are medians over
 * the cells.
 *
 * @least: L of the cells, exceeded by 9 of 10. @fraction: T above L also where
 * L is higher than that by s, in 3 of 4 such cells; 0.2 to 0.6.
 * @min_flux: what the noise of a cell without light stays below; the median of
 * s (1 + 0.001 n + 0.12 sqrt (n)). */
typedef struct ImkShcentroidLight {
  uint32_t n_lit, n_cut, n_hot, n_uneven, n_at_most;
  uint32_t n_doubled, n_between;
  double share, radius, pedestal;
  double height, step;
  double fraction, least, min_flux;
} ImkShcentroidLight;

/**
 * imk_shcentroid_look: (measures the light of one frame)
 * @config: one that imk_shcentroid_new took, with all it points to; its frame,
 *   cells, calibration, threshold and brightest are looked at
 * @frame: as for imk_shcentroid_process, in host memory
 *
 * CPU only; some 30 ns a pixel. Returns: IMK_ERROR_MEMORY, IMK_ERROR_IMAGE;
 * @light untouched */
IMK_API ImkStatus imk_shcentroid_look (const ImkShcentroidConfig *config,
    const ImkImage *frame, ImkShcentroidLight *light, ImkError *error);

/* Cells of a glance, at most. */
#define IMK_SHCENTROID_GLANCE 256

/**
 * imk_shcentroid_glance: (looks for a spot in some cells of a frame)
 * @turn: glance number; so many in a row look at every cell once
 * @has_spots: whether one of the cells has a spot, cut by the border or not
 *
 * For frames that may be dark: takes as long as imk_shcentroid_look() of 256
 * cells. A grid of at most that many is looked at as a whole.
 * Returns: as imk_shcentroid_look() */
IMK_API ImkStatus imk_shcentroid_glance (const ImkShcentroidConfig *config,
    const ImkImage *frame, uint32_t turn, bool *has_spots, ImkError *error);

#ifdef __cplusplus
}
#endif
