/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstphotostereosettings.h"

#include "gstphotostereofiles.h"

static const GEnumValue light_units_values[] = {
    {GST_PHOTO_STEREO_UNITS_AUTO,
        "As a .dome file says; of text, unit vectors are directions, and when "
        "none is one, positions",
        "auto"},
    {GST_PHOTO_STEREO_UNITS_DIRECTIONS, "Directions of any length",
        "directions"},
    {GST_PHOTO_STEREO_UNITS_POSITIONS, "Positions in mm", "positions"},
    {0, NULL, NULL},
};

static const GEnumValue light_model_values[] = {
    {IMK_PHOTOSTEREO_MODEL_AUTO,
        "directional for directions, inverse-square for positions", "auto"},
    {IMK_PHOTOSTEREO_MODEL_DIRECTIONAL, "Parallel light of equal strength",
        "directional"},
    {IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE,
        "From the position to each pixel, falling off with the distance: R^2 v "
        "/ |v|^3",
        "inverse-square"},
    {IMK_PHOTOSTEREO_MODEL_UNIT, "From the position to each pixel: v / |v|",
        "unit"},
    {IMK_PHOTOSTEREO_MODEL_RAW,
        "The paper's, brighter when farther: v / R; a direction as it is",
        "raw"},
    {0, NULL, NULL},
};

static const GEnumValue pattern_values[] = {
    {IMK_PHOTOSTEREO_PATTERN_NONE, "No colour filter", "none"},
    {IMK_PHOTOSTEREO_PATTERN_BGGR, "Blue, green; green, red", "bggr"},
    {IMK_PHOTOSTEREO_PATTERN_RGGB, "Red, green; green, blue", "rggb"},
    {IMK_PHOTOSTEREO_PATTERN_GBRG, "Green, blue; red, green", "gbrg"},
    {IMK_PHOTOSTEREO_PATTERN_GRBG, "Green, red; blue, green", "grbg"},
    {0, NULL, NULL},
};

ImkPhotostereoPattern
gst_photo_stereo_pattern_of (const gchar *format)
{
  for (const GEnumValue *v = pattern_values; v->value_nick; v++)
    if (g_strcmp0 (v->value_nick, format) == 0)
      return v->value;
  return IMK_PHOTOSTEREO_PATTERN_NONE;
}

static const GEnumValue grey_source_values[] = {
    {IMK_PHOTOSTEREO_GREY_MOSAIC, "The sample of each site", "mosaic"},
    {IMK_PHOTOSTEREO_GREY_LUMA, "Luma of interpolated colours, as the paper",
        "luma"},
    {0, NULL, NULL},
};

static const GEnumValue band_order_values[] = {
    {GST_PHOTO_STEREO_BANDS_BY_LIGHT,
        "All bands of a light, then those of the next", "by-light"},
    {GST_PHOTO_STEREO_BANDS_BY_BAND,
        "All lights of a band, then those of the next", "by-band"},
    {0, NULL, NULL},
};

static const GEnumValue index_source_values[] = {
    {GST_PHOTO_STEREO_INDEX_ORDER,
        "Pictures come in the order of the light file", "order"},
    {GST_PHOTO_STEREO_INDEX_META,
        "A custom meta " GST_PHOTO_STEREO_LIGHT_META
        " with an unsigned integer \"index\", and \"band\" where there are "
        "several",
        "meta"},
    {GST_PHOTO_STEREO_INDEX_OFFSET, "The offset of the buffer", "offset"},
    {0, NULL, NULL},
};

static const GEnumValue robust_values[] = {
    {IMK_PHOTOSTEREO_ROBUST_NONE, "Least squares of all lights", "none"},
    {IMK_PHOTOSTEREO_ROBUST_THRESHOLDS,
        "Lights that do not fit are left out, and it is solved again",
        "thresholds"},
    {IMK_PHOTOSTEREO_ROBUST_HUBER, "They weigh t-res / residual", "huber"},
    {0, NULL, NULL},
};

static const GEnumValue threshold_mode_values[] = {
    {IMK_PHOTOSTEREO_THRESHOLDS_AUTO,
        "adaptive below 100 lights, relative from 100 on", "auto"},
    {IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE, "Fractions of the full scale",
        "absolute"},
    {IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE, "Fractions of the pixel's own albedo",
        "relative"},
    {IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE,
        "Likewise, and t-res grows with the residuals of the pixel",
        "adaptive"},
    {0, NULL, NULL},
};

static const GEnumValue y_axis_values[] = {
    {FALSE, "Up, as OpenGL has it", "up"},
    {TRUE, "Down, as DirectX has it", "down"},
    {0, NULL, NULL},
};

static const GEnumValue encoding_values[] = {
    {GST_PHOTO_STEREO_ENCODING_AUTO,
        "The first of the others that downstream takes", "auto"},
    {GST_PHOTO_STEREO_ENCODING_8, "RGB: 128 + 127 n", "rgb8"},
    {GST_PHOTO_STEREO_ENCODING_16, "RGBA64_LE: 32768 + 32767 n", "rgba64"},
    {GST_PHOTO_STEREO_ENCODING_TENSOR, "float32 tensor", "tensor"},
    {0, NULL, NULL},
};

