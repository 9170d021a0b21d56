/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructwavefront.h"

#include <math.h>

#include "gstimagingmetadata.h"
#include "gstimagingquantity.h"
#include "gstimagingresults.h"

enum { MAX_SAMPLE = 65535, DEFAULT_MODES = 20 };

struct _GstShReconstructWavefront {
  GstElement *element; /* owns this */
  GstImagingEngine *engine;
  ImkShwavefront *kernel;
  guint32 *row_column; /* that it was made for */
  guint n_cells, width, height;
  gint fps_n, fps_d;
  gboolean has_new_caps;
};

GstShReconstructWavefront *
gst_sh_reconstruct_wavefront_new (GstElement *element, GstImagingEngine *engine)
{
  GstShReconstructWavefront *self = g_new0 (GstShReconstructWavefront, 1);

  self->element = element;
  self->engine = engine;
  return self;
}

void
gst_sh_reconstruct_wavefront_forget (GstShReconstructWavefront *self)
{
  g_clear_pointer (&self->kernel, imk_shwavefront_free);
  g_clear_pointer (&self->row_column, g_free);
}

void
gst_sh_reconstruct_wavefront_free (GstShReconstructWavefront *self)
{
  gst_sh_reconstruct_wavefront_forget (self);
  g_free (self);
}

/* --- the grid ------------------------------------------------------------- */

/* Lenslets row by row. Returns: (transfer full) (nullable) */
static guint32 *
make_grid (const GstShReconstructSettings *s, guint n_cells, ImkError *error)
{
  guint columns = s->wavefront_columns;
  guint32 *places;

  if (columns == 0)
    columns = (guint) lround (sqrt (n_cells));
  if (n_cells % columns != 0 ||
      (s->wavefront_columns == 0 && columns * columns != n_cells)) {
    imk_error_set (error, IMK_ERROR_CONFIG,
        "%u cells are no rows of %u. Set wavefront-columns to the lenslets of "
        "a row, or put shreconstruct behind shcentroid, whose frames say where "
        "each lenslet is.",
        n_cells, columns);
    return NULL;
  }
  places = g_new (guint32, 2 * (gsize) n_cells);
  for (guint i = 0; i < n_cells; i++) {
    places[2 * i] = i / columns;
    places[2 * i + 1] = i % columns;
  }
  return places;
}

static ImkStatus
ensure_kernel (GstShReconstructWavefront *self,
    const GstShReconstructSettings *s, GstShReconstructSlopes *slopes,
    guint n_cells, ImkError *error)
{
  const gsize size = 2 * (gsize) n_cells * sizeof (guint32);
  const guint32 *places = gst_sh_reconstruct_slopes_places (slopes);
  ImkShwavefrontConfig c;
  ImkStatus status;
  guint n_modes;

  if (self->kernel && self->n_cells == n_cells &&
      (!places || memcmp (places, self->row_column, size) == 0))
    return IMK_OK;
  gst_sh_reconstruct_wavefront_forget (self);
  self->row_column =
      places ? g_memdup2 (places, size) : make_grid (s, n_cells, error);
  if (!self->row_column)
    return IMK_ERROR_CONFIG;
  imk_shwavefront_config_init (&c);
  c.n_cells = self->n_cells = n_cells;
  c.row_column = self->row_column;
  c.method = s->wavefront_method;
  c.n_modes = s->wavefront_modes ? s->wavefront_modes : DEFAULT_MODES;
  c.scale = s->wavefront_scale;
  status = imk_shwavefront_new (&c, &self->kernel, error);
  if (status != IMK_OK)
    return status;
  imk_shwavefront_shape (self->kernel, &self->width, &self->height);
  self->has_new_caps = TRUE;
  n_modes = imk_shwavefront_n_modes (self->kernel);
  if (n_modes && n_modes < s->wavefront_modes)
    GST_ELEMENT_WARNING (self->element, LIBRARY, SETTINGS,
        ("wavefront-modes is %u; this grid of %u lenslets tells %u Zernike "
         "modes, which are used. The slopes of the next one are nearly a sum "
         "of those of lower ones.",
            s->wavefront_modes, n_cells, n_modes),
        (NULL));
  return IMK_OK;
}

/* --- output --------------------------------------------------------------- */

static GstCaps *
make_offers (const GstShReconstructWavefront *self, gint fps_n, gint fps_d)
{
  g_autofree gchar *dimensions =
      g_strdup_printf ("1:%u:%u:1", self->width, self->height);
  GstCaps *caps = gst_sh_reconstruct_tensor_caps (dimensions, fps_n, fps_d);

  for (guint i = 0; i < 2; i++)
    gst_caps_append (
        caps, gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
                  i ? "GRAY16_BE" : "GRAY16_LE", "width", G_TYPE_INT,
                  (gint) self->width, "height", G_TYPE_INT, (gint) self->height,
                  "framerate", GST_TYPE_FRACTION, fps_n, fps_d, NULL));
  return caps;
}

/* Samples 1 to MAX_SAMPLE are the lowest to the highest point; 0 is none.
 * Returns: (transfer full) */
