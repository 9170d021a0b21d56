/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "normalintegrate/cpu/run.h"

enum { ALIGNMENT = 64 };

typedef ImkNormalintegrateComplex Complex;
typedef ImkNormalintegrateCpu Cpu;
typedef ImkNormalintegrateRun Run;

/* ------------------------------------------------------------------------
 * Results. */

static void
range_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (uint32_t y = first; y < end; y++) {
    float lowest = INFINITY, highest = -INFINITY;
    size_t at = (size_t) y * width;

    for (uint32_t x = 0; x < width; x++, at++)
      if (cpu->valid[at]) {
        float mm = imk_normalintegrate_height (run->scale, x, y, cpu->z[at]);

        lowest = fminf (lowest, mm);
        highest = fmaxf (highest, mm);
      }
    cpu->lowest[y] = lowest;
    cpu->highest[y] = highest;
  }
}

static void
store_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;

  for (uint32_t y = first; y < end; y++) {
    size_t at = (size_t) y * cpu->plan.width;

    for (uint32_t x = 0; x < cpu->plan.width; x++, at++)
      imk_normalintegrate_store (
          run->out, run->scale, x, y, cpu->z[at], cpu->valid[at]);
  }
}

static ImkStatus
cpu_find_range (void *state, const ImkNormalintegrateScale *scale,
    ImkNormalintegrateRange *range, void *stream, ImkError *error)
{
  Run run = {.cpu = state, .scale = scale};

  *range = (ImkNormalintegrateRange){INFINITY, -INFINITY};
  imk_normalintegrate_for_rows (&run, range_rows);
  for (uint32_t y = 0; y < run.cpu->plan.height; y++) {
    range->lowest = fminf (range->lowest, run.cpu->lowest[y]);
    range->highest = fmaxf (range->highest, run.cpu->highest[y]);
  }
  return IMK_OK;
}

static ImkStatus
cpu_gather (void *state, const uint32_t *at, uint32_t n, float *z, void *stream,
    ImkError *error)
{
  const Cpu *cpu = state;

  for (uint32_t i = 0; i < n; i++)
    z[i] = cpu->valid[at[i]] ? cpu->z[at[i]] : NAN;
  return IMK_OK;
}

static ImkStatus
cpu_store (void *state, const ImkNormalintegrateScale *scale,
    ImkNormalintegrateOutputs *outputs, void *stream, ImkError *error)
{
  Run run = {.cpu = state, .scale = scale, .out = outputs};

  imk_normalintegrate_for_rows (&run, store_rows);
  return IMK_OK;
}

