/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Validation, the same for both backends. The comparisons are written so that a
 * NaN fails them. */
#include "photostereo/photostereo-plan.h"

#include <math.h>

#include "core/limits.h"

ImkStatus
imk_photostereo_check_params (const ImkPhotostereoConfig *c, ImkError *error)
{
  const ImkLimits limits[] = {
      {"robust", c->robust, 0, IMK_PHOTOSTEREO_ROBUST_HUBER},
      {"threshold-mode", c->thresholds, 0, IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE},
      {"t-min", c->t_min, -1, 1e6},
      {"t-max", c->t_max, -1, 1e6},
      {"t-res", c->t_res, -1, 1e6},
      {"min-condition", c->min_condition, 0, 1},
      {"max-iterations", c->max_iterations, 1, 1000},
      {NULL},
  };

  IMK_TRY (imk_limits_check (limits, error));
  if (c->t_min >= 0 && c->t_max >= 0 && c->t_min >= c->t_max)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "t-min is %g and t-max %g: no grey value lies between them.", c->t_min,
        c->t_max);
  if (c->robust == IMK_PHOTOSTEREO_ROBUST_HUBER && c->t_res == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "t-res is 0; with robust=huber all weights would be 0.");
  return IMK_OK;
}

static ImkStatus
check_frame (const ImkPhotostereoConfig *c, ImkError *error)
{
  uint32_t maximum = c->type == IMK_TYPE_U8 ? 255 : 65535;
  const ImkLimits limits[] = {
      {"bands", c->bands, 1, IMK_PHOTOSTEREO_MAX_BANDS},
      {"gamma", c->gamma, 0.1, 10},
      {"curve", c->curve, 0, IMK_PHOTOSTEREO_CURVE_SRGB},
      {"ambient-model", c->ambient_model, 0, IMK_PHOTOSTEREO_AMBIENT_CONSTANT},
      {"plane-at", c->plane_at, 0, IMK_PHOTOSTEREO_PLANE_AT_LOWEST},
      {"height-rounds", c->height_rounds, 0, 10},
      {NULL},
  };

  IMK_TRY (imk_limits_check (limits, error));
  if (c->width - 1 >= 65535 || c->height - 1 >= 65535)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The frame is %ux%u; it can have 1 to 65535 pixels a side.", c->width,
        c->height);
  if (c->type != IMK_TYPE_U8 && c->type != IMK_TYPE_U16)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The frame is of %s samples; only u8 and u16 are supported.",
        imk_type_name (c->type));
  if (c->channels != 1 && c->channels != 3 && c->channels != 4)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The frame has %u samples a pixel; it can have 1, 3 or 4.",
        c->channels);
  for (uint32_t i = 0; c->channels > 1 && i < 3; i++)
    if (c->colours[i] >= c->channels)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Colour %u cannot be sample %u, counted from 0: a pixel has %u "
          "samples.",
          i, c->colours[i], c->channels);
  if (c->channels > 1 && c->pattern != IMK_PHOTOSTEREO_PATTERN_NONE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "bayer-pattern is for frames of one sample a pixel; these have %u.",
        c->channels);
  if (c->bands > 1 &&
      (c->channels > 1 || c->pattern != IMK_PHOTOSTEREO_PATTERN_NONE))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "With bands=%u each picture is one band: frames of one grey sample a "
        "pixel, but these have %s. Take a grey format, or bands=1 for colours.",
        c->bands, c->channels > 1 ? "colours" : "a Bayer pattern");
  if (c->full_scale > maximum)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The full scale is %u; samples end at %u.", c->full_scale, maximum);
  if (!(c->saturation >= -1 && c->saturation <= maximum))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "saturation is %g, but samples end at %u. Take 0 for the full scale, -1 "
        "if none is ever clipped.",
        c->saturation, maximum);
  if (c->n_devices >= IMK_PHOTOSTEREO_MAX_DEVICES)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u further devices; a picture can be shared by %u in all.",
        c->n_devices, IMK_PHOTOSTEREO_MAX_DEVICES);
  if (c->curve == IMK_PHOTOSTEREO_CURVE_SRGB && c->gamma != 1)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "gamma is %g, but curve=srgb is a curve of its own. Leave gamma at 1, "
        "or take curve=gamma.",
        c->gamma);
  return IMK_OK;
}

