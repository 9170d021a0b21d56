/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarxcorrsettings.h"

#include "gstimagingengine.h"
#include "insarxcorr/insarxcorr-fit.h"

#define DEFAULT_PROP_NX 16
#define DEFAULT_PROP_NY 32
#define DEFAULT_PROP_GRID IMK_INSARXCORR_GRID_GMTSAR
#define DEFAULT_PROP_STEP_X 32
#define DEFAULT_PROP_STEP_Y 32
#define DEFAULT_PROP_XSEARCH 64
#define DEFAULT_PROP_YSEARCH 64
#define DEFAULT_PROP_WINDOW_WIDTH 0
#define DEFAULT_PROP_WINDOW_HEIGHT 0
#define DEFAULT_PROP_RANGE_INTERP 2
#define DEFAULT_PROP_AZIMUTH_INTERP 2
#define DEFAULT_PROP_INTERP 16
#define DEFAULT_PROP_MODE IMK_INSARXCORR_COMPAT
#define DEFAULT_PROP_METHOD IMK_INSARXCORR_FREQ
#define DEFAULT_PROP_USE_SHIFT TRUE
#define DEFAULT_PROP_MIN_VALID 0.5
#define DEFAULT_PROP_MEMORY_LIMIT 0
#define DEFAULT_PROP_FIT_RANGE 3
#define DEFAULT_PROP_FIT_AZIMUTH 3
/* GMTSAR's 18, but not one that somebody sets: with mode=precise the default is
 * what is significant */
#define DEFAULT_PROP_FIT_SNR (18.0 + 1e-9)

enum {
  PROP_NX = GST_IMAGING_ENGINE_N_PROPERTIES + 1,
  PROP_NY,
  PROP_GRID,
  PROP_STEP_X,
  PROP_STEP_Y,
  PROP_XSEARCH,
  PROP_YSEARCH,
  PROP_WINDOW_WIDTH,
  PROP_WINDOW_HEIGHT,
  PROP_RANGE_INTERP,
  PROP_AZIMUTH_INTERP,
  PROP_INTERP,
  PROP_MODE,
  PROP_METHOD,
  PROP_USE_SHIFT,
  PROP_MASK_LOCATION,
  PROP_GROSS_OFFSETS_LOCATION,
  PROP_MIN_VALID,
  PROP_MEMORY_LIMIT,
  PROP_CUDA_DEVICES,
  PROP_FIT_RANGE,
  PROP_FIT_AZIMUTH,
  PROP_FIT_SNR,
};

/* --- enumerations -------------------------------------------------------- */

static GType
grid_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
      {IMK_INSARXCORR_GRID_GMTSAR, "Whole steps, which end early", "gmtsar"},
      {IMK_INSARXCORR_GRID_EVEN, "Over the whole reference", "even"},
      {IMK_INSARXCORR_GRID_STEP, "Steps of step-x and step-y", "step"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (
        &type, g_enum_register_static ("GstInsarXcorrGrid", values));
  return type;
}

static GType
mode_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
      {IMK_INSARXCORR_COMPAT, "GMTSAR's numbers", "compat"},
      {IMK_INSARXCORR_PRECISE, "Both axes oversampled, normalised", "precise"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (
        &type, g_enum_register_static ("GstInsarXcorrMode", values));
  return type;
}

static GType
method_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
      {IMK_INSARXCORR_FREQ, "Plain correlation, by FFT", "freq"},
      {IMK_INSARXCORR_TIME, "Normalised correlation", "time"},
      {IMK_INSARXCORR_TIME4, "Normalised correlation of squares", "time4"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (
        &type, g_enum_register_static ("GstInsarXcorrMethod", values));
  return type;
}

/* --- the settings ----------------------------------------------------------
 */

