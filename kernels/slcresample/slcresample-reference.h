/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition of a resampled image, sample by sample in float64. The tests
 * compare the CPU backend with it. */
#pragma once

#include "imk/slcresample.h"

/* @in: cf32, width x height of @config; @out: (out): cf32, out_width x
 * out_height. `estimate_doppler` is not looked at */
void imk_slcresample_reference (
    const ImkSlcresampleConfig *config, const ImkImage *in, ImkImage *out);
