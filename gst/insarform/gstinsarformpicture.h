/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What goes out of a source pad of insarform: one buffer with the whole image.
 * The functions belong to one thread at a time. */
#pragma once

#include "gstimagingquantity.h"
#include "gstimagingsrcpad.h"
#include "insar/gstinsarpair.h"
#include "insar/gstinsarraster.h"

#include "imk/insarform.h"

typedef enum {
  GST_INSAR_PICTURE_PHASE,
  GST_INSAR_PICTURE_COHERENCE,
  GST_INSAR_PICTURE_AMPLITUDE,
  GST_INSAR_PICTURE_INTERFEROGRAM,
  GST_INSAR_PICTURE_REMOVED,
  GST_INSAR_N_PICTURES,
} GstInsarPicture;

/**
 * GstInsarCells:
 * @width, @height: cells
 * @n_kept: rows of @values: @height, or 1 where no pad needs them
 * @values: [n_kept][width][IMK_INSARFORM_N_CHANNELS]
 * @full: the amplitude that is brightest
 * @shade: of the phase */
typedef struct {
  guint width, height, n_kept;
  gfloat *values;
  gfloat full;
  ImkInsarformShade shade;
  GstImagingAxis axes[2]; /* range, azimuth */
} GstInsarCells;

/* Name and unit of each picture. */
extern const GstInsarBand gst_insar_picture_bands[GST_INSAR_N_PICTURES];

/* One row of cells as numbers. @to: @n floats; of an interferogram 2 @n */
void gst_insar_picture_put_floats (
    GstInsarPicture picture, const gfloat *cells, guint n, gfloat *to);

/* Pushes @cells as a picture, in the first format of the pad's template that
 * the peer takes, with the metadata of @pair. */
GstFlowReturn gst_insar_picture_push (GstImagingSrcPad *output,
    GstInsarPicture picture, const GstInsarCells *cells, GstInsarPair *pair);
