/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "imk/parallel.h"
#include "relight/relight-pixel.h"

enum { GRAIN = 16 /* rows worth a thread */ };

/* A power takes longer than all the rest of a pixel, so levels are searched:
 * @least[k] is the smallest value of level k, @first[i] the level of the
 * smallest value whose bits above BITS are those of bin i. A bin is 0.8 % wide:
 * above DARKEST, a level or two. */
enum { BITS = 16, BINS = 24 * 128 };
#define DARKEST 0x1p-24f

typedef struct Levels {
  float power; /* 0: not filled in */
  float least[257];
  uint8_t first[BINS];
} Levels;

typedef struct Cpu {
  uint32_t n_threads;
  ImkRelightParams params;
  Levels levels;
} Cpu;

typedef struct Job {
  const ImkRelightParams *params;
  const Levels *levels;
  ImkRelightSource normals, albedo;
  ImkImage *out;
} Job;

static uint32_t
bits_of (float v)
{
  uint32_t bits;

  memcpy (&bits, &v, sizeof (bits));
  return bits;
}

/* From the level @from on. */
static uint32_t
search (const Levels *l, float v, uint32_t from)
{
  while (v >= l->least[from + 1])
    from++;
  return from;
}

static void
fill_levels (Levels *l, float power)
{
  l->power = power;
  l->least[0] = 0;
  for (int k = 1; k < 256; k++)
    l->least[k] = (float) pow ((k - 0.5) / 255, 1 / (double) power);
  l->least[256] = INFINITY;
  for (uint32_t i = 0; i < BINS; i++) {
    uint32_t bits = bits_of (DARKEST) + (i << BITS);
    float v;

    memcpy (&v, &bits, sizeof (v));
    l->first[i] = (uint8_t) search (l, v, i > 0 ? l->first[i - 1] : 0);
  }
}

static uint8_t
level_of (const Levels *l, float v)
{
  if (v >= 1)
    return 255;
  return (uint8_t) search (l, v,
      v >= DARKEST ? l->first[(bits_of (v) - bits_of (DARKEST)) >> BITS] : 0);
}

static void
light_rows (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;
  const Levels *l = job->levels;

  for (uint32_t y = first; y < end; y++) {
    uint8_t *to = (uint8_t *) job->out->data + y * job->out->stride;

    for (uint32_t x = 0; x < job->out->width; x++, to += 3) {
      float v[3];

      if (!imk_relight_values (
              job->params, &job->normals, &job->albedo, x, y, v)) {
        memset (to, 0, 3);
        continue;
      }
      to[0] = level_of (l, v[0]);
      to[1] = v[1] == v[0] ? to[0] : level_of (l, v[1]);
      to[2] = v[2] == v[0] ? to[0] : level_of (l, v[2]);
    }
  }
}

static ImkStatus
cpu_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  const Cpu *cpu = state;
  const ImkRelightParams *p = &cpu->params;
  Job job = {p, &cpu->levels, imk_relight_source (&in[0], p->normal_colours),
      imk_relight_source (&in[1], p->albedo_colours), out};

  imk_parallel_for (cpu->n_threads, out->height, GRAIN, light_rows, &job);
  return IMK_OK;
}

static ImkStatus
cpu_update (void *state, const void *params, ImkError *error)
{
  Cpu *cpu = state;

  cpu->params = *(const ImkRelightParams *) params;
  if (cpu->levels.power != cpu->params.power)
    fill_levels (&cpu->levels, cpu->params.power);
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
  cpu->levels.power = 0;
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
