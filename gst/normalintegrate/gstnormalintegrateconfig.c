/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstnormalintegrateconfig.h"

typedef GstNormalIntegrateSettings Settings;

static const GEnumValue method_values[] = {
    {IMK_NORMALINTEGRATE_POISSON,
        "Least squares of the slopes, with free borders, over pixels that have "
        "a normal",
        "poisson"},
    {IMK_NORMALINTEGRATE_FRANKOT_CHELLAPPA,
        "The nearest surface that is periodic; pixels without normal are flat",
        "frankot-chellappa"},
    {0, NULL, NULL},
};

static const GEnumValue y_axis_values[] = {
    {FALSE, "Up, as OpenGL has it", "up"},
    {TRUE, "Down, as DirectX has it", "down"},
    {0, NULL, NULL},
};

static const GstImagingSetting settings[] = {
    GST_IMAGING_ENUM ("method", LIVE, 0, Settings, config.method,
        "GstNormalIntegrateMethod", method_values, "How slopes become heights"),
    GST_IMAGING_ENUM ("y-axis", LIVE, 0, Settings, y_down,
        "GstNormalIntegrateYAxis", y_axis_values,
        "Where the y of the normals points"),
    GST_IMAGING_DOUBLE ("mm-per-pixel", LIVE, 0, Settings, config.mm_per_pixel,
        1e-9, 1e6, "mm",
        "Width of a pixel, which makes heights mm; with 1 they are pixels. Its "
        "height is that divided by the pixel-aspect-ratio of the caps"),
    GST_IMAGING_DOUBLE ("max-slope", LIVE, 0, Settings, config.max_slope, 1e-3,
        1e9, NULL,
        "Tangent of the steepest normal that counts; steeper ones have no "
        "height"),
    GST_IMAGING_DOUBLE ("tolerance", LIVE, 0, Settings, config.tolerance, 0, 1,
        NULL,
        "Residual relative to the first at which the solution around pixels "
        "without normal is good enough; below 1e-6 it counts as 1e-6, the "
        "rounding of float32"),
    GST_IMAGING_UINT ("max-iterations", LIVE, 0, Settings,
        config.max_iterations, 1, 10000, NULL,
        "Largest number of iterations of that solution; 5 to 10 are usual"),
    GST_IMAGING_DOUBLE ("height-range", LIVE, 0, Settings, config.grey_range, 0,
        1e9, "mm",
        "Height of grey value 65535 above the lowest point, which is grey "
        "value 1; higher points are cut off; 0 for the highest point of each "
        "map"),
};

static void
init_settings (gpointer data)
{
  Settings *s = data;

  imk_normalintegrate_config_init (&s->config);
}

const GstImagingSettingsTable gst_normal_integrate_table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .has_engine = TRUE,
    .init = init_settings,
    .apply = gst_normal_integrate_apply,
};
