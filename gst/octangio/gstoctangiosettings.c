/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctangiosettings.h"

#include "gstimagingndarray.h"

static const GEnumValue method_values[] = {
    {IMK_OCTANGIO_MEAN, "Mean intensity", "mean"},
    {IMK_OCTANGIO_SPECKLE_VARIANCE, "Variance of the amplitude",
        "speckle-variance"},
    {IMK_OCTANGIO_DECORRELATION, "Decorrelation of the amplitude",
        "decorrelation"},
    {IMK_OCTANGIO_COMPLEX_DECORRELATION,
        "Decorrelation of amplitude and phase, over the window",
        "complex-decorrelation"},
    {IMK_OCTANGIO_DOPPLER, "Phase from one to the next, over the window",
        "doppler"},
    {IMK_OCTANGIO_EIGEN, "Power without the strongest eigenvectors", "eigen"},
    {0, NULL, NULL},
};

static const GEnumValue pairs_values[] = {
    {IMK_OCTANGIO_PAIRS_BSCANS, "The same pixel of consecutive repeats",
        "bscans"},
    {IMK_OCTANGIO_PAIRS_ASCANS, "Neighbouring A-scans of each B-scan",
        "ascans"},
    {0, NULL, NULL},
};

static const GEnumValue enface_values[] = {
    {GST_OCT_ANGIO_ENFACE_NONE, "An image of each set of repeats", "none"},
    {GST_OCT_ANGIO_ENFACE_MEAN, "A view from above: the mean of the slab",
        "mean"},
    {GST_OCT_ANGIO_ENFACE_MAXIMUM, "A view from above: the largest of the slab",
        "maximum"},
    {0, NULL, NULL},
};

static const GEnumValue surface_values[] = {
    {GST_OCT_ANGIO_SURFACE_NONE,
        "The slab lies between two depths, or the "
        "surfaces of surfaces-location",
        "none"},
    {GST_OCT_ANGIO_SURFACE_CONTOUR,
        "The slab lies below the depth where each A-scan is brightest",
        "contour"},
    {0, NULL, NULL},
};

static const GEnumValue falling_values[] = {
    {GST_OCT_ANGIO_FALLING_FALSE, "Wavelengths fall with the samples", "false"},
    {GST_OCT_ANGIO_FALLING_TRUE, "Wavelengths rise with the samples", "true"},
    {GST_OCT_ANGIO_FALLING_AUTO,
        "As the calibration of octbscan says; false without wavelengths",
        "auto"},
    {0, NULL, NULL},
};

