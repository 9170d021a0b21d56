/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "normal-common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sample.h"

/* ------------------------------------------------------------------------
 * Maps of normals in float64, and how they are given to the kernel. */

Map
map_new (uint32_t width, uint32_t height)
{
  size_t n = (size_t) width * height;

  return (Map){
      .width = width,
      .height = height,
      .n = calloc (3 * n, sizeof (double)),
      .z = calloc (n, sizeof (double)),
      .inside = calloc (n, sizeof (bool)),
  };
}

void
map_free (Map *m)
{
  free (m->n);
  free (m->z);
  free (m->inside);
}

size_t
map_n_pixels (const Map *m)
{
  return (size_t) m->width * m->height;
}

void
map_set (Map *m, uint32_t x, uint32_t y, double p, double q, double z)
{
  size_t at = (size_t) y * m->width + x;
  double length = sqrt (p * p + q * q + 1);

  m->n[3 * at] = -p / length;
  m->n[3 * at + 1] = -q / length;
  m->n[3 * at + 2] = 1 / length;
  m->z[at] = z;
  m->inside[at] = true;
}

Map
map_plane (uint32_t width, uint32_t height, double p, double q)
{
  Map m = map_new (width, height);

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++)
      map_set (&m, x, y, p, q, p * x - q * y);
  return m;
}

Map
map_sphere (uint32_t width, uint32_t height, double radius)
{
  Map m = map_new (width, height);

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++) {
      double dx = x - (width - 1) / 2.0, dy = (height - 1) / 2.0 - y;
      double z2 = radius * radius - dx * dx - dy * dy, z = sqrt (z2);

      if (z2 > 0)
        map_set (&m, x, y, -dx / z, -dy / z, z);
    }
  return m;
}

Map
map_waves (uint32_t width, uint32_t height)
{
  Map m = map_new (width, height);
  double u = 2 * M_PI * 2 / width, v = 2 * M_PI * 3 / height;

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++)
      /* y runs down, the slope along it up */
      map_set (&m, x, y, 2 * u * cos (u * x + 1) - u * v * sin (u * x + v * y),
          v * v * sin (u * x + v * y),
          2 * sin (u * x + 1) + v * cos (u * x + v * y));
  return m;
}

Map
map_two_planes (uint32_t width, uint32_t height, double slope)
{
  Map m = map_new (width, height);

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++) {
      double q = x > width / 2 ? slope : 0;

      map_set (&m, x, y, 0, q, q * ((height - 1) / 2.0 - y));
    }
  return m;
}

Map
map_sphere_in_front (uint32_t width, uint32_t height, double radius)
{
  Map m = map_sphere (width, height, radius);

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++)
      if (!m.inside[(size_t) y * width + x])
        map_set (&m, x, y, 0.5, 0, 0.5 * x - 2 * width);
  return m;
}

Map
map_sphere_near (uint32_t width, uint32_t height, double radius,
    double distance, double f, double aspect, double steepest)
{
  Map m = map_new (width, height);
  double lowest = 0;

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++) {
      size_t at = (size_t) y * width + x;
      double u = (x - (width - 1) / 2.0) / f;
      double v = ((height - 1) / 2.0 - y) / aspect / f, l = u * u + v * v + 1,
             d, n[3];
      /* the nearer of the two points on the ray with depth d */
      double root =
          distance * distance - l * (distance * distance - radius * radius);

      if (root <= 0)
        continue;
      d = (distance - sqrt (root)) / l;
      n[0] = u * d / radius;
      n[1] = v * d / radius;
      n[2] = (distance - d) / radius;
      /* steeper views are left out */
      if (n[2] - n[0] * u - n[1] * v < steepest || n[2] <= steepest)
        continue;
      memcpy (m.n + 3 * at, n, sizeof (n));
      m.z[at] = -d;
      m.inside[at] = true;
      lowest = fmin (lowest, -d);
    }
  for (size_t i = 0; i < map_n_pixels (&m); i++)
    m.z[i] = m.inside[i] ? m.z[i] - lowest : 0;
  return m;
}

Map
map_plane_near (uint32_t width, uint32_t height, const double normal[3],
    double distance, double f)
{
  Map m = map_new (width, height);
  double lowest = INFINITY;

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++) {
      size_t at = (size_t) y * width + x;
      double u = (x - (width - 1) / 2.0) / f;
      double v = ((height - 1) / 2.0 - y) / f;
      double d =
          distance * normal[2] / (normal[2] - u * normal[0] - v * normal[1]);

      memcpy (m.n + 3 * at, normal, 3 * sizeof (double));
      m.z[at] = -d;
      m.inside[at] = true;
      lowest = fmin (lowest, -d);
    }
  for (size_t i = 0; i < map_n_pixels (&m); i++)
    m.z[i] -= lowest;
  return m;
}

static double
normal_uniform (uint64_t *seed)
{
  return (double) (test_random (seed) >> 11) / 9007199254740992.0;
}

Map
map_noise (uint32_t width, uint32_t height, double holes, uint64_t seed)
{
  Map m = map_new (width, height);

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++)
      if (normal_uniform (&seed) >= holes)
        map_set (&m, x, y, 2 * normal_uniform (&seed) - 1,
            2 * normal_uniform (&seed) - 1, 0);
  return m;
}

void
map_cut (Map *m, uint32_t x, uint32_t y)
{
  m->inside[(size_t) y * m->width + x] = false;
}

