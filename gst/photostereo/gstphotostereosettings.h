/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of photostereo but those of the engine, and their values. */
#pragma once

#include "gstphotostereopad.h"

#include "photostereo/photostereo.h"

G_BEGIN_DECLS

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
  GST_PHOTO_STEREO_UNITS_AUTO,
  GST_PHOTO_STEREO_UNITS_DIRECTIONS,
  GST_PHOTO_STEREO_UNITS_POSITIONS,
} GstPhotoStereoLightUnits;

/* The properties as they were at one moment. */
typedef struct {
  ImkPhotostereoConfig config; /* without frame and lights */
  gchar *lights_location, *intensities_location;
  gchar *dark_location, *white_location, *mask_location;
  gchar *cuda_devices; /* counts at the start */
  GstPhotoStereoLightUnits light_units;
  guint bit_depth;
  GstPhotoStereoIndexSource index_source;
  GstPhotoStereoBandOrder band_order;
  guint set_size, update_interval;
  guint64 host_memory_limit;
  gdouble stop_below;
  gboolean next_light;
  GstPhotoStereoEncoding normal_encoding;
  guint geometry; /* counts changes of what needs a new kernel */
} GstPhotoStereoSettings;

void gst_photo_stereo_settings_install (GObjectClass *klass);

/* The defaults. */
void gst_photo_stereo_settings_init (GstPhotoStereoSettings *self);
/* Returns: with strings of its own, for ..._clear () */
GstPhotoStereoSettings gst_photo_stereo_settings_copy (
    const GstPhotoStereoSettings *self);
void gst_photo_stereo_settings_clear (GstPhotoStereoSettings *self);

/* Returns: FALSE when @id is none of them */
gboolean gst_photo_stereo_settings_set (
    GstPhotoStereoSettings *self, guint id, const GValue *value);
gboolean gst_photo_stereo_settings_get (
    const GstPhotoStereoSettings *self, guint id, GValue *value);

/* Of a format of video/x-bayer; NONE for others. */
ImkPhotostereoPattern gst_photo_stereo_pattern_of (const gchar *format);

G_END_DECLS
