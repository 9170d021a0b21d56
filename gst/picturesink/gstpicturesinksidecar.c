/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesinksidecar.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "gstimagingfile.h"
#include "gstimagingformats.h"
#include "gstimagingquantity.h"
#include "gstimagingresults.h"

#include "imk/version.h"

#define SCHEMA "gst-imaging-sidecar-v1"
#define EXTEND_US G_USEC_PER_SEC
#define EXTEND_SHARE 20 /* of the time since the last one */

/* --- what frames tell ----------------------------------------------------- */

/* Returns: (transfer none) (nullable) */
static const GstStructure *
get_structure (GstBuffer *buffer, const gchar *name)
{
  GstCustomMeta *meta = gst_meta_get_info (name)
                            ? gst_buffer_get_custom_meta (buffer, name)
                            : NULL;

  return meta ? gst_custom_meta_get_structure (meta) : NULL;
}

void
gst_picture_sink_sidecar_start (GstPictureSinkSidecar *self,
    GstPictureSinkSidecarMode mode, GstElement *sink)
{
  *self = (GstPictureSinkSidecar){.mode = mode, .sink = sink};
  /* before anything runs; a queue may hold many frames when the first one comes
   */
  if (mode != GST_PICTURE_SINK_SIDECAR_NONE)
    self->pipeline = gst_picture_sink_pipeline_new (sink);
  gst_imaging_numbering_reset (&self->numbering);
  gst_picture_sink_series_init (&self->numbers);
  gst_picture_sink_series_init (&self->times);
  gst_picture_sink_series_init (&self->captures);
  gst_picture_sink_series_init (&self->scales);
  gst_picture_sink_series_init (&self->offsets);
  for (guint i = 0; i < GST_IMAGING_MAX_AXES; i++) {
    gst_picture_sink_series_init (&self->steps[i]);
    gst_picture_sink_series_init (&self->origins[i]);
  }
}

/* Once: what the samples are is told of the first frame alone. */
static void
warn_of_quantity (
    GstPictureSinkSidecar *self, const GstPictureSinkFile *file, guint64 frame)
{
  g_autofree gchar *name = gst_imaging_file_name (file->location);

  if (self->has_warned || !gst_picture_sink_file_grows (file) ||
      (!gst_imaging_formats_have_cards (file->location) &&
          self->mode == GST_PICTURE_SINK_SIDECAR_NONE))
    return;
  self->has_warned = TRUE;
  GST_ELEMENT_WARNING (self->sink, STREAM, FAILED,
      ("From frame %" G_GUINT64_FORMAT
       " on the quantity or its unit is another one. \"%s\" tells only the "
       "quantity and unit of the first frame%s. Take a name with a number, such as %%05d.",
          frame, name,
          self->mode == GST_PICTURE_SINK_SIDECAR_NONE
              ? ""
              : ", and the .json beside it has no scale for the others"),
      (NULL));
}

/* Once: @what is not that of the first frame, whose header @file has. */
static void
warn_of_change (GstPictureSinkSidecar *self, const GstPictureSinkFile *file,
    guint64 frame, const gchar *what)
{
  g_autofree gchar *name = NULL;

  if (self->has_warned || !gst_imaging_formats_have_cards (file->location) ||
      !gst_picture_sink_file_grows (file))
    return;
  self->has_warned = TRUE;
  name = gst_imaging_file_name (file->location);
  GST_ELEMENT_WARNING (self->sink, STREAM, FAILED,
      ("From frame %" G_GUINT64_FORMAT
       " on %s is another one. The header of \"%s\" describes the first frame "
       "only. Read %s, or take a name with a number, such as %%05d.",
          frame, what, name,
          self->mode == GST_PICTURE_SINK_SIDECAR_NONE
              ? "each frame's with sidecar=auto"
              : "the .json beside it"),
      (NULL));
}

