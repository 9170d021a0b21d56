/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a frame costs shcentroid on either backend, for backend=auto. */
#pragma once

#include <glib.h>

#include "imk/shcentroid.h"

G_BEGIN_DECLS

/* Of a frame of @n_samples that holds @n_cells, @calibrated with a dark, a
 * flat, bad pixels or a look-up table. Cells and templates of @config have
 * been loaded, but not checked. Returns: microseconds, of one thread */
gdouble gst_sh_centroid_cpu_us (const ImkShcentroidConfig *config,
    gdouble n_samples, gdouble n_cells, gboolean calibrated);

/* The same on a GPU, of which the frame of @size bytes is not in the memory. */
gdouble gst_sh_centroid_cuda_us (const ImkShcentroidConfig *config,
    gdouble n_samples, gdouble n_cells, gdouble size);

G_END_DECLS
