/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which frame of its camera a frame is: by its time, or by a counter that the
 * camera gives, in the offset or in samples of its first line. */
#include "gstoctinterlace-private.h"

/* Counters become keys, which are not negative. */
#define BIAS (G_GUINT64_CONSTANT (1) << 63)

gboolean
gst_oct_interlace_has_counters (GstOctInterlace *self)
{
  const Settings *now = gst_imaging_settings_now (self->settings);

  return now->match != MATCH_TIME;
}

/* Returns: the lowest @bits of sample @i of the line; 0 of what is no whole
 * number */
static guint64
sample_at (
    const GstImagingLines *lines, gconstpointer line, guint i, guint bits)
{
  guint64 mask = (G_GUINT64_CONSTANT (1) << bits) - 1;
  gfloat value;

  switch (lines->type) {
  case IMK_TYPE_U8:
    return ((const guint8 *) line)[i] & mask;
  case IMK_TYPE_F32:
    value = ((const gfloat *) line)[i];
    return value >= 0 && value < 0x1p24f ? (guint64) value & mask : 0;
  default: /* the bits of i16 are those of u16 */
    return ((const guint16 *) line)[i] & mask;
  }
}

static guint
bits_of (const Settings *now, const GstImagingLines *lines)
{
  guint most = lines->type == IMK_TYPE_U8 ? 8 : 16;

  return now->counter_bits > 0 ? MIN (now->counter_bits, most) : most;
}

static gboolean
read_line (const Settings *now, const GstOctInterlacePad *camera,
    GstBuffer *frame, guint64 *counter)
{
  const GstImagingLines *lines = &camera->lines;
  guint bits = bits_of (now, lines);
  guint64 end = (guint64) now->counter_sample + now->counter_samples;
  GstVideoFrame map;

  if (end > gst_imaging_lines_get_width (lines) ||
      !gst_video_frame_map (&map, &lines->info, frame, GST_MAP_READ))
    return FALSE;
  *counter = 0;
  for (guint i = 0; i < now->counter_samples; i++)
    *counter |= sample_at (lines, GST_VIDEO_FRAME_PLANE_DATA (&map, 0),
                    now->counter_sample + i, bits)
                << (i * bits);
  gst_video_frame_unmap (&map);
  return TRUE;
}

/* What the counter of this camera says when others say 0 */
static gint64
offset_of (const Settings *now, guint index)
{
  return now->counter_offsets && index < now->counter_offsets->n
             ? (gint64) now->counter_offsets->values[index]
             : 0;
}

/* Counters of few bits begin again at 0: they are near the last one. */
static gint64
unwrap (const GstOctInterlace *self, gint64 counter, guint bits)
{
  gint64 near = self->has_last ? self->last_counter : self->first_counter;
  gint64 turn, away;

  if (bits > 62)
    return counter;
  turn = G_GINT64_CONSTANT (1) << bits;
  away = (counter - near) % turn;
  away += away < -turn / 2 ? turn : away >= turn / 2 ? -turn : 0;
  return near + away;
}

static void
warn_of_none (GstOctInterlace *self, GstOctInterlacePad *camera)
{
  if (camera->warned_of_counter)
    return;
  camera->warned_of_counter = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, DECODE,
      ("Frames of camera %u have no counter, so they are taken in their order: "
       "with match=offset their buffers need an offset, with match=line their "
       "lines the samples from counter-sample on.",
          camera->number),
      (NULL));
}

guint64
gst_oct_interlace_key_of (GstOctInterlace *self, GstOctInterlacePad *camera,
    guint index, GstBuffer *frame)
{
  const Settings *now = gst_imaging_settings_now (self->settings);
  guint64 counter = GST_BUFFER_OFFSET (frame);
  gboolean ok = counter != GST_BUFFER_OFFSET_NONE;
  guint bits = 64;
  gint64 found;

  if (now->match == MATCH_TIME)
    return gst_oct_interlace_pad_time_of (camera, frame);
  if (now->match == MATCH_LINE) {
    ok = read_line (now, camera, frame, &counter);
    bits = bits_of (now, &camera->lines) * now->counter_samples;
  }
  if (!ok) {
    warn_of_none (self, camera);
    return GST_OCT_INTERLACE_NO_KEY;
  }
  found = (gint64) (counter - (guint64) offset_of (now, index));
  if (!self->has_last && !self->has_first) {
    self->has_first = TRUE;
    self->first_counter = found;
  }
  return (guint64) unwrap (self, found, bits) + BIAS;
}

/* The least step that counters took is that of one frame to the next: 1 of
 * frames, the lines of a frame where lines are counted. */
static gint64
step_of (GstOctInterlace *self, gint64 by)
{
  const Settings *now = gst_imaging_settings_now (self->settings);

  if (now->match == MATCH_OFFSET)
    return 1;
  if (by > 0 && (self->step == 0 || by < self->step))
    self->step = by;
  return self->step;
}

guint64
gst_oct_interlace_count_holes (GstOctInterlace *self, guint64 key)
{
  gint64 by = (gint64) (key - BIAS - (guint64) self->last_counter), step;

  if (!gst_oct_interlace_has_counters (self) || !self->has_last ||
      key == GST_OCT_INTERLACE_NO_KEY || by <= 0)
    return 0;
  step = step_of (self, by);
  return (guint64) (by / step) - 1;
}

void
gst_oct_interlace_note_key (GstOctInterlace *self, guint64 key)
{
  if (!gst_oct_interlace_has_counters (self) || key == GST_OCT_INTERLACE_NO_KEY)
    return;
  self->last_counter = (gint64) (key - BIAS);
  self->has_last = TRUE;
}

/* One of the holes is filled. */
void
gst_oct_interlace_step (GstOctInterlace *self)
{
  self->last_counter =
      (gint64) ((guint64) self->last_counter + (guint64) step_of (self, 0));
}

void
gst_oct_interlace_forget_counters (GstOctInterlace *self)
{
  self->has_first = self->has_last = FALSE;
  self->step = 0;
}
