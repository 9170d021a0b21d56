/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shcentroid-optics.h"

#include <math.h>

#include "core/config.h"
#include "shcentroid/shcentroid-check.h"

static bool
is_length (double value)
{
  return value > 0 && isfinite (value); /* NaN fails */
}

ImkStatus
imk_shcentroid_optics_grid (const ImkShcentroidOptics *optics,
    ImkShcentroidConfig *config, ImkError *error)
{
  double lenslets = optics->aperture_mm * 1e3 / optics->lenslet_pitch_um;
  double pitch = optics->lenslet_pitch_um / optics->pixel_size_um;
  ImkShcentroidConfig own;
  uint32_t n;

  if (!IMK_CONFIG_READ (shcentroid, config, &own, error))
    return IMK_ERROR_CONFIG;
  if (!is_length (optics->aperture_mm) ||
      !is_length (optics->lenslet_pitch_um) ||
      !is_length (optics->pixel_size_um))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A grid from optics needs aperture (%g mm), lenslet-pitch (%g um) and "
        "pixel-size (%g um), all above 0.",
        optics->aperture_mm, optics->lenslet_pitch_um, optics->pixel_size_um);
  /* 9 mm of 300 um are 30 lenslets, whatever the division rounds to */
  lenslets = floor (lenslets * (1 + 1e-12));
  if (!(lenslets >= 1 && lenslets <= 65535))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "An aperture of %g mm has %g lenslets of lenslet-pitch %g um side by "
        "side; it needs 1 to 65535.",
        optics->aperture_mm, lenslets, optics->lenslet_pitch_um);
  if (pitch * (lenslets - 2) >= fmin (config->width, config->height))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "An aperture of %g mm is %g pixels of pixel-size %g um across, so that "
        "its outer cells, of lenslet-pitch %g um, would be outside the frame "
        "of %ux%u. Check these three, or take a smaller aperture.",
        optics->aperture_mm, pitch * lenslets, optics->pixel_size_um,
        optics->lenslet_pitch_um, config->width, config->height);
  n = (uint32_t) lenslets;
  config->columns = n;
  config->rows = n;
  config->pitch_x = pitch;
  config->pitch_y = pitch;
  config->x0 += (config->width - pitch * n) / 2;
  config->y0 += (config->height - pitch * n) / 2;
  return IMK_OK;
}

ImkStatus
imk_shcentroid_optics_slope (
    const ImkShcentroidOptics *optics, double *scale, ImkError *error)
{
  if (!is_length (optics->pixel_size_um) ||
      !is_length (optics->focal_length_mm))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "slope-unit=rad needs pixel-size (%g um) and focal-length (%g mm), "
        "both above 0.",
        optics->pixel_size_um, optics->focal_length_mm);
  *scale = optics->pixel_size_um * 1e-3 / optics->focal_length_mm;
  return IMK_OK;
}
