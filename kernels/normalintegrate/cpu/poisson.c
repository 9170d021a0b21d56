/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The Poisson equation. */
#include <string.h>

#include "normalintegrate/cpu/run.h"

typedef ImkNormalintegrateComplex Complex;
typedef ImkNormalintegrateCpu Cpu;
typedef ImkNormalintegrateRun Run;

static void
load_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (uint32_t y = first; y < end; y++) {
    size_t at = (size_t) y * width;
    uint32_t n = 0;

    for (uint32_t x = 0; x < width; x++, at++) {
      ImkNormalintegrateNormal normal =
          imk_normalintegrate_load (&cpu->plan, run->params, run->in, x, y);

      cpu->z[at] = normal.x;
      cpu->p[at] = normal.y;
      cpu->q[at] = normal.z;
      cpu->valid[at] = normal.z > 0;
      n += normal.z > 0;
    }
    cpu->sums[y] = n;
  }
}

/* The right side of the normal equations: rises into a pixel minus rises out of
 * it. */
static void
begin_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width, height = cpu->plan.height;
  const float *nx = cpu->z, *ny = cpu->p, *nz = cpu->q;

  for (uint32_t y = first; y < end; y++)
    for (uint32_t x = 0; x < width; x++) {
      size_t at = (size_t) y * width + x, below = at + width;
      size_t above = at - width;
      float sum = 0;

      if (x > 0)
        sum +=
            imk_normalintegrate_rise (nx[at - 1], nz[at - 1], nx[at], nz[at]);
      if (x + 1 < width)
        sum -=
            imk_normalintegrate_rise (nx[at], nz[at], nx[at + 1], nz[at + 1]);
      if (y > 0)
        sum += cpu->plan.aspect *
               imk_normalintegrate_rise (ny[above], nz[above], ny[at], nz[at]);
      if (y + 1 < height)
        sum -= cpu->plan.aspect *
               imk_normalintegrate_rise (ny[at], nz[at], ny[below], nz[below]);
      cpu->r[at] = sum;
    }
}

/* ------------------------------------------------------------------------
 * The preconditioner: the Poisson equation of a map without holes. Samples are
 * in the order that makes a Fourier transform a cosine transform. */

static void
reorder_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (uint32_t i = first; i < end; i++) {
    uint32_t y = imk_normalintegrate_sample_at (i, cpu->plan.height);
    const float *from = cpu->r + (size_t) y * width;
    float *to = imk_normalintegrate_real_row (cpu, i);

    for (uint32_t x = 0; x < (width + 1) / 2; x++)
      to[x] = from[2 * x];
    for (uint32_t x = (width + 1) / 2; x < width; x++)
      to[x] = from[2 * (width - x) - 1];
  }
}

/* Rows k and height - k at once. */
static void
solve_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  const ImkNormalintegratePlan *p = &cpu->plan;
  float scale = imk_normalintegrate_transform_scale (cpu);

  for (uint32_t k = first; k < end; k++) {
    uint32_t mirrored = k ? p->height - k : 0;
    Complex *v = run->spectrum + k * cpu->spectrum_pitch;
    Complex *w = run->spectrum + mirrored * cpu->spectrum_pitch;

    for (uint32_t l = 0; l <= p->width / 2; l++) {
      Complex a = v[l], b = w[l];

      imk_normalintegrate_solve_bins (&p->y, &p->x, k, l, scale, &a, &b);
      w[l] = b;
      v[l] = a;
    }
  }
}

/* The answer, in cpu->q, which A p needs only later. */
static void
answer_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (uint32_t y = first; y < end; y++) {
    const float *from = imk_normalintegrate_real_row (
        cpu, imk_normalintegrate_place_of (y, cpu->plan.height));
    float *to = cpu->q + (size_t) y * width;

    for (uint32_t x = 0; x < (width + 1) / 2; x++)
      to[2 * x] = from[x];
    for (uint32_t x = (width + 1) / 2; x < width; x++)
      to[2 * (width - x) - 1] = from[x];
  }
}

static void
precondition (Run *run)
{
  run->spectrum = run->cpu->spectrum;
  imk_normalintegrate_for_rows (run, reorder_rows);
  imk_normalintegrate_transform (run);
  imk_parallel_for (run->cpu->plan.n_threads, run->cpu->plan.height / 2 + 1,
      IMK_NORMALINTEGRATE_GRAIN, solve_rows, run);
  imk_normalintegrate_transform_back (run);
  imk_normalintegrate_for_rows (run, answer_rows);
}

/* q = A p, and the sum of p q. */
static void
apply_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (uint32_t y = first; y < end; y++) {
    size_t at = (size_t) y * width;
    double sum = 0;

    for (uint32_t x = 0; x < width; x++, at++) {
      cpu->q[at] =
          imk_normalintegrate_apply (&cpu->plan, cpu->p, cpu->valid, x, y);
      sum += (double) cpu->p[at] * cpu->q[at];
    }
    cpu->sums[y] = sum;
  }
}

/* Without holes the first answer is the solution. */
static void
solve (Run *run, ImkNormalintegrateSummary *summary)
{
  const ImkNormalintegrateSystem system = {.apply_rows = apply_rows,
      .precondition = precondition,
      .answer = run->cpu->q};
  double tolerance = run->params->tolerance, first, now;
  size_t size = summary->n_pixels * sizeof (float);

  imk_normalintegrate_for_rows (run, begin_rows);
  memset (run->cpu->z, 0, size);
  first = now = imk_normalintegrate_precondition (run, &system);
  if (summary->n_valid == summary->n_pixels && now > 0) {
    memcpy (run->cpu->z, run->cpu->q, size);
    summary->n_iterations = 1;
    return;
  }
  summary->n_iterations = imk_normalintegrate_descend (
      run, &now, tolerance * tolerance * first, run->params->max_iterations);
  if (summary->n_iterations > 0 && now > 0)
    summary->residual = sqrt (now / first);
}

void
imk_normalintegrate_load_normals (Run *run, ImkNormalintegrateSummary *summary)
{
  imk_normalintegrate_for_rows (run, load_rows);
  summary->n_valid = (uint64_t) imk_normalintegrate_add_sums (run->cpu);
}

void
imk_normalintegrate_poisson (Run *run, ImkNormalintegrateSummary *summary)
{
  imk_normalintegrate_load_normals (run, summary);
  if (summary->n_valid > 0)
    solve (run, summary);
}
