/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every pass takes rows, in bands of threads; sums are kept by row and added up
 * in order, so that threads change nothing. Transforms of columns are done
 * COLUMNS at a time, a cache line of each row. */
#include <float.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/parallel.h"
#include "fft/fft.h"
#include "normalintegrate/normalintegrate-pixel.h"

typedef ImkNormalintegrateComplex Complex;

enum { COLUMNS = 8, ALIGNMENT = 64, GRAIN = 16 /* rows worth a thread */ };

typedef struct Cpu {
  ImkNormalintegratePlan plan;
  ImkFft *row_forward, *row_backward, *column_forward, *column_backward;
  size_t real_pitch, spectrum_pitch; /* elements, a row */
  float *real;                       /* [height][real_pitch] */
  Complex *spectrum;                 /* [height][spectrum_pitch] */
  /* of conjugate gradients, [height][width]: heights, residual, direction,
   * A direction; normals before; a second spectrum instead of the last two */
  float *z, *r, *p, *q;
  uint8_t *valid; /* likewise */
  double *sums;   /* [height] */
  float *lowest, *highest;
} Cpu;

/* One call of process (), and what its passes need. */
typedef struct Run {
  Cpu *cpu;
  const ImkNormalintegrateParams *params;
  const ImkImage *in;
  ImkNormalintegrateOutputs *out;
  ImkNormalintegrateScale scale;
  Complex *spectrum; /* that is transformed */
  bool is_y;         /* slopes along y */
  float alpha, beta;
  atomic_bool failed; /* a transform */
} Run;

static void
for_rows (const Run *run, ImkBandFunc func)
{
  imk_parallel_for (run->cpu->plan.n_threads, run->cpu->plan.height, GRAIN,
      func, (void *) run);
}

static double
add_sums (const Cpu *cpu)
{
  double sum = 0;

  for (uint32_t y = 0; y < cpu->plan.height; y++)
    sum += cpu->sums[y];
  return sum;
}

static float *
real_row (const Cpu *cpu, uint32_t y)
{
  return cpu->real + y * cpu->real_pitch;
}

/* ------------------------------------------------------------------------
 * Normals. */

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

/* The right side of the normal equations: rises into a pixel less rises out
 * of it. */
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

static void
slope_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  Cpu *cpu = run->cpu;

  for (uint32_t y = first; y < end; y++) {
    float *to = real_row (cpu, y);
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

/* ------------------------------------------------------------------------
 * Transforms, between real and run->spectrum. */

static void
transform_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;

  for (uint32_t y = first; y < end; y++) {
    Complex *row = run->spectrum + y * cpu->spectrum_pitch;
    uint32_t n = cpu->plan.width / 2 + 1;

    if (imk_fft_execute (cpu->row_forward, real_row (cpu, y), row, NULL) !=
        IMK_OK)
      run->failed = true;
    /* what pads a row is transformed with the columns */
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
            run->spectrum + y * cpu->spectrum_pitch, real_row (cpu, y),
            NULL) != IMK_OK)
      run->failed = true;
}

static void
transform_columns (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;

  for (uint32_t i = first; i < end; i++) {
    Complex *at = run->spectrum + (size_t) i * COLUMNS;

    if (imk_fft_execute (run->cpu->column_forward, at, at, NULL) != IMK_OK)
      run->failed = true;
  }
}

static void
transform_columns_back (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;

  for (uint32_t i = first; i < end; i++) {
    Complex *at = run->spectrum + (size_t) i * COLUMNS;

    if (imk_fft_execute (run->cpu->column_backward, at, at, NULL) != IMK_OK)
      run->failed = true;
  }
}

static void
for_columns (const Run *run, ImkBandFunc func)
{
  imk_parallel_for (run->cpu->plan.n_threads,
      (uint32_t) (run->cpu->spectrum_pitch / COLUMNS), 1, func, (void *) run);
}

static void
transform (const Run *run)
{
  for_rows (run, transform_rows);
  for_columns (run, transform_columns);
}

static void
transform_back (const Run *run)
{
  for_columns (run, transform_columns_back);
  for_rows (run, transform_rows_back);
}

static float
transform_scale (const Cpu *cpu)
{
  return 1 / ((float) cpu->plan.width * (float) cpu->plan.height);
}

/* ------------------------------------------------------------------------
 * The preconditioner: the Poisson equation of a map without holes. What goes in
 * and out is in the order that makes a cosine transform of a Fourier one. */

static void
reorder_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (uint32_t i = first; i < end; i++) {
    uint32_t y = imk_normalintegrate_sample_at (i, cpu->plan.height);
    const float *from = cpu->r + (size_t) y * width;
    float *to = real_row (cpu, i);

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
  float scale = transform_scale (cpu);

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

static void
precondition (Run *run)
{
  run->spectrum = run->cpu->spectrum;
  for_rows (run, reorder_rows);
  transform (run);
  imk_parallel_for (run->cpu->plan.n_threads, run->cpu->plan.height / 2 + 1,
      GRAIN, solve_rows, run);
  transform_back (run);
}

/* Where the answer for row @y is. */
static const float *
answer_row (const Cpu *cpu, uint32_t y)
{
  return real_row (cpu, imk_normalintegrate_place_of (y, cpu->plan.height));
}

static void
dot_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (uint32_t y = first; y < end; y++) {
    const float *answer = answer_row (cpu, y);
    const float *r = cpu->r + (size_t) y * width;
    double sum = 0;

    for (uint32_t x = 0; x < width; x++)
      sum += (double) r[x] * answer[imk_normalintegrate_place_of (x, width)];
    cpu->sums[y] = sum;
  }
}

