/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition of an interferogram: the sums of imk/insarform.h over all
 * samples of each cell and each window, in float64. The tests compare the CPU
 * backend with it. */
#pragma once

#include "imk/insarform.h"

/* @reference, @secondary: the whole images; @out: (out): f64,
 * IMK_INSARFORM_N_CHANNELS channels, width / looks_x x height / looks_y */
void imk_insarform_reference (const ImkInsarformConfig *config,
    const ImkImage *reference, const ImkImage *secondary, ImkImage *out);
