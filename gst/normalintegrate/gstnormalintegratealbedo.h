/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pad `albedo`: pictures that wait for their normals. */
#pragma once

#include "gstimagingengine.h"
#include "gstimagingpicture.h"

typedef struct _GstNormalIntegrateAlbedo GstNormalIntegrateAlbedo;

/* @element: owns the result; @engine: answers queries */
GstNormalIntegrateAlbedo *gst_normal_integrate_albedo_new (
    GstElement *element, GstImagingEngine *engine);
void gst_normal_integrate_albedo_free (GstNormalIntegrateAlbedo *self);

void gst_normal_integrate_albedo_add_template (GstElementClass *klass);

/* Returns: (transfer none) (nullable): NULL when there is one already */
GstPad *gst_normal_integrate_albedo_request (
    GstNormalIntegrateAlbedo *self, GstPadTemplate *pad_template);
/* Returns: whether @pad is that of the albedo */
gboolean gst_normal_integrate_albedo_release (
    GstNormalIntegrateAlbedo *self, GstPad *pad);

/* Before the pads start, and before they stop: nothing waits any longer. */
void gst_normal_integrate_albedo_start (GstNormalIntegrateAlbedo *self);
void gst_normal_integrate_albedo_stop (GstNormalIntegrateAlbedo *self);

/* What happens to the normals: after EOS no albedo is needed, and during a
 * flush none is waited for. */
void gst_normal_integrate_albedo_follow (
    GstNormalIntegrateAlbedo *self, GstEvent *event);

/* Waits until it is known which albedo @normals have: the newest that is no
 * later, or else the first; also the last one of a pad that is at EOS.
 * @albedo: (out) (transfer full) (nullable): NULL without a linked pad
 * Returns: FALSE while the normals flush */
gboolean gst_normal_integrate_albedo_take (GstNormalIntegrateAlbedo *self,
    GstPad *sink, GstBuffer *normals, GstBuffer **albedo,
    GstImagingPicture *picture);
