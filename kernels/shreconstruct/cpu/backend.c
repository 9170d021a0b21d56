/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "shreconstruct/shreconstruct-private.h"

enum { TERMS = IMK_SHRECONSTRUCT_MAX_TERMS };

typedef struct Cpu {
  ImkShreconstructConfig config;
  ImkShreconstructMatrix matrix, modes, inverse;
  ImkShreconstructExclude *exclude; /* (nullable) */
  uint8_t *valid;                   /* [n_cells] */
  float *product;                   /* room for the products */
  float *change;                    /* of limited commands */
} Cpu;

/* The state, of the frame at hand. */
typedef struct State {
  double *q, *u;
  float *slopes, *commands;
  ImkShreconstructCounts *counts;
  uint32_t first;
} State;

/* --- making --------------------------------------------------------------- */

static void
cpu_destroy (void *state)
{
  Cpu *cpu = state;

  imk_shreconstruct_matrix_clear (&cpu->matrix);
  imk_shreconstruct_matrix_clear (&cpu->modes);
  imk_shreconstruct_matrix_clear (&cpu->inverse);
  imk_shreconstruct_exclude_free (cpu->exclude);
  free (cpu->valid);
  free (cpu->product);
  free (cpu->change);
  free (cpu);
}

static ImkStatus
take_inverse (Cpu *cpu, const float *inverse, ImkError *error)
{
  imk_shreconstruct_matrix_clear (&cpu->inverse);
  return imk_shreconstruct_matrix_init (&cpu->inverse, inverse,
      cpu->config.n_modes, cpu->config.n_commands, error);
}

static ImkStatus
make_matrices (Cpu *cpu, const float *inverse, ImkError *error)
{
  const ImkShreconstructConfig *c = &cpu->config;
  ImkStatus status = imk_shreconstruct_matrix_init (
      &cpu->matrix, c->matrix, c->n_modes, 2 * c->n_cells, error);

  if (status == IMK_OK && c->modes)
    status = imk_shreconstruct_matrix_init (
        &cpu->modes, c->modes, c->n_commands, c->n_modes, error);
  if (status == IMK_OK && inverse)
    status = take_inverse (cpu, inverse, error);
  if (status == IMK_OK && c->invalid == IMK_SHRECONSTRUCT_INVALID_EXCLUDE)
    status = imk_shreconstruct_exclude_new (c, &cpu->exclude, error);
  return status;
}

static ImkStatus
cpu_create (const ImkShreconstructConfig *c, const float *inverse, void **state,
    ImkError *error)
{
  size_t most = imk_shreconstruct_room (c->n_commands); /* modes are fewer */
  Cpu *cpu = calloc (1, sizeof (*cpu));
  ImkStatus status;

  if (!cpu)
    return imk_shreconstruct_no_memory (error);
  cpu->config = *c;
  cpu->valid = calloc (c->n_cells, 1);
  cpu->product = calloc (most, sizeof (float));
  cpu->change = calloc (most, sizeof (float));
  status = cpu->valid && cpu->product && cpu->change
               ? make_matrices (cpu, inverse, error)
               : imk_shreconstruct_no_memory (error);
  if (status == IMK_OK)
    *state = cpu;
  else
    cpu_destroy (cpu);
  return status;
}

static ImkStatus
cpu_update (void *state, const ImkShreconstructConfig *c, const float *inverse,
    ImkError *error)
{
  Cpu *cpu = state;
  ImkStatus status = inverse ? take_inverse (cpu, inverse, error) : IMK_OK;

  if (status == IMK_OK)
    cpu->config = *c;
  return status;
}

static const char *
cpu_doubt (const void *state)
{
  const Cpu *cpu = state;

  return cpu->exclude ? imk_shreconstruct_exclude_doubt (cpu->exclude) : NULL;
}

/* --- a frame -------------------------------------------------------------- */

/* Row @i of the past: 0 is the newest. */
static double *
past_row (const Cpu *cpu, const State *s, double *past, uint32_t i)
{
  return past + (size_t) ((s->first + i) % TERMS) * cpu->config.n_modes;
}

static uint32_t
find_valid_cells (Cpu *cpu, const float *slopes, const uint8_t *flags)
{
  uint32_t n_cells = cpu->config.n_cells, n_valid = 0;

  for (uint32_t i = 0; i < n_cells; i++) {
    cpu->valid[i] = imk_shreconstruct_is_valid (
        slopes[i], slopes[n_cells + i], flags ? flags[i] : 0);
    n_valid += cpu->valid[i];
  }
  return n_valid;
}

static void
take_slopes (Cpu *cpu, State *s, const float *slopes)
{
  const ImkShreconstructConfig *c = &cpu->config;
  const float *dx = slopes, *dy = slopes + c->n_cells;
  float *to_x = s->slopes, *to_y = s->slopes + c->n_cells;
  bool hold = c->invalid == IMK_SHRECONSTRUCT_INVALID_HOLD;

  for (uint32_t i = 0; i < c->n_cells; i++)
    if (cpu->valid[i]) {
      to_x[i] = dx[i] - c->offsets[i];
      to_y[i] = dy[i] - c->offsets[c->n_cells + i];
    } else if (!hold) {
      to_x[i] = to_y[i] = 0;
    }
}

