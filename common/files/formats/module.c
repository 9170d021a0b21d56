/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the module has, of the formats whose libraries were there. */
#include "gstimagingformat.h"

static const GstImagingFormatTable *const tables[] = {
#ifdef HAVE_PNG
    &gst_imaging_format_png,
#endif
#ifdef HAVE_TIFF
    &gst_imaging_format_tiff,
#endif
#ifdef HAVE_FITS
    &gst_imaging_format_fits,
#endif
#ifdef HAVE_EXR
    &gst_imaging_format_exr,
#endif
#ifdef HAVE_JPEG
    &gst_imaging_format_jpeg,
#endif
#ifdef HAVE_RAW
    &gst_imaging_format_raw,
#endif
#ifdef HAVE_THORLABS
    &gst_imaging_format_thorlabs,
    &gst_imaging_format_npz, /* of the same library */
#endif
    NULL,
};

GST_IMAGING_API const GstImagingFormatModule gst_imaging_format_module;

const GstImagingFormatModule gst_imaging_format_module = {
    .abi = GST_IMAGING_FORMAT_ABI,
    .tables = tables,
#ifdef HAVE_JSON
    .parse_json = gst_imaging_format_parse_json,
#endif
};
