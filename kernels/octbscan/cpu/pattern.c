/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fixed pattern: the mean of the segment of rows with the least variance,
 * depth by depth. */
#include "octbscan/cpu/finish.h"

#include <math.h>
#include <string.h>

#include "imk/parallel.h"
#include "octbscan/octbscan-rows.h"

enum { DEPTHS = IMK_OCTBSCAN_PATTERN_DEPTHS };

/* Mean and variance of rows i0 .. i1 - 1. */
static void
segment (const ImkOctbscanLines *l, uint32_t i0, uint32_t i1, uint32_t n_depths,
    double *mean, double *variance)
{
  double squares[DEPTHS] = {0};
  uint32_t n = 0;

  memset (mean, 0, 2 * n_depths * sizeof (*mean));
  for (uint32_t i = i0; i < i1; i++) {
    const float *z = l->z + i * l->pitch;

    if (l->bad && l->bad[(size_t) i * l->bad_step])
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
    variance[d] =
        imk_octbscan_variance (mean[2 * d], mean[2 * d + 1], squares[d] / n, n);
  }
}

void
imk_octbscan_find_pattern (const ImkOctbscanLines *lines, uint32_t n_segments,
    uint32_t n_depths, float *pattern)
{
  uint64_t n_rows = lines->n, n = n_segments;
  double mean[2 * DEPTHS], variance[DEPTHS], least[DEPTHS];

  memset (pattern, 0, 2 * n_depths * sizeof (*pattern));
  for (uint32_t d = 0; d < n_depths; d++)
    least[d] = INFINITY;
  for (uint64_t k = 0; k < n; k++) {
    segment (lines, (uint32_t) (n_rows * k / n),
        (uint32_t) (n_rows * (k + 1) / n), n_depths, mean, variance);
    for (uint32_t d = 0; d < n_depths; d++)
      if (variance[d] < least[d]) {
        least[d] = variance[d];
        pattern[2 * d] = (float) mean[2 * d];
        pattern[2 * d + 1] = (float) mean[2 * d + 1];
      }
  }
}

static void
find_pattern (const ImkOctbscanBscan *w, uint32_t camera, uint32_t depth)
{
  ImkOctbscanFinish *s = w->self;
  const ImkOctbscanConfig *c = &s->config;
  ImkOctbscanRows rows = imk_octbscan_rows_of (
      camera, c->n_cameras, w->job->first_camera, c->height);
  uint32_t n = s->n_depths - depth < DEPTHS ? s->n_depths - depth : DEPTHS;
  const ImkOctbscanLines lines = {
      .z = s->z + 2 * ((size_t) rows.first * s->n_depths + depth),
      .pitch = 2 * (size_t) rows.step * s->n_depths,
      .n = rows.n,
      .bad = s->bad ? s->bad + rows.first : NULL,
      .bad_step = rows.step,
  };

  imk_octbscan_find_pattern (&lines, imk_octbscan_n_segments (c, rows.n), n,
      s->pattern + 2 * ((size_t) camera * s->n_depths + depth));
}

static void
pattern_band (void *data, uint32_t first, uint32_t end)
{
  const ImkOctbscanBscan *w = data;
  uint32_t a_camera = imk_div_up (w->self->n_depths, DEPTHS);

  for (uint32_t i = first; i < end; i++)
    find_pattern (w, i / a_camera, i % a_camera * DEPTHS);
}

static void
subtract_band (void *data, uint32_t first, uint32_t end)
{
  const ImkOctbscanBscan *w = data;
  const ImkOctbscanFinish *s = w->self;
  size_t n = s->n_depths;

  for (uint32_t row = first; row < end; row++) {
    uint32_t camera =
        imk_octbscan_camera_of (row, s->config.n_cameras, w->job->first_camera);
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

void
imk_octbscan_subtract_pattern (ImkOctbscanBscan *w)
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
