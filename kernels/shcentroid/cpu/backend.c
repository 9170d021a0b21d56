/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CPU backend: memory, and which loops measure a frame. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "imk/parallel.h"
#include "shcentroid/arithmetic/linear-centroid.h"
#include "shcentroid/cpu/calibration.h"
#include "shcentroid/cpu/output.h"
#include "shcentroid/cpu/params.h"

enum { WORTH_A_THREAD = 1 << 17 }; /* pixels; about 10 us */

/* When all cells are measured: those that are dark beside the brightest. */
static void
darken_cells (const Frame *f)
{
  const Cpu *cpu = f->cpu;
  double most = 0.0;

  for (uint32_t i = 0; i < cpu->plan.n_rects; i++)
    most = fmax (most, imk_shcentroid_light_of (&cpu->slopes[i]));
  for (uint32_t i = 0; i < cpu->plan.n_rects; i++) {
    ImkShcentroidRow row = {{0}};

    if (imk_shcentroid_darken (&cpu->slopes[i], &row,
            cpu->params.min_illumination * most, &cpu->rects[i], &cpu->params,
            cpu->fresh, cpu->held + 2 * (size_t) i, &cpu->tracks[i]))
      store_dark (f, i, &row);
  }
}

/* When all slopes are known. */
static void
remove_tilt (const Frame *f)
{
  const Cpu *cpu = f->cpu;
  bool all = cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  uint32_t n = cpu->plan.n_rects;
  ImkShcentroidTiltSums lanes[IMK_SHCENTROID_TILT_LANES] = {{0}}, tilt;

  for (uint32_t i = 0; i < n; i++)
    imk_shcentroid_add_slope (
        &lanes[i % IMK_SHCENTROID_TILT_LANES], &cpu->slopes[i]);
  tilt = imk_shcentroid_mean_of (lanes);
  for (uint32_t i = 0; i < n; i++) {
    double dx = cpu->slopes[i].x - tilt.x;
    double dy = cpu->slopes[i].y - tilt.y;

    if (cpu->slopes[i].tilt == IMK_SHCENTROID_TILT_APART)
      continue;
    for (uint32_t k = 0; k < f->n_out; k++) {
      store (&f->out[k], all ? i : 0, all ? IMK_SHCENTROID_DX : i, dx);
      store (&f->out[k], all ? i : 0,
          all ? IMK_SHCENTROID_DY : (uint64_t) n + i, dy);
    }
  }
}

/* What decides how the cells can be summed up. The largest sum of a cell is
 * that of v u^2 or v y^2, without FIELDS_ALL that of v u or v y. */
static void
look_at_cells (Cpu *cpu)
{
  bool all = cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  double maximum = cpu->plan.type == IMK_TYPE_U8 ? 255.0 : 65535.0;

  for (uint32_t i = 0; i < cpu->plan.n_rects; i++) {
    const ImkShcentroidRect *rect = &cpu->rects[i];
    double w = rect->width, h = rect->height, side = fmax (w, h);
    double most = maximum * w * h * (all ? side * side / 3 : side / 2);

    cpu->largest_sum = fmax (cpu->largest_sum, most);
    cpu->most_pixels = fmax (cpu->most_pixels, w * h);
    cpu->widest = fmax (cpu->widest, w);
    cpu->own_thresholds |= rect->threshold == rect->threshold;
  }
}

/* The largest sum of squares. */
static double
largest_square (const Cpu *cpu)
{
  return cpu->largest_sum * (cpu->plan.type == IMK_TYPE_U8 ? 255.0 : 65535.0);
}

static ImkStatus
choose_table (const void *const tables[IMK_CPU_N_LEVELS],
    const ImkShcentroidLoops **loops, ImkError *error)
{
  const void *table = NULL;
  ImkStatus status = imk_cpu_choose (tables, &table, error);

  *loops = table;
  return status;
}

