/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

/* Zernike mode @j of Noll (1 is piston), with an rms of 1 over the unit circle,
 * at (@x, @y), and its derivatives. Outside of the circle it goes on as the
 * same polynomial. */
void imk_zernike (uint32_t j, double x, double y, double *value,
    double *derivative_x, double *derivative_y);
