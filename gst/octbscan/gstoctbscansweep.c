/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records of a swept source, corrected before anything looks at them. */
#include <string.h>

#include "gstoctbscaninput.h"
#include "gstoctbscanplan.h"

gboolean
gst_oct_bscan_has_sweeps (const Settings *s)
{
  return s->sweep.sweeps != IMK_OCTBSCAN_SWEEPS_FORWARD ||
         s->sweep.jitter_reach > 0;
}

/* @lines: of a B-scan */
static ImkOctbscanSweepConfig
config_of (const Settings *s, const ImkOctbscanConfig *lines)
{
  ImkOctbscanSweepConfig c = s->sweep;

  c.width = lines->width;
  c.height = lines->height;
  c.type = lines->type;
  c.n_cameras = lines->n_cameras;
  return c;
}

ImkStatus
gst_oct_bscan_check_sweeps (
    const Settings *s, const ImkOctbscanConfig *lines, ImkError *error)
{
  ImkOctbscanSweepConfig c = config_of (s, lines);

  return imk_octbscan_sweep_check (&c, error);
}

/* Makes the object for the settings in use, where there is none. */
static ImkStatus
need_sweep (GstOctBscan *self, ImkError *error)
{
  ImkOctbscanSweepConfig c =
      config_of (self->in_use.now, &self->in_use.plan->config);
  ImkOctbscanSweep *made;

  /* another property must not move the origin of the phases */
  if (self->input.sweep &&
      memcmp (&c, &self->input.sweep_config, sizeof (c)) == 0)
    return IMK_OK;
  IMK_TRY (imk_octbscan_sweep_new (&c, &made, error));
  imk_octbscan_sweep_free (self->input.sweep);
  self->input.sweep = made;
  self->input.sweep_config = c;
  return IMK_OK;
}

static void
warn_of_jitter (GstOctBscan *self, guint n, guint n_records)
{
  if (n == 0 || self->input.warned_of_jitter)
    return;
  self->input.warned_of_jitter = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, DECODE,
      ("%u of %u records are left as they are: the samples of the calibration "
       "window (jitter-first, jitter-samples) do not fit their mean. Is the "
       "window where the calibration signal is, and jitter-reach large enough?",
          n, n_records),
      (NULL));
}

ImkStatus
gst_oct_bscan_correct_sweeps (
    GstOctBscan *self, GstBuffer **bscan, ImkError *error)
{
  GstVideoFrame frame;
  ImkImage records;
  ImkStatus status;
  guint32 n = 0;

  if (!gst_oct_bscan_has_sweeps (self->in_use.now))
    return IMK_OK;
  *bscan = gst_buffer_make_writable (*bscan);
  if (!gst_oct_bscan_map_input (
          self, *bscan, GST_MAP_READ | GST_MAP_WRITE, &frame, &records))
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "The records of a B-scan cannot be corrected: their memory cannot be "
        "written to.");
  status = need_sweep (self, error);
  if (status == IMK_OK)
    status = imk_octbscan_sweep_process (self->input.sweep, &records,
        self->input.next_line + self->input.n_skipped, NULL, &n, error);
  gst_video_frame_unmap (&frame);
  if (status == IMK_OK)
    warn_of_jitter (self, n, records.height);
  return status;
}
