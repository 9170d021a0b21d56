/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which camera has taken each line of a B-scan, and how far tracking has moved
 * it: attached to the images. */
#include "gstoctbscanoutput.h"

#include <math.h>

#include "gstimagingresults.h"

enum { CAMERA, ASCAN, SHIFT, N_FIELDS };

static const gchar *const fields[] = {"camera", "ascan", "shift-z"};
static const gchar *const units[] = {"", "", "px"};

static gboolean
has_lines (const GstOctBscanWork *w)
{
  const ImkOctbscanConfig *c = &w->snapshot->config;

  return c->n_cameras > 1 || c->tracking != IMK_OCTBSCAN_TRACKING_NONE;
}

static GstOctBscanLines
lines_of (const GstOctBscan *self, const GstOctBscanWork *w, guint k)
{
  guint64 before = (guint64) k * self->input.bscan.height;

  return (GstOctBscanLines){
      .n = 1,
      .changes = w->snapshot->changes,
      .first_camera =
          (gint) ((w->first_camera + before) % self->open.config.n_cameras),
      .backward =
          w->snapshot->config.bidirectional && (w->backward + k) % 2 != 0,
      .shift = w->reports[k].track.shift,
      .frame = w->frame,
      .n_missing = k == 0 ? w->n_missing : 0,
  };
}

void
gst_oct_bscan_add_lines (GstOctBscan *self, const GstOctBscanWork *w)
{
  GstOctBscanLines *mean = &self->output.mean_lines, one;

  if (!w->in || !has_lines (w))
    return;
  one = lines_of (self, w, 0);
  if (w->begins_mean || mean->n == 0 || mean->changes != one.changes) {
    *mean = one;
    return;
  }
  mean->shift += (one.shift - mean->shift) / ++mean->n;
  mean->frame = one.frame;
  mean->n_missing += one.n_missing;
  if (mean->first_camera != one.first_camera)
    mean->first_camera = GST_OCT_BSCAN_DIFFERENT;
  if (mean->backward != one.backward)
    mean->backward = GST_OCT_BSCAN_DIFFERENT;
}

gdouble
gst_oct_bscan_shift (
    const GstOctBscan *self, const GstOctBscanWork *w, guint output, guint k)
{
  const GstOctBscanReport *report = &w->reports[k];

  if (!has_lines (w))
    return 0;
  if (output == COMPLEX) /* with the fraction of a depth */
    return report->track.weight > 0
               ? (gdouble) report->track.mean - report->track.place
               : 0;
  return w->n > 1 ? lines_of (self, w, k).shift : self->output.mean_lines.shift;
}

static GstBuffer *
rows_new (const GstOctBscan *self, const GstOctBscanLines *lines)
{
  const ImkOctbscanConfig *c = &self->open.config;
  guint n_ascans = imk_octbscan_n_ascans (c);
  gfloat *rows = g_new (gfloat, (gsize) c->height * N_FIELDS), *row = rows;
  gboolean has_camera = lines->first_camera != GST_OCT_BSCAN_DIFFERENT;
  gboolean has_ascan = lines->backward != GST_OCT_BSCAN_DIFFERENT &&
                       c->scan == IMK_OCTBSCAN_SCAN_EVEN;

  for (guint i = 0; i < c->height; i++, row += N_FIELDS) {
    guint at = (lines->backward ? c->height - 1 - i : i) / c->average_ascans;

    if (c->flip & IMK_OCTBSCAN_FLIP_LATERAL)
      at = n_ascans - 1 - at;
    row[CAMERA] = has_camera ? ((guint) lines->first_camera + i) % c->n_cameras
                             : (gfloat) NAN;
    row[ASCAN] = has_ascan ? at : (gfloat) NAN;
    row[SHIFT] = (gfloat) lines->shift;
  }
  return gst_buffer_new_wrapped (
      rows, (gsize) c->height * N_FIELDS * sizeof (gfloat));
}

/* Mostly those of the image before. */
static GstBuffer *
get_rows (GstOctBscan *self, const GstOctBscanLines *lines)
{
  const GstOctBscanLines *last = &self->output.last_lines;

  if (!self->output.last_rows || lines->changes != last->changes ||
      lines->first_camera != last->first_camera ||
      lines->backward != last->backward || lines->shift != last->shift) {
    gst_clear_buffer (&self->output.last_rows);
    self->output.last_rows = rows_new (self, lines);
    self->output.last_lines = *lines;
  }
  return self->output.last_rows;
}

void
gst_oct_bscan_attach_lines (GstOctBscan *self, const GstOctBscanWork *w,
    guint output, guint k, GstBuffer *image)
{
  const ImkOctbscanConfig *c = &self->open.config;
  GstOctBscanLines lines = self->output.mean_lines;
  GstImagingResult result;

  if (output == ENFACE || !has_lines (w))
    return;
  if (output == COMPLEX || w->n > 1)
    lines = lines_of (self, w, k);
  if (lines.n == 0)
    return;
  result = (GstImagingResult){
      .id = "oct-ascans-v1",
      .fields = fields,
      .units = units,
      .n_fields = N_FIELDS,
      .n_rows = c->height,
      .data = get_rows (self, &lines),
      .ref_width = c->width,
      .ref_height = c->height,
      .frame = lines.frame,
      .frames_missing = lines.n_missing,
      .origin = gst_oct_bscan_origin (w),
  };
  gst_imaging_results_attach (image, GST_OBJECT_NAME (self), &result);
}
