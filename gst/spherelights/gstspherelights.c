/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-spherelights
 * @title: spherelights
 * @short_description: lights from pictures of a mirror sphere
 *
 * Finds where the lights of a rig are: takes a picture of a mirror sphere under
 * each, in the order of the lights, and writes an .lp file of their directions
 * for photostereo, with EOS or the action signal finish-set. Pictures pass
 * untouched.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 picturesrc location=chrome ! spherelights
 * location=lights.lp ! fakesink
 * ]|
 *
 * Since: 0.2
 */
#include <gst/base/gstbasetransform.h>

#include "files/gstimagingfile.h"
#include "gstimagingaction.h"
#include "gstimagingframe.h"
#include "gstimagingndarray.h"
#include "gstimagingpicture.h"
#include "gstimagingpost.h"
#include "gstimagingsettings.h"

#include "imk/spherelights.h"

#define GST_TYPE_SPHERE_LIGHTS (gst_sphere_lights_get_type ())
G_DECLARE_FINAL_TYPE (
    GstSphereLights, gst_sphere_lights, GST, SPHERE_LIGHTS, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE (spherelights);

GST_DEBUG_CATEGORY_STATIC (spherelights_debug);
#define GST_CAT_DEFAULT spherelights_debug

/* The properties. */
typedef struct {
  GstImagingFile *location; /* only its name */
  GstImagingFile *mask;     /* GstImagingNdArray */
  ImkSphere sphere;
  gdouble threshold;
  gdouble gamma;
} Settings;

struct _GstSphereLights {
  GstBaseTransform parent;
  GstImagingSettings *settings;

  /* a set may be finished by any thread, at any time; not the stream lock,
   * under which a sink may wait */
  GMutex lock;
  GstImagingPicture picture;
  ImkSpherelights *kernel; /* NULL until the first picture of a set */
};

#define CAPS \
  GST_VIDEO_CAPS_MAKE ( \
      "{ GRAY8, GRAY16_LE, RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, " \
      "ARGB, ABGR, RGBA64_LE, ARGB64_LE }")

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (CAPS));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (CAPS));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstSphereLights, gst_sphere_lights,
    GST_TYPE_BASE_TRANSFORM,
    GST_DEBUG_CATEGORY_INIT (spherelights_debug, "spherelights", 0,
        "Lights from pictures of a mirror sphere"))
GST_ELEMENT_REGISTER_DEFINE (
    spherelights, "spherelights", GST_RANK_NONE, GST_TYPE_SPHERE_LIGHTS)

/* --- the set ------------------------------------------------------------- */

static ImkStatus
fit_mask (GstSphereLights *self, const GstImagingFile *file, ImkSphere *sphere,
    ImkError *error)
{
  const GstImagingPicture *p = &self->picture;
  const GstImagingNdArray *npy = file->data;
  ImkImage mask = imk_image_of_rows (
      (gpointer) npy->data, IMK_TYPE_U8, p->width, p->height);
  g_autofree gchar *name = NULL;

  if (npy->dims[0] == p->height && npy->dims[1] == p->width)
    return imk_spherelights_fit (&mask, sphere, error);
  name = gst_imaging_file_name (file->location);
  return imk_error_set (error, IMK_ERROR_FILE,
      "mask-location \"%s\" is [%" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT
      "]; it needs to be [%u, %u], as the pictures.",
      name, npy->dims[0], npy->dims[1], p->height, p->width);
}

/* With the settings in use. */
static ImkStatus
make_kernel (GstSphereLights *self, ImkError *error)
{
  const Settings *now = gst_imaging_settings_now (self->settings);
  const GstImagingPicture *p = &self->picture;
  ImkSpherelightsConfig config;
  ImkSpherelights *kernel = NULL;

  imk_spherelights_config_init (&config);
  config.sphere = now->sphere;
  config.threshold = now->threshold;
  config.gamma = now->gamma;
  config.width = p->width;
  config.height = p->height;
  config.type = p->type;
  config.channels = p->channels;
  for (guint i = 0; i < 3; i++)
    config.colours[i] = p->colours[i];
  if (now->mask)
    IMK_TRY (fit_mask (self, now->mask, &config.sphere, error));
  IMK_TRY (imk_spherelights_new (&config, &kernel, error));
  imk_spherelights_free (self->kernel);
  self->kernel = kernel;
  return IMK_OK;
}

