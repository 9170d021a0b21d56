/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/**
 * GstImagingOrigin: (skip)
 * @element: name of the element's factory, "shcentroid"; not copied
 * @backend: that computed: "cpu" or "cuda"; not copied
 * @settings_hash: (nullable): gst_imaging_settings_hash()
 *
 * What made a result or an image. See gst_imaging_engine_origin().
 */
typedef struct {
  const gchar *element;
  const gchar *backend;
  const gchar *settings_hash;
} GstImagingOrigin;

/**
 * gst_imaging_origin_element: (skip)
 * Returns: the name of the factory of @element, of its type where it has none;
 *   interned
 */
GST_IMAGING_API
const gchar *gst_imaging_origin_element (GstElement *element);

/**
 * gst_imaging_origin_set: (skip)
 * @structure: of a meta or a message
 * @origin: without an element nothing is set
 *
 * Sets the strings `element`, `version` (IMK_VERSION), `backend` and
 * `settings-hash`.
 */
GST_IMAGING_API
void gst_imaging_origin_set (
    GstStructure *structure, const GstImagingOrigin *origin);

/**
 * gst_imaging_origin_set_of: (skip)
 * @structure: of a message
 *
 * Sets the same strings from the properties of @element: what it works with
 * now. Any thread.
 */
GST_IMAGING_API
void gst_imaging_origin_set_of (GstStructure *structure, GstElement *element);

G_END_DECLS
