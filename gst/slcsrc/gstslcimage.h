/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An SLC image in a file: what it is and how its lines are read. slcsrc knows
 * no more of files than this. */
#pragma once

#include <gst/gst.h>

#include "gstimagingndarray.h"
#include "insar/gstinsarplace.h"
#include "insar/gstinsarslc.h"

typedef enum {
  GST_SLC_FORMAT_AUTO,
  GST_SLC_FORMAT_CI16,
  GST_SLC_FORMAT_CF32,
  GST_SLC_FORMAT_F32,
} GstSlcFormat;

#define GST_SLC_MAX_WIDTH (1 << 24)
#define GST_SLC_MAX_HEIGHT (1 << 30)

typedef struct _GstSlcImage GstSlcImage;

struct _GstSlcImage {
  gchar *path;          /* of the samples, as messages call it */
  GstInsarSlcInfo info; /* line_size is not set */
  gchar *other; /* a file of the same name beside the PRM file, or NULL */
  guint64 rest; /* bytes behind the last whole line */
  GstInsarPlace place;
  gchar *contradiction;   /* in the PRM file, as a sentence, or NULL */
  gboolean looks_swapped; /* the bytes of the samples */
  gboolean has_no_data;
  gdouble no_data; /* the value of samples without data, never NaN */

  /* Reads @n lines from @first on into packed memory. */
  gboolean (*read) (
      GstSlcImage *self, guint64 first, guint n, gpointer data, GError **error);
  gint fd;                /* of raw samples and .npy, else -1 */
  GstImagingNdArray *npy; /* the header of .npy, else NULL; in Fortran order
                           * also the values */
  gpointer dataset;       /* of GDAL, else NULL */
  GDestroyNotify close;   /* the same */
  gboolean allow_urls;
  gpointer band; /* the same */
};

/* Returns: the type of @format, @automatic for AUTO */
ImkType gst_slc_format_type (GstSlcFormat format, ImkType automatic);

/* Returns: bytes of a line */
gsize gst_slc_image_line_size (const GstSlcImage *self);

/**
 * gst_slc_image_open_prm, gst_slc_image_open_raw, gst_slc_image_open_npy,
 * gst_slc_image_open_gdal:
 * @format: of the samples; AUTO for what GMTSAR has (ci16), or what is nearest
 *   to what the image has
 * @band: 1 for the first
 * @allow_urls: whether GDAL may open what files name in the network
 * @error: GST_RESOURCE_ERROR or GST_STREAM_ERROR, with a sentence for the user
 *
 * Returns: (transfer full): the image, at its first line; NULL with @error set
 */
GstSlcImage *gst_slc_image_open_prm (
    const gchar *location, GstSlcFormat format, GError **error);
GstSlcImage *gst_slc_image_open_raw (
    const gchar *path, GstSlcFormat format, guint width, GError **error);
GstSlcImage *gst_slc_image_open_npy (
    const gchar *location, GstSlcFormat format, GError **error);
GstSlcImage *gst_slc_image_open_gdal (const gchar *location,
    GstSlcFormat format, guint band, gboolean allow_urls, GError **error);

void gst_slc_image_free (GstSlcImage *self);
