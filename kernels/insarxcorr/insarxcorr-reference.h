/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition of an offset, in float64: the formulas of imk/insarxcorr.h and
 * docs/reference/insarxcorr.md, with a sum for each transform, and no bands.
 * The tests compare every backend with it. */
#pragma once

#include "imk/insarxcorr.h"

/**
 * imk_insarxcorr_reference: (measures one patch)
 * @config: complete, see imk_insarxcorr_config_complete ()
 * @images: the whole images, in host memory
 * @i, @j: column and row of the patch in the grid
 * @out: (out): the row of the patch, as imk_insarxcorr_process () gives it
 *
 * Returns: by how much the second largest sample lies below the largest,
 *   relative to that, of the surface and, in COMPAT, of the finer one: near 0
 *   float32 may decide otherwise. 1 without a peak */
double imk_insarxcorr_reference (const ImkInsarxcorrConfig *config,
    const ImkImage images[IMK_INSARXCORR_N_SIDES], uint32_t i, uint32_t j,
    double out[IMK_INSARXCORR_N_FIELDS]);
