/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fixed pattern: the mean of the segment of rows with the least variance,
 * depth by depth. */
#include <math.h>
#include <string.h>

#include "imk/parallel.h"
#include "octbscan/cpu/bscan.h"

enum { DEPTHS = 64 /* processed by a thread at a time */ };

/* The first row of @camera; its rows are C apart. */
static uint32_t
first_row (const ImkOctbscanBscan *w, uint32_t camera)
{
  uint32_t n = w->self->config.n_cameras;

  return (camera + n - w->job->first_camera % n) % n;
}

static uint32_t
count_rows (const ImkOctbscanBscan *w, uint32_t camera)
{
  uint32_t first = first_row (w, camera), height = w->self->config.height;

  return first < height ? (height - first - 1) / w->self->config.n_cameras + 1
                        : 0;
}

/* Mean and variance of rows i0 .. i1 - 1 of a camera. */
static void
segment (const ImkOctbscanBscan *w, uint32_t camera, uint32_t i0, uint32_t i1,
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
find_pattern (const ImkOctbscanBscan *w, uint32_t camera, uint32_t depth,
    uint32_t n_depths)
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
  const ImkOctbscanBscan *w = data;
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
  const ImkOctbscanBscan *w = data;
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
