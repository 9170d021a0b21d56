/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-octangio
 * @title: octangio
 * @short_description: flow from repeated B-scans
 *
 * Compares `repeats` consecutive B-scans of one place: what changes is blood.
 * Takes the pad `complex` of octbscan, or its float images of intensities.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 picturesrc location=spectra.npy ! octbscan name=o
 * calibration=oct.ini o.complex ! queue ! octangio repeats=4
 * method=complex-decorrelation ! videoconvert ! autovideosink
 * ]|
 *
 * Since: 0.2
 */
#include "gstoctangio-private.h"

#include <math.h>
#include <string.h>

#include "gstimagingallocation.h"
#include "gstimagingmetadata.h"
#include "gstimagingpicture.h"
#include "gstimagingndarray.h"
#include "gstimagingquantity.h"

GST_DEBUG_CATEGORY_STATIC (octangio_debug);
#define GST_CAT_DEFAULT octangio_debug

#define TENSOR_CAPS GST_IMAGING_PICTURE_TENSOR_CAPS

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (TENSOR_CAPS));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (
        GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE, RGB }") "; " TENSOR_CAPS));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstOctAngio, gst_oct_angio,
    GST_TYPE_IMAGING_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        octangio_debug, "octangio", 0, "flow from repeated B-scans"))
GST_ELEMENT_REGISTER_DEFINE (
    octangio, "octangio", GST_RANK_NONE, GST_TYPE_OCT_ANGIO)

/* --- the kernel ----------------------------------------------------------- */

static void
set_kernel (GstOctAngio *self, ImkOctangio *kernel)
{
  ImkOctangio *old;

  GST_OBJECT_LOCK (self);
  old = self->kernel;
  self->kernel = kernel;
  if (kernel)
    imk_octangio_cancel (kernel, self->is_stopping);
  GST_OBJECT_UNLOCK (self);
  imk_octangio_free (old);
}

static void
close_kernel (GstElement *element)
{
  set_kernel (GST_OCT_ANGIO (element), NULL);
}

/* The two surfaces of each A-scan.
 * @surfaces: (out) (nullable): none */
static ImkStatus
plan_surfaces (const GstOctAngio *self, const GstOctAngioSettings *s,
    gdouble **surfaces, guint *n, ImkError *error)
{
  const GstImagingNdArray *array = gst_imaging_setting_file_data (s->surfaces);
  gsize count = 0;
  GError *why = NULL;
  gdouble *numbers;

  *surfaces = NULL;
  *n = 0;
  if (!array || s->enface == GST_OCT_ANGIO_ENFACE_NONE)
    return IMK_OK;
  if (array->n_dims < 2 || array->n_dims > 3 ||
      array->dims[array->n_dims - 2] != 2 ||
      array->dims[array->n_dims - 1] != self->n_ascans ||
      (array->n_dims == 3 && array->dims[0] != s->bscans_per_volume))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "surfaces-location \"%s\" does not have the shape [2, %u], or [%u, 2, "
        "%u] with two surfaces for each row of the view from above.",
        array->name, self->n_ascans, s->bscans_per_volume, self->n_ascans);
  numbers = gst_imaging_nd_array_to_double (array, &count, &why);
  if (!numbers) {
    imk_error_set (
        error, IMK_ERROR_CONFIG, "surfaces-location: %s", why->message);
    g_error_free (why);
    return error->code;
  }
  *surfaces = numbers;
  *n = (guint) (count / (2 * self->n_ascans));
  return IMK_OK;
}

