/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscansettings.h"

#include <gst/gst.h>

#include "gstimagingengine.h"
#include "gstimagingenum.h"

/* --- enumerations -------------------------------------------------------- */

static const GEnumValue interpolation_values[] = {
    {IMK_OCTBSCAN_INTERPOLATION_EXACT, "The band-limited signal, to 1e-7",
        "exact"},
    {IMK_OCTBSCAN_INTERPOLATION_LINEAR, "Linear after upsampling", "linear"},
    {IMK_OCTBSCAN_INTERPOLATION_CUBIC, "Catmull-Rom after upsampling", "cubic"},
    {IMK_OCTBSCAN_INTERPOLATION_LANCZOS,
        "Lanczos of eight samples after upsampling", "lanczos"},
    {IMK_OCTBSCAN_INTERPOLATION_THESIS,
        "Linear, with 0 at the first and last two wavenumbers", "thesis"},
    {0, NULL, NULL},
};

static const GEnumValue grid_values[] = {
    {IMK_OCTBSCAN_GRID_EXACT, "Sample m of M is at pixel m N / M", "exact"},
    {IMK_OCTBSCAN_GRID_THESIS, "Taken to be at m (N - 1) / (M - 1)", "thesis"},
    {0, NULL, NULL},
};

static const GEnumValue taper_values[] = {
    {IMK_OCTBSCAN_TAPER_TUKEY, "(1 - cos (pi n / cut)) / 2", "tukey"},
    {IMK_OCTBSCAN_TAPER_THESIS, "Hann (n) / Hann (cut), Hann of all samples",
        "thesis"},
    {IMK_OCTBSCAN_TAPER_NONE, "None", "none"},
    {0, NULL, NULL},
};

static const GEnumValue window_values[] = {
    {IMK_OCTBSCAN_WINDOW_NONE, "None", "none"},
    {IMK_OCTBSCAN_WINDOW_HANN, "Hann", "hann"},
    {IMK_OCTBSCAN_WINDOW_HAMMING, "Hamming", "hamming"},
    {IMK_OCTBSCAN_WINDOW_BLACKMAN, "Blackman", "blackman"},
    {IMK_OCTBSCAN_WINDOW_GAUSS, "exp (-(u / 0.4)^2 / 2), u from -1 to 1",
        "gauss"},
    {IMK_OCTBSCAN_WINDOW_FILE, "window-location", "file"},
    {0, NULL, NULL},
};

static const GEnumValue background_values[] = {
    {IMK_OCTBSCAN_BACKGROUND_MEAN,
        "The mean of the spectra of each camera in the B-scan", "mean"},
    {IMK_OCTBSCAN_BACKGROUND_FILE, "background-location", "file"},
    {IMK_OCTBSCAN_BACKGROUND_NONE, "Nothing is taken off", "none"},
    {IMK_OCTBSCAN_BACKGROUND_RUNNING,
        "Their mean over the last B-scans, about background-bscans of them",
        "running"},
    {IMK_OCTBSCAN_BACKGROUND_FIRST,
        "Their mean over the first background-bscans B-scans, kept", "first"},
    {IMK_OCTBSCAN_BACKGROUND_ROLLING,
        "Along each spectrum, the mean of background-reach samples either side",
        "rolling"},
    {0, NULL, NULL},
};

static const GEnumValue pattern_values[] = {
    {IMK_OCTBSCAN_FIXED_PATTERN_NONE, "Nothing is taken off", "none"},
    {IMK_OCTBSCAN_FIXED_PATTERN_MINVAR, "That of each B-scan", "minvar"},
    {IMK_OCTBSCAN_FIXED_PATTERN_ONCE, "That of the first B-scan, kept", "once"},
    {IMK_OCTBSCAN_FIXED_PATTERN_FILE, "pattern-location", "file"},
    {0, NULL, NULL},
};

