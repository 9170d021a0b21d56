/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/**
 * gst_imaging_enum_type: (skip)
 * @name: of the type, with the Gst prefix
 * @values: static, ended by zeros
 *
 * For class_init functions: registers the enumeration of a property, once, and
 * marks it as part of the plug-in's documented API.
 *
 * Returns: the type
 */
GST_IMAGING_API
GType gst_imaging_enum_type (const gchar *name, const GEnumValue *values);

G_END_DECLS