static ImkStatus
choose_loops (Cpu *cpu, const ImkShcentroidPlan *plan, ImkError *error)
{
  static const void *const integers[][IMK_CPU_N_LEVELS] = {
      IMK_CPU_TABLES (imk_shcentroid_u8_sum64),
      IMK_CPU_TABLES (imk_shcentroid_u8_sum32),
      IMK_CPU_TABLES (imk_shcentroid_u16_sum64),
      IMK_CPU_TABLES (imk_shcentroid_u16_sum32),
  };
  static const void *const squares[][IMK_CPU_N_LEVELS] = {
      IMK_CPU_TABLES (imk_shcentroid_u8_square_sum64),
      IMK_CPU_TABLES (imk_shcentroid_u8_square_sum32),
      IMK_CPU_TABLES (imk_shcentroid_u16_square_sum64),
  };
  static const void *const chain[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_shcentroid_chain);
  static const void *const correlation[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_shcentroid_correlation);
  static const void *const linear[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_shcentroid_linear);
  /* 31 bits, because vector units convert signed integers */
  const double narrow = 2147483648.0;
  bool words = plan->type == IMK_TYPE_U16;

  IMK_TRY (choose_table (integers[2 * words + (cpu->largest_sum < narrow)],
      &cpu->integers, error));
  IMK_TRY (choose_table (squares[words ? 2 : largest_square (cpu) < narrow],
      &cpu->squares, error));
  IMK_TRY (choose_table (chain, &cpu->chain, error));
  IMK_TRY (choose_table (correlation, &cpu->correlation, error));
  return choose_table (linear, &cpu->linear, error);
}

static void
cpu_destroy (void *state)
{
  Cpu *cpu = state;

  if (!cpu)
    return;
  free (cpu->rects);
  free (cpu->held);
  imk_shcentroid_free_calibration (cpu);
  free (cpu->tracks);
  free (cpu->slopes);
  free (cpu->us);
  free (cpu->pupils);
  free (cpu->pupil_runs);
  free (cpu->fluxes);
  free (cpu->filter_weights);
  free (cpu->filter_at);
  imk_shcentroid_free_params (cpu);
  imk_shcentroid_matching_clear (&cpu->matching);
  free (cpu);
}

/* A vector reaches beyond them. */
static bool
allocate_columns (Cpu *cpu, const ImkShcentroidPlan *plan)
{
  if (plan->columns)
    cpu->us = calloc (plan->width + IMK_SHCENTROID_LANES, sizeof (*cpu->us));
  return cpu->us || !plan->columns;
}

/* Is cell @i + 1 right of cell @i, and each of its pixels? */
static bool
runs_on (const ImkShcentroidPlan *plan, const FramePixel *pupils, uint32_t i)
{
  const ImkShcentroidRect *rect = &plan->rects[i];
  const FramePixel *at = pupils + (size_t) i * IMK_SHCENTROID_N_PUPILS;
  bool on = rect[1].x == rect->x + 1 && rect[1].y == rect->y;

  for (uint32_t k = 0; k < IMK_SHCENTROID_N_PUPILS; k++, at++)
    on &= at[IMK_SHCENTROID_N_PUPILS].x == at->x + 1 &&
          at[IMK_SHCENTROID_N_PUPILS].y == at->y;
  return on;
}

static bool
copy_pupils (Cpu *cpu, const ImkShcentroidPlan *plan)
{
  uint32_t n = plan->n_rects;
  size_t n_pupils = n * (size_t) IMK_SHCENTROID_N_PUPILS;

  cpu->pupils = malloc (n_pupils * sizeof (*cpu->pupils));
  cpu->pupil_runs = malloc (n * sizeof (*cpu->pupil_runs));
  cpu->fluxes = malloc (n * sizeof (*cpu->fluxes));
  if (!cpu->pupils || !cpu->pupil_runs || !cpu->fluxes)
    return false;
  for (size_t i = 0; i < n_pupils; i++)
    cpu->pupils[i] = (FramePixel){(uint16_t) (plan->pupils[i] % plan->width),
        (uint16_t) (plan->pupils[i] / plan->width)};
  for (uint32_t i = n; i-- > 0;) {
    const ImkShcentroidRect *rect = &plan->rects[i];
    bool on = i + 1 < n && cpu->pupil_runs[i + 1] < UINT8_MAX &&
              runs_on (plan, cpu->pupils, i);

    cpu->pupil_runs[i] = on ? cpu->pupil_runs[i + 1] + 1 : 1;
    cpu->own_fluxes |= rect->flags || rect->min_flux == rect->min_flux;
  }
  return true;
}

