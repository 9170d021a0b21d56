/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What can be told of lights before their pictures are there. */
#include "photostereo/photostereo-plan.h"

#include <math.h>

/* xx, xy, xz, yy, yz, zz of a sum of L L'. */
typedef double Matrix[6];

static void
add_light (Matrix a, const double l[3])
{
  a[0] += l[0] * l[0];
  a[1] += l[0] * l[1];
  a[2] += l[0] * l[2];
  a[3] += l[1] * l[1];
  a[4] += l[1] * l[2];
  a[5] += l[2] * l[2];
}

/* Returns: the determinant */
static double
adjugate (const Matrix a, Matrix adj)
{
  adj[0] = a[3] * a[5] - a[4] * a[4];
  adj[1] = a[2] * a[4] - a[1] * a[5];
  adj[2] = a[1] * a[4] - a[2] * a[3];
  adj[3] = a[0] * a[5] - a[2] * a[2];
  adj[4] = a[1] * a[2] - a[0] * a[4];
  adj[5] = a[0] * a[3] - a[1] * a[1];
  return a[0] * adj[0] + a[1] * adj[1] + a[2] * adj[2];
}

/* Returns: 0 as well where the solver finds rounding only */
static double
condition_of (const Matrix a)
{
  Matrix adj;
  double det = adjugate (a, adj), trace = a[0] + a[3] + a[5];
  double least = IMK_PHOTOSTEREO_MIN_VOLUME * trace * trace * trace;

  return trace > 0 && det > 0 && det >= least
             ? det / (trace * (adj[0] + adj[3] + adj[5]))
             : 0;
}

double
imk_photostereo_lights_condition (const ImkPhotostereoConfig *given)
{
  ImkPhotostereoConfig own;
  const ImkPhotostereoConfig *c =
      imk_photostereo_read_config (given, &own, NULL);
  ImkPhotostereoPlan plan;
  double mean, l[3], u[4] = {0}; /* sums of unit L and unit^2 */
  Matrix a = {0};

  if (!c || imk_photostereo_check_geometry (c, NULL) != IMK_OK)
    return 0;
  plan = (ImkPhotostereoPlan){
      .model = imk_photostereo_model_of (c), .led_lobe = (float) c->led_lobe};
  mean = imk_photostereo_mean_distance (c);
  for (uint32_t i = 0; i < c->n_lights; i++) {
    ImkPhotostereoLamp lamp = imk_photostereo_make_lamp (c, i, mean);

    imk_photostereo_light_vector (&plan, &lamp, 0, 0, l);
    add_light (a, l);
    for (int k = 0; k < 3; k++)
      u[k] += lamp.gain[0] * l[k];
    u[3] += (double) lamp.gain[0] * lamp.gain[0];
  }
  if (c->ambient_model == IMK_PHOTOSTEREO_AMBIENT_CONSTANT)
    for (int r = 0, at = 0; r < 3; r++)
      for (int k = r; k < 3; k++, at++)
        a[at] -= u[r] * u[k] / u[3];
  return condition_of (a);
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
  Matrix a = {0}, adj;
  double l[3], det;

  for (uint32_t i = 0; i < p->n_lights; i++)
    if (rig->present[i]) {
      imk_photostereo_light_vector (p, &rig->lamps[i], x, y, l);
      if (!known || n[0] * l[0] + n[1] * l[1] + n[2] * l[2] > 0)
        add_light (a, l);
    }
  if (!known || condition_of (a) < rig->min_condition) {
    a[0] += 1e-3;
    a[3] += 1e-3;
    a[5] += 1e-3;
  }
  det = adjugate (a, adj);
  for (uint32_t i = 0; i < p->n_lights; i++) {
    if (rig->present[i])
      continue;
    imk_photostereo_light_vector (p, &rig->lamps[i], x, y, l);
    if (known && !(n[0] * l[0] + n[1] * l[1] + n[2] * l[2] > 0))
      continue;
    gain[i] += log1p ((l[0] * (adj[0] * l[0] + 2 * adj[1] * l[1]) +
                          l[1] * (adj[3] * l[1] + 2 * adj[4] * l[2]) +
                          l[2] * (adj[5] * l[2] + 2 * adj[2] * l[0])) /
                      det);
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
