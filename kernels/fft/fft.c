/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fft/fft.h"

#include <pthread.h>
#include <stdlib.h>

#include "fft/fft-private.h"

/* An idle scratch buffer; its first bytes are the link to the next. */
typedef struct Scratch {
  struct Scratch *next;
} Scratch;

struct ImkFft {
  const ImkFftLibrary *library;
  void *state; /* the library's */
  ImkFftConfig config;
  size_t scratch_size;
  pthread_mutex_t lock; /* of idle */
  Scratch *idle;
};

void
imk_fft_config_init (ImkFftConfig *config)
{
  *config = (ImkFftConfig){.width = 1, .height = 1, .n_transforms = 1};
}

static ImkStatus
check_problem (const ImkFftConfig *c, ImkError *error)
{
  if ((int) c->kind < 0 || c->kind > IMK_FFT_C2R)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no kind of transform of the number %d; there are 0..%d.",
        (int) c->kind, IMK_FFT_C2R);
  if ((int) c->direction < 0 || c->direction > IMK_FFT_BACKWARD)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no direction of the number %d; there are 0 (forward) and 1 "
        "(backward).",
        (int) c->direction);
  if ((int) c->effort < 0 || c->effort > IMK_FFT_MEASURE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no planning effort of the number %d; there are 0 (estimate) "
        "and 1 (measure).",
        (int) c->effort);
  if (c->kind == IMK_FFT_R2C && c->direction != IMK_FFT_FORWARD)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A transform from real to complex only goes forward; set the direction "
        "to forward.");
  if (c->kind == IMK_FFT_C2R && c->direction != IMK_FFT_BACKWARD)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A transform from complex to real only goes backward; set the "
        "direction to backward.");
  if (c->width < 1 || c->width > IMK_FFT_MAX_SIZE || c->height < 1 ||
      c->height > IMK_FFT_MAX_SIZE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "%u x %u samples cannot be transformed; width and height can be 1..%u "
        "each.",
        c->width, c->height, IMK_FFT_MAX_SIZE);
  if (c->n_transforms < 1)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A plan of 0 transforms does nothing; n_transforms is at least 1.");
  return IMK_OK;
}

/* One of the three nested loops over a side. */
typedef struct Loop {
  const char *name;
  size_t n, by;
} Loop;

static void
sort_loops (Loop loops[3])
{
  for (int i = 1; i < 3; i++)
    for (int j = i; j > 0 && loops[j].by < loops[j - 1].by; j--) {
      Loop swap = loops[j];

      loops[j] = loops[j - 1];
      loops[j - 1] = swap;
    }
}

static ImkStatus
too_large (const char *side, ImkError *error)
{
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "The %s does not fit into the address space. Take a smaller size, step, "
      "pitch or distance, or fewer transforms.",
      side);
}

/* Each loop must step over all that the loops inside it reach. */
static ImkStatus
check_layout (const ImkFftConfig *c, const ImkFftLayout *l, const char *side,
    uint32_t row, size_t size, ImkError *error)
{
  Loop loops[3] = {
      {"step", row, l->step},
      {"pitch", c->height, l->pitch},
      {"distance", c->n_transforms, l->distance},
  };
  size_t reach = 1; /* elements from the first to the last, both included */
  size_t length;

  sort_loops (loops);
  for (int i = 0; i < 3; i++) {
    if (loops[i].n == 1)
      continue;
    if (loops[i].by < reach)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The %s has a %s of %zu elements, and what it has to step over takes "
          "%zu: elements would fall on one place. Take a %s of at least %zu.",
          side, loops[i].name, loops[i].by, reach, loops[i].name, reach);
    if (__builtin_mul_overflow (loops[i].n - 1, loops[i].by, &length) ||
        __builtin_add_overflow (reach, length, &reach))
      return too_large (side, error);
  }
  if (reach > PTRDIFF_MAX / size)
    return too_large (side, error);
  return IMK_OK;
}

