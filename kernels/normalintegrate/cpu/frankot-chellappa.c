/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "normalintegrate/cpu/run.h"

typedef ImkNormalintegrateComplex Complex;
typedef ImkNormalintegrateCpu Cpu;
typedef ImkNormalintegrateRun Run;

static void
slope_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  Cpu *cpu = run->cpu;

  for (uint32_t y = first; y < end; y++) {
    float *to = imk_normalintegrate_real_row (cpu, y);
    uint32_t n = 0;

    for (uint32_t x = 0; x < cpu->plan.width; x++) {
      ImkNormalintegrateNormal normal =
          imk_normalintegrate_load (&cpu->plan, run->params, run->in, x, y);
      float along = run->is_y ? normal.y : normal.x;

      to[x] = normal.z > 0 ? -along / normal.z : 0;
      cpu->valid[(size_t) y * cpu->plan.width + x] = normal.z > 0;
      n += normal.z > 0;
    }
    cpu->sums[y] = n;
  }
}

static void
combine_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  const ImkNormalintegratePlan *p = &cpu->plan;
  float scale = imk_normalintegrate_transform_scale (cpu);

  for (uint32_t k = first; k < end; k++) {
    Complex *along_x = cpu->spectrum + k * cpu->spectrum_pitch;
    const Complex *along_y = (Complex *) cpu->p + k * cpu->spectrum_pitch;

    for (uint32_t l = 0; l <= p->width / 2; l++)
      along_x[l] = imk_normalintegrate_surface_bin (
          along_x[l], along_y[l], p->y.wave[k], p->x.wave[l], scale);
  }
}

static void
take_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (uint32_t y = first; y < end; y++)
    memcpy (cpu->z + (size_t) y * width, imk_normalintegrate_real_row (cpu, y),
        width * sizeof (float));
}

void
imk_normalintegrate_frankot_chellappa (
    Run *run, ImkNormalintegrateSummary *summary)
{
  run->is_y = true;
  run->spectrum = (Complex *) run->cpu->p;
  imk_normalintegrate_for_rows (run, slope_rows);
  imk_normalintegrate_transform (run);
  run->is_y = false;
  run->spectrum = run->cpu->spectrum;
  imk_normalintegrate_for_rows (run, slope_rows);
  imk_normalintegrate_transform (run);
  imk_normalintegrate_for_rows (run, combine_rows);
  imk_normalintegrate_transform_back (run);
  imk_normalintegrate_for_rows (run, take_rows);
  summary->n_valid = (uint64_t) imk_normalintegrate_add_sums (run->cpu);
  summary->n_iterations = 1;
}
