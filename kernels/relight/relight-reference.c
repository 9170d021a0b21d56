/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the top: a normal, an albedo, and the formula of Blinn 1977, which is
 * above the last function. */
#include "relight/relight-reference.h"

#include <math.h>

#include "core/sample.h"

static double
dot (const double a[3], const double b[3])
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void
scale (double v[3], double by)
{
  for (int i = 0; i < 3; i++)
    v[i] *= by;
}

static double
get_sample (const ImkRelightSource *s, uint32_t x, uint32_t y, uint32_t colour)
{
  return imk_sample_get (&s->image, x, y, s->colours[colour]);
}

/* Returns: whether there is a normal; then @n has length 1 */
static bool
get_normal (const ImkRelightConfig *c, const ImkRelightSource *s, uint32_t x,
    uint32_t y, double n[3])
{
  ImkType type = s->image.type;
  double zero = type == IMK_TYPE_U8 ? 128 : type == IMK_TYPE_U16 ? 32768 : 0;
  double length;
  bool any = false;

  for (uint32_t i = 0; i < 3; i++) {
    n[i] = get_sample (s, x, y, i);
    any = any || n[i] != 0;
    n[i] -= zero;
  }
  length = sqrt (dot (n, n));
  if (!any || !(length > 1e-6) || !isfinite (length))
    return false;
  scale (n, 1 / length);
  if (c->y_down)
    n[1] = -n[1];
  return true;
}

/* Returns: 0..1; 1 without an image */
static double
get_albedo (const ImkRelightSource *s, uint32_t x, uint32_t y, uint32_t colour)
{
  ImkType type = s->image.type;
  double full = type == IMK_TYPE_U8 ? 255 : type == IMK_TYPE_U16 ? 65535 : 1;
  double value = s->image.data ? get_sample (s, x, y, colour) / full : 1;

  return value > 0 && isfinite (value) ? value : 0;
}

/* Blinn, "Models of light reflection for computer synthesized pictures",
 * SIGGRAPH 1977: with l to the light and h halfway from l to the camera, which
 * is at (0, 0, 1),
 *   value = albedo (ambient + diffuse max (0, n.l))
 *           + specular max (0, n.h)^shininess where n.l > 0 */
double
imk_relight_reference (const ImkRelightConfig *c,
    const ImkRelightSource *normals, const ImkRelightSource *albedo, uint32_t x,
    uint32_t y, uint32_t colour)
{
  double a = c->azimuth * M_PI / 180, e = c->elevation * M_PI / 180;
  double l[] = {cos (e) * cos (a), cos (e) * sin (a), sin (e)};
  double h[] = {l[0], l[1], l[2] + 1}, n[3], value;

  if (!get_normal (c, normals, x, y, n))
    return 0;
  scale (h, 1 / sqrt (dot (h, h)));
  value = get_albedo (albedo, x, y, colour) *
          (c->ambient + c->diffuse * fmax (dot (n, l), 0));
  if (dot (n, l) > 0)
    value += c->specular * pow (fmax (dot (n, h), 0), c->shininess);
  return 255 * pow (fmin (value, 1), 1 / c->gamma);
}
