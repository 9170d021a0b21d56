/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parameter file of an SLC in GMTSAR: lines of `key = value`, of which the
 * last counts, as programs append to it. Errors are GST_RESOURCE_ERROR or
 * GST_STREAM_ERROR, with a sentence for the user. */
#pragma once

#include <gst/gst.h>

#include "gstimaging-prelude.h"

/**
 * GstInsarSpacing:
 * @range: slant range from column to column: c / (2 rng_samp_rate)
 * @near_range: slant range of the first column
 * @azimuth: on the ground, from line to line: SC_vel / PRF, times
 *   earth_radius / (earth_radius + SC_height)
 *
 * In m; 0 where it is not known. */
typedef struct {
  gdouble range, near_range, azimuth;
} GstInsarSpacing;

/**
 * GstInsarPrm:
 * @name: how messages call the file
 * @slc_file: value of `SLC_file`, as it stands there, up to a white space
 * @slc_line: the same to the end of the line: a name with spaces, or one with a
 *   remark behind it
 * @width: columns, `num_rng_bins`
 * @height: lines, `num_patches` (1 if missing) times `num_valid_az`
 * @prf: `PRF`, 0 if missing
 * @fd1: Doppler centroid in Hz, 0 if missing
 * @has_fd1: whether there is a line of it
 * @rshift: columns that the image is behind its reference, `rshift` or, as it
 *   was once called, `xshift`; 0 if missing
 * @ashift: lines, `ashift` or `yshift`
 * @spacing: of the samples, as far as there are keys for it
 * @contradiction: (nullable): a sentence about keys that do not agree */
typedef struct {
  gchar *name;
  gchar *slc_file, *slc_line;
  guint width, height;
  gdouble prf, fd1;
  gboolean has_fd1;
  gint rshift, ashift;
  GstInsarSpacing spacing;
  gchar *contradiction;
} GstInsarPrm;

/* Returns: (transfer full): what the file at @location says; %NULL with @error
 * set */
GstInsarPrm *gst_insar_prm_load (const gchar *location, GError **error);

/* The same for a file that is in memory already. @name: how messages shall call
 * it */
GstInsarPrm *gst_insar_prm_parse (
    const gchar *text, gsize size, const gchar *name, GError **error);

/* Returns: (transfer full): path of its `SLC_file`: relative to the working
 * folder, or, when there is none, to the folder of the PRM */
gchar *gst_insar_prm_find_slc (const GstInsarPrm *prm);

/**
 * GstInsarPrmAlignment:
 * @shift: offset at column 0, line 0: `rshift` + `sub_int_r` columns and
 *   `ashift` + `sub_int_a` lines
 * @stretch: its growth a column: `stretch_r`, `stretch_a`
 * @a_stretch: its growth a line: `a_stretch_r`, `a_stretch_a`
 *
 * Where an image lies against its reference, range first and then azimuth: what
 * is at column r and line a of the reference is at column r + shift[0] +
 * stretch[0] r + a_stretch[0] a of the image, and its line likewise. */
typedef struct {
  gdouble shift[2], stretch[2], a_stretch[2];
} GstInsarPrmAlignment;

/* @text: the lines that a fit gives, or a PRM file with them; `rshift` and
 * `ashift` must be there, the others are 0 if missing
 * @name: how messages shall call it
 * @alignment: (out): what it says
 * Returns: %FALSE with @error set, @alignment untouched */
gboolean gst_insar_prm_parse_alignment (const gchar *text, gsize size,
    const gchar *name, GstInsarPrmAlignment *alignment, GError **error);

/* The same for the file at @location. */
gboolean gst_insar_prm_load_alignment (
    const gchar *location, GstInsarPrmAlignment *alignment, GError **error);

/* @found: what gst_insar_prm_find_slc() returned
 * Returns: (transfer full) (nullable): for a message: another file of this name
 *   beside the PRM file, where @found is of the working folder */
gchar *gst_insar_prm_find_other (const GstInsarPrm *prm, const gchar *found);

/* Returns: (transfer full) (nullable): the last value of @key in the @text of a
 * PRM file, up to a white space */
gchar *gst_insar_prm_find_text (const gchar *text, const gchar *key);

/* @prm may be %NULL. */
void gst_insar_prm_free (GstInsarPrm *prm);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstInsarPrm, gst_insar_prm_free)