static const GstImagingSetting settings[] = {
    GST_IMAGING_UINT ("repeats", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, config.n_repeats, 1, IMK_OCTANGIO_MAX_REPEATS,
        NULL,
        "Number N of consecutive B-scans of one place, which become one image"),
    GST_IMAGING_ENUM ("method", LIVE, GST_OCT_ANGIO_KERNEL, GstOctAngioSettings,
        config.method, "GstOctAngioMethod", method_values,
        "What is computed for each pixel; the reference page has the formulas"),
    GST_IMAGING_ENUM ("pairs", LIVE, GST_OCT_ANGIO_KERNEL, GstOctAngioSettings,
        config.pairs, "GstOctAngioPairs", pairs_values,
        "Which pixels method=doppler compares"),
    GST_IMAGING_BOOLEAN ("bulk-motion", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, config.bulk_motion,
        "Subtract the phase that most pixels of an A-scan have from one to the "
        "next, for method=doppler and complex-decorrelation"),
    GST_IMAGING_UINT ("lateral-window", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, config.lateral, 1, IMK_OCTANGIO_MAX_WINDOW,
        "A-scans",
        "Number of A-scans of the window that method=doppler and "
        "complex-decorrelation add up, and that method=eigen takes its "
        "eigenvectors from"),
    GST_IMAGING_UINT ("depth-window", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, config.axial, 1, IMK_OCTANGIO_MAX_WINDOW, "depths",
        "Number of depths of this window"),
    GST_IMAGING_UINT ("tissue-components", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, config.n_tissue, 1, IMK_OCTANGIO_MAX_REPEATS - 1,
        NULL,
        "Number K of the strongest eigenvectors that method=eigen removes as "
        "tissue, below repeats"),
    GST_IMAGING_UINT ("bands", LIVE, GST_OCT_ANGIO_KERNEL, GstOctAngioSettings,
        config.n_bands, 1, IMK_OCTANGIO_MAX_BANDS, NULL,
        "Number B of bands of the spectrum whose decorrelations "
        "method=decorrelation averages. The noise falls with the square root "
        "of B, the resolution in depth with B. 1: the whole spectrum"),
    GST_IMAGING_UINT ("depth-scale", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, config.depth_scale, 0, IMK_OCTANGIO_MAX_SCALE,
        NULL,
        "The property scale of octbscan, from which bands finds the ends of "
        "the spectrum. 0: as octbscan tells; 1 where it does not"),
    GST_IMAGING_DOUBLE ("floor", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, floor_db, -200, 300, "dB",
        "Pixels whose mean intensity is below are 0. -200: none. 0 dB is a "
        "fringe with an amplitude of one count"),
    GST_IMAGING_DOUBLE ("wavelength-nm", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, wavelength_nm, 0, 20000, "nm",
        "Wavelength in the middle of the wavenumbers. 0: that of the "
        "calibration of octbscan"),
    GST_IMAGING_DOUBLE ("interval-us", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, interval_us, 0, 1e9, "us",
        "Time from one to the next of the pixels that are compared: between "
        "B-scans, or with pairs=ascans between A-scans. With it and a "
        "wavelength method=doppler is in mm/s; with 0 it is in radians"),
    GST_IMAGING_DOUBLE ("refractive-index", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, refractive_index, 0, 5, NULL,
        "Refractive index n of the sample, at least 1: v = phase wavelength / "
        "(4 pi n interval). 0: that of octbscan"),
    GST_IMAGING_ENUM ("falling-wavenumbers", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, falling, "GstOctAngioFalling", falling_values,
        "Whether the wavenumbers fall with the samples of a spectrum, so that "
        "a phase that rises is motion to smaller depths. Positive flow is to "
        "larger depths"),
    GST_IMAGING_DOUBLE ("range-min", LIVE, 0, GstOctAngioSettings, range_min,
        -1e30, 1e30, NULL,
        "Value that is black in images of 8 and 16 bits, in the unit of the "
        "method. Equal to range-max: the range of the method"),
    GST_IMAGING_DOUBLE ("range-max", LIVE, 0, GstOctAngioSettings, range_max,
        -1e30, 1e30, NULL, "Value that is white, likewise"),
    GST_IMAGING_ENUM ("enface", LIVE, GST_OCT_ANGIO_KERNEL, GstOctAngioSettings,
        enface, "GstOctAngioEnface", enface_values,
        "Project the slab between two surfaces, a row for each set of repeats"),
    GST_IMAGING_UINT ("bscans-per-volume", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, bscans_per_volume, 1, IMK_OCTANGIO_MAX_SIDE, NULL,
        "Number of rows of a view from above"),
    GST_IMAGING_UINT ("enface-top", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, enface_top, 0, G_MAXINT, "depths",
        "First depth of the slab, or the distance below the first surface"),
    GST_IMAGING_UINT ("enface-bottom", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, enface_bottom, 0, G_MAXINT, "depths",
        "Depths at the bottom that the slab leaves out, or its distance above "
        "the second surface"),
    GST_IMAGING_PATH ("surfaces-location", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, surfaces, gst_imaging_setting_load_array,
        (GDestroyNotify) gst_imaging_nd_array_free,
        "Array file [2, A-scans], or [rows, 2, A-scans] with one pair for each "
        "row: the depths of the two surfaces that bound the slab"),
    GST_IMAGING_UINT ("enface-depths", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, enface_depths, 0, G_MAXINT, "depths",
        "Number of depths of the slab from its top. 0: as far as its bottom"),
    GST_IMAGING_ENUM ("surface", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, surface, "GstOctAngioSurface", surface_values,
        "Surface that is found in each set of repeats; enface-top is the "
        "distance of the slab below it"),
    GST_IMAGING_UINT ("surface-top", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, surface_top, 0, G_MAXINT, "depths",
        "First depth where the surface can be"),
    GST_IMAGING_UINT ("surface-window", LIVE, GST_OCT_ANGIO_KERNEL,
        GstOctAngioSettings, surface_window, 1, IMK_OCTANGIO_MAX_WINDOW,
        "A-scans",
        "The surface is the median of this many A-scans, so that single bright "
        "pixels count for nothing. 1: no median"),
};

static void
init_settings (gpointer data)
{
  GstOctAngioSettings *s = data;

  imk_octangio_config_init (&s->config);
  s->config.depth_scale = 0; /* as the input tells */
  s->floor_db = -200;
  s->falling = GST_OCT_ANGIO_FALLING_AUTO;
  s->bscans_per_volume = 240;
  s->surface_window = 9;
}

const GstImagingSettingsTable gst_oct_angio_table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (GstOctAngioSettings),
    .has_engine = TRUE,
    .init = init_settings,
    .apply = gst_oct_angio_apply,
};
