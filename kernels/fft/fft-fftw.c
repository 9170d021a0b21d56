/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* FFTW's guru interface has our layouts. What it lacks is a two-dimensional
 * C2R that leaves its input alone: that one goes in two steps, columns from
 * the input to scratch, rows from there to the output. */
#include <fftw3.h>
#include <stdlib.h>

#include "fft/fft-private.h"

typedef struct State {
  fftwf_plan columns; /* NULL unless in two steps; one transform each */
  fftwf_plan main;    /* everything, or the rows of one transform */
} State;

/* Memory for the planner, which overwrites it when it measures. */
typedef struct Arena {
  void *in, *out, *scratch;
} Arena;

/* One call of the guru planner. */
typedef struct Problem {
  ImkFftKind kind;
  int rank, n_loops;
  fftwf_iodim64 dims[2], loops[1];
} Problem;

static bool
in_two_steps (const ImkFftConfig *c)
{
  return c->kind == IMK_FFT_C2R && c->height > 1 && !c->in_place;
}

static size_t
scratch_size (const ImkFftConfig *c)
{
  return in_two_steps (c)
             ? imk_fft_half (c->width) * c->height * sizeof (fftwf_complex)
             : 0;
}

static fftwf_plan
make_plan (const ImkFftConfig *c, const Problem *p, unsigned flags, void *in,
    void *out)
{
  flags |= c->effort == IMK_FFT_MEASURE ? FFTW_MEASURE : FFTW_ESTIMATE;
  switch (p->kind) {
  case IMK_FFT_R2C:
    return fftwf_plan_guru64_dft_r2c (
        p->rank, p->dims, p->n_loops, p->loops, in, out, flags);
  case IMK_FFT_C2R:
    return fftwf_plan_guru64_dft_c2r (
        p->rank, p->dims, p->n_loops, p->loops, in, out, flags);
  default:
    return fftwf_plan_guru64_dft (p->rank, p->dims, p->n_loops, p->loops, in,
        out, c->direction == IMK_FFT_FORWARD ? FFTW_FORWARD : FFTW_BACKWARD,
        flags);
  }
}

static fftwf_iodim64
loop (size_t n, size_t in, size_t out)
{
  return (fftwf_iodim64){
      .n = (ptrdiff_t) n, .is = (ptrdiff_t) in, .os = (ptrdiff_t) out};
}

static void
plan_in_one_step (const ImkFftConfig *c, const Arena *arena, State *state)
{
  Problem all = {.kind = c->kind, .n_loops = 1};

  if (c->height > 1)
    all.dims[all.rank++] = loop (c->height, c->in.pitch, c->out.pitch);
  all.dims[all.rank++] = loop (c->width, c->in.step, c->out.step);
  all.loops[0] = loop (c->n_transforms, c->in.distance, c->out.distance);
  state->main = make_plan (c, &all,
      c->in_place ? FFTW_DESTROY_INPUT : FFTW_PRESERVE_INPUT, arena->in,
      arena->out);
}

static void
plan_in_two_steps (const ImkFftConfig *c, const Arena *arena, State *state)
{
  size_t half = imk_fft_half (c->width);
  Problem columns = {
      .kind = IMK_FFT_C2C,
      .rank = 1,
      .dims = {loop (c->height, c->in.pitch, half)},
      .n_loops = 1,
      .loops = {loop (half, c->in.step, 1)},
  };
  Problem rows = {
      .kind = IMK_FFT_C2R,
      .rank = 1,
      .dims = {loop (c->width, 1, c->out.step)},
      .n_loops = 1,
      .loops = {loop (c->height, half, c->out.pitch)},
  };
  /* the second transform may lie worse than the first, which is planned */
  bool odd_in = c->in.distance * sizeof (fftwf_complex) % IMK_FFT_ALIGNMENT;
  bool odd_out = c->out.distance * sizeof (float) % IMK_FFT_ALIGNMENT;

  state->columns = make_plan (c, &columns,
      FFTW_PRESERVE_INPUT | (odd_in ? FFTW_UNALIGNED : 0), arena->in,
      arena->scratch);
  state->main =
      make_plan (c, &rows, FFTW_DESTROY_INPUT | (odd_out ? FFTW_UNALIGNED : 0),
          arena->scratch, arena->out);
}

