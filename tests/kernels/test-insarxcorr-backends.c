/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The offsets of SAR images, the backends and devices against each other. */
#include "insar-common.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imk/device.h"

/* Fails where a field of a patch differs by more than the header says. */
static void
check_fields (const ImkInsarxcorrConfig *c, const double *cpu,
    const double *cuda, const char *where)
{
  double step_x = 1.0 / (c->interp * c->range_interp), step_y = 1.0 / c->interp;
  bool precise = c->mode == IMK_INSARXCORR_PRECISE;
  int n_moved = 0;

  for (uint32_t i = 0; i < c->nx * c->ny;
       i++, cpu += N_FIELDS, cuda += N_FIELDS)
    for (int f = 0; f < N_FIELDS; f++) {
      double off = fabs (cuda[f] - cpu[f]), allowed = 0;

      switch (f) {
      case IMK_INSARXCORR_DX:
        allowed = precise ? 0.002 : step_x;
        n_moved += !precise && off > 0;
        break;
      case IMK_INSARXCORR_DY:
        allowed = precise ? 0.002 : step_y;
        n_moved += !precise && off > 0;
        break;
      case IMK_INSARXCORR_CORRELATION:
      case IMK_INSARXCORR_PEAK:
        allowed = 0.02;
        break;
      case IMK_INSARXCORR_SNR:
        allowed = 1e-3 * fabs (cpu[f]);
        break;
      case IMK_INSARXCORR_COV_XX:
      case IMK_INSARXCORR_COV_YY:
        allowed = 1e-3 * fabs (cpu[f]) + 1e-8;
        break;
      case IMK_INSARXCORR_COV_XY:
        allowed = 1e-8 + 1e-3 * (fabs (cpu[IMK_INSARXCORR_COV_XX]) +
                                    fabs (cpu[IMK_INSARXCORR_COV_YY]));
      }
      test_check (off <= allowed, "%s patch %u field %d: cpu %.9g, cuda %.9g",
          where, i, f, cpu[f], cuda[f]);
    }
  test_check (n_moved <= 1, "%s: %d offsets are a step off", where, n_moved);
}

static void
check_backends (const ImkInsarxcorrConfig *c, const void *ref, const void *sec,
    const char *where)
{
  test_autofree double *cpu =
      insar_run_pushing (IMK_BACKEND_CPU, c, ref, sec, 64);
  test_autofree double *cuda =
      insar_run_pushing (IMK_BACKEND_CUDA, c, ref, sec, 37);

  check_fields (c, cpu, cuda, where);
}