static ImkStatus
check_settings (
    const GstOctAngio *self, const GstOctAngioSettings *s, ImkError *error)
{
  gboolean has_file = gst_imaging_setting_file_data (s->surfaces) != NULL;
  gboolean finds = s->surface == GST_OCT_ANGIO_SURFACE_CONTOUR;

  if (s->refractive_index > 0 && s->refractive_index < 1)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "refractive-index is %g; it must be at least 1, or 0 for that of "
        "octbscan.",
        s->refractive_index);
  if (s->enface == GST_OCT_ANGIO_ENFACE_NONE)
    return IMK_OK;
  if (finds && has_file)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "surface=contour finds the surface, and surfaces-location names a file "
        "of surfaces. Set only one of them.");
  if (finds && s->surface_top >= self->n_depths)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "surface-top is %u, but there are %u depths.", s->surface_top,
        self->n_depths);
  if (has_file || (guint64) s->enface_top + s->enface_bottom < self->n_depths)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "enface-top %u and enface-bottom %u leave none of the %u depths. Take less "
      "of either.",
      s->enface_top, s->enface_bottom, self->n_depths);
}

/* Keeps the current kernel on failure. */
static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  GstOctAngio *self = GST_OCT_ANGIO (element);
  const GstOctAngioSettings *s = gst_imaging_settings_now (self->base.settings);
  gboolean has_contour = s->enface != GST_OCT_ANGIO_ENFACE_NONE &&
                         s->surface == GST_OCT_ANGIO_SURFACE_CONTOUR;
  ImkOctangioConfig c = s->config;
  ImkOctangio *kernel = NULL;
  gfloat *volume;
  gboolean stays;
  guint n_surfaces, n_rows;
  gdouble *surfaces;
  ImkStatus status;

  c.n_ascans = self->n_ascans;
  c.n_depths = self->n_depths;
  c.is_complex = self->is_complex;
  c.floor = s->floor_db > -200 ? pow (10, s->floor_db / 10) : 0;
  c.scale = gst_oct_angio_scale (s, &self->optics);
  c.depth_scale = gst_oct_angio_depth_scale (s, &self->optics);
  c.finds_surface = has_contour;
  c.n_threads = gst_imaging_engine_n_threads (self->base.engine);
  status = check_settings (self, s, error);
  if (status == IMK_OK)
    status = plan_surfaces (self, s, &surfaces, &n_surfaces, error);
  if (status != IMK_OK)
    return status;
  n_rows = s->enface == GST_OCT_ANGIO_ENFACE_NONE ? self->n_depths
                                                  : s->bscans_per_volume;
  /* the other backend goes on with the same view from above */
  stays = self->volume && self->backend != backend && self->n_rows == n_rows &&
          self->volume_ascans == self->n_ascans;
  volume = stays ? self->volume
                 : g_try_new (gfloat, (gsize) n_rows * self->n_ascans);
  status = volume && gst_imaging_video_info_set_format (&self->flow_info,
                         GST_VIDEO_FORMAT_GRAY8,
                         self->n_ascans * sizeof (gfloat), self->n_depths)
               ? imk_octangio_new (backend, &c, &kernel, error)
               : imk_error_set (error, IMK_ERROR_MEMORY,
                     "There is no memory for %u x %u pixels of flow.",
                     self->n_ascans, self->n_depths);
  if (status != IMK_OK) {
    g_free (surfaces);
    if (!stays)
      g_free (volume);
    return status;
  }
  set_kernel (self, kernel);
  gst_oct_angio_drop_flow (self);
  g_free (self->surfaces);
  g_free (self->surface);
  if (!stays) {
    g_free (self->volume);
    self->n_projected = 0;
  }
  self->surfaces = surfaces;
  self->n_surfaces = n_surfaces;
  self->surface = has_contour ? g_new (gdouble, self->n_ascans) : NULL;
  self->backend = backend;
  self->volume = volume;
  self->volume_ascans = self->n_ascans;
  self->n_repeats = c.n_repeats;
  self->n_rows = n_rows;
  self->has_sent = FALSE;
  return IMK_OK;
}

/* Settings are taken between sets only. */
ImkStatus
gst_oct_angio_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstOctAngio *self = GST_OCT_ANGIO (element);

  if (before && !(groups & GST_OCT_ANGIO_KERNEL))
    return IMK_OK;
  return self->n_ascans ? gst_imaging_engine_renew (self->base.engine, error)
                        : IMK_OK;
}