static ImkStatus
check_light (const ImkPhotostereoConfig *c, uint32_t i, ImkError *error)
{
  const ImkPhotostereoLight *l = &c->lights[i];
  double r2 = l->x * l->x + l->y * l->y + l->z * l->z;

  if (!isfinite (r2))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Light %u is at (%g, %g, %g); these must be finite numbers.", i, l->x,
        l->y, l->z);
  if (!c->positions && !(r2 > 0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Light %u is (0, 0, 0), which is no direction.", i);
  if (c->positions && !(l->z > c->plane_z))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Light %u is at z = %g mm, not above the working plane at plane-z = %g "
        "mm.",
        i, l->z, c->plane_z);
  if (l->n_bands && l->n_bands != c->bands)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Light %u has %u intensities; it may have one, three (red, green, blue), "
        "or one a band: bands is %u.",
        i, l->n_bands, c->bands);
  for (uint32_t k = 0; k < (l->n_bands ? l->n_bands : 3); k++)
    if (!(l->intensity[k] > 0) || !isfinite (l->intensity[k]))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Light %u has the intensity %g; it must be finite and above 0.", i,
          l->intensity[k]);
  return IMK_OK;
}

static ImkStatus
check_lights (const ImkPhotostereoConfig *c, ImkError *error)
{
  if (c->n_lights == 0 || c->n_lights > IMK_PHOTOSTEREO_MAX_LIGHTS ||
      !c->lights)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u lights; there can be 1 to %u. lights-location names the "
        "file with them.",
        c->n_lights, IMK_PHOTOSTEREO_MAX_LIGHTS);
  for (uint32_t i = 0; i < c->n_lights; i++)
    IMK_TRY (check_light (c, i, error));
  return IMK_OK;
}

ImkStatus
imk_photostereo_check_geometry (const ImkPhotostereoConfig *c, ImkError *error)
{
  const ImkLimits limits[] = {
      {"bayer-pattern", c->pattern, 0, IMK_PHOTOSTEREO_PATTERN_GRBG},
      {"grey-source", c->grey, 0, IMK_PHOTOSTEREO_GREY_LUMA},
      {"light-model", c->model, 0, IMK_PHOTOSTEREO_MODEL_RAW},
      {"led-lobe", c->led_lobe, 0, 100},
      {"mm-per-pixel", c->mm_per_pixel, 1e-9, 1e6},
      {"pixel-aspect-ratio", c->pixel_aspect, 1e-3, 1e3},
      {"plane-z", c->plane_z, -1e9, 1e9},
      {"focal-length-mm", c->focal_length_mm, 0, 1e6},
      {"sensor-width-mm", c->sensor_width_mm, 0, 1e6},
      {NULL},
  };

  IMK_TRY (imk_limits_check (limits, error));
  if ((c->focal_length_mm > 0) != (c->sensor_width_mm > 0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "focal-length-mm is %g and sensor-width-mm %g: a camera needs both; 0 "
        "and 0 are parallel rays.",
        c->focal_length_mm, c->sensor_width_mm);
  if (isinf (c->centre_x) || isinf (c->centre_y))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "centre-x is %g and centre-y %g; they must be finite, or NaN for the "
        "middle.",
        c->centre_x, c->centre_y);
  if (!c->positions && (c->model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE ||
                           c->model == IMK_PHOTOSTEREO_MODEL_UNIT))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "light-model=%s needs the positions of the lights, but these are "
        "directions. Take light-model=directional, or light-units=positions "
        "if the file has positions in mm.",
        c->model == IMK_PHOTOSTEREO_MODEL_UNIT ? "unit" : "inverse-square");
  return check_lights (c, error);
}

/* One picture, or all bands. */
static ImkStatus
check_calibration (const ImkPhotostereoConfig *c, const ImkImage *image,
    const char *role, ImkError *error)
{
  bool all = image && image->height != c->height && c->bands > 1;

  return image ? imk_image_check (image, role, c->type, c->channels, c->width,
                     all ? c->bands * c->height : c->height, false, error)
               : IMK_OK;
}

static ImkStatus
check_images (const ImkPhotostereoConfig *c, ImkError *error)
{
  IMK_TRY (check_calibration (c, c->dark, "dark", error));
  IMK_TRY (check_calibration (c, c->white, "white", error));
  if (c->mask)
    IMK_TRY (imk_image_check (
        c->mask, "mask", IMK_TYPE_U8, 1, c->width, c->height, false, error));
  return IMK_OK;
}

ImkStatus
imk_photostereo_check_config (const ImkPhotostereoConfig *c, ImkError *error)
{
  IMK_TRY (check_frame (c, error));
  IMK_TRY (imk_photostereo_check_geometry (c, error));
  IMK_TRY (check_images (c, error));
  return imk_photostereo_check_params (c, error);
}

uint32_t
imk_photostereo_n_colours (const ImkPhotostereoConfig *given)
{
  ImkPhotostereoConfig own;
  const ImkPhotostereoConfig *c =
      IMK_CONFIG_READ (photostereo, given, &own, NULL);

  if (!c)
    return 0;
  return c->channels > 1 || c->pattern != IMK_PHOTOSTEREO_PATTERN_NONE
             ? 3
             : c->bands;
}
