/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of B-scans that were taken backwards, in the order of the others. */
#include "gstoctangio-private.h"

#include <string.h>

#include "gstimagingpicture.h"

/* The last place of a B-scan is the first one of the next, the first place the
 * last one. */
static void
warn_of_time (GstOctAngio *self, const GstOctAngioSettings *s)
{
  if (self->warned_of_turns || s->config.method != IMK_OCTANGIO_DOPPLER)
    return;
  self->warned_of_turns = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FORMAT,
      (s->config.pairs == IMK_OCTANGIO_PAIRS_ASCANS
              ? "octbscan has bidirectional=true: with pairs=ascans, lines stay "
                "in the order of time, and every second B-scan is mirrored. Set "
                "repeats=1."
              : "octbscan has bidirectional=true: the time from one repeat to "
                "the next goes from 0 at one end of a B-scan to two B-scans at "
                "the other. Flow has the right size in its middle alone."),
      (NULL));
}

static GstBuffer *
reverse_lines (GstOctAngio *self, GstBuffer *bscan, GstVideoFrame *frame)
{
  gsize line = (gsize) self->n_depths * 2 * sizeof (gfloat);
  guint n = self->n_ascans;
  GstBuffer *turned = gst_buffer_new_allocate (NULL, n * line, NULL);
  GstVideoMeta *video;
  GstMapInfo map;

  gst_buffer_map (turned, &map, GST_MAP_WRITE); /* our memory: cannot fail */
  for (guint i = 0; i < n; i++)
    memcpy (map.data + i * line,
        (const guint8 *) GST_VIDEO_FRAME_PLANE_DATA (frame, 0) +
            (gsize) (n - 1 - i) * GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0),
        line);
  gst_buffer_unmap (turned, &map);
  gst_buffer_copy_into (turned, bscan,
      GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS | GST_BUFFER_COPY_META,
      0, -1);
  video = gst_buffer_get_video_meta (turned);
  if (video) /* has the strides of @bscan */
    gst_buffer_remove_meta (turned, &video->meta);
  return turned;
}

GstBuffer *
gst_oct_angio_turn (GstOctAngio *self, GstBuffer *bscan)
{
  const GstOctAngioSettings *s = gst_imaging_settings_now (self->base.settings);
  GstVideoInfo info = *gst_imaging_engine_info (self->base.engine);
  GstVideoFrame frame;
  GstBuffer *turned;

  if (!self->is_complex || !gst_oct_angio_is_backward (bscan))
    return bscan;
  warn_of_time (self, s);
  if (s->config.pairs == IMK_OCTANGIO_PAIRS_ASCANS)
    return bscan;
  if (!gst_video_frame_map (&frame, &info, bscan, GST_MAP_READ)) {
    gst_buffer_unref (bscan);
    GST_ELEMENT_ERROR (self, RESOURCE, READ,
        ("A B-scan cannot be read by the CPU, which turns those that "
         "bidirectional of octbscan took backwards."),
        (NULL));
    return NULL;
  }
  turned = reverse_lines (self, bscan, &frame);
  gst_video_frame_unmap (&frame);
  gst_buffer_unref (bscan);
  return turned;
}
