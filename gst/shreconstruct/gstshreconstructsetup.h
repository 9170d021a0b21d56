/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What stays as it is during a calibration: else its columns are those of
 * several mirrors or sensors. */
#pragma once

#include "gstshreconstructsettings.h"
#include "gstshreconstructslopes.h"

G_BEGIN_DECLS

/* @flat: [n_commands]: those about which it pokes
 * @dead: [n_commands]: TRUE for those that it does not poke
 * @actuator_map, @mirrors: serial numbers of the files, 0 without
 * @results: (nullable): the setting
 * @sensor: (nullable): hash of the settings of shcentroid */
typedef struct {
  gfloat *flat;
  guint8 *dead;
  guint n_commands, actuator_map, mirrors[GST_SH_RECONSTRUCT_N_MIRRORS];
  GstShReconstructInput input;
  gchar *results, *sensor;
} GstShReconstructSetup;

/* That of a frame; keeps copies. */
void gst_sh_reconstruct_setup_init (GstShReconstructSetup *self,
    const GstShReconstructSettings *settings,
    const GstShReconstructSlopes *slopes, const gfloat *flat, guint n_commands);
void gst_sh_reconstruct_setup_clear (GstShReconstructSetup *self);

/* Both have as many commands.
 * Returns: (transfer full) (nullable): a sentence of what is another one */
gchar *gst_sh_reconstruct_setup_compare (
    const GstShReconstructSetup *before, const GstShReconstructSetup *now);

G_END_DECLS