static const GEnumValue scan_values[] = {
    {IMK_OCTBSCAN_SCAN_EVEN, "A-scans have equal distances", "none"},
    {IMK_OCTBSCAN_SCAN_SINE, "Half a swing of a sine, -cos (pi i / (H - 1))",
        "sine"},
    {IMK_OCTBSCAN_SCAN_CURVE, "scan-curve", "curve"},
    {0, NULL, NULL},
};

static const GEnumValue flip_values[] = {
    {IMK_OCTBSCAN_FLIP_NONE, "As it comes", "none"},
    {IMK_OCTBSCAN_FLIP_LATERAL, "The last A-scan first", "lateral"},
    {IMK_OCTBSCAN_FLIP_DEPTH, "The largest depth first", "depth"},
    {IMK_OCTBSCAN_FLIP_BOTH, "Both", "both"},
    {0, NULL, NULL},
};

static const GEnumValue tracking_values[] = {
    {IMK_OCTBSCAN_TRACKING_NONE, "B-scans stay where they are", "none"},
    {IMK_OCTBSCAN_TRACKING_RPE, "By the brightest layer of the window", "rpe"},
    {IMK_OCTBSCAN_TRACKING_CONTOUR,
        "By where the A-scans are brightest, weighted mean", "contour"},
    {IMK_OCTBSCAN_TRACKING_XCORR, "By correlation with those before", "xcorr"},
    {0, NULL, NULL},
};

static const GEnumValue projection_values[] = {
    {IMK_OCTBSCAN_PROJECTION_MEAN, "Mean of the intensities", "mean"},
    {IMK_OCTBSCAN_PROJECTION_MAXIMUM, "Largest of the intensities", "maximum"},
    {0, NULL, NULL},
};

static const GEnumValue orientation_values[] = {
    {IMK_OCTBSCAN_ORIENTATION_DEPTH_DOWN, "An A-scan is a column",
        "depth-down"},
    {IMK_OCTBSCAN_ORIENTATION_ROWS, "An A-scan is a row", "rows"},
    {0, NULL, NULL},
};

static const GEnumValue strategy_values[] = {
    {IMK_OCTBSCAN_STRATEGY_AUTO, "The faster one on the backend", "auto"},
    {IMK_OCTBSCAN_STRATEGY_FFT, "Short Fourier transforms", "fft"},
    {IMK_OCTBSCAN_STRATEGY_OPERATOR, "One matrix a camera", "operator"},
    {0, NULL, NULL},
};

static const GEnumValue scaling_values[] = {
    {SCALING_DB, "10 log10 of the intensity", "db"},
    {SCALING_LINEAR, "The intensity", "linear"},
    {0, NULL, NULL},
};

static const GEnumValue range_values[] = {
    {IMK_OCTBSCAN_RANGE_FIXED, "range-min to range-max", "fixed"},
    {IMK_OCTBSCAN_RANGE_PERCENTILE,
        "percent-min to percent-max of the intensities of each B-scan",
        "percentile"},
    {IMK_OCTBSCAN_RANGE_MINMAX,
        "The least to the largest of each B-scan, as the thesis; flickers",
        "minmax"},
    {0, NULL, NULL},
};

/* --- the table ------------------------------------------------------------ */

typedef enum { UINT, ENUM, DOUBLE, STRING, BOOLEAN } Kind;

/* What is to be done when it changes. */
typedef enum {
  PLAN, /* a new kernel is planned, which takes some time */
  TURN, /* cameras take their turns anew */
  LIVE, /* nothing */
} Change;

typedef struct {
  Kind kind;
  Change change;
  gsize offset; /* in Settings */
  const gchar *name, *nick, *blurb;
  gdouble minimum, maximum;
  const gchar *type;        /* of an enumeration */
  const GEnumValue *values; /* likewise */
} Property;

#define SETTING(member) G_STRUCT_OFFSET (Settings, member)

