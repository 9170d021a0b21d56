/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One thread measures a whole patch, from its lines to its offset, in a
 * workspace of its own that mostly stays in the cache. */
#include "insarxcorr/cpu/patch.h"

#include "imk/parallel.h"

enum {
  CHUNK = IMK_INSARXCORR_CHUNK,
  ALIGNMENT = 64,
  WINDOW = IMK_INSARXCORR_WINDOW,
};

typedef ImkInsarxcorrComplex Complex;
typedef ImkInsarxcorrSpace Workspace;
typedef ImkInsarxcorrCpu Cpu;
typedef ImkInsarxcorrWork Work;

/* One call of process. */
typedef struct Row {
  Cpu *cpu;
  const ImkInsarxcorrPatch *patches;
  const ImkImage *out;
  ImkStatus status; /* the first failure; protected by the lock of Cpu */
  ImkError error;
} Row;

/* ------------------------------------------------------------------------
 * Patches. */

static ImkStatus
measure_patch (Work *w, ImkError *error)
{
  bool precise = w->cpu->plan->config.mode == IMK_INSARXCORR_PRECISE;

  w->peak = (ImkInsarxcorrPeak){.valid = 1};
  IMK_TRY (precise ? imk_insarxcorr_precise (w, error)
                   : imk_insarxcorr_compat (w, error));
  imk_insarxcorr_find_peak (w);
  return IMK_OK;
}

static Workspace *
take_workspace (Cpu *cpu)
{
  Workspace *space;

  pthread_mutex_lock (&cpu->lock);
  space = cpu->idle;
  cpu->idle = space->next;
  pthread_mutex_unlock (&cpu->lock);
  return space;
}

static void
give_workspace (Cpu *cpu, Workspace *space)
{
  pthread_mutex_lock (&cpu->lock);
  space->next = cpu->idle;
  cpu->idle = space;
  pthread_mutex_unlock (&cpu->lock);
}

static void
note_failure (Row *row, ImkStatus status, const ImkError *error)
{
  pthread_mutex_lock (&row->cpu->lock);
  if (row->status == IMK_OK) {
    row->status = status;
    row->error = *error;
  }
  pthread_mutex_unlock (&row->cpu->lock);
}

static void
measure_patches (void *data, uint32_t first, uint32_t end)
{
  Row *row = data;
  Workspace *space = take_workspace (row->cpu);

  for (uint32_t i = first; i < end; i++) {
    Work work = {.cpu = row->cpu, .patch = row->patches + i, .space = space};
    double *out = (double *) ((uint8_t *) row->out->data +
                              (row->cpu->part->first + i) * row->out->stride);
    bool is_masked = work.patch->flags & IMK_INSARXCORR_MASKED;
    ImkStatus status = IMK_OK;
    ImkError error;

    if (row->cpu->is_cancelled)
      status =
          imk_error_set (&error, IMK_ERROR_IMAGE, "The row was cancelled.");
    else if (is_masked)
      imk_insarxcorr_finish_masked (row->cpu->plan, work.patch, out);
    else
      status = measure_patch (&work, &error);
    if (status != IMK_OK) {
      note_failure (row, status, &error);
      break;
    }
    if (!is_masked)
      imk_insarxcorr_finish (row->cpu->plan, work.patch, &work.peak, out);
  }
  give_workspace (row->cpu, space);
}

/* ------------------------------------------------------------------------
 * The backend. */

