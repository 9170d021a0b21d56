/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/octbscan-finish.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/parallel.h"
#include "octbscan/octbscan-image.h"
#include "octbscan/octbscan-track.h"

enum { DEPTHS = 64 /* that a thread does at a time */ };

struct ImkOctbscanFinish {
  ImkOctbscanConfig config; /* without its pointers */
  uint32_t n_depths;
  ImkOctbscanLateral lateral; /* copies */
  float *z;                   /* [H][n_depths] complex, NULL without pattern */
  float *pattern;             /* [C][n_depths] complex, likewise */
  bool has_pattern;           /* ONCE */
  float *intensity;           /* [H][n_depths] */
  uint8_t *bad;       /* [H] rows without an A-scan, NULL: there are none */
  uint8_t *dead;      /* [n_ascans] columns without one, likewise */
  float *mixed;       /* [n_ascans][n_depths] */
  double *sums;       /* [n_ascans][n_depths], of B-scans, or NULL */
  uint32_t *n_summed; /* [n_ascans] */
  bool has_summed;
  uint32_t n_window;
  double *profile, *reference; /* [n_window] */
  double *tops;                /* [n_ascans][2] place and intensity */
  ImkOctbscanTrack track;
  uint32_t *counts; /* [N_BINS] for percentiles */
  ImkOctbscanPool *pool;
};

/* One job at work. */
typedef struct Work {
  ImkOctbscanFinish *self;
  const ImkOctbscanJob *job;
  const float *shown; /* what the images are of, [n_ascans][n_depths] */
  int32_t shift;
} Work;

/* ------------------------------------------------------------------------
 * The fixed pattern. */

/* The first row of @camera; the next ones are C further each. */
static uint32_t
first_row (const Work *w, uint32_t camera)
{
  uint32_t n = w->self->config.n_cameras;

  return (camera + n - w->job->first_camera % n) % n;
}

static uint32_t
count_rows (const Work *w, uint32_t camera)
{
  uint32_t first = first_row (w, camera), height = w->self->config.height;

  return first < height ? (height - first - 1) / w->self->config.n_cameras + 1
                        : 0;
}

/* Mean and variance of rows i0 .. i1 - 1 of a camera. */
static void
segment (const Work *w, uint32_t camera, uint32_t i0, uint32_t i1,
    uint32_t depth, uint32_t n_depths, double *mean, double *variance)
{
  const ImkOctbscanFinish *s = w->self;
  double squares[DEPTHS] = {0};
  uint32_t n = 0;

  memset (mean, 0, 2 * n_depths * sizeof (*mean));
  for (uint32_t i = i0; i < i1; i++) {
    size_t row = first_row (w, camera) + (size_t) i * s->config.n_cameras;
    const float *z = s->z + 2 * (row * s->n_depths + depth);

    if (s->bad && s->bad[row])
      continue;
    n++;
    for (uint32_t d = 0; d < n_depths; d++) {
      mean[2 * d] += z[2 * d];
      mean[2 * d + 1] += z[2 * d + 1];
      squares[d] +=
          (double) z[2 * d] * z[2 * d] + (double) z[2 * d + 1] * z[2 * d + 1];
    }
  }
  for (uint32_t d = 0; d < n_depths; d++) {
    mean[2 * d] /= n;
    mean[2 * d + 1] /= n;
    variance[d] = squares[d] / n - mean[2 * d] * mean[2 * d] -
                  mean[2 * d + 1] * mean[2 * d + 1];
    if (n < 2)
      variance[d] = INFINITY;
  }
}

static void
find_pattern (const Work *w, uint32_t camera, uint32_t depth, uint32_t n_depths)
{
  ImkOctbscanFinish *s = w->self;
  uint64_t n_rows = count_rows (w, camera), n = s->config.pattern_segments;
  float *pattern = s->pattern + 2 * ((size_t) camera * s->n_depths + depth);
  double mean[2 * DEPTHS], variance[DEPTHS], least[DEPTHS];

  memset (pattern, 0, 2 * n_depths * sizeof (*pattern));
  for (uint32_t d = 0; d < n_depths; d++)
    least[d] = INFINITY;
  if (n_rows < 2)
    return;
  n = n < n_rows / 2 ? n : n_rows / 2;
  for (uint64_t k = 0; k < n; k++) {
    segment (w, camera, (uint32_t) (n_rows * k / n),
        (uint32_t) (n_rows * (k + 1) / n), depth, n_depths, mean, variance);
    for (uint32_t d = 0; d < n_depths; d++)
      if (variance[d] < least[d]) {
        least[d] = variance[d];
        pattern[2 * d] = (float) mean[2 * d];
        pattern[2 * d + 1] = (float) mean[2 * d + 1];
      }
  }
}

