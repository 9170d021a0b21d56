/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gaps in the numbers of files. */
#pragma once

#include <glib.h>

/* Are these files a series, with names that differ in one number alone, which
 * grows by the same step at most places? @names: paths in one folder, in
 * natural order; @missing: (out): for each, how many files before it are
 * missing; zeros where they are no series, or where a number that is left out
 * has a file.
 *
 * Returns: (transfer full) (nullable): a sentence that names what is missing */
gchar *gst_imaging_file_series_find_missing (
    const gchar *const *names, guint n, guint64 *missing);
