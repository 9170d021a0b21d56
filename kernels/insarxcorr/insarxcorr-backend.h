/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between insarxcorr.c, which validates and plans, and the backends. */
#pragma once

#include "insarxcorr/insarxcorr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IMK_INSARXCORR_WINDOW 8 /* samples a side around the peak */

/* One patch of each side: its first column in the band and first line in the
 * image. Columns may lie beyond the band, which ends there as the image does;
 * lines may lie beyond the image. */
typedef struct ImkInsarxcorrPatch {
  int32_t x, y;             /* centre, as reported */
  int32_t shift_x, shift_y; /* of the secondary's patch */
  int32_t column[IMK_INSARXCORR_N_SIDES];
  int32_t line[IMK_INSARXCORR_N_SIDES];
  uint32_t flags; /* those known beforehand: IMK_INSARXCORR_OUTSIDE */
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

/* Valid as long as the backend's state. */
typedef struct ImkInsarxcorrPlan {
  ImkInsarxcorrConfig config;
  uint32_t patch_width, patch_height;
  ImkInsarxcorrBand bands[IMK_INSARXCORR_N_SIDES];
  ImkInsarxcorrPatch *patches; /* [ny][nx] */
  uint64_t work_limit;         /* bytes for work; 0 for any */
} ImkInsarxcorrPlan;

typedef struct ImkInsarxcorrBackend {
  IMK_BACKEND_HEADER;
  ImkStatus (*create) (
      const ImkInsarxcorrPlan *plan, void **state, ImkError *error);
  /* @lines: of the whole width; the first is @line of the image; they fit */
  ImkStatus (*push) (void *state, ImkInsarxcorrSide side, uint32_t line,
      const ImkImage *lines, void *stream, ImkError *error);
  ImkStatus (*process) (
      void *state, uint32_t row, ImkImage *out, void *stream, ImkError *error);
  void (*destroy) (void *state);
} ImkInsarxcorrBackend;

extern const ImkInsarxcorrBackend imk_insarxcorr_cpu;
extern const ImkInsarxcorrBackend imk_insarxcorr_cuda;

/* Fills @plan for a valid @config; to be freed in any case. */
ImkStatus imk_insarxcorr_plan_init (ImkInsarxcorrPlan *plan,
    const ImkInsarxcorrConfig *config, ImkError *error);
void imk_insarxcorr_plan_clear (ImkInsarxcorrPlan *plan);

/* The lines of @side that @row reads are [first, end). */
typedef struct ImkInsarxcorrLines {
  uint32_t first, end;
} ImkInsarxcorrLines;

/* Returns: the lines of @side that the patches of @row read */
ImkInsarxcorrLines imk_insarxcorr_plan_lines (
    const ImkInsarxcorrPlan *plan, ImkInsarxcorrSide side, uint32_t row);

#ifdef __cplusplus
}
#endif
