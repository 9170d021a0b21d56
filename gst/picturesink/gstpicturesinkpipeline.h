/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What made the frames: the elements before a sink, with their settings. */
#pragma once

#include <gst/gst.h>

#include "gstpicturesinkjson.h"

typedef struct _GstPictureSinkPipeline GstPictureSinkPipeline;

/* All elements before @sink and itself, with what is set now. From now on
 * settings that change are noted. */
GstPictureSinkPipeline *gst_picture_sink_pipeline_new (GstElement *sink);

/* Have elements been linked since? */
gboolean gst_picture_sink_pipeline_has_grown (
    const GstPictureSinkPipeline *self, GstElement *sink);

/* Returns: whether an element of gst-imaging has worked on the frames */
gboolean gst_picture_sink_pipeline_is_ours (const GstPictureSinkPipeline *self);

/* Before each frame. @frame: its place in the file; @origin: (nullable): the
 * meta of an image or result, which tells from which frame on a change counts
 */
void gst_picture_sink_pipeline_look (
    GstPictureSinkPipeline *self, guint64 frame, const GstStructure *origin);

/* The members "pipeline", "elements", "sources" and "changes" of an object.
 * @hashes: files of sources are read for their SHA-256, which takes time */
void gst_picture_sink_pipeline_write (const GstPictureSinkPipeline *self,
    GstPictureSinkJson *json, gboolean hashes);

void gst_picture_sink_pipeline_free (GstPictureSinkPipeline *self);
