/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What B-scans leave to those after them, backgrounds and the motion in depth,
 * the same operations on both backends. Profiles are in float64, in the depths
 * of the window. What is not finite leaves nothing: it would never go away. */
#pragma once

#include <math.h>

#include "octbscan/octbscan-level.h"
#include "imk/octbscan.h"

/* What tracking remembers. */
typedef struct ImkOctbscanTrack {
  uint32_t n_seen; /* B-scans */
  bool has_mean;
  double mean; /* of the places, up to the last B-scan that has one */
  double places[IMK_OCTBSCAN_MAX_TRACKED], weights[IMK_OCTBSCAN_MAX_TRACKED];
} ImkOctbscanTrack;

/* What tracking keeps to: tracking_profile, see ImkOctbscanConfig. */
typedef struct ImkOctbscanLock {
  bool has_profile;
  double place; /* of the profile */
} ImkOctbscanLock;

/* One B-scan. */
typedef struct ImkOctbscanMotion {
  double place, weight, mean;
  int32_t shift;
  double fraction; /* of a depth, from -1/2 to 1/2, that the shift leaves */
} ImkOctbscanMotion;

/* Depths at either side that a shift of Z by a fraction takes. */
enum {
  IMK_OCTBSCAN_SHIFT_REACH = 8,
  IMK_OCTBSCAN_SHIFT_TAPS = 2 * IMK_OCTBSCAN_SHIFT_REACH + 1
};

/* What Z of a depth @from from it, -8 to 8, has in Z shifted by @fraction to
 * larger depths, see ImkOctbscanConfig. */
IMK_OCTBSCAN_INLINE void
imk_octbscan_shift_tap (
    double fraction, int32_t from, uint32_t scale, float tap[2])
{
  const double pi = 3.14159265358979323846;
  double x = -fraction - from;
  double sinc = x == 0 ? 1 : sin (pi * x) / (pi * x);
  double weight =
      sinc * (0.5 + 0.5 * cos (pi * x / (IMK_OCTBSCAN_SHIFT_REACH + 1)));

  tap[0] = (float) (weight * cos (pi * x / scale));
  tap[1] = (float) (weight * -sin (pi * x / scale));
}

/* The background @m after one more @mean of a B-scan. */
IMK_OCTBSCAN_INLINE double
imk_octbscan_background (double m, double mean, double share)
{
  return share == 1 ? mean : m + (mean - m) / share;
}

/* P at a depth, where @n A-scans have @sum. */
IMK_OCTBSCAN_INLINE double
imk_octbscan_profile (double sum, uint32_t n)
{
  return isfinite (sum) ? sum / n : 0;
}

/* Where between -1/2 and 1/2 a parabola has its top, with @at in the middle the
 * largest of three. */
IMK_OCTBSCAN_INLINE double
imk_octbscan_parabola (double before, double at, double after)
{
  double bend = before - 2 * at + after;

  return bend < 0 ? 0.5 * (before - after) / bend : 0;
}

/* Of entry @at, the largest of @n. */
IMK_OCTBSCAN_INLINE double
imk_octbscan_top (const double *values, uint32_t n, uint32_t at)
{
  return at > 0 && at + 1 < n ? at + imk_octbscan_parabola (values[at - 1],
                                         values[at], values[at + 1])
                              : at;
}

/* Place and intensity of the brightest depth, @at, of an A-scan. */
IMK_OCTBSCAN_INLINE void
imk_octbscan_contour_top (
    const float *intensities, uint32_t n, uint32_t at, double top[2])
{
  top[0] = at;
  if (at > 0 && at + 1 < n)
    top[0] += imk_octbscan_parabola (
        intensities[at - 1], intensities[at], intensities[at + 1]);
  top[1] = intensities[at];
}

/* Place and weight of a B-scan by CONTOUR. @sum: of the places of @n A-scans,
 * each times its intensity; @weights: of these; @mean: of the profile */
IMK_OCTBSCAN_INLINE void
imk_octbscan_contour (double sum, double weights, uint32_t n, double mean,
    double *place, double *weight)
{
  *place = weights > 0 ? sum / weights : 0;
  *weight = mean > 0 ? weights / n / mean : 0;
}

/* The same by RPE. @at: where the profile is largest */
IMK_OCTBSCAN_INLINE void
imk_octbscan_rpe (const double *profile, uint32_t n, uint32_t at, double mean,
    double *place, double *weight)
{
  *place = imk_octbscan_top (profile, n, at);
  *weight = mean > 0 ? profile[at] / mean : 0;
}

/* The same by XCORR, of correlations at -@reach to @reach; none leaves both as
 * they are. @at: where they are largest */
IMK_OCTBSCAN_INLINE void
imk_octbscan_xcorr (const double *correlations, int32_t reach, uint32_t at,
    double *place, double *weight)
{
  if (!(correlations[at] > 0))
    return;
  *place =
      imk_octbscan_top (correlations, 2 * (uint32_t) reach + 1, at) - reach;
  *weight = correlations[at];
}

