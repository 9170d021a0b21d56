/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingsettings.h"

G_BEGIN_DECLS

/**
 * GstImagingArgument: (skip)
 * @kind: GST_IMAGING_KIND_UINT, GST_IMAGING_KIND_DOUBLE,
 *   GST_IMAGING_KIND_STRING or GST_IMAGING_KIND_PATH, of a file that is written
 *
 * An argument of an action.
 */
typedef struct {
  const gchar *name;
  GstImagingKind kind;
} GstImagingArgument;

/**
 * GST_IMAGING_MAX_ARGUMENTS: (skip)
 *
 * The most arguments of an action.
 */
#define GST_IMAGING_MAX_ARGUMENTS 2

/**
 * GstImagingAction: (skip)
 * @handler: takes the element, then the arguments
 * @result: G_TYPE_NONE or G_TYPE_BOOLEAN
 * @arguments: those that are used have a name
 * @files: likewise: properties of the element whose file may be the one that is
 *   written
 * @blurb: what it does, and what its arguments mean
 *
 * An action signal of an element.
 */
typedef struct {
  const gchar *name;
  GCallback handler;
  GType result;
  GstImagingArgument arguments[GST_IMAGING_MAX_ARGUMENTS];
  const gchar *files[2];
  const gchar *blurb;
} GstImagingAction;

/**
 * gst_imaging_actions_install: (skip)
 * @klass: of the element, in its class_init()
 * @actions: static, ended by one without a name
 *
 * Makes the action signals of an element.
 */
GST_IMAGING_API
void gst_imaging_actions_install (
    GObjectClass *klass, const GstImagingAction *actions);

/**
 * gst_imaging_actions_describe:
 * @type: of an element of gst-imaging
 *
 * The actions of an element as JSON: an array of objects with `name`, `blurb`,
 * `arguments` (objects with `name` and `type`: "int", "double", "string", or
 * "path" of a file that is written) and `files` (properties of the element that
 * may name the same file).
 *
 * Returns: (transfer full): JSON; an empty array for elements without actions
 */
GST_IMAGING_API
gchar *gst_imaging_actions_describe (GType type);

G_END_DECLS
