/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the two files of the engine share. */
#pragma once

#include "gstimagingcaps.h"
#include "gstimagingengine.h"
#include "gstimagingpeer.h"
#include "gstimagingsettings.h"

/* The caps in force. */
typedef struct {
  GstVideoInfo info;
  GstCaps *caps;
  GstImagingCapsMemory in_memory, out_memory; /* as the caps have it */
} Format;

struct _GstImagingEngine {
  GstElement *element;       /* the owner */
  const gchar *element_name; /* of its factory; interned */
  const GstImagingEngineFuncs *funcs;
  GstImagingSettings *settings; /* (nullable): these set it themselves */

  /* properties, under the object lock of the element */
  GstImagingBackendChoice choice;
  gint device_id;
  guint n_threads;
  const gchar *active_memory; /* static string */
  ImkBackend active;
  gboolean is_open;
  gint first_device; /* of cuda-devices at the start, or -1: before device_id */
  gboolean said_late;         /* that a property was set after the start */
  GstImagingContext *offered; /* by the application, before start */

  /* of the streaming thread */
  Format format;
  gint has_posted;  /* atomic; an error, since a kernel was last opened */
  gboolean gave_up; /* on the device, until the next start */
  GstImagingContext *context; /* written under the object lock */
  ImkStatus ahead;            /* until it is reported */
  ImkError ahead_error;
  gpointer stream;
  gsize slab_size; /* 0: none */
  GstBufferPool *import_pool;
  GstImagingPeer peer; /* frames of another device */

  GstImagingStats *stats;
};

/* Finds the context and makes the stream, where there is none. */
ImkStatus gst_imaging_engine_open_device (
    GstImagingEngine *self, ImkError *error);
void gst_imaging_engine_close_device (GstImagingEngine *self);

/* The neighbour's context is the one of its frames, where the user has named
 * no device and the application has brought no context. @input is in our
 * memory. */
void gst_imaging_engine_adopt_context (
    GstImagingEngine *self, GstBuffer *input);

/* Surfaces of NVMM are of the primary context: takes it, whatever neighbours
 * of other memory use, unless the application has brought one. Call with the
 * kernel closed. */
void gst_imaging_engine_prefer_primary (GstImagingEngine *self);

/* Call before frames of other caps. */
void gst_imaging_engine_close_import_pool (GstImagingEngine *self);