static gboolean
is_same_text (const GstStructure *a, const GstStructure *b, const gchar *field)
{
  return g_strcmp0 (a ? gst_structure_get_string (a, field) : NULL,
             b ? gst_structure_get_string (b, field) : NULL) == 0;
}

/* Numbers are in the unit of the first frame; in another one there are none. */
static gboolean
add_axis (GstPictureSinkSidecar *self, const GstStructure *quantity, guint axis)
{
  g_autofree gchar *name = g_strdup_printf ("axis-%u-name", axis);
  g_autofree gchar *unit = g_strdup_printf ("axis-%u-unit", axis);
  g_autofree gchar *step = g_strdup_printf ("axis-%u-step", axis);
  g_autofree gchar *origin = g_strdup_printf ("axis-%u-origin", axis);
  gdouble numbers[] = {NAN, NAN};

  if (quantity && is_same_text (quantity, self->quantity, name) &&
      is_same_text (quantity, self->quantity, unit)) {
    gst_structure_get_double (quantity, step, &numbers[0]);
    gst_structure_get_double (quantity, origin, &numbers[1]);
  }
  gst_picture_sink_series_add_number (&self->steps[axis], numbers[0]);
  gst_picture_sink_series_add_number (&self->origins[axis], numbers[1]);
  return gst_picture_sink_series_is_constant (&self->steps[axis]) &&
         gst_picture_sink_series_is_constant (&self->origins[axis]);
}

static void
add_quantity (GstPictureSinkSidecar *self, const GstPictureSinkFile *file,
    const GstStructure *quantity, guint64 frame)
{
  gdouble scale = 1, offset = 0;

  if (quantity) {
    gst_structure_get_double (quantity, "scale", &scale);
    gst_structure_get_double (quantity, "offset", &offset);
    self->tells = TRUE;
  }
  if (quantity && !self->quantity)
    self->quantity = gst_structure_copy (quantity);
  if (!is_same_text (quantity, self->quantity, "name") ||
      !is_same_text (quantity, self->quantity, "unit")) {
    scale = offset = NAN; /* in the unit of the first frame there is none */
    warn_of_quantity (self, file, frame);
  }
  gst_picture_sink_series_add_number (&self->scales, scale);
  gst_picture_sink_series_add_number (&self->offsets, offset);
  for (guint i = 0; i < GST_IMAGING_MAX_AXES; i++)
    if (!add_axis (self, quantity, i))
      warn_of_change (self, file, frame, "an axis of the quantity");
}

static void
add_capture (GstPictureSinkSidecar *self, GstBuffer *buffer)
{
  GstReferenceTimestampMeta *meta =
      gst_buffer_get_reference_timestamp_meta (buffer, NULL);

  if (meta && !self->clock)
    self->clock = gst_caps_to_string (meta->reference);
  gst_picture_sink_series_add (
      &self->captures, meta ? meta->timestamp : GST_CLOCK_TIME_NONE);
  self->tells = self->tells || meta;
}

void
gst_picture_sink_sidecar_add (GstPictureSinkSidecar *self,
    const GstPictureSinkFile *file, GstBuffer *buffer, guint64 n_frames,
    gint fps_n, gint fps_d)
{
  const GstStructure *quantity =
      get_structure (buffer, GST_IMAGING_QUANTITY_META);
  const GstStructure *result = gst_imaging_results_get (buffer, NULL);
  guint64 frame = file->first + file->n_written - n_frames;
  guint64 number, n_missing = 0;

  add_quantity (self, file, quantity, frame);
  if (self->mode == GST_PICTURE_SINK_SIDECAR_NONE)
    return;
  if (self->times.n == 0 &&
      gst_picture_sink_pipeline_has_grown (self->pipeline, self->sink)) {
    gst_picture_sink_pipeline_free (self->pipeline);
    self->pipeline = gst_picture_sink_pipeline_new (self->sink);
  }
  gst_picture_sink_pipeline_look (self->pipeline, frame,
      quantity && gst_structure_has_field (quantity, "settings-hash") ? quantity
                                                                      : result);
  self->tells = self->tells || result;
  number = gst_imaging_numbering_next (&self->numbering, buffer, &n_missing);
  self->n_missing += n_missing;
  /* of the lines in a buffer, the first one */
  gst_picture_sink_series_add (&self->numbers, number);
  gst_picture_sink_series_add_time (
      &self->times, GST_BUFFER_PTS (buffer), fps_n, fps_d);
  add_capture (self, buffer);
}

