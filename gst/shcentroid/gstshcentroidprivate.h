/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element itself, for the files that it is made of. */
#pragma once

#include "gstimagingfilter.h"
#include "gstshcentroidcapture.h"
#include "gstshcentroidkernel.h"
#include "gstshcentroidsettings.h"
#include "gstshcentroidtally.h"
#include "gstshcentroidwatch.h"

#define GST_TYPE_SH_CENTROID (gst_sh_centroid_get_type ())
G_DECLARE_FINAL_TYPE (
    GstShCentroid, gst_sh_centroid, GST, SH_CENTROID, GstImagingFilter)

GST_ELEMENT_REGISTER_DECLARE (shcentroid);

GST_DEBUG_CATEGORY_EXTERN (gst_sh_centroid_debug);
#define GST_CAT_DEFAULT gst_sh_centroid_debug

struct _GstShCentroid {
  GstImagingFilter parent;

  GstImagingSettings *settings;

  /* under the object lock */
  GstShCentroidCapture request;
  gchar *find_location; /* of the action find-grid, for the next frame */

  /* of the streaming thread; whether a capture is under way changes under the
   * object lock */
  GstShCentroidCapture capture; /* of the same kind as a request */
  GstShCentroidKernel open;
  gboolean in_radians;
  GstShCentroidWatch watch;
  gboolean light_is_new;    /* no frame was measured with these settings */
  ImkShcentroidLight light; /* of the first frame, for threshold-mode=auto */
  GstShCentroidTally tally;
  gpointer stream;     /* of the last frame; NULL on the CPU */
  gboolean hands_over; /* the next frame, if it can be */
  guint hinted;        /* bits of gst_sh_centroid_hint () that were told */
  /* the find-grid-location that has been served; only compared */
  guint found; /* its serial */
};

/* Those in use. */
static inline const GstShCentroidSettings *
gst_sh_centroid_now (GstShCentroid *self)
{
  return gst_imaging_settings_now (self->settings);
}

/* Whether the next frame is searched for its grid. */
gboolean gst_sh_centroid_finds_grid (GstShCentroid *self);

/* The signals capture-... and find-grid. */
void gst_sh_centroid_add_requests (GstShCentroidClass *klass);

/* Before a frame is measured: takes over what was asked for since the last, and
 * looks for the grid when that was asked for. Without one in the frame the old
 * grid stays, with a warning; when there is no old one it is an error. */
ImkStatus gst_sh_centroid_take_requests (
    GstShCentroid *self, const ImkImage *in, ImkError *error);

/* A frame that has been measured on @stream. */
ImkStatus gst_sh_centroid_capture_frame (
    GstShCentroid *self, const ImkImage *in, gpointer stream, ImkError *error);

/* At the end of the stream. */
void gst_sh_centroid_drop_capture (GstShCentroid *self);
