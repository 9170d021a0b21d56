/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Held slopes are those of the frame before, to the bit. No backend has to
 * count them; noise changes those of valid cells. */
#include <stdlib.h>
#include <string.h>

#include "shreconstruct/shreconstruct-private.h"

/* Slopes that are held for longer are no flicker: the loop integrates them. */
enum { MAX_HELD_FRAMES = 100 };

struct ImkShreconstructHeld {
  uint32_t n_cells;
  float *slopes;    /* [2 n_cells]: of the frame before */
  uint8_t *frames;  /* [n_cells]: for how many the slopes are the same */
  uint8_t *is_used; /* [n_cells]: R has numbers for it */
  ImkError doubt;   /* without a message before it is found */
};

ImkShreconstructHeld *
imk_shreconstruct_held_new (const ImkShreconstructConfig *c)
{
  const size_t n_slopes = 2 * (size_t) c->n_cells;
  ImkShreconstructHeld *self = calloc (1, sizeof (*self));

  if (!self)
    return NULL;
  self->n_cells = c->n_cells;
  self->slopes = calloc (n_slopes, sizeof (float));
  self->frames = calloc (c->n_cells, 1);
  self->is_used = calloc (c->n_cells, 1);
  if (!self->slopes || !self->frames || !self->is_used) {
    imk_shreconstruct_held_free (self);
    return NULL;
  }
  for (uint32_t m = 0; m < c->n_modes; m++)
    for (size_t i = 0; i < n_slopes; i++)
      self->is_used[i % c->n_cells] |= c->matrix[m * n_slopes + i] != 0;
  return self;
}

void
imk_shreconstruct_held_free (ImkShreconstructHeld *self)
{
  if (!self)
    return;
  free (self->slopes);
  free (self->frames);
  free (self->is_used);
  free (self);
}

/* Slopes of 0 are also those of a cell that has never been valid. */
static bool
is_same (const ImkShreconstructHeld *self, const float *slopes, uint32_t i)
{
  const float x = slopes[i], y = slopes[self->n_cells + i];

  return (x != 0 || y != 0) && x == self->slopes[i] &&
         y == self->slopes[self->n_cells + i];
}

static void
report (ImkShreconstructHeld *self, uint32_t cell)
{
  imk_error_set (&self->doubt, IMK_ERROR_CONFIG,
      "Cell %u has been invalid for %d frames. invalid-policy=hold repeats its "
      "last slopes, which the loop integrates. Use invalid-policy=zero or "
      "exclude, or set min-valid.",
      cell, MAX_HELD_FRAMES);
}

void
imk_shreconstruct_held_watch (
    ImkShreconstructHeld *self, const float *slopes, uint32_t n_valid)
{
  uint32_t n_same = 0, held = self->n_cells;

  if (self->doubt.message[0])
    return;
  for (uint32_t i = 0; i < self->n_cells; i++) {
    const bool same = is_same (self, slopes, i);

    n_same += same;
    self->frames[i] = same && self->frames[i] < MAX_HELD_FRAMES
                          ? self->frames[i] + 1
                          : same * MAX_HELD_FRAMES;
    if (self->frames[i] == MAX_HELD_FRAMES && self->is_used[i])
      held = i;
  }
  memcpy (self->slopes, slopes, 2 * self->n_cells * sizeof (*slopes));
  if (n_same > self->n_cells - n_valid) /* valid ones, without noise */
    memset (self->frames, 0, self->n_cells);
  else if (held < self->n_cells)
    report (self, held);
}

const char *
imk_shreconstruct_held_doubt (const ImkShreconstructHeld *self)
{
  return self->doubt.message[0] ? self->doubt.message : NULL;
}
