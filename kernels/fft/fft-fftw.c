/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* FFTW's guru interface has our layouts, and plans planes as well as rows. */
#include <fftw3.h>

#include "fft/fft-private.h"

/* Memory for the planner, which overwrites it when it measures. */
typedef struct Arena {
  void *in, *out;
} Arena;

/* In bytes. FFTW's estimate walks columns where they lie, and when the pitch
 * is a multiple of COLLISION the samples of a column share a few sets of the
 * cache. As long as the plane fits the cache that is bearable: C2C of 128x128
 * takes 45 us whole, 71 in rows and columns; of 128x256 265 and 64; of 512x512
 * 5.1 ms and 0.87. Without collisions (R2C of 512x512, compact) it is 0.64 ms
 * and 0.85. One core of a Xeon. */
enum { LARGEST_WHOLE_PLANE = 128 * 1024, COLLISION = 512 };

/* FFTW also lacks a C2R of planes that leaves its input alone. */
static bool
splits (const ImkFftConfig *c)
{
  size_t row = c->kind == IMK_FFT_C2C ? c->width : imk_fft_half (c->width);
  size_t pitch = c->kind == IMK_FFT_C2R ? c->in.pitch : c->out.pitch;

  if (c->kind == IMK_FFT_C2R && !c->in_place)
    return true;
  return c->effort == IMK_FFT_ESTIMATE &&
         row * c->height * sizeof (fftwf_complex) > LARGEST_WHOLE_PLANE &&
         pitch * sizeof (fftwf_complex) % COLLISION == 0;
}

static fftwf_iodim64
loop (size_t n, size_t in, size_t out)
{
  return (fftwf_iodim64){
      .n = (ptrdiff_t) n, .is = (ptrdiff_t) in, .os = (ptrdiff_t) out};
}

/* Returns: (nullable) */
static fftwf_plan
make_plan (const ImkFftConfig *c, unsigned flags, const Arena *arena)
{
  fftwf_iodim64 dims[2], batch;
  int rank = 0;

  if (c->height > 1)
    dims[rank++] = loop (c->height, c->in.pitch, c->out.pitch);
  dims[rank++] = loop (c->width, c->in.step, c->out.step);
  batch = loop (c->n_transforms, c->in.distance, c->out.distance);
  switch (c->kind) {
  case IMK_FFT_R2C:
    return fftwf_plan_guru64_dft_r2c (
        rank, dims, 1, &batch, arena->in, arena->out, flags);
  case IMK_FFT_C2R:
    return fftwf_plan_guru64_dft_c2r (
        rank, dims, 1, &batch, arena->in, arena->out, flags);
  default:
    return fftwf_plan_guru64_dft (rank, dims, 1, &batch, arena->in, arena->out,
        c->direction == IMK_FFT_FORWARD ? FFTW_FORWARD : FFTW_BACKWARD, flags);
  }
}

static bool
arena_alloc (const ImkFftConfig *c, Arena *arena)
{
  size_t in = imk_fft_extent (c, &c->in, imk_fft_row_in (c));
  size_t out = imk_fft_extent (c, &c->out, imk_fft_row_out (c));

  in *= imk_fft_size_in (c);
  out *= imk_fft_size_out (c);
  if (c->in_place) {
    arena->in = arena->out = fftwf_malloc (in > out ? in : out);
  } else {
    arena->in = fftwf_malloc (in);
    arena->out = fftwf_malloc (out);
  }
  return arena->in && arena->out;
}

static void
arena_free (const ImkFftConfig *c, Arena *arena)
{
  fftwf_free (arena->in);
  if (!c->in_place)
    fftwf_free (arena->out);
}

static unsigned
make_flags (const ImkFftConfig *c, unsigned liberties)
{
  unsigned flags = c->effort == IMK_FFT_MEASURE ? FFTW_MEASURE : FFTW_ESTIMATE;

  flags |= c->in_place || liberties & IMK_FFT_LIBERTY_SPOIL
               ? FFTW_DESTROY_INPUT
               : FFTW_PRESERVE_INPUT;
  if (liberties & IMK_FFT_LIBERTY_UNALIGNED)
    flags |= FFTW_UNALIGNED;
  return flags;
}

static ImkStatus
plan_create (const ImkFftConfig *c, unsigned liberties, void **state,
    size_t *scratch_size, ImkError *error)
{
  Arena arena = {NULL, NULL};
  ImkStatus status = IMK_OK;
  fftwf_plan plan;

  /* each plug-in has its own copy of this file, and others may use FFTW too:
   * only FFTW's own lock holds for all; further calls change nothing */
  fftwf_make_planner_thread_safe ();
  if (!arena_alloc (c, &arena)) {
    status = IMK_NO_MEMORY (error, "to plan %u transforms of %u x %u samples.",
        c->n_transforms, c->width, c->height);
    goto done;
  }
  plan = make_plan (c, make_flags (c, liberties), &arena);
  if (!plan) {
    status = imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "%s has no plan for %u transforms of %u x %u samples in this layout.",
        fftwf_version, c->n_transforms, c->width, c->height);
    goto done;
  }
  *state = plan;
  *scratch_size = 0;

done:
  arena_free (c, &arena);
  return status;
}

static void
plan_execute (const ImkFftConfig *c, const void *state, const void *in,
    void *out, void *scratch)
{
  fftwf_plan plan = (fftwf_plan) state;
  void *source = (void *) in; /* FFTW's prototypes know no const input */

  (void) scratch;
  switch (c->kind) {
  case IMK_FFT_R2C:
    fftwf_execute_dft_r2c (plan, source, out);
    break;
  case IMK_FFT_C2R:
    fftwf_execute_dft_c2r (plan, source, out);
    break;
  default:
    fftwf_execute_dft (plan, source, out);
  }
}

static void
plan_destroy (void *state)
{
  fftwf_destroy_plan (state);
}

const ImkFftLibrary imk_fft_fftw3f = {
    .name = "fftw3f",
    .splits = splits,
    .create = plan_create,
    .execute = plan_execute,
    .destroy = plan_destroy,
};