/* --- sets ----------------------------------------------------------------- */

/* @why: (nullable): a warning says so */
static void
drop_held (GstOctAngio *self, const gchar *why)
{
  guint n_held = self->n_held, n_projected = self->n_projected;

  for (guint i = 0; i < n_held; i++)
    gst_clear_buffer (&self->held[i]);
  self->n_held = self->n_projected = 0;
  if (!why || n_held + n_projected == 0)
    return;
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("%u B-scans of an incomplete set of %u, and %u rows of an incomplete view "
       "from above, have been dropped: %s.",
          n_held, self->n_repeats, n_projected, why),
      (NULL));
}

/* --- caps ----------------------------------------------------------------- */

/* "2:depths:ascans" is complex, "ascans:depths" intensities. */
static gboolean
parse_caps (GstOctAngio *self, GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  const gchar *text = gst_structure_get_string (s, "dimensions");
  guint64 dims[4] = {0, 1, 1, 1};
  g_auto (GStrv) parts = g_strsplit (text ? text : "", ":", -1);
  guint n = g_strv_length (parts);

  for (guint i = 0; i < n && i < 4; i++)
    dims[i] = g_ascii_strtoull (parts[i], NULL, 10);
  self->is_complex = dims[0] == 2;
  self->n_ascans = (guint) MIN (dims[self->is_complex ? 2 : 0], G_MAXUINT);
  self->n_depths = (guint) MIN (dims[1], G_MAXUINT);
  self->fps_n = 0;
  self->fps_d = 1;
  gst_structure_get_fraction (s, "framerate", &self->fps_n, &self->fps_d);
  if (n >= 2 && n <= 4 && self->n_ascans && self->n_depths && dims[3] == 1 &&
      (self->is_complex || dims[2] == 1))
    return TRUE;
  GST_ELEMENT_ERROR (self, STREAM, FORMAT,
      ("Tensors of the dimensions \"%s\" are no B-scans. Take the pad complex of "
       "octbscan (2:depths:lines:1), or its float images (lines:depths:1:1) with "
       "scaling=linear.",
          text ? text : ""),
      ("%" GST_PTR_FORMAT, caps));
  return FALSE;
}

/* Frames are as many as sets, or volumes. */
static void
output_rate (const GstOctAngio *self, gint *fps_n, gint *fps_d)
{
  const GstOctAngioSettings *s = gst_imaging_settings_now (self->base.settings);
  gint n = (gint) self->n_repeats;

  if (s->enface != GST_OCT_ANGIO_ENFACE_NONE)
    n *= (gint) s->bscans_per_volume;
  if (!gst_util_fraction_multiply (
          self->fps_n, self->fps_d, 1, n, fps_n, fps_d)) {
    *fps_n = 0;
    *fps_d = 1;
  }
}

/* Colours for a signed flow, if downstream takes them. */
static GstCaps *
choose_caps (GstOctAngio *self, gboolean is_signed)
{
  GstCaps *allowed = gst_pad_get_allowed_caps (self->srcpad);
  GstCaps *rgb = gst_caps_from_string ("video/x-raw, format = (string) RGB");
  GstCaps *coloured;

  if (!allowed)
    allowed = gst_pad_get_pad_template_caps (self->srcpad);
  coloured = gst_caps_intersect (allowed, rgb);
  gst_caps_unref (rgb);
  if (!is_signed || gst_caps_is_empty (coloured)) {
    gst_caps_unref (coloured);
    return gst_caps_truncate (allowed);
  }
  gst_caps_unref (allowed);
  return gst_caps_truncate (coloured);
}

