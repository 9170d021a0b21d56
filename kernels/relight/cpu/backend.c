/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "imk/parallel.h"
#include "relight/relight-pixel.h"

enum { GRAIN = 16 /* rows worth a thread */ };

typedef struct Cpu {
  uint32_t n_threads;
  ImkRelightParams params;
} Cpu;

typedef struct Job {
  const ImkRelightParams *params;
  ImkRelightSource normals, albedo;
  ImkImage *out;
} Job;

static void
light_rows (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;

  for (uint32_t y = first; y < end; y++)
    for (uint32_t x = 0; x < job->out->width; x++)
      imk_relight_pixel (
          job->params, &job->normals, &job->albedo, job->out, x, y);
}

static ImkStatus
cpu_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  const Cpu *cpu = state;
  const ImkRelightParams *p = &cpu->params;
  Job job = {p, imk_relight_source (&in[0], p->normal_colours),
      imk_relight_source (&in[1], p->albedo_colours), out};

  imk_parallel_for (cpu->n_threads, out->height, GRAIN, light_rows, &job);
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
  Cpu *cpu = malloc (sizeof (*cpu));

  if (!cpu)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  cpu->n_threads = n_threads;
  *state = cpu;
  return cpu_update (cpu, params, error);
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
