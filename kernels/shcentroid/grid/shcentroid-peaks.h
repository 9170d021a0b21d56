/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Peaks of a frame, for the grid finder. */
#pragma once

#include "imk/image.h"

/* From the narrowest blur to the widest; each is twice the one before. */
enum { IMK_PEAKS_N_SCALES = 6 };
#define IMK_PEAKS_FIRST_SIGMA 0.6

/* A frame as float32, the blurs between which peaks are sought, and the peaks
 * of the present scale, the strongest first. */
typedef struct ImkPeak {
  double x, y;
  float strength;
} ImkPeak;

typedef struct ImkPeaks {
  uint32_t width, height;
  float *pixels;        /* [height][width] */
  float *narrow, *wide; /* blurred */
  float *scratch;
  double sigma; /* of the narrow blur, pixels */
  ImkPeak *peaks;
  uint32_t n, room;
} ImkPeaks;

/* Takes a checked u8 or u16 frame. Returns: IMK_ERROR_MEMORY; clear anyway */
ImkStatus imk_peaks_init (
    ImkPeaks *self, const ImkImage *frame, ImkError *error);

/* Finds the peaks of the next scale. Returns: IMK_ERROR_MEMORY */
ImkStatus imk_peaks_next (ImkPeaks *self, ImkError *error);

void imk_peaks_clear (ImkPeaks *self);

/* The order of float32 for qsort (). */
int imk_peaks_compare_floats (const void *a, const void *b);
