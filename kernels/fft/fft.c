/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/fft.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/config.h"
#include "fft/fft-private.h"

/* Columns are taken side by side, a cache line of them. */
enum { N_SIDE_BY_SIDE = 8 };

/* Whatever type a library has for it. */
typedef struct __attribute__ ((may_alias)) Complex {
  float re, im;
} Complex;

/* A problem that the library solves, and its part of the scratch. */
typedef struct Part {
  ImkFftConfig config;
  void *state; /* the library's */
  size_t scratch_size;
} Part;

/* An idle scratch buffer; its first bytes are the link to the next. */
typedef struct Scratch {
  struct Scratch *next;
} Scratch;

struct ImkFft {
  const ImkFftLibrary *library;
  ImkFftConfig config;
  bool split;   /* a plane is done as rows and columns */
  Part main;    /* everything; the rows of one transform when split */
  Part column;  /* one compact column, when split */
  size_t plane; /* complex numbers between columns and rows, C2R when split */
  size_t scratch_size;  /* plane, two blocks of columns, one of the parts */
  pthread_mutex_t lock; /* of idle */
  Scratch *idle;
};

void
imk_fft_config_init_sized (ImkFftConfig *config, size_t size)
{
  const ImkFftConfig defaults = {
      .size = size, .width = 1, .height = 1, .n_transforms = 1};

  imk_config_init (config, size, &defaults, sizeof (defaults));
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

  IMK_TRY (status);
  row_in = imk_fft_row_in (c);
  row_out = imk_fft_row_out (c);
  if (c->in_place && c->kind == IMK_FFT_R2C)
    row_in = 2 * row_out;
  if (c->in_place && c->kind == IMK_FFT_C2R)
    row_out = 2 * row_in;
  IMK_TRY (fill_layout (c, &c->in, "input", row_in, error));
  IMK_TRY (fill_layout (c, &c->out, "output", row_out, error));
  IMK_TRY (check_layout (
      c, &c->in, "input", imk_fft_row_in (c), imk_fft_size_in (c), error));
  IMK_TRY (check_layout (
      c, &c->out, "output", imk_fft_row_out (c), imk_fft_size_out (c), error));
  if (c->in_place)
    IMK_TRY (check_in_place (c, error));
  return IMK_OK;
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
  return IMK_NO_MEMORY (error, "for an FFT: %zu bytes were asked for.", size);
}

/* --- planes as rows and columns ------------------------------------------ */

/* Complex numbers from one of the columns side by side to the next: aligned,
 * and no power of two, by which they would push each other from the cache. */
static size_t
column_spacing (const ImkFftConfig *c)
{
  return ((size_t) c->height + 7) / 8 * 8 + 8;
}

/* The rows of one transform as a batch. C2R out of place reads them from the
 * plane of half spectra whose columns are done. */
static ImkFftConfig
rows_config (const ImkFftConfig *c)
{
  ImkFftConfig rows = *c;

  rows.height = 1;
  rows.n_transforms = c->height;
  rows.in = (ImkFftLayout){.step = c->in.step, .distance = c->in.pitch};
  rows.out = (ImkFftLayout){.step = c->out.step, .distance = c->out.pitch};
  if (c->kind == IMK_FFT_C2R && !c->in_place)
    rows.in = (ImkFftLayout){.step = 1, .distance = imk_fft_half (c->width)};
  return rows;
}

static ImkFftConfig
column_config (const ImkFftConfig *c)
{
  return (ImkFftConfig){
      .kind = IMK_FFT_C2C,
      .direction = c->direction,
      .width = c->height,
      .height = 1,
      .n_transforms = 1,
      .in = {.step = 1},
      .out = {.step = 1},
      .effort = c->effort,
  };
}

/* The rows of the second transform may lie worse than those of the first. */
static unsigned
rows_liberties (const ImkFftConfig *c)
{
  bool from_plane = c->kind == IMK_FFT_C2R && !c->in_place;
  size_t in = from_plane ? 0 : c->in.distance * imk_fft_size_in (c);
  size_t out = c->out.distance * imk_fft_size_out (c);
  unsigned liberties = 0;

  if (in % IMK_FFT_ALIGNMENT || out % IMK_FFT_ALIGNMENT)
    liberties |= IMK_FFT_LIBERTY_UNALIGNED;
  if (c->kind == IMK_FFT_C2R)
    liberties |= IMK_FFT_LIBERTY_SPOIL;
  return liberties;
}