static size_t
round_up (size_t size)
{
  return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Takes @size bytes from @block; only counts them if it is NULL. */
static void *
carve (uint8_t *block, size_t *used, size_t size)
{
  void *at = block ? block + *used : NULL;

  *used += round_up (size);
  return at;
}

static size_t
larger (size_t a, size_t b)
{
  return a > b ? a : b;
}

/* Samples, their spectrum and finer samples. */
static void
lay_out_samples (const Cpu *cpu, uint8_t *block, size_t *used, Workspace *s)
{
  const ImkInsarxcorrPlan *plan = cpu->plan;
  bool precise = plan->config.mode == IMK_INSARXCORR_PRECISE;
  size_t finer = precise ? plan->fine.interp_x * plan->fine.interp_y : 1;
  size_t size = 0;

  for (int i = 0; i < IMK_INSARXCORR_N_SIDES; i++)
    size = larger (size, (size_t) plan->patch_width[i] *
                             (precise ? plan->patch_height[i] : CHUNK) *
                             sizeof (Complex));
  s->lines = carve (block, used, size);
  s->spectra = carve (block, used, size);
  s->phases = carve (block, used, finer * size);
  s->amplitudes = carve (block, used, plan->patch_width[0] * sizeof (float));
}

/* Lays a workspace out over @block. Returns: bytes that it takes */
static size_t
lay_out (const Cpu *cpu, uint8_t *block, Workspace *s)
{
  const ImkInsarxcorrPlan *plan = cpu->plan;
  const ImkInsarxcorrFine *f = &plan->fine;
  /* whole chunks of lines */
  size_t lines = (f->fft_height + CHUNK - 1) / CHUNK * CHUNK;
  size_t patch = lines * f->fft_width * sizeof (float);
  size_t spectrum =
      (size_t) f->fft_height * (f->fft_width / 2 + 1) * sizeof (Complex);
  size_t sums = f->width[1] * sizeof (double);
  bool precise = plan->config.mode == IMK_INSARXCORR_PRECISE;
  bool in_time = !precise && plan->config.method != IMK_INSARXCORR_FREQ;
  size_t used = round_up (sizeof (Workspace));

  lay_out_samples (cpu, block, &used, s);
  s->a = carve (block, &used, patch);
  s->b = carve (block, &used, patch);
  s->a_spectrum = carve (block, &used, in_time ? 0 : spectrum);
  s->b_spectrum = carve (block, &used, in_time ? 0 : spectrum);
  s->a_cut = carve (block, &used, in_time ? patch : 0);
  s->b_cut = carve (block, &used, in_time ? patch : 0);
  s->sums = carve (block, &used, precise ? sums : 0);
  s->squares = carve (block, &used, precise ? sums : 0);
  s->surface =
      carve (block, &used, (size_t) f->n_lags_x * f->n_lags_y * sizeof (float));
  s->zoomed = carve (block, &used,
      (size_t) WINDOW * WINDOW * plan->config.interp * sizeof (double));
  return used;
}

static ImkStatus
no_memory (uint64_t size, ImkError *error)
{
  return IMK_NO_MEMORY (error,
      "for the correlation: %llu bytes were asked for.",
      (unsigned long long) size);
}

/* A workspace for each thread, and as many threads as the memory limit allows.
 */
static ImkStatus
create_workspaces (Cpu *cpu, ImkError *error)
{
  Workspace sizes;
  size_t size = lay_out (cpu, NULL, &sizes);
  uint64_t limit = cpu->plan->work_limit;
  uint32_t n = imk_parallel_threads (cpu->plan->config.n_threads);

  n = n < cpu->part->n ? n : cpu->part->n;
  if (limit && limit / size < n)
    n = (uint32_t) (limit / size);
  if (n == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "memory-limit leaves %llu bytes for the work on patches of %u x %u "
        "samples, which takes %zu at least. Raise it, or take a smaller "
        "search.",
        (unsigned long long) limit, cpu->plan->patch_width[1],
        cpu->plan->patch_height[1], size);
  cpu->n_threads = n;
  for (uint32_t i = 0; i < n; i++) {
    uint8_t *block = aligned_alloc (ALIGNMENT, size);

    if (!block)
      return no_memory (size, error);
    lay_out (cpu, block, (Workspace *) block);
    give_workspace (cpu, (Workspace *) block);
  }
  return IMK_OK;
}

static ImkStatus
create_plan (ImkFft **fft, ImkFftKind kind, ImkFftDirection direction,
    uint32_t width, uint32_t height, uint32_t n, ImkError *error)
{
  ImkFftConfig c;

  imk_fft_config_init (&c);
  c.kind = kind;
  c.direction = direction;
  c.width = width;
  c.height = height;
  c.n_transforms = n;
  c.in_place =
      kind == IMK_FFT_C2R || (direction == IMK_FFT_BACKWARD && height > 1);
  return imk_fft_new (&c, fft, error);
}

/* PRECISE: whole patches of a side, and finer ones. COMPAT: lines of either. */
static ImkStatus
create_side_plans (Cpu *cpu, int side, ImkError *error)
{
  const ImkInsarxcorrPlan *p = cpu->plan;
  bool precise = p->config.mode == IMK_INSARXCORR_PRECISE;
  uint32_t width = p->patch_width[side];
  uint32_t height = precise ? p->patch_height[side] : 1;
  uint32_t n = precise ? 1 : CHUNK;

  IMK_TRY (create_plan (&cpu->forward[side], IMK_FFT_C2C, IMK_FFT_FORWARD,
      width, height, n, error));
  return create_plan (&cpu->backward[side], IMK_FFT_C2C, IMK_FFT_BACKWARD,
      precise ? width * p->fine.interp_x : width, height * p->fine.interp_y, n,
      error);
}

static ImkStatus
create_plans (Cpu *cpu, ImkError *error)
{
  const ImkInsarxcorrConfig *c = &cpu->plan->config;
  const ImkInsarxcorrFine *f = &cpu->plan->fine;
  bool precise = c->mode == IMK_INSARXCORR_PRECISE;
  ImkStatus status = IMK_OK;

  if (precise || c->range_interp > 1)
    status = create_side_plans (cpu, IMK_INSARXCORR_REFERENCE, error);
  if (status == IMK_OK && precise)
    status = create_side_plans (cpu, IMK_INSARXCORR_SECONDARY, error);
  if (status != IMK_OK || (!precise && c->method != IMK_INSARXCORR_FREQ))
    return status;
  status = create_plan (&cpu->spectrum, IMK_FFT_R2C, IMK_FFT_FORWARD,
      f->fft_width, f->fft_height, 1, error);
  IMK_TRY (status);
  return create_plan (&cpu->surface, IMK_FFT_C2R, IMK_FFT_BACKWARD,
      f->fft_width, f->fft_height, 1, error);
}

static ImkStatus
create_tables (Cpu *cpu, ImkError *error)
{
  const ImkInsarxcorrConfig *c = &cpu->plan->config;

  cpu->turns = malloc ((size_t) c->range_interp * cpu->plan->patch_width[0] *
                       sizeof (*cpu->turns));
  cpu->tables = malloc (imk_insarxcorr_zoom_size (c->interp));
  if (!cpu->turns || !cpu->tables)
    return no_memory (imk_insarxcorr_zoom_size (c->interp), error);
  imk_insarxcorr_fill_turns (
      c->range_interp, cpu->plan->patch_width[0], &cpu->turns->re);
  imk_insarxcorr_zoom_fill (c->interp, cpu->tables);
  cpu->zoom = imk_insarxcorr_zoom_over (c->interp, cpu->tables);
  return IMK_OK;
}

static ImkStatus
create_bands (Cpu *cpu, ImkError *error)
{
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    const ImkInsarxcorrBand *band = &cpu->part->bands[s];
    size_t size;

    cpu->strides[s] =
        round_up (band->width * imk_type_size (cpu->plan->config.type));
    size = cpu->strides[s] * band->n_lines;
    cpu->bands[s] = malloc (size ? size : 1);
    if (!cpu->bands[s])
      return no_memory (size, error);
  }
  return IMK_OK;
}

