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
 * gst-launch-1.0 multifilesrc location=chrome-%02d.png ! pngdec ! spherelights
 * location=lights.lp ! fakesink
 * ]|
 *
 * Since: 0.2
 */
#include "gstspherelights.h"

#include "files/gstimagingfile.h"
#include "gstimagingframe.h"
#include "gstimagingnpy.h"
#include "gstimagingpicture.h"

#include "spherelights/spherelights.h"

GST_DEBUG_CATEGORY_STATIC (spherelights_debug);
#define GST_CAT_DEFAULT spherelights_debug

enum {
  PROP_0,
  PROP_LOCATION,
  PROP_MASK_LOCATION,
  PROP_CENTRE_X,
  PROP_CENTRE_Y,
  PROP_RADIUS,
  PROP_THRESHOLD,
};

enum { SIGNAL_FINISH_SET, N_SIGNALS };

static guint signals[N_SIGNALS];

struct _GstSphereLights {
  GstBaseTransform parent;

  /* under the object lock */
  gchar *location, *mask_location;
  ImkSphere sphere;
  gdouble threshold;

  /* a set may be finished by any thread, at any time; not the stream lock,
   * under which a sink may wait */
  GMutex lock;
  GstImagingPicture picture;
  ImkSpherelights *kernel; /* NULL until the first picture of a set */
};

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
            "{ GRAY8, GRAY16_LE, RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, "
            "ARGB, ABGR, RGBA64_LE, ARGB64_LE }")));

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
            "{ GRAY8, GRAY16_LE, RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, "
            "ARGB, ABGR, RGBA64_LE, ARGB64_LE }")));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstSphereLights, gst_sphere_lights,
    GST_TYPE_BASE_TRANSFORM,
    GST_DEBUG_CATEGORY_INIT (spherelights_debug, "spherelights", 0,
        "Lights from pictures of a mirror sphere"))
GST_ELEMENT_REGISTER_DEFINE (
    spherelights, "spherelights", GST_RANK_NONE, GST_TYPE_SPHERE_LIGHTS)

static void
post_error (GstSphereLights *self, ImkStatus status, const ImkError *error)
{
  if (status == IMK_ERROR_CONFIG)
    GST_ELEMENT_ERROR (self, LIBRARY, SETTINGS, ("%s", error->message), (NULL));
  else if (status == IMK_ERROR_MEMORY)
    GST_ELEMENT_ERROR (
        self, RESOURCE, NO_SPACE_LEFT, ("%s", error->message), (NULL));
  else if (status == IMK_ERROR_FILE)
    GST_ELEMENT_ERROR (
        self, RESOURCE, OPEN_READ, ("%s", error->message), (NULL));
  else
    GST_ELEMENT_ERROR (self, STREAM, FAILED, ("%s", error->message), (NULL));
}

/* --- the set ------------------------------------------------------------- */

static ImkStatus
fit_mask (GstSphereLights *self, const gchar *location, ImkSphere *sphere,
    ImkError *error)
{
  const GstImagingPicture *p = &self->picture;
  GError *why = NULL;
  GstImagingNpy *npy = gst_imaging_npy_load (location, &why);
  ImkStatus status;

  if (!npy) {
    status = imk_error_set (
        error, IMK_ERROR_FILE, "mask-location: %s", why->message);
    g_clear_error (&why);
    return status;
  }
  if (npy->n_dims != 2 || npy->type != GST_IMAGING_NPY_TYPE_U8 ||
      npy->dims[0] != p->height || npy->dims[1] != p->width) {
    g_autofree gchar *what = gst_imaging_npy_describe (npy);

    status = imk_error_set (error, IMK_ERROR_FILE,
        "mask-location \"%s\" is %s; it needs to be u8, [%u, %u], as the "
        "pictures.",
        location, what, p->height, p->width);
  } else {
    ImkImage mask = {
        .data = (gpointer) npy->data,
        .stride = p->width,
        .width = p->width,
        .height = p->height,
        .channels = 1,
        .type = IMK_TYPE_U8,
    };

    status = imk_spherelights_fit (&mask, sphere, error);
  }
  gst_imaging_npy_free (npy);
  return status;
}

