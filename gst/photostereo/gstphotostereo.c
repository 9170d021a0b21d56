/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-photostereo
 * @title: photostereo
 * @short_description: photometric stereo
 *
 * Takes pictures of one view under one known light each, and makes the normal
 * of every pixel, the albedo, and an ambient picture of them, after Pevar et
 * al., "Real-time Photometric Stereo". A set of pictures ends after set-size of
 * them, with the action signal finish-set, with EOS, and when the caps change;
 * what there is then is solved, and the next picture begins a new set.
 *
 * The request pads `normal`, `albedo`, `ambient` and `quality` have the result;
 * with update-interval also on the way. With more than one of them linked, each
 * needs a queue.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 multifilesrc location=%03d.png ! pngdec ! photostereo
 * lights-location=lights.lp ! pngenc ! filesink location=normals.png
 * ]|
 *
 * Since: 0.1
 */
#include "gstphotostereo.h"

#include <gst/base/gstflowcombiner.h>
#include <math.h>
#include <unistd.h>

#include "gstimagingallocation.h"
#include "gstphotostereofiles.h"
#include "gstphotostereosettings.h"

GST_DEBUG_CATEGORY_STATIC (photostereo_debug);
#define GST_CAT_DEFAULT photostereo_debug

enum { SIGNAL_FINISH_SET, N_SIGNALS };

static guint signals[N_SIGNALS];

/* In the order of the pads. */
enum { NORMAL, ALBEDO, AMBIENT, QUALITY, N_OUTPUTS };

static const gchar *const output_names[N_OUTPUTS] = {
    "normal", "albedo", "ambient", "quality"};

/* A picture that is read when the set is solved. */
typedef struct {
  GstBuffer *buffer;
  GstImagingFrame frame;
} Held;

struct _GstPhotoStereo {
  GstElement parent;

  GstPad *sink;
  GstImagingEngine *engine;
  GstPhotoStereoSettings settings;    /* under the object lock */
  GstPhotoStereoPad *pads[N_OUTPUTS]; /* likewise */

  /* under the stream lock of the sink pad */
  GstCaps *caps;
  ImkPhotostereoPattern caps_pattern; /* of video/x-bayer */
  GstFlowCombiner *combiner;
  ImkPhotostereo *kernel;
  guint open_geometry, n_lights, n_colours;
  guint set_size;
  GArray *held; /* of Held: where a set does not fit the device */
  guint n_skip; /* pictures left of a set that ended early */
  GstClockTime first_pts, last_pts;
};

#define RGB_FORMATS \
  "RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, ARGB, ABGR, RGBA64_LE, " \
  "ARGB64_LE"

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
        "{ GRAY8, GRAY16_LE, " RGB_FORMATS
        " }") ";"
              "video/x-bayer, format = (string) { bggr, rggb, gbrg, grbg }, "
              "width = " GST_VIDEO_SIZE_RANGE ", height = " GST_VIDEO_SIZE_RANGE
              ", framerate = " GST_VIDEO_FPS_RANGE));

#define TENSOR_CAPS \
  "other/tensors, format = (string) static, num_tensors = (int) 1, " \
  "types = (string) float32"

static GstStaticPadTemplate src_templates[N_OUTPUTS] = {
    GST_STATIC_PAD_TEMPLATE ("normal", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (
            GST_VIDEO_CAPS_MAKE ("{ RGB, RGBA64_LE }") ";" TENSOR_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("albedo", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
            "{ GRAY8, RGB, GRAY16_LE, RGBA64_LE }") ";" TENSOR_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("ambient", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
            "{ GRAY8, RGB, GRAY16_LE, RGBA64_LE }") ";" TENSOR_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("quality", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("RGBA64_LE") ";" TENSOR_CAPS)),
};

G_DEFINE_FINAL_TYPE_WITH_CODE (GstPhotoStereo, gst_photo_stereo,
    GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        photostereo_debug, "photostereo", 0, "Photometric stereo"))
GST_ELEMENT_REGISTER_DEFINE (
    photostereo, "photostereo", GST_RANK_NONE, GST_TYPE_PHOTO_STEREO)

/* --- the kernel ---------------------------------------------------------- */

static GstPhotoStereoSettings
get_settings (GstPhotoStereo *self)
{
  GstPhotoStereoSettings s;

  GST_OBJECT_LOCK (self);
  s = gst_photo_stereo_settings_copy (&self->settings);
  GST_OBJECT_UNLOCK (self);
  return s;
}

