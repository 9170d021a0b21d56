/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstnormalintegrateconfig.h"

#include "files/gstimagingfile.h"
#include "files/gstimagingfilenumber.h"

typedef GstNormalIntegrateSettings Settings;

static const GEnumValue method_values[] = {
    {IMK_NORMALINTEGRATE_POISSON,
        "Least squares of the slopes, with free borders, over pixels that have "
        "a normal",
        "poisson"},
    {IMK_NORMALINTEGRATE_FRANKOT_CHELLAPPA,
        "The nearest surface that is periodic; pixels without normal are flat",
        "frankot-chellappa"},
    {IMK_NORMALINTEGRATE_BILATERAL,
        "Least squares that cut the surface where its height jumps (Cao et al. "
        "2022), over pixels that have a normal",
        "bilateral"},
    {0, NULL, NULL},
};

static const GEnumValue flatten_values[] = {
    {IMK_NORMALINTEGRATE_FLATTEN_NONE, "Heights as they are", "none"},
    {IMK_NORMALINTEGRATE_FLATTEN_PLANE, "A plane is taken off", "plane"},
    {IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC,
        "A surface of 1, x, y, x^2, x y, y^2 is taken off", "quadratic"},
    {IMK_NORMALINTEGRATE_FLATTEN_RADIAL,
        "A surface of 1, x, y, r^2, r^4 is taken off, r from the middle",
        "radial"},
    {0, NULL, NULL},
};

static const GEnumValue y_axis_values[] = {
    {FALSE, "Up, as OpenGL has it", "up"},
    {TRUE, "Down, as DirectX has it", "down"},
    {0, NULL, NULL},
};

ImkStatus
gst_normal_integrate_mesh_format (
    const gchar *location, ImkMeshFormat *format, ImkError *error)
{
  static const struct {
    const gchar *extension;
    ImkMeshFormat format;
  } formats[] = {
      {".ply", IMK_MESH_PLY}, {".obj", IMK_MESH_OBJ}, {".glb", IMK_MESH_GLB}};
  g_autofree gchar *lower = g_ascii_strdown (location, -1);
  g_autofree gchar *name = NULL;
  g_autoptr (GError) why = NULL;
  GstImagingFileNumber number;

  if (!gst_imaging_file_number_find (&number, location, &why))
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "mesh-location: %s", why->message);
  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    if (g_str_has_suffix (lower, formats[i].extension)) {
      *format = formats[i].format;
      return IMK_OK;
    }
  name = gst_imaging_file_name (location);
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "mesh-location \"%s\" has no extension of a mesh. Use .glb, .obj or .ply.",
      name);
}

