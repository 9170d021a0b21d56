/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstslcresamplesettings.h"

#include "insar/gstinsarplane.h"
#include "insar/gstinsarprm.h"

#define MAX_OFFSET 1e5 /* ISCE2 writes -999999 where it knows none */

static const GEnumValue doppler_values[] = {
    {GST_SLC_RESAMPLE_DOPPLER_AUTO, "Of the caps, or else of the data", "auto"},
    {GST_SLC_RESAMPLE_DOPPLER_CAPS, "Of the caps, 0 without", "caps"},
    {GST_SLC_RESAMPLE_DOPPLER_DATA, "Measured on the first lines", "data"},
    {0, NULL, NULL},
};

static gpointer
load_fit (const gchar *property, const gchar *location, ImkError *error)
{
  g_autofree GstInsarPrmAlignment *fit = g_new (GstInsarPrmAlignment, 1);
  g_autoptr (GError) why = NULL;

  if (gst_insar_prm_load_alignment (location, fit, &why))
    return g_steal_pointer (&fit);
  imk_error_set (error, IMK_ERROR_FILE, "%s", why->message);
  return NULL;
}

static gpointer
load_reference (const gchar *property, const gchar *location, ImkError *error)
{
  g_autoptr (GError) why = NULL;
  GstInsarPrm *prm = gst_insar_prm_load (location, &why);

  if (!prm)
    imk_error_set (error, IMK_ERROR_FILE, "%s", why->message);
  return prm;
}

static gpointer
load_offsets (const gchar *property, const gchar *location, ImkError *error)
{
  GstInsarPlane *plane = gst_insar_plane_load (location, error);
  gsize n = plane ? (gsize) plane->width * plane->height : 0;

  if (plane && gst_insar_plane_fill (plane, MAX_OFFSET) == n) {
    imk_error_set (error, IMK_ERROR_FILE,
        "\"%s\" has no offset in %u x %u pixels.", plane->name, plane->width,
        plane->height);
    g_clear_pointer (&plane, gst_insar_plane_free);
  }
  return plane;
}

#define KERNEL (1 << 0) /* what makes another kernel */

#define GEOMETRY(NAME, MEMBER, MOST, UNIT, BLURB) \
  GST_IMAGING_DOUBLE (NAME, NEXT_SET, KERNEL, GstSlcResampleSettings, \
      config.MEMBER, -(MOST), MOST, UNIT, BLURB)

static const GstImagingSetting settings[] = {
    GST_IMAGING_PATH ("fit-location", NEXT_SET, KERNEL, GstSlcResampleSettings,
        fit, load_fit, g_free,
        "Path of a file with the lines rshift, sub_int_r, stretch_r, "
        "a_stretch_r and the same for azimuth: the output of the pad fit of "
        "insarxcorr, of insarfit or fitoffset.csh, or a PRM file that contains "
        "them"),
    GST_IMAGING_PATH ("reference-location", NEXT_SET, KERNEL,
        GstSlcResampleSettings, reference, load_reference,
        (GDestroyNotify) gst_insar_prm_free,
        "Path of the PRM file of the reference, whose size the output gets"),
    GST_IMAGING_UINT ("width", NEXT_SET, KERNEL, GstSlcResampleSettings,
        config.out_width, 0, 1 << 24, "samples",
        "Number of columns of the output. 0: that of reference-location, "
        "otherwise that of the input"),
    GST_IMAGING_UINT ("height", NEXT_SET, KERNEL, GstSlcResampleSettings,
        config.out_height, 0, 1 << 30, "lines",
        "Number of lines of the output. 0: that of reference-location, "
        "otherwise that of the input"),
    GEOMETRY ("shift-r", shift[0], 1e6, "columns",
        "Shift in columns of column 0 of line 0, added to that of the fit"),
    GEOMETRY ("stretch-r", stretch[0], IMK_SLCRESAMPLE_MAX_STRETCH, NULL,
        "Change of the shift in columns from one column to the next, added to "
        "that of the fit"),
    GEOMETRY ("a-stretch-r", a_stretch[0], IMK_SLCRESAMPLE_MAX_STRETCH, NULL,
        "Change of the shift in columns from one line to the next, added to "
        "that of the fit"),
    GEOMETRY ("shift-a", shift[1], 1e6, "lines",
        "Shift in lines of column 0 of line 0, added to that of the fit"),
    GEOMETRY ("stretch-a", stretch[1], IMK_SLCRESAMPLE_MAX_STRETCH, NULL,
        "Change of the shift in lines from one column to the next, added to "
        "that of the fit"),
    GEOMETRY ("a-stretch-a", a_stretch[1], IMK_SLCRESAMPLE_MAX_STRETCH, NULL,
        "Change of the shift in lines from one line to the next, added to that "
        "of the fit"),
    GST_IMAGING_PATH ("range-offsets", NEXT_SET, KERNEL, GstSlcResampleSettings,
        offsets[0], load_offsets, (GDestroyNotify) gst_insar_plane_free,
        "Path of a raster with offsets in columns, added to those of the fit: "
        "r.grd of GMTSAR, range.off of ISCE2, .npy, GeoTIFF. Its pixels cover "
        "the reference; those without offset take that of their neighbours"),
    GST_IMAGING_PATH ("azimuth-offsets", NEXT_SET, KERNEL,
        GstSlcResampleSettings, offsets[1], load_offsets,
        (GDestroyNotify) gst_insar_plane_free,
        "The same in lines: a.grd, azimuth.off"),
    GST_IMAGING_ARRAY ("range-polynomial", NEXT_SET, KERNEL,
        GstSlcResampleSettings, polynomials[0], -1e9, 1e9, "columns",
        "Up to 10 coefficients of 1, r, a, r a, r^2, a^2, r^3, r^2 a, r a^2, "
        "a^3 for column r and line a, added to the other offsets in columns"),
    GST_IMAGING_ARRAY ("azimuth-polynomial", NEXT_SET, KERNEL,
        GstSlcResampleSettings, polynomials[1], -1e9, 1e9, "lines",
        "The same in lines"),
    GST_IMAGING_UINT ("taps", NEXT_SET, KERNEL, GstSlcResampleSettings,
        config.taps, 4, IMK_SLCRESAMPLE_MAX_TAPS, "samples",
        "Number of input samples along each axis for one output sample, an "
        "even number. With bandwidth=0.85 the error is 29 dB below the signal "
        "for 8, 49 dB for 16"),
    GST_IMAGING_DOUBLE ("bandwidth", NEXT_SET, KERNEL, GstSlcResampleSettings,
        config.bandwidth, 0.1, 1, NULL,
        "Share of the sampling rate that the signal fills along each axis. The "
        "weights are optimal for a flat spectrum of this width"),
    GST_IMAGING_ENUM ("doppler", NEXT_SET, KERNEL, GstSlcResampleSettings,
        doppler, "GstSlcResampleDoppler", doppler_values,
        "Source of the centre of the spectrum in azimuth. caps: the doppler of "
        "the caps (fd1 / PRF of a PRM file); data: the phase between the first "
        "64 lines; auto: caps if present, otherwise data"),
};

static void
init_settings (gpointer data)
{
  imk_slcresample_config_init (&((GstSlcResampleSettings *) data)->config);
}

const GstImagingSettingsTable gst_slc_resample_table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (GstSlcResampleSettings),
    .timeless = TRUE,
    .replan = KERNEL,
    .has_engine = TRUE,
    .init = init_settings,
};