void
gst_insar_settings_init (GstInsarSettings *self)
{
  ImkInsarxcorrConfig *c = &self->config;

  *self = (GstInsarSettings){
      .use_shift = DEFAULT_PROP_USE_SHIFT,
      .fit_range = DEFAULT_PROP_FIT_RANGE,
      .fit_azimuth = DEFAULT_PROP_FIT_AZIMUTH,
  };
  imk_insarxcorr_config_init (c);
  c->nx = DEFAULT_PROP_NX;
  c->ny = DEFAULT_PROP_NY;
  c->grid = DEFAULT_PROP_GRID;
  c->step_x = DEFAULT_PROP_STEP_X;
  c->step_y = DEFAULT_PROP_STEP_Y;
  c->xsearch = DEFAULT_PROP_XSEARCH;
  c->ysearch = DEFAULT_PROP_YSEARCH;
  c->window_width = DEFAULT_PROP_WINDOW_WIDTH;
  c->window_height = DEFAULT_PROP_WINDOW_HEIGHT;
  c->range_interp = DEFAULT_PROP_RANGE_INTERP;
  c->azimuth_interp = DEFAULT_PROP_AZIMUTH_INTERP;
  c->interp = DEFAULT_PROP_INTERP;
  c->mode = DEFAULT_PROP_MODE;
  c->method = DEFAULT_PROP_METHOD;
  c->min_valid = DEFAULT_PROP_MIN_VALID;
  c->min_correlation = DEFAULT_PROP_FIT_SNR;
  c->memory_limit = DEFAULT_PROP_MEMORY_LIMIT;
}

void
gst_insar_settings_clear (GstInsarSettings *self)
{
  g_clear_pointer (&self->mask_location, g_free);
  g_clear_pointer (&self->gross_offsets_location, g_free);
  g_clear_pointer (&self->cuda_devices, g_free);
}

GstInsarSettings
gst_insar_settings_copy (const GstInsarSettings *self)
{
  GstInsarSettings copy = *self;

  copy.mask_location = g_strdup (self->mask_location);
  copy.gross_offsets_location = g_strdup (self->gross_offsets_location);
  copy.cuda_devices = g_strdup (self->cuda_devices);
  return copy;
}

gdouble
gst_insar_settings_min_correlation (const GstInsarSettings *self)
{
  const ImkInsarxcorrConfig *c = &self->config;

  return c->mode == IMK_INSARXCORR_PRECISE &&
                 c->min_correlation == DEFAULT_PROP_FIT_SNR
             ? IMK_INSARXCORR_SIGNIFICANT
             : c->min_correlation;
}

void
gst_insar_settings_take_devices (GstInsarSettings *self, const GArray *others)
{
  ImkInsarxcorrConfig *c = &self->config;

  c->n_devices = MIN (others->len, G_N_ELEMENTS (c->devices));
  for (guint i = 0; i < c->n_devices; i++)
    c->devices[i] = g_array_index (others, gint, i);
}

/* --- setting and getting -----------------------------------------------------
 */

/* An unsigned number of the config, or NULL. */
static guint32 *
number_of (GstInsarSettings *self, guint id)
{
  ImkInsarxcorrConfig *c = &self->config;

  switch (id) {
  case PROP_NX:
    return &c->nx;
  case PROP_NY:
    return &c->ny;
  case PROP_STEP_X:
    return &c->step_x;
  case PROP_STEP_Y:
    return &c->step_y;
  case PROP_XSEARCH:
    return &c->xsearch;
  case PROP_YSEARCH:
    return &c->ysearch;
  case PROP_WINDOW_WIDTH:
    return &c->window_width;
  case PROP_WINDOW_HEIGHT:
    return &c->window_height;
  case PROP_RANGE_INTERP:
    return &c->range_interp;
  case PROP_AZIMUTH_INTERP:
    return &c->azimuth_interp;
  case PROP_INTERP:
    return &c->interp;
  default:
    return NULL;
  }
}

static gchar **
text_of (GstInsarSettings *self, guint id)
{
  switch (id) {
  case PROP_MASK_LOCATION:
    return &self->mask_location;
  case PROP_GROSS_OFFSETS_LOCATION:
    return &self->gross_offsets_location;
  case PROP_CUDA_DEVICES:
    return &self->cuda_devices;
  default:
    return NULL;
  }
}

