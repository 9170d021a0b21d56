/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the lenslets are arranged. */
typedef enum ImkShcentroidLattice {
  IMK_SHCENTROID_LATTICE_ANY, /* whichever fits more spots; never found */
  IMK_SHCENTROID_LATTICE_SQUARE,
  IMK_SHCENTROID_LATTICE_HEXAGONAL,
} ImkShcentroidLattice;

/**
 * ImkShcentroidSpot: (one lenslet that is lit)
 * @column, @row: whole numbers i, j of its lattice point, from 0
 * @x, @y: the lattice point, pixels, (0, 0) the centre of the top left one
 * @spot_x, @spot_y: where the spot is
 * @strength: of its peak above the surroundings, counts */
typedef struct ImkShcentroidSpot {
  int32_t column, row;
  double x, y;
  double spot_x, spot_y;
  double strength;
} ImkShcentroidSpot;

/**
 * ImkShcentroidGrid: (where the lenslets are)
 * @lattice: SQUARE or HEXAGONAL
 * @pitch: from one lenslet to the next, pixels; the geometric mean of both
 *   directions
 * @rotation: radians, from the x axis to the rows of lenslets, positive from x
 *   to y (clockwise as a picture is seen): in (-pi/4, pi/4] of a square
 *   lattice, (-pi/6, pi/6] of a hexagonal one
 * @origin_x, @origin_y: the lattice point of column 0, row 0
 * @column_x, @column_y: the step from one column to the next, pixels
 * @row_x, @row_y: the step from one row to the next, 90 or 60 degrees from
 *   that of the columns but for the distortion of the camera
 * @columns, @rows: how many the lit ones span; a hexagonal one is skewed
 * @rms: distance of the spots from their lattice points, pixels, without the
 *   few that lie apart
 * @n_unplaced: peaks half as strong as the median spot or stronger that lie on
 *   no point of the lattice and beside no spot: lenslets that were left out,
 *   where an aberration moves their spots too far, or stray light
 * @spots: row by row, @n_spots of them
 *
 * Point (i, j) is origin + i column + j row. */
typedef struct ImkShcentroidGrid {
  ImkShcentroidLattice lattice;
  double pitch, rotation;
  double origin_x, origin_y;
  double column_x, column_y, row_x, row_y;
  uint32_t columns, rows;
  double rms;
  uint32_t n_unplaced;
  ImkShcentroidSpot *spots;
  uint32_t n_spots;
} ImkShcentroidGrid;

/**
 * imk_shcentroid_find_grid: (finds the lenslets in one reference frame)
 * @frame: u8, u16 or f32, one channel, in host memory, at least 16 pixels a
 *   side; f32 samples that are not finite count as the smallest
 * @lattice: what to look for
 * @least: spots below this part of the median strength are not lit: above 0,
 *   below 1; 0.1 suits most
 * @grid: (out): free with imk_shcentroid_grid_clear
 *
 * No pitch has to be known. Spots are the peaks of the frame between two
 * Gaussian blurs, at six widths; the differences of neighbouring spots propose
 * pitch and rotation; what explains most spots and leaves fewest points of the
 * lattice empty wins. The result is the least squares fit of origin and both
 * steps to the centroids of the lit spots that are whole in the frame, without
 * those that lie apart.
 * Spots may be missing (a vignetted or obscured pupil), the background may
 * vary, hot pixels and stray light may be there. Needs 7 spots of a pitch of 4
 * pixels or more, of which most lie within a fifth of the pitch of their
 * points; a spot with no other within two steps is taken for a speck. CPU only;
 * takes about a second a megapixel. Returns: IMK_ERROR_IMAGE, also when there
 * is no grid in the frame; IMK_ERROR_CONFIG, IMK_ERROR_MEMORY; @grid untouched
 */
IMK_API ImkStatus imk_shcentroid_find_grid (const ImkImage *frame,
    ImkShcentroidLattice lattice, double least, ImkShcentroidGrid *grid,
    ImkError *error);

/**
 * imk_shcentroid_grid_side: (of the square cell for each lenslet)
 * Returns: the pitch of a square lattice; 0.93 pitches of a hexagonal one, a
 *   square of the area of its hexagon */
IMK_API double imk_shcentroid_grid_side (const ImkShcentroidGrid *grid);

/* Frees the spots; for all zeroes too. */
IMK_API void imk_shcentroid_grid_clear (ImkShcentroidGrid *grid);

#ifdef __cplusplus
}
#endif