TEST (test_backends_agree, "the backends agree")
{
  static const struct {
    ImkInsarxcorrMode mode;
    uint32_t xsearch, ysearch, range_interp, azimuth_interp, interp;
    ImkInsarxcorrMethod method;
    uint32_t window_width, window_height;
    uint64_t memory_limit;
  } cases[] = {
      {IMK_INSARXCORR_COMPAT, 8, 8, 1, 1, 4},
      {IMK_INSARXCORR_COMPAT, 16, 4, 2, 1, 16},
      {IMK_INSARXCORR_COMPAT, 4, 16, 2, 1, 3},
      {IMK_INSARXCORR_COMPAT, 16, 8, 3, 1, 4},
      {IMK_INSARXCORR_COMPAT, 15, 21, 2, 1, 16},
      {IMK_INSARXCORR_COMPAT, 11, 13, 2, 1, 16},
      {IMK_INSARXCORR_COMPAT, 17, 19, 5, 1, 64},
      {IMK_INSARXCORR_COMPAT, 16, 16, 2, 1, 16, .memory_limit = 600000},
      {IMK_INSARXCORR_COMPAT, 8, 8, 2, 1, 4, IMK_INSARXCORR_TIME},
      {IMK_INSARXCORR_COMPAT, 8, 8, 2, 1, 4, IMK_INSARXCORR_TIME4},
      {IMK_INSARXCORR_PRECISE, 8, 8, 2, 2, 16},
      {IMK_INSARXCORR_PRECISE, 5, 7, 2, 2, 16, .window_width = 33,
          .window_height = 41},
      {IMK_INSARXCORR_PRECISE, 8, 6, 1, 1, 8, .window_width = 24,
          .window_height = 50},
      {IMK_INSARXCORR_PRECISE, 6, 8, 3, 4, 16, .window_width = 37,
          .window_height = 29, .memory_limit = 4000000},
  };

  test_need_cuda ();
  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    ImkInsarxcorrConfig c =
        insar_config (231, 217, cases[i].xsearch, cases[i].ysearch, 3, 3);
    test_autofree int16_t *ref = NULL, *sec = NULL;
    char where[64];

    c.mode = cases[i].mode;
    c.range_interp = cases[i].range_interp;
    c.azimuth_interp = cases[i].azimuth_interp;
    c.interp = cases[i].interp;
    c.method = cases[i].method;
    c.window_width = cases[i].window_width;
    c.window_height = cases[i].window_height;
    c.memory_limit = cases[i].memory_limit;
    insar_make_pair (&c, 1, -2, 70 + i, &ref, &sec);
    /* the right part of the secondary is no data */
    for (uint32_t y = 0; y < c.height[1]; y++)
      memset (sec + (y * c.width[1] + 150) * 2, 0, (c.width[1] - 150) * 4);
    snprintf (where, sizeof (where), "case %zu", i);
    check_backends (&c, ref, sec, where);
    c.rshift = 40;
    c.ashift = -60;
    snprintf (where, sizeof (where), "case %zu, beyond the edges", i);
    check_backends (&c, ref, sec, where);
  }
}

/* Lengths of 256, 512 and 1024, which the GPU transforms in registers. */
TEST (test_backends_agree_on_usual_lengths, "so they do on the usual lengths")
{
  static const struct {
    uint32_t xsearch, ysearch;
    uint64_t memory_limit;
  } cases[] = {
      {64, 64},
      {128, 64},
      {64, 128},
      {256, 64},
      {64, 256},
      {128, 128, .memory_limit = 40000000},
  };

  test_need_cuda ();
  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    uint32_t width = 8 * cases[i].xsearch, height = 8 * cases[i].ysearch;
    ImkInsarxcorrConfig c = insar_config (
        width + 3, height + 1, cases[i].xsearch, cases[i].ysearch, 3, 2);
    test_autofree int16_t *ref = NULL, *sec = NULL;
    char where[64];

    c.memory_limit = cases[i].memory_limit;
    insar_make_pair (&c, 3, -7, 90 + i, &ref, &sec);
    /* the right part of the secondary is no data */
    for (uint32_t y = 0; y < c.height[1]; y++)
      memset (sec + ((size_t) y * c.width[1] + width / 8 * 5) * 2, 0,
          (c.width[1] - width / 8 * 5) * 4);
    snprintf (
        where, sizeof (where), "%u x %u", cases[i].xsearch, cases[i].ysearch);
    check_backends (&c, ref, sec, where);
    c.rshift = 40;
    c.ashift = -(int32_t) cases[i].ysearch;
    snprintf (where, sizeof (where), "%u x %u, beyond the edges",
        cases[i].xsearch, cases[i].ysearch);
    check_backends (&c, ref, sec, where);
  }
}

/* Rows of the usual lengths keep the lines that they share with the row before,
 * where memory-limit lets all patches of a row be worked on at once. */
