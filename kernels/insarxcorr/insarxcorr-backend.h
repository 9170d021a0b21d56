/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between insarxcorr.c, which validates and plans, and the backends. */
#pragma once

#include "imk/insarxcorr.h"

IMK_BEGIN_DECLS

#define IMK_INSARXCORR_WINDOW 8 /* samples a side around the peak */

/* Samples that PRECISE takes beyond what it looks at: an FFT joins the ends of
 * a patch, which shows near them. */
#define IMK_INSARXCORR_MARGIN 8

/* One patch of each side: its first column in the band and first line in the
 * image. Columns may lie beyond the band, which ends there as the image does;
 * lines may lie beyond the image. */
typedef struct ImkInsarxcorrPatch {
  int32_t x, y;             /* centre, as reported */
  int32_t shift_x, shift_y; /* of the secondary's patch */
  int32_t column[IMK_INSARXCORR_N_SIDES];
  int32_t line[IMK_INSARXCORR_N_SIDES];
  uint32_t flags; /* those known beforehand: OUTSIDE, MASKED | NO_DATA */
} ImkInsarxcorrPatch;

/* Columns of an image that stand together in its band. */
typedef struct ImkInsarxcorrSpan {
  uint32_t column, width; /* in the image */
  uint32_t at;            /* in the band */
} ImkInsarxcorrSpan;

/* Line l of the image is row l % n_lines of the band. */
typedef struct ImkInsarxcorrBand {
  uint32_t width, n_lines;
  uint32_t image_height;
  uint32_t n_spans;
  ImkInsarxcorrSpan *spans;
} ImkInsarxcorrBand;

/* What one backend state works on: patches [first, first + n) of each row. */
typedef struct ImkInsarxcorrPart {
  uint32_t first, n;
  ImkInsarxcorrBand bands[IMK_INSARXCORR_N_SIDES];
} ImkInsarxcorrPart;

/* The lines of a side that a row reads are [first, end); none when end is not
 * above first. No later row reads lines before first. */
typedef struct ImkInsarxcorrLines {
  uint32_t first, end;
} ImkInsarxcorrLines;

/* Sizes behind the interpolation, in its samples. COMPAT: amplitudes of both
 * sides are whole patches; PRECISE: the template and what is searched. */
typedef struct ImkInsarxcorrFine {
  uint32_t interp_x, interp_y;
  uint32_t width[IMK_INSARXCORR_N_SIDES], height[IMK_INSARXCORR_N_SIDES];
  uint32_t fft_width, fft_height; /* of the correlation */
  uint32_t n_lags_x, n_lags_y;    /* lag 0 is n_lags / 2 */
} ImkInsarxcorrFine;

/* Valid as long as the backend's state. */
typedef struct ImkInsarxcorrPlan {
  ImkInsarxcorrConfig config; /* complete; without mask and gross offsets */
  uint32_t patch_width[IMK_INSARXCORR_N_SIDES];
  uint32_t patch_height[IMK_INSARXCORR_N_SIDES];
  ImkInsarxcorrFine fine;
  double n_samples; /* of the template, before interpolation */
  uint32_t n_parts;
  ImkInsarxcorrPart parts[IMK_INSARXCORR_MAX_DEVICES];
  ImkInsarxcorrPatch *patches;                       /* [ny][nx] */
  ImkInsarxcorrLines *lines[IMK_INSARXCORR_N_SIDES]; /* [ny] */
  uint32_t end[IMK_INSARXCORR_N_SIDES]; /* no row reads lines from here on */
  uint64_t work_limit; /* bytes for the work of a part; 0 for any */
} ImkInsarxcorrPlan;

typedef struct ImkInsarxcorrBackend {
  IMK_BACKEND_HEADER;
  ImkStatus (*create) (const ImkInsarxcorrPlan *plan, uint32_t part,
      void **state, ImkError *error);
  /* @lines: of the whole width; the first is @line of the image; they fit.
   * Returns when they may be written again, and can be read by process */
  ImkStatus (*push) (void *state, ImkInsarxcorrSide side, uint32_t line,
      const ImkImage *lines, ImkError *error);
  /* @out: of the whole row, of which the part writes its own */
  ImkStatus (*process) (
      void *state, uint32_t row, ImkImage *out, void *stream, ImkError *error);
  void (*destroy) (void *state);
} ImkInsarxcorrBackend;

extern const ImkInsarxcorrBackend imk_insarxcorr_cpu;
extern const ImkInsarxcorrBackend imk_insarxcorr_cuda;

/* @state: of imk_insarxcorr_cpu */
void imk_insarxcorr_cpu_cancel (void *state, bool cancel);

/* Sizes that follow from a valid @config, which gets its window, nx and ny. */
void imk_insarxcorr_plan_sizes (
    ImkInsarxcorrPlan *plan, const ImkInsarxcorrConfig *config);

/* Of spectra that fill as much of what is sampled each way; radars have 0.6 to
 * 0.9, and with a wider band noise correlates less. */
#define IMK_INSARXCORR_ASSUMED_BAND 0.5

/* The amplitudes of a signal of bandwidth B have a triangular spectrum of width
 * 2 B, so n samples correlate by chance with sigma^2 = (2 / (3 B))^2 / n.
 *
 * Returns: sigma, of templates of a @plan with sizes */
double imk_insarxcorr_scatter (const ImkInsarxcorrPlan *plan, double band);

/* A threshold z sigma that the largest correlation of noise with noise, over
 * all lags, exceeds in one patch of 100. The surface is a smooth Gaussian
 * field, whose maxima above a high z have the density z exp (-z^2 / 2) lambda /
 * (2 pi)^1.5 an area of one sample (Adler 1981, ch. 6), with the second
 * spectral moment lambda = (2 pi B)^2 / 10 of the squared triangle.
 *
 * Returns: the correlation, 0..100 */
double imk_insarxcorr_significant (const ImkInsarxcorrPlan *plan, double band);

/* The patches, lines and bands of a plan with sizes; to be cleared in any case.
 */
ImkStatus imk_insarxcorr_plan_patches (
    ImkInsarxcorrPlan *plan, ImkError *error);
void imk_insarxcorr_plan_clear (ImkInsarxcorrPlan *plan);

IMK_END_DECLS
