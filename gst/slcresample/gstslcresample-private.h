/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the element share. */
#pragma once

#include "gstimagingelement.h"
#include "gstslcresamplesettings.h"
#include "insar/gstinsarslc.h"

#define GST_TYPE_SLC_RESAMPLE (gst_slc_resample_get_type ())
G_DECLARE_FINAL_TYPE (
    GstSlcResample, gst_slc_resample, GST, SLC_RESAMPLE, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (slcresample);

struct _GstSlcResample {
  GstImagingElement base;
  GstPad *sinkpad, *srcpad;

  /* of the streaming thread */
  GstInsarSlcInfo in, out;
  ImkSlcresampleConfig config; /* without offsets that are no plane */
  gdouble covered;             /* part of the output that has data */
  ImkSlcresample *kernel;
  GstCaps *refused; /* nullable: an error has been posted about them */
  GstBufferPool *pool;
  guint lines_per_buffer;
  gboolean segment_sent, is_discont;
  guint32 seqnum;   /* of the input segment; GST_SEQNUM_INVALID before it */
  GstBuffer *lines; /* (nullable, not owned): the current input */
  guint n_reported;
};

/* @out: the image that is made. @field: (out): nx is 0 where there are no
 * offsets but those of a plane; to be cleared */
ImkStatus gst_slc_resample_field_make (const GstSlcResampleSettings *settings,
    const GstInsarSlcInfo *out, ImkSlcresampleField *field, ImkError *error);

void gst_slc_resample_field_clear (ImkSlcresampleField *field);

/* Warns of a geometry with little overlap; sets caps and a pool for the
 * kernel's output. */
gboolean gst_slc_resample_begin_output (GstSlcResample *self);

/* Sends the segment unless it was sent or caps are missing, as they are when an
 * image was refused. */
void gst_slc_resample_send_segment (GstSlcResample *self);

/* Pushes all full buffers, and an incomplete one when the band is full. */
GstFlowReturn gst_slc_resample_push_ready (GstSlcResample *self);
