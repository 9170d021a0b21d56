/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The weights of the matched filter, for both backends. */
#pragma once

#include "shcentroid/shcentroid-backend.h"

/* The templates of @config have been checked.
 * @rects: of the cells; @pixels: (nullable): dark, flat and bad; @anchors:
 * where the templates lie Returns: IMK_ERROR_CONFIG where no cell has a filter;
 * IMK_ERROR_MEMORY; then clear it, too */
ImkStatus imk_shcentroid_filter_init (ImkShcentroidFilter *filter,
    const ImkShcentroidConfig *config, const ImkShcentroidRect *rects,
    const ImkShcentroidPixel *pixels, const ImkShcentroidAnchor *anchors,
    ImkError *error);
void imk_shcentroid_filter_clear (ImkShcentroidFilter *filter);
