/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several files that are one array: their pages one after the other. */
#pragma once

#include <gst/gst.h>

#include "gstimagingndarray.h"

/**
 * GstImagingSequence: (skip)
 *
 * Files of the same type and size. One thread at a time.
 */
typedef struct _GstImagingSequence GstImagingSequence;

/**
 * gst_imaging_sequence_new: (skip)
 * @locations: (array zero-terminated=1): at least one path of a file, of a
 *   folder, or of files with *, ? or a number (%05d) in the last part
 * @axes: (nullable): what the dimensions are where the files do not say, a
 *   letter each as in #GstImagingNdArray; %NULL or empty: a last of three
 *   dimensions is channels if it is 2 to 4, else the first of three or more is
 *   pages
 * @part: of each file, as in gst_imaging_array_reader_new_part()
 * @error: the reason of a failure
 *
 * The files of a folder, or those that a pattern names, are taken in natural
 * order: 2 before 10. Hidden files and folders in it are left out, and files
 * without a known format. A name that
 * is there is no pattern. The first file is opened, and all of them if it has
 * several pages; the others are when their pages are read.
 *
 * Returns: (transfer full): to be given to gst_imaging_sequence_free(); %NULL
 *   with @error set
 */
GST_IMAGING_API
GstImagingSequence *gst_imaging_sequence_new (const gchar *const *locations,
    const gchar *axes, gint part, GError **error);

/* Returns: (transfer none): the first file, without values */
GST_IMAGING_API
const GstImagingNdArray *gst_imaging_sequence_get_array (
    const GstImagingSequence *self);

/* Returns: which dimensions of the first file are those of a page: from this
 * one on; 0 or 1 */
GST_IMAGING_API
guint gst_imaging_sequence_get_first_dim (const GstImagingSequence *self);

/* Returns: the pages of all files */
GST_IMAGING_API
guint64 gst_imaging_sequence_get_n_pages (const GstImagingSequence *self);

/* Returns: @page and all pages before it, also of files that are missing in a
 * numbered series */
GST_IMAGING_API
guint64 gst_imaging_sequence_get_number (
    const GstImagingSequence *self, guint64 page);

/* Returns: (transfer full) (nullable): parts of the first file, where one of
 * several is read */
GST_IMAGING_API
gchar *gst_imaging_sequence_describe_parts (const GstImagingSequence *self);

/* Returns: (transfer none): sentences for the user, on files that were left out
 * or are missing; gst_imaging_sequence_describe() may add one */
GST_IMAGING_API
const GPtrArray *gst_imaging_sequence_get_notes (
    const GstImagingSequence *self);

/* Reads any page. A file of another type or size is an error. */
GST_IMAGING_API
gboolean gst_imaging_sequence_read (
    GstImagingSequence *self, guint64 page, gpointer values, GError **error);

/* Returns: (transfer none) (nullable): cards of the file of the page that
 * gst_imaging_sequence_read() has just read, until the next one */
GST_IMAGING_API
gchar *const *gst_imaging_sequence_get_cards (const GstImagingSequence *self);

/* Returns: (transfer full) (nullable): what the samples of a page stand for
 * that gst_imaging_sequence_read () has just read: members of a
 * #GST_IMAGING_QUANTITY_META */
GST_IMAGING_API
GstStructure *gst_imaging_sequence_describe (
    GstImagingSequence *self, guint64 page);

GST_IMAGING_API
void gst_imaging_sequence_free (GstImagingSequence *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstImagingSequence, gst_imaging_sequence_free)