/* What the linear estimators have of the plan. */
static bool
copy_linear (Cpu *cpu, const ImkShcentroidPlan *plan)
{
  const ImkShcentroidFilter *f = &plan->filter;

  if (plan->pupils && !copy_pupils (cpu, plan))
    return false;
  if (f->n_weights == 0)
    return true;
  cpu->filter_weights = malloc (f->n_weights * sizeof (*f->weights));
  cpu->filter_at = malloc (plan->n_rects * sizeof (*f->at));
  if (!cpu->filter_weights || !cpu->filter_at)
    return false;
  memcpy (cpu->filter_weights, f->weights, f->n_weights * sizeof (*f->weights));
  memcpy (cpu->filter_at, f->at, plan->n_rects * sizeof (*f->at));
  return true;
}

static bool
allocate (Cpu *cpu, const ImkShcentroidPlan *plan, uint32_t n_threads)
{
  cpu->rects = calloc (plan->n_rects, sizeof (*cpu->rects));
  cpu->held = calloc (plan->n_rects, 2 * sizeof (*cpu->held));
  cpu->tracks = calloc (plan->n_rects, sizeof (*cpu->tracks));
  cpu->slopes = calloc (plan->n_rects, sizeof (*cpu->slopes));
  return cpu->rects && cpu->held && cpu->tracks && cpu->slopes &&
         imk_shcentroid_copy_calibration (cpu, plan) &&
         allocate_columns (cpu, plan) && copy_linear (cpu, plan) &&
         imk_shcentroid_matching_init (&cpu->matching, plan, n_threads);
}

static ImkStatus
cpu_create (const void *data, const void *params, uint32_t n_threads,
    void **state, ImkError *error)
{
  const ImkShcentroidPlan *plan = data;
  Cpu *cpu = calloc (1, sizeof (*cpu));
  ImkStatus status;

  if (!cpu || !allocate (cpu, plan, n_threads)) {
    cpu_destroy (cpu);
    return IMK_NO_MEMORY (error, "for %u cells.", plan->n_rects);
  }
  memcpy (cpu->rects, plan->rects, plan->n_rects * sizeof (*cpu->rects));
  cpu->plan = *plan;
  cpu->plan.rects = cpu->rects;
  cpu->plan.pixels = NULL;
  cpu->plan.lut = cpu->lut;
  cpu->plan.templates = cpu->matching.templates;
  cpu->plan.pupils = NULL;
  cpu->plan.filter.weights = cpu->filter_weights;
  cpu->plan.filter.at = cpu->filter_at;
  cpu->n_threads = n_threads;
  cpu->cells_a_row = plan->columns ? plan->columns : 1;
  cpu->fresh = cpu->lost = true;
  look_at_cells (cpu);
  imk_shcentroid_take_params (cpu, params);
  status = choose_loops (cpu, plan, error);
  if (status == IMK_OK)
    *state = cpu;
  else
    cpu_destroy (cpu);
  return status;
}

static ImkStatus
cpu_update (void *state, const void *data, ImkError *error)
{
  const ImkShcentroidParams *params = data;
  Cpu *cpu = state;

  /* what was held or tracked before something else came in between is out of
   * date */
  if (cpu->params.invalid_policy != params->invalid_policy)
    cpu->fresh = true;
  if (imk_shcentroid_tracks (&cpu->params) != imk_shcentroid_tracks (params))
    cpu->lost = true;
  imk_shcentroid_take_params (cpu, params);
  return IMK_OK;
}

/* Are the parts of all pixels whole numbers, and their sums exact in float64?
 * Then the chain has the same sums in any order, those of integers, too. */
