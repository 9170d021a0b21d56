/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Judges an interaction matrix by what its calibration measured twice. Plain
 * arithmetic, with memory of the caller. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IMK_SHJUDGE_MAX_NAMED 8 /* commands that a judgement names */

/* In the order in which they are told: the first one that holds. */
typedef enum ImkShjudgeVerdict {
  IMK_SHJUDGE_GOOD,
  IMK_SHJUDGE_NO_RESPONSE, /* no command is above the noise */
  IMK_SHJUDGE_UNMEASURED,  /* no element has a finite standard error */
  IMK_SHJUDGE_SATURATED,   /* spots are */
  IMK_SHJUDGE_INCOMPLETE,  /* too many elements were not measured */
  IMK_SHJUDGE_UNSETTLED,   /* the mirror moves for too long */
  IMK_SHJUDGE_LIMITED,     /* the mirror limits its own steps */
  IMK_SHJUDGE_DRIFTING,    /* the response changed from repeat to repeat */
  IMK_SHJUDGE_NONLINEAR,   /* the pokes are too large */
  IMK_SHJUDGE_ONE_SIDED,   /* for one command, which stops on one side */
  IMK_SHJUDGE_NOISY,       /* the pokes are too small */
  IMK_SHJUDGE_UNSEEN, /* some commands are not above noise and cross-talk */
} ImkShjudgeVerdict;

/**
 * ImkShjudgement: (of a calibration)
 * @n_unseen, @unseen: commands that are not above the noise, and the first of
 *   them: none of their elements exceeds t standard errors, which noise alone
 *   exceeds in one of 100 commands. Commands of which more than a tenth of the
 *   elements was not measured are not among them
 * @n_hidden: of them, those above the noise, with elements of an rms of at most
 *   1.5 @superposition (0.1 at most) times that of all elements. Without
 *   @is_single, nonlinearity of the others leaves as much in the column of a
 *   dead actuator
 * @noise: rms of the standard errors, relative to that of the elements without
 *   noise
 * @noisy: share of the elements with a standard error above a tenth of the rms
 *   of all elements
 * @push_pull: rms of the mean of push and pull, relative to half of their
 *   difference; NaN where it is not known
 * @worst, @worst_push_pull: the command of which this is largest, but for the
 *   first and the last one, and its own; 0 where it is not known
 * @superposition: rms of what pokes of all commands at once differ from the sum
 *   of the elements, relative to that sum; NaN where it is not known
 * @drift: by how much the response changed from the first repeat to the last,
 *   as a share of it; NaN where it is not known
 * @n_saturated: cells with a saturated spot in more than a fiftieth of the
 *   frames
 * @missing: share of the elements of lit cells and live commands without a
 *   finite standard error: they were not measured */
typedef struct ImkShjudgement {
  ImkShjudgeVerdict verdict;
  uint32_t n_unseen, n_hidden, unseen[IMK_SHJUDGE_MAX_NAMED];
  double noise, noisy, push_pull, superposition, drift;
  uint32_t n_saturated;
  double missing;
  uint32_t worst;
  double worst_push_pull;
} ImkShjudgement;

/**
 * ImkShjudgeData: (what was measured)
 * @interaction, @noise: [n_slopes][n_commands], as of
 *   imk_shcalibration_result()
 * @lit: (nullable): [n_slopes / 2]: not 0 for cells that have light, NULL if
 *   all have
 * @live: [n_live]: commands that were poked
 * @n_free: degrees of freedom of @noise
 * @whole, @whole_error: [n_slopes]: response to @pattern of all live commands
 *   times @poke, and its standard error; NaN where it is not known
 * @is_single: whether the elements are of pokes of one command at a time
 * @even, @even_noise: power of the means of push and pull, and what noise has
 *   of it; @odd: power of half of their differences; @n_even: pairs; @n_repeats
 * @worst, @worst_even, @worst_odd: with @is_single, the command with the
 * largest power of the mean of push and pull by that of half of their
 * difference
 * @drift, @drift_error, @n_saturated: see ImkShjudgement
 * @is_limited, @is_settled: of the mirror */
typedef struct ImkShjudgeData {
  const float *interaction, *noise;
  uint32_t n_slopes, n_commands;
  const uint8_t *lit;
  const uint32_t *live;
  uint32_t n_live, n_free;
  const double *whole, *whole_error;
  const int8_t *pattern;
  double poke;
  bool is_single;
  double even, even_noise, odd;
  uint32_t n_even, n_repeats;
  uint32_t worst;
  double worst_even, worst_odd;
  double drift, drift_error;
  uint32_t n_saturated;
  bool is_limited, is_settled;
} ImkShjudgeData;

/* What cannot be told from noise is no fault: drift and nonlinearity are faults
 * above a tenth (a quarter of @superposition with @is_single, a fifth for one
 * command) and 5 standard errors, noise above 0.3, and missing elements above a
 * tenth. */
IMK_API void imk_shjudge (
    const ImkShjudgeData *data, ImkShjudgement *judgement);

/* @text: one sentence, of what is wrong and what to do, or "good" */
IMK_API void imk_shjudge_describe (
    const ImkShjudgement *judgement, char *text, size_t size);

#ifdef __cplusplus
}
#endif
