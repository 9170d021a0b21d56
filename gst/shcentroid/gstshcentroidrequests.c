/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is asked for of the frames to come: captures and find-grid. */
#include "gstshcentroidprivate.h"

#include "gstimagingaction.h"
#include "gstimagingtable.h"
#include "gstshcentroidgeometry.h"
#include "gstshcentroidtemplate.h"

/* --- find-grid ----------------------------------------------------------- */

static void
gst_sh_centroid_ask_for_grid (GstShCentroid *self, const gchar *location)
{
  if (!location || !*location) {
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("find-grid was asked for without a location; it needs the name of a "
         "array file to write."),
        (NULL));
    return;
  }
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  g_free (self->find_location);
  self->find_location = g_strdup (location);
}

gboolean
gst_sh_centroid_finds_grid (GstShCentroid *self)
{
  const GstImagingFile *find = gst_sh_centroid_now (self)->find;
  gboolean asked;

  GST_OBJECT_LOCK (self);
  asked = self->find_location != NULL;
  GST_OBJECT_UNLOCK (self);
  return asked || (find && find->serial != self->found);
}

/* Returns: (transfer full) (nullable): where to write the grid of this frame.
 * The action comes before the property. */
static gchar *
take_find_location (GstShCentroid *self)
{
  const GstImagingFile *find = gst_sh_centroid_now (self)->find;
  gboolean is_new = find && find->serial != self->found;
  gchar *location;

  self->found = find ? find->serial : 0;
  GST_OBJECT_LOCK (self);
  location = g_steal_pointer (&self->find_location);
  GST_OBJECT_UNLOCK (self);
  return location || !is_new ? location : g_strdup (find->location);
}

static void
warn_of_unplaced (GstShCentroid *self, const GstStructure *report)
{
  guint n_cells = 0, n_unplaced = 0;
  gdouble rms = 0;

  gst_structure_get (report, "cells", G_TYPE_UINT, &n_cells, "unplaced",
      G_TYPE_UINT, &n_unplaced, "rms", G_TYPE_DOUBLE, &rms, NULL);
  if (n_unplaced > 0)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("find-grid placed %u spots and left out %u as strong ones, which lie "
         "on no point of the lattice (the others are off by %.2f pixels rms). "
         "Find the grid in a frame of a flatter wavefront, or without stray "
         "light.",
            n_cells, n_unplaced, rms),
        (NULL));
}

/* The map that was written is in use from this frame on. */
static ImkStatus
take_map (GstShCentroid *self, const gchar *location, GstShCentroidMap *map,
    GstStructure *report, ImkError *error)
{
  ImkStatus status;

  gst_imaging_settings_put_file (
      self->settings, "map-location", location, map, NULL, 0);
  g_object_notify (G_OBJECT (self), "map-location");
  status = gst_imaging_settings_update (
      self->settings, GST_IMAGING_WHEN_LIVE, GST_CLOCK_TIME_NONE, error);
  GST_INFO_OBJECT (self, "found %" GST_PTR_FORMAT, report);
  warn_of_unplaced (self, report);
  gst_element_post_message (
      GST_ELEMENT (self), gst_message_new_element (GST_OBJECT (self), report));
  if (status == IMK_OK && self->open.provisional)
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "The grid that was found does not go with the other settings; the "
        "warning before says why. Correct them, or leave them out.");
  return status;
}

/* The same wherever the frame is. */
static GstStructure *
find_and_save (GstShCentroid *self, const ImkImage *in, const gchar *location,
    GstShCentroidMap **map, ImkError *error)
{
  g_autofree gpointer copy = NULL;
  ImkImage host;

  if (gst_imaging_filter_download (
          GST_IMAGING_FILTER (self), in, &host, &copy, error) != IMK_OK)
    return NULL;
  return gst_sh_centroid_find_grid (
      &host, gst_sh_centroid_now (self)->lattice, location, map, error);
}

