/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarxcorrsettings.h"

#include "imk/insarxcorr-fit.h"

#define DEFAULT_PROP_USE_SHIFT TRUE
#define DEFAULT_PROP_FIT_RANGE 3
#define DEFAULT_PROP_FIT_AZIMUTH 3
#define DEFAULT_PROP_FIT_SNR FIT_SNR_OF_MODE

#define GMTSAR_FIT_SNR 18
#define FIT_SNR_OF_MODE -2 /* GMTSAR's with mode=compat, else significant */

#define KERNEL GST_INSAR_SETTINGS_KERNEL
typedef GstInsarSettings Settings;

static const GEnumValue grid_values[] = {
    {IMK_INSARXCORR_GRID_GMTSAR, "Whole steps, which end early", "gmtsar"},
    {IMK_INSARXCORR_GRID_EVEN, "Over the whole reference", "even"},
    {IMK_INSARXCORR_GRID_STEP, "Steps of step-x and step-y", "step"},
    {0, NULL, NULL},
};

static const GEnumValue mode_values[] = {
    {IMK_INSARXCORR_COMPAT, "GMTSAR's numbers", "compat"},
    {IMK_INSARXCORR_PRECISE, "Both axes oversampled, normalised", "precise"},
    {0, NULL, NULL},
};

static const GEnumValue method_values[] = {
    {IMK_INSARXCORR_FREQ, "Plain correlation, by FFT", "freq"},
    {IMK_INSARXCORR_TIME, "Normalised correlation", "time"},
    {IMK_INSARXCORR_TIME4, "Normalised correlation of squares", "time4"},
    {0, NULL, NULL},
};

