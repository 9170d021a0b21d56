/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a set results in: the outputs, and what makes it doubtful. */
#include "gstphotostereoprivate.h"

#include <math.h>

/* Of the samples; highlights of a glossy object are less. */
#define MAX_CLIPPED 0.1
/* Of the pixels in the mask. */
#define MAX_INVALID 0.05
/* Of |n'|: 0.005 to 0.07 under the right lights, also in noise, 0.09 to 0.3
 * under others. */
#define MAX_RESIDUAL 0.08
/* Of the lights: 0.64 to 0.97 under the right ones, 0.27 to 0.44 under others.
 */
#define MIN_LIGHTS 0.5
/* With fewer, residuals are as large under the right lights. */
#define JUDGED_LIGHTS 8
/* Of one picture, of |n'|: 0.005 to 0.09 of others, 0.1 to 0.7 of one that is
 * turned or has half of the light. Pictures with an error in common, as of 20
 * in a hundred, are not told from highlights and shadows. */
#define MISFIT 0.1
#define MISFIT_OF_MEDIAN 4 /* times that of the median picture */
#define MISFIT_OF_MOST 1.5 /* times what 9 of 10 do not exceed */
#define CHECK_LIGHTS \
  "Check that pictures and lights are in one order and none is left out, that " \
  "x points right, y up and z to the camera in lights-location, and that lamps " \
  "of unequal strength have intensities. " \
  "Noise of dark pictures looks alike."

static gdouble
share_of (guint64 part, guint64 whole)
{
  return whole ? (gdouble) part / (gdouble) whole : 0;
}

static void
post_progress (
    GstPhotoStereo *self, const ImkPhotostereoSummary *s, gboolean final)
{
  gdouble share = share_of (s->n_invalid, s->n_pixels);
  gdouble clipped = share_of (s->n_clipped, s->n_samples);
  GstStructure *progress = gst_structure_new ("photostereo-progress", "lights",
      G_TYPE_UINT, s->n_lights, "set-size", G_TYPE_UINT, self->set_size,
      "pixels", G_TYPE_UINT64, s->n_pixels, "invalid", G_TYPE_UINT64,
      s->n_invalid, "invalid-share", G_TYPE_DOUBLE, share, "clipped-share",
      G_TYPE_DOUBLE, clipped, "change", G_TYPE_DOUBLE,
      isnan (s->change_deg) ? -1.0 : s->change_deg, "mean-lights",
      G_TYPE_DOUBLE, s->mean_lights, "mean-rounds", G_TYPE_DOUBLE,
      s->mean_rounds, "mean-residual", G_TYPE_DOUBLE,
      isnan (s->mean_residual) ? -1.0 : s->mean_residual, "final",
      G_TYPE_BOOLEAN, final, "frame", G_TYPE_UINT64, self->number,
      "frames-missing", G_TYPE_UINT64, self->n_lost, NULL);

  if (self->last && GST_BUFFER_PTS_IS_VALID (self->last))
    gst_structure_set (
        progress, "pts", G_TYPE_UINT64, GST_BUFFER_PTS (self->last), NULL);
  gst_imaging_origin_set_of (progress, GST_ELEMENT (self));
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self), progress));
}

/* The numbers of the message, for the images.
 * Returns: with data of the caller */
static GstImagingResult
describe_summary (
    GstPhotoStereo *self, const ImkPhotostereoSummary *s, gboolean final)
{
  static const gchar *const fields[] = {"lights", "set-size", "pixels",
      "invalid", "invalid-share", "clipped-share", "change", "mean-lights",
      "mean-rounds", "mean-residual", "final"};
  static const gchar *const units[] = {
      "1", "1", "px", "px", "1", "1", "degrees", "1", "1", "1", "flags"};
  const GstVideoInfo *info = gst_imaging_engine_info (self->base.engine);
  const gfloat numbers[] = {(gfloat) s->n_lights, (gfloat) self->set_size,
      (gfloat) s->n_pixels, (gfloat) s->n_invalid,
      (gfloat) share_of (s->n_invalid, s->n_pixels),
      (gfloat) share_of (s->n_clipped, s->n_samples), (gfloat) s->change_deg,
      (gfloat) s->mean_lights, (gfloat) s->mean_rounds,
      (gfloat) s->mean_residual, (gfloat) final};

  return (GstImagingResult){
      .id = "photostereo-summary-v1",
      .fields = fields,
      .units = units,
      .n_fields = G_N_ELEMENTS (fields),
      .n_rows = 1,
      .data = gst_buffer_new_memdup (numbers, sizeof (numbers)),
      .ref_width = info->width,
      .ref_height = info->height,
      .frame = self->number,
      .frames_missing = self->n_lost,
      .origin = gst_imaging_engine_origin (self->base.engine),
  };
}