static const Property properties[] = {
    {UINT, PLAN, SETTING (config.n_cameras), "cameras", "Cameras",
        "How many cameras take turns, line by line", 1,
        IMK_OCTBSCAN_MAX_CAMERAS},
    {UINT, TURN, SETTING (first_camera), "first-camera", "First camera",
        "Camera of the first line of the stream, and of the next B-scan after "
        "this is set; from there the turns are carried on from B-scan to "
        "B-scan, also when their lines are no multiple of cameras",
        0, IMK_OCTBSCAN_MAX_CAMERAS - 1},
    {STRING, PLAN, SETTING (calibration), "calibration", "Calibration",
        "An .ini file with a group [camera 0], [camera 1], ... for each "
        "camera, or [camera] for all; see the documentation. Without it pixels "
        "have equal distances in wavenumber"},
    {STRING, PLAN, SETTING (camera_order), "camera-order", "Camera order",
        "\"1;0\": the calibrations in the order of the lines; without it 0, 1, "
        "..."},
    {STRING, PLAN, SETTING (dispersion), "dispersion", "Dispersion",
        "\"d0;d1;d2;...\", radians, in the place of that of the calibration; for "
        "all cameras, or with commas for each in the order of the lines: "
        "\"0;0;-9,0;0;-8\". The action estimate-dispersion sets it"},
    {UINT, PLAN, SETTING (config.upsample), "upsample", "Upsample",
        "M, wavenumbers a spectrum is resampled to, and samples it is "
        "upsampled to first (not for interpolation=exact, which needs none); "
        "at least the samples of a spectrum, and without upsampling when equal",
        4, IMK_OCTBSCAN_MAX_POINTS},
    {UINT, PLAN, SETTING (config.scale), "scale", "Scale",
        "s, the transform has s M points, all but M of them zeros: N s / 2 "
        "depths for spectra of N samples",
        1, 64},
    {ENUM, PLAN, SETTING (config.interpolation), "interpolation",
        "Interpolation", "How samples at equal distances in wavenumber are had",
        .type = "GstOctBscanInterpolation", .values = interpolation_values},
    {ENUM, PLAN, SETTING (config.grid), "grid", "Grid",
        "Where upsampled samples lie", .type = "GstOctBscanGrid",
        .values = grid_values},
    {ENUM, PLAN, SETTING (config.taper), "taper", "Taper",
        "What the first and last taper-cut samples of short spectra are "
        "multiplied by",
        .type = "GstOctBscanTaper", .values = taper_values},
    {UINT, PLAN, SETTING (config.taper_cut), "taper-cut", "Taper cut",
        "Samples that are tapered at each end of a spectrum", 1,
        IMK_OCTBSCAN_MAX_WIDTH},
    {UINT, PLAN, SETTING (config.taper_below), "taper-below", "Taper below",
        "Spectra with fewer samples than this are tapered", 0,
        IMK_OCTBSCAN_MAX_WIDTH + 1},
    {ENUM, PLAN, SETTING (config.window), "window", "Window",
        "Window over the wavenumbers", .type = "GstOctBscanWindow",
        .values = window_values},
    {STRING, PLAN, SETTING (window_location), "window-location",
        "Window location",
        "A .npy file [n] for window=file, over the wavenumbers; other than M of "
        "them are interpolated linearly"},
    {ENUM, PLAN, SETTING (config.background_mode), "background", "Background",
        "What is taken off each spectrum", .type = "GstOctBscanBackground",
        .values = background_values},
    {STRING, PLAN, SETTING (background_location), "background-location",
        "Background location",
        "A .npy file with a spectrum [samples], or one for each camera "
        "[cameras, samples], for background=file"},
    {UINT, PLAN, SETTING (config.background_bscans), "background-bscans",
        "Background B-scans",
        "n, B-scans of background=running and first: m + (mean - m) / min (b, "
        "n) at the b-th",
        1, G_MAXINT},
    {UINT, PLAN, SETTING (config.background_reach), "background-reach",
        "Background reach",
        "w, samples either side for background=rolling: the mean of 2 w + 1, "
        "fewer at the ends",
        1, IMK_OCTBSCAN_MAX_WIDTH},
    {UINT, PLAN, SETTING (config.crop_top), "crop-top", "Crop top",
        "Depths left out at zero delay; they are not computed either", 0,
        G_MAXINT},
    {UINT, PLAN, SETTING (config.crop_bottom), "crop-bottom", "Crop bottom",
        "Depths left out at the far end; they are not computed either", 0,
        G_MAXINT},
    {ENUM, PLAN, SETTING (config.fixed_pattern), "fixed-pattern",
        "Fixed pattern",
        "What is the same in all A-scans of a camera and is taken off after "
        "the transform: at each depth the mean of that segment of A-scans "
        "whose variance is least (Moon 2010)",
        .type = "GstOctBscanFixedPattern", .values = pattern_values},
    {UINT, PLAN, SETTING (config.pattern_segments), "pattern-segments",
        "Pattern segments",
        "Into how many segments the A-scans of a camera are cut for "
        "fixed-pattern; fewer, so that each has two",
        1, IMK_OCTBSCAN_MAX_HEIGHT},
    {STRING, PLAN, SETTING (pattern_location), "pattern-location",
        "Pattern location",
        "A .npy file, complex [depths] or [cameras, depths], for "
        "fixed-pattern=file; the action save-fixed-pattern writes such a file"},
    {ENUM, PLAN, SETTING (config.scan), "scan-correction", "Scan correction",
        "How the scanner moves; A-scans are interpolated, linear in intensity, "
        "to equal distances",
        .type = "GstOctBscanScan", .values = scan_values},
    {STRING, PLAN, SETTING (scan_curve), "scan-curve", "Scan curve",
        "A .npy file for scan-correction=curve: the A-scan, with fraction, of "
        "each column of the image; other than A-scans of a B-scan are "
        "interpolated linearly"},
    {BOOLEAN, PLAN, SETTING (config.bidirectional), "bidirectional",
        "Bidirectional",
        "Every second B-scan, from the second on, is on the mirror's way back: "
        "its last line is the first A-scan"},
    {UINT, PLAN, SETTING (config.average_ascans), "average-ascans",
        "Average A-scans",
        "Neighbouring A-scans of whose intensities one column is the mean; the "
        "last column is of those that are left",
        1, IMK_OCTBSCAN_MAX_HEIGHT},
    {UINT, PLAN, SETTING (average_bscans), "average-bscans", "Average B-scans",
        "B-scans of whose intensities one image is the mean, at the time of "
        "the first; what has been added is shown at the end and before an "
        "interruption",
        1, G_MAXINT},
    {ENUM, PLAN, SETTING (config.tracking), "tracking", "Tracking",
        "Shifts B-scans in depth by round (mu - L), L its place and mu the "
        "weighted mean of those of the last tracking-bscans",
        .type = "GstOctBscanTracking", .values = tracking_values},
    {UINT, PLAN, SETTING (config.tracking_top), "tracking-top", "Tracking top",
        "Depths of the image that tracking leaves out at its top", 0, G_MAXINT},
    {UINT, PLAN, SETTING (config.tracking_bottom), "tracking-bottom",
        "Tracking bottom",
        "Depths of the image that tracking leaves out at its bottom", 0,
        G_MAXINT},
    {UINT, PLAN, SETTING (config.tracking_bscans), "tracking-bscans",
        "Tracking B-scans", "B-scans that mu is the mean of", 1,
        IMK_OCTBSCAN_MAX_TRACKED},
    {UINT, PLAN, SETTING (config.tracking_reach), "tracking-reach",
        "Tracking reach",
        "Depths that tracking=xcorr looks at either side; at most half of its "
        "window",
        1, IMK_OCTBSCAN_MAX_POINTS},
    {UINT, PLAN, SETTING (bscans_per_volume), "bscans-per-volume",
        "B-scans per volume",
        "Rows of an image of the pad enface, one a B-scan (or mean of B-scans)",
        1, IMK_OCTBSCAN_MAX_HEIGHT},
    {ENUM, PLAN, SETTING (config.projection), "enface-projection",
        "En-face projection", "What a pixel of enface has of its A-scan",
        .type = "GstOctBscanProjection", .values = projection_values},
    {UINT, PLAN, SETTING (config.enface_top), "enface-top", "En-face top",
        "Depths of the image that enface leaves out at its top", 0, G_MAXINT},
    {UINT, PLAN, SETTING (config.enface_bottom), "enface-bottom",
        "En-face bottom",
        "Depths of the image that enface leaves out at its bottom", 0,
        G_MAXINT},
    {ENUM, PLAN, SETTING (config.flip), "flip", "Flip",
        "Mirrors the images, not the complex one", .type = "GstOctBscanFlip",
        .values = flip_values},
    {ENUM, PLAN, SETTING (config.orientation), "orientation", "Orientation",
        "How the image lies", .type = "GstOctBscanOrientation",
        .values = orientation_values},
    {ENUM, PLAN, SETTING (config.strategy), "strategy", "Strategy",
        "How it is computed; the image is the same",
        .type = "GstOctBscanStrategy", .values = strategy_values},
    {UINT, PLAN, SETTING (max_in_flight), "max-in-flight", "Most in flight",
        "Batches of B-scans that are on a GPU at a time, one being uploaded, "
        "one computed, one downloaded; with 1 each waits for the one before",
        1, 16},
    {STRING, PLAN, SETTING (cuda_devices), "cuda-devices", "CUDA devices",
        "GPUs that share the B-scans, each as many as it is fast: \"0;1\", or "
        "\"all\"; without it cuda-device-id alone. When what is asked for needs "
        "the B-scans before (a running background, tracking, means of B-scans) "
        "the first alone works"},
    {UINT, PLAN, SETTING (ascans_per_bscan), "ascans-per-bscan",
        "A-scans per B-scan",
        "Lines of a B-scan, whatever the lines of a buffer; 0 for those of a "
        "buffer",
        0, IMK_OCTBSCAN_MAX_HEIGHT},
    {UINT, PLAN, SETTING (skip_first_line), "skip-first-line",
        "Skip first line",
        "Lines at the beginning of each B-scan that are left out, in which the "
        "mirror flies back; the cameras take turns in them as well",
        0, IMK_OCTBSCAN_MAX_HEIGHT},
    {ENUM, LIVE, SETTING (scaling), "scaling", "Scaling",
        "What src and enface show", .type = "GstOctBscanScaling",
        .values = scaling_values},
    {ENUM, LIVE, SETTING (config.range), "range", "Range",
        "What is black and what is white", .type = "GstOctBscanRange",
        .values = range_values},
    {DOUBLE, LIVE, SETTING (config.range_min), "range-min", "Range minimum",
        "dB of black for range=fixed; 0 dB is a fringe with an amplitude of "
        "one count. Of the linear image its intensity",
        -200, 300},
    {DOUBLE, LIVE, SETTING (config.range_max), "range-max", "Range maximum",
        "dB of white for range=fixed, as range-min", -200, 300},
    {DOUBLE, LIVE, SETTING (config.percent_min), "percent-min",
        "Least percentile", "Percentile that is black for range=percentile", 0,
        100},
    {DOUBLE, LIVE, SETTING (config.percent_max), "percent-max",
        "Largest percentile", "Percentile that is white for range=percentile",
        0, 100},
};

