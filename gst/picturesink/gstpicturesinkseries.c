/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesinkseries.h"

#include <gst/gst.h>
#include <math.h>

typedef enum { INTEGER, NUMBER, TIME, NONE } Kind;

typedef struct {
  Kind kind;
  guint64 first; /* of TIME: a number of frames */
  gint64 step;
  gdouble number;
  gint fps_n, fps_d;
  guint64 count;
} Run;

void
gst_picture_sink_series_init (GstPictureSinkSeries *self)
{
  *self =
      (GstPictureSinkSeries){.runs = g_array_new (FALSE, FALSE, sizeof (Run))};
}

static Run *
last (GstPictureSinkSeries *self)
{
  return self->runs->len > 0
             ? &g_array_index (self->runs, Run, self->runs->len - 1)
             : NULL;
}

static void
begin (GstPictureSinkSeries *self, const Run *run)
{
  g_array_append_vals (self->runs, run, 1);
  self->any = self->any || run->kind != NONE;
  self->n++;
}

static void
extend (GstPictureSinkSeries *self, Run *run)
{
  run->count++;
  self->n++;
}

void
gst_picture_sink_series_add (GstPictureSinkSeries *self, guint64 value)
{
  Run *run = last (self);
  Kind kind = value == G_MAXUINT64 ? NONE : INTEGER;

  if (run && run->kind == kind && run->count == 1)
    run->step = (gint64) (value - run->first);
  if (run && run->kind == kind &&
      (kind == NONE ||
          value == run->first + (guint64) run->step * run->count)) {
    extend (self, run);
    return;
  }
  /* two numbers are no run: the second may begin one */
  if (run && run->kind == kind && run->count == 2) {
    Run second = {INTEGER, run->first + (guint64) run->step, .count = 1};

    run->count = 1;
    second.step = (gint64) (value - second.first);
    self->n--;
    begin (self, &second);
    extend (self, last (self));
    return;
  }
  begin (self, &(Run){kind, value, .count = 1});
}

static guint64
time_of (const Run *run, guint64 i)
{
  return gst_util_uint64_scale (
      run->first + i, GST_SECOND * (guint64) run->fps_d, (guint64) run->fps_n);
}

void
gst_picture_sink_series_add_time (
    GstPictureSinkSeries *self, guint64 pts, gint fps_n, gint fps_d)
{
  Run *run = last (self), first = {TIME, .fps_n = fps_n, .fps_d = fps_d};

  if (pts == GST_CLOCK_TIME_NONE || fps_n <= 0 || fps_d <= 0) {
    gst_picture_sink_series_add (self, pts);
    return;
  }
  if (run && run->kind == TIME && run->fps_n == fps_n && run->fps_d == fps_d &&
      time_of (run, run->count) == pts) {
    extend (self, run);
    return;
  }
  first.count = 1;
  first.first = gst_util_uint64_scale_round (
      pts, (guint64) fps_n, GST_SECOND * (guint64) fps_d);
  if (time_of (&first, 0) == pts)
    begin (self, &first);
  else
    gst_picture_sink_series_add (self, pts);
}

void
gst_picture_sink_series_add_number (GstPictureSinkSeries *self, gdouble value)
{
  Run *run = last (self);

  gboolean is_none = isnan (value);

  if (run && run->kind == NUMBER &&
      (run->number == value || (is_none && isnan (run->number))))
    extend (self, run);
  else
    begin (self, &(Run){NUMBER, .number = value, .count = 1});
}

gboolean
gst_picture_sink_series_is_constant (const GstPictureSinkSeries *self)
{
  return self->runs->len == 1;
}

static void
write_run (const Run *run, GstPictureSinkJson *json)
{
  g_autofree gchar *text = NULL;

  if (run->kind == NONE)
    text = g_strdup_printf ("[null, 0, %" G_GUINT64_FORMAT "]", run->count);
  else if (run->kind == TIME)
    text = g_strdup_printf ("{\"framerate\": \"%d/%d\", \"first\": "
                            "%" G_GUINT64_FORMAT
                            ", \"count\": %" G_GUINT64_FORMAT "}",
        run->fps_n, run->fps_d, run->first, run->count);
  else
    text = g_strdup_printf ("[%" G_GUINT64_FORMAT ", %" G_GINT64_FORMAT
                            ", %" G_GUINT64_FORMAT "]",
        run->first, run->step, run->count);
  gst_picture_sink_json_raw (json, NULL, text);
}

void
gst_picture_sink_series_write (const GstPictureSinkSeries *self,
    GstPictureSinkJson *json, const gchar *key)
{
  gst_picture_sink_json_open (json, key, '[');
  for (guint i = 0; i < self->runs->len; i++) {
    const Run *run = &g_array_index (self->runs, Run, i);

    if (run->kind == NUMBER) {
      if (run->count > 1)
        gst_picture_sink_json_open (json, NULL, '[');
      gst_picture_sink_json_number (json, NULL, run->number);
      if (run->count > 1) {
        gst_picture_sink_json_integer (json, NULL, 0);
        gst_picture_sink_json_integer (json, NULL, run->count);
        gst_picture_sink_json_close (json, ']');
      }
    } else if (run->kind == INTEGER && run->count <= 2) {
      for (guint64 k = 0; k < run->count; k++)
        gst_picture_sink_json_integer (
            json, NULL, run->first + k * (guint64) run->step);
    } else {
      write_run (run, json);
    }
  }
  gst_picture_sink_json_close (json, ']');
}

void
gst_picture_sink_series_clear (GstPictureSinkSeries *self)
{
  g_clear_pointer (&self->runs, g_array_unref);
}
