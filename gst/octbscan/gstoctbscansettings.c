/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscansettings.h"

#include "gstimagingndarray.h"
#include "gstoctbscancalibration.h"
#include "gstoctbscanfiles.h"

/* --- enumerations -------------------------------------------------------- */

static const GEnumValue k_range_values[] = {
    {IMK_OCTBSCAN_K_RANGE_OWN, "That of the pixels of each camera", "own"},
    {IMK_OCTBSCAN_K_RANGE_COMMON, "What all cameras have in common", "common"},
    {0, NULL, NULL},
};

static const GEnumValue mirror_fit_values[] = {
    {IMK_OCTBSCAN_MIRROR_FIT_PHASE, "Wavenumbers and dispersion of the fringes",
        "phase"},
    {IMK_OCTBSCAN_MIRROR_FIT_MAP,
        "The dispersion alone; the wavenumbers of the calibration stay", "map"},
    {0, NULL, NULL},
};

static const GEnumValue sweeps_values[] = {
    {IMK_OCTBSCAN_SWEEPS_FORWARD, "None", "forward"},
    {IMK_OCTBSCAN_SWEEPS_ALTERNATING, "A-scans 1, 3, 5, ...", "alternating"},
    {IMK_OCTBSCAN_SWEEPS_ALTERNATING_BACK, "A-scans 0, 2, 4, ...",
        "alternating-back"},
    {0, NULL, NULL},
};

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
    {IMK_OCTBSCAN_RANGE_AUTO,
        "Percentiles 30 and 99.9 (99.7 of the linear image), the mean over the "
        "first 8 B-scans, held; the action reset-range begins anew",
        "auto"},
    {0, NULL, NULL},
};

/* --- the table ------------------------------------------------------------ */