gboolean
gst_insar_settings_set (GstInsarSettings *self, guint id, const GValue *value)
{
  ImkInsarxcorrConfig *c = &self->config;
  guint32 *number = number_of (self, id);
  gchar **text = text_of (self, id);

  if (number) {
    *number = g_value_get_uint (value);
    return TRUE;
  }
  if (text) {
    g_free (*text);
    *text = g_value_dup_string (value);
    if (*text && !**text) /* no file, no list */
      g_clear_pointer (text, g_free);
    return TRUE;
  }
  switch (id) {
  case PROP_GRID:
    c->grid = g_value_get_enum (value);
    return TRUE;
  case PROP_MODE:
    c->mode = g_value_get_enum (value);
    return TRUE;
  case PROP_METHOD:
    c->method = g_value_get_enum (value);
    return TRUE;
  case PROP_USE_SHIFT:
    self->use_shift = g_value_get_boolean (value);
    return TRUE;
  case PROP_MIN_VALID:
    c->min_valid = g_value_get_double (value);
    return TRUE;
  case PROP_MEMORY_LIMIT:
    c->memory_limit = g_value_get_uint64 (value);
    return TRUE;
  case PROP_FIT_RANGE:
    self->fit_range = g_value_get_int (value);
    return TRUE;
  case PROP_FIT_AZIMUTH:
    self->fit_azimuth = g_value_get_int (value);
    return TRUE;
  case PROP_FIT_SNR:
    c->min_correlation = g_value_get_double (value);
    return TRUE;
  default:
    return FALSE;
  }
}

gboolean
gst_insar_settings_get (const GstInsarSettings *self, guint id, GValue *value)
{
  const ImkInsarxcorrConfig *c = &self->config;
  /* they are only read */
  guint32 *number = number_of ((GstInsarSettings *) self, id);
  gchar **text = text_of ((GstInsarSettings *) self, id);

  if (number) {
    g_value_set_uint (value, *number);
    return TRUE;
  }
  if (text) {
    g_value_set_string (value, *text);
    return TRUE;
  }
  switch (id) {
  case PROP_GRID:
    g_value_set_enum (value, c->grid);
    return TRUE;
  case PROP_MODE:
    g_value_set_enum (value, c->mode);
    return TRUE;
  case PROP_METHOD:
    g_value_set_enum (value, c->method);
    return TRUE;
  case PROP_USE_SHIFT:
    g_value_set_boolean (value, self->use_shift);
    return TRUE;
  case PROP_MIN_VALID:
    g_value_set_double (value, c->min_valid);
    return TRUE;
  case PROP_MEMORY_LIMIT:
    g_value_set_uint64 (value, c->memory_limit);
    return TRUE;
  case PROP_FIT_RANGE:
    g_value_set_int (value, self->fit_range);
    return TRUE;
  case PROP_FIT_AZIMUTH:
    g_value_set_int (value, self->fit_azimuth);
    return TRUE;
  case PROP_FIT_SNR:
    g_value_set_double (value, c->min_correlation);
    return TRUE;
  default:
    return FALSE;
  }
}

/* --- what they are -----------------------------------------------------------
 */

