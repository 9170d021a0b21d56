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

static const GEnumValue window_values[] = {
    {GST_PHOTO_STEREO_WINDOW_SET, "One result for each set of pictures", "set"},
    {GST_PHOTO_STEREO_WINDOW_SLIDING,
        "From the end of the first set on, a result for each picture, from the "
        "last picture of each light",
        "sliding"},
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

static const GEnumValue ambient_model_values[] = {
    {IMK_PHOTOSTEREO_AMBIENT_MEAN,
        "No light but the lamps', or a dark frame; the pad ambient has the "
        "mean of all pictures",
        "mean"},
    {IMK_PHOTOSTEREO_AMBIENT_CONSTANT,
        "Light of the room, the same in all pictures; it is solved with the "
        "normal, and the pad ambient has it. On the CPU",
        "constant"},
    {0, NULL, NULL},
};

static const GEnumValue plane_at_values[] = {
    {IMK_PHOTOSTEREO_PLANE_AT_MEAN, "The mean height", "mean"},
    {IMK_PHOTOSTEREO_PLANE_AT_LOWEST, "The lowest height", "lowest"},
    {0, NULL, NULL},
};

static const GEnumValue curve_values[] = {
    {IMK_PHOTOSTEREO_CURVE_GAMMA, "(sample / full scale)^gamma", "gamma"},
    {IMK_PHOTOSTEREO_CURVE_SRGB,
        "The curve of sRGB, IEC 61966-2-1, of most JPEG files", "srgb"},
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
        "Required file with the lights: an .lp file, text lines of x y z (x to "
        "the right, y up, z to the camera), or a .dome file of Relight"),
    NEW (PATH, "intensities-location", intensities,
        gst_photo_stereo_load_intensities, (GDestroyNotify) g_bytes_unref,
        "Text file with a line for each light: one intensity, three (red, "
        "green, blue), or one for each band. Samples are divided by it. "
        "Without a file the intensities of lights-location are used, otherwise "
        "1"),
    NEW (ENUM, "light-units", light_units, "GstPhotoStereoLightUnits",
        light_units_values, "Meaning of the numbers in lights-location"),
    NEW (ENUM, "light-model", config.model, "GstPhotoStereoLightModel",
        light_model_values,
        "Light vector at a pixel. v is the vector from the pixel to the light, "
        "R the mean distance of the lights from the point x = y = 0 of the "
        "working plane"),
    NEW (DOUBLE, "led-lobe", config.led_lobe, 0, 100, NULL,
        "Exponent m of lamps that are aimed at the centre and shine with "
        "cos(angle)^m. 0: equal in all directions; 1: a Lambertian LED. Used "
        "by the light models inverse-square and unit"),
    NEW (DOUBLE, "mm-per-pixel", mm_per_pixel, 0, 1e6, "mm",
        "Width of a pixel on the working plane in mm, needed for lights with "
        "positions. 0: not known, which for positions counts as 1"),
    NEW (DOUBLE, "centre-x", config.centre_x, GST_PHOTO_STEREO_CENTRE, 1e9,
        "px",
        "Column of the pixel where x = 0, with fraction. The default, the "
        "smallest number, is the middle of the frame"),
    NEW (DOUBLE, "centre-y", config.centre_y, GST_PHOTO_STEREO_CENTRE, 1e9,
        "px",
        "Row of the pixel where y = 0, with fraction. The default, the "
        "smallest number, is the middle of the frame"),
    NEW (DOUBLE, "plane-z", config.plane_z, -1e9, 1e9, "mm",
        "z of the working plane in mm, below all lights"),
    NEW (UINT, "height-rounds", config.height_rounds, 0, 10, NULL,
        "For lamps that are near: how often the normals are integrated, and "
        "all is solved again with the height of each pixel. 1 is enough for a "
        "relief of a tenth of the distance. On the CPU"),
    NEW (ENUM, "plane-at", config.plane_at, "GstPhotoStereoPlaneAt",
        plane_at_values, "Height that lies on plane-z, with height-rounds"),
    NEW (DOUBLE, "focal-length-mm", config.focal_length_mm, 0, 1e6, "mm",
        "Focal length of a camera without distortion above the middle of the "
        "frame; with sensor-width-mm and height-rounds. High points of the "
        "object are then nearer to the axis than they seem. 0: parallel rays"),
    NEW (DOUBLE, "sensor-width-mm", config.sensor_width_mm, 0, 1e6, "mm",
        "Width of the sensor, or of the part of it that the frame is of"),
    NEW (PATH, "dark-location", dark, gst_imaging_setting_load_array,
        (GDestroyNotify) gst_imaging_nd_array_free,
        "Array file with a picture without light, of the type and size of the "
        "frames (bool: 0 and 1), or [bands, height, width]. It is subtracted; "
        "negative results become 0"),
    NEW (PATH, "white-location", white, gst_imaging_setting_load_array,
        (GDestroyNotify) gst_imaging_nd_array_free,
        "Array file with a picture of a white plane, in the formats of "
        "dark-location. Samples are divided by it and multiplied by its mean. "
        "Pixels where it is black or clipped are not solved"),
    NEW (PATH, "mask-location", mask, gst_imaging_setting_load_array,
        (GDestroyNotify) gst_imaging_nd_array_free,
        "Array file [height, width] of u8 or bool. Pixels that are 0 there are "
        "not solved"),
    NEW (DOUBLE, "gamma", config.gamma, 0.1, 10, NULL,
        "Exponent that makes samples linear: (sample / full scale)^gamma"),
    NEW (ENUM, "curve", config.curve, "GstPhotoStereoCurve", curve_values,
        "How samples become linear"),
    NEW (ENUM, "ambient-model", config.ambient_model,
        "GstPhotoStereoAmbientModel", ambient_model_values,
        "Light that all pictures have in common: G = max (0, n'.L) + "
        "c / intensity, c being 0 with mean"),
    NEW (UINT, "bit-depth", bit_depth, 0, 16, "bits",
        "Number of significant low bits of a sample: 10, 12 or 14 of most "
        "cameras; 0: all bits of the format"),
    NEW (DOUBLE, "saturation", config.saturation, -1, 65535, "counts",
        "Raw samples at or above this value are clipped. 0: largest value of "
        "bit-depth; -1: never. A light that clips a sample of a pixel is "
        "rejected at that pixel, except with robust=none"),
    NEW (ENUM, "bayer-pattern", config.pattern, "GstPhotoStereoBayerPattern",
        pattern_values,
        "Colour filter of a sensor whose frames are GRAY8 or GRAY16_LE"),
    NEW (ENUM, "grey-source", config.grey, "GstPhotoStereoGreySource",
        grey_source_values,
        "Grey values that are solved if the sensor has a colour filter"),
    NEW (UINT, "bands", config.bands, 1, G_MAXUINT16, NULL,
        "Number of grey pictures of each light, 1 to 16, in different colours "
        "or through different filters. They give one normal, and an albedo for "
        "each band"),
    NEW (ENUM, "band-order", band_order, "GstPhotoStereoBandOrder",
        band_order_values, "Order of the pictures if there are several bands"),
    NEW (ENUM, "index-source", index_source, "GstPhotoStereoIndexSource",
        index_source_values,
        "How the element finds the number of the light, from 0, of a picture"),
    NEW (UINT, "set-size", set_size, 0, IMK_PHOTOSTEREO_MAX_LIGHTS, "lights",
        "Number of lights in a set, each with a picture of every band; 0: all "
        "lights of the file"),
    NEW (ENUM, "window", window, "GstPhotoStereoWindow", window_values,
        "Pictures that a result is made of"),
    GST_IMAGING_UINT64 ("memory-limit", NEXT_SET,
        GST_PHOTO_STEREO_GEOMETRY | GST_IMAGING_NEUTRAL, Settings, memory_limit,
        0, G_MAXUINT64, "bytes",
        "Largest memory in bytes for solving a set, on each device or on the "
        "host; 0: all that is free there. A set that does not fit the device "
        "stays in host memory and is solved in strips. A set that does not fit "
        "the host is an error that gives the size it needs"),
    GST_IMAGING_UINT64 ("host-memory-limit", NEXT_SET,
        GST_PHOTO_STEREO_GEOMETRY | GST_IMAGING_NEUTRAL, Settings,
        host_memory_limit, 0, G_MAXUINT64, "bytes",
        "Largest host memory in bytes for the pictures of a set, on the CPU "
        "and for sets that are solved in strips; 0: nine tenths of the "
        "machine. A set that does not fit is an error that gives the size it "
        "needs"),
    LIVE (UINT, "update-interval", update_interval, 0,
        IMK_PHOTOSTEREO_MAX_LIGHTS, "lights",
        "Output a result each time this number of further lights is complete, "
        "in all bands; 0: only at the end of the set. With window=sliding: "
        "after this number of pictures; 0 and 1: after each"),
    LIVE (DOUBLE, "stop-below", stop_below, 0, 180, "degrees",
        "End the set early if the mean change between two updates is below "
        "this angle in degrees; 0: never. With index-source=order the "
        "remaining pictures of the set are dropped"),
    LIVE (BOOLEAN, "next-light", next_light,
        "Post a message photostereo-next-light with each update; its index is "
        "the light whose picture is expected to add most"),
    LIVE (ENUM, "robust", config.robust, "GstPhotoStereoRobust", robust_values,
        "How lights are treated that do not fit, as in shadows and highlights"),
    LIVE (ENUM, "threshold-mode", config.thresholds,
        "GstPhotoStereoThresholdMode", threshold_mode_values,
        "Unit of t-min, t-max and t-res, for samples divided by the intensity "
        "of their light"),
    LIVE (DOUBLE, "t-min", config.t_min, -1, 1e6, NULL,
        "A light is used only if its sample is above this value. -1: 0.04 with "
        "threshold-mode=absolute, otherwise 0.1"),
    LIVE (DOUBLE, "t-max", config.t_max, -1, 1e6, NULL,
        "A light is used only if its sample is below this value. -1: 0.98 with "
        "threshold-mode=absolute, otherwise 1.3"),
    LIVE (DOUBLE, "t-res", config.t_res, -1, 1e6, NULL,
        "A light is used only if its sample differs from the prediction of the "
        "solution by at most this value (the paper compares squares). -1: 0.03 "
        "with threshold-mode=absolute, 0.15 with relative, 0.05 with adaptive, "
        "0.02 with robust=huber"),
    LIVE (BOOLEAN, "readmit", config.readmit,
        "Allow a rejected light to be used again in a later round. The paper "
        "does not"),
    LIVE (UINT, "max-iterations", config.max_iterations, 1, 1000, NULL,
        "Largest number of solutions of a pixel, including the first"),
    LIVE (UINT, "min-lights", config.min_lights, 0, IMK_PHOTOSTEREO_MAX_LIGHTS,
        "lights",
        "Smallest number of lights for a later solution; with fewer the last "
        "good one stays. 0: 3 with threshold-mode=absolute, 6 with relative, 4 "
        "with adaptive"),
    LIVE (DOUBLE, "min-condition", config.min_condition, 0, 1, NULL,
        "Smallest condition det A / (tr A tr adj A), A = sum L L', of a valid "
        "pixel. Lights in one plane have 3e-6, lights near the camera 1e-2, a "
        "dome 5e-2"),
    LIVE (ENUM, "y-axis", y_down, "GstPhotoStereoYAxis", y_axis_values,
        "Direction of y in the normals"),
    LIVE (ENUM, "normal-encoding", normal_encoding, "GstPhotoStereoEncoding",
        encoding_values,
        "Encoding of the normals n. Pixels without a normal are 0 in all "
        "components"),
    GST_IMAGING_INT_ARRAY ("cuda-devices", NEXT_START, GST_IMAGING_NEUTRAL,
        Settings, cuda_devices, GST_IMAGING_ALL_DEVICES, 1023, NULL,
        "GPUs that share the rows of a set, each over its own bus: <0, 1>, or "
        "<-1> for all, at most 16. The first replaces cuda-device-id. Results "
        "do not depend on it"),
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
