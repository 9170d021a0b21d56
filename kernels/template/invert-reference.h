/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition: the formula of imk/invert.h, one sample at a time. */
#pragma once

#include "imk/invert.h"

/* Computes the rows [@first, @end) of images in host memory. */
void imk_invert_reference (const ImkInvertConfig *config, const ImkImage *in,
    ImkImage *out, uint32_t first, uint32_t end);
