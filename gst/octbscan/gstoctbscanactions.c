/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is done once, when an application asks for it. */
#include "gstoctbscaninput.h"

#include "gstimagingaction.h"
#include "gstimagingarrayfile.h"
#include "gstoctbscancalibration.h"
#include "gstoctbscandestination.h"
#include "gstoctbscanmirror.h"
#include "gstoctbscanplan.h"
#include "gstoctbscanqueue.h"
#include "imk/octbscan-dispersion.h"

/* --- the dispersion */

typedef struct {
  const ImkImage *in;
  guint first_camera;
  GString *text;         /* (out): as the property */
  gdouble before, after; /* (out): means over the cameras */
  gdouble confidence;    /* (out): the least of them */
  gdouble range;         /* (out): that was searched for d2, either side */
  GValue curves;         /* (out): array of an array for each camera */
  gint uncalibrated;     /* (out): the first such camera, -1 for none */
} Estimate;

/* The camera's own coefficients with d2 and d3 in their places. */
static void
append_camera (GString *text, const ImkOctbscanCamera *camera,
    const ImkOctbscanDispersion *found)
{
  guint n = MAX (camera->n_dispersion, 4);
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];

  if (text->len > 0)
    g_string_append_c (text, ',');
  for (guint i = 0; i < n; i++) {
    gdouble number = i == 2                     ? found->d2
                     : i == 3                   ? found->d3
                     : i < camera->n_dispersion ? camera->dispersion[i]
                                                : 0;

    g_string_append_printf (text, "%s%s", i > 0 ? ";" : "",
        g_ascii_formatd (digits, sizeof (digits), "%.10g", number));
  }
}

static void
append_curve (GValue *curves, const ImkOctbscanDispersion *found)
{
  GValue curve = G_VALUE_INIT;

  g_value_init (&curve, GST_TYPE_ARRAY);
  for (guint i = 0; i < IMK_OCTBSCAN_CURVE; i++) {
    GValue value = G_VALUE_INIT;

    g_value_init (&value, G_TYPE_DOUBLE);
    g_value_set_double (&value, found->curve[i]);
    gst_value_array_append_and_take_value (&curve, &value);
  }
  gst_value_array_append_and_take_value (curves, &curve);
}

static ImkStatus
estimate (const ImkOctbscanConfig *config, Estimate *e, ImkError *error)
{
  ImkStatus status = IMK_OK;

  for (guint i = 0; i < config->n_cameras && status == IMK_OK; i++) {
    ImkOctbscanDispersion found = {0};

    status = imk_octbscan_estimate_dispersion (
        config, e->in, e->first_camera, i, 0, &found, error);
    append_camera (e->text, &config->cameras[i], &found);
    append_curve (&e->curves, &found);
    e->before += found.before / config->n_cameras;
    e->after += found.after / config->n_cameras;
    e->confidence =
        i == 0 ? found.confidence : MIN (e->confidence, found.confidence);
    e->range = MAX (e->range, found.range);
    if (e->uncalibrated < 0 && config->cameras[i].map == IMK_OCTBSCAN_MAP_NONE)
      e->uncalibrated = (gint) i;
  }
  return status;
}

static void
tell_estimate (GstOctBscan *self, Estimate *e, const gchar *why)
{
  g_autofree gchar *now = NULL;
  GstStructure *s;
  g_autofree gchar *warning =
      !why && e->uncalibrated >= 0
          ? g_strdup_printf (
                "Camera %d has no calibration of its wavelengths, so its "
                "pixels are taken to be linear in wavenumber. If they are not, "
                "the dispersion that was found makes up for that at one depth "
                "alone: set calibration, then estimate it again.",
                e->uncalibrated)
          : NULL;

  if (!why)
    gst_oct_bscan_settings_set_found (G_OBJECT (self), NULL, e->text->str);
  g_object_get (self, "dispersion", &now, NULL);
  s = gst_structure_new ("octbscan-dispersion", "accepted", G_TYPE_BOOLEAN,
      why == NULL, "text", G_TYPE_STRING, why ? why : "", "dispersion",
      G_TYPE_STRING, now ? now : "", "sharpness-before", G_TYPE_DOUBLE,
      e->before, "sharpness-after", G_TYPE_DOUBLE, e->after, "confidence",
      G_TYPE_DOUBLE, e->confidence, "range", G_TYPE_DOUBLE, e->range, "warning",
      G_TYPE_STRING, warning ? warning : "", NULL);
  gst_structure_set_value (s, "curves", &e->curves);
  gst_element_post_message (
      GST_ELEMENT (self), gst_message_new_element (GST_OBJECT (self), s));
  if (warning)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS, ("%s", warning), (NULL));
}