static ImkStatus
find_grid (GstShCentroid *self, const ImkImage *in, ImkError *error)
{
  g_autofree gchar *location = take_find_location (self);
  GstShCentroidMap *map = NULL;
  GstStructure *report;
  ImkStatus status = IMK_OK;
  ImkError why;

  if (!location)
    return IMK_OK;
  report = find_and_save (self, in, location, &map, &why);
  if (report)
    status = take_map (self, location, map, report, error);
  else if (self->open.provisional)
    status = imk_error_set (error, why.code, "%s", why.message);
  else
    GST_ELEMENT_WARNING (self, STREAM, FAILED, ("%s", why.message),
        ("find-grid to %s; the grid stays as it was", location));
  return status;
}

/* --- captures ------------------------------------------------------------ */

/* Takes over what was asked for since the last frame. Returns: whether a
 * capture of references begins, which needs its kernel */
static gboolean
take_request (GstShCentroid *self)
{
  gboolean is_new;

  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  is_new = self->request.n_wanted > 0;
  if (is_new) {
    gst_sh_centroid_capture_clear (&self->capture);
    self->capture = self->request;
    self->request = (GstShCentroidCapture){0};
  }
  return is_new && self->capture.kind == GST_SH_CENTROID_REFERENCE;
}

/* Returns: (transfer full): the capture, which is no longer under way: who
 * hears that it is done may ask for the next */
static GstShCentroidCapture
steal_capture (GstShCentroid *self)
{
  GstShCentroidCapture capture;

  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  capture = self->capture;
  self->capture = (GstShCentroidCapture){0};
  return capture;
}

static ImkStatus
capture_samples (GstShCentroid *self, const ImkImage *in, ImkError *error)
{
  const gfloat *dark = self->capture.kind == GST_SH_CENTROID_DARK
                           ? NULL
                           : self->open.tables.dark;
  g_autofree gpointer copy = NULL;
  ImkImage host;

  IMK_TRY (gst_imaging_filter_download (
      GST_IMAGING_FILTER (self), in, &host, &copy, error));
  gst_sh_centroid_capture_add_frame (
      &self->capture, &host, self->open.tables.lut, dark);
  return IMK_OK;
}

static ImkStatus
capture_centroids (
    GstShCentroid *self, const ImkImage *in, gpointer stream, ImkError *error)
{
  const gdouble *values = NULL;
  ImkImage numbers[2];
  ImkStatus status;

  IMK_TRY (gst_imaging_table_begin (
      self->open.reference_table, stream, TRUE, numbers, error));
  status = imk_shcentroid_process (
      self->open.reference_kernel, in, &numbers[0], stream, error);
  if (status == IMK_OK)
    status = gst_imaging_filter_synchronize (GST_IMAGING_FILTER (self), error);
  gst_buffer_unref (
      gst_imaging_table_end (self->open.reference_table, &values));
  if (status == IMK_OK)
    gst_sh_centroid_capture_add_centroids (
        &self->capture, values, 2, self->open.n_cells);
  return status;
}

/* Returns: (transfer full) (nullable): the templates, cut out of the cells in
 * use */
static GstShCentroidArray *
finish_template (
    GstShCentroid *self, const GstShCentroidCapture *capture, ImkError *error)
{
  const GstShCentroidSettings *s = gst_sh_centroid_now (self);
  ImkShcentroidConfig config = s->config;

  config.width = self->open.info.width;
  config.height = self->open.info.height;
  return gst_sh_centroid_settings_cells (s, &config, error) == IMK_OK
             ? gst_sh_centroid_template_finish (
                   capture, &self->open.tables, &config, error)
             : NULL;
}

/* Returns: whether it was saved where the capture was asked to */
static gboolean
save_capture (GstShCentroid *self, const GstShCentroidCapture *capture,
    const GstShCentroidArray *array)
{
  g_autoptr (GError) why = NULL;
  gboolean saved = capture->location &&
                   gst_sh_centroid_array_save (array, capture->location,
                       capture->kind != GST_SH_CENTROID_REFERENCE, &why);

  if (why)
    GST_ELEMENT_WARNING (self, RESOURCE, WRITE,
        ("The captured %s is used, but was not saved: %s",
            gst_sh_centroid_calibration_name (capture->kind), why->message),
        (NULL));
  return saved;
}