/* before it are the ids of the element itself */
enum { FIRST_ID = GST_IMAGING_ENGINE_N_PROPERTIES + 16 };

static const Property *
find (guint id)
{
  return id >= FIRST_ID && id - FIRST_ID < G_N_ELEMENTS (properties)
             ? &properties[id - FIRST_ID]
             : NULL;
}

/* --- values --------------------------------------------------------------- */

static void
set_string (gchar **setting, const gchar *text)
{
  g_free (*setting);
  /* empty is none: gst-launch cannot write NULL */
  *setting = text && *text ? g_strdup (text) : NULL;
}

gboolean
gst_oct_bscan_settings_set (Settings *self, guint id, const GValue *value)
{
  const Property *p = find (id);
  gpointer setting = p ? G_STRUCT_MEMBER_P (self, p->offset) : NULL;

  if (!p)
    return FALSE;
  switch (p->kind) {
  case UINT:
    *(guint *) setting = g_value_get_uint (value);
    break;
  case ENUM: /* these are as large as unsigned int */
    *(guint *) setting = (guint) g_value_get_enum (value);
    break;
  case DOUBLE:
    *(gdouble *) setting = g_value_get_double (value);
    break;
  case STRING:
    set_string (setting, g_value_get_string (value));
    break;
  case BOOLEAN:
    *(bool *) setting = g_value_get_boolean (value);
    break;
  }
  self->config.averages_bscans = self->average_bscans > 1;
  self->changes++;
  self->plan += p->change == PLAN;
  self->turns += p->change == TURN;
  return TRUE;
}