static void
install_grid (GObjectClass *klass, GParamFlags flags)
{
  g_object_class_install_property (klass, PROP_NX,
      g_param_spec_uint ("nx", "Patches in range",
          "Patches a row. With patches of P columns, their centres are at x = "
          "P + i X / (nx + 3), i = 2..nx + 1, X = width - 3 P / 2",
          1, 1000000, DEFAULT_PROP_NX, flags));
  g_object_class_install_property (klass, PROP_NY,
      g_param_spec_uint ("ny", "Patches in azimuth",
          "Rows of patches. With patches of Q lines, their centres are at y = "
          "Q + j Y / (ny + 1), j = 1..ny, Y = height - 3 Q / 2",
          1, 1000000, DEFAULT_PROP_NY, flags));
  g_object_class_install_property (klass, PROP_GRID,
      g_param_spec_enum ("grid", "Grid",
          "gmtsar: the steps X / (nx + 3) and Y / (ny + 1) are cut to whole "
          "numbers, so that dense grids end before the image; even: they are "
          "not; step: patches are step-x and step-y apart from corner to "
          "corner of the reference, and nx and ny follow",
          grid_get_type (), DEFAULT_PROP_GRID, flags));
  g_object_class_install_property (klass, PROP_STEP_X,
      g_param_spec_uint ("step-x", "Step in range",
          "grid=step: columns from one patch to the next", 1, 1 << 24,
          DEFAULT_PROP_STEP_X, flags));
  g_object_class_install_property (klass, PROP_STEP_Y,
      g_param_spec_uint ("step-y", "Step in azimuth",
          "grid=step: lines from one row of patches to the next", 1, 1 << 30,
          DEFAULT_PROP_STEP_Y, flags));
  g_object_class_install_property (klass, PROP_XSEARCH,
      g_param_spec_uint ("xsearch", "Search in range",
          "Columns that are searched either way. mode=compat: finer ones, see "
          "range-interp; a patch is 4 of it wide, the template 2",
          4, 1024, DEFAULT_PROP_XSEARCH, flags));
  g_object_class_install_property (klass, PROP_YSEARCH,
      g_param_spec_uint ("ysearch", "Search in azimuth",
          "Lines that are searched either way. mode=compat: a patch is 4 of "
          "it high, the template 2",
          4, 1024, DEFAULT_PROP_YSEARCH, flags));
  g_object_class_install_property (klass, PROP_WINDOW_WIDTH,
      g_param_spec_uint ("window-width", "Window in range",
          "mode=precise: columns of the template, from 8 on; 0 for 2 xsearch",
          0, 2048, DEFAULT_PROP_WINDOW_WIDTH, flags));
  g_object_class_install_property (klass, PROP_WINDOW_HEIGHT,
      g_param_spec_uint ("window-height", "Window in azimuth",
          "mode=precise: lines of the template, from 8 on; 0 for 2 ysearch", 0,
          2048, DEFAULT_PROP_WINDOW_HEIGHT, flags));
}

static void
install_method (GObjectClass *klass, GParamFlags flags)
{
  g_object_class_install_property (klass, PROP_MODE,
      g_param_spec_enum ("mode", "Mode",
          "compat: what GMTSAR's xcorr measures, to the printed decimal; "
          "precise: the carrier is taken away and both axes become finer "
          "before detection, the correlation is normalised, and the peak is not "
          "bound to its steps: errors of a fifth to three quarters",
          mode_get_type (), DEFAULT_PROP_MODE, flags));
  g_object_class_install_property (klass, PROP_RANGE_INTERP,
      g_param_spec_uint ("range-interp", "Range interpolation",
          "Finer columns a column, by FFT, before the amplitude is taken; 1 for "
          "none",
          1, 16, DEFAULT_PROP_RANGE_INTERP, flags));
  g_object_class_install_property (klass, PROP_AZIMUTH_INTERP,
      g_param_spec_uint ("azimuth-interp", "Azimuth interpolation",
          "mode=precise: finer lines a line; 1 for none", 1, 4,
          DEFAULT_PROP_AZIMUTH_INTERP, flags));
  g_object_class_install_property (klass, PROP_INTERP,
      g_param_spec_uint ("interp", "Interpolation of the peak",
          "Steps a sample in which the peak of the correlation is found. "
          "mode=compat: offsets are multiples of 1 / (range-interp interp) "
          "columns and 1 / interp lines; 1 for none",
          1, 64, DEFAULT_PROP_INTERP, flags));
  g_object_class_install_property (klass, PROP_METHOD,
      g_param_spec_enum ("method", "Method",
          "mode=compat: what is largest at the offset: freq: the plain "
          "correlation; time: the normalised one, as GMTSAR's -time; time4: of "
          "squares, as -time4. The last two take xsearch ysearch times as long",
          method_get_type (), DEFAULT_PROP_METHOD, flags));
  g_object_class_install_property (klass, PROP_USE_SHIFT,
      g_param_spec_boolean ("use-shift", "Use shift",
          "Whether the search begins at the rshift and ashift of the secondary",
          DEFAULT_PROP_USE_SHIFT, flags));
}

