/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/octbscan-config.h"

void
imk_octbscan_config_init_sized (ImkOctbscanConfig *config, size_t size)
{
  static const ImkOctbscanCamera linear = {.map = IMK_OCTBSCAN_MAP_NONE};

  const ImkOctbscanConfig defaults = {
      .size = size,
      .width = 2,
      .height = 1,
      .type = IMK_TYPE_U16,
      .n_cameras = 1,
      .cameras = &linear,
      .upsample = 4096,
      .scale = 1,
      .taper_cut = 32,
      .taper_below = 832,
      .background_bscans = 16,
      .background_reach = 32,
      .pattern_segments = 8,
      .average_ascans = 1,
      .tracking_bscans = 16,
      .tracking_reach = 32,
      .max_jobs = 1,
      .range_min = 0.0,
      .range_max = 60.0,
      .linear_min = 0.0,
      .linear_max = 1e6,
      .percent_min = 1.0,
      .percent_max = 99.9,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

void
imk_octbscan_take_live (ImkOctbscanConfig *to, const ImkOctbscanConfig *from)
{
  to->history = from->history;
  to->range = from->range;
  to->range_min = from->range_min;
  to->range_max = from->range_max;
  to->linear_min = from->linear_min;
  to->linear_max = from->linear_max;
  to->auto_bscans = from->auto_bscans;
  to->percent_min = from->percent_min;
  to->percent_max = from->percent_max;
  to->tracking_lock = from->tracking_lock;
}

uint32_t
imk_octbscan_n_depths (const ImkOctbscanConfig *given)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      IMK_CONFIG_READ (octbscan, given, &own, NULL);
  uint64_t cut, all;

  if (!config)
    return 0;
  cut = (uint64_t) config->crop_top + config->crop_bottom;
  all = (uint64_t) config->width * config->scale / 2;
  return all > cut ? (uint32_t) (all - cut) : 0;
}

uint32_t
imk_octbscan_n_ascans (const ImkOctbscanConfig *given)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      IMK_CONFIG_READ (octbscan, given, &own, NULL);

  return config && config->average_ascans
             ? imk_div_up (config->height, config->average_ascans)
             : 0;
}

bool
imk_octbscan_has_history (const ImkOctbscanConfig *given)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      IMK_CONFIG_READ (octbscan, given, &own, NULL);

  if (!config)
    return false;
  return config->background_mode == IMK_OCTBSCAN_BACKGROUND_RUNNING ||
         config->background_mode == IMK_OCTBSCAN_BACKGROUND_FIRST ||
         config->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_ONCE ||
         config->tracking != IMK_OCTBSCAN_TRACKING_NONE ||
         config->averages_bscans;
}

void
imk_octbscan_size (
    const ImkOctbscanConfig *given, uint32_t *width, uint32_t *height)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      IMK_CONFIG_READ (octbscan, given, &own, NULL);
  bool rows = config && config->orientation == IMK_OCTBSCAN_ORIENTATION_ROWS;
  uint32_t n_depths = imk_octbscan_n_depths (given);

  *width = rows ? n_depths : imk_octbscan_n_ascans (given);
  *height = rows ? imk_octbscan_n_ascans (given) : n_depths;
}
