/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A source pad of octbscan: its formats and its pools. */
#pragma once

#include "gstimagingsrcpads.h"

#define GST_TYPE_OCT_BSCAN_PAD (gst_oct_bscan_pad_get_type ())
G_DECLARE_FINAL_TYPE (
    GstOctBscanPad, gst_oct_bscan_pad, GST, OCT_BSCAN_PAD, GstImagingSrcPad)

/* Outputs, in the order in which they are pushed and preroll: images of B-scans
 * or of volumes (ENFACE, whose frames are f32 rows), video or float32 tensors;
 * COMPLEX has Z, float32 pairs as other/tensors. */
enum { LINEAR, COMPLEX, ENFACE, SRC, N_OUTPUTS };

/* @width x @height: of images; of COMPLEX, depths and lines */
typedef struct {
  guint output;
  gint width, height, fps_n, fps_d;
} GstOctBscanPadFormat;

struct _GstOctBscanPad {
  GstImagingSrcPad parent;
  GstOctBscanPadFormat format; /* with caps */
  gboolean is_float;     /* images are tensors, their infos are of bytes */
  GstVideoInfo info;     /* of frames, with caps: COMPLEX and ENFACE as bytes */
  GstVideoInfo volume;   /* of the image, for ENFACE */
  guint settled;         /* serial of the settings that it was negotiated for */
  GstBufferPool *pool;   /* of images of B-scans as video */
  GstBufferPool *host;   /* (nullable): the pool of use_host, made in advance */
  GstBufferPool *blocks; /* (nullable): for several images each */
  gsize block_size;
  gboolean use_host; /* on a GPU: images are in page-locked memory */
};

/* Negotiates @format and the memory, unless that has been done.
 * @lock: is held; released while downstream is asked for memory
 * Returns: as gst_imaging_src_pad_negotiate (); an error has been posted when
 * images would be too large */
GstFlowReturn gst_oct_bscan_pad_negotiate (GstOctBscanPad *self,
    GstImagingEngine *engine, GMutex *lock, const GstOctBscanPadFormat *format);

/* Returns: whether there are caps and memory, and downstream has not requested
 * others */
gboolean gst_oct_bscan_pad_is_negotiated (GstOctBscanPad *self);

/* Forgets caps and memory. */
void gst_oct_bscan_pad_forget (GstOctBscanPad *self);

/* From the next frame on. */
void gst_oct_bscan_pad_use_host (GstOctBscanPad *self, gboolean use_host);

/* Returns: GST_FLOW_OK and a writable frame, or the reason why not */
GstFlowReturn gst_oct_bscan_pad_acquire (
    GstOctBscanPad *self, GstImagingEngine *engine, GstBuffer **buffer);

/* Returns: bytes from an image of @info to the next one in a block */
gsize gst_oct_bscan_pad_step (const GstVideoInfo *info);

/* @n: images of the largest block
 * Returns: GST_FLOW_OK and room for @n images, page-locked with a GPU, or the
 * reason why not */
GstFlowReturn gst_oct_bscan_pad_acquire_block (GstOctBscanPad *self,
    GstImagingEngine *engine, guint n, GstBuffer **buffer);