/* The calibration is in use from the next frame on. */
static void
take_capture (GstShCentroid *self, const GstShCentroidCapture *capture,
    GstShCentroidArray *array)
{
  const gchar *property =
      gst_sh_centroid_settings_file_property (capture->kind);
  gboolean saved = save_capture (self, capture, array);
  const gchar *location = saved ? capture->location : NULL;

  gst_imaging_settings_put_file (
      self->settings, property, location, array, array->values, array->n);
  g_object_notify (G_OBJECT (self), property);
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("shcentroid-captured", "kind", G_TYPE_STRING,
              gst_sh_centroid_calibration_name (capture->kind), "frames",
              G_TYPE_UINT, capture->n_frames, "location", G_TYPE_STRING,
              location, NULL)));
}

static void
finish_capture (GstShCentroid *self)
{
  GstShCentroidCapture capture = steal_capture (self);
  GstShCentroidArray *array;
  ImkError why;

  if (capture.kind == GST_SH_CENTROID_TEMPLATE)
    array = finish_template (self, &capture, &why);
  else
    array = gst_sh_centroid_capture_finish (&capture, self->open.references);
  if (capture.kind == GST_SH_CENTROID_FLAT &&
      !gst_sh_centroid_capture_has_light (&capture))
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("capture-flat saw no light above the dark: all pixels are bad now. "
         "Capture it again with even light."),
        (NULL));
  if (array)
    take_capture (self, &capture, array);
  else
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("capture-template took its frames, but there is no template: %s",
            why.message),
        (NULL));
  gst_sh_centroid_capture_clear (&capture);
}

ImkStatus
gst_sh_centroid_capture_frame (
    GstShCentroid *self, const ImkImage *in, gpointer stream, ImkError *error)
{
  gboolean is_reference = self->capture.kind == GST_SH_CENTROID_REFERENCE;

  /* while settings do not fit, there is no kernel for references */
  if (self->capture.n_wanted == 0 ||
      (is_reference && !self->open.reference_kernel))
    return IMK_OK;
  IMK_TRY (is_reference ? capture_centroids (self, in, stream, error)
                        : capture_samples (self, in, error));
  if (gst_sh_centroid_capture_is_complete (&self->capture))
    finish_capture (self);
  return IMK_OK;
}

void
gst_sh_centroid_drop_capture (GstShCentroid *self)
{
  GstShCentroidCapture capture;

  take_request (self); /* one that no frame came for */
  capture = steal_capture (self);
  if (capture.n_wanted > 0)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("capture-%s came to %u of %u frames; the calibration is as before.",
            gst_sh_centroid_calibration_name (capture.kind), capture.n_frames,
            capture.n_wanted),
        (NULL));
  gst_sh_centroid_capture_clear (&capture);
}

static gboolean
request_capture (GstShCentroid *self, GstShCentroidCalibrationKind kind,
    guint n_frames, const gchar *location)
{
  GstShCentroidCalibrationKind other;

  if (n_frames == 0) {
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("capture-%s was asked for 0 frames; it needs at least 1.",
            gst_sh_centroid_calibration_name (kind)),
        (NULL));
    return FALSE;
  }
  GST_OBJECT_LOCK (self);
  other = self->request.n_wanted > 0   ? self->request.kind
          : self->capture.n_wanted > 0 ? self->capture.kind
                                       : kind;
  if (other == kind)
    gst_sh_centroid_capture_begin (&self->request, kind, n_frames, location);
  GST_OBJECT_UNLOCK (self);
  if (other == kind)
    return TRUE;
  GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
      ("capture-%s was asked for while capture-%s is under way, which needs "
       "other light, and will not begin. Wait for the message "
       "shcentroid-captured.",
          gst_sh_centroid_calibration_name (kind),
          gst_sh_centroid_calibration_name (other)),
      (NULL));
  return FALSE;
}

static gboolean
capture_dark (GstShCentroid *self, guint n_frames, const gchar *location)
{
  return request_capture (self, GST_SH_CENTROID_DARK, n_frames, location);
}

static gboolean
capture_flat (GstShCentroid *self, guint n_frames, const gchar *location)
{
  return request_capture (self, GST_SH_CENTROID_FLAT, n_frames, location);
}

static gboolean
capture_reference (GstShCentroid *self, guint n_frames, const gchar *location)
{
  return request_capture (self, GST_SH_CENTROID_REFERENCE, n_frames, location);
}

