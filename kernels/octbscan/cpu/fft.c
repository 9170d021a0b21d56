/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/cpu/fft.h"

#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"

/* Rows at distances of a power of two would share one set of the cache. */
enum { PADDING = 16, N_LANES = IMK_OCTBSCAN_N_LANES };

/* Parts of the caller's scratch memory. */
typedef struct Scratch {
  float *a, *b;  /* one complex line each */
  float *lanes;  /* [2][G + taps][N_LANES] */
  float *points; /* [N_LANES][pitch] */
} Scratch;

struct ImkOctbscanFft {
  const ImkOctbscanLoops *loops;
  ImkOctbscanChain *chain;
  ImkFft *narrow, *wide, *depths; /* of N, G and P */
  size_t line, n_lanes, pitch;    /* floats */
};

ImkStatus
imk_octbscan_choose_loops (const ImkOctbscanLoops **loops, ImkError *error)
{
  static const void *const tables[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_octbscan);
  const void *table = NULL;
  ImkStatus status = imk_cpu_choose (tables, &table, error);

  *loops = table;
  return status;
}

/* ------------------------------------------------------------------------
 * From spectra to lanes. */

/* @samples: (out): the G samples of the N in @t->a */
static ImkStatus
upsample (
    ImkOctbscanFft *s, const Scratch *t, const float **samples, ImkError *error)
{
  const ImkOctbscanChain *c = s->chain;

  *samples = c->upsamples ? t->b : t->a;
  if (!c->upsamples)
    return IMK_OK;
  IMK_TRY (imk_fft_execute (s->narrow, t->a, t->b, error));
  s->loops->widen (t->b, c->widen, c->width, c->n_samples, t->a);
  return imk_fft_execute (s->wide, t->a, t->b, error);
}

/* The samples are periodic: the start is repeated after the end. */
static void
wrap (const ImkOctbscanFft *s, float *lanes)
{
  size_t n = (size_t) s->chain->n_samples * N_LANES;

  for (size_t i = n; i < s->n_lanes; i++)
    lanes[i] = lanes[i - n];
}

/* Resampling is real, so two real spectra are transformed as one complex
 * spectrum. */
static ImkStatus
fill_pairs (ImkOctbscanFft *s, const ImkOctbscanBlock *block, const Scratch *t,
    ImkError *error)
{
  const ImkOctbscanChain *c = s->chain;
  ImkStatus status = IMK_OK;

  for (uint32_t l = 0; l < block->n && status == IMK_OK; l += 2) {
    const float *second = block->samples[l + 1 < block->n ? l + 1 : l];
    const float *from;

    s->loops->pack (block->samples[l], second, c->taper, c->width, t->a);
    status = upsample (s, t, &from, error);
    for (uint32_t g = 0; g < c->n_samples; g++)
      memcpy (t->lanes + (size_t) g * N_LANES + l, from + 2 * g, 8);
  }
  wrap (s, t->lanes);
  return status;
}

static ImkStatus
fill_turned (ImkOctbscanFft *s, const ImkOctbscanBlock *block, const Scratch *t,
    ImkError *error)
{
  const ImkOctbscanChain *c = s->chain;
  const ImkOctbscanBand *band = &c->bands[block->camera];
  float *im_lanes = t->lanes + s->n_lanes;
  ImkStatus status = IMK_OK;

  for (uint32_t l = 0; l < block->n && status == IMK_OK; l++) {
    const float *from;

    s->loops->turn (
        block->samples[l], band->turn_re, band->turn_im, c->width, t->a);
    status = upsample (s, t, &from, error);
    for (uint32_t g = 0; g < c->n_samples; g++) {
      t->lanes[(size_t) g * N_LANES + l] = from[2 * g];
      im_lanes[(size_t) g * N_LANES + l] = from[2 * g + 1];
    }
  }
  wrap (s, t->lanes);
  wrap (s, im_lanes);
  return status;
}

/* ------------------------------------------------------------------------
 * From points to depths. */

typedef void (*FinishFunc) (
    const float *bins, const float *finish, uint32_t n, float *to);

/* The depths are adjacent bins, but may wrap around the end. */
static void
finish_depths (const ImkOctbscanChain *c, FinishFunc finish, const float *bins,
    uint32_t n_floats, float *to)
{
  uint32_t first = c->first_bin % c->n_points;
  uint32_t n = c->n_points - first;

  if (n > c->n_depths)
    n = c->n_depths;
  finish (bins + 2 * (size_t) first, c->finish, n, to);
  finish (bins, c->finish + n, c->n_depths - n, to + (size_t) n_floats * n);
}

