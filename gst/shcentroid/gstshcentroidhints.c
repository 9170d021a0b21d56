/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidhints.h"

const gchar *
gst_sh_centroid_hint (guint index, const GstShCentroidHintInput *input)
{
  const ImkShcentroidConfig *c = input->config;
  gboolean has_grid =
      c->columns || c->rows || c->pitch_x != 0 || c->pitch_y != 0;
  gboolean has_weight = c->weighting != IMK_SHCENTROID_WEIGHTING_NONE;
  guint bits = input->type == IMK_TYPE_U8 ? 8 : 16;
  const struct {
    gboolean applies;
    const gchar *text;
  } hints[] = {
      {c->threshold > 0 && c->threshold_mode == IMK_SHCENTROID_THRESHOLD_NONE,
          "threshold is set, but threshold-mode=none does not look at it. Set "
          "threshold-mode, or leave threshold out."},
      {c->threshold_least > 0 &&
              c->threshold_mode != IMK_SHCENTROID_THRESHOLD_RELATIVE &&
              c->threshold_mode != IMK_SHCENTROID_THRESHOLD_RANGE,
          "threshold-least is set, but only threshold-mode=relative and range "
          "look at it."},
      {c->threshold_mode == IMK_SHCENTROID_THRESHOLD_NOISE &&
              c->read_noise == 0,
          "threshold-mode=noise with read-noise=0 is a threshold of 0. Set "
          "read-noise."},
      {input->has_map && has_grid,
          "columns, rows or pitches are set beside map-location, which alone "
          "says where the cells are."},
      {input->has_optics && !input->has_map && has_grid,
          "columns, rows or pitches are set beside aperture, from which the "
          "grid is computed."},
      {input->bit_depth > bits,
          "bit-depth is more than the samples of this format have: no sample "
          "reaches the default saturation. Set bit-depth=0, or send "
          "GRAY16_LE."},
      {input->type != IMK_TYPE_F32 && input->saturation > (1u << bits) - 1,
          "saturation is more than the samples of this format can be: no cell "
          "will be flagged as saturated."},
      {c->iterations > 1 && !has_weight,
          "iterations is more than 1, but there is no weight to move. Set "
          "weighting."},
      {c->tracking_reset > 0 && c->window != IMK_SHCENTROID_WINDOW_TRACKING &&
              c->weighting != IMK_SHCENTROID_WEIGHTING_TRACKING,
          "tracking-reset is set, but nothing is tracked. Set window=tracking "
          "or weighting=tracking."},
      {c->remove_tilt && c->fields == IMK_SHCENTROID_FIELDS_XY,
          "remove-tilt changes slopes, and fields=xy has none. Take fields=all "
          "or fields=slopes."},
      {c->estimator > IMK_SHCENTROID_ESTIMATOR_CORRELATION &&
              (c->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE ||
                  c->brightest > 0 || c->power != 1 || has_weight),
          "threshold-mode, brightest, weighting or power is set, but "
          "estimator=matched and estimator=pupils look at none of them. Leave "
          "them out."},
  };

  G_STATIC_ASSERT (G_N_ELEMENTS (hints) == GST_SH_CENTROID_N_HINTS);
  return hints[index].applies ? hints[index].text : NULL;
}
