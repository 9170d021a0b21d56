/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lapsharpen/lapsharpen-backend.h"

#include <stdlib.h>

#include "core/cpu.h"
#include "lapsharpen/cpu/scratch.h"

enum {
  BAND_SIZE = 65536, /* bytes that are worth a thread */
  SMOOTH_ROWS = 16,  /* low rows that are */
};

typedef struct State {
  ImkLapsharpenRule rule;
  bool plain;
  uint32_t n_threads;
  ScratchPool scratch;
  const ImkLapsharpenLoops *loops;
  ImkLapsharpenSums sums;
} State;

static ImkStatus
cpu_update (void *state, const void *params, ImkError *error)
{
  const ImkLapsharpenConfig *config = params;
  State *self = state;
  const ImkLapsharpenRule rule = imk_lapsharpen_rule (config);
  ImkStatus status =
      imk_lapsharpen_scratch_resize (&self->scratch, &rule, error);

  if (status != IMK_OK)
    return status;
  self->rule = rule;
  self->plain = imk_lapsharpen_is_plain (&rule, config->type);
  return IMK_OK;
}

static void
cpu_destroy (void *state)
{
  State *self = state;

  imk_lapsharpen_scratch_clear (&self->scratch);
  free (self);
}

static ImkStatus
cpu_create (const void *plan, const void *params, uint32_t n_threads,
    void **state, ImkError *error)
{
  static const void *const u8[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_lapsharpen_u8);
  static const void *const u16[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_lapsharpen_u16);
  const ImkLapsharpenConfig *config = params;
  State *self = calloc (1, sizeof (*self));
  const void *loops = NULL;
  ImkStatus status;

  if (!self)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for a CPU sharpener.");
  self->n_threads = n_threads;
  self->scratch.n = imk_parallel_threads (n_threads) + 1;
  status =
      imk_cpu_choose (config->type == IMK_TYPE_U8 ? u8 : u16, &loops, error);
  self->loops = loops;
  if (status == IMK_OK)
    status = cpu_update (self, config, error);
  if (status == IMK_OK)
    *state = self;
  else
    cpu_destroy (self);
  return status;
}

static ImkStatus
cpu_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  State *self = state;
  const ImkLapsharpenRule *rule = &self->rule;
  Work work = {.rule = rule,
      .in = in,
      .out = out,
      .plain = self->plain,
      .scratch = &self->scratch};
  const uint32_t band = 1 + (uint32_t) (BAND_SIZE / imk_image_row_size (in));
  /* A band makes what its first row needs anew. */
  const uint32_t smooth = SMOOTH_ROWS * (uint32_t) rule->smooth.step;

  imk_parallel_for (self->n_threads, rule->height,
      band > smooth ? band : smooth, self->loops->sharpen_rows, &work);
  self->sums = work.sums;
  return IMK_OK;
}

static ImkStatus
cpu_get_result (void *state, void *result, ImkError *error)
{
  *(ImkLapsharpenSums *) result = ((State *) state)->sums;
  return IMK_OK;
}

const ImkFilterBackend imk_lapsharpen_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .params_size = sizeof (ImkLapsharpenConfig),
    .n_inputs = 1,
    .n_outputs = 1,
    .create = cpu_create,
    .update = cpu_update,
    .process = cpu_process,
    .get_result = cpu_get_result,
    .destroy = cpu_destroy,
};