static void
follow_dispersion (GstOctBscan *self, const ImkImage *in)
{
  Estimate e = {.in = in,
      .first_camera = gst_oct_bscan_first_camera (self),
      .uncalibrated = -1};
  ImkStatus status;
  ImkError error;

  e.text = g_string_new (NULL);
  g_value_init (&e.curves, GST_TYPE_ARRAY);
  status = estimate (&self->in_use.plan->config, &e, &error);
  tell_estimate (self, &e, status == IMK_OK ? NULL : error.message);
  if (status != IMK_OK)
    GST_ELEMENT_WARNING (self, LIBRARY, FAILED, ("%s", error.message), (NULL));
  g_value_unset (&e.curves);
  g_string_free (e.text, TRUE);
}

void
gst_oct_bscan_follow_actions (GstOctBscan *self, GstBuffer *in)
{
  gboolean wants_dispersion =
      g_atomic_int_compare_and_exchange (&self->wants_dispersion, TRUE, FALSE);
  gboolean wants_mirror = gst_oct_bscan_wants_mirror (self);
  GstVideoFrame frame;
  ImkImage image;

  if (!wants_dispersion && !wants_mirror)
    return;
  if (!gst_oct_bscan_map_input (self, in, GST_MAP_READ, &frame, &image)) {
    GST_ELEMENT_WARNING (self, RESOURCE, READ,
        ("Nothing can be estimated: the B-scan cannot be read."), (NULL));
    return;
  }
  if (wants_mirror)
    gst_oct_bscan_follow_mirror (self, &image);
  if (wants_dispersion)
    follow_dispersion (self, &image);
  gst_video_frame_unmap (&frame);
}

static void
estimate_dispersion (GstOctBscan *self)
{
  g_atomic_int_set (&self->wants_dispersion, TRUE);
}

/* --- files */

/* Returns: FALSE, and says so, without a @location */
static gboolean
has_name (GstOctBscan *self, const gchar *what, const gchar *location)
{
  if (location && *location)
    return TRUE;
  GST_ELEMENT_WARNING (self, RESOURCE, WRITE,
      ("The %s cannot be saved without the name of a file.", what), (NULL));
  return FALSE;
}

static gboolean
save_calibration (GstOctBscan *self, const gchar *location)
{
  g_autoptr (GError) why = NULL;
  Settings *s;
  gboolean ok;

  if (!has_name (self, "calibration", location))
    return FALSE;
  s = gst_imaging_settings_copy (self->base.settings);
  ok = gst_oct_bscan_destination_of_calibration (location, &why) &&
       gst_oct_bscan_calibration_save (
           gst_imaging_setting_file_location (s->calibration), s->camera_order,
           s->k_polynomial, s->dispersion, s->config.n_cameras,
           gst_oct_bscan_mirror_samples (self), location, &why);
  if (!ok)
    GST_ELEMENT_WARNING (self, RESOURCE, WRITE,
        ("The calibration cannot be saved to \"%s\": %s", location,
            why->message),
        (NULL));
  gst_imaging_settings_free_copy (self->base.settings, s);
  return ok;
}

/* @size: bytes, all of them 0 before the first B-scan */
static ImkStatus
check_found (gconstpointer values, gsize size, ImkError *error)
{
  const guint8 *bytes = values;

  for (gsize i = 0; i < size; i++)
    if (bytes[i])
      return IMK_OK;
  return imk_error_set (
      error, IMK_ERROR_CONFIG, "There has been no B-scan to find it in.");
}

