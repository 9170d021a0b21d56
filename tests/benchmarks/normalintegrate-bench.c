/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A hemisphere of 16-bit normals in a square: heights by each method, and the
 * same lit by relight, beside a copy of the normals. The device's maps are in
 * its memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "imk/device.h"
#include "imk/normalintegrate.h"
#include "imk/relight.h"

typedef struct Setup {
  uint32_t size;           /* pixels a side */
  const ImkDevice *device; /* NULL on the CPU */
  ImkNormalintegrate *heights;
  ImkNormalintegrateSummary summary;
  ImkRelight *light;
  ImkImage normals, copy, height, lit;
} Setup;

static uint16_t *
make_normals (uint32_t size)
{
  uint16_t *samples = calloc ((size_t) size * size, 8);
  double radius = 0.48 * size;

  for (uint32_t y = 0; y < size; y++)
    for (uint32_t x = 0; x < size; x++) {
      double dx = (x - size / 2.0) / radius, dy = (size / 2.0 - y) / radius;
      double z2 = 1 - dx * dx - dy * dy;
      uint16_t *n = samples + 4 * ((size_t) y * size + x);

      if (z2 > 1e-4) {
        n[0] = (uint16_t) (32768.5 + 32767 * dx);
        n[1] = (uint16_t) (32768.5 + 32767 * dy);
        n[2] = (uint16_t) (32768.5 + 32767 * sqrt (z2));
      }
    }
  return samples;
}

static ImkImage
image_new (const Setup *s, ImkType type, uint32_t channels)
{
  ImkImage i = {
      .width = s->size, .height = s->size, .channels = channels, .type = type};
  ImkError error;

  i.stride = imk_image_row_size (&i);
  i.location = s->device ? IMK_LOCATION_DEVICE : IMK_LOCATION_HOST;
  if (s->device)
    bench_ok (
        s->device->alloc_device (i.stride * i.height, &i.data, &error), &error);
  else if (!(i.data = aligned_alloc (64, (i.stride * i.height + 63) / 64 * 64)))
    bench_fail ("no memory");
  return i;
}

static void
image_free (const Setup *s, ImkImage *i)
{
  if (s->device)
    s->device->free_device (i->data);
  else
    free (i->data);
}

static void
wait_for (const Setup *s)
{
  ImkError error;

  if (s->device)
    bench_ok (s->device->stream_synchronize (NULL, &error), &error);
}

static void
run_heights (void *data, uint32_t turn)
{
  Setup *s = data;
  ImkNormalintegrateOutputs out = {.height = s->height};
  ImkError error;

  bench_ok (imk_normalintegrate_process (
                s->heights, &s->normals, &out, &s->summary, NULL, &error),
      &error);
}

static void
run_light (void *data, uint32_t turn)
{
  Setup *s = data;
  ImkRelightSource normals = {.image = s->normals, .colours = {0, 1, 2}};
  ImkRelightSource none = {.image = {.data = NULL}};
  ImkError error;

  bench_ok (
      imk_relight_process (s->light, &normals, &none, &s->lit, NULL, &error),
      &error);
  wait_for (s);
}

static void
run_copy (void *data, uint32_t turn)
{
  Setup *s = data;
  ImkError error;

  if (!s->device) {
    memcpy (s->copy.data, s->normals.data, s->normals.stride * s->size);
    return;
  }
  bench_ok (s->device->copy (s->copy.data, s->copy.stride, s->normals.data,
                s->normals.stride, s->normals.stride, s->size, NULL, &error),
      &error);
  wait_for (s);
}

static void
case_of (
    uint32_t size, const ImkDevice *device, ImkNormalintegrateMethod method)
{
  static const char *const names[] = {
      "poisson", "frankot-chellappa", "bilateral"};
  Setup s = {.size = size, .device = device};
  const char *backend = device ? "cuda" : "cpu";
  const BenchEntry entries[] = {{backend, "ours", run_heights, &s},
      {backend, "relight", run_light, &s}, {backend, "copy", run_copy, &s}};
  ImkBackend where = device ? IMK_BACKEND_CUDA : IMK_BACKEND_CPU;
  uint16_t *samples = make_normals (size);
  ImkNormalintegrateConfig c;
  ImkRelightConfig r;
  char name[80];
  ImkError error;

  imk_normalintegrate_config_init (&c);
  c.width = c.height = r.width = r.height = size;
  c.type = IMK_TYPE_U16;
  c.channels = 4;
  c.method = method;
  imk_relight_config_init (&r);
  r.width = r.height = size;
  r.specular = 0.3;
  s.normals = image_new (&s, IMK_TYPE_U16, 4);
  s.copy = image_new (&s, IMK_TYPE_U16, 4);
  s.height = image_new (&s, IMK_TYPE_F32, 1);
  s.lit = image_new (&s, IMK_TYPE_U8, 3);
  if (device)
    bench_ok (device->copy (s.normals.data, s.normals.stride, samples,
                  s.normals.stride, s.normals.stride, size, NULL, &error),
        &error);
  else
    memcpy (s.normals.data, samples, s.normals.stride * size);
  wait_for (&s);
  bench_ok (imk_normalintegrate_new (where, &c, &s.heights, &error), &error);
  bench_ok (imk_relight_new (where, &r, &s.light, &error), &error);
  run_heights (&s, 0);
  if (method == IMK_NORMALINTEGRATE_POISSON &&
      fabs (s.summary.highest / (0.48 * size) - 0.985) > 0.02)
    bench_fail ("a hemisphere of %u is %g high", size, s.summary.highest);
  snprintf (name, sizeof (name), "%s-%ux%u-%u-iterations", names[method], size,
      size, s.summary.n_iterations);
  bench_limit (method == IMK_NORMALINTEGRATE_BILATERAL ? 30 : 0);
  bench_case (name, entries, 3);
  imk_normalintegrate_free (s.heights);
  imk_relight_free (s.light);
  image_free (&s, &s.normals);
  image_free (&s, &s.copy);
  image_free (&s, &s.height);
  image_free (&s, &s.lit);
  free (samples);
}

int
main (int argc, char **argv)
{
  const ImkDevice *device;
  void *context;
  ImkError error;

  bench_open (argc, argv, "normalintegrate");
  for (int method = 0; method < 3; method++)
    case_of (1732, NULL, method); /* 3 megapixels */
  if (imk_backend_load ("cuda", &error) != IMK_OK ||
      imk_device_get (&device, &error) != IMK_OK) {
    printf ("no device: %s\n", error.message);
    return bench_close ();
  }
  bench_ok (device->context (0, &context, &error), &error);
  bench_ok (device->push (context, &error), &error);
  for (int method = 0; method < 3; method++)
    for (uint32_t size = 1732; size <= 4472; size += 2740) /* and 20 */
      case_of (size, device, method);
  device->pop ();
  return bench_close ();
}
