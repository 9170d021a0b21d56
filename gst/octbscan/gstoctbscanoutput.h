/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A pad that images leave by: its format, its pool, its events. */
#pragma once

#include "gstimagingengine.h"

G_BEGIN_DECLS

/* What leaves by it. */
typedef enum {
  OUTPUT_IMAGE,   /* of a B-scan, GRAY8 or GRAY16_LE */
  OUTPUT_COMPLEX, /* Z, float32 pairs as other/tensors */
  OUTPUT_ENFACE,  /* of a volume; its frames are f32 rows */
} GstOctBscanOutputKind;

typedef struct {
  GstOctBscanOutputKind kind;
  GstPad *pad;
  gint is_discont;     /* atomic; the next image does not continue the last */
  gboolean is_leaving; /* of the element: the pad is being released */
  gint width, height;  /* with caps */
  GstVideoInfo info;   /* of frames, with caps: COMPLEX and ENFACE as bytes */
  GstVideoInfo volume; /* of the image, for ENFACE */
  GstCaps *caps;
  GstBufferPool *pool;
  guint settled;         /* of the element: settings that it has agreed with */
  GstBufferPool *blocks; /* (nullable): for several images each */
  gsize block_size;
  GstBufferPool *host; /* (nullable): the pool of use_host, made ready */
  gboolean use_host;   /* on a GPU: images are born in page-locked memory */
} GstOctBscanOutput;

/* Before other caps, and at the end. */
void gst_oct_bscan_output_reset (GstOctBscanOutput *self);

/* Agrees with downstream on images of @width x @height, where that has not been
 * done or is to be done anew; of COMPLEX, depths and lines.
 * @lock: of the output, let go of while downstream is asked for memory
 * Returns: GST_FLOW_NOT_NEGOTIATED or GST_FLOW_FLUSHING when it does not,
 * GST_FLOW_NOT_LINKED when there is none, or the output has another pad by now
 */
GstFlowReturn gst_oct_bscan_output_negotiate (GstOctBscanOutput *self,
    GstImagingEngine *engine, GMutex *lock, gint width, gint height, gint fps_n,
    gint fps_d);

/* Returns: whether gst_oct_bscan_output_negotiate has nothing to say to
 * downstream of @pad, which is that of the output */
gboolean gst_oct_bscan_output_is_agreed (
    const GstOctBscanOutput *self, GstPad *pad);

/* From the next frame on. */
void gst_oct_bscan_output_use_host (GstOctBscanOutput *self, gboolean use_host);

/* Returns: GST_FLOW_OK and a frame to be written, or why not */
GstFlowReturn gst_oct_bscan_output_acquire (
    GstOctBscanOutput *self, GstBuffer **buffer);

/* Returns: bytes from an image of @info to the next one in a block */
gsize gst_oct_bscan_output_step (const GstVideoInfo *info);

/* @n: images that the largest block has
 * Returns: GST_FLOW_OK and room for @n images in page-locked memory, with a
 * GPU, or why not */
GstFlowReturn gst_oct_bscan_output_acquire_block (GstOctBscanOutput *self,
    GstImagingEngine *engine, guint n, GstBuffer **buffer);

G_END_DECLS