TEST (
    test_rows_share_lines, "rows that share lines give the bytes of each alone")
{
  enum { NX = 5, NY = 9 };
  static const uint8_t mask[] = {1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1};
  ImkInsarxcorrConfig c = insar_config (611, 641, 64, 64, NX, NY);
  const size_t n_values = (size_t) NX * NY * N_FIELDS;
  test_autofree int16_t *ref = NULL, *sec = NULL;
  double gross[NY][NX][2] = {0};

  test_need_cuda ();
  insar_make_pair (&c, 3, -2, 41, &ref, &sec);
  memset (ref + (size_t) 300 * c.width[0] * 2, 0, c.width[0] * 40 * 4);
  for (int j = 0; j < NY; j++)
    for (int i = 0; i < NX; i++) {
      gross[j][i][0] = i < 2 ? 0 : j / 3 * (i - 1); /* columns change */
      gross[j][i][1] = i == 1 ? -40 * (j % 2) : i == 3 ? 300 * (j / 6) : -j;
    }
  for (int i = 0; i < 4; i++) {
    test_autofree double *alone = NULL, *shared = NULL;

    c.ashift = i == 1 ? -150 : 0; /* beyond the first line */
    c.gross_offsets = i == 2 ? &gross[0][0][0] : NULL;
    c.mask = i == 2 ? mask : NULL;
    c.mask_width = 3;
    c.mask_height = 5;
    if (i == 3) /* no room between rows: all are the same */
      c.height[0] = c.height[1] = 390;
    c.memory_limit = 6000000; /* two or three patches of a row at a time */
    alone = insar_run_pushing (IMK_BACKEND_CUDA, &c, ref, sec, 64);
    c.memory_limit = 0;
    shared = insar_run_pushing (IMK_BACKEND_CUDA, &c, ref, sec, 29);
    for (size_t v = 0; v < n_values; v++)
      test_check (memcmp (&alone[v], &shared[v], sizeof (double)) == 0,
          "pair %d, row %zu, patch %zu, field %zu: alone %.9g, shared %.9g", i,
          v / N_FIELDS / NX, v / N_FIELDS % NX, v % N_FIELDS, alone[v],
          shared[v]);
  }
}

TEST (test_backends_agree_on_floats_and_masks,
    "so they do on floats, masks and gross offsets")
{
  ImkInsarxcorrConfig c = insar_config (211, 203, 12, 12, 4, 4);
  size_t n = (size_t) c.width[0] * c.height[0];
  const uint8_t mask[] = {0, 1, 1, 1, 0, 1};
  double gross[4 * 4 * 2];
  float *wide[2];
  int16_t *ints[2];

  test_need_cuda ();
  insar_make_pair (&c, -1, 1, 3, &ints[0], &ints[1]);
  for (int s = 0; s < 2; s++) {
    wide[s] = malloc (2 * n * sizeof (float));
    for (size_t i = 0; i < 2 * n; i++)
      wide[s][i] = i % 91 ? ints[s][i] * 0.75f : NAN;
  }
  for (int i = 0; i < 32; i++)
    gross[i] = (i * 7) % 11 - 5.3;
  c.mask = mask;
  c.mask_width = 3;
  c.mask_height = 2;
  c.gross_offsets = gross;
  c.type = IMK_TYPE_CF32;
  check_backends (&c, wide[0], wide[1], "cf32");
  c.mode = IMK_INSARXCORR_PRECISE;
  check_backends (&c, wide[0], wide[1], "cf32, precise");
  c.type = IMK_TYPE_F32;
  check_backends (&c, wide[0], wide[1], "f32, precise");
  c.mode = IMK_INSARXCORR_COMPAT;
  check_backends (&c, wide[0], wide[1], "f32");
  memset (wide[1], 0, n * sizeof (float));
  check_backends (&c, wide[0], wide[1], "f32, zeros");
  for (int s = 0; s < 2; s++) {
    free (wide[s]);
    free (ints[s]);
  }
}

/* Small enough for compute-sanitizer's racecheck, which watches every access to
 * shared memory. Odd lengths, an odd number of them, and more than one block.
 */