/* Warns of samples that make the result doubtful, before it is pushed. */
static void
warn_of_samples (GstPhotoStereo *self, const ImkPhotostereoSummary *s)
{
  gdouble clipped = share_of (s->n_clipped, s->n_samples);
  guint bits = g_bit_storage (s->largest);

  if (self->full_scale && s->largest > self->full_scale) {
    if (self->warned_of_depth)
      return;
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("A sample is %u, but with bit-depth=%u they end at %u: albedo and "
         "ambient will be too bright, and absolute thresholds wrong. Set the "
         "bit-depth that the camera has.",
            s->largest, g_bit_storage (self->full_scale), self->full_scale),
        (NULL));
    self->warned_of_depth = TRUE;
  } else if (!self->full_scale && bits > 8 && bits < 16 &&
             s->largest == (1u << bits) - 1) {
    if (self->warned_of_depth)
      return;
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("The largest sample is %u = 2^%u - 1. If the camera has %u bits, set "
         "bit-depth=%u: without it clipped samples are not known as such, and "
         "albedo and ambient are %u times too dark.",
            s->largest, bits, bits, bits, 1u << (16 - bits)),
        (NULL));
    self->warned_of_depth = TRUE;
  } else if (clipped > MAX_CLIPPED && !self->warned_of_clipping) {
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("%.0f %% of the samples are clipped. A light does not count where it "
         "clips a sample (with robust=none it does, and bends the normal); "
         "what all lights clip has no normal, and albedo and ambient are too "
         "dark. Expose shorter, or leave out by mask-location what is not the "
         "object.",
            100 * clipped),
        (NULL));
    self->warned_of_clipping = TRUE;
  }
}

static GstPhotoStereoShape
shape_of (GstPhotoStereo *self, guint i)
{
  const GstVideoInfo *info = gst_imaging_engine_info (self->base.engine);
  const guint channels[] = {3, self->n_colours, self->n_colours, 4, 1, 1};
  static const gchar *const quantities[] = {
      "normal", "albedo", "ambient", NULL, "confidence", "mask"};
  gboolean has_bands = (i == ALBEDO || i == AMBIENT) && self->n_colours != 3;
  gboolean is_room = gst_photo_stereo_now (self)->config.ambient_model ==
                     IMK_PHOTOSTEREO_AMBIENT_CONSTANT;

  return (GstPhotoStereoShape){
      i == AMBIENT && is_room ? "room-light" : quantities[i],
      i != AMBIENT ? NULL
      : is_room    ? "room-light"
                   : "mean-of-pictures",
      info->width, info->height, channels[i], has_bands,
      GST_VIDEO_INFO_PAR_N (info), GST_VIDEO_INFO_PAR_D (info),
      gst_photo_stereo_now (self)->mm_per_pixel,
      gst_photo_stereo_now (self)->y_down};
}

static GstPhotoStereoEncoding
encoding_of (GstPhotoStereo *self, guint i)
{
  return i == NORMAL ? gst_photo_stereo_now (self)->normal_encoding
                     : GST_PHOTO_STEREO_ENCODING_AUTO;
}

void
gst_photo_stereo_negotiate (GstPhotoStereo *self)
{
  for (guint i = 0; i < N_OUTPUTS; i++) {
    const GstPhotoStereoShape shape = shape_of (self, i);
    GstImagingSrcPad *pad = gst_imaging_src_pads_get (self->base.outputs, i);

    gst_photo_stereo_negotiate_pad (
        pad, self->base.engine, &shape, encoding_of (self, i));
    g_clear_object (&pad);
  }
}

/* Solves into the buffers of the linked pads; flows[i] tells which of them
 * are to be pushed. */