static void
cpu_destroy (void *state)
{
  Cpu *cpu = state;

  if (!cpu)
    return;
  for (Workspace *next, *s = cpu->idle; s; s = next) {
    next = s->next;
    free (s);
  }
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    free (cpu->bands[s]);
    imk_fft_free (cpu->forward[s]);
    imk_fft_free (cpu->backward[s]);
  }
  imk_fft_free (cpu->spectrum);
  imk_fft_free (cpu->surface);
  free (cpu->turns);
  free (cpu->tables);
  pthread_mutex_destroy (&cpu->lock);
  free (cpu);
}

static ImkStatus
cpu_create (
    const ImkInsarxcorrPlan *plan, uint32_t part, void **state, ImkError *error)
{
  Cpu *cpu = calloc (1, sizeof (*cpu));
  ImkStatus status;

  if (!cpu)
    return no_memory (sizeof (*cpu), error);
  cpu->plan = plan;
  cpu->part = &plan->parts[part];
  pthread_mutex_init (&cpu->lock, NULL);
  status = create_bands (cpu, error);
  if (status == IMK_OK)
    status = create_tables (cpu, error);
  if (status == IMK_OK)
    status = create_plans (cpu, error);
  if (status == IMK_OK)
    status = create_workspaces (cpu, error);
  if (status == IMK_OK)
    *state = cpu;
  else
    cpu_destroy (cpu);
  return status;
}

static ImkStatus
cpu_push (void *state, ImkInsarxcorrSide side, uint32_t line,
    const ImkImage *lines, ImkError *error)
{
  Cpu *cpu = state;
  const ImkInsarxcorrBand *band = &cpu->part->bands[side];
  size_t size = imk_type_size (lines->type);

  for (uint32_t i = 0; i < lines->height; i++) {
    const uint8_t *from = (const uint8_t *) lines->data + i * lines->stride;
    uint8_t *to =
        cpu->bands[side] + (line + i) % band->n_lines * cpu->strides[side];

    for (uint32_t j = 0; j < band->n_spans; j++)
      memcpy (to + band->spans[j].at * size,
          from + band->spans[j].column * size, band->spans[j].width * size);
  }
  return IMK_OK;
}

static ImkStatus
cpu_process (
    void *state, uint32_t row, ImkImage *out, void *stream, ImkError *error)
{
  Cpu *cpu = state;
  const ImkInsarxcorrPart *part = cpu->part;
  Row data = {
      .cpu = cpu,
      .patches = cpu->plan->patches + (size_t) row * cpu->plan->config.nx +
                 part->first,
      .out = out,
  };

  imk_parallel_for (cpu->n_threads, part->n, 1, measure_patches, &data);
  if (data.status != IMK_OK && error)
    *error = data.error;
  return data.status;
}

void
imk_insarxcorr_cpu_cancel (void *state, bool cancel)
{
  Cpu *cpu = state;

  cpu->is_cancelled = cancel;
}

const ImkInsarxcorrBackend imk_insarxcorr_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .create = cpu_create,
    .push = cpu_push,
    .process = cpu_process,
    .destroy = cpu_destroy,
};
