/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a configuration to what the backends work with. */
#include "photostereo/photostereo-plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rec.601 */
static const float luma[] = {0.299f, 0.587f, 0.114f};

ImkPhotostereoModel
imk_photostereo_model_of (const ImkPhotostereoConfig *c)
{
  if (c->model != IMK_PHOTOSTEREO_MODEL_AUTO)
    return c->model;
  return c->positions ? IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE
                      : IMK_PHOTOSTEREO_MODEL_DIRECTIONAL;
}

/* Of the light from the centre of the working plane. */
static double
distance (const ImkPhotostereoConfig *c, const ImkPhotostereoLight *l)
{
  double z = l->z - (c->positions ? c->plane_z : 0);

  return sqrt (l->x * l->x + l->y * l->y + z * z);
}

double
imk_photostereo_mean_distance (const ImkPhotostereoConfig *c)
{
  double sum = 0;

  for (uint32_t i = 0; i < c->n_lights; i++)
    sum += distance (c, &c->lights[i]);
  return sum / c->n_lights;
}

ImkPhotostereoLamp
imk_photostereo_make_lamp (
    const ImkPhotostereoConfig *c, uint32_t i, double mean)
{
  const ImkPhotostereoLight *l = &c->lights[i];
  bool colours = imk_photostereo_n_colours (c) == 3;
  double z = l->z - (c->positions ? c->plane_z : 0);
  double r = distance (c, l), grey = 0, scale = 1;
  /* aimed at the centre of the working plane */
  ImkPhotostereoLamp lamp = {.x = (float) l->x,
      .y = (float) l->y,
      .z = (float) z,
      .axis = {(float) (-l->x / r), (float) (-l->y / r), (float) (-z / r)}};

  for (int k = 0; k < 3; k++)
    grey += luma[k] * l->intensity[k];
  for (uint32_t k = 0; k < IMK_PHOTOSTEREO_MAX_PLANES; k++)
    lamp.gain[k] =
        (float) (1 / (l->n_bands > k || (colours && k < 3) ? l->intensity[k]
                                                           : grey));
  switch (imk_photostereo_model_of (c)) {
  case IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE:
    scale = mean * mean;
    break;
  case IMK_PHOTOSTEREO_MODEL_RAW:
    scale = c->positions ? 1 / mean : 1;
    break;
  case IMK_PHOTOSTEREO_MODEL_DIRECTIONAL:
    scale = 1 / r;
    break;
  default:
    break;
  }
  lamp.scale = (float) scale;
  return lamp;
}

ImkPhotostereoLamp *
imk_photostereo_make_lamps (const ImkPhotostereoConfig *c, ImkError *error)
{
  ImkPhotostereoLamp *lamps = calloc (c->n_lights, sizeof (*lamps));
  double mean = imk_photostereo_mean_distance (c);

  if (!lamps)
    IMK_NO_MEMORY (error, "for %u lights.", c->n_lights);
  for (uint32_t i = 0; lamps && i < c->n_lights; i++)
    lamps[i] = imk_photostereo_make_lamp (c, i, mean);
  return lamps;
}

void
imk_photostereo_light_vector (const ImkPhotostereoPlan *plan,
    const ImkPhotostereoLamp *lamp, double x, double y, double vector[3])
{
  double v[] = {lamp->x - x, lamp->y - y, lamp->z};
  double r2 = v[0] * v[0] + v[1] * v[1] + v[2] * v[2], r = sqrt (r2);
  double k = lamp->scale;

  if (plan->model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE)
    k /= r2 * r;
  else if (plan->model == IMK_PHOTOSTEREO_MODEL_UNIT)
    k /= r;
  if (plan->led_lobe > 0) {
    double cosine =
        -(lamp->axis[0] * v[0] + lamp->axis[1] * v[1] + lamp->axis[2] * v[2]) /
        r;

    k *= pow (fmax (cosine, 0), plan->led_lobe);
  }
  for (int i = 0; i < 3; i++)
    vector[i] = k * v[i];
}

/* ------------------------------------------------------------------------
 * The plan. */

uint32_t
imk_photostereo_maximum_of (const ImkPhotostereoConfig *c)
{
  return c->full_scale ? c->full_scale : c->type == IMK_TYPE_U8 ? 255 : 65535;
}

