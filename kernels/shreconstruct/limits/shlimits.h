/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which command a mirror is sent: the one rule of the CPU, of CUDA, of the way
 * to other reference commands, and of further mirrors. */
#pragma once

#include <math.h>
#include <stdbool.h>

#ifdef __CUDACC__
#define IMK_SHLIMITS_FUNCTION static __host__ __device__ __forceinline__
#else
#define IMK_SHLIMITS_FUNCTION static inline
#endif

/**
 * ImkShlimits: (of a command, in units of the mirror)
 * @minimum, @maximum: minimum <= maximum, may be infinite
 * @slew: the most that a command changes from frame to frame, above 0, may be
 *   infinite */
typedef struct ImkShlimits {
  double minimum, maximum, slew;
} ImkShlimits;

IMK_SHLIMITS_FUNCTION bool
imk_shlimits_has_any (const ImkShlimits *limits)
{
  return isfinite (limits->minimum) || isfinite (limits->maximum) ||
         isfinite (limits->slew);
}

/* The next ones do not hide a NaN, which is a loop that has overflowed. */

/* Returns: @wanted within minimum and maximum */
IMK_SHLIMITS_FUNCTION double
imk_shlimits_clip (const ImkShlimits *limits, double wanted)
{
  return isnan (wanted)
             ? wanted
             : fmin (fmax (wanted, limits->minimum), limits->maximum);
}

/* Returns: the next number on the way from @before to @wanted */
IMK_SHLIMITS_FUNCTION double
imk_shlimits_slew (const ImkShlimits *limits, double wanted, double before)
{
  return isnan (wanted) ? wanted
                        : fmin (fmax (wanted, before - limits->slew),
                              before + limits->slew);
}

/* Minimum and maximum hold also where they have changed by more than the slew
 * limit. Returns: the command that is sent in place of @wanted */
IMK_SHLIMITS_FUNCTION double
imk_shlimits_send (const ImkShlimits *limits, double wanted, double before)
{
  return imk_shlimits_clip (limits, imk_shlimits_slew (limits, wanted, before));
}
