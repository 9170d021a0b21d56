/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From properties and caps to a kernel. */
#include "gstphotostereoprivate.h"

#include <math.h>
#include <unistd.h>

#include "gstphotostereofiles.h"

void
gst_photo_stereo_close (GstElement *element)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);

  gst_photo_stereo_release_pictures (self);
  g_clear_pointer (&self->kernel, imk_photostereo_free);
  gst_photo_stereo_close_gates (self);
}

static gboolean
wants_tracking (const GstPhotoStereoSettings *s)
{
  return s->window == GST_PHOTO_STEREO_WINDOW_SET &&
         (s->update_interval > 0 || s->next_light);
}

/* The settings in use, for frames of @info. */
static ImkPhotostereoConfig
config_of (GstPhotoStereo *self, const GstVideoInfo *info)
{
  const GstPhotoStereoSettings *s = gst_photo_stereo_now (self);
  const GstVideoFormatInfo *finfo = info->finfo;
  guint bits = GST_VIDEO_FORMAT_INFO_DEPTH (finfo, 0);
  guint size = bits > 8 ? 2 : 1;
  ImkPhotostereoConfig config = s->config, *c = &config;

  c->y_down = s->y_down;
  if (s->mm_per_pixel > 0)
    c->mm_per_pixel = s->mm_per_pixel;
  c->pixel_aspect = (gdouble) GST_VIDEO_INFO_PAR_N (info) /
                    (gdouble) GST_VIDEO_INFO_PAR_D (info);
  c->memory_limit = s->memory_limit;
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
  c->n_threads = gst_imaging_engine_n_threads (self->base.engine);
  c->track_change = wants_tracking (s);
  return config;
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
        s->lights->location);
  if (s->set_size > lights->n)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "set-size is %u, but lights-location \"%s\" has %u lights.",
        s->set_size, s->lights->location, lights->n);
  return IMK_OK;
}

/* Below it a lamp that is a degree off turns the normals by several. 12 lamps
 * 5 degrees out of a plane have 0.005, the 12 of the UW sets 0.014. */
#define POOR_CONDITION 0.005

/* Warns before the recording starts. */
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
  else if (condition < POOR_CONDITION)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("The %u lights are almost in one plane with the object or in one "
         "direction (condition %.2g; from %g on it is good): normals will be "
         "inaccurate. Check lights-location, or spread the lamps.",
            c->n_lights, condition, POOR_CONDITION),
        (NULL));
}

/* With the wrong sign of z the normals are wrong but look plausible. */
static void
warn_of_back_light (GstPhotoStereo *self, const ImkPhotostereoConfig *c)
{
  g_autofree gchar *some = NULL;
  guint n_behind = 0, first = 0;

  for (guint i = c->n_lights; i-- > 0;)
    if (c->lights[i].z < 0) {
      first = i;
      n_behind++;
    }
  if (c->positions || n_behind == 0) /* the kernel refuses such positions */
    return;
  if (n_behind < c->n_lights)
    some = g_strdup_printf ("%u of %u lights of lights-location (the first is "
                            "light %u, counted from 0) have",
        n_behind, c->n_lights, first);
  else
    some = g_strdup_printf ("All %u lights of lights-location have", n_behind);
  GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
      ("%s z < 0: they would shine from behind the object. z points from the "
       "object to the camera here; change the sign of z if it points away from "
       "the camera in the file.",
          some),
      (NULL));
}

/* Without mm-per-pixel a picture is metres wide and the lamps stand in its
 * middle. The normals are then 25 degrees off but look plausible. */
#define NEAR 10 /* times the size of the picture */

static void
warn_of_scale (GstPhotoStereo *self, const ImkPhotostereoConfig *c)
{
  gdouble width = c->mm_per_pixel * c->width;
  gdouble height = c->mm_per_pixel * c->height / c->pixel_aspect;
  gdouble known = gst_photo_stereo_now (self)->mm_per_pixel;
  gdouble distance = 0;

  if (!c->positions || c->model == IMK_PHOTOSTEREO_MODEL_DIRECTIONAL)
    return;
  for (guint i = 0; i < c->n_lights; i++) {
    const ImkPhotostereoLight *l = &c->lights[i];

    distance += hypot (hypot (l->x, l->y), l->z - c->plane_z) / c->n_lights;
  }
  if (distance < MAX (width, height) * (known > 0 ? 1 : NEAR))
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("The lamps are %.4g mm away on average, and with mm-per-pixel=%g%s the "
         "picture is %.4g x %.4g mm. Set mm-per-pixel; multiply positions in "
         "cm by 10; or set light-units=directions if lights-location has no "
         "positions.",
            distance, known, known > 0 ? "" : ", which counts as 1,", width,
            height),
        (NULL));
}

