/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What goes out of a source pad of insarform: one buffer with the whole image.
 * The functions belong to one thread at a time. */
#pragma once

#include <gst/gst.h>

#include "insarform/insarform.h"

G_BEGIN_DECLS

typedef enum {
  GST_INSAR_PICTURE_PHASE,
  GST_INSAR_PICTURE_COHERENCE,
  GST_INSAR_PICTURE_AMPLITUDE,
  GST_INSAR_PICTURE_INTERFEROGRAM,
  GST_INSAR_N_PICTURES,
} GstInsarPicture;

/**
 * GstInsarCells:
 * @width, @height: cells
 * @values: [height][width][IMK_INSARFORM_N_CHANNELS]
 * @full: the amplitude that is brightest
 * @shade: of the phase */
typedef struct {
  guint width, height;
  gfloat *values;
  gfloat full;
  ImkInsarformShade shade;
} GstInsarCells;

/* Pushes stream-start, caps that the peer takes, segment, and @cells as a
 * picture, not the end. */
GstFlowReturn gst_insar_picture_push (GstPad *pad, GstInsarPicture picture,
    const GstInsarCells *cells, const gchar *upstream);

/* Pushes the end, with a stream-start before where there has been none. */
void gst_insar_picture_eos (GstPad *pad, const gchar *upstream);

G_END_DECLS