gboolean
gst_oct_bscan_settings_get (const Settings *self, guint id, GValue *value)
{
  const Property *p = find (id);
  gconstpointer setting = p ? (const guint8 *) self + p->offset : NULL;

  if (!p)
    return FALSE;
  switch (p->kind) {
  case UINT:
    g_value_set_uint (value, *(const guint *) setting);
    break;
  case ENUM:
    g_value_set_enum (value, (gint) * (const guint *) setting);
    break;
  case DOUBLE:
    g_value_set_double (value, *(const gdouble *) setting);
    break;
  case STRING:
    g_value_set_string (value, *(gchar *const *) setting);
    break;
  case BOOLEAN:
    g_value_set_boolean (value, *(const bool *) setting);
    break;
  }
  return TRUE;
}

void
gst_oct_bscan_settings_init (Settings *self)
{
  *self = (Settings){
      .average_bscans = 1, .bscans_per_volume = 240, .max_in_flight = 3};
  imk_octbscan_config_init (&self->config);
}

Settings
gst_oct_bscan_settings_copy (const Settings *self)
{
  Settings copy = *self;

  for (guint i = 0; i < G_N_ELEMENTS (properties); i++)
    if (properties[i].kind == STRING) {
      gchar **text = (gchar **) G_STRUCT_MEMBER_P (&copy, properties[i].offset);

      *text = g_strdup (*text);
    }
  return copy;
}