/* --- the file ------------------------------------------------------------- */

static void
write_array (GstPictureSinkJson *json, const GstPictureSinkFile *file,
    const GstImagingNdArray *frame)
{
  g_autofree gchar *name = g_path_get_basename (file->location);
  gboolean grows = gst_picture_sink_file_grows (file);

  gst_picture_sink_json_text (json, "file", name);
  gst_picture_sink_json_integer (json, "first", grows ? 0 : file->first);
  gst_picture_sink_json_integer (
      json, "frames", (grows ? file->first : 0) + file->n_written);
  gst_picture_sink_json_text (
      json, "type", gst_imaging_nd_array_type_name (frame->type));
  gst_picture_sink_json_open (json, "shape", '[');
  if (grows)
    gst_picture_sink_json_integer (json, NULL, file->first + file->n_written);
  for (guint i = 0; i < frame->n_dims; i++)
    gst_picture_sink_json_integer (json, NULL, frame->dims[i]);
  gst_picture_sink_json_close (json, ']');
}

/* @series: one number where it is constant, the @field of @first */
static void
write_per_frame (const GstPictureSinkSeries *series, GstPictureSinkJson *json,
    const gchar *key, const GstStructure *first, const gchar *field)
{
  gdouble number = 0;

  if (!gst_picture_sink_series_is_constant (series))
    gst_picture_sink_series_write (series, json, key);
  else if (gst_structure_get_double (first, field, &number))
    gst_picture_sink_json_number (json, key, number);
}

static void
write_axis (
    const GstPictureSinkSidecar *self, GstPictureSinkJson *json, guint axis)
{
  static const gchar *const fields[] = {"name", "unit", "step", "origin"};

  gst_picture_sink_json_open (json, NULL, '{');
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++) {
    g_autofree gchar *field = g_strdup_printf ("axis-%u-%s", axis, fields[i]);

    if (i < 2)
      gst_picture_sink_json_text (
          json, fields[i], gst_structure_get_string (self->quantity, field));
    else
      write_per_frame (i == 2 ? &self->steps[axis] : &self->origins[axis], json,
          fields[i], self->quantity, field);
  }
  gst_picture_sink_json_close (json, '}');
}

static gboolean
has_axis (const GstPictureSinkSidecar *self, guint axis)
{
  g_autofree gchar *field = g_strdup_printf ("axis-%u-name", axis);

  return gst_structure_has_field (self->quantity, field);
}

/* The place in the list is the number of the axis: one that is not known is
 * null. */
static void
write_axes (const GstPictureSinkSidecar *self, GstPictureSinkJson *json)
{
  guint n = GST_IMAGING_MAX_AXES;

  while (n > 0 && !has_axis (self, n - 1))
    n--;
  gst_picture_sink_json_open (json, "axes", '[');
  for (guint i = 0; i < n; i++)
    if (has_axis (self, i))
      write_axis (self, json, i);
    else
      gst_picture_sink_json_raw (json, NULL, "null");
  gst_picture_sink_json_close (json, ']');
}