/* Fills in what the caller left at 0. @row: elements a row with its padding.
 * What nothing steps by becomes 0, so that sums of it do, too. */
static ImkStatus
fill_layout (const ImkFftConfig *c, ImkFftLayout *l, const char *side,
    size_t row, ImkError *error)
{
  size_t of_row, of_column;

  if (!l->step)
    l->step = 1;
  if (__builtin_mul_overflow (row, l->step, &of_row))
    return too_large (side, error);
  if (!l->pitch)
    l->pitch = of_row;
  if (__builtin_mul_overflow (l->pitch, c->height, &of_column))
    return too_large (side, error);
  if (!l->distance) /* the larger one: rows may lie across columns */
    l->distance = of_column > of_row ? of_column : of_row;
  if (c->height == 1)
    l->pitch = 0;
  if (c->n_transforms == 1)
    l->distance = 0;
  return IMK_OK;
}

static ImkStatus
check_in_place (const ImkFftConfig *c, ImkError *error)
{
  const ImkFftLayout *real = c->kind == IMK_FFT_C2R ? &c->out : &c->in;
  const ImkFftLayout *bins = c->kind == IMK_FFT_C2R ? &c->in : &c->out;
  size_t ratio = c->kind == IMK_FFT_C2C ? 1 : 2;

  if (real->step != bins->step || (ratio == 2 && real->step != 1))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A transform in place cannot have a step of %zu in the input and %zu "
        "in the output; take %s.",
        c->in.step, c->out.step, ratio == 1 ? "equal steps" : "1 in both");
  if (real->pitch / ratio != bins->pitch || real->pitch % ratio ||
      real->distance / ratio != bins->distance || real->distance % ratio)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A transform in place cannot have pitch %zu and distance %zu in the "
        "input, %zu and %zu in the output; %s.",
        c->in.pitch, c->in.distance, c->out.pitch, c->out.distance,
        ratio == 1 ? "they must be equal"
                   : "those of the real side must be twice those of the "
                     "complex side");
  return IMK_OK;
}

/* Checks @c and fills in its layouts. */
static ImkStatus
complete_config (ImkFftConfig *c, ImkError *error)
{
  ImkStatus status = check_problem (c, error);
  size_t row_in, row_out;

  if (status != IMK_OK)
    return status;
  row_in = imk_fft_row_in (c);
  row_out = imk_fft_row_out (c);
  if (c->in_place && c->kind == IMK_FFT_R2C)
    row_in = 2 * row_out;
  if (c->in_place && c->kind == IMK_FFT_C2R)
    row_out = 2 * row_in;
  status = fill_layout (c, &c->in, "input", row_in, error);
  if (status == IMK_OK)
    status = fill_layout (c, &c->out, "output", row_out, error);
  if (status == IMK_OK)
    status = check_layout (
        c, &c->in, "input", imk_fft_row_in (c), imk_fft_size_in (c), error);
  if (status == IMK_OK)
    status = check_layout (
        c, &c->out, "output", imk_fft_row_out (c), imk_fft_size_out (c), error);
  if (status == IMK_OK && c->in_place)
    status = check_in_place (c, error);
  return status;
}

/* Returns: (nullable): scratch for one execution */
static Scratch *
take_scratch (ImkFft *self)
{
  Scratch *scratch;

  pthread_mutex_lock (&self->lock);
  scratch = self->idle;
  if (scratch)
    self->idle = scratch->next;
  pthread_mutex_unlock (&self->lock);
  return scratch
             ? scratch
             : aligned_alloc (IMK_FFT_SCRATCH_ALIGNMENT, self->scratch_size);
}

static void
give_scratch (ImkFft *self, Scratch *scratch)
{
  pthread_mutex_lock (&self->lock);
  scratch->next = self->idle;
  self->idle = scratch;
  pthread_mutex_unlock (&self->lock);
}

