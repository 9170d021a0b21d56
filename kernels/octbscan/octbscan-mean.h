/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a mean spectrum has beside the source's. */
#pragma once

#include "imk/image.h"

IMK_BEGIN_DECLS

/**
 * imk_octbscan_mean_fringe: (is the sample in the mean?)
 * @in: spectra of u8, u16, i16 or f32, in host memory
 * @first, @step: rows of one camera
 *
 * The mean of these rows has the sample in it where it is the same in all of
 * them, as that of a mirror; then it is taken off with the mean.
 * Returns: how far the strongest fringe of 16 and more periods stands above
 *   what the noise of the rows leaves of itself in their mean, dB; up to 10
 *   where there is none. 0 for fewer than 4 rows, samples that are no numbers,
 *   and without memory */
IMK_API double imk_octbscan_mean_fringe (
    const ImkImage *in, uint32_t first, uint32_t step);

IMK_END_DECLS