static void
warn_of_white (GstPhotoStereo *self)
{
  gdouble share = imk_photostereo_unmeasured (self->kernel);

  if (share > 0)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("white-location is black or clipped at %.3g %% of the pixels, which "
         "are not solved. Expose the white sheet so that it is neither black nor "
         "clipped, or leave out by mask-location what is not the object.",
            100 * share),
        (NULL));
}

/* Returns: bytes; IMK_MEMORY is what a batch of several jobs allots to one */
static guint64
host_memory (void)
{
  guint64 physical =
      (guint64) sysconf (_SC_PHYS_PAGES) * (guint64) sysconf (_SC_PAGESIZE);
  const gchar *allotted = g_getenv ("IMK_MEMORY");
  guint64 most = allotted ? g_ascii_strtoull (allotted, NULL, 10) : 0;

  return most && most < physical ? most : physical;
}

/* Pictures that do not fit the device stay where they are; the CPU has a copy
 * of all. */
static ImkStatus
check_host_memory (GstPhotoStereo *self, ImkBackend backend,
    const ImkPhotostereo *kernel, const ImkPhotostereoConfig *c,
    ImkError *error)
{
  const GstPhotoStereoSettings *s = gst_photo_stereo_now (self);
  guint n = (s->set_size ? s->set_size : c->n_lights) * c->bands;
  guint64 size = (guint64) c->width * c->height * c->channels *
                 imk_type_size (c->type) * n;
  guint64 limit =
      s->host_memory_limit ? s->host_memory_limit : host_memory () / 10 * 9;

  if ((backend != IMK_BACKEND_CPU && !imk_photostereo_keeps_frames (kernel)) ||
      size <= limit)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%u pictures of %ux%u %s: %" G_GUINT64_FORMAT
      " MiB; host-memory-limit allows %" G_GUINT64_FORMAT " MiB.",
      n, c->width, c->height,
      backend == IMK_BACKEND_CPU
          ? "have to be in host memory until they are solved"
          : "do not fit the device and have to stay in host memory",
      (size >> 20) + 1, limit >> 20);
}

/* @kernel: (out): untouched on failure */
static ImkStatus
make_kernel (GstPhotoStereo *self, ImkBackend backend,
    const ImkPhotostereoConfig *config, ImkPhotostereo **kernel,
    ImkError *error)
{
  const GstPhotoStereoSettings *s = gst_photo_stereo_now (self);
  const gchar *const properties[] = {
      "dark-location", "white-location", "mask-location"};
  const GstImagingFile *const files[] = {s->dark, s->white, s->mask};
  ImkPhotostereoConfig c = *config;
  const ImkImage **slots[] = {&c.dark, &c.white, &c.mask};
  gpointer wide[3] = {NULL};
  ImkPhotostereo *made = NULL;
  ImkImage images[3];
  ImkStatus status = IMK_OK;

  for (guint i = 0; i < 3 && status == IMK_OK; i++)
    if (files[i]) {
      gboolean is_mask = slots[i] == &c.mask;
      const ImkImage frame = {.width = c.width,
          .height = c.height,
          .type = is_mask ? IMK_TYPE_U8 : c.type};

      status = gst_photo_stereo_describe_image (properties[i], files[i],
          is_mask ? 1 : c.bands, &frame, &images[i], &wide[i], error);
      *slots[i] = &images[i];
    }
  if (status == IMK_OK)
    status = imk_photostereo_new (backend, &c, &made, error);
  if (status == IMK_OK)
    status = check_host_memory (self, backend, made, &c, error);
  for (guint i = 0; i < 3; i++)
    g_free (wide[i]);
  if (status == IMK_OK)
    *kernel = made;
  else
    imk_photostereo_free (made);
  return status;
}

/* Keeps the old kernel until the new one is complete. Exception: if the new one
 * would have to solve in strips because the old one holds the memory, the old
 * one is freed first. */
