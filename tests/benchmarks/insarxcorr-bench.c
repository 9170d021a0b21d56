/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* insarxcorr: a row of 20 patches of a pair of RADARSAT-2's size on the CPU,
 * and 50 such rows on the GPU, from page-locked memory to the offsets, beside
 * the mere copies of the same lines. */
#include "imk/insarxcorr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "imk/device.h"

enum {
  WIDTH = 3416,
  HEIGHT = 5744,
  AT_ONCE = 76, /* lines: 1 MiB, as slcsrc brings them */
  N_FIELDS = IMK_INSARXCORR_N_FIELDS,
};

typedef struct Pair {
  ImkInsarxcorrConfig config;
  ImkBackend backend;
  ImkInsarxcorr *kernel;
  const ImkDevice *device; /* NULL for the CPU */
  void *stream;
  uint8_t *lines[IMK_INSARXCORR_N_SIDES];
  uint8_t *copy; /* of one image: on the device, or on the CPU */
  ImkImage out;
} Pair;

/* Smooth noise, the secondary 3 columns and -5 lines behind. */
static void
fill_pair (const Pair *p)
{
  const uint32_t wide = WIDTH + 16, high = p->config.height[0] + 16;
  BenchRing noise = bench_ring_new ((size_t) wide * high * 2, 1);

  bench_ring_noise (&noise, 7);
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    for (uint32_t y = 0; y < p->config.height[0]; y++)
      for (uint32_t x = 0; x < WIDTH; x++) {
        int16_t *out = (int16_t *) p->lines[s] + 2 * ((size_t) y * WIDTH + x);
        const int8_t *in =
            (const int8_t *) noise.block +
            2 * ((size_t) (y + 8 + (s ? 5 : 0)) * wide + x + 8 - (s ? 3 : 0));

        for (int part = 0; part < 2; part++)
          out[part] =
              (int16_t) (4 * (in[part] + in[part + 2] + in[part + 2 * wide] +
                                 in[part + 2 * wide + 2]));
      }
  bench_ring_free (&noise);
}

static size_t
image_size (const Pair *p)
{
  return (size_t) WIDTH * p->config.height[0] * 4;
}

static void
open_host (Pair *p)
{
  size_t out = (size_t) p->config.nx * N_FIELDS * sizeof (double);

  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    p->lines[s] = malloc (image_size (p));
  p->copy = malloc (image_size (p));
  p->out.data = malloc (out);
  if (!p->lines[0] || !p->lines[1] || !p->copy || !p->out.data)
    bench_fail ("there is no memory for images of %zu bytes.", image_size (p));
  memset (p->copy, 0, image_size (p));
}

static void
open_device (Pair *p)
{
  size_t out = (size_t) p->config.nx * N_FIELDS * sizeof (double);
  void *host, *mapped;
  ImkError error;

  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    bench_ok (p->device->alloc_pinned (
                  image_size (p), (void **) &p->lines[s], &mapped, &error),
        &error);
  bench_ok (p->device->alloc_pinned (out, &host, &mapped, &error), &error);
  bench_ok (
      p->device->alloc_device (image_size (p), (void **) &p->copy, &error),
      &error);
  bench_ok (p->device->stream_new (&p->stream, &error), &error);
  p->out.data = mapped;
  p->out.location = IMK_LOCATION_HOST_MAPPED;
}

static void
pair_open (Pair *p, const ImkDevice *device, ImkInsarxcorrMode mode,
    uint32_t n_rows, uint32_t threads, uint32_t n_gpus)
{
  ImkInsarxcorrConfig *c = &p->config;
  ImkError error;

  *p = (Pair){.device = device};
  p->backend = device ? IMK_BACKEND_CUDA : IMK_BACKEND_CPU;
  imk_insarxcorr_config_init (c);
  c->mode = mode;
  c->width[0] = c->width[1] = WIDTH;
  c->height[0] = c->height[1] = n_rows == 1 ? 800 : HEIGHT;
  c->nx = 20;
  c->ny = n_rows;
  c->n_threads = threads;
  c->n_devices = n_gpus - 1;
  for (uint32_t i = 0; i < c->n_devices; i++)
    c->devices[i] = (int) i + 1;
  c->xsearch = c->ysearch = 128;
  if (mode == IMK_INSARXCORR_PRECISE) {
    c->xsearch = c->ysearch = 16;
    c->window_width = 64;
    c->window_height = 128;
  }
  p->out = (ImkImage){.stride = N_FIELDS * sizeof (double),
      .width = N_FIELDS,
      .height = c->nx,
      .channels = 1,
      .type = IMK_TYPE_F64};
  if (device)
    open_device (p);
  else
    open_host (p);
  fill_pair (p);
  bench_ok (imk_insarxcorr_new (p->backend, c, &p->kernel, &error), &error);
}