static void
pattern_band (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;
  uint32_t n = w->self->n_depths, a_camera = imk_div_up (n, DEPTHS);

  for (uint32_t i = first; i < end; i++) {
    uint32_t depth = i % a_camera * DEPTHS;

    find_pattern (
        w, i / a_camera, depth, n - depth < DEPTHS ? n - depth : DEPTHS);
  }
}

static void
subtract_band (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;
  const ImkOctbscanFinish *s = w->self;
  size_t n = s->n_depths;

  for (uint32_t row = first; row < end; row++) {
    uint32_t camera = (row + w->job->first_camera % s->config.n_cameras) %
                      s->config.n_cameras;
    const float *pattern = s->pattern + 2 * n * camera;
    float *z = s->z + 2 * n * row;
    bool is_bad = s->bad && s->bad[row];

    for (size_t i = 0; i < 2 * n && !is_bad; i++)
      z[i] -= pattern[i];
    for (size_t i = 0; i < n; i++)
      s->intensity[n * row + i] =
          imk_octbscan_intensity (z[2 * i], z[2 * i + 1]);
    if (w->job->complex)
      memcpy ((uint8_t *) w->job->complex->data + row * w->job->complex->stride,
          z, 2 * n * sizeof (*z));
  }
}

static void
take_pattern_off (Work *w)
{
  ImkOctbscanFinish *s = w->self;
  const ImkOctbscanConfig *c = &s->config;

  if (c->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_MINVAR ||
      (c->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_ONCE && !s->has_pattern))
    imk_parallel_for (c->n_threads,
        c->n_cameras * imk_div_up (s->n_depths, DEPTHS), 1, pattern_band, w);
  s->has_pattern = true;
  imk_parallel_for (c->n_threads, c->height, 16, subtract_band, w);
}

/* ------------------------------------------------------------------------
 * A-scans of the image. */