static ImkStatus
replace_kernel (GstPhotoStereo *self, ImkBackend backend,
    const ImkPhotostereoConfig *c, ImkError *error)
{
  ImkPhotostereo *kernel = NULL;
  ImkStatus status = make_kernel (self, backend, c, &kernel, error);

  if (status == IMK_OK && c->n_devices > 0)
    status = gst_photo_stereo_open_gates (self, error);
  if (status == IMK_OK && self->kernel &&
      imk_photostereo_keeps_frames (kernel)) {
    g_clear_pointer (&kernel, imk_photostereo_free);
    g_clear_pointer (&self->kernel, imk_photostereo_free);
    status = make_kernel (self, backend, c, &kernel, error);
    if (status != IMK_OK) /* the settings fitted before */
      status = IMK_ERROR_DEVICE;
  }
  if (status != IMK_OK) {
    imk_photostereo_free (kernel);
    return status;
  }
  gst_photo_stereo_release_pictures (self);
  imk_photostereo_free (self->kernel);
  self->kernel = kernel;
  return IMK_OK;
}

ImkStatus
gst_photo_stereo_open (GstElement *element, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);
  const GstPhotoStereoSettings *s = gst_photo_stereo_now (self);
  ImkPhotostereoConfig c = config_of (self, info);
  ImkPhotostereoLights lights = {0};
  ImkStatus status;

  if (!s->lights)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "lights-location is not set; it names the file with the lights.");
  status =
      gst_photo_stereo_join_lights (s->lights, s->intensities, &lights, error);
  if (status == IMK_OK)
    status = take_lights (s, &lights, &c, error);
  if (backend == IMK_BACKEND_CUDA)
    c.n_devices = MIN (self->others->len, G_N_ELEMENTS (c.devices));
  for (guint i = 0; i < c.n_devices; i++)
    c.devices[i] = g_array_index (self->others, gint, i);
  if (status == IMK_OK)
    status = replace_kernel (self, backend, &c, error);
  if (status == IMK_OK) {
    self->tracks = c.track_change;
    self->n_lights = lights.n;
    self->n_colours = imk_photostereo_n_colours (&c);
    self->bands = c.bands;
    self->band_order = s->band_order;
    self->set_size = s->set_size ? s->set_size : lights.n;
    self->full_scale = c.full_scale;
    self->warned_of_depth = FALSE;
    gst_photo_stereo_window_clear (self);
    warn_of_lights (self, &c);
    warn_of_back_light (self, &c);
    warn_of_scale (self, &c);
    warn_of_white (self);
  }
  imk_photostereo_lights_clear (&lights);
  return status;
}

/* From a quarter of a megapixel on: 1.8 s of the CPU are 18 ms of an H200 at 3
 * megapixels and 260 lights, see docs/explanation/measurements.md; small sets
 * take the CPU no longer than the copies. */
gboolean
gst_photo_stereo_prefers_cuda (GstElement *element, const GstVideoInfo *info)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);

  const ImkPhotostereoConfig *c = &gst_photo_stereo_now (self)->config;

  return c->ambient_model == IMK_PHOTOSTEREO_AMBIENT_MEAN &&
         c->height_rounds == 0 && (gsize) info->width * info->height >= 1 << 18;
}

ImkStatus
gst_photo_stereo_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);
  ImkPhotostereoConfig config;

  if (groups & GST_PHOTO_STEREO_GEOMETRY || !self->kernel) {
    ImkStatus status = gst_imaging_engine_renew (self->base.engine, error);

    self->is_changed = self->is_changed || status == IMK_OK;
    return status;
  }
  config = gst_photo_stereo_now (self)->config;
  config.y_down = gst_photo_stereo_now (self)->y_down;
  return imk_photostereo_update (self->kernel, &config, error);
}

ImkStatus
gst_photo_stereo_follow_settings (
    GstPhotoStereo *self, GstBuffer *buffer, ImkError *error)
{
  gboolean begins = imk_photostereo_n_added (self->kernel) == 0;
  ImkStatus status = gst_imaging_settings_update (self->base.settings,
      begins ? GST_IMAGING_WHEN_NEXT_SET : GST_IMAGING_WHEN_LIVE,
      buffer ? gst_imaging_settings_stream_time (self->sink, buffer)
             : GST_CLOCK_TIME_NONE,
      error);

  /* a kernel without track_change cannot compare updates */
  if (status == IMK_OK && begins &&
      self->tracks != wants_tracking (gst_photo_stereo_now (self)))
    status = gst_imaging_engine_renew (self->base.engine, error);
  /* within a set its pictures would be lost with the device */
  return begins ? gst_imaging_engine_try_cpu (self->base.engine, status, error)
                : status;
}