static ImkStatus
solve (GstPhotoStereo *self, GstPhotoStereoResult results[N_OUTPUTS],
    GstFlowReturn flows[N_OUTPUTS], ImkPhotostereoSummary *summary,
    ImkError *error)
{
  ImkPhotostereoOutputs out = {0};
  ImkImage *images[] = {&out.normal, &out.albedo, &out.ambient, &out.quality,
      &out.confidence, &out.mask};
  ImkStatus status = IMK_OK;

  for (guint i = 0; i < N_OUTPUTS; i++) {
    const GstPhotoStereoShape shape = shape_of (self, i);

    flows[i] = GST_FLOW_NOT_LINKED;
    if (status == IMK_OK)
      flows[i] = gst_photo_stereo_result_begin (&results[i], self->base.engine,
          &shape, encoding_of (self, i), images[i], error);
    if (flows[i] == GST_FLOW_ERROR)
      status = error->code;
  }
  if (status == IMK_OK)
    status = imk_photostereo_solve (self->kernel, &out, summary,
        gst_imaging_engine_stream (self->base.engine), error);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (flows[i] == GST_FLOW_OK)
      status = gst_imaging_frame_end (
          &results[i].frame, status == IMK_OK, status, error);
  return status;
}

/* @summary: (nullable): without one the images are dropped */
static GstFlowReturn
push_results (GstPhotoStereo *self, GstPhotoStereoResult results[N_OUTPUTS],
    GstFlowReturn flows[N_OUTPUTS], const GstImagingResult *summary)
{
  GstFlowReturn flow = GST_FLOW_OK;

  for (guint i = 0; i < N_OUTPUTS; i++) {
    const GstPhotoStereoShape shape = shape_of (self, i);

    if (flows[i] == GST_FLOW_OK)
      flows[i] = gst_photo_stereo_result_push (
          &results[i], &shape, summary ? self->last : NULL, summary);
    if (results[i].pad && summary)
      flow = gst_imaging_src_pads_combine (
          self->base.outputs, i, results[i].pad, flows[i], flow);
  }
  return flow;
}

static void
warn_of_incomplete_lights (GstPhotoStereo *self, guint n_lights)
{
  guint n = imk_photostereo_n_added (self->kernel) - n_lights * self->bands;

  if (n > 0)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("The set ended with %u pictures of lights of which not all %u bands are "
         "there; these lights do not count.",
            n, self->bands),
        (NULL));
}

/* Returns: whether it warned */
static gboolean
warn_of_pixels (GstPhotoStereo *self, const ImkPhotostereoSummary *s)
{
  gdouble invalid = share_of (s->n_invalid, s->n_pixels);
  const gchar *where =
      gst_photo_stereo_now (self)->mask ? "in the mask" : "(there is no mask)";

  if (s->n_pixels == 0)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("mask-location is 0 everywhere: it leaves no pixel to solve."),
        (NULL));
  else if (s->n_lights < 3)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("The set ended with %u of %u %s; normals need 3.", s->n_lights,
            self->set_size, self->bands > 1 ? "lights" : "pictures"),
        (NULL));
  else if (s->n_invalid == s->n_pixels)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("No pixel could be solved from %u pictures: they are black or "
         "saturated, the thresholds leave out all lights, or these are in one "
         "plane.",
            imk_photostereo_n_added (self->kernel)),
        (NULL));
  else if (invalid > MAX_INVALID)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("%.1f %% of the pixels %s, %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
         ", have no normal: fewer than 3 lights count there, or these are "
         "nearly in one plane. Expose longer where it is dark and shorter "
         "where samples are clipped, check t-min, t-max and t-res, or leave "
         "out by mask-location what is not the object.",
            100 * invalid, where, s->n_invalid, s->n_pixels),
        (NULL));
  else
    return FALSE;
  return TRUE;
}

/* Normals look smooth even if pictures and lights are in different orders. */
static void
warn_of_residuals (GstPhotoStereo *self, const ImkPhotostereoSummary *s)
{
  const GstPhotoStereoSettings *now = gst_photo_stereo_now (self);
  gboolean misfits = s->mean_residual > MAX_RESIDUAL; /* not with NaN */
  gdouble share = s->mean_lights / s->n_lights;

  if (now->config.robust != IMK_PHOTOSTEREO_ROBUST_THRESHOLDS ||
      s->n_lights < JUDGED_LIGHTS || (!misfits && share > MIN_LIGHTS))
    return;
  if (misfits)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("The lights do not explain the pictures: residuals are %.1f %% of the "
         "albedo on average, where 1 to 3 %% are usual. " CHECK_LIGHTS,
            100 * s->mean_residual),
        (NULL));
  else
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("The lights do not explain the pictures: %.1f of %u lights count at a "
         "pixel on average, where 60 %% and more are usual. " CHECK_LIGHTS,
            s->mean_lights, s->n_lights),
        (NULL));
}