/* Around all work on a kernel and its frames. */
static ImkStatus
enter_device (GstPhotoStereo *self, ImkError *error)
{
  return gst_imaging_engine_is_on_cuda (self->engine)
             ? gst_imaging_context_push (
                   gst_imaging_engine_context (self->engine), error)
             : IMK_OK;
}

static void
leave_device (GstPhotoStereo *self, gboolean on_cuda)
{
  if (on_cuda)
    gst_imaging_context_pop (gst_imaging_engine_context (self->engine));
}

/* The device is through with them: results have been waited for, or nobody
 * looks at them. */
static void
release_pictures (GstPhotoStereo *self)
{
  gboolean entered;

  if (self->held->len == 0)
    return;
  entered = enter_device (self, NULL) == IMK_OK;
  for (guint i = 0; i < self->held->len; i++) {
    Held *held = &g_array_index (self->held, Held, i);

    gst_imaging_frame_unmap (&held->frame, FALSE, NULL);
    gst_buffer_unref (held->buffer);
  }
  g_array_set_size (self->held, 0);
  if (entered)
    leave_device (self, gst_imaging_engine_is_on_cuda (self->engine));
}

static void
gst_photo_stereo_close (GstElement *element)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);

  release_pictures (self);
  g_clear_pointer (&self->kernel, imk_photostereo_free);
}

static void
describe_frame (
    GstPhotoStereo *self, const GstVideoInfo *info, GstPhotoStereoSettings *s)
{
  const GstVideoFormatInfo *finfo = info->finfo;
  guint bits = GST_VIDEO_FORMAT_INFO_DEPTH (finfo, 0);
  guint size = bits > 8 ? 2 : 1;
  ImkPhotostereoConfig *c = &s->config;

  c->width = info->width;
  c->height = info->height;
  c->type = size == 2 ? IMK_TYPE_U16 : IMK_TYPE_U8;
  c->channels = GST_VIDEO_FORMAT_INFO_PSTRIDE (finfo, 0) / size;
  for (guint i = 0; i < 3 && GST_VIDEO_FORMAT_INFO_IS_RGB (finfo); i++)
    c->colours[i] = GST_VIDEO_FORMAT_INFO_POFFSET (finfo, i) / size;
  if (self->caps_pattern != IMK_PHOTOSTEREO_PATTERN_NONE)
    c->pattern = self->caps_pattern;
  if (c->centre_x == GST_PHOTO_STEREO_CENTRE)
    c->centre_x = NAN;
  if (c->centre_y == GST_PHOTO_STEREO_CENTRE)
    c->centre_y = NAN;
  c->full_scale = s->bit_depth ? (1u << s->bit_depth) - 1 : 0;
  c->n_threads = gst_imaging_engine_n_threads (self->engine);
  c->track_change = s->update_interval > 0 || s->next_light;
}

static ImkStatus
take_lights (const GstPhotoStereoSettings *s,
    const ImkPhotostereoLights *lights, ImkPhotostereoConfig *config,
    ImkError *error)
{
  config->n_lights = lights->n;
  config->lights = lights->lights;
  config->positions = s->light_units == GST_PHOTO_STEREO_UNITS_POSITIONS ||
                      lights->kind == IMK_PHOTOSTEREO_KIND_POSITIONS;
  if (s->light_units == GST_PHOTO_STEREO_UNITS_DIRECTIONS)
    config->positions = FALSE;
  if (s->light_units == GST_PHOTO_STEREO_UNITS_AUTO &&
      lights->kind == IMK_PHOTOSTEREO_KIND_UNKNOWN)
    return imk_error_set (error, IMK_ERROR_FILE,
        "lights-location \"%s\" has unit vectors and others: say by "
        "light-units whether they are directions or positions.",
        s->lights_location);
  if (s->set_size > lights->n)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "set-size is %u, but lights-location \"%s\" has %u lights.",
        s->set_size, s->lights_location, lights->n);
  return IMK_OK;
}

/* What nobody can solve is said before the recording starts. */
static void
warn_of_lights (GstPhotoStereo *self, const ImkPhotostereoConfig *c)
{
  gdouble condition = imk_photostereo_lights_condition (c);

  if (c->n_lights < 3)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("There are %u lights; normals need 3. There will be an ambient "
         "picture only.",
            c->n_lights),
        (NULL));
  else if (condition < c->min_condition)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("All %u lights are nearly in one plane with the object (condition "
         "%.2g, min-condition %.2g): nothing can be solved.",
            c->n_lights, condition, c->min_condition),
        (NULL));
}

