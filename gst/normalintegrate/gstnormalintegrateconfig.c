/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstnormalintegrateconfig.h"

#include "gstimagingenum.h"

enum {
  PROP_0,
  /* those of the engine come first */
  PROP_METHOD = GST_IMAGING_ENGINE_N_PROPERTIES + 1,
  PROP_Y_AXIS,
  PROP_MM_PER_PIXEL,
  PROP_MAX_SLOPE,
  PROP_TOLERANCE,
  PROP_MAX_ITERATIONS,
  PROP_HEIGHT_RANGE,
};

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

gboolean
gst_normal_integrate_config_set (
    ImkNormalintegrateConfig *c, guint id, const GValue *value)
{
  switch (id) {
  case PROP_METHOD:
    c->method = g_value_get_enum (value);
    break;
  case PROP_Y_AXIS:
    c->y_down = g_value_get_enum (value);
    break;
  case PROP_MM_PER_PIXEL:
    c->mm_per_pixel = g_value_get_double (value);
    break;
  case PROP_MAX_SLOPE:
    c->max_slope = g_value_get_double (value);
    break;
  case PROP_TOLERANCE:
    c->tolerance = g_value_get_double (value);
    break;
  case PROP_MAX_ITERATIONS:
    c->max_iterations = g_value_get_uint (value);
    break;
  case PROP_HEIGHT_RANGE:
    c->grey_range = g_value_get_double (value);
    break;
  default:
    return FALSE;
  }
  return TRUE;
}

gboolean
gst_normal_integrate_config_get (
    const ImkNormalintegrateConfig *c, guint id, GValue *value)
{
  switch (id) {
  case PROP_METHOD:
    g_value_set_enum (value, c->method);
    break;
  case PROP_Y_AXIS:
    g_value_set_enum (value, c->y_down);
    break;
  case PROP_MM_PER_PIXEL:
    g_value_set_double (value, c->mm_per_pixel);
    break;
  case PROP_MAX_SLOPE:
    g_value_set_double (value, c->max_slope);
    break;
  case PROP_TOLERANCE:
    g_value_set_double (value, c->tolerance);
    break;
  case PROP_MAX_ITERATIONS:
    g_value_set_uint (value, c->max_iterations);
    break;
  case PROP_HEIGHT_RANGE:
    g_value_set_double (value, c->grey_range);
    break;
  default:
    return FALSE;
  }
  return TRUE;
}

static const GParamFlags live =
    G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

static void
install_number (GObjectClass *klass, guint id, const gchar *name,
    const gchar *blurb, gdouble least, gdouble most, gdouble default_value)
{
  g_object_class_install_property (klass, id,
      g_param_spec_double (
          name, name, blurb, least, most, default_value, live));
}

static void
install_enum (GObjectClass *klass, guint id, const gchar *name,
    const gchar *blurb, const gchar *type, const GEnumValue *values,
    gint default_value)
{
  g_object_class_install_property (klass, id,
      g_param_spec_enum (name, name, blurb,
          gst_imaging_enum_type (type, values), default_value, live));
}

void
gst_normal_integrate_install_config (GObjectClass *klass)
{
  ImkNormalintegrateConfig defaults;

  imk_normalintegrate_config_init (&defaults);
  install_enum (klass, PROP_METHOD, "method", "How slopes become heights",
      "GstNormalIntegrateMethod", method_values, defaults.method);
  install_enum (klass, PROP_Y_AXIS, "y-axis",
      "Where the y of the normals points", "GstNormalIntegrateYAxis",
      y_axis_values, defaults.y_down);
  install_number (klass, PROP_MM_PER_PIXEL, "mm-per-pixel",
      "Size of a pixel, which makes heights mm; with 1 they are pixels", 1e-9,
      1e6, defaults.mm_per_pixel);
  install_number (klass, PROP_MAX_SLOPE, "max-slope",
      "Tangent of the steepest normal that counts; steeper ones have no height",
      1e-3, 1e9, defaults.max_slope);
  install_number (klass, PROP_TOLERANCE, "tolerance",
      "Residual relative to the first at which the solution around pixels "
      "without normal is good enough; 0 makes max-iterations",
      0, 1, defaults.tolerance);
  g_object_class_install_property (klass, PROP_MAX_ITERATIONS,
      g_param_spec_uint ("max-iterations", "max-iterations",
          "Iterations of it at most; 5 to 10 are usual", 1, 10000,
          defaults.max_iterations, live));
  install_number (klass, PROP_HEIGHT_RANGE, "height-range",
      "mm from grey value 1, the lowest point, to 65535, beyond which heights "
      "are cut off; 0 for those of each map",
      0, 1e9, defaults.grey_range);
}
