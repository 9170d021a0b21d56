/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What correlation on the CPU works in: one part for each cell that is
 * measured at the same time, all allocated beforehand. */
#pragma once

#include <stdlib.h>

#include "core/parallel.h"
#include "shcentroid/shcentroid-correlation.h"

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
  bool taken;
  void *memory;
  float *pixels;
  uint32_t stride, pad;
  double *spread; /* variance of each pixel, width x height */
  ImkShcentroidTotal *totals;
  double *products;      /* of all shifts */
  double *weights;       /* of the columns */
  float *value, *sample; /* of one row, as it came */
  MatchColumns columns;
} MatchScratch;

/* Templates, ours, and scratch for the largest window. */
typedef struct Matching {
  ImkShcentroidTemplates templates;
  bool from_frame;
  float *pixels; /* what templates points to */
  ImkShcentroidTotal *totals;
  ImkShcentroidAnchor *anchors;
  MatchScratch *scratch;
  uint32_t n_scratch;
} Matching;

static inline size_t
match_n_totals (uint32_t width, uint32_t height)
{
  return ((size_t) width + 1) * ((size_t) height + 1);
}

/* Cuts @size bytes off @memory; only counts when that is NULL. */
static inline void *
match_cut (uint8_t *memory, size_t *at, size_t size)
{
  void *piece = memory ? memory + *at : NULL;

  *at += (size + 63) / 64 * 64;
  return piece;
}

/* Returns: bytes of a scratch for windows of @width x @height */
static size_t
match_lay_out (
    MatchScratch *s, uint8_t *memory, uint32_t width, uint32_t height)
{
  uint32_t most = IMK_SHCENTROID_MAX_SEARCH_RANGE;
  uint32_t range = width / 2 < most ? width / 2 : most;
  size_t column = (width + MATCH_VECTOR) * sizeof (double), at = 0;
  MatchColumns *c = &s->columns;

  s->pad = 2 * range;
  s->stride = width + 4 * range + MATCH_SLACK;
  s->pixels =
      match_cut (memory, &at, (size_t) s->stride * height * sizeof (float));
  s->spread =
      match_cut (memory, &at, (size_t) width * height * sizeof (double));
  s->totals = match_cut (
      memory, &at, match_n_totals (width, height) * sizeof (*s->totals));
  s->products = match_cut (
      memory, &at, (size_t) (2 * most + 1) * (2 * most + 1) * sizeof (double));
  s->weights = match_cut (memory, &at, column);
  /* and what a row is rounded up to when it is loaded */
  s->value = match_cut (memory, &at, (width + 64) * sizeof (float));
  s->sample = match_cut (memory, &at, column);
  c->p = match_cut (memory, &at, column);
  c->raw = match_cut (memory, &at, column);
  c->xx = match_cut (memory, &at, column);
  c->xy = match_cut (memory, &at, column);
  c->yy = match_cut (memory, &at, column);
  c->in_x = match_cut (memory, &at, column);
  c->in_y = match_cut (memory, &at, column);
  c->max = match_cut (memory, &at, column);
  c->max_sample = match_cut (memory, &at, column);
  c->n = match_cut (memory, &at, column);
  return at;
}

static void
matching_clear (Matching *m)
{
  for (uint32_t i = 0; m->scratch && i < m->n_scratch; i++)
    free (m->scratch[i].memory);
  free (m->scratch);
  free (m->pixels);
  free (m->totals);
  free (m->anchors);
}

static bool
matching_allocate_scratch (Matching *m, const ImkShcentroidPlan *plan)
{
  uint32_t width = 1, height = 1;

  for (uint32_t i = 0; i < plan->n_rects; i++) {
    width = plan->rects[i].width > width ? plan->rects[i].width : width;
    height = plan->rects[i].height > height ? plan->rects[i].height : height;
  }
  m->n_scratch = imk_parallel_threads (plan->n_threads) + 1;
  m->scratch = calloc (m->n_scratch, sizeof (*m->scratch));
  for (uint32_t i = 0; m->scratch && i < m->n_scratch; i++) {
    MatchScratch *s = &m->scratch[i];
    size_t size = match_lay_out (s, NULL, width, height);

    /* page aligned or not, vectors are read as they come */
    s->memory = calloc (1, size);
    if (!s->memory)
      return false;
    match_lay_out (s, s->memory, width, height);
  }
  return m->scratch != NULL;
}

/* Nothing is done where there are no templates. Returns: FALSE without memory;
 * what is there is to be cleared then too */
static bool
matching_init (Matching *m, const ImkShcentroidPlan *plan)
{
  const ImkShcentroidTemplates *t = &plan->templates;
  size_t n_pixels = (size_t) t->n * t->width * t->height;
  size_t n_totals = t->n * match_n_totals (t->width, t->height);
  size_t anchors_size = plan->n_rects * sizeof (*m->anchors);

  m->templates = *t;
  m->from_frame = !t->pixels;
  if (t->n == 0)
    return true;
  m->pixels = malloc (n_pixels * sizeof (*m->pixels));
  m->totals = malloc (n_totals * sizeof (*m->totals));
  m->anchors = malloc (anchors_size);
  if (!m->pixels || !m->totals || !m->anchors)
    return false;
  if (t->pixels) {
    memcpy (m->pixels, t->pixels, n_pixels * sizeof (*m->pixels));
    memcpy (m->totals, t->totals, n_totals * sizeof (*m->totals));
  }
  memcpy (m->anchors, t->anchors, anchors_size);
  m->templates.anchors = m->anchors;
  m->templates.pixels = m->pixels;
  m->templates.totals = m->totals;
  return matching_allocate_scratch (m, plan);
}

/* There is one for every thread. */
static MatchScratch *
matching_take (Matching *m)
{
  for (uint32_t i = 0;; i = (i + 1) % m->n_scratch)
    if (!__atomic_test_and_set (&m->scratch[i].taken, __ATOMIC_ACQUIRE))
      return &m->scratch[i];
}

static void
matching_give_back (MatchScratch *s)
{
  __atomic_clear (&s->taken, __ATOMIC_RELEASE);
}
