/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of photostereo. */
#pragma once

#include "gstimagingsettings.h"
#include "gstphotostereoresult.h"

#include "imk/photostereo.h"

/* The meta that says which light a picture was taken under. */
#define GST_PHOTO_STEREO_LIGHT_META "GstImagingLight"

/* Of centre-x and centre-y: the middle. The least number that they take, as any
 * other may be meant. */
#define GST_PHOTO_STEREO_CENTRE -1e9

typedef enum {
  GST_PHOTO_STEREO_INDEX_ORDER,
  GST_PHOTO_STEREO_INDEX_META,
  GST_PHOTO_STEREO_INDEX_OFFSET,
} GstPhotoStereoIndexSource;

typedef enum {
  GST_PHOTO_STEREO_BANDS_BY_LIGHT,
  GST_PHOTO_STEREO_BANDS_BY_BAND,
} GstPhotoStereoBandOrder;

typedef enum {
  GST_PHOTO_STEREO_WINDOW_SET,
  GST_PHOTO_STEREO_WINDOW_SLIDING,
} GstPhotoStereoWindow;

typedef enum {
  GST_PHOTO_STEREO_UNITS_AUTO,
  GST_PHOTO_STEREO_UNITS_DIRECTIONS,
  GST_PHOTO_STEREO_UNITS_POSITIONS,
} GstPhotoStereoLightUnits;

/* The properties. */
typedef struct {
  ImkPhotostereoConfig config;         /* without frame, lights, scale */
  GstImagingFile *lights;              /* ImkPhotostereoLights */
  GstImagingFile *intensities;         /* GBytes: a text */
  GstImagingFile *dark, *white, *mask; /* GstImagingNdArray */
  GstImagingArray *cuda_devices;
  GstPhotoStereoLightUnits light_units;
  guint bit_depth;
  GstPhotoStereoIndexSource index_source;
  GstPhotoStereoBandOrder band_order;
  GstPhotoStereoWindow window;
  guint set_size, update_interval;
  guint64 memory_limit, host_memory_limit;
  gdouble mm_per_pixel; /* 0: not known */
  gdouble stop_below;
  gint y_down;
  gboolean next_light;
  GstPhotoStereoEncoding normal_encoding;
} GstPhotoStereoSettings;

/* The group of what needs a new kernel. */
enum { GST_PHOTO_STEREO_GEOMETRY = 1 };

extern const GstImagingSettingsTable gst_photo_stereo_table;

/* Of the table, in gstphotostereokernel.c. */
ImkStatus gst_photo_stereo_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error);

/* Of a format of video/x-bayer; NONE for others. */
ImkPhotostereoPattern gst_photo_stereo_pattern_of (const gchar *format);
