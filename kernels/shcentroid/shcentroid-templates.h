/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What correlation looks for, checked and made ready for both backends. */
#pragma once

#include "shcentroid/shcentroid-backend.h"

/* Returns: whether there is anything to look for */
bool imk_shcentroid_has_templates (const ImkShcentroidConfig *config);

/* The rest of @config has been checked. */
ImkStatus imk_shcentroid_check_templates (
    const ImkShcentroidConfig *config, ImkError *error);

/* Pixels less their mean, totals, and places in the cells; nothing where there
 * are no templates. Free with imk_shcentroid_templates_clear (), after an error
 * too. */
ImkStatus imk_shcentroid_templates_init (ImkShcentroidTemplates *templates,
    const ImkShcentroidConfig *config, ImkError *error);
void imk_shcentroid_templates_clear (ImkShcentroidTemplates *templates);