static gboolean
capture_template (GstShCentroid *self, guint n_frames, const gchar *location)
{
  return request_capture (self, GST_SH_CENTROID_TEMPLATE, n_frames, location);
}

/* --- requests ------------------------------------------------------------ */

ImkStatus
gst_sh_centroid_take_requests (
    GstShCentroid *self, const ImkImage *in, ImkError *error)
{
  if (take_request (self))
    IMK_TRY (gst_imaging_filter_renew (GST_IMAGING_FILTER (self), error));
  return find_grid (self, in, error);
}

static const GstImagingAction actions[] = {
    /**
     * GstShCentroid::capture-dark:
     * @n_frames: how many frames to take, at least 1
     * @location: (nullable): an array file to write
     *
     * Averages the next @n_frames frames, with the light off; the mean is
     * subtracted from the frames after them. `dark-location` becomes @location.
     *
     * All four post an element message "shcentroid-captured" with `kind`,
     * `frames` and `location` when they are done. A capture that is asked for
     * while one of the same kind is under way takes its place; those of other
     * kinds are refused meanwhile, with a warning. What needs a new kernel, as
     * another size of the frame, grid or file, begins it anew; EOS or stopping
     * ends it with a warning.
     *
     * Returns: whether it will begin with the next frame
     */
    {"capture-dark", G_CALLBACK (capture_dark), G_TYPE_BOOLEAN,
        {{"n-frames", GST_IMAGING_KIND_UINT},
            {"location", GST_IMAGING_KIND_PATH}},
        {"dark-location"},
        "Averages the next n-frames frames and subtracts them as dark from "
        "now on. location: a file for the mean, or empty"},
    /**
     * GstShCentroid::capture-flat:
     *
     * The same with even light, after the dark: pixels are then multiplied with
     * the mean of all pixels divided by their own; those without light are bad.
     */
    {"capture-flat", G_CALLBACK (capture_flat), G_TYPE_BOOLEAN,
        {{"n-frames", GST_IMAGING_KIND_UINT},
            {"location", GST_IMAGING_KIND_PATH}},
        {"flat-location"},
        "Averages the next n-frames frames as flat field. location: a file "
        "for the mean, or empty"},
    /**
     * GstShCentroid::capture-reference:
     *
     * The same with a flat wavefront: slopes are then measured from the mean of
     * the valid centroids. A cell that was never valid keeps its reference.
     */
    {"capture-reference", G_CALLBACK (capture_reference), G_TYPE_BOOLEAN,
        {{"n-frames", GST_IMAGING_KIND_UINT},
            {"location", GST_IMAGING_KIND_PATH}},
        {"reference-location"},
        "Averages the centroids of the next n-frames frames as reference. "
        "location: a file for it, or empty"},
    /**
     * GstShCentroid::capture-template:
     *
     * The same with what is to be looked for: the mean of the calibrated frames
     * is cut into a template for each cell, or into that of template-cell for
     * all, less template-margin. estimator=correlation finds it from then on.
     */
    {"capture-template", G_CALLBACK (capture_template), G_TYPE_BOOLEAN,
        {{"n-frames", GST_IMAGING_KIND_UINT},
            {"location", GST_IMAGING_KIND_PATH}},
        {"template-location"},
        "Averages the next n-frames frames as template of the correlation. "
        "location: a file for it, or empty"},
    /**
     * GstShCentroid::find-grid:
     * @self: the element
     * @location: (type filename): where the map is written
     *
     * Finds the lenslets in the next frame, which should be one of a flat
     * wavefront: pitch, rotation, which are lit. Writes a map to @location,
     * sets map-location to it, and measures that frame with it. The element
     * message "shcentroid-grid" says what was found. Takes about a second a
     * megapixel.
     */
    {"find-grid", G_CALLBACK (gst_sh_centroid_ask_for_grid), G_TYPE_NONE,
        {{"location", GST_IMAGING_KIND_PATH}},
        {"map-location", "find-grid-location"},
        "Finds the lenslets in the next frame and measures with them. "
        "location: a file for the map"},
    {NULL},
};

void
gst_sh_centroid_add_requests (GstShCentroidClass *klass)
{
  gst_imaging_actions_install (G_OBJECT_CLASS (klass), actions);
}
