/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the first frames of a stream tell of settings that do not suit them. */
#pragma once

#include "gstshcentroidsettings.h"

#include "imk/shcentroid-fit.h"

/* All zero at the start of a stream. */
typedef struct {
  guint n_frames; /* of 16 bits that were looked at */
  guint most;     /* the largest sample of them, */
  guint64 n_most; /* how many equal it, */
  guint64 n_flat; /* and how many of these have four neighbours that do */
  guint64 n_samples;
  gboolean told_depth;
  guint n_lights; /* how often the light was measured */
  guint n_fits;   /* how often the cells were compared with the spots */
  guint n_waits;  /* frames until it is, after one without spots */
  guint n_dark;   /* such frames in a row; the waits become longer */
  guint n_looks;  /* searches for a threshold that found no spots */
  guint n_glances;
  gboolean is_dark; /* the last look found no spots */
  gboolean told_light, told_background, told_hot, told_pedestal;
  gboolean told_fit; /* of the cells in use */
  gboolean told_dim;
} GstShCentroidWatch;

/* Whether another frame of @type is wanted by _depth (). */
gboolean gst_sh_centroid_watch_wants_depth (const GstShCentroidWatch *self,
    const GstShCentroidSettings *settings, ImkType type);

/* @frame: of 16 bits, in host memory */
void gst_sh_centroid_watch_depth (
    GstShCentroidWatch *self, const ImkImage *frame);

/* As soon as it is certain: where the tops of spots are cut at a limit of
 * cameras in the first frame, else after more frames, or at the end of the
 * stream. Returns: (nullable) (transfer full): a sentence, once */
gchar *gst_sh_centroid_watch_tell_depth (
    GstShCentroidWatch *self, gboolean at_end);

/* Before every frame. @is_new: it is the first with @settings. Returns: whether
 * its light is to be measured */
gboolean gst_sh_centroid_watch_wants_light (GstShCentroidWatch *self,
    const GstShCentroidSettings *settings, gboolean is_new);

/* @light: of the frame; a dark one is followed by another look */
void gst_sh_centroid_watch_note (
    GstShCentroidWatch *self, const ImkShcentroidLight *light);

/* @config: of the kernel in use, with the parameters of the settings; @mode:
 * threshold-mode; @light: of the frame. Returns: (nullable) (transfer full): a
 * sentence, once */
gchar *gst_sh_centroid_watch_light (GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, gint mode,
    const ImkShcentroidLight *light);

/* Before the sentences on light, which follow from cells that do not fit.
 * Returns: whether @light looks like such cells, and imk_shcentroid_check_fit
 * () is worth its time; _fit () follows */
gboolean gst_sh_centroid_watch_wants_fit (const GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, const ImkShcentroidLight *light);

/* Returns: (nullable) (transfer full): a sentence, once for the same cells */
gchar *gst_sh_centroid_watch_fit (GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, const ImkShcentroidFit *fit);

/* Whether spots are so low that what else is told of light follows from it. */
gboolean gst_sh_centroid_watch_is_dim (const ImkShcentroidLight *light);

/* Returns: (transfer full) (nullable): a sentence on dim spots, once */
gchar *gst_sh_centroid_watch_dim (
    GstShCentroidWatch *self, const ImkShcentroidLight *light);

/* With the same light, and after it: an uneven background, hot pixels, and a
 * pedestal in the variances. Returns: as above */
gchar *gst_sh_centroid_watch_background (GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, gint mode,
    const ImkShcentroidLight *light);
gchar *gst_sh_centroid_watch_hot (
    GstShCentroidWatch *self, const ImkShcentroidLight *light);
gchar *gst_sh_centroid_watch_pedestal (GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, const ImkShcentroidLight *light);

/* Before every frame while threshold-mode=auto has not found a spot. Returns:
 * whether it is to look in this one: in each of the first 100, then seldom */
gboolean gst_sh_centroid_watch_looks (GstShCentroidWatch *self);

/* Before a look, which takes tens of ms and finds nothing in a dark frame.
 * Returns: whether there was no light at the last look, and none in those cells
 * whose turn it is now */
gboolean gst_sh_centroid_watch_stays_dark (GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, const ImkImage *frame);

/* The light is to be measured in a later frame: each time twice as far away, as
 * one frame of a hundred that takes long is the p99 of the stream. */
void gst_sh_centroid_watch_wait (GstShCentroidWatch *self);
