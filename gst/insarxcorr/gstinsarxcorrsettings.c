/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarxcorrsettings.h"

#include "gstimagingndarray.h"

#include "imk/insarxcorr-fit.h"

#define GMTSAR_FIT_SNR 18
#define FIT_SNR_OF_MODE -2 /* GMTSAR's with mode=compat, else significant */

#define KERNEL (1 << 0) /* what makes another kernel: all properties */
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

static const GstImagingSetting settings[] = {
    GST_IMAGING_UINT ("nx", NEXT_SET, KERNEL, Settings, config.nx, 1, 1000000,
        "patches",
        "Number of patches in a row. With patches of P columns, their centres "
        "are at x = P + i X / (nx + 3), i = 2..nx + 1, X = width - 3 P / 2"),
    GST_IMAGING_UINT ("ny", NEXT_SET, KERNEL, Settings, config.ny, 1, 1000000,
        "patches",
        "Number of rows of patches. With patches of Q lines, their centres are "
        "at y = Q + j Y / (ny + 1), j = 1..ny, Y = height - 3 Q / 2"),
    GST_IMAGING_ENUM ("grid", NEXT_SET, KERNEL, Settings, config.grid,
        "GstInsarXcorrGrid", grid_values,
        "Positions of the patches. gmtsar: steps X / (nx + 3) and Y / (ny + 1) "
        "are cut to whole numbers, so that dense grids end before the image "
        "does; even: steps keep their fraction; step: patches are step-x and "
        "step-y apart over the whole reference, and nx and ny are computed"),
    GST_IMAGING_UINT ("step-x", NEXT_SET, KERNEL, Settings, config.step_x, 1,
        1 << 24, "columns",
        "Columns between neighbouring patches, with grid=step"),
    GST_IMAGING_UINT ("step-y", NEXT_SET, KERNEL, Settings, config.step_y, 1,
        1 << 30, "lines",
        "Lines between neighbouring rows of patches, with grid=step"),
    GST_IMAGING_UINT ("xsearch", NEXT_SET, KERNEL, Settings, config.xsearch, 4,
        1024, "columns",
        "Largest offset in columns that is searched in either direction. With "
        "mode=compat a patch is 4 xsearch wide, the template 2 xsearch, and "
        "only xsearch / range-interp columns are searched, as in GMTSAR"),
    GST_IMAGING_UINT ("ysearch", NEXT_SET, KERNEL, Settings, config.ysearch, 4,
        1024, "lines",
        "Largest offset in lines that is searched in either direction. With "
        "mode=compat a patch is 4 ysearch high, the template 2 ysearch"),
    GST_IMAGING_UINT ("window-width", NEXT_SET, KERNEL, Settings,
        config.window_width, 0, 2048, "columns",
        "Width of the template in columns with mode=precise, at least 8; 0: 2 "
        "xsearch"),
    GST_IMAGING_UINT ("window-height", NEXT_SET, KERNEL, Settings,
        config.window_height, 0, 2048, "lines",
        "Height of the template in lines with mode=precise, at least 8; 0: 2 "
        "ysearch"),
    GST_IMAGING_ENUM ("mode", NEXT_SET, KERNEL, Settings, config.mode,
        "GstInsarXcorrMode", mode_values,
        "compat: the results of GMTSAR's xcorr, to the printed decimal. "
        "precise: the carrier is removed, both axes are oversampled before "
        "detection, the correlation is normalised, and the peak is not bound "
        "to the steps of the search. Its errors are a fifth to three quarters "
        "of those of compat"),
    GST_IMAGING_UINT ("range-interp", NEXT_SET, KERNEL, Settings,
        config.range_interp, 1, 16, NULL,
        "Oversampling factor of the columns by FFT, before the amplitude is "
        "taken; 1: none"),
    GST_IMAGING_UINT ("azimuth-interp", NEXT_SET, KERNEL, Settings,
        config.azimuth_interp, 1, 4, NULL,
        "Oversampling factor of the lines with mode=precise; 1: none"),
    GST_IMAGING_UINT ("interp", NEXT_SET, KERNEL, Settings, config.interp, 1,
        64, NULL,
        "Steps per sample in which the peak of the correlation is searched; 1: "
        "none. With mode=compat, offsets are multiples of 1 / (range-interp "
        "interp) columns and 1 / interp lines"),
    GST_IMAGING_ENUM ("method", NEXT_SET, KERNEL, Settings, config.method,
        "GstInsarXcorrMethod", method_values,
        "Measure that is maximised with mode=compat. freq: plain correlation; "
        "time: normalised correlation, as GMTSAR's -time; time4: that of "
        "squares, as -time4. The last two take xsearch ysearch times as long"),
    GST_IMAGING_BOOLEAN ("use-shift", NEXT_SET, KERNEL, Settings, use_shift,
        "Start the search at the rshift and ashift of the secondary"),
    GST_IMAGING_PATH ("mask-location", NEXT_SET, KERNEL, Settings, mask,
        gst_insar_load_mask, (GDestroyNotify) gst_imaging_nd_array_free,
        "Array file [lines, columns] of u8 or bool that covers the whole "
        "reference, in any resolution. Patches whose centre is 0 there are "
        "omitted"),
    GST_IMAGING_PATH ("gross-offsets-location", NEXT_SET, KERNEL, Settings,
        gross_offsets, gst_insar_load_gross_offsets,
        gst_insar_free_gross_offsets,
        "Array file [ny, nx, 2] with the columns and lines, rounded, around "
        "which each patch is searched. They are added to rshift and ashift"),
    GST_IMAGING_OUTPUT ("offsets-location", NEXT_SET, KERNEL, Settings, offsets,
        "File to write with the planes of the pad rasters, one pixel per "
        "patch: a GeoTIFF if the name ends in .tif, otherwise bare numbers "
        "with an ENVI header (.hdr) and a .vrt beside them"),
    GST_IMAGING_DOUBLE ("min-valid", NEXT_SET, KERNEL, Settings,
        config.min_valid, 0, 1, NULL,
        "Smallest share of valid samples (finite and not 0) that a patch needs "
        "in both images. Patches with less are flagged and excluded from the "
        "fit"),
    GST_IMAGING_UINT64 ("memory-limit", NEXT_SET, KERNEL | GST_IMAGING_NEUTRAL,
        Settings, config.memory_limit, 0, G_MAXUINT64, "bytes",
        "Largest memory in bytes for lines and intermediate results, on the "
        "device for CUDA; 0: as much as is useful. Results do not depend on it"),
    GST_IMAGING_INT_ARRAY ("cuda-devices", NEXT_START,
        KERNEL | GST_IMAGING_NEUTRAL, Settings, cuda_devices,
        GST_IMAGING_ALL_DEVICES, 1023, NULL,
        "GPUs that share the patches of each row: <0, 1>, or <-1> for all. The "
        "first replaces cuda-device-id. Results do not depend on it"),
    GST_IMAGING_INT ("fit-range", NEXT_SET, KERNEL, Settings, fit_range, 0,
        IMK_INSARXCORR_FIT_MAX_TERMS, "terms",
        "Number of terms of the polynomial that is fitted to the range "
        "offsets. 1: shift; 2: and stretch along range; 3: and along azimuth; "
        "up to 10 for cubic terms; 0: no fit"),
    GST_IMAGING_INT ("fit-azimuth", NEXT_SET, KERNEL, Settings, fit_azimuth, 0,
        IMK_INSARXCORR_FIT_MAX_TERMS, "terms",
        "Number of terms of the polynomial that is fitted to the azimuth "
        "offsets, as fit-range"),
    GST_IMAGING_DOUBLE ("fit-snr", NEXT_SET, KERNEL, Settings,
        config.min_correlation, -2, 100, "percent",
        "Patches with a correlation, 0 to 100, above this value are used in "
        "the fit; the others are flagged. -1: auto, the value that 1 % of "
        "patches of noise reach; -2: 18 with mode=compat, as GMTSAR, and auto "
        "with mode=precise"),
};

static void
init_settings (gpointer data)
{
  GstInsarSettings *self = data;
  ImkInsarxcorrConfig *c = &self->config;

  self->use_shift = TRUE;
  self->fit_range = self->fit_azimuth = 3;
  imk_insarxcorr_config_init (c);
  c->min_correlation = FIT_SNR_OF_MODE;
}

const GstImagingSettingsTable gst_insar_xcorr_table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (GstInsarSettings),
    .timeless = TRUE,
    .replan = KERNEL,
    .has_engine = TRUE,
    .init = init_settings,
    .apply = gst_insar_xcorr_apply,
};

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
