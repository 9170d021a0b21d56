/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/cpu/finish.h"

#include <stdlib.h>
#include <string.h>

#include "imk/parallel.h"
#include "octbscan/cpu/picture.h"
#include "octbscan/octbscan-rows.h"

/* ------------------------------------------------------------------------
 * A-scans of the image. */

static void
mix_band (void *data, uint32_t first, uint32_t end)
{
  const ImkOctbscanBscan *w = data;
  const ImkOctbscanFinish *s = w->self;
  const ImkOctbscanLateral *l = s->lateral;
  size_t n = s->n_depths;

  for (uint32_t i = first; i < end; i++) {
    float *to = s->mixed + n * i, weights = 0;
    bool is_whole = true;

    memset (to, 0, n * sizeof (*to));
    for (uint32_t k = l->first[i]; k < l->first[i + 1]; k++) {
      size_t row =
          w->job->backward ? s->config.height - 1 - l->rows[k] : l->rows[k];
      const float *from = s->intensity + n * row;

      if (s->bad && s->bad[row]) {
        is_whole = false;
        continue;
      }
      weights += l->weights[k];
      for (size_t q = 0; q < n; q++)
        to[q] += l->weights[k] * from[q];
    }
    if (s->dead)
      s->dead[i] = !(weights > 0);
    for (size_t q = 0; q < n && !is_whole && weights > 0; q++)
      to[q] /= weights;
  }
}

/* ------------------------------------------------------------------------
 * Shift and sum. */

/* @n depths of @size bytes; those that nothing comes to are 0. */
static void
shift_depths (uint8_t *v, size_t n, size_t size, int32_t shift)
{
  size_t by = (size_t) abs (shift) < n ? (size_t) abs (shift) : n;
  size_t from = shift > 0 ? 0 : by * size, to = shift > 0 ? by * size : 0;

  memmove (v + to, v + from, (n - by) * size);
  memset (v + (shift > 0 ? 0 : (n - by) * size), 0, by * size);
}

static void
shift_band (void *data, uint32_t first, uint32_t end)
{
  const ImkOctbscanBscan *w = data;
  size_t n = w->self->n_depths;

  for (uint32_t i = first; i < end; i++)
    shift_depths (
        (uint8_t *) (w->self->mixed + n * i), n, sizeof (float), w->shift);
}

/* @v, [n][2], by a fraction of a depth, in place: parts of it with their
 * neighbours. */
static void
shift_fraction (
    float *v, size_t n, const float taps[IMK_OCTBSCAN_SHIFT_TAPS][2])
{
  enum { REACH = IMK_OCTBSCAN_SHIFT_REACH, PART = 256 };
  float re[PART + 2 * REACH] = {0}, im[PART + 2 * REACH] = {0};

  for (size_t i = 0; i < REACH && i < n; i++) {
    re[REACH + i] = v[2 * i];
    im[REACH + i] = v[2 * i + 1];
  }
  for (size_t z = 0; z < n; z += PART) {
    float x[PART] = {0}, y[PART] = {0};

    for (size_t i = 0; i < PART; i++) {
      size_t at = z + REACH + i;

      re[2 * REACH + i] = at < n ? v[2 * at] : 0;
      im[2 * REACH + i] = at < n ? v[2 * at + 1] : 0;
    }
    for (size_t k = 0; k < IMK_OCTBSCAN_SHIFT_TAPS; k++)
      for (size_t i = 0; i < PART; i++) {
        x[i] += taps[k][0] * re[i + k] - taps[k][1] * im[i + k];
        y[i] += taps[k][0] * im[i + k] + taps[k][1] * re[i + k];
      }
    for (size_t i = 0; i < PART && z + i < n; i++) {
      v[2 * (z + i)] = x[i];
      v[2 * (z + i) + 1] = y[i];
    }
    memmove (re, re + PART, 2 * REACH * sizeof (*re));
    memmove (im, im + PART, 2 * REACH * sizeof (*im));
  }
}

/* Rows of the complex image. */
static void
shift_complex_band (void *data, uint32_t first, uint32_t end)
{
  const ImkOctbscanBscan *w = data;
  const ImkOctbscanFinish *s = w->self;
  const ImkImage *image = w->job->complex;
  size_t n = s->n_depths;
  float taps[IMK_OCTBSCAN_SHIFT_TAPS][2];

  for (int32_t k = 0; k < IMK_OCTBSCAN_SHIFT_TAPS; k++)
    imk_octbscan_shift_tap (
        w->fraction, k - IMK_OCTBSCAN_SHIFT_REACH, s->config.scale, taps[k]);
  for (uint32_t i = first; i < end; i++) {
    uint8_t *v = (uint8_t *) image->data + i * image->stride;

    if (w->fraction != 0)
      shift_fraction ((float *) (void *) v, n, taps);
    shift_depths (v, n, 2 * sizeof (float), w->shift);
  }
}

