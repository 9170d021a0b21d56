/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of shcentroid with a harness share. */
#pragma once

#include "check-common.h"

typedef struct {
  GstHarness *h;
  GstElement *element;
  GstBus *bus;
  guint n_cells;
} Sh;

/* An element "sh" with @properties, which has the caps of @width x @height
 * pixels of GRAY16_LE. */
Sh sh_open (const gchar *backend, const gchar *grid, const gchar *properties,
    gint width, gint height, guint n_cells);
void sh_free (Sh *sh);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Sh, sh_free)

/* Pushes @in (transfer full). Returns: (transfer full): the @n numbers */
gfloat *sh_measure (Sh *sh, GstBuffer *in, gsize *n);

/* The same. Returns: field @field of cell @cell, with fields=all */
gdouble sh_value (Sh *sh, GstBuffer *in, guint cell, guint field);

/* Emits capture-@what. Returns: what the action says */
gboolean sh_capture (
    Sh *sh, const gchar *what, guint n_frames, const gchar *location);

/* Fails unless the next message of the element says that this was captured. */
void sh_check_captured (
    Sh *sh, const gchar *kind, guint n_frames, const gchar *location);
