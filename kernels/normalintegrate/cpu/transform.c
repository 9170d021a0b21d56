/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "normalintegrate/cpu/run.h"

typedef ImkNormalintegrateComplex Complex;
typedef ImkNormalintegrateCpu Cpu;
typedef ImkNormalintegrateRun Run;

void
imk_normalintegrate_for_rows (Run *run, ImkBandFunc func)
{
  imk_parallel_for (run->cpu->plan.n_threads, run->cpu->plan.height,
      IMK_NORMALINTEGRATE_GRAIN, func, run);
}

double
imk_normalintegrate_add_sums (const Cpu *cpu)
{
  double sum = 0;

  for (uint32_t y = 0; y < cpu->plan.height; y++)
    sum += cpu->sums[y];
  return sum;
}

static void
transform_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;

  for (uint32_t y = first; y < end; y++) {
    Complex *row = run->spectrum + y * cpu->spectrum_pitch;
    uint32_t n = cpu->plan.width / 2 + 1;

    if (imk_fft_execute (cpu->row_forward,
            imk_normalintegrate_real_row (cpu, y), row, NULL) != IMK_OK)
      run->failed = true;
    /* the padding of a row is transformed with the columns */
    memset (row + n, 0, (cpu->spectrum_pitch - n) * sizeof (*row));
  }
}

static void
transform_rows_back (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;

  for (uint32_t y = first; y < end; y++)
    if (imk_fft_execute (cpu->row_backward,
            run->spectrum + y * cpu->spectrum_pitch,
            imk_normalintegrate_real_row (cpu, y), NULL) != IMK_OK)
      run->failed = true;
}

/* The columns of @run->spectrum. */
typedef struct Columns {
  Run *run;
  ImkFft *plan;
} Columns;

static void
transform_columns (void *data, uint32_t first, uint32_t end)
{
  const Columns *c = data;

  for (uint32_t i = first; i < end; i++) {
    Complex *at = c->run->spectrum + (size_t) i * IMK_NORMALINTEGRATE_COLUMNS;

    if (imk_fft_execute (c->plan, at, at, NULL) != IMK_OK)
      c->run->failed = true;
  }
}

static void
for_columns (Run *run, ImkFft *plan)
{
  Columns columns = {run, plan};

  imk_parallel_for (run->cpu->plan.n_threads,
      (uint32_t) (run->cpu->spectrum_pitch / IMK_NORMALINTEGRATE_COLUMNS), 1,
      transform_columns, &columns);
}

void
imk_normalintegrate_transform (Run *run)
{
  imk_normalintegrate_for_rows (run, transform_rows);
  for_columns (run, run->cpu->column_forward);
}

void
imk_normalintegrate_transform_back (Run *run)
{
  for_columns (run, run->cpu->column_backward);
  imk_normalintegrate_for_rows (run, transform_rows_back);
}

float
imk_normalintegrate_transform_scale (const Cpu *cpu)
{
  return 1 / ((float) cpu->plan.width * (float) cpu->plan.height);
}
