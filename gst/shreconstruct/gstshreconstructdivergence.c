/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructdivergence.h"

#include <math.h>
#include <string.h>

#include "shreconstruct/shreconstruct-private.h"

enum {
  FIRST = 3,     /* frames before a mirror acts */
  WINDOW = 50,   /* frames */
  N_WINDOWS = 3, /* one after the other, in which the loop drives away */
  N_LIMITED = 100,
  N_SEEN = 100,
  MOST_LOST = 50,    /* of @N_SEEN frames: without half of the cells */
  MOST_LIMITED = 90, /* of @N_LIMITED frames */
};

#define JUMP 0.22   /* of the coefficients, from a frame to the next */
#define LASTING 0.4 /* of the mean square of residual slopes */
#define STAYED 0.7  /* times the largest residual */
#define MORE 1.2    /* times the residual at closing, of slopes that last */
#define LEFT 2.0    /* times the residual at closing, where cells are lost */
#define GROWN 2.5   /* times the residual at closing */

struct _GstShReconstructDivergence {
  gfloat *offsets; /* (nullable): [2 n_cells] */
  gfloat *past;    /* (nullable): [n_past]: coefficients of the frame before */
  guint n_past;
  gdouble *sums; /* (nullable): [2 n_cells]: of the window, of each slope */
  guint n_cells;
  gboolean is_told;
  guint n_frames;     /* since the loop closed, without dark ones */
  guint n_first;      /* frames of @first */
  gdouble first, now; /* mean squares of residual slopes, of the first frames
                       * and of a window */
  gdouble slopes, coefficients, steps; /* sums of the window */
  guint n_slopes, n_in_window, n_away;
  guint most_valid;    /* cells of a frame */
  guint n_all, n_lost; /* frames, and those without half of these cells */
  gdouble last, most;  /* mean square of the last frames that had them, and the
                        * most that it was */
  guint n_seen, n_limited; /* frames, and those with commands at a limit */
};

GstShReconstructDivergence *
gst_sh_reconstruct_divergence_new (void)
{
  return g_new0 (GstShReconstructDivergence, 1);
}

void
gst_sh_reconstruct_divergence_free (GstShReconstructDivergence *self)
{
  g_free (self->offsets);
  g_free (self->past);
  g_free (self->sums);
  g_free (self);
}

void
gst_sh_reconstruct_divergence_begin (GstShReconstructDivergence *self)
{
  *self = (GstShReconstructDivergence){.offsets = self->offsets,
      .past = self->past,
      .n_past = self->n_past,
      .sums = self->sums,
      .n_cells = self->n_cells};
}

void
gst_sh_reconstruct_divergence_set_offsets (
    GstShReconstructDivergence *self, const gfloat *offsets, guint n_cells)
{
  g_free (self->offsets);
  self->offsets = g_memdup2 (offsets, 2 * (gsize) n_cells * sizeof (*offsets));
}

/* Returns: whether the cell @i is valid; then its residual slopes */
static gboolean
residual_at (const GstShReconstructDivergence *self,
    const GstShReconstructSlopes *s, guint n_cells, guint i, gfloat *x,
    gfloat *y)
{
  const gfloat *offsets = self->offsets;
  const gfloat dx = s->slopes[i], dy = s->slopes[n_cells + i];

  *x = dx - (offsets ? offsets[i] : 0);
  *y = dy - (offsets ? offsets[n_cells + i] : 0);
  return imk_shreconstruct_is_valid (dx, dy, s->flags ? s->flags[i] : 0);
}

/* Returns: mean square of the slopes of valid cells; NaN without any */
static gdouble
residual_of (const GstShReconstructDivergence *self,
    const GstShReconstructSlopes *s, guint n_cells)
{
  gdouble squares = 0;
  guint n = 0;
  gfloat x, y;

  for (guint i = 0; i < n_cells; i++)
    if (residual_at (self, s, n_cells, i, &x, &y)) {
      squares += (gdouble) (x * x + y * y);
      n++;
    }
  return n > 0 ? squares / (2.0 * n) : NAN;
}

static void
begin_window (GstShReconstructDivergence *self, guint n_cells)
{
  if (self->n_cells != n_cells)
    self->sums = g_renew (gdouble, self->sums, 2 * (gsize) n_cells);
  self->n_cells = n_cells;
  memset (self->sums, 0, 2 * (gsize) n_cells * sizeof (*self->sums));
  self->slopes = self->coefficients = self->steps = 0;
  self->n_slopes = self->n_in_window = 0;
}

static void
add_slopes (GstShReconstructDivergence *self, const GstShReconstructSlopes *s)
{
  gfloat x, y;

  for (guint i = 0; i < self->n_cells; i++)
    if (residual_at (self, s, self->n_cells, i, &x, &y)) {
      self->sums[i] += (gdouble) x;
      self->sums[self->n_cells + i] += (gdouble) y;
    }
}

