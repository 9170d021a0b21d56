/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The axial motion of a B-scan, from the profile of its mean intensities. */
#include <string.h>

#include "imk/parallel.h"
#include "octbscan/cpu/finish.h"

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
  for (uint32_t i = 0; i < s->lateral->n_ascans; i++) {
    const float *from =
        s->mixed + (size_t) i * s->n_depths + s->config.tracking_top;

    for (uint32_t z = 0; z < s->n_window; z++)
      s->profile[z] += from[z];
  }
  for (uint32_t z = 0; z < s->n_window; z++)
    s->profile[z] = imk_octbscan_profile (s->profile[z], s->lateral->n_ascans);
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
contour_band (void *data, uint32_t first, uint32_t end)
{
  const ImkOctbscanBscan *w = data;
  const ImkOctbscanFinish *s = w->self;

  for (uint32_t i = first; i < end; i++) {
    const float *v =
        s->mixed + (size_t) i * s->n_depths + s->config.tracking_top;
    uint32_t at = 0;

    for (uint32_t z = 1; z < s->n_window; z++)
      if (v[z] > v[at])
        at = z;
    imk_octbscan_contour_top (v, s->n_window, at, s->tops + 2 * i);
  }
}

static void
follow_contour (ImkOctbscanBscan *w, double *place, double *weight)
{
  const ImkOctbscanFinish *s = w->self;
  double sum = 0, weights = 0, mean = mean_of (s->profile, s->n_window);
  uint32_t n = s->lateral->n_ascans;

  imk_parallel_for (s->config.n_threads, n, 16, contour_band, w);
  for (uint32_t i = 0; i < n; i++) {
    sum += s->tops[2 * i] * s->tops[2 * i + 1];
    weights += s->tops[2 * i + 1];
  }
  imk_octbscan_contour (sum, weights, n, mean, place, weight);
}

static void
follow_xcorr (ImkOctbscanFinish *s, double *place, double *weight)
{
  uint32_t n = s->n_window;
  int32_t reach = (int32_t) imk_octbscan_reach (&s->config, n);
  bool has_reference = s->track.n_seen > 0 || s->lock.has_profile;
  double *c = s->tops;

  *place = 0;
  *weight = has_reference ? 0 : 1;
  if (has_reference) {
    for (int32_t lag = -reach; lag <= reach; lag++)
      c[lag + reach] =
          imk_octbscan_correlation (s->profile, s->reference, n, lag);
    imk_octbscan_xcorr (
        c, reach, largest (c, 2 * (uint32_t) reach + 1), place, weight);
  }
  /* The reference is not shifted. */
  for (uint32_t z = 0; z < n; z++)
    s->reference[z] = imk_octbscan_follow (&s->config, s->lock, s->profile,
        s->reference[z], n, z, *place, s->track.n_seen);
}

ImkOctbscanMotion
imk_octbscan_track (ImkOctbscanBscan *w)
{
  ImkOctbscanFinish *s = w->self;
  double place = 0, weight = 0;

  find_profile (s);
  switch (s->config.tracking) {
  case IMK_OCTBSCAN_TRACKING_RPE:
    imk_octbscan_rpe (s->profile, s->n_window,
        largest (s->profile, s->n_window), mean_of (s->profile, s->n_window),
        &place, &weight);
    break;
  case IMK_OCTBSCAN_TRACKING_CONTOUR:
    follow_contour (w, &place, &weight);
    break;
  default:
    follow_xcorr (s, &place, &weight);
    break;
  }
  return imk_octbscan_motion (&s->config, s->lock, &s->track, place, weight);
}
