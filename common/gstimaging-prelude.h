/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/gst.h>

#ifdef BUILDING_GST_IMAGING
#define GST_IMAGING_API __attribute__ ((visibility ("default"))) extern
#else
#define GST_IMAGING_API extern
#endif
