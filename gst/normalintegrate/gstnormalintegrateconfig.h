/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of normalintegrate: names, blurbs, and where they are kept. */
#pragma once

#include "gstimagingengine.h"

#include "normalintegrate/normalintegrate.h"

G_BEGIN_DECLS

/* In class_init (), after those of the engine. */
void gst_normal_integrate_install_config (GObjectClass *klass);

/* Return: FALSE when @id is no property of ours */
gboolean gst_normal_integrate_config_set (
    ImkNormalintegrateConfig *config, guint id, const GValue *value);
gboolean gst_normal_integrate_config_get (
    const ImkNormalintegrateConfig *config, guint id, GValue *value);

G_END_DECLS