static gboolean
send_caps (GstOctAngio *self)
{
  const GstOctAngioSettings *s = gst_imaging_settings_now (self->base.settings);
  g_autofree gchar *dimensions =
      g_strdup_printf ("%u:%u:1:1", self->n_ascans, self->n_rows);
  gboolean must = gst_pad_check_reconfigure (self->srcpad), ok;
  gint fps_n, fps_d;
  GstCaps *caps;

  if (self->has_sent && !must)
    return TRUE;
  caps = choose_caps (self, s->config.method == IMK_OCTANGIO_DOPPLER);
  if (gst_caps_is_empty (caps)) {
    gst_caps_unref (caps);
    GST_ELEMENT_ERROR (self, CORE, NEGOTIATION,
        ("Downstream takes no images that octangio makes: GRAY8, GRAY16_LE, RGB "
         "and other/tensors of float32."),
        (NULL));
    return FALSE;
  }
  caps = gst_caps_make_writable (caps);
  output_rate (self, &fps_n, &fps_d);
  gst_caps_set_simple (
      caps, "framerate", GST_TYPE_FRACTION, fps_n, fps_d, NULL);
  self->is_float = gst_structure_has_name (
      gst_caps_get_structure (caps, 0), "other/tensors");
  if (self->is_float)
    gst_caps_set_simple (caps, "dimensions", G_TYPE_STRING, dimensions, NULL);
  else
    gst_caps_set_simple (caps, "width", G_TYPE_INT, (gint) self->n_ascans,
        "height", G_TYPE_INT, (gint) self->n_rows, NULL);
  caps = gst_caps_fixate (caps);
  ok = (self->is_float || gst_video_info_from_caps (&self->out, caps)) &&
       gst_pad_push_event (self->srcpad, gst_event_new_caps (caps));
  gst_caps_unref (caps);
  self->has_sent = ok;
  return ok;
}

static gboolean
set_caps (GstOctAngio *self, GstCaps *caps)
{
  drop_held (self, "the format changes");
  self->n_ascans = 0; /* until they are valid */
  if (!parse_caps (self, caps)) {
    self->n_ascans = 0;
    return FALSE;
  }
  return gst_imaging_engine_set_caps (self->base.engine, caps, NULL) &&
         send_caps (self);
}

/* --- images --------------------------------------------------------------- */

/* Axes as the input has them. A row of a complex one is an A-scan. */
static void
copy_axes (
    GstBuffer *out, GstBuffer *in, gboolean is_complex, gboolean is_enface)
{
  GstCustomMeta *from =
      gst_buffer_get_custom_meta (in, GST_IMAGING_QUANTITY_META);
  GstCustomMeta *to =
      gst_buffer_get_custom_meta (out, GST_IMAGING_QUANTITY_META);

  if (!from || !to)
    return;
  for (guint i = 0; i < (is_enface ? 1 : 2); i++) {
    static const gchar *const members[] = {"name", "unit", "step", "origin"};

    for (guint k = 0; k < G_N_ELEMENTS (members); k++) {
      g_autofree gchar *field = g_strdup_printf ("axis-%u-%s", i, members[k]);
      g_autofree gchar *theirs =
          g_strdup_printf ("axis-%u-%s", is_complex ? 1 - i : i, members[k]);
      const GValue *value = gst_structure_get_value (
          gst_custom_meta_get_structure (from), theirs);

      if (value)
        gst_structure_set_value (
            gst_custom_meta_get_structure (to), field, value);
    }
  }
}