/* Pictures that do not fit the device stay where they are. */
static ImkStatus
check_host_memory (
    GstPhotoStereo *self, const GstPhotoStereoSettings *s, ImkError *error)
{
  const ImkPhotostereoConfig *c = &s->config;
  guint n = s->set_size ? s->set_size : c->n_lights;
  guint64 size = (guint64) c->width * c->height * c->channels *
                 imk_type_size (c->type) * n;
  guint64 limit = s->host_memory_limit
                      ? s->host_memory_limit
                      : (guint64) sysconf (_SC_PHYS_PAGES) *
                            (guint64) sysconf (_SC_PAGESIZE) / 10 * 9;

  if (!imk_photostereo_keeps_frames (self->kernel) || size <= limit)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%u pictures of %ux%u do not fit the device and have to stay in host "
      "memory: %" G_GUINT64_FORMAT " MiB; host-memory-limit allows "
      "%" G_GUINT64_FORMAT " MiB.",
      n, c->width, c->height, (size >> 20) + 1, limit >> 20);
}

static ImkStatus
open_with (GstPhotoStereo *self, ImkBackend backend, GstPhotoStereoSettings *s,
    ImkError *error)
{
  const gchar *const properties[] = {
      "dark-location", "white-location", "mask-location"};
  const gchar *const locations[] = {
      s->dark_location, s->white_location, s->mask_location};
  const ImkImage **slots[] = {
      &s->config.dark, &s->config.white, &s->config.mask};
  GstImagingNpy *npy[3] = {NULL};
  ImkImage images[3];
  ImkStatus status = IMK_OK;

  for (guint i = 0; i < 3 && status == IMK_OK; i++)
    if (locations[i]) {
      status = gst_photo_stereo_load_image (
          properties[i], locations[i], &npy[i], &images[i], error);
      *slots[i] = &images[i];
    }
  if (status == IMK_OK)
    status = imk_photostereo_new (backend, &s->config, &self->kernel, error);
  if (status == IMK_OK)
    status = check_host_memory (self, s, error);
  if (status != IMK_OK)
    g_clear_pointer (&self->kernel, imk_photostereo_free);
  for (guint i = 0; i < 3; i++)
    g_clear_pointer (&npy[i], gst_imaging_npy_free);
  return status;
}

static ImkStatus
gst_photo_stereo_open (GstElement *element, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);
  GstPhotoStereoSettings s = get_settings (self);
  ImkPhotostereoLights lights = {0};
  ImkStatus status;

  if (s.lights_location)
    status = gst_photo_stereo_load_lights (
        s.lights_location, s.intensities_location, &lights, error);
  else
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "lights-location is not set; it names the file with the lights.");
  if (status == IMK_OK)
    status = take_lights (&s, &lights, &s.config, error);
  if (status == IMK_OK) {
    describe_frame (self, info, &s);
    status = open_with (self, backend, &s, error);
  }
  if (status == IMK_OK) {
    self->open_geometry = s.geometry;
    self->n_lights = lights.n;
    self->n_colours = imk_photostereo_n_colours (&s.config);
    self->set_size = s.set_size ? s.set_size : lights.n;
    warn_of_lights (self, &s.config);
  }
  imk_photostereo_lights_clear (&lights);
  gst_photo_stereo_settings_clear (&s);
  return status;
}

/* From a quarter of a megapixel on: 2 s of the CPU are 30 ms of an H200 at 3
 * megapixels and 260 lights, see docs/benchmarks.md; small sets take the CPU no
 * longer than the copies. */
static gboolean
gst_photo_stereo_prefers_cuda (GstElement *element, const GstVideoInfo *info)
{
  return (gsize) info->width * info->height >= 1 << 18;
}

/* Changes of the solver at once, all others with a new set. */
static ImkStatus
follow_settings (GstPhotoStereo *self, ImkError *error)
{
  ImkPhotostereoConfig config;
  gboolean same;

  GST_OBJECT_LOCK (self);
  config = self->settings.config;
  same = self->open_geometry == self->settings.geometry;
  GST_OBJECT_UNLOCK (self);
  if (!same && imk_photostereo_n_added (self->kernel) == 0)
    return gst_imaging_engine_reopen (self->engine, error);
  return imk_photostereo_update (self->kernel, &config, error);
}

/* --- results ------------------------------------------------------------- */

static void
ref_pads (GstPhotoStereo *self, GstPhotoStereoPad *pads[N_OUTPUTS])
{
  GST_OBJECT_LOCK (self);
  for (guint i = 0; i < N_OUTPUTS; i++)
    pads[i] = self->pads[i] ? gst_photo_stereo_pad_ref (self->pads[i]) : NULL;
  GST_OBJECT_UNLOCK (self);
}