/* @in and @out may be one place. */
static void
execute_columns (const ImkFft *self, uint32_t width, const Complex *in,
    const ImkFftLayout *from, Complex *out, const ImkFftLayout *to,
    Complex *scratch)
{
  size_t spacing = column_spacing (&self->config);
  uint32_t height = self->config.height;
  Complex *columns = scratch, *spectra = columns + N_SIDE_BY_SIDE * spacing;
  void *rest = spectra + N_SIDE_BY_SIDE * spacing;

  for (uint32_t x = 0, n; x < width; x += n) {
    n = width - x < N_SIDE_BY_SIDE ? width - x : N_SIDE_BY_SIDE;
    for (size_t y = 0; y < height; y++)
      for (uint32_t i = 0; i < n; i++)
        columns[i * spacing + y] = in[y * from->pitch + (x + i) * from->step];
    for (uint32_t i = 0; i < n; i++)
      self->library->execute (&self->column.config, self->column.state,
          columns + i * spacing, spectra + i * spacing, rest);
    for (size_t v = 0; v < height; v++)
      for (uint32_t i = 0; i < n; i++)
        out[v * to->pitch + (x + i) * to->step] = spectra[i * spacing + v];
  }
}

static void
execute_plane (const ImkFft *self, const void *in, void *out, void *scratch)
{
  const ImkFftConfig *c = &self->config;
  ImkFftLayout plane_layout = {.step = 1, .pitch = imk_fft_half (c->width)};
  Complex *plane = scratch, *rest = plane + self->plane;

  if (c->kind != IMK_FFT_C2R) {
    self->library->execute (
        &self->main.config, self->main.state, in, out, rest);
    execute_columns (
        self, imk_fft_row_out (c), out, &c->out, out, &c->out, rest);
    return;
  }
  if (c->in_place) {
    plane = out;
    plane_layout = c->in;
  }
  execute_columns (
      self, imk_fft_row_in (c), in, &c->in, plane, &plane_layout, rest);
  self->library->execute (
      &self->main.config, self->main.state, plane, out, rest);
}

static void
execute_planes (const ImkFft *self, const void *in, void *out, void *scratch)
{
  const ImkFftConfig *c = &self->config;

  for (size_t i = 0; i < c->n_transforms; i++)
    execute_plane (self,
        (const char *) in + i * c->in.distance * imk_fft_size_in (c),
        (char *) out + i * c->out.distance * imk_fft_size_out (c), scratch);
}

/* --- making and executing ------------------------------------------------ */

static ImkStatus
create_part (ImkFft *self, Part *part, unsigned liberties, ImkError *error)
{
  return self->library->create (
      &part->config, liberties, &part->state, &part->scratch_size, error);
}

static ImkStatus
create_parts (ImkFft *self, ImkError *error)
{
  const ImkFftConfig *c = &self->config;
  ImkStatus status = IMK_OK;

  self->split = c->height > 1 && self->library->splits (c);
  if (!self->split) {
    self->main.config = *c;
    status = create_part (self, &self->main, 0, error);
    self->scratch_size = self->main.scratch_size;
    return status;
  }
  self->main.config = rows_config (c);
  self->column.config = column_config (c);
  status = create_part (self, &self->main, rows_liberties (c), error);
  IMK_TRY (status);
  IMK_TRY (create_part (self, &self->column, 0, error));
  if (c->kind == IMK_FFT_C2R && !c->in_place) /* whole cache lines */
    self->plane = ((size_t) imk_fft_half (c->width) * c->height + 7) / 8 * 8;
  self->scratch_size =
      2 * N_SIDE_BY_SIDE * column_spacing (c) * sizeof (Complex) +
      self->column.scratch_size;
  if (self->scratch_size < self->main.scratch_size) /* one after the other */
    self->scratch_size = self->main.scratch_size;
  self->scratch_size += self->plane * sizeof (Complex);
  return IMK_OK;
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
  ImkFftConfig own, complete;
  ImkStatus status;
  ImkFft *fft;

  config = IMK_CONFIG_READ (fft, config, &own, error);
  if (!config)
    return IMK_ERROR_CONFIG;
  complete = *config;
  IMK_TRY (complete_config (&complete, error));
  fft = calloc (1, sizeof (*fft));
  if (!fft)
    return no_memory (sizeof (*fft), error);
  fft->library = library;
  fft->config = complete;
  pthread_mutex_init (&fft->lock, NULL);
  status = create_parts (fft, error);
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
  IMK_TRY (check_pointer (in, "input", error));
  IMK_TRY (check_pointer (out, "output", error));
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
  Scratch *scratch = NULL;

  IMK_TRY (check_pointers (self, in, out, error));
  if (self->scratch_size) {
    scratch = take_scratch (self);
    if (!scratch)
      return no_memory (self->scratch_size, error);
  }
  if (self->split)
    execute_planes (self, in, out, scratch);
  else
    self->library->execute (
        &self->main.config, self->main.state, in, out, scratch);
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
  self->library->destroy (self->main.state);
  self->library->destroy (self->column.state);
  pthread_mutex_destroy (&self->lock);
  free (self);
}

const char *
imk_fft_library_name (void)
{
  return IMK_FFT_LIBRARY.name;
}