static ImkStatus
no_memory (size_t size, ImkError *error)
{
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory for an FFT: %zu bytes were asked for.", size);
}

/* So that the first execution allocates nothing. */
static ImkStatus
prepare_scratch (ImkFft *self, ImkError *error)
{
  Scratch *scratch;
  size_t rest = self->scratch_size % IMK_FFT_SCRATCH_ALIGNMENT;

  if (!self->scratch_size)
    return IMK_OK;
  if (rest) /* aligned_alloc wants whole multiples */
    self->scratch_size += IMK_FFT_SCRATCH_ALIGNMENT - rest;
  scratch = take_scratch (self);
  if (!scratch)
    return no_memory (self->scratch_size, error);
  give_scratch (self, scratch);
  return IMK_OK;
}

ImkStatus
imk_fft_new_with (const ImkFftLibrary *library, const ImkFftConfig *config,
    ImkFft **self, ImkError *error)
{
  ImkFftConfig complete = *config;
  ImkStatus status = complete_config (&complete, error);
  ImkFft *fft;

  if (status != IMK_OK)
    return status;
  fft = calloc (1, sizeof (*fft));
  if (!fft)
    return no_memory (sizeof (*fft), error);
  fft->library = library;
  fft->config = complete;
  pthread_mutex_init (&fft->lock, NULL);
  status =
      library->create (&fft->config, &fft->state, &fft->scratch_size, error);
  if (status == IMK_OK)
    status = prepare_scratch (fft, error);
  if (status != IMK_OK) {
    imk_fft_free (fft);
    return status;
  }
  *self = fft;
  return IMK_OK;
}

ImkStatus
imk_fft_new (const ImkFftConfig *config, ImkFft **self, ImkError *error)
{
  return imk_fft_new_with (&IMK_FFT_LIBRARY, config, self, error);
}

static ImkStatus
check_pointer (const void *pointer, const char *side, ImkError *error)
{
  if (!pointer)
    return imk_error_set (
        error, IMK_ERROR_IMAGE, "The %s of the FFT is NULL.", side);
  if ((uintptr_t) pointer % IMK_FFT_ALIGNMENT)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The %s of the FFT lies %u bytes behind a multiple of %u; it must lie "
        "on one.",
        side, (unsigned) ((uintptr_t) pointer % IMK_FFT_ALIGNMENT),
        IMK_FFT_ALIGNMENT);
  return IMK_OK;
}

static ImkStatus
check_pointers (
    const ImkFft *self, const void *in, const void *out, ImkError *error)
{
  ImkStatus status = check_pointer (in, "input", error);

  if (status == IMK_OK)
    status = check_pointer (out, "output", error);
  if (status != IMK_OK)
    return status;
  if (self->config.in_place && in != out)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The FFT is planned in place, and input and output are two places. "
        "Pass one, or make another plan.");
  if (!self->config.in_place && in == out)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The FFT is not planned in place, and input and output are one place. "
        "Pass two, or make another plan.");
  return IMK_OK;
}

ImkStatus
imk_fft_execute (ImkFft *self, const void *in, void *out, ImkError *error)
{
  ImkStatus status = check_pointers (self, in, out, error);
  Scratch *scratch = NULL;

  if (status != IMK_OK)
    return status;
  if (self->scratch_size) {
    scratch = take_scratch (self);
    if (!scratch)
      return no_memory (self->scratch_size, error);
  }
  self->library->execute (&self->config, self->state, in, out, scratch);
  if (scratch)
    give_scratch (self, scratch);
  return IMK_OK;
}

void
imk_fft_free (ImkFft *self)
{
  if (!self)
    return;
  for (Scratch *next, *s = self->idle; s; s = next) {
    next = s->next;
    free (s);
  }
  self->library->destroy (self->state);
  pthread_mutex_destroy (&self->lock);
  free (self);
}

const char *
imk_fft_library_name (void)
{
  return IMK_FFT_LIBRARY.name;
}