static void
unref_pads (GstPhotoStereoPad *pads[N_OUTPUTS])
{
  for (guint i = 0; i < N_OUTPUTS; i++)
    g_clear_pointer (&pads[i], gst_photo_stereo_pad_unref);
}

static void
post_progress (
    GstPhotoStereo *self, const ImkPhotostereoSummary *s, gboolean final)
{
  gdouble share =
      s->n_pixels ? (gdouble) s->n_invalid / (gdouble) s->n_pixels : 0;

  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("photostereo-progress", "lights", G_TYPE_UINT,
              s->n_lights, "set-size", G_TYPE_UINT, self->set_size, "pixels",
              G_TYPE_UINT64, s->n_pixels, "invalid", G_TYPE_UINT64,
              s->n_invalid, "invalid-share", G_TYPE_DOUBLE, share, "change",
              G_TYPE_DOUBLE, isnan (s->change_deg) ? -1.0 : s->change_deg,
              "mean-lights", G_TYPE_DOUBLE, s->mean_lights, "mean-rounds",
              G_TYPE_DOUBLE, s->mean_rounds, "final", G_TYPE_BOOLEAN, final,
              NULL)));
}

static void
post_next_light (GstPhotoStereo *self, guint light)
{
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("photostereo-next-light", "index", G_TYPE_UINT,
              light, "lights", G_TYPE_UINT,
              imk_photostereo_n_added (self->kernel), NULL)));
}

/* Solves into the buffers of the linked pads; flows[i] tells which of them
 * are to be pushed. */
static ImkStatus
solve (GstPhotoStereo *self, GstPhotoStereoPad *pads[N_OUTPUTS],
    GstFlowReturn flows[N_OUTPUTS], ImkPhotostereoSummary *summary,
    ImkError *error)
{
  const GstVideoInfo *info = gst_imaging_engine_info (self->engine);
  const guint channels[] = {3, self->n_colours, self->n_colours, 4};
  ImkPhotostereoOutputs out = {0};
  ImkImage *images[] = {&out.normal, &out.albedo, &out.ambient, &out.quality};
  GstPhotoStereoEncoding normal_encoding;
  ImkStatus status = IMK_OK;

  GST_OBJECT_LOCK (self);
  normal_encoding = self->settings.normal_encoding;
  GST_OBJECT_UNLOCK (self);
  for (guint i = 0; i < N_OUTPUTS; i++) {
    flows[i] = GST_FLOW_NOT_LINKED;
    if (pads[i] && status == IMK_OK)
      flows[i] = gst_photo_stereo_pad_begin (pads[i], self->engine, info->width,
          info->height, channels[i],
          i == NORMAL ? normal_encoding : GST_PHOTO_STEREO_ENCODING_AUTO,
          images[i], error);
    if (flows[i] == GST_FLOW_ERROR)
      status = IMK_ERROR_MEMORY;
  }
  if (status == IMK_OK)
    status = imk_photostereo_solve (self->kernel, &out, summary,
        gst_imaging_engine_stream (self->engine), error);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (flows[i] == GST_FLOW_OK) {
      ImkStatus end = gst_photo_stereo_pad_end (
          pads[i], status == IMK_OK, status == IMK_OK ? error : NULL);

      status = status == IMK_OK ? end : status;
    }
  return status;
}

static GstFlowReturn
push_results (GstPhotoStereo *self, GstPhotoStereoPad *pads[N_OUTPUTS],
    GstFlowReturn flows[N_OUTPUTS], gboolean ok)
{
  GstFlowReturn flow = GST_FLOW_OK;
  GstBuffer *like = gst_buffer_new ();

  GST_BUFFER_PTS (like) = self->last_pts;
  if (GST_CLOCK_TIME_IS_VALID (self->first_pts) &&
      GST_CLOCK_TIME_IS_VALID (self->last_pts) &&
      self->last_pts >= self->first_pts)
    GST_BUFFER_DURATION (like) = self->last_pts - self->first_pts;
  for (guint i = 0; i < N_OUTPUTS; i++) {
    if (flows[i] == GST_FLOW_OK)
      flows[i] = gst_photo_stereo_pad_push (pads[i], ok ? like : NULL);
    if (pads[i] && ok)
      flow = gst_flow_combiner_update_pad_flow (
          self->combiner, gst_photo_stereo_pad_get (pads[i]), flows[i]);
  }
  gst_buffer_unref (like);
  return flow;
}

/* What is there so far, to all pads and the bus.
 * @change: (out): of the normals in degrees, NaN when not known */