/* Before the first picture of a set. */
static ImkStatus
begin_set (GstSphereLights *self, ImkError *error)
{
  const GstImagingPicture *p = &self->picture;
  ImkSpherelightsConfig config;
  g_autofree gchar *mask_location = NULL;
  ImkStatus status = IMK_OK;

  imk_spherelights_config_init (&config);
  GST_OBJECT_LOCK (self);
  config.sphere = self->sphere;
  config.threshold = self->threshold;
  mask_location = g_strdup (self->mask_location);
  GST_OBJECT_UNLOCK (self);
  config.width = p->width;
  config.height = p->height;
  config.type = p->type;
  config.channels = p->channels;
  for (guint i = 0; i < 3; i++)
    config.colours[i] = p->colours[i];
  if (mask_location)
    status = fit_mask (self, mask_location, &config.sphere, error);
  return status == IMK_OK ? imk_spherelights_new (&config, &self->kernel, error)
                          : status;
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

static ImkStatus
write_lights (const gchar *location, const ImkSpherelight *lights, guint n,
    ImkError *error)
{
  GString *text = g_string_new (NULL);
  GError *why = NULL;
  ImkStatus status = IMK_OK;

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
  if (!gst_imaging_file_save (location, text->str, text->len, &why))
    status =
        imk_error_set (error, IMK_ERROR_FILE, "location: %s", why->message);
  g_clear_error (&why);
  g_string_free (text, TRUE);
  return status;
}

/* Returns: (transfer full) (nullable): the set, and the next picture begins
 * another */
static ImkSpherelights *
take_set (GstSphereLights *self)
{
  ImkSpherelights *kernel;

  g_mutex_lock (&self->lock);
  kernel = g_steal_pointer (&self->kernel);
  g_mutex_unlock (&self->lock);
  return kernel;
}

static void
gst_sphere_lights_finish_set (GstSphereLights *self)
{
  ImkSpherelights *kernel = take_set (self);
  guint n = kernel ? imk_spherelights_n_added (kernel) : 0;
  g_autofree ImkSpherelight *lights = NULL;
  g_autofree gchar *location = NULL;
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
    GST_OBJECT_LOCK (self);
    location = g_strdup (self->location);
    GST_OBJECT_UNLOCK (self);
    if (location)
      status = write_lights (location, lights, n, &error);
  }
  if (status != IMK_OK)
    post_error (self, status, &error);
}

/* --- GstBaseTransform ------------------------------------------------------
 */

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
  post_error (self, status, &error);
  return FALSE;
}

static ImkStatus
add_picture (GstSphereLights *self, GstBuffer *buffer, ImkError *error)
{
  GstImagingFrame frame;
  ImkImage image;
  ImkStatus status = gst_imaging_frame_map (buffer, &self->picture.carrier,
      GST_MAP_READ, GST_IMAGING_REACH_HOST, NULL, NULL, NULL, &frame, error);

  if (status != IMK_OK)
    return status;
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
    status = begin_set (self, &error);
  if (status == IMK_OK)
    status = add_picture (self, buffer, &error);
  g_mutex_unlock (&self->lock);
  if (status == IMK_OK)
    return GST_FLOW_OK;
  post_error (self, status, &error);
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
gst_sphere_lights_stop (GstBaseTransform *trans)
{
  imk_spherelights_free (take_set (GST_SPHERE_LIGHTS (trans)));
  return TRUE;
}

/* --- GObject ------------------------------------------------------------- */

/* Empty is none: gst-launch cannot write NULL. */
static void
take_location (gchar **location, const GValue *value)
{
  const gchar *text = g_value_get_string (value);

  g_free (*location);
  *location = text && *text ? g_strdup (text) : NULL;
}

static void
gst_sphere_lights_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstSphereLights *self = GST_SPHERE_LIGHTS (object);

  GST_OBJECT_LOCK (object);
  switch (id) {
  case PROP_LOCATION:
    take_location (&self->location, value);
    break;
  case PROP_MASK_LOCATION:
    take_location (&self->mask_location, value);
    break;
  case PROP_CENTRE_X:
    self->sphere.x = g_value_get_double (value);
    break;
  case PROP_CENTRE_Y:
    self->sphere.y = g_value_get_double (value);
    break;
  case PROP_RADIUS:
    self->sphere.radius = g_value_get_double (value);
    break;
  case PROP_THRESHOLD:
    self->threshold = g_value_get_double (value);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
  GST_OBJECT_UNLOCK (object);
}

static void
gst_sphere_lights_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstSphereLights *self = GST_SPHERE_LIGHTS (object);

  GST_OBJECT_LOCK (object);
  switch (id) {
  case PROP_LOCATION:
    g_value_set_string (value, self->location);
    break;
  case PROP_MASK_LOCATION:
    g_value_set_string (value, self->mask_location);
    break;
  case PROP_CENTRE_X:
    g_value_set_double (value, self->sphere.x);
    break;
  case PROP_CENTRE_Y:
    g_value_set_double (value, self->sphere.y);
    break;
  case PROP_RADIUS:
    g_value_set_double (value, self->sphere.radius);
    break;
  case PROP_THRESHOLD:
    g_value_set_double (value, self->threshold);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
  GST_OBJECT_UNLOCK (object);
}

static void
gst_sphere_lights_finalize (GObject *object)
{
  GstSphereLights *self = GST_SPHERE_LIGHTS (object);

  g_free (self->location);
  g_free (self->mask_location);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gst_sphere_lights_parent_class)->finalize (object);
}

