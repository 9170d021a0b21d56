/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of insarxcorr share: a pair of images in a folder of its own,
 * and pipelines over them. */
#pragma once

#include "check-common.h"

/* of the images */
#define WIDTH 211
#define HEIGHT 307
#define SHIFT_X 3
#define SHIFT_Y -2

/* 3 x 4 patches of 64 x 64 */
#define GRID "nx=3 ny=4 xsearch=16 ysearch=16"

#define SOURCES(more) \
  "slcsrc location=$/ref.PRM " more " ! x.reference slcsrc " \
  "location=$/sec.PRM " more " ! x.secondary insarxcorr name=x " GRID " "
#define OUT " ! appsink name=out sync=false "

/* The fixture: ref.SLC, sec.SLC and their PRM files. */
void insar_setup (void);

/* --- files of the folder -------------------------------------------------- */

void insar_write_prm (
    const gchar *name, const gchar *slc, guint height, const gchar *more);

/* Noise that is the same at (x + dx, y + dy). */
void insar_write_slc (const gchar *name, gint dx, gint dy);

/* 8 x 2 pixels, of which the left half, with the first patch of each row, is 0.
 */
void insar_write_mask (const gchar *name);

/* The same for all patches of the grid. */
void insar_write_gross_offsets (const gchar *name, gdouble x, gdouble y);

/* --- pipelines
 * ------------------------------------------------------------------
 */

void insar_check_no_error (GstElement *pipeline);

/* Returns: (transfer full): all that comes out of "out" */
GString *insar_run (const gchar *description);