static GstFlowReturn
publish (GstPhotoStereo *self, gboolean final, gdouble *change)
{
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (self->engine);
  GstPhotoStereoPad *pads[N_OUTPUTS];
  GstFlowReturn flows[N_OUTPUTS], flow;
  ImkPhotostereoSummary summary = {.change_deg = NAN};
  ImkError error;
  ImkStatus status = enter_device (self, &error);

  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->engine, status, &error);
    return GST_FLOW_ERROR;
  }
  ref_pads (self, pads);
  status = solve (self, pads, flows, &summary, &error);
  leave_device (self, on_cuda);
  if (status == IMK_OK)
    post_progress (self, &summary, final);
  flow = push_results (self, pads, flows, status == IMK_OK);
  unref_pads (pads);
  *change = summary.change_deg;
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->engine, status, &error);
    return GST_FLOW_ERROR;
  }
  if (final && summary.n_lights < 3)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("The set ended with %u of %u pictures; normals need 3.",
            summary.n_lights, self->set_size),
        (NULL));
  else if (final && summary.n_pixels && summary.n_invalid == summary.n_pixels)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("No pixel could be solved from %u pictures: they are black or "
         "saturated, the thresholds leave out all lights, or these are in one "
         "plane.",
            summary.n_lights),
        (NULL));
  return flow;
}

static void
forget_set (GstPhotoStereo *self)
{
  release_pictures (self);
  if (self->kernel)
    imk_photostereo_reset (self->kernel);
  self->first_pts = self->last_pts = GST_CLOCK_TIME_NONE;
}

static GstFlowReturn
finish_set (GstPhotoStereo *self)
{
  GstFlowReturn flow = GST_FLOW_OK;
  gdouble change;

  if (self->kernel && imk_photostereo_n_added (self->kernel) > 0)
    flow = publish (self, TRUE, &change);
  forget_set (self);
  return flow;
}

static void
say_next_light (GstPhotoStereo *self)
{
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (self->engine);
  guint32 light = 0;

  if (imk_photostereo_n_added (self->kernel) == self->n_lights ||
      enter_device (self, NULL) != IMK_OK)
    return;
  if (imk_photostereo_next_light (self->kernel, &light,
          gst_imaging_engine_stream (self->engine), NULL) == IMK_OK)
    post_next_light (self, light);
  leave_device (self, on_cuda);
}

/* After a picture: the set is complete, or it is time for a look. */
static GstFlowReturn
look_at_set (GstPhotoStereo *self)
{
  guint n = imk_photostereo_n_added (self->kernel), interval;
  gboolean next_light, by_order;
  gdouble stop_below, change;
  GstFlowReturn flow;

  GST_OBJECT_LOCK (self);
  interval = self->settings.update_interval;
  stop_below = self->settings.stop_below;
  next_light = self->settings.next_light;
  by_order = self->settings.index_source == GST_PHOTO_STEREO_INDEX_ORDER;
  GST_OBJECT_UNLOCK (self);
  if (n >= self->set_size)
    return finish_set (self);
  if (!interval || n % interval != 0)
    return GST_FLOW_OK;
  flow = publish (self, FALSE, &change);
  if (flow != GST_FLOW_OK)
    return flow;
  if (change < stop_below) { /* not with NaN */
    self->n_skip = by_order ? self->set_size - n : 0;
    return finish_set (self);
  }
  if (next_light)
    say_next_light (self);
  return GST_FLOW_OK;
}

/* --- pictures ------------------------------------------------------------ */

static ImkStatus
get_index (
    GstPhotoStereo *self, GstBuffer *buffer, guint32 *index, ImkError *error)
{
  GstCustomMeta *meta;
  GstPhotoStereoIndexSource source;

  GST_OBJECT_LOCK (self);
  source = self->settings.index_source;
  GST_OBJECT_UNLOCK (self);
  switch (source) {
  case GST_PHOTO_STEREO_INDEX_META:
    meta = gst_buffer_get_custom_meta (buffer, GST_PHOTO_STEREO_LIGHT_META);
    if (!meta || !gst_structure_get_uint (
                     gst_custom_meta_get_structure (meta), "index", index))
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "A picture has no " GST_PHOTO_STEREO_LIGHT_META
          " meta with an unsigned integer "
          "\"index\", which index-source=meta needs.");
    break;
  case GST_PHOTO_STEREO_INDEX_OFFSET:
    if (!GST_BUFFER_OFFSET_IS_VALID (buffer))
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "A picture has no offset, which index-source=offset needs.");
    *index = (guint32) MIN (GST_BUFFER_OFFSET (buffer), G_MAXUINT32);
    break;
  default:
    *index = imk_photostereo_n_added (self->kernel);
  }
  return IMK_OK;
}

