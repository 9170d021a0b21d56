/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingdescription.h"

typedef struct {
  gchar *field;
  guint64 first;  /* the frame of the first number */
  GArray *values; /* gdouble; NaN where there is none */
} GstImagingSeries;

/* Returns: (transfer full) (nullable): the .json beside a file. Of numbered
 * files it is that of all; @number: (out): that of this one */
gchar *gst_imaging_sidecar_find (
    const gchar *location, gboolean *is_numbered, guint64 *number);

/* What the .json beside a file tells beside its quantity */
typedef struct {
  guint64 first; /* number of the first file, where they are numbered */
  gchar *flags;  /* (nullable): name of the file with flags */
  GArray *cells; /* (nullable): guint32, row and column of each */
  gchar *note;   /* (nullable): a sentence about frames it does not tell of */
  gchar *fault;  /* (nullable): a sentence: why it cannot be used */
} GstImagingSidecar;

/* Sets what it tells of the frames of @array, or returns FALSE: with
 * @sidecar->fault set where it should tell.
 * @series: empty; gets a #GstImagingSeries for each member that changes */
gboolean gst_imaging_sidecar_read (const gchar *path,
    const GstImagingNdArray *array, GstStructure *quantity, GPtrArray *series,
    GstImagingSidecar *sidecar);

/* Returns: (transfer none) (nullable): the value of a card */
const gchar *gst_imaging_description_find (gchar **cards, const gchar *key);

/* Returns: axes of FITS before that along a row: 1 if channels come first */
guint gst_imaging_description_fits_shift (gchar **cards, guint n_dims);

void gst_imaging_description_set_axis (GstStructure *quantity, guint axis,
    const gchar *name, const gchar *unit, gdouble step, gdouble origin);

/* A member of the meta as text: names and units are texts, all others numbers;
 * what is no such member is left out. */
void gst_imaging_description_set (
    GstStructure *quantity, const gchar *member, const gchar *text);

/* Those of @cards, and of lines in a description of TIFF. Returns: (transfer
 * full) */
gchar **gst_imaging_description_flatten (gchar **cards);

/* Removes the axis, or name, unit, scale and offset, of which @field is a part:
 * without its numbers it tells nothing. */
void gst_imaging_description_drop (GstStructure *quantity, const gchar *field);

/* Does any frame tell other numbers than the first? */
gboolean gst_imaging_description_changes (const GstImagingDescription *self);

/* Returns: (transfer full) (nullable): of all frames: without what changes */
GstStructure *gst_imaging_description_get_constant (
    const GstImagingDescription *self);
