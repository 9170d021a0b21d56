/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of relight: names, blurbs, and where they are kept. */
#pragma once

#include "gstimagingengine.h"

#include "relight/relight.h"

G_BEGIN_DECLS

typedef struct {
  ImkRelightConfig config; /* without the size */
  gboolean mouse;
} GstRelightSettings;

void gst_relight_settings_init (GstRelightSettings *self);

/* In class_init (), after those of the engine. */
void gst_relight_settings_install (GObjectClass *klass);

/* Return: FALSE when @id is no property of ours */
gboolean gst_relight_settings_set (
    GstRelightSettings *self, guint id, const GValue *value);
gboolean gst_relight_settings_get (
    const GstRelightSettings *self, guint id, GValue *value);

G_END_DECLS