static void
write_quantity (const GstPictureSinkSidecar *self, GstPictureSinkJson *json)
{
  static const gchar *const origin[] = {
      "element", "version", "backend", "settings-hash"};
  static const gchar *const optics[] = {"refractive-index", "wavelength-first",
      "wavelength-last", "depth-scale", "cameras"};
  const GstStructure *q = self->quantity;
  gdouble number;

  gst_picture_sink_json_open (json, "quantity", '{');
  gst_picture_sink_json_text (
      json, "name", gst_structure_get_string (q, "name"));
  gst_picture_sink_json_text (
      json, "unit", gst_structure_get_string (q, "unit"));
  write_per_frame (&self->scales, json, "scale", q, "scale");
  write_per_frame (&self->offsets, json, "offset", q, "offset");
  for (guint i = 0; i < G_N_ELEMENTS (optics); i++)
    if (gst_structure_get_double (q, optics[i], &number))
      gst_picture_sink_json_number (json, optics[i], number);
  for (guint i = 0; i < G_N_ELEMENTS (origin); i++)
    if (gst_structure_has_field_typed (q, origin[i], G_TYPE_STRING))
      gst_picture_sink_json_text (
          json, origin[i], gst_structure_get_string (q, origin[i]));
  write_axes (self, json);
  gst_picture_sink_json_close (json, '}');
}

static void
write_frames (const GstPictureSinkSidecar *self, GstPictureSinkJson *json)
{
  gst_picture_sink_series_write (&self->numbers, json, "frame-numbers");
  gst_picture_sink_json_integer (json, "frames-missing", self->n_missing);
  if (self->times.any)
    gst_picture_sink_series_write (&self->times, json, "pts");
  if (self->captures.any) {
    gst_picture_sink_json_text (json, "capture-clock", self->clock);
    gst_picture_sink_series_write (&self->captures, json, "capture-times");
  }
}

/* Returns: (transfer full) */
static GString *
to_json (const GstPictureSinkSidecar *self, const GstPictureSinkFile *file,
    const GstImagingNdArray *frame, gboolean complete)
{
  GstPictureSinkJson json = {g_string_new (NULL), 0};
  g_autofree gchar *version = gst_version_string ();
  g_autoptr (GDateTime) now = g_date_time_new_now_utc ();
  g_autofree gchar *date = g_date_time_format_iso8601 (now);

  gst_picture_sink_json_open (&json, NULL, '{');
  gst_picture_sink_json_text (&json, "schema", SCHEMA);
  write_array (&json, file, frame);
  if (self->flags)
    gst_picture_sink_json_text (&json, "flags", self->flags);
  gst_picture_sink_json_raw (&json, "complete", complete ? "true" : "false");
  gst_picture_sink_json_text (&json, "written", date);
  gst_picture_sink_json_text (&json, "gst-imaging", IMK_VERSION);
  gst_picture_sink_json_text (&json, "gstreamer", version);
  if (self->quantity)
    write_quantity (self, &json);
  write_frames (self, &json);
  gst_picture_sink_pipeline_write (self->pipeline, &json, complete);
  if (self->previous)
    gst_picture_sink_json_raw (&json, "previous", self->previous);
  gst_picture_sink_json_close (&json, '}');
  return g_string_append_c (json.text, '\n');
}

/* --- saving --------------------------------------------------------------- */

static gboolean
is_free (const gchar *path, GError **error)
{
  return gst_imaging_file_check_beside (path, "\"" SCHEMA "\"", error);
}

/* What the sidecar of a file that is continued has told so far */
static void
load_previous (GstPictureSinkSidecar *self, const gchar *path, GError **error)
{
  gsize size = 0;
  g_autofree gchar *text = NULL;

  if (!g_file_test (path, G_FILE_TEST_EXISTS) || !is_free (path, NULL))
    return;
  text =
      gst_imaging_file_load (path, GST_IMAGING_FILE_MAX_SIDECAR, &size, error);
  if (text && *g_strstrip (text) == '{')
    self->previous = g_steal_pointer (&text);
}

typedef struct {
  gchar *path;
  GString *text;
  gint *is_saving;
} Saving;