/* The coefficients of the frame become those of the frame before. */
static void
add_coefficients (
    GstShReconstructDivergence *self, const gfloat *values, guint n)
{
  const gboolean has_past = self->n_past == n;
  gdouble power = 0, steps = 0;

  if (!has_past)
    self->past = g_renew (gfloat, self->past, n);
  for (guint i = 0; i < n; i++) {
    const gdouble step = has_past ? values[i] - self->past[i] : 0;

    power += (gdouble) values[i] * values[i];
    steps += step * step;
    self->past[i] = values[i];
  }
  self->coefficients += power / n;
  self->steps += steps / n;
  self->n_past = n;
}

/* Returns: mean square of the slopes' means over the window */
static gdouble
lasting_of (const GstShReconstructDivergence *self)
{
  gdouble squares = 0;

  for (guint i = 0; i < 2 * self->n_cells; i++)
    squares += self->sums[i] * self->sums[i];
  return squares / self->n_slopes / self->n_slopes / (2.0 * self->most_valid);
}

/* Residuals that grow are larger at the end of the window than in its mean.
 * Returns: whether the loop drives away in enough windows, one after the other
 */
static gboolean
end_window (GstShReconstructDivergence *self)
{
  const gdouble mean = self->slopes / MAX (self->n_slopes, 1);
  const gdouble now = MAX (mean, self->last);
  const gboolean stays =
      self->n_slopes > WINDOW / 2 && now > STAYED * STAYED * self->most;
  const gboolean lasts = stays && now > MORE * MORE * self->first &&
                         lasting_of (self) > LASTING * mean;
  const gboolean jumps = stays && now > GROWN * GROWN * self->first &&
                         self->steps > JUMP * JUMP * self->coefficients;

  self->now = now;
  self->n_away = lasts || jumps ? self->n_away + 1 : 0;
  self->n_in_window = 0;
  return self->n_away >= N_WINDOWS;
}

/* Spots that leave their cells are lost, and move the mirror no more. */
static gboolean
follow_loss (GstShReconstructDivergence *self, gdouble residual, guint n_valid)
{
  gboolean is_lost;

  self->most_valid = MAX (self->most_valid, n_valid);
  if (2 * n_valid <= self->most_valid)
    self->n_lost++;
  else if (isfinite (residual)) {
    self->last += (residual - self->last) / FIRST;
    self->most = MAX (self->most, self->last);
  }
  if (++self->n_all < N_SEEN)
    return FALSE;
  is_lost = self->n_lost >= MOST_LOST;
  self->n_all = self->n_lost = 0;
  return is_lost && self->last > LEFT * LEFT * self->first;
}

static gboolean
follow_windows (GstShReconstructDivergence *self, gdouble residual,
    const GstShReconstructSlopes *slopes, guint n_cells,
    const gfloat *coefficients, guint n_modes)
{
  if (isfinite (residual) && self->n_first < FIRST) {
    self->first += residual / FIRST;
    self->n_first++;
    return FALSE;
  }
  if (self->n_in_window == 0)
    begin_window (self, n_cells);
  if (isfinite (residual)) {
    self->slopes += residual;
    self->n_slopes++;
    add_slopes (self, slopes);
  }
  add_coefficients (self, coefficients, n_modes);
  return ++self->n_in_window == WINDOW && end_window (self);
}

static gboolean
follow_limits (GstShReconstructDivergence *self, guint n_limited, guint n)
{
  gboolean is_out;

  self->n_limited += 2 * n_limited >= n;
  if (++self->n_seen < N_LIMITED)
    return FALSE;
  is_out = self->n_limited >= MOST_LIMITED;
  self->n_seen = self->n_limited = 0;
  return is_out;
}

gchar *
gst_sh_reconstruct_divergence_follow (GstShReconstructDivergence *self,
    const GstShReconstructSlopes *slopes, guint n_cells,
    const gfloat *coefficients, guint n_modes, guint n_commands,
    const ImkShreconstructReport *report)
{
  const gdouble residual =
      slopes->slopes ? residual_of (self, slopes, n_cells) : NAN;
  gboolean is_limited = FALSE, is_out;

  if (self->is_told)
    return NULL;
  self->n_frames++;
  is_out = follow_loss (self, residual, report->n_valid);
  if (is_out)
    self->now = self->last;
  else if (!report->is_dark) {
    is_limited = follow_limits (self, report->n_limited, n_commands);
    is_out = slopes->slopes && follow_windows (self, residual, slopes, n_cells,
                                   coefficients, n_modes);
  }
  if (!is_limited && !is_out)
    return NULL;
  self->is_told = TRUE;
  if (is_limited)
    return g_strdup_printf (
        "The loop drives the mirror away: %u frames after it closed, %u of %u "
        "commands are at a limit, in %d of the last %d frames or more. Lower "
        "the gain, check the sign of the control matrix and the order of its "
        "slopes and commands, or set wider limits.",
        self->n_frames, report->n_limited, n_commands, MOST_LIMITED, N_LIMITED);
  return g_strdup_printf (
      "The loop drives the mirror away: %u frames after it closed, the rms of "
      "the residual slopes is %.3g, %.3g before the mirror acted, and %u of %u "
      "cells are valid. Lower the gain, or check the sign of the control "
      "matrix and the order of its slopes and commands.",
      self->n_frames, sqrt (self->now), sqrt (self->first), report->n_valid,
      n_cells);
}
