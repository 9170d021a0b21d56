/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Times of B-scans, which may be unknown. */
#pragma once

#include <gst/gst.h>

/* Returns: @time as it is if @by is unknown */
static inline GstClockTime
gst_oct_bscan_time_later (GstClockTime time, GstClockTime by, guint n)
{
  return GST_CLOCK_TIME_IS_VALID (time) && GST_CLOCK_TIME_IS_VALID (by)
             ? time + n * by
             : time;
}

/* Returns: GST_CLOCK_TIME_NONE if one of them is unknown */
static inline GstClockTime
gst_oct_bscan_time_sum (GstClockTime a, GstClockTime b)
{
  return GST_CLOCK_TIME_IS_VALID (b) ? gst_oct_bscan_time_later (a, b, 1) : b;
}