static void
pair_close (Pair *p)
{
  imk_insarxcorr_free (p->kernel);
  if (p->device) {
    for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
      p->device->free_pinned (p->lines[s]);
    p->device->free_device (p->copy);
    p->device->stream_free (p->stream);
    return; /* the block of the results goes with the process */
  }
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    free (p->lines[s]);
  free (p->copy);
  free (p->out.data);
}

/* As many lines as there is room for; as the elements do, a row does not wait
 * for lines beyond it. */
static void
push (Pair *p, ImkInsarxcorrSide side, bool only_wanted)
{
  uint32_t room;
  ImkError error;

  while ((room = imk_insarxcorr_room (p->kernel, side)) > 0 &&
         !(only_wanted && imk_insarxcorr_is_ready (p->kernel))) {
    size_t stride = (size_t) WIDTH * 4;
    ImkImage lines = {
        .data =
            p->lines[side] + imk_insarxcorr_pushed (p->kernel, side) * stride,
        .stride = stride,
        .width = WIDTH,
        .height = room < AT_ONCE ? room : AT_ONCE,
        .channels = 1,
        .type = IMK_TYPE_CI16,
    };

    bench_ok (imk_insarxcorr_push (p->kernel, side, &lines, &error), &error);
  }
}

static void
push_both (Pair *p, bool only_wanted)
{
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    push (p, (ImkInsarxcorrSide) s, only_wanted);
}

/* The whole pair. */
static void
ours_run (void *data, uint32_t turn)
{
  Pair *p = data;
  ImkError error;

  (void) turn;
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    imk_insarxcorr_rewind (p->kernel, (ImkInsarxcorrSide) s);
  for (uint32_t row = 0; row < p->config.ny; row++) {
    push_both (p, true);
    bench_ok (
        imk_insarxcorr_process (p->kernel, &p->out, p->stream, &error), &error);
    push_both (p, false); /* what there is room for beside the row at work */
    if (p->device)
      bench_ok (p->device->stream_synchronize (p->stream, &error), &error);
    imk_insarxcorr_advance (p->kernel);
  }
}

/* All lines of both images, and no work. */
static void
copy_run (void *data, uint32_t turn)
{
  Pair *p = data;
  size_t size = image_size (p);
  ImkError error;

  (void) turn;
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    if (p->device)
      bench_ok (p->device->copy (p->copy, size, p->lines[s], size, size, 1,
                    p->stream, &error),
          &error);
    else
      memcpy (p->copy, p->lines[s], size);
  }
  if (p->device)
    bench_ok (p->device->stream_synchronize (p->stream, &error), &error);
}

static void
pair_case (const ImkDevice *device, ImkInsarxcorrMode mode, uint32_t n_rows,
    uint32_t threads, uint32_t n_gpus)
{
  const char *backend = device ? "cuda" : "cpu";
  Pair p;
  const BenchEntry entries[] = {
      {backend, "ours", ours_run, &p},
      {backend, device ? "upload" : "memcpy", copy_run, &p},
  };
  char name[80];

  snprintf (name, sizeof (name), "insarxcorr-%s-%ux20",
      mode == IMK_INSARXCORR_PRECISE ? "precise" : "compat", n_rows);
  if (!device)
    snprintf (
        name + strlen (name), sizeof (name) - strlen (name), "-t%u", threads);
  if (n_gpus > 1)
    snprintf (name + strlen (name), sizeof (name) - strlen (name), "-gpus-%u",
        n_gpus);
  pair_open (&p, device, mode, n_rows, threads, n_gpus);
  bench_case (name, entries, 2);
  pair_close (&p);
}

static void
gpu_cases (void)
{
  const ImkDevice *device;
  ImkError error;
  void *context;
  int n_devices = 0;

  if (imk_backend_load ("cuda", &error) != IMK_OK ||
      imk_device_get (&device, &error) != IMK_OK) {
    printf ("no GPU: %s\n", error.message);
    return;
  }
  bench_ok (device->context (0, &context, &error), &error);
  bench_ok (device->push (context, &error), &error);
  bench_ok (device->count (&n_devices, &error), &error);
  for (int n = 1; n <= n_devices && n <= 4; n *= 2) {
    pair_case (device, IMK_INSARXCORR_COMPAT, 50, 0, (uint32_t) n);
    pair_case (device, IMK_INSARXCORR_PRECISE, 50, 0, (uint32_t) n);
  }
  device->pop ();
}

int
main (int argc, char **argv)
{
  bench_open (argc, argv, "insarxcorr");
  gpu_cases ();
  for (uint32_t threads = 1; threads <= 2; threads++) {
    pair_case (NULL, IMK_INSARXCORR_COMPAT, 1, threads, 1);
    pair_case (NULL, IMK_INSARXCORR_PRECISE, 1, threads, 1);
  }
  return bench_close ();
}
