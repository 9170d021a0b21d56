/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the samples of a file stand for: quantity, unit, scale and axes, with
 * the members of the meta GstImagingQuantity, from and into the header of any
 * format. */
#pragma once

#include "gstimagingndarray.h"

#include <gst/gst.h>

/**
 * GstImagingDescription: (skip)
 *
 * What the .json beside a file tells of its frames, or else its header.
 */
typedef struct _GstImagingDescription GstImagingDescription;

/**
 * gst_imaging_description_new: (skip)
 * @array: the file, values are not needed
 * @location: its path; the .json of picturesink lies beside it, also that of
 *   numbered files
 *
 * Returns: (transfer full)
 */
GST_IMAGING_API
GstImagingDescription *gst_imaging_description_new (
    const GstImagingNdArray *array, const gchar *location);

/* Goes on to the next file where the same .json tells of it. */
GST_IMAGING_API
gboolean gst_imaging_description_follow (
    GstImagingDescription *self, const gchar *location);

/* Returns: (transfer full) (nullable): of a frame of the file */
GST_IMAGING_API
GstStructure *gst_imaging_description_at (
    const GstImagingDescription *self, guint64 frame);

/* That of gst_imaging_description_get_fault (); else which numbers are damaged,
 * so that their quantity or axis is not used, or of which frames the .json does
 * not tell as its recording was not completed.
 * Returns: (transfer none) (nullable): a sentence for the user */
GST_IMAGING_API
const gchar *gst_imaging_description_get_note (
    const GstImagingDescription *self);

/* Whether the .json beside the file is cut, empty or about another array: what
 * depends on its axes has to be refused.
 * Returns: (transfer none) (nullable): a sentence for the user */
GST_IMAGING_API
const gchar *gst_imaging_description_get_fault (
    const GstImagingDescription *self);

/* Returns: (transfer none) (nullable): name of the file beside it that has the
 * flags of its slopes */
const gchar *gst_imaging_description_get_flags (
    const GstImagingDescription *self);

/* @n_cells: (out)
 * Returns: (transfer none) (nullable): [n_cells][2]: row and column of the
 * lenslet of each cell whose slopes the file has; NULL if it does not tell */
GST_IMAGING_API
const guint32 *gst_imaging_description_get_cells (
    const GstImagingDescription *self, guint *n_cells);

GST_IMAGING_API
void gst_imaging_description_free (GstImagingDescription *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (
    GstImagingDescription, gst_imaging_description_free)

/* Returns: (transfer full) (nullable): what the cards of a file tell: those of
 * FITS, an OME-XML, a description of ImageJ, or our own */
GST_IMAGING_API
GstStructure *gst_imaging_description_from_cards (
    const GstImagingNdArray *array);

/**
 * gst_imaging_description_make_cards: (skip)
 * @location: path of a file to write; its extension selects the format
 * @frame: its type and shape, without values
 * @quantity: members of a #GST_IMAGING_QUANTITY_META
 * @several: frames follow that may tell others
 * @sidecar: (nullable): name of the file that tells it of each frame
 *
 * Returns: (transfer full) (element-type utf8): the cards for the header
 */
GST_IMAGING_API
GPtrArray *gst_imaging_description_make_cards (const gchar *location,
    const GstImagingNdArray *frame, const GstStructure *quantity,
    GstClockTime pts, gboolean several, const gchar *sidecar);

/**
 * gst_imaging_description_add: (skip)
 * @array: an array that will be saved as @to
 * @quantity: members of a #GST_IMAGING_QUANTITY_META, the same for all frames
 *
 * Adds the cards that tell it in the format of @to.
 */
GST_IMAGING_API
void gst_imaging_description_add (
    GstImagingNdArray *array, const GstStructure *quantity, const gchar *to);

/**
 * gst_imaging_description_translate: (skip)
 * @array: an array that was loaded from @from, and will be saved as @to
 * @frame: -1: all of it will be saved; else this frame alone
 *
 * Changes the cards of @array where the format of @to has others for what they
 * tell, and adds what is told beside the file.
 *
 * Returns: (transfer full) (nullable): "member=value" of what is told of this
 *   frame, or of the first, to be given to g_strfreev()
 */
GST_IMAGING_API
gchar **gst_imaging_description_translate (
    GstImagingNdArray *array, const gchar *from, const gchar *to, gint64 frame);