static void
plan_samples (const ImkPhotostereoConfig *c, ImkPhotostereoPlan *p)
{
  /* Colours of the 2x2 sites of each ImkPhotostereoPattern. */
  static const uint8_t sites[][4] = {
      {0, 0, 0, 0}, {2, 1, 1, 0}, {0, 1, 1, 2}, {1, 2, 0, 1}, {1, 0, 2, 1}};
  bool pattern = c->pattern != IMK_PHOTOSTEREO_PATTERN_NONE;

  p->interpolate = pattern && c->grey == IMK_PHOTOSTEREO_GREY_LUMA;
  p->mosaic = pattern && !p->interpolate;
  p->bands = c->bands;
  p->n_planes = c->channels > 1 || p->interpolate ? 3 : c->bands;
  for (uint32_t i = 0; i < p->n_planes; i++) {
    p->colours[i] = c->channels > 1 ? c->colours[i] : 0;
    /* photons count the same, whatever their band: where they are the noise,
     * the mean is the best there is */
    p->weight[i] =
        c->bands == 1 && p->n_planes == 3 ? luma[i] : 1.0f / (float) c->bands;
  }
  memcpy (p->site, sites[c->pattern], sizeof (p->site));
  p->unit = (float) (1.0 / imk_photostereo_maximum_of (c));
  p->saturation = c->saturation < 0   ? IMK_PHOTOSTEREO_NEVER
                  : c->saturation > 0 ? (uint32_t) ceil (c->saturation)
                                      : imk_photostereo_maximum_of (c);
}

ImkPhotostereoPlan
imk_photostereo_make_plan (
    const ImkPhotostereoConfig *c, const ImkPhotostereoLamp *lamps)
{
  ImkPhotostereoPlan p = {
      .width = c->width,
      .height = c->height,
      .n_rows = c->height,
      .type = c->type,
      .channels = c->channels,
      .n_lights = c->n_lights,
      .lamps = lamps,
      .model = imk_photostereo_model_of (c),
      .led_lobe = (float) c->led_lobe,
      .centre_x =
          (float) (isnan (c->centre_x) ? (c->width - 1) / 2.0 : c->centre_x),
      .centre_y =
          (float) (isnan (c->centre_y) ? (c->height - 1) / 2.0 : c->centre_y),
      .constant = c->ambient_model == IMK_PHOTOSTEREO_AMBIENT_CONSTANT,
      .height_rounds =
          imk_photostereo_model_of (c) == IMK_PHOTOSTEREO_MODEL_DIRECTIONAL ||
                  !c->positions
              ? 0
              : c->height_rounds,
      .plane_at = c->plane_at,
      .track_change = c->track_change,
      .memory_limit = c->memory_limit,
      .strip_rows = c->strip_rows,
      .n_threads = c->n_threads,
      .n_devices = c->n_devices,
      .devices = c->devices,
  };

  if (p.model == IMK_PHOTOSTEREO_MODEL_DIRECTIONAL ||
      p.model == IMK_PHOTOSTEREO_MODEL_RAW)
    p.led_lobe = 0;
  if (p.model != IMK_PHOTOSTEREO_MODEL_DIRECTIONAL && c->positions) {
    p.pitch_x = (float) c->mm_per_pixel;
    /* Rows are counted downwards, y points up. */
    p.pitch_y = (float) (-c->mm_per_pixel / c->pixel_aspect);
  }
  if (p.height_rounds > 0 && c->focal_length_mm > 0) {
    p.camera_z = (float) (c->mm_per_pixel * c->width * c->focal_length_mm /
                          c->sensor_width_mm);
    p.axis_x = ((float) (c->width - 1) / 2 - p.centre_x) * p.pitch_x;
    p.axis_y = ((float) (c->height - 1) / 2 - p.centre_y) * p.pitch_y;
  }
  plan_samples (c, &p);
  return p;
}

ImkPhotostereoParams
imk_photostereo_params_of (const ImkPhotostereoConfig *c, uint32_t n_lights)
{
  /* t_min, t_max, t_res for absolute, relative, adaptive */
  static const float defaults[3][3] = {
      {0.04f, 0.98f, 0.03f}, {0.1f, 1.3f, 0.15f}, {0.1f, 1.3f, 0.05f}};
  static const uint32_t min_lights[3] = {3, 6, 4};
  ImkPhotostereoThresholds mode = c->thresholds;
  bool relative, adaptive;
  const float *t;
  uint32_t set;

  if (mode == IMK_PHOTOSTEREO_THRESHOLDS_AUTO)
    mode = n_lights < IMK_PHOTOSTEREO_AUTO_LIGHTS
               ? IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE
               : IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE;
  relative = mode != IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE;
  adaptive = mode == IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE &&
             c->robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS;
  set = (uint32_t) relative + adaptive;
  t = defaults[set];

  return (ImkPhotostereoParams){
      .robust = c->robust,
      .relative = relative,
      .adaptive = adaptive,
      .t_min = c->t_min < 0 ? t[0] : (float) c->t_min,
      .t_max = c->t_max < 0 ? t[1] : (float) c->t_max,
      .t_res = c->t_res >= 0                               ? (float) c->t_res
               : c->robust == IMK_PHOTOSTEREO_ROBUST_HUBER ? 0.02f
                                                           : t[2],
      .readmit = c->readmit,
      .max_iterations = c->max_iterations,
      .min_lights = c->min_lights ? c->min_lights : min_lights[set],
      .min_condition = (float) c->min_condition,
      .y_down = c->y_down,
  };
}