/* Waiting for the disk would make the stream wait. What fails here is tried
 * again at the end, which warns. */
static gpointer
save_in_thread (gpointer data)
{
  Saving *saving = data;

  gst_imaging_file_save (
      saving->path, saving->text->str, saving->text->len, NULL);
  g_atomic_int_set (saving->is_saving, FALSE);
  g_string_free (saving->text, TRUE);
  g_free (saving->path);
  g_free (saving);
  return NULL;
}

static void
wait_for_thread (GstPictureSinkSidecar *self)
{
  g_clear_pointer (&self->thread, g_thread_join);
}

void
gst_picture_sink_sidecar_extend (GstPictureSinkSidecar *self,
    const GstPictureSinkFile *file, const GstImagingNdArray *frame)
{
  gint64 start = g_get_monotonic_time ();
  Saving *saving;

  if (!self->is_saved || self->mode == GST_PICTURE_SINK_SIDECAR_NONE ||
      start < self->due || g_atomic_int_get (&self->is_saving))
    return;
  wait_for_thread (self);
  saving = g_new (Saving, 1);
  saving->path = g_strconcat (file->location, ".json", NULL);
  saving->text = to_json (self, file, frame, FALSE);
  saving->is_saving = &self->is_saving;
  g_atomic_int_set (&self->is_saving, TRUE);
  self->thread = g_thread_new ("sidecar", save_in_thread, saving);
  self->due =
      start + MAX (EXTEND_US, EXTEND_SHARE * (g_get_monotonic_time () - start));
}

gboolean
gst_picture_sink_sidecar_save (GstPictureSinkSidecar *self,
    const GstPictureSinkFile *file, const GstImagingNdArray *frame,
    gboolean complete, GError **error)
{
  g_autofree gchar *path = g_strconcat (file->location, ".json", NULL);
  gboolean continues = file->append && file->first > 0;
  g_autoptr (GError) why = NULL;
  g_autoptr (GString) text = NULL;

  wait_for_thread (self);
  if (continues && !self->previous && !self->is_saved && !complete)
    load_previous (self, path, &why);
  if (self->mode == GST_PICTURE_SINK_SIDECAR_NONE || !self->pipeline ||
      (self->mode == GST_PICTURE_SINK_SIDECAR_AUTO && !self->tells &&
          !self->previous && !why &&
          !gst_picture_sink_pipeline_is_ours (self->pipeline))) {
    if (!continues && is_free (path, NULL))
      g_unlink (path); /* that of a file which is no more */
    return TRUE;
  }
  if (why || (!self->is_saved && !is_free (path, &why))) {
    self->mode = GST_PICTURE_SINK_SIDECAR_NONE; /* and no second warning */
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE,
        "%s The frames are written without a sidecar. Move the file, or take "
        "another location.",
        why->message);
    return FALSE;
  }
  self->is_saved = TRUE;
  self->due = g_get_monotonic_time () + EXTEND_US;
  text = to_json (self, file, frame, complete);
  return gst_imaging_file_save (path, text->str, text->len, error);
}

void
gst_picture_sink_sidecar_clear (GstPictureSinkSidecar *self)
{
  wait_for_thread (self);
  gst_picture_sink_pipeline_free (self->pipeline);
  gst_picture_sink_series_clear (&self->numbers);
  gst_picture_sink_series_clear (&self->times);
  gst_picture_sink_series_clear (&self->captures);
  gst_picture_sink_series_clear (&self->scales);
  gst_picture_sink_series_clear (&self->offsets);
  for (guint i = 0; i < GST_IMAGING_MAX_AXES; i++) {
    gst_picture_sink_series_clear (&self->steps[i]);
    gst_picture_sink_series_clear (&self->origins[i]);
  }
  gst_clear_structure (&self->quantity);
  g_free (self->clock);
  g_free (self->flags);
  g_free (self->previous);
  memset (self, 0, sizeof (*self));
}
