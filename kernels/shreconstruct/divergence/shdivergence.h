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

/* @config: of the loop: its controller, offsets and @dark; its matrices are not
 * read */
IMK_API void imk_shdivergence_set_controller (
    ImkShdivergence *self, const ImkShreconstructConfig *config);

/* The loop closes with the next frame.
 * @coefficients: [n_modes]: before it */
IMK_API void imk_shdivergence_begin (
    ImkShdivergence *self, const float *coefficients);

/**
 * imk_shdivergence_follow: (a frame of a closed loop)
 * @slopes: (nullable): [2][n_cells]: all dx, then all dy. Without them only
 *   limits are followed
 * @flags: (nullable): [n_cells], as in imk_shreconstruct_process()
 * @coefficients: [n_modes]: after the frame
 * @frame: what was done in it
 * @report: (out): only with a verdict
 *
 * The corrections u = -R s are what the loop acts on: slopes that R does not
 * see are no fault of it. They are found from the coefficients, and compared
 * with those of the first 3 frames. A loop drives away in one of four cases:
 *
 * 1. Half of the commands, or more, are at a limit in 90 of 100 frames.
 * 2. Half of the cells that were valid are lost in 50 of 100 frames, and the
 *    rms of the slopes in the last other frames is twice as large as at
 *    closing. Where no cell is valid, u has also grown twice, as below: else
 *    the light is lost
 * 3. Dark frames bring the mirror to the reference, and 5 lights, one after the
 *    other, end with slopes twice as large as at their begin.
 * 4. In each of 3 windows, one after the other, the rms of u is above 1.2 times
 *    that at closing, and it grows, lasts or jumps.
 *
 * It grows: to a new largest rms, 2.7 times beyond that at closing, in one
 * direction with what it had sent and in proportion to it within a factor of
 * 1.6. The commands make the slopes. In the window it is above 0.4 of its
 * largest value.
 *
 * It lasts: 40 % of its mean square do from window to window, and are above 0.7
 * times the coefficients. A leak holds a loop of the wrong sign; a drift leaves
 * less. It is above 0.7 of its largest value.
 *
 * It jumps: it is above 2.5 times that at closing and 0.7 of its largest value,
 * and the coefficients change by half of themselves or more from frame to
 * frame.
 *
 * A window has 50 frames or more: until the commands can have taken u away,
 * which is 1 / gain frames. Dark frames count in 2 and 3 only.
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
