/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of insarform. */
#include "gstinsarform-private.h"

#include "insar/gstinsarorbit.h"
#include "insar/gstinsarplane.h"

static const GEnumValue shade_values[] = {
    {IMK_INSARFORM_SHADE_NONE, "Full colours", "none"},
    {IMK_INSARFORM_SHADE_COHERENCE, "Times the coherence", "coherence"},
    {IMK_INSARFORM_SHADE_AMPLITUDE, "Times the amplitude", "amplitude"},
    {0, NULL, NULL},
};

static const GEnumValue flatten_values[] = {
    {GST_INSAR_FORM_FLATTEN_NONE, "No phase is removed", "none"},
    {GST_INSAR_FORM_FLATTEN_MEASURED,
        "A smooth phase with the fringe rates of the images", "measured"},
    {GST_INSAR_FORM_FLATTEN_ORBIT, "That of the ellipsoid, from the orbits",
        "orbit"},
    {GST_INSAR_FORM_FLATTEN_DEM,
        "That of the heights of dem-location, from the orbits", "dem"},
    {0, NULL, NULL},
};

static const GEnumValue surface_values[] = {
    {GST_INSAR_FORM_DEM_ELLIPSOID, "The ellipsoid: z.rdr of ISCE2",
        "ellipsoid"},
    {GST_INSAR_FORM_DEM_SPHERE,
        "The sphere of earth_radius of the PRM file: topo_ra.grd of GMTSAR",
        "sphere"},
    {0, NULL, NULL},
};

static const GEnumValue filter_values[] = {
    {GST_INSAR_FORM_FILTER_NONE, "No filter", "none"},
    {GST_INSAR_FORM_FILTER_GOLDSTEIN, "Of Goldstein and Werner (1998)",
        "goldstein"},
    {0, NULL, NULL},
};

static gpointer
load_orbit (const gchar *property, const gchar *location, ImkError *error)
{
  return gst_insar_orbit_load (location, error);
}

static gpointer
load_dem (const gchar *property, const gchar *location, ImkError *error)
{
  return gst_insar_plane_load (location, error);
}

#define KERNEL (1 << 0) /* what makes another kernel */