TEST (test_each_kernel_runs_once, "each kernel runs once")
{
  static const ImkType types[] = {IMK_TYPE_CI16, IMK_TYPE_CF32, IMK_TYPE_F32};
  static const uint32_t searches[] = {64, 128, 256};
  static const struct {
    ImkInsarxcorrMode mode;
    ImkInsarxcorrMethod method;
    uint32_t range_interp;
  } runs[] = {
      {IMK_INSARXCORR_COMPAT, IMK_INSARXCORR_FREQ, 2},
      {IMK_INSARXCORR_COMPAT, IMK_INSARXCORR_FREQ, 3},
      {IMK_INSARXCORR_COMPAT, IMK_INSARXCORR_TIME, 2},
      {IMK_INSARXCORR_COMPAT, IMK_INSARXCORR_TIME4, 2},
      {IMK_INSARXCORR_PRECISE, IMK_INSARXCORR_FREQ, 2},
  };
  ImkInsarxcorrConfig c = insar_config (89, 67, 7, 5, 2, 1);
  size_t n = (size_t) c.width[0] * c.height[0];
  int16_t *ints[2];
  float *floats[2];

  test_need_cuda ();
  c.window_width = 13;
  c.window_height = 11;
  c.interp = 4;
  insar_make_pair (&c, 1, -1, 5, &ints[0], &ints[1]);
  for (int s = 0; s < 2; s++) {
    floats[s] = malloc (2 * n * sizeof (float));
    for (size_t i = 0; i < 2 * n; i++)
      floats[s][i] = ints[s][i];
  }
  for (size_t t = 0; t < sizeof (types) / sizeof (types[0]); t++)
    for (size_t r = 0; r < sizeof (runs) / sizeof (runs[0]); r++) {
      bool whole = types[t] == IMK_TYPE_CI16;
      char where[64];

      c.type = types[t];
      c.mode = runs[r].mode;
      c.method = runs[r].method;
      c.range_interp = runs[r].range_interp;
      snprintf (
          where, sizeof (where), "%s, run %zu", imk_type_name (c.type), r);
      check_backends (&c, whole ? (void *) ints[0] : floats[0],
          whole ? (void *) ints[1] : floats[1], where);
    }
  for (int s = 0; s < 2; s++) {
    free (floats[s]);
    free (ints[s]);
  }
  for (size_t i = 0; i < sizeof (searches) / sizeof (searches[0]); i++) {
    c = insar_config (
        6 * searches[i], 6 * searches[i], searches[i], searches[i], 1, 1);
    insar_make_pair (&c, 1, -1, 6, &ints[0], &ints[1]);
    check_backends (&c, ints[0], ints[1], "a usual length");
    for (int s = 0; s < 2; s++)
      free (ints[s]);
  }
}

/* Devices 0 and 1, which write page-locked memory. */
static double *
run_on_devices (const ImkDevice *device, const ImkInsarxcorrConfig *c,
    const void *ref, const void *sec)
{
  ImkInsarxcorr *self = insar_new (IMK_BACKEND_CUDA, c);
  size_t row_size = (size_t) c->nx * N_FIELDS * sizeof (double);
  double *all = malloc (c->ny * row_size);
  ImkImage out = {.stride = N_FIELDS * sizeof (double),
      .width = N_FIELDS,
      .height = c->nx,
      .channels = 1,
      .type = IMK_TYPE_F64,
      .location = IMK_LOCATION_DEVICE};
  void *host = NULL, *stream = NULL;

  test_ok (
      device->alloc_pinned (row_size, &host, &out.data, test_new_error ()));
  test_ok (device->stream_new (&stream, test_new_error ()));
  for (uint32_t row = 0; row < c->ny; row++) {
    insar_push (self, c, 0, ref, 50);
    insar_push (self, c, 1, sec, 50);
    out.location = IMK_LOCATION_DEVICE;
    test_error (imk_insarxcorr_process (self, &out, stream, test_new_error ()),
        IMK_ERROR_IMAGE, "must be in page-locked memory");
    out.location = IMK_LOCATION_HOST_MAPPED;
    test_ok (imk_insarxcorr_process (self, &out, stream, test_new_error ()));
    test_ok (device->stream_synchronize (stream, test_new_error ()));
    memcpy ((uint8_t *) all + row * row_size, host, row_size);
    imk_insarxcorr_advance (self);
  }
  imk_insarxcorr_free (self);
  device->stream_free (stream);
  device->free_pinned (host);
  return all;
}

