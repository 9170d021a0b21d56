/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The response in time of all slopes to one sequence of signs, and what it does
 * to pokes that are shorter. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  IMK_SHRESPONSE_PERIOD = 255,  /* frames of the sequence */
  IMK_SHRESPONSE_MAX_LAG = 100, /* frames after which a mirror has moved */
};

/**
 * ImkShresponse: (of a mirror and a sensor)
 * @impulse: shares of a step that the frames after it add; their sum is 1
 * @first, @last: lags of the first and the last share above the noise
 * @begin, @settle: the shortest range of lags that leaves out a tenth
 * @error: standard error of a share
 * @hidden: the larger share just outside of @first and @last: a fraction of a
 *   frame that the noise may hide
 * @latency: mean lag, in frames
 * @is_linear: whether noise explains what is no response
 * @is_settled: whether the response ends within IMK_SHRESPONSE_MAX_LAG */
typedef struct ImkShresponse {
  double impulse[IMK_SHRESPONSE_MAX_LAG + 1];
  uint32_t first, last, begin, settle;
  double error, hidden, latency;
  bool is_linear, is_settled;
} ImkShresponse;

/* x^8 + x^6 + x^5 + x^4 + 1 */
void imk_shresponse_make_sequence (int8_t sequence[IMK_SHRESPONSE_PERIOD]);

/**
 * imk_shresponse_find: (from one period)
 * @frames: [IMK_SHRESPONSE_PERIOD][n_slopes]: of each phase of the sequence;
 *   NaN for invalid cells; becomes deviations from @means
 * @means: [n_slopes]: of the frames
 * @direction: [n_slopes]: the response at the lag @best
 *
 * Shares are the correlations of the sequence with the frames along @direction,
 * for all lags of a period. Those above the longest response have noise alone.
 * There a mirror that is not linear, for example one that limits its own steps,
 * has echoes: a product of shifted sequences is the sequence with one more
 * shift (Godfrey 1993, Perturbation Signals for System Identification).
 *
 * Returns: whether there is an answer */
bool imk_shresponse_find (const int8_t *sequence, float *frames,
    const double *means, const double *direction, size_t n_slopes,
    uint32_t best, ImkShresponse *response);

/**
 * imk_shresponse_invert: (for pairs of pokes up and down, one after the other)
 * @n_frames: that are averaged, the last of each poke
 * @inverse: (out): [n_pairs]: element @d is what the pair @d places before has
 *   in the true difference of a pair; with a minus beyond the first pair, since
 *   the signs of a repeat are those of the one before, reversed
 * @scratch: [2 n_pairs]
 * Returns: the relative error of all differences from @error of the response */
double imk_shresponse_invert (const ImkShresponse *response, uint32_t n_frames,
    uint32_t n_pairs, double *inverse, double *scratch);