static void
install_properties (GObjectClass *klass)
{
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  g_object_class_install_property (klass, PROP_LOCATION,
      g_param_spec_string ("location", "location",
          "Where the .lp file of the lights is written: their number, then a "
          "line of number x y z each, of length 1, x to the right, y up, z to "
          "the camera; without it there are messages only",
          NULL, flags));
  g_object_class_install_property (klass, PROP_MASK_LOCATION,
      g_param_spec_string ("mask-location", "mask-location",
          "A .npy file [height, width] of u8, not 0 on the sphere, which gives "
          "its middle and radius",
          NULL, flags));
  g_object_class_install_property (klass, PROP_CENTRE_X,
      g_param_spec_double ("centre-x", "centre-x",
          "Column of the sphere's middle, where radius is set", 0, 65535, 0,
          flags));
  g_object_class_install_property (klass, PROP_CENTRE_Y,
      g_param_spec_double ("centre-y", "centre-y", "Row of the sphere's middle",
          0, 65535, 0, flags));
  g_object_class_install_property (klass, PROP_RADIUS,
      g_param_spec_double ("radius", "radius",
          "Pixels from its middle to its rim; 0 finds the sphere, where it is "
          "all that is not dark: brighter than a tenth of the brightest",
          0, 65535, 0, flags));
  g_object_class_install_property (klass, PROP_THRESHOLD,
      g_param_spec_double ("threshold", "threshold",
          "The highlight is what is brighter than this part of the brightest "
          "point",
          0.01, 0.99, 0.8, flags));
}

static void
gst_sphere_lights_class_init (GstSphereLightsClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);

  object_class->set_property = gst_sphere_lights_set_property;
  object_class->get_property = gst_sphere_lights_get_property;
  object_class->finalize = gst_sphere_lights_finalize;
  install_properties (object_class);

  /**
   * GstSphereLights::finish-set:
   *
   * Writes the lights of the pictures so far; the next picture begins another
   * set. Waits for the picture that is being worked on, and for the file.
   */
  signals[SIGNAL_FINISH_SET] = g_signal_new_class_handler ("finish-set",
      G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION,
      G_CALLBACK (gst_sphere_lights_finish_set), NULL, NULL, NULL, G_TYPE_NONE,
      0);

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
  trans_class->stop = gst_sphere_lights_stop;
}

static void
gst_sphere_lights_init (GstSphereLights *self)
{
  ImkSpherelightsConfig defaults;

  g_mutex_init (&self->lock);
  imk_spherelights_config_init (&defaults);
  self->threshold = defaults.threshold;
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (self), TRUE);
}