size_t
imk_octbscan_fft_scratch_size (const ImkOctbscanFft *self)
{
  return sizeof (float) *
         (2 * self->line + 2 * self->n_lanes + N_LANES * self->pitch);
}

ImkStatus
imk_octbscan_fft_run (ImkOctbscanFft *self, const ImkOctbscanBlock *block,
    float *scratch, ImkError *error)
{
  const ImkOctbscanChain *c = self->chain;
  const ImkOctbscanBand *band = &c->bands[block->camera];
  Scratch t = {.a = scratch};

  t.b = t.a + self->line;
  t.lanes = t.b + self->line;
  t.points = t.lanes + 2 * self->n_lanes;
  IMK_TRY (band->turn_re ? fill_turned (self, block, &t, error)
                         : fill_pairs (self, block, &t, error));
  self->loops->band (c, band, t.lanes,
      band->turn_re ? t.lanes + self->n_lanes : NULL, t.points, self->pitch);
  for (uint32_t l = 0; l < block->n; l++) {
    IMK_TRY (
        imk_fft_execute (self->depths, t.points + l * self->pitch, t.a, error));
    if (block->intensity[l])
      finish_depths (c, self->loops->intensity, t.a, 1, block->intensity[l]);
    if (block->complex[l])
      finish_depths (c, self->loops->complex, t.a, 2, block->complex[l]);
  }
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The object. */

ImkStatus
imk_octbscan_plan_transform (
    uint32_t n, ImkFftDirection direction, ImkFft **plan, ImkError *error)
{
  ImkFftConfig config;

  imk_fft_config_init (&config);
  config.width = n;
  config.direction = direction;
  return imk_fft_new (&config, plan, error);
}

static size_t
round_up (size_t n)
{
  return (n + PADDING - 1) / PADDING * PADDING;
}

static void
set_sizes (ImkOctbscanFft *s)
{
  const ImkOctbscanChain *c = s->chain;
  uint32_t n_taps = 0;
  size_t line = c->width;

  for (uint32_t i = 0; i < c->n_cameras; i++)
    if (c->bands[i].n_taps > n_taps)
      n_taps = c->bands[i].n_taps;
  if (c->n_samples > line)
    line = c->n_samples;
  if (c->n_points > line)
    line = c->n_points;
  s->line = round_up (2 * line);
  s->n_lanes = (size_t) (c->n_samples + n_taps) * N_LANES;
  s->pitch = round_up (2 * (size_t) c->n_points) + PADDING;
}

static ImkStatus
fill (ImkOctbscanFft *s, const ImkOctbscanConfig *config, ImkError *error)
{
  IMK_TRY (imk_octbscan_chain_new (config, &s->chain, error));
  set_sizes (s);
  if (s->chain->upsamples) {
    IMK_TRY (imk_octbscan_plan_transform (
        s->chain->width, IMK_FFT_FORWARD, &s->narrow, error));
    IMK_TRY (imk_octbscan_plan_transform (
        s->chain->n_samples, IMK_FFT_BACKWARD, &s->wide, error));
  }
  return imk_octbscan_plan_transform (
      s->chain->n_points, IMK_FFT_FORWARD, &s->depths, error);
}

ImkStatus
imk_octbscan_fft_new (
    const ImkOctbscanConfig *config, ImkOctbscanFft **self, ImkError *error)
{
  ImkOctbscanFft *s = calloc (1, sizeof (*s));
  ImkStatus status;

  if (!s)
    return IMK_NO_MEMORY (error, "for the plan.");
  status = imk_octbscan_choose_loops (&s->loops, error);
  if (status == IMK_OK)
    status = fill (s, config, error);
  if (status == IMK_OK)
    *self = s;
  else
    imk_octbscan_fft_free (s);
  return status;
}

void
imk_octbscan_fft_tune (ImkOctbscanFft *self, const double *live)
{
  imk_octbscan_chain_tune (self->chain, live);
}

void
imk_octbscan_fft_free (ImkOctbscanFft *self)
{
  if (!self)
    return;
  imk_fft_free (self->narrow);
  imk_fft_free (self->wide);
  imk_fft_free (self->depths);
  imk_octbscan_chain_free (self->chain);
  free (self);
}