static ImkStatus
cpu_integrate (void *state, const ImkNormalintegrateParams *params,
    const ImkImage *in, ImkNormalintegrateSummary *summary, void *stream,
    ImkError *error)
{
  Run run = {.cpu = state, .params = params, .in = in};

  if (params->method == IMK_NORMALINTEGRATE_FRANKOT_CHELLAPPA)
    imk_normalintegrate_frankot_chellappa (&run, summary);
  else if (params->method == IMK_NORMALINTEGRATE_BILATERAL)
    IMK_TRY (imk_normalintegrate_bilateral (&run, summary, error));
  else
    imk_normalintegrate_poisson (&run, summary);
  if (run.failed)
    return IMK_NO_MEMORY (error, "to transform %u x %u samples.",
        run.cpu->plan.width, run.cpu->plan.height);
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The object. */

static void
cpu_destroy (void *state)
{
  Cpu *cpu = state;

  if (!cpu)
    return;
  imk_fft_free (cpu->row_forward);
  imk_fft_free (cpu->row_backward);
  imk_fft_free (cpu->column_forward);
  imk_fft_free (cpu->column_backward);
  free (cpu->real);
  free (cpu->spectrum);
  free (cpu->z);
  free (cpu->p);
  imk_normalintegrate_weighted_free (cpu->weighted);
  free (cpu->valid);
  free (cpu->sums);
  free (cpu->lowest);
  free (cpu);
}

static ImkStatus
plan_row (const ImkNormalintegratePlan *p, ImkFftKind kind, ImkFft **plan,
    ImkError *error)
{
  ImkFftConfig c;

  imk_fft_config_init (&c);
  c.kind = kind;
  c.direction = kind == IMK_FFT_R2C ? IMK_FFT_FORWARD : IMK_FFT_BACKWARD;
  c.width = p->width;
  return imk_fft_new (&c, plan, error);
}

static ImkStatus
plan_columns (
    const Cpu *cpu, ImkFftDirection direction, ImkFft **plan, ImkError *error)
{
  ImkFftConfig c;

  imk_fft_config_init (&c);
  c.direction = direction;
  c.width = cpu->plan.height;
  c.n_transforms = IMK_NORMALINTEGRATE_COLUMNS;
  c.in = c.out = (ImkFftLayout){.step = cpu->spectrum_pitch, .distance = 1};
  c.in_place = true;
  return imk_fft_new (&c, plan, error);
}

static ImkStatus
make_plans (Cpu *cpu, ImkError *error)
{
  const ImkNormalintegratePlan *p = &cpu->plan;

  IMK_TRY (plan_row (p, IMK_FFT_R2C, &cpu->row_forward, error));
  IMK_TRY (plan_row (p, IMK_FFT_C2R, &cpu->row_backward, error));
  IMK_TRY (plan_columns (cpu, IMK_FFT_FORWARD, &cpu->column_forward, error));
  return plan_columns (cpu, IMK_FFT_BACKWARD, &cpu->column_backward, error);
}

static size_t
round_up (size_t n, size_t unit)
{
  return (n + unit - 1) / unit * unit;
}

static void *
allocate (size_t n, size_t size)
{
  return aligned_alloc (ALIGNMENT, round_up (n * size, ALIGNMENT));
}

static ImkStatus
allocate_all (Cpu *cpu, ImkError *error)
{
  size_t height = cpu->plan.height, n = height * cpu->plan.width;
  size_t spectrum = height * cpu->spectrum_pitch, pair = 2 * n;

  if (pair < 2 * spectrum)
    pair = 2 * spectrum;
  cpu->real = allocate (height * cpu->real_pitch, sizeof (float));
  cpu->spectrum = allocate (spectrum, sizeof (Complex));
  cpu->z = allocate (2 * n, sizeof (float));
  cpu->p = allocate (pair, sizeof (float));
  cpu->valid = allocate (n, 1);
  cpu->sums = allocate (height, sizeof (double));
  cpu->lowest = allocate (2 * height, sizeof (float));
  if (!cpu->real || !cpu->spectrum || !cpu->z || !cpu->p || !cpu->valid ||
      !cpu->sums || !cpu->lowest)
    return IMK_NO_MEMORY (error, "to integrate %u x %u normals.",
        cpu->plan.width, cpu->plan.height);
  cpu->r = cpu->z + n;
  cpu->q = cpu->p + n;
  cpu->highest = cpu->lowest + height;
  return IMK_OK;
}

static ImkStatus
cpu_create (const ImkNormalintegratePlan *plan, void **state, ImkError *error)
{
  Cpu *cpu = calloc (1, sizeof (*cpu));
  ImkStatus status;

  if (!cpu)
    return IMK_NO_MEMORY (error, "for the object.");
  cpu->plan = *plan;
  cpu->real_pitch = round_up (plan->width, ALIGNMENT / sizeof (float));
  cpu->spectrum_pitch =
      round_up (plan->width / 2 + 1, IMK_NORMALINTEGRATE_COLUMNS);
  status = allocate_all (cpu, error);
  if (status == IMK_OK)
    status = make_plans (cpu, error);
  if (status == IMK_OK)
    *state = cpu;
  else
    cpu_destroy (cpu);
  return status;
}

const ImkNormalintegrateBackend imk_normalintegrate_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .create = cpu_create,
    .integrate = cpu_integrate,
    .find_range = cpu_find_range,
    .gather = cpu_gather,
    .store = cpu_store,
    .destroy = cpu_destroy,
};