static bool
is_whole (const Cpu *cpu)
{
  const ImkShcentroidParams *p = &cpu->params;
  bool cut = p->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE;
  bool leveled = cut && imk_shcentroid_is_leveled (p);
  bool fraction =
      cut && p->subtract &&
      (leveled || cpu->own_thresholds || p->threshold != floor (p->threshold));
  bool all = cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  bool square = p->power == 2.0 && !cut && p->brightest == 0 && !all;
  double largest = square ? largest_square (cpu) : cpu->largest_sum;

  return cpu->plan.type != IMK_TYPE_F32 && !cpu->dark && !cpu->lut &&
         p->weighting == IMK_SHCENTROID_WEIGHTING_NONE &&
         (p->power == 1.0 || square) && largest < 9007199254740992.0 &&
         !fraction && cpu->widest <= INTEGER_TILE &&
         (p->brightest == 0 || (!cut && cpu->most_pixels <= MOST_KEYS)) &&
         (!leveled || p->window == IMK_SHCENTROID_WINDOW_CELL) &&
         (!all || p->read_noise == 0.0);
}

static void
measure_frame (const Frame *frame)
{
  const Cpu *cpu = frame->cpu;
  bool integers = imk_shcentroid_is_plain (
                      &cpu->params, cpu->plan.type, cpu->dark || cpu->lut) ||
                  is_whole (cpu);
  const ImkShcentroidLoops *whole =
      cpu->params.power == 2.0 ? cpu->squares : cpu->integers;
  uint32_t n_rows = cpu->plan.n_rects / cpu->cells_a_row;
  uint64_t row_pixels = 0;

  for (uint32_t i = 0; i < cpu->cells_a_row; i++)
    row_pixels += (uint64_t) cpu->rects[i].width * cpu->rects[i].height;
  imk_parallel_for (cpu->n_threads, n_rows,
      1 + (uint32_t) (WORTH_A_THREAD / row_pixels),
      (integers ? whole : cpu->chain)->measure, (void *) frame);
}

/* Cells of few pixels each. */
static void
filter_frame (Frame *frame)
{
  const Cpu *cpu = frame->cpu;
  uint32_t cell_pixels =
      (uint32_t) cpu->rects[0].width * cpu->rects[0].height + 32;

  cpu->linear->prepare (frame);
  imk_parallel_for (cpu->n_threads, cpu->plan.n_rects,
      1 + WORTH_A_THREAD / 4 / cell_pixels, cpu->linear->measure, frame);
}

/* A cell is work enough for a thread to begin with. */
static void
match_frame (Frame *frame)
{
  const Cpu *cpu = frame->cpu;

  if (cpu->matching.from_frame)
    cpu->correlation->prepare (frame);
  imk_parallel_for (
      cpu->n_threads, cpu->plan.n_rects, 1, cpu->correlation->measure, frame);
}

static ImkStatus
cpu_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  Cpu *cpu = state;
  Frame frame = {.cpu = cpu,
      .in = in,
      .out = out,
      .n_out = out[1].data ? 2 : 1,
      .flags = out[2].data};

  if (cpu->params.estimator == IMK_SHCENTROID_ESTIMATOR_CORRELATION)
    match_frame (&frame);
  else if (cpu->params.estimator == IMK_SHCENTROID_ESTIMATOR_MATCHED ||
           cpu->params.estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS)
    filter_frame (&frame);
  else
    measure_frame (&frame);
  if (cpu->params.min_illumination > 0.0)
    darken_cells (&frame);
  if (cpu->params.remove_tilt)
    remove_tilt (&frame);
  cpu->fresh = cpu->lost = false;
  cpu->upwards = !cpu->upwards;
  return IMK_OK;
}

static ImkStatus
cpu_reset (void *state, void *stream, ImkError *error)
{
  Cpu *cpu = state;

  cpu->fresh = cpu->lost = true;
  return IMK_OK;
}

const ImkFilterBackend imk_shcentroid_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .params_size = sizeof (ImkShcentroidParams),
    .n_inputs = 1,
    .n_outputs = 3,
    .create = cpu_create,
    .update = cpu_update,
    .process = cpu_process,
    .reset = cpu_reset,
    .destroy = cpu_destroy,
};
