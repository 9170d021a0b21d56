/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The info of a sample of a volume: a structure of this name, with "number", a
 * guint64: of the frame, whose slice that is modulo the slices */
#define GST_IMAGING_VIEW_NUMBER "imaging-view-number"

typedef enum {
  GST_IMAGING_VIEW_U8,
  GST_IMAGING_VIEW_U16,
  GST_IMAGING_VIEW_I8,
  GST_IMAGING_VIEW_I16,
  GST_IMAGING_VIEW_U32,
  GST_IMAGING_VIEW_I32,
  GST_IMAGING_VIEW_U64,
  GST_IMAGING_VIEW_I64,
  GST_IMAGING_VIEW_F16,
  GST_IMAGING_VIEW_F32,
  GST_IMAGING_VIEW_F64,
} GstImagingViewType;

G_END_DECLS
