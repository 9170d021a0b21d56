/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of a calibration share. */
#pragma once

#include "imk/shcalibration.h"
#include "imk/shjudge.h"
#include "shreconstruct/calibration/shresponse.h"

enum {
  MAX_LAG = IMK_SHCALIBRATION_MAX_LATENCY,
  PERIOD = IMK_SHRESPONSE_PERIOD,
  MAX_RESPONSE_LAG = IMK_SHRESPONSE_MAX_LAG,
  GROUP_SIZE = 32,                /* commands with a frequency each */
  IMK_SHCALIBRATION_MIN_FREE = 6, /* degrees of freedom of an error */
  MAX_GAPS = 32, /* frames of a group in which a cell can be invalid */
};

/* The estimates of one element. */
typedef struct Spread {
  double mean, squares; /* of deviations from it */
  uint32_t n;
  float trend; /* sum of the estimates, each times its number, from 0 */
  float
      turned; /* of those of odd repeats, which have waves of the other sign */
  uint16_t n_turned;
} Spread;

struct ImkShcalibration {
  ImkShcalibrationConfig config;
  uint32_t n_slopes, n_live, *live; /* commands that are poked */
  ImkShcalibrationState state;
  uint32_t n_frames;  /* so far */
  uint32_t n_unsure;  /* frames to come that see pokes of before a gap */
  uint32_t n_spoiled; /* such frames since one that is of use */
  double progress;    /* the most so far: pokes are sent once more after gaps */
  Spread *spread;     /* [n_live][n_slopes]; HADAMARD: [order], of the patterns,
                       * and of the commands at the end */
  uint8_t *valid;     /* [n_cells], of the frame */
  uint32_t *n_valid;  /* [n_cells]: frames */
  uint32_t *n_saturated; /* [n_cells]: likewise */

  /* the latency */
  int8_t sequence[PERIOD];
  bool has_phase[PERIOD]; /* of the sequence: a frame that is of use */
  uint32_t n_phases;
  bool is_long;        /* a second period, for a slow mirror */
  int8_t *pattern;     /* [n_live]: signs */
  double *responses;   /* [MAX_LAG + 1][n_slopes] */
  double *mean;        /* [n_slopes] */
  float *frames;       /* [PERIOD][n_slopes]: by phase */
  ImkShresponse shape; /* of the response; @last is 0 before it is known */
  /* that its error makes, of commands in turn */
  double scale_errors[GROUP_SIZE];

  /* pokes: frame @f of them, in repeat @repeat */
  uint32_t f, repeat, order; /* @order: of the Hadamard matrix */
  double *sum;               /* [n_slopes]: of the frames of a poke */
  uint32_t *n_seen;          /* [n_cells]: such frames */
  double *before;   /* [n_slopes]: mean of the first of a pair, or NaN */
  double *estimate; /* [order or 2 GROUP_SIZE][n_slopes] */
  double *inverse;  /* [4][n_rows]: of what pairs have of each other, and
                     * scratch */

  /* what the judgement needs */
  uint8_t *lit;                /* [n_cells]: valid in most frames */
  double *whole, *whole_error; /* [n_slopes]: see ImkShjudgeData */
  double *means; /* [3][n_slopes]: of push and pull, of three pairs */
  float *even;   /* [n_rows][n_slopes]: sums of what a pair's mean differs
                  * from that of its neighbours */
  double *even_squares; /* [n_slopes]: of all these */
  double drift, drift_error;
  double odd, *odds; /* power of pairs, and of each: [n_rows] */

  uint32_t *n_gaps; /* [n_cells]: invalid frames of a group */
  uint32_t *gaps;   /* [n_cells][MAX_GAPS]: which */
};

static inline double
imk_shcalibration_slope_of (
    const ImkShcalibration *s, const float *slopes, uint32_t i)
{
  return s->valid[i % s->config.n_cells] ? slopes[i] : 0;
}

/* Returns: commands that are poked, or patterns of HADAMARD */
static inline uint32_t
imk_shcalibration_n_rows (const ImkShcalibration *s)
{
  return s->config.method == IMK_SHCALIBRATION_HADAMARD ? s->order : s->n_live;
}

/* --- the latency: shlatency.c --------------------------------------------- */

void imk_shcalibration_make_signs (ImkShcalibration *s);

/* A frame for each phase of a period, so that the sequence is orthogonal to its
 * shifts. Returns: whether it goes on */
bool imk_shcalibration_follow_sequence (
    ImkShcalibration *s, const float *slopes, float *pokes);

/* The response to the whole sequence, as a matrix would have it, before the
 * next period begins. */
void imk_shcalibration_find_whole (ImkShcalibration *s);

/* --- pokes: shpairs.c, shhadamard.c, shwaves.c ---------------------------- */

void imk_shcalibration_follow_pairs (
    ImkShcalibration *s, const float *slopes, float *pokes);

/* Returns: the sign of a command, counted from 1, in a pattern */
int imk_shcalibration_hadamard (uint32_t row, uint32_t column);

/* From patterns to commands. */
void imk_shcalibration_end_patterns (ImkShcalibration *s);

/* Returns: frames of a group of waves */
uint32_t imk_shcalibration_period_of (const ImkShcalibration *s);

void imk_shcalibration_follow_waves (
    ImkShcalibration *s, const float *slopes, float *pokes);

/* --- the noise: shspread.c ------------------------------------------------ */

void imk_shcalibration_add_estimate (
    ImkShcalibration *s, uint32_t k, uint32_t i, double value);

/* With waves of the other sign in odd repeats, a drift of the slopes is in
 * their estimates with the other sign: takes it out of the means, the squares
 * and the trends. */
void imk_shcalibration_remove_drift (ImkShcalibration *s);

/* Before imk_shcalibration_error_of(); not with HADAMARD. */
void imk_shcalibration_pool_spreads (const ImkShcalibration *s);
double imk_shcalibration_error_of (
    const ImkShcalibration *s, uint32_t k, uint32_t i);

/* --- the judgement: shtwice.c ----------------------------------------------
 */

/* The mean of push and pull of one more pair, in @means[row % 3]. A drift is
 * removed by comparing it with its two neighbours. */
void imk_shcalibration_add_even (ImkShcalibration *s, uint32_t row);

/* Sets @even, @even_noise, @odd, @n_even, and what is worst. */
void imk_shcalibration_get_even (
    const ImkShcalibration *s, ImkShjudgeData *data);

/* How the response changed with the repeats; before the patterns of HADAMARD
 * become commands. */
void imk_shcalibration_find_drift (ImkShcalibration *s);
