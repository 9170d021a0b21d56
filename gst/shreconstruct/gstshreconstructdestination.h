/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that a calibration may replace. */
#pragma once

#include <glib/gstdio.h>

#include "gstshreconstructsettings.h"

G_BEGIN_DECLS

/* Returns: FALSE with @error set where @location is a file that a property
 * names, also by another path or link */
gboolean gst_sh_reconstruct_destination_check (
    const GstShReconstructSettings *settings, const gchar *location,
    GError **error);

/* Returns: whether @location is an interaction matrix of a calibration, by its
 * sidecar */
gboolean gst_sh_reconstruct_destination_is_calibration (const gchar *location);

/* Returns: FALSE with @error set where there is a file */
gboolean gst_sh_reconstruct_destination_check_new (
    const gchar *location, GError **error);

/* A file at one moment. */
typedef struct {
  gboolean is_there;
  GStatBuf stat;
} GstShReconstructFileState;

GstShReconstructFileState gst_sh_reconstruct_destination_get_state (
    const gchar *location);

/* Returns: FALSE with @error set where another program or calibration has
 * written @location since @before */
gboolean gst_sh_reconstruct_destination_check_since (
    const GstShReconstructFileState *before, const gchar *location,
    GError **error);

G_END_DECLS