static void
plan_destroy (void *data)
{
  State *state = data;

  if (!state)
    return;
  fftwf_destroy_plan (state->columns);
  fftwf_destroy_plan (state->main);
  free (state);
}

static bool
arena_alloc (const ImkFftConfig *c, Arena *arena)
{
  size_t in = imk_fft_extent (c, &c->in, imk_fft_row_in (c));
  size_t out = imk_fft_extent (c, &c->out, imk_fft_row_out (c));
  bool ok = true;

  in *= imk_fft_size_in (c);
  out *= imk_fft_size_out (c);
  if (c->in_place) {
    arena->in = arena->out = fftwf_malloc (in > out ? in : out);
  } else {
    arena->in = fftwf_malloc (in);
    arena->out = fftwf_malloc (out);
  }
  if (in_two_steps (c)) {
    arena->scratch = fftwf_malloc (scratch_size (c));
    ok = arena->scratch;
  }
  return ok && arena->in && arena->out;
}

static void
arena_free (const ImkFftConfig *c, Arena *arena)
{
  fftwf_free (arena->in);
  if (!c->in_place)
    fftwf_free (arena->out);
  fftwf_free (arena->scratch);
}

static ImkStatus
plan_create (
    const ImkFftConfig *c, void **data, size_t *scratch, ImkError *error)
{
  Arena arena = {NULL};
  State *state = calloc (1, sizeof (*state));
  ImkStatus status = IMK_OK;

  /* each plug-in has its own copy of this file, and others may use FFTW too:
   * only FFTW's own lock holds for all; further calls change nothing */
  fftwf_make_planner_thread_safe ();
  if (!state || !arena_alloc (c, &arena)) {
    status = imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory to plan %u transforms of %u x %u samples.",
        c->n_transforms, c->width, c->height);
    goto done;
  }
  if (in_two_steps (c))
    plan_in_two_steps (c, &arena, state);
  else
    plan_in_one_step (c, &arena, state);
  if (!state->main || (in_two_steps (c) && !state->columns)) {
    status = imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "%s has no plan for %u transforms of %u x %u samples in this layout.",
        fftwf_version, c->n_transforms, c->width, c->height);
    goto done;
  }
  *data = state;
  *scratch = scratch_size (c);
  state = NULL;

done:
  arena_free (c, &arena);
  plan_destroy (state);
  return status;
}

static void
execute_in_two_steps (const ImkFftConfig *c, const State *state,
    fftwf_complex *in, float *out, fftwf_complex *scratch)
{
  for (uint32_t i = 0; i < c->n_transforms; i++) {
    fftwf_execute_dft (state->columns, in + i * c->in.distance, scratch);
    fftwf_execute_dft_c2r (state->main, scratch, out + i * c->out.distance);
  }
}

static void
plan_execute (const ImkFftConfig *c, const void *data, const void *in,
    void *out, void *scratch)
{
  const State *state = data;
  void *source = (void *) in; /* FFTW's prototypes know no const input */

  if (in_two_steps (c))
    execute_in_two_steps (c, state, source, out, scratch);
  else if (c->kind == IMK_FFT_R2C)
    fftwf_execute_dft_r2c (state->main, source, out);
  else if (c->kind == IMK_FFT_C2R)
    fftwf_execute_dft_c2r (state->main, source, out);
  else
    fftwf_execute_dft (state->main, source, out);
}

const ImkFftLibrary imk_fft_fftw3f = {
    .name = "fftw3f",
    .create = plan_create,
    .execute = plan_execute,
    .destroy = plan_destroy,
};
