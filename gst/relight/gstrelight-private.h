/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the element share. */
#pragma once

#include <gst/base/gstaggregator.h>

#include "gstimagingpicture.h"
#include "gstimagingsettings.h"

#include "imk/relight.h"

#define GST_TYPE_RELIGHT (gst_relight_get_type ())
G_DECLARE_FINAL_TYPE (GstRelight, gst_relight, GST, RELIGHT, GstAggregator)

GST_ELEMENT_REGISTER_DECLARE (relight);

GST_DEBUG_CATEGORY_EXTERN (relight_debug);
#define GST_CAT_DEFAULT relight_debug

/* The properties. */
typedef struct {
  ImkRelightConfig config; /* without the size */
  gint y_down;
  gboolean mouse;
} GstRelightSettings;

struct _GstRelight {
  GstAggregator parent;

  GstImagingEngine *engine;
  GstImagingSettings *settings;
  GstPad *normal;
  GstPad *albedo;      /* (nullable); under the object lock */
  gboolean has_albedo; /* likewise: while it is made, used and removed */

  /* of the aggregating thread, which also handles events of the pads */
  GstImagingPicture normal_picture, albedo_picture; /* written under the lock */
  gboolean has_caps;
  gboolean refused;       /* an error was posted for the caps */
  gboolean is_discont;    /* the next picture does not continue the last */
  GQueue held;            /* of gst_imaging_aggregator_keep_event () */
  GstBuffer *current;     /* (nullable): the albedo in use */
  GstBufferPool *imports; /* of albedos that the device cannot read in place */
  ImkRelight *kernel;
};

/* Releases the albedo, and the pool, whose size may no longer fit. */
void gst_relight_forget_albedo (GstRelight *self);

extern const GstImagingEngineFuncs gst_relight_engine_funcs;

/* Renders @normals with the albedo in use into @out. Returns: as
 * gst_imaging_engine_process () */
GstFlowReturn gst_relight_render (
    GstRelight *self, GstBuffer *normals, GstBuffer *out);

/* Of a GstRelightSettings. */
extern const GstImagingSettingsTable gst_relight_table;

/* Of the table. */
ImkStatus gst_relight_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error);
