/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The configuration: its defaults, the caller's version of it, and the sizes
 * that follow from it. */
#pragma once

#include "octbscan/octbscan-backend.h"

/* Returns: as imk_config_read () */
const ImkOctbscanConfig *imk_octbscan_read_config (
    const ImkOctbscanConfig *config, ImkOctbscanConfig *own, ImkError *error);

/* Copies what imk_octbscan_update () takes, but for the dispersion. */
void imk_octbscan_take_live (
    ImkOctbscanConfig *to, const ImkOctbscanConfig *from);