/* The next q of each mode. The oldest row of the past becomes the newest. */
static double *
control (Cpu *cpu, State *s)
{
  const ImkShreconstructConfig *c = &cpu->config;
  double *oldest = past_row (cpu, s, s->q, TERMS - 1), *u;

  /* all terms of q are in use: the sum of a mode is complete before its oldest
   * value goes */
  for (uint32_t m = 0; m < c->n_modes; m++) {
    const double *a = c->feedback + (size_t) m * TERMS;
    double sum = 0;

    for (uint32_t i = 0; i < c->n_feedback; i++)
      sum += a[i] * past_row (cpu, s, s->q, i)[m];
    oldest[m] = sum;
  }
  s->first = (s->first + TERMS - 1) % TERMS;
  u = past_row (cpu, s, s->u, 0);
  for (uint32_t m = 0; m < c->n_modes; m++) {
    const double *b = c->forward + (size_t) m * TERMS;
    double sum = 0;

    u[m] = -(double) cpu->product[m];
    for (uint32_t j = 0; j < c->n_forward; j++)
      sum += b[j] * past_row (cpu, s, s->u, j)[m];
    oldest[m] += sum;
  }
  return oldest;
}

/* Commands of @q in cpu->product. */
static void
make_commands (Cpu *cpu, const double *q)
{
  const ImkShreconstructConfig *c = &cpu->config;

  if (cpu->modes.tiles) {
    for (uint32_t m = 0; m < c->n_modes; m++)
      cpu->change[m] = (float) q[m];
    imk_shreconstruct_multiply (
        &cpu->modes, cpu->change, cpu->product, c->n_threads);
    for (uint32_t k = 0; k < c->n_commands; k++)
      cpu->product[k] = c->reference[k] + cpu->product[k];
  } else {
    for (uint32_t k = 0; k < c->n_commands; k++)
      cpu->product[k] = (float) (c->reference[k] + q[k]);
  }
}

/* @q follows the commands that are limited. Counts those that are, but for dead
 * ones. Returns: whether any is */
static bool
limit_commands (Cpu *cpu, State *s, double *q)
{
  const ImkShreconstructConfig *c = &cpu->config;
  const ImkShlimits limits = imk_shreconstruct_limits (c);
  bool is_changed = false;

  for (uint32_t k = 0; k < c->n_commands; k++) {
    double wanted = cpu->product[k], before = s->commands[k];
    bool is_dead = c->dead && c->dead[k];
    double limited =
        is_dead ? c->reference[k] : imk_shlimits_send (&limits, wanted, before);

    cpu->change[k] = (float) (limited - wanted);
    s->counts->n_limited[0] += limited != wanted && !is_dead;
    is_changed |= limited != wanted;
    cpu->product[k] = (float) limited;
    if (!cpu->modes.tiles && limited != wanted)
      q[k] = limited - c->reference[k];
  }
  return is_changed;
}

static void
back_calculate (Cpu *cpu, double *q)
{
  const ImkShreconstructConfig *c = &cpu->config;

  imk_shreconstruct_multiply (
      &cpu->inverse, cpu->change, cpu->product, c->n_threads);
  for (uint32_t m = 0; m < c->n_modes; m++)
    q[m] += cpu->product[m];
}

static void
run_controller (Cpu *cpu, State *s, const float *slopes)
{
  const ImkShreconstructConfig *c = &cpu->config;
  bool is_changed = false;
  double *q;

  if (cpu->exclude)
    s->counts->n_out = imk_shreconstruct_exclude_follow (
        cpu->exclude, cpu->valid, c->exclude_cells);
  take_slopes (cpu, s, slopes);
  imk_shreconstruct_multiply (
      &cpu->matrix, s->slopes, cpu->product, c->n_threads);
  if (cpu->exclude)
    imk_shreconstruct_exclude_correct (cpu->exclude, cpu->product);
  q = control (cpu, s);
  make_commands (cpu, q);
  if (imk_shreconstruct_has_limits (c))
    is_changed = limit_commands (cpu, s, q);
  memcpy (s->commands, cpu->product, c->n_commands * sizeof (float));
  if (is_changed && cpu->modes.tiles)
    back_calculate (cpu, q);
}

static ImkStatus
cpu_process (
    void *state, const ImkShreconstructFrame *f, void *stream, ImkError *error)
{
  Cpu *cpu = state;
  const float *slopes = f->slopes.data;
  State s = {
      .q = f->state[IMK_SHRECONSTRUCT_Q].data,
      .u = f->state[IMK_SHRECONSTRUCT_U].data,
      .slopes = f->state[IMK_SHRECONSTRUCT_SLOPES].data,
      .commands = f->state[IMK_SHRECONSTRUCT_COMMANDS].data,
      .counts = f->state[IMK_SHRECONSTRUCT_COUNTS].data,
      .first = f->first,
  };

  s.counts->n_valid[0] = find_valid_cells (cpu, slopes, f->flags.data);
  s.counts->n_limited[0] = s.counts->n_out = 0;
  if (!imk_shreconstruct_is_dark (&cpu->config, s.counts->n_valid[0]))
    run_controller (cpu, &s, slopes);
  return IMK_OK;
}

const ImkShreconstructBackend imk_shreconstruct_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .create = cpu_create,
    .update = cpu_update,
    .process = cpu_process,
    .doubt = cpu_doubt,
    .destroy = cpu_destroy,
};