static ImkStatus
add_mapped (GstPhotoStereo *self, GstBuffer *buffer, guint32 index,
    GstImagingReach reach, ImkError *error)
{
  GstImagingFrame frame;
  ImkError late;
  ImkStatus end;
  ImkStatus status = gst_imaging_engine_map (self->engine, buffer,
      gst_imaging_engine_info (self->engine), GST_MAP_READ, reach, &frame,
      error);

  if (status != IMK_OK)
    return status;
  gst_imaging_engine_note_memory (self->engine, frame.memory_name);
  status = imk_photostereo_add (
      self->kernel, &frame.planes[0], index, frame.stream, error);
  if (status == IMK_OK && imk_photostereo_keeps_frames (self->kernel)) {
    Held held = {.buffer = gst_buffer_ref (buffer), .frame = frame};

    g_array_append_val (self->held, held);
    return IMK_OK;
  }
  end = gst_imaging_frame_unmap (&frame, FALSE, &late);
  if (status == IMK_OK && end != IMK_OK)
    status = imk_error_set (error, end, "%s", late.message);
  return status;
}

static ImkStatus
add_picture (GstPhotoStereo *self, GstBuffer *buffer, ImkError *error)
{
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (self->engine);
  GstImagingReach reach =
      on_cuda ? GST_IMAGING_REACH_DEVICE_OR_MAPPED : GST_IMAGING_REACH_HOST;
  GstBuffer *input;
  guint32 index = 0;
  ImkStatus status = get_index (self, buffer, &index, error);

  if (status == IMK_OK)
    status = enter_device (self, error);
  if (status != IMK_OK)
    return status;
  input = gst_imaging_engine_reachable (self->engine, buffer, reach, error);
  if (input)
    status = add_mapped (self, input, index, reach, error);
  else
    status = error->code;
  if (input && input != buffer)
    gst_buffer_unref (input);
  leave_device (self, on_cuda);
  return status;
}

static void
note_time (GstPhotoStereo *self, GstBuffer *buffer)
{
  if (imk_photostereo_n_added (self->kernel) == 1)
    self->first_pts = GST_BUFFER_PTS (buffer);
  self->last_pts = GST_BUFFER_PTS (buffer);
}

/* Before a picture: a kernel that follows the properties. */
static ImkStatus
prepare (GstPhotoStereo *self, ImkError *error)
{
  ImkStatus status = gst_imaging_engine_ensure_open (self->engine, error);
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (self->engine);

  if (status == IMK_OK)
    status = enter_device (self, error);
  if (status != IMK_OK)
    return status;
  status = follow_settings (self, error);
  leave_device (self, on_cuda);
  return status;
}

static GstFlowReturn
gst_photo_stereo_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_OK;
  ImkStatus status = IMK_OK;
  ImkError error;

  if (!self->caps) {
    gst_buffer_unref (buffer);
    return GST_FLOW_NOT_NEGOTIATED;
  }
  if (self->n_skip > 0) {
    self->n_skip--;
    gst_buffer_unref (buffer);
    return GST_FLOW_OK;
  }
  /* the backend follows the data from the first picture of a set on */
  if ((!self->kernel || imk_photostereo_n_added (self->kernel) == 0) &&
      !gst_imaging_engine_follow (self->engine, buffer)) {
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  status = prepare (self, &error);
  if (status == IMK_OK)
    status = add_picture (self, buffer, &error);
  if (status == IMK_OK) {
    note_time (self, buffer);
    flow = look_at_set (self);
    gst_imaging_engine_count_frame (self->engine, entered);
  } else {
    gst_imaging_engine_post_error (self->engine, status, &error);
    flow = GST_FLOW_ERROR;
  }
  gst_buffer_unref (buffer);
  return flow;
}

/* --- events and queries -------------------------------------------------- */

/* A mosaic travels through memory as grey frames do. */
static GstCaps *
grey_caps (GstPhotoStereo *self, GstCaps *caps)
{
  GstStructure *s = gst_caps_get_structure (caps, 0);
  const gchar *format = gst_structure_get_string (s, "format");
  GstCaps *grey;

  self->caps_pattern = IMK_PHOTOSTEREO_PATTERN_NONE;
  if (!gst_structure_has_name (s, "video/x-bayer"))
    return gst_caps_ref (caps);
  self->caps_pattern = gst_photo_stereo_pattern_of (format);
  grey = gst_caps_copy (caps);
  s = gst_caps_get_structure (grey, 0);
  gst_structure_set_name (s, "video/x-raw");
  gst_structure_set (s, "format", G_TYPE_STRING, "GRAY8", NULL);
  return grey;
}

