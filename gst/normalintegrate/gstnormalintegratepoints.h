/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Points of known height, from a file. */
#pragma once

#include <glib.h>

#include "imk/normalintegrate.h"

typedef struct {
  guint n;
  ImkNormalintegratePoint points[IMK_NORMALINTEGRATE_MAX_POINTS];
} GstNormalIntegratePoints;

/* For a path property. Rows of x, y and height, with spaces, commas or
 * semicolons between; # begins a comment, and a first row of words is the
 * names of the columns. */
gpointer gst_normal_integrate_points_load (
    const gchar *property, const gchar *location, ImkError *error);
