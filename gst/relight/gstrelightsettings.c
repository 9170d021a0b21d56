/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstrelight-private.h"

typedef GstRelightSettings Settings;

static const GEnumValue y_axis_values[] = {
    {FALSE, "Up, as OpenGL has it", "up"},
    {TRUE, "Down, as DirectX has it", "down"},
    {0, NULL, NULL},
};

static const GstImagingSetting settings[] = {
    GST_IMAGING_DOUBLE ("azimuth", LIVE, 0, Settings, config.azimuth, -1e6, 1e6,
        "degrees",
        "Direction of the light around the picture in degrees: 0 is the right, "
        "90 above, 180 the left"),
    GST_IMAGING_DOUBLE ("elevation", LIVE, 0, Settings, config.elevation, -90,
        90, "degrees",
        "Elevation of the light above the picture plane in degrees: 0 grazes "
        "the surface, 90 shines from the camera"),
    GST_IMAGING_DOUBLE ("ambient", LIVE, 0, Settings, config.ambient, 0, 1000,
        NULL,
        "Strength of the light from all directions, multiplied by the albedo"),
    GST_IMAGING_DOUBLE ("diffuse", LIVE, 0, Settings, config.diffuse, 0, 1000,
        NULL,
        "Strength of the light of the lamp, multiplied by the albedo and the "
        "cosine of the angle"),
    GST_IMAGING_DOUBLE ("specular", LIVE, 0, Settings, config.specular, 0, 1000,
        NULL,
        "Strength of the highlight, max (0, n.h)^shininess, h being halfway "
        "between light and camera. 0: a matte surface"),
    GST_IMAGING_DOUBLE ("shininess", LIVE, 0, Settings, config.shininess, 0.1,
        10000, NULL,
        "Exponent of the highlight: 5 looks like satin, 30 like varnish, 200 "
        "like metal"),
    GST_IMAGING_DOUBLE ("gamma", LIVE, 0, Settings, config.gamma, 0.1, 10, NULL,
        "Output samples are the light to the power of 1 / gamma: 1 is linear, "
        "2.2 is usual for screens"),
    GST_IMAGING_ENUM ("y-axis", LIVE, 0, Settings, y_down, "GstRelightYAxis",
        y_axis_values, "Direction of y in the normals"),
    GST_IMAGING_BOOLEAN ("mouse", LIVE, GST_IMAGING_NEUTRAL, Settings, mouse,
        "Move the light with the mouse in a window downstream"),
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