void
gst_oct_bscan_settings_clear (Settings *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (properties); i++)
    if (properties[i].kind == STRING)
      g_clear_pointer (
          (gchar **) G_STRUCT_MEMBER_P (self, properties[i].offset), g_free);
}

/* --- the class ------------------------------------------------------------ */

static GParamSpec *
make_spec (const Property *p, const Settings *defaults)
{
  gconstpointer value = (const guint8 *) defaults + p->offset;
  GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                      GST_PARAM_MUTABLE_PLAYING |
                      (p->change == LIVE ? GST_PARAM_CONTROLLABLE : 0);

  switch (p->kind) {
  case UINT:
    return g_param_spec_uint (p->name, p->nick, p->blurb, (guint) p->minimum,
        (guint) p->maximum, *(const guint *) value, flags);
  case ENUM:
    return g_param_spec_enum (p->name, p->nick, p->blurb,
        gst_imaging_enum_type (p->type, p->values),
        (gint) * (const guint *) value, flags);
  case DOUBLE:
    return g_param_spec_double (p->name, p->nick, p->blurb, p->minimum,
        p->maximum, *(const gdouble *) value, flags);
  case BOOLEAN:
    return g_param_spec_boolean (
        p->name, p->nick, p->blurb, *(const bool *) value, flags);
  default:
    return g_param_spec_string (p->name, p->nick, p->blurb, NULL, flags);
  }
}

void
gst_oct_bscan_settings_install (GObjectClass *klass)
{
  Settings defaults;

  gst_oct_bscan_settings_init (&defaults);
  for (guint i = 0; i < G_N_ELEMENTS (properties); i++)
    g_object_class_install_property (
        klass, FIRST_ID + i, make_spec (&properties[i], &defaults));
}