static const GstImagingSetting settings[] = {
    GST_IMAGING_ENUM ("method", LIVE, 0, Settings, config.method,
        "GstNormalIntegrateMethod", method_values,
        "Method that computes heights from the slopes"),
    GST_IMAGING_DOUBLE ("stiffness", LIVE, 0, Settings, config.stiffness, 0,
        1e6, NULL,
        "With method=bilateral, k of the weight 1 / (1 + exp (k (a^2 - b^2))) "
        "of the equation to one side of a pixel; a and b are the steps to that "
        "side and to the other, times n_z. 0: no cuts"),
    GST_IMAGING_ENUM ("y-axis", LIVE, 0, Settings, y_down,
        "GstNormalIntegrateYAxis", y_axis_values,
        "Direction of y in the normals"),
    GST_IMAGING_DOUBLE ("mm-per-pixel", LIVE, 0, Settings, mm_per_pixel, 0, 1e6,
        "mm",
        "Width of a pixel in mm, which gives heights in mm. With 0 it is that "
        "of the axes that normals bring in m, mm or um; without them heights "
        "are in pixels. The height of a pixel is this value divided by the "
        "pixel-aspect-ratio of the caps"),
    GST_IMAGING_DOUBLE ("focal-length-mm", LIVE, 0, Settings, focal_length_mm,
        0, 1e6, "mm",
        "Focal length of the lens, whose axis is in the middle of the map. It "
        "needs sensor-width-mm; mm-per-pixel then holds at the lowest point. "
        "0: all views are parallel"),
    GST_IMAGING_DOUBLE ("sensor-width-mm", LIVE, 0, Settings, sensor_width_mm,
        0, 1e6, "mm",
        "Width of the part of the sensor that the map shows, for "
        "focal-length-mm"),
    GST_IMAGING_ENUM ("flatten", LIVE, 0, Settings, config.flatten,
        "GstNormalIntegrateFlatten", flatten_values,
        "Surface that is fitted to the heights and taken off them, by robust "
        "least squares: what does not fit has little or no weight"),
    GST_IMAGING_ARRAY ("known-points", LIVE, 0, Settings, known_points, -1e9,
        1e9, NULL,
        "Points of known height, to which the heights are moved: x, y, height "
        "of each, in pixels from the upper left one, and in mm (in the unit of "
        "the heights). 1 or 2 set an offset, 3 to 5 a plane, 6 to 64 a "
        "quadratic surface, by least squares after flatten"),
    GST_IMAGING_PATH ("points-location", LIVE, 0, Settings, points_location,
        gst_normal_integrate_points_load, g_free,
        "Path of a text file with a row of x, y and height for each point, "
        "instead of known-points"),
    GST_IMAGING_DOUBLE ("max-slope", LIVE, 0, Settings, config.max_slope, 1e-3,
        1e9, NULL,
        "Tangent of the steepest normal that is used. Steeper pixels get no "
        "height"),
    GST_IMAGING_DOUBLE ("tolerance", LIVE, 0, Settings, config.tolerance, 0, 1,
        NULL,
        "Residual, relative to the first, at which the iterations around "
        "pixels without a normal end. With method=bilateral, the change of the "
        "energy from one round to the next. Values below 1e-6, the rounding of "
        "float32, act as 1e-6"),
    GST_IMAGING_UINT ("max-iterations", LIVE, 0, Settings,
        config.max_iterations, 1, 10000, NULL,
        "Largest number of iterations around pixels without a normal; 5 to 10 "
        "are usual. With method=bilateral, of rounds; 10 to 60 are usual"),
    GST_IMAGING_DOUBLE ("height-range", LIVE, 0, Settings, config.grey_range, 0,
        1e9, "mm",
        "Height of grey value 65535 above the lowest point, which has grey "
        "value 1, in the unit of the heights. Higher points are clipped. 0: "
        "the highest point of each map"),
    GST_IMAGING_OUTPUT ("mesh-location", LIVE, 0, Settings, mesh_location,
        "Path of the mesh to write for each map: .glb, .obj or .ply. %d or "
        "%05d in it is the number of the map, from 0; without it each map "
        "replaces the last one"),
    GST_IMAGING_UINT ("mesh-step", LIVE, 0, Settings, mesh_step, 0, 65535,
        "pixels",
        "Step in columns and rows between vertices of the mesh. 0: the "
        "smallest step with at most 4194304 vertices"),
};

ImkStatus
gst_normal_integrate_check_settings (const Settings *s, ImkError *error)
{
  guint n = s->known_points ? s->known_points->n : 0;

  if (s->focal_length_mm > 0 && !(s->sensor_width_mm > 0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "focal-length-mm is %g and sensor-width-mm is 0. Set sensor-width-mm "
        "to the width of the sensor that the map shows.",
        s->focal_length_mm);
  if (n % 3 != 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "known-points has %u numbers; it takes three for each point: x, y, "
        "height.",
        n);
  if (n > 0 && s->points_location)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "known-points and points-location are both set. Clear one of them.");
  return IMK_OK;
}

void
gst_normal_integrate_complete (
    const Settings *s, ImkNormalintegrateConfig *config)
{
  const GstNormalIntegratePoints *file =
      gst_imaging_setting_file_data (s->points_location);

  G_STATIC_ASSERT (sizeof (ImkNormalintegratePoint) == 3 * sizeof (gdouble));
  config->y_down = s->y_down;
  if (s->mm_per_pixel > 0)
    config->mm_per_pixel = s->mm_per_pixel;
  config->focal_pixels =
      s->sensor_width_mm > 0
          ? s->focal_length_mm / s->sensor_width_mm * config->width
          : 0;
  if (file) {
    config->points = file->points;
    config->n_points = file->n;
  } else if (s->known_points) {
    config->points = (const ImkNormalintegratePoint *) s->known_points->values;
    config->n_points = s->known_points->n / 3;
  }
}

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
