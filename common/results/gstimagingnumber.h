/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

#include "gstimaging-prelude.h"

#define GST_IMAGING_NUMBER_SIZE 32

/**
 * gst_imaging_number_print: (skip)
 * @text: (out caller-allocates): GST_IMAGING_NUMBER_SIZE bytes; no 0 ends them
 * @value: any number
 *
 * Writes a number in few digits that are the same number when they are read
 * again, in every locale: whole numbers below 1e15 without a point, others with
 * the fewest digits, of these with the nearest ones, as %g writes them: 0.0001,
 * 1e-05. Not a number is "nan".
 *
 * Returns: how many bytes were written
 */
GST_IMAGING_API
gsize gst_imaging_number_print (gchar *text, gdouble value);