static void
describe (GstOctAngio *self, const GstOctAngioQuantity *q, GstBuffer *out,
    GstBuffer *in, gboolean is_enface)
{
  const GstImagingAxis axes[] = {{"lateral", "pixel", 1, 0},
      {is_enface ? "b-scan" : "depth", "pixel", 1, 0}};
  gdouble most =
      self->is_float                                                     ? 1
      : GST_VIDEO_INFO_FORMAT (&self->out) == GST_VIDEO_FORMAT_GRAY16_LE ? 65535
                                                                         : 255;

  gst_imaging_metadata_pass (out, in, FALSE);
  GST_BUFFER_PTS (out) = self->pts;
  GST_BUFFER_DTS (out) = GST_CLOCK_TIME_NONE;
  /* of all B-scans, or those after the first would count as missing frames */
  GST_BUFFER_OFFSET (out) = self->offset;
  GST_BUFFER_OFFSET_END (out) = GST_BUFFER_OFFSET_IS_VALID (in)
                                    ? GST_BUFFER_OFFSET (in) + 1
                                    : GST_BUFFER_OFFSET_NONE;
  GST_BUFFER_DURATION (out) =
      GST_CLOCK_TIME_IS_VALID (self->pts) && GST_CLOCK_TIME_IS_VALID (self->end)
          ? self->end - self->pts
          : GST_CLOCK_TIME_NONE;
  /* colours stand for no single number */
  if (self->is_float || GST_VIDEO_INFO_IS_GRAY (&self->out))
    gst_imaging_quantity_attach (out, q->name, q->unit,
        self->is_float ? 1 : (q->high - q->low) / most,
        self->is_float ? 0 : q->low, axes, 2);
  copy_axes (out, in, self->is_complex, is_enface);
  gst_imaging_engine_sign (self->base.engine, out);
}

/* Returns: (transfer full): an image of @flow, [n_rows][n_ascans] */
static GstBuffer *
draw (GstOctAngio *self, const GstOctAngioQuantity *q, const gfloat *flow)
{
  const GstOctAngioSettings *s = gst_imaging_settings_now (self->base.settings);
  gsize size = self->is_float
                   ? (gsize) self->n_ascans * self->n_rows * sizeof (gfloat)
                   : GST_VIDEO_INFO_SIZE (&self->out);
  GstBuffer *out = gst_buffer_new_allocate (NULL, size, NULL);
  GstMapInfo map;

  gst_buffer_map (out, &map, GST_MAP_WRITE); /* our memory: cannot fail */
  memset (map.data, 0, map.size);            /* the end of rows */
  gst_oct_angio_draw (q, s->config.method == IMK_OCTANGIO_DOPPLER, flow,
      self->n_ascans, self->n_rows, self->is_float ? NULL : &self->out,
      map.data);
  gst_buffer_unmap (out, &map);
  return out;
}

/* The flow of the set, for the CPU. */
static gboolean
map_flow (GstOctAngio *self, GstMapInfo *map)
{
  if (gst_buffer_map (self->flow, map, GST_MAP_READ))
    return TRUE;
  GST_ELEMENT_ERROR (self, RESOURCE, READ,
      ("The flow cannot be downloaded from the GPU."), (NULL));
  return FALSE;
}

/* Floats that are the flow itself stay where they are. */
static GstFlowReturn
push_image (GstOctAngio *self, GstBuffer *last)
{
  const GstOctAngioSettings *s = gst_imaging_settings_now (self->base.settings);
  GstOctAngioQuantity q = gst_oct_angio_quantity (s, &self->optics);
  gboolean is_enface = s->enface != GST_OCT_ANGIO_ENFACE_NONE;
  GstBuffer *out;
  GstMapInfo map;

  if (!send_caps (self))
    return GST_PAD_IS_FLUSHING (self->srcpad) ? GST_FLOW_FLUSHING
                                              : GST_FLOW_NOT_NEGOTIATED;
  if (is_enface) {
    out = draw (self, &q, self->volume);
  } else if (self->is_float && !q.is_db) {
    out = g_steal_pointer (&self->flow);
  } else {
    if (!map_flow (self, &map))
      return GST_FLOW_ERROR;
    out = draw (self, &q, (const gfloat *) (gpointer) map.data);
    gst_buffer_unmap (self->flow, &map);
  }
  describe (self, &q, out, last, is_enface);
  self->pts = self->end = GST_CLOCK_TIME_NONE;
  return gst_pad_push (self->srcpad, out);
}

