/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What correlation looks for, checked and made ready for both backends. */
#pragma once

#include "shcentroid/shcentroid-backend.h"

/* The size of a template that is taken from the frame: of the smallest cell,
 * @width x @height, less the margin of the templates. */
ImkStatus imk_shcentroid_check_templates (const ImkShcentroidConfig *config,
    uint32_t least_width, uint32_t least_height, ImkError *error);

/* Pixels less their mean and totals of the stored templates; nothing where
 * there are none. Free with imk_shcentroid_templates_clear (). */
ImkStatus imk_shcentroid_templates_init (ImkShcentroidTemplates *templates,
    const ImkShcentroidConfig *config, uint32_t least_width,
    uint32_t least_height, ImkError *error);
void imk_shcentroid_templates_clear (ImkShcentroidTemplates *templates);
