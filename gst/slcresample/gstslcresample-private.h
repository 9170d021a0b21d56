/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the element share. */
#pragma once

#include "gstslcresample.h"
#include "gstslcresamplesettings.h"
#include "imk/slcresample.h"
#include "insar/gstinsarslc.h"

G_BEGIN_DECLS

typedef struct _GstSlcResampleField GstSlcResampleField;

struct _GstSlcResample {
  GstImagingElement base;
  GstPad *sinkpad, *srcpad;

  /* of the streaming thread */
  GstInsarSlcInfo in, out;
  ImkSlcresampleConfig config;
  GstSlcResampleField *field; /* (nullable): that of config */
  ImkSlcresample *kernel;
  GstCaps *refused; /* nullable: an error has been posted about them */
  GstBufferPool *pool;
  guint lines_per_buffer;
  gboolean segment_sent, is_discont;
  guint32 seqnum;   /* of the input segment; GST_SEQNUM_INVALID before it */
  GstBuffer *lines; /* (nullable, not owned): the current input */
  guint n_reported;
};

/* @field: (out) (nullable): NULL where there are no offsets but those of a
 * plane. @out: the image that is made */
ImkStatus gst_slc_resample_field_new (const GstSlcResampleSettings *settings,
    const GstInsarSlcInfo *out, GstSlcResampleField **field, ImkError *error);
void gst_slc_resample_field_free (GstSlcResampleField *self);

/* Returns: (nullable): for the kernel; @self may be NULL */
const ImkSlcresampleField *gst_slc_resample_field_get (
    const GstSlcResampleField *self);

/* Warns of a geometry with little overlap; sets caps and a pool for the
 * kernel's output. */
gboolean gst_slc_resample_begin_output (GstSlcResample *self);

/* Sends the segment unless it was sent or caps are missing, as they are when an
 * image was refused. */
void gst_slc_resample_send_segment (GstSlcResample *self);

/* Pushes all full buffers, and an incomplete one when the band is full. */
GstFlowReturn gst_slc_resample_push_ready (GstSlcResample *self);

G_END_DECLS