TEST (test_devices_share_rows, "devices share rows, and give the same bytes")
{
  ImkInsarxcorrConfig c = insar_config (231, 217, 12, 12, 5, 3);
  size_t size = (size_t) c.nx * c.ny * N_FIELDS * sizeof (double);
  double *expected, *found;
  const ImkDevice *device;
  test_autofree int16_t *ref = NULL, *sec = NULL;
  int n = 0;

  test_need_cuda ();
  test_ok (imk_device_get (&device, test_new_error ()));
  test_ok (device->count (&n, test_new_error ()));
  if (n < 2)
    test_skip ("there is one device");
  insar_make_pair (&c, 1, 2, 12, &ref, &sec);
  for (int mode = 0; mode <= IMK_INSARXCORR_PRECISE; mode++) {
    c.mode = (ImkInsarxcorrMode) mode;
    c.n_devices = 0;
    expected = insar_run_pushing (IMK_BACKEND_CUDA, &c, ref, sec, 64);
    c.n_devices = 1;
    c.devices[0] = 1;
    found = run_on_devices (device, &c, ref, sec);
    test_check (memcmp (found, expected, size) == 0,
        "mode %d: two devices give other bytes than one", mode);
    free (found);
    free (expected);
  }
}

/* The first row, again and again. */
typedef struct Repeat {
  const ImkDevice *device;
  ImkInsarxcorr *self;
  void *context, *stream;
  ImkImage out;
  ImkStatus status;
  ImkError error;
} Repeat;

static void *
repeat (void *data)
{
  Repeat *r = data;

  r->status = r->device->push (r->context, &r->error);
  if (r->status != IMK_OK)
    return NULL;
  for (int i = 0; i < 1000 && r->status == IMK_OK; i++) {
    r->status = imk_insarxcorr_process (r->self, &r->out, r->stream, &r->error);
    if (r->status == IMK_OK && i % 16 == 0)
      r->status = r->device->stream_synchronize (r->stream, &r->error);
  }
  r->device->pop ();
  return NULL;
}

static void
repeat_init (Repeat *r, const ImkDevice *device, uint32_t xsearch)
{
  ImkInsarxcorrConfig c = insar_config (1700, 67, xsearch, 4, 1, 1);
  test_autofree int16_t *ref = NULL, *sec = NULL;

  c.range_interp = 3; /* lines of 51 KB and more: what is asked for */
  insar_make_pair (&c, 1, -1, xsearch, &ref, &sec);
  *r = (Repeat){.device = device,
      .self = insar_new (IMK_BACKEND_CUDA, &c),
      .out = {.stride = N_FIELDS * sizeof (double),
          .width = N_FIELDS,
          .height = 1,
          .channels = 1,
          .type = IMK_TYPE_F64,
          .location = IMK_LOCATION_DEVICE},
      .status = IMK_OK};
  test_ok (
      device->alloc_device (r->out.stride, &r->out.data, test_new_error ()));
  test_ok (device->stream_new (&r->stream, test_new_error ()));
  test_ok (device->context (0, &r->context, test_new_error ()));
  insar_push (r->self, &c, 0, ref, 67);
  insar_push (r->self, &c, 1, sec, 67);
}

static void
repeat_clear (Repeat *r)
{
  imk_insarxcorr_free (r->self);
  r->device->free_device (r->out.data);
  r->device->stream_free (r->stream);
}

TEST (test_patches_of_two_sizes_go_side_by_side,
    "patches of two sizes go side by side")
{
  const ImkDevice *device;
  pthread_t thread;
  Repeat large, small;
  ImkError error;

  test_need_cuda ();
  test_ok_of (imk_device_get (&device, &error), &error);
  repeat_init (&large, device, 256);
  repeat_init (&small, device, 240);
  test_check (pthread_create (&thread, NULL, repeat, &small) == 0, "no thread");
  repeat (&large);
  pthread_join (thread, NULL);
  test_ok_of (large.status, &large.error);
  test_ok_of (small.status, &small.error);
  repeat_clear (&large);
  repeat_clear (&small);
}