static GstBuffer *
make_picture (const GstShReconstructWavefront *self, const GstVideoInfo *info,
    const gfloat *values, const ImkShwavefrontReport *report, gdouble *step)
{
  gboolean is_little =
      GST_VIDEO_INFO_FORMAT (info) == GST_VIDEO_FORMAT_GRAY16_LE;
  const gsize stride = (gsize) GST_VIDEO_INFO_PLANE_STRIDE (info, 0);
  guint8 *bytes = g_malloc0 (GST_VIDEO_INFO_SIZE (info));
  gdouble range = report->maximum - report->minimum;

  *step = range > 0 ? range / (MAX_SAMPLE - 1) : 1;
  for (guint i = 0; i < self->width * self->height; i++) {
    guint16 sample =
        isfinite (values[i])
            ? (guint16) (1 + lround ((values[i] - report->minimum) / *step))
            : 0;
    guint8 *to = bytes + i / self->width * stride + 2 * (i % self->width);

    if (is_little)
      GST_WRITE_UINT16_LE (to, sample);
    else
      GST_WRITE_UINT16_BE (to, sample);
  }
  return gst_buffer_new_wrapped (bytes, GST_VIDEO_INFO_SIZE (info));
}

/* Samples are in nm, or lead to them by scale and offset. */
static void
add_quantity (const GstShReconstructWavefront *self,
    const GstShReconstructSettings *s, GstBuffer *buffer, gdouble scale,
    gdouble offset)
{
  gdouble first = s->wavefront_method == IMK_SHWAVEFRONT_FRIED ? -0.5 : 0;
  const GstImagingAxis axes[] = {
      {"x", "lenslet", 1, first}, {"y", "lenslet", 1, first}};

  gst_imaging_quantity_attach (
      buffer, "wavefront", "nm", scale, offset, axes, G_N_ELEMENTS (axes));
}

static GstBuffer *
make_modes (const GstShReconstructWavefront *self)
{
  const guint n = imk_shwavefront_n_modes (self->kernel);
  const gdouble *modes = imk_shwavefront_modes (self->kernel);
  gfloat *copy = g_new (gfloat, n);

  for (guint i = 0; i < n; i++)
    copy[i] = (gfloat) modes[i];
  return gst_buffer_new_wrapped (copy, n * sizeof (gfloat));
}

static void
add_results (const GstShReconstructWavefront *self,
    const ImkShwavefrontReport *report, guint64 frame, GstBuffer *buffer)
{
  static const gchar *const fields[] = {"rms", "minimum", "maximum"},
                            *const units[] = {"nm", "nm", "nm"};
  const gfloat numbers[] = {
      (gfloat) report->rms, (gfloat) report->minimum, (gfloat) report->maximum};
  GstStructure *more =
      gst_structure_new ("more", "points", G_TYPE_UINT, report->n_points, NULL);
  GstImagingResult result = {.id = "ao-wavefront-v1",
      .fields = fields,
      .units = units,
      .n_fields = G_N_ELEMENTS (fields),
      .n_rows = 1,
      .data = gst_buffer_new_memdup (numbers, sizeof (numbers)),
      .ref_width = self->width,
      .ref_height = self->height,
      .frame = frame,
      .origin = gst_imaging_engine_origin (self->engine),
      .more = more};

  if (imk_shwavefront_modes (self->kernel)) {
    GstBuffer *modes = make_modes (self);

    gst_structure_set (more, "modes", GST_TYPE_BUFFER, modes, NULL);
    gst_buffer_unref (modes);
  }
  gst_imaging_results_attach (buffer, GST_OBJECT_NAME (self->element), &result);
  gst_buffer_unref (result.data);
  gst_structure_free (more);
}

static GstFlowReturn
push_buffer (GstShReconstructWavefront *self, GstImagingSrcPad *pad,
    const GstShReconstructSettings *s, GstShReconstructSlopes *slopes,
    GstBuffer *in, guint64 frame)
{
  const gsize size = (gsize) self->width * self->height * sizeof (gfloat);
  gfloat *values = g_malloc (size);
  gdouble scale = 1, offset = 0;
  ImkShwavefrontReport report;
  GstVideoInfo info;
  GstBuffer *buffer;

  imk_shwavefront_process (
      self->kernel, slopes->slopes, slopes->flags, values, &report);
  if (gst_video_info_from_caps (&info, gst_imaging_src_pad_caps (pad))) {
    buffer = make_picture (self, &info, values, &report, &scale);
    offset = report.minimum - scale;
    g_free (values);
  } else {
    buffer = gst_buffer_new_wrapped (values, size);
  }
  gst_imaging_metadata_pass (buffer, in, FALSE);
  add_quantity (self, s, buffer, scale, offset);
  add_results (self, &report, frame, buffer);
  gst_imaging_engine_sign (self->engine, buffer);
  return gst_imaging_src_pad_push (pad, buffer);
}

GstFlowReturn
gst_sh_reconstruct_wavefront_push (GstShReconstructWavefront *self,
    GstImagingSrcPad *pad, const GstShReconstructSettings *s,
    GstShReconstructSlopes *slopes, guint n_cells, GstBuffer *in, guint64 frame,
    gint fps_n, gint fps_d)
{
  GstFlowReturn flow = GST_FLOW_OK;
  ImkStatus status;
  ImkError error;

  if (!gst_pad_is_linked (GST_PAD (pad)))
    return GST_FLOW_NOT_LINKED;
  status = ensure_kernel (self, s, slopes, n_cells, &error);
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->engine, status, &error);
    return GST_FLOW_ERROR;
  }
  self->has_new_caps |= fps_n != self->fps_n || fps_d != self->fps_d;
  self->fps_n = fps_n;
  self->fps_d = fps_d;
  if (self->has_new_caps || !gst_imaging_src_pad_is_negotiated (pad))
    flow = gst_imaging_src_pad_negotiate (
        pad, GST_IMAGING_PREFER_PEERS, make_offers (self, fps_n, fps_d));
  if (flow != GST_FLOW_OK)
    return flow;
  self->has_new_caps = FALSE;
  return push_buffer (self, pad, s, slopes, in, frame);
}
