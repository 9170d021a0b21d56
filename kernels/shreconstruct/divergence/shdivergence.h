/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether a closed loop drives its mirror away. It changes nothing. */
#pragma once

#include <stdint.h>

#include "imk/shreconstruct.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ImkShdivergenceVerdict {
  IMK_SHDIVERGENCE_NONE,    /* or it was told before */
  IMK_SHDIVERGENCE_LIMITED, /* by commands at their limits */
  IMK_SHDIVERGENCE_SLOPES,  /* by residual slopes */
} ImkShdivergenceVerdict;

/**
 * ImkShdivergenceReport: (the figures of a verdict)
 * @n_frames: since the loop closed
 * @rms_at_closing, @rms: of the residual slopes, in their unit: of the first 3
 *   frames, on which the mirror has not acted; and of the last frames */
typedef struct ImkShdivergenceReport {
  uint32_t n_frames;
  double rms_at_closing, rms;
} ImkShdivergenceReport;

/* Of the last IMK_SHDIVERGENCE_COUNTED frames, those with half of the commands
 * at a limit, from which on a loop is told. */
enum { IMK_SHDIVERGENCE_COUNTED = 100, IMK_SHDIVERGENCE_LIMITED_FRAMES = 90 };

typedef struct ImkShdivergence ImkShdivergence;

/* @n_cells, @n_modes, @n_commands: of the loop, each 1 or more
 * Returns: IMK_ERROR_MEMORY; @self untouched */
IMK_API ImkStatus imk_shdivergence_new (uint32_t n_cells, uint32_t n_modes,
    uint32_t n_commands, ImkShdivergence **self, ImkError *error);

/* @offsets: (nullable): [2 n_cells]: slopes that the loop holds; 0 without */
IMK_API void imk_shdivergence_set_offsets (
    ImkShdivergence *self, const float *offsets);

/* The loop closes with the next frame. */
IMK_API void imk_shdivergence_begin (ImkShdivergence *self);

/**
 * imk_shdivergence_follow: (a frame of a closed loop)
 * @slopes: (nullable): [2][n_cells]: all dx, then all dy. Without them, as
 *   where they stay on a device, only limits are followed
 * @flags: (nullable): [n_cells], as in imk_shreconstruct_process()
 * @coefficients: [n_modes]: after the frame
 * @frame: what was done in it
 * @report: (out): only with a verdict
 *
 * A loop drives away in one of three cases. The first: half of the commands, or
 * more, are at a limit in 90 of 100 frames. The second: half of the cells that
 * were valid are lost in 50 of 100 frames, and the rms of the residual slopes
 * in the last other frames is twice as large as at closing. The third: in each
 * of 3 windows of 50 frames, one after the other, the rms of the residual
 * slopes is above 0.7 of its largest value, and one of two holds. It is above
 * 1.2 times that of the frames before the mirror acted, and 40 % of the mean
 * square are slopes that last: their means over the window. Or it is above
 * 2.5 times that, and the coefficients jump by 22 % of themselves or more from
 * frame to frame. A loop that holds leaves no lasting slopes, but for a leak's,
 * which are smaller than without the mirror. Neither the leak nor the range of
 * the sensor changes that. Dark frames count in the second case only.
 *
 * A verdict comes once: until imk_shdivergence_begin() no frame is followed.
 * Source: docs/reference/shreconstruct.md, "A loop that drives away", has how
 * many simulated loops it tells, and how many that hold. */
IMK_API ImkShdivergenceVerdict imk_shdivergence_follow (ImkShdivergence *self,
    const float *slopes, const uint8_t *flags, const float *coefficients,
    const ImkShreconstructReport *frame, ImkShdivergenceReport *report);

/* @self may be NULL. */
IMK_API void imk_shdivergence_free (ImkShdivergence *self);

#ifdef __cplusplus
}
#endif
