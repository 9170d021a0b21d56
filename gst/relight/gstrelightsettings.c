/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstrelightsettings.h"

typedef GstRelightSettings Settings;

static const GEnumValue y_axis_values[] = {
    {FALSE, "Up, as OpenGL has it", "up"},
    {TRUE, "Down, as DirectX has it", "down"},
    {0, NULL, NULL},
};

static const GstImagingSetting settings[] = {
    GST_IMAGING_DOUBLE ("azimuth", LIVE, 0, Settings, config.azimuth, -1e6, 1e6,
        "degrees",
        "Around the picture, where the light comes from: 0 the right, 90 above, "
        "180 the left"),
    GST_IMAGING_DOUBLE ("elevation", LIVE, 0, Settings, config.elevation, -90,
        90, "degrees",
        "Above the picture, where it comes from: 0 along it, 90 from the "
        "camera"),
    GST_IMAGING_DOUBLE ("ambient", LIVE, 0, Settings, config.ambient, 0, 1000,
        NULL, "Light from everywhere, times the albedo"),
    GST_IMAGING_DOUBLE ("diffuse", LIVE, 0, Settings, config.diffuse, 0, 1000,
        NULL,
        "Light from the lamp, times the albedo and the cosine of the angle"),
    GST_IMAGING_DOUBLE ("specular", LIVE, 0, Settings, config.specular, 0, 1000,
        NULL,
        "Strength of the highlight, max (0, n.h)^shininess with h halfway from "
        "the light to the camera; 0 for a matte surface"),
    GST_IMAGING_DOUBLE ("shininess", LIVE, 0, Settings, config.shininess, 0.1,
        10000, NULL,
        "Exponent of the highlight: 5 is satin, 30 varnish, 200 metal"),
    GST_IMAGING_DOUBLE ("gamma", LIVE, 0, Settings, config.gamma, 0.1, 10, NULL,
        "Samples are the light to the power 1 / gamma; 1 is linear, 2.2 what "
        "screens show"),
    GST_IMAGING_ENUM ("y-axis", LIVE, 0, Settings, y_down, "GstRelightYAxis",
        y_axis_values, "Where the y of the normals points"),
    GST_IMAGING_BOOLEAN ("mouse", LIVE, GST_IMAGING_NEUTRAL, Settings, mouse,
        "The mouse in a window downstream moves the light"),
};

static void
init_settings (gpointer data)
{
  Settings *s = data;

  imk_relight_config_init (&s->config);
  s->mouse = TRUE;
}

const GstImagingSettingsTable gst_relight_table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .has_engine = TRUE,
    .init = init_settings,
    .apply = gst_relight_apply,
};