IMK_OCTBSCAN_INLINE ImkOctbscanLock
imk_octbscan_lock (const ImkOctbscanConfig *c)
{
  ImkOctbscanLock lock = {c->tracking_profile != NULL, 0};
  uint32_t at = 0;

  if (!lock.has_profile || c->tracking == IMK_OCTBSCAN_TRACKING_XCORR)
    return lock;
  for (uint32_t z = 1; z < c->n_tracking_profile; z++)
    if (c->tracking_profile[z] > c->tracking_profile[at])
      at = z;
  lock.place =
      imk_octbscan_top (c->tracking_profile, c->n_tracking_profile, at);
  return lock;
}

/* Of @a at z + @lag with @b at z, over the depths that both have; 0 where one
 * of them is flat. */
IMK_OCTBSCAN_INLINE double
imk_octbscan_correlation (
    const double *a, const double *b, uint32_t n, int32_t lag)
{
  uint32_t first = lag < 0 ? (uint32_t) -lag : 0;
  uint32_t end = lag > 0 ? n - (uint32_t) lag : n, count = end - first;
  double sa = 0, sb = 0, aa = 0, bb = 0, ab = 0, va, vb;

  for (uint32_t z = first; z < end; z++) {
    double x = a[(int32_t) z + lag], y = b[z];

    sa += x;
    sb += y;
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  va = aa - sa * sa / count;
  vb = bb - sb * sb / count;
  return va > 0 && vb > 0 ? (ab - sa * sb / count) / sqrt (va * vb) : 0;
}

/* Depths of the window; @n_depths: of the crop */
IMK_OCTBSCAN_INLINE uint32_t
imk_octbscan_n_window (const ImkOctbscanConfig *c, uint32_t n_depths)
{
  return c->tracking == IMK_OCTBSCAN_TRACKING_NONE
             ? 0
             : n_depths - c->tracking_top - c->tracking_bottom;
}

/* Depths that XCORR looks at either side: at least half of the window, @n,
 * overlaps. */
IMK_OCTBSCAN_INLINE uint32_t
imk_octbscan_reach (const ImkOctbscanConfig *c, uint32_t n)
{
  return c->tracking_reach < n / 2 ? c->tracking_reach : n / 2;
}

/* Whether the complex image is moved, too. */
IMK_OCTBSCAN_INLINE bool
imk_octbscan_moves_complex (const ImkOctbscanConfig *c)
{
  return c->tracking_complex && c->tracking != IMK_OCTBSCAN_TRACKING_NONE;
}

/* The mean of the profiles so far takes one more, shifted back by @place. */
IMK_OCTBSCAN_INLINE double
imk_octbscan_follow (const ImkOctbscanConfig *c, ImkOctbscanLock lock,
    const double *profile, double reference, uint32_t n, uint32_t z,
    double place, uint32_t n_seen)
{
  int32_t from = (int32_t) z + (int32_t) floor (place + 0.5);
  uint32_t n_mean = c->tracking_bscans;
  uint32_t share = n_seen + 1 < n_mean ? n_seen + 1 : n_mean;

  if (lock.has_profile || (c->tracking_lock && n_seen > 0))
    return reference;
  if (n_seen == 0)
    return profile[z];
  if (from < 0 || from >= (int32_t) n)
    return reference;
  return reference + (profile[from] - reference) / share;
}

/* Eq. 2.11 over the last tracking_bscans B-scans, this one among them. */
IMK_OCTBSCAN_INLINE ImkOctbscanMotion
imk_octbscan_motion (const ImkOctbscanConfig *c, ImkOctbscanLock lock,
    ImkOctbscanTrack *track, double place, double weight)
{
  bool is_found = weight > 0 && isfinite (weight) && isfinite (place);
  ImkOctbscanMotion m;
  double sum = 0, weights = 0;
  uint32_t n_mean = c->tracking_bscans, n;

  m.place = isfinite (place) ? place : 0;
  m.weight = is_found ? weight : 0;
  track->has_mean = track->n_seen > 0 && track->has_mean;
  track->places[track->n_seen % n_mean] = m.place;
  track->weights[track->n_seen % n_mean] = m.weight;
  track->n_seen++;
  n = track->n_seen < n_mean ? track->n_seen : n_mean;
  for (uint32_t i = 0; i < n; i++) {
    sum += track->weights[i] * track->places[i];
    weights += track->weights[i];
  }
  m.mean = weights > 0 ? sum / weights : m.place;
  if (lock.has_profile)
    m.mean = lock.place;
  else if (c->tracking_lock && track->has_mean)
    m.mean = track->mean;
  else if (weights > 0) {
    track->mean = m.mean;
    track->has_mean = true;
  }
  m.shift = is_found ? (int32_t) floor (m.mean - m.place + 0.5) : 0;
  m.fraction = is_found ? m.mean - m.place - m.shift : 0;
  return m;
}

/* As ImkOctbscanJob.track gets it. */
IMK_OCTBSCAN_INLINE void
imk_octbscan_tell_motion (const ImkOctbscanMotion *m, float track[4])
{
  track[0] = (float) m->place;
  track[1] = (float) m->weight;
  track[2] = (float) m->mean;
  track[3] = (float) m->shift;
}
