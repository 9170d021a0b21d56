/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "core/parallel.h"
#include "relight/relight-pixel.h"

enum { GRAIN = 16 /* rows worth a thread */ };

typedef struct Cpu {
  uint32_t n_threads;
} Cpu;

typedef struct Job {
  const ImkRelightParams *params;
  const ImkRelightSource *normals, *albedo;
  ImkImage *out;
} Job;

static void
light_rows (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;

  for (uint32_t y = first; y < end; y++)
    for (uint32_t x = 0; x < job->out->width; x++)
      imk_relight_pixel (
          job->params, job->normals, job->albedo, job->out, x, y);
}

static ImkStatus
cpu_process (void *state, const ImkRelightParams *params,
    const ImkRelightSource *normals, const ImkRelightSource *albedo,
    ImkImage *out, void *stream, ImkError *error)
{
  const Cpu *cpu = state;
  Job job = {params, normals, albedo, out};

  imk_parallel_for (cpu->n_threads, out->height, GRAIN, light_rows, &job);
  return IMK_OK;
}

static ImkStatus
cpu_create (uint32_t n_threads, void **state, ImkError *error)
{
  Cpu *cpu = malloc (sizeof (*cpu));

  if (!cpu)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  cpu->n_threads = n_threads;
  *state = cpu;
  return IMK_OK;
}

const ImkRelightBackend imk_relight_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .create = cpu_create,
    .process = cpu_process,
    .destroy = free,
};