static gboolean
set_caps (GstPhotoStereo *self, GstCaps *caps)
{
  GstCaps *grey;
  gboolean ok;

  if (self->caps && gst_caps_is_equal (self->caps, caps))
    return TRUE;
  finish_set (self);
  self->n_skip = 0;
  gst_caps_replace (&self->caps, caps);
  grey = grey_caps (self, caps);
  ok = gst_imaging_engine_set_caps (self->engine, grey, NULL);
  gst_caps_unref (grey);
  return ok;
}

static void
send_to_pads (GstPhotoStereo *self, GstEvent *event)
{
  GstPhotoStereoPad *pads[N_OUTPUTS];

  ref_pads (self, pads);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (pads[i])
      gst_photo_stereo_pad_event (pads[i], event);
  unref_pads (pads);
}

static gboolean
gst_photo_stereo_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (parent);
  gboolean ok = TRUE;
  GstCaps *caps;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, caps);
    break;
  case GST_EVENT_EOS:
    finish_set (self);
    self->n_skip = 0;
    send_to_pads (self, event);
    break;
  case GST_EVENT_FLUSH_STOP:
    forget_set (self);
    self->n_skip = 0;
    gst_flow_combiner_reset (self->combiner);
    send_to_pads (self, event);
    break;
  default:
    send_to_pads (self, event);
  }
  gst_event_unref (event);
  return ok;
}

static gboolean
gst_photo_stereo_sink_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (parent);

  if (gst_imaging_engine_query (self->engine, query))
    return TRUE;
  if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION) {
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
    gst_imaging_allocation_propose (self->engine, query);
    return TRUE;
  }
  return gst_pad_query_default (pad, parent, query);
}

/* --- pads ---------------------------------------------------------------- */

static GstPad *
gst_photo_stereo_request_new_pad (GstElement *element, GstPadTemplate *template,
    const gchar *name, const GstCaps *caps)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);
  GstPhotoStereoPad *pad;
  gboolean taken;
  guint i = 0;

  while (g_strcmp0 (template->name_template, output_names[i]) != 0)
    if (++i == N_OUTPUTS)
      return NULL;
  GST_OBJECT_LOCK (self);
  taken = self->pads[i] != NULL;
  GST_OBJECT_UNLOCK (self);
  if (taken)
    return NULL;
  pad = gst_photo_stereo_pad_new (element, template, output_names[i]);
  GST_OBJECT_LOCK (self);
  self->pads[i] = pad;
  GST_OBJECT_UNLOCK (self);
  GST_PAD_STREAM_LOCK (self->sink);
  gst_flow_combiner_add_pad (self->combiner, gst_photo_stereo_pad_get (pad));
  GST_PAD_STREAM_UNLOCK (self->sink);
  return gst_photo_stereo_pad_get (pad);
}

static void
gst_photo_stereo_release_pad (GstElement *element, GstPad *pad)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);
  GstPhotoStereoPad *found = NULL;

  GST_OBJECT_LOCK (self);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (self->pads[i] && gst_photo_stereo_pad_get (self->pads[i]) == pad)
      found = g_steal_pointer (&self->pads[i]);
  GST_OBJECT_UNLOCK (self);
  if (!found)
    return;
  gst_pad_set_active (pad, FALSE); /* a push that is under way ends */
  GST_PAD_STREAM_LOCK (self->sink);
  gst_flow_combiner_remove_pad (self->combiner, pad);
  GST_PAD_STREAM_UNLOCK (self->sink);
  gst_photo_stereo_pad_remove (found);
  gst_photo_stereo_pad_unref (found);
}

static void
gst_photo_stereo_finish_set (GstPhotoStereo *self)
{
  GST_PAD_STREAM_LOCK (self->sink);
  self->n_skip = 0;
  finish_set (self);
  GST_PAD_STREAM_UNLOCK (self->sink);
}

/* --- GstElement ---------------------------------------------------------- */

static void
reset (GstPhotoStereo *self)
{
  GstPhotoStereoPad *pads[N_OUTPUTS];

  ref_pads (self, pads);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (pads[i])
      gst_photo_stereo_pad_reset (pads[i]);
  unref_pads (pads);
  gst_flow_combiner_reset (self->combiner);
  gst_clear_caps (&self->caps);
  self->n_skip = 0;
  self->first_pts = self->last_pts = GST_CLOCK_TIME_NONE;
}

