/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The object of the CUDA backend and its memory: one block on the device, cut
 * into tables, bands, and the work of as many patches at a time as may be. */
#pragma once

#include <new>
#include <type_traits>

#include "core/cuda/cuda-cutter.h"
#include "insarxcorr/insarxcorr-backend.h"
#include "insarxcorr/cuda/insarxcorr-cuda.cuh"

namespace insar
{

enum {
  MAX_BATCH = 32768,     /* blockIdx.y is at most 65535 */
  GOOD_WORK = 256 << 20, /* bytes, without memory-limit */
};

struct Cuda {
  const ImkInsarxcorrPlan *plan;
  const ImkInsarxcorrPart *part;
  Arguments arguments; /* complete except for items and out of the batch */
  uint32_t max_batch;
  bool is_usual;     /* of a length that transforms in registers */
  uint32_t next_row; /* the row that follows what the slots have; 0: none */
  uint32_t n_fresh;  /* lines of a patch that are not kept, at most */
  void *memory;      /* all device memory of the object */
  Item *items;
  Item *host_items; /* page-locked */
  Fft lines, lag_lines, lag_columns;
  /* PRECISE: of a side, and finer */
  Fft patch_lines[N_SIDES], patch_columns[N_SIDES];
  Fft wide_lines[N_SIDES], wide_columns[N_SIDES];
  cudaEvent_t copied; /* host_items may be written again */
  cudaStream_t uploads[N_SIDES];
};

/* What @n patches take at a time. */
static void
cut_work (Cuda *s, Cutter *c, size_t n)
{
  const ImkInsarxcorrPlan *plan = s->plan;
  const ImkInsarxcorrFine &f = plan->fine;
  Arguments &a = s->arguments;
  auto cut = [&] (auto **array, size_t size) { c->cut (array, n * size); };
  const bool precise = plan->config.mode == IMK_INSARXCORR_PRECISE;
  const bool by_fft = precise || plan->config.method == IMK_INSARXCORR_FREQ;
  size_t samples = 0, wide = 0;

  for (int side = 0; side < N_SIDES; side++) {
    size_t width = plan->patch_width[side], height = plan->patch_height[side];

    samples = width * height > samples ? width * height : samples;
    wide = width * f.height[side] > wide ? width * f.height[side] : wide;
    cut (&a.line_levels[side], f.height[side]);
    cut (&a.amplitudes[side], (size_t) f.width[side] * f.height[side]);
  }
  cut (&a.n_valid, N_SIDES);
  cut (&a.centres, N_SIDES);
  cut (&a.levels, 1);
  cut (&a.samples, precise ? samples : 0);
  cut (&a.wide, precise ? wide : 0);
  cut (&a.spectra, by_fft ? (size_t) f.fft_width * f.fft_height : 0);
  cut (&a.products, by_fft ? (size_t) (f.fft_width / 2 + 1) * f.n_lags_y : 0);
  cut (&a.sums, precise ? (size_t) f.width[1] * f.n_lags_y : 0);
  cut (&a.surface, (size_t) f.n_lags_x * f.n_lags_y);
  cut (&a.line_peaks, f.n_lags_y);
  cut (&a.correlations, precise ? 0 : CORRELATION_PARTS);
  c->cut (&s->items, n);
  a.items = s->items;
}

/* Every length that is transformed, and what is done with it. */
static uint32_t
list_ffts (Cuda *s, Fft **ffts)
{
  const ImkInsarxcorrPlan *plan = s->plan;
  const ImkInsarxcorrFine &f = plan->fine;
  uint32_t n = 0;

  plan_fft (ffts[n++] = &s->lines, plan->patch_width[0]);
  plan_fft (ffts[n++] = &s->lag_lines, f.fft_width);
  plan_fft (ffts[n++] = &s->lag_columns, f.fft_height);
  for (int side = 0; side < N_SIDES; side++) {
    uint32_t width = plan->patch_width[side];
    uint32_t height = plan->patch_height[side];

    plan_fft (ffts[n++] = &s->patch_lines[side], width);
    plan_fft (ffts[n++] = &s->patch_columns[side], height);
    plan_fft (ffts[n++] = &s->wide_lines[side], width * f.interp_x);
    plan_fft (ffts[n++] = &s->wide_columns[side], height * f.interp_y);
  }
  return n;
}

enum { MAX_FFTS = 3 + 4 * N_SIDES };

/* Tables, which hold whatever patches there are. */
struct Tables {
  ImkInsarxcorrPlan *plan;
  double *zoom;
  float2 *phases, *turns;
};

static size_t
count_turns (Cuda *s)
{
  Fft *ffts[MAX_FFTS];
  uint32_t n = list_ffts (s, ffts);
  size_t sum = 0;

  for (uint32_t i = 0; i < n; i++)
    sum += 2 * (size_t) ffts[i]->n; /* roots, turns */
  return sum;
}

static void
cut_tables (Cuda *s, Cutter *c, Tables *t)
{
  const ImkInsarxcorrPlan *plan = s->plan;

  c->cut (&t->plan, 1);
  c->cut (&t->zoom,
      imk_insarxcorr_zoom_size (plan->config.interp) / sizeof (double));
  c->cut (&t->phases, (size_t) plan->fine.interp_x * plan->patch_width[0]);
  c->cut (&t->turns, count_turns (s));
}

static void
cut_bands (Cuda *s, Cutter *c)
{
  for (int side = 0; side < N_SIDES; side++) {
    const ImkInsarxcorrBand *band = &s->part->bands[side];
    Band &b = s->arguments.bands[side];

    b.stride =
        (band->width * imk_type_size (s->plan->config.type) + 255) / 256 * 256;
    b.width = (int32_t) band->width;
    b.n_lines = (int32_t) band->n_lines;
    b.image_height = (int32_t) band->image_height;
    c->cut (&b.data, b.stride * band->n_lines);
  }
}

static float2
root_of (uint64_t k, uint64_t n)
{
  const double pi = 3.14159265358979323846;
  double angle = -2 * pi * (double) (k % n) / (double) n;

  return make_float2 ((float) cos (angle), (float) sin (angle));
}

/* Each FFT's roots, and then its turns. */
static void
fill_turns (Cuda *s, float2 *turns, float2 *device)
{
  Fft *ffts[MAX_FFTS];
  uint32_t n = list_ffts (s, ffts);
  size_t at = 0;

  for (uint32_t i = 0; i < n; i++) {
    Fft *f = ffts[i];
    uint32_t done = 1;

    f->roots = device + at;
    for (uint32_t k = 0; k < f->n; k++)
      turns[at++] = root_of (k, f->n);
    f->turns = device + at;
    for (uint32_t p = 0; p < f->n_passes; p++) {
      for (uint32_t t = 1; t < f->radices[p]; t++)
        for (uint32_t k = 0; k < done; k++)
          turns[at++] =
              root_of ((uint64_t) t * k, (uint64_t) f->radices[p] * done);
      done *= f->radices[p];
    }
  }
}

static ImkStatus
upload_tables (Cuda *s, ImkError *error)
{
  Cutter sizes = {nullptr, 0}, host, device = {(uint8_t *) s->memory, 0};
  Tables t, d;
  ImkStatus status;

  cut_tables (s, &sizes, &t);
  host = {new (std::nothrow) uint8_t[sizes.used], 0};
  if (!host.block)
    return IMK_NO_MEMORY (error, "for tables of %zu bytes.", sizes.used);
  cut_tables (s, &host, &t);
  cut_tables (s, &device, &d);
  *t.plan = *s->plan;
  imk_insarxcorr_zoom_fill (s->plan->config.interp, t.zoom);
  imk_insarxcorr_fill_turns (
      s->plan->fine.interp_x, s->plan->patch_width[0], &t.phases->x);
  fill_turns (s, t.turns, d.turns);
  s->arguments.plan = d.plan;
  s->arguments.zoom = d.zoom;
  s->arguments.phases = d.phases;
  s->arguments.fine = s->plan->fine;
  status = IMK_CUDA (error,
      cudaMemcpy (s->memory, host.block, sizes.used, cudaMemcpyHostToDevice));
  delete[] host.block;
  return status;
}

/* As many patches at a time as memory is allowed for. */
static ImkStatus
choose_batch (Cuda *s, size_t tables, ImkError *error)
{
  const ImkInsarxcorrPlan *plan = s->plan;
  uint64_t limit = plan->work_limit ? plan->work_limit : GOOD_WORK;
  Cutter one = {nullptr, 0}, many = {nullptr, 0};
  uint64_t n;

  cut_work (s, &one, 1);
  if (plan->work_limit && tables + one.used > limit)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "memory-limit leaves %llu bytes for the work on patches of %u x %u "
        "samples, which takes %zu at least. Raise it, or take a smaller "
        "search.",
        (unsigned long long) limit, plan->patch_width[1], plan->patch_height[1],
        tables + one.used);
  cut_work (s, &many, 256); /* with many patches rounding up matters less */
  n = limit > tables ? (limit - tables) * 256 / many.used : 1;
  n = n > MAX_BATCH ? MAX_BATCH : n < 1 ? 1 : n;
  s->max_batch = n < s->part->n ? (uint32_t) n : s->part->n;
  return IMK_OK;
}

