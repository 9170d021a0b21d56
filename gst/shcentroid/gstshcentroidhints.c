/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidhints.h"

typedef struct {
  gboolean (*applies) (const GstShCentroidHintInput *i);
  const gchar *text;
} Hint;

static gboolean
threshold_alone (const GstShCentroidHintInput *i)
{
  return i->config->threshold > 0 &&
         i->config->threshold_mode == IMK_SHCENTROID_THRESHOLD_NONE;
}

static gboolean
threshold_least_alone (const GstShCentroidHintInput *i)
{
  return i->config->threshold_least > 0 &&
         i->config->threshold_mode != IMK_SHCENTROID_THRESHOLD_RELATIVE &&
         i->config->threshold_mode != IMK_SHCENTROID_THRESHOLD_RANGE;
}

static gboolean
threshold_of_no_noise (const GstShCentroidHintInput *i)
{
  return i->config->threshold_mode == IMK_SHCENTROID_THRESHOLD_NOISE &&
         i->config->read_noise == 0;
}

static gboolean
grid_beside_a_map (const GstShCentroidHintInput *i)
{
  const ImkShcentroidConfig *c = i->config;

  return i->has_map &&
         (c->columns || c->rows || c->pitch_x != 0 || c->pitch_y != 0);
}

static gboolean
grid_beside_optics (const GstShCentroidHintInput *i)
{
  const ImkShcentroidConfig *c = i->config;

  return i->has_optics && !i->has_map &&
         (c->columns || c->rows || c->pitch_x != 0 || c->pitch_y != 0);
}

static guint
bits_of (const GstShCentroidHintInput *i)
{
  return i->type == IMK_TYPE_U8 ? 8 : 16;
}

static gboolean
bits_beyond_the_format (const GstShCentroidHintInput *i)
{
  return i->bit_depth > bits_of (i);
}

static gboolean
saturation_beyond_the_format (const GstShCentroidHintInput *i)
{
  return i->type != IMK_TYPE_F32 && i->saturation > (1u << bits_of (i)) - 1;
}

static gboolean
iterations_alone (const GstShCentroidHintInput *i)
{
  return i->config->iterations > 1 &&
         i->config->weighting == IMK_SHCENTROID_WEIGHTING_NONE;
}

static gboolean
tracking_reset_alone (const GstShCentroidHintInput *i)
{
  return i->config->tracking_reset > 0 &&
         i->config->window != IMK_SHCENTROID_WINDOW_TRACKING &&
         i->config->weighting != IMK_SHCENTROID_WEIGHTING_TRACKING;
}

static gboolean
tilt_of_positions (const GstShCentroidHintInput *i)
{
  return i->config->remove_tilt &&
         i->config->fields == IMK_SHCENTROID_FIELDS_XY;
}

static gboolean
chain_of_fixed_weights (const GstShCentroidHintInput *i)
{
  const ImkShcentroidConfig *c = i->config;

  return c->estimator > IMK_SHCENTROID_ESTIMATOR_CORRELATION &&
         (c->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE ||
             c->brightest > 0 || c->power != 1 ||
             c->weighting != IMK_SHCENTROID_WEIGHTING_NONE);
}

static const Hint hints[] = {
    {threshold_alone, "threshold is set, but threshold-mode=none does not look "
                      "at it. Set threshold-mode, or leave threshold out."},
    {threshold_least_alone,
        "threshold-least is set, but only threshold-mode=relative and range "
        "look at it."},
    {threshold_of_no_noise,
        "threshold-mode=noise with read-noise=0 is a threshold of 0. Set "
        "read-noise."},
    {grid_beside_a_map, "columns, rows or pitches are set beside map-location, "
                        "which alone says where the cells are."},
    {grid_beside_optics,
        "columns, rows or pitches are set beside aperture, from which the grid "
        "is computed."},
    {bits_beyond_the_format,
        "bit-depth is more than the samples of this format have: no sample "
        "reaches the default saturation. Set bit-depth=0, or send GRAY16_LE."},
    {saturation_beyond_the_format,
        "saturation is more than the samples of this format can be: no cell "
        "will be flagged as saturated."},
    {iterations_alone,
        "iterations is more than 1, but there is no weight to move. Set "
        "weighting."},
    {tracking_reset_alone,
        "tracking-reset is set, but nothing is tracked. Set window=tracking or "
        "weighting=tracking."},
    {tilt_of_positions,
        "remove-tilt changes slopes, and fields=xy has none. Take fields=all "
        "or fields=slopes."},
    {chain_of_fixed_weights,
        "threshold-mode, brightest, weighting or power is set, but "
        "estimator=matched and estimator=pupils look at none of them. Leave "
        "them out."},
};
G_STATIC_ASSERT (G_N_ELEMENTS (hints) == GST_SH_CENTROID_N_HINTS);

const gchar *
gst_sh_centroid_hint (guint index, const GstShCentroidHintInput *input)
{
  return hints[index].applies (input) ? hints[index].text : NULL;
}