static gint
compare_doubles (gconstpointer a, gconstpointer b)
{
  gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return (x > y) - (x < y);
}

/* Returns: from where on a picture is beyond the others; infinity of few.
 * @sorted: of pictures that were judged */
static gdouble
misfit_limit (const gdouble *sorted, guint n)
{
  if (n < JUDGED_LIGHTS)
    return G_MAXDOUBLE;
  return MAX (MAX (MISFIT, MISFIT_OF_MEDIAN * sorted[n / 2]),
      MISFIT_OF_MOST * sorted[(n - 1) * 9 / 10]);
}

/* A robust solution hides a picture that is wrong, and nobody looks at each of
 * a hundred. */
static void
warn_of_misfits (GstPhotoStereo *self)
{
  g_autofree gdouble *misfits = g_new (gdouble, self->n_lights);
  g_autofree gdouble *sorted = g_new (gdouble, self->n_lights);
  g_autoptr (GString) list = g_string_new (NULL);
  guint n = 0, n_off = 0;
  gdouble limit;

  if (imk_photostereo_judge (self->kernel, misfits, NULL) != IMK_OK)
    return;
  for (guint i = 0; i < self->n_lights; i++)
    if (!isnan (misfits[i]))
      sorted[n++] = misfits[i];
  qsort (sorted, n, sizeof (*sorted), compare_doubles);
  limit = misfit_limit (sorted, n);
  for (guint i = 0; i < self->n_lights; i++)
    if (misfits[i] > limit) { /* not with NaN */
      g_string_append_printf (
          list, "%s%u (%.0f %%)", n_off++ ? ", " : "", i + 1, 100 * misfits[i]);
      gst_element_post_message (GST_ELEMENT (self),
          gst_message_new_element (GST_OBJECT (self),
              gst_structure_new ("photostereo-misfit", "index", G_TYPE_UINT, i,
                  "residual", G_TYPE_DOUBLE, misfits[i], NULL)));
    }
  if (n_off > 0)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("%u of %u pictures contradict the others: of light %s. The residuals "
         "are parts of the albedo; the median picture has %.1f %%. Check "
         "whether such a picture is turned, moved, otherwise exposed, or of "
         "another light. Correct it, or leave it out.",
            n_off, n, list->str, 100 * sorted[n / 2]),
        (NULL));
}

GstFlowReturn
gst_photo_stereo_publish (
    GstPhotoStereo *self, gboolean final, gboolean judge, gdouble *change)
{
  GstImagingContext *context =
      gst_imaging_engine_kernel_context (self->base.engine);
  GstPhotoStereoResult results[N_OUTPUTS] = {0};
  GstFlowReturn flows[N_OUTPUTS], flow;
  GstImagingResult result = {NULL};
  ImkPhotostereoSummary summary = {.change_deg = NAN};
  ImkError error;
  ImkStatus status = gst_imaging_context_push (context, &error);

  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->base.engine, status, &error);
    return GST_FLOW_ERROR;
  }
  for (guint i = 0; i < N_OUTPUTS; i++) {
    results[i].pad = gst_imaging_src_pads_get (self->base.outputs, i);
    results[i].is_shared = self->n_gates > 0;
  }
  status = solve (self, results, flows, &summary, &error);
  gst_imaging_context_pop (context);
  if (status == IMK_OK) {
    warn_of_samples (self, &summary);
    post_progress (self, &summary, final);
    result = describe_summary (self, &summary, final);
    self->n_lost = 0;
  }
  flow = push_results (self, results, flows, result.data ? &result : NULL);
  gst_clear_buffer (&result.data);
  for (guint i = 0; i < N_OUTPUTS; i++)
    g_clear_object (&results[i].pad);
  *change = summary.change_deg;
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->base.engine, status, &error);
    return GST_FLOW_ERROR;
  }
  if (judge) {
    warn_of_incomplete_lights (self, summary.n_lights);
    if (!warn_of_pixels (self, &summary))
      warn_of_residuals (self, &summary);
    warn_of_misfits (self);
  }
  return flow;
}
