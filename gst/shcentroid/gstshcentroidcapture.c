/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidcapture.h"

#include <math.h>

/* What the kernel takes at most. */
#define MAX_FLAT 1e6

const gchar *
gst_sh_centroid_calibration_name (GstShCentroidCalibrationKind kind)
{
  static const gchar *const names[GST_SH_CENTROID_N_CALIBRATIONS] = {
      "dark", "flat", "reference", "template", "bad pixels", "look-up table"};

  return names[kind];
}

void
gst_sh_centroid_capture_clear (GstShCentroidCapture *self)
{
  g_free (self->location);
  g_free (self->sums);
  g_free (self->counts);
  *self = (GstShCentroidCapture){0};
}

void
gst_sh_centroid_capture_begin (GstShCentroidCapture *self,
    GstShCentroidCalibrationKind kind, guint n_frames, const gchar *location)
{
  gst_sh_centroid_capture_clear (self);
  self->kind = kind;
  self->n_wanted = n_frames;
  self->location = location && *location ? g_strdup (location) : NULL;
}

void
gst_sh_centroid_capture_restart (GstShCentroidCapture *self)
{
  g_clear_pointer (&self->sums, g_free);
  g_clear_pointer (&self->counts, g_free);
  self->n_frames = 0;
}

static void
expect (GstShCentroidCapture *self, guint n_rows, guint n_columns)
{
  if (self->sums && self->n_rows == n_rows && self->n_columns == n_columns)
    return;
  gst_sh_centroid_capture_restart (self);
  self->n_rows = n_rows;
  self->n_columns = n_columns;
  self->sums = g_new0 (gdouble, (gsize) n_rows * n_columns);
  self->counts = g_new0 (guint32, n_rows);
}

void
gst_sh_centroid_capture_add_frame (GstShCentroidCapture *self,
    const ImkImage *frame, const gfloat *lut, const gfloat *dark)
{
  expect (self, frame->height, frame->width);
  for (guint y = 0; y < frame->height; y++) {
    const guint8 *row = (const guint8 *) frame->data + y * frame->stride;
    gsize at = (gsize) y * frame->width;

    for (guint x = 0; x < frame->width; x++) {
      gdouble sample = frame->type == IMK_TYPE_U8 ? row[x]
                       : frame->type == IMK_TYPE_U16
                           ? ((const guint16 *) row)[x]
                           : ((const gfloat *) row)[x];
      gdouble value = lut ? lut[(guint) sample] : sample;

      self->sums[at + x] += dark ? value - dark[at + x] : value;
    }
  }
  self->n_frames++;
}

void
gst_sh_centroid_capture_add_centroids (GstShCentroidCapture *self,
    const gdouble *centroids, guint stride, guint n_cells)
{
  expect (self, n_cells, 2);
  for (guint i = 0; i < n_cells; i++) {
    const gdouble *xy = centroids + (gsize) i * stride;

    if (isnan (xy[0]))
      continue;
    self->sums[2 * i] += xy[0];
    self->sums[2 * i + 1] += xy[1];
    self->counts[i]++;
  }
  self->n_frames++;
}

gboolean
gst_sh_centroid_capture_is_complete (const GstShCentroidCapture *self)
{
  return self->n_frames >= self->n_wanted;
}

gboolean
gst_sh_centroid_capture_has_light (const GstShCentroidCapture *self)
{
  gsize n = (gsize) self->n_rows * self->n_columns;

  for (gsize i = 0; i < n; i++)
    if (self->sums[i] > 0)
      return TRUE;
  return FALSE;
}

static gdouble
mean_above_0 (const GstShCentroidCapture *self, gsize n)
{
  gdouble sum = 0;
  gsize count = 0;

  for (gsize i = 0; i < n; i++)
    if (self->sums[i] > 0) {
      sum += self->sums[i] / self->n_frames;
      count++;
    }
  return count ? sum / (gdouble) count : 0;
}

static void
finish_frame (
    const GstShCentroidCapture *self, gboolean is_flat, gdouble *values)
{
  gsize n = (gsize) self->n_rows * self->n_columns;
  gdouble mean = is_flat ? mean_above_0 (self, n) : 0;

  for (gsize i = 0; i < n; i++) {
    gdouble value = self->sums[i] / self->n_frames;

    /* a float32 sample was not finite: so will be its cell, without a dark */
    if (!isfinite (value))
      value = 0;
    if (is_flat)
      value = value > 0 && mean / value <= MAX_FLAT ? mean / value : 0;
    values[i] = value;
  }
}

GstShCentroidArray *
gst_sh_centroid_capture_finish (
    const GstShCentroidCapture *self, const gdouble *defaults)
{
  const guint64 dims[] = {self->n_rows, self->n_columns};
  GstShCentroidArray *array = gst_sh_centroid_array_new (2, dims);

  if (self->kind != GST_SH_CENTROID_REFERENCE)
    finish_frame (self, self->kind == GST_SH_CENTROID_FLAT, array->values);
  else
    for (guint i = 0; i < 2 * self->n_rows; i++)
      array->values[i] = self->counts[i / 2]
                             ? self->sums[i] / self->counts[i / 2]
                             : defaults[i];
  return array;
}
