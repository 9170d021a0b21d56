/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "imk/parallel.h"
#include "template/invert-backend.h"
#include "template/invert-reference.h"

enum { BAND_SIZE = 65536 }; /* bytes that are worth a thread */

typedef struct State {
  ImkInvertConfig config;
  uint32_t n_threads;
} State;

typedef struct Work {
  const ImkInvertConfig *config;
  const ImkImage *in;
  ImkImage *out;
} Work;

static ImkStatus
cpu_update (void *state, const void *params, ImkError *error)
{
  State *self = state;

  self->config = *(const ImkInvertConfig *) params;
  return IMK_OK;
}

static ImkStatus
cpu_create (const void *plan, const void *params, uint32_t n_threads,
    void **state, ImkError *error)
{
  State *self = calloc (1, sizeof (*self));

  if (!self)
    return IMK_NO_MEMORY (error, "for the object.");
  self->n_threads = n_threads;
  *state = self;
  return cpu_update (self, params, error);
}

static void
invert_rows (void *data, uint32_t first, uint32_t end)
{
  const Work *work = data;

  imk_invert_reference (work->config, work->in, work->out, first, end);
}

static ImkStatus
cpu_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  const State *self = state;
  Work work = {&self->config, in, out};
  uint32_t grain = 1 + (uint32_t) (BAND_SIZE / imk_image_row_size (in));

  imk_parallel_for (self->n_threads, in->height, grain, invert_rows, &work);
  return IMK_OK;
}

const ImkFilterBackend imk_invert_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .params_size = sizeof (ImkInvertConfig),
    .n_inputs = 1,
    .n_outputs = 1,
    .create = cpu_create,
    .update = cpu_update,
    .process = cpu_process,
    .destroy = free,
};
