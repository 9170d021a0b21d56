/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measures the interaction matrix: pokes a mirror, one frame after the other,
 * and reads the slopes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/shjudge.h"
#include "imk/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IMK_SHCALIBRATION_MAX_LATENCY 20 /* frames */
#define IMK_SHCALIBRATION_MAX_REPEATS 1000

typedef enum ImkShcalibrationMethod {
  IMK_SHCALIBRATION_PUSH_PULL,  /* each command alone, up and down */
  IMK_SHCALIBRATION_HADAMARD,   /* all commands at once, by the rows of a
                                 * Hadamard matrix, up and down: the noise is
                                 * smaller by the root of their number */
  IMK_SHCALIBRATION_SINUSOIDAL, /* up to 32 commands at once, each with a
                                 * frequency of its own, up to an eighth of the
                                 * frame rate */
} ImkShcalibrationMethod;

/**
 * ImkShcalibrationConfig: (what is poked, and how)
 * @size: set by imk_shcalibration_config_init, see imk/api.h
 * @n_cells, @n_commands: at least 1
 * @method: see the enumeration
 * @poke: amplitude, above 0
 * @n_repeats: of the whole, 2 to IMK_SHCALIBRATION_MAX_REPEATS
 * @n_frames: that are averaged for each poke, 1 to 1000
 * @dead: (nullable): [n_commands]: not 0 for those that are not poked
 *
 * @dead belongs to the caller. */
typedef struct ImkShcalibrationConfig {
  size_t size;
  uint32_t n_cells, n_commands;
  ImkShcalibrationMethod method;
  double poke;
  uint32_t n_repeats, n_frames;
  const uint8_t *dead;
} ImkShcalibrationConfig;

/**
 * ImkShcalibrationReport: (what was measured)
 * @latency: frames from a command to the slopes that it makes, with its
 *   fraction: 1 if a command acts on the next frame
 * @first, @last: frames after which it begins to act, and after which it has,
 *   as far as the noise lets them be seen
 * @n_frames: all frames
 * @n_unseen: cells that were not measured for any command
 * @noise: rms of the standard errors
 * @rms: of the elements
 * @n_lost: cells that were valid in most frames, but not measured for a
 *   command
 * @is_linear: false for a mirror that limits its own steps: each poke then
 *   lasted until all of its response was there
 * @is_settled: false if the response is longer than 100 frames: elements are
 *   too small */
typedef struct ImkShcalibrationReport {
  double latency;
  uint32_t first, last, n_frames, n_unseen;
  double noise, rms;
  uint32_t n_lost;
  bool is_linear, is_settled;
} ImkShcalibrationReport;

typedef struct ImkShcalibration ImkShcalibration;

typedef enum ImkShcalibrationState {
  IMK_SHCALIBRATION_RUNNING,
  IMK_SHCALIBRATION_DONE,
  IMK_SHCALIBRATION_NO_RESPONSE, /* slopes do not follow the commands */
  IMK_SHCALIBRATION_GAPS,        /* frames are missing too often */
  IMK_SHCALIBRATION_NONLINEAR,   /* SINUSOIDAL: the mirror does not follow a
                                  * step of two pokes in proportion */
} ImkShcalibrationState;

/* Push-pull, poke 0.1, 4 repeats, 1 frame. */
IMK_API void imk_shcalibration_config_init_sized (
    ImkShcalibrationConfig *config, size_t size);
static inline void
imk_shcalibration_config_init (ImkShcalibrationConfig *config)
{
  imk_shcalibration_config_init_sized (config, sizeof (*config));
}

/* Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY; @self untouched */
IMK_API ImkStatus imk_shcalibration_new (const ImkShcalibrationConfig *config,
    ImkShcalibration **self, ImkError *error);

/**
 * imk_shcalibration_process: (one frame)
 * @slopes: [2][n_cells]; @flags: (nullable): [n_cells]: as for
 *   imk_shreconstruct_process()
 * @pokes: (out): [n_commands]: to be added to the commands of a flat mirror; 0
 *   when it has ended
 *
 * First all commands follow a maximum length sequence of 255 frames. Its
 * correlation with the slopes is the response in time, which tells the latency.
 * A response of more than 20 frames takes a second one. Then come the pokes:
 * each lasts until 90 % of its response is there. Its neighbours overlap with
 * it, and the measured response tells how much, which is subtracted. Elements
 * are in slopes for each unit of a command. A mirror that limits its own steps
 * has echoes in the sequence. Its response to waves is another one, so
 * SINUSOIDAL refuses it.
 *
 * The frames in which a cell is invalid have no part in its estimates.
 * PUSH_PULL and HADAMARD take the mean of the others of the same poke; a cell
 * that one pattern of HADAMARD never has is unseen. SINUSOIDAL fits the waves
 * to the others, of up to 32 invalid frames, and a quarter, of a period of the
 * waves; with more of them the cell has no part in this repeat. Source: Pratt,
 * Kane and Andrews 1969, Proc. IEEE 57, 58 (the transform). */
IMK_API ImkShcalibrationState imk_shcalibration_process (ImkShcalibration *self,
    const float *slopes, const uint8_t *flags, float *pokes);

/* Before a frame: frames are missing between the last one and this one, in
 * which the mirror had the last pokes. Frames that see pokes of before the gap
 * have no part in the estimates, and these pokes are sent once more. Without a
 * frame that is of use in 1000, the state becomes IMK_SHCALIBRATION_GAPS. */
IMK_API void imk_shcalibration_interrupt (ImkShcalibration *self);

/* Returns: the part that is done, 0 to 1 */
IMK_API double imk_shcalibration_progress (const ImkShcalibration *self);

/**
 * imk_shcalibration_result: (after IMK_SHCALIBRATION_DONE)
 * @interaction: (out): [2 n_cells][n_commands]: the mean of the repeats; 0 for
 *   what has no finite @noise
 * @noise: (out): likewise, its standard error from the spread of the repeats;
 *   infinite for what was not seen or not poked, or too seldom to know it. The
 * variance is that of all commands with PUSH_PULL and HADAMARD, for each slope,
 * and with SINUSOIDAL that of the frequency of the command and its two
 * neighbours, or of more of them up to 6 degrees of freedom. The error of the
 * response in time, which changes all elements by one factor, is added
 * @report: (out) */
IMK_API void imk_shcalibration_result (const ImkShcalibration *self,
    float *interaction, float *noise, ImkShcalibrationReport *report);

/**
 * imk_shcalibration_judge: (after imk_shcalibration_result())
 * @interaction, @noise: as it has made them
 * @judgement: (out): what is wrong with them, by what was measured twice: the
 *   repeats, push against pull, and all commands at once, in the sequence,
 *   against the sum of their elements */
IMK_API void imk_shcalibration_judge (const ImkShcalibration *self,
    const float *interaction, const float *noise, ImkShjudgement *judgement);

/* @self may be NULL. */
IMK_API void imk_shcalibration_free (ImkShcalibration *self);

#ifdef __cplusplus
}
#endif