static ImkStatus
allocate (Cuda *s, ImkError *error)
{
  Cutter c = {nullptr, 0};
  Tables t;

  cut_tables (s, &c, &t);
  IMK_TRY (choose_batch (s, c.used, error));
  cut_bands (s, &c);
  cut_work (s, &c, s->max_batch);
  IMK_TRY (IMK_CUDA (error, cudaMalloc (&s->memory, c.used)));
  c = {(uint8_t *) s->memory, 0};
  cut_tables (s, &c, &t);
  cut_bands (s, &c);
  cut_work (s, &c, s->max_batch);
  return IMK_CUDA (
      error, cudaHostAlloc ((void **) &s->host_items,
                 s->max_batch * sizeof (Item), cudaHostAllocPortable));
}

/* Bytes of shared memory that a block of the current device may ask for. */
static ImkStatus
get_most_shared (int *most, ImkError *error)
{
  int device = 0;

  IMK_TRY (IMK_CUDA (error, cudaGetDevice (&device)));
  return IMK_CUDA (error, cudaDeviceGetAttribute (most,
                              cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
}

/* A line has to fit the shared memory of a block. */
static ImkStatus
check_shared (Cuda *s, ImkError *error)
{
  Fft *ffts[MAX_FFTS];
  uint32_t n = list_ffts (s, ffts);
  const bool compat = s->plan->config.mode == IMK_INSARXCORR_COMPAT;
  uint32_t copies = compat && s->plan->fine.interp_x > 2 ? 3 : 2;
  size_t largest = 0;
  int most = 0;
  ImkStatus status = get_most_shared (&most, error);

  for (uint32_t i = 0; i < (compat ? 3 : n); i++) {
    size_t size = shared_for (ffts[i]->n, copies);

    largest = size > largest ? size : largest;
  }
  if (status == IMK_OK && largest > (size_t) most)
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "Lines of these patches take %zu bytes of the GPU's shared memory, and "
        "it has %d. Take a smaller search or window, or use backend=cpu.",
        largest, most);
  return status;
}

} // namespace insar
