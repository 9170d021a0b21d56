/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/base/gstbasetransform.h>

#define GST_TYPE_SPHERE_LIGHTS (gst_sphere_lights_get_type ())
G_DECLARE_FINAL_TYPE (
    GstSphereLights, gst_sphere_lights, GST, SPHERE_LIGHTS, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE (spherelights);
