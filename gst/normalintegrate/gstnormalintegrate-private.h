/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the element share. */
#pragma once

#include "gstimagingpicture.h"
#include "gstimagingsrcpads.h"
#include "gstimagingelement.h"
#include "gstnormalintegratealbedo.h"
#include "gstnormalintegrateconfig.h"

#define GST_TYPE_NORMAL_INTEGRATE (gst_normal_integrate_get_type ())
G_DECLARE_FINAL_TYPE (GstNormalIntegrate, gst_normal_integrate, GST,
    NORMAL_INTEGRATE, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (normalintegrate);

#define GST_NORMAL_INTEGRATE_MESH_CAPS \
  "model/x-ply; model/obj; model/gltf-binary"

/* In the order in which a link without a name takes them. */
enum { HEIGHT, TENSOR, MESH, N_OUTPUTS };

struct _GstNormalIntegrate {
  GstImagingElement base;

  GstPad *sink;
  GstNormalIntegrateAlbedo *albedo;

  /* under the stream lock of the sink pad */
  GstCaps *caps;
  GstImagingPicture picture; /* of the input */
  ImkNormalintegrate *kernel;
  guint64 n_maps; /* since the start */
  gboolean has_warned_beside;
};

/* One map of normals and its outputs. */
typedef struct {
  GstNormalIntegrate *element;
  GstImagingSrcPad *outputs[N_OUTPUTS];
  GstFlowReturn flows[N_OUTPUTS];
  GstBuffer *grey, *heights;       /* (nullable): if an output needs them */
  GstBuffer *albedo, *mesh;        /* (nullable) */
  const GstImagingFile *mesh_file; /* (nullable) */
  guint mesh_step;
  GstImagingPicture albedo_picture;
  GstVideoInfo grey_info, heights_info;
  ImkNormalintegrateConfig config;
  gboolean has_scale; /* else config.mm_per_pixel is 1, of pixels */
  ImkNormalintegrateSummary summary;
} GstNormalIntegrateWork;

/* Negotiates each linked output. */
void gst_normal_integrate_negotiate (
    GstNormalIntegrate *self, GstNormalIntegrateWork *w);

/* Acquires buffers in the memory that the kernel uses. */
ImkStatus gst_normal_integrate_acquire (
    GstNormalIntegrate *self, GstNormalIntegrateWork *w, ImkError *error);

/* Posts the summary and pushes the results of @in. */
GstFlowReturn gst_normal_integrate_publish (
    GstNormalIntegrate *self, GstBuffer *in, GstNormalIntegrateWork *w);

void gst_normal_integrate_register_meta (void);

/* --- gstnormalintegratemesh.c */

/* The mesh of w->heights and w->albedo, if somebody wants it: as w->mesh, and
 * as a file. */
ImkStatus gst_normal_integrate_make_mesh (
    GstNormalIntegrateWork *w, GstBuffer *normals, ImkError *error);
