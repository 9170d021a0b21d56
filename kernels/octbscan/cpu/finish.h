/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From Z, or its intensities, to the images of a job on the CPU: fixed pattern,
 * A-scans of the image, tracking, mean of B-scans, pictures. */
#pragma once

#include "octbscan/cpu/loops.h"
#include "core/pool.h"
#include "octbscan/octbscan-backend.h"
#include "octbscan/octbscan-track.h"

typedef struct ImkOctbscanFinish {
  const ImkOctbscanLoops *loops;
  ImkOctbscanConfig config; /* without its pointers; updated */
  uint32_t n_depths;
  const ImkOctbscanLateral *lateral;
  float *z;           /* [H][n_depths] complex, NULL without pattern */
  float *pattern;     /* [C][n_depths] complex, likewise */
  bool has_pattern;   /* ONCE */
  float *intensity;   /* [H][n_depths] */
  uint8_t *bad;       /* [H] rows without an A-scan; NULL for integers */
  uint8_t *dead;      /* [n_ascans] columns without one, likewise */
  float *mixed;       /* [n_ascans][n_depths] */
  double *sums;       /* [n_ascans][n_depths], of B-scans, or NULL */
  uint32_t *n_summed; /* [n_ascans] */
  bool has_summed;
  uint32_t n_window;
  double *profile, *reference; /* [n_window] */
  double *tops;                /* [n_ascans][2] place and intensity */
  ImkOctbscanTrack track;
  ImkOctbscanLock lock;
  uint32_t *counts; /* [N_BINS] for percentiles */
  ImkPool *pool;
} ImkOctbscanFinish;

/* One job. */
typedef struct ImkOctbscanBscan {
  ImkOctbscanFinish *self;
  const ImkOctbscanJob *job;
  const float *shown; /* intensities of the images, [n_ascans][n_depths] */
  int32_t shift;
  double fraction; /* of the complex image, see ImkOctbscanMotion */
} ImkOctbscanBscan;

ImkStatus imk_octbscan_finish_new (const ImkOctbscanPlan *plan,
    const ImkOctbscanLoops *loops, ImkOctbscanFinish **self, ImkError *error);

/* Discards the state from earlier B-scans. */
void imk_octbscan_finish_reset (ImkOctbscanFinish *self);

/* Makes the images of @job from @self->z, or from @self->intensity if there is
 * no z; the complex one only from z. */
void imk_octbscan_finish_run (
    ImkOctbscanFinish *self, const ImkOctbscanJob *job);

/* @self may be NULL. */
void imk_octbscan_finish_free (ImkOctbscanFinish *self);

/* --- pattern.c: the minimum-variance mean line, see ImkOctbscanFixedPattern */

/* Depths that are searched at a time. */
enum { IMK_OCTBSCAN_PATTERN_DEPTHS = 64 };

/* Complex numbers of @n rows, @pitch floats apart. */
typedef struct ImkOctbscanLines {
  const float *z;
  size_t pitch;
  uint32_t n;
  const uint8_t *bad; /* rows that do not count, @bad_step apart; or NULL */
  uint32_t bad_step;
} ImkOctbscanLines;

/* Splits @lines into @n_segments of at least two rows.
 * @n_depths: up to IMK_OCTBSCAN_PATTERN_DEPTHS
 * @pattern: (out): [n_depths] complex: the mean of the segment with the least
 *   variance, depth by depth; 0 where no segment has two rows that count */
void imk_octbscan_find_pattern (const ImkOctbscanLines *lines,
    uint32_t n_segments, uint32_t n_depths, float *pattern);

/* Subtracts the fixed pattern from Z and computes the intensities, both of the
 * job's B-scan. */
void imk_octbscan_subtract_pattern (ImkOctbscanBscan *w);

/* track.c: measures and reports the axial motion, see ImkOctbscanMotion. */
ImkOctbscanMotion imk_octbscan_track (ImkOctbscanBscan *w);
