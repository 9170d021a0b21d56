/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* octangio.h in float64, pixel by pixel, written from the definitions alone. */
#pragma once

#include "imk/octangio.h"

/* @flow: (out): [D][A] */
void imk_octangio_reference (
    const ImkOctangioConfig *config, const float *const *bscans, double *flow);