static void
mix_band (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;
  const ImkOctbscanFinish *s = w->self;
  const ImkOctbscanLateral *l = &s->lateral;
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
 * Tracking. */

static uint32_t
largest (const double *values, uint32_t n)
{
  uint32_t at = 0;

  for (uint32_t i = 1; i < n; i++)
    if (values[i] > values[at])
      at = i;
  return at;
}

static void
find_profile (ImkOctbscanFinish *s)
{
  memset (s->profile, 0, s->n_window * sizeof (*s->profile));
  for (uint32_t i = 0; i < s->lateral.n_ascans; i++) {
    const float *from =
        s->mixed + (size_t) i * s->n_depths + s->config.tracking_top;

    for (uint32_t z = 0; z < s->n_window; z++)
      s->profile[z] += from[z];
  }
  for (uint32_t z = 0; z < s->n_window; z++)
    s->profile[z] = imk_octbscan_profile (s->profile[z], s->lateral.n_ascans);
}

static double
mean_of (const double *values, uint32_t n)
{
  double sum = 0;

  for (uint32_t i = 0; i < n; i++)
    sum += values[i];
  return sum / n;
}

static void
follow_rpe (const ImkOctbscanFinish *s, double *place, double *weight)
{
  uint32_t at = largest (s->profile, s->n_window);
  double mean = mean_of (s->profile, s->n_window);

  *place = imk_octbscan_top (s->profile, s->n_window, at);
  *weight = mean > 0 ? s->profile[at] / mean : 0;
}

static void
contour_band (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;
  const ImkOctbscanFinish *s = w->self;

  for (uint32_t i = first; i < end; i++) {
    const float *v =
        s->mixed + (size_t) i * s->n_depths + s->config.tracking_top;
    uint32_t at = 0;

    for (uint32_t z = 1; z < s->n_window; z++)
      if (v[z] > v[at])
        at = z;
    s->tops[2 * i] = at;
    if (at > 0 && at + 1 < s->n_window)
      s->tops[2 * i] += imk_octbscan_parabola (v[at - 1], v[at], v[at + 1]);
    s->tops[2 * i + 1] = v[at];
  }
}

static void
follow_contour (Work *w, double *place, double *weight)
{
  const ImkOctbscanFinish *s = w->self;
  double sum = 0, weights = 0, mean = mean_of (s->profile, s->n_window);
  uint32_t n = s->lateral.n_ascans;

  imk_parallel_for (s->config.n_threads, n, 16, contour_band, w);
  for (uint32_t i = 0; i < n; i++) {
    sum += s->tops[2 * i] * s->tops[2 * i + 1];
    weights += s->tops[2 * i + 1];
  }
  *place = weights > 0 ? sum / weights : 0;
  *weight = mean > 0 ? weights / n / mean : 0;
}

static void
follow_xcorr (ImkOctbscanFinish *s, double *place, double *weight)
{
  uint32_t n = s->n_window;
  int32_t reach = (int32_t) imk_octbscan_reach (n, s->config.tracking_reach);
  double *c = s->tops;
  uint32_t at;

  *place = 0;
  *weight = s->track.n_seen > 0 ? 0 : 1;
  if (s->track.n_seen > 0) {
    for (int32_t lag = -reach; lag <= reach; lag++)
      c[lag + reach] =
          imk_octbscan_correlation (s->profile, s->reference, n, lag);
    at = largest (c, 2 * (uint32_t) reach + 1);
    if (c[at] > 0) {
      *place = imk_octbscan_top (c, 2 * (uint32_t) reach + 1, at) - reach;
      *weight = c[at];
    }
  }
  /* the depths of the reference are its own */
  for (uint32_t z = 0; z < n; z++)
    s->reference[z] = imk_octbscan_follow (s->profile, s->reference[z], n, z,
        *place, s->track.n_seen, s->config.tracking_bscans);
}

static ImkOctbscanMotion
track (Work *w)
{
  ImkOctbscanFinish *s = w->self;
  double place = 0, weight = 0;

  find_profile (s);
  switch (s->config.tracking) {
  case IMK_OCTBSCAN_TRACKING_RPE:
    follow_rpe (s, &place, &weight);
    break;
  case IMK_OCTBSCAN_TRACKING_CONTOUR:
    follow_contour (w, &place, &weight);
    break;
  default:
    follow_xcorr (s, &place, &weight);
    break;
  }
  return imk_octbscan_motion (
      &s->track, s->config.tracking_bscans, place, weight);
}

static void
report (const ImkOctbscanJob *job, const ImkOctbscanMotion *m)
{
  float *to = job->track ? job->track->data : NULL;

  if (!to)
    return;
  to[0] = (float) m->place;
  to[1] = (float) m->weight;
  to[2] = (float) m->mean;
  to[3] = (float) m->shift;
}

/* ------------------------------------------------------------------------
 * Shift and sum. */

static void
shift_band (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;
  const ImkOctbscanFinish *s = w->self;
  size_t n = s->n_depths;
  size_t by = (size_t) abs (w->shift);

  by = by < n ? by : n;
  for (uint32_t i = first; i < end; i++) {
    float *v = s->mixed + n * i;

    memmove (v + (w->shift > 0 ? by : 0), v + (w->shift > 0 ? 0 : by),
        (n - by) * sizeof (*v));
    memset (v + (w->shift > 0 ? 0 : n - by), 0, by * sizeof (*v));
  }
}

static void
add_band (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;
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
  const Work *w = data;
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
  const Work *w = data;
  const ImkOctbscanFinish *s = w->self;
  bool maximum = s->config.projection == IMK_OCTBSCAN_PROJECTION_MAXIMUM;
  uint32_t top = s->config.enface_top;
  uint32_t n = s->n_depths - top - s->config.enface_bottom;

  for (uint32_t i = first; i < end; i++) {
    const float *v = w->shown + (size_t) i * s->n_depths + top;
    double sum = 0;

    for (uint32_t q = 0; q < n; q++)
      sum = !maximum ? sum + v[q] : v[q] > sum ? v[q] : sum;
    ((float *) w->job->enface->data)[i] = (float) (maximum ? sum : sum / n);
  }
}

/* ------------------------------------------------------------------------
 * All of it. */

static void
make_pictures (Work *w, const ImkOctbscanParams *params)
{
  const ImkOctbscanFinish *s = w->self;
  const ImkOctbscanConfig *c = &s->config;
  const ImkOctbscanPicture picture = {
      .intensity = w->shown,
      .dead = w->shown == s->intensity ? s->bad : s->dead,
      .n_ascans = s->lateral.n_ascans,
      .n_depths = s->n_depths,
      .depth_down = c->orientation == IMK_OCTBSCAN_ORIENTATION_DEPTH_DOWN,
      .flips_depth = c->flip == IMK_OCTBSCAN_FLIP_DEPTH ||
                     c->flip == IMK_OCTBSCAN_FLIP_BOTH,
  };
  float ends[4];
  bool db = !w->job->db_is_linear;

  if (w->job->enface)
    imk_parallel_for (c->n_threads, s->lateral.n_ascans, 16, enface_band, w);
  if (!w->job->db && !w->job->linear)
    return;
  imk_octbscan_picture_range (&picture, params, s->counts, ends);
  if (w->job->ends)
    memcpy (w->job->ends, ends, sizeof (ends));
  imk_octbscan_picture_write (&picture, db, ends[db ? 0 : 2], ends[db ? 1 : 3],
      w->job->db, s->pool, c->n_threads);
  imk_octbscan_picture_write (
      &picture, false, ends[2], ends[3], w->job->linear, s->pool, c->n_threads);
}

/* Is there something to be done between intensities and images? */
static bool
needs_mixed (const ImkOctbscanFinish *s, const ImkOctbscanJob *job)
{
  return !s->lateral.is_identity || job->backward || s->sums || s->profile;
}

/* A new B-scan, up to where it is added to others. */
static void
take_bscan (Work *w)
{
  ImkOctbscanFinish *s = w->self;
  ImkOctbscanMotion motion = {0};

  if (s->z)
    take_pattern_off (w);
  w->shown = s->intensity;
  if (needs_mixed (s, w->job)) {
    w->shown = s->mixed;
    imk_parallel_for (
        s->config.n_threads, s->lateral.n_ascans, 16, mix_band, w);
  }
  if (s->config.tracking != IMK_OCTBSCAN_TRACKING_NONE) {
    motion = track (w);
    w->shift = motion.shift;
    if (w->shift != 0)
      imk_parallel_for (
          s->config.n_threads, s->lateral.n_ascans, 16, shift_band, w);
  }
  report (w->job, &motion);
  if (s->sums) {
    imk_parallel_for (
        s->config.n_threads, s->lateral.n_ascans, 16, add_band, w);
    s->has_summed = true;
  }
}

void
imk_octbscan_finish_run (ImkOctbscanFinish *self,
    const ImkOctbscanParams *params, const ImkOctbscanJob *job)
{
  Work w = {.self = self, .job = job, .shown = self->mixed};

  if (job->in)
    take_bscan (&w);
  if (!job->db && !job->linear && !job->enface)
    return;
  if (self->sums) {
    imk_parallel_for (
        self->config.n_threads, self->lateral.n_ascans, 16, mean_band, &w);
    self->has_summed = false;
  }
  make_pictures (&w, params);
}

/* ------------------------------------------------------------------------
 * The object. */

float *
imk_octbscan_finish_z (ImkOctbscanFinish *self)
{
  return self->z;
}

float *
imk_octbscan_finish_intensity (ImkOctbscanFinish *self)
{
  return self->intensity;
}

uint8_t *
imk_octbscan_finish_bad (ImkOctbscanFinish *self)
{
  return self->bad;
}

const float *
imk_octbscan_finish_pattern (const ImkOctbscanFinish *self)
{
  return self->pattern;
}

void
imk_octbscan_finish_reset (ImkOctbscanFinish *self)
{
  self->has_pattern = false;
  self->has_summed = false;
  self->track.n_seen = 0;
}

static void *
copy (const void *from, size_t size)
{
  void *to = malloc (size);

  if (to)
    memcpy (to, from, size);
  return to;
}

static bool
copy_lateral (ImkOctbscanFinish *s, const ImkOctbscanLateral *l)
{
  uint32_t n = l->first[l->n_ascans];

  s->lateral = *l;
  s->lateral.first = copy (l->first, (l->n_ascans + 1) * sizeof (*l->first));
  s->lateral.rows = copy (l->rows, n * sizeof (*l->rows));
  s->lateral.weights = copy (l->weights, n * sizeof (*l->weights));
  return s->lateral.first && s->lateral.rows && s->lateral.weights;
}

static bool
fill (ImkOctbscanFinish *s, const ImkOctbscanPlan *plan)
{
  const ImkOctbscanConfig *c = plan->config;
  size_t n_rows = s->lateral.n_ascans, n = s->n_depths;
  size_t pattern = 2 * n * c->n_cameras * sizeof (float);
  uint32_t n_lags = 2 * imk_octbscan_reach (s->n_window, c->tracking_reach) + 1;
  bool ok;

  s->intensity = imk_octbscan_alloc (n * c->height * sizeof (float));
  s->counts = calloc (IMK_OCTBSCAN_N_BINS, sizeof (*s->counts));
  ok = s->intensity && s->counts;
  if (c->type == IMK_TYPE_F32) {
    s->bad = calloc (c->height, 1);
    s->dead = calloc (n_rows, 1);
    ok = ok && s->bad && s->dead;
  }
  if (!s->lateral.is_identity || c->bidirectional || c->averages_bscans ||
      c->tracking != IMK_OCTBSCAN_TRACKING_NONE) {
    s->mixed = imk_octbscan_alloc (n * n_rows * sizeof (float));
    ok = ok && s->mixed;
  }
  if (c->fixed_pattern != IMK_OCTBSCAN_FIXED_PATTERN_NONE) {
    s->z = imk_octbscan_alloc (2 * n * c->height * sizeof (float));
    s->pattern = imk_octbscan_alloc (pattern);
    ok = ok && s->z && s->pattern;
    if (ok && plan->pattern)
      memcpy (s->pattern, plan->pattern, pattern);
  }
  if (c->averages_bscans) {
    s->sums = imk_octbscan_alloc (n * n_rows * sizeof (double));
    s->n_summed = calloc (n_rows, sizeof (*s->n_summed));
    ok = ok && s->sums && s->n_summed;
  }
  if (c->tracking != IMK_OCTBSCAN_TRACKING_NONE) {
    s->profile = calloc (s->n_window, sizeof (double));
    s->reference = calloc (s->n_window, sizeof (double));
    s->tops = calloc (2 * n_rows + n_lags, sizeof (double));
    ok = ok && s->profile && s->reference && s->tops;
  }
  return ok;
}

ImkStatus
imk_octbscan_finish_new (
    const ImkOctbscanPlan *plan, ImkOctbscanFinish **self, ImkError *error)
{
  const ImkOctbscanConfig *c = plan->config;
  ImkOctbscanFinish *s = calloc (1, sizeof (*s));
  ImkStatus status = IMK_OK;
  bool ok = s != NULL;

  if (ok) {
    s->config = *c;
    s->config.cameras = NULL;
    s->config.background = s->config.pattern = NULL;
    s->config.scan_curve = s->config.window_values = NULL;
    s->n_depths = plan->n_depths;
    if (c->tracking != IMK_OCTBSCAN_TRACKING_NONE)
      s->n_window = plan->n_depths - c->tracking_top - c->tracking_bottom;
    ok = copy_lateral (s, plan->lateral) && fill (s, plan);
  }
  if (ok)
    status = imk_octbscan_pool_new (imk_parallel_threads (c->n_threads),
        imk_octbscan_picture_scratch_size (plan->n_depths), &s->pool, error);
  else
    status = imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for B-scans of %u A-scans and %u depths.",
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
  free ((void *) self->lateral.first);
  free ((void *) self->lateral.rows);
  free ((void *) self->lateral.weights);
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
  imk_octbscan_pool_free (self->pool);
  free (self);
}
