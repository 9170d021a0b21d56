/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "core/cpu.h"
#include "relight/cpu/loops.h"
#include "relight/relight-pixel.h"

enum { GRAIN = 16 /* rows worth a thread */ };

typedef struct Cpu {
  const ImkRelightLoops *loops;
  uint32_t n_threads;
  ImkRelightParams params;
} Cpu;

static ImkStatus
cpu_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  const Cpu *cpu = state;
  const ImkRelightParams *p = &cpu->params;
  Job job = {p, imk_relight_source (&in[0], p->normal_colours),
      imk_relight_source (&in[1], p->albedo_colours), out};

  imk_parallel_for (
      cpu->n_threads, out->height, GRAIN, cpu->loops->light_rows, &job);
  return IMK_OK;
}

static ImkStatus
cpu_update (void *state, const void *params, ImkError *error)
{
  Cpu *cpu = state;

  cpu->params = *(const ImkRelightParams *) params;
  return IMK_OK;
}

static ImkStatus
cpu_create (const void *plan, const void *params, uint32_t n_threads,
    void **state, ImkError *error)
{
  static const void *const tables[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_relight);
  const void *loops;
  Cpu *cpu;

  IMK_TRY (imk_cpu_choose (tables, &loops, error));
  cpu = malloc (sizeof (*cpu));
  if (!cpu)
    return IMK_NO_MEMORY (error, "for the object.");
  *cpu = (Cpu){loops, n_threads, *(const ImkRelightParams *) params};
  *state = cpu;
  return IMK_OK;
}

const ImkFilterBackend imk_relight_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .params_size = sizeof (ImkRelightParams),
    .n_inputs = 2,
    .n_outputs = 1,
    .create = cpu_create,
    .update = cpu_update,
    .process = cpu_process,
    .destroy = free,
};