/* The next direction: the answer + beta * the last one. */
static void
turn_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (uint32_t y = first; y < end; y++) {
    const float *answer = answer_row (cpu, y);
    float *p = cpu->p + (size_t) y * width;

    for (uint32_t x = 0; x < width; x++) {
      float a = answer[imk_normalintegrate_place_of (x, width)];

      /* before the first direction there are normals */
      p[x] = run->beta != 0 ? a + run->beta * p[x] : a;
    }
  }
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

static void
step_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  uint32_t width = cpu->plan.width;

  for (size_t at = (size_t) first * width; at < (size_t) end * width; at++) {
    cpu->z[at] += run->alpha * cpu->p[at];
    cpu->r[at] -= run->alpha * cpu->q[at];
  }
}

static double
precondition_and_dot (Run *run)
{
  precondition (run);
  for_rows (run, dot_rows);
  return add_sums (run->cpu);
}

/* Conjugate gradients. Without holes the first answer is the solution. */
static void
solve (Run *run, ImkNormalintegrateSummary *summary)
{
  Cpu *cpu = run->cpu;
  double first, now;

  for_rows (run, begin_rows);
  memset (cpu->z, 0, summary->n_pixels * sizeof (float));
  first = now = precondition_and_dot (run);
  run->beta = 0;
  while (summary->n_iterations < run->params->max_iterations && now > 0) {
    double curvature, before = now;

    for_rows (run, turn_rows);
    summary->n_iterations++;
    if (summary->n_valid == summary->n_pixels) {
      memcpy (cpu->z, cpu->p, summary->n_pixels * sizeof (float));
      break;
    }
    for_rows (run, apply_rows);
    curvature = add_sums (cpu);
    if (!(curvature > 0))
      break;
    run->alpha = (float) (now / curvature);
    for_rows (run, step_rows);
    now = precondition_and_dot (run);
    summary->residual = now > 0 ? sqrt (now / first) : 0;
    if (summary->residual <= run->params->tolerance)
      break;
    run->beta = (float) (now / before);
  }
}

/* ------------------------------------------------------------------------
 * Frankot and Chellappa. */

static void
combine_rows (void *data, uint32_t first, uint32_t end)
{
  Run *run = data;
  const Cpu *cpu = run->cpu;
  const ImkNormalintegratePlan *p = &cpu->plan;
  float scale = transform_scale (cpu);

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
    memcpy (
        cpu->z + (size_t) y * width, real_row (cpu, y), width * sizeof (float));
}

static void
frankot_chellappa (Run *run)
{
  run->is_y = true;
  run->spectrum = (Complex *) run->cpu->p;
  for_rows (run, slope_rows);
  transform (run);
  run->is_y = false;
  run->spectrum = run->cpu->spectrum;
  for_rows (run, slope_rows);
  transform (run);
  for_rows (run, combine_rows);
  transform_back (run);
  for_rows (run, take_rows);
}

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
        lowest = fminf (lowest, cpu->z[at]);
        highest = fmaxf (highest, cpu->z[at]);
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
          run->out, &run->scale, x, y, cpu->z[at], cpu->valid[at]);
  }
}

static void
store (Run *run, ImkNormalintegrateSummary *summary)
{
  const Cpu *cpu = run->cpu;
  float lowest = INFINITY, highest = -INFINITY;

  for_rows (run, range_rows);
  for (uint32_t y = 0; y < cpu->plan.height; y++) {
    lowest = fminf (lowest, cpu->lowest[y]);
    highest = fmaxf (highest, cpu->highest[y]);
  }
  run->scale =
      imk_normalintegrate_scale (run->params, lowest, highest, summary);
  for_rows (run, store_rows);
}

static ImkStatus
cpu_process (void *state, const ImkNormalintegrateParams *params,
    const ImkImage *in, ImkNormalintegrateOutputs *outputs,
    ImkNormalintegrateSummary *summary, void *stream, ImkError *error)
{
  Run run = {.cpu = state, .params = params, .in = in, .out = outputs};

  if (params->method == IMK_NORMALINTEGRATE_FRANKOT_CHELLAPPA) {
    frankot_chellappa (&run);
    summary->n_valid = (uint64_t) add_sums (run.cpu);
    summary->n_iterations = 1;
  } else {
    for_rows (&run, load_rows);
    summary->n_valid = (uint64_t) add_sums (run.cpu);
    if (summary->n_valid > 0)
      solve (&run, summary);
  }
  if (run.failed)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory to transform %u x %u samples.", run.cpu->plan.width,
        run.cpu->plan.height);
  store (&run, summary);
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
  c.n_transforms = COLUMNS;
  c.in = c.out = (ImkFftLayout){.step = cpu->spectrum_pitch, .distance = 1};
  c.in_place = true;
  return imk_fft_new (&c, plan, error);
}

static ImkStatus
make_plans (Cpu *cpu, ImkError *error)
{
  const ImkNormalintegratePlan *p = &cpu->plan;
  ImkStatus status = plan_row (p, IMK_FFT_R2C, &cpu->row_forward, error);

  if (status == IMK_OK)
    status = plan_row (p, IMK_FFT_C2R, &cpu->row_backward, error);
  if (status == IMK_OK)
    status = plan_columns (cpu, IMK_FFT_FORWARD, &cpu->column_forward, error);
  if (status == IMK_OK)
    status = plan_columns (cpu, IMK_FFT_BACKWARD, &cpu->column_backward, error);
  return status;
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
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory to integrate %u x %u normals.", cpu->plan.width,
        cpu->plan.height);
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
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  cpu->plan = *plan;
  cpu->real_pitch = round_up (plan->width, ALIGNMENT / sizeof (float));
  cpu->spectrum_pitch = round_up (plan->width / 2 + 1, COLUMNS);
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
    .process = cpu_process,
    .destroy = cpu_destroy,
};
