/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingbackend.h"

GType
gst_imaging_backend_choice_get_type (void)
{
  static const GEnumValue values[] = {
      {GST_IMAGING_BACKEND_AUTO,
          "CUDA where it is faster and there, else the CPU", "auto"},
      {GST_IMAGING_BACKEND_CPU, "The CPU", "cpu"},
      {GST_IMAGING_BACKEND_CUDA, "CUDA, or an error", "cuda"},
      {0, NULL, NULL},
  };
  static gsize type;

  if (g_once_init_enter (&type))
    g_once_init_leave (
        &type, g_enum_register_static ("GstImagingBackendChoice", values));
  return type;
}