static const GstImagingSetting settings[] = {
    GST_IMAGING_UINT ("cameras", LIVE, PLAN, Settings, config.n_cameras, 1,
        IMK_OCTBSCAN_MAX_CAMERAS, NULL,
        "Number of cameras whose lines alternate in the stream"),
    GST_IMAGING_UINT ("first-camera", LIVE, TURN, Settings, first_camera, 0,
        IMK_OCTBSCAN_MAX_CAMERAS - 1, NULL,
        "Camera of the first line of the stream, and of the next B-scan after "
        "this property is set. From there the turns continue from B-scan to "
        "B-scan, even if the lines of one are no multiple of cameras"),
    GST_IMAGING_PATH ("calibration", LIVE, PLAN, Settings, calibration,
        gst_oct_bscan_calibration_file_load,
        gst_oct_bscan_calibration_file_free,
        "An .ini file with a group [camera 0], [camera 1], ... for each "
        "camera, or [camera] for all; the reference page lists its keys. "
        "Without a file, pixels are evenly spaced in wavenumber"),
    GST_IMAGING_INT_ARRAY ("camera-order", LIVE, PLAN, Settings, camera_order,
        0, IMK_OCTBSCAN_MAX_CAMERAS - 1, NULL,
        "Numbers of the calibrations in the order of the lines, for example "
        "<1, 0>. Without it 0, 1, ..."),
    GST_IMAGING_STRING ("k-polynomial", LIVE, PLAN, Settings, k_polynomial,
        "Wavenumbers \"c0;c1;c2;...\" of the pixels, c0 + c1 v + c2 v^2 ..., v "
        "from -1 to 1 over the pixels, in the place of those of the "
        "calibration. One polynomial for all cameras, or one for each in the "
        "order of the lines, separated by commas. The action calibrate-mirror "
        "sets it"),
    GST_IMAGING_ENUM ("k-range", LIVE, PLAN, Settings, config.k_range,
        "GstOctBscanKRange", k_range_values,
        "Wavenumbers that the spectra are resampled to. With common a "
        "reflector is at the same depth for all cameras; needs their "
        "wavelengths"),
    GST_IMAGING_ENUM ("mirror-fit", LIVE, 0, Settings, mirror_fit,
        "GstOctBscanMirrorFit", mirror_fit_values,
        "What the action calibrate-mirror finds"),
    GST_IMAGING_ENUM ("sweeps", LIVE, 0, Settings, sweep.sweeps,
        "GstOctBscanSweeps", sweeps_values,
        "A-scans that a swept source recorded while it swept back: their "
        "samples are reversed before anything else. They are counted from the "
        "first line of the stream on, for each camera"),
    GST_IMAGING_UINT ("jitter-reach", LIVE, 0, Settings, sweep.jitter_reach, 0,
        IMK_OCTBSCAN_MAX_WIDTH, "samples",
        "Largest jitter of the trigger that is corrected, in whole samples "
        "either way. Records are shifted so that the calibration window fits "
        "its mean over the first B-scan. 0: no correction"),
    GST_IMAGING_UINT ("jitter-first", LIVE, 0, Settings, sweep.jitter_first, 0,
        IMK_OCTBSCAN_MAX_WIDTH, "samples",
        "First sample of the calibration window, in which all records have the "
        "same signal, of a sweep forward. More than jitter-reach"),
    GST_IMAGING_UINT ("jitter-samples", LIVE, 0, Settings, sweep.jitter_samples,
        4, IMK_OCTBSCAN_MAX_WIDTH, "samples",
        "Number of samples of the calibration window. More than jitter-reach "
        "samples are needed behind it"),
    GST_IMAGING_STRING ("dispersion", LIVE, PLAN, Settings, dispersion,
        "Dispersion phase \"d0;d1;d2;...\" in radians, which replaces that of "
        "the calibration. One polynomial for all cameras, or one for each in "
        "the order of the lines, separated by commas: \"0;0;-9,0;0;-8\". The "
        "actions estimate-dispersion and calibrate-mirror set it"),
    GST_IMAGING_ARRAY ("dispersion-2", LIVE, TUNE, Settings, dispersion_2, -1e9,
        1e9, "rad",
        "Quadratic term d2 of the dispersion in radians, for all cameras or "
        "for each in the order of the lines: <-9> or <-9,-8>. It replaces the "
        "d2 of dispersion and calibration, and takes effect at the next B-scan"),
    GST_IMAGING_ARRAY ("dispersion-3", LIVE, TUNE, Settings, dispersion_3, -1e9,
        1e9, "rad",
        "Cubic term d3 of the dispersion in radians, as dispersion-2"),
    GST_IMAGING_UINT ("upsample", LIVE, PLAN, Settings, config.upsample, 0,
        IMK_OCTBSCAN_MAX_POINTS, NULL,
        "Number M of wavenumbers that a spectrum is resampled to, at least its "
        "number of samples. The spectrum is first upsampled to M samples, "
        "except with interpolation=exact or if it already has M. 0: 4096, or "
        "the number of samples if that is larger"),
    GST_IMAGING_UINT ("scale", LIVE, PLAN, Settings, config.scale, 1, 64, NULL,
        "Zero padding factor s: the transform has s M points, of which M are "
        "data, and gives N s / 2 depths for spectra of N samples"),
    GST_IMAGING_ENUM ("interpolation", LIVE, PLAN, Settings,
        config.interpolation, "GstOctBscanInterpolation", interpolation_values,
        "How spectra are resampled to evenly spaced wavenumbers"),
    GST_IMAGING_ENUM ("grid", LIVE, PLAN, Settings, config.grid,
        "GstOctBscanGrid", grid_values, "Positions of the upsampled samples"),
    GST_IMAGING_ENUM ("taper", LIVE, PLAN, Settings, config.taper,
        "GstOctBscanTaper", taper_values,
        "Factor of the first and last taper-cut samples of short spectra"),
    GST_IMAGING_UINT ("taper-cut", LIVE, PLAN, Settings, config.taper_cut, 1,
        IMK_OCTBSCAN_MAX_WIDTH, "samples",
        "Number of samples that are tapered at each end of a spectrum"),
    GST_IMAGING_UINT ("taper-below", LIVE, PLAN, Settings, config.taper_below,
        0, IMK_OCTBSCAN_MAX_WIDTH + 1, "samples",
        "Spectra with fewer samples than this are tapered"),
    GST_IMAGING_ENUM ("window", LIVE, PLAN, Settings, config.window,
        "GstOctBscanWindow", window_values,
        "Window over the wavenumbers, applied before the transform"),
    GST_IMAGING_PATH ("window-location", LIVE, PLAN, Settings, window,
        gst_oct_bscan_load_curve, (GDestroyNotify) gst_imaging_nd_array_free,
        "Array file [n] over the wavenumbers, for window=file. If n is not M "
        "it is interpolated linearly"),
    GST_IMAGING_ENUM ("background", LIVE, PLAN, Settings,
        config.background_mode, "GstOctBscanBackground", background_values,
        "Background that is subtracted from each spectrum"),
    GST_IMAGING_PATH ("background-location", LIVE, PLAN, Settings, background,
        gst_imaging_setting_load_array,
        (GDestroyNotify) gst_imaging_nd_array_free,
        "Array file with one spectrum [samples], or one for each camera "
        "[cameras, samples], for background=file"),
    GST_IMAGING_UINT ("background-bscans", LIVE, PLAN, Settings,
        config.background_bscans, 1, G_MAXINT, NULL,
        "Number n of B-scans for background=running and first. At B-scan b the "
        "background m changes by (mean - m) / min (b, n)"),
    GST_IMAGING_UINT ("background-reach", LIVE, PLAN, Settings,
        config.background_reach, 1, IMK_OCTBSCAN_MAX_WIDTH, "samples",
        "Number w of samples on either side for background=rolling, which is "
        "the mean of 2 w + 1 samples, fewer at the ends"),
    GST_IMAGING_UINT ("crop-top", LIVE, PLAN, Settings, config.crop_top, 0,
        G_MAXINT, "depths",
        "Number of depths omitted at zero delay. They are not computed"),
    GST_IMAGING_UINT ("crop-bottom", LIVE, PLAN, Settings, config.crop_bottom,
        0, G_MAXINT, "depths",
        "Number of depths omitted at the far end. They are not computed"),
    GST_IMAGING_ENUM ("fixed-pattern", LIVE, PLAN, Settings,
        config.fixed_pattern, "GstOctBscanFixedPattern", pattern_values,
        "Fixed pattern noise that is subtracted after the transform. At each "
        "depth it is the mean of the segment of A-scans with the smallest "
        "variance (Moon 2010)"),
    GST_IMAGING_UINT ("pattern-segments", LIVE, PLAN, Settings,
        config.pattern_segments, 1, IMK_OCTBSCAN_MAX_HEIGHT, NULL,
        "Number of segments that the A-scans of a camera are divided into for "
        "fixed-pattern. Each segment keeps at least two A-scans"),
    GST_IMAGING_PATH ("pattern-location", LIVE, PLAN, Settings, pattern,
        gst_imaging_setting_load_array,
        (GDestroyNotify) gst_imaging_nd_array_free,
        "Array file, complex [depths] or [cameras, depths], for "
        "fixed-pattern=file. The action save-fixed-pattern writes such a file"),
    GST_IMAGING_ENUM ("scan-correction", LIVE, PLAN, Settings, config.scan,
        "GstOctBscanScan", scan_values,
        "Motion of the scanner. A-scans are interpolated to even distances, "
        "linear in intensity"),
    GST_IMAGING_PATH ("scan-curve", LIVE, PLAN, Settings, scan_curve,
        gst_oct_bscan_load_curve, (GDestroyNotify) gst_imaging_nd_array_free,
        "Array file for scan-correction=curve: the A-scan, a fractional "
        "number, that is shown in each column of the image. If it has another "
        "length than the B-scan it is interpolated linearly"),
    GST_IMAGING_BOOLEAN ("bidirectional", LIVE, PLAN, Settings,
        config.bidirectional,
        "Reverse the A-scans of every second B-scan, from the second on, "
        "because it is recorded while the mirror moves back"),
    GST_IMAGING_UINT ("average-ascans", LIVE, PLAN, Settings,
        config.average_ascans, 1, IMK_OCTBSCAN_MAX_HEIGHT, NULL,
        "Number of neighbouring A-scans that are averaged, in intensity, to "
        "one column. The last column may have fewer"),
    GST_IMAGING_UINT ("average-bscans", LIVE, PLAN, Settings, average_bscans, 1,
        G_MAXINT, NULL,
        "Number of B-scans that are averaged, in intensity, to one image with "
        "the time of the first. An incomplete average is output at EOS and "
        "before a gap, a new segment, a change of settings or a new format"),
    GST_IMAGING_ENUM ("tracking", LIVE, PLAN, Settings, config.tracking,
        "GstOctBscanTracking", tracking_values,
        "How the depth L of the sample is found in each B-scan. The image is "
        "shifted by round (mu - L), mu being the weighted mean of L over the "
        "last tracking-bscans B-scans"),
    GST_IMAGING_UINT ("tracking-top", LIVE, PLAN, Settings, config.tracking_top,
        0, G_MAXINT, "depths",
        "Number of depths at the top of the image that tracking ignores"),
    GST_IMAGING_UINT ("tracking-bottom", LIVE, PLAN, Settings,
        config.tracking_bottom, 0, G_MAXINT, "depths",
        "Number of depths at the bottom of the image that tracking ignores"),
    GST_IMAGING_UINT ("tracking-bscans", LIVE, PLAN, Settings,
        config.tracking_bscans, 1, IMK_OCTBSCAN_MAX_TRACKED, NULL,
        "Number of B-scans in the mean position that tracking aligns to"),
    GST_IMAGING_BOOLEAN ("tracking-lock", LIVE, 0, Settings,
        config.tracking_lock,
        "Hold the depth that tracking aligns to, so that volumes and averages "
        "do not drift: that of the B-scans so far, or of the first one. FALSE: "
        "it follows the last tracking-bscans B-scans"),
    GST_IMAGING_BOOLEAN ("tracking-complex", LIVE, PLAN, Settings,
        config.tracking_complex,
        "Tracking also shifts the pad complex, by fractions of a depth, so that "
        "octangio compares the same depths of the sample"),
    GST_IMAGING_PATH ("tracking-reference", LIVE, PLAN, Settings,
        tracking_reference, gst_oct_bscan_load_curve,
        (GDestroyNotify) gst_imaging_nd_array_free,
        "Array file [depths of the window] with a mean intensity profile that "
        "tracking aligns to, in the place of the B-scans' own"),
    GST_IMAGING_UINT ("tracking-reach", LIVE, PLAN, Settings,
        config.tracking_reach, 1, IMK_OCTBSCAN_MAX_POINTS, "depths",
        "Largest shift in depths that tracking=xcorr searches, at most half of "
        "the window"),
    GST_IMAGING_UINT ("bscans-per-volume", LIVE, PLAN, Settings,
        bscans_per_volume, 1, IMK_OCTBSCAN_MAX_HEIGHT, NULL,
        "Number of rows of an image of the pad enface, one for each B-scan or "
        "average of B-scans"),
    GST_IMAGING_ENUM ("enface-projection", LIVE, PLAN, Settings,
        config.projection, "GstOctBscanProjection", projection_values,
        "How an A-scan becomes a pixel of the pad enface"),
    GST_IMAGING_UINT ("enface-top", LIVE, PLAN, Settings, config.enface_top, 0,
        G_MAXINT, "depths",
        "Number of depths at the top of the image that enface ignores"),
    GST_IMAGING_UINT ("enface-bottom", LIVE, PLAN, Settings,
        config.enface_bottom, 0, G_MAXINT, "depths",
        "Number of depths at the bottom of the image that enface ignores"),
    GST_IMAGING_ENUM ("flip", LIVE, PLAN, Settings, config.flip,
        "GstOctBscanFlip", flip_values,
        "Mirror the images. The complex image is not mirrored"),
    GST_IMAGING_ENUM ("orientation", LIVE, PLAN, Settings, config.orientation,
        "GstOctBscanOrientation", orientation_values,
        "Direction of depth in the image"),
    GST_IMAGING_DOUBLE ("refractive-index", LIVE, 0, Settings, refractive_index,
        1, 5, NULL,
        "Refractive index of the sample, by which the depth scale in the "
        "metadata is divided. 1 gives depths in vacuum; tissue has 1.33 to "
        "1.45. The image does not change"),
    GST_IMAGING_DOUBLE ("lateral-step-um", LIVE, 0, Settings, lateral_step_um,
        0, 1e6, "um",
        "Distance between neighbouring A-scans in micrometres, for the "
        "metadata; 0: unknown. The image does not change"),
    GST_IMAGING_ENUM ("strategy", LIVE, PLAN | GST_IMAGING_NEUTRAL, Settings,
        config.strategy, "GstOctBscanStrategy", strategy_values,
        "How the image is computed. The result is the same"),
    GST_IMAGING_UINT ("max-in-flight", LIVE, PLAN | GST_IMAGING_NEUTRAL,
        Settings, max_in_flight, 1, 16, NULL,
        "Largest number of batches of B-scans on a GPU at a time, so that "
        "upload, computation and download overlap. With 1 each batch waits for "
        "the one before"),
    GST_IMAGING_INT_ARRAY ("cuda-devices", NEXT_START, GST_IMAGING_NEUTRAL,
        Settings, cuda_devices, GST_IMAGING_ALL_DEVICES, 1023, NULL,
        "GPUs that share the B-scans in proportion to their speed: <0, 1>, or "
        "<-1> for all. Without it only cuda-device-id is used. If settings "
        "depend on earlier B-scans (running background, tracking, "
        "average-bscans), only the first GPU works"),
    GST_IMAGING_UINT ("ascans-per-bscan", LIVE, PLAN, Settings,
        ascans_per_bscan, 0, IMK_OCTBSCAN_MAX_HEIGHT, NULL,
        "Number of lines of a B-scan, independent of the buffers; 0: the lines "
        "of a buffer"),
    GST_IMAGING_UINT ("skip-first-line", LIVE, PLAN, Settings, skip_first_line,
        0, IMK_OCTBSCAN_MAX_HEIGHT, NULL,
        "Number of lines that are omitted at the beginning of each B-scan, "
        "while the mirror returns. They count for the turns of the cameras"),
    GST_IMAGING_ENUM ("scaling", LIVE, 0, Settings, scaling,
        "GstOctBscanScaling", scaling_values,
        "Quantity that the pads src and enface show"),
    GST_IMAGING_ENUM ("range", LIVE, 0, Settings, config.range,
        "GstOctBscanRange", range_values,
        "How the levels shown as black and white are chosen"),
    GST_IMAGING_DOUBLE ("range-min", LIVE, 0, Settings, config.range_min, -200,
        300, "dB",
        "Level of dB images that is black with range=fixed; setting it selects "
        "range=fixed. 0 dB is a fringe with an amplitude of one count"),
    GST_IMAGING_DOUBLE ("range-max", LIVE, 0, Settings, config.range_max, -200,
        300, "dB",
        "Level of dB images that is white with range=fixed; setting it selects "
        "range=fixed"),
    GST_IMAGING_DOUBLE ("linear-min", LIVE, 0, Settings, config.linear_min, 0,
        1e30, "counts^2",
        "Intensity that is black in linear images (pad linear, scaling=linear) "
        "with range=fixed; setting it selects range=fixed. 1 is a fringe with "
        "an amplitude of one count"),
    GST_IMAGING_DOUBLE ("linear-max", LIVE, 0, Settings, config.linear_max, 0,
        1e30, "counts^2",
        "Intensity that is white in linear images with range=fixed; setting it "
        "selects range=fixed"),
    GST_IMAGING_DOUBLE ("percent-min", LIVE, 0, Settings, config.percent_min, 0,
        100, "%",
        "Percentile of the intensities that is black with range=percentile"),
    GST_IMAGING_DOUBLE ("percent-max", LIVE, 0, Settings, config.percent_max, 0,
        100, "%",
        "Percentile of the intensities that is white with range=percentile"),
};

static void
init_settings (gpointer data)
{
  Settings *s = data;

  s->average_bscans = 1;
  s->bscans_per_volume = 240;
  s->max_in_flight = 3;
  s->refractive_index = 1;
  imk_octbscan_config_init (&s->config);
  imk_octbscan_sweep_config_init (&s->sweep);
  s->config.range = IMK_OCTBSCAN_RANGE_AUTO;
  s->config.upsample = 0;
}

const GstImagingSettingsTable gst_oct_bscan_settings_table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .init = init_settings,
    .apply = gst_oct_bscan_apply_settings,
};

void
gst_oct_bscan_settings_set_found (
    GObject *element, const gchar *k_polynomial, const gchar *dispersion)
{
  g_autoptr (GstStructure) s = gst_structure_new (
      "settings", "dispersion", G_TYPE_STRING, dispersion, NULL);
  GValue none = G_VALUE_INIT;

  if (k_polynomial)
    gst_structure_set (s, "k-polynomial", G_TYPE_STRING, k_polynomial, NULL);
  g_value_init (&none, GST_TYPE_ARRAY);
  gst_structure_set_value (s, "dispersion-2", &none);
  gst_structure_take_value (s, "dispersion-3", &none);
  g_object_set (element, "settings", s, NULL);
}