#define LOCATION(NAME, PICTURE, WHAT) \
  GST_IMAGING_OUTPUT (NAME, NEXT_SET, 0, GstInsarFormSettings, \
      locations[GST_INSAR_PICTURE_##PICTURE], \
      "File to write with " WHAT \
      ": a GeoTIFF if the name ends in .tif, otherwise bare numbers with an " \
      "ENVI header (.hdr) and a .vrt beside them")

static const GstImagingSetting settings[] = {
    GST_IMAGING_UINT ("looks-x", NEXT_SET, KERNEL, GstInsarFormSettings,
        config.looks_x, 1, IMK_INSARFORM_MAX_LOOKS, "samples",
        "Number of columns that are averaged to one cell"),
    GST_IMAGING_UINT ("looks-y", NEXT_SET, KERNEL, GstInsarFormSettings,
        config.looks_y, 1, IMK_INSARFORM_MAX_LOOKS, "samples",
        "Number of lines that are averaged to one cell"),
    GST_IMAGING_UINT ("window-x", NEXT_SET, KERNEL, GstInsarFormSettings,
        config.window_x, 1, IMK_INSARFORM_MAX_WINDOW, "cells",
        "Width of the coherence window in cells, an odd number"),
    GST_IMAGING_UINT ("window-y", NEXT_SET, KERNEL, GstInsarFormSettings,
        config.window_y, 1, IMK_INSARFORM_MAX_WINDOW, "cells",
        "Height of the coherence window in cells, an odd number"),
    GST_IMAGING_ENUM ("shade", NEXT_SET, KERNEL, GstInsarFormSettings, shade,
        "GstInsarFormShade", shade_values,
        "What dims the colours of the phase: nothing, the coherence, or the "
        "amplitude divided by amplitude-max"),
    GST_IMAGING_DOUBLE ("amplitude-max", NEXT_SET, KERNEL, GstInsarFormSettings,
        amplitude_max, 0, G_MAXFLOAT, "counts",
        "Amplitude that is shown as white. 0: 2.5 times the mean of the image"),
    GST_IMAGING_ENUM ("flatten", NEXT_SET, KERNEL, GstInsarFormSettings,
        flatten, "GstInsarFormFlatten", flatten_values,
        "The phase that is removed from each sample before looks and "
        "coherence. measured needs no file; orbit needs reference-orbit and "
        "secondary-orbit; dem also dem-location"),
    GST_IMAGING_BOOLEAN ("restore-phase", NEXT_SET, KERNEL,
        GstInsarFormSettings, config.restore,
        "Put the phase that flatten removed back into the cells: that of the "
        "middle of each cell. Coherence keeps its gain"),
    GST_IMAGING_UINT ("fringe-window", NEXT_SET, KERNEL, GstInsarFormSettings,
        fringe_window, 16, IMK_INSARFORM_MAX_TRANSFORM, "samples",
        "Side of the windows in which flatten=measured measures fringe rates: "
        "16, 32, 64 or 128. Larger ones find fringes of less coherence, "
        "smaller ones follow bent fringes"),
    GST_IMAGING_PATH ("reference-orbit", NEXT_SET, KERNEL, GstInsarFormSettings,
        orbits[0], load_orbit, (GDestroyNotify) gst_insar_orbit_free,
        "Path of the PRM file (GMTSAR) of the reference with the LED file that "
        "it names, or of the XML file of its frame or burst (ISCE2)"),
    GST_IMAGING_PATH ("secondary-orbit", NEXT_SET, KERNEL, GstInsarFormSettings,
        orbits[1], load_orbit, (GDestroyNotify) gst_insar_orbit_free,
        "The same of the secondary. Its state vectors alone count"),
    GST_IMAGING_PATH ("grid-orbit", NEXT_SET, KERNEL, GstInsarFormSettings,
        grid, load_orbit, (GDestroyNotify) gst_insar_orbit_free,
        "The same of a third image in whose columns and lines the reference "
        "and the secondary are: that of a stack. Without it they are in those "
        "of the reference"),
    GST_IMAGING_PATH ("dem-location", NEXT_SET, KERNEL, GstInsarFormSettings,
        dem, load_dem, (GDestroyNotify) gst_insar_plane_free,
        "Path of a raster of heights in m in the radar coordinates of the "
        "reference (of grid-orbit, if given), in any resolution: .npy, or any "
        "format of GDAL. Samples without height have no data"),
    GST_IMAGING_ENUM ("dem-surface", NEXT_SET, KERNEL, GstInsarFormSettings,
        dem_surface, "GstInsarFormDemSurface", surface_values,
        "What the heights of dem-location are above"),
    GST_IMAGING_BOOLEAN ("unbias-coherence", NEXT_SET, KERNEL,
        GstInsarFormSettings, config.unbias,
        "Coherence sqrt (max (0, (n g^2 - 1) / (n - 1))) in the place of g, n "
        "being the samples of the window, taken for independent"),
    GST_IMAGING_DOUBLE ("range-bandwidth", NEXT_SET, KERNEL,
        GstInsarFormSettings, config.range_band, 0, 1, "cycles/sample",
        "Width of the spectra along the range, as a part of the sampling rate: "
        "what only one image sees at the fringe rate of the phase that flatten "
        "removes is left out. 0: no common-band filter along the range"),
    GST_IMAGING_DOUBLE ("azimuth-bandwidth", NEXT_SET, KERNEL,
        GstInsarFormSettings, config.azimuth_band, 0, 1, "cycles/sample",
        "Width of the spectra along the azimuth, as a part of the PRF: what "
        "only one image sees, by the Doppler centroids of both, is left out. "
        "0: no common-band filter along the azimuth"),
    GST_IMAGING_ENUM ("filter", NEXT_SET, KERNEL, GstInsarFormSettings, filter,
        "GstInsarFormFilter", filter_values,
        "Filter of the phase of the cells; amplitude and coherence stay"),
    GST_IMAGING_DOUBLE ("filter-alpha", NEXT_SET, KERNEL, GstInsarFormSettings,
        filter_alpha, 0, 1, NULL,
        "Exponent of the filter. 0: no filter; 1: the strongest"),
    GST_IMAGING_UINT ("filter-window", NEXT_SET, KERNEL, GstInsarFormSettings,
        config.filter_window, 8, IMK_INSARFORM_MAX_TRANSFORM, "cells",
        "Side of the patches of the filter: 8, 16, 32, 64 or 128"),
    LOCATION ("phase-location", PHASE, "the phase in rad, float32"),
    LOCATION ("coherence-location", COHERENCE, "the coherence, float32"),
    LOCATION ("amplitude-location", AMPLITUDE, "the amplitude, float32"),
    LOCATION ("interferogram-location", INTERFEROGRAM,
        "the interferogram, complex float32"),
    LOCATION ("removed-location", REMOVED,
        "the phase that flatten removed, in rad, float32"),
};

static void
init_settings (gpointer data)
{
  GstInsarFormSettings *s = data;

  imk_insarform_config_init (&s->config);
  s->config.looks_x = s->config.looks_y = 2;
  s->fringe_window = 32;
  s->filter_alpha = 0.5;
}

const GstImagingSettingsTable gst_insar_form_table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (GstInsarFormSettings),
    .timeless = TRUE,
    .replan = KERNEL,
    .has_engine = TRUE,
    .init = init_settings,
};