/* Applies the properties before the first picture of a set. */
static ImkStatus
begin_set (GstSphereLights *self, GstBuffer *buffer, ImkError *error)
{
  ImkStatus status =
      gst_imaging_settings_update (self->settings, GST_IMAGING_WHEN_NEXT_SET,
          gst_imaging_settings_stream_time (
              GST_BASE_TRANSFORM_SINK_PAD (self), buffer),
          error);

  return status == IMK_OK && !self->kernel ? make_kernel (self, error) : status;
}

/* At the beginning of a set, before its first picture. */
static ImkStatus
gst_sphere_lights_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  return make_kernel (GST_SPHERE_LIGHTS (element), error);
}

static void
post_light (GstSphereLights *self, guint i, const ImkSpherelight *light)
{
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("spherelights-light", "index", G_TYPE_UINT, i, "x",
              G_TYPE_DOUBLE, light->direction[0], "y", G_TYPE_DOUBLE,
              light->direction[1], "z", G_TYPE_DOUBLE, light->direction[2],
              "highlight-x", G_TYPE_DOUBLE, light->x, "highlight-y",
              G_TYPE_DOUBLE, light->y, "pixels", G_TYPE_UINT, light->n_pixels,
              NULL)));
}

static void
post_sphere (GstSphereLights *self, guint n, const ImkSphere *sphere)
{
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("spherelights-sphere", "lights", G_TYPE_UINT, n,
              "centre-x", G_TYPE_DOUBLE, sphere->x, "centre-y", G_TYPE_DOUBLE,
              sphere->y, "radius", G_TYPE_DOUBLE, sphere->radius, NULL)));
}

/* Three highlights at one place are an error: a window. Two may be intended. */
static void
warn_of_twins (GstSphereLights *self, const ImkSpherelight *lights, guint n)
{
  for (guint i = 0; i < n; i++)
    for (guint k = i + 1; k < n; k++)
      if (imk_spherelights_is_same (&lights[i], &lights[k])) {
        GST_ELEMENT_WARNING (self, STREAM, FAILED,
            ("Pictures %u and %u, counted from 0, have the highlight at the same "
             "place, (%.1f, %.1f): did the lamp change between them?",
                i, k, lights[i].x, lights[i].y),
            (NULL));
        return;
      }
}

static ImkStatus
write_lights (const gchar *location, const ImkSpherelight *lights, guint n,
    ImkError *error)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GError) why = NULL;

  g_string_append_printf (text, "%u\n", n);
  for (guint i = 0; i < n; i++) {
    g_string_append_printf (text, "%03u", i);
    for (guint k = 0; k < 3; k++) {
      gchar number[G_ASCII_DTOSTR_BUF_SIZE];

      g_ascii_formatd (number, sizeof (number), "%.6f", lights[i].direction[k]);
      g_string_append_printf (text, " %s", number);
    }
    g_string_append_c (text, '\n');
  }
  return gst_imaging_file_save (location, text->str, text->len, &why)
             ? IMK_OK
             : imk_error_set (
                   error, IMK_ERROR_FILE, "location: %s", why->message);
}

/* Returns: (transfer full) (nullable): the set, and the next picture begins
 * another */
static ImkSpherelights *
take_set (GstSphereLights *self)
{
  GST_IMAGING_HOLD (&self->lock);
  return g_steal_pointer (&self->kernel);
}