/* Adds a row of the view from above. */
static gboolean
project (GstOctAngio *self)
{
  const GstOctAngioSettings *s = gst_imaging_settings_now (self->base.settings);
  guint n = self->n_ascans;
  gdouble *top, *bottom;
  const gdouble *surfaces =
      self->surfaces
          ? self->surfaces +
                2 * (gsize) n * (self->n_projected % self->n_surfaces)
          : NULL;
  GstMapInfo map;

  if (!map_flow (self, &map))
    return FALSE;
  top = g_new0 (gdouble, 2 * (gsize) n);
  bottom = top + n;
  if (self->surface || surfaces)
    memcpy (
        top, self->surface ? self->surface : surfaces, n * sizeof (gdouble));
  for (guint i = 0; i < n; i++) {
    top[i] += s->enface_top;
    bottom[i] = (surfaces ? surfaces[n + i] : self->n_depths) -
                (gdouble) s->enface_bottom;
    if (s->enface_depths > 0 && bottom[i] > top[i] + s->enface_depths)
      bottom[i] = top[i] + s->enface_depths; /* NaN stays NaN */
  }
  imk_octangio_project ((const gfloat *) (gpointer) map.data, n, self->n_depths,
      top, bottom,
      s->enface == GST_OCT_ANGIO_ENFACE_MAXIMUM
          ? IMK_OCTANGIO_PROJECTION_MAXIMUM
          : IMK_OCTANGIO_PROJECTION_MEAN,
      self->volume + (gsize) self->n_projected * n);
  self->n_projected++;
  gst_buffer_unmap (self->flow, &map);
  g_free (top);
  return TRUE;
}

static GstFlowReturn
show_set (GstOctAngio *self, GstBuffer *last)
{
  const GstOctAngioSettings *s = gst_imaging_settings_now (self->base.settings);

  if (s->enface == GST_OCT_ANGIO_ENFACE_NONE)
    return push_image (self, last);
  if (!project (self))
    return GST_FLOW_ERROR;
  if (self->n_projected < self->n_rows)
    return GST_FLOW_OK;
  self->n_projected = 0;
  return push_image (self, last);
}

static GstFlowReturn
finish_set (GstOctAngio *self, GstClockTime entered)
{
  GstFlowReturn flow = gst_oct_angio_compute (self);
  g_autoptr (GstBuffer) last = g_steal_pointer (&self->held[self->n_held - 1]);

  for (guint i = 0; i + 1 < self->n_held; i++)
    gst_clear_buffer (&self->held[i]);
  self->n_held = 0;
  if (flow == GST_FLOW_OK)
    flow = show_set (self, last);
  if (flow == GST_FLOW_CUSTOM_SUCCESS)
    return GST_FLOW_OK;
  gst_imaging_engine_count_frame (self->base.engine, entered);
  return flow;
}

static gsize
size_of_bscan (const GstOctAngio *self)
{
  return (gsize) self->n_ascans * self->n_depths * (self->is_complex ? 2 : 1) *
         sizeof (gfloat);
}

/* Levels in dB are no intensities. */
static gboolean
check_input (GstOctAngio *self, GstBuffer *buffer)
{
  gsize size = gst_buffer_get_size (buffer), needed = size_of_bscan (self);
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, GST_IMAGING_QUANTITY_META);
  const gchar *name = meta ? gst_structure_get_string (
                                 gst_custom_meta_get_structure (meta), "name")
                           : NULL;

  if (size < needed) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("A B-scan has %" G_GSIZE_FORMAT " bytes; %u A-scans of %u depths have "
         "%" G_GSIZE_FORMAT ".",
            size, self->n_ascans, self->n_depths, needed),
        (NULL));
    return FALSE;
  }
  if (self->is_complex || g_strcmp0 (name, "level") != 0)
    return TRUE;
  GST_ELEMENT_ERROR (self, STREAM, FORMAT,
      ("octangio needs intensities, and these are levels in dB. Set "
       "scaling=linear on octbscan, or take its pad complex."),
      (NULL));
  return FALSE;
}

