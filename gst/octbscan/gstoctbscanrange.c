/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* range=auto: the ends of the first B-scans, which are made one by one, become
 * those of all that follow, whatever device makes these. */
#include "gstoctbscanplan.h"

#include "gstoctbscaninput.h"
#include "gstoctbscanwork.h"
#include "imk/octbscan-mean.h"

/* dB of an image without light: it says nothing about the next ones. */
#define DARK (-199.0f)

/* dB from black to white. The intensities of noise alone are distributed
 * exponentially, whose percentiles 30 and 99.9 are 12.9 dB apart; samples were
 * never seen below 24. */
#define NOISE 16.0f

/* Ends of noise alone are held for so long, and for so many B-scans. */
#define NOISE_HOLD (100 * GST_MSECOND)
#define LEAST_NOISE_HOLD 64

/* dB of a fringe in the mean; noise has up to 10. */
#define FRINGE 20

void
gst_oct_bscan_reset_range (GstOctBscan *self)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  self->range.n = self->range.n_noise = 0;
  self->range.serial++;
  g_atomic_int_set (&self->range.holds_noise, FALSE);
}

/* What the mean of the first camera takes off with it, once a second, as it
 * takes milliseconds. A B-scan on a device is not fetched for that. */
static gdouble
find_fringe (GstOctBscan *self, GstBuffer *in)
{
  GstVideoFrame frame;
  ImkImage image;
  gdouble fringe;
  gint64 now = g_get_monotonic_time ();

  if (now < self->input.next_fringe ||
      self->in_use.now->config.background_mode !=
          IMK_OCTBSCAN_BACKGROUND_MEAN ||
      g_atomic_int_get (&self->warned_of_mirror) ||
      gst_oct_bscan_is_on_device (in) ||
      !gst_oct_bscan_map_input (self, in, GST_MAP_READ, &frame, &image))
    return 0;
  self->input.next_fringe = now + G_USEC_PER_SEC;
  fringe = imk_octbscan_mean_fringe (&image, 0, self->open.config.n_cameras);
  gst_video_frame_unmap (&frame);
  return fringe;
}

/* Call with the object locked. To look again empties the queue of a device, so
 * a fast camera waits for more B-scans.
 * Returns: B-scans until ends that are of noise alone are sought again */
static guint
hold_of_noise (const GstOctBscan *self)
{
  guint64 n = GST_CLOCK_TIME_IS_VALID (self->period) && self->period > 0
                  ? NOISE_HOLD / self->period
                  : 0;

  return (guint) CLAMP (n, LEAST_NOISE_HOLD, G_MAXINT);
}

void
gst_oct_bscan_look_again (GstOctBscan *self, GstOctBscanWork *w)
{
  gboolean looks = self->input.n_bscans == 0;

  if (g_atomic_int_get (&self->range.holds_noise)) {
    GST_OBJECT_LOCK (self);
    self->range.n_with_noise += w->n;
    looks = self->range.n_with_noise > hold_of_noise (self);
    if (looks) {
      self->range.n = 0;
      self->range.serial++;
      g_atomic_int_set (&self->range.holds_noise, FALSE);
    }
    GST_OBJECT_UNLOCK (self);
  }
  if (looks && self->in_use.now->config.range == IMK_OCTBSCAN_RANGE_AUTO)
    w->fringe = find_fringe (self, w->in);
}

gboolean
gst_oct_bscan_is_settling (GstOctBscan *self)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  return self->in_use.now->config.range == IMK_OCTBSCAN_RANGE_AUTO &&
         self->range.n < GST_OCT_BSCAN_AUTO;
}

/* Without a sample each B-scan uses its own range at first. After some such
 * B-scans the range is held for a while, because B-scans whose range is
 * searched cannot be batched. Call with the object locked. */
static void
note_noise (GstOctBscan *self)
{
  if (++self->range.n_noise < GST_OCT_BSCAN_AUTO)
    return;
  self->range.n = GST_OCT_BSCAN_AUTO;
  self->range.n_noise = GST_OCT_BSCAN_AUTO - 1; /* one is enough from now on */
  self->range.n_with_noise = 0;
  g_atomic_int_set (&self->range.holds_noise, TRUE);
}

static void
warn_of_mirror (GstOctBscan *self, gdouble fringe)
{
  if (!g_atomic_int_compare_and_exchange (&self->warned_of_mirror, FALSE, TRUE))
    return;
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("The image is noise alone, but the mean of its spectra has a fringe %.0f "
       "dB above noise, which background=mean takes off. If the sample is the "
       "same in all A-scans, as a mirror is, set background=rolling. Without a "
       "sample there is nothing to do.",
          fringe),
      (NULL));
}

void
gst_oct_bscan_note_ends (GstOctBscan *self, const GstOctBscanWork *w)
{
  const gfloat *ends = w->reports[0].ends;
  gboolean is_noise = FALSE;

  if (w->snapshot->config.range != IMK_OCTBSCAN_RANGE_AUTO || !w->has_images ||
      (!w->out[SRC] && !w->out[LINEAR]) || ends[1] < DARK)
    return;
  GST_OBJECT_LOCK (self);
  if (w->snapshot->auto_serial == self->range.serial) {
    is_noise = self->range.n == 0 && ends[1] - ends[0] < NOISE;
    memcpy (self->range.ends, ends, sizeof (self->range.ends));
    if (is_noise)
      note_noise (self);
    else
      self->range.n++;
    self->range.serial++;
  }
  GST_OBJECT_UNLOCK (self);
  if (is_noise && w->fringe > FRINGE)
    warn_of_mirror (self, w->fringe);
}