TestImage
map_encode (const Map *m, ImkType type, uint32_t channels, bool y_down)
{
  TestImage t = test_image_new (type, m->width, m->height, channels, 12);
  uint64_t seed = 5;

  for (uint32_t y = 0; y < m->height; y++)
    for (uint32_t x = 0; x < m->width; x++)
      for (uint32_t c = 0; c < channels; c++) {
        size_t at = (size_t) y * m->width + x;
        double v = c == 3 ? normal_uniform (&seed) : m->n[3 * at + c];
        bool there = m->inside[at] || c == 3;

        if (c == 1 && y_down)
          v = -v;
        if (type == IMK_TYPE_U8)
          v = 128 + 127 * v;
        else if (type == IMK_TYPE_U16)
          v = 32768 + 32767 * v;
        imk_sample_put (&t.image, x, y, c, there ? v : 0);
      }
  return t;
}

/* --- runs ----------------------------------------------------------------- */

void
result_free (Result *r)
{
  test_image_free (&r->height);
  test_image_free (&r->grey);
}

float
result_height (const Result *r, uint32_t x, uint32_t y)
{
  return (float) imk_sample_get (&r->height.image, x, y, 0);
}

unsigned
result_grey (const Result *r, uint32_t x, uint32_t y)
{
  return (unsigned) imk_sample_get (&r->grey.image, x, y, 0);
}

ImkNormalintegrateConfig
normal_config (const TestImage *in)
{
  ImkNormalintegrateConfig c;

  imk_normalintegrate_config_init (&c);
  c.width = in->image.width;
  c.height = in->image.height;
  c.type = in->image.type;
  c.channels = in->image.channels;
  c.n_threads = 1;
  return c;
}

static ImkStatus
process_on_device (
    ImkNormalintegrate *s, const TestImage *in, Result *r, ImkError *error)
{
  ImkImage from = test_to_device (in);
  ImkNormalintegrateOutputs out = {
      test_to_device (&r->height), test_to_device (&r->grey)};
  ImkStatus status =
      imk_normalintegrate_process (s, &from, &out, &r->summary, NULL, error);

  test_from_device (&out.height, &r->height);
  test_from_device (&out.grey, &r->grey);
  test_device_free (&from);
  test_device_free (&out.height);
  test_device_free (&out.grey);
  return status;
}

Result
normal_run_on (
    ImkBackend backend, const ImkNormalintegrateConfig *c, const TestImage *in)
{
  Result r = {
      .height = test_image_new (IMK_TYPE_F32, c->width, c->height, 1, 8),
      .grey = test_image_new (IMK_TYPE_U16, c->width, c->height, 1, 6),
  };
  ImkNormalintegrateOutputs out = {r.height.image, r.grey.image};
  ImkNormalintegrate *s = NULL;

  test_ok (imk_normalintegrate_new (backend, c, &s, test_new_error ()));
  test_ok (backend == IMK_BACKEND_CUDA
               ? process_on_device (s, in, &r, test_new_error ())
               : imk_normalintegrate_process (
                     s, &in->image, &out, &r.summary, NULL, test_new_error ()));
  imk_normalintegrate_free (s);
  test_image_check_canaries (&r.height, "height");
  test_image_check_canaries (&r.grey, "grey");
  return r;
}

Result
normal_run (const Map *m, ImkType type, const ImkNormalintegrateConfig *change)
{
  test_auto (TestImage) in =
      map_encode (m, type, type == IMK_TYPE_U16 ? 4 : 3, false);
  ImkNormalintegrateConfig c = normal_config (&in);
  Result r;

  if (change) {
    c.method = change->method;
    c.tolerance = change->tolerance;
    c.pixel_aspect = change->pixel_aspect;
    c.mm_per_pixel = change->mm_per_pixel;
    c.grey_range = change->grey_range;
    c.max_slope = change->max_slope;
    c.n_threads = change->n_threads;
    c.stiffness = change->stiffness;
    c.max_iterations = change->max_iterations;
    c.focal_pixels = change->focal_pixels;
  }
  r = normal_run_on (IMK_BACKEND_CPU, &c, &in);
  return r;
}

double
result_mean (const Result *r, const Map *m, const double *z)
{
  double sum = 0;
  size_t n = 0;

  for (uint32_t y = 0; y < m->height; y++)
    for (uint32_t x = 0; x < m->width; x++) {
      size_t at = (size_t) y * m->width + x;

      test_check (isfinite (result_height (r, x, y)) == m->inside[at] &&
                      (result_grey (r, x, y) > 0) == m->inside[at],
          "%s (%u, %u) the height is %g, grey %u",
          m->inside[at] ? "at" : "in the hole", x, y, result_height (r, x, y),
          result_grey (r, x, y));
      if (m->inside[at]) {
        sum += result_height (r, x, y) - z[at];
        n++;
      }
    }
  return n ? sum / (double) n : 0;
}

double
result_error (const Result *r, const Map *m, const double *z, double *largest)
{
  double mean = result_mean (r, m, z), square = 0, most = 0;
  size_t n = 0;

  for (uint32_t y = 0; y < m->height; y++)
    for (uint32_t x = 0; x < m->width; x++) {
      size_t at = (size_t) y * m->width + x;
      double d = result_height (r, x, y) - z[at] - mean;

      if (m->inside[at]) {
        square += d * d;
        most = fmax (most, fabs (d));
        n++;
      }
    }
  if (largest)
    *largest = most;
  return n ? sqrt (square / (double) n) : 0;
}