static void
warn_of_sign (GstOctAngio *self, const GstOctAngioSettings *s)
{
  if (self->optics.wavelengths[0] != 0 || self->warned_of_sign ||
      s->falling != GST_OCT_ANGIO_FALLING_AUTO)
    return;
  self->warned_of_sign = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FORMAT,
      ("The sign of the flow is not known, as the B-scans tell no wavelengths: "
       "it may be reversed. Set a calibration with wavelengths on octbscan, or "
       "falling-wavenumbers."),
      (NULL));
}

/* Neighbouring lines of several cameras are of different calibrations. */
static gboolean
check_pairs (GstOctAngio *self, const GstOctAngioSettings *s)
{
  if (s->config.pairs != IMK_OCTANGIO_PAIRS_ASCANS ||
      self->optics.n_cameras <= 1)
    return TRUE;
  GST_ELEMENT_ERROR (self, LIBRARY, SETTINGS,
      ("pairs=ascans compares neighbouring lines, and %.0f cameras took them in "
       "turns: their phases have nothing in common. Set pairs=bscans, or give "
       "octbscan the lines of one camera.",
          self->optics.n_cameras),
      (NULL));
  return FALSE;
}

/* What the calibration of octbscan says decides on the unit and the sign of
 * method=doppler, and its scale on the bands. */
static gboolean
follow_optics (GstOctAngio *self, GstBuffer *buffer)
{
  const GstOctAngioSettings *s = gst_imaging_settings_now (self->base.settings);
  GstOctAngioOptics before = self->optics;
  ImkError error;

  self->optics = gst_oct_angio_optics (buffer);
  if (!check_pairs (self, s))
    return FALSE;
  if (s->config.method == IMK_OCTANGIO_DOPPLER)
    warn_of_sign (self, s);
  if ((s->config.method != IMK_OCTANGIO_DOPPLER ||
          gst_oct_angio_scale (s, &before) ==
              gst_oct_angio_scale (s, &self->optics)) &&
      (s->config.n_bands == 1 ||
          gst_oct_angio_depth_scale (s, &before) ==
              gst_oct_angio_depth_scale (s, &self->optics)))
    return TRUE;
  if (gst_imaging_engine_renew (self->base.engine, &error) == IMK_OK)
    return TRUE;
  gst_imaging_engine_post_error (self->base.engine, error.code, &error);
  return FALSE;
}

static GstFlowReturn
gst_oct_angio_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstOctAngio *self = GST_OCT_ANGIO (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_OK;

  if (GST_BUFFER_IS_DISCONT (buffer))
    drop_held (self, "B-scans are missing");
  if (self->n_ascans == 0 || !self->kernel)
    flow = GST_FLOW_NOT_NEGOTIATED;
  else if (self->n_held == 0 &&
           !gst_imaging_settings_take (self->base.settings,
               GST_IMAGING_WHEN_LIVE,
               gst_imaging_settings_stream_time (pad, buffer)))
    flow = GST_FLOW_ERROR;
  else if (!check_input (self, buffer))
    flow = GST_FLOW_ERROR;
  else if (self->n_held == 0 && !follow_optics (self, buffer))
    flow = GST_FLOW_ERROR;
  if (flow != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return flow;
  }
  buffer = gst_oct_angio_turn (self, buffer);
  if (!buffer)
    return GST_FLOW_ERROR;
  if (self->n_held == 0 && self->n_projected == 0) {
    self->pts = GST_BUFFER_PTS (buffer);
    self->offset = GST_BUFFER_OFFSET (buffer);
  }
  self->end =
      GST_BUFFER_PTS_IS_VALID (buffer) && GST_BUFFER_DURATION_IS_VALID (buffer)
          ? GST_BUFFER_PTS (buffer) + GST_BUFFER_DURATION (buffer)
          : GST_CLOCK_TIME_NONE;
  self->held[self->n_held++] = buffer;
  if (self->n_held < self->n_repeats)
    return GST_FLOW_OK;
  return finish_set (self, entered);
}

