/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a video format means to the kernel: planes, ranges, light, and where to
 * sharpen. */
#pragma once

#include "gstlapsharpen.h"

#include "gstimagingpicture.h"

#include "imk/lapsharpen.h"

G_BEGIN_DECLS

typedef enum {
  GST_LAP_SHARPEN_PLANES_LUMA,
  GST_LAP_SHARPEN_PLANES_ALL,
} GstLapSharpenPlanes;

typedef enum {
  GST_LAP_SHARPEN_RANGE_AUTO,
  GST_LAP_SHARPEN_RANGE_FULL,
  GST_LAP_SHARPEN_RANGE_LIMITED,
} GstLapSharpenRange;

typedef enum {
  GST_LAP_SHARPEN_LIGHT_STORED,
  GST_LAP_SHARPEN_LIGHT_LINEAR,
} GstLapSharpenLight;

/* The properties. The format in the configuration is filled in by plane. */
typedef struct {
  ImkLapsharpenConfig config; /* without the kernel */
  GstImagingFile *kernel;
  GstImagingFile *mask; /* its data is a #GstLapSharpenMask */
  GstLapSharpenPlanes planes;
  GstLapSharpenRange range;
  GstLapSharpenLight light;
  guint bit_depth;
  guint focus_columns, focus_rows; /* 0: no tiles */
  guint x, y, width, height;       /* the region; width, height 0: to the end */
  gboolean roi_meta;
  gdouble split;
} GstLapSharpenSettings;

/* Weights of 0 to 255, row by row. */
typedef struct {
  guint width, height;
  guint8 weights[];
} GstLapSharpenMask;

/* What imk_lapsharpen_new () reads by pointers. */
typedef struct {
  guint16 *decode, *encode;
  guint8 *mask;
} GstLapSharpenTables;

/* Parts of a frame, in its pixels; no more than the kernel takes. */
typedef struct {
  guint n;
  ImkLapsharpenArea areas[IMK_LAPSHARPEN_MAX_AREAS];
} GstLapSharpenAreas;

/* Fills in the format of @config for one plane. */
void gst_lap_sharpen_describe_plane (const GstVideoInfo *info, guint plane,
    const GstLapSharpenSettings *settings, ImkLapsharpenConfig *config);

/* Reads width:height, or channels:width:height, of float32. */
ImkStatus gst_lap_sharpen_read_tensor (
    GstCaps *caps, GstImagingPicture *picture, ImkError *error);

/* Fills in the format of @config for a tensor. */
void gst_lap_sharpen_describe_tensor (
    const GstImagingPicture *picture, ImkLapsharpenConfig *config);

/* Lets @config point to what one plane needs, in @tables. */
void gst_lap_sharpen_make_tables (const GstVideoInfo *info, guint plane,
    const GstLapSharpenSettings *settings, ImkLapsharpenConfig *config,
    GstLapSharpenTables *tables);
void gst_lap_sharpen_clear_tables (GstLapSharpenTables *tables);

/* Reads the file of mask-location. */
gpointer gst_lap_sharpen_load_mask (
    const gchar *property, const gchar *location, ImkError *error);
ImkStatus gst_lap_sharpen_check_mask (const GstVideoInfo *info,
    const GstLapSharpenSettings *settings, ImkError *error);

/* Where to sharpen a frame of @info. @buffer: (nullable): with metas
 * Returns: FALSE when it has more than fit */
gboolean gst_lap_sharpen_get_areas (const GstVideoInfo *info,
    const GstLapSharpenSettings *settings, GstBuffer *buffer,
    GstLapSharpenAreas *areas);

/* Sets the areas of a plane that config->width and config->height say. */
void gst_lap_sharpen_set_areas (const GstVideoInfo *info,
    const GstLapSharpenAreas *areas, ImkLapsharpenConfig *config);

G_END_DECLS