static GstStateChangeReturn
gst_photo_stereo_change_state (GstElement *element, GstStateChange transition)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) {
    reset (self);
    if (!gst_imaging_engine_start (self->engine))
      return GST_STATE_CHANGE_FAILURE;
  }
  result = GST_ELEMENT_CLASS (gst_photo_stereo_parent_class)
               ->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (transition == GST_STATE_CHANGE_READY_TO_PAUSED &&
          result == GST_STATE_CHANGE_FAILURE)) {
    reset (self);
    gst_imaging_engine_stop (self->engine);
  }
  return result;
}

static void
gst_photo_stereo_set_context (GstElement *element, GstContext *context)
{
  gst_imaging_engine_set_context (GST_PHOTO_STEREO (element)->engine, context);
  GST_ELEMENT_CLASS (gst_photo_stereo_parent_class)
      ->set_context (element, context);
}

/* --- GObject ------------------------------------------------------------- */

static void
gst_photo_stereo_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (object);

  if (gst_imaging_engine_set_property (self->engine, id, value))
    return;
  GST_OBJECT_LOCK (object);
  if (!gst_photo_stereo_settings_set (&self->settings, id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  GST_OBJECT_UNLOCK (object);
}

static void
gst_photo_stereo_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (object);

  if (gst_imaging_engine_get_property (self->engine, id, value))
    return;
  GST_OBJECT_LOCK (object);
  if (!gst_photo_stereo_settings_get (&self->settings, id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  GST_OBJECT_UNLOCK (object);
}

static void
gst_photo_stereo_finalize (GObject *object)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (object);

  for (guint i = 0; i < N_OUTPUTS; i++)
    g_clear_pointer (&self->pads[i], gst_photo_stereo_pad_unref);
  gst_photo_stereo_settings_clear (&self->settings);
  gst_flow_combiner_free (self->combiner);
  g_array_unref (self->held);
  gst_imaging_engine_free (self->engine);
  G_OBJECT_CLASS (gst_photo_stereo_parent_class)->finalize (object);
}

static void
gst_photo_stereo_class_init (GstPhotoStereoClass *klass)
{
  static const gchar *no_tags[] = {NULL};
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->set_property = gst_photo_stereo_set_property;
  object_class->get_property = gst_photo_stereo_get_property;
  object_class->finalize = gst_photo_stereo_finalize;
  gst_imaging_engine_install_properties (object_class);
  gst_photo_stereo_settings_install (object_class);

  /**
   * GstPhotoStereo::finish-set:
   *
   * Ends the set: what there is is solved, and the next picture begins another.
   * Waits for the picture that is being worked on.
   */
  signals[SIGNAL_FINISH_SET] = g_signal_new_class_handler ("finish-set",
      G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION,
      G_CALLBACK (gst_photo_stereo_finish_set), NULL, NULL, NULL, G_TYPE_NONE,
      0);

  /* without tags, so that whatever is done to the pixels does not drop it; a
   * NULL list is refused before GStreamer 1.24 */
  gst_meta_register_custom (
      GST_PHOTO_STEREO_LIGHT_META, no_tags, NULL, NULL, NULL);
  gst_element_class_set_static_metadata (element_class, "Photometric stereo",
      "Filter/Converter/Video",
      "Normals, albedo and ambient picture from pictures under known lights",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_element_class_add_static_pad_template (
        element_class, &src_templates[i]);
  element_class->change_state = gst_photo_stereo_change_state;
  element_class->set_context = gst_photo_stereo_set_context;
  element_class->request_new_pad = gst_photo_stereo_request_new_pad;
  element_class->release_pad = gst_photo_stereo_release_pad;
}

static void
gst_photo_stereo_init (GstPhotoStereo *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = gst_photo_stereo_open,
      .close = gst_photo_stereo_close,
      .prefers_cuda = gst_photo_stereo_prefers_cuda,
  };

  gst_photo_stereo_settings_init (&self->settings);
  self->engine = gst_imaging_engine_new (GST_ELEMENT (self), &funcs);
  self->combiner = gst_flow_combiner_new ();
  self->held = g_array_new (FALSE, FALSE, sizeof (Held));
  self->first_pts = self->last_pts = GST_CLOCK_TIME_NONE;
  self->sink = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sink, gst_photo_stereo_chain);
  gst_pad_set_event_function (self->sink, gst_photo_stereo_sink_event);
  gst_pad_set_query_function (self->sink, gst_photo_stereo_sink_query);
  gst_element_add_pad (GST_ELEMENT (self), self->sink);
}
