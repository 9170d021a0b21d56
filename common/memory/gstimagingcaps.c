/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingcaps.h"

#ifdef HAVE_GST_CUDA
#define WITH_CUDA TRUE
#else
#define WITH_CUDA FALSE
#endif
#ifdef HAVE_NVMM
#define WITH_NVMM TRUE
#else
#define WITH_NVMM FALSE
#endif

static GstImagingCapsMemory
memory_of (GstCaps *caps, guint i)
{
  GstCapsFeatures *features = gst_caps_get_features (caps, i);

  if (gst_caps_features_contains (features, GST_IMAGING_CAPS_FEATURE_CUDA))
    return GST_IMAGING_CAPS_CUDA;
  if (gst_caps_features_contains (features, GST_IMAGING_CAPS_FEATURE_NVMM))
    return GST_IMAGING_CAPS_NVMM;
  return GST_IMAGING_CAPS_SYSTEM;
}

GstImagingCapsMemory
gst_imaging_caps_memory (GstCaps *caps)
{
  return memory_of (caps, 0);
}

/* The structures of @caps that lie in @from, as if they lay in @feature. */
static GstCaps *
moved (GstCaps *caps, GstImagingCapsMemory from, const gchar *feature)
{
  GstCaps *copy = gst_caps_new_empty ();

  for (guint i = 0; i < gst_caps_get_size (caps); i++)
    if (memory_of (caps, i) == from)
      gst_caps_append_structure_full (copy,
          gst_structure_copy (gst_caps_get_structure (caps, i)),
          gst_caps_features_new (feature, NULL));
  return copy;
}

GstCaps *
gst_imaging_caps_add_memory (GstCaps *caps)
{
  GstCaps *all = gst_imaging_caps_keep_built (caps);

  if (gst_caps_is_any (all))
    return all;
  if (WITH_CUDA) {
    all = gst_caps_merge (all,
        moved (caps, GST_IMAGING_CAPS_SYSTEM, GST_IMAGING_CAPS_FEATURE_CUDA));
    all = gst_caps_merge (all, moved (caps, GST_IMAGING_CAPS_CUDA,
                                   GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY));
  }
  if (WITH_NVMM) {
    all = gst_caps_merge (all,
        moved (caps, GST_IMAGING_CAPS_SYSTEM, GST_IMAGING_CAPS_FEATURE_NVMM));
    all = gst_caps_merge (all, moved (caps, GST_IMAGING_CAPS_NVMM,
                                   GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY));
  }
  return all;
}

GstCaps *
gst_imaging_caps_keep_built (GstCaps *caps)
{
  GstCaps *kept = gst_caps_copy (caps);

  for (guint i = gst_caps_get_size (kept); i-- > 0;) {
    GstImagingCapsMemory memory = memory_of (kept, i);

    if ((!WITH_NVMM && memory == GST_IMAGING_CAPS_NVMM) ||
        (!WITH_CUDA && memory == GST_IMAGING_CAPS_CUDA))
      gst_caps_remove_structure (kept, i);
  }
  return kept;
}

GstCaps *
gst_imaging_caps_keep_system (GstCaps *caps)
{
  GstCaps *kept = gst_caps_copy (caps);

  for (guint i = gst_caps_get_size (kept); i-- > 0;)
    if (memory_of (kept, i) != GST_IMAGING_CAPS_SYSTEM)
      gst_caps_remove_structure (kept, i);
  return kept;
}

GstCaps *
gst_imaging_caps_sort_device_first (GstCaps *caps)
{
  GstCaps *first, *rest;

  if (gst_caps_is_any (caps))
    return caps;
  first = gst_caps_new_empty ();
  rest = gst_caps_new_empty ();
  for (guint i = 0; i < gst_caps_get_size (caps); i++)
    gst_caps_append (
        memory_of (caps, i) == GST_IMAGING_CAPS_SYSTEM ? rest : first,
        gst_caps_copy_nth (caps, i));
  gst_caps_unref (caps);
  gst_caps_append (first, rest);
  return first;
}