static void
add_band (void *data, uint32_t first, uint32_t end)
{
  const ImkOctbscanBscan *w = data;
  const ImkOctbscanFinish *s = w->self;
  size_t n = s->n_depths;

  for (uint32_t i = first; i < end; i++) {
    const float *from = s->mixed + n * i;
    double *to = s->sums + n * i;

    if (!s->has_summed) {
      memset (to, 0, n * sizeof (*to));
      s->n_summed[i] = 0;
    }
    if (s->dead && s->dead[i])
      continue;
    s->n_summed[i]++;
    for (size_t q = 0; q < n; q++)
      to[q] += from[q];
  }
}

static void
mean_band (void *data, uint32_t first, uint32_t end)
{
  const ImkOctbscanBscan *w = data;
  const ImkOctbscanFinish *s = w->self;
  size_t n = s->n_depths;

  for (uint32_t i = first; i < end; i++) {
    uint32_t count = s->has_summed ? s->n_summed[i] : 0;

    if (s->dead)
      s->dead[i] = s->has_summed && count == 0;
    for (size_t q = n * i; q < n * (i + 1); q++)
      s->mixed[q] = count ? (float) (s->sums[q] / count) : 0;
  }
}

/* ------------------------------------------------------------------------
 * En face. */

static void
enface_band (void *data, uint32_t first, uint32_t end)
{
  const ImkOctbscanBscan *w = data;
  const ImkOctbscanFinish *s = w->self;
  const ImkOctbscanProjection projection = s->config.projection;
  uint32_t top = s->config.enface_top;
  uint32_t n = s->n_depths - top - s->config.enface_bottom;

  for (uint32_t i = first; i < end; i++) {
    const float *v = w->shown + (size_t) i * s->n_depths + top;
    double sum = 0;

    for (uint32_t q = 0; q < n; q++)
      sum = imk_octbscan_project (projection, sum, v[q]);
    if (projection == IMK_OCTBSCAN_PROJECTION_MEAN)
      sum /= n;
    ((float *) w->job->enface->data)[i] = (float) sum;
  }
}

/* ------------------------------------------------------------------------
 * The steps in order. */

static void
for_ascans (ImkOctbscanBscan *w, ImkBandFunc func)
{
  const ImkOctbscanFinish *s = w->self;

  imk_parallel_for (s->config.n_threads, s->lateral->n_ascans, 16, func, w);
}

static void
make_pictures (ImkOctbscanBscan *w)
{
  const ImkOctbscanFinish *s = w->self;
  const ImkOctbscanConfig *c = &s->config;
  const ImkOctbscanPicture picture = {
      .loops = s->loops,
      .intensity = w->shown,
      .dead = w->shown == s->intensity ? s->bad : s->dead,
      .n_ascans = s->lateral->n_ascans,
      .n_depths = s->n_depths,
      .depth_down = c->orientation == IMK_OCTBSCAN_ORIENTATION_DEPTH_DOWN,
      .flips_depth = imk_octbscan_flips_depth (c),
  };
  float ends[4];
  bool db = !w->job->db_is_linear;

  if (w->job->enface)
    for_ascans (w, enface_band);
  if (!w->job->db && !w->job->linear)
    return;
  imk_octbscan_picture_range (&picture, c, s->counts, ends);
  if (w->job->ends)
    memcpy (w->job->ends, ends, sizeof (ends));
  imk_octbscan_picture_write (&picture, db, ends[db ? 0 : 2], ends[db ? 1 : 3],
      w->job->db, s->pool, c->n_threads);
  imk_octbscan_picture_write (
      &picture, false, ends[2], ends[3], w->job->linear, s->pool, c->n_threads);
}

/* The steps of a new B-scan, up to the sum of B-scans. */
static void
take_bscan (ImkOctbscanBscan *w)
{
  ImkOctbscanFinish *s = w->self;
  ImkOctbscanMotion motion = {0};

  if (s->z)
    imk_octbscan_subtract_pattern (w);
  w->shown = s->intensity;
  if (!s->lateral->is_identity || w->job->backward || s->sums || s->profile) {
    w->shown = s->mixed;
    for_ascans (w, mix_band);
  }
  if (s->config.tracking != IMK_OCTBSCAN_TRACKING_NONE) {
    motion = imk_octbscan_track (w);
    w->shift = motion.shift;
    w->fraction = motion.fraction;
    if (w->shift != 0)
      for_ascans (w, shift_band);
    if ((w->shift != 0 || w->fraction != 0) && w->job->complex &&
        imk_octbscan_moves_complex (&s->config))
      imk_parallel_for (
          s->config.n_threads, s->config.height, 16, shift_complex_band, w);
  }
  if (w->job->track)
    imk_octbscan_tell_motion (&motion, w->job->track->data);
  if (s->sums) {
    for_ascans (w, add_band);
    s->has_summed = true;
  }
}

