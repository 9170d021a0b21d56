/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The working memory of correlation and of the matched filter: one block for
 * each thread, allocated with the kernel. */
#pragma once

#include "core/pool.h"
#include "shcentroid/arithmetic/correlation.h"

enum {
  MATCH_ROWS = 4,   /* rows of the template that go over a row together */
  MATCH_SLACK = 32, /* float32 that a vector may reach beyond the last shift */
  MATCH_MAX_SHIFTS = 2 * IMK_SHCENTROID_MAX_SEARCH_RANGE + 1 + 3 * 16,
  MATCH_VECTOR = 16, /* numbers that a vector may reach beyond a row */
};

/* Sums of one column of a window, by column. */
typedef struct MatchColumns {
  double *p, *raw, *xx, *xy, *yy;
  double *in_x, *in_y; /* of one row, what a pixel does to the gradient */
  double *max, *max_sample, *n;
} MatchColumns;

/* Rows of @pixels are @stride apart; column 0 of the window is at @pad, and
 * what is beside the window is 0. */
typedef struct MatchScratch {
  float *pixels; /* what the block begins with */
  uint32_t stride, pad;
  double *spread; /* variance of each pixel, width x height */
  ImkShcentroidTotal *totals;
  double *products;      /* of all shifts */
  double *weights;       /* of the columns */
  float *value, *sample; /* of one row, as it came */
  MatchColumns columns;
} MatchScratch;

/* Templates, ours, and blocks for the largest window. */
typedef struct Matching {
  ImkShcentroidTemplates templates;
  bool from_frame;
  float *pixels; /* what templates points to */
  ImkShcentroidTotal *totals;
  ImkShcentroidAnchor *anchors;
  ImkPool *pool;
  uint32_t width, height; /* of the largest window */
} Matching;

/* Returns: false without memory; then clear it, too. Without templates nothing
 * is allocated. */
bool imk_shcentroid_matching_init (
    Matching *m, const ImkShcentroidPlan *plan, uint32_t n_threads);
void imk_shcentroid_matching_clear (Matching *m);

MatchScratch imk_shcentroid_take_scratch (const Matching *m);
void imk_shcentroid_give_back_scratch (const Matching *m, MatchScratch *s);

static inline size_t
match_n_totals (uint32_t width, uint32_t height)
{
  return ((size_t) width + 1) * ((size_t) height + 1);
}