/* What can be saved: [cameras, columns], as the kernel gives it. */
static const struct {
  const gchar *name;
  GstImagingNdArrayType type;
} found[] = {
    [GST_OCT_BSCAN_BACKGROUND] = {"background", GST_IMAGING_ND_ARRAY_TYPE_F64},
    [GST_OCT_BSCAN_PATTERN] = {"fixed pattern",
        GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64},
};

/* @values: of zeros, which they stay while there is no kernel. Call with the
 * engine locked. */
static ImkStatus
get_found (GstOctBscan *self, GstOctBscanFound what, gpointer values,
    gsize size, ImkError *error)
{
  if (!gst_imaging_engine_is_on_cuda (self->base.engine) && self->open.kernel)
    IMK_TRY (gst_oct_bscan_get_found (self->open.kernel, what, values, error));
  else if (self->shared.queue)
    IMK_TRY (gst_oct_bscan_queue_get (self->shared.queue, what, values, error));
  return check_found (values, size, error);
}

static gboolean
save_found (GstOctBscan *self, GstOctBscanFound what, const gchar *location)
{
  const ImkOctbscanConfig *c = &self->open.config;
  const GstImagingNdArrayType type = found[what].type;
  g_autofree gpointer values = NULL;
  g_autoptr (GError) why = NULL;
  gboolean ok;
  guint64 dims[2];
  gsize size;
  ImkError error;

  if (!has_name (self, found[what].name, location))
    return FALSE;
  /* not the stream's lock: it is held while downstream is prerolled */
  g_mutex_lock (&self->engine_lock);
  dims[0] = c->n_cameras;
  dims[1] =
      what == GST_OCT_BSCAN_BACKGROUND ? c->width : imk_octbscan_n_depths (c);
  size = dims[0] * dims[1] * gst_imaging_nd_array_type_size (type);
  values = g_malloc0 (size);
  ok = get_found (self, what, values, size, &error) == IMK_OK &&
       gst_oct_bscan_destination_of_array (location, &why) &&
       gst_imaging_array_save (location, type, 2, dims, values, &why);
  g_mutex_unlock (&self->engine_lock);
  if (!ok)
    GST_ELEMENT_WARNING (self, RESOURCE, WRITE,
        ("The %s cannot be saved to \"%s\": %s", found[what].name, location,
            why ? why->message : error.message),
        (NULL));
  return ok;
}

static gboolean
save_background (GstOctBscan *self, const gchar *location)
{
  return save_found (self, GST_OCT_BSCAN_BACKGROUND, location);
}

static gboolean
save_fixed_pattern (GstOctBscan *self, const gchar *location)
{
  return save_found (self, GST_OCT_BSCAN_PATTERN, location);
}

/* --- signals */