/* --- events --------------------------------------------------------------- */

static gboolean
gst_oct_angio_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstOctAngio *self = GST_OCT_ANGIO (parent);
  GstCaps *caps;
  gboolean ok;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, caps);
    gst_event_unref (event);
    return ok;
  case GST_EVENT_FLUSH_START:
    gst_oct_angio_cancel (self, TRUE);
    break;
  case GST_EVENT_FLUSH_STOP:
    gst_oct_angio_cancel (self, FALSE);
    drop_held (self, NULL);
    break;
  case GST_EVENT_EOS:
    drop_held (self, "the stream ends");
    break;
  case GST_EVENT_SEGMENT:
    drop_held (self, "another segment begins");
    break;
  default:
    break;
  }
  return gst_pad_event_default (pad, parent, event);
}

static gboolean
gst_oct_angio_sink_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  if (GST_QUERY_TYPE (query) != GST_QUERY_ALLOCATION)
    return gst_imaging_element_query (pad, parent, query);
  gst_imaging_allocation_propose (GST_OCT_ANGIO (parent)->base.engine, query);
  return TRUE;
}

/* --- states --------------------------------------------------------------- */

/* The end waits for the streaming thread, which may be in a long set. */
static GstStateChangeReturn
gst_oct_angio_change_state (GstElement *element, GstStateChange transition)
{
  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED ||
      transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    gst_oct_angio_cancel (GST_OCT_ANGIO (element),
        transition == GST_STATE_CHANGE_PAUSED_TO_READY);
  return GST_ELEMENT_CLASS (gst_oct_angio_parent_class)
      ->change_state (element, transition);
}

static void
gst_oct_angio_stop (GstElement *element)
{
  GstOctAngio *self = GST_OCT_ANGIO (element);

  drop_held (self, NULL);
  gst_imaging_engine_stop (self->base.engine);
  gst_oct_angio_drop_flow (self);
  g_clear_pointer (&self->surface, g_free);
  g_clear_pointer (&self->volume, g_free);
  g_clear_pointer (&self->surfaces, g_free);
  self->n_ascans = self->n_depths = 0;
  self->has_sent = self->warned_of_sign = self->warned_of_turns = FALSE;
  self->optics = (GstOctAngioOptics){.n_cameras = 0};
}

/* --- the object ----------------------------------------------------------- */

static void
gst_oct_angio_class_init (GstOctAngioClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  element_class->change_state = gst_oct_angio_change_state;
  GST_IMAGING_ELEMENT_CLASS (klass)->stop = gst_oct_angio_stop;
  gst_imaging_settings_install (G_OBJECT_CLASS (klass), &gst_oct_angio_table);

  gst_element_class_set_static_metadata (element_class, "OCT angiography",
      "Filter/Converter/Video",
      "Shows flow by comparing repeated B-scans of optical coherence tomography",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
}

static void
gst_oct_angio_init (GstOctAngio *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = open_kernel,
      .close = close_kernel,
      .carrier = gst_oct_angio_carrier,
  };

  gst_imaging_element_set_up (&self->base, &funcs, &gst_oct_angio_table);
  self->pts = self->end = GST_CLOCK_TIME_NONE;
  self->sinkpad = gst_imaging_element_add_pad (&self->base, &sink_template);
  gst_pad_set_chain_function (self->sinkpad, gst_oct_angio_chain);
  gst_pad_set_event_function (self->sinkpad, gst_oct_angio_sink_event);
  gst_pad_set_query_function (self->sinkpad, gst_oct_angio_sink_query);
  self->srcpad = gst_imaging_element_add_pad (&self->base, &src_template);
}
