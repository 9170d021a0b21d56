/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The configuration: its defaults, the caller's version of it, and the sizes
 * that follow from it. */
#pragma once

#include "octbscan/octbscan-backend.h"

/* Returns: as imk_config_read () */
const ImkOctbscanConfig *imk_octbscan_read_config (
    const ImkOctbscanConfig *config, ImkOctbscanConfig *own, ImkError *error);

/* Returns: what imk_octbscan_update () takes of it */
ImkOctbscanParams imk_octbscan_params_of (const ImkOctbscanConfig *config);