/* --- the table ----------------------------------------------------------- */

typedef GstPhotoStereoSettings Settings;

/* Those that need a new kernel, with the next set. */
#define NEW(KIND, NAME, ...) \
  GST_IMAGING_##KIND ( \
      NAME, NEXT_SET, GST_PHOTO_STEREO_GEOMETRY, Settings, __VA_ARGS__)
#define LIVE(KIND, NAME, ...) \
  GST_IMAGING_##KIND (NAME, LIVE, 0, Settings, __VA_ARGS__)

static const GstImagingSetting settings[] = {
    NEW (PATH, "lights-location", lights, gst_photo_stereo_load_lights,
        gst_photo_stereo_free_lights,
        "The lights: an .lp file, lines of x y z with x to the right, y up and "
        "z to the camera, or a .dome file of Relight; needed"),
    NEW (PATH, "intensities-location", intensities,
        gst_photo_stereo_load_intensities, (GDestroyNotify) g_bytes_unref,
        "A line each light with its intensity, or those of red, green, blue, "
        "or of each band, by which samples are divided; without it those of "
        "lights-location, or 1"),
    NEW (ENUM, "light-units", light_units, "GstPhotoStereoLightUnits",
        light_units_values, "What the numbers of lights-location are"),
    NEW (ENUM, "light-model", config.model, "GstPhotoStereoLightModel",
        light_model_values,
        "The light vector at a pixel, v being the way from there to the light "
        "and R the mean distance of the lights from the point x = y = 0 of the "
        "working plane"),
    NEW (DOUBLE, "led-lobe", config.led_lobe, 0, 100, NULL,
        "Exponent m of lamps aimed at the centre, which shine cos(angle)^m; 0 "
        "shines equally in all directions, 1 is a Lambertian LED; for the light "
        "models inverse-square and unit"),
    NEW (DOUBLE, "mm-per-pixel", config.mm_per_pixel, 1e-9, 1e6, "mm",
        "Size of a pixel on the working plane, for lights with a position"),
    NEW (DOUBLE, "centre-x", config.centre_x, GST_PHOTO_STEREO_CENTRE, 1e9,
        "px",
        "Column above which x = 0; the smallest number, the default, means "
        "the middle of the frame"),
    NEW (DOUBLE, "centre-y", config.centre_y, GST_PHOTO_STEREO_CENTRE, 1e9,
        "px",
        "Row above which y = 0; the smallest number, the default, means the "
        "middle of the frame"),
    NEW (DOUBLE, "plane-z", config.plane_z, -1e9, 1e9, "mm",
        "z of the working plane, below all lights"),
    NEW (PATH, "dark-location", dark, gst_photo_stereo_load_dark,
        (GDestroyNotify) gst_imaging_nd_array_free,
        "An array file with a picture without light, of type and size of the "
        "frames (or bool: 0 and 1), or [bands, height, width]; subtracted, "
        "with 0 for what would be negative"),
    NEW (PATH, "white-location", white, gst_photo_stereo_load_white,
        (GDestroyNotify) gst_imaging_nd_array_free,
        "An array file with a picture of a white plane, likewise; samples are "
        "divided by it and multiplied by its mean"),
    NEW (PATH, "mask-location", mask, gst_photo_stereo_load_mask,
        (GDestroyNotify) gst_imaging_nd_array_free,
        "An array file [height, width] of u8 or bool, 0 where nothing is to be "
        "solved"),
    NEW (DOUBLE, "gamma", config.gamma, 0.1, 10, NULL,
        "Exponent that makes samples linear: (sample / full scale)^gamma"),
    NEW (UINT, "bit-depth", bit_depth, 0, 16, "bits",
        "Significant bits of a sample, in its low bits: 10, 12 or 14 of most "
        "cameras; 0 for all bits of the format"),
    NEW (DOUBLE, "saturation", config.saturation, -1, 65535, "counts",
        "A sample at and above it, as it came, is clipped; 0 for the largest "
        "value of bit-depth, -1 for never. A light does not count at a pixel "
        "of which it clips a sample, but with robust=none"),
    NEW (ENUM, "bayer-pattern", config.pattern, "GstPhotoStereoBayerPattern",
        pattern_values,
        "Colour filter of a sensor whose frames come as GRAY8 or GRAY16_LE"),
    NEW (ENUM, "grey-source", config.grey, "GstPhotoStereoGreySource",
        grey_source_values, "What is solved, where there is a colour filter"),
    NEW (UINT, "bands", config.bands, 1, G_MAXUINT16, NULL,
        "Grey pictures a light, 1 to 16, each of another colour of light or "
        "through another filter: one normal is solved from all of them, and an "
        "albedo of each"),
    NEW (ENUM, "band-order", band_order, "GstPhotoStereoBandOrder",
        band_order_values,
        "How pictures follow each other where there are several bands"),
    NEW (ENUM, "index-source", index_source, "GstPhotoStereoIndexSource",
        index_source_values,
        "How it is known under which light, counted from 0, a picture was "
        "taken"),
    NEW (UINT, "set-size", set_size, 0, IMK_PHOTOSTEREO_MAX_LIGHTS, "lights",
        "Lights of a set, with a picture of each band; 0 for all there are"),
    GST_IMAGING_UINT64 ("memory-limit", NEXT_SET,
        GST_PHOTO_STEREO_GEOMETRY | GST_IMAGING_NEUTRAL, Settings, memory_limit,
        0, G_MAXUINT64, "bytes",
        "Memory that may be used where the set is solved, on each device or "
        "the host; 0 for all that is free there. A set that does not fit the "
        "device waits in host memory and is solved in strips; one that does "
        "not fit the host is an error that gives the size it needs"),
    GST_IMAGING_UINT64 ("host-memory-limit", NEXT_SET,
        GST_PHOTO_STEREO_GEOMETRY | GST_IMAGING_NEUTRAL, Settings,
        host_memory_limit, 0, G_MAXUINT64, "bytes",
        "Host memory for the pictures of a set, on the CPU and where they wait "
        "to be solved in strips; 0 for nine tenths of what the machine has. "
        "A set that does not fit is an error that gives the size it needs"),
    LIVE (UINT, "update-interval", update_interval, 0,
        IMK_PHOTOSTEREO_MAX_LIGHTS, "lights",
        "Output a result each time that many further lights are complete, with "
        "their pictures of all bands; 0: at the end of the set only"),
    LIVE (DOUBLE, "stop-below", stop_below, 0, 180, "degrees",
        "Mean change between two updates below which the set ends early; 0 for "
        "never. With index-source=order the rest of its pictures is left out"),
    LIVE (BOOLEAN, "next-light", next_light,
        "With each update post a message photostereo-next-light with the "
        "index of the light whose picture is expected to add most"),
    LIVE (ENUM, "robust", config.robust, "GstPhotoStereoRobust", robust_values,
        "What happens to lights that do not fit: shadows, highlights"),
    LIVE (ENUM, "threshold-mode", config.thresholds,
        "GstPhotoStereoThresholdMode", threshold_mode_values,
        "Unit of t-min, t-max, t-res, for samples divided by the intensity of "
        "their light"),
    LIVE (DOUBLE, "t-min", config.t_min, -1, 1e6, NULL,
        "A light counts if it is brighter than this; -1 for 0.04 absolute, "
        "else 0.1"),
    LIVE (DOUBLE, "t-max", config.t_max, -1, 1e6, NULL,
        "A light counts if it is darker than this; -1 for 0.98 absolute, else "
        "1.3"),
    LIVE (DOUBLE, "t-res", config.t_res, -1, 1e6, NULL,
        "A light counts if it differs from the prediction of the solution by "
        "no more than this (the paper compares squares); -1 for 0.03 "
        "absolute, 0.15 relative, 0.05 adaptive, 0.02 with robust=huber"),
    LIVE (BOOLEAN, "readmit", config.readmit,
        "A light that was left out may come back; the paper says no"),
    LIVE (UINT, "max-iterations", config.max_iterations, 1, 1000, NULL,
        "Solutions of a pixel at most, the first one included"),
    LIVE (UINT, "min-lights", config.min_lights, 0, IMK_PHOTOSTEREO_MAX_LIGHTS,
        "lights",
        "What a later solution needs, else the last good one stays; 0 for 3 "
        "absolute, 6 relative, 4 adaptive"),
    LIVE (DOUBLE, "min-condition", config.min_condition, 0, 1, NULL,
        "det A / (tr A tr adj A) of A = sum L L' below which a pixel is "
        "invalid: 3e-6 are lights in one plane, 1e-2 lights near the camera, "
        "5e-2 a dome"),
    LIVE (ENUM, "y-axis", y_down, "GstPhotoStereoYAxis", y_axis_values,
        "Where the y of the normals points"),
    LIVE (ENUM, "normal-encoding", normal_encoding, "GstPhotoStereoEncoding",
        encoding_values,
        "How normals n are written; all 0 where there is none"),
    GST_IMAGING_INT_ARRAY ("cuda-devices", NEXT_START, GST_IMAGING_NEUTRAL,
        Settings, cuda_devices, GST_IMAGING_ALL_DEVICES, 1023, NULL,
        "GPUs that share the rows of a set, each over its own bus: \"<0, 1>\", "
        "or \"<-1>\" for all, 16 at most. The first replaces cuda-device-id. "
        "Results do not depend on it"),
};

static void
init_settings (gpointer data)
{
  Settings *s = data;

  imk_photostereo_config_init (&s->config);
  s->config.centre_x = s->config.centre_y = GST_PHOTO_STEREO_CENTRE;
}

const GstImagingSettingsTable gst_photo_stereo_table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .replan = GST_PHOTO_STEREO_GEOMETRY,
    .has_engine = TRUE,
    .init = init_settings,
    .apply = gst_photo_stereo_apply,
};
