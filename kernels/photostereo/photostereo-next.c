/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What can be told of lights before their pictures are there. */
#include "photostereo/photostereo-plan.h"

#include <math.h>

#define REAL double
#define INLINE static inline
#include "photostereo/photostereo-solve.h"

/* Returns: 0 as well where the solver finds rounding only */
static double
condition_of (const Sums *a)
{
  Solution s = solve_sums (a);

  return a->xx + a->yy + a->zz > 0 && s.volume >= IMK_PHOTOSTEREO_MIN_VOLUME
             ? s.condition
             : 0;
}

double
imk_photostereo_lights_condition (const ImkPhotostereoConfig *given)
{
  ImkPhotostereoConfig own;
  const ImkPhotostereoConfig *c =
      IMK_CONFIG_READ (photostereo, given, &own, NULL);
  ImkPhotostereoPlan plan;
  double mean, l[3], u[4] = {0}; /* sums of unit L and unit^2 */
  Sums a = {0};

  if (!c || imk_photostereo_check_geometry (c, NULL) != IMK_OK)
    return 0;
  plan = (ImkPhotostereoPlan){
      .model = imk_photostereo_model_of (c), .led_lobe = (float) c->led_lobe};
  mean = imk_photostereo_mean_distance (c);
  for (uint32_t i = 0; i < c->n_lights; i++) {
    ImkPhotostereoLamp lamp = imk_photostereo_make_lamp (c, i, mean);

    imk_photostereo_light_vector (&plan, &lamp, 0, 0, l);
    add_light (&a, l[0], l[1], l[2], l[0], l[1], l[2], 0);
    for (int k = 0; k < 3; k++)
      u[k] += lamp.gain[0] * l[k];
    u[3] += (double) lamp.gain[0] * lamp.gain[0];
  }
  if (c->ambient_model == IMK_PHOTOSTEREO_AMBIENT_CONSTANT)
    add_light (
        &a, -u[0] / u[3], -u[1] / u[3], -u[2] / u[3], u[0], u[1], u[2], 0);
  return condition_of (&a);
}

/* What a gain depends on beside the pixel. */
typedef struct Rig {
  const ImkPhotostereoPlan *plan;
  const ImkPhotostereoLamp *lamps;
  const bool *present;
  float min_condition;
} Rig;

/* Adds to each gain[light] what its picture would tell about one pixel. */
static void
add_gains (const Rig *rig, const float n[3], double x, double y, double *gain)
{
  const ImkPhotostereoPlan *p = rig->plan;
  bool known = n[0] != 0 || n[1] != 0 || n[2] != 0;
  Sums a = {0};
  Solution s;
  double l[3];

  for (uint32_t i = 0; i < p->n_lights; i++)
    if (rig->present[i]) {
      imk_photostereo_light_vector (p, &rig->lamps[i], x, y, l);
      if (!known || n[0] * l[0] + n[1] * l[1] + n[2] * l[2] > 0)
        add_light (&a, l[0], l[1], l[2], l[0], l[1], l[2], 0);
    }
  if (!known || condition_of (&a) < rig->min_condition) {
    a.xx += 1e-3;
    a.yy += 1e-3;
    a.zz += 1e-3;
  }
  for (uint32_t i = 0; i < p->n_lights; i++) {
    if (rig->present[i])
      continue;
    imk_photostereo_light_vector (p, &rig->lamps[i], x, y, l);
    if (known && !(n[0] * l[0] + n[1] * l[1] + n[2] * l[2] > 0))
      continue;
    a.x = l[0];
    a.y = l[1];
    a.z = l[2];
    s = solve_sums (&a);
    gain[i] += log1p (s.x * l[0] + s.y * l[1] + s.z * l[2]);
  }
}

uint32_t
imk_photostereo_choose_light (const ImkPhotostereoPlan *p,
    const ImkPhotostereoLamp *lamps, const bool *present, float min_condition,
    const float *normals, uint32_t step_x, uint32_t step_y)
{
  const Rig rig = {p, lamps, present, min_condition};
  double gain[IMK_PHOTOSTEREO_MAX_LIGHTS] = {0}, best = -1;
  uint32_t light = 0;

  for (uint32_t y = step_y / 2; y < p->height; y += step_y)
    for (uint32_t x = step_x / 2; x < p->width; x += step_x, normals += 3)
      add_gains (&rig, normals, (x - p->centre_x) * p->pitch_x,
          (y - p->centre_y) * p->pitch_y, gain);
  for (uint32_t i = 0; i < p->n_lights; i++)
    if (!present[i] && gain[i] > best) {
      best = gain[i];
      light = i;
    }
  return light;
}