static void
gst_sphere_lights_finish_set (GstSphereLights *self)
{
  ImkSpherelights *kernel = take_set (self);
  guint n = kernel ? imk_spherelights_n_added (kernel) : 0;
  g_autofree ImkSpherelight *lights = NULL;
  Settings *wanted = NULL;
  ImkSphere sphere;
  ImkStatus status;
  ImkError error;

  if (n == 0) {
    imk_spherelights_free (kernel);
    return;
  }
  lights = g_new0 (ImkSpherelight, n);
  status = imk_spherelights_finish (kernel, lights, &sphere, &error);
  imk_spherelights_free (kernel);
  if (status == IMK_OK) {
    post_sphere (self, n, &sphere);
    for (guint i = 0; i < n; i++)
      post_light (self, i, &lights[i]);
    warn_of_twins (self, lights, n);
    wanted = gst_imaging_settings_copy (self->settings); /* any thread */
    if (wanted->location)
      status = write_lights (wanted->location->location, lights, n, &error);
    gst_imaging_settings_free_copy (self->settings, wanted);
  }
  if (status != IMK_OK)
    gst_imaging_post_status (self, status, &error);
}

/* --- GstBaseTransform ----------------------------------------------------- */

static gboolean
gst_sphere_lights_set_caps (
    GstBaseTransform *trans, GstCaps *in_caps, GstCaps *out_caps)
{
  GstSphereLights *self = GST_SPHERE_LIGHTS (trans);
  ImkStatus status;
  ImkError error;

  gst_sphere_lights_finish_set (self);
  g_mutex_lock (&self->lock);
  status = gst_imaging_picture_from_caps (&self->picture, in_caps, &error);
  g_mutex_unlock (&self->lock);
  if (status == IMK_OK)
    return TRUE;
  gst_imaging_post_status (self, status, &error);
  return FALSE;
}

static ImkStatus
add_picture (GstSphereLights *self, GstBuffer *buffer, ImkError *error)
{
  GstImagingFrame frame;
  ImkImage image;
  ImkStatus status;

  IMK_TRY (gst_imaging_frame_map (buffer, &self->picture.carrier, GST_MAP_READ,
      GST_IMAGING_REACH_HOST, NULL, NULL, NULL, &frame, error));
  image = gst_imaging_picture_image (&self->picture, &frame.planes[0]);
  status = imk_spherelights_add (self->kernel, &image, error);
  gst_imaging_frame_unmap (&frame, TRUE, NULL);
  return status;
}

static GstFlowReturn
gst_sphere_lights_transform_ip (GstBaseTransform *trans, GstBuffer *buffer)
{
  GstSphereLights *self = GST_SPHERE_LIGHTS (trans);
  ImkStatus status = IMK_OK;
  ImkError error;

  g_mutex_lock (&self->lock);
  if (!self->kernel)
    status = begin_set (self, buffer, &error);
  if (status == IMK_OK)
    status = add_picture (self, buffer, &error);
  g_mutex_unlock (&self->lock);
  if (status == IMK_OK)
    return GST_FLOW_OK;
  gst_imaging_post_status (self, status, &error);
  return GST_FLOW_ERROR;
}

static gboolean
gst_sphere_lights_sink_event (GstBaseTransform *trans, GstEvent *event)
{
  GstSphereLights *self = GST_SPHERE_LIGHTS (trans);

  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS)
    gst_sphere_lights_finish_set (self);
  else if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP)
    imk_spherelights_free (take_set (self));
  return GST_BASE_TRANSFORM_CLASS (gst_sphere_lights_parent_class)
      ->sink_event (trans, event);
}

static gboolean
gst_sphere_lights_start (GstBaseTransform *trans)
{
  gst_imaging_settings_start (GST_SPHERE_LIGHTS (trans)->settings);
  return TRUE;
}

static gboolean
gst_sphere_lights_stop (GstBaseTransform *trans)
{
  imk_spherelights_free (take_set (GST_SPHERE_LIGHTS (trans)));
  return TRUE;
}

/* --- the properties ------------------------------------------------------ */

static gpointer
load_mask (const gchar *property, const gchar *location, ImkError *error)
{
  g_autoptr (GstImagingNdArray) npy =
      gst_imaging_setting_load_array (property, location, error);
  g_autofree gchar *what = NULL, *name = NULL;

  if (!npy)
    return NULL;
  if (npy->n_dims == 2 && (npy->type == GST_IMAGING_ND_ARRAY_TYPE_U8 ||
                              npy->type == GST_IMAGING_ND_ARRAY_TYPE_BOOL))
    return g_steal_pointer (&npy);
  what = gst_imaging_nd_array_describe (npy);
  name = gst_imaging_file_name (location);
  imk_error_set (error, IMK_ERROR_FILE,
      "%s \"%s\" is %s; it needs to be u8 or bool, [height, width].", property,
      name, what);
  return NULL;
}

