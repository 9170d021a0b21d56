/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstrelightsettings.h"

#include "gstimagingenum.h"

#define DEFAULT_PROP_MOUSE TRUE

enum {
  PROP_0,
  /* those of the engine come first */
  PROP_AZIMUTH = GST_IMAGING_ENGINE_N_PROPERTIES + 1,
  PROP_ELEVATION,
  PROP_AMBIENT,
  PROP_DIFFUSE,
  PROP_SPECULAR,
  PROP_SHININESS,
  PROP_GAMMA,
  PROP_Y_AXIS,
  PROP_MOUSE,
};

static const GEnumValue y_axis_values[] = {
    {FALSE, "Up, as OpenGL has it", "up"},
    {TRUE, "Down, as DirectX has it", "down"},
    {0, NULL, NULL},
};

void
gst_relight_settings_init (GstRelightSettings *self)
{
  imk_relight_config_init (&self->config);
  self->mouse = DEFAULT_PROP_MOUSE;
}

/* The numbers of the config. Returns: NULL when @id is none of them */
static gdouble *
number_of (ImkRelightConfig *c, guint id)
{
  switch (id) {
  case PROP_AZIMUTH:
    return &c->azimuth;
  case PROP_ELEVATION:
    return &c->elevation;
  case PROP_AMBIENT:
    return &c->ambient;
  case PROP_DIFFUSE:
    return &c->diffuse;
  case PROP_SPECULAR:
    return &c->specular;
  case PROP_SHININESS:
    return &c->shininess;
  case PROP_GAMMA:
    return &c->gamma;
  default:
    return NULL;
  }
}

gboolean
gst_relight_settings_set (
    GstRelightSettings *self, guint id, const GValue *value)
{
  if (number_of (&self->config, id))
    *number_of (&self->config, id) = g_value_get_double (value);
  else if (id == PROP_Y_AXIS)
    self->config.y_down = g_value_get_enum (value);
  else if (id == PROP_MOUSE)
    self->mouse = g_value_get_boolean (value);
  else
    return FALSE;
  return TRUE;
}

gboolean
gst_relight_settings_get (
    const GstRelightSettings *self, guint id, GValue *value)
{
  ImkRelightConfig config = self->config;

  if (number_of (&config, id))
    g_value_set_double (value, *number_of (&config, id));
  else if (id == PROP_Y_AXIS)
    g_value_set_enum (value, self->config.y_down);
  else if (id == PROP_MOUSE)
    g_value_set_boolean (value, self->mouse);
  else
    return FALSE;
  return TRUE;
}

static const GParamFlags live =
    G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

static void
install_number (GObjectClass *klass, guint id, const gchar *name,
    const gchar *blurb, gdouble least, gdouble most, gdouble default_value)
{
  g_object_class_install_property (klass, id,
      g_param_spec_double (name, name, blurb, least, most, default_value,
          live | GST_PARAM_CONTROLLABLE));
}

void
gst_relight_settings_install (GObjectClass *klass)
{
  ImkRelightConfig d;

  imk_relight_config_init (&d);
  install_number (klass, PROP_AZIMUTH, "azimuth",
      "Degrees around the picture that the light comes from: 0 the right, 90 "
      "above, 180 the left",
      -1e6, 1e6, d.azimuth);
  install_number (klass, PROP_ELEVATION, "elevation",
      "Degrees above the picture that it comes from: 0 along it, 90 from the "
      "camera",
      -90, 90, d.elevation);
  install_number (klass, PROP_AMBIENT, "ambient",
      "Light from everywhere, times the albedo", 0, 1000, d.ambient);
  install_number (klass, PROP_DIFFUSE, "diffuse",
      "Light from the lamp, times the albedo and the cosine of the angle", 0,
      1000, d.diffuse);
  install_number (klass, PROP_SPECULAR, "specular",
      "Strength of the highlight, max (0, n.h)^shininess with h halfway from "
      "the light to the camera; 0 for a matte surface",
      0, 1000, d.specular);
  install_number (klass, PROP_SHININESS, "shininess",
      "Exponent of the highlight: 5 is satin, 30 varnish, 200 metal", 0.1,
      10000, d.shininess);
  install_number (klass, PROP_GAMMA, "gamma",
      "Samples are the light to the power 1 / gamma; 1 is linear, 2.2 what "
      "screens show",
      0.1, 10, d.gamma);
  g_object_class_install_property (klass, PROP_Y_AXIS,
      g_param_spec_enum ("y-axis", "y-axis",
          "Where the y of the normals points",
          gst_imaging_enum_type ("GstRelightYAxis", y_axis_values), d.y_down,
          live));
  g_object_class_install_property (klass, PROP_MOUSE,
      g_param_spec_boolean ("mouse", "mouse",
          "The mouse in a window downstream moves the light",
          DEFAULT_PROP_MOUSE, live));
}