static const GstImagingAction actions[] = {
    /**
     * GstOctBscan::estimate-dispersion:
     *
     * Looks for the d2 and d3 of each camera that make the next B-scan
     * sharpest, sets #GstOctBscan:dispersion to them and posts an element
     * message "octbscan-dispersion" with "accepted", "dispersion",
     * "sharpness-before", "sharpness-after", "confidence" (0 to 1), "range" and
     * "curves": for each camera the sharpness of 81 d2 from -range to range.
     * Where an image holds nothing to judge by, "accepted" is FALSE, "text"
     * says why, as does a warning, and the dispersion stays. "warning" says so,
     * and a warning is posted, when an accepted value is of a camera without
     * calibration. The stream waits some tenths of a second a camera.
     */
    {"estimate-dispersion", G_CALLBACK (estimate_dispersion), G_TYPE_NONE,
        {{NULL}}, {NULL},
        "Estimates the dispersion from the next B-scan and uses it"},
    /**
     * GstOctBscan::calibrate-mirror:
     * @sides: a sign for each of the next B-scans, as "+-": + for a mirror on
     *   the side of the sample, - for one beyond zero delay; empty: one +
     * @travel_um: how far the mirror was moved from the first position to the
     *   last one, in um, which scales the depths; 0: unknown
     *
     * Takes the fringes of a mirror from the next B-scans, and with those of
     * earlier calls sets #GstOctBscan:k-polynomial and #GstOctBscan:dispersion.
     * Posts an element message "octbscan-mirror" with "accepted", "text",
     * "k-polynomial", "dispersion", "phase-error-rms", "n-positions", and a
     * structure "camera-C-mirror-I" for each camera and position with "depth",
     * "depth-um", "width-before", "width", "width-limit", "level", "snr" and
     * "phase-error". With a travel there is "camera-C-scale", the depths beside
     * those of the wavelengths, and "warning" if it is far from 1.
     */
    {"calibrate-mirror", G_CALLBACK (gst_oct_bscan_calibrate_mirror),
        G_TYPE_NONE,
        {{"sides", GST_IMAGING_KIND_STRING},
            {"travel-um", GST_IMAGING_KIND_DOUBLE}},
        {NULL},
        "Calibrates from a mirror in the next B-scans. sides: a + for each "
        "of them, or - for one beyond zero delay; empty: one +. travel-um: "
        "how far the mirror was moved from the first position to the last "
        "one, which scales the depths; 0: unknown"},
    /**
     * GstOctBscan::forget-mirrors:
     *
     * The next calibrate-mirror begins without the positions of earlier ones.
     */
    {"forget-mirrors", G_CALLBACK (gst_oct_bscan_forget_mirrors), G_TYPE_NONE,
        {{NULL}}, {NULL},
        "Removes the positions of earlier mirrors: the next "
        "calibrate-mirror starts without them"},
    /**
     * GstOctBscan::reset-range:
     *
     * range=auto finds its ends anew, in the next 8 B-scans.
     */
    {"reset-range", G_CALLBACK (gst_oct_bscan_reset_range), G_TYPE_NONE,
        {{NULL}}, {NULL},
        "Chooses the ends of range=auto again, from the next 8 B-scans"},
    /**
     * GstOctBscan::save-calibration:
     * @location: an .ini file
     *
     * Writes the calibration with the property dispersion in it; after
     * #GstOctBscan::calibrate-mirror also the number of samples that it is for.
     * Replaces a calibration or an empty file only.
     *
     * Returns: FALSE after a warning, also without a calibration
     */
    {"save-calibration", G_CALLBACK (save_calibration), G_TYPE_BOOLEAN,
        {{"location", GST_IMAGING_KIND_PATH}}, {"calibration"},
        "Writes the calibration with the dispersion in use. location: an "
        ".ini file"},
    /**
     * GstOctBscan::save-background:
     * @location: an array file; its extension selects the format
     *
     * Writes the background that was taken off the last B-scan, float64
     * [cameras, samples], for background-location. There is none with
     * background=rolling and none. Replaces no file but an empty one or an
     * array of float64 or complex numbers with up to 16 rows.
     *
     * Returns: FALSE after a warning
     */
    {"save-background", G_CALLBACK (save_background), G_TYPE_BOOLEAN,
        {{"location", GST_IMAGING_KIND_PATH}}, {"background-location"},
        "Writes the background that was subtracted from the last B-scan. "
        "location: an array file"},
    /**
     * GstOctBscan::save-fixed-pattern:
     * @location: an array file; its extension selects the format
     *
     * Writes the fixed pattern that was taken off the last B-scan.
     *
     * Returns: FALSE after a warning
     */
    {"save-fixed-pattern", G_CALLBACK (save_fixed_pattern), G_TYPE_BOOLEAN,
        {{"location", GST_IMAGING_KIND_PATH}}, {"pattern-location"},
        "Writes the fixed pattern that was subtracted from the last B-scan. "
        "location: an array file"},
    {NULL},
};

void
gst_oct_bscan_install_actions (GObjectClass *klass)
{
  gst_imaging_actions_install (klass, actions);
}
