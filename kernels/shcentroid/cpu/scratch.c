/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shcentroid/cpu/scratch.h"

#include <stdlib.h>

#include "imk/parallel.h"

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
  /* the matched filter has the flats of whole lanes there */
  s->spread = match_cut (memory, &at,
      (size_t) width * height * sizeof (double) +
          IMK_SHCENTROID_FILTER_LANES * sizeof (float));
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

void
imk_shcentroid_matching_clear (Matching *m)
{
  imk_pool_free (m->pool);
  free (m->pixels);
  free (m->totals);
  free (m->anchors);
}

static bool
matching_allocate_scratch (
    Matching *m, const ImkShcentroidPlan *plan, uint32_t n_threads)
{
  MatchScratch s;

  m->width = m->height = 1;
  for (uint32_t i = 0; i < plan->n_rects; i++) {
    const ImkShcentroidRect *rect = &plan->rects[i];

    m->width = rect->width > m->width ? rect->width : m->width;
    m->height = rect->height > m->height ? rect->height : m->height;
  }
  return imk_pool_new (imk_parallel_threads (n_threads),
             match_lay_out (&s, NULL, m->width, m->height), &m->pool,
             NULL) == IMK_OK;
}

bool
imk_shcentroid_matching_init (
    Matching *m, const ImkShcentroidPlan *plan, uint32_t n_threads)
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
  return matching_allocate_scratch (m, plan, n_threads);
}

MatchScratch
imk_shcentroid_take_scratch (const Matching *m)
{
  MatchScratch s;

  match_lay_out (&s, imk_pool_take (m->pool), m->width, m->height);
  return s;
}

void
imk_shcentroid_give_back_scratch (const Matching *m, MatchScratch *s)
{
  imk_pool_give (m->pool, s->pixels);
}