void
imk_octbscan_finish_run (ImkOctbscanFinish *self, const ImkOctbscanJob *job)
{
  ImkOctbscanBscan w = {.self = self, .job = job, .shown = self->mixed};

  if (job->in)
    take_bscan (&w);
  if (!job->db && !job->linear && !job->enface)
    return;
  if (self->sums) {
    for_ascans (&w, mean_band);
    self->has_summed = false;
  }
  make_pictures (&w);
}

/* ------------------------------------------------------------------------
 * The object. */

void
imk_octbscan_finish_reset (ImkOctbscanFinish *self)
{
  self->has_pattern = false;
  self->has_summed = false;
  self->track.n_seen = 0;
}

static bool
fill (ImkOctbscanFinish *s, const ImkOctbscanPlan *plan)
{
  const ImkOctbscanConfig *c = plan->config;
  size_t n_rows = s->lateral->n_ascans, n = s->n_depths;
  size_t pattern = 2 * n * c->n_cameras * sizeof (float);
  uint32_t n_lags = 2 * imk_octbscan_reach (c, s->n_window) + 1;
  bool ok;

  s->intensity = imk_pool_alloc (n * c->height * sizeof (float));
  s->counts = calloc (IMK_OCTBSCAN_N_BINS, sizeof (*s->counts));
  ok = s->intensity && s->counts;
  if (c->type == IMK_TYPE_F32) {
    s->bad = calloc (c->height, 1);
    s->dead = calloc (n_rows, 1);
    ok = ok && s->bad && s->dead;
  }
  if (!s->lateral->is_identity || c->bidirectional || c->averages_bscans ||
      c->tracking != IMK_OCTBSCAN_TRACKING_NONE) {
    s->mixed = imk_pool_alloc (n * n_rows * sizeof (float));
    ok = ok && s->mixed;
  }
  if (c->fixed_pattern != IMK_OCTBSCAN_FIXED_PATTERN_NONE) {
    s->z = imk_pool_alloc (2 * n * c->height * sizeof (float));
    s->pattern = imk_pool_alloc (pattern);
    ok = ok && s->z && s->pattern;
    if (ok && plan->pattern)
      memcpy (s->pattern, plan->pattern, pattern);
  }
  if (c->averages_bscans) {
    s->sums = imk_pool_alloc (n * n_rows * sizeof (double));
    s->n_summed = calloc (n_rows, sizeof (*s->n_summed));
    ok = ok && s->sums && s->n_summed;
  }
  if (c->tracking != IMK_OCTBSCAN_TRACKING_NONE) {
    s->profile = calloc (s->n_window, sizeof (double));
    s->reference = calloc (s->n_window, sizeof (double));
    s->tops = calloc (2 * n_rows + n_lags, sizeof (double));
    ok = ok && s->profile && s->reference && s->tops;
    if (ok && c->tracking_profile)
      memcpy (s->reference, c->tracking_profile, s->n_window * sizeof (double));
  }
  return ok;
}

ImkStatus
imk_octbscan_finish_new (const ImkOctbscanPlan *plan,
    const ImkOctbscanLoops *loops, ImkOctbscanFinish **self, ImkError *error)
{
  const ImkOctbscanConfig *c = plan->config;
  ImkOctbscanFinish *s = calloc (1, sizeof (*s));
  ImkStatus status = IMK_OK;
  bool ok = s != NULL;

  if (ok) {
    s->loops = loops;
    s->config = imk_octbscan_without_pointers (c);
    s->lock = imk_octbscan_lock (c);
    s->n_depths = plan->n_depths;
    s->n_window = imk_octbscan_n_window (c, plan->n_depths);
    s->lateral = plan->lateral;
    ok = fill (s, plan);
  }
  if (ok)
    status = imk_pool_new (imk_parallel_threads (c->n_threads),
        imk_octbscan_picture_scratch_size (plan->n_depths), &s->pool, error);
  else
    status = IMK_NO_MEMORY (error, "for B-scans of %u A-scans and %u depths.",
        c->height, plan->n_depths);
  if (status == IMK_OK)
    *self = s;
  else
    imk_octbscan_finish_free (s);
  return status;
}

void
imk_octbscan_finish_free (ImkOctbscanFinish *self)
{
  if (!self)
    return;
  free (self->z);
  free (self->pattern);
  free (self->intensity);
  free (self->mixed);
  free (self->sums);
  free (self->n_summed);
  free (self->bad);
  free (self->dead);
  free (self->profile);
  free (self->reference);
  free (self->tops);
  free (self->counts);
  imk_pool_free (self->pool);
  free (self);
}