const GstImagingSetting gst_insar_settings[GST_INSAR_N_SETTINGS] = {
    GST_IMAGING_UINT ("nx", NEXT_SET, KERNEL, Settings, config.nx, 1, 1000000,
        "patches",
        "Patches a row. With patches of P columns, their centres are at x = "
        "P + i X / (nx + 3), i = 2..nx + 1, X = width - 3 P / 2"),
    GST_IMAGING_UINT ("ny", NEXT_SET, KERNEL, Settings, config.ny, 1, 1000000,
        "patches",
        "Rows of patches. With patches of Q lines, their centres are at y = "
        "Q + j Y / (ny + 1), j = 1..ny, Y = height - 3 Q / 2"),
    GST_IMAGING_ENUM ("grid", NEXT_SET, KERNEL, Settings, config.grid,
        "GstInsarXcorrGrid", grid_values,
        "gmtsar: the steps X / (nx + 3) and Y / (ny + 1) are cut to whole "
        "numbers, so that dense grids end before the image; even: they are "
        "not; step: patches are step-x and step-y apart from corner to "
        "corner of the reference, and nx and ny follow"),
    GST_IMAGING_UINT ("step-x", NEXT_SET, KERNEL, Settings, config.step_x, 1,
        1 << 24, "columns", "grid=step: columns from one patch to the next"),
    GST_IMAGING_UINT ("step-y", NEXT_SET, KERNEL, Settings, config.step_y, 1,
        1 << 30, "lines",
        "grid=step: lines from one row of patches to the next"),
    GST_IMAGING_UINT ("xsearch", NEXT_SET, KERNEL, Settings, config.xsearch, 4,
        1024, "columns",
        "Columns that are searched either way; with mode=compat only xsearch / "
        "range-interp columns, as in GMTSAR, a patch being 4 xsearch wide and "
        "the template 2"),
    GST_IMAGING_UINT ("ysearch", NEXT_SET, KERNEL, Settings, config.ysearch, 4,
        1024, "lines",
        "Lines that are searched either way. mode=compat: a patch is 4 of "
        "it high, the template 2"),
    GST_IMAGING_UINT ("window-width", NEXT_SET, KERNEL, Settings,
        config.window_width, 0, 2048, "columns",
        "mode=precise: columns of the template, from 8 on; 0 for 2 xsearch"),
    GST_IMAGING_UINT ("window-height", NEXT_SET, KERNEL, Settings,
        config.window_height, 0, 2048, "lines",
        "mode=precise: lines of the template, from 8 on; 0 for 2 ysearch"),
    GST_IMAGING_ENUM ("mode", NEXT_SET, KERNEL, Settings, config.mode,
        "GstInsarXcorrMode", mode_values,
        "compat: what GMTSAR's xcorr measures, to the printed decimal; "
        "precise: the carrier is taken away and both axes become finer "
        "before detection, the correlation is normalised, and the peak is not "
        "bound to its steps: errors of a fifth to three quarters"),
    GST_IMAGING_UINT ("range-interp", NEXT_SET, KERNEL, Settings,
        config.range_interp, 1, 16, NULL,
        "Finer columns a column, by FFT, before the amplitude is taken; 1 for "
        "none"),
    GST_IMAGING_UINT ("azimuth-interp", NEXT_SET, KERNEL, Settings,
        config.azimuth_interp, 1, 4, NULL,
        "mode=precise: finer lines a line; 1 for none"),
    GST_IMAGING_UINT ("interp", NEXT_SET, KERNEL, Settings, config.interp, 1,
        64, NULL,
        "Steps a sample in which the peak of the correlation is found. "
        "mode=compat: offsets are multiples of 1 / (range-interp interp) "
        "columns and 1 / interp lines; 1 for none"),
    GST_IMAGING_ENUM ("method", NEXT_SET, KERNEL, Settings, config.method,
        "GstInsarXcorrMethod", method_values,
        "mode=compat: what is largest at the offset: freq: the plain "
        "correlation; time: the normalised one, as GMTSAR's -time; time4: of "
        "squares, as -time4. The last two take xsearch ysearch times as long"),
    GST_IMAGING_BOOLEAN ("use-shift", NEXT_SET, KERNEL, Settings, use_shift,
        "Whether the search begins at the rshift and ashift of the secondary"),
    GST_IMAGING_PATH ("mask-location", NEXT_SET, KERNEL, Settings, mask,
        gst_insar_load_mask, gst_insar_free_mask,
        "An array file, [lines, columns] of u8 or bool, of any size, that "
        "covers the whole reference: patches whose centre lies on a 0 are "
        "left out"),
    GST_IMAGING_PATH ("gross-offsets-location", NEXT_SET, KERNEL, Settings,
        gross_offsets, gst_insar_load_gross_offsets,
        gst_insar_free_gross_offsets,
        "An array file, [ny, nx, 2] of numbers: columns and lines, rounded, "
        "around which each patch is sought, beside rshift and ashift"),
    GST_IMAGING_PATH ("offsets-location", NEXT_SET, KERNEL, Settings, offsets,
        NULL, NULL,
        "File to write with the planes of the pad rasters, one pixel a patch: a "
        "GeoTIFF where the name ends with .tif, else bare numbers with an ENVI "
        "header (.hdr) and a .vrt beside them"),
    GST_IMAGING_DOUBLE ("min-valid", NEXT_SET, KERNEL, Settings,
        config.min_valid, 0, 1, NULL,
        "Part of the samples of a patch that must be data, neither 0 nor not "
        "finite, in both images; patches with less are flagged and take no "
        "part in the fit"),
    GST_IMAGING_UINT64 ("memory-limit", NEXT_SET, KERNEL | GST_IMAGING_NEUTRAL,
        Settings, config.memory_limit, 0, G_MAXUINT64, "bytes",
        "Bytes that lines and the work on them may take at most, on the "
        "device for CUDA; 0 for as many as are of use. Results do not depend "
        "on it"),
    GST_IMAGING_INT_ARRAY ("cuda-devices", NEXT_START,
        KERNEL | GST_IMAGING_NEUTRAL, Settings, cuda_devices,
        GST_IMAGING_ALL_DEVICES, 1023, NULL,
        "GPUs that share the patches of each row: \"<0, 1>\", or \"<-1>\" for "
        "all; the first takes the place of cuda-device-id. Results do not depend on "
        "it"),
    GST_IMAGING_INT ("fit-range", NEXT_SET, KERNEL, Settings, fit_range, 0,
        IMK_INSARXCORR_FIT_MAX_TERMS, "terms",
        "Terms of the polynomial that is fitted to the offsets in range: 1 "
        "shift, 2 and stretch along range, 3 and along azimuth, up to 10 for "
        "cubic ones; 0 for no fit at all"),
    GST_IMAGING_INT ("fit-azimuth", NEXT_SET, KERNEL, Settings, fit_azimuth, 0,
        IMK_INSARXCORR_FIT_MAX_TERMS, "terms",
        "Terms of the polynomial in azimuth, as fit-range"),
    GST_IMAGING_DOUBLE ("fit-snr", NEXT_SET, KERNEL, Settings,
        config.min_correlation, -2, 100, "percent",
        "Patches whose correlation, 0 to 100, is above it take part in the "
        "fit; the others are flagged. -1: auto, what one patch of noise in "
        "100 reaches, from the sizes of template and search; -2: 18 with "
        "mode=compat, as GMTSAR's, and auto with mode=precise"),
};

void
gst_insar_settings_init (gpointer settings)
{
  GstInsarSettings *self = settings;
  ImkInsarxcorrConfig *c = &self->config;

  self->use_shift = DEFAULT_PROP_USE_SHIFT;
  self->fit_range = DEFAULT_PROP_FIT_RANGE;
  self->fit_azimuth = DEFAULT_PROP_FIT_AZIMUTH;
  imk_insarxcorr_config_init (c);
  c->min_correlation = DEFAULT_PROP_FIT_SNR;
}

gdouble
gst_insar_settings_min_correlation (const GstInsarSettings *self)
{
  const ImkInsarxcorrConfig *c = &self->config;

  if (c->min_correlation >= 0)
    return c->min_correlation;
  return c->mode == IMK_INSARXCORR_COMPAT && c->min_correlation < -1
             ? GMTSAR_FIT_SNR
             : IMK_INSARXCORR_SIGNIFICANT;
}