static const GstImagingSetting settings[] = {
    GST_IMAGING_OUTPUT ("location", LIVE, 0, Settings, location,
        "Path of the .lp file to write: the number of lights, then lines of "
        "number, x, y, z. The vectors have length 1, x points to the right, y "
        "up, z to the camera. Without a path only messages are posted"),
    GST_IMAGING_PATH ("mask-location", NEXT_SET, 0, Settings, mask, load_mask,
        (GDestroyNotify) gst_imaging_nd_array_free,
        "Array file [height, width] of u8 or bool that is not 0 on the sphere. "
        "Its centre and radius are computed from it"),
    GST_IMAGING_DOUBLE ("centre-x", NEXT_SET, 0, Settings, sphere.x, 0, 65535,
        "px", "Column of the centre of the sphere, used if radius is not 0"),
    GST_IMAGING_DOUBLE ("centre-y", NEXT_SET, 0, Settings, sphere.y, 0, 65535,
        "px", "Row of the centre of the sphere, used if radius is not 0"),
    GST_IMAGING_DOUBLE ("radius", NEXT_SET, 0, Settings, sphere.radius, 0,
        65535, "px",
        "Radius of the sphere in pixels. 0 finds the sphere: all pixels "
        "brighter than a tenth of the brightest"),
    GST_IMAGING_DOUBLE ("threshold", NEXT_SET, 0, Settings, threshold, 0.01,
        0.99, NULL,
        "Share of the brightest value above which pixels belong to the "
        "highlight"),
    GST_IMAGING_DOUBLE ("gamma", NEXT_SET, 0, Settings, gamma, 0.1, 10, NULL,
        "Exponent that makes samples linear: (sample / full scale)^gamma. 2.2 "
        "for JPEG"),
};

static void
init_settings (gpointer data)
{
  ImkSpherelightsConfig defaults;
  Settings *s = data;

  imk_spherelights_config_init (&defaults);
  s->threshold = defaults.threshold;
  s->gamma = defaults.gamma;
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .timeless = TRUE,
    .init = init_settings,
    .apply = gst_sphere_lights_apply,
};

/* --- GObject ------------------------------------------------------------- */

static void
gst_sphere_lights_finalize (GObject *object)
{
  GstSphereLights *self = GST_SPHERE_LIGHTS (object);

  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gst_sphere_lights_parent_class)->finalize (object);
}

static const GstImagingAction actions[] = {
    /**
     * GstSphereLights::finish-set:
     *
     * Writes the lights of the pictures so far; the next picture begins another
     * set. Waits for the picture that is being worked on, and for the file.
     */
    {"finish-set", G_CALLBACK (gst_sphere_lights_finish_set), G_TYPE_NONE,
        {{NULL}}, {NULL},
        "Ends the set and writes its lights; the next picture starts "
        "another set"},
    {NULL},
};

static void
gst_sphere_lights_class_init (GstSphereLightsClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);

  object_class->finalize = gst_sphere_lights_finalize;
  gst_imaging_settings_install (object_class, &table);

  gst_imaging_actions_install (G_OBJECT_CLASS (klass), actions);

  gst_element_class_set_static_metadata (element_class,
      "Lights from a mirror sphere", "Filter/Analyzer/Video",
      "Directions of lights from pictures of a mirror sphere, as an .lp file",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  trans_class->set_caps = gst_sphere_lights_set_caps;
  trans_class->transform_ip = gst_sphere_lights_transform_ip;
  trans_class->transform_ip_on_passthrough = TRUE;
  trans_class->sink_event = gst_sphere_lights_sink_event;
  trans_class->start = gst_sphere_lights_start;
  trans_class->stop = gst_sphere_lights_stop;
}

static void
gst_sphere_lights_init (GstSphereLights *self)
{
  g_mutex_init (&self->lock);
  self->settings = gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (self), TRUE);
}