static void
install_data (GObjectClass *klass, GParamFlags flags)
{
  g_object_class_install_property (klass, PROP_MASK_LOCATION,
      g_param_spec_string ("mask-location", "Mask",
          "An .npy file, [lines, columns] of u8 or bool, of any size, that "
          "covers the whole reference: patches whose centre lies on a 0 are "
          "left out",
          NULL, flags));
  g_object_class_install_property (klass, PROP_GROSS_OFFSETS_LOCATION,
      g_param_spec_string ("gross-offsets-location", "Gross offsets",
          "An .npy file, [ny, nx, 2] of numbers: columns and lines, rounded, "
          "around which each patch is sought, beside rshift and ashift",
          NULL, flags));
  g_object_class_install_property (klass, PROP_MIN_VALID,
      g_param_spec_double ("min-valid", "Least data",
          "Part of the samples of a patch that must be data, neither 0 nor not "
          "finite, in both images; patches with less are flagged and take no "
          "part in the fit",
          0.0, 1.0, DEFAULT_PROP_MIN_VALID, flags));
  g_object_class_install_property (klass, PROP_MEMORY_LIMIT,
      g_param_spec_uint64 ("memory-limit", "Memory limit",
          "Bytes that lines and the work on them may take at most, on the "
          "device for CUDA; 0 for as many as are of use. Results do not depend "
          "on it",
          0, G_MAXUINT64, DEFAULT_PROP_MEMORY_LIMIT, flags));
  g_object_class_install_property (klass, PROP_CUDA_DEVICES,
      g_param_spec_string ("cuda-devices", "CUDA devices",
          "GPUs that share the patches of each row: \"0;1\", or \"all\"; the "
          "first takes the place of cuda-device-id. Results do not depend on "
          "it",
          NULL, flags));
}

static void
install_fit (GObjectClass *klass, GParamFlags flags)
{
  g_object_class_install_property (klass, PROP_FIT_RANGE,
      g_param_spec_int ("fit-range", "Range terms",
          "Terms of the polynomial that is fitted to the offsets in range: 1 "
          "shift, 2 and stretch along range, 3 and along azimuth, up to 10 for "
          "cubic ones; 0 for no fit at all",
          0, IMK_INSARXCORR_FIT_MAX_TERMS, DEFAULT_PROP_FIT_RANGE, flags));
  g_object_class_install_property (klass, PROP_FIT_AZIMUTH,
      g_param_spec_int ("fit-azimuth", "Azimuth terms",
          "Terms of the polynomial in azimuth, as fit-range", 0,
          IMK_INSARXCORR_FIT_MAX_TERMS, DEFAULT_PROP_FIT_AZIMUTH, flags));
  g_object_class_install_property (klass, PROP_FIT_SNR,
      g_param_spec_double ("fit-snr", "Least correlation",
          "Patches whose correlation, 0 to 100, is above it take part in the "
          "fit; the others are flagged. -1: auto, what one patch of noise in "
          "100 reaches, from the sizes of template and search. The default is "
          "18 with mode=compat, as GMTSAR's, and auto with mode=precise",
          -1.0, 100.0, DEFAULT_PROP_FIT_SNR, flags));
}

void
gst_insar_settings_install (GObjectClass *klass)
{
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;

  install_grid (klass, flags);
  install_method (klass, flags);
  install_data (klass, flags);
  install_fit (klass, flags);
  gst_type_mark_as_plugin_api (grid_get_type (), 0);
  gst_type_mark_as_plugin_api (mode_get_type (), 0);
  gst_type_mark_as_plugin_api (method_get_type (), 0);
}
